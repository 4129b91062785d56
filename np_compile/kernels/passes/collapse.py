"""Loop collapsing: perfectly nested loops that walk memory as one become one."""

from __future__ import annotations

from ..analysis.access import split
from ..ir import expr as E
from ..ir.expr import Expr
from ..ir.program import Loop, Program, statements
from ..target import Target


def collapse(program: Program, machine: Target) -> Program:
    """The program with perfectly nested loops merged where every index allows it."""
    for step in program.steps:
        if isinstance(step, Loop):
            _collapse(step)
    return program


def _collapse(loop: Loop) -> None:
    while len(loop.body) == 1 and isinstance(loop.body[0], Loop) and _merge(loop, loop.body[0]):
        pass
    for inner in loop.body:
        if isinstance(inner, Loop):
            _collapse(inner)


def _merge(outer: Loop, inner: Loop) -> bool:
    """Make one loop of two, in the place of the outer one; false where an index forbids it."""
    a, b = outer.axis, inner.axis
    inside = list(statements(inner))
    for s in inside:
        if (a in s.over) != (b in s.over) or (s.scan and (a in s.over)):
            return False
    one = E.axis(a.extent * b.extent, "k")
    joined = _joined(a, b, one)
    try:
        for s in inside:
            for part in s.parts:
                joined(part)
    except _Apart:
        return False
    for s in inside:
        s.map(joined)
        s.axes = tuple(one if x is a else x for x in s.axes if x is not b)
        s.over = tuple(one if x is a else x for x in s.over if x is not b)
        s.vector = one if s.vector in (a, b) else s.vector
    outer.axis, outer.body = one, inner.body
    return True


class _Apart(Exception):
    """Two axes that an expression does not use as one."""


def _joined(a: Expr, b: Expr, one: Expr) -> E.Rewrite:
    """A rewriter of a*extent(b) + b as one axis. Errors: _Apart."""

    def change(x: Expr, again: E.Rewrite) -> Expr | None:
        if a not in E.axes_of(x) and b not in E.axes_of(x):
            return x
        mine, rest = split(x, lambda y: y is a or y is b)
        if mine.get(a, 0) != mine.get(b, 0) * b.extent:
            raise _Apart
        return E.plus(again(rest), E.times(one, mine[b])) if mine else None

    return E.rewriter(change)
