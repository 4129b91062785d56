"""Reductions: sums, extrema, means, variances, positions of extrema."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import torch

from ._apply import (
    axis_tuple,
    call,
    default_float,
    flag,
    inexact,
    kind_of,
    operand_tensor,
    readable,
    smooth_root,
    strict_axis,
)
from ._assigned import upheld
from ._dtypes import result_type
from ._ndarray import ndarray, store
from ._normalize import Array, DType, Into, NoValue, Operand, Out, Raw, Static, function, widened
from ._quiet import warn
from ._reduce import normalize_axes, reduce_engine, result_size
from ._shapes import let_numpy_raise, let_numpy_warn
from ._table import Kind
from ._ufuncs import UFUNCS
from ._unsigned import cast, order_key


@function(method=True)
def sum(
    a: Array,
    axis: Static = None,
    dtype: DType = None,
    out: Into = None,
    keepdims: Static = NoValue,
    initial: Operand = NoValue,
    where: Operand = NoValue,
):
    """Sum over `axis` (int, tuple, None for all); small ints in int64 or uint64. AxisError."""
    return reduce_engine("add", a, axis, dtype, flag(keepdims), initial, where)


@function(method=True)
def prod(
    a: Array,
    axis: Static = None,
    dtype: DType = None,
    out: Into = None,
    keepdims: Static = NoValue,
    initial: Operand = NoValue,
    where: Operand = NoValue,
):
    """Product over `axis` (int, tuple, None for all); small ints in int64 or uint64. AxisError."""
    return reduce_engine("multiply", a, axis, dtype, flag(keepdims), initial, where)


@function("max", "amax", method=True)
def amax(
    a: Array,
    axis: Static = None,
    out: Into = None,
    keepdims: Static = NoValue,
    initial: Operand = NoValue,
    where: Operand = NoValue,
):
    """Largest element over `axis`, NaN if there is one. ValueError when there is no element."""
    return reduce_engine("maximum", a, axis, None, flag(keepdims), initial, where)


@function("min", "amin", method=True)
def amin(
    a: Array,
    axis: Static = None,
    out: Into = None,
    keepdims: Static = NoValue,
    initial: Operand = NoValue,
    where: Operand = NoValue,
):
    """Smallest element over `axis`, NaN if there is one. ValueError when there is no element."""
    return reduce_engine("minimum", a, axis, None, flag(keepdims), initial, where)


@function(method=True)
def any(
    a: Array,
    axis: Static = None,
    out: Out = None,
    keepdims: Static = NoValue,
    *,
    where: Operand = NoValue,
):
    """Whether any element over `axis` is true: bool."""
    return reduce_engine("logical_or", a, axis, None, flag(keepdims), NoValue, where)


@function(method=True)
def all(
    a: Array,
    axis: Static = None,
    out: Out = None,
    keepdims: Static = NoValue,
    *,
    where: Operand = NoValue,
):
    """Whether all elements over `axis` are true: bool."""
    return reduce_engine("logical_and", a, axis, None, flag(keepdims), NoValue, where)


@function()
def ptp(a: Array, axis: Static = None, out: Into = None, keepdims: Static = NoValue):
    """Largest less smallest element over `axis`. ValueError when there is no element."""
    largest = reduce_engine("maximum", a, axis, None, flag(keepdims))
    return call("subtract", largest, reduce_engine("minimum", a, axis, None, flag(keepdims)))


# NumPy's total count is a Python int, which only data can tell, or of late an int64
_COUNTS_IN_PYTHON = type(np.count_nonzero([])) is int


@function(kind=Kind.DATA if _COUNTS_IN_PYTHON else Kind.ARRAY)
def count_nonzero(a: Array, axis: Static = None, *, keepdims: bool = False):
    """How many elements over `axis` are not zero: int64, or a Python int as NumPy's is."""
    mask = cast(a, torch.bool)
    count = reduce_engine("add", mask, axis, torch.int64, bool(keepdims))
    if _COUNTS_IN_PYTHON and axis is None and not keepdims and readable(count):
        return int(count)
    return count


# means and variances


def count_of(a: torch.Tensor, axis: Any, keepdims: bool, where: Any) -> Any:
    """How many elements go into each result: an int, or with `where` an int64 tensor."""
    axes = normalize_axes(axis, a.dim())
    if a.dim() == 0 and axis is not None:
        axis_tuple(axis, 0)  # here NumPy accepts no axis of a 0-D array
    if where is NoValue or where is True:
        left = result_size(a, axes)
        if left:
            return a.numel() // left
        return int(np.prod([a.shape[i] for i in axes]))
    mask = operand_tensor(where, a.device)
    return reduce_engine("add", mask.expand(a.shape), axis, torch.int64, keepdims)


def divide_by(total: torch.Tensor, count: Any) -> torch.Tensor:
    """total / count in the dtype of `total`, cast where that is an integer."""
    if not inexact(total):
        return cast(cast(total, torch.float64) / count, total.dtype)
    return cast(total / count, total.dtype)


def too_few(count: Any, least: Any) -> bool:
    """Whether a count is known to be at most `least` somewhere."""
    if isinstance(count, torch.Tensor):
        return readable(count) and bool((count <= least).any())
    return bool(count <= least)


def mean_of(
    a: torch.Tensor, axis: Any, dtype: Any = None, keepdims: bool = False, where: Any = NoValue
) -> torch.Tensor:
    """The mean as NumPy computes it: ints in float64, float16 through float32."""
    count = count_of(a, axis, keepdims, where)
    if too_few(count, 0):
        warn("Mean of empty slice")
        zero = np.zeros(1) if a.dim() > len(normalize_axes(axis, a.dim())) else np.float64(0)
        let_numpy_warn(operator.truediv, zero, 0)
    half = dtype is None and a.dtype is torch.float16
    if dtype is None:
        dtype = torch.float32 if half else default_float(a)
    mean = divide_by(reduce_engine("add", a, axis, dtype, keepdims, NoValue, where), count)
    return mean.to(torch.float16) if half else mean


@function(method=True)
def mean(
    a: Array,
    axis: Static = None,
    dtype: DType = None,
    out: Into = None,
    keepdims: Static = NoValue,
    *,
    where: Operand = NoValue,
):
    """Mean over `axis`: float64 of ints, else of the dtype of `a`; NaN and a warning when empty."""
    return mean_of(a, axis, dtype, flag(keepdims), where)


def summed(x: torch.Tensor, dtype: Any, out: Any) -> torch.Tensor:
    """What is added up into `out`, in the dtype that it is added up in."""
    return x if out is None or dtype is not None else widened(x, out)


def stored(out: Any, result: torch.Tensor) -> Any:
    """A result, in `out` where there is one."""
    return result if out is None else store(out, result)


def degrees(ddof: Any, correction: Any) -> Any:
    """What is taken off the count; ValueError when both names are given."""
    if correction is NoValue:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def squared(x: torch.Tensor) -> torch.Tensor:
    """|x|**2, real."""
    if x.dtype.is_complex:
        return torch.square(x.real) + torch.square(x.imag)
    return call("square", x)


def _var(a, axis, dtype, out, ddof, keepdims, where, mean, correction):
    ddof = degrees(ddof, correction)
    count = count_of(a, axis, keepdims, where)
    if too_few(count, ddof):
        warn("Degrees of freedom <= 0 for slice")
    if dtype is None and not inexact(a):
        dtype = torch.float64
    if mean is NoValue:
        total = reduce_engine("add", a, axis, dtype, True, NoValue, where)
        mean = divide_by(total, count_of(a, axis, True, where))
    x = call("subtract", a, mean)
    # a real array against a complex mean is squared, not taken by its modulus
    x = call("square", x) if kind_of(a) in "iuf" else squared(x)
    total = reduce_engine("add", summed(x, dtype, out), axis, dtype, keepdims, NoValue, where)
    if isinstance(count, torch.Tensor):
        return divide_by(total, torch.clamp(count - ddof, min=0))
    return divide_by(total, max(count - ddof, 0))


@function(method=True, without=("correction",))
def var(
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
    """Variance over `axis`, divided by the count less `ddof`: real, float64 of ints."""
    return stored(out, _var(a, axis, dtype, out, ddof, flag(keepdims), where, mean, correction))


@function(method=True, without=("correction",))
def std(
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
    """Standard deviation over `axis`: the root of `var`, with its dtype."""
    variance = _var(a, axis, dtype, out, ddof, flag(keepdims), where, mean, correction)
    return stored(out, root(variance))


def root(variance: torch.Tensor) -> torch.Tensor:
    """The square root in the same dtype; TypeError for an array of integers."""
    if variance.dim() and not inexact(variance):
        UFUNCS["sqrt"](ndarray(variance), out=ndarray(variance.clone()))
    return cast(smooth_root(cast(variance, default_float(variance))), variance.dtype)


@function()
def average(
    a: Array,
    axis: Static = None,
    weights: Array | None = None,
    returned: bool = False,
    *,
    keepdims: Static = NoValue,
):
    """Weighted mean over `axis`; with `returned` also the sum of the weights.

    Errors: TypeError, ValueError for weights of another shape; ZeroDivisionError.
    """
    if axis is not None:
        axis = axis_tuple(axis, a.dim(), argname="axis")
    keepdims = flag(keepdims)
    if weights is None:
        avg = mean_of(a, axis, None, keepdims)
        scale = torch.full_like(avg, a.numel() / avg.numel())  # divides by zero as NumPy does
    else:
        weights = _fit_weights(a, weights, axis)
        kinds = (a.dtype, weights.dtype, *(() if inexact(a) else (torch.float64,)))
        dtype = result_type(*kinds)
        scale = reduce_engine("add", weights, axis, dtype, keepdims)
        error = ZeroDivisionError("Weights sum to zero, can't be normalized")
        scale = upheld(scale, (scale != 0).all(), error)
        total = call("multiply", cast(a, dtype), cast(weights, dtype))
        avg = call("divide", reduce_engine("add", total, axis, None, keepdims), scale)
    if not returned:
        return avg
    return avg, scale.expand(avg.shape).clone()


def _fit_weights(a: torch.Tensor, weights: torch.Tensor, axis: Any) -> torch.Tensor:
    if a.shape == weights.shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    if tuple(weights.shape) != tuple(a.shape[i] for i in axis):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    weights = weights.permute(*np.argsort(axis).tolist())
    shape = [n if i in axis else 1 for i, n in enumerate(a.shape)]
    return weights.reshape(shape).expand(a.shape)


# positions of extrema


def arg_extremum(a: torch.Tensor, axis: Any, keepdims: bool, largest: bool) -> torch.Tensor:
    """The first index of the extremum, a NaN counting as extreme: int64. ValueError when empty."""
    name = "argmax" if largest else "argmin"
    shape = a.shape
    if axis is None:
        a, dim = a.reshape(-1), 0
    else:
        dim = strict_axis(axis, max(a.dim(), 1))
        a = a.reshape(-1) if a.dim() == 0 else a
    if a.shape[dim] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    if a.numel() == 0:
        found = torch.zeros_like(a.select(dim, 0), dtype=torch.int64)
    elif a.dtype.is_complex:
        found = _arg_complex(a, dim, largest)
    else:
        key = a.to(torch.uint8) if a.dtype is torch.bool else order_key(a)
        found = (torch.argmax if largest else torch.argmin)(key, dim)
    if not keepdims:
        return found
    if axis is None:
        return found.reshape((1,) * len(shape))
    return found.unsqueeze(dim) if shape else found


def _arg_complex(a: torch.Tensor, dim: int, largest: bool) -> torch.Tensor:
    nan = torch.isnan(a)
    best, worst = (torch.amax, -torch.inf) if largest else (torch.amin, torch.inf)
    real = torch.where(nan, worst, a.real)
    top = real == best(real, dim, keepdim=True)
    imag = torch.where(top & ~nan, a.imag, worst)
    top = top & ~nan & (imag == best(imag, dim, keepdim=True))
    top = torch.where(nan.any(dim, keepdim=True), nan, top)
    return torch.argmax(top.to(torch.uint8), dim)


def _placed(places: torch.Tensor, out: Any) -> Any:
    """Indices, stored into `out`. TypeError for an `out` whose dtype is wider than an index."""
    if out is None:
        return places
    if isinstance(out, ndarray) and not np.can_cast(out.dtype, np.intp):
        let_numpy_raise(np.argmax, np.zeros(1), out=np.zeros((), out.dtype))
    return store(out, places)


@function(method=True)
def argmax(a: Array, axis: Static = None, out: Raw = None, *, keepdims: Static = NoValue):
    """Index of the first largest element along `axis` (None: of the flat array): int64."""
    return _placed(arg_extremum(a, axis, flag(keepdims), True), out)


@function(method=True)
def argmin(a: Array, axis: Static = None, out: Raw = None, *, keepdims: Static = NoValue):
    """Index of the first smallest element along `axis` (None: of the flat array): int64."""
    return _placed(arg_extremum(a, axis, flag(keepdims), False), out)
