"""A program and its gradient as two programs of kernels, with no more than that between them.

AOTAutograd splits a graph with inputs that require gradients into a forward and a backward half.
What it wraps around them sees to writes to inputs, to results that share memory, and to subclasses
of tensors, and takes 0.1 ms for a call and its gradient. A graph that only makes new arrays needs
none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from np_compile.kernels.nodes import mutated_roots


def only_makes_arrays(graph: fx.Graph) -> bool:
    """Whether all results lie in new memory, each in its own, and no input is written to."""
    root, mutated = mutated_roots(graph)
    results = _results(graph)
    homes = [root[r] for r in results if isinstance(r, fx.Node)]
    return (
        len(homes) == len(results) == len(set(homes))
        and all(home.op == "call_function" for home in homes)
        and all(node.op != "placeholder" for node in mutated)
    )


class Halves:
    """Called with tensors, gives the results of the graph, which autograd differentiates.

    forward: the forward half as AOTAutograd hands it to a compiler, and what the compiler made of
    it. backward: the other half. compiler: makes a program of that, when it is first needed.
    """

    def __init__(
        self, forward: tuple[fx.Graph, Callable], backward: fx.GraphModule, count: int,
        compiler: Callable[[fx.GraphModule], Callable],
    ):  # fmt: skip
        self._part = backward
        self._compiler = compiler
        self._made: Callable | None = None
        graph, self.forward = forward
        self.count = count
        results = _results(graph)
        given = [n for n in backward.graph.nodes if n.op == "placeholder"]
        saved = results[count:]
        self._names = [n.name for n in saved if isinstance(n, fx.Node)]
        self._inputs = sum(n.op == "placeholder" for n in graph.nodes)
        self._received = [n.name for n in given]
        self._floats = [k for k, r in enumerate(results[:count]) if _differentiable(r)]
        strides = [tuple(n.meta["val"].stride()) for n in given[len(saved) :]]
        self.tangents = list(zip(self._floats, strides, strict=False))

    def complete(self, inputs: int) -> bool:
        """Whether the halves fit together: what one saves and the gradients of all results that
        are not integers are what the other takes, which gives a gradient of each input."""
        names = self._received
        tangents = names[len(self._names) :]
        return (
            self._inputs == inputs
            and names[: len(self._names)] == self._names
            and len(tangents) == len(self._floats)
            and all(name.startswith("tangents_") for name in tangents)
            and len(_results(self._part.graph)) == inputs
        )

    def gradients(
        self, saved: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        """The gradients of the inputs, by those of the results and what a call has saved."""
        if self._made is None:
            self._made = self._compiler(self._part)
        tangents = [_laid_out(gradients[k], strides) for k, strides in self.tangents]
        found: list[torch.Tensor | None] = self._made(*saved, *tangents)
        return found

    def __call__(self, *tensors: torch.Tensor) -> Any:
        made: Any = _Call.apply(self, *tensors)
        return list(made)


class _Call(torch.autograd.Function):
    """One call, in torch's record of what is to be differentiated."""

    @staticmethod
    def forward(ctx: Any, halves: Halves, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = halves.forward(*tensors)
        made = tuple(results[: halves.count])
        ctx.halves = halves
        ctx.save_for_backward(*results[halves.count :])
        ctx.mark_non_differentiable(*(t for t in made if not _is_float(t.dtype)))
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple:
        halves = ctx.halves
        given = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return (None, *halves.gradients(given, gradients))
        made: Any = _Gradient.apply(torch.empty(0, requires_grad=True), halves, given, gradients)
        return (None, *made)


class _Gradient(torch.autograd.Function):
    """Gradients that are to be differentiated in their turn, if it comes to that, and cannot be."""

    @staticmethod
    def forward(
        ctx: Any, anchor: torch.Tensor, halves: Halves, saved: Any, gradients: Any
    ) -> tuple[torch.Tensor | None, ...]:
        return tuple(halves.gradients(saved, gradients))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        raise RuntimeError(
            "np_compile: a gradient of a gradient (double backward) is only possible with "
            "backend='eager'."
        )


def _laid_out(gradient: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The gradient in the layout that the backward half was compiled for."""
    gradient = gradient.resolve_conj().resolve_neg()
    if gradient.stride() == strides:
        return gradient
    made = torch.empty_strided(gradient.shape, strides, dtype=gradient.dtype)
    return made.copy_(gradient)


def _results(graph: fx.Graph) -> list[Any]:
    (output,) = (n for n in graph.nodes if n.op == "output")
    results: Any = output.args[0]
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _differentiable(result: Any) -> bool:
    return isinstance(result, fx.Node) and _is_float(result.meta["val"].dtype)


def _is_float(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex
