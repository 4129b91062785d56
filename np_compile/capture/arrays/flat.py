"""`a.flat` of an array that may have a gradient: recorded calls take and store its elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


class Flat:
    """The elements of an array in C order. base: the stand-in of the array."""

    __slots__ = ("_next", "base")

    def __init__(self, base: Any):
        self.base = base
        self._next = 0

    @property
    def index(self) -> int:
        return self._next

    @property
    def coords(self) -> tuple[int, ...]:
        """Where the next element stands."""
        return tuple(map(int, np.unravel_index(self._next, self.base.shape)))

    def __len__(self) -> int:
        return int(self.base.size)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._next >= len(self):
            raise StopIteration
        self._next += 1
        return self.base.reshape(-1)[self._next - 1]

    def copy(self) -> Any:
        return self.base.flatten()

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> Any:
        return self.copy() if dtype is None else self.base.astype(dtype).flatten()

    def __getitem__(self, key: Any) -> Any:
        found = self.base.reshape(-1)[key]
        return found.copy() if found.ndim else found

    def __setitem__(self, key: Any, value: Any) -> None:
        base = self.base
        places = np.arange(base.size)[base._in_capture.reals(key)]
        spots = np.unravel_index(places.reshape(-1), base.shape)
        if getattr(value, "ndim", 0) or isinstance(value, (list, tuple)):
            value = base._in_capture.call("resize", (value, places.size), {})  # as often as needed
        base[spots] = value
