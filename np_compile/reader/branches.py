"""Truth, and values that are one or another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .lists import length
from .nest import element_of, kept, lazy, size_of
from .numbers import truth
from .objects import class_of, truth_of
from .read import Reader
from .recursion import Unresolved
from .selection import choice
from .values import (
    Aggregate,
    Arr,
    Items,
    Known,
    Lazy,
    Made,
    MadeRng,
    Num,
    Obj,
    OrNone,
    Rng,
    Unreadable,
    Value,
    one_or_another,
    python,
)
from .variables import Variable, join


def condition_of(r: Reader, x: Value) -> Num:
    if isinstance(x, Num):
        return truth(x)
    if isinstance(x, Lazy) and x.ndim == 0:
        return truth(element_of(r, x))
    if isinstance(x, (Made, Obj)) and class_of(x) is not None:
        return condition_of(r, truth_of(r, x))
    if isinstance(x, (Rng, MadeRng)):
        return python(True)
    if isinstance(x, Items):
        return truth(length(r, x))
    if isinstance(x, (Arr, Lazy)):
        n = size_of(r, x.dims)
        if n.value != 1:
            r.leave_if(f"{n.text} != 1", "the truth of an array")
        return truth(r.number(lazy(x).at(["0"] * x.ndim), x.rep, (x.kind,)))
    if isinstance(x, OrNone):
        return both(r, Num(f"({x.flag} != 0)", "bool", ("bool",), low=0, high=1), lambda: x.value)
    if isinstance(x, Aggregate):
        return python(bool(x.items))
    if isinstance(x, Known):
        return python(bool(x.value))
    raise Unreadable("the truth of this value")


def both(r: Reader, a: Value, rest: Any) -> Num:
    """`a and rest()`."""
    a = condition_of(r, a)
    if a.value is not None:
        return condition_of(r, rest()) if a.value else python(False)
    inner, b = _apart(r, a.true, rest)
    if b.value is True and not inner:
        return a
    if not inner:
        return Num(f"({a.text} && {b.text})", "bool", ("bool",), low=0, high=1,
                   true=(*a.true, *b.true))  # fmt: skip
    name = _then(r, a, "", inner, b)
    return Num(name, "bool", ("bool",), low=0, high=1, true=(*a.true, *b.true))


def _apart(r: Reader, facts: Iterable[Any], rest: Any) -> tuple[list, Num]:
    """The truth of `rest()` where facts hold, and the lines that it takes, which give back what
    memory they make."""
    inner: list = []
    with r.elsewhere(inner), r.scope():
        for fact in facts:
            r.facts.add(fact)
        b = condition_of(r, rest())
        ends = r.releases(len(r.owned) - 1)
        if ends:
            b = replace(b, text=r.named(b.text, "u8"))
            r.lines += ends
    return inner, b


def _then(r: Reader, a: Num, sign: str, inner: list, b: Num) -> str:
    """The C name of `a`, or of `b` behind its lines where `a` is true, or false if the sign says
    so."""
    name = r.fresh("c")
    r.line(f"u8 {name} = {a.text};")
    with r.block(f"if ({sign}{name})"):
        r.lines.append(inner)
        r.line(f"{name} = {b.text};")
    return name


def either(r: Reader, a: Value, rest: Any) -> Num:
    """`a or rest()`."""
    a = condition_of(r, a)
    if a.value is not None:
        return python(True) if a.value else condition_of(r, rest())
    inner, b = _apart(r, a.false, rest)
    if not inner:
        return Num(f"({a.text} || {b.text})", "bool", ("bool",), low=0, high=1,
                   false=(*a.false, *b.false))  # fmt: skip
    name = _then(r, a, "!", inner, b)
    return Num(name, "bool", ("bool",), low=0, high=1, false=(*a.false, *b.false))


def chosen(r: Reader, test: Num, yes: Any, no: Any) -> Value:
    """yes() where the test is true, else no()."""
    if test.value is not None:
        return yes() if test.value else no()
    r.one_by_one()
    found: list[tuple[list, Value, list[str]]] = []
    owned = False
    for make, facts in ((yes, test.true), (no, test.false)):
        lines: list = []
        mark = r.facts.mark()
        with r.elsewhere(lines):
            for fact in facts:
                r.facts.add(fact)
            r.owned.append([])
            try:
                x = kept(r, make())
            except Unresolved:  # what it gives, the other way tells
                r.owned.pop()
                continue
            free = r.releases(len(r.owned) - 1)
            makes = r.owned.pop() and not isinstance(x, Num)
            owned = owned or bool(makes)
        r.facts.back_to(mark)
        found.append((lines, x, free))
    if len(found) < 2:
        if not found:
            raise Unresolved("a choice")
        return found[0][1]
    (a_lines, a, a_free), (b_lines, b, b_free) = found
    if isinstance(a, Known) and isinstance(b, Known) and a.itself is b.itself:
        if a_lines or b_lines:  # what is done on the way to them
            r.lines += [f"if ({test.text}) {{", a_lines, "} else {", b_lines, "}"]
        return a
    of = join(a, b, r)
    if not isinstance(of, (Num, Arr, Aggregate, Items, OrNone)):
        raise Unreadable(f"a choice: {one_or_another(a, b)}")
    v = Variable(r, "chosen", of)
    for line in v.declare:
        r.line(line)
    a_lines += [*v.store(r, a, owned), *a_free]
    b_lines += [*v.store(r, b, owned), *b_free]
    made = choice(test.text, (a_lines, b_lines), v)
    if made is not None:
        r.line(made)
    else:
        r.lines += [f"if ({test.text}) {{", a_lines, "}", "else {", b_lines, "}"]
    if owned:
        r.owned[-1] += v.buffers()
    return v.load(r)
