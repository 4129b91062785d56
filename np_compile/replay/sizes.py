"""Kept calls for many sizes: one holds for calls that differ in the extents of arrays alone.

Where all programs of a call are for many sizes, and what Python has asked of the sizes comes out
the same, a call with others makes the same NumPy calls. Of each segment its sizes follow from the
arrays that enter it, and from the calls as the user wrote them: indices, and numbers that were
traced. A program that serves them is bound to them and runs, without the user's Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from np_compile.capture.arrays.traced import Traced, at, has_traced
from np_compile.capture.record import INDEXING, Sized, key_of
from np_compile.runtime.general import General
from np_compile.tape.form import form_of, layout_of, piece_apart, sizes_apart
from np_compile.tape.key import Unrecordable, slices_piece
from np_compile.tape.node import Node, Value

from .calls import MISS, Names
from .guards import Call, Elements, Guard, Layout, Pair, Refused
from .guards import Value as Simple
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
    if a.flags.c_contiguous and not _SPECIAL.intersection(a.shape):
        return tuple(range(a.ndim))
    width = a.itemsize
    return layout_of(a.shape, tuple([s // width for s in a.strides]))


_SPECIAL = frozenset((0, 1))  # extents with which axes may lie in any order
_BODIES = 4  # segments back, of which one may be the same in the body of a loop
_Layout = tuple[Sequence[int], Sequence[int]]  # shape and strides


class _Shapes:
    """The shapes of a call, for what follows from them. places: of arguments, by the ids that they
    had; segments: of the watched call, with their numbers."""

    def __init__(
        self, given: tuple, places: dict[int, int], segments: Sequence[_Segment],
        numbers: dict[int, int],
    ):  # fmt: skip
        self._given = given
        self._places = places
        self._segments = segments
        self._numbers = numbers
        self.sizes: list[tuple[Sequence[int], Sequence[int]]] = []
        self.programs: dict[tuple, tuple] = {}  # by segments and their extents: sizes, what runs

    def of_argument(self, array: int) -> tuple[int, ...]:
        shape: tuple[int, ...] = self._given[self._places[array]].shape
        return shape

    def of_value(self, segment: Any, number: int) -> tuple[int, ...]:
        k = self._numbers[id(segment)]
        return self._segments[k].shape(number, *self.sizes[k])


class _Step:
    """A call of a segment whose key may follow from sizes: what the user wrote."""

    def __init__(self, node: Node, call: Sized):
        parent = node.parent
        assert parent is not None
        self.call = call
        self.indexed = call.args[0].number if call.args and call.name in INDEXING else None
        self._like = node.step
        self._before = parent.step
        self._integers = slice(len(parent.integers), len(node.integers))
        self._ints = slice(parent.ints, node.ints)
        self._floats = slice(parent.floats, node.floats)
        # Of one that takes a part of an array: the index, and the piece of the key that it gives.
        self._index: Any = None
        if call.name == INDEXING[0] and all(type(k) in _PLAIN for k in _items(call.args[1])):
            self._index = call.args[1]
            self._piece = node.piece
        self._traced = has_traced((call.args, call.kwargs))

    @property
    def is_constant(self) -> bool:
        """Whether its key is the same for all sizes: of whole axes and new ones."""
        if self._index is None:
            return False
        return all(k is None or k is ... or k == slice(None) for k in _items(self._index))

    def fill(
        self, values: list[Value], shape: tuple[int, ...], shapes: _Shapes, integers: list[int],
        ints: list[int], floats: list[float],
    ) -> bool:  # fmt: skip
        """Set its own among the integers of the form, and the integers and floats of the segment.
        shape: of the array that it takes a part of. False where it is another call for such
        sizes."""
        own: list[int] = []
        own_ints: list[int] = []
        if self._index is not None:
            index = at(self._index, shapes) if self._traced else self._index
            piece = slices_piece(own_ints, shape, index)
            if piece is None or piece_apart(piece, own) != self._piece:
                return False
            integers[self._integers], ints[self._ints] = own, own_ints
            return True
        call = self.call
        if self.indexed is not None:
            values = [*values]
            values[self.indexed] = values[self.indexed].of_shape(shape)
        args, kwargs = at((call.args, call.kwargs), shapes)
        try:
            key, own_floats, own_ints = key_of(call._replace(args=args, kwargs=kwargs), values)
        except Unrecordable:
            return False
        what, _, own = sizes_apart(key)
        if self._before.next.get(what) is not self._like:
            return False
        integers[self._integers], ints[self._ints] = own, own_ints
        floats[self._floats] = own_floats
        return True


_PLAIN = frozenset((int, slice, type(None), type(...), Traced))


def _items(index: Any) -> tuple:
    return index if type(index) is tuple else (index,)


class _Segment:
    """One run of a program of a call, for many sizes."""

    def __init__(self, program: Any, floats: tuple, ints: tuple, seg: Any):
        general = program.general
        if type(general) is not General:
            raise Refused("a program is for one size alone")
        if program.node.guesses:
            raise Refused("a length is guessed")
        self.general: General = general
        self._floats = floats
        self._ints = ints
        self._node: Node = program.node
        form = form_of(self._node)
        self._integers = form.sizes[form.inputs :]
        path = self._node.path()
        self._orders = [
            layout_of(step.signature[1], step.signature[2]) for step in path if step.call is None
        ]
        self._values = self._node.all_values()
        self._rules = [
            (rule, k)
            for step, rule in zip(path, general.rules, strict=False)
            for k in range(len(step.values))
        ]
        if any(type(call) is not Sized for call in seg.sized.values()):
            raise Refused("a call that follows from sizes")
        self._calls = [(step, seg.sized[step]) for step in path if step in seg.sized]
        steps = [_Step(step, call) for step, call in self._calls]
        self._steps = [s for s in steps if not s.is_constant]

    def repeats(self, other: _Segment) -> bool:
        """Whether it does what another one does, as in a loop, whatever the sizes are."""
        same = self._node is other._node and self._floats == other._floats
        if not same or self._ints != other._ints or has_traced([c for _, c in self._calls]):
            return False
        return not has_traced([c for _, c in other._calls]) and self._calls == other._calls

    def shape(
        self, number: int, extents: Sequence[int], integers: Sequence[int]
    ) -> tuple[int, ...]:
        """The shape of a value. Errors: LookupError, where it is not known for such sizes."""
        rule, k = self._rules[number]
        layouts = rule.layouts(extents, integers)
        if layouts is None:
            raise LookupError
        return layouts[k][0]

    def program(
        self, layouts: Sequence[_Layout], shapes: _Shapes
    ) -> tuple[Any, list[float], list[int]] | None:
        """What runs on such arrays, its floats and integers; None where its program does not serve
        them. Errors: LookupError, as `shape`."""
        extents: list[int] = []
        for (shape, strides), order in zip(layouts, self._orders, strict=True):
            extents += shape
            if order is None:
                extents += strides
        place = self, tuple(extents)
        before = shapes.programs.get(place)
        if before is not None:
            shapes.sizes.append(before[0])
            return before[1]
        integers, ints, floats = [*self._integers], [*self._ints], [*self._floats]
        shapes.sizes.append((extents, integers))
        known: dict[int, tuple[int, ...]] = {}
        for step in self._steps:
            of: tuple[int, ...] = ()
            if (k := step.indexed) is not None:
                of = known.get(k, ())
                if not of:
                    of = known[k] = self.shape(k, extents, integers)
            if not step.fill(self._values, of, shapes, integers, ints, floats):
                return None
        sizes = (*extents, *integers)
        if not self.general.serves(sizes, ints):
            return None
        program = self.general.at_sizes(self._node, sizes, ints)
        found = program, floats, program.dynamic_ints(ints)
        shapes.programs[place] = (extents, integers), found
        return found


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
        if watch.touched or not steps:
            raise Refused("Python reads elements of arrays that it makes")
        # Of the integers those that are data of a program are taken later.
        self._segments: list[_Segment] = []
        for (program, _, floats, _), (*_, ints, seg) in zip(steps, watch.steps, strict=True):
            made = _Segment(program, floats, ints, seg)
            known = next((s for s in self._segments[-_BODIES:] if made.repeats(s)), made)
            self._segments.append(known)
        self._sources = [sources for _, sources, *_ in steps]
        self._numbers = {id(seg): k for k, (*_, seg) in enumerate(watch.steps)}
        self._asked = watch.asked
        if any(getattr(p.compiled, "layouts", None) is None for p, *_ in steps[:-1]):
            raise Refused("what a program makes is not known before it runs")
        self._constants = plan.constants
        self._wanted = wanted
        self._names = names
        self._give: Callable = giver(result, wanted.index, False)
        self._arrays = sorted({s for _, sources, *_ in steps for s in sources if s >= 0})
        self.reach = watch.reach
        writes = any(program.mutates for program, *_ in steps)
        self.guards: list[Guard] = [Call(shown, names)]
        arrays = [k for k, a in enumerate(given) if type(a) is np.ndarray]
        self._looks: list[Look | Simple] = [
            Look.of(k, shown[k], a, needs) if k in arrays else Simple(k, shown[k], a)
            for k, a in enumerate(given)
        ]
        self._pairs = [
            Pair((k, m), (shown[k], shown[m]), given[k] is given[m], writes)
            for m in arrays
            for k in arrays
            if k < m
        ]
        self.guards += [*self._looks, *self._pairs]
        self._places = {id(given[k]): k for k in arrays}
        self._elements = [
            Elements(Layout.of(k, shown[k], given[k], needs), index, content)
            for (a, index), content in watch.read.items()
            for k in [self._places[a]]
        ]
        self.guards += self._elements
        # Held, as they are known by their ids.
        self._held = [seg for *_, seg in watch.steps]

    @property
    def texts(self) -> list[str]:
        """The guards, and what the programs ask of sizes."""
        asked = dict.fromkeys(map(str, self._asked))
        ours = [f"sizes with {g}" for s in dict.fromkeys(self._segments) for g in s.general.guards]
        return [*map(str, self.guards), *asked, *ours]

    @property
    def programs(self) -> int:
        """How many programs it runs."""
        return len(self._segments)

    @property
    def generals(self) -> list[General]:
        """The programs for many sizes, in the order in which they run."""
        return [s.general for s in dict.fromkeys(self._segments)]

    def holds(self, given: tuple, names: Names) -> bool:
        """Whether a call is like it, as far as is seen before its programs are asked."""
        return (
            len(given) == len(self._looks)
            and names == self._names
            and all(look.holds(given) for look in self._looks)
            and all(self._apart(pair, given) for pair in self._pairs)
            and all(e.holds(given) for e in self._elements)
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
        tensors = {k: torch.from_numpy(given[k]) for k in self._arrays}
        try:
            programs = self._programs(given, tensors)
        except (ArithmeticError, LookupError, TypeError, ValueError):  # of other sizes
            return MISS
        if programs is None:
            return MISS
        made: list[torch.Tensor] = [*self._constants]
        written = False
        for sources, (program, floats, ints) in zip(self._sources, programs, strict=True):
            read = [tensors[s] if s >= 0 else made[-1 - s] for s in sources]
            try:
                made += program.run_tensors(read, floats, ints)
            except IndexError:
                if written:
                    raise
                return MISS  # it is called again, and that has NumPy's words
            written = written or bool(program.mutates)
        return self._give(given, [made[k].numpy() for k in self._wanted])

    def _programs(
        self, given: tuple, tensors: dict[int, torch.Tensor]
    ) -> list[tuple[Any, list[float], list[int]]] | None:
        """What runs for such arguments: programs, floats and integers. None where there is none."""
        shapes = _Shapes(given, self._places, self._segments, self._numbers)
        made: list[_Layout] = [(t.shape, t.stride()) for t in self._constants]
        found = []
        looks = {k: (t.shape, t.stride()) for k, t in tensors.items()}
        last = len(self._segments) - 1
        for k, (segment, sources) in enumerate(zip(self._segments, self._sources, strict=True)):
            layouts = [looks[s] if s >= 0 else made[-1 - s] for s in sources]
            step = segment.program(layouts, shapes)
            if step is None or not step[0].ready:
                return None
            found.append(step)
            if k < last:
                made += step[0].compiled.layouts
        return found if all(asked.holds(shapes) for asked in self._asked) else None
