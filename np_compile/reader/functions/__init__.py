"""NumPy's functions and methods on arrays, as loops. What reads each stands in the tables of the
modules; the modules' public functions serve the rest of the reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import combining, creation, dtypes, reductions, ufuncs, views

TABLE: dict[Any, Callable] = {
    **creation.TABLE, **views.TABLE, **reductions.TABLE, **combining.TABLE,
    **dtypes.TABLE, **ufuncs.TABLE,
}  # fmt: skip
METHODS: dict[str, Callable] = {
    **creation.METHODS, **views.METHODS, **ufuncs.METHODS, **reductions.METHODS,
    **combining.METHODS,
}  # fmt: skip
