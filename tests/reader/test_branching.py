"""Neighbours under conditions of their own: some versions of GCC take one for the other."""

from __future__ import annotations

import numpy as np

from .support import Case, check, each, exact


def sample(n: int, m: int) -> tuple:
    x = ((np.arange(n * m) * 7 + 15) % 19 - 6.0).reshape(n, m) / 4
    return x, x[::-1].copy(), x < 1


def whole_arrays(x, y, m):
    for _ in range(1, x.shape[0]):
        pass
    return np.where(m, x, y), np.where(x > 0, y, x * 2)


def short_loops(x, y, m):
    out = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(3):
            if m[i, j]:
                out[i, j] = x[i, j]
            else:
                out[i, j] = y[i, j]
    return out


def written_out(x, y, m):
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        a = x[i, 0] if m[i, 0] else y[i, 0]
        b = x[i, 1] if m[i, 1] else y[i, 1]
        out[i] = a - b
    return out


def pairs(x, m):
    out = np.zeros(len(x))
    for i in range(len(x) // 2):
        out[2 * i] = x[2 * i] if m[2 * i] else 0.5
        out[2 * i + 1] = x[2 * i + 1] if m[2 * i + 1] else 0.5
    return out


FLAT = sample(1, 90)
CASES = [
    exact(whole_arrays, sample(31, 3), sample(40, 2), sample(20, 5), sample(20, 12)),
    exact(short_loops, sample(31, 3), sample(40, 8), sample(20, 12)),
    exact(written_out, sample(31, 3), sample(40, 8), sample(20, 12)),
    exact(pairs, (FLAT[0][0], FLAT[2][0]), (FLAT[0][0, :10], FLAT[2][0, :10])),
]


@each(CASES)
def test_neighbours(c: Case) -> None:
    check(c)
