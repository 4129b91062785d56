"""Dicts from outside whose keys are text: gone through, and asked for keys of any name."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile

from .support import check, check_call, check_whatever_leaves, each, exact, refusals, whole

MOVES = {"up": (0, 1), "down": (0, -1), "left": (-1, 0), "l": (-2, 3)}


def items_that_change(x, p):
    """Each value is taken when it is its turn."""
    s, log = 0.0, []
    for v in x:
        for k, w in p.items():
            s += w * v
            p["a"] = p["a"] + 0.125
            p["c"] = p["c"] * 2 if k == "a" else p["c"]
        for w in p.values():
            s -= w
        log.append(s)
    return s, p, log


def asked_for_by_name(x, p):
    n = 0
    for v in x:
        name = "a" if v > 2 else "c"
        n += p[name] * len(p)
        for k in p:
            if k == "c":
                continue
            if v == 7:
                break
            n += v
    return n, sum(p.values()), list(p), {k: 2 * v for k, v in p.items()}, list(p.items())


def asked_for_what_there_is(x, p):
    n = 0.0
    for v in x:
        n += p.get("a", 1) + p.get("no", v)
        name = "no" if v > 2 else "a"
        if name in p and "c" in p:
            n += p[name]
    return n, "no" in p, p.get("no"), max(p.values()), sorted(p)


def copied(x, p):
    q = dict(p)
    for v in x:
        if v > 3:
            q["a"] += 1
        elif v == 1:
            q["new"] = 2.5
    return q


def arrays(x, p):
    for i in range(len(x)):
        for name, a in p.items():
            a[i] += x[i]
            if name == "b":
                a[i] *= 2
    return {k: v.sum() for k, v in p.items()}


def steps(x):
    at = np.zeros(2)
    for v in x:
        dx, dy = MOVES["up" if v > 2 else "l"]
        at[0] += dx
        at[1] += dy
    return at


X = [1, 2, 3, 4] * 5
P, Q = {"a": 1.5, "b": 2.0, "c": 0.25}, {"c": 2.0, "a": 1.5}


@each([
    exact(f, (X, P), (X, Q), ([7, 1], Q), (X, P))
    for f in (items_that_change, asked_for_by_name, asked_for_what_there_is, copied)
] + [exact(arrays, (X, {"a": np.zeros(20), "b": np.ones(20)})), exact(steps, (X,))])  # fmt: skip
def test_records(c):
    check(c)


def missed(x, p):
    n = 0
    for v in x:
        for k, w in p.items():
            n += w // v if k != "c" else 1
        n += p["d" if n > 9 else "a"]
    return n


def test_what_leaves():
    p = {"a": 1, "b": 20, "c": 3}
    check_whatever_leaves(missed, [([1, 2, 0, 1] * 3, p), (X, p), ([30, 2], p), ([30], p)])


def test_keys_that_come_and_go():
    """A region is for dicts that have the same keys, in the same order."""

    def total(x, p):
        s = 0.0
        for v in x:
            for k, w in p.items():
                s = s * len(k) + w * v
        return s, list(p)

    fast = np_compile.compile(total)
    with whole():
        for p in (P, Q, {"a": 1.5, "c": 2.0}, {**Q, "z": 1.0}, Q, {"c": 2.0}, P):
            for _ in range(2):
                check_call(fast, total, (X, dict(p)), 0)
    assert not refusals(fast)


@pytest.mark.parametrize("key", [3, None, "b"])
def test_keys_of_other_kinds(key):
    def total(x, p):
        s = 0.0
        for v in x:
            for w in p.values():
                s = s * 0.5 + w * v
        return s

    fast = np_compile.compile(total)
    with whole():
        for p in (P, {"a": 1.0, key: 2.0}, {**P, key: 1.0}):
            check_call(fast, total, (X, p), 0)


def keys_with_new_ones(x, p):
    s = 0.0
    for k in p:
        for v in x:
            s += v
        if s > 20:
            p["new" + k] = s
    return s, p


def items_with_new_ones(x, p):
    s = 0.0
    try:
        for k, w in p.items():
            for v in x:
                s += v * w
            if s > 20:
                p[k + "new"] = s
    except RuntimeError as e:
        return s, p, str(e)
    return s, p


@pytest.mark.parametrize("f", [keys_with_new_ones, items_with_new_ones])
def test_a_dict_that_gets_new_items_in_a_loop_over_it(f):
    compiled = np_compile.compile(f)
    with np_compile.config.patch(loops="whole", compile_in="call"):
        for n in (1, 12, 1, 12):
            got, want = [], []
            for g, found in ((compiled, got), (f, want)):
                p = {"a": 1.0, "b": 1.0, "c": 1.0}
                try:
                    found.append(g(np.ones(n), p))
                except RuntimeError as e:
                    found.append(str(e))
                found.append(list(p))
            assert got == want
    assert compiled._reading.is_compiled


def momentum(w, gradients, state):
    for g in gradients:
        state["velocity"] = 0.9 * state["velocity"] + g
        w -= state["velocity"]
    return w, state


def taken_before_a_change(x, d):
    total = 0.0
    for _ in range(4):
        d["twice"] = x * 2
        x[0] += 1
        total += d["twice"][0]
        d["twice"] = 0.0
    return total, d


def taken_and_changed(x, d):
    for k in range(4):
        d["sum"] = x + d["sum"]
        y = d["sum"]
        y[0] = 5 + k
    return d, y is d["sum"]


@each([
    exact(momentum, (np.ones(3), np.arange(12.0).reshape(4, 3), {"velocity": np.ones(3)})),
    exact(taken_before_a_change, (np.ones(3), {"twice": 0.0})),
    exact(taken_and_changed, (np.ones(3), {"sum": np.zeros(3)})),
])  # fmt: skip
def test_arrays_as_items(c):
    """An item is the array as it was made, as an attribute is, not what is computed when needed."""
    check(c)


NAMED = {"value": 0.5}


def array_or_number(x):
    for v in x:
        total = NAMED["value"] * v
        NAMED["value"] = x
    return total


def test_what_is_no_single_type_is_named_as_the_user_names_it():
    fast = np_compile.compile(array_or_number)
    with whole():
        fast(np.ones(3))
    assert any(why.startswith("NAMED['value']: ") for why in refusals(fast)), refusals(fast)
