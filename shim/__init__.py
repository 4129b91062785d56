"""NumPy on torch tensors: `import np_compile.shim as np`.

Everything here comes from the table of functions; see `_namespace.py`.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as _np

from ._assigned import assigned
from ._dtypes import NUMPY_DTYPES, TO_NUMPY, DataDependent, NotSupported, Weak, torch_dtype
from ._host import in_numpy, strict
from ._info import NamespaceInfo
from ._ndarray import (
    as_array,
    from_numpy,
    from_tensor,
    is_writeable,
    ndarray,
    share_numpy,
    to_numpy,
)
from ._quiet import Warns, quiet, refusing_draws, refusing_warnings
from ._table import TABLE, Kind, Row

_PARTS = (
    "_ufuncs",
    "_index",
    "_methods",
    "_promotion",
    "_reductions",
    "_nan_reductions",
    "_quantiles",
    "_cumulative",
    "_statistics",
    "_histograms",
    "_sorting",
    "_selection",
    "_sets",
    "_logic",
    "_values",
    "_creation",
    "_ranges",
    "_views",
    "_strided",
    "_parts",
    "_joining",
    "_repeating",
    "_padding",
    "_triangles",
    "_products",
    "_einsum",
    "_linalg",
    "_norms",
    "_fft",
    "_random",
    "_functional",
    "_subclass",
)
for _part in _PARTS:
    if importlib.util.find_spec(f"{__name__}.{_part}") is not None:
        importlib.import_module(f"{__name__}.{_part}")

from . import _namespace  # noqa: E402  (needs every row)

_namespace.attach_methods(ndarray)
globals().update(_namespace.top_level())
from . import fft, linalg, random, testing  # noqa: E402

__all__ = [
    "NUMPY_DTYPES",
    "TABLE",
    "TO_NUMPY",
    "DataDependent",
    "Kind",
    "NotSupported",
    "Row",
    "Warns",
    "Weak",
    "as_array",
    "assigned",
    "fft",
    "from_numpy",
    "from_tensor",
    "in_numpy",
    "is_writeable",
    "linalg",
    "ndarray",
    "quiet",
    "random",
    "refusing_draws",
    "refusing_warnings",
    "share_numpy",
    "strict",
    "testing",
    "to_numpy",
    "torch_dtype",
]
__all__ += _namespace.top_level()


__array_api_version__ = _np.__array_api_version__
__array_namespace_info__ = NamespaceInfo


def __getattr__(name: str) -> Any:
    found = globals()[name] = _namespace.lookup(_np, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_np)})
