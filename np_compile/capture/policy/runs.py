"""Whether a loop with marked iterations goes on in NumPy.

To record an iteration again takes tens of microseconds, in which NumPy makes some calls on small
arrays: a loop that does no more in an iteration goes on there, unless the call may be kept.

A device takes tens of microseconds for the smallest piece of work, a compile for it many seconds: a
loop that does little in an iteration, or does it to arrays of other shapes each time, goes on in
NumPy. Its arrays come to the host when they are first touched there, and go back when the loop
ends, or meets a large array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from np_compile import config
from np_compile.tape.node import Node

from .decide import (
    ALWAYS_PLAIN,
    LARGE,
    TOO_LITTLE,
    Decision,
    Way,
    does_too_little,
    is_patient,
    is_small,
    may_leave,
    to_the_host,
)

if TYPE_CHECKING:
    from ..capture import Capture

_USES = 256  # runs of a loop in NumPy before it is looked at again
_PLACES = 256  # loops remembered of one function
_COMPILES = 3  # iterations of one run of a loop that may compile something
_WORTH_COMPILING = 10**9  # bytes of an iteration, beyond which a compile is shorter than it


class Place:
    """A loop that goes on in NumPy in calls with arguments of one signature. decision: why. uses:
    how often since."""

    __slots__ = ("decision", "uses")

    def __init__(self, decision: Decision):
        self.decision = decision
        self.uses = 0


class Run:
    """One run of a loop. site: what identifies it in the user's code. long: whether each iteration
    is a segment; a short loop, on a device, only follows the loops inside it."""

    __slots__ = ("_built", "_bytes", "_calls", "_capture", "_compiles", "_key", "_left", "_long")

    def __init__(self, capture: Capture, site: Any, long: bool):
        self._capture = capture
        self._key = (site, capture.signature)
        self._long = long
        self._compiles = 0
        self._note()
        self._remembered()

    def _remembered(self) -> None:
        """Go on in NumPy from the first iteration where an earlier call did."""
        places = self._capture.options.loops
        place = places.get(self._key)
        if place is None:
            return
        place.uses += 1
        if place.uses > _USES:  # look again
            places.pop(self._key, None)
        elif not is_patient(self._capture):
            self._capture.go_plain(place.decision)

    def _note(self) -> None:
        """Note the state of the capture before an iteration."""
        capture = self._capture
        self._calls, self._bytes = capture.count, capture.bytes
        self._left = capture.left
        self._built = capture.built

    def _judge(self, node: Node) -> Decision | None:
        """What to do after an iteration, if it is not to go on as it did."""
        capture = self._capture
        calls = capture.count - self._calls + node.count
        touched = capture.bytes - self._bytes + node.bytes
        left = capture.left > self._left
        self._compiles += capture.built > self._built
        self._note()
        if capture.device is None:
            return TOO_LITTLE if does_too_little(capture, calls, touched) else None
        if not (left or (calls and self._long)) or not may_leave(capture):
            return None
        if is_small(calls, touched):
            return to_the_host("an iteration does too little for a device", "loop", LARGE)
        if self._compiles > _COMPILES and touched < _WORTH_COMPILING:
            return to_the_host("each iteration would be compiled for itself", "loop", float("inf"))
        return None

    def iteration_ends(self, node: Node) -> None:
        """node: where the segment of the iteration ends, which has not run."""
        decision = self._judge(node)
        if decision is None:
            return
        capture = self._capture
        capture.go_plain(decision)
        if capture.signature is not None:
            places = capture.options.loops
            if len(places) >= _PLACES:
                places.clear()
            known = f"{decision.reason}, as an earlier call found"
            places[self._key] = Place(Decision(Way.NUMPY, known, decision.limit))


def of_loop(capture: Capture, site: Any, long: bool) -> Run | None:
    """What follows the iterations of a loop that begins; None where it goes on as it does."""
    if config.plain == "always" and long and not capture.is_plain():
        if capture.immediate or may_leave(capture):
            capture.go_plain(ALWAYS_PLAIN)
        return None
    weighed = capture.weighs and long and capture.device is None and not capture.is_plain()
    return Run(capture, site, long) if weighed or may_leave(capture) else None
