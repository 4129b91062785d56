"""Which functions are compiled whole, by what they do to single elements and to large arrays."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile

from .support import check_call, refusals

X = np.random.default_rng(5).random((150, 150))


def local_maxima(x):
    for _ in range(4):
        x = x + np.roll(x, 1, 0)
    out = np.zeros_like(x)
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            if x[i, j] >= x[i, j + 1] and x[i, j] >= x[i, j - 1]:
                out[i, j] = x[i, j]
    return out


def corners(x):
    for _ in range(4):
        x = x + np.roll(x, 1, 0)
        x[0, 0] = x[0, 1] if x[0, 1] > 1 else 0.0
    return x


def medians(x):
    """Little work, each of it a library's where it is recorded."""
    out = x.copy()
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            out[i, j] = np.median(x[i - 1 : i + 2, j - 1 : j + 2])
    return out


def test_what_is_a_library_s_in_recorded_code_is_read():
    fast = np_compile.compile(medians)
    with np_compile.config.patch(compile_in="call", loops="auto"):
        for n in (5, 0, 1, 2, 3, 5):
            check_call(fast, medians, (X[:n, :n],), 0)
            assert fast._reading.is_compiled


@pytest.mark.parametrize(("f", "whole"), [(local_maxima, True), (corners, False)])
def test_work_on_elements_is_weighed_against_large_arrays(f, whole):
    fast = np_compile.compile(f)
    with np_compile.config.patch(compile_in="call", loops="auto"):
        check_call(fast, f, (X,), 0)
    assert fast._reading.is_compiled == whole
    assert any("large" in why for why in refusals(fast)) != whole


class Filter:
    def __init__(self):
        self.x = np.zeros(2)
        self.gain = np.array([[0.5, 0.1], [0.0, 0.7]])

    def update(self, z):
        y = z - self.x
        self.x = self.x + self.gain @ y
        return np.abs(y).sum()


def update(f, z):
    return f.update(z)


def newton(x, y, n):
    """A loop over large arrays that ends by a value."""
    w = np.zeros(x.shape[1])
    for _ in range(n):
        p = 1 / (1 + np.exp(-x @ w))
        d = np.linalg.solve(x.T @ (x * (p * (1 - p))[:, None]), x.T @ (p - y))
        w = w - d
        if np.abs(d).max() < 1e-10:
            break
    return w


def chosen(x):
    """Without a loop, and with an array whose size hangs on values."""
    return x * np.unique(x)[1]


def through_helper(x):
    def smoothed(y, a):
        out = np.empty_like(y)
        out[0] = y[0]
        for i in range(1, len(y)):
            out[i] = a * y[i] + (1 - a) * out[i - 1]
        return out

    return smoothed(x, 0.3) - smoothed(x, 0.1)


RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((6000, 4))


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (update, lambda: (Filter(), RNG.random(2))),
        (newton, lambda: (POINTS, RNG.integers(0, 2, 6000), 20)),
        (chosen, lambda: (RNG.standard_normal(50),)),
        (through_helper, lambda: (RNG.random(60),)),
    ],
)
def test_what_is_not_kept_is_read(f, args):
    """Each recorded call would cost what NumPy costs."""
    fast = np_compile.compile(f)
    with np_compile.config.patch(compile_in="call", loops="auto", plain="never"):
        for _ in range(5):
            check_call(fast, f, args(), 1e-9)
        assert fast._reading.is_compiled
        assert np_compile.explain(fast)(*args()).segments == []


def test_what_is_kept_is_not_read():
    def f(x, n):
        for _ in range(n):
            x = np.tanh(x @ x) + 1
        return x

    fast = np_compile.compile(f)
    with np_compile.config.patch(compile_in="call", loops="auto", plain="never"):
        for _ in range(5):
            check_call(fast, f, (X, 3), 1e-9)
    assert fast._keeper.kept
    assert not fast._reading.is_compiled


def summed_up(items):
    total = 0.0
    for v in items:
        total += v
    return total


def squares(items):
    return sum([v * v for v in items])


def test_loops_over_a_few_items_are_not_said_to_be_none():
    for f in (summed_up, squares):
        said = np_compile.explain(np_compile.compile(f))([1.0, 2.0]).loops
        assert len(said) == 1
        assert "no loop is left in it: its loops go through a few items" in said[0]
