"""Scheduling: which loops run in parallel chunks, as vectors, in strips, or jammed, and how wide.

parallel    the outermost loop of a nest, in chunks that the threads of the pool take
vector      a loop without loops inside: vectors along its axis; reductions over it keep one
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

from np_compile.size import Size, reaches

from ..analysis.access import coefficients, offset
from ..analysis.cost import cost, gathers, grain
from ..analysis.dependence import reads_elsewhere
from ..analysis.parallel import independent, ordered_by, ring, serial
from ..analysis.vectors import float_sums, lanes, most_lanes, overlapping, strip_width
from ..ir import expr as E
from ..ir.program import Loop, Program, Statement, is_in_order, statements
from ..ir.scalars import INEXACT
from ..target import Target


def schedule(program: Program, machine: Target) -> Program:
    """The program with loops that say how they run."""
    for step in program.steps:
        if isinstance(step, Loop):
            _decide(step, machine)
            _share(step, machine)
            if step.kind == "vector" and step.lanes == 1:
                _align(step, machine)
    return program


def _share(loop: Loop, machine: Target) -> None:
    """Cut an outermost loop into chunks, if its iterations are independent and worth threads."""
    if not independent(loop):
        return
    strip = loop.kind == "strip"
    width = strip_width(loop, True, machine) if strip else loop.width
    found = grain(loop, width, machine)
    if isinstance(found, Size) or found < loop.axis.extent:
        loop.grain, loop.width = found, width


def _align(loop: Loop, machine: Target) -> None:
    """Where a long loop changes memory in place, its vectors begin at cache lines: one across two
    lines, written just before its neighbour is read, costs half as much again. Not with elementary
    functions, whose vectors round in another way: what they give of an element would follow from
    where it lies."""
    inside = list(statements(loop))
    inexact = any(x.op in INEXACT for s in inside for x in E.walk(s.value))
    if not reaches(loop.axis.extent, machine.aligned_iterations) or inexact:
        return
    read = {x.value for s in inside for x in s.reads()}
    changed = (s for s in inside if s.target in read and s.target.kind not in ("register", "local"))
    places = (s.target for s in changed if offset(s.index[0], loop.axis) is not None)
    loop.aligned = next(places, None)


def _decide(loop: Loop, machine: Target) -> None:
    """The kind of a loop, and of those inside that follow one another; what goes with it."""
    loop.kind = _kind(loop, machine)
    most = most_lanes(loop, machine)
    if not reaches(loop.axis.extent, most):
        most = max(loop.axis.extent, 1)
    if loop.kind in ("vector", "unroll", "rows"):
        loop.width = most
    elif loop.kind == "strip":
        loop.width = strip_width(loop, False, machine)
        if overlapping(loop, machine):
            loop.overlapping = most // machine.latency
    elif loop.kind == "jam":
        few = not reaches(loop.axis.extent, machine.latency)
        loop.width = loop.axis.extent if few else machine.latency
    if loop.kind == "vector" and any(s.over for s in statements(loop)):
        loop.lanes = lanes(loop, machine)
        steps = machine.sum_steps
        if loop.lanes == 1:
            loop.kind, loop.width = "serial", 1
        elif float_sums(loop) and loop.axis.extent > 2 * steps * loop.lanes:
            loop.chain = steps


def _kind(loop: Loop, machine: Target) -> str:
    inside = list(statements(loop))
    inner = [b for b in loop.body if isinstance(b, Loop)]
    if not inner:
        many = reaches(loop.axis.extent, machine.picked_elements + 1)
        if not many and all(_picks(s) for s in inside):
            return "unroll"
        ordered = any(serial(s, loop.axis) for s in inside) or ring(inside, loop.axis)
        if len(inside) == 1 and _walks(inside[0], loop.axis):
            ordered = False
        return "vector" if loop.axis.extent > 1 and not ordered else "serial"
    deeper = [s for s in inside if s.axes[-1:] != (loop.axis,)]
    walks = all(s.vector is loop.axis for s in deeper)
    in_order = any(loop.axis in s.over and is_in_order(s) for s in inside)
    if walks and loop.axis.extent >= 4 and not in_order and not ordered_by(inside, loop.axis):
        return "strip"
    if _jammed(loop, inside):
        return "jam"
    for b in inner:
        _decide(b, machine)
        if b.kind == "vector" and b.lanes == 1 and overlapping(b, machine):
            b.overlapping = most_lanes(b, machine) // machine.latency
    return "rows" if _rows(loop, inside, machine) else "serial"


def _picks(s: Statement) -> bool:
    """Whether a statement copies an element from a place that data give to a local array."""
    return s.op is None and s.target.kind == "local" and gathers(s.value)


def _rows(loop: Loop, inside: list[Statement], machine: Target) -> bool:
    """Whether what a loop computes beside the loops inside is to be done for strips of it."""
    own = [s for s in loop.body if isinstance(s, Statement)]
    inner = [b for b in loop.body if isinstance(b, Loop)]
    return (
        reaches(loop.axis.extent, machine.row_iterations)
        and sum(cost(s.value) for s in own) >= machine.row_cycles
        and all(b.kind in ("serial", "vector") for b in inner)
        and not any(isinstance(c, Loop) for b in inner for c in b.body)
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
