"""New arrays against NumPy: values, dtypes, layouts, aliasing, errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .support import (
    ALL,
    assert_matches,
    assert_same,
    outcome,
    sample,
    shares_memory,
    shim,
    to_shim,
    torch,
)

DTYPES = [None, *ALL]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["zeros", "ones"])
def test_of_one_value(name, dtype):
    for shape in ((), 3, (2, 3), [4, 0], (2,), np.int64(2)):
        assert_matches(name, shape, dtype, meta=isinstance(shape, (tuple, int)) and shape != 2)
    got = getattr(shim, name)((2, 3, 4), dtype, order="F")
    expected = getattr(np, name)((2, 3, 4), dtype, order="F")
    assert got.strides == expected.strides


@pytest.mark.parametrize("dtype", DTYPES)
def test_empty(dtype):
    got = shim.empty((2, 3), dtype)
    assert (got.shape, got.dtype) == ((2, 3), np.empty((2, 3), dtype).dtype)


FILLS = [0, 1, 2, -1, 2.5, True, 1 + 2j, np.float32(3), np.uint8(7), [1, 2, 3], 2**63, np.nan]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", FILLS, ids=repr)
def test_full(value, dtype):
    if value is np.nan and dtype is not None and np.dtype(dtype).kind in "iu":
        return  # what C gives for this cast is undefined
    assert_matches("full", (2, 3), value, dtype)
    assert_matches("full_like", np.zeros((2, 3), dtype), value)
    assert_matches("full_like", np.zeros((2, 3)), value, dtype)


def test_full_errors():
    assert_matches("full", (2, 3), 300, np.uint8)
    assert_matches("full", (2, 3), [1, 2])
    assert_matches("zeros", -1)
    assert_matches("zeros", (2, -1))
    assert_matches("zeros", 2.5)
    assert_matches("zeros", 2, order="X")
    assert_matches("zeros", 2, device="nowhere")
    assert_matches("zeros", 2, device="cpu")


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like"])
def test_like(name):
    base = np.arange(24, dtype="i2").reshape(2, 3, 4)
    layouts = (base, base.T, base.transpose(1, 0, 2), base[:, ::-1], base[::2], np.float32(3))
    for a, order in itertools.product(layouts, "CFAK"):
        got, expected = (
            getattr(shim, name)(to_shim(a), order=order),
            getattr(np, name)(a, order=order),
        )
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        if a.ndim == 3 and a is not layouts[4]:
            assert got.strides == expected.strides, (order, a.strides)
    if name != "empty_like":
        assert_matches(name, base, dtype=float, shape=(5,))
        assert_matches(name, [[1, 2], [3, 4]])


INPUTS = [
    3, 2.5, True, 1j, [1, 2], [1, 2.5], [[1, 2], [3, 4j]], (), [], [[], []], np.float32(2),
    np.arange(6).reshape(2, 3), np.arange(6)[::-2], [np.uint8(1), np.int8(2)],
    [np.arange(3), np.arange(3.0)], range(4), 2**63, [2**63, 1], [True, 2], [[True], [False]],
]  # fmt: skip


@pytest.mark.parametrize("value", INPUTS, ids=repr)
@pytest.mark.parametrize("name", ["array", "asarray", "asanyarray", "ascontiguousarray"])
def test_from_data(name, value):
    for dtype in (None, float, "i4", "u2", "F", bool):
        if np.iscomplexobj(np.asarray(value)) and dtype in (float, "i4", "u2"):
            continue
        assert_matches(name, value, dtype)


def test_array_options():
    a = np.arange(6.0).reshape(2, 3)
    for order in "CFAK":
        for b in (a, a.T, a[::-1], a[:, ::2]):
            x = to_shim(b)
            for name in ("array", "copy"):
                got, expected = (
                    getattr(shim, name)(x, order=order),
                    getattr(np, name)(b, order=order),
                )
                assert_same(got, expected)
                assert not shares_memory(got, x)
                assert got.strides == expected.strides
    assert_matches("array", 3, ndmin=3)
    assert_matches("array", a, ndmin=3)
    assert_matches("array", [1, 2], copy=False)
    assert_matches("asarray", [1, 2], copy=False)
    assert_matches("asarray", a, "f4", copy=False)
    assert_matches("array", [[1, 2], [3]])
    assert_matches("array", 300, np.uint8)
    assert_matches("array", np.array(300), np.uint8)
    assert_matches("asfortranarray", a)
    with pytest.raises(NotImplementedError, match="like"):
        shim.array([1], like=shim.zeros(2))


def test_asarray_is_the_array_itself():
    x = to_shim(np.arange(6.0).reshape(2, 3))
    assert shim.asarray(x) is x
    assert shim.asarray(x, float) is x
    assert shim.asarray(x, order="C") is x
    assert shim.ascontiguousarray(x) is x
    assert shim.array(x, copy=None) is x
    assert shim.array(x, copy=False) is x
    assert not shares_memory(shim.asarray(x, "f4"), x)
    assert not shares_memory(shim.asarray(x, order="F"), x)
    assert not shares_memory(shim.array(x), x)
    assert not shares_memory(shim.asarray(x, copy=True), x)
    a = np.arange(3)
    assert np.shares_memory(shim.to_numpy(shim.asarray(a)), a)
    real = shim.asarray(to_shim(np.array([1 + 2j])), float)
    assert real.base is None


def test_chkfinite():
    assert_matches("asarray_chkfinite", [1, 2.5], meta=False)
    assert_matches("asarray_chkfinite", [1, np.nan], meta=False)


ARANGES = [
    (5,), (2, 7), (2, 9, 3), (9, 2, -2), (0,), (5, 2), (0.0, 1.0, 0.1), (0.5, 3), (3.7,),
    (1, 2, 0.3),
    (np.float32(0), np.float32(1), np.float32(0.1)), (np.uint8(5),), (np.int32(1), 5),
    (2**40, 2**40 + 3),
    (0, -1.5, -0.25), (1e10, 1e10 + 3), (0, 3, 1j), (2**63, 2**63 + 2), (10, 0, -0.1),
]  # fmt: skip


@pytest.mark.parametrize("args", ARANGES, ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arange(args, dtype):
    if any(v < 0 for v in args if not isinstance(v, complex)) and dtype in tuple("BHIL"):
        return
    if max(abs(v) for v in args) >= 2**31 and dtype is not None:
        return
    if any(isinstance(v, complex) for v in args) and dtype not in (None, "F", "D"):
        return
    plain = all(type(v) in (int, float) for v in args)
    assert_matches("arange", *args, dtype=dtype, rtol=0, meta=plain)


@pytest.mark.parametrize("dtype", [None, "d", "f", "e"])
def test_ranges_begin_with_the_zero_that_is_given(dtype):
    for args in ((-0.0, 3.0), (-0.0, 3, 0.5), (-0.0, -3, -1.0), (0.0, -3.0, -1.0), (-1.0, 2.0)):
        want = np.arange(*args, dtype=dtype)
        got = np.asarray(shim.arange(*args, dtype=dtype))
        assert_same(got, want, 0)
        assert np.signbit(got).tolist() == np.signbit(want).tolist(), args


def test_arange_errors():
    assert_matches("arange", 0, 3, 0)
    assert_matches("arange", 4, dtype=bool)
    assert_matches("arange", 2, dtype=bool)
    assert_matches("arange", 1e300)


@given(st.integers(-40, 40), st.integers(-40, 40), st.integers(-7, 7).filter(bool))
@settings(max_examples=60, deadline=None)
def test_arange_of_integers(start, stop, step):
    assert_matches("arange", start, stop, step, meta=False)
    assert_matches("arange", start / 8, stop / 4, step / 16, rtol=0, meta=False)


SPANS = [
    (0, 1), (0.0, 2.5), (3, 3), (1, -1), (1j, 2), (np.float32(0), np.float32(1)),
    (np.arange(3.0), np.arange(3.0) + 4), (np.arange(3), 5), (np.float32(1), 2),
    (np.zeros((2, 1)), np.arange(3.0)), (True, 3), (np.uint8(3), np.uint8(1)),
]  # fmt: skip


@pytest.mark.parametrize("span", SPANS, ids=repr)
def test_linspace(span):
    for num, endpoint in ((50, True), (5, False), (1, True), (1, False), (0, True), (2, True)):
        assert_matches("linspace", *span, num, endpoint)
        assert_matches("linspace", *span, num=num, endpoint=endpoint, retstep=True)
    if not any(np.iscomplexobj(v) for v in span):
        assert_matches("linspace", *span, 7, dtype=int)
    assert_matches("linspace", *span, 4, dtype="F")
    assert_matches("linspace", *span, 4, axis=-1)
    assert_matches("logspace", *span, 5, rtol=1e-6)
    assert_matches("logspace", *span, 5, base=2, rtol=1e-6)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning", "kaiser"])
def test_windows(name):
    for m in (12, 7, 3, 2, 1, 0, -2, np.int64(5), True):
        for beta in (0.0, 14, -2.5, np.float32(3)) if name == "kaiser" else ((),):
            assert_matches(name, m, *np.ravel(beta), meta=isinstance(m, int))


@pytest.mark.handing
@pytest.mark.parametrize("m", [7.0, 6.5, np.float32(4), np.longdouble(5), 1j, [3, 4], "a"])
def test_windows_of_no_integer_are_numpys(m):
    def seen(n):
        made = [outcome(lambda: n.hanning(m)), outcome(lambda: n.kaiser(m, 2.0))]
        made += [outcome(lambda b=b: n.kaiser(4, b)) for b in (1j, [2.0], n.arange(2.0))]
        return [shim.to_numpy(v) if type(v) is shim.ndarray else v for v in made]

    assert_same(seen(shim), seen(np), 0)


def test_linspace_errors():
    assert_matches("linspace", 0, 1, -1)
    assert_matches("linspace", 0, 1, 2.5)
    assert_matches("linspace", 0, 1, 5, axis=3)


def test_logspace_and_geomspace():
    assert_matches("logspace", 0, 1, 5, base=np.array([2.0, 10.0]), axis=-1)
    assert_matches("logspace", 0, 3, 4, dtype=int)
    assert_matches("logspace", 1.0, 7.0, 50, rtol=0)
    for args in (
        (1, 256),
        (256, 1),
        (-1, -1000),
        (1j, 1000j),
        (1.0, 2),
        (np.float32(1), np.float32(8)),
    ):
        assert_matches("geomspace", *args, 9, rtol=1e-6)
        assert_matches("geomspace", *args, 4, endpoint=False, rtol=1e-6)
    assert_matches("geomspace", [1.0, 2.0], [10.0, 20.0], 4, axis=-1)
    assert_matches("geomspace", 1, 1000, 4, dtype=int)
    assert_matches("geomspace", 1, 10, 1)
    assert_matches("geomspace", 1, 10, 0)
    assert_matches("geomspace", 0, 10, meta=False)


@pytest.mark.parametrize("dtype", [float, None, *ALL])
def test_identities(dtype):
    for args in ((3,), (2, 4), (4, 2, 1), (3, 3, -1), (3, 3, 7), (0,)):
        assert_matches("eye", *args, dtype=dtype)
        assert_matches("tri", *args, dtype=dtype)
    assert_matches("identity", 3, dtype)
    assert shim.eye(2, 3, order="F").strides == np.eye(2, 3, order="F").strides
    assert_matches("eye", 2, 3, 1, order="F")


@pytest.mark.parametrize("dtype", ALL)
def test_diagonals(dtype):
    v = sample(dtype, (4,))
    m = sample(dtype, (3, 4))
    for k in (0, 1, -2, 9):
        assert_matches("diag", v, k)
        assert_matches("diag", v[::-1], k)
        assert_matches("diag", m, k)
        assert_matches("diag", m[::-1], k)
        assert_matches("diagflat", m, k)
    assert_matches("diag", np.zeros((2, 2, 2), dtype))
    assert_matches("diag", dtype and np.zeros((), dtype))
    assert_matches("vander", v)
    assert_matches("vander", v, 2)
    assert_matches("vander", v, 6, True)
    assert_matches("vander", v, 0)
    assert_matches("vander", m)


def test_grids():
    a, b, c = np.arange(3), np.arange(4.0)[::-1], np.arange(2, dtype="u2")
    for arrays in ((a,), (a, b), (a, b, c), (), (2.5, b), (a.reshape(3, 1), b)):
        for indexing, sparse, copy in itertools.product(("xy", "ij"), (True, False), (True, False)):
            assert_matches("meshgrid", *arrays, indexing=indexing, sparse=sparse, copy=copy)
    assert_matches("meshgrid", a, b, indexing="no")
    for shape in ((2, 3), (4,), (0, 2), ()):
        for dtype in (int, float, "u2", "F"):
            assert_matches("indices", shape, dtype)
            assert_matches("indices", shape, dtype, sparse=True)
    got = shim.fromfunction(lambda i, j: i * 2 + j, (3, 2), dtype=int)
    assert_same(got, np.fromfunction(lambda i, j: i * 2 + j, (3, 2), dtype=int))


def test_default_device():
    with torch.device("meta"):
        for made in (
            shim.zeros(3),
            shim.arange(3),
            shim.full(2, 2**63),
            shim.eye(2),
            shim.array([1]),
        ):
            assert made.device == "meta"
    assert shim.ones(2, device=torch.device("cpu")).device == "cpu"
