"""New arrays: from data, of one value, and copies."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np
import torch

from ._assigned import assigned
from ._dtypes import NotSupported, Weak, torch_dtype
from ._layout import checked_shape, fill_operand, filled, like_order, new_order
from ._ndarray import as_array, is_of_batch, ndarray, read_array
from ._normalize import DType, Operand, Raw, Static, View, function
from ._shapes import (
    copied,
    is_c_contiguous,
    is_f_contiguous,
    let_numpy_raise,
    refuse_like,
    target_device,
)
from ._table import Kind
from ._unsigned import cast
from ._views import at_least

# from data


def _holds_shim_arrays(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_shim_arrays, value))
    return type(value) in (ndarray, Weak)


def _device(value: Any) -> torch.device:
    """Where the first array in a value lies."""
    if isinstance(value, Weak):
        return value.tensor.device
    if type(value) is ndarray:
        return value._t.device
    return _device(next(v for v in value if _holds_shim_arrays(v)))


def _given(value: Any, dtype: torch.dtype | None) -> tuple[ndarray, bool]:
    """An argument of array() as a shim array, and whether its memory is fresh."""
    if isinstance(value, (ndarray, np.ndarray, torch.Tensor)):
        return as_array(value), False
    if _holds_shim_arrays(value):
        if dtype is not None:
            return ndarray(assigned(value, dtype, _device(value))), True
        return as_array(value), not isinstance(value, Weak)
    if isinstance(value, np.generic) and dtype is not None:
        return ndarray(as_array(value)._t), True
    kind = type(value)
    if hasattr(kind, "__shim_array__"):
        return as_array(value), False
    if type(getattr(kind, "__array__", None)) is FunctionType:  # its own answers are not asked for
        return read_array(value), False  # it may have a gradient
    given = np.array(value, dtype=None if dtype is None else _numpy(dtype))
    return as_array(given), True


def _numpy(dtype: torch.dtype) -> np.dtype:
    from ._dtypes import TO_NUMPY

    return TO_NUMPY[dtype]


def _has_order(a: ndarray, order: str) -> bool:
    if order == "C":
        return is_c_contiguous(a)
    if order == "F":
        return is_f_contiguous(a)
    if order == "A":
        return is_c_contiguous(a) or is_f_contiguous(a)
    return True


def convert(
    value: Any,
    dtype: torch.dtype | None,
    copy: bool | None,
    order: str | None,
    device: torch.device | None = None,
) -> ndarray:
    """An array of the dtype, in the order, on the device: `value` itself if copy is not True and
    it is such an array already. ValueError where copy=False and only a copy will do."""
    order = "K" if order is None else order
    a, fresh = _given(value, dtype)
    t = a._t
    same = dtype is None or t.dtype is dtype
    same = same and not a._scalar and (device is None or t.device == device)
    same = same and _has_order(a, order)
    if same and copy is not True:
        if fresh and copy is False:
            np.array([0], copy=False)
        return a
    if copy is False:
        np.asarray([0], copy=False)
    if fresh and same:
        return a
    if dtype is not None and t.dtype is not dtype:
        a = ndarray(cast(t, dtype), a._flip)
    result = copied(a, order)
    return ndarray(result if device is None else result.to(device))


def _copy_flag(copy: Any) -> bool | None:
    if isinstance(copy, str):
        let_numpy_raise(np.array, 0, copy=copy)
    return None if copy is None else bool(copy)


@function(scalar=False)
def array(
    object: Raw,
    dtype: DType = None,
    *,
    copy: Static = True,
    order: Static = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Static = None,
):
    """A new array from an array-like: a copy, unless copy is None (if needed) or False (never).

    ndmin: axes of extent one are put in front until there are so many.
    Errors: ValueError for ragged lists, or copy=False where only a copy will do.
    """
    refuse_like(like)
    if ndmax != 0:
        raise NotSupported("np.array(ndmax=)")
    if ndmin > 32:
        let_numpy_raise(np.array, 0, ndmin=ndmin)
    return at_least(convert(object, dtype, _copy_flag(copy), order), ndmin)


@function(scalar=False)
def asarray(
    a: Raw,
    dtype: DType = None,
    order: Static = None,
    *,
    device: Static = None,
    copy: Static = None,
    like: Static = None,
):
    """`a` itself where it is an array of that dtype and order already, else a new one."""
    refuse_like(like)
    return convert(a, dtype, _copy_flag(copy), order, target_device(device))


@function(scalar=False)
def asanyarray(
    a: Raw,
    dtype: DType = None,
    order: Static = None,
    *,
    device: Static = None,
    copy: Static = None,
    like: Static = None,
):
    """As asarray: the shim has no subclasses."""
    refuse_like(like)
    return convert(a, dtype, _copy_flag(copy), order, target_device(device))


@function(kind=Kind.DATA, scalar=False)
def asarray_chkfinite(a: Raw, dtype: DType = None, order: Static = None):
    """As asarray. ValueError for data with infinities or NaNs."""
    result = convert(a, dtype, None, order)
    t = result._t
    if (t.is_floating_point() or t.is_complex()) and not bool(torch.isfinite(t).all()):
        raise ValueError("array must not contain infs or NaNs")
    return result


@function(scalar=False)
def ascontiguousarray(a: Raw, dtype: DType = None, *, like: Static = None):
    """An array of one dimension or more in C order; `a` itself where it is one."""
    refuse_like(like)
    return at_least(convert(a, dtype, None, "C"), 1)


@function(scalar=False)
def asfortranarray(a: Raw, dtype: DType = None, *, like: Static = None):
    """An array of one dimension or more in Fortran order; `a` itself where it is one."""
    refuse_like(like)
    return at_least(convert(a, dtype, None, "F"), 1)


@function(scalar=False)
def copy(a: View, order: str = "K", subok: bool = False):
    """A fresh copy, laid out in `order`."""
    return ndarray(copied(a, order))


# of one value


def _new(shape: Any, value: Any, dtype: Any, order: Any, device: Any, like: Any) -> ndarray:
    refuse_like(like)
    shape = checked_shape(shape)
    dtype = torch.float64 if dtype is None else dtype
    axes = new_order(order, len(shape))
    return ndarray(filled(shape, value, dtype, axes, target_device(device)))


@function(scalar=False)
def empty(
    shape: Static,
    dtype: DType = None,
    order: Static = "C",
    *,
    device: Static = None,
    like: Static = None,
):
    """A new array with any values."""
    return _new(shape, None, dtype, order, device, like)


@function(scalar=False)
def zeros(
    shape: Static,
    dtype: DType = None,
    order: Static = "C",
    *,
    device: Static = None,
    like: Static = None,
):
    """A new array of zeros."""
    return _new(shape, 0, dtype, order, device, like)


@function(scalar=False)
def ones(
    shape: Static,
    dtype: DType = None,
    order: Static = "C",
    *,
    device: Static = None,
    like: Static = None,
):
    """A new array of ones."""
    return _new(shape, 1, dtype, order, device, like)


@function(scalar=False)
def full(
    shape: Static,
    fill_value: Operand,
    dtype: DType = None,
    order: Static = "C",
    *,
    device: Static = None,
    like: Static = None,
):
    """A new array of one value, or of an array broadcast to the shape.

    Errors: OverflowError for a Python int that the dtype cannot hold; ValueError for shapes.
    """
    if dtype is None:
        dtype = _own_dtype(fill_value)
    return _new(shape, fill_operand(fill_value, dtype), dtype, order, device, like)


def _own_dtype(value: Any) -> torch.dtype:
    if isinstance(value, torch.Tensor):
        return value.dtype
    return torch_dtype(value.kind if isinstance(value, Weak) else np.array(value).dtype)


def _like(a: ndarray, value: Any, dtype: Any, order: Any, shape: Any, device: Any) -> ndarray:
    shape = tuple(a._t.shape) if shape is None else checked_shape(shape)
    dtype = a._t.dtype if dtype is None else dtype
    axes = like_order(a, order, shape)
    place = target_device(device)
    made = filled(shape, value, dtype, axes, a._t.device if place is None else place)
    if is_of_batch(a._t):  # one for each of a batch, to write to
        made = a._t.new_empty_strided(shape, made.stride(), dtype=dtype).copy_(made)
    return ndarray(made)


@function(scalar=False)
def empty_like(
    prototype: View,
    /,
    dtype: DType = None,
    order: Static = "K",
    subok: bool = True,
    shape: Static = None,
    *,
    device: Static = None,
):
    """A new array with any values, with the shape and dtype of another."""
    return _like(prototype, None, dtype, order, shape, device)


@function(scalar=False)
def zeros_like(
    a: View,
    dtype: DType = None,
    order: Static = "K",
    subok: bool = True,
    shape: Static = None,
    *,
    device: Static = None,
):
    """A new array of zeros, with the shape and dtype of another."""
    return _like(a, 0, dtype, order, shape, device)


@function(scalar=False)
def ones_like(
    a: View,
    dtype: DType = None,
    order: Static = "K",
    subok: bool = True,
    shape: Static = None,
    *,
    device: Static = None,
):
    """A new array of ones, with the shape and dtype of another."""
    return _like(a, 1, dtype, order, shape, device)


@function(scalar=False)
def full_like(
    a: View,
    fill_value: Operand,
    dtype: DType = None,
    order: Static = "K",
    subok: bool = True,
    shape: Static = None,
    *,
    device: Static = None,
):
    """A new array of one value, with the shape and dtype of another. Errors as for `full`."""
    value = fill_operand(fill_value, a._t.dtype if dtype is None else dtype)
    return _like(a, value, dtype, order, shape, device)
