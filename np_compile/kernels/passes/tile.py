"""Loop tiling: nests over an array and a transposed one go through both in square tiles.

Along each of the two axes one of the arrays is walked in large steps, and each of its elements
brings a whole cache line. A tile's lines stay in the first-level cache until all of their elements
are used.
"""

from __future__ import annotations

from np_compile.size import Size, reaches, some

from ..analysis.access import coefficients
from ..analysis.parallel import serial
from ..ir import expr as E
from ..ir.copying import copy
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr
from ..ir.program import Loop, Program, Statement, looped, statements
from ..target import Target

_LINE = 8  # elements of a cache line, roughly


def tile(program: Program, machine: Target) -> Program:
    """The program with such loops in tiles, and loops over what is left at the edges."""
    steps = []
    for step in program.steps:
        pair = _pair(step, machine) if isinstance(step, Loop) else None
        if pair is None:
            steps.append(step)
        else:
            steps += _tiles(program, *pair, machine.tile_side)
    program.steps = steps
    return program


def _pair(loop: Loop, machine: Target) -> tuple[Loop, Loop] | None:
    """Two perfectly nested loops of independent stores that walk memory along both axes."""
    if len(loop.body) != 1 or not isinstance(loop.body[0], Loop):
        return None
    inner = loop.body[0]
    inside = list(statements(inner))
    if any(isinstance(b, Loop) for b in inner.body) or any(s.op is not None for s in inside):
        return None
    if any(serial(s, loop.axis) for s in inside):
        return None
    if not all(reaches(a.extent, 2 * machine.tile_side) for a in (loop.axis, inner.axis)):
        return None
    size = max(DTYPES[s.target.dtype].size for s in inside)
    if not reaches(loop.axis.extent * inner.axis.extent * size, machine.tiled_bytes):
        return None
    steps: set[tuple[bool, bool]] = set()
    for s in inside:
        for index in (s.index, *(x.args for x in s.reads())):
            atoms = coefficients(index[0])
            if any(a not in (loop.axis, inner.axis) for a in atoms):
                return None
            outer, near = atoms.get(loop.axis, 0), atoms.get(inner.axis, 0)
            if abs(outer) == 1 and _is_far(near):
                steps.add((True, False))
            elif abs(near) == 1 and _is_far(outer):
                steps.add((False, True))
        if s.target.kind not in ("register", "local") and not (
            {loop.axis, inner.axis} <= E.axes_of(s.index[0])
        ):
            return None
    return (loop, inner) if len(steps) == 2 else None


def _is_far(step: int | Size) -> bool:
    """Whether neighbours that are so many elements apart lie in other cache lines."""
    return reaches(step, _LINE + 1) or reaches(-step, _LINE + 1)


def _tiles(program: Program, outer: Loop, inner: Loop, side: int) -> list[Loop]:
    made = []
    n, m = outer.axis.extent, inner.axis.extent
    rows, columns = n - n % side, m - m % side
    for begin, end, left, right in (
        (0, rows, 0, columns), (0, rows, columns, m), (rows, n, 0, m)
    ):  # fmt: skip
        if some(end - begin) and some(right - left):
            made.append(_region(program, outer, inner, (begin, end), (left, right), side))
    return made


def _region(
    program: Program, outer: Loop, inner: Loop, rows: tuple[int, int], columns: tuple[int, int],
    side: int,
) -> Loop:  # fmt: skip
    """The iterations of a rectangle, by tiles where it has several."""
    loops: list[Expr] = []
    places: dict[Expr, Expr] = {}
    near: list[Expr] = []
    for axis, (begin, end) in ((outer.axis, rows), (inner.axis, columns)):
        length = end - begin
        step = E.axis(min(length, side), axis.value[0][0])
        place: Expr = E.plus(step, begin)
        if length > side and length % side == 0:
            block = E.axis(length // side, "w")
            loops.append(block)
            place = E.plus(place, E.times(block, side))
        elif length > side:
            step = E.axis(length, axis.value[0][0])
            place = E.plus(step, begin)
        near.append(step)
        places[axis] = place
    body = copy(program, inner.body, places)
    for s in body:
        assert isinstance(s, Statement)
        s.axes = (*loops, *near)
        s.vector = near[-1]
    (first,) = looped((*loops, *near), body)
    assert isinstance(first, Loop)
    return first
