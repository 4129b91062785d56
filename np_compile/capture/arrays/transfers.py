"""Copies between NumPy's memory and a device's.

The driver takes what is not pinned in small pieces, with one thread, and page by page where memory
is new. Large arrays go through two pinned pieces of memory of our own: while the device copies one,
the host fills or empties the other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import torch

from np_compile.shim._ndarray import overlaps_itself

from .window import bounds_of

PIECE = 8 << 20  # bytes
LARGE = 4 << 20  # bytes of an array that is worth it
SENT = 32 << 20  # of one that goes to a device: to wake torch's threads takes longer than a copy
PINNED = 256 << 20  # most bytes of an array whose copy is pinned as a whole


class _Pinned:
    """Two pieces of pinned memory, each with an event after which it is free again."""

    def __init__(self, device: torch.device):
        make = torch.empty
        self.pieces = [make(PIECE, dtype=torch.uint8, device="cpu", pin_memory=True) for _ in "ab"]
        with torch.cuda.device(device):
            self.free = [torch.cuda.Event() for _ in "ab"]


_own = threading.local()  # of each thread: its `pinned`, by device


def _pinned(device: torch.device) -> _Pinned:
    held: dict[torch.device, _Pinned] = _own.__dict__.setdefault("pinned", {})
    if device not in held:
        held[device] = _Pinned(device)
    return held[device]


def to_device(t: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy on a device, with the strides of the original: what is a view of it and what is a copy
    follows from them."""
    whole = _is_whole(t)
    if not whole:
        moved = t.to(device, copy=True)
        if moved.stride() == t.stride() or overlaps_itself(t.shape, t.stride()):
            return moved
    made = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device)
    return copy(made, t) if whole else made.copy_(moved)


def to_host(t: torch.Tensor) -> torch.Tensor:
    """A copy in host memory; where it is large NumPy's own, which asks the system for large
    pages."""
    t = t.detach()
    if not (_is_whole(t) and t.device.type == "cuda"):
        return t.to("cpu", copy=True)
    memory = torch.from_numpy(np.empty(t.numel() * t.element_size(), np.uint8))
    return copy(memory.view(t.dtype).as_strided(t.shape, t.stride()), t)


def place_on_host(t: torch.Tensor) -> torch.Tensor:
    """Host memory for a copy of a tensor for a while, with the strides of the original. Where it
    may be, it is pinned memory, which torch keeps for the next one."""
    low, high = bounds_of(t)
    pinned = t.device.type == "cuda" and high - low <= PINNED
    if not pinned and _is_whole(t):  # NumPy asks the system for large pages
        memory = torch.from_numpy(np.empty(t.numel() * t.element_size(), np.uint8))
        return memory.view(t.dtype).as_strided(t.shape, t.stride())
    return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="cpu", pin_memory=pinned)


def lend(place: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """Copy a tensor to its place on the host, or what is there to a tensor."""
    pinned = place.is_pinned() if place.device.type == "cpu" else t.is_pinned()
    return place.copy_(t.detach()) if pinned else copy(place, t)


def give_back(to: torch.Tensor, lent: torch.Tensor) -> None:
    """Copy what was lent to the host back to where it is from, behind all that the stream has."""
    if to.device.type == "cuda" and lent.is_pinned():
        to.copy_(lent, non_blocking=True)
    else:
        copy(to, lent)


def _is_whole(t: torch.Tensor) -> bool:
    """Whether a tensor is large, and lies in memory without gaps."""
    size = t.numel() * t.element_size()
    if size < LARGE or overlaps_itself(t.shape, t.stride()):
        return False
    first, last = bounds_of(t)
    return last - first == size


def _in_pieces(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether such tensors of one shape are copied in pieces: one of them is on a device, they are
    large, and their elements lie in the same order without gaps."""
    return (
        {a.device.type, b.device.type} == {"cpu", "cuda"}
        and a.dtype == b.dtype
        and a.stride() == b.stride()
        and _is_whole(a)
        and not torch.cuda.is_current_stream_capturing()
    )


def _pieces(t: torch.Tensor) -> Iterator[torch.Tensor]:
    """The bytes of a tensor without gaps, in the order of memory."""
    flat = t.as_strided((t.numel(),), (1,))
    bytes_ = (torch.view_as_real(flat) if flat.is_complex() else flat).view(torch.uint8).flatten()
    return iter(bytes_.split(PIECE))


def copy(to: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
    """Copy a tensor into one of its shape on another device. Done when it returns, if it goes to
    the host; else all that the stream has is behind it. The tensor copied to."""
    given = given.detach().resolve_conj().resolve_neg()
    sent = to.device.type == "cuda" and given.numel() * given.element_size() < SENT
    if sent or not _in_pieces(to, given):
        return to.copy_(given)
    device = to.device if to.device.type == "cuda" else given.device
    pinned = _pinned(device)
    with torch.cuda.device(device):
        if to.device == device:
            _send(_pieces(to), _pieces(given), pinned)
        else:
            _fetch(_pieces(to), _pieces(given), pinned)
    return to


def _send(to: Iterator[torch.Tensor], given: Iterator[torch.Tensor], pinned: _Pinned) -> None:
    for k, (there, here) in enumerate(zip(to, given, strict=True)):
        piece, free = pinned.pieces[k % 2][: len(here)], pinned.free[k % 2]
        free.synchronize()
        piece.copy_(here)
        there.copy_(piece, non_blocking=True)
        free.record()


def _fetch(to: Iterator[torch.Tensor], given: Iterator[torch.Tensor], pinned: _Pinned) -> None:
    waiting: list[tuple] = []
    for k, (here, there) in enumerate(zip(to, given, strict=True)):
        piece, free = pinned.pieces[k % 2][: len(here)], pinned.free[k % 2]
        free.synchronize()
        piece.copy_(there, non_blocking=True)
        free.record()
        waiting.append((here, piece, free))
        if len(waiting) == 2:
            _take(*waiting.pop(0))
    for last in waiting:
        _take(*last)


def _take(here: torch.Tensor, piece: torch.Tensor, free: torch.cuda.Event) -> None:
    free.synchronize()
    here.copy_(piece)
