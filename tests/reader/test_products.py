"""Products of vectors in compiled loops, of every length: they are added up in many sums."""

from __future__ import annotations

import numpy as np
import pytest

from .support import case, check, exact

R = np.random.default_rng(11)


def growing(a, x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = a[i, :i] @ x[:i]
    return y


def of_rows(a, x):
    y = np.zeros(len(a), a.dtype)
    for i in range(len(a)):
        y[i] = np.dot(a[i], x)
    return y


def matrix(dtype, n):
    # Whole numbers, whose sums are exact in any order.
    return R.integers(-9, 9, (n, n)).astype(dtype), R.integers(-9, 9, n).astype(dtype)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8"])
def test_lengths(dtype):
    check(exact(growing, matrix(dtype, 131), matrix(dtype, 1), matrix(dtype, 0)))


def test_steps():
    a, x = matrix("f8", 262)
    check(exact(of_rows, (a[:5, ::2], x[:131]), (a[:5, :131], x[::2]), (a[:5, ::-2], x[::2])))


def test_signs_and_no_numbers():
    a = np.full((3, 150), -0.0)
    a[1, 140], a[2, 3] = np.nan, np.inf
    check(exact(of_rows, (a, np.ones(150))))


def test_rounding_is_that_of_many_sums():
    a = (R.standard_normal((1, 100_000)) + 1).astype("f4")
    x = R.random(100_000).astype("f4")
    fast = check(case(of_rows, (a, x), rtol=1e-5))
    exactly = a[0].astype("f8") @ x.astype("f8")
    assert abs(fast(a, x)[0] - exactly) < 1e-5 * exactly
