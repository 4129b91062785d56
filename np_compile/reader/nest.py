"""Arrays: views, loops over their elements, stores, reductions.

An array expression is `Lazy` until it is stored or reduced, so that it is one loop. What it reads
is read before anything is written: where the target may be among it, by names or by addresses, the
result is made in memory of its own first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from np_compile.kernels.ir.scalars import c_cast, c_expression, c_load, c_store

from .linear import Linear
from .numbers import convert, kind_of, rep_of
from .read import C_STORAGE, Line, Reader, int_constant
from .stack import MOST, Small
from .values import (
    ANYWHERE,
    C_TYPE,
    FLOATS,
    INTEGERS,
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
_UNROLLED = 8
# Elements of a nest that is written out: all of one that small, of a larger one those of its
# innermost loops, so few that the compiler has vectors of the loops around.
_WHOLE, _PART = 128, 16
FEW = f"#pragma omp simd safelen({_UNROLLED})"  # a loop of few iterations that is one of vectors
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
) -> Iterator[list[str]]:
    """Loops over all indices, the last of `order` innermost; gives the indices' C. there: C that
    says whether to go on."""
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
        if depth >= len(real) - written_out:
            r.line(f"#pragma GCC unroll {_UNROLLED}")
        elif k == real[-1] and vector:
            r.line(vector)
        test = f"{i} < {n.text}" + (f" && {there}" if there else "")
        nest.append((r.lines, f"for (i64 {i} = 0; {test}; {i}++)"))
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
    few = [d.value for d in dims if d.value is not None and d.value <= _UNROLLED]
    if len(few) == len(dims) and math.prod(few) <= _WHOLE:
        return len(dims)
    copies = 1
    for depth, d in enumerate(reversed(dims)):
        if d.value is None or d.value > _UNROLLED or (depth and copies * d.value > _PART):
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
        with loops(r, target.dims, inner_axis(target)) as index:
            write(r, target, index, value.at(index))
        return
    if relation == "overlap":
        made = materialized(r, value)
        with loops(r, target.dims, inner_axis(target)) as index:
            write(r, target, index, load(made, index))
        return
    # By addresses: in memory of its own where they overlap.
    tests = [f"overlap({span(r, target)}, {span(r, read)})" for read in unsure]
    aside = r.named(" || ".join(tests), "int", "aside")
    sizes = ", ".join(["", *(d.text for d in target.dims)])
    code = CODES.index(target.rep)
    held = r.named(
        f"{aside} ? allocate(rt, {code}, {SIZES[target.rep]}, 0, {target.ndim}{sizes}) : 0",
        "Buf *", "b",
    )  # fmt: skip
    r.leave_if(f"{aside} && {held} == 0", "no memory")
    ctype = f"{C_STORAGE(target.rep)} *"
    data = r.named(f"{aside} ? ({ctype}){held}->data : {target.data}", ctype, "p")
    strides = []
    for mine, own in zip(target.strides, contiguous(r, target.dims), strict=True):
        if mine.value is not None and mine.value == own.value:
            strides.append(mine)
        else:
            strides.append(r.integer(f"({aside} ? {own.text} : {mine.text})"))
    there = Arr(target.rep, held, data, target.dims, tuple(strides), frozenset())
    with loops(r, target.dims, inner_axis(target)) as index:
        write(r, there, index, value.at(index))
    with r.block(f"if ({aside})"):
        with loops(r, target.dims, inner_axis(target)) as index:
            write(r, target, index, load(there, index))
        r.line(f"release(rt, {held});")


def span(r: Reader, a: Arr) -> str:
    """The first and the last element's addresses, as C arguments."""
    low = high = "0"
    for d, s in zip(a.dims, a.strides, strict=True):
        if s.value is not None and s.value >= 0:
            high += f" + ({d.text} - 1) * {s.text}"
        else:
            step = f"({d.text} - 1) * {s.text}"
            low += f" + (({step}) < 0 ? {step} : 0)"
            high += f" + (({step}) > 0 ? {step} : 0)"
    return f"{a.data} + {low}, {a.data} + {high} + 1"


def materialized(r: Reader, x: Lazy | Arr) -> Arr:
    """The array in memory of its own, or the one that it is."""
    if isinstance(x, Arr):
        return x
    made = alloc(r, x.rep, x.dims)
    note_work(r, x.dims)
    with loops(r, x.dims) as index:
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


# Reductions


def reduced(r: Reader, op: str, x: Arr | Lazy, axes: tuple[int, ...], keepdims: bool, rep: str):
    """The reduction "add", "mul", "minimum", "maximum", "or", "and" over axes, computed in `rep`:
    a number's C text, or an array."""
    x = cast(lazy(x), rep)
    kept = [k for k in range(x.ndim) if k not in axes]
    note_work(r, x.dims)
    if op in ("minimum", "maximum"):
        for k in axes:
            n = x.dims[k]
            if n.low < 1:
                r.leave_if(f"{n.text} == 0", "the extreme of no elements")
    if not kept:
        text = _whole(r, op, x)
        if not keepdims or not x.ndim:
            return text
        made = alloc(r, rep, [int_constant(1)] * x.ndim)
        write(r, made, ["0"] * x.ndim, text)
        return made
    shown = alloc(r, rep, [x.dims[k] for k in kept])
    inner = list(axes)
    if kept[-1] == x.ndim - 1:  # rows are combined
        with loops(r, shown.dims) as index:
            write(r, shown, index, _start(op, rep, x, kept, index))
        order = [*[k for k in range(x.ndim) if k != x.ndim - 1], x.ndim - 1]
        with loops(r, x.dims, order) as index:
            there = [index[k] for k in kept]
            write(r, shown, there, combined(op, rep, load(shown, there), x.at(index)))
    else:
        with loops(r, shown.dims, vector="") as index:

            def at(within: list[str], index: list[str] = index) -> str:
                whole = ["0"] * x.ndim
                for k, i in zip(kept, index, strict=True):
                    whole[k] = i
                for k, i in zip(inner, within, strict=True):
                    whole[k] = i
                return x.at(whole)

            part = Lazy(rep, tuple(x.dims[k] for k in inner), at)
            write(r, shown, index, _whole(r, op, part))
    if keepdims:
        dims, strides, taken = [], [], iter(zip(shown.dims, shown.strides, strict=True))
        for k in range(x.ndim):
            d, s = next(taken) if k in kept else (int_constant(1), int_constant(1))
            dims.append(d)
            strides.append(s)
        return Arr(rep, shown.buf, shown.data, tuple(dims), tuple(strides), shown.roots)
    return shown


def _start(op: str, rep: str, x: Lazy, kept: list[int], index: list[str]) -> str:
    if op in ("minimum", "maximum"):
        first = ["0"] * x.ndim
        for k, i in zip(kept, index, strict=True):
            first[k] = i
        return x.at(first)
    return identity(op, rep)


def identity(op: str, rep: str) -> str:
    one = op in ("mul", "and")
    if rep in PARTS:
        return f"({rep}){{{int(one)}, 0}}"
    return "1" if one else "0"


def combined(op: str, rep: str, a: str, b: str) -> str:
    """C of a step of a reduction."""
    if rep in PARTS:
        if op not in ("add", "mul"):
            raise Unreadable("this reduction of complex numbers")
        return f"{op}_{rep}({a}, {b})"
    if rep == "bool":
        sign = {"or": "|", "and": "&", "maximum": "|", "minimum": "&"}[op]
        return f"({a} {sign} ({b} != 0))"
    if op in ("minimum", "maximum") and rep in FLOATS:
        return f"running_{op[:3]}_{rep}({a}, {b})"
    return c_expression(op, rep, [a, b])


def _whole(r: Reader, op: str, x: Lazy) -> str:
    """The C name of the reduction of all elements."""
    rep = x.rep
    total = r.fresh("s")
    first = (
        x.at(["0"] * x.ndim) if op in ("minimum", "maximum") and rep != "bool"
        else "1" if op == "minimum" else identity(op, rep)
    )  # fmt: skip
    r.line(f"{C_TYPE[rep]} {total} = {first};")
    simd = op == "add" and rep in (FLOATS | INTEGERS)
    if simd and rep in FLOATS:
        r.lines[-1] = f"{C_TYPE[rep]} {total} = -0.0;"
    last = next((k for k in reversed(range(x.ndim)) if x.dims[k].value != 1), None)
    if last is None or not simd or rep in INTEGERS:
        vector = f"#pragma omp simd reduction(+:{total})" if simd else ""
        with loops(r, x.dims, vector=vector) as index:
            r.line(f"{total} = {combined(op, rep, total, x.at(index))};")
        return total
    if last > 0 and any(d.value != 1 for d in x.dims[:last]) and x.whole:
        # NumPy makes the array, and adds up its elements as they lie.
        held = materialized(r, x)
        _pairwise(r, size_of(r, x.dims), rep, lambda i: f"{held.data}[{i}]", total)
        return _zero_of_none(r, x, total)
    outer = [d if k != last else int_constant(1) for k, d in enumerate(x.dims)]
    with loops(r, outer, vector="") as index:

        def at(i: str, index: list[str] = index) -> str:
            return x.at([i if k == last else j for k, j in enumerate(index)])

        _pairwise(r, x.dims[last], rep, at, total)
    return _zero_of_none(r, x, total)


def _zero_of_none(r: Reader, x: Lazy, total: str) -> str:
    """The sum of no elements is zero, and no negative one."""
    empty = [f"{d.text} == 0" for d in x.dims if d.low < 1]
    if empty:
        r.line(f"if ({' || '.join(empty)}) {total} = 0;")
    return total


def _pairwise(r: Reader, n: Num, rep: str, at: Callable[[str], str], total: str) -> str:
    """Add the sum of n elements to a C variable, in the order in which NumPy adds: in eight sums
    up to 128 elements, and in halves beyond."""
    ctype = C_TYPE[rep]

    def few(low: str, count: str, into: str) -> None:
        """One of less than eight elements."""
        i = r.fresh("i")
        r.line(f"{into} = -0.0;")
        r.line(f"#pragma GCC unroll {_UNROLLED}")
        with r.block(f"for (i64 {i} = {low}; {i} < {low} + {count}; {i}++)"):
            r.line(f"{into} += {at(i)};")

    def block(low: str, count: str, into: str) -> None:
        """One of at most 128 elements."""
        i = r.fresh("i")
        with r.block(f"if ({count} < 8)"):
            few(low, count, into)
        with r.block("else"):
            parts, j = r.fresh("r"), r.fresh("j")
            r.line(f"{ctype} {parts}[8];")
            end = r.named(f"{low} + {count} - {count} % 8", "i64", "e")
            r.line("#pragma GCC unroll 8")
            with r.block(f"for (i64 {j} = 0; {j} < 8; {j}++)"):
                k = r.named(f"{low} + {j}", "i64", "k")
                r.line(f"{parts}[{j}] = {at(k)};")
            with r.block(f"for (i64 {i} = {low} + 8; {i} < {end}; {i} += 8)"):
                r.line("#pragma GCC unroll 8")
                with r.block(f"for (i64 {j} = 0; {j} < 8; {j}++)"):
                    k = r.named(f"{i} + {j}", "i64", "k")
                    r.line(f"{parts}[{j}] += {at(k)};")
            p = [f"{parts}[{k}]" for k in range(8)]
            r.line(
                f"{into} = (({p[0]} + {p[1]}) + ({p[2]} + {p[3]})) + "
                f"(({p[4]} + {p[5]}) + ({p[6]} + {p[7]}));"
            )
            with r.block(f"for (i64 {i} = {end}; {i} < {low} + {count}; {i}++)"):
                r.line(f"{into} += {at(i)};")

    made = r.fresh("s")
    r.line(f"{ctype} {made} = 0;")
    if n.value is not None and n.value < 8:
        few("0", n.text, made)
    elif n.value is not None and n.value <= 128:
        with r.block(""):
            block("0", n.text, made)
    else:
        halves, low, count = r.fresh("halves"), r.fresh("low"), r.fresh("count")
        r.line(f"struct {{ {ctype} left; i64 low, count; int begun; }} {halves}[64];")
        depth = r.fresh("depth")
        r.line(f"i64 {low} = 0, {count} = {n.text}; int {depth} = 0;")
        with r.block("for (;;)"):
            with r.block(f"while ({count} > 128)"):
                half = r.named(f"{count} / 2 - {count} / 2 % 8", "i64", "h")
                top = f"{halves}[{depth}]"
                r.line(f"{top}.low = {low} + {half}; {top}.count = {count} - {half};")
                r.line(f"{top}.begun = 0; {depth}++; {count} = {half};")
            block(low, count, made)
            top = f"{halves}[{depth} - 1]"
            with r.block(f"while ({depth} && {top}.begun)"):
                r.line(f"{made} = {top}.left + {made}; {depth}--;")
            r.line(f"if (!{depth}) break;")
            r.line(
                f"{top}.left = {made}; {top}.begun = 1; {low} = {top}.low; {count} = {top}.count;"
            )
    r.line(f"{total} = {total} + {made};")
    return total


def extreme(r: Reader, op: str, x: Arr | Lazy) -> str:
    """The C name of the position of the least or greatest element ("minimum", "maximum"), in C
    order; the first of equal ones, and of NaN."""
    x = lazy(x)
    note_work(r, x.dims)
    best, at, count = r.fresh("best"), r.fresh("at"), r.fresh("k")
    for d in x.dims:
        if d.low < 1:
            r.leave_if(f"{d.text} == 0", "the extreme of no elements")
    r.line(f"{C_TYPE[x.rep]} {best} = {x.at(['0'] * x.ndim)};")
    r.line(f"i64 {at} = 0, {count} = 0;")
    sign = "<" if op == "minimum" else ">"
    with loops(r, x.dims, vector="") as index:
        v = r.named(x.at(index), C_TYPE[x.rep])
        nan = f" || ({v} != {v} && {best} == {best})" if x.rep in FLOATS else ""
        kept = f"{best} == {best} && " if x.rep in FLOATS else ""
        r.line(f"if (({kept}{v} {sign} {best}){nan}) {{ {best} = {v}; {at} = {count}; }}")
        r.line(f"{count}++;")
    return at


def dot(r: Reader, a: Arr | Lazy, b: Arr | Lazy) -> Num | Arr:
    """`a @ b` where b is a vector or a matrix."""
    kinds = (a.kind, b.kind)
    dtype = np.result_type(a.dtype, b.dtype)
    rep, kind = rep_of(dtype), kind_of(dtype)
    if rep == "bool":
        raise Unreadable(f"a product of {kinds}")
    x, y = cast(lazy(solid(r, a)), rep), cast(lazy(solid(r, b)), rep)
    if x.ndim == 0 or y.ndim == 0 or y.ndim > 2:
        raise Unreadable("a product of arrays of these ranks")
    n = common_extent_of_product(r, x.dims[-1], y.dims[0])

    def times(p: str, q: str) -> str:
        return f"mul_{rep}({p}, {q})" if rep in PARTS else c_expression("mul", rep, [p, q])

    if x.ndim == y.ndim == 1:
        each = Lazy(rep, (n,), lambda i: times(x.at(i), y.at(i)), (*x.reads, *y.reads))
        return Num(_whole(r, "add", each), rep, (kind,))
    if y.ndim == 1:
        made = alloc(r, rep, x.dims[:-1])
        note_work(r, x.dims)
        with loops(r, made.dims, vector="") as index:
            each = Lazy(rep, (n,), lambda k: times(x.at([*index, *k]), y.at(k)))
            write(r, made, index, _whole(r, "add", each))
        return made
    rows = x.dims[:-1]
    made = alloc(r, rep, [*rows, y.dims[1]])
    note_work(r, [*rows, n, y.dims[1]])
    with loops(r, made.dims) as index:
        write(r, made, index, identity("add", rep))
    with loops(r, [*rows, n, y.dims[1]]) as index:
        *row, k, j = index
        there = [*row, j]
        text = times(x.at([*row, k]), y.at([k, j]))
        write(r, made, there, combined("add", rep, load(made, there), text))
    return made


def in_c_order(r: Reader, x: Arr | Lazy) -> None:
    """Leave where NumPy would give a copy of the array another order than C's."""
    if not isinstance(x, Arr) or x.ordered or x.ndim < 2:
        return
    unlike = [f"{x.strides[-1].text} < 1"]
    known = [r.entry.at(s.lin) for s in x.strides]
    for k in range(x.ndim - 1):
        if known[k] < known[k + 1]:
            raise Unreadable("the like of an array that is not in C order")
        unlike.append(f"{x.strides[k].text} < {x.strides[k + 1].text} * {x.dims[k + 1].text}")
    r.leave_if(" || ".join(unlike), "the like of an array that is not in C order")


def common_extent_of_product(r: Reader, a: Num, b: Num) -> Num:
    """The axis that two factors share."""
    if a.lin is not None and b.lin is not None and r.facts.same(a.lin, b.lin):
        return a if a.value is not None else b
    r.leave_if(f"{a.text} != {b.text}", "extents that are not equal")
    return a if a.value is not None else b
