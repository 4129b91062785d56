"""Heaps in lists (`heapq`), by the steps of Python's own."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from .lists import (
    append,
    each,
    growing,
    length,
    less,
    may_change,
    no_nan,
    place_of,
    size_of_item,
    taken,
)
from .nest import kept
from .objects import no_nan_in
from .read import Reader
from .values import Known, Lst, Made, Tup, Unreadable, Value


def _push(r: Reader, a: Value, x: Value) -> Value:
    """`heapq.heappush(a, x)`."""
    a = _heap(r, a)
    append(r, a, _item(r, x))
    with r.block(""):
        _to_root(r, a, f"{a.buf}->dims[0] - 1", "0")
    return Known(None)


def _pop(r: Reader, a: Value) -> Value:
    """`heapq.heappop(a)`."""
    a = _heap(r, a)
    may_change(r, a)
    n = length(r, a)
    r.leave_if(f"{n.text} == 0", "pop from an empty heap")
    made = taken(r, a, "0")
    size = size_of_item(r, a.of)
    with r.block(""):
        r.line(f"i64 n = --{a.buf}->dims[0], pos = 0;")
        r.line(f"char *at = {a.buf}->data;")
        with r.block("if (n > 0)"):
            r.line(f"__builtin_memcpy(at, at + n * {size}, {size});")
            _from_leaf(r, a, "0")
    r.changed(a.roots)
    return made


def _item(r: Reader, x: Value) -> Value:
    """What is put into a heap."""
    x = kept(r, x)
    if isinstance(x, Made):
        no_nan_in(r, x)
    no_nan(r, x)
    return x


def _replace(r: Reader, a: Value, x: Value) -> Value:
    """`heapq.heapreplace(a, x)`: the least item, for which there is another one then."""
    a, x = _heap(r, a), _item(r, x)
    n = length(r, a)
    r.leave_if(f"{n.text} == 0", "an item of an empty heap")
    return _exchanged(r, a, x, lambda least, x: "1")


def _push_pop(r: Reader, a: Value, x: Value) -> Value:
    """`heapq.heappushpop(a, x)`."""
    return _exchanged(r, _heap(r, a), _item(r, x), lambda least, x: less(r, least, x))


def _exchanged(r: Reader, a: Lst, x: Value, if_: Callable[[Value, Value], str]) -> Value:
    """The least item, in the place of which there is x then, where the C of both says so; else x,
    which lies behind the others meanwhile."""
    append(r, a, x)
    size = size_of_item(r, a.of)
    with r.block(""):
        r.line(f"i64 n = {a.buf}->dims[0] - 1, pos = 0;")
        r.line(f"char *at = {a.buf}->data;")
        with r.block("if (n > 0)"):
            test = if_(place_of(r, a, "0").load(r), place_of(r, a, "n").load(r))
            with r.block(f"if ({test})"):
                r.line(f"swap(at, 0, n, {size});")
                _from_leaf(r, a, "0")
    made = taken(r, a, f"{a.buf}->dims[0] - 1")
    r.line(f"{a.buf}->dims[0]--;")
    r.changed(a.roots)
    return made


def _heapify(r: Reader, a: Value) -> Value:
    """`heapq.heapify(a)`."""
    a = _heap(r, a)
    may_change(r, a)
    n = length(r, a)
    if a.of is None:
        return Known(None)
    if a.kind is None:
        with each(r, n) as k:
            no_nan(r, place_of(r, a, k.text).load(r))
    with r.block(""):
        r.line(f"i64 n = {a.buf}->dims[0];")
        r.line(f"char *at = {a.buf}->data;")
        with r.block("for (i64 start = (n >> 1) - 1; start >= 0; start--)"):
            r.line("i64 pos = start;")
            _from_leaf(r, a, "start")
    r.changed(a.roots)
    return Known(None)


def _heap(r: Reader, a: Value) -> Lst:
    if isinstance(a, Tup) and a.made is list:
        growing(r, a)
    if not isinstance(a, Lst) or a.made is not list:
        raise Unreadable("a heap that is no list")
    return a


def _from_leaf(r: Reader, a: Lst, start: str) -> None:
    """Let the item at `pos` sink to a leaf, and rise from there up to `start`."""
    size = size_of_item(r, a.of)
    r.line(f"char held[{size}]; __builtin_memcpy(held, at + pos * {size}, {size});")
    with r.block("while (pos < n >> 1)"):
        r.line("i64 child = 2 * pos + 1;")
        with r.block("if (child + 1 < n)"):
            x = place_of(r, a, "child").load(r)
            y = place_of(r, a, "child + 1").load(r)
            r.line(f"child += !{less(r, x, y)};")
        r.line(f"__builtin_memcpy(at + pos * {size}, at + child * {size}, {size});")
        r.line("pos = child;")
    r.line(f"__builtin_memcpy(at + pos * {size}, held, {size});")
    _to_root(r, a, "pos", start)


def _to_root(r: Reader, a: Lst, pos: str, start: str) -> None:
    """Move an item of a heap towards the root, as far as it is less than its parents."""
    size = size_of_item(r, a.of)
    r.line(f"i64 up = {pos}; char *items = {a.buf}->data, item[{size}];")
    r.line(f"__builtin_memcpy(item, items + up * {size}, {size});")
    r.line("i64 mine = up;")
    with r.block(f"while (up > {start})"):
        r.line("i64 parent = (up - 1) >> 1;")
        x = place_of(r, a, "mine").load(r)
        y = place_of(r, a, "parent").load(r)
        r.line(f"if (!{less(r, x, y)}) break;")
        r.line(f"char other[{size}]; __builtin_memcpy(other, items + parent * {size}, {size});")
        r.line(f"__builtin_memcpy(items + up * {size}, other, {size});")
        r.line(f"__builtin_memcpy(items + parent * {size}, item, {size});")
        r.line("up = mine = parent;")


TABLE: dict[Any, Callable] = {
    heapq.heappush: _push, heapq.heappop: _pop, heapq.heapify: _heapify,
    heapq.heapreplace: _replace, heapq.heappushpop: _push_pop,
}  # fmt: skip
