"""Compile NumPy programs into fused kernels for CPU and CUDA, with gradients."""

import gc
import os

# Before torch loads its OpenMP runtime: a thread that waits at a barrier sleeps after a few
# microseconds. By default it spins for milliseconds, and where another process needs the core the
# kernels then take a hundred times as long. A choice of the user's stands.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "0")

# A collection that walks over all objects of torch takes 0.1 s, to find nothing. What the import
# makes would set one off, and be young for the next one, in a first call: it is old at once.
_collecting = gc.isenabled()
gc.disable()
try:
    from . import config, errors
    from .api import compile, wrap_numpy
    from .controls import (
        allow_in_graph,
        disable,
        disallow_in_graph,
        graph_break,
        is_compiling,
    )
    from .tools.accuracy import accuracy
    from .tools.compiles import compile_times, recompiles
    from .tools.explain import explain
    from .tools.inspect import inspect
    from .tools.minify import minify
    from .tools.run import run
finally:
    if _collecting:
        if gc.get_freeze_count() < 2000:  # not frozen by the user: Python 3.12 begins with 375
            gc.freeze()
            gc.unfreeze()
        gc.enable()

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "accuracy",
    "allow_in_graph",
    "compile",
    "compile_times",
    "config",
    "disable",
    "disallow_in_graph",
    "errors",
    "explain",
    "graph_break",
    "inspect",
    "is_compiling",
    "minify",
    "recompiles",
    "run",
    "wrap_numpy",
]
