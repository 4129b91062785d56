"""Histograms of one and two variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from . import _order
from ._apply import NUMBERS, call, inexact, is_nan, readable
from ._assigned import upheld
from ._dtypes import TO_NUMPY, NotSupported, result_type, torch_dtype
from ._normalize import Array, Operand, Static, function
from ._quiet import warn
from ._unsigned import cast, order_key


def _outer(a: torch.Tensor, range_: Any) -> tuple[Any, Any]:
    """The first and last edge: Python numbers of `range`, or tensors of the data."""
    if a.dtype.is_complex:
        raise NotSupported("histogram of complex numbers")
    if range_ is not None:
        first, last = range_
        if first > last:
            raise ValueError("max must be larger than min in range parameter.")
        if not (np.isfinite(first) and np.isfinite(last)):
            raise ValueError(f"supplied range of [{first}, {last}] is not finite")
        return (first - 0.5, last + 0.5) if first == last else (first, last)
    if a.numel() == 0:
        return 0, 1
    key = a.to(torch.uint8) if a.dtype is torch.bool else a
    first, last = (t for t in _extrema(key))
    if readable(first) and inexact(first) and not bool(torch.isfinite(last - first)):
        low, high = TO_NUMPY[a.dtype].type(float(first)), TO_NUMPY[a.dtype].type(float(last))
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"autodetected range of [{low}, {high}] is not finite")
    same = order_key(first) == order_key(last)
    half = torch.where(same, 0.5, 0.0).to(torch.float64)
    if inexact(first):
        return first - half.to(first.dtype), last + half.to(last.dtype)
    return cast(first, torch.float64) - half, cast(last, torch.float64) + half


def _extrema(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    from ._reduce import reduce_engine

    return reduce_engine("minimum", a), reduce_engine("maximum", a)


def _even_edges(a: torch.Tensor, count: int, range_: Any) -> torch.Tensor:
    first, last = _outer(a, range_)
    kinds = [e.dtype if isinstance(e, torch.Tensor) else torch.float64 for e in (first, last)]
    work = result_type(*kinds, float)
    dtype = _edges_dtype(first, last, a)
    ends = [
        cast(e, work)
        if isinstance(e, torch.Tensor)
        else torch.full((), float(e), dtype=work, device=a.device)
        for e in (first, last)
    ]
    steps = torch.arange(count, dtype=work, device=a.device)
    edges = steps * ((ends[1] - ends[0]) / count) + ends[0]
    edges = cast(torch.cat([edges, ends[1][None]]), dtype)
    rising = (order_key(edges[:-1]) < order_key(edges[1:])).all()
    text = f"Too many bins for data range. Cannot create {count} finite-sized bins."
    return upheld(edges, rising, ValueError(text))


def _edges_dtype(first: Any, last: Any, a: torch.Tensor) -> torch.dtype:
    kinds = [
        e.dtype
        if isinstance(e, torch.Tensor)
        else type(e)
        if type(e) in NUMBERS
        else torch_dtype(np.asarray(e).dtype)
        for e in (first, last)
    ]
    dtype = result_type(*kinds, a.dtype)
    return dtype if dtype.is_floating_point else result_type(dtype, float)


def bin_edges(a: torch.Tensor, bins: Any, range_: Any) -> torch.Tensor:
    """The edges that `bins`, a number or an array of edges, stands for."""
    if isinstance(bins, str):
        raise NotSupported(f"histogram(bins={bins!r})")
    if not isinstance(bins, torch.Tensor) or bins.dim() == 0:
        if isinstance(bins, torch.Tensor) and not inexact(bins):
            raise NotSupported("histogram(bins=...) with a number of bins that is data")
        if not isinstance(bins, int):
            raise TypeError("`bins` must be an integer, a string, or an array")
        if bins < 1:
            raise ValueError("`bins` must be positive, when an integer")
        return _even_edges(a, int(bins), range_)
    if bins.dim() != 1:
        raise ValueError("`bins` must be 1d, when an array")
    key = order_key(bins)
    error = ValueError("`bins` must increase monotonically, when an array")
    return upheld(bins, (key[:-1] <= key[1:]).all(), error)


def _bin_of(a: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    """The bin of each element of a flat tensor, the number of bins for those outside: int64."""
    count = len(edges) - 1
    dtype = result_type(a.dtype, edges.dtype)
    base, wanted = _order.common_ranks(cast(edges, dtype), cast(a, dtype))
    at = torch.searchsorted(base, wanted.contiguous(), right=True) - 1
    at = torch.where(wanted == base[-1], count - 1, at)
    outside = (at < 0) | (at >= count) | is_nan(a)
    return torch.where(outside, count, at)


def _accumulate(where: torch.Tensor, size: int, weights: torch.Tensor | None) -> torch.Tensor:
    """Sums per bin; the last of `size` is for what lies outside."""
    if weights is None:
        weights = torch.ones_like(where)
    zeros = torch.zeros(size, dtype=weights.dtype, device=where.device)
    return zeros.index_add(0, where, weights)


def _subtractable(a: torch.Tensor) -> torch.Tensor:
    """The data flat, bools as numbers, of which NumPy warns."""
    if a.dtype is torch.bool:
        warn(f"Converting input from bool to {np.uint8} for compatibility.")
        a = a.to(torch.uint8)
    return a.reshape(-1)


def _flat_weights(a: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor | None:
    if weights is None:
        return None
    if weights.shape != a.shape:
        raise ValueError("weights should have the same shape as a.")
    return weights.reshape(-1)


@function()
def histogram_bin_edges(
    a: Array, bins: Operand = 10, range: Static = None, weights: Array | None = None
):
    """Edges of the bins that `histogram` uses: 1-D. NotSupported for names of estimators."""
    _flat_weights(a, weights)
    return bin_edges(_subtractable(a), bins, range)


@function()
def histogram(
    a: Array,
    bins: Operand = 10,
    range: Static = None,
    density: Static = None,
    weights: Array | None = None,
):
    """Counts (sums of weights, with `density` a density) in bins, and the edges of the bins.

    Each bin holds its left edge, the last one both. Errors: ValueError for ranges and edges;
    NotSupported for names of estimators.
    """
    weights = _flat_weights(a, weights)
    if weights is not None and weights.dtype == torch.bool and not np.ndim(bins) == 0:
        raise NotSupported("histogram with booleans as weights")  # nor does NumPy add them
    flat = _subtractable(a)
    edges = bin_edges(flat, bins, range)
    count = len(edges) - 1
    if count < 1:
        return torch.zeros(max(count, 0), dtype=torch.int64, device=a.device), edges
    where = _bin_of(flat, edges)
    sums = _accumulate(where, count + 1, weights)[:-1].clone()
    if density:
        width = cast(call("subtract", edges[1:], edges[:-1]), torch.float64)
        sums = sums / width / torch.sum(sums)
    return sums, edges


@function()
def histogram2d(
    x: Array,
    y: Array,
    bins: Operand = 10,
    range: Static = None,
    density: Static = None,
    weights: Array | None = None,
):
    """Counts of pairs in a grid of bins, float64, and the edges along both axes.

    bins: one number, or one array of edges, for both. NotSupported for a pair of these.
    """
    if isinstance(bins, torch.Tensor) and len(bins) in (1, 2):
        raise NotSupported("histogram2d(bins=[...]) with a pair of bins")
    if x.shape != y.shape or x.dim() != 1:
        raise ValueError("x and y must have the same length.")
    ranges = (None, None) if range is None else range
    edges = [bin_edges(t, bins, r) for t, r in zip((x, y), ranges, strict=True)]
    edges = [cast(e, result_type(e.dtype, float)) for e in edges]
    nx, ny = (len(e) - 1 for e in edges)
    ix, iy = (_bin_of(cast(t, e.dtype), e) for t, e in zip((x, y), edges, strict=True))
    inside = (ix < nx) & (iy < ny)
    where = torch.where(inside, ix * ny + iy, nx * ny)
    if weights is not None:
        weights = cast(weights, torch.float64)
    sums = _accumulate(where, nx * ny + 1, weights)[:-1].to(torch.float64).reshape(nx, ny)
    if density:
        wx, wy = (e[1:] - e[:-1] for e in edges)
        sums = sums / torch.sum(sums) / wx[:, None] / wy[None, :]
    return sums, edges[0], edges[1]
