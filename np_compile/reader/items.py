"""Items of arrays, tuples and lists."""

from __future__ import annotations

from typing import Any

from . import index
from .dicts import table_item
from .lists import (
    allocated,
    as_item,
    each,
    growing,
    item_at,
    length,
    list_item,
    list_of,
    put,
)
from .nest import materialized
from .objects import special
from .read import Reader, int_constant
from .records import record_item, spread
from .text import in_parts, is_text
from .values import (
    Arr,
    Conflict,
    Known,
    Lazy,
    Lst,
    NotYet,
    Num,
    Rec,
    Slice,
    Table,
    Tup,
    Unreadable,
    Value,
    python,
    shown,
)
from .variables import Variable, join


def item(r: Reader, owner: Value, items: list[Any]) -> Value:
    """owner[items]."""
    if isinstance(owner, Tup):
        return _tuple_item(r, owner, items)
    if isinstance(owner, Lazy):
        if owner.ndim == len(items) and all(isinstance(x, Num) for x in items):
            at = [index.checked(r, x, n).text for x, n in zip(items, owner.dims, strict=True)]
            return r.number(owner.at(at), owner.rep, (owner.kind,))
        owner = materialized(r, owner)
    if is_text(owner) and not isinstance(items[0], Known):
        owner = in_parts(r, owner)
    if isinstance(owner, Rec):
        found = record_item(r, owner, items)
        return item(r, spread(r, owner), items) if found is None else found
    if isinstance(owner, Lst):
        return list_item(r, owner, items)
    if isinstance(owner, Table):
        return table_item(r, owner, items)
    if isinstance(owner, Arr):
        if index.is_advanced(items):
            return index.gathered(r, owner, items)
        return index.view(r, owner, items)
    if isinstance(owner, Known) and len(items) == 1 and isinstance(items[0], Known):
        return r.entry.constant(r, owner.value[items[0].value])
    key = items[0] if len(items) == 1 else Tup(tuple(items))
    if (made := special(r, owner, "__getitem__", key)) is not None:
        return made
    raise Unreadable("an index of this value")


def _tuple_item(r: Reader, owner: Tup, items: list[Any]) -> Value:
    i = items[0] if len(items) == 1 else None
    if isinstance(i, Num) and isinstance(i.value, int):
        if not -len(owner.items) <= i.value < len(owner.items):
            raise Unreadable("an index out of a tuple's bounds")
        return owner.items[i.value]
    if isinstance(i, Slice):
        bounds = [x for x in (i.start, i.stop, i.step) if x is not None]
        if all(isinstance(x.value, int) for x in bounds):
            parts = [x if x is None else x.value for x in (i.start, i.stop, i.step)]
            return Tup(owner.items[slice(*parts)], owner.made)
        if owner.made is list:
            growing(r, owner)  # a list, of which each item can be asked for
        raise Unreadable("a slice of a tuple whose bounds are no constants")
    if not owner.items:
        raise Unreadable("an index of what has no items")
    if isinstance(i, Num) and i.is_int and all(isinstance(x, Num) for x in owner.items):
        return _one_of(r, owner, i)
    if isinstance(i, Num) and i.is_int and owner.made is list:
        growing(r, owner)  # a list, of which each item can be asked for
    raise Unreadable("an index of a tuple that is no constant")


def _one_of(r: Reader, owner: Tup, i: Num) -> Num:
    """The item of a tuple of numbers at an index that only data can tell."""
    n = int_constant(len(owner.items))
    at = index.checked(r, i, n)
    of: Any = owner.items[0]
    for x in owner.items[1:]:
        of = join(of, x, r)
        if isinstance(of, Conflict):
            raise Unreadable(of.why)
    v = Variable(r, "item", of)
    for line in v.declare:
        r.line(line)
    with r.block(f"switch ({at.text})"):
        for k, x in enumerate(owner.items):
            r.line(f"case {k}:")
            r.lines.append(v.store(r, x))
            r.line("break;")
    return v.load(r)


MANY = 32


def apart(r: Reader, x: Value, count: int | None = None) -> list[Value]:
    """The items of a value that is taken apart, into so many. count: None for as many as there are
    in the example; another number leaves."""
    x = materialized(r, x) if isinstance(x, Lazy) else spread(r, x)
    if isinstance(x, Tup):
        if count not in (None, len(x.items)):
            raise Unreadable("another number of values")
        return list(x.items)
    if isinstance(x, Arr) and x.ndim:
        n = x.dims[0]
        count = (r.entry.at(n.lin) if n.value is None else n.value) if count is None else count
        if count > MANY:
            raise Unreadable("many elements are taken apart")
        _has_length(r, n, count)
        return [index.view(r, x, [python(k)]) for k in range(count)]
    if isinstance(x, Lst) and x.made is list and count is not None:
        _has_length(r, length(r, x), count)
        return [list_item(r, x, [python(k)]) for k in range(count)]
    raise Unreadable(f"{shown(x)} is unpacked")


def columns(r: Reader, rows: Value, count: int) -> Tup:
    """What `zip(*rows)` gives, that is taken apart: tuples."""
    if isinstance(rows, Lst) and rows.of is None:
        raise NotYet("items of a list of which nothing is known")
    if isinstance(rows, Arr) and rows.ndim == 2:
        n = rows.dims[0]
        _has_length(r, rows.dims[1], count)
        whole = Slice.of(None, None, None)
        parts = [index.view(r, rows, [whole, python(k)]) for k in range(count)]
        made = [list_of(r, x, tuple) for x in parts]
    elif isinstance(rows, Lst) and isinstance(rows.of, Tup) and len(rows.of.items) == count:
        n = length(r, rows)
        made = [allocated(r, x, n, r.list_site(), tuple) for x in rows.of.items]
        with each(r, n) as k:
            row = item_at(r, rows, k)
            for a, x in zip(made, row.items, strict=True):
                put(r, a, k.text, as_item(r, x, a.of), True)
    else:
        raise Unreadable("zip of these")
    if n.low < 1:
        r.leave_if(f"{n.text} < 1", "zip of nothing")
    return Tup(tuple(made))


def _has_length(r: Reader, d: Num, n: int) -> None:
    """Compiled code goes on where there are so many values to be unpacked."""
    if d.value is None:
        r.leave_if(f"{d.text} != {n}", "another number of values")
        if d.lin is not None:
            r.facts.add(d.lin - n)
    elif d.value != n:
        raise Unreadable("another number of values")
