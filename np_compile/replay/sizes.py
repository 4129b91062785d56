"""Kept calls for many sizes: one holds for all calls that differ in the extents of arrays alone.

Where all programs of a call are for many sizes, and Python has seen nothing of the sizes, a call
with others makes the same NumPy calls. Of each segment its sizes follow from the arrays that enter
it, and from the indices as the user wrote them; a program that serves them is bound to them and
runs, without the user's Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from np_compile.runtime.general import General
from np_compile.tape.form import Rule, form_of, layout_of, sizes_apart
from np_compile.tape.key import ARRAY, slices_piece, without_arrays
from np_compile.tape.node import Node

from .calls import MISS, Names
from .guards import Call, Guard, Pair, Refused, Value
from .plan import Plan
from .results import Result, giver
from .watch import Watch


@dataclass(frozen=True)
class Look(Guard):
    """An array looks like this, but for its extents. order: of its axes in memory, None where there
    are gaps. needs: flags that it has to have."""

    position: int
    name: str
    dtype: np.dtype
    rank: int
    order: tuple[int, ...] | None
    needs: int

    @staticmethod
    def of(position: int, name: str, a: np.ndarray, needs: int) -> Look:
        """How an array looks now."""
        return Look(position, name, a.dtype, a.ndim, _order(a), needs)

    def __str__(self) -> str:
        order = "with gaps" if self.order is None else f"axes in the order {self.order}"
        extents = ", ".join(["any"] * self.rank)
        return f"argument {self.name}: {self.dtype}[{extents}], {order if self.rank > 1 else ''}"

    def holds(self, leaves: Sequence[Any]) -> bool:
        a = leaves[self.position]
        return (
            type(a) is np.ndarray
            and a.dtype == self.dtype
            and a.ndim == self.rank
            and a.flags.num & self.needs == self.needs
            and min(a.strides, default=0) >= 0
            and _order(a) == self.order
        )


def _order(a: np.ndarray) -> tuple[int, ...] | None:
    width = a.itemsize
    return layout_of(a.shape, tuple([s // width for s in a.strides]))


class _Index:
    """An index of a segment: its integers follow from the extents of what it is an index of.

    items: as the user wrote it. places: of its own among the integers of the form; ints: of its
    parameters among those of the segment. like: the piece of its key, but for sizes.
    """

    def __init__(self, node: Node, items: tuple, rule: Rule, number: int):
        parent = node.parent
        assert parent is not None
        self._items = items
        self._rule = rule
        self._number = number
        self._integers = len(parent.integers)
        self._places = slice(len(parent.integers), len(node.integers))
        self._ints = slice(parent.ints, node.ints)
        self._like = self._piece(_shape(rule, number, node.extents, node.integers), [])[0]

    def fill(self, extents: Sequence[int], integers: list[int], ints: list[int]) -> bool:
        """Set its integers, for such sizes of what comes before. False where it is no such index of
        arrays of these extents, or what it is an index of is not known."""
        shape = _shape(self._rule, self._number, extents, integers)
        if shape is None:
            return False
        starts: list[int] = []
        piece, lengths = self._piece(shape, starts)
        if piece != self._like:
            return False
        integers[self._places] = lengths
        ints[self._ints] = starts
        return True

    def _piece(self, shape: Any, starts: list[int]) -> tuple[Any, list[int]]:
        piece = None if shape is None else slices_piece(starts, shape, self._items)
        if piece is None:
            return None, []
        apart, _, lengths = sizes_apart(piece)
        return apart, lengths


def _shape(rule: Rule, number: int, extents: Any, integers: Any) -> tuple[int, ...] | None:
    """The shape of one of the arrays that a step gives."""
    layouts = rule.layouts(extents, integers)
    return None if layouts is None else layouts[number][0]


class _Segment:
    """One run of a program of a call, for many sizes."""

    def __init__(self, program: Any, sources: tuple, floats: tuple, ints: tuple, indices: dict):
        general = program.general
        if type(general) is not General:
            raise Refused("a program is for one size alone")
        if program.node.guesses:
            raise Refused("a length is guessed")
        self.general: General = general
        self.sources = sources
        self._floats = floats
        self._ints = ints
        self._node: Node = program.node
        form = form_of(self._node)
        self._integers = form.sizes[form.inputs :]
        self._orders = [
            layout_of(step.signature[1], step.signature[2])
            for step in self._node.path()
            if step.call is None
        ]
        self._indices = [
            _index(node, *index, self._node, general.rules) for node, index in indices.items()
        ]

    def program(self, tensors: Sequence[torch.Tensor]) -> tuple[Any, list[int]] | None:
        """What runs on such tensors, and its integers; None where its program does not serve them.
        """
        extents: list[int] = []
        for t, order in zip(tensors, self._orders, strict=True):
            shape = t.shape
            extents += shape
            if order is None:
                extents += t.stride()
        integers, ints = [*self._integers], [*self._ints]
        for index in self._indices:
            if index is not None and not index.fill(extents, integers, ints):
                return None
        sizes = (*extents, *integers)
        if not self.general.serves(sizes, ints):
            return None
        program = self.general.at_sizes(self._node, sizes)
        return program, program.dynamic_ints(ints)

    def run(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """What it makes of such tensors; None where its program does not serve them."""
        found = self.program(tensors)
        if found is None:
            return None
        program, ints = found
        if not program.ready:
            return None
        made: list[torch.Tensor] = program.run_tensors(tensors, self._floats, ints)
        return made


def _index(
    node: Node, number: int, key: Any, last: Node, rules: Sequence[Rule]
) -> _Index | None:
    """An index, of the value of that number; None where no size follows from another one."""
    items = without_arrays(key)
    if ARRAY in items:
        if all(k is None or k is Ellipsis or k is ARRAY or k == slice(None) for k in items):
            return None
        raise Refused("an index of arrays and slices")
    count = 0
    for step, rule in zip(last.path(), rules, strict=False):
        if number < count + len(step.values):
            return _Index(node, items, rule, number - count)
        count += len(step.values)
    raise Refused("an index of what is not known for many sizes")


class KeptForSizes:
    """A kept call, for many sizes of its arguments. guards: what has to be so for a call to be like
    it, beside what its programs ask of sizes."""

    def __init__(
        self, watch: Watch, given: tuple, names: Names, shown: Sequence[str], plan: Plan,
        result: Result, needs: int,
    ):  # fmt: skip
        steps, wanted = plan.steps, plan.wanted
        if watch.seen is not None:
            raise Refused(f"Python sees {watch.seen}")
        if watch.read or watch.touched or not steps:
            raise Refused("Python reads elements of arguments")
        indices = [indices for *_, indices in watch.steps]
        # By its positions among all integers: those that are data of the program are taken later.
        every = [ints for *_, ints, _ in watch.steps]
        self._segments = [
            _Segment(program, sources, floats, ints, index)
            for (program, sources, floats, _), ints, index in zip(
                steps, every, indices, strict=True
            )
        ]
        if any(program.mutates for program, *_ in steps[:-1]):
            raise Refused("something is written before the last program")
        self._constants = plan.constants
        self._wanted = wanted
        self._names = names
        self._give: Callable = giver(result, wanted.index, False)
        self._arrays = sorted({s for _, sources, *_ in steps for s in sources if s >= 0})
        self.reach = watch.reach
        writes = any(program.mutates for program, *_ in steps)
        self.guards: list[Guard] = [Call(shown, names)]
        arrays = [k for k, a in enumerate(given) if type(a) is np.ndarray]
        self._looks: list[Look | Value] = [
            Look.of(k, shown[k], a, needs) if k in arrays else Value(k, shown[k], a)
            for k, a in enumerate(given)
        ]
        self._pairs = [
            Pair((k, m), (shown[k], shown[m]), given[k] is given[m], writes)
            for m in arrays
            for k in arrays
            if k < m
        ]
        self.guards += [*self._looks, *self._pairs]

    @property
    def texts(self) -> list[str]:
        """The guards, and what the programs ask of sizes."""
        return [*map(str, self.guards), *(g for s in self._segments for g in s.general.guards)]

    @property
    def generals(self) -> list[General]:
        """The programs for many sizes, in the order in which they run."""
        return [s.general for s in self._segments]

    def holds(self, given: tuple, names: Names) -> bool:
        """Whether a call is like it, as far as is seen before its programs are asked."""
        return (
            len(given) == len(self._looks)
            and names == self._names
            and all([look.holds(given) for look in self._looks])
            and all([self._apart(pair, given) for pair in self._pairs])
        )

    @staticmethod
    def _apart(pair: Pair, given: tuple) -> bool:
        one, other = (given[k] for k in pair.positions)
        if pair.same or one is other:
            return pair.same and one is other
        return not (pair.apart and np.may_share_memory(one, other))

    def run(self, given: tuple) -> Any:
        """What the function does and gives; MISS where a program does not serve such sizes, or
        raises before anything was written."""
        made: list[torch.Tensor] = [*self._constants]
        tensors = {k: torch.from_numpy(given[k]) for k in self._arrays}
        for segment in self._segments:
            try:
                outputs = segment.run(
                    [tensors[s] if s >= 0 else made[-1 - s] for s in segment.sources]
                )
            except IndexError:  # in NumPy's words
                return MISS
            if outputs is None:
                return MISS
            made += outputs
        return self._give(given, [made[k].numpy() for k in self._wanted])
