"""numpy.fft on tensors: the rows "fft.*" of the table."""

from __future__ import annotations

from typing import Any

import numpy as _np

from . import _namespace

globals().update(_namespace.submodule("fft"))
__all__ = sorted(_namespace.submodule("fft"))


def __getattr__(name: str) -> Any:
    raise _namespace.missing("numpy.fft", _np.fft, name)
