"""Store trimming: a store leaves out what is stored again before it is read, and what nobody reads.

    for i < n: t[i] = x[i]                  for i < 1:   t[i] = x[i]
    for i < n-1: t[1+i] = y[i]      ->      for i < n-1: t[1+i] = y[i]

What is left of a store is a box, or a few of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..analysis import boxes
from ..analysis.access import line
from ..analysis.boxes import Box
from ..analysis.dependence import reads_elsewhere
from ..ir import expr as E
from ..ir.copying import moved
from ..ir.expr import Expr
from ..ir.program import Buffer, Call, Program, Statement, Step
from ..target import Target
from .inline import store_of

# Most boxes of a buffer that are told apart.
_BOXES = 12

Ranges = dict[Expr, tuple[int, int]]


def store_trimming(program: Program, machine: Target) -> Program:
    """The program with such stores in what is left of them."""
    unread: dict[Buffer, list[Box]] = {
        b: [boxes.whole(b.shape)] for b in program.buffers if b.kind == "temporary"
    }
    kept: list[Step] = []
    for step in reversed(program.steps):
        if isinstance(step, Statement):
            kept += reversed(_trimmed(step, unread, machine.region_elements))
        else:
            kept.append(step)
            if isinstance(step, Call):
                unread.update((b, []) for b in (*step.reads, *step.writes))
    program.steps = kept[::-1]
    return program


def _trimmed(s: Statement, unread: dict[Buffer, list[Box]], fewest: int) -> list[Statement]:
    """What is left of a statement. unread: what is not read of each buffer before it is stored
    again; told of what the statement reads and stores."""
    box = store_of(s)
    left = [s]
    if box is not None and s.target.kind in ("temporary", "output"):
        known = unread.get(s.target, [])
        left = _parts_left(s, box, known, fewest)
        unread[s.target] = boxes.joined([*known, box])[-_BOXES:]
    read = [(x.value, x.args) for t in left for x in t.reads()]
    if s.op is not None and not s.over:
        read.append((s.target, s.index))  # it combines the element with a value
    for b, index in read:
        if unread.get(b):
            place = boxes.hull(index, b.shape, {})
            rest = [part for free in unread[b] for part in boxes.without(free, place)]
            unread[b] = sorted(rest, key=boxes.size)[-_BOXES:]
    return left


def _parts_left(s: Statement, box: Box, known: Iterable[Box], fewest: int) -> list[Statement]:
    """A store of the elements of a box that are in none of the known ones."""
    left = [box]
    for other in known:
        left = [part for whole in left for part in boxes.without(whole, other)]
    if left == [box] or any(x.op == "wrap" for x in E.walk(s.value)):
        return [s]
    saved = boxes.size(box) - sum(map(boxes.size, left))
    if len(left) > 1 and (
        saved < max(fewest, boxes.size(box) // 4) or len(left) > 2 * len(box) or reads_elsewhere(s)
    ):
        return [s]
    return [restricted(s, _ranges_of(s, part)) for part in left]


def _ranges_of(s: Statement, part: Box) -> Ranges:
    """The values of a store's axes for which it stores a part of its box."""
    ranges = {}
    for i, (lo, hi) in zip(s.index, part, strict=True):
        f = line(i)
        if f is not None:
            ranges[f.atom] = f.within(lo, hi)
    return ranges


def restricted(s: Statement, ranges: Mapping[Expr, tuple[int, int]]) -> Statement:
    """A statement for some of the values of its axes."""
    places = {}
    for a, (lo, hi) in ranges.items():
        if hi - lo < a.extent:
            inner = E.integer(0) if hi - lo == 1 else E.axis(hi - lo, a.value[0][0])
            places[a] = E.plus(inner, lo)
    made = moved(s, places)
    if s.over and not made.over:
        made.op = None  # a reduction of one element
    return made
