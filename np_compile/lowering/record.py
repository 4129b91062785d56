"""Operators written down as they are called: a tensor graph of a segment on one device.

A `Recorder` is torch's dispatch mode over meta tensors: each operator becomes a node of a plain
`torch.fx.Graph`, and gives a meta tensor that knows its node. It does what `make_fx` does on fake
tensors, without gradients and several devices, in a twentieth of the time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch.fx import Graph, Node

from np_compile.shim._devices import NODE

from .meta import Shapes, tensors_of

_CPU = torch.device("cpu")
_aten = torch.ops.aten


class Recorder(Shapes):
    """The graph of the operators that run within it.

    place: the device of the run. rules: what stands for some operators, made of others, or gives
    NotImplemented. graph: so far. constants: the tensors behind its `get_attr` nodes, by name. A
    node's `meta["val"]` is a meta tensor (a tuple of them) with its shape, strides and dtype.
    """

    def __init__(
        self, place: torch.device = _CPU, rules: Mapping[Any, Callable] | None = None
    ) -> None:
        super().__init__()
        self.place = place
        self._rules = rules or {}
        self.graph = Graph()
        self.constants: dict[str, torch.Tensor] = {}
        # id of a constant -> it, as its copy on a device does not keep it, and its meta tensor.
        self._known: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def input(self, like: torch.Tensor, parameters: bool = False, name: str = "") -> torch.Tensor:
        """The meta tensor of the graph's next input, laid out as `like`. parameters: whether it is
        a vector of these, which a call of the program has as numbers."""
        offset = like.storage_offset()
        meta = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device="meta")
        if offset:
            room = torch.empty(offset + _span(like), dtype=like.dtype, device="meta")
            meta = room.as_strided(like.shape, like.stride(), offset)
        node = self.graph.placeholder(name or f"arg{len(self.graph.nodes)}_1")
        node.meta["parameters"] = parameters
        return self._track(meta, node)

    def finish(self, outputs: Sequence[torch.Tensor | None]) -> Graph:
        """The graph that gives `outputs`, without operators that nothing needs."""
        with self:
            given = [t if t is None or t.is_meta else self._constant(t) for t in outputs]
        self.graph.output([None if t is None else self._node(t) for t in given])
        for node in reversed(self.graph.nodes):
            if node.op in ("call_function", "get_attr") and not (node.users or _acts(node)):
                self.graph.erase_node(node)
        return self.graph

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in self._rules:
            with self:
                made = self._rules[func](*args, **kwargs)
            if made is not NotImplemented:
                return made
        if _is_composite(func):
            with self:
                return func.decompose(*args, **kwargs)
        tensors = list(tensors_of(args, kwargs))
        if tensors and not any(t.is_meta for t in tensors):
            return self._on_constants(func, tensors, args, kwargs)
        if func is _aten._to_copy.default and _moves_only(args[0], kwargs):
            return args[0]
        if func._schema.is_mutable and not args[0].is_meta:
            raise RuntimeError(f"{func} writes into a constant of the program")
        node = self.graph.create_node(
            "call_function",
            _view(func) or func,
            tuple(self._graph_side(a) for a in args),
            {k: self._graph_side(v) for k, v in kwargs.items()},
            name=func.overloadpacket.__name__,
        )
        result = self.run(
            func,
            tuple(self._meta_side(a) for a in args),
            {k: self._meta_side(v, k) for k, v in kwargs.items()},
        )
        return self._track(result, node)

    def _on_constants(
        self, func: Any, tensors: list[torch.Tensor], args: tuple, kwargs: dict
    ) -> Any:
        """An operator whose tensors all have data: it runs now, its result is a constant."""
        if func is _aten.lift_fresh.default:  # torch.tensor(...): may be written to later
            return self._constant(args[0])
        if func._schema.is_mutable and any(id(t) in self._known for t in tensors):
            raise RuntimeError(f"{func} writes into a constant of the program")
        device = kwargs.get("device")
        if device is not None and device.type == "meta":  # where the program's arrays are
            return self._constant(func(*args, **{**kwargs, "device": _CPU}))
        return func(*args, **kwargs)

    def _constant(self, t: torch.Tensor) -> torch.Tensor:
        """A fresh copy, in each run, of a tensor that has data; as a meta tensor."""
        held = self.held(t)
        node = self.graph.create_node(
            "call_function", _aten.lift_fresh_copy.default, (self._node(held),),
            name="lift_fresh_copy",
        )  # fmt: skip
        return self._track(self.run(_aten.empty_like.default, (held,), {}), node)

    def held(self, t: torch.Tensor) -> torch.Tensor:
        """The meta tensor of a tensor that has data, which becomes an attribute of the graph."""
        found = self._known.get(id(t))
        if found is None:
            name = f"_tensor_constant{len(self.constants)}"
            self.constants[name] = t.to(self.place)
            meta = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
            found = self._known[id(t)] = t, self._track(meta, self.graph.get_attr(name))
        return found[1]

    def _track(self, result: Any, node: Node) -> Any:
        """Note on an operator's result which node gives it."""
        if isinstance(result, torch.Tensor):
            # Not the result itself: torch makes it a view in place only while nobody else has it.
            node.meta["val"] = result.detach()
            setattr(result, NODE, (self, node))
        elif isinstance(result, (tuple, list)):
            for i, part in enumerate(result):
                self._track(part, self.graph.call_function(operator.getitem, (node, i)))
            node.meta["val"] = tuple(part.detach() for part in result)
        return result

    def _node(self, t: torch.Tensor) -> Node:
        owner, node = getattr(t, NODE, (None, None))
        if owner is not self or node is None:
            raise RuntimeError("a tensor that no operator of the program has made")
        return node

    def _graph_side(self, a: Any) -> Any:
        """An argument as the graph has it: nodes for tensors, and the device of the run."""
        if isinstance(a, torch.Tensor):
            return self._node(a if a.is_meta else self.held(a))
        if isinstance(a, (list, tuple)):
            return type(a)(self._graph_side(b) for b in a)
        return self.place if isinstance(a, torch.device) else a

    def _meta_side(self, a: Any, name: str = "") -> Any:
        """An argument for the meta device."""
        if isinstance(a, torch.Tensor):
            return a if a.is_meta else self.held(a)
        if isinstance(a, list):
            return [self._meta_side(b) for b in a]
        return torch.device("meta") if name == "device" else a


@cache
def _view(func: Any) -> Any:
    """What gives the view that an operator makes of its operand in place, as products of a vector
    and a matrix do: it writes nothing."""
    if torch.Tag.inplace_view not in func.tags:
        return None
    packet = getattr(_aten, func.overloadpacket.__name__[:-1], None)
    form = getattr(packet, func._overloadname, None)
    return form if form is not None and form.is_view else None


def _moves_only(t: torch.Tensor, kwargs: dict) -> bool:
    """Whether a copy is for the sake of the device: to the program there is one device."""
    return (
        t.is_meta
        and kwargs.get("device") is not None
        and kwargs.get("dtype") in (None, t.dtype)
        and kwargs.get("memory_format") in (None, torch.preserve_format)
    )


def _span(t: torch.Tensor) -> int:
    """How many elements of memory a tensor reaches over."""
    if not t.numel():
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))


@cache
def _is_composite(func: Any) -> bool:
    """Whether an operator is made of others, and they are what the graph should have."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")


def has_an_effect(node: Node) -> bool:
    """Whether a node is no dead code though nothing uses it. Of what gives nothing, such as a check
    of a matrix, torch knows it from 2.13 on."""
    return node.is_impure() or _acts(node)


def _acts(node: Node) -> bool:
    """Whether an operator writes to something, or looks at what may be wrong and gives nothing."""
    schema: Any = getattr(node.target, "_schema", None)
    return schema is not None and (schema.is_mutable or not schema.returns)
