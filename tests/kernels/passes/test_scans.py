"""Running reductions: by rows that take turns, and long ones in parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import np_compile
from np_compile.kernels.compile import listening
from np_compile.kernels.ir.check import check as check_program
from np_compile.kernels.ir.interpret import run
from np_compile.kernels.ir.parse import parse
from np_compile.kernels.ir.program import text
from np_compile.kernels.passes.array_contraction import array_contraction
from np_compile.kernels.passes.fuse import fuse
from np_compile.kernels.passes.linearize import linearize
from np_compile.kernels.passes.scan_blocking import scan_blocking
from np_compile.kernels.passes.schedule import schedule
from np_compile.kernels.target import HOST

from ...support import check, thorough
from ..graphs import SMALL

# Around the sizes from which on, and into how many parts, reductions are cut.
_CUTS = HOST.scan_float_steps, HOST.scan_steps, HOST.long_scan_steps
SIZES = [size + d for size in _CUTS for d in (-1, 5000)]
SIZES += thorough(*[size + d for size in _CUTS for d in (0, 1, 127)])


@pytest.fixture(autouse=True)
def always_compiled() -> Iterator[None]:
    """No call runs in plain NumPy because that is the faster way."""
    with np_compile.config.patch(plain="never"):
        yield


def compiled(f: Callable) -> Callable:
    return np_compile.compile(f, backend="native", fullgraph=True)


def cumsum(x: np.ndarray) -> np.ndarray:
    return np.cumsum(x)


def loops(f: Callable, *args: Any) -> str:
    """The loops of the program that a call compiles."""
    made: list = []
    with listening(made.append):
        compiled(f)(*args)
    (one,) = made
    return text(one.source.program)


def same_bits(f: Callable, *args: Any) -> None:
    """The compiled function gives each bit of what NumPy gives."""
    got, want = compiled(f)(*args), f(*args)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want, strict=True)
    assert got.tobytes() == want.tobytes()


def data(n: int, dtype: str) -> np.ndarray:
    rng = np.random.default_rng(n)
    if np.dtype(dtype).kind in "iub":
        return rng.integers(0, 120, n).astype(dtype)
    if np.dtype(dtype).kind == "c":
        return (rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(dtype)
    return rng.standard_normal(n).astype(dtype)


# Long ones


@pytest.mark.parametrize("dtype", ["i1", "u8", *thorough("?", "i4")])
@pytest.mark.parametrize("n", SIZES)
def test_integers_are_exact(n: int, dtype: str) -> None:
    x = data(n, dtype)
    same_bits(cumsum, x)
    same_bits(lambda x: np.cumsum(x, dtype="i1"), x)
    same_bits(lambda x: np.maximum.accumulate(x), x)
    same_bits(lambda x: np.cumprod(x), x + 3)


def errors(got: np.ndarray, x: np.ndarray) -> np.ndarray:
    """How far running sums are off, in roundings at the size of the sum of absolute values."""
    exact = np.array([float(s) for s in accumulate(map(_Exact, x.tolist()))])
    unit = float(np.finfo(x.dtype).eps) * np.abs(x.astype(float)).cumsum()
    return np.abs(got.astype(float) - exact) / unit


class _Exact:
    """A sum of floats without rounding, as an integer."""

    def __init__(self, value: float, units: int | None = None):
        self.units = int(math.ldexp(value, 400)) if units is None else units

    def __add__(self, other: _Exact) -> _Exact:
        return _Exact(0.0, self.units + other.units)

    def __float__(self) -> float:
        return self.units / (1 << 400)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("kind", ["positive", "cancelling", *thorough("normal")])
@pytest.mark.parametrize(
    "n", [*thorough(HOST.scan_float_steps), HOST.scan_float_steps + 777, HOST.long_scan_steps + 3]
)
def test_sums_are_as_accurate_as_numpys(n: int, kind: str, dtype: str) -> None:
    x = data(n, dtype)
    if kind == "positive":
        x = np.abs(x)
    elif kind == "cancelling":
        x[n // 2 :] = -x[: n - n // 2][::-1]
    ours, numpys = errors(compiled(cumsum)(x), x), errors(np.cumsum(x), x)
    assert ours.max() <= numpys.max() + 3


@pytest.mark.parametrize("dtype", ["f8", "f4", "c8", *thorough("c16")])
@pytest.mark.parametrize("n", SIZES)
def test_floats(n: int, dtype: str) -> None:
    x = data(n, dtype)
    unit = float(np.finfo(dtype).eps) * np.abs(x).cumsum()
    assert (np.abs(compiled(cumsum)(x) - np.cumsum(x)) <= 100 * unit).all()
    assert (np.abs(compiled(cumsum)(x[::-1]) - np.cumsum(x[::-1])) <= 200 * unit[-1]).all()


@pytest.mark.parametrize("n", [HOST.scan_float_steps, HOST.long_scan_steps + 3])
def test_halves_are_rounded_at_each_step(n: int) -> None:
    same_bits(cumsum, np.abs(data(n, "f2")) / 8)


@pytest.mark.parametrize("n", [HOST.scan_float_steps, HOST.long_scan_steps + 3])
def test_float_products_and_extremes_are_those_of_numpy(n: int) -> None:
    x = data(n, "f8")
    same_bits(lambda x: np.cumprod(x), 1 + x / 100)
    x[n // 3] = np.nan
    same_bits(lambda x: np.maximum.accumulate(x), x[: n // 3])
    same_bits(lambda x: np.minimum.accumulate(x), x)


WILD = [
    {100: np.inf}, {100: np.nan}, {100: np.inf, 9000: -np.inf}, {16_000: -np.inf, 16_001: np.inf},
    {3: np.inf, 4: -np.inf}, {16_383: np.nan}, {5: 1.7e308, 6: 1.7e308, 12_000: -1.7e308},
]  # fmt: skip


@pytest.mark.parametrize("at", WILD)
def test_what_is_not_finite_stays_so(at: dict[int, float]) -> None:
    x = data(2 * HOST.scan_float_steps, "f8")
    for k, value in at.items():
        x[k] = value
    with np.errstate(all="ignore"):
        got, want = compiled(cumsum)(x), np.cumsum(x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(got[np.isinf(got)], want[np.isinf(want)])
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


@pytest.mark.parametrize("n", [1, 5, HOST.scan_float_steps])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_a_sum_of_negative_zeros_is_one(n: int, dtype: str) -> None:
    def f(x: np.ndarray, y: np.ndarray) -> tuple:
        part = x.size // HOST.scan_parts // 2 + 1
        return np.cumsum(x)[:part].copy(), np.cumsum(y, axis=0), np.cumsum(y.T, axis=1)

    args = np.full(n, -0.0, dtype), np.full((min(n, 99), 3), -0.0, dtype)
    for got, want in zip(compiled(f)(*args), f(*args), strict=True):
        assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("rows", [1, *thorough(2), 3, *thorough(4), 5])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_few_long_rows(rows: int, axis: int) -> None:
    x = data(rows * (HOST.scan_float_steps + 100), "f8").reshape(rows, -1)
    x = x if axis else np.ascontiguousarray(x.T)
    got, want = compiled(lambda x: np.cumsum(x, axis=axis))(x), np.cumsum(x, axis=axis)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-10)
    integers = (x * 100).astype("i4")
    same_bits(lambda x: np.maximum.accumulate(x, axis=axis), integers)
    same_bits(lambda x: np.cumsum(x, axis=axis), np.concatenate([integers] * 9, axis=axis))


def users(x: np.ndarray, y: np.ndarray) -> tuple:
    total = np.cumsum(x)
    half = total * 0.5 + y
    sines = np.cumsum(np.sin(x))
    mean = total / np.arange(1, x.size + 1)
    total[1:] -= x[:-1]
    return mean, half, sines - half, total, total - y, total[::-1] + sines


@pytest.mark.parametrize(
    "n", [10, HOST.scan_float_steps - 1, HOST.scan_float_steps, HOST.long_scan_steps + 77]
)
def test_users_of_a_running_sum(n: int) -> None:
    check(users, data(n, "f8"), data(n + 1, "f8")[1:], backend="native", rtol=1e-9)


def in_place(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
    np.cumsum(x, out=x)
    y += np.cumsum(y)
    z[:] = np.cumsum(z[::-1]) - z
    x[::2] = np.cumsum(x[1::2])


@pytest.mark.parametrize("n", [10, HOST.scan_float_steps, HOST.long_scan_steps + 78])
def test_in_place(n: int) -> None:
    x = data(n, "f8")
    check(in_place, x, x + 1, x - 1, backend="native", rtol=1e-9)


def test_threads_change_no_bit() -> None:
    x, rows = data(HOST.long_scan_steps + 77, "f8"), data(200_200, "f8").reshape(1001, 200)
    f = compiled(
        lambda x, y: (np.cumsum(x), np.cumsum(x[:20_000]) * 2, np.cumsum(y, 1), np.cumsum(y, 0))
    )
    before = torch.get_num_threads()
    found = set()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.add(b"".join(r.tobytes() for r in f(x, rows)))
    finally:
        torch.set_num_threads(before)
    assert len(found) == 1


def test_a_long_sum_and_its_user_are_one_loop_of_parts() -> None:
    x = data(HOST.long_scan_steps, "f8")
    f = compiled(lambda x: np.cumsum(x) * 2 - 1)
    made: list = []
    with listening(made.append):
        f(x)
    heads = [line for line in text(made[0].source.program).splitlines() if line[:4] == "for "]
    assert sum("jam" in line and "parallel" in line for line in heads) == 1
    assert len(heads) == 4
    assert made[0].scratch_bytes < x.nbytes / 100


def test_a_short_sum_is_one_loop() -> None:
    program = loops(lambda x: np.cumsum(x) * 2 - 1, data(HOST.scan_float_steps - 1, "f8"))
    assert program.count("for ") == 1


def test_what_is_run_over_is_computed_as_vectors() -> None:
    program = loops(lambda x: np.cumsum(np.exp(x), axis=1), data(8000, "f8").reshape(80, 100))
    lines = program.splitlines()
    (at,) = (k for k, line in enumerate(lines) if "exp" in line)
    assert "vector" in lines[at - 1]


# Rows that take turns


@given(
    shape=st.tuples(st.integers(0, 11), st.integers(0, 40)),
    dtype=st.sampled_from(["f8", "f4", "i8", "i2", "c16"]),
    step=st.sampled_from([1, -1, 2]),
    axis=st.sampled_from([0, 1]),
)
def test_rows_and_columns(shape: tuple[int, int], dtype: str, step: int, axis: int) -> None:
    x = data(shape[0] * shape[1], dtype).reshape(shape)[::step, ::step]
    with np_compile.config.patch(plain="never"):
        same_bits(lambda x: np.cumsum(x, axis=axis), x)
        same_bits(lambda x: np.cumsum(x - x[:1], axis=axis) * 2, x)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("shape", [(300, 301), (64, 1024), (7, 5, 130), (1030, 3)])
def test_many_rows(shape: tuple[int, ...], name: str) -> None:
    x = 1 + data(math.prod(shape), "f8").reshape(shape) / 1000
    for axis in range(len(shape)):
        same_bits(lambda x, axis=axis: getattr(np, name)(x, axis=axis), x)
        same_bits(lambda x, axis=axis: getattr(np, name)(x, axis=axis), np.asfortranarray(x))


def test_rows_take_turns() -> None:
    program = loops(lambda x: np.cumsum(x, axis=1) + 1, data(900, "f8").reshape(30, 30))
    assert program.count("for ") == 2
    assert "jam" in program


def test_sums_and_running_sums_of_rows_are_apart() -> None:
    def shares(x: np.ndarray) -> np.ndarray:
        return np.cumsum(x, axis=1) - x.sum(axis=1, keepdims=True)

    x = data(900, "f8").reshape(30, 30)
    assert "jam" in loops(shares, x)
    check(shares, x, backend="native", rtol=1e-12)


# Programs of the loop IR

LINE = """\
x: f64[40] strides[1] input 0
t: f64[40] strides[1] temporary
y: f64[40] strides[1] output 0
"""
BACKWARDS = LINE + "all i < 40: x[i] running sum= x[(39 + -1*i)] over i along i"
CHANGED = (
    LINE
    + """\
all i < 40: t[i] running sum= x[i] over i along i
all i < 40: y[i] = (t[i] * 2.0:f64)
all i < 40: t[(39 + -1*i)] = y[i]
all i < 40: y[i] = (t[i] - x[i])"""
)
BOTH_WAYS = (
    LINE
    + """\
all i < 40: t[i] running max= x[i] over i along i
all i < 40: y[i] = (t[i] - t[(39 + -1*i)])"""
)


@pytest.mark.parametrize("program", [BACKWARDS, CHANGED, BOTH_WAYS])
def test_what_parts_read(program: str) -> None:
    found = []
    # A statement that reads its own target at other indices is for no loop.
    later = () if program is BACKWARDS else (fuse, array_contraction, linearize, schedule)
    for passes in (), (scan_blocking,), (scan_blocking, *later):
        made = parse(program)
        for step in passes:
            made = step(made, SMALL)
            check_program(made)
        memory = {b: data(40, "f8") for b in made.buffers if b.kind == "input"}
        run(made, memory)
        found.append([memory[b] for b in made.buffers if b.kind in ("input", "output")])
    for got in found[1:]:
        np.testing.assert_allclose(got, found[0], rtol=1e-12)


def test_rows_that_need_each_other_do_not_take_turns() -> None:
    head = "x: f64[6,8] strides[8,1] input 0\nfor i < 5:\n  for j < 8:\n"
    own = parse(head + "    x[i, j] running sum= x[i, j] over j along j")
    before = parse(head + "    x[(1 + i), j] running sum= x[i, j] over j along j")
    assert "jam" in text(schedule(own, HOST))
    assert "jam" not in text(schedule(before, HOST))


# Columns in strips


_AROUND_STRIPS = 1, 3, 7, 8, 9, 16, 17, 33, 130, 515
_BETWEEN = 2, 4, 5, 6, *range(10, 16), 31, 65, 18, 19, 56, 63, 100, 127, 200


@pytest.mark.parametrize("dtype", ["f8", *thorough("f4", "i4")])
@pytest.mark.parametrize("columns", [*_AROUND_STRIPS, *thorough(*_BETWEEN)])
def test_strips_of_any_width(columns: int, dtype: str) -> None:
    def f(x: np.ndarray) -> tuple:
        e = np.exp(x - x.max(axis=0))
        return x.sum(0), np.cumsum(x, 0), x.var(0), e / e.sum(0), (x * x).sum(), x.argmax(0)

    x = data(21 * columns, dtype).reshape(21, columns) / np.array(8, dtype)
    check(f, x, backend="native", rtol=1e-4 if dtype == "f4" else 1e-11)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=0))
    return e / e.sum(axis=0)


@pytest.mark.parametrize("shape", [(7, 4), (100, 33), (900, 100), (4000, 40)])
def test_columns_with_a_local_array_each_run_in_strips(shape: tuple[int, int]) -> None:
    x = data(math.prod(shape), "f8").reshape(shape)
    program = loops(softmax, x)
    assert f"f64[{shape[0]}] strides[1] local" in program
    assert "strip" in program
    check(softmax, x, backend="native", rtol=1e-12)


@pytest.mark.parametrize("columns", [1, 17, *thorough(100), 513])
@pytest.mark.parametrize("rows", [4095, *thorough(4096), 4111])
def test_many_rows_of_some_columns(rows: int, columns: int) -> None:
    def f(x: np.ndarray) -> tuple:
        return x.sum(0), x.max(0), (x - x.mean(0)) / x.std(0)

    check(f, data(rows * columns, "f8").reshape(rows, columns), backend="native", rtol=1e-9)


def test_both_sums_of_a_variance_are_made_in_parts() -> None:
    program = loops(lambda x: x.var(axis=0), data(500_000, "f8").reshape(5000, 100))
    heads = [line for line in program.splitlines() if line.startswith("for ")]
    assert [line for line in heads if "parallel" in line] == [h for h in heads if " < 16" in h]
    assert sum(" < 16" in head for head in heads) == 2
