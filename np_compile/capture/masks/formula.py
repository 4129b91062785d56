"""Whether two arrays of a segment hold the same values, by the calls that made them.

`x[x < 0] = f(x[x < 0])` computes its mask twice. Two calls of one function on the same operands,
with nothing written in between, give the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from np_compile.tape.call import Parameter, Reference, Span
from np_compile.tape.node import Segment

_NUMBERS = (float, complex, np.generic)  # of which zeros have signs, and NaN is not itself
_ARBITRARY = ("empty", "empty_like")  # calls that need not give the same again


class Formulas:
    """The calls of a segment so far."""

    def __init__(self, seg: Segment):
        self._seg = seg
        self._path = seg.node.path()
        self._made = {v.index: at for at, node in enumerate(self._path) for v in node.values}
        self._values = [v for node in self._path for v in node.values]

    def same(self, i: int, j: int) -> bool:
        """Whether the values of these numbers hold the same: True only if that is sure."""
        if i == j:
            return True
        at, to = sorted((self._made[i], self._made[j]))
        node, other = self._path[at], self._path[to]
        first, second = node.call, other.call
        end = len(self._path)
        if (
            first is None
            or second is None
            or first.name != second.name
            or first.name in _ARBITRARY
            or len(node.values) != 1
            or len(other.values) != 1
            or self._written(i, self._made[i], end)
            or self._written(j, self._made[j], end)
        ):
            return False
        return self._alike(first.args, second.args, at, to) and (
            self._alike(first.kwargs, second.kwargs, at, to)
        )

    def _alike(self, p: Any, q: Any, at: int, to: int) -> bool:
        """Whether arguments of two calls are the same, operands by what they hold."""
        kind = type(p)
        if kind is not type(q):
            return False
        if kind is Reference:
            if p == q:
                return not self._written(p.number, at, to)
            return self.same(p.number, q.number)
        if kind is Parameter:
            return p.kind == q.kind and self._number(p) == self._number(q)
        if kind is Span:
            return (p.length, p.step) == (q.length, q.step) and self._alike(
                p.start, q.start, at, to
            )
        if kind is slice:
            p, q = (p.start, p.stop, p.step), (q.start, q.stop, q.step)
        elif kind is dict:
            if list(p) != list(q):
                return False
            p, q = list(p.values()), list(q.values())
        elif not isinstance(p, (tuple, list)):
            return repr(p) == repr(q) if isinstance(p, _NUMBERS) else bool(p == q)
        return len(p) == len(q) and all(
            self._alike(v, w, at, to) for v, w in zip(p, q, strict=True)
        )

    def _number(self, p: Parameter) -> str:
        """The text of a parameter, which zeros have a sign in."""
        numbers = self._seg.floats if p.is_float else self._seg.ints
        return repr(numbers[p.place : p.place + 1 + (p.kind == "complex")])

    def _written(self, number: int, at: int, to: int) -> bool:
        """Whether a call behind `at`, before `to`, writes to the memory of a value."""
        root = self._values[number].root
        return any(root in node.mutates for node in self._path[at + 1 : to])
