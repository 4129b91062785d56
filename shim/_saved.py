"""What autograd saves while NumPy code of tensors runs, and what that code writes to.

NumPy writes to memory that autograd may have saved, for a gradient. A `Saved` stands for a tensor
that is saved; before its memory is written to it gets a copy. So a row that is written in each step
of a loop costs the row, and what is never written to costs nothing.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch._C import _autograd


class Saved:
    """A tensor that autograd has saved. version: of its memory; -1 where that is its own."""

    __slots__ = ("__weakref__", "tensor", "version")

    def __init__(self, t: torch.Tensor):
        self.tensor = t.detach()  # a result would hold the node that holds it
        self.version = t._version
        _local.fresh.append(weakref.ref(self))

    def get(self) -> torch.Tensor:
        """The tensor, in a backward pass. RuntimeError where others have written to it."""
        t = self.tensor
        if self.version not in (-1, t._version):
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: [{t.type()} {list(t.shape)}] is at version {t._version}; "
                f"expected version {self.version} instead."
            )
        return t


class _Local(threading.local):
    followed = False  # whether what is saved here is known
    hooked = False  # whether that is so at present
    fresh: list[weakref.ref[Saved]]  # what was saved since the last write
    places: dict[int, list[weakref.ref[Saved]]]  # and before: by the memory it lies in


_local = _Local()


def follow(now: bool = True) -> None:
    """Know of what is saved from now on, or within `hooks` alone, to the end of the block of
    `following`. Not where torch has no hooks for that, as in `torch.func`, nor where others have
    some."""
    if _local.hooked or _others():
        return
    if not _local.followed:
        _local.followed = True
        _local.fresh, _local.places = [], {}
    _hook(now)


def _end() -> None:
    if _local.followed:
        _local.followed = False
        del _local.fresh, _local.places


def _others() -> bool:
    """Whether there can be no hooks, or others are there."""
    return (
        not _autograd._saved_tensors_hooks_is_enabled()
        or _autograd._top_saved_tensors_default_hooks(True) is not None
    )


def _hook(on: bool) -> None:
    if on is not _local.hooked:
        _local.hooked = on
        if on:
            _autograd._push_saved_tensors_default_hooks(Saved, Saved.get)
        else:
            _autograd._pop_saved_tensors_default_hooks()


@contextmanager
def following(begins: bool = True, now: bool = True) -> Iterator[None]:
    """Within the block, know of what is saved in it, from its beginning, or from a `follow` on."""
    before = _local.followed, _local.hooked
    if begins:
        follow(now)
    try:
        yield
    finally:
        _hook(before[1])
        if not before[0]:
            _end()


@contextmanager
def hooks(on: bool) -> Iterator[None]:
    """Within the block, what is saved is known, if it is in what is around it; or it is torch's, as
    where a graph is traced."""
    before = _local.hooked
    if _local.followed and not (on and not before and _others()):
        _hook(on)
    try:
        yield
    finally:
        _hook(before)


def is_followed() -> bool:
    """Whether what autograd saves is known."""
    return _local.followed


def part(memory: torch.Tensor) -> None:
    """Give what is saved of a tensor's memory memory of its own."""
    fresh, places = _local.fresh, _local.places
    for ref in fresh:
        saved = ref()
        if saved is not None:
            places.setdefault(saved.tensor.untyped_storage()._cdata, []).append(ref)
    fresh.clear()
    found = places.pop(memory.untyped_storage()._cdata, None)
    if found is None:
        return
    copies: dict[tuple, torch.Tensor] = {}
    for ref in found:
        saved = ref()
        if saved is None or saved.version != saved.tensor._version:
            continue
        t = saved.tensor
        key = t.dtype, t.storage_offset(), t.shape, t.stride(), t.is_conj(), t.is_neg()
        if key not in copies:
            copies[key] = t.clone()
        saved.tensor, saved.version = copies[key], -1
