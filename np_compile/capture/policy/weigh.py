"""What a segment costs compiled and in NumPy, measured where it runs.

The verdict stays with the segment's node, so that later calls with arrays of these shapes have it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from np_compile import shim
from np_compile.tape.node import Node, Segment

from ..rerun import rerun

_RUNS = 4  # timed runs before the comparison
_REPEATS = 3
_COPIED = 1 << 28  # bytes of copies
_NEVER = 1e6  # seconds
_CALL = 3e-7  # seconds: NumPy takes no less for a call,
_BYTE = 5e-12  # nor for each byte that it touches
_USUAL_CALL, _USUAL_BYTE = 1e-6, 2e-10  # what it takes as a rule,
_LONG_CALL, _LONG_BYTE = 1e-5, 1e-9  # and seldom more than this
_RECORDING = 2.5e-6  # seconds: recording a call takes no more
_STAND_IN = 4e-7  # seconds that a call in NumPy costs more where its arguments are stand-ins


class Timing:
    """The runs of a segment so far: how many, and the quickest in seconds."""

    __slots__ = ("recording", "running", "runs")

    def __init__(self) -> None:
        self.runs = 0
        self.recording = self.running = float("inf")


def least_seconds(calls: int, touched: int) -> float:
    """What NumPy takes at least for so many calls that touch so many bytes."""
    return calls * _CALL + touched * _BYTE


def likely_seconds(calls: int, touched: int) -> float:
    """What NumPy takes for so many calls that touch so many bytes, as a rule."""
    return calls * _USUAL_CALL + touched * _USUAL_BYTE


def most_seconds(calls: int, touched: int) -> float:
    """What NumPy takes at most, in all likelihood, for so many calls that touch so many bytes."""
    return calls * _LONG_CALL + touched * _LONG_BYTE


def weigh(node: Node, seg: Segment, recording: float, running: float) -> None:
    """Note one run of a compiled segment; after a few, compare with NumPy: sets `node.excess`.

    recording: seconds since the segment before, with whatever else Python did meanwhile. running:
    seconds from the cut on.
    """
    timing = node.timing
    if timing is None:
        timing = node.timing = Timing()
    calls = node.count
    timing.runs += 1
    timing.running = min(timing.running, running)
    timing.recording = min(timing.recording, recording, _RECORDING * (calls + len(seg.inputs)))
    if timing.runs < _RUNS:
        return
    node.timing = None
    best = timing.running + timing.recording
    least = least_seconds(calls, node.bytes)
    if best > least:
        least = in_numpy(seg) + calls * _STAND_IN
    node.excess = best - least


def largest(node: Node) -> float:
    """Array elements beyond which what was measured at a node says nothing."""
    sizes = [2 * v.size for v in node.all_values()]
    return max(50_000, *sizes) if sizes else float("inf")


def in_numpy(seg: Segment) -> float:
    """Seconds that NumPy takes for the calls of a segment, on copies; `_NEVER` where it raises, or
    the copies are too large to make."""
    best = _NEVER
    if sum(a._t.nbytes for a in seg.inputs) > _COPIED:
        return best
    values: list[Any] = [None] * len(seg.values)
    for a in seg.inputs:
        real = shim.to_numpy(shim.ndarray(a._t, a._flip, a._is_scalar()))
        values[a._i] = real.copy(order="K") if isinstance(real, np.ndarray) else real
    clock = time.perf_counter
    total = 0.0

    def timed(function: Callable, args: list, kwargs: dict) -> Any:
        nonlocal total
        start = clock()
        result = function(*args, **kwargs)
        total += clock() - start
        return result

    try:
        with shim.quiet(), np.errstate(all="ignore"):
            for _ in range(_REPEATS):
                total = 0.0
                rerun(seg, values, timed)
                best = min(best, total)
                if best > 1e-2:
                    break
    except Exception:
        return _NEVER
    return best
