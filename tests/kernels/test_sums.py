"""Sums are as accurate as NumPy's, which adds in pairs.

The measure of an error is eps * sum(|x|), the rounding of one addition at the size of the whole.
A sum may be off by twice what NumPy's is, and `SLACK` of these. Added one after the other, 10^6
positive numbers are off by some hundreds.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

import np_compile
from np_compile.kernels import build

from ..support import thorough

SLACK = 3.0
TYPES = [np.float64, np.float32, np.float16]
KINDS = ["positive", "normal", "cancelling", "rising"]


@pytest.fixture(autouse=True)
def always_compiled() -> Iterator[None]:
    """No call runs in plain NumPy because that is the faster way."""
    with np_compile.config.patch(plain="never"):
        yield


def numbers(kind: str, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """All-positive values, values around zero, values whose sum is far smaller than they are, and
    values of growing size. In float16 the sum of their absolute values stays finite."""
    rng = np.random.default_rng(math.prod(shape))
    n = math.prod(shape)
    if kind == "positive":
        x = rng.random(n)
    elif kind == "normal":
        x = rng.standard_normal(n)
    elif kind == "rising":
        x = np.linspace(0, 1, n) ** 3
    else:
        wide = 4 if dtype is np.float16 else 20
        x = np.ldexp(rng.standard_normal(n), rng.integers(-wide, wide, n))
        half = n // 2
        x[half : 2 * half] = -rng.permutation(x[:half])
    if dtype is np.float16:
        x *= min(1.0, 20_000 / np.abs(x).sum())
    return x.astype(dtype).reshape(shape)


def exact(x: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    """The sums over some axes, correctly rounded to float64."""
    kept = [k for k in range(x.ndim) if k not in axis]
    rows = x.astype(np.float64).transpose(*kept, *axis)
    shape = rows.shape[: len(kept)]
    sums = [math.fsum(row) for row in rows.reshape(math.prod(shape), -1)]
    return np.array(sums).reshape(shape)


def accurate(x: np.ndarray, axis: tuple[int, ...]) -> None:
    """The compiled sum is as near to the exact one as NumPy's."""
    compiled = np_compile.compile(lambda x: x.sum(axis=axis), backend="native", fullgraph=True)
    want = exact(x, axis)
    unit = float(np.finfo(x.dtype).eps) * np.abs(x.astype(np.float64)).sum(axis=axis)
    ours = np.abs(compiled(x).astype(np.float64) - want) / unit
    numpys = np.abs(x.sum(axis=axis).astype(np.float64) - want) / unit
    assert ours.max() <= 2 * numpys.max() + SLACK, (float(ours.max()), float(numpys.max()))


def test_the_measure_tells_a_naive_sum() -> None:
    """What these tests would say of a loop that adds one after the other."""
    loop = "for (int i = 0; i < 1000000; i++) s += x[i];"
    source = f"float f(const float *x) {{ float s = 0; {loop} return s; }}"
    naive = build.load(source).f
    naive.restype = ctypes.c_float
    x = numbers("positive", (1_000_000,), np.float32)
    error = abs(naive(x.ctypes.data_as(ctypes.c_void_p)) - exact(x, (0,)))
    assert error > 10 * SLACK * np.finfo(np.float32).eps * x.sum()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [10, 100, 1000, 12_345, 100_000, 1_000_003])
def test_a_contiguous_array(n: int, kind: str, dtype: type) -> None:
    accurate(numbers(kind, (n,), dtype), (0,))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ten_million_elements(dtype: type) -> None:
    accurate(numbers("positive", (10_000_000,), dtype), (0,))


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "every second": lambda x: x[::2],
    "every seventh, backwards": lambda x: x[::-7],
    "a column": lambda x: x[: x.size // 5 * 5].reshape(-1, 5)[:, 2],
    "a block": lambda x: x[: x.size // 300 * 300].reshape(-1, 300)[:, 3:-7].reshape(-1),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_strided_array(layout: str, kind: str, dtype: type) -> None:
    accurate(LAYOUTS[layout](numbers(kind, (300_000,), dtype)), (0,))


SHAPES = [(100_000, 3), (20_000, 64), (3, 100_000), (700, 600)]
SHAPES += thorough((100_000, 17), (64, 10_000))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", ["cancelling", *thorough("positive")])
@pytest.mark.parametrize("axis", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_axis_of_a_matrix(
    shape: tuple[int, ...], axis: tuple[int, ...], kind: str, dtype: type
) -> None:
    accurate(numbers(kind, shape, dtype), axis)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [(0,), (1,), (0, 1)])
def test_a_matrix_in_fortran_order(axis: tuple[int, ...], dtype: type) -> None:
    accurate(np.asfortranarray(numbers("positive", (3000, 50), dtype)), axis)
    accurate(numbers("positive", (3000, 50), dtype)[::2, ::3], axis)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [(0, 2), (1,), (0, 1), (1, 2), (2,), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(4, 20_000, 6), (5, 6, 5000), *thorough((3000, 7, 9))])
def test_axes_of_three(shape: tuple[int, ...], axis: tuple[int, ...], dtype: type) -> None:
    accurate(numbers("positive", shape, dtype), axis)


def test_a_sum_of_computed_elements() -> None:
    x, y = numbers("positive", (1_000_003,), np.float32), np.float32(1.5)
    fused = np_compile.compile(lambda x, y: (x * y).sum(), backend="native")
    products = x * y
    unit = float(np.finfo(np.float32).eps) * math.fsum(products.astype(np.float64))
    want = math.fsum(products.astype(np.float64))
    assert abs(float(fused(x, y)) - want) <= (SLACK + 2) * unit


def _relative(got: np.ndarray, want: np.ndarray, dtype: type) -> float:
    return float(np.max(np.abs(got.astype(np.longdouble) - want) / np.abs(want))) / float(
        np.finfo(dtype).eps
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_mean_and_variance(name: str, offset: float, axis: int | None, dtype: type) -> None:
    x = (np.random.default_rng(1).random((4000, 60)) + offset).astype(dtype)
    wide = x.astype(np.longdouble)
    want = getattr(np, name)(wide, axis=axis)
    compiled = np_compile.compile(
        lambda x: getattr(x, name)(axis=axis), backend="native", fullgraph=True
    )
    ours = _relative(np.asarray(compiled(x)), want, dtype)
    numpys = _relative(np.asarray(getattr(np, name)(x, axis=axis)), want, dtype)
    # The error of a variance is that of the mean, at the size of the offset.
    slack = 4 * SLACK * (1 + offset if name != "mean" else 1)
    assert ours <= 2 * numpys + min(slack, 100.0), (ours, numpys)


@pytest.mark.parametrize("shape", [(1000,), (100_000,), (300, 400)])
def test_threads_change_no_bit(shape: tuple[int, ...]) -> None:
    x = numbers("normal", shape, np.float64)
    f = np_compile.compile(lambda x: (x.sum(), x.sum(axis=0), x.mean()), backend="native")
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            found.append([np.asarray(r).tobytes() for r in f(x)])
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1] == found[2]
