"""The state of reading a function: the C written so far, names, facts, and ways to leave.

Statements are read in order. Each value gets a C name of its own and keeps it; names that loops or
branches change have a C variable too (`Variable`), which is copied where the loop's body, or what
follows the branch, begins. Where compiled code cannot go on (an error, an integer beyond 64 bits, a
statement that cannot be read) it *leaves*: the values of all names are stored, and Python goes on
at the beginning of the statement. So a statement changes nothing before its last check.
"""

from __future__ import annotations

import ast
import functools
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, NoReturn

from . import source
from .dependence import Accesses
from .linear import SAFE, WIDE, Facts, Linear
from .values import C_TYPE, Conflict, Known, Maybe, Num, Opaque, OrNone, Unreadable, Value
from .walk import children, walk

BRANCH = 8  # operations on single elements that a test of a value is as good as
SOME = 30  # iterations of a loop of which nothing is known
LIBRARY = 32  # and that a function is as good as which recorded code asks a library for
_STATEMENT, _OPERATION = 5e-8, 2e-7  # seconds in Python and NumPy, of small arrays


class Again(Exception):
    """Something became known that was needed earlier: everything is read again."""


class OutOfTime(Exception):
    """Reading has taken as long as it may."""


@dataclass
class Return:
    """A place where a function that is read in place returns. releases: the C that gives back what
    was made. attributes: what those of objects hold there that were set."""

    value: Value
    place: list
    releases: list[str]
    attributes: dict[str, Value]


@dataclass
class Frame:
    """A function that is being read: the outermost one, or one that it calls.

    env: the value of each name. path: where it is, as `resume.py` wants it. whole: whether it
    leaves at its own statements; one that changes nothing is run again from its call. home: of a
    function that another one makes, that one, whose names it sees. inside: names of comprehensions
    that are being read, which such functions do not see. why: of a statement that could not be
    read, the last one so far. held: of each `finally` and `with` that it
    is in, how deep in the path that is, and what runs where it ends.
    """

    function: Any
    node: Any
    env: dict[str, Value]
    scope: dict[str, Any]
    path: list[tuple] = field(default_factory=list)
    whole: bool = True
    returns: list[Return] = field(default_factory=list)
    label: str = ""
    dead: bool = False
    made: set[str] = field(default_factory=set)
    scopes: int = 0
    home: Frame | None = None
    inside: frozenset[str] = frozenset()
    why: str = ""
    held: list[tuple[int, list[ast.stmt]]] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """How many branches and loops of the function it is in."""
        return sum(step[0] != "block" for step in self.path)


def line_of(path: list[tuple]) -> int:
    """Where in the source a statement is."""
    return next((s[1][s[2]].lineno for s in reversed(path) if s[0] == "block"), 0)


@dataclass
class Leave:
    """A place where compiled code may leave. frames: of each function, from the outermost on, the
    path and the values of names. reasons: why it may. outer: the place of the statement around it.
    made: memory made since. changed: whether something else has been changed since, so that what
    was done cannot be done again. first: the C that comes first there."""

    number: int
    frames: list[tuple[Frame, list[tuple], dict[str, Value]]]
    outer: Leave | None = None
    reasons: dict[str, None] = field(default_factory=dict)
    used: bool = False
    certain: bool = False
    made: set[str] = field(default_factory=set)
    changed: bool = False
    first: list[str] = field(default_factory=list)


@dataclass
class LoopState:
    """A loop that is being read. ends, agains: the names at each `break` and `continue`, and the
    lines that store them. steady: containers that must not grow or shrink meanwhile. counted: the
    names of a frame that it does nothing to but add small constants. entry: the names at the
    beginning of an iteration. jumps: the places of the C that goes out of it."""

    scopes: int
    steady: tuple[Any, ...] = ()
    frame: Frame | None = None
    counted: frozenset[str] = frozenset()
    ends: list[tuple[list[dict[str, Value]], list]] = field(default_factory=list)
    agains: list[tuple[list[dict[str, Value]], list]] = field(default_factory=list)
    entry: list[dict[str, Value]] = field(default_factory=list)
    jumps: list[list[str]] = field(default_factory=list)

    def breaks(self) -> list[str]:
        """A place with the C that goes out of it."""
        place = ["break;"]
        self.jumps.append(place)
        return place


class Line(str):
    """A line of C, and what it does, for who changes the loop around it (`innermost.py`)."""

    what: Any

    def __new__(cls, text: str, what: Any) -> Line:
        made = super().__new__(cls, text)
        made.what = what
        return made


@dataclass(frozen=True)
class Grammar:
    """What reads blocks, expressions, functions and comprehensions; they need each other."""

    block: Callable[..., None]
    anything: Callable[[Any, ast.AST], Value]
    expression: Callable[[Any, ast.AST], Value]
    operand: Callable[[Any, ast.AST], Value]
    function: Callable[..., Value]
    comprehension: Callable[..., Value]
    called: Callable[..., Value]
    operate: Callable[..., Value]
    attribute: Callable[..., Value]
    place: Callable[..., str | None]  # that catches an exception (`catching.py`)


class Reader:
    """What is known while functions are read. lines: where C is written to."""

    def __init__(self, entry: Any, grammar: Grammar) -> None:
        self.entry, self.grammar = entry, grammar
        self.lines: list[Any] = []
        self.facts = Facts()
        self.accesses = Accesses(self.facts)
        self.born: list[str] = []  # memory that was made
        self.frames: list[Frame] = []
        self.leaves: list[Leave] = []
        self.site: Leave | None = None
        self.loops: list[LoopState] = []
        self.catches: list[Any] = []  # each `try` that it is in (`catching.py`)
        self.sums: dict[str, int] = {}  # what a loop adds to, and how many times it has
        # In a loop, with the functions it calls: elements that it has added to, as their array and
        # indices, and attributes that it has set.
        self.added: set[Any] | None = None
        self.steady: list[tuple[int, Any]] = []  # of all loops that run: in which frame
        self.owned: list[list[str]] = [[]]
        self.memory: dict[Any, dict[Any, Any]] = {}
        self.displays: dict[Any, int] = {}  # how many items a list has where it is written out
        self.missing: set[str] = set()  # names asked for that have no value, or may have none
        self.tables: list[Any] = []
        self.effectful: set[Any] = set()
        # Functions that ask for an item of what nothing is known of, and may be who gives it items.
        self.puzzling: set[Any] = set()
        self.local: dict[Any, tuple[Any, Frame]] = {}  # functions: the statement that makes each
        self.inlined: tuple = ()
        self.totals: set[str] = set()  # names of sums that comprehensions make
        self.cold = 0
        self.work: list[tuple[list[Linear | None], float]] = []
        self.executions = 1.0  # of the statement that is being read, in a call, roughly
        self.seconds = 0.0  # that Python would take, roughly
        self.until = math.inf  # the thread's time up to which it may read
        self.guesses = False  # how often a loop runs
        self.dependent: dict[int, tuple[int, str]] = {}  # loops: where they end, why one thread's
        self.written: frozenset[str] = frozenset()  # memory that may be changed, by its roots
        self.single = 0.0  # elements, and tests of values, in loops: what recording is no good at
        self.declarations: list[str] = []
        self.on_stack: dict[str, Any] = {}  # arrays without memory of their own, once all is read
        self.here: Any = None
        self.alone: Any = None
        self.hoisted = False
        self.lists = 0  # that were made by this statement
        self.comprehensions: list[ast.AST] = []  # that are being read
        self.late: set[str] = set()  # attributes that a loop sets
        self.quiet = False  # whether loops do not look at what Python wants
        self.begun: dict[str, int] = {}  # objects: in which frame their `__init__` runs
        self.called: dict[Any, Any] = {}  # functions that call themselves, by their trees
        self.reading: dict[Any, Any] = {}  # those that are being read
        self.is_called = False  # whether it reads one of these
        self._count = self._first = 0
        self._prefix = ""

    def shares(self, other: Reader, prefix: str) -> None:
        """Read a C function of its own for another reader. prefix: of its names in C."""
        self.effectful, self.puzzling = other.effectful, other.puzzling
        self.until = other.until
        self.memory, self.tables = other.memory, other.tables
        self.displays = other.displays
        self.called, self.reading = other.called, other.reading
        self.facts.sees(other.facts)
        self._first, self._prefix = other._first, prefix

    def takes_names(self, other: Reader) -> None:
        """Names that another reader has given to what stands before all else are taken."""
        self._first = other._first

    @property
    def prefix(self) -> str:
        """What its names in C have before their number."""
        return self._prefix

    def goes_on_from(self, names: int) -> None:
        """As many names are taken."""
        self._count = names

    # Text

    def fresh(self, hint: str = "v") -> str:
        self._count += 1
        return f"{hint}_{self._prefix}{self._count}"

    def hidden(self, hint: str, node: ast.AST) -> str:
        """The name of a value that belongs to a node, which is none of the function's. Where a node
        lies does not tell it apart: what a generator gives is written out for each of its loops."""
        cache, key = self.entry.normalized, ("hidden", id(node))
        if key not in cache:
            cache[key] = len(cache), node
        return f"__{hint}{node.lineno}_{cache[key][0]}"  # type: ignore[attr-defined]

    @property
    def names(self) -> int:
        """How many C names there are."""
        return self._count

    @contextmanager
    def before(self, lines: list) -> Iterator[None]:
        """What is written meanwhile comes before all else, and stays."""
        here, self._count = self._count, self._first
        outer, self._prefix = self._prefix, "in"
        try:
            with self.elsewhere(lines):
                yield
        finally:
            self._first, self._count = self._count, here
            self._prefix = outer

    def line(self, text: str) -> None:
        self.lines.append(text)

    @contextmanager
    def block(self, head: str) -> Iterator[list]:
        """What is written meanwhile is in braces after the head."""
        inner: list = []
        outer = self.lines
        self.lines = inner
        try:
            yield inner
        finally:
            self.lines = outer
        outer += [head + " {", inner, "}"]

    @contextmanager
    def elsewhere(self, lines: list) -> Iterator[None]:
        """What is written meanwhile goes to these lines."""
        outer, self.lines = self.lines, lines
        try:
            yield
        finally:
            self.lines = outer

    def named(self, text: str, ctype: str, hint: str = "v") -> str:
        name = self.fresh(hint)
        fixed = f"{ctype}const" if ctype.endswith("*") else f"const {ctype}"
        self.line(f"{fixed} {name} = {text};")
        if text in self.sums:
            self.sums[name] = self.sums[text]
        return name

    def save(self) -> tuple:
        frame = self.frame
        return (
            len(self.lines), self.snapshot(), frame.dead, self.facts.mark(), len(self.leaves),
            [len(o) for o in self.owned], len(self.tables), len(frame.returns), len(self.work),
            len(self.declarations), list(frame.path), self._count, self.seconds,
            self.single, [(site, site.changed) for site in self._sites()],
            len(self.accesses.noted), len(self.born), len(self.accesses.counters),
            len(self.called), dict(self.sums), [len(x.places) for x in self.catches],
        )  # fmt: skip

    def restore(self, saved: tuple) -> None:
        """Forget what was read since."""
        (lines, names, dead, mark, leaves, owned, tables, returns, work, declared, path, count,
         seconds, single, changed, noted, born, counters, called, sums, places) = saved  # fmt: skip
        frame = self.frame
        del self.lines[lines:]
        self.set_names(names)
        frame.dead = dead
        self.sums = dict(sums)
        for catch, n in zip(self.catches, places, strict=False):
            del catch.places[n:]
        self.facts.back_to(mark)
        del self.leaves[leaves:]
        del self.owned[len(owned) :]
        for names, n in zip(self.owned, owned, strict=True):
            del names[n:]
        del self.tables[tables:]
        del frame.returns[returns:]
        del self.work[work:]
        del self.declarations[declared:]
        frame.path[:] = path
        self.seconds, self.single = seconds, single
        del self.accesses.noted[noted:]
        for made in [f.made for f in self.frames] + [site.made for site in self._sites()]:
            made.difference_update(self.born[born:])
        del self.born[born:]
        del self.accesses.counters[counters:]
        for node in list(self.called)[called:]:
            del self.called[node]
        self._count = count  # so that what is read again has the same names
        for site, was in changed:
            site.changed = was

    def is_local(self, x: Value) -> bool:
        """Whether a value is a function that is made in the ones that are read: it has no cells."""
        return isinstance(x, Known) and isinstance(x.value, FunctionType) and x.value in self.local

    # Names

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    @property
    def env(self) -> dict[str, Value]:
        return self.frames[-1].env

    @property
    def base(self) -> int:
        """The first function whose C is in this one's: of one that calls itself, that one."""
        return int(self.inlined[:1] != () and self.inlined[0][0] == "recursive")

    @property
    def finds(self) -> bool:
        """Whether it looks for nothing but what a function gives that calls itself."""
        return self.base > 0 and not self.is_called

    @property
    def environments(self) -> list[dict[str, Value]]:
        """The names of the function that is read, and of the outermost one."""
        inner, outermost = self.frames[-1], self.frames[0]
        return [inner.env] if inner is outermost else [inner.env, outermost.env]

    def snapshot(self) -> list[dict[str, Value]]:
        """The names as they are now."""
        return [dict(env) for env in self.environments]

    def set_names(self, names: list[dict[str, Value]]) -> None:
        """Make the names those of a snapshot."""
        for frame, env in zip((self.frames[-1], self.frames[0]), names, strict=False):
            frame.env = dict(env)

    # Numbers

    def number(self, text: str, rep: str, kinds: tuple[str, ...], **more: Any) -> Num:
        """A number with a C name of its own."""
        if _is_name(text):
            return Num(text, rep, kinds, **more)
        return Num(self.named(text, C_TYPE[rep]), rep, kinds, **more)

    def integer(
        self, text: str, low: int = -WIDE, high: int = WIDE - 1, lin: Linear | None = None
    ) -> Num:
        """A Python integer with a C name of its own."""
        if lin is not None and lin.constant is not None:
            return int_constant(lin.constant)
        if lin is None:
            name = text if _is_name(text) and text not in self.facts.ranges else None
            name = name or self.named(text, "i64", "n")
            lin = self.facts.name(name, low, high)
            return Num(name, "i64", ("int",), lin=lin, low=low, high=high)
        low, high = self.limits(lin, low, high)
        name = text if _is_name(text) else self.named(text, "i64", "n")
        return Num(name, "i64", ("int",), lin=lin, low=low, high=high)

    def limits(self, lin: Linear, low: int = -WIDE, high: int = WIDE - 1) -> tuple[int, int]:
        a, b = self.facts.bounds(lin)
        return max(low, a), min(high, b)

    def is_safe(self, lin: Linear) -> bool:
        """Whether a linear form is far from 64 bits."""
        low, high = self.facts.bounds(lin)
        return (low > -SAFE or self.facts.proves(lin + SAFE)) and (
            high < SAFE or self.facts.proves(Linear(SAFE) - lin)
        )

    def list_site(self) -> tuple:
        """What names the place in the source where a list is made."""
        self.lists += 1
        return "list", str(self.here), self.lists

    # Leaving

    def fails_if(self, condition: str, why: str, kind: type[Exception]) -> str | None:
        """Where the C condition is true, Python raises an exception of this class: go to what
        catches it, if that is compiled, else leave; the C of leaving."""
        if self.catches and self.site is not None and not self.site.changed:
            lines: list = []
            with self.elsewhere(lines):
                goes = self.grammar.place(self, kind)
            if goes is not None:
                self.lines += [f"if (__builtin_expect({condition}, 0)) {{", lines, "}"]
                return None
        return self.leave_if(condition, why)

    def leave_if(self, condition: str, why: str) -> str:
        """Leave at the beginning of the statement, where the C condition is true; the C of it."""
        site = self.site
        if site is None:
            raise Unreadable(f"{why}, between statements")
        if site.changed:
            raise Unreadable(f"{why}, after a change in the same statement")
        site.used = True
        site.reasons[why] = None
        text = f"if (__builtin_expect({condition}, 0)) goto leave_{site.number};"
        self.line(text)
        return text

    def leave(self, why: str) -> None:
        """Leave here, in any case."""
        site = self.site
        assert site is not None
        assert not site.changed
        site.used = site.certain = True
        site.reasons[why] = None
        self.line(f"goto leave_{site.number};")

    @contextmanager
    def staying(self) -> Iterator[None]:
        """What is written meanwhile cannot leave."""
        site, self.site = self.site, None
        try:
            yield
        finally:
            self.site = site

    @contextmanager
    def at_statement(self) -> Iterator[None]:
        """What is written meanwhile may leave at its beginning."""
        if not self.frame.whole:
            yield
            return
        outer = self.site
        own = self.frames[self.base :]
        frames = [(f, list(f.path), dict(f.env)) for f in own if f.whole]
        self.site = site = Leave(len(self.leaves), frames, outer)
        self.leaves.append(site)
        place: list = []
        self.lines.append(place)
        try:
            yield
            if site.used:
                place.append(site)
        finally:
            self.site = outer

    # Memory that a block has made, and what changes memory

    def made_here(self, buf: str) -> None:
        """Memory that belongs to the block that is being written."""
        self.owned[-1].append(buf)
        self.born.append(buf)
        for f in self.frames:
            f.made.add(buf)
        for site in self._sites():
            site.made.add(buf)

    def _sites(self) -> Iterator[Leave]:
        """The places of the statements that are being read, from the innermost on."""
        site = self.site
        while site is not None:
            yield site
            site = site.outer

    def changed(self, roots: frozenset[str] | None = None, noted: bool = False) -> None:
        """What was just written changes something that outlives the call of a function: memory, or
        else. noted: whether the access is."""
        self.written |= roots or frozenset()
        if not noted:
            self.accesses.anything(roots)
        for site in self._sites():
            site.changed |= roots is None or not roots <= site.made
        outlives = [
            f.function for f in self.frames
            if not f.whole and (roots is None or not roots <= f.made)
        ]  # fmt: skip
        if outlives:
            if self.comprehensions:
                self.apart(self.comprehensions[0])
            self.effectful |= {f.__code__ for f in outlives}
            self.entry.again = True

    def apart(self, node: ast.AST) -> NoReturn:
        """Read all again, with a loop in the place of a comprehension that changes something."""
        scopes = (ast.Lambda, ast.NamedExpr)  # whose names are not to be renamed
        if ("apart", node) in self.memory or any(isinstance(x, scopes) for x in walk(node)):
            raise Unreadable("a change within an expression")
        self.memory["apart", node] = {}
        raise Again

    @contextmanager
    def branch(self) -> Iterator[None]:
        """What is read meanwhile is on one of two ways."""
        self.cold += 1
        try:
            yield
        finally:
            self.cold -= 1

    @contextmanager
    def in_loop(self, state: LoopState, times: float) -> Iterator[None]:
        """What is read meanwhile is a loop's body. times: that it runs, roughly."""
        self.loops.append(state)
        steady = len(self.steady)
        self.steady += [(len(self.frames), x) for x in state.steady]
        before, self.executions = self.executions, self.executions * times
        added, self.added = self.added, set()
        try:
            yield
        finally:
            self.added = added
            self.loops.pop()
            del self.steady[steady:]
            self.executions = before

    def goes_on(self) -> None:
        """Look whether there is time to read on: what Python would take longer for may be read for
        as long."""
        if time.thread_time() > self.until + (0.0 if self.guesses else self.seconds):
            raise OutOfTime

    def one_by_one(self, weight: int = 1) -> None:
        """Note work of a loop on single elements, or on parts that change with the iteration."""
        if self.is_inside:
            self.single += self.executions * weight

    def ran(self, node: ast.AST) -> None:
        """Note that Python would carry out a statement."""
        work = _operations(node)
        self.seconds += self.executions * (_STATEMENT + work * _OPERATION)

    @property
    def is_inside(self) -> bool:
        """Whether what is read is in a loop of this function or of one that calls it."""
        if self.is_called:
            return True
        return any(step[0] in ("for", "while") for f in self.frames for step in f.path)

    def is_read_later(self, loop: Any, name: str, in_it: bool = False) -> bool:
        """Whether a name that a loop gives a value may be asked for behind it. in_it: or in the
        next iteration."""
        live = self.entry.live(self.frame.node).get(id(loop))
        if live is None:  # one that is written otherwise than in the source
            return name in self.totals or self.entry.loads(self.frame.node, loop).get(name, 0) > 0
        return name in live.after or (in_it and name in live.begin)

    def forget_dead(self, loop: Any, names: Iterable[str]) -> None:
        """Forget the values of names that nobody asks for before they are bound again."""
        if id(loop) in self.entry.live(self.frame.node):
            for name in names:
                if name in self.env and not self.is_read_later(loop, name, in_it=True):
                    del self.env[name]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Arrays that are made meanwhile are given back at the end."""
        self.owned.append([])
        mark = self.facts.mark()
        try:
            yield
        finally:
            self.owned.pop()
            self.facts.back_to(mark)

    def releases(self, since: int) -> list[str]:
        """The C that gives back what the scopes from that one on have made."""
        return [f"release(rt, {name});" for names in self.owned[since:] for name in names]


def int_constant(value: int) -> Num:
    from .values import python

    return python(value)


def _is_name(text: str) -> bool:
    return text.isidentifier()


def C_STORAGE(rep: str) -> str:
    from np_compile.kernels.ir.dtypes import DTYPES

    return DTYPES[rep].storage if rep in DTYPES else rep


@functools.lru_cache(4096)
def _operations(node: ast.AST) -> int:
    """The operations of a statement itself, without those of its blocks."""
    found, waiting = 0, [node]
    while waiting:
        for x in children(waiting.pop()):
            if not isinstance(x, ast.stmt):
                found += isinstance(x, (ast.Call, ast.BinOp, ast.Subscript, ast.Compare))
                waiting.append(x)
    return found


def assigned(nodes: list[ast.AST]) -> dict[str, None]:
    """The names, and dotted names, that statements may bind, in order."""
    return dict.fromkeys(name for node in nodes for name in _assigned(node))


@functools.lru_cache(1 << 14)
def _assigned(statement: ast.AST) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for node in walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found[node.id] = None
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = dotted(node)
            if name:
                found[name] = None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= dict.fromkeys(map(imported_name, node.names))
    return tuple(found)


def imported_name(x: ast.alias) -> str:
    """The name that an import binds."""
    return x.asname or x.name.partition(".")[0]


def dotted(node: ast.AST) -> str:
    """`a.b.c` of an attribute of a name, or nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def is_effectful(r: Reader, f: FunctionType) -> bool:
    """Whether a function changes what outlives its calls, as far as is known."""
    if f.__code__ not in r.effectful and source.stores_into_arguments(f):
        r.effectful.add(f.__code__)
    return f.__code__ in r.effectful


def certain(r: Reader, x: Value) -> Value:
    """A value that is not None, where it may be."""
    if isinstance(x, OrNone):
        r.leave_if(f"!{x.flag}", "it is None")
        return x.value
    return x


_OUTER = re.compile(r"^(global|cell)/.* at 0x\w+>/")  # whose name it is


def settled(r: Reader, x: Value, name: str) -> Value:
    """The value of a name, if it is sure to have one; or of an attribute or an item of one."""
    if isinstance(x, (Conflict, Opaque)):
        shown = _OUTER.sub("", name).replace(".[", "[")
        raise Unreadable(f"{shown if '[' in shown else repr(shown)}: {x.why}")
    if isinstance(x, Maybe):
        r.leave_if(f"!{x.flag}", f"the name {name!r} has no value yet")
        return x.value
    return x
