"""Triangles and diagonals of matrices; index arrays and their flat counterparts."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._assigned import assigned, held, upheld
from ._devices import default_device
from ._dtypes import TO_NUMPY, DataDependent
from ._layout import checked_shape
from ._ndarray import as_array, before_write, ndarray
from ._normalize import Array, Arrays, Raw, Static, View, function
from ._parts import diagonal_of
from ._ranges import offsets
from ._shapes import concrete, gathered, let_numpy_raise
from ._table import Kind
from ._ufuncs import readable
from ._unsigned import choose_by, flip, to_signed
from ._views import reshaped


def _masked(m: torch.Tensor, keep: Any) -> torch.Tensor:
    n, columns = (m.shape[-1], m.shape[-1]) if m.dim() == 1 else m.shape[-2:]
    inside = keep(offsets(n, columns, m.device))
    return choose_by(inside, m, torch.zeros((), dtype=m.dtype, device=m.device))


def _needs_two(m: torch.Tensor) -> None:
    if m.dim() == 0:
        np.tril(np.array(0))


@function(scalar=False)
def tril(m: Array, k: int = 0):
    """A copy with zeros above the k-th diagonal of the last two axes."""
    _needs_two(m)
    return _masked(m, lambda off: off <= k)


@function(scalar=False)
def triu(m: Array, k: int = 0):
    """A copy with zeros below the k-th diagonal of the last two axes."""
    _needs_two(m)
    return _masked(m, lambda off: off >= k)


def _triangle(n: Any, k: int, m: Any, lower: bool) -> tuple:
    rows = checked_shape((n,))[0]
    columns = rows if m is None else checked_shape((m,))[0]
    make = torch.tril_indices if lower else torch.triu_indices
    places = make(rows, columns, k, device=default_device())
    return ndarray(places[0].clone()), ndarray(places[1].clone())


@function(scalar=False)
def tril_indices(n: Static, k: int = 0, m: Static = None):
    """The indices of the triangle at and below the k-th diagonal: a tuple (rows, columns)."""
    return _triangle(n, k, m, True)


@function(scalar=False)
def triu_indices(n: Static, k: int = 0, m: Static = None):
    """The indices of the triangle at and above the k-th diagonal: a tuple (rows, columns)."""
    return _triangle(n, k, m, False)


@function(scalar=False)
def tril_indices_from(arr: View, k: int = 0):
    """As tril_indices, for the shape of a matrix. ValueError for other dimensions."""
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return _triangle(arr.shape[0], k, arr.shape[1], True)


@function(scalar=False)
def triu_indices_from(arr: View, k: int = 0):
    """As triu_indices, for the shape of a matrix. ValueError for other dimensions."""
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return _triangle(arr.shape[0], k, arr.shape[1], False)


@function(scalar=False)
def diag_indices(n: Static, ndim: int = 2):
    """The indices of the main diagonal of an array with `ndim` axes of extent n: a tuple."""
    place = ndarray(torch.arange(checked_shape((n,))[0]))
    return (place,) * ndim


@function(scalar=False)
def diag_indices_from(arr: View):
    """As diag_indices, for an array whose extents are all equal. ValueError for others."""
    if arr.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(arr.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return (ndarray(torch.arange(arr.shape[0])),) * arr.ndim


@function(scalar=False)
def fill_diagonal(a: View, val: Raw, wrap: bool = False):
    """Set the main diagonal in place, a new one after each if `wrap` and the matrix is tall.

    Returns None. Errors: ValueError below two dimensions, or for more with unequal extents.
    """
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    if a._readonly:
        raise ValueError("assignment destination is read-only")
    before_write(a, val)
    t = a._t
    values = assigned(val, t.dtype, t.device)
    values = values.reshape(-1) if values.dim() else values
    wraps = wrap and a.ndim == 2 and a.shape[0] > a.shape[1] + 1
    if a.ndim == 2 and not wraps and (len(a._flip) != 1 or not t.numel()):
        target = diagonal_of(a, 0, 0, 1)
        line = _cycled(values, target.shape[0])
        target._t.copy_(flip(line, (0,)) if target._flip and line.dim() else line)
        return None
    if a.ndim == 2:
        end = t.numel() if wraps else min(t.numel(), a.shape[1] ** 2)
        flat = torch.arange(0, end, a.shape[1] + 1, device=t.device)
        places = [flat // a.shape[1], flat % a.shape[1]]
    else:
        places = [torch.arange(a.shape[0], device=t.device)] * a.ndim
    count = places[0].shape[0]
    places = [a.shape[d] - 1 - p if d in a._flip else p for d, p in enumerate(places)]
    index = 0
    for p, step in zip(places, torch.empty(a.shape, device="meta").stride(), strict=True):
        index = index + p * step
    line = _cycled(values, count).expand(count)
    changed = torch.zeros(t.numel(), dtype=torch.bool, device=t.device).index_fill(0, index, True)
    spread = torch.zeros(t.numel(), dtype=torch.int64, device=t.device)
    spread = spread.index_copy(0, index, torch.arange(count, device=t.device))
    new = gathered(line, 0, spread).reshape(t.shape) if count else t
    t.copy_(choose_by(changed.reshape(t.shape), new, t))
    return None


def _cycled(values: torch.Tensor, count: int) -> torch.Tensor:
    """As many values as there are places, from the start again when they run out."""
    if values.dim() == 0 or values.shape[0] == count:
        return values
    if values.shape[0] == 0:
        return values.expand(0) if count == 0 else _no_values()
    return values.repeat(-(-count // values.shape[0]))[:count]


def _no_values() -> Any:
    np.empty(3).flat[:] = np.empty(0)  # NumPy's word on it
    raise ValueError("no values to assign")


# index arrays


@function(scalar=False)
def ix_(*args: Raw):
    """Vectors of indices (or masks) as an open mesh: a tuple of arrays that broadcast.

    Errors: ValueError for more than one dimension.
    """
    result = []
    for d, given in enumerate(args):
        a = as_array(given)
        if not isinstance(given, (ndarray, np.ndarray)) and a.size == 0:
            a = ndarray(a._t.to(torch.int64))
        if a.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if a._t.dtype is torch.bool:
            if not readable(a._t) and a._t.device.type == "meta":
                raise DataDependent("a mask selects an unknown number of elements")
            a = ndarray(torch.nonzero(a.tensor).reshape(-1))
        result.append(reshaped(a, (1,) * d + (a.size,) + (1,) * (len(args) - d - 1)))
    return tuple(result)


@function(kind=Kind.DATA, scalar=False)
def mask_indices(n: int, mask_func: Static, k: Static = 0):
    """The indices where mask_func(ones, k) of an n by n matrix is not zero: a tuple."""
    matrix = mask_func(ndarray(torch.ones((n, n), dtype=torch.int64)), k)
    places = torch.nonzero(as_array(matrix).tensor)
    return tuple(ndarray(places[:, d].clone()) for d in range(places.shape[1]))


def _integer_indices(t: torch.Tensor, name: str) -> torch.Tensor:
    if t.dtype.is_floating_point or t.dtype.is_complex or t.dtype is torch.bool:
        if name == "unravel":
            np.unravel_index(np.zeros(1, TO_NUMPY[t.dtype]), (1,))
        else:
            np.ravel_multi_index((np.zeros(1, TO_NUMPY[t.dtype]),), (1,))
    return to_signed(t).to(torch.int64)


@function()
def unravel_index(indices: Array, shape: Static, order: str = "C"):
    """Flat indices as a tuple of index arrays, one for each axis of `shape`.

    Errors: ValueError for an index outside (seen where the data can be looked at).
    """
    shape = tuple(concrete(shape).ravel().tolist()) if not isinstance(shape, int) else (shape,)
    if order not in ("C", "F"):
        np.unravel_index(0, (1,), order)
    flat = _integer_indices(indices, "unravel")
    total = int(np.prod(shape, dtype=object)) if shape else 1
    outside = (flat < 0) | (flat >= total)
    if readable(flat) and bool(outside.any()):
        place = int(flat[outside].reshape(-1)[0])
        raise ValueError(f"index {place} is out of bounds for array with size {total}")
    if not readable(flat):
        flat = held(flat, ~outside.any())
    if not shape:
        if indices.dim():
            np.unravel_index(np.zeros(tuple(indices.shape), np.intp), ())
        return ()
    parts = []
    for n in reversed(shape) if order == "C" else shape:
        parts.append(flat % n if n else flat)
        flat = torch.div(flat, n, rounding_mode="floor") if n else flat
    return tuple(reversed(parts) if order == "C" else parts)


@function()
def ravel_multi_index(multi_index: Arrays, dims: Static, mode: Static = "raise", order: str = "C"):
    """Index arrays, one for each axis of `dims`, as flat indices; `mode` says what happens outside.

    Errors: ValueError for a coordinate outside under mode "raise" (where the data can be seen).
    """
    dims = tuple(concrete(dims).ravel().tolist())
    modes = mode if isinstance(mode, (tuple, list)) else (mode,) * len(dims)
    stand_ins = tuple(np.zeros(min(t.numel(), 1), np.intp) for t in multi_index)
    let_numpy_raise(np.ravel_multi_index, stand_ins, dims, mode=mode, order=order)
    parts = []
    for t, n, how in zip(multi_index, dims, modes, strict=True):
        t = _integer_indices(t, "ravel")
        if how == "wrap":
            t = torch.remainder(t, n)
        elif how == "clip":
            t = t.clamp(0, n - 1)
        else:
            error = ValueError("invalid entry in coordinates array")
            t = upheld(t, ((t >= 0) & (t < n)).all(), error)
        parts.append(t)
    flat = None
    pairs = list(zip(parts, dims, strict=True))
    for t, n in pairs if order == "C" else reversed(pairs):
        flat = t if flat is None else flat * n + t
    return flat + 0
