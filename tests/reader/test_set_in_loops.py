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


def bound_again_each_time(m):
    total = 0
    for k, v in enumerate(m):
        if k == 0:
            last = v
        total += last * 2 + v
        last = v
    return total


def bound_by_an_inner_loop(m):
    out = []
    for v in m:
        for j in range(v):
            out.append(2 * j)
        out.append(j)
        j = 7
    return out


def two_at_once(m):
    out = np.zeros(len(m))
    for k, v in enumerate(m):
        if v > 1:
            t, u = v, np.arange(3.0) + k
        out[k] = t + u[0]
        t, u = t * 2, u * 2
    return out


def asked_for_in_a_test(m):
    total = k = 0
    while k < len(m) and (k == 0 or w < 9):  # noqa: F821
        if m[k] >= 1:
            w = m[k]
        total += w
        w = w + 1
        k += 1
    return total


def by_ways_out(m):
    total = 0
    for v in m:
        if v > 1:
            w = v
            continue
        total += w
        w = 0
        if total > 50:
            break
    return total


def first_ones_apart(m):
    out = []
    for k, v in enumerate(m):
        if k == 0:
            last = v
            continue
        out.append(v - last)
        last = v
    return out


def brent(a, b):
    fa, fb = np.cos(a) - a**3, np.cos(b) - b**3
    c, fc = b, fb
    for k in range(100):
        if fb * fc > 0:
            c, fc, d = a, fa, b - a
            e = d
        if abs(fc) < abs(fb):
            a, b, c, fa, fb, fc = b, c, b, fb, fc, fb
        middle = (c - b) / 2
        if abs(middle) <= 1e-12 or fb == 0:
            return b, k
        if abs(e) >= 1e-12 and abs(fa) > abs(fb):
            s = fb / fa
            p, q = 2 * middle * s, s - 1
            if p > 0:
                q = -q
            if 2 * abs(p) < min(3 * middle * q, abs(e * q)):
                e, d = d, abs(p) / q
            else:
                d = e = middle
        else:
            d = e = middle
        a, fa = b, fb
        b += d
        fb = np.cos(b) - b**3


COUNTS = [(np.array(m),) for m in ([2, 0, 1], [1, 6, 2, 1], [2, 2, 0, 0, 5])]


@each([
    exact(bound_again_each_time, *COUNTS),
    exact(bound_by_an_inner_loop, *COUNTS),
    exact(two_at_once, COUNTS[0], COUNTS[2]),
    exact(by_ways_out, *COUNTS[::2]),
    exact(first_ones_apart, *COUNTS),
    exact(brent, (0.0, 1.0), (0.0, 1.5)),
])  # fmt: skip
def test_what_an_iteration_before_has_bound(c):
    """Though this one may bind it too, and does so at its end."""
    check(c)


@pytest.mark.parametrize(
    "f", [bound_by_an_inner_loop, two_at_once, by_ways_out, asked_for_in_a_test]
)
def test_what_no_iteration_has_bound(f):
    check_whatever_leaves(f, [(np.array([0, 1, 3]),), (np.array([3, 0]),), *COUNTS])
