"""Blocked scans: a long running reduction is made in parts that take turns.

    t[i] running sum= x[i]

becomes, with P parts of L elements,

    part[w] sum= x[L w + k]                    as vectors
    begin[0] = 0
    begin[w + 1] running sum= part[w]          P steps
    step[w, k] running sum= x[L w + k]         several parts take turns (`schedule`)
    whole[w, k] = begin[w] + step[w, k]
    t[L w + k] = whole[w, k]

and the last three again for the elements that are left over. The parts follow from the sizes alone,
so the result does not depend on the number of threads. Cheap elementwise statements on the result
are cut likewise, and `fuse` puts them into the same loops. What is not cheap is not in these loops,
which have no vectors: values are stored before they are run over.

A float sum differs in rounding from one after the other, and is nearer to the exact one. Products
of floats stay as they are: that of a part may overflow where no product so far does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from np_compile.size import hint, near

from ..analysis.cost import cost
from ..analysis.dependence import reads_elsewhere
from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr
from ..ir.program import (
    COMBINE,
    Buffer,
    Program,
    Statement,
    Step,
    accesses,
    elements,
    identity,
)
from ..target import Target


@dataclass(frozen=True, eq=False)
class _Region:
    """Elements of the long axis: the axes that run over them, their place, and their part."""

    axes: tuple[Expr, ...]
    place: Expr
    part: Expr

    @property
    def lead(self) -> Expr | None:
        """The axis over parts, where there are several."""
        return self.part if self.part.op == "axis" else None


@dataclass(frozen=True, eq=False)
class _Cut:
    """How an axis is cut: `count` parts of `size` elements, and what is left over."""

    extent: int
    size: int
    count: int
    regions: list[_Region] = field(default_factory=list)

    def __post_init__(self) -> None:
        part, step = E.axis(self.count, "w"), E.axis(self.size, "k")
        begin = self.size * self.count
        regions = [_Region((part, step), E.plus(E.times(part, self.size), step), part)]
        if begin < self.extent:
            rest = E.axis(self.extent - begin, "k")
            regions.append(_Region((rest,), E.plus(rest, begin), E.integer(self.count)))
        self.regions.extend(regions)


@dataclass(frozen=True, eq=False)
class _Pieces:
    """A buffer's values in each region, as they stand in temporaries; the stores to the buffer."""

    cut: _Cut
    values: list[Expr]
    stores: list[Statement]


def scan_blocking(program: Program, machine: Target) -> Program:
    """The program with such running reductions in parts."""
    known: dict[Buffer, _Pieces] = {}
    steps: list[Step] = []
    for s in _apart(program, machine):
        made: list[Statement] | None = None
        pieces: _Pieces | None = None
        if isinstance(s, Statement) and _long(s, machine):
            made, pieces = _parts(program, s, machine)
        elif isinstance(s, Statement) and (cut := _follows(s, known, machine)) is not None:
            made, pieces = _cut(program, s, cut, known)
        for b in accesses(s)[1]:
            known.pop(b, None)
        if pieces is not None and isinstance(s, Statement) and s.index == s.axes:
            known[s.target] = pieces
        steps += [s] if made is None else made
    program.steps = _needed(steps, known)
    return program


def cheap(s: Statement, machine: Target) -> bool:
    """Whether a statement may go without vectors."""
    return cost(s.value) <= machine.scan_cycles


def waits(s: Statement) -> bool:
    """Whether a statement runs along memory, so that each of its steps waits for the one before."""
    return s.scan and s.vector in s.over


def _apart(program: Program, machine: Target) -> list[Step]:
    """The steps, with what is not cheap to run over in a temporary, which is made as vectors."""
    steps: list[Step] = []
    for s in program.steps:
        if isinstance(s, Statement) and waits(s) and not cheap(s, machine):
            stored = _temporary(program, s.value.dtype, s.axes)
            steps.append(_store(s, s.axes, stored, s.value))
            s = replace(s, value=E.load(stored, s.axes))
        steps.append(s)
    return steps


def _long(s: Statement, machine: Target) -> bool:
    """Whether a statement is a running reduction that is worth it, and exact enough, in parts. Of
    many next to each other, some run while others wait."""
    row = DTYPES[s.target.dtype]
    if not s.scan or len(s.over) != 1 or s.op not in COMBINE or row.narrow:
        return False
    if (row.kind == "f" and s.op == "prod") or reads_elsewhere(s):
        return False
    rows = elements(a.extent for a in s.axes if a not in s.over)
    steps = machine.scan_float_steps if row.kind == "f" else machine.scan_steps
    return rows <= machine.latency and s.over[0].extent >= steps


def _cut_of(extent: int, size: int, machine: Target) -> _Cut:
    """The cut of an axis of elements of that many bytes. Parts are an odd number of cache lines:
    by powers of two apart, they would fall on the same places of the cache."""
    known = not machine.by_length or near(extent)
    count = machine.scan_count(hint(extent)) if known else 1
    line = machine.line_bytes // size
    lines = extent // (count * line)
    odd = max((lines + 1) // 2 * 2 - 1, 1)
    return _Cut(extent, min(odd * line, extent // count), count)


def _parts(program: Program, s: Statement, machine: Target) -> tuple[list[Statement], _Pieces]:
    """The statements of a running reduction in parts."""
    long, op = s.over[0], str(s.op)
    kept = tuple(a for a in s.axes if a is not long)
    cut = _cut_of(long.extent, DTYPES[s.target.dtype].size, machine)
    begins, made = _begins(program, s, kept, cut)
    pieces = _Pieces(cut, [], [])
    for region in cut.regions:
        *lead, along = region.axes
        axes = (*lead, *kept, along)
        step = _temporary(program, s.target.dtype, axes)
        places = {long: region.place}
        running = replace(
            s, axes=axes, target=step, index=axes, over=(along,), vector=along,
            value=E.substitute(s.value, places), lead=region.lead,
        )  # fmt: skip
        total = E.scalar(COMBINE[op], E.load(begins, (region.part, *kept)), E.load(step, axes))
        made += [running, *_held(program, running, total, s, places, pieces)]
    return made, pieces


def _begins(
    program: Program, s: Statement, kept: tuple[Expr, ...], cut: _Cut
) -> tuple[Buffer, list[Statement]]:
    """What comes before each part of a running reduction, and before what is left over."""
    whole, op, dtype = cut.regions[0], str(s.op), s.target.dtype
    part, along = whole.axes
    parts = _temporary(program, dtype, (part, *kept))
    reduced = replace(
        s, axes=(part, *kept, along), target=parts, index=(part, *kept), over=(along,), scan=False,
        value=E.substitute(s.value, {s.over[0]: whole.place}), vector=along, lead=part,
    )  # fmt: skip
    begins = _temporary(program, dtype, (E.axis(cut.count + 1), *kept))
    nothing = E.const(identity(op, dtype, True), dtype)
    running = replace(
        s, axes=(*kept, part), target=begins, index=(E.plus(part, 1), *kept), over=(part,),
        value=E.load(parts, (part, *kept)), vector=part,
    )  # fmt: skip
    return begins, [reduced, _store(s, kept, begins, nothing, (E.integer(0), *kept)), running]


def _follows(s: Statement, known: dict[Buffer, _Pieces], machine: Target) -> _Cut | None:
    """The cut of what an elementwise statement reads, if it is to go with the parts."""
    if s.op is not None or len(s.axes) != 1 or not cheap(s, machine) or reads_elsewhere(s):
        return None
    if any(E.from_data(x) for x in E.walk(s.value, *s.index)):
        return None
    reads = [x for x in s.reads() if x.value in known]
    cuts = {known[x.value].cut for x in reads}
    if len(cuts) != 1 or any(x.args != s.axes for x in reads):
        return None
    cut = next(iter(cuts))
    return cut if cut.extent == s.axes[0].extent else None


def _cut(
    program: Program, s: Statement, cut: _Cut, known: dict[Buffer, _Pieces]
) -> tuple[list[Statement], _Pieces]:
    """An elementwise statement in pieces."""
    made: list[Statement] = []
    pieces = _Pieces(cut, [], [])
    for k, region in enumerate(cut.regions):
        places = {E.load(b, s.axes): p.values[k] for b, p in known.items() if p.cut is cut}
        places[s.axes[0]] = region.place
        value = E.replaced(places)(s.value)
        like = replace(s, axes=region.axes, vector=region.axes[-1], lead=region.lead)
        made += _held(program, like, value, s, {s.axes[0]: region.place}, pieces)
    return made, pieces


def _held(
    program: Program, like: Statement, value: Expr, s: Statement, places: dict[Expr, Expr],
    pieces: _Pieces,
) -> list[Statement]:  # fmt: skip
    """A value of a region in a temporary, and from there in the target of s."""
    held = _temporary(program, s.target.dtype, like.axes)
    load = E.load(held, like.axes)
    index = tuple(E.substitute(i, places) for i in s.index)
    store = _store(like, like.axes, s.target, load, index)
    pieces.values.append(load)
    pieces.stores.append(store)
    return [_store(like, like.axes, held, value), store]


def _needed(steps: list[Step], known: dict[Buffer, _Pieces]) -> list[Step]:
    """The steps without stores to temporaries that nobody reads."""
    read = {b for step in steps for b in accesses(step)[0]}
    dead = {
        s for b, p in known.items() if b.kind == "temporary" and b not in read for s in p.stores
    }
    return [s for s in steps if s not in dead]


def _store(
    s: Statement, axes: tuple[Expr, ...], target: Buffer, value: Expr,
    index: tuple[Expr, ...] | None = None,
) -> Statement:  # fmt: skip
    """target[index] = value, with the user's line and the vectors of s."""
    return replace(
        s, axes=axes, target=target, index=axes if index is None else index, value=value,
        op=None, over=(), scan=False, vector=s.vector if s.vector in axes else (*axes, None)[-1],
    )  # fmt: skip


def _temporary(program: Program, dtype: str, axes: tuple[Expr, ...]) -> Buffer:
    return program.buffer("scan", dtype, [a.extent for a in axes])
