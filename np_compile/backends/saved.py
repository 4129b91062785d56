"""What a forward half saves for the backward one: values in place of views of them, each once.

AOTAutograd hands a view of an input, or of anything else, on as a tensor that the forward half
makes, and a result as one more. The backward half can make views as well, where it costs nothing:
kernels read through them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from np_compile.lowering.record import has_an_effect
from np_compile.lowering.tensor_graph import Differentiable


def results_of(graph: fx.Graph) -> list[Any]:
    """What a graph gives, one by one."""
    (output,) = (n for n in graph.nodes if n.op == "output")
    results: Any = output.args[0]
    return list(results) if isinstance(results, (tuple, list)) else [results]


def placeholders(graph: fx.Graph) -> list[fx.Node]:
    """The inputs of a graph."""
    return [n for n in graph.nodes if n.op == "placeholder"]


def is_copied_alone(node: fx.Node) -> bool:
    """Whether nothing but a copy of an input is used: of an array that a segment makes anew."""
    users = list(node.users)
    return len(users) == 1 and users[0].target is torch.ops.aten.clone.default


@dataclass
class Saved:
    """Both halves, and what the backward one takes: what the forward one gives beside its results,
    then results and inputs by these positions, then gradients of results. It gives only the
    gradients that there are."""

    first: fx.GraphModule
    second: fx.GraphModule
    results: list[int]
    inputs: list[int]


def save_bases(forward: fx.GraphModule, backward: fx.GraphModule, count: int) -> Saved:
    """The halves with no views among what is saved, and nothing twice.

    forward: gives `count` results, then what it saves. backward: takes that, then gradients of
    results.
    """
    inputs = placeholders(forward.graph)
    results = results_of(forward.graph)
    saved = results[count:]
    given = placeholders(backward.graph)
    chains = [_views_of_base(n) for n in saved]
    bases = list(dict.fromkeys(chain[0] for chain in chains))
    used = [n for n in bases if n.op == "placeholder"]
    again = [n for n in bases if n in results[:count]]
    kept = [n for n in bases if n not in used and n not in again]

    first = fx.Graph()
    made: dict[fx.Node, fx.Node] = {}
    _copy(forward.graph, first, made)
    first.output(tuple(made[n] for n in (*results[:count], *kept)))
    first.eliminate_dead_code(has_an_effect)

    second = fx.Graph()
    own: dict[fx.Node, fx.Node] = {}
    for n in (*kept, *again, *used):
        own[n] = second.placeholder(n.name)
        own[n].meta = dict(n.meta)
    env = {n: second.node_copy(n) for n in given[len(saved) :]}
    for n, chain in zip(given, chains, strict=False):
        for step in chain[1:]:
            if step not in own:
                own[step] = second.node_copy(step, own.__getitem__)
        env[n] = own[chain[-1]]
    _copy(backward.graph, second, env)
    second.output(tuple(env[n] for n in results_of(backward.graph) if n is not None))
    return Saved(
        Differentiable(forward, first),
        Differentiable(backward, second),
        [results.index(n) for n in again],
        [inputs.index(n) for n in used],
    )


def save_copies(
    forward: fx.GraphModule, backward: fx.GraphModule, count: int, written: set[str],
    renewed: set[str],
) -> None:  # fmt: skip
    """Have a forward half, which gives `count` results, save copies of the inputs that the call
    writes to, by their names, and of views of these; and of views of those that it makes anew, in
    place of the whole array, where they are small parts of it: nobody else keeps that. The inputs
    of the backward half get the names of what is saved."""
    results = results_of(forward.graph)
    chains = {n: _views_of_base(n) for n in results[count:] if isinstance(n, fx.Node)}
    lost = [
        n for n, (base, *views) in chains.items()
        if base.name in written
        or (base.name in renewed and views and 2 * _size(n) <= _size(base))
    ]  # fmt: skip
    if not lost:
        return
    copies = {}
    for n in lost:
        with forward.graph.inserting_after(n):
            copies[n] = forward.graph.call_function(
                torch.ops.aten.clone.default, (n,), {"memory_format": torch.contiguous_format}
            )
        # A column lies in memory of its own size then.
        copies[n].meta = {**n.meta, "val": n.meta["val"].contiguous()}
    output = next(iter(reversed(forward.graph.nodes)))
    saved = [copies.get(n, n) for n in results[count:]]
    for n, node in zip(results[count:], placeholders(backward.graph), strict=False):
        if n in copies:
            with backward.graph.inserting_before(node):
                renamed = backward.graph.placeholder(copies[n].name)
            renamed.meta = {**node.meta, "val": copies[n].meta["val"]}
            node.replace_all_uses_with(renamed)
            backward.graph.erase_node(node)
    output.args = ((*results[:count], *saved),)
    forward.recompile()
    backward.recompile()


def _size(node: fx.Node) -> int:
    return int(node.meta["val"].numel())


def _copy(graph: fx.Graph, to: fx.Graph, made: dict[fx.Node, fx.Node]) -> None:
    """Copy the nodes that are not made yet, but for the output."""
    for node in graph.nodes:
        if node not in made and node.op != "output":
            made[node] = to.node_copy(node, made.__getitem__)


def _views_of_base(node: fx.Node) -> list[fx.Node]:
    """A value that is no view, and the views of one another that lead from it to a node."""
    chain = [node]
    while node.op == "call_function":
        if len(node.all_input_nodes) != 1 or not is_view(node, node.all_input_nodes[0]):
            break
        node = node.all_input_nodes[0]
        chain.append(node)
    return chain[::-1]


def is_view(node: fx.Node, base: fx.Node) -> bool:
    """Whether an operator gives a view of its argument, and writes nothing."""
    schema: Any = getattr(node.target, "_schema", None)
    if schema is None or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    aliased = [a.alias_info for a in schema.arguments if a.alias_info is not None]
    return len(aliased) == 1 and not aliased[0].is_write and node.args[:1] == (base,)
