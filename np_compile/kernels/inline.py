"""Pass: values that are cheap to compute where they are used are not stored.

A load of a temporary becomes the expression that was stored there, if nothing that the expression
reads has been written in between, and if computing it again costs less than memory would.
"""

from __future__ import annotations

from . import expr as E
from .dependence import disjoint
from .expr import Expr
from .ir import Buffer, Call, Program, Statement, accesses
from .scalars import OPS

# A value that is used at several indices is computed again for each, if that costs no more cycles
# an element than this.
_RECOMPUTE = 12
# Longest expression of a statement, in nodes: bounds the compile time and the live registers.
_LONGEST = 240


def cost(x: Expr) -> int:
    """Cycles an element, roughly, of an expression in a vectorized loop."""
    return sum(_cost(n) for n in E.walk(x))


def _cost(x: Expr) -> int:
    if x.op == "load":
        return 1
    row = OPS.get(x.op)
    return row.cost if row is not None else 0


def inline(program: Program) -> Program:
    """The program with such loads replaced, and stores that nobody reads left out."""
    steps = program.steps
    writes: dict[Buffer, list[int]] = {}
    readers: dict[Buffer, set[int]] = {}
    places: dict[Buffer, set[tuple]] = {}
    for p, step in enumerate(steps):
        reads, written = accesses(step)
        for b in written:
            writes.setdefault(b, []).append(p)
        for b in reads:
            readers.setdefault(b, set()).add(p)
        if isinstance(step, Statement):
            for x in step.reads():
                places.setdefault(x.value, set()).add((p, x.args))
    needed = {b for s in steps if isinstance(s, Call) for b in (*s.reads, *s.writes)}
    definitions = {
        b: [(p, steps[p]) for p in at]
        for b, at in writes.items()
        if b.kind == "temporary" and b not in needed and all(_whole(steps[p]) for p in at)
    }

    def definition(x: Expr, at: int) -> tuple[int, Statement] | None:
        found = [
            (p, s)
            for p, s in definitions.get(x.value, ())
            if isinstance(s, Statement) and _matches(s, x.args)
        ]
        if len(found) != 1 or found[0][0] >= at:
            return None
        if len(found) != len(definitions[x.value]) and not _constant_parts(definitions[x.value]):
            return None
        return found[0]

    def safe(p: int, s: Statement, q: int, user: Statement, value: Expr) -> bool:
        for load in E.loads(value):
            between = [w for w in writes.get(load.value, ()) if p < w < q]
            for w in between:
                writer = steps[w]
                if not isinstance(writer, Statement) or not disjoint(writer.index, load.args):
                    return False
            if load.value is user.target:
                same = load.args == user.index and user.op is None
                if not same and not disjoint(load.args, user.index):
                    return False
        return True

    def replacement(x: Expr, q: int, user: Statement, budget: list[int]) -> Expr | None:
        if x.op != "load":
            return None
        found = definition(x, q)
        if found is None:
            return None
        p, s = found
        weight = cost(s.value)
        uses = len(places[x.value])
        if weight * (uses - 1) > _RECOMPUTE:
            return None
        if weight > 1 and s.axes and _points(user) > 2 * _points(s):
            return None  # computed once for each of its own elements instead
        length = len(E.walk(s.value))
        if budget[0] + length > _LONGEST:
            return None
        mapping = {a: i for a, i in zip(s.index, x.args, strict=True) if a.op == "axis"}
        value = E.substitute(s.value, mapping)
        if not safe(p, s, q, user, value):
            return None
        budget[0] += length
        return value

    for q, step in enumerate(steps):
        if not isinstance(step, Statement):
            continue
        memo: dict[Expr, Expr] = {}
        budget = [len(E.walk(step.value))]

        def change(
            x: Expr, q: int = q, step: Statement = step, budget: list = budget
        ) -> Expr | None:
            return replacement(x, q, step, budget)

        value = E.transform(step.value, change, memo)
        index = tuple(E.transform(i, change, memo) for i in step.index)
        if value is not step.value or index != step.index:
            origins = {x.value for x in step.reads() if x in memo and memo[x] is not x}
            more = tuple(
                c for b in origins for _, s in definitions.get(b, ()) if isinstance(s, Statement)
                for c in s.calls
            )  # fmt: skip
            step.value, step.index = value, index
            step.calls = (*more, *step.calls)
    return prune(program)


def prune(program: Program) -> Program:
    """The program without stores to temporaries that nobody reads."""
    kept: list = []
    wanted: set[Buffer] = set()
    for step in reversed(program.steps):
        reads, written = accesses(step)
        if isinstance(step, Call) or any(
            b.kind in ("input", "output") or b in wanted for b in written
        ):
            kept.append(step)
            wanted |= reads
    program.steps = kept[::-1]
    used = {b for s in program.steps for part in accesses(s) for b in part}
    program.buffers = [b for b in program.buffers if b in used or b.kind in ("input", "output")]
    return program


def _whole(step: object) -> bool:
    """Whether a step is a store to each element of its target, or of a constant part of it."""
    if not isinstance(step, Statement) or step.op is not None:
        return False
    seen: set[Expr] = set()
    for i, extent in zip(step.index, step.target.shape, strict=True):
        if i.op == "const":
            continue
        if i.op != "axis" or i in seen or i.extent != extent:
            return False
        seen.add(i)
    return seen == set(step.axes)


def _matches(s: Statement, index: tuple[Expr, ...]) -> bool:
    """Whether the element at `index` is one that s stores, for all values of the index's axes."""
    for i, x, extent in zip(s.index, index, s.target.shape, strict=True):
        if i.op == "const" and extent > 1 and x is not i:
            return False
    return True


def _constant_parts(definitions: list) -> bool:
    """Whether the stores are to different constant parts (real and imaginary)."""
    parts = {tuple(i if i.op == "const" else None for i in s.index) for _, s in definitions}
    kinds = {tuple(i is None for i in part) for part in parts}
    return len(parts) == len(definitions) and len(kinds) == 1


def _points(s: Statement) -> int:
    n = 1
    for a in s.axes:
        n *= max(a.extent, 1)
    return n
