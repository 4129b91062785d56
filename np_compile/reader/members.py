"""Members of the user's enumerations as values: each enumeration is a kind, C has their places."""

from __future__ import annotations

from enum import Enum, EnumMeta, Flag
from typing import Any

from .read import Reader
from .values import MEMBERS, PARTS, PYTHON_TYPE, Known, Num, Unreadable, Value, letters, python

_OWN = ("__eq__", "__ne__", "__hash__", "__bool__", "__len__", "__getattribute__", "__getattr__")


def is_taken(x: object) -> bool:
    """Whether a value is a member that compiled code holds: of an enumeration of plain objects."""
    kind: Any = type(x)
    if not isinstance(x, Enum) or type(kind) is not EnumMeta or issubclass(kind, Flag):
        return False
    plain: Any = kind
    if plain._member_type_ is not object or not any(x is m for m in plain):
        return False  # also a copy that someone has made
    own = [c for c in kind.__mro__ if c not in (Enum, object)]
    return not any(name in vars(c) for c in own for name in _OWN)


def of_enumeration(x: Value) -> list[Value] | None:
    """The members of an enumeration, in their order; None of any other value."""
    if not isinstance(x, Known) or type(x.value) is not EnumMeta:
        return None
    found: list[Any] = list(x.value)
    return list(map(Known, found)) if found and all(map(is_taken, found)) else None


def is_member(x: Value) -> bool:
    """Whether a value is a member of which C knows the place."""
    return isinstance(x, Num) and x.kind in MEMBERS


def equal(r: Reader, op: str, a: Num, b: Num) -> Num:
    """`a == b` or `a != b`, or `is`, where one is a member."""
    if op not in ("Eq", "NotEq"):
        raise Unreadable(f"{op} of members of an enumeration")
    if a.kind is None or b.kind is None:
        raise Unreadable("a member of an enumeration, or something else")
    if a.kind != b.kind:
        return python(op == "NotEq")
    if a.value is not None and b.value is not None:
        return python((a.value is b.value) == (op == "Eq"))
    sign = "==" if op == "Eq" else "!="
    return Num(f"({a.text} {sign} {b.text})", "bool", ("bool",), low=0, high=1)


def compared(r: Reader, op: str, a: Value, b: Value) -> Num | None:
    """`a == b` or another comparison where one is a member; None where none is known to be."""
    a, b = letters(a) or a, letters(b) or b
    if not is_member(a) and not is_member(b):
        return None
    both = isinstance(a, Num) and isinstance(b, Num)
    if both and a.is_python and b.is_python:
        return equal(r, op, a, b)
    if isinstance(a, Known) or isinstance(b, Known):  # None, a class, ...
        return python(op == "NotEq") if op in ("Eq", "NotEq") else None
    raise Unreadable("a member of an enumeration and a number of NumPy's")


def identical(r: Reader, a: Value, b: Value) -> Num | None:
    """`a is b` where one is a member; None where none is."""
    if not is_member(a) and not is_member(b):
        return None
    a, b = letters(a) or a, letters(b) or b
    if is_member(a) and is_member(b):
        return equal(r, "Eq", a, b)
    if isinstance(a, (Num, Known)) and isinstance(b, (Num, Known)):
        return python(False)
    raise Unreadable("identity of a member and what may be one")


def of_one(r: Reader, x: Enum, name: str) -> Value:
    """`x.name` or `x.value` of a constant."""
    _check(type(x), name)
    return r.entry.constant(r, getattr(x, name))


def _check(kind: type, name: str) -> None:
    own = any(name in vars(c) for c in kind.__mro__ if c not in (Enum, object))
    if name not in ("name", "value") or own:
        raise Unreadable(f"the attribute {name!r} of a member of an enumeration")


def attribute(r: Reader, x: Num, name: str) -> Value:
    """`x.name` or `x.value`."""
    kind: Any = PYTHON_TYPE[x.kind or ""]
    if isinstance(x.value, Enum):
        return of_one(r, x.value, name)
    _check(kind, name)
    found = [letters(y) or y for y in (r.entry.constant(r, getattr(m, name)) for m in kind)]
    first = found[0]
    kinds = {y.kinds for y in found if isinstance(y, Num)}
    if kinds == {("char",), ("word",)}:
        kinds = {("word",)}
    numbers = all(isinstance(y, Num) for y in found) and len(kinds) == 1
    if not numbers or first.rep in PARTS:
        raise Unreadable(f"the {name} of a member, which is of one type or another")
    (of,) = kinds
    text = found[-1].text
    for k, y in reversed(list(enumerate(found[:-1]))):
        text = f"({x.text} == {k}U ? {y.text} : {text})"
    if of == ("int",):
        return r.integer(text, min(y.low for y in found), max(y.high for y in found))
    return r.number(text, first.rep, of)
