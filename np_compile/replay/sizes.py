"""Kept calls for many sizes: one holds for calls that differ in the extents of arrays alone.

Where all programs of a call are for many sizes, and what Python has asked of the sizes comes out
the same, a call with others makes the same NumPy calls. Of each segment its sizes follow from the
arrays that enter it, and from the calls as the user wrote them: indices, and numbers that were
traced. A program that serves them is bound to them and runs, without the user's Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from np_compile.capture.arrays.traced import Asked, Shapes, Traced, at, has_traced
from np_compile.capture.record import INDEXING, Sized, key_of
from np_compile.runtime.general import General
from np_compile.size import Size, hint
from np_compile.tape.form import form_of, layout_of, piece_apart, sizes_apart
from np_compile.tape.key import Unrecordable, slices_piece
from np_compile.tape.node import Node, Value
from np_compile.tape.tree import of_type

from .arguments import parameter_names
from .calls import MISS, Names
from .evaluate import Code, Evaluate, Evaluation, Sight
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
        if type(a) is not np.ndarray or a.ndim != self.rank or a.dtype != self.dtype:
            return False
        flags = a.flags.num
        if flags & self.needs != self.needs:
            return False
        if flags & _C_ORDER and _SPECIAL.isdisjoint(a.shape):
            return self.order == _IN_ORDER[self.rank]
        return min(a.strides, default=0) >= 0 and _order(a) == self.order


def _order(a: np.ndarray) -> tuple[int, ...] | None:
    if a.flags.c_contiguous and _SPECIAL.isdisjoint(a.shape):
        return _IN_ORDER[a.ndim]
    width = a.itemsize
    return layout_of(a.shape, tuple([s // width for s in a.strides]))


_C_ORDER = 0x0001  # NPY_ARRAY_C_CONTIGUOUS
_IN_ORDER = [tuple(range(rank)) for rank in range(65)]  # NumPy has no more axes
_SPECIAL = frozenset((0, 1))  # extents with which axes may lie in any order
_BODIES = 4  # segments back, of which one may be the same in the body of a loop
_Layout = tuple[tuple, Callable[[], tuple]]  # shape, and what gives the strides
_Run = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]


def _layout(shape: tuple, strides: tuple, *_: Any) -> _Layout:
    return shape, lambda: strides


class _Shapes:
    """The shapes of a call, for what follows from them. arguments: by the ids that the arrays had;
    of_value: of a value of a segment of the watched call."""

    def __init__(self, arguments: dict[int, tuple], of_value: Callable[[Any, int], tuple]):
        self._arguments = arguments
        self.of_value = of_value

    def of_argument(self, array: int) -> tuple:
        return self._arguments[array]


class _Noted(_Shapes):
    """As other shapes, which notes what it was asked for."""

    def __init__(self, of: _Shapes):
        self.asked: dict[tuple, tuple] = {}
        self._of = of

    def of_argument(self, array: int) -> tuple:
        return self._note((array,), self._of.of_argument(array))

    def of_value(self, segment: Any, number: int) -> tuple:
        return self._note((segment, number), self._of.of_value(segment, number))

    def _note(self, key: tuple, shape: tuple) -> tuple:
        self.asked[key] = shape
        return tuple(map(hint, shape))

    def at(self, shapes: Sequence[tuple]) -> _Shapes:
        """What was asked for, as it is for other sizes."""
        found = dict(zip(self.asked, shapes, strict=True))
        known = {key[0]: shape for key, shape in found.items() if len(key) == 1}
        return _Shapes(known, lambda segment, number: found[segment, number])


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
        """Whether its key is the same for all sizes: no sizes are in it, and of no array is a part
        taken but by whole axes and new ones."""
        if self._traced:
            return False
        if self.indexed is None:
            return True
        index = _items(self.call.args[1])
        return all(k is None or k is ... or (type(k) is slice and k == slice(None)) for k in index)

    def evaluate(
        self, values: list[Value], shape: tuple, shapes: _Shapes, numbers: _Numbers,
        evaluation: Evaluation,
    ) -> None:  # fmt: skip
        """As `fill`, for sizes. Errors: LookupError, where it is another call at hand."""
        facts = evaluation.facts
        try:
            found, codes = self._floats_of_sizes(shapes, evaluation)
            with evaluation.attempt():
                fixed = facts.fixed()
                evaluation.test(self.fill(values, shape, shapes, numbers, found))
                if facts.fixed() - fixed:
                    raise LookupError("a size has to be a number")
                own = numbers.floats[self._floats]
                if not codes.keys() <= {*map(id, own)}:
                    raise LookupError("a float is no parameter")
                numbers.floats[self._floats] = [codes.get(id(x), x) for x in own]
        except _BY_NUMBERS:
            self._later(values, shape, shapes, numbers, evaluation)

    def _floats_of_sizes(
        self, shapes: _Shapes, evaluation: Evaluation
    ) -> tuple[dict[int, float], dict[int, Code]]:
        """Floats that follow from sizes, which no `Size` is: as they are at hand, by the ids of the
        traced numbers, and how they are computed, by their own."""
        found: dict[int, float] = {}
        codes: dict[int, Code] = {}
        for v in of_type((self.call.args, self.call.kwargs), Traced):
            if type(v.value) is float:
                noted = _Noted(shapes)
                now = found[id(v)] = v.how(noted)
                own = partial(_float_at, v, noted)
                _, (codes[id(now)],) = evaluation.call(own, *noted.asked.values())
        return found, codes

    def _later(
        self, values: list[Value], shape: tuple, shapes: _Shapes, numbers: _Numbers,
        evaluation: Evaluation,
    ) -> None:  # fmt: skip
        """As `evaluate`, by numbers in each call."""
        noted = _Noted(shapes)
        was = numbers.hints()
        evaluation.test(self.fill(values, tuple(map(hint, shape)), noted, was.copy()))

        def own(shape: tuple, *asked: tuple) -> tuple[list[int], list[float]]:
            now = was.copy()
            if not self.fill(values, shape, noted.at(asked), now):
                raise LookupError
            ints = now.integers[self._integers] + now.ints[self._ints]
            return ints, now.floats[self._floats]

        ints, floats = evaluation.call(own, shape, *noted.asked.values())
        count = self._integers.stop - self._integers.start
        numbers.integers[self._integers] = ints[:count]
        numbers.ints[self._ints] = ints[count:]
        numbers.floats[self._floats] = floats

    def fill(
        self, values: list[Value], shape: tuple, shapes: Shapes, numbers: _Numbers,
        known: Mapping[int, float] = MappingProxyType({}),
    ) -> bool:  # fmt: skip
        """Set its own among the numbers of its segment. shape: of the array that it takes a part
        of. known: see `_floats_of_sizes`. False where it is another call for such sizes."""
        own: list[int] = []
        own_ints: list[int] = []
        if self._index is not None:
            index = at(self._index, shapes) if self._traced else self._index
            piece = slices_piece(own_ints, shape, index)
            if piece is None or piece_apart(piece, own) != self._piece:
                return False
            numbers.integers[self._integers], numbers.ints[self._ints] = own, own_ints
            return True
        call = self.call
        if self.indexed is not None:
            values = [*values]
            values[self.indexed] = values[self.indexed].of_shape(shape)
        args, kwargs = at((call.args, call.kwargs), shapes, known)
        try:
            key, own_floats, own_ints = key_of(call._replace(args=args, kwargs=kwargs), values)
        except Unrecordable:
            return False
        what, _, own = sizes_apart(key)
        if self._before.next.get(what) is not self._like:
            return False
        numbers.integers[self._integers], numbers.ints[self._ints] = own, own_ints
        numbers.floats[self._floats] = own_floats
        return True


def _float_at(v: Traced, noted: _Noted, *shapes: tuple) -> tuple[list[int], list[float]]:
    """A float as it is for other sizes."""
    return [], [v.how(noted.at(shapes))]


# What happens where no `Size` can say what a number is.
_BY_NUMBERS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
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
        self.mutates = bool(program.mutates)
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
        self.rules = [
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

    def of_layouts(self, layouts: Sequence[_Layout]) -> _Sized:
        """It on arrays that look so, with the numbers of the call that was watched."""
        extents: list[Any] = []
        for (shape, strides), order in zip(layouts, self._orders, strict=True):
            extents += shape
            if order is None:
                extents += strides()
        numbers = _Numbers([*self._integers], [*self._ints], [*self._floats])
        return _Sized(self, extents, numbers)

    def evaluate(self, sized: _Sized, shapes: _Shapes, evaluation: Evaluation) -> None:
        """Take its numbers for the sizes. Errors: LookupError."""
        numbers = sized.numbers
        known: dict[int, tuple] = {}
        for step in self._steps:
            of: tuple = ()
            if (k := step.indexed) is not None:
                of = known.get(k, ())
                if not of:
                    of = known[k] = sized.shape(k)
            step.evaluate(self._values, of, shapes, numbers, evaluation)
        evaluation.test(self.general.serves(sized.sizes, numbers.ints))

    def results(self, sized: _Sized, evaluation: Evaluation) -> list[_Layout]:
        """Shape and strides of what it gives. Errors: LookupError."""
        general, ints = self.general, sized.numbers.ints
        if general.runs_alone:
            return [_layout(*r) for r in general.results(general.symbols(sized.sizes, ints))]
        ranks: list[int] = []

        def results(sizes: tuple[int, ...], ints: tuple[int, ...]) -> tuple[list[int], list[float]]:
            layouts = self.program(sizes, ints).compiled.layouts
            if layouts is None:
                raise LookupError
            ranks[:] = [len(shape) for shape, _ in layouts]
            return [n for shape, strides in layouts for n in (*shape, *strides)], []

        found, _ = evaluation.call(results, sized.sizes, tuple(ints), least=0)
        numbers = iter(found)
        each = [[tuple(islice(numbers, rank)) for _ in range(2)] for rank in ranks]
        return [_layout(*layout) for layout in each]

    def needs(self, sized: _Sized) -> tuple:
        """What `run` needs of the sizes."""
        general, sizes, numbers = self.general, sized.sizes, sized.numbers
        floats, ints = numbers.floats, numbers.ints
        if not general.runs_alone:
            return sizes, tuple(ints), floats, general.dynamic_ints(ints)
        symbols, taken = general.symbols(sizes, ints), general.taken(sizes, ints)
        return symbols, taken, floats, general.dynamic_ints(ints)

    def run(self, sizes: Any, more: tuple, floats: Sequence[float], ints: Sequence[int]) -> _Run:
        """What runs it on arrays."""
        if self.general.runs_alone:
            run = self.general.with_sizes(sizes, more).run
            return lambda arrays: run(arrays, floats, ints)
        program = self.program(sizes, more)

        def by_tensors(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
            tensors = [torch.from_numpy(a) for a in arrays]
            return [t.numpy() for t in program.run_tensors(tensors, floats, ints)]

        return by_tensors

    def program(self, sizes: Sequence[int], ints: Sequence[int]) -> Any:
        """Its program for such sizes."""
        return self.general.at_sizes(self._node, sizes, ints)


@dataclass
class _Numbers:
    """What the calls of a segment have of numbers, as of its `Segment`; integers: of its form."""

    integers: list[Any]
    ints: list[Any]
    floats: list[Any]

    def copy(self) -> _Numbers:
        """Others, for changes."""
        return _Numbers([*self.integers], [*self.ints], [*self.floats])

    def hints(self) -> _Numbers:
        """Those at hand, where there are sizes among them."""
        return _Numbers([hint(n) for n in self.integers], [hint(n) for n in self.ints], self.floats)


class _Sized:
    """A segment with sizes. key: of what it is on; sizes: of its form."""

    def __init__(self, of: _Segment, extents: list[Any], numbers: _Numbers):
        self._of = of
        self.key = of, tuple([n.key if type(n) is Size else n for n in extents])
        self._extents = extents
        self.numbers = numbers

    @property
    def sizes(self) -> tuple:
        return (*self._extents, *self.numbers.integers)

    def shape(self, number: int) -> tuple:
        """The shape of a value. Errors: LookupError, where it is not known."""
        rule, k = self._of.rules[number]
        layouts = rule.layouts(self._extents, self.numbers.integers)
        if layouts is None:
            raise LookupError
        return layouts[k][0]


class KeptForSizes:
    """A kept call, for many sizes of its arguments. guards: what has to be so for a call to be like
    it, beside what its programs ask of sizes. form: of the arguments, of which it takes the leaves:
    see `Opened`."""

    def __init__(
        self, watch: Watch, function: Any, names: Names, plan: Plan, result: Result, needs: int
    ):
        steps, wanted = plan.steps, plan.wanted
        given, self.form = watch.arguments.leaves, watch.arguments.form
        outer = len(given if self.form is None else self.form)
        shown = watch.arguments.names(parameter_names(function, outer, names))
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
        self._constants = [t.numpy() for t in plan.constants]
        self._wanted = wanted
        self._names = names
        self._give: Callable = giver(result, wanted.index, False)
        self.reach = watch.reach
        writes = any(program.mutates for program, *_ in steps)
        self.guards: list[Guard] = [Call(shown, names, self.form)]
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
        self._at_hand = {k: Sight.of(given[k]) for k in arrays}
        self._bodies = list(dict.fromkeys(self._segments))

    @property
    def texts(self) -> list[str]:
        """The guards, and what the programs ask of sizes."""
        asked = dict.fromkeys(map(str, self._asked))
        ours = [f"sizes with {g}" for s in self._bodies for g in s.general.guards]
        return [*map(str, self.guards), *asked, *ours]

    @property
    def programs(self) -> int:
        """How many programs it runs."""
        return len(self._segments)

    @property
    def generals(self) -> list[General]:
        """The programs for many sizes, in the order in which they run."""
        return [s.general for s in self._bodies]

    def holds(self, given: Sequence[Any], names: Names) -> bool:
        """Whether a call is like it, as far as is seen before its programs are asked."""
        if len(given) != len(self._looks) or names != self._names:
            return False
        for look in self._looks:
            if not look.holds(given):
                return False
        for pair in self._pairs:
            if not self._apart(pair, given):
                return False
        return all(e.holds(given) for e in self._elements) if self._elements else True

    def serves(self, given: Sequence[Any]) -> bool:
        """Whether its programs serve the sizes of a call that is like it."""
        try:
            return self._evaluation[1](given) is not None
        except _OF_OTHERS:
            return False

    @staticmethod
    def _apart(pair: Pair, given: Sequence[Any]) -> bool:
        k, m = pair.positions
        one, other = given[k], given[m]
        if pair.same or one is other:
            return pair.same and one is other
        return not (pair.apart and np.may_share_memory(one, other))

    def run(self, given: Sequence[Any]) -> Any:
        """What the function does and gives; MISS where a program does not serve such sizes, or
        raises before anything was written."""
        for body in self._bodies:
            if not body.general.runs:
                return MISS
        try:
            which, evaluate = self._evaluation
            found = evaluate(given)
        except _OF_OTHERS:
            return MISS
        if found is None:
            return MISS
        runs: list[_Run | None] = [None] * len(found)
        made: list[np.ndarray] = [*self._constants]
        written = False
        for sources, k, segment in zip(self._sources, which, self._segments, strict=True):
            read = [given[s] if s >= 0 else made[-1 - s] for s in sources]
            run = runs[k]
            if run is None:
                run = runs[k] = segment.run(*found[k])
            try:
                made += run(read)
            except IndexError:
                if written:
                    raise
                return MISS  # it is called again, and that has NumPy's words
            written = written or segment.mutates
        return self._give(given, [made[k] for k in self._wanted])

    @cached_property
    def _evaluation(self) -> tuple[list[int], Evaluate]:
        """What gives `_Segment.needs` of the segments, of a call that is like it; of each segment,
        its place there."""
        try:
            return self._evaluated()
        except _BY_NUMBERS:  # what it hangs on is not known for other sizes
            return [], lambda given: None

    def _evaluated(self) -> tuple[list[int], Evaluate]:
        evaluation = Evaluation(self._at_hand)
        segments: dict[int, _Sized] = {}  # by the numbers of segments

        def of_value(segment: Any, number: int) -> tuple:
            return segments[self._numbers[id(segment)]].shape(number)

        arguments = {a: evaluation.shapes[k] for a, k in self._places.items()}
        shapes = _Shapes(arguments, of_value)
        made = [_layout(*Sight.of(a)) for a in self._constants]
        known: dict[tuple, tuple[_Sized, int, list[_Layout]]] = {}
        needs: list[tuple] = []
        which = []
        for number, (segment, sources) in enumerate(
            zip(self._segments, self._sources, strict=True)
        ):
            layouts = [
                (evaluation.shapes[s], partial(evaluation.strides, s)) if s >= 0 else made[-1 - s]
                for s in sources
            ]
            sized = segment.of_layouts(layouts)
            before = known.get(sized.key)
            if before is None:
                segments[number] = sized
                segment.evaluate(sized, shapes, evaluation)
                last = number == len(self._segments) - 1
                gives = [] if last else segment.results(sized, evaluation)
                before = known[sized.key] = sized, len(needs), gives
                needs.append(segment.needs(sized))
            segments[number], k, gives = before
            which.append(k)
            made += gives
        for asked in self._asked:
            try:
                with evaluation.attempt():
                    evaluation.test(asked.holds(shapes))
            except _BY_NUMBERS:
                _ask(asked, shapes, evaluation)
        return which, evaluation.function(needs)


def _ask(asked: Asked, shapes: _Shapes, evaluation: Evaluation) -> None:
    """Have a question answered by numbers in each call."""
    noted = _Noted(shapes)
    evaluation.test(asked.holds(noted))

    def ask(*shapes: tuple) -> tuple[list[int], list[float]]:
        if not asked.holds(noted.at(shapes)):
            raise LookupError
        return [], []

    evaluation.call(ask, *noted.asked.values())


# What is raised for sizes that the call does not hold for.
_OF_OTHERS = (ArithmeticError, LookupError, TypeError, ValueError)
