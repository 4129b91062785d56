"""Stores on ways of a branch. What is stored is selected instead: a processor guesses such branches
wrongly, as they hang on data.

On one way, in an element that the iteration has stored in before it: `best[w] = old`, then
`if new > best[w]: best[w] = new`. The element is the loop's to write to in any case, so no other
thread's store is undone. On both ways, in one element: `if a[i] == b[j]: way[i, j] = 1`, and
`else: way[i, j] = 2`. Of integers that the loop does not read, with few operations on both ways:
these are carried out on either, and elements are read on either that are known to be there without
what the branch tells. (Of what the loop reads the next iteration would wait for both ways.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from .dependence import Access
from .innermost import Load, Store, element, linear_text, texts
from .linear import Linear
from .nest import place
from .read import C_STORAGE, Line, Reader
from .selection import flat, is_harmless, operations
from .threads import declarations
from .values import ANYWHERE, INTEGERS, PARTS, Num

_IF = re.compile(r"if \((.*)\) \{")
_MADE = re.compile(r"const \w+ \w+ = (.+);")
_BEGUN = re.compile(r"\w+ (\w+) = 0;")
_FLOAT = re.compile(r"\b0x[\da-f.]+p[-+]\d+")
_GIVEN = re.compile(r"(\w+) = (.+);")
_MOST = 16  # operations and loads on both ways: fewer cycles than a wrong guess


def joined_stores(
    r: Reader, lines: list, counter: str, n: Num, facts: Iterable[Linear], accesses: list[Access]
) -> None:
    """Have the ways of branches in the body of an innermost loop store once, behind them. n: how
    many iterations there are. facts: what is so if there is one. accesses: all that the body reads
    and writes; those of stores that are no more are taken out."""
    mark = r.facts.mark()
    for fact in facts:
        r.facts.add(fact)
    if n.lin is not None:
        r.facts.add(n.lin - Linear(1, {counter: 1}))
    _join(r, lines, accesses)
    r.facts.back_to(mark)


def _join(r: Reader, lines: list, accesses: list[Access]) -> None:
    for k in range(len(lines) - 1, -1, -1):
        if isinstance(lines[k], list):
            _join(r, lines[k], accesses)
    k = 0
    while k + 5 < len(lines):
        test = _IF.fullmatch(lines[k]) if isinstance(lines[k], str) else None
        if test and lines[k + 2 : k + 6 : 3] == ["}", "}"] and lines[k + 3] == "else {":
            joined = _joined(r, test[1], flat(lines[k + 1]), flat(lines[k + 4]), accesses)
            if joined is not None:
                lines[k : k + 6] = joined
        k += 1


def _joined(r: Reader, test: str, yes: list, no: list, accesses: list[Access]) -> list[str] | None:
    """Both ways of a branch, and one store; None where they do more, or other things."""
    a, b = _ends_in(yes), _ends_in(no)
    if a is None or b is None or element(a) != element(b) or a.a.rep not in INTEGERS:
        return None
    made = [*yes[:-1], *no[:-1]]
    own = declarations(texts(made)).keys()
    if any(name in own for x in a.where for name in x.terms):
        return None
    if not is_harmless(_FLOAT.sub("0", test)):
        return None
    if any(not x.write and x.roots & (a.a.roots | {ANYWHERE}) for x in accesses):
        return None  # the next iteration would wait for more
    if not _is_sure(r, made, own) or sum(map(_effort, made)) > _MOST:
        return None
    accesses[:] = [x for x in accesses if x is not b.access]
    storage, new = C_STORAGE(a.a.rep), r.fresh("new")
    bits = f"({b.value} ^ {a.value}) & -({storage})({test})"
    selected = f"const {storage} {new} = ({storage})({b.value} ^ ({bits}));"
    at = place(a.a, [linear_text(x) for x in a.where])
    return [*made, selected, Line(f"{at} = {new};", replace(a, value=new))]


def _ends_in(way: list) -> Store | None:
    what = getattr(way[-1], "what", None) if way else None
    return what if isinstance(what, Store) else None


def _effort(x: str) -> int:
    if isinstance(getattr(x, "what", None), Load):
        return 1
    return 0 if x.startswith("/* ") else operations(x.partition("=")[2])


def _is_sure(r: Reader, made: list, own: Iterable[str]) -> bool:
    """Whether lines may be carried out whatever a branch says. own: the names that they declare."""
    begun: set[str] = set()
    for x in made:
        if not isinstance(x, str):
            return False
        if isinstance(x, Line):
            if not isinstance(x.what, Load) or not _is_there(r, x.what, own):
                return False
        elif x.startswith("/* ") or x in ("}", "else {"):
            continue
        elif match := _BEGUN.fullmatch(x):
            begun.add(match[1])
        elif match := _MADE.fullmatch(x) or _IF.fullmatch(x):
            if not is_harmless(match[1]):
                return False
        elif match := _GIVEN.fullmatch(x):
            if match[1] not in begun or not is_harmless(match[2]):
                return False
        else:
            return False
    return True


def _is_there(r: Reader, load: Load, own: Iterable[str]) -> bool:
    """Whether an element is within its array, by what is known outside the branch."""
    for x, extent in zip(load.where, load.a.dims, strict=True):
        if extent.lin is None or any(name in own for name in x.terms):
            return False
        if not r.facts.proves(x) or not r.facts.proves(extent.lin - x - 1):
            return False
    return load.a.rep not in PARTS


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
