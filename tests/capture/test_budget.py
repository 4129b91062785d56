"""Time for recording and compiling what is new: lent, spent, and what happens then."""

from __future__ import annotations

import sys
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config
from np_compile.capture.policy import budget, decide
from np_compile.capture.policy.budget import Budget
from np_compile.capture.policy.choice import SAMPLED, Choice, kind_of, signature
from np_compile.capture.policy.places import Places
from np_compile.kernels.build import Job
from np_compile.replay import keeper
from np_compile.replay.calls import MISS, available
from np_compile.replay.keeper import Keeper

from ..support import (
    check,
    compiled,
    counted_nodes,
    data,
    lasts_plainly,
    wait_for,
    wait_for_workers,
)
from .test_plain import STRADDLING, forward


@pytest.fixture
def poor(monkeypatch):
    """Each compile takes ten minutes, by the clock of a budget; three use up all that is lent."""
    note = Budget.compiled

    def compiled_slowly(self, calls, _seconds):
        note(self, calls, 600.0)
        self.owed += 25.0

    monkeypatch.setattr(Budget, "compiled", compiled_slowly)
    monkeypatch.setattr(Budget, "pays", lambda *_: None)


@pytest.fixture
def uncompiled(monkeypatch):
    """Everything is recorded, nothing is compiled."""
    monkeypatch.setattr(Budget, "records", lambda *_: True)
    monkeypatch.setattr(Budget, "compiles", lambda *_: False)


def grows(x, n):
    for i in range(n):
        x = np.concatenate([x, np.sin(x[-2:]) + i])
        x[-1] -= x.mean()
    return x


def keeps_far_ones(d, r):
    kept = [0]
    for i in range(1, len(d)):
        if d[i, kept].min() > r:
            kept.append(i)
    return kept


def selects(x):
    total = 0.0
    for i in range(12):
        y = np.sort(x[x > 0.2 * i - 1])
        total += (np.sqrt(np.abs(y)) * y).sum() / (len(y) + 1)
    return total


def thins_out(x):
    while len(x) > 2:
        x = np.cumsum(x[1:]) - x[:-1].mean()
    return x


@pytest.mark.usefixtures("poor")
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (grows, (data(3), 20)), (forward, (np.tril(data(20, 20)) + 20 * np.eye(20), data(20, 5))),
        (keeps_far_ones, (np.abs(data(20, 20)), 0.1)), (selects, (data(60),)),
        (thins_out, (data(20),)),
    ],
)  # fmt: skip
def test_shapes_that_change_each_time_are_given_up(f, args):
    c = check(f, *args, plain="auto", rtol=1e-10)
    assert c.compiles <= 3
    assert c.compiles_on_new_data == 0


@pytest.mark.usefixtures("poor")
def test_new_sizes_in_each_call_are_given_up():
    def f(x):
        y = np.sin(x) + 2
        return (y - y.mean()) / y.std()

    fast, counter = compiled(f)
    for n in range(5, 30):
        np.testing.assert_allclose(fast(data(n)), f(data(n)), rtol=1e-12)
    assert counter.count == 3
    recorded = counted_nodes(fast)
    for n in range(30, 40):
        fast(data(n))
    assert counted_nodes(fast) <= recorded + 10  # an argument enters before the first call
    for n in (5, 6, 7):  # what was compiled is used
        (segment,) = np_compile.explain(fast)(data(n)).segments
        assert segment.runs == 1


@pytest.mark.usefixtures("poor")
def test_explain_says_that_new_code_runs_in_numpy():
    explained = np_compile.explain(np_compile.compile(grows, backend="eager", dynamic=False))(
        data(3), 20
    )
    reasons = [b for b in explained.breaks if b.kind == "plain"]
    assert reasons
    assert all("compiling has taken longer than NumPy" in b.reason for b in reasons)
    assert __file__ in reasons[0].line


@pytest.mark.usefixtures("poor")
def test_what_numpy_takes_long_for_is_compiled_all_the_same(monkeypatch):
    monkeypatch.setattr(budget, "likely_seconds", lambda _, touched: 1e6 * touched)
    fast, counter = compiled(lambda x: np.sin(x) + 1)
    for n in range(3, 12):
        fast(data(n))
    assert counter.count == 9


@pytest.mark.usefixtures("poor")
def test_large_arrays_end_what_runs_in_numpy(monkeypatch):
    monkeypatch.setattr(budget, "likely_seconds", lambda _, touched: 1e-3 * touched)
    monkeypatch.setattr(budget, "_RECORD", 1.0)

    def f(x, y):
        x = thins_out(x)
        y = np.sin(y) - 1
        return x, (y * 2).sum() + x[0]

    x, y = data(20), data(200_000)
    explained = np_compile.explain(np_compile.compile(f, backend="eager", dynamic=False))(x, y)
    assert any("compiling has taken longer" in b.reason for b in explained.breaks)
    assert "ndarray.sum" in explained.segments[-1].calls
    np.testing.assert_allclose(explained.result[1], f(x, y)[1], rtol=1e-12)


@pytest.mark.usefixtures("poor")
def test_never_compiles_whatever_it_costs():
    fast, counter = compiled(lambda x: np.sin(x) + 1)
    with config.patch(plain="never"):
        for n in range(3, 12):
            fast(data(n))
    assert counter.count == 9


@pytest.mark.usefixtures("poor")
def test_fullgraph_compiles_whatever_it_costs():
    fast, counter = compiled(lambda x: np.sin(x) + 1, fullgraph=True)
    for n in range(3, 12):
        fast(data(n))
    assert counter.count == 9


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("f", STRADDLING)
def test_segments_in_numpy_give_the_same(f):
    c = check(f, data(12, 3), plain="auto", rtol=1e-12)
    assert c.compiles == 0


def in_place(x, y):
    view = x[1:, ::-1]
    view += y[0]
    np.add(x, y, out=y)
    y[x > 0] *= 2
    x[[0, 2]] = x[[2, 0]]
    s = x[0, 0] * 2
    t = np.sort(y, axis=0)
    if t.sum() > 1e9:
        return None
    t += s
    a, b = np.divmod(t, 3.0)
    c = np.broadcast_to(s, (2, 2))
    return view, s, t.T, a, b[..., None], c, np.stack([x, y]).max(axis=0), y.astype("f")[0, 0]


@pytest.mark.usefixtures("uncompiled")
def test_views_scalars_and_writes_of_segments_in_numpy():
    c = check(in_place, data(4, 3), data(4, 3, seed=1), plain="auto")
    assert c.compiles == 0


@pytest.mark.usefixtures("uncompiled")
def test_errors_of_segments_in_numpy():
    def f(x, i):
        y = x * 2
        try:
            y = y + x[i]
        except IndexError as e:
            return y, str(e)
        x[i] = 0
        return x[i + 1]

    for i in ([0, 1], [9], [4]):
        check(f, data(5), np.array(i), plain="auto", new=False)


@pytest.mark.usefixtures("uncompiled")
def test_a_segment_in_numpy_frees_what_it_has_read():
    sizes = []

    def f(x):
        for _ in range(7):
            x = np.cos(x) + 1
        return x[:3]

    def recorded(seg, values, live=None):
        def counted(name):
            sizes.append(sum(v is not None for v in values))
            return named(name)

        m.setattr(rerun, "numpy_function", counted)
        real(seg, values, live)

    from np_compile.capture import rerun, segments

    real, named = segments.rerun, rerun.numpy_function
    with pytest.MonkeyPatch.context() as m:
        m.setattr(segments, "rerun", recorded)
        np.testing.assert_array_equal(np_compile.compile(f, backend="eager")(data(9)), f(data(9)))
    assert len(sizes) >= 14
    assert max(sizes) <= 2


# -- the account -----------------------------------------------------------------------------------


def test_three_programs_and_half_a_second_are_lent():
    b = Budget(asked=False)
    for _ in range(3):
        assert b.compiles(10**6, 0, 0.0, True)
        b.compiled(10, 0.1)
    assert b.compiles(1, 0, 0.0, True)
    b.compiled(10, 0.6)
    assert not b.compiles(1, 0, 0.0, True)
    assert not b.records(8, 0.0)
    assert not b.captures((data(3),), {})
    assert b.captures((data(3), np.empty(10**7)), {})
    assert b.records(10**8, 0.0)
    assert b.compiles(1, 10**11, 0.0, True)


def test_a_long_compile_is_foreseen():
    b = Budget(asked=False)
    for _ in range(3):
        b.compiled(10, 2.0)
    assert not b.compiles(20, 0, 0.0, True)
    assert not Budget(asked=False).compiles(1000, 0, 0.0, False)


def test_a_twentieth_of_the_time_that_calls_take_may_be_owed():
    b = Budget(asked=False)
    for _ in range(6):
        b.compiled(1, 0.5)  # three of them cost nothing
    assert b.owed == 1.5
    assert not b.records(8, 19.0)
    assert b.records(8, 21.0)
    b.worked = 21.0
    assert b.records(8, 0.0)


def test_time_is_lent_anew_where_compiled_calls_are_faster():
    b = Budget(asked=False)
    for _ in range(6):
        b.compiled(1, 0.5)
    assert not b.records(8, 0.0)
    b.pays(1e-6)
    assert b.records(8, 0.0)


# -- cold functions: nobody waits for the compiler, and calls that are new run as they stand -------


@pytest.fixture
def background():
    with config.patch(compile_in="background", plain="auto"):
        yield


def attempt(b, seconds):
    """A call that spends so much on what is new."""
    b.begins()
    b.owed += seconds
    b.ended()
    return b


def spent(b, seconds):
    """A function's third attempt has cost so much."""
    for _ in range(3):
        attempt(b, seconds)
    return b


@pytest.mark.usefixtures("background")
def test_what_the_first_two_attempts_spend_is_free():
    b = attempt(Budget(asked=False), 10.0)
    assert not b.cold
    for _ in range(5):  # calls that find nothing to try are none
        b.begins()
        b.dispatched()
        b.ended()
    assert not b.cold
    attempt(b, 1e-3)
    assert b.owed == 0.0
    assert b.cold  # until there is what a third one is expected to cost
    assert b.records(8, 1e-6)
    b.worked = 0.019
    attempt(b, 0.0)
    assert b.cold
    b.worked = 0.021
    attempt(b, 0.0)
    assert not b.cold


@pytest.mark.usefixtures("background")
def test_time_is_lent_to_one_attempt_in_another_way():
    b = spent(Budget(asked=False), 10.0)
    assert b.cold
    b.lends_again()
    assert not b.is_cold()
    attempt(b, 10.0)
    assert b.owed == 0.0  # as of the first ones
    assert b.cold
    first = attempt(Budget(asked=False), 10.0)
    before = first.lent
    first.lends_again()  # it has one left
    assert first.lent == before


def test_what_numpy_is_likely_to_take_is_known_while_a_compiler_works():
    known, args = Places(), (data(100),)
    known.note(args, {}, None, 5, 1000)
    assert known.kind(args, {}).likely < 1e-4
    assert known.vain == 0
    known.note(args, {}, True, 5, 1000)
    known.note(args, {}, None, 5, 1000)
    assert known.vain == 1


@pytest.mark.usefixtures("background")
def test_a_cold_function_makes_up_for_what_it_spent(clock):
    b = spent(Budget(asked=False), 1e-4)
    assert b.cold
    calls = 0

    def takes(seconds, y):
        nonlocal calls
        calls += 1
        clock.passes(seconds)
        return y

    while b.cold and calls < 10_000:
        assert b.coldly(takes, (1e-5,), {"y": 2}) == 2
    assert not b.cold
    assert 20 * (b.owed + 1e-4) <= b.worked < 21 * (b.owed + 1e-4)
    assert calls == pytest.approx(400, abs=2)
    attempt(b, 1.0)
    assert b.cold
    assert not b.records(8, 19.0)


@pytest.mark.usefixtures("background")
def test_what_compiled_calls_gain_may_be_spent():
    b = spent(Budget(asked=False), 0.1)
    b.pays(0.15)
    attempt(b, 0.0)
    assert b.cold
    b.pays(0.1)
    attempt(b, 0.0)
    assert not b.cold
    b.pays(1e9)  # and no more than what is lent at first
    attempt(b, 0.6)
    assert b.cold


@pytest.mark.usefixtures("background")
def test_some_calls_of_a_cold_function_are_not_timed(clock):
    b = spent(Budget(asked=False), 1e9)
    assert not b.rests
    before = clock.monotonic_ns()
    b.coldly(clock.passes, (1e-6,), {})
    assert before < b.pause[0] < clock.monotonic_ns() + 10**8
    assert b.rests
    assert b.cold
    b.pause[1] = 1000  # such calls came meanwhile
    worked = b.worked
    b.coldly(clock.passes, (1e-6,), {})
    assert b.worked > worked + 1000 * 1e-7
    assert b.pause[1] == 0


def asked_of_c():
    """A function of which C knows calls, and has no more time; an argument; its account."""
    assert available()
    fast = np_compile.compile(lambda x: x + 1)
    for _ in range(4):
        fast(data(5))
    wait_for_workers()  # a job that ends is the pause's end
    budget = fast._options.budget
    spent(budget, 1e9)
    # Of a dtype that it has not met: a call that is kept by now does not rest.
    return fast, data(5, dtype=np.float32), budget


@pytest.mark.usefixtures("background")
def test_a_pause_lasts_for_as_many_calls_as_take_it_where_they_come_seldom(clock):
    fast, x, budget = asked_of_c()
    before = clock.monotonic_ns()
    budget.coldly(lambda: None, (), {})
    assert budget.pause[2] > 0
    length = budget.pause[0] - before
    assert budget.pause[5] - budget.pause[0] > 10 * length  # while it takes but little of the time
    for longest, calls, seldom, runs in (
        (10**12, 0, 63, True), (10**12, 50, 0, False), (10**12, 50, 1, False), (-1, 0, 63, False),
        (-1, 50, 63, True),  # one of 64 looks at the clock
    ):  # fmt: skip
        now = time.monotonic_ns()
        budget.pause[:3] = now - 10**9, calls, 50
        budget.pause[5:] = now + longest, seldom
        fast(x)
        assert (budget.pause[1] == calls + 1) is runs  # else it was looked at, and a new one began


def test_what_c_hands_to_python_to_be_timed_takes_little_of_the_time():
    choice = Choice(Budget(asked=False))
    for seconds in (3e-6, 3e-5, 1e-4):
        choice.plain = choice.compiled = seconds
        for calls in (choice.sampled, choice.seldom):
            assert calls * seconds > 50 * 1e-4  # that such a call was seen to take longer
    choice.plain = 1e-2
    assert choice.sampled == SAMPLED


@pytest.mark.usefixtures("background")
def test_calls_that_are_timed_both_ways_are_apart(clock):
    b = Budget(asked=False)
    choice = Choice(b)
    choice.compiled, choice.runs = 1e-9, 2
    b.begins()
    choice.call(clock.passes, (1e-5,), {})
    assert choice.way is None
    b.ended()
    assert b.pause[4] == 1
    assert b.pause[0] > clock.monotonic_ns() + 2 * 10**6


@pytest.mark.usefixtures("background")
@pytest.mark.parametrize(
    ("seconds", "beyond", "rests"),
    [(2e-3, 0.0, True), (8e-3, 1e-3, True), (8e-3, 1e-5, False), (0.1, 1e-3, False)],
)
def test_a_pause_comes_after_calls_that_took_a_good_part_longer_for_nothing(
    seconds, beyond, rests, clock
):
    b = Budget(asked=False)
    b.begins()
    b.idle, b.took = True, seconds - beyond
    clock.passes(seconds)
    b.ended()
    assert (b.pause[0] > 0) is rests
    assert b.pause[0] < clock.monotonic_ns() + 6 * 10**7  # a new attempt is not put off for long


def tried(clock, seconds, inner=0.0):
    """A call that spends all its time on what is new, a part of it in another one."""
    b, start = Budget(asked=False), clock.now
    b.begins()
    if inner:
        tried(clock, inner)
    clock.passes(seconds)
    b.owed += clock.now - start
    b.ended()


@pytest.mark.usefixtures("background")
def test_what_functions_spend_in_one_another_is_counted_once(clock):
    before = budget.seconds_spent()
    tried(clock, 2.0, 3.0)
    tried(clock, 1.0)
    assert budget.seconds_spent() - before == pytest.approx(6.0)
    b = Budget(asked=False)
    b.begins()
    b.owed += 1e9  # more than it can have been
    b.ended()
    assert budget.seconds_spent() - before == pytest.approx(6.0)


@pytest.mark.usefixtures("background")
@pytest.mark.parametrize(("spends", "tells"), [(30.0, False), (0.0, True)])
def test_a_plain_call_in_which_others_are_compiled_tells_nothing(spends, tells, clock):
    b = Budget(asked=False)
    choice = Choice(b)
    choice.compiled, choice.runs = 5.0, 2
    b.begins()

    def outer():
        tried(clock, spends)
        clock.passes(10.0)

    choice.call(outer, (), {})
    assert choice.tries == tells
    assert b.idle or choice.way is not None
    assert b.worked == pytest.approx(10.0)


@pytest.mark.usefixtures("background")
def test_a_pause_ends_when_a_job_does():
    fast, x, budget = asked_of_c()
    budget.pause[:4] = time.monotonic_ns() + 10**12, 0, 50, Job.ended.value
    fast(x)
    assert budget.pause[1] == 1
    Job(lambda: None).result()
    wait_for(lambda: Job.ended.value != budget.pause[3])
    fast(x)
    assert budget.pause[1] == 0  # it was looked at


@pytest.mark.usefixtures("background")
@pytest.mark.parametrize("waits", [False, True])
def test_a_job_ends_no_pause_of_a_function_that_waits_for_none(waits):
    fast, x, budget = asked_of_c()
    budget.awaits(SimpleNamespace(ready=False) if waits else None)
    budget.coldly(lambda: None, (), {})
    budget.pause[0] += 10**12
    before = Job.ended.value
    Job(lambda: None).result()
    wait_for(lambda: Job.ended.value != before)
    assert budget.is_resting() is not waits
    assert budget.pause[1] == (not waits)
    fast(x)
    assert budget.pause[1] == (0 if waits else 2)


@pytest.mark.usefixtures("background")
def test_a_pause_costs_little_where_c_cannot_be_asked_yet(monkeypatch):
    monkeypatch.setattr(keeper, "pending", lambda: True)
    fast, x = np_compile.compile(caller), data(5)
    b = spent(fast._options.budget, 1e9)
    b._begun, begun = 1, []
    monkeypatch.setattr(Budget, "begins", lambda self: begun.append(self))
    assert fast(x) == "timed"
    assert b.rests

    def rests():
        b.pause[:4] = time.monotonic_ns() + 10**12, 7, 0, -1
        begun.clear()
        fast(x)
        return b.pause[1] == 8 and not begun

    assert rests()
    with torch.device("cpu"):
        assert not rests()
    for settings in ({"plain": "never"}, {"compile_in": "call"}, {"disable": True}):
        with config.patch(**settings):
            assert not rests()
    assert rests()
    b.pause[:6] = 1, 0, 0, -1, 0, 1
    assert fast(x) == "timed"


@pytest.mark.usefixtures("background")
def test_calls_in_a_pause_begin_in_c_as_soon_as_it_can_be_asked(monkeypatch):
    waits = [True]
    monkeypatch.setattr(keeper, "pending", lambda: waits[0])
    fast, x = np_compile.compile(caller), data(5)
    budget = spent(fast._options.budget, 1e9)
    budget._begun = 1
    fast(x)
    budget.pause[:4] = time.monotonic_ns() + 10**12, 0, 0, -1
    fast(x)
    assert fast(x) == "__call__"
    waits[0] = False
    assert available()
    before = Job.ended.value
    Job(lambda: None).result()
    wait_for(lambda: Job.ended.value != before)
    fast(x)
    assert fast(x) == "test_calls_in_a_pause_begin_in_c_as_soon_as_it_can_be_asked"
    assert budget.pause[1] == 4


def caller(_x):
    return sys._getframe(1).f_code.co_name


@pytest.mark.usefixtures("background")
def test_plain_calls_of_a_cold_function_are_timed_as_others_are(clock):
    clock.look = 1e-6
    fast, x, budget = asked_of_c()
    choice = Choice(budget)
    choice.way, choice.compiled = "plain", 1.0
    fast._options.choices.clear()
    fast._options.choices[signature((x,), {})] = choice
    fast._keeper.kept = ()
    fast._keeper.run_plainly(choice, (x,), {})
    assert fast._keeper.plain[choice].entry.skips == SAMPLED - 1
    for _ in range(SAMPLED + 1):
        fast(x)
    assert budget.cold
    assert choice.plain < 1.0  # one has been timed, and the next one is far away
    assert fast._keeper.plain[choice].entry.skips > 10 * SAMPLED


def test_a_function_is_never_cold_where_calls_wait_for_the_compiler():
    with config.patch(compile_in="call"):
        assert not spent(Budget(asked=False), 1e9).cold
    with config.patch(compile_in="background"):
        assert not spent(Budget(asked=True), 1.0).cold
        with config.patch(plain="never"):
            assert not spent(Budget(asked=False), 1e9).cold


@pytest.mark.usefixtures("background")
def test_nothing_is_lent_to_what_a_later_call_of_another_function_calls_first():
    for calls in range(1, 5):
        outer, inner = attempt(Budget(asked=False), 0.1), Budget(asked=False)
        for _ in range(calls - 1):
            outer.begins()
        assert outer.timed(inner.is_cold, (), {}) == (calls > 2)
        assert not Budget(asked=False).is_cold()
    assert inner.cold  # until a twentieth of its time is what the outer one has spent
    inner.worked = 2.1
    attempt(inner, 0.0)
    assert not inner.cold


@pytest.mark.usefixtures("background")
def test_calls_that_go_by_elements_are_compared_with_python_by_about_their_size():
    def f(x, n):
        s = 0
        for i in range(n):
            if x[i] > 0:
                s += i
        return s

    fast = np_compile.compile(f)
    with config.patch(compile_in="call"):
        fast([1.0] * 9, 9)
    for n in range(9, 15):
        for _ in range(20):
            assert fast([1.0] * n, n) == n * (n - 1) // 2
    assert len(fast._options.choices) == 1


@pytest.mark.usefixtures("background")
def test_one_long_call_does_not_stand_for_those_that_are_not_timed(clock):
    b = Budget(asked=False)
    for seconds in (1e-6, 1e-6, 1e-6):
        b.timed(clock.passes, (seconds,), {})
    b.timed(clock.passes, (0.05,), {}, 100)
    assert 0.05 <= b.worked < 0.06


def test_compiled_calls_on_trial_are_spent_and_no_work():
    for way, known, typical, owed in (
        ("background", False, False, 0.5),
        ("background", True, True, 0.0),
        ("call", False, False, 0.0),
        ("call", False, True, 0.5),
        ("call", True, True, 0.0),
    ):
        b = Budget(asked=False)
        with config.patch(compile_in=way):
            b.captured(0.5, 0, 0, known, typical)
        assert b.owed == owed
        assert b.worked == 0.5 - owed


def test_the_first_decision_is_looked_at_again_whatever_it_was():
    choice = Choice(Budget(asked=False))
    for calls, way in (32, None), (1024, "compiled"):
        choice.way, choice.plain, choice.compiled = "compiled", 1.0, 0.1
        for _ in range(calls):
            assert choice.way == "compiled"
            choice.ran_compiled(0.1, 0, 1, 8)
        assert choice.way == way


def test_a_decision_that_stays_is_looked_at_more_and_more_seldom():
    choice = Choice(Budget(asked=False))
    for calls in (32, 1024, 2048, 4096):
        choice.way, choice.plain, choice.compiled = "compiled", 1.0, 0.9
        for _ in range(calls):
            assert choice.way == "compiled"
            choice.ran_compiled(0.9, 0, 1, 8)
        assert choice.way is None
    choice.way, choice.plain, choice.compiled = "compiled", 1.0, 0.9
    for _ in range(3):
        choice.ran_kept(10.0)
    assert choice.way is None  # it has become slow
    assert choice._until == 1024


@pytest.mark.usefixtures("background")
def test_the_time_of_calls_in_one_another_counts_once(clock):
    b = Budget(asked=False)

    def f(n):
        clock.passes(0.01)
        return b.timed(f, (n - 1,), {}) if n else 0

    b.timed(f, (3,), {})
    assert b.worked == pytest.approx(0.04)


@pytest.mark.usefixtures("background")
def test_calls_of_a_cold_function_are_the_plain_ones():
    def f(x, *, k=1):
        x += k
        if k > 6:
            raise ValueError("too large")
        return x

    fast = np_compile.compile(f)
    x = np.zeros(3)
    for _ in range(4):
        fast(x)
    budget = fast._options.budget
    spent(budget, 1e9)
    budget.pause[0] = 0
    assert budget.cold
    for k in range(5):
        assert fast(x, k=k) is x
    np.testing.assert_array_equal(x, 4 + 10)
    with pytest.raises(ValueError, match="too large"):
        fast(x, k=7)
    assert budget.cold
    with config.patch(disable=True):
        assert fast(x, k=2) is x


@pytest.mark.usefixtures("background")
def test_kept_calls_of_a_cold_function_stay_compiled():
    fast = np_compile.compile(lambda x: np.sin(x) * 2 + 1)
    x = data(100_000)
    with config.patch(compile_in="call", plain="never"):
        for _ in range(4):
            fast(x)
    (kept,) = fast._keeper.kept
    budget = fast._options.budget
    budget.cold, budget.owed = True, 1e9
    seen = budget.worked
    np.testing.assert_allclose(fast(x), np.sin(x) * 2 + 1, rtol=1e-9)
    assert budget.worked == seen
    np.testing.assert_array_equal(fast(x[:9]), np.sin(x[:9]) * 2 + 1)
    assert budget.worked > seen
    assert fast._keeper.kept == (kept,)


def each_time_anew(x, a, b):
    y = x[a:b] * 2
    if y.sum() > a:
        y = y - b
    return y


@pytest.mark.usefixtures("background")
def test_calls_that_are_new_each_time_are_left_alone_once_they_have_cost_too_much(monkeypatch):
    monkeypatch.setattr(Budget, "captured", lambda self, *_: setattr(self, "owed", self.owed + 1e9))
    monkeypatch.setattr(Budget, "pays", lambda *_: None)
    fast = np_compile.compile(each_time_anew)
    x = data(60)
    for a in range(30):
        for b in range(a, 60):
            np.testing.assert_array_equal(fast(x, a, b), each_time_anew(x, a, b))
    assert fast._options.budget.turn < 200  # of 1300
    assert fast._options.budget.cold


@pytest.mark.usefixtures("background")
def test_a_call_that_raises_is_paid_for(monkeypatch):
    monkeypatch.setattr(Budget, "captured", lambda self, *_: setattr(self, "owed", self.owed + 1e9))

    def f(x, i):
        return (x * 2)[i]

    fast = np_compile.compile(f)
    for i in range(5, 200):
        with pytest.raises(IndexError):
            fast(np.zeros(5), i)
    assert fast._options.budget.turn < 100


@pytest.mark.usefixtures("background")
def test_the_next_attempt_is_made_when_what_the_last_one_lacked_is_there():
    awaited = SimpleNamespace(ready=False)
    b = Budget(asked=False)
    b.begins()
    b.awaits(awaited)
    b.owed += 10.0
    b.ended()
    for _ in range(3):
        assert b.coldly(lambda: 5, (), {}) == 5
        assert b.cold
    awaited.ready = True
    b.coldly(lambda: 5, (), {})
    assert not b.cold
    for seconds in (10.0, 10.0):
        b.begins()
        b.awaits(None)
        b.owed += seconds
        b.ended()
    assert b.cold  # it lacks nothing, and was dear
    b.coldly(lambda: 5, (), {})
    assert b.cold


@pytest.mark.usefixtures("background")
def test_a_job_that_is_done_is_followed_by_what_it_has_made():
    general = SimpleNamespace(ready=False)
    b = spent(Budget(asked=False), 1.0)
    b.awaits(Job(lambda: general))
    while b._awaited is not general:
        b.coldly(lambda: None, (), {})
        assert b.cold
    general.ready = True
    b.coldly(lambda: None, (), {})
    assert b._awaited is None

    def fails():
        raise ValueError

    attempt(b, 1.0)
    for work in (fails, lambda: None):  # nothing has come of it
        b.awaits(Job(work))
        while b._awaited is not None:
            b.coldly(lambda: None, (), {})
        assert b.cold


@pytest.mark.usefixtures("background")
def test_nobody_owes_what_is_compiled_beside_the_program():
    fast = np_compile.compile(lambda x: np.cos(x) * 3 - x / 7)
    x, noted = data(900), []

    def has_two():
        noted.append(fast(x[: 300 + len(noted) % 600]))
        return len(np_compile.recompiles(fast)) >= 2

    wait_for(has_two)
    for k, y in enumerate(noted):
        z = x[: 300 + k % 600]
        np.testing.assert_allclose(y, np.cos(z) * 3 - z / 7, rtol=1e-9)
    assert fast._options.budget.worked >= 0.0
    assert fast._options.budget._built == 0


@pytest.mark.usefixtures("background")
def test_a_cold_function_calls_what_is_kept_for_many_sizes(monkeypatch, clock):
    fast = np_compile.compile(lambda x: np.sin(x) * 2 + 1)
    x = data(100_000)
    with config.patch(compile_in="call", plain="never"):
        for n in (1000, 2000, 3000, 4000, 5000):
            fast(x[:n])
    assert fast._keeper.for_sizes
    spent(fast._options.budget, 1e9)
    assert fast._options.budget.cold
    ran = []
    run = Keeper.run_for_sizes
    monkeypatch.setattr(Keeper, "run_for_sizes", lambda *a: ran.append(run(*a)) or ran[-1])
    lasts_plainly(1.0, clock, monkeypatch)
    for n in range(60_000, 60_100):
        np.testing.assert_allclose(fast(x[:n]), np.sin(x[:n]) * 2 + 1, rtol=1e-9)
    # Both ways are timed; as NumPy is not faster, the calls stay compiled.
    assert fast._options.choices[kind_of((x[:60_000],), {})].way == "compiled"
    assert len(ran) > 90
    assert all(r is not MISS for r in ran)


def timed(way, compiled, plain=float("inf")):
    made = Choice(Budget(asked=False))
    made.way, made.compiled, made.plain = way, compiled, plain
    return made


def test_longer_calls_are_compiled_where_shorter_ones_are_faster_so():
    short = timed("compiled", 1e-4, 1e-2)
    longer, shorter = timed(None, float("inf")), timed(None, float("inf"))
    longer.ran_for_sizes(2e-4, [short])
    assert longer.way == "compiled"
    shorter.ran_for_sizes(5e-5, [short])
    assert shorter.way is None
    other = timed(None, float("inf"))
    other.ran_for_sizes(2e-4, [timed("plain", 1e-4, 1e-5)])
    assert other.way is None


def test_one_call_each_way_decides_where_the_times_are_far_apart():
    for seconds, ratio, way in (
        (5e-3, 8.0, "compiled"), (5e-3, 2.0, None), (5e-3, 0.5, "plain"),
        (1e-4, 50.0, None),  # another process may have run meanwhile
    ):  # fmt: skip
        c = timed(None, seconds)
        c._ran_plain(seconds * ratio, True)
        assert c.way == way


def test_one_call_that_another_process_has_interrupted_decides_nothing():
    c = timed(None, 2e-4)
    for seconds in (5e-3, 1e-4):
        c._ran_plain(seconds, True)
    assert c.way == "plain"


def test_a_kind_that_runs_plainly_is_looked_at_again():
    c = timed("plain", 2e-4, 1e-4)
    for _ in range(31):
        c.passes()
    assert c.way == "plain"
    c.passes()
    assert c.way is None


def made_again(k):
    def f(x):
        y = np.sin(x) * k
        return y[y > 0].sum() + y.max()

    return f


class Stepper:
    def __init__(self, k):
        self.k = k
        self.step = np_compile.compile(self._step)

    def _step(self, x):
        return np.tanh(x).sum() * self.k


@pytest.mark.usefixtures("background")
@pytest.mark.parametrize(
    "make",
    [
        lambda k: np_compile.compile(made_again(k)),
        lambda k: np_compile.compile(partial(made_again(k))),
        lambda k: Stepper(k).step,
    ],
)
def test_functions_of_one_code_that_are_made_again_have_one_account(make):
    budget._of_code.clear()
    made = [make(k) for k in range(7)]
    accounts = [f._options.budget for f in made]
    assert len({*map(id, accounts[:4])}) == 4
    assert len({*map(id, accounts[3:])}) == 1
    x = data(20)
    with config.patch(disable=True):
        wanted = [f(x) for f in made]
    np.testing.assert_allclose([f(x) for f in made], wanted, rtol=1e-12)
    with config.patch(compile_in="call"):
        assert make(8)._options.budget not in accounts
    other = np_compile.compile(lambda x: x + 1)
    assert other._options.budget not in accounts


@pytest.mark.usefixtures("background")
def test_functions_that_are_made_in_a_loop_run_as_they_stand_when_that_has_cost_enough(monkeypatch):
    budget._of_code.clear()
    monkeypatch.setattr(Budget, "captured", lambda self, *_: setattr(self, "owed", self.owed + 1e9))
    monkeypatch.setattr(Budget, "pays", lambda *_: None)
    x, accounts = data(20), set()
    for k in range(100):
        fast = np_compile.compile(made_again(k))
        np.testing.assert_allclose(fast(x), made_again(k)(x), rtol=1e-12)
        accounts.add(fast._options.budget)
    assert sum(b.turn for b in accounts) < 20


@pytest.mark.usefixtures("background")
def test_what_came_during_the_call_that_lacked_it_is_used_by_the_next_one():
    awaited = SimpleNamespace(ready=False)
    b = Budget(asked=False)
    b.begins()
    b.awaits(awaited)
    b.owed += 10.0
    awaited.ready = True
    b.ended()
    assert not b.is_cold()
    b.begins()
    awaited.ready = False
    b.awaits(awaited)
    b.owed += 10.0
    b.ended()
    assert b.is_cold()
    awaited.ready = True
    assert not b.is_cold()


@pytest.mark.parametrize(("count", "free"), [(3, True), (20, False)])
def test_inputs_take_a_compile_as_long_as_calls(count, free, monkeypatch):
    """And a segment of many is compiled only where there is time for it."""
    asked = []

    def compiles(self, calls, touched, worked, body):
        asked.append((calls, body))
        return True

    monkeypatch.setattr(decide, "_INPUTS", 10)
    monkeypatch.setattr(Budget, "compiles", compiles)
    fast = np_compile.compile(lambda *parts: np.concatenate(parts))
    with config.patch(compile_in="call"):
        np.testing.assert_array_equal(fast(*[np.ones(2)] * count), np.ones(2 * count))
        fast(*[np.arange(2.0) + k for k in range(count)])
    assert (1 + count, free) in asked


@pytest.mark.parametrize(("took", "calls"), [(1e-7, 64), (1e-6, 16), (3e-6, 4), (2e-5, 1), (1, 1)])
def test_short_calls_of_a_pause_look_at_the_clock_seldom(took, calls):
    b = Budget(asked=False)
    b.took = took
    b._rests(1.0, 0)
    assert b.pause[6] == calls - 1
