"""Stand-ins that outlive their call: kept in an object, a list, a cell that nobody handed in.

Every stand-in holds its capture, so a capture that nobody refers to at the end had no survivor.
Where one is found, the places that hold it get the real array instead.
"""

from __future__ import annotations

import gc
import sys
import types
from typing import Any

from .array import Array


def replace_escaped(capture: Any) -> None:
    """Put real arrays in the place of stand-ins that are still referenced from somewhere."""
    if sys.getrefcount(capture) <= 3:  # the caller's, this function's and getrefcount's own
        return
    survivors = [a for a in _stand_ins(capture) if type(a) is Array]
    for a in survivors:
        if not capture.has_data(a):  # the segment that would have made it has failed
            continue
        real = capture.outside(a)
        for holder in gc.get_referrers(a):
            if holder is not survivors and not isinstance(holder, types.FrameType):
                _exchange(holder, a, real)


def _stand_ins(capture: Any) -> list[Array]:
    found = []
    for holder in gc.get_referrers(capture):
        if type(holder) is Array:
            found.append(holder)
        elif type(holder) is dict and holder.get("_c") is capture:
            found += [a for a in gc.get_referrers(holder) if type(a) is Array]
    return found


def _exchange(holder: Any, a: Array, real: Any) -> None:
    """Put `real` where `holder` has `a`. A tuple is made anew, and exchanged where it is held."""
    if isinstance(holder, list):
        for i, v in enumerate(holder):
            if v is a:
                holder[i] = real
    elif isinstance(holder, dict):
        if "_c" in holder and "_v" in holder:  # the attributes of a view of it
            return
        owner = _class_of_dict(holder)
        for k, v in list(holder.items()):
            if v is a:
                if owner is not None:  # a class: its attributes are cached by the interpreter
                    setattr(owner, k, real)
                else:
                    holder[k] = real
    elif isinstance(holder, set):
        holder.discard(a)
        holder.add(real)
    elif isinstance(holder, types.CellType):
        holder.cell_contents = real
    elif isinstance(holder, tuple):
        items = [real if v is a else v for v in holder]
        new = type(holder)(*items) if hasattr(holder, "_fields") else tuple(items)
        for outer in gc.get_referrers(holder):
            if not isinstance(outer, (types.FrameType, tuple)):
                _exchange(outer, holder, new)  # type: ignore[arg-type]
    elif type(holder) is not Array and hasattr(holder, "__dict__"):
        for k, v in list(vars(holder).items()):
            if v is a:
                setattr(holder, k, real)


def _class_of_dict(namespace: dict) -> type | None:
    for owner in gc.get_referrers(namespace):
        if isinstance(owner, type) and namespace.get("__module__") == owner.__module__:
            return owner
    return None
