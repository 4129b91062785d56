"""Loop-carried dependences: which iterations may be reordered, or run at the same time."""

from __future__ import annotations

from itertools import combinations, takewhile

from ..ir import expr as E
from ..ir.program import Buffer, Loop, Statement, is_in_order, statements
from .dependence import disjoint, reads_elsewhere, same_iteration


def serial(s: Statement, axis: E.Expr) -> bool:
    """Whether a statement's iterations along an axis have to follow each other."""
    if s.scan and axis in s.over:
        return True
    stores = axis not in s.over and (not s.over or s.scan) and s.target.kind != "register"
    if stores:
        around = {a: a for a in takewhile(lambda a: a is not axis, s.axes)}
        if not same_iteration(s.index, s.index, axis, axis, around):
            return True
    return reads_elsewhere(s)


def ring(inside: list[Statement], axis: E.Expr) -> bool:
    """Whether a local array hands values from one iteration to another (see `rolling_buffer`)."""
    places: dict[Buffer, set[tuple[E.Expr, ...]]] = {}
    for s in inside:
        for b, index in s.touched:
            if b.kind == "local" and any(axis in E.axes_of(i) for i in index):
                places.setdefault(b, set()).add(index)
    return any(not disjoint(x, y) for found in places.values() for x, y in combinations(found, 2))


def ordered_by(inside: list[Statement], axis: E.Expr) -> bool:
    """Whether iterations that run in strips would disturb each other. A local array is none of
    their concern: there is one for each iteration, if its index does not tell them apart."""
    shared = (
        s for s in inside if s.target.kind != "local" or any(axis in E.axes_of(i) for i in s.index)
    )
    return any(serial(s, axis) for s in shared) or ring(inside, axis)


def repeatable(loop: Loop) -> bool:
    """Whether an iteration may run twice: of what the loop stores in memory it reads only what it
    has stored before, which is the same again."""
    stored: dict[Buffer, int] = {}
    read: dict[Buffer, int] = {}
    for k, step in enumerate(loop.body):
        for s in statements(step):
            if loop.axis in s.over:
                return False
            if s.op is not None and not s.over:
                read.setdefault(s.target, k)
            if s.target.kind != "register":
                stored[s.target] = k
            for x in s.reads():
                read.setdefault(x.value, k)
    return all(k < read.get(b, len(loop.body)) for b, k in stored.items())


def independent(loop: Loop) -> bool:
    """Whether the loop's iterations can run at the same time."""
    for s in statements(loop):
        if loop.axis in s.over:
            if s.scan or is_in_order(s) or any(E.axes_of(i) for i in s.index):
                return False
        elif (s.target.kind not in ("register", "local") and serial(s, loop.axis)) or (
            s.target.kind in ("register", "local") and loop.axis not in s.axes
        ):
            return False
    return True
