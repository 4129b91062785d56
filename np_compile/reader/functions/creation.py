"""Arrays that are made, filled or copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..index import assign, element, store_text, view
from ..lists import allocated, each, list_method, made_list, put
from ..nest import (
    alloc,
    axes_in_memory,
    copy_of,
    in_order,
    lazy,
    loops,
    materialized,
    named_numbers,
    place,
    write,
)
from ..numbers import convert
from ..read import Reader
from ..values import (
    FLOATS,
    PARTS,
    PYTHON,
    Arr,
    Known,
    Lazy,
    Lst,
    Num,
    Range,
    Tup,
    Unreadable,
    Value,
    is_none,
    python,
    shown,
)
from .operands import (
    arange,
    array_of,
    as_operand,
    dtype_of,
    extent_of,
    extents_of,
    number_method,
    rep_or,
)


def filled(
    r: Reader, rep: str, dims: Sequence[Num], text: str | None, order: Sequence[int] = ()
) -> Arr:
    """A new array of one value; of anything, without. order: of its axes in memory."""
    dims = [dims[k] for k in order] if order else dims
    zero = text is not None and text in ("0", "0L", "0.0", "0x0.0p+0", "0x0.0p+0f", "0U", "0UL")
    made = alloc(r, rep, dims, zero)
    if text is not None and not zero:
        with loops(r, made.dims) as index:
            write(r, made, index, text)
    return in_order(made, order)


def _of_value(value: int) -> Callable:
    def make(r: Reader, shape: Value, dtype: Value | None = None) -> Value:
        rep = rep_or(dtype)
        one = convert(r, python(value), rep) if rep in PARTS else None
        text = one.text if one and value else str(value)
        return filled(r, rep, extents_of(r, shape), text)

    return make


def _empty(r: Reader, shape: Value, dtype: Value | None = None) -> Value:
    # What is in it is anything, in NumPy too.
    return alloc(r, rep_or(dtype), extents_of(r, shape))


def _full(
    r: Reader, shape: Value, value: Value, dtype: Value | None = None, order: Sequence[int] = ()
) -> Value:
    if not isinstance(value, Num):
        raise Unreadable("np.full of an array")
    if is_none(dtype):
        if value.kind is None:
            raise Unreadable("np.full of a number of one kind or another")
        rep = {"int": "i64", "float": "f64", "bool": "bool", "complex": "c128"}.get(
            value.kind, value.rep
        )
    else:
        rep = rep_or(dtype)
    return filled(
        r,
        rep,
        extents_of(r, shape),
        named_numbers(r, Num(store_text(r, value, rep), rep, value.kinds)).text,
        order,
    )


def _like(value: int | None) -> Callable:
    def make(r: Reader, a: Value, dtype: Value | None = None) -> Value:
        a = as_operand(r, a)
        if isinstance(a, Num):
            raise Unreadable("a number's like")
        order = axes_in_memory(r, a)
        rep = rep_or(dtype, a.dtype)
        text = None if value is None else str(value)
        if rep in PARTS and value:
            text = f"({rep}){{{value}, 0}}"
        return filled(r, rep, a.dims, text, order)

    return make


def _full_like(r: Reader, a: Value, value: Value, dtype: Value | None = None) -> Value:
    if not isinstance(a, (Arr, Lazy)):
        raise Unreadable("np.full_like of this")
    kind = Known(dtype_of(dtype) if isinstance(dtype, Known) and dtype.value else a.dtype)
    return _full(r, Tup(a.dims), value, kind, axes_in_memory(r, a))


def _linspace(r: Reader, a: Value, b: Value, num: Value | None = None) -> Value:
    if not isinstance(a, Num) or not isinstance(b, Num):
        raise Unreadable("np.linspace of arrays")
    n = extent_of(r, num or python(50))
    x, y = (
        named_numbers(r, convert(r, a, "f64", exact=True)),
        named_numbers(r, convert(r, b, "f64", exact=True)),
    )
    made = alloc(r, "f64", [n])
    step = r.named(f"({y.text} - {x.text}) / (f64)({n.text} - 1)", "f64")
    r.leave_if(f"{n.text} > 1 && {step} == 0 && {y.text} != {x.text}", "a tiny step")
    with loops(r, made.dims) as index:
        write(r, made, index, f"((f64){index[0]} * {step} + {x.text})")
    with r.block(f"if ({n.text} == 1)"):
        write(r, made, ["0"], x.text)
    with r.block(f"if ({n.text} > 1)"):
        r.line(f"{made.data}[{n.text} - 1] = {y.text};")
    return made


def _eye(r: Reader, n: Value, m: Value | None = None, dtype: Value | None = None) -> Value:
    rows = extent_of(r, n)
    columns = rows if is_none(m) else extent_of(r, m)
    rep = rep_or(dtype)
    made = filled(r, rep, [rows, columns], "0")
    short = named_numbers(
        r, Num(f"({rows.text} < {columns.text} ? {rows.text} : {columns.text})", "i64", ("int",))
    )
    with loops(r, [Num(short.text, "i64", ("int",))], vector="") as index:
        one = f"({rep}){{1, 0}}" if rep in PARTS else "1"
        r.line(f"{made.data}[{index[0]} * ({columns.text} + 1)] = {one};")
    return made


def _array(r: Reader, x: Value, dtype: Value | None = None, copy: Value | None = None) -> Value:
    if copy is not None and not (isinstance(copy, Num) and copy.value is True):
        raise Unreadable("np.array with copy=")
    return array_of(r, x, dtype)


def _from_items(r: Reader, x: Value, dtype: Value, count: Value | None = None) -> Value:
    """`np.fromiter`, of what is taken all; another number of items leaves."""
    is_row = isinstance(x, Range) or (isinstance(x, (Arr, Lazy)) and x.ndim == 1)
    numbers = x.items if isinstance(x, Tup) else (x.of,) if isinstance(x, Lst) else ()
    if isinstance(x, Lst) and x.of is None:
        made = alloc(r, rep_or(dtype), [python(0)])
    elif is_row or (numbers and all(isinstance(y, Num) for y in numbers)):
        made = array_of(r, x, dtype)
    else:
        raise Unreadable(f"np.fromiter of {shown(x)}")
    if count is not None:
        if not isinstance(count, Num) or not count.is_int:
            raise Unreadable("np.fromiter with this count")
        wrong = f"{count.text} != -1 && {count.text} != {made.dims[0].text}"
        r.leave_if(wrong, "np.fromiter of another number of items")
    return made


def _asarray(r: Reader, x: Value, dtype: Value | None = None) -> Value:
    if isinstance(x, Arr) and (is_none(dtype) or rep_or(dtype) == x.rep):
        return x
    return array_of(r, x, dtype)


def _ascontiguous(r: Reader, x: Value, dtype: Value | None = None) -> Value:
    if isinstance(x, Arr) and not x.flat:
        raise Unreadable("np.ascontiguousarray of an array that may be contiguous")
    return _asarray(r, x, dtype)


def copied(r: Reader, x: Value, order: Value | None = None) -> Value:
    if order is not None:
        raise Unreadable("a copy in another order")
    if isinstance(x, Num):
        return x
    if not isinstance(x, (Arr, Lazy)):
        return array_of(r, x)
    if isinstance(x, Lazy):
        return materialized(r, x)
    return materialized(r, lazy(x))  # `a.copy()` is in C order


def _np_copy(r: Reader, x: Value) -> Value:
    return copy_of(r, x, lazy(x)) if isinstance(x, Arr) else copied(r, x)


def _fill(r: Reader, x: Value, value: Value) -> Value:
    if not isinstance(x, Arr) or not isinstance(value, Num):
        raise Unreadable("fill of this")
    commit = assign(r, x, [Known(Ellipsis)], value)
    commit()
    r.changed(x.roots, noted=True)
    return Known(None)


def _to_list(r: Reader, x: Value) -> Value:
    """`x.tolist()`, of one axis or two."""
    a = materialized(r, x) if isinstance(x, Lazy) else x
    if not isinstance(a, Arr) or a.ndim not in (1, 2):
        raise Unreadable("a list of this")
    site = r.list_site()
    if a.ndim == 1:
        return _python_numbers(r, a, site)
    inner = r.list_site()
    made = made_list(r, (), site)
    with each(r, a.dims[0]) as k:
        row = view(r, a, [k])
        assert isinstance(row, Arr)
        list_method(r, made, "append", [_python_numbers(r, row, inner)], {})
    return made


def _python_numbers(r: Reader, a: Arr, site: Any) -> Value:
    """A list of the elements of a vector as Python's numbers."""
    parts = {**dict.fromkeys(FLOATS, "float"), **dict.fromkeys(PARTS, "complex"), "bool": "bool"}
    kind = parts.get(a.rep, "int")
    n = a.dims[0]
    made = allocated(r, Num("", PYTHON[kind], (kind,)), n, site)
    with each(r, n) as k:
        x = number_method(r, element(r, a, place(a, [k.text])), "item", [])
        put(r, made, k.text, x, True)
    return made


TABLE: dict[Any, Callable] = {
    np.zeros: _of_value(0), np.ones: _of_value(1), np.empty: _empty, np.full: _full,
    np.zeros_like: _like(0), np.ones_like: _like(1), np.empty_like: _like(None),
    np.full_like: _full_like, np.arange: arange, np.linspace: _linspace, np.eye: _eye,
    np.identity: _eye, np.array: _array, np.asarray: _asarray, np.asanyarray: _asarray,
    np.ascontiguousarray: _ascontiguous, np.copy: _np_copy,
    np.fromiter: _from_items,
    np.dtype: lambda r, x: Known(dtype_of(x)),
}  # fmt: skip

METHODS: dict[str, Callable] = {"copy": copied, "fill": _fill, "tolist": _to_list}
