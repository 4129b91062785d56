"""Operators that NumPy's own library computes faster than torch's on the CPU.

Measured on 10^5 and 10^6 float64: `np.sort` 17 to 25 times faster than `torch.sort`, `np.argsort`
with ties in any order 4 times, a single real Fourier transform 2 to 3 times. On AMD's processors
NumPy's matrix product is 1.1 to 3 times as fast as torch's. Stable sorts by indices, rows of
transforms and complex transforms are as fast or faster in torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import fx

from . import build

_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
# Shortest transform for which NumPy is called.
_LONG = 4096


# Work that libraries do better than loops would: matrix products, transforms, sorts, equations.
_LIBRARIES = ("mm", "bmm", "addmm", "convolution", "sort", "_fft_", "linalg_", "_linalg_")


def reason(name: str) -> str:
    """Why an operator is called and not written as loops."""
    if name.startswith(_LIBRARIES):
        return "it is a library's work"
    return "no rule of the loop IR covers it"


def faster(node: fx.Node) -> Callable[..., Any] | None:
    """A function to call in the place of a node's operator, with its arguments; None for most."""
    rule = _RULES.get(str(node.target))
    return None if rule is None else rule(node)


def _sort(node: fx.Node) -> Callable[..., Any] | None:
    used = {user.args[1] for user in node.users if user.args and len(user.args) > 1}
    source: Any = node.args[0]
    if source.meta["val"].dtype is torch.bfloat16 or source.meta["val"].dim() == 0:
        return None
    stable = bool(node.kwargs.get("stable"))
    if used == {0}:
        return _values
    if used == {1} and not stable:
        return _indices
    return None


def _values(t: torch.Tensor, *args: Any, **options: Any) -> Any:
    """sort's result. The indices, which nobody reads, are left as they come."""
    dim, descending = _sort_options(args, options)
    if descending:
        return torch.sort(t, dim=dim, descending=True)
    values = torch.from_numpy(np.sort(t.detach().numpy(), axis=dim))
    return values, torch.empty(t.shape, dtype=torch.int64)


def _indices(t: torch.Tensor, *args: Any, **options: Any) -> Any:
    """sort's result. The values, which nobody reads, are left as they come."""
    dim, descending = _sort_options(args, options)
    if descending:
        return torch.sort(t, dim=dim, descending=True)
    return torch.empty_like(t), torch.from_numpy(np.argsort(t.detach().numpy(), axis=dim))


def _sort_options(args: tuple, options: dict[str, Any]) -> tuple[int, bool]:
    named = {**dict(zip(("dim", "descending"), args, strict=False)), **options}
    return named.get("dim", -1), named.get("descending", False)


def _single(node: fx.Node) -> bool:
    """Whether a transform is one long one along the only axis."""
    source: Any = node.args[0]
    shape = source.meta["val"].shape
    return len(node.args[1]) == 1 and len(shape) == 1 and shape[0] >= _LONG  # type: ignore[arg-type]


def _real_to_complex(node: fx.Node) -> Callable[..., Any] | None:
    _, _, normalization, onesided = node.args
    if not _single(node) or normalization != 0 or not onesided:
        return None
    return lambda t, *_: torch.from_numpy(np.fft.rfft(t.detach().numpy()))


def _complex_to_real(node: fx.Node) -> Callable[..., Any] | None:
    _, _, normalization, n = node.args
    norm: Any = {0: "forward", 2: "backward"}.get(normalization)  # type: ignore[arg-type]
    length: Any = n
    if not _single(node) or norm is None:
        return None
    return lambda t, *_: torch.from_numpy(np.fft.irfft(t.detach().numpy(), length, norm=norm))


def _product(node: fx.Node) -> Callable[..., Any] | None:
    source: Any = node.args[0]
    if source.meta["val"].dtype not in (torch.float32, torch.float64):
        return None
    return None if "GenuineIntel" in build.processor() else _matrix_product


def _matrix_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if torch.get_num_threads() < _CORES:  # NumPy's library would not know
        return torch.mm(a, b)
    return torch.from_numpy(np.matmul(a.detach().numpy(), b.detach().numpy()))


_RULES: dict[str, Callable[[fx.Node], Callable[..., Any] | None]] = {
    "aten.sort.stable": _sort,
    "aten.sort.default": _sort,
    "aten.mm.default": _product,
    "aten._fft_r2c.default": _real_to_complex,
    "aten._fft_c2r.default": _complex_to_real,
}
