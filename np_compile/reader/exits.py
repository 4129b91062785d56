"""Exits: what leaves compiled code, as words, and how Python makes values of them again."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from .dicts import maker
from .read import Reader
from .values import (
    PARTS,
    Aggregate,
    Arr,
    Begun,
    Bound,
    Conflict,
    Flagged,
    Items,
    Known,
    Loose,
    Lst,
    Made,
    MadeRng,
    Num,
    Obj,
    Opaque,
    OrNone,
    Partial,
    Range,
    Rec,
    Rng,
    Slice,
    Table,
    Tup,
    Unreadable,
    Value,
)


@dataclass
class Exit:
    """What a number that compiled code returns means. result: how the returned value is made of
    the words; frames: of a leave, for each function, its path, how its names are made, and the
    statements that make functions of its own again, with what has a value if one has been made
    where that is not sure."""

    result: Any = None
    frames: list[tuple[Any, Any, list[tuple], dict[str, Any], list[Any]]] | None = None
    attributes: dict[tuple[str, str], Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    line: int = 0
    top: int = 0
    certain: bool = False
    count: int = 0


class Export:
    """The C that stores values in words, and how Python makes them again."""

    def __init__(self, r: Reader):
        self.r = r
        self.lines: list[str] = []
        self.count = 0
        self._moved: dict[str, str] = {}  # arrays that were on the stack
        self._lists: dict[int, Any] = {}  # of lists that may be there twice
        # What attributes of objects hold whose `__init__` is at work, where these can be given.
        self.attributes: dict[str, Value] | None = None
        self._begun: dict[str, Any] = {}

    def _word(self, text: str, part: str) -> int:
        self.lines.append(f"out[{self.count}].{part} = {text};")
        self.count += 1
        return self.count - 1

    def _memory(self, x: Arr) -> tuple[str, str]:
        """The C of an array's memory, and of its first element."""
        small = self.r.on_stack.get(x.buf)
        if small is None:
            return x.buf, x.data
        if x.buf not in self._moved:
            self._moved[x.buf] = name = self.r.fresh("moved")
            self.lines += small.moved(name)
        name = self._moved[x.buf]
        return name, f"(({small.item} *){name}->data + ({x.data} - {small.data}))"

    def _integer(self, x: Num) -> Any:
        return ("constant", x.value) if x.value is not None else self._word(x.text, "i")

    def value(self, x: Value) -> Any:
        if isinstance(x, Num):
            if x.value is not None and x.is_python:
                return ("constant", x.value)
            tag = self._word(x.tag, "i") if len(x.kinds) > 1 else None
            if x.rep in PARTS:
                at = self._word(f"{x.text}.r", "f")
                self._word(f"{x.text}.i", "f")
                return ("complex", x.kinds, at, tag)
            part = "f" if x.rep in ("f64", "f32") else "i"
            return ("number", x.kinds, self._word(x.text, part), tag, part)
        if isinstance(x, Arr):
            buf, data = self._memory(x)
            owner = self._word(f"{buf}->owner", "i")
            at = self._word(buf, "p")
            self._word(f"(void *){data}", "p")
            dims = [self._integer(d) for d in x.dims]
            strides = [self._integer(s) for s in x.strides]
            view = ("constant", int(x.view)) if x.view.isdigit() else self._word(x.view, "i")
            return ("array", x.rep, owner, at, dims, strides, view)
        if isinstance(x, Made):
            return ("object", x.made, self._word(x.buf, "p"))
        if isinstance(x, MadeRng):
            return ("held", self._word(x.buf, "p"))
        if isinstance(x, Items):
            return ("list", _maker(x), _items_of(x), self._word(x.buf, "p"))
        if isinstance(x, Tup):
            if x.path is not None:
                return ("path", x.path)
            if id(x) not in self._lists:
                found = ("tuple", x.made, [self.value(y) for y in x.items])
                if x.made is not list:
                    return found
                self._lists[id(x)] = found
            return self._lists[id(x)]
        if isinstance(x, Slice):
            return ("tuple", slice, [self.value(y) for y in x.items])
        if isinstance(x, Range):
            return ("range", [self.value(y) for y in (x.start, x.stop, x.step)])
        if isinstance(x, Known):
            if self.r.is_local(x):
                raise Unreadable("a function that is made in it, as a value")
            return ("constant", x.itself)
        if isinstance(x, Flagged):
            at = self._word(x.flag, "i")
            self.lines.append(f"if ({x.flag}) {{")
            inner = self.value(x.value)
            self.lines.append("}")
            return ("or none" if isinstance(x, OrNone) else "maybe", at, inner)
        if isinstance(x, Begun) and self.attributes is not None:
            if x.path not in self._begun:
                own = f"@{x.path}."
                set_ = {k[len(own) :]: v for k, v in self.attributes.items() if k.startswith(own)}
                fields = {k: self.value(v) for k, v in set_.items()}
                self._begun[x.path] = ("begun", x.type, x.path, fields)
            return self._begun[x.path]
        if isinstance(x, (Obj, Opaque)) and not isinstance(x, Begun):
            return ("path", x.path)
        if isinstance(x, Bound) and isinstance(x.owner, (Rng, Obj, Items)) and not x.more:
            return ("method", self.value(x.owner), x.name)
        if isinstance(x, Partial):
            given = [self.value(y) for y in (x.function, *x.args)]
            return ("partial", given, {k: self.value(y) for k, y in x.kwargs.items()})
        if isinstance(x, Rng):
            return ("path", self.r.entry.paths[x])
        raise Unreadable("a value that Python cannot be given")


first_row = operator.itemgetter(0)  # makes a record of the rows of a list


def _maker(x: Items) -> Any:
    """What makes Python's object of a list of the items."""
    if isinstance(x, Loose):
        raise Unreadable("a set of which Python has not told the order")
    if isinstance(x, Table):
        return maker(x)
    if isinstance(x, Lst) and x.maxlen is not None:
        return partial(deque, maxlen=x.maxlen)
    if isinstance(x, Rec):
        return first_row
    return "".join if x.made is str else x.made


def _items_of(x: Items) -> Any:
    """How Python makes a list's items: by the kind of numbers without gaps, or of their words."""
    if isinstance(x, Table) and x.of is not None:
        kind, made, (_, *entry) = of_words(x.of, count())
        return entry[0] if x.made is set else (kind, made, entry)
    return x.kind if x.kind is not None or x.of is None else of_words(x.of, count())


def of_words(of: Value, words: Iterator[int], paths: dict[Any, Any] | None = None) -> Any:
    """A description of a value as `Export.value` gives it, of the words of a list's item. paths: of
    what an object may have, where it is found."""
    if isinstance(of, Num):
        at = next(words)
        if of.rep in PARTS:
            next(words)
            return ("complex", of.kinds, at, next(words) if len(of.kinds) > 1 else None)
        tag = next(words) if len(of.kinds) > 1 else None
        return ("number", of.kinds, at, tag, "f" if of.rep in ("f64", "f32") else "i")
    if isinstance(of, Aggregate):
        return ("tuple", of.made, [of_words(y, words) for y in of.items])
    if isinstance(of, Made):
        return ("object", of.made, next(words))
    if isinstance(of, MadeRng):
        return ("held", next(words))
    if isinstance(of, Items):
        return ("list", _maker(of), _items_of(of), next(words))
    if isinstance(of, Flagged):
        inner = of_words(of.value, words, paths)
        return ("or none" if isinstance(of, OrNone) else "maybe", next(words), inner)
    if isinstance(of, Known):
        return ("constant", of.itself)
    if isinstance(of, (Obj, Rng)) and paths is not None:
        return ("path", of.path if isinstance(of, Obj) else paths[of])
    if isinstance(of, Conflict):
        raise Unreadable(of.why)
    assert isinstance(of, Arr)
    at, _ = next(words), next(words)
    dims, strides = (
        [("constant", d.value) if d.value is not None else next(words) for d in those]
        for those in (of.dims, of.strides)
    )
    return ("array", of.rep, None, at, dims, strides, next(words))
