"""Parts of arrays as views: diagonals, split, unstack."""

from __future__ import annotations

import itertools

import numpy as np
import torch

from ._dtypes import NotSupported
from ._index_plan import span
from ._ndarray import ndarray
from ._normalize import Static, View, function
from ._shapes import concrete, normalize_axes, normalize_axis, selected, sliced, strided, viewed

# diagonals


def diagonal_of(a: ndarray, offset: int, axis1: int, axis2: int) -> ndarray:
    """A writeable view of the diagonal of two axes, as the last axis; reversed axes included."""
    t = a._t
    if t.dim() < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    if not -(2**31) <= offset < 2**31:
        raise NotSupported(f"the offset {offset}, which C's int cannot hold")
    i = normalize_axis(axis1, t.dim(), "axis1")
    j = normalize_axis(axis2, t.dim(), "axis2")
    if i == j:
        raise ValueError("axis1 and axis2 cannot be the same")
    rest = [d for d in range(t.dim()) if d not in (i, j)]
    backwards = tuple(k for k, d in enumerate(rest) if d in a._flip)
    last = len(rest)
    row, column = max(0, -offset), max(0, offset)
    n, m = t.shape[i], t.shape[j]
    length = max(0, min(n - row, m - column))
    if not length or not ({i, j} & set(a._flip)):
        return viewed(a, torch.diagonal(t, offset, i, j), backwards)
    if i in a._flip and j in a._flip:
        return viewed(a, torch.diagonal(t, m - n - offset, i, j), (*backwards, last))
    row = n - 1 - row if i in a._flip else row
    column = m - 1 - column if j in a._flip else column
    down, right = (-1 if d in a._flip else 1 for d in (i, j))
    step = t.stride(i) * down + t.stride(j) * right
    if step < 0:  # the last element comes first in memory
        row, column = row + down * (length - 1), column + right * (length - 1)
        backwards = (*backwards, last)
    shape = [t.shape[d] for d in rest] + [length]
    strides = [t.stride(d) for d in rest] + [abs(step)]
    first = t.narrow(i, row, n - row).narrow(j, column, m - column)
    return viewed(a, strided(first, shape, strides), backwards)


def readonly_diagonal(a: ndarray, offset: int, axis1: int, axis2: int) -> ndarray:
    """As `diagonal_of`, marked read-only."""
    view = diagonal_of(a, offset, axis1, axis2)
    view._readonly = True
    return view


@function(method=True, scalar=False)
def diagonal(a: View, offset: int = 0, axis1: int = 0, axis2: int = 1):
    """A read-only view of the diagonals of two axes, as the last axis. ValueError, AxisError."""
    return readonly_diagonal(a, offset, axis1, axis2)


@function("linalg.diagonal", scalar=False)
def _matrix_diagonal(x: View, /, *, offset: int = 0):
    """A read-only view of the diagonals of the last two axes."""
    return readonly_diagonal(x, offset, -2, -1)


# splitting


def _divisions(sections: object) -> object:
    """The argument of split: an int, or the list of places to cut at."""
    if hasattr(sections, "__len__") and not (
        hasattr(sections, "ndim") and getattr(sections, "ndim", 1) == 0
    ):
        given = concrete(sections)
        if given.ndim > 1:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        if given.size and given.dtype.kind not in "iu":
            raise TypeError("slice indices must be integers or None or have an __index__ method")
        return given.tolist()
    return int(concrete(sections)) if type(sections) is ndarray else int(sections)


def _split(a: ndarray, sections: object, axis: int) -> list:
    n = a._t.dim()
    try:
        total = a._t.shape[axis]
    except IndexError:
        raise IndexError("tuple index out of range") from None
    axis = normalize_axis(axis, n)
    cuts = _divisions(sections)
    if isinstance(cuts, int):
        if cuts <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, extra = total // cuts, total % cuts
        ends = [0]
        for k in range(cuts):
            ends.append(ends[-1] + each + (k < extra))
        bounds = list(itertools.pairwise(ends))
    else:
        places = [0, *cuts, total]
        spans = [span(start, stop, None, total) for start, stop in itertools.pairwise(places)]
        bounds = [(first, first + length) for first, _, length in spans]
    return [sliced(a, axis, start, stop) for start, stop in bounds]


def _split_evenly(a: ndarray, sections: object, axis: int) -> list:
    cuts = _divisions(sections)
    if isinstance(cuts, int):
        total = a._t.shape[axis]
        # NumPy divides by the number that is given, and cuts by its whole part.
        odd = isinstance(sections, (float, np.floating)) and sections != cuts
        if int(total) % sections if odd else total % cuts:  # type: ignore[operator]
            raise ValueError("array split does not result in an equal division")
    return _split(a, cuts, axis)


@function(scalar=False)
def array_split(ary: View, indices_or_sections: Static, axis: int = 0):
    """A list of views: parts of nearly equal size, or cut at the places given. ValueError."""
    return _split(ary, indices_or_sections, axis)


@function(scalar=False)
def split(ary: View, indices_or_sections: Static, axis: int = 0):
    """A list of views: parts of equal size, or cut at the places given. ValueError."""
    return _split_evenly(ary, indices_or_sections, axis)


@function(scalar=False)
def hsplit(ary: View, indices_or_sections: Static):
    """As split along the second axis (the only one of a vector)."""
    if ary._t.dim() == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return _split_evenly(ary, indices_or_sections, 1 if ary._t.dim() > 1 else 0)


@function(scalar=False)
def vsplit(ary: View, indices_or_sections: Static):
    """As split along the first axis, of arrays with two axes or more."""
    if ary._t.dim() < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return _split_evenly(ary, indices_or_sections, 0)


@function(scalar=False)
def dsplit(ary: View, indices_or_sections: Static):
    """As split along the third axis."""
    if ary._t.dim() < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return _split_evenly(ary, indices_or_sections, 2)


@function(scalar=False)
def unstack(x: View, /, *, axis: int = 0):
    """A tuple of views, one for each place along the axis (scalars of a vector). ValueError."""
    if x._t.dim() == 0:
        raise ValueError("Input array must be at least 1-d.")
    axis = normalize_axes(axis, x._t.dim(), "source")[0]
    return tuple(selected(x, axis, i) for i in range(x._t.shape[axis]))
