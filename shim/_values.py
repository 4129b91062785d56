"""Functions of one value: clip, round, parts of complex numbers, nan_to_num, unwrap and others."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._apply import (
    NUMBERS,
    axis_index,
    broadcast,
    call,
    check_writeable,
    default_float,
    inexact,
    join,
    need_data,
    operand_tensor,
)
from ._cumulative import _difference
from ._dtypes import TO_NUMPY, NotSupported, Weak, check_python_int, result_type
from ._ndarray import as_array, ndarray, view_of, write
from ._normalize import Array, NoValue, Operand, Out, Raw, Static, View, function
from ._reductions import stored
from ._selection import copied_into, promoted
from ._shapes import laid_by_all, let_numpy_warn
from ._table import Kind
from ._ufunc_math import true_divide
from ._ufunc_table import loop
from ._ufuncs import UFUNCS
from ._unsigned import cast, choose_by

# clip


def _clip(a: torch.Tensor, low: Any, high: Any) -> torch.Tensor:
    dtype = TO_NUMPY[a.dtype]
    if dtype.kind in "iu":
        # Python ints beyond the dtype on the harmless side bound nothing
        if type(low) is int and low <= np.iinfo(dtype).min:
            low = None
        if type(high) is int and high >= np.iinfo(dtype).max:
            high = None
    if low is None and high is None:
        return call("positive", a)
    if low is None:
        return call("minimum", a, high)
    if high is None:
        return call("maximum", a, low)
    a, low, high = promoted(a, low, high, device=a.device)
    a, low, high = broadcast(a, low, high, ufunc=True)
    kinds = (a.dtype, a.dtype)
    result = loop("minimum", kinds, kinds[:1])(loop("maximum", kinds, kinds[:1])(a, low), high)
    # on a bound the element stays, for its gradient too
    result = torch.where(result == a, a, result) if a.dtype.is_floating_point else result
    return laid_by_all(result, a, low, high)


def _no_options(options: dict) -> None:
    if options:
        raise NotSupported(f"clip({', '.join(f'{name}=...' for name in options)})")


@function()
def clip(
    a: Array,
    a_min: Operand | None = NoValue,
    a_max: Operand | None = NoValue,
    out: Out = None,
    *,
    min: Operand | None = NoValue,
    max: Operand | None = NoValue,
    **kwargs: Static,
):
    """Values brought into [min, max]; None leaves a side open. NaN bounds give NaN.

    Errors: TypeError, ValueError for a pair given by halves or twice; OverflowError for a Python
    int that an integer dtype cannot hold; NotSupported for options of ufuncs.
    """
    if a_min is NoValue and a_max is NoValue:
        a_min = None if min is NoValue else min
        a_max = None if max is NoValue else max
    elif a_min is NoValue:
        raise TypeError("clip() missing 1 required positional argument: 'a_min'")
    elif a_max is NoValue:
        raise TypeError("clip() missing 1 required positional argument: 'a_max'")
    elif min is not NoValue or max is not NoValue:
        raise ValueError(
            "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is "
            "forbidden."
        )
    _no_options(kwargs)
    return _clip(a, a_min, a_max)


@function("ndarray.clip")
def _clip_method(
    self: Array,
    /,
    min: Operand | None = None,
    max: Operand | None = None,
    out: Out = None,
    **kwargs: Static,
):
    """Values brought into [min, max]; None leaves a side open."""
    _no_options(kwargs)
    return _clip(self, min, max)


# rounding


def _round(a: torch.Tensor, decimals: int) -> torch.Tensor:
    if a.dtype.is_complex:
        return torch.complex(_round(a.real, decimals), _round(a.imag, decimals))
    if a.dtype is torch.bool:
        np.round(np.zeros(1, bool), decimals)  # TypeError, NumPy's own, unless 0
        return cast(a, torch.float16)
    if not inexact(a):
        if decimals >= 0:
            return a.clone()
        scale = 10**-decimals
        check_python_int(scale, a.dtype)
        return cast(torch.round(true_divide(cast(a, torch.float64), scale)) * scale, a.dtype)
    if decimals == 0:
        return torch.round(a)
    # float16 is scaled in float16, step by step, as NumPy does
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return true_divide(torch.round(a * scale), scale)
    return torch.round(true_divide(a, scale)) * scale


@function("round", "around", method=True)
def round_(a: Array, decimals: int = 0, out: Raw = None):
    """Values rounded to so many decimals, halves to even; negative ones round tens, hundreds."""
    if type(out) is ndarray and out._t.numel() != a.numel():
        raise ValueError("invalid output shape")
    whole = not (inexact(a) or a.dtype is torch.bool)
    copied = (decimals >= 0 and whole) or a.dtype.is_complex
    if copied or type(out) is not ndarray or (out._t.dtype is a.dtype and inexact(a)):
        return stored(out, _round(a, decimals))
    if decimals == 0:
        return UFUNCS["rint"](ndarray(a), out=out)
    # From the first step on in the dtype of `out`.
    scale, steps = 10.0 ** abs(decimals), ["multiply", "rint", "divide"]
    first, middle, last = steps if decimals > 0 else steps[::-1]
    UFUNCS[first](ndarray(a), scale, out=out)
    UFUNCS[middle](out, out=out)
    return UFUNCS[last](out, scale, out=out)


@function()
def fix(x: Array, out: Out = None):
    """Values rounded towards zero."""
    # deprecated from NumPy 2.5 on; the error for complex numbers names what it is made of
    let_numpy_warn(np.fix, np.zeros((), TO_NUMPY.get(x.dtype, "d")))
    return call("trunc", x)


# parts of complex numbers


def _part(val: ndarray, name: str) -> ndarray:
    view = view_of(val, getattr(val._t, name), val._flip)
    view._scalar = val._scalar
    return view


@function(scalar=False)
def real(val: Raw):
    """The real part, a view; real arrays, and the parts of Python's numbers, themselves."""
    if type(val) in NUMBERS:
        return val.real
    val = as_array(val)
    return _part(val, "real") if val._t.dtype.is_complex else val


@function(scalar=False)
def imag(val: Raw):
    """The imaginary part, a view; of real arrays read-only zeros; of a Python number its own."""
    if type(val) in NUMBERS:
        return val.imag
    val = as_array(val)
    if val._t.dtype.is_complex:
        return _part(val, "imag")
    zeros = ndarray(torch.zeros_like(val._t), (), val._scalar)
    zeros._readonly = True
    return zeros


@function()
def angle(z: Array, deg: bool = False):
    """The angle of complex numbers in (-pi, pi], in degrees when asked: floats."""
    result = torch.atan2(z.imag, z.real) if z.dtype.is_complex else call("arctan2", 0, z)
    return call("multiply", result, 180 / np.pi) if deg else result


@function(kind=Kind.DATA)
def real_if_close(a: View, tol: Static = 100):
    """The real part where all imaginary parts are below `tol` (in units of eps when above 1)."""
    if not a._t.dtype.is_complex:
        return a
    need_data(a._t)
    if tol > 1:
        tol = float(np.finfo(a.dtype).eps) * tol
    if bool((torch.abs(a._t.imag) < tol).all()):
        return _part(a, "real")
    return a


@function()
def nan_to_num(
    x: View,
    copy: bool = True,
    nan: Operand = 0.0,
    posinf: Operand | None = None,
    neginf: Operand | None = None,
):
    """NaN and infinities replaced by numbers, by default 0 and the largest ones.

    copy=False: in place, and `x` itself comes back, or a scalar for one of rank 0.
    """
    t = x.tensor
    if not inexact(t):
        result = t
    elif t.dtype.is_complex:
        parts = (_without_nan(p, nan, posinf, neginf) for p in (t.real, t.imag))
        result = torch.complex(*parts)
    else:
        result = _without_nan(t, nan, posinf, neginf)
    if copy:
        return ndarray(result.clone() if result is t else result, (), result.dim() == 0)
    if result is not t:
        check_writeable(x)
        write(x, result)
    return x if result.dim() else ndarray(result.clone(), (), True)


def _without_nan(t: torch.Tensor, nan: Any, posinf: Any, neginf: Any) -> torch.Tensor:
    limits = torch.finfo(t.dtype)
    posinf = limits.max if posinf is None else posinf
    neginf = limits.min if neginf is None else neginf
    masks = (torch.isnan(t), t == torch.inf, t == -torch.inf)
    for mask, value in zip(masks, (nan, posinf, neginf), strict=True):
        t = torch.where(mask, copied_into(t, value), t)
    return t


# special functions


@function()
def sinc(x: Array):
    """sin(pi x) / (pi x), 1 at 0: floats."""
    y = cast(x, default_float(x))
    y = call("multiply", y, np.pi)
    safe = torch.where(y == 0, torch.ones_like(y), y)
    return torch.where(y == 0, torch.ones_like(y), call("divide", call("sin", safe), safe))


@function(scalar=False)
def i0(x: Array):
    """Modified Bessel function of the first kind, order 0: floats. TypeError for complex."""
    if x.dtype.is_complex:
        raise TypeError("i0 not supported for complex values")
    return torch.special.i0(cast(x, default_float(x)))


@function()
def unwrap(
    p: Array, discont: Operand | None = None, axis: Static = -1, *, period: Operand = 2 * np.pi
):
    """Jumps along `axis` of more than `discont` made smaller by multiples of `period`."""
    axis = axis_index(axis, p.dim())
    step = _difference(p, axis)
    dtype = result_type(step.dtype, _weak_kind(period))
    if discont is None:
        discont = _scaled(period, 0.5)
    if not (dtype.is_floating_point or dtype.is_complex):
        if not isinstance(period, (bool, int)):
            raise NotSupported("unwrap(period=...) of an integer array")
        high, rest = divmod(period, 2)
        ambiguous = rest == 0
    else:
        high, ambiguous = _scaled(period, 0.5), True
    low = _scaled(high, -1)
    wrapped = call("add", call("remainder", call("subtract", step, low), period), low)
    if ambiguous:
        jump = call("equal", wrapped, low) & call("greater", step, 0)
        high = cast(operand_tensor(high, p.device), wrapped.dtype)
        wrapped = choose_by(jump, high, wrapped)
    correction = call("subtract", wrapped, step)
    small = call("less", call("absolute", step), discont)
    correction = choose_by(small, torch.zeros_like(correction), correction)
    n = p.shape[axis]
    head = cast(p.narrow(axis, 0, min(1, n)), dtype)
    tail = call("add", p.narrow(axis, min(1, n), max(n - 1, 0)), torch.cumsum(correction, axis))
    return join([head, cast(tail, dtype)], axis)


def _weak_kind(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.dtype
    return value.kind if isinstance(value, Weak) else type(value)


def _scaled(value: Any, factor: float) -> Any:
    """value * factor, weak where the value is."""
    if isinstance(value, Weak):
        scaled = value.tensor * factor
        return Weak(scaled, float if scaled.dtype.is_floating_point else value.kind)
    if isinstance(value, NUMBERS):
        return value * factor
    return call("multiply", value, factor)
