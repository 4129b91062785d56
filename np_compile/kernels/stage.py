"""Pass: indices from data are computed, and checked, some hundreds at a time before they are used.

    for i < n:  y[i] = x[wrap(f(i))]

computes f as vectors, but has to take each index out of its vector again. And a scatter, which runs
one value after the other, would compute f so too. In blocks,

    for b < n / 256:
      for l < 256:  at[l] = wrap(f(256 b + l))
      for l < 256:  y[256 b + l] = x[at[l]]

the indices are loads from memory that stays in the cache.
"""

from __future__ import annotations

from dataclasses import replace

from . import expr as E
from .dependence import reads_elsewhere
from .expr import Expr
from .ir import Buffer, Loop, Program, Statement, accesses
from .schedule import serial
from .split import piece

_BLOCK = 256
_WIDEST = 512

Steps = list[Loop | Statement]


def stage(program: Program) -> Program:
    """The program with such loops in blocks."""
    program.steps = [
        new
        for step in program.steps
        for new in (_nest(program, step, True) if isinstance(step, Loop) else [step])
    ]
    return program


def _nest(program: Program, loop: Loop, outermost: bool) -> Steps:
    if any(isinstance(s, Loop) for s in loop.body):
        loop.body = [
            new
            for s in loop.body
            for new in (_nest(program, s, False) if isinstance(s, Loop) else [s])
        ]
        return [loop]
    body = [s for s in loop.body if isinstance(s, Statement)]
    found = _worthwhile(loop, body)
    first = _before(body, found) if found else None
    if first is None or loop.axis.extent < _BLOCK:
        return [loop]
    return _blocks(program, loop, found, first)


def _worthwhile(loop: Loop, body: list[Statement]) -> list[Expr]:
    """The indices of a loop that are to be computed before, if that is faster."""
    if any(s.over or s.vector is not loop.axis for s in body):
        return []
    runs = any(serial(s, loop.axis) for s in body)
    if runs and (len(body) > 1 or reads_elsewhere(body[0])):
        return []
    all_of = E.walk(*(x for s in body for x in (s.value, *s.index)))
    found = [x for x in all_of if E.from_data(x) and loop.axis in E.axes_of(x)]
    computed = [x for x in found if not _plain(x.args[0])]
    if runs:
        places = set(E.walk(*body[0].index))
        return [x for x in found if x in places and (x in computed or x.op == "wrap")]
    return found if len(computed) > 1 else []


def _plain(x: Expr) -> bool:
    """Whether an index is an element of an array, or one that is counted from the end."""
    if x.op == "where":
        return x.args[0].op == "lt" and all(_plain(y) or y.op == "const" for y in x.args[1:])
    if x.op in ("cast", "affine", "known"):
        return all(_plain(y) for y in x.args)
    return x.op == "load"


def _before(body: list[Statement], found: list[Expr]) -> list[Statement] | None:
    """The statements that the indices need; None where they cannot be run before the others."""
    needed: set[Statement] = set()

    def need(b: Buffer, at: int) -> bool:
        """Add what makes the values of b that statement `at` reads; false where it is not known."""
        for k, s in enumerate(body):
            if s.target is not b:
                continue
            if k >= at or s.op is not None:
                return False
            if s in needed:
                continue
            needed.add(s)
            if not all(need(x.value, k) for x in s.reads()):
                return False
        return True

    for k, s in enumerate(body):
        inside = set(E.walk(s.value, *s.index))
        mine = [x for x in found if x in inside]
        if not all(need(y.value, k) for y in E.loads(*mine)):
            return None
    rest = [s for s in body if s not in needed]
    for s in needed:
        reads, writes = accesses(s)
        for other in rest:
            r, w = accesses(other)
            if body.index(other) < body.index(s) and (w & (reads | writes) or r & writes):
                return None
    return [s for s in body if s in needed]


def _blocks(program: Program, loop: Loop, found: list[Expr], first: list[Statement]) -> Steps:
    """The loop as one over blocks, and what is left over."""
    extent = loop.axis.extent
    size = next((n for n in range(_WIDEST, _BLOCK // 4, -8) if extent % n == 0), _BLOCK)
    count = extent // size
    left = [piece(program, loop, count * size, extent)] if extent % size else []
    body = [s for s in loop.body if isinstance(s, Statement)]
    later = [s for s in body if s not in first]
    block = E.axis(count, "b")
    handed = {s.target for s in first if s.target.kind == "register"}
    handed &= {x.value for s in later for x in s.reads()}
    arrays = {b: _array(program, b.dtype, size) for b in handed}
    places = {x: _array(program, "i64", size) for x in found}

    def inner(steps: list[Statement], known: dict[Expr, Buffer]) -> Loop:
        lane = E.axis(size, "l")
        place = E.plus(E.times(block, size), lane)
        memo = {x: E.known(E.load(b, (lane,)), _extent(x)) for x, b in known.items()}

        def change(x: Expr) -> Expr | None:
            if x is loop.axis:
                return place
            if x.op == "load" and x.value in arrays:
                return E.load(arrays[x.value], (lane,))
            return None

        def moved(s: Statement) -> Statement:
            axes = tuple(b for a in s.axes for b in ((block, lane) if a is loop.axis else (a,)))
            index = tuple(E.transform(i, change, memo) for i in s.index)
            value = E.transform(s.value, change, memo)
            if s.target in arrays or s.target in checked:
                index = (lane,)
            target = arrays.get(s.target, s.target)
            return replace(s, axes=axes, target=target, index=index, value=value, vector=lane)

        return Loop(lane, [moved(s) for s in steps])

    checked = set(places.values())
    looks = []
    for x, b in places.items():
        user = next(s for s in body if x in E.walk(s.value, *s.index))
        looks.append(Statement(user.axes, b, (E.integer(0),), x, line=user.line, calls=user.calls))
    return [Loop(block, [inner([*first, *looks], {}), inner(later, places)]), *left]


def _array(program: Program, dtype: str, size: int) -> Buffer:
    made = Buffer(f"at{len(program.buffers)}", dtype, (size,), (1,), "local")
    program.buffers.append(made)
    return made


def _extent(x: Expr) -> int:
    return int(x.value[0] if x.op == "wrap" else x.value)
