"""Calls that are kept for many sizes, and numbers that follow from sizes."""

from __future__ import annotations

import gc
import math
import operator
import re
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import np_compile
from np_compile import config
from np_compile.capture.arrays.traced import Asked, Traced, has_traced, known, shape_of, values
from np_compile.replay.calls import MISS
from np_compile.replay.evaluate import Evaluation
from np_compile.replay.sizes import KeptForSizes, _Step

from ..capture.test_sizes import compiles, copied, equal, same
from ..support import data


@pytest.fixture(autouse=True)
def kernels():
    with config.patch(plain="never", compile_in="call", recompile_limit=1000):
        yield


def for_sizes(fast):
    return fast._keeper.for_sizes


@pytest.fixture
def runs(monkeypatch):
    """The results of kept calls for many sizes, as they are made."""
    found = []
    run = KeptForSizes.run

    def noted(self, given):
        found.append(run(self, given))
        return found[-1]

    monkeypatch.setattr(KeptForSizes, "run", noted)
    return found


def by_shape(x):
    n, k = x.shape
    half = n // 2
    return x[:half].sum(axis=0) / n + np.zeros(k), x[half:] * (1.0 / x.size), np.arange(n - 1)


def by_length(x):
    return x.sum(axis=0) / len(x), x[: len(x) - 1] - x[1:], np.full((2, len(x)), 3.0)


def test_what_follows_from_sizes_is_found_out_once(monkeypatch, runs):
    found = []
    function = Evaluation.function

    def noted(self, results):
        found.append(len(self.facts.guards))
        return function(self, results)

    monkeypatch.setattr(Evaluation, "function", noted)
    fast = np_compile.compile(by_length)
    for n in range(5, 40):
        x = data(n, 3)
        equal(fast(x), by_length(x))
        equal(fast(x), by_length(x))
    assert len([r for r in runs if r is not MISS]) > 20
    assert len(found) == len(for_sizes(fast)) == 1


def scaled(x):
    scale = 2.0 / len(x)
    return (x - 1.0) * scale + scale, x * (0.5 + scale) - 1.0 / x.size


def rooted(x):
    return abs(x) ** (1.0 / len(x))


@pytest.mark.parametrize(("f", "alone"), [(scaled, True), (rooted, False)])
def test_a_float_that_follows_from_sizes(f, alone, monkeypatch, runs):
    """It is computed alone, but where the call's key has its value."""
    fast = np_compile.compile(f)
    for n in range(5, 12):
        equal(fast(data(n, 3)), f(data(n, 3)))
        equal(fast(data(n, 3)), f(data(n, 3)))
    made = []
    fill = _Step.fill
    monkeypatch.setattr(_Step, "fill", lambda *args: made.append(0) or fill(*args))
    for n in range(40, 45):
        equal(fast(data(n, 3)), f(data(n, 3)))
    if alone:
        assert runs[-1] is not MISS
        assert not made


def test_floats_without_a_literal(runs):
    """Infinities and nan, among a program's floats where numbers follow from sizes."""

    def f(x):
        later = np.triu(np.ones((len(x), len(x)), bool), 1)
        return (
            np.where(later, -np.inf, x @ x.T),
            np.where(x > len(x), np.nan, x),
            x + complex(0, np.inf),
        )

    fast = np_compile.compile(f)
    for n in range(5, 12):
        equal(fast(data(n, 3)), f(data(n, 3)))
    assert runs[-1] is not MISS


def test_strides_between_elements_are_left_to_others(runs):
    """Those of a record's part are no multiple of its elements."""

    def f(x):
        return x * 2 + 1j

    fast = np_compile.compile(f)
    for n in range(5, 15):
        equal(fast(np.zeros(2 * n, "c16")[::2]), f(np.zeros(2 * n, "c16")[::2]))
    assert runs[-1] is not MISS
    parts = np.zeros(20, [("a", "c16"), ("b", "f8")])["a"]
    parts[:] = np.arange(20)
    equal(fast(parts), f(parts))


def inner(x):
    y = x[1:-1, ::2] + x[2:, ::2]
    y[-1] = y[0]
    m = y.shape[0] * 2 + 1
    return y.T @ y / m, np.linspace(0.0, 1.0, m), y.reshape(-1)


def gives_a_view(x):
    return x[x.shape[0] // 2 :], x.reshape(-1, 2, 3)


def in_place(x):
    x[1:-1] = x[2:] - x[:-2]
    x *= 2.0
    x[-1] = len(x)


def decides(x):
    n = x.shape[0]
    if n % 2 == 0 and n > 4:
        return x * n
    return x + n


def counts(x):
    total = np.zeros(3)
    for k in range(min(len(x), 3)):
        total[k] = 1.0
    return total + x.sum()


def with_scalar_maths(x):
    n = len(x)
    return x / math.sqrt(n) + np.sqrt(n), x ** (n % 3), np.maximum(x, n / 2.0)


def gives_shape(x):
    y = np.sin(x) * 2
    return y, y.shape, len(x)


def where_a_mask_is_true(x):
    n = len(x)
    m = x > 0
    y = x.copy()
    y[m] *= n
    y[~m] = 1.0 / n
    return y[m] + n, x[m].sum() / n, y


def gives_sizes(x):
    n = len(x)
    return {n: x * n, "n": [n, (n + 1, slice(n))]}, lambda k: np.full(k, n) + np.sin(n)


def in_a_loop(x):
    for _ in range(6):
        x = x * 1.01 + x[::-1]
    return x


def in_windows(x):
    n = len(x)
    return (
        x.T * np.hanning(n),
        np.blackman(n) @ x,
        np.hamming(n) + np.bartlett(n),
        np.kaiser(n, 8.6),
    )


FUNCTIONS = (
    by_shape, by_length, inner, gives_a_view, in_place, decides, counts, with_scalar_maths,
    gives_shape, in_a_loop, where_a_mask_is_true, in_windows,
)  # fmt: skip
SIZES = (9, 12, 31, 1, 14, 2, 40, 0, 17, 64, 5, 33, 12, 31, 12, 8, 3, 50)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_functions_that_see_sizes(f):
    fast = np_compile.compile(f)
    for n in SIZES:
        same(fast, f, data(n, 6))


@pytest.mark.parametrize(
    "f", [by_shape, by_length, inner, in_place, in_a_loop, in_windows], ids=lambda f: f.__name__
)
def test_new_sizes_run_without_python(f, runs):
    fast = np_compile.compile(f)
    for n in (20, 21):
        same(fast, f, data(n, 6))
    assert len(for_sizes(fast)) == 1
    runs.clear()
    count = compiles(fast)
    for n in range(30, 60):
        same(fast, f, data(n, 6))
    # Where two slices may be of one length, there is a program for each case.
    assert len(runs) >= 28
    assert compiles(fast) <= count + 2


def test_what_python_asks_of_sizes_has_to_come_out_the_same(runs):
    fast = np_compile.compile(decides)
    for n in (20, 22, 24, 21, 23, 25, 26, 27, 3, 6, 40, 41):
        same(fast, decides, data(n, 3))
    text = " ".join(t for k in for_sizes(fast) for t in k.texts)
    assert "% 2" in text
    assert "> 4" in text
    assert len(for_sizes(fast)) >= 2


def test_sizes_that_come_again_are_kept_for_themselves(runs):
    fast = np_compile.compile(by_length)
    for n in (20, 21, 33, 33, 33):
        same(fast, by_length, data(n, 6))
    runs.clear()
    for _ in range(5):
        same(fast, by_length, data(33, 6))
    assert not runs


def filtered(x, taps):
    n = len(x) - len(taps) + 1
    out = np.zeros(n)
    for k in range(len(taps)):
        if taps[k] != 0:
            out += taps[k] * x[k : k + n]
    return out


def test_elements_that_python_reads_have_to_be_what_they_were(runs):
    fast = np_compile.compile(filtered)
    taps = np.array([0.5, 0.0, 0.25])
    for n in (20, 21, 22):
        same(fast, filtered, data(n), taps)
    assert for_sizes(fast)
    texts = for_sizes(fast)[0].texts
    assert {f"taps[{k}] was {v} when it was read" for k, v in enumerate(taps)} <= {*texts}
    runs.clear()
    for n in range(30, 40):
        same(fast, filtered, data(n), taps)
    assert len(runs) == 10
    for other in (
        [0.5, 0.0, 0.125],
        [0.5, 0.1, 0.25],
        [0.5, 0.25],
        [0.5, -0.0, 0.25],
        [np.nan] * 3,
    ):
        for n in (41, 42):
            same(fast, filtered, data(n), np.array(other))


def test_arguments_of_another_kind_are_another_call():
    def f(x, y, scale):
        return x[1:] * scale + y[:-1].sum()

    fast = np_compile.compile(f)
    for n in (20, 21, 22):
        same(fast, f, data(n), data(n), 2.0)
    assert for_sizes(fast)
    x = data(30)
    for args in (
        (x, x, 2.0), (x.astype(np.float32), x, 2.0), (data(60)[::2], x, 2.0), (x, x, 3.0),
        (x, x, 2), (data(30, 2), x, 2.0), (x[::-1], x, 2.0), (x, data(7), 2.0),
    ):  # fmt: skip
        mine, theirs = [*map(copied, args)], [*map(copied, args)]
        try:
            want = f(*theirs)
        except ValueError as e:
            with pytest.raises(ValueError, match=re.escape(str(e))):
                fast(*mine)
        else:
            equal(fast(*mine), want)


def test_sizes_that_a_function_gives_are_integers():
    fast = np_compile.compile(gives_sizes)
    for n in (5, 6, 7, 8, 6, 7, 9):
        x = data(n)
        (got, more), (want, also) = fast(x), gives_sizes(x)
        equal((got[n], *got["n"]), (want[n], *want["n"]))
        assert [*map(type, got)] == [int, str]
        assert got["n"] == want["n"]
        np.testing.assert_array_equal(more(3), also(3), strict=True)


def test_writes_to_arrays_that_overlap():
    def f(a, b):
        a[:] = b * 2
        b += a

    fast = np_compile.compile(f)
    for n in (20, 21, 22):
        same(fast, f, data(n), data(n))
    assert for_sizes(fast)
    for n in (30, 31):
        memory, other = data(2 * n), data(2 * n)
        fast(memory[:n], memory[n // 2 : n // 2 + n])
        f(other[:n], other[n // 2 : n // 2 + n])
        np.testing.assert_array_equal(memory, other)
        one, two = data(n), data(n)
        fast(one, one)
        f(two, two)
        np.testing.assert_array_equal(one, two)


def test_indices_out_of_bounds_have_numpys_words():
    def f(x, i):
        return x[i] + x[3], len(x) * 2

    fast = np_compile.compile(f)
    i = np.array([1, 2])
    for n in (20, 21, 22, 5):
        same(fast, f, data(n), i)
    for n in (3, 4, 2, 30):
        same(fast, f, data(n), i)
        same(fast, f, data(n), i + 100)


def test_what_a_function_reads_is_looked_at():
    scale = 2.0

    def f(x):
        return x * scale + len(x)

    fast = np_compile.compile(f)
    for n in (20, 21, 22):
        same(fast, f, data(n))
    assert for_sizes(fast)
    scale = 5.0
    for n in (40, 41, 42):
        same(fast, f, data(n))


def test_explain_tells_of_sizes():
    fast = np_compile.compile(by_shape)
    for n in (20, 21):
        fast(data(n, 6))
    text = str(np_compile.explain(fast)(data(22, 6)))
    assert "float64[any, any]" in text


def test_a_size_is_no_stranger_to_python():
    def f(x):
        n = x.shape[0]
        parts = [n, -n, abs(n), n // 3, n % 7, n / 2, 2**3 + n, 3.5 * n, divmod(n, 4)[1], 100 - n]
        parts += [round(n), int(n), float(n), bool(n), n == 5, n > 5, n << 1, n & 3]
        assert isinstance(n, int)
        assert type(n) is int
        assert {n: 1}[n] == 1
        assert f"{n}" == str(n)
        assert [0, 1, 2][min(n, 2)] <= 2
        assert n.bit_length() > 0
        assert sorted([n, 1, 3])[0] == 1
        assert sum([n, n]) == 2 * n
        return x + sum(parts), tuple(parts[:3])

    fast = np_compile.compile(f)
    for n in (20, 21, 22, 23, 20, 30):
        same(fast, f, data(n))


def traced(n, asked):
    return shape_of((n,), lambda shapes: (shapes,), "n", asked)[0]


NUMBERS = st.integers(-9, 9).filter(bool) | st.floats(0.5, 4)
OPERATORS = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
)  # fmt: skip


@given(
    st.integers(1, 50), st.integers(1, 50),
    st.lists(st.tuples(st.sampled_from(OPERATORS), NUMBERS, st.booleans()), max_size=6),
)  # fmt: skip
def test_traced_numbers_follow_from_others(n, other, steps):
    asked: list[Asked] = []
    x = traced(n, asked)
    a, b = n, other
    for function, number, first in steps:
        try:
            a, b = (function(number, v) if first else function(v, number) for v in (a, b))
            x = function(number, x) if first else function(x, number)
        except (ZeroDivisionError, OverflowError):
            return
    if type(x) is Traced:
        assert x.value == a
        assert type(x.value) is type(a)
        assert x.how(other) == b
    decided = x > 3
    assert type(decided) is bool
    assert decided == (a > 3)
    assert all(q.holds(other) for q in asked) == ((b > 3) == (a > 3))


def test_traced_numbers_in_arguments():
    asked: list[Asked] = []
    n = traced(5, asked)
    tree = ([n, 2], slice(None, n), {"k": (n,)})
    assert has_traced(tree)
    assert not has_traced(values(tree))
    assert values(tree) == ([5, 2], slice(None, 5), {"k": (5,)})
    assert not asked
    assert known(tree) == values(tree)
    assert len(asked) == 3
    assert np.sin(n) == np.sin(5)
    assert np.asarray(n).dtype == np.int64
    assert np.float64(2.0) * n == 10.0
    assert list(range(n)) == [0, 1, 2, 3, 4]


def test_kept_calls_hold_no_arrays():
    fast = np_compile.compile(by_shape)
    gc.disable()
    try:
        for n in (20, 21, 22, 22, 22):
            x = data(n, 6)
            known = weakref.ref(x)
            fast(x)
            del x
            assert known() is None
    finally:
        gc.enable()


def smoothed(x):
    spectrum = np.fft.rfft(x)
    return np.fft.irfft(spectrum * np.exp(-np.arange(spectrum.size) / x.size), x.size)


def test_sizes_that_another_program_serves_are_kept_too(runs):
    fast = np_compile.compile(smoothed)
    for n in (*range(200, 215), *range(2000, 2015)):
        same(fast, smoothed, data(n))
    assert len({id(g) for k in for_sizes(fast) for g in k.generals}) > 1
    runs.clear()
    for n in (220, 2020, 221, 2021, 222):
        same(fast, smoothed, data(n))
    assert sum(r is not MISS for r in runs) == 5


def test_a_program_with_calls_between_kernels_is_bound_and_shown_with_numbers():
    fast = np_compile.compile(smoothed)
    for n in (200, 203, 206, 209, 209, 209):
        same(fast, smoothed, data(n))
    assert for_sizes(fast)
    ((program, *_),) = fast._keeper.kept[0].plan.steps
    assert program.general is not None
    text = str(program.compiled.source.program)
    assert "209" in text
    assert "n0" not in text


def thinned(x):
    n = x.shape[0]
    return x[:: n // 10] * 2.0, x[n % 3] + x[: n // 2]


def test_a_step_that_follows_from_sizes(runs):
    fast = np_compile.compile(thinned)
    for n in (100, 101, 102, 103, 104):
        same(fast, thinned, data(n))
    assert for_sizes(fast)
    runs.clear()
    same(fast, thinned, data(107))
    assert [r is MISS for r in runs] == [False]
    for n in (110, 119, 105, 123, 59, 12):
        same(fast, thinned, data(n))


@pytest.mark.parametrize("step", [lambda s, n: s - (s + n), lambda s, n: s + n, lambda s, n: -s])
def test_numbers_that_follow_from_sizes_by_long_formulas(step):
    def f(x):
        s = len(x)
        for _ in range(3000):
            s = step(s, len(x))
        return x * s

    fast = np_compile.compile(f, dynamic=True, backend="eager")
    for n in (5, 6, 5, 7, 8):
        same(fast(np.arange(float(n))), f(np.arange(float(n))))
