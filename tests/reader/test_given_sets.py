"""Sets that a region is given: as arguments, attributes, items, defaults, globals."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import np_compile

from .support import refusals, whole

BORN = {3}


def shown(x: Any) -> Any:
    """What there is to see of a value: the items of sets in their order, and the types of all."""
    if isinstance(x, (set, frozenset, list, tuple)):
        return type(x), [shown(v) for v in x]
    if isinstance(x, dict):
        return [(shown(k), shown(v)) for k, v in x.items()]
    if isinstance(x, Graph):
        return shown(vars(x))
    return type(x), repr(x)


def called(f: Any, args: tuple) -> Any:
    args = copy.deepcopy(args)
    try:
        result = f(*args)
    except Exception as e:
        result = e
    return shown(result), shown(args), [result is x for x in args if isinstance(x, set)]


def check(f: Any, *calls: tuple) -> list[str]:
    """Compare calls in three rounds; why some are not compiled."""
    fast = np_compile.compile(f)
    with whole():
        for _ in range(3):
            for args in calls:
                want = called(f, args)
                assert called(fast, args) == want, args
    return refusals(fast)


def by_argument(grid, born, keeps):
    n = 0
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            if grid[i, j] in born or int(grid[i, j]) in keeps:
                n += i * j + 1
    return n


def by_global(grid):
    n = 0
    for row in grid:
        for v in row:
            n += v in BORN
    return n


def grown(s, n):
    for i in range(n):
        s.add((i * 7919) % 1009)
    return len(s)


def given_back(s, n):
    for i in range(n):
        s.add(i * 3)
    return s


def cleared(s, n):
    for i in range(n):
        if i == n // 2:
            s.clear()
        s.add((i * 7919) % 1009)
    return len(s)


def left(s, n):
    for i in range(n):
        s.add(i * 101)
        if i == 5:
            raise ValueError("five")
    return [(x, len(s)) for x in s]


def of_floats(s, x):
    n = 0
    for v in x:
        if v in s:
            n += 1
        s.add(v)
    return n


def of_pairs(walls, n):
    seen, stack = set(), [(0, 0)]
    while stack:
        r, c = stack.pop()
        if (r, c) in seen or (r, c) in walls:
            continue
        seen.add((r, c))
        for dr, dc in ((0, 1), (1, 0)):
            if r + dr < n and c + dc < n:
                stack.append((r + dr, c + dc))
    return len(seen)


def in_a_dict(d, n):
    k = 0
    for i in range(n):
        for j in range(n):
            if j in d[i]:
                k += 1
            else:
                d[i].add(j * 2)
    return k


def put_into_a_dict(d, n):
    for i in range(n):
        d[i % 3] = {i, i + 1}
        d[i % 3].add(i * 5)
    return len(d)


def in_a_list(sets, n):
    k = 0
    for i in range(n):
        for s in sets:
            k += i in s
            s.add(i * 3)
    return k


def item_of_a_record(state, n):
    k = 0
    for i in range(n):
        if i * i in state["seen"]:
            k += 1
        else:
            state["seen"].add(i)
    return k


def under_two_names(s, t, n):
    for i in range(n):
        if i * 2 in t:
            s.add(i)
        n += s is t
    return n


def put_together(s, t, n):
    k = 0
    for i in range(n):
        k += len((s & t | {i}) - t) + (s <= t) + 10 * (s == t) + max(s) + sorted(t)[0]
    return k


def asked_for_its_type(s, n):
    k = 0
    for i in range(n):
        k += isinstance(s, set) + 10 * isinstance(s, dict) + 100 * bool(s) + 1000 * (i in s)
    return k


class Graph:
    def __init__(self, edges):
        self.edges, self.seen = edges, set()

    def reached(self, v):
        stack, n = [v], 0
        while stack:
            u = stack.pop()
            if u in self.seen:
                continue
            self.seen.add(u)
            n += 1
            for w in range(10):
                if w in self.edges[u] and w not in self.seen:
                    stack.append(w)
                    n += 1
        return n


def of_an_object(graph, v):
    return graph.reached(v)


GRID = (np.arange(63) * 5 % 9).reshape(7, 9)
EDGES = {k: {k * 3 % 10, (k + 4) % 10} for k in range(10)}
ONES = {1.5, 2.0}


@pytest.mark.parametrize(
    ("f", "calls"),
    [
        (by_argument, [(GRID, {3}, {2, 3}), (GRID, {3, 6}, set()), (GRID, set(), set())]),
        (by_global, [(GRID,)]),
        (grown, [({3, 500, 77}, 200), (set(), 50), (set(range(1000)), 400), ({1}, 0)]),
        (given_back, [({77}, 20), ({1, 5}, 9), (set(), 3)]),
        (cleared, [({3, 500}, 60), (set(), 9), ({5}, 0)]),
        (left, [({9}, 4), ({2, 700}, 20), (set(), 8)]),
        (of_floats, [(ONES, np.arange(9.0)), (ONES, np.array([1.5, -0.0, 0.0, 2.0]))]),
        (of_pairs, [({(1, 1), (2, 3)}, 9), (set(), 4), ({(0, 0)}, 4)]),
        (in_a_dict, [({k: {k} for k in range(12)}, 12), ({k: set() for k in range(7)}, 7)]),
        (put_into_a_dict, [({0: {1}, 1: {2}, 2: {9}}, 20), ({0: {1}}, 2)]),
        (in_a_list, [([{k} for k in range(20)], 20)]),
        (item_of_a_record, [({"seen": {4}}, 50), ({"seen": {16}}, 9)]),
        (under_two_names, [({1, 2}, {2, 4}, 30), ({1}, {2}, 0)]),
        (put_together, [({1, 2}, {2, 5}, 20), ({1}, {1}, 3)]),
        (asked_for_its_type, [({1, 2}, 20), (set(), 5)]),
        (of_an_object, [(Graph(EDGES), 0), (Graph(EDGES), 3)]),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)  # fmt: skip
def test_sets_are_read_and_given_back(f, calls):
    why = check(f, *calls)
    assert all("exception is raised" in x or "loop over this" in x for x in why), why


def test_one_set_under_two_names():
    one = {1, 2, 4}
    for n in (5, 30):
        check(under_two_names, (one, one, n), ({1}, {2}, n))


def test_sets_that_change_their_types():
    """A region is for the types that it was read for."""
    other = [{1, 2}, {1, 2**70}, {"a"}, {np.int64(3)}, {None}, {(1, 2)}, {1, 2.5}, set(),
             {1.5}, {True, 7}, frozenset({1})]  # fmt: skip
    check(grown, *[(s, 9) for s in other])
    check(of_floats, *[(s, np.arange(5.0)) for s in other])
    check(of_floats, *[(s, np.arange(5)) for s in other])


def found_in(s, x):
    return [v in s for v in x]


def test_nan_is_in_no_set():
    x = np.array([1.5, np.nan, np.nan])
    check(found_in, ({1.5}, x), ({np.nan, 1.5}, x), ({1.5}, x.astype(np.float32)), (set(), x))
