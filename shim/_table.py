"""The table of NumPy functions: one row says everything about a function.

A row's name is its path under `numpy` ("sum", "linalg.norm", "fft.fft"), or "ndarray.<method>".
The namespaces (`np_compile.shim`, its submodules), the methods of `ndarray` and the recorder of
np_compile are all made from this table; there is no second list of names.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


class Kind(enum.Enum):
    """What running a function needs to know."""

    ARRAY = "array"  # tensors to tensors; shapes of results follow from shapes of arguments
    QUERY = "query"  # answers from shapes and dtypes alone, with a Python object
    DATA = "data"  # result's shape or Python value depends on the data: runs eagerly
    LIBRARY = "library"  # a library call that may raise on the data (linalg): runs eagerly
    IMPURE = "impure"  # draws random numbers or touches files: never recorded


class Deferred(inspect.Signature):
    """A signature that is worked out when somebody looks at it: there are hundreds of rows.

    make: gives the signature.
    """

    __slots__ = ("_found", "_make")

    def __init__(self, make: Callable[[], inspect.Signature]):
        self._make = make
        self._found: inspect.Signature | None = None
        self._return_annotation = self.empty

    def _made(self) -> inspect.Signature:
        if self._found is None:
            self._found = self._make()
        return self._found

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:  # type: ignore[override]
        return self._made().parameters

    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        return self._made().replace(**changes)


@dataclass(frozen=True, slots=True)
class Row:
    """One NumPy function on tensors.

    function: what users call: array-likes in, shim arrays (or Python objects) out.
    data: names of the parameters that take array-likes; Python floats given there are data, values
        of all other parameters are part of the call's identity.
    """

    name: str
    function: Callable[..., Any]
    kind: Kind = Kind.ARRAY
    data: frozenset[str] = frozenset()
    signature: Any = None


TABLE: dict[str, Row] = {}


def add_row(row: Row, *aliases: str) -> None:
    """Enter a row, and again under NumPy's other names for it. ValueError on a name taken."""
    for name in (row.name, *aliases):
        if name in TABLE:
            raise ValueError(f"two rows named {name!r}")
        TABLE[name] = row
