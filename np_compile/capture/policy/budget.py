"""How long a function may be recorded and compiled anew, before what is new runs in NumPy.

Code whose arrays have other shapes each time, or that takes another way each time, would be
compiled each time. So time for that is lent, and a share of the time that the function runs is
added. When all is spent, nothing new is recorded or compiled but what NumPy takes longer for. Where
compiled calls were measured to be faster than NumPy (`choice`), time is lent anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .weigh import likely_seconds

SECONDS = 0.5  # that are lent,
ASKED = 60.0  # and where the user asked for the back end, which is to be used then
_FREE = 3  # programs that cost nothing: the bodies of some loops
_SHARE = 0.5  # of the time that calls took, where all programs run again in later calls
_RATE = 0.01  # seconds that a compile takes for each NumPy call, until it is known,
_EXTRA = 10  # and a compile in itself is as long as one of so many calls
_RECORD = 1e-3  # seconds that recording a new call takes at most


class Budget:
    """What one compiled function has spent. Threads share it: a race costs some precision.

    lent: seconds that are lent. owed: seconds of recording and compiling. worked: seconds that
    calls took otherwise. turn: the number of the last call.
    """

    __slots__ = ("_again", "_built", "_calls", "_seconds", "lent", "owed", "turn", "worked")

    def __init__(self, asked: bool):
        self.lent = ASKED if asked else SECONDS
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
        share = _SHARE * self._again / self._built if self._built else 0.0
        return self.lent + share * (self.worked + worked) - self.owed

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
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            self.worked += time.perf_counter() - start

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

    def pays(self) -> None:
        """Note that compiled calls were measured to be faster."""
        self.owed = 0.0
