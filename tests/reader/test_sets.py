"""Sets that are put together or compared."""

from __future__ import annotations

import numpy as np

from .support import Case, check, check_whatever_leaves, each, exact

I = (np.arange(60) * 7 + 3) % 23  # noqa: E741
F = I * 0.25


def operators(x, n):
    a, s = {1, 2, 3}, 0
    for i in range(n):
        b = {int(x[i]), int(x[i]) + 1, i}
        s += len(a | b) + 2 * len(a & b) + 3 * len(a - b) + 5 * len(a ^ b)
        s += sum(sorted(a | b)) + max(a ^ b | {0}) + sorted(a | b)[0]
        if a & b:
            s += 100
        if int(x[i]) in a - b:
            s += 1000
        a.add(int(x[i]) % 11)
    return s, a


def comparisons(x, n):
    found = []
    for i in range(n):
        a, b = {int(x[i]), i}, {i, int(x[i]), int(x[i]) % 3}
        found.append((a <= b, a < b, a == b, a != b, a >= b, a > b, a | b == b, a <= b & a))
    return found


def methods(x, n):
    seen, s = set(), 0
    for i in range(n):
        seen.update([int(x[i]), i])
        seen.update(range(i % 4))
        other = {int(x[i]) + 1, 2, 3}
        if seen.issuperset(other):
            s += 1
        if other.isdisjoint({int(x[i])}):
            s += 10
        if {i}.issubset(seen):
            s += 100
        s += len(seen.union(other)) + 3 * len(seen.intersection(other))
        s += len(seen.difference([1, 2])) + len(seen.symmetric_difference(other))
    return s, sorted(seen), seen


def held_by_names(x, n):
    s = 0
    done = {0}
    for i in range(n):
        new = {int(v) for v in x[i : i + 3]}
        rest = new - done
        common = new & done
        s += len(rest) * 10 + len(common)
        for v in sorted(rest):
            s += v
            done.add(v)
    return s, len(done)


def of_pairs_and_floats(x, y, n):
    s = 0.0
    for i in range(n):
        a, b = {(i, i + 1), (i + 1, i)}, {(i, int(x[i]))}
        s += len(a & b) + len(a | b)
        s += len({y[i], 0.5} | {y[i + 1]}) + max({y[i]} & {y[i], y[i + 1]})
    return s


def of_words(x):
    s, wanted = 0.0, {"up", "down"}
    for i in range(len(x)):
        now = {"up" if x[i] > 9 else "flat", "x" if x[i] % 2 else "down"}
        if now & wanted:
            s += len(now & wanted)
        if now <= wanted:
            s += 10
        if "flat" in now - wanted:
            s += 100
    return s


def with_nothing(x):
    a, b, s = set(), set(), 0
    for v in x:
        s += len(a | b) + len(a - b) + (a <= b) + (a == b) + a.isdisjoint(b)
        if v > 5:
            a.add(int(v))
    return s, a, b


CASES = [
    exact(operators, (I, 40), (I, 0), (I[::-1].copy(), 60)),
    exact(comparisons, (I, 40), (I, 1)),
    exact(methods, (I, 40), (I, 0)),
    exact(held_by_names, (I, 50), (I, 0), refused="told the order"),
    exact(of_pairs_and_floats, (I, F, 40)),
    exact(of_words, (I,), (I[:0],)),
    exact(with_nothing, (I,), (I[:0],), (I * 0,)),
]


@each(CASES)
def test_sets(c: Case) -> None:
    check(c)


def goes_to_python(x, n):
    a = {1, 2}
    for i in range(n):
        b = a | {int(x[i])}
        if i == n - 1:
            return b
    return a


def in_place(x, n):
    a = {1, 2}
    b = a
    for i in range(n):
        a |= {int(x[i])}
    return a, b


def of_several_types(x, y, n):
    s = 0
    for i in range(n):
        s += len({int(x[i])} | {y[i]})
    return s


def test_sets_that_python_gets_are_python_s():
    """In their order, that is."""
    for f in (goes_to_python, in_place):
        check_whatever_leaves(f, [(I, 9), (I * 1000003, 40), (I, 0)])
    check_whatever_leaves(of_several_types, [(I, F, 9)])
