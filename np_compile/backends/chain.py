"""The programs of a call one after the other, as one node in torch's record.

Some programs ask a library between their kernels (equations, transforms, factors), which are calls
from Python. They run as they are, and those of kernels alone that follow one another as a `Joint`.
The gradients of what one hands to the next are added up here, without autograd.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import Any, NamedTuple

import numpy as np
import torch
from torch._C import _is_any_autocast_enabled as _autocasts

from np_compile.kernels.run.execute import Executable

from .halves import Halves, applied, has_memory
from .joint import Joint, Refused, entry_of, halves_of

_SMALL = 1 << 12  # elements of zeros that are kept


@functools.lru_cache(256)
def _kept_zeros(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype, device=device)


def zeros(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """The gradient of what nothing depends on, to be read alone."""
    if shape.numel() <= _SMALL:
        return _kept_zeros(shape, dtype, device)
    return torch.zeros(shape, dtype=dtype, device=device)


class Step(NamedTuple):
    """A program that `native` has made, how many results it gives, where its tensors come from as
    in a plan, its floats and integers, and the device that these lie on."""

    made: Any
    results: int
    sources: Sequence[int]
    floats: Sequence[float]
    ints: Sequence[int]
    device: torch.device | None


class _Plain:
    """A program without gradients, in the place of halves."""

    def __init__(self, program: Executable, count: int):
        self._program = program
        self.count = count
        self.constant = list(range(count))
        self.saved_results: list[int] = []
        self.saved_inputs: list[int] = []

    def forward(self, tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        return self._program.run(tensors, (), ())


@dataclass
class _Part:
    """What runs at once. sources: where its tensors come from, as in a plan; vectors: its
    parameters, which follow them. gives: what its results are called as sources. ends: sources that
    nothing reads afterwards. likes: shapes, dtypes and devices of its results, own: how much it
    saves beside them, once it ran."""

    made: Halves | Joint | _Plain
    sources: Sequence[int]
    vectors: list[torch.Tensor]
    gives: Sequence[int]
    ends: list[int] = field(default_factory=list)
    likes: list[tuple] = field(default_factory=list)
    own: int = 0

    def needs(self) -> Iterator[int]:
        """The sources that its gradient reads, beside parameters."""
        yield from (self.gives[k] for k in self.made.saved_results)
        yield from (self.sources[k] for k in self.made.saved_inputs if k < len(self.sources))

    def run(self, values: dict[int, torch.Tensor]) -> Sequence[torch.Tensor]:
        """Make its results, by sources; what is saved beside them."""
        made = self.made.forward([*[values[s] for s in self.sources], *self.vectors])
        count = self.made.count
        values.update(zip(self.gives, made, strict=False))
        if not self.likes:
            self.own = len(made) - count
            self.likes = [(t.shape, t.dtype, t.device) for t in made[:count]]
        return made[count:]

    def gradients(
        self, own: Sequence[torch.Tensor], values: dict[int, torch.Tensor],
        sums: dict[int, torch.Tensor],
    ) -> Iterator[tuple[int, torch.Tensor | None]]:  # fmt: skip
        """The gradients by its sources, of those of its results, which are taken out of `sums`.
        own: what its forward half has saved beside results."""
        if isinstance(self.made, _Plain) or sums.keys().isdisjoint(self.gives):
            return iter(())
        count = len(self.sources)
        inputs = self.made.saved_inputs
        saved = [
            *own, *[values[self.gives[k]] for k in self.made.saved_results],
            *[values[self.sources[k]] if k < count else self.vectors[k - count] for k in inputs],
        ]  # fmt: skip
        given = [
            sums.pop(s) if s in sums else zeros(*like)
            for s, like in zip(self.gives, self.likes, strict=True)
        ]
        found = self.made.gradients(saved, given)
        held = {id(g) for g in given}  # which may be given back
        found = [g.clone() if id(g) in held else g for g in found]  # type: ignore[union-attr]
        return zip(self.sources, found, strict=False)


class Chain:
    """Makes the calls, as a `Joint` does: `halves.Halves` of a whole plan, as far as autograd is
    concerned.

    Errors: Refused.
    """

    def __init__(
        self, steps: Sequence[Step], constants: list[torch.Tensor], wanted: list[int],
        reads: Sequence[int],
    ):  # fmt: skip
        self._halves = [h for s in steps if (h := halves_of(s.made)) is not None]
        self._steps, self._constants = steps, constants
        self._wanted = [-1 - n for n in wanted]  # as sources
        self._reads = list(reads)
        self._first = [*accumulate((s.results for s in steps), initial=len(constants))]
        single = [*map(self._single, range(len(steps)))]
        self._runs = [*self._in_runs(single)]
        if len(self._halves) < 2 and not any(joint for joint, _ in self._runs):
            raise Refused  # it is one node as it is
        given = {s for p in single for k, s in enumerate(p.gives) if k not in p.made.constant}
        self.count = len(wanted)
        self.constant = [k for k, s in enumerate(self._wanted) if s not in given]
        self._parts: list[_Part] | None = None

    def _single(self, k: int) -> _Part:
        step = self._steps[k]
        made: Any = halves_of(step.made)
        if made is None:
            program = getattr(step.made, "without_gradient", step.made)
            if not isinstance(program, Executable):
                raise Refused
            made = _Plain(program, step.results)
        vectors = [
            torch.from_numpy(np.array(v, d)).to(step.device or "cpu")
            for v, d in ((step.floats, float), (step.ints, np.int64)) if v
        ]  # fmt: skip
        first = self._first[k]
        return _Part(made, step.sources, vectors, [-1 - first - k for k in range(step.results)])

    def _in_runs(self, single: list[_Part]) -> Iterator[tuple[_Part | None, list[_Part]]]:
        """The steps that may be one `Joint`, if there can be one, and each by itself."""
        kernels = [entry_of(s.made) is not None for s in self._steps]
        for alone, found in groupby(range(len(single)), kernels.__getitem__):
            numbers = [*found]
            joint = None
            if alone:
                with suppress(Refused):
                    joint = self._joint(numbers[0], numbers[-1] + 1)
            yield joint, [single[k] for k in numbers]

    def _joint(self, begin: int, end: int) -> _Part:
        """Steps as one part. What earlier ones have made are its arguments."""
        first, count = self._first[begin], len(self._constants)
        arguments: dict[int, int] = {}

        def source(s: int) -> int:
            if s < 0 and -1 - s < count:
                return s
            if s < 0 and -1 - s >= first:
                return s + first - count
            return arguments.setdefault(s, len(arguments))

        steps = [
            (s.made, tuple(map(source, s.sources)), s.floats, s.ints)
            for s in self._steps[begin:end]
        ]
        later = {s for step in self._steps[end:] for s in step.sources}.union(self._wanted)
        gives = [-1 - n for n in range(first, self._first[end]) if -1 - n in later]
        wanted = [-1 - s - first + count for s in gives]
        made = Joint(steps, self._constants, wanted, range(len(arguments)))
        return _Part(made, [*arguments], [], gives)

    def is_ready(self) -> bool:
        """Whether it can run: a gradient was asked for, and what it needs is compiled."""
        if self._parts is None:
            if not any(h.asked for h in self._halves):
                return False
            parts: list[_Part] = []
            for joint, single in self._runs:
                if joint is None:
                    parts += single
                elif joint.made.is_ready():  # type: ignore[union-attr]
                    parts.append(joint)
                elif joint.made.refused:  # type: ignore[union-attr]
                    parts += single
                else:
                    return False
            self._settle(parts)
        return True

    def _settle(self, parts: list[_Part]) -> None:
        """Find out what is saved, and after which part what is not is no longer needed."""
        self._held = {-1 - k: c for k, c in enumerate(self._constants)}
        needs = {s for p in parts for s in p.needs()}
        fixed = {*self._held, *self._reads, *self._wanted}
        self._kept = sorted(needs - fixed)
        self.saved_results = [k for k, s in enumerate(self._wanted) if s in needs]
        self.saved_inputs = [k for k, s in enumerate(self._reads) if s in needs]
        last = {s: p for p in parts for s in (*p.gives, *p.sources)}
        for s in last.keys() - fixed - needs:
            last[s].ends.append(s)
        self._parts = parts

    def __call__(self, leaves: Any) -> dict[int, torch.Tensor]:
        """The results that are wanted, by number, on a call's arguments."""
        assert self._parts is not None
        if len(self._parts) == 1:
            (part,) = self._parts
            made = applied(part.made, *[leaves[k] for k in part.sources])
            return {-1 - s: t for s, t in zip(part.gives, made, strict=True)}
        made = applied(self, *[leaves[k] for k in self._reads])
        return {-1 - s: t for s, t in zip(self._wanted, made, strict=True)}

    def forward(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The results, and what is saved beside them and arguments.

        Errors: IndexError; what a library raises on its data.
        """
        if _autocasts():  # of which NumPy knows nothing
            with torch._C._DisableAutocast():
                return self.forward(tensors)
        assert self._parts is not None
        values = {**self._held, **dict(zip(self._reads, tensors, strict=True))}
        saved: list[torch.Tensor] = []
        for p in self._parts:
            saved += p.run(values)
            for s in p.ends:
                del values[s]
        return [values[s] for s in self._wanted] + saved + [values[s] for s in self._kept]

    def gradients(
        self, saved: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        """The gradients of the arguments, by those of the results and what a call has saved."""
        if _autocasts():
            with torch._C._DisableAutocast():
                return self.gradients(saved, gradients)
        assert self._parts is not None
        end = sum(p.own for p in self._parts)
        names = [
            *self._kept, *[self._wanted[k] for k in self.saved_results],
            *[self._reads[k] for k in self.saved_inputs],
        ]  # fmt: skip
        values = {**self._held, **dict(zip(names, saved[end:], strict=True))}
        given = zip(self._wanted, gradients, strict=True)
        sums = {s: g for k, (s, g) in enumerate(given) if k not in self.constant}
        in_place = all(map(has_memory, gradients))
        own: set[int] = set()  # sums that are nobody else's
        for p in reversed(self._parts):
            begin = end - p.own
            for s, g in p.gradients(saved[begin:end], values, sums):
                if g is None or s in self._held:
                    continue
                if s in own and in_place:
                    sums[s] += g
                elif s in sums:
                    sums[s] = sums[s] + g
                    own.add(s)
                else:
                    sums[s] = g
            end = begin
        return [sums.get(s) for s in self._reads]


def chain(
    steps: Sequence[Step], constants: list[torch.Tensor], wanted: list[int], reads: Sequence[int]
) -> Chain | None:
    """A `Chain`; None where there can be none."""
    try:
        return Chain(steps, constants, wanted, reads)
    except Refused:
        return None
