"""Powers of innermost loops, for some iterations ahead.

A power of a few halves is a vector's work but where it is in doubt (`near_halves`). GCC makes no
vectors of a loop that asks libm now and then, or whose sums are added in their order. Where what is
raised does not hang on what the loop stores, the loop is distributed: the statements that the power
needs stand in a loop of their own too, over the next iterations, and the loop takes the powers from
there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .dependence import Access
from .innermost import texts
from .read import Line, Reader
from .selection import flat, is_harmless
from .stack import Small
from .threads import declarations
from .values import ANYWHERE

_AHEAD = 64  # iterations
_FEWEST = 8  # of a loop of which it is known how many it has
_MOST = 4  # powers of a loop

_POWER = re.compile(r"\bpow_halves\(")
_NAME = re.compile(r"(?<![\w.>])[A-Za-z_]\w*")
_CALL = re.compile(r"(?<![\w.])([A-Za-z_]\w*) ?\(")
_HARMLESS = re.compile(r"for|__builtin_(?:sqrt|fabs|floor|ceil|rint|trunc)f?")
_SETS = re.compile(
    r"\s*(?:(?:const )?\w+ (?:\*const |\*)?)?([A-Za-z_]\w*)(\[.*\])? (?:[-+*/%&|^]|<<|>>)?= .*"
)
_DECLARES = re.compile(r"\s*\w+ ([A-Za-z_]\w*)()(?:\[\d+\])?")
_ARRAY = re.compile(r"\w+ (\w+)\[\d+\](?: = .*)?;")
_POINTER = re.compile(r"\w+ \*const (\w+) = (\w+)(?: \+ [^?]*)?;")
_ELEMENT = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\[")
_LEAVES = re.compile(r"if \((.*)\) goto (leave_\d+);")
_INSIDE = re.compile(r"\((\w+) [-+]= ")
_EXPECTED = re.compile(r"__builtin_expect\((.*), 0\)")
_ONCE = re.compile(r"__builtin_expect\((\w+), 0\) && ")
_JUMP = re.compile(r"\b(?:goto|return|break|continue)\b|^\w+: ;")
_MEMORY = re.compile(r"->|\*\)|&\w")


@dataclass(frozen=True)
class Power:
    """what: is raised; n: to how many halves. lines: that it needs, with the checks by which an
    iteration leaves; fast: without them. stops: C that says whether one of them may. name, begin: C
    names of the powers, and of the iteration that they begin with."""

    name: str
    begin: str
    what: str
    n: int
    lines: list[str]
    fast: list[str]
    stops: list[str]


def distributed(
    r: Reader, body: list, counter: str, iterations: int | None, accesses: Sequence[Access]
) -> tuple[list, list[Power]]:
    """The body of an innermost loop, which takes powers from where they are computed ahead, and
    these."""
    powers: list[Power] = []
    lines = body
    if (iterations is None or iterations >= _FEWEST) and any(map(_POWER.search, texts(body))):
        lines = flat(body)
        begin = r.fresh("begin")
        depth = 0
        for k, line in enumerate(lines):
            if not isinstance(line, str) or line.startswith("/* "):
                continue
            match = _POWER.search(line)
            if match and not depth and len(powers) < _MOST:
                what, n, end = _operands(line, match.end())
                known = {x.name for x in powers}
                found = _Needed(lines, k, counter, accesses, known).by(what)
                if found is not None:
                    name = r.fresh("near")
                    powers.append(Power(name, begin, what, n, *found))
                    text = f"{line[: match.start()]}{name}[{counter} - {begin}]{line[end:]}"
                    lines[k] = Line(text, line.what) if isinstance(line, Line) else text
            depth += line.count("{") - line.count("}")
    return (lines, powers) if powers else (body, [])


def _counted(counter: str, low: str, high: str, tick: list, body: list) -> list:
    return [f"for (i64 {counter} = {low}; {counter} < {high}; {counter}++) {{", *tick, body, "}"]


def in_strips(
    r: Reader, powers: Sequence[Power], counter: str, low: str, high: str, tick: list, body: list
) -> list:
    """A loop from one iteration to another, with powers that are computed ahead."""
    if not powers:
        return _counted(counter, low, high, tick, body)
    begin, end = powers[0].begin, r.fresh("end")
    made: list = [
        f"for (i64 {begin} = {low}, {end}; {begin} < {high}; {begin} = {end}) {{",
        f"{end} = {high} - {begin} <= {_AHEAD} ? {high} : {begin} + {_AHEAD};",
    ]
    for x in powers:
        raised, doubt, done = r.fresh("raised"), r.fresh("doubt"), r.fresh("done")
        at = f"[{counter} - {begin}]"
        near = [
            *x.fast,
            f"{raised}{at} = {x.what};",
            f"{x.name}{at} = near_halves({raised}{at}, {x.n});",
            f"{doubt} |= !({x.name}{at} == {x.name}{at});",
        ]
        again = f"if (!({x.name}{at} == {x.name}{at})) "
        again += f"{x.name}{at} = pow_itself({raised}{at}, {x.n} * 0.5);"
        made += [f"f64 {name}[{_AHEAD}];" for name in (x.name, raised)]
        made.append(f"i64 {doubt} = 0;")
        if x.stops:
            lines = [re.sub(r"goto leave_\d+;", f"goto {done};", line) for line in x.lines]
            lines.append(f"{x.name}{at} = pow_halves({x.what}, {x.n});")
            made += [f"if (__builtin_expect({' || '.join(x.stops)}, 0)) {{"]
            made += [*_counted(counter, begin, end, [], lines), f"{done}: ;", "} else {"]
        made += _counted(counter, begin, end, [], near)
        made += [f"if ({doubt}) {{", *_counted(counter, begin, end, [], [again]), "}"]
        made += ["}"] if x.stops else []
    return [*made, *_counted(counter, begin, end, tick, body), "}"]


def _operands(line: str, at: int) -> tuple[str, int, int]:
    """What is raised and to how many halves, by a call whose operands begin there; its end."""
    depth, end = 1, at
    while depth:
        depth += {"(": 1, ")": -1}.get(line[end], 0)
        end += 1
    what, _, n = line[at : end - 1].rpartition(", ")
    return what, int(n), end


class _Unclear(Exception):
    """What a line does is not seen."""


class _Needed:
    """The lines of an iteration that a value needs."""

    def __init__(
        self, lines: list, end: int, counter: str, accesses: Sequence[Access], known: set[str]
    ):
        """Of the first lines of a loop's body. known: the names of powers that are computed."""
        made: list[str] = []
        for x in lines[:end]:
            what = getattr(x, "what", None)
            if isinstance(what, Small):  # each loop has its own
                made += what.on_stack() if x.startswith("Buf *") else []
            elif isinstance(x, str) and not x.startswith("/* "):
                made.append(x)
        self._lines = made
        self._own = declarations(made)
        self._counter, self._accesses = counter, accesses
        self._arrays = known | {m[1] for x in made if (m := _ARRAY.fullmatch(x))}
        self._points = {m[1]: m[2] for x in made if (m := _POINTER.fullmatch(x))}
        self._changed: set[str] = set()
        for x in texts(lines):
            try:
                leaves = _LEAVES.fullmatch(x)
                self._changed.update(_INSIDE.findall(x) if leaves else self._sets(x))
            except _Unclear:
                self._changed.update(_NAME.findall(x))

    def by(self, what: str) -> tuple[list[str], list[str], list[str]] | None:
        """The lines, as `Power` has them; None where it is not clear which, or that they may be
        executed before."""
        if any(_JUMP.search(x) and not _LEAVES.fullmatch(x) for x in self._lines):
            return None
        try:
            return self._checked(self._kept(what), what)
        except _Unclear:
            return None

    def _base(self, name: str) -> str:
        """What a pointer points into."""
        while name in self._points:
            name = self._points[name]
        return name

    def _sets(self, line: str) -> Iterator[str]:
        """The names that a line gives values, or of whose memory it gives elements values."""
        if line.startswith("for (i64 "):
            yield line.split()[2]
            return
        if line.startswith("/* "):
            return
        for x in line.split(";")[:-1]:
            if match := _SETS.fullmatch(x) or _DECLARES.fullmatch(x):
                yield match[1]
                if match[2]:
                    yield self._base(match[1])
            elif "=" in x or "++" in x or "--" in x:
                raise _Unclear

    def _kept(self, what: str) -> list[int]:
        """The places of the lines that a value needs, and of the ways out among them."""
        blocks = self._blocks()
        needed = set(_NAME.findall(what))
        sets = [set() if _LEAVES.fullmatch(x) else set(self._sets(x)) for x in self._lines]
        kept: set[int] = set()
        while True:
            new = {
                k for k, names in enumerate(sets)
                if k not in kept and (names & needed or _LEAVES.fullmatch(self._lines[k]))
            }  # fmt: skip
            for k in list(new):
                for block in blocks[k]:
                    new |= block
            new -= kept
            if not new:
                return sorted(kept)
            kept |= new
            for k in new:
                if not _LEAVES.fullmatch(self._lines[k]):
                    needed |= set(_NAME.findall(self._lines[k]))

    def _blocks(self) -> list[list[set[int]]]:
        """Of each line: the lines that begin and end the blocks that it is in."""
        found: list[list[set[int]]] = []
        around: list[set[int]] = []
        for k, x in enumerate(self._lines):
            if x.startswith("}"):
                around.pop().add(k)
            found.append(list(around))
            if x.endswith("{"):
                around.append({k, k - 1} if self._lines[k - 1][:1] == "#" else {k})
                found[-1].append(around[-1])
        return found

    def _checked(self, kept: list[int], what: str) -> tuple[list[str], list[str], list[str]]:
        lines: list[str] = []
        fast: list[str] = []
        stops: dict[str, None] = {}
        written = frozenset[str]().union(*(x.roots for x in self._accesses if x.write))
        if ANYWHERE in written:
            raise _Unclear
        for k in kept:
            line = self._lines[k]
            if leaves := _LEAVES.fullmatch(line):
                stop = self._stop(leaves[1])
                if stop:
                    stops[stop] = None
                    lines.append(line)
                continue
            lines.append(line)
            fast.append(line)
            for name in self._sets(line):
                if name not in self._own:
                    raise _Unclear
        for line in (*fast, what):
            self._is_pure(line, written)
        return lines, fast, list(stops)

    def _stop(self, test: str) -> str:
        """The C that says, before the loop, whether an iteration may leave; nothing where memory
        does not hang on that."""
        if (once := _ONCE.match(test)) and once[1] not in self._own:
            return once[1]
        expected = _EXPECTED.fullmatch(test)
        test = expected[1] if expected else test
        names = [x for x in _NAME.findall(test) if x in self._own or x == self._counter]
        if names and all(self._own.get(x, "").split()[-1:] == ["f64"] for x in names):
            return ""
        if names or not is_harmless(test) or self._changed & set(_NAME.findall(test)):
            raise _Unclear
        return f"({test})"

    def _is_pure(self, line: str, written: frozenset[str]) -> None:
        """Make sure that a line reads nothing that the loop changes, and calls nothing."""
        calls = _CALL.findall(line)
        if "?" in line or (line.endswith("{") and not line.startswith("for (")):
            raise _Unclear  # without choices: see `masked_loads.py`
        if _MEMORY.search(line) or not all(_HARMLESS.fullmatch(x) for x in calls):
            raise _Unclear
        if any(x in self._changed and x not in self._own for x in _NAME.findall(line)):
            raise _Unclear
        for name in _ELEMENT.findall(line):
            base = self._base(name)
            if base in self._arrays:
                continue
            roots = [x.roots for x in self._accesses if x.base == base]
            if base in self._own or not roots:
                raise _Unclear
            if any(not x or x & written or ANYWHERE in x for x in roots):
                raise _Unclear
