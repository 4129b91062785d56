"""Results of a graph that are an input with some elements changed, made in the memory of that
input.

A graph that only makes new arrays copies an array of which it writes a row. Where nobody reads the
old array afterwards, the row can be written to it instead. So it is with gradients: that of an
array before a row was written is that of the array after it, with zeros in the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from np_compile.kernels.frontend.nodes import mutated_roots
from np_compile.lowering.record import has_an_effect

from .saved import placeholders, results_of

aten = torch.ops.aten
Part = tuple[fx.Node, "list[int] | None"]  # see `scattered`
_MOST = 200  # operators of a sum that are looked at


def updates(graph: fx.Graph) -> dict[int, int]:
    """Of results that are an input of the same layout with some elements changed, by their
    positions, the position of the input. Each input is that of one result."""
    inputs = placeholders(graph)
    found: dict[int, int] = {}
    for k, result in enumerate(results_of(graph)):
        source = _writes(result)
        if source is None or source[0] not in inputs:
            continue
        position = inputs.index(source[0])
        if position not in found.values():
            found[k] = position
    return found


def updated(graph: fx.Graph, pairs: Mapping[int, int]) -> fx.Graph | None:
    """The graph with these results written to their inputs; it gives the others. None where
    something reads what an input was before, after it has been written to."""
    inputs, results = placeholders(graph), results_of(graph)
    before: dict[fx.Node, set[fx.Node]] = {}  # of each write, what lay there until then
    memory: set[fx.Node] = set()
    for k, position in pairs.items():
        found = _writes(results[k])
        assert found is not None
        base, writes = found
        assert base is inputs[position]
        before.update((write, {base, *writes[:n]}) for n, write in enumerate(writes))
        memory.update((base, *writes))
    root, _ = mutated_roots(graph)
    others = [r for k, r in enumerate(results) if k not in pairs]
    if any(isinstance(r, fx.Node) and root[r] in memory for r in others):
        return None

    made = fx.Graph()
    own: dict[fx.Node, fx.Node] = {}
    left = [n for n in graph.nodes if n.op != "output"]
    while left:
        # Whatever can be read before the next write is.
        rest = []
        for node in left:
            if node in before or not all(n in own for n in node.all_input_nodes):
                rest.append(node)
            else:
                own[node] = made.node_copy(node, own.__getitem__)
        for node in rest:
            reads = [x for n in rest if n is not node for x in _reads(n, n in before)]
            if node in before and _is_next(node, before[node], reads, own, root):
                own[node] = _write(made, node, {n: root[n] in before[node] for n in own}, own)
                rest.remove(node)
                break
        else:
            if rest:
                return None
        left = rest
    made.output(tuple(own[r] if isinstance(r, fx.Node) else r for r in others))
    made.eliminate_dead_code(has_an_effect)
    return made


def _is_next(
    write: fx.Node, before: set[fx.Node], reads: Sequence[fx.Node], own: Mapping[fx.Node, fx.Node],
    root: Mapping[fx.Node, fx.Node],
) -> bool:  # fmt: skip
    """Whether a write has its operands, and no other operator reads what lies there until then.
    reads: what others read that are left."""
    source, parts = _parts(write)
    operands = [source, *[n for place, _ in parts for n in _given(place)]]
    return all(n in own for n in operands) and not any(root[x] in before for x in reads)


def _reads(node: fx.Node, writes: bool) -> list[fx.Node]:
    """What an operator reads; of one that is to write, the values that it puts in place, too."""
    more = [n for place, _ in _parts(node)[1] for n in _given(place)] if writes else []
    return [*node.all_input_nodes, *more]


def _writes(node: Any) -> tuple[fx.Node, list[fx.Node]] | None:
    """What an array is but for some elements, and the operators that change these, in their order;
    None where its layout is another one."""
    writes: list[fx.Node] = []
    order: list[int] | None = None  # where its axes come from
    while isinstance(node, fx.Node) and node.op != "placeholder":
        if node.target is aten.permute.default:
            axes = _axes(node)
            order = axes if order is None else [axes[k] for k in order]
            node = node.args[0]
        elif node.target is aten.alias.default:
            node = node.args[0]
        elif node.target is aten.index_put.default or _is_sum(node):
            writes.append(node)
            node = _parts(node)[0]
        else:
            return None
    if not isinstance(node, fx.Node) or (order is not None and order != sorted(order)):
        return None
    return node, writes[::-1]


def _is_sum(node: fx.Node) -> bool:
    """Whether something is added to some elements."""
    return (
        node.target is aten.add.Tensor
        and _is_alike(node)
        and any(scattered(n) for n in node.all_input_nodes)
    )


def _parts(write: fx.Node) -> tuple[fx.Node, list[Part]]:
    """What a write changes, and the operators with the indices and the values."""
    a, b, *_ = [*write.args, None]
    if write.target is aten.index_put.default:
        return a, [(write, None)]  # type: ignore[return-value]
    found = scattered(b)  # type: ignore[arg-type]
    return (a, found) if found else (b, scattered(a))  # type: ignore[return-value, arg-type]


def _write(
    made: fx.Graph, write: fx.Node, lies: Mapping[fx.Node, bool], own: dict[fx.Node, fx.Node]
) -> fx.Node:
    """Write down the operator that changes elements in place; what is changed. lies: whether
    something lies there: values are not read from where they are written to."""
    source, parts = _parts(write)

    def operand(n: fx.Node) -> fx.Node:
        if not lies[n]:
            return own[n]
        copy = made.call_function(aten.clone.default, (own[n],))
        copy.meta = dict(own[n].meta)
        return copy

    rests: list[Any] = [fx.map_arg(place.args[1:], operand) for place, _ in parts]
    for (_, order), rest in zip(parts, rests, strict=True):
        view = permuted(made, own[source], order)
        call = made.call_function(aten.index_put_.default, (view, *rest))
        call.meta = {**write.meta, "val": view.meta["val"]}
    return own[source]


def _given(place: fx.Node) -> list[fx.Node]:
    """The indices and the values of an operator that stores them."""
    found: list[fx.Node] = []
    fx.map_arg(place.args[1:], found.append)
    return found


def permuted(graph: fx.Graph, node: fx.Node, order: list[int] | None) -> fx.Node:
    """A node with its axes in this order."""
    if order is None:
        return node
    view = graph.call_function(aten.permute.default, (node, order))
    view.meta["val"] = node.meta["val"].permute(order)
    return view


def scattered(node: fx.Node) -> list[Part]:
    """Where a gradient is zero but for what was added at indices: the operators that have added it
    there, each with the order of axes that leads from the gradient to its result; nothing where it
    is another one."""
    found: list[Part] = []
    left: list[Part] = [(node, None)]
    for _ in range(_MOST):
        if not left:
            return found
        node, order = left.pop()
        if node.target is aten.permute.default:
            axes = _axes(node)
            inverse = [axes.index(k) for k in range(len(axes))]
            order = inverse if order is None else [order[k] for k in inverse]
            left.append((node.args[0], order))  # type: ignore[arg-type]
        elif node.target is aten.alias.default:
            left.append((node.args[0], order))  # type: ignore[arg-type]
        elif node.target is aten.add.Tensor and _is_alike(node):
            left += [(n, order) for n in reversed(node.args)]  # type: ignore[misc]
        elif _is_zero_but_for_values(node):
            found.append((node, order))
        else:
            return []
    return []


def _is_zero_but_for_values(node: fx.Node) -> bool:
    """Whether an operator adds values to zeros at indices."""
    if node.target is not aten.index_put.default or node.args[3:] != (True,):
        return False
    base: Any = node.args[0]
    return base.target is aten.full.default and base.args[1] == 0


def _is_alike(node: fx.Node) -> bool:
    """Whether a sum is of arrays of its own shape and dtype."""
    if node.kwargs or not all(isinstance(n, fx.Node) for n in node.args):
        return False
    nodes: Any = (node, *node.args)
    return len({(n.meta["val"].shape, n.meta["val"].dtype) for n in nodes}) == 1


def _axes(node: fx.Node) -> list[int]:
    """The order of axes of a permutation."""
    order: Any = node.args[1]
    return [int(a) % len(order) for a in order]
