"""Index set splitting: a loop is cut where its indices wrap around or a condition changes.

`x[(i + 1) % n]` (np.roll) walks memory in one direction but for one step. Over the pieces in
between, the remainder is affine and the loop has vectors. Likewise a choice that depends on the
axis alone.
"""

from __future__ import annotations

from itertools import pairwise

from np_compile.size import span

from ..analysis.access import line, offset
from ..ir import expr as E
from ..ir.copying import copy
from ..ir.expr import Expr
from ..ir.program import Loop, Program, Statement, statements, with_leaves
from ..target import Target

_PIECES = 6


def index_set_splitting(program: Program, machine: Target) -> Program:
    """The program with such innermost loops in pieces."""
    program.steps = with_leaves(program.steps, lambda loop: _split(program, loop))
    return program


def _split(program: Program, loop: Loop) -> list[Loop]:
    inside = list(statements(loop))
    if any(loop.axis in s.over for s in inside):
        return [loop]
    marks = sorted({m for s in inside for m in _breaks(s, loop.axis)})
    ends = [0, *marks, loop.axis.extent]
    if not marks or len(ends) - 1 > _PIECES:
        return [loop]
    return [piece(program, loop, begin, end) for begin, end in pairwise(ends)]


def _breaks(s: Statement, axis: Expr) -> set[int]:
    """Values of an axis at which an expression of a statement takes another form."""
    found: set[int] = set()
    for x in E.walk(s.value, *s.index):
        if x.op in ("imod", "idiv"):
            if (k := offset(x.args[0], axis)) is not None:
                first, last = k // x.value + 1, (k + axis.extent - 1) // x.value + 1
                if isinstance(last - first, int):
                    found.update(m * x.value - k for m in span(first, last))
        elif x.op in ("lt", "le", "gt", "ge", "eq", "ne") and x.args[0].dtype == "i64":
            f = line(E.plus(x.args[0], E.times(x.args[1], -1)))
            if f is not None and f.atom is axis and f.step in (1, -1):
                at = -f.start * f.step
                found.update((at, at + 1))
    return {m for m in found if 0 < m < axis.extent}


def piece(program: Program, loop: Loop, begin: int, end: int) -> Loop:
    """A copy of an innermost loop, for the values begin..end of its axis."""
    axis = E.axis(end - begin, loop.axis.value[0][0])
    body = copy(program, loop.body, {loop.axis: E.plus(axis, begin)})
    for s in body:
        if isinstance(s, Statement):
            s.vector = axis
    return Loop(axis, body)
