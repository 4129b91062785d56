"""Index staging: indices from data are computed and checked in blocks ahead of their use.

    for i < n:  y[i] = g(x[wrap(f(i))])

computes f as vectors, but has to take each index out of its vector again. And a scatter, which runs
one value after the other, would compute f so too. In blocks,

    for b < n / 256:
      for l < 256:  at[l] = wrap(f(256 b + l))
      for m < 32:
        for k < 8:  e[k] = x[at[8 m + k]]
        for k < 8:  y[256 b + 8 m + k] = g(e[k])

the indices are loads from memory that stays in the cache, and the elements of a small x are put
together to one vector, which takes less time than the processor's own instruction for that.
"""

from __future__ import annotations

from dataclasses import replace

from np_compile.size import some

from ..analysis.dependence import reads_elsewhere
from ..analysis.parallel import serial
from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr
from ..ir.program import Buffer, Loop, Program, Statement, accesses, with_leaves
from ..target import Target
from .index_set_splitting import piece

Steps = list[Loop | Statement]


def index_staging(program: Program, machine: Target) -> Program:
    """The program with such loops in blocks."""
    program.steps = with_leaves(program.steps, lambda loop: _staged(program, loop, machine))
    return program


def _staged(program: Program, loop: Loop, machine: Target) -> Steps:
    body = [s for s in loop.body if isinstance(s, Statement)]
    found = _worthwhile(loop, body, machine)
    first = _before(body, found) if found else None
    if first is None or loop.axis.extent < machine.staged_block:
        return [loop]
    return _blocks(program, loop, found, first, machine)


def _worthwhile(loop: Loop, body: list[Statement], machine: Target) -> list[Expr]:
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
        return [x for x in computed if x in places]
    indices = set(found)
    read = (x for x in all_of if x.op == "load" and indices.intersection(E.walk(*x.args)))
    return found if len(computed) > 1 or any(_near(x, machine) for x in read) else []


def _near(x: Expr, machine: Target) -> bool:
    """Whether a load is of an array that stays in the first-level cache: to put such elements
    together is quick; others are better asked for all at once."""
    return x.value.size * DTYPES[x.dtype].size <= machine.near_bytes


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


def _blocks(
    program: Program, loop: Loop, found: list[Expr], first: list[Statement], machine: Target
) -> Steps:
    """The loop as one over blocks, and what is left over."""
    extent = loop.axis.extent
    block_size = machine.staged_block
    sizes = range(machine.staged_widest, block_size // 4, -machine.staged_group)
    size = next((n for n in sizes if not some(extent % n)), block_size)
    count = extent // size
    left = [piece(program, loop, count * size, extent)] if some(extent % size) else []
    body = [s for s in loop.body if isinstance(s, Statement)]
    later = [s for s in body if s not in first]
    block = E.axis(count, "b")
    handed = {s.target for s in first if s.target.kind == "register"}
    handed &= {x.value for s in later for x in s.reads()}
    arrays = {b: program.buffer("at", b.dtype, [size], "local") for b in handed}
    places = {x: program.buffer("at", "i64", [size], "local") for x in found}

    def inner(steps: list[Statement], known: dict[Expr, Buffer]) -> Loop:
        lane = E.axis(size, "l")
        place = E.plus(E.times(block, size), lane)
        memo = {x: E.known(E.load(b, (lane,)), _extent(x)) for x, b in known.items()}

        def change(x: Expr, _: E.Rewrite) -> Expr | None:
            if x is loop.axis:
                return place
            if x.op == "load" and x.value in arrays:
                return E.load(arrays[x.value], (lane,))
            return None

        again = E.rewriter(change, memo)

        def moved(s: Statement) -> Statement:
            axes = tuple(b for a in s.axes for b in ((block, lane) if a is loop.axis else (a,)))
            made = replace(s, axes=axes, target=arrays.get(s.target, s.target), vector=lane)
            made.map(again)
            if s.target in arrays or s.target in checked:
                made.index = (lane,)
            return made

        return Loop(lane, [moved(s) for s in steps])

    checked = set(places.values())
    looks = []
    for x, b in places.items():
        user = next(s for s in body if x in E.walk(s.value, *s.index))
        looks.append(Statement(user.axes, b, (E.integer(0),), x, line=user.line, calls=user.calls))
    use = inner(later, places)
    return [
        Loop(block, [inner([*first, *looks], {}), _groups(program, use, checked, machine)]),
        *left,
    ]


def _groups(program: Program, loop: Loop, places: set[Buffer], machine: Target) -> Loop:
    """The loop as one over groups of elements: what it reads from near arrays, at indices in
    `places`, is read before the rest of a group. As it is, where it reads nothing so."""
    body = [s for s in loop.body if isinstance(s, Statement)]
    written = {s.target for s in body}
    size = machine.staged_group
    loads = dict.fromkeys(x for s in body for x in E.loads(s.value))
    mine = [
        x for x in loads if x.value not in written and _near(x, machine) and _read_in(places, x)
    ]
    if not mine or loop.axis.extent % size or any(serial(s, loop.axis) for s in body):
        return loop
    group = E.axis(loop.axis.extent // size, "m")
    known: dict[Expr, Buffer] = {}

    def inner(steps: list[Statement]) -> Loop:
        lane = E.axis(size, "k")
        memo = {x: E.load(b, (lane,)) for x, b in known.items()}
        memo[loop.axis] = E.plus(E.times(group, size), lane)

        again = E.replaced(memo)

        def moved(s: Statement) -> Statement:
            axes = tuple(b for a in s.axes for b in ((group, lane) if a is loop.axis else (a,)))
            made = replace(s, axes=axes, vector=lane)
            made.map(again)
            if s.target in together:
                made.index = (lane,)
            return made

        return Loop(lane, [moved(s) for s in steps])

    arrays = {x: program.buffer("at", x.dtype, [size], "local") for x in mine}
    together = set(arrays.values())
    reads = [
        Statement(body[0].axes, b, (E.integer(0),), x, line=body[0].line, calls=body[0].calls)
        for x, b in arrays.items()
    ]
    first = inner(reads)
    known = arrays
    return Loop(group, [first, inner(body)])


def _read_in(places: set[Buffer], x: Expr) -> bool:
    return any(y.value in places for y in E.loads(*x.args))


def _extent(x: Expr) -> int:
    return int(x.value[0] if x.op == "wrap" else x.value)
