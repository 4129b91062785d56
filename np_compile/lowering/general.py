"""From a segment to a tensor graph that holds for other sizes too.

The segment is replayed on fake tensors whose extents are torch's symbolic integers. What the shim
and torch's shape functions ask of them is noted as guards: the graph holds for all sizes of which
these are true. Integers of calls that may change are inputs of the graph, after all others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from np_compile.tape.form import Form, Rule, calls_with, extents_in, shapes_in
from np_compile.tape.node import Node

from .meta import SYMBOLIC

LEAST = 2  # a size of 0 or 1 is a constant: shapes broadcast by it


class Special(Exception):
    """Sizes that may change have been used as numbers. positions: of these, in the form."""

    def __init__(self, positions: frozenset[int]):
        super().__init__(f"sizes {sorted(positions)} have to be what they are")
        self.positions = positions


@dataclass(frozen=True)
class Tie:
    """A size that follows from another one, of an input or of a call: it is `more` than the one at
    a position."""

    position: int
    more: int


@dataclass(frozen=True)
class GeneralGraph:
    """graph: as `lower` gives it, with symbolic extents. symbols: of the sizes that may change
    their positions, by the names that stand for them in the graph. integers: positions of those of
    them that the graph has as inputs, in their order. holds: whether the graph is that
    of other sizes of the form. guards: what that asks, as text; conditions: as torch has it.
    rules: of the steps of the segment, as far as they are known."""

    graph: torch.fx.GraphModule
    symbols: dict[str, int]
    integers: tuple[int, ...]
    holds: Callable[[Sequence[int]], bool]
    guards: tuple[str, ...]
    conditions: tuple[Any, ...]
    rules: tuple[Rule, ...]


def lower_general(
    node: Node, form: Form, ints: Sequence[int], changing: frozenset[int], ties: Mapping[int, Tie],
    replay: Callable, args: list[torch.Tensor],
) -> GeneralGraph:  # fmt: skip
    """The graph of a segment for all values of the changing sizes, as far as one graph serves.

    ints: of the segment. changing: positions among the form's sizes, and these integers after them.
    ties: of those of them that follow from others. replay: of tensors, integers, calls and a graph,
    see `lower`.
    args: the inputs of the segment, then its vectors of parameters.
    Errors: Special, where it serves only the sizes at hand.
    """
    from torch._guards import Source
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, SLoc

    from .trace import unannounced

    @dataclass(frozen=True)
    class Size(Source):
        """Where a symbolic integer comes from, as torch wants to know. `ConstantSource`, of torch's
        compiler, takes a second to import."""

        place: str

        @property
        def _name_template(self) -> str:
            return self.place

    class Fake(FakeTensorMode):
        """Fake tensors, and what some operators give of those of symbolic sizes. Results that torch
        keeps, for the next operator of the same kind and sizes, cost more than they save."""

        def __init__(self) -> None:
            super().__init__(shape_env=env, allow_non_fake_inputs=True)
            self.cache_enabled = False

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = _NONE
        ) -> Any:
            rule = SYMBOLIC.get(func)
            if rule is None:
                return super().__torch_dispatch__(func, types, args, kwargs)
            with self:
                return rule(*args, **kwargs)

    class Environment(ShapeEnv):
        """Symbols and guards. Where in a program a guard comes from is nobody's question: torch
        imports half of its compiler, and looks through the stack, to tell."""

        def _get_stack_summary(self, is_debug: bool = False, framework_loc: Any = None) -> Any:
            return SLoc(framework_loc, None), ""

    env = Environment()
    names: dict[str, int] = {}

    every = (*form.sizes, *ints)

    def size(k: int, n: int) -> Any:
        if k not in changing or n < LEAST or k in ties:
            return n
        source = Size(f"size{k}")
        symbol = env.create_symbol(n, source, DimDynamic.DYNAMIC)
        names[str(symbol)] = k
        return env.create_symintnode(symbol, hint=n, source=source)

    sizes = [size(k, n) for k, n in enumerate(every)]
    with Fake() as mode:
        inputs: list[Any] = [
            torch.empty_strided(shape, strides, dtype=a.dtype, device=a.device)
            for a, (shape, strides) in zip(args, shapes_in(node, sizes), strict=False)
        ]
        inputs += [mode.from_tensor(a, static_shapes=True) for a in args[len(inputs) :]]

    integers = sizes[form.inputs :]
    moving = [n for n in integers if not isinstance(n, int)]
    places = extents_in(node)

    seen: list[tuple[int, list[tuple[tuple, tuple]]]] = []

    def told(made: list[torch.Tensor]) -> None:
        seen.append((len(env.guards), [(_exprs(t.shape), _exprs(t.stride())) for t in made]))

    def run(*given: Any) -> list[torch.Tensor]:
        seen.clear()
        rest = iter(given[len(inputs) :])
        now = [n if isinstance(n, int) else next(rest) for n in integers]
        for k, tie in ties.items():  # in order: what follows has no ties of its own
            place = places.get(tie.position)
            base = now[tie.position - form.inputs] if place is None else _extent(given, *place)
            now[k - form.inputs] = base + tie.more
        count = len(form.sizes) - form.inputs
        proxy = get_proxy_mode()
        graph = None if proxy is None else proxy.tracer.graph
        result: list[torch.Tensor] = replay(
            given[: len(inputs)], now[count:], calls_with(node, now[:count]), graph, told
        )
        return result

    with mode, torch.no_grad():
        tracer = make_fx(unannounced(run), tracing_mode="real", _allow_non_fake_inputs=True)
        made = tracer(*inputs, *moving)
    made.graph.eliminate_dead_code()
    made.recompile()
    replaced = [str(s) for s, value in env.replacements.items() if value.is_number]
    fixed = frozenset(names[s] for s in replaced if s in names)
    if fixed:
        raise Special(fixed)
    texts = tuple(_text(guard.expr) for guard in env.guards)
    given = (k for k in range(form.inputs, len(sizes)) if not isinstance(sizes[k], int))
    conditions = tuple(guard.expr for guard in env.guards)
    holds = _predicate(texts, names, every, len(form.sizes), ties)
    rules = _rules(node, form, names, ties, texts, seen)
    return GeneralGraph(made, names, tuple(given), holds, texts, conditions, rules)


_NONE: dict[str, Any] = {}
_NAME = re.compile(r"\b[a-z]+\d+\b")  # of a symbol


def _names(text: str) -> set[str]:
    return {*_NAME.findall(text)}


def _extent(tensors: Sequence[torch.Tensor], k: int, axis: int) -> Any:
    return tensors[k].shape[axis]


def _exprs(sizes: Sequence[Any]) -> tuple:
    return tuple([n if isinstance(n, int) else n.node.expr for n in sizes])


def _rules(
    node: Node, form: Form, names: dict[str, int], ties: Mapping[int, Tie], texts: Sequence[str],
    seen: Sequence[tuple[int, list[tuple[tuple, tuple]]]],
) -> tuple[Rule, ...]:  # fmt: skip
    """The rules of a segment's steps. seen: of each step how many guards there were after it, and
    the layouts of what it gave. They end where a size is none of the form."""
    places = {name: _place(k, form) for name, k in names.items() if k < len(form.sizes)}
    changing = {*names.values()}
    rules: list[Rule] = []
    extents = integers = 0
    done = 0
    for step, (count, layouts) in zip(node.path(), seen, strict=True):
        own = [*range(extents, len(step.extents))]
        own += [form.inputs + k for k in range(integers, len(step.integers))]
        extents, integers = len(step.extents), len(step.integers)
        tests = []
        for k in own:
            place, tie = _place(k, form), ties.get(k)
            if k in changing:
                tests.append(f"{place} >= {LEAST}")
            elif tie is not None:
                tests.append(f"{place} == {_place(tie.position, form)} + {tie.more}")
            else:
                tests.append(f"{place} == {form.sizes[k]}")
        # On integers of indices no shape depends; what was asked of them is asked in the end.
        tests += [f"({text})" for text in texts[done:count] if places.keys() >= _names(text)]
        done = count
        given = ", ".join(f"(({_list(shape)}), ({_list(strides)}))" for shape, strides in layouts)
        code = f"({given}{',' if given else ''}) if {' and '.join(tests) or True} else None"
        if not places.keys() >= _names(code) or not _entered(code, names, form, extents, integers):
            break
        code = _NAME.sub(lambda m: places[m[0]], code)
        made = eval(f"lambda E, I: {code}", {"math": math, "min": min, "max": max, "abs": abs})
        rules.append(Rule(rules[-1] if rules else None, step, made))
    return tuple(rules)


def _entered(code: str, names: dict[str, int], form: Form, extents: int, integers: int) -> bool:
    """Whether the sizes that code speaks of are among the first extents and integers."""
    used = [names[name] for name in _names(code)]
    return all(k < (extents if k < form.inputs else form.inputs + integers) for k in used)


def _place(k: int, form: Form) -> str:
    """A size of a form among the extents E or the integers I."""
    return f"E[{k}]" if k < form.inputs else f"I[{k - form.inputs}]"


def _list(sizes: Sequence[Any]) -> str:
    return "".join([f"{n if isinstance(n, int) else _text(n)}, " for n in sizes])


def _text(condition: Any) -> str:
    from torch.utils._sympy.printers import PythonPrinter

    printed: str = PythonPrinter().doprint(condition)
    return printed


def _predicate(
    texts: Sequence[str], names: dict[str, int], sizes: Sequence[int], count: int,
    ties: Mapping[int, Tie],
) -> Callable[[Sequence[int]], bool]:  # fmt: skip
    """Whether all guards are true of sizes, those of the first `count` that do not change are what
    they were, and the others are no special ones."""
    own = {*names.values(), *ties}
    constant = [(k, n) for k, n in enumerate(sizes[:count]) if k not in own]
    tests = [f"{name} >= {LEAST}" for name in names] + [f"({text})" for text in texts]
    code = f"lambda {', '.join(names)}: {' and '.join(tests) or 'True'}"
    test = eval(code, {"math": math, "min": min, "max": max, "abs": abs})
    places = list(names.values())

    def holds(sizes: Sequence[int]) -> bool:
        if any(sizes[k] != n for k, n in constant):
            return False
        if any(sizes[k] != sizes[t.position] + t.more for k, t in ties.items()):
            return False
        return bool(test(*[sizes[k] for k in places]))

    return holds
