"""A temporary takes the memory of the result that its last reader stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile
from np_compile import config
from np_compile.kernels.compile import listening
from np_compile.kernels.passes.buffer_reuse import buffer_reuse

from ..graphs import after

HEAD = """\
x: f64[4,6] strides[6,1] input 0
t: f64[4,6] strides[6,1] temporary
u: f64[4,6] strides[6,1] temporary
w: f64[6,4] strides[4,1] temporary
h: f32[4,6] strides[6,1] temporary
r: f64[4,6] strides[6,1] output
q: f64[4,6] strides[6,1] output
"""

FIRST = """\
for i < 4:
  for j < 6:
    t[i, j] running sum= x[i, j] over i
"""


def left(text: str) -> str:
    return after(HEAD + FIRST + text, buffer_reuse)


def test_a_temporary_lies_where_its_last_reader_stores() -> None:
    last = "for k < 4:\n  for l < 6:\n    r[k, l] running sum= (t[k, l] * x[k, 0]) over l"
    assert left(last) == (FIRST + last).replace("t[", "r[")


def test_the_last_of_several_readers_takes_it() -> None:
    last = "for k < 4:\n  for l < 6:\n    r[k, l] = t[k, l]\n    q[k, l] = (t[k, l] * 2.0:f64)"
    assert left(last) == (FIRST + last).replace("t[", "q[")


def test_one_result_takes_several_temporaries_in_turn() -> None:
    last = """\
for k < 4:
  for l < 6:
    u[k, l] running sum= t[k, l] over l
for m < 4:
  for n < 6:
    r[m, n] = (u[m, n] + x[0, 0])"""
    assert left(last) == (FIRST + last).replace("t[", "r[").replace("u[", "r[")


BACKWARDS = "[k, (5 + -1*l)]"
AGAIN = "for k < 4:\n  for l < 6:\n    "
COPY = "for m < 4:\n  for n < 6:\n    r[m, n] = "
APART = {
    "it is read at another place": f"r[k, l] = t{BACKWARDS}",
    "it is read after the store": f"r[k, l] = t[k, l]\n    q[k, l] = t{BACKWARDS}",
    "it is read again later": f"r[k, l] = t[k, l]\n{AGAIN}q[k, l] = t{BACKWARDS}",
    "the result is a sum": "r[k, 0] sum= t[k, l] over l",
    "an element is stored several times": "r[k, k] = t[k, l]",
    "the result lies in another way": f"w[l, k] = t[k, l]\n{COPY}w[n, m]",
    "the result has another dtype": f"h[k, l] = f32(t[k, l])\n{COPY}f64(h[m, n])",
    "the result is an argument": "x[k, l] = t[k, l]",
    "the result is stored in part before": "r[k, 5] = 0.0:f64\n    r[k, l] = t[k, l]",
}  # fmt: skip


@pytest.mark.parametrize("why", APART)
def test_memory_of_its_own(why: str) -> None:
    last = f"for k < 4:\n  for l < 6:\n    {APART[why]}"
    assert left(last) == after(HEAD + FIRST + last)


# Functions


def _table(x: Any) -> Any:
    return np.cumsum(np.cumsum(x, axis=0), axis=1)


def _both(x: Any) -> Any:
    y = np.cumsum(x, axis=0)
    return np.cumsum(y, axis=1), y


def _turned(x: Any) -> Any:
    return np.cumsum(np.cumsum(x, axis=0)[:, ::-1], axis=1)


def _thrice(x: Any) -> Any:
    return np.cumsum(np.cumsum(np.cumsum(x, axis=1), axis=0) * x, axis=1) / 2


@pytest.mark.parametrize("f", [_table, _both, _turned, _thrice])
@given(rows=st.integers(1, 40), columns=st.integers(1, 40), seed=st.integers(0, 99))
@settings(max_examples=8, deadline=None)
def test_results_are_those_of_numpy(f: Callable, rows: int, columns: int, seed: int) -> None:
    x = np.random.default_rng(seed).integers(-9, 9, (rows, columns)).astype(float)
    with config.patch(plain="never"):
        got = np_compile.compile(f, backend="native")(x.copy())
    np.testing.assert_array_equal(got, f(x), strict=True)


def test_a_table_of_sums_needs_no_other_memory() -> None:
    made: list[Any] = []
    with config.patch(plain="never"), listening(made.append):
        np_compile.compile(_table, backend="native")(np.ones((100, 100)))
    assert made[0].scratch_bytes == 0
