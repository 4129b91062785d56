"""`name := ...`, sorted lists, and what stands around a function."""

# ruff: noqa: PERF401

from __future__ import annotations

import warnings

import numpy as np

import np_compile

from .support import Case, check, check_call, each, exact, refusals, whole

X = np.array([3.5, -1.0, 2.25, 0.0, 7.0, -4.5, 2.25])


def in_a_test(x, limit):
    found = []
    for i in range(len(x)):
        if (y := x[i] * 2) > limit:
            found.append(y)
        elif (z := y + 1) < 0:
            found.append(z)
    return found


def in_while(n):
    steps = 0
    while (n := n // 3) > 0:
        if n % 7 == 6:
            continue
        steps += n
    else:
        steps += 1000
    return steps, n


def in_while_with_and(x, k):
    total = 0.0
    while k < len(x) and (y := x[k]) != 0:
        total += y
        k += 1
        if total > 1e3:
            break
    else:
        total = -total
    return total, k


def in_or(x):
    n = 0
    for i in range(len(x)):
        if x[i] < 0 or (y := int(x[i])) % 2 == 1:
            n += 1
        else:
            n += 10 * y
    return n


def twice(x):
    s = 0.0
    for i in range(len(x)):
        s += (a := x[i]) * (b := a + 1) - (a := b * 2) + a
    return s, a, b


def read_before(n):
    s = 0
    for k in range(n):
        s = s + (s := k)
    return s


def of_values(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[(k := len(x) - 1 - i)] = (v := x[i]) + v * i
        out[k] += k
    return out


def may_fail(x, k):
    """The name has its value where what is behind it raises."""
    n = -1
    try:
        for i in range(len(k)):
            if x[(n := k[i])] > 100:
                return "large"
    except IndexError as e:
        return str(e), n
    return n


def as_argument(x):
    s = 0
    for i in range(len(x)):
        s += max((a := i * i), 3) + a
    return s


def chosen(x):
    """Where it is not always evaluated."""
    s, y = 0.0, 0.0
    for i in range(len(x)):
        s += (y := x[i]) if x[i] > 0 else y
    return s


def in_a_comprehension(x, y):
    """It binds a name of the function."""
    doubled = [y for e in x if (y := e * 2) > 1]
    return y, doubled


def witness(x, y):
    total = 0.0
    for i in range(len(x)):
        if any((y := e) < x[i] for e in x):
            total += y
        total += sum([(z := e) for e in x]) + z
    return total, y


def medians(x, w):
    out = np.zeros(len(x))
    for i in range(len(x)):
        near = [x[j] for j in range(max(0, i - w), min(len(x), i + w + 1))]
        near.sort()
        out[i] = near[len(near) // 2]
    return out


def ordered(n, seed):
    values = []
    for _ in range(n):
        seed = (seed * 1103515245 + 12345) % (1 << 31)
        values.append(seed % 17 - 8)
    down = sorted(values, reverse=True)
    up = sorted(values)
    values.sort(reverse=n % 2)
    return up, down, values, sorted(range(n, 0, -1)), sorted((3, 1, 2))


def signs_of_zeros(x):
    values = [0.0]
    for i in range(len(x)):
        values.append(float(x[i]))
    return sorted(values), sorted(values, reverse=True), sorted(x)


def of_none(n):
    found = []
    for i in range(n):
        if i < 0:
            found.append(i)
    return sorted(found), sum(found), len(found)


def extremes(x, n):
    values = []
    for i in range(n):
        values.append(float(x[i]))
    return min(values), max(values), sum(values)


def words_of(n):
    found = []
    for i in range(n):
        found.append((n - i, i * 0.5))
    return sorted(found)


CASES = [
    exact(in_a_test, (X, 1.0), (X, -20.0), (X[:0], 1.0)),
    exact(in_while, (100_000,), (2,), (0,)),
    exact(in_while_with_and, (X, 0), (X, 3), (X, 7), (np.full(3, 600.0), 0)),
    exact(in_or, (X,), (X[:0],), (-np.abs(X) - 1,)),
    exact(twice, (X,), (X[:1],)),
    exact(read_before, (4,), (0,), refused="not always evaluated"),
    exact(of_values, (X,), (X[:0],)),
    exact(may_fail, (X, np.array([0, 3, 9])), (X, np.array([1, 2])), (X, np.arange(0))),
    exact(as_argument, (X,), (X[:0],)),
    exact(chosen, (X,), (X[:0],), refused="not always evaluated"),
    exact(in_a_comprehension, (X, 0.5), (X, X), (X[:0], X), refused="in a comprehension"),
    exact(witness, (X, 0.5), (X, None), (X[:0], X), refused="in a comprehension"),
    exact(medians, (X, 1), (X, 3), (X, 0), (X[:0], 2), (np.array([1, np.nan, 2]), 1)),
    exact(ordered, (9, 1), (100, 5), (1, 2), (0, 0), (2, 7)),
    exact(signs_of_zeros, (X,), (np.array([-0.0, 0.0, -0.0]),), (np.array([np.nan, 1.0]),)),
    exact(of_none, (3,), (0,)),
    exact(extremes, (X, 7), (X, 1), (X, 0), (np.array([2.0, np.nan, 1.0]), 3)),
    exact(words_of, (3,), (0,)),
]  # fmt: skip


@each(CASES)
def test_named(c: Case) -> None:
    check(c)


def decorated(*_, **__):
    return lambda f: f


@decorated(key=lambda x: x + 1)
def counted(x, add=lambda y: y):
    n = 0
    for i in range(len(x)):
        n += x[i] > 0
    return n


def quiet(x):
    warnings.filterwarnings("ignore")
    warnings.simplefilter("ignore", RuntimeWarning)
    s = 0.0
    for i in range(len(x)):
        s += 1 / (1 + x[i] * x[i])
    return s


def loud(x):
    warnings.simplefilter("error")
    s = 0.0
    for i in range(len(x)):
        s += 1 / x[i]
    return s


def test_what_decorates_a_function_is_not_in_it() -> None:
    fast = np_compile.compile(counted)
    with whole():
        for _ in range(2):
            check_call(fast, counted, (X,), 0)
    assert not refusals(fast)


def test_filters_that_ignore_warnings() -> None:
    with warnings.catch_warnings(), whole():
        fast = np_compile.compile(quiet)
        for _ in range(2):
            warnings.resetwarnings()
            check_call(fast, quiet, (X,), 0)
            warnings.resetwarnings()
            fast(X)
            assert len(warnings.filters) == 2  # as the function says
    assert fast._reading.is_compiled


def test_filters_that_show_warnings() -> None:
    with warnings.catch_warnings(), whole():
        fast = np_compile.compile(loud)
        check_call(fast, loud, (X,), 0)
    assert any("warnings" in why for why in refusals(fast))
