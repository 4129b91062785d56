"""Elementary functions as plain C without tables or calls, which a loop inlines and vectorizes.

They are here where they are faster or more exact than libmvec's: exp, log and tanh. A vector loop
and its last elements give the same bits. They need fused products; without those it is libm.

The argument is split as x = n*log(2) + r or x = 2**k * m, so that a polynomial of few terms does.
The sum of x and 1.5 * 2**52 (2**23) has the nearest integer to x in its last bits.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class _Real:
    """The constants of f64 or f32: texts of C, and tuples of them from the highest power down.

    exp_tail: (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2. log_tail: with h = (1 + s) / (1 - s)
    from sqrt(1/2) to sqrt(2), (log(h) - 2*s) / s**3 in powers of s**2. ln2_short: log(2) with so
    few bits that its product with an exponent is exact, and ln2_rest what it lacks. up: the power
    of two that makes the least numbers normal.
    """

    name: str
    suffix: str
    unsigned: str
    digits: int
    bias: int
    one: str
    half_root: str
    mantissa: str
    least: str
    up: int
    exp_range: tuple[str, str]
    tanh_limit: str
    log2e: str
    ln2_high: str
    ln2_low: str
    ln2_short: str
    ln2_rest: str
    exp_tail: tuple[str, ...]
    log_tail: tuple[str, ...]


_REALS = {
    "f64": _Real(
        name="f64",
        suffix="",
        unsigned="u64",
        digits=52,
        bias=1023,
        one="0x3ff0000000000000ul",
        half_root="0x3fe6a09e667f3bcdul",
        mantissa="0x000ffffffffffffful",
        least="0x1p-1022",
        up=54,
        exp_range=("-746.0", "710.0"),
        tanh_limit="20.0",
        log2e="0x1.71547652b82fep+0",
        ln2_high="0x1.62e42fefa39efp-1",
        ln2_low="0x1.abc9e3b39803fp-56",
        ln2_short="0x1.62e42fefa3000p-1",
        ln2_rest="0x1.3de6af278ece6p-42",
        exp_tail=(
            *("0x1.ad7f6b5dc2ef6p-26", "0x1.28ad72bf7e407p-22", "0x1.71df255430ed3p-19"),
            *("0x1.a0199a0c78972p-16", "0x1.a01a012a57064p-13", "0x1.6c16c1842a09fp-10"),
            *("0x1.1111111127be6p-7", "0x1.555555555087dp-5", "0x1.55555555554fap-3"),
            "0x1.000000000000ap-1",
        ),
        log_tail=(
            *("0x1.2f095b17a06c9p-3", "0x1.39a168512d9e1p-3", "0x1.74664147eb37ap-3"),
            *("0x1.c71c520292167p-3", "0x1.24924941f21afp-2", "0x1.999999997fe5dp-2"),
            "0x1.5555555555592p-1",
        ),
    ),
    "f32": _Real(
        name="f32",
        suffix="f",
        unsigned="u32",
        digits=23,
        bias=127,
        one="0x3f800000u",
        half_root="0x3f3504f3u",
        mantissa="0x007fffffu",
        least="0x1p-126f",
        up=25,
        exp_range=("-104.0f", "89.0f"),
        tanh_limit="10.0f",
        log2e="0x1.715476p+0f",
        ln2_high="0x1.62e43p-1f",
        ln2_low="-0x1.05c61p-29f",
        ln2_short="0x1.62e4p-1f",
        ln2_rest="0x1.7f7d1cp-20f",
        exp_tail=(
            *("0x1.6a242ep-10f", "0x1.1239e2p-7f", "0x1.5558f2p-5f", "0x1.555492p-3f"),
            "0x1.fffffcp-2f",
        ),
        log_tail=("0x1.31e524p-2f", "0x1.995eaap-2f", "0x1.55557ap-1f"),
    ),
}


def _polynomial(real: _Real, power: str, coefficients: tuple[str, ...]) -> str:
    """Statements that set q to a polynomial, its even and its odd powers apart: neither waits for
    the other."""
    name, fma = real.name, f"__builtin_fma{real.suffix}"
    odd, even = coefficients[-2::-2][::-1], coefficients[-1::-2][::-1]
    lines = [f"{name} square = {power} * {power};"]
    for part, (first, *others) in (("odd", odd), ("even", even)):
        lines.append(f"{name} {part} = {first};")
        lines += [f"{part} = {fma}({part}, square, {c});" for c in others]
    lines.append(f"{name} q = {fma}(odd, {power}, even);")
    return "".join(f"    {line}\n" for line in lines)


def _reduce(real: _Real, times: str, shift: int, argument: str) -> str:
    """Statements that set `shifted`, whose last bits are n + `shift`, and p = exp(r) - 1."""
    fma, far = f"__builtin_fma{real.suffix}", f"(0x1.8p{real.digits}{real.suffix} + {shift})"
    return (
        f"    {real.name} shifted = {fma}(x, {times}{real.log2e}, {far});\n"
        f"    {real.name} n = shifted - {far};\n"
        f"    {real.name} r = {fma}(-n, {real.ln2_high}, {argument});\n"
        f"    r = {fma}(-n, {real.ln2_low}, r);\n"
        + _polynomial(real, "r", real.exp_tail)
        + f"    {real.name} p = {fma}(r * r, q, r);\n"
        f"    {real.unsigned} k; __builtin_memcpy(&k, &shifted, sizeof k);\n"
    )


def _exp(real: _Real) -> str:
    # The power of two has two factors, none of which overflows or has less than all its digits.
    low, high = real.exp_range
    return (
        f"    x = chosen_{real.name}(x > {high}, {high}, x);\n"
        f"    x = chosen_{real.name}(x < {low}, {low}, x);\n"
        + _reduce(real, "", 2 * real.bias, "x")
        + f"""\
    {real.unsigned} half = k >> 1, rest = k - half;
    half <<= {real.digits};
    rest <<= {real.digits};
    {real.name} s, t;
    __builtin_memcpy(&s, &half, sizeof s);
    __builtin_memcpy(&t, &rest, sizeof t);
    return __builtin_fma{real.suffix}(p, s, s) * t;
"""
    )


def _tanh(real: _Real) -> str:
    # e = exp(2 * |x|) - 1, and tanh(|x|) = e / (e + 2).
    suffix = real.suffix
    return (
        f"    {real.name} given = x;\n"
        f"    x = __builtin_fabs{suffix}(x);\n"
        f"    x = chosen_{real.name}(x > {real.tanh_limit}, {real.tanh_limit}, x);\n"
        + _reduce(real, "2 * ", real.bias, "x + x")
        + f"""\
    k <<= {real.digits};
    {real.name} s; __builtin_memcpy(&s, &k, sizeof s);
    {real.name} e = __builtin_fma{suffix}(s, p, s - 1);
    return __builtin_copysign{suffix}(e / (e + 2), given);
"""
    )


def _log(real: _Real) -> str:
    name, suffix, unsigned, fma = real.name, real.suffix, real.unsigned, f"fma{real.suffix}"
    chosen = f"chosen_{name}"
    # The exponent as a float: the last digits of 2**52 (2**23).
    offset = f"0x1p{real.digits}{suffix} + {real.bias}"
    digits = hex((real.bias + real.digits) << real.digits) + "ul"
    return (
        f"""\
    {unsigned} tiny = x < {real.least};
    {name} y = {chosen}(tiny, x * 0x1p{real.up}{suffix}, x);
    {unsigned} u; __builtin_memcpy(&u, &y, sizeof u);
    u += {real.one} - {real.half_root};
    {unsigned} v = (u & {real.mantissa}) + {real.half_root};
    u = u >> {real.digits} | ({unsigned}){digits};
    {name} m, k;
    __builtin_memcpy(&m, &v, sizeof m);
    __builtin_memcpy(&k, &u, sizeof k);
    k -= {chosen}(tiny, {offset} + {real.up}, {offset});
    {name} f = m - 1;
    {name} s = f / (2 + f);
    {name} z = s * s;
"""
        + _polynomial(real, "z", real.log_tail)
        + f"""\
    {name} half = f * f / 2;
    {name} low = __builtin_{fma}(k, {real.ln2_rest}, s * __builtin_{fma}(q, z, half));
    {name} result = __builtin_{fma}(k, {real.ln2_short}, f - (half - low));
    result = {chosen}(x < __builtin_inf{suffix}(), result, x);
    result = {chosen}(x == 0, -__builtin_inf{suffix}(), result);
    return {chosen}(x < 0, __builtin_nan{suffix}(""), result);
"""
    )


_BODIES = {"exp": _exp, "tanh": _tanh, "log": _log}
# Where GCC may make no choices of branches, a text defines NO_CHOICES: they are made of bits, so
# that loops with these functions are of vectors all the same.
_CHOSEN = """\
INLINE {name} chosen_{name}({unsigned} which, {name} a, {name} b) {{
#ifdef NO_CHOICES
    {unsigned} p, q;
    __builtin_memcpy(&p, &a, sizeof p);
    __builtin_memcpy(&q, &b, sizeof q);
    q ^= (p ^ q) & (0 - which);
    __builtin_memcpy(&b, &q, sizeof q);
    return b;
#else
    return which ? a : b;
#endif
}}
"""


def choices(real: str) -> dict[str, str]:
    """The C text of what these functions choose between two values by."""
    return {f"chosen_{real}": _CHOSEN.format(name=real, unsigned=_REALS[real].unsigned)}


def functions(real: str) -> dict[str, str]:
    """The C texts by name. Each calls the function of libm where products are not fused."""
    row = _REALS[real]
    return {
        f"{name}_{real}": (
            f"INLINE {real} {name}_{real}({real} x) {{\n#ifdef __FMA__\n{body(row)}"
            f"#else\n    return {name}{row.suffix}(x);\n#endif\n}}\n"
        )
        for name, body in _BODIES.items()
    }
