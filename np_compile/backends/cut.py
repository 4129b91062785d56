"""The values of a graph that are cheapest to keep, so that others follow from them: a minimum cut.

A value is an edge of a network, which can carry as much as it costs to keep; what is computed of
it follows behind. As much can flow from the values that are not computed again to those that are
needed as the cheapest cut between them costs (Dinic's algorithm).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

Value = TypeVar("Value", bound=Hashable)
_SOURCE, _SINK = 0, 1


def cut(
    weights: Mapping[Value, int | None], edges: Iterable[tuple[Value, Value]],
    given: Collection[Value], needed: Collection[Value],
) -> set[Value]:  # fmt: skip
    """Of cheapest cuts the one that is nearest to what is needed. weights: of each value, None of
    what cannot be kept. edges: from an operand to a result. given: what is not to be computed from
    anything."""
    network = _Network(2 + 2 * len(weights))
    places = {v: 2 + 2 * k for k, v in enumerate(weights)}
    endless = 1 + sum([w for w in weights.values() if w is not None])
    for v, weight in weights.items():
        network.connect(places[v], places[v] + 1, endless if weight is None else weight)
    for a, b in edges:
        network.connect(places[a] + 1, places[b], endless)
    for v in given:
        network.connect(_SOURCE, places[v], endless)
    for v in needed:
        network.connect(places[v] + 1, _SINK, endless)
    network.fill()
    behind = network.behind()
    return {v for v, at in places.items() if at + 1 in behind and at not in behind}


class _Network:
    """ends, rest: where each edge leads, and what it can still carry. Edges 2k and 2k + 1 are each
    other's way back. at: the edges of each place."""

    def __init__(self, places: int):
        self._at: list[list[int]] = [[] for _ in range(places)]
        self._ends: list[int] = []
        self._rest: list[int] = []

    def connect(self, a: int, b: int, carries: int) -> None:
        for at, end, rest in ((a, b, carries), (b, a, 0)):
            self._at[at].append(len(self._ends))
            self._ends.append(end)
            self._rest.append(rest)

    def fill(self) -> None:
        """Have as much flow from the source to the sink as can."""
        while levels := self._levels():
            begins = [0] * len(self._at)
            while self._carry(levels, begins):
                pass

    def _levels(self) -> list[int]:
        """How far each place is from the source, or -1; nothing if the sink is out of reach."""
        levels = [-1] * len(self._at)
        levels[_SOURCE] = 0
        waiting = [_SOURCE]
        for at in waiting:
            for e in self._at[at]:
                if self._rest[e] and levels[self._ends[e]] < 0:
                    levels[self._ends[e]] = levels[at] + 1
                    waiting.append(self._ends[e])
        return levels if levels[_SINK] >= 0 else []

    def _carry(self, levels: list[int], begins: list[int]) -> bool:
        """Fill one more of the shortest ways; False if there is none. begins: edges of each place
        that lead nowhere by now."""
        way: list[int] = []
        at = _SOURCE
        while at != _SINK:
            edges = self._at[at]
            while begins[at] < len(edges):
                e = edges[begins[at]]
                if self._rest[e] and levels[self._ends[e]] == levels[at] + 1:
                    way.append(e)
                    at = self._ends[e]
                    break
                begins[at] += 1
            else:
                if not way:
                    return False
                at = self._ends[way.pop() ^ 1]
                begins[at] += 1
        most = min(self._rest[e] for e in way)
        for e in way:
            self._rest[e] -= most
            self._rest[e ^ 1] += most
        return True

    def behind(self) -> set[int]:
        """The places from which more could flow to the sink."""
        found = {_SINK}
        waiting = [_SINK]
        for at in waiting:
            for e in self._at[at]:
                if self._rest[e ^ 1] and self._ends[e] not in found:
                    found.add(self._ends[e])
                    waiting.append(self._ends[e])
        return found
