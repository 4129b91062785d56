"""The order in which things happen: lists that change while a loop runs over them, changes and
checks in one statement, and loops whose next value cannot be had."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile

from .support import Case, case, check, check_whatever_leaves, each, exact, whole

_RNG = np.random.default_rng(7)
_GRAPH = _RNG.random((9, 9)) > 0.6


# A choice whose ways change something and are None both


def removed_if_there(n):
    values = [0.5, 2.0]
    for _ in range(n):
        values.remove(values[0]) if values else None
    return values


def removed_or_reversed(n):
    values = [3, 1, 2, 5]
    for k in range(n):
        values.remove(values[0]) if k % 2 and values else values.reverse()
    return values


def cleared_by_and(n):
    values = [3, 1, 2, 5]
    for k in range(n):
        k > 1 and values.reverse()
    return values


# Loops over lists that change


def breadth_first(adjacent, start):
    queue = [start]
    seen = np.zeros(len(adjacent), dtype=bool)
    seen[start] = True
    for node in queue:
        for j in range(len(adjacent)):
            if adjacent[node, j] and not seen[j]:
                seen[j] = True
                queue.append(j)
    return queue, seen


def grows_under_enumerate(n):
    found = [1]
    for k, x in enumerate(found):
        if len(found) < n:
            found.append(x + k)
    return found, k


def shrinks(n):
    values = list(range(n))
    kept = 0
    for x in values:
        kept += x
        values.pop()
    return kept, values


def empties_at_the_end(n):
    values = list(range(n))
    total = 0
    for x in values:
        total = total * 10 + x
        if x == n - 1:
            values.pop()
            values.append(0)
            n += 2
    return total, values


def zipped_with_one_that_grows(x):
    steps = [0]
    total = 0.0
    for k, v in zip(steps, x, strict=False):
        total += k * v
        steps.append(k + 1)
    return total, steps


def zipped_strictly(x, y):
    total = 0.0
    for a, b in zip(x, y, strict=True):
        total += a * b
        x[0] = total
    return total


def backwards_while_it_shrinks(n):
    values = list(range(n))
    total = 0
    for x in reversed(values):
        total = total * 3 + x
        values.pop()
        if len(values) > 2:
            values.pop()
    return total, values


def nested_over_one_list(n):
    values = [1]
    pairs = 0
    for a in values:
        for b in values:
            pairs += a * b
            if len(values) < n:
                values.append(len(values))
    return pairs, values


def rebound_while_it_runs(n):
    values = list(range(n))
    total = 0
    for x in values:
        total += x
        values = [x + 1, x + 2]
    return total, values


# Changes and checks in one statement


def pops_then_reads(x, n):
    stack = [0]
    for k in range(n):
        stack.append(k)  # noqa: PERF402
    total = 0.0
    for _ in range(n):
        total += stack.pop() * x[len(stack)]
    return total, stack


def pops_then_fails(x, n):
    stack = list(range(n))
    total = 0.0
    try:
        for k in range(n):
            total += stack.pop() * x[k]
    except IndexError:
        return total, stack
    return total, stack


def reads_then_pops(x, n):
    stack = list(range(n))
    total = 0.0
    try:
        for k in range(n):
            total += x[k] * stack.pop()
    except IndexError:
        return total, stack
    return total, stack


def two_pops(n):
    stack = [float(k) for k in range(n)]
    while len(stack) > 1:
        stack.append(stack.pop() - stack.pop())
    return stack


def pop_as_an_index(x):
    order = [2, 0, 1]
    out = np.zeros(3)
    k = 0
    while order:
        out[order.pop()] = x[k]
        k += 1
    return out


def pops_in_a_test(n):
    stack = list(range(n))
    odd = 0
    while stack:
        if stack.pop() % 2 == 1 and len(stack) > 0:
            odd += stack[len(stack) - 1]
    return odd


def _bump(x):
    x[0] += 1.0
    return x[0]


def reads_before_a_change(x, n):
    total = 0.0
    for _ in range(n):
        total += x[0] * 2 + _bump(x)
    return total


def adds_to_what_a_call_changes(x, n):
    for _ in range(n):
        x[0] += _bump(x)
    return x


class Counter:
    def __init__(self):
        self.t = 0.5
        self.u = np.zeros(3)

    def step(self):
        self.t += 1.0
        self.u[1:] += self.t
        return self.t


def adds_to_an_attribute(c, n):
    for _ in range(n):
        c.t += c.step() * 2
        c.u += c.step()
    return c.t, c.u


def adds_to_a_part(x, n):
    for k in range(n):
        x[k + 1 : k + 3] += _bump(x) + x[k]
    return x


def pops_in_slices(a):
    bounds = [9, 2, 4, 1, 0]
    total = 0.0
    while len(bounds) > 2:
        total += a[bounds.pop() : bounds[-1] + 1, bounds.pop()].sum()
    return total, bounds


def prints_what_it_pops(n):
    values = list(range(n))
    for _ in range(n):
        print(values.pop(), "of", n)
    return values


def prints_attributes(c, n):
    for k in range(n):
        c.t += 1
        print(f"{k:3d}: {c.t:.3f} {c.u.sum()}", c.t)
    return c.t


def chained_comparison(x, n):
    count = 0
    for k in range(n):
        if x[1] < k < _bump(x):
            count += 1
    return count


def swapped_by_draws(x, rng):
    for k in range(len(x) - 1, 0, -1):
        j = rng.integers(0, k + 1)
        x[k], x[j] = x[j], x[k]
    return x


def draw_after_a_read(x, n, rng):
    total = 0.0
    try:
        for k in range(n):
            total += x[k] * rng.random()
    except IndexError:
        return total, rng.random()
    return total, rng.random()


def draw_before_a_read(x, n, rng):
    total = 0.0
    try:
        for k in range(n):
            total += rng.random() * x[k]
    except IndexError:
        return total, rng.random()
    return total, rng.random()


# The next value of a loop


def unpacks_rows(a, n):
    out = np.zeros(n)
    total = 0.0
    for k in range(n):
        for p, q in a[:, : k + 1]:
            out[k] += p
            total += q
    return out, total


def unpacks_until_it_fails(a, out, n):
    try:
        for k in range(1, n):
            for p, q in a[:, :k]:
                out[k] += p + q
    except ValueError:
        return k
    return -1


def unpacks_late(a, out):
    total = 0.0
    for row in range(3):
        out[row] += 1.0
        for p, q in a[row:]:
            out[row] += 10.0
            total += p * q
    return total


def backwards_and_leaves(n):
    values = [n, 2]
    for _ in reversed(values):
        if values:
            values.pop()
    return values


def backwards_after_it_left(n):
    values, found = list(range(n)), []
    for k, x in enumerate(reversed(values), 3):
        found.append((k, x))
        if x == 3:
            found.append((0, next(reversed(values))))
            values.pop()
    return found, values


def backwards_beside_one_that_grows(n):
    values, others, found = list(range(n)), [1, 2], []
    for x, y in zip(reversed(values), others, strict=False):
        found.append((x, y))
        if x == 3:
            others.append(next(reversed(values)))
            values.pop()
        others.append(x)
    return found, values, others


def shrinks_and_grows_after_it_left(n):
    values, found = list(range(n)), []
    for x in values:
        found.append(x)
        if len(found) == n - 1:
            values.pop()
            values.pop()
            values.extend((7, 8, next(reversed(values))))
    return found, values


def keys_that_go_after_it_left(n):
    values, found = {k: k for k in range(n)}, []
    for x in values:
        found.append(x)
        if x == 1:
            del values[0]
            values[77] = 1
    return found


@each(
    [
        exact(removed_if_there, (3,), (1,), (0,)),
        exact(removed_or_reversed, (2,), (5,), (12,)),
        exact(cleared_by_and, (4,), (1,)),
        exact(breadth_first, (_GRAPH, 0), (_GRAPH[:3, :3], 1), (np.zeros((1, 1), bool), 0)),
        exact(grows_under_enumerate, (1,), (2,), (30,)),
        exact(shrinks, (1,), (2,), (9,), (0,)),
        exact(empties_at_the_end, (1,), (5,)),
        exact(zipped_with_one_that_grows, (np.arange(5.0),), (np.arange(0.0),)),
        exact(
            backwards_while_it_shrinks, (1,), (2,), (9,), (0,), refused="while a loop runs over it"
        ),
        exact(nested_over_one_list, (1,), (6,)),
        exact(rebound_while_it_runs, (1,), (6,)),
    ]
)
def test_a_list_that_changes_while_a_loop_runs_over_it(c: Case) -> None:
    check(c)


@pytest.mark.parametrize(
    "f",
    [
        backwards_and_leaves, backwards_after_it_left, backwards_beside_one_that_grows,
        shrinks_and_grows_after_it_left, keys_that_go_after_it_left,
    ],
)  # fmt: skip
def test_what_a_loop_goes_through_changes_where_python_goes_on(f) -> None:
    check_whatever_leaves(f, [(5,), (2,), (6,)])


@each(
    [
        exact(pops_then_reads, (np.arange(9.0), 8)),
        exact(pops_then_fails, (np.arange(5.0), 8), (np.arange(9.0), 8)),
        exact(reads_then_pops, (np.arange(5.0), 8), (np.arange(9.0), 8)),
        exact(two_pops, (1,), (2,), (9,)),
        exact(pop_as_an_index, (np.arange(3.0) + 1,)),
        exact(pops_in_a_test, (1,), (9,), (0,)),
        exact(reads_before_a_change, (np.arange(3.0), 4)),
        exact(adds_to_what_a_call_changes, (np.arange(3.0), 4)),
        exact(adds_to_an_attribute, (Counter(), 4)),
        exact(adds_to_a_part, (np.arange(6.0), 4)),
        exact(pops_in_slices, (np.arange(60.0).reshape(6, 10),)),
        exact(prints_what_it_pops, (4,)),
        exact(prints_attributes, (Counter(), 4)),
        case(chained_comparison, (np.arange(3.0), 4), refused="changes what it is given"),
        exact(swapped_by_draws, (np.arange(9.0), np.random.default_rng(3))),
        exact(draw_after_a_read, (np.arange(5.0), 8, np.random.default_rng(3))),
        exact(draw_before_a_read, (np.arange(5.0), 8, np.random.default_rng(3))),
    ]
)
def test_changes_and_checks_in_one_statement(c: Case) -> None:
    check(c)


@each(
    [
        exact(unpacks_rows, (_RNG.random((4, 2)), 2), (_RNG.random((4, 2)), 1)),
        exact(unpacks_until_it_fails, (_RNG.random((4, 6)), np.zeros(6), 6)),
        exact(
            unpacks_late,
            (_RNG.random((3, 2)), np.zeros(3)),
            (_RNG.random((3, 3)), np.zeros(3)),
            refused="another number of values",
        ),
    ]
)
def test_the_next_value_of_a_loop(c: Case) -> None:
    check(c)


# Names that may have no value: that is told before what stands behind them is done


def counted_in(x):
    x[0] += 1
    return x[0]


def adds_to_a_name_without_a_value(n, x):
    for _ in range(n):
        a = 1.0
    for _ in range(len(x)):
        a += counted_in(x)
    return a


def reads_a_name_without_a_value(n, x):
    for _ in range(n):
        a = 1.0
    for k in range(len(x)):
        x[k] = max(a, 2.0, counted_in(x)) + a
    return x


def draws_behind_a_name_without_a_value(n, x, rng):
    for _ in range(n):
        a = 1.0
    for k in range(len(x)):
        x[k] = a * rng.random()
    a += rng.random()
    return a


@each(
    [
        exact(adds_to_a_name_without_a_value, (2, np.zeros(3)), (0, np.zeros(3))),
        exact(reads_a_name_without_a_value, (2, np.zeros(3)), (0, np.zeros(3))),
        exact(draws_behind_a_name_without_a_value,
              (2, np.zeros(3), np.random.default_rng(3)),
              (0, np.zeros(3), np.random.default_rng(3)),
              (0, np.zeros(0), np.random.default_rng(3))),
    ]
)  # fmt: skip
def test_names_that_may_have_no_value(c: Case) -> None:
    check(c)


# Names that trade arrays of different layouts; what only one way makes


def trades_layouts(x, y):
    for _ in range(3):
        x, y = y, x
    return x, y


def trades_rows(m, y):
    k = y
    for k in m:
        for _ in range(2):
            for _ in enumerate(k):
                y, k = k, y
    return y, k


def half_of_a_branch_is_read(n, x):
    if n:
        for k in range(n * 2):
            x[k] += 1
    else:
        x[undefined] *= 2  # noqa: F821
    if round(3.0):
        x[0] += 1
    return x


def a_range_of_one_way(n, x):
    if n > 2:
        steps = range(n * 2)
        x[0] += 1
    else:
        return x
    for k in steps:
        x[k] += k
    return x


def a_choice_that_cannot_be_read(x, y, n):
    i = y if n else n
    for e in x:
        i = i + e
    return i


@each(
    [
        exact(trades_layouts, (np.arange(4.0)[::2], -np.arange(4.0)[:2])),
        exact(trades_rows, (np.arange(9.0).reshape(3, 3).T, np.array([-1.0, -2, -3]))),
        exact(half_of_a_branch_is_read, (2, np.arange(4.0))),
        exact(a_range_of_one_way, (3, np.arange(6.0)), (1, np.arange(3.0)), refused="one way only"),
        exact(a_choice_that_cannot_be_read, (np.arange(2.0), np.arange(2, dtype="f2"), 0),
              refused="float16"),
    ]
)  # fmt: skip
def test_names_behind_branches_and_loops(c: Case) -> None:
    check(c)


# What a fuzzer of programs has found


def leaves_behind_a_draw(y, m, n, rng):
    a = 1
    for _ in y:
        pass
    y[m.shape[1] % 1] = rng.integers(2)
    a = n
    for _ in m:
        pass
    return a, rng.integers(1000)


def lists_and_arrays_of_other_sizes(x, y, n):
    out = []
    for _ in range(1):
        x = x[:-1]
    for _ in range(1):
        out.append(n)
        y, x = (x, y)
    return x, y, out


def changes_then_does_not_fit(x, y, n):
    a = _bump(x)
    x[:] = y
    for _ in range(n):
        pass
    return a


def under_a_mask_in_place(x, n, t):
    for k in range(n):
        x[x > k] -= t
        x[[0, 1]] *= t
    return x


class Stopper:
    def __init__(self):
        self.dt = 4

    def shrink(self, n):
        for k in range(n):
            self.dt -= 1
            if k == 1:
                break
        return self.dt


def sets_then_breaks(s, n):
    for _ in range(n):
        s.dt -= 1
        break
    return s.shrink(n), s.dt


def pops_on_one_way(x, n):
    stack = list(range(n))
    total = 0.0
    try:
        for k in range(n):
            total += (stack.pop() if k > 1 else 1) * x[k]
    except IndexError:
        return total, stack
    return total, stack


def fails_in_a_test(x, n):
    k = 0
    total = 0.0
    try:
        while x[k] > n or x[k + 1] > n:
            total += x[k]
            k += 1
    except IndexError:
        return k, total
    return -1, total


def fails_in_a_test_within(x, n):
    found = []
    for i in range(n):
        k = i
        while x[k] != 0:
            k += 1
            found.append(k)
    return found


def kinds_of_chains(x, a, n):
    out = []
    for k in range(len(x)):
        out.append((a < x[k] < 3, 1 <= k < 3, 0 <= k < x[k], x[k] <= 2.0 < a))  # noqa: PERF401
    c = a < x[0] < x[-1] < 5.0
    d = 0 < n < x[0]
    return out, c, d


def size_of_one_or_another(x, t, n):
    for _ in range(n):
        t = np.tanh(t)
    return abs(t), -t


@each(
    [
        exact(pops_on_one_way, (np.arange(5.0), 8), (np.arange(9.0), 8)),
        exact(fails_in_a_test, (np.ones(4), 0), (np.ones(4), 3), (np.array([2.0, 1, 0]), 0)),
        exact(fails_in_a_test_within, (np.array([1.0, 2, 0, 3]), 3), (np.array([1.0, 0, 5]), 3)),
        exact(kinds_of_chains, (np.arange(4.0), 0.5, 2), (np.arange(4), 1, 0), (np.ones(2), 0, 1)),
        exact(size_of_one_or_another, (np.ones(1), -0.5, 0), (np.ones(1), -0.5, 2)),
        exact(leaves_behind_a_draw, (np.ones(1), np.ones((2, 1), "f2"), 2,
                                     np.random.default_rng(2)), refused="float16"),
        exact(lists_and_arrays_of_other_sizes, (np.ones(3), 1, 2), (np.ones(1), 1, 2),
              refused="one or another"),
        exact(changes_then_does_not_fit, (np.ones(3), np.ones(2), 1), (np.ones(3), np.ones(3), 1)),
        exact(under_a_mask_in_place, (np.arange(4), 2, 0.5), (np.arange(4.0), 2, 0.5),
              (np.arange(4), 2, 3), refused="another kind of dtype"),
        exact(sets_then_breaks, (Stopper(), 1), (Stopper(), 0), (Stopper(), 5)),
    ]
)  # fmt: skip
def test_found_by_a_fuzzer(c: Case) -> None:
    check(c)


def test_a_function_whose_code_is_replaced() -> None:
    def inner(x, by=1):
        return x + by

    def other(x, by=1):
        return x - by

    def program(x):
        s = 0.0
        for v in x:
            s += inner(v)
        return s

    fast = np_compile.compile(program)
    with whole():
        assert fast(np.ones(3)) == 6
        inner.__code__ = other.__code__
        assert fast(np.ones(3)) == 0
