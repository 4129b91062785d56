"""The C of integers, powers and complex numbers: what touches no memory but its own, on the host
and on a device."""

from __future__ import annotations

import re

# Integers and powers: what compiled loops call that touches nothing.
NUMBERS = """\
INLINE i64 wrapped(i64 i, i64 n) { return i < 0 ? i + n : i; }
INLINE i64 bound(i64 x, i64 n, i64 low) {
    x = x < 0 ? x + n : x;
    return x < low ? low : x > n + low ? n + low : x;
}
QUIET int power_overflows(i64 a, i64 n, i64 *result) {
    i64 made = 1;
    while (n) {
        if ((n & 1) && __builtin_mul_overflow(made, a, &made)) return 1;
        n >>= 1;
        if (n && __builtin_mul_overflow(a, a, &a)) return 1;
    }
    *result = made;
    return 0;
}
INLINE int shift_overflows(i64 a, i64 n, i64 *result) {
    if (a == 0) { *result = 0; return 0; }
    if (n > 62) return 1;
    *result = (i64)((u64)a << n);
    return (*result >> n) != a;
}
/* One of two numbers, both of which are there: no branch that computes one only. */
INLINE i64 chosen_i64(int first, i64 a, i64 b) {
#ifndef __CUDACC__
    __asm__("" : "+r"(a));
    __asm__("" : "+r"(b));
#endif
    return first ? a : b;
}
/* A rest that is zero has the divisor's sign. */
INLINE f64 rest_f64(f64 r, f64 divisor) { return r == 0 ? __builtin_copysign(0.0, divisor) : r; }
INLINE f32 rest_f32(f32 r, f32 divisor) { return r == 0 ? __builtin_copysignf(0.0f, divisor) : r; }
INLINE u64 low_bits(u64 x) {
    x |= x >> 1; x |= x >> 2; x |= x >> 4; x |= x >> 8; x |= x >> 16; x |= x >> 32;
    return x;
}
/* x to the power n / 2, n a constant: in twice the precision, of which pow gives the nearest number
   but where two are about as near, for its error in units of the last place is below 0.51 and
   2**-14.6 times the logarithm of the result: 0.514 for up to three halves, 0.537 for more. sure:
   whether it is that number. */
INLINE f64 about_halves(f64 x, i64 n, i64 *sure) {
#ifdef __FP_FAST_FMA
    f64 size = __builtin_fabs(x), high = 1, low = 0, before = 1, left = 0;
    i64 m = n < 0 ? -n : n;
    if (m & 1) {
        high = __builtin_sqrt(x);
        left = __builtin_fma(-high, high, x); /* the square of the root, taken from x */
        if (n > 0) low = left / (2 * high);
    }
    for (i64 k = 0; k < m / 2; k++) {
        f64 product = high * x;
        low = __builtin_fma(high, x, -product) + low * x;
        before = high;
        high = product;
    }
    if (n < 0) {
        f64 inverse = 1 / high;
        /* 1 / x is what the last factor took the inverse to; a division is the longest step. */
        if (m & 1) left *= 0.5 * inverse * (m == 1 ? inverse : before);
        low = inverse * (__builtin_fma(-inverse, high, 1) - inverse * low - left);
        high = inverse;
    }
    f64 sum = high + low, rest = low - (sum - high);
    *sure = sum + (m > 3 ? 1.08 : 1.03) * rest == sum;
    *sure &= (i64)(size > 0x1p-80) & (i64)(size < 0x1p80);
    return sum;
#else
    *sure = 0;
    return x;
#endif
}
static __attribute__((noipa, unused)) f64 pow_itself(f64 x, f64 y) { return pow_f64(x, y); }
INLINE f64 pow_halves(f64 x, i64 n) {
    i64 sure;
    f64 power = about_halves(x, n, &sure);
    return __builtin_expect(sure, 1) ? power : pow_itself(x, n * 0.5);
}
/* The same, or nan where it is not sure, without a choice: see `powers.py`. */
INLINE f64 near_halves(f64 x, i64 n) {
    i64 sure, bits;
    f64 power = about_halves(x, n, &sure);
    __builtin_memcpy(&bits, &power, 8);
    bits |= sure - 1;
    __builtin_memcpy(&power, &bits, 8);
    return power;
}
"""

# Complex numbers as NumPy computes them: products by the four products, quotients by the larger
# part of the divisor; Python divides where NumPy multiplies by an inverse.
_COMPLEX = """
INLINE C add_C(C a, C b) { return (C){a.r + b.r, a.i + b.i}; }
INLINE C sub_C(C a, C b) { return (C){a.r - b.r, a.i - b.i}; }
INLINE C mul_C(C a, C b) {
    F p = a.r * b.r, q = a.i * b.i;
    ROUNDED(p); ROUNDED(q);
    return (C){p - q, a.r * b.i + a.i * b.r};
}
INLINE C neg_C(C a) { return (C){-a.r, -a.i}; }
INLINE C conj_C(C a) { return (C){a.r, -a.i}; }
INLINE int eq_C(C a, C b) { return a.r == b.r && a.i == b.i; }
INLINE int ne_C(C a, C b) { return a.r != b.r || a.i != b.i; }
INLINE F abs_C(C a) { return hypot_F(a.r, a.i); }
INLINE C div_C(C a, C b) {
    F x = FABS(b.r), y = FABS(b.i);
    if (x >= y) {
        if (x == 0 && y == 0) return (C){a.r / x, a.i / x};
        F q = b.i / b.r, s = 1 / (b.r + b.i * q), p = a.i * q;
        ROUNDED(p);
        return (C){(a.r + p) * s, (a.i - a.r * q) * s};
    }
    F q = b.r / b.i, s = 1 / (b.i + b.r * q), p = a.r * q;
    ROUNDED(p);
    return (C){(p + a.i) * s, (a.i * q - a.r) * s};
}
INLINE C quotient_C(C a, C b) {
    if (FABS(b.r) >= FABS(b.i)) {
        F q = b.i / b.r, s = b.r + b.i * q, p = a.i * q;
        ROUNDED(p);
        return (C){(a.r + p) / s, (a.i - a.r * q) / s};
    }
    if (FABS(b.i) >= FABS(b.r)) {
        F q = b.r / b.i, s = b.r * q + b.i, p = a.r * q;
        ROUNDED(p);
        return (C){(p + a.i) / s, (a.i * q - a.r) / s};
    }
    F none = __builtin_nan("");
    return (C){none, none};
}
"""

# GCC before 12.3 fuses products and sums of two neighbours whatever -ffp-contract says:
# https://gcc.gnu.org/bugzilla/show_bug.cgi?id=107647
_ROUNDED = """
#if defined(__x86_64__) && !defined(__clang__) && __GNUC__ * 100 + __GNUC_MINOR__ < 1203
#define ROUNDED(x) __asm__("" : "+x"(x))
#else
#define ROUNDED(x)
#endif
/* A value of which nothing is known from here on; see `selection.py`. */
#if defined(__x86_64__) && !defined(__CUDACC_RTC__)
#define SETTLED_F(x) __asm__("" : "+x"(x))
#define SETTLED_I(x) __asm__("" : "+r"(x))
#else
#define SETTLED_F(x)
#define SETTLED_I(x)
#endif
"""

# Comparing is what absolute values are for as a rule, and the square mostly tells: within its
# rounding, and that of a hypotenuse, of the limit's square it does not. A call that the compiler
# knows nothing of is not made before it is needed.
_MODULUS = """
static __attribute__((noipa, unused)) f64 modulus_itself(f64 r, f64 i) { return hypot_f64(r, i); }
INLINE f64 modulus_beside(c128 a, f64 limit) {
    f64 square = a.r * a.r + a.i * a.i, other = limit * limit;
    if (limit > 0x1p-500 && limit < 0x1p500) {
        if (square < other * (1 - 0x1p-45)) return 0;
        if (square > other * (1 + 0x1p-45)) return __builtin_inf();
    }
    return modulus_itself(a.r, a.i);
}
INLINE int modulus_overflows(c128 a) {
    if (a.r * a.r + a.i * a.i < 0x1p1000) return 0;
    return __builtin_isinf(modulus_itself(a.r, a.i)) && __builtin_isfinite(a.r)
        && __builtin_isfinite(a.i);
}
"""


def complex_numbers() -> str:
    """The C of operations on both complex representations."""
    made = _ROUNDED
    for c, f, s in (("c128", "f64", ""), ("c64", "f32", "f")):
        text = _COMPLEX.replace("FABS", f"__builtin_fabs{s}").replace("_C", f"_{c}")
        for old, new in (("(C)", f"({c})"), (" C ", f" {c} "), ("(C ", f"({c} "), ("_F(", f"_{f}("),
                         (" F ", f" {f} ")):  # fmt: skip
            text = text.replace(old, new)
        made += text
    made += _MODULUS
    convert = "INLINE c64 c64_of_c128(c128 a) { return (c64){(f32)a.r, (f32)a.i}; }\n"
    return made + convert + "INLINE c128 c128_of_c64(c64 a) { return (c128){a.r, a.i}; }\n"


# Functions of complex numbers that NumPy has of libm too.
OF_LIBM = frozenset(("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"))


def of_libm(text: str) -> str:
    """The C of such functions that are called in C."""
    made = ""
    for c, part, s in (("c128", "double", ""), ("c64", "float", "f")):
        for name in sorted(OF_LIBM):
            if f"complex_{name}_{c}(" in text:
                made += (
                    f"INLINE {c} complex_{name}_{c}({c} a) {{\n"
                    f"    union {{ {c} parts; _Complex {part} whole; }} x = {{a}};\n"
                    f"    x.whole = __builtin_c{name}{s}(x.whole);\n    return x.parts;\n}}\n"
                )
    return made


def pure() -> str:
    """The C of what touches no memory but its own, for a device."""
    text = NUMBERS + complex_numbers()
    return text.replace("static __attribute__((noipa, unused))", "INLINE")


PURE = frozenset(re.findall(r"\b(\w+)\([^()]*\) \{", pure()))  # the names of these functions
