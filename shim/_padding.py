"""np.pad: one axis after the other, each mode a rule for the two new ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._assigned import assigned
from ._dtypes import NotSupported
from ._layout import constant, laid_as
from ._ndarray import ndarray
from ._normalize import Array, Static, function
from ._ranges import spaced
from ._reduce import reduce_engine
from ._shapes import concrete, gathered, let_numpy_raise
from ._unsigned import bits, cast, unbits

_OPTIONS = {
    "empty": (),
    "edge": (),
    "wrap": (),
    "constant": ("constant_values",),
    "linear_ramp": ("end_values",),
    "maximum": ("stat_length",),
    "mean": ("stat_length",),
    "median": ("stat_length",),
    "minimum": ("stat_length",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
}
_BY_INDEX = ("edge", "wrap", "reflect", "symmetric")


def _pairs(value: Any, ndim: int, counts: bool = False) -> list[tuple]:
    """An argument of pad as (before, after) for each axis. ValueError where it does not fit."""
    if value is None:
        return [(None, None)] * ndim
    given = concrete(value)
    if counts:
        given = np.round(given).astype(np.intp)
        if given.size and given.min() < 0:
            raise ValueError("index can't contain negative values")
    if given.size == 1 or (given.size == 2 and given.shape != (2, 1)):
        pair = tuple(given.ravel())  # NumPy scalars, unlike those below
        return [pair * (3 - len(pair))] * ndim
    return [tuple(pair) for pair in np.broadcast_to(given, (ndim, 2)).tolist()]


def _widths(pad_width: Any, ndim: int) -> list[tuple]:
    if isinstance(pad_width, dict):
        let_numpy_raise(np.pad, np.zeros(1), {})  # a TypeError where NumPy takes no dicts
        widths = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            if not isinstance(width, (int, tuple, list)):
                raise TypeError("`pad_width` must be of integral type.")
            widths[axis] = (width, width) if isinstance(width, int) else tuple(width)
        pad_width = widths
    given = concrete(pad_width)
    if given.dtype.kind != "i":
        raise TypeError("`pad_width` must be of integral type.")
    return _pairs(given, ndim, True)


def _ends(t: torch.Tensor, axis: int) -> tuple[torch.Tensor, torch.Tensor]:
    return t.narrow(axis, 0, 1), t.narrow(axis, t.shape[axis] - 1, 1)


def _block(t: torch.Tensor, axis: int, width: int, value: torch.Tensor) -> torch.Tensor:
    """`width` places along the axis, filled with an element or a slice of extent one."""
    return value.expand([width if d == axis else n for d, n in enumerate(t.shape)])


def _statistic(t: torch.Tensor, axis: int, start: int, length: int, mode: str) -> torch.Tensor:
    chunk = t.narrow(axis, start, length)
    if mode != "mean":
        return reduce_engine(mode, chunk, axis, keepdims=True)
    exact = t.dtype.is_floating_point or t.dtype.is_complex
    work = torch.float32 if t.dtype is torch.float16 else t.dtype if exact else torch.float64
    mean = torch.mean(cast(chunk, work), axis, keepdim=True)
    return cast(mean if exact else torch.round(mean), t.dtype)


def _by_statistic(t: torch.Tensor, axis: int, mode: str, lengths: tuple) -> tuple:
    n = t.shape[axis]
    left, right = (n if s is None or n < s else s for s in lengths)
    if mode != "mean" and (left == 0 or right == 0):
        raise ValueError("stat_length of 0 yields no value for padding")
    return (
        _statistic(t, axis, 0, left, mode),
        _statistic(t, axis, n - right, right, mode),
    )


def _ramp(edge: torch.Tensor, axis: int, width: int, end: Any) -> torch.Tensor:
    """From the value `end` towards the edge, the edge itself not included."""
    start = constant(np.asarray(end), edge.device)
    line, _ = spaced(start, edge.squeeze(axis), width, False, edge.dtype, axis)
    return line


def _of_its_own(t: torch.Tensor, axis: int, widths: tuple, mode: str) -> list[torch.Tensor]:
    """New ends that are elements of the array, each of them once but for `edge`."""
    before, after = widths
    n = t.shape[axis]
    if mode == "edge":
        return [_block(t, axis, w, v) for w, v in zip(widths, _ends(t, axis), strict=True)]
    if mode == "wrap":
        return [t.narrow(axis, n - before, before), t.narrow(axis, 0, after)]
    skipped = 1 if mode == "reflect" else 0
    near = t.narrow(axis, skipped, before), t.narrow(axis, n - skipped - after, after)
    return [unbits(torch.flip(bits(v), (axis,)), t.dtype) for v in near]


def _padded_axis(
    t: torch.Tensor, axis: int, widths: tuple, mode: str, options: dict, d: int
) -> torch.Tensor:
    before, after = widths
    if mode in ("constant", "empty"):
        values = options["values"][d] if mode == "constant" else (0, 0)
        numbers = [assigned(v, t.dtype, t.device, True) for v in values]
        ends = [_block(t, axis, w, v) for w, v in zip(widths, numbers, strict=True)]
    elif mode == "linear_ramp":
        first, last = _ends(t, axis)
        low, high = options["values"][d]
        high_end = _ramp(last, axis, after, high)
        ends = [
            _ramp(first, axis, before, low),
            unbits(torch.flip(bits(high_end), (axis,)), t.dtype),
        ]
    elif mode == "edge" or (mode in _BY_INDEX and max(widths) < t.shape[axis]):
        ends = _of_its_own(t, axis, widths, mode)
    elif mode in _BY_INDEX:
        order = np.pad(np.arange(t.shape[axis]), (before, after), mode)
        return gathered(t, axis, constant(order, t.device))
    else:
        values = _by_statistic(t, axis, mode, options["lengths"][d])
        ends = [_block(t, axis, w, v) for w, v in zip(widths, values, strict=True)]
    parts = [p for p in (ends[0], t, ends[1]) if p.shape[axis]]
    return torch.cat(parts, axis) if any(p is not t for p in parts) else t


@function(scalar=False)
def pad(array: Array, pad_width: Static, mode: Static = "constant", **kwargs: Static):
    """A larger copy, its new ends filled as `mode` says. NotSupported: a callable as mode, median,
    reflect_type="odd". ValueError for options the mode lacks; TypeError for widths not integer."""
    widths = _widths(pad_width, array.dim())
    if callable(mode):
        raise NotSupported("np.pad with a function as mode")
    try:
        unknown = set(kwargs) - set(_OPTIONS[mode])
    except (KeyError, TypeError):
        raise ValueError(f"mode '{mode}' is not supported") from None
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if mode == "median" or kwargs.get("reflect_type", "even") != "even":
        raise NotSupported(f"np.pad(mode={mode!r}, {kwargs})")
    n = array.dim()
    if array.numel() == 0 and mode not in ("constant", "empty"):
        for axis, pair in enumerate(widths):
            if array.shape[axis] == 0 and any(pair):
                raise ValueError(
                    f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
                )
    options = {"lengths": _pairs(kwargs.get("stat_length"), n, "stat_length" in kwargs)}
    if mode in ("constant", "linear_ramp"):
        options["values"] = _pairs(kwargs.get(_OPTIONS[mode][0], 0), n)
    result = array
    for axis, pair in enumerate(widths):
        # Values at both ends of an axis are those of the array as padded so far.
        if any(pair) or mode in ("maximum", "minimum"):
            result = _padded_axis(result, axis, pair, mode, options, axis)
    return ndarray(result.clone() if result is array else laid_as(array, result))
