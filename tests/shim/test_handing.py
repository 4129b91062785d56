"""What runs in NumPy: arrays that torch cannot hold, names and cases that the shim lacks."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch

from .support import assert_same, outcome, shim

pytestmark = pytest.mark.handing


def same(got, expected):
    """Equal in value, dtype, shape and type, an array of the shim's for one of NumPy's."""
    if isinstance(expected, (tuple, list)):
        assert type(got) is type(expected)
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            same(g, e)
    elif type(expected) is np.ndarray:
        assert type(got) is shim.ndarray
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        assert got.strides == expected.strides
        np.testing.assert_array_equal(shim.to_numpy(got), expected)
    else:
        assert type(got) is type(expected)
        assert got == expected or got is expected


X = np.arange(6.0).reshape(2, 3)

# Programs of a namespace and of an array of it.
PROGRAMS = {
    "objects": lambda m, x: m.array([1, "two", None], dtype=object),
    "objects_of": lambda m, x: x.astype(object) + 1,
    "strings": lambda m, x: m.array(["a", "bc"]) == "bc",
    "bytes": lambda m, x: m.array([b"a", b"bc"]).view("u1"),
    "longdouble": lambda m, x: x.astype(m.longdouble) * 2,
    "longdouble_and_float": lambda m, x: x[0] + m.ones(3, m.longdouble),
    "longdouble_scalar": lambda m, x: m.longdouble(3) * x,
    "dates": lambda m, x: m.arange("2001-01", "2001-05", dtype="M8[M]")[1:] - m.datetime64("2001"),
    "fields": lambda m, x: m.array([(1, 2.5), (3, 4.5)], dtype="i4,f8")["f1"] * 2,
    "byte_order": lambda m, x: x.astype(">f8")[::-1],
    "byte_order_sum": lambda m, x: x.astype(">f8").sum(axis=0),
    "attributes": lambda m, x: (m.array(["a"]).itemsize, m.array(["a"]).T.shape),
    "sort": lambda m, x: m.sort(m.array(["b", "a"])),
    "concatenate": lambda m, x: m.concatenate([m.array(["b"]), m.array(["abc"])]),
    "r_": lambda m, x: m.r_[x[0], 0, 1:3],
    "mgrid": lambda m, x: m.mgrid[:2, :3],
    "vectorize": lambda m, x: m.vectorize(lambda v: v + 1)(x),
    "frompyfunc": lambda m, x: m.frompyfunc(lambda a, b: a + b, 2, 1)(x, 1),
    "poly1d": lambda m, x: m.poly1d([1, 2])(x),
    "roots": lambda m, x: m.roots([1, -3, 2]),
    "windows": lambda m, x: m.hanning(7.0) + m.bartlett(np.float64(7)),
    "packbits": lambda m, x: m.unpackbits(m.packbits([1, 0, 1])),
    "fromiter": lambda m, x: m.fromiter((i * i for i in range(3)), int),
    "frombuffer": lambda m, x: m.frombuffer(b"abcd", m.uint8),
    "stride_tricks": lambda m, x: m.lib.stride_tricks.sliding_window_view(x, 2, axis=1),
    "histogramdd": lambda m, x: m.histogramdd(x.T, bins=2),
    "polynomial": lambda m, x: m.polynomial.polynomial.polyval(x, [1, 2, 3]),
    "pad_median": lambda m, x: m.pad(x, 1, mode="median"),
    "quantile_weights": lambda m, x: m.quantile(
        x[0], 0.3, weights=m.array([1.0, 2.0, 3.0]), method="inverted_cdf"
    ),
    "matmul_axes": lambda m, x: m.matmul(x, x, axes=[(0, 1), (1, 0), (0, 1)]),
    "ufunc_at": lambda m, x: (m.matmul.signature, m.add.nin, m.add.types[:2]),
    "broadcast": lambda m, x: m.broadcast(x, x[0]).shape,
    "nditer": lambda m, x: [float(v) for v in m.nditer(x)],
    "ndenumerate": lambda m, x: [k for k, _ in m.ndenumerate(x)],
    "callback": lambda m, x: m.apply_along_axis(lambda v: v[::-1], 1, x.astype(object)),
    "char": lambda m, x: m.char.upper(m.array(["a", "b"])),
    "array2string": lambda m, x: m.array2string(x, precision=2),
    "ndarray": lambda m, x: m.ndarray((2,), ">i4", b"\0\0\0\1\0\0\0\2"),
    "flat": lambda m, x: x.flat[2:4],
    "diff_of_nothing": lambda m, x: m.diff([1, 2], n=0),
    "trimmed_list": lambda m, x: m.trim_zeros([0, 1, 2, 0]),
    "trimmed_tuple": lambda m, x: m.trim_zeros((0, 1)),
    "edges_of_range": lambda m, x: m.histogram_bin_edges(x, 2, m.array([0, 1], "f4").astype("f4")),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_numpy(name):
    same(PROGRAMS[name](shim, shim.array(X)), PROGRAMS[name](np, X.copy()))


WRONG = {
    "axis": lambda m, x: m.sum(x, axis=5),
    "shapes": lambda m, x: x + m.ones(4),
    "dtype": lambda m, x: m.zeros(3, "spam"),
    "keyword": lambda m, x: m.add(x, x, spam=1),
    "index": lambda m, x: x[7],
    "object": lambda m, x: m.array([None], dtype=object) + 1,
    "correction": lambda m, x: m.array(x).std(correction=1),
    "bool_weights": lambda m, x: m.histogram(x, [0, 1, 3], weights=x > 1),
    "bins": lambda m, x: m.histogram(m.array([1, 1 + 2e-16]), bins=10),
    "inverse": lambda m, x: m.linalg.inv(m.zeros((2, 2))),
    "tolerances_of_no_matrix": lambda m, x: m.linalg.pinv(m.eye(2), rcond=m.ones(3)),
    "object_from_an_int": lambda m, x: m.sin(2**70),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_numpys(name):
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        WRONG[name](np, X)
    with pytest.raises(type(theirs.value)) as ours:
        WRONG[name](shim, shim.array(X))
    assert str(ours.value) == str(theirs.value)
    assert type(ours.value) is type(theirs.value)


def test_written_in_place():
    a = shim.array(X)
    for v in shim.nditer(a, op_flags=["readwrite"]):
        v[...] = 2 * v
    np.testing.assert_array_equal(shim.to_numpy(a), 2 * X)
    a.flat[1:3] = 7
    assert np.asarray(a.flat).tolist() == a.ravel().tolist()
    shim.testing.assert_array_equal(a.flat, a.ravel())
    assert a[0].tolist() == [0, 7, 7]
    view = shim.lib.stride_tricks.as_strided(a, (3,), (8,))
    view[0] = -1
    assert a[0, 0] == -1
    words = shim.array(["a", "b"])
    part = words[1:]
    part[0] = "c"
    assert words.tolist() == ["a", "c"]
    out = shim.zeros((2, 3), dtype=np.longdouble)
    assert shim.add(a, 1, out=out) is out
    assert out[0, 0] == 0


def test_resize_in_place():
    a = shim.arange(6)
    a.resize((2, 2))
    assert a.tolist() == [[0, 1], [2, 3]]
    a.resize()
    a.resize(6)
    assert a.tolist() == [0, 1, 2, 3, 0, 0]
    part = a[1:]
    with pytest.raises(ValueError, match="does not own its data"):
        part.resize(2)
    with pytest.raises(ValueError, match="negative dimensions not allowed"):
        shim.arange(3).resize(-1)


def test_scalars_are_numpys():
    a = shim.array(X)
    assert type(a[1, 2]) is np.float64
    assert type(a.sum()) is type(shim.sum(a)) is np.float64
    assert shim.isnan(a[0, 0]) is np.False_
    assert [type(v) for v in shim.divmod(5, 3)] == [np.int64, np.int64]
    assert type(shim.array(3.0)) is shim.ndarray
    t = torch.ones(2, requires_grad=True)
    assert type(shim.from_tensor(t).sum()) is shim.ndarray


def test_classes():
    class Named(shim.ndarray):
        def __new__(cls, values, name):
            made = shim.asarray(values).view(cls)
            made.name = name
            return made

        def __array_finalize__(self, other):
            self.name = getattr(other, "name", None)

    a = Named([1, 2], "n")
    assert isinstance(a, np.ndarray)
    assert isinstance(a, shim.ndarray)
    assert issubclass(Named, shim.ndarray)
    assert type(a + shim.ones(2)) is type(shim.ones(2) + a) is Named
    assert (a + 1).name == "n"
    assert type(a.view(shim.ndarray)) is shim.ndarray
    assert isinstance(shim.poly1d([1]), shim.poly1d)
    assert isinstance(shim.add, shim.ufunc)


def test_answers_of_others():
    class Other:
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            return ufunc, method

    class Values:
        def __array__(self, dtype=None, copy=None):
            return shim.array([1.0, 2.0])

    assert shim.add(shim.ones(2), Other()) == (np.add, "__call__")
    assert shim.ones(2) + Other() == (np.add, "__call__")
    assert (shim.ones(2) + Values()).tolist() == [2, 3]
    assert np.add == shim.add


def test_objects_give_back_the_arrays_they_were_made_of():
    a, b = shim.arange(6.0), shim.ones(6)
    walk = shim.nditer([a, b], ["external_loop"], [["readwrite"], ["readonly"]])
    assert walk.operands[0] is a
    assert walk.operands[1] is b
    part, _ = next(walk)
    assert shim.shares_memory(part, a)
    assert not shim.may_share_memory(part, b)
    both = shim.broadcast(a, b)
    assert [i.base is x for i, x in zip(both.iters, (a, b), strict=True)] == [True, True]
    assert both.iters[0] is both.iters[0]
    bits = shim.random.default_rng(3).bit_generator
    draws = shim.random.Generator(bits)
    assert draws.bit_generator is bits
    assert draws.random == draws.random
    assert draws.random != draws.normal
    assert len({draws.random, draws.random}) == 1
    state = shim.random.RandomState(5).__getstate__()
    assert state["bit_generator"] == "MT19937"


def test_structs_describe_numbers():
    a = shim.arange(4.0)[::-1]
    holder = type("Holder", (), {"__array_struct__": a.__array_struct__})()
    read = np.asarray(holder)
    assert read.tolist() == [3, 2, 1, 0]
    read[0] = 7
    assert a[0] == 7
    a.flags.writeable = False
    assert not np.asarray(a).flags.writeable
    for words in (["a", "bc"], np.array(["2001"], "M8[D]"), [(1, None)]):
        assert not hasattr(shim.array(words, getattr(words, "dtype", "O")), "__array_struct__")
    assert np.asarray(shim.array(["a", "bc"])).tolist() == ["a", "bc"]


def test_arrays_of_objects_with_their_own_answers():
    class Answering:
        def __init__(self, values):
            self.values = shim.array(values, float)

        def __array__(self, dtype=None, copy=None):
            return self.values.astype(dtype) if dtype else self.values

        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            return Answering(ufunc(*(shim.asarray(x) for x in inputs), **kwargs))

    a = Answering([1.0, 4.0])
    assert type(shim.asarray(a)) is type(shim.array(a)) is shim.ndarray
    assert shim.asarray(a) is a.values
    assert shim.array(a, "f4").dtype == "f4"
    assert shim.sqrt(a).values.tolist() == [1.0, 2.0]
    assert shim.add(a, 1).values.tolist() == [2.0, 5.0]


def _answering(m, answers):
    class Reading:
        def __init__(self, values):
            self.values = m.array(values)

        def __array__(self, dtype=None, copy=None):
            return self.values

    class Answering(Reading):
        __array_ufunc__ = None

        def __radd__(self, other):
            return "added"

    class Telling(Answering):
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            return ufunc.__name__, [type(v).__name__ for v in inputs], kwargs.get("out", "none")

    class Nearer(Telling):
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            return "nearer"

    return {"no": Reading, "none": Answering, "own": Telling, "nearer": Nearer}[answers]


@pytest.mark.parametrize("answers", ["no", "none", "own", "nearer"])
@pytest.mark.parametrize("values", [1.5, [1.0, 2.0]], ids=["one", "two"])
def test_what_numpy_reads_of_objects_whose_array_is_the_shims(values, answers):
    """Also of those that answer ufuncs by themselves; arrays of objects have the objects."""

    def seen(m):
        a, base = (_answering(m, kind)(values) for kind in (answers, "own"))
        x, objects = m.zeros((2, 2)), m.zeros(2, object)

        def stored(at, v):
            at[...] = v
            return at

        def objects_of(made):
            return [v is a or v for v in m.asarray(made).ravel().tolist()]

        calls = [
            lambda: m.array([a, a]), lambda: m.asarray((a, m.ones(2))), lambda: m.sort(a),
            lambda: m.array([a, 1.0]), lambda: m.stack([a, a]), lambda: m.add([a, a], 1.0),
            lambda: m.array([a, a], dtype=float), lambda: stored(x, a), lambda: m.where(True, a, 0),
            lambda: m.take(a, [0]), lambda: m.median(a), lambda: m.dot(a, a), lambda: m.full(2, a),
            lambda: m.ones(2) + a, lambda: m.add(1.0, a), lambda: m.add(a, base),
            lambda: m.add(base, a), lambda: m.sin(a, out=x) if answers == "own" else None,
            lambda: objects_of(m.array([a, a], dtype=object)),
            lambda: [objects.__setitem__(0, a), objects[0] is a],
            lambda: [objects.fill(a), objects_of(objects)],
        ]  # fmt: skip
        return [outcome(call) for call in calls]

    for got, want in zip(seen(shim), seen(np), strict=True):
        assert_same(got, want)


def test_gaps_between_fields_are_no_fields():
    whole = shim.zeros(3, [("id", "i4"), ("v", "f8"), ("name", "U5")])
    aligned = shim.zeros(2, np.dtype([("a", "i1"), ("b", "f8")], align=True))
    for a in (whole, whole[["id", "v"]], whole[["name"]], aligned):
        read = np.asarray(a)
        assert read.dtype == np.array(a).dtype == a.dtype
        assert np.shares_memory(read, np.asarray(a))


def test_wrapping_up_is_told_of_the_ufunc_and_the_arguments():
    class Wrapping:
        def __array__(self, dtype=None, copy=None):
            return shim.zeros(2)

        def __array_wrap__(self, array, context, return_scalar):
            return context

    w = Wrapping()
    ufunc, given, place = shim.minimum(w, w)
    assert ufunc is shim.minimum
    assert given == (w, w)
    assert place == 0


def test_floating_point_errors():
    a = shim.array([0.0, -1.0, 1e308])
    for call, text in (
        (lambda: 1 / a, "divide by zero encountered in divide"),
        (lambda: shim.sqrt(a), "invalid value encountered in sqrt"),
        (lambda: a * 100, "overflow encountered in multiply"),
        (lambda: shim.arange(3) // 0, "divide by zero encountered in floor_divide"),
        (lambda: shim.add.reduce([1e308, 1e308]), "overflow encountered in reduce"),
        (lambda: shim.zeros(0).mean(), "Mean of empty slice|invalid value encountered in scalar"),
    ):
        with pytest.warns(RuntimeWarning, match=text) as seen:
            call()
        assert {w.filename for w in seen} == {__file__}
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Mean of empty")
            call()
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        shim.log(a)
    with np.errstate(under="raise"), pytest.raises(FloatingPointError, match="underflow"):
        shim.array([1e-308]) * 1e-10


def test_what_ran_in_numpy_is_counted():
    before = shim.in_numpy.copy()
    shim.polyint([3])
    shim.array(["a"])
    new = {name for name, _ in shim.in_numpy - before}
    assert {"polyint", "array"} <= new
    with shim.strict(), pytest.raises(shim.NotSupported, match="polyint is not in the shim"):
        shim.polyint([3])
    with shim.strict(), pytest.raises(shim.NotSupported, match="has no torch counterpart"):
        shim.array(["a"])


def test_gradients_and_arrays_without_data_are_not_handed_over():
    t = torch.ones(3, requires_grad=True)
    with pytest.raises(shim.NotSupported):
        shim.kaiser(shim.from_tensor(t), 1.0)
    with pytest.raises(shim.NotSupported):
        shim.pad(shim.ndarray(torch.empty(3, device="meta")), 1, mode="median")


def test_pickles_and_copies():
    for a in (shim.array(["a", "b"]), shim.array([1, None], dtype=object)):
        for made in (pickle.loads(pickle.dumps(a)), copy.copy(a), copy.deepcopy(a)):
            assert type(made) is shim.ndarray
            assert made.tolist() == a.tolist()
    for f in (shim.add, shim.array, shim.sum):
        assert pickle.loads(pickle.dumps(f)) is f
    p = shim.poly1d([1, 2])
    assert pickle.loads(pickle.dumps(p))(2) == 4


def test_elements_that_are_not_aligned():
    memory = np.zeros(33, np.int8)
    a = shim.from_numpy(memory[1:].view(np.float64))
    np.testing.assert_array_equal(shim.to_numpy(a), np.zeros(4))
    b = shim.zeros(33, np.int8)[1:].view(np.complex128)
    b[...] = 1j
    assert b.tolist() == [1j, 1j]
    assert shim.dot(b, b) == -2


def test_functions_as_attributes_of_classes():
    class Case:
        make, total = shim.array, staticmethod(shim.sum)

    assert Case().make([1, 2]).tolist() == [1, 2]
    assert Case().total([1, 2]) == 3


def test_namespace_info():
    info = shim.__array_namespace_info__()
    assert info.default_device() == "cpu" == shim.ones(2).device == shim.array(["a"]).device
    assert "cpu" in info.devices()
    assert info.dtypes(device="cpu", kind="bool") == {"bool": np.dtype(bool)}
    assert info.default_dtypes() == np.__array_namespace_info__().default_dtypes()
    assert info.capabilities() == np.__array_namespace_info__().capabilities()
    with pytest.raises(ValueError, match="Device not understood"):
        info.dtypes(device="spam")
    assert shim.ones(1).__array_namespace__() is shim
    with pytest.raises(ValueError, match="not supported"):
        shim.ones(1).__array_namespace__(api_version="1999.12")


def test_parts_of_numbers_and_attributes_of_classes():
    assert type(shim.real(1)) is int
    assert (shim.imag(2j), shim.real(shim.array(3.0)).ndim) == (2.0, 0)
    assert isinstance(np.frompyfunc(len, 1, 1), shim.ufunc)
    assert shim.ufunc.reduce is np.ufunc.reduce
    words = shim.array(["a", "b"])
    words.resize(3)
    assert words.tolist() == ["a", "b", ""]
    assert [v.tolist() for v in shim.lib.Arrayterator(shim.arange(4), 2)] == [[0, 1], [2, 3]]


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_shape_is_set_in_place():
    for a in (shim.array(["a", "b"]), shim.from_numpy(np.zeros(2))):
        a.shape = (2, 1)
        assert (a.shape, a.tolist()[1:]) == ((2, 1), a[1:].tolist())


@pytest.mark.parametrize("k", [2**31, -(2**31) - 1, 2**40])
def test_offsets_that_c_cannot_hold(k):
    for f in (lambda x: x.trace(k), lambda x: x.diagonal(k), lambda x: x.dot(x.T).trace(offset=k)):
        with pytest.raises(OverflowError) as want:
            f(X)
        with pytest.raises(OverflowError) as got:
            f(shim.from_numpy(X.copy()))
        assert str(got.value) == str(want.value)
    assert shim.trace(shim.from_numpy(X.copy()), 2**31 - 1) == 0


def test_arrays_are_not_hashed():
    a = shim.ones(2)
    for f in (lambda: hash(a), lambda: {a}, lambda: {a: 1}, lambda: a in {1}):
        with pytest.raises(TypeError, match=r"unhashable type: 'numpy\.ndarray'"):
            f()
