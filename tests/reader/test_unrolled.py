"""Innermost loops whose iterations come one after the other: some are written out."""

from __future__ import annotations

import numpy as np

import np_compile

from .support import check_whatever_leaves, each, exact, whole


def counted(x, counts):
    for v in x:
        counts[v] += 1


def generated(n, state):
    out = np.empty(n)
    for k in range(n):
        state = (1664525 * state + 1013904223) % 2**32
        out[k] = state / 2**32
    return out, state


def by_rows(starts, at, x):
    y = np.zeros(len(starts) - 1)
    for row in range(len(y)):
        for k in range(starts[row], starts[row + 1]):
            y[row] += x[at[k]]
    return y


def by_lengths(lengths, x):
    """How many iterations there are is an element, of fewer bits."""
    sums = np.zeros(len(lengths))
    for row in range(len(lengths)):
        total = 0.0
        for k in range(lengths[row]):
            total = 0.5 * total + x[k]
        sums[row] = total
    return sums


def by_slices(starts, at, counts):
    for row in range(len(starts) - 1):
        for i in at[starts[row] : starts[row + 1]]:
            counts[i] += 1


def triangle(x):
    for i in range(len(x)):
        for k in range(i + 1, len(x)):
            x[k] -= 0.5 * x[k - 1]


def apart(x, y):
    for k in range(len(x)):
        y[k] = 2 * x[k] + 1


AT = np.array([3, 1, -4, 1, 5, 9, 2, 6, 5, 3, 5])
LONG = np.arange(70_003) % 12
OUT = np.where(np.arange(70_003) == 70_001, 12, LONG)  # behind the first look at the clock
STARTS = np.array([0, 0, 1, 3, 3, 8, 9, 10, 10, 10, 11])
CALLS = [
    exact(counted, (AT, np.zeros(10, int)), (LONG, np.zeros(12, int)), (AT[:0], np.zeros(9, int))),
    exact(generated, *((n, 7) for n in (0, 1, 3, 4, 5, 70_003)), (9, 2**70)),
    exact(by_rows, (STARTS, AT, np.arange(10.0)), (STARTS - 1, AT, np.arange(10.0))),
    exact(by_lengths, (AT.astype(np.int32), np.arange(9.0))),
    exact(by_slices, (STARTS, AT, np.zeros(10, int)), (STARTS - 1, AT, np.zeros(10, int))),
    exact(triangle, (np.arange(12.0),), (np.arange(1.0),)),
]
LEAVE = [
    exact(counted, (LONG, np.zeros(11, int)), (OUT, np.zeros(12, int)), (AT, np.zeros(9, int))),
    exact(by_rows, (STARTS, AT, np.arange(9.0)), (STARTS + 1, AT, np.arange(10.0))),
]


@each([*CALLS, *LEAVE])
def test_calls(c) -> None:
    check_whatever_leaves(c.function, c.calls)


def is_written_out(f, *args) -> bool:
    with whole():
        text = np_compile.inspect(f)(*args)[0].output
    return "#pragma GCC unroll 4" in text


def test_what_is_written_out() -> None:
    """Short bodies whose elements or names come from the iteration before: the others are the
    compiler's to make vectors of."""
    assert is_written_out(counted, AT, np.zeros(10, int))
    assert is_written_out(generated, 20, 7)
    assert is_written_out(triangle, np.arange(12.0))
    assert not is_written_out(apart, np.arange(20.0), np.arange(20.0))


def test_what_data_say_the_length_of_is_not_written_out() -> None:
    """A processor does not know how many are left over, and that is what a few take longest."""
    assert not is_written_out(by_rows, STARTS, AT, np.arange(10.0))
    assert not is_written_out(by_lengths, AT.astype(np.int32), np.arange(9.0))
    assert not is_written_out(by_slices, STARTS, AT, np.zeros(10, int))
