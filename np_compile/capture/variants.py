"""Which program a segment runs: by the results that are still alive, and by its integers."""

from __future__ import annotations

import sys
from typing import Any

from np_compile.runtime.general import Job
from np_compile.runtime.program import Program
from np_compile.tape.call import parameters, references
from np_compile.tape.node import Node

_refcount = sys.getrefcount
_probe = [object()]
_DEAD = _refcount(_probe[0])  # what a stand-in counts that only its segment holds


class Variants:
    """The programs of one segment with one set of live results: by integers, while they are few.

    An integer parameter is a constant of the program until a second value is seen for it; from
    then on it is data, and one program serves all its values.

    met: whether the segment was the beginning of a loop before, see `loops`. jobs: what makes
    programs beside the user's.
    """

    __slots__ = ("constant", "dynamic", "jobs", "last", "met", "programs")

    def __init__(self) -> None:
        self.dynamic: frozenset[int] = frozenset()
        self.constant: tuple[int, ...] = ()  # the others, once some are data
        self.last: list[int] | None = None
        self.met = False
        self.programs: dict[tuple, Program] = {}
        self.jobs: dict[tuple, Job] = {}

    def key(self, ints: list[int]) -> tuple:
        if not self.dynamic:
            return tuple(ints)
        return tuple([ints[k] for k in self.constant])  # the fewer, the more are data

    def widen(self, node: Node, ints: list[int], dynamic: bool | None) -> frozenset[int]:
        if dynamic is True:
            self.dynamic = frozenset(range(len(ints))) - fixed_ints(node)
        elif dynamic is None:
            self.dynamic |= self.changed(ints) - fixed_ints(node)
        self.take(self.dynamic, ints)
        return self.dynamic

    def changed(self, ints: list[int]) -> frozenset[int]:
        """Numbers of the integers that are not what they were in the run before."""
        if self.last is None:
            return frozenset()
        return frozenset(k for k, (x, y) in enumerate(zip(self.last, ints, strict=True)) if x != y)

    def take(self, dynamic: frozenset[int], ints: list[int]) -> None:
        """From now on these integers are data."""
        self.dynamic = dynamic
        self.constant = tuple(k for k in range(len(ints)) if k not in dynamic)
        self.last = list(ints)


def fixed_ints(node: Node) -> frozenset[int]:
    """Numbers of the integer parameters that stay constants: slices beside index arrays."""
    return frozenset(
        p.place
        for _, call in node.calls()
        if any(True for _ in references(call.index))
        for p in parameters(call.index)
        if not p.is_float
    )


def index_ints(node: Node) -> frozenset[int]:
    """Numbers of the integer parameters that are numbers of indices, or where slices begin."""
    return frozenset(
        p.place for _, call in node.calls() for p in call.parameters() if p.kind == "index"
    )


def live_roots(values: list[Any]) -> tuple[int, ...]:
    """Numbers of the arrays made in a segment whose memory Python can still reach.

    Views are met before what they are views of; a view that nobody holds lets go of its base.
    """
    live = []
    for i in range(len(values) - 1, -1, -1):
        if _refcount(values[i]) > _DEAD:
            a = values[i]
            if a._base is None and a._t is None and a._np is None:
                live.append(i)
        elif (a := values[i])._base is not None:
            a._base = a._root = a._via = None
    return tuple(live[::-1])
