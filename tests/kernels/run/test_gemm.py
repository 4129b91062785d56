"""Products of matrices by `gemm.c`, against NumPy's.

Products of small integers are exact in any order, so most tests ask for equal values.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile
from np_compile.kernels import build
from np_compile.kernels.build import toolchain
from np_compile.kernels.compile import listening
from np_compile.kernels.run import gemm, pool
from np_compile.kernels.run.execute import Executable

from ... import fresh
from ...support import check, data, examples
from ..native_checks import check_table

DTYPES = {"f32": np.float32, "f64": np.float64}
Product = Callable[..., None]


def _address(dtype: str) -> int:
    return gemm.address(dtype)


def multiply(
    c: np.ndarray, a: np.ndarray, b: np.ndarray, threads: int = 1, address: Any = _address
) -> None:
    """c = a @ b, of two or three axes, by `npc_gemm`."""
    dtype = {np.dtype(v): k for k, v in DTYPES.items()}[c.dtype]
    *batch, m, k = a.shape
    shape = [*(batch or [1]), m, b.shape[-1], k]
    for x in (c, a, b):
        strides = [s // x.itemsize for s in x.strides]
        shape += strides if batch else [0, *strides]
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_int, *[ctypes.c_void_p] * 4])
    function(address(dtype))(
        pool.run_address(), threads, (ctypes.c_long * 13)(*shape),
        c.ctypes.data, a.ctypes.data, b.ctypes.data,
    )  # fmt: skip


def integers(shape: Sequence[int], dtype: str, seed: int, layout: str = "C") -> np.ndarray:
    """Small integers as floats, in memory of a layout."""
    values = np.random.default_rng(seed).integers(-4, 5, shape).astype(DTYPES[dtype])
    if layout == "C":
        return values
    if layout == "F":
        return np.asfortranarray(values)
    if layout == "apart":
        wide = np.full([2 * n + 1 for n in shape], np.nan, values.dtype)
        part = wide[tuple(slice(1, None, 2) for _ in shape)]
        part[...] = values
        return part
    if layout == "back":
        return np.ascontiguousarray(values[::-1, ::-1])[::-1, ::-1]
    assert layout == "rows"  # the same one again and again
    return np.broadcast_to(values[:1], shape)


LAYOUTS = st.sampled_from(["C", "F", "apart", "back", "rows"])
EXTENTS = st.integers(1, 60) | st.sampled_from([96, 191, 193, 257, 481, 700])


@settings(deadline=None, max_examples=examples(150))
@given(
    m=EXTENTS, n=EXTENTS, k=EXTENTS | st.sampled_from([1600, 5000]),
    dtype=st.sampled_from(["f32", "f64"]),
    layouts=st.tuples(LAYOUTS, LAYOUTS), out=st.sampled_from(["C", "F", "apart"]),
    threads=st.sampled_from([1, 3]),
)  # fmt: skip
def test_any_shape_and_layout(m, n, k, dtype, layouts, out, threads):
    a, b = integers((m, k), dtype, 1, layouts[0]), integers((k, n), dtype, 2, layouts[1])
    whole = integers((m, n), dtype, 3, out)
    around = whole.base.copy() if out == "apart" else None
    multiply(whole, a, b, threads)
    np.testing.assert_array_equal(whole, a @ b)
    if around is not None:  # nothing beside it was written
        whole[...] = around[1::2, 1::2]
        np.testing.assert_array_equal(whole.base, around)


@settings(deadline=None, max_examples=examples(100))
@given(
    m=EXTENTS | st.sampled_from([1024, 1025, 2100]), k=EXTENTS | st.sampled_from([5000, 9001]),
    dtype=st.sampled_from(["f32", "f64"]), layout=LAYOUTS, of=st.sampled_from(["C", "apart"]),
    out=st.sampled_from(["C", "F", "apart"]), threads=st.sampled_from([1, 3]), turned=st.booleans(),
)  # fmt: skip
def test_vectors(m, k, dtype, layout, of, out, threads, turned):
    a, x = integers((m, k), dtype, 1, layout), integers((k, 1), dtype, 2, of)
    y = integers((m, 1), dtype, 3, out)
    around = y.base.copy() if out == "apart" else None
    if turned:
        multiply(y.T, x.T, a.T, threads)
    else:
        multiply(y, a, x, threads)
    np.testing.assert_array_equal(y, a @ x)
    if around is not None:
        y[...] = around[1::2, 1::2]
        np.testing.assert_array_equal(y.base, around)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_and_infinity_in_products_with_vectors(dtype: str) -> None:
    for m, k in ((9, 61), (40, 33), (17, 100)):
        for row, column in ((0, 0), (3, k - 1), (8, k - 9), (m - 1, k - 17)):
            for value in (np.nan, np.inf):
                a, x = integers((m, k), dtype, 1), np.ones((k, 1), DTYPES[dtype])
                a[row, column] = value
                for matrix in (a, np.asfortranarray(a)):
                    y = np.empty((m, 1), a.dtype)
                    multiply(y, matrix, x)
                    np.testing.assert_array_equal(y, a @ x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(7, 5, 6), (300, 20, 30), (3, 200, 190), (2, 300, 400)])
def test_batches(sizes: tuple[int, int, int], dtype: str) -> None:
    count, m, n = sizes
    a, b = integers((count, m, 33), dtype, 1), integers((count, n, 33), dtype, 2)
    for threads in (1, 2):
        c = np.empty((count, m, n), DTYPES[dtype])
        multiply(c, a, b.transpose(0, 2, 1), threads)
        np.testing.assert_array_equal(c, a @ b.transpose(0, 2, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(300, 70, 500), (9, 20000, 40), (700, 700, 30)])
def test_the_error_is_that_of_a_sum_in_blocks(shape: tuple[int, int, int], dtype: str) -> None:
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(DTYPES[dtype]) for s in ((m, k), (k, n)))
    c = np.empty((m, n), DTYPES[dtype])
    multiply(c, a, b, 2)
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    scale = np.abs(a).astype(float) @ np.abs(b).astype(float)
    steps = min(k, 192) + k / 192
    assert (np.abs(c - exact) <= np.finfo(DTYPES[dtype]).eps * steps * scale).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape",
    [
        (500, 300, 400), (64, 9000, 50), (1000, 20, 11), (40, 30, 3000), (90, 900, 90),
        (900, 901, 1), (1, 901, 900), (40, 30_000, 1), (1, 30_000, 40),
    ],
)  # fmt: skip
def test_threads_change_nothing(shape: tuple[int, int, int], dtype: str) -> None:
    m, k, n = shape
    a, b = data(m, k).astype(DTYPES[dtype]), data(k, n, seed=1).astype(DTYPES[dtype])
    one, many = np.empty((m, n), a.dtype), np.empty((m, n), a.dtype)
    multiply(one, a, b, 1)
    for threads in (2, 3, 8):
        multiply(many, a, b, threads)
        np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(5, 23), (3000, 100), (90, 300), (20, 700), (9000, 40)])
def test_a_matrix_times_itself(shape: tuple[int, int], order: Any, dtype: str) -> None:
    x = np.asarray(np.random.default_rng(0).standard_normal(shape), DTYPES[dtype], order=order)
    c = np.full((shape[1], shape[1]), np.nan, x.dtype)
    multiply(c, x.T, x, 2)
    np.testing.assert_array_equal(c, c.T)
    tolerance = 8 * np.finfo(x.dtype).eps * shape[0]
    np.testing.assert_allclose(c, x.T.astype(float) @ x.astype(float), rtol=0, atol=tolerance)


def test_nan_and_infinity_stay_where_they_are() -> None:
    a, b = integers((50, 61), "f64", 1), integers((61, 70), "f64", 2)
    a[3, 5], a[7, 60], b[60, 69], b[9, 0] = np.nan, np.inf, -np.inf, np.nan
    c = np.empty((50, 70))
    multiply(c, a, b)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("dtype", DTYPES)
@given(
    m=st.integers(1, 9), n=st.integers(1, 40), k=st.integers(1, 9), beside=st.integers(0, 9),
    turned=st.booleans(),
)  # fmt: skip
@settings(max_examples=examples(60), deadline=None)
def test_what_lies_beside_a_matrix_is_not_in_the_product(
    dtype: str, m: int, n: int, k: int, beside: int, turned: bool
) -> None:
    wide = np.full((k, n + beside), np.nan, DTYPES[dtype])
    b = wide[:, :n]
    b[...] = integers((k, n), dtype, 1)
    a = integers((m, k), dtype, 2)
    c = np.empty((m, n), DTYPES[dtype])
    if turned:
        multiply(c.T, b.T, a.T)
    else:
        multiply(c, a, b)
    np.testing.assert_array_equal(c, a @ b)


NARROW = {"256 bits": ["-mno-avx512f"], "128 bits": ["-mno-avx512f", "-mno-avx"]}


@pytest.mark.parametrize("width", NARROW)
@pytest.mark.parametrize("dtype", DTYPES)
def test_other_processors(width: str, dtype: str, tmp_path: Path) -> None:
    if shutil.which("gcc") is None or "x86_64" not in toolchain.processor():
        pytest.skip("needs gcc and an x86 processor")
    check_compiled(tmp_path, dtype, gemm.source(dtype), NARROW[width])


@pytest.mark.parametrize("dtype", DTYPES)
def test_without_memory_for_parts(dtype: str, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    text = gemm.source(dtype)
    for request in (
        "malloc(sizeof(REAL) * m * n * parts)",
        "malloc(sizeof(REAL) * (k + (split ? chunks * m : 0)))",
    ):
        assert text.count(request) == 1
        text = text.replace(request, "NULL")
    check_compiled(tmp_path, dtype, text, [])


def check_compiled(folder: Path, dtype: str, text: str, flags: list[str]) -> None:
    """Integer products by the library that gcc makes of a text with more flags."""
    source, library = folder / "gemm.c", folder / "gemm.so"
    source.write_text(text)
    usual = [f for f in build.flags(build.compiler()) if f != "-mprefer-vector-width=512"]
    command = ["gcc", *usual, *flags, "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(library))
    address = ctypes.cast(loaded.npc_gemm, ctypes.c_void_p).value
    vectors = (30, 303, 1), (1, 305, 77), (21, 40_000, 1), (700, 999, 1)
    for m, k, n in (
        (1, 1, 1),
        (7, 300, 11),
        (45, 20, 77),
        (300, 30, 500),
        (20, 4000, 30),
        *vectors,
    ):
        for layout in ("C", "F", "apart"):
            a, b = integers((m, k), dtype, 1, layout), integers((k, n), dtype, 2, layout)
            c = np.empty((m, n), DTYPES[dtype])
            multiply(c, a, b, 2, lambda _: address)
            np.testing.assert_array_equal(c, a @ b)


# -- in programs -------------------------------------------------------------------------------


def programs(f: Callable, *args: Any) -> list[Executable]:
    """What is compiled for a call."""
    made: list[Executable] = []
    with listening(made.append):
        np_compile.compile(f, backend="native")(*args)
    return made


def _network(x: np.ndarray, w: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    hidden = np.tanh(x @ w)
    return hidden @ v, hidden.T @ x


NETWORK = (data(90, 40), data(40, 70, seed=1), data(70, 50, seed=2))


def test_a_program_with_products_is_one_section() -> None:
    (made,) = programs(_network, *NETWORK)
    assert len(made.source.sections()) == 1
    assert made.entry() is not None
    assert not any("torch runs" in note for note in made.notes)
    check(_network, *NETWORK, backend="native", rtol=1e-12)


def test_products_of_single_precision_and_of_both() -> None:
    single = tuple(x.astype(np.float32) for x in NETWORK)
    check(_network, *single, backend="native", rtol=1e-4)
    check(_network, single[0], *NETWORK[1:], backend="native", rtol=1e-12)


def test_products_of_views() -> None:
    x, y = data(80, 90), data(90, 60, seed=1)
    cases: dict[str, Callable] = {
        "turned": lambda x, y: (y.T @ x.T, x @ x.T, x.T @ x),
        "parts": lambda x, y: x[::2, 5:] @ y[5:, ::3],
        "backwards": lambda x, y: x[:, ::-1] @ y[::-1],
        "broadcast": lambda x, y: np.broadcast_to(x[0], (70, 90)) @ y,
        "computed": lambda x, y: (x + 1) @ (y * 2) - (x @ y),
        "batches": lambda x, y: x.reshape(2, 40, 90) @ y,
        "pairs": lambda x, y: x.reshape(2, 40, 90) @ np.stack([y, y + 1]),
        "twice": lambda x, y: (x @ y) @ (y.T @ x.T),
    }
    check_table({name: (f, (x, y)) for name, f in cases.items()}, rtol=1e-11)


def test_products_with_vectors() -> None:
    a, x, y = data(80, 90), data(90, seed=1), data(80, seed=2)
    cases: dict[str, Callable] = {
        "both sides": lambda a, x, y: (a @ x, y @ a, (a @ x) @ a, a.T @ y),
        "parts": lambda a, x, y: (a[::2, 5:] @ x[5:], y[:40] @ a[40:], a[:, :40] @ x[:80:2]),
        "backwards": lambda a, x, y: (a[::-1] @ x[::-1], a[:, ::-1] @ x),
        "with gaps": lambda a, x, y: (a[::2, ::2] @ x[::2], y[::2] @ a[::2]),
        "computed": lambda a, x, y: (a @ (x + 1) * 2, 1 / (1 + np.exp(-a @ x)), np.tanh(y) @ a),
        "broadcast": lambda a, x, y: (np.broadcast_to(a[0], (70, 90)) @ x, a @ np.ones(90)),
    }
    check_table({name: (f, (a, x, y)) for name, f in cases.items()}, rtol=1e-11)
    single = tuple(v.astype(np.float32) for v in (a, x, y))
    check_table({name: (f, single) for name, f in cases.items()}, rtol=1e-4)


def test_a_vector_is_multiplied_where_the_matrix_lies_and_where_it_is_computed() -> None:
    def steps(f: Callable, *args: Any) -> list[str]:
        (made,) = programs(f, *args)
        return [type(step).__name__ for step in made.source.program.steps]

    a, x = data(80, 90), data(90, seed=1)
    assert steps(lambda a, x: a @ x, a, x) == ["Product"]
    assert steps(lambda a, x: (a + 1) @ x, a, x) == ["Loop"]
    assert steps(lambda a, x: a[:20] @ x, a, x) == ["Loop"]
    assert steps(lambda a, x: a[:, ::2] @ x[::2], a, x) == ["Loop"]


def test_a_product_with_a_vector_of_an_array_that_changes() -> None:
    def f(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        before = a @ x
        a *= 2
        x[:] = a @ x
        return before, a @ x

    check(f, data(60, 60), data(60, seed=1), backend="native", rtol=1e-11)


def test_a_product_into_an_argument() -> None:
    def f(x: np.ndarray, out: np.ndarray) -> np.ndarray:
        np.matmul(x, x, out=out)
        out += 1
        x[:] = out @ x
        return x

    check(f, data(60, 60), np.zeros((60, 60)), backend="native", rtol=1e-11)


def test_a_result_stays_when_the_program_runs_again() -> None:
    f = np_compile.compile(_network, backend="native")
    first = f(*NETWORK)
    kept = [r.copy() for r in first]
    f(*(2 * x for x in NETWORK))
    for before, now in zip(kept, first, strict=True):
        np.testing.assert_array_equal(before, now)


def test_complex_and_integer_products_are_torchs() -> None:
    z, i = data(50, 40, dtype="c16"), np.arange(2000).reshape(50, 40)
    calls = {"aten.mm.default"}
    check_table({"complex": (lambda z: z @ z.T, (z,))}, calls, rtol=1e-11)
    check_table({"integer": (lambda i: i @ i.T, (i,))}, calls)


@pytest.mark.skipif(sys.platform != "linux", reason="needs the names of loaded libraries")
def test_no_library_is_loaded_for_a_program_without_products() -> None:
    code = (
        "import numpy as np, np_compile; from np_compile.kernels.run import gemm\n"
        "np_compile.compile(lambda x: x * 2 + 1, backend='native')(np.ones(10))\n"
        "assert gemm.address.cache_info().currsize == 0\n"
        "np_compile.compile(lambda x: x @ x, backend='native')(np.ones((90, 90)))\n"
        "assert gemm.address.cache_info().currsize == 1\n"
    )
    assert fresh.run(code).returncode == 0


def test_gradients_of_a_product() -> None:
    x = torch.from_numpy(data(60, 70)).requires_grad_()
    y = torch.from_numpy(data(70, 80, seed=1)).requires_grad_()

    @np_compile.wrap_numpy
    def f(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.sum(np.tanh(x @ y) ** 2)

    found = torch.autograd.grad(np_compile.compile(f, backend="native")(x, y), (x, y))
    expected = torch.autograd.grad((torch.tanh(x @ y) ** 2).sum(), (x, y))
    for g, e in zip(found, expected, strict=True):
        torch.testing.assert_close(g, e, rtol=1e-11, atol=1e-11)
