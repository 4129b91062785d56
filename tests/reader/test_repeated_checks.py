"""What a loop looks at once: an index that was checked, the clock, tags of kinds, shifts."""

from __future__ import annotations

import numpy as np

import np_compile

from .support import check, check_whatever_leaves, each, exact, whole


def halved(parent, i):
    """An index in three places of an iteration: one check, as its value is the same."""
    while parent[i] != i:
        parent[i] = parent[i] // 2
        i = parent[i]
    return i


def checked_on_one_way(x, at, n):
    for k in range(len(at)):
        i = at[k]
        if n > k:
            x[i] += 1
        x[i] *= 2


def checked_by_a_choice(x, at, n):
    total = 0
    for k in range(len(at)):
        i = at[k]
        total += x[i] if n > k else 0
        total += x[i] + x[i]
    return total


def of_two_lengths(x, y, at):
    for k in range(len(at)):
        i = at[k]
        x[i] += y[i]
        y[i] += x[i]


def changed_between(x, i, n):
    for _ in range(n):
        x[i] += 1
        i -= 3
        x[i] += 10
    return i


def caught(x, at):
    missed = 0
    for k in range(len(at)):
        i = at[k]
        try:
            x[i] += 1
        except IndexError:
            missed += 1
            i = 0
        x[i] += 2
    return missed


def in_three(starts, x, y, z):
    """Indices that are looked at before a loop, all by one test, whichever is out of bounds."""
    for row in range(len(starts) - 1):
        for k in range(starts[row], starts[row + 1]):
            z[k] += x[k + 1] * y[k]
            y[2 - k] -= 1.0


AT = np.array([3, -1, 0, -12, 11, 5, 5])
OUT = np.array([3, -1, 0, 12, 11])
LOW = np.array([3, -1, -13, 2])
PARENT = np.arange(12) * 2 // 3
CALLS = [
    exact(halved, (PARENT, 11), (PARENT, -1), (PARENT, 12), (PARENT, -13)),
    exact(checked_on_one_way, *((np.arange(12), a, n) for a in (AT, OUT, LOW) for n in (0, 3, 9))),
    exact(checked_by_a_choice, *((np.arange(12), a, n) for a in (AT, OUT, LOW) for n in (0, 3, 9))),
    exact(of_two_lengths, *((np.arange(12), np.arange(n), a) for a in (AT, OUT) for n in (10, 14))),
    exact(changed_between, (np.arange(12), 11, 4), (np.arange(12), 5, 9), (np.arange(12), 12, 1)),
    exact(
        in_three,
        *(
            (np.array(starts), *(np.arange(float(n)) for n in sizes))
            for starts in ([0, 2, 2, 5], [-2, 1, 3], [40, 40, -40, 3], [-9, 2])
            for sizes in ((9, 9, 9), (6, 5, 5), (5, 5, 5), (6, 4, 5), (6, 5, 4), (0, 9, 9))
        ),
    ),
    exact(caught, (np.arange(12), AT), (np.arange(12), OUT), (np.arange(12), LOW)),
]


@each(CALLS)
def test_checks(c) -> None:
    check_whatever_leaves(c.function, c.calls)


def text_of(f, *args) -> str:
    with whole():
        text = np_compile.inspect(f)(*args)[0].output
    return text[text.index("static i64 run(") :]


def test_an_index_is_checked_once() -> None:
    """Also one that may count from the end: a check of its value again is a branch more."""
    assert text_of(halved, PARENT.copy(), 11).count(">= (u64)n_") == 1


def test_indices_of_a_loop_are_looked_at_by_one_test() -> None:
    """Of signs: most loops in others have a few iterations, and each branch before them counts."""
    text = text_of(in_three, np.array([0, 2]), np.arange(9.0), np.arange(9.0), np.arange(9.0))
    (found,) = (x for x in text.splitlines() if "const int out_" in x)
    assert found.count(" | ") >= 3
    assert "||" not in found


def all_halved(parent):
    i = len(parent)
    while i > 0:
        i -= 1
        halved(parent, i)
    return parent


def test_a_loop_counts_in_a_variable_of_its_own() -> None:
    """C that counts in memory which a call may change stores it in each iteration."""
    text = text_of(all_halved, PARENT.copy())
    assert "TICK(1);" in text
    assert "i64 counted" in text
    assert "rt->ticks" not in text


def least(x):
    best = np.inf
    for k in range(len(x)):
        if x[k] < best:
            best = x[k]
    return best


def test_a_number_of_two_kinds_keeps_its_tags() -> None:
    """Its kinds are in one order at the loop's head and behind the branch, so the tag is the same
    number; another one would be computed in each iteration."""
    x = np.arange(12.0)[::-1].copy()
    assert "== 1 ? 0" not in text_of(least, x)
    check(exact(least, (x,), (x[:0],), (np.full(9, np.inf),)))


def digits(x, out):
    for shift in range(0, 64, 8):
        for k in range(len(x)):
            out[k] += x[k] >> shift & 255


def shifted(x, s, n):
    total = 0
    for k in range(len(x)):
        total += (x[k] >> s) + (n >> (s & 63))
    return total


def test_shifts_by_less_than_the_bits() -> None:
    """What NumPy says of others is not asked where the range of the shift is known."""
    x = np.array([0, -1, 1 << 62, -(1 << 63), 12345678901, 7, 8, 9, 10, 11])
    assert "rshift_i64(v_" not in text_of(digits, x, np.zeros_like(x))
    check(exact(digits, (x, np.zeros_like(x))))
    check(exact(shifted, *((x, s, n) for s in (0, 5, 63, 64, 99) for n in (-9, 1 << 40))))


def length_of_match(data, window):
    """The longest match before each place: three tests guard the indices."""
    n = len(data)
    lengths = np.zeros(n, dtype=np.int64)
    for i in range(n):
        start = max(0, i - window)
        for j in range(start, i):
            k = 0
            while i + k < n and k < 5 and data[j + k] == data[i + k]:
                k += 1
            if k > lengths[i]:
                lengths[i] = k
    return lengths


def beyond_a_match(data, window):
    """As that, one further than what the tests guard."""
    n = len(data)
    found = 0
    for i in range(n):
        start = max(0, i - window)
        for j in range(start, i):
            k = 0
            while i + k < n and k < 5 and data[j + k] == data[i + k + 1]:
                k += 1
                found += 1
    return found


def test_an_index_that_a_test_guards_is_not_checked() -> None:
    """By the test itself, with two more facts about loops around it."""
    data = np.array([1, 2, 1, 2, 1, 3, 1, 2, 1, 2, 1], np.uint8)
    with whole():
        text = np_compile.inspect(length_of_match)(data, 4)[0].output
    assert "/* while i + k < n" in text
    assert ">= n_in" not in text
    check(exact(length_of_match, (data, 4), (data, 40), (data[:0], 3), (data, -3)))
    check_whatever_leaves(beyond_a_match, [(data, 4), (data[:0], 3), (data[:5], 2)])
