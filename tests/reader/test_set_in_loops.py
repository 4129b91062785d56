"""Names that have their first value in a loop, or on one way of a branch, and are asked for behind
it: numbers, arrays, texts, None, functions, generators."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest

from .support import check, check_whatever_leaves, each, exact


def state_of(x):
    for v in x:
        if v > 2:
            state = "large"
            break
        state = "small"
    return state


def nothing_of_several(x):
    for v in x:
        found = None
        if v > 1:
            found = v
    return found


def none_of_all(x):
    for _ in x:
        last = x.fill(2.0)
    return last


def none_at_last(x):
    while x[0] < 10:
        x *= 2
        why = None
    return why


def none_or_text(x):
    for i in range(3):
        for j in range(2):
            why = None if x[i] > j else "no"
    return why


def flag(x):
    for v in x:
        if v > 1:
            met = True
    return met


def kind_of_numbers(x):
    for v in x:
        if v > 1:
            kind = np.float32
    return x.astype(kind)


def function_met(x):
    for v in x:
        if v > 1:
            f = np.sin
    return f(x)


def one_of_two_functions(x):
    for v in x:
        if v > 1:
            f = np.sin
            continue
        f = np.cos
    return f(x)


def text_on_one_way(x):
    if x[0] > 0.3:
        name = "abc"
    for i in range(3):
        x[i] += 1
    return name


def ellipsis_or_truth(x):
    for v in x:
        key = True
        if v > 1:
            key = ...
    return x[key]


CASES = [
    exact(f, *[(np.array(v),) for v in ([0.5, 1.25, 3.0], [1.5, 0.25, 0.5], [4.0, 3.0, 2.0])])
    for f in (nothing_of_several, none_of_all, none_at_last, flag, kind_of_numbers, function_met)
]


@each(CASES)
def test_what_names_have_behind_loops(c):
    check(c)


def range_of_a_loop(x):
    for i in range(3):
        seen = range(i)
        x[i] += len(seen)
    return seen


def generator_of_a_loop(x):
    for i in range(3):
        rng = np.random.default_rng(i)
        x[i] += rng.random()
    return rng.random()


def method_of_a_loop(x):
    for i in range(3):
        total = x.sum
        x[i] += i
    return total()


def function_made(x):
    for i in range(3):

        def more(v):
            return v + x[0]

        x[i] = more(x[i])
    return more(1)


def function_made_on_one_way(x):
    for v in x:
        if v > 1:

            def more(v):
                return v + 1

            x += more(v)
    return str(x), more(1)


def partial_made(x):
    for v in x:
        scaled = functools.partial(np.multiply, v)
    return scaled(x)


def generator_of_one_way(x):
    try:
        x[3] = 1.0
    except IndexError:
        raise
    else:
        rng = np.random.RandomState(1)
        x += rng.random_sample()
    return rng.random_sample()


def partial_of_one_way(x):
    if x[0] > 100:
        raise ValueError
    else:
        scaled = functools.partial(np.multiply, x[1] + 1)
    for i in range(3):
        x[i] += 1
    return scaled(x)


@dataclass
class Point:
    at: float
    path: np.ndarray


def object_of_a_loop(points):
    for p in points:
        if p.at > 1:
            last = p
    last.path[0] = 7
    return last, last.at


LEFT = [
    state_of,
    none_or_text,
    one_of_two_functions,
    text_on_one_way,
    ellipsis_or_truth,
    range_of_a_loop,
    generator_of_a_loop,
    method_of_a_loop,
    function_made,
    function_made_on_one_way,
    partial_made,
    generator_of_one_way,
    partial_of_one_way,
]


@pytest.mark.parametrize("f", LEFT, ids=lambda f: f.__name__)
def test_what_compiled_code_leaves_to_python(f):
    """Or takes: what comes back is Python's."""
    calls = [[0.5, 1.25, 3.0, 0], [0.5, 0.25, 0.1, 0], [0.1, 4.0, 2.0, 0]]
    check_whatever_leaves(f, [(np.array(v),) for v in calls])


def test_objects_that_a_loop_has_met():
    def points(*at):
        return [Point(v, np.zeros(2)) for v in at]

    check_whatever_leaves(object_of_a_loop, [(points(1.0, 2.0, 3.0),), (points(0.5),)])
