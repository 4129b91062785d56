"""Plain NumPy: loops that go on there, and whole calls where it is faster; equal results."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest

import np_compile
from np_compile import config
from np_compile.capture.exchange import escape
from np_compile.capture.policy import runs
from np_compile.capture.policy.budget import Budget
from np_compile.capture.policy.choice import Choice, kind_of, signature
from np_compile.capture.policy.decide import Decision, Way

from ..support import check, compiled, data, lasts_plainly


def smooth(x, a):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = a * y[i - 1] + (1 - a) * x[i]
    return y


def forward(lower, x):
    for i in range(len(lower)):
        x[i] -= lower[i, :i] @ x[:i]
        x[i] /= lower[i, i]


# -- loops -------------------------------------------------------------------------------------


def test_always_has_loops_in_numpy_from_their_start():
    fast, counter = compiled(smooth)
    x = data(40, 3)
    with config.patch(plain="always"):
        explained = np_compile.explain(fast)(x, 0.3)
    (why,) = explained.breaks
    assert (why.kind, "setting `plain`" in why.reason) == ("plain", True)
    assert counter.count <= 1  # what comes before the loop
    np.testing.assert_array_equal(explained.result, smooth(x, 0.3))


def test_never_compiles_each_shape():
    fast, counter = compiled(forward)
    with config.patch(plain="never"):
        fast(np.eye(20), data(20, 5))
    assert counter.count >= 18


def test_always_has_a_while_loop_in_numpy():
    def f(x):
        steps = 0
        while np.abs(x).max() > 1e-3:
            x = x * 0.9
            steps += 1
        return x, steps

    with config.patch(plain="always"):
        explained = np_compile.explain(np_compile.compile(f, backend="eager"))(data(4))
    assert any(b.kind == "plain" for b in explained.breaks)
    np.testing.assert_allclose(explained.result[0], f(data(4))[0], rtol=1e-12)


def test_fullgraph_stays_compiled():
    def f(x):
        for i in range(30):
            x = x * 0.5 + i
        return x

    with config.patch(plain="always"):
        fast, _counter = compiled(f, fullgraph=True)
        np.testing.assert_allclose(fast(data(3)), f(data(3)), rtol=1e-12)
        explained = np_compile.explain(fast)(data(3))
    assert explained.breaks == []


# -- arrays that straddle the switch -----------------------------------------------------------


def views_kept(x):
    rows = []
    for i in range(12):
        rows.append(x[i])  # noqa: PERF401
    x += 1
    first = rows[3] * 2
    rows[3][...] = 7
    return x, first, rows[3], rows[4] + x[4]


def views_from_before(x):
    top, bottom = x[:6], x[6:]
    kept = top * 1.0
    for i in range(11):
        top += 0.5 * i
        bottom[i % 6] = top[i % 6] * 2
        x[i, 0] = i
    return x, top.sum(), bottom - kept


def fresh_in_the_loop(x):
    made = []
    y = x
    for i in range(12):
        y = y * 0.5 + i
        made.append(y)
    y += 100
    z = made[-1] * 2  # is y
    made[0] -= 1
    return y, z, made[0], made[1] + x


def broken_off(x):
    for i in range(40):
        x[i % 12] += 1
        if i == 20:
            break
    y = x * 2
    x[0] = -1
    for i in range(20):
        y = y + i
        if i == 15:
            return x, y
    return None


def nested(x):
    total = np.zeros(x.shape[1])
    for i in range(12):
        for j in range(10):
            total += x[i] * j
            x[i, :2] = total[:2]
        total = total / 2
    return total, x


def by_rows(x):
    out = np.zeros_like(x)
    for i, (row, target) in enumerate(zip(x, out, strict=True)):
        target[...] = row * i
        row -= 1
    return x + out, out


def raised(x):
    try:
        for i in range(20):
            x[i] = x[i] * 2
    except IndexError as e:
        return x * 1, str(e)
    return None


def in_an_object(x):
    class State:
        pass

    s = State()
    s.now, s.all = x[0], []
    for i in range(11):
        s.now = s.now + x[i + 1]
        s.all.append(s.now)
        x[i] = s.now
    return s.now, s.all[2] * 2, x


def functions_and_keys(x):
    order = np.array([2, 0, 1])
    best = -np.inf
    for i in range(12):
        row = np.sort(x[i])[::-1][order]
        best = max(best, row.max(), np.dot(row, row))
        x[i, 1:3] = np.where(row > 0, row, -row)[:2]
        x[i, x[i] > 2] = 2
    return best, x.argmax(axis=1), x


def scalars(x):
    s, t = x[0, 0], np.float32(1.5)
    for i in range(12):
        s = s + x[i, 1] ** 2 - (i % 3)
        t = t * x[i, 2]
        x[i, 0] = -s
    return s, t, divmod(s, 2.0), x


STRADDLING = [
    views_kept, views_from_before, fresh_in_the_loop, broken_off, nested, by_rows, raised,
    in_an_object, functions_and_keys, scalars,
]  # fmt: skip


class Switch:
    """What follows the iterations of a loop, and has it go on in NumPy after the third."""

    def __init__(self, capture):
        self.capture, self.left = capture, 3

    def iteration_ends(self, _node):
        self.left -= 1
        if self.left == 0:
            self.capture.go_plain(Decision(Way.NUMPY, "for the test", 100))


def of_loop(capture, _site, long):
    return Switch(capture) if long and not capture.is_plain() else None


@pytest.mark.parametrize("way", ["after some iterations", "always", "never"])
@pytest.mark.parametrize("f", STRADDLING)
def test_arrays_that_straddle_the_switch(f, way, monkeypatch):
    if way != "always":
        after = way == "after some iterations"
        monkeypatch.setattr(runs, "of_loop", of_loop if after else lambda *_: None)
    with config.patch(unroll=2, plain="always" if way == "always" else "auto"):
        explained = np_compile.explain(np_compile.compile(f, backend="eager"))(data(12, 3))
        assert (way != "never") == any(b.kind == "plain" for b in explained.breaks)
        check(f, data(12, 3), plain=config.plain, rtol=1e-12)


@pytest.mark.parametrize("f", STRADDLING)
def test_calls_in_one_mode_after_calls_in_another(f, monkeypatch):
    fast = np_compile.compile(f, backend="eager")
    usual = runs.of_loop
    for way in ["switch", "always", "never", "always", "switch"] * 2:
        want_x, got_x = data(12, 3), data(12, 3)
        want = f(want_x)
        monkeypatch.setattr(runs, "of_loop", of_loop if way == "switch" else usual)
        with config.patch(unroll=2, plain="auto" if way == "switch" else way):
            got = fast(got_x)
        for a, b in zip(got, want, strict=True):
            if isinstance(a, str):
                assert a == b
            else:
                np.testing.assert_allclose(a, b, rtol=1e-12)
        np.testing.assert_allclose(got_x, want_x, rtol=1e-12)


# -- whole calls -------------------------------------------------------------------------------


@pytest.mark.usefixtures("recorded")
def test_a_small_function_runs_as_it_stands_and_explain_says_so():
    fast = np_compile.compile(smooth, backend="native")
    x = data(60)
    want = smooth(x, 0.3)
    for _ in range(12):
        np.testing.assert_array_equal(fast(x, 0.3), want)
    (choice,) = fast._options.choices.values()
    assert choice.way == "plain"
    explained = np_compile.explain(fast)(x, 0.3)
    assert "run in plain NumPy" in explained.breaks[-1].reason
    assert explained.breaks[-1].line.startswith(__file__)
    np.testing.assert_array_equal(explained.result, want)


class Named:
    """An argument for which no call is kept."""

    def __call__(self, k):
        return str(k)


def hooked(x, hook):
    for k in range(500):
        x = x * 0.5 + np.sin(x)
        hook(k)
    return x


def test_a_loop_of_little_is_captured_once_where_no_call_is_kept():
    fast, x, hook = np_compile.compile(hooked), data(20), Named()
    with config.patch(compile_in="background"):
        np.testing.assert_array_equal(fast(x, hook), hooked(x, hook))
        (choice,) = fast._options.choices.values()
        assert (choice.way, choice.awaited) == ("plain", None)
        assert "nothing of calls" in str(choice)
        np.testing.assert_array_equal(fast(x, hook), hooked(x, hook))
    assert choice.runs == 1


@pytest.mark.usefixtures("recorded")
def test_a_call_of_which_nothing_ran_as_kernels_may_be_kept():
    fast, x = np_compile.compile(lambda x: x), data(20)
    with config.patch(compile_in="background"):
        fast(x)
        (choice,) = fast._options.choices.values()
        assert choice.way is None


@pytest.mark.usefixtures("recorded")
def test_what_does_nothing_at_first_is_compiled_when_it_does(clock, monkeypatch):
    def f(x, does):
        if not does.much:
            return x
        y = x
        for _ in range(30):
            y = y * x + 0.5
        return y

    fast, x, does = np_compile.compile(f), data(300, 400), Named()
    does.much = False
    with config.patch(compile_in="call"):
        fast(x, does)
        (choice,) = fast._options.choices.values()
        assert choice.way == "plain"
        does.much = True
        lasts_plainly(1.0, clock, monkeypatch)
        for _ in range(100):
            np.testing.assert_allclose(fast(x, does), f(x, does), rtol=1e-12)
        assert choice.way == "compiled"


@pytest.mark.parametrize("options", [{"backend": "eager"}, {"fullgraph": True}])
def test_a_back_end_that_was_asked_for_is_used(options):
    fast = np_compile.compile(lambda x: x * 2 + 1, **options)
    for _ in range(10):
        fast(data(3))
    assert fast._options.choices == {}


def test_errors_and_effects_are_the_same_in_each_way():
    calls = []

    def f(x, i):
        calls.append(i)
        for k in range(20):
            x[k % 3] += 1
        return x[i]

    fast = np_compile.compile(f, backend="native")
    x, want = data(3), data(3)
    for _ in range(15):
        assert fast(x, 1) == f(want, 1)
        with pytest.raises(IndexError, match="out of bounds"):
            fast(x, 5)
        with pytest.raises(IndexError, match="out of bounds"):
            f(want, 5)
    np.testing.assert_array_equal(x, want)
    assert len(calls) == 60


def run(choice, compiled_seconds, plain_seconds, calls=100, built=0, touched=1000):
    """Feed a choice with times, as calls would."""
    for _ in range(calls):
        if choice.wants_plain():
            choice._ran_plain(plain_seconds, True)
        else:
            choice.ran_compiled(compiled_seconds, built, 10, touched)


def test_the_faster_way_is_chosen():
    for compiled_seconds, plain_seconds, way in [
        (1e-3, 1e-4, "plain"), (1e-4, 1e-3, "compiled"), (1e-3, 9e-4, "plain"),
        (1e-3, 1.1e-3, "compiled"), (0.4, 0.2, "plain"), (0.2, 0.4, "compiled"),
    ]:  # fmt: skip
        choice = Choice(Budget(asked=False))
        run(choice, compiled_seconds, plain_seconds, 30)
        assert choice.way == way


def test_numpy_is_not_tried_where_it_cannot_be_faster():
    choice = Choice(Budget(asked=False))
    choice.ran_compiled(1e-3, 0, 10, 10**9)
    assert choice.way == "compiled"
    assert choice.tries == 0


def test_numpy_is_not_tried_where_a_call_takes_long():
    choice = Choice(Budget(asked=False))
    run(choice, 2.0, 1.0, 20, touched=10**10)
    assert choice.way == "compiled"
    assert choice.tries == 0


def test_numpy_is_tried_where_a_long_call_has_little_for_it_to_do():
    choice = Choice(Budget(asked=False))
    run(choice, 2.0, 1.0, 20)
    assert choice.way == "plain"


@pytest.mark.parametrize(
    ("listed", "called", "single", "way"),
    [
        (0, 0, 1e6, "compiled"), (100, 0, 1e7, "compiled"), (10_000, 0, 1e7, "plain"),
        (0, 10, 1e7, "compiled"), (0, 100, 1e7, "plain"), (0, 0, 1e5, "plain"),
        (100, 0, 1e6, "plain"),
    ],
)  # fmt: skip
def test_numpy_is_tried_where_loops_may_be_slower(listed, called, single, way):
    """Long lists, whose items take as long to make, and calls, which take longer, from compiled
    code; whole arrays, of which NumPy may be the faster; few more operations than NumPy may have
    done in that time, as they are only guessed."""
    choice, shorter = Choice(Budget(asked=False)), Choice(Budget(asked=False))
    shorter.way, shorter.compiled = "compiled", 1e-3
    others = [] if listed or called else [shorter]
    for _ in range(20):
        if choice.wants_plain():
            choice._ran_plain(5e-3, True)
        else:
            choice.ran_whole(1e-2, listed, called, single, others)
    assert choice.way == way


def test_calls_that_compile_each_time_are_given_up():
    choice = Choice(Budget(asked=False))
    run(choice, 5e-2, 1e-4, 20, built=1)
    assert choice.way == "plain"


def test_a_few_slow_calls_change_no_choice():
    for way in ("plain", "compiled"):
        choice = Choice(Budget(asked=False))
        run(choice, *((1e-3, 1e-4) if way == "plain" else (1e-4, 1e-3)), 20)
        assert choice.way == way
        note = partial(choice._ran_plain, alone=True) if way == "plain" else choice.ran_kept
        for _ in range(5):
            note(1.0)
            note(1.0)
            note(1e-4)
        assert choice.way == way
        for _ in range(3):
            note(1.0)
        assert choice.way is None


def test_a_choice_that_no_longer_holds_is_made_again():
    choice = Choice(Budget(asked=False))
    run(choice, 1e-3, 1e-4, 20)
    assert choice.way == "plain"
    run(choice, 1e-3, 1e-2, 20)
    assert choice.way == "compiled"


def test_signatures_tell_apart_what_matters_and_end():
    x = data(3)
    cyclic: list = []
    cyclic.append(cyclic)
    others = [(data(4),), (x.astype("f"),), (x, 1), (x, 2), (x, 1.5), ([x],), (cyclic,)]
    made = [signature(args, {}) for args in [(x,), *others]]
    assert len(set(made)) == len(made)
    assert signature((x, 1000), {}) == signature((x, 1005), {})
    assert signature(([1] * 1000,), {}) == signature(([1] * 1005,), {})
    assert len({signature((x, n), {}) for n in (100, 120, 200, 1000, -1000, 2000, 10**30)}) == 7
    assert signature((data(3, seed=1), 2.5), {}) == signature((x, 1.5), {})
    assert signature((x,), {"k": 1}) != signature((x,), {"k": 2})


@pytest.mark.parametrize(("own", "way"), [(0.03, "compiled"), (0.004, None)])
def test_two_calls_in_which_others_had_the_processor_do_not_decide(own, way, clock):
    choice = Choice(Budget(asked=False))
    for _ in range(2):
        choice.ran_compiled(1e-3, 0, 1, 0)
    for _ in range(2):
        if choice.way is None:
            choice.call(clock.passes, (0.03, own), {})
    assert choice.way == way


def test_what_nothing_compiles_is_looked_for_now_and_then(clock):
    choice, ran = Choice(Budget(asked=False)), []
    for _ in range(11):
        choice.ran_neither()
        assert choice.way is None
    choice.ran_neither()
    assert choice.way == "plain"
    while choice.way == "plain":
        choice.call(lambda: (ran.append(0), clock.passes(1e-3)), (), {})
        assert len(ran) < 200
    assert len(ran) == 64  # one is timed first
    for _ in range(3):  # that nothing serves them was known
        choice.ran_neither()
    assert choice.way == "plain"


@pytest.mark.parametrize(("first", "seconds"), [(True, 1e-2), (False, 0.1)])
def test_short_calls_are_timed_both_ways_again_when_they_have_taken_longer_than_that(
    monkeypatch, first, seconds
):
    monkeypatch.setattr(Budget, "timed", lambda budget, *_: setattr(budget, "took", took))
    choice, took = Choice(Budget(asked=False)), 5e-6
    choice.way, choice.plain, choice.compiled, choice._first = "plain", took, 2 * took, first
    calls = 0
    while choice.way == "plain":
        choice.plain = took
        calls += choice.sampled
        choice.call(lambda: None, (), {}, choice.sampled)
    assert seconds <= calls * took < 3 * seconds


def test_calls_with_new_texts_that_nothing_compiles_run_as_they_stand():
    def counts(docs):
        words = sorted({w for d in docs for w in d.split()})
        found = np.zeros((len(docs), len(words)))
        for i, d in enumerate(docs):
            for w in d.split():
                found[i, words.index(w)] += 1
        return found

    fast = np_compile.compile(counts)
    with config.patch(compile_in="call"):
        for k in range(60):
            docs = [f"a{k} bcd{k * k}", "ef " * (k % 7)]
            assert (fast(docs) == counts(docs)).all()
            if k == 8:
                fast._options.budget.owed = 1e9  # no time is left
    assert "plain" in [c.way for c in fast._options.choices.values()]
    long, same = "abcdefgh " * 20, "mean"
    assert kind_of((long + "x",), {}) == kind_of((long + "y",), {})
    assert kind_of((same,), {}) != kind_of(("median",), {})


# -- the cost of a call ------------------------------------------------------------------------


def test_a_call_without_survivors_looks_for_no_holders(monkeypatch):
    def looked(_capture):
        raise AssertionError("a look through all objects")

    monkeypatch.setattr(escape, "_stand_ins", looked)
    for backend in ("native", "eager"):
        fast = np_compile.compile(lambda x: np.sin(x) + 1, backend=backend)
        for _ in range(4):
            fast(data(5))


def test_threads_run_one_program_with_numbers_of_their_own():
    fast = np_compile.compile(lambda x, s, i: (x * s + x[i], x.sum() - s), backend="native")
    x = data(5000)
    wrong = []

    def work(s):
        for k in range(60):
            y, total = fast(x, s + k, k)
            if not (np.allclose(y, x * (s + k) + x[k]) and np.isclose(total, x.sum() - s - k)):
                wrong.append((s, k))

    with config.patch(plain="never"):
        threads = [threading.Thread(target=work, args=(float(100 * n),)) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert wrong == []


def _flipped(x):
    for k in range(200):
        x = x + 1
        if k > 100:
            z = x * 2
    view = np.flip(z, 0)
    view[0] = 5
    total = z.sum()
    view += x.mean()
    return z, view, total


def _split(x):
    for _ in range(200):
        x = x + 1
    first, second = np.split(np.reshape(x, 6), 2)
    second *= first
    first[1] = 7
    return x, first, second, x.sum()


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("f", [_flipped, _split])
def test_views_of_what_plain_mode_made_have_its_memory(f, backend):
    with config.patch(loops="recorded"):
        check(f, np.arange(6.0), backend=backend, plain="always")


def counted(x, n, hook):
    for k in range(n):
        x = x * 0.5 + np.sin(x)
        hook(k)
    return x


def until(x, n, hook):
    k = 0
    while k < n:
        x = x * 0.5 + np.sin(x)
        hook(k)
        k += 1
    return x


def until_a_value(x, n, hook):
    k = 0
    while x.max() > -9 and k < n:
        x = x * 0.5 + np.sin(x)
        hook(k)
        k += 1
    return x


@pytest.mark.parametrize("f", [counted, until, until_a_value])
def test_a_loop_of_little_work_goes_on_in_numpy(f):
    """To record an iteration again takes longer than NumPy: from the first call on."""
    fast = np_compile.compile(f, backend="eager")
    for size, wanted in ((20, True), (20_000, False)):
        x = data(size)
        explained = np_compile.explain(fast)(x, 40, repr)
        assert any("too little" in b.reason for b in explained.breaks) == wanted
        np.testing.assert_allclose(explained.result, f(x, 40, repr), rtol=1e-12)
