"""Arrays that share memory without one being known as a view of the other.

Two arguments may overlap (`f(x, x[1:])`), and a foreign function may return a view of its argument.
Such an array becomes a `window`: a view of the array that owns the memory, by geometry alone.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import torch

from np_compile import shim
from np_compile.shim._ndarray import overlaps_itself
from np_compile.shim._shapes import strided
from np_compile.shim._table import add_row

WINDOW = "ndarray._window"


def _window(
    a: shim.ndarray, shape: tuple, strides: tuple, offset: int, writeable: bool
) -> shim.ndarray:
    """The view of `a`'s memory with this geometry, in bytes from its lowest address."""
    t = a._t
    width = t.element_size()
    steps = [s // width for s in strides]
    flip = tuple(i for i, s in enumerate(steps) if s < 0)
    low = offset // width + sum(s * (n - 1) for s, n in zip(steps, shape, strict=True) if s < 0)
    view = strided(t, shape, [abs(s) for s in steps], low)
    r = shim.ndarray(view, flip)
    if not writeable:
        r._readonly = True
    return r


def _window_numpy(a: np.ndarray, shape: tuple, strides: tuple, offset: int, writeable: bool) -> Any:
    memory = _Memory(byte_bounds(a)[0] + offset, shape, strides, a.dtype, a, not writeable)
    return np.asarray(memory)


add_row(shim.Row(WINDOW, _window, data=frozenset("a"), signature=inspect.signature(_window)))


class _Memory:
    """Memory of NumPy arrays by address, kept alive by its owners."""

    def __init__(
        self, address: int, shape: tuple, strides: Any, dtype: Any, owners: Any, readonly: bool
    ):
        self.owners = owners
        self.__array_interface__ = {
            "version": 3,
            "data": (address, readonly),
            "shape": shape,
            "strides": strides,
            "typestr": np.dtype(dtype).str,
        }


def byte_bounds(a: np.ndarray) -> tuple[int, int]:
    """The lowest address of an array's memory, and the one after the highest."""
    address = a.__array_interface__["data"][0]
    if a.size == 0:
        return address, address
    low = sum(s * (n - 1) for s, n in zip(a.strides, a.shape, strict=True) if s < 0)
    high = sum(s * (n - 1) for s, n in zip(a.strides, a.shape, strict=True) if s > 0)
    return address + low, address + high + a.itemsize


def geometry(a: np.ndarray, lowest: int) -> tuple:
    """The arguments of a window that shows `a` in memory that begins at `lowest`."""
    return a.shape, a.strides, a.__array_interface__["data"][0] - lowest, shim.is_writeable(a)


def bounds_of(t: torch.Tensor) -> tuple[int, int]:
    """As `byte_bounds`, of a tensor."""
    address = t.data_ptr()
    if t.numel() == 0:
        return address, address
    high = sum(s * (n - 1) for s, n in zip(t.stride(), t.shape, strict=True))
    return address, address + (high + 1) * t.element_size()


def needs_operators(written: list[int], arrays: list[Any]) -> bool:
    """Whether torch is to carry out writes one by one, or to refuse them: the memory of one of the
    `written` stand-ins, by position, is another one's too, or its own again; or it belongs to
    inference mode."""
    if not written:
        return False
    bounds = [bounds_of(a._t) for a in arrays]
    tensors = [arrays[k]._t for k in written]
    if any(overlaps_itself(t.shape, t.stride()) or t.is_inference() for t in tensors):
        return True
    return any(
        low < bounds[k][1] and bounds[k][0] < high
        for k in written
        for m, (low, high) in enumerate(bounds)
        if m != k
    )


def overlapping(arrays: list[np.ndarray]) -> list[list[int]]:
    """Groups (by position) of two or more arrays whose memory overlaps."""
    if len(arrays) < 2:
        return []
    if len(arrays) == 2:
        return [[0, 1]] if np.may_share_memory(arrays[0], arrays[1]) else []
    bounds = sorted((*byte_bounds(a), i) for i, a in enumerate(arrays) if a.size)
    groups: list[list[int]] = []
    end = -1
    for low, high, i in bounds:
        if low < end:
            groups[-1].append(i)
            end = max(end, high)
        else:
            groups.append([i])
            end = high
    return [g for g in groups if len(g) > 1]


def common_base(arrays: list[np.ndarray]) -> np.ndarray | None:
    """A one-dimensional array over the memory of all; None where their types do not fit."""
    dtype = arrays[0].dtype
    lows = [byte_bounds(a)[0] for a in arrays]
    low, high = min(lows), max(byte_bounds(a)[1] for a in arrays)
    if any(a.dtype != dtype for a in arrays) or any((x - low) % dtype.itemsize for x in lows):
        return None
    readonly = not any(shim.is_writeable(a) for a in arrays)
    count = (high - low) // dtype.itemsize
    return np.asarray(_Memory(low, (count,), None, dtype, tuple(arrays), readonly))
