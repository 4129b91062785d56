"""Integers that a loop counts with are not checked for overflow; all others are."""

from __future__ import annotations

import pytest

import np_compile

from .support import Case, check, each, exact, whole

CHECK = "__builtin_add_overflow(v_"


def counted(n, start):
    for i in range(n):
        if i % 3:
            start += 7
        else:
            start -= 16
    return start


def nested(n):
    inside = outside = 0
    for i in range(n):
        for j in range(n):
            if i * j % 3 == 1:
                inside += 1
            outside -= 2
        inside += 3
    while outside < -n:
        outside += 5
    return inside, outside


def in_turn(n, start):
    for _ in range(n):
        start += 1
    for _ in range(n):
        start += 1
    return start


def doubled(n, count):
    for i in range(n):
        count += 1
        if i % 2:
            count = count * 4
    return count


def doubled_inside(n, count):
    for _ in range(n):
        count += 1
        for _ in range(n):
            count = count + count
    return count


def doubled_around(n, count):
    for _ in range(n):
        for _ in range(n):
            count += 1
        count *= 9
    return count


def by_large_steps(n, count):
    for _ in range(n):
        count += 1 << 61
    return count


def by_others(n, step):
    count = 0
    for _ in range(n):
        count += step
    return count


def taken(n, count):
    """The loop gives it other values too."""
    seen = 0
    for _ in range(n):
        count += 3
        seen ^= count
        for count in range(2**63 - 3, 2**63 - 1):
            seen ^= count
    return seen


def of_inner(n, count):
    def more():
        nonlocal count
        count *= 8

    for _ in range(n):
        count += 1
        more()
    return count


LIMITS = [2**63 - 1, 2**63 - 20, 2**62, 2**61, -(2**63), -(2**62), 0]
CASES = [
    *(exact(f, *((n, x) for n in (0, 5, 40) for x in LIMITS)) for f in (counted, in_turn)),
    exact(nested, (0,), (1,), (9,)),
    *(exact(f, (40, 1), (40, -1), (3, 2**60)) for f in (doubled, doubled_inside, doubled_around)),
    exact(by_large_steps, (9, 0), (9, -(2**62))),
    exact(by_others, (9, 2**61), (9, -1)),
    exact(taken, (3, 5)),
    exact(of_inner, (40, 1)),
]


@each(CASES)
def test_counters_are_exact(c: Case) -> None:
    check(c)


@pytest.mark.parametrize(
    ("f", "args", "checks"),
    [
        (nested, (4,), False),
        (by_others, (4, 2), True),
        (doubled, (4, 2), True),
        (by_large_steps, (4, 2), True),
    ],
)
def test_what_is_checked(f, args, checks) -> None:
    with whole():
        text = np_compile.inspect(f)(*args)[0].output
    assert (CHECK in text) is checks
