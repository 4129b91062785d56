"""The recorder of operators on tensors whose sizes may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import CodeType, MappingProxyType
from typing import Any

import torch
from torch.fx import Node

from np_compile.size import Facts, Real, Size

from .extents import (
    DIRECT,
    SCATTERS,
    SHAPES,
    VIEWS,
    at_hand,
    broadcast,
    empty_strided,
    is_symbolic,
    keep_order,
    laid_out,
    leaves,
    symints,
)
from .meta import tensors_of
from .record import Recorder
from .symint import SizeNode, symint

_CPU = torch.device("cpu")
_aten = torch.ops.aten
_NONE: Mapping[str, Any] = MappingProxyType({})


class SizedRecorder(Recorder):
    """A `Recorder` for inputs whose extents may be `Size`s. A node that computes an integer for the
    argument of another has it as `meta["val"]`."""

    def __init__(
        self, facts: Facts, place: torch.device = _CPU, rules: Mapping[Any, Callable] | None = None
    ) -> None:
        super().__init__(place, rules)
        self.facts = facts
        self._symbols: dict[str, Node | tuple] = {}  # what gives it, or says from where it is
        self._integers: dict[tuple, Node] = {}  # of sizes, by their keys

    def sized_input(
        self, shape: Sequence[Any], strides: Sequence[Any], dtype: Any, name: str = ""
    ) -> torch.Tensor:
        """The meta tensor of the graph's next input, of numbers and `Size`s."""
        meta = empty_strided(shape, strides, dtype)
        node = self.graph.placeholder(name or f"arg{len(self.graph.nodes)}_1")
        for function, sizes in ((_aten.sym_size.int, shape), (_aten.sym_stride.int, strides)):
            for d, n in enumerate(sizes):
                if type(n) is Size and n.symbol:
                    self._symbols.setdefault(n.symbol, (function, node, d))
        return self._track(meta, node)

    def integer_input(self, size: Size) -> Any:
        """The graph's next input, an integer that is a symbol."""
        node = self.graph.placeholder(f"arg{len(self.graph.nodes)}_1")
        node.meta["val"] = symint(size)
        self._symbols[size.symbol] = node
        return node.meta["val"]

    def run(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """As of `Shapes`, for tensors and integers that may be symbolic."""
        if not any(map(is_symbolic, leaves((*args, *kwargs.values())))):
            return super().run(func, args, kwargs)
        view = VIEWS.get(func)
        if view is not None:
            t = args[0]
            return t.as_strided(*map(symints, view(t, *args[1:], **kwargs)))
        if func in DIRECT:
            return DIRECT[func](*args, **kwargs)
        if torch.Tag.inplace_view in func.tags:  # which changes the shape of a tensor itself
            if func is not _aten.squeeze_.dim:
                raise NotImplementedError(f"{func} on tensors whose sizes may change")
            return args[0].as_strided_(*map(symints, VIEWS[_aten.squeeze.dim](*args)))
        if func._schema.is_mutable:
            if not func._schema.arguments[0].is_write:
                raise NotImplementedError(f"{func} on tensors whose sizes may change")
            super().run(func, at_hand(args), at_hand(kwargs))  # for its errors
            return args[0]
        shape_of = SHAPES.get(func)
        if shape_of is None and torch.Tag.pointwise in func.tags:
            shape_of = broadcast
        if shape_of is None:
            raise NotImplementedError(f"{func} of tensors whose sizes may change")
        made = super().run(func, at_hand(args), at_hand(kwargs))
        if func in SCATTERS and made.stride() == at_hand(args[0]).stride():  # also with gaps
            return torch.empty_strided(
                args[0].shape, args[0].stride(), dtype=made.dtype, device="meta"
            )
        for t in tensors_of(args, kwargs):
            keep_order(t)
        shapes = shape_of(*args, **kwargs)
        if isinstance(made, torch.Tensor):
            return laid_out(made, shapes)
        return tuple(laid_out(t, shape) for t, shape in zip(made, shapes, strict=True))

    def _graph_side(self, a: Any) -> Any:
        if isinstance(a, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self._integer(a.node.value)
        return super()._graph_side(a)

    def _integer(self, value: Any) -> Any:
        """The node that computes a size, or a number."""
        if type(value) is Real:
            of = self._integer(value.size)
            if not isinstance(of, Node):
                return float(of)
            return self._computed(torch.sym_float, (of,), torch.SymFloat(SizeNode(value)))
        if type(value) is not Size:
            return SizeNode(value).number()
        found = self._integers.get(value.key)
        if found is None:
            if value.symbol:
                found = self._symbol(value)
            else:
                symbols = {name: self._integer(self.facts.size(name)) for name in value.names}
                found = self._computed(evaluate, (value.text("//"),), symint(value), symbols)
            self._integers[value.key] = found
        return found

    def _symbol(self, size: Size) -> Node:
        source = self._symbols[size.symbol]
        if isinstance(source, Node):
            return source
        function, *args = source
        return self._computed(function, tuple(args), symint(size))

    def _computed(
        self, function: Callable, args: tuple, val: Any, kwargs: Mapping[str, Any] = _NONE
    ) -> Node:
        node = self.graph.call_function(function, args, dict(kwargs))
        node.meta["val"] = val
        return node


@cache
def _code(text: str) -> CodeType:
    return compile(text, "<size>", "eval")


def evaluate(text: str, **symbols: int) -> int:
    """A size, for these values of the symbols in its text."""
    value: int = eval(_code(text), symbols)
    return value
