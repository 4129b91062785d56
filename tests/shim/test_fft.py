"""numpy.fft on tensors against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from .support import ALL, Formulas, assert_matches, assert_same, shim, to_shim

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY = ["fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn"]
LOOSE = {"f": 2e-5, "F": 2e-5, "d": 1e-11, "D": 1e-11, "e": 5e-3}


def data(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 9, shape)
    a = a + 1j * rng.integers(-3, 4, shape) if dtype in "FD" else a
    return (a > 4 if dtype == "?" else a).astype(dtype)


def rtol(dtype):
    return 5e-3 if dtype in "efF" else 1e-9  # of each element; some are nearly zero


@pytest.fixture
def formulas():
    """torch's transforms: NumPy's own are used where elements are at hand."""
    with Formulas():
        yield


def test_elements_at_hand_are_transformed_by_numpy():
    a = np.random.default_rng(0).random((7, 30))
    for array in (a, a.T, a.astype("f"), a[::-1] + 1j):
        assert_same(shim.fft.fft(to_shim(array), axis=0), np.fft.fft(array, axis=0), rtol=0)


@pytest.mark.usefixtures("formulas")
@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ONE)
def test_one_axis(name, dtype):
    a = data(dtype, (3, 6))
    for args in ((), (4,), (9,), (None, 0), (5, 0)):
        for norm in (None, "ortho", "forward", "backward"):
            assert_matches(f"fft.{name}", a, *args, norm=norm, rtol=rtol(dtype))
    assert_matches(f"fft.{name}", a[::-1, ::2], rtol=rtol(dtype))


@pytest.mark.usefixtures("formulas")
@pytest.mark.parametrize("shape", [(0, 16), (16, 0), (0, 0, 3)])
def test_no_rows(shape):
    """There is nothing to transform, along an axis that has a length or is given one."""
    for name in ONE:
        numpy, ours = getattr(np.fft, name), getattr(shim.fft, name)
        for axis in range(len(shape)):
            for n in (None, 6) if shape[axis] else (6,):
                for dtype in "df":
                    a = np.zeros(shape, dtype)
                    assert_same(ours(to_shim(a), n, axis), numpy(a, n, axis))


@pytest.mark.usefixtures("formulas")
@pytest.mark.parametrize("name", MANY)
def test_no_planes(name):
    a = np.zeros((0, 4, 6))
    numpy, ours = getattr(np.fft, name), getattr(shim.fft, name)
    assert_same(ours(to_shim(a), axes=(1, 2)), numpy(a, axes=(1, 2)))


@pytest.mark.parametrize("name", ONE)
def test_errors(name):
    a = data("d", (3, 6))
    for more in ({"n": 0}, {"n": -1}, {"n": 1.5}, {"axis": 5}, {"n": 3, "axis": 5}, {"norm": "no"}):
        assert_matches(f"fft.{name}", a, **more)
    assert_matches(f"fft.{name}", a[:, :0])
    assert_matches(f"fft.{name}", a[:, :1])
    assert_matches(f"fft.{name}", np.array(3.0))


@pytest.mark.usefixtures("formulas")
@pytest.mark.parametrize("name", MANY)
def test_many_axes(name):
    for dtype in "dfDFl":
        if name.startswith("r") and dtype in "DF":
            assert_matches(f"fft.{name}", data(dtype, (3, 4)))
            continue
        a = data(dtype, (2, 3, 4))
        for more in (
            {}, {"s": (2, 5), "axes": (0, 1)}, {"axes": (1, 0)}, {"axes": (2,)},
            {"s": (3, -1), "axes": (0, 2)},
            {"axes": (0, 0)}, {"norm": "ortho"}, {"s": (2,), "axes": (0, 1)}, {"axes": (0, 5)},
            {"axes": (1, 2, 0)},
        ):  # fmt: skip
            assert_matches(f"fft.{name}", a, **more, rtol=rtol(dtype))
    assert_matches(f"fft.{name}", np.ones(3))


def test_frequencies():
    for n in (1, 2, 5, 8, np.int64(7), 2.5):
        for d in (1.0, 0.1, 2, np.float32(0.5)):
            assert_matches("fft.fftfreq", n, d, meta=False)
            assert_matches("fft.rfftfreq", n, d, meta=False)
    assert_matches("fft.fftfreq", 5, 0.1)
    for d in (np.array(3), np.array([3, 7]), np.array([True]), np.array([3], "i1")):
        assert_matches("fft.fftfreq", 3, d)
    assert_matches("fft.fftfreq", np.array(3))
    assert_matches("fft.fftfreq", True)
    for name in ("fft.fftn", "fft.ifft2"):
        assert_matches(name, np.array(3), axes=())
    assert_matches("fft.fftshift", np.array(3), ())
    for dtype in ALL:
        for a in (data(dtype, (5,)), data(dtype, (4, 3))):
            for axes in (None, 0, -1, (0,)):
                assert_matches("fft.fftshift", a, axes)
                assert_matches("fft.ifftshift", a[::-1], axes)
    assert_matches("fft.fftshift", data("d", (4, 3)), (1, 0))
    assert_matches("fft.fftshift", data("d", (4, 3)), 5)


def test_out():
    a = data("d", (3, 6))
    out = to_shim(np.zeros((3, 6), complex))
    assert shim.fft.fft(to_shim(a), out=out) is out
    assert_same(out, np.fft.fft(a), 1e-10)


@given(st.integers(1, 12), st.integers(1, 12), st.sampled_from(ONE), st.sampled_from("dD"))
@settings(max_examples=60, deadline=None)
def test_any_length(m, n, name, dtype):
    assert_matches(f"fft.{name}", data(dtype, (m,)), n, rtol=1e-9)


def test_layout():
    """By rows, as NumPy's, whatever axes are transformed."""
    x = torch.empty((3, 4, 5), device="meta")
    for made in (shim.fft.fft(shim.ndarray(x), axis=0), shim.fft.rfftn(shim.ndarray(x))):
        assert made.flags.c_contiguous
