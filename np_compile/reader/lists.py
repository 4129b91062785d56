"""Lists of numbers, and ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .index import checked
from .nest import CODES, extent, kept, loops, named_numbers
from .read import C_STORAGE, Again, Reader, int_constant
from .values import (
    REPRESENTATION,
    SIZES,
    Arr,
    Known,
    Lst,
    Num,
    Range,
    Slice,
    Tup,
    Unreadable,
    Value,
    python,
)


def new_list(r: Reader, items: Sequence[Value]) -> Value:
    """`[a, b, ...]`."""
    if not items:
        key = ("list", str(r.here))
        known = r.memory.get(key)
        if known is None:
            return Lst(f"?{r.here}", "", "", frozenset())
        return _made_list(r, known["kind"], int_constant(0))
    kinds = {x.kinds for x in items if isinstance(x, Num)}
    if len(kinds) != 1 or not all(isinstance(x, Num) for x in items) or len(next(iter(kinds))) > 1:
        return Tup(tuple(items), list)
    if r.entry.fixed_lists:
        return Tup(tuple(items), list)
    made = _made_list(r, next(iter(kinds))[0], int_constant(len(items)))
    for k, x in enumerate(items):
        r.line(f"{_slot(made, str(k))} = {x.text};")
    return made


def _made_list(r: Reader, kind: str, n: Num) -> Lst:
    rep = REPRESENTATION[kind]
    call = f"new_list(rt, {CODES.index(rep)}, {SIZES[rep]}, {n.text})"
    buf = r.named(call, "Buf *", "b")
    r.leave_if(f"{buf} == 0", "no memory, or a negative size")
    r.made_here(buf)
    return Lst(buf, rep, kind, frozenset((buf,)))


def _slot(a: Lst, index: str) -> str:
    return f"(({C_STORAGE(a.rep)} *){a.buf}->data)[{index}]"


def _typed(r: Reader, a: Lst) -> Lst:
    if a.buf.startswith("?"):
        raise Unreadable("a list of which nothing is known")
    return a


def length(r: Reader, x: Lst) -> Num:
    return python(0) if x.buf.startswith("?") else extent(r, f"{x.buf}->dims[0]")


def repeated_list(r: Reader, a: Value, n: Num) -> Value:
    """`[x] * n`."""
    if isinstance(a, Tup) and a.made is list and len(a.items) == 1 and n.value is None:
        x = a.items[0]
        if isinstance(x, Num) and x.kind is not None and n.is_int:
            count = r.integer(f"({n.text} > 0 ? {n.text} : 0)", 0)
            made = _made_list(r, x.kind, count)
            with loops(r, [extent(r, count.text, count.lin)]) as index:
                r.line(f"{_slot(made, index[0])} = {x.text};")
            return made
    if isinstance(a, Lst) and not a.buf.startswith("?"):
        raise Unreadable("a list that is repeated")
    return None


def list_item(r: Reader, a: Lst, items: list[Any]) -> Value:
    a = _typed(r, a)
    r.one_by_one()
    if len(items) != 1 or isinstance(items[0], Slice) or not isinstance(items[0], Num):
        raise Unreadable("an index of a list")
    return item_at(r, a, checked(r, items[0], length(r, a)))


def item_at(r: Reader, a: Lst, k: Num) -> Num:
    """The item at an index that the list has."""
    return _from_list(r, a, _slot(a, k.text))


def _from_list(r: Reader, a: Lst, text: str) -> Num:
    if a.rep == "i64":
        x = r.integer(text)
        return x if a.kind == "int" else Num(x.text, "i64", (a.kind,), "", x.lin)
    return r.number(text, a.rep, (a.kind,))


def assign_list_item(r: Reader, a: Lst, items: list[Any], value: Value) -> Callable[[], None]:
    a = _typed(r, a)
    if len(items) != 1 or not isinstance(items[0], Num):
        raise Unreadable("a slice of a list is assigned to")
    if not isinstance(value, Num) or value.kinds != (a.kind,):
        raise Unreadable("an item of another type in a list")
    at = checked(r, items[0], length(r, a))
    held = named_numbers(r, value)
    return lambda: r.line(f"{_slot(a, at.text)} = {held.text};")


def list_method(r: Reader, a: Lst, name: str, args: list[Value]) -> Value:
    if name == "append" and len(args) == 1:
        x = kept(r, args[0])
        if not isinstance(x, Num) or x.kind is None:
            raise Unreadable("a list of what are no numbers")
        if a.buf.startswith("?"):
            r.memory[("list", a.buf[1:])] = {"kind": x.kind}
            raise Again
        if x.kind != a.kind:
            raise Unreadable("an item of another type in a list")
        _may_change(r, a)
        r.leave_if(f"grow({a.buf}, {SIZES[a.rep]})", "no memory")
        r.line(f"{_slot(a, f'{a.buf}->dims[0]++')} = {x.text};")
        r.changed(a.roots)
        return Known(None)
    a = _typed(r, a)
    if name == "pop" and not args:
        _may_change(r, a)
        n = length(r, a)
        r.leave_if(f"{n.text} == 0", "pop from an empty list")
        made = _from_list(r, a, _slot(a, f"{n.text} - 1"))
        r.line(f"{a.buf}->dims[0]--;")
        r.changed(a.roots)
        return made
    raise Unreadable(f"the method {name!r} of a list")


def _may_change(r: Reader, a: Lst) -> None:
    """Fail if the number of a list's items may not change here."""
    if any(loop.steady & a.roots for loop in r.loops):
        raise Unreadable("a list that changes while a loop runs over it backwards")


def as_vector(r: Reader, x: Lst) -> Arr:
    """The numbers of a list, as an array that lies where they are."""
    x = _typed(r, x)
    data = r.named(f"({C_STORAGE(x.rep)} *){x.buf}->data", f"{C_STORAGE(x.rep)} *", "p")
    return Arr(x.rep, x.buf, data, (length(r, x),), (int_constant(1),), x.roots, flat=True)


def range_length(r: Reader, x: Range) -> Num:
    """The number of values of a range."""
    step = x.step.value
    if step == 0:
        raise Unreadable("a range whose step is zero")
    if step is None:
        if x.step.low < 1:
            r.leave_if(f"{x.step.text} < 1", "a range's step that is not positive")
        length_ = range_length(r, Range(x.start, x.stop, python(1)))
        positive = f"({length_.text} > 0 ? ({length_.text} - 1) / {x.step.text} + 1 : 0)"
        return r.integer(positive, 0, max(length_.high, 0))
    a, b = (x.start, x.stop) if step > 0 else (x.stop, x.start)
    assert a.lin is not None
    assert b.lin is not None
    way = b.lin - a.lin
    if not r.is_safe(way):
        r.leave_if(f"({b.text} >> 62) != ({b.text} >> 63) || ({a.text} >> 62) != ({a.text} >> 63)",
                   "a range beyond 62 bits")  # fmt: skip
    text = f"({b.text} - {a.text})"
    size = abs(step)
    if size == 1 and r.facts.proves(way):
        return r.integer(text, 0, lin=way)
    if way.constant is not None:
        return python(max(0, -(-way.constant // size)))
    made = r.integer(f"({text} > 0 ? ({text} + {size - 1}) / {size} : 0)", 0)
    r.entry.known[made.text] = max(0, -(-r.entry.at(way) // size))
    return made
