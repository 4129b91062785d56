"""Arrays folded along axes: sums as NumPy adds them, extremes, products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from np_compile.kernels.ir.scalars import c_expression

from .nest import (
    UNROLLED,
    alloc,
    cast,
    common_extent_of_product,
    lazy,
    load,
    loops,
    materialized,
    note_work,
    size_of,
    solid,
    write,
)
from .numbers import kind_of, rep_of
from .read import Reader, int_constant
from .threads import Pieces, in_pieces, is_long, shared
from .values import C_TYPE, FLOATS, INTEGERS, PARTS, Arr, Lazy, Num, Unreadable

_LANES = 32  # partial sums of a product of vectors


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
        with shared(r, shown, x.dims), loops(r, shown.dims, vector="") as index:

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


def _whole(r: Reader, op: str, x: Lazy, is_product: bool = False, lies: bool = False) -> str:
    """The C name of the reduction of all elements. is_product: of two vectors, which has no order
    of NumPy's, and is no negative zero. lies: whether these have no gaps."""
    rep = x.rep
    total = r.fresh("s")
    first = (
        x.at(["0"] * x.ndim) if op in ("minimum", "maximum") and rep != "bool"
        else "1" if op == "minimum" else identity(op, rep)
    )  # fmt: skip
    r.line(f"{C_TYPE[rep]} {total} = {first};")
    simd = op == "add" and rep in (FLOATS | INTEGERS)
    if simd and rep in FLOATS and not is_product:
        r.lines[-1] = f"{C_TYPE[rep]} {total} = -0.0;"
    last = next((k for k in reversed(range(x.ndim)) if x.dims[k].value != 1), None)
    if last is None or not simd or rep in INTEGERS:
        _in_order(r, op, x, total, simd)
        return total
    if last > 0 and any(d.value != 1 for d in x.dims[:last]) and x.whole:
        # NumPy makes the array, and adds up its elements as they lie.
        held = materialized(r, x)
        _pairwise(r, size_of(r, x.dims), rep, lambda i: f"{held.data}[{i}]", total)
        return _zero_of_none(r, x, total)
    n = x.dims[last]
    if lies and (n.value is None or n.value >= 2 * _LANES):
        _in_lanes(r, n, rep, lambda i: x.at([i]), total)
        return _zero_of_none(r, x, total)
    outer = [d if k != last else int_constant(1) for k, d in enumerate(x.dims)]
    with loops(r, outer, vector="") as index:

        def at(i: str, index: list[str] = index) -> str:
            return x.at([i if k == last else j for k, j in enumerate(index)])

        _pairwise(r, n, rep, at, total)
    return _zero_of_none(r, x, total)


def _in_order(r: Reader, op: str, x: Lazy, total: str, simd: bool) -> None:
    """Have a C variable, which has the first value, be the reduction of all elements, one after the
    other; of products of floats, which round, in one piece."""
    rep = x.rep

    def loop(part: str, piece: Pieces | None = None) -> None:
        vector = f"#pragma omp simd reduction(+:{part})" if simd else ""
        with loops(r, x.dims, vector=vector, within=piece) as index:
            r.line(f"{part} = {combined(op, rep, part, x.at(index))};")

    if (op == "mul" and rep not in INTEGERS) or rep in PARTS or not is_long(x.dims):
        loop(total)
        return

    def join(names: Sequence[str], pieces: str) -> list[str]:
        (each,), k = names, r.fresh("i")
        text = combined(op, rep, f"{each}[0]", f"{each}[{k}]")
        return [f"for (i64 {k} = 1; {k} < {pieces}; {k}++) {each}[0] = {text};"]

    with in_pieces(r, x.dims, join) as p:
        part = r.fresh("s")
        r.line(f"{C_TYPE[rep]} {part} = {total};")
        loop(part, p)
        p.found.append((C_TYPE[rep], part))
    r.line(f"{total} = {p.results[0]};")


def _zero_of_none(r: Reader, x: Lazy, total: str) -> str:
    """The sum of no elements is zero, and no negative one."""
    empty = [f"{d.text} == 0" for d in x.dims if d.low < 1]
    if empty:
        r.line(f"if ({' || '.join(empty)}) {total} = 0;")
    return total


def _halved(names: Sequence[str], pieces: str) -> list[str]:
    """The C that adds up the sums of pieces, by pairs."""
    (each,) = names
    return [
        f"for (i64 w = {pieces} >> 1; w; w >>= 1)",
        f"for (i64 k = 0; k < w; k++) {each}[k] = {each}[2 * k] + {each}[2 * k + 1];",
    ]


def _few(r: Reader, at: Callable[[str], str], low: str, count: str, into: str) -> None:
    """Store the sum of less than eight elements."""
    i = r.fresh("i")
    r.line(f"{into} = -0.0;")
    r.line(f"#pragma GCC unroll {UNROLLED}")
    with r.block(f"for (i64 {i} = {low}; {i} < {low} + {count}; {i}++)"):
        r.line(f"{into} += {at(i)};")


def _block(
    r: Reader, ctype: str, at: Callable[[str], str], low: str, count: str, into: str
) -> None:
    """Store the sum of at most 128 elements, as NumPy adds them: in eight sums."""
    i = r.fresh("i")
    with r.block(f"if ({count} < 8)"):
        _few(r, at, low, count, into)
    with r.block("else"):
        parts, j = r.fresh("r"), r.fresh("j")
        r.line(f"{ctype} {parts}[8];")
        end = r.named(f"{low} + {count} - {count} % 8", "i64", "e")
        r.line("#pragma GCC unroll 8")
        with r.block(f"for (i64 {j} = 0; {j} < 8; {j}++)"):
            k = r.named(f"{low} + {j}", "i64", "k")
            r.line(f"{parts}[{j}] = {at(k)};")
        _to_lanes(r, parts, 8, at, i, f"{low} + 8", end)
        r.line(f"{into} = {_tree([f'{parts}[{k}]' for k in range(8)])};")
        with r.block(f"for (i64 {i} = {end}; {i} < {low} + {count}; {i}++)"):
            r.line(f"{into} += {at(i)};")


def _to_lanes(
    r: Reader, parts: str, lanes: int, at: Callable[[str], str], i: str, low: str, end: str
) -> None:
    """Add elements to partial sums, so many at a time."""
    j = r.fresh("j")
    with r.block(f"for (i64 {i} = {low}; {i} < {end}; {i} += {lanes})"):
        r.line(f"#pragma GCC unroll {lanes}")
        with r.block(f"for (i64 {j} = 0; {j} < {lanes}; {j}++)"):
            k = r.named(f"{i} + {j}", "i64", "k")
            r.line(f"{parts}[{j}] += {at(k)};")


def _tree(terms: list[str]) -> str:
    """The C of a sum by pairs."""
    while len(terms) > 1:
        terms = [f"({a} + {b})" for a, b in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


def _in_lanes(r: Reader, n: Num, rep: str, at: Callable[[str], str], total: str) -> None:
    """Add the sum of n elements, which lie one after the other, to a C variable, as BLAS adds: in
    many sums, as each of them waits for its last addition."""
    with in_pieces(r, (n,), _halved) as p:
        low, high = p.bounds(r, n.text)
        part = r.fresh("s")
        _piece_in_lanes(r, C_TYPE[rep], at, low, high, part)
        p.found.append((C_TYPE[rep], part))
    r.line(f"{total} = {total} + {p.results[0]};")


def _piece_in_lanes(
    r: Reader, ctype: str, at: Callable[[str], str], low: str, high: str, made: str
) -> None:
    """Declare the sum of elements from one to before another."""
    i, parts = r.fresh("i"), r.fresh("r")
    r.line(f"{ctype} {made};")
    n = r.named(f"{high} - {low}", "i64", "n")
    with r.block(f"if ({n} < {2 * _LANES})"):
        _block(r, ctype, at, low, n, made)
    with r.block("else"):
        r.line(f"{ctype} {parts}[{_LANES}];")
        ends = [r.named(f"{high} - {n} % {lanes}", "i64", "e") for lanes in (_LANES, 8)]
        j = r.fresh("j")
        r.line(f"#pragma GCC unroll {_LANES}")
        with r.block(f"for (i64 {j} = 0; {j} < {_LANES}; {j}++)"):
            k = r.named(f"{low} + {j}", "i64", "k")
            r.line(f"{parts}[{j}] = {at(k)};")
        _to_lanes(r, parts, _LANES, at, i, f"{low} + {_LANES}", ends[0])
        _to_lanes(r, parts, 8, at, i, *ends)
        width = _LANES
        while width > 8:
            width //= 2
            r.line(f"#pragma GCC unroll {width}")
            with r.block(f"for (i64 {j} = 0; {j} < {width}; {j}++)"):
                r.line(f"{parts}[{j}] += {parts}[{j} + {width}];")
        r.line(f"{made} = {_tree([f'{parts}[{k}]' for k in range(8)])};")
        with r.block(f"for (i64 {i} = {ends[1]}; {i} < {high}; {i}++)"):
            r.line(f"{made} += {at(i)};")


def _pairwise(r: Reader, n: Num, rep: str, at: Callable[[str], str], total: str) -> None:
    """Add the sum of n elements to a C variable, in the order in which NumPy adds: in eight sums
    up to 128 elements, and in halves beyond."""
    ctype = C_TYPE[rep]
    if n.value is not None and n.value <= 128:
        made = r.fresh("s")
        r.line(f"{ctype} {made} = 0;")
        if n.value < 8:
            _few(r, at, "0", n.text, made)
        else:
            with r.block(""):
                _block(r, ctype, at, "0", n.text, made)
    else:
        with in_pieces(r, (n,), _halved) as p:
            part = r.fresh("s")
            _by_halves(r, ctype, at, *_half(r, p, n.text), part)
            p.found.append((ctype, part))
        made = p.results[0]
    r.line(f"{total} = {total} + {made};")


def _half(r: Reader, p: Pieces, n: str) -> tuple[str, str]:
    """Where a piece begins, and how many elements it is, if n of them are halved and halved again
    as NumPy does."""
    low, count, bit, half = r.fresh("low"), r.fresh("count"), r.fresh("bit"), r.fresh("half")
    r.line(f"i64 {low} = 0, {count} = {n};")
    with r.block(f"for (i64 {bit} = {p.pieces} >> 1; {bit}; {bit} >>= 1)"):
        r.line(f"const i64 {half} = {count} / 2 - {count} / 2 % 8;")
        r.line(f"if ({p.piece} & {bit}) {{ {low} += {half}; {count} -= {half}; }}")
        r.line(f"else {count} = {half};")
    return low, count


def _by_halves(
    r: Reader, ctype: str, at: Callable[[str], str], low: str, count: str, made: str
) -> None:
    """Declare the sum of elements, as NumPy adds them. low, count: C variables that it uses up."""
    halves, depth = r.fresh("halves"), r.fresh("depth")
    r.line(f"struct {{ {ctype} left; i64 low, count; int begun; }} {halves}[64];")
    r.line(f"{ctype} {made} = 0; int {depth} = 0;")
    with r.block("for (;;)"):
        with r.block(f"while ({count} > 128)"):
            half = r.named(f"{count} / 2 - {count} / 2 % 8", "i64", "h")
            top = f"{halves}[{depth}]"
            r.line(f"{top}.low = {low} + {half}; {top}.count = {count} - {half};")
            r.line(f"{top}.begun = 0; {depth}++; {count} = {half};")
        _block(r, ctype, at, low, count, made)
        top = f"{halves}[{depth} - 1]"
        with r.block(f"while ({depth} && {top}.begun)"):
            r.line(f"{made} = {top}.left + {made}; {depth}--;")
        r.line(f"if (!{depth}) break;")
        r.line(f"{top}.left = {made}; {top}.begun = 1; {low} = {top}.low; {count} = {top}.count;")


def extreme(r: Reader, op: str, x: Arr | Lazy) -> str:
    """The C name of the position of the least or greatest element ("minimum", "maximum"), in C
    order; the first of equal ones, and of NaN."""
    x = lazy(x)
    note_work(r, x.dims)
    best, at, count = r.fresh("best"), r.fresh("at"), r.fresh("k")
    for d in x.dims:
        if d.low < 1:
            r.leave_if(f"{d.text} == 0", "the extreme of no elements")
    sign = "<" if op == "minimum" else ">"

    def better(v: str, best: str) -> str:
        if x.rep not in FLOATS:
            return f"{v} {sign} {best}"
        return f"({best} == {best} && {v} {sign} {best}) || ({v} != {v} && {best} == {best})"

    def join(names: Sequence[str], pieces: str) -> list[str]:
        values, places = names
        return [
            f"for (i64 k = 1; k < {pieces}; k++) if ({better(f'{values}[k]', f'{values}[0]')})",
            f"{{ {values}[0] = {values}[k]; {places}[0] = {places}[k]; }}",
        ]

    with in_pieces(r, x.dims, join) as p:
        r.line(f"{C_TYPE[x.rep]} {best} = {x.at(['0'] * x.ndim)};")
        first, real = "0", next((k for k, d in enumerate(x.dims) if d.value != 1), None)
        if real is not None:
            rest = "".join(f" * {d.text}" for d in x.dims[real + 1 :])
            first = f"{p.bounds(r, x.dims[real].text)[0]}{rest}"
        r.line(f"i64 {at} = 0, {count} = {first};")
        with loops(r, x.dims, vector="", within=p) as index:
            v = r.named(x.at(index), C_TYPE[x.rep])
            r.line(f"if ({better(v, best)}) {{ {best} = {v}; {at} = {count}; }}")
            r.line(f"{count}++;")
        p.found += [(C_TYPE[x.rep], best), ("i64", at)]
    return p.results[1]


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
    lies = all(isinstance(z, Arr) and z.strides[-1].value == 1 for z in (a, b))

    def times(p: str, q: str) -> str:
        return f"mul_{rep}({p}, {q})" if rep in PARTS else c_expression("mul", rep, [p, q])

    if x.ndim == y.ndim == 1:
        each = Lazy(rep, (n,), lambda i: times(x.at(i), y.at(i)), (*x.reads, *y.reads))
        return Num(_whole(r, "add", each, True, lies), rep, (kind,))
    if y.ndim == 1:
        made = alloc(r, rep, x.dims[:-1])
        note_work(r, x.dims)
        with shared(r, made, x.dims), loops(r, made.dims, vector="") as index:
            each = Lazy(rep, (n,), lambda k: times(x.at([*index, *k]), y.at(k)))
            write(r, made, index, _whole(r, "add", each, True, lies))
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
