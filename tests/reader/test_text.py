"""Text and bytes in compiled loops, a character at a time."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile

from .support import check, check_call, check_whatever_leaves, each, exact, refusals, whole

X = np.arange(3.0)


def distance(s, t):
    prev = list(range(len(t) + 1))
    for i in range(1, len(s) + 1):
        cur = [i] + [0] * len(t)
        for j in range(1, len(t) + 1):
            cost = 0 if s[i - 1] == t[j - 1] else 1
            cur[j] = min(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + cost)
        prev = cur
    return prev[len(t)]


def letters(s):
    seen = Counter()
    first = {}
    for k, c in enumerate(s):
        if c != " ":
            seen[c] += 1
        if c not in first:
            first[c] = k
    return seen, first, Counter(s) == seen, "a" in first


def words(s):
    """A tokenizer."""
    found = []
    numbers = []
    i = 0
    n = len(s)
    while i < n:
        c = s[i]
        if c.isspace():
            i += 1
        elif c.isdigit():
            value = 0
            while i < n and s[i].isdigit():
                value = value * 10 + int(s[i])
                i += 1
            numbers.append(value)
        elif c.isalpha() or c == "_":
            j = i
            while j < n and (s[j].isalnum() or s[j] == "_"):
                j += 1
            found.append(s[i:j])
            i = j
        elif c in "+-*/()":
            found.append(c + "!")
            i += 1
        else:
            raise ValueError(f"{c!r} at {i}")
    return found, numbers


def balanced(s, pairs):
    stack = []
    for c in s:
        if c in ("(", "[", "{"):
            stack.append(c)
        elif c in ")]}":
            if not stack:
                return False
            top = stack.pop()
            if (top == "(") != (c == ")") or (top == "[") != (c == "]"):
                return False
    return not stack


def reversed_text(s):
    out = []
    for c in reversed(s):
        d = c.upper() if c.islower() else c.lower()
        out.append(d)
    return "".join(out), out, list(s), [c for c in s if c > "m"]


def caesar(s, k):
    out = []
    for c in s:
        if "a" <= c <= "z":
            c = chr((ord(c) - ord("a") + k) % 26 + 97)
        out.append(c)
    return "".join(out)


def bits(data, n):
    h = 0
    total = 0
    for k, b in enumerate(data):
        h = (h * 31 + b) & 0xFFFFFFFF
        total += data[k] ^ data[-k - 1]
    for k in range(n):
        total += data[k : k + 2] == data[:2]
    return h, total, len(data), list(data)


def of_a_list(rows):
    total = 0
    longest = rows[0]
    for row in rows:
        for c in row:
            total += c == "x"
        if len(row) > len(longest):
            longest = row
    return total, longest, rows


def changed(rows):
    for k in range(len(rows)):
        if rows[k][0] == "a":
            rows[k] = rows[k][1:]
    return len(rows)


def table_of(s):
    score = {"A": 1, "C": 2, "G": 3}
    total = 0
    for c in s:
        total += score.get(c, -1)
        total += "ACGT"[total % 4] == c
    return total


def modes(x, mode):
    """A text that nothing asks a part of is a constant."""
    total = 0.0
    for v in x:
        total += v if mode == "add" else -v
    return total, mode


def equal_texts(s, t, n):
    found = []
    for k in range(n):
        found.append((s[k:] == t[k:], s[:k] != "ab", s[k:] == "b", s == t, s[0] == "ab", s[0] == 1))
        found.append(
            (s[0] != t[0], s[k] == "a", s[k] in ("a", "bc"), s[0] < t[0], s[0] is None, True)
        )
    return found


def beside_elements(x, s, t):
    found = []
    others = []
    for k in range(len(x)):
        found.append((x[k] == s, s != x[k], x[k] == t[k], t[k:] != x[k], x[k] == b"12"))  # noqa: PERF401
    for c in t:
        others.append((x[0] == c, c != x[0], ~(x.sum() != "a"), x[0] == None, c != None))  # noqa: E711, PERF401
    return found, others, [k == s for k in range(len(x))]


def beside_element_or_integer(x, s):
    found = []
    y = x[0]
    for k in range(3):
        found.append(y == s)
        y = k
    return found


def beside_an_array(x, s):
    found = []
    for k in range(2):
        found.append((k, x == "ab", s != x))  # noqa: PERF401
    return found


def beside_a_dtype(x, s):
    found = []
    for c in s:
        found.append((x.dtype == c, c))  # noqa: PERF401
    return found


class Anything:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n


def beside_an_object(n, s):
    found = []
    for k in range(n):
        x = Anything(k)
        found.append(x == "ab")
        found.append(x == s)
    return found


def last_seen(s):
    c = "?"
    count = 0
    for d in s:
        if d == c:
            count += 1
        c = d
    return c, count


def groups(s):
    found = defaultdict(list)
    for k, c in enumerate(s):
        found[c].append(k)
    return found


def sums_of_bytes(s):
    total = 0
    for c in s:
        total += ord(c)
    return total


def in_bytes(s, x, k):
    found = []
    for i in range(len(x)):
        found.append(x[i] in s)
        try:
            found.append((int(x[i]) * k in s, s.count(int(x[i]) + k), s.index(k)))
        except ValueError:
            found.append(i)
    return found


@each([
    exact(distance, ("kitten", "sitting"), ("", "abc"), ("abc", ""), ("äöü€𝄞", "äou€𝄢")),
    exact(letters, ("the quick brown fox",), ("",), ("ééaé 𝄞",)),
    exact(words, ("foo + 12*(bar_2 - 340) x",), ("  ",)),
    exact(balanced, ("([]{})()", 1), ("([)]", 1), (")", 1), ("", 1)),
    exact(reversed_text, ("Hello, World zZ",), ("",)),
    exact(caesar, ("hello, world", 3), ("xyz", 30)),
    exact(bits, (b"hello world", 5), (b"\x00\xff\x80" * 3, 4)),
    exact(of_a_list, (["axx", "b", "", "xxxxx"] * 3,)),
    exact(table_of, ("ACGTTGCAX",), ("",)),
    exact(modes, (np.arange(90.0), "add"), (np.arange(90.0), "subtract")),
    exact(equal_texts, ("abab", "abab", 4), ("ab", "ac", 2)),
    exact(beside_elements, (X, "2", "abc"), (X.astype("i4"), "ab", "abc"), (X > 1, "", "123"),
          (X * 1j, "c", "abc"), (X.astype("f4"), "d", "abc")),
    exact(last_seen, ("aabbbc",), ("",), ("?",)), exact(groups, ("abcabca",)),
])  # fmt: skip
def test_programs(c):
    check(c)


@pytest.mark.parametrize(
    ("f", "calls"),
    [
        (words, [("a ; b",), ("x é 1",), ("٣ 4",)]),
        (changed, [(["abc", "b", "a"] * 4,), (["abc", ""] * 5,)]),
        (caesar, [("é\ud800", 2)]),
        (equal_texts, [("", "abc", 3), ("ab", "abc", 3)]),
        (sums_of_bytes, [("abc",), ([1, 2],), (b"abc",), (None,)]),
        (bits, [(b"", 1), ("abc", 1)]),
        (
            in_bytes,
            [
                (b"abc", np.array([97, 256, 3]), 97),
                (b"abc", np.array([-1, 98]), 1),
                (b"\1abc", np.array([1.0, 98.0]), 1),
            ],
        ),
        (
            in_bytes,
            [
                (b"abc", np.arange(90, 100), 1),
                (b"abc", np.arange(90, 100), 10**6),
                (b"\0ab", np.array([True, False]), 0),
                (b"abc", np.arange(97, 99), 97),
            ],
        ),
        (beside_elements, [(X, b"ab", "abc"), (X, None, "abc")]),
        (beside_element_or_integer, [(X, "a"), (X.astype("i4"), "ab")]),
        (beside_an_array, [(X, "d"), (X, "ab")]),
        (beside_a_dtype, [(X, "fd")]),
        (beside_an_object, [(3, "ab"), (3, "a")]),
    ],
)
def test_what_leaves(f, calls):
    check_whatever_leaves(f, calls)


def test_texts_of_all_lengths_are_one_region():
    fast = np_compile.compile(distance)
    with whole():
        for k in range(30):
            assert fast("ab" * k, "ba" * k + "c") == distance("ab" * k, "ba" * k + "c")
    assert len(fast._reading._regions[0]) == 1
    assert not refusals(fast)


def test_a_text_that_is_given_back_is_the_same_object():
    fast = np_compile.compile(of_a_list)
    rows = ["some text", "x" * 40, "abc"] * 5
    with whole():
        for _ in range(2):
            _, longest, same = fast(rows)
            assert longest is rows[1]
            assert same is rows


_distance, _letters = np_compile.compile(distance), np_compile.compile(letters)


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=12), st.text("abü", max_size=12))
def test_any_text(s, t):
    with whole():
        check_call(_distance, distance, (s, t), 0)
        check_call(_letters, letters, (t + s,), 0)
