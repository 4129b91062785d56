"""Lists that compiled code gives to Python: their items' values and types, and which are made."""

# ruff: noqa: PERF401, PERF402

from __future__ import annotations

from collections import namedtuple

import numpy as np

import np_compile

from .support import Case, check, check_call, each, exact, whole

Event = namedtuple("Event", "at size")


def of_tuples(x, t):
    found = []
    for k in range(len(x)):
        if x[k] > t:
            found.append((k, x[k], x[k] > 1, float(k), -k))
    return found


def of_numpy_numbers(a, b, c, d):
    found = []
    for k in range(len(a)):
        found.append((a[k], b[k], c[k], d[k], bool(d[k]), int(a[k])))
    return found


def of_complex_numbers(z):
    found = []
    for k in range(len(z)):
        found.append((z[k], z[k] * 2, k))
    return found


def of_tuples_in_tuples(x):
    found = []
    for k in range(len(x)):
        found.append(((k, x[k]), (), [x[k], k], (k,)))
    return found


def of_tuples_or_none(x):
    found = []
    for k in range(len(x)):
        found.append((k, x[k]) if x[k] > 1 else None)
    return found


def of_tuples_with_none(x):
    found = []
    for k in range(len(x)):
        found.append((k, None if x[k] > 1 else x[k]))
    return found


def of_several_kinds(x, n):
    found = []
    total = 0
    for k in range(n):
        found.append((total, k))
        if k > 2:
            total = x[0] + k
    return found


def of_named(x):
    found = []
    for k in range(len(x)):
        found.append(Event(k, x[k]))
    return found


def of_lists(n):
    found = []
    for k in range(n):
        found.append([k, -k])
        if k % 3 == 0:
            found[-1].append(k)
    return found


def of_lists_of_tuples(n):
    found = [[] for _ in range(3)]
    for k in range(n):
        found[k % 2].append((k, k * 0.5))
    return found


def of_arrays(m):
    found = []
    for k in range(len(m)):
        found.append((k, m[k] * 2))
    return found


def one_list_twice(n):
    inner = [1.5]
    found = []
    for k in range(n):
        found.append((k, inner))
    inner.append(2.0)
    return found, found[0][1] is found[-1][1] if n else None


def of_dicts(x):
    found = {}
    for k in range(len(x)):
        found[k % 3, k] = (x[k], k)
    return found


def unsigned(large, n):
    found = []
    for k in range(n):
        found.append((large[0] + np.uint64(k), np.int8(-k), np.float32(0.1 * k)))
    return found


def strange(x):
    found = []
    for k in range(len(x)):
        found.append((x[k], -x[k], k == 1))
    return found


X = np.array([0.5, 1.5, 2.5, -1.0, 3.0, 1.25])
NUMBERS = tuple(np.arange(3).astype(t) for t in ("i2", "f4", "u8", "?"))

CASES = [
    exact(of_tuples, (X, 1.0), (X, 9.0), (X, -9.0)),
    exact(of_numpy_numbers, NUMBERS, tuple(a[:0] for a in NUMBERS)),
    exact(of_complex_numbers, (X * (1 - 0.5j),), (X[:0] * 1j,)),
    exact(of_tuples_in_tuples, (X,), (X[:0],)),
    exact(of_tuples_or_none, (X,), (X[:1],), (X[:0],)),
    exact(of_tuples_with_none, (X,), (X[:1],), (X[:0],)),
    exact(of_several_kinds, (X, 6), (X, 2), (X, 0)),
    exact(of_named, (X,), (X[:0],)),
    exact(of_lists, (8,), (0,)),
    exact(of_lists_of_tuples, (7,), (0,)),
    exact(of_arrays, (np.arange(6.0).reshape(3, 2),), (np.ones((0, 2)),)),
    exact(one_list_twice, (4,), (0,)),
    exact(of_dicts, (X,), (X[:0],)),
    exact(unsigned, (np.array([2**63 + 5], np.uint64), 5), (np.zeros(1, np.uint64), 0)),
    exact(strange, (np.array([np.nan, -0.0, np.inf]),)),
]


@each(CASES)
def test_the_items_are_those_of_python(c: Case) -> None:
    check(c)


def left_by_a_search(cost):
    far = np.full(len(cost), np.inf)
    came = {}
    open_ = [(0.0, 0)]
    steps = 0
    while open_:
        d, k = open_.pop()
        steps += 1
        for n in (k + 1, k + 2):
            if n < len(cost) and d + cost[n] < far[n]:
                far[n] = d + cost[n]
                came[n] = k
                open_.append((far[n], n))
    steps += 1
    order = np.array([*map(int, far[1:])])  # in Python
    total = 0.0
    for k in range(len(order)):
        total += order[k] * cost[k]
    return total, steps


def test_lists_that_nobody_asks_for_are_not_made() -> None:
    fast = np_compile.compile(left_by_a_search)
    with whole():
        for _ in range(2):
            for n in (40, 1):
                check_call(fast, left_by_a_search, (np.arange(1.0, n + 1) % 7 + 1,))
    reading = fast._reading
    regions = [region for known in reading._regions.values() for region in known]
    taken = [e for region in regions for e in region.exits.values() if e.count]
    assert any("came" not in e.frames[0][3] and "steps" in e.frames[0][3] for e in taken)
    assert reading.listed == 0


def left_in_a_loop(x, n):
    found = []
    last = 0
    for k in range(n):
        last += k
        if k == 3:
            found.append(np.sort(x, kind="stable")[::-1].tobytes()[:0] + b"a")  # in Python
        found.append((k, last)) if k != 3 else None
    last += 1
    return last


def counted_before_it_is_bound_again(x):
    seen = [0]
    for k in range(len(x)):
        seen.append(k)
    n = len(np.unique(x.astype(str)))  # in Python
    seen += [n]
    for k in range(len(x)):
        n += seen[k]
    return n


def asked_by_an_inner_function(x):
    seen = []
    for k in range(len(x)):
        seen.append((k, x[k]))

    def last():
        return seen[-1]

    n = len(np.unique(x.astype(str)))  # in Python
    return n, last()


def test_lists_that_are_asked_for_later_are_made() -> None:
    for f, args in (
        (left_in_a_loop, (X, 6)),
        (counted_before_it_is_bound_again, (X,)),
        (asked_by_an_inner_function, (X,)),
    ):
        fast = np_compile.compile(f)
        with whole():
            for _ in range(3):
                check_call(fast, f, args)
