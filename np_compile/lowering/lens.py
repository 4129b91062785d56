"""Views behind an index that is only known when the program runs.

`x[i]` with a changing `i` cannot be a view in a graph of fixed views. A `Lens` stands for it: each
read gathers from what the base holds at that time, each write scatters into the base, so later
reads of either see it, just as with a view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from np_compile import shim
from np_compile.tape.call import DynamicSlice


class Lens:
    """A part of a base array (or of another lens) that is found anew at each read and write.

    get: base array -> part. put: (base array, new part) -> None, writes into the base; by default
    the part is a view and is written through.
    """

    def __init__(
        self, base: Any, get: Callable[[Any], Any], put: Callable[[Any, Any], None] | None = None
    ):
        self.base = base
        self.get = get
        self.put = put

    def read(self) -> shim.ndarray:
        """What it shows at this moment."""
        found = self.get(settle(self.base))
        return shim.ndarray(found._t, found._flip)  # a view is no NumPy scalar

    def write(self, part: Any) -> None:
        base = settle(self.base)
        if self.put is not None:
            self.put(base, part)
        else:
            self.get(base)[...] = part
        if isinstance(self.base, Lens):
            self.base.write(base)

    @staticmethod
    def getitem(base: Any, key: Any, strides: Sequence[int] = ()) -> Lens:
        """The lens on `base[key]`, a view with these strides."""

        def get(x: shim.ndarray) -> shim.ndarray:
            return _in_order(x[_gather_key(x, key)], strides)

        def put(x: shim.ndarray, part: Any) -> None:
            places = _gather_key(x, key)
            if places is not key and isinstance(part, shim.ndarray) and part._scalar:
                # what index arrays would cast has to fit in a slice
                part = shim.ndarray(shim.assigned(part, x._t.dtype, x._t.device, single=True))
            x[places] = part

        return Lens(base, get, put)


def indexed(key: Any) -> bool:
    """Whether an index holds a number that only the program's run knows."""
    items = key if isinstance(key, tuple) else (key,)
    return any(isinstance(k, (DynamicSlice, shim.Weak)) for k in items)


def settle(value: Any) -> Any:
    """What a lens shows at this moment; other values as they are."""
    return value.read() if isinstance(value, Lens) else value


def _in_order(x: shim.ndarray, strides: Sequence[int]) -> shim.ndarray:
    """x with its axes in memory in the order of these strides: views of it, and what is computed
    of it, are then laid out as those of the view."""
    axes = [a for a in range(len(strides)) if x.shape[a] > 1]
    order = sorted(axes, key=lambda a: -strides[a])
    if order == axes:
        return x
    order += [a for a in range(x.ndim) if a not in axes]
    back = sorted(range(x.ndim), key=order.__getitem__)
    return shim.ndarray(x._t.permute(order).contiguous().permute(back), x._flip)


def _gather_key(x: shim.ndarray, key: Any) -> Any:
    """An index with its changing parts as integer arrays, placed as the plain index would be.

    All changing parts, plain integers, lists and plain slices become index arrays that broadcast
    against each other as an open mesh; see `_mesh`.
    """
    items = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(k, DynamicSlice) for k in items):
        return key
    return _mesh(x, items)


def _mesh(x: shim.ndarray, items: tuple) -> tuple:
    """Every axis as an index array of an open mesh: shapes then come out as with slices.

    Lists have one axis together, which stands where the first of them and of the integers does, or
    before all others if something lies between these.
    """
    used = sum(1 for k in items if k is not None and k is not Ellipsis)
    full: list[Any] = []
    for k in items:
        if k is Ellipsis:
            full += [slice(None)] * (x.ndim - used)
        else:
            full.append(k)
    full += [slice(None)] * (x.ndim - sum(1 for k in full if k is not None))
    places = [n for n, k in enumerate(full) if not isinstance(k, (slice, DynamicSlice, type(None)))]
    out_rank = len(full) - len(places)
    listed = -1  # the axis of the lists
    if any(isinstance(k, list) for k in full):
        listed = places[0] if places[-1] - places[0] < len(places) else 0
        out_rank += 1
    parts: list[Any] = []
    axis = position = 0
    device = x._t.device
    for k in full:
        position += position == listed
        if k is None:
            position += 1
            continue
        extent = x.shape[axis]
        axis += 1
        shape = [1] * out_rank
        if isinstance(k, (slice, DynamicSlice)):
            if isinstance(k, slice):
                index = torch.arange(*k.indices(extent), device=device)
            else:
                index = k.start.tensor + torch.arange(k.length, device=device) * k.step
            shape[position] = index.shape[0]
            position += 1
        elif isinstance(k, list):
            index = shim.as_array(k)._t if k else torch.empty(0, dtype=torch.int64)
            shape[listed] = len(k)
        else:
            weak = isinstance(k, shim.Weak)
            index = k.tensor if weak else torch.full((), k, dtype=torch.int64, device=device)
            shape = []
        parts.append(shim.ndarray(index.reshape(shape)))
    return tuple(parts)
