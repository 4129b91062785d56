"""Scheduling: which loops run in parallel chunks, as vectors, in strips, or jammed.

parallel    the outermost loop of a nest, in chunks that the threads of the pool take
simd        a loop without loops inside: vectors along its axis; reductions over it keep one
            partial result a lane
strip       a loop with loops inside whose statements all walk memory along its axis: strips of some
            vectors, and each statement inside runs for a whole strip
rows        a loop around reductions along its rows, with much to compute of their results:
            that is done as vectors, for a strip of rows
unroll      a few elements from places of their own, each read for itself: the C compiler puts them
            together to vectors
jam         a loop around running reductions: each step of theirs runs for a few of its iterations,
            whose additions do not wait for each other
"""

from __future__ import annotations

from collections.abc import Iterator

from ..analysis.access import coefficients
from ..analysis.cost import chunk, cost, estimate, gathers
from ..analysis.dependence import reads_elsewhere
from ..analysis.parallel import independent, ordered_by, ring, serial
from ..analysis.vectors import strip_width
from ..ir import expr as E
from ..ir.program import Loop, Program, Statement, is_in_order, statements
from ..target import Target


def schedule(program: Program, machine: Target) -> Program:
    """The program with marks on its loops, and chunk sizes on those that run in parallel."""
    for step in program.steps:
        if not isinstance(step, Loop):
            continue
        _vectors(step, machine)
        if independent(step):
            step.grain = chunk(
                estimate(step, machine),
                step.axis.extent,
                strip_width(step, True, machine),
                machine,
            )
            if step.grain < step.axis.extent:
                step.marks.add("parallel")
    return program


def _vectors(loop: Loop, machine: Target) -> None:
    inside = list(statements(loop))
    inner = [b for b in loop.body if isinstance(b, Loop)]
    if not inner:
        if loop.axis.extent <= machine.picked_elements and all(_picks(s) for s in inside):
            loop.marks.add("unroll")
            return
        ordered = any(serial(s, loop.axis) for s in inside) or ring(inside, loop.axis)
        if len(inside) == 1 and _walks(inside[0], loop.axis):
            ordered = False
        if loop.axis.extent > 1 and not ordered:
            loop.marks.add("simd")
        return
    deeper = [s for s in inside if s.axes[-1:] != (loop.axis,)]
    walks = all(s.vector is loop.axis for s in deeper)
    in_order = any(loop.axis in s.over and is_in_order(s) for s in inside)
    if walks and loop.axis.extent >= 4 and not in_order and not ordered_by(inside, loop.axis):
        loop.marks.add("strip")
        return
    if _jammed(loop, inside):
        loop.marks.add("jam")
        return
    for b in inner:
        _vectors(b, machine)
    if _rows(loop, inside, machine):
        loop.marks.add("rows")


def _picks(s: Statement) -> bool:
    """Whether a statement copies an element from a place that data give to a local array."""
    return s.op is None and s.target.kind == "local" and gathers(s.value)


def _rows(loop: Loop, inside: list[Statement], machine: Target) -> bool:
    """Whether what a loop computes beside the loops inside is to be done for strips of it."""
    own = [s for s in loop.body if isinstance(s, Statement)]
    inner = [b for b in loop.body if isinstance(b, Loop)]
    return (
        loop.axis.extent >= machine.row_iterations
        and sum(cost(s.value) for s in own) >= machine.row_cycles
        and not any(b.marks - {"simd"} or any(isinstance(c, Loop) for c in b.body) for b in inner)
        and all(s.target.size <= machine.row_elements for s in inside if s.target.kind == "local")
        and not any(loop.axis in s.over for s in inside)
        and not ordered_by(inside, loop.axis)
    )


def _jammed(loop: Loop, inside: list[Statement]) -> bool:
    """Whether a few iterations of a loop are to take turns: all that they do is to run
    sums, products or extremes, each of which waits for the one before it."""
    if loop.axis.extent < 2 or any(loop.axis in s.over for s in inside):
        return False
    if ordered_by(inside, loop.axis):
        return False
    first = loop.body[0]
    if len(loop.body) == 1 and isinstance(first, Loop) and first.axis.extent > 2:
        deeper = any(isinstance(b, Loop) for b in first.body)
        if deeper and _jammed(first, inside):
            return False  # neighbours along that loop are nearer to each other in memory
    return all(
        any(s.scan and leaf.axis in s.over for s in statements(leaf)) for leaf in _leaves(loop)
    )


def _leaves(loop: Loop) -> Iterator[Loop]:
    """The loops without loops inside."""
    inner = [b for b in loop.body if isinstance(b, Loop)]
    for b in inner:
        yield from _leaves(b)
    if not inner:
        yield loop


def _walks(s: Statement, axis: E.Expr) -> bool:
    """Whether a statement's target is walked in equal steps, from a place that the loops around it
    give, maybe by an index from data."""
    atoms = coefficients(s.index[0])
    return (
        atoms.pop(axis, 0) != 0
        and not s.over
        and not any(axis in E.axes_of(a) for a in atoms)
        and not any(x.value is s.target for x in E.loads(*s.index))
        and not reads_elsewhere(s)
    )
