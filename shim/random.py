"""numpy.random on tensors: the rows "random.*" of the table, and NumPy's own beside."""

from __future__ import annotations

from typing import Any

import numpy as _np

from . import _namespace

globals().update(_namespace.submodule(_np.random))
__all__ = sorted(_namespace.submodule(_np.random))


def __getattr__(name: str) -> Any:
    return _namespace.lookup(_np.random, name)
