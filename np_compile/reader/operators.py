"""Operators on values of any type."""

from __future__ import annotations

from .functions import as_array, product, ufunc
from .lists import repeated_list
from .numbers import OPERATORS, binary
from .read import Reader
from .values import Arr, Known, Lazy, Lst, Num, Tup, Unreadable, Value


def operate(r: Reader, op: str, a: Value, b: Value) -> Value:
    """`a op b`."""
    if isinstance(a, Num) and isinstance(b, Num):
        return binary(r, op, a, b)
    arrays = (Arr, Lazy)
    a, b = as_array(r, a, b), as_array(r, b, a)
    if isinstance(a, (*arrays, Num)) and isinstance(b, (*arrays, Num)):
        if op == "MatMult":
            if isinstance(a, Num) or isinstance(b, Num):
                raise Unreadable("@ of a number")
            return product(r, a, b)
        return ufunc(r, OPERATORS[op][0], [a, b])
    if isinstance(a, (Lst, Tup)) and op == "Mult" and isinstance(b, Num):
        made = repeated_list(r, a, b)
        if made is not None:
            return made
    if isinstance(a, Tup) and isinstance(b, Tup) and op == "Add" and a.made is b.made is tuple:
        return Tup(a.items + b.items)
    if isinstance(a, Tup) and op == "Mult" and isinstance(b, Num) and b.value is not None:
        return Tup(a.items * int(b.value), a.made)
    if isinstance(a, Known) and isinstance(b, Known) and op == "Mod":
        raise Unreadable("text")
    raise Unreadable(f"{op} of these values")
