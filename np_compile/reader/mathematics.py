"""Functions of `math`, and `round`, on single numbers; clocks."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

from .nest import lazy, named_numbers
from .numbers import convert, to_float, to_int
from .read import Reader
from .unions import binary
from .values import Arr, Lazy, Num, Unreadable, Value, python

C = r"""
QUIET i64 common_i64(i64 a, i64 b) {
    u64 x = a < 0 ? -(u64)a : (u64)a, y = b < 0 ? -(u64)b : (u64)b;
    while (y) { u64 z = x % y; x = y; y = z; }
    return x; /* negative where it is beyond 63 bits */
}
INLINE i64 isqrt_i64(i64 n) {
    i64 x = (i64)__builtin_sqrt((f64)n);
    if (x > 3037000499L) x = 3037000499L;
    while (x * x > n) x--;
    while (x < 3037000499L && (x + 1) * (x + 1) <= n) x++;
    return x;
}
/* -1 where it is beyond 64 bits. */
QUIET i64 comb_i64(i64 n, i64 k) {
    i64 made = 1;
    if (k > n) return 0;
    if (k > n - k) k = n - k;
    for (i64 j = 1; j <= k; j++) {
        if (__builtin_mul_overflow(made, n - k + j, &made)) return -1;
        made /= j;
    }
    return made;
}
QUIET i64 factorial_i64(i64 n) {
    i64 made = 1;
    for (i64 k = 2; k <= n; k++) made *= k;
    return made;
}
extern int snprintf(char *, u64, const char *, ...);
extern f64 strtod(const char *, char **);
/* By the decimal number that is nearest, as Python does; where x times a power of ten is clearly
   on one side of a half, that one is known without its text. */
QUIET f64 rounded_f64(f64 x, i64 digits, f64 power) {
    f64 y = x * power, near = __builtin_rint(y), size = __builtin_fabs(y);
    f64 from_half = __builtin_fabs(__builtin_fabs(y - near) - 0.5);
    if (size < 0x1p51 && from_half > size * 0x1p-51) return near / power;
    if (!__builtin_isfinite(x)) return x;
    char text[400];
    snprintf(text, sizeof text, "%.*f", (int)digits, x);
    return strtod(text, 0);
}
"""
NAMES = ("common_i64", "isqrt_i64", "comb_i64", "factorial_i64", "rounded_f64")
_DIGITS = 22  # the greatest power of ten that is a float


def rounded(r: Reader, x: Value, digits: Value | None = None) -> Value:
    """`round(x, digits)`."""
    if isinstance(x, Arr):
        raise Unreadable("round of an array")
    x = single(x)
    if isinstance(digits, Num):
        return _to_digits(r, x, digits)
    if x.is_python and x.rep == "f64":
        return to_int(r, r.number(f"__builtin_rint({x.text})", "f64", ("float",)))
    if x.is_int and x.is_python:
        return x
    if x.rep == "f64":  # np.float64 gives a Python integer too
        return to_int(r, r.number(f"__builtin_rint({x.text})", "f64", ("float",)))
    raise Unreadable("round of this")


def _to_digits(r: Reader, x: Num, digits: Num) -> Num:
    if digits.kind != "int" or digits.value is None or not 0 <= digits.value <= _DIGITS:
        raise Unreadable("round to digits of which the number is no small constant")
    power = f"1e{digits.value}"
    if x.kind == "float":
        x = named_numbers(r, x)
        text = f"rounded_f64({x.text}, {digits.value}, {power})"
        return r.number(text, "f64", ("float",))
    if x.kind == "float64":  # as NumPy rounds arrays
        return r.number(f"(__builtin_rint({x.text} * {power}) / {power})", "f64", ("float64",))
    if x.kind == "int":
        return x
    raise Unreadable("round of this")


def single(x: Value) -> Num:
    """A number, or the element of an array without axes."""
    if isinstance(x, Num):
        return x
    if isinstance(x, (Arr, Lazy)) and x.ndim == 0:
        return Num(lazy(x).at([]), x.rep, (x.kind,))
    raise Unreadable("a number is needed")


# Integers


def _integers(r: Reader, args: tuple[Value, ...]) -> list[Num]:
    found = [single(x) for x in args]
    if not all(x.is_int for x in found):
        raise Unreadable("a number that is no integer")
    return [to_int(r, x) for x in found]


def _gcd(r: Reader, *args: Value) -> Value:
    made, *rest = _integers(r, args) or [python(0)]
    for x in rest or [python(0)]:
        text = r.named(f"common_i64({made.text}, {x.text})", "i64", "n")
        r.leave_if(f"{text} < 0", "an integer beyond 64 bits")
        made = r.integer(text, 0)
    return made


def _isqrt(r: Reader, n: Value) -> Value:
    (n,) = _integers(r, (n,))
    if n.low < 0:
        r.leave_if(f"{n.text} < 0", "the square root of a negative number")
    return r.integer(f"isqrt_i64({n.text})", 0, math.isqrt(max(n.high, 0)))


def _comb(r: Reader, n: Value, k: Value) -> Value:
    n, k = _integers(r, (n, k))
    r.leave_if(f"{n.text} < 0 || {k.text} < 0", "a negative number in math.comb")
    made = r.named(f"comb_i64({n.text}, {k.text})", "i64", "n")
    r.leave_if(f"{made} < 0", "an integer beyond 64 bits")
    return r.integer(made, 0)


def _factorial(r: Reader, n: Value) -> Value:
    (n,) = _integers(r, (n,))
    r.leave_if(f"(u64){n.text} > 20", "math.factorial of a negative or a large number")
    return r.integer(f"factorial_i64({n.text})", 1)


def _is_close(
    r: Reader, a: Value, b: Value, *, rel_tol: Value | None = None, abs_tol: Value | None = None
) -> Value:
    given = (a, b, rel_tol or python(1e-9), abs_tol or python(0.0))
    x, y, near, least = (named_numbers(r, to_float(r, single(v))).text for v in given)
    r.leave_if(f"{near} < 0 || {least} < 0", "an error of math.isclose")
    apart = f"__builtin_fabs({x} - {y})"
    test = (
        f"({x} == {y} || (__builtin_isfinite({x}) && __builtin_isfinite({y}) && "
        f"({apart} <= __builtin_fabs({near} * {y}) || {apart} <= __builtin_fabs({near} * {x}) || "
        f"{apart} <= {least})))"
    )
    return Num(test, "bool", ("bool",), low=0, high=1)


# Floats

_ONE = (
    "exp",
    "sin",
    "cos",
    "tan",
    "atan",
    "tanh",
    "sinh",
    "cosh",
    "asinh",
    "expm1",
    "cbrt",
    "exp2",
)


def _math(name: str, wrong: str) -> Callable:
    def apply(r: Reader, *args: Value) -> Value:
        texts = [named_numbers(r, to_float(r, single(a))).text for a in args]
        made = r.number(f"{name}_f64({', '.join(texts)})", "f64", ("float",))
        if wrong:
            r.leave_if(wrong.format(*texts, y=made.text), f"an error of math.{name}")
        return made

    return apply


_FINITE = "!__builtin_isfinite({y}) && __builtin_isfinite({0})"


def _whole(name: str) -> Callable:
    def apply(r: Reader, x: Value) -> Value:
        x = single(x)
        if x.is_int:
            return to_int(r, x)
        text = convert(r, x, "f64").text
        return to_int(r, r.number(f"__builtin_{name}({text})", "f64", ("float",)))

    return apply


def _test(template: str) -> Callable:
    def apply(r: Reader, x: Value) -> Value:
        text = to_float(r, single(x)).text
        return Num(template.format(text), "bool", ("bool",), low=0, high=1)

    return apply


def _sqrt(r: Reader, x: Value) -> Value:
    text = to_float(r, single(x)).text
    r.fails_if(f"{text} < 0", "the square root of a negative number", ValueError)
    return r.number(f"__builtin_sqrt({text})", "f64", ("float",))


def _log(r: Reader, x: Value, base: Value | None = None) -> Value:
    text = to_float(r, single(x)).text
    r.fails_if(f"{text} <= 0", "the logarithm of what is not positive", ValueError)
    made = r.number(f"log_f64({text})", "f64", ("float",))
    if base is None:
        return made
    return binary(r, "Div", made, _log(r, base))


def _fabs(r: Reader, x: Value) -> Value:
    return r.number(f"__builtin_fabs({to_float(r, single(x)).text})", "f64", ("float",))


TABLE: dict[Any, Callable] = {
    math.gcd: _gcd, math.isqrt: _isqrt, math.comb: _comb, math.factorial: _factorial,
    math.isclose: _is_close,
    math.sqrt: _sqrt, math.log: _log, math.fabs: _fabs,
    math.log2: _math("log2", "{0} <= 0"), math.log10: _math("log10", "{0} <= 0"),
    math.log1p: _math("log1p", "{0} <= -1"),
    math.asin: _math("asin", "!(__builtin_fabs({0}) <= 1)"),
    math.acos: _math("acos", "!(__builtin_fabs({0}) <= 1)"),
    math.atan2: _math("atan2", ""), math.hypot: _math("hypot", _FINITE),
    math.lgamma: _math("lgamma", _FINITE),
    math.fmod: _math("fmod", "{y} != {y} && {0} == {0} && {1} == {1}"),
    math.acosh: _math("acosh", "{0} < 1"),
    math.atanh: _math("atanh", "__builtin_fabs({0}) >= 1"),
    math.erf: _math("erf", ""), math.erfc: _math("erfc", ""),
    **{getattr(math, n): _math(n, _FINITE) for n in _ONE if hasattr(math, n)},
    math.floor: _whole("floor"), math.ceil: _whole("ceil"), math.trunc: _whole("trunc"),
    math.isnan: _test("({0} != {0})"),
    math.isinf: _test("(__builtin_fabs({0}) == __builtin_inf())"),
    math.isfinite: _test("(__builtin_fabs({0}) < __builtin_inf())"),
    math.pow: lambda r, a, b: binary(r, "Pow", to_float(r, single(a)), to_float(r, single(b))),
    math.copysign: lambda r, a, b: r.number(
        f"__builtin_copysign({to_float(r, single(a)).text}, {to_float(r, single(b)).text})",
        "f64", ("float",),
    ),
    math.radians: lambda r, a: binary(r, "Mult", to_float(r, single(a)), python(math.pi / 180)),
    math.degrees: lambda r, a: binary(r, "Mult", to_float(r, single(a)), python(180 / math.pi)),
}  # fmt: skip


# Clocks

_KINDS = {
    f"clock_gettime(CLOCK_{name})": kind
    for kind, name in enumerate(("REALTIME", "MONOTONIC", "PROCESS_CPUTIME_ID"))
}
_SECONDS = 1e9  # nanoseconds


def _clock(kind: int, whole: bool) -> Callable:
    def told(r: Reader) -> Num:
        now = r.named(f"clock_of(rt, {kind})", "i64")
        if whole:
            return r.integer(now, 0, 1 << 62)
        return r.number(f"(f64){now} / {_SECONDS}", "f64", ("float",))

    return told


def _clocks() -> dict[Any, Callable]:
    """The clocks that are read as C reads them."""
    made: dict[Any, Callable] = {}
    for name in ("time", "monotonic", "perf_counter", "process_time"):
        kind = _KINDS.get(time.get_clock_info(name).implementation) if _IS_LINUX else None
        if kind is not None:
            made[getattr(time, name)] = _clock(kind, False)
            made[getattr(time, f"{name}_ns")] = _clock(kind, True)
    return made


_IS_LINUX = sys.platform == "linux"
TABLE |= _clocks()
