"""A program as NumPy runs it: for how long, and where it raises."""

from __future__ import annotations

import ast
import contextlib
import signal
import types
from collections.abc import Callable, Iterator
from typing import Any

SECONDS = 20.0  # for a program
DROPS = 8  # statements of a program


class TakesLonger(BaseException):
    """Programs catch exceptions, but not this one."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """What runs within for longer than a program may raises."""

    def late(*_: Any) -> None:
        raise TakesLonger

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def running_on(source: str, observed: Callable[[types.ModuleType, Callable], Any]) -> str:
    """A program all of whose calls raise, without the statements that do, as nothing behind them
    would be run; others as they are. observed: makes the calls."""
    for _ in range(DROPS):
        lines = _raising(source, observed)
        if not lines or None in lines:
            break
        source = _without(source, lines[0])
    return source


def _raising(source: str, observed: Callable[[types.ModuleType, Callable], Any]) -> list:
    """Of each call the line of `program` that raises, or None."""
    module = types.ModuleType("plain")
    exec(compile(source, "plain", "exec", dont_inherit=True), vars(module))
    lines: list[int | None] = []

    def noted(*arguments: Any) -> Any:
        lines.append(None)
        try:
            return module.program(*arguments)
        except Exception as e:
            at = e.__traceback__
            while at is not None and at.tb_frame.f_code is not module.program.__code__:
                at = at.tb_next
            lines[-1] = at and at.tb_lineno
            raise

    observed(module, noted)
    return lines


def _without(source: str, line: int) -> str:
    """A source without the innermost statement that is on a line."""
    tree = ast.parse(source)
    found = [
        (nodes, k)
        for node in ast.walk(tree)
        for part in ("body", "orelse", "finalbody")
        for nodes in [getattr(node, part, [])]
        if isinstance(nodes, list)
        for k, inner in enumerate(nodes)
        if inner.lineno <= line <= inner.end_lineno
    ]
    nodes, k = found[-1]
    nodes[k] = ast.Pass()
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
