"""Products of vectors and matrices: as loops, or by NumPy's BLAS where they are large."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .. import outside
from ..nest import dot, note_work, solid
from ..numbers import rep_of
from ..read import Reader
from ..values import FLOATS, PARTS, Arr, Lazy, Num

# Products of two numbers from which a call of NumPy's takes less time than loops do.
_BY_BLAS, _COMPLEX_BY_BLAS = 1 << 13, 1 << 11


def product_of(r: Reader, a: Arr | Lazy, b: Arr | Lazy) -> Num | Arr:
    """`a @ b` of vectors and matrices."""
    if not _is_large(r, a, b):
        return dot(r, a, b)
    note_work(r, [*a.dims, b.dims[-1]])
    made = outside.call(r, np.matmul, [solid(r, a), solid(r, b)], {})
    assert isinstance(made, Arr)
    return replace(made, dims=(a.dims[0], b.dims[1]))


def _is_large(r: Reader, a: Arr | Lazy, b: Arr | Lazy) -> bool:
    """Whether it is a product of matrices that are large in this call, which may be made by NumPy
    here: where that raises, the statement is left."""
    if a.ndim != 2 or b.ndim != 2 or r.site is None or r.site.changed:
        return False
    rep = rep_of(np.result_type(a.dtype, b.dtype))
    if rep not in FLOATS and rep not in PARTS:
        return False
    least = _COMPLEX_BY_BLAS if rep in PARTS else _BY_BLAS
    return math.prod(r.entry.at(d.lin) for d in (*a.dims, b.dims[1])) >= least
