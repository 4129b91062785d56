"""Functions of several arrays, and those made of others."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from np_compile.kernels.ir.scalars import c_expression

from ..index import gathered, view
from ..nest import (
    alloc,
    cast,
    common_extent_of_product,
    extent,
    lazy,
    loops,
    materialized,
    note_work,
    pointwise,
    solid,
    write,
)
from ..numbers import kind_of, rep_of, to_int
from ..read import Reader, int_constant
from ..unions import binary
from ..values import (
    FLOATS,
    INTEGERS,
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
from .operands import (
    WEAK,
    agreed,
    arange,
    as_item,
    as_operand,
    axis_of,
    operand_kind,
    rep_or,
    scalar_type,
    stacked,
)
from .products import product_of
from .reductions import nonzero
from .ufuncs import into, ufunc


def _dot(r: Reader, a: Value, b: Value, out: Value | None = None) -> Value:
    a, b = as_operand(r, a), as_operand(r, b)
    if isinstance(a, Num) and isinstance(b, Num):
        raise Unreadable("np.dot of numbers")
    is_scaled = isinstance(a, Num) or isinstance(b, Num)
    # It is no ufunc: Python's numbers have a dtype for it.
    made = ufunc(r, "multiply", [_typed(r, a), _typed(r, b)]) if is_scaled else product_of(r, a, b)
    if out is None:
        return made
    if not isinstance(out, Arr) or not out.flat or isinstance(made, Num) or made.rep != out.rep:
        raise Unreadable("np.dot with such an out=")
    return into(r, made, out)


_DTYPES = {"bool": np.bool_, "int": np.int64, "float": np.float64, "complex": np.complex128}


def _typed(r: Reader, x: Value) -> Value:
    """A number of Python's as an array of it has it."""
    if not isinstance(x, Num) or not x.is_python:
        return x
    if x.kind is None:
        raise Unreadable("np.dot of a number of one kind or another")
    return scalar_type(r, _DTYPES[x.kind], [x])


def _outer(r: Reader, a: Value, b: Value) -> Value:
    x, y = as_operand(r, a), as_operand(r, b)
    if isinstance(x, Num) or isinstance(y, Num) or x.ndim != 1 or y.ndim != 1:
        raise Unreadable("np.outer of these")
    first, second = lazy(solid(r, x)), lazy(solid(r, y))
    column = Lazy(
        x.rep, (x.dims[0], int_constant(1)), lambda i: first.at(i[:1]),
        tuple((a, False) for a, _ in first.reads), True,
    )  # fmt: skip
    return ufunc(r, "multiply", [column, second])


def _common_dtype(kinds: tuple[str, ...]) -> np.dtype:
    return np.result_type(*(WEAK.get(k, k.rstrip("_")) for k in kinds))


def _where(r: Reader, test: Value, *ways: Value) -> Value:
    if not ways:
        return nonzero(r, test)
    if len(ways) != 2:
        raise Unreadable("np.where of two arguments")
    operands = [as_operand(r, x) for x in (test, *ways)]
    if not any(x.ndim for x in operands if not isinstance(x, Num)):
        raise Unreadable("np.where of numbers")  # an array, while numbers make numbers
    agreed(
        [w if isinstance(w, Num) else x for w, x in zip(ways, operands[1:], strict=True)],
        _common_dtype,
    )
    target = _common_dtype(tuple(map(operand_kind, operands[1:])))
    rep = rep_of(target)
    c = operands[0]
    c_rep = c.rep
    tested = "{0}" if c_rep == "bool" else "({0} != 0)"
    return pointwise(
        r, operands, (c_rep, rep, rep), rep,
        lambda c, x, y: f"({tested.format(c)} ? {x} : {y})",
    )  # fmt: skip


def _clip(
    r: Reader, x: Value, low: Value | None = None, high: Value | None = None, **more: Value
) -> Value:
    low, high = more.pop("min", low), more.pop("max", high)
    out = more.pop("out", None)
    if more:
        raise Unreadable("np.clip with these arguments")
    bounds = {name: v for name, v in (("maximum", low), ("minimum", high)) if not is_none(v)}
    if not bounds:
        raise Unreadable("np.clip without bounds")
    made = as_operand(r, x)
    if isinstance(made, Num) and made.is_python:  # NumPy makes an array of it first
        kind = kind_of(np.asarray(WEAK[operand_kind(made)]).dtype)
        made = Num(made.text, made.rep, (kind,), "", made.lin, made.low, made.high)
    kinds = [operand_kind(as_operand(r, v)) for v in (made, *bounds.values())]
    dtype = _common_dtype(tuple(kinds))  # of all at once: a bool within 0 and int32 is int32
    if not isinstance(made, Num):
        made = cast(lazy(made), rep_of(dtype))
    elif np.result_type(_common_dtype(tuple(kinds[:2])), dtype) != dtype:
        raise Unreadable("np.clip of a number within bounds of such dtypes")
    for name, bound in bounds.items():
        made = ufunc(r, name, [made, bound])
    return made if out is None else into(r, made, out)


def _concatenate(r: Reader, arrays: Value, axis: Value | None = None) -> Value:
    items = _sequence(r, arrays)
    rank = items[0].ndim
    if any(x.ndim != rank for x in items) or rank == 0:
        raise Unreadable("arrays of different ranks")
    k = 0 if axis is None else axis_of(axis, rank)
    rep = rep_of(functools.reduce(np.promote_types, [x.dtype for x in items]))
    dims = list(items[0].dims)
    total = dims[k]
    for x in items[1:]:
        for j in range(rank):
            if j != k:
                dims[j] = common_extent_of_product(r, dims[j], x.dims[j])
        more = binary(r, "Add", total, x.dims[k])
        total = extent(r, more.text, more.lin)
    dims[k] = total
    sources = [cast(lazy(x), rep) for x in items]
    made = alloc(r, rep, dims)
    at = int_constant(0)
    for x in sources:
        here = [d if j != k else x.dims[k] for j, d in enumerate(dims)]
        with loops(r, here) as index:
            there = list(index)
            if at.value != 0:
                there[k] = f"({at.text} + {index[k]})"
            write(r, made, there, x.at(index))
        at = binary(r, "Add", at, x.dims[k])
    return made


def _sequence(r: Reader, x: Value) -> list[Arr | Lazy]:
    if not isinstance(x, Tup):
        raise Unreadable("a sequence of arrays is needed")
    items = [as_item(r, y) for y in x.items]
    if not items or any(isinstance(y, Num) for y in items):
        raise Unreadable("a sequence of arrays is needed")
    return items


def _stack(r: Reader, arrays: Value, axis: Value | None = None) -> Value:
    items = _sequence(r, arrays)
    return stacked(r, list(items), 0 if axis is None else axis_of(axis, items[0].ndim + 1))


def _hstack(r: Reader, arrays: Value) -> Value:
    items = _sequence(r, arrays)
    return _concatenate(r, Tup(tuple(items)), python(0 if items[0].ndim == 1 else 1))


def _vstack(r: Reader, arrays: Value) -> Value:
    items = _sequence(r, arrays)
    if all(x.ndim == 1 for x in items):
        return stacked(r, list(items), 0)
    return _concatenate(r, Tup(tuple(items)), python(0))


def in_brackets(r: Reader, items: Sequence[Any], columns: bool) -> Value:
    """`np.r_[...]`, `np.c_[...]`: of vectors, numbers and ranges. Python's numbers take the dtype
    of what is beside them, if it can hold them."""
    given: list[Any] = []
    for x in items:
        if isinstance(x, Slice):
            if x.stop is None:
                raise Unreadable("a range without an end")
            x = arange(r, x.start or python(0), x.stop, x.step or python(1))
        if not isinstance(x, (Num, Arr, Lazy)) or (not isinstance(x, Num) and x.ndim != 1):
            raise Unreadable("np.r_ of these")
        given.append(x)
    if columns:
        return _column_stack(r, Tup(tuple(given)))
    dtype = Known(_common_dtype(tuple(map(operand_kind, given))))
    rows = [stacked(r, [x], 0, dtype) if isinstance(x, Num) else cast(lazy(x), rep_or(dtype))
            for x in given]  # fmt: skip
    return _concatenate(r, Tup(tuple(rows)))


def grid(r: Reader, items: Sequence[Any], alone: bool, is_open: bool) -> Value:
    """`np.mgrid[...]` of ranges of integers, or `np.ogrid[...]`. alone: of one, not in a tuple."""
    axes: list[Lazy] = []
    for x in items:
        if not isinstance(x, Slice) or x.stop is None:
            raise Unreadable("a grid of these")
        start, stop = x.start or python(0), x.stop
        if any(b.kinds != ("int",) for b in (start, stop)) or (x.step and x.step.value != 1):
            raise Unreadable("a grid of these")
        r.leave_if(f"{start.text} > {stop.text}", "a grid without points")
        axes.append(arange(r, start, stop))
    if alone:
        return materialized(r, axes[0])
    dims, one = tuple(x.dims[0] for x in axes), python(1)

    def along(k: int) -> Lazy:
        here = tuple(d if j == k or not is_open else one for j, d in enumerate(dims))
        return Lazy("i64", here, lambda index: axes[k].at([index[k]]))

    spread = [along(k) for k in range(len(axes))]
    if is_open:
        return Tup(tuple(materialized(r, x) for x in spread))
    return stacked(r, list(spread), 0)


def _column_stack(r: Reader, arrays: Value) -> Value:
    items = _sequence(r, arrays)
    if all(x.ndim == 1 for x in items):
        return stacked(r, list(items), 1)
    raise Unreadable("np.column_stack of matrices")


def _roll(r: Reader, x: Value, shift: Value, axis: Value | None = None) -> Value:
    x = as_operand(r, x)
    flat = is_none(axis)
    if isinstance(x, Num) or (x.ndim > 1 and flat):
        raise Unreadable("np.roll of this")
    by: dict[int, Num] = {}
    for s, a in _together(shift, python(0) if flat else axis):
        if not isinstance(s, Num) or not s.is_int:
            raise Unreadable("np.roll by what is no integer")
        k = axis_of(a, x.ndim)
        by[k] = binary(r, "Add", by[k], to_int(r, s)) if k in by else to_int(r, s)
    source = lazy(solid(r, x))
    made = alloc(r, x.rep, x.dims)
    note_work(r, x.dims)
    for parts in itertools.product(*(_stretches(r, d, by.get(k)) for k, d in enumerate(x.dims))):
        with loops(r, [length for _, length, _ in parts]) as index:
            there = [f"({low} + {i})" for (low, *_), i in zip(parts, index, strict=True)]
            back = [f"({i} + ({more}))" for (*_, more), i in zip(parts, index, strict=True)]
            write(r, made, there, source.at(back))
    return made


def _together(a: Value, b: Value | None) -> list[tuple[Value, Any]]:
    """Two values, or tuples of some, as pairs."""
    one = a.items if isinstance(a, Tup) else (a,)
    other = b.items if isinstance(b, Tup) else (b,)
    one, other = (
        (one * len(other) if len(one) == 1 else one),
        (other * len(one) if len(other) == 1 else other),
    )
    if len(one) != len(other) or not one:
        raise Unreadable("np.roll by these")
    return list(zip(one, other, strict=True))


def _stretches(r: Reader, n: Num, by: Num | None) -> list[tuple[str, Num, str]]:
    """The parts of an axis that is rolled, each without a condition inside: where it begins, its
    length, and where it is read from."""
    if by is None or by.value == 0 or n.value == 1:
        return [("0", n, "0")]
    s = r.named(f"{n.text} ? remainder_i64({by.text}, {n.text}) : 0", "i64", "n")
    rest = Num(r.named(f"{n.text} - {s}", "i64", "n"), "i64", ("int",))
    return [("0", Num(s, "i64", ("int",)), rest.text), (s, rest, "0")]


def _diff(r: Reader, x: Value, n: Value | None = None, axis: Value | None = None) -> Value:
    if n is not None and not (isinstance(n, Num) and n.value == 1):
        raise Unreadable("np.diff of higher order")
    x = as_operand(r, x)
    if isinstance(x, Num) or x.rep == "bool":
        raise Unreadable("np.diff of this")
    x = materialized(r, x)
    k = x.ndim - 1 if axis is None else axis_of(axis, x.ndim)
    before = [Slice.of(None, None, None)] * k
    later = view(r, x, [*before, Slice.of(python(1), None, None)])
    first = view(r, x, [*before, Slice.of(None, python(-1), None)])
    return ufunc(r, "subtract", [later, first])


def _cross(r: Reader, a: Value, b: Value) -> Value:
    x, y = as_operand(r, a), as_operand(r, b)
    if isinstance(x, Num) or isinstance(y, Num) or x.ndim != 1 or y.ndim != 1:
        raise Unreadable("np.cross of these")
    if x.dims[0].value != 3 or y.dims[0].value != 3:
        raise Unreadable("np.cross of vectors of a length that is not known")
    rep = rep_of(np.result_type(x.dtype, y.dtype))
    if rep in PARTS or rep == "bool":
        raise Unreadable("np.cross of these")
    p, q = cast(lazy(x), rep), cast(lazy(y), rep)
    made = alloc(r, rep, [int_constant(3)])
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        texts = [p.at([str(i)]), q.at([str(j)]), p.at([str(j)]), q.at([str(i)])]
        m = [c_expression("mul", rep, texts[:2]), c_expression("mul", rep, texts[2:])]
        write(r, made, [str(k)], c_expression("sub", rep, m))
    return made


def _round(r: Reader, x: Value, decimals: Value | None = None, out: Value | None = None) -> Value:
    x = as_operand(r, x)
    digits = 0 if decimals is None else decimals.value if isinstance(decimals, Num) else None
    if not isinstance(digits, int) or not 0 <= digits <= 15 or out is not None:
        raise Unreadable("np.round with these arguments")
    if x.rep not in FLOATS:
        raise Unreadable("np.round of what are no floats")
    if digits == 0:
        return ufunc(r, "rint", [x])
    factor = python(float(10**digits))
    whole = ufunc(r, "rint", [ufunc(r, "multiply", [x, factor])])
    return ufunc(r, "true_divide", [whole, factor])


def _triangle(name: str) -> Callable:
    def take(r: Reader, x: Value, k: Value | None = None) -> Value:
        x = as_operand(r, x)
        if isinstance(x, Num) or x.ndim != 2:
            raise Unreadable(f"np.{name} of this")
        by = k or python(0)
        if not isinstance(by, Num) or not by.is_int:
            raise Unreadable(f"np.{name} with k=")
        source = lazy(solid(r, x))
        sign = "<=" if name == "tril" else ">="
        zero = f"({x.rep}){{0, 0}}" if x.rep in PARTS else "0"
        at = source.at
        return Lazy(
            x.rep, x.dims, lambda i: f"({i[1]} - {i[0]} {sign} {by.text} ? {at(i)} : {zero})",
            source.reads,
        )  # fmt: skip

    return take


def _only_vectors(name: str) -> Callable:
    """np.inner and np.vdot are dot for vectors."""

    def apply(r: Reader, a: Value, b: Value) -> Value:
        x, y = as_operand(r, a), as_operand(r, b)
        if isinstance(x, Num) or isinstance(y, Num) or x.ndim != 1 or y.ndim != 1 or x.rep in PARTS:
            raise Unreadable(f"np.{name} of these")
        return _dot(r, x, y)

    return apply


def _take_along_axis(r: Reader, x: Value, indices: Value, axis: Value) -> Value:
    """As an index beside the places along the other axes."""
    a, i = as_operand(r, x), as_operand(r, indices)
    if isinstance(a, Num) or isinstance(i, Num) or a.ndim != i.ndim or i.rep not in INTEGERS:
        raise Unreadable("np.take_along_axis of these")
    a = materialized(r, a) if isinstance(a, Lazy) else a
    k = axis_of(axis, a.ndim)
    items: list[Any] = []
    for j, n in enumerate(a.dims):
        along = i if j == k else materialized(r, arange(r, python(0), n, python(1)))
        behind = [Known(None)] * (0 if j == k else a.ndim - 1 - j)
        items.append(view(r, along, [Slice.of(None, None, None), *behind]) if behind else along)
    return gathered(r, a, [materialized(r, x) if isinstance(x, Lazy) else x for x in items])


def _clip_function(r: Reader, x: Value, *bounds: Value, **more: Value) -> Value:
    """`np.clip`, of which both `a_min` and `a_max` are given, or none of them."""
    named = [more.pop(name) for name in ("a_min", "a_max") if name in more]
    if len(bounds) + len(named) == 1 or (bounds and named):
        raise Unreadable("np.clip with one bound, or one of them by name")
    return _clip(r, x, *bounds, *named, **more)


TABLE: dict[Any, Callable] = {
    np.dot: _dot, np.outer: _outer, np.vdot: _only_vectors("vdot"),
    np.inner: _only_vectors("inner"), np.where: _where, np.clip: _clip_function, np.round: _round,
    np.take_along_axis: _take_along_axis,
    np.around: _round, np.concatenate: _concatenate, np.stack: _stack, np.hstack: _hstack,
    np.vstack: _vstack, np.column_stack: _column_stack, np.roll: _roll, np.diff: _diff,
    np.cross: _cross, np.tril: _triangle("tril"), np.triu: _triangle("triu"),
}  # fmt: skip

METHODS: dict[str, Callable] = {"dot": _dot, "clip": _clip, "round": _round}
