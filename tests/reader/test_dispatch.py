"""Calls of regions that C makes by itself: what it looks at, what it gives, what is Python's."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
import types
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest

import np_compile
from np_compile import config, dict_tags
from np_compile.reader import dispatch
from np_compile.reader.reading import Reading
from np_compile.replay.keeper import Keeper

from ..support import Copier, compare, lasts, lasts_plainly, observe
from .support import case, check, each, exact, same_signs, whole

RNG = np.random.default_rng(5)
X = RNG.random(7)


pytestmark = pytest.mark.usefixtures("without_cupy")


def in_c(fast: Any) -> int:
    """How many calls C has made."""
    return sum(r.runs_in_c for known in fast._reading._regions.values() for r in known)


def compiled(f: Any, *args: Any, **kwargs: Any) -> Any:
    """A compiled function, after a call of Python's, and one of C's."""
    fast = np_compile.compile(f)
    for _ in range(2):
        fast(*Copier()(args), **kwargs)
    assert in_c(fast) == 1
    return fast


@pytest.fixture(autouse=True)
def _whole():
    with whole():
        yield


class Pair(NamedTuple):
    first: Any
    second: Any


def numbers(x, n):
    s, k, z, b = 0.0, 0, 0j, False
    for i in range(n):
        s += x[i]
        k += i
        z += 1j * float(x[i])
        b = x[i] > 0.5
    return s, k, z, b, -k, 0.1, "text", None, (s, [k, (z,)])


def scalars_of_numpy(x, f, c, i, j, u, t):
    for k in range(x.shape[0]):
        f = f + np.float32(1)
        c = c * np.complex64(1j)
        i = np.int8(k)
        u = np.uint64(18446744073709551615) - np.uint64(k)
        t = x[k] < 0.5
        j += 1
    return f, c, i, j, u, t, x[0], np.complex128(x[0])


def one_kind_or_another(x, n):
    s, t, c = 0, None, 1.0
    for i in range(n):
        s = s + x[i]
        t = i
        if x[i] > 0.9:
            c = 1j * float(x[i])
    return s, t, c


def named(x, n):
    s = 0.0
    for i in range(n):
        s += x[i]
    return Pair(s, Pair(x, n))


def its_own(x):
    for i in range(x.shape[0]):
        x[i] += 1
    return x


def views(x, n):
    for i in range(n):
        x[i] += 1
    y = x[1:]
    return y, x[::-1], y, x[2:2], x[:], x


def small_ones(n):
    a = np.zeros((3, 2))
    e = np.zeros((0, 2))
    for i in range(n):
        a[i % 3, i % 2] += i
    b = a[1:]
    return a, b, a, a.T, b[:, 0], e, np.array(2.5)


def large_ones(n):
    a = np.zeros((n, n))
    b = np.ones(n * n, dtype=np.float32)
    for i in range(n):
        a[i, i] = i
        b[i] = i
    return a, b, a[1:, ::2], b.reshape(n, n)


def of_all_dtypes(*args):
    raise NotImplementedError


def all_dtypes(a, b, c, d, e):
    n = 0
    for i in range(a.shape[0]):
        if a[i]:
            n += 1
        b[i] += 1
        c[i] += 1
        d[i] = d[i] * 2
        e[i] = -e[i]
    return a, b, c, d, e, n


def nothing(x, out, *, by=2.0, offset=0):
    for i in range(x.shape[0]):
        out[i] = x[i] * by + offset


def read_only(x):
    y = np.empty(3)
    for i in range(3):
        y[i] = x[i]
    y.flags.writeable = False
    return y


def of_structures(t, p, z, flag, name, nothing):
    s = 0.0
    for i in range(t[0]):
        s += t[1][i] * p.first + p.second[0] + p.second[1]
        z = z * 2
        if flag and name == "this":
            s += 1
    return s, z, t[1], p


CASES = [
    exact(numbers, (X, 5)),
    exact(
        scalars_of_numpy,
        (X, np.float32(0.1), np.complex64(2), np.int8(-3), np.int64(-4), np.uint64(2**64 - 1),
         np.bool_(True)),
    ),
    exact(one_kind_or_another, (X, 5), (X + 1, 5), (X, 0)),
    exact(named, (X, 5)),
    exact(its_own, (X,), (X[::-1],), (RNG.random((2, 9))[0, ::2],)),
    exact(views, (X, 5), (X[::-2], 3)),
    exact(small_ones, (5,)),
    exact(large_ones, (60,)),
    exact(
        all_dtypes,
        (np.arange(3) > 1, np.arange(3, dtype=np.int8), np.arange(3, dtype=np.uint64),
         np.arange(3, dtype=np.float32), np.arange(3, dtype=np.complex64)),
        (np.arange(3) > 1, np.arange(3, dtype=np.longlong), np.arange(3, dtype=np.uint16),
         np.arange(3, dtype=np.float64), np.arange(3, dtype=np.complex128)),
    ),
    exact(nothing, (X, X * 2)),
    exact(
        of_structures,
        ((3, X), Pair(0.5, [1, 2.5]), 1 + 2j, True, "this", None),
        ((3, X), Pair(0.5, [1, 2.5]), -0.0j, True, "that", None),
    ),
]  # fmt: skip


@each(CASES)
def test_c_gives_what_python_gives(c):
    fast = check(c)
    assert in_c(fast) >= len(c.calls)


def scaled(x, y, k, flag):
    r = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        r[i] = x[i] * k + y[i % y.shape[0]]
    if flag:
        return r
    return r, k


class Sub(np.ndarray):
    pass


def misaligned(n):
    return np.frombuffer(bytearray(8 * n + 1), np.uint8)[1:].view(np.float64)


OTHERS = [
    (X, X, 2.0, True),
    (X, X, 2, True),
    (X, X, True, True),
    (X, X, 2**31, False),
    (X, X, 2**70, False),
    (X, X, -(2**63), False),
    (X, X, np.float64(2), False),
    (X, X, np.float32(2), False),
    (X, X, np.int8(2), False),
    (X, X, 2j, False),
    (X, X, 2.0, 1),
    (X, X, 2.0, None),
    (X.astype(np.float32), X, 2.0, False),
    (X.astype(">f8"), X, 2.0, False),
    (X.view(Sub), X, 2.0, False),
    (misaligned(7), X, 2.0, False),
    (X[::-1], X, 2.0, False),
    (X[::2], X[1:], 2.0, False),
    (X[:0], X, 2.0, False),
    (X[:1], X[:1], 2.0, False),
    (X, X[:0], 2.0, False),
    (X.reshape(1, 7), X, 2.0, False),
    (np.array(1.5), X, 2.0, False),
    (X.tolist(), X, 2.0, False),
    (X.astype(object), X, 2.0, False),
    (X, X, "2", False),
]


def test_arguments_of_other_kinds_are_other_calls():
    fast = compiled(scaled, X, X * 2, 2.0, False)
    for _ in range(2):
        for args in OTHERS:
            x, y = args[:2]
            own = [x, y.copy(), *args[2:]]  # that share no memory
            compare(observe(fast, own, {}), observe(scaled, own, {}), 0)
    before = in_c(fast)
    fast(X, X * 2, 3.0, False)
    assert in_c(fast) == before + 1


def test_arrays_that_share_memory_and_what_may_not_be_written():
    fast = compiled(nothing, X, X * 2)
    a = np.arange(9.0)
    want = a.copy()
    nothing(want[:-1], want[1:])
    fast(a[:-1], a[1:])
    assert a.tobytes() == want.tobytes()
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        fast(X, a)


def picked(x, at):
    for i in range(at.shape[0]):
        x[at[i]] += 1
    return x[at[0]]


def test_exceptions_are_pythons_and_come_after_what_was_done():
    fast = compiled(picked, X, np.array([1, 2]))
    for at in ([1, 2, 99], [1, -8, 2], [0]):
        check_one = [Copier()((X, np.array(at))) for _ in range(2)]
        got, want = (
            observe(f, args, {}) for f, args in zip((fast, picked), check_one, strict=True)
        )
        compare(got, want, 0)
    assert isinstance(got.result, np.float64)


SCALE, TABLE = 2.0, np.arange(4.0)


def helper(v):
    return v * SCALE


def from_around(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += helper(x[i]) + TABLE[i % 4] + abs(-1)
    return s


def test_globals_and_builtins_are_looked_at_in_each_call(monkeypatch):
    fast = compiled(from_around, X)
    here = sys.modules[__name__]

    def same() -> int:
        assert fast(X) == from_around(X)
        return in_c(fast)

    before = same()
    monkeypatch.setattr(here, "other", 3.0, raising=False)
    assert same() == before + 1
    before += 1
    monkeypatch.setattr(here, "SCALE", 3.0)  # a value of the same type
    monkeypatch.setattr(here, "TABLE", TABLE + 1)
    assert same() == before + 1
    monkeypatch.setattr(here, "SCALE", 3)
    same()
    monkeypatch.setattr(here, "abs", lambda v: 7, raising=False)
    same()
    monkeypatch.setattr(helper, "__code__", (lambda v: v - SCALE).__code__)
    same()
    monkeypatch.delattr(here, "TABLE")
    with pytest.raises(NameError, match="'TABLE'"):
        fast(X)


def test_dicts_without_tags_are_looked_at_each_time(monkeypatch):
    """As those of Python 3.14."""
    assert dict_tags.OFFSET or sys.version_info >= (3, 14)
    monkeypatch.setattr(dict_tags, "OFFSET", 0)
    test_globals_and_builtins_are_looked_at_in_each_call(monkeypatch)


def test_defaults_and_names_of_arguments():
    def f(x, k=2.0, *, y=3.0, z=1):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i] * k + y * z
        return s

    fast = np_compile.compile(f)
    calls = [
        ((X,), {}),
        ((X, 3.0), {}),
        ((X,), {"z": 5}),
        ((), {"k": 0.5, "x": X}),
        ((X,), {"y": 1.0}),
    ]
    for _ in range(3):
        for args, kwargs in calls:
            assert fast(*args, **kwargs) == f(*args, **kwargs)
    before = in_c(fast)
    assert before == 2 * len(calls)
    f.__kwdefaults__["y"] = 9.0
    assert fast(X) == f(X)
    f.__kwdefaults__ = {"y": 1.0, "z": 2}
    assert fast(X) == f(X)
    f.__defaults__ = (7.0,)
    assert fast(X) == f(X)
    for args, kwargs in [((), {}), ((X, 1.0, 2.0), {}), ((X,), {"q": 1}), ((X,), {"x": X})]:
        with pytest.raises(TypeError) as want:
            f(*args, **kwargs)
        with pytest.raises(
            TypeError, match=str(want.value).replace("(", r"\(").replace(")", r"\)")
        ):
            fast(*args, **kwargs)


def test_variables_of_a_function_around():
    k = 2.0

    def f(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i] * k
        return s

    fast = compiled(f, X)
    assert fast(X) == f(X)
    k = 3.0
    assert fast(X) == f(X)
    assert in_c(fast) == 3
    k = 3
    assert fast(X) == f(X)


class Model:
    def __init__(self, n):
        self.u = np.linspace(0, 1, n)
        self.rate, self.steps, self.last = 0.5, 0, None
        self.options = {"offset": 1.0}

    def decay(self, v):
        return v * self.rate

    def step(self, other, dt):
        s = 0.0
        for i in range(self.u.shape[0]):
            self.u[i] = self.decay(self.u[i]) + dt + self.options["offset"]
            s += self.u[i] + other.rate
        self.steps += 1
        self.options["offset"] = s
        other.last = self.u[1:]
        return s

    fast = np_compile.compile(step)


def test_attributes_are_read_and_set():
    a, b, c, d = Model(5), Model(6), Model(5), Model(6)
    for k in range(4):
        assert a.fast(b, 0.5) == c.step(d, 0.5)
        assert vars(a).keys() == vars(c).keys()
        assert (a.steps, a.options, a.rate) == (c.steps, c.options, c.rate)
        assert a.u.tobytes() == c.u.tobytes()
        assert np.shares_memory(a.u, b.last)
        if k == 1:
            before = in_c(Model.fast)
            a.u, c.u = a.u[::-1], c.u[::-1]  # of another layout
        if k == 2:
            a.u, c.u, a.rate, c.rate = a.u.copy(), c.u.copy(), 0.25, 0.25
    assert in_c(Model.fast) > before
    a.fast(a, 0.5)  # one object under two names
    c.step(c, 0.5)
    assert a.options == c.options
    a.decay = c.decay = lambda v: 0.0
    assert a.fast(b, 0.5) == c.step(d, 0.5)
    del a.decay, a.rate
    with pytest.raises(AttributeError, match="rate"):
        a.fast(b, 0.5)


def in_turns(a, b, n):
    for _ in range(n):
        a.rate = a.rate + 1.0
        b.rate = b.rate * 2.0


def test_one_object_under_two_names():
    a, b, c = Model(2), Model(2), Model(2)
    fast = compiled(in_turns, a, b, 3)
    fast(c, c, 3)
    in_turns(b, b, 3)
    assert c.rate == b.rate


def test_defaults_that_are_exchanged():
    def f(x, k=2.0):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i] * k
        return s

    fast = compiled(f, X)
    f.__defaults__ = (7.0,)
    assert fast(X) == f(X)


def test_settings_and_errstate_hold_for_calls_of_c():
    def f(x):
        s = 1.0
        for i in range(x.shape[0]):
            s *= x[i]
        return s

    huge = np.full(7, 1e300)
    fast = compiled(f, huge)
    before = in_c(fast)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        fast(huge)
    for settings in ({"disable": True}, {"loops": "recorded"}):
        with config.patch(**settings):
            assert fast(X) == f(X)
    assert in_c(fast) == before
    fast(X)
    assert in_c(fast) == before + 1


def test_code_that_is_exchanged_is_read_anew():
    def f(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
        return s

    def g(x):
        s = 1.0
        for i in range(x.shape[0]):
            s *= x[i]
        return s

    fast = compiled(f, X)
    f.__code__ = g.__code__
    assert fast(X) == g(X)


def test_nothing_is_held_after_a_call():
    class Count(float):
        pass

    fast = compiled(views, X, 5)
    x = X.copy()
    counts = []
    for _ in range(3):
        before = sys.getrefcount(x), sys.getrefcount(float)
        for _ in range(50):
            fast(x, 5)
        counts.append((sys.getrefcount(x) - before[0], sys.getrefcount(float) - before[1]))
    assert counts[-1] == (0, 0)
    made = compiled(small_ones, 5)
    a, b, *_ = made(5)
    found = weakref.ref(a)
    del a
    assert b.base is found()
    del b, _
    assert found() is None


def test_a_compiled_function_goes_with_all_that_c_knows_of_it():
    def f(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
        return s

    found = weakref.ref(compiled(f, X))
    del f
    gc.collect()
    assert found() is None


def test_a_call_within_a_call_of_the_same_function():
    seen = []

    def f(x, depth):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
        seen.append(depth)
        if depth > 0:
            s += fast(x * 2, depth - 1)
        for i in range(x.shape[0]):
            s += x[i]
        return s

    fast = np_compile.compile(f)
    for _ in range(3):
        assert fast(X, 3) == pytest.approx(30 * X.sum())
    assert seen == [3, 2, 1, 0] * 3


def waits(x, n):
    s = 0.0
    for i in range(n):
        s += x[i % 7] / (1 + s * s)
    return s


def test_threads_run_at_once_and_have_their_own_memory():
    fast = compiled(waits, X, 10)
    want = {n: waits(X, n) for n in range(900, 940)}
    wrong = []

    def work(of):
        for _ in range(50):
            wrong.extend(n for n in of if fast(X, n) != want[n])

    threads = [threading.Thread(target=work, args=([*want][k::4],)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    turns = []
    t = threading.Thread(target=lambda: turns.append(fast(X, 60_000_000)))
    t.start()
    while t.is_alive():  # the interpreter's lock is free meanwhile
        turns.append(0)
        time.sleep(0.001)
    assert len(turns) > 5


class Alarm(Exception):
    pass


def test_a_signal_ends_a_call_of_c():
    fast = compiled(waits, X, 10)

    def ring(number, frame):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(Alarm):
            fast(X, 1 << 30)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert fast(X, 10) == waits(X, 10)


def drawn(rng, n):
    s = 0.0
    for _ in range(n):
        s += rng.random()
    return s


def lists(rows, out):
    for i in range(len(rows)):
        out.append(rows[i] * 2.0)
    return out, len(rows)


def legacy(n):
    s = 0.0
    for _ in range(n):
        s += np.random.random()
    return s


def test_generators_are_locked_while_c_draws():
    fast = np_compile.compile(drawn)
    a, b = np.random.default_rng(3), np.random.default_rng(3)
    for n in (4, 5, 6):
        assert fast(a, n) == drawn(b, n)
    for kind in (np.random.Philox, np.random.MT19937):  # of one type to C
        a, b = np.random.Generator(kind(1)), np.random.Generator(kind(1))
        assert fast(a, 9) == drawn(b, 9)
        assert a.random() == b.random()
    assert in_c(fast) == 4
    held, done = threading.Event(), []

    def hold():
        with a.bit_generator.lock:
            held.set()
            time.sleep(0.05)
            done.append(1)

    t = threading.Thread(target=hold)
    t.start()
    held.wait()
    fast(a, 3)
    assert done
    t.join()
    assert not a.bit_generator.lock._is_owned()
    fast, states = np_compile.compile(legacy), []
    for f in (fast, legacy):
        np.random.seed(5)
        states.append([f(3) for _ in range(4)] + [np.random.random()])
    assert states[0] == states[1]
    assert in_c(fast) == 3


def test_lists_are_given_by_c_and_made_by_python():
    fast = check(case(lists, ([1.0] * 9, [0.5] * 9)))
    assert in_c(fast) == 0


def test_short_calls_are_timed_as_c_makes_them(clock, monkeypatch):
    """One that begins in Python takes longer, and as long as the function as it stands."""
    lasts(Keeper, "read", 1e-6, clock, monkeypatch)
    lasts_plainly(1e-5, clock, monkeypatch)
    lasts(Reading, "call", 1e-4, clock, monkeypatch)

    def f(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i] * 0.5 + s * s
        return s

    x = np.linspace(0, 1e-3, 60)
    fast = np_compile.compile(f)
    with config.patch(loops="auto", debug=0):
        for _ in range(400):
            fast(x)
        (choice,) = fast._options.choices.values()
        assert choice.way == "compiled"
        assert in_c(fast) > 300


def test_a_call_that_compiles_does_not_wait_for_the_c_that_makes_calls(monkeypatch):
    class Later:
        ready = False

        def get(self):
            raise AssertionError("it is waited for")

    class Making(Later):
        result = staticmethod(Later)

    monkeypatch.setattr(dispatch, "_library", dispatch._library.__wrapped__)
    monkeypatch.setattr(dispatch, "_making", Making)

    def f(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i] * i
        return s

    x = np.linspace(0, 1, 5)
    fast = np_compile.compile(f)
    with config.patch(compile_in="call", loops="whole", debug=0):
        assert [fast(x), fast(x)] == [f(x)] * 2
        assert in_c(fast) == 0
        monkeypatch.undo()
        assert [fast(x), fast(x)] == [f(x)] * 2
        assert in_c(fast) == 1


def test_calls_that_leave_are_pythons_from_there():
    def f(x, n):
        s = 0
        for i in range(n):
            s += i * i * n
        return s + x.shape[0]

    fast = compiled(f, X, 10)
    big = 1 << 24
    for n in (10, big, 11):
        if n == big:
            n = 3_000_000  # beyond 64 bits
        assert fast(X, n if n < 100 else 40) == f(X, n if n < 100 else 40)
    same_signs(np.zeros(1), np.zeros(1))
    assert isinstance(fast, types.MethodType) is False
