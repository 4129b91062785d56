"""numpy.testing, whose comparisons take shim arrays: they are NumPy's, on NumPy's arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as _np

from ._handed import Handed as _Handed
from ._ndarray import ndarray as _ndarray
from ._ndarray import to_numpy as _to_numpy

_COMPARING = (
    *("assert_equal", "assert_almost_equal", "assert_approx_equal", "assert_array_equal"),
    *("assert_array_almost_equal", "assert_array_less", "assert_allclose"),
    *("assert_array_almost_equal_nulp", "assert_array_max_ulp"),
)


def _numpy_of(value: Any) -> Any:
    """The same value with NumPy arrays and scalars in the place of shim arrays."""
    if type(value) is _ndarray:
        return _to_numpy(value)
    if isinstance(value, _Handed):
        return value.__np_own__()
    if type(value) in (list, tuple):
        return type(value)(map(_numpy_of, value))
    if type(value) is dict:
        return {k: _numpy_of(v) for k, v in value.items()}
    return value


def _comparison(compare: Callable) -> Callable:
    @functools.wraps(compare)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return compare(*map(_numpy_of, args), **kwargs)

    return call


globals().update({name: _comparison(getattr(_np.testing, name)) for name in _COMPARING})


def __getattr__(name: str) -> Any:
    return getattr(_np.testing, name)
