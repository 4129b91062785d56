"""Small arrays made in loops: on the stack, or in memory where somebody holds on to them."""

from __future__ import annotations

import numpy as np

import np_compile

from .support import Case, check, each, exact, whole

X = np.array([[1.5, -2.0, 0.25], [0.5, 3.0, -1.0], [2.0, 2.0, 1.0], [-4.0, 0.5, 8.0]])


def pairs(x):
    """The sum of what pairs are apart, and the least distance."""
    total, least = np.zeros(3), 1e300
    for i in range(len(x)):
        for j in range(i):
            d = x[i] - x[j]
            total += d / np.sqrt(np.dot(d, d))
            least = min(least, np.dot(d, d))
    return total, least


def left_behind(x, limit):
    """Where it leaves, Python is given the array, and views of it."""
    found = []
    for i in range(len(x)):
        d = x[i] * 2.0
        tail = d[1:]
        back = d[::-1]
        tail[0] += 1.0
        if i == limit:
            raise ValueError(f"{d} {tail} {back}")
        found.append(float(d[1] + back[0]))
    return found


def index_error(x, k):
    """An exception in the middle: the names hold what they held."""
    d = tail = None
    try:
        for i in range(len(x)):
            d = x[i] + 1.0
            tail = d[1:]
            d[2] = x[i, k[i]]
            tail[0] = -1.0
    except IndexError as e:
        return str(e), d, tail, tail is not None and tail.base is d
    return "", d, tail, tail is not None and tail.base is d


def last_one(x):
    """A name that is asked for behind the loop."""
    for i in range(len(x)):
        d = x[i] - 1.0
    return d


def of_items(y, mu, n):
    """Arrays of written lists: of constant size, whatever their items are."""
    total = np.zeros(2)
    for k in range(n):
        f = np.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])
        total = total + np.array([1, k], dtype=np.float32) * f
        total = (
            total
            + (np.array([[1, 0.5], [k, True]]) * f).sum(axis=0)
            - np.sum([[k, 1], [2, 3]], axis=0)
        )
        total = np.maximum(total, [k, -1.0]) + np.array((np.array([k, 2]).sum(), mu))
        y = y + 0.01 * f
    return total, y, f


def kinds_of_items(x, n):
    for k in range(n):
        a, b, c = np.array([k, 2]), np.array([True, x[0] > k]), np.array([1j, x[k]])
        d, e, f = np.array([x[0], 1]), np.asarray([k]), np.array([[x[0]], [x[1]]])
        g = np.array([np.float32(k), np.int8(3)])
        if k == n - 1:
            return a, b, c, d, e, f, g
    return None


def kept_item(x, n):
    """Each iteration's array is one of its own."""
    was = now = np.array([0.0, 0.0])
    for k in range(n):
        was, now = now, np.array([x[k], float(k)])
        now[0] += was[1]
    return was, now, was is now


def in_a_list(x):
    held = []
    for i in range(len(x)):
        d = x[i] * x[i]
        held.append(d)
        d[0] = i
    return held


def handed_on(x, n):
    """Each iteration makes the array of the next one."""
    v = np.ones(3)
    for i in range(n):
        force = v * x[i % len(x)]
        v = v + 0.1 * force
        force[:] = 0.0
    return v


def zeros(x):
    total = np.zeros(4)
    for i in range(len(x)):
        count = np.zeros(4, dtype=np.int8)
        pair = np.zeros((2, 2))
        for k in range(3):
            count[k] += 1 if x[i, k] > 0 else 0
            pair[k % 2, k // 2] += x[i, k]
        total += count
        total += pair.ravel()
    return total


def rows(x, y):
    """In a loop whose iterations threads may share."""
    for i in range(len(x)):
        m = np.array([[x[i, 0], x[i, 1]], [x[i, 1], x[i, 2]]])
        y[i] = m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
        t = m @ m
        y[i] += t[0, 1]
    return y


def of_flags(x):
    n = 0
    for i in range(len(x)):
        above = x[i] > 0
        if above.all() or not above.any():
            n += 10
        n += int(np.count_nonzero(above))
    return n


def nested(x):
    """Made outside an inner loop, used in it."""
    s = 0.0
    for i in range(len(x)):
        d = x[i] * 2
        for j in range(len(x)):
            for k in range(3):
                d[k] += x[j, k]
                s += d[k]
    return s


CASES = [
    exact(pairs, (X,), (X[:1],), (X[:0],)),
    exact(left_behind, (X, 9), (X, 2), (X, 0)),
    exact(index_error, (X, np.array([0, 1, 2, 0])), (X, np.array([0, 1, 3, 0])), (X[:0], X[0])),
    exact(last_one, (X,), (X[:0],)),
    exact(in_a_list, (X,), (X[:0],)),
    exact(handed_on, (X, 7), (X, 0)),
    exact(zeros, (X,), (X[:0],)),
    exact(rows, (X, np.zeros(4)), (X, np.zeros(3))),
    exact(of_flags, (X,), (np.abs(X),), (X[:0],)),
    exact(nested, (X,), (X[:0],)),
    exact(of_items, *((X[0, :2], 3.0, n) for n in (0, 1, 2, 9))),
    exact(kinds_of_items, *((X[0], n) for n in (0, 1, 3))),
    exact(kept_item, *((X[0], n) for n in (0, 1, 2, 3)), (X[0], 5)),
    exact(of_flags, (np.ones((3, 40)),), (np.ones((3, 90_000)),)),
]


@each(CASES)
def test_small_arrays(c: Case) -> None:
    check(c)


@each(CASES)
def test_shared_by_threads(c: Case, monkeypatch) -> None:
    monkeypatch.setattr("np_compile.reader.threads.WORTH", 0)
    check(c)


def sums_of_bytes(x):
    """One byte an element, and more of them than a stack has room for."""
    for i in range(len(x)):
        d = x[i] + 1
        x[i] = d
        if i == 2:
            break
    return d


def test_where_they_are() -> None:
    wide = np.ones((4, 200_000), np.int8)
    for f, args, on_stack in (
        (pairs, (X,), True),
        (in_a_list, (X,), False),
        (nested, (X,), True),
        (of_flags, (X,), True),
        (of_flags, (np.ones((4, 20)),), False),
        (sums_of_bytes, (wide,), False),
    ):
        with whole():
            fast = np_compile.compile(f)
            fast(*args)
            (made,) = np_compile.inspect(fast)(*args)
        assert ("own_p_" in made.output) == on_stack, f
