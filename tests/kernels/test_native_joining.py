"""Joining, padding, products of arrays and what NumPy composes of them, as loops."""

from __future__ import annotations

import numpy as np
import pytest

from ..support import data
from .native_checks import check_table

JOINS = {
    "rows": lambda x, y: np.concatenate([x, y]),
    "columns": lambda x, y: np.concatenate([x, y + y], 1),
    "flat": lambda x, y: np.concatenate([x, y], None),
    "stacked": lambda x, y: np.stack([x, y], -1) + x[:, :, None],
    "beside": lambda x, y: np.hstack([x, y]),
    "below": lambda x, y: np.vstack([x[0], y]),
    "in depth": lambda x, y: np.dstack([x, y]),
    "as columns": lambda x, y: np.column_stack([x[:, 0], y]),
    "blocks": lambda x, y: np.block([[x, y], [y, x]]),
    "of two dtypes": lambda x, y: np.concatenate([x, np.arange(5)[None]]),
    "appended": lambda x, y: np.append(x, y[:1], axis=0),
    "resized": lambda x, y: np.resize(x, (3, 9)),
    "consumed": lambda x, y: np.concatenate([x, y, x]).sum(0),
    "sliced": lambda x, y: np.concatenate([x, y])[2:6] + x,
}


@pytest.mark.parametrize("dtype", "dflBD?")
def test_joins(dtype):
    x, y = data(4, 5, dtype=dtype), data(4, 5, dtype=dtype, seed=1)
    check_table({n: (f, (x, y)) for n, f in JOINS.items()})


MODES = (
    "constant", "edge", "reflect", "symmetric", "wrap", "mean", "minimum", "maximum",
    "linear_ramp",
)  # fmt: skip


@pytest.mark.parametrize("dtype", "dl")
def test_pads(dtype):
    x = data(4, 5, dtype=dtype)
    table = {m: (lambda x, m=m: np.pad(x, ((1, 2), (0, 3)), m), (x,)) for m in MODES}
    table["values"] = (lambda x: np.pad(x, 2, constant_values=((1, 2), (3, 4))), (x,))
    table["ramp"] = (lambda x: np.pad(x, 2, "linear_ramp", end_values=((1, 2), (3, 4))), (x,))
    table["none"] = (lambda x: np.pad(x, 0), (x,))
    table["consumed"] = (lambda x: np.pad(x, 1)[:-2, 1:-1] + x, (x,))
    check_table(table)


@pytest.mark.parametrize("dtype", "dflhFD")
def test_products_of_arrays(dtype):
    x, y = data(4, 5, dtype=dtype), data(4, 5, dtype=dtype, seed=1)
    products = {
        "matrices": lambda x, y: x @ y.T,
        "transposed matrices": lambda x, y: x.T @ y,
        "vectors": lambda x, y: x[0] @ y[0],
        "matrix and vector": lambda x, y: x @ y[0],
        "vector and matrix": lambda x, y: x[:, 0] @ y,
        "inner": lambda x, y: np.inner(x, y),
        "outer": lambda x, y: np.outer(x[0], y[0]),
        "rows": lambda x, y: np.einsum("ij,ij->i", x, y),
        "all pairs": lambda x, y: np.einsum("ij,kj->ik", x, y),
        "trace": lambda x, y: np.einsum("ij,ij->", x, y),
        "tensordot": lambda x, y: np.tensordot(x, y, ((0,), (0,))),
        "vdot": lambda x, y: np.vdot(x, y),
        "batch": lambda x, y: np.matmul(x[:, :, None] + y[:, None], y[:, :, None]),
        "consumed": lambda x, y: ((x @ y.T) * 2).sum(0) + x[:, 0],
        "nothing": lambda x, y: x[:, :0] @ y[:, :0].T,
    }
    check_table({n: (f, (x, y)) for n, f in products.items()})


def test_large_products_are_no_calls_of_torch():
    x = data(200, 200)
    check_table({"large": (lambda x: x @ x, (x,))})
    check_table({"by a vector": (lambda x: x @ x[0] + x[0] @ x, (x,))})


def test_what_is_made_of_numbers_only():
    x = data(6, 7)
    check_table(
        {
            "arange": (lambda x: np.arange(0, 3.5, 0.5) * x, (x,)),
            "down": (lambda x: np.arange(7, 0, -1) * x, (x,)),
            "linspace": (lambda x: np.linspace(0, 1, 7) * x, (x,)),
            "logspace": (lambda x: np.logspace(0, 1, 7) * x, (x,)),
            "geomspace": (lambda x: np.geomspace(1, 10, 7) * x, (x,)),
            "eye": (lambda x: np.eye(6, 7, 1) * x, (x,)),
            "identity": (lambda x: np.identity(7) + x[0], (x,)),
            "tri": (lambda x: np.tri(6, 7) * x, (x,)),
            "indices": (lambda x: np.indices((6, 7))[0] + x, (x,)),
            "fromfunction": (lambda x: np.fromfunction(lambda i, j: i + j, (6, 7)) + x, (x,)),
            "hamming": (lambda x: np.hamming(7) * x, (x,)),
            "full": (lambda x: np.full_like(x, 3) + np.zeros(7) + np.ones((6, 1)), (x,)),
        }
    )


def test_what_numpy_composes():
    x, y = data(4, 6), data(4, 6, seed=1)
    check_table(
        {
            "isclose": (lambda x, y: np.isclose(x, y), (x, y)),
            "allclose": (lambda x, y: np.allclose(x, y), (x, y)),
            "nan_to_num": (lambda x: np.nan_to_num(np.log(x)), (x,)),
            "array_equal": (lambda x, y: np.array_equal(x, y), (x, y)),
            "sinc": (lambda x: np.sinc(x), (x,)),
            "logaddexp": (lambda x, y: np.logaddexp(x, y), (x, y)),
            "heaviside": (lambda x, y: np.heaviside(x, y), (x, y)),
            "rounded": (lambda x: np.round(x, 2), (x,)),
            "trunc": (lambda x: np.trunc(x), (x,)),
            "powers": (lambda x: (x**2, x**3, x**-1, abs(x) ** 0.5, x**4, x**5), (x,)),
            "cov": (lambda x: np.cov(x), (x,)),
            "corrcoef": (lambda x: np.corrcoef(x), (x,)),
            "trapezoid": (lambda x: np.trapezoid(x), (x,)),
            "unwrap": (lambda x: np.unwrap(x), (x,)),
            "polyval": (lambda x: np.polyval(x[0], x), (x,)),
            "norms": (lambda x: (np.linalg.norm(x), np.linalg.norm(x, axis=1)), (x,)),
            "meshgrid": (lambda x: np.meshgrid(x[0], x[1]), (x,)),
            "average": (lambda x, y: np.average(x, weights=abs(y)), (x, y)),
            "normalized": (lambda x: (x - x.mean(0)) / x.std(0), (x,)),
            "softmax": (lambda x: np.exp(x - x.max(1, keepdims=True)) / np.exp(x).sum(), (x,)),
        }
    )
