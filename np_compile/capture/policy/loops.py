"""Loop iterations: where a long loop is cut, so that one body is compiled, not all.

A loop over a `range`, or over the rows of an array, marks its iterations (`marked`). Of the others
it is seen that calls come again that stand where others have stood (`see`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from np_compile import config
from np_compile.tape.node import Break, Node

from .. import frames
from ..state import current
from . import runs

if TYPE_CHECKING:
    from ..capture import Capture

_LOOP = Break("loop", "a loop iteration ends")
# Why a segment is cut before a call: as it stands where the segment began, and as it is found that
# calls come again. What was recorded until then is no piece of the user's code.
COMES_AGAIN = Break("loop", "a loop comes again to where it was")
BEGINNING = Break("loop", "a loop comes again to where it was, more often than is unrolled")
_BODY = 16  # NumPy calls of an iteration, where as many as `config.unroll` are unrolled
_BODY_GRAD = 8  # with gradients, where each of them takes torch's compiler some milliseconds
_LIGHT = 4  # times as many iterations are, if all of them make no more than its square of calls
_EVERY = 64  # calls after which it is looked whether they come again
_TOGETHER = range(8, 3, -1)  # light iterations in a segment
_BUILT = 2  # programs of several iterations, met in one run of a loop, before the last of them


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

    site: what identifies the loop in the user's code. The loop goes on in NumPy where an iteration
    does little, see `runs`.
    """
    capture = current()
    if capture is None:
        yield from numbers
        return
    limit = config.max_calls
    iterations = capture.iterations
    count = _length(numbers)
    times = count * capture.unrolled
    most = config.unroll
    long = count > _LIGHT * most or times > most * most
    if long and capture.seg.node.parent is not None:
        capture.cut(_LOOP)
    outer = capture.is_plain()
    run = runs.of_loop(capture, site, long)
    watch = capture.watch
    several = _Several(capture, count) if long and watch is not None else None
    unrolled, depth = capture.unrolled, len(iterations)
    before = capture.seg.node.count
    capture.unrolled = 1 if long else times
    iterations.append(0)
    try:
        for i in numbers:
            if len(iterations) == depth + 1:
                iterations[depth] = i
            else:  # another loop was left in the midst of an iteration
                iterations[depth:] = (i,)
            yield i
            if capture.plain:
                if capture.until is not None and not outer and capture.until.ready:
                    capture.end_plain()
                continue
            node = capture.seg.node
            if run is not None:
                run.iteration_ends(node)
                if capture.plain:
                    continue
            if not long and i == numbers[0]:
                calls = (node.count - before) * count
                if count > most:
                    long = calls > most * most
                elif capture.immediate:
                    long = calls > _BODY * most
                elif capture.grads and capture.differentiates():
                    long = calls > _BODY_GRAD * most
            if several is not None:
                if several.goes_on(node):
                    continue
                if watch is None or not watch.waits:
                    several = None
            if node.parent is not None and (long or node.count > limit):
                capture.cut(_LOOP if long else BEGINNING)
    finally:
        capture.unrolled = unrolled
        del iterations[depth:]
        if not outer and not capture.closed:
            capture.end_plain()


def _length(numbers: range) -> int:
    try:
        return len(numbers)
    except OverflowError:  # a loop that is left
        return sys.maxsize


def see(capture: Capture, node: Node) -> None:
    """Look where a call stands that is recorded for the first time. Where code comes again that
    the segment has calls of, in a loop without marks, the segment is to be cut before it.

    That is looked for in long segments only. A loop that was found is known by the place of a call
    in it, and each iteration is a segment.
    """
    node.place = place, line = frames.place(capture.iterations)
    known = place in capture.loop_places
    if node.reason is not None or not (known or node.count % _EVERY == 0):
        return
    before = [n.place for n in node.path()[:-1] if n.place is not None]
    if known:
        if before:
            node.reason = COMES_AGAIN
    elif sum(p[0] == place for p in before) > config.unroll or (
        node.count > config.max_calls and any(p[1] == line for p in before)
    ):
        node.reason = BEGINNING
    node.special = node.special or node.reason is not None


class _Several:
    """One run of a loop in a call that may be kept: how many iterations are one segment.

    Iterations that do the same, and little to each of many elements, are some at a time: the
    elements stay in registers from one to the next. Nothing is lost by it, as long as the same
    iterations come again.
    """

    __slots__ = (
        "_built", "_capture", "_ints", "_last", "_left", "_most", "_rest", "_size", "_worth",
    )  # fmt: skip

    def __init__(self, capture: Capture, count: int):
        self._capture = capture
        self._rest = count  # iterations that have not ended
        # As many in each call, whenever it is seen that they repeat.
        self._most = max(_TOGETHER, key=lambda size: (count - 2) // size * size)
        self._left = 0  # of those in the segment
        self._size = 1
        self._last: Node | None = None  # where the last iteration ended, and its integers
        self._ints: list[int] = []
        self._built = capture.built
        self._worth = _BUILT

    def goes_on(self, node: Node) -> bool:
        """Whether the segment goes on, at the end of an iteration. node: where that is."""
        self._rest -= 1
        ints = self._capture.seg.ints
        if self._left > 1:
            self._left -= 1
            return True
        if self._size == 1:
            same = self._repeats(node) and ints == self._ints
            if same and self._capture.built == self._built and self._is_light(node):
                self._size = self._most
        elif self._capture.built != self._built:
            self._worth -= 1
        self._built = self._capture.built
        self._last, self._ints = node, ints
        watch = self._capture.watch
        more = self._size > 1 and self._worth > 0 and watch is not None and watch.waits
        self._left = self._size if more and self._rest >= self._size else 1
        return False

    def _repeats(self, node: Node) -> bool:
        """Whether an iteration that ends there does what the last one did. Nodes of sizes that are
        new are others in each."""
        last = self._last
        if last is None or node is last:
            return node is last
        there, here = (last.extents, last.integers), (node.extents, node.integers)
        return node.step is last.step and here == there

    def _is_light(self, node: Node) -> bool:
        """Whether the programs that end there do little to each of many elements, whatever
        iteration it is: their integers were the same in each so far."""
        programs = [
            program
            for variants in node.programs.values()
            if not variants.dynamic and len(variants.programs) == 1
            for program in variants.programs.values()
        ]
        ran = self._capture.ran
        if not node.programs and ran is not None and ran.node is self._last:
            programs = [ran]  # for many sizes, of which this one is new
        return bool(programs) and all(getattr(p.compiled, "light", False) for p in programs)
