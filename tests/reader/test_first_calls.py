"""First calls: what they read and record, and what calls cost until a compile has ended."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import np_compile
from np_compile import api, config
from np_compile.capture.policy import choice
from np_compile.capture.policy.budget import Budget
from np_compile.capture.policy.choice import new_choice
from np_compile.kernels.build import Job, beside, library
from np_compile.reader import source, translation
from np_compile.reader.reading import Reading, of_helper
from np_compile.replay.calls import available

from ..support import counted_nodes, data, wait_for

pytestmark = pytest.mark.usefixtures("without_cupy")


@pytest.fixture
def background(monkeypatch):
    """Nobody waits for a compile, and none begins. No library is in the cache."""
    monkeypatch.setattr(library, "load_cached", lambda _: None)
    with config.patch(compile_in="background", plain="auto"), beside.held():
        yield


@pytest.fixture
def undecided(monkeypatch):
    """What takes as long either way: both are timed. C is there."""
    assert available()
    monkeypatch.setattr(choice, "_ELEMENT", 0.0)
    monkeypatch.setattr(choice, "_CLEAR", 1e9)
    with config.patch(compile_in="background", plain="auto"):
        yield


def running_in_c():
    """A function of which C makes calls, timed both ways; an argument; its runs."""
    fast, x = np_compile.compile(running), data(50)
    with config.patch(compile_in="call"):
        for _ in range(3):
            fast(x)
    for _ in range(3):
        fast._options.budget.pause[0] = 0
        fast(x)
    fast._options.budget.pause[:5] = 0, 0, 0, 0, 0
    assert fast._unweighed.value == 0
    return fast, x, fast._reading.runs


def rows(x, n):
    """Its loop does the same to whole arrays: it is recorded."""
    for _ in range(n):
        x = np.roll(x, 1) + 0.5 * np.roll(x, -1)
    return x


def until(x, most):
    while np.abs(x).max() > most:
        x = np.roll(x, 1) * 0.5
    return x


def pooled(x):
    """Its loops do the same to a few elements, so often that reading them is less C."""
    n, m = x.shape[0] // 2, x.shape[1] // 2
    out = np.zeros((n, m, x.shape[2]))
    for i in range(n):
        for j in range(m):
            window = x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].reshape(4, -1)
            out[i, j] = window.max(axis=0) - window.min(axis=0)
    return out


def solved(lower, x):
    x = x.copy()
    for i in range(len(lower)):
        x[i] -= lower[i, :i] @ x[:i]
        x[i] /= lower[i, i]
    return x


def convolved(image, kernels):
    size = kernels.shape[0]
    out = np.empty((image.shape[0] - size + 1, kernels.shape[-1]))
    for i in range(out.shape[0]):
        out[i] = np.sum(image[i : i + size, ..., None] * kernels, axis=(0, 1, 2))
    return out


def running(x):
    total = 0.0
    for v in x:
        total += v * v
    return total


def behind(x):
    """Its first statements are not read."""
    table = {str(k): v for k, v in enumerate("ab")}
    total = float(len(table))
    for v in x:
        total += v * v
    return total


def recorded(f, *args):
    """How many calls are recorded after each of two calls."""
    fast, counts = np_compile.compile(f), []
    for _ in range(2):
        np.testing.assert_array_equal(fast(*args), f(*args))
        counts.append(counted_nodes(fast))
        fast._options.budget.pause[0] = 0
    return counts


def test_a_short_call_that_is_read_in_vain_is_recorded_from_the_next_one_on(background):
    first, second = recorded(rows, data(30), 4)
    assert first == 0
    assert second > 0


@pytest.mark.parametrize(
    ("f", "args"),
    [(rows, (data(1_000_000), 8)), (until, (data(25_000), 0.1))],
    ids=["long", "unknown"],
)
def test_other_calls_are_recorded_at_once(f, args, background):
    first, _ = recorded(f, *args)
    assert first > 0


@pytest.mark.parametrize("settings", [{"compile_in": "call"}, {"plain": "never"}])
def test_what_is_to_be_compiled_now_is_recorded_at_once(settings, background):
    with config.patch(**settings):
        first, _ = recorded(rows, data(30), 4)
    assert first > 0


@pytest.mark.parametrize(
    ("f", "args"),
    [(pooled, (data(10, 10, 4),)), (solved, (data(30, 30) + 60 * np.eye(30), data(30, 3)))],
    ids=["pooled", "solved"],
)
def test_loops_over_a_few_elements_each_are_read(f, args):
    fast = np_compile.compile(f)
    with config.patch(compile_in="call"):
        np.testing.assert_allclose(fast(*args), f(*args))
    assert counted_nodes(fast) == 0
    assert fast._reading.is_compiled


@pytest.mark.parametrize(("filters", "most"), [(3, 12), (20, 1)], ids=["few", "any"])
def test_nests_are_written_out_in_part(filters, most):
    """How many copies of its statement the C compiler makes of the convolution's nest."""
    fast = np_compile.compile(convolved)
    given = data(9, 3, 8), data(3, 3, 8, filters)
    with config.patch(loops="whole", compile_in="call"):
        np.testing.assert_allclose(fast(*given), convolved(*given))
    lines = [line.strip() for line in fast._reading.texts()[0].splitlines()]
    (at,) = (k for k, line in enumerate(lines) if "] * p_in" in line)
    begin = max(k for k in range(at) if lines[k] == "}")
    heads = [k for k in range(begin, at) if lines[k].startswith("for (i64 i_")]
    few = [lines[k].split(" < ")[1] for k in heads if lines[k - 1] == "#pragma GCC unroll 8"]
    assert len(heads) == 4
    assert math.prod(int(n.partition("L")[0]) for n in few) <= most


def lists(x):
    """Each list is learnt of by a reading of its own, as it gets what the one behind it holds."""
    first, second, third = [], [], []
    for v in x:
        if second:
            third.append(second[-1])
        if first:
            second.append(first[-1])
        first.append(v)
    return first, second, third


@pytest.fixture
def slow(monkeypatch):
    """The time of a thread's processor: each look at it takes 10 ms more."""
    now = [0.0]

    def thread_time():
        now[0] += 0.01
        return now[0]

    monkeypatch.setattr(time, "thread_time", thread_time)
    return now


@pytest.mark.usefixtures("background")
def test_a_reading_that_is_out_of_time_is_gone_on_with_later(slow):
    fast, x = np_compile.compile(lists), data(5)
    budget, reading = fast._options.budget, fast._reading
    budget.lent = 0.2
    assert fast(x) == lists(x)
    assert not reading.is_compiled
    assert slow[0] < 0.5
    assert counted_nodes(fast) == 0  # nor is it recorded
    (found,) = reading._begun.values()
    assert found.memory
    for _ in range(3):
        budget.cold, budget.lent, budget.pause[0] = False, 0.2, 0
        assert fast(x) == lists(x)
    assert reading.is_compiled
    assert not reading._begun


@pytest.mark.parametrize(("stopped", "needed"), [(False, 3.0), (True, 6.0)])
def test_after_a_reading_that_was_out_of_time_the_next_one_may_take_twice_as_long(
    background, stopped, needed
):
    budget = Budget(asked=False)
    budget.lent, budget._attempts = 0.0, 5
    budget.begins()
    if stopped:
        budget.stopped()
    budget.owed += 3.0
    budget.ended()
    assert budget.cold
    assert budget._last == needed
    budget = Budget(asked=False)
    budget.begins()
    budget.stopped()
    lent, budget.owed = budget.lent, budget.lent
    budget.ended()
    assert budget.lent == 2 * lent


def by_element(x):
    first, second, third = [], [], []
    for i in range(len(x)):
        first.append(x[i])
        second.append((x[i], i))
        third.append(x[i] * x[i])
    return first, second, third


@pytest.mark.usefixtures("background", "slow")
def test_readings_of_helpers_are_on_the_account_of_who_calls_them():
    budget = Budget(asked=False)
    budget.lent = 0.05
    call, x = of_helper(by_element, budget), data(5)
    assert call((x,), {}) == (by_element(x),)
    assert budget._stopped
    assert budget.owed > 0


def many_times(n, times):
    first = second = third = total = 0.0
    for _ in range(times):
        if n > 0:
            break
        first += n
        second -= n
        third += n * n
        total += first * second * third
    return total


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(("times", "read"), [(10**6, True), (10, False)])
def test_what_python_takes_longer_for_is_read_at_once(times, read):
    fast = np_compile.compile(many_times)
    fast._options.budget.lent = 0.06
    with config.patch(compile_in="background", plain="auto"):
        fast(1, times)
    assert fast._reading.is_compiled is read


def test_fullgraph_is_recorded_at_once(background):
    fast = np_compile.compile(rows, fullgraph=True)
    fast(data(30), 4)
    assert counted_nodes(fast) > 0


def test_what_was_left_for_later_is_no_attempt(background):
    fast = np_compile.compile(rows)
    fast(data(30), 4)
    assert fast._options.budget._attempts == 0


@pytest.mark.parametrize("f", [running, behind])
def test_calls_that_wait_for_a_compile_are_not_read(f, background, monkeypatch):
    fast, x = np_compile.compile(f), data(50)
    assert fast(x) == f(x)
    assert fast._reading.waits
    calls = []
    call = Reading.call
    monkeypatch.setattr(Reading, "call", lambda *given: calls.append(1) or call(*given))
    for _ in range(5):
        fast._options.budget.pause[0] = 0  # it is over
        assert fast(x) == f(x)
    assert not calls


def test_they_are_compiled_when_it_has_ended(monkeypatch):
    monkeypatch.setattr(library, "load_cached", lambda _: None)
    with config.patch(compile_in="background", plain="auto"):
        fast, x = np_compile.compile(running), data(50)
        with beside.held():
            assert fast(x) == running(x)
        wait_for(lambda: not fast._reading.waits)
        fast._options.budget.pause[0] = 0
        for _ in range(3):
            assert fast(x) == pytest.approx(running(x), rel=1e-14)
        assert fast._reading.runs > 0


@pytest.mark.usefixtures("undecided")
@pytest.mark.parametrize(("between", "runs"), [(0, 1), (1, 0)])
def test_calls_between_two_that_are_timed_run_as_they_stand(between, runs):
    fast, x, before = running_in_c()
    fast._options.budget.pause[:5] = time.monotonic_ns() + 10**12, 0, 50, Job.ended.value, between
    assert fast(x) == pytest.approx(running(x), rel=1e-14)
    assert fast._reading.runs - before == runs


@pytest.mark.usefixtures("undecided")
def test_a_function_that_is_given_up_runs_as_it_stands_in_calls_that_were_compiled(monkeypatch):
    fast, x, _ = running_in_c()
    fast._reading.given_up, fast._reading._stands = "it was left in loops", True
    fast(x)  # C is told
    fast._options.budget.pause[:5] = 0, 0, 0, 0, 0
    monkeypatch.setattr(fast, "_alone", None)
    assert fast(x) == running(x)


@pytest.mark.usefixtures("undecided")
def test_calls_of_a_cold_function_rest_that_were_compiled(monkeypatch):
    fast, x, _ = running_in_c()
    fast._reading.given_up, fast._reading.is_compiled = "it was left in loops", False
    budget = fast._options.budget
    budget.cold, budget._attempts, budget._last, budget.lent = True, 2, 1.0, 0.0
    assert fast(x) == running(x)
    assert budget.pause[1] == 0
    monkeypatch.setattr(fast, "_long_way", None)
    monkeypatch.setattr(Budget, "coldly", None)
    assert fast(x) == running(x)
    assert budget.pause[1] == 1


@pytest.mark.usefixtures("undecided")
def test_a_call_that_lasts_counts_for_as_many_that_are_not_timed():
    """It is of another kind, which may be faster as it stands."""
    fast, x, _ = running_in_c()
    fast._unweighed.value, fast._each = 100_000, 1e-6
    with config.patch(compile_in="call"):
        assert fast(x.astype("f4")) == pytest.approx(running(x.astype("f4")), rel=1e-6)
    assert fast._unweighed.value < 100_000 - 100  # it is compiled, for far more than 100 us
    fast._each = 1.0
    left = fast._unweighed.value
    with config.patch(compile_in="call"):
        fast(x.astype("i4"))
    assert left - fast._unweighed.value < 10  # C counts some of its own


def of_kind(fast, x, way, compiled, plain):
    """What is known of calls with such an argument."""
    known = new_choice(fast._options.choices, choice.kind_of((x,), {}), fast._options.budget)
    known.way, known.compiled, known.plain = way, compiled, plain
    return known


@pytest.mark.usefixtures("undecided")
def test_a_kind_that_numpy_is_faster_for_is_numpys_while_others_are_not_timed(monkeypatch):
    fast, x, _ = running_in_c()
    other = x.astype("f4")
    of_kind(fast, other, "plain", 1e-3, 1e-6)
    fast._unweighed.value, fast._each = 100, 1e-3
    monkeypatch.setattr(Reading, "call", None)
    assert fast(other) == running(other)


@pytest.mark.usefixtures("undecided")
def test_calls_are_timed_soon_again_while_kinds_come_that_are_not_known():
    fast, x, _ = running_in_c()
    known = of_kind(fast, x, "compiled", 1e-4, 1e-2)
    of_kind(fast, x.astype("f4"), None, math.inf, math.inf)
    fast._unweighed.value, fast._mixed = 0, 0
    fast(x.astype("f4"))
    assert fast._mixed == api._MIXED
    for mixed in (2, 1, 0):
        fast._unweighed.value, fast._mixed = 0, mixed
        fast(x)
        # So many take a thousandth of a second: to time one of them is little of that.
        soon = int(1e-3 / known.compiled)
        assert fast._unweighed.value == (soon if mixed else known.seldom)
        assert fast._mixed == max(mixed - 1, 0)
        assert soon < known.seldom


def tabled(columns):
    total = np.zeros(len(columns["b"]))
    for _ in range(2):
        total = np.sort(total + columns["b"])
    return total


@pytest.mark.usefixtures("undecided")
def test_calls_that_c_cannot_know_come_to_python_now_and_then(clock):
    fast, given = np_compile.compile(tabled), {"b": data(50), "rest": [data(1)] * 200}
    fast(given)
    keeper, budget = fast._keeper, fast._options.budget
    known = new_choice(fast._options.choices, ("table",), budget)
    known.plain, known.way = 1e-5, "plain"
    budget.pause[0] = 0
    budget.begins()
    keeper.run_plainly(known, (given,), {}, True)
    budget.ended()
    assert not keeper.plain
    assert budget.pause[0] > clock.monotonic_ns()
    assert budget.pause[4] == 1


def test_held_jobs_begin_afterwards():
    with beside.held():
        job = Job(lambda: 7)
        assert not job.done.wait(0.05)
    assert job.result() == 7


class Layer:
    def __init__(self, n):
        self.w = np.ones(n)
        self.last = np.zeros(n)

    def forward(self, x):
        self.last = x
        return x * self.w


class Net:
    def __init__(self, n):
        self.layers = [Layer(n), Layer(n)]
        self.count = 0

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        self.count += 1
        return x


def trained(net, x):
    total = 0.0
    for _ in range(3):
        y = net.forward(x)
        for v in y:
            total += v
    return total


class Hesitant(Layer):
    def forward(self, x):
        if x[0] < 2.0:
            self.last = x
        return x * self.w


class HesitantNet(Net):
    def __init__(self, n):
        super().__init__(n)
        self.layers = [Hesitant(n), Hesitant(n)]

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        if x[0] < 2.0:
            self.count += 1
        return x


@pytest.mark.parametrize(("kind", "times"), [(Net, 1), (HesitantNet, 2)])
def test_functions_that_change_something_are_found_at_once(kind, times, monkeypatch):
    """By their source, or, within each other, by one more reading."""
    passes = []
    read = translation._read
    monkeypatch.setattr(translation, "_read", lambda *given: passes.append(1) or read(*given))
    fast, net, other = np_compile.compile(trained), kind(6), kind(6)
    assert fast(net, data(6)) == trained(other, data(6))
    assert fast._reading.is_compiled
    assert net.count == other.count
    assert len(passes) == times


def stored(x, k):
    x[k] = 1.0
    return k + 1


def rebound(x, k):
    x = x * 2.0
    x[k] = 1.0
    return x[k] + k


def sum_of(step, x):
    total = 0
    for k in range(len(x)):
        total += step(x, k) * step(x, k)
    return total


@pytest.mark.parametrize(("step", "changes"), [(stored, True), (rebound, False)])
def test_what_is_given_is_stored_into_or_a_name_is(step, changes):
    assert source.stores_into_arguments(step) == changes
    fast, x, y = np_compile.compile(lambda z: sum_of(step, z)), data(6), data(6)
    for _ in range(2):
        assert fast(x) == sum_of(step, y)
        np.testing.assert_array_equal(x, y)


def of_several_lists(x, n):
    first, second, third, seen = [], [], [], {}
    for i in range(n):
        first.append(i * 0.5)
        if x[i] > 0:
            second.append((i, x[i]))
        third.append([i])
        seen[i] = x[i]
    fourth = []
    for j in range(n):
        fourth.append(third[j][0] + first[j])
        for _, v in second:
            fourth.append(v)
    return first, second, fourth, seen


def test_one_reading_learns_what_several_lists_hold(monkeypatch):
    """Each was the end of a reading."""
    readings = []
    read = translation._read
    monkeypatch.setattr(translation, "_read", lambda *args: (readings.append(args), read(*args))[1])
    x = np.linspace(-1, 1, 9)
    with config.patch(loops="whole", compile_in="call", debug=1):
        assert np_compile.compile(of_several_lists)(x, 9) == of_several_lists(x, 9)
    assert len(readings) <= 4
