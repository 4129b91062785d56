"""Expressions: the source of one, its value."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from . import calls, members, named_items, objects, text, twister, wide
from .branches import both, chosen, condition_of, either
from .dicts import contains_key, new_table
from .functions.combining import grid, in_brackets
from .functions.operands import array_of, part
from .functions.ufuncs import ufunc
from .functions.views import transposed
from .items import apart, item
from .lists import contains, ordered
from .nest import element_of, kept, lazy
from .numbers import truth
from .operators import operate
from .read import Reader, certain, settled
from .records import new_list, spread
from .source import made_in
from .unions import binary, unary
from .values import (
    PYTHON_TYPE,
    Arr,
    Begun,
    Bound,
    Items,
    Known,
    Lazy,
    Lst,
    Made,
    Maybe,
    NotYet,
    Num,
    Obj,
    OrNone,
    Slice,
    Table,
    Tup,
    Unreadable,
    Value,
    char,
    letters,
    python,
    shown,
)
from .walk import walk

_SINGLE = (bool, int, float, complex)
# What a compiler of Python's may make one constant of.
_FOLDED = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.operator, ast.unaryop)


def expression(r: Reader, node: ast.AST) -> Value:
    """The value of an expression, which is not None where it might be."""
    return certain(r, anything(r, node))


def anything(r: Reader, node: ast.AST) -> Value:
    """The value of an expression; Unreadable where there is none."""
    value = operand(r, node)
    r.accesses.note_value(value)
    return value


def operand(r: Reader, node: ast.AST) -> Value:
    """The value of an expression of which a part is taken, or nothing but a name made: the access
    is noted where it is made."""
    read: Any = _READERS.get(type(node))
    if read is None:
        raise Unreadable(f"{type(node).__name__} in an expression")
    return read(r, node)


def _constant(r: Reader, node: ast.Constant) -> Value:
    if type(node.value) in _SINGLE:
        return number_of(node.value)
    return Known(node.value)


def number_of(value: Any) -> Value:
    """A literal; of an integer beyond 64 bits nothing but its value is known."""
    is_large = type(value) is int and not -wide.ALL // 2 <= value < wide.ALL
    return Known(value) if is_large else python(value)


def _name(r: Reader, node: ast.Name) -> Value:
    return look_up(r, node.id)


def look_up(r: Reader, name: str) -> Value:
    """The value of a name, local or global."""
    frame = r.frame
    while True:
        if frame is not r.frame and name in frame.inside:
            raise Unreadable(
                f"{name!r} is a comprehension's, and another's in a function made in it"
            )
        if name in frame.env:
            if isinstance(frame.env[name], Maybe):  # an iteration before this one may have bound it
                r.missing.add(name)
            return settled(r, frame.env[name], name)
        if name in frame.scope:  # a local one that has no value here
            r.missing.add(name)
            raise NotYet(f"the name {name!r} may have no value here")
        if frame.home is None or name not in frame.function.__code__.co_freevars:
            return r.entry.outer(r, frame.function, name)
        frame = frame.home


def made_function(
    r: Reader, node: ast.FunctionDef | ast.Lambda, statement: ast.stmt | None
) -> Known:
    """A function that is made here. statement: that makes it again, under its name."""
    key = "made", id(node), id(r.frame)
    if key not in r.entry.normalized:
        r.entry.normalized[key] = made_in(r.frame.function, node), r.frame
    f = r.entry.normalized[key][0]
    r.local[f] = statement, r.frame
    return Known(f)


def _lambda(r: Reader, node: ast.Lambda) -> Value:
    return made_function(r, node, None)


def _attribute(r: Reader, node: ast.Attribute) -> Value:
    owner = certain(r, operand(r, node.value))
    found = attribute(r, owner, node.attr)
    if isinstance(found, Bound):
        r.accesses.note_value(owner)
    return found


def attribute(r: Reader, owner: Value, name: str) -> Value:
    if isinstance(owner, (Begun, Made)):
        return objects.attribute(r, owner, name)
    if isinstance(owner, Obj):
        if name in named_items.METHODS and named_items.has_named_items(owner):
            return Bound(owner, name)
        key = f"@{owner.path}.{name}"
        env = r.frames[0].env
        known = env.get(key, r.entry.attributes.get(key))
        if key in r.entry.unset:
            known = r.entry.since_set(r, owner, name, known)
            return settled(r, known, key[1:])
        if key in env:
            return settled(r, known, key[1:])
        return r.entry.attribute(r, owner, name)
    if isinstance(owner, calls.Super):
        return owner.method(r, name)
    if isinstance(owner, Known):
        if isinstance(owner.value, types.ModuleType):
            return r.entry.of_module(r, owner.value, name)
        return calls.attribute_of_known(r, owner.value, name)
    if isinstance(owner, (Arr, Lazy)):
        return _array_attribute(r, owner, name)
    if isinstance(owner, Num):
        if members.is_member(owner):
            return members.attribute(r, owner, name)
        if name == "real" or name == "imag":
            return part(r, owner, name)
        return _method(owner, name, *(PYTHON_TYPE.get(k) or getattr(np, k) for k in owner.kinds))
    if isinstance(owner, Tup):
        fields = getattr(owner.made, "_fields", ())
        if name in fields:
            return owner.items[fields.index(name)]
        return _method(owner, name, owner.made if isinstance(owner.made, type) else tuple)
    if isinstance(owner, Items):
        return _method(owner, name, owner.made)
    if isinstance(owner, twister.Twister):
        twister.attribute(name)
    return Bound(owner, name)


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
    if name == "strides":
        if isinstance(a, Lazy):
            raise Unreadable("strides of what has no memory yet")
        size = python(a.dtype.itemsize)
        return Tup(tuple([binary(r, "Mult", s, size) for s in a.strides]))
    if name == "itemsize":
        return python(a.dtype.itemsize)
    if name == "nbytes":
        from .nest import size_of

        return binary(r, "Mult", size_of(r, a.dims), python(a.dtype.itemsize))
    if name == "T":
        return transposed(r, a, None)
    if name in ("real", "imag"):
        return part(r, a, name)
    return _method(a, name, np.ndarray)


def _method(owner: Value, name: str, *kinds: type) -> Bound:
    """A method of what is of one of these types; Unreadable of an attribute that is none."""
    if not all(callable(getattr(kind, name, None)) for kind in kinds):
        raise Unreadable(f"the attribute {name!r}")
    return Bound(owner, name)


def _tuple(r: Reader, node: ast.Tuple) -> Value:
    return Tup(tuple(_items(r, node.elts)))


def _list(r: Reader, node: ast.List) -> Value:
    return new_list(r, _items(r, node.elts))


def _dict(r: Reader, node: ast.Dict) -> Value:
    pairs = []
    for k, v in zip(node.keys, node.values, strict=True):
        if k is None:
            raise Unreadable("** in a dict")
        pairs.append((kept(r, anything(r, k)), kept(r, anything(r, v))))
    return new_table(r, dict, [k for k, _ in pairs], [v for _, v in pairs])


def _set(r: Reader, node: ast.Set) -> Value:
    constants = None
    if len(node.elts) > 2 and all(isinstance(x, _FOLDED) for e in node.elts for x in walk(e)):
        display = ast.copy_location(ast.Tuple(node.elts, ast.Load()), node)
        values = eval(compile(ast.Expression(display), "", "eval"), {})
        consts = r.frame.function.__code__.co_consts
        found = [x for x in consts if type(x) is frozenset and x == frozenset(values)]
        if not found:
            raise Unreadable("a set of constants")
        constants = found[0]  # its order is that which it has in the code
    return new_table(r, set, _items(r, node.elts), factory=constants)


def _items(r: Reader, nodes: list[ast.expr]) -> list[Value]:
    made: list[Value] = []
    for x in nodes:
        if isinstance(x, ast.Starred):
            made += [kept(r, y) for y in apart(r, expression(r, x.value))]
        else:
            made.append(kept(r, anything(r, x)))
    return made


def _unary(r: Reader, node: ast.UnaryOp) -> Value:
    op = type(node.op).__name__
    x = expression(r, node.operand)
    if isinstance(x, (Arr, Lazy)):
        if op == "Not":
            return unary(r, op, condition_of(r, x))
        name = {"USub": "negative", "UAdd": "positive", "Invert": "invert"}[op]
        return ufunc(r, name, [x])
    if isinstance(x, Num):
        return unary(r, op, x)
    if op == "Not":
        return unary(r, op, condition_of(r, x))
    if (made := objects.special(r, x, objects.UNARY[op])) is not None:
        return made
    raise Unreadable(f"{op} of {shown(x)}")


def _binary(r: Reader, node: ast.BinOp) -> Value:
    found = wide.masked(r, node)
    if found is not None:
        return found
    a = expression(r, node.left)
    b = expression(r, node.right)
    op = type(node.op).__name__
    if all(isinstance(x, (Num, Known)) and type(x.value) is int for x in (a, b)):
        if op in ("Pow", "LShift") and 0 <= b.value <= 64:
            return number_of(a.value**b.value if op == "Pow" else a.value << b.value)
        if op in ("Add", "Sub") and (isinstance(a, Known) or isinstance(b, Known)):
            return number_of(a.value + b.value if op == "Add" else a.value - b.value)
    if isinstance(a, Num) and isinstance(b, Known) and op == "Div" and type(b.value) is int:
        return _over_large(r, a, b.value)
    return operate(r, op, a, b)


def _over_large(r: Reader, a: Num, n: int) -> Value:
    """`a / n`, n: an integer beyond 64 bits."""
    if not set(a.kinds) <= {"int", "wide"} or n <= 0 or n & (n - 1) or n.bit_length() > 1000:
        raise Unreadable(f"an integer of more than 64 bits, {n}")
    return wide.over_power_of_two(r, a, n)


def _compare(r: Reader, node: ast.Compare) -> Value:
    if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        same = _identical(r, anything(r, node.left), anything(r, node.comparators[0]))
        return same if isinstance(node.ops[0], ast.Is) else unary(r, "Not", same)
    if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        left, right = anything(r, node.left), anything(r, node.comparators[0])
        found = _equal_or_none(r, left, right)
        if found is not None:
            return found if isinstance(node.ops[0], ast.Eq) else unary(r, "Not", found)
        return _comparison(r, node.ops[0], certain(r, left), certain(r, right))
    left = expression(r, node.left)
    if len(node.ops) == 1:
        return _comparison(r, node.ops[0], left, expression(r, node.comparators[0]))
    rest = list(zip(node.ops, node.comparators, strict=True))
    kinds: set[Any] = set()

    def chain(left: Value, k: int, join: Callable[[Num, Callable[[], Value]], Value]) -> Value:
        op, right = rest[k]
        y = kept(r, expression(r, right))
        x = _comparison(r, op, left, y)
        kinds.add(x.kinds if isinstance(x, Num) else None)
        return x if k == len(rest) - 1 else join(x, lambda: chain(y, k + 1, join))

    saved = r.save()
    left = kept(r, left)
    result = chain(left, 0, lambda x, more: both(r, x, more))
    if len(kinds) == 1 and isinstance(result, Num) and result.value is None:
        return replace(result, kinds=kinds.pop() or result.kinds)
    if len(kinds) == 1:
        return result
    r.restore(saved)  # the value is that of the comparison that decides
    return chain(kept(r, left), 0, lambda x, more: chosen(r, condition_of(r, x), more, lambda: x))


def _equal_or_none(r: Reader, a: Value, b: Value) -> Num | None:
    """`a == b` of a number of Python's, or a text, that may be None, and one that is not."""
    if isinstance(b, OrNone):
        a, b = b, a
    if not isinstance(a, OrNone) or isinstance(b, OrNone):
        return None
    x, y = a.value, letters(b) or b
    if not all(isinstance(v, Num) and v.is_python for v in (x, y)):
        return None
    test = truth(binary(r, "Eq", x, y))
    text = f"({a.flag} && {test.text})"
    return test if test.value is False else Num(text, "bool", ("bool",), low=0, high=1)


def _comparison(r: Reader, op: ast.cmpop, a: Value, b: Value) -> Value:
    name = type(op).__name__
    if name in ("Is", "IsNot"):
        same = _identical(r, a, b)
        return same if name == "Is" else unary(r, "Not", same)
    if name in ("In", "NotIn"):
        return _contains(r, a, b, name == "In")
    found = members.compared(r, name, a, b) or text.compared(r, name, a, b)
    if found is not None:
        return found
    if isinstance(a, Known) and isinstance(b, Known):
        if name in ("Eq", "NotEq"):
            return python((a.itself == b.itself) == (name == "Eq"))
        raise Unreadable("a comparison of objects")
    if isinstance(a, Known) != isinstance(b, Known) and name in ("Eq", "NotEq"):
        known = a if isinstance(a, Known) else b
        if (known.value is None or isinstance(known.value, str)) and isinstance(
            b if known is a else a, (Num, Tup)
        ):
            return python(name == "NotEq")
    a, b = spread(r, a), spread(r, b)
    if isinstance(a, Tup) and isinstance(b, Tup) and name in ("Eq", "NotEq"):
        return _tuples_equal(r, a, b, name)
    if isinstance(a, Tup) and isinstance(b, Tup) and name in ("Lt", "LtE", "Gt", "GtE"):
        return ordered(r, name, a, b)
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


def _identical(r: Reader, a: Value, b: Value) -> Num:
    """Whether two values are one object."""
    if isinstance(a, Known) and isinstance(b, Known):
        return python(a.itself is b.itself)
    same = members.identical(r, a, b)
    if same is not None:
        return same
    known, other = (a, b) if isinstance(a, Known) else (b, a)
    if text.is_char(other) or text.is_word(other) or text.is_text(other):
        if known == Known(None):
            return python(False)
        raise Unreadable("identity of text")
    if isinstance(known, Known):
        if known.value is None and isinstance(other, OrNone):
            return Num(f"(!{other.flag})", "bool", ("bool",), low=0, high=1)
        if known.value is None or isinstance(known.value, (type, types.ModuleType, str)):
            return python(False)
    return objects.identical(a, b)


def _contains(r: Reader, a: Value, b: Value, wanted: bool) -> Value:
    if text.is_text(b) and not (isinstance(a, Known) and isinstance(b, Known)):
        found = condition_of(r, text.found_in(r, a, b))
        return found if wanted else unary(r, "Not", found)
    if isinstance(b, Tup) and (text.is_word(a) or members.is_member(a)):
        b = replace(b, items=tuple([letters(x) or x for x in b.items]))
    elif isinstance(b, Tup) and text.is_char(a):
        b = replace(b, items=tuple([char(x) or x for x in b.items if not text.is_long(x)]))
    if isinstance(b, Lst):
        a = letters(a) or a
    if isinstance(b, Tup) and isinstance(a, Num) and all(isinstance(x, Num) for x in b.items):
        tests = [truth(binary(r, "Eq", a, x)) for x in b.items]
        if any(t.value for t in tests):
            return python(wanted)
        texts = [t.text for t in tests if t.value is None]
        if not texts:
            return python(not wanted)
        found = Num(f"({' || '.join(texts)})", "bool", ("bool",), low=0, high=1)
        return found if wanted else unary(r, "Not", found)
    if isinstance(b, Tup) and all(isinstance(x, Known) for x in (a, *b.items)):
        return python((a.itself in [x.itself for x in b.items]) == wanted)
    if isinstance(b, (Lst, Table)):
        found = contains_key(r, b, a) if isinstance(b, Table) else contains(r, b, a)
        return found if wanted else unary(r, "Not", found)
    if isinstance(b, Known) and isinstance(a, Known):
        return python((a.value in b.value) == wanted)
    if named_items.has_named_items(b):
        found = named_items.contains(r, b, a)
        return found if wanted else unary(r, "Not", found)
    if (made := objects.special(r, b, "__contains__", a)) is not None:
        return condition_of(r, made) if wanted else unary(r, "Not", condition_of(r, made))
    raise Unreadable(f"{shown(a)} in {shown(b)}")


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
    return condition_of(r, anything(r, node))


def _bool_op(r: Reader, node: ast.BoolOp) -> Value:
    """`a and b`, as a value: one of the operands."""
    is_and = isinstance(node.op, ast.And)
    x = anything(r, node.values[0])
    for k in range(1, len(node.values)):
        test = condition_of(r, x)
        if test.value is not None:
            if bool(test.value) == is_and:
                x = anything(r, node.values[k])
                continue
            return x
        rest = ast.BoolOp(node.op, node.values[k:]) if k < len(node.values) - 1 else node.values[k]
        x = kept(r, x)
        held = x
        later = lambda rest=rest: anything(r, rest)  # noqa: E731
        first = lambda held=held: held  # noqa: E731
        return chosen(r, test, later if is_and else first, first if is_and else later)
    return x


def _if_exp(r: Reader, node: ast.IfExp) -> Value:
    test = condition(r, node.test)
    return chosen(r, test, lambda: anything(r, node.body), lambda: anything(r, node.orelse))


def _call(r: Reader, node: ast.Call) -> Value:
    return calls.call(r, node)


def _subscript(r: Reader, node: ast.Subscript) -> Value:
    owner = certain(r, operand(r, node.value))
    items = index_items(r, node.slice, owner)
    if named_items.has_named_items(owner) and len(items) == 1:
        return named_items.item(r, owner, items[0])
    if isinstance(owner, Known) and (owner.value is np.r_ or owner.value is np.c_):
        return in_brackets(r, items, owner.value is np.c_)
    if isinstance(owner, Known) and (owner.value is np.mgrid or owner.value is np.ogrid):
        return grid(r, items, not isinstance(node.slice, ast.Tuple), owner.value is np.ogrid)
    if isinstance(owner, Known) and (owner.value is np.s_ or owner.value is np.index_exp):
        alone = len(items) == 1 and owner.value is np.s_ and not isinstance(node.slice, ast.Tuple)
        return items[0] if alone else Tup(tuple(items))
    return item(r, owner, items)


def index_items(r: Reader, node: ast.AST, owner: Value) -> list[Any]:
    """What stands in the brackets of an index; of a dict the key."""
    if isinstance(owner, Table):
        return [kept(r, anything(r, node))]
    if isinstance(node, ast.Tuple):
        found: list[Value] = []
        for y in node.elts:
            if isinstance(y, ast.Starred):
                found += apart(r, expression(r, y.value))
            else:
                found.append(_index(r, y))
        return [_index_item(r, y, owner) for y in found]
    x = _index(r, node)
    if isinstance(x, Lst) and x.made is tuple:
        raise Unreadable("a tuple as an index, of a length that data tells")
    items = x.items if isinstance(x, Tup) and x.made is tuple else (x,)
    return [_index_item(r, x, owner) for x in items]


def _index(r: Reader, node: ast.AST) -> Value:
    if not isinstance(node, ast.Slice):
        return expression(r, node)
    bounds = (node.lower, node.upper, node.step)
    return Slice.of(*(None if x is None else expression(r, x) for x in bounds))


def _index_item(r: Reader, x: Value, owner: Value) -> Value:
    """One of the indices of an array."""
    if isinstance(owner, (Arr, Lazy, Lst, Tup)):
        x = members.as_integer(r, x)
    if isinstance(x, (Tup, Lst)):
        return array_of(r, x, is_index=True)
    if isinstance(x, (Arr, Lazy)) and x.ndim == 0:
        return element_of(r, lazy(x))
    if isinstance(x, Num) and x.rep == "bool":
        raise Unreadable("a bool as an index")
    if isinstance(x, (Num, Arr, Lazy, Known, Slice)):
        return x
    raise Unreadable("an index of this type")


def _list_comp(r: Reader, node: ast.ListComp) -> Value:
    return r.grammar.comprehension(r, node)


def _generator(r: Reader, node: ast.GeneratorExp) -> Value:
    # What it gives is asked for later, and it gives it once; `calls.call` reads those for which
    # neither shows.
    raise Unreadable("a generator that is not used up at once")


def _joined_str(r: Reader, node: ast.JoinedStr) -> Value:
    raise Unreadable("text that is made")


def _named_expr(r: Reader, node: ast.NamedExpr) -> Value:
    raise Unreadable(":= that is not always evaluated")


_READERS = {
    ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute, ast.Tuple: _tuple,
    ast.List: _list, ast.UnaryOp: _unary, ast.BinOp: _binary, ast.Compare: _compare,
    ast.BoolOp: _bool_op, ast.IfExp: _if_exp, ast.Call: _call, ast.Subscript: _subscript,
    ast.Dict: _dict, ast.Set: _set, ast.DictComp: _list_comp, ast.SetComp: _list_comp,
    ast.ListComp: _list_comp, ast.GeneratorExp: _generator, ast.JoinedStr: _joined_str,
    ast.NamedExpr: _named_expr, ast.Lambda: _lambda,
}  # fmt: skip
