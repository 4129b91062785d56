"""Statements on the elements under one mask are loops that take nothing out of arrays."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile

from .support import case, check, check_call, check_whatever_leaves, exact, whole


def some(shape, dtype="f8", seed=0):
    x = np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)
    return x * (1 + 0.5j) if x.dtype.kind == "c" else x


def escapes(c, n):
    z, count = np.zeros(c.shape, c.dtype), np.zeros(c.shape, dtype=np.int64)
    for _ in range(n):
        m = np.abs(z) <= 2
        z[m] = z[m] * z[m] + c[m]
        count[m] += 1
    return z, count


@pytest.mark.parametrize("dtype", ["c16", "c8", "f8"])
def test_iterations_under_a_mask(dtype) -> None:
    calls = [(some(s, dtype) / 3, 9) for s in ((0,), (1,), (7, 9), (40, 30))]
    check(case(escapes, *calls, ((some((20, 12), dtype) / 3).T[::2, ::-1], 5)))


def halves(x, y, n):
    """What is not under the mask is not touched: zeros are no divisors, NaN stays."""
    for k in range(n):
        m = x != k
        y[m] = (y[m] - 1) / x[m] + k
        y[m] -= 2.5 * y[m]
        x[m] *= -1
        x[m] = -(x[m] ** 2)
    return x, y


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_values_beside_a_mask_stay(dtype) -> None:
    x, y = some((9, 12), dtype), some((9, 12), dtype, 1)
    y[2] = np.nan
    y[3, ::2] = -0.0
    check(exact(halves, (x, y, 4), (x[::2, 1::2], y[::2, 1::2], 3), (x[0], y[0], 3)))


def of_integers(x, y, n):
    for k in range(n):
        m = (x & 1) == k % 2
        x[m] = x[m] * 3 + y[m]
        y[m] ^= x[m] & 7
        x[m] = y[m] * 0.75
        m[m] = False
        x[m] += 1
    return x, y, m


@pytest.mark.parametrize("dtype", ["i1", "i8"])
def test_integers_wrap_under_a_mask(dtype) -> None:
    check(exact(of_integers, (some((9, 12), dtype), some((9, 12), dtype, 1), 6)))


def overlapping(x, n):
    for k in range(n):
        a, b = x[1:], x[:-1]
        m = b > k
        a[m] = a[m] + b[m]
        b[m] += 2 * a[m]
        x[x > 9] = 0
    return x


def test_what_overlaps_is_taken_out_first() -> None:
    check(exact(overlapping, (some(40), 5), (some((12, 5)), 4), (some(1), 2)))


def of_another_shape(x, y, n):
    for k in range(n):
        m = y > k
        x[m] += 1
        x[m] = x[m] * y[m]
        if k == 2:
            y = y[1:]
    return x, y


def test_a_mask_of_another_shape_raises_where_it_does_in_numpy() -> None:
    check_whatever_leaves(of_another_shape, [(some(20), some(20, "f8", 1), n) for n in (2, 3, 6)])
    check_whatever_leaves(of_another_shape, [(some(20), some(19, "f8", 1), 6)])


def of_another_kind(x, n):
    for k in range(n):
        m = x > k
        x[m] += 0.5
    return x


def test_a_result_that_an_array_cannot_take_raises() -> None:
    fast = np_compile.compile(of_another_kind)
    with whole():
        check_call(fast, of_another_kind, (some(9, "i8"), 3), 0)


def test_nothing_is_taken_out() -> None:
    fast = check(case(escapes, (some((12, 12), "c16") / 3, 4)))
    assert fast._reading.texts()[0].count("allocate(rt, ") <= 4  # its own line, z, count and m


def beside(z, limits, n):
    found = []
    for k in range(n):
        size = limits[k]
        found.append((np.abs(z) <= size, np.abs(z) == size, size < np.abs(z), abs(z) != limits))
        z[k] = z[k] * 1.5
    return found


def test_absolute_values_are_compared_as_in_numpy() -> None:
    """By squares, but where these are about as large, too large or none."""
    z = np.array([3 + 4j, 0, 1e200 + 1e200j, 5e-324, complex(np.nan, 1), complex(np.inf, np.nan),
                  -5, 3 + 4j * (1 + 2**-50), 1e-170 + 1e-170j, 0.6 + 0.8j])  # fmt: skip
    edges = [5.0, np.nextafter(5, 6), np.nextafter(5, 0), 0.0, -1.0, np.inf, np.nan, 1e-170, 1e300]
    fast = check(exact(beside, (z, np.array([*edges, 1.0]), 10)))
    assert "modulus_beside(p_" in fast._reading.texts()[0]
