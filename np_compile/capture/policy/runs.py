"""Whether a loop with marked iterations goes on in NumPy, from what its iterations cost.

In host memory that is measured: what the segments of an iteration take as kernels and in NumPy
(`weigh`). A device takes tens of microseconds for the smallest piece of work, a compile for it many
seconds: there a loop that does little in an iteration, or does it to arrays of other shapes each
time, leaves the device. Its arrays come to the host when they are first touched there, and go back
when the loop ends, or meets a large array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from np_compile import config
from np_compile.tape.node import Node

from .decide import LARGE, Decision, Way, is_patient, is_small, may_leave, to_the_host
from .weigh import largest

if TYPE_CHECKING:
    from ..capture import Capture

_USES = 256  # runs of a loop in NumPy before it is looked at again
_PLACES = 256  # loops remembered of one function
_COMPILES = 3  # iterations of one run of a loop on a device that may compile something
_WORTH_COMPILING = 10**9  # bytes of an iteration, beyond which a compile is shorter than it


class Place:
    """A loop that goes on in NumPy in calls with arguments of one signature.

    decision: why. node: the segment whose measurement said so, if one did. uses: how often since.
    """

    __slots__ = ("decision", "node", "uses")

    def __init__(self, decision: Decision, node: Node | None):
        self.decision = decision
        self.node = node
        self.uses = 0


class Run:
    """One run of a loop. site: what identifies it in the user's code. long: whether each iteration
    is a segment; a short loop on a device only follows the loops inside it."""

    __slots__ = ("_capture", "_key", "_long")

    def __init__(self, capture: Capture, site: Any, long: bool):
        self._capture = capture
        self._key = (capture.device is not None, site, capture.signature)
        self._long = long
        self._note()
        if config.plain == "always":
            if long:
                why = "as the setting `plain` says, the loop goes on in NumPy"
                capture.go_plain(Decision(Way.NUMPY, why, 0))
        else:
            self._remembered()

    def _remembered(self) -> None:
        """Go on in NumPy from the first iteration where an earlier call found that faster."""
        capture = self._capture
        place = capture.options.loops.get(self._key)
        if place is None:
            return
        place.uses += 1
        if place.uses > _USES:  # look again
            if place.node is not None:
                place.node.excess = None
            capture.options.loops.pop(self._key, None)
        elif not is_patient(capture):
            capture.go_plain(place.decision)

    def _note(self) -> None:
        """Note the state of the capture before an iteration."""

    def _judge(self, node: Node) -> Decision | None:
        """What to do after an iteration, if it is not to go on as it did."""
        raise NotImplementedError

    def iteration_ends(self, node: Node) -> None:
        """node: where the segment of the iteration ends."""
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
            places[self._key] = Place(
                Decision(Way.NUMPY, known, decision.limit), self._measured(node)
            )

    def _measured(self, node: Node) -> Node | None:
        """The node whose measurement is to be made anew when it is looked again."""
        return None


class OnHost(Run):
    """One run of a loop over arrays in host memory."""

    __slots__ = ("_excess", "_total", "_unweighed")

    def __init__(self, capture: Capture, site: Any):
        self._total = 0.0
        super().__init__(capture, site, True)

    def _note(self) -> None:
        self._excess, self._unweighed = self._capture.excess, self._capture.unweighed

    def _judge(self, node: Node) -> Decision | None:
        capture = self._capture
        lost = capture.excess - self._excess
        known = capture.unweighed == self._unweighed
        self._note()
        if not known or is_patient(capture):
            return None
        self._total += lost
        if lost <= 0 or self._total <= 0:
            return None
        why = f"an iteration is {lost * 1e6:.1f} us faster in NumPy: the loop goes on there"
        return Decision(Way.NUMPY, why, largest(node))

    def _measured(self, node: Node) -> Node | None:
        return node


class OnDevice(Run):
    """One run of a loop over arrays on a device."""

    __slots__ = ("_built", "_bytes", "_calls", "_compiles", "_left")

    def __init__(self, capture: Capture, site: Any, long: bool):
        self._compiles = 0
        super().__init__(capture, site, long)

    def _note(self) -> None:
        capture = self._capture
        self._calls, self._bytes = capture.count, capture.bytes
        self._left = capture.left
        self._built = capture.built

    def _judge(self, node: Node) -> Decision | None:
        capture = self._capture
        calls = capture.count - self._calls + node.count
        touched = capture.bytes - self._bytes + node.bytes
        left = capture.left > self._left
        self._compiles += capture.built > self._built
        self._note()
        if not (left or (calls and self._long)) or not may_leave(capture):
            return None
        if is_small(calls, touched):
            return to_the_host("an iteration does too little for a device", "loop", LARGE)
        if self._compiles > _COMPILES and touched < _WORTH_COMPILING:
            return to_the_host("each iteration would be compiled for itself", "loop", float("inf"))
        return None


def of_loop(capture: Capture, site: Any, long: bool) -> Run | None:
    """What follows the iterations of a loop that begins; None where it goes on as it does."""
    if may_leave(capture):
        return OnDevice(capture, site, long)
    if long and capture.immediate and not capture.is_plain() and config.plain != "never":
        return OnHost(capture, site)
    return None
