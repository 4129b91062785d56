"""Back ends: a name -> backend(graph_module, example_inputs) -> callable."""

from .registry import BACKENDS, lookup
from .sizes import for_sizes

__all__ = ["BACKENDS", "for_sizes", "lookup"]
