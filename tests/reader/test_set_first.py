"""Attributes of given objects that are set before they are asked for: they need not be there when
a call begins, and are not taken if they are."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile

from ..support import observe
from .support import refusals, whole


class Thing:
    """An object without attributes."""


class Dense:
    def __init__(self, n, m, rng):
        self.W = rng.standard_normal((n, m)) * 0.1
        self.b = np.zeros(m)

    def forward(self, x):
        self.x = x
        self.z = x @ self.W + self.b
        return np.maximum(self.z, 0)

    def backward(self, g, lr):
        g = g * (self.z > 0)
        gx = g @ self.W.T
        self.W -= lr * self.x.T @ g
        self.b -= lr * g.sum(0)
        return gx


def train(layers, X, Y, steps):
    losses = []
    for _ in range(steps):
        h = X
        for layer in layers:
            h = layer.forward(h)
        d = h - Y
        losses.append(float((d * d).mean()))
        g = 2 * d / d.size
        for layer in reversed(layers):
            g = layer.backward(g, 0.1)
    return losses


def test_layers_that_hold_what_they_were_given():
    def made():
        rng = np.random.default_rng(0)
        layers = [Dense(4, 8, rng), Dense(8, 3, rng)]
        return layers, rng.standard_normal((16, 4)), rng.standard_normal((16, 3)), 5

    fast = np_compile.compile(train)
    theirs, ours = made(), made()
    with whole():
        for _ in range(3):
            np.testing.assert_allclose(fast(*ours), train(*theirs), rtol=1e-12)
            assert ours[0][0].x is ours[1]
            for a, b in zip(theirs[0], ours[0], strict=True):
                assert list(vars(a)) == list(vars(b))
                for name, value in vars(a).items():
                    np.testing.assert_allclose(getattr(b, name), value, rtol=1e-12)
    assert not refusals(fast)


def test_calls_that_are_not_kept_are_compiled_whole():
    """Also where loops do the same to whole arrays: recorded anew, they cost what NumPy does."""
    rng = np.random.default_rng(0)
    layers = [Dense(4, 8, rng), Dense(8, 3, rng)]
    fast = np_compile.compile(train)
    with np_compile.config.patch(compile_in="call"):
        fast(layers, rng.standard_normal((16, 4)), rng.standard_normal((16, 3)), 40)
    assert fast._reading.is_compiled


def set_in_branches(s, x, n):
    for k in range(n):
        s.y = x * k
        if k > 1:
            s.z = s.y + 1
        s.n = k
    return s.y.sum() if n else 0.0


def read_too_early(s, n):
    for k in range(n):
        if k == 2:
            s.y = np.ones(3)
        if k > 0:
            s.t = s.y[0] + k
    return n


def of_earlier_iterations(s, n):
    for k in range(n):
        if k % 2 == 0:
            s.y = np.full(3, k * 1.0)
        s.w = s.y * 2
    return n


def set_to_none(s, n):
    for k in range(n):
        s.y = None if k % 2 else np.ones(2)
    return s.y is None


def set_after_it_was_read(s, n):
    total = 0.0
    for k in range(n):
        total += s.old[0]
        s.old = s.old * 0.5 + k
    return total


CALLS = [
    (set_in_branches, lambda n: (np.arange(3.0), n)),
    (read_too_early, lambda n: (n,)),
    (of_earlier_iterations, lambda n: (n,)),
    (set_to_none, lambda n: (n,)),
    (set_after_it_was_read, lambda n: (n,)),
]


@pytest.mark.parametrize(("f", "args"), CALLS, ids=lambda p: getattr(p, "__name__", ""))
def test_attributes_come_as_in_python(f, args):
    fast = np_compile.compile(f)
    with whole():
        for n in (4, 0, 1, 3, 5):
            theirs, ours = Thing(), Thing()
            if f is set_after_it_was_read:
                theirs.old, ours.old = np.arange(1.0, 3.0), np.arange(1.0, 3.0)
            for again in (n, n, 0, 2):
                want = observe(f, (theirs, *args(again)), {})
                got = observe(fast, (ours, *args(again)), {})
                assert type(got.error) is type(want.error)
                assert str(got.error) == str(want.error)
                assert got.result == want.result
                assert vars(ours).keys() == vars(theirs).keys()
                for name, value in vars(theirs).items():
                    np.testing.assert_array_equal(getattr(ours, name), value)
                    assert type(getattr(ours, name)) is type(value)
