"""How long a function may be read, recorded and compiled anew, before what is new runs in NumPy.

Code whose arrays have other shapes each time, or that takes another way each time, would be
compiled each time. So time for that is lent, and a share of the time that the function runs is
added. When all is spent, nothing new is recorded or compiled but what NumPy takes longer for. Where
compiled calls were measured to be faster than NumPy (`choice`), time is lent anew.

Where nobody waits for the compiler, time is lent to the first calls alone. A function whose later
ones have spent more than that share is *cold*: calls that are not known already run as they stand,
until they have made up for it. Each time that it gets cold the share is halved.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from ctypes import c_int64
from typing import Any

from np_compile import config

from .weigh import least_seconds, likely_seconds

SECONDS = 0.5  # that are lent,
ASKED = 60.0  # and where the user asked for the back end, which is to be used then
_FREE = 3  # programs that cost nothing: the bodies of some loops
_SHARE = 0.5  # of the time that calls took, where all programs run again in later calls
_RATE = 0.01  # seconds that a compile takes for each NumPy call, until it is known,
_EXTRA = 10  # and a compile in itself is as long as one of so many calls
_RECORD = 1e-3  # seconds that recording a new call takes at most
_FIRST = 2  # calls that time is lent to, where nobody waits for the compiler
_LEAST = 1 / 64  # of the time that calls took, where they are cold again and again
_SHORTEST = 1e-7  # seconds of a call
_SKIPS = 64  # calls of a cold function, one of which is timed,
_SKIPS_SHORT, _UNTIMED = 1024, 1e-3  # or of short ones in so many seconds
_DISPATCH = 1e-3  # seconds at most until it is clear that a call runs as it stands


class Budget:
    """What one compiled function has spent. Threads share it: a race costs some precision.

    lent: seconds that are lent. owed: seconds of recording and compiling. worked: seconds that
    calls took otherwise. turn: the number of the last call. cold: whether calls that are not known
    run as they stand. skips: so many of them next, at no cost but the look at what is known. start:
    when the last call began that was not known.
    """

    __slots__ = (
        "_again", "_asked", "_begun", "_built", "_calls", "_inside", "_noted", "_seconds", "_share",
        "_usual", "cold", "lent", "owed", "skips", "start", "turn", "worked",
    )  # fmt: skip

    def __init__(self, asked: bool):
        self._asked = asked
        self.lent = ASKED if asked else SECONDS
        self.cold = False
        self.skips = c_int64()  # calls that run as they stand next, where C reads it
        self._inside = False  # a call that is timed
        self._begun = 0  # calls that were not known, and spent something
        self._noted = 0.0  # what was owed after the last one
        self.start = 0.0
        self._usual = _SHORTEST  # seconds of a call as it stands, but for long ones
        self._share = 1.0  # of the time that calls took, where nobody waits
        self.owed = 0.0
        self.worked = 0.0
        self.turn = 0
        self._built = self._again = 0  # programs; those that a later call ran again
        self._seconds = self._calls = 0.0  # of all compiles

    def next_turn(self) -> int:
        """The number of a new call."""
        self.turn += 1
        return self.turn

    def _left(self, worked: float) -> float:
        """worked: seconds that the present call took, beside recording and compiling."""
        if self._begun >= _FIRST:
            share = self._share
        else:
            share = _SHARE * self._again / self._built if self._built else 0.0
        return self.lent + share * (self.worked + worked) - self.owed

    def begins(self) -> None:
        """Note that a call begins that is not known."""
        self.start = time.perf_counter()

    def ended(self) -> None:
        """Note that a call has ended that was not known."""
        if self.owed == self._noted and self._begun >= _FIRST:
            return
        self._noted = self.owed
        if self._asked or config.waits() or not config.measures():
            self.cold = False
            return
        self._begun += 1
        if self._begun == _FIRST:
            self.lent = self.owed = 0.0
        self._settle()

    def _settle(self) -> None:
        if self._begun < _FIRST or self._left(0.0) >= 0:
            self.cold = False
        elif not self.cold:
            self.cold = True
            self._share = max(self._share / 2, _LEAST)

    def coldly(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        """The result of a call that runs as it stands, as the function is cold. Some that come
        after it are taken to be as long, and do not come here: `skips` of them."""
        try:
            return self.timed(function, args, kwargs)
        finally:
            left = (self.owed - self.lent) / self._share - self.worked
            most = min(max(_SKIPS, int(_UNTIMED / self._usual)), _SKIPS_SHORT)
            self.skips.value = max(min(int(left / self._usual), most), 0)
            self.worked += self._usual * self.skips.value
            self.cold = left > 0

    def timed(self, function: Callable, args: tuple, kwargs: dict, calls: int = 1) -> Any:
        """The result of a call that runs as it stands, one of so many."""
        if self._inside:  # the time of the outer one is its time too
            return function(*args, **kwargs)
        self._inside = True
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            seconds = time.perf_counter() - start
            self._usual = max(min(seconds, 2 * self._usual), _SHORTEST)
            self.worked += seconds + (calls - 1) * self._usual
            self._inside = False

    def records(self, touched: int, worked: float) -> bool:
        """Whether a new call is to be recorded that touches so many bytes."""
        return self._left(worked) > 0 or likely_seconds(0, touched) > _RECORD

    def captures(self, args: tuple, kwargs: dict) -> bool:
        """Whether a call is to be captured whose arguments are of a new signature."""
        if self.owed < self.lent:
            return True
        return self.records(sum([getattr(a, "nbytes", 0) for a in (*args, *kwargs.values())]), 0.0)

    def plainly(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        """The result of a call that is not captured."""
        self.dispatched()
        return self.timed(function, args, kwargs)

    def dispatched(self) -> None:
        """Note that it was found out that a call runs as it stands."""
        self.owed += min(time.perf_counter() - self.start, _DISPATCH)

    def compiles(self, calls: int, touched: int, worked: float, body: bool) -> bool:
        """Whether a segment of so many calls is to be compiled. body: whether it is a whole piece
        of the user's code, such as the body of a loop."""
        rate = self._seconds / self._calls if self._calls else _RATE
        expected = rate * (calls + _EXTRA)
        return (
            (body and self._built < _FREE)
            or expected <= self._left(worked)
            or expected <= likely_seconds(calls, touched)
        )

    def compiled(self, program: Any, turn: int, calls: int, seconds: float) -> None:
        """Note a compile, in the call of that number."""
        program.turn = turn
        self._seconds += seconds
        self._calls += calls + _EXTRA
        self._built += 1
        if self._built > _FREE:
            self.owed += seconds

    def ran_again(self, program: Any) -> None:
        """Note that a program runs that another call compiled."""
        program.turn = 0
        self._again += 1

    def pays(self, gain: float = math.inf) -> None:
        """Note that compiled calls were measured to be faster. gain: seconds a call, where nobody
        waits; as many calls are taken to come as there were."""
        if self._begun >= _FIRST:
            self.owed = max(self.owed - gain * self._begun, 0.0)
            self._share = min(2 * self._share, 1.0)
        else:
            self.owed = 0.0

    def tried(self, seconds: float, calls: int, touched: int) -> None:
        """Note a compiled call that took so long, recording and compiling apart, of which it is not
        known whether NumPy is faster."""
        if not config.waits():
            spent = max(seconds - least_seconds(calls, touched), 0.0)
            self.owed += spent
            self.worked -= spent  # which it was taken for when it ended
