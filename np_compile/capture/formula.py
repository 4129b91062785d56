"""Whether two arrays of a segment hold the same values, by the calls that made them.

`x[x < 0] = f(x[x < 0])` computes its mask twice. Two calls of one function on the same operands,
with nothing written in between, give the same.
"""

from __future__ import annotations

from typing import Any

from .tape import COMPLEX, FLOAT, INPUT, INT, Node, Segment

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
        first, second = self._path[at], self._path[to]
        end = len(self._path)
        if (
            first.key[0] is INPUT
            or first.key[0] in _ARBITRARY
            or len(first.values) != 1
            or len(second.values) != 1
            or self._written(i, self._made[i], end)
            or self._written(j, self._made[j], end)
        ):
            return False
        return self._alike(first.key, second.key, at, to) and (
            repr(self._parameters(at)) == repr(self._parameters(to))  # zeros have signs
        )

    def _alike(self, p: Any, q: Any, at: int, to: int) -> bool:
        """Whether pieces of the keys of two calls are the same, operands by what they hold."""
        if type(p) is not type(q):
            return False
        if type(p) is int:
            return not self._written(p, at, to) if p == q else self.same(p, q)
        if type(p) is not tuple or p[:1] == ("c",):
            return bool(p == q)
        if len(p) != len(q):
            return False
        return all(self._alike(v, w, at, to) for v, w in zip(p, q, strict=True))

    def _written(self, number: int, at: int, to: int) -> bool:
        """Whether a call behind `at`, before `to`, writes to the memory of a value."""
        root = self._values[number].root
        return any(root in node.mutates for node in self._path[at + 1 : to])

    def _parameters(self, at: int) -> tuple[list[float], list[int]]:
        """The floats and integers that a call got as data."""
        floats = ints = 0
        for node in self._path[:at]:
            floats += _count(node, True)
            ints += _count(node, False)
        node = self._path[at]
        seg = self._seg
        return (
            seg.floats[floats : floats + _count(node, True)],
            seg.ints[ints : ints + _count(node, False)],
        )


def _count(node: Node, floats: bool) -> int:
    """How many floats, or integers, of a segment's parameters belong to a call."""
    key = node.key
    return 0 if key[0] is INPUT else sum([_counted(p, floats) for p in key[1:]])


def _counted(p: Any, floats: bool) -> int:
    if p is FLOAT:
        return int(floats)
    if p is INT:
        return int(not floats)
    if p is COMPLEX:
        return 2 * floats
    if type(p) is not tuple or not p or p[0] == "c":
        return 0
    if p[0] == "n":
        return int((p[1] in "efd") is floats)
    return sum([_counted(q, floats) for q in p])
