"""Several runs of programs as one call: their pointers and parameters are laid out beforehand.

Between a run and the next there is no Python then. Arrays that one program makes for another lie in
one block, where those that are not needed any more give place to later ones.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from collections.abc import Sequence as Several
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import build, pool
from .execute import KEPT_BYTES, Entry

_empty = np.empty
_num_threads = torch.get_num_threads
_ALIGN = 64
_DATA = object.__basicsize__  # where in an array object the address of its data is


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

    def maker(self) -> Callable[[], np.ndarray]:
        """What makes a new array."""
        if self._contiguous():
            return partial(_empty, self.shape, self.dtype)

        def strided() -> np.ndarray:
            memory = np.empty(self.bytes, np.uint8)
            return np.ndarray(self.shape, self.dtype, memory, strides=self.strides)

        return strided

    def in_block(self, block: np.ndarray) -> np.ndarray:
        """The array in the block."""
        assert self.offset is not None
        return np.ndarray(self.shape, self.dtype, block, self.offset, self.strides)

    def _contiguous(self) -> bool:
        dense = self.dtype.itemsize
        for extent, stride in zip(self.shape[::-1], self.strides[::-1], strict=True):
            if extent != 1 and stride != dense:
                return False
            dense *= extent
        return True


def _block(size: int) -> np.ndarray:
    """Memory that begins at a cache line."""
    memory = np.empty(size + _ALIGN, np.uint8)
    return memory[-memory.ctypes.data % _ALIGN :][:size]


@dataclass
class Stopped:
    """A run that met an index out of bounds. step: where; nothing of that step was written. made:
    the constants and the arrays that the steps before have made, by number."""

    step: int
    made: dict[int, np.ndarray]


@dataclass
class _Workspace:
    """What one run at a time needs. held: whatever the addresses in it lead to."""

    objects: Any
    address: int
    count: int  # of sections
    block: np.ndarray | None
    held: list[Any]


class Sequence:
    """Steps as one call. Several threads may run it at once.

    wanted: which of the constants and of all that the steps make, counted as in `Step`, a run
    gives; no constants are among them. block_bytes: size of the block.
    """

    def __init__(self, steps: list[Step], constants: list[torch.Tensor], wanted: Several[int]):
        self.steps = steps
        self._constants = constants
        self._wanted = tuple(wanted)
        self._read = sorted({s for step in steps for s in step.sources if s >= 0})
        self._made: dict[int, _Made] = {}
        self.block_bytes = self._lay_out()
        self._makers = [self._made[number].maker() for number in self._wanted]
        self._free: list[_Workspace] = []
        self._call = _library().npc_sequence

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

    def run(self, args: Several[Any]) -> list[np.ndarray] | Stopped:
        """Run all steps on the caller's arrays: the wanted arrays, each a new one."""
        try:
            work = self._free.pop()
        except IndexError:
            work = self._workspace()
        objects = work.objects
        k = 0
        for position in self._read:
            objects[k] = id(args[position])
            k += 1
        results = []
        for make in self._makers:
            a = make()
            results.append(a)
            objects[k] = id(a)
            k += 1
        block = work.block
        if self.block_bytes and block is None:
            block = _block(self.block_bytes)
            objects[k] = id(block)
        done = self._call(work.address, _num_threads())
        if done < work.count:
            return Stopped(self._step_of(done), self._all_made(results, block))
        self._free.append(work)
        return results

    def _step_of(self, section: int) -> int:
        for k, step in enumerate(self.steps):
            section -= len(step.program.sections)
            if section < 0:
                return k
        raise AssertionError("no such section")

    def _all_made(
        self, results: list[np.ndarray], block: np.ndarray | None
    ) -> dict[int, np.ndarray]:
        found = {k: c.numpy() for k, c in enumerate(self._constants)}
        found.update(zip(self._wanted, results, strict=True))
        for number, m in self._made.items():
            if m.offset is not None and block is not None:
                found[number] = m.in_block(block)
        return found

    def _workspace(self) -> _Workspace:
        """Arrays of pointers for all steps, and the tables that `npc_sequence` reads."""
        numbers = {position: k for k, position in enumerate(self._read)}
        results = {number: len(numbers) + k for k, number in enumerate(self._wanted)}
        block_number = len(numbers) + len(results)
        objects = (ctypes.c_void_p * (block_number + 1))()
        keep = 0 < self.block_bytes <= KEPT_BYTES
        block = _block(self.block_bytes) if keep else None
        if block is not None:
            objects[block_number] = id(block)
        flag = np.zeros(1, np.int64)
        width = [s.program.pointers for s in self.steps]
        memory = np.zeros(sum(width), np.uintp)
        base = memory.ctypes.data
        table: list[tuple[int, int]] = []
        links: list[tuple[int, int, int]] = []
        held: list[Any] = []
        at, number = 0, len(self._constants)

        def link(slot: int, source: int) -> None:
            if source >= 0:
                links.append((base + 8 * slot, numbers[source], 0))
            elif (k := -1 - source) < len(self._constants):
                memory[slot] = self._constants[k].data_ptr()
            elif k in results:
                links.append((base + 8 * slot, results[k], 0))
            else:
                links.append((base + 8 * slot, block_number, self._made[k].offset or 0))

        for step, size in zip(self.steps, width, strict=True):
            program = step.program
            table += [(section, base + 8 * at) for section in program.sections]
            vectors = [
                np.array(v, d) for v, d in ((step.floats, float), (step.ints, np.int64)) if v
            ]
            held += vectors
            given = len(step.sources)
            for slot, k in program.inputs:
                if k < given:
                    link(at + slot, step.sources[k])
                else:
                    memory[at + slot] = vectors[k - given].ctypes.data
            for slot, address in program.fixed:
                memory[at + slot] = address
            for result in program.results:
                link(at + result.slot, -1 - number)
                number += 1
            memory[at + program.flag] = flag.ctypes.data
            if program.scratch_bytes:
                links.append((base + 8 * (at + program.block), block_number, 0))
            at += size
        steps = np.array(table, np.uintp).reshape(-1, 2)
        linked = np.array(links, np.uintp).reshape(-1, 3)
        header = np.array(
            [
                steps.ctypes.data, len(steps), linked.ctypes.data, len(linked),
                ctypes.addressof(objects), _DATA, pool.run_address(),
            ],
            np.uintp,
        )  # fmt: skip
        held += [steps, linked, header, memory, flag]
        return _Workspace(objects, header.ctypes.data, len(steps), block, held)


def _made(t: Any) -> _Made:
    dtype = np.dtype(str(t.dtype).removeprefix("torch."))
    strides = tuple(s * dtype.itemsize for s in t.strides)
    return _Made(tuple(t.shape), strides, dtype, t.bytes)


@functools.cache
def _library() -> ctypes.CDLL:
    text = Path(__file__).with_name("sequence.c").read_text(encoding="utf-8")
    library = build.load(text, name="sequence")
    library.npc_sequence.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.npc_sequence.restype = ctypes.c_long
    return library


@functools.cache
def available() -> bool:
    """Whether sequences can be run: NumPy keeps the address of an array's data where it always has,
    as the first field after the object's head, and the C compiler does its work."""
    for a in (np.zeros(3), np.zeros((4, 5))[1:, ::2], np.array(1.0), np.zeros(0, np.int8)):
        found = ctypes.c_void_p.from_address(id(a) + _DATA).value
        if found != a.__array_interface__["data"][0]:
            return False
    try:
        _library()
    except (build.CompileFailed, build.NoCompiler):
        return False
    return True
