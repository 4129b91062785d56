"""Lists and dicts that compiled loops are given: read, changed in place, shared, refused."""

from __future__ import annotations

import heapq
import math
import random
from collections import deque

import numpy as np
import pytest

import np_compile
from np_compile.reader import given

from .support import (
    Case,
    case,
    check,
    check_call,
    check_whatever_leaves,
    each,
    exact,
    rarely,
    whole,
)


def inside(px, py, xs, ys):
    found, j = False, len(xs) - 1
    for i in range(len(xs)):
        if (ys[i] > py) != (ys[j] > py):
            at = (xs[j] - xs[i]) * (py - ys[i]) / (ys[j] - ys[i]) + xs[i]
            found ^= px < at
        j = i
    return found


def bubble(a):
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def flood(grid, i, j):
    todo, n = [(i, j)], 0
    while todo:
        i, j = todo.pop()
        if not (0 <= i < len(grid) and 0 <= j < len(grid[0])) or grid[i][j] != 1:
            continue
        grid[i][j] = 2
        n += 1
        for k in range(4):
            todo.append((i + (k == 0) - (k == 1), j + (k == 2) - (k == 3)))  # noqa: PERF401
    return n


def shortest(graph, start):
    far = [math.inf] * len(graph)
    far[start] = 0.0
    heap = [(0.0, start)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > far[u]:
            continue
        for v, w in graph[u]:
            if d + w < far[v]:
                far[v] = d + w
                heapq.heappush(heap, (d + w, v))
    return far


def halves(xs):
    for k in range(len(xs)):
        if k % 2:
            xs[k] = xs[k] / 2


def fills_gaps(xs):
    last = 0.0
    for k in range(len(xs)):
        if xs[k] is None:
            xs[k] = last
        else:
            last = xs[k]
    return last


def grows(rows, n):
    """Rows that are there, new ones, and one that is taken out."""
    mine = [0]
    for k in range(n):
        rows[k % len(rows)].append(k)
        mine.append(k)
    rows.append(mine)
    rows.append([n])
    first = rows.pop(0)
    first[0] = -1
    return first, rows[-1], mine


def moves(pairs, flags):
    for k in range(len(pairs)):
        a, b = pairs[k]
        if flags[k]:
            pairs[k] = (b, a)
            flags[k] = False
    return sum(flags)


def divides(xs, n):
    total = 0.0
    for k in range(n):
        xs[k] += 1
        total += 1 / xs[k]
    return total


def shown(xs, n):
    for k in range(n):
        xs[k] += k
        if k == n - 2:
            print(xs, len(xs))
    return max(xs)


def by_numpy(xs, n):
    total = 0.0
    for k in range(n):
        xs[k] = xs[k] * 0.5
        if k % 7 == 0:
            total += np.percentile(xs, 50)
    return total


def picks(rows, k):
    best = rows[0]
    for row in rows:
        if row[k] > best[k]:
            best = row
    return best


def dot(a, b):
    total = 0
    for x, y in zip(a, b, strict=False):
        total += x * y
    return total


def stores(x, seen):
    for k in range(len(x)):
        seen[k % len(seen)] = x[k]
        if x[k] > 2:
            seen.append(x[k])
    return seen


RNG = random.Random(3)
FLOATS = [RNG.random() for _ in range(90)]


def graph(n):
    return [[(RNG.randrange(n), RNG.random()) for _ in range(k % 4)] for k in range(n)]


def grid(n):
    return [[int(RNG.random() < 0.7) for _ in range(n)] for _ in range(n)]


CASES: list[Case] = [
    exact(inside, (0.5, 0.4, FLOATS[:4], FLOATS[4:8]), (0.5, 0.4, FLOATS[:40], FLOATS[40:80]),
          (0.5, 0.4, FLOATS, FLOATS[::-1])),
    exact(bubble, (FLOATS[:3],), (FLOATS[:30],), (FLOATS,), (list(range(70, 0, -1)),),
          ([1, 2.5, 3] * 9,), ([True, False] * 12,)),
    exact(flood, (grid(2), 0, 0), (grid(12), 3, 4), (grid(80), 40, 40), ([[1] * 5] * 4, 0, 0)),
    exact(shortest, (graph(5), 0), (graph(40), 3), (graph(100), 99)),
    *rarely(exact(halves, ([4, 3],), (list(range(20)),), (FLOATS,))),
    exact(fills_gaps, ([None, 2.0, None],), ([None] * 40 + FLOATS,), ([1, None] * 40,)),
    exact(grows, ([[1], [2]], 3), ([[1], [2, 3]] * 6, 30)),
    exact(moves, ([(1, 2.5)] * 40, [True, False] * 20), ([(1, 2.5), (3, 4.5)], [False, True])),
    exact(divides, ([3, 4, -1, 5] * 5, 4), ([5.0] * 30 + [-1.0], 31), ([1] * 12, 13)),
    exact(shown, (list(range(12)), 9), ([1, 2], 2)),
    case(by_numpy, (FLOATS, 80), (FLOATS[:20], 20)),
    exact(picks, ([[k % 7, -k] for k in range(30)], 0), ([[1, 2], [3, 1]], 1)),
    *rarely(exact(dot, (FLOATS, FLOATS), (list(range(20)), FLOATS[:20]))),
    exact(stores, (np.arange(40.0), [np.float64(1)] * 3), (np.arange(4), [7] * 30)),
]  # fmt: skip


@each(CASES)
def test_lists_that_are_given(c: Case) -> None:
    check(c)


def adds(xs, ys, n):
    for k in range(n):
        xs[k] += ys[k]
    return xs


def into_rows(rows, row):
    for k in range(len(row)):
        rows[k % len(rows)][0] += row[k]
    return rows[0][0]


def into_a_pair(xs, pair):
    for k in range(len(xs)):
        xs[k] += pair[0][k % 2]
    return pair


@pytest.mark.parametrize("what", ["twice", "row", "tuple", "rows"])
def test_a_list_under_two_names_is_one(what: str) -> None:
    a = [1.5, 2.0, 3.0]
    f, args = {
        "twice": (adds, (a, a, 3)),
        "row": (into_rows, ([a, [4.0]], a)),
        "tuple": (into_a_pair, (a, (a, 1))),
        "rows": (into_rows, ([a, a, [4.0]], [1.0, 2.0, 3.0])),
    }[what]
    fast = np_compile.compile(f)
    apart = {"twice": ([1.5], [2.0], 1), "row": ([[1.0]], [2.0]), "tuple": ([1.0], ([1.0, 2.0], 1)),
             "rows": ([[1.0]], [2.0])}[what]  # fmt: skip
    with whole():
        for _ in range(2):
            check_call(fast, f, apart, 0)
            check_call(fast, f, args, 0)


def test_what_has_not_changed_stays_the_same_object() -> None:
    fast = np_compile.compile(fills_gaps)
    with whole():
        for n in (40, 40):
            old = [float(k) for k in range(n)]
            mine: list = [*old, None]
            fast(mine)
            assert all(x is y for x, y in zip(mine, old, strict=False))
            assert mine[-1] == n - 1


def test_items_of_other_types_run_as_they_stand() -> None:
    fast = np_compile.compile(divides)
    odd: list = [[1.0] * 20 + [1 << 70], [1.0] * 20 + [2 + 1j], ["a"] * 12, [1.0, None] * 8]
    with whole():
        check_call(fast, divides, ([1.0] * 21, 21), 0)
        for xs in (*odd, [2.0] * 21):
            check_call(fast, divides, (xs, len(xs)), 0)
    assert fast._reading.serves


LEVELS = [0.5] * 12


class Counts:
    def __init__(self, n):
        self.counts = [0] * n

    def add(self, xs):
        for x in xs:
            self.counts[int(x) % len(self.counts)] += 1
            LEVELS[int(x) % 12] += 1.0
        return self.counts


def test_lists_of_objects_and_globals() -> None:
    fast = np_compile.compile(Counts.add)
    with whole():
        for n in (3, 20, 100):
            mine, theirs = Counts(n), Counts(n)
            before = LEVELS[:]
            assert fast(mine, np.arange(50.0)) is mine.counts
            got, LEVELS[:] = LEVELS[:], before
            theirs.add(np.arange(50.0))
            assert (mine.counts, got) == (theirs.counts, LEVELS)


def skips(pair, n):
    total = 0
    for k in range(n):
        total += k
    return total if pair else -1


def test_what_c_is_given_is_not_moved_by_what_it_is_not() -> None:
    """The number of a tuple whose other item C does not take was taken for the next argument."""
    check(exact(skips, ((3.5, {}), 5), ((2.5, {}), 9)))


@pytest.mark.parametrize("n", [5, 100])
def test_where_lists_lie_in_memory_in_another_way(n, monkeypatch):
    """They are not read by C then."""
    monkeypatch.setattr(given, "KNOWN", False)
    read = []
    monkeypatch.setattr(given, "lines", lambda lists, *rest: read.extend(lists) or [])
    values = [float((7 * k) % n) for k in range(n)]
    a = list(values)
    with np_compile.config.patch(loops="whole", compile_in="call"):
        fast = np_compile.compile(bubble)
        assert fast(a) is a
    assert a == sorted(values)
    assert not read


# Dicts


def steps_from(links, start):
    far, todo = {start: 0}, deque([start])
    while todo:
        u = todo.popleft()
        for v in links[u]:
            if v not in far:
                far[v] = far[u] + 1
                todo.append(v)
    return far


def fills(d, n):
    for k in range(n):
        d[k] = d.get(k - 1, 0) + k
    total = 0
    for k, v in d.items():
        total = total * 3 % 1000 + k * v
    return total, d


def spreads(cells, n):
    for i in range(n):
        for j in range(n):
            if (i, j) in cells:
                cells[i, j] += 1
            elif i == j:
                cells[i, j] = 0.5
    return max(cells.values()), len(cells)


def of_dicts(weights, n):
    total = 0.0
    for u in range(n):
        for v, w in weights[u].items():
            total += w * (u + 1) - v
        weights[u][u] = total
        weights[u][n] = 0
    weights[n] = {n: total}
    return total


def in_a_list(parts, n):
    for k in range(n):
        for d in parts:
            d[k] = d.get(k, 0) + 1
    parts.append({n: n})
    return parts[0]


def cleared(d, n):
    for k in range(n):
        if k == 2:
            d.clear()
        d[n - k] = k
    return d


def grows_amid(d, n):
    for k in d:
        if k == n:
            d[k + 100] = 1
    return d


def taken_out(d, n):
    total = 0
    for k in range(n):
        row = d.pop(k)
        total += row[0]
        d[k + 100] = row
        row.append(k)
        if k % 4 == 1:
            del d[k + 99]
    return total, d.popitem()


def asked_for(d, n):
    total = 0
    for k in range(n):
        try:
            total += d[k]
        except KeyError as e:
            d[k] = 1
            print(e, d)
    return total, d[n]


def of_floats(d, x):
    out = np.zeros(len(x))
    for k in range(len(x)):
        out[k] = d[x[k]]
        d[x[k]] = out[k] * 2
    return out


def links(n):
    return {k: [(k * 7 + j) % n for j in range(k % 4)] for k in range(n)}


DICTS: list[Case] = [
    exact(steps_from, ({0: [1], 1: []}, 0), (links(50), 7), (links(200), 13), ({0: []}, 0),
          ({0: [1]}, 0)),
    exact(fills, ({}, 9), ({3: 1}, 5), ({1: 2, 2: 5.5}, 4), ({True: 1, -7: 2}, 4), ({}, 0),
          ({np.int64(1): np.float64(0.5)}, 3)),
    exact(spreads, ({(0, 0): 1.5, (1, 2): 2.0}, 4), ({(i, -i): i * 0.5 for i in range(99)}, 9)),
    exact(of_dicts, ({k: {k * 3 % 5: 1.5} for k in range(5)}, 5), ({0: {}, 1: {7: 1.0}}, 2)),
    exact(in_a_list, ([{1: 2}, {3: 4}] * 6, 5), ([{1: 2}] + [{} for _ in range(9)], 3)),
    exact(cleared, ({1: 2, 3: 4}, 3), ({1: 5}, 9), ({1: 5}, 2)),
    exact(grows_amid, ({1: 2, 3: 4}, 9), ({1: 5}, 1), ({1: 5, 2: 3}, 2)),
    exact(asked_for, ({1: 2, 3: 4}, 5), ({k: k for k in range(9)}, 8)),
    exact(taken_out, ({k: [k] for k in range(30)}, 20), ({1: [2], 0: [3]}, 2), ({3: [1]}, 9),
          ({k: [k] for k in range(5)}, 20)),
    exact(of_floats, ({0.5: 1.0, -0.0: 2.0}, np.array([0.5, 0.0, 0.5])), ({0.5: 1.0}, np.ones(1))),
]  # fmt: skip


@each(DICTS)
def test_dicts_that_are_given(c: Case) -> None:
    check(c)


def test_keys_and_values_of_a_dict_that_have_not_changed_stay_the_same_objects() -> None:
    fast = np_compile.compile(cleared)
    kept = np_compile.compile(fills)
    with whole():
        for _ in range(3):
            old = {k * 1000: k + 0.5 for k in range(20)}
            mine = dict(old)
            kept(mine, 0)
            kept(mine, 3)
            for (k, x), (j, y) in zip(old.items(), mine.items(), strict=False):
                assert k is j
                assert j == 0 or x is y
            again = {1: 10**9}
            value = again[1]
            assert fast(again, 1) is again
            assert again[1] is value or again[1] == 0


def adds_up(d, e, n):
    for k in range(n):
        d[k] = e.get(k, 0) + 1
    return d


def into_itself(d, row):
    for k in range(len(row)):
        d[0][k % 2] += row[k]
    return row


def test_a_dict_under_two_names_is_one() -> None:
    fast, rows = np_compile.compile(adds_up), np_compile.compile(into_itself)
    shared, row = {1: 2}, [1.0, 2.0, 3.0]
    with whole():
        for _ in range(2):
            check_call(fast, adds_up, ({1: 2}, {2: 3}, 4), 0)
            check_call(fast, adds_up, (shared, shared, 4), 0)
            check_call(rows, into_itself, ({0: [1.0, 2.0]}, [5.0] * 9), 0)
            check_call(rows, into_itself, ({0: row}, row), 0)
    assert fast._reading.serves


def test_dicts_of_other_types_run_as_they_stand() -> None:
    fast = np_compile.compile(fills)
    odd = [{1: 1 << 70}, {1: 1j}, {"a": 1}, {1: None}, {None: 1}, {(1, 2): 1}, {1 << 70: 1},
           {math.nan: 1}]  # fmt: skip
    with whole():
        check_call(fast, fills, ({5: 1}, 4), 0)
        for d in (*odd, {5: 1}):
            check_call(fast, fills, (d, 4), 0)
    assert fast._reading.serves


SEEN: dict = {}


class Links:
    def __init__(self, n):
        self.to = {k: [] for k in range(n)}
        self.count = {}

    def add(self, a, b):
        self.to[a].append(b)
        self.to[b].append(a)

    def fill(self, n):
        for k in range(n):
            self.add(k, (3 * k + 1) % n)
            self.count[k] = self.count.get(k, 0) + 1
            SEEN[n, k] = len(self.to[k])
        return self.to


def test_dicts_of_objects_and_globals() -> None:
    fast = np_compile.compile(Links.fill)
    with whole():
        for n in (3, 20, 20, 100):
            mine, theirs = Links(n), Links(n)
            SEEN.clear()
            assert fast(mine, n) is mine.to
            got = list(SEEN.items())
            SEEN.clear()
            theirs.fill(n)
            assert (mine.to, mine.count, got) == (theirs.to, theirs.count, list(SEEN.items()))
    assert fast._reading.serves


def unreadable():
    given = yield 1
    yield given


def rebound_within_a_try(n, a):
    """A list that is taken for a tuple, as what is behind the loop is not read."""
    for _ in range(n):
        try:
            for _k in [0, 3]:
                a[0] += 2
            a = a[::-1]
        except ZeroDivisionError:
            pass
    a.pop(0)
    for _x in unreadable():
        pass
    return a


def no_such_attribute(n, a):
    for k in range(n):
        a.append(k)
    a.nothing  # noqa: B018


def test_lists_that_names_leave() -> None:
    for a in ([2, 0.25], [1, 2], [1, 2, 3]):
        check_whatever_leaves(rebound_within_a_try, [(4, a), (1, a)])
    check_whatever_leaves(no_such_attribute, [(3, [1, 2]), (0, [])])
