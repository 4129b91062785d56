"""The user's frames below a capture: which line runs now, whether an exception would be caught,
and calls that look as if they were made there."""

from __future__ import annotations

import dis
import functools
import linecache
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType

import numpy as np

from np_compile import shim

_OWN = (
    __file__.rpartition("capture/")[0],
    shim.__file__.rpartition("/")[0] + "/",
    "<np_compile",
)
_NUMPY = np.__file__.rpartition("/")[0] + "/"
_CAPTURE_RUN = __file__.rpartition("/")[0] + "/run.py"


@functools.cache
def _is_own(file: str) -> bool:
    """Whether code of this file is np_compile's or NumPy's. NumPy's tests are as a user's code."""
    if file.startswith(_NUMPY):
        return "tests/" not in file[len(_NUMPY) :]
    return file.startswith(_OWN)


def _user_frame() -> FrameType | None:
    """The innermost frame of user code that runs now."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def user_line() -> str:
    """file:line and the text of the innermost line of user code that runs now."""
    frame = _user_frame()
    if frame is None:
        return "unknown line"
    name = frame.f_code.co_filename
    text = linecache.getline(name, frame.f_lineno).strip()
    return f"{name}:{frame.f_lineno}" + (f"  {text}" if text else "")


_CALL = (lambda function, *args: function(*args)).__code__
_PLACES = 4096  # lines that are remembered
_places: dict[tuple[int, int, int], FunctionType] = {}


def as_user(depth: int, other: int = 0) -> Callable:
    """What calls a function, with arguments, from a frame that has the user's file, line and
    module: warnings that NumPy gives point there, and are shown once for each line. depth: of the
    user's frame from the caller's on, in all likelihood, or the other."""
    seen = sys._getframe(depth + 1)
    call = _places.get((id(seen.f_globals), id(seen.f_code), seen.f_lasti))
    if call is None and other:
        seen = sys._getframe(other + 1)
        call = _places.get((id(seen.f_globals), id(seen.f_code), seen.f_lasti))
    if call is not None:
        return call
    frame = _user_frame()
    if frame is None:
        return lambda function, *args: function(*args)
    code = frame.f_code
    key = id(frame.f_globals), id(code), frame.f_lasti
    call = _places.get(key)
    if call is None:
        if len(_places) >= _PLACES:
            _places.clear()
        line = _CALL.replace(
            co_filename=code.co_filename,
            co_firstlineno=frame.f_lineno,
            co_name=code.co_name,
            co_qualname=code.co_qualname,
        )
        # Its default is never used, but holds the code object, of which `key` has the address.
        call = _places[key] = FunctionType(line, frame.f_globals, None, (code,))
    return call


def place(iterations: list[int]) -> tuple[int, int]:
    """Where the captured call that is made now stands in user code: in all its frames, and in the
    iterations that are under way; and in the innermost frame alone."""
    where: list[tuple] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _CAPTURE_RUN:
        if not _is_own(frame.f_code.co_filename):
            where.append((id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    return hash((*where, *iterations)), hash(where[0] if where else None)


def inside_try() -> bool:
    """Whether code of the captured call runs inside a `try` (or `with`) block."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _CAPTURE_RUN:
        if not _is_own(frame.f_code.co_filename) and any(
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
