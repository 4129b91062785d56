"""Whether two accesses can mean the same element, and in which iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from . import expr as E
from .expr import Expr
from .ir import Statement

Index = Sequence[Expr]


def disjoint(a: Index, b: Index) -> bool:
    """Whether no element is at both indices, whatever the values of their axes."""
    return any(_apart(x, y) for x, y in zip(a, b, strict=True))


def _apart(x: Expr, y: Expr) -> bool:
    (xl, xh), (yl, yh) = E.bounds(x), E.bounds(y)
    if xh < yl or yh < xl:
        return True
    k, atoms = E.terms(x)
    m, others = E.terms(y)
    step = gcd(*atoms.values(), *others.values())
    return step > 1 and (k - m) % step != 0


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

    known: axes of b that are known to be axes of a.
    """
    for x, y in zip(a, b, strict=True):
        k, atoms = E.terms(x)
        m, others = E.terms(y)
        c = atoms.pop(axis, 0)
        if c == 0 or others.pop(renamed, 0) != c or k != m:
            continue
        others = {E.substitute(atom, known): n for atom, n in others.items()}
        if atoms == others and all(_fixed(atom, known) for atom in atoms):
            return True
        if _small(atoms, c) and _small(others, c):
            return True
    return False


def _fixed(atom: Expr, known: Mapping[Expr, Expr]) -> bool:
    """Whether an atom has one value in an iteration of the known axes."""
    return E.axes_of(atom) <= set(known.values()) and not E.loads(atom)


def _small(atoms: Mapping[Expr, int], step: int) -> bool:
    """Whether a sum of atoms stays below one step, so that the step's multiple decides."""
    lo = hi = 0
    for atom, c in atoms.items():
        low, high = E.bounds(atom)
        lo += min(c * low, c * high)
        hi += max(c * low, c * high)
    return lo >= 0 and hi < abs(step)


def conflicts(first: Statement, second: Statement) -> list[tuple[Index, Index]]:
    """Pairs of indices, of `first` and of `second`, at which one writes what the other touches."""
    pairs: list[tuple[Index, Index]] = [
        *((first.index, x.args) for x in second.reads() if x.value is first.target),
        *((x.args, second.index) for x in first.reads() if x.value is second.target),
    ]
    if first.target is second.target:
        pairs.append((first.index, second.index))
    return [p for p in pairs if not disjoint(*p)]
