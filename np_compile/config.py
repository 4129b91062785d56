"""Every setting, declared once: default, environment variable, meaning."""

from __future__ import annotations

import ctypes
import difflib
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

from .errors import SettingError


@dataclass(frozen=True)
class Setting:
    """One setting: its default, how its environment variable is read, and what it does."""

    name: str
    default: Any
    parse: Callable[[str], Any]
    doc: str

    @property
    def variable(self) -> str:
        return f"NP_COMPILE_{self.name.upper()}"


def _flag(text: str) -> bool:
    if text in ("1", "true", "on"):
        return True
    if text in ("", "0", "false", "off"):
        return False
    raise ValueError("expected 0 or 1")


def _level(text: str) -> int:
    if text not in ("0", "1", "2", "3", "4", "5"):
        raise ValueError("expected a level from 0 to 5")
    return int(text)


# What is printed, by topics, and the level of `debug` from which on each is.
TOPICS = {
    "breaks": 1, "compiles": 1, "recompiles": 1, "loops": 1, "times": 2, "calls": 3, "graph": 4,
    "output": 5,
}  # fmt: skip


def _topics(text: str) -> str:
    if text in ("", "none"):
        return "none"
    for name in map(str.strip, text.split(",")):
        if name not in TOPICS:
            raise ValueError(f"no topic {name!r}; there are {', '.join(TOPICS)}")
    return text


def _count(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError("expected a number that is not negative")
    return int(text)


def _plain(text: str) -> str:
    if text not in ("auto", "never", "always"):
        raise ValueError("expected auto, never or always")
    return text


def _loops(text: str) -> str:
    if text not in ("auto", "whole", "recorded"):
        raise ValueError("expected auto, whole or recorded")
    return text


BACKENDS = ("eager", "aot_eager", "inductor", "native")


def _backend(text: str) -> str:
    if text not in BACKENDS:
        raise ValueError(f"there are {', '.join(BACKENDS)}")
    return text


def _compile_in(text: str) -> str:
    if text not in ("background", "call"):
        raise ValueError("expected background or call")
    return text


def _folder(text: str) -> str:
    if text in ("", "auto"):
        return "auto"
    path = os.path.expanduser(text)
    if path.startswith("~"):
        raise ValueError("there is no such home folder")
    if os.path.exists(path) and not os.path.isdir(path):
        raise ValueError("this is no folder")
    return os.path.abspath(path)


def _output_folder(text: str) -> str:
    return _folder(text) if text not in ("", "none") else "none"


SETTINGS = (
    Setting("disable", False, _flag, "run every compiled function plainly"),
    Setting(
        "debug",
        0,
        _level,
        "1 decisions and breaks, and loops are checked after each pass, 2 timings, 3 NumPy calls, "
        "4 tensor programs, 5 back-end output",
    ),
    Setting(
        "logs",
        "none",
        _topics,
        "topics that are printed, whatever `debug` is, with commas between them: "
        "`breaks`, `compiles`, `recompiles` (what has changed), `loops` (what became of functions "
        "with loops), `times`, `calls`, `graph` (tensor programs), `output` (of the back end)",
    ),
    Setting(
        "debug_dir",
        "none",
        _output_folder,
        "folder that gets a folder for each compile: NumPy calls, tensor program, what the back "
        "end made, times and why it was compiled",
    ),
    Setting("backend", "native", _backend, "the back end when `backend=` is not given"),
    Setting(
        "unroll",
        8,
        _count,
        "a loop of more iterations is cut into one segment an iteration, but for four times as "
        "many with few NumPy calls; short loops in one another where they make more than its "
        "square, or 16 times as many NumPy calls",
    ),
    Setting(
        "max_calls", 512, _count, "longest segment, in NumPy calls, before a loop mark cuts it"
    ),
    Setting(
        "plain",
        "auto",
        _plain,
        "calls and loops run in plain NumPy: `auto` where that is faster, "
        "or compiling takes too long, `never`, or `always` (loops only, and from their start)",
    ),
    Setting(
        "loops",
        "auto",
        _loops,
        "`whole`: functions with loops are read, and compiled with them, where that can be; "
        "`recorded`: loops are recorded as they run, iteration by iteration; "
        "`auto`: the better one",
    ),
    Setting(
        "compile_in",
        "background",
        _compile_in,
        "`background`: where the C compiler would take longer than NumPy, NumPy runs until the "
        "kernels are there; `call`: calls wait for the compiler",
    ),
    Setting(
        "recompile_limit",
        64,
        _count,
        "compiles of the same calls, for other shapes, dtypes or integers, after which anything "
        "new runs in NumPy, with a warning",
    ),
    Setting(
        "deterministic",
        False,
        _flag,
        "nothing is decided by measured time, so that equal runs of a program give equal bits: "
        "calls wait for the compiler, and what can be compiled runs as kernels",
    ),
    Setting(
        "cuda_graphs",
        True,
        _flag,
        "a kept call on a CUDA device that launches several kernels runs as one CUDA graph",
    ),
    Setting(
        "cache_dir",
        "auto",
        _folder,
        "folder of the compiled kernels; `auto`: `np_compile` in `$XDG_CACHE_HOME` or `~/.cache`",
    ),
)


def _initial(setting: Setting) -> Any:
    text = os.environ.get(setting.variable)
    if text is None:
        return setting.default
    try:
        return setting.parse(text)
    except ValueError as e:
        raise senseless(setting.name, text, str(e)) from None


def senseless(name: str, value: Any, why: str) -> SettingError:
    """The error of an environment variable whose value is none for its setting."""
    setting = next(s for s in SETTINGS if s.name == name)
    return SettingError(f"{setting.variable}={value!r}: {why}. It sets: {setting.doc}.")


disable: bool
debug: int
logs: str
debug_dir: str
backend: str
unroll: int
max_calls: int
plain: str
compile_in: str
loops: str
recompile_limit: int
deterministic: bool
cuda_graphs: bool
cache_dir: str

globals().update({s.name: _initial(s) for s in SETTINGS})


_value = globals().__getitem__


def shows(topic: str) -> bool:
    """Whether a topic of `TOPICS` is printed."""
    return _value("debug") >= TOPICS[topic] or topic in map(str.strip, _value("logs").split(","))


def logs_any() -> bool:
    """Whether anything is printed."""
    return bool(_value("debug")) or _value("logs") != "none"


def measures() -> bool:
    """Whether what is faster, as kernels or in NumPy, is measured, and decides."""
    return _value("plain") == "auto" and not _value("deterministic")


def waits() -> bool:
    """Whether calls wait for the C compiler."""
    return _value("compile_in") == "call" or _value("deterministic")


class _OfThread(threading.local):
    only_known = False


_of_thread = _OfThread()


def only_known() -> bool:
    """Whether this thread compiles nothing now: what is not known runs as it stands."""
    return _of_thread.only_known


@contextmanager
def nothing_new() -> Iterator[None]:
    """Within the block this thread compiles nothing."""
    before, _of_thread.only_known = _of_thread.only_known, True
    try:
        yield
    finally:
        _of_thread.only_known = before


class Ways(IntFlag):
    """Ways in which C may make a call of a compiled function: as it was kept; as it stands, for
    what was measured, for want of time, or for what is known of its loops; by what was made of its
    source, whose calls are timed now and then, or not."""

    KEPT, MEASURED, COLD, STANDS, READS, WEIGHS = 1, 2, 4, 8, 16, 32


allowed = ctypes.c_int64()  # the ways that the settings allow, where C looks


def _allow() -> None:
    ways = Ways.KEPT
    if measures():
        ways |= Ways.MEASURED if waits() else Ways.MEASURED | Ways.COLD
    if _value("loops") != "recorded":
        ways |= Ways.STANDS | Ways.READS
    if measures() and _value("loops") == "auto":
        ways |= Ways.WEIGHS
    allowed.value = 0 if _value("disable") else ways


def _check(name: str, value: Any) -> None:
    """SettingError for a name that no setting has, and a value that makes no sense for its own."""
    setting = next((s for s in SETTINGS if s.name == name), None)
    if setting is None:
        known = sorted(s.name for s in SETTINGS)
        near = difflib.get_close_matches(name, known, 1)
        meant = f": did you mean {near[0]!r}?" if near else ""
        raise SettingError(f"no setting named {name!r}{meant}; there are {known}")
    if name == "backend" and not isinstance(value, str):
        return  # a callable, which `compile` looks at
    try:
        if type(value) is not type(setting.default):
            raise ValueError(f"expected a value such as {setting.default!r}")
        setting.parse(str(int(value) if isinstance(value, bool) else value))
    except ValueError as e:
        raise SettingError(f"config.{name}={value!r}: {e}. It sets: {setting.doc}.") from None


class _Module(types.ModuleType):
    """This module: where a setting is set, it is looked at, and C is told."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__"):
            _check(name, value)
        super().__setattr__(name, value)
        _allow()


_allow()
sys.modules[__name__].__class__ = _Module


@contextmanager
def patch(**values: Any) -> Iterator[None]:
    """Change settings for the length of a `with` block.

    SettingError for an unknown name, or a value that makes no sense.
    """
    scope = globals()
    for name, value in values.items():
        _check(name, value)
    before = {name: scope[name] for name in values}
    scope.update(values)
    _allow()
    try:
        yield
    finally:
        scope.update(before)
        _allow()
