"""Loop collapsing: perfectly nested loops that walk memory as one become one."""

from __future__ import annotations

from ..ir import expr as E
from ..ir.expr import Expr
from ..ir.program import Loop, Program, statements


def collapse(program: Program) -> Program:
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
    made: list[tuple] = []
    for s in inside:
        memo: dict[Expr, Expr] = {}
        try:
            made.append((
                s, _joined(s.value, a, b, one, memo),
                tuple(_joined(i, a, b, one, memo) for i in s.index),
                None if s.rank is None else _joined(s.rank, a, b, one, memo),
            ))  # fmt: skip
        except _Apart:
            return False
    for s, value, index, rank in made:
        s.value, s.index, s.rank = value, index, rank
        s.axes = tuple(one if x is a else x for x in s.axes if x is not b)
        s.over = tuple(one if x is a else x for x in s.over if x is not b)
        s.vector = one if s.vector in (a, b) else s.vector
    outer.axis, outer.body = one, inner.body
    return True


class _Apart(Exception):
    """Two axes that an expression does not use as one."""


def _joined(x: Expr, a: Expr, b: Expr, one: Expr, memo: dict[Expr, Expr]) -> Expr:
    """x with a*extent(b) + b written as one axis."""
    found = memo.get(x)
    if found is not None:
        return found
    both = {a, b}
    if not (E.axes_of(x) & both):
        made = x
    elif x.op == "axis":
        raise _Apart
    elif x.op == "affine":
        k, atoms = E.terms(x)
        outer, inner = atoms.pop(a, 0), atoms.pop(b, 0)
        if outer != inner * b.extent:
            raise _Apart
        atoms = {_joined(y, a, b, one, memo): c for y, c in atoms.items()}
        if inner:
            atoms[one] = inner
        made = E.affine(k, atoms)
    else:
        made = E.rebuild(x, tuple(_joined(y, a, b, one, memo) for y in x.args))
    memo[x] = made
    return made
