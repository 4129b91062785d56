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


# Targets are assigned to from left to right, and each place is looked for when it is its turn


def place_after_name(x, n):
    i = 0
    for k in range(n):
        i, x[i] = k, i + 0.5
        i = x[i + 1] = 1
        i, (j, x[i + j]) = 0, (k, 7)
        p = (k, 2.5)
        i, x[i] = p
    return x, i, j


def place_by_item(x, n):
    for k in range(n):
        x[k], x[x[k]] = x[x[k]], x[k]
    return x


def other_object(x, n):
    for k in range(n):
        x, x[0] = x.copy(), k
    return x


def last_of_them(x, n):
    for k in range(n):
        k, x[k] = 1, k
        x[0], x[len(x) - 1] = x[len(x) - 1], x[0]
    return x


def items_of_items(rows, n):
    for k in range(n):
        i, j = k % 2, k % 3
        rows[i][j], rows[j][i] = rows[j][i], rows[i][j]
    return rows


def place_of_a_loop(x, n):
    i = 0
    for _ in range(n):
        for i, x[i] in [(1, 2.5), (2, 3.5)]:  # noqa: B007
            x[0] += 1
    return x, i


def test_targets_that_depend_on_each_other():
    places = [1, 2, 0, 3] * 3
    check(exact(place_after_name, (np.arange(12.0), 5), (np.arange(12), 5)))
    check(exact(place_by_item, (np.array(places), 9), (places, 9)))
    check(exact(other_object, (np.arange(12.0), 3)))
    check(exact(last_of_them, (np.arange(12.0), 3), (places, 3)))
    check(exact(items_of_items, ([[1, 2, 3], [4, 5, 6], [7, 8, 9]], 5)))
    check(exact(place_of_a_loop, (np.arange(12.0), 2), refused="may change"))
    check_whatever_leaves(place_after_name, [(np.arange(1.0), 2), (np.arange(3), 2)])
