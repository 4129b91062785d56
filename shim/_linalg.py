"""numpy.linalg: solving, factorizing, inverting. Computed in double precision, as NumPy does."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ._dtypes import TO_NUMPY, NotSupported
from ._matmul import conjugate
from ._ndarray import as_tensor, ndarray, scalar_tensor
from ._normalize import Array, NoValue, Operand, Raw, Static, View, function
from ._products import _exactly_into, dot_tensors, matrix_product, operands
from ._shapes import common_shape, concrete, let_numpy_raise, stand_in
from ._table import Kind
from ._unsigned import cast

LinAlgError = np.linalg.LinAlgError
_TINY = np.eye(1)
_EIG = np.linalg.eig(_TINY)
EigResult = type(_EIG)
_REAL_EIG = _EIG.eigenvalues.dtype.kind == "f"  # from 2.5 on NumPy's are always complex
EighResult = type(np.linalg.eigh(_TINY))
QRResult = type(np.linalg.qr(_TINY))
SlogdetResult = type(np.linalg.slogdet(_TINY))
SVDResult = type(np.linalg.svd(_TINY))
_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}

# dtypes and shapes


def real_of(dtype: torch.dtype) -> torch.dtype:
    return _REAL.get(dtype, dtype)


def work_dtypes(*tensors: torch.Tensor) -> tuple[torch.dtype, torch.dtype]:
    """The dtype to compute in (double precision) and the dtype of the result, by NumPy's rule.

    TypeError for float16, which numpy.linalg refuses.
    """
    single, complex_ = True, False
    for t in tensors:
        if t.dtype is torch.float16:
            np.linalg.inv(np.zeros((1, 1), np.float16))
        complex_ = complex_ or t.dtype.is_complex
        single = single and t.dtype in (torch.float32, torch.complex64)
    if complex_:
        return torch.complex128, torch.complex64 if single else torch.complex128
    return torch.float64, torch.float32 if single else torch.float64


def check_square(name: str, a: torch.Tensor, *more: Any) -> None:
    """LinAlgError, in NumPy's words, for what is no stack of square matrices."""
    if a.dim() < 2 or a.shape[-1] != a.shape[-2]:
        let_numpy_raise(getattr(np.linalg, name), stand_in(a, np.float64), *more)


def check_matrix(name: str, a: torch.Tensor) -> None:
    """LinAlgError, in NumPy's words, below two dimensions."""
    if a.dim() < 2:
        let_numpy_raise(getattr(np.linalg, name), stand_in(a, np.float64))


def _raising(says: str, call: Callable, *args: Any, **kwargs: Any) -> Any:
    """Run a torch.linalg function; its failures are NumPy's LinAlgError with NumPy's text."""
    with contextlib.suppress(torch.linalg.LinAlgError):
        return call(*args, **kwargs)
    raise LinAlgError(says)  # of which torch's is no context


def _check_finite(*tensors: torch.Tensor) -> None:
    for t in tensors:
        if not bool(torch.isfinite(t).all()):
            raise LinAlgError("Array must not contain infs or NaNs")


def _in_rows(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """By rows, as NumPy's: torch's come from LAPACK by columns, and `ravel` would be a copy."""
    return t.to(dtype).clone(memory_format=torch.contiguous_format)


# determinants and inverses


@function("linalg.det")
def det(a: Array):
    """a: [..., n, n] -> [...]. LinAlgError for matrices that are not square."""
    check_square("det", a)
    work, result = work_dtypes(a)
    return torch.linalg.det(cast(a, work)).to(result)


@function("linalg.slogdet")
def slogdet(a: Array):
    """a: [..., n, n] -> (sign, logabsdet), each [...]. LinAlgError."""
    check_square("slogdet", a)
    work, result = work_dtypes(a)
    sign, logabsdet = torch.linalg.slogdet(cast(a, work))
    # Zero is the sign of singular matrices only, where torch takes it for that of NaN too.
    sign = torch.where(logabsdet.isnan() & (sign == 0), torch.ones_like(sign), sign)
    return SlogdetResult(sign.to(result), logabsdet.to(real_of(result)))


def inverse_of(a: torch.Tensor) -> torch.Tensor:
    """The inverses of square matrices. LinAlgError: singular, or not square."""
    check_square("inv", a)
    work, result = work_dtypes(a)
    return _in_rows(_raising("Singular matrix", torch.linalg.inv, cast(a, work)), result)


@function("linalg.inv", kind=Kind.LIBRARY)
def inv(a: Array):
    """a: [..., n, n] -> [..., n, n]. LinAlgError: singular, or not square."""
    return inverse_of(a)


def _solved(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    vector = b.dim() == 1
    fits = a.dim() >= 2 and a.shape[-1] == a.shape[-2] and b.dim() >= 1
    fits = fits and b.shape[0 if vector else -2] == a.shape[-1]
    if not fits:
        let_numpy_raise(np.linalg.solve, stand_in(a, np.float64), stand_in(b, np.float64))
    work, result = work_dtypes(a, b)
    a, b = cast(a, work), cast(b, work).to(a.device)
    right = b.unsqueeze(-1) if vector else b
    try:
        lead = common_shape(a.shape[:-2], right.shape[:-2])
    except ValueError:
        let_numpy_raise(np.linalg.solve, stand_in(a, np.float64), stand_in(b, np.float64))
        raise
    a, right = a.expand(*lead, *a.shape[-2:]), right.expand(*lead, *right.shape[-2:])
    x = _raising("Singular matrix", torch.linalg.solve, a, right)
    return x.squeeze(-1).to(result) if vector else _in_rows(x, result)


@function("linalg.solve", kind=Kind.LIBRARY)
def solve(a: Array, b: Array):
    """a: [..., n, n], b: [n] or [..., n, k] -> x of a @ x = b. LinAlgError: singular."""
    return _solved(a, b)


@function("linalg.tensorsolve", kind=Kind.LIBRARY, scalar=False)
def tensorsolve(a: Array, b: Array, axes: Static = None):
    """The x of tensordot(a, x, x.ndim) == b. LinAlgError: singular, or shapes that do not fit."""
    if axes is not None:
        order = [d for d in range(a.dim()) if d not in tuple(axes)]
        a = a.permute(*order, *axes)
    shape = a.shape[-(a.dim() - b.dim()) :] if a.dim() != b.dim() else a.shape
    n = math.prod(shape)
    if a.numel() != n**2:
        let_numpy_raise(np.linalg.tensorsolve, stand_in(a, np.float64), stand_in(b, np.float64))
    return _solved(a.reshape(n, n), b.reshape(-1)).reshape(shape)


@function("linalg.tensorinv", kind=Kind.LIBRARY, scalar=False)
def tensorinv(a: Array, ind: int = 2):
    """The inverse of `a` under tensordot over its first `ind` axes. LinAlgError, ValueError."""
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    shape = a.shape[ind:] + a.shape[:ind]
    n = math.prod(a.shape[ind:])
    return inverse_of(a.reshape(n, -1)).reshape(shape)


@function("linalg.matrix_power", kind=Kind.LIBRARY, scalar=False)
def matrix_power(a: View, n: Static):
    """The n-th power of square matrices; negative powers invert. LinAlgError, TypeError.

    The first power is `a` itself.
    """
    check_square("matrix_power", a._t, 1)
    try:
        n = operator.index(n)
    except TypeError as error:
        raise TypeError("exponent must be an integer") from error
    return a if n == 1 else _matrix_power(a.tensor, n)


def _matrix_power(a: torch.Tensor, n: int) -> torch.Tensor:
    if n == 0:
        one = torch.eye(a.shape[-1], device=a.device).to(a.dtype)
        return one.expand(a.shape).clone()
    if n < 0:
        a, n = inverse_of(a), -n
    if n == 3:
        return matrix_product(matrix_product(a, a), a)
    result, power = None, a
    while True:
        if n & 1:
            result = power if result is None else matrix_product(result, power)
        n >>= 1
        if not n:
            return result
        power = matrix_product(power, power)


# factorizations


@function("linalg.cholesky", kind=Kind.LIBRARY)
def cholesky(a: Array, /, *, upper: bool = False):
    """a: [..., n, n] -> the triangular factor. LinAlgError: not positive definite."""
    check_square("cholesky", a)
    work, result = work_dtypes(a)
    says = "Matrix is not positive definite"
    return _in_rows(_raising(says, torch.linalg.cholesky, cast(a, work), upper=upper), result)


@function("linalg.qr")
def qr(a: Array, mode: str = "reduced"):
    """a: [..., m, n] -> (Q, R), or R alone for mode "r", or LAPACK's (h, tau) for "raw".

    Errors: ValueError for another mode; LinAlgError below two dimensions.
    """
    if mode not in ("reduced", "complete", "r", "raw"):
        let_numpy_raise(np.linalg.qr, _TINY, mode)
    check_matrix("qr", a)
    work, result = work_dtypes(a)
    a = cast(a, work)
    if mode == "raw":
        h, tau = torch.geqrf(a)
        return _in_rows(h, result).mT, tau.to(result)
    q, r = torch.linalg.qr(a, mode=mode)
    r = _in_rows(r, result)
    return r if mode == "r" else QRResult(_in_rows(q, result), r)


def singular_values(a: torch.Tensor, hermitian: bool = False) -> torch.Tensor:
    """The singular values, the largest first. LinAlgError where they do not converge."""
    check_matrix("svd", a)
    work, result = work_dtypes(a)
    a = cast(a, work)
    if hermitian:
        check_square("eigvalsh", a)
        says = "Eigenvalues did not converge"
        s = _raising(says, torch.linalg.eigvalsh, a).abs()
        s = torch.sort(s, -1, descending=True).values
    else:
        s = _raising("SVD did not converge", torch.linalg.svdvals, a)
    return s.to(real_of(result))


def decomposed(a: torch.Tensor, full: bool, hermitian: bool = False) -> tuple:
    """(U, S, Vh). LinAlgError where they do not converge."""
    check_matrix("svd", a)
    work, result = work_dtypes(a)
    a = cast(a, work)
    if hermitian:
        check_square("eigh", a)
        s, u = _raising("Eigenvalues did not converge", torch.linalg.eigh, a)
        order = torch.sort(s.abs(), dim=-1, stable=True).indices.flip(-1)
        s = s.gather(-1, order)
        u = u.gather(-1, order.unsqueeze(-2).expand(u.shape))
        vh = conjugate((u * torch.where(torch.signbit(s), -1.0, 1.0).to(u.dtype).unsqueeze(-2)).mT)
        s = s.abs()
    else:
        u, s, vh = _raising("SVD did not converge", torch.linalg.svd, a, full_matrices=full)
        u, vh = _in_rows(u, result), _in_rows(vh, result)
    return u.to(result), s.to(real_of(result)), vh.to(result)


@function("linalg.svd", kind=Kind.LIBRARY)
def svd(a: Array, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False):
    """a: [..., m, n] -> (U, S, Vh), or S alone. LinAlgError where it does not converge."""
    if not compute_uv:
        return singular_values(a, hermitian)
    return SVDResult(*decomposed(a, full_matrices, hermitian))


@function("linalg.svdvals", kind=Kind.LIBRARY)
def svdvals(x: Array, /):
    """x: [..., m, n] -> [..., min(m, n)]: the singular values, the largest first."""
    return singular_values(x)


def _check_uplo(uplo: str) -> str:
    if uplo.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return uplo.upper()


@function("linalg.eigh", kind=Kind.LIBRARY)
def eigh(a: Array, UPLO: str = "L"):
    """a: [..., n, n], symmetric -> (eigenvalues ascending, eigenvectors). LinAlgError."""
    uplo = _check_uplo(UPLO)
    check_square("eigh", a)
    work, result = work_dtypes(a)
    says = "Eigenvalues did not converge"
    values, vectors = _raising(says, torch.linalg.eigh, cast(a, work), UPLO=uplo)
    return EighResult(values.to(real_of(result)), _in_rows(vectors, result))


@function("linalg.eigvalsh", kind=Kind.LIBRARY)
def eigvalsh(a: Array, UPLO: str = "L"):
    """a: [..., n, n], symmetric -> [..., n]: eigenvalues ascending. LinAlgError."""
    uplo = _check_uplo(UPLO)
    check_square("eigvalsh", a)
    work, result = work_dtypes(a)
    says = "Eigenvalues did not converge"
    return _raising(says, torch.linalg.eigvalsh, cast(a, work), UPLO=uplo).to(real_of(result))


def _as_real(result: torch.dtype, values: torch.Tensor, *more: torch.Tensor) -> tuple:
    """Complex; real where NumPy's are if every eigenvalue of a real matrix is real."""
    if not result.is_complex:
        if _REAL_EIG and bool((values.imag == 0).all()):
            return tuple(_in_rows(t.real, result) for t in (values, *more))
        result = result.to_complex()
    return tuple(_in_rows(t, result) for t in (values, *more))


@function("linalg.eig", kind=Kind.LIBRARY)
def eig(a: Array):
    """a: [..., n, n] -> (eigenvalues, eigenvectors), real where NumPy's are. LinAlgError."""
    check_square("eig", a)
    _check_finite(a)
    work, result = work_dtypes(a)
    found = _raising("Eigenvalues did not converge", torch.linalg.eig, cast(a, work))
    return EigResult(*_as_real(result, *found))


@function("linalg.eigvals", kind=Kind.LIBRARY)
def eigvals(a: Array):
    """a: [..., n, n] -> [..., n]: the eigenvalues, real where NumPy's are. LinAlgError."""
    check_square("eigvals", a)
    _check_finite(a)
    work, result = work_dtypes(a)
    found = _raising("Eigenvalues did not converge", torch.linalg.eigvals, cast(a, work))
    return _as_real(result, found)[0]


# by singular values


def _tolerance(value: Any, s: torch.Tensor) -> torch.Tensor:
    t = scalar_tensor(value, s.dtype).to(s.device)
    return t.unsqueeze(-1)


@function("linalg.pinv", kind=Kind.LIBRARY)
def pinv(
    a: Array, rcond: Operand | None = None, hermitian: bool = False, *, rtol: Operand = NoValue
):
    """a: [..., m, n] -> [..., n, m]: the Moore-Penrose inverse. LinAlgError, ValueError."""
    if rcond is None:
        if rtol is NoValue:
            rcond = 1e-15
        elif rtol is None:
            rcond = max(a.shape[-2:]) * float(np.finfo(TO_NUMPY[a.dtype]).eps)
        else:
            rcond = rtol
    elif rtol is not NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if a.dim() >= 2 and a.numel() == 0:
        return torch.empty((*a.shape[:-2], a.shape[-1], a.shape[-2]), dtype=a.dtype)
    if isinstance(rcond, torch.Tensor) and rcond.dim() > a.dim() - 2:
        raise NotSupported("pinv: a tolerance with more axes than there are matrices")
    u, s, vh = decomposed(a, False, hermitian)
    large = s > _tolerance(rcond, s) * s.amax(-1, keepdim=True)
    inverted = torch.where(large, 1 / torch.where(large, s, 1), 0).to(u.dtype)
    return torch.matmul(conjugate(vh.mT), inverted.unsqueeze(-1) * conjugate(u.mT))


@function("linalg.matrix_rank", kind=Kind.LIBRARY)
def matrix_rank(
    A: Array,
    tol: Operand | None = None,
    hermitian: bool = False,
    *,
    rtol: Operand | None = None,
):
    """A: [..., m, n] -> i64[...]: the number of singular values above the tolerance."""
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    if A.dim() < 2:
        return int(not bool((A == 0).all()))
    s = singular_values(A, hermitian)
    if tol is None:
        eps = float(np.finfo(TO_NUMPY[s.dtype]).eps)
        scale = max(A.shape[-2:]) * eps if rtol is None else _tolerance(rtol, s)
        largest = s.amax(-1, keepdim=True) if s.shape[-1] else s.new_zeros((*s.shape[:-1], 1))
        limit = largest * scale
    else:
        limit = _tolerance(tol, s)
    return (s > limit).sum(-1)


@function("linalg.lstsq", kind=Kind.LIBRARY, scalar=False)
def lstsq(a: Array, b: Array, rcond: Static = None):
    """a: [m, n], b: [m] or [m, k] -> (x, residuals, rank, singular values), least squares.

    residuals is empty below full rank or for m <= n. Errors: LinAlgError.
    """
    vector = b.dim() == 1
    right = b.unsqueeze(-1) if vector else b
    if a.dim() != 2 or right.dim() != 2 or a.shape[0] != right.shape[0]:
        let_numpy_raise(np.linalg.lstsq, stand_in(a, np.float64), stand_in(b, np.float64))
    work, result = work_dtypes(a, b)
    m, n = a.shape
    rcond = np.finfo(np.float64).eps * max(m, n) if rcond is None else float(concrete(rcond))
    if not 0 < rcond < 1:  # what LAPACK takes then
        rcond = np.finfo(np.float64).eps / 2
    a, right = cast(a, work), cast(right, work)
    says = "SVD did not converge in Linear Least Squares"
    u, s, vh = _raising(says, torch.linalg.svd, a, full_matrices=False)
    large = s > rcond * (s[0] if s.shape[0] else 0)
    rank = int(large.sum())
    inverted = torch.where(large, 1 / torch.where(large, s, 1), 0).to(work)
    x = conjugate(vh.mT) @ (inverted.unsqueeze(-1) * (conjugate(u.mT) @ right))
    real = real_of(result)
    if rank == n and m > n:
        residuals = (right - a @ x).abs().square().sum(0).to(real)
    else:
        residuals = torch.empty((0,), dtype=real, device=a.device)
    x = (x.squeeze(-1) if vector else x).to(result)
    counted = ndarray(torch.tensor(rank, dtype=torch.int32), (), True)
    return ndarray(x), ndarray(residuals), counted, ndarray(s.to(real))


# chains


def _best_splits(sizes: list[int]) -> dict:
    """Where to split each chain of matrices for the fewest multiplications (dynamic programming).

    sizes: matrix i is [sizes[i], sizes[i + 1]].
    """
    n = len(sizes) - 1
    cost: dict = {(i, i): 0 for i in range(n)}
    split: dict = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return split


@function("linalg.multi_dot")
def multi_dot(arrays: Raw, *, out: Raw = None):
    """The product of several matrices, in the cheapest order; the ends may be vectors.

    Errors: ValueError for fewer than two, or shapes not aligned; LinAlgError.
    """
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(arrays) == 2:
        return _exactly_into(out, dot_tensors(*operands(*arrays)))
    chain = [as_tensor(x) for x in arrays]
    first, last = chain[0].dim(), chain[-1].dim()
    if first == 1:
        chain[0] = chain[0].unsqueeze(0)
    if last == 1:
        chain[-1] = chain[-1].unsqueeze(1)
    for t in chain:
        if t.dim() != 2:
            raise LinAlgError(f"{t.dim()}-dimensional array given. Array must be two-dimensional")
    split = _best_splits([*(t.shape[0] for t in chain), chain[-1].shape[1]])

    def multiply(i: int, j: int) -> torch.Tensor:
        if i == j:
            return chain[i]
        k = split[i, j]
        return dot_tensors(multiply(i, k), multiply(k + 1, j))

    result = multiply(0, len(chain) - 1)
    if first == 1 and last == 1:
        result = result[0, 0].clone()
    elif first == 1 or last == 1:
        result = result.reshape(-1)
    return _exactly_into(out, result)
