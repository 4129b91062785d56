"""Expressions: the source of one, its value."""

from __future__ import annotations

import ast
import types
from typing import Any

import numpy as np

from . import calls, index
from .nest import copied, dot, lazy, materialized, pointwise
from .numbers import (
    COMPARISONS,
    OPERATORS,
    binary,
    kind_of,
    rep_of,
    resolved,
    truth,
    unary,
)
from .read import Reader, Variable, int_constant, join
from .values import (
    C_TYPE,
    PARTS,
    PYTHON,
    Arr,
    Bound,
    Conflict,
    Known,
    Lazy,
    Lst,
    Maybe,
    Num,
    Obj,
    Range,
    Slice,
    Tup,
    Unreadable,
    Value,
    python,
)

_SINGLE = (bool, int, float, complex)


def expression(r: Reader, node: ast.AST) -> Value:
    """The value of an expression; Unreadable where there is none."""
    read: Any = _READERS.get(type(node))
    if read is None:
        raise Unreadable(f"{type(node).__name__} in an expression")
    return read(r, node)


def _constant(r: Reader, node: ast.Constant) -> Value:
    if type(node.value) in _SINGLE:
        return python(node.value)
    return Known(node.value)


def _name(r: Reader, node: ast.Name) -> Value:
    return look_up(r, node.id)


def look_up(r: Reader, name: str) -> Value:
    """The value of a name, local or global."""
    env = r.env
    if name in env:
        return settled(r, env[name], name)
    if name in r.frame.scope:  # a local one that has no value here
        r.missing.add(name)
        raise Unreadable(f"the name {name!r} may have no value here")
    return r.entry.outer(r, r.frame.function, name)


def settled(r: Reader, x: Value, name: str) -> Value:
    """The value of a name, if it is sure to have one."""
    if isinstance(x, Conflict):
        raise Unreadable(f"{name!r}: {x.why}")
    if isinstance(x, Maybe):
        r.leave_if(f"!{x.flag}", f"the name {name!r} has no value yet")
        return x.value
    return x


def _attribute(r: Reader, node: ast.Attribute) -> Value:
    owner = expression(r, node.value)
    return attribute(r, owner, node.attr)


def attribute(r: Reader, owner: Value, name: str) -> Value:
    if isinstance(owner, Obj):
        key = f"@{owner.path}.{name}"
        env = r.frames[0].env
        if key in env:
            return settled(r, env[key], key[1:])
        return r.entry.attribute(r, owner, name)
    if isinstance(owner, Known):
        if isinstance(owner.value, types.ModuleType):
            return r.entry.of_module(r, owner.value, name)
        return calls.attribute_of_known(r, owner.value, name)
    if isinstance(owner, (Arr, Lazy)):
        return _array_attribute(r, owner, name)
    if isinstance(owner, Num):
        if name == "real" or name == "imag":
            return _part(r, owner, name)
        return Bound(owner, name)
    if isinstance(owner, Tup):
        fields = getattr(owner.made, "_fields", ())
        if name in fields:
            return owner.items[fields.index(name)]
        return Bound(owner, name)
    return Bound(owner, name)


def _part(r: Reader, x: Num, name: str) -> Num:
    if x.rep in PARTS:
        kind = "float" if x.is_python else {"c128": "float64", "c64": "float32"}[x.rep]
        return r.number(f"{x.text}.{name[0]}", PARTS[x.rep], (kind,))
    if name == "real":
        return x
    return python(0) if x.is_python else Num("0", x.rep, x.kinds)


def _array_attribute(r: Reader, a: Arr | Lazy, name: str) -> Value:
    if name == "shape":
        return Tup(a.dims)
    if name == "ndim":
        return python(a.ndim)
    if name == "size":
        from .nest import size_of

        return size_of(r, a.dims)
    if name == "dtype":
        return Known(a.dtype)
    if name == "itemsize":
        return python(a.dtype.itemsize)
    if name == "T":
        return calls.transposed(r, a, None)
    if name in ("real", "imag"):
        return calls.part(r, a, name)
    return Bound(a, name)


def _tuple(r: Reader, node: ast.Tuple) -> Value:
    return Tup(tuple(_items(r, node.elts)))


def _list(r: Reader, node: ast.List) -> Value:
    return calls.new_list(r, _items(r, node.elts))


def _items(r: Reader, nodes: list[ast.expr]) -> list[Value]:
    made: list[Value] = []
    for x in nodes:
        if isinstance(x, ast.Starred):
            inner = expression(r, x.value)
            if not isinstance(inner, Tup):
                raise Unreadable("* of what is no tuple")
            made += inner.items
        else:
            made.append(kept(r, expression(r, x)))
    return made


def kept(r: Reader, x: Value) -> Value:
    """A value that a name, or a tuple, can hold: arrays in memory, numbers under names."""
    if isinstance(x, Lazy):
        if x.ndim == 0:
            return _element(r, x)
        return materialized(r, x)
    if isinstance(x, Num) and x.value is None and not x.text.isidentifier():
        name = r.named(x.text, C_TYPE[x.rep])
        return Num(name, x.rep, x.kinds, x.tag, x.lin, x.low, x.high, None, x.true, x.false)
    if isinstance(x, Tup):
        return Tup(tuple(kept(r, y) for y in x.items), x.made)
    return x


def _element(r: Reader, x: Lazy) -> Num:
    return r.number(x.at([]), x.rep, (x.kind,))


def _unary(r: Reader, node: ast.UnaryOp) -> Value:
    op = type(node.op).__name__
    x = expression(r, node.operand)
    if isinstance(x, (Arr, Lazy)):
        if op == "Not":
            return unary(r, op, condition_of(r, x))
        name = {"USub": "negative", "UAdd": "positive", "Invert": "invert"}[op]
        return calls.ufunc(r, name, [x])
    if isinstance(x, Num):
        return unary(r, op, x)
    if op == "Not":
        return unary(r, op, condition_of(r, x))
    raise Unreadable(f"{op} of this")


def _binary(r: Reader, node: ast.BinOp) -> Value:
    a = expression(r, node.left)
    b = expression(r, node.right)
    return operate(r, type(node.op).__name__, a, b)


def operate(r: Reader, op: str, a: Value, b: Value) -> Value:
    """`a op b`."""
    if isinstance(a, Num) and isinstance(b, Num):
        return binary(r, op, a, b)
    arrays = (Arr, Lazy)
    a, b = calls.as_array(r, a, b), calls.as_array(r, b, a)
    if isinstance(a, (*arrays, Num)) and isinstance(b, (*arrays, Num)):
        if op == "MatMult":
            if isinstance(a, Num) or isinstance(b, Num):
                raise Unreadable("@ of a number")
            return calls.product(r, a, b)
        return calls.ufunc(r, OPERATORS[op][0], [a, b])
    if isinstance(a, (Lst, Tup)) and op == "Mult" and isinstance(b, Num):
        made = calls.repeated_list(r, a, b)
        if made is not None:
            return made
    if isinstance(a, Tup) and isinstance(b, Tup) and op == "Add" and a.made is b.made is tuple:
        return Tup(a.items + b.items)
    if isinstance(a, Tup) and op == "Mult" and isinstance(b, Num) and b.value is not None:
        return Tup(a.items * int(b.value), a.made)
    if isinstance(a, Known) and isinstance(b, Known) and op == "Mod":
        raise Unreadable("text")
    raise Unreadable(f"{op} of these values")


def _compare(r: Reader, node: ast.Compare) -> Value:
    left = expression(r, node.left)
    if len(node.ops) == 1:
        return _comparison(r, node.ops[0], left, expression(r, node.comparators[0]))
    result: Value = None
    rest = list(zip(node.ops, node.comparators, strict=True))

    def chain(left: Value, k: int) -> Value:
        op, right = rest[k]
        y = expression(r, right)
        x = _comparison(r, op, left, kept(r, y))
        if k == len(rest) - 1:
            return x
        return both(r, x, lambda: chain(y, k + 1))

    result = chain(kept(r, left), 0)
    return result


def _comparison(r: Reader, op: ast.cmpop, a: Value, b: Value) -> Value:
    name = type(op).__name__
    if name in ("Is", "IsNot"):
        same = _identical(a, b)
        return python(same == (name == "Is"))
    if name in ("In", "NotIn"):
        return _contains(r, a, b, name == "In")
    if isinstance(a, Known) and isinstance(b, Known):
        if name in ("Eq", "NotEq"):
            return python((a.value == b.value) == (name == "Eq"))
        raise Unreadable("a comparison of objects")
    if isinstance(a, Known) != isinstance(b, Known) and name in ("Eq", "NotEq"):
        known = a if isinstance(a, Known) else b
        if (known.value is None or isinstance(known.value, str)) and isinstance(
            b if known is a else a, (Num, Tup)
        ):
            return python(name == "NotEq")
    if isinstance(a, Tup) and isinstance(b, Tup) and name in ("Eq", "NotEq"):
        return _tuples_equal(r, a, b, name)
    return operate(r, name, a, b)


def _tuples_equal(r: Reader, a: Tup, b: Tup, name: str) -> Value:
    if len(a.items) != len(b.items):
        return python(name == "NotEq")
    pairs = list(zip(a.items, b.items, strict=True))
    if not all(isinstance(x, Num) for pair in pairs for x in pair):
        raise Unreadable("a comparison of tuples")

    def rest(k: int) -> Value:
        if k == len(pairs):
            return python(True)
        return both(r, truth(binary(r, "Eq", *pairs[k])), lambda: rest(k + 1))

    same = truth(rest(0))
    return same if name == "Eq" else unary(r, "Not", same)


def _identical(a: Value, b: Value) -> bool:
    if isinstance(a, Known) and isinstance(b, Known):
        return a.value is b.value
    known = a if isinstance(a, Known) else b
    if isinstance(known, Known) and (
        known.value is None or isinstance(known.value, (type, types.ModuleType, str))
    ):
        return False
    raise Unreadable("identity of values")


def _contains(r: Reader, a: Value, b: Value, wanted: bool) -> Value:
    if isinstance(b, Tup) and isinstance(a, Num) and all(isinstance(x, Num) for x in b.items):
        tests = [truth(binary(r, "Eq", a, x)) for x in b.items]
        if any(t.value for t in tests):
            return python(wanted)
        texts = [t.text for t in tests if t.value is None]
        if not texts:
            return python(not wanted)
        found = Num(f"({' || '.join(texts)})", "bool", ("bool",), low=0, high=1)
        return found if wanted else unary(r, "Not", found)
    if isinstance(b, Known) and isinstance(a, Known):
        return python((a.value in b.value) == wanted)
    raise Unreadable("`in` of these values")


def condition(r: Reader, node: ast.AST) -> Num:
    """The truth of an expression."""
    if isinstance(node, ast.BoolOp):
        both_of = isinstance(node.op, ast.And)

        def rest(k: int) -> Num:
            x = condition(r, node.values[k])
            if k == len(node.values) - 1:
                return x
            return both(r, x, lambda: rest(k + 1)) if both_of else either(r, x, lambda: rest(k + 1))

        return rest(0)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return unary(r, "Not", condition(r, node.operand))
    return condition_of(r, expression(r, node))


def condition_of(r: Reader, x: Value) -> Num:
    if isinstance(x, Num):
        return truth(x)
    if isinstance(x, Lazy) and x.ndim == 0:
        return truth(_element(r, x))
    if isinstance(x, Lst):
        return truth(calls.length(r, x))
    if isinstance(x, (Arr, Lazy)):
        from .nest import size_of

        n = size_of(r, x.dims)
        if n.value != 1:
            r.leave_if(f"{n.text} != 1", "the truth of an array")
        return truth(r.number(lazy(x).at(["0"] * x.ndim), x.rep, (x.kind,)))
    if isinstance(x, Tup):
        return python(bool(x.items))
    if isinstance(x, Known):
        return python(bool(x.value))
    raise Unreadable("the truth of this value")


def both(r: Reader, a: Value, rest: Any) -> Num:
    """`a and rest()`."""
    a = condition_of(r, a)
    if a.value is not None:
        return condition_of(r, rest()) if a.value else python(False)
    mark = r.facts.mark()
    inner: list = []
    with r.elsewhere(inner):
        for fact in a.true:
            r.facts.add(fact)
        b = condition_of(r, rest())
    r.facts.back_to(mark)
    if b.value is True and not inner:
        return a
    if not inner:
        return Num(f"({a.text} && {b.text})", "bool", ("bool",), low=0, high=1,
                   true=(*a.true, *b.true))  # fmt: skip
    name = r.fresh("c")
    r.line(f"u8 {name} = {a.text};")
    with r.block(f"if ({name})"):
        r.lines.append(inner)
        r.line(f"{name} = {b.text};")
    return Num(name, "bool", ("bool",), low=0, high=1, true=(*a.true, *b.true))


def either(r: Reader, a: Value, rest: Any) -> Num:
    """`a or rest()`."""
    a = condition_of(r, a)
    if a.value is not None:
        return python(True) if a.value else condition_of(r, rest())
    mark = r.facts.mark()
    inner: list = []
    with r.elsewhere(inner):
        for fact in a.false:
            r.facts.add(fact)
        b = condition_of(r, rest())
    r.facts.back_to(mark)
    if not inner:
        return Num(f"({a.text} || {b.text})", "bool", ("bool",), low=0, high=1,
                   false=(*a.false, *b.false))  # fmt: skip
    name = r.fresh("c")
    r.line(f"u8 {name} = {a.text};")
    with r.block(f"if (!{name})"):
        r.lines.append(inner)
        r.line(f"{name} = {b.text};")
    return Num(name, "bool", ("bool",), low=0, high=1, false=(*a.false, *b.false))


def _bool_op(r: Reader, node: ast.BoolOp) -> Value:
    """`a and b`, as a value: one of the operands."""
    is_and = isinstance(node.op, ast.And)
    x = expression(r, node.values[0])
    for k in range(1, len(node.values)):
        test = condition_of(r, x)
        if test.value is not None:
            if bool(test.value) == is_and:
                x = expression(r, node.values[k])
                continue
            return x
        rest = ast.BoolOp(node.op, node.values[k:]) if k < len(node.values) - 1 else node.values[k]
        x = kept(r, x)
        held = x
        later = lambda rest=rest: expression(r, rest)  # noqa: E731
        first = lambda held=held: held  # noqa: E731
        return chosen(r, test, later if is_and else first, first if is_and else later)
    return x


def chosen(r: Reader, test: Num, yes: Any, no: Any) -> Value:
    """yes() where the test is true, else no()."""
    if test.value is not None:
        return yes() if test.value else no()
    r.one_by_one()
    found: list[tuple[list, Value]] = []
    for make, facts in ((yes, test.true), (no, test.false)):
        lines: list = []
        mark = r.facts.mark()
        with r.elsewhere(lines):
            for fact in facts:
                r.facts.add(fact)
            r.owned.append([])
            x = kept(r, make())
            more = r.owned.pop()
            if more:
                raise Unreadable("an array that is made on one of two ways in an expression")
        r.facts.back_to(mark)
        found.append((lines, x))
    (a_lines, a), (b_lines, b) = found
    if isinstance(a, Known) and isinstance(b, Known) and a.value is b.value:
        return a
    of = join(a, b, r)
    if isinstance(of, Conflict) or not isinstance(of, (Num, Arr, Tup)):
        raise Unreadable("a choice of values of different types")
    v = Variable(r, "chosen", of)
    for line in v.declare:
        r.line(line)
    with r.block(f"if ({test.text})"):
        r.lines.append(a_lines)
        r.lines.append(v.store(r, a, owned=False))
    with r.block("else"):
        r.lines.append(b_lines)
        r.lines.append(v.store(r, b, owned=False))
    return v.load(r)


def _if_exp(r: Reader, node: ast.IfExp) -> Value:
    test = condition(r, node.test)
    return chosen(r, test, lambda: expression(r, node.body), lambda: expression(r, node.orelse))


def _call(r: Reader, node: ast.Call) -> Value:
    return calls.call(r, node)


def _subscript(r: Reader, node: ast.Subscript) -> Value:
    owner = expression(r, node.value)
    items = index_items(r, node.slice)
    return item(r, owner, items)


def item(r: Reader, owner: Value, items: list[Any]) -> Value:
    """owner[items]."""
    if isinstance(owner, Tup):
        return _tuple_item(r, owner, items)
    if isinstance(owner, Lazy):
        if owner.ndim == len(items) and all(isinstance(x, Num) for x in items):
            at = [index.checked(r, x, n).text for x, n in zip(items, owner.dims, strict=True)]
            return r.number(owner.at(at), owner.rep, (owner.kind,))
        owner = materialized(r, owner)
    if isinstance(owner, Lst):
        return calls.list_item(r, owner, items)
    if isinstance(owner, Arr):
        if index.is_advanced(items):
            return index.gathered(r, owner, items)
        return index.view(r, owner, items)
    if isinstance(owner, Known) and len(items) == 1 and isinstance(items[0], Known):
        return r.entry.constant(r, owner.value[items[0].value])
    raise Unreadable("an index of this value")


def _tuple_item(r: Reader, owner: Tup, items: list[Any]) -> Value:
    i = items[0] if len(items) == 1 else None
    if isinstance(i, Num) and isinstance(i.value, int):
        if not -len(owner.items) <= i.value < len(owner.items):
            raise Unreadable("an index out of a tuple's bounds")
        return owner.items[i.value]
    if isinstance(i, Slice):
        parts = [x if x is None else x.value for x in (i.start, i.stop, i.step)]
        if all(x is None or isinstance(x, int) for x in parts):
            return Tup(owner.items[slice(*parts)], owner.made)
    if isinstance(i, Num) and i.is_int and all(isinstance(x, Num) for x in owner.items):
        return _one_of(r, owner, i)
    raise Unreadable("an index of a tuple that is no constant")


def _one_of(r: Reader, owner: Tup, i: Num) -> Num:
    """The item of a tuple of numbers at an index that only data can tell."""
    n = int_constant(len(owner.items))
    at = index.checked(r, i, n)
    of: Any = owner.items[0]
    for x in owner.items[1:]:
        of = join(of, x, r)
        if isinstance(of, Conflict):
            raise Unreadable(of.why)
    v = Variable(r, "item", of)
    for line in v.declare:
        r.line(line)
    with r.block(f"switch ({at.text})"):
        for k, x in enumerate(owner.items):
            r.line(f"case {k}:")
            r.lines.append(v.store(r, x))
            r.line("break;")
    return v.load(r)


def index_items(r: Reader, node: ast.AST) -> list[Any]:
    """What stands in the brackets of an index."""
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    return [x for n in nodes for x in _index_item(r, n)]


def _index_item(r: Reader, node: ast.AST) -> list[Any]:
    if isinstance(node, ast.Slice):
        parts = [
            None if x is None else expression(r, x) for x in (node.lower, node.upper, node.step)
        ]
        parts = [None if isinstance(x, Known) and x.value is None else x for x in parts]
        for x in parts:
            if x is not None and not (isinstance(x, Num) and x.is_int):
                raise Unreadable("a slice's bound that is no integer")
        return [Slice(*parts)]
    x = expression(r, node)
    if isinstance(x, Tup):
        if x.made is tuple:
            return list(x.items)
        return [calls.array_of(r, x)]
    if isinstance(x, Lst):
        return [calls.array_of(r, x)]
    if isinstance(x, (Arr, Lazy)) and x.ndim == 0:
        return [_element(r, lazy(x))]
    if isinstance(x, Num) and x.rep == "bool":
        raise Unreadable("a bool as an index")
    if isinstance(x, (Num, Arr, Lazy, Known, Slice)):
        return [x]
    raise Unreadable("an index of this type")


def _list_comp(r: Reader, node: ast.ListComp) -> Value:
    return calls.comprehension(r, node)


def _joined_str(r: Reader, node: ast.JoinedStr) -> Value:
    raise Unreadable("text that is made")


def _named_expr(r: Reader, node: ast.NamedExpr) -> Value:
    raise Unreadable(":= in an expression")


_READERS = {
    ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute, ast.Tuple: _tuple,
    ast.List: _list, ast.UnaryOp: _unary, ast.BinOp: _binary, ast.Compare: _compare,
    ast.BoolOp: _bool_op, ast.IfExp: _if_exp, ast.Call: _call, ast.Subscript: _subscript,
    ast.ListComp: _list_comp, ast.GeneratorExp: _list_comp, ast.JoinedStr: _joined_str,
    ast.NamedExpr: _named_expr,
}  # fmt: skip

__all__ = [
    "COMPARISONS", "PYTHON", "Range", "copied", "dot", "expression", "kind_of", "np", "pointwise",
    "rep_of", "resolved",
]  # fmt: skip
