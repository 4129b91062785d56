"""The programs of a kept call: in which order, on what, and for how long a result is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from np_compile.capture.policy.choice import Choice
from np_compile.runtime.program import OF_DATA, sequence

from .calls import Entry
from .guards import Guard, Refused
from .watch import Watch

Place = Callable[[torch.Tensor], "int | None"]


class Plan:
    """The programs of a kept call.

    steps: (program, where its tensors come from, floats, integers); a tensor comes from argument k,
    k >= 0, or is number -1-k of constants and results so far. wanted: numbers of the results that
    the call gives. whole: whether the steps may be one call, without Python in between; sequence:
    that call, where they can. reads: arguments that are read; written: those that are written to.
    decided: results that are a truth or an integer of which it is known what they have to be, in
    the order in which they are made.
    """

    __slots__ = ("_runs", "constants", "decided", "reads", "sequence", "steps", "wanted", "written")

    def __init__(
        self, steps: list[tuple], constants: list[torch.Tensor], wanted: list[int], whole: bool,
        decided: Sequence[tuple[int, int]] = (),
    ):  # fmt: skip
        self.steps = steps
        self.decided = tuple(decided)
        wanted = [*dict.fromkeys([*wanted, *[n for n, _ in decided]])]
        self.constants = constants
        self.wanted = wanted
        self.reads = sorted({s for _, sources, *_ in steps for s in sources if s >= 0})
        self.written = {s for p, sources, *_ in steps for k in p.written if (s := sources[k]) >= 0}
        self.sequence = sequence(steps, constants, wanted) if whole else None
        self._runs: list[tuple] | None = None

    @property
    def scratch_bytes(self) -> int:
        """Memory beside arguments and results that the sequence takes; 0 where there is none."""
        return 0 if self.sequence is None else int(self.sequence.block_bytes)

    @property
    def writes(self) -> bool:
        """Whether a program writes to an array."""
        return any(program.mutates for program, *_ in self.steps)

    def run(
        self, tensors: Any, start: int = 0, before: Mapping[int, torch.Tensor] | None = None
    ) -> list[Any] | None:
        """What the programs make, one after the other, by number; None for what is not wanted. None
        for all where one raises before anything was written: the call is then made again, and that
        has NumPy's words.

        tensors: of arguments, by their positions. start: the step from which they run. before:
        constants and results of earlier steps.
        """
        runs = self._runs
        if runs is None:
            runs = self._runs = [*self._bound()]
        made: list[Any] = [*self.constants]
        if start and before is not None:
            made = [before[k] for k in range(runs[start][0])]
        for k, (_, run, sources, ends, again) in enumerate(runs[start:], start):
            given = [tensors[s] if s >= 0 else made[-1 - s] for s in sources]
            error: Exception | None = None
            try:
                made += run(given)
            except OF_DATA as e:
                if again:
                    return None
                error = e
            if error is not None:  # here, where torch's is no context of it
                program, _, floats, ints = self.steps[k]
                raise program.in_words(error, given, floats, ints)
            for number in ends:
                made[number] = None
        return made

    def _bound(self) -> Iterator[tuple[int, Callable, Sequence[int], list[int], bool]]:
        """Of each step the number of the first result, what runs, on what, numbers that are not
        needed afterwards, and whether nothing was written if it raises."""
        last: dict[int, int] = {}
        first = len(self.constants)
        for k, (program, sources, *_) in enumerate(self.steps):
            last.update((-1 - s, k) for s in sources if s < 0)
            last.update((first + n, k) for n in range(len(program.live)))
            first += len(program.live)
        ends: list[list[int]] = [[] for _ in self.steps]
        for number, k in last.items():
            if number not in self.wanted:
                ends[k].append(number)
        first = len(self.constants)
        written = False
        for (program, sources, floats, ints), end in zip(self.steps, ends, strict=True):
            # A native program that fails has written nothing.
            again = not written and not (program.mutates and program.backend_name != "native")
            yield first, program.bound(floats, ints), sources, end, again
            first += len(program.live)
            written = written or bool(program.mutates)


class Kept:
    """One kept call. guards: what has to be so for a call to be like it. choice: whether calls like
    it are faster as they stand; None where that is not asked. reach: what the function read. heat:
    a `hot.Heat`, where it may be made of other programs. entry: what C knows it by, if it does."""

    __slots__ = ("choice", "entry", "guards", "heat", "plan", "reach")

    def __init__(self, guards: list[Guard], plan: Plan):
        self.choice: Choice | None = None
        self.entry: Entry | None = None
        self.reach: Any = None
        self.heat: Any = None
        self.guards = guards
        self.plan = plan

    def settle(self, settled: bool = True, sampled: int = 0) -> None:
        """From now on C makes such calls, where it can; or not. sampled: see `calls.Entry`."""

    def run(self, leaves: Any) -> Any:
        """What the function does and gives, by the plan. MISS where a program raises before
        anything was written: the call is then made again, and that has NumPy's words."""
        raise NotImplementedError


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
    for program, read, floats, ints, _ in watch.steps:
        if any(read[k] >= 0 and sources[read[k]] < 0 for k in program.written):
            raise Refused("it writes to an array that it has made of constants")
        places = tuple([s - count if s < 0 else sources[s] for s in read])
        steps.append((program, places, floats, program.dynamic_ints(ints)))

    def place(t: torch.Tensor) -> int | None:
        number = watch.number(t)
        return None if number is None or number in watch.touched else count + number

    return steps, constants, place
