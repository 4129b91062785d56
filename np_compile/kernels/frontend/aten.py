"""Elementwise ATen operators as scalar expressions: one row an operator.

A row takes expressions that already have the dtype to compute in, and gives the result's
expression. Its rule says in which dtype the operator computes: "result" (that of its result),
"common" (the promoted dtype of its operands, with a result of bool or so), "each" (operands keep
their own).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ..ir import expr as E
from ..ir.expr import Expr, number, scalar

F = Callable[..., Expr]


@dataclass(frozen=True)
class Row:
    """rule: dtype of the computation. build: expressions of the operands -> expression."""

    rule: str
    build: F


def _op(name: str) -> F:
    return lambda *args: scalar(name, *args)


def _of_bool(name: str, on_bool: str) -> F:
    """An operation that torch gives a meaning of its own on bools."""
    return lambda *args: scalar(on_bool if args[0].dtype == "bool" else name, *args)


def _of_kind(name: str, on_integers: str, on_bool: str) -> F:
    """An operation on floats, and what it is on integers and on bools."""
    return lambda *args: scalar(
        on_bool if args[0].dtype == "bool" else on_integers if _integral(args[0]) else name, *args
    )


def _integral(x: Expr) -> bool:
    return x.dtype == "bool" or x.dtype[0] in "iu"


def _add(a: Expr, b: Expr, alpha: Any = 1) -> Expr:
    if a.dtype == "bool":
        return scalar("or", a, b)
    return scalar("add", a, b if alpha == 1 else scalar("mul", b, number(alpha, b.dtype)))


def _sub(a: Expr, b: Expr, alpha: Any = 1) -> Expr:
    return scalar("sub", a, b if alpha == 1 else scalar("mul", b, number(alpha, b.dtype)))


def _div(a: Expr, b: Expr, rounding_mode: str | None = None) -> Expr:
    if rounding_mode is None:
        return scalar("div", a, b)
    return scalar("floordiv" if rounding_mode == "floor" else "truncdiv", a, b)


def _root(a: Expr) -> tuple[Expr, Expr]:
    """a, with inf for -inf and 0.0 for -0.0 as powers have it but odd ones, and its square root."""
    inf = number(float("inf"), a.dtype)
    a = scalar("where", scalar("eq", a, number(float("-inf"), a.dtype)), inf, a)
    a = scalar("add", a, number(0.0, a.dtype))
    return a, scalar("sqrt", a)


def _inverse(a: Expr) -> Expr:
    return scalar("div", number(1, a.dtype), a)


def _times(*factors: Expr) -> Expr:
    return reduce(lambda a, b: scalar("mul", a, b), factors)


# Powers by real exponents that products, quotients and roots give within the bound of `pow`.
_POWERS: dict[float, Callable[[Expr], Expr]] = {
    4: lambda a: _times(_times(a, a), _times(a, a)),
    -2: lambda a: _times(*[_inverse(a)] * 2),
    -3: lambda a: _times(*[_inverse(a)] * 3),
    1.5: lambda a: _times(*_root(a)),
    -0.5: lambda a: _inverse(_root(a)[1]),
    -1.5: lambda a: scalar("div", _inverse(_root(a)[0]), _root(a)[1]),
}


def power(a: Expr, b: Expr) -> Expr:
    """a ** b; some constant exponents by products and roots."""
    if b.op == "const" and not _integral(a):
        if b.value == 2:
            return scalar("mul", a, a)
        if b.value == 3:
            return scalar("mul", scalar("mul", a, a), a)
        if b.value == 0.5:
            return scalar("sqrt", a)
        if b.value == 1:
            return a
        if b.value == -1:
            return scalar("div", number(1, a.dtype), a)
        if b.value in _POWERS and a.dtype in ("f32", "f64"):
            return _POWERS[b.value](a)
    if b.op == "const" and _integral(a) and b.value in (1, 2):
        return a if b.value == 1 else scalar("mul", a, a)
    return scalar("pow", a, b)


def _rounded(x: Expr, decimals: int = 0) -> Expr:
    if _integral(x):
        return x
    if decimals == 0:
        return scalar("round", x)
    factor = number(10.0 ** abs(decimals), x.dtype)
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    return scalar(back, scalar("round", scalar(there, x, factor)), factor)


def _clamp(x: Expr, low: Expr | None = None, high: Expr | None = None) -> Expr:
    if low is not None:
        x = scalar("maximum", x, low)
    if high is not None:
        x = scalar("minimum", x, high)
    return x


def _kept_if_integral(name: str) -> F:
    return lambda x: x if _integral(x) else scalar(name, x)


def _sigmoid(x: Expr) -> Expr:
    one = number(1, x.dtype)
    return scalar("div", one, scalar("add", one, scalar("exp", scalar("neg", x))))


def _only_float(name: str) -> F:
    """A test that no integer passes."""
    return lambda x: E.const(False, "bool") if _integral(x) else scalar(name, x)


def _tanh_backward(grad: Expr, out: Expr) -> Expr:
    return scalar("mul", grad, scalar("sub", number(1, out.dtype), scalar("mul", out, out)))


def _sigmoid_backward(grad: Expr, out: Expr) -> Expr:
    return scalar("mul", grad, scalar("mul", scalar("sub", number(1, out.dtype), out), out))


def _angle(x: Expr) -> Expr:
    zero = number(0, x.dtype)
    turned = scalar("where", scalar("lt", x, zero), number(math.pi, x.dtype), zero)
    return scalar("where", scalar("isnan", x), x, turned)


def _where(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return scalar("where", condition, yes, no)


_UNARY = (
    "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma",
    "reciprocal", "rsqrt",
)  # fmt: skip

ROWS: dict[str, Row] = {
    **{name: Row("result", _op(name)) for name in _UNARY},
    "add": Row("result", _add),
    "sub": Row("result", _sub),
    "rsub": Row("result", lambda a, b, alpha=1: _sub(b, a, alpha)),
    "mul": Row("result", _of_bool("mul", "and")),
    "div": Row("result", _div),
    "floor_divide": Row("result", _op("floordiv")),
    "remainder": Row("result", _op("remainder")),
    "fmod": Row("result", _op("fmod")),
    "pow": Row("result", power),
    "maximum": Row("result", _of_bool("maximum", "or")),
    "minimum": Row("result", _of_bool("minimum", "and")),
    "fmax": Row("result", _of_kind("fmax", "maximum", "or")),
    "fmin": Row("result", _of_kind("fmin", "minimum", "and")),
    "atan2": Row("result", _op("atan2")),
    "hypot": Row("result", _op("hypot")),
    "copysign": Row("result", _op("copysign")),
    "nextafter": Row("result", _op("nextafter")),
    "gcd": Row("result", _op("gcd")),
    "bitwise_and": Row("result", _op("and")),
    "bitwise_or": Row("result", _op("or")),
    "bitwise_xor": Row("result", _op("xor")),
    "bitwise_not": Row("result", _of_bool("not", "lnot")),
    "bitwise_left_shift": Row("result", _op("lshift")),
    "bitwise_right_shift": Row("result", _op("rshift")),
    "__lshift__": Row("result", _op("lshift")),
    "__rshift__": Row("result", _op("rshift")),
    "neg": Row("result", _op("neg")),
    "abs": Row("result", lambda x: x if x.dtype[0] in "ub" else scalar("abs", x)),
    "sign": Row("result", lambda x: x if x.dtype == "bool" else scalar("sign", x)),
    "sgn": Row("result", lambda x: x if x.dtype == "bool" else scalar("sign", x)),
    "floor": Row("result", _kept_if_integral("floor")),
    "ceil": Row("result", _kept_if_integral("ceil")),
    "trunc": Row("result", _kept_if_integral("trunc")),
    "round": Row("result", _rounded),
    "sigmoid": Row("result", _sigmoid),
    "square": Row("result", lambda x: scalar("mul", x, x)),
    "angle": Row("result", _angle),
    "clamp": Row("result", _clamp),
    "clamp_min": Row("result", lambda x, low: _clamp(x, low)),
    "clamp_max": Row("result", lambda x, high: _clamp(x, None, high)),
    "relu": Row("result", lambda x: _clamp(x, number(0, x.dtype))),
    "tanh_backward": Row("result", _tanh_backward),
    "sigmoid_backward": Row("result", _sigmoid_backward),
    **{name: Row("common", _op(name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "logical_and": Row("each", _op("and")),
    "logical_or": Row("each", _op("or")),
    "logical_xor": Row("each", _op("xor")),
    "logical_not": Row("each", _op("lnot")),
    "isnan": Row("each", _only_float("isnan")),
    "isfinite": Row("each", _op("isfinite")),
    "isinf": Row("each", _only_float("isinf")),
    "signbit": Row("each", _op("signbit")),
    "where": Row("result", _where),
    "masked_fill": Row("result", lambda x, mask, value: scalar("where", mask, value, x)),
}


def frexp(x: Expr) -> tuple[Expr, Expr]:
    """Mantissa, from 0.5 to 1, and exponent; those of zero and of what is no number are (x, 0)."""
    wide = E.cast(x, "f64")
    tiny = scalar("lt", scalar("abs", wide), number(2.0**-1022, "f64"))
    scaled = scalar("where", tiny, scalar("mul", wide, number(2.0**54, "f64")), wide)
    bits = E.bitcast(scaled, "i64")
    field = scalar("and", scalar("rshift", bits, number(52, "i64")), number(0x7FF, "i64"))
    lost = scalar("where", tiny, number(1022 + 54, "i64"), number(1022, "i64"))
    rest = scalar("and", bits, number(~(0x7FF << 52), "i64"))
    mantissa = E.bitcast(scalar("or", rest, number(1022 << 52, "i64")), "f64")
    whole = scalar(
        "or", scalar("eq", wide, number(0, "f64")), scalar("not", scalar("isfinite", wide))
    )
    exponent = scalar("where", whole, number(0, "i64"), scalar("sub", field, lost))
    return scalar("where", whole, x, E.cast(mantissa, x.dtype)), E.cast(exponent, "i32")
