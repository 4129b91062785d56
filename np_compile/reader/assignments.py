"""Assignments: values to names, elements, parts of arrays, attributes; and changes in place."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from . import index, objects, under_mask
from .dicts import assign_table_item, without_key
from .expressions import (
    anything,
    attribute,
    expression,
    index_items,
    kept,
    look_up,
    made_function,
    operand,
    operate,
)
from .functions.operands import array_of
from .items import apart, columns, item
from .lists import (
    assign_list_item,
    growing,
    list_method,
    without_item,
)
from .nest import materialized
from .protocols import NAMES
from .read import Reader, certain
from .records import assign_record_item, new_list, spread
from .source import outer_names, own_names
from .values import (
    FIXED,
    FLOATS,
    Arr,
    Begun,
    Items,
    Known,
    Lazy,
    Lst,
    Made,
    Num,
    Obj,
    OrNone,
    Rec,
    Table,
    Tup,
    Unreadable,
    Value,
    item_name,
    shown,
)
from .variables import as_lists
from .walk import walk


def assign(r: Reader, node: ast.Assign) -> None:
    if len(node.targets) == 1 and isinstance(node.targets[0], (ast.Name, ast.Tuple)):
        r.alone = node.value
    masked = under_mask.assigned(r, node.targets[0], node.value) if len(node.targets) == 1 else None
    if masked is not None:
        r.changed(masked().roots, noted=True)
        return
    if isinstance(node.value, ast.Lambda):
        value: Value = made_function(r, node.value, node)
    elif isinstance(node.value, ast.GeneratorExp) and _takes_apart(node.targets):
        given = _written_out(r, node.value, len(node.targets[0].elts))  # type: ignore[attr-defined]
        value = expression(r, given) if given else r.grammar.comprehension(r, node.value)
    elif _takes_apart(node.targets) and (rows := _zipped(r, node.value)) is not None:
        value = columns(r, rows, len(node.targets[0].elts))  # type: ignore[attr-defined]
    else:
        value = anything(r, node.value)
    if (isinstance(value, Lazy) and _is_view_of_names(node.targets)) or not isinstance(value, Lazy):
        value = kept(r, value)
    alone = len(node.targets) == 1
    commits = [target(r, t, value, alone) for t in node.targets]
    for commit in commits:
        commit()


def depend_on_each_other(targets: Sequence[ast.expr]) -> bool:
    """Whether the place of one of a statement's targets may be another one after one before it has
    got its value: `i, x[i] = ...`, `x[i], x[x[i]] = ...`."""
    before: list[ast.expr] = []
    for t in _leaves(targets):
        if isinstance(t, (ast.Subscript, ast.Attribute)) and before:
            parts = [t.value, t.slice] if isinstance(t, ast.Subscript) else [t.value]
            if any(_may_change(x, y) for part in parts for x in walk(part) for y in before):
                return True
        before.append(t)
    return False


def _leaves(targets: Sequence[ast.expr]) -> Iterator[ast.expr]:
    for t in targets:
        if isinstance(t, (ast.Tuple, ast.List)):
            yield from _leaves(t.elts)
        else:
            yield t.value if isinstance(t, ast.Starred) else t


def _may_change(x: ast.AST, target: ast.expr) -> bool:
    """Whether an expression itself may have another value once a target has got its own."""
    if isinstance(target, ast.Name):
        return isinstance(x, ast.Name) and x.id == target.id
    if isinstance(x, ast.Attribute) and isinstance(target, ast.Attribute):
        return x.attr == target.attr
    if isinstance(x, ast.Subscript) and isinstance(target, ast.Subscript):
        # `m[i][j]` is no item of `m` itself.
        (a, n), (b, m) = _root(x), _root(target)
        return not (isinstance(a, ast.Name) and isinstance(b, ast.Name) and a.id == b.id and n != m)
    return isinstance(x, ast.Call)


def _root(x: ast.expr) -> tuple[ast.expr, int]:
    depth = 0
    while isinstance(x, ast.Subscript):
        x, depth = x.value, depth + 1
    return x, depth


def _is_view_of_names(targets: Sequence[ast.expr]) -> bool:
    """Whether a value is bound to a name, or to several places."""
    return len(targets) > 1 or not isinstance(targets[0], ast.Subscript)


def _zipped(r: Reader, node: ast.expr) -> Value | None:
    """What is zipped in `zip(*rows)`; None of another expression."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return None
    (given,) = node.args
    if not isinstance(given, ast.Starred) or not isinstance(node.func, ast.Name):
        return None
    f = expression(r, node.func)
    if not isinstance(f, Known) or f.value is not zip:
        return None
    return kept(r, expression(r, given.value))


def _written_out(r: Reader, node: ast.GeneratorExp, n: int) -> ast.Tuple | None:
    """The n items of a generator over a tuple that stands there, each of a type of its own; None
    of others."""
    if (made := _written.get(node)) is None:
        made = _written[node] = _items_of(node) or ast.Tuple([], ast.Load())
    if not made.elts or len(made.elts) != n:
        return None
    f, of = r.frame.function, node.generators[0].iter
    names = {x.id for x in of.elts if isinstance(x, ast.Name)}  # type: ignore[attr-defined]
    # Those that no call changes meanwhile.
    own = {*own_names(f, r.frame.node)} - {*f.__code__.co_cellvars}
    return made if names <= own else None


_written: WeakKeyDictionary[ast.GeneratorExp, ast.Tuple] = WeakKeyDictionary()


def _items_of(node: ast.GeneratorExp) -> ast.Tuple | None:
    """Such a generator's items; None where they are not the same outside of it."""
    (g, *more), nested = node.generators, (ast.Lambda, ast.comprehension, ast.NamedExpr)
    if more or g.ifs or not isinstance(g.iter, (ast.Tuple, ast.List)):
        return None
    if not isinstance(g.target, ast.Name) or any(isinstance(x, nested) for x in walk(node.elt)):
        return None
    if not all(isinstance(x, (ast.Constant, ast.Name)) for x in g.iter.elts):
        return None
    elts = [_With(g.target.id, x).visit(copy.deepcopy(node.elt)) for x in g.iter.elts]
    return ast.copy_location(ast.Tuple(elts, ast.Load()), node)


@dataclass
class _With(ast.NodeTransformer):
    """An expression in the place of a name."""

    name: str
    value: ast.expr

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != self.name:
            return node
        return ast.copy_location(copy.copy(self.value), node)


def _takes_apart(targets: Sequence[ast.expr]) -> bool:
    """Whether the items of an iterator are bound to names, which uses it up."""
    return len(targets) == 1 and isinstance(targets[0], (ast.Tuple, ast.List))


def annotated(r: Reader, node: ast.AnnAssign) -> None:
    if node.value is None:
        return
    target(r, node.target, kept(r, anything(r, node.value)))()


def target(r: Reader, node: ast.expr, value: Value, alone: bool = True) -> Callable[[], None]:
    """What assigns a value to a target; the checks are made now. alone: whether it is the only one
    of a statement."""
    if isinstance(node, ast.Name):
        return lambda: bind(r, node.id, value)
    if isinstance(node, (ast.Tuple, ast.List)):
        return _unpack(r, node, value)
    if isinstance(node, ast.Attribute):
        owner = expression(r, node.value)
        if isinstance(owner, Made):
            return objects.set_attribute(r, owner, node.attr, value)
        if not isinstance(owner, Obj):
            raise Unreadable(f"an attribute of {shown(owner)} is set")
        return lambda: _set_attribute(r, owner, node.attr, value)
    if isinstance(node, ast.Subscript):
        owner = certain(r, operand(r, node.value))
        items = index_items(r, node.slice, owner)
        if objects.class_of(owner):
            _set_item(r, owner, items, value)
            return lambda: None
        if isinstance(owner, Obj):
            name, value = item_name(owner, items), kept(r, value)  # as it is now
            return lambda: _set_attribute(r, owner, name, value)
        if isinstance(owner, Tup) and owner.made is list:
            growing(r, owner)
        if isinstance(owner, Items):
            commit = _item_assigned(r, owner, items, value, alone)
            return lambda: _changing(r, owner, commit)
        if not isinstance(owner, Arr):
            raise Unreadable(f"an item of {shown(owner)} is set")
        if isinstance(value, (Tup, Lst)):  # its numbers have to fit
            value = array_of(r, value, Known(owner.dtype))
        if not isinstance(value, (Arr, Lazy, Num)):
            raise Unreadable(f"{shown(value)} is stored in an array")
        commit = index.assign(r, owner, items, value)
        return lambda: _changing(r, owner, commit)
    raise Unreadable(f"{type(node).__name__} as a target")


def _key(items: list[Any]) -> Value:
    """What a class's own method gets for an index."""
    return items[0] if len(items) == 1 else Tup(tuple(items))


def _set_item(r: Reader, owner: Value, items: list[Any], value: Value) -> None:
    """Of an object of the user's."""
    r.hoisted = True
    if objects.special(r, owner, "__setitem__", _key(items), value) is None:
        raise Unreadable(f"an item of {shown(owner)} is set")


def _item_assigned(
    r: Reader, owner: Items, items: list[Any], value: Value, alone: bool = True
) -> Callable[[], None]:
    if isinstance(owner, Table):
        return assign_table_item(r, owner, items, value, alone)
    if isinstance(owner, Rec):
        return assign_record_item(r, owner, items, value)
    assert isinstance(owner, Lst)
    return assign_list_item(r, owner, items, value)


def _changing(r: Reader, owner: Arr | Items, commit: Callable[[], None]) -> None:
    commit()
    r.changed(owner.roots, noted=isinstance(owner, Arr))


def deleted(r: Reader, node: ast.Delete) -> None:
    """`del a[k]`."""
    t = node.targets[0]
    if len(node.targets) > 1 or not isinstance(t, ast.Subscript):
        raise Unreadable("several items, or an attribute, are deleted")
    owner = certain(r, operand(r, t.value))
    items = index_items(r, t.slice, owner)
    if isinstance(owner, Tup) and owner.made is list:
        growing(r, owner)
    if isinstance(owner, Table):
        without_key(r, owner, items)
    elif isinstance(owner, Rec):
        as_lists(r, owner)
    elif isinstance(owner, Lst):
        without_item(r, owner, items)
    else:
        raise Unreadable(f"an item of {shown(owner)} is deleted")


def bind(r: Reader, name: str, value: Value) -> None:
    if isinstance(value, Num) and value.kind == "int" and value.lin is None and value.value is None:
        value = r.integer(value.text, value.low, value.high)
    env = r.frames[0].env if name in outer_names(r.frame.node) else r.env
    env[name] = value


def _set_attribute(r: Reader, owner: Obj | Made, name: str, value: Value) -> None:
    if isinstance(owner, Made):
        objects.set_attribute(r, owner, name, value)()
        return
    if isinstance(owner, Begun):
        objects.set_begun(r, owner, name, value)
        return
    if r.base:
        raise Unreadable(f"{name!r} is set by a function that calls itself")
    r.entry.may_set(r, owner, name)
    key = f"@{owner.path}.{name}"
    if key in r.entry.unset and (value == Known(None) or isinstance(value, OrNone)):
        raise Unreadable(f"the attribute {name!r}, which may be None")
    r.frames[0].env[key] = value
    r.changed()


def _unpack(r: Reader, node: ast.Tuple | ast.List, value: Value) -> Callable[[], None]:
    value = spread(r, value)
    elts = node.elts
    starred = [k for k, t in enumerate(elts) if isinstance(t, ast.Starred)]
    if starred:  # it gets a list of what is left
        (k,) = starred
        if not isinstance(value, Tup) or len(value.items) < len(elts) - 1:
            raise Unreadable("* in a target")
        end = len(value.items) - (len(elts) - k - 1)
        rest = new_list(r, value.items[k:end])
        value = Tup((*value.items[:k], rest, *value.items[end:]))
        elts = [t.value if isinstance(t, ast.Starred) else t for t in elts]
    n = len(elts)
    if depend_on_each_other([node]):  # assignments are taken apart before
        raise Unreadable("a target that another one of its statement may change")
    items = apart(r, value, n)
    commits = [target(r, t, x, n == 1) for t, x in zip(elts, items, strict=True)]

    def commit() -> None:
        for c in commits:
            c()

    return commit


def augmented(r: Reader, node: ast.AugAssign) -> None:
    op = type(node.op).__name__
    t = node.target
    if isinstance(t, ast.Subscript):
        whole = ast.BinOp(ast.Subscript(t.value, t.slice, ast.Load()), node.op, node.value)
        masked = under_mask.assigned(r, t, ast.fix_missing_locations(whole), in_place=True)
        if masked is not None:
            r.changed(masked().roots, noted=True)
            return
    if isinstance(t, ast.Name):
        old = certain(r, look_up(r, t.id))
        new = expression(r, node.value)
        _augmented(r, op, old, new, lambda x: bind(r, t.id, x))
    elif isinstance(t, ast.Attribute):
        old = expression(r, ast.copy_location(ast.Attribute(t.value, t.attr, ast.Load()), t))
        owner = expression(r, t.value)
        if not isinstance(owner, (Obj, Made)):
            raise Unreadable(f"an attribute of {shown(owner)} is set")
        new = expression(r, node.value)
        _augmented(r, op, old, new, lambda x: _set_attribute(r, owner, t.attr, x))
    elif isinstance(t, ast.Subscript):
        owner = certain(r, operand(r, t.value))
        items = index_items(r, t.slice, owner)
        _augment_item(r, op, owner, items, node)
    else:
        raise Unreadable("this is changed in place")


def _augmented(r: Reader, op: str, old: Value, new: Value, store: Callable[[Value], None]) -> None:
    if isinstance(old, Arr):
        _in_place(r, op, old, new)
        store(old)
        return
    if isinstance(old, Tup) and old.made is list:
        growing(r, old)
    if isinstance(old, Rec):
        as_lists(r, old)
    if isinstance(old, Lst) and old.made not in FIXED:
        if op != "Add":
            raise Unreadable("a list is changed in place")
        list_method(r, old, "extend", [new], {})
        return
    if isinstance(old, Table):
        raise Unreadable(f"{shown(old)} is changed in place")
    if objects.class_of(old):
        r.hoisted = True
        made = objects.special(r, old, f"__i{NAMES[op]}__", new)
        if made is not None:
            store(kept(r, made))
            return
    store(kept(r, operate(r, op, old, new)))


def _note_element(r: Reader, owner: Arr, items: list[Num], old: Num) -> None:
    """Note that an element may be a sum that a loop adds to: one that is the same in all of its
    iterations."""
    terms = [sorted(i.lin.terms.items()) if i.lin is not None else [(i.text, 1)] for i in items]
    if any(name in r.accesses.counters for part in terms for name, _ in part):
        return
    place = owner.data, str(terms), str([i.lin.const if i.lin is not None else 0 for i in items])
    assert r.added is not None
    r.sums[old.text] = int(place in r.added)
    r.added.add(place)


def _in_place(r: Reader, op: str, a: Arr, new: Value) -> None:
    """`a op= new`, of an array."""
    if isinstance(new, (Tup, Lst)):
        new = array_of(r, new)
    made = operate(r, op, a, new)
    if isinstance(made, Num):
        raise Unreadable("an array without axes")
    _check_cast(made, a.dtype)
    if made.ndim != a.ndim:
        raise Unreadable("a result of another shape")
    commit = index.assign(r, a, [Known(Ellipsis)], made)
    _changing(r, a, commit)


def _check_cast(made: Value, dtype: np.dtype) -> None:
    """Fail where an array of a dtype cannot take what an operator gives in its place."""
    if not np.can_cast(made.dtype, dtype, "same_kind"):
        raise Unreadable("a result of another kind of dtype")


def _element(made: Value) -> Arr | Lazy | Num:
    """What an operator made for an element of an array: an object's own may be anything."""
    if not isinstance(made, (Arr, Lazy, Num)):
        raise Unreadable("what is no number into an element")
    return made


def _augment_item(r: Reader, op: str, owner: Value, items: list[Any], node: ast.AugAssign) -> None:
    if isinstance(owner, Tup) and owner.made is list:
        growing(r, owner)
    if objects.class_of(owner):
        r.hoisted = True
        found = objects.special(r, owner, "__getitem__", _key(items))
        if found is None:
            raise Unreadable(f"an item of {shown(owner)} is changed")
        old = kept(r, certain(r, found))
        new = expression(r, node.value)
        _augmented(r, op, old, new, lambda x: _set_item(r, owner, items, x))
        return
    if isinstance(owner, Obj):
        name = item_name(owner, items)
        old, new = certain(r, attribute(r, owner, name)), expression(r, node.value)
        _augmented(r, op, old, new, lambda x: _set_attribute(r, owner, name, x))
        return
    if isinstance(owner, Items):
        old = item(r, owner, items)
        new = expression(r, node.value)
        if isinstance(old, (Arr, Items)):
            _augmented(r, op, old, new, lambda x: None)
            return
        commit = _item_assigned(r, owner, items, kept(r, operate(r, op, old, new)))
        _changing(r, owner, commit)
        return
    if not isinstance(owner, Arr):
        raise Unreadable(f"an item of {shown(owner)} is changed")
    if index.is_advanced(items):
        if any(isinstance(x, Lazy) for x in items):
            items = [materialized(r, x) if isinstance(x, Lazy) else x for x in items]
        old = index.gathered(r, owner, items)
        made = _element(operate(r, op, old, expression(r, node.value)))
        _check_cast(made, owner.dtype)
        commit = index.assign(r, owner, items, made)
        _changing(r, owner, commit)
        return
    if not any(isinstance(x, (index.Slice, Known)) for x in items) and len(items) == owner.ndim:
        items = [index.checked(r, i, n) for i, n in zip(items, owner.dims, strict=True)]
        old = index.view(r, owner, items)
        if op == "Add" and isinstance(old, Num) and old.rep in FLOATS and r.added is not None:
            _note_element(r, owner, items, old)
        made = _element(operate(r, op, old, expression(r, node.value)))
        if isinstance(made, Lazy) and made.ndim:
            raise Unreadable("an array into an element")
        commit = index.assign(r, owner, items, made)
        _changing(r, owner, commit)
        return
    part = index.view(r, owner, items)
    assert isinstance(part, Arr)
    _in_place(r, op, part, expression(r, node.value))
