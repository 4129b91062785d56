"""Views: other shapes, orders of axes, directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..index import view
from ..items import item
from ..nest import (
    cast,
    contiguous,
    extent,
    lazy,
    materialized,
    size_of,
)
from ..read import Reader, int_constant
from ..values import (
    DTYPE_OF,
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
    python,
)
from .creation import copied
from .operands import as_operand, axis_of, extents_of, number_method, part, rep_or, scalar_type


def transposed(r: Reader, x: Value, axes: Value | None, *more: Value) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Num):
        raise Unreadable("a number's transpose")
    if isinstance(x, Lazy):
        x = materialized(r, x)
    if more:
        axes = Tup((axes, *more))
    order = list(reversed(range(x.ndim)))
    if axes is not None and not (isinstance(axes, Known) and axes.value is None):
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
        dims.append(int_constant(1) if k in free else extents_of(r, d)[0])
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


def _astype(r: Reader, x: Value, dtype: Value, copy: Value | None = None) -> Value:
    if copy is not None:
        raise Unreadable("astype with copy=")
    rep = rep_or(dtype)
    if isinstance(x, Num):
        return scalar_type(r, DTYPE_OF[rep].type, [x])
    if x.rep in PARTS and rep not in PARTS:
        raise Unreadable("complex numbers as real ones")
    if isinstance(x, Arr) and not x.ordered and x.ndim > 1:
        raise Unreadable("a copy of an array that is not in C order")
    return materialized(r, cast(lazy(x), rep))


def _flip(r: Reader, x: Value, axis: Value | None = None) -> Value:
    x = as_operand(r, x)
    if isinstance(x, Lazy):
        x = materialized(r, x)
    back = Slice(None, None, python(-1))
    if axis is None or isinstance(axis, Known):
        return view(r, x, [back] * x.ndim)
    k = axis_of(axis, x.ndim)
    return view(r, x, [Slice(None, None, None)] * k + [back])


def _expand_dims(r: Reader, x: Value, axis: Value) -> Value:
    x = as_operand(r, x)
    x = materialized(r, x) if isinstance(x, Lazy) else x
    k = axis_of(axis, x.ndim + 1)
    return view(r, x, [Slice(None, None, None)] * k + [Known(None)])


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
    np.ravel: _ravel, np.flip: _flip, np.expand_dims: _expand_dims,
    np.real: lambda r, x: part(r, x, "real"), np.imag: lambda r, x: part(r, x, "imag"),
    np.diag: _diag, np.shape: _shape_of, np.size: _size,
    np.ndim: lambda r, x: python(getattr(x, "ndim", 0)), np.isscalar: _isscalar,
}  # fmt: skip

METHODS: dict[str, Callable] = {
    "astype": _astype, "reshape": _reshape, "ravel": _ravel, "flatten": _flatten, "item": _item,
    "transpose": lambda r, x, axes=None, *more: transposed(r, x, axes, *more),
}  # fmt: skip
