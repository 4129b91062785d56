"""A program of arrays that is handed tensors of their memory, and gives arrays back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch


def on_tensors(f: Callable, device: str | None = None) -> Callable:
    """f, which takes and gives tensors, as a function of arrays. device: where the tensors lie,
    which then share memory as the arrays do; if none is named, in the memory of the arrays."""

    def called(*arguments: Any) -> Any:
        loan = _Loan() if device is None else _Copies(device)
        try:
            result = f(*mapped(arguments, loan.take))
        finally:
            loan.settle()
            mapped(arguments, loan.give)
        return mapped(result, loan.give)

    return called


class _Loan:
    """The tensors of arrays, one for each, and the arrays of tensors."""

    def __init__(self) -> None:
        self._pairs: list[tuple[np.ndarray, torch.Tensor]] = []

    def take(self, x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        if all(x is not a for a, _ in self._pairs):
            self._pairs.append((x, self._tensor(x)))
        return next(t for a, t in self._pairs if a is x)

    def give(self, x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        if all(x is not t for _, t in self._pairs):
            self._pairs.append((self._array(x), x))
        return next(a for a, t in self._pairs if t is x)

    def settle(self) -> None:
        """After the call: arrays hold what their tensors do."""

    def _tensor(self, x: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(x)

    def _array(self, t: torch.Tensor) -> np.ndarray:
        return t.numpy()


class _Copies(_Loan):
    """The same of tensors on a device: a copy of each memory."""

    def __init__(self, device: str):
        super().__init__()
        self._device = device
        self._memories: dict[int, tuple[np.ndarray, torch.Tensor]] = {}  # by their addresses there

    def _tensor(self, x: np.ndarray) -> torch.Tensor:
        root = x
        while isinstance(root.base, np.ndarray):
            root = root.base
        flat = root.reshape(-1, order="A")
        there = next((t for a, t in self._memories.values() if _same(a, flat)), None)
        if there is None:
            there = torch.from_numpy(flat).to(self._device)
            self._memories[there.untyped_storage().data_ptr()] = flat, there
        first = (_address(x) - _address(flat)) // x.itemsize if x.size else 0
        return there.as_strided(x.shape, [n // x.itemsize for n in x.strides], first)

    def _array(self, t: torch.Tensor) -> np.ndarray:
        storage = t.untyped_storage()
        if storage.data_ptr() not in self._memories:
            whole = torch.empty(0, dtype=t.dtype, device=t.device).set_(storage)
            self._memories[storage.data_ptr()] = whole.cpu().numpy(), whole
        memory, _ = self._memories[storage.data_ptr()]
        size = t.element_size()
        dtype = torch.empty(0, dtype=t.dtype).numpy().dtype
        steps = [n * size for n in t.stride()]
        if t.numel() == 0:
            return np.empty(t.shape, dtype)
        return np.ndarray(t.shape, dtype, memory.data, t.storage_offset() * size, steps)

    def settle(self) -> None:
        for memory, there in self._memories.values():
            memory[...] = there.cpu().numpy()


def _address(x: np.ndarray) -> int:
    return int(x.__array_interface__["data"][0])


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return _address(a) == _address(b) and a.nbytes == b.nbytes > 0


def without_scalars(f: Callable) -> Callable:
    """f with arrays without axes for NumPy's scalars, as torch has none."""
    return lambda *arguments: mapped(
        f(*arguments), lambda x: np.asarray(x) if isinstance(x, np.generic) else x
    )


def mapped(x: Any, of: Callable[[Any], Any]) -> Any:
    """x with `of` each leaf: containers are made anew, objects have their attributes set."""
    if isinstance(x, dict):
        return {k: mapped(v, of) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)([mapped(v, of) for v in x])
    if hasattr(x, "__dict__") and not isinstance(x, torch.Tensor):
        for name, value in vars(x).items():
            setattr(x, name, mapped(value, of))
        return x
    return of(x)
