"""Lists, comprehensions and prints in compiled loops."""

from __future__ import annotations

import numpy as np

from .support import Case, case, check, each, exact


def collects(x, t):
    found = []
    for i in range(len(x)):
        if x[i] > t:
            found.append(i)  # noqa: PERF401
    return found, len(found)


def collects_floats(x):
    out = [0.5]
    for v in x:
        out.append(float(v) + out[-1])
    return out, np.array(out), sum(out), max(out)


def stack(n):
    todo, seen = [n], 0
    while todo:
        k = todo.pop()
        seen += k
        if k > 1:
            todo.append(k // 2)
            todo.append(k - k // 2 - 1)
    return seen, todo


def queue_by_index(m, start):
    n = m.shape[0]
    reached = np.zeros(n, dtype=bool)
    order = [start]
    reached[start] = True
    at = 0
    while at < len(order):
        i = order[at]
        at += 1
        for j in range(n):
            if m[i, j] and not reached[j]:
                reached[j] = True
                order.append(j)
    return order, reached


def table(n):
    t = [0] * (n + 1)
    t[0] = 1
    for coin in (1, 2, 5):
        for k in range(coin, n + 1):
            t[k] += t[k - coin]
    return t, t[n]


def comprehensions(x, n):
    squares = [k * k for k in range(n)]
    odd = np.array([v for v in squares if v % 2], dtype=float)
    grid = np.array([[i * 10 + j for j in range(3)] for i in range(n)])
    total = sum(v * 2 for v in x)
    return squares, odd, grid, total, any(v > 3 for v in x), all(v > -9 for v in x)


def history(x, n):
    norms = []
    for _ in range(n):
        x = x * 0.5 + 1
        norms.append(np.sqrt((x**2).sum()))
    return x, norms, np.array(norms)


def snapshots(x, n):
    out = []
    for k in range(n):
        x[k] += 1
        out.append(x.copy())
    return np.array(out), out


def argument_list(values, n):
    for k in range(n):
        values[k] += k
        values.append(k)
    return values


def changed_while_used(n):
    a = [1, 2, 3]
    b = a
    for k in range(n):
        b.append(k)
        a[k] = -1
    return a, b, a is b


def out_of_list(n):
    a = [1.5, 2.5]
    s = 0.0
    for k in range(n):
        s += a[k] + a[-k - 1]
    return s


def empty_pop(n):
    a = [1, 2]
    for _ in range(n):
        a.pop()
    return a


def sorts(x):
    order = []
    for i in range(len(x)):
        k = len(order)
        while k > 0 and x[order[k - 1]] > x[i]:
            k -= 1
        order.insert(k, i)
    return order


def dictionary(x):
    counts = {}
    for v in x:
        counts[int(v)] = counts.get(int(v), 0) + 1
    return counts


def prints(x, n):
    print("start", n)
    s = 0.0
    for k in range(n):
        s += x[k]
        if k % 2:
            print(k, s, f"{s:.3f}")
    print("end", s)
    return s


def prints_arrays(x, n):
    for k in range(n):
        x[k] = -k
        print(x)
    return x


def prints_then_fails(x, n):
    for k in range(n):
        print("at", k)
        x[k] += 1
    return x


X = np.array([3.0, -1.0, 4.0, 1.5, -9.5])
M = np.array([[0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]])
CASES = [
    exact(collects, (X, 0), (X, 99), (X[:0], 0.0), (X, 0.5)),
    exact(collects_floats, (X,), (X[:0],), (X[:1],)),
    exact(stack, (0,), (1,), (30,)),
    exact(queue_by_index, (M, 0), (M, 2), (M[:1, :1], 0), (M, 7)),
    exact(table, (0,), (1,), (50,), (4,), refused="an item of this is changed"),
    exact(comprehensions, (X, 4), (X, 0), (X[:0], 1), refused="a list of what are no"),
    exact(history, (X, 3), (X, 0), (X[:0], 2)),
    exact(snapshots, (X, 3), (X, 0), (X, 6), refused="no numbers"),
    exact(
        argument_list, ([1, 2, 3], 3), ([1, 2], 4), ([], 0), refused="an item of this is changed"
    ),
    exact(changed_while_used, (0,), (2,), (9,)),
    exact(out_of_list, (0,), (2,), (3,)),
    exact(empty_pop, (0,), (2,), (3,)),
    exact(sorts, (X,), (X[:0],), refused="nothing is known"),
    exact(dictionary, (X,), (X[:0],), refused="Dict"),
    case(prints, (X, 0), (X, 5), (X, 6)),
    exact(prints_arrays, (X, 3), (X, 6)),
    exact(prints_then_fails, (X, 3), (X, 9)),
]  # fmt: skip


@each(CASES)
def test_lists_and_prints(c: Case) -> None:
    check(c)
