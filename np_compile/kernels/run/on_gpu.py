"""Executables on a GPU: the words of a launch, kernels on torch's current stream, and torch's calls
in between.

Nothing waits for the device, but where an index from data may be out of bounds: then the flag is
looked at before anything is written to an argument, and at the end.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch

from ..analysis.footprint import light_on_gpu, within_bounds
from ..analysis.launches import Launches
from ..build.driver import launch, launches_of
from ..build.nvrtc import Modules
from ..ir.program import Call, Fence, Scatter
from ..target import Gpu
from . import scatter
from .execute import KEPT_BYTES, Executable, Source, _Old, _Output, _Workspace, out_of_bounds
from .private import current_device, empty_strided_cuda, raw_stream
from .sizes import launches_at

_ALIGNED = 16  # bytes
_OUT_OF_BOUNDS = "an index is out of bounds"


class _Space(_Workspace):
    """What one run at a time needs on one stream. pointers: the words that kernels take.
    host_flag: set where an index is out of bounds. counters: that kernels count in. longer:
    parameters that do not fit into the words. launches: of each section, for pointers that are
    aligned, or are not; sections: those of this run. graphs: see `Graphed`.
    """

    __slots__ = ("counters", "graphs", "host_flag", "launches", "longer", "sections", "stream")

    def __init__(self, row: Any, block: torch.Tensor | None, stream: int):
        super().__init__(row, ctypes.c_int64(0), block)
        self.stream = stream
        self.counters: torch.Tensor | None = None
        self.host_flag: torch.Tensor | None = None
        self.launches: dict[bool, list[Any]] = {}
        self.sections: list[Any] = []
        self.longer: list[torch.Tensor] = []
        self.graphs: Any = None


def modules_of(source: Source, device: torch.device) -> Modules:
    """The kernels of a program on a device."""
    assert isinstance(source.machine, Gpu)
    return Modules(source.text, device.index or 0, source.machine.name)


class OnGpu(Executable):
    """A program compiled for one GPU. Calls of it on other devices' tensors are errors.

    sizes: the values of the symbols of a program for many sizes; general: its launches.
    """

    def __init__(
        self, source: Source, eager: Callable[..., Any], device: torch.device, modules: Modules,
        sizes: Sequence[int] = (), general: Launches | None = None,
    ):  # fmt: skip
        assert source.launches is not None
        self.device = device
        self._index = device.index or 0
        self._modules = modules
        self._numbers = list(sizes)
        self._plan = source.launches
        self._general = general
        self._spaces: dict[int, list[_Space]] = {}
        self._handles: dict[bool, list[list[tuple]]] = {}
        self._checked = any(x.checks for s in self._plan.sections for x in s)
        self._conditions = source.program.conditions
        integers = source.program.integers
        self._integers = -1 if integers is None else integers.position  # of a gradient not the last
        super().__init__(source, eager, modules)
        self._vectors = {
            b.position: (slot, self._plan.words.vectors[b])
            for b, slot in source.layout.slots.items()
            if b in self._plan.words.vectors
        }

    @cached_property
    def light(self) -> bool:
        """Whether steps of it become one program: what they hand on stays in registers, or goes to
        and fro between two arrays."""
        return self.alone and not self._numbers and light_on_gpu(self.source.program)

    def _take_sizes(self, sizes: Sequence[int]) -> None:
        assert self._general is not None
        super()._take_sizes(sizes)
        self._numbers = list(sizes)
        self._plan = launches_at(self._general, dict(zip(self._layout.symbols, sizes, strict=True)))
        self._spaces = {}
        self._handles = {}
        self.__dict__.pop("_looked", None)

    def wait(self) -> None:
        """Compile the kernels. KernelsFailed if NVRTC refuses them."""
        if True not in self._handles:
            self._kernels(True)

    def kernels(self, aligned: bool) -> list[list[tuple]]:
        """The launches of each section, for pointers that are aligned, or are not: handle, blocks,
        threads, shared bytes."""
        return self._handles.get(aligned) or self._kernels(aligned)

    @property
    def alone(self) -> bool:
        """Whether it is launches and nothing else, and makes new arrays that are results."""
        return self._results is not None and not self._checked and not self._early

    @property
    def counters(self) -> int:
        """The counters that its kernels need."""
        return self._plan.counters

    @property
    def inputs(self) -> list[tuple[int, int]]:
        """The slots of its inputs, with their positions."""
        return self._inputs

    @property
    def outputs(self) -> list[_Output]:
        """The results, in their order."""
        return [self._fresh[k] for k in self._results or ()]

    def in_bounds(self, ints: Sequence[int]) -> bool:
        """Whether the indices that follow from integers are within bounds."""
        if not self._conditions:
            return True
        program = self.source.program
        assert program.integers is not None
        return within_bounds(program.conditions, program.integers, ints)

    def new_words(self, block: torch.Tensor | None, counters: torch.Tensor | None) -> Any:
        """Words that lead to all but inputs, parameters and results."""
        layout, words = self._layout, self._plan.words
        row = (ctypes.c_uint64 * words.count)()
        for slot, address in self._constants:
            row[slot] = address
        if block is not None:
            row[layout.block] = block.data_ptr()
        if counters is not None:
            row[words.counters] = counters.data_ptr()
        for k, n in enumerate(self._numbers):
            row[words.sizes + k] = n & (1 << 64) - 1
        return row

    def _kernels(self, aligned: bool) -> list[list[tuple]]:
        """The same, found out."""
        launches = [x for section in self._plan.sections for x in section]
        handles = self._modules.functions({x.name: x.shared for x in launches}, aligned)
        made = [
            [(handles[x.name], x.blocks, x.threads, x.shared) for x in section if x.blocks]
            for section in self._plan.sections
        ]
        self._handles[aligned] = made
        return made

    def run(
        self, tensors: Sequence[torch.Tensor], floats: Sequence[float], ints: Sequence[int]
    ) -> list[Any]:
        if self._conditions and not self.in_bounds(ints or tensors[self._integers].tolist()):
            raise out_of_bounds(_OUT_OF_BOUNDS)
        if current_device() != self._index:
            with torch.cuda.device(self._index):
                return self._run_here(tensors, floats, ints)
        return self._run_here(tensors, floats, ints)

    def _run_here(
        self, tensors: Sequence[torch.Tensor], floats: Sequence[float], ints: Sequence[int]
    ) -> list[Any]:
        stream = raw_stream(self._index)
        try:
            work = self._spaces[stream].pop()
        except (KeyError, IndexError):
            work = self._space(stream)
        words = work.pointers
        given = len(tensors)
        places = 0
        for slot, k in self._inputs:
            if k < given:
                address = tensors[k].data_ptr()
                words[slot] = address
                places |= address
        old = [(tensors[k], tensors[k].clone()) for k in self._early] if self._early else ()
        if floats or ints:
            self._parameters(work, given, floats, ints)
        made = []
        for o in self._fresh:
            new = empty_strided_cuda(o.shape, o.strides, o.dtype)
            words[o.slot] = new.data_ptr()
            made.append(new)
        aligned = places % _ALIGNED == 0
        sections = work.launches.get(aligned) or self._launches(work, aligned)
        work.sections = sections
        if self._results is None:
            return self._in_sections(work, tensors, floats, ints, made, old)
        for k in range(len(sections)):
            if self._section(k, work):
                raise self._out_of_bounds((), old)
        self._put_back(work)
        return made if len(made) == 1 else [made[k] for k in self._results]

    def _call(self, call: Call, tensor: Callable, held: dict, work: _Workspace) -> None:
        if isinstance(call, Scatter) and self.device.type == "cuda":
            assert isinstance(self._machine, Gpu)
            assert isinstance(work, _Space)
            x, places, values = map(tensor, call.args)
            flag = 0 if work.host_flag is None else work.host_flag.data_ptr()
            scatter.add(x, places, values, self._machine, flag)
        else:
            super()._call(call, tensor, held, work)

    def _launches(self, work: _Space, aligned: bool) -> list[Any]:
        """The launches of each section, on the words of a run."""
        argument = ctypes.addressof(work.pointers)
        made = work.launches[aligned] = [
            launches_of([(handle, argument, *rest) for handle, *rest in section])
            for section in self.kernels(aligned)
        ]
        return made

    def _section(self, k: int, work: _Workspace) -> bool:
        assert isinstance(work, _Space)
        launch(work.sections[k], work.stream)
        if k not in self._looked:
            return False
        torch.cuda.current_stream(self._index).synchronize()
        return bool(work.host_flag)

    @cached_property
    def _looked(self) -> frozenset[int]:
        """The sections after which the host waits for the flag: where kernels have looked at
        indices since it has, before something is written that does not look at the flag itself,
        and at the end."""
        sections, found, pending = self._plan.sections, set(), False
        for k, section in enumerate(sections):
            pending = pending or any(x.checks for x in section)
            step = self._between[k] if k < len(self._between) else None
            waits = step is None or (isinstance(step, Fence) and not self._looks_itself(k))
            if pending and waits:
                found.add(k)
                pending = False
        return frozenset(found)

    def _looks_itself(self, fence: int) -> bool:
        """Whether what comes after a fence is sums that look at the flag themselves."""
        after = [s for s in self._between[fence:] if not isinstance(s, Fence)]
        kernels = any(x.blocks for section in self._plan.sections[fence + 1 :] for x in section)
        return not (kernels or self._numbers) and all(
            isinstance(s, Scatter)
            and scatter.looks(s.args[0].dtype, s.args[0].shape[0])
            and self.device.type == "cuda"
            for s in after
        )

    def _space(self, stream: int) -> _Space:
        """New words, and memory for them to lead to."""
        block = counters = None
        if self._bytes:
            block = torch.empty(self._bytes, dtype=torch.uint8, device=self.device)
        if self._plan.counters:
            counters = torch.zeros(self._plan.counters, dtype=torch.int32, device=self.device)
        row = self.new_words(block, counters)
        work = _Space(row, block, stream)
        work.counters = counters
        if self._checked:  # in memory that the device writes to and the host reads
            work.host_flag = torch.zeros(1, dtype=torch.int64, device="cpu", pin_memory=True)
            row[self._layout.flag] = work.host_flag.data_ptr()
        self._take_views(work)
        return work

    def _put_back(self, work: _Workspace) -> None:
        assert isinstance(work, _Space)
        if self._bytes <= KEPT_BYTES:
            self._spaces.setdefault(work.stream, []).append(work)

    def _parameters(
        self, work: _Workspace, given: int, floats: Sequence[float], ints: Sequence[int]
    ) -> None:
        assert isinstance(work, _Space)
        work.longer = self.write_parameters(work.pointers, given, floats, ints)

    def write_parameters(
        self, row: Any, given: int, floats: Sequence[float], ints: Sequence[int]
    ) -> list[torch.Tensor]:
        """Write the vectors of parameters, which follow so many inputs, to the words; what holds
        those that are too long for them."""
        longer = []
        for numbers, code in ((floats, "d"), (ints, "q")):
            if not numbers:
                continue
            where = self._vectors.get(given)
            if where is not None:
                slot, at = where
                row[slot] = 0
                struct.pack_into(f"{len(numbers)}{code}", row, 8 * at, *numbers)
            elif given in self._slots:
                dtype = torch.float64 if code == "d" else torch.int64
                longer.append(torch.tensor(numbers, dtype=dtype).to(self.device))
                row[self._slots[given]] = longer[-1].data_ptr()
            given += 1
        return longer

    def _out_of_bounds(self, tensors: Sequence[torch.Tensor], old: Sequence[_Old]) -> IndexError:
        """The error of an index out of bounds; what was written is undone."""
        for t, values in old:
            t.copy_(values)
        return out_of_bounds(_OUT_OF_BOUNDS)

    def entry(self) -> None:
        """None: a sequence of runs is C, on the CPU."""
        return None
