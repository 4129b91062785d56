"""Sets of values: unique and what is made of it, membership."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from . import _order
from ._apply import axis_index, is_nan, join, kind_of, need_data, select_rows, together
from ._dtypes import TO_NUMPY, result_type
from ._normalize import Array, Static, function
from ._table import Kind
from ._unsigned import bits, cast, order_key


class _Unique:
    """The distinct values of a 1-D tensor in order, and where they are."""

    def __init__(self, t: torch.Tensor, equal_nan: bool = True):
        need_data(t)
        self.order = _order.argsort(t, 0)
        ordered = select_rows(t, 0, self.order)
        self._fill(_order.starts(ordered, equal_nan))
        self.values = select_rows(ordered, 0, self.begins)

    def _fill(self, first: torch.Tensor) -> None:
        self.first = first
        self.begins = torch.nonzero(first).reshape(-1)

    @property
    def index(self) -> torch.Tensor:
        """Where each value appears first."""
        return self.order[self.begins]

    @property
    def inverse(self) -> torch.Tensor:
        """Which value each element is."""
        number = torch.cumsum(self.first.to(torch.int64), 0) - 1
        return torch.zeros_like(self.order).scatter(0, self.order, number)

    @property
    def counts(self) -> torch.Tensor:
        """How often each value appears."""
        ends = torch.cat([self.begins, self.begins.new_tensor([len(self.order)])])
        return ends[1:] - ends[:-1]


class _UniqueRows(_Unique):
    """The distinct rows of a 2-D tensor in lexicographic order; NaNs are never one value."""

    def __init__(self, rows: torch.Tensor):
        need_data(rows)
        n, width = rows.shape
        columns = [rows[:, i] for i in reversed(range(width))]
        device = rows.device
        self.order = _order.lexsort(columns, 0) if width else torch.arange(n, device=device)
        ordered = select_rows(rows, 0, self.order)
        key = bits(ordered)
        changed = key[1:] != key[:-1]
        head = torch.ones(min(n, 1), dtype=torch.bool, device=device)
        self._fill(torch.cat([head, changed.any(1)]))
        self.values = select_rows(ordered, 0, self.begins)


@function(kind=Kind.DATA, scalar=False)
def unique(
    ar: Array,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Static = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
):
    """Distinct values in order; of slices along `axis` when given. A tuple when more is asked.

    `sorted=False` permits any order; it is sorted nevertheless.
    """
    if axis is not None:
        axis = axis_index(axis, ar.dim())
    if axis is None or ar.dim() == 1:
        found = _Unique(ar.reshape(-1), bool(equal_nan))
        values, shape = found.values, ar.shape
    else:
        moved = ar.movedim(axis, 0)
        width = moved[0].numel() if len(moved) else int(np.prod(moved.shape[1:]))
        found = _UniqueRows(moved.reshape(len(moved), width))
        rows = found.values.reshape(len(found.begins), *moved.shape[1:])
        values, shape = rows.movedim(0, axis), (len(moved),)
    parts = [values]
    if return_index:
        parts.append(found.index)
    if return_inverse:
        parts.append(found.inverse.reshape(shape))
    if return_counts:
        parts.append(found.counts)
    return parts[0] if len(parts) == 1 else tuple(parts)


def _result_class(name: str) -> Any:
    """NumPy's own class of the named tuple that a function returns."""
    return type(getattr(np, name)(np.zeros(1)))


_AllResult = _result_class("unique_all")
_CountsResult = _result_class("unique_counts")
_InverseResult = _result_class("unique_inverse")


@function(kind=Kind.DATA, scalar=False)
def unique_all(x: Array):
    """Distinct values, first indices, inverse and counts: NumPy's named tuple. Each NaN counts."""
    found = _Unique(x.reshape(-1), False)
    return _AllResult(found.values, found.index, found.inverse.reshape(x.shape), found.counts)


@function(kind=Kind.DATA, scalar=False)
def unique_counts(x: Array):
    """Distinct values and how often each appears: NumPy's named tuple. Each NaN counts."""
    found = _Unique(x.reshape(-1), False)
    return _CountsResult(found.values, found.counts)


@function(kind=Kind.DATA, scalar=False)
def unique_inverse(x: Array):
    """Distinct values and which of them each element is: NumPy's named tuple. Each NaN counts."""
    found = _Unique(x.reshape(-1), False)
    return _InverseResult(found.values, found.inverse.reshape(x.shape))


@function(kind=Kind.DATA, scalar=False)
def unique_values(x: Array):
    """Distinct values in order. Each NaN counts."""
    return _Unique(x.reshape(-1), False).values


# two sets


def _both(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both flat and of their common dtype."""
    dtype = result_type(a.dtype, b.dtype)
    return tuple(together(cast(a.reshape(-1), dtype), cast(b.reshape(-1), dtype)))


@function(kind=Kind.DATA)
def union1d(ar1: Array, ar2: Array):
    """Distinct values of both in order: 1-D."""
    return _Unique(join(list(_both(ar1, ar2)))).values


@function(kind=Kind.DATA)
def intersect1d(ar1: Array, ar2: Array, assume_unique: bool = False, return_indices: bool = False):
    """Values that both have, in order: 1-D; also their first indices when asked."""
    need_data(ar1, ar2)
    a, b = _both(ar1, ar2)
    ia = ib = None
    if not assume_unique:
        first, second = _Unique(a), _Unique(b)
        a, b, ia, ib = first.values, second.values, first.index, second.index
    together = join([a, b])
    order = _order.argsort(together, 0)
    ordered = select_rows(together, 0, order)
    twice = torch.nonzero(bits(ordered)[1:] == bits(ordered)[:-1]).reshape(-1)
    values = select_rows(ordered, 0, twice)
    if not return_indices:
        return values
    at_a, at_b = order[twice], order[twice + 1] - len(a)
    if ia is not None:
        at_a, at_b = ia[at_a], ib[at_b]
    return values, at_a, at_b


@function(kind=Kind.DATA)
def setxor1d(ar1: Array, ar2: Array, assume_unique: bool = False):
    """Values that just one of the two has, in order: 1-D."""
    a, b = _both(ar1, ar2)
    if not assume_unique:
        a, b = _Unique(a).values, _Unique(b).values
    need_data(a)
    ordered = _order.sort(join([a, b]), 0)
    if len(ordered) == 0:
        return ordered
    edge = torch.ones(1, dtype=torch.bool, device=ordered.device)
    changed = torch.cat([edge, bits(ordered)[1:] != bits(ordered)[:-1], edge])
    return select_rows(ordered, 0, torch.nonzero(changed[1:] & changed[:-1]).reshape(-1))


@function(kind=Kind.DATA)
def setdiff1d(ar1: Array, ar2: Array, assume_unique: bool = False):
    """Values of the first that the second lacks: 1-D, in order unless `assume_unique`."""
    need_data(ar1, ar2)
    a, b = ar1.reshape(-1), ar2.reshape(-1)
    if not assume_unique:
        a = _Unique(a).values
    return select_rows(a, 0, torch.nonzero(~_among(a, b)).reshape(-1))


def _among(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Which elements of `a` the 1-D `b` has: bool of the shape of `a`."""
    if b.numel() == 0:
        return torch.zeros(a.shape, dtype=torch.bool, device=a.device)
    dtype = result_type(a.dtype, b.dtype)
    a, b = together(cast(a, dtype), cast(b, dtype))
    base, wanted = _order.common_ranks(b, a.reshape(-1))
    base = torch.sort(base).values
    at = torch.searchsorted(base, wanted.contiguous()).clamp(max=len(base) - 1)
    return ((base[at] == wanted) & ~is_nan(a.reshape(-1))).reshape(a.shape)


def _fits_table(values: torch.Tensor) -> bool:
    """Whether their range is a number of their own dtype, as NumPy's table asks."""
    if values.dtype is torch.bool or not values.numel():
        return True
    need_data(values)
    low, high = torch.aminmax(order_key(values))
    return int(high) - int(low) <= np.iinfo(TO_NUMPY[values.dtype]).max


@function(scalar=False)
def isin(
    element: Array,
    test_elements: Array,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Static = None,
):
    """Whether each element is among the test elements: bool of the shape of `element`.

    kind: "sort", "table" or None choose a way, not the answer. `assume_unique` likewise.
    """
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: {kind!r}. Please use None, 'sort' or 'table'.")
    if kind == "table" and not all(kind_of(t) in "biu" for t in (element, test_elements)):
        raise ValueError(
            "The 'table' method is only supported for boolean or integer arrays. Please select "
            "'sort' or None for kind."
        )
    if kind == "table" and element.numel() and not _fits_table(test_elements):
        raise RuntimeError(
            "You have specified kind='table', but the range of values in `ar2` or `ar1` exceed the "
            "maximum integer of the datatype. Please set `kind` to None or 'sort'."
        )
    found = _among(element, test_elements.reshape(-1))
    return ~found if invert else found
