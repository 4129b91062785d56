# ruff: noqa: B905
"""`zip`, `enumerate` and `reversed` as arguments of what takes all that they give."""

from __future__ import annotations

import itertools
from collections import deque

import numpy as np

from .support import Case, check, check_whatever_leaves, each, exact


def lists(x, y, n):
    s = 0.0
    for k in range(n):
        pairs = list(zip(x, y))
        numbered = list(enumerate(x, 2))
        back = list(reversed(range(k)))
        both = tuple(zip(x, y, range(9)))
        s += pairs[0][0] * numbered[1][1] + len(back) + both[-1][2]
        pairs.append((x[0], s))
    return pairs, numbered, back, both, s


def in_order(x, y, n):
    for k in range(n):
        by_value = sorted(zip(y, range(len(y))))
        least = min(enumerate(y), key=lambda p: p[1])
        most = max(zip(x, y))
        x[k % len(x)] += most[1] + least[0]
    return by_value, least, most, x


def keyed(x, n):
    for k in range(n):
        by_place = dict(enumerate(x))
        squares = dict(zip(range(k), [v * v for v in range(k)]))
        again = dict(zip([1, 2, 1], x))
        found = set(zip(range(5), range(3, 8)))
        x[0] += by_place[1] + again[1] + ((1, 4) in found)
    return by_place, squares, again, found, x


def queued(x, n):
    queue = deque(zip(range(n), x))
    other = deque(enumerate(x))
    s = 0.0
    while queue:
        k, v = queue.popleft()
        s += k * v
        if v > 2 and k < 50:
            queue.append((k + 10, v - 1))
    other.appendleft((7, s))
    return s, other


def drawn(rng, n):
    found = []
    for _ in range(n):
        found += list(zip(rng.random(2), rng.integers(0, 9, 2)))
    return found, rng.random()


def of_two(x, y, n):
    """They are compared, which raises."""
    s = 0.0
    for k in range(n):
        s += x[k]
    return max(zip(x, y), zip(y, x)), s


def no_pairs(x, n):
    s = 0.0
    for k in range(n):
        s += x[k]
    return dict(zip(x, x, x)), s


def accumulated(x, y, n):
    found, s = [], 0.0
    for k in range(n):
        work = [v * k for v in range(4)]
        found.append(list(itertools.accumulate(work))[-1])
        s += sum(itertools.accumulate(x)) + max(itertools.accumulate(y, max))
        sums = list(itertools.accumulate(x.tolist()))
        sums.append(1.0)
    return found, s, sums, list(itertools.accumulate(y))


def draws(rng, n):
    for k in range(n):
        x = rng.random()
        if x > 0.98:
            raise ValueError(f"{x:.6f} at {k}")
        yield x


def of_generators(rng, n):
    s, some = 0.0, []
    for k in range(n):
        some = list(draws(rng, k))
        s += len(some) + sum(draws(rng, k)) + max(draws(rng, 3)) * 0.5
    return s, some, sorted(draws(rng, 3)), rng.random()


X, Y = np.arange(4.0), np.array([3.0, 0.5, 2.0, 0.5])


@each([
    exact(lists, (X, Y, 3), (X, Y[:2], 1), (X.tolist(), Y.tolist(), 2)),
    exact(in_order, (X, Y, 3), (X[:1], Y[:1], 2)),
    exact(keyed, (X, 3), (X, 1)),
    exact(queued, (X, 3), (X, 0), (X[:0], 2)),
    exact(accumulated, (X, Y, 3), (X[:1], Y[:1], 2)),
    exact(of_generators, (np.random.default_rng(1), 3), (np.random.default_rng(1), 0)),
    exact(drawn, (np.random.default_rng(1), 3), (np.random.default_rng(1), 0)),
])  # fmt: skip
def test_taken_at_once(c: Case) -> None:
    check(c)


def test_what_raises() -> None:
    check_whatever_leaves(of_two, [(X, Y, 3), (X, Y, 0)])
    check_whatever_leaves(no_pairs, [(X, 3), (X[:0], 0)])


def test_generators_that_raise() -> None:
    check_whatever_leaves(of_generators, [(np.random.default_rng(k), 5) for k in range(5)])
