"""Marks of loop iterations: where a long loop is cut, so that one body is compiled, not all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from np_compile import config

from .state import current
from .tape import Break

_LOOP = Break("loop", "a loop iteration ends")


class MarkedRange:
    """A `range` whose iteration tells the capture where an iteration begins and ends."""

    __slots__ = ("_range",)

    def __init__(self, *args: Any):
        self._range = range(*args)

    @property  # type: ignore[misc]  # `object` has a setter
    def __class__(self) -> type:
        return range

    def __iter__(self) -> Iterator[int]:
        frame = sys._getframe(1)
        return marked(self._range, (frame.f_code, frame.f_lasti))

    def __reversed__(self) -> Iterator[int]:
        frame = sys._getframe(1)
        return marked(self._range[::-1], (frame.f_code, frame.f_lasti))

    def __len__(self) -> int:
        return len(self._range)

    def __getitem__(self, key: Any) -> Any:
        return self._range[key]

    def __contains__(self, value: Any) -> bool:
        return value in self._range

    def __eq__(self, other: Any) -> bool:
        return self._range == (other._range if type(other) is MarkedRange else other)

    def __hash__(self) -> int:
        return hash(self._range)

    def __repr__(self) -> str:
        return repr(self._range)

    def __bool__(self) -> bool:
        return bool(self._range)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._range, name)

    def __reduce__(self) -> Any:
        return self._range.__reduce__()


def marked(numbers: range, site: Any) -> Iterator[int]:
    """The numbers, with a cut at each iteration that recorded calls if there are many of them.

    site: what identifies the loop in the user's code. A loop of tiny segments goes on in NumPy.
    """
    capture = current()
    if capture is None:
        yield from numbers
        return
    long = len(numbers) > config.unroll
    limit = config.max_calls
    root = capture.root
    if long and capture.seg.node is not root:
        capture.cut(_LOOP)
    outer = capture.plain
    for i in numbers:
        yield i
        node = capture.seg.node
        if node is not root and (long or node.count > limit) and not capture.closed:
            capture.cut(_LOOP)
            capture.weigh(node, site)
    if not outer and not capture.closed:
        capture.plain = False
