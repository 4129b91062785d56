"""Sorting, partitioning, searching."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import torch

from . import _order
from ._apply import axis_index, check_writeable, need_data, readable, select_rows, together
from ._dtypes import TO_NUMPY, result_type
from ._ndarray import write
from ._normalize import Array, Arrays, NoValue, Static, View, function
from ._shapes import concrete
from ._table import Kind
from ._unsigned import bits, cast

# NumPy has `descending` from 2.5 on
_MISSING = {"descending"} - set(inspect.signature(np.sort).parameters)


def _check_sort(kind: Any, order: Any, stable: Any, descending: Any) -> bool:
    """Whether to sort downwards."""
    if descending is NoValue:
        descending = None
    if kind is not None and (stable is not None or descending is not None):
        raise ValueError(
            "`kind` and keyword parameters can't be provided at the same time. Use only one of "
            "them."
        )
    if kind is not None and not (isinstance(kind, str) and kind[:1].lower() in tuple("qhsm")):
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    _check_order(order)
    return bool(descending)


def _check_order(order: Any) -> None:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")


def _along(a: torch.Tensor, axis: Any) -> tuple[torch.Tensor, int]:
    """The tensor and the axis to work along; None flattens."""
    if axis is None:
        return a.reshape(-1), 0
    return a, axis_index(axis, a.dim())


@function()
def sort(
    a: Array,
    axis: Static = -1,
    kind: Static = None,
    order: Static = None,
    *,
    stable: Static = None,
    descending: Static = NoValue,
):
    """A sorted copy along `axis` (None: of the flat array), NaNs last. Always stable."""
    down = _check_sort(kind, order, stable, descending)
    return _order.sort(*_along(a, axis), down)


@function("ndarray.sort", without=_MISSING)
def _sort_in_place(
    self: View,
    /,
    axis: Static = -1,
    kind: Static = None,
    order: Static = None,
    *,
    stable: Static = None,
    descending: Static = None,
) -> None:
    """Sort in place along `axis`. ValueError for a read-only array."""
    down = _check_sort(kind, order, stable, descending)
    t, axis = _along(self.tensor, axis_index(axis, self.ndim))
    if not self._scalar:
        check_writeable(self, "sort array is read-only")
    write(self, _order.sort(t, axis, down))


@function(method=True)
def argsort(
    a: Array,
    axis: Static = -1,
    kind: Static = None,
    order: Static = None,
    *,
    stable: Static = None,
    descending: Static = NoValue,
):
    """Indices that sort along `axis`: int64. Equal elements stay in their order if asked to."""
    down = _check_sort(kind, order, stable, descending)
    a = a.reshape(-1) if a.dim() == 0 else a
    keep = down or bool(stable) or (kind is not None and kind[0].lower() in "sm")
    return _order.argsort(*_along(a, axis), down, keep).contiguous()


def _check_partition(n: int, kth: Any, kind: Any, order: Any) -> None:
    if kind != "introselect":
        raise ValueError(f"select kind must be 'introselect' (got {kind!r})")
    _check_order(order)
    places = concrete(kth)
    if places.dtype.kind in "fc":
        raise TypeError("Partition index must be integer")
    if places.dtype.kind == "b":
        raise ValueError("Booleans unacceptable as partition index")
    for k in places.ravel().tolist():
        if not -n <= k < n:
            raise ValueError(f"kth(={k}) out of bounds ({n})")


@function()
def partition(
    a: Array, kth: Static, axis: Static = -1, kind: Static = "introselect", order: Static = None
):
    """A copy with the elements `kth` where sorting puts them, smaller ones before: it is sorted."""
    t, axis = _along(a, axis)
    _check_partition(t.shape[axis], kth, kind, order)
    return _order.sort(t, axis)


@function("ndarray.partition")
def _partition_in_place(
    self: View,
    kth: Static,
    /,
    axis: Static = -1,
    kind: Static = "introselect",
    order: Static = None,
) -> None:
    """Partition in place along `axis`. ValueError for a read-only array."""
    t, axis = _along(self.tensor, axis_index(axis, self.ndim))
    if not self._scalar:
        check_writeable(self, "partition array is read-only")
    _check_partition(t.shape[axis], kth, kind, order)
    write(self, _order.sort(t, axis))


@function(method=True)
def argpartition(
    a: Array, kth: Static, axis: Static = -1, kind: Static = "introselect", order: Static = None
):
    """Indices that partition along `axis` (they sort it): int64."""
    a = a.reshape(-1) if a.dim() == 0 else a
    t, axis = _along(a, axis)
    _check_partition(t.shape[axis], kth, kind, order)
    return _order.argsort(t, axis).contiguous()


@function()
def lexsort(keys: Arrays, axis: Static = -1):
    """Indices that sort by the last key, then the one before it, and so on: int64."""
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({k.shape for k in keys}) > 1:
        raise ValueError("all keys need to be the same shape")
    if keys[0].dim() == 0:
        axis_index(axis, 1)
        return torch.zeros((), dtype=torch.int64, device=keys[0].device)
    return _order.lexsort(keys, axis_index(axis, keys[0].dim()))


def check_side(side: Any) -> bool:
    """Whether `side` says "right". ValueError for anything but "left" and "right"."""
    if not (isinstance(side, str) and side[:1].lower() in ("l", "r")):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    return side[0].lower() == "r"


@function(method=True)
def searchsorted(a: Array, v: Array, side: Static = "left", sorter: Array | None = None):
    """Where to insert `v` into the sorted 1-D `a` to keep it sorted: int64 of the shape of `v`."""
    right = check_side(side)
    if a.dim() != 1:
        raise ValueError("object too deep for desired array" if a.dim() else _SHALLOW)
    if sorter is not None:
        if sorter.dtype.is_floating_point or sorter.dtype.is_complex:
            raise TypeError("sorter must only contain integers")
        if sorter.numel() != a.numel():
            raise ValueError("sorter.size must equal a.size")
        index, n = sorter.to(torch.int64), len(a)
        if readable(index) and bool(((index < 0) | (index >= n)).any()):
            raise ValueError("Sorter index out of range.")
        a = select_rows(a, 0, torch.where(index < 0, n, index))  # no index counts from the end
    dtype = result_type(a.dtype, v.dtype)
    return _order.search(*together(cast(a, dtype), cast(v, dtype)), right)


_SHALLOW = "object of too small depth for desired array"


# positions of what is not zero


def nonzero_mask(a: torch.Tensor) -> torch.Tensor:
    """Which elements are not zero: bool."""
    return cast(bits(a), torch.bool)


def positions(mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The indices of the true elements along each axis. DataDependent without data."""
    need_data(mask)
    return tuple(torch.nonzero(mask, as_tuple=True))


def refuse_scalar(a: torch.Tensor) -> None:
    """ValueError, NumPy's own, for a 0-D tensor."""
    if a.dim() == 0:
        np.nonzero(np.zeros((), TO_NUMPY[a.dtype]))


@function(kind=Kind.DATA, method=True)
def nonzero(a: Array):
    """Indices of the elements that are not zero, one int64 array for each axis: a tuple."""
    refuse_scalar(a)
    return positions(nonzero_mask(a))


@function(kind=Kind.DATA)
def flatnonzero(a: Array):
    """Indices into the flat array of the elements that are not zero: int64."""
    return positions(nonzero_mask(a).reshape(-1))[0]


@function(kind=Kind.DATA)
def argwhere(a: Array):
    """Indices of the elements that are not zero, one row for each: int64[n, a.ndim]."""
    mask = nonzero_mask(a)
    need_data(mask)
    if mask.dim() == 0:
        return torch.zeros((int(mask), 0), dtype=torch.int64, device=a.device)
    return torch.nonzero(mask)
