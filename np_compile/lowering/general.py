"""From a segment to a tensor graph that holds for other sizes too.

The segment is replayed on fake tensors whose extents are torch's symbolic integers. What the shim
and torch's shape functions ask of them is noted as guards: the graph holds for all sizes of which
these are true. Integers of calls that may change are inputs of the graph, after all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from np_compile.tape.form import Form, calls_with, shapes_in
from np_compile.tape.node import Node

LEAST = 2  # a size of 0 or 1 is a constant: shapes broadcast by it


class Special(Exception):
    """Sizes that may change have been used as numbers. positions: of these, in the form."""

    def __init__(self, positions: frozenset[int]):
        super().__init__(f"sizes {sorted(positions)} have to be what they are")
        self.positions = positions


@dataclass(frozen=True)
class GeneralGraph:
    """graph: as `lower` gives it, with symbolic extents. symbols: of the sizes that may change
    their positions in the form, by the names that stand for them in the graph. integers: positions
    of those of them that the graph has as inputs, in their order. holds: whether the graph is that
    of other sizes of the form. guards: what that asks, as text; conditions: as torch has it."""

    graph: torch.fx.GraphModule
    symbols: dict[str, int]
    integers: tuple[int, ...]
    holds: Callable[[Sequence[int]], bool]
    guards: tuple[str, ...]
    conditions: tuple[Any, ...]


def lower_general(
    node: Node, form: Form, changing: frozenset[int], replay: Callable, args: list[torch.Tensor]
) -> GeneralGraph:
    """The graph of a segment for all values of the changing sizes, as far as one graph serves.

    changing: positions in the form's sizes. replay: of tensors, calls and a graph, see `lower`.
    args: the inputs of the segment, then its vectors of parameters.
    Errors: Special, where it serves only the sizes at hand.
    """
    from torch._guards import Source
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

    @dataclass(frozen=True)
    class Size(Source):
        """Where a symbolic integer comes from, as torch wants to know. `ConstantSource`, of torch's
        compiler, takes a second to import."""

        place: str

        @property
        def _name_template(self) -> str:
            return self.place

    env = ShapeEnv()
    names: dict[str, int] = {}

    def size(k: int, n: int) -> Any:
        if k not in changing or n < LEAST:
            return n
        source = Size(f"size{k}")
        symbol = env.create_symbol(n, source, DimDynamic.DYNAMIC)
        names[str(symbol)] = k
        return env.create_symintnode(symbol, hint=n, source=source)

    sizes = [size(k, n) for k, n in enumerate(form.sizes)]
    with FakeTensorMode(shape_env=env, allow_non_fake_inputs=True) as mode:
        inputs: list[Any] = [
            torch.empty_strided(shape, strides, dtype=a.dtype, device=a.device)
            for a, (shape, strides) in zip(args, shapes_in(node, sizes), strict=False)
        ]
        inputs += [mode.from_tensor(a, static_shapes=True) for a in args[len(inputs) :]]

    integers = sizes[form.inputs :]
    moving = [n for n in integers if not isinstance(n, int)]

    def run(*given: Any) -> list[torch.Tensor]:
        rest = iter(given[len(inputs) :])
        now = [n if isinstance(n, int) else next(rest) for n in integers]
        proxy = get_proxy_mode()
        graph = None if proxy is None else proxy.tracer.graph
        result: list[torch.Tensor] = replay(given[: len(inputs)], calls_with(node, now), graph)
        return result

    with mode, torch.no_grad():
        made = make_fx(run, tracing_mode="real", _allow_non_fake_inputs=True)(*inputs, *moving)
    made.graph.eliminate_dead_code()
    made.recompile()
    replaced = [str(s) for s, value in env.replacements.items() if value.is_number]
    fixed = frozenset(names[s] for s in replaced if s in names)
    if fixed:
        raise Special(fixed)
    texts = tuple(_text(guard.expr) for guard in env.guards)
    given = (k for k in range(form.inputs, len(sizes)) if not isinstance(sizes[k], int))
    conditions = tuple(guard.expr for guard in env.guards)
    holds = _predicate(texts, names, form)
    return GeneralGraph(made, names, tuple(given), holds, texts, conditions)


def _text(condition: Any) -> str:
    from torch.utils._sympy.printers import PythonPrinter

    printed: str = PythonPrinter().doprint(condition)
    return printed


def _predicate(
    texts: Sequence[str], names: dict[str, int], form: Form
) -> Callable[[Sequence[int]], bool]:
    """Whether all guards are true of sizes, those that do not change are what they were, and the
    others are no special ones."""
    constant = [(k, n) for k, n in enumerate(form.sizes) if k not in names.values()]
    tests = [f"{name} >= {LEAST}" for name in names] + [f"({text})" for text in texts]
    code = f"lambda {', '.join(names)}: {' and '.join(tests) or 'True'}"
    test = eval(code, {"math": math, "min": min, "max": max, "abs": abs})
    places = list(names.values())

    def holds(sizes: Sequence[int]) -> bool:
        if any(sizes[k] != n for k, n in constant):
            return False
        return bool(test(*[sizes[k] for k in places]))

    return holds
