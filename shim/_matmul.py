"""Products of matrices for every dtype, exact for integers on every device."""

from __future__ import annotations

import math

import torch

from ._shapes import common_shape
from ._unsigned import from_signed, to_signed

_LIMB = 16
_WIDTH = {
    torch.int8: 1,
    torch.uint8: 1,
    torch.int16: 1,
    torch.int32: 2,
    torch.int64: 4,
}


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """torch.matmul for tensors of one dtype, any that NumPy has, with wrap-around for integers."""
    dtype = a.dtype
    if dtype is torch.bool:
        return _multiplied(a.to(torch.float32), b.to(torch.float32)) != 0
    if dtype.is_floating_point or dtype.is_complex:
        return _multiplied(a, b)
    a, b = to_signed(a), to_signed(b)
    product = _by_limbs(a, b) if a.device.type == "cuda" else _multiplied(a, b)
    return from_signed(product, dtype)


def _multiplied(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """torch.matmul, in which torch before 2.13 takes symbolic sizes of stacks for numbers."""
    if a.dim() < 3 or b.dim() < 3:
        return torch.matmul(a, b)
    if a.dim() == b.dim() == 3 and a.shape[0] == b.shape[0]:
        return torch.bmm(a, b)
    lead = common_shape(a.shape[:-2], b.shape[:-2])
    count = math.prod(lead)
    rows, inner, columns = *a.shape[-2:], b.shape[-1]
    left = a.expand(*lead, rows, inner).reshape(count, rows, inner)
    right = b.expand(*lead, inner, columns).reshape(count, inner, columns)
    return torch.bmm(left, right).reshape(*lead, rows, columns)


def _by_limbs(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """An integer product by float64 products of 16-bit limbs, each exact up to 2**21 terms."""
    count = _WIDTH[a.dtype]
    left, right = _limbs(a, count), _limbs(b, count)
    total = None
    for i in range(count):
        for j in range(count - i):
            part = _multiplied(left[i], right[j]).to(torch.int64) << (_LIMB * (i + j))
            total = part if total is None else total + part
    return total.to(a.dtype)


def _limbs(t: torch.Tensor, count: int) -> list[torch.Tensor]:
    wide = t.to(torch.int64)
    mask = (1 << _LIMB) - 1
    return [((wide >> (_LIMB * i)) & mask).to(torch.float64) for i in range(count)]


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Elementwise a * b of one dtype."""
    if a.dtype is torch.bool:
        return a & b
    return from_signed(to_signed(a) * to_signed(b), a.dtype)


def conjugate(t: torch.Tensor) -> torch.Tensor:
    """The complex conjugate, materialized; other dtypes as they are."""
    return torch.conj_physical(t) if t.dtype.is_complex else t


def summed(t: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    """The sum over axes in the dtype itself: wrap-around for integers, `any` for bool."""
    if not axes:
        return t
    if t.dtype is torch.bool:
        return torch.sum(t, axes) != 0
    wide = to_signed(t)
    return from_signed(torch.sum(wide, axes, dtype=wide.dtype), t.dtype)
