"""Items of arrays, tuples and lists."""

from __future__ import annotations

from typing import Any

from . import index
from .dicts import table_item
from .lists import growing, list_item
from .nest import materialized
from .objects import special
from .read import Reader, int_constant
from .text import in_parts, is_text
from .values import Arr, Conflict, Known, Lazy, Lst, Num, Slice, Table, Tup, Unreadable, Value
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
    if not any(isinstance(x, Slice) for x in items) and (
        (made := special(r, owner, "__getitem__", key)) is not None
    ):
        return made
    raise Unreadable("an index of this value")


def _tuple_item(r: Reader, owner: Tup, items: list[Any]) -> Value:
    i = items[0] if len(items) == 1 else None
    if isinstance(i, Num) and isinstance(i.value, int):
        if not -len(owner.items) <= i.value < len(owner.items):
            raise Unreadable("an index out of a tuple's bounds")
        return owner.items[i.value]
    if isinstance(i, Slice):
        parts = [x if x is None else x.value for x in (i.start, i.stop, i.step)]
        if all(x is None or isinstance(x, int) for x in parts):
            return Tup(owner.items[slice(*parts)], owner.made)
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
