"""Loop fusion: statements become loops, and loops over the same elements become one.

Statements are placed in order. A statement enters a loop that is there already if the two share
data along that axis, and if no element that one of them writes and the other touches belongs to
different iterations. So a chain of elementwise work is one loop; several reductions of the same
data are one pass; a reduction that is broadcast back is one loop over rows, with a loop for each
stage inside.
"""

from __future__ import annotations

from np_compile.size import hint

from ..analysis.access import coefficients
from ..analysis.dependence import conflicts, reads_elsewhere, same_iteration
from ..ir import expr as E
from ..ir.expr import Expr
from ..ir.program import (
    Fence,
    Loop,
    Program,
    Statement,
    Step,
    accesses,
    elements,
    looped,
    statements,
)
from ..target import Gpu, Target
from .scan_blocking import cheap, waits

# Loops of one nest: more would spill registers and slow the C compiler.
_MOST_STATEMENTS = 40
# On a GPU, iterations of a statement that are enough for all threads, and how many for each of a
# nest's make it one of its own.
_MUCH = 1 << 20
_MORE = 16


def fuse(program: Program, machine: Target) -> Program:
    """The program as loops. Its notes say which neighbours stayed apart, and why."""
    placed: list[Step] = []
    for step in program.steps:
        if not isinstance(step, Statement):
            placed.append(step)
            continue
        if not _join(placed, step, program.notes, machine):
            placed += looped(step.axes, [step])
    program.steps = placed
    return program


def _join(placed: list, s: Statement, notes: list[str], machine: Target) -> bool:
    """Put a statement into the last loop nest that takes it; false where none does."""
    reads, writes = accesses(s)
    for k in range(len(placed) - 1, max(len(placed) - 9, -1), -1):
        step = placed[k]
        if isinstance(step, Loop):
            why = _enter(step, s, {}, machine)
            if why is None:
                return True
            if why and k == len(placed) - 1:
                notes.append(f"{s.target.name} is not fused with what is before it: {why}")
        elif isinstance(step, Fence) and (s.target.kind == "input" or _trusting(s)):
            return False
        r, w = accesses(step)
        if (w & reads) or (w & writes) or (r & writes):
            return False
    return False


def _trusting(s: Statement) -> bool:
    """Whether a statement has indices that are right only behind a fence."""
    return any(x.op == "known" for x in E.walk(*s.parts))


def _enter(loop: Loop, s: Statement, known: dict[Expr, Expr], machine: Target) -> str | None:
    """Put s into the loop. None when done; otherwise why not ("" where they share nothing).

    known: axes of s -> the loops' axes that they have become.
    """
    inside = list(statements(loop))
    stored = (x for t in (*inside, s) for i in t.index for x in E.walk(i))
    if any(E.from_data(x) and E.axes_of(x) for x in stored):
        return "a store at computed indices"
    if len(inside) >= _MOST_STATEMENTS:
        return "the loop holds enough statements"
    left = [a for a in s.axes if a not in known]
    partner = _partner(loop.axis, inside, s, left)
    if partner is None:
        return _shared(inside, s)
    if not known and isinstance(machine, Gpu) and _much(inside, s):
        return "it makes much more than they share"
    if s.lead is not None and not known and partner is not s.lead:
        return "threads share its rows"
    if any(t.scan and loop.axis in t.over for t in inside) or (s.scan and partner in s.over):
        running = [t for t in (*inside, s) if t.scan and {loop.axis, partner} & set(t.over)]
        if any(t.op is not None and not t.scan for t in (*inside, s)) or not running:
            return "a running reduction"
        slow = not all(t.scan or cheap(t, machine) for t in (*inside, s))
        if slow and any(map(waits, running)):
            return "a running reduction has no vectors"
    if partner in s.over and any(a not in s.over for a in left):
        return "it reduces along this loop, and keeps axes further in"
    if not _agree(loop.axis, partner, inside, s):
        return "it walks memory along another axis"
    for t in inside:
        for a, b in conflicts(t, s):
            if not same_iteration(a, b, loop.axis, partner, known):
                if any(x.value is t.target for x in s.reads()):
                    what = f"reads {t.target.name}"
                else:
                    what = f"changes {s.target.name}"
                return f"it {what} at other indices along this loop"
    if reads_elsewhere(s) or any(reads_elsewhere(t) for t in inside):
        return "it reads its own target at other indices"
    known = {**known, partner: loop.axis}
    # A loop further in, from the last on; past one only if nothing ties s to it.
    for k in range(len(loop.body) - 1, -1, -1):
        inner = loop.body[k]
        if isinstance(inner, Loop) and _enter(inner, s, known, machine) is None:
            return None
        r, w = accesses(inner)
        reads, writes = accesses(s)
        if (w & reads) or (w & writes) or (r & writes):
            break
    if len(s.axes) > len(known) and _mixed(loop, s):
        return "running reductions take turns, and nothing else does"
    _rename(s, known)
    loop.body += looped(s.axes[len(known) :], [s])
    return None


def _much(inside: list[Statement], s: Statement) -> bool:
    """Whether s is many more iterations than what a nest does, enough of them for threads of their
    own: what a thread of each row leaves in memory for them is little beside what they store."""
    mine, *others = (hint(elements(a.extent for a in t.axes)) for t in (s, *inside))
    return bool(mine >= _MUCH and mine >= _MORE * max(others))


def _mixed(loop: Loop, s: Statement) -> bool:
    """Whether some of the loops inside, with one more for s, hold running reductions that wait for
    each of their steps, and some do not: only all of them together can take turns (`schedule`)."""
    leaves = [list(statements(b)) for b in loop.body if isinstance(b, Loop)]
    waiting = {any(map(waits, leaf)) for leaf in leaves}
    return bool(waiting) and waiting != {waits(s)}


def _rename(s: Statement, known: dict[Expr, Expr]) -> None:
    s.axes = (*known.values(), *(a for a in s.axes if a not in known))
    s.over = tuple(known.get(a, a) for a in s.over)
    s.map(E.axes_replaced(known))
    if s.vector is not None:
        s.vector = known.get(s.vector, s.vector)


def _agree(axis: Expr, partner: Expr, inside: list[Statement], s: Statement) -> bool:
    """Whether s and the statements of a loop can have their vectors along fitting axes: either all
    of those with loops further in have it along this loop's axis, or none has."""
    depth = min(t.axes.index(axis) for t in inside)
    ends = {t.vector is axis for t in inside if len(t.axes) > depth + 1}
    if len(s.axes) > depth + 1:
        ends.add(s.vector is partner)
    return len(ends) < 2


def _partner(axis: Expr, inside: list[Statement], s: Statement, left: list[Expr]) -> Expr | None:
    """The axis of s that walks the same buffers in the same way as the loop's axis."""
    votes: dict[Expr, int] = {}
    mine = s.touched
    for t in inside:
        for buffer, index in t.touched:
            for other, place in mine:
                if other is not buffer:
                    continue
                for i, j in zip(index, place, strict=True):
                    c = coefficients(i).get(axis)
                    if c is None:
                        continue
                    for a, m in coefficients(j).items():
                        if m == c and a in left and a.extent == axis.extent:
                            votes[a] = votes.get(a, 0) + 1
    return max(votes, key=lambda a: votes[a]) if votes else None


def _shared(inside: list[Statement], s: Statement) -> str:
    mine = {b for b, _ in s.touched}
    both = [b.name for t in inside for b, _ in t.touched if b in mine]
    return f"its loops do not match those that make {both[0]}" if both else ""
