"""What a compiled function does with given arguments: segments, breaks, their reasons and lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from np_compile import cupy_arrays
from np_compile.reader.reading import MISS
from np_compile.shim._devices import default_device
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
class KeptReport:
    """One kept call: calls like it run without Python. guards: what has to be so for a call to be
    like it. programs: how many it runs. one_call: whether they run as one. scratch_bytes: memory
    beside arguments and results that they take then."""

    guards: list[str]
    programs: int
    one_call: bool
    scratch_bytes: int = 0


@dataclass
class Explanation:
    """What `explain` gives. result: what the function gave. kept: its kept calls. not_kept: why
    calls like this one are not kept, where a reason is known; they are from the third on. loops:
    what became of the function's loops: compiled whole with what is around them, where compiled
    code left and why, what could not be read."""

    name: str
    result: Any = None
    segments: list[SegmentReport] = field(default_factory=list)
    breaks: list[BreakReport] = field(default_factory=list)
    kept: list[KeptReport] = field(default_factory=list)
    not_kept: str | None = None
    loops: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        runs = sum(s.runs for s in self.segments)
        lines = [
            f"{self.name}: {len(self.segments)} segments, run {runs} times; "
            f"{len(self.breaks)} breaks"
        ]
        lines += [f"  loops: {text}" for text in self.loops]
        for i, s in enumerate(self.segments):
            lines.append(f"  segment {i}: {len(s.calls)} NumPy calls, run {s.runs} times")
            lines += [f"    {line}" for line in s.lines]
            lines += [f"    note: {note}".replace("\n", "\n    ") for note in s.notes]
        for b in self.breaks:
            lines.append(f"  break ({b.kind}), {b.times} times: {b.reason}")
            lines.append(f"    at {b.line}")
        for k in self.kept:
            lines.append(f"  kept call: {k.programs} programs, without Python, for calls where")
            lines += [f"    {guard}" for guard in k.guards]
        if self.not_kept is not None:
            lines.append(f"  not kept: {self.not_kept}")
        return "\n".join(lines)


def explain(fn: Callable) -> Callable[..., Explanation]:
    """A function that calls `fn` (compiled or not) and tells how it was captured.

    The call is a real one, with all its effects. Printing the result shows segments, breaks with
    reason and line of user code, the number of NumPy calls of each segment, the kept calls with
    their guards, and why this one would not be kept.

    >>> import numpy as np, np_compile
    >>> def f(x):
    ...     return np.sin(x) + 1
    >>> e = np_compile.explain(np_compile.compile(f, backend="eager"))(np.zeros(3))
    >>> [s.calls for s in e.segments], e.breaks
    ([['sin', 'add']], [])
    """
    compiled = compiled_of(fn)

    def call(*args: Any, **kwargs: Any) -> Explanation:
        if cupy_arrays.among(args, kwargs):
            return cupy_arrays.called(explain(compiled.of_tensors()), None, args, kwargs)
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
                notes = [*more.notes, *getattr(more.compiled, "notes", ())]
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

        def of_arrays(inner: Any) -> Callable:
            def call(*args: Any, **kwargs: Any) -> Any:
                nonlocal report
                report = explain(inner)(*args, **kwargs)
                report.loops.insert(0, "it runs on arrays in place of its tensors")
                return report.result

            return call

        result = compiled._read(args, kwargs, of_arrays)
        report.result = result
        if report.loops:
            return report
        if compiled._reading is not None and compiled._reading.is_tried:
            report.loops = compiled._reading.report()
        if report.result is not MISS:
            away = not compiled._tensors and default_device().type != "cpu"
            if away and not any("runs on the device" in x for x in report.loops):
                report.loops.append("the loops run on the host, whatever the device")
            return report
        report.result = compiled._run(args, kwargs, listen)
        report.kept = kept_calls(compiled)
        keeper = compiled._keeper_of(args, kwargs)
        if keeper is not None:
            report.not_kept = keeper.refusal(args, kwargs)
        return report

    return call


def kept_calls(fn: Callable) -> list[KeptReport]:
    """The kept calls of a compiled function, the newest first, then those for many sizes; at the
    end those on arrays that live on a device meanwhile."""
    compiled = compiled_of(fn)
    keepers = [compiled._keeper, *compiled._on_devices.values()]
    return [report for keeper in keepers if keeper is not None for report in _reports(keeper)]


def _reports(keeper: Any) -> list[KeptReport]:
    reads = [] if keeper.reach is None else keeper.reach.guards
    return [
        KeptReport(
            [str(guard) for guard in (*kept.guards, *reads)],
            len(kept.plan.steps),
            kept.plan.sequence is not None,
            kept.plan.scratch_bytes,
        )
        for kept in keeper.kept
    ] + [
        KeptReport([*kept.texts, *map(str, reads)], kept.programs, False)
        for kept in keeper.for_sizes
    ]
