"""Functions that call themselves, and one another, in compiled code."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import np_compile

from .support import case, check, check_call, check_whatever_leaves, each, exact, whole


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def factorial(n):
    if n == 0:
        return 1
    return n * factorial(n - 1)


def factorials(n):
    return [factorial(k) for k in range(n)]


def _sort(a, low, high):
    if low < high:
        pivot, i, j = a[(low + high) // 2], low, high
        while i <= j:
            while a[i] < pivot:
                i += 1
            while a[j] > pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        _sort(a, low, j)
        _sort(a, i, high)


def quicksort(a):
    _sort(a, 0, len(a) - 1)
    return a


def merge_sort(a):
    if len(a) < 2:
        return a
    left, right = merge_sort(a[: len(a) // 2]), merge_sort(a[len(a) // 2 :])
    out = np.empty(len(a), a.dtype)
    i = j = 0
    for k in range(len(a)):
        if j == len(right) or (i < len(left) and left[i] <= right[j]):
            out[k] = left[i]
            i += 1
        else:
            out[k] = right[j]
            j += 1
    return out


def fourier(x):
    n = x.shape[0]
    if n == 1:
        return x
    even, odd = fourier(x[::2]), fourier(x[1::2])
    turned = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + turned, even - turned])


def transformed(x):
    return fourier(x + 0j)


def _simpson(f, a, b, tol, whole_, fa, fb, fc):
    c = (a + b) / 2
    fd, fe = f((a + c) / 2), f((c + b) / 2)
    left, right = (c - a) / 6 * (fa + 4 * fd + fc), (b - c) / 6 * (fc + 4 * fe + fb)
    if abs(left + right - whole_) <= 15 * tol:
        return left + right + (left + right - whole_) / 15
    return _simpson(f, a, c, tol / 2, left, fa, fc, fd) + _simpson(
        f, c, b, tol / 2, right, fc, fb, fe
    )


def _wave(x):
    return 1 / (1 + x * x)


def integral(a, b):
    fa, fb, fc = _wave(a), _wave(b), _wave((a + b) / 2)
    return _simpson(_wave, a, b, 1e-8, (b - a) / 6 * (fa + 4 * fc + fb), fa, fb, fc)


def queens(n):
    board, found = [0] * n, []

    def place(row):
        if row == n:
            found.append(board[:])
            return
        for c in range(n):
            if all(board[r] != c and abs(board[r] - c) != row - r for r in range(row)):
                board[row] = c
                place(row + 1)

    place(0)
    return np.array(found), board


def _filled(grid, i, j, new):
    if not (0 <= i < grid.shape[0] and 0 <= j < grid.shape[1]) or grid[i, j] != 1:
        return 0
    grid[i, j] = new
    size = 1
    for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        size += _filled(grid, i + a, j + b, new)
    return size


def components(grid):
    sizes = []
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            size = _filled(grid, i, j, len(sizes) + 2)
            if size:
                sizes.append(size)
    return sizes, grid


def hanoi(n):
    moves = []

    def move(k, a, b, c):
        if k:
            move(k - 1, a, c, b)
            moves.append((a, c))
            move(k - 1, b, a, c)

    move(n, 0, 1, 2)
    return moves


def _is_even(n):
    return True if n == 0 else _is_odd(n - 1)


def _is_odd(n):
    return n != 0 and _is_even(n - 1)


def parities(n):
    return [(_is_even(k), _is_odd(k)) for k in range(n)]


def knapsack(w, v, room):
    memo = {}

    def best(i, c):
        if i == len(w):
            return 0
        if (i, c) in memo:
            return memo[i, c]
        r = best(i + 1, c)
        if w[i] <= c:
            r = max(r, v[i] + best(i + 1, c - w[i]))
        memo[i, c] = r
        return r

    return best(0, room), len(memo)


def topological(n):
    graph = [[j for j in range(i) if (i * j) % 3 == 1] for i in range(n)]
    seen, order = [False] * n, []

    def visit(i):
        seen[i] = True
        for j in graph[i]:
            if not seen[j]:
                visit(j)
        order.append(i)

    for i in range(n - 1, -1, -1):
        if not seen[i]:
            visit(i)
    return order


def grows_what_it_goes_through(n):
    items = [n]

    def more(k):
        for x in items:
            if k > 0 and x == k:
                items.append(k - 1)
                more(k - 1)

    more(n)
    return items


def adds_to_what_others_go_through(n):
    seen = {n: 0}

    def more(k):
        if k == 0:
            seen[-1] = n
            return
        for x in seen:
            if x >= k:
                more(k - 1)

    more(n)
    return seen


def sees_what_changes(x):
    scale = 1.0

    def total(k):
        return 0.0 if k == len(x) else scale * x[k] + total(k + 1)

    a = total(0)
    scale = 2
    return a, total(0), total(len(x))


class Tree:
    def __init__(self, data):
        self.data, self.leaf = data, 2

    def sum(self, low, high):
        if high - low <= self.leaf:
            return self.data[low:high].sum()
        mid = (low + high) // 2
        return self.sum(low, mid) + self.sum(mid, high)


def pairwise(x):
    return Tree(x).sum(0, len(x))


def by_method(tree):
    return tree.sum(0, len(tree.data))


def defaults(x, depth=0, *, most=3):
    if depth == most:
        return x, depth
    return defaults(x * 2 + depth, depth + 1, most=most)


def beside_arrays(a, b, c, d, n):
    d[()] = fibonacci(n) + a[()]
    return b[()] + c[()]


def one_or_nothing(x, k=0):
    if k == len(x):
        return None
    return k if x[k] > 0 else one_or_nothing(x, k + 1)


def determinant(m):
    n = m.shape[0]
    if n == 1:
        return m[0, 0]
    total = 0.0
    for j in range(n):
        minor = np.delete(m[1:], j, axis=1)
        total += (-1) ** j * m[0, j] * determinant(minor)
    return total


def evaluates(tokens):
    """By recursive descent: numbers; -1 for plus, -2 for times, -3 and -4 for brackets."""
    at = 0

    def factor():
        nonlocal at
        if tokens[at] == -3:
            at += 1
            value = total()
            at += 1
            return value
        at += 1
        return tokens[at - 1]

    def term():
        nonlocal at
        value = factor()
        while at < len(tokens) and tokens[at] == -2:
            at += 1
            value *= factor()
        return value

    def total():
        nonlocal at
        value = term()
        while at < len(tokens) and tokens[at] == -1:
            at += 1
            value += term()
        return value

    found = []
    for _ in range(2):
        at = 0
        found.append((total(), at))
    return found


def counts_calls(n):
    calls, deepest = 0, -1

    def go(k, depth):
        nonlocal calls, deepest
        calls += 1
        if depth > deepest:
            deepest = depth
        if k < 2:
            return k
        return go(k - 1, depth + 1) + go(k - 2, depth + 1)

    return go(n, 0), calls, deepest


R = np.random.default_rng(4)
CASES = [
    exact(
        evaluates,
        (np.array([2, -1, 3, -2, -3, 4, -1, 5, -4, -1, 1]),),
        (np.array([2.5, -2, 3, -1, 0.5]),),
    ),
    exact(counts_calls, (9,), (1,)),
    exact(fibonacci, (12,), (1,)),
    exact(beside_arrays, (*(np.array(k / 4) for k in range(4)), 5)),
    exact(factorials, (15,)),
    exact(quicksort, (R.random(50),), (R.integers(0, 9, 30),)),
    exact(merge_sort, (R.random(33),), (R.integers(0, 9, 16),)),
    case(fourier, (R.random(32) + 0j,)),
    case(transformed, (R.random(16),)),
    exact(integral, (0.0, 3.0), (-1, 1)),
    exact(queens, (5,), (1,)),
    exact(components, ((R.random((9, 8)) > 0.4).astype(np.int64),)),
    exact(hanoi, (5,), (0,)),
    exact(parities, (9,)),
    exact(knapsack, (np.array([3, 4, 2, 5]), np.array([5, 6, 3, 9]), 9)),
    exact(topological, (14,)),
    exact(sees_what_changes, (R.random(6),)),
    exact(pairwise, (R.random(20),)),
    exact(by_method, (Tree(R.random(21)),)),
    exact(defaults, (1.5,), (2,)),
    exact(one_or_nothing, (np.array([0.0, -1.0, 2.0]),), (np.zeros(3),)),
    exact(determinant, (R.random((4, 4)),)),
]


@each(CASES)
def test_what_they_give(c):
    check(c)


def note_and_divide(x, out, k):
    out.append(k)
    x[k] += 1
    if k + 1 < len(x):
        note_and_divide(x, out, k + 1)
    x[k] = 10 // (x[k] - 5)
    out.append(-k)


def caught_around(x):
    out = [0]
    try:
        note_and_divide(x, out, 0)
    except ZeroDivisionError:
        out.append(99)
    return x, out


def caught_inside(x, out, k):
    out.append(k)
    if k == len(x):
        return 0
    try:
        below = caught_inside(x, out, k + 1)
        x[k] = 12 // x[k] + below
    except ZeroDivisionError:
        out.append(-1)
        x[k] = 7
    return x[k]


def caught_in_some(x):
    out = [5]
    return caught_inside(x, out, 0), out, x


def beyond_64_bits(n, out):
    out.append(n)
    if n == 0:
        return 1
    made = n * beyond_64_bits(n - 1, out)
    out.append(made % 1000)
    return made


def products(n):
    out = [0]
    return beyond_64_bits(n, out), out


def finds_nothing(x):
    def at(k):
        return x[k] if x[k] > 0 else at(k + 1)

    return at(0)


def test_they_leave_at_any_depth():
    """Python goes on in each call, with what was done before, and catches what is raised."""
    ints = np.arange(12)
    zero = np.array([3, 2, 0, 1, 0])
    check_whatever_leaves(note_and_divide, [(ints, [0], 0), (ints[:4] + 9, [1], 0)])
    check_whatever_leaves(caught_around, [(ints,), (ints + 5,)])
    check_whatever_leaves(caught_in_some, [(zero,), (zero + 1,)])
    check_whatever_leaves(products, [(5,), (30,), (20,)])
    check_whatever_leaves(factorial, [(5,), (30,), (-1,)])
    check_whatever_leaves(finds_nothing, [(-np.arange(9.0),), (np.arange(9.0),)])
    check_whatever_leaves(quicksort, [(np.zeros(0),), (np.zeros(1),), (-np.arange(9.0),)])
    check_whatever_leaves(fourier, [(np.ones(1, complex),)])
    check_whatever_leaves(grows_what_it_goes_through, [(4,)])
    check_whatever_leaves(adds_to_what_others_go_through, [(0,), (3,)])


def counts_down(n, out):
    out[0] += 1
    return 0 if n == 0 else 1 + counts_down(n - 1, out)


def deep(n):
    out = [0]
    return counts_down(n, out), out


def deep_alone(n):
    return 0 if n == 0 else 1 + deep_alone(n - 1)


@pytest.mark.parametrize("f", [deep, deep_alone])
def test_they_are_as_deep_as_python_allows(f):
    fast = np_compile.compile(f)
    limit = sys.getrecursionlimit()
    with whole():
        for n in (50, limit // 2, limit - 200):
            assert fast(n) == f(n)
        for _ in range(2):
            with pytest.raises(RecursionError):
                fast(limit + 5)
        try:
            sys.setrecursionlimit(limit * 12)
            assert fast(limit * 9) == f(limit * 9)
            with pytest.raises(RecursionError):
                fast(limit * 12 + 5)
        finally:
            sys.setrecursionlimit(limit)
        check_call(fast, f, (20,), 0)


def endless(out):
    out.append(len(out))
    return endless(out)


def test_one_without_an_end():
    out = [0]
    with whole(), pytest.raises(RecursionError):
        np_compile.compile(endless)(out)
    assert out == list(range(len(out)))
    assert len(out) > 100


def both_ways(x, depth):
    if depth == 0:
        return math.sqrt(x) if x > 0 else 0.0
    return both_ways(x / 2, depth - 1) + both_ways(x - 1, depth - 1)


def test_called_by_its_own_name_while_compiled(monkeypatch):
    plain = both_ways
    fast = np_compile.compile(plain)
    monkeypatch.setitem(globals(), "both_ways", fast)
    with whole():
        got = fast(30.0, 6)
    monkeypatch.undo()
    assert got == plain(30.0, 6)
    assert fast._reading.runs <= 1  # the calls inside are C's


def _halves(points, depth):
    if len(points) == 0:
        return None
    k = np.argsort(points[:, depth % points.shape[1]], kind="stable")
    points, m = points[k], len(k) // 2
    return points[m], _halves(points[:m], depth + 1), _halves(points[m + 1 :], depth + 1)


def kd_tree(points):
    return _halves(points, 0)


def chain(x):
    def link(k):
        return None if k == len(x) else (x[k], link(k + 1))

    return link(0)


def trees_in_a_loop(x):
    tree = None
    for i in range(len(x)):
        tree = (x[i], tree, tree)
    return tree


ENDLESS = "it is a tuple that holds one like itself"  # its type, that is: trees double it each time


@each([
    case(kd_tree, (np.random.default_rng(0).random((9, 2)),), refused=ENDLESS),
    case(chain, (np.arange(5.0),), refused=ENDLESS),
    case(trees_in_a_loop, (np.arange(5),), refused=ENDLESS),
])  # fmt: skip
def test_tuples_of_tuples_like_themselves(c):
    check(c)
