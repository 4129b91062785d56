"""What is raised and caught in what is read: compiled code goes to the handler."""

from __future__ import annotations

import math

import numpy as np

from .support import case, check, check_whatever_leaves, each, exact

A = np.array([1.5, -0.5, 0.0, 3.0, -2.5, 0.0, 7.0, 0.25])
CALLS = (A,), (A[:1],), (A[3:5].copy(),), (np.zeros(0),), (-A,)


class Bad(Exception):
    pass


class Worse(Bad):
    pass


class Own(Exception):
    def __init__(self, n):
        self.n = n


def raised(a):
    bad, s = 0, 0.0
    for k, v in enumerate(a):
        try:
            if v < 0:
                raise ValueError(f"negative {v:.3f} at {k:3d}, {s}")
            s += math.sqrt(v)
        except ValueError:
            bad += 1
    return s, bad


def divided(a):
    bad, s, last = 0, 0.0, None
    for v in a.tolist():
        try:
            s += 1 / v
            last = v
        except ZeroDivisionError:
            bad += 1
            s -= 1
        else:
            bad += 10
    return s, bad, last


def integers(a):
    bad = s = 0
    for v in a.tolist():
        try:
            s += 100 // int(v) + 7 % int(v)
        except ArithmeticError:
            bad += 1
    return s, bad


def keys(a):
    d = {}
    for k in (a * 2).astype(int).tolist():
        try:
            d[k] += 1
        except KeyError:
            d[k] = 1
    return d


def indices(a):
    n, items = 0, [1, 2, 3]
    for k in range(7):
        try:
            n += items[k]
            n += int(a[k * 5])
            items.pop()
            items.pop()
        except IndexError:
            n -= 1
            items.append(k)
    return n, items


def in_mathematics(a):
    roots, bad = 0.0, []
    for i, v in enumerate(a.tolist()):
        try:
            roots += math.sqrt(v)
        except ValueError:
            bad.append(i)
    return roots, bad


def helper(v):
    if v < 0:
        raise Worse("negative")
    return v + 1


def through_calls(a):
    out, n, y = [], 0, 0.0
    for v in a:
        y = v
        try:
            y = y + 1
            z = helper(y - 1)
            if z > 2:
                raise Bad
            out.append(z)
        except Worse:
            n += 1
            out.append(y)
        except (Bad, KeyError):
            n += 100
            continue
        except IndexError:
            break
        n += 1000
    return out, n, y


def one_in_the_other(a):
    n = 0
    for v in a.tolist():
        try:
            try:
                x = 1 / int(v)
            except KeyError:
                n += 1
            n += 2
            if x > 0:
                raise Bad
        except ZeroDivisionError:
            n += 10
        except Bad:
            n += 100
    return n


def arrays_made_before(a):
    total = np.zeros(3)
    for k in range(6):
        try:
            t = np.full(3, float(k))
            t = t * 2
            total += t
            if k % 2:
                u = t + total
                raise Bad
            total += 1 / (k - 2)
        except Bad:
            total -= u
        except ZeroDivisionError:
            total = total + t
    return total


class Account:
    def __init__(self, balance):
        self.balance, self.failed = balance, 0

    def take(self, x):
        if x > self.balance:
            raise Bad("not enough")
        self.balance -= x


def accounts(given, amounts):
    lost = 0.0
    for k, x in enumerate(amounts):
        try:
            given[k % 3].take(x)
        except Bad:
            given[k % 3].failed += 1
            lost += x
            continue
        given[(k + 1) % 3].balance += x
    return lost


def made(given, amounts):
    all_ = [Account(b) for b in given]
    return accounts(all_, amounts), [x.balance for x in all_], [x.failed for x in all_]


def returns(a):
    try:
        s = 0
        for v in a.tolist():
            s += int(v)
        x = 1 / s
    except ZeroDivisionError:
        return "zero", s
    return s, x


@each(
    [
        exact(raised, *CALLS),
        exact(divided, *CALLS),
        exact(integers, *CALLS),
        exact(keys, *CALLS),
        exact(indices, *CALLS),
        exact(in_mathematics, *CALLS),
        exact(through_calls, *CALLS),
        exact(one_in_the_other, *CALLS),
        exact(arrays_made_before, (A,)),
        exact(made, ([5.0, 1.0, 2.0], np.arange(12.0)), ([0.0, 0.0, 0.0], np.arange(12.0))),
        exact(returns, *CALLS),
    ]
)
def test_is_caught_in_compiled_code(c):
    fast = check(c)
    assert not left(fast)


def left(fast) -> list:
    """Where compiled code has left."""
    regions = [r for known in fast._reading._regions.values() for r in known]
    return [x for r in regions for x in r.exits.values() if x.frames is not None and x.count]


def numpy_divides(a):
    n = 0
    for v in a:
        try:
            x = 1.0 / (v - v)
            n += 1 if x != x else 2
        except ZeroDivisionError:
            n += 100
    return n


def one_kind_or_another(a):
    n, y = 0, 0
    for v in a:
        try:
            n += 1 if 1 / y > 0 else 2
        except ZeroDivisionError:
            n += 100
        y = v - v
    return n


def asks_for_the_exception(a):
    texts = []
    for v in a:
        try:
            if v < 0:
                raise ValueError("negative")
        except ValueError as e:
            texts.append(str(e))
    return texts


def raises_again(a):
    n = 0
    for v in a:
        try:
            if v < 0:
                raise ValueError("negative")
        except ValueError:
            if n > 0:
                raise
            n += 1
    return n


def in_their_order(a):
    n, d = 0, {}
    for k in range(6):
        try:
            n += d[1 // (k - 3)]
        except KeyError:
            n += 1
    return n


def of_a_class_with_code(a):
    n = 0
    for v in a.tolist():
        try:
            if v < 0:
                raise Own(1 / (v + 2.5))
        except Own:
            n += 1
    return n


def a_wrong_format(a):
    n = 0
    for v in a.tolist():
        try:
            if v < 0:
                raise ValueError(f"{v:d}")
        except KeyError:
            n += 1
    return n


def ended_by_finally(a):
    n = 0
    for v in a.tolist():
        try:
            try:
                n += 1 / v > 0
            finally:
                n += 10
        except ZeroDivisionError:
            n += 100
    return n


def in_a_loop_inside(a):
    n = 0
    for k in range(3):
        try:
            for v in a.tolist():
                n += 1
                if v < k - 1:
                    raise Bad
        except Bad:
            n += 100
    return n


@each(
    [
        case(f, *CALLS)
        for f in (numpy_divides, one_kind_or_another, asks_for_the_exception, raises_again,
                  in_their_order, of_a_class_with_code, a_wrong_format, ended_by_finally,
                  in_a_loop_inside)
    ]
)  # fmt: skip
def test_what_is_not_caught_there_is_pythons(c):
    check_whatever_leaves(c.function, c.calls)
