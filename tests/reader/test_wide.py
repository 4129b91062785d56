"""Python's integers of up to 64 bits without a sign, and arithmetic modulo powers of two."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile

from .support import Case, check, check_call, check_whatever_leaves, each, exact, whole

MASK = 0xFFFFFFFFFFFFFFFF
MODULUS = 2**64


def xorshift(n, x):
    total = 0.0
    for _ in range(n):
        x ^= (x << 13) & 0xFFFFFFFFFFFFFFFF
        x ^= x >> 7
        x ^= (x << 17) & MASK
        total += x / 2**64 + x / 18446744073709551616
    return x, total


def generator(n, state):
    hits = 0
    seen = []
    for _ in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        u = (state >> 33) / 2147483648.0
        state = (state * 6364136223846793005 + 1442695040888963407) % MODULUS
        hits += u * u + (state >> 11) * (1.0 / (1 << 53)) < 1.0
        seen.append(state)
    return state, hits, seen


def mixed(n, z):
    """The finalizer of splitmix64, as people write it."""
    for _ in range(n):
        z = (z + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z = z ^ (z >> 31)
    return z


def rotated(n, x):
    for k in range(n):
        r = k % 64
        x = ((x << r) | (x >> (64 - r))) & MASK
        x = (~x * -3 - (x & 5)) & MASK
    return x


def table(n):
    poly = 0xC96C5795D7870F42
    made = []
    for i in range(n):
        c = i
        for _ in range(8):
            c = (c >> 1) ^ poly if c & 1 else c >> 1
        made.append(c)
    crc = MASK
    for k in range(n):
        crc = made[(crc ^ k) & 0xFF] ^ (crc >> 8) if n > 255 else crc ^ made[k]
    return crc ^ MASK, made


def operations(xs, y, n):
    a, b, c = [], [], []
    for x in xs:
        w = x ^ 0x8000000000000000
        a.append((w > y, w <= y, w == y, w != x, w >= w, int(w), float(w), w // 3, w % 1000))
        b.append((w & y, w | y, w ^ y, w // y, w % y, w >> n, w & -2, w.bit_length(), bool(w)))
        c.append((w / 4, w * 0.5, w - 1.5, min(w, y), max(w, x), abs(w), bin(w).count("1")))
    return a, b, c


def grows(n, x):
    """Beyond 64 bits, and below zero: Python goes on."""
    y = x | 0x8000000000000000
    for k in range(n):
        y = y + y if k % 2 else y - x
        y = y // 2 - 3 if k % 3 else y
    return y


def stored(n, x):
    out = np.zeros(n, np.uint64)
    other = np.zeros(n)
    for k in range(n):
        x = (x * 0xD1342543DE82EF95 + 1) & MASK
        out[k] = x
        other[k] = x
    return out, other, np.uint64(x)


def narrow(n, x):
    out = np.zeros(n, np.int64)
    for k in range(n):
        x = (x * 3) & MASK
        out[k] = x
    return out


def an_index(xs, n):
    total = 0.0
    for k in range(n):
        total += xs[(k * 0x9E3779B97F4A7C15 & MASK) % len(xs)]
        total += xs[(k + 0x8000000000000000) - 0x8000000000000000]
    return total


def by_bits_of_zero(n, x):
    w = x ^ 0xF000000000000000
    for k in range(n):
        w = w // k
    return w


SEEDS = [1, 88172645463325252, 2**63 - 1, 2**63, 2**64 - 1, 0]


@each([
    exact(xorshift, *[(20, s) for s in SEEDS]), exact(generator, *[(20, s) for s in SEEDS]),
    exact(mixed, *[(20, s) for s in SEEDS], (5, -7)),
    exact(rotated, *[(70, s) for s in SEEDS]), exact(table, (256,), (40,)),
    exact(operations, ([1, 2**62, 5] * 4, 2**63 + 5, 3), ([7] * 9, 2**64 - 1, 0)),
    exact(an_index, (np.arange(7.0), 5), (np.arange(9.0), 9)),
])  # fmt: skip
def test_programs(c):
    check(c)


@pytest.mark.parametrize(
    ("f", "calls"),
    [
        (xorshift, [(9, -5), (9, 2**64), (9, 2**70)]),
        (grows, [(6, 5), (80, 5), (80, 2**63)]),
        (stored, [(6, 5), (6, 2**63)]),
        (narrow, [(5, 1), (5, 2**61)]),
        (operations, [([3, -1] * 9, 2**63, 70), ([3] * 9, 0, 1), ([3] * 9, 2**63, -1)]),
        (by_bits_of_zero, [(3, 5)]),
        (an_index, [(np.arange(3.0), 5)]),
    ],
)
def test_what_leaves(f, calls):
    check_whatever_leaves(f, calls)


def any_operations(x, y, k, n):
    found = []
    for _ in range(n):
        w = x ^ 0x8000000000000000
        found.append(((w * y + k) & MASK, (w * y - k) & 0xFFFF, (w << (k & 63)) & MASK))
        found.append(
            (w >> (k & 63), w & y, w > y, w % 97, w / 2**10, (-w) & MASK, ~(w + y) % 2**32)
        )
        x = (x * y + k) & 0x7FFFFFFFFFFFFFFF
    return found


_fast = np_compile.compile(any_operations)
_WORD = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1])


@settings(max_examples=40, deadline=None)
@given(_WORD, _WORD, st.integers(-100, 100))
def test_any_words(x, y, k):
    with whole():
        check_call(_fast, any_operations, (x, y, k, 3), 0)


def an_index_of_numpy(xs, k):
    total = 0.0
    for _ in range(3):
        total += xs[k]
    return total


def test_an_index_beyond_63_bits_is_no_negative_one():
    fast = np_compile.compile(an_index_of_numpy)
    with whole():
        for k in (np.uint64(2), np.uint64(2**64 - 1), np.uint64(2**63)):
            check_call(fast, an_index_of_numpy, (np.arange(4.0), k), 0)


def below(n, limit):
    """Sums that have room need no bits without a sign."""
    total = 0
    for k in range(n):
        total = (total * 31 + k) & 0x7FFFFFFF
    return total, total < limit


def test_a_small_mask_gives_an_int():
    check(Case(below, [(50, 7), (50, 2**63)], 0))
