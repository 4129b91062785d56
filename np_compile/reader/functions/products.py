"""Products of vectors and matrices: as loops, or by NumPy's BLAS where they are large."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .. import outside
from ..folding import dot
from ..nest import note_work, solid
from ..numbers import rep_of
from ..read import Reader
from ..values import FLOATS, PARTS, Arr, Lazy, Num

# Products of two numbers from which a call of NumPy's takes less time than loops do.
_BY_BLAS, _COMPLEX_BY_BLAS = 1 << 13, 1 << 11
_VECTOR = 4  # times as many where one is a vector, of which loops read each element once too


def product_of(r: Reader, a: Arr | Lazy, b: Arr | Lazy) -> Num | Arr:
    """`a @ b` of vectors and matrices."""
    if not _is_large(r, a, b):
        return dot(r, a, b)
    note_work(r, _extents(a, b))
    made = outside.call(r, np.matmul, [solid(r, a), solid(r, b)], {})
    assert isinstance(made, Arr)
    return replace(made, dims=(*a.dims[:-1], *b.dims[1:]))


def _extents(a: Arr | Lazy, b: Arr | Lazy) -> list[Num]:
    """Those of the loops of a product."""
    return [*a.dims, *b.dims[1:]]


def _is_large(r: Reader, a: Arr | Lazy, b: Arr | Lazy) -> bool:
    """Whether it is a product with a matrix that is large in this call, which may be made by NumPy
    here: where that raises, the statement is left."""
    if sorted((a.ndim, b.ndim)) not in ([2, 2], [1, 2]) or r.site is None or r.site.changed:
        return False
    rep = rep_of(np.result_type(a.dtype, b.dtype))
    if rep not in FLOATS and rep not in PARTS:
        return False
    least = _COMPLEX_BY_BLAS if rep in PARTS else _BY_BLAS
    least *= 1 if a.ndim == b.ndim else _VECTOR
    return math.prod(r.entry.at(d.lin) for d in _extents(a, b)) >= least
