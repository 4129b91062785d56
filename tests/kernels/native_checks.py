"""Comparing programs of the native back end with NumPy, and seeing what no loop computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from np_compile.kernels.compile import compile_graph
from np_compile.kernels.ir import Call

from ..support import check


class Watched:
    """The native back end, with the torch calls of its programs kept in `calls`."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable:
        made = compile_graph(graph)
        self.calls += [s.name for s in made.source.program.steps if isinstance(s, Call)]
        return made


def check_loops(f: Callable, *args: Any, calls: Collection[str] = (), **options: Any) -> None:
    """The compiled function does what NumPy does, and no torch operator but `calls` runs in it."""
    watched = Watched()
    check(f, *args, backend=watched, **options)
    assert set(watched.calls) == set(calls), watched.calls


Case = tuple[Callable, tuple]


def check_table(
    cases: Mapping[str, Case], calls: Collection[str] = (), **options: Any
) -> None:
    """Many functions as one program: a name -> (function, arguments)."""
    names = list(cases)

    def together(*arguments: tuple) -> dict[str, Any]:
        return {n: cases[n][0](*a) for n, a in zip(names, arguments, strict=True)}

    check_loops(together, *(cases[n][1] for n in names), calls=calls, **options)
