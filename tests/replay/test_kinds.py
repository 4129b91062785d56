"""Calls that run as they stand are known by kinds of arguments, not by each of their values."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import np_compile
from np_compile import config
from np_compile.capture.policy.choice import new_choice, signature
from np_compile.replay.calls import MISS, Entry, Table, Way
from np_compile.replay.keeper import Keeper
from np_compile.replay.kinds import alike, wider

from ..support import lasts


def knows(guards, *args, form=None):
    """Whether C takes a call for one of this kind, and hands the arguments on."""
    table = Table()
    entry = Entry(Way.PLAIN, len(guards), (), guards, form)
    entry.calls(lambda *given: given)
    table.publish([entry])
    result = table.call(*args)
    assert result is MISS or all(map(operator.is_, result, args))
    return result is not MISS


def of(*args):
    guards, form = alike(args, [f"a{k}" for k in range(len(args))])
    assert form is None
    return guards


def roughly(*args):
    guards, form = alike(args, "abcde"[: len(args)], True)
    assert form is None
    return guards


def test_an_integer_is_like_those_of_about_its_size():
    assert [n for n in range(-20, 20) if knows(of(7), n)] == [7]
    assert [n for n in range(80, 120) if knows(of(100), n)] == [*range(96, 104)]
    assert [n for n in range(-120, -80) if knows(of(-100), n)] == [*range(-104, -96)]
    for n in (2**62, 2**63 - 1, -(2**63), 2**63, 2**100):
        assert knows(of(n), n)
        assert not knows(of(n), 0)
        assert not knows(of(n), -n)
    for strange in (True, 7.0, np.int64(7), "7", None, 2**70, -(2**70)):
        assert not knows(of(7), strange)
    assert not knows(of(True), 1)


def test_what_is_wider_holds_for_both_and_between():
    guards = wider(of(3, "a", 1.5), of(40, "a", 2.5))
    assert [n for n in range(-5, 60) if knows(guards, n, "a", 0.5)] == [*range(3, 44)]
    assert not knows(guards, 20, "b", 0.5)
    assert not knows(guards, 20, "a", 1)
    assert wider(of(3, "a"), of(3, "b")) is None
    assert wider(of(3), of(3.0)) is None
    assert wider(of(3), of(3, 4)) is None
    assert wider(of(3), of(True)) is None


def test_arrays_are_alike_up_to_their_elements():
    guards = wider(of(np.zeros((3, 4))), of(np.zeros((9, 2))[::2]))
    for a in (np.zeros((3, 4)), np.zeros((12, 1)), np.zeros((0, 7)), np.zeros((6, 4))[::2]):
        assert knows(guards, a)
    strange = [
        np.zeros((13, 1)), np.zeros(4), np.zeros((2, 2), np.float32), np.zeros((2, 2), ">f8"),
        np.zeros((1, 1, 1)), np.ma.zeros((2, 2)), 1.0, [[1.0]],
    ]  # fmt: skip
    assert not any(knows(guards, a) for a in strange)
    assert wider(of(np.zeros(3)), of(np.zeros((3, 1)))) is None
    assert wider(of(np.zeros(3)), of(np.zeros(3, int))) is None
    wide = wider(guards, of(np.zeros((5, 5))))
    assert knows(wide, np.zeros((13, 1)))


def steps(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def total(x):
    s = 0.0
    for v in x:
        s += v
    return s


def chosen(f, calls, ways):
    """A compiled function, of whose calls it is known whether they are faster as they stand."""
    compiled = np_compile.compile(f)
    with config.patch(compile_in="call", loops="auto"):
        compiled(calls[0])  # from here on it is compiled
        for a in calls:
            compiled(a)
        choices = list(compiled._options.choices.values())
        assert len(choices) == len(calls)
        for choice, way in zip(choices, ways, strict=True):
            plain = way == "plain"
            choice.way, choice.plain, choice.compiled = way, 2.0 - plain, 1.0 + plain
        compiled._unweighed.value = 0
        for a in calls:
            compiled(a)
    return compiled


def test_calls_of_many_sizes_are_of_one_kind():
    sizes = [64 << k for k in range(7)]
    compiled = chosen(steps, sizes, ["plain"] * len(sizes))
    kept = set(compiled._keeper.plain.values())
    assert len(kept) < 5
    assert any(p.is_wide for p in kept)
    for n in range(1, 40):
        assert compiled(n) == steps(n)
    compiled = chosen(total, [np.ones(n) for n in sizes], ["plain"] * len(sizes))
    assert len(set(compiled._keeper.plain.values())) < 5
    for n in range(20):
        assert compiled(np.full(n, 0.5)) == total(np.full(n, 0.5))


def test_a_call_that_is_faster_compiled_ends_the_kind_that_it_is_of():
    sizes = [64 << k for k in range(7)]
    compiled = chosen(steps, sizes, ["plain"] * len(sizes))
    keeper = compiled._keeper
    assert keeper._plain((99,), ()) is not None
    keeper.is_compiled((99,), {})
    assert keeper._plain((99,), ()) is None
    assert keeper._table.call(99) is MISS
    assert compiled(99) == steps(99)


def test_short_loops_run_as_they_stand_where_that_is_faster(clock, monkeypatch):
    """Python takes 0.2 us for it, and some to make a list of what C has made."""
    clock.look = 1e-7
    lasts(Keeper, "read", 1e-6, clock, monkeypatch)

    def listed(n):
        found = []
        for k in range(n):
            found.append(k)
            n = k
        return found

    compiled = np_compile.compile(listed)
    with config.patch(loops="auto"):
        assert compiled(50) == [*range(50)]
        for _ in range(200):
            assert compiled(2) == [0, 1]
    assert compiled._reading.is_compiled
    assert "plain" in [c.way for c in compiled._options.choices.values()]


def test_long_loops_stay_compiled_and_are_not_tried(clock):
    clock.look = 2e-3

    def f(x):
        s = 0.0
        for k in range(x.shape[0]):
            s += x[k] * x[k]
        return s

    compiled = np_compile.compile(f)
    x = np.ones(2_000_000)
    with config.patch(loops="auto", compile_in="call"):
        for _ in range(4):
            assert compiled(x) == 2e6
    (choice,) = compiled._options.choices.values()
    assert choice.way == "compiled"
    assert choice.plain == float("inf")


@pytest.mark.parametrize("settings", [{"loops": "whole"}, {"plain": "never"}])
def test_settings_that_ask_for_compiled_loops(settings):
    compiled = np_compile.compile(steps)
    with config.patch(**settings):
        for _ in range(50):
            assert compiled(4) == 2
    assert not compiled._options.choices


def test_guards_of_about_a_size_hold_for_lists_up_to_it():
    guards = roughly([1] * 9, 20, np.zeros(9))
    for given, expected in [
        (([1] * 15, 31, np.ones(15)), True), (([1], 16, np.ones(1)), True),
        (([1] * 16, 20, np.zeros(9)), False), (([1.0], 20, np.zeros(9)), False),
        (([], 20, np.zeros(9)), False), (((1,), 20, np.zeros(9)), False),
        (([1], 15, np.zeros(9)), False), (([1], 32, np.zeros(9)), False),
        (([1], 20, np.zeros(16)), False), (([1], 20, np.zeros(9, int)), False),
    ]:  # fmt: skip
        assert knows(guards, *given) == expected
    empty = roughly(())
    assert knows(empty, ())
    assert not knows(empty, (1,))
    assert not knows(empty, [])


def test_long_texts_lists_and_dicts_are_alike_by_their_length():
    text, items, table = "x" * 100, [1.5] * 50, dict.fromkeys(range(50))
    for n in range(40, 200):
        assert knows(of(text), "y" * n) == (64 <= n < 128)
        assert knows(of(items), ["a"] * n) == (48 <= n < 52)
        assert knows(of(table), dict.fromkeys(range(n))) == (48 <= n < 52)
        assert signature(("y" * n,), {}) == signature((text,), {}) or not 64 <= n < 128
        assert (signature(([0] * n,), {}) == signature((items,), {})) == (48 <= n < 52)
    assert not knows(of(items), (1.5,) * 50)
    assert knows(wider(of(items), of([0] * 30)), [2] * 40)
    assert not knows(of("short"), "other")


def test_guards_of_about_a_size_hold_for_dicts_and_long_texts():
    long = "y" * 40
    guards = roughly({"a": 1, "b": 2.0}, "x" * 40, "mode")
    for given, expected in [
        (({"z": 7}, "y" * 63, "mode"), True), (({"z": 7}, "", "mode"), False),
        (({1: 1, 2: 2, 3: 3}, long, "mode"), True), (({"z": 7}, "y" * 31, "mode"), False),
        (({1: 1, 2: 2, 3: 3, 4: 4}, long, "mode"), False), (({"z": 7.0}, long, "mode"), False),
        (({}, long, "mode"), False), (([1], long, "mode"), False),
        (({"z": 7}, "y" * 64, "mode"), False), (({"z": 7}, b"y" * 40, "mode"), False),
        (({"z": 7}, long, "mood"), False),
    ]:  # fmt: skip
        assert knows(guards, *given) == expected
    assert knows(roughly({}), {})


def test_structures_are_alike_by_their_leaves():
    x = np.zeros(3)
    for rough in (False, True):
        guards, form = alike(([x, 20], 20, {"w": (x,)}), "abc", rough)
        for given, expected in [
            (([x + 1, 21], 21, {"w": (x,)}), True), (([x, 20], 20, {"w": (x + 1,)}), True),
            (([x[:2], 20], 20, {"w": (x,)}), False), (([x, 40], 20, {"w": (x,)}), False),
            (([x], 20, {"w": (x,)}), False), (((x, 20), 20, {"w": (x,)}), False),
            (([x, 20], 20, {"v": (x,)}), False), (([x, 20], 20, {"w": (x, x)}), False),
            (([x, 20], 20, {"w": [x]}), False), (([x, 20], 40, {"w": (x,)}), False),
        ]:  # fmt: skip
            assert knows(guards, *given, form=form) == expected
    items = [x]
    assert alike((items, items), "ab") is None
    assert alike(({1: x},), "a") is None
    assert alike(([[1, x] * 8] * 8,), "a") is None
    assert alike(([[1] * 16 for _ in range(5)],), "a") is None
    for a in [x], [[x]], ({"a": x},), {"a": x}:
        assert alike((a,), "a", True)[1] is not None
    assert alike(([[1, 2], [3]],), "a", True)[1] is None


def test_calls_with_lists_of_arrays_that_run_as_they_stand_are_known():
    def f(parts, shape):
        return sum(p.sum() for p in parts) + shape[0]

    compiled = np_compile.compile(f)
    keeper, options = compiled._keeper, compiled._options
    args = [np.arange(3.0)], (2, 2)
    choice = new_choice(options.choices, signature(args, {}), options.budget)
    choice.way = "plain"
    assert keeper.run_plainly(choice, args, {}) == 5
    assert [keeper._table.call([np.arange(n, n + 3.0)], (2, 2)) for n in (1, 2)] == [8, 11]
    assert keeper._table.call([np.arange(4.0)], (2, 2)) is MISS
    assert keeper._table.call((np.arange(3.0),), (2, 2)) is MISS


def test_what_is_wider_of_lists():
    of = roughly
    assert wider(of([1]), of([1] * 9)) == of([1] * 9)
    assert wider(of([1] * 9), of([1])) == of([1] * 9)
    assert wider(of([1]), of([1.0])) is None
    assert wider(of([1]), of((1,))) is None
