"""Index linearization: one index for each access, the element's place in memory."""

from __future__ import annotations

from ..analysis.access import linear
from ..ir import expr as E
from ..ir.program import Buffer, Program, statements
from ..target import Target


def linearize(program: Program, machine: Target) -> Program:
    """The program with one index for each access: the sum of index times stride."""
    flat: dict[Buffer, tuple[int, ...]] = {}
    for b in program.buffers:
        flat[b] = b.strides
        span = 1 + sum((n - 1) * s for n, s in zip(b.shape, b.strides, strict=True))
        b.shape, b.strides = (span if b.shape and 0 not in b.shape else b.size,), (1,)

    placed = E.loads_replaced(lambda x: E.load(x.value, (linear(x.args, flat[x.value]),)))
    for step in program.steps:
        for s in statements(step):
            s.map(placed)
            s.index = (linear(s.index, flat[s.target]),)
    return program
