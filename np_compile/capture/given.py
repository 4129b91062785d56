"""What code that is not captured is given: arrays for stand-ins, lists and dicts as they are.

It may change these: shuffle a list, append to it. So a copy will not do. While such code runs, the
lists and dicts among its arguments hold arrays; afterwards they hold stand-ins again, for whatever
is in them then. So do arrays of objects, for those that were stand-ins before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from np_compile.tape.tree import mapped, with_items

from .arrays.array import Array
from .policy.loops import MarkedRange


class Given:
    """Arguments with arrays for stand-ins. real: gives the array of a stand-in."""

    def __init__(self, args: tuple, kwargs: dict, real: Callable[[Array], Any]):
        self._real = real
        self._lists: dict[int, Any] = {}  # the lists, dicts and arrays of objects that were met
        self._own: dict[int, tuple[Any, Any]] = {}  # by id: what was put in, and what was there
        self.args = tuple(self._filled(v) for v in args)
        self.kwargs = {k: self._filled(v) for k, v in kwargs.items()}

    def _filled(self, x: Any) -> Any:
        kind = type(x)
        if kind is list or kind is dict or is_of_objects(x):
            if id(x) not in self._lists:
                self._lists[id(x)] = x
                change_items(x, self._filled)
            return x
        if kind is Array:
            new = self._real(x)
        elif kind is MarkedRange:
            new = x._range  # C asks for a range's own type
        elif isinstance(x, tuple):
            new = _of_tuple(x, self._filled)
        else:
            return mapped(x, self._filled) if kind is slice else x
        if new is not x:
            self._own[id(new)] = new, x
        return new

    def held(self) -> list:
        """The arrays, and tuples with some, that are referred to here until they are taken back."""
        found = [v for v, _ in self._own.values() if isinstance(v, np.ndarray)]
        for x in self._lists.values():
            items = [v for _, v in _items(x)]
            found += [v for v in items if type(v) is not list and type(v) is not dict]
        return found

    def in_arrays(self) -> list[Array]:
        """The stand-ins that arrays of objects hold, in place of which these hold arrays now."""
        arrays = [x for x in self._lists.values() if isinstance(x, np.ndarray)]
        held = [self._own.get(id(v)) for x in arrays for _, v in _items(x)]
        return [v[1] for v in held if v is not None and type(v[1]) is Array]

    def take_back(self, stand_in: Callable[[Any], Any]) -> None:
        """Stand-ins again in the lists and dicts. stand_in: gives one of an array that is new."""

        # Not a function that calls itself: it would refer to itself, and hold the capture.
        for x in list(self._lists.values()):
            known = isinstance(x, np.ndarray)
            change_items(x, partial(self._emptied, _itself if known else stand_in))
        self._own.clear()

    def _emptied(self, stand_in: Callable[[Any], Any], x: Any) -> Any:
        if id(x) in self._own:
            return self._own[id(x)][1]
        if isinstance(x, tuple):
            return _of_tuple(x, partial(self._emptied, stand_in))
        if type(x) is list and id(x) not in self._lists:
            self._lists[id(x)] = x
            change_items(x, partial(self._emptied, stand_in))
        return stand_in(x) if isinstance(x, np.ndarray) else x


def _of_tuple(x: tuple, change: Callable[[Any], Any]) -> tuple:
    items = [change(v) for v in x]
    return x if all(a is b for a, b in zip(items, x, strict=True)) else with_items(x, items)


def is_of_objects(x: Any) -> bool:
    """Whether it is an array of objects, which can be written to."""
    return type(x) is np.ndarray and x.dtype == object and x.flags.writeable


def _itself(x: Any) -> Any:
    return x


def _items(x: Any) -> list[tuple[Any, Any]]:
    """The items of a list, a dict or an array, and where each lies."""
    if isinstance(x, np.ndarray):
        return [(k, x[k]) for k in np.ndindex(x.shape)]
    return list(x.items() if isinstance(x, dict) else enumerate(x))


def change_items(x: Any, change: Callable[[Any], Any]) -> None:
    """Put `change(v)` in the place of each item that changes."""
    for k, v in _items(x):
        new = change(v)
        if new is not v:
            x[k] = new
