"""Whether calls on NumPy's arrays under a device context go to the device at all.

A device begins nothing within the time that NumPy takes for small arrays, and arrays that come back
in the middle of a call were sent in vain. So after two such calls in a row others stay on the host,
where their arguments are not much larger; so do those of a function that is compiled whole and has
no loop for a device. Other calls are timed, by the size of their arguments;
where NumPy would not take far longer by what they record, it is timed as well. The host is the
place of those that follow, if NumPy is not slower: there they are compiled too. What a call on the
device does changes in time: it runs as it stands, is recorded, kept. So only the last ones count.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .estimates import likely_seconds

_VAIN = 2  # calls in a row
_LARGER = 4
_TIMED = 4  # last calls on the device
_TRIALS = 2  # of NumPy, where it is not likely to take
_FAR = 4  # times as long
_SLOWER = 1.2  # NumPy's time over that of the device from which it is slower


@dataclass(slots=True)
class Kind:
    """Calls with arguments of about one size. device: seconds of the last ones there. numpy: the
    least of `trials`. likely: the seconds that NumPy may take, by what was recorded. awaits:
    whether what the call at hand compiles is not there yet. read: calls compiled whole, none of
    whose loops a device could do."""

    device: deque[float] = field(default_factory=lambda: deque(maxlen=_TIMED))
    numpy: float = math.inf
    likely: float = math.inf
    trials: int = 0
    awaits: bool = False
    read: int = 0

    @property
    def on_host(self) -> bool:
        """Whether nothing is done on the device, or NumPy was not slower than that."""
        slower = self.trials < _TRIALS or self.numpy >= _SLOWER * min(self.device)
        return self.read >= _VAIN or not slower

    @property
    def wants_numpy(self) -> bool:
        """Whether NumPy is to make the next call, to be timed: again, if it was not slower."""
        if len(self.device) < _TIMED or self.trials == _TRIALS:
            return False
        least = min(self.device)
        return self.likely < _FAR * least and (self.trials == 0 or self.numpy < _SLOWER * least)

    def ran(self, seconds: float) -> None:
        """Note a call on the device, if it did what those that follow will do."""
        if not self.awaits:
            self.device.append(seconds)
        self.awaits = False

    def ran_in_numpy(self, seconds: float) -> None:
        self.trials += 1
        self.numpy = min(self.numpy, seconds)


class Places:
    """What is known of one function. vain: calls in a row that went to the device in vain; size:
    the largest of their arguments, in bytes. makes_tensors: whether it may make tensors itself,
    which are on the device of the context, so that all its calls are under that."""

    __slots__ = ("_kinds", "makes_tensors", "size", "vain")

    def __init__(self) -> None:
        self.makes_tensors = False
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
        kind = self.kind(args, kwargs)
        kind.likely, kind.awaits = likely_seconds(calls, touched), vain is None

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
