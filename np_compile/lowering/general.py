"""From a segment to a tensor graph that holds for other sizes too.

The segment is replayed on tensors without data whose extents are `Size`s, as torch's symbolic
integers. What the shim and torch ask of them is noted as guards: the graph holds for all sizes of
which these are true. Integers of calls that may change are inputs of the graph, after all others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from np_compile.size import Facts, Size
from np_compile.tape.form import Form, Rule, calls_with, extents_in, shapes_in
from np_compile.tape.node import Node

from .sized import SizedRecorder
from .symint import size_of
from .tensor_graph import Differentiable, TensorGraph

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
    """graph: as `lower` gives it, with symbolic extents. facts: what it asks of the sizes that may
    change; symbols: the positions of these, by the names of their symbols. integers: positions of
    those of them that the graph has as inputs, in their order. differentiated: of which of its
    other inputs gradients are asked for. holds: whether the graph is that of other sizes of the
    form. rules: of the steps of the segment, as far as they are known."""

    graph: torch.fx.GraphModule
    facts: Facts
    symbols: dict[str, int]
    integers: tuple[int, ...]
    differentiated: tuple[bool, ...]
    holds: Callable[[Sequence[int]], bool]
    rules: tuple[Rule, ...]

    @property
    def guards(self) -> tuple[str, ...]:
        """What it asks of sizes, as text."""
        return tuple(map(str, self.facts.guards))


def lower_general(
    node: Node, form: Form, ints: Sequence[int], changing: frozenset[int], ties: Mapping[int, Tie],
    replay: Callable, args: list[torch.Tensor], place: torch.device,
) -> GeneralGraph:  # fmt: skip
    """The graph of a segment for all values of the changing sizes, as far as one graph serves.

    ints: of the segment. changing: positions among the form's sizes, and these integers after them.
    ties: of those of them that follow from others. replay: of tensors, integers, calls and a graph,
    see `lower`.
    args: the inputs of the segment, then its vectors of parameters. place: where they lie.
    Errors: Special, where it serves only the sizes at hand.
    """
    from .trace import DIFFERENTIABLE, without_writes

    differentiated = tuple([a.requires_grad for a in args])
    followed = any(differentiated)
    facts = Facts()
    names: dict[str, int] = {}
    every = (*form.sizes, *ints)

    def size(k: int, n: int) -> Any:
        if k not in changing or n < LEAST or k in ties:
            return n
        name = f"n{len(names)}"
        names[name] = k
        return facts.symbol(name, n, LEAST)

    sizes = [size(k, n) for k, n in enumerate(every)]
    recorder = SizedRecorder(facts, place, DIFFERENTIABLE if followed else None)
    layouts = shapes_in(node, sizes)
    inputs = [
        recorder.sized_input(shape, strides, a.dtype)
        for a, (shape, strides) in zip(args, layouts, strict=False)
    ]
    inputs += [recorder.input(a, True) for a in args[len(inputs) :]]
    now = [recorder.integer_input(n) if type(n) is Size else n for n in sizes[form.inputs :]]
    places = extents_in(node)
    for k, tie in ties.items():  # in order: what follows has no ties of its own
        at = places.get(tie.position)
        base = now[tie.position - form.inputs] if at is None else inputs[at[0]].shape[at[1]]
        now[k - form.inputs] = base + tie.more

    seen: list[tuple[int, list[tuple[tuple, tuple]]]] = []

    def told(made: list[torch.Tensor]) -> None:
        seen.append((len(facts.guards), [(_sizes(t.shape), _sizes(t.stride())) for t in made]))

    count = len(form.sizes) - form.inputs

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        calls = calls_with(node, now[:count])
        made: list[torch.Tensor] = replay(tensors, now[count:], calls, recorder.graph, told)
        return made

    with recorder, torch.set_grad_enabled(followed):
        outputs = (without_writes(run, []) if followed else run)(*inputs)
    kind = Differentiable if followed else TensorGraph
    made = kind(recorder.constants, recorder.finish(outputs))
    fixed = frozenset(names[name] for name in facts.fixed())
    if fixed:
        raise Special(fixed)
    given = (k for k in range(form.inputs, len(sizes)) if type(sizes[k]) is Size)
    holds = _predicate(facts.predicate(), names, every, len(form.sizes), ties)
    rules = _rules(node, form, names, ties, facts, seen)
    return GeneralGraph(made, facts, names, tuple(given), differentiated, holds, rules)


_NAME = re.compile(r"\bn\d+\b")  # of a symbol


def _names(text: str) -> set[str]:
    return {*_NAME.findall(text)}


def _sizes(integers: Sequence[Any]) -> tuple:
    return tuple([size_of(n) for n in integers])


def _rules(
    node: Node, form: Form, names: dict[str, int], ties: Mapping[int, Tie], facts: Facts,
    seen: Sequence[tuple[int, list[tuple[tuple, tuple]]]],
) -> tuple[Rule, ...]:  # fmt: skip
    """The rules of a segment's steps. seen: of each step how many guards there were after it, and
    the layouts of what it gave. They end where a size is none of the form."""
    places = {name: _place(k, form) for name, k in names.items() if k < len(form.sizes)}
    changing = {*names.values()}
    texts = [guard.test for guard in facts.guards]
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
        made = eval(f"lambda E, I: {code}", {})
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
    return "".join([f"{n.text('//') if type(n) is Size else n}, " for n in sizes])


def _predicate(
    guards: Callable[[Sequence[int]], bool], names: dict[str, int], sizes: Sequence[int],
    count: int, ties: Mapping[int, Tie],
) -> Callable[[Sequence[int]], bool]:  # fmt: skip
    """Whether all guards are true of sizes, those of the first `count` that do not change are what
    they were, and the others are no special ones."""
    own = {*names.values(), *ties}
    constant = [(k, n) for k, n in enumerate(sizes[:count]) if k not in own]
    places = list(names.values())

    def holds(sizes: Sequence[int]) -> bool:
        if any(sizes[k] != n for k, n in constant):
            return False
        if any(sizes[k] != sizes[t.position] + t.more for k, t in ties.items()):
            return False
        values = [sizes[k] for k in places]
        return all(n >= LEAST for n in values) and guards(values)

    return holds
