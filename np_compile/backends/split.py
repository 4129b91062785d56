"""A graph of results and gradients as two halves, with what costs least kept between them.

What the gradients need of the first half is kept, or computed again from what is kept. Operators
on elements, and views, cost nothing where kernels read through them; others are computed once. So
what is kept is a cut through the graph, of as few bytes as can be (`cut.py`), and rules of thumb
say what is not to be computed again. They are those of torch's partitioner, which AOTAutograd
uses: its import takes longer than most programs, and it goes through the graph a dozen times.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Collection, Hashable, Iterable, Sequence
from functools import cache
from typing import Any

import torch
from torch import fx

from np_compile.kernels.frontend.sizes import sized
from np_compile.lowering.record import has_an_effect
from np_compile.lowering.tensor_graph import Differentiable
from np_compile.size import Facts, hint

from .cut import cut
from .saved import is_view, placeholders, results_of

_aten = torch.ops.aten
# Beside views and operators on elements, what costs about what it costs to read its result
_CHEAP = frozenset((
    "_to_copy", "_unsafe_view", "amax", "amin", "any", "arange", "argmax", "clone", "dot", "empty",
    "empty_like", "full", "full_like", "gather", "index", "lift_fresh_copy", "max", "mean", "min",
    "mv", "new_zeros", "ones", "reshape", "scalar_tensor", "std", "sum", "tril", "triu", "var",
    "var_mean", "zeros", "zeros_like",
))  # fmt: skip
_NEARER = 1.1  # a value is as many times as large for each operator between it and the gradients,
_FARTHEST = 100  # up to so many
_ALONE = 2  # so many times where it would not have to be in memory otherwise
_SMALLER = 4  # a result that is so many times smaller than the operands is kept
_CHAIN = 100  # operators that may be computed one from the other, without a value that is kept


def split(
    joint: fx.GraphModule, count: int, facts: Facts | None = None
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """The half that gives the first `count` results, then what is kept; and the half that takes
    that, then the inputs `tangents_1`, ..., and gives the other results. joint: writes to nothing;
    each of its results is new memory. facts: of its sizes, where it is for many; then the halves
    have `Size`s in place of torch's integers."""
    graph = joint.graph
    merge(graph)
    if facts is not None:
        graph = sized(graph, facts)
    inputs = placeholders(graph)
    tangents = [n for n in inputs if n.name.startswith("tangents_")]
    primals = [n for n in inputs if n not in tangents]
    results = results_of(graph)
    late = _users(tangents)
    kept = _kept(graph, results[:count], results[count:], late)
    forward = _half(graph, primals, [*results[:count], *kept])
    backward = _half(graph, [*kept, *tangents], results[count:], late)
    return Differentiable(joint, forward), Differentiable(joint, backward)


def merge(graph: fx.Graph) -> None:
    """Have each value computed once, but for results, which are each in memory of its own."""
    given = [r for r in results_of(graph) if isinstance(r, fx.Node)]
    own = {memory for r in given for memory in _memory(r)}
    known: dict[Hashable, fx.Node] = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or not _gives_the_same(node):
            continue
        if not own.isdisjoint(_memory(node)):
            continue
        key = node.target, _key(node.args), _key(node.kwargs)
        found = known.setdefault(key, node)
        if found is not node:
            node.replace_all_uses_with(found)
            graph.erase_node(node)


def _memory(node: fx.Node) -> list[int]:
    return [t.untyped_storage()._cdata for t in _tensors(node)]


def _gives_the_same(node: fx.Node) -> bool:
    """Whether an operator gives the same again for the same operands."""
    tags = getattr(node.target, "tags", ())
    drawn = torch.Tag.nondeterministic_seeded in tags or _name(node.target).startswith("empty")
    return not drawn and not has_an_effect(node)


def _key(x: Any) -> Hashable:
    if isinstance(x, (list, tuple)):
        return tuple([_key(v) for v in x])
    if isinstance(x, dict):
        return tuple([(k, _key(v)) for k, v in x.items()])
    # 0.0 and -0.0 are equal, as are 1, 1.0 and True.
    return x if isinstance(x, fx.Node) else (type(x), repr(x))


def _users(nodes: Iterable[fx.Node]) -> set[fx.Node]:
    """These and all that is computed from them."""
    found, waiting = set(nodes), list(nodes)
    while waiting:
        for user in waiting.pop().users:
            if user not in found and user.op != "output":
                found.add(user)
                waiting.append(user)
    return found


def _operands(nodes: Iterable[fx.Node], known: Collection[fx.Node] = ()) -> set[fx.Node]:
    """These and all that they are computed from, as far as it is not known."""
    waiting = [n for n in nodes if n not in known]
    found = set(waiting)
    while waiting:
        for n in waiting.pop().all_input_nodes:
            if n not in found and n not in known:
                found.add(n)
                waiting.append(n)
    return found


def _kept(
    graph: fx.Graph, results: Sequence[Any], gradients: Sequence[Any], late: set[fx.Node]
) -> list[fx.Node]:
    """What is kept between the halves, in its order. late: what needs the gradients of results."""
    early = _operands(r for r in results if isinstance(r, fx.Node))
    needed = {n for node in late for n in node.all_input_nodes if n not in late}
    needed.update(g for g in gradients if isinstance(g, fx.Node) and g not in late)
    once = _computed_once(graph, early)
    far = _distances(graph, early)
    # What leads to what is needed, up to values that are not computed again
    edges = []
    found, waiting = set(needed), list(needed)
    while waiting:
        node = waiting.pop()
        if node not in once:
            for n in node.all_input_nodes:
                edges.append((n, node))
                if n not in found:
                    found.add(n)
                    waiting.append(n)
    weights = {n: _weight(n, far[n]) for n in graph.nodes if n in found}
    saved = cut(weights, edges, once & found, needed)
    return [n for n in weights if n in saved]


def _weight(node: fx.Node, far: int) -> int | None:
    """What it costs to keep a value; None of what is no array."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None
    near = _NEARER ** max(min(far, _FARTHEST), 1)
    alone = node.op != "placeholder" and all(_fuses(node, user) for user in node.users)
    return max(int(_bytes(node) * near), 1) * (_ALONE if alone else 1)


def _distances(graph: fx.Graph, early: set[fx.Node]) -> dict[fx.Node, int]:
    """How many operators there are between a value and the gradients, at least."""
    far: dict[fx.Node, int] = {}
    for node in reversed(graph.nodes):
        if node.op == "output":
            far[node] = _FARTHEST
        elif node not in early:
            far[node] = 0
        else:
            far[node] = min([far[user] + 1 for user in node.users], default=_FARTHEST)
    return far


def _computed_once(graph: fx.Graph, early: set[fx.Node]) -> set[fx.Node]:
    """What is not computed again. early: what the results need."""
    order = {n: k for k, n in enumerate(n for n in graph.nodes if n in early)}
    once = {n for n in early if n.op == "placeholder" or _is_costly(n, early)}
    for node in order:
        users = [user for user in node.users if user in order]
        if not users:
            continue
        last = max(order[user] for user in users)
        end = _first_apart(users, last, order)
        once.update(
            user for user in users
            if order[user] > end and _fuses(node, user) and not _is_view(user)
        )  # fmt: skip
    _break_chains(order, once)
    return once


def _is_costly(node: fx.Node, early: set[fx.Node]) -> bool:
    """Whether a value takes more to be computed than to be read, or is small."""
    if node.op != "call_function" or node.target is operator.getitem or _is_view(node):
        return False
    if _name(node.target) == "lift_fresh_copy":  # a constant
        return False
    if not _is_cheap(node.target) or _is_read_apart(node, early):
        return True
    sizes = [_bytes(n) for n in node.args if isinstance(n, fx.Node)]
    return _bytes(node) * _SMALLER < sum(sizes)


def _is_read_apart(node: fx.Node, early: set[fx.Node]) -> bool:
    """Whether a gradient is made of a value by an operator that needs it in memory."""
    seen = {node}
    waiting = [node]
    while waiting:
        current = waiting.pop()
        for user in current.users:
            if user not in early and not _fuses(current, user):
                return True
            if user not in seen and user.op != "output" and _is_view(user):
                seen.add(user)
                waiting.append(user)
    return False


def _first_apart(users: list[fx.Node], last: int, order: dict[fx.Node, int]) -> int:
    """The place of the first value behind some, up to a place, that is computed apart from what it
    is computed of; that place, if there is none. Values behind it are far from those before it."""
    waiting = [(order[n], True, n) for n in users]
    heapq.heapify(waiting)
    seen = {(n, True) for n in users}
    while waiting:
        place, fused, node = heapq.heappop(waiting)
        if not fused:
            return place
        for user in node.users:
            if order.get(user, last + 1) <= last:
                follows = user, _fuses(node, user)
                if follows not in seen:
                    seen.add(follows)
                    heapq.heappush(waiting, (order[user], follows[1], user))
    return last


def _break_chains(order: dict[fx.Node, int], once: set[fx.Node]) -> None:
    """Of long chains of operators, keep one value in so many."""
    seen: set[fx.Node] = set()
    for start, begin in order.items():
        waiting = [(begin, start)]
        while waiting:
            place, node = heapq.heappop(waiting)
            if node in seen:
                continue
            seen.add(node)
            if place > begin + _CHAIN and not waiting:
                if not _is_view(node):
                    once.add(node)
                break
            for user in node.users:
                if user in order and user not in once and _fuses(node, user):
                    heapq.heappush(waiting, (order[user], user))


def _fuses(node: fx.Node, user: fx.Node) -> bool:
    """Whether what is computed of a value reads it where it is made, not in memory."""
    if _name(user.target) == "cat":
        return True
    return all(
        n.op == "call_function" and (_is_cheap(n.target) or _is_view(n)) for n in (node, user)
    )


@cache
def _name(target: Any) -> str:
    """The name of an operator of torch's, whatever its operands are; of others nothing."""
    packet = getattr(target, "overloadpacket", None)
    return packet.__name__ if packet is not None and target.namespace == "aten" else ""


@cache
def _is_cheap(target: Any) -> bool:
    if target is operator.getitem or _name(target) in _CHEAP:
        return True
    return bool(_name(target)) and torch.Tag.pointwise in target.tags


def _is_view(node: fx.Node) -> bool:
    return bool(node.all_input_nodes) and is_view(node, node.all_input_nodes[0])


def _bytes(node: fx.Node) -> int:
    return sum([hint(t.numel()) * t.dtype.itemsize for t in _tensors(node)])


def _tensors(node: fx.Node) -> list[torch.Tensor]:
    value = node.meta.get("val")
    values = value if isinstance(value, tuple) else (value,)
    return [v for v in values if isinstance(v, torch.Tensor)]


def _half(
    graph: fx.Graph, inputs: Sequence[fx.Node], results: Sequence[Any],
    first: Collection[fx.Node] | None = None,
) -> fx.Graph:  # fmt: skip
    """The part of a graph that computes these results from these inputs. first: what keeps its
    order, if not all does; the rest is computed where it is needed."""
    wanted = [r for r in results if isinstance(r, fx.Node)]
    needed = _operands(wanted, inputs)
    order = {n: k for k, n in enumerate(graph.nodes)}
    half = fx.Graph()
    made: dict[fx.Node, fx.Node] = {}
    for node in inputs:
        made[node] = half.placeholder(node.name)
        made[node].meta = dict(node.meta)
    kept = [n for n in graph.nodes if n in needed and (first is None or n in first)]
    for node in [*kept, *wanted]:
        for n in sorted(_operands([node], made), key=order.__getitem__):
            made[n] = half.node_copy(n, made.__getitem__)
    half.output(tuple([made[r] if isinstance(r, fx.Node) else r for r in results]))
    return half
