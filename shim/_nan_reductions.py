"""Reductions that leave NaNs out: nansum, nanmax, nanmean, nanvar, nanargmax and their kin."""

from __future__ import annotations

from typing import Any

import torch

from ._apply import call, flag, inexact, operand_tensor, readable
from ._normalize import Array, DType, Into, NoValue, Operand, Out, Raw, Static, function
from ._quiet import warn
from ._reduce import normalize_axes, reduce_engine
from ._reductions import (
    _var,
    arg_extremum,
    degrees,
    divide_by,
    mean_of,
    root,
    squared,
    stored,
    summed,
    too_few,
)
from ._table import Kind
from ._unsigned import cast


def replace_nan(a: torch.Tensor, value: Any) -> torch.Tensor:
    """`a` with its NaNs replaced by a number; itself when its dtype has no NaN."""
    if not inexact(a):
        return a
    return torch.where(torch.isnan(a), torch.full((), value, dtype=a.dtype, device=a.device), a)


@function()
def nansum(
    a: Array,
    axis: Static = None,
    dtype: DType = None,
    out: Into = None,
    keepdims: Static = NoValue,
    initial: Operand = NoValue,
    where: Operand = NoValue,
):
    """Sum over `axis` with NaN as 0."""
    return reduce_engine("add", replace_nan(a, 0), axis, dtype, flag(keepdims), initial, where)


@function()
def nanprod(
    a: Array,
    axis: Static = None,
    dtype: DType = None,
    out: Into = None,
    keepdims: Static = NoValue,
    initial: Operand = NoValue,
    where: Operand = NoValue,
):
    """Product over `axis` with NaN as 1."""
    return reduce_engine("multiply", replace_nan(a, 1), axis, dtype, flag(keepdims), initial, where)


def _nan_extremum(a, axis, keepdims, initial, where, largest):
    name, plain = ("fmax", "maximum") if largest else ("fmin", "minimum")
    axes = normalize_axes(axis, a.dim())
    empty = any(a.shape[d] == 0 for d in axes)
    options = initial is not NoValue or where is not NoValue
    if a.dtype.is_complex or empty or (options and inexact(a)):
        result = reduce_engine(name, a, axis, None, keepdims, initial, where)
    else:
        filled = replace_nan(a, -torch.inf if largest else torch.inf)
        result = reduce_engine(plain, filled, axis, None, keepdims, initial, where)
        if inexact(a):
            missing = torch.isnan(a)
            none = torch.all(missing, axes, keepdims) if axes else missing
            result = torch.where(none, torch.nan, result)
    if inexact(result) and readable(result) and bool(torch.isnan(result).any()):
        warn("All-NaN slice encountered")
    return result


@function()
def nanmax(
    a: Array,
    axis: Static = None,
    out: Out = None,
    keepdims: Static = NoValue,
    initial: Operand = NoValue,
    where: Operand = NoValue,
):
    """Largest element over `axis` that is no NaN; NaN and a warning where there is none."""
    return _nan_extremum(a, axis, flag(keepdims), initial, where, True)


@function()
def nanmin(
    a: Array,
    axis: Static = None,
    out: Out = None,
    keepdims: Static = NoValue,
    initial: Operand = NoValue,
    where: Operand = NoValue,
):
    """Smallest element over `axis` that is no NaN; NaN and a warning where there is none."""
    return _nan_extremum(a, axis, flag(keepdims), initial, where, False)


def _check_inexact(dtype: torch.dtype | None) -> None:
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError("If a is inexact, then dtype must be inexact")


def _valid(a, axis, keepdims, where):
    """How many elements are no NaN: int64."""
    return reduce_engine("add", ~torch.isnan(a), axis, torch.int64, keepdims, NoValue, where)


@function()
def nanmean(
    a: Array,
    axis: Static = None,
    dtype: DType = None,
    out: Into = None,
    keepdims: Static = NoValue,
    *,
    where: Operand = NoValue,
):
    """Mean over `axis` of what is no NaN; NaN and a warning where nothing is."""
    keepdims = flag(keepdims)
    if not inexact(a):
        return mean_of(a, axis, dtype, keepdims, where)
    _check_inexact(dtype)
    count = _valid(a, axis, keepdims, where)
    if too_few(count, 0):
        warn("Mean of empty slice")
    total = reduce_engine("add", replace_nan(a, 0), axis, dtype, keepdims, NoValue, where)
    return divide_by(total, count)


def _nanvar(a, axis, dtype, out, ddof, keepdims, where, mean, correction):
    if not inexact(a):
        return _var(a, axis, dtype, out, ddof, keepdims, where, mean, correction)
    _check_inexact(dtype)
    ddof = degrees(ddof, correction)
    missing = torch.isnan(a)
    count = _valid(a, axis, keepdims, where)
    if mean is NoValue:
        total = reduce_engine("add", replace_nan(a, 0), axis, dtype, True, NoValue, where)
        mean = divide_by(total, _valid(a, axis, True, where))
    x = cast(call("subtract", replace_nan(a, 0), mean), a.dtype)  # of whatever dtype the mean is
    left_out = missing
    if where is not NoValue:
        left_out = missing | ~operand_tensor(where, a.device)
    x = torch.where(left_out, torch.zeros_like(x), x)
    x = summed(squared(x), dtype, out)
    total = reduce_engine("add", x, axis, dtype, keepdims, NoValue, where)
    freedom = count - ddof
    if too_few(freedom, 0):
        warn("Degrees of freedom <= 0 for slice.")
    result = divide_by(total, torch.where(freedom <= 0, torch.ones_like(freedom), freedom))
    return torch.where(freedom <= 0, torch.full_like(result, torch.nan), result)


@function()
def nanvar(
    a: Array,
    axis: Static = None,
    dtype: DType = None,
    out: Raw = None,
    ddof: Static = 0,
    keepdims: Static = NoValue,
    *,
    where: Operand = NoValue,
    mean: Operand = NoValue,
    correction: Static = NoValue,
):
    """Variance over `axis` of what is no NaN; NaN and a warning where too little is."""
    return stored(out, _nanvar(a, axis, dtype, out, ddof, flag(keepdims), where, mean, correction))


@function()
def nanstd(
    a: Array,
    axis: Static = None,
    dtype: DType = None,
    out: Raw = None,
    ddof: Static = 0,
    keepdims: Static = NoValue,
    *,
    where: Operand = NoValue,
    mean: Operand = NoValue,
    correction: Static = NoValue,
):
    """Standard deviation over `axis` of what is no NaN: the root of `nanvar`."""
    variance = _nanvar(a, axis, dtype, out, ddof, flag(keepdims), where, mean, correction)
    return stored(out, root(variance))


def _nan_arg(a, axis, keepdims, largest):
    if inexact(a) and readable(a) and a.numel():
        missing = torch.isnan(a)
        if bool((torch.all(missing) if axis is None or not a.dim() else missing.all(axis)).any()):
            raise ValueError("All-NaN slice encountered")
    filled = replace_nan(a, -torch.inf if largest else torch.inf)
    return arg_extremum(filled, axis, keepdims, largest)


@function(kind=Kind.LIBRARY)
def nanargmax(a: Array, axis: Static = None, out: Out = None, *, keepdims: Static = NoValue):
    """Index of the first largest element that is no NaN: int64. ValueError where there is none."""
    return _nan_arg(a, axis, flag(keepdims), True)


@function(kind=Kind.LIBRARY)
def nanargmin(a: Array, axis: Static = None, out: Out = None, *, keepdims: Static = NoValue):
    """Index of the first smallest element that is no NaN: int64. ValueError where there is none."""
    return _nan_arg(a, axis, flag(keepdims), False)
