"""The recording `numpy`: what user code finds under `np` while it is captured.

Functions of the shim's table record their call; other NumPy functions run in NumPy, through a break.
Classes, dtypes and constants are NumPy's own.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch

from np_compile import shim

from .array import Array, _new
from .numpy_names import numpy_function
from .recorder import Break, Capture, current

_SUBMODULES = ("linalg", "fft", "random")


def _mentions(x: Any) -> bool:
    """Whether arguments hold a stand-in."""
    kind = type(x)
    if kind is Array:
        return True
    if kind is tuple or kind is list:
        return any(_mentions(v) for v in x)
    if kind is dict:
        return any(_mentions(v) for v in x.values())
    return False


def call(capture: Capture, name: str, args: tuple, kwargs: dict) -> Any:
    """A NumPy function of the table, called by user code."""
    if capture.plain:
        return capture.through_numpy(name, args, kwargs, None)
    row = shim.TABLE[name]
    if row.kind is shim.Kind.IMPURE:
        return capture.foreign(numpy_function(name), args, kwargs, None)
    if not _mentions(args) and not (kwargs and _mentions(kwargs)):
        if name in ("asarray", "array") and len(args) == 1 and isinstance(args[0], torch.Tensor):
            return capture.adopt(args[0])
        arrays = any(isinstance(a, np.ndarray) or hasattr(a, "__dlpack__") for a in args)
        makes = row.function.__module__.endswith("._creation") and not any(
            isinstance(a, (list, np.ndarray)) for a in args
        )
        if not arrays and not makes:
            # Numbers and lists only: nothing to compile, and NumPy's own answer is at hand.
            return capture.fresh(numpy_function(name)(*args, **kwargs))
    return capture.call(name, args, kwargs)


def _recorder(name: str, real: Callable) -> Callable:
    def record(*args: Any, **kwargs: Any) -> Any:
        capture = current()
        if capture is None:
            return real(*args, **kwargs)
        return call(capture, name, args, kwargs)

    record.__name__ = record.__qualname__ = name.rpartition(".")[2]
    record.__doc__ = real.__doc__
    record.__np_compile_real__ = real  # type: ignore[attr-defined]
    return record


class RecordingUfunc:
    """A NumPy ufunc whose calls and methods are recorded."""

    def __init__(self, name: str, ufunc: np.ufunc):
        self._name = name
        self.__np_compile_real__ = ufunc
        self.__name__ = self.__qualname__ = name
        self.__doc__ = ufunc.__doc__
        for method in ("reduce", "accumulate", "outer", "at", "reduceat"):
            if f"{name}.{method}" in shim.TABLE:
                setattr(self, method, _recorder(f"{name}.{method}", getattr(ufunc, method)))
            else:
                setattr(self, method, _lacking(getattr(ufunc, method), f"np.{name}.{method}"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:
            x = args[0]
            if type(x) is Array:  # the hot path of a function of one array
                c = x._c
                seg = c.seg
                if x._s is not seg:
                    c.enter(x)
                node = seg.node.next.get((self._name, x._i))
                if node is not None and not node.special and node.value is not None:
                    seg.node = node
                    value = node.value
                    r = _new(Array)
                    r._c = c
                    r._s = seg
                    r._i = value.index
                    r._v = value
                    seg.values.append(r)
                    return r
        capture = current()
        if capture is None:
            return self.__np_compile_real__(*args, **kwargs)
        return call(capture, self._name, args, kwargs)

    @property
    def __class__(self) -> type:
        return np.ufunc

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__np_compile_real__"], name)

    def __repr__(self) -> str:
        return repr(self.__np_compile_real__)


def _lacking(real: Callable, label: str) -> Callable:
    """A NumPy function that the shim has not: it runs in NumPy, the arrays around it stay compiled."""
    why = Break("numpy", f"{label} is not in the shim")

    def run(*args: Any, **kwargs: Any) -> Any:
        capture = current()
        if capture is None:
            return real(*args, **kwargs)
        return capture.foreign(
            real, args, kwargs, why if _mentions(args) or _mentions(kwargs) else None
        )

    run.__name__ = run.__qualname__ = getattr(real, "__name__", label)
    run.__doc__ = real.__doc__
    run.__np_compile_real__ = real  # type: ignore[attr-defined]
    return run


class RecordingModule(types.ModuleType):
    """A NumPy module with its functions recorded; everything else is NumPy's own."""

    def __init__(self, real: types.ModuleType, prefix: str):
        super().__init__(real.__name__, real.__doc__)
        self.__dict__["__np_compile_real__"] = real
        self.__dict__["_prefix"] = prefix

    def __getattr__(self, name: str) -> Any:
        value = replacement(getattr(self.__np_compile_real__, name), self._prefix + name)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__np_compile_real__, name, value)
        self.__dict__.pop(name, None)

    def __dir__(self) -> list[str]:
        return dir(self.__np_compile_real__)


@cache
def recording_numpy() -> RecordingModule:
    """The recording counterpart of the module `numpy`."""
    return RecordingModule(np, "")


@cache
def _submodule(name: str) -> RecordingModule:
    return RecordingModule(getattr(np, name), f"{name}.")


def replacement(value: Any, name: str | None = None) -> Any:
    """What stands for an attribute of NumPy in captured code: itself unless it computes."""
    if isinstance(value, types.ModuleType):
        if value is np:
            return recording_numpy()
        short = value.__name__.removeprefix("numpy.")
        return _submodule(short) if short in _SUBMODULES else value
    if isinstance(value, type):
        return value
    key = name if name in shim.TABLE else _name_of(value)
    if key is not None and numpy_function(key) is not value:
        key = None
    if isinstance(value, np.ufunc):
        return _ufunc(key, value) if key is not None else value
    if not callable(value):
        return value
    if key is not None:
        return _function(key)
    if name is not None and name.startswith("random."):
        return _drawing(value)
    if (getattr(value, "__module__", "") or "").startswith("numpy"):
        return _lacking(value, f"np.{name or getattr(value, '__name__', '?')}")
    return value


def _drawing(real: Callable) -> Callable:
    def draw(*args: Any, **kwargs: Any) -> Any:
        capture = current()
        if capture is None:
            return real(*args, **kwargs)
        return capture.foreign(real, args, kwargs, None)

    draw.__name__ = draw.__qualname__ = getattr(real, "__name__", "draw")
    return draw


def _name_of(value: Any) -> str | None:
    from .numpy_names import row_of_function

    return row_of_function(value)


@cache
def _ufunc(name: str, ufunc: np.ufunc) -> RecordingUfunc:
    return RecordingUfunc(name, ufunc)


@cache
def _function(name: str) -> Callable:
    return _recorder(name, numpy_function(name))
