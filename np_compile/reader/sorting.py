"""Lists in order: `sort`, `sorted`, and the least or greatest item by a key."""

from __future__ import annotations

from collections.abc import Callable

from .index import element
from .lists import (
    admit,
    allocated,
    as_vector,
    each,
    growing,
    item_at,
    length,
    less,
    list_method,
    list_of,
    made_list,
    no_nan,
    place_of,
    size_of_item,
)
from .nest import kept, place
from .numbers import truth
from .read import Reader, certain
from .values import (
    ANYWHERE,
    Arr,
    Items,
    Known,
    Lst,
    NotYet,
    Num,
    Tup,
    Unreadable,
    Value,
    is_none,
    python,
)


def sort(r: Reader, a: Lst, *, key: Value | None = None, reverse: Value | None = None) -> Value:
    """`a.sort(key=..., reverse=...)`."""
    if _sees(r, key, a):
        raise Unreadable("a list that its key looks at while it is sorted")
    descending = python(False) if reverse is None else reverse
    if not isinstance(descending, Num):
        raise Unreadable("sorting in an order that is no number")
    if a.of is None:
        return Known(None)
    down = truth(descending)
    if is_none(key) and a.kind is not None and a.of.rep in ("i64", "f64"):
        _sort_numbers(r, a, down.text)
    else:
        keys = _keys(r, a, key)
        _move(r, a, _order(r, keys, length(r, a), down))
    r.changed(a.roots)
    return Known(None)


def in_order_of(r: Reader, a: Lst, keys: Lst) -> Lst:
    """Sort a list by as many other values, the greatest first."""
    with each(r, length(r, a)) as k:
        no_nan(r, item_at(r, keys, k))
    _move(r, a, _order(r, keys, length(r, a), python(True)))
    return a


def bisected(side: str) -> Callable:
    """`bisect_left(a, x)`, `bisect_right(a, x)`: by the steps of Python's own."""

    def find(r: Reader, a: Value, x: Value) -> Num:
        x = kept(r, x)
        if isinstance(a, Tup):
            a = list_of(r, a)
        if not isinstance(a, Lst) and not (isinstance(a, Arr) and a.ndim == 1):
            raise Unreadable("bisection of this")
        if isinstance(a, Lst) and a.of is None:
            return python(0)
        n = length(r, a) if isinstance(a, Lst) else a.dims[0]
        low, high, at = r.fresh("low"), r.fresh("high"), r.fresh("at")
        r.line(f"i64 {low} = 0, {high} = {n.text};")
        r.one_by_one()
        with r.block(f"while ({low} < {high})"), r.scope():
            r.line(f"const i64 {at} = {low} + ({high} - {low}) / 2;")
            item = (
                place_of(r, a, at).load(r) if isinstance(a, Lst) else element(r, a, place(a, [at]))
            )
            test = less(r, item, x) if side == "left" else f"!{less(r, x, item)}"
            r.line(f"if ({test}) {low} = {at} + 1; else {high} = {at};")
        made = r.integer(low, 0)
        if n.lin is not None and made.lin is not None:
            r.facts.add(n.lin - made.lin)
        return made

    return find


def inserted(side: str) -> Callable:
    """`insort_left(a, x)`, `insort_right(a, x)`."""

    def insert(r: Reader, a: Value, x: Value) -> Value:
        x = kept(r, x)
        if isinstance(a, Tup) and a.made is list:
            growing(r, a)
        if not isinstance(a, Lst) or a.made is not list:
            raise Unreadable("an item is inserted into this")
        return list_method(r, a, "insert", [bisected(side)(r, a, x), x], {})

    return insert


def sorted_list(
    r: Reader, x: Value, *, key: Value | None = None, reverse: Value | None = None
) -> Value:
    """`sorted(x, key=..., reverse=...)`."""
    made = list_of(r, x)
    sort(r, made, key=key, reverse=reverse)
    return made


def extreme(r: Reader, name: str, a: Lst, key: Value | None = None) -> Value:
    """`min(a, key=...)`: the first of those with the least key; or `max`."""
    if a.of is None:
        raise NotYet("an item of a list of which nothing is known")
    keys = _keys(r, a, key)
    n = length(r, a)
    r.leave_if(f"{n.text} == 0", f"{name} of nothing")
    best = r.fresh("best")
    r.line(f"i64 {best} = 0;")
    with each(r, n) as k:
        pair = place_of(r, keys, k.text).load(r), place_of(r, keys, best).load(r)
        test = less(r, *(pair if name == "min" else pair[::-1]))
        r.line(f"if ({test}) {best} = {k.text};")
    return item_at(r, a, r.integer(best, 0))


def _sees(r: Reader, key: Value | None, a: Lst) -> bool:
    """Whether a function that is made where it is called sees a list under a name: Python shows it
    an empty one."""
    if key is None or not r.is_local(key):
        return False
    seen = [r.local[key.value][1].env.get(name) for name in key.value.__code__.co_freevars]
    return any(_reaches(x, a.roots) for x in seen)


def _reaches(x: Value, roots: frozenset[str]) -> bool:
    if isinstance(x, Tup):
        return any(_reaches(y, roots) for y in x.items)
    return isinstance(x, Items) and bool(x.roots & roots or ANYWHERE in x.roots | roots)


def _sort_numbers(r: Reader, a: Lst, descending: str) -> None:
    n = length(r, a)
    x = as_vector(r, a)
    if a.of.rep == "f64":
        odd = r.fresh("odd")
        r.line(f"int {odd} = 0;")
        with each(r, n) as k:
            r.line(f"{odd} |= {x.data}[{k.text}] != {x.data}[{k.text}];")
        r.leave_if(odd, "NaN among what is sorted")
    r.leave_if(f"sorted_{a.of.rep}({n.text}, {x.data}, {descending})", "no memory")


def _keys(r: Reader, a: Lst, key: Value | None) -> Lst:
    """A list of what items are compared by, of which none is NaN."""
    r.one_by_one()
    r.hoisted = False
    keys = a if is_none(key) else made_list(r, (), r.list_site())
    with each(r, length(r, a)) as k:
        x = item_at(r, a, k)
        if keys is not a:
            x = certain(r, r.grammar.called(r, key, [x], {}))
            list_method(r, keys, "append", [x], {})
        no_nan(r, x)
    return keys


def _order(r: Reader, keys: Lst, n: Num, descending: Num) -> str:
    """The C name of the places of items in their order: a merge sort, by which equal ones stay in
    the order in which they are."""
    if keys.of is None:
        admit(r, keys, python(0))
    int_ = Num("", "i64", ("int",))
    p, q = (allocated(r, int_, n) for _ in range(2))
    old, new = r.fresh("old"), r.fresh("new")
    r.line(f"i64 *{old} = {p.buf}->data, *{new} = {q.buf}->data;")
    r.line(f"for (i64 k = 0; k < {n.text}; k++) {old}[k] = k;")
    with r.block(f"for (i64 width = 1; width < {n.text}; width *= 2)"):
        with r.block(f"for (i64 low = 0; low < {n.text}; low += 2 * width)"):
            r.line(f"i64 mid = low + width < {n.text} ? low + width : {n.text};")
            r.line(f"i64 end = mid + width < {n.text} ? mid + width : {n.text};")
            with r.block("for (i64 k = low, i = low, j = mid; k < end; k++)"):
                r.line("int right = i == mid;")
                with r.block("if (i < mid && j < end)"), r.scope():
                    x, y = (place_of(r, keys, f"{old}[{at}]").load(r) for at in "ij")
                    up, down = less(r, y, x), less(r, x, y)
                    if descending.value is not None:
                        r.line(f"right = {down if descending.value else up};")
                    else:
                        r.line(f"right = {descending.text} ? {down} : {up};")
                r.line(f"{new}[k] = right ? {old}[j++] : {old}[i++];")
        r.line(f"i64 *other = {old}; {old} = {new}; {new} = other;")
    return old


def _move(r: Reader, a: Lst, order: str) -> None:
    """Put the items of a list in this order."""
    n, size = length(r, a), size_of_item(r, a.of)
    moved = r.fresh("moved")
    r.line(f"char *{moved} = malloc({n.text} * {size} + 1);")
    r.leave_if(f"{moved} == 0", "no memory")
    r.line(f"for (i64 k = 0; k < {n.text}; k++) __builtin_memcpy({moved} + k * {size}, "
           f"(char *){a.buf}->data + {order}[k] * {size}, {size});")  # fmt: skip
    r.line(f"__builtin_memcpy({a.buf}->data, {moved}, {n.text} * {size});")
    r.line(f"free({moved});")
