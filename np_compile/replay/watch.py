"""What one call has run, noted while it runs: what a kept call is made of."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch

from np_compile.capture.arrays.array import Array
from np_compile.capture.arrays.traced import Asked
from np_compile.tape.node import Break, Segment

from .guards import Reach

# Runs of programs in a watched call, at most, and elements of arguments that Python reads.
_STEPS = 20_000
_READ = 64
_WRITTEN = "Python reads an element of an argument after something was written"


class Watch:
    """What one call has run. Spoiled, once something happened that the programs do not hold.

    arguments: those of the call, as it found them. reach: what the function reads. steps: (program,
    where its tensors come from, floats, integers, segment); a tensor is number -1 - k of what
    programs have made, or the id of one in `given`. Made ones are not held: their memory is the
    user's. read: elements of arguments that Python has read: {(id of the argument, index): its
    bytes}, of small arrays all; parts: whether it has read some that are not noted. own: numbers
    of tensors that programs without inputs have made, the same in each call. touched: those of them
    whose elements Python has read or written: a kept call has them as they were. decided: what
    Python has made of results, see `decides`; deciding: whether it is about to. patient: whether
    loops go on compiled while it is watched, though NumPy were faster in them: a kept call may not
    be slower. written: whether a program has written to an array. guesses: whether lengths may be
    guessed (see `guess`). traces: whether sizes that Python sees are to know what they are. why: it
    is spoiled, if it is; for_now: as later calls like it may not be. seen: what Python has seen of
    the sizes of arrays, if anything, but through numbers that are traced; asked: what it has asked
    of these.
    """

    __slots__ = (
        "_count", "_numbers", "arguments", "asked", "decided", "deciding", "for_now", "given",
        "guesses", "own", "parts", "patient", "reach", "read", "seen", "steps", "touched", "traces",
        "why", "written",
    )  # fmt: skip

    def __init__(
        self, arguments: Any, reach: Reach, patient: bool, guesses: bool, traces: bool
    ) -> None:
        self.arguments = arguments
        self.reach = reach
        self.patient = patient
        self.guesses = guesses
        self.traces = traces
        self.why: str | None = None
        self.for_now = False
        self.seen: str | None = None
        self.asked: list[Asked] = []
        self.steps: list[tuple] = []
        self.read: dict[tuple, Any] = {}
        self.own: set[int] = set()
        self.touched: set[int] = set()
        self.decided: list[tuple[int, int]] = []
        self.deciding = False
        self.given: dict[int, torch.Tensor] = {}
        self.parts = False
        self.written = False
        self._numbers: dict[int, tuple[weakref.ref, int]] = {}
        self._count = 0

    @property
    def spoiled(self) -> bool:
        """Whether the call cannot be kept."""
        return self.why is not None

    @property
    def waits(self) -> bool:
        """Whether loops go on compiled for its sake."""
        return self.patient and self.why is None

    def spoil(self, why: Break | str, for_now: bool = False) -> None:
        """The call cannot be kept. The first reason is the one that counts. for_now: whether later
        ones like it may be."""
        if self.why is None:
            self.why, self.for_now = str(why), for_now

    def sees(self, what: str) -> None:
        """Note that Python sees something of the sizes of arrays."""
        self.seen = self.seen or what

    def reads(self, a: np.ndarray, key: Any, alone: bool = False) -> bool:
        """Note that Python reads the element `a[key]` of an argument. False, and spoiled, if it is
        not known to be what it was when the call began, or if there are too many. alone: whether
        other elements are data."""
        key = key if type(key) is tuple else (key,)
        if not alone and self.reads_all(a):
            return True
        if self.written:
            self.spoil(_WRITTEN)
        elif self.is_full:
            self.spoil(f"Python reads more than {_READ} elements of arguments")
        elif all(-n <= i < n for i, n in zip(key, a.shape, strict=True)):
            self.read[id(a), key] = a[key].tobytes()
        return not self.spoiled

    @property
    def is_full(self) -> bool:
        """Whether Python has read as many elements as are compared."""
        return len(self.read) >= _READ

    def reads_all(self, a: np.ndarray) -> bool:
        """Note that Python reads elements of a small argument, whichever. False for a large one,
        and where it is not known to be what it was."""
        if self.written or self.is_full or a.size > _READ:
            return False
        self.read[id(a), ...] = a.tobytes()
        return True

    def number(self, t: torch.Tensor | None) -> int | None:
        """The number of a tensor that a program has made; None for others."""
        found = self._numbers.get(id(t))
        return found[1] if found is not None and found[0]() is t else None

    def touches(self, a: Array) -> bool:
        """Note that Python reads or writes elements of an array; whether that may be."""
        number = self.number(a._t)
        if a._base is not None or number not in self.own:
            return False
        self.touched.add(number)  # type: ignore[arg-type]
        return True

    def cut(self, reason: Break, inputs: list[Array]) -> None:
        """Note the end of a segment with these inputs."""
        if reason.kind in ("loop", "end") or (reason.kind == "value" and not inputs):
            return
        if not self.deciding:
            self.spoil(reason.text)

    def decides(self, number: int, answer: int) -> None:
        """Note that Python goes by the truth of a result, a bool, or by its value, an integer: the
        call is like another one where that is the same."""
        self.decided.append((number, answer))

    def ran(
        self, program: Any, seg: Segment, tensors: list[torch.Tensor], outputs: list[torch.Tensor]
    ) -> None:
        """Note a run."""
        if len(self.steps) >= _STEPS:
            self.spoil(f"it runs more than {_STEPS} programs")
        if self.spoiled:
            self.steps.clear()
            return
        self.written = self.written or bool(program.mutates)
        sources = []
        for t in tensors:
            number = self.number(t)
            if number is None:
                self.given[id(t)] = t
                sources.append(id(t))
            else:
                sources.append(-1 - number)
        if self.own:
            read = {-1 - s for s in sources}
            if not read.isdisjoint(self.touched):
                self.spoil("a program reads an array that Python has filled")
            if program.mutates:
                self.own -= read
        for t in outputs:
            if not tensors:
                self.own.add(self._count)
            self._numbers[id(t)] = weakref.ref(t), self._count
            self._count += 1
        self.steps.append((program, sources, tuple(seg.floats), tuple(seg.ints), seg))
