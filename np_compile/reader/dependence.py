"""Whether the iterations of a loop are independent: none touches memory that another one writes.

While a loop's body is read, each access to an array is noted, with the least and the greatest
index along each axis of the whole array (its *hull*), as linear forms of the loop's counter and of
what does not change in the loop. Two iterations cannot meet where, along one axis, their hulls are
apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .linear import SAFE, Facts, Linear
from .values import ANYWHERE, Aggregate, Arr, Items, Num, Value

_NEAR = 1 << 20  # bounds of a counter that are constants are better than those by other names
_CHECKS = 8  # pairs of arrays that are looked at by their addresses

Hull = tuple[Linear | None, Linear | None]


@dataclass(frozen=True)
class Access:
    """Memory that is read or written. roots: whose it may be. base: the array, whole, by the C name
    of its first element. hulls: of each axis; None where nothing is known."""

    roots: frozenset[str]
    base: str
    hulls: tuple[Hull, ...] | None
    write: bool


@dataclass(frozen=True)
class Independence:
    """What a loop with independent iterations rests on. apart: pairs of arrays that must not share
    memory. written: the arrays that are written to."""

    apart: tuple[tuple[Arr, Arr], ...]
    written: tuple[Arr, ...]


class Accesses:
    """The accesses of the loops that are being read. counters: of these loops, from the outermost
    on. arrays: whole arrays, by the C name of their first element."""

    def __init__(self, facts: Facts):
        self._facts = facts
        self.noted: list[Access] = []
        self.counters: list[str] = []
        self.arrays: dict[str, Arr] = {}

    def note(
        self, a: Arr, parts: Sequence[tuple] | None = (), write: bool = False
    ) -> Access | None:
        """An access to a part of an array, given as `Arr.axes` has it, or to all of it; None
        outside of loops."""
        if a.origin is None:
            self.arrays.setdefault(a.data, a)
        if not self.counters:
            return None
        base, own = a.axes
        hulls = None
        if parts is not None:
            limit = self._facts.number[self.counters[-1]]
            hulls = tuple(_hull(self._facts, part, limit) for part in parts or own)
        self.noted.append(Access(a.roots, base, hulls, write))
        return self.noted[-1]

    def note_value(self, x: Value) -> None:
        """A read of the arrays that a value consists of."""
        if isinstance(x, Arr):
            self.note(x)
        elif isinstance(x, Aggregate):
            for y in x.items:
                self.note_value(y)
        elif isinstance(x, Items) and not isinstance(x.of, Num):
            self.anything()

    def anything(self, roots: frozenset[str] | None = None) -> None:
        """An effect of which no more is known than the memory, or not even that."""
        if self.counters:
            self.noted.append(Access(roots or frozenset((ANYWHERE,)), "", None, True))

    def leave(self, since: int, counter: str | None, made: set[str]) -> Independence | None:
        """What the independence of the iterations of a loop rests on, whose body ends; None if they
        may depend on each other. since: where its accesses begin. counter: None of a loop that is
        not counted. made: memory that each iteration makes anew."""
        if counter is None or counter not in self.counters:
            return None
        found = self._independence(since, counter, made)
        self.counters.remove(counter)
        if self.counters:
            self._widen(since)
        else:
            del self.noted[since:]
        return found

    def _widen(self, since: int) -> None:
        """Widen the hulls of accesses to what holds in each iteration of the outer loop."""
        limit = self._facts.number[self.counters[-1]]
        for k, a in enumerate(self.noted[since:], since):
            if a.hulls is not None:
                hulls = tuple(_widened(self._facts, hull, limit) for hull in a.hulls)
                self.noted[k] = replace(a, hulls=hulls)

    def _independence(self, since: int, counter: str, made: set[str]) -> Independence | None:
        noted = [a for a in dict.fromkeys(self.noted[since:]) if not a.roots <= made]
        written = dict.fromkeys(a.base for a in noted if a.write)
        if any(ANYWHERE in a.roots for a in noted) or not written.keys() <= self.arrays.keys():
            return None
        apart: dict[tuple[str, str], tuple[Arr, Arr]] = {}
        for w in noted:
            if not w.write:
                continue
            for a in noted:
                if not a.roots & w.roots:
                    continue
                if a.base != w.base:
                    pair = (min(a.base, w.base), max(a.base, w.base))
                    if not set(pair) <= self.arrays.keys():
                        return None
                    apart[pair] = self.arrays[pair[0]], self.arrays[pair[1]]
                elif not _never_meet(self._facts, w, a, counter):
                    return None
        if len(apart) > _CHECKS:
            return None
        return Independence(tuple(apart.values()), tuple(self.arrays[x] for x in written))


def _hull(facts: Facts, part: tuple, limit: int) -> Hull:
    """The least and the greatest index of a part along an axis, by names up to a number."""
    if part[0] == "index":
        return _widened(facts, (part[1], part[1]), limit)
    _, start, step, n = part
    if start is None or n is None:
        return None, None
    last = start + (n - 1) * step
    return _widened(facts, (start, last) if step > 0 else (last, start), limit)


def _widened(facts: Facts, hull: Hull, limit: int) -> Hull:
    low, high = hull
    return (
        None if low is None else _bound(facts, low, limit, -1),
        None if high is None else _bound(facts, high, limit, 1),
    )


def _bound(facts: Facts, x: Linear, limit: int, side: int, depth: int = 6) -> Linear | None:
    """What is never less (side 1), or never greater (side -1), than x, of names up to a number."""
    late = [name for name in x.terms if facts.number[name] > limit]
    if not late:
        return x
    if depth == 0:
        return None
    name = max(late, key=facts.number.__getitem__)
    c = x.terms[name]
    end = facts.ranges[name][c * side > 0]

    def by_range() -> Linear | None:
        return _bound(facts, x.plus(Linear(end, {name: -1}), c), limit, side, depth - 1)

    if -_NEAR < end < _NEAR:
        return by_range()
    for fact in facts.mentioning(name):
        d = fact.terms[name]
        if (c * side > 0) != (d > 0) and c % d == 0:
            found = _bound(facts, x.plus(fact, -(c // d)), limit, side, depth - 1)
            if found is not None:
                return found
    return by_range() if -SAFE < end < SAFE else None


def _never_meet(facts: Facts, w: Access, a: Access, counter: str) -> bool:
    """Whether a write of one iteration and an access of another one are to different elements."""
    if w.hulls is None or a.hulls is None or len(w.hulls) != len(a.hulls):
        return False
    return any(are_apart(facts, p, q, counter) for p, q in zip(w.hulls, a.hulls, strict=True))


def are_apart(facts: Facts, p: Hull, q: Hull, counter: str) -> bool:
    (low, high), (bottom, top) = p, q
    if low is None or high is None or bottom is None or top is None:
        return False
    steps = {x.terms.get(counter, 0) for x in (low, high)}
    others = {x.terms.get(counter, 0) for x in (bottom, top)}
    if steps == {0} or others == {0}:  # one of them is the same in all iterations
        return facts.proves(bottom - high - 1) or facts.proves(low - top - 1)
    if len(steps) > 1 or steps != others:
        return False
    # Both move by as much in each iteration, which is more than there is between them.
    step = abs(steps.pop())
    return facts.proves(Linear(step - 1) - (top - low)) and facts.proves(
        Linear(step - 1) - (high - bottom)
    )
