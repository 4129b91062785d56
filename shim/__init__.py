"""NumPy on torch tensors: `import np_compile.shim as np`.

Everything here comes from the table of functions; see `_namespace.py`.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as _np

from ._dtypes import NUMPY_DTYPES, DataDependent, NotSupported, Weak, torch_dtype
from ._ndarray import as_array, from_numpy, from_tensor, ndarray, share_numpy, to_numpy
from ._table import TABLE, Kind, Row

_PARTS = (
    "_ufuncs",
    "_index",
    "_methods",
    "_promotion",
    "_reductions",
    "_cumulative",
    "_statistics",
    "_sorting",
    "_sets",
    "_logic",
    "_creation",
    "_views",
    "_joining",
    "_products",
    "_linalg",
    "_fft",
    "_random",
    "_functional",
)
for _part in _PARTS:
    if importlib.util.find_spec(f"{__name__}.{_part}") is not None:
        importlib.import_module(f"{__name__}.{_part}")

from . import _namespace  # noqa: E402  (needs every row)

_namespace.attach_methods(ndarray)
globals().update(_namespace.top_level())
from . import fft, linalg, random  # noqa: E402, F401

__all__ = sorted(
    {"DataDependent", "Kind", "NUMPY_DTYPES", "NotSupported", "Row", "TABLE", "Weak", "torch_dtype"}
    | {
        "as_array",
        "from_numpy",
        "from_tensor",
        "ndarray",
        "share_numpy",
        "to_numpy",
        "fft",
        "linalg",
        "random",
    }
    | set(_namespace.top_level())
)


def __getattr__(name: str) -> Any:
    raise _namespace.missing("numpy", _np, name)
