"""Elements that iterations hand on, and checks of indices that are made before the loop."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile
from np_compile.tools.inspect import inspect

from .support import Case, check, check_whatever_leaves, each, exact, rarely, whole


def text_of(f, *args):
    with whole():
        return "\n".join(x.output for x in inspect(np_compile.compile(f))(*args))


def rows(y, start, column, value, x):
    for i in range(len(y)):
        for k in range(start[i], start[i + 1]):
            y[i] += value[k] * x[column[k]]


def recurrence(a, b):
    for i in range(1, len(a)):
        a[i] = a[i - 1] * 0.5 + b[i]


def backwards(a, b):
    for i in range(len(a) - 2, -1, -1):
        a[i] = (b[i] - a[i + 1]) / 3


def by_threes(a):
    for i in range(3, len(a), 3):
        a[i] = a[i - 3] + 1


def fibonacci(a):
    for i in range(2, len(a)):
        a[i] = (a[i - 1] + a[i - 2]) % 1000


def far(a):
    for i in range(4, len(a)):
        a[i] = a[i - 4] + a[i - 2]


def only_the_second(a):
    for i in range(2, len(a)):
        a[i] = a[i - 2] * 2 + i


def too_far(a):
    for i in range(5, len(a)):
        a[i] = a[i - 5] + a[i]


def wraps(a):
    for i in range(len(a)):
        a[i] = a[i - 1] + 1


def wraps_two(a):
    for i in range(len(a)):
        a[i] = a[i - 2] + a[i - 1]


def beyond(a):
    for i in range(len(a)):
        a[i] = a[i + 1] + a[i - 1]


def outside(a, b, n):
    for i in range(n):
        a[i] = a[i - 1] + b[i]


def shifted(a, b, s):
    total = 0.0
    for i in range(len(a)):
        total += b[i + s]
        a[i] = total
    return total


def both_ways(a, b):
    for i in range(1, len(a)):
        if b[i] > 0:
            a[i] = a[i - 1] + b[i]
        else:
            a[i] = 0.0


def one_way(a, b):
    for i in range(1, len(a)):
        if b[i] > 0:
            a[i] = a[i - 1] + b[i]


def three_ways(a, b):
    for i in range(1, len(a)):
        if b[i] > 0.5:
            a[i] = a[i - 1] + b[i]
        elif b[i] > 0:
            a[i] = a[i - 1]
        else:
            a[i] = -a[i - 1]


def three_ways_one_open(a, b):
    for i in range(1, len(a)):
        if b[i] > 0.5:
            a[i] = a[i - 1] + b[i]
        elif b[i] > 0:
            a[i] = a[i - 1] * 2


def continues(a, b):
    for i in range(1, len(a)):
        if b[i] < 0:
            continue
        a[i] = a[i - 1] + b[i]


def continues_after(a, b):
    for i in range(1, len(a)):
        a[i] = a[i - 1] + b[i]
        if b[i] < 0:
            continue
        a[i] = a[i] * 2 - a[i - 1]


def breaks(a, b):
    for i in range(1, len(a)):
        if b[i] < -1:
            break
        a[i] = a[i - 1] + b[i]
    return i


def twice(a):
    for i in range(1, len(a)):
        a[i] += a[i - 1]
        a[i] *= a[i - 1]


def ahead(a):
    for i in range(1, len(a) - 1):
        a[i + 1] = a[i] + 1
        a[i] = a[i - 1] * 2


def other_element(a):
    for i in range(1, len(a)):
        a[i] = a[i - 1] + 1
        a[0] = i


def other_view(a):
    b = a[1:]
    for i in range(1, len(a) - 1):
        a[i] = a[i - 1] + 1
        b[i] = 7.0


def by_data(a, where):
    for i in range(1, len(a)):
        a[i] = a[i - 1] + 1
        a[where[i]] = -1.0


def swapped(a, b):
    for i in range(1, len(a)):
        a[i] = a[i - 1] + 1
        a, b = b, a


def moving(a):
    j = 0
    for i in range(1, len(a)):
        a[j] = a[j - 1] + i
        j = (j + 2) % len(a)


def grid(a):
    n, m = a.shape
    for i in range(1, n):
        for j in range(1, m):
            a[i, j] = a[i, j - 1] + a[i - 1, j]


def grid_of_rows(a):
    for i in range(1, len(a)):
        row = a[i]
        for j in range(1, len(row)):
            row[j] = row[j - 1] + a[i - 1, j]


def column(a):
    for j in range(a.shape[1]):
        for i in range(1, a.shape[0]):
            a[i, j] += a[i - 1, j]


def sums(out, a):
    for i in range(a.shape[0]):
        out[i] = 0
        for j in range(a.shape[1]):
            out[i] += a[i, j]


def sums_of_some(out, a):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 0:
                out[i] += a[i, j]
                out[i] *= 2


def product(c, a, b):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def quotients(out, a, b):
    """It leaves amid a row."""
    for i in range(len(out)):
        for j in range(len(a)):
            out[i] += int(a[j]) // int(b[j])
            out[i] *= 2


def also_read(out, a):
    """The element is read in another way too."""
    for i in range(1, len(a)):
        for j in range(len(a)):
            out[i] += a[j] + out[j]


def own_view(x):
    y = x[1:]
    for i in range(len(x)):
        for j in range(len(y)):
            x[i] += y[j] * 0.5


def two_elements(out, a):
    for j in range(len(a)):
        out[0] += a[j]
        out[1] -= out[0] * a[j]


def seen_by_numpy(out, a):
    for i in range(len(out)):
        for j in range(3):
            out[i] += a[i] * j + np.unique(out)[0]


def until(out, a):
    for i in range(len(a)):
        for j in range(len(a)):
            out[i] += a[j]
            if a[j] > 1:
                break


def never_or_always(out, a, n):
    for i in range(len(out)):
        for j in range(n):
            out[i] += a[j]


def stops_at_zero(a, b):
    for i in range(1, len(a)):
        a[i] = a[i - 1] + int(b[i]) // int(b[i - 1])


def _push(x, b, i):
    x[i] = x[i - 1] + b[i]


def in_a_function(a, b):
    for i in range(1, len(a)):
        _push(a, b, i)


def lines(starts, ends, out):
    for k in range(len(starts)):
        for i in range(starts[k], ends[k]):
            out[i] = out[i - 1] + k


def steps_of_two(starts, ends, a, out):
    for k in range(len(starts)):
        for i in range(starts[k], ends[k], 2):
            out[k] += a[i]


def down(starts, ends, a, out):
    for k in range(len(starts)):
        for i in range(starts[k], ends[k], -1):
            out[k] -= a[i]


def diffused(a):
    """Each store is made in some iterations, or rows, only."""
    n, m = a.shape
    for y in range(n):
        for x in range(m):
            old = a[y, x]
            a[y, x] = 1.0 if old > 0.5 else 0.0
            error = old - a[y, x]
            if x + 1 < m:
                a[y, x + 1] += error * 0.5
            if y + 1 < n:
                if x > 0:
                    a[y + 1, x - 1] += error * 0.125
                a[y + 1, x] += error * 0.25
                if x + 1 < m:
                    a[y + 1, x + 1] += error * 0.125


def stored_before_it_is_read(a, b):
    """What the iteration before has stored is gone."""
    for i in range(1, len(a) - 1):
        a[i] = b[i]
        if b[i] > 0:
            a[i + 1] = a[i] * 2 + a[i - 1]


def stored_between(a, b):
    """Two iterations before something is stored, and one before something else."""
    for i in range(2, len(a) - 2):
        if b[i] > 0:
            a[i + 2] = a[i] + 1
        a[i + 1] = b[i] - a[i - 1]


def stored_ahead(a, b):
    for i in range(1, len(a) - 2):
        if b[i] > 0:
            a[i] = a[i - 1] + b[i]
        if b[i + 1] > 0:
            a[i + 2] = b[i] * a[i]


def odd_and_even(a, b):
    for i in range(1, len(a) // 2):
        if b[i] > 0:
            a[2 * i] = a[2 * i - 2] + b[i]
        a[2 * i + 1] = a[2 * i - 1] - a[2 * i]


def along_two_axes(a):
    for i in range(1, len(a) - 1):
        if a[i, i] > 0:
            a[i, i] += a[i - 1, i - 1]
        a[i + 1, i] = a[i, i]
        a[i + 1, i + 1] -= a[i, i] * 0.5


def sorted_by_swaps(a):
    for n in range(len(a), 1, -1):
        for i in range(n - 1):
            if a[i] > a[i + 1]:
                a[i], a[i + 1] = a[i + 1], a[i]


def some_of(a, b, n):
    """It may leave where an element is stored that is not there."""
    for i in range(1, n):
        if b[i - 1] > 0:
            a[i] = a[i - 1] + b[i - 1]


def two_by_turns(out, a):
    for j in range(len(a)):
        if a[j] > 0:
            out[0] += a[j]
        else:
            out[1] -= a[j] * out[0]


RNG = np.random.default_rng(3)


def _lengths(make):
    return [make(n) for n in (0, 1, 2, 3, 5, 9, 10, 33)]


def _one(n):
    return (RNG.standard_normal(n),)


def _two(n):
    return RNG.standard_normal(n), RNG.standard_normal(n)


def _sparse(n):
    start = np.concatenate([[0], np.cumsum(RNG.integers(0, 4, n))])
    count = int(start[-1])
    return (np.zeros(n), start, RNG.integers(-n, n, count), RNG.standard_normal(count),
            RNG.standard_normal(n))  # fmt: skip


def _in(dtype):
    return lambda n: (RNG.integers(0, 2 if dtype == "bool" else 100, n).astype(dtype),)


def _square(n):
    return (RNG.standard_normal((n, n)),)


_FAR_OUT = (1 << 62) + 5
_BOUNDS = [
    (np.array(starts), np.array(ends), np.arange(12.0), np.zeros(len(starts)))
    for starts, ends in (
        ([0, 3, 11], [12, 3, 12]), ([-5, 2], [5, 4]), ([0, -12], [1, 12]), ([0, -13, 1], [5, 2, 3]),
        ([0, 4], [4, 13]), ([5, 3], [2, 3]), ([11, 4], [-1, -14]), ([12], [3]), ([0], [0]),
        ([0, _FAR_OUT], [3, _FAR_OUT - 5]), ([0, -_FAR_OUT], [3, -_FAR_OUT - 3]),
        ([0, -_FAR_OUT], [3, _FAR_OUT]),
    )
]  # fmt: skip

CASES = [
    exact(rows, *_lengths(_sparse)),
    exact(rows, (np.zeros(2), np.array([0, 2, 5]), np.array([0, 1, 2, 3, 0]), np.ones(4),
                 np.ones(3))),
    exact(rows, (np.zeros(2), np.array([0, 2, 5]), np.array([0, 1, 2, 0, 0]), np.ones(4),
                 np.ones(3))),
    exact(rows, (np.zeros(2), np.array([0, -2, 3]), np.array([0, 1, 2, 0, 0]), np.ones(4),
                 np.ones(3))),
    *(exact(f, *_lengths(_two)) for f in (
        recurrence, backwards, both_ways, one_way, three_ways, three_ways_one_open, continues,
        continues_after, swapped, in_a_function, stored_before_it_is_read, stored_between,
        stored_ahead, odd_and_even)),
    *(exact(f, *_lengths(_square)) for f in (diffused, along_two_axes)),
    exact(diffused, *[(RNG.random((n, m)),) for n, m in ((3, 30), (12, 1), (12, 2), (1, 12))]),
    exact(sorted_by_swaps, *_lengths(_one)),
    *(exact(some_of, (RNG.random(12), RNG.standard_normal(b) + at, n))
      for b, n, at in ((12, 12, 0), (12, 13, 0), (11, 12, -9), (20, 14, -9), (20, 14, 9))),
    *(exact(two_by_turns, (np.arange(float(n)), RNG.standard_normal(12))) for n in (2, 12)),
    exact(breaks, *_lengths(_two)[2:]),
    *(exact(f, *_lengths(_one)) for f in (
        by_threes, fibonacci, far, only_the_second, too_far, wraps, wraps_two, twice, ahead,
        other_element, other_view, moving)),
    *(exact(beyond, (np.arange(float(n)),)) for n in (0, 1, 2, 12)),
    *(exact(outside, (np.arange(12.0), np.ones(b), n))
      for b, n in ((12, 12), (12, 13), (11, 12), (20, 12), (12, 0), (12, -3))),
    *(exact(shifted, (np.zeros(12), np.arange(float(n)), s))
      for n, s in ((12, 0), (12, 1), (13, 1), (12, -1), (12, -12), (12, -13), (9, 0), (30, 18))),
    exact(by_data, (np.zeros(12), np.arange(12)), (np.zeros(12), np.arange(12) - 2),
          (np.zeros(12), np.arange(12) * 2)),
    *(exact(f, *_lengths(_square)) for f in (grid, grid_of_rows, column)),
    *(exact(f, *[(np.zeros(n), RNG.standard_normal((n, m))) for n in (0, 1, 12)
                 for m in (0, 1, 11)]) for f in (sums, sums_of_some)),
    exact(sums, (np.zeros(12, int), RNG.integers(0, 9, (12, 11)))),
    *rarely(exact(sums, (np.zeros(12, "f4"), RNG.standard_normal((12, 11)).astype("f4")))),
    exact(sums, (np.zeros(11), np.ones((12, 11)))),
    exact(product, *[(np.zeros((n, n)), *_square(n), *_square(n)) for n in (0, 1, 10)]),
    exact(product, (np.zeros((9, 10)), np.ones((10, 10)), np.ones((10, 10)))),
    *(exact(f, *[(np.arange(float(n)), RNG.standard_normal(n)) for n in (3, 2, 12)])
      for f in (also_read, two_elements, seen_by_numpy, until)),
    *(exact(own_view, (np.arange(float(n)),)) for n in (0, 1, 2, 12)),
    *(exact(quotients, (np.zeros(m), np.arange(float(n)), np.arange(n, 0.0, -1)))
      for m, n in ((0, 3), (2, 0), (2, 1), (1, 2), (3, 12))),
    exact(quotients, (np.zeros(3), np.array([5.0, 7.0, 1.0]), np.array([2.0, 0.0, 1.0])),
          (np.zeros(10), np.arange(11.0), np.where(np.arange(11) == 10, 0.0, 3.0))),
    exact(never_or_always, (np.ones(10), np.ones(12), 12), (np.ones(10), np.ones(12), 0),
          (np.ones(10), np.ones(12), 13), (np.ones(10), np.full(9, np.nan), 9)),
    exact(stops_at_zero, (np.zeros(12), np.array([1.0] * 6 + [0.0] + [1.0] * 5))),
    exact(wraps, *_lengths(_in("bool"))),
    *(exact(far, *_lengths(_in(dtype))) for dtype in ("int8", "float32")),
    *(exact(wraps, *_lengths(_in(dtype))) for dtype in ("uint8", "int64", "complex64")),
    *rarely(*(exact(far, *_lengths(_in(dtype)))
              for dtype in ("uint8", "int32", "int64", "complex64"))),
    *rarely(*(exact(wraps, *_lengths(_in(dtype))) for dtype in ("int8", "int32", "float32"))),
    *(exact(lines, (a, b, c)) for a, b, c, _ in _BOUNDS if b[-1] < 1 << 60),
    *(exact(f, x) for f in (steps_of_two, down) for x in _BOUNDS
      if abs(int(x[0][-1])) < 1 << 60 or abs(int(x[0][-1]) - int(x[1][-1])) < 100),
]  # fmt: skip


STORED_ONCE = re.compile(r"last_\d+ = v_\d+;\s+\}\s+p_\w+\[.*\] = last_\d+;")


def test_one_element_is_stored_once() -> None:
    """Behind the loop, and where it leaves."""
    x, y = np.ones((12, 12)), np.ones(12)
    for f, args in ((product, (x, x + 1, x + 2)), (sums, (y, x)), (quotients, (y, y + 1, y + 2))):
        text = text_of(f, *args)
        assert len(STORED_ONCE.findall(text)) == 1
        assert re.search(r"leave_\d+: ;\s+p_\w+\[.*\] = last_\d+;", text) or f is not quotients
    for f, args in ((until, (y, y + 1)), (also_read, (y, y + 1)), (own_view, (y,))):
        assert not STORED_ONCE.search(text_of(f, *args))


@each(CASES)
def test_is_as_in_python(c: Case) -> None:
    check(c)


@pytest.mark.parametrize("f", [recurrence, backwards, both_ways, three_ways, continues_after])
def test_the_last_element_is_kept(f) -> None:
    assert not re.search(READ_AHEAD, text_of(f, *_two(20)))
    assert " last_" in text_of(f, *_two(20))


READ_AHEAD = r"(?m)^ *last_\d+ = [^;]*\bp_\w+\["


@pytest.mark.parametrize("f", [one_way, three_ways_one_open, continues])
def test_an_element_that_may_not_be_stored_is_read_ahead(f) -> None:
    assert len(re.findall(READ_AHEAD, text_of(f, *_two(20)))) == 1


def test_an_element_is_kept_beside_stores_in_others() -> None:
    assert len(re.findall(READ_AHEAD, text_of(diffused, np.ones((12, 12))))) == 3
    assert len(re.findall(READ_AHEAD, text_of(odd_and_even, *_two(20)))) == 1
    assert len(re.findall(READ_AHEAD, text_of(along_two_axes, np.ones((12, 12))))) == 1


@pytest.mark.parametrize("f", [other_element, other_view, too_far, moving])
def test_an_element_that_others_may_change_is_read(f) -> None:
    assert " last_" not in text_of(f, *_one(20))


@pytest.mark.parametrize("f", [swapped, stored_before_it_is_read, stored_between])
def test_an_element_that_others_may_change_between_is_read(f) -> None:
    assert not re.search(READ_AHEAD, text_of(f, *_two(20)))


def test_checks_are_made_once() -> None:
    text = text_of(rows, *_sparse(20))
    assert " last_" in text
    assert text.count("const int out_") == 1


def of_few(x, y, n):
    """Iterations that go over a few elements; an index may leave the array."""
    total = np.zeros(3)
    for k in range(1, n):
        d = x[k] - x[k - 1]
        x[k] += 0.25 * total * d
        total += d * y[k]
        y[k] = y[k - 1] + total[1]
    return total


def test_loops_over_few_elements_are_innermost() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    check(exact(of_few, (x, y, 20), (x, y, 1)))
    check_whatever_leaves(of_few, [(x, y, 21), (x, y[:12], 20), (x[:9], y, 20)])
    body = text_of(of_few, x, y, 20).split("static i64 run(")[1]
    assert "TICK(" not in body
    assert body.count("const int out_") == 1


def by_halves(x, length, n):
    """A quotient under no name, of what changes between the loops."""
    while length <= n:
        for start in range(0, n, length):
            for k in range(length // 2):
                x[start + k + length // 2] += x[start + k]
                x[start + k] -= 0.25 * x[start + k + length // 2]
        length *= 2


def test_the_same_quotient_is_one() -> None:
    x = np.arange(40.0)
    check(exact(by_halves, (x, 2, 32), (x, 3, 40), (x, 4, 9)))
    check_whatever_leaves(by_halves, [(x, 2, 41), (x, 5, 60), (x[:0], 2, 4)])
    body = text_of(by_halves, x, 2, 32).split("static i64 run(")[1]
    assert body.count(" >> 1)") == 1


def of_other_arrays(x, c, w, m, n):
    """Elements of arrays that the loop does not change, some read only in some iterations."""
    for i in range(m):
        for k in range(1, n):
            x[k] += c[i] * x[k - 1]
            if x[k] > 3:
                x[k] -= w[2, i]
            elif k == 2 * i:
                x[k] = c[i + 1]
    return x


def of_the_same_array(x, c, w, m, n):
    for i in range(m):
        for k in range(1, n):
            x[k] += x[i] + x[k - 1]


def of_a_view(x, c, w, m, n):
    y = x[1:]
    for i in range(m):
        for k in range(1, n):
            y[k] = x[i] + y[k - 1]


def of_swapped(x, c, w, m, n):
    for i in range(m):
        for k in range(1, n):
            x[k] += c[i] + x[k - 1]
            x, c = c, x
    return x


def of_rows_that_change(x, c, w, m, n):
    for i in range(m):
        row = w[0]
        for k in range(1, n):
            x[k] = row[i] + x[k - 1]
            row = w[k % 3]


OF_OTHERS = [of_other_arrays, of_the_same_array, of_a_view, of_swapped, of_rows_that_change]
_OTHERS = np.random.default_rng(3).integers(-4, 5, (3, 12)) * 1.0


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(OF_OTHERS), st.integers(9, 12), st.integers(-1, 14), st.integers(-1, 14))
def test_elements_of_other_arrays(f, length, m, n) -> None:
    x, c, w = (a.copy() for a in (_OTHERS[0], _OTHERS[1, :length], _OTHERS))
    check_whatever_leaves(f, [(x, c, w, m, n)])


def test_elements_of_other_arrays_are_read_once() -> None:
    arguments = _OTHERS[0].copy(), _OTHERS[1].copy(), _OTHERS, 5, 11
    assert text_of(of_other_arrays, *arguments).count("f64 same_") == 3
    for f in OF_OTHERS[1:]:
        assert "f64 same_" not in text_of(f, *arguments)


# Elements that an iteration has read or stored, and reads again


def stored_and_read(a, b, c):
    for i in range(1, len(a)):
        a[i] = b[i] + a[i - 1]
        c[i] = b[i] * 2
        b[i] = a[i] - c[i]


def stored_twice(a, b):
    for i in range(len(a)):
        a[i] = b[i] * 3
        b[i] = 7
        a[i] += b[i]
        b[i] = a[i] + b[i]


def neighbours(a, k):
    for i in range(2, len(a) - 2):
        a[i] = a[i + 1] + 1
        a[i + 1] = a[i] + a[i - k]  # which is one or the other
        a[i - k] = a[i] + a[i + 1]


def on_one_way(a, b):
    for i in range(len(a)):
        a[i] = b[i]
        if b[i] > 2:
            a[i] = b[i] * 10
        elif b[i] < -2:
            b[i] = -a[i]
        b[i] = a[i] + b[i]


def read_on_one_way(a, b):
    s = 0.0
    for i in range(len(a)):
        if a[i] > 0:
            s += b[i]
            b[i] = s
        s += b[i]
        a[i] = s
    return s


def in_few(a, b):
    for i in range(len(a)):
        b[i] = a[i]
        for j in range(3):
            a[i] = a[i] + b[(i + j) % len(b)]
            b[i] = a[i] / 2
        b[i] += a[i]


def two_names(a, b):
    u, v = a, b
    for _ in range(3):
        for i in range(len(u)):
            u[i] = v[i] + 1
            v[i] = u[i] * 0.5
            u[i] = v[i] + u[i]
        u, v = v, u


def views(a):
    odd, all_, back = a[1::2], a[1:], a[::-1]
    for i in range(len(odd) - 1):
        odd[i] = all_[2 * i] + 1
        all_[2 * i] = odd[i] * 2
        odd[i] += all_[2 * i]
        back[i] = odd[i] + 1
        odd[i] += back[i]


def whole_rows(m, v):
    for i in range(len(v)):
        v[i] = m[i, 0] + 1
        m[i] = v[i] * 2
        v[i] = m[i, 0] + v[i]


def by_index(a, at):
    for i in range(len(at)):
        j = at[i]
        a[j] = a[i] + 1
        a[i] = a[j] + a[i]
        a[j] += a[i]


R = np.random.default_rng(5)

AGAIN = [
    Case(stored_and_read, [tuple(R.random((3, 9)))]),
    Case(stored_twice, [tuple(R.random((2, 9)))]),
    Case(neighbours, [(R.random(12), k) for k in (-1, 0, 1, 2)]),
    Case(on_one_way, [tuple(8 * R.random((2, 30)) - 4)]),
    Case(read_on_one_way, [tuple(R.random((2, 19)) - 0.5)]),
    Case(in_few, [tuple(R.random((2, 10)))]),
    Case(two_names, [tuple(R.random((2, 9)))]),
    Case(views, [(R.random(24),)]),
    Case(whole_rows, [(R.random((15, 3)), R.random(15))]),
    Case(by_index, [(R.random(12), R.integers(0, 12, 12))]),
]


@each(AGAIN)
def test_elements_that_an_iteration_reads_again(c):
    check(c)


def test_a_stored_element_is_not_read_again():
    text = text_of(stored_and_read, *(np.ones(20) for _ in range(3)))
    body = text[text.index("b[i] = a[i] - c[i]") :]
    assert not re.search(r"const f64 v_\w+ = p_\w+\[", body[: body.index("}")])


def sift(key, size, k):
    i = 0
    while 2 * i + 1 < size:
        c = 2 * i + 1
        if c + 1 < size and key[c + 1] < key[c]:
            c += 1
        if key[c] >= k:
            break
        key[i] = key[c]
        i = c
    key[i] = k


def test_an_integer_that_was_an_index_does_not_overflow():
    keys = np.sort(np.random.default_rng(2).random(20))
    check(Case(sift, [(keys, 20, 0.7), (keys, 19, 2.0), (keys, 0, 0.5), (keys, 30, 2.0)]))
    assert "_overflow(2L" not in text_of(sift, keys, 20, 0.7)


def doubles(a, n):
    i, steps = 1, 0
    while steps < n:
        i *= 2
        steps += 1
        if i < len(a):
            a[i] = i
    return i


def test_an_integer_that_was_one_once_may():
    check_whatever_leaves(doubles, [(np.zeros(20), 5), (np.zeros(20), 63), (np.zeros(20), 70)])


def down_to_one(x):
    for i in range(len(x)):
        k = x[i]
        while k > 1:
            if k % 7 == 5:
                break
            k = k // 3
        x[i] = k
    return x


def test_an_innermost_while_loop_counts_nothing():
    """It runs in strips, and a `break` goes out of these as well."""
    x = np.array([5, 12, 3**30, 3**39, 81, 0])
    text = text_of(down_to_one, x.copy())
    loop = text[text.index("/* while k > 1: */") :]
    body = loop[: loop.index("is_wanted(rt)")]
    assert "TICK(" not in body
    assert body.count("goto done_") == 2
    check(exact(down_to_one, (x,)), rounds=3)
