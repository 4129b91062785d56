"""What a compiled function does with given arguments: segments, breaks, their reasons and lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from np_compile.tape.node import Break

from .target import compiled_of


@dataclass
class SegmentReport:
    """One kind of segment. calls: names of its NumPy calls, in order. lines: where they stand in
    the user's code. notes: decisions of the back end, such as what it did not fuse and why. runs:
    how often it ran in this call."""

    calls: list[str]
    lines: list[str]
    notes: list[str] = field(default_factory=list)
    runs: int = 1


@dataclass
class BreakReport:
    """One reason to end a segment. kind: see tape.node.Break. line: file:line and its text."""

    kind: str
    reason: str
    line: str
    times: int = 1


@dataclass
class Explanation:
    """What `explain` gives. result: what the function gave."""

    name: str
    result: Any = None
    segments: list[SegmentReport] = field(default_factory=list)
    breaks: list[BreakReport] = field(default_factory=list)

    def __str__(self) -> str:
        runs = sum(s.runs for s in self.segments)
        lines = [
            f"{self.name}: {len(self.segments)} segments, run {runs} times; "
            f"{len(self.breaks)} breaks"
        ]
        for i, s in enumerate(self.segments):
            lines.append(f"  segment {i}: {len(s.calls)} NumPy calls, run {s.runs} times")
            lines += [f"    {line}" for line in s.lines]
            lines += [f"    note: {note}".replace("\n", "\n    ") for note in s.notes]
        for b in self.breaks:
            lines.append(f"  break ({b.kind}), {b.times} times: {b.reason}")
            lines.append(f"    at {b.line}")
        return "\n".join(lines)


def explain(fn: Callable) -> Callable[..., Explanation]:
    """A function that calls `fn` (compiled or not) and tells how it was captured.

    The call is a real one, with all its effects. Printing the result shows segments, breaks with
    reason and line of user code, and the number of NumPy calls of each segment.

    >>> import numpy as np, np_compile
    >>> def f(x):
    ...     return np.sin(x) + 1
    >>> e = np_compile.explain(np_compile.compile(f, backend="eager"))(np.zeros(3))
    >>> [s.calls for s in e.segments], e.breaks
    ([['sin', 'add']], [])
    """
    compiled = compiled_of(fn)

    def call(*args: Any, **kwargs: Any) -> Explanation:
        report = Explanation(compiled._options.name)
        segments: dict[int, SegmentReport] = {}
        breaks: dict[tuple, BreakReport] = {}

        def listen(event: str, what: Any, more: Any) -> None:
            if event == "segment":
                if id(what) in segments:
                    segments[id(what)].runs += 1
                    return
                steps = what.calls()
                lines = list(dict.fromkeys(node.user_line for node, _ in steps))
                notes = list(getattr(more.compiled, "notes", ()))
                segments[id(what)] = SegmentReport([call.name for _, call in steps], lines, notes)
                report.segments.append(segments[id(what)])
            else:
                reason: Break = what
                key = (reason.text, more)
                if key in breaks:
                    breaks[key].times += 1
                    return
                breaks[key] = BreakReport(reason.kind, reason.text, more)
                report.breaks.append(breaks[key])

        report.result = compiled._run(args, kwargs, listen)
        return report

    return call
