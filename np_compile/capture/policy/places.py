"""Whether calls on NumPy's arrays under a device context go to the device at all.

A device begins nothing within the time that NumPy takes for small arrays, and arrays that come back
in the middle of a call were sent in vain. So after two such calls in a row others stay on the host,
where their arguments are not much larger.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_VAIN = 2  # calls in a row
_LARGER = 4


class Places:
    """What is known of one function. vain: calls in a row that went to the device in vain; size:
    the largest of their arguments, in bytes."""

    __slots__ = ("size", "vain")

    def __init__(self) -> None:
        self.vain = 0
        self.size = 0

    def note(self, args: tuple, kwargs: dict, vain: bool) -> None:
        """Note a call that began on the device."""
        size = max(_size(args, kwargs), self.size)
        self.vain, self.size = (self.vain + 1, size) if vain else (0, 0)

    def on_host(self, args: tuple, kwargs: dict) -> bool:
        """Whether a call with such arguments stays on the host."""
        return self.vain >= _VAIN and _size(args, kwargs) <= _LARGER * self.size


def _size(args: tuple, kwargs: dict) -> int:
    return 1 + sum(_bytes(x) for x in (*args, *kwargs.values()))


def _bytes(x: Any) -> int:
    if isinstance(x, np.ndarray):
        return x.nbytes
    return 8 * len(x) if isinstance(x, (list, tuple, dict)) else 8
