"""Members of the user's enumerations as values."""

from __future__ import annotations

from enum import Enum, Flag, IntEnum, auto

import numpy as np
import pytest

import np_compile

from .support import case, check, check_whatever_leaves, each, exact, refusals, whole

A = np.array([1.5, -0.5, 0.0, 3.0, -2.5, 0.0, 7.0, 0.25])
CALLS = (A,), (A[:1],), (np.zeros(0),), (-A,)


class State(Enum):
    S = auto()
    I = auto()  # noqa: E741
    R = auto()


class Turn(Enum):
    UP = 1
    DOWN = -1
    IDLE = 0


class Kind(Enum):
    X = "first"
    Y = "y"


def in_lists(a):
    states, n = [State.S] * len(a), 0
    for i, v in enumerate(a):
        if v > 0:
            states[i] = State.I
        elif v < -1:
            states[i] = State.R
    for s in states:
        if s is State.I:
            n += 1
        elif s == State.R:
            n += 10
        if s in (State.S, State.I):
            n += 100
        if s is not State.S and s != State.I:
            n += 1000
    return states, n


def values(a):
    turn, at = Turn.IDLE, 0
    for v in a:
        turn = Turn.UP if v > 0.3 else Turn.DOWN if v < -0.3 else Turn.IDLE
        at += turn.value
        if turn:
            at += 10
    return at, turn, turn.name, turn.value


def texts(a):
    kind, n = Kind.X, 0
    for v in a:
        kind = Kind.Y if v > 0 else Kind.X
        n += kind.value == "first"
    return kind, n, kind.value


def keys(a):
    counts = {}
    for v in a:
        k = State.S if v > 0 else State.I
        counts[k] = counts.get(k, 0) + 1
    return counts


def or_none(a):
    x, n = None, 0
    for _ in a:
        if x is None:
            x = State.S
        elif x == State.S:
            x = State.I
        else:
            x = State.R
        n += isinstance(x, State) + 10 * (x is Turn.UP) + 100 * (x == 1) + 1000 * (x is None)
    return x, n, [x] * 2, (x, State.I)


class Lift:
    def __init__(self):
        self.turn, self.at, self.log = Turn.IDLE, 0, []

    def go(self, to):
        if to > self.at:
            self.turn = Turn.UP
        elif to < self.at:
            self.turn = Turn.DOWN
        else:
            self.turn = Turn.IDLE
        self.at += self.turn.value
        self.log.append(self.turn)


def attributes(a):
    lift = Lift()
    for v in a:
        lift.go(v * 5)
    return lift.at, lift.turn, lift.log


def shown(a):
    s = State.S
    for v in a:
        if s == State.S and v > 0:
            s = State.I
        print(s, s.name, f"{s}")
    return s


def all_of_them(a):
    n = 0
    for k in State:
        for v in a:
            if k is State.I and v > 0:
                n += 1
    return n, [sum(1 for v in a if v > 0 and k is State.S) for k in State]


def leaves(a):
    s, out = State.S, []
    for v in a:
        if v > 0:
            s = State.I
        out.append((s, v))
        if v > 2:
            out[10]
    return out


@each([exact(f, *CALLS) for f in (in_lists, values, texts, keys, or_none, attributes, shown,
                                  all_of_them, leaves)])  # fmt: skip
def test_reads(c):
    check(c)


def test_from_outside():
    def run(turn, a):
        n = 0
        for v in a:
            n += v > turn.value
            turn = Turn.UP if v > 0 else Turn.DOWN
        return n, turn

    fast = np_compile.compile(run)
    with whole():
        for turn in (*Turn, *Turn):
            assert fast(turn, A) == run(turn, A)
    assert not refusals(fast)


class Number(IntEnum):
    ONE = 1
    TWO = 2


class Bits(Flag):
    A = 1
    B = 2


class Odd(Enum):
    A = 1
    B = 2

    def __eq__(self, other):
        return True

    __hash__ = Enum.__hash__


class Mixed(Enum):
    A = "text"
    B = 2.5

    def twice(self):
        return 2


@pytest.mark.parametrize("kind", [Number, Bits, Odd, Mixed])
def test_others_are_pythons(kind):
    first, second = kind

    def run(a):
        n, s = 0, first
        for v in a:
            s = second if v > 0 else first
            if s == first:
                n += 1
        return n, s, s.value

    check_whatever_leaves(run, list(CALLS))


def ordered(a):
    s, n = State.S, 0
    for v in a:
        if v > 0:
            s = State.I
        n += s < State.I
    return n


def sorted_ones(a):
    found = [State.S]
    for v in a:
        if v > 0:
            found += [State.I]
    return sorted(found)


def of_two_enumerations(a):
    s = State.S
    for v in a:
        s = State.I if v > 0 else Turn.UP
    return s


def as_an_array(a):
    s = State.S
    for v in a:
        if v > 0:
            s = State.I
    return np.array([s, State.S])


def numpy_compares(a):
    s, n = State.S, 0
    for v in a:
        if v > 0:
            s = State.I
        n += bool(v == s)
    return n


@each([case(f, *CALLS) for f in (ordered, sorted_ones, of_two_enumerations, as_an_array,
                                 numpy_compares)])  # fmt: skip
def test_what_is_not_read_is_pythons(c):
    check_whatever_leaves(c.function, c.calls)
