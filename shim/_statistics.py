"""Counts, covariance, correlation, convolution, interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from . import _order
from ._apply import call, has_data, is_nan, kind_of, need_data, operand_tensor, readable, together
from ._assigned import upheld
from ._cumulative import _join_promoted
from ._devices import on_gpu
from ._dtypes import TO_NUMPY, promotion_kind, result_type
from ._normalize import Array, DType, Operand, Static, function
from ._quiet import warn
from ._reductions import average, mean_of
from ._shapes import let_numpy_raise
from ._ufunc_math import sqrt
from ._unsigned import cast, flip, from_signed, to_signed


@function()
def bincount(x: Array, /, weights: Array | None = None, minlength: Static = 0):
    """How often each of the numbers 0, 1, ... appears: int64; or sums of weights: float64.

    On tensors without data, the result is taken to have `minlength` elements; without a minlength
    it is DataDependent.
    """
    if x.dim() != 1:
        raise ValueError(
            "object of too small depth for desired array"
            if x.dim() == 0
            else "object too deep for desired array"
        )
    if isinstance(minlength, (bool, np.bool)):
        let_numpy_raise(np.bincount, np.zeros(0, int), minlength=minlength)
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    if x.numel() and kind_of(x) in "fc":
        raise TypeError(
            f"Cannot cast array data from {TO_NUMPY[x.dtype]!r} to dtype('int64') according to "
            "the rule 'safe'"
        )
    if not (minlength and x.numel()):
        need_data(x)
    index = x.to(torch.int64)
    known = has_data(x)
    if known and index.numel() and int(index.min()) < 0:
        raise ValueError("'list' argument must have no negative elements")
    if index.numel() == 0 or (known and weights is None):
        return torch.bincount(index, minlength=minlength)
    size = max(int(index.max()) + 1, minlength) if known else minlength
    if weights is None:
        zeros = torch.zeros(size, dtype=torch.int64, device=x.device)
        return zeros.index_add(0, index, torch.ones_like(index))
    if weights.shape != index.shape:
        raise ValueError("The weights and list don't have the same length.")
    if weights.dtype.is_complex:
        raise TypeError(
            f"Cannot cast array data from {TO_NUMPY[weights.dtype]!r} to dtype('float64') "
            "according to the rule 'safe'"
        )
    zeros = torch.zeros(size, dtype=torch.float64, device=x.device)
    return zeros.index_add(0, index, cast(weights, torch.float64))


@function()
def digitize(x: Array, bins: Array, right: bool = False):
    """The number of the bin of each element, for bins that rise or fall: int64.

    Errors: ValueError for bins that do neither, TypeError for complex data.
    """
    if x.dtype.is_complex:
        raise TypeError("x may not be complex")
    if bins.dtype.is_complex:
        let_numpy_raise(np.digitize, np.zeros(0), np.zeros(0, TO_NUMPY[bins.dtype]))
    if bins.dim() != 1:
        raise ValueError(
            "object too deep for desired array"
            if bins.dim()
            else "object of too small depth for desired array"
        )
    dtype = result_type(x.dtype, bins.dtype)
    x, bins = together(cast(x, dtype), cast(bins, dtype))
    n = len(bins)
    if n == 0:
        return torch.zeros(x.shape, dtype=torch.int64, device=x.device)
    base, wanted = _order.common_ranks(bins, x.reshape(-1))
    falls, monotonic = _falls(cast(bins, torch.float64))
    error = ValueError("bins must be monotonically increasing or decreasing")
    base = upheld(base, monotonic, error)
    rising = torch.searchsorted(base, wanted, right=not right)
    falling = n - torch.searchsorted(base.flip(0).contiguous(), wanted, right=not right)
    return torch.where(falls, falling, rising).reshape(x.shape)


def _falls(bins: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Whether bins fall, by the first of them that differs from the one before; whether all the
    others go the same way."""
    before, after = bins[:-1], bins[1:]
    differs = torch.cat((bins != bins[0], torch.ones_like(bins[:1], dtype=torch.bool)))
    first = differs.to(torch.uint8).argmax()
    edges = torch.cat((bins, torch.full_like(bins[:1], torch.inf)))
    last = edges.index_select(0, first.reshape(1)).reshape(())
    falls = (first < len(bins)) & ~(bins[0] < last)
    return falls, ~torch.where(falls, before < after, before > after).any()


# covariance


def _weights_for(name: str, w: torch.Tensor, n: int) -> torch.Tensor:
    w = cast(w, torch.float64)
    if name == "fweights" and readable(w) and not bool((w == torch.round(w)).all()):
        raise TypeError("fweights must be integer")
    if w.dim() > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if w.shape[0] != n:
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    return upheld(w, ~(w < 0).any(), ValueError(f"{name} cannot be negative"))


def _rows(m: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return cast(m, dtype).reshape((1,) * (2 - m.dim()) + tuple(m.shape))


def _cov(m, y, rowvar, bias, ddof, fweights, aweights, dtype):
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    if m.dim() > 2:
        raise ValueError("m has more than 2 dimensions")
    if y is not None and y.dim() > 2:
        raise ValueError("y has more than 2 dimensions")
    if dtype is None:
        dtype = result_type(m.dtype, torch.float64, *(() if y is None else (y.dtype,)))
    x = _rows(m, dtype)
    if not rowvar and m.dim() != 1:
        x = x.T
    if x.shape[0] == 0:
        return torch.zeros((0, 0), dtype=dtype, device=m.device)
    if y is not None:
        y = _rows(y, dtype)
        if not rowvar and y.shape[0] != 1:
            y = y.T
        x = _join_promoted([x, y], 0)
    if ddof is None:
        ddof = 0 if bias else 1
    n = x.shape[1]
    weights = None
    if fweights is not None:
        weights = _weights_for("fweights", fweights, n)
    if aweights is not None:
        own = _weights_for("aweights", aweights, n)
        weights = own if weights is None else weights * own
    if weights is None:
        mean, total = mean_of(x, 1), n
        factor = total - ddof
    else:
        mean, total = average.__wrapped__(x, 1, weights, True)
        total = total[0]
        if ddof == 0:
            factor = total
        elif aweights is None:
            factor = total - ddof
        else:
            factor = total - ddof * torch.sum(weights * cast(aweights, torch.float64)) / total
    factor = _at_least_zero(factor)
    x = x - mean[:, None]
    other = x if weights is None else cast(x * weights, x.dtype)
    product = torch.matmul(x, other.T.conj())
    scale = (
        1 / factor if isinstance(factor, torch.Tensor) else (1 / factor if factor else float("inf"))
    )
    return cast(product * scale, product.dtype).squeeze()


def _at_least_zero(factor: Any) -> Any:
    if isinstance(factor, torch.Tensor):
        factor = factor.real if factor.dtype.is_complex else factor
        if readable(factor) and bool(factor <= 0):
            warn("Degrees of freedom <= 0 for slice")
        return factor.clamp(min=0)
    if factor <= 0:
        warn("Degrees of freedom <= 0 for slice")
        return 0.0
    return factor


@function(scalar=False)
def cov(
    m: Array,
    y: Array | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Static = None,
    fweights: Array | None = None,
    aweights: Array | None = None,
    *,
    dtype: DType = None,
):
    """Covariance of the rows (columns unless `rowvar`): float64 or complex128, 0-D of one row."""
    return _cov(m, y, rowvar, bias, ddof, fweights, aweights, dtype)


@function()
def corrcoef(x: Array, y: Array | None = None, rowvar: bool = True, *, dtype: DType = None):
    """Correlation coefficients of the rows (columns unless `rowvar`), within [-1, 1]."""
    c = _cov(x, y, rowvar, False, None, None, None, dtype)
    if c.dim() == 0:
        return c / c
    spread = sqrt(torch.diagonal(c).real)
    c = c / spread[:, None] / spread[None, :]
    if c.dtype.is_complex:
        return torch.complex(c.real.clamp(-1, 1), c.imag.clamp(-1, 1))
    return c.clamp(-1, 1)


# correlation and convolution


def _window(mode: Any) -> str:
    """The mode's full name; NumPy's own error for what it does not take."""
    np.correlate([1], [1], mode)
    return mode if isinstance(mode, str) else ("valid", "same", "full")[int(mode)]


def _slide(a: torch.Tensor, v: torch.Tensor, mode: str) -> torch.Tensor:
    """sum_k a[n + k] * v[k] for len(a) >= len(v), both of one dtype."""
    n, m = len(a), len(v)
    before = {"valid": 0, "same": m // 2, "full": m - 1}[mode]
    size = {"valid": n - m + 1, "same": n, "full": n + m - 1}[mode]
    after = size + m - 1 - n - before
    dtype = a.dtype
    if dtype is torch.bool:
        return _slide(a.to(torch.int64), v.to(torch.int64), mode) != 0
    if dtype is torch.float16:
        a, v = a.to(torch.float32), v.to(torch.float32)
    signed, weights = to_signed(a), to_signed(v)
    padded = torch.cat([signed.new_zeros(before), signed, signed.new_zeros(after)])
    if padded.dtype.is_floating_point or padded.dtype.is_complex:
        if on_gpu(padded):  # single precision would be rounded to TF32 there
            wide = result_type(padded.dtype, torch.float64)
            padded, weights = padded.to(wide), weights.to(wide)
        result = torch.nn.functional.conv1d(padded[None, None], weights[None, None])[0, 0]
    else:
        # whole numbers exactly, in pieces that keep the windows small in memory
        windows = padded.unfold(0, m, 1)
        step = max(1, 2**22 // m)
        pieces = [
            torch.sum(windows[i : i + step] * weights, 1, dtype=padded.dtype)
            for i in range(0, size, step)
        ]
        result = torch.cat(pieces)
    return from_signed(result, a.dtype).to(dtype)


@function()
def correlate(a: Array, v: Array, mode: Static = "valid"):
    """Cross-correlation of two 1-D arrays, sum_n a[n + k] * conj(v[n]); their common dtype."""
    mode = _window(mode)
    for t in (a, v):
        if t.dim() != 1:
            how = "too deep" if t.dim() else "of too small depth"
            raise ValueError(f"object {how} for desired array")
    if len(a) == 0:
        raise ValueError("first array argument cannot be empty")
    if len(v) == 0:
        raise ValueError("second array argument cannot be empty")
    dtype = result_type(a.dtype, v.dtype)
    a, v = together(cast(a, dtype), cast(v, dtype))
    if dtype.is_complex:
        v = torch.conj(v).resolve_conj()
    if len(a) < len(v):
        return flip(_slide(v, a, mode), (0,))
    return _slide(a, v, mode)


@function()
def convolve(a: Array, v: Array, mode: Static = "full"):
    """Convolution of two 1-D arrays, sum_n a[n] * v[k - n]; their common dtype."""
    a, v = (t.reshape(1) if t.dim() == 0 else t for t in (a, v))
    if len(v) > len(a):
        a, v = v, a
    if len(a) == 0:
        raise ValueError("a cannot be empty")
    if len(v) == 0:
        raise ValueError("v cannot be empty")
    for t in (a, v):
        if t.dim() > 1:
            raise ValueError("object too deep for desired array")
    mode = _window(mode)
    dtype = result_type(a.dtype, v.dtype)
    a, v = together(cast(a, dtype), cast(v, dtype))
    return _slide(a, flip(v, (0,)), mode)


# interpolation


def _real_points(t: torch.Tensor) -> torch.Tensor:
    if t.dtype.is_complex:
        raise TypeError(
            "Cannot cast array data from dtype('complex128') to dtype('float64') according to the "
            "rule 'safe'"
        )
    return cast(t, torch.float64)


@function()
def interp(
    x: Array,
    xp: Array,
    fp: Array,
    left: Operand | None = None,
    right: Operand | None = None,
    period: Operand | None = None,
):
    """Linear interpolation of the points (xp, fp) at `x`, xp rising: float64 or complex128.

    left, right: values outside. period: of the coordinates; then the points may be in any order.
    """
    for edge in (left, right):
        if isinstance(edge, torch.Tensor) and edge.dim():
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        if promotion_kind(0 if edge is None else edge) is complex and not fp.dtype.is_complex:
            raise TypeError("must be real number, not complex")
    if fp.dtype.is_complex:  # NumPy computes the parts apart, so that an infinite one stays alone
        sides = [
            None if v is None else cast(operand_tensor(v), torch.complex128) for v in (left, right)
        ]
        parts = [
            _interp(x, xp, part, *[None if v is None else getattr(v, name) for v in sides], period)
            for name, part in (("real", fp.real), ("imag", fp.imag))
        ]
        real, imag = parts
        # of nan there is no imaginary part; of an infinity no place in a period
        none = torch.isnan(x) if period is None else ~torch.isfinite(x)
        return torch.complex(real, torch.where(none, 0.0, imag))
    return _interp(x, xp, fp, left, right, period)


def _interp(
    x: torch.Tensor, xp: torch.Tensor, fp: torch.Tensor, left: Any, right: Any, period: Any
) -> torch.Tensor:
    dtype = torch.float64
    x, xp, fp = together(x, xp, fp)
    x, xp, fp = _real_points(x), _real_points(xp), cast(fp, dtype)
    if xp.dim() > 1 or fp.dim() > 1:
        raise ValueError("object too deep for desired array")
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, period)
        left = right = None
    if len(xp) == 0:
        raise ValueError("array of sample points is empty")
    if len(xp) != len(fp):
        raise ValueError("fp and xp are not of the same length.")
    left, right = (
        edge if given is None else cast(operand_tensor(given, x.device), dtype)
        for given, edge in ((left, fp[0]), (right, fp[-1]))
    )
    n = len(xp)
    wanted = x.reshape(-1)
    if n <= 4:  # NumPy looks through so few one by one: a NaN among them ends that
        passed = wanted.unsqueeze(1) >= xp[1:]
        found = torch.cumprod(passed, 1).sum(1) - (wanted < xp[0]).to(torch.int64)
    else:
        found = torch.searchsorted(xp.contiguous(), wanted.contiguous(), right=True) - 1
    at = found.clamp(0, n - 1)
    after = (at + 1).clamp(max=n - 1)
    x0, y0, x1, y1 = xp[at], fp[at], xp[after], fp[after]
    exact = (wanted == x0) | (found >= n - 1)
    width = torch.where(exact, torch.ones_like(x0), x1 - x0)
    slope = (y1 - y0) / width
    value = slope * (wanted - x0) + y0
    again = slope * (wanted - x1) + y1
    again = torch.where(is_nan(again) & (y0 == y1), y0, again)
    value = torch.where(is_nan(value), again, value)
    value = torch.where(exact, y0, value)
    value = torch.where(found < 0, left, value)
    value = torch.where(wanted > xp[-1], right, value)
    value = torch.where(torch.isnan(wanted), wanted.to(dtype), value)
    return value.reshape(x.shape)


def _periodic(x, xp, fp, period):
    period = cast(operand_tensor(period, x.device), torch.float64)
    error = ValueError("period must be a non-zero value")
    period = torch.abs(upheld(period, period != 0, error))
    if xp.dim() != 1 or fp.dim() != 1:
        raise ValueError("Data points must be 1-D sequences")
    if len(xp) != len(fp):
        raise ValueError("fp and xp are not of the same length")
    x, xp = call("remainder", x, period), call("remainder", xp, period)
    order = _order.argsort(xp, 0, stable=False)  # which of equal places counts is NumPy's choice
    xp, fp = xp[order], fp[order]
    xp = torch.cat([xp[-1:] - period, xp, xp[:1] + period])
    return x, xp, torch.cat([fp[-1:], fp, fp[:1]])
