"""Operators on values of any type."""

from __future__ import annotations

import numpy as np

from np_compile import disallowed

from . import members, sets
from .functions.operands import as_array
from .functions.ufuncs import product, ufunc
from .lists import joined, repeated
from .numbers import COMPARISONS, OPERATORS
from .objects import class_of
from .protocols import operate as of_objects
from .read import Reader
from .records import spread
from .text import compared, is_char, is_text
from .text import joined as joined_texts
from .unions import binary
from .values import (
    Arr,
    Known,
    Lazy,
    Lst,
    Num,
    Table,
    Tup,
    Unreadable,
    Value,
    shown,
)


def _of_text(r: Reader, op: str, a: Value, b: Value) -> Value:
    if op in COMPARISONS:
        found = compared(r, op, a, b)
        if found is not None:
            return found
    if op == "Add" and not (isinstance(a, Known) and isinstance(b, Known)):
        return joined_texts(r, a, b)
    raise Unreadable(f"{op} of text")


def operate(r: Reader, op: str, a: Value, b: Value) -> Value:
    """`a op b`."""
    a, b = members.beside(r, a, b), members.beside(r, b, a)
    if isinstance(a, Num) and isinstance(b, Num):
        return binary(r, op, a, b)
    if class_of(a) or class_of(b):
        return of_objects(r, op, a, b)
    if any(is_char(x) or is_text(x) for x in (a, b)):
        return _of_text(r, op, a, b)
    arrays = (Arr, Lazy)
    a, b = spread(r, a), spread(r, b)
    a, b = as_array(r, a, b), as_array(r, b, a)
    if isinstance(a, (*arrays, Num)) and isinstance(b, (*arrays, Num)):
        name = OPERATORS[op][0]
        if disallowed.is_function(getattr(np, name)):
            raise Unreadable(disallowed.why(f"np.{name}"))
        if op == "MatMult":
            if isinstance(a, Num) or isinstance(b, Num):
                raise Unreadable("@ of a number")
            return product(r, a, b)
        if op == "Pow" and a.rep == "bool":  # `x ** 2` is `np.square(x)`, of int8
            raise Unreadable("a power of truth values")
        return ufunc(r, name, [a, b])
    if isinstance(a, Num) and op == "Mult" and isinstance(b, (Lst, Tup)):
        a, b = b, a
    if isinstance(a, Table) and isinstance(b, Table) and sets.is_set(a) and sets.is_set(b):
        return sets.combined(r, op, a, b)
    is_list = isinstance(a, (Lst, Tup)) and a.made is list
    if is_list and op == "Mult" and isinstance(b, Num) and b.is_int:
        return repeated(r, a, b)
    if op == "Add" and isinstance(a, Lst) and isinstance(b, Lst) and a.made is b.made is list:
        return joined(r, a, b)
    if isinstance(a, Tup) and isinstance(b, Tup) and op == "Add" and a.made is b.made is tuple:
        return Tup(a.items + b.items)
    if isinstance(a, Tup) and op == "Mult" and isinstance(b, Num) and b.value is not None:
        return Tup(a.items * int(b.value), a.made)
    if isinstance(a, Known) and isinstance(b, Known) and op == "Mod":
        raise Unreadable("text")
    raise Unreadable(f"{op} of {shown(a)} and {shown(b)}")
