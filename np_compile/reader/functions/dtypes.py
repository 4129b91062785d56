"""What NumPy says of dtypes alone: it is the same in each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..read import Reader
from ..values import Arr, Known, Lazy, Num, Unreadable, Value, python
from .operands import WEAK, operand_kind


def _of_dtypes(f: Callable) -> Callable:
    def apply(r: Reader, *args: Value) -> Value:
        try:
            said = f(*map(_like, args))
        except TypeError as e:
            raise Unreadable(str(e)) from None
        return python(said) if isinstance(said, bool) else Known(said)

    return apply


def _like(x: Value) -> Any:
    """A value of x's dtype: a Python number, a scalar, or an array."""
    if isinstance(x, Known):
        return x.value
    if not isinstance(x, (Num, Arr, Lazy)):
        raise Unreadable("the dtype of this")
    kind = operand_kind(x)
    if kind in WEAK and isinstance(x, Num):
        return WEAK[kind]
    return np.zeros((1,) * getattr(x, "ndim", 0), kind.rstrip("_"))


TABLE: dict[Any, Callable] = {
    f: _of_dtypes(f)
    for f in (np.result_type, np.promote_types, np.can_cast, np.issubdtype, np.iscomplexobj,
              np.isrealobj)
}  # fmt: skip
