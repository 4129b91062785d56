"""What `for` loops run over: ranges, arrays, lists, dicts, `enumerate`, `zip`, `reversed`,
`np.ndindex`, `np.ndenumerate`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import index, members, named_items
from .builtins import least_int
from .dicts import View, gone_through, item_of, together
from .expressions import expression, kept, operate
from .linear import Linear
from .lists import growing, item_at, length
from .ranges import least_way, range_length, value_of_range
from .read import Reader
from .records import spread
from .text import in_parts
from .values import (
    C_TYPE,
    WORDS,
    Arr,
    Items,
    Known,
    Lst,
    Num,
    Range,
    Tup,
    Unreadable,
    Value,
    letters,
    python,
)


@dataclass(frozen=True)
class Run:
    """The values that a loop runs over. n: their number, when it begins. get: the k-th. sources:
    what they are made of, under hidden names. text: the expression of them in these names. there:
    C that says of the C name k whether there is a k-th value, where this may change meanwhile.
    steady: containers that must not grow or shrink meanwhile. facts: what is so if there is a
    value."""

    n: Num
    get: Callable[[Reader, Num], Value]
    sources: dict[str, Value]
    text: ast.expr
    there: Callable[[str], str] | None = None
    steady: tuple[Items, ...] = ()
    facts: tuple[Linear, ...] = ()


def iterable(r: Reader, node: ast.expr) -> Tup | Run:
    """What a loop runs over; a tuple's values are known one by one."""
    if isinstance(node, ast.Call):
        f = expression(r, node.func)
        name = f.value if isinstance(f, Known) else None
        words = {k.arg: k.value for k in node.keywords}
        if name is enumerate and len(node.args) == 1 and words.keys() == {"start"}:
            node, words = _with_args(node, [*node.args, words["start"]]), {}
        if name is enumerate and len(node.args) in (1, 2) and not words:
            return _enumerated(r, node)
        if name is reversed and len(node.args) == 1 and not words:
            return _reversed(r, node)
        if name is zip and node.args and words.keys() <= {"strict"}:
            strict = expression(r, words["strict"]) if words else python(False)
            return _zipped(r, node, getattr(strict, "value", None))
        if name is np.ndindex and not words:
            return _indices(r, node)
        if name is np.ndenumerate and len(node.args) == 1 and not words:
            return _elements(r, node)
    return _of_value(r, node)


def _of_value(r: Reader, node: ast.expr) -> Tup | Run:
    value = spread(r, in_parts(r, kept(r, expression(r, node))))
    if named_items.has_named_items(value):
        return Tup(named_items.keys(r, value))
    if isinstance(value, Tup):
        return value
    if (found := members.of_enumeration(value)) is not None:
        return Tup(tuple(found))
    hidden = _hidden(r, "src", node)
    sources = {hidden.id: value}
    if isinstance(value, Range):
        n = range_length(r, value)
        facts = least_way(value, n)
        return Run(n, value_of_range(value), sources, hidden, facts=facts)
    if isinstance(value, Arr) and value.ndim:
        return Run(value.dims[0], lambda r, k: index.view(r, value, [k]), sources, hidden)
    if isinstance(value, Lst):
        if value.of is None:
            return Tup(())  # its items are known when it is read again
        if value.made is not list:  # Python does not let it change meanwhile
            return Run(
                length(r, value), lambda r, k: item_at(r, value, k), sources, hidden,
                steady=(value,),
            )  # fmt: skip
        return Run(
            length(r, value), lambda r, k: item_at(r, value, k), sources, hidden,
            lambda k: f"{k} < {value.buf}->dims[0]",
        )  # fmt: skip
    view = gone_through(value)
    if view is not None:
        return _of_dict(r, node, view)
    raise Unreadable("a loop over this")


def _of_dict(r: Reader, node: ast.expr, x: View) -> Tup | Run:
    """Keys, values or items, in a loop in which none is added."""
    t, hidden = x.table, _hidden(r, "src", node)
    if t.of is None:
        return Tup(())  # its items are known when it is read again
    part = ast.copy_location(ast.Attribute(hidden, x.name, ast.Load()), node)
    text = ast.copy_location(ast.Call(part, [], []), node)
    return Run(
        together(r, t), lambda r, k: item_of(r, x, k.text), {hidden.id: t}, text, steady=(t,)
    )


def by_tables(r: Reader, node: ast.expr, values: Tup) -> Run:
    """A tuple of numbers, or of tuples of numbers, by its items' place."""
    hidden = _hidden(r, "src", node)
    try:
        at = _table(r, values.items)
    except Unreadable:
        if values.made is list:
            growing(r, values)  # its items lie in memory
        raise
    return Run(python(len(values.items)), at, {hidden.id: values}, hidden)


def _table(r: Reader, items: Sequence[Value]) -> Callable[[Reader, Num], Value]:
    """The C of an array of numbers, or of several; gives the item at a place."""
    first: Any = items[0]
    if all(isinstance(x, Tup) and (x.made, len(x.items)) == (first.made, len(first.items))
           for x in items):  # fmt: skip
        parts = [_table(r, x) for x in zip(*[x.items for x in items], strict=True)]
        return lambda r, k: Tup(tuple(part(r, k) for part in parts), first.made)
    items = [letters(x) or x for x in items]
    if all(isinstance(x, Num) and set(x.kinds) <= WORDS for x in items):
        items = [replace(x, kinds=("word",)) for x in items]
        first = items[0]
    if not all(isinstance(x, Num) and (x.rep, x.kinds) == (first.rep, first.kinds) for x in items):
        raise Unreadable("a loop over a tuple of items of several types, with break or a long body")
    if first.kind is None:
        raise Unreadable("a loop over a tuple of numbers of several types")
    name, ctype = r.fresh("table"), C_TYPE[first.rep]
    r.line(f"const {ctype} {name}[{len(items)}] = {{{', '.join(x.text for x in items)}}};")
    low, high = min(x.low for x in items), max(x.high for x in items)

    def at(r: Reader, k: Num) -> Value:
        text = f"{name}[{k.text}]"
        if first.kind == "int":
            return r.integer(text, low, high)
        made = r.number(r.named(text, ctype), first.rep, first.kinds)
        if first.rep != "i64":
            return made
        return replace(made, lin=r.facts.name(made.text, low, high), low=low, high=high)

    return at


def _hidden(r: Reader, hint: str, node: ast.expr) -> ast.Name:
    return ast.copy_location(ast.Name(r.hidden(hint, node), ast.Load()), node)


def _enumerated(r: Reader, node: ast.Call) -> Tup | Run:
    inner = iterable(r, node.args[0])
    start = kept(r, expression(r, node.args[1])) if len(node.args) == 2 else python(0)
    if not isinstance(start, Num) or start.kind != "int":
        raise Unreadable("enumerate from this")
    if isinstance(inner, Tup):
        if start.value is None:
            raise Unreadable("enumerate from a value")
        return Tup(tuple(Tup((python(start.value + k), x)) for k, x in enumerate(inner.items)))
    hidden = _hidden(r, "start", node)
    return replace(
        inner,
        get=lambda r, k: Tup((operate(r, "Add", start, k), inner.get(r, k))),
        sources=inner.sources | {hidden.id: start},
        text=_with_args(node, [inner.text, hidden]),
    )


def _reversed(r: Reader, node: ast.Call) -> Tup | Run:
    inner = _of_value(r, node.args[0])
    if isinstance(inner, Tup):
        return Tup(tuple(reversed(inner.items)))
    last = operate(r, "Sub", inner.n, python(1))
    (source,) = inner.sources.values()
    return replace(
        inner,
        get=lambda r, k: inner.get(r, operate(r, "Sub", last, k)),
        text=_with_args(node, [inner.text]),
        there=None,
        steady=(source,) if isinstance(source, Items) else (),
    )


def _zipped(r: Reader, node: ast.Call, strict: bool | None) -> Tup | Run:
    parts = [iterable(r, a) for a in node.args]
    tuples = [p for p in parts if isinstance(p, Tup)]
    runs = [p for p in parts if isinstance(p, Run)]
    if strict is None:
        raise Unreadable("zip that is strict or not")
    if not runs:
        if strict and len({len(p.items) for p in tuples}) > 1:
            raise Unreadable("zip of tuples that are not equally long")
        return Tup(tuple(Tup(x) for x in zip(*[p.items for p in tuples], strict=False)))
    if any(not p.items for p in tuples):
        return Tup(())
    runs = [by_tables(r, a, p) if isinstance(p, Tup) else p
            for a, p in zip(node.args, parts, strict=True)]  # fmt: skip
    fixed = [p.n for p in runs if p.there is None]
    n = fixed[0] if fixed else runs[0].n
    for other in fixed[1:]:
        n = least_int(r, "min", n, other)
    if strict:
        if len(fixed) < len(runs):
            raise Unreadable("zip with strict, of lists that may change")
        for other in fixed[1:]:
            r.leave_if(f"{other.text} != {fixed[0].text}", "zip of what is not equally long")
    changing = [p.there for p in runs if p.there is not None]
    if fixed and changing:
        changing.append(lambda k: f"{k} < {n.text}")
    return Run(
        n, lambda r, k: Tup(tuple(p.get(r, k) for p in runs)),
        {name: x for p in runs for name, x in p.sources.items()},
        _with_args(node, [p.text for p in runs]),
        (lambda k: " && ".join(there(k) for there in changing)) if changing else None,
        tuple(x for p in runs for x in p.steady),
    )  # fmt: skip


def _indices(r: Reader, node: ast.Call) -> Run:
    """The places in an array of a shape, which is one argument or several, the last index first."""
    if len(node.args) == 1:
        (given,) = node.args
        shape = expression(r, given.value if isinstance(given, ast.Starred) else given)
        shape = shape if isinstance(shape, Tup) else Tup((shape,))
    else:
        shape = Tup(tuple([expression(r, a) for a in node.args]))
    shape, hidden = kept(r, shape), _hidden(r, "shape", node)
    assert isinstance(shape, Tup)
    extents: list[Num] = [n for n in shape.items if isinstance(n, Num) and n.kind == "int"]
    if not extents or len(extents) < len(shape.items):
        raise Unreadable("np.ndindex of this")
    for n in extents:
        if n.low is None or n.low < 0:
            r.leave_if(f"{n.text} < 0", "np.ndindex of a negative extent")
    text = _with_args(node, [hidden])
    return Run(_count(r, extents), _place(extents), {hidden.id: shape}, text)


def _elements(r: Reader, node: ast.Call) -> Run:
    """The places in an array, and the elements there."""
    a = kept(r, expression(r, node.args[0]))
    if not isinstance(a, Arr) or not a.ndim:
        raise Unreadable("np.ndenumerate of this")
    hidden, place = _hidden(r, "src", node), _place(a.dims)

    def get(r: Reader, k: Num) -> Value:
        at = place(r, k)
        return Tup((at, index.view(r, a, at.items)))

    return Run(_count(r, a.dims), get, {hidden.id: a}, _with_args(node, [hidden]))


def _count(r: Reader, extents: Sequence[Num]) -> Num:
    n = extents[0]
    for other in extents[1:]:
        n = operate(r, "Mult", n, other)
    return n


def _place(extents: Sequence[Num]) -> Callable[[Reader, Num], Tup]:
    """The k-th place."""

    def get(r: Reader, k: Num) -> Tup:
        found: list[Value] = []
        for n in reversed(extents[1:]):
            found.append(operate(r, "Mod", k, n))
            k = operate(r, "FloorDiv", k, n)
        return Tup((k, *reversed(found)))

    return get


def _with_args(node: ast.Call, args: list[ast.expr]) -> ast.Call:
    return ast.copy_location(ast.Call(node.func, args, []), node)
