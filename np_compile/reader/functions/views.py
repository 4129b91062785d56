"""Views: other shapes, orders of axes, directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..index import assign, positions, view
from ..items import item
from ..lists import allocated, each, put
from ..nest import (
    FAR,
    cast,
    contiguous,
    copy_of,
    extent,
    lazy,
    materialized,
    size_of,
)
from ..numbers import to_int
from ..read import Reader, int_constant
from ..values import (
    DTYPE_OF,
    INTEGERS,
    PARTS,
    Arr,
    Known,
    Lazy,
    Lst,
    Num,
    Slice,
    Tup,
    Unreadable,
    Value,
    is_none,
    python,
)
from ..variables import item_type
from .creation import copied
from .operands import (
    array_of,
    as_operand,
    axis_of,
    extent_of,
    extents_of,
    number_method,
    part,
    rep_or,
    scalar_type,
    stacked,
)


def transposed(r: Reader, x: Value, axes: Value | None, *more: Value) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Num):
        raise Unreadable("a number's transpose")
    if isinstance(x, Lazy):
        x = materialized(r, x)
    if more:
        axes = Tup((axes, *more))
    order = list(reversed(range(x.ndim)))
    if not is_none(axes):
        if not isinstance(axes, Tup) or not all(
            isinstance(a, Num) and a.value is not None for a in axes.items
        ):
            raise Unreadable("axes that are no constants")
        order = [int(a.value) % x.ndim for a in axes.items]
        if sorted(order) != list(range(x.ndim)):
            raise Unreadable("axes that are no permutation")
    if x.ndim < 2:
        return replace(x, view=x.of_view)
    return Arr(
        x.rep, x.buf, x.data, tuple(x.dims[k] for k in order), tuple(x.strides[k] for k in order),
        x.roots, (f"{x.data}.T", ()), x.readonly, view=x.of_view,
    )  # fmt: skip


def _reshape(r: Reader, x: Value, *shape: Value, order: Value | None = None) -> Value:
    x = as_operand(r, x)
    if order is not None or isinstance(x, Num):
        raise Unreadable("reshape in an order")
    if isinstance(x, Lazy):
        x = materialized(r, x)
    given = shape[0] if len(shape) == 1 else Tup(shape)
    items = list(given.items if isinstance(given, Tup) else (given,))
    total = size_of(r, x.dims)
    free = [k for k, d in enumerate(items) if isinstance(d, Num) and d.value == -1]
    if len(free) > 1:
        raise Unreadable("two unknown sizes")
    dims: list[Num] = []
    for k, d in enumerate(items):
        dims.append(int_constant(1) if k in free else extent_of(r, d))
    rest = size_of(r, dims)
    if free:
        if rest.value == 1:
            dims[free[0]] = total
        else:
            bad = f"{rest.text} == 0 || {total.text} % {rest.text}"
            if rest.value is None or total.value is None or total.value % rest.value:
                r.leave_if(bad, "a shape that does not fit")
            dims[free[0]] = (
                int_constant(total.value // rest.value)
                if rest.value and total.value is not None
                else extent(r, f"({total.text} / {rest.text})")
            )
    elif not (rest.lin is not None and total.lin is not None and r.facts.same(rest.lin, total.lin)):
        r.leave_if(f"{total.text} != {rest.text}", "a shape that does not fit")
    if not x.flat:
        x = _gathered_up(r, x, dims)
    return Arr(
        x.rep, x.buf, x.data, tuple(dims), contiguous(r, dims), x.roots, (f"{x.data}.r", ()),
        x.readonly, True, True, x.of_view,
    )  # fmt: skip


def _gathered_up(r: Reader, x: Arr, dims: list[Num]) -> Arr:
    """A copy of an array that has to be one to get another shape: of two axes that become one, the
    first does not go on where the second ends."""

    def same(a: Sequence[Num], b: Sequence[Num]) -> bool:
        return len(a) == len(b) and all(
            p.lin is not None and q.lin is not None and r.facts.same(p.lin, q.lin)
            for p, q in zip(a, b, strict=True)
        )

    joined = [
        k for k in range(x.ndim - 1)
        if len(dims) == x.ndim - 1
        and same(dims[:k], x.dims[:k]) and same(dims[k + 1 :], x.dims[k + 2 :])
    ]  # fmt: skip
    if x.ndim == 2 and not joined:
        joined = [0]
        for j in range(1, len(dims)):  # the first axis is cut into these, the second one after
            part = size_of(r, dims[:j])
            r.leave_if(f"{part.text} == {x.dims[0].text}", "reshape of an array that gives a view")
    if not joined or not x.ordered:
        raise Unreadable("reshape of an array that is not contiguous")
    k = joined[0]
    (n, m), (s, t) = x.dims[k : k + 2], x.strides[k : k + 2]
    r.leave_if(
        f"{s.text} == {m.text} * {t.text} || {n.text} < 2 || {m.text} < 2",
        "reshape of an array that may be contiguous",
    )
    return materialized(r, lazy(x))


def _ravel(r: Reader, x: Value) -> Value:
    return _reshape(r, x, python(-1))


def _flatten(r: Reader, x: Value) -> Value:
    made = copied(r, x)
    return _reshape(r, made, python(-1))


def _put(r: Reader, a: Value, where: Value, values: Value) -> Value:
    """`np.put(a, where, values)`, of one value, or of one for each index."""
    if not isinstance(a, Arr) or a.readonly or not (a.ndim == 1 or a.flat):
        raise Unreadable("np.put into this")
    if isinstance(where, (Tup, Lst)):
        where = array_of(r, where, is_index=True)
    value = as_operand(r, values)
    one = isinstance(where, Num) and where.is_int
    if not one and not (isinstance(where, (Arr, Lazy)) and where.rep in INTEGERS):
        raise Unreadable("np.put at such indices")
    if not isinstance(value, Num) and (one or where.ndim != 1 or value.ndim != 1):
        raise Unreadable("np.put of such values")
    assign(r, a if a.ndim == 1 else _ravel(r, a), [where], value)()
    r.changed(a.roots, noted=True)
    return Known(None)


def _astype(r: Reader, x: Value, dtype: Value, copy: Value | None = None) -> Value:
    if copy is not None:
        raise Unreadable("astype with copy=")
    rep = rep_or(dtype)
    if isinstance(x, Num):
        return scalar_type(r, DTYPE_OF[rep].type, [x])
    if x.rep in PARTS and rep not in PARTS:
        raise Unreadable("complex numbers as real ones")
    return copy_of(r, x, cast(lazy(x), rep))


def _flip(r: Reader, x: Value, axis: Value | None = None) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Lazy):
        x = materialized(r, x)
    back = Slice.of(None, None, python(-1))
    if is_none(axis):
        return view(r, x, [back] * x.ndim)
    k = axis_of(axis, x.ndim)
    return view(r, x, [Slice.of(None, None, None)] * k + [back])


def _flipped(axis: int) -> Callable:
    """`np.flipud`, `np.fliplr`."""

    def apply(r: Reader, x: Value) -> Value:
        x = as_operand(r, x)
        if x.ndim <= axis:
            raise Unreadable("too few axes to flip")
        return _flip(r, x, python(axis))

    return apply


def _expand_dims(r: Reader, x: Value, axis: Value) -> Value:
    x = as_operand(r, x)
    x = materialized(r, x) if isinstance(x, Lazy) else x
    k = axis_of(axis, x.ndim + 1)
    return view(r, x, [Slice.of(None, None, None)] * k + [Known(None)])


def _at_least(least: int) -> Callable:
    """`np.atleast_1d`, `np.atleast_2d`."""

    def apply(r: Reader, x: Value) -> Value:
        x = x if isinstance(x, (Num, Arr, Lazy)) else array_of(r, x)
        if isinstance(x, Num):
            x = stacked(r, [x], 0)
        x = materialized(r, x) if isinstance(x, Lazy) else x
        missing = max(least - x.ndim, 0)
        return view(r, x, [Known(None)] * missing) if missing else x

    return apply


def _ix(r: Reader, *args: Value) -> Value:
    """`np.ix_`: each vector along an axis of its own."""
    whole, new = Slice.of(None, None, None), Known(None)
    made = []
    for k, x in enumerate(args):
        x = x if isinstance(x, (Arr, Lazy)) else array_of(r, x)
        if x.ndim != 1 or x.rep not in ("bool", *INTEGERS):
            raise Unreadable("np.ix_ of what are no indices")
        x = positions(r, x)[0] if x.rep == "bool" else x
        x = materialized(r, x) if isinstance(x, Lazy) else x
        made.append(view(r, x, [new] * k + [whole] + [new] * (len(args) - k - 1)))
    return Tup(tuple(made))


def _split(in_equal_parts: bool) -> Callable:
    """`np.split(x, parts)`, `np.array_split`: into so many parts, or before these indices."""

    def split(r: Reader, x: Value, parts: Value, axis: Value | None = None) -> Value:
        x = as_operand(r, x)
        x = materialized(r, x) if isinstance(x, Lazy) else x
        if (
            isinstance(x, Num)
            or not x.ndim
            or (axis is not None and getattr(axis, "value", None) != 0)
        ):
            raise Unreadable("np.split of this")
        n = x.dims[0]
        if isinstance(parts, Num):
            if not parts.is_int:
                raise Unreadable("a split into parts of which the number is no integer")
            count = to_int(r, parts)
            r.leave_if(f"{count.text} < 1", "a split into no parts")
            size = r.integer(f"({n.text} / {count.text})", 0)
            more = r.integer(f"({n.text} % {count.text})", 0)
            if in_equal_parts:
                r.leave_if(f"{more.text} != 0", "a split into parts that are not equal")

            def begin(k: str) -> str:
                return f"({k} * {size.text} + ({k} < {more.text} ? {k} : {more.text}))"
        else:
            places = parts if isinstance(parts, (Arr, Lazy)) else array_of(r, parts, is_index=True)
            places = lazy(places)
            if places.ndim != 1 or places.rep not in INTEGERS:
                raise Unreadable("np.split at what are no indices")
            last = places.dims[0].text
            count = r.integer(f"({last} + 1)", 1)

            def begin(k: str) -> str:
                there = f"{k} > {last} ? {n.text} : (i64){places.at([f'({k} - 1)'])}"
                return f"({k} == 0 ? 0 : {there})"

        of = item_type(replace(x, dims=(Num("", "i64", ("int",), low=0), *x.dims[1:])))
        made = allocated(r, of, count, r.list_site())
        with each(r, count) as k:
            bounds = [r.integer(begin(at)) for at in (k.text, f"({k.text} + 1)")]
            put(r, made, k.text, view(r, x, [Slice.of(*bounds, None)]), True)
        return made

    return split


def _moveaxis(r: Reader, x: Value, source: Value, destination: Value) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Num):
        raise Unreadable("a number's axes")
    pairs = [
        [axis_of(k, x.ndim) for k in (ks.items if isinstance(ks, Tup) else (ks,))]
        for ks in (source, destination)
    ]
    if len(pairs[0]) != len(pairs[1]) or any(len({*ks}) < len(ks) for ks in pairs):
        raise Unreadable("axes that are moved to no such places")
    order = [k for k in range(x.ndim) if k not in pairs[0]]
    for to, k in sorted(zip(pairs[1], pairs[0], strict=True)):
        order.insert(to, k)
    return transposed(r, x, Tup(tuple(map(python, order))))


def _swapaxes(r: Reader, x: Value, a: Value, b: Value) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Num):
        raise Unreadable("a number's axes")
    order = list(range(x.ndim))
    j, k = axis_of(a, x.ndim), axis_of(b, x.ndim)
    order[j], order[k] = k, j
    return transposed(r, x, Tup(tuple(map(python, order))))


def _squeeze(r: Reader, x: Value, axis: Value) -> Value:
    """Without axes of one element, which are given: else the rank hangs on sizes."""
    x = as_operand(r, x)
    if isinstance(x, Num) or isinstance(axis, Known):
        raise Unreadable("np.squeeze without axes")
    x = materialized(r, x) if isinstance(x, Lazy) else x
    gone = {axis_of(k, x.ndim) for k in (axis.items if isinstance(axis, Tup) else (axis,))}
    for k in gone:
        if x.dims[k].value is None:
            r.leave_if(f"{x.dims[k].text} != 1", "squeeze of an axis of several elements")
        elif x.dims[k].value != 1:
            raise Unreadable("squeeze of an axis of several elements")
    items = [python(0) if k in gone else Slice.of(None, None, None) for k in range(x.ndim)]
    if len(gone) == x.ndim:
        raise Unreadable("an array without axes")
    return view(r, x, items)


def _windows(r: Reader, x: Value, window_shape: Value, axis: Value | None = None) -> Value:
    """`sliding_window_view`: the window's axes come last, and go on in memory as the others do."""
    x = as_operand(r, x)
    if isinstance(x, Num):
        raise Unreadable("windows of a number")
    x = materialized(r, x) if isinstance(x, Lazy) else x
    shape = extents_of(r, window_shape)
    if is_none(axis):
        axes = list(range(x.ndim))
    else:
        axes = [axis_of(k, x.ndim) for k in (axis.items if isinstance(axis, Tup) else (axis,))]
    if len(axes) != len(shape) or len({*axes}) < len(axes) or x.ndim + len(axes) > 8:
        raise Unreadable("windows along such axes")
    dims = list(x.dims)
    for k, n in zip(axes, shape, strict=True):
        r.leave_if(f"{n.text} > {x.dims[k].text}", "a window that is too large")
        left = r.integer(f"({x.dims[k].text} - {n.text} + 1)", 0, x.dims[k].high)
        dims[k] = extent(r, left.text)
    strides = (*x.strides, *[x.strides[k] for k in axes])
    return Arr(
        x.rep, x.buf, x.data, (*dims, *shape), strides, x.roots, (f"{x.data}.W", ()),
        readonly=True, view="2",
    )  # fmt: skip


def _strided(
    r: Reader, x: Value, shape: Value | None = None, strides: Value | None = None
) -> Value:
    """`as_strided`. Its elements may lie in one place, so here nothing is written to it."""
    if not isinstance(x, Arr) or not isinstance(shape, Tup) or not isinstance(strides, Tup):
        raise Unreadable("as_strided of this")
    dims, steps, size = extents_of(r, shape), [], x.dtype.itemsize
    if len(dims) != len(strides.items) or not 0 < len(dims) <= 8:
        raise Unreadable("as_strided to such a shape")
    for s in strides.items:
        if not isinstance(s, Num) or not s.is_int:
            raise Unreadable("strides that are no integers")
        n = to_int(r, s)
        r.leave_if(f"{n.text} % {size}", "a stride within an element")
        steps.append(r.integer(f"({n.text} / {size})", -FAR, FAR))
    return Arr(
        x.rep, x.buf, x.data, tuple(dims), tuple(steps), x.roots, (f"{x.data}.S", ()),
        readonly=True, view=x.of_view,
    )  # fmt: skip


def _viewed(r: Reader, x: Value, dtype: Value | None = None) -> Value:
    """`x.view()`, of the same dtype."""
    if not isinstance(x, Arr) or (dtype is not None and rep_or(dtype) != x.rep):
        raise Unreadable("a view of this")
    return view(r, x, [Slice.of(None, None, None)] * x.ndim)


def _diag(r: Reader, x: Value) -> Value:
    if not isinstance(x, Arr) or x.ndim != 2:
        raise Unreadable("np.diag of this")
    step = r.integer(" + ".join(s.text for s in x.strides))
    return Arr(
        x.rep, x.buf, x.data, (least_extent(r, x),), (step,), x.roots, (f"{x.data}.D", ()),
        readonly=True, view="2",
    )  # fmt: skip


def least_extent(r: Reader, x: Arr) -> Num:
    a, b = x.dims
    if a.lin is not None and b.lin is not None and r.facts.same(a.lin, b.lin):
        return a
    return extent(r, f"({a.text} < {b.text} ? {a.text} : {b.text})")


def _fill_diagonal(r: Reader, x: Value, value: Value) -> Value:
    if not isinstance(x, Arr) or x.ndim != 2 or x.readonly or not isinstance(value, Num):
        raise Unreadable("np.fill_diagonal of this")
    diagonal = replace(_diag(r, x), readonly=False)
    commit = assign(r, diagonal, [Known(Ellipsis)], value)
    commit()
    r.changed(x.roots, noted=True)
    return Known(None)


def _unravel_index(r: Reader, i: Value, shape: Value) -> Value:
    """The indices of the i-th element in C order."""
    dims = extents_of(r, shape)
    if not isinstance(i, Num) or not i.is_int or isinstance(i.value, bool) or not dims:
        raise Unreadable("np.unravel_index of this")
    rest = to_int(r, i).text
    total = size_of(r, dims)
    r.leave_if(f"(u64){rest} >= (u64){total.text}", "an index out of bounds")
    items: list[Value] = []
    for d in reversed(dims[1:]):
        rest = r.named(rest, "i64", "n")
        n = r.integer(f"({rest} % {d.text})", 0, d.high)
        items.append(Num(n.text, "i64", ("int64",), "", n.lin, 0, d.high))
        rest = f"({rest} / {d.text})"
    n = r.integer(rest, 0, dims[0].high)
    items.append(Num(n.text, "i64", ("int64",), "", n.lin, 0, dims[0].high))
    return Tup(tuple(reversed(items)))


def _shape_of(r: Reader, x: Value) -> Value:
    x = as_operand(r, x)
    return Tup(() if isinstance(x, Num) else x.dims)


def _size(r: Reader, x: Value, axis: Value | None = None) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Num):
        return python(1)
    return size_of(r, x.dims) if axis is None else x.dims[axis_of(axis, x.ndim)]


def _isscalar(r: Reader, x: Value) -> Value:
    return python(isinstance(x, Num))


def _is_integer(x: Value) -> bool:
    return isinstance(x, Num) and x.rep in INTEGERS


def _item(r: Reader, x: Value, *index: Value) -> Value:
    """x.item(), x.item(i, j), x.item((i, j)); one index of several axes counts in C order."""
    if len(index) == 1 and isinstance(index[0], Tup):
        index = tuple(index[0].items)
    if isinstance(x, (Arr, Lazy)):
        if index and (len(index) != x.ndim or not all(_is_integer(k) for k in index)):
            raise Unreadable(f"item of {x.ndim} axes by {len(index)} indices")
        if not index:
            n = size_of(r, x.dims)
            if n.value != 1:
                r.leave_if(f"{n.text} != 1", "item of an array of several elements")
            x = r.number(lazy(x).at(["0"] * x.ndim), x.rep, (x.kind,))
        else:
            x = item(r, x, list(index))
    return number_method(r, x, "item", [])


TABLE: dict[Any, Callable] = {
    np.transpose: lambda r, x, axes=None: transposed(r, x, axes), np.reshape: _reshape,
    np.ravel: _ravel, np.put: _put, np.flip: _flip, np.flipud: _flipped(0), np.fliplr: _flipped(1),
    np.expand_dims: _expand_dims,
    np.real: lambda r, x: part(r, x, "real"), np.imag: lambda r, x: part(r, x, "imag"),
    np.atleast_1d: _at_least(1), np.atleast_2d: _at_least(2),
    np.moveaxis: _moveaxis, np.swapaxes: _swapaxes, np.squeeze: _squeeze,
    np.lib.stride_tricks.sliding_window_view: _windows,
    np.lib.stride_tricks.as_strided: _strided,
    np.fill_diagonal: _fill_diagonal, np.unravel_index: _unravel_index,
    np.ix_: _ix, np.split: _split(True), np.array_split: _split(False), np.diag: _diag,
    np.shape: _shape_of, np.size: _size,
    np.ndim: lambda r, x: python(getattr(x, "ndim", 0)), np.isscalar: _isscalar,
}  # fmt: skip

METHODS: dict[str, Callable] = {
    "astype": _astype, "reshape": _reshape, "ravel": _ravel, "flatten": _flatten, "item": _item,
    "view": _viewed, "swapaxes": _swapaxes, "squeeze": _squeeze,
    "transpose": lambda r, x, axes=None, *more: transposed(r, x, axes, *more),
}  # fmt: skip
