"""Operators, methods and attributes of the array, and its meetings with NumPy."""

from __future__ import annotations

import copy
import operator
import pickle
import warnings

import numpy as np
import pytest
import torch
from np_compile.shim._operators import OPERATORS

from .support import ALL, assert_matches, assert_same, from_shim, quiet, shim, to_shim

X = np.arange(6.0).reshape(2, 3)


def method(name):
    return lambda np, a, *args, **kwargs: getattr(a, name)(*args, **kwargs)


@pytest.mark.parametrize("op", [o for o in OPERATORS if "matmul" not in o])
@pytest.mark.parametrize("dtype", ["d", "l", "B", "H", "?"])
def test_operators(op, dtype):
    if op in ("__rdivmod__", "__rpow__") and dtype == "?":
        return

    def run(np, a, *others):
        return getattr(a.copy(), op)(*others)

    x = (np.arange(6).reshape(2, 3) % 3).astype(dtype)
    if OPERATORS[op][1] is None:
        assert_matches(run, x)
        return
    for other in (x[::-1], x[0], 2, True, np.int8(1)):
        assert_matches(run, x, other, rtol=1e-12, meta=False)


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ior", "ipow"])
def test_in_place(name):
    for dtype in "dlHe":
        for other in (2, 1.5, X):
            f = getattr(operator, name)
            x = X.astype(dtype)
            a = shim.from_numpy(x.copy())
            kept, error = a, None
            with quiet():
                try:
                    f(x, other)
                except TypeError as e:
                    error = e
                if error is not None:
                    with pytest.raises(TypeError) as got:
                        f(a, to_shim(other))
                    assert str(got.value) == str(error)
                    continue
                a = f(a, to_shim(other))
            assert a is kept
            assert_same(a, x, rtol=1e-3 if dtype == "e" else 1e-12)


def test_scalars_are_immutable():
    s = shim.add.reduce(to_shim(X), None)
    t = s
    s += 1
    assert (float(t), float(s)) == (15.0, 16.0)
    assert isinstance(from_shim(s), np.float64)
    assert hash(s) == hash(16.0)
    with pytest.raises(TypeError, match=r"unhashable type: 'numpy\.ndarray'"):
        hash(to_shim(X))


def test_comparison_with_none():
    assert_same(to_shim(X) == None, np.zeros((2, 3), bool))  # noqa: E711
    assert_same(to_shim(X) != None, np.ones((2, 3), bool))  # noqa: E711


class Foreign:
    __array_ufunc__ = None

    def __radd__(self, other):
        return "mine"

    def __eq__(self, other):
        return "equal"

    __hash__ = None


def test_deferring():
    assert to_shim(X) + Foreign() == "mine"
    assert (to_shim(X) == Foreign()) == "equal"


@pytest.mark.parametrize("dtype", ALL)
def test_astype(dtype):
    for target in ALL:
        x = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert_matches(method("astype"), x, target)
            assert_matches(method("astype"), x[0, 1], target)
            assert_matches(method("astype"), x, target, casting="same_kind")


def test_astype_options():
    a = to_shim(X)
    assert a.astype("d", copy=False) is a
    assert a.astype("d") is not a
    assert a.astype("d").base is None
    assert a.astype("d", order="F", copy=False).flags.f_contiguous
    assert a.astype("f4", order="F").flags.f_contiguous
    with pytest.warns(np.exceptions.ComplexWarning):
        to_shim(X * 1j).astype("d")
    with pytest.raises(shim.NotSupported):
        a.astype("g")
    b = a.astype("d")
    b[...] = 9
    assert_same(a, X)


@pytest.mark.parametrize("order", ["C", "F", "A", "K", "X"])
def test_copy_and_flatten(order):
    for x in (X, X.T, X[::-1], X[:, ::2], np.array(3.0), np.float64(2)):
        assert_matches(method("copy"), x, order, meta=order != "X")
        if order != "K":
            assert_matches(method("flatten"), x, order)
    a = to_shim(X)
    a.copy()[...] = 5
    assert_same(a, X)


@pytest.mark.parametrize("order", ["C", "F", "A", "K", "k"])
def test_layouts_of_copies(order):
    cube = np.arange(24.0).reshape(2, 3, 4)
    blocks = np.broadcast_to(cube.transpose(2, 0, 1), (5, 4, 2, 3))
    views = cube.transpose(1, 2, 0), cube.transpose(1, 0, 2)[:, ::-1], cube[:, ::2].T, cube[0].T
    for x in (*views, np.broadcast_to(cube[0, 0], (3, 4)), blocks, blocks[:, 1:].T):
        a = shim.from_numpy(x)
        for name in ("flatten", "ravel"):
            assert_same(getattr(a, name)(order), getattr(x, name)(order))
        for copied, expected in (
            (a.copy(order), x.copy(order)),
            (a.astype("f4", order), x.astype("f4", order)),
            (a.astype("d", order), x.astype("d", order)),
            (a.astype("d", order, copy=False), x.astype("d", order, copy=False)),
        ):
            assert_same(copied, expected)
            assert copied.strides == expected.strides


def test_python_values():
    for x in (X, np.array(3), np.int8(3), np.array([2.5]), np.float32(1.5), np.array(True)):
        for name in ("tolist", "item", "tobytes", "__bool__", "__len__"):
            if hasattr(x, name):
                assert_matches(method(name), x, meta=False)
        for convert in (int, float, complex, operator.index, bool, repr, str, list):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                error = expected = None
                try:
                    expected = convert(x)
                except Exception as e:
                    error = e
                if error is None:
                    assert_same(convert(to_shim(x)), expected)
                    continue
                with pytest.raises(type(error)) as got:
                    convert(to_shim(x))
                assert convert is list or str(got.value) == str(error)
    assert_matches(method("item"), X, 1, 2, meta=False)
    assert f"{shim.add(1.0, 0.25):.1f}" == "1.2"
    assert round(shim.add(1.0, 1.5)) == 2
    with pytest.raises(TypeError, match="doesn't define __round__"):
        round(to_shim(X))
    with pytest.raises(ValueError, match="truth value of an array with more than one element"):
        bool(to_shim(X))
    assert 3.0 in to_shim(X)
    assert 9.0 not in to_shim(X)
    assert repr(shim.ndarray(torch.empty(3, device="meta"))).startswith("array(shape=(3,)")


def test_fill_and_view():
    a = to_shim(X)
    a[::-1].fill(2)
    assert_same(a, np.full((2, 3), 2.0))
    assert_matches(method("view"), X, "i8")
    assert_matches(method("view"), X, "f4")
    assert_matches(method("view"), X.astype("f"), "D")
    assert_matches(method("view"), np.arange(8, dtype="f4"), "F")
    assert_matches(method("view"), X.T, "i4")
    assert_matches(method("view"), np.array(1.0), "i4")
    assert_matches(method("view"), np.float64(1), "i8")
    v = a.view("i8")
    v[...] = 0
    assert_same(a, np.zeros((2, 3)))
    assert a.view().base is a


def test_attributes():
    z = X + 1j * X.T.reshape(2, 3)
    names = ("shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides", "T", "real", "imag")
    for x in (X, z, X[::-1], X.T, X[:, ::-1].T, np.float64(3), np.array(2), X.astype("H")):
        for name in names:
            assert_same(getattr(shim.as_array(x), name), getattr(x, name), context=name)
    for x in (X, X[::-1], X[:, ::-1]):
        assert_same(to_shim(x).mT, x.mT)
    with pytest.raises(ValueError, match="matrix transpose with ndim < 2 is undefined"):
        _ = to_shim(X[0]).mT
    a, c = to_shim(X), to_shim(z)
    a.T[0, 1] = 50
    assert float(a[1, 0]) == 50
    c.real[...] = 7
    c.imag = 0
    assert_same(c, np.full((2, 3), 7 + 0j))
    a.real = 1
    assert_same(a, np.ones((2, 3)))
    for value in (2 - 1j, 3j, [1j, 2, 0.5], -1, np.complex64(3 + 1j)):
        for x in (X.copy(), z.copy(), X.astype("H"), X > 0):
            a = to_shim(x)
            with quiet():  # NumPy drops the imaginary part
                try:
                    x.real = value
                except (TypeError, OverflowError) as e:  # from NumPy 2.5 on
                    with pytest.raises(type(e)):
                        a.real = value
                    continue
                a.real = value
            assert_same(a, x)
    with pytest.raises(TypeError, match="array does not have imaginary part to set"):
        a.imag = 1
    with quiet():  # deprecated from NumPy 2.5 on
        a.shape = (3, -1)
        assert a.shape == (3, 2)
        with pytest.raises(ValueError, match=r"cannot reshape array of size 6 into shape \(4,\)"):
            a.shape = 4
        with pytest.raises(AttributeError, match="Incompatible shape for in-place modification"):
            a.T.shape = (6,)
    with pytest.raises(shim.NotSupported):
        _ = a.ctypes
    with pytest.raises(shim.NotSupported):
        a.byteswap()


def test_flags():
    for x in (
        X,
        X.T,
        X[::-1],
        X[:, :1],
        X[:, 0],
        np.zeros((0, 3)),
        np.array(1.0),
        X[:1, ::-1][:, :1],
    ):
        ours, theirs = shim.from_numpy(x).flags, x.flags
        for name in ("c_contiguous", "f_contiguous", "forc", "fnc", "aligned", "contiguous"):
            assert getattr(ours, name) == getattr(theirs, name), (name, x)
        assert ours["C_CONTIGUOUS"] == theirs["C"]
    a = to_shim(X)
    assert a.flags.owndata
    assert not a[0].flags.owndata
    view = a[0]
    a.setflags(write=False)
    assert not a[0].flags.writeable
    assert view.flags.writeable
    with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
        a[0].flags.writeable = True
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        a.fill(3)
    a.flags["WRITEABLE"] = True
    a[0] = 1
    assert not shim.to_numpy(shim.from_numpy(X)[0]).flags.owndata
    with pytest.raises(KeyError, match="Unknown flag"):
        a.flags["Z"]


def test_flat():
    x, a = X.copy()[::-1], to_shim(X.copy())[::-1]
    assert_same([v for v in a.flat], [v for v in x.flat])  # noqa: C416
    assert len(a.flat) == 6
    assert_same(a.flat[2], x.flat[2])
    assert_same(a.flat[1:4], x.flat[1:4])
    x.flat[[1, 3]] = 9
    a.flat[[1, 3]] = 9
    x.flat = [1, 2]
    a.flat = [1, 2]
    assert_same(a, x)
    iterator = a.flat
    assert float(next(iterator)) == 1
    assert iterator.index == 1


def test_numpy_arrays_meet_ours():
    a = to_shim(X)
    for result in (X + a, np.add(a, 1), np.add(X, a), X[0] * a):
        assert isinstance(result, shim.ndarray)
    assert_same(np.add.reduce(a, axis=1), np.add.reduce(X, axis=1))
    assert_same(np.sqrt(a), np.sqrt(X))
    with pytest.raises(TypeError, match=r"numpy\.is_busday is not in the shim"):
        np.is_busday(a)
    assert_same(np.asarray(a), X)
    assert np.shares_memory(np.asarray(a), np.asarray(a))
    assert np.array(a, dtype="f4").dtype == np.float32
    assert a.__array_interface__["shape"] == (2, 3)
    conjugated = shim.from_tensor(torch.tensor([1 + 2j]).conj())  # no memory holds its elements
    assert not hasattr(conjugated, "__array_interface__")
    assert not hasattr(conjugated, "__array_struct__")
    assert np.asarray(conjugated).tolist() == [1 - 2j]
    assert_same(np.from_dlpack(a), X)
    assert torch.from_dlpack(a).shape == (2, 3)
    assert a.__array_namespace__() is shim
    with pytest.raises(ValueError, match="not supported"):
        a.__array_namespace__(api_version="1999.01")
    with pytest.raises(TypeError, match="wrap_numpy"):
        a + torch.ones(3)


def test_copies_and_pickles():
    a = to_shim(X)
    for twin in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert twin is not a
        assert_same(twin, X)
    assert pickle.loads(pickle.dumps(shim.add)) is shim.add
    assert pickle.loads(pickle.dumps(shim.as_array(np.int64(3))))._scalar


def test_conjugate():
    z = to_shim(X + 1j)
    assert_same(z.conj(), (X + 1j).conj())
    a = to_shim(X)
    assert a.conjugate() is a


def test_promotion():
    a = to_shim(X.astype("f4"))
    assert shim.result_type(a, 2.0) == np.float32
    assert shim.result_type(a, "d") == np.float64
    assert shim.promote_types("i4", "f4") == np.float64
    assert shim.can_cast(a, "f2", "same_kind")
    assert not shim.can_cast("f8", "f4")
    assert shim.min_scalar_type(a) == np.float32


def test_to_device():
    a = to_shim(X)
    assert a.to_device("cpu") is a
    assert a.to_device("meta").device == "meta"


def test_tracing():
    from torch.fx.experimental.proxy_tensor import make_fx

    def program(t, u):
        a, b = shim.from_tensor(t), shim.from_tensor(u)
        c = (a * 2 + b[::-1]) ** 2 // 3
        c[1:, ::-1] += a[:-1]
        c[c > 5] = 0.5
        c[[0, 1], [1, 1]] = 4
        shim.add.at(c, ([0, 0], [1, 1]), 1.5)
        d = shim.maximum.reduce(c, axis=0) + shim.add.accumulate(b, 1)
        return (d.astype("i4") % 3 << 2).tensor, shim.divmod(c, b)[0].tensor

    t = torch.arange(6, dtype=torch.float64).reshape(2, 3)
    u = t.flip(1) + 1
    for mode in ("fake", "symbolic"):
        graph = make_fx(program, tracing_mode=mode)(t, u)
        for got, expected in zip(graph(t + 1, u * 2), program(t + 1, u * 2), strict=True):
            assert torch.equal(got, expected)


def test_functional_transforms():
    def loss(t):
        a = shim.from_tensor(t)
        b = shim.sin(a) * a + a[::-1] / 3
        b[0] = a[1] ** 3
        return shim.add.reduce(shim.where(b > 0, b, -b), None).tensor

    t = torch.tensor([0.3, 0.7, 1.1], dtype=torch.float64)
    assert torch.autograd.gradcheck(loss, t.clone().requires_grad_())
    many = torch.stack([t, t * 2])
    batched = torch.func.vmap(torch.func.grad(loss))(many)
    for row, point in zip(batched, many, strict=True):
        assert torch.allclose(row, torch.func.grad(loss)(point))


@pytest.mark.skipif(not hasattr(memoryview, "__buffer__"), reason="Python 3.12 asks a class for it")
def test_code_in_c_reads_the_memory():
    a = to_shim(X)
    assert memoryview(a).tolist() == X.tolist()
    assert bytes(a) == X.tobytes()
    memoryview(a)[0, 1] = 7
    assert a[0, 1] == 7
    a.flags.writeable = False
    assert memoryview(a).readonly
