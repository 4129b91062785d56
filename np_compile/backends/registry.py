"""The back ends by name. Each takes a `torch.fx.GraphModule` of ATen operators and example inputs
(real tensors, `requires_grad` as in the run) and returns a callable: tensors in, list of tensors
out.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from np_compile import config
from np_compile.errors import UnknownBackend

from .by_torch import aot_eager, eager, inductor
from .native import native

Backend = Callable[[torch.fx.GraphModule, list[torch.Tensor]], Callable]


BACKENDS: dict[str, Backend] = dict(
    zip(config.BACKENDS, (eager, aot_eager, inductor, native), strict=True)
)


def lookup(backend: str | Backend) -> Backend:
    """The back end of a name; a callable is a back end itself. UnknownBackend otherwise."""
    if isinstance(backend, str):
        try:
            return BACKENDS[backend]
        except KeyError:
            raise UnknownBackend(
                f"backend={backend!r}: there are {', '.join(map(repr, BACKENDS))}, and any "
                "callable backend(graph_module, example_inputs)"
            ) from None
    if callable(backend):
        return backend
    raise UnknownBackend(
        f"backend={backend!r}: a back end is a name or a callable, not {type(backend).__name__}"
    )
