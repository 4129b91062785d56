"""Sequences: several runs of programs as one call, with pointers and parameters laid out ahead.

Between a run and the next there is no Python then. Arrays that one program makes for another lie in
one block, where those that are not needed any more give place to later ones. Steps that go over
memory alike run in bands (see `bands`).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from collections.abc import Sequence as Several
from ctypes import POINTER, c_int64, c_void_p
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .. import build
from ..build.structures import declarations
from ..target import HOST
from . import bands, pool
from .execute import KEPT_BYTES, Entry
from .private import DATA

_ALIGN = HOST.line_bytes


@dataclass
class Step:
    """A run of a program.

    sources: where its tensors come from; k >= 0: the caller's array k; -1 - k: number k of the
    constants and of all that the steps before have made.
    """

    program: Entry
    sources: tuple[int, ...]
    floats: Several[float]
    ints: Several[int]


@dataclass
class _Made:
    """An array that a step makes: what it looks like, and its place in the block, if it has one."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    dtype: np.dtype
    bytes: int
    offset: int | None = None

    def in_block(self, block: np.ndarray) -> np.ndarray:
        """The array in the block."""
        assert self.offset is not None
        return np.ndarray(self.shape, self.dtype, block, self.offset, self.strides)


def _block(size: int) -> np.ndarray:
    """Memory that begins at a cache line."""
    memory = np.empty(size + _ALIGN, np.uint8)
    return memory[-memory.ctypes.data % _ALIGN :][:size]


# Types of functions in C.
_FUNCTIONS = """\
typedef long i64;
typedef void (*body_t)(void *memory, i64 begin, i64 end);
typedef void (*run_t)(body_t, void *, i64, i64, int);
typedef int (*section_t)(void *memory, int threads, run_t run);
"""


class body_t(c_void_p):
    """The function of a nest."""


class run_t(c_void_p):
    """The function of the pool that runs chunks of a nest."""


class section_t(c_void_p):
    """The function of a section."""


class _Member(ctypes.Structure):
    """A nest of a group; per: its iterations in a part."""

    _fields_ = (("body", body_t), ("memory", c_void_p), ("per", c_int64))


class _Group(ctypes.Structure):
    """Nests that run together, see `bands.Group`."""

    _fields_ = (
        ("members", POINTER(_Member)), ("count", c_int64), ("parts", c_int64), ("band", c_int64),
        ("grain", c_int64),
    )  # fmt: skip


class _Step(ctypes.Structure):
    """A section and its pointers, or no section and a group."""

    _fields_ = (("section", section_t), ("memory", c_void_p))


class _Link(ctypes.Structure):
    """A pointer that leads to `offset` bytes behind the beginning of an object's data."""

    _fields_ = (("slot", c_void_p), ("object", c_int64), ("offset", c_int64))


class _Sequence(ctypes.Structure):
    """What `npc_sequence` runs. data: offset of the data pointer in an object."""

    _fields_ = (
        ("steps", POINTER(_Step)), ("count", c_int64), ("links", POINTER(_Link)),
        ("linked", c_int64), ("objects", POINTER(c_void_p)), ("data", c_int64), ("run", run_t),
    )  # fmt: skip


class Work(ctypes.Structure):
    """What one run at a time needs; `Work` in `replay/calls.c`."""

    _fields_ = [
        ("next", ctypes.c_void_p),
        ("objects", ctypes.c_void_p),
        ("sequence", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("has_block", ctypes.c_int64),
        ("flag", ctypes.c_int64),  # set where an index is out of bounds
    ]


@dataclass
class _Pointers:
    """Where the pointers of a step lead to, by slot. links: to which object, and how many bytes
    behind the beginning of its data. fixed: to an address that is the same in every run; nothing is
    written there. ints: what the step's integers are, at the address of their vector."""

    links: dict[int, tuple[int, int]]
    fixed: dict[int, int]
    ints: dict[int, Several[int]]


@dataclass
class _Runs:
    """What `bands` asks about steps."""

    pointers: list[_Pointers]

    def place(self, step: int, slot: int) -> bands.Place:
        """Where a pointer leads to."""
        return self.pointers[step].links.get(slot)

    def integers(self, step: int, slot: int) -> Several[int] | None:
        """The step's integers, if a pointer leads to them."""
        return self.pointers[step].ints.get(slot)


class Sequence:
    """Steps as one call, which `replay.calls` makes. Several threads may run it at once.

    wanted: which of the constants and of all that the steps make, counted as in `Step`, a run
    gives; no constants are among them. read: which of the caller's arrays are read. results: shape,
    strides in bytes and dtype of what it gives. block_bytes: size of the block. block: makes one
    for a run, where none is kept.
    """

    def __init__(self, steps: list[Step], constants: list[torch.Tensor], wanted: Several[int]):
        self.steps = steps
        self._constants = constants
        self._wanted = tuple(wanted)
        self.read = sorted({s for step in steps for s in step.sources if s >= 0})
        self._made: dict[int, _Made] = {}
        self.block_bytes = self._lay_out()
        made = [self._made[number] for number in self._wanted]
        self.results = [(m.shape, m.strides, m.dtype) for m in made]
        self.block = partial(_block, self.block_bytes) if self.block_bytes > KEPT_BYTES else None
        self._objects = {position: k for k, position in enumerate(self.read)}
        self._vectors: list[np.ndarray] = []
        self._pointers = self._point()
        self._works: list[tuple] = []  # each with whatever the addresses in it lead to

    @functools.cached_property
    def plan(self) -> list[bands.Group | bands.Alone]:
        """What runs with what: found when it runs first, as a call for some sizes may never."""
        machine = self.steps[0].program.machine if self.steps else HOST
        return bands.plan(self._sections(), _Runs(self._pointers), machine)

    def _lay_out(self) -> int:
        """Note what the steps make and where it lies; the size of the block.

        The first bytes are the programs' scratch memory.
        """
        wanted = set(self._wanted)
        last: dict[int, int] = {}
        for k, step in enumerate(self.steps):
            for s in step.sources:
                if s < 0:
                    last[-1 - s] = k
        end = -(-max((s.program.scratch_bytes for s in self.steps), default=0) // _ALIGN) * _ALIGN
        number = len(self._constants)
        free: dict[int, list[int]] = {}
        ends: dict[int, list[_Made]] = {}
        for k, step in enumerate(self.steps):
            for made in map(_made, step.program.results):
                self._made[number] = made
                if number not in wanted:
                    size = -(-max(made.bytes, 1) // _ALIGN) * _ALIGN
                    places = free.setdefault(size, [])
                    if not places:
                        places.append(end)
                        end += size
                    made.offset = places.pop()
                    ends.setdefault(last.get(number, k), []).append(made)
                number += 1
            for made in ends.pop(k, ()):
                size = -(-max(made.bytes, 1) // _ALIGN) * _ALIGN
                free[size].append(made.offset)  # type: ignore[arg-type]
        return end

    def before(
        self, row: int, made: Several[np.ndarray], work: int
    ) -> tuple[int, dict[int, np.ndarray]]:
        """Where a run stopped, at an index out of bounds: the step, of which nothing was written;
        the constants and the arrays that the steps before have made, by number. made: those that
        are wanted."""
        found = {k: c.numpy() for k, c in enumerate(self._constants)}
        found.update(zip(self._wanted, made, strict=True))
        last = len(self.read) + len(made)
        stopped = Work.from_address(work)
        stopped.flag = 0
        objects: Any = (ctypes.py_object * (last + 1)).from_address(stopped.objects)
        for number, m in self._made.items():
            if m.offset is not None:
                found[number] = m.in_block(objects[last])
        item = self.plan[row]
        assert isinstance(item, bands.Alone)
        return item.step, found

    def _point(self) -> list[_Pointers]:
        """Where the pointers of each step lead to."""
        results = {n: len(self._objects) + k for k, n in enumerate(self._wanted)}
        block = len(self._objects) + len(results)
        found = []
        number = len(self._constants)
        for step in self.steps:
            pointers = _Pointers({}, {}, {})
            found.append(pointers)
            program = step.program
            vectors = [
                np.array(v, d) for v, d in ((step.floats, float), (step.ints, np.int64)) if v
            ]
            self._vectors += vectors
            given = len(step.sources)
            leads = {}
            for slot, k in program.inputs:
                if k >= given:
                    pointers.fixed[slot] = vectors[k - given].ctypes.data
                    if step.ints and k == given + len(vectors) - 1:
                        pointers.ints[slot] = step.ints
                else:
                    leads[slot] = step.sources[k]
            for slot, address in program.fixed:
                pointers.fixed[slot] = address
            for result in program.results:
                leads[result.slot] = -1 - number
                number += 1
            for slot, source in leads.items():
                if source >= 0:
                    pointers.links[slot] = self._objects[source], 0
                elif (k := -1 - source) < len(self._constants):
                    pointers.fixed[slot] = self._constants[k].data_ptr()
                elif k in results:
                    pointers.links[slot] = results[k], 0
                else:
                    pointers.links[slot] = block, self._made[k].offset or 0
            if program.scratch_bytes:
                pointers.links[program.block] = block, 0
        return found

    def _sections(self) -> Iterator[bands.Section]:
        for k, step in enumerate(self.steps):
            program = step.program
            for section, nests in zip(program.sections, program.nests(), strict=True):
                yield k, section, nests

    def work(self) -> int:
        """The address of a new `Work`: arrays of pointers for all steps, and the tables that
        `npc_sequence` reads."""
        block_number = len(self._objects) + len(self._wanted)
        objects = (ctypes.c_void_p * (block_number + 1))()
        block = None
        if self.block_bytes and self.block is None:
            block = _block(self.block_bytes)
            objects[block_number] = id(block)
        work = Work()
        sizes = [s.program.pointers for s in self.steps]
        memory = np.zeros(sum(sizes), np.uintp)
        starts = list(accumulate(sizes, initial=0))
        bases = [memory.ctypes.data + 8 * at for at in starts]
        links: list[_Link] = []
        for at, base, step, pointers in zip(
            starts, bases, self.steps, self._pointers, strict=False
        ):
            memory[at + step.program.flag] = ctypes.addressof(work) + Work.flag.offset
            for slot, address in pointers.fixed.items():
                memory[at + slot] = address
            links += [_Link(base + 8 * slot, *link) for slot, link in pointers.links.items()]
        steps, groups = _steps(self.plan, bases)
        linked = _table(_Link, links)
        header = _Sequence(
            steps, len(steps), linked, len(linked), objects, DATA, pool.run_address()
        )
        work.objects, work.sequence = ctypes.addressof(objects), ctypes.addressof(header)
        work.rows, work.has_block = len(steps), block is not None
        self._works.append((work, objects, block, header, steps, groups, linked, memory))
        return ctypes.addressof(work)


def _steps(plan: list[bands.Group | bands.Alone], bases: list[int]) -> tuple[Any, Any]:
    """The steps of a plan as `npc_sequence` reads them, and the groups that they lead to. bases:
    where the pointers of each run lie."""
    found = [item for item in plan if isinstance(item, bands.Group)]
    groups = _table(_Group, [_group(g, bases) for g in found])
    places = (ctypes.addressof(g) for g in groups)
    steps = [
        _Step(None, next(places))
        if isinstance(item, bands.Group)
        else _Step(item.address, bases[item.step])
        for item in plan
    ]
    return _table(_Step, steps), groups


def _group(g: bands.Group, bases: list[int]) -> _Group:
    members = [_Member(m.address, bases[m.step], m.per) for m in g.members]
    return _Group(_table(_Member, members), len(members), g.parts, g.band, g.grain)


def _table(kind: Any, rows: Several[Any]) -> Any:
    """Structures as an array of C."""
    return (kind * len(rows))(*rows)


def _made(t: Any) -> _Made:
    dtype = np.dtype(str(t.dtype).removeprefix("torch."))
    strides = tuple(s * dtype.itemsize for s in t.strides)
    return _Made(tuple(t.shape), strides, dtype, t.bytes)


@functools.cache
def source() -> str:
    """The C text of `npc_sequence`."""
    text = Path(__file__).with_name("sequence.c").read_text(encoding="utf-8")
    return _FUNCTIONS + declarations(_Member, _Group, _Step, _Link, _Sequence) + text


@functools.cache
def run_address() -> int:
    """The address of `npc_sequence`."""
    library = build.load(source(), name="sequence")
    address = ctypes.cast(library.npc_sequence, ctypes.c_void_p).value
    assert address is not None
    return address
