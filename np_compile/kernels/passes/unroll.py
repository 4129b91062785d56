"""Reduction unrolling: a reduction of a few elements is an expression.

A loop of three steps inside one of a million has no vectors; written out, the outer loop has.
"""

from __future__ import annotations

from itertools import product

from np_compile.size import reaches

from ..ir import expr as E
from ..ir.expr import Expr, number
from ..ir.program import COMBINE, Program, Statement
from ..target import Target

# Most elements of such a reduction, and nodes of the expression.
_MOST = 8
_NODES = 200


def unroll(program: Program, machine: Target) -> Program:
    """The program with such reductions written out."""
    for s in program.steps:
        if isinstance(s, Statement) and _short(s, machine.unrolled_results):
            values = [
                (E.substitute(s.value, at), None if s.rank is None else E.substitute(s.rank, at))
                for at in _steps(s)
            ]
            if s.op in COMBINE:
                s.value = _folded(COMBINE[s.op], [v for v, _ in values])
                if s.op == "sum" and not any(_is_square(v) for v, _ in values):
                    # Of negative zeros it is zero, as sums begin with that.
                    s.value = E.scalar("add", s.value, number(0, s.value.dtype))
            else:
                s.value = _position(str(s.op), values)
            s.axes = tuple(a for a in s.axes if a not in s.over)
            s.op, s.over, s.rank = None, (), None
    return program


def _short(s: Statement, fewest: int) -> bool:
    if not s.over or s.scan:
        return False
    steps = results = 1
    for a in s.axes:
        if a in s.over:
            steps *= a.extent
        else:
            results *= a.extent
    return (
        not reaches(steps, _MOST + 1)
        and reaches(results, fewest)
        and len(E.walk(s.value)) * steps <= _NODES
    )


def _is_square(x: Expr) -> bool:
    """Whether x is a product of something with itself, and no negative zero."""
    return x.op == "mul" and x.args[0] is x.args[1]


def _steps(s: Statement) -> list[dict[Expr, Expr]]:
    """The values of the reduced axes, in order."""
    ranges = (range(a.extent) for a in s.over)
    return [{a: E.integer(k) for a, k in zip(s.over, at, strict=True)} for at in product(*ranges)]


def _folded(op: str, values: list[Expr]) -> Expr:
    """All values in one: sums of eight as a tree, as NumPy's, others one after the other. (Of a
    tree of extremes gcc makes no vectors.)"""
    if len(values) == _MOST and op == "add":
        while len(values) > 1:
            values = [E.scalar(op, a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
        return values[0]
    total = values[0]
    for v in values[1:]:
        total = E.scalar(op, total, v)
    return total


def _position(op: str, values: list[tuple[Expr, Expr | None]]) -> Expr:
    """Where the first of the best values is; a NaN is better than a number."""
    best = _folded("maximum" if op == "argmax" else "minimum", [v for v, _ in values])
    *others, (_, place) = values
    assert place is not None
    for v, at in reversed(others):
        assert at is not None
        found = E.scalar("eq", v, best)
        if v.dtype[0] in "fb" and v.dtype != "bool":
            found = E.scalar("or", found, E.scalar("ne", v, v))
        place = E.scalar("where", found, at, place)
    return place
