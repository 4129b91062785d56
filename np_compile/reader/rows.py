"""Pointers to the rows that an innermost loop goes along: `D[i, j]` and `D[i - 1, j]` by the loop
over `j`. Where a row begins is computed once, and an element is an offset that processors add."""

from __future__ import annotations

import re

from .innermost import Load, Store, element, linear_text, places, texts
from .read import C_STORAGE, Line, Reader
from .threads import declarations


def by_rows(r: Reader, body: list, counter: str) -> list[str]:
    """The lines before a loop that make the pointers; its body is changed to use them."""
    own = declarations(texts(body))
    made: list[str] = []
    names: dict[tuple, str] = {}
    for lines, k, line in list(places(body)):
        what = line.what
        if not isinstance(what, (Load, Store)) or what.a.ndim < 2:
            continue
        a, (*lead, last) = what.a, what.where
        used = {a.data, *(s.text for s in a.strides), *(x for i in (*lead, last) for x in i.terms)}
        if (
            a.dims[-1].value is not None
            or used & own.keys()
            or any(counter in i.terms for i in lead)
        ):
            continue
        key = *element(what)[:2], tuple(lead)
        if key not in names:
            names[key] = r.fresh("p")
            start = (f"{linear_text(i)} * {s.text}" for i, s in zip(lead, a.strides, strict=False))
            ctype = C_STORAGE(a.rep)
            made.append(f"{ctype} *const {names[key]} = {a.data} + ({' + '.join(start)});")
        step = a.strides[-1]
        at = linear_text(last) if step.value == 1 else f"{linear_text(last)} * {step.text}"
        there = re.compile(rf"\b{a.data}\[[^\]]*\]")
        lines[k] = Line(there.sub(f"{names[key]}[{at}]", line, count=1), what)
    return made
