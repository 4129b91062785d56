"""Warnings that nobody is to see, of one thread.

`warnings.catch_warnings` sets the filters of the process: other threads give no warnings meanwhile,
and where two threads leave it in the order they entered, the filters of one stay. Compiles
run beside the user's threads. So here is one filter, which asks in which thread it is.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from ._dtypes import NotSupported
from ._signals import level_beyond


class _Thread(threading.local):
    hushed: tuple[str, ...] = ()  # how the texts begin that are not shown
    refusing = False  # whether calls that give a RuntimeWarning of their own are refused
    drawing = True  # whether random numbers may be drawn


_thread = _Thread()


class _Hushed:
    """Stands where a filter has the pattern of its texts."""

    pattern = "(?!)"  # for who sets these filters elsewhere: no text of another thread's

    def match(self, text: str) -> bool:
        return text.startswith(_thread.hushed)


_FILTER: Any = ("ignore", _Hushed(), Warning, None, 0)


class quiet:
    """A block in which this thread gives no warnings, or none whose text begins with `text`."""

    __slots__ = ("_before", "_text")

    def __init__(self, text: str = "") -> None:
        self._text = text

    def __enter__(self) -> None:
        self._before = _thread.hushed
        _thread.hushed = (*self._before, self._text)
        given: Any = warnings.filters  # others than before, where somebody is in `catch_warnings`
        if not given or given[0] is not _FILTER:
            given.insert(0, _FILTER)

    def __exit__(self, *raised: object) -> None:
        _thread.hushed = self._before


class Warns(NotSupported):
    """NumPy gives a warning here, which follows from the arguments' shapes."""


@contextlib.contextmanager
def refusing_warnings() -> Iterator[None]:
    """A block in which this thread gets `Warns` in place of a RuntimeWarning that follows from
    shapes: who records calls leaves these to NumPy."""
    before = _thread.refusing
    _thread.refusing = True
    try:
        yield
    finally:
        _thread.refusing = before


@contextlib.contextmanager
def refusing_draws() -> Iterator[None]:
    """A block in which this thread gets `NotSupported` in place of random numbers."""
    before = _thread.drawing
    _thread.drawing = False
    try:
        yield
    finally:
        _thread.drawing = before


def draws(name: str) -> None:
    """Random numbers are about to be drawn, by a function of this name."""
    if not _thread.drawing:
        raise NotSupported(f"{name} draws random numbers")


def warn(text: str) -> None:
    """A RuntimeWarning at the caller of the public function."""
    if _thread.refusing:
        raise Warns(f"NumPy warns of it: {text}")
    warnings.warn(text, RuntimeWarning, stacklevel=level_beyond())


def is_quiet() -> bool:
    """Whether this thread gives no warnings at all."""
    return "" in _thread.hushed
