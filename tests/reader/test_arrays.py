"""Arrays in compiled loops: views, overlap, stores, layouts, dtypes, sizes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import np_compile

from ..support import thorough
from .support import (
    Case,
    case,
    check,
    check_call,
    check_whatever_leaves,
    each,
    exact,
    rarely,
    whole,
)

DTYPES = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]
SOME_DTYPES = ["b1", "i1", "i8", "u2", "u8", "f4", "c8"]
OTHERS = ["i2", "i4", "u1", "u4", "f8", "c16"]  # of the kinds of these


def sizes(make):
    """The arguments for arrays of several sizes."""
    return [make(n) for n in (0, 1, 2, 3, 9, 17)]


def line(n, dtype="f8", seed=0):
    return np.random.default_rng(seed + n).integers(-9, 10, n).astype(dtype)


def grid(n, m, dtype="f8"):
    return np.random.default_rng(n + m).integers(-9, 10, (n, m)).astype(dtype)


def heat(u, steps):
    for _ in range(steps):
        u[1:-1] = u[1:-1] + 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def swapped(u, steps):
    v = np.zeros_like(u)
    for _ in range(steps):
        v[1:-1] = 0.5 * (u[:-2] + u[2:])
        u, v = v, u
    return u, v


def shift_right(a, n):
    for _ in range(n):
        a[1:] = a[:-1]
    return a


def shift_left(a, n):
    for _ in range(n):
        a[:-1] = a[1:]
    return a


def reverse_in_place(a, n):
    for _ in range(n):
        a[:] = a[::-1]
        a[::2] = a[1::2][: len(a[::2])] if len(a) % 2 == 0 else a[::2]
    return a


def add_shifted(a, n):
    for k in range(1, n):
        a[k:] += a[:-k]
        a[:-k] -= a[k:]
    return a


def shift_rows(m, n):
    for _ in range(n):
        m[1:] = m[:-1]
        m[:, :-1] = m[:, 1:]
        m[1:, 1:] += m[:-1, :-1]
    return m


def transpose_in_place(m, n):
    for _ in range(n):
        m[:] = m.T
        m += m.T
    return m


def triangular(a, b):
    x = np.zeros(len(b))
    for i in range(len(b)):
        x[i] = (b[i] - np.sum(a[i, :i] * x[:i])) / a[i, i]
    return x


def negative_steps(a, n):
    out = []
    for k in range(1, n):
        part = a[::-k]
        out.append(part[0] if len(part) else -1.0)
        a[-k:] = a[: -k - 1 : -1] * 2
    return out, a


def all_slices(a, bounds):
    total = 0.0
    for i in bounds:
        for j in bounds:
            total += a[i:j].sum() * 3 + a[i:].sum() - a[:j].sum()
            total += a[i:j:2].sum() - a[j:i:-1].sum() + a[i:j].shape[0] / 7
    return total


def indices_from_the_end(a):
    out = np.zeros_like(a)
    for i in range(len(a)):
        out[-i - 1] = a[i] + a[-1] - a[i - len(a)]
    return out


def out_of_bounds(a, n):
    for i in range(n):
        a[i] += 1
        a[-i] *= 2
    return a


def rows_are_views(m):
    total = 0
    for row in m:
        row *= 2
        row[0] += 1
        total = total + row.sum()
    return total


def rows_rebound(m):
    for row in m:
        row = row * 2
    return m


def columns(m):
    for j in range(m.shape[1]):
        m[:, j] -= m[:, j].mean()
        m[:, j] /= m.shape[0]
    return m


def outer_update(m, v):
    for k in range(len(v)):
        m += v[:, None] * v[None, :] * k
        m[k] = m[:, k]
    return m


def masks(a, n):
    for k in range(n):
        a[a > k] -= 0.5
        a[(a < -k) & (a != 0)] *= 0.5
        s = a[a > 0].sum()
        a[a == 0] = s
    return a


def index_arrays(a, idx):
    out = np.zeros(len(idx))
    for k in range(3):
        out += a[idx]
        a[idx] += 1
        a[idx[::-1]] = out * k
    return a, out


def repeated_indices(h, idx):
    for i in idx:
        h[i] += 1
    h[idx] += 1
    return h


def shrinking(a):
    seen = []
    while len(a) > 1:
        a = a[1:] + a[:-1]
        seen.append(a.sum())
    return a, seen


def growing(n):
    a = np.zeros(1)
    for k in range(n):
        a = np.concatenate([a, a[: k + 1] + k])
    return a


def halves(a):
    n = 0
    while a.size > 2:
        a = a[::2] if n % 2 else a[: len(a) // 2 + 1]
        a[0] = n
        n += 1
    return a, n


def broadcasting(m, v, w):
    for k in range(len(v)):
        m = m + v * k
        m[:, k] += w
        m *= w[:, None]
    return m


def whole_copies(a, n):
    kept = a
    b = a.copy()
    for k in range(n):
        c = b
        b = b.copy()
        c[k] = -1
        b[k] += 5
    return kept, b, c


def alias_by_name(a, n):
    b = a
    c = a[1:]
    for i in range(n):
        b[i] = i
        c[0] += 10
        a[i + 1] -= c[i]
    return a, c


def views_of_views(m):
    inner = m[1:-1, 1:-1]
    for i in range(inner.shape[0]):
        part = inner[i][::2]
        part += i
        inner[i, ::-1][:2] = 7
    return m, inner


def scalar_fill(a, n):
    for k in range(n):
        a[k] = k
        a[k:] = k + 0.75
    return a


def typed(a, n):
    b = np.zeros_like(a)
    for k in range(n):
        b[k] = a[k] * a[0] + a[-1]
        b += a
    return b, b.sum(), b[0], b.dtype


def bitwise(a, n):
    b = a.copy()
    for k in range(1, n):
        b ^= a >> (k % 3)
        b |= a[k] & 3
        b[k] <<= 1
        b = ~b
    return b


def outs(a, n):
    t = np.empty_like(a)
    for k in range(n):
        np.multiply(a, k + 1, out=t)
        np.add(t, a, out=a)
        np.minimum(a, 100, out=a)
    return a, t


def reductions(m):
    out = []
    for k in range(m.shape[0]):
        row = m[k]
        out.append(row.sum() + row.max() - row.min() + row.argmax() + row.mean())
        out.append(np.sum(m[:, k % m.shape[1]]) + m.any())
    return out, m.sum(axis=0), m.max(axis=1)


def accumulations(a, n):
    b = a
    for k in range(n):
        b = np.cumsum(b)
        b = b - np.roll(b, k) / 2
        b = np.where(b > 50, 0, b)
        b = np.clip(b, -20, 20)
    return b


def rolled(m, k):
    out = []
    for i in range(-1, 2):
        m = np.roll(m, (i, k), axis=(0, 1)) + np.roll(m, (k * i, 1), (-1, 0))
        m = np.roll(m, k, axis=(1, 0)) - np.roll(m, (k, i * 3), 1)
        out.append(np.roll(m, (k, 2, k), (0, 1, 0)) * np.roll(m, (0, 0), (0, 1)))
        out.append(np.roll(m.T, (i, k), (0, 1))[:, ::2])
    return m, out


def pointwise(a, n):
    b = a
    for _ in range(n):
        b = np.sqrt(np.abs(b)) + np.floor(b) - np.maximum(b, 0) / 3
    return b


def transcendental(a, n):
    b = a
    for _ in range(n):
        b = np.exp(-np.abs(b)) + np.sin(b) * np.cos(b) + np.tanh(b)
    return b


def products(a, v, n):
    for _ in range(n):
        v = a @ v
        v = v / np.sqrt(v @ v)
    return v, v @ a @ v


def powers(a, n):
    out = np.zeros_like(a)
    for k in range(n):
        out += a**k + a**2 - a**0.5
    return out


def without_axes(x, n):
    s = np.array(2.0)
    for _ in range(n):
        s = s * x
    return s


def three_axes(t):
    for i in range(t.shape[0]):
        for j in range(t.shape[1]):
            t[i, j] = t[i, j][::-1] + t[i - 1, j, 0]
        t[i, :, 0] = t[..., -1].sum(axis=0)
    return t


def reshaped(a, n):
    m = a.reshape(-1, 2)
    for k in range(n):
        m[k, 0] += m[k, 1]
        a[k] -= 1
    return m.ravel(), m.T[0], a


def both(a, b, n):
    for k in range(n):
        a[k] = b[-k - 1] + 1
        b[k] = a[k] * 2
    return a


def division_by_zero(a, b, n):
    for k in range(n):
        a[k] = a[k] / b[k]
        a[k] = a[k] // b[k] + a[k] % b[k]
    return a


W = np.array([0.5, 2.0, -1.0])
V = np.array([1.0, 2.0, 3.0])
IDX = np.array([2, 0, 2, -1])
BOUNDS = np.array([0, 2, 5, 9, -1, -3, -20])


def merged_windows(x, n):
    s = 0.0
    for k in range(n):
        w = x[k : k + 2, 1:3].reshape(4, 3)
        s += w.max(axis=0).sum() * k
        v = x[k, 1:3, :2].reshape(-1)
        v[0] = 7
        s += v[1] - v[-1]
    return s, x


def windows_of_a_shape(x, n, a, b):
    for k in range(n):
        w = x[:, k : k + 2].reshape(a, b)
        w += 1
    return x, w


def masks_of_two_axes(f, w, n):
    for k in range(n):
        b = f[:, w]
        b = b[[1, 0]]
        f[:, w] = b * k
        f[1, w] += 2
        f[:, ~w] -= 1
    return f, b


def masks_in_front(f, w, n):
    for k in range(n):
        f[w, k] += f[w, 0].sum()
    return f


def masks_of_rows(f, w):
    s = 0.0
    for k in range(len(f)):
        s += f[k, w].sum()
        f[k, w] = k
    return s, f


CUBE = np.random.default_rng(1).normal(size=(6, 5, 3))
MASK = np.random.default_rng(2).random((5, 3)) > 0.5


def copied_to(x, y):
    total = 0.0
    for k in range(3):
        np.copyto(x, y + k)
        np.copyto(x[1:], 0.5, where=y[1:] > 0.5)
        np.copyto(x, y * 2, where=y < 0.2)
        np.copyto(x[k + 1 :], x[: -k - 1])
        total += x[k]
    return x, total


def copied_whole(x, y):
    total = 0
    for k in range(3):
        np.copyto(x, y)
        total += x[0]
        x[k] += 1
    return x, total


def copied_where(x, y, mask):
    for k in range(3):
        np.copyto(x, y, where=mask)
        x[k] += 1
    return x


def test_copyto_as_numpy_casts():
    x, n = line(9), np.arange(-4, 5)
    values = (1, 1.5, True, 300, -1, 1e300, np.float32(2), np.float64(2.5), np.int8(3), 2j, "a")
    for dtype in ("f8", "f4", "i8", "i1", "u1", "c16", "?"):
        for value in values:
            check_whatever_leaves(copied_whole, [(x.astype(dtype), value)])
    check_whatever_leaves(copied_whole, [(n.copy(), x), (x, n), (x, x[:3]), (x[:3], x[None, :3])])
    wide = np.outer(x, x)
    for y, mask in ((1.0, True), (1.0, n), (wide, wide > 0), (1.0, wide > 0), (x[:3], n > 0)):
        check_whatever_leaves(copied_where, [(x, y, mask)])


CASES = [
    exact(copied_to, (line(9), line(9)[::-1].copy())),
    exact(copied_whole, (line(9), 1), (line(9), 1.5), (np.arange(5), 7), (line(4), line(1)),
          (line(9), np.arange(9))),
    exact(copied_where, (line(9), 2.0, line(9) > 0), (np.eye(3), line(3), line(3)[:, None] > 0)),
    *(case(masks_of_rows, (CUBE[0], MASK[0, 0] ^ (np.arange(n) > 1))) for n in (2, 3, 4)),
    case(merged_windows, (CUBE, 5), (CUBE, 0)),
    *(exact(windows_of_a_shape, (CUBE[0], 2, a, b)) for a, b in ((5, 2), (2, 5), (10, 1), (1, 10))),
    exact(windows_of_a_shape, (CUBE[0], 2, -1, 1), (CUBE[0], 1, 3, 3)),
    exact(masks_of_two_axes, (CUBE, MASK, 3), (CUBE, MASK & False, 3), (CUBE, MASK | True, 1)),
    case(masks_in_front, (CUBE[:5], MASK[:, :1] & np.ones(5, bool), 0)),
    case(masks_in_front, (CUBE.transpose(1, 2, 0).copy(), MASK, 6), (CUBE, MASK, 3)),
    *rarely(exact(heat, *sizes(lambda n: (line(n), 4)))),
    exact(swapped, *sizes(lambda n: (line(n), 3)), *sizes(lambda n: (line(n), 4))),
    exact(shift_right, *sizes(lambda n: (line(n), 2))),
    exact(shift_left, *sizes(lambda n: (line(n), 2))),
    *rarely(exact(shift_left, *sizes(lambda n: (line(2 * n, "i4")[::2], 2)))),
    *rarely(exact(reverse_in_place, *sizes(lambda n: (line(n), 3)))),
    *rarely(exact(add_shifted, *sizes(lambda n: (line(n), n)))),
    exact(add_shifted, *sizes(lambda n: (line(n, "i2")[::-1], n))),
    exact(shift_rows, *sizes(lambda n: (grid(n, 4), 2)), *sizes(lambda n: (grid(2, n), 2))),
    exact(shift_rows, *sizes(lambda n: (np.asfortranarray(grid(n, 4)), 2))),
    exact(transpose_in_place, *sizes(lambda n: (grid(n, n), 2))),
    case(triangular, *sizes(lambda n: (grid(n, n) + 20 * np.eye(n), line(n)))),
    exact(negative_steps, *sizes(lambda n: (line(n), min(n, 5)))),
    case(all_slices, *sizes(lambda n: (line(n), BOUNDS))),
    exact(indices_from_the_end, *sizes(lambda n: (line(n),))),
    exact(out_of_bounds, (line(4), 4), (line(4), 7), (line(0), 1), (line(3)[::-1], 5)),
    exact(rows_are_views, (grid(3, 2),), (grid(0, 2),), (grid(2, 3).T,)),
    exact(rows_are_views, (grid(3, 2, "i4"),), (np.asfortranarray(grid(3, 2, "i4")),)),
    exact(rows_rebound, (grid(3, 2),), (grid(0, 2),)),
    case(columns, *sizes(lambda n: (grid(n, 3),)), *sizes(lambda n: (grid(3, n),))),
    *rarely(exact(outer_update, *sizes(lambda n: (grid(n, n), line(n))))),
    case(masks, *sizes(lambda n: (line(n), 3))),
    exact(index_arrays, (line(4), IDX), (line(3), IDX), (line(2), IDX), (line(9), IDX[:0])),
    exact(repeated_indices, (np.zeros(4, int), IDX), (np.zeros(2, int), IDX)),
    case(shrinking, *sizes(lambda n: (line(n),))),
    exact(growing, (0,), (1,), (4,)),
    *rarely(exact(halves, *sizes(lambda n: (line(n),)))),
    exact(broadcasting, (grid(2, 3), W, V[:2]), (grid(1, 3), W, V[:1]), (grid(2, 3), W, V),
          refused="shapes do not fit"),
    exact(whole_copies, (line(4), 3), (line(2), 3), (line(3), 1)),
    exact(alias_by_name, (line(5), 4), (line(5), 5), (line(1), 0)),
    exact(views_of_views, (grid(5, 5),), (grid(2, 2),), (grid(3, 9)[::-1],), (grid(1, 1),)),
    exact(scalar_fill, *((line(4, t), 4) for t in ("f8", "f4"))),
    exact(scalar_fill, *((line(4, t), 4) for t in ("i8", "u1"))),
    *(exact(typed, (line(4, t), 4), (line(1, t), 1)) for t in SOME_DTYPES),
    *rarely(*(exact(typed, (line(4, t), 4), (line(1, t), 1)) for t in OTHERS)),
    *(exact(bitwise, (line(4, t), 4), (line(0, t), 0)) for t in SOME_DTYPES[1:5]),
    *rarely(*(exact(bitwise, (line(4, t), 4), (line(0, t), 0)) for t in OTHERS[:4])),
    *rarely(exact(outs, *sizes(lambda n: (line(n), 3)))),
    exact(outs, *sizes(lambda n: (line(n, "i4"), 3))),
    case(reductions, (grid(3, 4),), (grid(1, 1),), (grid(9, 17).T,), (grid(0, 2),)),
    case(reductions, (grid(3, 4, "i4"),), (grid(9, 17, "i4"),), (grid(2, 0, "i4"),)),
    case(accumulations, *sizes(lambda n: (line(n), 3))),
    case(accumulations, *sizes(lambda n: (line(n, "i8"), 3)), refused="another: an array of"),
    exact(
        rolled,
        *((np.arange(24.0).reshape(s), k) for s in ((4, 6), (1, 24), (24, 1)) for k in (-7, 0, 5)),
        (np.ones((0, 3)), 2),
    ),
    exact(pointwise, *sizes(lambda n: (line(n), 3)), *sizes(lambda n: (line(n)[::-1], 3))),
    case(pointwise, *sizes(lambda n: (line(n, "f4"), 3)), rtol=1e-6),
    case(transcendental, *sizes(lambda n: (line(n), 3)), rtol=1e-13),
    case(products, *sizes(lambda n: (grid(n, n) + 99 * np.eye(n), line(n) + 20, 3))),
    case(powers, *sizes(lambda n: (np.abs(line(n)), 4)), rtol=1e-14),
    exact(without_axes, (2.5, 0), (2.5, 3), refused="one or another"),
    exact(three_axes, (np.arange(24.0).reshape(2, 3, 4),), (np.zeros((0, 2, 2)),)),
    exact(three_axes, (np.arange(24).reshape(4, 3, 2).T,), (np.zeros((2, 0, 2), int),)),
    exact(reshaped, (line(8), 4), (line(8), 5), (line(3), 1), (line(0), 0)),
    exact(division_by_zero, (line(9), line(9, seed=5), 9), (line(3), np.zeros(3), 3)),
]  # fmt: skip


def onto_next_column(x):
    for t in range(1, x.shape[1]):
        x[:, t] = 0.75 * x[:, t - 1] + 1
        x[:, t] *= 0.5
    return x[-1, -1] if x.size else 0.0


@each(CASES)
def test_arrays(c: Case) -> None:
    check(c)


@pytest.mark.parametrize(
    "make",
    [
        lambda a: (a[:6], a[2:8]),
        lambda a: (a[2:8], a[:6]),
        lambda a: (a, a),
        lambda a: (a[::-1], a),
        lambda a: (a[::2], a[1::2]),
    ],
    ids=["behind", "before", "same", "reversed", "interleaved"],
)
def test_arguments_that_share_memory(make) -> None:
    import np_compile

    fast = np_compile.compile(both)
    with whole():
        for n in (0, 3, 6):
            check_call(fast, both, (*make(np.arange(12.0)), n), 0)
            check_call(fast, both, (np.arange(12.0), np.ones(12), n), 0)


@pytest.mark.parametrize("first", [((5, 7), (8, 8)), ((5, 2), (16, 16)), ((3, 4), (0, 8))])
def test_an_argument_whose_elements_share_memory(first) -> None:
    fast = np_compile.compile(onto_next_column)
    with whole():
        for shape, strides in (
            first,
            ((4, 3), (24, 8)),
            ((3, 4), (8, 24)),
            ((0, 9), (8, 8)),
            first,
        ):
            a, b = (as_strided(np.arange(60.0), shape, strides) for _ in range(2))
            assert fast(a) == onto_next_column(b)
            np.testing.assert_array_equal(a, b)
    assert fast._reading.is_compiled


def test_what_may_not_be_written_stays() -> None:
    a = np.arange(5.0)
    a.flags.writeable = False
    check(exact(shift_right, (np.arange(5.0), 2), (a, 2), (a, 0), refused="read-only"))
    view = np.arange(10.0)[::2]
    view.flags.writeable = False
    check(exact(shift_right, (view, 2), (np.arange(10.0)[::2], 2), refused="read-only"))


def test_bytes_in_another_order_and_other_dtypes() -> None:
    check(exact(heat, (np.arange(6.0).astype(">f8"), 2), (np.arange(6.0), 2), refused="dtype >f8"))


def mean_of_doubled(x, steps):
    c = np.concatenate([x, -x + 1])
    for _ in range(steps):
        c = c * 0.5
    return c.mean(), c.std(), c.var(ddof=1), c[::2].mean()


def test_extents_that_are_multiples():
    """An extent with a factor is one number where something is divided by it."""
    check(exact(mean_of_doubled, *((line(n), k) for n in (3, 9, 40) for k in (1, 3))))


def extremes(a, b):
    for k in range(len(a)):
        a[k:] = np.fmax(a[k:], b[k:])
        b[k:] = np.fmin(b[k:], np.roll(a, 1)[k:])
    return a, b


@pytest.mark.parametrize("dtype", [d for d in DTYPES if "c" not in d])
def test_extremes_of_numbers_without_nan(dtype) -> None:
    check(exact(extremes, (line(7, dtype), line(7, dtype, 3))))


def conditions_on_new_arrays(x, bound):
    k = 0
    while k < len(x) and np.ones((len(x), 2)).max(initial=0) * (x[k:] * 2).sum() > bound:
        k += 1
        if k == 1 or np.cumsum(x[k:])[-1] < 3 or (x[k] > 2 and (x + x[k])[::-1][0] > 0):
            x[k - 1] += 1
    return k, x


def test_arrays_that_are_made_within_a_condition() -> None:
    """They are given back where it has been found out, and not where it is never asked for."""
    check(
        exact(conditions_on_new_arrays, (np.arange(7.0), 4), (np.arange(1.0), 0), (np.zeros(0), 0))
    )


def sums_of_columns(x, n):
    total = np.zeros(x.shape[1], np.int64)
    for k in range(n):
        total += x[: k + 1].sum(axis=0)
    return total


@pytest.mark.parametrize("dtype", ["?", "i2", "i4", "i8"])
def test_sums_of_few_columns_that_are_added_to_an_array(dtype) -> None:
    rows = (np.arange(160) * 7 % 101).astype(dtype)
    check(exact(sums_of_columns, *((rows[: 20 * n].reshape(20, n), 9) for n in (2, 4, 8))))


def counts_along(x, n):
    total, rows = np.zeros(x.shape[1], int), []
    for k in range(n):
        total += np.count_nonzero(x[: k + 1], axis=0)
        rows.append(np.count_nonzero(x[k], axis=0))
        rows.append(np.count_nonzero(x[:, k % x.shape[1]] > k))
        total[k % len(total)] += np.count_nonzero(x > k, axis=1, keepdims=True)[0, 0]
    return total, rows, np.count_nonzero(x.T, axis=(0, 1)), np.count_nonzero(x, keepdims=True)


@pytest.mark.parametrize("dtype", ["f8", "i4", "?"])
def test_counts_along_axes(dtype) -> None:
    x = (np.arange(24).reshape(6, 4) % 5).astype(dtype)
    check(exact(counts_along, (x, 4), (x[::2, ::-1], 3), (x[:1, :1], 1)))


def rows_of_others(x, n):
    """Of two rows by their numbers all is the same, or nothing."""
    for i in range(n):
        for k in range(n):
            x[i] = np.minimum(x[i], x[i, 1] - x[k] * 2)
            x[:, i] += x[:, k]
            x[i, 1:] = x[k, :-1] + x[i, 1:]
            x[k, ::-1] = x[i]
    return x


def test_rows_that_may_be_one() -> None:
    check(exact(rows_of_others, (grid(5, 5), 5), (grid(12, 12, "i8"), 10), (grid(1, 2), 1)))


def test_rows_that_may_be_one_are_not_copied() -> None:
    def least(x, n):
        for i in range(n):
            for k in range(n):
                x[i] = np.minimum(x[i], x[i, k] + x[k])
        return x

    fast = check(exact(least, (grid(12, 12), 12)))
    assert "allocate(rt, 12" not in fast._reading.texts()[0]


def places_of_extremes(x, n):
    columns, halves, rows = [], [], []
    for k in range(n):
        columns.append(x.argmax(axis=0))
        columns.append(np.argmin(x, axis=0))
        halves.append(x.reshape(2, -1, x.shape[1]).argmax(1))
        rows.append(x[:, ::-1].argmin(axis=1))
        x = np.minimum(x, x[k])
    return columns, halves, rows


@pytest.mark.parametrize("dtype", ["f8", "u1", *thorough("f4", "i8")])
def test_where_extremes_are_along_axes(dtype) -> None:
    """The first of equal ones, and of NaN; in rows of four and eight, which are vectors, too."""
    grids = [grid(n, m, dtype) for n, m in ((4, 4), (6, 8), (2, 3), (12, 40))]
    if dtype.startswith("f"):
        for x in grids:
            x[1, ::2] = np.nan
            x[0, 1::3] = np.nan
            x[-1, 1] = -0.0
    check(exact(places_of_extremes, *((x, 3) for x in grids)))


def test_choices_of_few_are_vectors() -> None:
    def pooled(x, n):
        out = np.zeros((n, 4), dtype=np.float32)
        at = np.zeros((n, 4), dtype=np.int8)
        for k in range(n):
            window = x[2 * k : 2 * k + 4]
            out[k] = window.max(axis=0)
            at[k] = window.argmax(axis=0)
        return out, at

    x = grid(22, 4, "f4")
    x[3, 1] = x[8, 2] = x[9, 2] = np.nan
    fast = check(exact(pooled, (x, 10)))
    assert "#pragma omp simd safelen(8)" in fast._reading.texts()[0]


def test_sums_that_run_begin_with_the_first_value() -> None:
    def running(x, y, n):
        made = [np.cumsum(x[k:]) for k in range(n)]
        return made, np.cumsum(y, axis=1), np.cumprod(x), n

    fast = np_compile.compile(running)
    with whole():
        for dtype in ("f4", "f8", "c16"):
            x, y = np.full(5, -0.0, dtype), np.full((2, 3), -0.0, dtype)
            (made, *got), (wanted, *want) = fast(x, y, 4), running(x, y, 4)
            for a, b in zip([*made, *got[:2]], [*wanted, *want[:2]], strict=True):
                assert a.tobytes() == b.tobytes()
    assert fast._reading.is_compiled


def _clips(flags, small, wide, halves):
    for _ in range(2):
        a, b, c = np.clip(flags, 0, wide), np.clip(small, wide, 3), np.clip(3, small, wide)
        d, e, f = (
            np.clip(2.5, halves, 4),
            np.clip(small, 1, halves),
            np.clip(small, np.int8(7), None),
        )
    return a, b, c, d, e, f


def test_bounds_of_several_dtypes():
    """The dtype is that of all at once, not of one bound after the other."""
    fast = np_compile.compile(_clips)
    args = (
        np.array([True, False]), np.array([5, -7], "i1"), np.array([3, 1], "i4"),
        np.array([0.5, 2], "f4"),
    )  # fmt: skip
    with whole():
        got, want = fast(*args), _clips(*args)
    assert fast._reading.is_compiled
    for x, y in zip(got, want, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def dtypes_said(x, y):
    total = np.zeros(2, np.result_type(x, y, 1.5))
    for i in range(len(x)):
        total[0] += x[i]
        if np.issubdtype(x.dtype, np.integer) and np.can_cast(y.dtype, x.dtype):
            total[1] += y[i]
        if x.dtype in (np.float32, np.float64) or type(x[i]) is np.int8 or np.iscomplexobj(y):
            total[1] -= 1
    promoted = np.promote_types(x.dtype, "f4")
    return total, promoted, np.result_type(x[0], 2), np.isrealobj(x), type(x) is np.ndarray


def at_least(x):
    total = 0.0
    for i in range(len(x)):
        rows = np.atleast_2d(x)
        total += rows[0, i] + np.atleast_1d(x[i])[0] + np.atleast_1d(x)[i] + rows.nbytes
    return total, np.atleast_2d(total), np.atleast_1d([1, 2]), np.atleast_1d(True)


@whole()
def test_what_numpy_says_of_dtypes():
    pairs = [("f8", "f4"), ("i1", "i1"), ("f4", "c8"), ("i8", "u1"), ("b1", "f4")]
    for a, b in pairs:
        check(exact(dtypes_said, (line(4, a), line(4, b))))


@whole()
def test_at_least_so_many_axes():
    check(exact(at_least, (line(4),), (line(3, "f4"),)))


def ranges_of_dtypes(n, first):
    for _ in range(2):
        a = np.arange(1, 9, 2, dtype=complex)
        b = np.arange(first, first + n, dtype=np.complex64)
        c = np.arange(first, n, 100, dtype=np.int8)
        d = np.arange(first, first + n, dtype=np.uint16)
        e = np.arange(first, first + n, 3, dtype=np.uint64)
        f = np.arange(n, dtype=bool)
    return a, b, c, d, e, f


def test_ranges_of_dtypes():
    """The first two numbers of a range have to be of its dtype; of booleans there are two."""
    check(exact(ranges_of_dtypes, (2, 0), (1, 5), (0, -3)))
    calls = [(3, 0), (2, -1), (1, -1), (2, 65535), (1, 65535), (1, 130), (400, 0), (1, 65536)]
    check_whatever_leaves(ranges_of_dtypes, calls)


def extremes_of_elements(x):
    found = 0
    for k in range(2):
        found = found + max(x) * 2 - min(x[k:])
    return found


def test_extremes_of_complex_elements():
    check(exact(extremes_of_elements, (np.array([2.0, 3.0, 1.0]),)))
    x = np.array([2 + 1j, 3 - 1j, 1j])
    check(exact(extremes_of_elements, (x,), refused="of complex numbers"))
