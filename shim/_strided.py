"""Views whose elements may share memory: windows, and any shape and strides over an array's."""

from __future__ import annotations

import operator

import numpy as np
import torch

from ._dtypes import NotSupported
from ._ndarray import ndarray, view_of
from ._normalize import Static, View, function
from ._shapes import is_c_contiguous, let_numpy_raise, signed_strides, size, stand_in, strided


@function("lib.stride_tricks.sliding_window_view", scalar=False)
def sliding_window_view(
    x: View,
    window_shape: Static,
    axis: Static = None,
    *,
    subok: bool = False,
    writeable: bool = False,
):
    """A view of all windows of a shape along axes; those of the window come last. It is read-only,
    unless asked for otherwise.

    Errors: ValueError for a shape that does not fit the axes, AxisError.
    """
    shape = np.atleast_1d(window_shape).tolist()
    ndim = x._t.dim()
    axes = range(ndim) if axis is None else np.atleast_1d(axis).tolist()
    fits = len(shape) == len(axes) and all(type(d) is int for d in (*shape, *axes))
    fits = fits and all(-ndim <= d < ndim for d in axes)
    if fits:
        room = list(x._t.shape)
        for n, d in zip(shape, axes, strict=True):
            room[d] -= n - 1
            fits = fits and n >= 0 and room[d] > 0
    if not fits:
        let_numpy_raise(np.lib.stride_tricks.sliding_window_view, stand_in(x), window_shape, axis)
    t = x._t.clone() if x._scalar else x._t
    backwards = list(x._flip)
    for n, d in zip(shape, axes, strict=True):
        d %= ndim
        if d in x._flip:
            backwards.append(t.dim())
        t = t.unfold(d, n, 1)
    view = view_of(ndarray(t) if x._scalar else x, t, tuple(backwards))
    view._readonly = view._readonly or not writeable
    return view


@function("lib.stride_tricks.as_strided", scalar=False)
def as_strided(
    x: View,
    shape: Static = None,
    strides: Static = None,
    subok: bool = False,
    writeable: bool = True,
):
    """A view of an array's memory in a shape and with strides (in bytes) of one's own.

    Errors: ValueError for lengths that differ, NotSupported for strides that are no multiple of
    an element, and for places outside of the memory, or beside what has the gradient.
    """
    a = ndarray(x._t.clone()) if x._scalar else x
    width = a._t.element_size()
    new = a.shape if shape is None else tuple(map(size, shape))
    if strides is not None:
        steps = tuple(map(operator.index, strides))
    else:
        steps = _without_gaps(new, width) if is_c_contiguous(a) else a.strides
    if len(new) != len(steps) or any(n < 0 for n in new):
        let_numpy_raise(np.lib.stride_tricks.as_strided, signed_strides(a), shape, strides)
    if any(n > 1 and s % width for n, s in zip(new, steps, strict=True)):
        raise NotSupported("strides that are no multiple of an element")
    steps = tuple(s // width for s in steps)
    backwards = tuple(d for d, (n, s) in enumerate(zip(new, steps, strict=True)) if n > 1 and s < 0)
    owner = _whole(a)._t
    start = a._t.storage_offset() - owner.storage_offset()
    if 0 not in a.shape:
        start += sum(a._t.stride(d) * (a.shape[d] - 1) for d in a._flip)
    if 0 not in new:
        start += sum(steps[d] * (new[d] - 1) for d in backwards)
        steps = tuple(map(abs, steps))
        if start < 0 or start + _reach(new, steps) > _reach(owner.shape, owner.stride()):
            raise NotSupported("elements outside of the memory of the array")
        if owner.requires_grad and not _has(owner, new, steps, start):
            raise NotSupported("elements beside those of the array, which have no gradient")
    view = view_of(a, strided(owner, new, tuple(map(abs, steps)), start), backwards)
    view._readonly = view._readonly or not writeable
    return view


def _without_gaps(shape: tuple, width: int) -> tuple:
    steps = []
    for n in reversed(shape):
        steps.append(width)
        width *= max(n, 1)
    return tuple(reversed(steps))


def _whole(a: ndarray) -> ndarray:
    """The array that `a` is a view of, if it has the same kind of elements: the gradient of what
    lies beside the elements of `a` goes there."""
    owner = a._base
    return owner if owner is not None and owner._t.dtype is a._t.dtype else a


def _reach(shape: tuple, strides: tuple) -> int:
    """How far the last element lies from the first; -1 where there is none."""
    return -1 if 0 in shape else sum(s * (n - 1) for n, s in zip(shape, strides, strict=True))


def _has(t: torch.Tensor, shape: tuple, strides: tuple, start: int) -> bool:
    """Whether all these places in memory are some of the tensor's elements."""
    if t.is_contiguous():
        return True
    places = np.zeros(_reach(t.shape, t.stride()) + 1, bool)
    np.lib.stride_tricks.as_strided(places, tuple(t.shape), t.stride())[...] = True
    return bool(np.lib.stride_tricks.as_strided(places[start:], shape, strides).all())
