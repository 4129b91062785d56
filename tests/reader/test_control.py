"""Control flow in compiled functions."""

# ruff: noqa: F821, F841, PERF401, PERF402

from __future__ import annotations

import numpy as np

from .support import Case, check, check_whatever_leaves, each, exact


def find_pair(a, target):
    for i in range(len(a)):
        for j in range(i):
            if a[i] + a[j] == target:
                return i, j
    return None


def binary_search(a, x):
    lo, hi = 0, len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if a[mid] < x:
            lo = mid + 1
        elif a[mid] > x:
            hi = mid
        else:
            return mid
    return -lo - 1


def primes(n):
    out = []
    for k in range(2, n):
        for p in out:
            if p * p > k:
                out.append(k)
                break
            if k % p == 0:
                break
        else:
            out.append(k)
    return out


def collatz(n):
    steps = 0
    while True:
        if n == 1:
            break
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    else:
        steps = -1
    return steps


def bubble(x):
    n = len(x)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
                swapped = True
        if not swapped:
            break
    else:
        return x, "worst"
    return x, i


def skips(x, limit):
    total = 0.0
    count = 0
    for i, v in enumerate(x):
        if v < 0:
            continue
        if total > limit:
            break
        for k in range(i):
            if k % 2:
                continue
            if k > 4:
                break
            total += v
        else:
            count += 10
            continue
        count += 1
    else:
        count = -count
    return total, count


def steps_of_ranges(a, b, step):
    seen = []
    for i in range(a, b, step):
        seen.append(i)
        i += 100  # of no consequence for the loop
    return seen, len(range(a, b, step))


def countdown(n):
    out = []
    for i in range(n - 1, -1, -1):
        out.append(i)
    for i in reversed(range(n)):
        out.append(-i)
    for i in range(n, 2 * n)[::2]:
        out.append(i)
    return out


def pairs(x, y):
    dot, last = 0.0, -1
    for i, (a, b) in enumerate(zip(x, y)):  # noqa: B905
        dot += a * b * i
        last = i
    for a, b, k in zip(x[::-1], y, range(3)):  # noqa: B905
        dot -= a * b * k
    for i, a in enumerate(reversed(x), 5):
        dot += i * a
    return dot, last


def rows(m):
    best, where = 0, -1
    for i, row in enumerate(m):
        s = 0
        for v in row:
            s += v
        if s > best:
            best, where = s, i
    return best, where


def over_tuples(x):
    s = 0.0
    for i in range(1, len(x)):
        for d, w in ((-1, 0.5), (0, 1.0)):
            s += w * x[i + d]
    for name in ("a", "b"):
        if name == "b":
            s *= 2
    return s


def name_after_loop(x, n):
    for i in range(n):
        y = x[i] * 2
    return i, y


def one_way_only(x, t):
    for v in x:
        if v > t:
            found = v
    return found


def values_of_and_or(x):
    out = []
    for v in x:
        out.append(v and 7)
        out.append(v or 8)
        out.append(not v)
        out.append((v > 1 and v < 3) or v == 5)
    return out


def chained(x, a, b):
    n = 0
    for v in x:
        if a < v <= b != 3:
            n += 1
        if a <= v == b:
            n += 100
    return n


def conditional(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[i] if x[i] > 0 else -x[i] if x[i] < -1 else 0.25
    return out


def triple(n):
    c = 0
    for i in range(n):
        for j in range(i, n):
            for k in range(j, n):
                if i + j == k:
                    c += 1
                elif i + j > n:
                    break
    return c


def tried(x):
    s = 0.0
    for i in range(len(x)):
        try:
            s += 1 / int(x[i])
        except ZeroDivisionError:
            s -= 1
        else:
            s += 0.125
    return s


def tried_index(x, idx):
    good = bad = 0
    for k in range(len(idx)):
        try:
            good += x[idx[k]]
            x[idx[k]] += 1
        except IndexError as e:
            bad += len(str(e))
    return good, bad


def finally_runs(x):
    done = 0
    for v in x:
        try:
            if v > 2:
                return done
        finally:
            done += 1
    return -done


def walrus(n):
    total = 0
    while (n := n - 1) > 0:
        if (r := n % 7) > 2:
            total += r
    return total, n


def swaps(n):
    a, b, c = 1, 2.0, 3
    for k in range(n):
        a, b = b, a
        if k % 2:
            b, c = c, b
        a, (b, c) = c, (a, b)
    return a, b, c


def while_with_two_tests(x, tol):
    lo, hi = 0, len(x) - 1
    while lo <= hi and x[lo] < tol and not x[hi] < 0:
        lo += 1
        hi -= 1
    return lo, hi


def loop_in_branch(x, mode):
    if mode == "sum":
        s = 0.0
        for v in x:
            s += v
    elif mode == "product":
        s = 1.0
        for v in x:
            s *= v
    else:
        raise ValueError(f"unknown mode {mode!r}")
    return s


def range_is_fixed(n):
    out = 0
    for i in range(n):
        n = 2
        out += i + n
    return out, n


def classify(m):
    if m.shape[0] != m.shape[1]:
        return "not square"
    for i in range(len(m)):
        for j in range(i):
            if m[i, j] != m[j, i]:
                return "general"
    return "symmetric"


def none_or_value(x, t):
    found = None
    for i in range(len(x)):
        if x[i] > t and found is None:
            found = i
    if found is None:
        return -1
    return found


def matched(x):
    n = 0
    for v in x:
        match int(v):
            case 1:
                n += 10
            case 2 | 3:
                n += 1
    return n


S = np.array([3, 1, 4, 1, 5, 9, 2, 6])
F = np.array([0.5, -2.0, 1.5, 3.0, -0.25, 2.0, 5.0, 0.0])
G = np.arange(6.0)


def asks_for_what_it_binds(x):
    k, s = 0, 0.0
    while k < len(x) and (k == 0 or w < 4):
        w = x[k] * 2
        s += w
        k += 1
    return s, k


def until_settled(x):
    it = 0
    while it == 0 or abs(new - old) > 1e-3:
        old = x[it] if it == 0 else new
        new = 0.5 * (old + 2 / old)
        it += 1
    return new, it


def asks_for_what_may_be_unbound(x, n):
    k = 0
    while k < n and (k < 0 or w < 4):
        w = x[k] * 2
        k += 1
    return k


CASES = [
    exact(find_pair, (S, 13), (S, 100), (S[:0], 1), (S[:1], 6)),
    exact(binary_search, *((np.arange(0, 40, 3), k) for k in (0, 9, 10, 39, 99))),
    exact(primes, (0,), (3,), (60,)),
    exact(collatz, (1,), (27,), (97,), (2**62 + 1,)),
    exact(
        bubble,
        (F,),
        (np.sort(F),),
        (F[:0],),
        (F[:1],),
        (np.sort(F)[::-1],),
    ),
    exact(skips, (F, 3.0), (F, 100.0), (F[:0], 1.0), (F[:1], 0.0)),
    exact(steps_of_ranges, (0, 5, 1), (5, 0, -1), (5, 0, -2), (0, 5, 3), (3, 3, 1), (0, 5, 0)),
    exact(countdown, (0,), (1,), (5,)),
    exact(pairs, (F, G), (F[:0], G), (F[:1], G), (F[:3], G[:2])),
    exact(rows, (S.reshape(2, 4),), (np.zeros((0, 3), int),), (np.zeros((3, 0), int),)),
    exact(over_tuples, (F,), (F[:1],), (F[:0],)),
    exact(name_after_loop, (F, 3), (F, 0), (F, 9)),
    exact(one_way_only, (F, 1.0), (F, 100.0), (F[:0], 1.0)),
    exact(values_of_and_or, (F,), (F[:0],), refused="it is of type"),
    exact(values_of_and_or, (S,), (S[:0],)),
    exact(chained, (F, 0.0, 2.0), (F, 0, 3)),
    exact(chained, (S, 1, 5), (S, 0, 3)),
    exact(conditional, (F,), (F[:0],)),
    exact(triple, (0,), (1,), (9,), (17,)),
    exact(tried, (F,), (np.array([1.0, 0.0, 2.0]),), (F[:0],), (np.zeros(6),)),
    exact(tried_index, (S, np.array([0, 9, -8, -9, 3])), (S, S[:0])),
    exact(finally_runs, (F,), (F[:1],)),
    exact(walrus, (0,), (20,)),
    exact(swaps, (0,), (1,), (2,), (5,)),
    exact(while_with_two_tests, (F, 2.0), (F[:0], 1.0), (np.sort(F), 9.0)),
    exact(
        loop_in_branch, (F, "sum"), (F, "product"), (F, "none"), (F[:0], "sum"), refused="no loop"
    ),
    exact(range_is_fixed, (5,), (0,), (1,)),
    exact(
        classify, (np.eye(3),), (np.zeros((2, 3)),), (F.reshape(2, 4)[:, :2],), refused="no loop"
    ),
    exact(none_or_value, (F, 1.0), (F, 99.0), (F[:0], 0.0)),
    exact(matched, (S,), (S[:0],)),
    exact(asks_for_what_it_binds, (F,), (F[:1],), (F[:0],), (F / 9,)),
    exact(until_settled, (F + 1,), (F + 7,)),
]  # fmt: skip


@each(CASES)
def test_control_flow(c: Case) -> None:
    check(c)


def test_a_test_that_asks_for_a_name_without_value():
    check_whatever_leaves(asks_for_what_may_be_unbound, [(F, 0), (F, 3)])


def a_list_or_a_dict(x):
    y = {}
    for i in range(len(x)):
        if x[i] > 0:
            y = [1]
        s = len(y)
    return s


def longer_and_longer(x):
    p = (1,)
    for i in range(len(x)):
        p = p + (i,)  # noqa: RUF005
    return p


def a_vector_or_a_row(x):
    for i in range(len(x)):
        y = x if i % 2 else x[None]
        s = y.sum()
    return s


def takes_a_number_apart(x):
    s = 0.0
    for i in range(len(x)):
        a, b = x[i]
        s += a - b
    return s


def test_a_reason_names_what_a_name_may_be():
    x = np.arange(5.0)
    check(exact(a_list_or_a_dict, (x,), refused="'y': it is one or another: a list, or a dict"))
    check(exact(longer_and_longer, (x,), refused="a tuple of 1, or a tuple of 2 (line"))
    axes = "an array of float64 with 1 axis, or an array of float64 with 2 axes"
    check(exact(a_vector_or_a_row, (x,), refused=axes))
    check(exact(takes_a_number_apart, (x,), refused="a number of type float64 is unpacked"))


def in_an_unrolled_loop(x, weights):
    s = 0.0
    for a, b in weights:
        for i in range(len(x)):
            t = x[i] * a + b
            if t > 1:
                t = t - x[(i + 1) % len(x)] * 2 + a
            s += t * b - x[i - 1] / (a + 2) + abs(t) * x[(i * 3) % len(x)]
    return s


def test_a_long_loop_over_a_list_from_outside_is_not_unrolled():
    """The compiler would take minutes."""
    x = np.linspace(0, 1, 9)
    short, long = ([(0.5 * k, 1.0 - k) for k in range(n)] for n in (3, 60))
    check(exact(in_an_unrolled_loop, (x, short), (x, long)))
