"""What `for` loops run over: ranges, arrays, lists, `enumerate`, `zip`, `reversed`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from . import index
from .calls import least_int
from .expressions import expression, kept, operate
from .linear import Linear
from .lists import item_at, least_way, length, range_length, value_of_range
from .read import Reader
from .values import Arr, Known, Lst, Num, Range, Tup, Unreadable, Value, python


@dataclass(frozen=True)
class Run:
    """The values that a loop runs over. n: their number, when it begins. get: the k-th. sources:
    what they are made of, under hidden names. text: the expression of them in these names. there:
    C that says of the C name k whether there is a k-th value, where this may change meanwhile.
    steady: lists that must not grow or shrink meanwhile. facts: what is so if there is a value."""

    n: Num
    get: Callable[[Reader, Num], Value]
    sources: dict[str, Value]
    text: ast.expr
    there: Callable[[str], str] | None = None
    steady: frozenset[str] = field(default_factory=frozenset)
    facts: tuple[Linear, ...] = ()


def iterable(r: Reader, node: ast.expr) -> Tup | Run:
    """What a loop runs over; a tuple's values are known one by one."""
    if isinstance(node, ast.Call):
        f = expression(r, node.func)
        name = f.value if isinstance(f, Known) else None
        words = {k.arg: k.value for k in node.keywords}
        if name is enumerate and len(node.args) in (1, 2) and not words:
            return _enumerated(r, node)
        if name is reversed and len(node.args) == 1 and not words:
            return _reversed(r, node)
        if name is zip and node.args and words.keys() <= {"strict"}:
            strict = expression(r, words["strict"]) if words else python(False)
            return _zipped(r, node, getattr(strict, "value", None))
    return _of_value(r, node)


def _of_value(r: Reader, node: ast.expr) -> Tup | Run:
    value = kept(r, expression(r, node))
    if isinstance(value, Tup):
        return value
    hidden = _hidden("src", node)
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
                steady=value.roots,
            )  # fmt: skip
        return Run(
            length(r, value), lambda r, k: item_at(r, value, k), sources, hidden,
            lambda k: f"{k} < {value.buf}->dims[0]",
        )  # fmt: skip
    raise Unreadable("a loop over this")


def _hidden(hint: str, node: ast.expr) -> ast.Name:
    return ast.copy_location(ast.Name(f"__{hint}{node.lineno}_{node.col_offset}", ast.Load()), node)


def _enumerated(r: Reader, node: ast.Call) -> Tup | Run:
    inner = iterable(r, node.args[0])
    start = kept(r, expression(r, node.args[1])) if len(node.args) == 2 else python(0)
    if not isinstance(start, Num) or start.kind != "int":
        raise Unreadable("enumerate from this")
    if isinstance(inner, Tup):
        if start.value is None:
            raise Unreadable("enumerate from a value")
        return Tup(tuple(Tup((python(start.value + k), x)) for k, x in enumerate(inner.items)))
    hidden = _hidden("start", node)
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
        steady=source.roots if isinstance(source, Lst) else frozenset(),
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
    if tuples:
        raise Unreadable("zip of a tuple and an array")
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
        frozenset().union(*(p.steady for p in runs)),
    )  # fmt: skip


def _with_args(node: ast.Call, args: list[ast.expr]) -> ast.expr:
    return ast.copy_location(ast.Call(node.func, args, []), node)
