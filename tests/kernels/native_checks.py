"""Comparing programs of the native back end with NumPy, and seeing what no loop computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import torch

import np_compile
from np_compile.backends.by_torch import device_of
from np_compile.kernels.compile import compile_graph
from np_compile.kernels.ir.program import Call, Product

from ..support import check, observe, same


class Watched:
    """The native back end; the torch calls of its programs are kept in `calls`. On a device nothing
    but the device is looked at: there libraries do more."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.on_device = False

    def check(self, calls: Collection[str]) -> None:
        """No torch operator but `calls` ran."""
        assert self.on_device or set(self.calls) == set(calls), self.calls

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable:
        device = device_of(graph, inputs)
        if device.type != "cpu":
            self.on_device = True
            return compile_graph(graph, torch.device(device.type, torch.cuda.current_device()))
        made = compile_graph(graph)
        self.calls += [
            s.name
            for s in made.source.program.steps
            if isinstance(s, Call) and not isinstance(s, Product)
        ]
        return made


Case = tuple[Callable, tuple]


def check_table(cases: Mapping[str, Case], calls: Collection[str] = (), **options: Any) -> None:
    """Many functions as one program: a name -> (function, arguments).

    Each does what it does in NumPy, and no torch operator but `calls` runs in it.
    """
    names = list(cases)

    def together(*arguments: tuple) -> dict[str, Any]:
        return {n: cases[n][0](*a) for n, a in zip(names, arguments, strict=True)}

    watched = Watched()
    check(together, *(cases[n][1] for n in names), backend=watched, **options)
    watched.check(calls)


def check_elements(
    cases: Mapping[str, Case],
    rtol: Callable[[str], float],
    calls: Collection[str] = (),
    zeros: Collection[str] = (),
) -> None:
    """As `check_table`, once, and each float within `rtol(name)` of its own size; signs of zeros
    too, but for the names in `zeros`.
    """
    names = list(cases)

    def together(*arguments: tuple) -> dict[str, Any]:
        return {n: cases[n][0](*a) for n, a in zip(names, arguments, strict=True)}

    watched = Watched()
    arguments = [cases[n][1] for n in names]
    want = observe(together, tuple(arguments), {})
    got = observe(np_compile.compile(together, backend=watched), tuple(arguments), {})
    assert want.error is None, want.error
    assert got.error is None, got.error
    for n in names:
        a, b = got.result[n], want.result[n]
        if not isinstance(b, tuple):
            a, b = (a,), (b,)
        for x, y in zip(a, b, strict=True):
            _close(x, y, n, rtol(n), n not in zeros)
    watched.check(calls)


def _close(got: np.ndarray, want: np.ndarray, name: str, rtol: float, signs: bool) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), name
    if want.dtype.kind not in "fc":
        same(got, want, name)
        return
    atol = rtol if want.dtype.kind == "c" else 0.0
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, want, rtol, atol, equal_nan=True, err_msg=name)
    if signs and want.dtype.kind == "f":
        number = ~np.isnan(want)
        np.testing.assert_array_equal(
            np.signbit(got)[number], np.signbit(want)[number], f"{name}: signs"
        )
