"""Live names: which of a function's local names may still be asked for, at its loops."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .walk import Names, loads, shared_names, stores

_NONE: Names = frozenset()


@dataclass(frozen=True)
class Live:
    """Names that are asked for before they are bound again: where an iteration of a loop begins,
    and behind the loop. shared: those that inner functions may ask for at any time."""

    begin: Names
    after: Names
    shared: Names


def live_names(function: Any) -> dict[int, Live]:
    """The live names of the loops of a function, by the identity of their nodes."""
    flow = _Flow(function)
    flow.block(function.body, _NONE)
    return flow.loops


class _Flow:
    """A walk over statements, from the last to the first. always: names that inner functions and
    other scopes may ask for at any time."""

    def __init__(self, function: Any):
        self.loops: dict[int, Live] = {}
        self._always = shared_names(function)
        self._breaks: list[Names] = []
        self._agains: list[Names] = []
        self._handlers: list[Names] = []

    def block(self, nodes: Sequence[ast.stmt], after: Names) -> Names:
        """What is live before statements, of what is live behind them."""
        live = after
        for node in reversed(nodes):
            live = self._statement(node, live)
            for names in self._handlers:  # each statement may raise
                live |= names
        return live

    def _statement(self, node: ast.stmt, after: Names) -> Names:
        if isinstance(node, ast.If):
            ways = self.block(node.body, after) | self.block(node.orelse, after)
            return ways | loads(node.test)
        if isinstance(node, (ast.For, ast.While)):
            return self._loop(node, after)
        if isinstance(node, ast.Try):
            return self._try(node, after)
        if isinstance(node, ast.With):
            live = self.block(node.body, after)
            for x in reversed(node.items):
                live = live - stores(x.optional_vars) | loads(x)
            return live
        if isinstance(node, ast.Break):
            return self._breaks[-1]
        if isinstance(node, ast.Continue):
            return self._agains[-1]
        if isinstance(node, (ast.Return, ast.Raise)):
            return self._always | loads(node)
        if isinstance(node, ast.Match):
            return after | loads(node) | self._of_cases(node, after)
        if isinstance(node, ast.AugAssign):
            return after | loads(node) | stores(node.target)
        if isinstance(node, ast.Assign):
            return after.difference(*map(stores, node.targets)) | loads(node)
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            return after - stores(node.target) | loads(node)
        return after | loads(node)

    def _of_cases(self, node: ast.Match, after: Names) -> Names:
        return frozenset().union(*(self.block(case.body, after) for case in node.cases))

    def _loop(self, node: ast.For | ast.While, after: Names) -> Names:
        bound = test = first = _NONE
        if isinstance(node, ast.For):
            bound, first = stores(node.target), loads(node.iter) | loads(node.target)
        else:
            test = loads(node.test)
        head = self.block(node.orelse, after) | test
        while True:
            self._breaks.append(after)
            self._agains.append(head)
            begin = self.block(node.body, head) - bound
            self._breaks.pop()
            self._agains.pop()
            if begin <= head:
                break
            head |= begin
        self.loops[id(node)] = Live(begin | test | self._always, after | self._always, self._always)
        return head | first

    def _try(self, node: ast.Try, after: Names) -> Names:
        last = self.block(node.finalbody, after)
        caught = last
        for handler in node.handlers:
            caught |= self.block(handler.body, last) | loads(handler.type)
        self._handlers.append(caught | self._always)
        live = self.block(node.body, self.block(node.orelse, last))
        self._handlers.pop()
        return live | caught
