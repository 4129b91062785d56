"""A tensor graph with torch's symbolic integers as one with `Size`s.

The nodes that compute integers are gone; what they gave stands in the arguments of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import fx

from np_compile.size import Facts, Real, Size

from .nodes import Unsupported


class SizedTensor(torch.Tensor):
    """What is known of a tensor whose extents may be `Size`s."""

    _sizes: tuple
    _steps: tuple
    _start: Any

    @staticmethod
    def of(t: torch.Tensor, to: Any) -> SizedTensor:
        """What is known of `t`, its integers changed by `to`."""
        empty = torch.empty(0, dtype=t.dtype, device="meta")
        made = torch.Tensor._make_subclass(SizedTensor, empty)
        made._sizes = tuple(map(to, t.shape))
        made._steps = tuple(map(to, t.stride()))
        made._start = to(t.storage_offset())
        return made

    @property
    def shape(self) -> Any:  # type: ignore[override]
        return self._sizes

    def size(self, dim: int | None = None) -> Any:
        return self._sizes if dim is None else self._sizes[dim]

    def stride(self, dim: int | None = None) -> Any:  # type: ignore[override]
        return self._steps if dim is None else self._steps[dim]

    def storage_offset(self) -> Any:
        return self._start

    def dim(self) -> int:
        return len(self._sizes)

    @property
    def ndim(self) -> int:  # type: ignore[override]
        return len(self._sizes)

    def numel(self) -> Any:
        total: Any = 1
        for n in self._sizes:
            total = total * n
        return total

    def is_contiguous(self, *_: Any, **__: Any) -> bool:
        step: Any = 1
        for n, s in zip(reversed(self._sizes), reversed(self._steps), strict=True):
            if n != 1 and s != step:
                return False
            step = step * n
        return True

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]


def sized(
    graph: fx.Graph, names: Iterable[str], values: Mapping[str, int], conditions: Iterable[Any]
) -> tuple[fx.Graph, Facts]:
    """The graph, and what is known of its symbols. names: of the symbols, in their order. values:
    at hand. conditions: on symbols, of which the graph takes for granted that they hold."""
    facts = Facts()
    symbols = {name: facts.symbol(f"n{k}", values[name]) for k, name in enumerate(names)}
    convert = _Converter(symbols)
    for condition in conditions:
        convert.assume(condition, facts)
    made = fx.Graph()
    env: dict[fx.Node, Any] = {}

    def argument(x: Any) -> Any:
        if isinstance(x, fx.Node):
            return env[x]
        return convert(x)

    for node in graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            env[node] = convert(value)
            continue
        if isinstance(value, torch.SymFloat):
            env[node] = convert.real(value.node.expr)
            continue
        args = fx.map_arg(node.args, lambda n: n)
        copied = made.create_node(
            node.op, node.target, _mapped(args, argument), _mapped(dict(node.kwargs), argument),
            node.name,
        )  # fmt: skip
        copied.meta = dict(node.meta)
        if value is not None:
            copied.meta["val"] = _mapped(
                value, lambda t: SizedTensor.of(t, convert) if isinstance(t, torch.Tensor) else t
            )
        env[node] = copied
    return made, facts


def _mapped(x: Any, change: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return type(x)([_mapped(v, change) for v in x])
    if isinstance(x, dict):
        return {k: _mapped(v, change) for k, v in x.items()}
    return change(x)


class _Converter:
    """torch's symbolic integers as `Size`s."""

    def __init__(self, symbols: Mapping[str, Size]):
        self._symbols = symbols
        self._known: dict[Any, Any] = {}

    def __call__(self, x: Any) -> Any:
        if isinstance(x, (torch.SymFloat, torch.SymBool)):
            raise Unsupported(f"the size {x} as a {type(x).__name__}")
        return self._of(x.node.expr) if isinstance(x, torch.SymInt) else x

    def _of(self, x: Any) -> Any:
        found = self._known.get(x)
        if found is None:
            found = self._known[x] = self._converted(x)
        return found

    def _converted(self, x: Any) -> Any:
        if x.is_Integer:
            return int(x)
        if x.is_Symbol:
            return self._symbols[x.name]
        args = [self._of(a) for a in x.args]
        kind = type(x).__name__
        if kind == "Add":
            return sum(args[1:], args[0])
        if kind == "Mul":
            total = args[0]
            for a in args[1:]:
                total = total * a
            return total
        if kind in ("FloorDiv", "CleanDiv"):
            return args[0] // args[1]
        if kind in ("Mod", "PythonMod"):
            return args[0] % args[1]
        if kind == "Max":
            return max(args)
        if kind == "Min":
            return min(args)
        if kind == "Pow" and type(args[1]) is int and args[1] > 0:
            total = args[0]
            for _ in range(args[1] - 1):
                total = total * args[0]
            return total
        raise Unsupported(f"a size that is {kind}")

    def real(self, x: Any) -> Real:
        """A size as a float."""
        if type(x).__name__ != "ToFloat":
            raise Unsupported(f"a size in {type(x).__name__}")
        return Real(self._of(x.args[0]))

    def assume(self, condition: Any, facts: Facts) -> None:
        """Note a comparison that holds; others are no use."""
        kind = type(condition).__name__
        if len(condition.args) != 2 or kind not in _LEAST:
            return
        try:
            left, right = (self._of(a) for a in condition.args)
        except (Unsupported, KeyError):
            return
        for size in _LEAST[kind](left, right):
            facts.assume(size)


_LEAST = {
    "GreaterThan": lambda a, b: [a - b],
    "StrictGreaterThan": lambda a, b: [a - b - 1],
    "LessThan": lambda a, b: [b - a],
    "StrictLessThan": lambda a, b: [b - a - 1],
    "Equality": lambda a, b: [a - b, b - a],
}
