"""`heapreplace` and `heappushpop` of `heapq`."""

from __future__ import annotations

import heapq

import numpy as np

from .support import Case, check, check_whatever_leaves, each, exact


def searched(n):
    heap, out, k = [(0.0, 0, (0, 0))], [], 1
    while heap and len(out) < n:
        d, _, p = heapq.heappop(heap)
        out.append(p)
        heapq.heappush(heap, (d + 1.5, k, (p[0] + 1, p[1])))
        heapq.heappush(heap, (d + 0.5, k + 1, (p[0], p[1] + 1)))
        k += 2
        if len(heap) > 4:
            out.append(heapq.heapreplace(heap, (d, k, p))[2])
            k += 1
        out.append(heapq.heappushpop(heap, (d + 2, k, p))[2])
        k += 1
        heapq.heappushpop(heap, (-1.0, k, p))
    return out, heap


def largest(x, m):
    best, s = [], 0.0
    for v in x:
        if len(best) < m:
            heapq.heappush(best, v)
        else:
            s += heapq.heappushpop(best, v)
    return best, s


def held_by_lists(n):
    heap, out = [], []
    for k in range(n):
        heapq.heappush(heap, ((k * 7) % 5, k, np.full(2, k)))
    for k in range(n):
        out.append(heapq.heapreplace(heap, ((k * 3) % 7, k + n, np.full(2, -k)))[2])
        least = heapq.heappushpop(heap, ((k * 5) % 4, k + 2 * n, np.zeros(2)))
        least[2][0] += 5
        out.append(least[2])
    return out, [x[2].sum() for x in heap]


def of_nothing(n):
    heap, s = [], 0
    for k in range(n):
        s += heapq.heappushpop(heap, k)
    if n > 3:
        heapq.heapreplace(heap, 3)
    return s, heap


X = np.random.default_rng(1).random(50)


@each([
    exact(searched, (9,), (40,), (0,)),
    exact(largest, (X, 7), (X[:3], 7), (X, 1)),
    exact(of_nothing, (3,), (5,), (0,)),
])  # fmt: skip
def test_heaps(c: Case) -> None:
    check(c)


def test_heaps_that_c_leaves() -> None:
    check_whatever_leaves(largest, [(np.array([1.0, np.nan, 2.0, 0.5]), 2), (X, 3)])
    check_whatever_leaves(held_by_lists, [(9,), (1,), (0,)])
