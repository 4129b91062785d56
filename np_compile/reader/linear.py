"""Integers as linear forms of named integers, and proofs of inequalities between them.

A `Linear` is const + sum of coefficient * name. What is known of names are `Facts`: linear forms
that are not negative. `Facts.proves(x)` tells whether x >= 0 follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

WIDE = 1 << 63
SAFE = 1 << 62  # what is less is far from overflow
DEPTH = 6  # facts that one proof puts together
TRIES = 80  # forms that it looks at: what follows, follows within some dozen


class Linear:
    """const + sum of coefficient * name; immutable."""

    __slots__ = ("_key", "const", "terms")

    def __init__(self, const: int = 0, terms: Mapping[str, int] | None = None):
        self.const = const
        self.terms = {k: c for k, c in terms.items() if c} if terms else {}
        self._key: int | None = None

    def __add__(self, other: Linear | int) -> Linear:
        return self.plus(other, 1)

    def __neg__(self) -> Linear:
        return self * -1

    def __sub__(self, other: Linear | int) -> Linear:
        return self.plus(other, -1)

    def __mul__(self, factor: int) -> Linear:
        if not factor:
            return Linear()
        return _linear(self.const * factor, {k: c * factor for k, c in self.terms.items()})

    def plus(self, other: Linear | int, factor: int) -> Linear:
        """The sum with so many times another one."""
        if isinstance(other, int):
            return _linear(self.const + factor * other, self.terms)
        terms = dict(self.terms)
        for name, c in other.terms.items():
            total = terms.get(name, 0) + factor * c
            if total:
                terms[name] = total
            else:
                terms.pop(name, None)
        return _linear(self.const + factor * other.const, terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and self.const == other.const and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> int:
        """What equal forms have in common, itself linear: of a sum it is the sum of theirs."""
        if self._key is None:
            self._key = self.const + sum([c * hash(name) for name, c in self.terms.items()])
        return self._key

    @property
    def constant(self) -> int | None:
        """Its value, if it depends on nothing."""
        return None if self.terms else self.const

    def __repr__(self) -> str:
        parts = [f"{c}*{k}" for k, c in self.terms.items()]
        return " + ".join([*parts, str(self.const)])


def _linear(const: int, terms: dict[str, int]) -> Linear:
    """One of terms without zeros, which nobody changes."""
    made = Linear.__new__(Linear)
    made.const, made.terms, made._key = const, terms, None
    return made


class Facts:
    """Linear forms that are known not to be negative, in the order in which they became known.

    ranges: of each name, the least and the greatest value. number: of each name, when it was made;
    names that came later are bounded by those before. indices: those that have been checked against
    an extent, with what they are when counted from the beginning. elements: the names of integers
    that were read from arrays.
    """

    def __init__(self) -> None:
        self.known: list[Linear] = []
        self.ranges: dict[str, tuple[int, int]] = {}
        self.number: dict[str, int] = {}
        self.elements: set[str] = set()
        self.indices: dict[tuple[Linear, Linear], Any] = {}
        self._mentions: dict[str, list[Linear]] = {}
        self._checked: list[tuple[int, tuple[Linear, Linear]]] = []
        self._count = 0
        self._answers: dict[Linear, bool] = {}  # by what is known now

    def name(self, name: str, low: int = -WIDE, high: int = WIDE - 1) -> Linear:
        """The linear form of a new name, with its range."""
        self.ranges[name] = low, high
        self._count += 1
        self.number[name] = self._count
        return Linear(0, {name: 1})

    def sees(self, other: Facts) -> None:
        """Take over names, and nothing of what is known of several."""
        self.ranges, self.number, self._count = other.ranges, other.number, other._count

    def add(self, x: Linear) -> None:
        """x >= 0 from now on."""
        if not x.terms:
            return
        self._answers.clear()
        self.known.append(x)
        for name in x.terms:
            self._mentions.setdefault(name, []).append(x)

    def is_index(self, at: Linear, n: Linear, made: Any) -> None:
        """An index is within an extent, as long as the last fact is known; made: what it is."""
        self.indices[at, n] = made
        self._checked.append((len(self.known), (at, n)))

    def mentioning(self, name: str) -> list[Linear]:
        """What is known with a name in it: a loop's own bounds come first."""
        return self._mentions.get(name, [])

    def mark(self) -> int:
        return len(self.known)

    def back_to(self, mark: int) -> None:
        """Forget what became known since."""
        while self._checked and self._checked[-1][0] > mark:
            del self.indices[self._checked.pop()[1]]
        while len(self.known) > mark:
            self._answers.clear()
            x = self.known.pop()
            for name in x.terms:
                self._mentions[name].pop()

    def bounds(self, x: Linear) -> tuple[int, int]:
        """Least and greatest value, by the ranges of names."""
        low = high = x.const
        for name, c in x.terms.items():
            a, b = self.ranges[name]
            a, b = a * c, b * c
            low += a if a < b else b
            high += b if a < b else a
        return low, high

    def proves(self, x: Linear) -> bool:
        """Whether x >= 0 follows from what is known. One form is asked for again and again."""
        least = self.bounds(x)[0]
        if least >= 0:
            return True
        answer = self._answers.get(x)
        if answer is None:
            answer = self._answers[x] = self._follows(x, least)
        return answer

    def _follows(self, x: Linear, least: int) -> bool:
        """By few facts: the shortest proof first. Of a form to be looked at nothing but what a fact
        changes is computed: these are most of the time that reading takes."""
        # Each form with its key and its least value by ranges; the ways to one are many.
        seen, forms, tries, ranges = {x.key}, [(x, x.key, least)], 0, self.ranges
        for _ in range(DEPTH):
            found: list[tuple[Linear, int, int]] = []
            for form, key, low in forms:
                terms = form.terms
                for fact, factor in self._below(form):
                    tries += 1
                    if tries > TRIES:
                        return False
                    of = key - factor * fact.key
                    if of in seen:
                        continue
                    least = low - factor * fact.const
                    for name, d in fact.terms.items():
                        a, b = ranges[name]
                        old = terms.get(name, 0)
                        new = old - factor * d
                        least += new * (a if new > 0 else b) - old * (a if old > 0 else b)
                    if least >= 0:
                        return True
                    seen.add(of)
                    found.append((form.plus(fact, -factor), of, least))
            forms = found
        return False

    def _below(self, x: Linear) -> Iterator[tuple[Linear, int]]:
        """Facts and how many times each: without them, x is a form that it is at least. The name
        that came last is taken out first, by a fact that has it with the same sign."""
        for name in sorted(x.terms, key=lambda k: -self.number[k]):
            c = x.terms[name]
            for fact in reversed(self._mentions.get(name, ())):
                d = fact.terms[name]
                if (c > 0) == (d > 0) and c % d == 0:
                    yield fact, c // d

    def same(self, a: Linear, b: Linear) -> bool:
        """Whether a == b follows."""
        return a == b or (self.proves(a - b) and self.proves(b - a))
