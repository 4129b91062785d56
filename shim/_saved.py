"""What autograd saves while NumPy code of tensors runs, and what that code writes to.

NumPy writes to memory that autograd may have saved, for a gradient. A `Saved` stands for a tensor
that is saved; before its memory is written to it gets a copy. So a row that is written in each step
of a loop costs the row, and what is never written to costs nothing.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable

import torch
from torch._C import _autograd


class Saved:
    """A tensor that autograd has saved. version: of its memory; -1 where that is its own."""

    __slots__ = ("__weakref__", "tensor", "version")

    def __init__(self, t: torch.Tensor):
        self.tensor = t.detach()  # a result would hold the node that holds it
        self.version = t._version

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


class Saves:
    """What autograd saves within `with` blocks. None is entered where torch has no hooks for that,
    as in `torch.func`, nor where others have some."""

    def __init__(self) -> None:
        self._fresh: list[weakref.ref[Saved]] = []  # since the last look
        self._places: dict[int, list[weakref.ref[Saved]]] = {}  # before, by the memory it lies in
        self._depth = 0  # of the blocks

    def __enter__(self) -> Saves:
        if _local.saves is self:
            self._depth += 1
        elif (
            _local.saves is None
            and _autograd._saved_tensors_hooks_is_enabled()
            and _autograd._top_saved_tensors_default_hooks(True) is None
        ):
            _autograd._push_saved_tensors_default_hooks(self._note, Saved.get)
            _local.saves = self
            self._depth = 1
        return self

    def __exit__(self, *_: object) -> None:
        if _local.saves is self:
            self._depth -= 1
            if self._depth == 0:
                _autograd._pop_saved_tensors_default_hooks()
                _local.saves = None

    def _note(self, t: torch.Tensor) -> Saved:
        saved = Saved(t)
        self._fresh.append(weakref.ref(saved))
        return saved

    def _sort(self) -> set[int]:
        """Look at what is new; in which memory it lies."""
        places = set()
        for ref in self._fresh:
            saved = ref()
            if saved is not None:
                place = _place(saved.tensor)
                self._places.setdefault(place, []).append(ref)
                places.add(place)
        self._fresh.clear()
        return places

    def _take(self, place: int) -> list[Saved]:
        """What is saved of some memory, as it is; it is not looked for again."""
        found = self._places.pop(place, ())
        return [s for ref in found if (s := ref()) is not None and s.version == s.tensor._version]

    def part(self, memory: torch.Tensor) -> None:
        """Give what is saved of a tensor's memory memory of its own."""
        self._sort()
        _copy(self._take(_place(memory)))

    def keep_parts(self, held: Iterable[torch.Tensor], ended: Iterable[torch.Tensor] = ()) -> None:
        """Where memory is there for what is saved alone, and that is little of it, keep that.

        It is new memory since the last look, but for that which is held by others; and what was
        held until now.
        """
        places = self._sort().difference(map(_place, held))
        for place in places.union(map(_place, ended)):
            found = self._take(place)
            parts = {_part(s.tensor): s.tensor.nbytes for s in found}
            if found and 2 * sum(parts.values()) <= found[0].tensor.untyped_storage().nbytes():
                _copy(found)


def _place(t: torch.Tensor) -> int:
    """What tells its memory from others."""
    return t.untyped_storage()._cdata


def _part(t: torch.Tensor) -> tuple:
    """Which part of its memory a tensor is."""
    return t.dtype, t.storage_offset(), t.shape, t.stride(), t.is_conj(), t.is_neg()


def _copy(found: list[Saved]) -> None:
    copies: dict[tuple, torch.Tensor] = {}
    for saved in found:
        part = _part(saved.tensor)
        if part not in copies:
            copies[part] = saved.tensor.clone()
        saved.tensor, saved.version = copies[part], -1


class _Local(threading.local):
    saves: Saves | None = None  # what notes what is saved here


_local = _Local()


def here() -> Saves:
    """What is to note what is saved by what runs here."""
    return _local.saves or Saves()


def follow() -> None:
    """Know of what is saved from now on, until `end`, if that can be."""
    if _local.saves is None:
        Saves().__enter__()


def end() -> None:
    """What is saved from now on is torch's."""
    if _local.saves is not None:
        _local.saves.__exit__()


def is_followed() -> bool:
    """Whether what autograd saves is known."""
    return _local.saves is not None


def part(memory: torch.Tensor) -> None:
    """Give what is saved of a tensor's memory memory of its own."""
    if _local.saves is not None:
        _local.saves.part(memory)
