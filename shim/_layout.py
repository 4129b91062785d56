"""New tensors: where they lie, and in what order of axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._dtypes import TO_NUMPY, Weak
from ._ndarray import as_array, from_numpy, ndarray
from ._shapes import (
    inverse,
    is_c_contiguous,
    is_f_contiguous,
    memory_order,
    reversed_axes,
    shape_tuple,
)
from ._unsigned import cast

_FITS_INT64 = range(-(2**63), 2**63)


def checked_shape(shape: Any) -> tuple:
    """The shape of a new array. ValueError for negative extents."""
    shape = shape_tuple(shape)
    if any(n < 0 for n in shape):
        raise ValueError("negative dimensions are not allowed")
    return shape


def new_order(order: Any, ndim: int) -> tuple[int, ...] | None:
    """The axes of a new array from slowest to fastest for order C or F; None for the usual."""
    if order == "C" or order is None:
        return None
    if order != "F":
        np.empty((), np.int8, order=order)  # NumPy's word on it
        return None
    return reversed_axes(ndim) if ndim > 1 else None


def like_order(a: ndarray, order: Any, shape: tuple) -> tuple[int, ...] | None:
    """The same for `*_like`: order K follows the prototype while the number of axes agrees."""
    if order == "K" and (len(shape) != a._t.dim() or is_c_contiguous(a)):
        return None
    axes = memory_order(ndarray(a._t), order) if len(shape) == a._t.dim() else None
    if axes is None:
        falls = is_f_contiguous(a) and not is_c_contiguous(a)
        by_column = order == "F" or (order == "A" and falls)
        return new_order("F" if by_column else "C", len(shape))
    return None if axes == tuple(range(len(axes))) else axes


def laid_as(given: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """`t`, its columns adjacent where those of `given` are and its rows are not."""
    if given.is_contiguous() or not given.permute(reversed_axes(given.dim())).is_contiguous():
        return t
    axes = reversed_axes(t.dim())
    return t.permute(axes).contiguous().permute(axes)


def filled(
    shape: tuple,
    value: Any,
    dtype: torch.dtype,
    axes: tuple[int, ...] | None = None,
    device: torch.device | None = None,
) -> torch.Tensor:
    """A fresh tensor of one value (None: any values), or of a tensor broadcast to the shape.

    axes: from the slowest to the fastest; None for C order.
    """
    laid = shape if axes is None else tuple(shape[d] for d in axes)
    if value is None:
        t = torch.empty(laid, dtype=dtype, device=device)
    elif isinstance(value, torch.Tensor):
        value = cast(value, dtype)
        t = torch.empty(laid, dtype=dtype, device=device or value.device)
        t = t if axes is None else t.permute(inverse(axes))
        return _copy_in(t, value)
    elif dtype is torch.bool:
        t = torch.full(laid, bool(value), dtype=dtype, device=device)
    elif value == 0 and repr(value) in ("0", "0.0", "0j"):  # not -0.0
        t = torch.zeros(laid, dtype=dtype, device=device)
    else:
        t = torch.full(laid, value, dtype=dtype, device=device)
    return t if axes is None else t.permute(inverse(axes))


def _copy_in(t: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    try:
        full = value.expand(t.shape)
    except RuntimeError:
        raise ValueError(
            f"could not broadcast input array from shape {_text(value.shape)} "
            f"into shape {_text(t.shape)}"
        ) from None
    return t.copy_(full)


def _text(shape: Any) -> str:
    return str(tuple(shape)).replace(" ", "")


def fill_operand(value: Any, dtype: torch.dtype) -> Any:
    """What `full` fills with, as `filled` takes it: a Python number of the dtype, or a tensor.

    Errors: OverflowError for a Python int that the dtype cannot hold.
    """
    if isinstance(value, Weak):
        return value.tensor
    if isinstance(value, torch.Tensor):
        return value
    number = np.full((), value, TO_NUMPY[dtype])[()].item()
    if isinstance(number, int) and number not in _FITS_INT64:
        return as_array(np.full((), value, TO_NUMPY[dtype])).tensor
    return number


def kind_of(value: Any) -> Any:
    """What an operand is to promotion: its torch dtype, or the Python type of a weak number."""
    if isinstance(value, torch.Tensor):
        return value.dtype
    if isinstance(value, Weak):
        return value.kind
    return torch.bool if isinstance(value, bool) else type(value)


def constant(a: np.ndarray, device: torch.device | None = None) -> torch.Tensor:
    """Data that is known when the call is made, as a tensor on `device`."""
    t = from_numpy(np.ascontiguousarray(a).reshape(a.shape))._t
    return t if device is None or t.device == device else t.to(device)
