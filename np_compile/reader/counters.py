"""Counters: integers that a loop changes by small constants only, which cannot leave 64 bits.

`n += 1` in a loop would be checked for overflow in each iteration, and what is checked is a branch
that the compiler cannot make a choice of. But a statement that adds at most `STEP` would have to
run `REACH / STEP` times, for years, before what it adds up to is more than `REACH`. So a name to
which a loop, with all loops inside, does nothing else stays that near to what it was before it.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from .linear import SAFE
from .read import Reader
from .values import Num, Value
from .walk import walk

STEP = 16
REACH = 1 << 60
Steps = dict[str, tuple[int, int]]  # of a name, the least and the greatest number added


def counters(loop: ast.AST, shared: frozenset[str]) -> Steps:
    """The names to which a loop only adds small constants. shared: those of inner functions too."""
    found: Steps = {}
    added: set[int] = set()
    others: set[str] = set(shared)
    for node in walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            step = _step(node)
            if step is not None:
                low, high = found.get(node.target.id, (0, 0))
                found[node.target.id] = min(low, step), max(high, step)
                added.add(id(node.target))
    for node in walk(loop):
        if isinstance(node, ast.Name) and not (isinstance(node.ctx, ast.Load) or id(node) in added):
            others.add(node.id)
    return {name: steps for name, steps in found.items() if name not in others}


def _step(node: ast.AugAssign) -> int | None:
    """What a statement adds, if that is a small constant."""
    x = node.value
    if not isinstance(x, ast.Constant) or type(x.value) is not int or abs(x.value) > STEP:
        return None
    return x.value if isinstance(node.op, ast.Add) else -x.value if isinstance(node.op, ast.Sub) \
        else None  # fmt: skip


def within_reach(r: Reader, name: str, before: Value, steps: Steps) -> Num | None:
    """The type of a counter in a loop and behind it; None of another name. before: its value before
    the loop. A loop around this one, which counts as well, has taken account of both."""
    if name not in steps or not isinstance(before, Num) or before.kinds != ("int",):
        return None
    if any(state.frame is r.frame and name in state.counted for state in r.loops):
        return replace(before, lin=None, value=None)
    low, high = steps[name]
    made = replace(
        before, lin=None, value=None,
        low=before.low - (REACH if low < 0 else 0), high=before.high + (REACH if high > 0 else 0),
    )  # fmt: skip
    return made if made.low - STEP > -SAFE and made.high + STEP < SAFE else None


def as_counted(x: Any, of: Num) -> Any:
    """A value that comes back to the head of the loop, with the range that it is known to have."""
    if not isinstance(x, Num):
        return x
    return replace(x, low=max(x.low, of.low), high=min(x.high, of.high))
