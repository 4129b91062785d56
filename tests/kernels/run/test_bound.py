"""A program for many sizes, bound to some: what is known of it is the program for these sizes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config
from np_compile.kernels.ir.check import check
from np_compile.kernels.ir.interpret import execute
from np_compile.kernels.ir.program import Call, Program
from np_compile.kernels.run.execute import Executable
from np_compile.replay.calls import MISS
from np_compile.replay.keeper import Keeper

from ..graphs import eager_passes, equal

Runs = list[tuple[Executable, list[torch.Tensor], list[Any]]]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    """The runs of programs: with what, copied before, and what they gave."""
    found: Runs = []
    run = Executable.run

    def noted(self: Executable, tensors: Any, floats: Any, ints: Any) -> list[Any]:
        before = copy.deepcopy(list(tensors))
        before += [torch.tensor(v, dtype=d) for v, d in _vectors(floats, ints) if len(v)]
        made = run(self, tensors, floats, ints)
        found.append((self, before, copy.deepcopy(made)))
        return made

    monkeypatch.setattr(Executable, "run", noted)
    # A call that is kept for many sizes runs kernels without an executable for its own.
    monkeypatch.setattr(Keeper, "run_for_sizes", lambda self, args, kwargs: MISS)
    with config.patch(plain="never", compile_in="call"), eager_passes():
        yield found


def _vectors(floats: Any, ints: Any) -> list[tuple[list, torch.dtype]]:
    return [([*floats], torch.float64), ([*ints], torch.int64)]


def normalized(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def five_points(x: np.ndarray) -> np.ndarray:
    x[1:-1, 1:-1] += 0.1 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] - x[1:-1, :-2])
    return x.T.copy()


def turned(x: np.ndarray) -> np.ndarray:
    return np.roll(x, 2, axis=1) * x[::-1]


def pairs(x: np.ndarray) -> np.ndarray:
    return np.sum(x[:, :, None] * x[:, None, ::-1], (-2, -1))


def summed(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.cumsum(x, axis=0) + x.std(), x.reshape(-1) @ x.reshape(-1) + x.argmax(axis=0)


def picked(x: np.ndarray) -> np.ndarray:
    return x[np.arange(len(x)) // 2] + np.concatenate([x, x])[len(x) // 2 : len(x) // 2 + len(x)]


@pytest.mark.parametrize("f", [normalized, five_points, turned, pairs, summed, picked])
def test_with_numbers_it_means_the_same(f: Callable, runs: Runs) -> None:
    fast = np_compile.compile(f)
    for shape in ((9, 12), (13, 7), (31, 6), (5, 40)):
        x = np.random.default_rng(0).standard_normal(shape)
        runs.clear()
        got = fast(x.copy())
        want = f(x.copy())
        for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
        assert runs
        for made, inputs, results in runs:
            program = made.source.program
            check(program)
            if not any(isinstance(s, Call) for s in program.steps):
                equal(execute(program, made.source.interface, inputs), results, str(program))
            assert str(program) in str(made)


def smoothed(x: np.ndarray) -> tuple[np.ndarray, ...]:
    spectrum = np.fft.rfft(x, axis=1) * np.exp(-np.arange(x.shape[1] // 2 + 1))
    x += 1
    return np.fft.irfft(spectrum, x.shape[1], axis=1)[::2] + x[::2], x.T, spectrum.real


def halves(x: np.ndarray) -> tuple[np.ndarray, ...]:
    y = np.sqrt(np.abs(x))
    low = y[: len(x) // 2]
    return np.sort(y + 1, axis=0) - low[0], low, y, np.fft.fft(low, axis=0)


@pytest.mark.parametrize("f", [smoothed, halves])
def test_what_it_calls_is_known_at_other_sizes(
    f: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a program with calls between its kernels no other one is made for new sizes."""
    made = []
    begin = Executable.__init__

    def noted(self: Executable, *args: Any, **kwargs: Any) -> None:
        made.append(self)
        begin(self, *args, **kwargs)

    monkeypatch.setattr(Executable, "__init__", noted)
    with config.patch(plain="never", compile_in="call"):
        fast = np_compile.compile(f)
        for k, shape in enumerate(((9, 12), (13, 8), (31, 6), (5, 40), (8, 9), (12, 31), (6, 7))):
            x = np.random.default_rng(k).standard_normal(shape)
            mine, its = x.copy(), x.copy()
            for got, want in zip(fast(mine), f(its), strict=True):
                assert got.shape == want.shape
                np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(mine, its)
    assert len(made) == len(np_compile.recompiles(fast))


def test_its_loops_are_those_of_its_sizes(runs: Runs) -> None:
    fast = np_compile.compile(normalized)
    extents = []
    for rows in (11, 17, 23):
        fast(np.ones((rows, 14)))
        program: Program = runs[-1][0].source.program
        extents.append({step.axis.extent for step in program.steps})  # type: ignore[union-attr]
    assert extents == [{11}, {17}, {23}]


def test_steps_of_a_loop_share_what_is_bound(runs: Runs) -> None:
    def decays(x: np.ndarray, n: int) -> np.ndarray:
        for _ in range(n):
            x = np.sin(x) * 0.5
        return x

    fast = np_compile.compile(decays)
    with config.patch(unroll=2):
        for rows in (11, 17, 23):
            runs.clear()
            fast(np.ones(rows), 9)
    assert len(runs) == 9
    assert len({id(made) for made, *_ in runs}) == 1
