"""Powers of innermost loops that are computed for some iterations ahead."""

from __future__ import annotations

import numpy as np
import pytest

from .support import check, check_whatever_leaves, exact
from .test_innermost import text_of

R = np.random.default_rng(7)


def pairs(x, m, a):
    for i in range(len(m)):
        for j in range(i + 1, len(m)):
            d = x[j] - x[i]
            f = (np.sum(d * d) + 0.01) ** -1.5
            a[i] += m[j] * f * d
            a[j] -= m[i] * f * d


def summed(x):
    s = 0.0
    for j in range(len(x)):
        s += 1 / (x[j] * x[j]) ** 1.5
    return s


def folded(x, length):
    s = 0.0
    for j in range(1, len(x)):
        d = x[j] - x[0]
        if d > length / 2:
            d = d - length
        s = s * 0.5 + (d * d + 1.0) ** -0.5
    return s


def twice(x, out):
    s = 0.0
    for j in range(len(x)):
        p = (x[j] + 1.5) ** 2.5
        q = (p + x[j]) ** -0.5
        s = s * 0.25 + p * q
        out[j] = s


def each_one(x, out):
    for j in range(len(x)):
        out[j] = x[j] ** 1.5


def in_place(x):
    for j in range(1, len(x)):
        x[j] = (x[j - 1] + x[j]) ** 1.5 * 0.25


def of_before(x):
    s = 1.0
    for j in range(len(x)):
        s = (s + x[j]) ** 0.5 + 1.0
    return s


def one_array(x):
    s = 0.0
    for j in range(len(x)):
        s = s * 0.5 + (x[j] + 2.0) ** 1.5
        x[-1 - j] = s
    return s


def next_row(x):
    s = 0.0
    for j in range(len(x) - 1):
        d = x[j] * 0.5
        s = s * 0.5 + (d[0] * d[0] + d[1] * d[1] + 1.0) ** 1.5
        x[j + 1] = s
    return s


def gathered(x, at):
    s = 0.0
    for j in range(len(at)):
        s = s * 0.5 + (x[at[j]] + 2.0) ** 1.5
    return s


def skipping(x):
    s = 0.0
    for j in range(len(x)):
        if x[j] < 0.5:
            continue
        s = s * 0.5 + x[j] ** 1.5
    return s


def stopping(x, most):
    s = 0.0
    for j in range(len(x)):
        s = s * 0.9 + x[j] ** 1.5
        if s > most:
            break
    return s, j


def unequal(x, y, s):
    for j in range(len(x)):
        s[0] = s[0] * 0.5 + (x[j] + y[j]) ** 1.5


def part_of_own(x, out):
    for j in range(len(x)):
        d = x[j] * 2.0
        e = d[1:]
        e[0] = 3.0
        out[0] = out[0] * 0.5 + (d[0] + d[1]) ** 1.5


def line(n):
    return np.abs(R.standard_normal(n)) + 0.1


PROGRAMS = [
    (pairs, lambda n: (R.standard_normal((n, 3)), line(n), np.zeros((n, 3)))),
    (summed, lambda n: (line(n),)),
    (folded, lambda n: (line(n + 1), 1.5)),
    (twice, lambda n: (line(n), np.zeros(n))),
    (each_one, lambda n: (line(n), np.zeros(n))),
    (in_place, lambda n: (line(n),)),
    (of_before, lambda n: (line(n),)),
    (one_array, lambda n: (line(n),)),
    (next_row, lambda n: (R.standard_normal((n, 2)),)),
    (gathered, lambda n: (line(n), R.integers(-n, n, n))),
    (skipping, lambda n: (line(n),)),
    (stopping, lambda n: (line(n + 1), 4.0)),
    (part_of_own, lambda n: (R.random((n, 3)), np.zeros(1))),
]  # fmt: skip


@pytest.mark.parametrize(("f", "make"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_values_are_those_of_libm(f, make):
    check(exact(f, *(make(n) for n in (40, 9, 64, 33, 0))))


@pytest.mark.parametrize(("f", "ahead"), [
    (pairs, 1), (summed, 1), (folded, 0), (twice, 2), (each_one, 1), (in_place, 0), (of_before, 0),
    (one_array, 0), (next_row, 0), (gathered, 0), (skipping, 0), (stopping, 0), (part_of_own, 1),
])  # fmt: skip
def test_powers_that_hang_on_what_the_loop_stores_are_not_computed_ahead(f, ahead):
    text = text_of(f, *dict(PROGRAMS)[f](40))
    assert text.count("= near_halves(") == ahead


def test_numbers_of_any_size():
    x = np.array([0.0, 5e-324, 1e-300, 1e300, np.inf, -np.inf, np.nan, -2.0, -0.0, 1.0] * 9)
    check(exact(summed, (x,), (np.abs(x) + 1,)))
    check(exact(each_one, (x, np.zeros(90))))


def of_halves(x):
    found = np.empty((8, len(x)))
    for j in range(len(x)):
        found[0, j] = x[j] ** -0.5
        found[1, j] = x[j] ** -1.5
        found[2, j] = x[j] ** -2.5
        found[3, j] = x[j] ** -3.5
        found[4, j] = x[j] ** 1.5
        found[5, j] = x[j] ** 3.5
        found[6, j] = x[j] ** -3
        found[7, j] = x[j] ** -2.0
    return found


def test_powers_of_many_numbers():
    scales = 2.0 ** R.integers(-90, 90, 3000)
    check(exact(of_halves, ((1 + R.random(3000)) * scales,), (1 + 2.0**-52 * np.arange(900),)))


def test_an_index_beyond_the_end_leaves_there():
    check_whatever_leaves(
        unequal, [(line(70), line(70), np.zeros(1)), (line(70), line(50), np.ones(1))]
    )
    check_whatever_leaves(
        pairs,
        [
            (R.standard_normal((9, 3)), line(9), np.zeros((9, 3))),
            (R.standard_normal((40, 3)), line(60), np.zeros((60, 3))),
            (R.standard_normal((60, 3)), line(60), np.zeros((30, 3))),
        ],
    )
