"""Back ends for graphs that hold for many sizes: a `GeneralGraph` -> what makes its programs.

What comes back has `serves(sizes)`, whether it has a program for these, and `bind(sizes)`, that
program: a callable as any back end gives. `guards` are the conditions on sizes that it adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class ByOperators:
    """A graph that torch runs operator by operator, whatever the sizes are."""

    guards: tuple[str, ...] = ()

    def __init__(self, graph: Any, _sizes: Sequence[int]):
        self._run = graph.graph.forward

    def serves(self, _sizes: Sequence[int]) -> bool:
        """Always."""
        return True

    def bind(self, _sizes: Sequence[int]) -> Callable:
        """The graph: it takes the sizes that it needs as inputs."""
        run: Callable = self._run
        return run


def native(graph: Any, sizes: Sequence[int]) -> Any:
    """Kernels for many sizes."""
    from np_compile.kernels.compile import ForSizes

    return ForSizes(graph.graph, graph.symbols, graph.integers, graph.conditions, sizes)


_BACKENDS: dict[str, Callable[[Any, Sequence[int]], Any]] = {
    "eager": ByOperators, "native": native,
}  # fmt: skip


def for_sizes(backend: Any) -> Callable[[Any, Sequence[int]], Any] | None:
    """What makes programs for many sizes with a back end; None where it makes one for each."""
    return _BACKENDS.get(backend) if isinstance(backend, str) else None
