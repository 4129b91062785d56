"""Context managers of the user's in compiled functions, and jumps out of `with` and `finally`."""

from __future__ import annotations

import contextlib
import sys
import time

import numpy as np
import pytest

import np_compile

from .support import check, check_whatever_leaves, each, exact, refusals, whole


class Phase:
    def __init__(self, notes, k):
        self.notes, self.k = notes, k

    def __enter__(self):
        self.notes[0] += 1
        return self

    def __exit__(self, *exc):
        self.notes[1] += 10 if exc[0] is None else 1000
        return False


class Catching(Phase):
    def __exit__(self, kind, value, traceback):
        self.notes[2] += 1
        return kind is ZeroDivisionError


class Stack:
    """A manager that several blocks share."""

    def __init__(self):
        self.depth = self.most = 0

    def __enter__(self):
        self.depth += 1
        self.most = max(self.most, self.depth)

    def __exit__(self, *exc):
        self.depth -= 1

    @contextlib.contextmanager
    def twice(self, notes):
        notes[3] += 2
        try:
            yield self.depth
        finally:
            notes[4] += 1


@contextlib.contextmanager
def lap(notes, k=2):
    notes[3] += k
    yield
    notes[4] += k


@contextlib.contextmanager
def lasting(notes):
    old = notes[5]
    notes[5] = 7
    try:
        yield notes
    finally:
        notes[5] = old + 1


@contextlib.contextmanager
def at_zero(notes):
    try:
        yield
    except ZeroDivisionError:
        notes[5] -= 1
    else:
        notes[4] += 1


def continues_and_breaks(x):
    notes, s = np.zeros(6), 0.0
    for i in range(len(x)):
        with Phase(notes, i) as p:
            s += p.k
            if x[i] < 0:
                continue
            s += 2 // x[i]
        if s > 50:
            break
    return s, notes


def returns_from_two(x):
    notes, s = np.zeros(6), 0
    for i in range(len(x)):
        with Catching(notes, i), Phase(notes, i):
            for j in range(3):
                if x[i] == 7:
                    return s, notes, i, j
                if j == 2:
                    break
                s += 1 // x[i]
    return s, notes, -1, -1


def value_is_of_before(x):
    n = 0
    for v in x:
        try:
            with lasting(np.zeros(6)) as q:
                n += int(q[5]) + v
                if n > 30:
                    return n
        finally:
            n = -n
    return -n


def generators(x):
    notes, s = np.zeros(6), 0
    for i in range(len(x)):
        with lasting(notes) as q:
            s += x[i] + int(q[5])
            if x[i] == 5:
                break
        with lap(notes, k=3):
            s += 10 // x[i]
    return s, notes


def shared(x):
    stack, notes, s = Stack(), np.zeros(6), 0
    for v in x:
        with stack:
            with stack, stack.twice(notes) as depth:
                s += depth * v
                if v == 3:
                    break
            s += 4 // v
    return s, notes, stack.depth, stack.most


def suppressed(x):
    s = 0
    for v in x:
        with contextlib.suppress(ZeroDivisionError, IndexError):
            s += 10 // v
            s += x[v]
    return s


def caught_in_the_generator(x):
    notes, s = np.zeros(6), 0
    for v in x:
        with at_zero(notes):
            s += 10 // v
    return s, notes


def leaves_at_the_end(x):
    """A jump whose `finally` raises is not there twice."""
    n = 0
    for k in range(len(x)):
        try:
            n += 1
            if x[k] > 3:
                return n
        finally:
            n += 10 // x[k]
    return n


X = [1, 2, 3, 4] * 5


@each([
    exact(continues_and_breaks, (X,), ([1, -2, 3] * 4,), ([9] * 30,)),
    exact(returns_from_two, (X,), ([1, 2, 7] * 3,)),
    exact(value_is_of_before, (X,), (X[:1],)),
    exact(generators, (X,), ([1, 2, 5] * 3,)),
    exact(shared, (X,), ([1, 2] * 4,)),
    exact(suppressed, (X,)), exact(caught_in_the_generator, (X,)),
    exact(leaves_at_the_end, (X,), ([1, 2] * 4,)),
])  # fmt: skip
def test_managers(c):
    check(c)


@pytest.mark.parametrize("f", [
    continues_and_breaks, returns_from_two, value_is_of_before, generators, shared, suppressed,
    caught_in_the_generator, leaves_at_the_end,
])  # fmt: skip
def test_what_leaves(f):
    """Also where Python goes on within a block: it ends it once, as what was raised asks."""
    check_whatever_leaves(
        f, [([1, 2, 0, 4, 3, 7] * 4,), ([1, 2, 40] * 4,), ([0, 5, -1] * 3,), (X,)]
    )


class Timer:
    def __init__(self):
        self.begun = self.total = 0.0

    def __enter__(self):
        self.begun = time.perf_counter()
        return self

    def __exit__(self, *exc):
        self.total += time.perf_counter() - self.begun


def timed(x, before):
    """Clocks tell what Python's do, in order."""
    seen = [time.perf_counter_ns()]
    with Timer() as timer:
        for v in x:
            n = 0.0
            for k in range(v * 1000):
                n = n * 0.5 + k
            seen.append(time.perf_counter_ns())
    return seen, timer.total, time.time() - before, time.process_time(), time.monotonic(), n


@pytest.mark.skipif(sys.platform != "linux", reason="clocks are C's where Python reads them so")
def test_clocks():
    fast = np_compile.compile(timed)
    with whole():
        for _ in range(3):
            begun = time.perf_counter_ns(), time.process_time(), time.monotonic()
            seen, total, since, of_process, now, _ = fast(X, time.time())
            ended = time.perf_counter_ns(), time.process_time(), time.monotonic()
            order = [begun[0], *seen, ended[0]]
            assert order == sorted(order)
            assert 0 < total <= (ended[0] - begun[0]) * 1e-9
            assert total <= since < 60
            assert begun[1] <= of_process <= ended[1]
            assert begun[2] <= now <= ended[2]
    assert not refusals(fast)


def returns_past_the_end(x):
    notes = np.zeros(6)
    for v in x:
        with lap(notes):
            if v == 3:
                return notes
    return notes


def falls_through(x):
    total = 0
    for v in x:
        with open("/dev/null"), np.errstate(all="raise"):
            total += v
    return total


@each([
    exact(returns_past_the_end, (X,), refused="goes by the end of a generator"),
    exact(falls_through, (X,), refused="with"),
])  # fmt: skip
def test_what_is_not_read(c):
    check(c)
