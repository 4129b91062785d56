"""Pass: a program that writes to its arguments looks at all its indices before it does.

An index array with a value out of bounds has to leave the arguments as they are. Where a program
only makes new arrays, the kernels note such a value on the way, and what they made is dropped.
Where it writes to an argument, loops that read the indices alone come before, with a fence after
them.
"""

from __future__ import annotations

from . import expr as E
from .expr import Expr
from .ir import Buffer, Call, Fence, Program, Statement, accesses


def guard(program: Program) -> Program:
    """The program with those loops, where it needs them."""
    steps = program.steps
    first = next((k for k, s in enumerate(steps) if _writes_argument(s)), None)
    if first is None:
        return program
    made: dict[Buffer, int] = {}
    for k, step in enumerate(steps):
        for b in accesses(step)[1]:
            made[b] = k
    looked: set[tuple] = set()
    checks: dict[int, list[Statement]] = {}
    for k, step in enumerate(steps):
        if not isinstance(step, Statement):
            continue
        for x in E.walk(step.value, *step.index):
            if x.op != "wrap":
                continue
            if (x, k >= first) in looked:
                continue
            looked.add((x, k >= first))
            known = all(made.get(y.value, -1) < first for y in E.loads(x))
            checks.setdefault(first if known else k, []).append(_look(program, step, x))
    program.steps = []
    for k, step in enumerate(steps):
        if k in checks:
            program.steps += [*checks[k], Fence()]
        program.steps.append(step)
    return program


def _look(program: Program, s: Statement, x: Expr) -> Statement:
    """A loop that computes an index, and nothing else."""
    axes = tuple(a for a in s.axes if a in E.axes_of(x))
    target = Buffer(f"check{len(program.buffers)}", "i64", (), (), "temporary")
    program.buffers.append(target)
    return Statement(
        axes, target, (), x, op="max" if axes else None, over=axes, line=s.line, calls=s.calls
    )


def _writes_argument(step: object) -> bool:
    if isinstance(step, Statement):
        return step.target.kind == "input"
    return isinstance(step, Call) and any(b.kind == "input" for b in step.writes)
