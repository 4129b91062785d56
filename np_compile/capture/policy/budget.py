"""How long a function may be read, recorded and compiled anew, before what is new runs in NumPy.

Code whose arrays have other shapes each time, or that takes another way each time, would be
compiled each time. So a function has an account, in seconds: what its calls cost beyond what NumPy
would take is owed, what compiled calls were measured to gain is paid back, and a twentieth of the
time that the calls take as they stand may be owed, beside what is lent. Where nothing is left,
nothing new is recorded or compiled but what NumPy takes longer for.

Where nobody waits for the compiler, time is lent to the first attempts alone: calls that read,
record, compile, or try what is compiled. One of these that has to do without what it compiles is
followed by the next one when that is there; others, when the account has what the last one cost,
or twice that where it had to stop. A reading stops when it has spent what the account had.
Until then a function is *cold*: calls that are not known already run as they stand.
Nothing is lent to a function that is first called alone by a later call of another one, and
functions that are made of one code again and again have one account.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from ctypes import c_int64
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from np_compile import config
from np_compile.runtime.general import Job
from np_compile.tape.node import Node

from .estimates import likely_seconds

SECONDS = 0.5  # that are lent,
ASKED = 60.0  # and where the user asked for the back end, which is to be used then
_FREE = 3  # programs that cost nothing: the bodies of some loops
_SHARE = 1 / 20  # of the time that calls take as they stand
_RATE = 0.01  # seconds that a compile takes for each NumPy call, until it is known,
_EXTRA = 10  # and a compile in itself is as long as one of so many calls
_RECORD = 1e-3  # seconds that recording a new call takes at most
_FIRST = 2  # attempts that time is lent to, where nobody waits for the compiler
_SHORTEST = 1e-7  # seconds of a call
_PAUSE = 5e-2  # seconds in which calls run as they stand, before one is looked at again
_IDLE = 5e-3  # and in which they do after one that Python has made for nothing, or has timed
_NONE = -1  # the number of jobs that have ended, where no job's end matters
_DISPATCH = 1e-3  # seconds at most until it is clear that a call runs as it stands
_UNLOOKED = 2e-5  # and that calls of a pause take before the clock is looked at again,
_UNLOOKED_CALLS = 64  # of so many at most

Pause = c_int64 * 7


_OWN = 3  # functions of one code that have accounts of their own
# How many functions were compiled of a code, and the account of those after the first.
_of_code: WeakKeyDictionary[CodeType, tuple[int, Budget | None]] = WeakKeyDictionary()
_opening = threading.Lock()


def account(code: CodeType) -> Budget:
    """The account of a function of this code, which may run as it stands. Where a program makes one
    after the other of it, as where a function is compiled within another one, they have one in
    common: each is read, recorded and compiled anew."""
    if config.waits():
        return Budget(asked=False)
    with _opening:
        count, shared = _of_code.get(code, (0, None))
        made = shared or Budget(asked=False)
        _of_code[code] = count + 1, made if count >= _OWN else None
    return made


def effort(node: Node) -> int:
    """What the compile of a segment that ends at a node costs, in NumPy calls: one for each input
    too, of which `np.array(values)` of a long list has thousands."""
    return node.count + node.inputs


class _Local(threading.local):
    """The account of the function that runs as it stands in a thread, if one does, and the seconds
    that all have spent there on what is new."""

    outer: Budget | None = None
    spent = 0.0


_local = _Local()


def seconds_spent() -> float:
    """What functions have spent on what is new in this thread: a call that is timed around them
    takes that longer, and another one does not."""
    return _local.spent


class Budget:
    """What one compiled function has spent. Threads share it: a race costs some precision.

    lent: seconds that are lent. owed: seconds that calls took beyond what they take as they stand,
    less what others gained. worked: seconds that calls took otherwise. turn: the number of the last
    call. cold: whether calls that are not known run as they stand. pause: until when they do at no
    cost but the look at what is known, in nanoseconds, how many have done so, how many take so
    long, the jobs that had ended before it, as the next one's end is the pause's too if the
    function waits for one, whether
    calls that are timed both ways do so too, its end however many have done so, and of how many
    one looks at the clock, a power of two less one.
    took: seconds of the last call as it stands that was timed.
    start: when the last call began that was not known. idle: whether it went through Python to run
    as it stands, also as one of those that are timed both ways.
    """

    __slots__ = (
        "_asked", "_attempts", "_awaited", "_begun", "_built", "_calls", "_inside", "_last",
        "_made", "_noted", "_seconds", "_spent_before", "_stopped", "_usual", "cold", "idle",
        "lent", "owed", "pause", "reads", "start", "took", "turn", "worked",
    )  # fmt: skip

    def __init__(self, asked: bool):
        self._asked = asked
        self.lent = ASKED if asked else SECONDS
        self.cold = self.reads = False
        self.pause = Pause()  # where C reads it
        self._inside = False  # a call that is timed
        self._attempts = 0  # since time was lent
        self._made = 0  # and in all
        self._awaited: Any = None  # a program that the last call has run without, or its job
        self._begun = 0  # calls that were not known
        self._last = 0.0  # seconds that the last one cost
        self._stopped = False  # whether the present one has spent what it may
        self._noted = 0.0  # what was owed before the call, and has to do with no attempt
        self._spent_before = 0.0  # as `seconds_spent`
        self.start = 0.0
        self.idle = False
        self.took = _PAUSE
        self._usual = _SHORTEST  # seconds of a call as it stands, but for long ones
        self.owed = 0.0
        self.worked = 0.0
        self.turn = 0
        self._built = 0  # programs
        self._seconds = self._calls = 0.0  # of all compiles

    def next_turn(self) -> int:
        """The number of a new call."""
        self.turn += 1
        return self.turn

    def _left(self, worked: float = 0.0) -> float:
        """worked: seconds that the present call took, beside recording and compiling."""
        return self.lent + _SHARE * (self.worked + worked) - self.owed

    def begins(self) -> None:
        """Note that a call begins that is not known."""
        self._begun += 1
        self._noted, self._spent_before = self.owed, _local.spent
        self.idle = self._stopped = False
        self.start = time.perf_counter()

    def ended(self) -> None:
        """Note that a call has ended that was not known."""
        spent, self._noted = self.owed - self._noted, self.owed
        alone = min(spent, time.perf_counter() - self.start)  # others' may be in that
        _local.spent = max(_local.spent, self._spent_before + alone)
        if not self.may_wait():
            self.cold = False
            return
        if spent > 0:
            self._attempts += 1
            self._made += 1
            self._last = spent * (2 if self._stopped else 1)
            if self._attempts <= _FIRST:
                self.owed = self._noted = 0.0
            if self._attempts == _FIRST:
                self.lent = 0.0
            elif self._attempts < _FIRST and self._stopped:
                self.lent *= 2
            self.reads = False
        self.cold = self._missing() > 0
        spent = time.perf_counter() - self.start
        beyond = 2 * (spent - self.took)  # as much again is lost around it, and in caches
        if self.idle and (spent < _IDLE or beyond > _SHARE * spent):
            self._rests(min(max(beyond / _SHARE, _IDLE), _PAUSE), self._jobs(), 1)

    def may_wait(self) -> bool:
        """Whether what is new may wait for a later call."""
        return not self._asked and not config.waits() and config.measures()

    def until(self) -> float:
        """The time of the thread's processor up to which this call may read what is new. Where
        other processes have the processor meanwhile, a clock would end each reading early."""
        return time.thread_time() + self._left() if self.may_wait() else math.inf

    def stopped(self) -> None:
        """Note that this time has come, and what is new is left for a later attempt."""
        self._stopped = True

    def lends_again(self) -> None:
        """Time is lent to one more attempt, which reads what was recorded before."""
        if self._attempts >= _FIRST:
            self._attempts, self.lent = _FIRST - 1, SECONDS
            self.cold, self.reads = False, True

    def is_cold(self) -> bool:
        """Whether calls that are not known run as they stand now."""
        if self._begun == 0 and not self._asked:
            outer = _local.outer
            if outer is not None and outer._begun > _FIRST:
                self._begun, self._attempts, self._last = 1, _FIRST, outer._last
                self.lent = 0.0
                self.cold = outer._last > 0
        if self.cold and self._awaited is not None:
            self.cold = self._missing() > 0
        return self.cold

    def coldly(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        """The result of a call that runs as it stands, as the function is cold. Those that come in
        the pause after it do not come here, and are taken to be as long; also where an entry of C's
        is for them, which is not to be timed now."""
        ended = self._jobs()
        try:
            return self.timed(function, args, kwargs)
        finally:
            missing = self._missing()
            self.cold = missing > 0
            self._rests(min(missing, _PAUSE), ended, 1)

    def _missing(self) -> float:
        """Seconds that calls have to take as they stand before the next attempt."""
        self._look()
        if self._awaited is not None:
            return _PAUSE
        return (self._last - self._left()) / _SHARE if self._attempts >= _FIRST else 0.0

    def awaits(self, program: Any) -> None:
        """Note what a captured call has run without, as it is being compiled; None: nothing."""
        self._awaited = program

    def _look(self) -> None:
        """Look whether that is compiled by now: one attempt more is lent time for then."""
        awaited = self._awaited
        if awaited is None or not awaited.ready:
            return
        self._awaited = None
        if isinstance(awaited, Job):  # it has made a program, or found that there is none
            try:
                self._awaited = awaited.result()
            except Exception:
                return
            return self._look()
        if self._made <= _FIRST:
            self._last = 0.0

    def is_resting(self) -> bool:
        """Whether a pause lasts, and so a call runs as it stands, where C cannot be asked yet: see
        `rests` in `calls.c`."""
        pause = self.pause
        if not pause[0] or pause[3] not in (_NONE, Job.ended.value):
            return False
        now = time.monotonic_ns()
        if now >= pause[0] and (pause[1] >= pause[2] or now > pause[5]):
            return False
        pause[1] += 1
        return True

    def _jobs(self) -> int:
        """How many jobs have ended, where the end of one may end a pause: programs that compile
        many functions end one after the other."""
        return _NONE if self._awaited is None else Job.ended.value

    def _rests(self, seconds: float, ended: int, between: int = 0) -> None:
        """A pause begins. ended: how many jobs had ended before it was looked at them, or _NONE: it
        waits for none."""
        self.worked += self._usual * self.pause[1]
        self.pause[1] = 0
        self.pause[2] = int(max(seconds, 0.0) / self.took)
        self.pause[3], self.pause[4] = ended, between
        few = min(int(_UNLOOKED / self.took), _UNLOOKED_CALLS)
        self.pause[6] = (1 << max(few.bit_length() - 1, 0)) - 1
        now, length = time.monotonic_ns(), int(max(seconds, 0.0) * 1e9)
        self.pause[0], self.pause[5] = now + length, now + int(length / _SHARE)

    @property
    def rests(self) -> bool:
        """Whether there was a pause, which C ends."""
        return self.pause[0] != 0

    def timed(self, function: Callable, args: tuple, kwargs: dict, calls: int = 1) -> Any:
        """The result of a call that runs as it stands, one of so many."""
        within, self._inside = self._inside, True
        outer, _local.outer = _local.outer, self
        spent, start = _local.spent, time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            seconds = max(time.perf_counter() - start - (_local.spent - spent), _SHORTEST)
            _local.outer = outer
            self.took = seconds
            self._inside = within
            if not within:  # else the time of the outer one is its time too
                self._usual = max(min(seconds, 2 * self._usual), _SHORTEST)
                self.worked += seconds + (calls - 1) * self._usual

    def records(self, touched: int, worked: float) -> bool:
        """Whether a new call is to be recorded that touches so many bytes."""
        return self._left(worked) > 0 or likely_seconds(0, touched) > _RECORD

    def captures(self, args: tuple, kwargs: dict) -> bool:
        """Whether a call is to be captured whose arguments are of a new signature."""
        if self.owed < self.lent:
            return True
        given = (*args, *kwargs.values())
        touched = sum([a.nbytes for a in given if isinstance(a, (np.ndarray, torch.Tensor))])
        return self.records(touched, 0.0)

    def plainly(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        """The result of a call that is not captured."""
        self.idle = True
        self.dispatched()
        return self.timed(function, args, kwargs)

    def waits(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        """The result of a call that runs as it stands, as a compiler is at work. It is looked for
        its work once in a pause."""
        ended = Job.ended.value
        try:
            return self.timed(function, args, kwargs)
        finally:
            self._rests(_PAUSE, ended)

    def dispatched(self) -> None:
        """Note that it was found out that a call runs as it stands."""
        seconds = min(time.perf_counter() - self.start, _DISPATCH)
        self.owed += seconds
        self._noted += seconds

    def compiles(self, calls: int, touched: int, worked: float, body: bool) -> bool:
        """Whether a segment of so many calls (`effort`) is to be compiled. body: whether it is a
        whole piece of the user's code, such as the body of a loop."""
        rate = self._seconds / self._calls if self._calls else _RATE
        expected = rate * (calls + _EXTRA)
        return (
            (body and self._is_free(1))
            or expected <= self._left(worked)
            or expected <= likely_seconds(calls, touched)
        )

    def compiled(self, calls: int, seconds: float) -> None:
        """Note a compile of so many NumPy calls, for which a call has waited."""
        self._seconds += seconds
        self._calls += calls + _EXTRA
        self._built += 1
        if not self._is_free(0):
            self.owed += seconds

    def _is_free(self, more: int) -> bool:
        """Whether so many programs more cost nothing."""
        return self.lent > 0 and self._built + more <= _FREE

    def pays(self, gain: float) -> None:
        """Note that compiled calls were measured to gain so many seconds. Where calls wait for the
        compiler, time is lent anew."""
        self.owed = 0.0 if config.waits() else max(self.owed - gain, -SECONDS)

    def captured(
        self, seconds: float, calls: int, touched: int, known: bool, typical: bool
    ) -> None:
        """Note a call that was captured, and took so long, recording and compiling apart. known:
        whether it was measured to be faster than NumPy, or is asked for in any case. typical:
        whether calls like it will take as long. Where calls wait for the compiler, others cost
        nothing."""
        spent = 0.0
        if not known and (typical or not config.waits()):
            spent = max(seconds - likely_seconds(calls, touched), 0.0)
        self.owed += spent
        self.worked += max(seconds - spent, 0.0)
