"""Arrays made by a rule: ranges, identities, grids, diagonals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ._apply import call
from ._assigned import upheld
from ._devices import default_device
from ._dtypes import TO_NUMPY, WIDER, NotSupported, Weak, result_type, torch_dtype
from ._layout import checked_shape, constant, kind_of, new_order
from ._ndarray import as_tensor, ndarray, scalar_tensor
from ._normalize import Array, DType, Operand, Static, View, function
from ._parts import readonly_diagonal
from ._shapes import (
    concrete,
    copied,
    inverse,
    normalize_axis,
    refuse_like,
    target_device,
    viewed,
)
from ._table import Kind
from ._ufunc_math import log10, power
from ._unsigned import bits, cast, flip, from_signed, to_signed, unbits
from ._views import broadcast_all, reshaped

# ranges


def steps(n: Any, first: Any, step: Any, dtype: torch.dtype, device: Any = None) -> torch.Tensor:
    """first + step * (0, 1, ..., n - 1), each rounded once as NumPy's fill does."""
    work = WIDER.get(dtype, dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        if dtype in WIDER or not isinstance(n, int):
            t = torch.arange(n, device=device) * step + first
            return from_signed(t.to(work), dtype)
        if step == 0:
            return torch.full((n,), first, dtype=dtype, device=device)
        return torch.arange(first, first + n * step, step, dtype=torch.int64, device=device).to(
            dtype
        )
    work = torch.float32 if dtype is torch.float16 else dtype
    t = torch.arange(n, dtype=work, device=device)
    t = t if step == 1 else t * step
    if first != 0:
        t = t + first
    elif math.copysign(1, first) != math.copysign(1, step):  # which is the sign of zero times step
        t = torch.where(t == 0, first, t)
    return t.to(dtype)


def _number(value: Any) -> Any:
    if value is None or isinstance(value, (int, float, torch.SymInt, np.generic)):
        return value
    if type(value) in (ndarray, Weak):
        value = concrete(value)
        return value[()]
    return value


@function("arange", scalar=False)
def arange(
    start_or_stop: Static,
    /,
    stop: Static = None,
    step: Static = 1,
    *,
    dtype: DType = None,
    device: Static = None,
    like: Static = None,
):
    """start, start + step, ... below stop: one dimension, of the dtype NumPy gives the bounds.

    Errors: ZeroDivisionError for a step of zero; ValueError for a size beyond limits.
    """
    refuse_like(like)
    place = target_device(device)
    start, stop = _number(start_or_stop), _number(stop)
    step = 1 if step is None else _number(step)
    if stop is None:
        start, stop = 0, start
    if all(type(v) is int for v in (start, stop, step)) and step != 0:
        n = max(0, -((start - stop) // step))
        wanted = torch.int64 if dtype is None else dtype
        if wanted in (torch.int64, torch.int32, torch.float64) and max(map(abs, (start, stop))) < (
            2**31 - 1
        ):
            return ndarray(steps(n, start, step, wanted, place))
    if isinstance(stop, torch.SymInt) and start == 0 and step == 1:
        return ndarray(steps(stop, 0, 1, torch.int64 if dtype is None else dtype, place))
    asked = None if dtype is None else TO_NUMPY[dtype]
    own = torch_dtype(_arange_dtype(start, stop, step) if asked is None else asked)
    if step == 0 or not own.is_floating_point or any(isinstance(v, complex) for v in (start, stop)):
        return ndarray(constant(np.arange(start, stop, step, dtype=asked), place))
    n = max(0, math.ceil((float(stop) - float(start)) / float(step)))
    if n < 2 or n > 2**40:
        return ndarray(constant(np.arange(start, stop, step, dtype=asked), place))
    first, second = np.array([start, start + step]).astype(TO_NUMPY[own])
    delta = np.subtract(float(second), float(first))
    if own is torch.float32:
        delta = np.float32(delta)
    return ndarray(steps(n, float(first), float(delta), own, place))


def _arange_dtype(start: Any, stop: Any, step: Any) -> np.dtype:
    return np.result_type(np.int64, *(np.array(v).dtype for v in (start, stop, step)))


def spaced(
    start: Operand,
    stop: Operand,
    num: int,
    endpoint: bool,
    dtype: torch.dtype | None,
    axis: int,
) -> tuple[torch.Tensor, Any]:
    """The samples of linspace and the step between them (NaN where there is none)."""
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    for end in (start, stop):
        if type(end) is int and not -(2**63) <= end < 2**64:
            raise NotSupported(f"samples up to {end}, which NumPy holds as an object")
    inexact = result_type(kind_of(start), kind_of(stop), float)
    dtype = inexact if dtype is None else dtype
    div = num - 1 if endpoint else num
    first, last = _inexact(start, inexact), _inexact(stop, inexact)
    device = _device(start, stop)
    first, last = first.to(device), last.to(device)
    delta = last - first
    index = torch.arange(num, dtype=_real(inexact), device=device).to(inexact)
    index = index.reshape((-1,) + (1,) * delta.dim())
    step: Any = math.nan
    if div > 0:
        step = delta / div
        y = torch.where((step == 0).any(), index / div * delta, index * step)
    else:
        y = index * delta
    y = y + first
    if endpoint and num > 1:
        y = torch.cat((y[:-1], last.expand(y.shape[1:]).unsqueeze(0).to(y.dtype)))
    if axis != 0:
        y = y.movedim(0, normalize_axis(axis, y.dim(), "destination"))
    if not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool):
        y = torch.floor(y.real if y.is_complex() else y)
    return cast(y, dtype), step


def _inexact(value: Any, dtype: torch.dtype) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return cast(value, dtype)
    return scalar_tensor(value, dtype)


def _device(*operands: Any) -> torch.device | None:
    """Where the samples lie: with the first array that has dimensions, else with the first."""
    tensors = [v for v in operands if isinstance(v, torch.Tensor)]
    placed = [t for t in tensors if t.dim()] or tensors
    return placed[0].device if placed else default_device()


def _real(dtype: torch.dtype) -> torch.dtype:
    return dtype.to_real() if dtype.is_complex else dtype


@function(scalar=False)
def linspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DType = None,
    axis: int = 0,
    *,
    device: Static = None,
):
    """`num` evenly spaced samples from start to stop along a new axis; with retstep also the step.

    Errors: ValueError for a negative number of samples.
    """
    y, step = spaced(start, stop, num, endpoint, dtype, axis)
    place = target_device(device)
    result = ndarray(y if place is None else y.to(place))
    if not retstep:
        return result
    if isinstance(step, torch.Tensor):
        step = ndarray(step, (), step.dim() == 0)
    return result, step


def _logspaced(
    start: Any, stop: Any, num: int, endpoint: bool, base: Any, axis: int
) -> torch.Tensor:
    if isinstance(base, torch.Tensor) and base.dim():
        start, stop = (v if isinstance(v, torch.Tensor) else as_tensor(v) for v in (start, stop))
        place = _device(start, stop, base)
        start, stop, base = start.to(place), stop.to(place), base.to(place)
        n = max(start.dim(), stop.dim(), base.dim())
        start, stop, base = (t[(None,) * (n - t.dim()) + (...,)] for t in (start, stop, base))
        base = base.unsqueeze(axis)
    y, _ = spaced(start, stop, num, endpoint, None, axis)
    dtype = result_type(kind_of(base), y.dtype)
    base = scalar_tensor(base, dtype).to(y.device)
    return power(base, cast(y, dtype))


@function(scalar=False)
def logspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    base: Operand = 10.0,
    dtype: DType = None,
    axis: int = 0,
):
    """base ** linspace(start, stop, num): samples evenly spaced on a logarithmic scale."""
    y = _logspaced(start, stop, num, endpoint, base, axis)
    return y if dtype is None else cast(y, dtype)


@function(scalar=False)
def geomspace(
    start: Array,
    stop: Array,
    num: int = 50,
    endpoint: bool = True,
    dtype: DType = None,
    axis: int = 0,
):
    """`num` samples in geometric progression from start to stop.

    Errors: ValueError where start or stop is zero (seen where the data can be looked at).
    """
    error = ValueError("Geometric sequence cannot include zero")
    start, stop = (upheld(t, (t != 0).all(), error) for t in (start, stop))
    work = result_type(start.dtype, stop.dtype, float, torch.float64 if dtype is None else dtype)
    first, last = cast(start, work), cast(stop, work)
    turn = torch.sgn(first)
    y = _logspaced(log10(first / turn), log10(last / turn), num, endpoint, 10.0, 0)
    y = cast(y, work) * turn
    ends = first.expand(y.shape[1:]).unsqueeze(0), last.expand(y.shape[1:]).unsqueeze(0)
    if num > 1 and endpoint:
        y = torch.cat((ends[0], y[1:-1], ends[1]))
    elif num > 0:
        y = torch.cat((ends[0], y[1:]))
    if axis != 0:
        y = y.movedim(0, normalize_axis(axis, y.dim(), "destination"))
    return cast(y, work if dtype is None else dtype)


# windows


def _odd_steps(M: Any, device: Any = None) -> tuple[Any, torch.Tensor]:
    """M - 1, and M points from 1 - M on in steps of two; none, or one, for a smaller M."""
    M = _number(M)
    if not isinstance(M, (int, np.integer, torch.SymInt)):
        raise NotSupported(f"a window of {type(M).__name__}, which is no integer")
    m = M if isinstance(M, torch.SymInt) else max(int(M), 0)
    return m - 1, torch.arange(m, dtype=torch.float64, device=device) * 2 - (m - 1)


def _cosines(M: Any, mean: float, *weights: float) -> torch.Tensor:
    """A sum of cosines whose argument goes from -pi to pi, from -2 pi to 2 pi, ..."""
    span, n = _odd_steps(M, default_device())
    if span < 1:
        return torch.ones_like(n)
    y: Any = mean
    for k, weight in enumerate(weights, 1):
        y = y + weight * call("cos", k * np.pi * n / span)
    return y  # type: ignore[no-any-return]


@function(scalar=False)
def blackman(M: Static):
    """Blackman's window of M points: of two cosines."""
    return _cosines(M, 0.42, 0.5, 0.08)


@function(scalar=False)
def hamming(M: Static):
    """Hamming's window of M points: a raised cosine that ends above 0."""
    return _cosines(M, 0.54, 0.46)


@function(scalar=False)
def hanning(M: Static):
    """Von Hann's window of M points: a raised cosine."""
    return _cosines(M, 0.5, 0.5)


@function(scalar=False)
def bartlett(M: Static):
    """A triangle of M points that begins and ends with 0."""
    span, n = _odd_steps(M, default_device())
    if span < 1:
        return torch.ones_like(n)
    return torch.where(n <= 0, 1 + n / span, 1 - n / span)


@function(scalar=False)
def kaiser(M: Static, beta: Operand):
    """Kaiser's window of M points, by Bessel functions."""
    b = _inexact(beta, torch.float64)
    if b.dim() or (isinstance(beta, torch.Tensor) and beta.is_complex()):
        raise NotSupported("a Kaiser window of several numbers, or of a complex one")
    span, n = _odd_steps(M, b.device)
    if span == 0:
        return torch.ones_like(n)
    x = n / span
    return torch.special.i0(b * call("sqrt", 1 - x * x)) / torch.special.i0(b)


# identities and triangles


def offsets(n: int, m: int, device: Any = None) -> torch.Tensor:
    """i64[n, m]: column minus row."""
    return torch.arange(m, device=device) - torch.arange(n, device=device).unsqueeze(-1)


def _extent(n: Any) -> Any:
    return checked_shape((n,))[0]


@function(scalar=False)
def eye(
    N: Static,
    M: Static = None,
    k: int = 0,
    dtype: DType = float,
    order: Static = "C",
    *,
    device: Static = None,
    like: Static = None,
):
    """A matrix of zeros with ones on its k-th diagonal."""
    refuse_like(like)
    n = _extent(N)
    m = n if M is None else _extent(M)
    axes = new_order(order, 2)
    dtype = torch.float64 if dtype is None else dtype
    t = (
        offsets(n, m, target_device(device)) == k
        if axes is None
        else (offsets(m, n, target_device(device)) == -k)
    )
    t = t.to(dtype)
    return ndarray(t if axes is None else t.permute(inverse(axes)))


@function(scalar=False)
def identity(n: Static, dtype: DType = None, *, like: Static = None):
    """The square matrix with ones on its diagonal."""
    refuse_like(like)
    n = _extent(n)
    return ndarray((offsets(n, n) == 0).to(torch.float64 if dtype is None else dtype))


@function(scalar=False)
def tri(N: Static, M: Static = None, k: int = 0, dtype: DType = float, *, like: Static = None):
    """A matrix of ones at and below its k-th diagonal, zeros above."""
    refuse_like(like)
    n = _extent(N)
    m = n if M is None else _extent(M)
    return ndarray((offsets(n, m) <= k).to(torch.float64 if dtype is None else dtype))


@function(scalar=False)
def vander(x: Array, N: Static = None, increasing: bool = False):
    """x: [n] -> [n, N], the powers of each element; the highest first unless increasing."""
    if x.dim() != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    n = x.shape[0] if N is None else _extent(N)
    dtype = result_type(x.dtype, torch.int64)
    column = to_signed(cast(x, dtype)).unsqueeze(1)
    powers = torch.ones_like(column).expand(-1, min(n, 1))
    if n > 1:
        powers = torch.cat((powers, torch.cumprod(column.expand(-1, n - 1), 1)), 1)
    powers = from_signed(powers.contiguous(), dtype)
    return ndarray(powers.clone() if n < 2 else powers if increasing else flip(powers, (1,)))


# diagonals


def _with_diagonal(v: torch.Tensor, k: int) -> torch.Tensor:
    return unbits(torch.diag_embed(bits(v), k), v.dtype)


@function(scalar=False)
def diag(v: View, k: int = 0):
    """Of a vector the matrix with it on the k-th diagonal; of a matrix a read-only view of that.

    Errors: ValueError for other numbers of dimensions.
    """
    if v._t.dim() == 1:
        return ndarray(_with_diagonal(v.tensor, k))
    if v._t.dim() == 2:
        return readonly_diagonal(v, k, 0, 1)
    raise ValueError("Input must be 1- or 2-d.")


@function(scalar=False)
def diagflat(v: Array, k: int = 0):
    """The matrix with the flattened input on its k-th diagonal."""
    return ndarray(_with_diagonal(v.reshape(-1), k))


# grids


@function(scalar=False)
def meshgrid(*xi: View, copy: bool = True, sparse: bool = False, indexing: str = "xy"):
    """Coordinate matrices from coordinate vectors: a tuple, one for each.

    copy=False gives views; sparse=True leaves the other axes at extent one.
    Errors: ValueError for an indexing other than xy and ij.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    n = len(xi)
    grids = []
    for d, x in enumerate(xi):
        if indexing == "xy" and n > 1 and d < 2:
            d = 1 - d
        grids.append(reshaped(x, (1,) * d + (-1,) + (1,) * (n - d - 1)))
    if not sparse:
        grids = broadcast_all(grids)
    if copy:
        grids = [ndarray(copied(g, "C")) for g in grids]
    return tuple(grids)


def index_arrays(shape: tuple, dtype: torch.dtype) -> list[torch.Tensor]:
    """For each axis its index, with all other extents one."""
    n = len(shape)
    return [
        torch.arange(extent).to(dtype).reshape((1,) * d + (-1,) + (1,) * (n - d - 1))
        for d, extent in enumerate(shape)
    ]


def _indices(dimensions: Any, dtype: torch.dtype, sparse: bool) -> Any:
    shape = checked_shape(tuple(dimensions))
    parts = index_arrays(shape, dtype)
    if sparse:
        return tuple(map(ndarray, parts))
    if not parts:
        return ndarray(torch.empty((0,), dtype=dtype))
    return ndarray(torch.stack([p.expand(shape) for p in parts]))


@function(scalar=False)
def indices(dimensions: Static, dtype: DType = int, sparse: bool = False):
    """The indices of a grid: [n, *dimensions], or sparse a tuple of n arrays that broadcast."""
    return _indices(dimensions, torch.float64 if dtype is None else dtype, sparse)


@function(kind=Kind.DATA, scalar=False)
def fromfunction(
    function: Static, shape: Static, *, dtype: DType = float, like: Static = None, **kwargs: Static
):
    """function(i, j, ...) called once, with the index arrays of a grid of that shape."""
    refuse_like(like)
    grid = _indices(shape, torch.float64 if dtype is None else dtype, False)
    return function(*(viewed(grid, grid._t[d]) for d in range(grid._t.shape[0])), **kwargs)
