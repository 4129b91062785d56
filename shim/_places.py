"""The frequent indices, as users have them: integers and slices of arrays in host memory.

What these give is what the rows of `_index.py` give, at a third of the cost; all else is theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ._host import is_concrete
from ._ndarray import ndarray, view_of, within

_WHOLE = frozenset((int, np.int64))
_MAYBE = frozenset((int, type(None)))
# Python's and NumPy's numbers that torch puts into an array as NumPy does.
_FITTING = {
    torch.float64: frozenset((float, np.float64, int)),
    torch.int64: frozenset((int,)),
    torch.int32: frozenset((int,)),
    torch.bool: frozenset((bool,)),
}


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
    """Whether an index has integers and forward slices, and torch takes it as NumPy does."""
    if type(index) is not tuple:
        return type(index) is int or _is_slice(index)
    return bool(index) and all(type(i) is int or _is_slice(i) for i in index)


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
                if type(value) in _FITTING.get(t.dtype, ()) and _is_basic(index) and is_concrete(t):
                    t[index] = value
                    return
            except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
                pass
        otherwise(self, index, value)

    return __setitem__
