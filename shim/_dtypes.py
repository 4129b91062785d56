"""Data types: NumPy's dtype objects outside, torch's inside, NumPy's own promotion between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


class NotSupported(NotImplementedError):
    """The shim lacks this NumPy feature (a dtype, a parameter, a function).

    A compiled function answers it with a break: the call runs in NumPy itself.
    """


class DataDependent(Exception):
    """A result's shape or Python value depends on data that a meta tensor has not."""


TO_NUMPY: dict[torch.dtype, np.dtype] = {
    torch.bool: np.dtype(np.bool_),
    torch.int8: np.dtype(np.int8),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64),
    torch.uint8: np.dtype(np.uint8),
    torch.uint16: np.dtype(np.uint16),
    torch.uint32: np.dtype(np.uint32),
    torch.uint64: np.dtype(np.uint64),
    torch.float16: np.dtype(np.float16),
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.complex64: np.dtype(np.complex64),
    torch.complex128: np.dtype(np.complex128),
}
TO_TORCH: dict[np.dtype, torch.dtype] = {n: t for t, n in TO_NUMPY.items()}
# C's other names for the same widths (np.longlong beside np.int64) are equal but distinct dtypes.
for _char in "lLqQ":
    TO_TORCH.setdefault(np.dtype(_char), TO_TORCH[np.dtype(np.dtype(_char).str)])
NUMPY_DTYPES = frozenset(TO_TORCH)  # of arrays that torch can hold

# Unsigned types that torch can store but hardly compute with, and a type that holds every value
# (uint64: the same bits). `_unsigned.py` computes in these.
WIDER: dict[torch.dtype, torch.dtype] = {
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
    torch.uint64: torch.int64,
}


def numpy_dtype(dtype: torch.dtype) -> np.dtype:
    """The NumPy dtype of a torch dtype; NotSupported for those NumPy has not (bfloat16)."""
    try:
        return TO_NUMPY[dtype]
    except KeyError:
        raise NotSupported(f"NumPy has no dtype for {dtype}") from None


def torch_dtype(dtype: Any) -> torch.dtype:
    """The torch dtype of anything NumPy accepts as a dtype.

    Errors: TypeError where NumPy gives one; NotSupported for dtypes torch has not (longdouble,
    strings, dates, structured, object, non-native byte order).
    """
    if isinstance(dtype, torch.dtype):
        return dtype
    try:
        return TO_TORCH[dtype]  # np.dtype instances, the frequent case
    except (KeyError, TypeError):
        pass
    if hasattr(type(dtype), "__array_ufunc__"):  # arrays, which tell theirs
        raise TypeError("Cannot construct a dtype from an array")
    resolved = np.dtype(dtype)
    try:
        return TO_TORCH[resolved]
    except KeyError:
        raise NotSupported(f"dtype {resolved.str!r} has no torch counterpart") from None


class Weak:
    """A Python number whose value lives in a 0-D tensor: weak in promotion, unknown when traced.

    `tensor` is 0-D float64, int64 or complex128; `kind` is `float`, `int` or `complex`. `_limits`:
    the integers between which it has to be, where it was stored into an integer array.
    """

    __slots__ = ("_limits", "kind", "tensor")

    def __init__(self, tensor: torch.Tensor, kind: type):
        self.tensor = tensor
        self.kind = kind
        self._limits: tuple[int, int] | None = None


NUMBERS = (int, float, complex)  # Python's, weak in promotion


def promotion_kind(value: Any) -> Any:
    """What an operand is to promotion: a torch dtype, or a Python number type when weak."""
    if isinstance(value, torch.Tensor):
        return value.dtype
    if isinstance(value, Weak):
        return value.kind
    return next(t for t in NUMBERS if isinstance(value, t))


_result_memo: dict[tuple, torch.dtype] = {}


def result_type(*kinds: Any) -> torch.dtype:
    """NumPy's promotion of torch dtypes and of the weak Python kinds `int`, `float`, `complex`."""
    found = _result_memo.get(kinds)
    if found is None:
        examples = [k(0) if isinstance(k, type) else TO_NUMPY[k] for k in kinds]
        found = _result_memo[kinds] = torch_dtype(np.result_type(*examples))
    return found


INT_RANGE: dict[torch.dtype, tuple[int, int]] = {
    t: (int(np.iinfo(n).min), int(np.iinfo(n).max)) for t, n in TO_NUMPY.items() if n.kind in "iu"
}


def check_python_int(value: int, dtype: torch.dtype) -> None:
    """OverflowError, with NumPy's text, when a Python int does not fit an integer dtype."""
    limits = INT_RANGE.get(dtype)
    if limits is not None and not limits[0] <= value <= limits[1]:
        TO_NUMPY[dtype].type(value)  # raises in NumPy's own words
        raise OverflowError(f"Python integer {value} out of bounds for {TO_NUMPY[dtype]}")
