"""The arrays of one call that is made on arrays of another library: what stands for each of them,
also in lists, tuples and dicts, and the way back."""

from __future__ import annotations

from collections import deque
from typing import Any

from .attributes import base_of_container
from .tape.tree import with_items

SIMPLE = frozenset((int, float, complex, bool, str, bytes, type(None)))  # no array is found in them


class Loan:
    """The arrays and structures of one call, and what stands for them in it."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any]] = {}  # id of what is given -> it, what stands for it
        self._given: dict[int, Any] = {}  # id of what stands for something -> that
        self._passed: dict[int, Any] = {}  # lists and dicts among the results
        self._as_they_are: list[Any] = []  # those among the arguments that hold no arrays yet

    def stand_in(self, x: Any) -> Any:
        """What stands for an array of the caller's; None if x is none."""
        raise NotImplementedError

    def array(self, x: Any) -> Any:
        """What the caller gets for an array that the call has made; None if x is none."""
        raise NotImplementedError

    def holds(self, x: Any) -> bool:
        """Whether a list, tuple or dict may hold arrays of the caller's."""
        raise NotImplementedError

    def take(self, x: Any) -> Any:
        """An argument with stand-ins for arrays; itself, where it holds none."""
        known = self._made.get(id(x))
        if known is not None:
            return known[1]
        made = self.stand_in(x)
        if made is not None:
            return self.pair(x, made)
        kind = type(x)
        if not (kind in (list, dict) or isinstance(x, tuple)):
            return x
        if not self.holds(x):
            self._as_they_are.append(x)
            return x
        if kind is dict:
            made = self.pair(x, {})
            made.update((k, self.take(v)) for k, v in x.items())
        elif kind is list:
            made = self.pair(x, [])
            made.extend(map(self.take, x))
        else:
            made = self.pair(x, with_items(x, map(self.take, x)))
        return made

    def pair(self, x: Any, made: Any) -> Any:
        """`made` stands for x from now on."""
        self._made[id(x)] = x, made
        self._given[id(made)] = x
        return made

    def give(self, x: Any) -> Any:
        """A result with the caller's arrays for what stands for them, and arrays of his kind for
        what is new. Lists, dicts, deques and sets that are new change where they are."""
        if type(x) in SIMPLE:
            return x
        known = self._given.get(id(x))
        if known is not None:
            return known
        made = self.array(x)
        if made is not None:
            self.pair(made, x)
            return made
        if isinstance(x, tuple):
            items = [self.give(v) for v in x]
            same = all(a is b for a, b in zip(items, x, strict=True))
            return x if same else with_items(x, items)
        if type(x) in (set, frozenset):
            made = type(x)(map(self.give, x))
            if type(x) is frozenset:
                return made
            x.clear()
            x.update(made)
        kind = base_of_container(x)
        if kind in (list, dict, deque) and id(x) not in self._passed:
            self._passed[id(x)] = x
            for k, v in list(dict.items(x) if kind is dict else enumerate(kind.__iter__(x))):
                if (given := self.give(v)) is not v:
                    kind.__setitem__(x, k, given)
        return x

    def end(self) -> None:
        """Carry what the call has changed in lists and dicts back to the caller's."""
        for x, made in list(self._made.values()):
            if isinstance(x, list):
                now = [self.give(v) for v in made]
                if len(now) != len(x) or any(a is not b for a, b in zip(now, x, strict=True)):
                    x[:] = now
            elif isinstance(x, dict):
                new = {k: self.give(v) for k, v in made.items()}
                if list(new) != list(x) or any(new[k] is not x[k] for k in new):
                    x.clear()
                    x.update(new)
        for x in self._as_they_are:
            self.give(x)
