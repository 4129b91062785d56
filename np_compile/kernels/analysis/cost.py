"""Cost model: cycles of an expression, nanoseconds of a nest, iterations of a thread's chunk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from np_compile.size import Size, function_of, hint

from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr
from ..ir.program import Loop
from ..ir.scalars import OPS
from ..target import Target


def cost(x: Expr) -> int:
    """Cycles an element, roughly, of an expression in a vectorized loop."""
    return sum(_cost(n) for n in E.walk(x))


def _cost(x: Expr) -> int:
    if x.op == "load":
        return 1
    row = OPS.get(x.op)
    return row.cost if row is not None else 0


def chunk(total: float, extent: int, width: int, machine: Target) -> int:
    """Iterations of a chunk of a loop that takes so many nanoseconds: a multiple of width, or all
    where threads are not worth it."""
    if total < machine.parallel_ns:
        return extent
    units = -(-extent // width)
    chunks = int(min(max(total / machine.chunk_ns, 2), machine.chunks, units))
    return -(-units // chunks) * width


def grain(loop: Loop, width: int, machine: Target) -> int | Size:
    """Iterations of a chunk of a nest: of one whose extent is a symbol, another symbol."""
    extent = loop.axis.extent
    if not isinstance(extent, Size):
        return chunk(estimate(loop, machine), extent, width, machine)
    work = _work(loop, (), False, machine)
    numbers = function_of([extent, *(n for extents, _ in work for n in extents)])

    def later(values: Mapping[str, int]) -> int:
        now, *rest = numbers(values)
        return max(chunk(_nanoseconds(work, rest), now, width, machine), 1)

    return extent.facts.later(later, 1)


def estimate(loop: Loop, machine: Target) -> float:
    """Estimated nanoseconds of a nest, for the sizes at hand."""
    work = _work(loop, (), False, machine)
    return _nanoseconds(work, [hint(n) for extents, _ in work for n in extents])


_Work = list[tuple[tuple[int | Size, ...], float]]  # extents that multiply, nanoseconds each time


def _nanoseconds(work: _Work, numbers: Iterable[int]) -> float:
    """Nanoseconds of work. numbers: its extents, one after the other."""
    rest = iter(numbers)
    total = 0.0
    for extents, each in work:
        for _ in extents:
            each *= next(rest)
        total += each
    return total


def _work(loop: Loop, around: tuple[int | Size, ...], jammed: bool, machine: Target) -> _Work:
    """What a nest does, within loops of these extents; jammed: in iterations that take turns."""
    extents = (*around, loop.axis.extent)
    jammed = jammed or loop.kind == "jam"
    found: _Work = []
    cycles = 0.0
    for step in loop.body:
        if isinstance(step, Loop):
            found += _work(step, extents, jammed, machine)
            continue
        size = DTYPES[step.target.dtype].size
        for x in E.walk(step.value):
            size = max(size, DTYPES[x.dtype].size) if x.op == "load" else size
        own = max(cost(step.value), 1) * size / machine.cycle_bytes
        if any(gathers(x) for x in E.walk(step.value)) or (step.op and not step.over):
            own += 4
        if step.scan:
            own = max(own, 1 if jammed else machine.latency)
        cycles += own
    if cycles:
        found.append((extents, cycles / machine.cycles_per_ns))
    return found


_COMPUTED = ("wrap", "known", "load", "idiv", "imod")


def gathers(x: E.Expr) -> bool:
    """Whether x is an element at a place that does not follow from the axes by a sum."""
    return x.op == "load" and any(y.op in _COMPUTED and E.axes_of(y) for y in E.walk(*x.args))
