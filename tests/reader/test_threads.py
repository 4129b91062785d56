"""Loops whose iterations are independent are shared by threads; all others are not."""

import ctypes
import os
import signal
import threading
import time

import numpy as np
import pytest
import torch

import np_compile
from np_compile.kernels.run import pool
from np_compile.reader import threads

from .support import case, check, check_call, exact, whole


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Threads are called at once, in chunks of one iteration."""
    monkeypatch.setattr(threads, "WORTH", 0)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def shared(fast):
    """The lines of loops that threads share."""
    regions = [region for known in fast._reading._regions.values() for region in known]
    return sorted({line for region in regions for line in region.threaded})


# Independent iterations


def mandelbrot(c, out, most):
    h, w = c.shape
    for i in range(h):
        for j in range(w):
            z, n = 0j, 0
            while n < most and abs(z) <= 2:
                z = z * z + c[i, j]
                n += 1
            out[i, j] = n
    return out


def sparse_product(data, indices, ptr, x):
    n = len(ptr) - 1
    y = np.zeros(n)
    for i in range(n):
        s = 0.0
        for k in range(ptr[i], ptr[i + 1]):
            s += data[k] * x[indices[k]]
        y[i] = s
    return y


def heat(u, steps):
    v = u.copy()
    n, m = u.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = u[i, j] + 0.1 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] - 3 * u[i, j])
        u, v = v, u
    return u, v


def cholesky(a):
    n = a.shape[0]
    low = np.zeros_like(a)
    for j in range(n):
        low[j, j] = (a[j, j] - np.sum(low[j, :j] ** 2)) ** 0.5
        for i in range(j + 1, n):
            low[i, j] = (a[i, j] - np.sum(low[i, :j] * low[j, :j])) / low[j, j]
    return low


def blocks(x, size):
    y = np.zeros_like(x)
    for b in range(len(x) // 4):
        y[b * 4 : b * 4 + 4] = x[b * 4 : (b + 1) * 4] - x[b * 4 : b * 4 + 4].mean()
    return y


def rows(m, w):
    for row in m:
        row *= w
        row[0] = row.sum()
    return m


def forces(p, f):
    n = len(p)
    for i in range(n):
        total = np.zeros(2)
        for j in range(n):
            if i != j:
                d = p[j] - p[i]
                total += d / (np.sum(d * d) + 0.1) ** 1.5
        f[i] = total
    return f, total, i


def last_values(x, y):
    """What the last iteration leaves behind is asked for."""
    t = -1.0
    for i in range(len(x)):
        t = x[i] * 2
        part = x[: i % 3 + 1]
        y[i] = t + part.sum()
    return i, t, part, y


def names_are_used_again(x, y):
    for i in range(len(x)):
        t = x[i] + 1
        y[i] = t
    for i in range(len(x)):
        t = y[i] * 2
        x[i] = t
    return x, y


def temporaries(m, y):
    """Arrays are made in each iteration, small ones and large ones."""
    for i in range(len(m)):
        a = np.outer(m[i], m[i])
        b = np.sort(m[i] * 2)
        y[i] = a.sum() + b[-1]
    return y


class Grid:
    def __init__(self, u):
        self.u, self.n = u, 0

    def relax(self, out):
        for i in range(1, len(self.u) - 1):
            out[i] = (self.u[i - 1] + self.u[i + 1]) / 2
        return out


def of_an_object(grid, out):
    return grid.relax(out)


def helper(x, i):
    return x[i] * x[i] + 1


def with_a_helper(x, y):
    for i in range(len(y)):
        y[i] = helper(x, i) - helper(x, 0)
    return y


def every_second(x):
    for i in range(0, len(x) - 1, 2):
        x[i] = x[i] + x[i + 1]
    return x


def backwards(x):
    n = len(x)
    for i in range(n // 2):
        a = x[i]
        x[i] = x[n - 1 - i]
        x[n - 1 - i] = a
    return x


def two_dtypes(x, n, flags):
    for i in range(len(x)):
        n[i] = int(x[i] * 10) % 7
        flags[i] = x[i] > 0.5
    return n, flags


def primes(n):
    count = 0
    for k in range(2, n):
        is_prime = True
        for d in range(2, k):
            if d * d > k:
                break
            if k % d == 0:
                is_prime = False
                break
        if is_prime:
            count += 1
    return count


def two_sums(x, hits, misses):
    for i in range(len(x)):
        for _ in range(2):
            if x[i] > 0.5:
                hits += i * 3
                x[i] = x[i] - 0.25
            else:
                misses -= i
    return hits, misses, x


def blocks_by_elements(x, y):
    for i in range(len(x) // 4):
        for j in range(4):
            y[i * 4 + j] = x[i * 4 + 3 - j] * 2
    return y


def triangles(a, b):
    n = len(a)
    for i in range(n):
        for j in range(i):
            b[i, j] = a[i, j] + b[i, n - 1 - j]
    return b


def from_another_half(x, half):
    n = len(half)
    for i in range(n):
        s = 0.0
        for j in range(n):
            s += x[j]
        x[n + i] = s * i
    return x


def caught(x, y):
    """Names that an exception's handler asks for have the values of their iterations."""
    at = before = -1
    try:
        for i in range(len(x)):
            at = i
            y[i] = 1 // int(x[i] * 3)
            before = i
    except ZeroDivisionError:
        return at, before, y
    return None, y


_rng = np.random.default_rng(3)
_c = np.linspace(-2, 1, 23)[None, :] + 1j * np.linspace(-1, 1, 17)[:, None]
_ptr = np.concatenate([[0], np.cumsum(_rng.integers(0, 6, 90))])
_nnz = int(_ptr[-1])
_a = _rng.random((30, 30))
_positive = _a @ _a.T + 30 * np.eye(30)

INDEPENDENT = [
    exact(mandelbrot, (_c, np.zeros(_c.shape, int), 30)),
    exact(sparse_product, (_rng.random(_nnz), _rng.integers(0, 50, _nnz), _ptr, _rng.random(50))),
    exact(heat, (_rng.random((20, 14)), 3), (_rng.random((20, 14)), 4)),
    case(cholesky, (_positive,)),
    exact(blocks, (_rng.random(83), 4)),
    exact(rows, (_rng.random((40, 11)), _rng.random(11))),
    exact(forces, (_rng.random((40, 2)), np.zeros((40, 2)))),
    exact(last_values, (_rng.random(50), np.zeros(50))),
    exact(names_are_used_again, (_rng.random(50), np.zeros(50))),
    case(temporaries, (_rng.random((20, 70)), np.zeros(20))),
    exact(of_an_object, (Grid(_rng.random(60)), np.zeros(60))),
    exact(with_a_helper, (_rng.random(60), np.zeros(60))),
    exact(every_second, (_rng.random(61),), (_rng.random(2000)[::2],)),
    exact(primes, (300,), (3,)),
    exact(from_another_half, (_rng.random(60), _rng.random(30))),
    exact(blocks_by_elements, (_rng.random(83), np.zeros(83))),
    exact(triangles, (_rng.random((20, 20)), _rng.random((20, 20)))),
    exact(two_sums, (_rng.random(60), 100, -5), (_rng.random(60), 2**63 - 900, 0)),
    exact(two_dtypes, (_rng.random(60), np.zeros(60, np.int16), np.zeros(60, bool))),
]


@pytest.mark.parametrize("c", INDEPENDENT, ids=lambda c: c.function.__name__)
def test_independent_iterations(c):
    fast = check(c)
    assert shared(fast)


# Statements on whole arrays


def escapes(c, most):
    z, left = np.zeros_like(c), np.ones(c.shape, bool)
    counts = np.full(c.shape, most)
    for n in range(most):
        z[left] = z[left] ** 2 + c[left]
        gone = left & (np.abs(z) > 2)
        counts[gone] = n
        left &= ~gone
        if not left.any():
            break
    return counts, left


def relaxed(u, most):
    n = 0
    while n < most:
        v = u.copy()
        v[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
        if np.max(np.abs(v - u)) < 1e-3:
            break
        u = v
        n += 1
    return u, n


def shifted_in_place(x, most):
    for _ in range(most):
        x[1:] = x[:-1] + 1  # as if all were read before
        x[::2] *= 0.5
        x[::-1] += x
        if x[0] > 1e9:
            break
    return x


def by_columns(x, rows, most):
    for _ in range(most):
        x.T[:, 1:] = rows * 2 + x.T[:, 1:]
        if x[0, 0] > 1e9:
            break
    return x


PLANE = (np.linspace(-2, 1, 130)[:, None] + 1j * np.linspace(-1, 1, 120)).copy()

WHOLE_ARRAYS = [
    exact(escapes, (PLANE, 12), (PLANE[:3], 12), (PLANE[::-1, ::2], 12)),
    exact(
        relaxed,
        (_rng.random((100, 90)), 5),
        (_rng.random((3, 3)), 2),
        (_rng.random((90, 100)).T, 3),
    ),
    exact(
        shifted_in_place, (_rng.random(20_000), 4), (_rng.random(20_001)[::-1], 3), (np.zeros(1), 2)
    ),
    exact(
        by_columns, (_rng.random((100, 100)), _rng.random(99), 3), (np.ones((2, 1)), np.ones(1), 2)
    ),
]


@pytest.mark.parametrize("c", WHOLE_ARRAYS, ids=lambda c: c.function.__name__)
def test_statements_on_whole_arrays(c):
    assert len(shared(check(c))) > 0


@pytest.fixture
def chunks(monkeypatch):
    """How often the pool was asked to run something, each time by the calling thread alone."""
    piece = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_long, ctypes.c_long)
    asked = []

    def run(function, argument, count, grain, threads):
        asked.append(count)
        for begin in range(0, count, grain):
            piece(function)(argument, begin, min(begin + grain, count))

    kind = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long, ctypes.c_int
    )
    held = kind(run)
    address = ctypes.cast(held, ctypes.c_void_p).value
    monkeypatch.setattr(pool, "run_address", lambda: address)
    yield asked
    del held


def test_statements_on_small_arrays_are_not_shared(chunks):
    assert shared(check(exact(relaxed, (_rng.random((20, 20)), 3)))) == []
    assert chunks == []


def reduced(x, y, m, k, most):
    while most > 0:
        most -= 1
        a = x.sum(), np.mean((x - y) ** 2), np.max(np.abs(x)), np.argmin(y), x.var()
        b = k.sum(), np.prod(k), (k > 7).any(), (x > y).all(), np.count_nonzero(k), k.min()
        c = m.sum(), m.sum(axis=1), m.max(axis=1), m.sum(axis=0), m.argmax(), m.max()
        x[most] = a[0]
    return a, b, c


def _reduced(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, rng.normal(size=n), rng.normal(size=(n // 40, 40)), rng.integers(0, 9, n), 2


def test_the_arrays_of_a_call_decide_whether_a_statement_is_shared(chunks):
    for first, second in ((20, 120), (120, 20)):
        fast = np_compile.compile(relaxed)
        with whole():
            for n in (first, second, first, second):
                chunks.clear()
                check_call(fast, relaxed, (_rng.random((n, n)), 3), 0)
                assert bool(chunks) == (n == 120)
        assert sum(len(known) for known in fast._reading._regions.values()) == 1


def test_reductions_are_shared_and_are_numpys_to_the_bit(chunks):
    fast = np_compile.compile(reduced)
    with whole():
        for n in (1000, 8191, 16_384, 100_000, 1000, 2_000_003):
            chunks.clear()
            check_call(fast, reduced, _reduced(n), 0)
            assert len(chunks) > 20 if n > 8191 else not chunks
        x, *others = _reduced(400_000)
        x[[5, 399_990]] = np.nan
        check_call(fast, reduced, (x, *others), 0)
        check_call(fast, reduced, (np.full(400_000, np.inf), -x, *others[1:]), 0)


def products(x, y, most):
    while most > 0:
        most -= 1
        found = x @ y, x.dot(x), np.sum(x * y)
    return found


def test_the_number_of_threads_does_not_show_in_products():
    x, y = _reduced(700_001)[:2]
    fast = np_compile.compile(products)
    found = []
    with whole():
        for n in (1, 2, 3, 7):
            torch.set_num_threads(n)
            check_call(fast, products, (x, y, 2), 1e-11)
            found.append(np.array(fast(x, y, 2)).tobytes())
    assert len(set(found)) == 1


# Iterations that depend on each other


def recurrence(x):
    for i in range(1, len(x)):
        x[i] = x[i - 1] * 0.5 + x[i]
    return x


def sweep(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) / 4
    return u


def through_data(x, idx):
    for i in range(len(idx)):
        x[idx[i]] += i
    return x


def by_a_name(x, y):
    s = 0.0
    for i in range(len(x)):
        s = s * 0.9 + x[i]
        y[i] = s
    return y


def sometimes(x, y):
    best = -1
    for i in range(len(x)):
        if x[i] > 0.5:
            best = i
        y[i] = x[i]
    return best, y


def through_a_view(x):
    v = x[1:]
    for i in range(len(v)):
        v[i] = x[i] + 1
    return x


def transposed(m):
    t = m.T
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            t[i, j] = m[i, j] + 1
    return m


def overlapping_blocks(x):
    for b in range(len(x) // 4 - 1):
        x[b * 4 : b * 4 + 5] += 1.0
    return x


def same_row(m, y):
    for i in range(len(y)):
        m[0, 0] = y[i]
        y[i] = m[0, 0] * 2
    return m, y


def drawn(rng, x):
    for i in range(len(x)):
        x[i] = rng.random()
    return x


def from_an_earlier_iteration(x, y):
    """What is asked for behind the loops may be of another iteration than the last one."""
    j = -1
    for i in range(len(x)):
        for j in range(int(x[i] * 3)):
            y[i] += j
        y[i] += 1
    return j, y


def windows_by_elements(x, m):
    for i in range(len(x) - m):
        for j in range(m):
            x[i + j] = x[i + j] * 0.5 + i
    return x


def windows_of_three(x):
    for i in range(3, len(x)):
        for j in range(3):
            x[i - j] += i
    return x


def other_steps(x):
    for i in range(len(x) // 2):
        x[2 * i] = x[i] + 1
    return x


def from_ahead(x):
    for i in range(len(x) // 2 - 4):
        x[2 * i] = x[2 * i + 4] + 1
    return x


def from_behind(x):
    for i in range(len(x) // 2 - 4):
        x[2 * i + 4] = x[2 * i] + 1
    return x


def diagonal(u):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1] - 1):
            u[i, j] = u[i - 1, j + 1] + 1
    return u


def in_a_list(x, y):
    """The array that is read is one of a list, and is the one that is written."""
    both = [x, y]
    for i in range(1, len(x)):
        x[i] = both[0][i - 1] + both[1][i]
    return x


def in_a_list_that_is_made(x, y):
    arrays = []
    arrays.append(x)
    arrays.append(y)
    for i in range(1, len(x)):
        x[i] = arrays[i % 2][i - 1] + arrays[1][i]
    return x


def traded_inside(a, b):
    """Names that trade arrays in each iteration."""
    for i in range(len(a)):
        p, q = a, b
        for _ in range(3):
            q[i] = p[i] + 1
            p, q = q, p
    return a, b


def of_lists(x):
    """A loop in an expression that leaves in the middle."""
    return [v // int(v * 3) for v in x]


def shown(x):
    for i in range(len(x)):
        x[i] = np.linalg.norm(np.ones((2, 2)) * x[i], 2)
    return x


def of_the_last_iteration(x, y):
    t = 0.0
    for i in range(len(x)):
        y[i] = t
        for k in range(3):
            t = x[i] + k
    return y


def until_broken(x, y):
    """What a name has where an inner loop ends early is asked for in the next iteration."""
    t = 0.0
    for i in range(len(x)):
        y[i] += t
        for k in range(5):
            if x[i] * k > 1:
                break
            t = 0.5
        else:
            t = x[i]
    return y


def asked_for(x):
    n = 0
    for i in range(len(x)):
        n += 1
        x[i] = n
    return n, x


def of_floats(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        x[i] = 0
    return s


def appended(x):
    found = []
    for i in range(len(x)):
        if x[i] > 0.5:
            found.append(i)
        x[i] = 0
    return found, x


def counted(grid, x):
    grid.n = 0
    for i in range(len(x)):
        grid.n += 1
        x[i] = grid.n
    return x


def floyd_warshall(d):
    n = len(d)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def stopped(x, y):
    for i in range(len(x)):
        if x[i] > 0.99:
            break
        y[i] = x[i]
    return i, y


def swapped(u, v, n):
    """Names that trade arrays: the one that is written is the one that is read, or is not."""
    for k in range(n):
        if k % 3:
            u, v = v, u
        else:
            u = v
        for i in range(1, len(u)):
            for _ in range(2):
                v[i] = u[i - 1] + 1
    return u, v


DEPENDENT = [
    exact(recurrence, (_rng.random(99),)),
    exact(sweep, (_rng.random((20, 30)),)),
    exact(through_data, (np.zeros(9), _rng.integers(0, 9, 500))),
    exact(by_a_name, (_rng.random(99), np.zeros(99))),
    exact(sometimes, (_rng.random(99), np.zeros(99))),
    exact(through_a_view, (_rng.random(99),)),
    exact(transposed, (_rng.random((30, 30)),)),
    exact(overlapping_blocks, (_rng.random(99),)),
    exact(same_row, (np.zeros((2, 2)), _rng.random(99))),
    exact(drawn, (np.random.default_rng(1), np.zeros(99))),
    exact(from_an_earlier_iteration, (np.append(_rng.random(98), 0.1), np.zeros(99))),
    exact(windows_by_elements, (_rng.random(99), 3)),
    exact(windows_of_three, (_rng.random(99),)),
    exact(other_steps, (_rng.random(99),)),
    exact(from_ahead, (_rng.random(99),)),
    exact(from_behind, (_rng.random(99),)),
    exact(diagonal, (_rng.random((30, 40)),)),
    exact(in_a_list, (_rng.random(99), _rng.random(99))),
    exact(in_a_list_that_is_made, (_rng.random(99), _rng.random(99))),
    exact(traded_inside, (_rng.random(99), _rng.random(99))),
    exact(of_lists, (_rng.random(99) + 1,)),
    case(shown, (_rng.random(99),)),
    exact(of_the_last_iteration, (_rng.random(99), np.zeros(99))),
    exact(until_broken, (_rng.random(99), np.zeros(99))),
    exact(asked_for, (np.zeros(99),)),
    exact(of_floats, (_rng.random(99),)),
    exact(appended, (_rng.random(99),)),
    exact(counted, (Grid(None), np.zeros(99))),
    exact(floyd_warshall, (_rng.random((20, 20)),)),
    exact(stopped, (_rng.random(400), np.zeros(400))),
]


@pytest.mark.parametrize("c", DEPENDENT, ids=lambda c: c.function.__name__)
def test_iterations_that_depend_on_each_other(c):
    assert shared(check(c)) == []


def test_arrays_that_trade_places_are_looked_at_when_it_runs():
    check(exact(swapped, (_rng.random(60), _rng.random(60), 5)))
    check(exact(backwards, (_rng.random(60),), (_rng.random(61),)))


def test_items_of_a_tuple_that_iterations_look_up():
    def counted(x, n):
        for k in (n, 1, 2):
            if k > len(x):
                continue
            for _e in x[1:]:
                pass
        return n

    fast = check(exact(counted, (np.arange(8.0), 3), (np.arange(8.0), 9)))
    assert len(shared(fast)) == 1


def test_a_writeable_view_whose_rows_lie_over_each_other():
    def double(m):
        for i in range(m.shape[0]):
            for j in range(m.shape[1]):
                m[i, j] = m[i, j] * 2 + i
        return m.copy()

    def windows(strides):
        x = np.arange(400.0)
        return np.lib.stride_tricks.as_strided(x, (150, 40), strides)

    fast = np_compile.compile(double)
    with whole():
        for strides in ((8, 8), (8, 16), (16, 8)) * 3:
            np.testing.assert_array_equal(fast(windows(strides)), double(windows(strides)))


# Leaving


def looked_up(x, idx, y):
    for i in range(len(y)):
        s = 0.0
        for k in range(3):
            s += x[idx[i] + k]
        y[i] = s
    return y


@pytest.mark.parametrize("at", [0, 1, 250, 499])
def test_an_error_comes_in_its_iteration(at):
    x, idx = _rng.random(100), _rng.integers(0, 97, 500)
    idx[at] = idx[at::7] = 99
    fast = np_compile.compile(looked_up)
    for _ in range(3):
        want, got = np.full(500, -1.0), np.full(500, -1.0)
        with pytest.raises(IndexError) as plain:
            looked_up(x, idx, want)
        with whole(), pytest.raises(IndexError) as compiled:
            fast(x, idx, got)
        assert str(plain.value) == str(compiled.value)
        np.testing.assert_array_equal(got, want)
    assert shared(fast)


def in_place(x, limit):
    for i in range(len(x)):
        x[i] = x[i] * 2 + 1
        for _ in range(2):
            if x[i] > limit:
                raise ValueError(f"element {i} is {x[i]}")
    return x


def test_what_was_changed_before_an_error_is_changed_once():
    fast = np_compile.compile(in_place)
    for limit in (2.9, 2.0, 1.5, 5.0):
        want, got = np.linspace(0, 1, 300), np.linspace(0, 1, 300)
        errors = []
        for f, x in ((in_place, want), (fast, got)):
            with whole():
                try:
                    f(x, limit)
                except ValueError as e:
                    errors.append(str(e))
        assert len(errors) in (0, 2)
        assert errors[:1] == errors[1:]
        np.testing.assert_array_equal(got, want)
    assert shared(fast)


def factorials(n, y):
    for i in range(len(n)):
        p = 1
        for k in range(2, n[i] + 1):
            p = p * k
        y[i] = p % 1000003
    return y


def test_an_integer_beyond_64_bits_in_one_iteration():
    n = np.full(200, 12)
    n[77] = n[133] = 25
    fast = check(exact(factorials, (n, np.zeros(200, int))))
    assert shared(fast)


def long_rows(x, n):
    for i in range(len(x)):
        for _ in range(n):
            x[i] = x[i] * 0.999 + 0.001
    return x


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize(("count", "n"), [(8, 10**12), (10**4, 10**9), (10**7, 2 * 10**3)])
def test_a_signal_ends_a_loop_that_threads_share(count, n):
    class Rang(Exception):
        pass

    def ring(*_):
        raise Rang

    fast = np_compile.compile(long_rows)
    with whole():
        fast(np.ones(64), 3)
        x = np.zeros(count)
        before = signal.signal(signal.SIGALRM, ring)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            begun = time.perf_counter()
            with pytest.raises(Rang):
                fast(x, n)
            assert time.perf_counter() - begun < 60  # it would be hours
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        done = x[: np.argmin(x > 0)] if (x == 0).any() else x
        assert (x[len(done) :] == 0).all()  # as if the iterations had been made in their order
        np.testing.assert_array_equal(fast(np.ones(64), 3), long_rows(np.ones(64), 3))


def test_a_handler_sees_the_names_of_the_iteration_that_raised():
    x = _rng.random(200) / 2 + 0.4
    x[150] = x[170] = 0.1
    check(exact(caught, (x, np.zeros(200)), (x[:100], np.zeros(100))))


# Threads


def test_the_number_of_threads_changes_nothing():
    x = _rng.random((200, 31))
    fast = np_compile.compile(rows)
    found = []
    with whole():
        for n in (1, 2, 3, 7):
            torch.set_num_threads(n)
            found.append(fast(x.copy(), x[0]).tobytes())
    assert len(set(found)) == 1


def test_calls_in_several_threads_of_python():
    fast = np_compile.compile(mandelbrot)
    want = mandelbrot(_c, np.zeros(_c.shape, int), 30)
    wrong = []

    def work():
        for _ in range(30):
            got = fast(_c, np.zeros(_c.shape, int), 30)
            if not np.array_equal(got, want):
                wrong.append(got)

    with whole():
        fast(_c, np.zeros(_c.shape, int), 30)
        callers = [threading.Thread(target=work) for _ in range(4)]
        for t in callers:
            t.start()
        for t in callers:
            t.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_shares_loops_too():
    fast = np_compile.compile(mandelbrot)
    with whole():
        want = fast(_c, np.zeros(_c.shape, int), 30)
        child = os.fork()
        if child == 0:
            same = np.array_equal(fast(_c, np.zeros(_c.shape, int), 30), want)
            os._exit(0 if same else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_sums_beyond_64_bits():
    def big(x):
        total = 0
        for i in range(len(x)):
            total += 2**61 + i
            x[i] = i
        return total, x

    fast = np_compile.compile(big)
    with whole():
        for n in (2, 3, 60):
            got, x = fast(np.zeros(n))
            assert got == big(np.zeros(n))[0]
            np.testing.assert_array_equal(x, np.arange(float(n)))


def test_loops_begin_in_the_calling_thread(monkeypatch):
    """Where what is ahead is not known, or is not worth it."""
    monkeypatch.setattr(threads, "WORTH", 30_000)
    for c in INDEPENDENT:
        check(c, rounds=3)


def test_threads_hold_items_of_one_list():
    def by_items(n):
        lists = [[1, 2, 3] for _ in range(2)]
        out = np.zeros(n)
        for i in range(n):
            s = 0
            for v in lists[i & 1]:
                s += v
            out[i] = s
        lists[0].append(4)
        return out, lists

    fast = np_compile.compile(by_items)
    with whole():
        for _ in range(10):
            out, lists = fast(100_000)
            assert lists == [[1, 2, 3, 4], [1, 2, 3]]
            assert (out == 6).all()
    assert len(shared(fast)) == 1


def test_how_long_iterations_took_is_forgotten_where_others_are_short(monkeypatch):
    """Threads are not called again and again for a loop that was long once."""
    monkeypatch.setattr(threads, "WORTH", 1_000_000)  # more than a busy machine adds to short ones
    kind = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long, ctypes.c_int
    )
    calls, real = [], kind(pool.run_address())

    def run(f, argument, n, grain, count):
        calls.append(n)
        real(f, argument, n, grain, count)

    hook = kind(run)
    address = ctypes.cast(hook, ctypes.c_void_p).value
    monkeypatch.setattr(pool, "run_address", lambda: address)

    def sums(x, n):
        out = np.zeros(len(x))
        for i in range(len(x)):
            s = 0.0
            for k in range(n):
                s += x[i] * k
            out[i] = s
        return out

    fast, x = np_compile.compile(sums), np.ones(30)
    with whole():
        fast(x, 2_000_000)
        fast(x, 2_000_000)
        assert calls
        fast(x, 1)
        calls.clear()
        for _ in range(20):
            np.testing.assert_array_equal(fast(x, 2), sums(x, 2))
    assert len(calls) <= 10  # of 20: other work on the machine may make one look long


def row_sweeps(x, w):
    for k in range(1, x.shape[1]):
        x[:, k] = np.sqrt(abs(x[:, k - 1])) + w[:, k]
        x[:, k] *= 0.5


def plane_sweeps(x, w):
    for k in range(x.shape[2] - 2, -1, -1):
        x[:, :, k] -= w[:, :, k] * x[:, :, k + 1]


@pytest.mark.parametrize(
    ("f", "shapes"),
    [(row_sweeps, [(43, 9), (7, 9), (16, 5)]), (plane_sweeps, [(5, 19, 7), (2, 8, 4), (1, 3, 4)])],
)
def test_tiles_of_interchanged_loops_are_shared(f, shapes):
    rng = np.random.default_rng(0)
    with whole():
        fast = np_compile.compile(f)
        for shape in shapes:
            x, w = rng.random((2, *shape))
            want = x.copy()
            f(want, w)
            fast(x, w)
            np.testing.assert_array_equal(x, want)
        assert shared(fast) == [f.__code__.co_firstlineno + 1]
