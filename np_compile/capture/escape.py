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
from .substitute import contents


def replace_escaped(capture: Any) -> None:
    """Put real arrays in the place of stand-ins that are still referenced from somewhere.

    A look for who refers to what goes through all objects of the process: there are few looks.
    """
    if sys.getrefcount(capture) <= 3:  # the caller's, this function's and getrefcount's own
        return
    survivors = [a for a in _stand_ins(capture) if capture.has_data(a)]
    if not survivors:
        return
    real = {id(a): capture.outside(a) for a in survivors}
    tuples: dict[int, tuple] = {}
    for holder in gc.get_referrers(*survivors):
        if isinstance(holder, tuple):
            tuples[id(holder)] = holder
        elif holder is not survivors:
            _exchange(holder, real)
    if tuples:
        made = {k: _remade(t, real) for k, t in tuples.items()}
        for holder in gc.get_referrers(*tuples.values()):
            if holder is not tuples:
                _exchange(holder, made)


def _stand_ins(capture: Any) -> list[Array]:
    """The stand-ins that refer to a capture, in their attributes or in a dictionary of them."""
    found: list[Array] = []
    dictionaries = []
    for holder in gc.get_referrers(capture):
        if type(holder) is Array:
            found.append(holder)
        elif type(holder) is dict and holder.get("_c") is capture:
            dictionaries.append(holder)
    if dictionaries:
        found += [a for a in gc.get_referrers(*dictionaries) if type(a) is Array]
    return found


def _remade(holder: tuple, real: dict[int, Any]) -> tuple:
    items = [real.get(id(v), v) for v in holder]
    return type(holder)(*items) if hasattr(holder, "_fields") else tuple(items)


def _exchange(holder: Any, real: dict[int, Any]) -> None:
    """Put `real[id(v)]` where `holder` has v."""
    if type(holder) is Array or isinstance(holder, (types.FrameType, tuple)):
        return
    if isinstance(holder, list):
        for i, v in enumerate(holder):
            if id(v) in real:
                holder[i] = real[id(v)]
    elif isinstance(holder, dict):
        if "_c" in holder and "_v" in holder:  # the attributes of a view of it
            return
        owner: Any = False
        for k, v in list(holder.items()):
            if id(v) in real:
                if owner is False:
                    owner = _class_of_dict(holder)
                if owner is not None:  # a class: its attributes are cached by the interpreter
                    setattr(owner, k, real[id(v)])
                else:
                    holder[k] = real[id(v)]
    elif isinstance(holder, set):
        for v in [v for v in holder if id(v) in real]:
            holder.discard(v)
            holder.add(real[id(v)])
    elif isinstance(holder, types.CellType):
        found = real.get(id(contents(holder)))
        if found is not None:
            holder.cell_contents = found
    elif hasattr(holder, "__dict__"):
        for k, v in list(vars(holder).items()):
            if id(v) in real:
                setattr(holder, k, real[id(v)])


def _class_of_dict(namespace: dict) -> type | None:
    """The class whose attributes a dictionary holds, if it is one."""
    if "__module__" not in namespace:
        return None
    for owner in gc.get_referrers(namespace):
        if isinstance(owner, type) and namespace["__module__"] == owner.__module__:
            return owner
    return None
