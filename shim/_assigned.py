"""What is stored into an array: numbers, lists and arrays as tensors of the array's dtype.

An array is cast. A Python number has to fit: NumPy refuses nan, and what an integer dtype cannot
hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._dtypes import INT_RANGE, TO_NUMPY, Weak
from ._index_plan import readable
from ._ndarray import as_array, ndarray
from ._quiet import quiet
from ._unsigned import bits, cast, choose_by, to_signed, unbits


def assigned(
    value: Any, dtype: torch.dtype, device: torch.device, single: bool = False
) -> torch.Tensor:
    """A value to be stored, as a tensor of the dtype on the device.

    single: stored by a basic index, or an item of a list, where a signed integer dtype takes NumPy
    scalars as it takes Python numbers; elsewhere they are cast.

    Errors: ValueError, OverflowError, TypeError (a complex number) in NumPy's words. Where a
    number's value is not known yet, its `_limits` say between which integers it has to be.
    """
    if type(value) is ndarray:
        t = value.tensor.to(device)
        if single and value._scalar and dtype in INT_RANGE and dtype.is_signed:
            t = _confined(value, t, dtype)
        return cast(t, dtype)
    if isinstance(value, Weak):
        return _weakly(value, dtype).to(device)
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return _number(value, dtype, single).to(device)
    if isinstance(value, (list, tuple)):
        if not _with_arrays(value):
            with np.errstate(all="ignore"), quiet():  # as in `_number`
                value = np.array(value, dtype=TO_NUMPY[dtype])
        else:
            parts = [assigned(v, dtype, device, True) for v in value]
            if len({p.shape for p in parts}) == 1:
                return unbits(torch.stack([bits(p) for p in parts]), dtype)
    return cast(as_array(value).tensor.to(device), dtype)


def _with_arrays(values: Any) -> bool:
    return any(
        isinstance(v, (ndarray, Weak, np.ndarray))
        or (isinstance(v, (list, tuple)) and _with_arrays(v))
        for v in values
    )


def _number(value: Any, dtype: torch.dtype, single: bool) -> torch.Tensor:
    """A number whose value is known: NumPy itself stores it."""
    if isinstance(value, np.complexfloating) and not (dtype.is_complex or dtype is torch.bool):
        value = value.real  # who asks for it is told of that by NumPy
    place = np.empty(1, TO_NUMPY[dtype])
    with np.errstate(all="ignore"):
        if single:
            place[:] = value
        else:
            place[:] = np.array(value, place.dtype)
    stored = place.item()
    if type(stored) is int and stored >= 2**63:
        return as_array(place[0]).tensor
    return torch.full((), stored, dtype=dtype)


def _weakly(value: Weak, dtype: torch.dtype) -> torch.Tensor:
    """A Python number whose value is a parameter."""
    if value.kind is complex and not (dtype.is_complex or dtype is torch.bool):
        np.empty(1, TO_NUMPY[dtype])[:] = 0j  # a TypeError
    if dtype in INT_RANGE:
        value._limits = INT_RANGE[dtype]
    return cast(value.tensor, dtype)


def _confined(value: ndarray, t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A NumPy scalar that is about to become a signed integer, and has to fit."""
    low, high = INT_RANGE[dtype]
    if t.dtype is torch.bool:
        return t
    if t.dtype.is_complex:
        t = t.real
    if readable(t):
        return _number(TO_NUMPY[t.dtype].type(t.item()), dtype, True).to(t.device)
    if t.dtype.is_floating_point:
        whole = torch.trunc(t)
        fits = (whole >= low) & (whole < float(high + 1))
    else:
        given_low, given_high = INT_RANGE[t.dtype]
        if low <= given_low and given_high <= high:
            return t
        wide = to_signed(t)  # uint64: what is beyond int64 is negative
        fits = (wide >= (low if t.dtype.is_signed else 0)) & (wide <= high)
    value._limits = low, high
    return held(t, fits)


def held(t: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
    """`t`, on a condition that only the data tell: it is an index, out of bounds where it does not
    hold. NumPy, which runs the calls again then, has the words for it."""
    place = (~condition).to(torch.int64).reshape(1)
    true = torch.ones(1, dtype=torch.bool, device=t.device)[place].reshape(())
    return choose_by(true, t, torch.zeros_like(t))


def upheld(t: torch.Tensor, condition: torch.Tensor, error: Exception) -> torch.Tensor:
    """`t` where the condition holds: the error is raised at once, or see `held`."""
    if not readable(condition):
        return held(t, condition)
    if not bool(condition):
        raise error
    return t
