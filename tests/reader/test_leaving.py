"""Where compiled loops end before their end: exceptions, Python that goes on, signals, threads."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import nullcontext

import numpy as np
import pytest

import np_compile
from np_compile import config
from np_compile.kernels.build.toolchain import CompileFailed
from np_compile.reader import region
from np_compile.reader.entry import Entry, Unfit
from np_compile.reader.read import Leave, Reader
from np_compile.reader.translation import _GRAMMAR

from ..support import thorough
from .support import (
    Case,
    case,
    check,
    check_call,
    check_whatever_leaves,
    each,
    exact,
    refusals,
    whole,
)


def stops_at(x, limit):
    for i in range(len(x)):
        x[i] *= 2
        if x[i] > limit:
            raise ValueError(f"x[{i}] = {x[i]} is more than {limit}")
    return x


def index_error(x, idx):
    for k in range(len(idx)):
        x[k] = -1
        x[idx[k]] += k
    return x


def zero_division(x, d):
    done = 0
    for k in range(len(d)):
        x[k] = done
        done += 10 // d[k]
    return done


def shape_error(m, v):
    for k in range(1, len(v)):
        m[0, k] = k
        m[k, : k + 1] += v[: 2 * k]
    return m


def nested_error(m, limit):
    total = 0
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            m[i, j] += 1
            k = 0
            while k < 3:
                k += 1
                total += m[i, j + k - 1]
                if total > limit:
                    raise RuntimeError((i, j, k))
    return total


def deepest(x, i):
    x[i] += 1
    if x[i] > 3:
        raise KeyError(i)
    return x[i + 1]


def in_helper(x, n):
    s = 0
    for i in range(n):
        s += deepest(x, i)
    return s


def caught_by_caller(x, idx):
    try:
        for k in range(len(idx)):
            x[idx[k]] += 1
    except IndexError as e:
        return x, str(e), k
    return x, "", -1


def caught_and_goes_on(x, idx):
    errors = []
    for k in range(len(idx)):
        try:
            x[k] += 1
            x[idx[k]] *= 2
        except IndexError:
            errors.append(k)
            continue
        x[k] += 0.5
    return x, errors


def overflows(n):
    a, trace = 1, 0
    for k in range(n):
        a = a * 3 + k
        trace ^= a
        for _ in range(k % 3):
            trace += 1
    return a, trace


def overflow_in_nested(n, m):
    total, rows = 1, []
    for i in range(n):
        for j in range(m):
            total = total * (j + 1) + i
        rows.append(total % 1000)
    return total, rows


def overflow_in_while(x):
    n = 0
    while x < 1 << 70:
        x = x * x + 1
        n += 1
    return x, n


def becomes_float(n):
    s = 0
    for k in range(n):
        s += k if k < 5 else 0.5
    return s


def foreign(x):
    from math import tau

    s = 0.0
    for k in range(len(x)):
        s += tau * float(x[k])
    return s


def strings(x):
    text = ""
    for k in range(len(x)):
        if x[k] > 0:
            text += str(k)
        x[k] = len(text)
    return text


def two_loops(x, n):
    s = 0.0
    for k in range(n):
        s += x[k]
    names = {"s": s}
    for k in range(n):
        x[k] -= names["s"]
    t = 0.0
    for k in range(n):
        t += x[k] ** 2
    return s, t, names


def returns_from_depth(m, v):
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            while m[i, j] > v:
                m[i, j] -= 1
                if m[i, j] == 7:
                    return i, j, m
    return m


def negative_size(n):
    out = []
    for k in range(3):
        a = np.zeros(n - k)
        out.append(a.shape[0])
    return out


def unpacking_lists(x):
    total = 0.0
    for k in range(len(x)):
        a, b = sorted(x[k : k + 2].tolist())
        total += a - 2 * b
    return total


def unpacking(x):
    s = 0
    for row in x:
        a, b = row
        s += a * b
    return s


X = np.array([1.0, 2.0, 3.0, 4.0])
M = np.arange(12.0).reshape(3, 4)
CASES = [
    exact(stops_at, (X, 5.0), (X, 100.0), (X, 0.0), (X[:0], 0.0)),
    exact(index_error, (X, np.array([0, 1])), (X, np.array([0, -5, 1])), (X, np.array([0, 1, 9]))),
    exact(index_error, (X[:2], np.array([0, 1, 1])), (X, np.arange(4)[::-1])),
    exact(zero_division, (X, np.array([1, 2, 0, 4])), (X, np.arange(5, 0, -1))),
    exact(zero_division, (np.ones(5), range(-3, 3)), (X, range(1, 4)),
          refused="an index of this value"),
    exact(shape_error, (M, X[:3]), (M, X[:1]), (M, X[:2])),
    exact(nested_error, (M, 20), (M, 1e9), (M[:, ::-1], 30), (M[:0], 1)),
    exact(in_helper, (X, 2), (X, 3), (X, 4), (X * 0, 3), (X * 0, 4)),
    exact(caught_by_caller, (X, np.array([0, 3])), (X, np.array([0, 4, 3]))),
    exact(caught_and_goes_on, (X, np.array([0, 3])), (X, np.array([9, 0, -9, 1])),
          (X, np.arange(5))),
    exact(overflows, (0,), (30,), (45,), (60,)),
    exact(overflow_in_nested, (2, 3), (3, 20), (5, 25)),
    exact(becomes_float, (0,), (5,), (6,), (20,)),
    exact(overflow_in_while, (2,), (0,), (1 << 69,), (1 << 71,), refused="64 bits"),
    exact(foreign, (X,), (X[:0],), refused="an import of tau"),
    exact(strings, (X,), (-X,), (X[:0],)),
    case(two_loops, (X, 4), (X, 0), (X, 5)),
    exact(returns_from_depth, (M, 8.0), (M, 7.0), (M, 6.0), (M, -1.0)),
    exact(negative_size, (3,), (1,), (0,)),
    exact(unpacking, (M[:, :2],), (M,), (M[:0, :2],), refused="another number of values"),
    exact(unpacking_lists, (np.array([3.0, 1.0, 2.0]),), (np.zeros(0),)),
]  # fmt: skip


@each(CASES)
def test_leaving(c: Case) -> None:
    check(c, rounds=3)


def sweeps(x, n):
    for k in range(n):
        x[0] = k
        for i in range(1, len(x)):
            x[i] = x[i - 1] * 0.5 + x[i] * 0.25
    return x


def counts(x):
    while True:
        x[0] += 1


def on_whole_arrays(x, n):
    for k in range(n):
        x[1:-1] = (x[2:] + x[:-2]) * 0.5
        x[0] = k
    return x


def with_calls_in_python(x, n):
    for k in range(n):
        x[0] = np.histogram(x, 5)[0][0] + np.unwrap(x)[1] + k
    return x


class Stop(Exception):
    pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timer signals")
@pytest.mark.parametrize("error", [KeyboardInterrupt, *thorough(Stop)])
@pytest.mark.parametrize(
    ("f", "args", "size"),
    [
        pytest.param(sweeps, (1 << 30,), 1000, id="nested"),
        pytest.param(counts, (), 4, id="while"),
        pytest.param(on_whole_arrays, (1 << 30,), 500, id="arrays"),
        pytest.param(on_whole_arrays, (1 << 30,), 3_000_000, id="large"),
        pytest.param(with_calls_in_python, (1 << 30,), 50, id="python"),
    ],
)  # fmt: skip
def test_a_signal_ends_a_loop(f, args, size, error) -> None:
    """It raises what its handler raises, soon, and leaves arrays as Python may."""
    fast = np_compile.compile(f)

    def handler(*_):
        raise error("asked")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with whole():
            for compiled in (True,) if args else (False, True):
                if args:  # it is compiled, then
                    fast(np.zeros(size), 1)
                x = np.zeros(size)
                signal.setitimer(signal.ITIMER_REAL, 0.4 if args else 1.0)
                start = time.monotonic()
                with pytest.raises(error, match="asked"):
                    fast(x, *args)
                assert time.monotonic() - start < 30  # and not for hours
                assert x[0] > 0 or not compiled
                assert np.isfinite(x).all()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not refusals(fast)


def short_in_endless(x):
    while True:
        k = 0
        while k < 3 + x[2]:
            x[0] += 1
            x[1] += 1
            k += 1


def endless_in_long(x):
    for i in range(5):
        x[2] = i
        while x[2] >= 0:
            x[0] += 1
            if x[0] < 0:
                break
            x[1] += 1


def long_until_found(x):
    for _ in range(1 << 50):
        x[0] += 1
        if x[0] < 0:
            return
        x[1] += 1


def halved(x, i):
    while i > 1:
        i //= 2
        x[0] += 1
        x[1] += 1
    return i


def with_calls_of_helpers(x):
    i = 0
    while True:
        i = (i + 7) % 1024
        x[2] += halved(x, i)


def moves_items(x):
    items = [0] * 1_000_000
    while True:
        items.insert(400_000, items.pop())
        x[0] += 1
        x[1] += 1


def moves_items_often(x):
    items = [0] * 1_000_000
    for _ in range(1 << 50):
        items.insert(400_000, items.pop())
        x[0] += 1
        x[1] += 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timer signals")
@pytest.mark.parametrize(
    "f",
    [short_in_endless, endless_in_long, long_until_found, with_calls_of_helpers, moves_items,
     moves_items_often],
)  # fmt: skip
def test_a_signal_is_heard_at_once(f) -> None:
    """Within a tenth of a second of the processor's, between two iterations."""

    def handler(*_):
        raise KeyboardInterrupt

    fast = np_compile.compile(f)
    before = signal.signal(signal.SIGPROF, handler)
    try:
        with whole():
            for _ in range(2):  # the first one may be compiled beside
                x = np.zeros(3, dtype=np.int64)
                used = time.process_time()
                signal.setitimer(signal.ITIMER_PROF, 0.2)
                with pytest.raises(KeyboardInterrupt):
                    fast(x)
                used = time.process_time() - used
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert used < 0.3
    assert x[0] == x[1] > 0
    assert not refusals(fast)


def test_a_handler_that_returns_does_not_end_a_loop() -> None:
    fast = np_compile.compile(sweeps)
    rang = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    try:
        with whole():
            fast(np.zeros(3), 1)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            got, want = np.zeros(50), np.zeros(50)
            while not rang:
                got[:] = 0
                fast(got, 2000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(got, sweeps(want, 2000))


def test_threads_call_one_function() -> None:
    fast = np_compile.compile(two_loops)
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(40):
                x = rng.integers(-9, 9, rng.choice([0, 1, 2, 5, 9])).astype(float)
                check_quietly(fast, two_loops, x, len(x))
                y = x.astype(int)
                check_quietly(fast, two_loops, y, len(y))
        except BaseException as e:
            errors.append(e)

    def check_quietly(fast, plain, x, n):
        a, b = x.copy(), x.copy()
        got, want = fast(a, n), plain(b, n)
        assert repr(got) == repr(want)
        assert a.tobytes() == b.tobytes()

    with whole():
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not errors, errors


def calls_itself_compiled(x, n):
    for k in range(n):
        x[k] += 1
        if x[k] > 3:
            x[k] = inner(x, k)
    return x.sum()


def inner(x, k):
    return float(compiled_sweeps(x[: k + 1].copy(), 2)[-1])


def compiled_sweeps(x, n):
    return sweeps(x, n)


def test_compiled_functions_in_compiled_loops(monkeypatch) -> None:
    x = np.array([1.0, 4.0, 5.0, 2.0])
    want = x.copy()
    result = calls_itself_compiled(want, 4)
    monkeypatch.setitem(globals(), "compiled_sweeps", np_compile.compile(sweeps))
    fast = np_compile.compile(calls_itself_compiled)
    with whole():
        for _ in range(2):
            mine = x.copy()
            assert fast(mine, 4) == result
            np.testing.assert_array_equal(mine, want)


def test_a_call_that_fails_leaves_nothing_behind() -> None:
    """Calls after one that raised give what they gave before."""
    fast = np_compile.compile(index_error)
    with whole():
        for _ in range(6):
            check_call(fast, index_error, (X, np.array([0, 9])), 0)
            check_call(fast, index_error, (X, np.array([3, 2])), 0)


def bump(z, i, e):
    z[i] += e
    return z[i]


def tries_what_changes(x, n):
    try:
        a = bump(x, n, n)
    except IndexError:
        a = 0
    for k in range(n):
        a += k
    return x, a


@pytest.mark.parametrize("n", [2, 9])
def test_a_function_that_changes_something_is_called_in_try(n) -> None:
    with config.patch(loops="whole", compile_in="call"):
        x, a = np_compile.compile(tries_what_changes)(np.arange(4.0), n)
    y, b = tries_what_changes(np.arange(4.0), n)
    np.testing.assert_array_equal(x, y)
    assert (type(a), a) == (type(b), b)


# Functions that call themselves, by their names


def threatened(board, row, col):
    for i in range(row):  # noqa: SIM110
        if board[i] == col or abs(board[i] - col) == row - i:
            return True
    return False


def queens(board, row, found):
    if row == len(board):
        found.append(board.copy())
        return
    for col in range(len(board)):
        if not threatened(board, row, col):
            board[row] = col
            queens(board, row + 1, found)
            board[row] = -1


def fills(board, k):
    while k < len(board) and board[k] != 0:
        k += 1
    if k == len(board):
        return True
    for x in range(1, 5):
        clash = False
        for j in range(max(k - 2, 0), k):
            if board[j] == x:
                clash = True
        if not clash:
            board[k] = x
            if fills(board, k + 1):
                return True
            board[k] = 0
    return False


@pytest.mark.parametrize("loops", ["auto", "whole"])
def test_functions_that_call_themselves(monkeypatch, loops) -> None:
    want: list = []
    queens(np.full(5, -1), 0, want)
    board = np.array([0, 0, 3, 0, 0, 1])
    filled = board.copy()
    assert fills(filled, 0) is True
    for f in (threatened, queens, fills):
        monkeypatch.setitem(globals(), f.__name__, np_compile.compile(f))
    with config.patch(loops=loops, compile_in="call"):
        for _ in range(3):
            found: list = []
            assert queens(np.full(5, -1), 0, found) is None
            np.testing.assert_array_equal(found, want)
            mine = board.copy()
            assert fills(mine, 0) is True
            np.testing.assert_array_equal(mine, filled)


def keeps_its_list(x, notes):
    for k in range(len(x)):
        if x[k] < 0:
            notes.append(k)
        x[k] += 1
    return notes


def test_a_list_from_outside_stays_the_same_object() -> None:
    fast = np_compile.compile(keeps_its_list)
    with whole():
        for _ in range(3):
            notes: list = [7.5]
            assert fast(np.array([1.0, -1.0, 2.0, -3.0]), notes) is notes
            assert notes == [7.5, 1, 3]


def leaves_each_time(x, n):
    total = 0
    for k in range(n):
        if k == 2:
            total += int(str(k))
        total += k
        x[k] += total
    return total


def test_values_for_which_compiled_code_mostly_leaves_are_pythons() -> None:
    fast = np_compile.compile(leaves_each_time)
    with config.patch(loops="auto", compile_in="call", plain="never"):
        for n in [40] * 30:
            check_call(fast, leaves_each_time, (np.zeros(50), n), 0)
    assert not fast._reading._regions[0]
    assert "left in loops" in "\n".join(fast._reading.report())


def only_python(x, notes):
    for k in range(len(x)):
        notes.append(str(k) if x[k] > 1 else "")
    return notes


def test_a_function_whose_calls_end_in_python_runs_as_it_stands() -> None:
    fast = np_compile.compile(only_python)
    with config.patch(loops="auto", compile_in="call"):
        for k in range(8):
            check_call(fast, only_python, (np.arange(float(k % 5)), []), 0)
    assert fast._reading.given_up
    assert fast._reading._stands


class _Kept:
    def __init__(self, x):
        self.x = x


def mostly_numpy(xs, w):
    h = np.zeros(4)
    for x in xs:
        h = np.fft.ifft(np.fft.fft(x) * np.fft.fft(h)).real + w[0]
    return h


def test_a_function_of_whole_arrays_is_recorded_soon() -> None:
    f, rng = mostly_numpy, np.random.default_rng(0)
    fast = np_compile.compile(f)
    args = rng.standard_normal((5, 4)), rng.standard_normal((4, 4))
    with config.patch(loops="auto", compile_in="call", plain="never"):
        for _ in range(2):
            check_call(fast, f, args)
        assert np_compile.recompiles(fast)  # a program, since the second call at the latest
    assert not fast._reading.given_up
    assert not fast._reading.is_compiled


class Solver:
    def __init__(self, grid):
        self.grid, self.count, self._work = grid, 0, None

    @property
    def worst(self):
        return np.abs(self.grid).max(initial=0)

    @property
    def made(self):
        if self._work is None:
            self._work = np.zeros_like(self.grid[0])
        return self._work


def makes_in_a_property(s, g):
    while s.worst > 2 and s.count < 9:
        s.count += 1
    g[0] += s.made["a"]
    return g


def added(s, g):
    g[0] += s.made["a"]
    return g


def makes_in_a_helper(s, g):
    while s.worst > 2 and s.count < 9:
        s.count += 1
    return added(s, g)


@pytest.mark.parametrize("f", [makes_in_a_property, makes_in_a_helper])
def test_a_property_that_makes_an_array_in_a_statement_of_pythons(f) -> None:
    """What it has set by then is none of the values with which Python goes on."""
    fast = np_compile.compile(f)
    with whole():
        for v in (1.0, 4.0, 1.0):
            check_call(fast, f, (Solver(np.full((3, 2), v)), np.ones((2, 2))))
    assert "the C compiler" not in fast._reading.given_up


def above(x, n):
    total = 0.0
    for k in range(n):
        if x[k] > 0.5:
            total += x[k]
        else:
            total -= 1
    return total


def test_a_short_first_call_does_not_decide_for_long_ones() -> None:
    fast = np_compile.compile(above)
    with config.patch(loops="auto", compile_in="call"):
        for n in (1, 3, 5000, 2):
            check_call(fast, above, (np.linspace(0, 1, 5000), n), 0)
            assert bool(fast._reading.texts()) == (n == 5000 or n == 2)


class _Failing:
    """Libraries that are on their way, and cannot be made."""

    took = 0.0
    ready = False
    seconds_left = 1e9

    def __init__(self, sources, waits) -> None:
        pass

    def get(self) -> list:
        raise CompileFailed("no room on the disk")


def test_a_compiler_that_fails_beside_the_program(monkeypatch) -> None:
    monkeypatch.setattr(region, "Libraries", _Failing)
    fast = np_compile.compile(above)
    with config.patch(loops="whole", compile_in="background"):
        for ready in (False, True, True):
            monkeypatch.setattr(_Failing, "ready", ready)
            fast._options.budget.pause[0] = 0  # as no job ends
            told = ready and not fast._reading.given_up
            about = pytest.warns(RuntimeWarning, match="no room on") if told else nullcontext()
            with about:
                check_call(fast, above, (np.linspace(0, 1, 500), 400), 0)
    assert fast._reading is not None
    assert fast._reading.given_up == "the C compiler: no room on the disk"


def union_find(u):
    parent = list(range(len(u)))

    def find(a):
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        return a

    for i in range(len(u)):
        for j in range(i):
            if u[i, j] > 0.5:
                parent[find(i)] = find(j)
    return np.array([find(k) for k in range(len(u))])


def test_ways_out_are_not_made_text(monkeypatch):
    """One refers to those around it, each to all names: their text takes half a minute."""

    def refuse(self):
        raise AssertionError("the text of a way out")

    monkeypatch.setattr(Leave, "__repr__", refuse)
    x = np.random.default_rng(0).random((6, 6))
    fast = np_compile.compile(union_find)
    with whole():
        assert np.array_equal(fast(x), union_find(x))


class _Pair:
    def __init__(self, u, v):
        self.u, self.v = u, v


def _subtracts(x, pair):
    for _ in range(2):
        try:  # noqa: SIM105
            x -= np.where(pair.v[::-1] < 0, pair.v, pair.v[-1]) % np.copy(x)
        except (IndexError, ValueError):
            pass
    return pair.u, pair.v, x


def test_attributes_that_are_read_twice_have_their_places():
    """What is read of a `try` that is then left to Python is read again."""
    fast = np_compile.compile(_subtracts)
    with config.patch(loops="whole"):
        for dtype in ("f4", "f8", "i1"):
            x, y = (np.arange(1, 6).astype(dtype) for _ in range(2))
            pair = _Pair(np.arange(5.0), np.arange(5).astype("f2") - 2)
            if dtype == "i1":
                for f, z in ((fast, x), (_subtracts, y)):
                    with pytest.raises(np._core._exceptions.UFuncTypeError, match="float16"):
                        f(z, pair)
            else:
                np.testing.assert_equal(fast(x, pair), _subtracts(y, pair))
            np.testing.assert_equal(x, y)


def test_guards_of_what_is_read_twice_are_asked_once():
    entry = Entry(_subtracts, None, {}, small=False)
    reader = Reader(entry, _GRAMMAR)
    path = ("local", "pair", ".v")
    for _ in range(2):
        with pytest.raises(Unfit, match="float16"):
            entry.take(reader, path, np.zeros(3, "f2"))
    assert [*entry.inputs] == [path]
    assert not entry.inputs[path].taken


def test_nan_that_nothing_has_bound_is_the_same_object():
    """After compiled code was left, as Python finds it in a list by that."""

    def f(x, n):
        nan = float("nan")
        values = [*x.tolist(), nan, n]
        told = [max(values), nan in values, values.index(values[-2])]
        for e in values:
            told.append(e % 3)  # noqa: PERF401
        z = np.array(values)
        z[z != z] = n
        told.append((z >= 1).sum())
        told.append(2**-n if n else 1)
        return told[:3], z

    check_whatever_leaves(f, [(np.array([0.5, 2.0]), n) for n in (0, 1)])
