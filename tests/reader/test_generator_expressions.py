"""Generator expressions: read where all that they give is taken at once; others stay Python's."""

from __future__ import annotations

import numpy as np

from .support import Case, case, check, check_whatever_leaves, each, exact

X = np.arange(6.0)


def taken_at_once(x, n):
    total = 0.0
    for i in range(n):
        total += sum(x[j] * i for j in range(i)) + any(x[j] > 3 for j in range(i))
        total += max((v * 2 for v in x), default=0.0) + len({v for v in range(i) if v % 2})
    return total


def summed_twice(x, n):
    g = (x[i] for i in range(n))
    return sum(g), sum(g)


def broken_off_and_gone_on_with(x, n):
    g = (v for v in range(n) if v % 2)
    s = 0
    for i in g:
        s += x[i]
        if s > 3:
            break
    return s, list(g)


def used_up_in_the_first_iteration(x, n):
    g = (v for v in range(n))
    s = 0
    for i in range(n):
        for w in g:
            s += w * x[i]
    return s


def asked_for_the_next(x, n):
    g = (v for v in range(n))
    s = 0
    for i in range(n):
        s += x[i]
    return s, next(g), isinstance(g, list), list(g)


def looped_over_twice(values):
    s = 0
    for v in values:
        s += v
    for v in values:
        s += 100 + v
    return s


def given_to_a_function(x, n):
    s = 0
    for i in range(n):
        s += looped_over_twice(x[j] for j in range(i))
    return s


def asked_for_what_has_changed(x, n):
    s = 0
    for v in (x[i] for i in range(n)):
        s += v
        x[n - 1] = 70
    return s


def asks_for_the_list_that_it_extends(x, n):
    items = [1.0, 2.0]
    for i in range(n):
        items.extend(x[i] + len(items) for _ in range(2))
    return items


KEPT = "not used up at once"
CASES = [
    case(taken_at_once, (X, 6), (X, 0), (X[::-1], 4)),
    *(exact(f, (X, 6), (X, 3), refused=KEPT)
      for f in (summed_twice, broken_off_and_gone_on_with, used_up_in_the_first_iteration,
                asked_for_the_next, given_to_a_function, asked_for_what_has_changed,
                asks_for_the_list_that_it_extends)),
]  # fmt: skip


@each(CASES)
def test_generators(c: Case) -> None:
    check(c)


def from_items(x, n):
    s = 0.0
    y = np.zeros(3)
    for i in range(n):
        y = np.fromiter((x[j] * i for j in range(5)), dtype=float, count=5)
        z = np.fromiter((x[j] * i for j in range(i % 5)), float)
        k = np.fromiter(range(i), np.int32)
        h = np.fromiter([v * 1.5 for v in x if v > 0.5], np.float32, -1)
        m = np.fromiter((j > 1 for j in range(4)), bool)
        c = np.fromiter([j * 0.75 for j in range(i)], np.int64)
        s += y.sum() + z.sum() + y[2] + k.sum() + h.sum() + m.sum() + c.sum()
    return s, y, z, k, h, m, c


def of_fewer_items(x, n):
    s = 0.0
    for _ in range(3):
        y = np.fromiter((v for v in x), dtype=float, count=n)
        s += y.sum()
    return s, y


def test_arrays_from_iterators():
    x = np.linspace(0, 1, 9)
    check(exact(from_items, (x, 7), (x, 1), (-x, 6)))
    check_whatever_leaves(of_fewer_items, [(x, 9), (x, 4), (x, 12), (x, -1)])
