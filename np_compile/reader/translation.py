"""The C of a region: the rest of a function from a statement on, for values such as these."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from np_compile.kernels.build.toolchain import compiler, vector_math_available
from np_compile.kernels.targets.c.prelude import prelude

from . import (
    arithmetic,
    masked_loads,
    mathematics,
    objects,
    recursion,
    runtime,
    small,
    spread,
    threads,
    twister,
    words,
)  # fmt: skip
from .calls import called
from .catching import place
from .entry import Entry, Unfit
from .exits import Exit
from .expressions import anything, attribute, expression, operand
from .kernels import Loops, touched
from .leaving import leaving, returning
from .linear import Linear
from .nest import FEW
from .operators import operate
from .read import Again, Frame, Grammar, Leave, OutOfTime, Reader
from .recursion import Called, taken
from .source import may_loop, own_names
from .stack import settle
from .statements import Stopped, block, comprehension, function
from .threads import Threaded, outlined
from .values import SIZES, Known, Unreadable
from .walk import walk

NO_LOOPS = "there is no loop in it"
WRITTEN_OUT = "no loop is left in it: its loops go through a few items, or such calls come to none"
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_TINY = 16  # elements of which a loop is as good as an operation on a single one
_GRAMMAR = Grammar(
    block, anything, expression, operand, function, comprehension, called, operate, attribute, place
)
_GCC = """\
#pragma GCC target("prefer-vector-width=256")
"""
_NO_MASKS = """\
#if __GNUC__ < 14
#pragma GCC optimize("no-tree-loop-if-convert")
#endif
"""
_BITS = """\
#if __GNUC__ < 14
#define NO_CHOICES
#endif
"""


@dataclass
class Refused:
    """Why a function, or a part of it, is not compiled: the reason and the line. next: the
    statement after which reading begins again. plain: whether it runs as it stands then. by_size:
    whether it is for what the values' magnitudes make of its work, which is that. vain: whether
    nothing behind it could be read either, so that such calls are recorded."""

    why: str
    line: int
    next: int
    plain: bool = False
    by_size: bool = False
    vain: bool = False
    work: Work | None = None


@dataclass
class Work:
    """What a region does. seconds: that Python would take for the example, roughly. single: work of
    loops on single elements, or on a few at once. arrays: of loops over arrays, elements, and how
    often they run in loops. certain: whether it is known how often all loops run."""

    seconds: float
    single: float
    arrays: list[tuple[int, float]]
    certain: bool


@dataclass
class Found:
    """What readings of a function have found for such values, that the next one begins with.
    effectful: functions that change something. memory: what was needed earlier. apart: what
    statements are taken apart into, as places in it have a memory."""

    effectful: set[Any] = field(default_factory=set)
    memory: dict[Any, dict[Any, Any]] = field(default_factory=dict)
    apart: dict[Any, Any] = field(default_factory=dict)


# Why what a region does is better done in another way, if it is.
Declines = Callable[[Work], str]


@dataclass
class Read:
    """The C of a region, and what its inputs and exits mean. sites: calls that it makes in Python.
    loops: which threads share, or a device. written: the roots of memory that it may change."""

    text: str
    entry: Entry
    sites: list[Any]
    work: Work
    loops: Loops
    written: frozenset[str]


def read(
    f: Any, node: Any, first: int, example: dict[str, Any], small: bool, declines: Declines,
    loops: Callable[[], bool] = lambda: True, found: Found | None = None, until: float = math.inf,
) -> Read | Refused:  # fmt: skip
    """The rest of a function from a statement of its body on, for values such as these. loops:
    whether it is refused where it has no loop. found: by readings that were out of time. until:
    when this one is, but for what Python would take (`Reader.goes_on`)."""
    found = found or Found()
    effectful = found.effectful
    refused: Refused | None = None
    for _ in range(50):
        # What was found of loops is in names of the reading before.
        found.memory = {key: of for key, of in found.memory.items() if key[0] != "loop"}
        entry = Entry(f, node, example, small)
        r = Reader(entry, _GRAMMAR)
        r.effectful, r.memory, entry.normalized = effectful, found.memory, found.apart
        r.until = until
        try:
            made = _read(r, entry, f, node, first, declines, loops)
        except Again:
            continue
        except Stopped as e:
            made = Refused(str(e), e.node.lineno, 0)
        except (Unreadable, Unfit) as e:
            made = Refused(str(e), node.lineno, 0)
        except OutOfTime:
            raise
        except Exception:
            if not entry.again:  # what comes behind what became known may contradict it
                raise
        if entry.again:
            continue
        if r.puzzling - effectful:
            effectful |= r.puzzling
            continue
        if isinstance(made, Refused) and made.by_size:
            return made
        if isinstance(made, Read) or not entry.takes_lists_as_tuples(r):
            return refused or made if isinstance(made, Refused) else made
        refused = made
    return Refused("it is read again and again", node.lineno, 0)


def _read(
    r: Reader,
    entry: Entry,
    f: Any,
    node: Any,
    first: int,
    declines: Declines,
    loops: Callable[[], bool],
) -> Read | Refused:
    scope = dict.fromkeys(own_names(f, node))
    frame = Frame(f, node, {}, scope)
    r.frames.append(frame)
    frame.env = entry.begin(r)
    nodes = list(node.body[first:])
    body: list = []
    r.site = None
    with r.elsewhere(body):
        block(r, nodes, "body")
        if not frame.dead:
            returning(r, Known(None))
    if entry.again:
        raise Again
    r.on_stack = settle(body)
    arrays = [(math.prod(entry.at(n) for n in dims), times) for dims, times in r.work]
    single = r.single + sum(times for dims, times in r.work if _is_tiny(dims))
    work = Work(r.seconds, single, arrays, not r.guesses)
    if (r.called or _has_loops(body) or not loops()) and (
        why := declines(work)
    ):  # before any C is put together
        return Refused(why, 0, len(node.body), by_size=True, work=work)
    entry.layouts = objects.described(r)
    shared = _flat(body, r, first)
    lists = entry.listed(r.written)
    on_stack = {x.data: SIZES[x.item] * x.n for x in r.on_stack.values()}
    before = [*entry.prologue, *lists]
    functions, lines, kernels = outlined(shared, before, r.declarations, on_stack)
    recursive = _called(r, before)
    top = next((e for e in entry.exits.values() if e.certain and is_first(e)), None)
    has_loops = bool(r.called) or _has_loops([*functions, *lines])
    if not has_loops and (top is not None or loops()):
        if top is not None:
            return Refused(top.reasons[-1] if top.reasons else "", top.line, top.top + 1)
        rest = node.body[first:]
        goes = any(may_loop(x, f) for x in rest) or any(
            isinstance(y, _COMPREHENSIONS) for x in rest for y in walk(x)
        )
        return Refused(WRITTEN_OUT if goes else NO_LOOPS, node.lineno, len(node.body))
    text = _assembled(functions, lists, lines, entry, r, recursive)
    around = True, True, False
    if kernels and not r.called:
        declared = threads.declarations([*before, *r.declarations, *lines])
        around = touched(lines, declared, on_stack)
    shared_loops = Loops(kernels, bool(functions), r.dependent, *around)
    return Read(text, entry, r.tables, work, shared_loops, r.written)


def _is_tiny(dims: list[Linear | None]) -> bool:
    """Whether a loop over an array is of so few elements, for all calls, that recorded it would be
    more C than work."""
    counts = [n.constant if n is not None else None for n in dims]
    return all(n is not None for n in counts) and math.prod(n or 0 for n in counts) <= _TINY


def _has_loops(lines: list) -> bool:
    """Whether there is a loop in C, or in what makes C."""
    return any(
        x.startswith(("for (i64 k_", "for (;;)")) if isinstance(x, str)
        else _has_loops(x.lines if isinstance(x, Threaded) else x)
        for x in lines if not isinstance(x, Leave)
    )  # fmt: skip


def is_first(e: Exit) -> bool:
    return e.frames is not None and all(step[0] == "block" for step in e.frames[0][2])


def _flat(lines: list, r: Reader, first: int) -> list[str | Threaded]:
    made: list[str | Threaded] = []
    for x in lines:
        if isinstance(x, str):
            made.append(x)
        elif isinstance(x, Threaded):
            x.lines = _flat(x.lines, r, first)
            made += [x] if x.spreads else x.lines
        elif isinstance(x, Leave):
            made += leaving(r, x, first)
        else:
            made += _flat(x, r, first)
    return made


def _called(r: Reader, before: list[str]) -> list[str]:
    """The C of functions that call themselves, and of what they see; the last line is the region's.
    before: the lines with which it begins."""
    if not r.called:
        return []
    declared = threads.declarations(before)
    functions: list[tuple[Called, list[str]]] = []
    for f in r.called.values():
        f.reader.on_stack = settle(f.lines)
        functions.append((f, threads.in_one(_flat(f.lines, f.reader, 0))))
    found = [(f, lines, taken(lines, declared)) for f, lines in functions]
    fields = {name: ctype for _, _, those in found for name, ctype in those.items()}
    values = ", ".join(f".{name} = {name}" for name in fields)
    return [
        "struct outside {", *(f"{ctype}{name};" for name, ctype in fields.items()), "i64 end; };",
        *(f"{f.head};" for f, _ in functions),
        *(line for f, lines, those in found for line in f.text(lines, those)),
        f"const struct outside outside = {{{values + ', ' if values else ''}.end = 0}}; "
        + recursion.BEGIN,
    ]  # fmt: skip


def _indented(lines: list[str], depth: int = 1) -> str:
    made = []
    for line in lines:
        depth -= line.startswith("}")
        made.append("    " * depth + line)
        depth += line.endswith("{")
    return "\n".join(made)


def _assembled(
    functions: list[str], lists: list[str], lines: list[str], entry: Entry, r: Reader,
    recursive: list[str],
) -> str:  # fmt: skip
    inner, called = _indented(functions, 0), _indented(recursive[:-1], 0)
    before = [*entry.prologue, *entry.apart(), *lists, *recursive[-1:]]
    body = _indented([*before, *r.declarations, *lines])
    more = "".join(
        part.C for part in (small, mathematics, twister)
        if any(f"{name}(" in inner + called + body for name in part.NAMES)
    )  # fmt: skip
    order = words.order(inner + called + body)
    given_back = "if (k == -1 || k > 0) give_back_lists(rt);\n" if lists else ""
    text = (
        runtime.C + arithmetic.complex_numbers() + runtime.draws()
        + arithmetic.of_libm(inner + called + body) + more + "\n".join([*order, ""])
        + (spread.C + inner + "\n" if functions else "")
        + runtime.of_python(bool(lists), "call_numpy(" in called + body)
        + (recursion.C + called + "\n" if called else "")
        + "static i64 run(Runtime *rt, Word *in) {\nWord *out = rt->out;\nrt->deadline = 0;\n"
        + f"i64 counted = -{runtime.EVERY}, *const ticks = &counted;\n"
        + ("rt->ticks = counted;\n" if functions or called else "") + body + "\n}\n"
        + "i64 region(Runtime *rt, Word *in) {\n    i64 k = run(rt, in);\n"
        + "    empty_spares(rt);\n" + given_back + "    return k;\n}\n"
        + runtime.FINISH
    )  # fmt: skip
    head = ""
    if compiler().kind == "gcc":
        parts = [*functions, *recursive, *lines]
        own = not lists and not more and not masked_loads.may_be(parts)
        head = _GCC if own else _GCC + _NO_MASKS
        if not own:
            head += _BITS if masked_loads.has_elementary(parts) else ""
            text = text.replace(FEW, "#pragma GCC unroll 8")
    return head + prelude(text, vector_math_available(compiler().kind)) + text
