"""Who asks to be told of floating-point errors: `np.errstate`, `np.seterr`, filters of warnings.

Kernels note no such errors. Where somebody asks for exceptions, calls or texts, NumPy runs. So it
does where somebody asks for warnings: by "warn" for underflow, of which NumPy says nothing unless
it is asked to (`np.errstate(all="warn")`), or by a filter that makes a RuntimeWarning an error. A
filter that makes all warnings errors asks for nothing: test suites have it, for their own code.
"""

from __future__ import annotations

import warnings
from ctypes import Structure, addressof, c_int64, c_void_p
from typing import Any, NamedTuple

import numpy as np

REASON = "np.errstate asks for floating-point errors, or a filter for warnings of them"
_TOLD = frozenset(("raise", "call", "print", "log"))

# What np.errstate has set in this thread.
variable: Any = np._core.umath._extobj_contextvar  # type: ignore[attr-defined]
_state: Any = np._core.umath._get_extobj_dict  # type: ignore[attr-defined]


class _Seen(NamedTuple):
    """What np.errstate and the filters were when last looked at, and whether they ask for it."""

    state: Any
    filters: Any
    length: int
    first: Any
    asked: bool

    def is_now(self) -> bool:
        now = warnings.filters
        return (
            self.state is variable.get()
            and self.filters is now
            and self.length == len(now)
            and (not now or self.first is now[0])
        )


class _Calm(Structure):
    """The last ones that ask for nothing of the kind, by their addresses, for C."""

    _fields_ = (
        ("state", c_void_p),
        ("filters", c_void_p),
        ("count", c_int64),
        ("first", c_void_p),
    )


_seen = _Seen(None, None, -1, None, False)
_calm = _Calm()
calm_address = addressof(_calm)
_held: tuple[Any, Any] = (None, None)  # C may look at the one before for a moment


def raises() -> bool:
    """Whether floating-point errors are exceptions in this thread, or somebody is told of them."""
    global _seen, _held
    known = _seen
    if known.is_now():
        return known.asked
    state, filters = variable.get(), warnings.filters
    how = _state()
    asked = (
        how["divide"] in _TOLD
        or how["over"] in _TOLD
        or how["under"] in _TOLD
        or how["under"] == "warn"
        or how["invalid"] in _TOLD
        or _as_errors(filters)
    )
    first = filters[0] if filters else None
    _seen = now = _Seen(state, filters, len(filters), first, asked)
    if not asked and type(filters) is list:
        _held = _held[1], now
        _calm.state, _calm.filters, _calm.first = id(state), id(filters), id(first)
        _calm.count = now.length
    return asked


def is_new() -> bool:
    """Whether what np.errstate and the filters say is not what it was when last looked at."""
    return not _seen.is_now()


def _as_errors(given: Any) -> bool:
    """Whether a filter makes a RuntimeWarning an error, and names it."""
    for action, message, category, module, line in given:
        if action == "error" and category is RuntimeWarning:
            return True
        if not (message or module or line) and issubclass(RuntimeWarning, category):
            return False
    return False


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
