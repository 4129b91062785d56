"""Comprehensions of dicts and sets whose items change something, as a generator of random numbers;
names of functions as keys."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile

from .support import Case, check, check_whatever_leaves, each, exact, whole


def bootstrap(x, f, n, rng):
    s = np.zeros(n)
    for k in range(n):
        s[k] = f(x[rng.integers(0, len(x), len(x))])
    return s.mean()


def by_size(x, n, rng):
    return {k: bootstrap(x, np.mean, k, rng) for k in range(1, n)}, rng.random()


def key_first(n, rng):
    found = {int(rng.integers(0, 9)): rng.random() for _ in range(n) if rng.random() < 0.7}
    return found, rng.random()


def some(n, rng):
    k = 7.5
    found = {int(rng.integers(0, 9)) for k in range(n) for _ in range(k)}
    return sorted(found), len(found), k, rng.random()


def pairs(n, rng):
    t, d = 0.0, {(i, j): rng.random() for i in range(n) for j in range(i)}
    for i in range(1, n):
        t += d[i, 0]
    return t, d


def by_name(x, n, rng):
    found = {f.__name__: bootstrap(x, f, n, rng) for f in (np.mean, np.median, np.add.reduce)[:2]}
    best = bootstrap.__name__
    for name in found:
        if found[name] > 2:
            best = name
    return found, best, np.exp.__name__, float.__name__


def fails(x, n, rng):
    return {k: 1 / int(rng.integers(0, 3)) for k in range(n)}, x.sum()


def generator(seed=1):
    return np.random.default_rng(seed)


@each([
    exact(by_size, (np.arange(5.0), 5, generator()), (np.arange(5.0), 1, generator())),
    exact(key_first, (9, generator()), (0, generator())),
    exact(some, (5, generator()), (0, generator())),
    exact(pairs, (5, generator()), (1, generator())),
    exact(by_name, (np.arange(5.0), 3, generator()), (np.arange(3.0), 2, generator(4))),
])  # fmt: skip
def test_comprehensions_that_change_something(c: Case) -> None:
    check(c)


def test_those_that_fail() -> None:
    check_whatever_leaves(fails, [(np.ones(2), 6, generator(k)) for k in range(4)])


def test_a_function_that_gets_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def helper(x):
        return x * 2

    def named(x, n):
        found = {}
        for k in range(n):
            found[helper.__name__] = helper(x[k])
        return found

    fast = np_compile.compile(named)
    with whole():
        for name in ("helper", "other", "helper"):
            monkeypatch.setattr(helper, "__name__", name)
            assert fast(np.ones(3), 3) == named(np.ones(3), 3) == {name: 2.0}
