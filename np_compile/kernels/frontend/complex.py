"""Elementwise ATen operators on complex numbers: one row an operator.

A row takes pairs of expressions (real, imaginary) and gives a pair, or one expression in a tuple
for a real result. Where a formula would give NaN for a zero or an infinity, a choice gives C's
answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..ir.expr import Expr, number, scalar

Pair = tuple[Expr, Expr]

_HUGE = {"f32": 1e38, "f64": 1e307}


def _add(a: Expr, b: Expr) -> Expr:
    return scalar("add", a, b)


def _sub(a: Expr, b: Expr) -> Expr:
    return scalar("sub", a, b)


def _mul(a: Expr, b: Expr) -> Expr:
    return scalar("mul", a, b)


def _where(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return scalar("where", condition, yes, no)


def _either(condition: Expr, yes: Pair, no: Pair) -> Pair:
    return _where(condition, yes[0], no[0]), _where(condition, yes[1], no[1])


def _is(x: Expr, value: float) -> Expr:
    return scalar("eq", x, number(value, x.dtype))


def _is_zero(a: Pair) -> Expr:
    return scalar("and", _is(a[0], 0), _is(a[1], 0))


def _times(a: Pair, factor: Any) -> Pair:
    k = number(factor, a[0].dtype)
    return _mul(a[0], k), _mul(a[1], k)


def _product(a: Pair, b: Pair) -> Pair:
    (ar, ai), (br, bi) = a, b
    return _sub(_mul(ar, br), _mul(ai, bi)), _add(_mul(ar, bi), _mul(ai, br))


def _product_as_in_c(a: Pair, b: Pair) -> Pair:
    """The product; infinite where a factor is, though a part of the other may be NaN."""
    dtype = a[0].dtype
    zero, one, infinity = number(0, dtype), number(1, dtype), number(math.inf, dtype)
    re, im = _product(a, b)
    endless = [scalar("or", *(scalar("isinf", x) for x in part)) for part in (a, b)]

    def direction(part: Pair, far: Expr) -> Pair:
        def of(x: Expr) -> Expr:
            unit = scalar("copysign", _where(scalar("isinf", x), one, zero), x)
            return _where(scalar("or", far, scalar("isnan", x)), unit, x)

        return of(part[0]), of(part[1])

    towards = _product(direction(a, endless[0]), direction(b, endless[1]))
    lost = scalar("and", scalar("isnan", re), scalar("isnan", im))
    lost = scalar("and", lost, scalar("or", *endless))
    return _either(lost, (_mul(infinity, towards[0]), _mul(infinity, towards[1])), (re, im))


def _quotient(a: Pair, b: Pair) -> Pair:
    """Smith's algorithm, as NumPy has it."""
    (ar, ai), (br, bi) = a, b
    wide = scalar("ge", scalar("abs", br), scalar("abs", bi))
    big, small = _where(wide, br, bi), _where(wide, bi, br)
    ratio = scalar("div", small, big)
    scale = scalar("div", number(1, br.dtype), _add(big, _mul(small, ratio)))
    re = _where(wide, _add(ar, _mul(ai, ratio)), _add(_mul(ar, ratio), ai))
    im = _where(wide, _sub(ai, _mul(ar, ratio)), _sub(_mul(ai, ratio), ar))
    by = scalar("abs", br)
    return _either(
        _is_zero(b),
        (scalar("div", ar, by), scalar("div", ai, by)),
        (_mul(re, scale), _mul(im, scale)),
    )


def _one(a: Pair) -> Pair:
    return number(1, a[0].dtype), number(0, a[0].dtype)


def _reciprocal(a: Pair) -> Pair:
    """Smith's algorithm, as NumPy has it."""
    x, y = a
    one = number(1, x.dtype)
    wide = scalar("ge", scalar("abs", x), scalar("abs", y))
    big, small = _where(wide, x, y), _where(wide, y, x)
    ratio = scalar("div", small, big)
    scale = _add(big, _mul(small, ratio))
    unit = scalar("div", one, scale)
    less = scalar("div", ratio, scale)
    return _where(wide, unit, less), scalar("neg", _where(wide, less, unit))


def _endless(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Whether x is infinite, and whether y is infinite or NaN as well."""
    infinite = scalar("isinf", x)
    return infinite, scalar("and", infinite, scalar("ne", _sub(y, y), number(0, y.dtype)))


def _exp(a: Pair) -> Pair:
    x, y = a
    zero = number(0, x.dtype)
    size = scalar("exp", x)
    re, im = _mul(size, scalar("cos", y)), _mul(size, scalar("sin", y))
    _, endless = _endless(x, y)  # of inf, inf and NaN; of -inf, zeros
    re = _where(endless, size, re)
    im = _where(scalar("and", endless, _is(size, 0)), scalar("copysign", zero, y), im)
    return _either(_is(y, 0), (size, y), (re, im))


def _expm1(a: Pair) -> Pair:
    x, y = a
    half = scalar("sin", _mul(y, number(0.5, y.dtype)))
    lost = _mul(_mul(half, half), number(2, y.dtype))
    return (
        _sub(_mul(scalar("expm1", x), scalar("cos", y)), lost),
        _mul(scalar("exp", x), scalar("sin", y)),
    )


def _log_size(x: Expr, y: Expr, less_one: Expr) -> Expr:
    """log |x + iy|; less_one: x*x + y*y - 1, exact where that is small."""
    dtype = x.dtype
    half, one = number(0.5, dtype), number(1, dtype)
    size = scalar("hypot", x, y)
    # Half of a number near the greatest has a finite hypotenuse.
    huge = scalar(
        "gt", scalar("maximum", scalar("abs", x), scalar("abs", y)), number(_HUGE[dtype], dtype)
    )
    size = _where(huge, scalar("hypot", _mul(x, half), _mul(y, half)), size)
    far = _add(scalar("log", size), _where(huge, number(math.log(2), dtype), number(0, dtype)))
    near = scalar("and", scalar("gt", size, half), scalar("lt", size, _add(one, half)))
    return _where(near, _mul(half, scalar("log1p", less_one)), far)


def _log(a: Pair) -> Pair:
    x, y = a
    one = number(1, x.dtype)
    p, q = scalar("abs", x), scalar("abs", y)
    big, small = scalar("maximum", p, q), scalar("minimum", p, q)
    less_one = _add(_mul(_sub(big, one), _add(big, one)), _mul(small, small))
    return _log_size(x, y, less_one), scalar("atan2", y, x)


def _log1p(a: Pair) -> Pair:
    x, y = a
    more = _add(x, number(1, x.dtype))
    less_one = _add(_mul(x, _add(x, number(2, x.dtype))), _mul(y, y))
    return _log_size(more, y, less_one), scalar("atan2", y, more)


def _sqrt(a: Pair) -> Pair:
    x, y = a
    dtype = x.dtype
    half, two, infinity = number(0.5, dtype), number(2, dtype), number(math.inf, dtype)
    p, q = scalar("abs", x), scalar("abs", y)
    # The part that is a sum of positive numbers; from it the other.
    large = scalar("sqrt", _add(_mul(p, half), _mul(scalar("hypot", x, y), half)))
    small = scalar("div", q, _mul(large, two))
    right = scalar("ge", x, number(0, dtype))
    im = scalar("copysign", _where(right, small, large), y)
    found = _either(_is_zero(a), (number(0, dtype), y), (_where(right, large, small), im))
    return _either(_is(q, math.inf), (infinity, y), found)


def _finite_or(found: Expr, condition: Expr, other: Expr) -> Expr:
    """What was found, or the other where that is NaN and the condition holds."""
    return _where(scalar("and", scalar("isnan", found), condition), other, found)


def _sinh(a: Pair) -> Pair:
    x, y = a
    _, endless = _endless(x, y)
    re = _mul(scalar("sinh", x), scalar("cos", y))
    im = _mul(scalar("cosh", x), scalar("sin", y))
    re = _where(endless, scalar("abs", x), _finite_or(re, _is(x, 0), x))
    return re, _finite_or(im, _is(y, 0), y)


def _cosh(a: Pair) -> Pair:
    x, y = a
    _, endless = _endless(x, y)
    re = _mul(scalar("cosh", x), scalar("cos", y))
    im = _mul(scalar("sinh", x), scalar("sin", y))
    one = number(1, x.dtype)
    sign = _where(scalar("isnan", x), one, scalar("copysign", one, x))
    im = _finite_or(im, _is(x, 0), number(0, x.dtype))
    re = _where(endless, scalar("abs", x), re)
    return re, _finite_or(im, _is(y, 0), _mul(sign, y))


def _sin(a: Pair) -> Pair:
    """-i sinh(i a), and sin of the conjugate is the conjugate of sin."""
    im, re = _sinh((a[1], a[0]))
    return re, im


def _cos(a: Pair) -> Pair:
    """cosh(i a)"""
    return _cosh((scalar("neg", a[1]), a[0]))


def _tanh(a: Pair) -> Pair:
    """Kahan's formula; beyond |x| = 15 the real part is 1 and the imaginary part tiny."""
    x, y = a
    dtype = x.dtype
    zero, one = number(0, dtype), number(1, dtype)
    limit = number(15 if dtype == "f32" else 22, dtype)
    size = scalar("abs", x)
    far = scalar("gt", size, limit)
    t = scalar("tan", y)
    s = scalar("sinh", _where(far, zero, x))
    slope = _add(one, _mul(t, t))
    rho = scalar("sqrt", _add(one, _mul(s, s)))
    below = _add(one, _mul(slope, _mul(s, s)))
    near = (scalar("div", _mul(_mul(slope, rho), s), below), scalar("div", t, below))
    decay = scalar("exp", _mul(size, number(-2, dtype)))
    tail = _mul(_mul(_mul(scalar("sin", y), scalar("cos", y)), number(4, dtype)), decay)
    re, im = _either(far, (scalar("copysign", one, x), tail), near)
    infinite, endless = _endless(x, y)
    im = _where(endless, scalar("copysign", zero, y), im)
    lost = scalar("and", far, scalar("and", scalar("isnan", im), scalar("eq", x, x)))
    re = _where(scalar("and", lost, scalar("not", infinite)), im, re)
    return _finite_or(re, _is(x, 0), x), _finite_or(im, _is(y, 0), y)


def _tan(a: Pair) -> Pair:
    """-i tanh(i a)"""
    re, im = _tanh((scalar("neg", a[1]), a[0]))
    return im, scalar("neg", re)


def _by_products(a: Pair, n: int) -> Pair:
    """a ** n for n >= 1"""
    if n == 1:
        return a
    half = _by_products(a, n // 2)
    square = _product(half, half)
    return _product(square, a) if n % 2 else square


def _power(a: Pair, b: Pair) -> Pair:
    """a ** b: products for small whole exponents, exp(b log a) otherwise."""
    if b[0].op == b[1].op == "const" and b[1].value == 0:
        n = b[0].value
        if n == 0:
            return _one(a)
        if n == 0.5:
            return _sqrt(a)
        if abs(n) <= 16 and n == int(n):
            whole = _by_products(a, int(abs(n)))
            return whole if n > 0 else _reciprocal(whole)
    dtype = a[0].dtype
    zero, nan = number(0, dtype), number(math.nan, dtype)
    found = _exp(_product_as_in_c(b, _log(a)))
    found = _either(scalar("and", _is(b[0], 1), _is(b[1], 0)), a, found)
    positive = scalar("gt", b[0], zero)
    at_zero = (_where(positive, zero, nan), _where(positive, zero, nan))
    return _either(_is_zero(b), _one(a), _either(_is_zero(a), at_zero, found))


def _sign(a: Pair) -> Pair:
    size = scalar("hypot", *a)
    zero = number(0, size.dtype)
    divided = (scalar("div", a[0], size), scalar("div", a[1], size))
    return _either(_is_zero(a), (zero, zero), divided)


def _each(name: str) -> Callable[..., Pair]:
    return lambda *args: (
        scalar(name, *(a[0] for a in args)),
        scalar(name, *(a[1] for a in args)),
    )


def _any(test: str) -> Callable[..., tuple[Expr]]:
    """Whether either part passes a test."""
    return lambda *args: (scalar("or", *_each(test)(*args)),)


def _all(test: str) -> Callable[..., tuple[Expr]]:
    return lambda *args: (scalar("and", *_each(test)(*args)),)


def _scaled(a: Pair, factor: Any) -> Pair:
    return a if factor == 1 else _times(a, factor)


def _conjugate(a: Pair) -> Pair:
    return a[0], scalar("neg", a[1])


def _of_log(factor: float) -> Callable[[Pair], Pair]:
    return lambda a: _times(_log(a), factor)


COMPLEX: dict[str, Callable[..., tuple[Expr, ...]]] = {
    "add": lambda a, b, alpha=1: _each("add")(a, _scaled(b, alpha)),
    "sub": lambda a, b, alpha=1: _each("sub")(a, _scaled(b, alpha)),
    "rsub": lambda a, b, alpha=1: _each("sub")(b, _scaled(a, alpha)),
    "mul": _product,
    "div": _quotient,
    "neg": _each("neg"),
    "_conj_physical": _conjugate,
    "conj_physical": _conjugate,
    "_conj": _conjugate,
    "reciprocal": _reciprocal,
    "square": lambda a: _product(a, a),
    "pow": _power,
    "exp": _exp,
    "exp2": lambda a: _exp(_times(a, math.log(2))),
    "expm1": _expm1,
    "log": _log,
    "log2": _of_log(1 / math.log(2)),
    "log10": _of_log(1 / math.log(10)),
    "log1p": _log1p,
    "sqrt": _sqrt,
    "sin": _sin,
    "cos": _cos,
    "tan": _tan,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "sgn": _sign,
    "abs": lambda a: (scalar("hypot", a[0], a[1]),),
    "angle": lambda a: (scalar("atan2", a[1], a[0]),),
    "eq": _all("eq"),
    "ne": _any("ne"),
    "isnan": _any("isnan"),
    "isinf": _any("isinf"),
    "isfinite": _all("isfinite"),
    "where": lambda c, a, b: _either(c[0], a, b),
    "masked_fill": lambda a, mask, value: _either(mask[0], value, a),
}
