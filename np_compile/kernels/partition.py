"""Pass: a reduction of many rows to a few columns is made in parts, so that threads can share it.

The columns are too few to be divided. The rows are cut into parts with results of their own, and
these are reduced in turn. How many parts there are depends on the sizes alone, so the result does
not depend on the number of threads.
"""

from __future__ import annotations

from . import expr as E
from .arrays import contiguous_strides, elements
from .expr import Expr
from .ir import Buffer, Program, Statement

_PARTS = 16
# Fewest steps of a part, and most elements of the result.
_STEPS = 256
_COLUMNS = 96


def partition(program: Program) -> Program:
    """The program with such reductions in two statements."""
    steps: list = []
    for s in program.steps:
        if isinstance(s, Statement) and _tall(s):
            steps += _parts(program, s)
        else:
            steps.append(s)
    program.steps = steps
    return program


def _tall(s: Statement) -> bool:
    if not s.over or s.scan or s.rank is not None or s.op is None:
        return False
    kept = [a for a in s.axes if a not in s.over]
    if not kept or s.vector not in kept or elements(a.extent for a in kept) > _COLUMNS:
        return False
    return s.over[0].extent >= _PARTS * _STEPS


def _parts(program: Program, s: Statement) -> list[Statement]:
    rows = s.over[0]
    size = rows.extent // _PARTS
    rest = rows.extent - size * _PARTS
    count = _PARTS + (rest > 0)
    kept = tuple(a for a in s.axes if a not in s.over)
    others = tuple(a for a in s.over if a is not rows)
    shape = (count, *(a.extent for a in kept))
    part = Buffer(
        f"part{len(program.buffers)}", s.target.dtype, shape, contiguous_strides(shape), "temporary"
    )
    program.buffers.append(part)
    made = []
    for number, length, begin in ((_PARTS, size, 0), (1, rest, _PARTS * size)):
        if length == 0:
            continue
        which, step = E.axis(number, "w"), E.axis(length, "i")
        at = E.plus(E.plus(E.times(which, size), step), begin)
        place: Expr = which if number > 1 else E.integer(_PARTS)
        lead = (which,) if number > 1 else ()
        if number == 1:
            at = E.plus(step, begin)
        made.append(
            Statement(
                (*lead, *kept, step, *others), part, (place, *kept),
                E.substitute(s.value, {rows: at}), s.op, (step, *others),
                vector=s.vector, line=s.line, calls=s.calls,
            )
        )  # fmt: skip
    total = E.axis(count, "w")
    made.append(
        Statement(
            (*kept, total), s.target, s.index, E.load(part, (total, *kept)), s.op, (total,),
            vector=s.vector, line=s.line, calls=s.calls,
        )
    )  # fmt: skip
    return made
