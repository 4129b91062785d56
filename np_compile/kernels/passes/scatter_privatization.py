"""Scatter privatization: parts of a scatter-add have accumulators of their own, for threads.

    for i < n:  x[wrap(index[i])] += v[i]

runs in order, as two values may meet in one place. Cut into parts that each have an array of their
own, it runs in parallel, and these arrays are added to x in their order. How many parts there are
depends on the sizes alone, so the result does not depend on the number of threads. An index out of
bounds is found before x is written to.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from np_compile.size import some

from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr, new_axes, number
from ..ir.program import Program, Statement, elements
from ..target import Target


def scatter_privatization(program: Program, machine: Target) -> Program:
    """The program with such statements in parts."""
    steps: list = []
    for s in program.steps:
        made = _privatized(program, s, machine) if isinstance(s, Statement) else None
        steps += [s] if made is None else made
    program.steps = steps
    return program


def _privatized(program: Program, s: Statement, machine: Target) -> list[Statement] | None:
    """The statement in parts, where that pays."""
    rows = _rows(s)
    count = 0 if rows is None else _count(s, machine)
    if rows is None or not 2 <= count <= rows.extent:
        return None
    return _parts(program, s, rows, count)


def _rows(s: Statement) -> Expr | None:
    """The axis that may be cut into parts, of a statement where that pays."""
    if s.op != "sum" or s.over or DTYPES[s.target.dtype].size < 4:
        return None  # sums of narrow floats are rounded so much that their order shows
    if not any(E.from_data(x) for x in E.walk(*s.index)) or not all(
        _covers(i, n) for i, n in zip(s.index, s.target.shape, strict=True)
    ):
        return None
    if any(x.value is s.target for x in s.reads()):
        return None
    return next((a for a in s.axes if a not in s.index), None)


def _covers(i: Expr, extent: int) -> bool:
    """Whether an index may be anywhere along an axis of the target."""
    return E.bounds(i) == (0, extent - 1)


def _count(s: Statement, machine: Target) -> int:
    """The number of parts: each element of theirs is set, and added up, besides."""
    values = elements(a.extent for a in s.axes)
    size = elements(s.target.shape)
    if not size or values < machine.scatter_values:
        return 0
    most = machine.scatter_parts
    full = values >= machine.scatter_density * size * most
    return most if full else int(values // (machine.scatter_density * size))


def _parts(program: Program, s: Statement, rows: Expr, count: int) -> list[Statement]:
    size, rest = divmod(rows.extent, count)
    target = s.target
    shape = (count, *target.shape)
    part = program.buffer("part", target.dtype, shape)
    which, step = E.axis(count, "w"), E.axis(size, "i")

    def added(axes: tuple[Expr, ...], at: Expr, number: Expr) -> Statement:
        made = replace(s, axes=axes, target=part)
        made.map(E.axes_replaced({rows: at}))
        made.index = (number, *made.index)
        return made

    place = new_axes(shape)
    zero = number(-0.0 if DTYPES[target.dtype].kind == "f" else 0, target.dtype)  # -0.0 stays so
    others = tuple(a for a in s.axes if a is not rows)
    made = [
        Statement(place, part, place, zero),
        added((which, step, *others), E.plus(E.times(which, size), step), which),
    ]
    if some(rest):  # in the last part, so that its order stays
        step = E.axis(rest, "i")
        made.append(added((step, *others), E.plus(step, count * size), E.integer(count - 1)))
    place = new_axes(target.shape)
    loads = [E.load(target, place), *(E.load(part, (E.integer(k), *place)) for k in range(count))]
    total = reduce(lambda a, b: E.scalar("add", a, b), loads)
    made.append(Statement(place, target, place, total, line=s.line, calls=s.calls))
    return made
