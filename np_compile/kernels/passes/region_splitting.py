"""Region splitting: an array that is stored in pieces is stored once, and read piece by piece.

    for i < n: t[i] = x[i]                       for i < 1:   y[0] = f(x[0])
    for i < n-1: t[1+i] = x[i] + x[1+i]    ->    for i < n-1: y[1+i] = f(x[i] + x[1+i])
    for i < n: y[i] = f(t[i])

A statement that reads from several pieces becomes several, each of which reads from one, so that
`inline` can compute there what the piece holds, or `fuse` put both in one loop. A reduction over an
axis that is cut is made in parts. Where too many statements would be needed, that is done to the
inner part alone, and the frame around it reads from memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import islice

from ..analysis import boxes
from ..analysis.access import line
from ..analysis.boxes import Box
from ..analysis.cost import cost
from ..analysis.dependence import reads_elsewhere
from ..ir import expr as E
from ..ir.expr import Expr, new_axes
from ..ir.program import (
    COMBINE,
    Buffer,
    Call,
    Program,
    Statement,
    Step,
    is_in_order,
)
from ..target import Target
from .inline import store_of
from .store_trimming import Ranges, restricted

# Most statements that one becomes, and most boxes of a buffer that are told apart.
_PIECES = 9
_BOXES = 12


def region_splitting(program: Program, machine: Target) -> Program:
    """The program with such statements in pieces."""
    stores: dict[Buffer, dict[Box, Statement]] = {}
    done: list[Step] = []
    for step in program.steps:
        made = _Reader(step, stores, machine).cut(program) if isinstance(step, Statement) else None
        now: list[Step] = [step] if made is None else [*made]
        done += now
        for s in now:
            _note(s, stores)
    program.steps = done
    return program


def _note(step: Step, stores: dict[Buffer, dict[Box, Statement]]) -> None:
    """Keep in mind what a step stores, and which of the earlier stores it leaves."""
    if isinstance(step, Call):
        stores.update((b, {}) for b in step.writes)
    if not isinstance(step, Statement):
        return
    box = store_of(step)
    if box is None:
        stores[step.target] = {}
        return
    known = stores.get(step.target, {})
    left = {part: s for b, s in known.items() for part in boxes.without(b, box)}
    stores[step.target] = {**left, box: step} if len(left) < _BOXES else {}


class _Reader:
    """A statement, and its loads from buffers that are stored in pieces.

    pieces: of each load's buffer, the boxes and what stores them.
    """

    def __init__(
        self, s: Statement, stores: Mapping[Buffer, dict[Box, Statement]], machine: Target
    ):
        self.s, self.machine = s, machine
        self.pieces = {x: stores[x.value] for x in s.reads() if len(stores.get(x.value, ())) > 1}
        self.pieces = {x: p for x, p in self.pieces.items() if self._straddles(x, p, {})}

    def cut(self, program: Program) -> list[Statement] | None:
        """The statements that it becomes; None where it stays as it is."""
        s = self.s
        points = boxes.size(tuple((0, a.extent) for a in s.axes))
        if not self.pieces or points < self.machine.region_elements or not _divisible(s):
            return None
        parts = list(islice(self._parts({a: (0, a.extent) for a in s.axes}), _PIECES + 1))
        if len(parts) > _PIECES and points >= self.machine.frame_elements:
            parts = self._core()
        if not 1 < len(parts) <= _PIECES or 2 * sum(map(self._gain, parts)) < points:
            return None
        made: list[Statement] = []
        kept = [a for a in s.axes if a not in s.over]
        groups: dict[tuple, list[Ranges]] = {}
        for part in parts:
            groups.setdefault(tuple(part[a] for a in kept), []).append(part)
        for group in groups.values():
            made += _reduced(program, s, group) if len(group) > 1 else [restricted(s, group[0])]
        return made

    def _parts(self, ranges: Ranges) -> Iterator[Ranges]:
        """Ranges of the axes, each load in one piece where that can be had."""
        found = min(self._marks(ranges), default=None)
        if found is None:
            yield ranges
            return
        _, _, k, mark = found
        axis = self.s.axes[k]
        lo, hi = ranges[axis]
        yield from self._parts({**ranges, axis: (lo, mark)})
        yield from self._parts({**ranges, axis: (mark, hi)})

    def _core(self) -> list[Ranges]:
        """The ranges for which each load is in its largest piece, and what is around them."""
        kept_first = sorted(self.s.axes, key=lambda a: a in self.s.over)
        whole: Box = tuple((0, a.extent) for a in kept_first)
        core = dict(zip(kept_first, whole, strict=True))
        for x, pieces_ in self.pieces.items():
            largest = max(pieces_, key=boxes.size)
            for i, (lo, hi) in zip(x.args, largest, strict=True):
                f = line(i)
                if f is None or not self._may_cut(f.atom, core):
                    continue
                first, last = f.within(lo, hi)
                core[f.atom] = max(core[f.atom][0], first), min(core[f.atom][1], last)
        around = boxes.without(whole, tuple(core.values()))
        parts = [*around, tuple(core.values())]
        return [dict(zip(kept_first, box, strict=True)) for box in parts]

    def _marks(self, ranges: Ranges) -> Iterator[tuple[bool, int, int, int]]:
        """Where to cut: whether a reduction runs over the axis, the dimension of the load, the
        number of the axis, and the first value behind the cut."""
        for x, pieces_ in self.pieces.items():
            place = boxes.hull(x.args, x.value.shape, ranges)
            near = [b for b in pieces_ if boxes.meet(b, place)]
            if any(boxes.inside(place, b) for b in near):
                continue
            for d, i in enumerate(x.args):
                f = line(i)
                if f is None or not self._may_cut(f.atom, ranges):
                    continue
                ends = {end for b in near for end in b[d] if place[d][0] < end < place[d][1]}
                for end in ends:
                    mark, a = f.crossing(end), f.atom
                    if ranges[a][0] < mark < ranges[a][1]:
                        yield a in self.s.over, d, self.s.axes.index(a), mark

    def _may_cut(self, a: Expr, ranges: Ranges) -> bool:
        """Whether an atom is an axis of the statement that may be cut."""
        return a in ranges and (a not in self.s.over or _in_parts(self.s))

    def _straddles(self, x: Expr, pieces_: Iterable[Box], ranges: Ranges) -> bool:
        place = boxes.hull(x.args, x.value.shape, ranges)
        return not any(boxes.inside(place, b) for b in pieces_)

    def _gain(self, ranges: Ranges) -> int:
        """The elements of a part if a piece can be inlined there, or made in the same loop."""
        most = self.machine.recompute_cycles
        for x, pieces_ in self.pieces.items():
            place = boxes.hull(x.args, x.value.shape, ranges)
            for box, s in pieces_.items():
                cheap = x.value.kind == "temporary" and cost(s.value) <= most
                if box == place or (cheap and boxes.inside(place, box)):
                    return boxes.size(tuple(ranges.values()))
        return 0


def _divisible(s: Statement) -> bool:
    """Whether a statement's iterations may run in any order, and apart."""
    if any(E.from_data(x) for i in s.index for x in E.walk(i)) or reads_elsewhere(s):
        return False
    return s.op is None or bool(s.over)


def _in_parts(s: Statement) -> bool:
    """Whether a reduction can be made of the results of others."""
    return s.op in COMBINE and not s.scan and not is_in_order(s)


def _reduced(program: Program, s: Statement, group: list[Ranges]) -> list[Statement]:
    """A reduction in parts, that differ in the axes that it runs over, and what these give. Parts
    of one shape are one."""
    alike: dict[Box, list[Ranges]] = {}
    for ranges in group:
        alike.setdefault(tuple((0, hi - lo) for lo, hi in ranges.values()), []).append(ranges)
    if len(alike) == 1:
        return [_merged(s, group)]
    kept = {a: r for a, r in group[0].items() if a not in s.over}
    shape = tuple(hi - lo for lo, hi in kept.values())
    place = tuple(E.plus(a, -lo) for a, (lo, _) in kept.items())
    made = []
    for same in alike.values():
        b = program.buffer("piece", s.target.dtype, shape)
        made.append(_merged(replace(s, target=b, index=place), same))
    axes = new_axes(shape)
    at = {a: E.plus(i, lo) for i, (a, (lo, _)) in zip(axes, kept.items(), strict=True)}
    total = _combined(s, [E.load(t.target, axes) for t in made])
    index = tuple(E.substitute(i, at) for i in s.index)
    return [*made, replace(s, axes=axes, index=index, value=total, op=None, over=(), vector=None)]


def _merged(s: Statement, same: list[Ranges]) -> Statement:
    """A reduction of the values of several parts of one shape."""
    first, *others = (restricted(s, ranges) for ranges in same)
    values = [
        E.substitute(t.value, dict(zip(t.axes, first.axes, strict=True))) for t in (first, *others)
    ]
    first.value = _combined(s, values)
    return first


def _combined(s: Statement, values: list[Expr]) -> Expr:
    """All values in one, as a reduction combines them."""
    return reduce(lambda x, y: E.scalar(COMBINE[str(s.op)], x, y), values)
