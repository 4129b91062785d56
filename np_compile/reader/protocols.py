"""Operators on objects of the user's classes, by the methods of these."""

from __future__ import annotations

import dataclasses
import inspect

from .branches import condition_of
from .lists import equal_items, less, no_nan
from .objects import attribute, class_of, identical, is_frozen, is_generated, special
from .read import Reader
from .unions import unary
from .values import (
    Known,
    Made,
    Num,
    Tup,
    Unreadable,
    Value,
    shown,
)

NAMES = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv",
    "Mod": "mod", "Pow": "pow", "LShift": "lshift", "RShift": "rshift", "BitAnd": "and",
    "BitOr": "or", "BitXor": "xor", "MatMult": "matmul",
}  # fmt: skip
_ORDER = {"Lt": "gt", "LtE": "ge", "Gt": "lt", "GtE": "le"}  # the same from the other side


def operate(r: Reader, op: str, a: Value, b: Value) -> Value:
    """`a op b`, of which one is an object."""
    mine, theirs = class_of(a), class_of(b)
    if mine and theirs and mine is not theirs and issubclass(theirs, mine):
        raise Unreadable(f"{op} of an object and one of a class made of its class")
    if op in ("Eq", "NotEq"):
        return _equal(r, op, a, b)
    if mine is None and not isinstance(a, Num):
        raise Unreadable(f"{op} of {shown(a)} and {shown(b)}")
    name = NAMES.get(op)
    forth = f"__{name}__" if name else f"__{op.lower().replace('te', 'e')}__"
    back = f"__r{name}__" if name else f"__{_ORDER[op]}__"
    if op in _ORDER and mine is not None and is_generated(mine, forth):
        return _fields_compared(r, op, a, b)
    made = special(r, a, forth, b) if mine is not None else None
    if made is None and (mine is None or mine is not theirs):
        made = special(r, b, back, a)
    if made is None:
        raise Unreadable(f"{op} of {shown(a)} and {shown(b)}")
    return _implemented(made)


def _implemented(x: Value) -> Value:
    if isinstance(x, Known) and x.value is NotImplemented:
        raise Unreadable("an operator that is not implemented for these values")
    return x


def _equal(r: Reader, op: str, a: Value, b: Value) -> Value:
    kind = class_of(a)
    if kind is None or (op == "NotEq" and inspect.getattr_static(kind, "__ne__") is not _NE):
        raise Unreadable(f"{op} of {shown(a)} and {shown(b)}")
    if inspect.getattr_static(kind, "__eq__") is _EQ:
        other = class_of(b)
        if other is not None and inspect.getattr_static(other, "__eq__") is not _EQ:
            raise Unreadable(f"{op} of {shown(a)} and {shown(b)}")
        same: Value = identical(a, b)
    elif is_generated(kind, "__eq__"):
        same = _fields_compared(r, "Eq", a, b)
    else:
        same = _implemented(special(r, a, "__eq__", b) or Known(NotImplemented))
    if op == "Eq":
        return same
    return unary(r, "Not", condition_of(r, same))


_EQ, _NE = object.__dict__["__eq__"], object.__dict__["__ne__"]


def _fields_compared(r: Reader, op: str, a: Value, b: Value) -> Value:
    """A comparison of two objects of a dataclass, by the method that `dataclass` has written."""
    if not (isinstance(a, Made) and isinstance(b, Made) and a.made is b.made):
        raise Unreadable("a comparison of objects of two classes, or from outside")
    names = [f.name for f in dataclasses.fields(a.made) if f.compare]  # type: ignore[arg-type]
    x, y = (Tup(tuple([attribute(r, v, n) for n in names])) for v in (a, b))
    if r.site is not None:
        for side in (x, y):
            no_nan(r, side)
    elif not is_frozen(a.made):  # of a frozen one it was looked at when it was put there
        raise Unreadable("a comparison of objects that may change")
    if op == "Eq":
        return Num(f"({equal_items(r, x, y)})", "bool", ("bool",), low=0, high=1)
    if op in ("Gt", "LtE"):
        x, y = y, x
    test = Num(f"({less(r, x, y)})", "bool", ("bool",), low=0, high=1)
    return unary(r, "Not", test) if op in ("LtE", "GtE") else test
