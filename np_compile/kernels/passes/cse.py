"""Common subexpression elimination over whole arrays: equal statements are computed once."""

from __future__ import annotations

from ..ir import expr as E
from ..ir.expr import Expr
from ..ir.program import Buffer, Program, Statement, accesses


def cse(program: Program) -> Program:
    """The program with loads of a temporary's double replaced by loads of the first."""
    writers: dict[Buffer, int] = {}
    for step in program.steps:
        for b in accesses(step)[1]:
            writers[b] = writers.get(b, 0) + 1
    canonical: dict[tuple[int, int], Expr] = {}
    found: dict[tuple, Buffer] = {}
    same: dict[Buffer, Buffer] = {}

    def change(x: Expr) -> Expr | None:
        if x.op == "load" and x.value in same:
            args = tuple(E.transform(i, change, memo) for i in x.args)
            return E.make("load", args, x.dtype, same[x.value])
        return None

    for step in program.steps:
        if not isinstance(step, Statement):
            continue
        memo: dict[Expr, Expr] = {}
        if same:
            step.value = E.transform(step.value, change, memo)
            step.index = tuple(E.transform(i, change, memo) for i in step.index)
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
        inner: dict[Expr, Expr] = {}
        key = (
            tuple(renamed.values()), b.dtype, b.shape, b.strides, step.op, step.scan,
            tuple(renamed[a] for a in step.over), E.substitute(step.value, renamed, inner),
            None if step.rank is None else E.substitute(step.rank, renamed, inner),
            tuple(E.substitute(i, renamed, inner) for i in step.index),
        )  # fmt: skip
        first = found.setdefault(key, b)
        if first is not b and b.kind == "temporary":
            same[b] = first
    return program
