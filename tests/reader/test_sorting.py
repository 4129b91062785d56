"""Lists that compiled loops sort, by keys too."""

from __future__ import annotations

import math

import numpy as np

from .support import Case, check, each, exact


def by_value(x):
    order = sorted(range(len(x)), key=lambda i: x[i])
    back = sorted(range(len(x)), key=lambda i: x[i], reverse=True)
    s = 0.0
    for k in range(len(order)):
        s = s * 0.5 + x[order[k]]
    return s, order, back


def intervals(x):
    items = []
    for i in range(len(x) - 1):
        items.append((min(x[i], x[i + 1]), max(x[i], x[i + 1]), i))  # noqa: PERF401
    items.sort(key=lambda p: p[1])
    last, chosen = -math.inf, []
    for a, b, i in items:
        if a >= last:
            chosen.append(i)
            last = b
    return chosen, items


def tuples(edges, w):
    found = []
    for i in range(len(w)):
        found.append((int(w[i]), int(edges[i, 0]), w[i]))  # noqa: PERF401
    found.sort()
    down = sorted(found, reverse=True)
    return found, down


def by_angle(points):
    c = points.mean(axis=0)

    def angle(i):
        return math.atan2(points[i, 1] - c[1], points[i, 0] - c[0])

    order = sorted(range(len(points)), key=angle)
    area = 0.0
    for k in range(len(order)):
        p, q = points[order[k - 1]], points[order[k]]
        area += p[0] * q[1] - q[0] * p[1]
    return area / 2, order


def lists_by_length(x, n):
    parts = [[] for _ in range(n)]
    for i in range(len(x)):
        parts[i * i % n].append(x[i])
    parts.sort(key=len)
    parts[0].append(-1.0)
    return parts


def most_frequent(x):
    d = {}
    for v in x:
        d[int(v)] = d.get(int(v), 0) + 1
    best = max(d, key=d.get)
    least = min(d, key=lambda k: (d[k], -k))
    pairs = sorted(d.items(), key=lambda p: p[1], reverse=True)
    return best, least, pairs, sorted(d.items()), sorted(d, key=lambda k: -d[k])


def in_turns(x, down):
    a = []
    for i in range(len(x)):
        a.append((x[i], i))
        a.sort(key=lambda p: p[0], reverse=down)
    return a


def looks_at_itself(n):
    a = [3, 1, 2]
    for k in range(n):
        a.append(k)
        a.sort(key=lambda v: a[0] + v)
    return a


def changes(x):
    seen = []

    def key(v):
        seen.append(v)
        return -v

    out = []
    for k in range(3):
        out = sorted(x[k:], key=key)
    return out, seen


def fails(x, n):
    order = []
    for k in range(2):
        order = sorted(range(n), key=lambda i: x[i] + k)
    return order


def extremes(x, n):
    out = []
    for k in range(n):
        out.append(min(range(len(x)), key=lambda i: abs(x[i] - k)))
        out.append(max(range(len(x)), key=lambda i: abs(x[i] - k)))
    return out


def of_many_kinds(x, y):
    """The first of equal ones, as the number that it is."""
    pairs, mixed, none = [], [2], []
    for k in range(len(x)):
        mixed.append(x[k])
        mixed.append(int(y[k]))
        pairs.append((int(y[k]), x[k]))
        if y[k] > 100:
            none.append(x[k])
    out = [max(mixed), min(mixed), max(none, default=-1), min(none, default=None)]
    out.append(max(none, default=0.5, key=lambda v: -v))
    return out, max(pairs), min(pairs)


def of_given(x, n):
    best = []
    for k in range(n):
        best.append((max(x), min(x), k))  # noqa: PERF401
    return best


f = np.array([0.5, -0.5, 0.0, -0.0, 2.5, 0.5, -0.5, 1e300, -1.25])
x = np.array([3, 1, 3, -5, 2, 1, 0, 2, 2])
many = np.random.default_rng(0).integers(-40, 40, 300)
nan = np.array([1.0, np.nan, 0.0])
points = np.random.default_rng(1).random((20, 2))
CASES: list[Case] = [
    exact(by_value, (f,), (many * 0.25,), (x,), (f[:0],), (nan,)),
    exact(intervals, (f,), (many * 0.25,), (f[:1],), (f[:0],)),
    exact(tuples, (points, x * 0.5), (np.zeros((300, 2)), many * 0.5)),
    exact(by_angle, (points,)),
    exact(lists_by_length, (f, 3), (many * 0.5, 17)),
    exact(most_frequent, (x,), (many,)),
    exact(in_turns, (f, True), (f, False), (many * 0.125, True)),
    exact(looks_at_itself, (3,), refused="looks at"),
    exact(changes, (f,), refused="changes"),
    exact(fails, (f, 3), (f, 30), (f, 0)),
    exact(of_many_kinds, (f, x), (f[::-1] * 4, x), (f[:1], x + 200), (f[:0], x), (nan, x)),
    exact(of_given, ([1, 2.5, 3] * 4, 3), ([1.0, 2, 2.0], 2)),
    exact(of_given, ([], 2), refused="of nothing"),
    exact(extremes, (f, 3), (many * 0.5, 9), (f[:0], 1)),
]


@each(CASES)
def test_sorting(c):
    check(c)
