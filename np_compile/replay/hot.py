"""Kept calls in which much time is spent: programs for many sizes give way to those for one.

These are made beside the program, and stay where they are faster: a loop that knows its extent may
be unrolled, and steps whose memory is known may run in bands. With gradients a call of several
programs gets them where its sizes come again: those can be one call.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, Protocol

import torch

from np_compile import config
from np_compile.runtime.general import General, Job
from np_compile.runtime.program import Program, build
from np_compile.tape.form import form_of

Steps = list[tuple]  # of a plan

_SECONDS = 0.5  # in calls of one size, from which on a program for it is worth a compile
_PROGRAMS = 8  # of a call, that are made anew
_TRIALS = 4  # timed calls each way, by which it is decided
_COMES_AGAIN = 4  # calls with gradients of one size, after which programs for it are made


class Again(Protocol):
    """What a call is kept by. `programs` gives its steps by programs for one size, `kept` the call
    by such steps."""

    def programs(self) -> Steps: ...
    def kept(self, steps: Steps) -> Any: ...


class Heat:
    """The time that is spent in a kept call. again: what that is kept by. other: the call that it
    was made instead of."""

    __slots__ = ("_again", "_best", "_job", "_other", "_seconds", "_trials")

    def __init__(self, again: Again, other: Any = None):
        self._again = again
        self._other = other
        self._job: Job | None = None
        self._best = float("inf")
        self._seconds = 0.0
        self._trials = 0

    def ran(self, kept: Any, seconds: float, calls: int) -> Any:
        """Note the time of a kept call, whose heat this is, which stands for so many. What is to be
        kept in its place, if anything."""
        self._best = min(self._best, seconds)
        self._seconds += seconds * calls
        self._trials += 1
        other = self._other
        if other is not None:
            if self._trials == _TRIALS:
                self._other = None
                if other.heat._best <= self._best:
                    other.heat = None
                    return other
            return None
        if self._job is None:
            if self._seconds >= _SECONDS and self._trials >= _TRIALS and not config.waits():
                self._job = Job(self._again.programs)
            return None
        return self._made(kept, self._job) if self._job.ready else None

    def _made(self, kept: Any, job: Job) -> Any:
        """The call that is kept by programs for one size, once they are ready."""
        try:
            steps = job.result()
            if all(program.ready for program, *_ in steps):
                self._job, self._seconds = None, -float("inf")
                made = self._again.kept(steps)
                made.heat = Heat(self._again, kept)
                return made
        except Exception:  # of a compiler: the call stays as it is
            self._job, self._seconds = None, -float("inf")
        return None


class Return:
    """The steps of a call with gradients by programs for many sizes. Once it has come some times,
    programs for its sizes alone are made, beside the program: those can be joined."""

    __slots__ = ("_integers", "_job", "_runs", "_steps")

    def __init__(self, steps: Steps, integers: list[tuple]):
        self._steps, self._integers = steps, integers
        self._job: Job | None = None
        self._runs = 0

    def ran(self) -> Steps | None:
        """Note a call. The steps by other programs, once these are ready. Errors: of a compiler."""
        self._runs += 1
        if self._runs < _COMES_AGAIN:
            return None
        if self._job is None:
            self._job = Job(partial(for_one_size, self._steps, self._integers))
        if not (config.waits() or self._job.ready):
            return None
        steps: Steps = self._job.result()
        return steps if config.waits() or all(p.ready for p, *_ in steps) else None


def is_general(steps: Steps) -> bool:
    """Whether there are programs for many sizes among the steps of a plan, and not too many."""
    found = {_sizes(p) for p, *_ in steps if type(p.general) is General}
    return 0 < len(found) <= _PROGRAMS


def _sizes(program: Program) -> tuple:
    """The same for programs of one form and the same sizes."""
    form = form_of(program.node)
    return form.step, form.sizes, program.live


def for_one_size(steps: Steps, integers: list[tuple]) -> Steps:
    """The steps of a plan by programs for the sizes at hand alone. integers: of each step, those
    that are no data too. The programs may be on their way."""
    made: dict[tuple, Program] = {}
    found: Steps = []
    for (program, sources, floats, data), ints in zip(steps, integers, strict=True):
        if type(program.general) is General:
            key = *_sizes(program), *program.general.constants(ints)
            if key not in made:
                made[key] = _alone(program, list(floats), list(ints))
            program = made[key]
        found.append((program, sources, floats, data))
    return found


def _alone(program: Program, floats: list[float], ints: list[int]) -> Program:
    inputs = []
    for step in program.node.path():
        if step.call is None:
            dtype, shape, strides, _, place, followed, *_ = step.signature
            like = torch.empty_strided(shape, strides, dtype=dtype, device=place)
            inputs.append(like.requires_grad_(followed and program.grad))
    options = SimpleNamespace(name=program.name, backend=program.backend_name)
    return build(
        program.node, program.live, inputs, floats, ints, program.general.dynamic, options,
        program._device, program.grad,
    )  # fmt: skip
