"""Reductions along axes, in NumPy's own order of summation, and what accumulates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..folding import combined, extreme, identity, reduced
from ..index import true_places, view
from ..nest import (
    alloc,
    cast,
    cast_text,
    common_extent_of_product,
    lazy,
    load,
    loops,
    materialized,
    named_numbers,
    note_work,
    size_of,
    solid,
    write,
)
from ..numbers import kind_of
from ..read import Reader, int_constant
from ..unions import binary
from ..values import (
    C_TYPE,
    DTYPE_OF,
    FLOATS,
    PARTS,
    Arr,
    Known,
    Lazy,
    Num,
    Slice,
    Tup,
    Unreadable,
    Value,
    is_none,
    python,
)
from .operands import as_operand, axes_of, axis_of, keeps, rep_or
from .ufuncs import into, ufunc
from .views import least_extent


def _accumulated(op: str, rep: str) -> str:
    """The representation in which NumPy sums up."""
    if op in ("add", "mul"):
        if rep in ("bool", "i8", "i16", "i32"):
            return "i64"
        if rep in ("u8", "u16", "u32"):
            return "u64"
    return rep


def reduction(op: str, test: bool = False) -> Callable:
    def reduce(
        r: Reader, x: Value, axis: Value | None = None, dtype: Value | None = None,
        out: Value | None = None, keepdims: Value | None = None,
    ) -> Value:  # fmt: skip
        x = as_operand(r, x)
        if isinstance(x, Num):
            raise Unreadable("a reduction of a number")
        axes = axes_of(axis, x.ndim)
        if test:
            rep = "bool"
        else:
            rep = _accumulated(op, x.rep) if is_none(dtype) else rep_or(dtype)
            if rep == "bool" and op in ("add", "mul"):
                raise Unreadable("a sum or a product of truth values")
        if len(axes) < x.ndim or x.ndim > 1:
            x = solid(r, x)
        if test and x.rep != "bool":
            x = _nonzero(x)
        made = reduced(r, op, x, axes, keeps(keepdims), rep)
        if isinstance(made, str):
            made = _scalar(r, made, rep)
        return into(r, made, out) if out is not None else made

    return reduce


def _nonzero(x: Arr | Lazy) -> Lazy:
    source = lazy(x)
    at = source.at
    if x.rep in PARTS:
        return Lazy(
            "bool", source.dims, lambda i: f"({at(i)}.r != 0 || {at(i)}.i != 0)", source.reads
        )
    return Lazy("bool", source.dims, lambda i: f"({at(i)} != 0)", source.reads)


def nonzero(r: Reader, x: Value) -> Tup:
    """`np.nonzero`: as in NumPy, the columns of one array."""
    x = as_operand(r, x)
    if isinstance(x, Num) or not x.ndim:
        raise Unreadable("np.nonzero of a number")
    note_work(r, x.dims)
    held = true_places(r, x if x.rep == "bool" else _nonzero(x))
    whole = Slice.of(None, None, None)
    return Tup(tuple(view(r, held, [whole, int_constant(k)]) for k in range(x.ndim)))


def _flatnonzero(r: Reader, x: Value) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Num) or x.ndim != 1:
        raise Unreadable("np.flatnonzero of more than one axis")
    return nonzero(r, x).items[0]


def _scalar(r: Reader, text: str, rep: str) -> Num:
    """NumPy's scalar in a C variable."""
    kind = kind_of(DTYPE_OF[rep])
    if rep == "i64":
        name = r.named(text, "i64", "n")
        return Num(name, rep, (kind,), "", r.facts.name(name))
    return Num(r.named(text, C_TYPE[rep]), rep, (kind,))


def _mean(
    r: Reader, x: Value, axis: Value | None = None, dtype: Value | None = None,
    out: Value | None = None, keepdims: Value | None = None,
) -> Value:  # fmt: skip
    x = as_operand(r, x)
    if isinstance(x, Num) or dtype is not None or out is not None:
        raise Unreadable("np.mean with these arguments")
    rep = x.rep if x.rep in FLOATS or x.rep in PARTS else "f64"
    axes = axes_of(axis, x.ndim)
    n = size_of(r, [x.dims[k] for k in axes])
    total = reduced(r, "add", solid(r, x) if len(axes) < x.ndim else x, axes, keeps(keepdims), rep)
    count = Num(
        f"({C_TYPE.get(PARTS.get(rep, rep))}){n.text}",
        PARTS.get(rep, rep),
        (kind_of(DTYPE_OF[PARTS.get(rep, rep)]),),
    )
    if isinstance(total, str):
        if rep in PARTS:
            return r.number(
                f"div_{rep}({total}, {cast_number(count, rep)})", rep, (kind_of(DTYPE_OF[rep]),)
            )
        return _scalar(r, f"({total} / {count.text})", rep)
    return ufunc(
        r, "true_divide", [total, Num(named_numbers(r, count).text, count.rep, count.kinds)]
    )


def cast_number(x: Num, rep: str) -> str:
    return cast_text(x.rep, rep, x.text)


def _var(
    r: Reader, x: Value, axis: Value | None = None, dtype: Value | None = None,
    out: Value | None = None, ddof: Value | None = None, keepdims: Value | None = None,
) -> Value:  # fmt: skip
    x = as_operand(r, x)
    if isinstance(x, Num) or dtype is not None or out is not None or x.rep in PARTS:
        raise Unreadable("np.var with these arguments")
    x = materialized(r, x)
    axes = axes_of(axis, x.ndim)
    middle = _mean(r, x, axis, keepdims=python(len(axes) < x.ndim))
    if len(axes) == x.ndim and isinstance(middle, Arr):
        raise Unreadable("np.var with keepdims")
    d = ufunc(r, "subtract", [x, middle])
    square = ufunc(r, "square", [d])
    total = reduction("add")(r, square, axis, keepdims=keepdims)
    n = binary(r, "Sub", size_of(r, [x.dims[k] for k in axes]), ddof or python(0))
    count = Num(
        f"(f64)({n.text} > 0 ? {n.text} : 0)" if n.rep == "i64" else n.text, "f64", ("float",)
    )
    return ufunc(r, "true_divide", [total, Num(named_numbers(r, count).text, "f64", ("float",))])


def _std(r: Reader, *args: Value, **kwargs: Value) -> Value:
    return ufunc(r, "sqrt", [_var(r, *args, **kwargs)])


def _arg(op: str) -> Callable:
    def find(r: Reader, x: Value, axis: Value | None = None) -> Value:
        x = as_operand(r, x)
        if isinstance(x, Num) or x.rep in PARTS:
            raise Unreadable("argmin of this")
        x = solid(r, x)
        place = None if axis is None or is_none(axis) else axis_of(axis, x.ndim)
        if place is None or x.ndim == 1:
            text = extreme(r, op, x)
            n = size_of(r, x.dims)
            name = r.named(text, "i64", "n")
            lin = r.facts.name(name, 0, n.high)
            if n.lin is not None:
                r.facts.add(n.lin - lin - 1)
            return Num(name, "i64", ("int64",), "", lin, 0, n.high)
        n = x.dims[place]
        if n.low < 1:
            r.leave_if(f"{n.text} == 0", "the extreme of no elements")
        if place != x.ndim - 1:
            return _of_rows(r, op, lazy(x), place)
        source = lazy(x)
        made = alloc(r, "i64", x.dims[:-1])
        with loops(r, made.dims, vector="") as index:

            def at(within: list[str], index: list[str] = index) -> str:
                return source.at([*index, *within])

            write(r, made, index, extreme(r, op, Lazy(x.rep, (n,), at)))
        return made

    return find


def _of_rows(r: Reader, op: str, x: Lazy, axis: int) -> Arr:
    """Where the extremes along an axis are that is not the last one: row by row, without a branch
    on data, so that a row is one of vectors."""
    kept = [k for k in range(x.ndim) if k != axis]
    dims = [x.dims[k] for k in kept]
    made, best = alloc(r, "i64", dims), alloc(r, x.rep, dims)
    note_work(r, x.dims)
    with loops(r, dims) as index:
        write(r, made, index, "0")
        write(r, best, index, x.at([*index[:axis], "0", *index[axis:]]))
    sign = "<" if op == "minimum" else ">"
    with loops(r, x.dims, [axis, *kept]) as index:
        there = [index[k] for k in kept]
        v, b = r.named(x.at(index), C_TYPE[x.rep]), r.named(load(best, there), C_TYPE[x.rep])
        text = f"({v} {sign} {b})"
        if x.rep in FLOATS:  # the first NaN is the extreme
            text = f"(({v} {sign} {b}) | ({v} != {v})) & ({b} == {b})"
        better = r.named(text, "int")
        write(r, best, there, f"({better} ? {v} : {b})")
        write(r, made, there, f"({better} ? {index[axis]} : {load(made, there)})")
    return made


def python_extreme(r: Reader, name: str, x: Arr, kind: str = "") -> Num:
    """Python's min or max of a vector: the first of equal ones, by comparisons."""
    if x.rep in PARTS:
        raise Unreadable(f"{name} of complex numbers")
    n = x.dims[0]
    if n.low < 1:
        r.leave_if(f"{n.text} == 0", "the extreme of no elements")
    best = r.fresh("best")
    r.line(f"{C_TYPE[x.rep]} {best} = {load(x, ['0'])};")
    sign = "<" if name == "min" else ">"
    with loops(r, x.dims, vector="") as index:
        text = load(x, index)
        r.line(f"{best} = {text} {sign} {best} ? {text} : {best};")
    kind = kind or x.kind
    if x.rep == "i64":
        made = r.integer(r.named(best, "i64", "n"))
        return Num(made.text, "i64", (kind,), "", made.lin)
    return r.number(r.named(best, C_TYPE[x.rep]), x.rep, (kind,))


def _count_nonzero(
    r: Reader, x: Value, axis: Value | None = None, *, keepdims: Value | None = None
) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Num):
        raise Unreadable("np.count_nonzero of a number")
    if not is_none(axis) or keeps(keepdims):
        return reduction("add")(r, _nonzero(solid(r, x)), axis, keepdims=keepdims)
    text = reduced(r, "add", _nonzero(x), tuple(range(x.ndim)), False, "i64")
    n = size_of(r, x.dims)
    made = r.integer(text, 0, n.high)
    kind = _COUNT_KIND
    return made if kind == "int" else Num(made.text, "i64", (kind,), "", made.lin, 0, n.high)


# A Python integer in older versions of NumPy.
_COUNT_KIND = type(np.count_nonzero(np.ones(1))).__name__


def cumulative(op: str) -> Callable:
    """What accumulates along an axis."""

    def accumulate(r: Reader, x: Value, axis: Value | None = None) -> Value:
        x = as_operand(r, x)
        if isinstance(x, Num) or (x.ndim > 1 and is_none(axis)):
            raise Unreadable("a cumulative sum of this")
        k = x.ndim - 1 if is_none(axis) else axis_of(axis, x.ndim)
        rep = _accumulated(op, x.rep)
        source = cast(lazy(x), rep)
        made = alloc(r, rep, x.dims)
        note_work(r, x.dims)
        order = [j for j in range(x.ndim) if j != k]
        if k == x.ndim - 1:
            with loops(
                r, [d if j != k else int_constant(1) for j, d in enumerate(x.dims)], vector=""
            ) as index:
                s, i = r.fresh("s"), r.fresh("i")
                r.line(f"{C_TYPE[rep]} {s} = {identity(op, rep)};")
                with r.block(f"for (i64 {i} = 0; {i} < {x.dims[k].text}; {i}++)"):
                    index[k] = i
                    text = source.at(index)
                    new = combined(op, rep, s, text)
                    begins = op in ("minimum", "maximum") or rep in FLOATS or rep in PARTS
                    first = f"{i} == 0 ? {text} : " if begins else ""  # -0.0 stays so
                    r.line(f"{s} = {first}{new};")
                    write(r, made, index, s)
            return made
        with loops(r, x.dims, [k, *order]) as index:
            before = list(index)
            before[k] = f"({index[k]} - 1)"
            text = source.at(index)
            sum_ = combined(op, rep, load(made, before), text)
            write(r, made, index, f"({index[k]} == 0 ? {text} : {sum_})")
        return made

    return accumulate


_SUM = reduction("add")


_PROD = reduction("mul")


_MIN = reduction("minimum")


_MAX = reduction("maximum")


_ANY = reduction("or", True)


_ALL = reduction("and", True)


def _of_axis(op: Callable) -> Callable:
    """A reduction that takes no dtype."""

    def reduce(
        r: Reader,
        x: Value,
        axis: Value | None = None,
        out: Value | None = None,
        keepdims: Value | None = None,
    ) -> Value:
        return op(r, x, axis, None, out, keepdims)

    return reduce


def _ptp(r: Reader, x: Value, axis: Value | None = None, *, keepdims: Value | None = None) -> Value:
    x = solid(r, as_operand(r, x))
    ends = [op(r, x, axis, keepdims=keepdims) for op in (_MAX, _MIN)]
    return ufunc(r, "subtract", ends)


def _norm(
    r: Reader,
    x: Value,
    ord: Value | None = None,
    axis: Value | None = None,
    keepdims: Value | None = None,
) -> Value:
    x = as_operand(r, x)
    whole = isinstance(ord, Known) and ord.value in ("fro", "f") and is_none(axis)
    if isinstance(x, Num) or x.rep in PARTS or not (is_none(ord) or (whole and x.ndim == 2)):
        raise Unreadable("np.linalg.norm with these arguments")
    if x.rep not in FLOATS:
        x = cast(lazy(x), "f64")
    if axis is not None and isinstance(axis, Tup):
        raise Unreadable("np.linalg.norm of matrices")
    x = solid(r, x)
    total = reduction("add")(r, ufunc(r, "square", [x]), axis, keepdims=keepdims)
    return ufunc(r, "sqrt", [total])


def _trace(r: Reader, x: Value) -> Value:
    if not isinstance(x, Arr) or x.ndim != 2:
        raise Unreadable("np.trace of this")
    source = lazy(x)
    n = least_extent(r, x)
    return reduction("add")(r, Lazy(x.rep, (n,), lambda i: source.at([i[0], i[0]]), ((x, False),)))


def _allclose(name: str) -> Callable:
    def close(
        r: Reader, a: Value, b: Value, rtol: Value | None = None, atol: Value | None = None
    ) -> Value:
        x, y = as_operand(r, a), as_operand(r, b)
        rtol, atol = rtol or python(1e-5), atol or python(1e-8)
        y = y if isinstance(y, Num) else solid(r, y)
        x = x if isinstance(x, Num) else solid(r, x)
        bound = ufunc(r, "add", [atol, ufunc(r, "multiply", [rtol, ufunc(r, "absolute", [y])])])
        near = ufunc(r, "less_equal", [ufunc(r, "absolute", [ufunc(r, "subtract", [x, y])]), bound])
        near = ufunc(r, "logical_and", [near, ufunc(r, "isfinite", [y])])
        near = ufunc(r, "logical_or", [near, ufunc(r, "equal", [x, y])])
        if name == "isclose":
            return near
        if isinstance(near, Num):
            return Num(near.text, "bool", ("bool",), low=0, high=1)
        text = reduced(r, "and", near, tuple(range(near.ndim)), False, "bool")
        return Num(text, "bool", ("bool",), low=0, high=1)

    return close


def _array_equal(r: Reader, a: Value, b: Value) -> Value:
    x, y = as_operand(r, a), as_operand(r, b)
    if isinstance(x, Num) or isinstance(y, Num) or x.ndim != y.ndim:
        raise Unreadable("np.array_equal of these")
    for d, n in zip(x.dims, y.dims, strict=True):
        common_extent_of_product(r, d, n)
    near = ufunc(r, "equal", [x, y])
    text = reduced(r, "and", near, tuple(range(x.ndim)), False, "bool")
    return Num(text, "bool", ("bool",), low=0, high=1)


TABLE: dict[Any, Callable] = {
    np.sum: _SUM, np.prod: _PROD, np.min: _of_axis(_MIN), np.max: _of_axis(_MAX),
    np.any: _of_axis(_ANY), np.all: _of_axis(_ALL), np.mean: _mean, np.var: _var, np.std: _std,
    np.argmin: _arg("minimum"), np.argmax: _arg("maximum"), np.ptp: _ptp,
    np.count_nonzero: _count_nonzero, np.nonzero: nonzero, np.flatnonzero: _flatnonzero,
    np.cumsum: cumulative("add"), np.cumprod: cumulative("mul"),
    np.linalg.norm: _norm, np.trace: _trace, np.allclose: _allclose("allclose"),
    np.isclose: _allclose("isclose"), np.array_equal: _array_equal,
    np.amin: _of_axis(_MIN), np.amax: _of_axis(_MAX),
}  # fmt: skip

METHODS: dict[str, Callable] = {
    "sum": _SUM, "prod": _PROD, "min": _of_axis(_MIN), "max": _of_axis(_MAX),
    "any": _of_axis(_ANY), "all": _of_axis(_ALL), "mean": _mean, "var": _var, "std": _std,
    "argmin": _arg("minimum"), "argmax": _arg("maximum"), "cumsum": cumulative("add"),
    "cumprod": cumulative("mul"), "trace": _trace, "nonzero": nonzero,
}  # fmt: skip
