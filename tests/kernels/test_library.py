"""Calls of torch's and NumPy's libraries between kernels: their memory from one run to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import np_compile
from np_compile.kernels.compile import listening
from np_compile.kernels.run.execute import Executable

from ..support import check, data


def _ordered(x: np.ndarray) -> tuple[np.ndarray, ...]:
    y = x * 2
    return np.sort(y), np.argsort(y) + 1, np.sort(y.reshape(40, -1), axis=0)


def _filtered(x: np.ndarray) -> tuple[np.ndarray, ...]:
    z = np.fft.rfft(x - 1)
    return np.fft.irfft(z * 0.5, x.size), z, np.abs(np.fft.fft(x.reshape(40, -1)))


def _solved(x: np.ndarray) -> np.ndarray:
    square = x[:1600].reshape(40, 40) + 50 * np.eye(40)
    return np.linalg.cholesky(square @ square.T) + 1


CASES: dict[str, Callable] = {"sorts": _ordered, "transforms": _filtered, "equations": _solved}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [1600, 5000])
def test_results_stay_when_the_program_runs_again(name: str, size: int) -> None:
    f, x = CASES[name], data(size)
    compiled = np_compile.compile(f, backend="native")
    first = compiled(x)
    kept = [r.copy() for r in (first if isinstance(first, tuple) else [first])]
    for k in range(4):
        compiled(data(size, seed=k + 1))
    for before, now in zip(kept, first if isinstance(first, tuple) else [first], strict=True):
        np.testing.assert_array_equal(before, now)
    check(f, x, backend="native", rtol=1e-9)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?"])
@pytest.mark.parametrize("shape", [(0,), (1,), (3000,), (50, 0), (60, 70), (5, 6, 70)])
def test_sorts_along_each_axis(shape: tuple[int, ...], dtype: str) -> None:
    def f(x: np.ndarray) -> list[np.ndarray]:
        along = range(-x.ndim, x.ndim)
        return [y for k in along for y in (np.sort(x, axis=k), np.argsort(x[..., ::-1], axis=k))]

    distinct = np.random.default_rng(0).permutation(int(np.prod(shape))).reshape(shape)
    x = (distinct if dtype in ("f4", "f8", "i4") else np.zeros(shape)).astype(dtype)
    if dtype in ("f4", "f8", "i4"):
        check(f, x, backend="native")
    else:
        check(lambda x: [np.sort(x, axis=k) for k in range(x.ndim)], x, backend="native")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [1024, 1025, 2000, 4096])
def test_real_transforms_of_parts(n: int, dtype: str) -> None:
    def f(x: np.ndarray) -> tuple[np.ndarray, ...]:
        z = np.fft.rfft(x[::-2])
        return (
            z,
            np.fft.irfft(z, n),
            np.fft.irfft(z[:20], n),
            np.fft.irfft(z, n // 2, norm="forward"),
        )

    check(f, data(2 * n).astype(dtype), backend="native", rtol=1e-3 if dtype == "f4" else 1e-9)


def _made(f: Callable, *args: Any) -> Executable:
    made: list[Executable] = []
    with listening(made.append):
        np_compile.compile(f, backend="native")(*args)
    return made[0]


def test_a_run_with_calls_takes_the_scratch_memory_of_the_one_before() -> None:
    made = _made(_ordered, data(5000))
    assert made.scratch_bytes > 0
    tensor = torch.from_numpy(data(5000))
    seen = set()
    for _ in range(5):
        made(tensor)
        (work,) = made._free
        assert work.block is not None
        seen.add(work.block.data_ptr())
    assert len(seen) == 1


def test_parameters_among_the_arguments_of_a_call() -> None:
    def f(x: np.ndarray, shift: float) -> np.ndarray:
        return np.sort(x + shift) * np.fft.rfft(x)[0].real

    compiled = np_compile.compile(f, backend="native")
    x = data(3000)
    for shift in (0.5, 1.5, -2.0):
        np.testing.assert_allclose(compiled(x, shift), f(x, shift), rtol=1e-9)


def test_an_index_out_of_bounds_before_a_call() -> None:
    def f(x: np.ndarray, i: np.ndarray) -> np.ndarray:
        return np.sort(x[i] * 2)

    compiled = np_compile.compile(f, backend="native")
    x, good, bad = data(3000), np.arange(2000), np.full(2000, 3000)
    expected = f(x, good)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x, good), expected)
        with pytest.raises(IndexError, match="index 3000 is out of bounds for axis 0"):
            compiled(x, bad)


def test_interpolation_takes_numpys_choice_among_equal_places() -> None:
    y, x = data(40), data(40, seed=1)
    check(lambda y, x: np.interp(y, np.arange(40.0), x, period=3) * 2, y, x, backend="native")
