"""What a forward half saves for the backward one: inputs in place of views of them.

AOTAutograd hands a view of an input on as a tensor that the forward half makes. The backward half
can make it as well, where it costs nothing: kernels read through views.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx


def results_of(graph: fx.Graph) -> list[Any]:
    """What a graph gives, one by one."""
    (output,) = (n for n in graph.nodes if n.op == "output")
    results: Any = output.args[0]
    return list(results) if isinstance(results, (tuple, list)) else [results]


def placeholders(graph: fx.Graph) -> list[fx.Node]:
    """The inputs of a graph."""
    return [n for n in graph.nodes if n.op == "placeholder"]


def save_inputs(
    forward: fx.GraphModule, backward: fx.GraphModule, count: int
) -> tuple[fx.GraphModule, fx.GraphModule, list[int]]:
    """Both halves, and the positions of the inputs that are saved.

    forward: gives `count` results, then what it saves. backward: takes that, then gradients of
    results. The new forward half saves no inputs and no views of them, the new backward one takes
    the saved inputs after what the forward one saves. It gives only the gradients that there are.
    """
    inputs = placeholders(forward.graph)
    results = results_of(forward.graph)
    saved = results[count:]
    given = placeholders(backward.graph)
    chains = [_views_of_input(n) for n in saved]
    used = list(dict.fromkeys(chain[0] for chain in chains if chain is not None))

    first = fx.Graph()
    made: dict[fx.Node, fx.Node] = {}
    _copy(forward.graph, first, made)
    kept = [n for n, chain in zip(saved, chains, strict=True) if chain is None]
    first.output(tuple(made[n] for n in (*results[:count], *kept)))
    first.eliminate_dead_code()

    second = fx.Graph()
    env: dict[fx.Node, fx.Node] = {}
    for n, chain in zip(given, chains, strict=False):
        if chain is None:
            env[n] = second.node_copy(n)
    own = {n: second.node_copy(n) for n in used}
    for n in given[len(saved) :]:
        env[n] = second.node_copy(n)
    for n, chain in zip(given, chains, strict=False):
        if chain is not None:
            for step in chain[1:]:
                if step not in own:
                    own[step] = second.node_copy(step, own.__getitem__)
            env[n] = own[chain[-1]]
    _copy(backward.graph, second, env)
    second.output(tuple(env[n] for n in results_of(backward.graph) if n is not None))
    return (
        fx.GraphModule(forward, first),
        fx.GraphModule(backward, second),
        [inputs.index(n) for n in used],
    )


def _copy(graph: fx.Graph, to: fx.Graph, made: dict[fx.Node, fx.Node]) -> None:
    """Copy the nodes that are not made yet, but for the output."""
    for node in graph.nodes:
        if node not in made and node.op != "output":
            made[node] = to.node_copy(node, made.__getitem__)


def _views_of_input(node: fx.Node) -> list[fx.Node] | None:
    """An input, and the views of one another that lead from it to a node; None if none do."""
    chain = [node]
    while node.op == "call_function":
        if len(node.all_input_nodes) != 1 or not _is_view(node, node.all_input_nodes[0]):
            return None
        node = node.all_input_nodes[0]
        chain.append(node)
    return chain[::-1] if node.op == "placeholder" else None


def _is_view(node: fx.Node, base: fx.Node) -> bool:
    """Whether an operator gives a view of its argument, and writes nothing."""
    schema: Any = getattr(node.target, "_schema", None)
    if schema is None or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    aliased = [a.alias_info for a in schema.arguments if a.alias_info is not None]
    return len(aliased) == 1 and not aliased[0].is_write and node.args[:1] == (base,)
