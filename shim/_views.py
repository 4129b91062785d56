"""Other views of the same memory: reshape, transpose, broadcast, split, flip."""

from __future__ import annotations

import numpy as np

from ._ndarray import ndarray, view_of
from ._normalize import Static, View, function
from ._reduce import normalize_axes as reduced_axes
from ._shapes import (
    checked_order,
    common_shape,
    copied,
    is_c_contiguous,
    is_f_contiguous,
    let_numpy_raise,
    normalize_axes,
    normalize_axis,
    permuted,
    reversed_axes,
    shape_tuple,
    signed_strides,
    stand_in,
    viewed,
    walking_order,
)

# reshape


def reshaped(a: ndarray, shape: tuple, order: str = "C", copy: bool | None = None) -> ndarray:
    """The array in another shape: a view exactly where NumPy gives one.

    Errors: ValueError for sizes that differ, for more than one -1, for copy=False with no view.
    """
    order = checked_order(order)
    if order == "K":
        raise ValueError("order 'K' is not permitted for reshaping")
    if order == "A":
        order = "F" if is_f_contiguous(a) and not is_c_contiguous(a) else "C"
    shape = _complete(a, shape)
    if order == "F" and (a._t.dim() > 1 or len(shape) > 1):
        turned = reshaped(permuted(a, reversed_axes(a._t.dim())), shape[::-1], "C", copy)
        return permuted_like(turned, reversed_axes(len(shape)))
    if copy is True:
        return ndarray(copied(a, "C").view(shape), (), a._scalar and not shape)
    t = a._t
    if a._flip:
        try:
            strides = np.reshape(signed_strides(a), tuple(map(int, shape)), copy=False).strides
        except ValueError:
            strides = None
        if strides is not None:
            backwards = tuple(d for d, s in enumerate(strides) if s < 0)
            return viewed(a, t.view(shape), backwards)
    else:
        try:
            return viewed(a, t.view(shape))
        except (RuntimeError, ValueError):
            pass
    if copy is False:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return ndarray(a.tensor.reshape(shape))


def permuted_like(a: ndarray, axes: tuple[int, ...]) -> ndarray:
    """Permute a result: a view stays a view of its base, a fresh array stays its own owner."""
    if a.base is None:
        return ndarray(a._t.permute(axes))
    return permuted(a, axes)


def _complete(a: ndarray, shape: tuple) -> tuple:
    """The shape with -1 filled in; NumPy's errors for shapes that do not fit."""
    known, unknown = 1, None
    for d, n in enumerate(shape):
        if n < 0:
            if unknown is not None or n != -1:
                let_numpy_raise(np.reshape, stand_in(a), tuple(map(int, shape)))
            unknown = d
        else:
            known = known * n
    total = a._t.numel()
    if unknown is None:
        if known != total:
            let_numpy_raise(np.reshape, stand_in(a), tuple(map(int, shape)))
        return shape
    if known == 0 or total % known != 0:
        let_numpy_raise(np.reshape, stand_in(a), tuple(map(int, shape)))
    return (*shape[:unknown], total // known, *shape[unknown + 1 :])


@function(scalar=False)
def reshape(a: View, /, shape: Static, order: str = "C", *, copy: Static = None):
    """The elements of `a` in another shape, read and placed in `order`: a view where possible.

    Errors: ValueError for a shape of another size, or copy=False where only a copy will do.
    """
    return reshaped(a, shape_tuple(shape), order, copy)


@function("ndarray.reshape", scalar=False)
def _reshape_method(self: View, /, *shape: Static, order: str = "C", copy: Static = None):
    """As np.reshape; the extents may be given one by one."""
    given = shape[0] if len(shape) == 1 and shape[0] is not None else shape
    if not shape:
        raise TypeError("reshape() takes exactly 1 argument (0 given)")
    return reshaped(self, shape_tuple(given), order, copy)


@function(method=True, scalar=False)
def ravel(a: View, order: str = "C"):
    """The elements in one dimension: a view of a contiguous array, else a copy."""
    axes = walking_order(a, order)
    b = a if axes == tuple(range(len(axes))) else permuted(a, axes)
    if is_c_contiguous(b):
        n = b._t.numel()
        if type(n) is int and n == 1:  # whose strides may be any; the result's is that of one step
            return viewed(a, b._t.view(()).unsqueeze(0))
        return viewed(a, b._t.view(-1) if n else b._t.reshape(-1))
    return ndarray(copied(b, "C").view(-1))


# axes


def _transposed(a: ndarray, axes: object) -> ndarray:
    n = a._t.dim()
    if axes is None:
        return permuted(a, reversed_axes(n))
    axes = (axes,) if hasattr(axes, "__index__") and not hasattr(axes, "__len__") else tuple(axes)
    if len(axes) != n:
        raise ValueError("axes don't match array")
    axes = tuple(normalize_axis(d, n) for d in axes)
    if len(set(axes)) != n:
        raise ValueError("repeated axis in transpose")
    return permuted(a, axes)


@function("transpose", "permute_dims", scalar=False)
def transpose(a: View, axes: Static = None):
    """A view with the axes in another order, by default reversed. ValueError, AxisError."""
    return _transposed(a, axes)


@function("ndarray.transpose", scalar=False)
def _transpose_method(self: View, /, *axes: Static):
    """As np.transpose; the axes may be given one by one."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        return _transposed(self, axes[0])
    return _transposed(self, axes or None)


def _swapped(a: ndarray, axis1: int, axis2: int) -> ndarray:
    n = a._t.dim()
    i = normalize_axis(axis1, n, "axis1")
    j = normalize_axis(axis2, n, "axis2")
    axes = list(range(n))
    axes[i], axes[j] = j, i
    return permuted(a, tuple(axes))


@function(method=True, scalar=False)
def swapaxes(a: View, axis1: int, axis2: int):
    """A view with two axes exchanged. AxisError."""
    return _swapped(a, axis1, axis2)


def _matrix_transposed(x: ndarray) -> ndarray:
    if x._t.dim() < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {x._t.dim()}")
    return _swapped(x, -1, -2)


@function("matrix_transpose", "linalg.matrix_transpose", scalar=False)
def matrix_transpose(x: View, /):
    """A view with the last two axes exchanged. ValueError below two dimensions."""
    return _matrix_transposed(x)


def moved(a: ndarray, source: object, destination: object) -> ndarray:
    """A view with the axes `source` at the places `destination`, the others in their order."""
    n = a._t.dim()
    source = normalize_axes(source, n, "source")
    destination = normalize_axes(destination, n, "destination")
    if len(source) != len(destination):
        raise ValueError(
            "`source` and `destination` arguments must have the same number of elements"
        )
    axes = [d for d in range(n) if d not in source]
    for place, d in sorted(zip(destination, source, strict=True)):
        axes.insert(place, d)
    return permuted(a, tuple(axes))


@function(scalar=False)
def moveaxis(a: View, source: Static, destination: Static):
    """A view with some axes moved to new places. AxisError, ValueError."""
    return moved(a, source, destination)


@function(scalar=False)
def rollaxis(a: View, axis: int, start: int = 0):
    """A view with one axis rolled back until it stands before `start`. AxisError."""
    n = a._t.dim()
    axis = normalize_axis(axis, n)
    place = start + n if start < 0 else start
    if not 0 <= place <= n:
        raise np.exceptions.AxisError(
            f"'start' arg requires {-n} <= start < {n + 1}, but {place} was passed in"
        )
    if axis < place:
        place -= 1
    axes = [d for d in range(n) if d != axis]
    axes.insert(place, axis)
    return permuted(a, tuple(axes))


@function(method=True, scalar=False)
def squeeze(a: View, axis: Static = None):
    """A view without axes of extent one: all, or those named, which must have extent one.

    The array itself where axis=None finds none. Errors: ValueError, AxisError.
    """
    t = a._t
    if axis is None:
        dropped = tuple(d for d, n in enumerate(t.shape) if n == 1)
        if not dropped:
            return a
    else:
        dropped = reduced_axes(axis, t.dim())
        if any(t.shape[d] != 1 for d in dropped):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    kept = [d for d in range(t.dim()) if d not in dropped]
    backwards = tuple(i for i, d in enumerate(kept) if d in a._flip)
    return viewed(a, t.squeeze(dropped), backwards)


def expanded(a: ndarray, axes: tuple[int, ...]) -> ndarray:
    """A view with new axes of extent one, at these places of the result."""
    t = a._t
    for d in sorted(axes):
        t = t.unsqueeze(d)
    old = [d for d in range(t.dim()) if d not in axes]
    return viewed(a, t, tuple(old[d] for d in a._flip))


@function(scalar=False)
def expand_dims(a: View, axis: Static):
    """A view with new axes of extent one. AxisError; ValueError for a repeated axis."""
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return expanded(a, normalize_axes(axes, a._t.dim() + len(axes)))


def at_least(a: ndarray, n: int) -> ndarray:
    """A view with axes of extent one in front until there are `n`; the array itself if it has."""
    missing = n - a._t.dim()
    if missing <= 0:
        return a
    return expanded(a, tuple(range(missing)))


def at_least_3d(a: ndarray) -> ndarray:
    """As np.atleast_3d: a matrix gets its new axis at the end, a vector one at either side."""
    return expanded(a, {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[a._t.dim()]) if a._t.dim() < 3 else a


def _each(arrays: list, convert: object) -> object:
    results = tuple(convert(a) for a in arrays)
    return results[0] if len(results) == 1 else results


@function(scalar=False)
def atleast_1d(*arys: View):
    """The arrays (a tuple, or the one), 0-D ones as a view of one element."""
    return _each(arys, lambda a: at_least(a, 1))


@function(scalar=False)
def atleast_2d(*arys: View):
    """The arrays (a tuple, or the one) with axes put in front until there are two."""
    return _each(arys, lambda a: at_least(a, 2))


@function(scalar=False)
def atleast_3d(*arys: View):
    """The arrays (a tuple, or the one) with axes added until there are three."""
    return _each(arys, at_least_3d)


# broadcasting


def _expanded_to(a: ndarray, shape: tuple) -> ndarray:
    if a._scalar:
        a = ndarray(a._t.clone())
    lead = len(shape) - a._t.dim()
    backwards = tuple(d + lead for d in a._flip if a._t.shape[d] == shape[d + lead])
    return view_of(a, a._t.expand(shape), backwards)


@function(scalar=False)
def broadcast_to(array: View, shape: Static, subok: bool = False):
    """A read-only view of the array in a larger shape. ValueError where it does not fit."""
    shape = shape_tuple(shape)
    own = array._t.shape
    lead = len(shape) - len(own)
    fits = lead >= 0 and all(n >= 0 for n in shape)
    fits = fits and all(n in (1, shape[lead + d]) for d, n in enumerate(own))
    if not fits:
        let_numpy_raise(np.broadcast_to, stand_in(array), shape)
    view = _expanded_to(array, shape)
    view._readonly = True
    return view


def _common_shape(arrays: list) -> tuple:
    try:
        return common_shape(*(a._t.shape for a in arrays))
    except ValueError:
        let_numpy_raise(np.broadcast_arrays, *map(stand_in, arrays))
        raise


def broadcast_all(arrays: list) -> tuple:
    """Views of the arrays in their common shape; arrays that have it as they are."""
    shape = _common_shape(arrays)
    return tuple(a if tuple(a._t.shape) == shape else _expanded_to(a, shape) for a in arrays)


@function(scalar=False)
def broadcast_arrays(*args: View, subok: bool = False):
    """Views of the arrays in their common shape, a tuple. ValueError where there is none."""
    return broadcast_all([ndarray(a._t.clone()) if a._scalar else a for a in args])


# flips


def flipped(m: ndarray, axes: tuple[int, ...]) -> ndarray:
    """A view read backwards along these axes, if they have elements."""
    axes = tuple(d for d in axes if m._t.shape[d])
    return viewed(m, m._t.view_as(m._t), tuple(sorted(set(m._flip) ^ set(axes))))


@function(scalar=False)
def flip(m: View, axis: Static = None):
    """A view read backwards along the axes given, by default all. AxisError."""
    n = m._t.dim()
    axes = tuple(range(n)) if axis is None else normalize_axes(axis, n)
    if n == 0:
        return ndarray(m._t.clone(), (), True)
    return flipped(m, axes)


@function(scalar=False)
def fliplr(m: View):
    """A view with the second axis read backwards. ValueError below two dimensions."""
    if m._t.dim() < 2:
        raise ValueError("Input must be >= 2-d.")
    return flipped(m, (1,))


@function(scalar=False)
def flipud(m: View):
    """A view with the first axis read backwards. ValueError below one dimension."""
    if m._t.dim() < 1:
        raise ValueError("Input must be >= 1-d.")
    return flipped(m, (0,))


@function(scalar=False)
def rot90(m: View, k: int = 1, axes: Static = (0, 1)):
    """A view turned by k quarters in the plane of two axes. ValueError for axes that are none."""
    axes, n = tuple(axes), m._t.dim()
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    if axes[0] == axes[1] or abs(axes[0] - axes[1]) == n:
        raise ValueError("Axes must be different.")
    if not all(-n <= d < n for d in axes):
        raise ValueError(f"Axes={axes} out of range for array of ndim={n}.")
    i, j = (d % n for d in axes)
    quarters = k % 4
    if quarters == 0:
        return flipped(m, ())
    if quarters == 2:
        return flipped(m, (i, j))
    order = list(range(n))
    order[i], order[j] = order[j], order[i]
    if quarters == 1:
        return permuted(flipped(m, (j,)), tuple(order))
    return flipped(permuted(m, tuple(order)), (j,))
