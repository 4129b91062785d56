"""The native back end: fused loops in C on the CPU."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch


def native(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable:
    """A tensor program as C kernels; on a device, by inductor.

    With inputs that require gradients, AOTAutograd makes a forward and a backward graph, and each
    becomes kernels. What it saves between the two is the cheapest cut of the joint graph.
    """
    if any(t.device.type != "cpu" for t in example_inputs):
        from .registry import lookup

        return lookup("inductor")(graph, example_inputs)
    if any(t.requires_grad for t in example_inputs):
        return _differentiable(graph, example_inputs)
    return _kernels(graph)


def _kernels(graph: torch.fx.GraphModule) -> Callable:
    from np_compile.kernels.build import NoCompiler
    from np_compile.kernels.compile import compile_graph
    from np_compile.kernels.translate import Unsupported

    try:
        return compile_graph(graph)
    except NoCompiler as e:
        _warn_once(f"np_compile: {e} Tensor programs run operator by operator.")
    except Unsupported as e:
        _warn_once(
            f"np_compile: the native back end cannot run {e}; this segment runs operator by operator."
        )
    return graph.forward


@functools.cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=4)


def _differentiable(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable:
    from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
    from torch._decomp import core_aten_decompositions
    from torch._dynamo.backends.common import aot_autograd

    def compiler(part: torch.fx.GraphModule, _inputs: Any) -> Callable:
        return make_boxed_func(_kernels(part))

    made: Callable = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=core_aten_decompositions(),
    )(graph, example_inputs)
    return made
