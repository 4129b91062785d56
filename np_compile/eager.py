"""`wrap_numpy` without compilation: the function runs on shim arrays, call by call."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from . import shim
from .capture import state
from .capture.numpy_names import row_of_function
from .capture.objects import with_items
from .capture.recorder import check_tensor
from .capture.substitute import Substitution, evaluators, importer

_SUBMODULES = {np.linalg: shim.linalg, np.fft: shim.fft, np.random: shim.random}


class ShimNames:
    """See `capture.substitute.Names`: NumPy's names lead to the shim's."""

    def __init__(self, substitution: Any = None):
        self.builtins = {
            "__import__": importer(lambda: self.substitution),
            **evaluators(lambda: self.substitution),
        }
        self.substitution: Substitution | None = None

    def renew(self) -> None:
        pass

    def numpy(self, value: Any) -> Any:
        if value is np:
            return shim
        if value in _SUBMODULES if isinstance(value, type(np)) else False:
            return _SUBMODULES[value]
        if isinstance(value, (type, type(np))):
            return value
        name = row_of_function(value)
        return value if name is None else shim.TABLE[name].function

    def foreign(self, value: Any) -> Any:
        return value

    def torch(self, value: Any) -> Any:
        return value

    def instance(self, value: Any) -> Any:
        return value

    def real(self, value: Any) -> Any:
        return value

    def of_one_call(self, value: Any) -> bool:
        return False

    def array(self, value: Any) -> Any:
        return value


def _device(x: Any) -> torch.device | None:
    if isinstance(x, torch.Tensor):
        return x.device if x.device.type != "cpu" else None
    if isinstance(x, (list, tuple)):
        return next((d for v in x if (d := _device(v)) is not None), None)
    if isinstance(x, dict):
        return _device(list(x.values()))
    if hasattr(x, "__cuda_array_interface__"):
        return torch.device("cuda", x.device.id)
    return None


def _take(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        check_tensor(x)
        return shim.from_tensor(x)
    if isinstance(x, tuple):
        items = [_take(v) for v in x]
        return with_items(x, items)
    if isinstance(x, list):
        return [_take(v) for v in x]
    if isinstance(x, dict):
        return {k: _take(v) for k, v in x.items()}
    if hasattr(x, "__dlpack__") and not isinstance(x, (np.ndarray, np.generic)):
        return shim.from_tensor(torch.from_dlpack(x))
    return x


def _give(x: Any) -> Any:
    if isinstance(x, shim.ndarray):
        return x.tensor
    if isinstance(x, (np.ndarray, np.generic)):
        return shim.as_array(x).tensor
    if isinstance(x, tuple):
        items = [_give(v) for v in x]
        return with_items(x, items)
    if isinstance(x, list):
        return [_give(v) for v in x]
    if isinstance(x, dict):
        return {k: _give(v) for k, v in x.items()}
    return x


def run_eagerly(wrapped: Any, args: tuple, kwargs: dict) -> Any:
    """Call a wrapped function on shim arrays; tensors come back."""
    free: list[Substitution] = wrapped._local.__dict__.setdefault("free", [])
    substitution = free.pop() if free else None  # each call that runs has its own
    if substitution is None:
        names = ShimNames()
        substitution = names.substitution = Substitution(names)
    f = substitution.function(wrapped.__wrapped__)
    device = _device([*args, *kwargs.values()])
    substitution.enter()
    before = state.switch(None, substitution)
    try:
        with device if device is not None else nullcontext():
            return _give(f(*(_take(a) for a in args), **{k: _take(v) for k, v in kwargs.items()}))
    finally:
        state.switch(*before)
        substitution.leave(_give)
        free.append(substitution)
