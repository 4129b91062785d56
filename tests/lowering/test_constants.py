"""Numbers without a plain spelling in Python, as constants of a graph's code."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

from np_compile.lowering.tensor_graph import TensorGraph

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


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_code_with_such_a_constant_runs_and_can_be_pickled(number: complex) -> None:
    graph = torch.fx.Graph()
    options = {"dtype": torch.complex128}
    graph.output([graph.call_function(torch.ops.aten.full.default, ([2], number), options)])
    module = TensorGraph({}, graph)
    for each in (module, pickle.loads(pickle.dumps(module))):
        np.testing.assert_array_equal(each.forward()[0].numpy(), np.full(2, number))


def test_code_with_a_root_rounds_it_correctly_and_can_be_pickled() -> None:
    """The graph has torch's operator, before and after."""
    graph = torch.fx.Graph()
    graph.output([graph.call_function(torch.ops.aten.sqrt.default, (graph.placeholder("x"),))])
    module = TensorGraph({}, graph)
    x = np.random.default_rng(0).random(1000).astype("f4")
    np.testing.assert_array_equal(module.forward(torch.from_numpy(x))[0].numpy(), np.sqrt(x))
    for each in (module, pickle.loads(pickle.dumps(module))):
        targets = [node.target for node in each.graph.nodes if node.op == "call_function"]
        assert targets == [torch.ops.aten.sqrt.default]
