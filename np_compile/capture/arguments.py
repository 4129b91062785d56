"""Arguments in, results out: arrays inside nested structures become stand-ins, and back.

Lists, dicts, dataclasses and instances of user classes that hold arrays are handed to the function
as shallow copies with stand-ins in place of the arrays; what it changes in them is carried back
into the caller's own objects at the end. Objects without arrays are handed over as they are.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import torch

from .array import Array
from .loops import MarkedRange
from .namespace import RANDOM_SOURCES, RandomSource
from .substitute import _origin

_PLAIN = (
    type(None), bool, int, float, complex, str, bytes, type, types.ModuleType,
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.generic, np.dtype, range,
)  # fmt: skip

_CONTAINERS = (list, tuple, dict, set, frozenset, bytearray, np.ndarray, BaseException)


def _is_record(x: Any) -> bool:
    """Whether x is an instance of a user's class, with attributes to look at."""
    return (
        hasattr(x, "__dict__")
        and not isinstance(x, (*_PLAIN, *_CONTAINERS, torch.nn.Module, torch.Tensor))
        and _origin(type(x)) == "user"
    )


def holds_random_source(x: Any) -> bool:
    """Whether a record has a NumPy random generator among its attributes."""
    return _is_record(x) and any(isinstance(v, RANDOM_SOURCES) for v in vars(x).values())


class Exchange:
    """The arguments of one call: `take` them in, `give` results back, `restore` what changed."""

    def __init__(self, capture: Any):
        self.capture = capture
        self.copies: dict[int, tuple[Any, Any]] = {}  # id of the caller's object -> (it, copy)
        self.originals: dict[int, Any] = {}  # id of a copy -> the caller's object
        self.given: dict[int, tuple[Any, Any]] = {}

    # -- in ---------------------------------------------------------------------------------

    def take(self, x: Any) -> Any:
        """x with stand-ins for arrays; x itself where it holds none."""
        kind = type(x)
        if kind is np.ndarray:
            return self.capture.adopt(x)
        if isinstance(x, _PLAIN):
            return x
        if isinstance(x, RANDOM_SOURCES):
            return RandomSource(x)
        if isinstance(x, torch.Tensor):
            return self.capture.adopt(x) if self.capture.tensors else x
        found = self.copies.get(id(x))
        if found is not None:
            return found[1]
        if kind is list or kind is dict:
            if not _holds(x, set()):
                return x
            copy: Any = kind()
            self._pair(x, copy)
            if kind is list:
                copy.extend(self.take(v) for v in x)
            else:
                copy.update((k, self.take(v)) for k, v in x.items())
            return copy
        if isinstance(x, tuple):
            items = [self.take(v) for v in x]
            if all(a is b for a, b in zip(items, x, strict=True)):
                return x
            return kind(*items) if hasattr(x, "_fields") else tuple(items)
        if self.capture.tensors and hasattr(x, "__dlpack__"):
            return self.capture.adopt(torch.from_dlpack(x))
        if _is_record(x) and _holds(x, set()):
            copy = object.__new__(kind)
            self._pair(x, copy)
            copy.__dict__.update((k, self.take(v)) for k, v in vars(x).items())
            return copy
        return x

    def _pair(self, original: Any, copy: Any) -> None:
        self.copies[id(original)] = (original, copy)
        self.originals[id(copy)] = original

    # -- out --------------------------------------------------------------------------------

    def give(self, x: Any) -> Any:
        """x with real arrays (or tensors) for stand-ins; user containers change in place."""
        kind = type(x)
        if kind is Array:
            return self._leaf(x)
        if kind is MarkedRange:
            return x._range
        if kind is RandomSource:
            return x.__np_compile_real__
        if isinstance(x, _PLAIN) or kind is np.ndarray or isinstance(x, torch.Tensor):
            if self.capture.tensors and isinstance(x, (np.ndarray, np.generic)):
                return _as_tensor(x, self.capture.device)
            return x
        original = self.originals.get(id(x))
        if original is not None:
            return original
        if isinstance(x, tuple):
            items = [self.give(v) for v in x]
            if all(a is b for a, b in zip(items, x, strict=True)):
                return x
            return kind(*items) if hasattr(x, "_fields") else tuple(items)
        if id(x) in self.given:
            return x
        if isinstance(x, (list, dict, set)) or _is_record(x):
            self.given[id(x)] = (x, None)
            self._replace(x)
        return x

    def _replace(self, x: Any) -> None:
        if isinstance(x, list):
            for i, v in enumerate(x):
                new = self.give(v)
                if new is not v:
                    x[i] = new
        elif isinstance(x, dict):
            for k, v in list(x.items()):
                new = self.give(v)
                if new is not v:
                    x[k] = new
        elif isinstance(x, set):
            new_items = {self.give(v) for v in x}
            x.clear()
            x.update(new_items)
        else:
            for k, v in list(vars(x).items()):
                new = self.give(v)
                if new is not v:
                    x.__dict__[k] = new

    def _leaf(self, a: Array) -> Any:
        return self.capture.outside(a)

    def clear(self) -> None:
        """Let go of everything."""
        self.copies.clear()
        self.originals.clear()
        self.given.clear()
        self.capture.exchange = None
        self.capture = None

    def restore(self) -> None:
        """Carry what the function changed in the copies back into the caller's objects."""
        for original, copy in list(self.copies.values()):
            if isinstance(original, list):
                now = [self.give(v) for v in copy]
                if len(now) != len(original) or any(
                    a is not b for a, b in zip(now, original, strict=True)
                ):
                    original[:] = now
            else:
                target = original if isinstance(original, dict) else vars(original)
                source = copy if isinstance(copy, dict) else vars(copy)
                values = {k: self.give(v) for k, v in source.items()}
                if list(values) != list(target) or any(values[k] is not target[k] for k in values):
                    if list(values) != list(target)[: len(values)]:
                        target.clear()
                    target.update(values)


def _as_tensor(x: Any, device: torch.device | None) -> torch.Tensor:
    t = torch.as_tensor(np.asarray(x))
    return t if device is None else t.to(device)


def _holds(x: Any, seen: set[int]) -> bool:
    """Whether arrays (or, for wrapped functions, tensors) are found inside x."""
    if isinstance(x, (np.ndarray, torch.Tensor, *RANDOM_SOURCES)):
        return True
    if isinstance(x, _PLAIN) or id(x) in seen:
        return False
    seen.add(id(x))
    if isinstance(x, (list, tuple)):
        return any(_holds(v, seen) for v in x)
    if isinstance(x, dict):
        return any(_holds(v, seen) for v in x.values())
    return _is_record(x) and any(_holds(v, seen) for v in vars(x).values())
