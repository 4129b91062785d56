"""Loops along the last axis of arrays that go through all iterations for some elements at a time,
and those that may not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import np_compile
from np_compile.tools.inspect import inspect

from .support import check_call, check_whatever_leaves, whole

RNG = np.random.default_rng(0)


def sweeps(x, w, v, s):
    """Names on one way or another, memory that has two names, both directions, a row for all."""
    n = x.shape[2]
    c = np.zeros_like(x)
    for k in range(n):
        a = np.zeros_like(x[:, :, 0])
        if k > 0:
            a = s * w[:, :, k - 1] - c[:, :, k - 1]
        b = a
        if k == n - 1:
            b[:] = 0.5
        elif k > 1:
            b += v
        c[:, :, k] = np.where(a > 0.3, a, b * 2) / (1.0 + abs(b)) + w[:, :, min(k + 1, n - 1)]
    for k in range(n - 1, -1, -1):
        if k == n - 1:
            x[:, :, k] = c[:, :, k]
        else:
            x[:, :, k] = c[:, :, k] - np.sqrt(v) * x[:, :, k + 1]
    return c


def autoregression(x, e):
    for t in range(1, x.shape[1]):
        x[:, t] = 0.9 * x[:, t - 1] + e[:, t]
        x[:, t] *= 0.5


def totals(x, w, y):
    """An array of one value for each row, and numbers that are the same for all."""
    for k in range(x.shape[1]):
        f = w[k] * 0.5
        y += x[:, k] * f
        y -= x[:, 0]
    return y


def powers(x, f):
    for k in range(1, x.shape[1]):
        x[:, k] = x[:, k - 1] ** 2 - f * x[:, k]


def summed(x):
    s = 0.0
    for k in range(1, x.shape[1]):
        s += 1.5
        x[:, k] += x[:, k - 1] * s
    return s


def last_number(x):
    s = 0.0
    for k in range(1, x.shape[1]):
        s = k * 0.25
        x[:, k] += x[:, k - 1] * s
    return s


def first_of_all(x):
    for k in range(1, x.shape[1]):
        t = x[:, k] * 0.5
        x[:, k] = x[:, k - 1] - t[0]


def last(x):
    for k in range(1, x.shape[1]):
        t = x[:, k - 1] * 0.5
        x[:, k] += t
    return t


def one_after_another(x):
    t = x[:, 0] * 2
    for k in range(1, x.shape[1]):
        x[:, k] += t
        t = x[:, k] * 0.5


def shifted(x):
    for k in range(1, x.shape[1]):
        x[1:, k] += x[:-1, k - 1]


def turned(x):
    y = x[::-1]
    for k in range(1, x.shape[1]):
        x[:, k] += y[:, k - 1]


def mean(x):
    for k in range(1, x.shape[1]):
        x[:, k] -= x[:, k - 1].mean()


def first_row(x):
    for k in range(1, x.shape[1]):
        x[:, k] -= x[0, k - 1]


def counts(x, v):
    for k in range(1, x.shape[1]):
        v[k] += v[k - 1]
        x[:, k] = x[:, k - 1] * v[k]


def one_for_all(x, v):
    for k in range(1, x.shape[1]):
        v[:] = v * 0.5 + 1
        x[:, :, k] = x[:, :, k - 1] + v


def along_rows(x, v):
    for k in range(1, x.shape[1]):
        x[:, k] = x[:, k - 1] + v[k : k + x.shape[0]]


def lengths(x):
    for k in range(1, x.shape[1]):
        x[:, k] = x[:, k - 1] + len(x)


def printed(x, seen):
    for k in range(1, x.shape[1]):
        seen.append(k)
        x[:, k] += x[:, k - 1]


def a(*shape, dtype=float):
    return (RNG.random(shape) + 0.1).astype(dtype)


def text_of(f, *args):
    with whole():
        return "\n".join(x.output for x in inspect(np_compile.compile(f))(*args))


INTERCHANGED = [
    (sweeps, [(a(*s), a(*s), a(s[1]), 0.7) for s in [(9, 11, 10), (10, 19, 13), (11, 16, 9)]]),
    (autoregression, [(a(n, m), a(n, m)) for n, m in [(9, 10), (23, 11), (64, 9)]]),
    (totals, [(a(n, m), a(m), a(n)) for n, m in [(9, 10), (37, 11)]]),
    (powers, [(a(11, 12, dtype="f4"), 0.5)]),
]
IN_ORDER = [
    (summed, [(a(13, 11),)]),
    (last, [(a(13, 11),)]),
    (last_number, [(a(13, 11),)]),
    (first_of_all, [(a(13, 11),)]),
    (one_after_another, [(a(13, 11),)]),
    (shifted, [(a(13, 11),)]),
    (turned, [(a(13, 11),)]),
    (mean, [(a(13, 11),)]),
    (first_row, [(a(13, 11),)]),
    (counts, [(a(13, 11), a(11))]),
    (one_for_all, [(a(13, 10, 11), a(10))]),
    (along_rows, [(a(13, 11), a(30))]),
    (lengths, [(a(13, 11),)]),
    (printed, [(a(13, 11), [])]),
]


@pytest.mark.parametrize(("f", "calls"), INTERCHANGED, ids=[f.__name__ for f, _ in INTERCHANGED])
def test_all_iterations_for_a_few_elements(f, calls) -> None:
    assert "const int done_" in text_of(f, *calls[0])
    check_whatever_leaves(f, calls)


@pytest.mark.parametrize(("f", "calls"), IN_ORDER, ids=[f.__name__ for f, _ in IN_ORDER])
def test_elements_that_take_from_others_stay_in_order(f, calls) -> None:
    assert "const int done_" not in text_of(f, *calls[0])
    check_whatever_leaves(f, calls)


def test_few_elements_or_none() -> None:
    shapes = [(0, 9, 9), (9, 0, 9), (1, 9, 9), (2, 1, 9), (9, 2, 2), (3, 7, 1), (5, 8, 0)]
    check_whatever_leaves(sweeps, [(a(*s), a(*s), a(s[1]), 0.7) for s in shapes])


def test_what_does_not_fit_goes_in_order() -> None:
    """Shapes that differ raise where they meet, arrays in one memory are seen changing."""
    fast = np_compile.compile(autoregression)
    with whole():
        check_call(fast, autoregression, (a(20, 11), a(20, 11)), 0)
        x = a(20, 11)
        for args in [
            (a(20, 11), a(21, 11)),
            (a(20, 11), a(20, 9)),
            (a(20, 11), a(1, 11)),
            (x, x[::-1]),
            (x, x),
            (x.T.copy().T, x),
            (x[:, ::-1], x),
            (as_strided(a(60), (20, 11), (16, 8)), a(20, 11)),
        ]:
            check_call(fast, autoregression, args, 0, alias=False)
