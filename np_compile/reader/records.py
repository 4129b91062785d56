"""Lists used as records, `[x, y, count]`: of a fixed number of items, each of a type of its own.

A list of several types is taken for a tuple, as long as nothing but names refers to it. Where
another container holds it, it may be changed under one name and looked at under another: it is
memory of its own then, with the words of one tuple. What changes its length, or takes an item that
only data can tell, has it read anew as a list whose items are of one type that holds all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .lists import allocated, as_item, held, made_list, place_of, put
from .nest import kept
from .read import Reader, int_constant
from .values import Conflict, Num, Rec, Tup, Unreadable, Value, char
from .variables import as_lists, item_type, join, made_anew, same_type, shared


def new_list(r: Reader, items: Sequence[Value]) -> Value:
    """`[a, b, ...]`: of numbers of one kind a list that may grow; of others one that stays as it
    is, unless it was seen to change."""
    site = r.list_site()
    r.displays[site] = len(items)
    values = [kept(r, x) for x in items]
    values = [char(x) or x for x in values] if all(map(char, values)) else values
    kinds = {x.kinds if isinstance(x, Num) else None for x in values}
    if r.memory.get(site, {}).get("record"):
        return new_record(r, values, site)
    if site in r.memory or not values or (len(kinds) == 1 and len((*kinds,)[0] or "12") == 1):
        return made_list(r, values, site)
    return Tup(tuple(values), list, site)


def new_record(r: Reader, values: Sequence[Value], site: Any) -> Rec:
    """`[a, b, ...]` that another container refers to."""
    for x in values:
        shared(r, x)
    made = allocated(r, Tup(tuple(map(item_type, values)), list), int_constant(1), site)
    x = Rec(made.buf, made.of, made.roots, made.sites)
    put(r, x, "0", as_item(r, Tup(tuple(values), list), x.of), True)
    return x


def spread(r: Reader, x: Value) -> Value:
    """The items of a record as they are now, as a list that is taken for a tuple."""
    if not isinstance(x, Rec):
        return x
    r.one_by_one()
    r.accesses.anything(x.roots)
    return held(r, place_of(r, x, "0"))


def record_item(r: Reader, x: Rec, items: list[Any]) -> Value | None:
    """`x[k]`; None where it is not known which item that is."""
    k = _place(x, items)
    if k is None:
        return None
    r.one_by_one()
    r.accesses.anything(x.roots)
    return held(r, place_of(r, x, "0").items[k])


def assign_record_item(r: Reader, x: Rec, items: list[Any], value: Value) -> Callable[[], None]:
    """`x[k] = value`; the checks are made now."""
    k = _place(x, items)
    if k is None:
        as_lists(r, x)
    value = kept(r, value)
    of = item_type(value)
    if not same_type(x.of.items[k], of, r):
        of = join(x.of.items[k], of, r)
        if isinstance(of, Conflict):
            raise Unreadable(of.why)
        if not x.sites:
            raise Unreadable("an item of another type in a list")
        made_anew(r, x, Tup((*x.of.items[:k], item_type(of), *x.of.items[k + 1 :]), list))
    value = as_item(r, value, x.of.items[k])
    r.one_by_one()

    def commit() -> None:
        v = place_of(r, x, "0").items[k]
        r.lines += [*v.hold(value), *v.put(r, value)]

    return commit


def _place(x: Rec, items: list[Any]) -> int | None:
    """The place of an item that an index names, if the source tells."""
    k = items[0] if len(items) == 1 else None
    n = len(x.of.items)
    if not isinstance(k, Num) or not isinstance(k.value, int) or not -n <= k.value < n:
        return None
    return k.value % n
