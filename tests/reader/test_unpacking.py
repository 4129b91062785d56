"""Tuples of a length that data tells, `zip(*rows)`, arrays in parts, `**` of a dict."""

from __future__ import annotations

import numpy as np

from .support import Case, case, check, check_whatever_leaves, each, exact

X = (np.arange(30) * 7 % 11).astype(float)
P = np.arange(14.0).reshape(7, 2) % 5


def peaks(x):
    found = [(i, x[i]) for i in range(1, len(x) - 1) if x[i - 1] < x[i] > x[i + 1]]
    if not found:
        return np.array([]), 0
    at, value = zip(*found)  # noqa: B905
    t = 0.0
    for i in range(len(value)):
        t += value[i] * at[-1 - i]
    return np.array(at), np.array(value), at, value, t, at[1:], max(value), 3 in at, at.index(at[1])


def of_an_array(p):
    xs, ys = zip(*p)  # noqa: B905
    t = 0.0
    for i in range(len(xs)):
        t += xs[i] * ys[-1 - i]
    return t, xs, ys


def of_a_list(n):
    made = [i * i for i in range(n)]
    fixed, numbers = tuple(made), tuple(range(n))
    made.append(7)
    return fixed, numbers, len(fixed), fixed[1:], sum(fixed), made, isinstance(fixed, tuple)


def in_parts(x, k):
    t = 0.0
    parts = np.array_split(x, k)
    for i in range(len(parts)):
        t += parts[i].sum() * i
        parts[i][...] += 1
    return t, parts, x


def in_equal_parts(x, k):
    t = 0.0
    for q in np.split(x, k):
        t += q.max()
        q *= 2
    return t, x


def at_places(x, places):
    t = 0.0
    for q in np.split(x, places):
        t += q.sum() * len(q)
    return t, np.array_split(x, [1, 3])


def held_out(x, k):
    folds = np.array_split(np.arange(len(x)), k)
    errors = []
    for i in range(k):
        rest = np.concatenate([folds[j] for j in range(k) if j != i])
        errors.append(x[folds[i]].max() - x[rest].min())
    return errors


def scaled(a, b=2.0, *, c=3.0):
    return a * b - c


def by_names(x, p):
    t = 0.0
    for i in range(len(x)):
        t += scaled(x[i], **p) + scaled(a=x[i], **p)
    return t


def not_to_be_changed(n):
    rows = [(i, 2.0 * i) for i in range(n)]
    a, b = zip(*rows)  # noqa: B905
    try:
        b[0] = 3.0
    except TypeError as e:
        return a, b, str(e)
    return a, b


def as_an_index(x, n):
    at = tuple([k % 2 for k in range(n)])
    t = 0.0
    for _ in range(n):
        t += x[at]
    return t


CASES: list[Case] = [
    exact(peaks, (X,), (-X,), (X[:2],)),
    exact(of_an_array, (P,), (P[:1],)),
    exact(of_a_list, (9,), (0,)),
    exact(in_parts, (X, 4), (P, 3), (X, 1), (X[:2], 4)),
    exact(in_equal_parts, (X, 5), (X, 1)),
    exact(at_places, (X, [3, 9, 40]), (X, np.array([5, -3])), (P, np.array([2, 2]))),
    exact(held_out, (X, 3), (X, 7)),
    exact(by_names, (X, {"b": 1.5, "c": 2.0}), (X, {"c": 1.0})),
    case(as_an_index, (P, 2), refused="a tuple as an index"),
]


@each(CASES)
def test_unpacking(c: Case) -> None:
    check(c)


def test_what_raises() -> None:
    check_whatever_leaves(not_to_be_changed, [(4,), (0,)])
    check_whatever_leaves(in_equal_parts, [(X, 7), (X, 3), (X, 0)])
    check_whatever_leaves(in_parts, [(X, 0), (X, 3)])
    check_whatever_leaves(by_names, [(X, {"q": 1.0}), (X, {}), (X, {"a": 1.0}), (X, {"b": 1.0})])
    check_whatever_leaves(of_an_array, [(np.ones((4, 3)),), (P[:0],), (P,)])
