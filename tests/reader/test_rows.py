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
