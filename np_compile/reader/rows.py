"""The rows of innermost loops.

Pointers to those that it goes along: `D[i, j]` and `D[i - 1, j]` by the loop over `j`. Where a row
begins is computed once, and an element is an offset that processors add. Rows of a few elements
that are the same in all iterations, `a[i] += f(x[j])`, are in C variables meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .dependence import Access, are_apart
from .innermost import (
    JUMP,
    Load,
    Store,
    View,
    element,
    leaves_alone,
    linear_text,
    places,
    texts,
    ways_out,
)
from .linear import Linear
from .read import C_STORAGE, Line, Reader
from .threads import declarations
from .values import ANYWHERE, PARTS

_MOST = 8  # elements of a row in C variables
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_ELEMENT = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\[")


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


def in_variables(r: Reader, body: list, loop: Any, accesses: Sequence[Access]) -> list[str]:
    """The lines before a loop that read rows which are the same ones in all iterations; its body is
    changed to use C variables. loop: its head, which is given lines for behind it."""
    lines = [x for x in texts(body) if not x.startswith("/* ")]
    rows: dict[str, list[tuple[list, int, Line]]] = {}
    for those, k, line in places(body):
        if isinstance(line.what, View):
            rows.setdefault(line.partition(" = ")[2], []).append((those, k, line))
    writes = [x for x in accesses if x.write]
    if not rows or not writes or loop.n.lin is None or any(JUMP.search(x) for x in lines):
        return []
    own = declarations(lines)
    bases = {*(x.base for x in accesses), *(x.name for x in loop.powers)}
    if not leaves_alone(body, lines) or any(
        name not in own and name not in bases for x in lines for name in _ELEMENT.findall(x)
    ):
        return []
    mark = r.facts.mark()
    for fact in (*loop.facts, loop.n.lin - Linear(0, {loop.counter: 1}) - 1):
        r.facts.add(fact)
    before: list[str] = []
    for text, those in rows.items():
        steady = _is_steady(those, text, {loop.counter, *own}, lines)
        if steady and _is_alone(r, rows, text, accesses):
            before += _in_variables(r, body, those, loop, writes)
    r.facts.back_to(mark)
    return before


def _is_steady(
    those: list[tuple[list, int, Line]], text: str, changed: set[str], lines: list[str]
) -> bool:
    """Whether a row is of a few elements, the same in all iterations, and used by its names."""
    a, access = those[0][2].what.a, those[0][2].what.access
    sizes = [x.value for x in a.dims]
    if a.ndim != 1 or sizes[0] is None or not 1 < sizes[0] <= _MOST or a.strides[0].value != 1:
        return False
    if a.rep in PARTS or access is None or access.hulls is None:
        return False
    ends = [end for hull in access.hulls for end in hull]
    if None in ends or changed & {*_NAME.findall(text), *(y for x in ends for y in x.terms)}:
        return False
    used = re.compile(rf"\b(?:{'|'.join(x.what.a.data for _, _, x in those)})\b(?!\[)")
    return sum(len(used.findall(x)) for x in lines) == len(those)


def _is_alone(
    r: Reader, rows: dict[str, list[tuple[list, int, Line]]], text: str, accesses: Sequence[Access]
) -> bool:
    """Whether no iteration reads or writes the row by another name, if one writes to it."""
    row = rows[text][0][2].what
    where = row.access
    meeting = [x for x in accesses if x.roots & row.a.roots or ANYWHERE in x.roots | row.a.roots]
    if not row.a.roots or where.base not in r.accesses.arrays:
        return False
    same = [x for x in meeting if (x.base, x.hulls) == (where.base, where.hulls)]
    is_written = any(x.write for x in same)
    for x in meeting:
        if x in same or not (x.write or is_written):
            continue
        if x.base != where.base or x.hulls is None or len(x.hulls) != len(where.hulls):
            return False
        pairs = zip(where.hulls, x.hulls, strict=True)
        if not any(are_apart(r.facts, p, q, "") for p, q in pairs):
            return False
    return not is_written or all(
        other == text
        or (line.what.access.base, line.what.access.hulls) != (where.base, where.hulls)
        for other, those in rows.items()
        for _, _, line in those
        if line.what.access is not None
    )


def _in_variables(
    r: Reader, body: list, those: list[tuple[list, int, Line]], loop: Any, writes: Sequence[Access]
) -> list[str]:
    row = those[0][2].what
    where, size = row.access, row.a.dims[0].value
    tests = [f"{loop.n.text} > 0"]
    for (low, high), extent in zip(where.hulls, r.accesses.arrays[where.base].dims, strict=True):
        if not r.facts.proves(low):
            tests.append(f"{linear_text(low)} >= 0")
        if extent.lin is None or not r.facts.proves(extent.lin - high - 1):
            tests.append(f"{linear_text(high)} < {extent.text}")
    there, made, first = r.fresh("there"), r.fresh("row"), r.fresh("p")
    storage = C_STORAGE(row.a.rep)
    for lines, k, line in those:
        lines[k] = f"{storage} *const {line.what.a.data} = {made};"
    if any((x.base, x.hulls) == (where.base, where.hulls) for x in writes):
        stores = " ".join(f"{first}[{k}] = {made}[{k}];" for k in range(size))
        text = f"if ({there}) {{ {stores} }}"
        loop.after.append(text)
        for way_out in ways_out(body):
            way_out.first.append(text)
    return [
        f"const int {there} = {' && '.join(tests)};",
        f"{storage} *const {first} = {those[0][2].partition(' = ')[2]}",
        f"{storage} {made}[{size}];",
        *(f"{made}[{k}] = {there} ? {first}[{k}] : 0;" for k in range(size)),
    ]
