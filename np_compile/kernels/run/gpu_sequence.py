"""Sequences on a GPU: the launches of several runs of programs, laid out ahead, as one CUDA graph.

Words of all steps are filled in once; those that lead to arguments and results are written anew
where an address has changed. Launches that come with the same addresses again are captured as a
graph, which the host starts at once. Arrays that one program makes for another lie in one block,
which torch's allocator has between two runs if it is large.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict, deque
from collections.abc import Callable
from collections.abc import Sequence as Several
from ctypes import POINTER, c_int64, c_void_p
from dataclasses import dataclass, field
from typing import Any

import torch

from ..build.driver import Graph, Launch, launch, launches_of
from .execute import KEPT_BYTES, _Output
from .on_gpu import OnGpu
from .private import current_device, empty_strided_cuda, raw_stream

_ALIGN = 256  # bytes
_FROM = 3  # fewest launches of a graph
_MOST = 4096  # most launches of one
_GRAPHS = 4  # graphs of one work, each for addresses of its own


@dataclass
class Step:
    """A run of a program. sources: where its tensors come from, as in `sequence.Step`."""

    program: OnGpu
    sources: tuple[int, ...]
    floats: Several[float]
    ints: Several[int]


@dataclass
class _Work:
    """What one run at a time needs on one stream. rows: the words of each step; held: parameters.
    links: of each object, the places of its address among all words, and how far behind it they
    lead; the block is the last one. block: if it is kept. launches: for pointers that are aligned,
    or are not. graphs: by addresses; seen: the last addresses, which may come again, also by
    turns."""

    rows: list[Any]
    links: list[list[tuple[Any, int, int]]]
    block: torch.Tensor | None
    counters: torch.Tensor | None
    held: list[torch.Tensor] = field(default_factory=list)
    addresses: tuple[int, ...] = ()
    aligned: bool | None = None
    launches: Any = ()
    graphs: OrderedDict[tuple[int, ...], Graph] = field(default_factory=OrderedDict)
    seen: deque[tuple[int, ...]] = field(default_factory=lambda: deque(maxlen=_GRAPHS))


class GpuLink(ctypes.Structure):
    """A word that is the address of an object."""

    _fields_ = (("slot", c_void_p), ("object", c_int64))


class GpuWork(ctypes.Structure):
    """What one run at a time needs on one stream, for `replay/calls.c`."""

    _fields_ = [
        ("next", c_void_p),
        ("stream", c_int64),
        ("launches", POINTER(Launch)),
        ("count", c_int64),
        ("links", POINTER(GpuLink)),
        ("linked", c_int64),
    ]


class GpuSequence:
    """Steps as one call. Several threads may run it at once.

    wanted: numbers of the constants and of all that the steps make, which a run gives; no constants
    are among them. graphs: whether they may be used. block_bytes: of the memory between the steps.
    read: which of the caller's tensors are read. results: shape, strides and dtype of what it
    gives.
    """

    def __init__(
        self, steps: list[Step], constants: list[torch.Tensor], wanted: Several[int],
        graphs: Callable[[], bool],
    ):  # fmt: skip
        self.steps = steps
        self._graphs = graphs
        self._constants = constants
        self._wanted = tuple(wanted)
        self._index = steps[0].program.device.index or 0
        self.device = steps[0].program.device
        self.read = sorted({s for step in steps for s in step.sources if s >= 0})
        self._outputs: list[tuple[int, _Output]] = []
        self.block_bytes = self._lay_out()
        self._aligned = all(c.data_ptr() % 16 == 0 for c in constants)
        self._counters = max(step.program.counters for step in steps)
        self._free: dict[int, list[_Work]] = {}
        self._works: list[tuple] = []  # each with whatever the addresses in it lead to

    @property
    def results(self) -> list[tuple[tuple[int, ...], tuple[int, ...], torch.dtype]]:
        return [(o.shape, o.strides, o.dtype) for _, o in self._outputs]

    @property
    def few(self) -> bool:
        """Whether a run is launches alone, too few for a graph, on memory that is kept."""
        count = sum(len(k) for step in self.steps for k in step.program.kernels(True))
        return count < _FROM and self.block_bytes <= KEPT_BYTES and self._aligned

    def work(self) -> int:
        """The address of a new `GpuWork` for torch's current stream, where all addresses are
        aligned."""
        work = self._work()
        self._align(work, True)
        if work.block is not None:
            _lead(work.links[-1], work.block.data_ptr())
        links = [
            GpuLink(ctypes.addressof(row) + 8 * slot, k)
            for k, places in enumerate(work.links[:-1])
            for row, slot, _ in places
        ]
        table = (GpuLink * len(links))(*links)
        stream = raw_stream(self._index)
        made = GpuWork(None, stream, work.launches, len(work.launches), table, len(links))
        self._works.append((made, work, table))
        return ctypes.addressof(made)

    def _lay_out(self) -> int:
        """Note what the steps make, and where what is not wanted lies; the size of the block, whose
        first bytes are the programs' own."""
        last: dict[int, int] = {}
        for k, step in enumerate(self.steps):
            last.update((-1 - s, k) for s in step.sources if s < 0)
        end = _aligned(max(step.program.scratch_bytes for step in self.steps))
        number = len(self._constants)
        self._offsets: dict[int, int] = {}
        found: dict[int, _Output] = {}
        free: dict[int, list[int]] = {}
        ends: dict[int, list[tuple[int, int]]] = {}
        self._firsts: list[int] = []
        for k, step in enumerate(self.steps):
            self._firsts.append(number)
            for o in step.program.outputs:
                found[number] = o
                if number not in self._wanted:
                    size = _aligned(max(o.bytes, 1))
                    places = free.setdefault(size, [])
                    if not places:
                        places.append(end)
                        end += size
                    self._offsets[number] = places.pop()
                    ends.setdefault(last.get(number, k), []).append((size, self._offsets[number]))
                number += 1
            for size, offset in ends.pop(k, ()):
                free[size].append(offset)
        self._outputs = [(n, found[n]) for n in self._wanted]
        return end

    def run(self, tensors: Several[Any]) -> tuple[int, dict[int, torch.Tensor]]:
        """How many steps there are, all of which run on these tensors; what they make that is
        wanted, by number."""
        if current_device() != self._index:
            with torch.cuda.device(self._index):
                return self._run_here(tensors)
        return self._run_here(tensors)

    def _run_here(self, tensors: Several[Any]) -> tuple[int, dict[int, torch.Tensor]]:
        stream = raw_stream(self._index)
        try:
            work = self._free[stream].pop()
        except (KeyError, IndexError):
            work = self._work()
        places = [tensors[k].data_ptr() for k in self.read]
        made = {}
        for number, o in self._outputs:
            t = made[number] = empty_strided_cuda(o.shape, o.strides, o.dtype)
            places.append(t.data_ptr())
        block = work.block
        if block is None and self.block_bytes:
            block = self._block()
        places.append(0 if block is None else block.data_ptr())
        addresses = tuple(places)
        graph = work.graphs.get(addresses)
        if graph is not None:
            graph.start(stream)
        else:
            if addresses != work.addresses:
                self._point(work, addresses)
            many = _FROM <= len(work.launches) <= _MOST
            again = many and addresses in work.seen and self._graphs()
            if again and not torch.cuda.is_current_stream_capturing():
                self._captured(work, addresses).start(stream)
            else:
                work.seen.append(addresses)
                launch(work.launches, stream)
        self._free.setdefault(stream, []).append(work)
        return len(self.steps), made

    def _block(self) -> torch.Tensor:
        return torch.empty(self.block_bytes, dtype=torch.uint8, device=self.device)

    def _work(self) -> _Work:
        """Words for all steps."""
        block = self._block() if 0 < self.block_bytes <= KEPT_BYTES else None
        counters = None
        if self._counters:
            counters = torch.zeros(self._counters, dtype=torch.int32, device=self.device)
        objects = {("read", p): k for k, p in enumerate(self.read)}
        objects |= {("made", n): len(self.read) + k for k, n in enumerate(self._wanted)}
        work = _Work([], [[] for _ in (*objects, "block")], block, counters)
        for step, first in zip(self.steps, self._firsts, strict=True):
            row = step.program.new_words(None, counters)
            if self.block_bytes:
                work.links[-1].append((row, step.program.source.layout.block, 0))
            given = len(step.sources)
            work.held += step.program.write_parameters(row, given, step.floats, step.ints)
            leads = [
                (slot, step.sources[k]) for slot, k in step.program.inputs if k < len(step.sources)
            ]
            leads += [(o.slot, -1 - first - k) for k, o in enumerate(step.program.outputs)]
            for slot, source in leads:
                number = -1 - source
                if source >= 0:
                    work.links[objects["read", source]].append((row, slot, 0))
                elif number < len(self._constants):
                    row[slot] = self._constants[number].data_ptr()
                elif ("made", number) in objects:
                    work.links[objects["made", number]].append((row, slot, 0))
                else:
                    work.links[-1].append((row, slot, self._offsets[number]))
            work.rows.append(row)
        return work

    def _point(self, work: _Work, addresses: tuple[int, ...]) -> None:
        """Have the words lead to these addresses."""
        aligned = True
        for address, links in zip(addresses, work.links, strict=True):
            aligned = aligned and address % 16 == 0
            _lead(links, address)
        work.addresses = addresses
        self._align(work, aligned and self._aligned)

    def _align(self, work: _Work, aligned: bool) -> None:
        """Have the launches be those for pointers that are aligned, or are not."""
        if aligned is work.aligned:
            return
        work.aligned = aligned
        work.launches = launches_of(
            [
                (handle, ctypes.addressof(row), *rest)
                for step, row in zip(self.steps, work.rows, strict=True)
                for section in step.program.kernels(aligned)
                for handle, *rest in section
            ]
        )

    def _captured(self, work: _Work, addresses: tuple[int, ...]) -> Graph:
        """The launches as a graph."""
        graph = Graph(work.launches)
        work.graphs[addresses] = graph
        if len(work.graphs) > _GRAPHS:
            work.graphs.popitem(last=False)
        return graph


def _lead(links: list[tuple[Any, int, int]], address: int) -> None:
    for row, slot, offset in links:
        row[slot] = address + offset


def _aligned(n: int) -> int:
    return -(-n // _ALIGN) * _ALIGN
