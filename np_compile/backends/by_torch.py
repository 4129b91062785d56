"""Torch's own back ends: operator by operator, AOTAutograd, Inductor."""

from __future__ import annotations

import functools
import shutil
import warnings
from collections.abc import Callable
from typing import Any

import torch

from .checks import checking, take_checks
from .saved import placeholders, results_of
from .twice import refusing


def eager(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable:
    """Run the tensor program operator by operator, with torch's own autograd."""
    return graph.forward


def _torch_backend(name: str) -> Callable:
    def compile_with_torch(
        graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]
    ) -> Callable:
        import torch._dynamo

        if (
            name == "inductor"
            and not has_compiler()
            and device_of(graph, example_inputs).type == "cpu"
        ):
            warnings.warn(
                "np_compile: no C++ compiler found, tensor programs run operator by operator. "
                "Remedy: install g++ or clang++, or set CXX; or choose backend='eager'.",
                RuntimeWarning,
                stacklevel=2,
            )
            return eager(graph, example_inputs)
        compiler = torch._dynamo.lookup_backend(name)
        if not (torch.is_grad_enabled() and any(t.requires_grad for t in example_inputs)):
            own, checks = take_checks(graph)
            return checking(compiler(own, example_inputs), checks)
        own, written = _without_writes(graph)
        own, checks = take_checks(own)
        with torch._functorch.config.patch(
            donated_buffer=False
        ):  # a graph may be gone through twice
            return _writing(checking(refusing(compiler(own, example_inputs)), checks), written)

    compile_with_torch.__name__ = name
    compile_with_torch.__doc__ = f"torch's own `{name}` back end."
    return compile_with_torch


aot_eager = _torch_backend("aot_eager")
inductor = _torch_backend("inductor")


def _without_writes(graph: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, list[int]]:
    """A graph that gives, as its last results, what this one writes to inputs; the positions of
    these. AOTAutograd saves such an input for the gradient, and would write to it then."""
    inputs = placeholders(graph.graph)
    copies = [n for n in graph.graph.nodes if n.target is torch.ops.aten.copy_.default]
    writes = [n for n in copies if n.args[0] in inputs]
    if not writes:
        return graph, []
    made = torch.fx.Graph()
    own: dict[torch.fx.Node, torch.fx.Node] = {}
    for n in graph.graph.nodes:
        if n in writes:
            own[n] = own[n.args[1]]
        elif n.op != "output":
            own[n] = made.node_copy(n, own.__getitem__)
    results = [*results_of(graph.graph), *writes]
    made.output(tuple(own[r] if isinstance(r, torch.fx.Node) else r for r in results))
    return torch.fx.GraphModule(graph, made), [inputs.index(n.args[0]) for n in writes]


def _writing(program: Callable, written: list[int]) -> Callable:
    """A program that writes its last results to these inputs, of which it is given copies."""
    if not written:
        return program

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        own = list(tensors)
        for k in written:
            own[k] = tensors[k].clone()
        results = program(*own)
        count = len(results) - len(written)
        for k, values in zip(written, results[count:], strict=True):
            tensors[k].copy_(values)
        return list(results[:count])

    return run


def device_of(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> torch.device:
    """Where a program's arrays lie: the device of those it is given, or makes, if it is not the
    CPU."""
    values = (node.meta.get("val") for node in graph.graph.nodes)
    devices = (t.device for t in (*example_inputs, *values) if isinstance(t, torch.Tensor))
    return next((d for d in devices if d.type not in ("cpu", "meta")), torch.device("cpu"))


@functools.cache
def has_compiler() -> bool:
    """Whether a C++ compiler for inductor's CPU code is there."""
    import torch._inductor.config as inductor_config

    names: Any = inductor_config.cpp.cxx
    names = names if isinstance(names, (tuple, list)) else (names,)
    return any(n is not None and shutil.which(n) is not None for n in names)
