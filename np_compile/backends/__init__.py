"""Back ends: a name -> backend(graph_module, example_inputs) -> callable."""

from .registry import BACKENDS, lookup

__all__ = ["BACKENDS", "lookup"]
