"""`sum` of Python's floats. From Python 3.12 on it adds at the end what the additions have lost."""

from __future__ import annotations

import math
import types

import numpy as np
import pytest

import np_compile
from np_compile.reader import builtins

from .support import check_call, refusals, whole

RNG = np.random.default_rng(5)
X = RNG.standard_normal(40) * 10.0 ** RNG.integers(-9, 9, 40)


def python_sum(items, start=0):
    """What `sum` gives from Python 3.12 on."""
    total, lost = start, 0.0
    for x in items:
        if type(total) is float and type(x) is float:
            t = total + x
            lost += (total - t) + x if abs(total) >= abs(x) else (x - t) + total
            total = t
        elif type(total) is float and isinstance(x, int):
            total += float(x)
        else:
            if lost and math.isfinite(lost):
                total += lost
            total, lost = total + x, 0.0
    return total + lost if lost and math.isfinite(lost) else total


def of_a_list(x):
    out = [float(v) for v in x]
    return sum(out), len(out)


def of_a_generator(x):
    s = 0.0
    for k in range(3):
        s += sum(float(v) * 0.1 for v in x[k:])
    return s


def of_few(x):
    out = []
    for k in range(len(x) - 4):
        a, b, c = float(x[k]), float(x[k + 1]), float(x[k + 2])
        out.append(sum((a, b, c, -a)))
        out.append(sum((a, 3, b, True, c)))
        out.append(sum((a, b, c, -a), 1e16))
        out.append(float(sum((a, b, c, x[k], b, c))))
        out.append(sum((k, 2, a, b, c)))
    return out


def of_numpy_floats(x):
    s = 0.0
    for k in range(3):
        s += sum(v * 0.1 for v in x[k:])
    return s, sum(x)


FUNCTIONS = [of_a_list, of_a_generator, of_few, of_numpy_floats]
GIVEN = {
    "wide": X,
    "cancelling": np.array([1.0, 1e100, 1.0, -1e100, 2.0, 3.0]),
    "infinite": np.array([1.0, np.inf, 1e300, 2.0, -1.0, 0.5]),
    "beyond": np.array([1e308, 1e308, -1e308, 3.0, -1.0, 0.5]),
    "nan": np.array([1.0, np.nan, 1e300, 2.0, -1.0, 0.5]),
    "zeros": np.full(6, -0.0),
}


def compare(f, expected, x):
    fast = np_compile.compile(f)
    with whole():
        for _ in range(2):
            check_call(fast, expected, (x,), 0)
    return refusals(fast)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", GIVEN)
def test_sums_are_those_of_this_python(f, name):
    assert not compare(f, f, GIVEN[name])


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", GIVEN)
def test_what_additions_lose_is_added(f, name, monkeypatch):
    monkeypatch.setattr(builtins, "COMPENSATES", True)
    expected = types.FunctionType(f.__code__, {**f.__globals__, "sum": python_sum})
    assert not compare(f, expected, GIVEN[name])


def test_sums_of_what_is_no_list_are_left_to_python(monkeypatch):
    def mixed(x):
        return sum(1 if v > 0 else 0.5 for v in x)

    monkeypatch.setattr(builtins, "COMPENSATES", True)
    assert any("sum" in why for why in compare(mixed, mixed, X))


class Money:
    def __init__(self, amount):
        self.amount = amount

    def __add__(self, other):
        return Money(self.amount + (other.amount if isinstance(other, Money) else other))

    __radd__ = __add__


def of_arrays(x):
    out = np.zeros(3)
    for k in range(3):
        out += sum((1.5, 2, x[k : k + 3]))
        out[k] += sum([x[k] * np.ones(2), np.arange(2.0)])[1]
    return out


def of_objects(x):
    total = 0.0
    for v in x:
        total += sum((Money(v), Money(2.0), 1.5), Money(1.0)).amount + sum([Money(v), 1]).amount
    return total


@pytest.mark.parametrize("f", [of_arrays, of_objects])
def test_sums_of_arrays_and_of_objects(f):
    assert not compare(f, f, X)
