"""Back ends for graphs that hold for many sizes: a `GeneralGraph` and a device
-> what makes its programs.

What comes back has `serves(sizes)`, whether it has a program for these, and `bind(sizes)`, that
program: a callable as any back end gives. `guards` are the conditions on sizes, and
`ready` says whether a run of it would wait for a compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .native import move_constants


class ByOperators:
    """A graph that torch runs operator by operator, whatever the sizes are."""

    ready = True

    def __init__(self, graph: Any, _device: torch.device):
        self.guards: tuple[str, ...] = graph.guards
        self._run = graph.graph.forward

    def serves(self, _sizes: Sequence[int]) -> bool:
        """Always."""
        return True

    def bind(self, _sizes: Sequence[int]) -> Callable:
        """The graph: it takes the sizes that it needs as inputs."""
        run: Callable = self._run
        return run


def native(graph: Any, device: torch.device) -> Any:
    """Kernels for many sizes. NoCuda, Unsupported: there are none."""
    from np_compile.kernels.compile import ForSizes

    move_constants(graph.graph, device)
    places = tuple(graph.symbols.values())
    return ForSizes(graph.graph, graph.facts, places, graph.integers, device)


_Maker = Callable[[Any, torch.device], Any]
_BACKENDS: dict[str, _Maker] = {
    "eager": ByOperators, "native": native,
}  # fmt: skip


def for_sizes(backend: Any) -> _Maker | None:
    """What makes programs for many sizes with a back end; None where it makes one for each."""
    return _BACKENDS.get(backend) if isinstance(backend, str) else None
