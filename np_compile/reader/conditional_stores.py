"""Stores on one way of a branch, in an element that the iteration has stored in before it:
`best[w] = old`, then `if new > best[w]: best[w] = new`. What is stored is selected instead: a
processor guesses such branches wrongly, as they hang on data. The element is the loop's to write to
in any case, so no other thread's store is undone."""

from __future__ import annotations

import re
from dataclasses import replace

from .innermost import Load, Store, element, linear_text
from .nest import place
from .read import C_STORAGE, Line, Reader
from .selection import flat, is_harmless
from .values import PARTS

_IF = re.compile(r"if \((.*)\) \{")
_MADE = re.compile(r"const \w+ \w+ = (.+);")


def selected_stores(r: Reader, lines: list, counter: str, stored: frozenset = frozenset()) -> None:
    """Change the body of an innermost loop so. stored: the elements that are, on all ways there."""
    k = 0
    while k < len(lines):
        x = lines[k]
        if isinstance(x, list):
            selected_stores(r, x, counter, stored)
        elif isinstance(x, Line) and isinstance(x.what, Store):
            stored |= {element(x.what)}
        elif isinstance(x, str) and (test := _IF.fullmatch(x)) and lines[k + 2 : k + 3] == ["}"]:
            way = flat(lines[k + 1])
            is_all = lines[k + 3 : k + 4] != ["else {"]
            if is_all and _is_store(way, counter) and element(way[-1].what) in stored:
                lines[k : k + 3] = _selected(r, test[1], way)
        k += 1


def _is_store(way: list, counter: str) -> bool:
    """Whether it does no harm to carry out a way but for what it stores at its end, in an element
    that is another one in each iteration."""
    if not way or not isinstance(way[-1], Line) or not isinstance(store := way[-1].what, Store):
        return False
    if store.a.rep in PARTS or not any(counter in x.terms for x in store.where):
        return False
    for x in way[:-1]:
        if not isinstance(x, str) or isinstance(x, Line):
            return False
        made = _MADE.fullmatch(x)
        if not x.startswith("/* ") and (made is None or not is_harmless(made[1])):
            return False
    return True


def _selected(r: Reader, test: str, way: list) -> list[str]:
    store, old, new = way[-1].what, r.fresh("old"), r.fresh("new")
    at = place(store.a, [linear_text(x) for x in store.where])
    load = Line(
        f"const {C_STORAGE(store.a.rep)} {old} = {at};",
        Load(old, store.a, store.where, store.access),
    )
    # It has a name, as who reads the element later may take it from there.
    selected = f"const {C_STORAGE(store.a.rep)} {new} = ({test}) ? {store.value} : {old};"
    return [*way[:-1], load, selected, Line(f"{at} = {new};", replace(store, value=new))]
