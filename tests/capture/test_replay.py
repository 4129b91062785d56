"""Calls that run without Python: what proves that they may, and what they give."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import np_compile
from np_compile import config
from np_compile.capture.purity import reach

FACTOR = 2.0
SEEN: list = []


def rng():
    return np.random.default_rng(0)


def repeated(f, *args, calls=4):
    """The compiled function after some calls on copies of the arguments, and its last result."""
    compiled = np_compile.compile(f)
    for _ in range(calls):
        result = compiled(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
    return compiled, result


@pytest.fixture(autouse=True)
def _never_plain():
    with config.patch(plain="never"):
        yield


def scaled(x):
    return FACTOR * np.sin(x)


def helper(x):
    return scaled(x) + 1


def kept(compiled):
    return len(compiled._replays.kept)


# What is proved


def appends(x):
    SEEN.append(1)
    return x + 1


def prints(x):
    print("called")
    return x + 1


def draws(x):
    return x + np.random.random()


def counts(x):
    counts.calls += 1
    return x + 1


counts.calls = 0


def has_an_attribute(x):
    return x * has_an_attribute.factor


has_an_attribute.factor = 2.0


def sets_state(x):
    np.seterr(all="ignore")
    return x + 1


def writes_global(x):
    global FACTOR
    FACTOR = 3.0
    return x + 1


def in_a_block(x):
    with np.errstate(all="ignore"):
        return x / 0.0


def changes_a_default(x, cache=[]):  # noqa: B006
    cache.append(1)
    return x + len(cache)


def makes_a_list(x):
    parts = [np.sin(x) * k for k in range(3)]
    total = sum(parts)
    return total, [p + 1 for p in parts]


@pytest.mark.parametrize(
    "f",
    [
        appends, prints, draws, counts, sets_state, writes_global, in_a_block, changes_a_default,
        lambda x: x.tofile("nowhere"), lambda x: setattr(x, "shape", (3,)), lambda x: input(),
        has_an_attribute, lambda x, y: np.shares_memory(x, y), lambda x: np.ndarray.base,
        lambda x: x + 1 if x.base is None else x, lambda x: x.flags.owndata, lambda x: x.data,
        lambda x, y: x if np.may_share_memory(x, y) else y, lambda x: x.ctypes.data, np.linalg.norm,
    ],
)  # fmt: skip
def test_functions_that_may_do_more_than_compute(f):
    assert reach(f) is None


@pytest.mark.parametrize(
    "f", [scaled, helper, makes_a_list, lambda x: x.T @ x, lambda x: np.linalg.norm(x, axis=0)]
)
def test_functions_that_only_compute(f):
    assert reach(f) is not None


def test_side_effects_happen_in_every_call():
    SEEN.clear()
    compiled, _ = repeated(appends, np.ones(3), calls=5)
    assert len(SEEN) == 5
    assert kept(compiled) == 0


def test_random_numbers_are_drawn_in_every_call():
    compiled = np_compile.compile(draws)
    np.random.seed(0)
    got = [compiled(np.zeros(2))[0] for _ in range(4)]
    np.random.seed(0)
    assert got == [np.random.random() for _ in range(4)]


# What is compared


def test_a_call_like_the_kept_one_runs_no_python():
    calls = []

    def f(x):
        return np.sin(x) + 1

    compiled, _ = repeated(f, np.ones(5))
    assert kept(compiled) == 1
    compiled._run = lambda *a: calls.append(a)
    x = rng().random(5)
    np.testing.assert_allclose(compiled(x), np.sin(x) + 1, rtol=1e-15)
    assert not calls


def test_other_arrays_and_values():
    def f(x, k, name):
        return x * k if name == "mul" else x + k

    compiled = np_compile.compile(f)
    args = [
        (np.arange(4.0), 2.0, "mul"), (np.arange(4.0), 3.0, "mul"), (np.arange(4.0), 2, "mul"),
        (np.arange(4), 2.0, "mul"), (np.arange(4.0), 2.0, "add"), (np.arange(5.0), 2.0, "mul"),
        (np.arange(8.0)[::2], 2.0, "mul"), (np.arange(4.0)[::-1], 2.0, "mul"),
        (np.arange(4.0, dtype=">f8"), 2.0, "mul"), (np.arange(4.0), -0.0, "mul"),
        (np.arange(4.0), 0.0, "mul"), (np.arange(4.0), np.nan, "mul"),
        (np.arange(4.0), True, "mul"),
        (np.arange(4.0), np.float32(2), "mul"), (3.0, 2.0, "mul"), ([1.0, 2.0], 2, "mul"),
        (np.float64(3), 2.0, "mul"),
    ]  # fmt: skip
    for _ in range(3):
        for a in args:
            got, want = compiled(*a), f(*a)
            assert type(got) is type(want)
            assert repr(got) == repr(want)
            if isinstance(want, np.ndarray):
                assert np.array_equal(np.signbit(got), np.signbit(want))


def test_a_rebound_global_is_seen(monkeypatch):
    compiled, _ = repeated(helper, np.ones(3))
    assert kept(compiled) == 1
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    np.testing.assert_allclose(compiled(np.ones(3)), 5 * np.sin(1) + 1)
    monkeypatch.setitem(globals(), "scaled", lambda x: x)
    np.testing.assert_allclose(compiled(np.ones(3)), np.full(3, 2.0))


def test_a_changed_helper_default_and_closure_are_seen():
    factor = 2.0

    def inner(x, shift=1.0):
        return x * factor + shift

    def f(x):
        return inner(x) + 0.0

    compiled, _ = repeated(f, np.ones(3))
    assert kept(compiled) == 1
    inner.__defaults__ = (10.0,)
    assert compiled(np.ones(3))[0] == 12.0
    factor = 3.0
    assert compiled(np.ones(3))[0] == 13.0
    inner.__code__ = (lambda x, shift=1.0: x - shift + 0 * factor).__code__
    assert compiled(np.ones(3))[0] == f(np.ones(3))[0]


def test_an_attribute_of_a_function_and_an_emptied_closure_are_seen():
    def scale(x):
        return x * scale.factor if with_attribute else x * 2.0

    with_attribute = False

    def f(x):
        return scale(x) + 0.0

    compiled, _ = repeated(f, np.ones(3))
    scale.factor = 5.0
    with_attribute = True
    assert compiled(np.ones(3))[0] == 5.0
    scale.__dict__.clear()
    with_attribute = False
    assert compiled(np.ones(3))[0] == 2.0
    del with_attribute
    with pytest.raises(NameError):
        compiled(np.ones(3))

    compiled, _ = repeated(has_an_attribute, np.ones(3))
    assert kept(compiled) == 0


def test_where_arrays_lie_is_looked_at_in_every_call():
    def f(x, y):
        return x + 1 if np.shares_memory(x, y) else x - 1

    def g(x):
        return x + 1 if x.base is None else x - 1

    compiled, _ = repeated(f, np.ones(4), np.ones(4))
    x = np.ones(4)
    np.testing.assert_array_equal(compiled(x[:], x), f(x[:], x))
    compiled, _ = repeated(g, np.ones(4))
    np.testing.assert_array_equal(compiled(np.ones((1, 4))[0]), g(np.ones((1, 4))[0]))


def test_arguments_that_overlap_or_are_one():
    def f(x, y):
        x += 1
        return y * 2

    compiled, _ = repeated(f, np.zeros(6), np.zeros(6))
    assert kept(compiled) == 1
    for make in (
        lambda: (z := np.zeros(6), z),
        lambda: ((z := np.zeros(7))[1:], z[:-1]),
        lambda: (np.zeros(6), np.zeros(6)),
    ):
        for _ in range(3):
            mine, plain = make(), make()
            np.testing.assert_array_equal(compiled(*mine), f(*plain))
            np.testing.assert_array_equal(mine[0], plain[0])
            np.testing.assert_array_equal(mine[1], plain[1])


def test_a_read_only_array_is_not_written_to():
    def f(x):
        x += 1
        return x

    compiled, _ = repeated(f, np.zeros(3))
    x = np.zeros(3)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(x)
    assert x[0] == 0


def test_values_that_reach_python_are_looked_at_in_every_call():
    def f(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    compiled, _ = repeated(f, np.ones(3))
    assert kept(compiled) == 0
    assert compiled(-np.ones(3))[0] == -2.0

    def g(x):
        return x * x[0]

    def h(x):
        return x + float(x[1])

    for function in (g, h):
        compiled, _ = repeated(function, np.ones(3))
        x = np.array([3.0, 4.0, 5.0])
        np.testing.assert_array_equal(compiled(x), function(x))


# What it gives


def test_results():
    def f(x, y):
        x[1:] = y[:-1]
        s = x + y
        return x, s, [s.sum(), (1, None, "text")], y > 0.5, y.argmax()

    compiled, _ = repeated(f, np.zeros(4), rng().random(4))
    assert kept(compiled) == 1
    x, y = np.zeros(4), rng().random(4)
    plain_x = np.zeros(4)
    got, want = compiled(x, y), f(plain_x, y)
    assert got[0] is x
    np.testing.assert_array_equal(x, plain_x)
    assert repr(got) == repr(want)
    assert type(got[2][0]) is np.float64
    assert type(got[4]) is np.int64


def test_one_array_twice_and_views_stay_what_they_are():
    def twice(x):
        y = x + 1
        return y, y

    def view(x):
        y = x + 1
        return y[1:]

    for f in (twice, view):
        compiled, _ = repeated(f, np.zeros(4))
        got = compiled(np.zeros(4))
        if f is twice:
            assert got[0] is got[1]
        else:
            np.testing.assert_array_equal(got, np.ones(3))


def test_an_index_out_of_bounds_raises_and_changes_nothing():
    def f(x, i):
        x[i] = 1.0
        return x * 2

    compiled, _ = repeated(f, np.zeros(4), np.array([0, 2]))
    x = np.zeros(4)
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 4"):
        compiled(x, np.array([0, 7]))
    assert not x.any()
    np.testing.assert_array_equal(compiled(x, np.array([0, 2])), [2, 0, 2, 0])


def test_loops_of_many_segments():
    def f(u, steps, r):
        for _ in range(steps):
            u[1:-1] += r * (u[2:] - 2 * u[1:-1] + u[:-2])
        return u.sum()

    compiled, _ = repeated(f, rng().random(300), 30, 0.2)
    assert kept(compiled) == 1
    u, v = rng().random(300), rng().random(300)
    assert np.isclose(compiled(u, 30, 0.2), f(v, 30, 0.2), rtol=1e-13)
    np.testing.assert_allclose(u, v, rtol=1e-13)


def test_many_threads():
    def f(x, y):
        return np.sqrt(x) * y + x.sum()

    compiled, _ = repeated(f, np.ones(1000), np.ones(1000))
    wrong = []

    def work(seed):
        x, y = np.random.default_rng(seed).random((2, 1000))
        right = [np.allclose(compiled(x, y), f(x, y), rtol=1e-12) for _ in range(50)]
        wrong.extend(seed for r in right if not r)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_inside_another_compiled_function_and_with_explain():
    compiled, _ = repeated(scaled, np.ones(3))

    @np_compile.compile
    def outer(x):
        return compiled(x) + 1

    for _ in range(3):
        np.testing.assert_allclose(outer(np.ones(3)), 2 * np.sin(1) + 1)
    report = np_compile.explain(compiled)(np.ones(3))
    assert len(report.segments) == 1


def test_an_array_that_no_program_reads_may_be_of_any_layout():
    def f(x, y):
        return y, x + 1

    y = np.zeros((4, 3))[::-1, ::2]
    compiled = np_compile.compile(f)
    for _ in range(4):
        got = compiled(np.zeros(3), y)
        assert got[0] is y
        np.testing.assert_array_equal(got[1], np.ones(3))


def test_arrays_of_constants():
    def f(x, taps):
        y = x[2:] + taps.sum() * x[:-2]
        weights = np.array([0.25, 0.5, 0.25])
        return y, x[:3] * weights, (x[:3] * np.arange(3.0)).sum()

    compiled, _ = repeated(f, rng().random(20), np.array([1.0, 2.0, 3.0]))
    assert kept(compiled) == 1
    for seed in range(3):
        x, taps = np.random.default_rng(seed).random((2, 20))
        x, taps = x.copy(), taps[:3].copy()
        for got, want in zip(compiled(x, taps), f(x, taps), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13)


def test_an_array_of_constants_that_is_written_to():
    def f(x):
        weights = np.array([1.0, 2.0, 3.0])
        weights += x
        return weights * 2

    compiled, _ = repeated(f, np.zeros(3))
    for _ in range(3):
        np.testing.assert_array_equal(compiled(np.ones(3)), [4.0, 6.0, 8.0])


def test_many_elements_are_read_at_once():
    def f(x):
        total = 0.0
        for i in range(len(x)):
            total += x[i]
        return total

    compiled, _ = repeated(f, np.arange(200.0), calls=5)
    assert compiled(np.arange(200.0)) == f(np.arange(200.0))
