"""When a call whose arrays live on a device goes on in NumPy, in host memory.

A device takes tens of microseconds for the smallest piece of work, a compile for it many seconds.
A loop that does little in an iteration, or does it to arrays of other shapes each time, or that
asks for single values again and again, goes on in plain mode: its arrays come to the host when they
are first touched there, and go back when the loop ends, or meets a large array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from np_compile import config
from np_compile.tape.node import Node

if TYPE_CHECKING:
    from ..capture import Capture

# NumPy takes about 1 us for a call, 0.1 ns for a byte; a device 2.5 us to record a call, and 40 us.
_BYTES, _BYTES_OF_A_CALL = 200_000, 10_000
_COMPILES = 3  # iterations of one run of a loop that may compile something
_WORTH_COMPILING = 10**9  # bytes of an iteration, beyond which a compile is shorter than it
_ASKED = 4  # times that Python asked for a value of little work
_USES = 256  # runs of a loop in NumPy before it is looked at again
_PLACES = 256  # loops remembered of one function
LARGE = 50_000  # elements of an array that goes back to the device


def is_small(calls: int, touched: int) -> bool:
    """Whether NumPy carries out so many calls, on so many bytes, sooner than a device begins."""
    return touched < _BYTES + _BYTES_OF_A_CALL * calls


def may_leave(capture: Capture) -> bool:
    """Whether a call on a device may go on in NumPy: not where a gradient would be lost."""
    return (
        capture.device is not None
        and not capture.plain
        and not capture.fullgraph
        and config.plain != "never"
        and not capture.differentiates()
    )


class Place:
    """A loop that goes on in NumPy in calls with arguments of one signature. limit: elements of an
    array that goes back to the device. uses: how often since it was found out."""

    __slots__ = ("limit", "uses")

    def __init__(self, limit: float):
        self.limit = limit
        self.uses = 0


class Loop:
    """One run of a loop on a device. site: what identifies it in the user's code. A short one only
    follows the loops inside it."""

    __slots__ = ("_built", "_bytes", "_calls", "_capture", "_compiles", "_key", "_left", "_long")

    def __init__(self, capture: Capture, site: Any, long: bool):
        self._capture = capture
        self._key = ("device", site, capture.signature)
        self._long = long
        self._compiles = 0
        self._note()
        place = capture.options.loops.get(self._key)
        if config.plain == "always" and long:
            capture.go_plain("as the setting `plain` says, the loop goes on in NumPy", 0)
        elif place is not None:
            place.uses += 1
            if place.uses > _USES:  # look again
                del capture.options.loops[self._key]
            else:
                why = "an earlier call left the device for the loop"
                capture.go_plain(f"{why}: it runs in NumPy, in host memory", place.limit)

    def _note(self) -> None:
        capture = self._capture
        self._calls, self._bytes = capture.count, capture.bytes
        self._left = capture.left
        self._built = capture.built

    def iteration_ends(self, node: Node) -> None:
        """node: where the segment of the iteration ends, which has not run yet."""
        capture = self._capture
        calls = capture.count - self._calls + node.count
        touched = capture.bytes - self._bytes + node.bytes
        left = capture.left > self._left
        self._compiles += capture.built > self._built
        self._note()
        if not (left or (calls and self._long)) or not may_leave(capture):
            return
        if is_small(calls, touched):
            self._leave("an iteration does too little for a device", LARGE)
            return
        if self._compiles > _COMPILES and touched < _WORTH_COMPILING:
            self._leave("each iteration would be compiled for itself", float("inf"))

    def _leave(self, why: str, limit: float) -> None:
        capture = self._capture
        capture.go_plain(f"{why}: the loop goes on in NumPy, in host memory", limit)
        if capture.signature is not None:
            places = capture.options.loops
            if len(places) >= _PLACES:
                places.clear()
            places[self._key] = Place(limit)


def asked(capture: Capture, node: Node) -> None:
    """Python asked for a value of the segment that has ended at a node."""
    if is_small(node.count, node.bytes):
        capture.asked += 1
        if capture.asked >= _ASKED and may_leave(capture):
            capture.asked = 0
            why = "Python asks for one small value after the other"
            capture.go_plain(f"{why}: the function goes on in NumPy, in host memory", LARGE)
