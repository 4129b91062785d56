"""Functions and methods with a cache, which keeps what they are given and what they give."""

import functools

import numpy as np
import pytest

import np_compile

from ..support import same

CALLS = []
fast = np_compile.compile(backend="eager")


def counting(f):
    @functools.wraps(f)
    def call(n):
        CALLS.append(n)
        return f(n)

    return call


@functools.lru_cache(maxsize=8)
@fast
def window(n):
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)


@functools.cache
@counting
@fast
def counted(n):
    return np.arange(n) * 2.0


class Basis:
    def __init__(self, n):
        self.scale = np.full(n, 2.0)

    @functools.lru_cache(maxsize=8)  # noqa: B019 - as programs have it
    def of(self, n):
        CALLS.append(n)
        return np.arange(n) * self.scale


def windowed(_, x):
    return x * window(len(x)), window(3), window.cache_info().currsize


def by_wrapper(_, x):
    return x * counted(len(x)), counted(int(x.sum()))


def by_method(b, x):
    return x * b.of(len(x)) + b.scale


@pytest.mark.parametrize("f", [windowed, by_wrapper, by_method])
def test_what_a_cache_keeps(f):
    made = fast(f)
    basis = Basis(4), Basis(4)
    for cached in (window, counted, Basis.of):
        cached.cache_clear()
    asked = []
    for call, b in zip((f, made), basis, strict=True):
        CALLS.clear()
        results = [call(b, np.ones(4) * k) for k in (1.0, 2.0, 2.0)]
        asked.append(list(CALLS))
        if call is f:
            want = results
            window.cache_clear()
            counted.cache_clear()
    same(results, want)
    assert asked[0] == asked[1]
    assert type(window(4)) is type(counted(4)) is type(basis[1].of(4)) is np.ndarray
