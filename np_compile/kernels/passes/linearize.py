"""Index linearization: one index for each access, the element's place in memory."""

from __future__ import annotations

from ..ir import expr as E
from ..ir.expr import Expr
from ..ir.program import Buffer, Program, statements
from ..target import Target


def linearize(program: Program, machine: Target) -> Program:
    """The program with one index for each access: the sum of index times stride."""
    flat: dict[Buffer, tuple[int, ...]] = {}
    for b in program.buffers:
        flat[b] = b.strides
        span = 1 + sum((n - 1) * s for n, s in zip(b.shape, b.strides, strict=True))
        b.shape, b.strides = (span if b.shape and 0 not in b.shape else b.size,), (1,)

    def place(b: Buffer, index: tuple[Expr, ...]) -> Expr:
        total: Expr = E.integer(0)
        for i, s in zip(index, flat[b], strict=True):
            total = E.plus(total, E.times(i, s))
        return total

    placed = E.loads_replaced(lambda x: E.load(x.value, (place(x.value, x.args),)))
    for step in program.steps:
        for s in statements(step):
            s.map(placed)
            s.index = (place(s.target, s.index),)
    return program
