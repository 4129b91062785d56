"""Where arrays are true: positions, and elements under a mask, in compiled loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import np_compile

from ..support import first
from .support import calls_in_python, case, check, check_call, exact, whole

DTYPES = ["?", "i1", "i4", "i8", "u2", "f4", "f8", "c16"]


def some(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(-1, 2, shape).astype(dtype)


def places(x, n):
    found, total = [], 0
    for k in range(n):
        i = np.nonzero(x)[0]
        (j,) = np.where(x)
        for at in x.nonzero()[0]:
            total += at * (k + 1)
        found.append((i, j, np.flatnonzero(x)))
        x[k % max(len(x), 1) :] = 0
    return found, total, x.nonzero()


@pytest.mark.parametrize("dtype", first(DTYPES, "?", "i4", "f8", "c16"))
def test_places_of_one_axis(dtype) -> None:
    calls = [(some(n, dtype, n), 3) for n in (0, 1, 2, 9, 40)]
    fast = check(exact(places, *calls, (np.ones(7, dtype), 2), (some(20, dtype)[::-2], 2)))
    assert calls_in_python(fast) == []


def places_of_rows(x, n):
    found = []
    for k in range(n):
        i, j = np.nonzero(x > k)
        found.append((x[i, j], i, j))
        rows, columns = np.where(x[1:] < -k)
        for at in range(len(rows)):
            x[rows[at], columns[at]] += 1
    return found


@pytest.mark.parametrize("dtype", ["i4", "f8"])
def test_places_of_two_axes(dtype) -> None:
    calls = [(some(s, dtype, 3), 3) for s in ((0, 3), (3, 0), (1, 1), (4, 5), (6, 2))]
    check(case(places_of_rows, *calls, (some((6, 8), dtype).T[::2], 2)))


def columns_of_places(x, n):
    for _ in range(n):
        i, j = x.nonzero()
    return i, j


def test_places_are_columns_of_one_array() -> None:
    fast, x = np_compile.compile(columns_of_places), some((4, 5), "f8")
    with whole():
        for f in (columns_of_places, fast):
            i, j = f(x, 2)
            assert i.strides == j.strides == (16,)
            assert np.shares_memory(i.base, i)


def places_of_a_number(x, n):
    for _ in range(n):
        x[0] += len(np.nonzero(x[1])[0])
    return x


def test_places_of_a_number_raise() -> None:
    check(case(places_of_a_number, (np.ones(3), 2), refused="nonzero"))


def under_masks(x, m, n):
    total, parts = 0.0, []
    for k in range(n):
        near = x[m]
        total += near.sum()
        parts.append(near)
        x[m] = near * 2
        m[k % max(len(m), 1)] = not m[k % max(len(m), 1)]
    return total, parts, x


masks = st.integers(9, 70).flatmap(lambda n: hnp.arrays(np.bool_, n))


@given(masks, st.integers(1, 3), st.booleans())
def test_elements_under_a_mask(m, n, back) -> None:
    x = np.arange(1.0, len(m) + 1)
    args = (x[::-1], m[::-1].copy()[::-1], n) if back else (x, m, n)
    with whole():
        check_call(_FAST, under_masks, args, 0)


_FAST = np_compile.compile(under_masks)


def no_room_behind(x, n):
    """The last element is false: nothing may be stored behind those that are true."""
    kept = []
    for k in range(n):
        m = x > k
        kept.append((np.nonzero(m)[0], x[m], m[m]))
    return kept


def test_what_is_false_behind_the_last_true_one() -> None:
    x = np.r_[np.arange(300.0), np.zeros(100_000)]
    check(exact(no_room_behind, (x, 4), (x[::-1].copy(), 4), (np.zeros(50_000), 2)))
