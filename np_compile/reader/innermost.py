"""Innermost loops, once their body is written: what is done before them, or kept in C variables.

An element that one iteration stores and a later one reads stays in a C variable too: a processor
waits for what it has just stored. An iteration that may not store it begins by reading it. One that
no iteration stores, while others are stored, is read once, before: C does not know that two arrays
share no memory. Where all iterations store in the same element, and nothing else reads it, it is
stored once, behind the loop and on ways out of it. Checks of indices that are linear in the loop's
counter are made once, for the first and the last iteration; only where one of them fails does each
iteration look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .dependence import Access
from .linear import Linear
from .nest import place
from .read import C_STORAGE, Leave, Line, Reader
from .threads import declarations
from .values import ANYWHERE, C_TYPE, PARTS, Arr, Num, c_text

_FAR = 4  # iterations over which an element is kept
JUMP = re.compile(r"\bgoto (?!leave_)|^\w+: ;")
_NAME = re.compile(r"[A-Za-z_]\w*")
_IF = re.compile(r"if \(.*\) \{$")

_Place = tuple[list, int, Any]  # of a line that says what it does: the list it is in, and where


@dataclass(frozen=True)
class Load:
    """An element is read under a C name. where: its indices."""

    name: str
    a: Arr
    where: tuple[Linear, ...]
    access: Access | None


@dataclass(frozen=True)
class Store:
    """A value, by its C name, is stored in an element."""

    value: str
    a: Arr
    where: tuple[Linear, ...]
    access: Access | None


@dataclass(frozen=True)
class View:
    """The first element of a view gets a C name."""

    a: Arr
    access: Access | None


def element(x: Load | Store) -> tuple:
    """Which element it is. Views that begin at the same one, as m and m.T, differ in strides."""
    return x.a.data, tuple(s.text for s in x.a.strides), x.where


@dataclass(frozen=True)
class Check:
    """An index is compared with an extent. else_: the line where it is known to be right in most
    iterations; `{out}` is C that says whether it may not be."""

    at: Linear
    n: Num
    else_: str


def hoisted(
    r: Reader, body: list, counter: str, n: Num, facts: Iterable[Linear],
    accesses: Sequence[Access], goes_on: bool, spreads: bool,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """The lines before a loop whose body this is, without loops in it, and those behind it, if
    there was an iteration; the body is changed to make use of them. n: how many iterations there
    are. facts: what is so if there is one. accesses: all that the body reads and writes. goes_on:
    whether nothing but ways out ends an iteration early. spreads: whether threads or a device may
    make its iterations: no element is read before, as it would have to come back for that."""
    if n.lin is None:
        return [], []
    own = declarations(texts(body))
    mark = r.facts.mark()
    for fact in facts:
        r.facts.add(fact)
    made = _checks(r, body, counter, n.lin, own)
    behind: list[str] = []
    made += _carried(r, body, counter, n, own, accesses, behind if goes_on else None, spreads)
    r.facts.back_to(mark)
    return made, behind


def texts(lines: list) -> Iterator[str]:
    for x in lines:
        if isinstance(x, list):
            yield from texts(x)
        elif isinstance(x, str):
            yield x


def places(lines: list) -> Iterator[_Place]:
    """The lines that say what they do."""
    for k, x in enumerate(lines):
        if isinstance(x, list):
            yield from places(x)
        elif isinstance(x, Line):
            yield lines, k, x


def _at(x: Linear, counter: str, k: Linear | int) -> Linear:
    """A linear form in iteration k."""
    c = x.terms.get(counter, 0)
    return x + (k if isinstance(k, Linear) else Linear(k)) * c - Linear(0, {counter: c})


def linear_text(x: Linear) -> str:
    """The C of a linear form."""
    parts = [f"{c}L * {name}" if c != 1 else name for name, c in x.terms.items()]
    return f"({' + '.join([*parts, f'{x.const}L'])})"


# Checks of indices


def _checks(r: Reader, body: list, counter: str, n: Linear, own: dict[str, str]) -> list[str]:
    out = ""
    outside: dict[str, None] = {}  # what is negative where an index is out of bounds
    for lines, k, line in list(places(body)):
        check = line.what
        if not isinstance(check, Check) or check.n.lin is None:
            continue
        if own.keys() & {*check.at.terms, *check.n.lin.terms}:
            continue
        ends = [_at(check.at, counter, 0), _at(check.at, counter, n - 1)]
        if not all(r.is_safe(x) for x in (*ends, check.n.lin)):
            continue
        least, greatest = ends if check.at.terms.get(counter, 0) >= 0 else ends[::-1]
        for x in (least, check.n.lin - greatest - 1):
            if not r.facts.proves(x):
                outside[linear_text(x)] = None
        out = out or r.fresh("out")
        lines[k] = check.else_.format(out=out)
    # One test of all signs: most loops inside others have some iterations, and no check fails.
    return [f"const int {out} = ({' | '.join(outside) or '0'}) < 0;"] if out else []


# Elements that iterations hand on


def _carried(
    r: Reader, body: list, counter: str, n: Num, own: dict[str, str],
    accesses: Sequence[Access], after: list[str] | None, spreads: bool,
) -> list[str]:  # fmt: skip
    writes = [x for x in accesses if x.write]
    loads: list[_Place] = []
    stores: dict[tuple, list[_Place]] = {}
    order: dict[tuple[int, int], int] = {}
    for lines, k, line in places(body):
        order[id(lines), k] = len(order)
        if isinstance(line.what, Load):
            loads.append((lines, k, line.what))
        elif isinstance(line.what, Store):
            stores.setdefault(element(line.what), []).append((lines, k, line.what))
    flat = list(texts(body))
    if any(JUMP.search(x) for x in flat):
        return []
    before = [] if spreads else _read_before(r, loads, counter, n, own, writes)
    heads: list[str] = []
    behind: list[tuple[list, int, str]] = []
    for those in stores.values():
        store = those[0][2]
        others = _others(those, stores, writes) if _is_steady(store, own) else None
        if others is None:
            continue
        moves = any(counter in x.terms for x in store.where)
        far: dict[int, list[_Place]] = {}
        for p in loads:
            d = _iterations_between(store, p[2], counter, moves)
            if d is not None and not any(
                _changes(o[2], store, d, counter, order[id(o[0]), o[1]] < order[id(p[0]), p[1]])
                for o in others
            ):
                far.setdefault(d, []).append(p)
        if not far:
            continue
        always = _is_always_stored(flat, store)
        names = {d: r.fresh("last") for d in range(min(1, max(far)), max(far) + 1)}
        before += _begun(r, store, counter, n, names)
        heads += _kept(r, C_STORAGE(store.a.rep), names, far)
        newest = names[min(names)]
        if moves and not always:
            heads.append(f"{newest} = {_held(r, store, store.where, [])};")
        once = after is not None and not moves and always
        if once and _is_unseen(body, flat, store, far[0], accesses):
            assert after is not None
            for lines, k, x in those:
                lines[k] = f"{newest} = {x.value};"
            text = f"{place(store.a, [linear_text(x) for x in store.where])} = {newest};"
            after.append(text)
            for way_out in ways_out(body):
                way_out.first.append(text)
            continue
        behind += [(lines, k + 1, f"{newest} = {x.value};") for lines, k, x in those]
    for lines, k, text in sorted(behind, key=lambda x: -x[1]):
        lines.insert(k, text)
    body[:0] = heads
    return before


def _read_before(
    r: Reader, loads: list[_Place], counter: str, n: Num, own: dict[str, str],
    writes: Sequence[Access],
) -> list[str]:  # fmt: skip
    """The lines that read, before the loop, elements that are the same in all iterations; loads of
    them take the value there."""
    names: dict[tuple, str] = {}
    before: list[str] = []
    for lines, k, load in loads if writes else ():
        of = element(load)
        if of not in names:
            moves = any(counter in x.terms for x in load.where)
            if moves or not _is_steady(load, own) or not _is_alone([], load.a.roots, writes):
                continue
            names[of] = r.fresh("same")
            before += _begun(r, load, counter, n, {0: names[of]})
        lines[k] = f"const {C_TYPE[load.a.rep]} {load.name} = {names[of]};"
    return before


def _iterations_between(store: Store, load: Load, counter: str, moves: bool) -> int | None:
    """How many iterations before a load the element is stored in that it reads."""
    if element(store)[:2] != element(load)[:2]:
        return None
    for d in range(1, _FAR + 1) if moves else (0,):
        earlier = [_at(x, counter, Linear(-d, {counter: 1})) for x in store.where]
        if earlier == list(load.where):
            return d
    return None


def _others(
    those: list[_Place], stores: dict[tuple, list[_Place]], writes: Iterable[Access]
) -> list[_Place] | None:
    """The stores in other elements of an array; None where something else may write to it."""
    store = those[0][2]
    found = [
        p for of, there in stores.items() for p in there
        if of[:2] == element(store)[:2] and of != element(store)
    ]  # fmt: skip
    return found if _is_alone([*those, *found], store.a.roots, writes) else None


def _changes(other: Store, store: Store, d: int, counter: str, comes_before: bool) -> bool:
    """Whether a store in another element may change the one that is stored d iterations before a
    load. comes_before: before the load, of the same iteration."""
    shifts = set()
    for x, of in zip(other.where, store.where, strict=True):
        between, step = (x - of).constant, of.terms.get(counter, 0)
        if between is None:
            return True
        if between % step if step else between:
            return False
        if step:
            shifts.add(between // step)
    if len(shifts) != 1:  # along no axis, or along two of them in different iterations
        return not shifts
    later = -shifts.pop()  # so many iterations after the store it stores there too
    return 0 <= later < d or (later == d and comes_before)


def _is_alone(stores: list[_Place], roots: frozenset[str], writes: Iterable[Access]) -> bool:
    """Whether nothing but these stores writes to the memory of an array in the loop."""
    known = {id(x.access) for _, _, x in stores}
    meeting = (w for w in writes if w.roots & roots or ANYWHERE in w.roots | roots)
    return bool(roots) and all(id(w) in known for w in meeting)


_LEFT = re.compile(r"\bgoto leave_(\d+)|\breturn\b|python\b|\bcall_numpy\b")


def ways_out(lines: list) -> Iterator[Leave]:
    for x in lines:
        if isinstance(x, list):
            yield from ways_out(x)
        elif isinstance(x, Leave):
            yield x


def _is_unseen(
    body: list, lines: list[str], store: Store, loads: list[_Place], accesses: Iterable[Access]
) -> bool:
    """Whether nothing sees the element in memory before the loop, or an iteration, is left: no read
    but these loads, no code of Python's, no way out that is not the body's own."""
    known = {id(x.access) for _, _, x in loads}
    for x in accesses:
        meets = x.roots & store.a.roots or ANYWHERE in x.roots
        if not x.write and meets and id(x) not in known:
            return False
    return leaves_alone(body, lines)


def leaves_alone(body: list, lines: Iterable[str]) -> bool:
    """Whether a loop is left by ways out of its body's own alone."""
    own = {str(x.number) for x in ways_out(body)}
    return all(x[1] in own for line in lines for x in _LEFT.finditer(line))


def _is_steady(x: Load | Store, own: dict[str, str]) -> bool:
    """Whether the array, and its indices but for the counter, are the same in all iterations."""
    texts = (x.a.data, *(n.text for n in (*x.a.dims, *x.a.strides)))
    names = {name for text in texts for name in _NAME.findall(text)}
    names |= {name for at in x.where for name in at.terms}
    return not names & own.keys()


def _is_always_stored(lines: list[str], store: Store) -> bool:
    """Whether each way through a loop's body stores in the element."""
    for x in lines:
        plain = x.count("{") == x.count("}")
        if not plain and x not in ("}", "} else {", "else {", "{") and not _IF.match(x):
            return False
    return _stores(lines, 0, store, False)[0]


def _stores(lines: list[str], k: int, store: Store, done: bool) -> tuple[bool, int]:
    """Whether the lines from the k-th on, to the end of their block, store on each way; and where
    they end."""
    while k < len(lines):
        line = lines[k]
        if line.startswith("}"):
            return done, k
        if isinstance(line, Line) and isinstance(line.what, Store):
            done |= element(line.what) == element(store)
        elif line == "continue;" and not done:
            return False, len(lines)
        elif line in ("continue;", "break;") or line.startswith(("goto ", "return ")):
            done = True
        elif line.endswith("{"):
            all_ways, arms = line == "{", []
            while True:
                found, k = _stores(lines, k + 1, store, done)
                arms.append(found)
                if k >= len(lines):
                    return False, k
                if lines[k] == "}" and lines[k + 1 : k + 2] == ["else {"]:
                    k += 1
                elif lines[k] != "} else {":
                    break
                all_ways = True
            done |= all_ways and all(arms)
        k += 1
    return done, k


def _begun(r: Reader, of: Load | Store, counter: str, n: Num, names: dict[int, str]) -> list[str]:
    """The lines before the loop: what the elements hold that the first iterations read."""
    made = []
    for d, name in names.items():
        first = _held(r, of, [_at(x, counter, -d) for x in of.where], [f"{n.text} > 0"])
        made.append(f"{C_STORAGE(of.a.rep)} {name} = {first};")
    return made


def _held(r: Reader, of: Load | Store, where: Sequence[Linear], tests: list[str]) -> str:
    """The C of what an element holds, if it is there; tests: what else must be so."""
    for x, extent in zip(where, of.a.dims, strict=True):
        if not r.facts.proves(x):
            tests.append(f"{linear_text(x)} >= 0")
        if extent.lin is None or not r.facts.proves(extent.lin - x - 1):
            tests.append(f"{linear_text(x)} < {extent.text}")
    zero = c_text(0, of.a.rep) if of.a.rep in PARTS else "0"
    text = place(of.a, [linear_text(x) for x in where])
    return f"{' && '.join(tests)} ? {text} : {zero}" if tests else text


def _kept(
    r: Reader, storage: str, names: dict[int, str], far: dict[int, list[_Place]]
) -> list[str]:
    """The lines that an iteration begins with; loads of what earlier ones stored take it there."""
    heads: list[str] = []
    newer = ""
    for d, name in names.items():
        was = name
        if d:
            was = r.fresh("was")
            heads.append(f"const {storage} {was} = {name};")
        if newer:
            heads.append(f"{name} = {newer};")
        newer = was
        for lines, k, load in far.get(d, ()):
            lines[k] = f"const {C_TYPE[load.a.rep]} {load.name} = {was};"
    return heads
