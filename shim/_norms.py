"""numpy.linalg: norms of vectors and matrices, condition numbers."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch

from ._apply import smooth_root
from ._linalg import LinAlgError, check_matrix, check_square, real_of, singular_values, work_dtypes
from ._matmul import matmul
from ._normalize import Array, NoValue, Static, function
from ._reduce import reduce_engine
from ._shapes import normalize_axes, normalize_axis
from ._table import Kind
from ._unsigned import cast


def _inexact(x: torch.Tensor) -> torch.Tensor:
    return x if x.dtype.is_floating_point or x.dtype.is_complex else cast(x, torch.float64)


def _squares(x: torch.Tensor) -> torch.Tensor:
    return x.real.square() + x.imag.square() if x.dtype.is_complex else x.square()


def _sum(t: torch.Tensor, axis: Any, keepdims: bool = False) -> torch.Tensor:
    return reduce_engine("add", t, axis, keepdims=keepdims)


def _least() -> Any:
    """Where NumPy's maximum norms start: at 0, or in earlier versions nowhere."""
    try:
        np.linalg.norm([], np.inf)
    except ValueError:
        return NoValue
    return 0


_LEAST = _least()


def _largest(t: torch.Tensor, axis: int, keepdims: bool = False) -> torch.Tensor:
    return reduce_engine("maximum", t, axis, keepdims=keepdims, initial=_LEAST)


def _smallest(t: torch.Tensor, axis: int, keepdims: bool = False) -> torch.Tensor:
    return reduce_engine("minimum", t, axis, keepdims=keepdims)


def vector_norm_of(x: torch.Tensor, ord: Any, axis: int, keepdims: bool) -> torch.Tensor:
    """The norm along one axis, of any order."""
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    axis = normalize_axis(axis, x.dim())
    if ord is None or ord == 2:
        return smooth_root(_sum(_squares(x), axis, keepdims))
    if ord == math.inf:
        return _largest(x.abs(), axis, keepdims)
    if ord == -math.inf:
        return _smallest(x.abs(), axis, keepdims)
    if ord == 0:
        return _sum((x != 0).to(real_of(x.dtype)), axis, keepdims)
    if ord == 1:
        return _sum(x.abs(), axis, keepdims)
    if ord < 0:
        return torch.pow(_sum(torch.pow(x.abs(), ord), axis, keepdims), 1 / ord)
    return smooth_root(_sum(smooth_root(x.abs(), ord), axis, keepdims), 1 / ord)


def matrix_norm_of(x: torch.Tensor, ord: Any, rows: int, columns: int) -> torch.Tensor:
    """The norm over two axes, without them."""
    rows, columns = normalize_axis(rows, x.dim()), normalize_axis(columns, x.dim())
    if rows == columns:
        raise ValueError("Duplicate axes given.")
    if ord is None or ord in ("fro", "f"):
        return smooth_root(_sum(_squares(x), (rows, columns)))
    if ord in (2, -2, "nuc"):
        s = singular_values(x.movedim((rows, columns), (-2, -1)))
        if ord == "nuc":
            return _sum(s, -1)
        return _largest(s, -1) if ord == 2 else _smallest(s, -1)
    if ord in (1, -1):
        summed, rest = rows, columns - (columns > rows)
    elif ord in (math.inf, -math.inf):
        summed, rest = columns, rows - (rows > columns)
    else:
        raise ValueError("Invalid norm order for matrices.")
    sums = _sum(x.abs(), summed)
    return _largest(sums, rest) if ord > 0 else _smallest(sums, rest)


def _norm(x: torch.Tensor, ord: Any, axis: Any, keepdims: bool) -> torch.Tensor:
    x = _inexact(x)
    n = x.dim()
    if axis is None and (ord is None or (ord in ("f", "fro") and n == 2) or (ord == 2 and n == 1)):
        flat = x.reshape(-1)
        if flat.dtype.is_complex:
            square = matmul(flat.real, flat.real) + matmul(flat.imag, flat.imag)
        else:
            square = matmul(flat, flat)
        result = smooth_root(square)
        return result.reshape((1,) * n) if keepdims else result
    if axis is None:
        axis = tuple(range(n))
    elif not isinstance(axis, tuple):
        try:
            axis = (int(axis),)
        except Exception as error:
            raise TypeError("'axis' must be None, an integer or a tuple of integers") from error
    if len(axis) == 1:
        return vector_norm_of(x, ord, axis[0], keepdims)
    if len(axis) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    result = matrix_norm_of(x, ord, *axis)
    if keepdims:
        for d in sorted(normalize_axis(d, n) for d in axis):
            result = result.unsqueeze(d)
    return result


@function("linalg.norm")
def norm(x: Array, ord: Static = None, axis: Static = None, keepdims: bool = False):
    """The norm of a vector or matrix, or along one axis or two. ValueError for unknown orders."""
    return _norm(x, ord, axis, keepdims)


@function("linalg.vector_norm")
def vector_norm(x: Array, /, *, axis: Static = None, keepdims: bool = False, ord: Static = 2):
    """The norm of the elements along any axes (None: all)."""
    if axis is not None and not isinstance(axis, tuple):
        return _norm(x, ord, axis, keepdims)
    n = x.dim()
    axes = normalize_axes(range(n) if axis is None else axis, n)
    rest = [d for d in range(n) if d not in axes]
    flat = x.permute(*axes, *rest)
    flat = flat.reshape(math.prod(x.shape[d] for d in axes), *(x.shape[d] for d in rest))
    result = _norm(flat, ord, 0, False)
    if keepdims:
        result = result.reshape([1 if d in axes else x.shape[d] for d in range(n)])
    return result


@function("linalg.matrix_norm")
def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Static = "fro"):
    """The norm over the last two axes."""
    return _norm(x, ord, (-2, -1), keepdims)


@functools.cache
def _cond_of_nans() -> bool:
    """Whether NumPy's `cond` has an answer, no error, where singular values do not converge."""
    try:
        with np.errstate(all="ignore"):
            np.linalg.cond(np.full((2, 2), np.nan))
    except np.linalg.LinAlgError:
        return False
    return True


def _values_for_cond(x: torch.Tensor) -> torch.Tensor:
    """Singular values, NaN for matrices that are not finite where NumPy's `cond` goes on."""
    if not _cond_of_nans():
        return singular_values(x)
    x = _inexact(x)
    finite = torch.isfinite(x).all(-1).all(-1)
    s = singular_values(torch.where(finite[..., None, None], x, 0))
    return torch.where(finite[..., None], s, math.nan)


@function("linalg.cond", kind=Kind.LIBRARY)
def cond(x: Array, p: Static = None):
    """x: [..., m, n] -> [...]: the condition number; square matrices only unless p is 2, -2, None.

    Infinite for singular matrices. Errors: LinAlgError.
    """
    if x.dim() >= 2 and x.numel() == 0 and 0 in x.shape[-2:]:
        raise LinAlgError("cond is not defined on empty arrays")
    if p is None or p in (2, -2):
        check_matrix("svd", x)
        s = _values_for_cond(x)
        r = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        check_square("inv", x)
        work, result = work_dtypes(x)
        inverted, failed = torch.linalg.inv_ex(cast(x, work))
        inverted = torch.where((failed != 0)[..., None, None], math.nan, inverted)
        if p == "nuc" and _cond_of_nans():
            r = _values_for_cond(x).sum(-1) * _values_for_cond(inverted).sum(-1)
        else:
            r = _norm(x, p, (-2, -1), False) * _norm(inverted, p, (-2, -1), False)
        r = r.to(real_of(result))
    given = torch.isnan(_inexact(x)).any(-1).any(-1)
    return torch.where(torch.isnan(r) & ~given, math.inf, r)
