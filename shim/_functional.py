"""Functions of functions, polynomials, and questions about arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from ._dtypes import Weak, result_type
from ._index_plan import readable
from ._matmul import product
from ._ndarray import as_array, ndarray
from ._normalize import Array, Raw, Static, View, function
from ._shapes import (
    concrete,
    gathered,
    let_numpy_raise,
    normalize_axes,
    normalize_axis,
    one_device,
    viewed,
)
from ._table import Kind
from ._unsigned import bits, cast, choose_by, from_signed, to_signed, unbits
from ._views import expanded

# polynomials


@function()
def polyval(p: Array, x: Array):
    """The polynomial with coefficients p (highest power first) at x: the shape of x."""
    if p.dim() == 0:
        raise TypeError("iteration over a 0-d array")
    dtype = result_type(x.dtype, p.dtype) if p.shape[0] else x.dtype
    p, x = one_device([cast(p, dtype), cast(x, dtype)])
    y = torch.zeros_like(x)
    for k in range(p.shape[0]):
        term = product(y, x)
        if dtype is torch.bool:
            y = term | p[k]
        else:
            y = from_signed(to_signed(term) + to_signed(p[k]), dtype)
    return ndarray(y, (), y.dim() == 0 and p.shape[0] > 0)


# functions called on parts of arrays


def _call(function: Callable, value: ndarray, args: tuple, kwargs: dict) -> ndarray:
    return as_array(function(value, *args, **kwargs))


@function(kind=Kind.DATA, scalar=False)
def apply_along_axis(func1d: Static, axis: int, arr: View, *args: Static, **kwargs: Static):
    """func1d called on each vector along the axis; its results in the place of that axis.

    Errors: ValueError where there is no vector.
    """
    n = arr.ndim
    axis = normalize_axis(axis, n)
    rest = [d for d in range(n) if d != axis]
    t = arr.tensor.permute(*rest, axis)
    lead = tuple(t.shape[:-1])
    if 0 in lead:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [
        _call(func1d, viewed(arr, t[i] if i else t.view_as(t)), args, kwargs)
        for i in np.ndindex(lead)
    ]
    shape, dtype = results[0].shape, results[0]._t.dtype
    parts = [cast(r.tensor, dtype).expand(shape) for r in results]
    whole = torch.stack(parts).reshape(lead + shape)
    inner = list(range(len(lead), whole.dim()))
    outer = list(range(len(lead)))
    return ndarray(whole.permute(outer[:axis] + inner + outer[axis:]))


@function(kind=Kind.DATA, scalar=False)
def apply_over_axes(func: Static, a: View, axes: Static):
    """func(a, axis) for one axis after the other; its results keep all axes.

    Errors: ValueError where a result has another number of axes.
    """
    value = a
    for axis in np.atleast_1d(concrete(axes)).tolist():
        axis = axis + a.ndim if axis < 0 else axis
        result = as_array(func(value, axis))
        if result.ndim != value.ndim:
            result = expanded(result, normalize_axes(axis, result.ndim + 1))
        if result.ndim != value.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        value = result
    return value


@function(kind=Kind.DATA, scalar=False)
def piecewise(x: View, condlist: Raw, funclist: Static, *args: Static, **kw: Static):
    """The function (or value) of the last condition that holds, for each element of x.

    One function more than conditions: it is for the elements where none holds. ValueError.
    """
    single = np.isscalar(condlist) or isinstance(condlist, (ndarray, np.ndarray, Weak))
    if isinstance(condlist, (ndarray, np.ndarray)) and as_array(condlist).ndim > x.ndim:
        single = False
    if not single and x.ndim and not isinstance(condlist[0], (list, tuple, ndarray, np.ndarray)):
        single = True
    conditions = [condlist] if single else list(condlist)
    masks = [cast(as_array(c).tensor, torch.bool) for c in conditions]
    n, given = len(masks), len(funclist)
    if given == n + 1:
        masks.append(~torch.stack([m.expand(x.shape) for m in masks]).any(0))
    elif given != n:
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    t = x.tensor
    y = torch.zeros_like(t)
    for mask, branch in zip(masks, funclist, strict=True):
        mask = mask.expand(t.shape)
        if not callable(branch):
            value = as_array(branch).tensor
            y = choose_by(mask, cast(value, t.dtype).to(t.device), y)
            continue
        places = torch.nonzero(mask.reshape(-1)).reshape(-1)
        if not places.numel():
            continue
        part = ndarray(gathered(t.reshape(-1), 0, places))
        value = cast(_call(branch, part, args, kw).tensor, t.dtype).expand(places.shape)
        flat = bits(y.reshape(-1)).index_put((places,), bits(value.contiguous()))
        y = unbits(flat, t.dtype).reshape(t.shape)
    return ndarray(y)


# questions


@function("shape", kind=Kind.QUERY)
def shape_(a: View):
    """The extents, a tuple."""
    return a.shape


@function(kind=Kind.QUERY)
def ndim(a: View):
    """The number of axes."""
    return a.ndim


@function(kind=Kind.QUERY)
def size(a: View, axis: Static = None):
    """The number of elements, or of places along the axis or axes. AxisError, IndexError."""
    if axis is None:
        return a.size
    let_numpy_raise(np.size, np.empty((1,) * a.ndim), axis)  # the errors differ by version
    if isinstance(axis, tuple):
        total = 1
        for d in normalize_axes(axis, a.ndim):
            total = total * a.shape[d]
        return total
    return a.shape[normalize_axis(axis, a.ndim)]


@function(kind=Kind.QUERY)
def isscalar(element: Raw):
    """Whether it is a number, NumPy scalar, or string."""
    if type(element) is ndarray:
        return element._scalar
    return isinstance(element, Weak) or np.isscalar(element)


@function(kind=Kind.QUERY)
def iterable(y: Raw):
    """Whether iter(y) works."""
    if type(y) is ndarray:
        return y.ndim > 0
    return np.iterable(y)


class _Span:
    """Memory as NumPy sees it, at an address that is never read."""

    def __init__(self, a: ndarray, start: int):
        t = a._t
        width = t.element_size()
        back = sum((t.shape[d] - 1) * t.stride(d) * width for d in a._flip if t.shape[d])
        self.__array_interface__ = {
            "shape": a.shape,
            "strides": a.strides,
            "typestr": f"|V{width}",
            "data": (start + back, True),
            "version": 3,
        }


def _spans(a: ndarray, b: ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The memory of two arrays; None where they certainly have none in common."""
    both = a._t, b._t
    if all(map(readable, both)):
        if a._t.device != b._t.device:
            return None
        starts = [t.data_ptr() for t in both]
    elif a._t.untyped_storage()._cdata == b._t.untyped_storage()._cdata:
        starts = [2**40 + t.storage_offset() * t.element_size() for t in both]
    else:
        return None
    one, other = (np.asarray(_Span(x, s)) for x, s in zip((a, b), starts, strict=True))
    return one, other


@function(kind=Kind.QUERY)
def may_share_memory(a: View, b: View, /, max_work: Static = 0):
    """Whether the spans of memory overlap: False is certain, True a maybe."""
    spans = _spans(a, b)
    return spans is not None and np.may_share_memory(*spans, max_work)


@function(kind=Kind.QUERY)
def shares_memory(a: View, b: View, /, max_work: Static = -1):
    """Whether an element lies in both. TooHardError beyond max_work."""
    spans = _spans(a, b)
    return spans is not None and np.shares_memory(*spans, max_work)


@function(kind=Kind.DATA)
def ndenumerate(arr: View):
    """An iterator over (index, element)."""
    return _enumerated(arr)


def _enumerated(a: ndarray) -> Iterator[tuple]:
    for index in np.ndindex(a.shape):
        yield index, a[index]
