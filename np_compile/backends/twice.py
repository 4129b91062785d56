"""Gradients of gradients: only torch's own autograd has them, for operators. They are refused.

A gradient that was computed by a program is to be connected with all that it depends on. Where it
is not, a gradient of it is None, which reads as zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

_DEPTH = 4  # nodes from a result to its program: views, and copies into what was written to


def refuse() -> RuntimeError:
    """The error of a gradient of a gradient."""
    return RuntimeError(
        "np_compile: a gradient of a gradient (double backward) is only possible with "
        "backend='eager'."
    )


class _Gradient(torch.autograd.Function):
    """A gradient, and what it depends on: the inputs of its program."""

    @staticmethod
    def forward(ctx: Any, gradient: torch.Tensor, *ties: torch.Tensor) -> torch.Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        raise refuse()


class _Tie(torch.autograd.Function):
    """A tensor without elements that has the history of another one, as it is now: the program may
    write to that."""

    @staticmethod
    def forward(ctx: Any, t: torch.Tensor) -> torch.Tensor:
        return t.new_empty(0)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return None


def tie(t: torch.Tensor) -> torch.Tensor:
    """What keeps the history of a tensor, and not its memory."""
    with torch.enable_grad():
        made: torch.Tensor = _Tie.apply(t)
    return made


def refusing(program: Callable) -> Callable:
    """A program of AOTAutograd's, whose gradients are not to be differentiated in their turn."""

    def run(*tensors: torch.Tensor) -> Any:
        if not torch.is_grad_enabled():
            return program(*tensors)
        ties = [tie(t) for t in tensors if t.requires_grad]
        results = program(*tensors)
        found = {id(node): node for t in (*results, *tensors) for node in _programs(t.grad_fn)}
        for node in found.values():
            node.register_hook(partial(_connect, ties))
        return results

    return run


def _programs(node: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """The programs in the history of a tensor that are met first."""
    if node is None or depth == 0:
        return
    if node.name() == "CompiledFunctionBackward":
        yield node
        return
    for following, _ in node.next_functions:
        yield from _programs(following, depth - 1)


def _connect(ties: list[torch.Tensor], gradients: tuple, _given: tuple) -> tuple | None:
    if not torch.is_grad_enabled():
        return None
    return tuple(g if g is None else _Gradient.apply(g, *ties) for g in gradients)
