"""Cost model: cycles of an expression, nanoseconds of a nest, iterations of a thread's chunk."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr
from ..ir.program import Loop
from ..ir.scalars import OPS
from ..ir.size import Size, evaluated, hint
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

    def known(values: Mapping[str, int] | None) -> int:
        n = hint(extent) if values is None else evaluated(extent, values)
        return chunk(estimate(loop, machine, values), n, width, machine)

    if isinstance(extent, Size):
        return extent.facts.later(lambda values: max(known(values), 1), 1)
    return known(None)


def estimate(loop: Loop, machine: Target, values: Mapping[str, int] | None = None) -> float:
    """Estimated nanoseconds of a nest, for these values of the symbols of sizes."""
    return _time(loop, 1.0, False, machine, values)


def _time(
    loop: Loop, times: float, jammed: bool, machine: Target, values: Mapping[str, int] | None
) -> float:
    """As `estimate`, of a loop that runs so many times; jammed: in iterations that take turns."""
    extent = loop.axis.extent
    n = (hint(extent) if values is None else evaluated(extent, values)) * times
    jammed = jammed or loop.kind == "jam"
    total = 0.0
    for step in loop.body:
        if isinstance(step, Loop):
            total += _time(step, n, jammed, machine, values)
        else:
            size = DTYPES[step.target.dtype].size
            for x in E.walk(step.value):
                size = max(size, DTYPES[x.dtype].size) if x.op == "load" else size
            cycles = max(cost(step.value), 1) * size / machine.cycle_bytes
            if any(gathers(x) for x in E.walk(step.value)) or (step.op and not step.over):
                cycles += 4
            if step.scan:
                cycles = max(cycles, 1 if jammed else machine.latency)
            total += n * cycles / machine.cycles_per_ns
    return total


_COMPUTED = ("wrap", "known", "load", "idiv", "imod")


def gathers(x: E.Expr) -> bool:
    """Whether x is an element at a place that does not follow from the axes by a sum."""
    return x.op == "load" and any(y.op in _COMPUTED and E.axes_of(y) for y in E.walk(*x.args))
