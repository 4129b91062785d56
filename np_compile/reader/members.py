"""Members of the user's enumerations as values: each enumeration is a kind, C has their places."""

from __future__ import annotations

from enum import Enum, EnumMeta, Flag
from typing import Any

from .read import Reader
from .values import (
    MEMBERS,
    PARTS,
    PYTHON_TYPE,
    Arr,
    Known,
    Lazy,
    Lst,
    Num,
    Tup,
    Unreadable,
    Value,
    letters,
    python,
)

_OWN = ("__eq__", "__ne__", "__hash__", "__bool__", "__len__", "__getattribute__", "__getattr__")
_NAMES = {
    of: {*_OWN, *(x for x in vars(of) if x not in vars(object))} - {"__getnewargs__"}
    for of in (int, str)
}  # what an enumeration of integers, or of texts, has not changed


def is_taken(x: object) -> bool:
    """Whether a value is a member that compiled code holds: of an enumeration of plain objects, of
    integers, or of texts."""
    kind: Any = type(x)
    if not isinstance(x, Enum) or type(kind) is not EnumMeta or issubclass(kind, Flag):
        return False
    plain: Any = kind
    of = plain._member_type_
    if of not in (object, int, str) or not any(x is m for m in plain):
        return False  # also a copy that someone has made
    if of is not object and not all(type(m._value_) is of and _is_its_value(m) for m in plain):
        return False
    own = [c for c in kind.__mro__ if c.__module__ not in ("enum", "builtins")]
    return not any(name in vars(c) for c in own for name in _NAMES.get(of, _OWN))


def _is_its_value(x: Any) -> bool:
    if type(x._value_) is str:
        return str.__eq__(x, x._value_)
    return int.__index__(x) == x._value_ and -(2**63) <= x._value_ < 2**63


def is_number(x: Value) -> bool:
    """Whether a value is a member that is an integer too, of which C knows the place."""
    return is_member(x) and issubclass(PYTHON_TYPE[x.kind], int)  # type: ignore[attr-defined]


def as_text(r: Reader, x: Value) -> Value:
    """The text that a member is; any other value as it is."""
    if isinstance(x, Known) and isinstance(x.value, Enum) and isinstance(x.value, str):
        return Known(x.value._value_)
    if not is_member(x) or not issubclass(PYTHON_TYPE[x.kind], str):  # type: ignore[attr-defined]
        return x
    assert isinstance(x, Num)
    found = Known(x.value._value_) if x.value is not None else attribute(r, x, "_value_")
    return letters(found) or found


def as_integer(r: Reader, x: Value) -> Value:
    """The integer that such a member is; any other value as it is."""
    known = isinstance(x, Known) and isinstance(x.value, Enum) and isinstance(x.value, int)
    x = letters(x) or x if known else x
    if not is_number(x):
        return x
    assert isinstance(x, Num)
    return python(int(x.value)) if x.value is not None else attribute(r, x, "_value_")


def of_enumeration(x: Value) -> list[Value] | None:
    """The members of an enumeration, in their order; None of any other value."""
    if not isinstance(x, Known) or type(x.value) is not EnumMeta:
        return None
    found: list[Any] = list(x.value)
    return list(map(Known, found)) if found and all(map(is_taken, found)) else None


def is_member(x: Value) -> bool:
    """Whether a value is a member of which C knows the place."""
    return isinstance(x, Num) and x.kind in MEMBERS


def operate(r: Reader, op: str, a: Num, b: Num) -> Num:
    """`a op b` where one is a member: of those of integers, what integers give."""
    if not is_number(a) and not is_number(b):
        return equal(r, op, a, b)
    x, y = beside(r, a, b), beside(r, b, a)
    if op in ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"):
        x = as_integer(r, a) if {*b.kinds} <= _SMALL else x
        y = as_integer(r, b) if {*a.kinds} <= _SMALL else y
    if is_member(x) or is_member(y):
        raise Unreadable("a member of an enumeration of integers and what is no integer or float")
    found = r.grammar.operate(r, op, x, y)
    assert isinstance(found, Num)
    return found


def beside(r: Reader, x: Value, other: Value) -> Value:
    """A value as an operand beside another one: the integer that a member is."""
    if isinstance(other, (Arr, Lazy)):
        return as_integer(r, x) if other.kind in _BESIDE_INTEGERS else x
    if isinstance(other, Num) and not {*other.kinds} <= _BESIDE_INTEGERS and not is_number(other):
        return x
    return as_integer(r, x) if isinstance(other, (Known, Num, Lst, Tup)) else x


# NumPy takes what is derived from int for an array of int64.
_BESIDE_INTEGERS = {"bool", "int", "float", "int64", "float64"}
_SMALL = {"int8", "int16", "int32", "uint8", "uint16", "uint32"}  # compared as integers


def equal(r: Reader, op: str, a: Num, b: Num) -> Num:
    """`a == b` or `a != b`, or `is`, where one is a member."""
    if op not in ("Eq", "NotEq"):
        raise Unreadable(f"{op} of members of an enumeration")
    if a.kind is None or b.kind is None:
        raise Unreadable("a member of an enumeration, or something else")
    if a.kind != b.kind:
        x, y = as_text(r, a), as_text(r, b)
        if x is a and y is b:
            return python(op == "NotEq")
        found = r.grammar.operate(r, op, x, y)
        assert isinstance(found, Num)
        return found
    if a.value is not None and b.value is not None:
        return python((a.value is b.value) == (op == "Eq"))
    sign = "==" if op == "Eq" else "!="
    return Num(f"({a.text} {sign} {b.text})", "bool", ("bool",), low=0, high=1)


def compared(r: Reader, op: str, a: Value, b: Value) -> Num | None:
    """`a == b` or another comparison where one is a member; None where none is known to be."""
    a, b = letters(a) or a, letters(b) or b
    if not is_member(a) and not is_member(b):
        return None
    if isinstance(a, Num) and isinstance(b, Num):
        if is_number(a) or is_number(b):
            return operate(r, op, a, b)
        if a.is_python and b.is_python:
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
    if name not in ("name", "value", "_value_") or own:
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
