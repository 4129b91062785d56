"""Arrays: views, loops over their elements, stores, reductions.

An array expression is `Lazy` until it is stored or reduced, so that it is one loop. What it reads
is read before anything is written: where the target may be among it, by names or by addresses, the
result is made in memory of its own first.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from np_compile.kernels.ir.scalars import c_cast, c_load, c_store

from .linear import Linear
from .numbers import convert
from .read import C_STORAGE, Line, Reader, int_constant
from .stack import MOST, Small
from .threads import Pieces, shared
from .values import (
    ANYWHERE,
    C_TYPE,
    PARTS,
    SIZES,
    Aggregate,
    Arr,
    Lazy,
    Num,
    Unreadable,
    Value,
)

FAR = 1 << 40  # no extent is as large
CODES = tuple(SIZES)  # the number by which C names a representation
UNROLLED = 8
# Elements of a nest that is written out: all of one that small, of a larger one those of its
# innermost loops, so few that the compiler has vectors of the loops around.
_WHOLE, _PART = 128, 16
FEW = f"#pragma omp simd safelen({UNROLLED})"  # a loop of few iterations that is one of vectors
_CHOICE = re.compile(r" \? |\b(?:running_m(?:in|ax)|m(?:in|ax)imum)_f")


def extent(r: Reader, text: str, lin: Linear | None = None, low: int = 0) -> Num:
    """An extent, with a C name of its own."""
    return r.integer(text, low, FAR, lin)


def product(r: Reader, a: Num, b: Num) -> Num:
    """a * b, of extents."""
    if a.value == 1:
        return b
    if b.value == 1:
        return a
    if a.value is not None and b.value is not None:
        return int_constant(a.value * b.value)
    lin = None
    if a.lin is not None and b.value is not None:
        lin = a.lin * b.value
    elif b.lin is not None and a.value is not None:
        lin = b.lin * a.value
    return r.integer(f"({a.text} * {b.text})", 0, FAR, lin)


def size_of(r: Reader, dims: Sequence[Num]) -> Num:
    total = int_constant(1)
    for d in dims:
        total = product(r, total, d)
    return total


def contiguous(r: Reader, dims: Sequence[Num]) -> tuple[Num, ...]:
    """Strides of C order."""
    strides: list[Num] = []
    step = int_constant(1)
    for d in reversed(dims):
        strides.append(step)
        if len(strides) < len(dims):
            step = product(r, step, d)
    return tuple(reversed(strides))


def alloc(r: Reader, rep: str, dims: Sequence[Num], zero: bool = False) -> Arr:
    """A new array in C order; its elements are zero, or anything."""
    strides = contiguous(r, dims)
    listed = ", ".join(["", *(d.text for d in dims)])
    call = f"allocate(rt, {CODES.index(rep)}, {SIZES[rep]}, {int(zero)}, {len(dims)}{listed})"
    extents = [d.value for d in dims if d.value is not None]
    size = math.prod(extents)
    if len(extents) == len(dims) and 0 < size * SIZES[rep] <= MOST and r.is_inside:
        small = Small(r.fresh("b"), r.fresh("p"), call, C_STORAGE(rep), size, zero)
        buf, data = small.buf, small.data
        made, there = small.lines()
        r.line(made)
        r.leave_if(f"{buf} == 0", "no memory")
        r.lines[-1] = Line(r.lines[-1], small)
        r.line(there)
    else:
        buf = r.named(call, "Buf *", "b")
        r.leave_if(f"{buf} == 0", "no memory, or a negative size")
        data = r.named(f"({C_STORAGE(rep)} *){buf}->data", f"{C_STORAGE(rep)} *", "p")
    r.made_here(buf)
    return Arr(rep, buf, data, tuple(dims), strides, frozenset((buf,)), None, False,
               True, True)  # fmt: skip


# Elements


def place(a: Arr, index: Sequence[str]) -> str:
    """The C lvalue of an element."""
    parts = []
    for i, d, s in zip(index, a.dims, a.strides, strict=True):
        if i == "0" or d.value == 1 or s.value == 0:
            continue
        parts.append(i if s.value == 1 else f"{i} * {s.text}")
    return f"{a.data}[{' + '.join(parts) or '0'}]"


def load(a: Arr, index: Sequence[str]) -> str:
    text = place(a, index)
    return text if a.rep in PARTS else c_load(a.rep, text)


def lazy(x: Arr | Lazy) -> Lazy:
    if isinstance(x, Lazy):
        return x
    return Lazy(x.rep, x.dims, lambda index: load(x, index), ((x, True),), made=False)


def of_number(x: Num) -> Lazy:
    return Lazy(x.rep, (), lambda index: x.text)


def cast_text(src: str, dst: str, text: str) -> str:
    if src == dst:
        return text
    if dst in PARTS:
        if src in PARTS:
            return f"{dst}_of_{src}({text})"
        return f"({dst}){{{c_cast(src, PARTS[dst], text)}, 0}}"
    if src in PARTS and dst == "bool":
        return f"ne_{src}({text}, ({src}){{0, 0}})"
    if src in PARTS:
        return c_cast(PARTS[src], dst, f"{text}.r")
    return c_cast(src, dst, text)


def cast(x: Lazy, rep: str) -> Lazy:
    if x.rep == rep:
        return x
    at, src = x.at, x.rep
    return Lazy(rep, x.dims, lambda index: cast_text(src, rep, at(index)), x.reads, x.cheap)


def named_numbers(r: Reader, x: Num) -> Num:
    """A number that is computed before the loops that use it."""
    if x.value is not None or x.text.isidentifier():
        return x
    return Num(r.named(x.text, C_TYPE[x.rep]), x.rep, x.kinds, x.tag, x.lin, x.low, x.high)


# Shapes


def common_extent(r: Reader, a: Num, b: Num) -> Num:
    """The extent of an axis of two arrays; leaves where they do not fit."""
    if a.value == 1:
        return b
    if b.value == 1:
        return a
    if a.lin is not None and b.lin is not None and r.facts.same(a.lin, b.lin):
        return a if a.value is not None or b.value is None else b
    if a.value is not None and b.value is not None:
        raise Unreadable(f"shapes do not fit: {a.value} and {b.value}")
    r.leave_if(f"{a.text} != {b.text}", "extents that are not equal")
    if a.lin is not None and b.lin is not None:
        r.facts.add(a.lin - b.lin)
        r.facts.add(b.lin - a.lin)
    return a if a.value is not None else b


def broadcast(r: Reader, shapes: Sequence[Sequence[Num]]) -> tuple[Num, ...]:
    """The common shape; leaves where there is none."""
    rank = max(map(len, shapes), default=0)
    dims: list[Num] = []
    for k in range(rank):
        found: Num | None = None
        for shape in shapes:
            j = k - rank + len(shape)
            if j >= 0:
                found = shape[j] if found is None else common_extent(r, found, shape[j])
        assert found is not None
        dims.append(found)
    return tuple(dims)


def stretched(x: Lazy, dims: Sequence[Num]) -> Lazy:
    """x as an array of a shape that it fits."""
    if len(x.dims) == len(dims) and all(
        a.value == b.value or a.value != 1 for a, b in zip(x.dims, dims, strict=True)
    ):
        return Lazy(x.rep, tuple(dims), x.at, x.reads, x.cheap)
    skip, at, mine = len(dims) - len(x.dims), x.at, x.dims

    def element(index: list[str]) -> str:
        return at(["0" if d.value == 1 else i for i, d in zip(index[skip:], mine, strict=True)])

    reads = tuple((a, False) for a, _ in x.reads)
    return Lazy(x.rep, tuple(dims), element, reads, x.cheap)


# Loops


@contextmanager
def loops(
    r: Reader,
    dims: Sequence[Num],
    order: Sequence[int] | None = None,
    vector: str = "#pragma GCC ivdep",
    there: str = "",
    within: Pieces | None = None,
) -> Iterator[list[str]]:
    """Loops over all indices, the last of `order` innermost; gives the indices' C. there: C that
    says whether to go on. within: of whose piece the outermost loop is."""
    order = list(range(len(dims))) if order is None else list(order)
    index = ["0"] * len(dims)
    real = [k for k in order if dims[k].value != 1]
    outer = r.lines
    few = bool(real and vector) and dims[real[-1]].value in (4, 8)
    nest: list[tuple[list, str]] = []
    written_out = _written_out([dims[k] for k in real])
    for depth, k in enumerate(real):
        i = r.fresh("i")
        index[k] = i
        n = dims[k]
        low, high = ("0", n.text) if within is None or depth else within.bounds(r, n.text)
        if depth >= len(real) - written_out:
            r.line(f"#pragma GCC unroll {UNROLLED}")
        elif k == real[-1] and vector:
            r.line(vector)
        test = f"{i} < {high}" + (f" && {there}" if there else "")
        nest.append((r.lines, f"for (i64 {i} = {low}; {test}; {i}++)"))
        r.lines = []
    if there and not real:
        nest.append((r.lines, f"if ({there})"))
        r.lines = []
    try:
        yield index
        if few and any(isinstance(x, str) and _CHOICE.search(x) for x in r.lines):
            # Written out they would be choices between single elements, by branches.
            nest[-1][0][-1] = FEW
    finally:
        for lines, head in reversed(nest):
            lines += [head + " {", r.lines, "}"]
            r.lines = lines
        r.lines = outer


def _written_out(dims: Sequence[Num]) -> int:
    """How many of a nest's loops are written out, from the innermost one on."""
    few = [d.value for d in dims if d.value is not None and d.value <= UNROLLED]
    if len(few) == len(dims) and math.prod(few) <= _WHOLE:
        return len(dims)
    copies = 1
    for depth, d in enumerate(reversed(dims)):
        if d.value is None or d.value > UNROLLED or (depth and copies * d.value > _PART):
            return depth
        copies *= d.value
    return len(dims)


def inner_axis(a: Arr) -> list[int]:
    """The order of axes in which memory is walked in the smallest steps."""
    order = list(range(a.ndim))
    if a.ndim > 1 and a.strides[-1].value != 1 and a.dims[-1].value != 1:
        unit = [k for k in order if a.strides[k].value == 1 and a.dims[k].value != 1]
        if unit:
            order.remove(unit[0])
            order.append(unit[0])
    return order


def note_work(r: Reader, dims: Sequence[Num]) -> None:
    """Note a loop over an array, for the choice between this way and whole-array kernels."""
    r.work.append(([d.lin for d in dims], r.executions if r.is_inside else 0.0))


def write(r: Reader, a: Arr, index: list[str], text: str) -> None:
    r.line(f"{place(a, index)} = {text if a.rep in PARTS else c_store(a.rep, text)};")


def store(r: Reader, target: Arr, value: Lazy) -> None:
    """target[...] = value, which has its shape and representation."""
    note_work(r, target.dims)
    r.accesses.note(target, write=True)
    relation = "disjoint"
    unsure: list[Arr] = []
    for read, in_place in value.reads:
        found = overlap(r, target, read)
        if found == "same" and in_place:
            continue
        if found == "unknown":
            unsure.append(read)
        elif found != "disjoint":
            relation = "overlap"
    if relation == "disjoint" and not unsure:
        with shared(r, target), loops(r, target.dims, inner_axis(target)) as index:
            write(r, target, index, value.at(index))
        return
    if relation == "overlap":
        made = materialized(r, value)
        with shared(r, target), loops(r, target.dims, inner_axis(target)) as index:
            write(r, target, index, load(made, index))
        return
    # By addresses: in memory of its own where they overlap.
    tests = [f"overlap({target.span}, {read.span})" for read in unsure]
    aside = r.named(" || ".join(tests), "int", "aside")
    there = _aside(r, target, aside)
    with shared(r, there), loops(r, target.dims, inner_axis(target)) as index:
        write(r, there, index, value.at(index))
    with r.block(f"if ({aside})"):
        with shared(r, target), loops(r, target.dims, inner_axis(target)) as index:
            write(r, target, index, load(there, index))
        r.line(f"release(rt, {there.buf});")


def undisturbed(r: Reader, x: Arr, by: Arr) -> Arr:
    """An array as it is now, for a loop that writes to `by`, in whatever order: itself, or a copy
    where they share memory."""
    found = overlap(r, by, x)
    if found != "unknown":
        return x if found == "disjoint" else copied(r, x)
    aside = r.named(f"overlap({by.span}, {x.span})", "int", "aside")
    there = _aside(r, x, aside)
    r.made_here(there.buf)
    with r.block(f"if ({aside})"), loops(r, x.dims) as index:
        write(r, there, index, load(x, index))
    return there


def apart(r: Reader, a: Arr, b: Arr, why: str) -> None:
    """Leave where two arrays share memory, but for the same elements in the same places."""
    found = overlap(r, a, b)
    if found == "overlap":
        raise Unreadable(why)
    if found == "unknown":
        r.leave_if(f"overlap({a.span}, {b.span})", why)


def _aside(r: Reader, x: Arr, aside: str) -> Arr:
    """An array of this one's shape: in memory of its own if the C integer is true, else itself."""
    sizes = ", ".join(["", *(d.text for d in x.dims)])
    of = f"{CODES.index(x.rep)}, {SIZES[x.rep]}, 0, {x.ndim}{sizes}"
    held = r.named(f"{aside} ? allocate(rt, {of}) : 0", "Buf *", "b")
    r.leave_if(f"{aside} && {held} == 0", "no memory")
    ctype = f"{C_STORAGE(x.rep)} *"
    data = r.named(f"{aside} ? ({ctype}){held}->data : {x.data}", ctype, "p")
    strides = []
    for mine, own in zip(x.strides, contiguous(r, x.dims), strict=True):
        if mine.value is not None and mine.value == own.value:
            strides.append(mine)
        else:
            strides.append(r.integer(f"({aside} ? {own.text} : {mine.text})"))
    return Arr(x.rep, held, data, x.dims, tuple(strides), frozenset())


def materialized(r: Reader, x: Lazy | Arr) -> Arr:
    """The array in memory of its own, or the one that it is."""
    if isinstance(x, Arr):
        return x
    made = alloc(r, x.rep, x.dims)
    note_work(r, x.dims)
    with shared(r, made), loops(r, x.dims) as index:
        write(r, made, index, x.at(index))
    return made


def copied(r: Reader, x: Arr | Lazy) -> Arr:
    return materialized(r, lazy(x))


def solid(r: Reader, x: Arr | Lazy) -> Arr | Lazy:
    """x, in memory if each of its elements is asked for more than once."""
    return x if isinstance(x, Arr) or x.cheap else materialized(r, x)


def kept(r: Reader, x: Value) -> Value:
    """A value that a name, or a tuple, can hold: arrays in memory, numbers under names."""
    if isinstance(x, Lazy):
        if x.ndim == 0:
            return element_of(r, x)
        return materialized(r, x)
    if isinstance(x, Num) and x.value is None and not x.text.isidentifier():
        name = r.named(x.text, C_TYPE[x.rep])
        return Num(name, x.rep, x.kinds, x.tag, x.lin, x.low, x.high, None, x.true, x.false)
    if isinstance(x, Aggregate):
        items = tuple(kept(r, y) for y in x.items)
        # A list that is kept stays the one that it is.
        same = all(a is b for a, b in zip(items, x.items, strict=True))
        return x if same else replace(x, items=items)
    return x


def element_of(r: Reader, x: Lazy) -> Num:
    return r.number(x.at([]), x.rep, (x.kind,))


# What two arrays have in common


def overlap(r: Reader, a: Arr, b: Arr) -> str:
    """ "same" elements in the same places, or none in common; "disjoint"; "overlap"; "unknown"."""
    if not (a.roots & b.roots or ANYWHERE in a.roots | b.roots):
        return "disjoint"
    if a.data == b.data and a.dims == b.dims and a.strides == b.strides:
        return "same"
    (x, mine), (y, theirs) = a.axes, b.axes
    if x != y or len(mine) != len(theirs) or not mine:  # a part of a transposed array has no axes
        return "unknown"
    same = True
    for p, q in zip(mine, theirs, strict=True):
        (low, high), (bottom, top) = _interval(p), _interval(q)
        proves = r.facts.proves
        if high is not None and bottom is not None and proves(bottom - high - 1):
            return "disjoint"
        if top is not None and low is not None and proves(low - top - 1):
            return "disjoint"
        if p[0] == "index" and q[0] == "index":
            continue  # all is the same along this axis, or nothing
        alike = p[0] == q[0] and p[1] is not None and q[1] is not None and p[1] == q[1]
        if p[0] == "slice" and q[0] == "slice":
            alike = alike and p[2] == q[2]
            step = p[2]
            if step == q[2] and abs(step) > 1 and p[1] is not None and q[1] is not None:
                d = (p[1] - q[1]).constant
                if d is not None and d % step:
                    return "disjoint"
        same = same and alike
    return "same" if same and a.dims == b.dims else "overlap"


def _interval(part: tuple) -> tuple[Linear | None, Linear | None]:
    """The least and the greatest index."""
    if part[0] == "index":
        return part[1], part[1]
    _, start, step, n = part
    if start is None or n is None:
        return None, None
    last = start + (n - 1) * step
    return (start, last) if step > 0 else (last, start)


# Pointwise functions


def pointwise(
    r: Reader, operands: Sequence[Arr | Lazy | Num], reps: Sequence[str], rep: str,
    text: Callable[..., str], cheap: bool = True,
) -> Lazy:  # fmt: skip
    """text(elements...) of operands as `reps`, in representation `rep`."""
    arrays: list[Lazy] = []
    for x, wanted in zip(operands, reps, strict=True):
        if isinstance(x, Num):
            arrays.append(of_number(named_numbers(r, convert(r, x, wanted))))
        else:
            arrays.append(cast(lazy(solid(r, x)) if len(operands) > 8 else lazy(x), wanted))
    dims = broadcast(r, [a.dims for a in arrays])
    spread = [stretched(a, dims) if a.dims else a for a in arrays]
    reads = tuple(read for a in spread for read in a.reads)
    easy = cheap and all(a.cheap for a in spread) and len(reads) < 6
    return Lazy(
        rep, dims, lambda index: text(*[a.at(index if a.dims else []) for a in spread]), reads, easy
    )


def axes_in_memory(r: Reader, x: Arr | Lazy) -> list[int]:
    """The axes of an array like this one, from the one with the largest steps on (`order="K"`);
    leaves where another call's are in another order."""
    order = list(range(x.ndim))
    if not isinstance(x, Arr) or x.ordered or x.ndim < 2:
        return order
    order.sort(key=lambda k: -abs(r.entry.at(x.strides[k].lin)))
    unlike = []
    for a, b in itertools.pairwise(order):
        steps = [x.strides[k] for k in (a, b)]
        if steps[0].value is None or steps[1].value is None:
            left, right = (f"__builtin_labs({s.text})" for s in steps)
            unlike.append(f"{left} {'<' if a < b else '<='} {right}")
    if order != sorted(order):  # to NumPy steps along axes of one item say nothing
        few = [d for d in x.dims if d.low < 2]
        if any(d.value is not None for d in few):
            raise Unreadable("the like of an array in another order than C's, with an axis of one")
        unlike += [f"{d.text} < 2" for d in few]
    if unlike:
        r.leave_if(" || ".join(unlike), "an array whose axes are in another order in memory")
    return order


def in_order(a: Arr, order: Sequence[int]) -> Arr:
    """A new array with its axes where they belong: those that it has are in this order."""
    if list(order) == sorted(order):
        return a
    at = [order.index(k) for k in range(a.ndim)]
    return replace(
        a, dims=tuple(a.dims[k] for k in at), strides=tuple(a.strides[k] for k in at),
        origin=(f"{a.data}.T", ()), flat=False, ordered=False,
    )  # fmt: skip


def copy_of(r: Reader, x: Arr | Lazy, values: Lazy) -> Arr:
    """The values in memory of their own, in the order of an array's axes."""
    order = axes_in_memory(r, x)
    if order == sorted(order):
        return materialized(r, values)
    made = in_order(alloc(r, values.rep, [x.dims[k] for k in order]), order)
    note_work(r, made.dims)
    with loops(r, made.dims, order) as index:
        write(r, made, index, values.at(index))
    return made


def common_extent_of_product(r: Reader, a: Num, b: Num) -> Num:
    """The axis that two factors share."""
    if a.lin is not None and b.lin is not None and r.facts.same(a.lin, b.lin):
        return a if a.value is not None else b
    r.leave_if(f"{a.text} != {b.text}", "extents that are not equal")
    return a if a.value is not None else b
