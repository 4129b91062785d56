"""Dicts from outside whose keys are text: each item is a value of its own, like an attribute.

A region that asks for all keys is for dicts that have these, in this order.
"""

from __future__ import annotations

import ast
from typing import Any, TypeGuard

from .branches import chosen
from .members import as_text
from .numbers import truth
from .read import Reader, dotted
from .unions import binary
from .values import WORDS, Known, Num, Obj, Tup, Unreadable, Value, item_name, letters, python

_MOST = 64  # keys that are gone through
METHODS = ("items", "values", "keys", "get")


def has_named_items(x: Any) -> TypeGuard[Obj]:
    return isinstance(x, Obj) and x.type is dict


def keys(r: Reader, owner: Obj) -> tuple[Value, ...]:
    """All keys of a dict, in their order."""
    found = r.entry.keys(owner)
    if len(found) > _MOST:
        raise Unreadable("a dict of many keys that are text")
    return tuple(map(Known, found))


def item(r: Reader, owner: Obj, key: Value) -> Value:
    """`d[key]`, of a key that is a constant, or a word."""
    key = as_text(r, key)
    if not isinstance(key, Num) or not set(key.kinds) <= WORDS:
        return r.grammar.attribute(r, owner, item_name(owner, [key]))
    *first, last = keys(r, owner)
    r.leave_if(f"!({_is_one(r, key, (*first, last))})", "a key that a dict does not have")

    def of(k: int) -> Value:
        if k == len(first):
            return item(r, owner, last)
        test = _are_equal(r, key, first[k])
        return chosen(r, test, lambda: item(r, owner, first[k]), lambda: of(k + 1))

    return of(0)


def contains(r: Reader, owner: Obj, key: Value) -> Num:
    """`key in d`."""
    found, key = keys(r, owner), as_text(r, key)
    if isinstance(key, Known):
        return python(key in found)
    if not isinstance(key, Num) or not set(key.kinds) <= WORDS:
        raise Unreadable("`in` of these values")
    return Num(f"({_is_one(r, key, found)})", "bool", ("bool",), low=0, high=1)


def _is_one(r: Reader, key: Num, of: tuple[Value, ...]) -> str:
    return " || ".join(_are_equal(r, key, x).text for x in of)


def _are_equal(r: Reader, key: Num, constant: Value) -> Num:
    of = letters(constant)
    assert of is not None
    return truth(binary(r, "Eq", key, of))


def method(r: Reader, owner: Obj, name: str, args: list[Value]) -> Value:
    """`d.items()`, `d.values()`, `d.keys()` as they are now, `d.get(key, default)`."""
    if name == "get" and len(args) in (1, 2) and isinstance(args[0], Known):
        if as_text(r, args[0]) in keys(r, owner):
            return item(r, owner, args[0])
        return args[1] if len(args) == 2 else Known(None)
    if name == "get" or args:
        raise Unreadable(f"the method {name!r} of a dict with keys that are text")
    found = keys(r, owner)
    if name == "keys":
        return Tup(found)
    values = [item(r, owner, key) for key in found]
    pairs = zip(found, values, strict=True)
    return Tup(tuple(values) if name == "values" else tuple(Tup(pair) for pair in pairs))


def one_by_one(node: ast.For, call: ast.Call, name: str) -> list[ast.stmt]:
    """A loop over items or values as one over the keys, which have this name: each is taken when it
    is its turn."""
    assert isinstance(call.func, ast.Attribute)
    key: ast.expr = ast.Name(name, ast.Load())
    value: ast.expr = ast.Subscript(call.func.value, key, ast.Load())
    if call.func.attr == "items":
        value = ast.Tuple([key, value], ast.Load())
    body: list[ast.stmt] = [ast.Assign([node.target], value), *node.body]
    return [ast.For(ast.Name(name, ast.Store()), call.func.value, body, [])]


def items_of(node: ast.stmt) -> ast.Call | None:
    """What a loop is over, if it is `d.items()` or `d.values()`, and binds no name of these."""
    call = node.iter if isinstance(node, ast.For) else None
    if not isinstance(call, ast.Call) or call.args or call.keywords:
        return None
    f = call.func
    if not isinstance(f, ast.Attribute) or f.attr not in ("items", "values") or not dotted(f.value):
        return None
    return call
