"""Tests of values: close, equal, real, infinite."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from ._apply import broadcast, call, inexact, need_data, operand_tensor, readable
from ._dtypes import TO_NUMPY, Weak, result_type
from ._ndarray import as_array
from ._normalize import Array, Operand, Out, Static, function
from ._table import Kind
from ._unsigned import cast


def _is_close(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> torch.Tensor:
    if isinstance(b, torch.Tensor):
        b = cast(b, result_type(b.dtype, float))
    elif isinstance(b, int):
        b = float(b)
    elif isinstance(b, Weak) and b.kind is int:
        b = Weak(b.tensor.to(torch.float64), float)
    _check_tolerances(rtol, atol)
    distance = call("absolute", call("subtract", a, b))
    if isinstance(b, Weak):
        size = Weak(b.tensor.abs(), float)
    else:
        size = abs(b) if isinstance(b, (float, complex)) else call("absolute", b)
    if all(isinstance(v, (int, float, Weak)) for v in (rtol, atol, size)):
        allowed = _of(atol) + _of(rtol) * _of(size)  # a Python number, and so weak
        if isinstance(allowed, torch.Tensor):
            allowed = Weak(allowed, float)
    else:
        allowed = call("add", atol, call("multiply", rtol, size))
    result = call("less_equal", distance, allowed) & call("isfinite", b) | call("equal", a, b)
    if equal_nan:
        result = result | call("isnan", a) & call("isnan", b)
    return result


def _of(number: Any) -> Any:
    """A Python number, or the tensor that has it."""
    return number.tensor if isinstance(number, Weak) else number


def _check_tolerances(rtol: Any, atol: Any) -> None:
    given = operand_tensor(atol), operand_tensor(rtol)
    if any(readable(t) and not bool(call("isfinite", t).all()) for t in given):
        text = f"One of rtol or atol is not valid, atol: {atol}, rtol: {rtol}"
        how = np.geterr()["invalid"]
        if how == "raise":
            raise FloatingPointError(text)
        if how == "warn":
            warnings.warn(text, RuntimeWarning, stacklevel=4)


@function()
def isclose(
    a: Operand, b: Operand, rtol: Operand = 1e-5, atol: Operand = 1e-8, equal_nan: bool = False
):
    """Whether abs(a - b) <= atol + rtol * abs(b), element by element: bool."""
    return _is_close(a, b, rtol, atol, bool(equal_nan))


@function(kind=Kind.DATA)
def allclose(
    a: Operand, b: Operand, rtol: Operand = 1e-5, atol: Operand = 1e-8, equal_nan: bool = False
):
    """Whether all elements are close: a Python bool."""
    close = _is_close(a, b, rtol, atol, bool(equal_nan))
    need_data(close)
    return bool(close.all())


@function(kind=Kind.DATA)
def array_equal(a1: Array, a2: Array, equal_nan: bool = False):
    """Whether shapes and all elements are equal: a Python bool."""
    if a1.shape != a2.shape:
        return False
    same = call("equal", a1, a2)
    if equal_nan and inexact(a1) and inexact(a2):
        same = same | (torch.isnan(a1) & torch.isnan(a2))
    need_data(same)
    return bool(same.all())


@function(kind=Kind.DATA)
def array_equiv(a1: Array, a2: Array):
    """Whether the arrays broadcast, and are equal then: a Python bool."""
    try:
        broadcast(a1, a2)
    except ValueError:
        return False
    same = call("equal", a1, a2)
    need_data(same)
    return bool(same.all())


@function()
def isreal(x: Array):
    """Where the imaginary part is zero: bool."""
    return x.imag == 0 if x.dtype.is_complex else torch.ones_like(x, dtype=torch.bool)


@function()
def iscomplex(x: Array):
    """Where the imaginary part is not zero: bool."""
    return x.imag != 0 if x.dtype.is_complex else torch.zeros_like(x, dtype=torch.bool)


@function(kind=Kind.QUERY)
def iscomplexobj(x: Static):
    """Whether the dtype is complex, whatever the values: a Python bool."""
    return as_array(x).dtype.kind == "c"


@function(kind=Kind.QUERY)
def isrealobj(x: Static):
    """Whether the dtype is not complex: a Python bool."""
    return as_array(x).dtype.kind != "c"


def _infinite(x: torch.Tensor, sign: float) -> torch.Tensor:
    if x.dtype.is_complex:
        raise TypeError(
            f"This operation is not supported for {TO_NUMPY[x.dtype]} values because it would be "
            "ambiguous."
        )
    if not inexact(x):
        return torch.zeros_like(x, dtype=torch.bool)
    return x == sign * torch.inf


@function()
def isposinf(x: Array, out: Out = None):
    """Where the values are plus infinity: bool. TypeError for complex."""
    return _infinite(x, 1.0)


@function()
def isneginf(x: Array, out: Out = None):
    """Where the values are minus infinity: bool. TypeError for complex."""
    return _infinite(x, -1.0)
