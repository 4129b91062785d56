"""Whether iterators, and views of memory, come to arrays by themselves."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

import numpy as np


def goes_through_arrays(x: Any, depth: int = 8) -> bool:
    """Whether it is an iterator of Python's or NumPy's, or a view of memory, that comes to an
    array's elements by itself. depth: of iterators and lists in one another that are looked into.
    """
    if isinstance(x, memoryview):
        return isinstance(x.obj, np.ndarray)
    if isinstance(x, (np.flatiter, np.nditer)):
        return True
    if not depth or not hasattr(type(x), "__next__"):
        return False
    frame = getattr(x, "gi_frame", None)
    inside = gc.get_referents(x) if frame is None else frame.f_locals.values()
    return _leads_to_arrays(inside, depth - 1)


def _leads_to_arrays(values: Iterable, depth: int) -> bool:
    """Whether arrays are among values, or among the first items of lists and tuples there."""
    return any(
        _leads_to_arrays(v[:1000], depth - 1)
        if isinstance(v, (tuple, list)) and depth
        else isinstance(v, np.ndarray) or goes_through_arrays(v, depth)
        for v in values
    )
