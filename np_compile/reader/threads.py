"""Loops whose iterations are independent, on all cores.

Such a loop is a C function of its own, of a range of iterations and of what it takes from around
it. It begins in the calling thread, until it is known how long an iteration takes; where what is
ahead is worth it, the threads of the kernels' pool take the rest in chunks. Where one of them has
to leave, the arrays get the values back that they had, and the calling thread goes through the
iterations in their order; where one is interrupted, it is as if none had been made. So all is as
if there were one thread.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .dependence import Independence
from .kernels import NO_DEVICE, Kernel, kernel
from .read import Reader, line_of
from .values import Arr, Num
from .variables import Variable

WORTH = 30_000  # nanoseconds of work ahead from which threads are worth calling

_NAME = re.compile(r"\b[A-Za-z]\w*_(?:in)?\d+\b")
_DECLARED = re.compile(
    r"^(?:for \()?(const )?(\w+) (\*?) ?(?:const )?(\w+_(?:in)?\d+)(\[\d+\])?(?= =|;)"
)


_WHOLE = re.compile(r"for \(i64 (\w+) = 0; \1 < (.+); \1\+\+\) \{")
_LONG = 1 << 13  # elements
_PART = 8  # of the elements of others, less than which are a part
_PIECES = 64  # of a reduction, at most: see `pieces_of`
_ELEMENT = 5e-8  # seconds that Python would take for one: C takes a fiftieth

_LABEL = re.compile(r"^\w+: ;")
_GOTO = re.compile(r"\bgoto (\w+);")


@dataclass
class Iteration:
    """What one iteration does. counter: its C name. body: its C, in which the ways out are not
    written. seconds: that Python would take, roughly; times: how often it does. last: the line in
    the source where it ends. light: whether that is too little for threads to share, whose calls
    come one after the other."""

    counter: str
    body: list
    seconds: float
    times: float
    last: int
    light: bool


@dataclass
class Threaded:
    """A loop with independent iterations, in the lines of a reader. line: in the source. number: of
    its C function.
    lines: the loop, from `from` to before `to`. n: how many iterations there are. kept: variables
    of which the last iteration gives the value. sums: integers that all add to. written: the
    memory that is written to. tests: C that is true where iterations may depend on each other all
    the same. spreads: whether it may be worth sharing, by threads or a device; the lines of one
    that is not are all there is to it. where: C that is true where it is shared, else it is as it
    stands; "" where it always is. on_device: whether a device may have it. before: C that comes
    before it where it is shared; alone: where it is not. behind: in both places."""

    line: int
    number: str
    lines: list
    n: str
    kept: list[Variable]
    sums: list[Variable]
    written: list[str]
    tests: list[str]
    iteration: Iteration
    spreads: bool
    where: str = ""
    on_device: bool = True
    before: Sequence[str] = ()
    alone: Sequence[str] = ()
    behind: Sequence[str] = ()

    def in_place(self, lines: list[str]) -> list[str]:
        """The C of the loop where it stands."""
        n = f"const i64 from = 0, to = {self.n};"
        return ["{", *self.alone, n, *lines, *self.behind, "}"]

    def outlined(
        self, lines: list[str], around: Iterable[str], shared: list[str],
        number: int, small: Mapping[str, int],
    ) -> tuple[list[str], list[str], Kernel | None]:  # fmt: skip
        """The C of its function, and of the call; the loop as a kernel of a device. around: lines
        that declare what it may take. shared: declarations of variables that each user gives a
        value first. number: of the kernel. small: the bytes of arrays on the stack."""
        used = dict.fromkeys(name for line in lines for name in _NAME.findall(_code(line)))
        inner = lines
        lines = [x for x in shared if declarations([x]).keys() & used.keys()] + lines
        kept = declarations(line for v in self.kept for line in v.declare)
        sums = declarations(line for v in self.sums for line in v.declare)
        own, declared = declarations(lines), declarations([*around, *self.before])
        rests_on = {x for text in (*self.tests, *self.written) for x in _NAME.findall(text)}
        if rests_on & own.keys() or _jumps(lines):
            return [], self.in_place(lines), None
        taken = {x: declared[x] for x in used if x in declared and x not in own | kept | sums}
        context = f"struct in_{self.number}"
        fields = [*taken.items(), *kept.items()]
        back = "".join(f" c->{x} = {x};" for x in kept) + "".join(
            f" c->{x}.all = {x};" for x in sums
        )
        apart = " || ".join(f"added(&c->{x}, {x})" for x in sums)
        function = [
            f"{context} {{", *(f"{ctype}{name};" for name, ctype in fields),
            *(f"Sum {x};" for x in sums), "};",
            f"QUIET i64 loop_{self.number}(Runtime *rt, void *context, i64 from, i64 to) {{",
            f"{context} *c = context;", "Word *const out = rt->out;", "(void)out;",
            "i64 counted = rt->ticks, *const ticks = &counted;",
            *(f"{ctype}const {x} = c->{x};" for x, ctype in taken.items()),
            *(f"{ctype}{x} = rt->job ? ({ctype}){_zero(ctype)} : c->{x};"
              for x, ctype in kept.items()),
            *(f"i64 {x} = rt->job ? 0 : c->{x}.all;" for x in sums),
            *lines,
            *([f"if (!rt->job) {{{back} }}"] if back else []),
            *([f"if (rt->job && ({apart})) return -2;"] if sums else []),
            "rt->ticks = counted;", "return 0;", "}",
        ]  # fmt: skip
        values = ", ".join(
            [*(f".{x} = {x}" for x, _ in fields), *(f".{x} = {{{x}, 0}}" for x in sums)]
        )
        if not self.on_device:
            return function, [
                f"if (__builtin_expect({self.where}, 0)) {{", *self.before,
                f"{context} c = {{{values}}};", "static i64 pace[2];",
                f"const i64 ended = over_all(rt, loop_{self.number}, &c, {self.n}, pace);",
                "if (__builtin_expect(ended != 0, 0)) return ended;", *self.behind,
                "} else {", *self.in_place(inner), "}",
            ], None  # fmt: skip
        held = [x for x, ctype in taken.items() if ctype == "Buf *"]
        may_fail = bool(sums) or any("return" in _code(line) for line in lines)
        written = self.written
        call = (
            f"spread(rt, loop_{self.number}, {number}, &c, {self.n}, {int(bool(kept))}, pace, "
            f"(const Span[]){{{', '.join(written) or '{0, 0}'}}}, {len(written)}, "
            f"{len(written) if may_fail else 0}, "
            f"(Buf *const[]){{{', '.join(held) or '0'}}}, {len(held)}, "
            f"(Sum *const[]){{{', '.join(f'&c.{x}' for x in sums) or '0'}}}, {len(sums)})"
        )
        if self.tests:
            call = (
                f"{' || '.join(self.tests)} ? alone(rt, loop_{self.number}, &c, {self.n}) : {call}"
            )
        at_place = [
            "{", f"{context} c = {{{values}}};", "static i64 pace[2];", f"const i64 left = {call};",
            *(f"{name} = c.{name};" for name in kept), *(f"{x} = c.{x}.all;" for x in sums),
            "if (__builtin_expect(left != 0, 0)) return left;", "}",
        ]  # fmt: skip
        if self.where:
            at_place = [f"if ({self.where}) {{", *at_place, NO_DEVICE, *self.in_place(inner), "}"]
        return function, at_place, kernel(self, fields, list(sums), shared, small)


def threaded(
    r: Reader, line: int, counter: str, lines: list, n: str, kept: list[Variable],
    sums: list[Variable], found: Independence, iteration: Iteration, spreads: bool,
) -> Threaded:  # fmt: skip
    """A loop whose iterations are independent, where what it rests on holds."""
    tests = rests_on(r, found)
    written = [f"{{{a.span}}}" for a in found.written]
    number = counter.rpartition("_")[2]
    where = "rt->device" if iteration.light else ""  # else it is as it stands
    return Threaded(line, number, lines, n, kept, sums, written, tests, iteration, spreads, where)


@contextmanager
def shared(r: Reader, target: Arr, dims: Sequence[Num] | None = None) -> Iterator[None]:
    """A block that writes loops over all elements of an array, each of which gives one its value:
    threads share the outermost where the array is long, as the C asks in each call. A device may
    have it if it is long in the call at hand. dims: the extents of what is reduced to it."""
    outer, r.lines = r.lines, []
    try:
        yield
    finally:
        lines, r.lines = r.lines, outer
    extents = {d.text: r.entry.at(d.lin) for d in target.dims}
    n = math.prod(extents[d.text] for d in target.dims) if dims is None else 0
    dims = target.dims if dims is None else dims
    can_be = is_long(dims) and not r.quiet and (n >= _LONG or not _is_part(r, dims))
    head = lines[-3] if len(lines) > 2 and can_be else ""
    found = re.fullmatch(_WHOLE, head) if isinstance(head, str) else None
    if found is None:
        r.lines += lines
        return
    counter, extent = found.groups()
    head = f"for (i64 {counter} = from; {counter} < to; {counter}++) {{"
    line, number = line_of(r.frame.path), counter.rpartition("_")[2]
    each = n / max(extents[extent], 1) * _ELEMENT
    one = Iteration(counter, lines[-2], each, 1, line, False)
    place = line, number, [*lines[:-3], head, *lines[-2:]], extent
    long = f"{_count(dims)} >= {_LONG}"
    where = f"rt->device || {long}" if n >= _LONG else f"{long} && !rt->device && rt->threads != 1"
    r.lines.append(
        Threaded(*place, [], [], [f"{{{target.span}}}"], [], one, True, where, n >= _LONG)
    )


def is_long(dims: Sequence[Num]) -> bool:
    """Whether there may be so many elements that threads share them."""
    return any(d.value is None for d in dims) or math.prod(d.value or 0 for d in dims) >= _LONG


def _is_part(r: Reader, dims: Sequence[Num]) -> bool:
    """Whether these are few elements beside what others go over, as a row of a matrix: all of that
    would be very long before these are long."""
    sizes = [math.prod(r.entry.at(n) for n in all_dims) for all_dims, _ in r.work]
    return 0 < math.prod(r.entry.at(d.lin) for d in dims) * _PART < max(sizes, default=0)


def _count(dims: Sequence[Num]) -> str:
    return " * ".join(d.text for d in dims) or "1"


@dataclass
class Pieces:
    """What is reduced in pieces: the C of the number of one and of how many there are. found: C
    types and names of what the block finds of a piece. results: names of the same of all."""

    piece: str
    pieces: str
    found: list[tuple[str, str]]
    results: list[str]

    def bounds(self, r: Reader, n: str) -> tuple[str, str]:
        """The first of n elements of the piece, and the first one behind it."""
        low = r.named(f"{self.piece} * {n} / {self.pieces}", "i64", "low")
        return low, r.named(f"({self.piece} + 1) * {n} / {self.pieces}", "i64", "high")


@contextmanager
def in_pieces(
    r: Reader, dims: Sequence[Num], join: Callable[[Sequence[str], str], list[str]]
) -> Iterator[Pieces]:
    """A block that reduces a piece of so many elements. Where there are many, there are several,
    for threads to share; how many does not hang on these. join: C that makes of arrays of what was
    found of so many pieces the same of all, in their first elements."""
    made = Pieces(r.fresh("i"), r.fresh("pieces"), [], [])
    outer, r.lines = r.lines, []
    try:
        yield made
    finally:
        lines, r.lines = r.lines, outer
    k, pieces = made.piece, made.pieces
    arrays = [(ctype, r.fresh("all")) for ctype, _ in made.found]
    names = [name for _, name in arrays]
    lines += [f"{a}[{k}] = {x};" for a, (_, x) in zip(names, made.found, strict=True)]
    made.results = [r.fresh("s") for _ in arrays]
    taken = [f"{x} = {a}[0];" for x, a in zip(made.results, names, strict=True)]
    r.lines += [f"{ctype} {x};" for (ctype, _), x in zip(arrays, made.results, strict=True)]
    line, n = line_of(r.frame.path), _count(dims)
    loop = Threaded(
        line, k.rpartition("_")[2], [f"for (i64 {k} = from; {k} < to; {k}++) {{", lines, "}"],
        pieces, [], [], [], [], Iteration(k, lines, 0.0, 1, line, False), True,
        f"!rt->device && {n} >= {2 * _LONG}", False,
        [f"const i64 {pieces} = pieces_of({n});", *(f"{t} {a}[{_PIECES}];" for t, a in arrays)],
        [f"const i64 {pieces} = 1;", *(f"{t} {a}[1];" for t, a in arrays)],
        [*join(names, pieces), *taken],
    )  # fmt: skip
    r.lines += [loop] if is_long(dims) and not r.quiet else loop.in_place(loop.lines)


def rests_on(r: Reader, found: Independence) -> list[str]:
    """C that is true where iterations may depend on each other all the same."""
    tests = [f"overlap({a.span}, {b.span})" for a, b in found.apart]
    for a in found.written:
        if a.flat or not a.ndim:
            continue
        steps = [s.text for s in a.strides]  # no two indices may lead to one element
        tests.append(f"{steps[-1]} < 1")
        inner = zip(steps, a.dims[1:], steps[1:], strict=False)
        tests += [f"{s} < {d.text} * {t}" for s, d, t in inner]
    return tests


def outlined(
    lines: Iterable[str | Threaded], prologue: Iterable[str], shared: list[str],
    small: Mapping[str, int],
) -> tuple[list[str], list[str], list[Kernel]]:  # fmt: skip
    """The functions of the loops that threads share, the lines with calls of them in their places,
    and these loops as kernels. prologue: lines before. shared: declarations of variables that are
    used in one place. small: the bytes of arrays on the stack."""
    functions: list[str] = []
    made: list[str] = []
    kernels: list[Kernel] = []
    lines = list(lines)
    around = [*prologue, *(x for x in lines if isinstance(x, str))]
    for x in lines:
        if isinstance(x, str):
            made.append(x)
        else:
            parts = in_one(x.lines), around, shared, len(kernels), small
            function, call, found = x.outlined(*parts)
            functions += function
            made += call
            kernels += [found] if found is not None else []
    return functions, made, kernels


def in_one(lines: Iterable[str | Threaded]) -> list[str]:
    """Lines in which loops that threads might share are as they stand."""
    made: list[str] = []
    for x in lines:
        made += [x] if isinstance(x, str) else x.in_place(in_one(x.lines))
    return made


def _jumps(lines: Iterable[str]) -> bool:
    """Whether there is a jump to a label that is elsewhere."""
    code = [_code(line) for line in lines]
    labels = {x.partition(":")[0] for x in code if _LABEL.match(x)}
    return any(x not in labels for line in code for x in _GOTO.findall(line))


def declarations(lines: Iterable[str]) -> dict[str, str]:
    """The C types of the names that lines declare."""
    found: dict[str, str] = {}
    for line in lines:
        match = _DECLARED.match(line)
        if match:
            const, kind, pointer, name, extent = match.groups()
            found[name] = f"{const or ''}{kind} *" if extent else f"{kind} {pointer}"
    return found


def _code(line: str) -> str:
    return "" if line.startswith("/*") else line


def _zero(ctype: str) -> str:
    return "{0, 0}" if ctype.strip() in ("c64", "c128") else "0"
