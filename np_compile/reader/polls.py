"""Looks at what Python wants: Ctrl-C, and the turns of its other threads.

An innermost loop runs in strips of iterations, in which nothing is counted, and looks at the clock
between two of them: what counts takes a register, and the call behind it makes the compiler keep
the others in memory. A loop that has others inside counts its iterations. So does one in which an
iteration may take any time, as it makes an array or moves what a list holds.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from .nest import FEW
from .read import Reader
from .stack import Small
from .threads import Threaded
from .walk import children

_STRIP = 1 << 16  # iterations of a `for` loop in a strip
_STRIP_OF_FEW = 1 << 12  # where they go over a few elements
_STRIP_OF_WHILE = 1 << 10  # where a loop around counts none of those of this one
_TICKS_OF_ARRAYS = 16  # that an iteration with loops over arrays counts as, or a slow one
_FEW = ("#pragma GCC unroll", FEW)  # what stands before a loop of a few elements
_SLOW = re.compile(
    r"\b(?:allocate|new_list|release_items|opened|closed|reverse|same_items|__builtin_mem\w+)\("
    r"|\brt->depth\b"
)


def strip(node: ast.For | ast.While, body: list) -> int:
    """How many iterations of a loop are a strip; 0 of one that counts them. body: of an iteration,
    without loops but those that are written out."""
    if _is_slow(body):
        return 0
    if isinstance(node, ast.While):
        return _STRIP_OF_WHILE
    return _STRIP_OF_FEW if loops_in(body) else _STRIP


def tick(body: list) -> str:
    """The C that counts an iteration and looks at the clock from time to time, sooner where it may
    take long."""
    return f"TICK({_TICKS_OF_ARRAYS if _has_array_loops(body) or _is_slow(body) else 1});"


def out_of_strips(r: Reader, breaks: list[list[str]]) -> list[str]:
    """Have the places with a `break` go out of the strips as well; the C behind these."""
    if not breaks:
        return []
    done = r.fresh("done")
    for place in breaks:
        place[:] = [f"goto {done};"]
    return [f"{done}: ;"]


def ends_early(node: ast.For | ast.While) -> bool:
    return any(isinstance(x, (ast.Break, ast.Return)) for x in own(node.body))


def own(nodes: Any) -> list[ast.AST]:
    """Statements of a loop's body, without those of loops inside."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(nodes)
    while waiting:
        x = waiting.pop()
        found.append(x)
        if not isinstance(x, (ast.For, ast.While)):
            waiting += children(x)
    return found


def loops_in(lines: list, written_out: bool = True) -> bool:
    """Whether there are loops in what was written. written_out: of few elements, too."""
    before: Any = ""
    for x in lines:
        if isinstance(x, list):
            if loops_in(x, written_out):
                return True
        elif isinstance(x, Threaded):
            return True
        elif isinstance(x, str) and x.startswith("for ("):
            few = isinstance(before, str) and before.startswith(_FEW)
            if written_out or not few:
                return True
        before = x
    return False


def _has_array_loops(lines: list) -> bool:
    """Whether there are loops over axes of arrays, but for those that are written out."""
    before: Any = ""
    for x in lines:
        if isinstance(x, list):
            if _has_array_loops(x):
                return True
        elif isinstance(x, Threaded):
            if _has_array_loops(x.lines):
                return True
        elif isinstance(x, str):
            # What is no text refers to all that may leave, and takes long to be made one.
            written_out = isinstance(before, str) and before.startswith(_FEW)
            if x.startswith("for (i64 i_") and not written_out:
                return True
        before = x
    return False


def _is_slow(lines: list) -> bool:
    """Whether there is something of which an iteration may take any time, beside loops."""
    return any(
        _is_slow(x) if isinstance(x, list)
        else isinstance(x, str) and _SLOW.search(x) and not isinstance(_what(x), Small)
        for x in lines
    )  # fmt: skip


def _what(line: str) -> Any:
    """What a line is said to do."""
    return getattr(line, "what", None)
