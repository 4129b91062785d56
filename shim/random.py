"""numpy.random on tensors: the rows "random.*" of the table."""

from __future__ import annotations

from typing import Any

import numpy as _np

from . import _namespace

globals().update(_namespace.submodule("random"))
__all__ = sorted(_namespace.submodule("random"))


def __getattr__(name: str) -> Any:
    raise _namespace.missing("numpy.random", _np.random, name)
