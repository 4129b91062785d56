"""What the captures of a process share: settings of compiled functions, the capture of a thread."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import TYPE_CHECKING, Any

from np_compile.runtime.general import Forms

from .policy.budget import Budget
from .policy.places import Places
from .policy.recompiles import Compiles

if TYPE_CHECKING:
    from np_compile.tape.node import Node

    from .capture import Capture
    from .policy.choice import Choice

lock = threading.RLock()  # held while a tree grows or a program is compiled


class _Local(threading.local):
    """The capture of a thread, and the names on which its functions run."""

    capture: Any = None
    substitution: Any = None


local = _Local()
captures = ctypes.c_int64()  # that run now, in any thread: calls do not begin in C meanwhile
_counting = threading.Lock()


def _count_after_fork() -> None:
    """Of the threads that were at work, this one alone is there."""
    global _counting
    _counting = threading.Lock()
    captures.value = int(local.capture is not None)


os.register_at_fork(after_in_child=_count_after_fork)


def current() -> Capture | None:
    """The capture that runs in this thread, if any."""
    capture: Capture | None = local.capture
    return capture


def switch(capture: Any, substitution: Any) -> tuple[Any, Any]:
    """Set the capture of this thread, and the names on which its functions run; what they were."""
    before = local.capture, local.substitution
    change = (capture is not None) - (before[0] is not None)
    if change:
        with _counting:
            captures.value += change
    local.capture = capture
    local.substitution = substitution
    return before


class Options:
    """What a compiled function was asked for, and what belongs to all its calls."""

    __slots__ = (
        "adapts", "backend", "budget", "calls", "choices", "compiles", "dynamic",
        "elements_are_data", "forms",
        "fullgraph", "loops", "name", "places", "reads", "recording", "roots", "static_ints",
        "tensors",
    )  # fmt: skip

    def __init__(self, backend: Any, fullgraph: bool, dynamic: bool | None, tensors: bool):
        self.backend = backend
        self.fullgraph = fullgraph
        self.dynamic = dynamic
        self.tensors = tensors
        self.name = ""
        self.roots: dict[Any, Node] = {}
        self.static_ints: set[str] = set()  # rows whose integers have to be known: `reshape`, say
        # Whether calls may run plainly where that is faster; a back end asked for is to be used.
        self.adapts = backend == "native" and not tensors and not fullgraph
        # Whether functions that go by elements are called by themselves.
        self.reads = backend == "native" and not fullgraph
        self.budget = Budget(asked=not self.adapts)
        self.choices: dict[tuple, Choice] = {}
        self.compiles = Compiles()
        self.forms = Forms()
        self.recording = 0.0  # seconds that recording new calls took
        self.places = Places()
        self.calls = 0  # NumPy calls in segments of the last call that was captured
        # Whether the elements of arguments that Python reads were seen to change, see `elements`.
        self.elements_are_data = dynamic is True
        self.loops: dict[tuple, Any] = {}  # loops that go on in NumPy, see `runs`
