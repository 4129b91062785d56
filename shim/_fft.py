"""numpy.fft on torch.fft, with NumPy's dtypes, sizes and errors."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ._apply import call
from ._dtypes import TO_NUMPY, TO_TORCH, Weak, result_type, torch_dtype
from ._host import is_concrete
from ._ndarray import ndarray
from ._normalize import Array, Operand, Out, Static, function
from ._ranges import steps
from ._shapes import concrete, let_numpy_raise, let_numpy_warn, normalize_axis, target_device
from ._shapes import size as extent
from ._unsigned import cast

_NORMS = (None, "backward", "ortho", "forward")
_memo: dict[tuple, tuple] = {}


def _dtypes(name: str, dtype: torch.dtype) -> tuple[torch.dtype, torch.dtype]:
    """The dtype to transform in and that of the result; TypeError where NumPy has no loop."""
    found = _memo.get((name, dtype))
    if found is None:
        result = torch_dtype(getattr(np.fft, name)(np.zeros(2, TO_NUMPY[dtype])).dtype)
        double = result in (torch.float64, torch.complex128)
        if name in ("rfft", "ihfft"):
            work = torch.float64 if double else torch.float32
        else:
            work = torch.complex128 if double else torch.complex64
        found = _memo[name, dtype] = work, result
    return found


def _check_norm(name: str, norm: Any) -> None:
    if norm not in _NORMS:
        let_numpy_raise(getattr(np.fft, name), np.zeros(2), norm=norm)


def _check_points(n: int) -> None:
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")


def _one(name: str, a: torch.Tensor, n: Any, axis: int, norm: Any) -> torch.Tensor:
    """One transform along one axis."""
    if n is None:
        if not -a.dim() <= axis < a.dim():
            raise IndexError("tuple index out of range")
        n = a.shape[axis]
        if name in ("irfft", "hfft"):
            n = (n - 1) * 2
    n = extent(n)
    _check_points(n)
    _check_norm(name, norm)
    axis = normalize_axis(axis, a.dim())
    if a.dtype.is_complex and name in ("rfft", "ihfft"):
        let_numpy_raise(getattr(np.fft, name), np.zeros(2, TO_NUMPY[a.dtype]), n)
    work, result = _dtypes(name, a.dtype)
    if is_concrete(a):  # torch's last places are another library's
        given = cast(a, work).resolve_conj().resolve_neg().numpy()
        with np.errstate(all="ignore"):
            return torch.from_numpy(getattr(np.fft, name)(given, n, axis, norm)).to(result)
    if any(m == 0 for d, m in enumerate(a.shape) if d != axis):  # MKL takes none of no length
        count = n // 2 + 1 if name in ("rfft", "ihfft") else n
        shape = [count if d == axis else m for d, m in enumerate(a.shape)]
        return a.new_zeros(shape, dtype=result)
    transform: Callable = getattr(torch.fft, name)
    a = _of_length(cast(a, work), n // 2 + 1 if name in ("irfft", "hfft") else n, axis)
    return transform(a, n, axis, norm).to(result)


def _of_length(t: torch.Tensor, n: Any, axis: int) -> torch.Tensor:
    """Cut, or filled up with zeros, along an axis: torch's transforms fill up known sizes alone."""
    missing = n - t.shape[axis]
    if missing < 0:
        return t.narrow(axis, 0, n)
    if missing > 0:
        zeros = t.new_zeros([missing if d == axis else m for d, m in enumerate(t.shape)])
        return torch.cat([t, zeros], axis)
    return t


def _enter_one(name: str, says: str) -> None:
    def transform(a: Array, n: Static = None, axis: int = -1, norm: Static = None, out: Out = None):
        return _one(name, a, n, axis, norm).contiguous()  # torch's are fastest along the axis

    transform.__name__, transform.__doc__ = name, says
    function(f"fft.{name}")(transform)


for _name, _says in {
    "fft": "The discrete Fourier transform along one axis: complex.",
    "ifft": "The inverse of fft: complex.",
    "rfft": "The transform of real input, n // 2 + 1 terms. TypeError for complex input.",
    "irfft": "The inverse of rfft: real, n terms, by default 2 * (m - 1).",
    "hfft": "The transform of a signal with Hermitian symmetry: real.",
    "ihfft": "The inverse of hfft, n // 2 + 1 terms. TypeError for complex input.",
}.items():
    _enter_one(_name, _says)


# several axes


def _sizes(a: torch.Tensor, s: Any, axes: Any, real_inverse: bool) -> tuple[list, list]:
    """The extents to transform with and their axes. ValueError where their numbers differ."""
    given = s is not None
    if axes is None and given:
        warnings.warn(
            "`axes` should not be `None` if `s` is not `None` (Deprecated in NumPy 2.0). In a "
            "future version of NumPy, this will raise an error and `s[i]` will correspond to the "
            "size along the transformed axis specified by `axes[i]`. To retain current behaviour, "
            "pass a sequence [0, ..., k-1] to `axes` for an array of dimension k.",
            DeprecationWarning,
            stacklevel=5,
        )
    if axes is None:
        count = len(s) if given else a.dim()
        axes = list(range(-count, 0))
    else:
        axes = [operator.index(d) for d in axes]
    if given:
        s = list(s)
    else:
        s = [a.shape[d] if -a.dim() <= d < a.dim() else _outside(d, a.dim()) for d in axes]
    if len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    if real_inverse and not given:
        s[-1] = (a.shape[axes[-1]] - 1) * 2
    if None in s:  # deprecated from NumPy 2.0 on
        let_numpy_warn(np.fft.fftn, np.zeros(1), (None,), (0,))
    s = [
        n if n is None else a.shape[d] if n == -1 else operator.index(n)
        for n, d in zip(s, axes, strict=True)
    ]
    return s, axes


def _outside(axis: int, ndim: int) -> int:
    raise IndexError(f"index {axis} is out of bounds for axis 0 with size {ndim}")


def _many(name: str, a: torch.Tensor, s: Any, axes: Any, norm: Any) -> torch.Tensor:
    """A transform along several axes, one after the other as NumPy orders them."""
    s, axes = _sizes(a, s, axes, name == "irfft")
    if not axes and name in ("rfft", "irfft"):
        raise IndexError("list index out of range")
    pairs = list(zip(s, axes, strict=True))
    if name == "rfft":
        a = _one("rfft", a, *pairs.pop(), norm)
    last = pairs.pop() if name == "irfft" else None
    inner = {"rfft": "fft", "irfft": "ifft"}.get(name, name)
    for n, axis in pairs if name == "irfft" else reversed(pairs):
        a = _one(inner, a, n, axis, norm)
    if last is not None:
        return _one("irfft", a, *last, norm)
    return a if axes else ndarray(a.clone())  # NumPy's `asarray(a)`: no scalar


def _enter_many(name: str, one: str, axes: Any, says: str) -> None:
    def transform(
        a: Array, s: Static = None, axes: Static = axes, norm: Static = None, out: Out = None
    ):
        result = _many(one, a, s, axes, norm)
        return result.contiguous() if isinstance(result, torch.Tensor) else result

    transform.__name__, transform.__doc__ = name, says
    function(f"fft.{name}")(transform)


for _one_name, _says in {
    "fft": "The transform along several axes: complex.",
    "ifft": "The inverse transform along several axes: complex.",
    "rfft": "The transform of real input along several axes, the last one halved.",
    "irfft": "The inverse of rfft along several axes: real.",
}.items():
    _enter_many(_one_name + "n", _one_name, None, _says)
    _enter_many(_one_name + "2", _one_name, (-2, -1), _says)


# frequencies and shifts


def _check_count(n: Any) -> Any:
    if type(n) is Weak or (type(n) is ndarray and n._scalar):
        n = concrete(n)[()]
    if not isinstance(n, (int, np.integer)):
        raise ValueError("n should be an integer")
    return n


def _scaled(t: torch.Tensor, n: int, d: Any) -> torch.Tensor:
    d = d.tensor if isinstance(d, Weak) else d
    if isinstance(d, torch.Tensor) and isinstance(n, np.integer):
        d = cast(d, result_type(TO_TORCH[n.dtype], d.dtype))
    if not isinstance(d, torch.Tensor):
        return t.to(torch.float64) * (1.0 / (int(n) * d))
    return call("multiply", t, call("divide", 1.0, call("multiply", int(n), d)))


@function("fft.fftfreq", scalar=False)
def fftfreq(n: Static, d: Operand = 1.0, device: Static = None):
    """f64[n]: the frequencies of fft's terms for samples `d` apart. ValueError for odd types."""
    n = _check_count(n)
    if n is True:
        let_numpy_raise(np.fft.fftfreq, n)
    place = target_device(device)
    below = int(n) // 2
    half = int(n) - below
    parts = steps(half, 0, 1, torch.int64, place), steps(below, -below, 1, torch.int64, place)
    return _scaled(torch.cat(parts), n, d)


@function("fft.rfftfreq", scalar=False)
def rfftfreq(n: Static, d: Operand = 1.0, device: Static = None):
    """f64[n // 2 + 1]: the frequencies of rfft's terms for samples `d` apart. ValueError."""
    n = _check_count(n)
    return _scaled(steps(int(n) // 2 + 1, 0, 1, torch.int64, target_device(device)), n, d)


def _shifted(x: torch.Tensor, axes: Any, back: bool) -> torch.Tensor:
    if axes is None:
        axes = range(x.dim())
    elif isinstance(axes, (int, np.integer)):
        axes = (axes,)
    moves: dict[int, int] = {}
    for d in axes:
        if not -x.dim() <= d < x.dim():
            raise IndexError("tuple index out of range")
        n = x.shape[d]
        d = d % x.dim()
        moves[d] = moves.get(d, 0) + (-(n // 2) if back else n // 2)
    if not x.dim():
        let_numpy_raise(np.fft.fftshift, np.empty(()))
    if not moves:
        return x.clone()
    return torch.roll(x, tuple(moves.values()), tuple(moves))


@function("fft.fftshift", scalar=False)
def fftshift(x: Array, axes: Static = None):
    """A copy with the term of frequency zero in the middle of each axis."""
    return _shifted(x, axes, False)


@function("fft.ifftshift", scalar=False)
def ifftshift(x: Array, axes: Static = None):
    """A copy that undoes fftshift."""
    return _shifted(x, axes, True)
