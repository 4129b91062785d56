"""NumPy on torch tensors: `import np_compile.shim as np`."""

from __future__ import annotations

import importlib

from ._dtypes import NotSupported, Weak
from ._ndarray import as_array, from_numpy, ndarray, to_numpy
from ._table import TABLE, Kind, Row

for _part in ():
    importlib.import_module(f"{__name__}.{_part}")

__all__ = ["NotSupported", "TABLE", "Kind", "Row", "Weak", "as_array", "from_numpy", "ndarray", "to_numpy"]
