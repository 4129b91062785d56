"""NumPy's order of values on tensors: NaN last, complex by real then imaginary part."""

from __future__ import annotations

import torch

from ._apply import gather
from ._devices import on_gpu
from ._unsigned import from_order_key, order_key


def _passes(t: torch.Tensor) -> list[torch.Tensor]:
    """Keys of stable sorts, one after the other, that bring complex numbers into order."""
    real, imag = t.real, t.imag
    group = 2 * torch.isnan(real).to(torch.int8) + torch.isnan(imag).to(torch.int8)
    return [imag, real, group]


def _sortable(t: torch.Tensor) -> torch.Tensor:
    """What `torch.sort` puts in NumPy's order. On a GPU it takes a nan with a sign, which is what
    0 / 0 is there, for the least of all."""
    if t.dtype.is_floating_point and on_gpu(t):
        return torch.where(torch.isnan(t), torch.nan, t)
    return t


def _turned(t: torch.Tensor) -> torch.Tensor:
    """The order of the values turned round, NaNs still last. Twice gives the values again."""
    return -t if t.dtype.is_floating_point else ~t


def argsort(
    t: torch.Tensor, dim: int = -1, descending: bool = False, stable: bool = True
) -> torch.Tensor:
    """Indices that sort along `dim`: int64. stable: equal elements in their order."""
    if t.dtype.is_complex:
        order = None
        for key in _passes(-t if descending else t):
            key = key if order is None else key.gather(dim, order)
            step = torch.sort(_sortable(key), dim=dim, stable=True).indices
            order = step if order is None else order.gather(dim, step)
        return order
    key = _turned(order_key(t)) if descending else order_key(t)
    return torch.sort(_sortable(key), dim=dim, stable=stable).indices


def sort(t: torch.Tensor, dim: int = -1, descending: bool = False) -> torch.Tensor:
    """Values sorted along `dim`: a fresh tensor."""
    if t.dtype.is_complex:
        return gather(t, dim, argsort(t, dim, descending))
    key = _turned(order_key(t)) if descending else order_key(t)
    values = torch.sort(_sortable(key), dim=dim, stable=True).values
    return from_order_key(_turned(values) if descending else values, t.dtype)


def lexsort(keys: list[torch.Tensor], dim: int) -> torch.Tensor:
    """Indices that sort by the last key, then the one before it, and so on: int64."""
    order = None
    for key in keys:
        if order is not None:
            key = gather(key, dim, order)
        step = argsort(key, dim)
        order = step if order is None else order.gather(dim, step)
    return order


def rank_key(t: torch.Tensor) -> torch.Tensor:
    """Integers in NumPy's order of real values: equal values equal, all NaNs equal and last."""
    if not t.dtype.is_floating_point:
        return order_key(t).to(torch.int64)
    if t.dtype is torch.float64:
        raw, top = (t + 0.0).view(torch.int64), 2**63 - 1
    else:
        raw, top = (t.to(torch.float32) + 0.0).view(torch.int32).to(torch.int64), 2**31 - 1
    return torch.where(torch.isnan(t), top, torch.where(raw < 0, raw ^ top, raw))


def common_ranks(*parts: torch.Tensor) -> list[torch.Tensor]:
    """Integers that order the elements of 1-D tensors of one dtype among one another."""
    if not parts[0].dtype.is_complex:
        return [rank_key(p) for p in parts]
    everything = torch.cat(parts)
    if everything.numel() == 0:
        return [torch.zeros_like(p, dtype=torch.int64) for p in parts]
    order = argsort(everything, 0)
    ordered = everything[order]
    same = _same(ordered.real) & _same(ordered.imag)
    ranks = torch.cat([torch.zeros_like(order[:1]), torch.cumsum((~same).to(torch.int64), 0)])
    found = torch.zeros_like(order).scatter(0, order, ranks)
    return list(torch.split(found, [len(p) for p in parts]))


def _same(ordered: torch.Tensor) -> torch.Tensor:
    """Whether each element but the first equals the one before it, NaNs being equal."""
    late, early = ordered[1:], ordered[:-1]
    return (late == early) | (torch.isnan(late) & torch.isnan(early))


def starts(ordered: torch.Tensor, equal_nan: bool) -> torch.Tensor:
    """Where a new value begins in a sorted 1-D tensor: bool. NaNs are one value or each its own."""
    if len(ordered) == 0:
        return torch.zeros_like(ordered, dtype=torch.bool)
    key = ordered if ordered.dtype.is_complex else order_key(ordered)
    changed = key[1:] != key[:-1]
    if equal_nan and (ordered.dtype.is_floating_point or ordered.dtype.is_complex):
        changed = changed & ~(torch.isnan(ordered[1:]) & torch.isnan(ordered[:-1]))
    return torch.cat([torch.ones_like(changed[:1]) if len(changed) else _one(ordered), changed])


def _one(like: torch.Tensor) -> torch.Tensor:
    return torch.ones(1, dtype=torch.bool, device=like.device)


def search(sorted_: torch.Tensor, values: torch.Tensor, right: bool) -> torch.Tensor:
    """Where values of any shape go into a sorted 1-D tensor of the same dtype: int64."""
    base, found = common_ranks(sorted_, values.reshape(-1))
    return torch.searchsorted(base.contiguous(), found.contiguous(), right=right).reshape(
        values.shape
    )
