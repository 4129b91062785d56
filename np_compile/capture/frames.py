"""The user's frames below a capture: which line runs now, whether an exception would be caught."""

from __future__ import annotations

import dis
import functools
import linecache
import sys
from types import CodeType, FrameType

import numpy as np

from np_compile import shim

_OWN = (
    __file__.rpartition("/capture/")[0],
    shim.__file__.rpartition("/")[0],
    np.__file__.rpartition("/")[0],
    "<np_compile",
)
_CAPTURE_RUN = __file__.rpartition("/")[0] + "/run.py"


def user_line() -> str:
    """file:line and the text of the innermost line of user code that runs now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_OWN):
            text = linecache.getline(name, frame.f_lineno).strip()
            return f"{name}:{frame.f_lineno}" + (f"  {text}" if text else "")
        frame = frame.f_back
    return "unknown line"


def place(iterations: list[int]) -> tuple[int, int]:
    """Where the captured call that is made now stands in user code: in all its frames, and in the
    iterations that are under way; and in the innermost frame alone."""
    where: list[tuple] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _CAPTURE_RUN:
        if not frame.f_code.co_filename.startswith(_OWN):
            where.append((id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    return hash((*where, *iterations)), hash(where[0] if where else None)


def inside_try() -> bool:
    """Whether code of the captured call runs inside a `try` (or `with`) block."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _CAPTURE_RUN:
        if not frame.f_code.co_filename.startswith(_OWN) and any(
            start <= frame.f_lasti < end for start, end in _guarded(frame.f_code)
        ):
            return True
        frame = frame.f_back
    return False


@functools.cache
def _guarded(code: CodeType) -> tuple[tuple[int, int], ...]:
    """The ranges of instructions of a code object from which exceptions go to a handler."""
    entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]  # not in typeshed
    return tuple((e.start, e.end) for e in entries)
