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


class Fitted:
    def __init__(self, kind, shift):
        self.kind, self.shift = kind, shift

    def fit(self, x):
        self.path, self.total = [], 0.0
        for _ in range(2):
            for v in x:
                self.total += v if self.kind == "a" else 2 * v
            self.path.append(float(self.total))
        self.total += self.shift
        return self


def left_in_two_loops(x):
    t = 0.0
    for v in x:
        t += v
    fits = [Fitted(kind, shift).fit(x) for kind in ("a", "b") for shift in (0.0, 0.5)]
    return [(f.kind, f.shift, f.total, f.path) for f in fits], t


def test_where_one_of_several_loops_is_left_each_goes_on_with_its_own():
    check_whatever_leaves(left_in_two_loops, [(np.arange(float(n)),) for n in (5, 6, 5)])
