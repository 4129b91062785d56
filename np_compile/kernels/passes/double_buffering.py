"""Double buffering: what is updated again and again from its neighbours goes to a copy and back.

    t[i] = x[i] + x[2+i]                        v = x
    x[1+i] = t[i]                               t[i] = x[i] + x[2+i]
    u[i] = x[i] + x[2+i]              ->        v[1+i] = t[i]
    x[1+i] = u[i]                               u[i] = v[i] + v[2+i]
                                                x[1+i] = u[i]

No statement then stores to what it is computed from, so the temporaries become registers
(`array_contraction`), and an update is one pass over memory in place of two.
"""

from __future__ import annotations

from ..ir import expr as E
from ..ir.program import Buffer, Program, Statement, accesses
from ..target import Target
from .inline import store_of


def double_buffering(program: Program, machine: Target) -> Program:
    """The program with such updates."""
    for x in list(program.buffers):
        if x.kind in ("input", "output", "temporary"):
            updates = _updates(program, x)
            if len(updates) > 1:
                _alternate(program, x, updates)
    return program


def _updates(program: Program, x: Buffer) -> list[Statement]:
    """The first of the longest runs of updates of an array: each stores to the same box, and what
    else touches the array in between reads it."""
    best: list[Statement] = []
    run: list[Statement] = []
    for k, step in enumerate(program.steps):
        if _is_update(program, k, x):
            assert isinstance(step, Statement)
            if run and store_of(run[0]) != store_of(step):
                run = []
            run.append(step)
            best = max(best, run[:], key=len)
        elif not isinstance(step, Statement) or x in accesses(step)[1]:
            run = []
    return best


def _is_update(program: Program, k: int, x: Buffer) -> bool:
    """Whether a step stores to an array what a statement before has made of other elements of it,
    and nobody else reads."""
    s = program.steps[k]
    if not isinstance(s, Statement) or s.target is not x or store_of(s) is None:
        return False
    if s.value.op != "load" or s.value.value.kind != "temporary" or s.value.args != s.axes:
        return False
    t = s.value.value
    touching = [p for p in program.steps if p is not s and any(t in part for part in accesses(p))]
    first = touching[0] if len(touching) == 1 else None
    if not isinstance(first, Statement) or first.index != first.axes:
        return False
    at = dict(zip(first.axes, s.axes, strict=True))
    return any(
        y.value is x and tuple(E.substitute(i, at) for i in y.args) != s.index
        for y in first.reads()
    )


def _alternate(program: Program, x: Buffer, updates: list[Statement]) -> None:
    """Have every other one of these updates go to a copy, and what follows it read that; the last
    one goes to the array, and so does the first of an odd number, which reads the copy."""
    other = program.buffer("other", x.dtype, x.shape)
    to_other = E.loads_replaced(lambda e: E.load(other, e.args) if e.value is x else None)
    axes = tuple(E.axis(n, "c") for n in x.shape)
    copy = Statement(axes, other, axes, E.load(x, axes), vector=axes[-1], line=updates[0].line)
    begin = _begin(program, updates[0])
    there = len(updates) % 2 == 1  # whether the array's newest state is in the copy
    for step in program.steps[begin : program.steps.index(updates[-1]) + 1]:
        assert isinstance(step, Statement)
        if there:
            step.map(to_other)
        if step in updates:
            there = not there
            if there:
                step.target = other
    program.steps.insert(begin, copy)


def _begin(program: Program, update: Statement) -> int:
    """The place of the statement that makes what the first update stores, or a later one, if the
    array is written to in between."""
    k = program.steps.index(update)
    (made,) = (y.value for y in update.reads())
    while k > 0:
        before = program.steps[k - 1]
        if not isinstance(before, Statement) or before.target is update.target:
            return k
        k -= 1
        if before.target is made:
            return k
    return k
