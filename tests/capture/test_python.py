"""Python around NumPy calls: it happens in a compiled function as it does without."""

from __future__ import annotations

import builtins
import concurrent.futures
import contextlib
import copy
import dataclasses
import functools
import itertools
import math
import operator
import pickle
import threading

import numpy as np
import numpy.linalg as la
import pytest
from numpy import cos as cosine
from numpy import float32, pi

import np_compile
from np_compile.capture.names.substitute import compares_numpy

from ..support import check, compiled, data

SCALE = 2.0
TABLE = np.arange(5.0)
SETTINGS = {"rate": 0.5, "offsets": np.arange(3.0)}
HISTORY: list = []
COUNT = 0
STATE = None


# -- names -------------------------------------------------------------------------------------


def test_names_imported_from_numpy():
    check(lambda x: cosine(x) * pi + la.norm(x) + float32(1), data(4))


def test_numpy_under_another_name():
    import numpy as xp

    def f(x, lib):
        return lib.sin(x) + xp.cos(x)

    check(f, data(4), np)


def test_numpy_imported_inside():
    def f(x):
        import numpy
        import numpy.linalg
        from numpy import sin as s

        return s(x) + numpy.cos(x) + numpy.linalg.norm(x)

    check(f, data(4))


def test_a_global_is_read_at_each_call():
    global SCALE
    fast, counter = compiled(lambda x: x * SCALE)
    for SCALE in (2.0, 3.0, 4.5):
        np.testing.assert_array_equal(fast(np.ones(2)), [SCALE, SCALE])
    assert counter.count == 1
    SCALE = 2.0


def helper(x):
    return x * SCALE + 1


def test_a_helper_function_is_found_at_each_call():
    global helper
    fast, _ = compiled(lambda x: helper(x))
    before = helper
    assert fast(np.ones(2)).tolist() == [3, 3]
    try:
        helper = lambda x: x - 5  # noqa: E731
        assert fast(np.ones(2)).tolist() == [-4, -4]
    finally:
        helper = before
    assert fast(np.ones(2)).tolist() == [3, 3]


def with_a_keyword(x, *, factor=2.0, shift=0.0):
    return x * factor + shift


def test_defaults_of_helpers_are_read_at_each_call():
    def positional(x, factor=2.0):
        return x * factor

    fast, _ = compiled(lambda x: with_a_keyword(x) + positional(x))
    before = with_a_keyword.__kwdefaults__
    try:
        np.testing.assert_array_equal(fast(np.ones(2)), [4, 4])
        with_a_keyword.__kwdefaults__ = {"factor": 5.0, "shift": 1.0}
        np.testing.assert_array_equal(fast(np.ones(2)), [8, 8])
        positional.__defaults__ = (10.0,)
        np.testing.assert_array_equal(fast(np.ones(2)), [16, 16])
        with_a_keyword.__kwdefaults__ = {"factor": 1.0}
        with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'shift'"):
            fast(np.ones(2))
    finally:
        with_a_keyword.__kwdefaults__ = before


def test_code_of_helpers_is_read_at_each_call():
    def helper(x):
        return np.cos(x) * 2

    def other(x):
        return np.hypot(x, SCALE)

    def f(x):
        return helper(x) + 1

    fast, _ = compiled(f)
    for code in (helper.__code__, other.__code__, helper.__code__):
        helper.__code__ = code
        for _ in range(3):
            np.testing.assert_allclose(fast(data(3)), f(data(3)), rtol=1e-12)


def test_a_global_array_is_read_and_written():
    def make():
        def f(x):
            TABLE[0] += 1
            return x + TABLE[:3] + TABLE[0]

        return f

    TABLE[:] = np.arange(5.0)
    plain, fast = make(), compiled(make())[0]
    for _ in range(3):
        TABLE[:] = np.arange(5.0)
        want, table = plain(np.ones(3)), TABLE.copy()
        TABLE[:] = np.arange(5.0)
        np.testing.assert_array_equal(fast(np.ones(3)), want)
        np.testing.assert_array_equal(TABLE, table)


def test_a_global_array_rebound():
    global TABLE
    fast, _ = compiled(lambda x: x + TABLE[0])
    before = TABLE
    try:
        for v in (1.0, 5.0):
            TABLE = np.full(5, v)
            assert fast(np.zeros(1)).tolist() == [v]
    finally:
        TABLE = before


def test_global_writes_are_carried_to_the_module():
    global COUNT, STATE

    def f(x):
        global COUNT, STATE
        COUNT += 1
        STATE = x * COUNT
        return STATE + 1

    COUNT = 0
    fast, _ = compiled(f)
    for n in (1, 2, 3):
        x = data(3, seed=n)
        np.testing.assert_array_equal(fast(x), x * n + 1)
        assert n == COUNT
        assert type(STATE) is np.ndarray
        np.testing.assert_array_equal(STATE, x * n)
    STATE = None


def test_a_deleted_global_raises_name_error():
    check(lambda x: x + no_such_name, data(3))  # noqa: F821


def test_a_global_dict_with_arrays():
    def f(x):
        return x * SETTINGS["rate"] + SETTINGS["offsets"]

    check(f, data(3))


def test_arrays_appended_to_a_global_list_are_real():
    HISTORY.clear()
    fast, _ = compiled(lambda x: HISTORY.append(x * 2))
    x = data(3)
    for n in (1, 2, 3):
        fast(x)
        assert len(HISTORY) == n
    assert all(type(h) is np.ndarray for h in HISTORY)
    assert not np.shares_memory(HISTORY[0], HISTORY[1])
    np.testing.assert_array_equal(HISTORY[1], x * 2)
    HISTORY.clear()


# -- closures ----------------------------------------------------------------------------------


def test_closures_over_arrays_floats_and_functions():
    def make():
        w = data(3, seed=5)
        s = 2.5

        def inner(x):
            return x * s

        def f(x):
            return inner(x) + w

        return f

    check(None, data(3), make=make)


def test_an_array_of_the_closure_is_changed_in_place():
    def make():
        total = np.zeros(3)

        def f(x):
            total[...] += x
            return total.copy()

        return f

    check(None, data(3), make=make)


def test_nonlocal_numbers_and_arrays():
    def make():
        count, last = 0, None

        def f(x):
            nonlocal count, last
            count += 1
            before, last = last, x + count
            return count, before, last

        return f

    check(None, data(3), make=make)


def test_nonlocal_is_seen_outside():
    last = None

    def f(x):
        nonlocal last
        last = x * 2

    fast, _ = compiled(f)
    for n in range(3):
        fast(np.full(2, float(n)))
        assert type(last) is np.ndarray
        assert last.tolist() == [2.0 * n] * 2


def test_a_variable_of_the_closure_that_was_deleted():
    def f(x):
        return x * factor

    factor = 2.0
    mine, _ = compiled(f)
    assert mine(np.ones(2))[0] == 2.0
    del factor
    with pytest.raises(NameError, match="factor"):
        mine(np.ones(2))
    factor = 3.0
    assert mine(np.ones(2))[0] == 3.0


def test_inner_nonlocal_accumulation():
    def f(x):
        total = np.zeros_like(x)
        n = 0

        def add(v):
            nonlocal total, n
            total = total + v
            n += 1

        for i in range(3):
            add(x * i)
        return total, n

    check(f, data(4))


def test_late_binding_of_loop_variables():
    def f(x):
        fs = [lambda v: v * i for i in range(3)]  # noqa: B023
        gs = [lambda v, i=i: v * i for i in range(3)]
        return [g(x) for g in fs + gs]

    check(f, data(3))


def test_a_closure_returned():
    def f(x):
        y = x * 2
        return lambda v: v + y

    x, v = data(3), data(3, seed=1)
    fast, _ = compiled(f)
    for _ in range(2):
        g = fast(x)
        r = g(v)
        assert type(r) is np.ndarray
        np.testing.assert_array_equal(r, v + x * 2)


# -- functions ---------------------------------------------------------------------------------


def test_recursion():
    def fib(x, n):
        return x if n < 2 else fib(x, n - 1) + fib(x, n - 2) * 0.5

    def f(x):
        return fib(x, 6)

    check(f, data(3))
    check(fib, data(3), 5)


def test_recursion_on_arrays():
    def fft(x):
        n = len(x)
        if n == 1:
            return x.astype(complex)
        even, odd = fft(x[::2]), fft(x[1::2])
        t = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
        return np.concatenate([even + t, even - t])

    check(fft, data(16), rtol=1e-10)


def test_mutual_recursion_with_defaults():
    def down(x, n=4):
        return x if n == 0 else up(x - 1, n - 1)

    def up(x, n):
        return down(x * 2, n)

    check(down, data(3))


def traced(f):
    @functools.wraps(f)
    def call(*args, **kwargs):
        print("calling", f.__name__)
        return f(*args, **kwargs) * 2

    return call


@traced
def decorated(x):
    return np.sin(x)


def test_decorated_helpers_and_functions():
    check(lambda x: decorated(x) + 1, data(3))
    check(decorated, data(3))


def test_functools_and_operator():
    def f(x):
        scale = functools.partial(np.multiply, 2.0)
        add = functools.partial(operator.add, x)
        return functools.reduce(operator.mul, [scale(x), add(1), np.abs(x)])

    check(f, data(3))


def test_a_compiled_partial():
    def f(x, y, z=1):
        return x * y + z

    p = functools.partial(f, 2.0, z=3)
    fast = np_compile.compile(p, backend="eager")
    np.testing.assert_array_equal(fast(np.ones(3)), p(np.ones(3)))


def test_functools_lru_cache_on_numbers():
    @functools.lru_cache
    def weights(n):
        return n * 0.5

    check(lambda x: x * weights(3) + weights(4), data(3))


def test_a_compiled_function_inside_a_compiled_function():
    inner = np_compile.compile(lambda x: np.sin(x) * 2, backend="eager")

    def f(x):
        return inner(x) + inner(x + 1)

    e = np_compile.explain(np_compile.compile(f, backend="eager"))(data(3))
    assert e.breaks == []
    assert len(e.segments) == 1
    check(f, data(3))


def test_map_filter_sorted_and_itertools():
    def f(x):
        rows = list(map(lambda r: r * 2, x))  # noqa: C417
        picked = list(filter(lambda r: r[0] > 0, rows))
        pairs = [a + b for a, b in itertools.combinations(rows, 2)]
        by_sum = sorted(rows, key=lambda r: r.sum())
        return rows, picked, pairs, by_sum, max(rows, key=np.sum), list(itertools.accumulate(rows))

    check(f, data(4, 3))


def _all_doubled(x):
    total = 0.5
    for e in x:
        x *= 2
        total = total + e
    return total


def _next_ones_changed(x):
    seen = []
    for k, e in enumerate(x[::-1]):
        x[:] = x + k
        seen.append(e)
    return seen


def _beside_a_list(x):
    x = x * 2
    for e, power in zip(x, [1, 2, 3], strict=False):
        x **= power
        x += e
    return x


def _taken_later(x):
    x = x * 2
    rest = iter(x)
    x += 1
    first = next(rest)
    x += first
    pairs = zip(rest, x[:0], strict=False)
    return first, next(pairs, None), next(rest)


def _flat(x):
    m = x[:, None] * np.ones(2)
    total = 0.0
    for e in m.flat:
        m *= 2
        total = total + e
    return total


@pytest.mark.parametrize("plain", ["auto", "never"])
@pytest.mark.parametrize(
    "f", [_all_doubled, _next_ones_changed, _beside_a_list, _taken_later, _flat]
)
def test_elements_of_an_array_that_changes_while_they_are_taken(f, plain):
    with np_compile.config.patch(loops="recorded"):
        check(f, np.arange(1.0, 6.0), plain=plain)


def test_an_iterator_over_elements_outlives_the_call():
    def f(x):
        y = x * 2
        rest = iter(y)
        y += 1
        return next(rest), rest, zip(x, y, strict=True), y

    first, rest, pairs, y = compiled(f)[0](np.arange(3.0))
    y *= 2
    assert (first, list(rest), list(pairs)) == (
        1.0,
        [6.0, 10.0],
        [(0.0, 2.0), (1.0, 6.0), (2.0, 10.0)],
    )


def test_generators_consumed_inside():
    def squares(x):
        for row in x:
            yield row**2

    def f(x):
        total = sum(squares(x))
        gen = (r + 1 for r in x)
        first = next(gen)
        return total, first, list(gen), sum(r.sum() for r in x)

    check(f, data(3, 2))


def test_a_generator_returned_is_a_generator_over_real_arrays():
    fast, _ = compiled(lambda x: (r * 2 for r in x))
    x = data(3, 2)
    rows = list(fast(x))
    assert len(rows) == 3
    assert all(type(r) is np.ndarray for r in rows)
    np.testing.assert_array_equal(rows[1], x[1] * 2)


def test_comprehensions():
    def f(x):
        a = [x[i] * i for i in range(3)]
        b = {i: x[i] + 1 for i in range(3)}
        c = {i * 2 for i in range(3)}
        d = np.array([[v * w for v in range(3)] for w in range(3)])
        return np.stack(a), b, c, d @ x[:3, :3]

    check(f, data(4, 4))


def test_unpacking():
    def f(x):
        a, b, *rest = x
        (c, d), e = (a, b), rest[-1]
        first, *_ = rest
        return a + b, c * d, e, first, [*x, *rest], {**{"a": a}, "b": b}

    check(f, data(5, 2))


def test_walrus_ternary_chained_comparison_match():
    def f(x, n):
        if (y := x * 2) is not None and 0 < n < 5:
            z = y if n % 2 else -y
        match n:
            case 1 | 3:
                z = z + 1
            case 2:
                z = z + 2
            case _:
                z = y
        return z

    for n in (1, 2, 3, 7):
        check(f, data(3), n)


# -- exceptions and with -----------------------------------------------------------------------


def test_try_except_finally_inside():
    def f(x):
        log = []
        try:
            x[100]
        except IndexError as e:
            log.append(str(e))
        try:
            x.reshape(7)
        except ValueError as e:
            log.append(str(e))
        else:
            log.append("no")
        finally:
            log.append("finally")
        try:
            x + np.zeros(17)
        except ValueError as e:
            log.append(str(e))
        try:
            np.linalg.inv(np.zeros((2, 2)))
        except np.linalg.LinAlgError as e:
            log.append(str(e))
        try:
            x.no_such_attribute  # noqa: B018
        except AttributeError as e:
            log.append(str(e))
        return log, x * 2

    check(f, data(3))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x + np.zeros(17),
        lambda x: x @ np.zeros((17, 2)),
        lambda x: x.reshape(5, 5),
        lambda x: x[17],
        lambda x: x[:, 0, 0],
        lambda x: x["a"],
        lambda x: x[1.5],
        lambda x: x[[0, 99]],
        lambda x: x.sum(axis=3),
        lambda x: np.max(x[:0]),
        lambda x: np.argmin(x[:0]),
        lambda x: np.concatenate([x, np.zeros((2, 2, 2))]),
        lambda x: np.concatenate([]),
        lambda x: np.stack([x, x[1:]]),
        lambda x: np.sin(x, x, x, x),
        lambda x: np.sin("text"),
        lambda x: x + "text",
        lambda x: x + None,
        lambda x: x @ 2,
        lambda x: x.astype("nonsense"),
        lambda x: np.zeros(3, int) ** -1,
        lambda x: x.nope,
        lambda x: np.nope(x),
        lambda x: x.__setitem__(slice(0, 2), np.zeros(9)),
        lambda x: x.__setitem__(99, 1.0),
        lambda x: float(x),
        lambda x: bool(x),
        lambda x: int(x),
        lambda x: hash(x),
        lambda x: len(x.sum()),
        lambda x: iter(np.array(1.0) + x.sum()),
        lambda x: np.linalg.inv(x),
        lambda x: np.linalg.solve(np.zeros((3, 3)), x[:3]),
        lambda x: np.linalg.cholesky(-np.eye(3)),
        lambda x: np.einsum("ij,jk", x, x),
        lambda x: np.transpose(x, (0, 1)),
        lambda x: np.arange(3, dtype=np.uint8) + 300,
        lambda x: x << 1,
        lambda x: ~x,
        lambda x: np.broadcast_to(x, (2, 2)),
        lambda x: np.split(x, 4),
        lambda x: np.clip(x),
        lambda x: np.where(x > 0, x),
        lambda x: np.sum(x, nonsense=1),
        lambda x: {}["key"],
        lambda x: 1 / 0 * x,
    ],
)  # fmt: skip
def test_a_wrong_call_raises_what_numpy_raises(wrong):
    check(wrong, data(6))


def test_an_exception_in_the_middle_keeps_effects_before_it():
    def f(x, seen):
        x += 1
        seen.append(x * 2)
        print("before", len(seen))
        if len(x) > 2:
            raise KeyError("stop")
        x += 100

    check(f, data(3), [])


def test_an_exception_carries_real_arrays():
    def f(x):
        raise ValueError("bad", x + 1)

    fast, _ = compiled(f)
    with pytest.raises(ValueError, match="bad") as e:
        fast(np.zeros(2))
    assert type(e.value.args[1]) is np.ndarray
    assert e.value.args[1].tolist() == [1, 1]


def test_a_users_exception_class_and_cause():
    class Diverged(Exception):
        pass

    def f(x):
        try:
            raise ValueError("inner")
        except ValueError as e:
            raise Diverged(f"norm {x.sum():.2f}") from e

    fast, _ = compiled(f)
    with pytest.raises(Diverged, match=r"norm 2\.00") as e:
        fast(np.ones(2))
    assert isinstance(e.value.__cause__, ValueError)


def test_assert_statements():
    # As text: the test runner rewrites the assert statements of this file.
    names: dict = {}
    text = "assert x.shape == (3,), 'shape'; assert (x < 100).all(), 'large'; return x * 2"
    exec(f"def f(x): {text}", names)
    f = names["f"]
    check(f, data(3))
    check(f, data(4))
    check(f, data(3) + 1000)


def test_with_blocks():
    @contextlib.contextmanager
    def scope(log, x):
        log.append("in")
        try:
            yield x * 2
        finally:
            log.append("out")

    def f(x):
        log = []
        with scope(log, x) as y, np.errstate(divide="ignore"):
            z = y / 2
        with contextlib.suppress(IndexError):
            z = z[99]
        return log, z

    check(f, data(3))


def test_errstate_raise_inside():
    def f(x):
        with np.errstate(all="raise"):
            try:
                return 1.0 / x
            except FloatingPointError as e:
                return str(e)

    check(f, np.array([1.0, 2.0]))


# -- classes and types -------------------------------------------------------------------------


def test_classes_defined_inside():
    def f(x):
        @dataclasses.dataclass
        class Pair:
            a: object
            b: object

            def total(self):
                return self.a + self.b

        class Sub(Pair):
            def total(self):
                return super().total() * 2

        p = Sub(x, x + 1)
        p.a = p.a * 3
        return p.total(), Pair(x, x).total()

    check(f, data(3))


def test_type_checks():
    def f(x, s, n):
        y = x * 2
        return [
            isinstance(x, np.ndarray), isinstance(y, np.ndarray), type(y) is np.ndarray,
            isinstance(y.sum(), float), isinstance(y.sum(), np.floating), isinstance(y[0], float),
            type(y[0]) is np.float64, isinstance(y, list), isinstance(y.sum(), np.ndarray),
            np.isscalar(y.sum()), np.isscalar(y), isinstance(s, str), type(n) is int,
            isinstance((x > 0).any(), np.bool_), isinstance((x > 0).any(), bool),
            isinstance(x.argmax(), np.integer), isinstance(x.argmax(), int),
            isinstance(x.shape, tuple), type(x.shape[0]) is int, type(x.ndim) is int,
            np.issubdtype(y.dtype, np.floating), y.dtype == np.float64, y.dtype is x.dtype,
            y.dtype.kind, hasattr(x, "shape"), hasattr(y.sum(), "shape"), hasattr(n, "shape"),
            callable(x), isinstance(x, (np.ndarray, list)), issubclass(type(y), np.ndarray),
            x.dtype.type is np.float64, y.__class__ is np.ndarray, isinstance(range(3), range),
            type(None), type(x) is type(y), type(y).__name__,
        ]  # fmt: skip

    check(f, data(3), "s", 3)


def test_attributes_that_need_no_data():
    def f(x):
        y = x.T * 2
        return (
            y.shape, y.ndim, y.size, y.dtype, y.itemsize, y.nbytes, len(y), x.strides, y.T.strides,
            x.flags.c_contiguous, x.T.flags.f_contiguous, y.flags.writeable, x.T.base is x,
            (x + 1).base is None, x.flags.owndata, np.shape(y), np.ndim(y), np.size(y),
            x.dtype.name, x.dtype.str, np.iscomplexobj(y), np.result_type(x, np.float32),
            np.may_share_memory(x, x.T), np.shares_memory(x, y), x.T.shape[::-1],
        )  # fmt: skip

    e = np_compile.explain(np_compile.compile(f, backend="eager"))(data(3, 4))
    assert e.breaks == []
    check(f, data(3, 4), alias=False)


def test_is_identity_of_arrays():
    def f(x):
        y = x
        y += 1
        z = np.add(x, 1, out=x)
        return y is x, z is x, x.T is x.T, x[...] is x, x.view() is x, np.asarray(x) is x

    check(f, data(3))


def test_one_array_in_two_places_of_what_numpy_gives():
    def f(n):
        i, j = np.diag_indices(n)
        j += 1
        return i, j, i is j

    def g(x):
        p = np.diag_indices_from(x)
        p[1][0] = 2
        return p, x[p], p[1] is p[0]

    check(f, 3)
    check(g, data(3, 3))
    check(g, data(3, 3), backend="native")


# -- builtins ----------------------------------------------------------------------------------


def test_builtins_on_arrays():
    def f(x, y):
        return (
            max(x), min(x), sum(x), abs(x), len(x), list(enumerate(x)), list(zip(x, y,
            strict=True)),
            max(x.sum(), y.sum()), min(x[0], y[0], x[1]), sum([x, y]), sum(x, start=10),
            round(x[0], 2),
            divmod(x, y), pow(x, 2), any(x > 0), all(x > 0), list(reversed(x)), sorted(x),
            tuple(x), round(float(x[0])), abs(x[0]), max([1, 2]), sum(range(5)), -x, +x,
        )  # fmt: skip

    check(f, data(4), data(4, seed=1))


def test_a_function_of_the_user_among_the_builtins(monkeypatch):
    def halved(a):  # as profilers and printing tools put theirs there
        return np.multiply(a, 0.5)

    def f(x):
        return halved_everywhere(np.sin(x)) + 1  # noqa: F821

    monkeypatch.setattr(builtins, "halved_everywhere", halved, raising=False)
    check(f, data(3))


def test_builtins_on_two_dimensional_arrays():
    def f(x):
        return (
            sum(x),
            len(x),
            [r.sum() for r in x],
            max(x[:, 0]),
            list(zip(*x, strict=True)),
            abs(x),
        )

    check(f, data(3, 3))


def test_the_math_module_on_numpy_scalars():
    def f(x):
        s = abs(x).sum()
        return math.sqrt(s), math.floor(s), math.isnan(s), x * math.exp(-s), math.hypot(x[0], x[1])

    check(f, data(3))


def test_printing_and_formatting():
    def f(x):
        x = np.round(x * 8) / 4
        print("array", x, x.shape, sep=" | ")
        print(f"{x[0]:.3f} {x.sum()!r} {x.mean():>10}", end="!\n")
        text = str(x) + repr(x) + format(x[0], ".2f") + "%.1f" % x[1] + "{:.1e}".format(x[2])  # noqa: UP031, UP032
        print(np.array2string(x, precision=1), np.array_repr(x))
        return text, f"{x.dtype} {x.shape}"

    check(f, np.arange(5.0))


def test_prints_stand_in_order_with_other_effects():
    def f(x, log):
        print("start")
        x += 1
        log.append("a")
        print(x[0])
        x *= 2
        log.append("b")
        print(x[0])
        return x

    check(f, np.arange(3.0), [])


def test_deepcopy_and_copy():
    def f(x, state):
        a, b = copy.copy(x), copy.deepcopy(state)
        a += 1
        b["w"] += 1
        return a, b, x, state

    check(f, data(3), {"w": data(3, seed=1)})


def test_sorting_by_key_and_dict_of_arrays():
    def f(x):
        table = {f"row{i}": r for i, r in enumerate(x)}
        order = sorted(table, key=lambda k: table[k].sum(), reverse=True)
        best = max(table.items(), key=lambda kv: kv[1].max())
        return order, best, [table[k] for k in order]

    check(f, data(4, 3))


def test_in_operators_and_equality():
    def f(x):
        return (2.0 in x, 99.0 in x, (x == x).all(), bool((x != x).any()), x.sum() == x.sum())

    check(f, np.arange(4.0))


def test_boolean_logic_on_arrays_and_scalars():
    def f(x):
        m = (x > 0) & (x < 1) | ~(x > -1) ^ (x == 0)
        s = (not (x > 5).any() and (x < 100).all()) or x.sum() > 0
        return m, s, m.sum(), x[m].size

    check(f, data(9))


def test_ellipsis_of_index_kinds():
    def f(x):
        i = np.array([0, 2])
        return [
            x[0], x[-1], x[1:], x[:, 1], x[..., 0], x[None], x[:, None, 1], x[i], x[i, i], x[i][:,
            i],
            x[[0, 1], [1, 0]], x[x > 0], x[np.array([True, False, True])], x[1:, i], x[i, 1:],
            x[np.ix_(i, i)], x[()], x[...], x[2, 2], x[(0, 1)], x[slice(0, 2)], x[::2, ::-1],
            x[np.newaxis, ..., np.newaxis], x[np.int64(1)], x[True], x[:0],
        ]  # fmt: skip

    check(f, data(3, 3))


def test_threads_started_inside_the_function():
    def f(x):
        out = [None, None]

        def work(k):
            out[k] = k * 2

        threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return x * out[1]

    check(f, data(3))


def test_is_compiling_and_disable():
    @np_compile.disable
    def plain(x):
        assert type(x) is np.ndarray
        assert not np_compile.is_compiling()
        return x * 2

    def f(x):
        return plain(x + 1) + 1, np_compile.is_compiling()

    fast, _ = compiled(f)
    r, inside = fast(np.zeros(2))
    assert r.tolist() == [3, 3]
    assert inside
    assert not np_compile.is_compiling()


def test_randomness_is_numpys_own_stream():
    def f(n):
        np.random.seed(3)
        a = np.random.rand(n) + np.random.normal(size=n)
        rng = np.random.default_rng(7)
        b = rng.standard_normal((n, 2)) @ np.ones(2)
        rng.shuffle(b)
        return a * b, rng.integers(0, 9, 3), np.random.permutation(4), rng.choice(a, 2)

    check(f, 5)


def test_a_generator_object_as_argument_advances():
    def f(rng, x):
        return rng.normal(size=3) + x, rng.random()

    check(f, np.random.default_rng(1), data(3), new=False)


def test_results_of_every_python_kind():
    def f(x):
        return {
            "none": None, "bool": True, "int": 3, "float": 0.5, "complex": 1j, "str": "s",
            "bytes": b"b", "list": [x, [x + 1]], "tuple": (x,), "set": {1}, "range": range(3),
            "slice": slice(1, 2), "dtype": x.dtype, "type": np.float32, "scalar": x.sum(),
            "function": len, "module": math,
        }  # fmt: skip

    r = compiled(f)[0](data(3))
    w = f(data(3))
    for k in w:
        assert type(r[k]) is type(w[k]), k
    assert r["module"] is math
    assert r["range"] == range(3)
    assert type(r["list"][1][0]) is np.ndarray


# -- code given as text, names looked up by text -------------------------------------------------

OFFSET = 3


def _tripled(x):
    return x * 3


def test_eval_exec_and_globals():
    def evaluated(x):
        return (
            eval("np.sin(x) + OFFSET"),
            eval("y * 2", {"y": x}),
            [eval("k + OFFSET") for k in (1, 2)],
        )

    def executed(x):
        inside = {}
        exec("y = np.cos(x) * 2\ndef g(z): return np.exp(z) + OFFSET", globals() | {"x": x}, inside)
        return inside["y"], inside["g"](x * 1)

    def looked_up(x):
        return globals()["OFFSET"], "np" in globals(), locals()["x"], globals()["_tripled"](x)

    for f in (evaluated, executed, looked_up):
        check(f, data(4))


def test_code_given_as_text_sees_locals_as_python_gives_them():
    def executed(x):
        y = 1.0
        exec("y = 2.0")  # nothing that the function sees
        return x * y, eval("y + k", None, {"y": y, "k": 2})

    def of_a_cell(x):
        y = 1.0

        def g():
            return y

        exec("y = 2.0")
        return x * y * g()

    def by_name(x):
        names = {"a": 2.0}
        exec("b = a * 2", globals=names)  # a TypeError before Python 3.13
        return x * names["b"] + eval("a", locals={"a": 1.0})

    for f in (executed, of_a_cell, by_name):
        check(f, data(4))


def test_a_global_made_by_its_name():
    def f(x):
        globals()["_made"] = x * 2
        return globals()["_made"] + 1

    try:
        fast, _ = compiled(f)
        for k in range(2):
            x = data(4, seed=k)
            np.testing.assert_array_equal(fast(x), x * 2 + 1)
            np.testing.assert_array_equal(globals()["_made"], x * 2)
            assert type(globals()["_made"]) is np.ndarray
    finally:
        del globals()["_made"]


# -- threads of the function's own ---------------------------------------------------------------


def test_threads_that_a_function_starts():
    def mapped(x):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            rows = [row * 2 for row in x] * 20
            return list(pool.map(lambda r: np.sin(r).sum() + np.cos(r).prod(), rows))

    def stored(x):
        out = np.zeros(x.shape)

        def work(i):
            out[i] = np.sqrt(np.abs(x[i])) * 2

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(x))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return out + 1

    for f in (mapped, stored):
        for _ in range(5):
            check(f, data(4, 3), plain="auto")


# -- shape, dtype and size of an array changed where it is -----------------------------------------


@pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")
@pytest.mark.parametrize("made", [False, True])
def test_an_array_changed_in_place(made):
    def shape(x):
        y = x * 2 if made else x
        view = y[1:]
        y.shape = (2, 3)
        y[0, 1] = 7.0
        return y, view, y.T.shape

    def dtype(x):
        y = x * 2 if made else x
        y.dtype = np.int64
        y[0] += 1
        return y, y.dtype

    def size(x):
        y = x * 2
        y.resize((2, 2), refcheck=False)
        return y, y.shape, y + 1

    for f in (shape, dtype, size):
        check(f, data(6))


RESIZED = {
    "part": (lambda x: x[1:], (3, 3)),
    "part_to_more": (lambda x: x[1], 9),
    "column": (lambda x: x.T[0], 4),
    "turned": (lambda x: (x * 1).T, (2, 9)),
    "every_other": (lambda x: (x + 1)[::2], (2, 3)),
    "flat": (lambda x: x.ravel(), 12),
    "fortran": (lambda x: np.asfortranarray(x * 2), (2, 9)),
}


@pytest.mark.parametrize("name", RESIZED)
def test_views_that_are_resized(name):
    """They get another shape, or NumPy's error."""
    make, shape = RESIZED[name]

    def f(x):
        y = make(x)
        y.resize(shape, refcheck=False)
        y[0] = 7
        return y, x

    check(f, data(4, 3))


BY_FUNCTION = {np.tanh: "tanh", np.mean: "mean", np.fromiter: "fromiter"}
LISTED = [np.abs, np.median, np.float64]


@pytest.mark.parametrize("given", [np.sin, np.mean, np.abs, np.fromiter, np.linalg.norm])
def test_functions_of_numpy_are_the_same_wherever_they_come_from(given):
    def f(x, function, held):
        found = [
            BY_FUNCTION[np.tanh],
            BY_FUNCTION[np.mean],
            BY_FUNCTION[np.fromiter],
            LISTED.index(np.median),
        ]
        same = [
            function is np.sin, function is np.mean, function is np.abs, function is np.absolute,
            function is np.fromiter, function is np.linalg.norm, held is np.cos,
            function == np.mean, LISTED[0] == np.abs, np.abs == LISTED[0], np.sin in BY_FUNCTION,
            isinstance(function, np.ufunc), callable(function), function.__name__,
        ]  # fmt: skip
        return found, same, function is given, np.max(x)

    assert compiled(f)[0](data(4), given, np.cos) == f(data(4), given, np.cos)


def test_functions_of_numpy_that_are_given_back_are_numpys():
    def f(x, held):
        held.append(np.tan)
        return {np.cos: x.sum()}, (np.sin, np.mean), {np.log}, np.linalg.norm

    held = []
    table, pair, group, norm = compiled(f)[0](data(3), held)
    assert next(iter(table)) is np.cos
    assert pair[0] is np.sin
    assert pair[1] is np.mean
    assert next(iter(group)) is np.log
    assert norm is np.linalg.norm
    assert held[0] is np.tan


def test_functions_of_numpy_are_copied_and_pickled_as_numpys():
    def f(x):
        copies = copy.deepcopy({np.sin: np.cos}), pickle.loads(pickle.dumps([np.mean]))
        return copies, np.mean.__module__, np.sin.__name__

    assert compiled(f)[0](data(3)) == f(data(3))


# -- what functions are ------------------------------------------------------------------------


def relu(x):
    return np.maximum(x, 0)


def twice(x):
    return x * 2


@np_compile.compile(backend="eager")
def halved(x):
    return np.multiply(x, 0.5)


class Net:
    def __init__(self, act):
        self.act = act

    def uses(self, f):
        return self.act is f, self.act == f, self.act in (f,)


SLOPES = {relu: "step", twice: "constant", halved: "half"}
BY_NAME = {"relu": relu, "twice": twice, "halved": halved}


@pytest.mark.parametrize("act", [relu, twice, halved], ids=lambda f: f.__name__)
def test_a_function_is_the_same_one_however_it_is_reached(act):
    local = act

    def inner(f):
        return f is local

    def f(x, net, given):
        y = net.act(np.sin(x)) + given(x) + relu(x) + halved(x)
        return (
            y, given is act, net.act is act, BY_NAME[act.__name__] is given, SLOPES[act],
            SLOPES[net.act], SLOPES.get(given), net.uses(act), net.uses(given), inner(net.act),
            relu in BY_NAME.values(), list(SLOPES).index(given), {act: 1}[net.act],
            [name for name, g in BY_NAME.items() if g is act], (act is relu, act is twice),
            act is BY_NAME["relu"] or act is BY_NAME["twice"] or act is halved, given in SLOPES,
        )  # fmt: skip

    check(f, data(3), Net(act), act)


class Activated:
    def __init__(self, act):
        self.act = act

    def slope(self, x):
        y = self.act(x)
        if self.act is np.tanh:
            return 1 - y**2
        return y if cosine is not self.act else -np.sin(x)


@pytest.mark.parametrize("act", [np.tanh, np.cos, np.exp], ids=lambda f: f.__name__)
def test_functions_of_numpy_compared_by_identity(act):
    def f(x, layer):
        return layer.slope(np.sin(x) * 2) + 1

    check(f, data(3), Activated(act))
    check(lambda x, layer: np.cos(x) * (layer.act is np.tanh), data(3), Activated(act))
    check(lambda x, g: (g(x), g is np.tanh, np.cos is g, g is None, g == np.tanh), data(3), act)


def test_what_is_compared_by_identity():
    def of_numpy(x, f):
        return (f is np.tanh, x)

    def of_what_it_gives(x, f):
        return np.asarray(x) is x, np.tanh(x) is None, cosine(x) is x, f is x, np.pi is x

    assert compares_numpy(of_numpy)
    assert not compares_numpy(of_what_it_gives)


def test_what_numpy_reads_of_an_array_cannot_be_set():
    def f(x):
        y, told = x + 1, []
        for name in ("data", "ctypes", "device"):
            try:
                setattr(y, name, 3)
            except AttributeError:
                told.append(name)
        try:
            y.__array__("f4", copy=False)
        except ValueError as error:
            told.append(str(error))
        return told, y.device

    check(f, np.arange(3.0))
