"""Compiled or plain, where calls raise, leave compiled code, or have more and more to do."""

from __future__ import annotations

import math
import traceback
from typing import Any

import numpy as np
import pytest

import np_compile
from np_compile import config
from np_compile.capture.policy.budget import Budget
from np_compile.capture.policy.choice import Choice, kind_of, new_choice
from np_compile.reader import dispatch
from np_compile.reader.reading import Reading


def compiled_way(plain: float, compiled: float) -> Choice:
    choice = Choice(Budget(asked=False))
    choice.way, choice.plain, choice.compiled = "compiled", plain, compiled
    return choice


def raising(*_: Any) -> None:
    raise KeyError("a")


def test_calls_that_leave_compiled_code_are_weighed_against_what_others_gain():
    choice = compiled_way(2e-6, 1e-6)
    for k in range(1, 100):  # of 200 calls one takes 100 us
        choice.leaves(1e-4, 200 * k)
    assert choice.way == "compiled"
    for k in range(1, 100):  # of 50
        choice.leaves(1e-4, 20_000 + 50 * k)
    assert choice.way == "plain"
    assert choice._until >= 1024


def test_what_was_gained_long_ago_does_not_count():
    choice = compiled_way(2e-3, 1e-3)
    choice.leaves(5e-3, 1_000_000)
    assert choice.way == "compiled"
    choice.leaves(5e-3, 1_000_001)
    assert choice.way == "plain"


def test_calls_that_leave_count_as_tries_while_nothing_is_chosen():
    choice = Choice(Budget(asked=False))
    choice.leaves(1e-4, 1)
    assert not choice.wants_plain()
    choice.leaves(1e-4, 2)
    assert choice.wants_plain()


def test_calls_that_raise_in_either_way_run_as_they_stand(clock):
    choice = Choice(Budget(asked=False))
    choice.leaves(1e-4, 1)
    choice.leaves(1e-4, 2)
    with pytest.raises(KeyError):
        choice.call(raising, (), {})
    assert choice.way == "plain"
    assert math.isfinite(choice.plain)  # which says how many run before one is timed


def test_one_call_that_raises_says_nothing_of_others(clock):
    choice = Choice(Budget(asked=False))
    for _ in range(3):
        choice.ran_compiled(1e-3, 0, 1, 0)
    with pytest.raises(KeyError):
        choice.call(raising, (), {})
    assert choice.way is None
    assert math.isinf(choice.plain)
    for _ in range(20):
        if choice.wants_plain():
            choice.call(clock.passes, (0.1, 0.1), {})
        else:
            choice.ran_compiled(1e-3, 0, 1, 0)
    assert choice.way == "compiled"


def test_compiled_calls_that_take_longer_and_longer_are_timed_both_ways_again():
    choice = compiled_way(1e-3, 5e-4)
    for _ in range(2):
        choice.ran_whole(2e-3, 0, 0, 0.0, ())
        assert choice.is_slow
    choice.ran_whole(5e-4, 0, 0, 0.0, ())
    assert not choice.is_slow
    assert choice.way == "compiled"
    for _ in range(3):
        choice.ran_whole(2e-3, 0, 0, 0.0, ())
    assert choice.way is None


def checked(x, limit):
    total = 0.0
    for v in x:
        total += v
        if total > limit:
            raise OverflowError(f"over {limit}")
    return total


def seen(f, *args):
    """What a call gives, or the exception, its text, and the line of it."""
    try:
        return f(*args)
    except Exception as e:
        return type(e), str(e), traceback.extract_tb(e.__traceback__)[-1].line


@pytest.fixture
def known():
    """A function whose calls C makes, of which some leave, and what is known of them."""
    with config.patch(loops="whole", compile_in="call"):
        fast, x = np_compile.compile(checked), np.arange(10.0)
        for _ in range(4):
            assert fast(x, 1e3) == 45.0
        assert fast._reading.runs > 0
    choice = new_choice(fast._options.choices, kind_of((x, 1e3), {}), fast._options.budget)
    return fast, x, choice


def test_a_function_that_raises_in_each_call_runs_as_it_stands(known, monkeypatch):
    fast, x, choice = known
    choice.way, choice.plain, choice.compiled = "compiled", 2e-6, 1e-6
    want = seen(checked, x, 20.0)
    assert want[:2] == (OverflowError, "over 20.0")
    for _ in range(40):
        fast._unweighed.value = 10 if choice.way == "compiled" else fast._unweighed.value
        assert seen(fast, x, 20.0) == want
    assert choice.way == "plain"
    assert choice in fast._keeper.plain  # C makes such calls, also as they raise
    monkeypatch.setattr(Reading, "call", None)
    monkeypatch.setattr(Reading, "_ended", None)
    assert seen(fast, x, 20.0) == want
    assert seen(fast, x, 1e3) == 45.0


def test_nothing_else_is_taken_to_be_compiled_then(known):
    fast, x, choice = known
    choice.way, choice.plain, choice.compiled = "compiled", 2e-6, 1e-6
    fast._unweighed.value = 1000
    with pytest.raises(OverflowError):
        fast(x, 20.0)
    assert fast._unweighed.value == 0


@pytest.mark.parametrize(("plain", "rests"), [(1e-6, True), (1e3, False)])
def test_calls_that_c_cannot_make_yet_are_apart_where_they_take_longer(plain, rests, monkeypatch):
    with config.patch(loops="whole", compile_in="call"):
        monkeypatch.setattr(dispatch, "available", lambda: False)
        fast, x = np_compile.compile(checked), np.arange(10.0)
        for _ in range(3):
            fast(x, 1e3)
    budget = fast._options.budget
    budget.took, budget.cold = plain, False
    with config.patch(compile_in="background"):
        fast._unweighed.value = 0
        assert fast(x, 1e3) == 45.0
    assert budget.rests is rests


class Bag:
    def __init__(self):
        self.items = [1.0] * 20


def summed(bag, k):
    total = 0.0
    for v in bag.items:
        total += v
    return total * k


def test_calls_with_many_more_items_are_timed_sooner():
    with config.patch(loops="whole", compile_in="call"):
        fast, bag = np_compile.compile(summed), Bag()
        for _ in range(4):
            fast(bag, 2)
    fast._unweighed.value = 0
    assert fast._keeper.read((bag, 2), {}) == 40.0  # as one that is timed
    with config.patch(loops="auto"):
        runs, fast._unweighed.value = fast._reading.runs, 1000
        assert fast(bag, 2) == 40.0
        assert fast._unweighed.value == 998
        bag.items += [1.0] * 1980
        assert fast(bag, 2) == 4000.0
        assert fast._unweighed.value == 998 - 101
        assert fast._reading.runs == runs + 2
        bag.items += [1.0] * 20_000
        fast(bag, 2)
        assert fast._unweighed.value == 0


def summed_by_rows(bag, k):
    total = 0.0
    for row in bag.items:
        for v in row:
            total += v
    return total * k


def test_items_of_lists_in_lists_count_too():
    bag = Bag()
    bag.items = [[1.0] * 60 for _ in range(20)]
    with config.patch(loops="whole", compile_in="call"):
        fast = np_compile.compile(summed_by_rows)
        for _ in range(4):
            fast(bag, 2)
    fast._unweighed.value = 0
    assert fast._keeper.read((bag, 2), {}) == 2400.0  # as one that is timed, with 1220 items
    with config.patch(loops="auto"):
        fast._unweighed.value = 1000
        bag.items[1] += [1.0] * 122_000
        assert fast(bag, 2) == 246_400.0
        assert fast._unweighed.value == 1000 - 102
