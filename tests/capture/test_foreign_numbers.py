"""What NumPy reads by methods of its class: numbers of classes derived from Python's, and objects.
How often a method is called, and with what, is NumPy's own."""

import operator
from enum import Enum, IntEnum

import numpy as np
import pytest

import np_compile

from ..support import check


class Color(IntEnum):
    BLUE = 2


class Celsius(float):
    pass


class Phase(complex):
    pass


class Rank(int):
    __array_priority__ = 5

    def __radd__(self, other):
        return "Rank"


class Silent(float):
    __array_ufunc__ = None


class Rounded(float):
    def __float__(self):
        return 9.0

    def __array__(self, dtype=None, copy=None):
        return np.array(7.0)


NUMBERS = [Color.BLUE, Celsius(2.5), Phase(1, 2), Rank(2), Silent(2), Rounded(2.5), True]
BINARY = [operator.add, operator.mul, operator.pow, operator.lt, operator.iadd, np.add, np.clip]
STORING = [
    lambda x, v: x.__setitem__(0, v),
    lambda x, v: x.__setitem__(slice(None), v),
    lambda x, v: x.__setitem__(x > 1, [v]),
    lambda x, v: x.fill(v),
    lambda x, v: np.put(x, [0], v),
    lambda x, v: np.putmask(x, x > 1, v),
]


def _call(f, *arguments):
    try:
        return f(*arguments)
    except Exception as e:
        return type(e).__name__


@pytest.mark.parametrize("number", NUMBERS, ids=lambda v: type(v).__name__)
def test_numbers_of_derived_classes_are_strong_in_promotion(number):
    def f(x):
        made = [_call(op, y, number) for op in BINARY[:-1] for y in (x[:], x[1])]
        made += [_call(op, number, x) for op in BINARY[:4]]
        return made, _call(np.clip, x, 0, number), _call(np.where, x > 1, x, number)

    check(f, np.arange(3, dtype="f4"))


class Divided(float):
    def __truediv__(self, other):
        return NotImplemented

    def __rsub__(self, other):
        return "Divided"


ARITHMETIC = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, divmod,
]  # fmt: skip


@pytest.mark.parametrize(
    "number", [*NUMBERS, Divided(2.5), 2.5, 1j], ids=lambda v: type(v).__name__
)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8"])
def test_python_computes_with_scalars_that_are_its_own_numbers(number, dtype):
    """Left of a float64 scalar, and right of one that leaves the answer to it."""

    def f(x):
        made = [_call(op, number, s) for op in ARITHMETIC for s in (x[0], x.sum(), x[:2], x * 0)]
        return made, [_call(op, s, number) for op in ARITHMETIC for s in (x[0], x.sum())]

    check(f, np.array([2, 4], dtype))


@pytest.mark.parametrize("dtype", ["f4", "i1", "u8"])
def test_numbers_of_derived_classes_are_pythons_where_they_are_stored(dtype):
    class Whole(int):
        pass

    def f(x):
        told = []
        for store in STORING:
            for v in (Whole(300), Whole(-1), Celsius(2.5), Celsius("nan")):
                y = x + x.dtype.type(0)
                told.append((_call(store, y, v), y))
        return told

    check(f, np.arange(3).astype(dtype))


def test_numbers_of_a_derived_class_are_parameters():
    f = np_compile.compile(lambda x, t: x * t, backend="eager")
    x = np.arange(3, dtype="f4")
    for k in range(4):
        got = f(x, Celsius(k / 2))
        assert got.dtype == np.float64
        np.testing.assert_array_equal(got, x * np.float64(k / 2))
    assert len(np_compile.recompiles(f)) == 1


class Told:
    """Notes how it is read."""

    def __init__(self, value):
        self.value, self.calls = value, []

    def __array__(self, dtype=None, copy=None):
        self.calls.append((dtype, copy))
        return np.array(self.value, dtype)


class Place:
    def __init__(self):
        self.calls = []

    def __index__(self):
        self.calls.append("index")
        return 1

    def __float__(self):
        self.calls.append("float")
        return 2.5


class Sequence:
    def __init__(self):
        self.calls = []

    def __len__(self):
        self.calls.append("len")
        return 3

    def __getitem__(self, k):
        self.calls.append(k)
        return [1.0, 2.0, 3.0][k]


class Interface:
    def __init__(self):
        self.value, self.calls = np.arange(3.0), []

    @property
    def __array_interface__(self):
        self.calls.append("interface")
        return np.arange(3.0).__array_interface__


class Asked:
    def __init__(self):
        self.calls = []

    def __array_function__(self, f, types, arguments, options):
        self.calls.append((f.__name__, [isinstance(a, np.ndarray) for a in arguments]))
        return len(arguments)


class Prior(Told):
    __array_priority__ = 10

    def __radd__(self, other):
        return "Prior"


OBJECTS = [
    lambda: Told([1.0, 2.0, 3.0]), lambda: Told(2.0), Place, Sequence, Interface, Asked,
    lambda: Prior([1.0, 2.0, 3.0]),
]  # fmt: skip
READING = [
    lambda x, o: np.add(x, o),
    lambda x, o: x + o,
    lambda x, o: operator.iadd(x, o),
    lambda x, o: x < o,
    lambda x, o: np.result_type(x, o),
    lambda x, o: np.array(o) * x,
    lambda x, o: np.asarray(o, "f4") * x,
    lambda x, o: x.fill(o),
    lambda x, o: x.__setitem__(slice(None), o),
    lambda x, o: x[o],
    lambda x, o: x[:o],
    lambda x, o: np.stack([x, x]).sum(o),
    lambda x, o: x.round(o),
    lambda x, o: np.roll(x, o),
    lambda x, o: np.zeros(o) + x[0],
    lambda x, o: np.dot(x, o),
    lambda x, o: np.searchsorted(x, o),
    lambda x, o: np.tile(x, o),
    lambda x, o: np.eye(2, k=o) + x[0],
]


@pytest.mark.parametrize("made", OBJECTS, ids=lambda o: type(o()).__name__)
def test_objects_are_read_as_numpy_reads_them(made):
    def f(x, objects):
        return [_call(read, x[:], o) for read, o in zip(READING, objects, strict=True)]

    def observed(f):
        x, objects = np.arange(3.0), [made() for _ in READING]
        return f(x, objects), x, [o.calls for o in objects]

    fast = np_compile.compile(f, backend="eager")
    for _ in range(2):
        (got, x, calls), (want, y, asked) = observed(fast), observed(f)
        assert calls == asked
        assert repr(got) == repr(want)
        np.testing.assert_array_equal(x, y)


def test_an_object_that_holds_what_is_computed_is_read_as_numpy_reads_it():
    def f(x):
        o = Told(x * 2)
        x[:] = o
        return np.array(o), np.dot(x, o), o.calls

    check(f, np.arange(3.0))


class Mode(str, Enum):  # noqa: UP042 - as programs have them
    EDGE = "edge"


def test_classes_without_methods_of_their_own_are_constants():
    def f(x):
        return np.pad(x * 2, 1, mode=Mode.EDGE) + 1

    check(f, np.arange(4.0))
    (segment,) = np_compile.explain(np_compile.compile(f))(np.arange(4.0)).segments
    assert segment.calls == ["multiply", "pad", "add"]
