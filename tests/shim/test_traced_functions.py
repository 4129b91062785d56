"""Functions traced on fake tensors give graphs with the eager values; floats are data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from torch.fx.experimental.proxy_tensor import make_fx

from .support import quiet, shim, torch

X = np.array([[0.5, 2.0, -1.0], [3.0, 0.25, 1.0]])
V = np.array([1.0, 2.5, 4.0])
MASK = np.array([True, False, True])

# x: f64[2,3], v: f64[3] rising, s: a Python float that is data
FUNCTIONS: dict[str, Callable] = {
    "sum": lambda n, x, v, s: n.sum(x, axis=0, initial=s),
    "prod": lambda n, x, v, s: n.prod(x, where=x > s),
    "max": lambda n, x, v, s: n.max(x, axis=1, keepdims=True, initial=s),
    "mean": lambda n, x, v, s: n.mean(x, where=x > s),
    "std": lambda n, x, v, s: n.std(x, axis=0, ddof=1),
    "ptp": lambda n, x, v, s: n.ptp(x, axis=1),
    "argmax": lambda n, x, v, s: n.argmax(x, axis=1),
    "average": lambda n, x, v, s: n.average(x, axis=1, weights=v),
    "nanmax": lambda n, x, v, s: n.nanmax(x, axis=0),
    "nanmean": lambda n, x, v, s: n.nanmean(x / (x > 0), axis=0),
    "nanstd": lambda n, x, v, s: n.nanstd(x, axis=0),
    "nanargmin": lambda n, x, v, s: n.nanargmin(x, axis=0),
    "median": lambda n, x, v, s: n.median(x, axis=1),
    "nanmedian": lambda n, x, v, s: n.nanmedian(x, axis=1),
    "quantile": lambda n, x, v, s: n.quantile(x, s, axis=1),
    "nanquantile": lambda n, x, v, s: n.nanquantile(x, s, axis=1, method="weibull"),
    "percentile": lambda n, x, v, s: n.percentile(x, s, method="nearest"),
    "cumsum": lambda n, x, v, s: n.cumsum(x, axis=1),
    "diff": lambda n, x, v, s: n.diff(x, prepend=s),
    "ediff1d": lambda n, x, v, s: n.ediff1d(x, to_end=s),
    "gradient": lambda n, x, v, s: n.gradient(x, s, v, edge_order=1),
    "trapezoid": lambda n, x, v, s: n.trapezoid(x, dx=s),
    "histogram": lambda n, x, v, s: n.histogram(x, 4),
    "histogram_edges": lambda n, x, v, s: n.histogram(x, v)[0],
    "histogram2d": lambda n, x, v, s: n.histogram2d(x[0], v, 3)[0],
    "digitize": lambda n, x, v, s: n.digitize(x, v),
    "cov": lambda n, x, v, s: n.cov(x),
    "corrcoef": lambda n, x, v, s: n.corrcoef(x),
    "convolve": lambda n, x, v, s: n.convolve(x[0], v, "same"),
    "correlate": lambda n, x, v, s: n.correlate(x[0], v, "full"),
    "interp": lambda n, x, v, s: n.interp(x, v, v * v, left=s),
    "interp_period": lambda n, x, v, s: n.interp(x, v, v * v, period=s),
    "sort": lambda n, x, v, s: n.sort(x, axis=0),
    "argsort": lambda n, x, v, s: n.argsort(x, axis=None, kind="stable"),
    "sort_complex": lambda n, x, v, s: n.sort(x[0] + 1j * v),
    "lexsort": lambda n, x, v, s: n.lexsort((x[0], v)),
    "searchsorted": lambda n, x, v, s: n.searchsorted(v, x),
    "where": lambda n, x, v, s: n.where(x > s, x, s),
    "select": lambda n, x, v, s: n.select([x > 1, x > s], [x, v], s),
    "choose": lambda n, x, v, s: n.choose(x > s, [x, v]),
    "take": lambda n, x, v, s: n.take(x, [0, -1], axis=1),
    "take_along_axis": lambda n, x, v, s: n.take_along_axis(x, n.argsort(x, axis=1), axis=1),
    "isin": lambda n, x, v, s: n.isin(x, v),
    "isclose": lambda n, x, v, s: n.isclose(x, v, atol=s),
    "isposinf": lambda n, x, v, s: n.isposinf(x / 0),
    "nan_to_num": lambda n, x, v, s: n.nan_to_num(x / (x > 0), nan=s, posinf=s),
    "clip": lambda n, x, v, s: n.clip(x, s, 2),
    "round": lambda n, x, v, s: n.round(x * s, 1),
    "angle": lambda n, x, v, s: n.angle(x + 1j * v),
    "sinc": lambda n, x, v, s: n.sinc(x * s),
    "unwrap": lambda n, x, v, s: n.unwrap(x * 3, period=s),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traced(name: str) -> None:
    function = FUNCTIONS[name]

    def on_tensors(x: torch.Tensor, v: torch.Tensor, s: torch.Tensor) -> list[torch.Tensor]:
        with quiet():
            arrays = shim.from_tensor(x), shim.from_tensor(v), shim.Weak(s, float)
            result = function(shim, *arrays)
        return [r._t for r in (result if isinstance(result, tuple) else (result,))]

    example = [torch.zeros(2, 3), torch.zeros(3), torch.zeros(())]
    example = [t.to(torch.float64) for t in example]
    graph = make_fx(on_tensors, tracing_mode="fake")(*example)
    tensors = torch.tensor(X), torch.tensor(V), torch.tensor(0.6, dtype=torch.float64)
    got = graph(*tensors)
    with quiet():
        expected = function(np, X, V, 0.6)
    for g, e in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
        assert g.numpy().dtype == e.dtype
        np.testing.assert_allclose(g.numpy(), e, rtol=1e-12, atol=1e-12)


IN_PLACE: dict[str, Callable] = {
    "sort": lambda n, x: x.sort(axis=0),
    "partition": lambda n, x: x.partition(1, axis=1),
    "put": lambda n, x: n.put(x, [0, 0, -1], [1.5, 2, 3]),
    "putmask": lambda n, x: n.putmask(x, x > 1, [7.0, 8]),
    "place": lambda n, x: n.place(x, x > 0, [7.0, 8]),
    "put_along_axis": lambda n, x: n.put_along_axis(x, np.array([[1], [0]]), 5.0, axis=1),
    "copyto": lambda n, x: n.copyto(x, 3, where=x > 1),
    "nan_to_num": lambda n, x: n.nan_to_num(x, copy=False),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_traced_in_place(name: str) -> None:
    def on_tensors(x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        IN_PLACE[name](shim, shim.from_tensor(x))
        return x

    graph = make_fx(on_tensors, tracing_mode="fake")(torch.zeros(2, 3, dtype=torch.float64))
    expected = X.copy()
    IN_PLACE[name](np, expected)
    np.testing.assert_array_equal(graph(torch.tensor(X)).numpy(), expected)


@pytest.mark.parametrize("name", ["sort", "quantile", "interp", "where", "cov", "clip", "diff"])
def test_vmap(name: str) -> None:
    function = FUNCTIONS[name]

    def on_tensors(x: torch.Tensor) -> torch.Tensor:
        return function(shim, shim.from_tensor(x), shim.from_numpy(V), 0.6)._t

    batch = torch.stack([torch.tensor(X), torch.tensor(X * 2 - 1)])
    got = torch.func.vmap(on_tensors)(batch)
    for g, b in zip(got, batch, strict=True):
        np.testing.assert_allclose(g.numpy(), function(np, b.numpy(), V, 0.6), rtol=1e-12)
