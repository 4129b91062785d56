"""Compile NumPy programs into fused kernels for CPU and CUDA, with gradients."""

from . import config, errors
from .api import compile, disable, graph_break, is_compiling, wrap_numpy
from .tools.explain import explain
from .tools.inspect import inspect

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "compile",
    "config",
    "disable",
    "errors",
    "explain",
    "graph_break",
    "inspect",
    "is_compiling",
    "wrap_numpy",
]
