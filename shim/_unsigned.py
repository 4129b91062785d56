"""uint16, uint32 and uint64: torch stores them, and computes with their neighbours.

Two roads. Moving values about (flip, gather, where) reads the same bits as a signed type of
the same width: `bits`. Computing takes a type that holds every value (int32, int64), and for
uint64 the int64 of the same bits: `to_signed`. On those bits sums and products are already right;
order, division, right shifts and powers of two need the functions at the end of this file.
"""

from __future__ import annotations

import torch

from ._dtypes import WIDER

_SAME_WIDTH = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
_TOP = -(2**63)


def bits(t: torch.Tensor) -> torch.Tensor:
    """The same memory as signed integers of the same width; other dtypes as they are."""
    signed = _SAME_WIDTH.get(t.dtype)
    return t if signed is None else t.view(signed)


def unbits(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Back from `bits`. (`t.view(t.dtype)` is no way to leave others alone: it drops gradients.)"""
    return t if t.dtype is dtype else t.view(dtype)


def to_signed(t: torch.Tensor) -> torch.Tensor:
    """uint16 -> int32, uint32 -> int64 by value, uint64 -> int64 by bits; others as they are."""
    if t.dtype is torch.uint64:
        return t.view(torch.int64)
    wider = WIDER.get(t.dtype)
    return t if wider is None else t.to(wider)


def from_signed(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Back from `to_signed`, modulo 2**width: int64 bits -> uint64, ints -> uint16, uint32."""
    if t.dtype is dtype:
        return t
    if dtype is torch.uint64 and t.dtype is torch.int64:
        return t.view(torch.uint64)
    return t.to(dtype)


def order_key(t: torch.Tensor) -> torch.Tensor:
    """Signed integers in the order of the values: what sort, max and comparisons may work on."""
    if t.dtype is torch.uint64:
        return t.view(torch.int64) ^ _TOP
    return to_signed(t)


def from_order_key(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Back from `order_key`."""
    return (t ^ _TOP).view(torch.uint64) if dtype is torch.uint64 else from_signed(t, dtype)


def flip(t: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    """torch.flip for every dtype: a copy."""
    if t.dtype in _SAME_WIDTH:
        return torch.flip(bits(t), axes).view(t.dtype)
    return torch.flip(t, axes)


def choose_by(mask: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """torch.where for two tensors of one dtype, whatever it is."""
    return unbits(torch.where(mask, bits(a), bits(b)), a.dtype)


def cast(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """NumPy's astype without its copy: the same tensor where the dtype is already there.

    Complex to real drops the imaginary part, complex to bool tests both.
    """
    if t.dtype is dtype:
        return t
    if t.dtype.is_complex and not dtype.is_complex:
        if dtype is torch.bool:
            return t != 0
        t = t.real
    if t.dtype.is_floating_point and not (dtype.is_floating_point or dtype.is_complex):
        if dtype in (torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32):
            t = _whole(t, torch.int32)  # C converts through int, so that -1.0 wraps round
        elif dtype in (torch.uint32, torch.int64):
            t = _whole(t, torch.int64)
    if dtype is torch.float16 and t.dtype is torch.float64:
        t = _to_odd(t)
    return t.to(dtype)


def _whole(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Floats as int32 or int64: the least one for what these cannot hold. A GPU takes the nearest
    one for that, where x86 takes the least."""
    if not t.is_cuda:
        return t.to(dtype)
    low = torch.iinfo(dtype).min
    wide = t.to(torch.float64)
    inside = (wide > low - 1.0) & (wide < -float(low))
    return torch.where(inside, torch.where(inside, t, 0).to(dtype), low)


def _to_odd(t: torch.Tensor) -> torch.Tensor:
    """float64 values that float32 has, for a cast to float16: torch casts through float32, and
    what is rounded twice may come out elsewhere. Of the two neighbours of a value in float32 the
    odd one never lies in the middle between two of float16."""
    near = t.to(torch.float32)
    back = near.to(torch.float64)
    inside = near.view(torch.int32) - (torch.abs(back) > torch.abs(t)).to(torch.int32)
    odd = (inside | 1).view(torch.float32).to(torch.float64)
    kept = (back == t) | ~torch.isfinite(near)
    return torch.where(kept, t, t + (odd - t).detach())


# uint64 on int64 bits


def less(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a < b of uint64, both given as int64 bits."""
    return (a ^ _TOP) < (b ^ _TOP)


def divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a // b of uint64, as int64 bits; 0 where b is 0. (Hacker's Delight, 9-3.)"""
    safe = torch.where(b <= 0, 1, b)
    half = ((a >> 1) & ~_TOP) // safe << 1
    half = half + torch.where(less(a - half * safe, safe), 0, 1)
    large = torch.where(less(a, b), 0, 1)  # b >= 2**63 goes once or never
    return torch.where(b == 0, 0, torch.where(b < 0, large, half))


def remainder(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a % b of uint64, as int64 bits; 0 where b is 0."""
    return torch.where(b == 0, 0, a - divide(a, b) * b)


def gcd(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """gcd of uint64, as int64 bits: two steps of Euclid bring both below 2**63."""
    swap = less(a, b)
    large, small = torch.where(swap, b, a), torch.where(swap, a, b)
    rest = torch.where(small == 0, large, remainder(large, small))
    # rest < 2**63 unless small == 0, where rest is the answer
    done = (rest == 0) | (small == 0)
    inner = torch.where(done, 1, rest)
    found = torch.gcd(inner, remainder(small, inner))
    return torch.where(small == 0, large, torch.where(rest == 0, small, found))


def shift_right(a: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """a >> n of uint64, as int64 bits; 0 for n >= 64."""
    inside = (n >= 0) & (n < 64)
    logical = torch.where(
        n == 0, a, ((a >> 1) & ~_TOP) >> torch.where(inside, n - 1, 0).clamp(min=0)
    )
    return torch.where(inside, logical, 0)


def popcount(t: torch.Tensor) -> torch.Tensor:
    """Bits set in each int64, as int64."""
    m1, m2, m4 = 0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F
    t = t - ((t >> 1) & m1)
    t = (t & m2) + ((t >> 2) & m2)
    t = (t + (t >> 4)) & m4
    t = t + (t >> 8)
    t = t + (t >> 16)
    return (t + (t >> 32)) & 0x7F
