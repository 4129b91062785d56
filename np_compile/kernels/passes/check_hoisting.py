"""Bounds check hoisting: all indices are checked before an argument is written to.

An index array with a value out of bounds has to leave the arguments as they are. Where a program
only makes new arrays, the kernels note such a value on the way, and what they made is dropped.
Where it writes to an argument, loops that read the indices alone come before, with a fence after
them; what follows takes the indices as known to be right.

On a GPU to look at a flag is to wait for it. What follows from integers that the caller has as
numbers is his to check.
"""

from __future__ import annotations

from collections.abc import Collection

from ..analysis.footprint import follows_from
from ..ir import expr as E
from ..ir.expr import Expr
from ..ir.program import Buffer, Call, Fence, Program, Statement, Step, accesses
from ..target import Gpu, Target


def check_hoisting(program: Program, machine: Target) -> Program:
    """The program with those loops, where it needs them."""
    if isinstance(machine, Gpu) and program.integers is not None:
        _leave_to_caller(program, program.integers)
    steps = program.steps
    first = next((k for k, s in enumerate(steps) if _writes_argument(s)), None)
    if first is None:
        return program
    made: dict[Buffer, int] = {}
    for k, step in enumerate(steps):
        for b in accesses(step)[1]:
            made[b] = k
    first = _with_single(steps, first, made)
    before = [s for s in steps[:first] if isinstance(s, Statement)]
    fenced: set[int] = set()
    if any(_outermost(s) for s in before):
        fenced.add(first)
    looked: set[Expr] = set()
    checks: dict[int, list[Statement]] = {}
    for k, step in enumerate(steps):
        if k < first or not isinstance(step, Statement):
            continue
        for x in _outermost(step):
            known = all(made.get(y.value, -1) < first for y in E.loads(x))
            form = _form(x)
            if known and form in looked:
                continue
            if known:
                looked.add(form)
            at = first if known else k
            fenced.add(at)
            checks.setdefault(at, []).append(_look(program, step, x))
        _trust(step)
    program.steps = []
    for k, step in enumerate(steps):
        if k in fenced:
            program.steps += [*checks.get(k, ()), Fence()]
        program.steps.append(step)
    return program


def _leave_to_caller(program: Program, integers: Buffer) -> None:
    """Make the indices that follow from those integers the program's conditions."""
    for s in program.steps:
        if isinstance(s, Statement):
            indices = (x for x in E.walk(s.value, *s.index) if x.op == "wrap")
            found = [x for x in indices if follows_from(integers, x)]
            if found:
                program.conditions += [x for x in found if x not in program.conditions]
                _trust(s, found)


def _with_single(steps: list[Step], first: int, made: dict[Buffer, int]) -> int:
    """The first of the steps before `first` from which on all indices from data are single ones, of
    inputs: to look at them ahead costs nothing, and what stands behind a fence with the steps that
    write can be fused with these."""
    found = first
    for k in range(first - 1, -1, -1):
        step = steps[k]
        if not isinstance(step, Statement):
            break
        indices = _outermost(step)
        if any(E.axes_of(x) or any(y.value in made for y in E.loads(x)) for x in indices):
            break
        if indices:
            found = k
    return found


def _outermost(s: Statement) -> list[Expr]:
    """The indices from data of a statement that are not parts of others."""
    found = [x for x in E.walk(s.value, *s.index) if x.op == "wrap"]
    parts = {y for x in found for y in E.walk(*x.args) if y.op == "wrap"}
    return [x for x in found if x not in parts]


def _form(x: Expr) -> Expr:
    """x with axes that depend on their order and extents alone: the same for the same indices."""
    axes = sorted(E.axes_of(x), key=lambda a: a.number)
    same = [E.make("axis", (), "i64", (f"form{k}", a.extent)) for k, a in enumerate(axes)]
    return E.substitute(x, dict(zip(axes, same, strict=True)))


def _look(program: Program, s: Statement, x: Expr) -> Statement:
    """A loop that computes an index, and nothing else."""
    axes = tuple(a for a in s.axes if a in E.axes_of(x))
    target = program.buffer("check", "i64")
    return Statement(
        axes, target, (), x, op="max" if axes else None, over=axes, line=s.line, calls=s.calls
    )


def _trust(s: Statement, only: Collection[Expr] | None = None) -> None:
    """Take a statement's indices as looked at. only: these alone."""

    def change(x: Expr, again: E.Rewrite) -> Expr | None:
        if x.op != "wrap" or (only is not None and x not in only):
            return None
        at, extent = again(x.args[0]), x.value[0]
        negative = E.scalar("lt", at, E.integer(0))
        return E.known(E.choose(negative, E.plus(at, extent), at), extent)

    s.map(E.rewriter(change))


def _writes_argument(step: object) -> bool:
    if isinstance(step, Statement):
        return step.target.kind == "input"
    return isinstance(step, Call) and any(b.kind == "input" for b in step.writes)
