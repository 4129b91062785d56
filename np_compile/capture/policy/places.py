"""Whether calls on NumPy's arrays under a device context go to the device at all.

A device begins nothing within the time that NumPy takes for small arrays, and arrays that come back
in the middle of a call were sent in vain. So after two such calls in a row others stay on the host,
where their arguments are not much larger. Other calls are timed, by the size of their arguments;
where NumPy would not take far longer by what they record, it is timed as well, and the quicker one
is the place of those that follow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .weigh import likely_seconds

_VAIN = 2  # calls in a row
_LARGER = 4
_TIMED = 4  # calls on the device: the first ones compile
_TRIALS = 2  # of NumPy, where it is not likely to take
_FAR = 4  # times as long


@dataclass(slots=True)
class Kind:
    """Calls with arguments of about one size. device, numpy: the least seconds of `calls` and
    `trials`. likely: the seconds that NumPy may take, by what was recorded."""

    device: float = math.inf
    numpy: float = math.inf
    likely: float = math.inf
    calls: int = 0
    trials: int = 0

    @property
    def on_host(self) -> bool:
        """Whether NumPy was quicker than the device."""
        return self.trials == _TRIALS and self.numpy < self.device

    @property
    def wants_numpy(self) -> bool:
        """Whether NumPy is to make the next call, to be timed: again, if it was quicker."""
        known = self.calls >= _TIMED and self.trials < _TRIALS and self.likely < _FAR * self.device
        return known and (self.trials == 0 or self.numpy < self.device)

    def ran(self, seconds: float) -> None:
        """Note a call on the device."""
        self.calls += 1
        self.device = min(self.device, seconds)

    def ran_in_numpy(self, seconds: float) -> None:
        self.trials += 1
        self.numpy = min(self.numpy, seconds)


class Places:
    """What is known of one function. vain: calls in a row that went to the device in vain; size:
    the largest of their arguments, in bytes."""

    __slots__ = ("_kinds", "size", "vain")

    def __init__(self) -> None:
        self.vain = 0
        self.size = 0
        self._kinds: dict[int, Kind] = {}  # by the bits of the size

    def kind(self, args: tuple, kwargs: dict) -> Kind:
        """What is known of calls with arguments of about this size."""
        bits = _size(args, kwargs).bit_length()
        found = self._kinds.get(bits)
        return self._kinds.setdefault(bits, Kind()) if found is None else found

    def note(self, args: tuple, kwargs: dict, vain: bool | None, calls: int, touched: int) -> None:
        """Note a call that began on the device, made so many NumPy calls, and touched so many
        bytes. vain: whether it was in vain; None where what it compiles is not there yet."""
        if vain is not None:
            size = max(_size(args, kwargs), self.size)
            self.vain, self.size = (self.vain + 1, size) if vain else (0, 0)
        self.kind(args, kwargs).likely = likely_seconds(calls, touched)

    def on_host(self, args: tuple, kwargs: dict) -> bool:
        """Whether a call with such arguments stays on the host."""
        if self.vain >= _VAIN and _size(args, kwargs) <= _LARGER * self.size:
            return True
        return self.kind(args, kwargs).on_host


def _size(args: tuple, kwargs: dict) -> int:
    return 1 + sum(_bytes(x) for x in (*args, *kwargs.values()))


def _bytes(x: Any) -> int:
    if isinstance(x, np.ndarray):
        return x.nbytes
    return 8 * len(x) if isinstance(x, (list, tuple, dict)) else 8
