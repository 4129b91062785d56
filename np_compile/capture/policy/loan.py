"""What a program lends all its functions: seconds for what may turn out to gain nothing.

A function's first attempts owe nothing (see `budget`), but a program has many functions, and
each of these attempts takes its time. So there is one loan for all of them, in seconds of a
processor: some to begin with, and later a twentieth of the time that goes by, and what compiled
calls were measured to gain. An attempt takes from it what it costs, and so does what workers do in
Python meanwhile, as Python runs one thread at a time. While nothing is left, none begins but those
that try what has been compiled; and no more is given to workers while what they have to do takes
all of it.
"""

from __future__ import annotations

import time

from np_compile.runtime.general import Job

LENT = 0.3  # seconds that are lent to begin with, and at most
SHARE = 1 / 20  # of the time that goes by
_RATE = 3e-3  # seconds that a worker takes for each NumPy call, until it is known
_EARNED = 5e-2  # seconds that a function takes as it stands before it is lent any of that


class Loan:
    """What is left for a program's functions. Threads share it: a race costs some precision."""

    def __init__(self) -> None:
        self._left = LENT
        self._used_up = False
        self._since: float | None = None  # until when time was counted; None: nothing was lent
        self._worked = Job.worked
        self._waiting = self._calls = 0  # NumPy calls that workers have to translate, and have
        self._seconds = 0.0  # that they took

    def _left_now(self) -> float:
        now, worked = time.perf_counter(), Job.worked
        if self._since is not None:
            more = SHARE * (now - self._since) - (worked - self._worked)
            self._left = min(self._left + more, LENT)
        self._since, self._worked = now, worked
        self._used_up |= self._left <= 0
        return self._left

    def missing(self, worked: float) -> float:
        """Seconds that have to go by before a function gets something that has taken so long as it
        stands."""
        left = self._left_now()
        if not self._used_up:
            return 0.0
        return max(-left / SHARE, _EARNED - worked, 0.0)

    def spends(self, seconds: float) -> None:
        """Note what an attempt has cost."""
        self._left = self._left_now() - seconds

    def gains(self, seconds: float) -> None:
        """Note what compiled calls have gained."""
        self._left = min(self._left + seconds, LENT)

    def has_workers(self) -> bool:
        """Whether workers may get more to do."""
        rate = self._seconds / self._calls if self._calls else _RATE
        return rate * self._waiting < self._left_now()

    def gives(self, calls: int) -> None:
        """Note that a worker has so many NumPy calls to translate,"""
        self._waiting += calls

    def got(self, calls: int, seconds: float) -> None:
        """and that it has done so."""
        self._waiting -= calls
        self._calls += calls
        self._seconds += seconds
