"""Loops over `np.ndindex` and `np.ndenumerate`."""

from __future__ import annotations

import numpy as np

import np_compile

from .support import Case, case, check, check_call, each, exact, whole


def grid(n, m):
    return np.random.default_rng(n * m).standard_normal((n, m))


def neighbours(a):
    n, m = a.shape
    out = np.zeros(a.shape, a.dtype)
    for i, j in np.ndindex(a.shape):
        for d in (-1, 1):
            out[i, j] += a[(i + d) % n, j] + a[i, (j + d) % m]
    return out


def maxima(a):
    found = []
    for i, j in np.ndindex(*a.shape):
        if 0 < i < a.shape[0] - 1 and j > 0 and a[i, j] == a[i - 1 : i + 2, j].max():
            found.append((i, j))
    return found


def three(n, m):
    total = 0
    for place in np.ndindex(n, 2, m):
        total += place[0] * place[1] - place[2]
    return total, place


def one_extent(n):
    places = []
    for (i,) in np.ndindex(n):
        places.append(i)
    return places


def weighed(a):
    total = 0.0
    for (i, j), v in np.ndenumerate(a):
        if v < 0:
            continue
        total += v * (i - j)
        if total > 50:
            break
    else:
        total += 1000
    return total


def doubled(a):
    for place, v in np.ndenumerate(a):
        a[place] = v * 2 + a[0, 0]
    return a


def counted(a):
    total = 0.0
    for k, (place, v) in enumerate(np.ndenumerate(a)):
        total += v * k - place[0]
    return total


def beyond(a, n):
    total = 0.0
    for i, j in np.ndindex(n, n):
        total += a[i, j]
    return total


def printed(a):
    for i, j in np.ndindex(a.shape):
        a[i, j] += 1
        if i == 1:
            print(i, j)
    return a


def told(a):
    text = ""
    for i, j in np.ndindex(a.shape):
        a[i, j] += 1
        if i == j == 1:
            text = bytes([i, j]).hex()
    return a, text


EMPTY = np.zeros((0, 3))
CASES = [
    exact(neighbours, (grid(5, 7),), (np.arange(6).reshape(2, 3),), (EMPTY,), (grid(4, 6).T,)),
    exact(maxima, (grid(5, 7),), (grid(3, 1),), (np.zeros((3, 0)),)),
    exact(three, (3, 4), (1, 1)),
    exact(one_extent, (5,), (0,)),
    exact(weighed, (grid(5, 7),), (np.abs(grid(5, 7)) * 40,), (EMPTY,)),
    exact(doubled, (grid(5, 7),), (grid(6, 5)[::2, ::-1],), (np.ones((2, 2), int),)),
    exact(counted, (grid(5, 7),), (np.arange(6, dtype="i2").reshape(2, 3),)),
    exact(beyond, (grid(4, 4), 4), (grid(4, 4), 5), (grid(4, 4), 0)),
    case(printed, (grid(3, 2),)),
    exact(told, (grid(3, 2),), (grid(1, 2),)),
]


@each(CASES)
def test_places(c: Case) -> None:
    check(c)


def test_a_negative_extent_is_an_error() -> None:
    fast = np_compile.compile(beyond)
    with whole():
        for n in (3, -1, 2):
            check_call(fast, beyond, (grid(3, 3), n), 0)
