"""Elements of arguments that Python reads: once they change, they are data of the program."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile
from np_compile import config
from np_compile.capture.arrays import elements
from np_compile.replay.sizes import KeptForSizes

from ..support import data, thorough
from .test_sizes import compiles, same


@pytest.fixture(autouse=True)
def kernels():
    with config.patch(plain="never", compile_in="call", recompile_limit=1000):
        yield


@pytest.fixture
def captures(monkeypatch):
    """The calls that are captured, as none is that is kept."""
    found = []
    begun = np_compile.capture.capture.Capture.__init__

    def init(self, *args, **kwargs):
        found.append(self)
        begun(self, *args, **kwargs)

    monkeypatch.setattr(np_compile.capture.capture.Capture, "__init__", init)
    return found


def of_slices(x, w):
    return w[0] * x[:-2] + w[1] * x[1:-1] + w[-1] * x[2:]


def rotated(x, w):
    r = w.reshape(2, 2)
    return r[0, 0] * x + r[0, 1] * x[::-1], r[1][0] * x - r[1][1]


def by_horner(x, w):
    y = np.zeros_like(x)
    for k in range(len(w) - 1, -1, -1):
        y = y * x + w[k]
    return y


def over_elements(x, w):
    a, b, c, d = w
    for v in w:
        x = x * v
    return a * x + b, x - [c, d][0]


def into_lists(x, w):
    made = [w[0], w[1] * 2, -w[2]]
    made.append(w[3] + w[0])
    return made, {"one": w[1], "sum": w[0] + w[3]}, x * made[1]


def computed(x, w):
    s = abs(w[0]) + w[1] * w[2]
    return x * np.cos(s), s, w[3] - x[0], (x - x[0]) * w[0]


def stored(x, w):
    y = x.copy()
    y[0] = w[1]
    y[1:3] = w[0]
    y[-1] += w[2]
    return y


FUNCTIONS = [of_slices, rotated, by_horner, over_elements, into_lists, computed, stored]


def weights(k, dtype):
    """Other values for each k."""
    made = data(4, dtype="f8", seed=k)
    return (np.abs(made) if dtype == "u8" else made * 5).astype(dtype)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["f8", *thorough("f4", "i4")])
def test_new_values_and_sizes_are_neither_compiled_nor_captured(function, dtype, captures):
    fast = np_compile.compile(function)
    rtol = 1e-6 if dtype == "f4" else 1e-11
    for k in range(5):
        same(fast, function, data(20 + k), weights(k, dtype), rtol=rtol)
    for k in range(3):
        same(fast, function, data(50), weights(10 + k, dtype), rtol=rtol)
    before = compiles(fast)
    captures.clear()
    for k in range(8):
        same(fast, function, data(50), weights(20 + k, dtype), rtol=rtol)  # by values
        same(fast, function, data(60 + k), weights(40 + k, dtype), rtol=rtol)  # by sizes
    assert compiles(fast) == before
    assert not captures, fast._keeper.why or fast._keeper.why_one_size


@pytest.mark.parametrize("dtype", ["f4", "f2", "i1", "u8", "?", "c8"])
def test_a_result_has_the_dtype_that_numpy_gives_it(dtype):
    def f(x, w):
        return x * w[0], w[1], w[0] * 2, x.astype("f4") + w[2], w[0] + w[1], [w[3]]

    fast = np_compile.compile(f)
    for k in range(6):
        same(fast, f, data(9 + k // 3), weights(k, dtype), rtol=1e-2 if dtype == "f2" else 1e-6)


def branches(x, w):
    if w[0] > 0 and w[1] + w[2] != 0.5:
        x = x * w[3]
    n = int(w[0]) % 3
    for _ in range(n):
        x = x + w[1]
    return x[n:], f"{w[2]:.3f}", n, x[int(abs(w[3]))], float(w[1]), {w[0]: 1}


def test_python_has_the_value_where_it_needs_it():
    fast = np_compile.compile(branches)
    for k in range(7):
        same(fast, branches, data(20), weights(k % 5, "f8"))
        same(fast, branches, data(20 + k), weights(k, "f8"))


def test_nothing_is_cut_where_python_needs_the_value():
    def f(x, w):
        y = x + 1
        if w[0] * 2 - w[1] > 0:
            y = y * w[2]
        return y - w[3]

    fast = np_compile.compile(f)
    for k in range(4):
        same(fast, f, data(20), weights(k, "f8"))
    cuts = []
    assert fast._options.elements_are_data
    fast._run((data(20), weights(9, "f8")), {}, lambda kind, *_: cuts.append(kind))
    assert cuts == ["segment"]


def test_a_call_is_kept_by_what_python_has_needed_alone(captures):
    def f(x, w):
        return x * w[1] if w[0] > 0 else x - w[2]

    fast = np_compile.compile(f)
    for k in range(6):
        same(fast, f, data(20), np.array([1.0 + k, k, 3.0, 4.0]))
    for _ in range(2):
        same(fast, f, data(20), np.array([1.0, 2.0, 3.0, 4.0]))
    captures.clear()
    for k in range(5):
        same(fast, f, data(20), np.array([1.0, k, 3.0 * k, 4.0]))
    assert not captures
    for first in (-1.0, 0.0, np.nan, 1.0):
        same(fast, f, data(20), np.array([first, 2.0, 3.0, 4.0]))


@pytest.mark.parametrize("dynamic", [None, True])
def test_an_element_that_is_written_to(dynamic):
    def before(x, w):
        w *= 2
        return x * w[0], "big" if w[1] > 1 else "small"

    def after(x, w):
        first = w[0]
        w[0] = 7.0
        w[1:] = x[:3]
        return x * first, first, w[0], w[1] > 0, "big" if first > 1 else "small"

    def of_itself(x, w):
        w[1] = w[0] + 1
        w[w[1] > 0] = 0.5
        return x * w[1] + w[0], bool(w[0] > 0)

    for function in (before, after, of_itself):
        fast = np_compile.compile(function, dynamic=dynamic)
        for k in range(8):
            same(fast, function, data(20 + k // 4), weights(k, "f8"))


def test_arrays_that_overlap():
    def f(x, w):
        x[0] = w[1]
        return x * w[0], w[0] > 0, "big" if w[1] > 1 else "small"

    fast = np_compile.compile(f)
    for k in range(8):
        mine, theirs = (weights(k, "f8").repeat(5) for _ in range(2))
        for got, want in zip(fast(mine, mine[:4]), f(theirs, theirs[:4]), strict=True):
            np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(mine, theirs)


def test_indices_out_of_bounds():
    def f(x, w):
        try:
            return x * w[4]
        except IndexError as e:
            return str(e), x * w[0]

    def g(x, w):
        return x * w[0] + w[5]

    for function in (f, g):
        fast = np_compile.compile(function)
        for k in range(6):
            w = weights(k, "f8") if k < 4 else data(6, seed=k)
            same(fast, function, data(20), w)


def test_a_loop_over_many_elements_is_not_recorded(monkeypatch):
    def f(x, w, n):
        s = 0.0
        for i in range(n):
            s = s + w[i]
        return x * s, x - x[0]

    fast = np_compile.compile(f)
    with config.patch(loops="recorded"):
        for k in range(4):
            same(fast, f, data(300, seed=k), data(300, seed=k + 1), 3)
        assert fast._options.elements_are_data
        read = []
        are_recorded = elements.are_recorded
        monkeypatch.setattr(
            np_compile.capture.capture.Capture,
            "are_recorded",
            lambda c, a, n: read.append(are_recorded(c, a, n)) or read[-1],
        )
        same(fast, f, data(300), data(300), 290)
    assert sum(read) <= elements._MOST


def test_dynamic_says_whether_elements_are_data():
    for dynamic in (True, False):
        fast = np_compile.compile(of_slices, dynamic=dynamic)
        for k in range(4):
            same(fast, of_slices, data(20), weights(k, "f8"))
        assert fast._options.elements_are_data == dynamic
        assert compiles(fast) == 1


def test_a_length_that_python_has_seen_is_that_of_kept_calls(monkeypatch):
    def f(x, w):
        for v in w:
            x = x * v
        return x

    runs = []
    run = KeptForSizes.run
    monkeypatch.setattr(
        KeptForSizes, "run", lambda self, given: runs.append(run(self, given)) or runs[-1]
    )
    fast = np_compile.compile(f)
    for k in range(6):
        same(fast, f, data(20 + k), data(3, seed=k))
    runs.clear()
    for k in range(4):
        same(fast, f, data(40 + k), data(3, seed=k))
    assert len(runs) == 4
    for n in (2, 4, 0, 1, 3, 5):
        same(fast, f, data(50 + n), data(n))


def test_truths_of_elements_are_numpys_objects():
    def f(x):
        a, b, c = x[0] > 0, np.isnan(x[1]), np.greater(x[2], 1e9)
        return a is np.True_, b is np.False_, c is np.False_, x + 1

    fast = np_compile.compile(f, dynamic=True)
    for k in range(3):
        same(fast, f, abs(data(30, seed=k)))


@pytest.mark.parametrize("sizes_first", [True, False])
def test_new_sizes_and_new_elements_have_three_programs(sizes_first):
    """One for what came first, one for other elements, one for other sizes."""

    def f(x, w):
        return w[0] * x[:-1] + w[1] * x[1:]

    fast = np_compile.compile(f)
    for k in range(16):
        n, seed = (30 + k % 4 * 7, 0) if (k < 8) is sizes_first else (30, k)
        if k > 12:
            n, seed = 60 + k, k
        same(fast, f, data(n, seed=k), data(2, seed=seed))
    assert len(np_compile.recompiles(fast)) <= 3
