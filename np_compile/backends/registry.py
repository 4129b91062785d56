"""The back ends by name. Each takes a `torch.fx.GraphModule` of ATen operators and example inputs
(real tensors, `requires_grad` as in the run) and returns a callable: tensors in, list of tensors
out.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch

from np_compile import config
from np_compile.errors import UnknownBackend

from .native import native, on_device
from .twice import refusing

Backend = Callable[[torch.fx.GraphModule, list[torch.Tensor]], Callable]


def eager(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable:
    """Run the tensor program operator by operator, with torch's own autograd."""
    return graph.forward


def _torch_backend(name: str) -> Backend:
    def compile_with_torch(
        graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]
    ) -> Callable:
        import torch._dynamo

        if name == "inductor" and not has_compiler() and not on_device(graph, example_inputs):
            warnings.warn(
                "np_compile: no C++ compiler found, tensor programs run operator by operator. "
                "Remedy: install g++ or clang++, or set CXX; or choose backend='eager'.",
                RuntimeWarning,
                stacklevel=2,
            )
            return eager(graph, example_inputs)
        compiler = torch._dynamo.lookup_backend(name)
        if not (torch.is_grad_enabled() and any(t.requires_grad for t in example_inputs)):
            return compiler(graph, example_inputs)
        with torch._functorch.config.patch(
            donated_buffer=False
        ):  # a graph may be gone through twice
            return refusing(compiler(graph, example_inputs))

    compile_with_torch.__name__ = name
    compile_with_torch.__doc__ = f"torch's own `{name}` back end."
    return compile_with_torch


BACKENDS: dict[str, Backend] = {
    "eager": eager,
    "aot_eager": _torch_backend("aot_eager"),
    "inductor": _torch_backend("inductor"),
    "native": native,
}
if config.backend not in BACKENDS:
    raise config.senseless("backend", config.backend, f"there are {', '.join(BACKENDS)}")


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


@functools.cache
def has_compiler() -> bool:
    """Whether a C++ compiler for inductor's CPU code is there."""
    import shutil

    import torch._inductor.config as inductor_config

    names: Any = inductor_config.cpp.cxx
    names = names if isinstance(names, (tuple, list)) else (names,)
    return any(n is not None and shutil.which(n) is not None for n in names)
