"""Branches on bits of integers as selections between values.

A processor guesses which way a branch goes. Of a bit of a number (`if crc & 1`) it guesses wrongly
half of the time, and loses more by that than a few operations take. So where a test looks at bits,
and both ways do nothing but a few operations on integers, both are carried out, and a mask selects.
Where the bits are of what is selected (`if crc & 1: crc = ...`), each iteration of a loop waits for
the one before, and there are no vectors in it: a conditional move is shorter than a mask.

A choice of two constants (`255.0 if x > 127 else 0.0`) is one expression. In a loop whose
iterations depend on each other GCC would do all that follows on two ways, with the constants in it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from .read import Line, Reader
from .values import Num
from .variables import Variable
from .walk import walk

_SETTLED = {"f64": "F", "f32": "F", "i64": "I"}
_MOST = 8  # operations on both ways
_MADE = re.compile(r"const i64 (\w+) = (.+);")
_CONSTANT = re.compile(r"\(?-?\d[\w.+-]*\)?")
_STORED = re.compile(r"(\w+) = (.+);")
# Names, numbers, and operations that do no harm where they are not asked for: no element is read,
# nothing is divided, and what overflows wraps around.
_TOKEN = re.compile(
    r"rshift_i64\(\w+, \d+L\)|>> \d+|\((?:i64|w64)\)|[A-Za-z_]\w*|\d+L?"
    r"|[<>=!]=|[-+*&|^~()<>]|\s"
)
_HARMFUL = re.compile(r"\w\(|<<|>> (?!\d)")
_OPERATION = re.compile(r"rshift_i64|>>|[-+*&|^~]|[<>=!]=")
_BITS = (ast.BitAnd, ast.Mod, ast.RShift)


@dataclass(frozen=True)
class Choice:
    """A variable is given one of two constants. name: its C name."""

    name: str
    rep: str


def choice(text: str, ways: Sequence[list], v: Variable) -> Line | None:
    """The C that gives a variable one of two constants; None where more is done. text: the C of the
    test. ways: the lines of both."""
    if not isinstance(v.of, Num) or len(v.of.kinds) != 1 or v.of.rep not in _SETTLED:
        return None
    values = []
    for lines in ways:
        does = [x for x in flat(lines) if not (isinstance(x, str) and x.startswith("/* "))]
        is_line = len(does) == 1 and isinstance(does[0], str)
        match = _STORED.fullmatch(does[0]) if is_line else None
        if match is None or match[1] != v.place or not _CONSTANT.fullmatch(match[2]):
            return None
        values.append(match[2])
    line = f"{v.place} = {text} ? {values[0]} : {values[1]};"
    return Line(line, Choice(v.place, v.of.rep))


def settle(places: Iterable[tuple[list, int, Line]]) -> None:
    """Have the choices of a loop made where they stand. places: of its lines that say what they
    do."""
    for lines, k, line in places:
        if isinstance(line.what, Choice):
            lines[k] = f"{line} SETTLED_{_SETTLED[line.what.rep]}({line.what.name});"


def selected(
    r: Reader, test: ast.expr, text: str, ways: Sequence[list], variables: list[Variable],
    set_: Container[str],
) -> list[str] | None:  # fmt: skip
    """The C that gives variables their values without a branch; None where it is none of that
    kind. text: the C of the test. ways: the lines of both, which end with stores to variables.
    set_: the names that these are."""
    if len(variables) == 1:
        line = choice(text, ways, variables[0])
        if line is not None:
            return [line]
    if not variables or not any(
        isinstance(x, ast.BinOp) and isinstance(x.op, _BITS) for x in walk(test)
    ):
        return None
    if not all(isinstance(v.of, Num) and v.of.kinds == ("int",) for v in variables):
        return None
    names = [v.place for v in variables]
    made: list[str] = []
    values: list[dict[str, str]] = []
    for lines in ways:
        found = _apart(lines, names)
        if found is None:
            return None
        made += found[0]
        values.append(found[1])
    done = (x.partition("=")[2] for x in made if not x.startswith("/* "))
    if sum(map(operations, done)) > _MOST:
        return None
    if any(isinstance(x, ast.Name) and x.id in set_ for x in walk(test)):
        chosen = r.fresh("chosen")
        made.append(f"const int {chosen} = {text};")
        for name in names:
            made.append(f"{name} = chosen_i64({chosen}, {values[0][name]}, {values[1][name]});")
        return made
    mask = r.fresh("mask")
    made.append(f"const i64 {mask} = -(i64)({text});")
    for name in names:
        yes, no = values[0][name], values[1][name]
        step = _step(made, yes, no)
        bits = f"{no} + ({step} & {mask})" if step else f"({no}) ^ ((({yes}) ^ ({no})) & {mask})"
        made.append(f"{name} = {bits};")
    return made


def _step(made: Iterable[str], yes: str, no: str) -> str:
    """The constant by which one value is more than the other (`if x & 1: count += 1`), if it is."""
    given = re.compile(rf"const i64 {re.escape(yes)} = \({re.escape(no)} ([+-]) (\d+L)\);")
    found = next(filter(None, map(given.fullmatch, made)), None)
    return f"{found[1]}{found[2]}".replace("+", "") if found else ""


def _apart(lines: list, names: Sequence[str]) -> tuple[list[str], dict[str, str]] | None:
    """What a way computes, and what it stores in each of the variables; None if it does more."""
    made: list[str] = []
    stored: dict[str, str] = {}
    for x in flat(lines):
        if not isinstance(x, str) or isinstance(x, Line):
            return None
        if x.startswith("/* "):
            made.append(x)
            continue
        match = _MADE.fullmatch(x) or _STORED.fullmatch(x)
        if match is None or not is_harmless(match[2]):
            return None
        if x.startswith("const "):
            made.append(x)
        elif match[1] in names and match[1] not in stored:
            stored[match[1]] = match[2]
        else:
            return None
    return (made, stored) if stored.keys() == set(names) else None


def is_harmless(text: str) -> bool:
    return not _TOKEN.sub("", text) and not _HARMFUL.search(text.replace("rshift_i64(", ""))


def operations(text: str) -> int:
    """How many there are in an expression."""
    return len(_OPERATION.findall(text))


def flat(lines: list) -> list:
    found: list = []
    for x in lines:
        found += flat(x) if isinstance(x, list) else [x]
    return found
