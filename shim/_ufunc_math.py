"""Elementwise formulas on tensors where torch and NumPy differ, used by the rows of `_ufunc_table`.

Arguments are tensors of the loop's dtype (second arguments may be 0-D); results are fresh tensors.
None of them looks at data.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from . import _unsigned
from ._dtypes import DataDependent
from ._host import is_concrete
from ._index_plan import readable
from ._unsigned import divide, less, remainder

where = torch.where


def clone(a: torch.Tensor) -> torch.Tensor:
    """A physical copy."""
    return a.clone()


def by_numpy(name: str, formula: Callable) -> Callable:
    """The formula; where elements are at hand, NumPy's own loop: torch's functions have other last
    places, and even its roots are not rounded correctly on the CPU (MKL's)."""
    own = np.errstate(all="ignore")(getattr(np, name))

    def run(*operands: torch.Tensor) -> torch.Tensor:
        for t in operands:
            if not is_concrete(t):
                return formula(*operands)
        given = [
            (t.resolve_conj().resolve_neg() if t.is_neg() or t.is_conj() else t).numpy()
            for t in operands
        ]
        return torch.from_numpy(np.asarray(own(*given)))

    run.__name__ = run.__qualname__ = name  # it stands in a graph's code
    return run


sqrt = by_numpy("sqrt", torch.sqrt)
log10 = by_numpy("log10", torch.log10)
power = by_numpy("power", torch.pow)
complex_multiply = by_numpy("multiply", torch.mul)


# integers: division by zero gives 0, INT_MIN // -1 wraps


def _safe_divisor(b: torch.Tensor) -> torch.Tensor:
    return where((b == 0) | (b == -1), 1, b) if b.dtype.is_signed else where(b == 0, 1, b)


def true_divide(a: torch.Tensor, b: torch.Tensor | float) -> torch.Tensor:
    """a / b, correctly rounded: on CUDA torch multiplies by the reciprocal of a host scalar."""
    if isinstance(a, torch.Tensor) and a.is_cuda:
        if not isinstance(b, torch.Tensor):
            b = torch.full((), b, dtype=a.dtype, device=a.device)
        elif b.dim() == 0 and not b.is_cuda:
            b = b.to(a.device)
    return torch.true_divide(a, b)


complex_divide = by_numpy("divide", true_divide)


def int_floor_divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    q = torch.div(a, _safe_divisor(b), rounding_mode="floor")
    if b.dtype.is_signed:
        q = where(b == -1, -a, q)
    return where(b == 0, 0, q)


def int_remainder(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.remainder(a, _safe_divisor(b)) * (b != 0)


def int_fmod(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.fmod(a, _safe_divisor(b)) * (b != 0)


def int_divmod(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return int_floor_divide(a, b), int_remainder(a, b)


def int_power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a ** b by repeated squaring, wrapping round as machine integers do.

    Errors: ValueError for a negative exponent; DataDependent where exponents are not known.
    """
    if b.dtype.is_signed and a.numel() and b.numel():
        if not readable(b):
            raise DataDependent("a negative exponent is an error")
        if bool((b < 0).any()):
            refuse_negative()
    return natural_power(a, b)


def refuse_negative() -> None:
    """What NumPy says to a negative exponent."""
    raise ValueError("Integers to negative integer powers are not allowed.")


def natural_power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """As int_power, of exponents that are not negative."""
    return torch.pow(a, b)


def bits_power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a ** b of uint64 on int64 bits: the exponent is unsigned, so it is folded in two halves."""
    top = where(b < 0, 1, 0)
    low = b & (2**63 - 1)
    high = torch.pow(torch.pow(a, 2**62), 2)
    return torch.pow(a, low) * where(top == 1, high, 1)


def int_reciprocal(a: torch.Tensor) -> torch.Tensor:
    """1 / a cut off at zero: only 1 and -1 stay; 1/0 is what the cast of inf gives."""
    bits = 8 * a.dtype.itemsize
    zero = torch.iinfo(a.dtype).min if bits >= 32 and a.dtype.is_signed else 0
    one = a * where((a == 1) | (a == -1), 1, 0).to(a.dtype) if a.dtype.is_signed else (a == 1)
    return where(a == 0, zero, one.to(a.dtype))


def bits_reciprocal(a: torch.Tensor) -> torch.Tensor:
    """1 / a of unsigned integers held in wider ones."""
    return where(a == 1, 1, 0).to(a.dtype)


def shift_left(a: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """a << n, 0 from the width on."""
    inside = (n >= 0) & (n < 8 * a.dtype.itemsize)
    return where(inside, torch.bitwise_left_shift(a, where(inside, n, 0)), 0)


def shift_right(a: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """a >> n, the sign from the width on."""
    width = 8 * a.dtype.itemsize
    inside = (n >= 0) & (n < width)
    return (
        torch.bitwise_right_shift(a, where(inside, n, width - 1))
        if a.dtype.is_signed
        else where(inside, torch.bitwise_right_shift(a, where(inside, n, 0)), 0)
    )


def bits_divmod(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return divide(a, b), remainder(a, b)


def bits_less_equal(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return ~less(b, a)


def bits_maximum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return where(less(a, b), b, a)


def bits_minimum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return where(less(b, a), b, a)


def int_gcd(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """gcd of signed integers; torch.gcd stops the process at INT_MIN, so int64 goes unsigned."""
    if a.dtype is torch.int64:
        return _unsigned.gcd(torch.abs(a), torch.abs(b))
    wide = torch.gcd(a.to(torch.int64), b.to(torch.int64))
    return wide.to(a.dtype)


def bits_lcm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return divide(a, _unsigned.gcd(a, b)) * b


def int_lcm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.dtype is torch.int64:
        return bits_lcm(torch.abs(a), torch.abs(b))
    a64, b64 = torch.abs(a.to(torch.int64)), torch.abs(b.to(torch.int64))
    common = torch.gcd(a64, b64)
    return (torch.div(a64, where(common == 0, 1, common), rounding_mode="floor") * b64).to(a.dtype)


# floats


def sign(a: torch.Tensor) -> torch.Tensor:
    return where(torch.isnan(a), a, torch.sign(a))


def float_remainder(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Python's modulo: the sign of b, nan for b = 0, zeros signed like b."""
    mod = torch.fmod(a, b)
    other_sign = (mod != 0) & ((b < 0) != (mod < 0))
    moved = where(other_sign, mod + b, mod)
    return where(
        (mod == 0) & (torch.signbit(mod) != torch.signbit(b)), torch.copysign(mod, b), moved
    )


def float_floor_divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The largest integer whose product with b stays below a; a / b for b = 0."""
    mod = torch.fmod(a, b)
    div = (a - mod) / b
    div = where((mod != 0) & ((b < 0) != (mod < 0)), div - 1, div)
    floor = torch.floor(div)
    floor = where(div - floor > 0.5, floor + 1, floor)
    quotient = a / b
    zero = torch.copysign(torch.zeros_like(floor), quotient)
    return where(b == 0, quotient, where(div == 0, zero, floor))


def float_divmod(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return float_floor_divide(a, b), float_remainder(a, b)


def scaled_as(ufunc: np.ufunc) -> Callable:
    """Angles in another unit: NumPy's factor for float32, which float16 has too, is its own."""
    single, double = (float(ufunc(one)) for one in (np.float32(1), np.float64(1)))

    def scaled(a: torch.Tensor) -> torch.Tensor:
        if a.dtype is torch.float64:
            return a * double
        return (a.to(torch.float32) * single).to(a.dtype)

    return scaled


def cbrt(a: torch.Tensor) -> torch.Tensor:
    """The real cube root: a power in float64, then one Newton step."""
    x = a.to(torch.float64)
    special = (x == 0) | ~torch.isfinite(x)
    safe = where(special, 1.0, x)
    root = torch.copysign(torch.pow(torch.abs(safe), 1 / 3), safe)
    root = root - (root - safe / (root * root)) / 3
    return where(special, x, root).to(a.dtype)


def maximum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """torch's; of equal numbers of float16, such as zeros, the first."""
    larger = torch.maximum(a, b)
    return where(a == b, a, larger) if a.dtype is torch.float16 else larger


def minimum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """As maximum."""
    smaller = torch.minimum(a, b)
    return where(a == b, a, smaller) if a.dtype is torch.float16 else smaller


# Of equal halves NumPy gives the first up to 2.4, the second, as C does, from 2.5 on.
_FIRST_OF_EQUAL_HALVES = bool(np.signbit(np.nextafter(np.float16(-0.0), np.float16(0.0))))


def nextafter(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """torch's; of equal numbers of float16 what the installed NumPy gives."""
    following = torch.nextafter(a, b)
    if a.dtype is torch.float16:
        return where(a == b, a if _FIRST_OF_EQUAL_HALVES else b, following)
    return following


def heaviside(a: torch.Tensor, at_zero: torch.Tensor) -> torch.Tensor:
    step = where(a > 0, torch.ones_like(a), torch.zeros_like(a))
    return where(torch.isnan(a), a, where(a == 0, at_zero, step))


def logaddexp(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """log(exp(a) + exp(b)); equal infinities stay."""
    same = a == b
    gap = torch.abs(where(same, torch.zeros_like(a), a - b))
    # of equal ones each has half the gradient
    return where(
        same, a * 0.5 + b * 0.5 + math.log(2), torch.maximum(a, b) + torch.log1p(torch.exp(-gap))
    )


def logaddexp2(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """log2(2**a + 2**b); equal infinities stay."""
    same = a == b
    gap = torch.abs(where(same, torch.zeros_like(a), a - b))
    more = torch.log1p(torch.exp2(-gap)) * (1 / math.log(2))
    return where(same, a * 0.5 + b * 0.5 + 1, torch.maximum(a, b) + more)


def modf(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Fraction and integer part, both with the sign of a."""
    whole = torch.trunc(a)
    rest = where(torch.signbit(a), -(whole - a), a - whole)  # with a gradient at integers too
    return where(torch.isinf(a), torch.copysign(torch.zeros_like(a), a), rest), whole


def frexp(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mantissa in [0.5, 1) and binary exponent; inf, nan and 0 have exponent 0."""
    plain = torch.isfinite(a)
    mantissa, exponent = torch.frexp(where(plain, a, torch.zeros_like(a)))
    return where(plain, mantissa, a), exponent.to(torch.int32)


def _exact_power_of_two(n: torch.Tensor) -> torch.Tensor:
    """2.0**n as float64 for n in [-1022, 1023]."""
    return ((n + 1023) << 52).view(torch.float64)


def ldexp(a: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """a * 2**n, rounded once."""
    x = a.to(torch.float64)
    n = n.to(torch.int64).clamp(-5000, 5000)
    if a.dtype != torch.float64:  # the range of float64 leaves room: exact until the last cast
        n = n.clamp(-1000, 1000)
        return (x * _exact_power_of_two(n)).to(a.dtype)
    exponent = frexp(x)[1].to(torch.int64)
    half = exponent >> 1
    unit = x * _exact_power_of_two(-half) * _exact_power_of_two(half - exponent)
    total = n + exponent
    first = total.clamp(-1021, 1023)
    rest = (total - first).clamp(-1021, 1023)
    return unit * _exact_power_of_two(first) * _exact_power_of_two(rest)


def spacing(a: torch.Tensor) -> torch.Tensor:
    """The distance to the next number away from zero, signed like a; for float16 upwards."""
    infinity = torch.full_like(a, math.inf)
    towards = infinity if a.dtype is torch.float16 else where(a < 0, -infinity, infinity)
    gap = torch.nextafter(a, towards) - a
    return where(torch.isinf(a), torch.full_like(a, math.nan), gap)


# complex numbers: order is lexicographic, real part first


def complex_less(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    near = (a.real == b.real) & (a.imag < b.imag)
    return near | ((a.real < b.real) & ~torch.isnan(a.imag) & ~torch.isnan(b.imag))


def complex_less_equal(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    near = (a.real == b.real) & (a.imag <= b.imag)
    return near | ((a.real < b.real) & ~torch.isnan(a.imag) & ~torch.isnan(b.imag))


def complex_maximum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return where(torch.isnan(a) | complex_less_equal(b, a), a, b)


def complex_minimum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return where(torch.isnan(a) | complex_less_equal(a, b), a, b)


def complex_fmax(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return where(torch.isnan(b) | complex_less_equal(b, a), a, b)


def complex_fmin(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return where(torch.isnan(b) | complex_less_equal(a, b), a, b)


def by_parts(f: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A function of the real parts, and of the imaginary parts: torch's own sums of complex numbers
    multiply by one, which makes nan of an infinite part, and its negative loses signs of zeros."""

    def each(*operands: torch.Tensor) -> torch.Tensor:
        return torch.complex(f(*[t.real for t in operands]), f(*[t.imag for t in operands]))

    return each


def complex_reciprocal(a: torch.Tensor) -> torch.Tensor:
    """1 / a, by Smith's algorithm as NumPy has it."""
    x, y = a.real, a.imag
    wide = torch.abs(y) <= torch.abs(x)
    big, small = where(wide, x, y), where(wide, y, x)
    ratio = small / big
    scale = big + small * ratio
    one = torch.ones_like(ratio)
    return torch.complex(where(wide, one, ratio) / scale, where(wide, -ratio, -one) / scale)


def complex_log1p(a: torch.Tensor) -> torch.Tensor:
    more = a.real + 1
    return torch.complex(torch.log(torch.hypot(more, a.imag)), torch.atan2(a.imag, more))


def complex_log(base: int) -> Callable:
    """The logarithm to base 2 or 10, as NumPy has it: the natural one times a number."""
    factor = math.log2(math.e) if base == 2 else math.log10(math.e)

    def run(a: torch.Tensor) -> torch.Tensor:
        natural = torch.log(a)
        return torch.complex(natural.real * factor, natural.imag * factor)

    return run


def complex_arccos(a: torch.Tensor) -> torch.Tensor:
    """torch's, with the sign of a zero: that of the imaginary part is the other one than of `a`."""
    result = torch.arccos(a)
    return torch.complex(result.real, torch.copysign(result.imag, -a.imag))


def complex_whole_power(a: torch.Tensor, n: int) -> torch.Tensor:
    """a ** n, |n| < 100, by products in NumPy's order."""
    one = torch.ones_like(a)
    if n == 0:
        return one
    if n in (1, 2, 3):
        power = (a, a * a, a * (a * a))[n - 1]
        return where(a == 0, torch.zeros_like(a), power)
    result, square, rest = one, a, abs(n)
    while True:
        if rest & 1:
            result = result * square
        rest >>= 1
        if not rest:
            break
        square = square * square
    if n > 0:
        return where(a == 0, torch.zeros_like(a), result)
    return where(a == 0, _complex_nan(a), one / result)


def float_power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """torch's; of a single exponent that is a half the square root, as NumPy has it."""
    if b.dim() or a.dtype is torch.float16:
        return torch.pow(a, b)
    half, one = b == 0.5, torch.ones_like(a)  # neither sees what is not its own, for its gradient
    return where(half, torch.sqrt(where(half, a, one)), torch.pow(where(half, one, a), b))


def complex_sign(a: torch.Tensor) -> torch.Tensor:
    """a / |a|; an infinite part alone gives the axis, two of them nan."""
    size = torch.abs(a)
    re_inf, im_inf = torch.isinf(a.real), torch.isinf(a.imag)
    zero = torch.zeros_like(size)
    unit = where(size == 0, torch.ones_like(size), size)
    zero_re, zero_im = im_inf & ~re_inf | (size == 0), re_inf & ~im_inf | (size == 0)
    re = where(zero_re, zero, where(re_inf & ~im_inf, torch.sign(a.real), a.real / unit))
    im = where(zero_im, zero, where(im_inf & ~re_inf, torch.sign(a.imag), a.imag / unit))
    bad = torch.isnan(a) & ~(re_inf | im_inf)
    nan = torch.full_like(size, math.nan)
    re, im = where(bad, nan, re), where(bad, nan, im)
    return torch.complex(where(size == 0, zero, re), where(size == 0, zero, im))


def complex_rint(a: torch.Tensor) -> torch.Tensor:
    return torch.complex(torch.round(a.real), torch.round(a.imag))


def complex_power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a ** b: 1 for b = 0; 0 for a = 0 and a positive real part of b, else nan."""
    if not b.is_complex():
        b = b.to(a.dtype)
    zero_base, zero_exponent = a == 0, b == 0
    safe = where(zero_base, torch.ones_like(a), a)
    result = torch.pow(safe, b)
    nan = _complex_nan(a)
    at_zero = where((b.real > 0) & (b.imag == 0), torch.zeros_like(a), nan)
    at_zero = where((b.real > 0) & (b.imag != 0), torch.zeros_like(a), at_zero)
    result = _whole_powers(a, b, where(b == -1, torch.ones_like(a) / a, result))
    for whole, product in ((1, a), (2, a * a), (3, a * (a * a))):
        result = where(b == whole, product, result)
    result = where(zero_base, at_zero, result)
    return where(zero_exponent, torch.ones_like(a), result)


def _whole_powers(a: torch.Tensor, b: torch.Tensor, powers: torch.Tensor) -> torch.Tensor:
    """`powers`, with products in NumPy's order where the exponent is whole and below 100. Without
    data the powers as they are."""
    if not readable(b):
        return powers
    whole = (b.imag == 0) & (b.real == torch.trunc(b.real)) & (torch.abs(b.real) < 100) & (a != 0)
    if not bool(whole.any()):
        return powers
    count = torch.abs(where(whole, b.real, 0)).to(torch.int64)
    square, product = where(whole, a, 1), torch.ones_like(powers)
    for place in range(int(count.max()).bit_length()):
        square = square * square if place else square
        product = where((count >> place) & 1 != 0, product * square, product)
    product = where(b.real < 0, torch.ones_like(a) / product, product)
    return where(whole, product, powers)


def dense(formula: Callable) -> Callable:
    """The formula on operands without gaps: torch's functions of complex numbers give another last
    digit where they step from element to element."""

    def run(*operands: torch.Tensor):
        return formula(*[t if t.is_contiguous() else t.clone() for t in operands])

    return run


def _complex_nan(a: torch.Tensor) -> torch.Tensor:
    """Made of two, as a traced program cannot write one down."""
    part = torch.full_like(a.real, math.nan)
    return torch.complex(part, part)


def conjugate(a: torch.Tensor) -> torch.Tensor:
    return torch.conj_physical(a)


# dtypes that meet only here


def mixed_less(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a < b of int64 against uint64, or the other way round."""
    if a.dtype is torch.uint64:
        a = a.view(torch.int64)
        return (a >= 0) & (a < b)
    b = b.view(torch.int64)
    return (b < 0) | (a < b)


def mixed_equal(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a == b of int64 against uint64."""
    a, b = a.view(torch.int64), b.view(torch.int64)
    return (a == b) & (a >= 0)
