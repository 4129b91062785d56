"""Order statistics: median, quantile, percentile, and their versions without NaNs."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from . import _order
from ._apply import (
    NUMBERS,
    axis_tuple,
    call,
    flag,
    gather,
    inexact,
    merge_axes,
    operand_tensor,
    readable,
    select_rows,
)
from ._assigned import upheld
from ._dtypes import NotSupported, Weak, result_type
from ._nan_reductions import nanmean
from ._ndarray import ndarray
from ._normalize import Array, NoValue, Operand, Out, Static, function
from ._quiet import warn
from ._reductions import mean_of
from ._shapes import let_numpy_raise
from ._unsigned import cast

_CONTINUOUS = {  # alpha and beta of Hyndman and Fan, The American Statistician 50(4), 1996
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
}
_DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
_METHODS = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation"),
    *("interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased"),
    *("normal_unbiased", "lower", "higher", "midpoint", "nearest"),
)


@cache
def _weak_q() -> bool:
    """Whether a Python number as `q` is weak, or an array of the dtype of `a` (if of floats), or
    of ints: as the NumPy at hand has it."""
    return np.quantile([0], 0, method="weibull").dtype.kind == "f"


def _sorted_last(a: torch.Tensor, axis: Any) -> tuple[torch.Tensor, tuple[int, ...]]:
    """The reduced axes merged into a last one and sorted; those axes."""
    axes = tuple(range(a.dim())) if axis is None else axis_tuple(axis, a.dim())
    rest = [n for d, n in enumerate(a.shape) if d not in axes]
    if axis is not None and len(axes) != 1 and 0 in rest:  # NumPy merges them by a reshape
        let_numpy_raise(np.empty(0).reshape, (*rest, -1))
    return _order.sort(merge_axes(a, axes), -1), axes


def _restore(result: torch.Tensor, axes: tuple, keepdims: bool, lead: int = 0):
    """Put the reduced axes back, 1 long, behind `lead` axes: an array even of rank 0."""
    if not keepdims:
        return result
    for axis in sorted(axes):
        result = result.unsqueeze(lead + axis)
    return ndarray(result)


# median


@function()
def median(
    a: Array,
    axis: Static = None,
    out: Out = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
):
    """Middle value over `axis`, or the mean of the two: float64 of ints. NaN where there is one.

    `overwrite_input` permits what is never done: `a` stays as it is.
    """
    ordered, axes = _sorted_last(a, axis)
    n = ordered.shape[-1]
    low = max((n - 1) // 2, 0)
    result = mean_of(ordered[..., low : n // 2 + 1], -1)
    if inexact(a) and n:
        last = ordered[..., -1]
        result = torch.where(torch.isnan(last), last, result)
    return _restore(result, axes, bool(keepdims))


@function()
def nanmedian(
    a: Array,
    axis: Static = None,
    out: Out = None,
    overwrite_input: bool = False,
    keepdims: Static = NoValue,
):
    """Median over `axis` of what is no NaN; NaN and a warning where nothing is."""
    keepdims = flag(keepdims)
    if 0 in a.shape:
        return nanmean(ndarray(a), axis, keepdims=keepdims)
    ordered, axes = _sorted_last(a, axis)
    n = ordered.shape[-1]
    if not inexact(a):
        return _restore(mean_of(ordered[..., (n - 1) // 2 : n // 2 + 1], -1), axes, keepdims)
    count = torch.sum(~torch.isnan(ordered), -1, keepdim=True)
    pair = [gather(ordered, -1, (at // 2).clamp(min=0)) for at in (count - 1, count)]
    middle = mean_of(torch.cat(pair, -1), -1)
    count = count.squeeze(-1)
    result = torch.where(count % 2 == 1, pair[0].squeeze(-1), middle)
    if readable(count):
        for _ in range(int(torch.sum(count == 0))):  # NumPy says it of each
            warn("All-NaN slice encountered")
    return _restore(result, axes, keepdims)


# quantiles


def _check_method(method: str) -> None:
    if method not in _METHODS:
        names = dict.fromkeys(_METHODS).keys()
        raise ValueError(f"{method!r} is not a valid method. Use one of: {names}")


def _step_down(index: torch.Tensor, odd_only: bool) -> torch.Tensor:
    """The discrete methods: the next position, or this one where the index is whole."""
    low = torch.floor(index)
    whole = index == low
    if odd_only:
        whole = whole & (low % 2 == 1)
    return torch.where(whole, low, low + 1).to(torch.int64).clamp(min=0)


def _position(n: Any, q: torch.Tensor, method: str) -> torch.Tensor:
    """The index, fractional or int64, at which the sorted values are read."""
    if method == "linear":
        return (n - 1) * q
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        if isinstance(alpha, float) and not q.dtype.is_floating_point:
            q = q.to(torch.float64)
        return n * q + (alpha + q * (1 - alpha - beta)) - 1
    if method == "averaged_inverted_cdf":
        return n * q - 1
    if not q.dtype.is_floating_point:
        q = q.to(torch.float64)
    if method == "inverted_cdf":
        return _step_down(n * q - 1, False)
    if method == "closest_observation":
        return _step_down(n * q - 1 - 0.5, True)
    at = (n - 1) * q
    if method == "midpoint":
        return 0.5 * (torch.floor(at) + torch.ceil(at))
    rounding = {"lower": torch.floor, "higher": torch.ceil, "nearest": torch.round}[method]
    return rounding(at).to(torch.int64)


def _weight(position: torch.Tensor, low: torch.Tensor, method: str) -> torch.Tensor:
    """How far between two neighbours a fractional position lies."""
    share = position - low
    if method == "averaged_inverted_cdf":
        share = torch.where(share == 0, 0.5, 1.0)
    elif method == "midpoint":
        share = torch.where(position % 1 == 0, 0.0, 0.5)
    return share.to(position.dtype)


def _interpolate(low: torch.Tensor, high: torch.Tensor, t: torch.Tensor, weak: bool):
    """From `low` to `high` by `t`, monotonic: from the nearer end."""
    step = call("subtract", high, low)
    rest = 1 - t
    if weak:
        kind = result_type(step.dtype, float)
        step, t, rest = cast(step, kind), t.to(kind), rest.to(kind)
    up = call("add", low, call("multiply", step, t))
    down = call("subtract", high, call("multiply", step, rest))
    return torch.where(t >= 0.5, down, up)


def _read(ordered: torch.Tensor, at: torch.Tensor, lead: int) -> torch.Tensor:
    """Sorted values at positions of shape `lead` axes, and maybe those of the slices."""
    if at.dim() == lead:
        return select_rows(ordered.movedim(-1, 0), 0, at)
    shape = at.shape
    flat = at.reshape((-1, *shape[lead:])).movedim(0, -1)
    found = gather(ordered, -1, flat)
    return found.movedim(-1, 0).reshape(shape)


def _quantile(a, q, axis, method, keepdims, skip_nan, scale):
    if a.dtype.is_complex:
        raise TypeError("a must be an array of real numbers")
    weak = isinstance(q, Weak) or (isinstance(q, NUMBERS) and not isinstance(q, bool))
    q = operand_tensor(q, a.device)
    if weak and not _weak_q():
        weak, q = False, cast(q, a.dtype) if inexact(a) else q
    if scale != 1:
        q = call("divide", q, scale)
    what, top = ("Percentiles", 100) if scale == 100 else ("Quantiles", 1)
    error = ValueError(f"{what} must be in the range [0, {top}]")
    q = upheld(q, ((q >= 0) & (q <= 1)).all(), error)
    if q.dim() > 2:
        raise ValueError("q must be a scalar or 1d")
    _check_method(method)
    if skip_nan and 0 in a.shape:
        return nanmean(ndarray(a), axis, keepdims=keepdims)
    ordered, axes = _sorted_last(a, axis)
    rest, lead = ordered.shape[:-1], q.dim()
    n = ordered.shape[-1]
    skip_nan = skip_nan and inexact(a)
    if n == 0:
        first = -1 if inexact(a) else 0  # floats are looked at for a nan, which is the last one
        raise IndexError(f"index {first} is out of bounds for axis 0 with size 0")
    count = n
    if skip_nan:
        count = torch.sum(~torch.isnan(ordered), -1)
        if readable(count) and bool((count == 0).any()):
            warn("All-NaN slice encountered")
        q = q.reshape((*q.shape, *(1,) * len(rest)))
        present = count.clamp(min=1)
        count = present.to(q.dtype) if q.dtype.is_floating_point else present
    position = _position(count, q, method)
    last = count - 1
    whole = not position.dtype.is_floating_point
    if method in _DISCRETE or (whole and method == "linear"):
        at = (
            position.clamp(max=last)
            if isinstance(last, int)
            else torch.minimum(position, last.to(torch.int64))
        )
        result = _read(ordered, at, lead)
    else:
        floor = position if whole else torch.floor(position)
        top = position >= last
        low = torch.where(top, last, torch.where(position < 0, 0, floor)).to(torch.int64)
        high = torch.where(top | (position < 0), low, low + 1)
        share = _weight(position, low.to(position.dtype), method)
        share = torch.where(top | (position < 0), torch.zeros_like(share), share)
        below, above = _read(ordered, low, lead), _read(ordered, high, lead)
        if share.dim() == lead:
            share = share.reshape((*share.shape, *(1,) * len(rest)))
        result = _interpolate(below, above, share, weak)
    if inexact(a) and not skip_nan:
        nan = ordered[..., -1]
        result = torch.where(torch.isnan(nan), nan.to(result.dtype), result)
    return _restore(result if skip_nan else result.contiguous(), axes, keepdims, lead)


def _no_weights(name: str, weights: Any) -> None:
    if weights is not None:
        raise NotSupported(f"{name}(weights=...)")


@function()
def quantile(
    a: Array,
    q: Operand,
    axis: Static = None,
    out: Out = None,
    overwrite_input: bool = False,
    method: Static = "linear",
    keepdims: bool = False,
    *,
    weights: Static = None,
):
    """Values below which the shares `q` in [0, 1] of the data lie: shape q.shape + reduced shape.

    `overwrite_input` permits what is never done. Errors: ValueError for q or method, TypeError for
    bool and complex data, NotSupported for weights.
    """
    _no_weights("quantile", weights)
    return _quantile(a, q, axis, method, bool(keepdims), False, 1)


@function()
def percentile(
    a: Array,
    q: Operand,
    axis: Static = None,
    out: Out = None,
    overwrite_input: bool = False,
    method: Static = "linear",
    keepdims: bool = False,
    *,
    weights: Static = None,
):
    """As `quantile`, with `q` in [0, 100]."""
    _no_weights("percentile", weights)
    return _quantile(a, q, axis, method, bool(keepdims), False, 100)


@function()
def nanquantile(
    a: Array,
    q: Operand,
    axis: Static = None,
    out: Out = None,
    overwrite_input: bool = False,
    method: Static = "linear",
    keepdims: Static = NoValue,
    *,
    weights: Static = None,
):
    """As `quantile`, of what is no NaN; NaN and a warning where nothing is."""
    _no_weights("nanquantile", weights)
    return _quantile(a, q, axis, method, flag(keepdims), True, 1)


@function()
def nanpercentile(
    a: Array,
    q: Operand,
    axis: Static = None,
    out: Out = None,
    overwrite_input: bool = False,
    method: Static = "linear",
    keepdims: Static = NoValue,
    *,
    weights: Static = None,
):
    """As `nanquantile`, with `q` in [0, 100]."""
    _no_weights("nanpercentile", weights)
    return _quantile(a, q, axis, method, flag(keepdims), True, 100)
