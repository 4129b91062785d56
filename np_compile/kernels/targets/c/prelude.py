"""C functions that scalar expressions call, and which of them a program needs.

Every function is `name_dtype`, static and inlined, so an operand that occurs twice in its body is
computed once. None has undefined behaviour: signed numbers wrap, a divisor of zero gives zero, and
a float outside the range of an integer gives what x86 gives.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache, lru_cache

import numpy as np

from ...ir.dtypes import DTYPES, TYPEDEFS
from . import libm, polynomials

_INLINE = "#define INLINE static inline __attribute__((always_inline, unused))\n"

# Bodies by kind of dtype. T is the dtype, U its unsigned twin, W an unsigned type in which products
# of T do not overflow, N the width in bits, S the suffix of C's float functions.
# Division by zero gives zero, and the lowest integer over -1 wraps. A float of at least twice the
# bits has the quotient within less than its distance from the next integer, so that what is cut off
# is right; and vectors divide floats only. A constant divisor is a product, which gcc finds.
_QUOTIENT_SIGNED = {
    "truncdiv(a, b)": """
        if (__builtin_constant_p(b)) return b == 0 ? 0 : b == -1 ? (T)(0 - (W)a) : (T)(a / b);
        T lowest = (T)((W)1 << (N - 1));
        T d = (b == 0) | ((b == -1) & (a == lowest)) ? (T)1 : b;
        T q = (T)(i32)((R)a / (R)d);
        return b == 0 ? (T)0 : q;""",
}
_QUOTIENT_UNSIGNED = {
    "truncdiv(a, b)": """
        if (__builtin_constant_p(b)) return b == 0 ? 0 : (T)(a / b);
        T q = (T)((R)a / (R)(b == 0 ? (T)1 : b));
        return b == 0 ? (T)0 : q;""",
}
_QUOTIENT_I64 = {
    "truncdiv(a, b)": "return b == 0 ? 0 : b == -1 ? (T)(0 - (W)a) : a / b;",
}
_QUOTIENT_U64 = {"truncdiv(a, b)": "return b == 0 ? 0 : a / b;"}

_SIGNED = {
    "abs(a)": "return a < 0 ? (T)(0 - (W)a) : a;",
    "sign(a)": "return (T)((a > 0) - (a < 0));",
    "minimum(a, b)": "return b < a ? b : a;",
    "maximum(a, b)": "return b > a ? b : a;",
    "floordiv(a, b)": """
        T q = truncdiv_T(a, b);
        T r = (T)((W)a - (W)q * (W)b);
        return (T)(q - ((b != 0) & (r != 0) & ((r ^ b) < 0)));""",
    "fmod(a, b)": """
        T r = (T)((W)a - (W)truncdiv_T(a, b) * (W)b);
        return b == 0 ? (T)0 : r;""",
    "remainder(a, b)": """
        T r = fmod_T(a, b);
        return (T)(r + ((r != 0) & ((r ^ b) < 0) ? b : 0));""",
    "rshift(a, b)": "return (T)(a >> ((U)b < N ? b : N - 1));",
    "pow(a, b)": """
        if (b < 0) return (T)(a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0);
        W result = 1, base = (W)a;
        for (U rest = (U)b; rest; rest >>= 1) {
            if (rest & 1) result *= base;
            base *= base;
        }
        return (T)result;""",
    "gcd(a, b)": """
        U x = (U)(a < 0 ? 0 - (W)a : (W)a), y = (U)(b < 0 ? 0 - (W)b : (W)b);
        while (y) { U r = (U)(x % y); x = y; y = r; }
        return (T)x;""",
}

_UNSIGNED = {
    "sign(a)": "return (T)(a != 0);",
    "minimum(a, b)": "return b < a ? b : a;",
    "maximum(a, b)": "return b > a ? b : a;",
    "floordiv(a, b)": "return truncdiv_T(a, b);",
    "fmod(a, b)": "return b == 0 ? (T)0 : (T)((W)a - (W)truncdiv_T(a, b) * (W)b);",
    "remainder(a, b)": "return fmod_T(a, b);",
    "rshift(a, b)": "return b < N ? (T)(a >> (b & (N - 1))) : (T)0;",
    "pow(a, b)": """
        W result = 1, base = a;
        for (T rest = b; rest; rest >>= 1) {
            if (rest & 1) result *= base;
            base *= base;
        }
        return (T)result;""",
    "gcd(a, b)": """
        while (b) { T r = (T)(a % b); a = b; b = r; }
        return a;""",
}

_INTEGER = {
    "lshift(a, b)": "return (U)b < N ? (T)((W)a << ((U)b & (N - 1))) : (T)0;",
}

# A comparison with a NaN is false, and equal numbers give the first operand. NaN plus anything is
# NaN. If the NaN itself were chosen, the C compiler would make one choice of both, by two
# comparisons, in place of a vector minimum or maximum, a test and a blend.
_FLOAT = {
    "minimum(a, b)": "T m = b < a ? b : a; return b == b ? m : b + a;",
    "maximum(a, b)": "T m = b > a ? b : a; return b == b ? m : b + a;",
    # The same in a reduction, whose loop may ask for several extremes, all with the same test of b.
    "running_min(a, b)": "return b != b ? b : b < a ? b : a;",
    "running_max(a, b)": "return b != b ? b : b > a ? b : a;",
    "fmin(a, b)": "return a != a ? b : b < a ? b : a;",
    "fmax(a, b)": "return a != a ? b : b > a ? b : a;",
    "sign(a)": "return (T)(a > 0) - (T)(a < 0);",
    "signbit(a)": "U bits; __builtin_memcpy(&bits, &a, sizeof a); return (u8)(bits >> (N - 1));",
    "remainder(a, b)": """
        T r = fmod_T(a, b);
        return (r != 0) & ((b < 0) != (r < 0)) ? r + b : r;""",
    "floordiv(a, b)": """
        T r = fmod_T(a, b);
        T q = (a - r) / b;
        q = (r != 0) & ((b < 0) != (r < 0)) ? q - 1 : q;
        T f = __builtin_floorS(q);
        f = q - f > (T)0.5 ? f + 1 : f;
        f = q != 0 ? f : __builtin_copysignS((T)0, a / b);
        return b == 0 ? a / b : f;""",
    "sigmoid(a)": "return 1 / (1 + exp_T(-a));",
    "lgamma(a)": "int sign; return lgammaS_r(a, &sign);",
    "tgamma(a)": "return tgammaS(a);",
}

# With a fused product the quotient, cut off, gives the remainder or falls short of it by one
# divisor, and neither is rounded, as long as the quotient has fewer bits than a float. Greater
# ones, NaN and infinity take libm's way, which a vector loop walks element by element.
_FMOD = """\
#ifdef __FMA__
#pragma omp declare simd notinbranch
static __attribute__((noinline, unused)) T fmod_far_T(T a, T b, T q, T r) {
    return q < LIMIT ? r : fmodS(a, b);
}
INLINE T fmod_T(T a, T b) {
    T x = __builtin_fabsS(a), y = __builtin_fabsS(b);
    T q = __builtin_truncS(x / y);
    T r = __builtin_fmaS(-q, y, x);
    r = r < 0 ? r + y : r;
    r = x < y ? x : r;
    return fmod_far_T(a, b, q, __builtin_copysignS(r, a));
}
#else
INLINE T fmod_T(T a, T b) { return fmodS(a, b); }
#endif
"""

_NEXTAFTER = """\
INLINE {work} nextafter_{name}({work} a, {work} b) {{
    {bits} x = bits_{name}(a);
    {bits} up = (a < b) == (a > 0) ? x + 1 : x - 1;
    up = a == 0 ? ({bits})(bits_{name}(b) & {sign}) + 1 : up;
    {work} next = from_bits_{name}(up);
    next = a == b ? {equal} : next;
    return a != a ? a : b != b ? b : next;
}}
"""

# Nearest with ties to even. Numbers below the normal range are rounded by the sum with 0.5, whose
# last place is the spacing of f16 there.
_ROUND_F16 = """\
INLINE f32 round_f16(f32 x) {
    u32 u; __builtin_memcpy(&u, &x, 4);
    u32 sign = u & 0x80000000u;
    u32 a = u ^ sign;
    u32 r = (a + 0xfffu + ((a >> 13) & 1u)) & ~0x1fffu;
    r = r >= 0x47800000u ? 0x7f800000u : r;
    f32 size; __builtin_memcpy(&size, &a, 4);
    f32 tiny = (size + 0.5f) - 0.5f;
    u32 t; __builtin_memcpy(&t, &tiny, 4);
    r = a < 0x38800000u ? t : r;
    r = a > 0x7f800000u ? 0x7fc00000u : r;
    r |= sign;
    f32 y; __builtin_memcpy(&y, &r, 4);
    return y;
}
"""

# The f32 next to x on the side of zero, with its last bit set where that is not x itself: rounded
# further to fewer bits it gives what x gives.
_ODD_F64 = """\
INLINE f32 odd_f64(f64 x) {
    f32 y = (f32)x;
    u32 u; __builtin_memcpy(&u, &y, 4);
    f64 size = x < 0 ? -x : x, got = y < 0 ? -(f64)y : (f64)y;
    u -= got > size;
    u |= (got != size) & (x == x);
    f32 odd; __builtin_memcpy(&odd, &u, 4);
    return odd;
}
"""

_LOAD_F16 = """\
INLINE f32 load_f16(f16 h) {
    u32 sign = (u32)(h & 0x8000u) << 16;
    u32 a = h & 0x7fffu;
    u32 r = (a << 13) + 0x38000000u;
    r = a >= 0x7c00u ? r + 0x38000000u : r;
    f32 tiny = (f32)(i32)a * 0x1p-24f;
    u32 t; __builtin_memcpy(&t, &tiny, 4);
    r = (a < 0x400u ? t : r) | sign;
    f32 y; __builtin_memcpy(&y, &r, 4);
    return y;
}
"""

# The value is one of f16's: nothing is rounded here.
_STORE_F16 = """\
INLINE f16 store_f16(f32 x) {
    u32 u; __builtin_memcpy(&u, &x, 4);
    u32 a = u & 0x7fffffffu;
    f32 size; __builtin_memcpy(&size, &a, 4);
    u32 r = (a >> 13) - 0x1c000u;
    u32 t = (u32)(i32)(a < 0x38800000u ? size * 0x1p24f : 0.0f);
    r = a < 0x38800000u ? t : r;
    r = a >= 0x7f800000u ? (a > 0x7f800000u ? 0x7e00u : 0x7c00u) : r;
    return (f16)(r | ((u >> 16) & 0x8000u));
}
"""

_ROUND_BF16 = """\
INLINE f32 round_bf16(f32 x) {
    u32 u; __builtin_memcpy(&u, &x, 4);
    u32 r = (u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u;
    r = x != x ? 0x7fc00000u : r;
    f32 y; __builtin_memcpy(&y, &r, 4);
    return y;
}
"""

_LOAD_BF16 = """\
INLINE f32 load_bf16(bf16 h) {
    u32 u = (u32)h << 16;
    f32 y; __builtin_memcpy(&y, &u, 4);
    return y;
}
"""

_STORE_BF16 = """\
INLINE bf16 store_bf16(f32 x) {
    u32 u; __builtin_memcpy(&u, &x, 4);
    return (bf16)(u >> 16);
}
"""

_BITS_WIDE = """\
INLINE {bits} bits_{name}({work} x) {{ {bits} u; __builtin_memcpy(&u, &x, sizeof u); return u; }}
"""
_FROM_BITS_WIDE = """\
INLINE {work} from_bits_{name}({bits} u) {{
    {work} x; __builtin_memcpy(&x, &u, sizeof x);
    return x;
}}
"""
_BITS_NARROW = "INLINE u16 bits_{name}(f32 x) {{ return store_{name}(x); }}\n"
_FROM_BITS_NARROW = "INLINE f32 from_bits_{name}(u16 u) {{ return load_{name}(u); }}\n"

# x86 gives the lowest integer for a float that the integer type cannot hold. It is chosen by bits:
# of a condition with a constant the C compiler makes two ways through all that follows. Integers of
# less than 32 bits are the low bits of an i32, u32 those of an i64. What is less than 1 becomes 0
# first: gcc makes one rounding of a cast and the one back, which keeps the sign of a zero.
_TO_SIGNED = """\
INLINE {dst} {dst}_of_{src}({src} x) {{
    {bits} u; __builtin_memcpy(&u, &x, sizeof u);
    {bits} held = -({bits})(__builtin_fabs{suffix}(x) < {limit});
    {bits} large = -({bits})(__builtin_fabs{suffix}(x) >= 1);
    u = (u & held & large) | ({lowest} & ~held);
    __builtin_memcpy(&x, &u, sizeof x);
    return ({dst})x;
}}
"""
# The bits of -2**31 and -2**63.
_LOWEST = {
    ("f32", "i32"): "0xcf000000u", ("f64", "i32"): "0xc1e0000000000000ul",
    ("f32", "i64"): "0xdf000000u", ("f64", "i64"): "0xc3e0000000000000ul",
}  # fmt: skip
_TO_LOW_BITS = "INLINE {dst} {dst}_of_{src}({src} x) {{ return ({dst}){via}_of_{src}(x); }}\n"
_TO_U64 = """\
INLINE u64 u64_of_{src}({src} x) {{
    u64 low = (u64)i64_of_{src}(x);
    u64 high = (u64)i64_of_{src}(x - 0x1p63{suffix}) ^ 0x8000000000000000ul;
    return x >= 0x1p63{suffix} ? high : low;
}}
"""


def _substitute(body: str, dtype: str) -> str:
    row = DTYPES[dtype]
    words = {
        "T": dtype,
        "U": f"u{row.bits}",
        "W": "u64" if row.size == 8 else "u32",
        "N": str(row.bits),
        "R": "f32" if row.size <= 2 else "f64",
        "LIMIT": "0x1p24f" if dtype == "f32" else "0x1p53",
    }
    suffix = "f" if dtype == "f32" else ""
    body = re.sub(r"(?<=[a-z])S(?=_r\b|\b)", suffix, body)
    body = re.sub(r"_T\b", f"_{dtype}", body)
    return re.sub(r"\b([TUWNR]|LIMIT)\b", lambda found: words[found[0]], body)


def _function(head: str, body: str, dtype: str) -> tuple[str, str]:
    """The name and the text of the function whose table entry is `head: body`."""
    name, _, operands = head.rstrip(")").partition("(")
    listed = ", ".join(f"{dtype} {operand}" for operand in operands.split(", "))
    result = "u8" if name == "signbit" else dtype
    lines = " ".join(body.split("\n")).strip() if "\n" not in body else body
    text = f"INLINE {result} {name}_{dtype}({listed}) {{ {lines} }}\n"
    return f"{name}_{dtype}", _substitute(text, dtype)


def _conversions(src: str) -> dict[str, str]:
    suffix = "f" if src == "f32" else ""
    table = {}
    for dst, power in (("i32", 31), ("i64", 63)):
        table[f"{dst}_of_{src}"] = _TO_SIGNED.format(
            dst=dst, src=src, bits=f"u{DTYPES[src].bits}", limit=f"0x1p{power}{suffix}",
            lowest=_LOWEST[src, dst], suffix=suffix,
        )  # fmt: skip
    for dst, via in (("i8", "i32"), ("i16", "i32"), ("u8", "i32"), ("u16", "i32"), ("u32", "i64")):
        table[f"{dst}_of_{src}"] = _TO_LOW_BITS.format(dst=dst, src=src, via=via)
    table[f"u64_of_{src}"] = _TO_U64.format(src=src, suffix=suffix)
    return table


# Up to NumPy 2.4 halves are the exception: nextafter of two that are equal is the first.
_FIRST_OF_EQUAL_HALVES = bool(np.signbit(np.nextafter(np.float16(-0.0), np.float16(0.0))))


def _steps(name: str) -> dict[str, str]:
    """The functions on the bits of a float of dtype `name`, and nextafter, which counts them."""
    row = DTYPES[name]
    words = {
        "name": name,
        "work": row.working,
        "bits": f"u{row.bits}",
        "sign": hex(1 << (row.bits - 1)) + "ul",
        "equal": "a" if name == "f16" and _FIRST_OF_EQUAL_HALVES else "b",
    }
    bits, back = (_BITS_NARROW, _FROM_BITS_NARROW) if row.narrow else (_BITS_WIDE, _FROM_BITS_WIDE)
    return {
        f"bits_{name}": bits.format(**words),
        f"from_bits_{name}": back.format(**words),
        f"nextafter_{name}": _NEXTAFTER.format(**words),
    }


# The sum so far, of which a compiler cannot say where it comes from: gcc 12 makes wrong code of a
# loop that adds more than one value in each iteration to a sum of floats, where these are elements
# side by side that are read in another order than they lie (`s += x[2*j+1]; s += x[2*j]`).
_SO_FAR = """\
INLINE T so_far_T(T a) {
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
    __asm__("" : "+x"(a));
#elif defined(__GNUC__) && !defined(__clang__) && defined(__aarch64__)
    __asm__("" : "+w"(a));
#endif
    return a;
}
"""


@cache
def _functions(vector_math: str | None) -> dict[str, str]:
    """The texts of all functions by name, each after those that it calls."""
    elementary: dict[str, str] = {}
    for src in ("f32", "f64"):
        elementary |= polynomials.choices(src)
        elementary |= libm.functions(src, vector_math) | polynomials.functions(src)
        elementary[f"fmod_{src}"] = _substitute(_FMOD, src)
        elementary[f"so_far_{src}"] = _substitute(_SO_FAR, src)
    return elementary | scalar_functions(elementary.keys())


def scalar_functions(given: Collection[str] = (), by_hardware: bool = False) -> dict[str, str]:
    """The texts of the functions of scalars by name, but for the elementary ones and others that
    are given, each after those that it calls. by_hardware: integers are divided as they are."""
    table = {
        "odd_f64": _ODD_F64,
        "round_f16": _ROUND_F16,
        "load_f16": _LOAD_F16,
        "store_f16": _STORE_F16,
        "round_bf16": _ROUND_BF16,
        "load_bf16": _LOAD_BF16,
        "store_bf16": _STORE_BF16,
    }
    for name in ("f16", "bf16", "f32", "f64"):
        table |= _steps(name)
    for src in ("f32", "f64"):
        table |= _conversions(src)
        table[f"so_far_{src}"] = f"INLINE {src} so_far_{src}({src} a) {{ return a; }}\n"
    quotients = {"i": _QUOTIENT_SIGNED, "u": _QUOTIENT_UNSIGNED}
    whole = {"i": _QUOTIENT_I64, "u": _QUOTIENT_U64}
    others = {"i": (_SIGNED, _INTEGER), "u": (_UNSIGNED, _INTEGER), "f": (_FLOAT,)}
    for dtype, row in DTYPES.items():
        if row.narrow or row.kind not in others:
            continue
        divided = whole if by_hardware or row.size == 8 else quotients
        for bodies in (divided.get(row.kind, {}), *others[row.kind]):
            for head, body in bodies.items():
                name, text = _function(head, body, dtype)
                table[name] = text
    return {name: text for name, text in table.items() if name not in given}


_WORD = re.compile(r"[A-Za-z_]\w*")


@lru_cache(1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


def prelude(source: str, vector_math: str | None = None) -> str:
    """The typedefs, and the functions that the C text `source` names, with those that they name.

    `vector_math` is "libmvec" where loops may call the vector functions of glibc, else None.
    """
    return TYPEDEFS + _INLINE + needed(_functions(vector_math), source)


def needed(table: Mapping[str, str], source: str) -> str:
    """The functions of a table that a text names, with those that they name."""
    found: set[str] = set()
    waiting = [_words(source)]
    while waiting:
        for word in [w for w in waiting.pop() if w in table and w not in found]:
            found.add(word)
            waiting.append(_words(table[word]))
    return "".join(text for name, text in table.items() if name in found)
