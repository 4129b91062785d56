"""The tensor graph of a segment that is differentiated, and torch's own tracer: for back ends other
than kernels on a device, the segment is replayed under `make_fx` on fake tensors there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch.fx import _symbolic_trace
from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx

from .record import has_an_effect

Replay = Callable[[tuple[torch.Tensor, ...], torch.fx.Graph | None], list[torch.Tensor]]


def trace(
    replay: Replay, args: list[torch.Tensor], written: list[int], device: torch.device | None
) -> torch.fx.GraphModule:
    """The graph of a replay for inputs like `args`. written: the inputs that it writes to."""

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        mode = get_proxy_mode()
        return replay(tensors, None if mode is None else mode.tracer.graph)

    differentiated = any(a.requires_grad for a in args)
    traced = without_writes(run, written) if differentiated else run
    examples = [a.detach() for a in args]
    with torch.set_grad_enabled(differentiated), device or nullcontext():
        graph = make_fx(
            _unannounced(traced),
            decomposition_table=DIFFERENTIABLE,
            tracing_mode="fake",
            _allow_non_fake_inputs=True,
        )(*examples)
    graph.graph.eliminate_dead_code(has_an_effect)
    graph.recompile()
    return graph


def _unannounced(traced: Callable) -> Callable:
    """A function that is traced, without the word to all threads that a trace goes on: functions
    under `torch.compile` that other threads call meanwhile would raise."""

    def run(*args: Any) -> Any:
        _symbolic_trace._is_fx_tracing_flag = False
        return traced(*args)

    return run


def without_writes(replay: Callable, written: list[int]) -> Callable:
    """The segment with its writes made into new values, and inputs written to once, at the end:
    nothing that autograd has saved is changed behind its back."""

    def on_copies(*tensors: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        own = list(tensors)
        for k in written:
            own[k] = tensors[k].clone()
        return replay(*own), [own[k] for k in written]

    pure = torch.func.functionalize(on_copies)

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        outputs, new = pure(*tensors)
        for k, values in zip(written, new, strict=True):
            tensors[k].copy_(values)
        return outputs

    return run


def _copy(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    return source.to(target.dtype).expand(target.shape).clone()


def _by_parts(scatter: Any) -> Callable:
    """An operator that replaces a part of an array, of complex numbers by their parts."""

    def replaced(whole: torch.Tensor, part: torch.Tensor, *where: Any) -> Any:
        if not whole.is_complex():
            return NotImplemented
        real = scatter(whole.real, part.real, *where)
        return torch.complex(real, scatter(whole.imag, part.imag, *where))

    return replaced


def _strided_scatter(
    whole: torch.Tensor, part: torch.Tensor, size: list[int], strides: list[int],
    offset: int | None = None,
) -> torch.Tensor:  # fmt: skip
    """The operator that replaces elements by where they lie in memory, by their indices there."""
    if not part.numel():
        return whole.clone()
    begin: Any = whole.storage_offset()  # a number, or a symbol of the trace
    places = torch.full((), 0 if offset is None else offset - begin, device=whole.device)
    for axis, (n, step) in enumerate(zip(size, strides, strict=True)):
        along = torch.arange(n, device=whole.device) * step
        places = places + along.reshape(-1, *[1] * (len(size) - axis - 1))
    span = 1 + sum((n - 1) * s for n, s in zip(whole.shape, whole.stride(), strict=True))
    memory = whole.as_strided((span,), (1,), begin)
    return memory.index_put((places,), part).as_strided(whole.shape, whole.stride())


# What functionalization leaves of a write has no derivative in torch, or a wrong one; these have.
_aten = torch.ops.aten
DIFFERENTIABLE: dict[Any, Callable[..., Any]] = {
    _aten.copy.default: _copy,
    _aten.as_strided_scatter.default: _strided_scatter,
    **{f.default: _by_parts(f) for f in (_aten.slice_scatter, _aten.select_scatter)},
}
