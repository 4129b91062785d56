"""Elements repeated, rolled, resized, trimmed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._dtypes import NotSupported, Weak
from ._layout import constant
from ._ndarray import as_array, ndarray
from ._normalize import Array, Raw, Static, View, function
from ._shapes import (
    concrete,
    copied,
    gathered,
    let_numpy_raise,
    normalize_axes,
    normalize_axis,
    shape_tuple,
    sliced,
)
from ._table import Kind
from ._unsigned import bits, unbits
from ._views import at_least


@function(scalar=False)
def tile(A: View, reps: Static):
    """The array repeated as often along each axis as `reps` says: a fresh array."""
    reps = shape_tuple(reps)
    a = at_least(A, len(reps))
    reps = (1,) * (a.ndim - len(reps)) + reps
    if all(r == 1 for r in reps):
        return ndarray(copied(a, "K"))
    if any(r < 0 for r in reps):
        raise ValueError("negative dimensions are not allowed")
    return ndarray(a.tensor.repeat(reps))


@function(method=True, scalar=False)
def repeat(a: Array, repeats: Raw, axis: Static = None):
    """Each element (each place along an axis) several times: a fresh array.

    repeats: an int, or one count for each place. Errors: ValueError for counts that are negative
    or do not broadcast.
    """
    t = a.reshape(-1) if axis is None else a
    axis = normalize_axis(0 if axis is None else axis, t.dim())
    n = t.shape[axis]
    if isinstance(repeats, (ndarray, Weak, list, tuple)):
        repeats = concrete(repeats)
    if type(repeats) is int and repeats >= 0:
        return ndarray(t.repeat_interleave(repeats, axis))
    numbered = np.arange(n).reshape([-1 if d == axis else 1 for d in range(t.dim())])
    order = np.repeat(numbered, repeats, axis).ravel()
    return ndarray(gathered(t, axis, constant(order, t.device)))


@function(scalar=False)
def roll(a: Array, shift: Static, axis: Static = None):
    """The elements moved along axes (None: in the flattened array), those pushed out coming in
    again at the other end: a fresh array. AxisError, ValueError."""
    shift = concrete(shift).tolist() if type(shift) in (ndarray, Weak) else shift
    if axis is None and np.ndim(shift) < 2:
        moved = torch.roll(bits(a).reshape(-1), _whole(shift))
        return ndarray(unbits(moved.reshape(a.shape), a.dtype))
    axes = (0,) if axis is None else normalize_axes(axis, a.dim(), None, True)
    if not (axes or a.dim()):
        let_numpy_raise(np.roll, np.empty(()), shift, axis)
    pairs = np.broadcast(np.asarray(shift), axes)
    if pairs.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    moves: dict[int, int] = dict.fromkeys(range(a.dim()), 0)
    for s, d in pairs:
        moves[int(d)] += int(s)
    moves = {d: s for d, s in moves.items() if s}
    if not moves or a.numel() == 0:
        return ndarray(a.clone())
    return ndarray(unbits(torch.roll(bits(a), tuple(moves.values()), tuple(moves)), a.dtype))


def _whole(shift: Any) -> int:
    return int(np.sum(shift))


@function(scalar=False)
def resize(a: Array, new_shape: Static):
    """The elements repeated until they fill the new shape: a fresh array (zeros from nothing)."""
    if isinstance(new_shape, (np.ndarray, ndarray)) and not new_shape.ndim:
        raise TypeError("iteration over a 0-d array")
    shape = shape_tuple(new_shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    total = 1
    for n in shape:
        total = total * n
    have = a.numel()
    if have == 0 or total == 0:
        return ndarray(torch.zeros(shape, dtype=a.dtype, device=a.device))
    flat = a.reshape(-1).repeat(-(-total // have))
    return ndarray(flat[:total].reshape(shape))


@function(kind=Kind.DATA, scalar=False)
def trim_zeros(filt: Raw, trim: str = "fb", axis: Static = None):
    """A view without the zeros at the front (f) and back (b) of each axis. ValueError;
    NotSupported for lists, of which NumPy gives a part."""
    if isinstance(filt, (list, tuple)):
        raise NotSupported("np.trim_zeros of a list")
    filt = as_array(filt)
    trim = trim.lower()
    if trim not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    n = filt.ndim
    axes = range(n) if axis is None else normalize_axes(axis, n, argname="axis")
    found = torch.nonzero(filt.tensor)
    result = filt
    for d in axes:
        start, stop = 0, filt.shape[d]
        if found.shape[0] == 0:
            stop = 0
        else:
            start = int(found[:, d].min()) if "f" in trim else 0
            stop = int(found[:, d].max()) + 1 if "b" in trim else stop
        result = sliced(result, d, start, stop)
    return result
