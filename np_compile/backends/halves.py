"""A program and its gradient as two programs of kernels, with no more than that between them.

AOTAutograd splits a graph with inputs that require gradients into a forward and a backward half.
What it wraps around them sees to writes to inputs, to results that share memory, and to subclasses
of tensors, and takes 0.1 ms for a call and its gradient. A graph that only makes new arrays needs
none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any

import torch
from torch import fx

from np_compile.kernels.frontend.nodes import mutated_roots
from np_compile.kernels.frontend.sizes import numbered
from np_compile.size import evaluated

from .in_place import updates
from .saved import placeholders, results_of, save_bases
from .twice import refuse, tie


def only_makes_arrays(graph: fx.Graph) -> bool:
    """Whether all results lie in new memory, each in its own, and no input is written to."""
    root, mutated = mutated_roots(graph)
    results = results_of(graph)
    homes = [root[r] for r in results if isinstance(r, fx.Node)]
    return (
        len(homes) == len(results) == len(set(homes))
        and all(home.op == "call_function" for home in homes)
        and all(node.op != "placeholder" for node in mutated)
    )


def without_copies(graph: fx.Graph) -> None:
    """Take copies out of a graph that are neither written to nor results: what is copied is saved
    in their place, and is there anyway."""
    root, mutated = mutated_roots(graph)
    fixed = mutated.union(root[r] for r in results_of(graph) if isinstance(r, fx.Node))
    for node in list(graph.nodes):
        if node.target is not torch.ops.aten.clone.default or node in fixed:
            continue
        (source,) = node.all_input_nodes
        strides = [n.meta["val"].stride() for n in (node, source)]
        if root[source] not in mutated and strides[0] == strides[1]:
            node.replace_all_uses_with(source)
            graph.erase_node(node)


class Halves:
    """A program that autograd differentiates. call: takes tensors, gives the results of the graph.

    forward, backward: the halves as AOTAutograd hands them to a compiler; the forward one gives
    `count` results, then what is saved. floats: numbers of the results that have a gradient.
    make_first, make_second: make their programs, that of the backward one when it is first needed.
    """

    def __init__(
        self, forward: fx.GraphModule, backward: fx.GraphModule, floats: list[int], count: int,
        make_first: Callable[[fx.GraphModule], Callable],
        make_second: Callable[[fx.GraphModule], Callable],
    ):  # fmt: skip
        given = placeholders(backward.graph)[-len(floats) :]
        saved = save_bases(forward, backward, count)
        self.first, self.second = saved.first, saved.second
        self.saved_results, self.saved_inputs = saved.results, saved.inputs
        self._make_second = make_second
        self._by_operators: Callable[[], fx.GraphModule] = lambda: saved.second
        self._gradients: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]] | None = None
        self.count = count
        self.constant = [k for k in range(count) if k not in floats]
        strides = (tuple(n.meta["val"].stride()) for n in given)
        self.tangents = list(zip(floats, strides, strict=True))
        # What of the results, and of the gradients, can be made in the memory of an input.
        self.updates = {k: at for k, at in updates(saved.first.graph).items() if k < count}
        self.continued = updates(saved.second.graph)
        self.adding: dict[tuple[int, ...], Any] = {}  # see `joint.adding`
        self.updating: dict[tuple[tuple[int, int], ...], Any] = {}  # the same of `updates`
        self.none = [r is None for r in results_of(backward.graph)]
        self.forward = _on_list(make_first(saved.first))
        self.call: Callable = partial(applied, self)

    def at_sizes(
        self, values: Mapping[str, int], first: Callable, make_second: Callable[[], Callable]
    ) -> Halves:
        """Those of graphs for many sizes, of some: for these values of the symbols."""
        made = copy(self)
        made.forward = _on_list(first)
        made.tangents = [(k, evaluated(strides, values)) for k, strides in self.tangents]
        made._make_second = lambda _: make_second()
        made._gradients = None
        count = len(self.none)  # it takes no sizes
        made.call = lambda *tensors: applied(made, *tensors[:count])
        second = self.second
        made._by_operators = lambda: fx.GraphModule(second, numbered(second.graph, values))
        return made

    @property
    def asked(self) -> bool:
        """Whether a gradient was asked for."""
        return self._gradients is not None

    def gradients(
        self, saved: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        """The gradients of the inputs, by those of the results and what a call has saved."""
        run = self._gradients or self.prepare()
        given = [(gradients[k], strides) for k, strides in self.tangents]
        if all(has_memory(g) for g, _ in given):
            made = iter(run([*saved, *[_laid_out(*g) for g in given]]))
        else:
            made = iter(self._by_operators().forward(*saved, *[g for g, _ in given]))
        return [None if none else next(made) for none in self.none]

    def prepare(self) -> Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]:
        """The program of the backward half, made if it is not yet."""
        if self._gradients is None:
            self._gradients = _on_list(self._make_second(self.second))
        return self._gradients


def with_gradient(forward: fx.Graph, count: int, differentiated: Sequence[bool]) -> list[int]:
    """Numbers of the results that have a gradient, if each that depends on an input that is
    differentiated has one, through floats."""
    found = {n for n, yes in zip(placeholders(forward), differentiated, strict=False) if yes}
    for node in forward.nodes:
        if node.op == "call_function" and not found.isdisjoint(node.all_input_nodes):
            value = node.meta["val"]
            if not isinstance(value, torch.Tensor) or _is_float(value.dtype):
                found.add(node)
    return [k for k, r in enumerate(results_of(forward)[:count]) if r in found]


def complete(
    forward: fx.Graph, backward: fx.Graph, count: int, inputs: int, floats: list[int]
) -> bool:
    """Whether the halves fit together: what one saves and the gradients of these results are what
    the other takes, which gives a gradient of each input."""
    results = results_of(forward)
    saved = [n.name for n in results[count:] if isinstance(n, fx.Node)]
    names = [n.name for n in placeholders(backward)]
    tangents = names[len(saved) :]
    return (
        len(placeholders(forward)) == inputs
        and len(saved) == len(results) - count
        and names[: len(saved)] == saved
        and len(tangents) == len(floats) > 0
        and all(name.startswith("tangents_") for name in tangents)
        and len(results_of(backward)) == inputs
    )


class _Call(torch.autograd.Function):
    """One call, in torch's record of what is to be differentiated."""

    @staticmethod
    def forward(ctx: Any, halves: Halves, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = halves.forward(tensors)
        made = tuple(results[: halves.count])
        ctx.halves = halves
        ctx.save_for_backward(
            *results[halves.count :],
            *[made[k] for k in halves.saved_results],
            *[tensors[k] for k in halves.saved_inputs],
        )
        ctx.inputs = [
            t if t.is_leaf else tie(t)
            for k, t in enumerate(tensors) if t.requires_grad and k not in halves.saved_inputs
        ]  # fmt: skip
        if halves.constant:
            ctx.mark_non_differentiable(*[made[k] for k in halves.constant])
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple:
        halves = ctx.halves
        given = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return (None, *halves.gradients(given, gradients))
        anchor = torch.empty(0, requires_grad=True)
        count = len(given), len(gradients)
        made: Any = _Gradient.apply(halves, count, anchor, *given, *gradients, *ctx.inputs)
        return (None, *made)


# Without a look at the signature of `forward`, and at transforms of `torch.func`, which `compile`
# has taken care of.
applied: Callable = super(torch.autograd.Function, _Call).apply  # type: ignore[misc]


class _Gradient(torch.autograd.Function):
    """Gradients that are to be differentiated in their turn, if it comes to that, and cannot be.

    count: of what was saved, and of the gradients given. The inputs follow, on which they depend.
    anchor: has them require a gradient, whatever else does.
    """

    @staticmethod
    def forward(
        ctx: Any, halves: Halves, count: tuple[int, int], anchor: torch.Tensor,
        *tensors: torch.Tensor,
    ) -> tuple[torch.Tensor | None, ...]:  # fmt: skip
        saved, given = count
        return tuple(halves.gradients(tensors[:saved], tensors[saved : saved + given]))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        raise refuse()


def has_memory(t: torch.Tensor) -> bool:
    """Whether a tensor is memory, and not many at once (`vmap`, `is_grads_batched=True`)."""
    try:
        t.data_ptr()
    except RuntimeError:
        return False
    return True


def _laid_out(gradient: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The gradient in the layout that the backward half was compiled for."""
    if gradient.stride() == strides and not (gradient.is_conj() or gradient.is_neg()):
        return gradient
    made = torch.empty_strided(
        gradient.shape, strides, dtype=gradient.dtype, device=gradient.device
    )
    return made.copy_(gradient)


def _on_list(program: Callable) -> Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]:
    """A program as a function of a list of its inputs."""
    direct = getattr(program, "run", None)
    if direct is not None:
        return lambda tensors: direct(tensors, (), ())
    return lambda tensors: program(*tensors)


def _is_float(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex
