"""Which loops GCC may make loads under masks of.

GCC before 14 takes one element for its neighbour where loads under masks lie in one group, as those
of x[2 * i] and x[2 * i + 1] do (https://gcc.gnu.org/PR114375). It masks loads that are on one way
of a branch only, once it has made the branch a choice between values. Without such choices no loop
with `np.minimum` in it is one of vectors. So they are forbidden only to code in which a load may be
on one way, and steps of several elements may make a group. Elementary functions choose between
values too, of which the C then makes bits instead: choices cost no branch, but a few operations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_LOOP = re.compile(r"(?:for|while) \(")
_OVER_AXES = re.compile(r"for \(i64 i_")
_WAYS = re.compile(r"\bif \(|\belse\b|\?|&&|\|\|")
# Both operands of an extreme are compared, so each is loaded in any case.
_SURE = re.compile(
    r"\b(?:minimum|maximum|running_min|running_max)_f(?:32|64)\("
    r"|\b__builtin_(?:sqrt|fabs|floor|ceil|trunc|rint)f?\("
)
_CALL = re.compile(r"\b[A-Za-z_]\w*\(")
_STEPS = re.compile(r"(\w+)? \* \(?-?\d|\b\d+L? \* (\w+)?|<<|\.[ri]\b")
_COUNTER = re.compile(r"[ik]_\d+")
_GIVEN = re.compile(r"\b([ik]_\d+) = ")
_ELEMENTARY = re.compile(r"\b(?:exp|log|tanh|sigmoid)_f(?:32|64)\(")


def may_be(lines: Iterable[str]) -> bool:
    """Whether there is an innermost loop that may have loads under masks in a group."""
    return any(_has_ways(body) and not _is_simple(body) for body in _innermost(lines))


def has_elementary(lines: Iterable[str]) -> bool:
    """Whether there is an innermost loop with elementary functions and no branch of its own: one
    of vectors, if these have none."""
    return any(
        any(map(_ELEMENTARY.search, body)) and not any(map(_WAYS.search, body[1:]))
        for body in _innermost(lines, written_out=True)
    )


def _has_ways(body: list[str]) -> bool:
    """Whether a loop has a branch, or calls what may have one."""
    return any(_WAYS.search(x) or _CALL.search(_SURE.sub("", x)) for x in body[1:])


def _is_simple(body: list[str]) -> bool:
    """Whether it goes over an axis of arrays, and no step is one of several elements: what is
    multiplied is the counter of a loop around it."""
    if not _OVER_AXES.match(body[0]):
        return False
    own = {x for line in body for x in _GIVEN.findall(line)}
    factors = [m[1] or m[2] for line in body[1:] for m in _STEPS.finditer(line)]
    return all(x and _COUNTER.fullmatch(x) and x not in own for x in factors)


def _innermost(lines: Iterable[str], written_out: bool = False) -> list[list[str]]:
    """The lines of each loop without loops in it, its head first. Those that are written out are
    none, unless they are asked for: the compiler makes them part of what is around them."""
    found: list[list[str]] = []
    open_: list[list[str] | None] = []  # of each block: the lines of a loop
    before = ""
    for line in lines:
        if line.startswith("/* "):
            continue
        if line.startswith("}") and open_:
            body = open_.pop()
            if body is not None:
                found.append(body)
        is_loop = bool(_LOOP.match(line))
        if is_loop and not written_out and before.startswith("#pragma GCC unroll"):
            is_loop = False
        if is_loop:
            open_ = [None] * len(open_)
        for body in open_:
            if body is not None:
                body.append(line)
        if line.endswith("{"):
            open_.append([line] if is_loop else None)
        before = line
    return found
