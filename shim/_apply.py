"""Small steps that functions on tensors share: ufuncs on tensors, moves of any dtype, stores."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import torch

from ._dtypes import TO_NUMPY, DataDependent, NotSupported, Weak
from ._index_plan import has_data
from ._index_plan import readable as _readable
from ._ndarray import ndarray
from ._reduce import shape_text
from ._shapes import common_shape
from ._ufunc_math import sqrt
from ._ufuncs import UFUNCS
from ._unsigned import bits, unbits

NoValue = np._NoValue
NUMBERS = (bool, int, float, complex)


def readable(*tensors: Any) -> bool:
    """Whether the data of all may be looked at; see `_index_plan.readable`."""
    return all(_readable(t) for t in tensors if isinstance(t, torch.Tensor))


def need_data(*tensors: torch.Tensor) -> None:
    """DataDependent when a tensor has no data: on the meta device, or fake."""
    for t in tensors:
        if not has_data(t):
            raise DataDependent("the result depends on data, and there is none yet")


def together(*operands: Any) -> list[Any]:
    """Operands on one device: tensors in host memory go to where others are."""
    for o in operands:
        if isinstance(o, torch.Tensor) and not o.is_cpu:
            return [x.to(o.device) if isinstance(x, torch.Tensor) else x for x in operands]
    return list(operands)


def call(name: str, *operands: Any) -> torch.Tensor:
    """A ufunc on tensors, Weak and Python numbers, with NumPy's promotion: a fresh tensor."""
    operands = together(*operands)
    wrapped = [ndarray(o) if isinstance(o, torch.Tensor) else o for o in operands]
    return UFUNCS[name](*wrapped)._t


def kind_of(t: torch.Tensor) -> str:
    """NumPy's letter for the kind of dtype: b, i, u, f, c."""
    return TO_NUMPY[t.dtype].kind


def inexact(t: torch.Tensor) -> bool:
    """Whether the dtype is float or complex."""
    return t.dtype.is_floating_point or t.dtype.is_complex


def flag(value: Any) -> bool:
    """A bool parameter whose default is NoValue. TypeError for what is no integer."""
    if value is NoValue:
        return False
    try:
        return bool(operator.index(value))
    except TypeError:
        return np.add.reduce(np.zeros(1), keepdims=value).ndim > 0  # NumPy's word on it


def default_float(t: torch.Tensor) -> torch.dtype:
    """The dtype itself when inexact, else float64."""
    return t.dtype if inexact(t) else torch.float64


def operand_tensor(value: Any, device: torch.device | None = None) -> torch.Tensor:
    """An operand as a tensor: Python numbers in NumPy's default dtype, on `device`."""
    if isinstance(value, torch.Tensor):
        return value if device is None else value.to(device)
    t = value.tensor if isinstance(value, Weak) else torch.tensor(value, dtype=_default(value))
    return t if device is None else t.to(device)


def _default(value: Any) -> torch.dtype:
    if isinstance(value, bool):
        return torch.bool
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise NotSupported("a Python integer of more than 64 bits, an object to NumPy")
        return torch.int64 if value < 2**63 else torch.uint64
    return torch.float64 if isinstance(value, float) else torch.complex128


def axis_index(axis: Any, ndim: int) -> int:
    """An axis counted from the front; AxisError."""
    return np.lib.array_utils.normalize_axis_index(axis, ndim)


def strict_axis(axis: Any, ndim: int) -> int:
    """As `axis_index`, of the functions that NumPy has in C: they take no bool."""
    if isinstance(axis, bool):
        raise TypeError("an integer is required for the axis")
    return axis_index(axis, ndim)


def axis_tuple(axis: Any, ndim: int, argname: str | None = None) -> tuple[int, ...]:
    """Axes counted from the front; AxisError, ValueError for repeated ones."""
    return np.lib.array_utils.normalize_axis_tuple(axis, ndim, argname)


# moving values, in any dtype


def gather(t: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
    """torch.gather for every dtype."""
    return unbits(bits(t).gather(dim, index), t.dtype)


def select_rows(t: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
    """Elements along `dim` at an integer index of any shape, which takes the place of `dim`."""
    flat = unbits(torch.index_select(bits(t), dim, index.reshape(-1)), t.dtype)
    return flat.reshape((*t.shape[:dim], *index.shape, *t.shape[dim + 1 :]))


def join(parts: list[torch.Tensor], dim: int = 0) -> torch.Tensor:
    """Tensors of one dtype, one after the other."""
    return unbits(torch.cat([bits(p) for p in parts], dim), parts[0].dtype)


def merge_axes(t: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    """`axes` moved to the end and merged into one last axis."""
    rest = [d for d in range(t.dim()) if d not in axes]
    moved = t.permute(rest + list(axes))
    return moved.reshape((*(t.shape[d] for d in rest), math.prod(t.shape[d] for d in axes)))


def is_nan(t: torch.Tensor) -> torch.Tensor:
    """Where NaNs are: a bool tensor."""
    return torch.isnan(t) if inexact(t) else torch.zeros_like(t, dtype=torch.bool)


def smooth_root(t: torch.Tensor, power: float = 0.5) -> torch.Tensor:
    """A positive power of what is not negative. Its gradient at zero is zero, that of torch's own
    norm and std."""
    zero = t == 0
    safe = torch.where(zero, torch.ones_like(t), t)
    raised = sqrt(safe) if power == 0.5 else torch.pow(safe, power)
    return torch.where(zero, torch.zeros_like(t), raised)


def broadcast(*tensors: torch.Tensor, ufunc: bool = False) -> list[torch.Tensor]:
    """Tensors expanded to their common shape, on one device.

    ValueError in the words of np.broadcast, or in those of ufuncs.
    """
    first = tensors[0].shape
    if all(t.shape == first for t in tensors):
        return together(*tensors)
    try:
        shape = common_shape(*(t.shape for t in tensors))
    except ValueError:
        if not ufunc:
            raise
        raise ValueError(
            "operands could not be broadcast together with shapes "
            + "".join(shape_text(t.shape) + " " for t in tensors)
        ) from None
    return [t.expand(shape) for t in together(*tensors)]


# changing arrays in place


def check_writeable(a: Any, text: str = "assignment destination is read-only") -> None:
    """ValueError for a read-only array or a NumPy scalar."""
    if a._scalar or a._readonly:
        raise ValueError(text)
