"""Numbers in compiled loops: Python's and NumPy's, their types, their errors."""

from __future__ import annotations

import math

import numpy as np

import np_compile

from .support import Case, case, check, check_whatever_leaves, each, exact, rarely, whole

SOME = ["i1", "i8", "u2", "u8"]
OTHERS = ["i2", "i4", "u1", "u4"]  # of the kinds of these
INTEGERS = [*SOME, *OTHERS]


def factorial(n):
    a = 1
    for i in range(1, n + 1):
        a *= i
    return a


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a, b


def checksum(data, modulus):
    a, b = 1, 0
    for i in range(len(data)):
        a = (a + int(data[i])) % modulus
        b = (b + a) % modulus
    return b << 16 | a


def xorshift(seed, n):
    x = seed
    for _ in range(n):
        x ^= (x << 13) & 0xFFFFFFFFFFFFFFFF
        x ^= x >> 7
        x ^= (x << 17) & 0xFFFFFFFFFFFFFFFF
    return x


def gcd(a, b):
    steps = 0
    while b:
        a, b = b, a % b
        steps += 1
    return a, steps


def division(n, d):
    quotients, rests, both, last = 0, 0, 0, None
    for k in range(-n, n + 1):
        quotients = quotients * 3 + k // d
        rests += (k % d) * k
        last = divmod(k, d)
        both += last[0] - last[1]
    return quotients, rests, both, last


def float_division(xs, d):
    a = b = c = 0.0
    for i in range(len(xs)):
        x = float(xs[i])
        a += x // d
        b += x % d
        q, r = divmod(x, d)
        c += q * r
    return a, b, c


def powers(base, n):
    total = 0
    for k in range(n):
        total += base**k
    return total


def power_of_floats(x, n):
    total = 0.0
    for k in range(n):
        total += x**k + x ** (0.5 * k)
    return total


def shifts(x, n):
    total = 0
    for k in range(n):
        total += (x << k) ^ (x >> k)
    return total, ~total, -total, +total


def bit_count(x):
    n = 0
    while x:
        x &= x - 1
        n += 1
    return n


def newton(a, tol):
    x = a
    steps = 0
    while abs(x * x - a) > tol:
        x = 0.5 * (x + a / x)
        steps += 1
    return x, steps


def harmonic(xs):
    s = 0.0
    for i in range(len(xs)):
        s += 1.0 / float(xs[i])
    return len(xs) / s


def roots(xs):
    total = 0.0
    for i in range(len(xs)):
        total += math.sqrt(float(xs[i])) + math.floor(float(xs[i])) + math.ceil(float(xs[i]))
    return total


def logarithms(xs):
    total = 0.0
    for i in range(len(xs)):
        v = float(xs[i])
        total += math.log(v) + math.exp(-v) + math.atan2(v, 2) + math.hypot(v, 1.0)
    return total


def rounding(n, step):
    a, b, c = 0, 0.0, 0
    for k in range(n):
        x = k * step - 3.0
        a += round(x)
        b += round(x, 2)
        c += int(x) + math.trunc(x)
    return a, b, c


def extremes(xs):
    low, high = math.inf, -math.inf
    for i in range(len(xs)):
        low = min(low, float(xs[i]))
        high = max(high, float(xs[i]), -1)
    return low, high, max(low, 0), min(high, 0)


def grows(x, n):
    s = 0
    for i in range(n):
        if x[i] > 0:
            s += x[i]
    return s


def mixed(n):
    x = 1
    for i in range(n):
        x = x * 1.5 if i % 2 else x + 1
    return x, x == 2, -x


def flags(x):
    ok, some, count = True, False, 0
    for v in x:
        ok = ok and v > 0
        some = some or v > 2
        count += v > 1
    return ok, some, count, not ok


def arithmetic_of_items(x, y):
    out = []
    for i in range(len(x)):
        a, b = x[i], y[i]
        out.append(a + b)
        out.append(a - b)
        out.append(a * b)
    return out


def with_python_numbers(x):
    s = x[0]
    for i in range(1, len(x)):
        s = s + 1
        s = s * 2 - x[i]
    return s, s + 1.5, s / 2, s > 3, s == x[0]


def quotients_of_items(x, d):
    a = x[0] // d
    b = x[0] % d
    for i in range(1, len(x)):
        a = a + x[i] // d
        b = b + x[i] % d
    return a, b


def complex_orbit(re, im, n):
    z, c = 0, complex(re, im)
    k = 0
    while abs(z) <= 2 and k < n:
        z = z * z + c
        k += 1
    return z, k, z.real, z.imag, z.conjugate()


def parts_of_numbers(z, x, c, k):
    """`np.real` and `np.imag` of items, of Python's numbers, of a list."""
    found = []
    for a in z:
        x[:] = np.real(a)
        x[0] = np.imag(a)
        found.append((np.real(a), np.imag(a), np.real(c), np.imag(c), np.real(k), np.imag(k)))
    found.append(((x[0] > 1).real, (x[0] > 1).imag, x[0].imag, np.imag([c, 1j])[1]))
    return found, (c > 2).real, (c > 2).imag, np.real(k > 2), np.imag(k > 2), c.imag, k.imag


def moduli(z, limits):
    """Absolute values of Python's complex numbers against limits, on either side."""
    found = []
    for a in z:
        c = complex(a)
        for e in limits:
            x = float(e)
            found.append(
                (abs(c) <= x, abs(c) < x, x <= abs(c), abs(c) == x, abs(c) != x, x > abs(c))
            )
    return found


def moduli_of_items(z, limits):
    """The same of NumPy's; np.abs may be a bit off."""
    counts = np.zeros(6, dtype=int)
    for a in z:
        for x in limits:
            counts[0] += abs(a) <= x
            counts[1] += np.abs(a) < 1.1 * x
            counts[2] += x * 0.9 <= np.abs(a)
            counts[3] += abs(a) == x
            counts[4] += abs(a) != 2
            counts[5] += 2.0 * x > abs(a)
    return counts


def complex_functions(z):
    """Functions of complex numbers are libm's, of arrays and of items."""
    found = np.zeros((len(z), 9), dtype=z.dtype)
    for k in range(len(z)):
        x = z[k]
        found[k] = [np.exp(x), np.log(x), np.sqrt(x), np.sin(x), np.cos(x), np.tan(x), np.sinh(x),
                    np.cosh(x), np.tanh(x)]  # fmt: skip
        if k % 4 == 3:
            found[k - 3 : k, 0] += np.exp(z[k - 3 : k]) - np.tanh(2j * z[k - 3 : k])
    return found, np.exp(-2j * np.pi / max(len(z), 1))


def truth_of_complex(z, n):
    """Of arrays beside others, of which NumPy makes bools."""
    s, out = [], np.zeros(len(z))
    for i in range(len(z)):
        s.append(bool(np.logical_xor(n, z)[i]))
        s.append(bool(np.logical_and(z, n > 1)[i]))
        np.logical_or(n, z[::-1], out=out)
    return s, out


def wrong_constants(x):
    out = []
    for v in x:
        out.append(v * 2)
        if len(out) > 50:
            out.append(3 & -1.25)
    return out


def complex_quotients(x, y):
    """Python's own, which differ in bits from NumPy's."""
    s = []
    for i in range(len(x)):
        for j in range(len(y)):
            s.append(complex(x[i]) / complex(y[j]))
            s.append(complex(x[i]) / float(y[j].real))
    return s


def complex_and_floats(x):
    """A float64 is a float to Python, whose complex numbers go first."""
    z = 1 + 2j
    found = []
    for a in x:
        found.append((z * a, z + a, z - a, z == a, z != a, complex(0.5) == a, a * z, a == z))
        z = z / a
    return z, found


def halves(x):
    """Exponents that are halves: the bits of libm."""
    found, more, inverse = [], [], []
    for a in x:
        p = float(a)
        found.append((a**3, a**-1.5, a**1.5, a**-0.5, a**-2, a**6, a**12, a**-12.0, a**2.5, a**1.0))
        more.append((p**3.0, p**4, p**5.5, p**0.5, p**11.5, p**8))
        if p != 0:
            inverse.append((p**-1.5, p**-3, p**-0.5, p**-1, p**-7.5, p**-12))
    return found, more, inverse


def half_powers(x):
    """The bits of libm's power, which are not always those of a root."""
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = x[i] ** 0.5
    return y, [float(v) ** 0.5 for v in x]


def signs_of_rests(x, d):
    """A rest that is zero has the sign of the divisor."""
    y, found = np.empty_like(x), []
    for i in range(len(x)):
        y[i] = x[i] % d
        found.append((float(x[i]) % d, np.mod(x, d)[i], 1 / (x[i] % -d + (x[i] % d != 0))))
    return y, found, (x % d) // d


def complex_sum(x):
    s = 0j
    for i in range(len(x)):
        s += x[i] * (1 + 2j) - x[i] / 2
    return s, s == 0, -s


def zeros(n):
    a = 0.0
    out = []
    for k in range(n):
        a = -a
        out.append(a * k)
        out.append(a + 0.0)
    return a, out


def special(xs):
    out = []
    for i in range(len(xs)):
        v = float(xs[i])
        out.append((v < 1, v == v, v != v, v >= 0, v * 0, v - v, abs(v), -v))
    return out


def to_int(xs):
    s = 0
    for v in xs:
        s += int(v)
    return s


def unlike_signs(x, y):
    found = []
    for a in x:
        for b in y:
            found.append((a < b, a <= b, a > b, a >= b, a == b, a != b))
            found.append((b < a, b <= a, b > a, b >= a, b == a, b != a))
    return found


def compare_kinds(x, y):
    n = 0
    for i in range(len(x)):
        if x[i] < y[i]:
            n += 1
        elif x[i] == y[i]:
            n += 100
        if 0 <= x[i] < 3 != y[i]:
            n += 10000
    return n


MIXED = np.array([1.5, -2.25, 0.0, 7.75, -0.5])
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0])
OF_SPECIAL = np.array([complex(a, b) for a in SPECIAL for b in SPECIAL])


def methods_of_items(x):
    for e in x:
        a, b, c, d, f = e.sum(), e.mean(), e.max(), e.copy(), e.astype(np.float32)
    return a, b, c, d, f


def extremes_of_items(x):
    for e in x:
        a, b, c, d = e.min(), e.max(), e.copy(), e.astype(np.int16)
    return a, b, c, d


def rounded_items(x):
    total = 0.0
    for e in x:
        total += e.astype(dtype=np.float32) + e.clip(min=0, max=2)
    return total


_SIZES = np.random.default_rng(0)
_SOME_SIZES = _SIZES.random(500) * 10 ** _SIZES.uniform(-4, 4, 500)
# Numbers with absolute values next to each other, tiny, great, and none.
_AROUND = 2 * np.exp(1j * np.linspace(0.01, 3, 40))
WAYS = np.array(
    [0, -0.0, 5e-324, 3e-200 + 4e-200j, 3e200 + 4e200j, 3 + 4j, -4 + 3j, -0.5j, *_AROUND,
     *(_AROUND * (1 + 2.0**-52)), *(_AROUND * (1 - 2.0**-44))]
)  # fmt: skip
FARTHEST = np.array(
    [1.5e308 + 1.5e308j, np.inf + 1j, complex(1, -np.inf), complex(np.nan, 1),
     complex(np.inf, np.nan)]
)  # fmt: skip
CASES = [
    exact(factorial, (0,), (1,), (20,), (21,), (30,)),
    exact(fibonacci, (0,), (1,), (90,), (93,), (150,)),
    exact(checksum, (np.arange(0, dtype="u1"), 7), (np.arange(200, dtype="u1"), 65521)),
    exact(checksum, (np.arange(9), 0), (np.arange(0), 0)),
    exact(xorshift, (88172645463325252, 3), (1, 40), (0, 5)),
    exact(gcd, (12, 18), (0, 5), (-12, 18), (17, -5), (2**62, 48), (2**70, 6),
          refused="beyond 64 bits"),
    exact(division, (7, 3), (7, -3), (0, 1), (3, 0), (1, 2**62)),
    exact(float_division, (MIXED, 2.0), (MIXED, -0.75), (MIXED, 0.0), (MIXED, math.inf)),
    exact(powers, (2, 10), (-3, 40), (2, 70), (0, 3), (1, 0)),
    exact(powers, (2.5, 4), (-0.5, 6)),
    exact(half_powers, (np.random.default_rng(0).random(9000) * 10,), (np.arange(9, dtype="f4"),)),
    exact(signs_of_rests, (np.array([-1.5, 0.25, -1.0, 2.0, -0.0, 0.0, -3.0]), 1),
          (np.array([-1.5, -1.0, 2.0, -0.0], "f4"), 0.5)),
    case(power_of_floats, (1.5, 6), (0.0, 3), (2.0, 1), (1e200, 4)),
    exact(shifts, (5, 8), (-5, 61), (1, 70), (0, 3), (7, 0)),
    exact(bit_count, (0,), (255,), (2**62 + 5,), (2**80,), refused="beyond 64 bits"),
    exact(newton, (2.0, 1e-12), (0.0, 1.0), (1e10, 1e-3), (0.0, -1.0)),
    exact(harmonic, (MIXED[:2],), (MIXED,), (MIXED[:0],)),
    exact(roots, (MIXED[[0, 2, 3]],), (MIXED,), (SPECIAL[:3],)),
    case(logarithms, (MIXED[[0, 3]],), (MIXED,), (MIXED[:0],)),
    exact(rounding, (0, 0.5), (40, 0.25), (30, 0.37)),
    exact(extremes, (MIXED,), (MIXED[:0],), (SPECIAL,), (-SPECIAL[::-1],)),
    *(exact(grows, (np.arange(5).astype(t), 5), (np.arange(3).astype(t), 5)) for t in "fdlB"),
    exact(grows, (np.zeros(3), 3), (np.zeros(3), 0)),
    exact(mixed, (0,), (1,), (2,), (7,)),
    exact(flags, (np.arange(4),), (np.arange(1, 4),), (np.arange(0),)),
    exact(flags, (MIXED,), (np.ones(3),)),
    *(exact(arithmetic_of_items, (np.array([1, 100, 3]).astype(t), np.array([5, 99, 3]).astype(t)))
      for t in [*SOME, "f4", "c16"]),
    *rarely(*(exact(arithmetic_of_items, (np.array([1, 100, 3]).astype(t),
                                          np.array([5, 99, 3]).astype(t)))
              for t in [*OTHERS, "f8", "c8"])),
    *(exact(arithmetic_of_items, (np.array([1, 100]).astype(a), np.array([5, 99]).astype(b)))
      for a, b in [("i1", "u1"), ("i4", "u4"), ("i8", "u8"), ("i4", "f4"), ("f4", "f8"),
                   ("i2", "f4"), ("b1", "i1"), ("f4", "c8"), ("i8", "c8")]),
    *(exact(with_python_numbers, (np.array([3, 100, 7]).astype(t),), (np.array([2]).astype(t),))
      for t in [*SOME, "f4"]),
    *rarely(*(exact(with_python_numbers, (np.array([3, 100, 7]).astype(t),),
                    (np.array([2]).astype(t),)) for t in [*OTHERS, "f8"])),
    *(exact(quotients_of_items, (np.array([7, 100, 3]).astype(t), 2),
          (np.array([9, 5]).astype(t), 4))
      for t in [*SOME, "f4"]),
    *rarely(*(exact(quotients_of_items, (np.array([7, 100, 3]).astype(t), 2),
                    (np.array([9, 5]).astype(t), 4)) for t in [*OTHERS, "f8"])),
    *(exact(quotients_of_items, (np.array([-7, 100]).astype(t), -3), (np.array([5]).astype(t), 0))
      for t in ["i1", "i4", "i8", "f4", "f8"]),
    exact(methods_of_items, (MIXED,), (np.arange(3.0),)),
    *(exact(methods_of_items, (np.array([3, 100, 7]).astype(t),), refused="of a number")
      for t in SOME),
    *(exact(extremes_of_items, (np.array([3, 100, 7]).astype(t),)) for t in SOME),
    *rarely(*(exact(methods_of_items, (np.array([3, 100, 7]).astype(t),), refused="of a number")
              for t in OTHERS)),
    *rarely(*(exact(extremes_of_items, (np.array([3, 100, 7]).astype(t),)) for t in OTHERS)),
    exact(rounded_items, (MIXED,), refused="keywords of the method 'astype'"),
    exact(
        parts_of_numbers, (np.array([1 + 2j, 3j]), np.zeros(2, int), 1.5, 3),
        (np.array([1 + 2j, 3j], "c8"), np.zeros(2), 2.5, 2),
    ),
    exact(complex_orbit, (-0.5, 0.5, 30), (2.0, 2.0, 30), (0.0, 0.0, 3), (1.0, 0.0, 0)),
    exact(complex_and_floats, (np.array([0.5, -2.0, np.inf]),), (np.array([1.0, 0.0]),)),
    exact(halves, (_SOME_SIZES,), (2.0 ** np.arange(-90, 90),), (np.array([0.0, 1.0, np.inf]),),
          (np.array([np.nan, -0.0]),), (np.array([1e300, 1e-300]),), (-np.ones(2),)),
    exact(moduli, (WAYS, np.abs(WAYS)), (WAYS[:0], np.zeros(0)), (FARTHEST[:1], np.ones(2)),
          (FARTHEST[1:], np.ones(2)), (FARTHEST, np.array([1.0, 1e308]))),
    exact(moduli_of_items, (WAYS, np.abs(WAYS)), (FARTHEST[1:], np.array([0.5, np.inf, 1e308]))),
    exact(truth_of_complex,
          (np.array([0, -0.25j, 1, 1 + 1j, np.nan * 1j]), np.array([1, 1, 0, 0, 2]))),
    exact(wrong_constants, (np.arange(5.0),)),
    exact(complex_quotients, (WAYS, WAYS[WAYS.real != 0]), (FARTHEST[1:], WAYS[3:20]),
          (WAYS[3:20], FARTHEST[1:]), (WAYS[3:6], np.array([2.0, 1j]))),
    exact(complex_functions, (WAYS,), (OF_SPECIAL,),
          (WAYS[:1],), (WAYS[:0],), (WAYS[8:30].astype("c8"),)),
    exact(complex_sum, (np.array([1 + 2j, -3j]),), (np.zeros(0, "c16"),)),
    exact(complex_sum, (np.array([1 + 2j, -3j], "c8"),), (np.zeros(0, "c8"),),
          refused="complex or complex64"),
    exact(zeros, (0,), (4,), (5,)),
    exact(special, (SPECIAL,), (MIXED,)),
    exact(to_int, (MIXED,), (MIXED[:0],), (SPECIAL,), (SPECIAL[:3],), (np.array([1e30, 5.0]),)),
    exact(compare_kinds, (np.arange(4), np.arange(4)[::-1]), (np.arange(3), np.arange(3))),
    exact(compare_kinds, (np.arange(4, dtype="u8"), -np.arange(4))),
    exact(unlike_signs,
          (np.array([0, 1, 5, 2**63, 2**64 - 1, 7], "u8"), np.array([0, -1, 6, -5, -1, 7])),
          (np.array([2**63 - 1, 2**63], "u8"), np.array([2**63 - 1, -(2**63)]))),
    exact(compare_kinds, (np.arange(4, dtype="f4"), np.arange(4) + 0.1)),
]  # fmt: skip


@each(CASES)
def test_numbers(c: Case) -> None:
    check(c)


def counts_bits(n, sign):
    found = []
    for k in range(n):
        found.append((sign * k * k * 7919).bit_count())
        found.append(bin(sign * k << 3).count("1"))
    return found, sum(found), (sign << 62).bit_count()


def test_bits_of_integers_are_counted() -> None:
    check(exact(counts_bits, (40, 1), (40, -1), (3, -2)))


def number_theory(a, n):
    found = []
    for k in range(n):
        found.append((math.gcd(a, k), math.gcd(a), math.gcd(k * 6, a, -9), math.factorial(k)))
        found.append((math.isqrt(a), math.isqrt(a + k), math.comb(n + k, k), math.comb(k, n)))
    return found


def to_digits(x):
    found = []
    for k in range(len(x)):
        v = float(x[k])
        found.append((round(v, 2), round(v, 0), round(v * 1000, 3), round(-v, 1), round(v, 15)))
        found.append((round(x[k], 2), round(x[k], 0), round(x[k] * 3, 5), round(v / 3, 22), v))
    return found, round(len(x), 2)


def close(x, y):
    found = []
    for k in range(len(x)):
        a, b = float(x[k]), y[k]
        found.append(math.isclose(a, b))
        found.append(math.isclose(b, a, rel_tol=1e-3))
        found.append(math.isclose(a, b, rel_tol=0, abs_tol=0.5))
        found.append(math.isclose(a, 0, abs_tol=abs(b)))
    return found


def by_powers_of_two(a, n):
    found = []
    for k in range(n):
        x = a - 7 * k
        found.append((x // 8, x % 8, x // 1, x % 1, x // 2**40, x % 2**40, (x * 5 + k) % 2**32))
        q, p = divmod(x, 4)
        found.append((q, p, k % 2, k // 2, -k // 4, (x ^ k) % (1 << 62), x // (1 << 62)))
    return found


def around(x, n, shift):
    """Remainders of what is one step beside a period, or further, and of what may be either."""
    found, m = [], len(x)
    for i in range(m):
        a, b, c = (i + 1) % m, (i - 1) % m, (i + m) % m
        found.append((a, b, c, (i - m) % m, (i - m - 1) % m, 2 * i % m, (2 * i + 1) % m, i % m))
        a, b, c = (i + shift) % m, (m - i) % m, i % 3
        found.append((a, b, c, (i + 1) // m, (i - 1) // m, (i + shift) // m, (m - 1) // (i + 1), 0))
    for i in range(n):
        a, b, c = (i + 1) % n, (i - 1) % n, (i + shift) % n
        found.append((a, b, c, (shift - i) % n, (i + 2) % 3, 0, 0, 0))
    for i in range(abs(n)):
        a, b, c = i % n, (i + 1) % n, (i - 1) % n
        found.append((a, b, c, (i + 1) // n, (i - 1) // n, i // (n + 9), 0, 0))
    return found, shift % n


def of_nothing(x, n):
    s = 0
    for i in range(n):
        s += x[(i + 1) % len(x)] if n < 3 else (i + 1) % (len(x) + 0)
    return s


HALVES = np.array(
    [0.125, 2.675, 1.005, 0.5, 1.5, 2.5, -0.001, 1e22 + 0.5, 5e-324, 0.045, 1e15 + 0.25]
)
UNLIKE = np.concatenate([SPECIAL, HALVES, HALVES * 1.0005, -HALVES, [0.0, 1e-12]])
WHOLE_NUMBERS = [
    exact(by_powers_of_two, (12, 9), (-36, 3), ((1 << 63) - 1, 2), (-(1 << 63) + 40, 5), (2**60, 9),
          (2**58, 9)),
    exact(number_theory, (12, 9), (-36, 3), (3037000499**2, 5), (0, 4), ((1 << 63) - 10, 4),
          (99, 23), (99, 40), (2**70, 3), (-(1 << 63), 1), refused="beyond 64 bits"),
    exact(around, *((np.arange(m), n, k) for m in (0, 1, 2, 9) for n, k in ((1, 0), (7, -3))),
          (np.arange(3), -4, 5), (np.arange(12), 12, 1 << 62), (np.arange(12), 2, -(1 << 63))),
    exact(to_digits, (HALVES,), (-HALVES * 7,), (SPECIAL,), (np.linspace(-3, 3, 400),),
          (np.array([1.7e308]),)),
    exact(close, (UNLIKE, UNLIKE[::-1].copy()), (UNLIKE, UNLIKE * (1 + 1e-9)),
          (UNLIKE, UNLIKE + 0.4)),
]  # fmt: skip


def test_division_by_the_length_of_nothing() -> None:
    calls = [(np.arange(m), n) for m in (3, 0, 12) for n in (0, 2, 5)]
    check_whatever_leaves(of_nothing, calls)
    check_whatever_leaves(around, [(np.arange(m), 0, 1) for m in (0, 3, 12)])


def test_one_step_beside_a_period_is_not_divided() -> None:
    def neighbours(x):
        total = 0.0
        for i in range(len(x)):
            total += x[(i + 1) % len(x)] - x[(i - 1) % len(x)]
        return total

    with whole():
        text = np_compile.inspect(neighbours)(np.arange(12.0))[0].output
    body = text[text.index("static i64 run(") :]
    assert "remainder_i64" not in body
    assert " % n_" not in body


@each(WHOLE_NUMBERS)
def test_functions_of_numbers(c: Case) -> None:
    check(c)
