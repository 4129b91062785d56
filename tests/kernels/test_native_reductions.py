"""Reductions and running reductions as loops: axes, dtypes, masks, NaNs, ties, empty arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ..support import data
from .native_checks import Case, check_table

ALL = "?bhilBHILefdFD"
FOLDS = ("sum", "prod", "mean", "min", "max", "any", "all", "argmin", "argmax", "std", "var", "ptp")
ONE_AXIS = ("argmin", "argmax")


def along(name: str, axis: object) -> Callable:
    """The function of NumPy, over an axis."""
    f = getattr(np, name)
    return lambda x: f(x, axis=axis)


def folds(dtype: str) -> dict[str, Case]:
    x, mask = data(4, 5, 6, dtype=dtype), data(4, 5, 6, dtype="?", seed=2)
    table: dict[str, Case] = {}
    for name in FOLDS:
        if name == "ptp" and dtype == "?":
            continue
        f = getattr(np, name)
        for axis in (None, 0, 1, -1) + (() if name in ONE_AXIS else ((0, 2),)):
            table[f"{name} {axis}"] = (along(name, axis), (x,))
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


@pytest.mark.parametrize("dtype", ALL)
def test_reductions_over_any_axes(dtype):
    calls = {"aten.prod.dim_int"} if is_complex(dtype) else ()
    check_table(folds(dtype), calls)


@pytest.mark.parametrize("dtype", ALL)
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
        for axis in (None, 0, 1, 2):
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


@pytest.mark.parametrize("dtype", VALUES)
@given(
    rows=st.integers(1, 40),
    columns=st.one_of(st.integers(1, 9), st.integers(10, 140)),
    most=st.integers(1, 8),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=20, deadline=None)
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
