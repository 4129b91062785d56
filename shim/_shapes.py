"""Shapes, axes and layouts, and NumPy's own word on what is wrong with them."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ._dtypes import DataDependent, NotSupported, Weak
from ._ndarray import ndarray, overlaps_itself, to_numpy, view_of
from ._quiet import is_quiet
from ._signals import level_beyond
from ._unsigned import bits, flip, unbits

normalize_axis = np.lib.array_utils.normalize_axis_index
normalize_axes = np.lib.array_utils.normalize_axis_tuple


def size(value: Any) -> Any:
    """One extent: a Python int, or a symbolic one as it is."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError("an integer is required")
    return value if isinstance(value, torch.SymInt) else operator.index(value)


def common_shape(*shapes: Any) -> tuple:
    """The shape to which arrays of these broadcast. ValueError in NumPy's words."""
    widest = max(shapes, key=len, default=())
    if all(not shape or shape == widest for shape in shapes):
        return tuple(widest)
    if all(type(extent) is int for shape in shapes for extent in shape):
        return np.broadcast_shapes(*shapes)
    return _symbolic_common_shape(shapes, len(widest))


def _symbolic_common_shape(shapes: tuple, ndim: int) -> tuple:
    """As `common_shape` of extents whose numbers NumPy would ask for; what torch has for it imports
    its compiler, for a second."""
    common: list[Any] = [1] * ndim
    for shape in shapes:
        for d in range(-len(shape), 0):
            if shape[d] == 1:
                continue
            if common[d] != 1 and common[d] != shape[d]:
                return np.broadcast_shapes(*(tuple(map(int, shape)) for shape in shapes))
            common[d] = shape[d] if common[d] == 1 else common[d]
    return tuple(common)


def shape_tuple(shape: Any) -> tuple:
    """A shape argument (an int, or a sequence or array of ints) as a tuple."""
    if isinstance(shape, torch.SymInt):
        return (shape,)
    if type(shape) is ndarray:
        shape = concrete(shape).tolist()
    if isinstance(shape, bool) or hasattr(shape, "__next__"):  # which an attempt would use up
        np.empty(shape, np.bool_)
    if hasattr(shape, "__index__") and not isinstance(shape, (tuple, list)):
        try:
            return (operator.index(shape),)
        except TypeError:  # an array of one dimension
            pass
    if not hasattr(shape, "__iter__"):
        np.empty(shape, np.bool_)  # NumPy's word on it
    return tuple(map(size, shape))


def concrete(value: Any) -> Any:
    """The data of an argument as a NumPy array. DataDependent where there is no data to see."""
    if isinstance(value, Weak):
        value = ndarray(value.tensor, (), True)
    if type(value) is ndarray:
        if value._t.device.type == "meta" or type(value._t) not in (
            torch.Tensor,
            torch.nn.Parameter,
        ):
            raise DataDependent("a result's shape depends on the values of an array")
        return np.asarray(to_numpy(value))
    if isinstance(value, (list, tuple)):
        return np.array([concrete(v) if type(v) in (ndarray, Weak) else v for v in value])
    return np.asarray(value)


def stand_in(t: torch.Tensor | ndarray, dtype: Any = np.bool_) -> np.ndarray:
    """A NumPy array of one byte with the shape of `t`: NumPy judges shapes by it."""
    return np.broadcast_to(np.empty((), dtype), tuple(map(int, t.shape)))


def let_numpy_raise(call: Callable, *args: Any, **kwargs: Any) -> None:
    """Run a NumPy function on stand-ins, for the error it raises."""
    with np.errstate(all="ignore"):
        call(*args, **kwargs)


def let_numpy_warn(call: Callable, *args: Any, **kwargs: Any) -> None:
    """Run a NumPy function on stand-ins: its errors, and its warnings as of who called the shim."""
    if is_quiet():
        call(*args, **kwargs)
        return
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call(*args, **kwargs)
    for warning in seen:
        warnings.warn(warning.message, stacklevel=level_beyond())


def signed_strides(a: ndarray) -> np.ndarray:
    """A NumPy array with the shape and strides of `a`, and no data: never to be read."""
    return np.lib.stride_tricks.as_strided(np.empty((1,), np.int8), a.shape, a.strides)


def is_c_contiguous(a: ndarray) -> bool:
    """Whether the elements lie in memory in the order of the last axis first."""
    return a._t.is_contiguous() and not _steps_back(a)


def is_f_contiguous(a: ndarray) -> bool:
    """Whether the elements lie in memory in the order of the first axis first."""
    t = a._t
    return t.permute(reversed_axes(t.dim())).is_contiguous() and not _steps_back(a)


def _steps_back(a: ndarray) -> bool:
    """Whether one element lies before another that comes first."""
    shape = a._t.shape
    return any(shape[d] > 1 for d in a._flip) and 0 not in shape


def reversed_axes(n: int) -> tuple[int, ...]:
    return tuple(range(n - 1, -1, -1))


def memory_order(a: ndarray, order: str | None) -> tuple[int, ...]:
    """The axes of a copy of `a` from the slowest to the fastest, for NumPy's order C, F, A or K."""
    n = a._t.dim()
    order = checked_order("K" if order is None else order)
    if order == "A":
        order = "F" if is_f_contiguous(a) and not is_c_contiguous(a) else "C"
    if order == "F":
        return reversed_axes(n)
    if order == "K" and n > 1 and not is_c_contiguous(a):
        stride = a._t.stride()
        return tuple(sorted(range(n), key=lambda d: -stride[d]))
    return tuple(range(n))


def walking_order(a: ndarray, order: str) -> tuple[int, ...]:
    """The axes from slowest to fastest as NumPy walks them: in order K broadcast axes stay."""
    if checked_order(order) == "K":
        return walked_axes([a._t.stride()], a._t.dim())
    return memory_order(a, order)


def walked_axes(strides: list[tuple[int, ...]], ndim: int) -> tuple[int, ...]:
    """The same for several operands: where they disagree on two axes, these stay."""
    fastest_first: list[int] = []
    for axis in reversed_axes(ndim):
        place = len(fastest_first)
        for k in range(len(fastest_first) - 1, -1, -1):
            pairs = [(s[fastest_first[k]], s[axis]) for s in strides]
            turned = [other > own for other, own in pairs if own and other]
            if not turned:
                continue
            if not all(turned):
                break
            place = k
        fastest_first.insert(place, axis)
    return tuple(reversed(fastest_first))


def laid_by_all(t: torch.Tensor, *operands: Any) -> torch.Tensor:
    """What was computed by elements, in NumPy's order of axes, which all operands decide; torch's
    is mostly that of the first."""
    n = t.dim()
    strides = [
        (0,) * (n - o.dim())
        + tuple(0 if e == 1 else s for e, s in zip(o.shape, o.stride(), strict=True))
        for o in operands
        if isinstance(o, torch.Tensor) and o.dim() > 1
    ]
    if len(strides) < 2:
        return t
    axes = walked_axes(strides, n)
    laid = t.permute(axes)
    return t if laid.is_contiguous() else laid.contiguous().permute(inverse(axes))


def checked_order(order: str) -> str:
    """An order in upper case; NumPy's error for what is none."""
    if order in ("C", "F", "A", "K"):
        return order
    np.copy(np.empty(0), order=order)
    return order.upper()


def inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes `axes`."""
    back = [0] * len(axes)
    for i, d in enumerate(axes):
        back[d] = i
    return tuple(back)


def copied(a: ndarray, order: str | None = "K") -> torch.Tensor:
    """A fresh tensor with the values of `a`, laid out in NumPy's `order`."""
    axes = memory_order(a, order)
    t = a._t.permute(axes)
    if a._flip:
        t = flip(t, tuple(i for i, d in enumerate(axes) if d in a._flip)).contiguous()
    else:
        t = t.clone(memory_format=torch.contiguous_format)
    return t.permute(inverse(axes)) if axes != tuple(range(len(axes))) else t


def viewed(a: ndarray, t: torch.Tensor, flip: tuple[int, ...] = ()) -> ndarray:
    """The array on `t`, a view of `a`; of a NumPy scalar a scalar or an array of its own."""
    if a._scalar:
        return ndarray(t.clone(), (), t.dim() == 0)
    return view_of(a, t, tuple(d for d in flip if t.shape[d] != 1))


def strided(t: torch.Tensor, shape: Any, strides: Any, start: int = 0) -> torch.Tensor:
    """A view of the memory of a tensor in a shape and with strides, none of which is negative, from
    its element `start` on. In a graph it names no storage offset, which differs among tensors."""
    if start == 0 or 0 in shape:
        return t.as_strided(shape, strides)
    before = _elements_before(shape, strides, start)
    if before is not None:  # AOTAutograd lets nobody write to `as_strided` of another view
        view = t.as_strided([n + k for n, k in zip(shape, before, strict=True)], strides)
        for d, k in enumerate(before):
            view = view.narrow(d, k, shape[d]) if k else view
        return view
    length = 1 + start + sum(s * (n - 1) for n, s in zip(shape, strides, strict=True))
    flat = t.as_strided((length,), (1,))
    if len(shape) == 1 and strides[0]:
        return flat[start :: strides[0]]
    return flat.narrow(0, start, length - start).as_strided(shape, strides)


def _elements_before(shape: Any, strides: Any, start: int) -> list[int] | None:
    """How many elements along each axis lead from the first place to `start`; None where elements
    would share a place then, or none do."""
    if not all(type(v) is int for v in (*shape, *strides, start)):
        return None
    before = [0] * len(strides)
    for d in sorted(range(len(strides)), key=lambda d: -strides[d]):
        if strides[d]:
            before[d], start = divmod(start, strides[d])
    wide = [n + k for n, k in zip(shape, before, strict=True)]
    return None if start or overlaps_itself(wide, strides) else before


def permuted(a: ndarray, axes: tuple[int, ...]) -> ndarray:
    """A view of `a` with the axes in the order `axes`."""
    backwards = tuple(i for i, d in enumerate(axes) if d in a._flip) if a._flip else ()
    return viewed(a, a._t.permute(axes), backwards)


def sliced(a: ndarray, axis: int, start: Any, stop: Any) -> ndarray:
    """A view: a[start:stop] along one axis, with 0 <= start, stop <= the extent."""
    length = max(stop - start, 0)
    n = a._t.shape[axis]
    first = n - start - length if axis in a._flip else start
    return viewed(a, a._t.narrow(axis, first if length else 0, length), a._flip)


def selected(a: ndarray, axis: int, index: int) -> ndarray:
    """a[index] along one axis: a view, a NumPy scalar (a copy) when no axis is left."""
    index = a._t.shape[axis] - 1 - index if axis in a._flip else index
    t = a._t.select(axis, index)
    if t.dim() == 0:
        return ndarray(t.clone(), (), True)
    return viewed(a, t, tuple(d - (d > axis) for d in a._flip if d != axis))


def one_device(tensors: list) -> list:
    """The tensors on one device: numbers and lists, made in host memory, join the arrays."""
    first = tensors[0].device
    device = next((t.device for t in tensors if t.device.type != "cpu"), first)
    return [t if t.device == device else t.to(device) for t in tensors]


def gathered(t: torch.Tensor, axis: int, index: torch.Tensor) -> torch.Tensor:
    """torch.index_select for every dtype."""
    return unbits(bits(t).index_select(axis, index), t.dtype)


def target_device(device: Any) -> torch.device | None:
    """`device=` of a creation function. None and NumPy's one word "cpu": torch's default device.

    ValueError, as in NumPy, for what names no device.
    """
    if device is None or (isinstance(device, str) and device == "cpu"):
        return None
    try:
        return torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(
            f'Device not understood. Only "cpu" is allowed, but received: {device}'
        ) from None


def refuse_like(like: Any) -> None:
    """`like=` hands the call to another library: that is NumPy's own business."""
    if like is not None:
        raise NotSupported("like= hands the call to the library of that array")
