"""Operators of an array and something that is neither array nor number: both sides have a say."""

import cmath
import copy
import datetime
import decimal
import fractions
import math
import operator
import warnings
from typing import ClassVar

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import np_compile
from np_compile import config

from ..support import check, compiled, data

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.matmul, operator.and_, operator.lshift, divmod, operator.lt, operator.ge,
    operator.eq, operator.ne, operator.iadd, operator.imul, operator.imatmul, operator.ipow,
]  # fmt: skip


def _answering(**attributes):
    """A class whose reflected operators say what they were called with."""

    def answer(name):
        def method(self, other):
            return name, isinstance(other, np.ndarray), np.shape(other)

        return method

    names = [f"__r{n}__" for n in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")]
    names += ["__rmatmul__", "__rand__", "__rdivmod__"]
    names += [f"__{n}__" for n in ("lt", "le", "gt", "ge", "eq", "ne")]
    return type("Answering", (), {n: answer(n) for n in names} | attributes | {"__hash__": None})


class OwnArray(np.ndarray):
    def __rmul__(self, other):
        return "OwnArray"


class Silent:
    __array_ufunc__ = None


class Ufuncs:
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return ufunc.__name__, [np.shape(x) for x in inputs if x is not self]


class Failing:
    __array_priority__ = 5

    def __rmul__(self, other):
        return NotImplemented


OPERANDS = {
    "priority": _answering(__array_priority__=10)(),
    "low priority": _answering(__array_priority__=-5)(),
    "no priority": _answering()(),
    "no ufuncs": _answering(__array_ufunc__=None)(),
    "nothing": Silent(),
    "ufuncs": Ufuncs(),
    "fails": Failing(),
    "object": object(),
    "None": None,
    "str": "a",
    "bytes": b"a",
    "dict": {},
    "decimal": decimal.Decimal("1.5"),
    "fraction": fractions.Fraction(1, 2),
    "date": datetime.date(2020, 1, 1),
    "timedelta": np.timedelta64(3, "s"),
    "csr_matrix": scipy.sparse.csr_matrix(np.eye(3)),
    "csr_array": scipy.sparse.csr_array(np.eye(3)),
    "matrix": np.matrix(np.eye(3)),
    "masked": np.ma.masked_less(np.eye(3), 1),
    "own array": np.ones((3, 3)).view(OwnArray),
    "longdouble": np.longdouble(2),
    "dates": np.array(["2020-01-01"] * 3, "M8[D]"),
    "records": np.zeros(3, [("a", "f8")]),
}


def _plainly(x):
    """What can be compared: sparse matrices and masked arrays as arrays, with their type."""
    if scipy.sparse.issparse(x):
        return type(x).__name__, x.toarray()
    if isinstance(x, np.ma.MaskedArray):
        return type(x).__name__, x.filled(7), np.ma.getmaskarray(x)
    if isinstance(x, tuple):
        return tuple(_plainly(v) for v in x)
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
        return type(x).__name__, np.asarray(x)
    return x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("name", OPERANDS)
def test_both_sides_have_their_say(name, scalar):

    def observed(f, x):
        try:
            return _plainly(f(x, copy.deepcopy(OPERANDS[name])))
        except Exception as e:
            # Python names the operator and the types of what its last attempt was.
            return type(e), "" if scalar and type(e) is TypeError else str(e)

    def direct(op):
        return lambda x, y: op((x * 1).sum() if scalar else x * 1, y)

    def reflected(op):
        return lambda x, y: op(y, (x * 1).sum() if scalar else x * 1)

    for op in OPERATORS:
        for way in (direct, reflected):
            if name == "bytes" and scalar:  # a NumPy scalar is a buffer, which may be appended
                continue
            f = way(op)
            x = data(3, 3)
            want = observed(f, x)
            fast, _ = compiled(f)
            for _ in range(2):
                got = observed(fast, x)
                assert repr(got) == repr(want), (op.__name__, way.__name__)


def test_a_class_of_the_users_goes_on_recording():
    class Twice:
        __array_ufunc__ = None

        def __rmul__(self, other):
            return other * 2

    checked = check(lambda x, t: np.sin(x) * t + 1, data(4), Twice(), fullgraph=True)
    assert checked.compiles == 1


def test_errors_name_numpys_type():
    check(lambda x: x(), data(3))
    check(lambda x: x + object(), data(3))
    check(lambda x: {}[x], data(3))
    check(lambda x: "abc"[x], data(3))
    check(lambda x: [1][x * 1.0], data(3))
    check(lambda x: "a" + x, data(3))
    check(lambda x: "".join([x]), data(3))


class Holder:
    """What is read through `__array__` alone, which gives what the function has computed."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(Holder(x * 2)),
        lambda x: np.add(x, Holder(x * 2)),
        lambda x: x + Holder(x * 2),
        lambda x: Holder(x * 2) - x,
        lambda x: x < Holder(x * 2),
        lambda x: np.asarray(Holder(x * 2)) + 1,
        lambda x: np.concatenate([x, Holder(np.ones(2))]),
        lambda x: np.array([Holder(x), Holder(x + 1)]),
        lambda x: np.bincount(Holder(np.array([1, 2]))) + x[0],
        lambda x: np.where(x > 1, Holder(x), 0.0),
        lambda x: np.average(x, weights=Holder(x + 1)),
        lambda x: np.sum(a=Holder(x * 2)),
        lambda x: np.mean(a=Holder(x), axis=0) + np.clip(1.0, a_min=Holder(x), a_max=None),
        lambda x: np.array(object=[x, x + 1]) + np.full((2, 4), fill_value=Holder(x)),
        lambda x: np.sort(a=np.array([3, 1])) + np.dot(a=Holder(x), b=[1, 2, 3, 4]),
        lambda x: scipy.linalg.norm(Holder(x * 2)) + 1,
        lambda x: np.polynomial.polynomial.polyval(2.0, Holder(x * 2)),
        lambda x: np.ma.masked_array(Holder(x * 2)).sum(),
        lambda x: np.sum(a=Holder(x * 3)),
    ],
)
@pytest.mark.parametrize("plain", ["never", "always"])
def test_array_likes_that_hold_what_is_computed(f, plain, monkeypatch):
    monkeypatch.setattr(config, "plain", plain)
    check(f, np.arange(4.0))


class OfOldNumPy:
    """What takes no `copy`, of which NumPy warns where it is asked for one."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None):
        return self.x


@pytest.mark.parametrize("lends", [False, True])
def test_what_array_likes_are_asked_for_they_are_asked_for_once_numpy_runs(lends):
    def f(x):
        y = x + 1
        masked = np.ma.masked_array(y) if lends else None  # keeps its memory: NumPy runs
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            z = np.array(OfOldNumPy(y), copy=True)
        return z, z is y, [str(w.message) for w in told], masked is None

    check(f, np.arange(3.0))


def test_array_likes_among_the_arguments_once_numpy_runs():
    def stacked(v, u):
        return np.stack([v, u]) + np.mean(v), np.maximum(v, u)

    made = np_compile.compile(stacked)
    for n in range(2, 9):
        v, u = Holder(np.arange(n) * 1.0), Holder(np.ones(n))
        for got, want in zip(made(v, u), stacked(v, u), strict=True):
            np.testing.assert_array_equal(got, want)


class Number:
    """What is a number by its sum."""

    def __init__(self, values):
        self.values = values

    def __float__(self):
        return self.values.sum()

    def __complex__(self):
        return complex(self.values.sum(), 1)


@pytest.mark.filterwarnings("ignore:.*strict subclass:DeprecationWarning")
def test_numbers_of_the_users_hold_what_is_computed():
    def f(x):
        a = Number(x * 2)
        return (
            float(a),
            math.sqrt(a),
            complex(a),
            cmath.phase(a),
            a.__float__() + x,
        )

    check(f, np.arange(4.0))


class Asking(Holder):
    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values)


@pytest.mark.parametrize("backend", ["native", "eager"])
@pytest.mark.parametrize("plain", ["never", "always"])
@pytest.mark.parametrize("kind", [Holder, Asking])
def test_what_array_likes_give_is_itself(kind, backend, plain):
    """`np.asarray` of an object is the array that its `__array__` gives, no view of it."""

    def f(x, o):
        made = kind(x * 2)
        return [
            np.asarray(o) is o.values,
            np.asanyarray(o) is o.values,
            np.array(o, copy=None) is o.values,
            np.asarray(o, dtype=o.values.dtype) is o.values,
            np.asarray(o, dtype="i1") is o.values,
            np.asarray(made) is made.values,
            np.asarray(o).base is o.values.base,
        ]

    fast = np_compile.compile(f, backend=backend)
    with config.patch(plain=plain):
        for values in (np.arange(3.0), np.array(1.5), np.arange(6.0)[::2], np.ones(2)[::2]):
            assert fast(np.ones(2), kind(values)) == f(np.ones(2), kind(values))


class Filled:
    """What gives a new array each time: the part of a longer one that is in use."""

    def __init__(self, room, used):
        self.room, self.used = room, used

    def __array__(self, dtype=None, copy=None):
        return np.array(self.room[: self.used] * 2.0, dtype=dtype)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.asarray(Filled(x, 2)) * 2 + x[0],
        lambda x: np.add(x[:2], Filled(x, 2)),
        lambda x: np.concatenate([x[1:], Filled(x, 3)]),
        lambda x: np.where(x[:3] > 1, Filled(x, 3), 0.0),
    ],
)
def test_array_likes_that_compute_what_they_give(f):
    check(f, np.arange(4.0))


class Dual:
    """A value and its derivative, which answers for NumPy's functions of itself."""

    def __init__(self, value, slope):
        self.value, self.slope = value, slope

    def __mul__(self, other):
        slope = self.value * other.slope + self.slope * other.value
        return Dual(self.value * other.value, slope)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if ufunc is not np.multiply or method != "__call__":
            return NotImplemented
        return Dual(inputs[0], np.zeros_like(inputs[0], dtype=float)) * self


@pytest.mark.parametrize("compile_in", ["background", "call"])
def test_an_argument_comes_back_as_the_array_that_it_is(compile_in):
    def f(x):
        y = x * Dual(x, np.ones_like(x, dtype=float))
        return y.value, y.slope

    with config.patch(compile_in=compile_in):
        check(f, data(4), backend="native")


class Metres(np.ndarray):
    """Arrays with a power of a unit, found by which function NumPy asks for."""

    power = 1

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [x.view(np.ndarray) if isinstance(x, Metres) else x for x in inputs]
        powers = [getattr(x, "power", 0) for x in inputs]
        result = super().__array_ufunc__(ufunc, method, *plain, **kwargs)
        if not isinstance(result, np.ndarray):
            return result
        result = result.view(Metres)
        if ufunc is np.multiply:
            result.power = sum(powers)
        elif ufunc in (np.add, np.subtract):
            result.power = powers[0]
        else:
            raise TypeError(f"{ufunc.__name__} of a length")
        return result

    def __array_function__(self, function, types, args, kwargs):
        if function is np.sort:
            return "sorted"
        return super().__array_function__(function, types, args, kwargs)


def test_a_subclass_is_told_which_function_python_asks_for():
    def f(x):
        a = x.view(Metres)
        area = a * a * 2.0
        wrong = []
        for way in (lambda: a / a, lambda: np.sin(a), lambda: -a):
            try:
                way()
            except TypeError as e:
                wrong.append(str(e))
        total = area + area
        ends = max((np.sort(v) for v in (a, area)), key=len)
        return np.asarray(area), area.power, total.power, wrong, ends, np.asarray(total), x

    check(f, data(4))


class Noted(np.ndarray):
    """Arrays that note what NumPy asks of them, by a compiled method."""

    asked: ClassVar[list[str]] = []

    @np_compile.compile(backend="eager")
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if ufunc is np.sqrt:
            self.asked.append("sqrt")
        elif ufunc is np.add:
            self.asked.append(f"add.{method}")
        plain = [x.view(np.ndarray) if isinstance(x, Noted) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)


def test_a_compiled_method_is_told_so_too():
    def f(x):
        Noted.asked.clear()
        a = x.view(Noted)
        return np.sqrt(a), a + a, np.add.reduce(a), list(Noted.asked)

    check(f, data(4))


def test_records_among_arguments_of_numpy() -> None:
    def f(g, x):
        x += 1
        return [np.asarray(e) for e in g], np.array([g[0]]), x

    g = np.array([(2.5, 1), (3.5, 2)], dtype=[("a", "f8"), ("b", "i4")])
    got, want = np_compile.compile(f, backend="eager")(g, np.ones(2)), f(g, np.ones(2))
    assert repr(got) == repr(want)


@pytest.mark.parametrize("dtype", ["i8", "u1", "f8", "?"])
@pytest.mark.parametrize(
    "f",
    [
        lambda n, x: ([0] * n, n * (1, 2), [None] * (n + n)),
        lambda n, x: operator.imul([1], n),
        lambda n, x: operator.imul(n, [1, 2]),
        lambda n, x: [x * 2] * n,
        lambda n, x: (1.5,) * n,
    ],
)
def test_a_computed_number_repeats_a_list(f, dtype: str) -> None:
    def program(x):
        x = x + x
        return f(x.max(), x)

    def seen(g):
        try:
            return repr(g(np.array([1, 0], dtype)))
        except TypeError as e:
            return str(e)

    assert seen(np_compile.compile(program, backend="eager")) == seen(program)


def test_what_gives_a_bool_for_equal_is_in_an_array_or_not() -> None:
    class Unit:
        __array_ufunc__ = None

        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return self.n == 1

    def f(x, u):
        x = x + 1
        return u in x, 2.0 in x

    fast = np_compile.compile(f, backend="eager")
    for n in (1, 2):
        assert fast(np.ones(2), Unit(n)) == f(np.ones(2), Unit(n)) == (n == 1, True)


class Tagged(np.ndarray):
    pass


@pytest.mark.parametrize("other", [lambda x: x.view(Tagged), lambda x: x.view("M8[s]")])
def test_arrays_without_stand_ins_on_memory_of_others(other):
    def f(x, y):
        x[x > 0] = 9
        return [str(v) for v in y], y.view("i8").sum()

    for backend in ("eager", "native"):
        fast = np_compile.compile(f, backend=backend)
        for _ in range(2):
            x, z = np.arange(3), np.arange(3)
            assert fast(x, other(x)) == f(z, other(z))


def test_an_error_that_numpy_drops_as_it_asks_for_memory():
    def f(x, w, k):
        w[k] = w
        return np.vectorize(lambda v: v + 1)(x)

    for backend in ("eager", "native"):
        fast = np_compile.compile(f, backend=backend)
        for x in (data(3), np.zeros(())):
            with pytest.raises(IndexError, match="out of bounds"):
                fast(x, np.ones(1), np.array([2]))
            np.testing.assert_array_equal(fast(x, np.ones(1), np.array([0])), x + 1)


class Units:
    """Numbers that say themselves what a ufunc of theirs gives, by a function that is compiled."""

    def __init__(self, v):
        self.v = np.asarray(v)

    @np_compile.compile(backend="eager")
    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        result = ufunc(*(x.v if isinstance(x, Units) else x for x in inputs), **kwargs)
        if out is None:
            return Units(result)
        out[0].v[...] = result
        return out[0]


def test_what_a_class_answers_may_be_compiled():
    def f(x, y):
        a, b, made = Units(x + 1), Units(y), Units(np.zeros(len(x)))
        np.multiply(a, b, out=made)
        return made.v, np.add(a, y).v, np.sqrt(a).v

    check(f, data(4), data(4, seed=1))
