"""An index expression taken apart: what is a view, what is a gather, where its axes land."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ._dtypes import DataDependent, Weak
from ._ndarray import as_array, ndarray
from ._shapes import common_shape

_WHAT_IS_VALID = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
    "arrays are valid indices"
)
_FULL = slice(None)


def readable(t: torch.Tensor) -> bool:
    """Whether data may be looked at: a plain tensor, neither traced nor without data.

    On a device the look waits for it. An error is worth that: what is out of bounds there ends the
    whole process.
    """
    return (
        type(t) in (torch.Tensor, torch.nn.Parameter)
        and t.device.type != "meta"
        and not torch._C._functorch.is_functorch_wrapped_tensor(t)
    )


def differentiated(*tensors: torch.Tensor) -> bool:
    """Whether gradients may be asked of what is computed from tensors; of traced ones they may
    where gradients are enabled."""
    return torch.is_grad_enabled() and any(t.requires_grad or not readable(t) for t in tensors)


def has_data(t: torch.Tensor) -> bool:
    """Whether a tensor has data: it is neither on the meta device nor fake."""
    return t.device.type != "meta" and not isinstance(t, torch._subclasses.FakeTensor)


class Plan:
    """An index applied to an array as far as views go.

    view, flip: the tensor after integers, slices and new axes, and its reversed axes.
    gathers: (first axis of view, integer index or mask tensor) for what is left.
    place: where the axes of the gathered part land among the others.
    scalar: every axis was taken by an integer, and nothing else was there.
    basic: no mask was there, and no array with axes: what is stored may not be cast.
    """

    __slots__ = ("basic", "flip", "gathers", "place", "scalar", "view")

    def __init__(self, view, flip, gathers, place, scalar):
        self.view = view
        self.flip = flip
        self.gathers = gathers
        self.place = place
        self.scalar = scalar
        self.basic = all(t.dim() == 0 and t.dtype is not torch.bool for _, t in gathers)

    def rest(self) -> list[int]:
        """Axes of `view` that no gather takes."""
        taken = self.taken()
        return [d for d in range(self.view.dim()) if d not in taken]

    def taken(self) -> list[int]:
        """Axes of `view` that gathers take, in their order."""
        return [
            d
            for first, t in self.gathers
            for d in range(first, first + (t.dim() if t.dtype is torch.bool else 1))
        ]


def _array_item(value: Any) -> Any:
    """An array-like in an index: a plain int or bool, or an integer or boolean tensor."""
    if isinstance(value, (list, tuple)) and len(value) == 0:
        return torch.empty(0, dtype=torch.int64)
    a = as_array(value)
    t = a.tensor
    if t.dtype is torch.bool:
        if t.dim() == 0 and (type(value) is not ndarray or readable(t)):
            return bool(t)
        return t
    if t.dtype.is_floating_point or t.dtype.is_complex:
        raise IndexError(
            "arrays used as indices must be of integer (or boolean) type"
            if isinstance(value, (ndarray, np.ndarray)) and not a._scalar
            else _WHAT_IS_VALID
        )
    if a._scalar and type(t) is torch.Tensor and t.device.type != "meta":
        wrapped = torch._C._functorch.is_functorch_wrapped_tensor(t)
        if not wrapped and not isinstance(value, Weak):
            return int(t)
    return t.to(torch.int64)


_NUMBERS = (int, torch.SymInt)
_PLAIN = (*_NUMBERS, slice, bool)


def _item(value: Any) -> Any:
    """One part of an index as int, bool, slice, None, Ellipsis or tensor. IndexError otherwise."""
    kind = type(value)
    if kind in _PLAIN or value is None or value is Ellipsis:
        return value
    if isinstance(value, (np.bool_, bool)):
        return bool(value)
    if isinstance(value, (ndarray, np.ndarray, list, tuple, Weak)):
        return _array_item(value)
    if isinstance(value, torch.Tensor):
        raise TypeError("got a torch.Tensor as an index; use from_tensor(t)")
    try:
        return operator.index(value)
    except TypeError:
        pass
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return _array_item(list(value))
    raise IndexError(_WHAT_IS_VALID)


def _whole(value: Any) -> int | None:
    if value is None:
        return None
    if type(value) is ndarray:
        if value._t.dim():
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(value._t) if not value._t.dtype.is_floating_point else operator.index(value)
    try:
        return value if type(value) is torch.SymInt else operator.index(value)
    except TypeError:
        raise TypeError(
            "slice indices must be integers or None or have an __index__ method"
        ) from None


def span(start: Any, stop: Any, step: Any, n: Any) -> tuple[Any, int, Any]:
    """Start, step and length of a slice of an axis of n elements."""
    if torch.SymInt not in (type(start), type(stop), type(n)):
        start, stop, step = slice(start, stop, step).indices(n)
        return start, step, len(range(start, stop, step))
    step = 1 if step is None else operator.index(step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, n) if step > 0 else (-1, n - 1)
    first, end = (low, high) if step > 0 else (high, low)
    if start is not None:
        first = max(start + n, low) if start < 0 else min(start, high)
    if stop is not None:
        if stop >= 0:  # the last element counts: one guard, whatever `stop` is beyond it
            covered = stop - first if step > 0 else first - stop
            length = -(-covered // abs(step))
            if length > 0 and 0 <= first + (length - 1) * step < n:
                return first, step, length
        end = max(stop + n, low) if stop < 0 else min(stop, high)
    covered = end - first if step > 0 else first - end
    return first, step, -(-covered // abs(step)) if covered > 0 else 0


def _slice(s: slice, n: int, flipped: bool) -> tuple[slice, bool]:
    """A slice of a logical axis as a slice of memory, and whether it runs backwards."""
    if s.start is None and s.stop is None and s.step is None:
        return _FULL, flipped
    start, step, length = span(_whole(s.start), _whole(s.stop), _whole(s.step), n)
    if length == 0:
        return slice(0, 0), flipped
    last = start + (length - 1) * step
    if flipped:
        start, last, step = n - 1 - start, n - 1 - last, -step
    if step > 0:
        return slice(start, last + 1, step), False
    return slice(last, start + 1, -step), True


def _consumes(item: Any) -> int:
    if isinstance(item, torch.Tensor):
        return item.dim() if item.dtype is torch.bool else 1
    return 0 if item is None or item is Ellipsis or isinstance(item, bool) else 1


def plan(a: ndarray, index: Any) -> Plan:
    """Take an index apart. IndexError and TypeError in NumPy's words."""
    t, flipped = a._t, a._flip
    items = [_item(i) for i in index] if isinstance(index, tuple) else [_item(index)]
    ndim = t.dim()
    used = sum(map(_consumes, items))
    dots = sum(i is Ellipsis for i in items)
    if dots > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > ndim:
        if any(type(i) is int and abs(i) >= 2**63 for i in items):
            raise IndexError(_WHAT_IS_VALID)
        raise IndexError(
            f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed"
        )
    if not dots:
        items.append(Ellipsis)
    if len(items) + ndim > 62:
        _check_many(items, ndim - used)
    gathering = any(isinstance(i, (bool, torch.Tensor)) for i in items)

    key: list[Any] = []  # for torch: int, slice, None
    flip: list[int] = []
    gathers: list[tuple[int, torch.Tensor]] = []
    positions: list[int] = []  # places in `items` of the parts that count as gathered
    before = None  # view axes in front of the first gathered part
    axis = out = rest = 0
    for position, item in enumerate(items):
        kind = type(item)
        if gathering and (kind is bool or kind in _NUMBERS or isinstance(item, torch.Tensor)):
            positions.append(position)
            before = rest if before is None else before
        if kind in _NUMBERS:
            n = t.shape[axis]
            if not -n <= item < n:
                if abs(item) >= 2**63:
                    alone = ndim == 1 and type(index) is int
                    text = "cannot fit 'int' into an index-sized integer"
                    raise IndexError(text if alone else _WHAT_IS_VALID)
                raise IndexError(f"index {item} is out of bounds for axis {axis} with size {n}")
            item += n if item < 0 else 0
            key.append(n - 1 - item if axis in flipped else item)
            axis += 1
        elif kind is slice:
            part, backwards = _slice(item, t.shape[axis], axis in flipped)
            key.append(part)
            if backwards:
                flip.append(out)
            axis, out, rest = axis + 1, out + 1, rest + 1
        elif item is None:
            key.append(None)
            out, rest = out + 1, rest + 1
        elif item is Ellipsis:
            for _ in range(ndim - used):
                key.append(_FULL)
                if axis in flipped:
                    flip.append(out)
                axis, out, rest = axis + 1, out + 1, rest + 1
        elif kind is bool:
            key.append(None)
            gathers.append((out, torch.zeros(int(item), dtype=torch.int64, device=t.device)))
            out += 1
        else:
            width = _consumes(item)
            _check_array(item, t.shape, axis)
            gathers.append((out, item.to(t.device)))
            for _ in range(width):
                key.append(_FULL)
                if axis in flipped:
                    flip.append(out)
                axis, out = axis + 1, out + 1
    taken = sum(isinstance(i, torch.Tensor) and i.dim() == 0 for i in items)
    scalar = not dots and out == taken == len(gathers) and (len(items) > 1 or ndim == 0)
    together = not positions or positions[-1] - positions[0] + 1 == len(positions)
    view = _view(t, key)
    return Plan(view, tuple(flip), gathers, before if together and before else 0, scalar)


def _check_many(items: list[Any], rest: int) -> None:
    """IndexError for more axes or index arrays than NumPy has room for. rest: axes not named."""
    arrays = [i for i in items if isinstance(i, (bool, torch.Tensor))]
    whole = sum(type(i) in _NUMBERS for i in items) if arrays else 0
    count = whole + sum(i.dim() if _consumes(i) > 1 else 1 for i in arrays)
    wide = sum(i is None or type(i) is slice for i in items) + rest
    if count > 64:
        raise IndexError(
            "too many advanced (array) indices. This probably means you are indexing with too many "
            "booleans. (more than 64 found)"
        )
    if count > 63:
        raise IndexError(
            "when no subspace is given, the number of index arrays cannot be above 63, but "
            f"{count} index arrays found"
        )
    wide += max((i.dim() if isinstance(i, torch.Tensor) else 1 for i in arrays), default=0)
    if wide > 64:
        raise IndexError(
            f"number of dimensions must be within [0, 64], indexing result would have {wide}"
        )


def _view(t: torch.Tensor, key: list[Any]) -> torch.Tensor:
    """`t[key]`, of ints, slices and None; torch takes symbolic ints there as what they are now."""
    if torch.SymInt not in map(type, key):
        return t[tuple(key)]
    view = t[tuple([_FULL if type(k) is torch.SymInt else k for k in key])]
    axis = 0
    for k in key:
        if type(k) is torch.SymInt:
            view = view.select(axis, k)
        elif type(k) is not int:
            axis += 1
    return view


def _check_array(item: torch.Tensor, shape: Any, axis: int) -> None:
    if item.dtype is torch.bool:
        for k, n in enumerate(item.shape):
            if shape[axis + k] != n:
                raise IndexError(
                    f"boolean index did not match indexed array along axis {axis + k}; size of "
                    f"axis is {shape[axis + k]} but size of corresponding boolean axis is {n}"
                )
    elif readable(item) and item.numel():
        n = shape[axis]
        low, high = (int(v) for v in torch.aminmax(item))
        if low < -n or high >= n:
            flat = item.reshape(-1)
            wrong = int(flat[((flat < -n) | (flat >= n)).nonzero()[0, 0]])
            raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {n}")


def positions_of(p: Plan) -> list[torch.Tensor]:
    """Integer tensors, one for each axis in `p.taken()`, in memory order, masks made positions.

    Looks at the data of masks; DataDependent where there is none.
    """
    found = []
    for first, t in p.gathers:
        if t.dtype is torch.bool:
            if t.device.type == "meta":
                raise DataDependent("a boolean mask selects an unknown number of elements")
            parts = torch.nonzero(t, as_tuple=True) if t.dim() else _nonzero_0d(t)
        else:
            parts = (t,)
        for k, part in enumerate(parts):
            # Counted from the other end: what is out of bounds stays so.
            found.append(~part if first + k in p.flip else part)
    shapes = [tuple(i.shape) for i in found]
    try:
        common_shape(*shapes)
    except ValueError:
        told = "".join(str(s).replace(" ", "") + " " for s in shapes)
        raise IndexError(
            "shape mismatch: indexing arrays could not be broadcast together with shapes " + told
        ) from None
    return found


def _nonzero_0d(t: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.nonzero(t.reshape(1), as_tuple=True)
