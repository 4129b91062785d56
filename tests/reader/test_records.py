"""Lists of several types in other containers: records, which have more than one name."""

from __future__ import annotations

import heapq

import numpy as np

from .support import Case, check, each, exact, rarely


def clusters(xs, radius):
    found = []
    for x in xs:
        best = -1
        for i, c in enumerate(found):
            if (c[0] - x) ** 2 < radius:
                best = i
        if best < 0:
            found.append([x, 1])
        else:
            c = found[best]
            c[1] += 1
            c[0] += (x - c[0]) / c[1]
    return found


def one_object(xs):
    rows = []
    for x in xs:
        rows.append([x, 0])  # noqa: PERF401
    first = rows[0]
    first[1] = 7
    return rows, first is rows[0], first, rows[0] is rows[1]


def in_dicts(xs):
    sums = {}
    for x in xs:
        k = int(abs(x) * 2)
        if k in sums:
            e = sums[k]
            e[0] += x
            e[1] += 1
        else:
            sums[k] = [x, 1]
    return sums


def marked_in_a_heap(xs):
    heap, entries = [], []
    for i in range(len(xs)):
        e = [float(xs[i]), i, False]
        entries.append(e)
        heapq.heappush(heap, e)
    for i in range(0, len(xs), 3):
        entries[i][2] = True
    order = []
    while heap:
        _, i, gone = heapq.heappop(heap)
        if not gone:
            order.append(i)
    return order


def with_arrays(xs):
    rows = []
    for x in xs:
        rows.append([np.full(3, x), 0, x])  # noqa: PERF401
    for row in rows:
        row[0] = row[0] * 2
        row[0][0] = 9
        row[1] += 1
    return rows


class Counter:
    def __init__(self, n):
        self.record = [n, 1.5]

    def bump(self):
        self.record[0] += 1
        return self.record


def as_attributes(xs):
    counters = [Counter(i) for i in range(4)]
    for x in xs:
        record = counters[int(abs(x)) % 4].bump()
        record[1] += x
    return [c.record for c in counters], counters[0].record is counters[0].record


class Holder:
    def __init__(self, record):
        self.record = record


def given_to_objects(xs):
    rows = []
    for x in xs:
        rows.append([x, 0])  # noqa: PERF401
    holders = [Holder(row) for row in rows]
    for h in holders:
        h.record[1] += 2
    return rows, holders[0].record is rows[0]


def of_a_type_that_grows(xs):
    rows = []
    for _ in xs:
        rows.append([0, None])  # noqa: PERF401
    for i, x in enumerate(xs):
        rows[i][0] += x
        if x > 0:
            rows[i][1] = i
    return rows


def in_one_another(xs):
    rows = []
    for i, x in enumerate(xs):
        rows.append([x, [i, 0.5]])
    for row in rows:
        row[1][0] += 1
        row[1][1] += row[0]
    inner = rows[3][1]
    inner[0] = -1
    return rows, inner is rows[3][1]


def of_two_places(xs):
    rows = []
    for x in xs:
        if x > 0:
            rows.append([x, 1])
        else:
            rows.append([x, 2])
    for row in rows:
        row[1] *= 3
    return rows


def halves(xs):
    """Items that are integers at one place, and of one kind or another at the next."""
    todo, found = [[0, len(xs), 0.0]], []
    while todo:
        low, high, s = todo.pop()
        if high - low < 2:
            found.append([low, s])
            continue
        mid = (low + high) // 2
        todo.append([low, mid, s + 1])
        todo.append([mid, high, s + xs[mid]])
    return found


def sorted_by_a_key(xs):
    rows = [[x, int(k)] for k, x in enumerate(xs)]
    rows.sort(key=lambda row: -row[0])
    rows[0][1] += 100
    greatest = max(rows, key=lambda row: row[1])
    greatest[0] = 0.0
    total = 0.0
    for x, k in rows:
        total += x * k
    return rows, total, len(greatest), sum(rows[1]), [row[1] for row in rows], rows[2] == [1.5, 3]


def through_a_function(xs):
    def touched(row, k):
        row[1] += k
        return row

    rows = []
    for x in xs:
        rows.append([x, 0])  # noqa: PERF401
    for i in range(len(rows)):
        rows[i] = touched(rows[(i * 7) % len(rows)], i)
    return rows


def several_times(xs):
    rows = [[0, 1.0]] * 5
    for i, x in enumerate(xs):
        rows[i % 5][0] += 1
        rows[i % 5][1] += x
    return rows, rows[0] is rows[4]


def that_grow(xs):
    rows = []
    for x in xs:
        rows.append([x, 0])  # noqa: PERF401
    for row in rows:
        row.append(5)
    return rows


def of_two_lengths(xs):
    rows = []
    for x in xs:
        if x > 0:
            rows.append([x, 1])
        else:
            rows.append([x, 2, 3.0])
    for row in rows:
        row[1] *= 3
    return rows


def run_lengths(xs):
    runs = []
    for x in xs:
        s = bool(x > 0)
        if runs and runs[-1][0] == s:
            runs[-1][1] += 1
        else:
            runs.append([s, 1])
    return runs, max(runs, key=lambda run: run[1])


def left_in_the_middle(xs):
    rows = []
    try:
        for i, x in enumerate(xs):
            rows.append([x, i])
            c = rows[i // 2]
            c[1] += 1
            if i == 30:
                rows[400][0] = 1
            c[0] -= 1
    except IndexError:
        c[1] += 1000
    return rows, c is rows[15]


def _xs(seed, n=50):
    return np.random.default_rng(seed).standard_normal(n)


def _calls(*more):
    return [(_xs(seed), *more) for seed in range(3)]


CASES: list[Case] = [
    exact(clusters, *_calls(0.3)),
    exact(one_object, *_calls()),
    exact(in_dicts, *_calls()),
    exact(marked_in_a_heap, *_calls()),
    exact(with_arrays, *_calls()),
    exact(as_attributes, *_calls()),
    exact(given_to_objects, *_calls()),
    exact(in_one_another, *_calls()),
    exact(halves, *_calls()),
    exact(sorted_by_a_key, *_calls()),
    exact(of_two_lengths, *_calls()),
    exact(left_in_the_middle, *_calls()),
    *rarely(
        exact(of_a_type_that_grows, *_calls()),
        exact(of_two_places, *_calls()),
        exact(through_a_function, *_calls()),
        exact(several_times, *_calls()),
        exact(that_grow, *_calls()),
        exact(run_lengths, *_calls()),
    ),
]


@each(CASES)
def test_the_same_as_in_python(c):
    check(c)
