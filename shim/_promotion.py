"""Questions about dtypes, answered by NumPy's own rules on shim arrays."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ._dtypes import Weak
from ._ndarray import ndarray, to_numpy
from ._table import Kind, Row, add_row


def _dtype_of(value: Any) -> Any:
    if type(value) is ndarray:
        return value.dtype
    return value.kind(0) if isinstance(value, Weak) else value


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """NumPy's promotion of arrays, dtypes and Python numbers: a dtype."""
    return np.result_type(*map(_dtype_of, arrays_and_dtypes))


def promote_types(type1: Any, type2: Any, /) -> np.dtype:
    """The smallest dtype that both cast to safely: a dtype; TypeError when there is none."""
    return np.promote_types(type1, type2)


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether the cast is allowed under the rule. TypeError for a Python number."""
    return np.can_cast(_dtype_of(from_), to, casting)


def min_scalar_type(a: Any, /) -> np.dtype:
    """The smallest dtype that holds a scalar's value; an array's own dtype. Looks at scalars."""
    if type(a) is ndarray:
        return np.min_scalar_type(to_numpy(a)) if a.ndim == 0 else a.dtype
    return np.min_scalar_type(a)


for _function, _kind in (
    (result_type, Kind.QUERY),
    (promote_types, Kind.QUERY),
    (can_cast, Kind.QUERY),
    (min_scalar_type, Kind.DATA),
):
    add_row(Row(_function.__name__, _function, _kind, frozenset(), inspect.signature(_function)))
