"""The short ways of frequent calls: what they give is what NumPy gives, and what the rows give."""

from __future__ import annotations

import itertools
import re
import sys

import numpy as np
import pytest
import torch

from .support import assert_same, outcome, quiet, shim, to_shim

pytestmark = pytest.mark.handing

INDICES = {
    "one": 2, "last": -1, "beyond": 7, "before": -8, "huge": 2**70,
    "huge_row": (2**70, slice(None)), "numpy_int": np.int64(1), "bool": True,
    "part": slice(1, 3), "open": slice(None), "from_end": slice(-2, None), "empty": slice(3, 1),
    "far": slice(2, 100), "steps": slice(0, None, 2), "backwards": slice(None, None, -1),
    "no_step": slice(0, 2, 0), "pair": (1, 2), "pair_beyond": (1, 9),
    "pair_numpy": (np.int64(0), 1),
    "row": (1, slice(None)), "column": (slice(None), -1), "corner": (slice(1), slice(2, 4)),
    "new": (None, 1), "dots": (Ellipsis, 0), "none": (), "three": (0, 0, 0), "float": 1.5,
    "float_slice": slice(0.5, 2), "list": [0, 1],
}  # fmt: skip
ARRAYS = {
    "vector": np.arange(5.0),
    "matrix": np.arange(20).reshape(4, 5),
    "small": np.arange(6, dtype="u2").reshape(2, 3),
    "complex": np.arange(4) * (1 + 2j),
    "bools": np.arange(5) > 2,
    "halves": np.arange(5, dtype="f2"),
    "none": np.zeros(0, "f4"),
    "zero_d": np.array(3.5),
    "transposed": np.arange(20.0).reshape(4, 5).T,
    "reversed": np.arange(5)[::-1],
    "objects": np.array([1, None, "a"], dtype=object),
}


def own(x):
    """What is NumPy's own behind a shim array that torch cannot hold; all else as it is."""
    return shim.to_numpy(x) if type(x) is shim.ndarray else x


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("array", ARRAYS)
def test_reading(array, index):
    a, i = ARRAYS[array], INDICES[index]
    expected, x = outcome(lambda: a[i]), shim.asarray(a)
    got = outcome(lambda: x[i])
    assert_same(own(got), expected)
    if isinstance(expected, np.ndarray) and np.shares_memory(a, expected):
        assert got.base is x
        assert np.shares_memory(own(x), own(got))


OF_NUMPY = [np.float64(2.5), np.int64(3), np.uint16(9), np.float16(0.5), np.complex128(1 + 1j)]


@pytest.mark.parametrize("value", [2, -1, 2**40, 1.5, np.nan, True, 1j, None, *OF_NUMPY])
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("array", ARRAYS)
def test_writing(array, index, value):
    a, i = ARRAYS[array].copy(), INDICES[index]
    x = shim.asarray(a.copy())
    expected = outcome(lambda: a.__setitem__(i, value))
    assert_same(outcome(lambda: x.__setitem__(i, value)), expected)
    assert_same(repr(x), repr(a)) if a.dtype == object else assert_same(x, a)  # nan is not nan


@pytest.mark.parametrize("array", ["vector", "matrix", "small", "complex", "bools", "halves"])
def test_what_is_exchanged_takes_the_short_way(array):
    """A loop that exchanges elements was five times slower where rows took NumPy's scalars."""
    a = ARRAYS[array].copy()
    x, called = shim.asarray(a.copy()), set()
    at, to = ((0, 1), (-1, 0)) if a.ndim == 2 else (0, -1)
    a[at], a[to] = a[to], a[at]
    sys.setprofile(lambda frame, *_: called.add(frame.f_code.co_name))
    try:
        x[at], x[to] = x[to], x[at]
    finally:
        sys.setprofile(None)
    assert_same(x, a)
    assert "__setitem__" in called
    assert not called & {"setitem", "call_and_tell_of_cast"}


def test_read_only():
    x = to_shim(np.arange(3.0))
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        x[:2][0] = 1.0


def test_gradients_pass():
    t = torch.arange(3.0, dtype=torch.float64, requires_grad=True)
    (shim.from_tensor(t)[1] * shim.from_tensor(t)[1:][0])._t.backward()
    np.testing.assert_array_equal(t.grad, [0, 2, 0])


def test_a_write_is_noticed_by_autograd():
    w = torch.ones(3, dtype=torch.float64, requires_grad=True)
    x = shim.from_tensor(torch.arange(3.0, dtype=torch.float64))
    y = shim.from_tensor(w) * x
    x[0] = 5.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum()._t.backward()


CHOICES = {
    "alike": (np.arange(4.0), np.ones(4)),
    "number": (np.arange(4.0), 0.5),
    "number_first": (-1.0, np.arange(4.0)),
    "numbers": (1.0, 2.0),
    "int": (np.arange(4.0), 3),
    "narrow": (np.arange(4, dtype="f4"), 0.1),
    "widened": (np.arange(4, dtype="f4"), np.ones(4)),
    "unsigned": (np.arange(4, dtype="u8"), np.ones(4, "u8")),
    "whole": (np.arange(4), 2.5),
    "reversed": (np.arange(4.0)[::-1], np.ones(4)),
    "row": (np.arange(12.0).reshape(3, 4), np.ones(4)),
    "zero_d": (np.array(2.0), np.arange(4.0)),
    "mismatch": (np.arange(3.0), np.ones(4)),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_where(choice):
    x, y = CHOICES[choice]
    for mask in (np.array([True, False, True, False]), np.array([1, 0, 1, 0]), np.array(True)):
        expected = outcome(lambda: np.where(mask, x, y))  # noqa: B023
        assert_same(outcome(lambda: shim.where(*to_shim((mask, x, y)))), expected)  # noqa: B023


@pytest.mark.parametrize("array", [a for a in ARRAYS if a != "objects"])
def test_sum(array):
    a = ARRAYS[array]
    assert_same(shim.sum(to_shim(a)), np.sum(a))
    assert_same(to_shim(a).sum(), a.sum())


ARRAY_INDICES = {
    "mask": np.array([[True, False, True], [False, True, True]]),
    "rows": np.array([1, 0, 1]), "row_mask": np.array([True, False]),
    "pairs": (np.array([0, 1]), np.array([2, 0])), "column": (slice(None), np.array([2, 0])),
    "apart": (np.array([0, 1]), None, np.array([2, 0])), "beyond": np.array([0, 5]),
    "short_mask": np.array([True]), "floats": np.array([0.0]), "none": np.array([], dtype=int),
    "backwards": (np.array([1, 0]), slice(None, None, -1)), "dots": (Ellipsis, np.array([1])),
    "two_dots": (Ellipsis, Ellipsis), "new": (None, Ellipsis), "zero_d": np.array(1),
}  # fmt: skip


@pytest.mark.parametrize("value", [7, np.arange(2) + 5, np.arange(3.0), np.array(2), [1, 2]])
@pytest.mark.parametrize("index", ARRAY_INDICES.values(), ids=ARRAY_INDICES)
@pytest.mark.parametrize("dtype", ["i8", "f8"])
def test_arrays_as_indices(dtype, index, value):
    a = np.arange(6, dtype=dtype).reshape(2, 3)
    x, i, v = shim.asarray(a.copy()), to_shim(index), to_shim(value)
    assert_same(own(outcome(lambda: x[i])), outcome(lambda: a[index]))
    expected = outcome(lambda: a.__setitem__(index, value))
    assert_same(outcome(lambda: x.__setitem__(i, v)), expected)
    assert_same(x, a)


def test_autograd_sees_a_short_write():
    w, a = torch.ones(3, dtype=torch.float64, requires_grad=True), shim.ones(3)
    y = shim.multiply(shim.from_tensor(w), a)
    a[0] = 2.0
    with pytest.raises(RuntimeError, match="inplace"):
        y.tensor.sum().backward()


def test_a_sum_tells_of_its_errors():
    large, small = shim.asarray([1e308, 1e308]), shim.asarray([1.0, 2.0])
    with np.errstate(over="raise"):
        assert shim.sum(small) == small.sum() == 3
        for call in (lambda: shim.sum(large), large.sum):
            with pytest.raises(FloatingPointError, match="overflow"):
                call()
    with np.errstate(over="ignore"):
        assert shim.sum(large) == np.inf
    tiny = np.array([5e-324, 5e-324])
    with np.errstate(under="raise"):  # tiny numbers are added exactly
        assert shim.sum(shim.asarray(tiny)) == np.sum(tiny) == 1e-323


NUMBERS = (2, 0.5, True, 1j, np.float64(0.25), np.float32(0.1), np.int8(100), np.uint64(7))


@pytest.mark.parametrize("name", ["sqrt", "exp", "negative", "divmod", "add", "hypot", "isnan"])
def test_functions_of_numbers_are_numpys(name):
    f = getattr(np, name)
    for args in itertools.product(NUMBERS, repeat=f.nin):
        try:
            with quiet():
                want = f(*args)
        except TypeError as e:
            with pytest.raises(TypeError, match=re.escape(str(e))):
                getattr(shim, name)(*args)
            continue
        with quiet():
            got = getattr(shim, name)(*args)
        for a, b in zip(*[r if type(r) is tuple else (r,) for r in (got, want)], strict=True):
            assert type(a) is type(b)
            assert a.tobytes() == b.tobytes()


def test_functions_of_numbers_under_a_device():
    with torch.device("meta"):
        assert shim.sqrt(2.0).shape == ()
        assert shim.sqrt(2.0)._t.is_meta
