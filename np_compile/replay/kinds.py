"""Kinds of arguments: of calls that run as they stand, which C knows by what they are about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from np_compile.capture.policy.choice import span, type_of_first

from .arguments import Opened
from .calls import LEAVES, Entry, Names, Way
from .guards import Between, Guard, Kind, Layout, Length, Small, Value

_WORD = 1 << 63
Kinds = tuple[list[Guard], tuple | None]


def alike(args: tuple, names: Sequence[str], roughly: bool = False) -> Kinds | None:
    """Guards that hold for calls of the same `choice.signature`, or `choice.kind_of`, alone, and
    the form of the arguments where they are of its leaves; None where they cannot say it."""
    guards = _alike(args, names, roughly)
    if guards is not None:
        return guards, None
    opened = Opened(args)
    if not opened.known or max(len(opened.leaves), opened.structures) > LEAVES:
        return None
    guards = _alike(opened.leaves, opened.names(names), False)
    return None if guards is None else (guards, opened.form)


def _alike(args: Sequence, names: Sequence[str], roughly: bool) -> list[Guard] | None:
    guards: list[Guard] = []
    for k, (a, name) in enumerate(zip(args, names, strict=True)):
        kind = type(a)
        if kind is np.ndarray and roughly:
            guards.append(Small(k, name, a.dtype, a.ndim, (1 << a.size.bit_length()) - 1))
        elif kind is np.ndarray:
            guards.append(Layout.of(k, name, a, 0))
        elif roughly and kind in (list, tuple, dict):
            first = type_of_first(a)
            if first in (np.ndarray, list, tuple, dict) and _hold_arrays(a):
                return None  # how large these are tells more
            most = (1 << len(a).bit_length()) - 1
            guards.append(Length(k, name, kind, min(len(a), 1), most, first))
        elif kind is int and -_WORD <= a < _WORD:
            rest = max(a.bit_length() - (1 if roughly else 4), 0)
            low = a >> rest << rest
            guards.append(Between(k, name, low, low + (1 << rest) - 1))
        elif (items := span(a)) is not None:
            guards.append(Length(k, name, kind, *items, None))
        elif kind in (int, bool, str, type(None)):
            guards.append(Value(k, name, a))
        elif kind in (tuple, list, dict):
            return None
        else:
            guards.append(Kind(k, name, kind))
    return guards


def wider(some: Sequence[Guard], others: Sequence[Guard]) -> list[Guard] | None:
    """Guards that hold where either do, and between both: for the integers between, and for arrays
    that have no more elements. None where they differ in more than such things."""
    if len(some) != len(others):
        return None
    made = [_wider(a, b) for a, b in zip(some, others, strict=True)]
    return None if None in made else [guard for guard in made if guard is not None]


def _wider(a: Guard, b: Guard) -> Guard | None:
    if a == b:
        return a
    if isinstance(a, Between) and isinstance(b, Between):
        return Between(a.position, a.name, min(a.low, b.low), max(a.high, b.high))
    if isinstance(a, Length) and isinstance(b, Length):
        if (a.kind, a.first) != (b.kind, b.first):
            return None
        return replace(a, least=min(a.least, b.least), most=max(a.most, b.most))
    x, y = _small(a), _small(b)
    if x is None or y is None or (x.dtype, x.axes) != (y.dtype, y.axes):
        return None
    return x if x.elements >= y.elements else y


def _hold_arrays(x: object) -> bool:
    """Whether there are arrays in a structure."""
    if isinstance(x, dict):
        x = tuple(x.values())
    return isinstance(x, np.ndarray) or (isinstance(x, (list, tuple)) and any(map(_hold_arrays, x)))


def _small(guard: Guard) -> Small | None:
    if isinstance(guard, Layout):
        size = int(np.prod(guard.shape))
        return Small(guard.position, guard.name, guard.dtype, len(guard.shape), size)
    return guard if isinstance(guard, Small) else None


@dataclass(eq=False)
class Plain:
    """Calls of one kind that run as they stand. form: of the arguments, whose leaves the guards are
    of (see `Opened`). names: of arguments that are given by name. is_wide: whether they are of
    several signatures."""

    guards: list[Guard]
    form: tuple | None
    names: Names
    entry: Entry
    is_wide: bool

    @staticmethod
    def of(
        guards: list[Guard], form: tuple | None, names: Names, function: Callable, sampled: int,
        is_wide: bool,
    ) -> Plain:  # fmt: skip
        """Such calls of a function; one of so many is not made by C."""
        entry = Entry(Way.PLAIN, len(guards), names, guards, form)
        entry.calls(function, sampled)
        return Plain(guards, form, names, entry, is_wide)
