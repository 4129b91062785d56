"""The programs of a kept call: in which order, on what, and for how long a result is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch

from np_compile.capture.choice import Choice
from np_compile.runtime.program import sequence

from .guards import Guard, Refused
from .watch import Watch

Place = Callable[[torch.Tensor], "int | None"]


class Plan:
    """The programs of a kept call.

    steps: (program, where its tensors come from, floats, integers); a tensor comes from argument k,
    k >= 0, or is number -1-k of constants and results so far. wanted: numbers of the results that
    the call gives. reads: arguments that are read; written: those that are written to. sequence:
    the steps as one call, where they can be one.
    """

    __slots__ = ("_runs", "constants", "reads", "sequence", "steps", "wanted", "written")

    def __init__(
        self, steps: list[tuple], constants: list[torch.Tensor], wanted: list[int], tensors: bool,
        whole: bool = True,
    ):  # fmt: skip
        self.steps = steps
        self.constants = constants
        self.wanted = wanted
        self.reads = sorted({s for _, sources, *_ in steps for s in sources if s >= 0})
        self.written = {s for p, sources, *_ in steps for k in p.written if (s := sources[k]) >= 0}
        ends = _ends(steps, len(constants), wanted)
        firsts = accumulate((len(p.live) for p, *_ in steps), initial=len(constants))
        written = False
        self._runs: list[tuple] = []
        for (program, sources, floats, ints), first, end in zip(steps, firsts, ends, strict=False):
            # A native program that fails has written nothing.
            again = not written and not (program.mutates and program.backend_name != "native")
            self._runs.append((program.bound(floats, ints), sources, first, end, again))
            written = written or bool(program.mutates)
        self.sequence = sequence(steps, constants, wanted, tensors) if whole else None

    @property
    def writes(self) -> bool:
        """Whether a program writes to an array."""
        return any(program.mutates for program, *_ in self.steps)

    def run(
        self, tensors: Any, start: int = 0, made: Mapping[int, torch.Tensor] | None = None
    ) -> list[Any] | None:
        """What the programs make, by number; of it what is wanted. None where one raises before
        anything was written: the call is then made again, and that has NumPy's words.

        tensors: of arguments, by their positions. start: the step from which they run. made:
        constants and results before it.
        """
        runs, here = self._runs, self.constants
        if start:
            assert made is not None
            runs, here = runs[start:], [made.get(k) for k in range(runs[start][2])]  # type: ignore
        here = [*here]
        for run, sources, _, ends, again in runs:
            try:
                here += run([tensors[s] if s >= 0 else here[-1 - s] for s in sources])
            except Exception:
                if again:
                    return None
                raise
            for number in ends:
                here[number] = None  # type: ignore[call-overload]
        return here


class Kept:
    """One kept call. guards: what has to be so for a call to be like it. choice: whether calls like
    it are faster as they stand; None where that is not asked."""

    __slots__ = ("choice", "guards", "plan")

    def __init__(self, guards: list[Guard], plan: Plan):
        self.choice: Choice | None = None
        self.guards = guards
        self.plan = plan

    def settle(self, settled: bool = True, sampled: int = 0) -> None:
        """From now on C makes such calls, where it can; or not. sampled: see `calls.Entry`."""

    def run(self, leaves: Any) -> Any:
        """What the function does and gives, by the plan. MISS where a program raises before
        anything was written: the call is then made again, and that has NumPy's words."""
        raise NotImplementedError


def _ends(steps: list[tuple], constants: int, wanted: Sequence[int]) -> list[list[int]]:
    """Of each step the numbers of what is needed neither by a later one nor by the result."""
    last: dict[int, int] = {}
    number = constants
    for k, (program, sources, *_) in enumerate(steps):
        last.update((-1 - s, k) for s in sources if s < 0)
        for _ in program.live:
            last[number] = k
            number += 1
    ends: list[list[int]] = [[] for _ in steps]
    for number, k in last.items():
        if number not in wanted:
            ends[k].append(number)
    return ends


def steps_of(
    watch: Watch, positions: dict[int, int]
) -> tuple[list[tuple], list[torch.Tensor], Place]:
    """What a call has run as in `Plan`: the steps, the constants, and the number of a result by
    its tensor. positions: of arguments, by their tensors.

    Errors: Refused, where a constant is written to.
    """
    # What is neither an argument nor a result is an array that the function made of constants.
    constants = [t for key, t in watch.given.items() if key not in positions]
    count = len(constants)
    sources = positions | {id(t): -1 - k for k, t in enumerate(constants)}
    steps = []
    for program, read, floats, ints in watch.steps:
        if any(read[k] >= 0 and sources[read[k]] < 0 for k in program.written):
            raise Refused("it writes to an array that it has made of constants")
        places = tuple([s - count if s < 0 else sources[s] for s in read])
        steps.append((program, places, floats, program.dynamic_ints(ints)))

    def place(t: torch.Tensor) -> int | None:
        number = watch.number(t)
        return None if number is None or number in watch.touched else count + number

    return steps, constants, place
