"""Floating-point errors as the processor notes them: one look costs a tenth of one at the values.

Only for arithmetic in the thread itself: functions made of arithmetic note what their result has
not, or leave out what it has, and other threads have notes of their own.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable

# Of these every NaN and infinity that comes of finite numbers is noted.
_UFUNCS = ("add", "subtract", "multiply", "divide", "square", "reciprocal")
_OPERATORS = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv")
ARITHMETIC = frozenset((*_UFUNCS, *(f"ndarray.__{o}__" for o in _OPERATORS)))
ONE_THREAD = 2**14  # elements that torch computes in the thread itself
_ERRORS = 0x1 | 0x4 | 0x8  # <fenv.h>: FE_INVALID, FE_DIVBYZERO, FE_OVERFLOW


def _library() -> ctypes.PyDLL | None:
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return None
    library = ctypes.PyDLL(None)
    return library if hasattr(library, "fetestexcept") else None


def _noted() -> Callable[[], bool]:
    library = _library()
    if library is None:
        return lambda: True
    test, clear = library.fetestexcept, library.feclearexcept

    def noted() -> bool:
        if not test(_ERRORS):
            return False
        clear(_ERRORS)
        return True

    return noted


def level_beyond() -> int:
    """For a warning of the function that calls this: the level of the first frame that is not of
    the shim."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(__package__):
        level, frame = level + 1, frame.f_back
    return level


# Whether an error was noted since the last call of this; True where that cannot be asked.
noted = _noted()
