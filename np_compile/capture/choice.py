"""Compiled or plain: which is the faster way to call a function, found out by calling it.

A function whose arguments are small, or whose loops have nothing to fuse, may be faster as it
stands. Calls with arguments of one signature (types, shapes, integers) are timed both ways; the
quicker way is taken from then on, and looked at again when its times change.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .weigh import least_seconds, most_seconds

_SIGNATURES = 256  # of one function; with more the oldest is forgotten
_CLEAR = 1.3  # one call each way decides if the times differ by more
_CALLS = 3  # calls each way decide in any case, if they are long
_MORE = 12  # and so many short ones
_SHORT = 1e-3  # seconds
_LONG = 0.5  # seconds from which NumPy is not tried where it might take longer still
_HOPELESS = 4.0  # a way that takes so many times longer is not tried again
_PATIENCE = 4  # calls that compile before a call in NumPy is tried all the same
SAMPLED = 32  # one of so many plain calls is timed
_SLOW = 3  # slow calls in a row after which plain calls are timed against compiled ones again


def signature(args: tuple, kwargs: dict) -> tuple:
    """Types, shapes and integers of arguments."""
    made = tuple([_piece(a) for a in args])
    if kwargs:
        made += tuple([(k, _piece(v)) for k, v in kwargs.items()])
    return made


def _piece(x: Any, depth: int = 3) -> Any:
    """depth: how many structures inside one another are looked into."""
    kind = type(x)
    if kind is np.ndarray:
        return x.shape, x.strides, x.dtype.char
    if kind is int or kind is bool or kind is str or x is None:
        return x
    if kind is tuple or kind is list or kind is dict:
        if len(x) > 16 or depth == 0:
            return kind, len(x)
        return (kind, *[_piece(v, depth - 1) for v in (x.values() if kind is dict else x)])
    return kind


class Choice:
    """The times of calls with arguments of one signature, and what follows from them.

    way: "plain", "compiled", or None while calls are timed.
    """

    __slots__ = ("_compiling", "_slow", "_until", "compiled", "plain", "runs", "tries", "way")

    def __init__(self) -> None:
        self.way: str | None = None
        self.compiled = self.plain = float("inf")  # the quickest call, in seconds
        self.runs = self.tries = 0  # timed calls, compiled and plain
        self._compiling = 0
        self._slow = 0
        self._until = 32  # calls before compiled ones are looked at again

    def wants_plain(self) -> bool:
        """Whether the next call is to run as it stands."""
        if self.way is None:
            return self.tries < self.runs - 1  # the first compiled calls warm up
        return self.way == "plain"

    def call(self, function: Callable, args: tuple, kwargs: dict, calls: int = 1) -> Any:
        """Run the function as it stands, and take its time, now and then. calls: those that this
        one stands for; the others were run elsewhere."""
        if self.way is not None:
            self._until -= calls
            if calls < SAMPLED and self._until % SAMPLED:
                return function(*args, **kwargs)
            if self._until <= 0 and self.compiled < _HOPELESS * self.plain:
                self._again()
                return function(*args, **kwargs)
        start = time.perf_counter()
        result = function(*args, **kwargs)
        self._ran_plain(time.perf_counter() - start)
        return result

    def _ran_plain(self, seconds: float) -> None:
        self.plain = min(self.plain, seconds)
        if self.way is None:
            self.tries += 1
            self._decide()
        elif seconds > 1.5 * self.compiled:
            self._slow += 1
            if self._slow >= _SLOW:
                self._again()
        else:
            self._slow = 0

    def ran_compiled(self, seconds: float, built: int, calls: int, touched: int) -> None:
        """Note a compiled call. built: programs that were compiled meanwhile; such a call is not
        typical. calls, touched: the NumPy calls it recorded, the bytes of arrays they touch."""
        if self.way is not None:
            self._until -= 1
            if self._until == 0 and self.plain < _HOPELESS * self.compiled:
                self._again()
            return
        if built:
            self._compiling += 1
            if self._compiling < _PATIENCE:
                return
        self.compiled = min(self.compiled, seconds)
        self.runs += 1
        long = self.runs > 1 and self.compiled > _LONG
        slow = long and most_seconds(calls, touched) > self.compiled
        if slow or self.compiled < least_seconds(calls, touched):
            self.way = "compiled"

    def _decide(self) -> None:
        ratio = self.plain / self.compiled
        if ratio < 1 / _CLEAR:
            self.way = "plain"
        elif ratio > _CLEAR and (self.tries > 1 or self.plain > _LONG):
            self.way = "compiled"
        elif self.tries >= (_CALLS if self.plain > _SHORT else _MORE):
            self.way = "plain" if ratio < 1 else "compiled"

    def _again(self) -> None:
        self.way = None
        self.compiled = self.plain = float("inf")
        self.runs = self.tries = self._slow = 0
        self._until = 1024

    def __str__(self) -> str:
        return (
            f"calls with such arguments run in plain NumPy: {self.plain * 1e6:.0f} us, "
            f"{self.compiled * 1e6:.0f} us compiled"
        )


def new_choice(choices: dict[tuple, Choice], key: tuple) -> Choice:
    """A choice for a new signature, in the table of a compiled function."""
    if len(choices) >= _SIGNATURES:
        choices.pop(next(iter(choices)), None)
    return choices.setdefault(key, Choice())
