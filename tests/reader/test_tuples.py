"""Loops over tuples, and over lists from outside, that cannot be written out item by item."""

from __future__ import annotations

import numpy as np

import np_compile

from .support import Case, check, each, exact, whole

MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))
PRIMES = [2, 3, 5, 7, 11, 13, 17, 19]
WEIGHTS = (0.5, -1.0, 0.25)
MIXED = (1, 2.5, 3)
M = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0], [-7.0, 8.0, 9.0]])


def neighbours(m):
    """Those within the array."""
    n, k = m.shape
    out = np.zeros((n, k), dtype=np.int64)
    for i in range(n):
        for j in range(k):
            for di, dj in MOVES:
                a, b = i + di, j + dj
                if a < 0 or b < 0 or a >= n or b >= k:
                    continue
                out[i, j] += m[a, b] > 0
    return out


def first_divisor(n):
    found = []
    for k in range(2, n):
        for p in PRIMES:
            if p * p > k:
                found.append((k, 0))
                break
            if k % p == 0:
                found.append((k, p))
                break
        else:
            found.append((k, -1))
    return found


def weighted(x):
    s = 0.0
    for i in range(len(x)):
        for k, w in enumerate(WEIGHTS):
            if x[i] * w > 3:
                break
            s += x[i] * w * k
    return s, k, w


def leaves_within(x, powers):
    """An exception, with the rest of the tuple ahead."""
    s = 0
    for i in range(len(x)):
        for p in powers:
            if p == 0:
                continue
            s += x[i] // p
            if s > 1 << 62:
                s *= 4
    return s


def zipped(m):
    s = 0.0
    for row in range(3):
        for (di, dj), sign in zip(MOVES, (1, -1, 1, -1), strict=True):
            if m[row, di] < 0:
                continue
            s += sign * m[row, dj]
    return s


def of_several_types(x):
    s = 0
    for i in range(len(x)):
        for w in MIXED:
            if w > x[i]:
                break
            s += w
    return s


def of_values(x, a, b):
    """Items that are known when the loop begins only."""
    found = []
    for i in range(len(x)):
        a += i
        for k, (low, high) in enumerate(((a, b), (b, a + 10), (-1, a * b))):
            if low <= x[i] < high:
                found.append((k, low))
                break
    return found


def of_one_and_none(x):
    s = 0
    for i in range(len(x)):
        for k in (i,):
            if x[k] < 0:
                break
            s += k
        for k in ():
            if k:
                break
    return s


def first_in(x, flags):
    for i in range(len(x)):
        for wanted, factor in ((True, 2.0), (False, 3.0)):
            if (x[i] > 0) != wanted:
                continue
            if flags[i]:
                return i, wanted, factor
    return None


X = np.array([1.0, 7.0, -3.0, 12.0, 4.0])
CASES = [
    exact(neighbours, (M,), (M[:1],), (M[:0],)),
    exact(first_divisor, (400,), (2,), (1000,)),
    exact(weighted, (X,), (-X,), (X[:1],)),
    exact(leaves_within, (np.arange(5), [3, 0, 2]), (np.arange(5), [3, 0, -2]),
          (np.array([1 << 62, 1 << 62]), [1, 2])),
    exact(zipped, (M,), (-M,)),
    exact(of_several_types, (X,), (X[:0],), refused="several types"),
    exact(of_values, (X, 0, 5), (X, -3, 2), (X[:0], 1, 1)),
    exact(of_one_and_none, (X,), (-X,)),
    exact(first_in, (X, X > 5), (X, X > 99), (X, X < 0)),
]  # fmt: skip


@each(CASES)
def test_loops_over_tuples(c: Case) -> None:
    check(c)


def test_a_list_that_changes_between_calls() -> None:
    values = [1, 2, 3]

    def first_above(x):
        for i in range(len(x)):
            for v in values:
                if v > x[i]:
                    break
            else:
                return i
        return -1

    fast = np_compile.compile(first_above)
    x = np.array([0, 1, 5, 2])
    with whole():
        assert fast(x) == first_above(x) == 2
        values[1] = 9
        assert fast(x) == first_above(x) == -1
        values.append(1)
        assert fast(x) == first_above(x)
