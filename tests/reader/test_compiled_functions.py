"""Functions that are compiled themselves, as values: they stay the objects that they are."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile

from .support import refusals, whole

A = np.array([0.5, 2.0, -1.0])


def add(x):
    return x + 1


def double(x):
    return 2 * x


PLAIN = add
ADD, DOUBLE = np_compile.compile(add), np_compile.compile(double)
LIST = [ADD, DOUBLE]


class Steps:
    add = staticmethod(ADD)


def applied(f, a):
    t = 0.0
    for v in a:
        t += f(v)
    return t, f


def in_a_sequence(fs, a):
    t, last, given = 0.0, None, []
    for f in fs:
        last = f
        given.append((f, [f(v) for v in a]))
    return t, last, f, given


def compared(fs, a):
    t, best = 0.0, None
    for f in fs:
        for v in a:
            t += f(v)
        if f is fs[0]:
            t, best = t + 10, f
        if f == ADD:
            t += 100
        if f in (DOUBLE, None):
            t += 1000
        if f is PLAIN or f == PLAIN:
            t += 10000
        if best is not None:
            t += best(t)
    return t, best, ADD is fs[0], LIST[1] is DOUBLE


def of_names(_, a):
    t = 0.0
    for v in a:
        f = Steps.add
        t += f(v) + ADD(v)
    return t, f, ADD, Steps.add, type(f), LIST[1]


def left_in_the_middle(fs, a):
    """What Python goes on with has the function too."""
    t, seen = 0.0, []
    for f in fs:
        t += f(a[0])
        try:
            seen.append(f is fs[0] or (f, a[len(seen) + 2]))
        except IndexError as e:
            seen.append((f, str(e)))
    return t, seen, f


def one_or_the_other(_, a):
    f = ADD if a[0] > 0 else PLAIN
    t = 0.0
    for v in a:
        t += f(v)
    return t, f, f is ADD, f is PLAIN


def another_after_the_first(_, a):
    t, f = 0.0, PLAIN
    for v in a:
        t += f(v)
        f = ADD
    return t, f


FUNCTIONS = (
    in_a_sequence, compared, of_names, left_in_the_middle, one_or_the_other,
    another_after_the_first,
)  # fmt: skip


@pytest.mark.parametrize("fs", [LIST, (ADD, DOUBLE), [DOUBLE, ADD, ADD], (PLAIN, ADD)])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_they_are_not_what_they_were_made_of(f, fs):
    fast = np_compile.compile(f)
    with whole():
        for a in (A, A, -A, A[:2]):
            assert repr(fast(fs, a)) == repr(f(fs, a))


@pytest.mark.parametrize("f", [ADD, PLAIN])
def test_an_argument_is_given_back(f):
    fast = np_compile.compile(applied)
    with whole():
        for _ in range(3):
            t, same = fast(f, A)
            assert (t, same) == applied(f, A)
            assert same is f
    assert not refusals(fast)
