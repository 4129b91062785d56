"""Attributes that objects get when their `__init__` has ended."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import np_compile

from ..support import observe
from .support import refusals, whole


class Stump:
    def __init__(self, power=1.0):
        self.power = power

    def fit(self, x, y):
        self.cut, self.count = 0.0, len(x)
        best = np.inf
        for k in range(len(x)):
            error = 0.0
            for j in range(len(x)):
                error += abs(y[j] - (x[j] > x[k])) ** self.power
            if error < best:
                best, self.cut = error, x[k]
        self.weights = np.zeros(3)
        self.weights[1] = best
        return self

    def predict(self, x):
        return (x > self.cut) * self.weights.sum()


class Agent:
    def __init__(self, k):
        self.k = k


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a = 1


class Default:
    last = 7

    def __init__(self):
        self.a = 1


class Doubled:
    def __init__(self):
        self.a = 1

    @property
    def twice(self):
        return 2 * self.later


def fitted(x, y):
    stump = Stump().fit(x, y)
    other = Stump(2.0)
    for _ in range(2):
        other.fit(x, 1 - y)
    return stump, stump.predict(x), other, other.cut, other.count


def seen(n):
    agents = [Agent(k) for k in range(n)]
    for t in range(5):
        for a in agents:
            if a.k % 2 == t % 2:
                a.seen = t if t < 2 else t / 2
                a.where = None if t < 3 else (a.k, t)
                a.path = [t]
            elif t > 3:
                a.path.append(t)
    return agents


def neighbours(n):
    agents = [Agent(k) for k in range(n)]
    for a, b in itertools.pairwise(agents):
        a.other = b
    total, a = 0, agents[0]
    for _ in range(n - 1):
        total += a.other.k
        a = a.other
    return total, agents


def asked_for(n, at):
    a = Agent(1)
    for k in range(n):
        if k == at:
            a.late = k + 0.5
    return a, a.late


def caught(n, at):
    a, s = Agent(1), 0.0
    for k in range(n):
        if k == at:
            a.late = k
        try:
            s += a.late
        except AttributeError:
            s -= 1
    return s, a


def summed(n):
    a, s = Agent(2), 0
    for k in range(n):
        if k > 0:
            s += a.last
        a.last = k
    return s, a


def slotted(n, at, bad):
    s = Slotted()
    for k in range(n):
        if k == at:
            s.b = k
        if k == bad:
            s.c = k
    return s.b, s.a


def by_class(n):
    x, s = Default(), 0
    for k in range(n):
        s += x.last
        x.last = k
    return s, x


def by_property(n):
    x, s = Doubled(), 0
    for k in range(n):
        x.later = k
        s += x.twice
    return s, x


def given(agents, n):
    for t in range(n):
        for a in agents:
            a.fitness = a.k * t
    return sum(a.fitness for a in agents)


X = np.linspace(-1, 1, 9)
CASES = [
    (fitted, [(X, (X > 0.3) * 1.0), (X[:1], np.zeros(1))], ""),
    (seen, [(4,), (0,), (1,)], ""),
    (neighbours, [(5,), (1,)], ""),
    (asked_for, [(5, 2), (5, 9), (0, 0)], ""),
    (caught, [(5, 2), (5, 9), (0, 0)], ""),
    (summed, [(5,), (1,), (0,)], ""),
    (slotted, [(5, 2, 9), (5, 9, 9), (5, 1, 3)], ""),
    (by_property, [(5,), (0,)], ""),
    (by_class, [(5,), (0,)], "which the class has too"),
]


def shown(x):
    """What can be seen of objects: their attributes in their order."""
    if isinstance(x, (list, tuple)):
        return type(x), [shown(y) for y in x]
    if isinstance(x, (Agent, Stump, Default, Doubled)):
        return type(x), [(k, shown(y)) for k, y in vars(x).items() if k != "other"]
    return (x.dtype, x.tolist()) if isinstance(x, np.ndarray) else (type(x), x)


@pytest.mark.parametrize(("f", "calls", "refused"), CASES, ids=[f.__name__ for f, *_ in CASES])
def test_attributes_that_are_set_later(f, calls, refused) -> None:
    fast = np_compile.compile(f)
    with whole():
        for _ in range(2):
            for args in calls:
                want, got = observe(f, args, {}), observe(fast, args, {})
                assert shown(got.result) == shown(want.result)
                assert (type(got.error), str(got.error)) == (type(want.error), str(want.error))
    found = refusals(fast)
    assert any(refused in why for why in found) if refused else not found, found


def test_attributes_that_objects_from_outside_get() -> None:
    fast = np_compile.compile(given)
    with whole():
        for count, n in ((3, 2), (12, 3), (12, 0)):
            mine, theirs = ([Agent(k) for k in range(count)] for _ in range(2))
            want, got = (observe(f, (x, n), {}) for f, x in ((given, theirs), (fast, mine)))
            assert got.result == want.result
            assert str(got.error) == str(want.error)
            assert shown(mine) == shown(theirs)


def test_what_is_said_of_a_function_that_ends_in_the_middle() -> None:
    def helped(x, n):
        s = 0.0
        for k in range(n):
            s += x[k]
        return unread(x, s)

    def unread(x, s):
        x[0] = s
        return eval("s")

    fast = np_compile.compile(helped)
    with whole():
        assert fast(np.ones(3), 3) == helped(np.ones(3), 3)
        assert "eval" in str(np_compile.explain(fast)(np.ones(3), 3))
