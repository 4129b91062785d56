"""Numbers without a plain spelling in Python, as constants of a graph's code."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import np_compile

from ..support import check

NAN, INF = np.nan, np.inf
C = complex
NUMBERS = (
    C(NAN, NAN), C(NAN, 1), C(0, NAN), C(INF, -INF), C(-INF, NAN), C(1, -INF), C(-0.0, INF), 2j
)  # fmt: skip


def power(x: Any) -> Any:
    x **= np.float32(2.5)
    return x


def filled(x: Any) -> Any:
    y = np.zeros_like(x)
    for k, number in enumerate(NUMBERS):
        y[k] = number
    return y, [np.full(2, number, np.complex64) for number in NUMBERS]


def chosen(x: Any) -> Any:
    return [np.where(x.real > 0, x, number) for number in NUMBERS]


def real(x: Any) -> Any:
    y = np.maximum(x.real, -INF)
    y[:2] = NAN, -0.0
    z = np.where(x.real > 0, -0.0, 0.0)
    return y, np.clip(x.real, -INF, INF), z, np.copysign(1, z), np.copysign(1, y)


def padded(x: Any) -> Any:
    edges = np.pad(x, 1, constant_values=C(NAN, 2))
    return edges, np.nan_to_num(x, nan=INF), x.real.max(initial=-INF), x.sum(initial=C(NAN, 1))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native"])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_and_special_constants(backend: str, dtype: str) -> None:
    x = np.array([1 + 2j, -0.5j, C(NAN, 1), C(INF, 0), 3, 4, 5, 6], dtype)
    for f in (power, filled, chosen, real, padded):
        check(f, x[:2] if f is power else x, backend=backend, new=False)
    check(power, np.array([C(NAN, 1), 2]), backend=backend, new=False)


def test_a_graph_with_such_a_constant_can_be_pickled() -> None:
    graphs = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(module)
        return module.forward

    np_compile.compile(power, backend=backend)(np.array([C(NAN, 1), 2]))
    assert "nanj" in graphs[0].code
    assert "nanj" in pickle.loads(pickle.dumps(graphs[0])).code
