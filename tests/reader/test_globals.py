"""Functions with loops that assign to global names."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile

from .support import refusals, whole

n, total, last, hist, place = 0, 0.0, None, np.zeros(3), 5
NAMES = "n", "total", "last", "hist", "place"


def counts(x):
    global n, total
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0:
            n += 1
        total = total + x[i]
        s += x[i] * n
    return s


def times_n(v):
    return v * n


def sees_it_elsewhere(x):
    global n
    s = 0.0
    for i in range(len(x)):
        s += times_n(x[i])
        n = n + 1
        s += times_n(x[i])
    return s


def one_more(v):
    global n
    n += 1
    return v + n


def calls(x):
    s = 0.0
    for i in range(len(x)):
        s = s + one_more(x[i])
    return s


def fails(x, j):
    global n
    for i in range(len(x)):
        n += 1
        x[j + i] += n
    return n


def of_arrays(x):
    global hist, last
    for i in range(len(x)):
        hist = hist + x[i]
        last = i
    return hist.sum()


def as_a_target(x):
    global place
    for place in range(len(x)):
        x[place] += 1
    return place


def by_its_dict(x):
    for i in range(len(x)):
        globals()["total"] += x[i]
    return total


def without_a_value(x):
    global missing
    missing = 0  # bound by the first call
    for i in range(len(x)):
        missing += i
    return missing


def in_a_comprehension(x):
    global n
    s = 0
    for i in range(len(x)):
        n = n + sum([k * n for k in range(i)])
        s += n
    return s


def under_another_scope(x):
    global n

    def f(v):
        return v + n

    s = 0.0
    for i in range(len(x)):
        n += 1
        s += f(x[i])
    return s


X = np.linspace(-1, 1, 8)
CASES = [
    (counts, (X,)), (sees_it_elsewhere, (X,)), (calls, (X,)), (fails, (X, 0)), (fails, (X, 4)),
    (of_arrays, (X,)), (as_a_target, (X,)), (as_a_target, (X[:0],)), (by_its_dict, (X,)),
    (in_a_comprehension, (X,)),
]  # fmt: skip


def _values() -> dict:
    found = {name: globals()[name] for name in (*NAMES, "missing") if name in globals()}
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in found.items()}


def _same(f, fast, args, values):
    found = []
    for g in (f, fast):
        globals().pop("missing", None)
        globals().update({k: v.copy() if k == "hist" else v for k, v in values.items()})
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        try:
            result = g(*given)
        except IndexError as e:
            result = str(e)
        found.append(repr((result, type(result), given, _values())))
    assert found[0] == found[1]


@pytest.fixture
def at_first(monkeypatch):
    for name in NAMES:
        monkeypatch.setitem(globals(), name, globals()[name])
    yield _values()
    globals().pop("missing", None)


@pytest.mark.parametrize(("f", "args"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_global_names(f, args, at_first):
    fast = np_compile.compile(f)
    with whole():
        for values in (at_first, at_first, at_first | {"n": 2.5, "place": None}, at_first):
            _same(f, fast, args, values)
    assert not refusals(fast)


@pytest.mark.parametrize("f", [without_a_value, under_another_scope])
def test_global_names_that_are_not_read(f, at_first):
    fast = np_compile.compile(f)
    with whole():
        for _ in range(3):
            _same(f, fast, (X,), at_first)
    assert refusals(fast)


def test_a_global_name_is_there_for_python_at_once(at_first):
    """What goes on in Python sees what compiled code has counted, and the other way round."""
    fast = np_compile.compile(counts)
    with whole():
        for k in range(1, 4):
            fast(X)
            assert n == 4 * k
    globals()["n"] = 10
    with whole():
        fast(X)
    assert n == 14
