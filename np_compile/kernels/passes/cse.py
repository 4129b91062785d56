"""Common subexpression elimination over whole arrays: equal statements are computed once."""

from __future__ import annotations

from ..ir import expr as E
from ..ir.expr import Expr
from ..ir.program import Buffer, Program, Statement, accesses
from ..target import Target


def cse(program: Program, machine: Target) -> Program:
    """The program with loads of a temporary's double replaced by loads of the first."""
    writers: dict[Buffer, int] = {}
    for step in program.steps:
        for b in accesses(step)[1]:
            writers[b] = writers.get(b, 0) + 1
    canonical: dict[tuple[int, int], Expr] = {}
    found: dict[tuple, Buffer] = {}
    same: dict[Buffer, Buffer] = {}

    merged = E.loads_replaced(lambda x: E.load(same[x.value], x.args) if x.value in same else None)
    for step in program.steps:
        if not isinstance(step, Statement):
            continue
        if same:
            step.map(merged)
        b = step.target
        if b.kind not in ("temporary", "output") or writers[b] != 1:
            continue
        if any(writers.get(x.value, 0) > (x.value.kind == "temporary") for x in step.reads()):
            continue
        renamed = {}
        for k, a in enumerate(step.axes):
            name = (k, a.extent)
            if name not in canonical:
                canonical[name] = E.axis(a.extent)
            renamed[a] = canonical[name]
        key = (
            tuple(renamed.values()), b.dtype, b.shape, b.strides, step.op, step.scan,
            tuple(renamed[a] for a in step.over), tuple(map(E.axes_replaced(renamed), step.parts)),
        )  # fmt: skip
        first = found.setdefault(key, b)
        if first is not b and b.kind == "temporary":
            same[b] = first
    return program
