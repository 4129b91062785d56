"""numpy.linalg on tensors: the rows "linalg.*" of the table."""

from __future__ import annotations

from typing import Any

import numpy as _np

from . import _namespace

globals().update(_namespace.submodule("linalg"))
__all__ = sorted(_namespace.submodule("linalg"))


def __getattr__(name: str) -> Any:
    raise _namespace.missing("numpy.linalg", _np.linalg, name)
