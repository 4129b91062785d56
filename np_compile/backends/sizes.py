"""Back ends for graphs that hold for many sizes: a `GeneralGraph` and a device
-> what makes its programs.

What comes back has `serves(sizes)`, whether it has a program for these, and `bind(sizes)`, that
program: a callable as any back end gives. `guards` are the conditions on sizes, and
`ready` says whether a run of it would wait for a compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from .native import LINES, Differentiated, move_constants, with_lines

if TYPE_CHECKING:
    from .halves import Halves


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
    if any(graph.differentiated):
        found = _with_gradients(graph, places, device)
        if found is not None:
            return found
    return ForSizes(graph.graph, graph.facts, places, graph.integers, device)


def _with_gradients(graph: Any, places: tuple[int, ...], device: torch.device) -> Any:
    """Kernels of a program and of its gradients; None where nothing that it gives has one.
    Unsupported, Written, RuntimeError: AOTAutograd would have to make it. Special: it has a
    gradient for the sizes at hand alone."""
    from np_compile.kernels.frontend.nodes import Unsupported
    from np_compile.lowering.general import Special

    from .checks import put_checks, take_checks
    from .differentiated import differentiated_for_sizes
    from .halves import complete, only_makes_arrays, without_copies
    from .saved import placeholders, results_of
    from .split import split

    module, checks = take_checks(graph.graph)
    without_copies(module.graph)
    module.recompile()
    if not only_makes_arrays(module.graph):
        raise Unsupported("gradients for many sizes of more than new arrays")
    count = len(results_of(module.graph))
    found = differentiated_for_sizes(module, graph.facts, graph.differentiated, device, LINES)
    if found is None:
        return None
    fixed = graph.facts.fixed()
    if fixed:
        raise Special(frozenset(graph.symbols[name] for name in fixed))
    joint, floats = found
    forward, backward = split(joint, count, graph.facts)
    inputs = len(placeholders(module.graph)) - len(graph.integers)
    if not complete(forward.graph, backward.graph, count, inputs, floats):
        raise Unsupported("gradients for many sizes, which keep other things than arrays")
    count = put_checks(forward.graph, checks, count)
    return WithGradients(graph.facts, places, (forward, backward), floats, count, device)


class WithGradients:
    """Kernels for many sizes of both halves of a program, see `halves.Halves`."""

    runs_alone = False

    def __init__(
        self, facts: Any, places: tuple[int, ...], halves: tuple[Any, Any], floats: list[int],
        count: int, device: torch.device,
    ):  # fmt: skip
        from np_compile.kernels.compile import ForSizes

        from .halves import Halves

        def compiled(part: Any) -> Any:
            return ForSizes(with_lines(part), facts, places, None, device)

        parts: list[Any] = []

        def make_first(part: Any) -> Callable:
            parts.append(part)
            return part.forward  # type: ignore[no-any-return]

        self._facts = facts
        self._halves = Halves(*halves, floats, count, make_first, compiled)
        self._first, self._second = compiled(*parts), compiled(self._halves.second)

    @property
    def guards(self) -> tuple[str, ...]:
        """What is asked of sizes."""
        return tuple(self._first.guards)

    @property
    def ready(self) -> bool:
        """Whether the kernels of both halves are compiled."""
        return bool(self._first.ready and self._second.ready)

    def serves(self, sizes: Sequence[int]) -> bool:
        """Whether the guards are true of sizes."""
        return bool(self._first.serves(sizes))

    def bind(self, sizes: Sequence[int]) -> Differentiated:
        """The program for these sizes."""
        return _AtSizes(self._halves, self._first, self._second, sizes)


class _AtSizes(Differentiated):
    """A program with gradients for some sizes, of one for many."""

    def __init__(self, halves: Halves, first: Any, second: Any, sizes: Sequence[int]):
        self.first = first.bind(sizes)
        self._bind = partial(second.bind, sizes)
        self.halves = halves.at_sizes(first.values(sizes), self.first, self._make_second)
        self.call = self.halves.call

    def _make_second(self) -> Callable:
        self.second = self._bind()
        return self.second


_Maker = Callable[[Any, torch.device], Any]
_BACKENDS: dict[str, _Maker] = {
    "eager": ByOperators, "native": native,
}  # fmt: skip


def for_sizes(backend: Any) -> _Maker | None:
    """What makes programs for many sizes with a back end; None where it makes one for each."""
    return _BACKENDS.get(backend) if isinstance(backend, str) else None
