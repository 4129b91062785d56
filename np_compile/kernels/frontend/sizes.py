"""A tensor graph with torch's symbolic integers as one with `Size`s.

The nodes that compute integers are gone; what they gave stands in the arguments of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from np_compile.size import Facts, Real, Size, evaluated


class SizedTensor(torch.Tensor):
    """What is known of a tensor whose extents may be `Size`s."""

    _sizes: tuple
    _steps: tuple
    _start: Any

    @staticmethod
    def of(t: torch.Tensor, to: Any) -> SizedTensor:
        """What is known of `t`, its integers changed by `to`."""
        # As many axes as it has: the dtype of a result goes by whether there are any.
        empty = torch.empty([0] * t.dim(), dtype=t.dtype, device="meta")
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
        layout = zip(self._sizes, self._steps, self._dense(), strict=True)
        return all(n == 1 or s == step for n, s, step in layout)

    def contiguous(self, *_: Any, **__: Any) -> SizedTensor:
        made = SizedTensor.of(self, lambda n: n)
        made._steps, made._start = self._dense(), 0
        return made

    def _dense(self) -> tuple:
        """Its strides if it lay without gaps, the last axis innermost."""
        steps: list[Any] = [1]
        for n in reversed(self._sizes[1:]):
            steps.insert(0, n * steps[0])
        return tuple(steps[: len(self._sizes)])

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]


def sized(graph: fx.Graph, facts: Facts) -> fx.Graph:
    """The graph, sizes in the place of torch's integers; of symbols that are equal one is left."""
    same = facts.merged()
    known: dict[Any, Any] = {}

    def convert(x: Any) -> Any:
        if not isinstance(x, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return x
        value = x.node.value
        if type(value) is Real:
            return Real(renamed(value.size))
        return renamed(value)

    def renamed(value: Any) -> Any:
        if type(value) is not Size:
            return value
        if value.key not in known:
            known[value.key] = value.renamed(same)
        return known[value.key]

    return _copied(
        graph, convert,
        lambda t: SizedTensor.of(t, convert) if isinstance(t, torch.Tensor) else t,
    )  # fmt: skip


def numbered(graph: fx.Graph, values: Mapping[str, int]) -> fx.Graph:
    """A graph that `sized` has made, for these values of the symbols: what torch can run."""

    def number(x: Any) -> Any:
        return float(evaluated(x.size, values)) if type(x) is Real else evaluated(x, values)

    return _copied(graph, number, lambda t: t)


def _copied(graph: fx.Graph, change: Callable[[Any], Any], known: Callable[[Any], Any]) -> fx.Graph:
    """A graph with its arguments changed, also those that nodes compute as integers, and what is
    known of its tensors."""
    made = fx.Graph()
    env: dict[fx.Node, Any] = {}

    def argument(x: Any) -> Any:
        return env[x] if isinstance(x, fx.Node) else change(x)

    for node in graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            env[node] = change(value)
            continue
        args = fx.map_arg(node.args, lambda n: n)
        copied = made.create_node(
            node.op, node.target, _mapped(args, argument), _mapped(dict(node.kwargs), argument),
            node.name,
        )  # fmt: skip
        copied.meta = dict(node.meta)
        if value is not None:
            copied.meta["val"] = _mapped(value, known)
        env[node] = copied
    return made


def _mapped(x: Any, change: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return type(x)([_mapped(v, change) for v in x])
    if isinstance(x, dict):
        return {k: _mapped(v, change) for k, v in x.items()}
    return change(x)
