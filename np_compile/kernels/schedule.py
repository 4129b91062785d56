"""Pass: how each loop runs: in parallel chunks, as vectors, or one by one.

parallel    the outermost loop of a nest, in chunks that the threads of the pool take
simd        a loop without loops inside: vectors along its axis; reductions over it keep one
            partial result a lane
strip       a loop with loops inside whose statements all walk memory along its axis: strips of some
            vectors, and each statement inside runs for a whole strip
rows        a loop around reductions along its rows, with much to compute of their results:
            that is done as vectors, for a strip of rows
unroll      a few elements from places of their own, each read for itself: the C compiler puts them
            together to vectors
jam         a loop around running reductions: each step of theirs runs for a few of its iterations,
            whose additions do not wait for each other
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, takewhile

from . import expr as E
from .dependence import disjoint, reads_elsewhere, same_iteration
from .dtypes import DTYPES
from .inline import cost
from .ir import Buffer, Loop, Program, Statement, is_in_order, statements

# Estimated nanoseconds below which a nest is not worth waking a thread for, and of one chunk.
_THRESHOLD = 20_000
_CHUNK = 12_000
# Most chunks of a nest: each costs an atomic operation, and a reduction a partial result.
_CHUNKS = 64
# Cycles of a vectorized operation are spread over that many bytes; cycles of a nanosecond.
_VECTOR = 32
_CLOCK = 3.0
# Rows, and cycles of what is to be computed for each, from which strips of rows are worth it; and
# elements of a local array of each row, at most.
_ROWS, _HEAVY, _FEW = 16, 12, 16
# Cycles an element up to which a strip is wide.
_LIGHT = 24
# Bytes of the local arrays of a strip.
_ARRAYS = 1 << 18
# Running reductions that take turns: as many as hide the time of an addition.
_JAM = 4
# Elements that are read each for itself, to become vectors.
_PICKED = 16


def schedule(program: Program) -> Program:
    """The program with marks on its loops, and chunk sizes on those that run in parallel."""
    for step in program.steps:
        if not isinstance(step, Loop):
            continue
        _vectors(step)
        if independent(step):
            step.grain = chunk(estimate(step), step.axis.extent, strip_width(step, True))
            if step.grain < step.axis.extent:
                step.marks.add("parallel")
    return program


def chunk(total: float, extent: int, width: int) -> int:
    """Iterations of a chunk of a loop that takes so many nanoseconds: a multiple of width, or all
    where threads are not worth it."""
    if total < _THRESHOLD:
        return extent
    units = -(-extent // width)
    chunks = int(min(max(total / _CHUNK, 2), _CHUNKS, units))
    return -(-units // chunks) * width


def lanes(loop: Loop) -> int:
    """Elements of a strip, or partial results of a reduction: four of the widest vectors."""
    size = max(
        [DTYPES[x.dtype].size for s in statements(loop) for x in E.walk(s.value) if not _index(x)]
        + [DTYPES[s.target.dtype].size for s in statements(loop)]  # a position is an i64
    )
    return 256 // size


def strip_width(loop: Loop, shared: bool) -> int:
    """Iterations of the loop's axis that run together; shared: threads are to divide the loop.

    Strips are as even as whole vectors allow. Where little is computed they are wide, for rows of
    memory are then read in longer pieces.
    """
    extent, most = loop.axis.extent, lanes(loop)
    if "jam" in loop.marks:
        return min(_JAM, extent)
    if "strip" not in loop.marks:
        return min(most, extent) if loop.marks else 1
    if any(loop.axis in s.over for s in statements(loop)):  # the lanes are combined by halves
        return min(most, 1 << (extent.bit_length() - 1))
    vector = most // 4
    inside = list(statements(loop))
    arrays = {s.target for s in inside if s.target.kind == "local"}
    wide = most
    if not arrays and sum(cost(s.value) for s in inside) <= _LIGHT:
        wide *= 4
    # Each iteration of a strip has its own local arrays.
    while wide > vector and wide * sum(b.size * DTYPES[b.dtype].size for b in arrays) > _ARRAYS:
        wide //= 2
    strips = -(-extent // wide)
    if shared:
        strips = max(strips, min(4, extent // (2 * most) * 2))
    if strips == 1:
        return extent
    even = -(-extent // strips)
    return -(-even // vector) * vector


def _index(x: E.Expr) -> bool:
    return x.op in ("axis", "affine", "idiv", "imod") or x.op == "const"


def _vectors(loop: Loop) -> None:
    inside = list(statements(loop))
    inner = [b for b in loop.body if isinstance(b, Loop)]
    if not inner:
        if loop.axis.extent <= _PICKED and all(_picks(s) for s in inside):
            loop.marks.add("unroll")
            return
        ordered = any(serial(s, loop.axis) for s in inside) or _ring(inside, loop.axis)
        if len(inside) == 1 and _walks(inside[0], loop.axis):
            ordered = False
        if loop.axis.extent > 1 and not ordered:
            loop.marks.add("simd")
        return
    deeper = [s for s in inside if s.axes[-1:] != (loop.axis,)]
    walks = all(s.vector is loop.axis for s in deeper)
    in_order = any(loop.axis in s.over and is_in_order(s) for s in inside)
    if walks and loop.axis.extent >= 4 and not in_order and not _ordered(inside, loop.axis):
        loop.marks.add("strip")
        return
    if _jammed(loop, inside):
        loop.marks.add("jam")
        return
    for b in inner:
        _vectors(b)
    if _rows(loop, inside):
        loop.marks.add("rows")


def _picks(s: Statement) -> bool:
    """Whether a statement copies an element from a place that data give to a local array."""
    return s.op is None and s.target.kind == "local" and _gathers(s.value)


def _rows(loop: Loop, inside: list[Statement]) -> bool:
    """Whether what a loop computes beside the loops inside is to be done for strips of it."""
    own = [s for s in loop.body if isinstance(s, Statement)]
    inner = [b for b in loop.body if isinstance(b, Loop)]
    return (
        loop.axis.extent >= _ROWS
        and sum(cost(s.value) for s in own) >= _HEAVY
        and not any(b.marks - {"simd"} or any(isinstance(c, Loop) for c in b.body) for b in inner)
        and all(s.target.size <= _FEW for s in inside if s.target.kind == "local")
        and not any(loop.axis in s.over for s in inside)
        and not _ordered(inside, loop.axis)
    )


def _jammed(loop: Loop, inside: list[Statement]) -> bool:
    """Whether a few iterations of a loop are to take turns: all that they do is to run
    sums, products or extremes, each of which waits for the one before it."""
    if loop.axis.extent < 2 or any(loop.axis in s.over for s in inside):
        return False
    if _ordered(inside, loop.axis):
        return False
    first = loop.body[0]
    if len(loop.body) == 1 and isinstance(first, Loop) and first.axis.extent > 2:
        deeper = any(isinstance(b, Loop) for b in first.body)
        if deeper and _jammed(first, inside):
            return False  # neighbours along that loop are nearer to each other in memory
    return all(
        any(s.scan and leaf.axis in s.over for s in statements(leaf)) for leaf in _leaves(loop)
    )


def _ordered(inside: list[Statement], axis: E.Expr) -> bool:
    """Whether iterations that run in strips would disturb each other. A local array is none of
    their concern: there is one for each iteration, if its index does not tell them apart."""
    shared = (
        s for s in inside if s.target.kind != "local" or any(axis in E.axes_of(i) for i in s.index)
    )
    return any(serial(s, axis) for s in shared) or _ring(inside, axis)


def _leaves(loop: Loop) -> Iterator[Loop]:
    """The loops without loops inside."""
    inner = [b for b in loop.body if isinstance(b, Loop)]
    for b in inner:
        yield from _leaves(b)
    if not inner:
        yield loop


def _walks(s: Statement, axis: E.Expr) -> bool:
    """Whether a statement's target is walked in equal steps, from a place that the loops around it
    give, maybe by an index from data."""
    _, atoms = E.terms(s.index[0])
    return (
        atoms.pop(axis, 0) != 0
        and not s.over
        and not any(axis in E.axes_of(a) for a in atoms)
        and not any(x.value is s.target for x in E.loads(*s.index))
        and not reads_elsewhere(s)
    )


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


def _ring(inside: list[Statement], axis: E.Expr) -> bool:
    """Whether a local array hands values from one iteration to another (see `skew`)."""
    places: dict[Buffer, set[tuple[E.Expr, ...]]] = {}
    for s in inside:
        for b, index in ((s.target, s.index), *((x.value, x.args) for x in s.reads())):
            if b.kind == "local" and any(axis in E.axes_of(i) for i in index):
                places.setdefault(b, set()).add(index)
    return any(not disjoint(x, y) for found in places.values() for x, y in combinations(found, 2))


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


def estimate(loop: Loop) -> float:
    """Estimated nanoseconds of a nest."""
    return _time(loop, 1.0, False)


def _time(loop: Loop, times: float, jammed: bool) -> float:
    """As `estimate`, of a loop that runs so many times; jammed: in iterations that take turns."""
    n = loop.axis.extent * times
    jammed = jammed or "jam" in loop.marks
    total = 0.0
    for step in loop.body:
        if isinstance(step, Loop):
            total += _time(step, n, jammed)
        else:
            size = DTYPES[step.target.dtype].size
            for x in E.walk(step.value):
                size = max(size, DTYPES[x.dtype].size) if x.op == "load" else size
            cycles = max(cost(step.value), 1) * size / _VECTOR
            if any(_gathers(x) for x in E.walk(step.value)) or (step.op and not step.over):
                cycles += 4
            if step.scan:
                cycles = max(cycles, 1 if jammed else 4)
            total += n * cycles / _CLOCK
    return total


_COMPUTED = ("wrap", "known", "load", "idiv", "imod")


def _gathers(x: E.Expr) -> bool:
    """Whether x is an element at a place that does not follow from the axes by a sum."""
    return x.op == "load" and any(y.op in _COMPUTED and E.axes_of(y) for y in E.walk(*x.args))
