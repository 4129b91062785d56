"""Where names come from: globals, builtins, closures, defaults; and when they change."""

from __future__ import annotations

import enum
import functools
import math
import types

import numpy as np
import pytest

import np_compile

from .support import check_call, refusals, whole

RATE = 0.5
TABLE = np.arange(6.0)


def helper(x):
    return x * RATE + 1


def deep(x, k=2):
    return helper(x) - k


def uses_globals(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * RATE + TABLE[i]
    return s


def uses_helper(x):
    s = 0.0
    for v in x:
        s += helper(float(v)) * deep(float(v), k=3)
    return s


def writes_table(n):
    for i in range(n):
        TABLE[i] += i
    return TABLE


def uses_math(x):
    s = 0
    for v in x:
        s += math.sqrt(abs(v)) + np.pi + max(v, 1) + len(x)
    return s


def missing_name(x):
    for i in range(len(x)):
        x[i] += 1
        if i == 2:
            return nothing_of_this_name  # noqa: F821
    return x


def copy_of(f):
    """The function with globals of its own."""
    scope = dict(f.__globals__)
    return types.FunctionType(f.__code__, scope, f.__name__, f.__defaults__, f.__closure__), scope


def test_globals_change_between_calls() -> None:
    f, scope = copy_of(uses_globals)
    fast = np_compile.compile(f)
    x = np.arange(4.0)
    with whole():
        for rate in (0.5, 2.0, 3, True, np.float32(0.1), np.ones(4)[0], 1 + 2j, np.ones(2), "a"):
            scope["RATE"] = rate
            check_call(fast, f, (x,), 0)
        del scope["RATE"]
        check_call(fast, f, (x,), 0)
        scope["RATE"] = 0.25
        for table in (np.arange(4), np.arange(3.0), [1, 2, 3, 4], np.ones((4, 1)), None):
            scope["TABLE"] = table
            check_call(fast, f, (x,), 0)
        scope["TABLE"] = x
        check_call(fast, f, (x,), 0)


def test_builtins_are_replaced_and_come_back() -> None:
    f, scope = copy_of(uses_math)
    fast = np_compile.compile(f)
    x = np.array([-2.0, 0.5, 3.0])
    with whole():
        check_call(fast, f, (x,), 1e-15)
        for name, value in (
            ("len", lambda x: -5), ("max", min), ("abs", lambda v: v * v), ("math", np),
            ("range", lambda n: [0]), ("np", math),
        ):  # fmt: skip
            scope[name] = value
            check_call(fast, f, (x,), 1e-15)
        for name in ("len", "max", "abs"):
            del scope[name]
            check_call(fast, f, (x,), 1e-15)


def test_attributes_of_modules_are_replaced(monkeypatch) -> None:
    fast = np_compile.compile(uses_math)
    x = np.array([1.0, 4.0])
    with whole():
        check_call(fast, uses_math, (x,), 1e-15)
        monkeypatch.setattr(math, "sqrt", lambda v: v + 100)
        check_call(fast, uses_math, (x,), 1e-15)
        monkeypatch.setattr(np, "pi", 3)
        check_call(fast, uses_math, (x,), 1e-15)
        monkeypatch.undo()
        check_call(fast, uses_math, (x,), 1e-15)


def test_helpers_change(monkeypatch) -> None:
    fast = np_compile.compile(uses_helper)
    x = np.arange(5.0)

    def other(x, k=10):
        return k + x

    with whole():
        check_call(fast, uses_helper, (x,), 0)
        assert not refusals(fast)
        for name, value in (
            ("RATE", 3), ("helper", lambda x: -x), ("helper", abs), ("helper", helper),
            ("deep", other),
        ):  # fmt: skip
            monkeypatch.setitem(globals(), name, value)
            check_call(fast, uses_helper, (x,), 0)
        monkeypatch.undo()
        monkeypatch.setattr(helper, "__code__", other.__code__)
        monkeypatch.setattr(helper, "__defaults__", (7,))
        check_call(fast, uses_helper, (x,), 0)
        monkeypatch.setattr(helper, "__defaults__", (8,))
        check_call(fast, uses_helper, (x,), 0)
        monkeypatch.undo()
        monkeypatch.setattr(deep, "__defaults__", (8,))
        check_call(fast, uses_helper, (x,), 0)


def test_a_global_array_is_written() -> None:
    before = TABLE.copy()
    fast = np_compile.compile(writes_table)
    try:
        with whole():
            for n in (3, 0, 6):
                writes_table(n)
                want = TABLE.copy()
                TABLE[:] = before
                assert fast(n) is TABLE
                np.testing.assert_array_equal(TABLE, want)
                TABLE[:] = before
            with pytest.raises(IndexError):
                fast(7)
            np.testing.assert_array_equal(TABLE, before + np.arange(6))
    finally:
        TABLE[:] = before


def test_closures_change() -> None:
    def make():
        factor, table = 2.0, np.arange(5.0)

        def run(x):
            s = 0
            for i in range(len(x)):
                s += factor * x[i] + table[i]
            return s

        def change(f, t):
            nonlocal factor, table
            factor, table = f, t

        return run, change

    run, change = make()
    fast = np_compile.compile(run)
    x = np.arange(4.0)
    with whole():
        for factor, table in (
            (2.0, np.arange(5.0)), (3.0, np.arange(5.0)), (3, np.arange(4)), (np.float32(2), x),
            (True, np.arange(3)), ("a", x), (1j, x), (2.0, np.arange(5.0)),
        ):  # fmt: skip
            change(factor, table)
            check_call(fast, run, (x,), 0)


def with_defaults(x, n=3, *, scale=2.0, start=None):
    s = 0.0 if start is None else start
    for i in range(n):
        s += x[i] * scale
    return s


def test_defaults_and_keywords() -> None:
    fast = np_compile.compile(with_defaults)
    x = np.arange(4.0)
    with whole():
        for args, kwargs in (
            ((x,), {}), ((x, 2), {}), ((x,), {"n": 4}), ((x,), {"scale": 3, "n": 0}),
            ((), {"x": x, "start": 5.0}), ((x, 1), {"start": 1}), ((x, 2, 3), {}), ((), {}),
            ((x,), {"nothing": 1}), ((x, 2), {"n": 3}),
        ):  # fmt: skip
            try:
                want = with_defaults(*args, **kwargs)
            except TypeError as e:
                with pytest.raises(TypeError) as got:
                    fast(*args, **kwargs)
                assert str(got.value) == str(e)  # noqa: PT017
            else:
                got = fast(*args, **kwargs)
                assert type(got) is type(want)
                assert got == want


def test_a_name_that_is_missing() -> None:
    fast = np_compile.compile(missing_name)
    with whole():
        for n in (2, 3, 5):
            check_call(fast, missing_name, (np.zeros(n),), 0)


def shadows(x, len):
    for i in range(len):
        abs = x[i]
        x[i] = abs - len
    return x


def test_locals_shadow_builtins() -> None:
    fast = np_compile.compile(shadows)
    with whole():
        for n in (0, 2, 4):
            check_call(fast, shadows, (np.arange(4.0), n), 0)


CONSTANT, SQUARE = (lambda v: -5.0), (lambda v: v * v)  # on one line


def calls_lambdas(x):
    s = 0.0
    for v in x:
        s += SQUARE(v)
    return s


def test_lambdas_on_one_line() -> None:
    fast = np_compile.compile(calls_lambdas)
    with whole():
        check_call(fast, calls_lambdas, (np.arange(4.0),), 0)


def recursive(n):
    return n if n < 2 else recursive(n - 1) + recursive(n - 2)


def calls_recursive(n):
    s = 0
    for i in range(n):
        s += recursive(i)
    return s


def test_recursion() -> None:
    fast = np_compile.compile(calls_recursive)
    with whole():
        for n in (0, 1, 9):
            check_call(fast, calls_recursive, (n,), 0)


def asks_for_locals(x):
    s, kept = 0.0, []
    for i in range(len(x)):
        s += x[i]
        kept.append((i, s))
    n = len(np.unique(x.astype(str)))  # in Python
    return sorted(locals()), n


def asks_for_vars(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
    n = len(np.unique(x.astype(str)))
    return sorted(vars()), "i" in dir(), n


def asks_by_eval(x):
    kept = []
    for i in range(len(x)):
        kept.append((i, x[i]))  # noqa: PERF401
    n = len(np.unique(x.astype(str)))
    return eval("kept[-1]"), n


def asks_by_another_name(x):
    names = locals
    for i in range(len(x)):
        x[i] += i
    return sorted(names())


@pytest.mark.parametrize("f", [asks_for_locals, asks_for_vars, asks_by_eval, asks_by_another_name])
def test_a_function_that_asks_python_for_its_names_runs_there(f) -> None:
    fast = np_compile.compile(f)
    with whole():
        for _ in range(3):
            check_call(fast, f, (np.arange(5.0),), 0)
    assert "sees its names" in fast._reading.given_up


class Model:
    def __init__(self, rate):
        self.rate = rate


def vars_of(x, model):
    s = vars(model)["rate"]
    for i in range(len(x)):
        s += x[i]
    return s


def calls_dir(x, dir):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * 2
    return s + dir()


def test_names_of_others_and_functions_of_such_a_name() -> None:
    for f, args in (
        (vars_of, (np.arange(5.0), Model(2.0))),
        (calls_dir, (np.arange(5.0), lambda: 3)),
    ):
        fast = np_compile.compile(f)
        with whole():
            for _ in range(2):
                check_call(fast, f, args, 0)
        assert not fast._reading.given_up


class Side(enum.Enum):
    LEFT = 1
    RIGHT = 2


def of_windows(x, statistic):
    s = 0.0
    for i in range(len(x)):
        s += statistic(x[i:])
    return s


def of_a_pair(x, pair):
    s = 0.0
    for i in range(len(x)):
        s += pair[0](x[i]) * pair[1]
    return s


def on_a_side(x, pair):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * pair[1] if pair[0] is Side.LEFT else 1.0
    return s


@pytest.mark.parametrize(
    ("f", "given"),
    [
        (of_windows, (np.mean, np.median, np.max, np.sum)),
        (of_a_pair, ((np.mean, 2), (np.median, 2), (np.negative, 2), (math.sqrt, 2))),
        (of_a_pair, ((functools.partial(deep, k=3), 2), (functools.partial(deep, k=5), 2))),
        (on_a_side, ((Side.LEFT, 2), (Side.RIGHT, 2))),
    ],
)
def test_what_is_given_is_told_by_what_it_is_and_not_by_its_type(f, given) -> None:
    """Functions of NumPy's, partial ones and members are of one type each, also in tuples."""
    x = np.arange(1.0, 8.0)
    with whole():
        fast = np_compile.compile(f)
        for _ in range(3):
            for what in given:
                assert fast(x, what) == pytest.approx(f(x, what), rel=1e-14)
