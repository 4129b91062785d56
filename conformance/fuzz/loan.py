"""A program of arrays that is handed tensors of their memory, and gives arrays back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch


def on_tensors(f: Callable) -> Callable:
    """f, which takes and gives tensors, as a function of arrays."""

    def called(*arguments: Any) -> Any:
        pairs: list[tuple[np.ndarray, torch.Tensor]] = []

        def lent(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return x
            if all(x is not a for a, _ in pairs):
                pairs.append((x, torch.from_numpy(x)))
            return next(t for a, t in pairs if a is x)

        def returned(x: Any) -> Any:
            if not isinstance(x, torch.Tensor):
                return x
            if all(x is not t for _, t in pairs):
                pairs.append((x.numpy(), x))
            return next(a for a, t in pairs if t is x)

        try:
            return mapped(f(*mapped(arguments, lent)), returned)
        finally:
            mapped(arguments, returned)

    return called


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
