"""NumPy evaluators of scalar operations for which NumPy has no function of torch's meaning."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .dtypes import DTYPES, DType, round_to_bf16

Array = Any


def _is_float(a: Array) -> bool:
    return bool(a.dtype.kind == "f")


def remainder(a: Array, b: Array) -> Array:
    """The remainder with the sign of b; zero has the sign of a."""
    if not _is_float(a):
        return np.remainder(a, b)
    r = np.fmod(a, b)
    return np.where((r != 0) & ((b < 0) != (r < 0)), r + b, r)


def floordiv(a: Array, b: Array) -> Array:
    """The quotient rounded down, right where a / b rounds up to an integer."""
    if not _is_float(a):
        return np.floor_divide(a, b)
    one, half = a.dtype.type(1), a.dtype.type(0.5)
    r = np.fmod(a, b)
    q = (a - r) / b
    q = np.where((r != 0) & ((b < 0) != (r < 0)), q - one, q)
    whole = np.floor(q)
    whole = np.where(q - whole > half, whole + one, whole)
    whole = np.where(q != 0, whole, np.copysign(a.dtype.type(0), a / b))
    return np.where(b == 0, a / b, whole)


def truncdiv(a: Array, b: Array) -> Array:
    if _is_float(a):
        return np.trunc(a / b)
    quotient, rest = np.floor_divide(a, b), np.remainder(a, b)
    return np.where((rest != 0) & ((a < 0) != (b < 0)), quotient + a.dtype.type(1), quotient)


def sign(a: Array) -> Array:
    if a.dtype == bool:
        return a
    return np.where(np.isnan(a), a.dtype.type(0), np.sign(a)) if _is_float(a) else np.sign(a)


def signbit(a: Array) -> Array:
    return np.signbit(a) if _is_float(a) else a < 0


def minimum(a: Array, b: Array) -> Array:
    return np.where(b != b, b, np.where(b < a, b, a))


def maximum(a: Array, b: Array) -> Array:
    return np.where(b != b, b, np.where(b > a, b, a))


def fmin(a: Array, b: Array) -> Array:
    return np.where(a != a, b, np.where(b < a, b, a))


def fmax(a: Array, b: Array) -> Array:
    return np.where(a != a, b, np.where(b > a, b, a))


def where(condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition, a, b)


def rsqrt(a: Array) -> Array:
    return a.dtype.type(1) / np.sqrt(a)


def sigmoid(a: Array) -> Array:
    one = a.dtype.type(1)
    return one / (one + np.exp(-a))


def rint(a: Array) -> Array:
    return np.rint(a) if _is_float(a) else a


def isnan(a: Array) -> Array:
    return np.isnan(a) if _is_float(a) else np.zeros(a.shape, bool)


def isinf(a: Array) -> Array:
    return np.isinf(a) if _is_float(a) else np.zeros(a.shape, bool)


def isfinite(a: Array) -> Array:
    return np.isfinite(a) if _is_float(a) else np.ones(a.shape, bool)


def power(a: Array, b: Array) -> Array:
    """a ** b; of integers it wraps around, and 1 and -1 alone have negative powers but zero."""
    if _is_float(a):
        return np.power(a, b)
    one = a.dtype.type(1)
    result, base, rest = np.ones_like(a + b), a, b
    for _ in range(8 * a.dtype.itemsize):
        result = np.where(rest & one, result * base, result)
        base, rest = base * base, rest >> one
    if a.dtype.kind == "u":
        return result
    odd = np.where(b & one, -one, one)
    return np.where(b < 0, np.where(a == 1, one, np.where(a == -1, odd, 0)), result)


def nextafter(dtype: str, a: Array, b: Array) -> Array:
    """The number of float `dtype` beside a, towards b."""
    if dtype == "f16":
        return np.nextafter(a, b)
    if dtype != "bf16":
        return np.where(a == b, b, np.nextafter(a, b))
    a, b = np.broadcast_arrays(a, b)
    bits = a.astype(np.float32).view(np.uint32)
    step = np.where((a < b) == (a > 0), bits + 0x10000, bits - 0x10000)
    least = (b.astype(np.float32).view(np.uint32) & 0x80000000) + 0x10000
    moved = np.where(a == 0, least, step).astype(np.uint32).view(np.float32)
    moved = np.where(a == b, b, moved)
    return np.where(np.isnan(a), a, np.where(np.isnan(b), b, moved)).astype(np.float32)


# Casts


def _to_signed(x: Array, bits: int) -> Array:
    """Floats as integers of 32 or 64 bits; those that do not fit are the lowest integer."""
    kind = np.dtype(f"int{bits}").type
    limit = x.dtype.type(2.0 ** (bits - 1))
    fits = (x >= -limit) & (x < limit)
    return np.where(fits, np.where(fits, x, x.dtype.type(0)).astype(kind), np.iinfo(kind).min)


def _to_integer(x: Array, dst: DType) -> Array:
    """Floats as integers, as x86 does it."""
    if dst.name == "u64":
        high = _to_signed(x - x.dtype.type(2.0**63), 64).astype(np.uint64) ^ np.uint64(1 << 63)
        return np.where(x >= x.dtype.type(2.0**63), high, _to_signed(x, 64).astype(np.uint64))
    bits = 64 if dst.name in ("i64", "u32") else 32
    return _to_signed(x, bits).astype(dst.numpy)


def cast(x: Array, src: DType, dst: DType) -> Array:
    if src.kind == "f" and dst.kind in "iu":
        return _to_integer(x.astype(DTYPES[src.working].numpy), dst)
    if dst.name == "bf16":
        return round_to_bf16(x)
    if dst.name == "f16" and src.name != "f64":
        return x.astype(np.float32).astype(np.float16)
    return x.astype(dst.numpy)


# Elementary functions, of which NumPy lacks some


def _by_element(function: Callable[[float], float]) -> Callable[[Array], Array]:
    whole = np.vectorize(function, otypes=[np.float64])
    return lambda a: whole(a.astype(np.float64)).astype(a.dtype)


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def _tgamma(x: float) -> float:
    try:
        return math.gamma(x)
    except OverflowError:
        return math.copysign(math.inf, x)
    except ValueError:
        return math.copysign(math.inf, x) if x == 0 else math.nan


ELEMENTARY: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "erf": _by_element(math.erf),
    "erfc": _by_element(math.erfc),
    "lgamma": _by_element(_lgamma),
    "tgamma": _by_element(_tgamma),
}
