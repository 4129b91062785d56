"""Reductions and running reductions as loops: axes, dtypes, masks, NaNs, ties, empty arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile

from ..support import data, examples, first, thorough
from .native_checks import Case, check_table

ALL = "?bhilBHILefdFD"
FOLDS = ("sum", "prod", "mean", "min", "max", "any", "all", "argmin", "argmax", "std", "var", "ptp")
ONE_AXIS = ("argmin", "argmax")


def along(name: str, axis: object) -> Callable:
    """The function of NumPy, over an axis."""
    f = getattr(np, name)
    return lambda x: f(x, axis=axis)


def folds(dtype: str) -> dict[str, Case]:
    """Over each axis, or for what else differs from one dtype to the next, some."""
    few = dtype in "eBfD"
    x, mask = data(4, 5, 6, dtype=dtype), data(4, 5, 6, dtype="?", seed=2)
    table: dict[str, Case] = {}
    for name in FOLDS:
        if name == "ptp" and dtype == "?":
            continue
        f = getattr(np, name)
        axes = (None, 1) if few else (None, 0, 1, -1) + (() if name in ONE_AXIS else ((0, 2),))
        for axis in axes:
            table[f"{name} {axis}"] = (along(name, axis), (x,))
            if few:
                continue
            table[f"{name} {axis} kept"] = (
                lambda x, f=f, a=axis: f(x, axis=a, keepdims=True),
                (x,),
            )
        if name in ("sum", "prod", "mean", "any", "all", "std", "var"):
            table[f"{name} where"] = (lambda x, m, f=f: f(x, axis=1, where=m), (x, mask))
        if name in ("sum", "prod"):
            table[f"{name} initial"] = (lambda x, f=f: f(x, axis=1, initial=3), (x,))
        if name in ("min", "max") and dtype != "?":
            table[f"{name} where initial"] = (
                lambda x, m, f=f: f(x, axis=1, where=m, initial=3),
                (x, mask),
            )
    return table


def is_complex(dtype: str) -> bool:
    return np.dtype(dtype).kind == "c"


# Other integers, and complex numbers of single precision, have the loops of these.
@pytest.mark.parametrize("dtype", [*"?iBefdD", *thorough(*"bhlHILF")])
def test_reductions_over_any_axes(dtype):
    calls = {"aten.prod.dim_int"} if is_complex(dtype) else ()
    check_table(folds(dtype), calls)


@pytest.mark.parametrize("dtype", first(ALL, *"?iBLefdD"))
def test_running_reductions(dtype):
    x = data(4, 5, 6, dtype=dtype)
    table: dict[str, Case] = {}
    for name in ("cumsum", "cumprod"):
        for axis in (None, 0, 1, -1):
            table[f"{name} {axis}"] = (
                along(name, axis),
                (x,),
            )
    if not is_complex(dtype):
        for f in (np.maximum, np.minimum, np.logical_or):
            table[f"{f.__name__}.accumulate"] = (lambda x, f=f: f.accumulate(x, axis=1), (x,))
    table["reduceat"] = (lambda x: np.add.reduceat(x, [0, 2, 3], axis=0), (x,))
    check_table(table, {"aten.cumprod.default"} if is_complex(dtype) else ())


@pytest.mark.parametrize("dtype", "efd")
def test_nans_in_reductions(dtype):
    x = data(4, 5, 6, dtype=dtype)
    x[0, 1, 2] = x[2, 2, :3] = np.nan
    x[3, 3] = np.nan
    names = ("sum", "prod", "min", "max", "argmin", "argmax", "mean", "any", "all", "cumsum")
    ignoring = ("nansum", "nanprod", "nanmean", "nanmin", "nanmax", "nanstd", "nanvar", "nancumsum")
    table: dict[str, Case] = {}
    for name in (*names, *ignoring):
        for axis in (None, 0, 1, 2) if dtype == "d" else (None, 1):
            table[f"{name} {axis}"] = (along(name, axis), (x,))
    for name in ("nanargmin", "nanargmax"):
        table[name] = (along(name, 0), (x,))
    for f in (np.maximum, np.minimum, np.fmax, np.fmin):
        table[f"{f.__name__}.reduce"] = (lambda x, f=f: f.reduce(x, axis=1), (x,))
    for f in (np.maximum, np.minimum):
        table[f"{f.__name__}.accumulate"] = (lambda x, f=f: f.accumulate(x, axis=2), (x,))
    check_table(table, new=False)


def test_of_equal_extremes_the_first_is_named():
    x = np.array([[3, 1, 3, 1], [2, 2, 2, 2], [0, 5, 5, 0]])
    table: dict[str, Case] = {}
    for name in ("argmin", "argmax"):
        for axis in (None, 0, 1):
            for kind in "ildf?":
                table[f"{name} {axis} {kind}"] = (
                    along(name, axis),
                    (x.astype(kind),),
                )
    long = np.tile(np.arange(7.0), 1000)
    table["long"] = (lambda x: (np.argmax(x), np.argmin(x)), (long,))
    check_table(table)


def _extremes(x):
    """Several extremes of the same rows, which are one loop."""
    return np.argmax(x, 1), np.argmin(x, 1), x.max(1), x.min(1), np.argmax(x), x.max()


def _nearest(x):
    """Places among the few elements of each row, of values that are computed."""
    return np.argmin((x - 1) * 2, axis=1), np.argmax(abs(x), axis=1), x.max(1), x.min(1)


VALUES = {
    "f8": [-np.inf, -1.0, -0.0, 0.0, 2.0, 2.0, np.inf, np.nan],
    "f4": [-np.inf, -1.5, 0.0, 1.0, np.nan],
    "i8": [-(2**63), -1, 0, 3, 2**63 - 1],
    "u1": [0, 1, 255],
    "?": [False, True],
}


@pytest.mark.parametrize("dtype", first(VALUES, "f8", "i8", "?"))
@given(
    rows=st.integers(1, 40),
    columns=st.one_of(st.integers(1, 9), st.integers(10, 140)),
    most=st.integers(1, 8),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=examples(20), deadline=None)
def test_extremes_and_their_first_places(dtype, rows, columns, most, seed):
    rng = np.random.default_rng(seed)
    values = np.array(VALUES[dtype], dtype)
    x = rng.choice(values[rng.permutation(values.size)[:most]], (rows, columns))
    cases: dict[str, Case] = {"extremes": (_extremes, (x,))}
    if dtype != "?":
        cases["nearest"] = (_nearest, (x.astype("f8") if dtype == "i8" else x,))
    with np.errstate(all="ignore"):
        check_table(cases, new=False)


def test_reductions_of_nothing_and_of_one():
    table: dict[str, Case] = {}
    for shape in ((0,), (0, 3), (3, 0), (1, 1), (1,), ()):
        x = np.ones(shape) * 2
        for name in ("sum", "prod", "any", "all"):
            table[f"{name} {shape}"] = (getattr(np, name), (x,))
        if x.ndim:
            for name in ("sum", "prod", "cumsum", "cumprod"):
                table[f"{name} {shape} 0"] = (along(name, 0), (x,))
        if x.size:
            for name in ("max", "argmax", "mean", "std"):
                table[f"{name} {shape}"] = (getattr(np, name), (x,))
    check_table(table)


def test_layouts_of_what_is_reduced():
    x = data(16, 18)
    layouts = {
        "fortran": np.asfortranarray(x),
        "strided": data(32, 54)[::2, ::3],
        "backwards": data(16, 18)[::-1, ::-2],
        "transposed": data(18, 16).T,
    }
    table: dict[str, Case] = {}
    for where, y in layouts.items():
        for name in ("sum", "max", "argmin", "cumsum", "std"):
            for axis in (None, 0, 1):
                table[f"{where} {name} {axis}"] = (
                    along(name, axis),
                    (y,),
                )
    check_table(table, alias=False)


@pytest.mark.parametrize("dtype", ["f", "d", "l", "h", "D"])
def test_long_reductions_in_many_chunks(dtype):
    x = data(3, 70_000, dtype=dtype)
    check_table(
        {
            "all": (lambda x: (x.sum(), x.mean(), x.std()), (x,)),
            "rows": (lambda x: (x.sum(1), x.var(1), np.cumsum(x, 1)), (x,)),
            "columns": (lambda x: (x.sum(0), np.cumsum(x, 0)), (x,)),
            "real": (lambda x: (x.real.max(), x.real.argmin(), x.real.min(), x.real.min(1)), (x,)),
        },
        rtol=1e-5 if dtype == "f" else None,
    )


def products_of(x: Any, m: Any, h: Any) -> Any:
    y = x.reshape(2, -1, 4)
    return (
        x.prod(), m.prod(), m.prod(0), m.prod(1), m[:, ::-1].prod(1), m.T.prod(), h.prod(),
        m.reshape(-1, 4).prod(1), np.cumprod(x), np.prod(y, axis=(0, 2)), m.T.copy().prod(0),
        np.prod(x, initial=1e-300), x.sum(), x.max(), (x * 2).prod(), np.prod(m.T * 1, (1, 0)),
    )  # fmt: skip


@pytest.mark.parametrize("n", [16, 160, 5000, 120_000])
def test_products_are_made_in_order(n: int) -> None:
    """As some of the products on the way overflow, and others vanish, no other order will do."""
    draw = np.random.default_rng(n)
    compiled_ = np_compile.compile(products_of, backend="native")
    for x in (
        np.tile([1e200, 0.0], n // 2), np.tile([1e50, 1e-50], n // 2), 1 + draw.normal(size=n) / 99,
        np.r_[1e-300, np.full(n - 1, 1e2)], draw.choice([1.5, -1.5, 1e-160, 1e160, 1 / 1.5], n),
        draw.choice([2.0, 0.5, -np.inf, np.nan, -0.0], n, p=[0.49, 0.49, 0.01, 0.001, 0.009]),
    ):  # fmt: skip
        args = x, x.reshape(-1, 8), np.clip(x, -9, 9).astype("f2")
        with np.errstate(all="ignore"), np_compile.config.patch(plain="never"):
            wanted = products_of(*args)
            got = compiled_(*args)
        for k, (a, b) in enumerate(zip(got, wanted, strict=True)):
            assert a.dtype == b.dtype
            if k == 12:  # a sum
                np.testing.assert_allclose(a, b, rtol=2e-12)
            else:
                np.testing.assert_array_equal(a, b, f"result {k}")
                number = ~np.isnan(b)
                np.testing.assert_array_equal(np.signbit(a)[number], np.signbit(b)[number])


def test_sums_of_negative_zeros():
    def f(x, y):
        return x.sum(), x.sum(0), x.sum(1), x.mean(0), (x * y).sum(0), np.cumsum(x, 0), y[:1].sum(0)

    x = np.full((2, 40), -0.0)
    for got, want in zip(
        np_compile.compile(f, backend="native")(x, x + 1), f(x, x + 1), strict=True
    ):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_few_elements_that_are_read_backwards(n: int, dtype: str) -> None:
    """Sums over them and over others: gcc 12 makes wrong code of such nests as vectors."""
    x = np.asfortranarray((np.arange(12 * n) * 7 % 19 - 6).reshape(n, 12).astype(dtype))
    for f in (lambda a: np.var(a[::-1]), lambda a: np.sum((a - 0.5)[::-1] ** 2)):
        fast = np_compile.compile(f)
        with np_compile.config.patch(plain="never", compile_in="call"):
            np.testing.assert_allclose(fast(x), f(x), rtol=1e-5)
