"""Access functions: how an index moves with its axes.

An index is a sum of a constant and of atoms (axes, or what is not affine), each times a
coefficient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..ir import expr as E
from ..ir.expr import Expr
from ..ir.program import Buffer

Index = Sequence[Expr]


class Line(NamedTuple):
    """An index start + step * atom."""

    start: int
    atom: Expr
    step: int

    def crossing(self, end: int) -> int:
        """The first value of the atom on the far side of where the index goes from below `end` to
        `end`, or back."""
        k, c = self.start, self.step
        return -((k - end) // c) if c > 0 else (k - end) // -c + 1

    def within(self, lo: int, hi: int) -> tuple[int, int]:
        """The values of the atom for which the index is in lo..hi: the first, and the one after the
        last."""
        first, last = sorted((self.crossing(lo), self.crossing(hi)))
        return first, last


def coefficients(i: Expr) -> dict[Expr, int]:
    """The atoms of an index."""
    return E.terms(i)[1]


def start(i: Expr) -> int:
    """What an index is where all of its atoms are zero."""
    return E.terms(i)[0]


def split(i: Expr, which: Callable[[Expr], bool]) -> tuple[dict[Expr, int], Expr]:
    """Some of the atoms of an index, and the rest of it."""
    atoms = coefficients(i)
    mine = {a: atoms.pop(a) for a in list(atoms) if which(a)}
    return mine, E.affine(start(i), atoms)


def coefficient(i: Expr, axis: Expr) -> int:
    """What an index grows by from one value of an axis to the next, but for atoms that depend on
    it."""
    return coefficients(i).get(axis, 0)


def line(i: Expr) -> Line | None:
    """An index of one atom; None of others."""
    constant, atoms = E.terms(i)
    if len(atoms) != 1:
        return None
    ((atom, step),) = atoms.items()
    return Line(constant, atom, step)


def offset(i: Expr, axis: Expr) -> int | None:
    """The constant that an index is ahead of an axis; None where it is no constant."""
    found = line(i)
    return found.start if found and found.atom is axis and found.step == 1 else None


def distance(i: Expr, j: Expr) -> int | None:
    """The constant that an index is ahead of another; None where it is no constant."""
    apart = E.plus(i, E.times(j, -1))
    return None if coefficients(apart) else start(apart)


def linear(index: Index, strides: Sequence[int]) -> Expr:
    """The place in memory of an element: the sum of index times stride."""
    place: Expr = E.integer(0)
    for i, s in zip(index, strides, strict=True):
        place = E.plus(place, E.times(i, s))
    return place


def interval(i: Expr, ranges: Mapping[Expr, tuple[int, int]]) -> tuple[int, int]:
    """The least and the greatest value of an index. ranges: of atoms, where they are not whole: the
    first value, and the one after the last."""
    constant, atoms = E.terms(i)
    lo = hi = constant
    for atom, c in atoms.items():
        if atom in ranges:
            low, high = ranges[atom][0], ranges[atom][1] - 1
        else:
            low, high = E.bounds(atom)
        lo, hi = lo + min(c * low, c * high), hi + max(c * low, c * high)
    return lo, hi


def inverse(index: Index, at: Index) -> dict[Expr, Expr]:
    """The values of axes for which an index, each part of which grows or falls by one with one
    axis, is `at`."""
    lines = ((line(i), x) for i, x in zip(index, at, strict=True))
    return {f.atom: E.times(E.plus(x, -f.start), f.step) for f, x in lines if f is not None}


def grows(x: Expr, axes: Sequence[Expr]) -> bool:
    """Whether x grows from each iteration of loops over the axes to the next."""
    atoms = coefficients(x)
    reach = 0
    for a in reversed(axes):
        step = atoms.pop(a, 0)
        if step <= reach:
            return False
        reach += step * (a.extent - 1)
    return not atoms


def stride(buffer: Buffer, index: tuple[Expr, ...], axis: Expr) -> int | None:
    """Elements between neighbours along an axis; None where the index is not affine in it."""
    total = 0
    for i, s in zip(index, buffer.strides, strict=True):
        for atom, c in coefficients(i).items():
            if atom is axis:
                total += c * s
            elif axis in E.axes_of(atom):
                if (
                    atom.op == "imod"
                    and (inner := coefficients(atom.args[0]).get(axis)) is not None
                ):
                    total += c * s * inner
                else:
                    return None
    return total
