"""Small arrays that iterations make: the memory of one that is given back is the next one's."""

from __future__ import annotations

import numpy as np

import np_compile
from np_compile.reader import region

from .support import Case, check, check_call, each, exact, whole

RNG = np.random.default_rng(7)
SEEN: list = []
SQUARE = RNG.standard_normal((12, 12))


def rotates(a):
    """Four of one size in each iteration."""
    a = a.copy()
    for p in range(len(a) - 1):
        for q in range(p + 1, len(a)):
            c, s = a[p, q], a[q, p]
            row_p, row_q = a[p].copy(), a[q].copy()
            a[p] = c * row_p - s * row_q
            a[q] = s * row_p + c * row_q
            column_p, column_q = a[:, p].copy(), a[:, q].copy()
            a[:, p] = c * column_p - s * column_q
            a[:, q] = s * column_p + c * column_q
            a /= np.abs(a).max()
    return a


def of_many_sizes(x, n):
    """More than are kept, which grow and shrink: old elements are not seen in new ones."""
    total = np.zeros(n)
    for k in range(1, n):
        a, b, c = np.zeros(k), np.zeros(n - k), np.ones(2 * k, np.float32)
        d, e, f = np.zeros((k, 2)), np.zeros(n, np.int8), np.empty(n - k)
        f[:] = x[k:n]
        a += x[:k]
        b += f[::-1]
        d[:, 0] += a
        e[k] += k
        total[:k] += a + c[:k] + d[:, 1] + e[:k]
        total[k:] += b - e[k:]
    return total


def seen(x, k):
    """Python has an array for a while, or keeps it, or changes what it is."""
    if k == 2:
        SEEN.append(x)
    if k == 4:
        x.shape = x.size
    if k == 5:
        x.flags.writeable = False
    return x.sum()


def of_large_ones(x, n, look):
    """NumPy's own memory: of 16 kB and more."""
    total = 0.0
    for k in range(n):
        a, b = np.zeros((50, 60)), np.zeros((3000, 1))
        a[: len(x), : len(x)] += x[:, : len(x)]
        b[k] += a[1, 1]
        c = a * 2.0 + b[: a.shape[0]]
        total += look(c, k) + c[3, 4] + b.sum() + a.sum()
        d = np.zeros((50, 60), np.int64)
        d[k] += k
        total += d.sum()
    return total, d, c


def kept_ones_stay(x, n):
    """What a list, a name or the result has is not given back."""
    rows, last = [], x.copy()
    for k in range(n):
        row = x + k
        last = last + row
        if k % 3 == 0:
            rows.append(row)
            rows.append(last)
    return rows, last, row


def raises_amid(x, places):
    out = []
    for k in range(len(places)):
        row = x * k
        other = row + x
        out.append(other)
        row[places[k]] = 7.0
        other[0] = row.sum()
    return out


def by_threads(x, y):
    for i in range(len(x)):
        row = x[i].copy()
        row[0] = row[-1]
        for _ in range(20):
            row = np.sqrt(row * row + 1.0)
        y[i] = row.sum()


def calls_itself(x, depth):
    mine = x + depth
    if depth == 0:
        return mine
    below = calls_itself(mine * 0.5, depth - 1)
    other = below + mine
    return other - calls_itself(other * 0.25, depth - 1)


CASES = [
    exact(rotates, (SQUARE,), (SQUARE[:9, :9],)),
    exact(of_many_sizes, (SQUARE[0], 12), (RNG.standard_normal(700), 700)),
    exact(of_large_ones, (SQUARE, 6, seen), (RNG.standard_normal((50, 60)), 9, seen)),
    exact(kept_ones_stay, (SQUARE[0], 20), (SQUARE[:, 0], 1), (np.arange(9), 7)),
    exact(raises_amid, (SQUARE[0], np.array([1, 2, 11, 3])), (SQUARE[0], np.array([1, 2, 12, 3]))),
    exact(by_threads, (RNG.standard_normal((3000, 40)), np.zeros(3000)),
          (RNG.standard_normal((30, 2500)), np.zeros(30))),
    exact(calls_itself, (SQUARE[0], 4), (SQUARE[:, 3], 0)),
]  # fmt: skip


@each(CASES)
def test_arrays_of_iterations(c: Case) -> None:
    check(c, rounds=3)


def test_calls_leave_none_behind(monkeypatch) -> None:
    """They are given back when a call ends, whichever way."""
    made: list = []

    class Noted(region._Call):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(region, "_Call", Noted)
    with whole():
        fast = np_compile.compile(raises_amid)
        for places in ([1, 2, 3], [1, 99, 3]):
            check_call(fast, raises_amid, (SQUARE[0], np.array(places)), 0)
    assert made
    assert not any(x for call in made for x in call.runtime.spares)
