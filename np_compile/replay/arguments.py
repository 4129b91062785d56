"""Arguments taken apart: what lists, tuples and dicts among them hold."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from .guards import Refused, simple

_DEPTH = 8  # of structures in one another
_STRUCTURES = (list, tuple, dict)


class Opened:
    """leaves: the arguments, in their order, and what structures among them hold. form: the
    structures; None where there are none. known: whether a call may be told by both: no list or
    dict is there twice, and the keys of dicts are strings. simple: the same, with keys that are
    simple values."""

    __slots__ = ("_lists", "form", "known", "leaves", "simple")

    def __init__(self, args: Any):
        self.leaves: list[Any] = []
        self.known = self.simple = True
        self._lists: dict[int, Any] = {}
        form = [self._open(a, 0) for a in args]
        self.form = tuple(form) if any(f is not None for f in form) else None

    def _open(self, x: Any, depth: int) -> tuple | None:
        kind = type(x)
        if kind not in _STRUCTURES:
            self.leaves.append(x)
            return None
        if depth > _DEPTH or id(x) in self._lists:
            self.known = self.simple = False
            return (None,)
        if kind is not tuple:
            self._lists[id(x)] = x
        if kind is not dict:
            return (kind, *[self._open(v, depth + 1) for v in x])
        if not all(type(k) is str for k in x):
            self.known = False
            self.simple = self.simple and all(map(simple, x))
        return (kind, tuple(x), *[self._open(v, depth + 1) for v in x.values()])

    @property
    def structures(self) -> int:
        """How many lists and dicts there are."""
        return len(self._lists)

    def names(self, outer: Sequence[str]) -> list[str]:
        """Names of the leaves, by those of the arguments: `x[0]['w']`."""
        if self.form is None:
            return [*outer]
        return [name for f, o in zip(self.form, outer, strict=True) for name in _inside(f, o)]

    def lists(self, exchange: Any) -> set[int]:
        """The ids of the lists and dicts, and of the copies that a function got of them."""
        return {*self._lists, *exchange.originals}

    def handed_on(self, exchange: Any) -> bool:
        """Whether a function that got these arguments has left its lists and dicts as they were."""
        known = exchange.capture.known
        for original, copy in exchange.copies.values():
            mine, its = Opened([original]), Opened([copy])
            taken = [known[id(x)][1] if id(x) in known else x for x in mine.leaves]
            if mine.form != its.form or not _are(taken, its.leaves):
                return False
        return True

    def require_unchanged(self, args: Any, exchange: Any) -> None:
        """Refused where a call that has ended has changed a list or dict among its arguments."""
        now = Opened(args)
        same = now.form == self.form and _are(now.leaves, self.leaves)
        if not (same and self.handed_on(exchange)):
            raise Refused("it changes a list or dict among its arguments")


def opened(args: Sequence[Any]) -> Opened:
    """Arguments taken apart; Refused where a call cannot be told by that."""
    found = Opened(args)
    if not found.known:
        raise Refused("a list or dict is there twice, or a key of a dict is no string")
    return found


def leaves_of(args: Sequence[Any]) -> tuple[Sequence[Any], tuple | None]:
    """The leaves of arguments, and the form of the structures among them; None where there are
    none, or where a call is not told by them."""
    if not any(type(a) in _STRUCTURES for a in args):
        return args, None
    opened = Opened(args)
    return (opened.leaves, opened.form) if opened.known else (args, None)


def _inside(form: tuple | None, name: str) -> list[str]:
    if form is None:
        return [name]
    kind, *inner = form
    keys = inner.pop(0) if kind is dict else range(len(inner))
    parts = zip(keys, inner, strict=True)
    return [leaf for key, f in parts for leaf in _inside(f, f"{name}[{key!r}]")]


def parameter_names(function: Any, count: int, named: Sequence[str]) -> list[str]:
    """Names of so many arguments of a function, the last of which are given by name. They may be
    too many for it."""
    first = count - len(named)
    if not isinstance(function, types.FunctionType):
        return [*map(str, range(first)), *named]
    code = function.__code__
    own = code.co_varnames[: min(first, code.co_argcount)]
    at = code.co_argcount + code.co_kwonlyargcount
    rest = "".join(code.co_varnames[at : at + 1])
    return [*own, *[f"{rest}[{k}]" for k in range(first - len(own))], *named]


def _are(xs: list, ys: list) -> bool:
    """Whether two lists hold the same objects."""
    return len(xs) == len(ys) and all(x is y for x, y in zip(xs, ys, strict=True))
