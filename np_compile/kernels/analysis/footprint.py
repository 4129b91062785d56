"""Memory footprint of a nest: the bytes that an iteration touches, for cross-kernel tiling.

A nest whose iterations are independent can be run in any parts. What decides whether several nests
can take turns, each for a part of its iterations, is which bytes an iteration touches: see `bands`.
Where these bytes lie may follow from integers that the program is given (`y[t] = x[t]`). It is said
for given integers, and so is whether all indices are within bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ..ir import expr as E
from ..ir import scalars
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr
from ..ir.program import (
    Buffer,
    Call,
    Fence,
    Loop,
    Product,
    Program,
    Statement,
    accesses,
    elements,
    nest,
    statements,
)
from ..target import Target
from .access import split
from .cost import cost, estimate
from .memory import Layout
from .parallel import independent

# The vector of given integers at a slot; None if it is none.
Given = Callable[[int], "Sequence[int] | None"]
# Expressions that follow from given integers, each with the bytes that it counts.
_Shifts = tuple[tuple[Expr, int], ...]
_Vectors = Mapping[Buffer, "Sequence[int] | None"]
_Values = dict[Expr, "int | None"]
_ANY = 1 << 40  # values of a given integer
_LIGHT, _MANY = 48, 4096  # cycles an element, and elements
_SCALAR = 64  # bytes of what is the same for all elements


@dataclass(frozen=True)
class Touch:
    """Bytes that a nest touches, counted from where a pointer leads to.

    slot: of the pointer. begin, end: what the first iteration touches lies between them. step: how
    much further the next one's bytes lie; None where all iterations touch what lies between begin
    and end.
    """

    slot: int
    begin: int
    end: int
    step: int | None
    written: bool


@dataclass(frozen=True)
class Footprint:
    """A nest with independent iterations.

    width: iterations that stay together: a part begins at a multiple. grain: iterations of a chunk,
    all of them where the nest alone is not worth a thread. time: estimated nanoseconds of the nest.
    idle: whether it does nothing but check indices.
    """

    extent: int
    width: int
    grain: int
    time: float
    idle: bool
    _touches: tuple[tuple[Touch, _Shifts], ...]
    _checks: tuple[Expr, ...]
    _slots: dict[Buffer, int]  # of the vectors that indices are computed from

    def touches(self, given: Given) -> list[Touch] | None:
        """What it touches; None if that is not known, or if an index may be out of bounds."""
        vectors = {b: given(slot) for b, slot in self._slots.items()}
        if None in vectors.values():
            return None
        known: _Values = {}
        if any(_value(x, vectors, known) is None for x in self._checks):
            return None
        found = []
        for t, shifts in self._touches:
            further = 0
            for x, bytes_ in shifts:
                k = _value(x, vectors, known)
                if k is None:
                    return None
                further += k * bytes_
            found.append(Touch(t.slot, t.begin + further, t.end + further, t.step, t.written))
        return found


def sections(program: Program, layout: Layout, machine: Target) -> list[list[Footprint] | None]:
    """The nests of each section of a program, between calls of torch, where they may run in parts;
    None of other sections."""
    read = {b for step in program.steps for b in accesses(step)[0]}
    found: list[list[Footprint] | None] = [[]]
    for step in program.steps:
        if isinstance(step, (Call, Fence)) and not isinstance(step, Product):
            found.append([])
            continue
        one = None if isinstance(step, Product) else footprint(nest(step), layout, read, machine)
        found[-1] = None if one is None or found[-1] is None else [*found[-1], one]
    return found


def footprint(
    loop: Loop, layout: Layout, read: Collection[Buffer], machine: Target
) -> Footprint | None:
    """The footprint of a nest; None if its iterations depend on each other, if it sums up over
    them, or if an index that is to be checked depends on more than given integers.

    read: the temporaries that something reads.
    """
    inside = list(statements(loop))
    extent = loop.axis.extent
    idle = all(s.target.kind == "temporary" and s.target not in read for s in inside)
    if not idle and (
        extent < 2 or any(loop.axis in s.over for s in inside) or not independent(_fixed(loop))
    ):
        return None
    checks = [x for x in E.walk(*(v for s in inside for v in s.parts)) if x.op == "wrap"]
    if not all(map(_follows, checks)):
        return None
    touched = () if idle else _touched(inside, loop.axis, layout)
    followed = [*checks, *(x for _, shifts in touched for x, _ in shifts)]
    width = loop.width
    if loop.kind == "vector":
        width = math.lcm(width, machine.vector_bytes)  # whole vectors, of whatever elements
    return Footprint(
        extent, width, int(loop.grain) or extent, estimate(loop, machine),
        idle, touched, tuple(checks),
        {x.value: layout.slots[x.value] for x in E.loads(*followed)},
    )  # fmt: skip


def light(program: Program, nests: Callable[[], list[list[Footprint] | None]]) -> bool:
    """Whether a program does little to each of many elements, and nothing else: to read and to
    write them takes as long. nests: gives its `sections`."""
    if len(program.steps) != 1:
        return False
    (loop,) = program.steps
    if not isinstance(loop, Loop) or loop.kind != "vector" or loop.axis.extent < _MANY:
        return False
    inside = list(statements(loop))
    if len(inside) != len(loop.body) or sum(cost(s.value) for s in inside) > _LIGHT:
        return False
    (found,) = nests()
    touches = found[0].touches(lambda slot: None) if found else None
    return touches is not None and all(0 <= t.begin < t.end <= (t.step or _SCALAR) for t in touches)


def light_on_gpu(program: Program) -> bool:
    """Whether a program of a GPU does little to each of many elements, and nothing else, in one
    pass over memory or, where it changes what it reads, two."""
    loops = [s for s in program.steps if isinstance(s, Loop)]
    if len(loops) != len(program.steps) or not 0 < len(loops) <= 2:
        return False
    inside = [s for loop in loops for s in statements(loop)]
    many = max(elements(a.extent for a in s.axes) for s in inside) >= _MANY
    return (
        many
        and all(loop.kind == "grid" and not loop.blocks for loop in loops)
        and all(s.op is None for s in inside)
        and sum(cost(s.value) for s in inside) <= _LIGHT
    )


def _follows(x: Expr) -> bool:
    """Whether x follows from given integers alone."""
    return not E.axes_of(x) and all(map(_given, E.loads(x)))


_FOLLOWING = frozenset(
    {"const", "load", "affine", "wrap", "known", "idiv", "imod", "cast", "where", *scalars.OPS}
)  # what `_value` computes


def follows_from(integers: Buffer, x: Expr) -> bool:
    """Whether `within_bounds` can tell of x, by the numbers of one vector."""
    inside = E.walk(x)
    loads = [y for y in inside if y.op == "load"]
    known = all(y.value is integers and y.args[0].op == "const" for y in loads)
    return known and all(y.op in _FOLLOWING for y in inside)


def within_bounds(conditions: Sequence[Expr], integers: Buffer, values: Sequence[int]) -> bool:
    """Whether indices that follow from a vector are right, for its values."""
    known: _Values = {}
    return all(_value(x, {integers: values}, known) is not None for x in conditions)


def _given(x: Expr) -> bool:
    """Whether a load may be that of a given integer."""
    return x.value.kind == "input" and x.dtype == "i64" and x.args[0].op == "const"


def _fixed(loop: Loop) -> Loop:
    """A nest as it is for any one set of given integers: each is the axis of a loop around it."""
    inside = list(statements(loop))
    written = {s.target for s in inside}
    loads = {x for s in inside for x in s.reads() if _given(x)}
    axes = {x: E.axis(_ANY, "given") for x in loads if x.value not in written}
    return _under(loop, axes) if axes else loop


def _under(loop: Loop, axes: dict[Expr, Expr]) -> Loop:
    body: list[Loop | Statement] = []
    for step in loop.body:
        if isinstance(step, Loop):
            body.append(_under(step, axes))
        else:
            made = replace(step, axes=(*axes.values(), *step.axes))
            made.map(E.replaced(axes))
            body.append(made)
    return replace(loop, body=body)


def _touched(
    inside: list[Statement], axis: Expr, layout: Layout
) -> tuple[tuple[Touch, _Shifts], ...]:
    """What a nest touches, but for the shifts."""
    found: dict[tuple[Touch, _Shifts], None] = {}
    for s in inside:
        elements = [(x.value, x.args, False) for x in s.reads()]
        for b, index, written in [*elements, (s.target, s.index, True)]:
            if b.kind not in ("register", "local"):
                lo, hi, step, shifts = _range(b, index, axis)
                size = DTYPES[b.dtype].size
                slot, at = layout.place(b)
                step = None if step is None else step * size
                t = Touch(slot, at + lo * size, at + hi * size, step, written)
                found[t, tuple([(x, c * size) for x, c in shifts])] = None
    return tuple(found)


def _range(b: Buffer, index: tuple[Expr, ...], axis: Expr) -> tuple[int, int, int | None, _Shifts]:
    """The elements from the first to behind the last that the first iteration meets, how many
    elements further those of the next one lie, and what shifts all of them; where that is not
    known, what all iterations may meet, and None."""
    whole = 0, b.size, None, ()
    if len(index) != 1:
        return whole
    shifts, rest = split(index[0], lambda a: a is axis or _follows(a))
    step = shifts.pop(axis, None)
    lo, hi = E.bounds(rest)
    if hi - lo >= b.size or (step is not None and axis in E.axes_of(rest)):
        return whole
    return lo, hi + 1, step, tuple(shifts.items())


def _value(x: Expr, given: _Vectors, known: _Values) -> int | None:
    """The value of an index that follows from given integers; None if it is out of bounds."""
    if x.op == "const":
        return int(x.value)
    if x not in known:
        known[x] = _computed(x, given, known)
    return known[x]


def _computed(x: Expr, given: _Vectors, known: _Values) -> int | None:
    values = []
    for a in x.args:
        v = _value(a, given, known)
        if v is None:
            return None
        values.append(v)
    if x.op == "load":
        vector = given[x.value]
        return None if vector is None else vector[values[0]]
    if x.op == "affine":
        return x.value[0] + sum(c * v for c, v in zip(x.value[1:], values, strict=True))
    if x.op in ("wrap", "known"):
        extent = x.value[0] if x.op == "wrap" else x.value
        at = values[0] + extent if x.op == "wrap" and values[0] < 0 else values[0]
        return at if 0 <= at < extent else None
    if x.op == "idiv":
        return values[0] // x.value
    if x.op == "imod":
        return values[0] % x.value
    if x.op == "cast":
        return int(scalars.convert(values[0], x.args[0].dtype, x.dtype))
    if x.op == "where":
        return values[1] if values[0] else values[2]
    if x.op == "lt":  # most of them: whether it counts from the end
        return int(values[0] < values[1])
    if x.op in scalars.OPS:
        return int(scalars.fold(x.op, x.args[0].dtype, values))
    return None
