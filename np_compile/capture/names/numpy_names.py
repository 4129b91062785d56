"""From a row's name to NumPy's own function, and back."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from types import BuiltinMethodType, GetSetDescriptorType
from typing import Any

import numpy as np

from np_compile import shim


class Method:
    """Calls a method of NumPy's arrays and scalars. Who wants warnings to point to its own caller
    takes the method of the first argument: this has a frame."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, array: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(array, self.name)(*args, **kwargs)


_USERS: dict[str, Any] = {}  # functions that users have as single calls, by the names of their rows


@cache
def numpy_function(name: str) -> Callable:
    """NumPy's function for a row's name, or the user's; for "ndarray.<m>" one that calls the
    method, or gives the attribute."""
    if name in _USERS:
        return _USERS[name].__wrapped__
    if name == "ndarray.__getitem__":
        return operator.getitem
    if name == "ndarray.__setitem__":
        return operator.setitem
    if name == "ndarray._window":
        from ..arrays.window import _window_numpy

        return _window_numpy
    if name.startswith("ndarray."):
        name = name.removeprefix("ndarray.")
        is_attribute = isinstance(getattr(np.ndarray, name, None), GetSetDescriptorType)
        return operator.attrgetter(name) if is_attribute else Method(name)
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _rows() -> dict[int, str]:
    rows: dict[int, str] = {}
    for name in shim.TABLE:
        if not name.startswith("ndarray."):
            try:
                f = numpy_function(name)
            except AttributeError:  # a name that this version of NumPy has not
                continue
            rows.setdefault(id(f), name)
    return rows


# NumPy's own functions, whatever a program puts in their place later.
_ROWS = _rows()


def stands_for(function: Any, name: str) -> None:
    """Say that a function of a user's, which was made of his own, has a row of this name."""
    _USERS[name] = function
    _ROWS[id(function)] = name


def row_of_function(function: Any) -> str | None:
    """The row's name of a NumPy function or ufunc, None where the shim has none."""
    name = _ROWS.get(id(function))
    bound = type(function) is BuiltinMethodType
    if name is None and bound and isinstance(function.__self__, np.ufunc):
        owner = _ROWS.get(id(function.__self__))
        method = f"{owner}.{function.__name__}"
        return method if owner is not None and method in shim.TABLE else None
    return name
