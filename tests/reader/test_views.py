"""What an array is to Python: itself, a view of another, read-only; and arrays for results."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

import np_compile

from .support import Case, case, check, check_whatever_leaves, each, exact, refusals, whole

X = np.arange(3.0)
M = np.arange(9.0).reshape(3, 3)
SPREAD = np.arange(36.0).reshape(6, 6)[::2, ::2]


# Views of a whole array


def whole_slice(x, n):
    y = x
    for _ in range(n):
        y = x[:]
        y += 1
    return x, y


def cut_in_a_loop(x, n):
    rest = x
    for k in range(n):
        if k > 0:
            rest = rest[k:]
        rest[:1] += 1
    return x, rest


def one_or_the_other(x, n):
    y = x
    for k in range(n):
        y = x if k % 2 else x[::1]
        y += k
    return x, y


def reshaped(x, n):
    y = x
    for _ in range(n):
        y = x.reshape(-1) if n == 2 else x.ravel()
        y += 1
    return x, y


def transposed(x, n):
    y = x
    for _ in range(n):
        y = x.T
        y += 1
    return x, y


def in_a_list(x, n):
    found = [x]
    for k in range(n):
        found.append(x[:])
        found.append(x[k:])
    return x, found[0], found[-1]


def chosen_by_a_test(x, n):
    total = 0.0
    for k in range(n):
        y = x if x[0] > k else x[:]
        total += y.sum()
    return total, x, y


# Parts of complex numbers are views


def parts_are_written(z, n):
    p, q = z.real, np.imag(z)
    for k in range(n):
        p[k % len(p)] = k
        q += 1
        z[-1] = p[0] + 3j
    return p, q, z, p.sum(), z.real[:1]


def parts_backwards(z, n):
    q = z[::-1].imag
    for k in range(n):
        q[k] = z[k].real + q[k - 1]
        np.add(z.real, 1, out=z.imag)
    return z, q.T


def parts_in_a_list(z, n):
    found = []
    for k in range(n):
        found.append(z[k:].real)
        found.append(z[k:].imag)
    whole = z[:]
    z[0] = 9 + 8j
    return found, whole, z


def parts_of_what_is_made(n):
    z = np.zeros((n, 2), complex)
    re, im = z.real, z.imag
    for k in range(n):
        re[k] = k
        im[k, 0] = -k
    return z, im, re.copy()


Z = np.array([1 + 2j, 3, -4j, 0.5])


# Diagonals are read-only views


def diagonal_of_what_changes(m, n):
    d = np.diag(m)
    for k in range(n):
        m[k % len(m), k % len(m)] += 1
    return d, d.sum(), m


def diagonal_backwards(m, n):
    for _ in range(n):
        d = np.diag(m)[::-1]
        m *= 2
    return d, m


def diagonal_or_row(m, n):
    d = m[0]
    for k in range(n):
        d = np.diag(m) if k % 2 else m[0, :]
    return d, m


def diagonal_is_written(m, n):
    for _ in range(n):
        d = np.diag(m)
        d[0] = 1
    return m


# `...` beside integers


def all_dots(x, n):
    for k in range(n):
        x[..., k % len(x)] = k
        x[0, ...] = 5
    return x


def dots_in_a_matrix(m, n):
    for k in range(n):
        m[k % 3, ..., 0] = k
        m[..., 1] += m[..., 0]
    return m


def dots_are_an_array(x, n):
    for _ in range(n):
        y = x[..., 0]
        x += 1
    return y


# Arrays for results


def dot_into(m, x, y):
    for _ in range(2):
        np.dot(m, x, out=y)
    return y


def dot_of_itself(m, x, y):
    for _ in range(2):
        np.dot(m, m, out=m)
    return m


def scaled_into(m, x, y):
    for k in range(2):
        np.dot(x, k + 1.5, out=y)
    return y


def sum_into(m, x, y):
    for _ in range(2):
        np.sum(m, out=y)
    return y


def numbers_into(m, x, y):
    for k in range(2):
        np.add(k, 1.5, out=y)
    return y


def values_into_one(x, y, z):
    for _ in range(2):
        np.add(x, y, out=z)
        np.maximum(x, z.real, out=z)
        np.fmin(z.real, y, z)
    return z


def clipped_into_one(x, y, z):
    for _ in range(2):
        np.clip(x, True, y, out=z)
    return z


def row_into(m, x, y):
    for _ in range(2):
        np.add(x, 1, out=m)
    return m


# Calls with other arguments than those that are read


def bounded_queue(n):
    last = deque([0], maxlen=3)
    for k in range(n):
        last.append(k)
    return list(last)


def started_sum(x):
    total = 0.0
    for k in range(len(x)):
        total += sum([k, 1], start=2)
    return total


M33 = np.arange(9.0).reshape(3, 3) * 1.5 + 1


def folded(x):
    """A view of a reshaped array lies otherwise than the array."""
    a = x.reshape((len(x),))
    for _ in range(3):
        a[::-1] ^= a
    return a


def folded_columns(m):
    t = m.T
    for _ in range(3):
        t[::-1] -= t
        t[:, ::-1] += t
    return m


def largest_by_key(x):
    best = 0
    for k in range(len(x)):
        best += max([k, 3], key=abs)
    return best


SEALED = np.ones((2, 3))
SEALED.flags.writeable = False


def views_of_nothing(x, n):
    t = x
    for k in range(n):
        t = x[k + 3 :].T
    return t, x[:, 1:1], x[::-1][:0]


def parts_of_nothing(z, n):
    re = z.real
    for k in range(n):
        re = z[k:k].real
    return re, z[1:1].imag


def items_by_pairs(m, n):
    total = 0.0
    for k in range(n):
        total += m.item(k % 3, -1) + m.item((0, k % 3))
    return total


def items_counted_flat(m, n):
    return [m.item(-1 - k) for k in range(n)]


CASES = [
    *(exact(f, (X, 3), (X, 1), (X, 2), (X[::-1], 2))
      for f in (whole_slice, one_or_the_other, transposed, in_a_list, cut_in_a_loop)),
    exact(reshaped, (X, 3), (X, 1), (X, 2)),
    exact(reshaped, (X[::-1], 2)),
    exact(chosen_by_a_test, (X, 3), (X + 5, 3)),
    exact(parts_are_written, (Z, 3), (Z[::2], 2), (Z.astype("c8"), 3), (Z[::-1], 0)),
    exact(parts_backwards, (Z, 3), (Z.astype("c8"), 2)),
    exact(parts_in_a_list, (Z, 3), (Z[::-1], 2), (Z.astype("c8"), 1)),
    exact(parts_of_what_is_made, (3,), (0,)),
    exact(diagonal_of_what_changes, (M, 3), (SPREAD, 2), (M[:2], 1), (M.T, 1)),
    *(exact(f, (M, 3), (SPREAD, 2), (M.T, 1)) for f in (diagonal_backwards, diagonal_or_row)),
    exact(diagonal_is_written, (M, 1), (M, 0), refused="read-only"),
    exact(all_dots, (X, 4), (X[::-1], 1)),
    exact(dots_in_a_matrix, (M, 3), (SPREAD, 3)),
    exact(dots_are_an_array, (X, 2), refused="without axes"),
    case(dot_into, (M, X, np.zeros(3))),
    case(dot_into, (M, X, np.zeros(6)[::2]), refused="np.dot with such an out="),
    case(dot_into, (M, X, np.zeros(3, "f4")), refused="np.dot with such an out="),
    case(dot_of_itself, (M, X, X)),
    case(dot_of_itself, (M.T, X, X), refused="np.dot with such an out="),
    exact(scaled_into, (M, X, np.zeros(3))),
    exact(scaled_into, (M, X, np.zeros(6)[::2]), refused="np.dot with such an out="),
    exact(sum_into, (M, X, np.zeros(3)), refused="another rank"),
    exact(numbers_into, (M, X, np.zeros(3)), refused="another rank"),
    exact(row_into, (M, X, X), refused="another rank"),
    *(exact(f, (3, 2, np.zeros((), d)), (True, True, np.zeros((), d)), (1.5, 2.5, np.zeros((), d)))
      for f in (values_into_one, clipped_into_one) for d in ("c16", "c8")),
    exact(clipped_into_one, (1.1, 2, np.zeros((), "f4"))),
    exact(bounded_queue, (5,), (0,), refused="deque"),
    exact(started_sum, (X,), refused="sum of a list"),
    exact(largest_by_key, (X,)),
    exact(folded, (np.arange(5) % 3 > 0,), (np.arange(7) % 3 > 0,), (np.arange(13) % 3 > 0,)),
    exact(folded_columns, (M33.copy(),)),
    exact(views_of_nothing, (M, 3), (SEALED, 2), (M[:0], 2), (M[:, :0], 1)),
    exact(views_of_nothing, (SEALED[:0], 2), (SEALED[:, :0], 1)),
    exact(parts_of_nothing, (Z, 2), (Z[:0], 2), (SEALED[0, :0].astype("c16"), 1)),
    exact(items_by_pairs, (M, 4), (SPREAD.T, 5), (M.astype("f4"), 2)),
    exact(items_counted_flat, (M, 4), (SPREAD.T, 5), (M, 10), refused="by 1 indices"),
    exact(items_counted_flat, (X, 3), (X[::-1], 2), (X, 4)),
]  # fmt: skip


@each(CASES)
def test_views_and_results(c: Case) -> None:
    check(c)


def last_transposed(x):
    for k in range(3):
        y = x.T
        y[0, 0] += k
    return y


def rest_transposed(x):
    for k in range(3):
        y = x[1:].T
        y[0, 0] += k
    return y


@pytest.mark.parametrize("f", [last_transposed, rest_transposed])
@pytest.mark.parametrize("base", [M.copy(), M.T.copy(order="F"), SPREAD, SPREAD.T[::-1]])
def test_the_base_of_a_view_is_the_array_that_has_the_memory(f, base: np.ndarray) -> None:
    """As NumPy has it: not one of an object that only tells where the memory is."""
    owner = base if base.base is None else base.base
    fast = np_compile.compile(f)
    with whole():
        for _ in range(3):
            view, want = fast(base), f(base)
            np.testing.assert_array_equal(view, want)
            assert view.base is want.base is owner
    assert not refusals(fast)


def changed_in_place(x, n):
    y = x * 2
    total = 0.0
    for k in range(n):
        np.nan_to_num(y, copy=False)
        total += y[1] + k
        y = y + x
    return y, total


def written_through_a_squeezed_one(x, n):
    y = x * 2
    for _ in range(n):
        row = np.squeeze(y[None])
        row[0] = 7
        y[1] = 3
        y = y * row[1]
    return y


def written_through_a_trimmed_one(x, n):
    y = x * 2
    for k in range(n):
        rest = np.trim_zeros(y)
        y[1] = 3 + k
        rest[1] = 9
    return y, rest


def reads_a_diagonal_that_changes(x, n):
    y = np.outer(x, x)
    total = 0.0
    for k in range(n):
        d = np.diagonal(y)
        y[0, 0] = k
        total += d[0]
    return total


@pytest.mark.parametrize(
    "f",
    [
        changed_in_place, written_through_a_squeezed_one, written_through_a_trimmed_one,
        reads_a_diagonal_that_changes,
    ],
)  # fmt: skip
def test_what_numpy_makes_of_memory_of_cs_own(f) -> None:
    """Python would get a copy of a small array: views of that, and what is written, were lost."""
    x = np.array([0.0, 3.0, 2.0, 0.0])
    missing = np.array([0.0, np.nan, 2.0, 0.0])
    check_whatever_leaves(f, [(x, 3), (missing, 3), (np.arange(500.0) % 7, 2)])


class Holder:
    def __init__(self, part):
        self.part, self.also = part, part


def test_a_view_without_elements_under_several_names():
    """Of an array of one element; in the first call, that Python makes, and in those of C."""

    def f(x, y, n):
        a = x[:-1]
        rows, by_step = [], {}
        for k in range(n):
            y[k] += 1
            rows.append(a)
            by_step[k] = a
        held = Holder(a)
        b = a
        return a, b, (a, [b]), rows, by_step, held

    fast = np_compile.compile(f)
    with whole():
        for size in (1, 1, 3, 1):
            x = np.arange(2.0 * size)[::2]
            a, b, (c, (d,)), rows, by_step, held = fast(x, np.zeros(4), 3)
            assert a.shape == (size - 1,)
            assert all(v is a for v in (b, c, d, *rows, *by_step.values(), held.part, held.also))
    assert not refusals(fast)
