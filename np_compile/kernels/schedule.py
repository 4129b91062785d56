"""Pass: how each loop runs: in parallel chunks, as vectors, or one by one.

parallel    the outermost loop of a nest, in chunks that the threads of the pool take
simd        a loop without loops inside: vectors along its axis; reductions over it keep one
            partial result a lane
strip       a loop with loops inside whose statements all walk memory along its axis: strips of one
            vector's width, and each statement inside runs for a whole strip
"""

from __future__ import annotations

from itertools import combinations

from . import expr as E
from .dependence import disjoint, reads_elsewhere, same_iteration
from .dtypes import DTYPES
from .inline import cost
from .ir import Buffer, Loop, Program, Statement, statements

# Estimated nanoseconds below which a nest is not worth waking a thread for, and of one chunk.
_THRESHOLD = 20_000
_CHUNK = 12_000
# Most chunks of a nest: each costs an atomic operation, and a reduction a partial result.
_CHUNKS = 64
# Cycles of a vectorized operation are spread over that many bytes; cycles of a nanosecond.
_VECTOR = 32
_CLOCK = 3.0


def schedule(program: Program) -> Program:
    """The program with marks on its loops, and chunk sizes on those that run in parallel."""
    for step in program.steps:
        if not isinstance(step, Loop):
            continue
        _vectors(step)
        if _independent(step):
            total = _time(step, 1.0)
            if total >= _THRESHOLD:
                width = lanes(step) if step.marks else 1
                units = -(-step.axis.extent // width)
                chunks = int(min(max(total / _CHUNK, 2), _CHUNKS, units))
                step.grain = -(-units // chunks) * width
                if step.grain < step.axis.extent:
                    step.marks.add("parallel")
    return program


def lanes(loop: Loop) -> int:
    """Elements of a strip, or partial results of a reduction: four of the widest vectors."""
    size = max(
        [DTYPES[x.dtype].size for s in statements(loop) for x in E.walk(s.value) if not _index(x)]
        + [DTYPES[s.target.dtype].size for s in statements(loop)]  # a position is an i64
    )
    return 256 // size


def _index(x: E.Expr) -> bool:
    return x.op in ("axis", "affine", "idiv", "imod") or x.op == "const"


def _vectors(loop: Loop) -> None:
    inside = list(statements(loop))
    inner = [b for b in loop.body if isinstance(b, Loop)]
    if not inner:
        serial = any(_serial(s, loop.axis) for s in inside) or _ring(inside, loop.axis)
        if loop.axis.extent > 1 and not serial:
            loop.marks.add("simd")
        return
    deeper = [s for s in inside if s.axes[-1:] != (loop.axis,)]
    walks = all(s.vector is loop.axis for s in deeper)
    if walks and loop.axis.extent >= 4 and not any(_serial(s, loop.axis) for s in inside):
        loop.marks.add("strip")
        return
    for b in inner:
        _vectors(b)


def _serial(s: Statement, axis: E.Expr) -> bool:
    """Whether a statement's iterations along an axis have to follow each other."""
    if s.scan and axis in s.over:
        return True
    if any(x.op == "wrap" for i in s.index for x in E.walk(i)):
        return True
    stores = axis not in s.over and (not s.over or s.scan) and s.target.kind != "register"
    if stores and not same_iteration(s.index, s.index, axis, axis, {a: a for a in s.axes}):
        return True
    return reads_elsewhere(s) or (not s.over and s.op is not None)


def _ring(inside: list[Statement], axis: E.Expr) -> bool:
    """Whether a local array hands values from one iteration to another (see `skew`)."""
    places: dict[Buffer, set[tuple[E.Expr, ...]]] = {}
    for s in inside:
        for b, index in ((s.target, s.index), *((x.value, x.args) for x in s.reads())):
            if b.kind == "local" and any(axis in E.axes_of(i) for i in index):
                places.setdefault(b, set()).add(index)
    return any(not disjoint(x, y) for found in places.values() for x, y in combinations(found, 2))


def _independent(loop: Loop) -> bool:
    """Whether the loop's iterations can run at the same time."""
    for s in statements(loop):
        if loop.axis in s.over:
            if s.scan or any(E.axes_of(i) for i in s.index):
                return False
        elif (s.target.kind not in ("register", "local") and _serial(s, loop.axis)) or (
            s.target.kind in ("register", "local") and loop.axis not in s.axes
        ):
            return False
    return True


def _time(loop: Loop, times: float) -> float:
    """Estimated nanoseconds of a loop."""
    n = loop.axis.extent * times
    total = 0.0
    for step in loop.body:
        if isinstance(step, Loop):
            total += _time(step, n)
        else:
            size = DTYPES[step.target.dtype].size
            for x in E.walk(step.value):
                size = max(size, DTYPES[x.dtype].size) if x.op == "load" else size
            cycles = max(cost(step.value), 1) * size / _VECTOR
            if any(_gathers(x) for x in E.walk(step.value)) or (step.op and not step.over):
                cycles += 4
            if step.scan:
                cycles = max(cycles, 4)
            total += n * cycles / _CLOCK
    return total


def _gathers(x: E.Expr) -> bool:
    return x.op == "load" and any(y.op in ("wrap", "idiv", "imod") for y in E.walk(*x.args))
