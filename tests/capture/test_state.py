"""State that outlives a call: objects nobody handed in, kept results, nested calls, memory."""

from __future__ import annotations

import array
import bisect
import collections
import collections.abc
import fractions
import gc
import heapq
import io
import itertools
import logging
import math
import numbers
import statistics
import struct
import threading
import time
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.optimize
import torch

import np_compile

from ..support import check, compiled, data, same


class Store:
    """An object that functions reach by a name, not by an argument."""

    total = np.zeros(2)
    count = 0

    def __init__(self):
        self.w = data(3)
        self.rng = np.random.default_rng(4)
        self.log = []


def test_an_object_of_the_closure_is_read_and_written():
    def make():
        s = Store()

        def f(x):
            y = x + s.w
            s.w[0] += 5
            s.w -= x * 0.5
            z = x + s.w
            s.w = s.w * 2
            s.last = z
            s.log.append(z[0])
            return y, z, s.w.copy(), list(s.log)

        return f

    check(None, data(3, seed=1), make=make)


def test_arrays_left_in_an_object_are_real():
    s = Store()

    def f(x):
        s.w = x * 2
        s.log.append({"a": [x + 1], "b": (x.sum(),)})
        Store.count += 1

    fast, _ = compiled(f)
    Store.count = 0
    for n in (1, 2):
        fast(data(3))
        assert type(s.w) is np.ndarray
        np.testing.assert_array_equal(s.w, data(3) * 2)
        assert type(s.log[-1]["a"][0]) is np.ndarray
        assert type(s.log[-1]["b"][0]) is np.float64
        assert n == Store.count == len(s.log)


def test_a_class_attribute_array_is_changed_in_place():
    def f(x):
        Store.total += x
        return Store.total * 2

    fast, _ = compiled(f)
    Store.total[:] = 0
    for n in (1, 2, 3):
        np.testing.assert_array_equal(fast(np.ones(2)), np.full(2, 2.0 * n))
        np.testing.assert_array_equal(Store.total, np.full(2, float(n)))


def test_a_generator_in_an_object_draws_and_shuffles():
    def make():
        s = Store()

        def f(x):
            y = x + s.rng.normal(size=3)
            s.rng.shuffle(y)
            return y, s.rng.permutation(x), s.rng.choice(y, 2)

        return f

    check(None, data(3), make=make)


def test_shuffling_rows_of_an_argument():
    def f(x, seed):
        np.random.seed(seed)
        np.random.shuffle(x)
        y = x * 2
        np.random.default_rng(seed).shuffle(y)
        return y, x[np.random.permutation(len(x))]

    check(f, data(6, 2), 3)


def test_results_of_earlier_calls_stay():
    fast, _ = compiled(lambda x: (np.sin(x) * 2, x.sum(), x + 1))
    kept = [fast(data(5, seed=k)) for k in range(4)]
    for k, r in enumerate(kept):
        x = data(5, seed=k)
        np.testing.assert_allclose(r[0], np.sin(x) * 2)
        np.testing.assert_allclose(r[2], x + 1)
    assert not np.shares_memory(kept[0][0], kept[1][0])


def test_results_are_ordinary_arrays():
    y = compiled(lambda x: x * 2)[0](data(4))
    assert y.flags.writeable
    assert y.flags.aligned
    y[0] = 5
    y.sort()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy's own, from 2.5 on
        y.shape = (2, 2)
    assert np.add(y, y, out=y) is y


def test_a_result_goes_in_again():
    def f(x):
        return np.cos(x) * 0.9

    fast, counter = compiled(f)
    x = y = data(4)
    for _ in range(30):
        x, y = f(x), fast(y)
    np.testing.assert_allclose(x, y)
    assert counter.count == 1


def test_results_of_one_compiled_function_in_another():
    f = compiled(lambda x: (x * 2, x.T))[0]

    def change(y, v):
        y += 1
        v[0] = y.sum()
        return v

    g = compiled(change)[0]
    x = data(2, 2)
    y, v = f(x)
    g(y, v)
    assert x[0, 0] == y.sum()


def test_arguments_and_results_are_let_go():
    def f(x):
        y = x * 2
        if y.sum() > 1e9:
            return x
        return y[1:]

    fast, _ = compiled(f)
    for _ in range(3):
        x = data(1000)
        r = fast(x)
        refs = [weakref.ref(x), weakref.ref(r)]
        del x, r
        gc.collect()
        assert [ref() for ref in refs] == [None, None]


def test_an_argument_is_let_go_after_an_exception():
    def f(x):
        y = x * 2
        raise KeyError(y.shape)

    fast, _ = compiled(f)
    x = data(1000)
    ref = weakref.ref(x)
    with pytest.raises(KeyError):
        fast(x)
    del x
    gc.collect()
    assert ref() is None


def test_a_function_attribute():
    def f(x):
        f.calls = getattr(f, "calls", 0) + 1
        return x * f.calls

    fast, _ = compiled(f)
    assert fast(np.ones(1)).tolist() == [1]
    assert fast(np.ones(1)).tolist() == [2]
    assert f.calls == 2


COMPILED = {}


def factorial(x, n):
    return x if n == 0 else COMPILED["f"](x, n - 1) * n


def test_a_compiled_function_that_calls_itself():
    COMPILED["f"] = compiled(factorial)[0]
    np.testing.assert_array_equal(COMPILED["f"](np.ones(2), 5), [120, 120])


def nested(make):
    """A function that a library, here a disabled function, calls within a call of itself."""
    k = 3.0

    @np_compile.disable
    def again(x, n):
        return f(x, n) if n else x

    def f(x, n):
        nonlocal k
        k += 1
        y = x * k + again(x * 2, n - 1)
        if n == 1:
            raise KeyError(k)
        return y * k

    @np_compile.disable
    def caught(x, n):
        try:
            return f(x, n)
        except KeyError as e:
            return x * e.args[0]

    def g(x, n):
        return caught(x, n) + k + caught(x, 2)

    f = make(f)
    return make(g)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_call_within_a_call_of_the_same_function(n):
    fast, plain = nested(lambda f: compiled(f)[0]), nested(lambda f: f)
    for _ in range(3):
        np.testing.assert_array_equal(fast(np.ones(2), n), plain(np.ones(2), n))


def test_a_call_within_a_call_that_captures_nothing():
    k = 3.0

    @np_compile.wrap_numpy
    def f(x, n):
        return x * k if n == 0 else f(x, n - 1) + k

    assert f(torch.ones(2), 3).tolist() == [12.0, 12.0]


COUNT, LAST, KEPT = 0, None, []


@np_compile.disable
def count_seen():
    return COUNT, None if LAST is None else LAST.copy(), [v.copy() for v in KEPT]


@np_compile.disable
def count_on():
    global COUNT, LAST
    COUNT += 10
    LAST = np.full(2, float(COUNT))


def counted(x):
    global COUNT, LAST, KEPT
    k, seen = 1.0, []
    COUNT += 1
    seen.append(count_seen())
    count_on()
    seen += [COUNT, LAST + x]
    LAST = x * 2
    seen.append(count_seen())
    LAST += 1
    KEPT = [x]
    seen += [count_seen(), LAST * 1]
    KEPT.append(LAST * 3)

    @np_compile.disable
    def own_variable():
        nonlocal k
        k += 1
        return k

    k *= 2
    seen += [own_variable(), k, KEPT, count_seen()]
    COUNT += 1
    return seen


def test_names_that_are_written_before_and_by_code_that_is_not_captured(monkeypatch):
    runs = []
    for f in (counted, compiled(counted)[0]):
        for name, value in (("COUNT", 0), ("LAST", None), ("KEPT", [])):
            monkeypatch.setitem(globals(), name, value)
        runs.append([[f(np.ones(2)) for _ in range(3)], COUNT, LAST, KEPT])
    same(runs[1], runs[0])


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_threads_that_call_while_what_is_read_changes(backend):
    """Each call gives what the function gave at some moment between its begin and its end."""
    scope = {"np": np}
    exec("LEVEL = 0.0\ndef h(x, k=0.0): return x * LEVEL + k\ndef f(x): return h(x) - LEVEL", scope)
    fast = np_compile.compile(scope["f"], backend=backend)
    done, wrong = threading.Event(), []

    def call():
        while not done.is_set():
            before = scope["h"].__defaults__[0]
            got = fast(np.ones(3))
            after = scope["h"].__defaults__[0]
            if not before <= got[0] <= after or len(set(got.tolist())) > 1:
                wrong.append((before, got, after))

    threads = [threading.Thread(target=call) for _ in range(3)]
    with np_compile.config.patch(plain="never"):
        for t in threads:
            t.start()
        for k in range(60):
            scope["h"].__defaults__ = (float(k),)
            time.sleep(0.002)
            assert fast(np.ones(3)).tolist() == [float(k)] * 3
        done.set()
        for t in threads:
            t.join()
    assert not wrong


def test_a_compiled_objective_inside_a_librarys_solver():
    objective = np_compile.compile(lambda p: ((p - 3.0) ** 2).sum(), backend="eager")

    def f(x):
        assert type(objective(np.zeros(2))) is np.float64
        found = scipy.optimize.minimize(objective, x * 2)
        return np.round(found.x, 3) + x * 0

    check(f, data(2), rtol=1e-6)


def test_a_compiled_function_in_worker_threads_of_a_compiled_function():
    inner = np_compile.compile(lambda r: np.sin(r).sum(), backend="eager")

    def f(rows):
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(inner, rows))

    rows = [data(3, seed=k) for k in range(4)]
    got = [float(v) for v in f(rows)]
    np.testing.assert_allclose(got, [np.sin(r).sum() for r in rows])


def test_a_disabled_function_that_calls_a_compiled_one():
    inner = np_compile.compile(lambda r: r * 2, backend="eager")

    @np_compile.disable
    def plain(r):
        out = inner(r)
        assert type(out) is np.ndarray
        return out + 1

    check(lambda x: plain(x + 1) * 3, data(3))


def test_standard_library_on_arrays_and_scalars():
    def f(x):
        x = np.round(x * 4)
        heap = []
        for i, v in enumerate(x):
            heapq.heappush(heap, (v, i))
        groups = [(k, len(list(g))) for k, g in itertools.groupby(sorted(x))]
        return (
            heap,
            groups,
            math.fsum(x),
            statistics.mean(x.tolist()),
            collections.Counter(x.tolist()).most_common(1),
            bisect.bisect(sorted(x.tolist()), 0.0),
            struct.pack("d", x[0]),
            fractions.Fraction(float(x[0])),
            array.array("d", x).tolist(),
            isinstance(x.sum(), numbers.Number),
            isinstance(x.sum(), numbers.Real),
            isinstance(x.argmax(), numbers.Integral),
            isinstance(x, collections.abc.Iterable),
            isinstance(x, collections.abc.Sequence),
            math.isclose(x[0], x[0]),
            max(x.tolist()),
            list(itertools.islice(x, 2)),
            list(itertools.chain(x[:1], x[1:2])),
            divmod(x[0], 2),
            bytes(x.astype(np.uint8)),
            list(map(float, x)),
            " ".join(f"{v:g}" for v in x),
        )

    check(f, data(6))


def test_files_in_memory():
    def f(x):
        buffer = io.BytesIO()
        np.save(buffer, x * 2)
        buffer.seek(0)
        text = io.StringIO()
        np.savetxt(text, x, fmt="%.2f")
        return np.load(buffer) + 1, text.getvalue(), np.loadtxt(io.StringIO("1 2\n3 4")) @ x[:2]

    check(f, data(4))


def test_logging_and_print_options(caplog):
    def f(x):
        logging.getLogger("steps").warning("x is %s", x * 2)
        with np.printoptions(precision=1):
            print(x * 2)
        return str(x + 1)

    check(f, data(3))
    assert len(set(caplog.messages)) == 2


def test_patterns_over_shapes_and_types():
    def f(x):
        match x.shape:
            case (n, m):
                y = x.sum(axis=0) * n + m
            case (n,):
                y = x * n
        match y.sum():
            case float():
                return y, "float"
            case _:
                return y, "other"

    check(f, data(3, 2))
    check(f, data(3))


def test_numpys_own_assertions():
    def f(x):
        np.testing.assert_allclose(x * 2, x + x)
        np.testing.assert_array_equal(x.shape, (3,))
        np.testing.assert_allclose(x, x + 1)

    want = got = None
    try:
        f(data(3))
    except AssertionError as e:
        want = str(e)
    try:
        compiled(f)[0](data(3))
    except AssertionError as e:
        got = str(e)
    assert got == want


def test_structures_with_cycles():
    def f(d):
        d["x"] = d["x"] + 1
        d["self"]["y"] = d["x"] * 2
        return d["self"] is d

    plain, fast = {"x": data(2)}, {"x": data(2)}
    plain["self"], fast["self"] = plain, fast
    assert compiled(f)[0](fast) == f(plain) is True
    same(fast["x"], plain["x"])
    same(fast["y"], plain["y"])


def test_deep_recursion_raises_and_recovers():
    def f(x, n):
        return f(x + 1, n + 1)

    fast, _ = compiled(f)
    with pytest.raises(RecursionError):
        fast(data(2), 0)
    assert compiled(lambda x: x * 2)[0](np.ones(1)).tolist() == [2]


def test_keyboard_interrupt_leaves_and_recovers():
    def f(x):
        x += 1
        if x.sum() > 0:
            raise KeyboardInterrupt
        return x

    fast, _ = compiled(f)
    x = np.ones(2)
    with pytest.raises(KeyboardInterrupt):
        fast(x)
    assert x.tolist() == [2, 2]
    assert not np_compile.is_compiling()
    assert fast(np.full(2, -5.0)).tolist() == [-4, -4]


@pytest.mark.parametrize("collecting", [True, False])
def test_a_compile_leaves_the_garbage_collector_as_it_was(collecting):
    before = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        np_compile.compile(lambda x: x * 2 + 1, backend="eager")(data(3))
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if before else gc.disable)()


# Warnings


def of_a_number(x):
    return np.divide(1.0, float(x[0]) * np.float64(0)), np.log(np.float64(-1.0))


def of_a_function_that_runs_in_numpy(x):
    z = x * 2
    return np.interp(z / np.float64(0), z, z), np.nanmedian(z * np.nan)


def in_a_loop(x):
    y = x * 1.0
    for i in range(40):
        y = x / (y - y)
        y[0] = i
        y = np.sqrt(-x) + x**-0.5
    return y


@np_compile.disable
def warns(x):
    warnings.warn("of the caller", UserWarning, stacklevel=2)
    return x / 0


def of_a_disabled_function(x):
    return warns(x) + 1


def its_own(x):
    warnings.warn("mine", UserWarning, stacklevel=1)
    warnings.warn("of my caller", UserWarning, stacklevel=2)
    return x * 2


@pytest.mark.parametrize("plain", ["never", "auto", "always"])
@pytest.mark.parametrize(
    "f",
    [of_a_number, of_a_function_that_runs_in_numpy, in_a_loop, of_a_disabled_function, its_own],
)
def test_warnings_point_to_the_users_lines(f, plain):
    x = np.arange(1.0, 4.0)
    fast = np_compile.compile(f)

    def seen(function):
        with warnings.catch_warnings(record=True) as got:
            warnings.simplefilter("always")
            function(x)
        return [(w.category, str(w.message), w.filename, w.lineno) for w in got]

    want = seen(f)
    assert want
    with np_compile.config.patch(plain=plain, loops="recorded"):
        for _ in range(5):
            got = seen(fast)
            assert set(got) <= set(want)
            if f is not in_a_loop or plain == "always":  # kernels give none
                kernels = f is of_a_function_that_runs_in_numpy
                assert kernels or set(got) == set(want)


def test_a_warning_is_shown_once_for_each_line():
    def f(x):
        a = np.divide(1.0, float(x[0]) * np.float64(0))
        b = np.divide(1.0, float(x[0]) * np.float64(0))
        return a + b

    fast = compiled(f)[0]
    with warnings.catch_warnings(record=True) as got:
        warnings.simplefilter("default")
        for _ in range(3):
            fast(np.ones(2))
        f(np.ones(2))
    assert [w.lineno - f.__code__.co_firstlineno for w in got] == [1, 2]
