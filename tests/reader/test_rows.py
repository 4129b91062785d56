"""Innermost loops go along rows by pointers that are made before them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from .support import case, check, check_whatever_leaves, exact


def distance(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    d[:, 0] = np.arange(len(a) + 1)
    d[0, :] = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                d[i, j] = d[i - 1, j - 1]
            else:
                d[i, j] = 1 + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d


def words(n, m):
    rng = np.random.default_rng(n)
    return rng.integers(0, 4, n).astype("u1"), rng.integers(0, 4, m).astype("u1")


def sweep(x, y, n):
    """Rows of several arrays and axes, forwards and backwards, with offsets."""
    rows, columns = x.shape[1:]
    for k in range(1, n):
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                x[k, i, j] += 0.5 * x[k - 1, i, j] - x[k, i - 1, j + 1] + y[i, j]
            for j in range(columns - 2, -1, -1):
                y[i, j] = x[k, i, j] - 0.25 * y[i, j + 1] + y[i - 1, 2 * (j // 2)]
        for i in range(1, rows):
            x[k, i, 0] = x[k, i - 1, 0] + y[i, k % columns]
    return x, y


def swapped(x, y, n):
    """Whose rows they are changes from iteration to iteration."""
    for k in range(n):
        row, other = x[k % len(x)], y
        for i in range(1, len(x)):
            for j in range(1, x.shape[1]):
                x[i, j] = x[i, j - 1] + row[j] - other[i - 1, j]
        x, y = y, x
    return x, y


def beyond(x, n):
    for i in range(n):
        for j in range(n):
            x[i, j] = x[i - 1, j] + x[i, j - 1] + 1
    return x


def transposed(m, n):
    """Two views that begin at one element."""
    t = m.T
    for i in range(n):
        for j in range(n):
            t[i, j] = m[i, j] + t[j, i] + 1
        for j in range(1, n):
            t[i, j] = m[i, j - 1] + 2
    return m


def grids(*shapes):
    return [np.random.default_rng(sum(s)).integers(-4, 5, s).astype("f8") for s in shapes]


def test_rows_of_a_table() -> None:
    fast = check(exact(distance, *(words(n, m) for n, m in ((0, 3), (1, 1), (9, 14), (30, 20)))))
    row = re.compile(r"i64 \*const p_\d+ = p_\d+ \+ \(")
    assert any(len(row.findall(text)) == 2 for text in fast._reading.texts())


def test_rows_of_views_with_other_strides() -> None:
    (x,) = grids((14, 14))
    check(exact(transposed, (x, 14), (x[:, ::-1], 14), (x, 1)))


@pytest.mark.parametrize("back", [1, -1])
def test_rows_of_several_arrays(back) -> None:
    x, y = grids((4, 12, 15), (12, 15))
    check(exact(sweep, (x[:, ::back], y[:, ::back], 4), (x[..., ::2], y[..., 1::2], 3)))
    check(case(swapped, (*grids((12, 12), (12, 12)), 5), (*grids((9, 20), (9, 20)), 4)))


def test_an_index_beyond_a_row_raises_where_it_does_in_numpy() -> None:
    (x,) = grids((10, 12))
    check_whatever_leaves(beyond, [(x, 10), (x, 11), (x, 13)])


def forces(x, a):
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            d = x[j] - x[i]
            a[i] += d
            a[j] -= d
            a[i] *= 0.5
    return a


def own_row_too(x, a):
    """The row is among those that the loop goes along."""
    for i in range(len(x)):
        for j in range(len(x)):
            a[i] += x[j] * a[j, 0]
    return a


def element_too(x, a):
    for i in range(len(x)):
        for j in range(len(x)):
            a[i] += x[j]
            a[i, 1] *= 0.5
    return a


def by_another_name(x, a):
    for i in range(len(x)):
        row = a[i]
        for j in range(len(x)):
            a[i] += x[j]
            row *= 0.5
            a[i] -= x[j] / 3
    return a


def reversed_too(x, a):
    for i in range(len(x)):
        for j in range(len(x)):
            a[i] += x[j]
            a[i, ::-1] *= x[j]
    return a


def by_a_sum(x, a):
    for i in range(len(x)):
        for j in range(len(x)):
            m = i + 1
            a[i] += x[j]
            a[m - 1] *= 0.5
    return a


def to_a_caller(x, a, at):
    for j in range(len(x)):
        a[at] += x[at] * x[j]
        if j == 7:
            break
    for j in range(len(x)):
        a[at] -= x[j]
    return a


def leaving(x, a, n):
    for i in range(2):
        for j in range(n):
            a[i] += x[i] + x[j]
    return a


def counts(x, a):
    for i in range(len(x)):
        for j in range(i):
            a[i] += x[j]
        for j in range(len(x)):
            if x[j, 0] > x[i, 1]:
                continue
            a[i] -= x[i]
    return a


def parts(x, a):
    """Parts of one row."""
    for i in range(len(x)):
        for j in range(len(x)):
            a[i, :2] += x[j, 1:]
            a[i, 2:] -= x[j, :1]
            a[i, 1:] *= 0.5
    return a


@pytest.mark.parametrize(("f", "stored"), [
    (forces, True), (own_row_too, False), (element_too, False), (by_another_name, False),
    (reversed_too, False), (by_a_sum, False), (counts, True), (parts, False),
])  # fmt: skip
def test_a_row_that_stays_the_same_is_in_c_variables(f, stored) -> None:
    calls = [grids((n, 3), (n, 3)) for n in (12, 33)]
    if f is counts:
        calls += [[x.astype(t) for x in calls[0]] for t in ("i4", "f4")]
    fast = check(exact(f, *map(tuple, calls)))
    stores = re.compile(r"if \(there_\d+\) \{ p_\d+\[0\] = row_\d+\[0\]; .*\}$", re.M)
    assert all(bool(stores.search(text)) == stored for text in fast._reading.texts())


def test_a_row_is_stored_where_a_loop_is_left() -> None:
    x, a = grids((12, 3), (12, 3))
    calls = [(x, a, 12), (x, a, 14), (x, a[:1], 12), (x[:1], a, 3), (x, a, 0)]
    check_whatever_leaves(leaving, calls)
    check_whatever_leaves(to_a_caller, [(x, a, 3), (x, a, -2), (x, a, 12), (x, a[:10], 10)])
