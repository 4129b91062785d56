"""The compiles of a function: why each was made, and where the time went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from np_compile.capture.policy.recompiles import Change

from .target import compiled_of

_PHASES = ("record", "lower", "translate", "passes", "emit", "compiler", "backend")


@dataclass(frozen=True)
class Recompile:
    """One compile of a segment. line: of user code, where it begins. calls: names of its NumPy
    calls. changes: what is other than in the compile before that is most like it, of the same calls
    at the same lines; empty where there is none. seconds: that it took, the C compiler included."""

    line: str
    calls: list[str]
    changes: list[Change]
    seconds: float

    def __str__(self) -> str:
        why = "; ".join(map(str, self.changes)) or "new"
        return f"{self.seconds:.3f} s, {len(self.calls)} NumPy calls from {self.line}: {why}"


@dataclass(frozen=True)
class CompileTimes:
    """Where the time of a function's compiles went, in seconds by phase, in order.

    record: NumPy calls, the first time in their place. lower: to a tensor graph. translate, passes,
    emit: to loops, through the passes, to C. compiler: the C compiler's, waited for or not; 0 where
    the cache had its work. backend: all that another back end does.
    """

    name: str
    programs: int
    phases: dict[str, float]

    def __str__(self) -> str:
        total = sum(self.phases.values())
        lines = [f"{self.name}: {self.programs} programs, {total:.3f} s"]
        lines += [f"  {phase:10} {seconds:.3f} s" for phase, seconds in self.phases.items()]
        return "\n".join(lines)


def recompiles(fn: Callable) -> list[Recompile]:
    """Every compile of a compiled function so far, with what made it new.

    >>> import numpy as np, np_compile
    >>> f = np_compile.compile(lambda x: np.sin(x) + 1, backend="eager")
    >>> _ = f(np.zeros(3)), f(np.zeros(3, "f4"))
    >>> [str(change) for compile in np_compile.recompiles(f) for change in compile.changes]
    ['dtype of input 0: float64 -> float32']
    """
    compiles = compiled_of(fn)._options.compiles
    return [
        Recompile(
            next((step.user_line for step, _ in program.node.calls()), ""),
            [call.name for _, call in program.node.calls()],
            compiles.changes(program),
            sum(program.phases.values()),
        )
        for program in compiles.programs
    ]


def compile_times(fn: Callable) -> CompileTimes:
    """Where the time of a compiled function's compiles went so far."""
    compiled = compiled_of(fn)
    options = compiled._options
    phases = dict.fromkeys(_PHASES, 0.0) | {"record": options.recording}
    for program in options.compiles.programs:
        for phase, seconds in program.phases.items():
            phases[phase] = phases.get(phase, 0.0) + seconds
    phases = {phase: seconds for phase, seconds in phases.items() if seconds}
    return CompileTimes(options.name, len(options.compiles.programs), phases)
