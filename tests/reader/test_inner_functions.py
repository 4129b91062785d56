"""Functions that a function makes, and calls in its loops."""

from __future__ import annotations

import math

import numpy as np
import torch

from np_compile.reader import threads

from .support import Case, check, each, exact

SCALE = 3.0


def reads(x, k):
    def f(i):
        return x[i] * k + SCALE

    s = 0.0
    for i in range(len(x)):
        s += f(i)
    return s


def sees_what_changes(x):
    total = 0.0

    def so_far():
        return total * 2

    out = np.zeros(len(x))
    for i in range(len(x)):
        total += x[i]
        out[i] = so_far()
    total = -1.0
    return out, so_far(), total


def counts_what_it_sees(x):
    n = 0

    def seen():
        return n + 1

    out = np.zeros(len(x))
    for i in range(len(x)):
        n += 2
        out[i] = seen() * x[i]
    return out, n


def sets(edges, n):
    parent = list(range(n))

    def find(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def union(a, b):
        a, b = find(a), find(b)
        if a == b:
            return False
        parent[a] = b
        return True

    count = 0
    for k in range(len(edges)):
        if union(edges[k, 0], edges[k, 1]):
            count += 1
    return count, parent


def sets_of_ints(edges, n):
    parent = np.arange(n)

    def find(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    kept = []
    for a, b in edges:
        i, j = find(a), find(b)
        if i != j:
            parent[i] = j
            kept.append((int(a), int(b)))
    return kept, parent


def by_lambda(x, p):
    f = lambda v: v**2 + p  # noqa: E731
    g = lambda a, b=2: f(a) * b  # noqa: E731
    s = 0.0
    for v in x:
        s += f(v) - g(v)
    return s


def with_defaults(x):
    def f(v, power=2, *, shift=1.5):
        for _ in range(power):
            v = v * v + shift
        return v

    out = []
    for v in x:
        out.append(f(v))
        out.append(f(v, 1, shift=0.5))
    return out


def bound_again(x):
    def f(v):
        return v + 1

    s = 0.0
    for v in x:
        s += f(v)

    def f(v):
        return v * k

    k = 2.0
    for v in x:
        s += f(v)
        k += 1.0
    return s, k


def in_a_helper(x, n):
    def outer(v):
        def inner(w):
            return w * n + v

        s = 0.0
        for j in range(3):
            s += inner(j)
        return s

    t = 0.0
    for v in x:
        t += outer(v)
    return t


def _made_here(x, p):
    def f(v):
        return math.sqrt(v * v + p)

    s = 0.0
    for v in x:
        s += f(v)
    return s


def calls_a_maker(x):
    out = np.zeros(5)
    for k in range(5):
        out[k] = _made_here(x, k)
    return out


def leaves(x, at):
    """It goes on in Python, where the inner function sees what is bound later."""
    gain = 1.0

    def f(v):
        return v * gain

    out = []
    for i in range(len(x)):
        gain += 0.5
        if i == at:
            gain += float(str(i))
        out.append(f(x[i]))
    gain = 100.0
    return out, f(1.0), gain


def leaves_within(x, n):
    """It is left in the middle of a function that has changed something, and that calls another."""
    seen = []

    def note(v):
        seen.append(v)
        return len(seen)

    def step(i):
        k = note(i)
        v = x[i + n]
        return v + k + note(-i)

    s = 0.0
    for i in range(len(x)):
        s += step(i)
    return s, seen


def fails(x, n):
    def f(i):
        return x[i] / (n - i)

    s = 0.0
    for i in range(len(x)):
        s += f(i)
    return s


def fails_in_division(n):
    def f(i):
        return 1 / (n - i)

    s = 0.0
    for i in range(2 * n):
        s += f(i)
    return s


def goes_on_to_the_end(x):
    """What is bound in the Python that goes on is what the function sees, also in later loops."""
    k = 1.0

    def f(v):
        return v + k

    s = 0.0
    for v in x:
        s += f(v)
    names = [str(v) for v in x]
    k = 10.0
    for v in x:
        s += f(v)
    k = 20.0
    for v in x:
        s += f(v)
    return s, names


def given_away(x):
    def f(v):
        return v * scale

    s = 0.0
    for v in x:
        s += f(v)
    scale = 4.0
    return s, f(1.0)


def returned(x):
    total = 0.0

    def f(v):
        return v + total

    for v in x:
        total += f(v)
    return [g(1.0) for g in (f,)], total


def names_of_comprehensions(x):
    gain = 10.0

    def f(v):
        return v * gain

    s = 0.0
    for _ in range(3):
        s += sum([f(gain) for gain in x])
        s += sum([f(v) for v in x])
    return s


def with_comprehensions(x, n):
    def f(k):
        return sum([v * k for v in x])

    return [f(k) for k in range(n)], [f(k) + n for k in range(n) if k % 2]


def _applied(f, x):
    f_of = 0.0
    for v in x:
        f_of += f(v)
        if v > 3:
            f_of += float(str(v))
    return f_of


def passed_on(x, k):
    """The helper has the inner function under its own name, and leaves."""
    scale = k

    def f(v):
        return v * scale

    t = 0.0
    for _ in range(3):
        t += _applied(f, x)
        scale += 1
    return t


def _writes(f, out, x):
    for i in range(len(x)):
        out[i] = f(x[i])
    return out[len(x) - 1]


def passed_to_one_that_writes(x, k):
    scale = k

    def f(v):
        return v * scale

    out = np.zeros(len(x) - (k == 3))
    t = 0.0
    for _ in range(3):
        t += _writes(f, out, x)
        scale += 1
    return t, out


def made_in_each_iteration(x):
    out = []
    for i in range(len(x)):

        def f(v):
            return v * x[i] + i  # noqa: B023

        g = lambda v: f(v) + i  # noqa: B023, E731
        out.append(f(2.0) + g(1.0))
        if i == 3:
            out.append(float(str(i)) + f(1))
    return out, f(1.0)


def made_on_one_way(x, first):
    if first:

        def f(v):
            return v + 1
    else:

        def f(v):
            return v - 1

    s = 0.0
    for v in x:
        s += f(v)
    return s


def another_name(x):
    def f(v):
        return v + len(seen)

    seen = []
    g = f
    for v in x:
        seen.append(g(v))
        if v > 3:
            seen.append(float(str(v)))
    return seen


def in_lists(x):
    def f(v):
        return v + 1

    def g(v):
        return v - 1

    s = 0.0
    for v in x:
        for h in (f, g):
            s += h(v) * 2
    return s


def as_a_key(x):
    order = sorted(range(len(x)), key=lambda i: -x[i])
    s = 0.0
    for k in range(len(order)):
        s = s * 2 + x[order[k]]
    return s, order


def same_names(x, n):
    i = 100

    def f(v):
        return g(v) + i

    def g(v):
        i = v * 2
        return i + n

    out = []
    for v in x:
        out.append(f(v))
        if v > 3:
            out.append(float(str(v)))
    return out


def counts_on_several_ways(x):
    n, last = 0, None

    def step(v):
        nonlocal n, last
        n += 1
        if v > 0.5:
            n += 10
            last = v
            return 1
        for k in range(3):
            n += k
            if v * k > 0.5:
                return 2
        n += 100
        return 3

    return [step(v) + n for v in x], n, last


def calls_itself(x):
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    s = 0.0
    for i in range(len(x)):
        s += depth(i) * x[i]
    return s


def not_bound_yet(x):
    def f(v):
        return v * late

    s = 0.0
    for v in x:
        if v > 0:
            late = v
        s += f(v)
    return s


def changes_what_it_sees(x):
    """A variable that all iterations add to, and that a function asks for."""
    n = 0

    def f(v):
        return v * n

    out = np.zeros(len(x))
    for i in range(len(x)):
        n += 1
        out[i] = f(x[i])
    return out, n


def makes_a_function(k):
    def inner(x):
        def f(v):
            return v * k + c

        c = 0.5
        s = 0.0
        for i in range(len(x)):
            s += f(x[i])
            if x[i] > 3:
                s += float(str(c)) + f(1.0)
        return s

    return inner


x = np.array([0.5, -1.5, 2.0, 4.0, 0.25])
edges = np.array([[0, 1], [2, 3], [1, 3], [4, 4], [5, 0], [0, 3], [6, 5]])
CASES: list[Case] = [
    exact(reads, (x, 2.0), (x, 3), (x[:0], 1.0)),
    exact(sees_what_changes, (x,), (x[:0],)),
    exact(counts_what_it_sees, (x,), (x[:0],)),
    exact(sets, (edges, 7), (edges[::-1].copy(), 9), (edges, 3)),
    exact(sets_of_ints, (edges, 7), (edges, 3)),
    exact(by_lambda, (x, 2.0), (x, 1)),
    exact(with_defaults, (x,)),
    exact(bound_again, (x,)),
    exact(in_a_helper, (x, 2.0), (x, 5)),
    exact(calls_a_maker, (x,)),
    exact(leaves, (x, -1), (x, 2), (x, 0)),
    exact(leaves_within, (x, 0), (x, 1), (x, 3)),
    exact(fails, (x, 9), (x, 3)),
    exact(fails_in_division, (5,)),
    exact(goes_on_to_the_end, (x,), refused="an object of str"),
    exact(given_away, (x,), refused="may have no value"),
    exact(returned, (x,)),
    exact(names_of_comprehensions, (x,), refused="a comprehension's"),
    exact(with_comprehensions, (x, 4)),
    exact(passed_on, (x, 2.0), (-x, 1), refused="an object of str"),
    exact(passed_to_one_that_writes, (x, 2), (x, 3), refused="under another name"),
    exact(made_in_each_iteration, (x,)),
    exact(made_on_one_way, (x, True), (x, False)),
    exact(another_name, (x,), (-x,), refused="under another name"),
    exact(in_lists, (x,)),
    exact(as_a_key, (x,)),
    exact(same_names, (x, 2.0)),
    exact(calls_itself, (x,)),
    exact(counts_on_several_ways, (np.linspace(0.0, 0.9, 8),), (x,)),
    exact(not_bound_yet, (x,), (-x[:1],)),
    exact(changes_what_it_sees, (x,)),
    exact(makes_a_function(2.0), (x,), (-x,)),
]


@each(CASES)
def test_inner_functions(c):
    check(c)


def test_threads_do_not_share_what_a_function_sees(monkeypatch):
    """Each iteration asks for what those before have added up."""
    monkeypatch.setattr(threads, "WORTH", 0)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        many = np.arange(500.0)
        for f in (counts_what_it_sees, changes_what_it_sees, sees_what_changes, reads):
            check(exact(f, (many, 2.0) if f is reads else (many,)))
    finally:
        torch.set_num_threads(before)
