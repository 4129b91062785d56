"""What whole programs hold beside loops: methods of ufuncs, axes that are moved, windows, imports,
`*` in targets, comprehensions that change something."""

from __future__ import annotations

import heapq
import math

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from .support import case, check, check_whatever_leaves, each, exact

RNG = np.random.default_rng(11)
X = RNG.random((5, 6))
V = RNG.random(9)
AT = RNG.integers(-5, 5, 30)
TO = RNG.integers(-6, 6, 30)


# Methods of ufuncs


def scattered(a, i, v, n):
    for _ in range(n):
        np.add.at(a, i, v)
        np.subtract.at(a, i, 0.5)
    return a


def scattered_to_pairs(a, i, j, v, n):
    for _ in range(n):
        np.add.at(a, (i, j), v)
        np.maximum.at(a, (i, j), 0.25)
    return a


def onto_itself(a, n):
    for _ in range(n):
        np.add.at(a, np.array([0, 1, 0]), a[:3])
    return a


def reduced(x, n):
    s = x[0] * 0.5
    for k in range(n):
        y = np.add.reduce(x)
        z = np.minimum.reduce([x[0], x[1], y])
        w = np.maximum.accumulate(x, axis=1)
        u = np.add.accumulate(x)
        v = np.multiply.reduce(x, axis=1)
        o = np.subtract.outer(x[0, :4], x[:4])
        q = np.logical_and.reduce(x > 0.001)
        m = np.minimum.accumulate(x[0])
        b = np.bitwise_or.reduce((x * 100).astype(int), axis=None)
        s = s + z + k
    return y, z, w, u, v, o, s, q, m, b


NAN = np.where(X < 0.3, np.nan, X)


@each([
    exact(scattered, (np.zeros(10), AT, V[:3].repeat(10), 3), (np.zeros(10), AT, 2.0, 2)),
    exact(scattered, (np.zeros((10, 4)), AT.reshape(3, 10), V[:4], 2)),
    exact(scattered, (np.zeros(10, "f4"), AT, V[:3].repeat(10), 3)),
    exact(scattered, (np.zeros(10), [1, 2, 1], [2.0, 3.0, 1.0], 3)),
    exact(scattered, (V.copy(), V > 0.5, 2.0, 3)),
    exact(scattered_to_pairs, (X.copy(), AT, TO, V[:3].repeat(10), 3)),
    exact(onto_itself, (V.copy(), 2)),
    exact(scattered, (np.arange(10), AT, 1.5, 3), refused="such dtypes"),
    case(reduced, (X, 2), (NAN[:4, :5], 2)),
    case(reduced, (X.astype("f4"), 2)),
    case(reduced, (np.arange(20, dtype=np.int8).reshape(4, 5), 2)),
])  # fmt: skip
def test_methods_of_ufuncs(c):
    check(c)


def test_at_checks_all_indices_before():
    check_whatever_leaves(
        scattered,
        [(np.zeros(10), np.array([1, 2, 11]), 1.0, 2), (np.zeros(10), AT, np.ones(29), 2)],
    )


# Axes, windows, diagonals


def moved(x, n):
    t = 0.0
    for k in range(n):
        y = np.moveaxis(x, 0, -1)
        z = x.swapaxes(1, 2)
        w = np.moveaxis(x, (0, 1), (1, 2))
        q = np.squeeze(x[:1], 0)
        y[0, 0] += k
        t += z[0, 0, 0] * w[0, 0, 0] + q.sum()
    return y, z, w, q, t


def windows(x, n, m):
    s = 0.0
    for _ in range(n):
        w = sliding_window_view(x, (m, 2))
        v = sliding_window_view(x[0], m)
        u = sliding_window_view(x, m, axis=1)
        s += w.min(axis=(-2, -1)).sum() + v.mean(axis=-1)[0] + u.max()
        x[0, 0] += 1
    return w.sum(axis=(2, 3)), v, u, s


def strided(p, n):
    s = 0.0
    for _ in range(n):
        shape = (p.shape[0] - 2, p.shape[1] - 2, 3, 3)
        w = as_strided(p, shape=shape, strides=p.strides + p.strides)
        s += w.max(axis=(2, 3)).sum()
        p[1, 1] += 1
    return w, s


def written_where_elements_meet(p, n):
    for _ in range(n):
        w = as_strided(p, shape=(3, 2), strides=(8, 8))
        w[:] += 1
    return w, p


def diagonals(a, n):
    for k in range(n):
        np.fill_diagonal(a, k + 0.5)
        a[0, 1] += a[k % 3, k % 3]
    return a


def largest_ones(a, n):
    out = []
    for _ in range(n):
        i, j = np.unravel_index(np.argmax(a), a.shape)
        out.append((int(i), int(j)))
        a[i, j] = -1.0
    return out, i, a


def in_three_axes(a, n):
    s = 0
    for k in range(n):
        t = np.unravel_index(k, a.shape)
        s += int(t[0]) * 100 + int(t[1]) * 10 + int(t[2])
        a[t] = k
    return s, t


CUBE = RNG.random((3, 4, 5))


@each([
    exact(moved, (CUBE.copy(), 3), (np.asfortranarray(CUBE), 3)),
    case(windows, (X.copy(), 2, 3)),
    case(strided, (X.copy(), 2), (X.T, 2), (X[::-1, ::2].copy(), 2)),
    exact(written_where_elements_meet, (V.copy(), 2), refused="read-only"),
    exact(diagonals, (X.copy(), 4), (X.T.copy(), 4), (np.arange(20).reshape(4, 5), 4)),
    exact(largest_ones, (X.copy(), 3)),
    exact(in_three_axes, (CUBE.copy(), 60)),
])  # fmt: skip
def test_axes_and_windows(c):
    check(c)


def test_what_does_not_fit():
    whole_numbers = np.round(X * 64)
    check_whatever_leaves(windows, [(whole_numbers, 2, 2), (whole_numbers, 2, 6)])
    check_whatever_leaves(in_three_axes, [(CUBE.copy(), 61)])


# Views that other functions give are of their argument's memory


def turned(x, n):
    s = 0.0
    for k in range(n):
        r = np.rot90(x, 2)
        r[:] = x + k
        s += x[0, 1]
    return s, r, x


def conjugates(x, n):
    s = 0.0
    for k in range(n):
        y = x.conj()
        y[k] = 5.0
        s += x.sum()
    return s, y, x


@each([exact(turned, (X.copy(), 3)), case(conjugates, (V.copy(), 3), (V + 1j, 3))])
def test_views_of_others(c):
    check(c)


# out= with where=


def under(a, b, n):
    out = np.zeros_like(a)
    for _ in range(n):
        np.divide(a, b, out=out, where=b > 0.5)
        np.add(a, out, out=a, where=b < 0.2)
        np.subtract(a, 1, a, where=b[0] > 0.3)
    return a, out


@each([exact(under, (X.copy(), X[::-1].copy(), 2), (X.astype("f4"), X[::-1].copy(), 2))])
def test_out_under_a_mask(c):
    check(c)


# Concatenation in brackets


def in_brackets(x, n):
    s = 0.0
    for k in range(n):
        a = np.r_[0:k, k + 1 : len(x)]
        b = np.r_[0.5, x, 1]
        c = np.r_[x[:2], a, k]
        d = np.c_[x, x * 2]
        e = np.r_[1:10:2, 7]
        s += b.sum() + c.sum() + d.sum() + e.sum()
    return a, b, c, d, e, s


@each([case(in_brackets, (V, 3), (V.astype("f4"), 3), (np.arange(5), 3))])
def test_brackets(c):
    check(c)


def grids(n, m):
    y, x = np.mgrid[:n, 1:m]
    a, b = np.ogrid[:n, 1:m]
    k = np.mgrid[2:m]
    s = 0
    for i in range(n):
        s += y[i, 0] * x[i, i] + a[i, 0] * b[0, i] + k[i]
    y[0] = 7
    return y, x, a, b, k, s


@each([case(grids, (3, 9), (4, 12), (3, 1))])
def test_grids(c):
    check(c)


# A generator over a tuple whose items have types of their own


def taken_apart(d, n, u):
    a, b, c = (np.negative(d[k]) for k in ("p", "q", "r"))
    v, w = (k * 2 for k in (u, n))
    s = 0.0
    for i in range(n):
        s += a[i] * b[i, 0] - c[0, i, 0]
    return a, b, c, s, v, w


D = {"p": V, "q": np.ones((len(V), 2)), "r": np.arange(2.0 * len(V)).reshape(1, -1, 2)}


@each([case(taken_apart, (D, 3, 1.5), (D, 4, 2))])
def test_a_generator_of_several_types(c):
    check(c)


def quotients(a, b, n):
    found = []
    for i in range(len(a)):
        found.append(divmod(a[i], b[i]))
        found.append(divmod(a[i], n))
    return found


N, M = np.arange(-4, 5), np.array([2, -3, 1, -1, 5, -2, 3, 4, -7])


@each(
    [
        case(quotients, (N, M, 3), (N, M, -4)),
        case(quotients, (N.astype("i1"), M, 3), (N.astype("i1"), M, -2)),
    ]
)
def test_divmod_of_integers(c):
    check(c)


# Statements


def imported_here(x, n):
    import heapq as queue
    from math import floor as down

    h = []
    for i in range(n):
        queue.heappush(h, (x[i], i))
    s = 0
    while h:
        v, i = queue.heappop(h)
        s += i * down(v * 10)
    return s


def imported_before_it_leaves(x, n):
    import math as m

    s = 0.0
    for i in range(n):
        s += m.sqrt(x[i])
    return m.floor(s), {"by": m}


def starred(x, n):
    s = 0.0
    for k in range(n):
        a, *rest = x[0], x[1], x[2] * k
        _, *mid, z = (1, 2, 3, 4, k)
        coef, *_ = np.linalg.lstsq(x[:, None], x, rcond=None)
        s += a + len(rest) + mid[1] + z + coef[0]
    return s, rest, mid


def gates(z, n):
    h = np.zeros((z.shape[0], 2))
    for _ in range(n):
        i, f, o = (z[:, j * 2 : (j + 1) * 2] for j in range(3))
        h = f * h + i * o
    return h


def one_way_or_another(x, lab, n):
    c = x[:3]
    for _ in range(n):
        c = np.array([x[lab == j].mean(0) if np.any(lab == j) else c[j] for j in range(3)])
    return c


def counted_from(x, n):
    s = 0.0
    for k, v in enumerate(x, start=n):
        s += k * v
    for j, (a, b) in enumerate(((1, 2), (3, 4)), start=1):
        s += j * a * b
    return s


def twice_as_long(x, n):
    for _ in range(n):
        out = np.zeros(2 * len(x))
        out[::2] = x + 1
        x = out
    return x


def gammas(x):
    s = 0.0
    for v in x:
        s += math.lgamma(v)
    return s


LAB = RNG.integers(0, 2, 5)


@each([
    exact(imported_here, (V, 9)),
    exact(imported_before_it_leaves, (V, 9)),
    case(starred, (V[:3], 3)),
    exact(gates, (X, 3)),
    exact(one_way_or_another, (X, LAB, 2), (X, LAB + 1, 2)),
    exact(counted_from, (V, 3)),
    exact(twice_as_long, (V, 4)),
    case(gammas, (V * 9,)),
])  # fmt: skip
def test_statements(c):
    check(c)


# Comprehensions that change something are loops of statements


def united(pairs, n):
    parent = list(range(n))

    def find(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    out = []
    for a, b in pairs:
        roots = [find(int(v)) for v in (a, b)]
        low = min(roots)
        for q in roots:
            parent[q] = low
        out.append(sum(find(i) for i in range(n)))
    return [find(i) for i in range(n)], out, parent


def drawn(seed, n):
    rng = np.random.default_rng(seed)
    return drawn_by(rng, n), rng.random()


def drawn_by(rng, n):
    s = 0.0
    for k in range(n):
        x = np.array([rng.normal() for _ in range(5)])
        y = [rng.random() * i for i in range(4) if i != k % 4]
        z = np.array([[rng.random() for _ in range(3)] for _ in range(2)])
        s += x.sum() + sum(y) + z[0, 1]
    return s, x, y, z


def in_order(v):
    h = []
    for x in v:
        heapq.heappush(h, x)
    return [heapq.heappop(h) for _ in range(len(h))], h


def fails_within(v, n):
    seen = []

    def note(i):
        seen.append(i)
        return v[i]

    s = 0.0
    for k in range(n):
        s += sum([note(i + k) for i in range(3)])
    return s, seen


def heaps(v, n):
    h = [v[i] for i in range(n)]
    t = [(v[i], i) for i in range(n)]
    heapq.heapify(h)
    heapq.heapify(t)
    s = 0.0
    while len(h) > 2:
        s = s * 0.5 + heapq.heappop(h)
    return s, h, t


@each([
    exact(united, (RNG.integers(0, 12, (9, 2)), 12)),
    case(drawn_by, (np.random.default_rng(3), 4)),
    exact(in_order, (V,)),
    exact(fails_within, (V, 4)),
    exact(heaps, (V, 9), (np.arange(12)[::-1] % 5, 12)),
])  # fmt: skip
def test_comprehensions_that_change_something(c):
    check(c)


def test_a_comprehension_that_fails():
    check_whatever_leaves(fails_within, [(V, 4), (V, 9), (V[:4], 9)])


# Draws that a generator does not have


def of_another_generator(rng, n):
    return sum(int(rng.integers(5)) for _ in range(n))


def test_a_method_of_the_other_kind_of_generator():
    legacy = np.random.RandomState(0)
    check_whatever_leaves(of_another_generator, [(np.random.default_rng(0), 3), (legacy, 3)])


# Names of comprehensions that are others' outside of them


K = 5.0


def of_a_global(x):
    s = 0.0
    for i in range(len(x)):
        t = [K + 0 for K in range(3)]
        s += x[i] * t[1]
    return s + K


def of_a_global_in_python(x):
    s = 0.0
    for i in range(len(x)):
        t = [K + 0 for K in range(3)]
        s += x[i] * t[1]
    text = str(s)
    return text, (lambda: K)(), [K + 0 for K in range(2)]


def around(c):
    def of_a_function_around(x):
        s = 0.0
        for i in range(len(x)):
            t = {c: x[i] * c for c in range(3)}
            s += t[1]
        return np.array([s + c])

    return of_a_function_around


def of_nothing(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * len([nothing + 0 for nothing in range(3)])
    return s + nothing  # noqa: F821


def bound_by_a_statement_too(x):
    s = 0.0
    for i in range(len(x)):
        t = [K + 0 for K in range(3)]
        if x[i] > 9:
            K = 2.0
        s += x[i] * t[1]
    return s + K


@each([
    exact(of_a_global, (V,)),
    exact(of_a_global_in_python, (V,)),
    exact(around(3.0), (V,)),
    exact(of_nothing, (V,)),
    exact(bound_by_a_statement_too, (V,), (V + 9,)),
])  # fmt: skip
def test_names_of_comprehensions(c):
    check(c)


# Names of NumPy's and of `math` that are less common


def of_choices(x, n):
    s = np.zeros(3)
    for k in range(n):
        low, high = np.amin(x), np.amax(x, axis=0)
        w = x[k, :3]
        s += np.select([w < 0.3, w < 0.6], [w, w * 2], default=-1) + high[:3] - low
        order = np.argsort(x, axis=1)
        s += np.take_along_axis(x, order, axis=1)[k, :3]
        s += np.take_along_axis(x, order[:1] // 2, 0)[0, :3]
        s += np.take_along_axis(x, np.argmax(x, axis=1)[:, None], axis=-1)[k]
        s += np.select([s[0] < k, x[k, 0] < 0.5], [1.0, s[1]], -1)
    return s


def flipped(x, n):
    y = x.copy()
    for k in range(n):
        y = y + np.flipud(x) * np.fliplr(y)
        np.flipud(y)[0] = k
        np.fliplr(x)[k] += 1
    return y, np.flipud(x[0])


def remainders(x, y):
    found = []
    for v in x:
        found.append(math.fmod(v, y))
        found.append(math.atanh(v / 16) + math.acosh(v + 17))
    return found


ODD = np.array([1.5, -7.25, 0.0, -0.0, 3, 16])


@each([case(of_choices, (X, 2)), exact(flipped, (X, 2)), exact(remainders, (ODD[:5], 2.5))])
def test_less_common_names(c):
    check(c)


def test_errors_of_less_common_names():
    check_whatever_leaves(remainders, [(ODD, 2.0), (ODD[:5], 0.0), (ODD[:5], np.inf)])
    check_whatever_leaves(remainders, [(np.array([np.inf]), 2.0), (ODD[:5], np.nan)])
    check_whatever_leaves(flipped, [(V, 1)])


# A choice between what has no value in the first iteration


def smoothed(x, a):
    out = np.zeros(len(x))
    steps = []
    for i in range(len(x)):
        v = x[i] if i == 0 else a * x[i] + (1 - a) * v  # noqa: F821
        out[i] = v
        step = None if i == 0 else x[i] - previous  # noqa: F821
        previous = x[i]  # noqa: F841
        steps.append(step)
    return out, steps


def not_set_first(x):
    s = 0.0
    for i in range(len(x)):
        v = v + x[i] if x[i] > 0.5 else x[i]  # noqa: F821
        s += v
    return s


def test_choices_with_names_that_are_set_in_them():
    check(exact(smoothed, (V, 0.5), (V[:1], 0.25)))
    check_whatever_leaves(smoothed, [(V[:0], 0.5), (V, 1)])
    check_whatever_leaves(not_set_first, [(np.sort(V),), (np.sort(V)[::-1],)])
