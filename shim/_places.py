"""The frequent calls, as users have them: indices, of arrays in host memory, where NumPy reads and
writes; sums of whole arrays; `where`.

What these give is what the rows give, at a fraction of the cost; all else is theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.autograd.graph import increment_version

from ._dtypes import TO_NUMPY, WIDER, NotSupported
from ._float_errors import asked
from ._host import is_concrete, is_unfollowed
from ._ndarray import fresh, ndarray, to_numpy, view_of, within
from ._shapes import laid_by_all

_WHOLE = frozenset((int, np.int64))
_BASIC = frozenset((int, type(None), type(Ellipsis)))
_MAYBE = frozenset((int, type(None)))
# The numbers that NumPy puts into an array as the row does: its own of the array's dtype, and of
# Python's those that cannot be beyond it.
_FITTING = {t: frozenset((own.type,)) for t, own in TO_NUMPY.items()}
_FITTING[torch.float64] |= {float, int}
_FITTING[torch.int64] |= {int}
_FITTING[torch.int32] |= {int}
_FITTING[torch.bool] |= {bool}


def _is_slice(part: Any) -> bool:
    return (
        type(part) is slice
        and type(part.start) in _MAYBE
        and type(part.stop) in _MAYBE
        and (part.step is None or (type(part.step) is int and part.step > 0))
    )


def _names_one(index: Any, t: torch.Tensor) -> bool:
    """Whether an index has an integer for every axis."""
    if type(index) is not tuple:
        return type(index) in _WHOLE and t.dim() == 1
    return len(index) == t.dim() and all(type(i) in _WHOLE for i in index)


def _is_basic(index: Any) -> bool:
    """Whether an index gives a view, and torch takes it as NumPy does."""
    if type(index) is not tuple:
        return type(index) in _BASIC or _is_slice(index)
    known = 0 < len(index) <= 32 and all(type(i) in _BASIC or _is_slice(i) for i in index)
    return known and index.count(Ellipsis) < 2


class _Unusual(ValueError):
    """An index, or a value, that is the row's."""


_PARTS = frozenset((int, slice, type(None), type(Ellipsis)))


def _of_numpy(index: Any) -> Any:
    """An index with arrays among others, for NumPy."""
    if type(index) is ndarray:
        return _at_hand(index)
    if type(index) is not tuple:
        raise _Unusual
    return tuple(p if type(p) in _PARTS else _at_hand(p) for p in index)


def _at_hand(a: Any) -> np.ndarray:
    """An array in host memory as NumPy's own, on the same memory."""
    if type(a) is not ndarray or a._scalar or not is_concrete(a._t):
        raise _Unusual
    return to_numpy(a)  # type: ignore[no-any-return]


def getting(otherwise: Callable) -> Callable:
    """`__getitem__` of arrays; otherwise: for what is not frequent."""

    def __getitem__(self: ndarray, index: Any, /) -> Any:
        if not (self._flip or self._scalar):
            try:
                t = self._t
                if _names_one(index, t):
                    if is_concrete(t) and not within.wrapped:
                        return t.numpy()[index]
                elif type(t) is torch.Tensor and _is_basic(index):
                    return view_of(self, t[index])
                elif is_concrete(t) and not within.wrapped:
                    found = t.numpy()[_of_numpy(index)]
                    if type(found) is np.ndarray and found.base is None:
                        return fresh(torch.from_numpy(found))
            except (IndexError, RuntimeError, ValueError):
                pass  # of NotSupported, too: an array of NumPy's own
        return otherwise(self, index)

    return __getitem__


def setting(otherwise: Callable) -> Callable:
    """`__setitem__` of arrays; otherwise: for what is not frequent."""

    def __setitem__(self: ndarray, index: Any, value: Any, /) -> None:
        if not (self._flip or self._scalar or self._readonly):
            try:
                t = self._t
                if is_concrete(t) and not within.wrapped:
                    if type(value) not in _FITTING[t.dtype]:
                        value = _at_hand(value)
                        if value.dtype != TO_NUMPY[t.dtype]:
                            raise _Unusual
                    t.numpy()[index if _is_basic(index) else _of_numpy(index)] = value
                    increment_version(t)  # as autograd wants to know
                    return
            except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
                pass
        otherwise(self, index, value)

    return __setitem__


# The dtypes of which torch's sum is NumPy's, with the class of its value.
_SUMMED = {torch.int64: np.int64, torch.float32: np.float32, torch.float64: np.float64}


def summing(otherwise: Callable) -> Callable:
    """`sum` of a whole array; otherwise: for all else."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and type(a := args[0]) is ndarray and not a._flip:
            try:
                t = a._t
                kind = _SUMMED.get(t.dtype)
                if kind is not None:
                    r = t.sum()
                    if within.wrapped or not is_unfollowed(t):
                        return fresh(r, True)
                    found = kind(r.item())
                    if math.isfinite(found) or not asked()[1]:  # what is tiny is added exactly
                        return found
            except (NotSupported, RuntimeError):
                pass
        return otherwise(*args, **kwargs)

    return call


def choosing(otherwise: Callable) -> Callable:
    """`where` of arrays of one dtype, or of one of float64 and a float; otherwise: for all else."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 3 and not kwargs:
            condition, x, y = args
            try:
                if type(condition) is ndarray and not condition._flip:
                    mask = condition._t
                    if type(x) is ndarray and type(y) is ndarray:
                        a, b = x._t, y._t
                        dtype = a.dtype
                        flipped = x._flip or y._flip
                        fit = dtype is b.dtype and dtype not in WIDER and not flipped
                    else:
                        a, b = _beside(x, y), _beside(y, x)
                        fit = a is not None and b is not None
                    if fit and mask.dtype is torch.bool:
                        t = _where(mask, a, b)
                        if t.dim() > 1 and not t.is_contiguous():
                            t = laid_by_all(t, mask, a, b)
                        return fresh(t)
            except (NotSupported, RuntimeError):
                pass  # shapes and devices are the row's
        return otherwise(*args, **kwargs)

    return call


_where = torch.where


def _beside(v: Any, other: Any) -> Any:
    """The tensor of an array of float64, or a float, that stands beside one; None for others."""
    if type(v) is float:
        return v if type(other) is ndarray else None
    found = type(v) is ndarray and type(other) is float and not v._flip
    return v._t if found and v._t.dtype is torch.float64 else None
