"""Branches on bits: both ways are carried out, and one is selected."""

# ruff: noqa: SIM108
from __future__ import annotations

import copy
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import np_compile
from benchmarks.programs.loops_discrete import crc32

from .support import Case, check, check_call, each, exact, whole

MASK, CHOSEN = "i64 mask_", " = chosen_i64("  # the latter where the bits are of what is selected
EDGES = [0, 1, -1, 2, 255, -256, 2**31, 2**62 - 1, 2**62, 2**63 - 1, -(2**63), -(2**62) - 1]


def shifts(a, n):
    taps, seen = 0, []
    for k in range(n):
        if a >> 1 & 1:
            a = (a >> 1) ^ 0x2D
            taps = taps | 4
        else:
            a = ~(a >> 2) & 0x7FFFFFFFFFFF
        if (a ^ k) % 4 == 3:
            taps = taps & ~k
        seen.append((a, taps))
    return a, taps, seen


def feeds_back(a, n):
    """Each iteration waits for the one before."""
    odd = 0
    for _ in range(n):
        if a & 5 == 4:
            a, odd = a >> 1, ~odd
        else:
            a = (a >> 2) ^ 0x1234567
    return a, odd


def set_on_one_way(a, n):
    low = high = 0
    for k in range(n):
        if (a >> k) & 1 == 0:
            low = k ^ 5
        elif a & 2:
            high = k
        else:
            low = high = -k
    return low, high


def counts(a, n):
    """One value is so much more or less than the other."""
    odd, even, low, up = 0, 0, 5, a
    for k in range(n):
        if (a >> k) % 2 == 1:
            odd += 1
            low -= 7
        else:
            even += 3
        if a >> k & 4:
            up = low + 2
    return odd, even, low, up


def grows(a, n):
    """What may leave 64 bits on one way is not carried out on the other."""
    for _ in range(n):
        if a & 1:
            a = 3 * a + 1
        else:
            a = a // 2
    return a


def divides(a, n):
    for k in range(n):
        if k & 1:
            a = a // k
        else:
            a = a ^ 1
    return a


def looks(a, x, n):
    """No element is read that is not there."""
    for k in range(n):
        if a & 8:
            a = a ^ int(x[k])
        else:
            a = (a >> 1) ^ 9
    return a


def shifts_by(a, n):
    for k in range(n):
        if k & 1:
            a = (a >> (k - 1)) ^ 5
        else:
            a = a ^ (1 << (k & 7))
    return a


def powers(a, n):
    for k in range(1, n):
        if a & 1:
            a = (a >> 1) ^ (1 << (k & 7))
        else:
            a = a >> 1
    return a


def of_floats(a, n):
    x = 0.5
    for _ in range(n):
        if a & 1:
            x = x * 2.0
            a = a >> 1
        else:
            a = (a >> 1) | 64
    return x, a


def dithered(x):
    """A choice of two constants that the next iteration hangs on."""
    y, error = x.copy(), 0.0
    for i in range(len(x)):
        new = 255.0 if y[i] > 127 else -0.0
        error = y[i] - new
        y[i] = new
        if i + 1 < len(x):
            y[i + 1] += error * 7 / 16
    return y, error


def in_statements(x, n):
    level, sign, steps = 0, 1.0, 0
    for i in range(n):
        if x[i % 5] * sign > 0:
            sign = -1.0
        else:
            sign = 1.5
        steps = 3 if sign < 0 else -2
        level = level * 3 % 1001 + steps
    return level, sign, steps


def kinds_differ(x, n):
    s = 0
    for i in range(n):
        s = 1 if x[i % len(x)] > 0 else 0.5
        x[(i + 1) % len(x)] -= s
    return s


def calls(*rest):
    return [(a, *rest) for a in EDGES]


GRAYS = np.append(np.random.default_rng(4).integers(0, 256, 39).astype(float), np.nan)
SIGNS = np.array([1.0, -2.0, 0.0, np.nan, 3.0])
ON_NUMBERS = (
    shifts,
    feeds_back,
    set_on_one_way,
    counts,
    grows,
    divides,
    shifts_by,
    powers,
    of_floats,
)
CASES = [
    exact(crc32.function, (np.arange(40, dtype=np.uint8) * 37 % 251,), (np.zeros(0, np.uint8),)),
    *(exact(f, *calls(9), *calls(0)) for f in ON_NUMBERS),
    exact(dithered, *((GRAYS[:n],) for n in (0, 1, 2, 40)), (GRAYS[:9].astype(np.float32),)),
    exact(in_statements, *((SIGNS, n) for n in (0, 1, 2, 50)), (SIGNS[:3], 9)),
    exact(kinds_differ, *((SIGNS.copy(), n) for n in (0, 1, 9))),
    exact(looks, *calls(np.arange(4), 4), (8, np.arange(4), 6), (1, np.arange(0), 1)),
]  # fmt: skip


@each(CASES)
def test_branches_on_bits(c: Case) -> None:
    check(c)


@pytest.mark.parametrize(
    ("f", "args", "selects"),
    [
        (crc32.function, (np.zeros(9, np.uint8),), [CHOSEN]),
        (shifts, (5, 9), [MASK, CHOSEN]),
        (feeds_back, (5, 9), [CHOSEN]),
        (set_on_one_way, (5, 9), [MASK]),
        (counts, (5, 9), [MASK]),
        (grows, (5, 9), []),
        (divides, (5, 9), []),
        (powers, (5, 9), []),
        (looks, (5, np.arange(9), 9), []),
        (of_floats, (5, 9), []),
    ],
)
def test_what_is_selected(f, args, selects) -> None:
    with whole():
        text = np_compile.inspect(f)(*args)[0].output
    assert [x for x in (MASK, CHOSEN) if x in text] == selects


def test_a_step_is_added_under_the_mask() -> None:
    with whole():
        text = np_compile.inspect(counts)(5, 9)[0].output
    assert sorted(re.findall(r" \+ \((-?\d+L) & mask_\d+\);", text)) == ["-7L", "1L"]


def test_a_choice_of_constants_is_no_branch() -> None:
    """Where iterations depend on each other; where they do not, there may be vectors."""

    def apart(x, y):
        for i in range(len(x)):
            y[i] = 255.0 if x[i] > 127 else 0.0

    with whole():
        text = np_compile.inspect(dithered)(GRAYS)[0].output
        assert "? 0x1.fe00000000000p+7 : (-0x0.0p+0); SETTLED_F(" in text
        text = np_compile.inspect(apart)(GRAYS, GRAYS.copy())[0].output
        assert "? 0x1.fe00000000000p+7 : 0x0.0p+0;" in text
        assert "SETTLED_F(chosen" not in text


def carried(weights, values, best):
    """It leaves where `best` has too few rows, or no item can be carried."""
    for i in range(len(weights)):
        for w in range(best.shape[1]):
            best[i + 1, w] = best[i, w]
            if weights[i] <= w:
                taken = best[i, w - weights[i]] + values[i]
                if taken > best[i + 1, w]:
                    best[i + 1, w] = taken
    return taken


def clipped(x, low):
    for k in range(len(x)):
        x[k] = x[k] * 2
        if not x[k] > low:
            x[k] = low


def not_stored_before(x, low):
    for k in range(len(x)):
        if not x[k] > low:
            x[k] = low


def stored_on_one_way(x, y, low):
    for k in range(len(x)):
        if y[k] > 0:
            x[k] = y[k]
        if y[k] < low:
            x[k] = low


def stored_elsewhere(x, low):
    for k in range(len(x) - 1):
        x[k] = x[k] * 2
        if x[k] > low:
            x[k + 1] = low


def does_more(x, low):
    n = 0
    for k in range(len(x)):
        x[k] = x[k] * 2
        if x[k] > low:
            n += 1
            x[k] = low
        else:
            x[k] = -low
    return n


def read_again(x, low, seen):
    for k in range(len(x)):
        x[k] = x[k] * 2
        if not x[k] > low:
            x[k] = low
        seen[k] = x[k]
        if seen[k] > 5:
            seen[k] = low
        x[k] = x[k] + seen[k]


FLOATS = np.array([1.5, np.nan, -0.0, 0.0, np.inf, -3.0, 7.0, 2.0, -np.inf, 0.5])
WEIGHTS = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3]), np.array([2, 7, 1, 8, 2, 8, 1, 8, 2, 8])


@pytest.mark.parametrize(
    ("f", "args", "selects"),
    [
        (carried, (*WEIGHTS, np.zeros((11, 25), np.int64)), True),
        (carried, (*WEIGHTS, np.zeros((11, 25))), True),
        (clipped, (FLOATS, 2.0), True),
        (clipped, (FLOATS.astype("f4"), np.float32(2)), True),
        (read_again, (FLOATS, 2.0, np.zeros(10)), True),
        (read_again, (WEIGHTS[0], 7, np.zeros(10, np.int64)), True),
        (read_again, (FLOATS.astype("f4"), np.float32(2), np.zeros(10, "f4")), True),
        (not_stored_before, (FLOATS, 2.0), False),
        (stored_on_one_way, (FLOATS, FLOATS[::-1].copy(), 1.0), False),
        (stored_elsewhere, (FLOATS, 1.0), False),
        (does_more, (FLOATS, 1.0), False),
    ],
)
def test_a_store_behind_another_one_is_no_branch(f, args, selects) -> None:
    with whole():
        text = np_compile.inspect(f)(*copy.deepcopy(args))[0].output
        check_call(np_compile.compile(f), f, args, 0)
        if f is carried:
            check_call(np_compile.compile(f), f, (*args[:2], args[2][:, :3]), 0)
            check_call(np_compile.compile(f), f, (*args[:2], args[2][:7]), 0)
    assert bool(re.search(r" = \(.*\) \? \w+ : old_\d+;", text)) == selects


def chained(a, b, dtype, dtype_of_trace):
    """One of four is stored in `trace`. Of `d` the next cell would wait for both ways."""
    d = np.zeros((len(a) + 1, len(b) + 1), dtype)
    trace = np.full(d.shape, 9, dtype_of_trace)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                d[i, j] = d[i - 1, j - 1]
            else:
                d[i, j] = 1 + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
            if d[i, j] == 0:
                trace[i, j] = 0
            elif d[i, j] == d[i - 1, j]:
                trace[i, j] = 1
            elif d[i, j] > d[i, j - 1]:
                trace[i, j] = 2
            else:
                trace[i, j] = 3
    return d, trace


def signs(x, dtype):
    y = np.zeros(len(x), dtype)
    for i in range(len(x)):
        if x[i] < 0:
            y[i] = -1
        else:
            y[i] = 7
    return y


def may_leave(x, y):
    """`y` may be shorter."""
    for i in range(len(x)):
        if x[i] < 0:
            y[i] = -1
        else:
            y[i] = 7


def of_neighbours(x, y):
    """What is read on one way is there on that way alone."""
    for i in range(len(x)):
        if i > 0:
            y[i] = x[i - 1]
        else:
            y[i] = 3
    for i in range(len(x)):
        if x[i] >= 0 and x[i] < len(x):
            y[i] += 1
            y[x[i]] = x[x[i]]
        else:
            y[i] = -1


def at_other_places(x, y):
    for i in range(len(x) - 1):
        if x[i] > 2:
            y[i] = 5
        else:
            y[i + 1] = 6


def divides_on_one_way(x, y):
    for i in range(len(x)):
        if x[i] != 0:
            y[i] = 60 // x[i]
        else:
            y[i] = 9


def counts_too(x, y):
    n = 0
    for i in range(len(x)):
        if x[i] > 2:
            n += 1
            y[i] = 5
        else:
            y[i] = n
    return n


def between_stores(x, y):
    """A way that stores twice, and one that reads what it has stored."""
    for i in range(len(x)):
        if x[i] > 2:
            y[i] = 5
            y[i] = y[i] + x[i]
        else:
            y[i] = 6


BYTES = np.array([3, 0, 255, 0, 4, 3, 128, 9, 1, 200], np.uint8)
STEPS = np.array([3, -1, 0, 5, -2, 9, 1, 0, -(2**63), 2**63 - 1])


@pytest.mark.parametrize(
    ("f", "args", "joins"),
    [
        (chained, (STEPS % 3, STEPS % 2, np.int64, np.uint8), 3),
        (chained, (BYTES % 3, BYTES % 2, np.int32, np.int64), 3),
        (chained, (BYTES, BYTES[:4], np.float64, np.uint16), 3),
        (signs, (STEPS, np.int64), 1),
        (signs, (FLOATS, np.int8), 1),
        (signs, (FLOATS, np.float64), 0),
        (may_leave, (STEPS, STEPS.copy()), 0),
        (of_neighbours, (STEPS, STEPS.copy()), 0),
        (at_other_places, (STEPS, STEPS.copy()), 0),
        (divides_on_one_way, (STEPS, STEPS.copy()), 0),
        (counts_too, (STEPS, STEPS.copy()), 0),
        (between_stores, (STEPS, STEPS.copy()), 0),
    ],
)
def test_stores_on_both_ways_are_one(f, args, joins) -> None:
    with whole():
        text = np_compile.inspect(f)(*copy.deepcopy(args))[0].output
        check_call(np_compile.compile(f), f, args, 0)
    assert len(re.findall(r"const \w+ new_\d+ = ", text)) == joins


numbers = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(EDGES)
_FAST = {f: np_compile.compile(f) for f in (shifts, feeds_back, set_on_one_way, grows)}


@pytest.mark.parametrize("f", _FAST)
@given(numbers, st.integers(0, 12))
@example(-(2**63), 12)
def test_any_number(f, a, n) -> None:
    with whole():
        check_call(_FAST[f], f, (a, n), 0)
