"""Split reductions: many rows to a few columns in parts, for threads to share.

The columns are too few to be divided. The rows are cut into parts with results of their own, and
these are reduced in turn. How many parts there are depends on the sizes alone, so the result does
not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import replace

from np_compile.size import hint, near, some

from ..ir import expr as E
from ..ir.expr import Expr
from ..ir.program import Program, Statement, elements, is_in_order
from ..target import Target

_LONG = 1 << 40  # rows


def reduction_splitting(program: Program, machine: Target) -> Program:
    """The program with such reductions in two statements."""
    steps: list = []
    parted = False
    for s in program.steps:
        if isinstance(s, Statement) and (count := _count(s, machine)):
            if s.over:
                steps += _parts(program, s, count, machine)
                parted = True
                continue
            # The rows are walked in the order of the parts, and not for each column.
            s.lead = s.axes[0] if parted else None
        steps.append(s)
    program.steps = steps
    return program


def _count(s: Statement, machine: Target) -> int:
    """The parts of a statement that runs over many rows, and keeps or makes few columns; 0 of
    others."""
    if s.scan or s.rank is not None or (s.op is None) != (not s.over) or is_in_order(s):
        return 0
    rows = s.over[0] if s.over else s.axes[0] if s.axes else None
    kept = [a for a in s.axes if a not in s.over and a is not rows]
    if rows is None:
        return 0
    # Right in any case: of a size that may be anything, the one at hand decides.
    columns, values = (hint(elements(a.extent for a in axes)) for axes in (kept, s.over))
    count, most = (
        machine.reduction_count(columns, n, values, s.vector in kept)
        for n in (hint(rows.extent), _LONG)
    )
    if most > count and machine.by_length and not near(rows.extent):
        return 0
    return count if count and rows.extent >= count else 0  # of many sizes, a guard


def _parts(program: Program, s: Statement, most: int, machine: Target) -> list[Statement]:
    """The reduction of each of so many parts, of the rows that are left over, and of what these
    give."""
    rows = s.over[0]
    if machine.by_length and isinstance(rows.extent, int):
        most = rows.extent // -(-rows.extent // most)  # few are left over
    size, rest = divmod(rows.extent, most)
    count = most + some(rest)
    kept = tuple(a for a in s.axes if a not in s.over)
    others = tuple(a for a in s.over if a is not rows)
    parts = program.buffer("part", s.target.dtype, (count, *(a.extent for a in kept)))

    def reduced(part: Expr, begin: Expr, length: int) -> Statement:
        step = E.axis(length, "i")
        lead = (part,) if part.op == "axis" else ()
        axes = (*lead, *kept, step, *others)
        value = E.substitute(s.value, {rows: E.plus(begin, step)})
        return replace(
            s, axes=axes, target=parts, index=(part, *kept), value=value, over=(step, *others),
            lead=axes[0] if lead else None, vector=step if s.vector is rows else s.vector,
        )  # fmt: skip

    which, total = E.axis(most, "w"), E.axis(count, "w")
    made = [reduced(which, E.times(which, size), size)]
    if some(rest):
        made.append(reduced(E.integer(most), E.integer(most * size), rest))
    every = E.load(parts, (total, *kept))
    vector = total if s.vector in s.over else s.vector
    return [*made, replace(s, axes=(*kept, total), value=every, over=(total,), vector=vector)]
