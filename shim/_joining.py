"""Arrays put together: concatenate, stack, block; elements put in and taken out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._apply import operand_tensor
from ._assigned import assigned
from ._dtypes import TO_NUMPY, Weak, result_type
from ._layout import constant, laid_as
from ._ndarray import as_array, ndarray, write
from ._normalize import Array, Arrays, DType, Operands, Raw, Static, Views, function
from ._selection import promoted, wrapped
from ._shapes import (
    concrete,
    gathered,
    is_c_contiguous,
    is_f_contiguous,
    let_numpy_raise,
    normalize_axis,
    one_device,
    reversed_axes,
    stand_in,
)
from ._unsigned import cast
from ._views import at_least, at_least_3d


def joined(
    tensors: list,
    axis: int | None,
    dtype: torch.dtype | None = None,
    casting: str = "same_kind",
) -> torch.Tensor:
    """The tensors one after the other along an axis (None: all flattened): a fresh tensor.

    Errors: ValueError for shapes that do not fit; TypeError for casts that `casting` forbids.
    """
    if not tensors:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        tensors = [t.reshape(-1) for t in tensors]
        axis = 0
    tensors = one_device(tensors)
    first = tensors[0]
    n = first.dim()
    if n == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    along = axis if axis >= 0 else axis + n
    fits = 0 <= along < n and all(
        t.dim() == n and all(t.shape[d] == first.shape[d] for d in range(n) if d != along)
        for t in tensors
    )
    if not fits:
        let_numpy_raise(np.concatenate, [stand_in(t) for t in tensors], axis=axis)
    target = result_type(*(t.dtype for t in tensors)) if dtype is None else dtype
    _check_casts(tensors, target, dtype is not None, casting)
    tensors = [cast(t, target) for t in tensors]
    if n > 1 and all(_columns_first(t) for t in tensors):
        axes = reversed_axes(n)
        return torch.cat([t.permute(axes) for t in tensors], n - 1 - along).permute(axes)
    result = torch.cat(tensors, along)
    return result if n == 1 or result.is_contiguous() else result.contiguous()


def _columns_first(t: torch.Tensor) -> bool:
    a = ndarray(t)
    return is_f_contiguous(a) and not is_c_contiguous(a)


def _check_casts(tensors: list, target: torch.dtype, explicit: bool, casting: str) -> None:
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe") or (
        (explicit or casting != "same_kind")
        and not all(np.can_cast(TO_NUMPY[t.dtype], TO_NUMPY[target], casting) for t in tensors)
    ):
        parts = [stand_in(torch.empty(1, device="meta"), TO_NUMPY[t.dtype]) for t in tensors]
        let_numpy_raise(np.concatenate, parts, dtype=TO_NUMPY[target], casting=casting)


def _stored(out: Any, tensors: list, axis: int | None, dtype: Any, casting: str) -> ndarray:
    """The joined arrays in `out`, which sets the dtype and obeys `casting`."""
    if dtype is not None:
        raise TypeError(
            "concatenate() only takes `out` or `dtype` as an argument, but both were provided."
        )
    if type(out) is not ndarray:
        raise TypeError(f"'out' must be an array, not {type(out).__name__}")
    if out._readonly:
        raise ValueError("output array is read-only")
    result = joined(tensors, axis, out._t.dtype, casting)
    if tuple(result.shape) != tuple(out._t.shape):
        raise ValueError("Output array is the wrong shape")
    write(out, result)
    return out


def _join(tensors: list, axis: Any, out: Any, dtype: Any, casting: str) -> ndarray:
    if out is not None:
        return _stored(out, tensors, axis, dtype, casting)
    return ndarray(joined(tensors, axis, dtype, casting))


@function("concatenate", "concat", scalar=False)
def concatenate(
    arrays: Operands,
    /,
    axis: Static = 0,
    out: Raw = None,
    *,
    dtype: DType = None,
    casting: str = "same_kind",
):
    """The arrays one after the other along an existing axis; flattened where axis is None.

    Errors: ValueError for shapes that do not fit; TypeError for casts that `casting` forbids.
    """
    if axis is None and dtype is None and out is None and len(arrays) > 0:
        arrays = promoted(*arrays, convert=wrapped)  # numbers promote weakly
    return _join([operand_tensor(a) for a in arrays], axis, out, dtype, casting)


@function(scalar=False)
def stack(
    arrays: Arrays,
    axis: int = 0,
    out: Raw = None,
    *,
    dtype: DType = None,
    casting: str = "same_kind",
):
    """Arrays of one shape side by side along a new axis. ValueError for shapes that differ."""
    if not arrays:
        raise ValueError("need at least one array to stack")
    if any(t.shape != arrays[0].shape for t in arrays[1:]):
        raise ValueError("all input arrays must have the same shape")
    axis = normalize_axis(axis, arrays[0].dim() + 1)
    return _join([t.unsqueeze(axis) for t in arrays], axis, out, dtype, casting)


def _tensors(arrays: list) -> list:
    return [a.tensor for a in arrays]


@function("vstack", *(("row_stack",) if hasattr(np, "row_stack") else ()), scalar=False)
def vstack(tup: Views, *, dtype: DType = None, casting: str = "same_kind"):
    """The arrays below one another; vectors are rows."""
    return ndarray(joined(_tensors([at_least(a, 2) for a in tup]), 0, dtype, casting))


@function(scalar=False)
def hstack(tup: Views, *, dtype: DType = None, casting: str = "same_kind"):
    """The arrays beside one another, along the second axis (vectors: the first)."""
    arrays = [at_least(a, 1) for a in tup]
    axis = 0 if arrays and arrays[0].ndim == 1 else 1
    return ndarray(joined(_tensors(arrays), axis, dtype, casting))


@function(scalar=False)
def dstack(tup: Views):
    """The arrays one behind the other, along the third axis."""
    return ndarray(joined(_tensors([at_least_3d(a) for a in tup]), 2))


@function(scalar=False)
def column_stack(tup: Views):
    """Vectors as the columns of a matrix; matrices beside one another."""
    return ndarray(joined([a.tensor.reshape(-1, 1) if a.ndim < 2 else a.tensor for a in tup], 1))


# block


def _depth(arrays: Any, place: list) -> tuple[int, int, bool]:
    """Depth of the nested lists, the most axes of a leaf, and whether a list is empty."""
    where = "arrays" + "".join(f"[{i}]" for i in place)
    if isinstance(arrays, tuple):
        raise TypeError(
            f"{where} is a tuple. Only lists can be used to arrange blocks, and np.block does not "
            "allow implicit conversion from tuple to ndarray."
        )
    if not isinstance(arrays, list):
        return len(place), as_array(arrays).ndim, False
    if not arrays:
        raise ValueError(f"List at {where} cannot be empty")
    found = [_depth(a, [*place, i]) for i, a in enumerate(arrays)]
    for i, (depth, _, _) in enumerate(found):
        if depth != found[0][0]:
            inner = where + f"[{i}]" + "[0]" * (depth - len(place) - 1)
            raise ValueError(
                f"List depths are mismatched. First element was at depth {found[0][0]}, but there "
                f"is an element at depth {depth} ({inner})"
            )
    return found[0][0], max(f[1] for f in found), False


def _assemble(arrays: Any, levels: int, ndim: int) -> torch.Tensor:
    if levels == 0:
        return at_least(as_array(arrays), ndim).tensor
    return joined([_assemble(a, levels - 1, ndim) for a in arrays], -levels)


@function(scalar=False)
def block(arrays: Raw):
    """One array from nested lists of blocks: the innermost lists along the last axis, and so on.

    Errors: ValueError for depths or shapes that do not fit; TypeError for tuples.
    """
    depth, widest, _ = _depth(arrays, [])
    result = _assemble(arrays, depth, max(depth, widest))
    return ndarray(result.clone() if depth == 0 else result)


@function(scalar=False)
def append(arr: Array, values: Array, axis: Static = None):
    """A copy with the values at the end of an axis; both flattened where axis is None."""
    return ndarray(joined([arr, values], axis))


# elements put in and taken out


def _places(obj: Any) -> Any:
    """Indices as NumPy takes them: an int, a slice, or an array."""
    if isinstance(obj, (slice, int, np.ndarray, np.generic)):
        return obj
    if isinstance(obj, (ndarray, Weak, list, tuple)):
        return concrete(obj) if not (isinstance(obj, (list, tuple)) and not obj) else obj
    return obj


def _numbered(t: torch.Tensor, axis: int) -> np.ndarray:
    """The places along an axis, as an array with all other extents one."""
    return np.arange(t.shape[axis]).reshape([-1 if d == axis else 1 for d in range(t.dim())])


@function(scalar=False)
def delete(arr: Array, obj: Raw, axis: Static = None):
    """A copy without the places `obj` (int, slice, or array) along an axis, or flattened.

    Errors: IndexError for a place outside; AxisError.
    """
    t = arr.reshape(-1) if axis is None else arr
    axis = normalize_axis(0 if axis is None else axis, t.dim())
    kept = np.delete(_numbered(t, axis), _places(obj), axis).ravel()
    return ndarray(laid_as(t, gathered(t, axis, constant(kept, t.device))))


@function(scalar=False)
def insert(arr: Array, obj: Raw, values: Raw, axis: Static = None):
    """A copy with values put in before the places `obj` along an axis, or flattened.

    Errors: IndexError for a place outside; ValueError for values that do not broadcast.
    """
    t = arr.reshape(-1) if axis is None else arr
    axis = normalize_axis(0 if axis is None else axis, t.dim())
    places = _places(obj)
    n = t.shape[axis]
    single = not isinstance(places, slice) and np.ndim(places) == 0
    marked = np.asarray(places) if not isinstance(places, slice) else None
    if marked is not None and marked.dtype == bool:
        count = int(marked.sum()) if marked.ndim else 1
    else:
        count = len(range(*places.indices(n))) if marked is None else marked.size
    given = v = assigned(values, t.dtype, t.device)
    while v.dim() < t.dim():
        v = v.unsqueeze(0)
    if single:
        v = v.movedim(0, axis)
    if count == 1:
        count = v.shape[axis]
    shape = [count if d == axis else t.shape[d] for d in range(t.dim())]
    numbered = _numbered(t, axis)
    new = (-1 - np.arange(count)).reshape([-1 if d == axis else 1 for d in range(t.dim())])
    new = new.ravel() if single and t.dim() == 1 else np.moveaxis(new, axis, 0) if single else new
    order = np.insert(numbered, places, new, axis).ravel()
    order = np.where(order < 0, n - 1 - order, order)
    try:
        v = v.expand(shape)
    except RuntimeError:
        let_numpy_raise(np.insert, stand_in(t), places, stand_in(given), axis)
        raise
    t, v = one_device([t, v])
    both = torch.cat((t, v), axis)
    return ndarray(laid_as(t, gathered(both, axis, constant(order, t.device))))
