"""A reader without a C compiler, or with one that fails."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import np_compile
from np_compile import config
from np_compile.kernels.build.toolchain import CompileFailed
from np_compile.reader import dispatch
from np_compile.reader.reading import MISS, Reading
from np_compile.replay import calls


def recurrence(x):
    for i in range(1, len(x)):
        x[i] += 0.5 * x[i - 1]
    return x


@pytest.mark.parametrize("compiler", ["/bin/false", "/nowhere/cc"])
@pytest.mark.parametrize("when", ["call", "background"])
def test_a_function_runs_all_the_same(monkeypatch, tmp_path, compiler, when) -> None:
    monkeypatch.setenv("CC", compiler)
    fast = np_compile.compile(recurrence)
    with (
        config.patch(loops="whole", cache_dir=str(tmp_path), compile_in=when),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        for _ in range(3):
            np.testing.assert_array_equal(fast(np.arange(90.0)), recurrence(np.arange(90.0)))


def test_what_the_compiler_says_is_the_reason_and_is_told_once(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("CC", "/bin/false")
    reading = Reading(recurrence)
    with config.patch(loops="whole", cache_dir=str(tmp_path), compile_in="call"):
        with pytest.warns(RuntimeWarning, match=r"(?s)recurrence: its loops.*/bin/false"):
            assert reading.call((np.arange(90.0),), {}) is MISS
        assert reading.call((np.arange(90.0),), {}) is MISS
    assert "the C compiler" in reading.report()[0]


def _fails() -> None:
    raise CompileFailed("no such instruction")


def test_what_makes_calls_of_loops_tells_of_the_compiler(monkeypatch) -> None:
    monkeypatch.setattr(dispatch, "_making", _fails)
    with pytest.warns(RuntimeWarning, match="go by Python.*no such instruction"):
        assert dispatch._library.__wrapped__() is None


def test_what_knows_calls_again_tells_of_the_compiler(monkeypatch) -> None:
    monkeypatch.setattr(calls, "_library", _fails)
    with pytest.warns(RuntimeWarning, match="go by Python.*no such instruction"):
        assert not calls.available.__wrapped__()
