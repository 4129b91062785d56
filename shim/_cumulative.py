"""Running sums and products, differences, gradients, the trapezoidal rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._accumulate import accumulate_engine
from ._apply import (
    NUMBERS,
    axis_index,
    axis_tuple,
    call,
    default_float,
    inexact,
    join,
    kind_of,
    strict_axis,
    together,
)
from ._dtypes import TO_NUMPY, NotSupported, Weak, result_type
from ._nan_reductions import replace_nan
from ._ndarray import as_array, ndarray
from ._normalize import Array, DType, Into, NoValue, Operand, Raw, Static, function
from ._reduce import identity_of, reduce_engine
from ._unsigned import cast


def _running(name: str, a: torch.Tensor, axis: Any, dtype: Any) -> torch.Tensor:
    if axis is None:
        return accumulate_engine(name, a.reshape(-1), 0, dtype)
    a = a.reshape(1) if a.dim() == 0 else a
    return accumulate_engine(name, a, strict_axis(axis, a.dim()), dtype)


@function(method=True)
def cumsum(a: Array, axis: Static = None, dtype: DType = None, out: Into = None):
    """Running sums along `axis` (None: of the flat array); small ints in int64 or uint64."""
    return _running("add", a, axis, dtype)


@function(method=True)
def cumprod(a: Array, axis: Static = None, dtype: DType = None, out: Into = None):
    """Running products along `axis` (None: of the flat array); small ints in int64 or uint64."""
    return _running("multiply", a, axis, dtype)


@function()
def nancumsum(a: Array, axis: Static = None, dtype: DType = None, out: Into = None):
    """Running sums along `axis` with NaN as 0."""
    return _running("add", replace_nan(a, 0), axis, dtype)


@function()
def nancumprod(a: Array, axis: Static = None, dtype: DType = None, out: Into = None):
    """Running products along `axis` with NaN as 1."""
    return _running("multiply", replace_nan(a, 1), axis, dtype)


def _cumulative(name: str, x: torch.Tensor, axis: Any, dtype: Any, include_initial: bool):
    x = x.reshape(1) if x.dim() == 0 else x
    if axis is None:
        if x.dim() > 1:
            raise ValueError(
                "For arrays which have more than one dimension ``axis`` argument is required."
            )
        axis = 0
    result = accumulate_engine(name, x, axis, dtype)
    if include_initial:
        start = list(result.shape)
        start[axis] = 1
        identity = identity_of(name, result.dtype)
        first = torch.full(start, identity, dtype=result.dtype, device=x.device)
        result = join([first, result], axis)
    return result


@function()
def cumulative_sum(
    x: Array,
    /,
    *,
    axis: Static = None,
    dtype: DType = None,
    out: Into = None,
    include_initial: bool = False,
):
    """Running sums along `axis`, which an array of 2 or more axes must name."""
    return _cumulative("add", x, axis, dtype, include_initial)


@function()
def cumulative_prod(
    x: Array,
    /,
    *,
    axis: Static = None,
    dtype: DType = None,
    out: Into = None,
    include_initial: bool = False,
):
    """Running products along `axis`, which an array of 2 or more axes must name."""
    return _cumulative("multiply", x, axis, dtype, include_initial)


# differences


def _difference(a: torch.Tensor, axis: int) -> torch.Tensor:
    n = a.shape[axis]
    late, early = (a.narrow(axis, start, max(n - 1, 0)) for start in (min(1, n), 0))
    return call("not_equal" if a.dtype is torch.bool else "subtract", late, early)


def _beside(a: torch.Tensor, extra: torch.Tensor, axis: int) -> torch.Tensor:
    if extra.dim() == 0:
        shape = list(a.shape)
        shape[axis] = 1
        return extra.expand(shape)
    return extra


def _join_promoted(parts: list[torch.Tensor], axis: int) -> torch.Tensor:
    dtype = result_type(*(p.dtype for p in parts))
    parts = together(*parts)
    if len({p.dim() for p in parts}) > 1:
        bad = next(i for i, p in enumerate(parts) if p.dim() != parts[0].dim())
        raise ValueError(
            "all the input arrays must have same number of dimensions, but the array at index 0 "
            f"has {parts[0].dim()} dimension(s) and the array at index {bad} has "
            f"{parts[bad].dim()} dimension(s)"
        )
    for i, p in enumerate(parts):
        for d in range(p.dim()):
            if d != axis and p.shape[d] != parts[0].shape[d]:
                raise ValueError(
                    "all the input array dimensions except for the concatenation axis must match "
                    f"exactly, but along dimension {d}, the array at index 0 has size "
                    f"{parts[0].shape[d]} and the array at index {i} has size {p.shape[d]}"
                )
    return join([cast(p, dtype) for p in parts], axis)


@function()
def diff(
    a: Raw,
    n: Static = 1,
    axis: Static = -1,
    prepend: Array = NoValue,
    append: Array = NoValue,
):
    """Differences of neighbours along `axis`, `n` times over; of bools whether they differ."""
    if n == 0 and not isinstance(a, ndarray):
        raise NotSupported("np.diff(..., n=0) of what is no array: it gives that back")
    if n == 0:
        return a
    a = as_array(a)
    if n < 0:
        raise ValueError("order must be non-negative but got " + repr(n))
    t = a.tensor
    if t.dim() == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = axis_index(axis, t.dim())
    parts = [t]
    if prepend is not NoValue:
        parts.insert(0, _beside(t, prepend, axis))
    if append is not NoValue:
        parts.append(_beside(t, append, axis))
    if len(parts) > 1:
        t = _join_promoted(parts, axis)
    for _ in range(n):
        t = _difference(t, axis)
    return t


@function()
def ediff1d(ary: Array, to_end: Array | None = None, to_begin: Array | None = None):
    """Differences of the flat array, with values put before and after: 1-D, dtype of `ary`."""
    flat = ary.reshape(-1)
    parts = []
    for name, extra in (("to_begin", to_begin), ("to_end", to_end)):
        if extra is None:
            parts.append(flat[:0])
        elif not np.can_cast(TO_NUMPY[extra.dtype], TO_NUMPY[ary.dtype], "same_kind"):
            raise TypeError(
                f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule."
            )
        else:
            parts.append(cast(extra.reshape(-1), ary.dtype))
    n = len(flat)
    middle = call("subtract", flat[min(1, n) :], flat[: max(n - 1, 0)])
    return join([parts[0], middle, parts[1]])


# gradient


@function()
def gradient(f: Array, *varargs: Operand, axis: Static = None, edge_order: Static = 1):
    """Central differences inside, one-sided ones of `edge_order` 1 or 2 at the ends.

    varargs: no distance, one for all axes, or one for each (a number, or coordinates). A tensor of
    the shape of `f` when one axis is meant, else a tuple. Source of the weights for uneven
    distances: Quarteroni, Sacco, Saleri, Numerical Mathematics, 2007.
    """
    ndim = f.dim()
    axes = tuple(range(ndim)) if axis is None else axis_tuple(axis, ndim)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    steps = [_step(f, v, ax) for v, ax in zip(_steps(varargs, axes), axes, strict=True)]
    if not inexact(f):
        f = f if kind_of(f) == "b" else cast(f, torch.float64)
    dtype = default_float(f)
    results = []
    for ax, step in zip(axes, steps, strict=True):
        if f.shape[ax] < edge_order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least "
                "(edge_order + 1) elements are required."
            )
        results.append(cast(_gradient(f, ax, step, edge_order), dtype))
    return results[0] if len(axes) == 1 else tuple(results)


def _steps(varargs: Any, axes: tuple) -> list:
    if not varargs:
        return [1.0] * len(axes)
    if len(varargs) == 1 and (not isinstance(varargs[0], torch.Tensor) or varargs[0].dim() == 0):
        return list(varargs) * len(axes)
    if len(varargs) != len(axes):
        raise TypeError("invalid number of arguments")
    return list(varargs)


def _step(f: torch.Tensor, value: Any, axis: int) -> Any:
    """One number, or the distances between coordinates."""
    if not isinstance(value, torch.Tensor) or value.dim() == 0:
        return value
    if value.dim() != 1:
        raise ValueError("distances must be either scalars or 1d")
    if len(value) != f.shape[axis]:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    if kind_of(value) in "iu":
        value = cast(value, torch.float64)
    return _difference(value, 0)


def _gradient(f: torch.Tensor, axis: int, step: Any, edge_order: int) -> torch.Tensor:
    """The gradient along an axis, in the layout of `f`."""
    f = f.movedim(axis, 0)
    if isinstance(step, torch.Tensor) and step.dim():
        inside, first, last = _uneven(f, step, edge_order)
    else:
        inside, first, last = _even(f, step, edge_order)
    dtype = result_type(inside.dtype, first.dtype)
    parts = (first[None], inside, last[None])
    return torch.cat([cast(p, dtype).movedim(0, axis) for p in parts], axis)


def _weighted(weights: Any, values: Any) -> torch.Tensor:
    total = None
    for w, v in zip(weights, values, strict=True):
        term = call("multiply", w, v)
        total = term if total is None else call("add", total, term)
    return total


def _even(f: torch.Tensor, h: Any, edge_order: int):
    inside = call("divide", call("subtract", f[2:], f[:-2]), _number("multiply", 2.0, h))
    if edge_order == 1:
        first = call("divide", call("subtract", f[1], f[0]), h)
        last = call("divide", call("subtract", f[-1], f[-2]), h)
        return inside, first, last
    a, b, c = (_number("divide", w, h) for w in (-1.5, 2.0, -0.5))
    first = _weighted((a, b, c), (f[0], f[1], f[2]))
    a, b, c = (_number("divide", w, h) for w in (0.5, -2.0, 1.5))
    return inside, first, _weighted((a, b, c), (f[-3], f[-2], f[-1]))


def _number(name: str, w: float, h: Any) -> Any:
    """w * h or w / h, weak where `h` is a Python number."""
    if isinstance(h, Weak):
        value = w * h.tensor if name == "multiply" else w / h.tensor
        return Weak(value, float if h.kind is not complex else complex)
    if isinstance(h, NUMBERS):
        return w * h if name == "multiply" else w / h
    return call(name, w, h)


def _uneven(f: torch.Tensor, d: torch.Tensor, edge_order: int):
    shape = (-1,) + (1,) * (f.dim() - 1)
    one, two = d[:-1], d[1:]
    a = -two / (one * (one + two))
    b = (two - one) / (one * two)
    c = one / (two * (one + two))
    weights = [w.reshape(shape) for w in (a, b, c)]
    inside = _weighted(weights, (f[:-2], f[1:-1], f[2:]))
    if edge_order == 1:
        first = call("divide", call("subtract", f[1], f[0]), d[0])
        last = call("divide", call("subtract", f[-1], f[-2]), d[-1])
        return inside, first, last
    one, two = d[0], d[1]
    a = -(2.0 * one + two) / (one * (one + two))
    b = (one + two) / (one * two)
    c = -one / (two * (one + two))
    first = _weighted((a, b, c), (f[0], f[1], f[2]))
    one, two = d[-2], d[-1]
    a = two / (one * (one + two))
    b = -(two + one) / (one * two)
    c = (2.0 * two + one) / (two * (one + two))
    return inside, first, _weighted((a, b, c), (f[-3], f[-2], f[-1]))


@function()
def trapezoid(y: Array, x: Array | None = None, dx: Operand = 1.0, axis: Static = -1):
    """Integral along `axis` by the trapezoidal rule, at coordinates `x` or even distances `dx`."""
    axis = axis_index(axis, y.dim())
    if x is not None:
        if x.dim() == 1:
            shape = [1] * y.dim()
            shape[axis] = -1
            dx = _difference(x, 0).reshape(shape)
        else:
            dx = _difference(x, axis_index(axis - y.dim(), x.dim()))
    n = y.shape[axis]
    pairs = call("add", y.narrow(axis, min(1, n), max(n - 1, 0)), y.narrow(axis, 0, max(n - 1, 0)))
    return reduce_engine("add", call("divide", call("multiply", dx, pairs), 2.0), axis)
