"""Dependence tests: can two accesses meet in one element, and in which iterations."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from ..ir import expr as E
from ..ir.expr import Expr
from ..ir.program import Statement
from .access import Index, coefficients, start


def disjoint(a: Index, b: Index) -> bool:
    """Whether no element is at both indices, whatever the values of their axes."""
    return any(_apart(x, y) for x, y in zip(a, b, strict=True))


def _apart(x: Expr, y: Expr) -> bool:
    (xl, xh), (yl, yh) = E.bounds(x), E.bounds(y)
    if xh < yl or yh < xl:
        return True
    step = gcd(*coefficients(x).values(), *coefficients(y).values())
    return step > 1 and (start(x) - start(y)) % step != 0


def reads_elsewhere(statement: Statement) -> bool:
    """Whether a statement reads elements of its target that another iteration of it writes."""
    return any(
        x.value is statement.target
        and x.args != statement.index
        and not disjoint(x.args, statement.index)
        for x in statement.reads()
    )


def same_iteration(
    a: Index, b: Index, axis: Expr, renamed: Expr, known: Mapping[Expr, Expr]
) -> bool:
    """Whether equal elements at `a` and `b` mean equal values of `axis` in a and `renamed` in b.

    known: axes of b that are known to be axes of a, with the same value in both.
    """
    for x, y in zip(a, b, strict=True):
        atoms, others = coefficients(x), coefficients(y)
        c = atoms.pop(axis, 0)
        if c == 0 or others.pop(renamed, 0) != c or start(x) != start(y):
            continue
        others = {E.substitute(atom, known): n for atom, n in others.items()}
        for atom in [atom for atom, n in atoms.items() if others.get(atom) == n]:
            if _fixed(atom, known):
                del atoms[atom], others[atom]
        if _decides(axis, c, atoms, others):
            return True
    return False


def _fixed(atom: Expr, known: Mapping[Expr, Expr]) -> bool:
    """Whether an atom has one value in an iteration of the known axes."""
    return E.axes_of(atom) <= set(known.values()) and not E.loads(atom)


def _decides(axis: Expr, c: int, atoms: Mapping[Expr, int], others: Mapping[Expr, int]) -> bool:
    """Whether equal sums, of c times an axis and of atoms or others, mean equal values of the axis.

    The differences of the two sums' parts are looked at as the digits of a number: where each is
    worth more than all the smaller ones can make up for, zero has only digits of zero.
    """
    differ: dict[int, int] = {}
    for n in {*atoms.values(), *others.values()}:
        (xl, xh), (yl, yh) = (
            E.bounds(E.affine(0, {z: 1 for z, m in part.items() if m == n}))
            for part in (atoms, others)
        )
        differ[n] = max(xh - yl, yh - xl)
    below = sum(abs(n) * d for n, d in differ.items() if abs(n) <= abs(c))
    if below >= abs(c):
        return False
    below += abs(c) * (axis.extent - 1)
    for n in sorted((n for n, d in differ.items() if d and abs(n) > abs(c)), key=abs):
        if abs(n) <= below:
            return False
        below += abs(n) * differ[n]
    return True


def conflicts(first: Statement, second: Statement) -> list[tuple[Index, Index]]:
    """Pairs of indices, of `first` and of `second`, at which one writes what the other touches."""
    pairs: list[tuple[Index, Index]] = [
        *((first.index, x.args) for x in second.reads() if x.value is first.target),
        *((x.args, second.index) for x in first.reads() if x.value is second.target),
    ]
    if first.target is second.target:
        pairs.append((first.index, second.index))
    return [p for p in pairs if not disjoint(*p)]
