"""Loops over whole arrays are recorded; with sizes that are new they are compiled whole."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile
from np_compile import config

from ..capture.test_sizes import compiles, same
from ..support import data


@pytest.fixture(autouse=True)
def kernels():
    with config.patch(plain="never", compile_in="call", loops="auto", recompile_limit=1000):
        yield


def recursive_filter(x, keep=0.9):
    y = np.empty_like(x)
    y[0] = x[0]
    for t in range(1, len(x)):
        y[t] = keep * y[t - 1] + x[t]
    return y


def solve(lower, x):
    for i in range(len(lower)):
        x[i] -= lower[i, :i] @ x[:i]
        x[i] /= lower[i, i]


def waves(u, steps):
    before = u
    for _ in range(steps):
        around = np.roll(u, 1, 0) + np.roll(u, -1, 0)
        u, before = 2 * u - before + 0.2 * (around - 2 * u), u
    return u


def lower(n):
    return np.tril(data(n, n)) + n * np.eye(n)


CASES = {
    "recursive_filter": (recursive_filter, lambda n: (data(n, 3),)),
    "reversed": (recursive_filter, lambda n: (data(n, 3)[::-1, ::2],)),
    "solve": (solve, lambda n: (lower(n), data(n, 20))),
    "waves": (waves, lambda n: (data(n, 3), n)),
}


@pytest.mark.parametrize("case", CASES)
def test_new_sizes_give_the_same(case):
    f, of = CASES[case]
    fast = np_compile.compile(f)
    for n in (12, 13, 11, 15, 2, 1, 9, 13, 13, 12, 40, 33, 0, 17, 2):
        if n > 0 or f is waves:
            same(fast, f, *of(n))
    assert case == "reversed" or fast._reading.for_sizes.is_compiled


@pytest.mark.parametrize("case", CASES)
def test_new_sizes_are_not_recorded(case):
    f, of = CASES[case]
    fast = np_compile.compile(f)
    for n in (12, 13):
        fast(*of(n))
    count, turn = compiles(fast), fast._options.budget.turn
    for n in range(14, 40):
        same(fast, f, *of(n))
    assert compiles(fast) == count
    assert fast._options.budget.turn == turn


def test_a_size_that_comes_again_and_again_is_kept():
    fast = np_compile.compile(recursive_filter)
    for n in (12, 13):
        fast(data(n, 3))
    assert not fast._keeper.kept
    for _ in range(2000):
        fast(data(13, 3))
        if fast._keeper.kept:
            break
    assert fast._keeper.kept
    same(fast, recursive_filter, data(13, 3))


def test_one_size_alone_is_kept_at_once():
    fast = np_compile.compile(recursive_filter)
    for _ in range(3):
        fast(data(12, 3))
    assert fast._keeper.kept
    assert not fast._reading.for_sizes.is_compiled


def test_where_sizes_are_constants_each_is_recorded():
    fast = np_compile.compile(recursive_filter, dynamic=False)
    for n in (12, 13, 11):
        same(fast, recursive_filter, data(n, 3))
    assert not fast._reading.for_sizes.is_compiled
    assert fast._options.budget.turn == 3


def test_explain_tells_of_it():
    fast = np_compile.compile(recursive_filter)
    for n in (12, 13):
        fast(data(n, 3))
    assert any("for sizes that are new: compiled whole" in t for t in fast._reading.report())


def test_an_exception_leaves_what_was_done():
    def f(x, idx):
        for k in range(len(idx)):
            x[idx[k]] += np.sin(x[k]) * 2 + np.cos(x[k]) - 1
        return x

    fast = np_compile.compile(f)
    for n in (10, 12, 14, 15):
        same(fast, f, data(n, 3), np.arange(n))
    for n in (13, 16):
        one, other = data(n, 3), data(n, 3)
        idx = np.arange(n)
        idx[7] = 99
        for g, x in (fast, one), (f, other):
            with pytest.raises(IndexError, match="99"):
                g(x, idx)
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_in_the_background_new_sizes_wait_for_no_compiler():
    fast = np_compile.compile(recursive_filter)
    with config.patch(compile_in="background", plain="auto"):
        for n in range(8, 60):
            np.testing.assert_allclose(fast(data(n, 3)), recursive_filter(data(n, 3)), rtol=1e-12)
