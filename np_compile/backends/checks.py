"""What a library says of its data (a matrix is singular), looked at in programs with gradients.

torch looks at it in an operator that gives nothing, which AOTAutograd would run in an order of its
own, with tokens. So it sees a graph that gives one more result for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from .saved import results_of

_check = torch.ops.aten._linalg_check_errors.default


def take_checks(module: fx.GraphModule) -> tuple[fx.GraphModule, list[tuple[tuple, dict]]]:
    """A graph that gives what this one looks at, as its last results; the arguments of each look
    beside that. This one is left as it is: it may run until there are kernels."""
    if not any(n.target is _check for n in module.graph.nodes):
        return module, []
    graph = fx.Graph()
    results: Any = graph.graph_copy(module.graph, {})
    found = [n for n in graph.nodes if n.target is _check]
    graph.output([*results, *[n.args[0] for n in found]])
    for n in found:
        graph.erase_node(n)
    return fx.GraphModule(module, graph), [(n.args[1:], dict(n.kwargs)) for n in found]


def put_checks(graph: fx.Graph, checks: Sequence[tuple[tuple, dict]], count: int) -> int:
    """Have a forward half, which gives `count` results and then what is saved, look at the last of
    these results and not give them; how many are left."""
    results = results_of(graph)
    left = count - len(checks)
    output = next(iter(reversed(graph.nodes)))
    for n, (args, kwargs) in zip(results[left:count], checks, strict=True):
        with graph.inserting_after(n):
            graph.call_function(_check, (n, *args), kwargs).meta["val"] = None
    output.args = ((*results[:left], *results[count:]),)
    return left


def checking(program: Callable, checks: Sequence[tuple[tuple, dict]]) -> Callable:
    """A program that gives what is to be looked at as its last results."""
    if not checks:
        return program

    def run(*tensors: torch.Tensor) -> Any:
        results = program(*tensors)
        left = len(results) - len(checks)
        for info, (args, kwargs) in zip(results[left:], checks, strict=True):
            _check(info, *args, **kwargs)
        return results[:left]

    return run
