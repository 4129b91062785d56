"""`functools.partial`, and `sum` from an array on."""

from __future__ import annotations

from functools import partial

import numpy as np

from .support import case, check, each, exact


def at(a, k, scale=1.5):
    return a[k] * scale


def kick(q, p, h, force):
    return q + h * p, p + h * force(q)


half = partial(at, scale=0.5)
first = partial(half, k=0)


def of_module(a, n):
    s = 0.0
    for k in range(n):
        s += half(a, k) + first(a) + half(a, k=0, scale=2.0)
    return s


def made_in_a_loop(a, n):
    s = 0.0
    for _ in range(n):
        p = partial(at, a)
        a = a * 2 + 1
        b = a * 3
        s += p(1) + b[0]
    return s


def leaves(a, n):
    s = 0.0
    a = a + 1
    p, q = partial(at, a), partial(at, k=0)
    for i in range(n):
        a = a * 2 + 1
        s += p(1) + q(a)
        if i == n - 1:
            s += [1.0][n - 5] + p(2)
    return s


def with_a_function(q, p, n):
    step = partial(kick, force=np.sin)
    for _ in range(n):
        q, p = step(q, p, 0.1)
    return q, p


def sums_of_arrays(a, h):
    k = []
    t = np.zeros(3)
    for _ in range(5):
        y = a + h * sum((c * x for c, x in zip((1.0, 2.0, 3.0), k)), np.zeros_like(a))  # noqa: B905
        k.append(y * y)
        t += sum((x for x in k), y)
    return t, k


A = np.arange(6.0)


@each([exact(of_module, (A, 5)), exact(made_in_a_loop, (A, 4)), exact(leaves, (A, 5), (A, 7)),
       case(with_a_function, (1.0, 2.0, 7)), exact(sums_of_arrays, (A[:3], 0.1))])  # fmt: skip
def test_reads(c):
    check(c)


def test_a_sum_of_nothing_is_its_start():
    def total(a, n):
        out = a
        for _ in range(2):
            out = sum((a * k for k in range(n)), a)
        return out

    check(exact(total, (A, 0), (A, 3)))


def other(a, n):
    p = partial(at, a)
    s = 0.0
    for k in range(n):
        if k % 2:
            p = partial(at, a * 2)
        s += p(0)
    return s


def test_one_or_another_is_refused():
    check(exact(other, (A, 4), refused="one or another"))
