"""Slices that names hold, indices that are put together, and values that are taken apart."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
import pytest

import np_compile

from .support import (
    Case,
    case,
    check,
    check_call,
    check_whatever_leaves,
    each,
    exact,
    refusals,
    whole,
)

A = np.arange(42.0).reshape(6, 7) - 11
B = np.arange(44.0).reshape(4, 11) - 11
I = np.arange(30).reshape(5, 6) % 7  # noqa: E741


def window(a, n):
    t = 0.0
    for i in range(1, n):
        part = np.s_[i - 1 : i + 2, i:]
        t += a[part].max() * i
    return t, part


def built(a, n):
    t = 0.0
    for i in range(n):
        head, odd, whole = slice(i), slice(i, None, 2), slice(None)
        t += a[head].sum() + a[odd, whole].max() + a[whole, head].sum() + a[(odd,)].min()
    return t, head, odd, whole, np.s_[1:, ::2], np.index_exp[i], np.s_[i,]


def one_or_another(a, n):
    t = 0
    for i in range(n):
        part = slice(1, i + 2)
        if i % 2:
            part = slice(0, i)
        t += a[0, part].sum()
    return t, part


def of_different_forms(a, n):
    for i in range(n):
        part = slice(1, i)
        if i % 2:
            part = slice(i)
        a[0, part] += 1
    return part


def stored_through(a, n):
    for i in range(n):
        a[np.s_[i:, i]] = i
        a[np.index_exp[i]] += 1
    return a


def together(a, n):
    t = 0.0
    for i in range(n):
        at = (i, 2)
        t += a[at] + a[(slice(None), i)].sum() + a[(*at,)]
    return t


def tuples_within(a, n):
    """A tuple among others is a list of indices; one alone is the indices."""
    t = 0
    for i in range(n):
        t += a[(1, 2), :].sum() * i + a[[0, 1], i].sum() + a[(1, i)] + a[((1, 2), (i, 3))].sum()
    return t


class Doubled:
    def __init__(self, of):
        self.of = of

    def __getitem__(self, k):
        return self.of[k] * 2


def of_an_object(x, n):
    d, t = Doubled(x), 0.0
    for i in range(n):
        t += d[i : i + 2].sum() + d[i]
    return t, d[:2]


def scaled(x, y, z=1.0):
    return x * y + z


def starred(a, n):
    t = 0.0
    for i in range(n):
        t += np.hypot(*a[i, :2]) + scaled(*a[i, :2]) + scaled(*a[i, :3])
        u = (*a[i, :2], i)
        t += u[0]
    return t, u, tuple(a[0])


def by_extent(a):
    """As many as the array has."""
    t = 0.0
    for i in range(len(a)):
        t += max(*a[i]) + scaled(*a[i])
    return t


def row_extremes(a):
    t = 0.0
    for i in range(len(a)):
        t += max(*a[i])
    return t


def least_pair(x):
    best, last = (np.inf, -1), (-np.inf, 0)
    for i in range(len(x)):
        best = min(best, (x[i], i))
        last = max((x[i], -i), last)
        if (i, x[i]) >= (3, 1.0) and not (i, 1) <= (2, 0):
            last = (last[0] + 1, i)
    return best, last, (1, 2) > (1, 1), (1, 2) < (1, 2)


def grid(k, places):
    for at in places:
        k[np.ix_(at, at)] += np.ones((3, 3))
        k[np.ix_([0, 1], at)] *= 2
    return k, np.ix_(at, at)


def by_mask(k, m, n):
    for i in range(n):
        k[np.ix_(m, [0, i])] += i
    return k


def recent(x):
    last, means = deque(maxlen=3), []
    for v in x:
        last.append(float(v))
        if len(last) == 3:
            means.append(last[0] + 2 * last[-1])
    return means, last


def recent_arrays(x, n):
    last = deque(maxlen=2)
    for i in range(n):
        last.append(x[i : i + 2] * 2)
        if i > 2:
            x[i] += last[0].sum()
    last.popleft()
    return last, x


def in_parts(n):
    parts = [np.arange(n)]
    while len(parts) < 4:
        first = parts.pop(0)
        half = len(first) // 2
        parts += [first[:half], first[half:]]
    return parts


def products(p, x, n):
    q, w = p @ x[0], p @ x[:, :2]
    for i in range(n):
        q[0, 0] += w[i % 2, 1, 1]
        w[0, 0] = (p @ x[i])[1, 2]
    return q, w


def spans(x, n):
    t = 0
    for i in range(n):
        t += np.ptp(x, axis=0)[i] + np.ptp(x[i:], axis=1, keepdims=True)[0, 0] - np.ptp(x)
    return t, np.ptp(x, 1)


def likes(x, n):
    for i in range(n):
        z, c = np.zeros_like(x), x.astype(np.float32)
        z[i] = c[i] + np.full_like(x, i)[0] + np.copy(x)[i] + np.array(x)[i]
    return z, c


def chosen_draws(q, seed, n):
    """A draw in one branch, an index that is checked in the other."""
    rng = np.random.default_rng(seed)
    for s in range(n):
        a = int(rng.integers(4)) if rng.random() < 0.3 else int(q[s % 5].argmax())
        q[s % 5, a] += float(rng.random()) if a > 1 else q[a, s % 4]
    return q, rng.random()


CASES: list[Case] = [
    exact(window, (A, 4), (A, 1 + 1), (A[:, ::-1], 4)),
    case(built, (A, 4), (A, 1)),
    exact(one_or_another, (I, 5), (I, 1)),
    exact(of_different_forms, (A, 5), (A, 1), refused="one form or another"),
    exact(stored_through, (A, 5)),
    exact(together, (A, 4)),
    exact(tuples_within, (I, 4), (I.astype(np.int8), 4)),
    exact(of_an_object, (A[0], 5)),
    exact(starred, (A, 4)),
    exact(by_extent, (A[:, :3],), (A[:1, :3],), (A[:, 1:3],)),
    exact(row_extremes, (B,), (B[:, :10],), (B[:, :9],)),
    exact(least_pair, (A[0],), (A[3] % 5,), (-A[3],), (np.array([0.0, -0.0, 0.0]),)),
    exact(grid, (A, np.array([[1, 3, 4], [0, 1, 2]])), (A, np.array([[1, 1, 0]]))),
    exact(by_mask, (A, A[:, 0] > 3, 4), (A, A[:, 0] > 99, 4)),
    exact(recent, (A[0],), (A[0, :2],), (A[0, :0],)),
    exact(recent_arrays, (A[0], 6), (A[0], 1)),
    exact(in_parts, (13,), (1,)),
    exact(products, (np.arange(30).reshape(2, 3, 5), np.arange(25).reshape(5, 5), 4)),
    exact(spans, (I, 5), (I.astype(np.uint8), 3)),
    exact(likes, (A, 4), (A[::2, ::2], 3)),
    exact(chosen_draws, (np.abs(A) / 50, 3, 30)),
]


@each(CASES)
def test_slices(c: Case) -> None:
    check(c)


def test_too_many_arguments() -> None:
    check_whatever_leaves(by_extent, [(A[:, :4],), (A[:, :1],), (A[:, :3],)])


def orders(x, n):
    for i in range(n):
        a, b, c = np.zeros_like(x), np.ones_like(x, dtype=np.int32), np.full_like(x, 2.5)
        d, e, f, g = np.copy(x), np.array(x), x.astype(np.float32), np.empty_like(x)
        a[i % len(x)] = d[i % len(x)] + f[i % len(x)]
        c[i % len(x)] += e[i % len(x)]
        g[:] = i
    return [a.strides, b.strides, c.strides, d.strides, e.strides, f.strides, a, b, c, d, e, f, g]


B3 = np.arange(60.0).reshape(3, 4, 5)


def test_a_like_in_another_order() -> None:
    """NumPy's copies keep the order of axes (`order="K"`)."""
    check(exact(likes, (np.asfortranarray(A), 4)))
    check(exact(likes, (A.T, 4), (A.T[::2, ::-1], 4), (A[::-1, ::2], 3)))


def test_strides_of_a_like_in_another_order() -> None:
    several = [A, np.asfortranarray(A), A.T[1:, ::-1], A[::-1, ::2], B3.transpose(1, 2, 0)]
    several += [B3.transpose(0, 2, 1)[::-1], B3.swapaxes(0, 1), np.broadcast_to(A[0], (3, 7))]
    for x in several:
        fast = np_compile.compile(orders)
        with whole():
            for _ in range(3):
                check_call(fast, orders, (x, 2), 0)
        assert not refusals(fast)


def test_a_like_of_few_items_in_another_order() -> None:
    """Calls whose axes are in another order than those of the first, or of one item, leave."""
    x = np.asfortranarray(B3)
    those = (x, x[:, :1], x.transpose(1, 0, 2), x[..., :1].T, x[1:])
    check_whatever_leaves(orders, [(y, 2) for y in those])


def listed(y, v, n):
    for i in range(n):
        y[i : i + 2] = [v, i]
    return y


def paired(y, v, n):
    for i in range(n):
        y[[i, i + 1]] = (i, v)
    return y


def one_number(y, v, n):
    for i in range(n):
        y[i] = v
    return y


def from_elements(y, x, n):
    for i in range(n):
        y[i] = x[i]
    return y


@pytest.mark.parametrize("dtype", ["i4", "u1", "i8"])
@pytest.mark.parametrize("f", [listed, paired, one_number, from_elements])
def test_numbers_that_the_integers_of_an_array_cannot_hold(f: Callable, dtype: str) -> None:
    numbers = [np.inf, np.nan, 1e30, 2.0**40, -3.5, 300.7, 2**40, 300, -1, np.int64(2**40)]
    given: list = [*numbers, np.float32(np.nan), 7]
    if f is from_elements:
        given = [np.array([1, v]) for v in (2, 300, 2**40)]
    y = np.zeros(4, dtype)
    check_whatever_leaves(f, [(y, v, 2) for v in given])
