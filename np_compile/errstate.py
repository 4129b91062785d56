"""Who asks to be told of floating-point errors: `np.errstate`, `np.seterr`, filters of warnings.

Kernels note no such errors. Where somebody asks for exceptions or calls, NumPy runs.
"""

from __future__ import annotations

import warnings
from ctypes import addressof, c_void_p
from typing import Any

import numpy as np

REASON = "np.errstate asks for floating-point errors, or a filter for warnings of them"
_TOLD = frozenset(("raise", "call", "print", "log"))

# What np.errstate has set in this thread.
variable: Any = np._core.umath._extobj_contextvar  # type: ignore[attr-defined]
_state: Any = np._core.umath._get_extobj_dict  # type: ignore[attr-defined]
# What it was when last looked at, and whether exceptions, calls, or texts are asked for.
_seen: tuple[Any, bool] = (None, False)
# The address of the last one that asks for nothing of the kind, for C; 0 before there was one.
_calm = c_void_p()
calm_address = addressof(_calm)
_held: tuple[Any, Any] = (None, None)  # C may look at the one before for a moment


def raises() -> bool:
    """Whether floating-point errors are exceptions in this thread, or somebody is called."""
    global _seen, _held
    known, now = _seen, variable.get()
    if known[0] is now:
        return known[1]
    how = _state()
    told = _TOLD
    asked = (
        how["divide"] in told
        or how["over"] in told
        or how["under"] in told
        or how["invalid"] in told
    )
    _seen = now, asked
    if not asked:
        _held = _held[1], now
        _calm.value = id(now)
    return asked


def is_new() -> bool:
    """Whether what np.errstate has set is not what it was when last looked at."""
    return _seen[0] is not variable.get()


def filters() -> tuple[Any, ...]:
    """What becomes of warnings: equal while that is the same."""
    now = warnings.filters
    how = warnings._showwarnmsg_impl  # type: ignore[attr-defined]
    return now, len(now), now[0] if now else None, how, _action(now)


def shows(before: tuple[Any, ...]) -> bool:
    """Whether somebody waits for warnings of floating-point errors who did not before."""
    now = warnings.filters
    if warnings._showwarnmsg_impl is not before[3]:  # type: ignore[attr-defined]
        return True
    if now is before[0] and len(now) == before[1] and (not now or now[0] is before[2]):
        return False
    return _action(now) not in ("ignore", before[4])


def _action(given: Any) -> str:
    """What is done with warnings of floating-point errors, by filters."""
    for action, message, category, module, line in given:
        if message is None and module is None and not line and issubclass(RuntimeWarning, category):
            return str(action)
    return "default"
