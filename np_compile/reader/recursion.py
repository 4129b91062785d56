"""Functions that call themselves: each is a C function of its own.

Its parameters, and what it gives, are of types that hold all that was seen; until these are known
all is read again. It is read by a `Reader` of its own: of the C around it, it sees what is the same
in the whole call of a region (`struct outside`). It gives 0, or 1 where it leaves, or -1 where
the call ends. One that changes nothing leaves to the statement that calls it, and Python makes that
call. One that changes something leaves as the outermost function does: what it holds is noted
(`left_at`), and so it is for each call that it is in, up to the region's own.
"""

from __future__ import annotations

import functools
import re
import types
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from . import source
from .read import BRANCH, Again, Frame, Leave, Reader, Return
from .values import (
    ANYWHERE,
    HELD,
    Aggregate,
    Arr,
    Conflict,
    Flagged,
    Known,
    Maybe,
    Obj,
    Rng,
    Tup,
    Unreadable,
    Value,
)
from .variables import Variable, item_type, join, same_type, stored

if TYPE_CHECKING:
    from collections.abc import Iterable

_TIMES = 64.0  # that such a function runs in a call of it, roughly
_FIRST = 32  # calls in one another, from which on Python is asked how many it allows
_STACK = 192 << 10  # bytes of the stack that calls may take; macOS gives threads 512 KB

C = f"""
/* What a function that is left held: its exit, and the words. The one that it has called is
   before. */
QUIET Word *left_at(Runtime *rt, i64 number, i64 count) {{
    Buf *b = calloc(1, sizeof(Buf) + 8 * count);
    if (!b) __builtin_trap();
    b->refs = 1; b->owner = -1; b->data = b + 1;
    b->dims[0] = number; b->dims[1] = (i64)rt->left;
    link_in(rt, b);
    rt->left = b;
    return b->data;
}}
/* Whether a call has to be Python's, which may have more room, or raises; -1 if a signal's handler
   has raised. */
QUIET int is_deep(Runtime *rt) {{
    if (rt->deepest == {_FIRST}) {{
        if (ask_python(rt)) return -1;
        rt->deepest = rt->python(-2);
        rt->deepest -= rt->deepest == {_FIRST};
    }}
    return rt->depth > rt->deepest;
}}
INLINE int too_deep(Runtime *rt) {{
    i64 used = (char *)rt->stack - (char *)__builtin_frame_address(0);
    if (used > {_STACK} || used < -{_STACK}) return 1;
    return rt->depth > rt->deepest ? is_deep(rt) : 0;
}}
"""
BEGIN = (
    f"rt->depth = 0; rt->deepest = {_FIRST}; rt->left = 0; "
    "rt->stack = __builtin_frame_address(0); rt->outside = &outside;"
)


class Unresolved(Unreadable):
    """What a function gives that calls itself is not known yet: it is found where it does not."""


@dataclass
class Types:
    """Of a function that calls itself: the types of what it is given, by names of its own and of
    the function around it, and of what it gives, once that is known."""

    given: dict[tuple[str, str], Value] = field(default_factory=dict)
    gives: Value | None = None

    def hold(self, key: tuple[str, str], of: Value, r: Reader) -> None:
        """Have a parameter hold such values."""
        known = self.given.get(key)
        if known is None or not same_type(known, of, r):
            self.given.pop(key, None)  # containers in it may be made for other items: `Again`
            self.given[key] = of if known is None else _settled(_joined(known, of, r))


@dataclass
class Called:
    """The C function of one: its name, what it is given, in this order, its parameters, and what
    its reader has read."""

    name: str
    given: list[tuple[str, str]]
    parameters: list[str]
    reader: Reader
    lines: list

    @property
    def head(self) -> str:
        return f"static i64 {self.name}({', '.join(['Runtime *rt', *self.parameters])})"

    def text(self, lines: Iterable[str], taken: dict[str, str]) -> list[str]:
        """Its C. taken: what it sees of the region's, and the C types."""
        return [
            f"__attribute__((noinline)) {self.head} {{",
            "const struct outside *const outside = rt->outside; (void)outside;",
            "Word *const out = rt->out; (void)out;",
            *(f"{ctype}const {x} = outside->{x};" for x, ctype in taken.items()),
            "i64 *const ticks = &rt->ticks;", "TICK(1);", "const i64 deep = too_deep(rt);",
            "if (__builtin_expect(deep != 0, 0)) return deep;",
            *self.reader.declarations, *lines, "}",
        ]  # fmt: skip


def is_known(r: Reader, node: Any) -> bool:
    """Whether a function was seen to call itself."""
    return ("recursive", node) in r.memory


def seen(r: Reader, node: Any) -> None:
    """A function calls itself: all is read again."""
    r.memory["recursive", node] = Types()  # type: ignore[assignment]
    raise Again


def call(r: Reader, f: types.FunctionType, node: Any, env: dict[str, Value], whole: bool) -> Value:
    """The value of a call. env: what the function is given; whole: whether it changes something."""
    if any(name.startswith("@") for name in r.frames[0].env):
        raise Unreadable(f"attributes are set, and {f.__name__} calls itself")
    known: Any = r.memory["recursive", node]
    around, binds = _seen_around(r, f)
    given = {("own", k): x for k, x in env.items()}
    given |= {("outer", k): x for k, x in around.items()}
    before = dict(known.given)
    for key, x in given.items():
        known.hold(key, type_of(r, x), r)
    if known.given != before:
        raise Again
    if known.given.keys() != given.keys():
        raise Unreadable(f"{f.__name__} calls itself, and sees a name that may have no value")
    made = (
        r.reading.get(node) or r.called.get(node) or _read(r, f, node, known, given, binds, whole)
    )
    if known.gives is None:
        raise Unresolved(f"what {f.__name__} gives")
    args: list[str] = []
    for key in made.given:
        v = _fresh(r, known.given[key], args)
        r.lines += v.put(r, given[key], owned=False)
    results: list[str] = []
    result = _fresh(r, known.gives, results)
    bound = {name: _fresh(r, known.given["outer", name], results) for name in binds}
    args += [f"&{name}" for name in results]
    how = r.fresh("how")
    steady = dict.fromkeys(x.buf for _, x in r.steady) if whole else ()
    r.line("".join(["rt->depth++;", *(f" {buf}->steady++;" for buf in steady)]))
    r.line(f"const i64 {how} = {made.name}({', '.join(['rt', *args])});")
    r.line("".join(["rt->depth--;", *(f" {buf}->steady--;" for buf in steady)]))
    r.line(f"if ({how} < 0) return {how};")
    r.leave_if(f"{how}", f"{f.__name__} leaves, or calls itself too often")
    r.owned[-1] += result.buffers()
    if whole:
        r.changed(frozenset((ANYWHERE,)))
    r.accesses.anything()
    r.frames[0].env |= {name: v.load(r) for name, v in bound.items()}
    r.owned[-1] += [name for v in bound.values() for name in v.buffers()]
    return result.load(r)


def _fresh(r: Reader, of: Value, names: list[str]) -> Variable:
    """A variable of a type; its C names are added."""

    def place(ctype: str) -> str:
        names.append(r.fresh("passed"))
        zero = "{0, 0}" if ctype in ("c64", "c128") else "0"
        r.line(f"{ctype} {names[-1]} = {zero};")
        return names[-1]

    return Variable(r, "", of, place)


# Types


def type_of(r: Reader, x: Value) -> Value:
    """A type that holds a value, wherever it comes from."""
    if r.is_local(x):
        return Known(source.tree(x.value))  # it is another object in each reading
    if isinstance(x, (Known, Obj, Rng)):
        return x
    if isinstance(x, Tup) and x.made is list and (x.site or x.path):
        from .lists import growing

        growing(r, x)
    return _settled(item_type(x))


def _settled(of: Value) -> Value:
    if isinstance(of, (Known, Obj, Rng)):
        return of
    of = item_type(of)
    for x in _parts(of):
        if isinstance(x, Conflict):
            raise Unreadable(f"a function that calls itself, of {x.why}")
        if not isinstance(x, HELD) and x != Known(None):
            raise Unreadable("a function that calls itself, of such values")
    return _with_lengths(of)


def _parts(of: Value) -> list[Value]:
    if isinstance(of, Aggregate):
        return [of, *(y for x in of.items for y in _parts(x))]
    return [of, *(_parts(of.value) if isinstance(of, Flagged) else [])]


def _with_lengths(of: Value) -> Value:
    """The same, with extents of arrays that are not negative."""
    if isinstance(of, Arr):
        dims = [d if d.value is not None else replace(d, low=0) for d in of.dims]
        return replace(of, dims=tuple(dims))
    if isinstance(of, Aggregate):
        return replace(of, items=tuple(map(_with_lengths, of.items)))
    return type(of)(_with_lengths(of.value), of.flag) if isinstance(of, Flagged) else of


def _joined(a: Value, b: Value, r: Reader) -> Value:
    of = join(a, b, r)
    if isinstance(of, Conflict):
        raise Unreadable(f"a function that calls itself: {of.why}")
    return of


# What such a function sees


def _seen_around(r: Reader, f: types.FunctionType) -> tuple[dict[str, Value], list[str]]:
    """The values of the names that a function, and those that it calls, see of the one around; and
    which of these they bind."""
    if f not in r.local:
        return {}, []
    home = r.local[f][1]
    found: dict[str, Value] = {}
    binds: set[str] = set()
    waiting = [f]
    while waiting:
        g = waiting.pop()
        binds |= source.outer_names(source.tree(g))
        if r.local[g][1] is not home:
            raise Unreadable("functions of two functions call themselves")
        for name in g.__code__.co_freevars:
            x = home.env.get(name)
            if x is None or name in found or isinstance(x, (Maybe, Conflict)):
                continue
            found[name] = x
            if r.is_local(x):
                waiting.append(x.value)
    if binds - found.keys() or (binds and home is not r.frames[0]):
        raise Unreadable(f"{f.__name__} binds names of another function that have no value")
    return found, sorted(binds)


def _read(
    r: Reader, f: types.FunctionType, node: Any, known: Types,
    given: dict[tuple[str, str], Value], binds: list[str], whole: bool,
) -> Called:  # fmt: skip
    """The C function. given: of a call. binds: names of the function around it that it binds.
    whole: whether it changes something."""
    q = Reader(r.entry, r.grammar)
    q.shares(r, f"r{len(r.called) + len(r.reading)}_")
    q.inlined = (("recursive", id(node)),)
    finding = known.gives is None
    q.is_called = not finding
    outermost = Frame(r.frames[0].function, r.frames[0].node, {}, {})
    parameters: list[str] = []
    made = Called(f"called_{q.prefix}", list(known.given), parameters, q, q.lines)
    env: dict[str, Value] = {}
    around: dict[str, Value] = {}
    for (which, name), of in known.given.items():
        x = given[which, name]
        if isinstance(of, HELD):
            x = Variable(q, name, of, functools.partial(_parameter, q, parameters, "")).load(q)
        (env if which == "own" else around)[name] = x
    home = r.local[f][1] if f in r.local else None
    proxy = home and Frame(home.function, home.node, around, home.scope)
    if proxy is not None and home is r.frames[0]:
        outermost = proxy
    for g, (statement, frame) in r.local.items():
        q.local[g] = statement, proxy if frame is home and proxy is not None else frame
    scope = dict.fromkeys(source.own_names(f, node))
    frame = Frame(f, node, env, scope, whole=whole or finding, scopes=1, home=proxy)
    q.frames += [outermost, frame]
    q.owned.append([])
    if not frame.whole:
        q.site = Leave(0, [])
        q.leaves.append(q.site)
    r.reading[node] = made
    try:
        if known.gives is not None:
            place = functools.partial(_parameter, q, parameters, "*")
            result = Variable(q, "", known.gives, place)
            bound = {name: Variable(q, "", known.given["outer", name], place) for name in binds}
        q.grammar.block(q, node.body, "body")
    finally:
        del r.reading[node]
        r.takes_names(q)
    if not frame.dead:
        names = {name: q.frames[0].env[name] for name in binds}
        frame.returns.append(Return(Known(None), q.lines, q.releases(1), names))
    if not frame.returns:
        raise Unreadable(f"{f.__name__} calls itself, and never returns")
    for y in frame.returns:
        of = type_of(q, y.value)
        if known.gives is None:
            known.gives = of
        elif not same_type(known.gives, of, q):
            before, known.gives = known.gives, None
            known.gives = _settled(_joined(before, of, q))
            finding = True
    before = dict(known.given)
    for name, y in product(binds, frame.returns):
        known.hold(("outer", name), type_of(q, y.attributes[name]), q)
    if finding or known.given != before:
        raise Again
    for y in frame.returns:
        sets = [(v, y.attributes[name]) for name, v in bound.items()]
        y.place += [*stored(q, [(result, y.value), *sets]), *y.releases, "return 0;"]
    if q.site is not None and q.site.used:
        q.lines.append("if (0) { leave_0: return 1; }")
    r.written |= q.written
    r.seconds += q.seconds * r.executions * _TIMES
    # How often it runs is not known: whether it is faster so is to be timed.
    r.single += (q.single or 1) * r.executions * BRANCH
    r.called[node] = made
    return made


def _parameter(q: Reader, parameters: list[str], star: str, ctype: str) -> str:
    name = q.fresh("passed")
    parameters.append(f"{ctype} {star}{name}")
    return f"(*{name})" if star else name


_NAME = re.compile(r"\b[A-Za-z]\w*_(?:in)?\d+\b")


def taken(lines: Iterable[str], declared: dict[str, str]) -> dict[str, str]:
    """What lines name of what is declared in a region."""
    found = dict.fromkeys(name for line in lines for name in _NAME.findall(line))
    return {x: declared[x] for x in found if x in declared}
