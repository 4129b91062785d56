"""Sums of floats in elements that data tell on a GPU, `scatter.cu`: the same in each run.

Many values in few elements, which fit into the memory that the threads of a block share, are added
up there. Else the values of an element have to follow one another: places that are in order, as
those of a sparse matrix or of groups, are used as they are, others are sorted.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import torch

from ..build.driver import launch, launches_of
from ..build.nvrtc import Modules
from ..target import Gpu
from .private import raw_stream

_REALS = {torch.float32: "float", torch.float64: "double"}
_WARPS = 16  # most of a processor, each with an array of its own
_LEAST = 256  # values of a warp
_MOST = 2**31 - 1  # elements
_DENSITY = 2  # most elements of all arrays for each value
# Those of `scatter.cu`.
_TAGS = 8192
_ROWS = 8
_THREADS = 256
_TILE = 8 * _THREADS
_ADDRESSES = ("place", "value", "part", "x", "order", "state", "flag")
_KERNELS = ("scatter", "gather", "descents", "segments", "carry")


class _Memory(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in _ADDRESSES),
        *((name, ctypes.c_int64) for name in ("count", "size", "length", "parts")),
    ]


@functools.cache
def _kernels(dtype: torch.dtype, device: int, machine: Gpu) -> tuple[Modules, dict[str, int]]:
    """The modules, which own the kernels, and their handles."""
    text = Path(__file__).with_name("scatter.cu").read_text(encoding="utf-8")
    modules = Modules(f"#define REAL {_REALS[dtype]}\n{text}", device, machine.name)
    shared = dict.fromkeys(_KERNELS, 0) | {"scatter": machine.shared_bytes}
    return modules, modules.functions(shared, False)


def parts_of(count: int, size: int, width: int, machine: Gpu) -> int:
    """How many warps add so many values to so many elements of so many bytes; 0 where to have
    them in order is the better way."""
    shared = _shared(size, width)
    if not size or shared > machine.shared_bytes:
        return 0
    each = min(machine.shared_bytes // shared, _WARPS)
    most = min(machine.processors * each, _DENSITY * count // size, count // _LEAST)
    return most if most >= machine.processors // 4 else 0


def _shared(size: int, width: int) -> int:
    """Bytes of a warp's array of so many elements, with its tags."""
    return size * width + _TAGS


def looks(dtype: torch.dtype, size: int) -> bool:
    """Whether values of a dtype are added to so many elements only where no flag is set."""
    return dtype in _REALS and size <= _MOST


def add(
    x: torch.Tensor, places: torch.Tensor, values: torch.Tensor, machine: Gpu, flag: int = 0
) -> None:
    """x[places] += values, for each of them; x has one axis, and all lie in memory as they are, on
    the current device. flag: the address of a word of the host that the device may set before, so
    that nothing is added where it is not 0; see `looks`."""
    count, size = places.numel(), x.numel()
    if not looks(x.dtype, size) or not count:
        x.index_put_((places,), values, accumulate=True)
        return
    parts = parts_of(count, size, x.element_size(), machine)
    if parts:
        _add_in_parts(x, places, values, parts, machine, flag)
    else:
        _add_segments(x, places, values, machine, flag)


def _add_in_parts(
    x: torch.Tensor, places: torch.Tensor, values: torch.Tensor, parts: int, machine: Gpu,
    flag: int,
) -> None:  # fmt: skip
    """The same, by so many warps."""
    count, size = places.numel(), x.numel()
    part = torch.empty(parts * size + 1, dtype=x.dtype, device=x.device)
    state = part.data_ptr() + parts * size * x.element_size()
    length = -(-count // (32 * parts)) * 32
    given = (*_addresses(places, values, part, x), 0, state, flag)
    memory = _Memory(*given, count, size, length, parts)
    warps = (parts, 32, _shared(size, x.element_size()))
    _run(x, machine, memory, {"scatter": warps, "gather": (-(-size // 32), 32 * _ROWS, 0)})


def _add_segments(
    x: torch.Tensor, places: torch.Tensor, values: torch.Tensor, machine: Gpu, flag: int
) -> None:
    """The same, with the places in order."""
    count = places.numel()
    tiles = -(-count // _TILE)
    part = torch.empty(2 * tiles, dtype=x.dtype, device=x.device)
    state = torch.zeros(tiles, dtype=torch.int32, device=x.device)
    given = (*_addresses(places, values, part, x), 0, state.data_ptr(), 0)
    memory = _Memory(*given, count, x.numel(), 0, tiles)
    _run(x, machine, memory, {"descents": (tiles, _THREADS, 0)})
    falls = state[0].item()  # now the host knows the flag, too
    if flag and ctypes.c_int64.from_address(flag).value:
        return
    if falls:
        places, order = torch.sort(places.to(torch.int32), stable=True)
        memory.place, memory.order = _addresses(places, order)
    blocks = {"segments": tiles, "carry": -(-tiles // _THREADS)}
    _run(x, machine, memory, {name: (n, _THREADS, 0) for name, n in blocks.items()})


def _addresses(*tensors: torch.Tensor) -> list[int]:
    return [t.data_ptr() for t in tensors]


def _run(x: torch.Tensor, machine: Gpu, memory: _Memory, grids: dict[str, tuple]) -> None:
    """Launch kernels: blocks, threads and shared bytes of each."""
    index = x.device.index or 0
    _, kernels = _kernels(x.dtype, index, machine)
    argument = ctypes.addressof(memory)
    rows = [(kernels[name], argument, *grid) for name, grid in grids.items()]
    launch(launches_of(rows), raw_stream(index))
