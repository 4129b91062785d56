"""Accessors of the nodes of a tensor graph: operator, arguments, and whose memory they write."""

from __future__ import annotations

import operator
from typing import Any

from torch import fx

from np_compile.size import Real, Size


class Unsupported(Exception):
    """A graph that has no translation: the operator, and why."""


def args_of(node: fx.Node) -> tuple[Any, ...]:
    """The positional arguments of a node."""
    return node.args


def schema_of(node: fx.Node) -> Any:
    """The schema of a node's operator: its name, and its arguments with their aliasing."""
    target: Any = node.target
    return target._schema


def overload_of(node: fx.Node) -> str:
    """The name of the operator's overload."""
    target: Any = node.target
    return str(target._overloadname)


def source_of(node: fx.Node) -> fx.Node:
    """The first argument, which is a node."""
    found: Any = node.args[0]
    return found


def value_of(x: Any) -> Any:
    """What torch's rules for dtypes know of an argument: a tensor, or a number."""
    if isinstance(x, fx.Node):
        return x.meta["val"]
    return 1.0 if isinstance(x, Real) else 1 if isinstance(x, Size) else x


def arguments_of(node: fx.Node) -> dict[str, Any]:
    """The arguments that a node gives, by their names in the schema."""
    names = (a.name for a in schema_of(node).arguments)
    return {**dict(zip(names, node.args, strict=False)), **node.kwargs}


def argument_of(node: fx.Node, name: str, default: Any = None) -> Any:
    """The argument of a name, or the default."""
    return arguments_of(node).get(name, default)


def from_front(position: int, count: int) -> int:
    """The position of one of `count` things, where a negative one counts from the back."""
    return position + count if position < 0 else position


def packet(node: fx.Node) -> tuple[str, bool]:
    """An operator's name without namespace and overload, and whether it writes its argument."""
    target: Any = node.target
    schema = getattr(target, "_schema", None)
    if schema is None:
        raise Unsupported(f"{node.target} is no ATen operator")
    space, _, name = schema.name.partition("::")
    if space != "aten":
        return f"{space}::{name}", False
    first = schema.arguments[0] if schema.arguments else None
    writes = first is not None and first.alias_info is not None and first.alias_info.is_write
    return (name[:-1] if writes and name.endswith("_") else name), writes


def mutated_roots(graph: fx.Graph) -> tuple[dict[fx.Node, fx.Node], set[fx.Node]]:
    """For each node the one whose memory it lies in, and those of them that are written to."""
    root: dict[fx.Node, fx.Node] = {}
    mutated: set[fx.Node] = set()

    def write(home: fx.Node) -> None:
        mutated.add(home)
        if home.target is operator.getitem:
            mutated.add(home.args[0])  # type: ignore[arg-type]

    for node in graph.nodes:
        root[node] = node
        if node.op != "call_function" or not hasattr(node.target, "_schema"):
            if node.op == "call_function" and node.args and isinstance(node.args[0], fx.Node):
                of = root[node.args[0]]
                if of is not node.args[0]:  # else it is new memory, as each result of an operator
                    root[node] = of
            continue
        arguments = node.target._schema.arguments
        for spec, x in zip(arguments, node.args, strict=False):
            if spec.alias_info is None or not isinstance(x, fx.Node):
                continue
            root[node] = root[x]
            if spec.alias_info.is_write:
                write(root[x])
        for spec in arguments:
            x = node.kwargs.get(spec.name)
            if spec.alias_info is not None and spec.alias_info.is_write and x is not None:
                write(root[x])
    return root, mutated
