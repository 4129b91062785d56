"""Copy elision: an array that is copied, changed and copied back is changed in place."""

from __future__ import annotations

from ..ir import expr as E
from ..ir.program import Buffer, Program, Statement, accesses
from ..target import Target


def copy_elision(program: Program, machine: Target) -> Program:
    """The program without such copies: t = x; t[...] = ...; x = t."""
    k = len(program.steps) - 1
    while k > 0:
        step = program.steps[k]
        source = _whole_copy(step)
        if source is not None and source.kind == "temporary":
            assert isinstance(step, Statement)
            first = _start(program, source, step.target, k)
            if first is not None:
                _redirect(program, source, step.target, first, k)
                k -= 1
        k -= 1
    return program


def _whole_copy(step: object) -> Buffer | None:
    """What a statement copies whole, element by element."""
    if not isinstance(step, Statement) or step.op is not None or step.value.op != "load":
        return None
    x = step.value
    if x.args != step.index or x.value.shape != step.target.shape:
        return None
    free = [i for i in step.index if i.op == "axis"]
    full = all(
        (i.op == "axis" and i.extent == n) or (i.op == "const" and n == 1)
        for i, n in zip(step.index, step.target.shape, strict=True)
    )
    return x.value if full and len(set(free)) == len(free) else None


def _start(program: Program, t: Buffer, x: Buffer, last: int) -> int | None:
    """The statement that copies x to t, if between it and `last` only t is touched, and t nowhere
    else."""
    first = None
    for k, step in enumerate(program.steps):
        reads, writes = accesses(step)
        if first is None and _whole_copy(step) is x and writes == {t}:
            first = k
            continue
        if k == last:
            continue
        touched = reads | writes
        if t in touched and (first is None or k > last or not isinstance(step, Statement)):
            return None
        if x in touched and first is not None and k < last:
            return None
    return first if first is not None and first < last else None


def _redirect(program: Program, t: Buffer, x: Buffer, first: int, last: int) -> None:
    moved = E.loads_replaced(lambda e: E.load(x, e.args) if e.value is t else None)
    for step in program.steps[first + 1 : last]:
        if not isinstance(step, Statement):
            continue
        step.map(moved)
        if step.target is t:
            step.target = x
    del program.steps[last], program.steps[first]
