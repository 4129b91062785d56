"""Sets that are put together or compared.

In which order Python has the items of such a set hangs on the hashes and on the history of both,
which C does not know: what is made here (`Loose`) may be asked what is in it, compared, sorted and
put together again, but Python is never given one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .dicts import class_of_key, contains_key, new_table, put_in, table_of
from .lists import each, length, list_of, place_of
from .read import Reader
from .values import Known, Loose, Lst, Num, Range, Table, Tup, Unreadable, Value, python, shown


def is_set(x: Value) -> bool:
    return isinstance(x, Table) and x.made is set


def combined(r: Reader, op: str, a: Table, b: Table) -> Value:
    """`a | b`, or another operator of two sets."""
    _are_alike(a, b, same=op == "BitAnd")
    if op in _COMPARISONS:
        return _COMPARISONS[op](r, a, b)
    if op not in ("BitOr", "BitAnd", "Sub", "BitXor"):
        raise Unreadable(f"{op} of sets")
    x = new_table(r, set, ())
    made = Loose(x.buf, x.of, x.roots, x.sites, set)
    if op != "BitAnd" or b.of is not None:
        _add(r, made, a, {"BitAnd": (b, True), "BitOr": None}.get(op, (b, False)))
    if op in ("BitOr", "BitXor"):
        _add(r, made, b, (a, False) if op == "BitXor" else None)
    return made


def _are_alike(a: Table, b: Table, same: bool = False) -> None:
    """Whose items may be equal; same: and of one type, where it is not known whose an item is."""
    if a.of is None or b.of is None:
        return
    x, y = a.of.items[1], b.of.items[1]
    if class_of_key(x) != class_of_key(y) or (same and x != y):
        raise Unreadable(f"sets of {shown(x)} and of {shown(y)}")


def _add(r: Reader, to: Table, a: Table, by: tuple[Table, bool] | None) -> None:
    """Put the items of a set into another. by: those alone that are in a third one, or are not."""
    if a.of is None:
        return
    with each(r, length(r, a)) as k:
        key = place_of(r, a, k.text).items[1].load(r)
        if by is None:
            put_in(r, to, key)
            return
        other, wanted = by
        there = contains_key(r, other, key)
        with r.block(f"if ({there.text} == {int(wanted)})"):
            put_in(r, to, key)


def _is_part(r: Reader, a: Table, b: Table, inside: bool = True) -> Num:
    """Whether all items of a set are in another one; inside: or none is."""
    if a.of is None:
        return python(True)
    if b.of is None:
        n = length(r, a)
        return Num(f"({n.text} == 0)", "bool", ("bool",), low=0, high=1) if inside else python(True)
    found = r.fresh("c")
    r.line(f"u8 {found} = 1;")
    with each(r, length(r, a)) as k:
        key = place_of(r, a, k.text).items[1].load(r)
        there = contains_key(r, b, key)
        r.line(f"if ({there.text} != {int(inside)}) {{ {found} = 0; break; }}")
    return Num(found, "bool", ("bool",), low=0, high=1)


def _compared(sizes: str, r: Reader, a: Table, b: Table) -> Num:
    """A comparison: one set is in the other, and their lengths compare so."""
    n, m = length(r, a), length(r, b)
    part = _is_part(r, a, b)
    text = part.text if part.value is None else str(int(part.value))
    return Num(f"({text} && {n.text} {sizes} {m.text})", "bool", ("bool",), low=0, high=1)


def _unequal(r: Reader, a: Table, b: Table) -> Num:
    return Num(f"(!{_compared('==', r, a, b).text})", "bool", ("bool",), low=0, high=1)


_COMPARISONS: dict[str, Callable[[Reader, Table, Table], Num]] = {
    "LtE": partial(_compared, "<="), "Lt": partial(_compared, "<"), "Eq": partial(_compared, "=="),
    "GtE": lambda r, a, b: _compared("<=", r, b, a), "Gt": lambda r, a, b: _compared("<", r, b, a),
    "NotEq": _unequal,
}  # fmt: skip


# Methods


def _of(op: str) -> Callable[[Reader, Table, Value], Value]:
    def method(r: Reader, a: Table, other: Value) -> Value:
        return combined(r, op, a, _as_set(r, other))

    return method


def _as_set(r: Reader, x: Value) -> Table:
    made = x if isinstance(x, Table) and x.made is set else table_of(r, set, x)
    assert isinstance(made, Table)
    return made


def _is_disjoint(r: Reader, a: Table, other: Value) -> Value:
    b = _as_set(r, other)
    _are_alike(a, b)
    return _is_part(r, a, b, inside=False)


def _update(r: Reader, a: Table, values: Value) -> Value:
    """Items one after the other, in an order that is known."""
    if isinstance(a, Loose) or not isinstance(values, (Tup, Lst, Range)):
        raise Unreadable(f"a set is updated by {shown(values)}")
    if isinstance(values, Tup):
        for x in values.items:
            put_in(r, a, x)
        return Known(None)

    source = list_of(r, values)
    assert isinstance(source, Lst)
    if source.of is not None:
        with each(r, length(r, source)) as k:
            put_in(r, a, place_of(r, source, k.text).load(r))
    return Known(None)


METHODS: dict[str, Callable] = {
    "union": _of("BitOr"), "intersection": _of("BitAnd"), "difference": _of("Sub"),
    "symmetric_difference": _of("BitXor"), "issubset": _of("LtE"), "issuperset": _of("GtE"),
    "isdisjoint": _is_disjoint, "update": _update,
}  # fmt: skip
