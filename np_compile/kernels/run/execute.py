"""Executables: pointers to arguments and results, the C, and torch's calls in between."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from .. import build
from ..analysis.footprint import Footprint, light
from ..analysis.launches import Launches
from ..analysis.memory import Layout
from ..ir.dtypes import DTYPES
from ..ir.program import Buffer, Call, Fence, Interface, Product, Program, Store, Tensor, accesses
from ..target import Target
from . import gemm, pool
from .private import DATA, empty_strided


@dataclass
class Source:
    """A program's text and what its run needs to know. sections: of each its nests, if they may run
    in parts, which takes a while to tell. launches: of a program for a GPU. seconds: for making it,
    by phase."""

    program: Program
    interface: Interface
    layout: Layout
    text: str
    sections: Callable[[], list[list[Footprint] | None]]
    machine: Target
    launches: Launches | None = None
    seconds: dict[str, float] = field(default_factory=dict)


_num_threads = torch.get_num_threads
_LARGE = 1 << 22  # bytes of an array from which the system's large pages matter
KEPT_BYTES = 1 << 26  # a larger scratch block is given back after each run


class _Workspace:
    """What one run at a time needs: the array of pointers, the parameters, the scratch block, and
    the arguments of calls that lie in it."""

    __slots__ = ("arrays", "block", "flag", "floats", "ints", "pointers", "views")

    def __init__(self, pointers: Any, flag: ctypes.c_int64, block: torch.Tensor | None):
        self.pointers = pointers
        self.flag = flag  # kept here, as `pointers` leads to it
        self.block = block
        self.views: dict[Tensor, torch.Tensor] = {}
        self.arrays: dict[Tensor, np.ndarray] = {}  # the same, of stores
        self.floats: Any = None
        self.ints: Any = None


@dataclass(frozen=True)
class _Output:
    """An output buffer: its slot, and the layout of the tensor that is made for it."""

    slot: int
    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    bytes: int

    def new(self) -> torch.Tensor:
        """A new tensor."""
        if self.bytes >= _LARGE:
            return self.large()
        made: torch.Tensor = empty_strided(self.shape, self.strides, self.dtype)
        return made

    def large(self) -> torch.Tensor:
        """A new tensor, in memory of NumPy's."""
        return _block(self.bytes).view(self.dtype).as_strided(self.shape, self.strides)


@dataclass(frozen=True)
class Entry:
    """How to run a program without an `Executable`: the addresses of its sections, which take an
    array of so many pointers; what gives, of each section, the nests that it consists of, if they
    may run in parts, with the addresses of their functions; the slots of its inputs among the
    pointers, with their positions among tensors and parameters; the pointers that are always the
    same; the results in their order; the machine that it was made for."""

    sections: list[int]
    nests: Callable[[], list[list[tuple[int, Footprint]] | None]]
    pointers: int
    inputs: list[tuple[int, int]]
    fixed: list[tuple[int, int]]
    results: list[_Output]
    block: int
    flag: int
    scratch_bytes: int
    machine: Target


_Old = tuple[torch.Tensor, torch.Tensor]  # a tensor, and what was in it


def _written_early(program: Program) -> list[int]:
    """Positions of the inputs that a program writes to before it has looked at all its indices:
    `i += 1; x[i] = 0`."""
    fences = [k for k, step in enumerate(program.steps) if isinstance(step, Fence)]
    before = program.steps[: fences[-1]] if fences else []
    written = {b for s in before if not isinstance(s, Fence) for b in accesses(s)[1]}
    return sorted(b.position for b in written if b.kind == "input")


def size_of(b: Buffer) -> int:
    """Bytes of a buffer."""
    return b.size * DTYPES[b.dtype].size


def between(program: Program) -> list[Any]:
    """The steps of a program that are no kernels."""
    return [s for s in program.steps if isinstance(s, (Call, Fence)) and not isinstance(s, Product)]


def passed_to(steps: Sequence[Any]) -> list[Tensor]:
    """The arrays among the arguments of calls."""
    calls = (s for s in steps if isinstance(s, Call))
    return [x for s in calls for x in _tensors((s.args, *s.kwargs.values()))]


def _block(size: int) -> torch.Tensor:
    """Memory of that many bytes. NumPy asks the system for large pages, torch does not: the first
    touch of 64 MB takes a fifth of the time."""
    if size < _LARGE:
        return torch.empty(size, dtype=torch.uint8)
    return torch.from_numpy(np.empty(size, np.uint8))


def libraries_of(source: Source, waits: bool) -> build.Libraries:
    """What a program needs. waits: see `Libraries`."""
    products = [(gemm.source(dtype), f"gemm_{dtype}") for dtype in source.layout.libraries]
    return build.Libraries([(source.text, "program"), (pool.source(), "pool"), *products], waits)


def out_of_bounds(text: str) -> IndexError:
    """The error of a program that has written nothing, or has undone it."""
    error = IndexError(text)
    error.undone = True  # type: ignore[attr-defined]
    return error


class Executable:
    """A compiled program: called with the graph's inputs, gives its outputs.

    Several threads may run it at once: each takes a workspace from the list of free ones.
    libraries: the program's own and others, which may be on their way: see `libraries_of`. sizes:
    the values of the symbols of a program for many sizes.

    Errors: IndexError, for an index array with a value out of bounds; nothing is written then.
    """

    device = torch.device("cpu")

    def __init__(
        self, source: Source, eager: Callable[..., Any], libraries: Any,
        sizes: Sequence[int] = (),
    ):  # fmt: skip
        self._source: Source | None = source
        self._make: Callable[[], Source] | None = None  # where it has not been needed yet
        self._eager = eager
        layout = self._layout = source.layout
        self._interface = source.interface
        self._machine = source.machine
        self._libraries = libraries
        self._fixed: list[tuple[int, int]] = []
        self._sections: list[Any] = []
        self._sizes = (ctypes.c_int64 * len(sizes))(*sizes)
        self._pointers = ctypes.c_void_p * layout.pointers
        self._bytes = layout.size + layout.partials
        t = source.interface
        used = layout.slots
        self._inputs = [(used[b], k) for k, b in enumerate(t.inputs) if b is not None and b in used]
        self._slots = {k: slot for slot, k in self._inputs}
        self._constants = [
            (slot, t.constants[b.position].data_ptr())
            for b, slot in used.items()
            if b.kind == "constant"
        ]
        self._between = between(source.program)
        self._calls = [s for s in self._between if isinstance(s, Call)]
        self._passed = passed_to(self._between)
        self._outputs = t.outputs
        # Where in the block calls find what they are passed, and its bytes.
        self._parts = {b: (n, size_of(b)) for b, n in layout.offsets.items()}
        seen = (*self._passed, *(x for x in t.outputs if isinstance(x, Tensor)))
        self._last = max((x.buffer.position for x in seen if x.buffer.kind == "input"), default=-1)
        made = {b for s in self._calls if s.strides for b in s.writes}
        whole = {x.buffer: x for x in t.outputs if isinstance(x, Tensor) and _is_whole(x)}
        named = [x.buffer for x in t.outputs if isinstance(x, Tensor)]
        self._fresh = [
            _Output(slot, b, x.shape, x.strides, x.dtype, size_of(b))
            if (x := whole.get(b)) is not None and named.count(b) == 1
            else _Output(
                slot, b, (b.size,), (1,), getattr(torch, DTYPES[b.dtype].torch), size_of(b)
            )
            for b, slot in used.items()
            if b.kind == "output" and b not in made
        ]
        fresh = [o.buffer for o in self._fresh if o.buffer in whole and named.count(o.buffer) == 1]
        self.whole = frozenset(fresh)  # of the arrays that it makes, those that are a result
        # Where each result is one fresh tensor: which of them. Else `_tensor` makes the results.
        self._results = (
            [fresh.index(b) for b in named]
            if len(self._fresh) == len(fresh) == len(t.outputs) and not self._calls
            else None
        )
        self._free: list[_Workspace] = []
        self._early = _written_early(source.program)
        if libraries.ready:
            self.wait()

    @property
    def source(self) -> Source:
        """What it was made of."""
        if self._source is None:
            assert self._make is not None
            self._source = self._make()
        return self._source

    @property
    def places(self) -> list[int] | None:
        """Of each array that it makes, which of its results that is; None where it does more than
        to run kernels that make arrays."""
        results = self._results
        if self._early or results is None:
            return None
        return [results.index(k) for k in range(len(self._fresh))]

    @property
    def fresh(self) -> list[_Output]:
        """The arrays that it makes."""
        return self._fresh

    @cached_property
    def fresh_arrays(self) -> list[tuple[int, np.dtype, int]]:
        """Of each array that it makes the slot, the dtype, and bytes of an element."""
        dtypes = [np.dtype(str(o.dtype).removeprefix("torch.")) for o in self._fresh]
        return [(o.slot, d, d.itemsize) for o, d in zip(self._fresh, dtypes, strict=True)]

    @property
    def order(self) -> list[int]:
        """Which of the arrays that it makes each result is, of one that has `places`."""
        assert self._results is not None
        return self._results

    @property
    def layouts(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]] | None:
        """Shape and strides of its results; None where some are no arrays that its kernels make."""
        if self._results is None:
            return None
        return [(self._fresh[k].shape, self._fresh[k].strides) for k in self._results]

    def at_sizes(
        self, make: Callable[[], Source], eager: Callable[..., Any], sizes: Sequence[int],
        results: Sequence[tuple[tuple[int, ...], tuple[int, ...], int]], scratch: int,
        calls: Sequence[Any] | None,
    ) -> Executable | None:  # fmt: skip
        """The executable for other sizes; None where its results lie in memory in another way.
        make: its source. results: shape, strides and bytes of each array that it makes. scratch:
        bytes of the block. calls: see `calls_of`, None of one that has `places`."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._fresh = []
        for o, (shape, strides, size) in zip(self._fresh, results, strict=True):
            if not fills(shape, strides, o.dtype.itemsize, size):
                return None
            made._fresh.append(_Output(o.slot, o.buffer, shape, strides, o.dtype, size))
        made._source, made._make, made._eager = None, make, eager
        made._bytes = scratch
        if calls is not None:
            made._between, made._passed, made._outputs, made._parts = calls
            made._calls = [s for s in made._between if isinstance(s, Call)]
        made._take_sizes(sizes)
        if self._sections and self._fixed and sizes:  # the same ones
            made._sections = self._sections
            made._fixed = [*self._fixed[:-1], (self._layout.sizes, ctypes.addressof(made._sizes))]
        elif made._libraries.ready:
            made.wait()
        return made

    def with_sizes(
        self, eager: Callable[..., Any], sizes: Sequence[int], results: Sequence[tuple],
        scratch: int,
    ) -> RunForSizes:  # fmt: skip
        """As `at_sizes`, for the runs of one call, where its results are known to lie in memory as
        they do here; the kernels are compiled."""
        return RunForSizes(self, eager, sizes, results, scratch)

    def _take_sizes(self, sizes: Sequence[int]) -> None:
        """Go by other values of the symbols from now on, of a copy."""
        self._sizes = (ctypes.c_int64 * len(sizes))(*sizes)
        self._free = []
        self._sections = []
        self.__dict__.pop("light", None)

    @property
    def ready(self) -> bool:
        """Whether the kernels are compiled, so that a run waits for nothing."""
        return self._libraries.ready

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of the compile by phase; of the C compiler once it is known to be done."""
        return {**self.source.seconds, "compiler": self._libraries.took}

    @property
    def seconds_left(self) -> float:
        """How long that will take, roughly."""
        return self._libraries.seconds_left

    def wait(self) -> None:
        """Wait until the kernels are compiled. CompileFailed if they cannot be."""
        if self._sections:
            return
        self.library = self._libraries.get()[0]
        self._run = ctypes.c_void_p(pool.run_address())
        found = [getattr(self.library, f"section_{k}") for k in range(len(self._between) + 1)]
        for f in found:
            f.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
            f.restype = ctypes.c_int
        known = self._layout.libraries.items()
        self._fixed = [*self._constants, *((slot, gemm.address(dtype)) for dtype, slot in known)]
        if self._sizes:
            slot = self._layout.sizes
            self._fixed.append((slot, ctypes.addressof(self._sizes)))
        self._sections = found

    def __call__(self, *tensors: torch.Tensor) -> list[Any]:
        return self.run(tensors, (), ())

    def run(
        self, tensors: Sequence[torch.Tensor], floats: Sequence[float], ints: Sequence[int]
    ) -> list[Any]:
        """As a call with `tensors`, then a vector of the floats and one of the integers.

        A vector without elements is not among the graph's inputs.
        """
        try:
            work = self._free.pop()
        except IndexError:
            work = self._workspace()
        pointers = work.pointers
        old = [(tensors[k], tensors[k].clone()) for k in self._early] if self._early else ()
        given = len(tensors)
        for slot, k in self._inputs:
            if k < given:
                pointers[slot] = tensors[k].data_ptr()
        if floats or ints:
            self._parameters(work, given, floats, ints)
        made = []
        for o in self._fresh:
            new = o.large() if o.bytes >= _LARGE else empty_strided(o.shape, o.strides, o.dtype)
            pointers[o.slot] = new.data_ptr()
            made.append(new)
        results = self._results
        if results is None:
            return self._in_sections(work, tensors, floats, ints, made, old)
        threads = _num_threads()
        for section in self._sections:
            if section(pointers, threads, self._run):
                raise self._out_of_bounds(_with_vectors(tensors, floats, ints, self.device), old)
        self._put_back(work)
        return made if len(made) == 1 else [made[k] for k in results]

    def _workspace(self) -> _Workspace:
        self.wait()
        layout = self._layout
        pointers = self._pointers()
        flag = ctypes.c_int64(0)
        pointers[layout.flag] = ctypes.addressof(flag)
        for slot, address in self._fixed:
            pointers[slot] = address
        block = None
        if self._bytes:
            block = _block(self._bytes)
            pointers[layout.block] = block.data_ptr()
        work = _Workspace(pointers, flag, block)
        self._take_views(work)
        for s in self._calls:
            if isinstance(s, Store):
                work.arrays.update((x, work.views[x].numpy()) for x in s.args if x in work.views)
        return work

    def _take_views(self, work: _Workspace) -> None:
        """The arguments of calls that lie in the block."""
        for x in self._passed:
            if x.buffer in self._parts:
                assert work.block is not None
                work.views[x] = _view(self._in_block(x.buffer, work.block), x)

    def _in_block(self, b: Buffer, block: torch.Tensor) -> torch.Tensor:
        """A temporary's memory."""
        offset, size = self._parts[b]
        return block[offset : offset + size].view(getattr(torch, DTYPES[b.dtype].torch))

    def _put_back(self, work: _Workspace) -> None:
        if self._bytes <= KEPT_BYTES:
            self._free.append(work)

    def _parameters(
        self, work: _Workspace, given: int, floats: Sequence[float], ints: Sequence[int]
    ) -> None:
        """Write the vectors of parameters, and where they lie."""
        slots = self._slots
        if floats:
            vector = work.floats
            if vector is None:
                vector = work.floats = (ctypes.c_double * len(floats))()
            vector[:] = floats
            if given in slots:
                work.pointers[slots[given]] = ctypes.addressof(vector)
            given += 1
        if ints:
            vector = work.ints
            if vector is None:
                vector = work.ints = (ctypes.c_int64 * len(ints))()
            vector[:] = ints
            if given in slots:
                work.pointers[slots[given]] = ctypes.addressof(vector)

    def _in_sections(
        self, work: _Workspace, given: Sequence[torch.Tensor], floats: Sequence[float],
        ints: Sequence[int], made: list[torch.Tensor], old: Sequence[_Old],
    ) -> list[Any]:  # fmt: skip
        """The rest of a run that calls torch between kernels, or gives views."""
        tensors = given
        if self._last >= len(given):
            tensors = _with_vectors(given, floats, ints, self.device)
        held = {o.buffer: x for o, x in zip(self._fresh, made, strict=True)}
        views = work.views

        def tensor(x: Tensor) -> torch.Tensor:
            view = views.get(x)
            return self._tensor(x, tensors, held) if view is None else view

        def array(x: Tensor) -> np.ndarray:
            found = work.arrays.get(x)
            return tensor(x).detach().numpy() if found is None else found

        for k in range(len(self._between) + 1):
            if self._section(k, work):
                raise self._out_of_bounds(_with_vectors(given, floats, ints, self.device), old)
            step = self._between[k] if k < len(self._between) else None
            if isinstance(step, Store):
                into, given_array = map(array, step.args)
                step.target(into, given_array)
            elif isinstance(step, Call):
                self._call(step, tensor, held, work)
        results = [
            self._tensor(x, tensors, held) if isinstance(x, Tensor) else x for x in self._outputs
        ]
        self._put_back(work)
        return results

    def _section(self, k: int, work: _Workspace) -> bool:
        """Run a section; whether an index was out of bounds."""
        return bool(self._sections[k](work.pointers, _num_threads(), self._run))

    def _out_of_bounds(self, tensors: Sequence[torch.Tensor], old: Sequence[_Old]) -> IndexError:
        """The error of an index out of bounds, in NumPy's words; what was written is undone."""
        for t, values in old:
            t.copy_(values)
        return _error_of_bounds(self._eager, tensors)

    def entry(self) -> Entry | None:
        """The addresses to run it by; None where it calls torch in between, gives views, or may
        have to undo what it has written."""
        if self._results is None or self._early:
            return None
        self.wait()
        layout = self._layout
        sections = [ctypes.cast(f, ctypes.c_void_p).value or 0 for f in self._sections]
        results = [self._fresh[k] for k in self._results]
        return Entry(
            sections, self._nests, layout.pointers, self._inputs, self._fixed, results,
            layout.block, layout.flag, self._bytes, self._machine,
        )  # fmt: skip

    def _nests(self) -> list[list[tuple[int, Footprint]] | None]:
        """Of each section the functions of its nests, where they may run in parts."""
        sections = self.source.sections()
        count = sum(len(nests or ()) for nests in sections)
        table = iter((ctypes.c_void_p * count).in_dll(self.library, "nests") if count else ())
        return [
            None if nests is None else [(next(table) or 0, found) for found in nests]
            for nests in sections
        ]

    @cached_property
    def light(self) -> bool:
        """Whether it does little to each of many elements, and nothing else."""
        return light(self.source.program, self.source.sections)

    @property
    def notes(self) -> list[str]:
        """Decisions that a user may want to know: what was not fused, what torch runs, and why."""
        program = self.source.program
        calls = [
            f"{s.by} runs {s.name}: {s.why}" + (f"\n  at {s.line}" if s.line else "")
            for s in self._between
            if isinstance(s, Call)
        ]
        return [*dict.fromkeys(program.notes), *calls]

    @property
    def scratch_bytes(self) -> int:
        """Memory beside arguments and results that a run of the kernels takes."""
        return self._bytes

    def __str__(self) -> str:
        """The loops, the decisions, the memory, and the C."""
        notes = "".join(f"/* {note} */\n" for note in self.notes)
        return (
            f"/* loops\n{self.source.program}\n*/\n{notes}"
            f"/* scratch memory: {self.scratch_bytes} bytes */\n{self.source.text}\n"
        )

    def _tensor(self, x: Tensor, inputs: Sequence[torch.Tensor], held: dict) -> torch.Tensor:
        """An array that does not lie in the block."""
        b = x.buffer
        if b.kind == "input":
            base = inputs[b.position]
            if x.shape == tuple(base.shape) and x.strides == base.stride() and x.offset == 0:
                return base
        elif b.kind == "constant":
            base = self._interface.constants[b.position]
        else:
            base = held[b]
            if (x.shape, x.strides, x.offset, x.dtype) == (
                base.shape,
                base.stride(),
                0,
                base.dtype,
            ):
                return base
        return _view(base, x)

    def _call(self, call: Call, tensor: Callable, held: dict, work: _Workspace) -> None:
        def fill(x: Any) -> Any:
            if isinstance(x, Tensor):
                return tensor(x)
            if isinstance(x, (tuple, list)):
                return type(x)(fill(v) for v in x)
            return x

        result = call.target(*map(fill, call.args), **{k: fill(v) for k, v in call.kwargs.items()})
        if not call.strides:  # it has written to memory that it was given
            return
        flat = [r for r in (result if isinstance(result, (tuple, list)) else [result])
                if isinstance(r, torch.Tensor)]  # fmt: skip
        for b, r, strides in zip(call.writes, flat, call.strides, strict=True):
            if r.stride() != strides or _within(r, work.block):
                r = torch.empty_strided(r.shape, strides, dtype=r.dtype, device=r.device).copy_(r)
            held[b] = r
            if b in self._layout.slots:
                work.pointers[self._layout.slots[b]] = r.data_ptr()


class RunForSizes:
    """The kernels of an executable that has `places`, with what a run for other sizes needs. One
    thread runs it, and one run comes after the other."""

    __slots__ = ("_block", "_eager", "_flag", "_of", "_pointers", "_results", "_sizes")

    def __init__(
        self, of: Executable, eager: Callable[..., Any], sizes: Sequence[int],
        results: Sequence[tuple], scratch: int,
    ):  # fmt: skip
        self._of = of
        self._eager = eager
        self._results = results
        layout = of._layout
        pointers = self._pointers = of._pointers()
        self._flag = ctypes.c_int64(0)
        pointers[layout.flag] = ctypes.addressof(self._flag)
        for slot, address in of._fixed:
            pointers[slot] = address
        self._sizes = (ctypes.c_int64 * len(sizes))(*sizes)
        if sizes:
            pointers[layout.sizes] = ctypes.addressof(self._sizes)
        self._block = None
        if scratch:
            self._block = _block(scratch)
            pointers[layout.block] = self._block.data_ptr()

    def run(
        self, arrays: Sequence[np.ndarray], floats: Sequence[float], ints: Sequence[int]
    ) -> list[np.ndarray]:
        """As `Executable.run`, on NumPy's arrays, which take less time than tensors."""
        of, pointers = self._of, self._pointers
        given = len(arrays)
        vectors: list[Any] = []
        if floats:
            vectors.append((ctypes.c_double * len(floats))(*floats))
        if ints:
            vectors.append((ctypes.c_int64 * len(ints))(*ints))
        for slot, k in of._inputs:
            if k < given:
                pointers[slot] = _address(arrays[k])
            else:
                pointers[slot] = ctypes.addressof(vectors[k - given])
        made = []
        for (slot, dtype, width), (shape, strides, _) in zip(
            of.fresh_arrays, self._results, strict=True
        ):
            new = np.ndarray(shape, dtype, None, 0, [n * width for n in strides])
            pointers[slot] = _address(new)
            made.append(new)
        threads = _num_threads()
        for section in of._sections:
            if section(pointers, threads, of._run):
                inputs = _with_vectors([*map(torch.from_numpy, arrays)], floats, ints, of.device)
                raise _error_of_bounds(self._eager, inputs)
        return made if len(made) == 1 else [made[k] for k in of.order]


def _address(a: np.ndarray) -> int | None:
    """Where an array's data lie, in a tenth of the time of `a.ctypes.data`."""
    return ctypes.c_void_p.from_address(id(a) + DATA).value


def _error_of_bounds(eager: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> IndexError:
    """The error of an index out of bounds, in NumPy's words."""
    try:
        eager(*(t.clone() for t in tensors))
    except (IndexError, RuntimeError) as e:
        return out_of_bounds(str(e).splitlines()[0].replace(" dimension ", " axis "))
    return out_of_bounds("an index is out of bounds")


def _tensors(x: Any) -> list[Tensor]:
    """The tensors among the arguments of a call."""
    if isinstance(x, (tuple, list)):
        return [t for y in x for t in _tensors(y)]
    return [x] if isinstance(x, Tensor) else []


def _view(base: torch.Tensor, x: Tensor) -> torch.Tensor:
    """The array in the memory of its buffer."""
    base = _under(base, x.dtype)
    return base.as_strided(x.shape, x.strides, base.storage_offset() + x.offset)


def _within(r: torch.Tensor, block: torch.Tensor | None) -> bool:
    """Whether a call's result is one of its arguments, in memory that the next run writes to."""
    return block is not None and 0 <= r.data_ptr() - block.data_ptr() < block.numel()


def _is_whole(x: Tensor) -> bool:
    """Whether an output is all of its buffer, each byte once: it can be allocated as it is."""
    return x.offset == 0 and fills(x.shape, x.strides, x.dtype.itemsize, size_of(x.buffer))


def fills(shape: Sequence[int], strides: Sequence[int], width: int, size: int) -> bool:
    """Whether such an array of elements of that width takes so many bytes, each once."""
    dense = 1
    for extent, stride in sorted(zip(shape, strides, strict=True), key=lambda p: p[1]):
        if extent != 1:
            if stride != dense:
                return False
            dense *= extent
    return dense * width == size


def _with_vectors(
    tensors: Sequence[torch.Tensor], floats: Sequence[float], ints: Sequence[int],
    device: torch.device,
) -> list[torch.Tensor]:  # fmt: skip
    """The graph's inputs: tensors, and the parameters as vectors."""
    inputs = list(tensors)
    if floats:
        inputs.append(torch.tensor(floats, dtype=torch.float64, device=device))
    if ints:
        inputs.append(torch.tensor(ints, dtype=torch.int64, device=device))
    return inputs


def _under(base: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A buffer's memory under the dtype of a view of it."""
    if base.dtype == dtype:
        return base
    if dtype.is_complex:
        return torch.view_as_complex(base.reshape(-1, 2))
    if base.dtype.is_complex:
        base = torch.view_as_real(base)
    return base if base.dtype == dtype else base.view(dtype)
