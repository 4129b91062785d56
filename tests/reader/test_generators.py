"""Generators that a compiled function goes through, `any` and `all`, `finally`, `nonlocal`."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import np_compile

from .support import check, check_call, check_whatever_leaves, each, exact, refusals, whole

LIMIT = 50


def fib(limit, a=0, b=1):
    while a < limit:
        yield a
        a, b = b, a + b


def neighbours(i, j, n):
    for di in (-1, 0, 1):
        for dj in (-1, 0, 1):
            if (di or dj) and 0 <= i + di < n and 0 <= j + dj < n:
                yield i + di, j + dj


def ends_and_middle(n):
    yield -1
    for k in range(n):
        yield k
        if k > LIMIT:
            yield k * 10
    yield -2


def with_the_one_before(x):
    before = None
    for v in x:
        if before is not None:
            yield before, v
        before = v


def last_pair(x):
    count = 0
    for a, b in with_the_one_before(x):
        count += a < b
    return a, b, count


def with_names_like_the_readers(x):
    __before, total = None, 0.0
    for v in x:
        if __before is not None:
            total += v - __before
        __before = v
        __last = v * 2
    return total, __before, __last


def pairs(n):
    for k in fib(n):
        yield k, k + 1


def both(n):
    yield from fib(n)
    yield from range(n, n + 3)


def itself(n):
    if n:
        yield n
        yield from itself(n - 1)


def with_return(n):
    for k in range(n):
        if k == 3:
            return
        yield k


def without_a_value(n):
    for k in range(n):
        if k > 2:
            x = k
        yield x


def evens(n):
    total = 0
    for x in fib(n):
        if x % 2 == 0:
            total += x
    for x in both(n):
        total = total * 7 % 1013 + x
    return total, x


def life(board):
    n = len(board)
    out = np.zeros_like(board)
    for i in range(n):
        for j in range(n):
            count = 0
            for a, b in neighbours(i, j, n):
                count += board[a, b]
            out[i, j] = count == 3 or (count == 2 and board[i, j] == 1)
    return out


def ended(n, last):
    """`break` and `continue` between values."""
    seen = []
    for k in ends_and_middle(n):
        if k == 2:
            continue
        if k == last:
            break
        seen.append(k)
    else:
        seen.append(-99)
    return seen, k


def nested(n):
    total = 0
    for a in fib(n):
        for b in fib(a):
            total = total * 3 % 1009 + b
        for a2, b in pairs(n):
            if b > 10:
                break
            total += a2 * b
    return total


def gathered(n):
    return list(fib(n)), sum(fib(n)), max(fib(n)), [x * 2 for x in fib(n) if x % 2], n


def inner(n):
    step = 2

    def every(m):
        k = 0
        while k < m:
            yield k
            k += step

    total = 0
    for k in every(n):
        step = 3
        total += k
    return total


def raises(xs):
    total = 0
    for k in ends_and_middle(len(xs)):
        total += xs[k] // (k + 1)
    return total


def first_ones(xs, limit):
    """Nothing is asked for behind what decides."""
    found = []
    for k in range(len(xs)):
        found.append(any(x > limit for x in xs[k:]))
        found.append(all(x for x in xs if x != limit))
        found.append(any(1 // x > limit for x in xs))
    return found, any(a and b for a in xs for b in xs)


def at_once(n):
    total = 0
    for k in range(n):
        total += any(j > k for j in range(10**7))
        total += not all(j < k for j in range(10**7))
    return total


def finished(xs):
    done = 0
    total = 0.0
    for k in range(len(xs)):
        try:
            total += 1 / xs[k]
        except ZeroDivisionError:
            total -= 1
        else:
            total += 2
        finally:
            done += 1
            xs[k] = done
    return total, done


def finished_before_it_raises(xs):
    for k in range(len(xs)):
        try:
            xs[k] = 10 // xs[k]
        finally:
            xs[0] += 1
    return xs


def raises_at_the_end(xs):
    total = 0
    for k in range(len(xs)):
        try:
            total += k
        finally:
            total += 10 // xs[k]
    return total


def goes_by_finally(xs):
    done = 0
    for k in range(len(xs)):
        try:
            if xs[k] == 2:
                continue
            if xs[k] == 5:
                return done, k
        finally:
            done += 1
            xs[0] += 1
    return done, -1


def counted(n):
    hits = 0
    last = -1

    def note(k):
        nonlocal hits, last
        if k % 3 == 0:
            hits += 1
            last = k
        return hits

    total = 0
    for k in range(n):
        total += note(k)
        if k > 5:
            note(k + 1)
    return total, hits, last


def counted_with_error(xs):
    hits = 0

    def note(k):
        nonlocal hits
        hits += 1
        return 10 // k

    total = 0
    for k in range(len(xs)):
        total += note(xs[k]) + hits
    return total, hits


def quotients(xs, notes):
    """What it catches is its own; what runs at its end, runs where the loop ends."""
    try:
        for x in xs:
            try:
                q = 12 // x
            except ZeroDivisionError:
                notes[0] += 1
                continue
            except IndexError as e:
                raise ValueError from e
            yield q
            notes[1] += 1
    finally:
        notes[2] += 1
    notes[3] += 1


def through_quotients(xs):
    notes = [0, 0, 0, 0]
    total = 0
    for q in quotients(xs, notes):
        if q == 3:
            continue
        if q == 2:
            break
        if q == 1:
            return total, notes, q
        total += q
        total += 100 // (q - 4)
    return total, notes, -1


class Grid:
    def __init__(self, n):
        self.n, self.seen = n, 0

    def around(self, i, reach=1):
        for j in range(i - reach, i + reach + 1):
            if 0 <= j < self.n:
                self.seen += 1
                yield j


def through_methods(xs):
    grid = Grid(len(xs))
    total = 0
    for i in range(len(xs)):
        for j in grid.around(i, reach=2):
            total += xs[i] * j
        total += sum(j for j in grid.around(i))
    return total, grid.seen


@each([
    exact(through_quotients, ([1, 2, 5] * 4,), ([1, 2, 5, 6] * 4,), ([1, 5, 4, 12],)),
    exact(through_methods, ([1, 2, 5] * 4,), ([3],)),
    exact(evens, (100,), (5000,)), exact(life, ((np.arange(64).reshape(8, 8) * 7 % 3 == 0) * 1,)),
    exact(ended, (60, 55), (60, 520), (10, -2), (10, -1), (5, 77)), exact(nested, (60,), (1,)),
    exact(gathered, (200,), (3,)), exact(inner, (20,), (0,)),
    exact(first_ones, ([1, 2, 3, 4] * 3, 2), ([1.0] * 9, 5)), exact(at_once, (20,)),
    exact(counted, (20,), (0,)), exact(last_pair, (LIMIT / np.arange(1, 20),), ([1, 5, 3] * 20,)),
    exact(with_names_like_the_readers, (LIMIT / np.arange(1, 20),), ([1, 5, 3] * 20,)),
])  # fmt: skip
def test_programs(c):
    check(c)


@pytest.mark.parametrize(
    ("f", "calls"),
    [
        (raises, [([3, 4, 5] * 4,), ([1] * 70,)]),
        (first_ones, [([1, 0, 2] * 4, 0), ([0, 1] * 5, 3)]),
        (finished, [([1.0, 0.0, 2.0] * 4,), ([1.0] * 9,)]),
        (finished_before_it_raises, [([1, 2, 5] * 4,), ([1, 2, 0, 4] * 3,)]),
        (through_quotients, [([1, 0, 5] * 4,), ([1, 5, 3, 1],), ([5, 0, 6, 12],), ([0, 12, 0],)]),
        (goes_by_finally, [([1, 2, 3] * 4,), ([1, 2, 5] * 4,)]),
        (raises_at_the_end, [([1, 2, 5] * 4,), ([1, 2, 0, 4] * 3,)]),
        (counted_with_error, [([1, 2, 5] * 4,), ([1, 2, 0, 4] * 3,)]),
    ],
)
def test_what_leaves(f, calls):
    check_whatever_leaves(f, calls)


def through_itself(n):
    total = 0
    for k in itself(n):
        total += k
    return total


def through_one_that_returns(n):
    total = 0
    for k in with_return(n):
        total += k
    return total


def through_one_without_a_value(n):
    total = 0
    for k in without_a_value(n):
        total += k
    return total


def each_of(x):
    yield from x


def left_in_a_generator(x):
    total = 0
    for v in each_of(x):
        total += int(v)  # it may be too large for C
    s = 0.0
    for k in range(len(x)):
        s += x[k] * x[k]
    return s, total


def test_what_a_generator_was_given_is_no_array_of_the_loops_behind_it():
    fast = np_compile.compile(left_in_a_generator)
    with whole():
        for _ in range(3):
            check_call(fast, left_in_a_generator, (np.array([1.0, 1e300, 2.0]),), 0)
    assert not refusals(fast)


@pytest.mark.parametrize("f", [through_itself, through_one_without_a_value])
def test_what_is_not_read_is_pythons(f):
    fast = np_compile.compile(f)
    with whole():
        for n in (5, 2):
            check_call(fast, f, (n,), 0)
    assert refusals(fast)


def test_nonlocal_names_of_a_function_around_the_compiled_one():
    count = 0

    def noted(n):
        nonlocal count
        for k in range(n):
            count += k
        return count

    fast = np_compile.compile(noted)
    with whole():
        assert [fast(4), fast(4), fast(3)] == [6, 12, 15]
    assert count == 15


def triangular(n):
    t = 0
    for k in range(n):
        t += k
        yield k
        t += k
    yield t


def through_triangular(n):
    for x in triangular(n):
        yield x + 1


def product(n):
    p = 1
    for k in range(1, n + 1):
        p *= k  # it may be too large for C
    return p


def one_in_itself(n):
    s = 0
    for a in triangular(n):
        for b in triangular(n):
            s += product(n) * (a * 10 + b)
    return s


def one_through_another_in_itself(n):
    s = 0
    for a in through_triangular(n):
        for b in through_triangular(n - 1):
            s = s * 3 + a * b
    return s


def two_of_a_comprehension(n):
    return [a * 100 + b for a in triangular(n) for b in triangular(n - 1)]


def two_of_a_sum(n):
    return sum(a * 10 + b for a in triangular(n) for b in triangular(2))


def two_that_are_numbered(n):
    return [(i, x, j, y) for i, x in enumerate(triangular(n)) for j, y in enumerate(triangular(2))]


@contextmanager
def counting(log):
    log.append(len(log))
    at = log[-1]
    yield at
    log.append(-at)


def managers_in_themselves(n):
    log = [0]
    for k in range(n):
        with counting(log) as a, counting(log) as b:
            log.append(product(n) * a + b + k)
    return log


@pytest.mark.parametrize(
    "f",
    [
        *(one_in_itself, one_through_another_in_itself, two_of_a_comprehension, two_of_a_sum),
        *(two_that_are_numbered, managers_in_themselves),
    ],
)
def test_what_is_written_out_twice_has_names_of_its_own(f):
    """The loops of a generator lie in the same lines wherever it is written out."""
    fast = np_compile.compile(f)
    with whole():
        for n in (5, 6, 21, 26, 5, 30):
            check_call(fast, f, (n,), 0)
    assert not refusals(fast)
