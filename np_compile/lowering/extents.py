"""What operators give of tensors whose sizes may change: extents, strides, offsets.

What an operator gives of the sizes at hand says `Shapes`: errors, dtypes, and the order in which
the axes of a result lie in memory. What extents it has of other sizes say the rules below, one for
operators of a kind. The order holds for all sizes for which the axes of the operands lie in the
order in which they do at hand: that is a guard, where it does not follow.

VIEWS: of views the extents, strides and offset. DIRECT: operators that make their results
themselves. SHAPES: of others the shape of the result, or shapes of the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch

from np_compile.size import Real, Size, hint

from .meta import tensors_of
from .symint import size_of, symint

_aten = torch.ops.aten
_META = torch.device("meta")

# -- layouts -----------------------------------------------------------------------------------


def leaves(args: Iterable[Any]) -> Iterator[Any]:
    for a in args:
        if isinstance(a, (list, tuple)):
            yield from leaves(a)
        else:
            yield a


def is_symbolic(a: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a._has_symbolic_sizes_strides
    return isinstance(a, (torch.SymInt, torch.SymFloat, torch.SymBool))


def at_hand(a: Any) -> Any:
    """An argument for the sizes at hand."""
    if isinstance(a, torch.Tensor):
        if not a._has_symbolic_sizes_strides:
            return a
        shape, strides = ([hint(size_of(n)) for n in m] for m in (a.shape, a.stride()))
        return torch.empty_strided(shape, strides, dtype=a.dtype, device=_META)
    if isinstance(a, (list, tuple)):
        return type(a)([at_hand(b) for b in a])
    if isinstance(a, dict):
        return {k: at_hand(b) for k, b in a.items()}
    if isinstance(a, torch.SymInt):
        return hint(size_of(a))
    if isinstance(a, torch.SymFloat):
        value = a.node.value
        return float(hint(value.size)) if type(value) is Real else value
    return a


def _extents(t: torch.Tensor) -> list[Any]:
    return [size_of(n) for n in t.shape]


def _strides(t: torch.Tensor) -> list[Any]:
    return [size_of(n) for n in t.stride()]


def _values(integers: Sequence[Any]) -> list[Any]:
    return [size_of(n) for n in integers]


def symints(integers: Any) -> Any:
    many = isinstance(integers, (list, tuple))
    return [symint(n) for n in integers] if many else symint(integers)


def empty_strided(shape: Sequence[Any], strides: Sequence[Any], dtype: Any) -> torch.Tensor:
    return torch.empty_strided(symints(shape), symints(strides), dtype=dtype, device=_META)


def _dense(shape: Sequence[Any], order: Sequence[int]) -> list[Any]:
    """Strides without gaps, the innermost axis the last in `order`."""
    strides: list[Any] = [1] * len(shape)
    step: Any = 1
    for d in reversed(order):
        strides[d] = step
        step = step * shape[d]
    return strides


def _contiguous(shape: Sequence[Any]) -> list[Any]:
    return _dense(shape, range(len(shape)))


def laid_out(made: torch.Tensor, shape: Sequence[Any]) -> torch.Tensor:
    """A tensor of this shape, its axes in the order of one that an operator gives at hand."""
    here = [hint(n) for n in shape]
    if list(made.shape) != here:
        raise NotImplementedError(f"{here} is not the shape of the result, {[*made.shape]}")
    axes, strides = range(len(shape)), made.stride()
    keys: tuple[Callable[[int], Any], ...] = (
        lambda d: d, lambda d: -strides[d], lambda d: (-strides[d], here[d] != 1),
        lambda d: (-strides[d], -here[d], -d),
    )  # fmt: skip
    for key in keys:
        order = sorted(axes, key=key)
        if _dense(here, order) == [*strides]:
            return empty_strided(shape, _dense(shape, order), made.dtype)
    raise NotImplementedError(f"a result with gaps, strides {strides} of {here}")


def keep_order(t: torch.Tensor) -> None:
    """Guards that of other sizes the axes of a tensor lie in the same order, and are 1 long where
    they are now."""
    shape, strides = _extents(t), _strides(t)
    for n in shape:
        if type(n) is Size:
            n == 1  # noqa: B015
    if _is_by_key(strides, _contiguous(shape)):
        return
    order = sorted(range(len(shape)), key=lambda d: (-hint(strides[d]), -hint(shape[d])))
    for a, b in pairwise(order):
        if strides[a] == strides[b]:
            shape[a] >= shape[b]  # noqa: B015
        else:
            strides[a] > strides[b]  # noqa: B015


def _is_by_key(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether numbers and sizes are the same expressions."""
    key = lambda n: n.key if type(n) is Size else n  # noqa: E731
    return [*map(key, a)] == [*map(key, b)]


# -- views: their extents, strides and offsets ---------------------------------------------------

_Layout = tuple[list[Any], list[Any], Any]


def _layout(t: torch.Tensor) -> _Layout:
    return _extents(t), _strides(t), size_of(t.storage_offset())


def _axis(t: torch.Tensor, dim: int) -> int:
    return dim % max(t.dim(), 1)


def _permute(t: torch.Tensor, dims: Sequence[int]) -> _Layout:
    shape, strides, start = _layout(t)
    order = [_axis(t, d) for d in dims]
    return [shape[d] for d in order], [strides[d] for d in order], start


def _transpose(t: torch.Tensor, a: int, b: int) -> _Layout:
    order = [*range(t.dim())]
    if order:
        a, b = _axis(t, a), _axis(t, b)
        order[a], order[b] = b, a
    return _permute(t, order)


def _t(t: torch.Tensor) -> _Layout:
    return _permute(t, [*reversed(range(t.dim()))])


def _expand(t: torch.Tensor, size: Sequence[Any], *, implicit: bool = False) -> _Layout:
    shape, strides, start = _layout(t)
    wanted = _values(size)
    new = len(wanted) - len(shape)
    shape, strides = [1] * new + shape, [0] * new + strides
    for d, n in enumerate(wanted):
        if type(n) is int and n == -1:
            continue
        if shape[d] != n:  # it is one long
            shape[d], strides[d] = n, 0
    return shape, strides, start


def _unsqueeze(t: torch.Tensor, dim: int) -> _Layout:
    shape, strides, start = _layout(t)
    d = dim % (t.dim() + 1)
    step = shape[d] * strides[d] if d < t.dim() else 1
    return [*shape[:d], 1, *shape[d:]], [*strides[:d], step, *strides[d:]], start


def _squeeze(t: torch.Tensor, dims: Any = None) -> _Layout:
    shape, strides, start = _layout(t)
    if dims is None:
        dims = range(t.dim())
    gone = {_axis(t, d) for d in ((dims,) if isinstance(dims, int) else dims)}
    kept = [d for d, n in enumerate(shape) if d not in gone or n != 1]
    return [shape[d] for d in kept], [strides[d] for d in kept], start


def _select(t: torch.Tensor, dim: int, index: Any) -> _Layout:
    shape, strides, start = _layout(t)
    d, i = _axis(t, dim), size_of(index)
    if i < 0:
        i = i + shape[d]
    start = start + i * strides[d]
    return [*shape[:d], *shape[d + 1 :]], [*strides[:d], *strides[d + 1 :]], start


def _slice(
    t: torch.Tensor, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> _Layout:
    shape, strides, offset = _layout(t)
    d = _axis(t, dim)
    n, by = shape[d], size_of(step)
    first = _within(0 if start is None else size_of(start), n)
    last = _within(n if end is None else size_of(end), n)
    if last < first:
        last = first
    shape[d] = (last - first + (by - 1)) // by
    offset = offset + first * strides[d]
    strides[d] = strides[d] * by
    return shape, strides, offset


def _within(place: Any, n: Any) -> Any:
    """A bound of a slice among the elements."""
    if place < 0:
        place = place + n
        return place if place >= 0 else 0
    return place if place <= n else n


def _diagonal(t: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> _Layout:
    shape, strides, start = _layout(t)
    a, b = _axis(t, dim1), _axis(t, dim2)
    by = size_of(offset)
    if by >= 0:
        n = min(shape[a], shape[b] - by)
        start = start + by * strides[b]
    else:
        n = min(shape[a] + by, shape[b])
        start = start - by * strides[a]
    if n < 0:
        n = 0
    kept = [d for d in range(t.dim()) if d not in (a, b)]
    extents = [*[shape[d] for d in kept], n]
    return extents, [*[strides[d] for d in kept], strides[a] + strides[b]], start


def _unfold(t: torch.Tensor, dim: int, size: Any, step: Any) -> _Layout:
    shape, strides, start = _layout(t)
    d, n, by = _axis(t, dim), size_of(size), size_of(step)
    inner = strides[d]
    shape[d] = (shape[d] - n) // by + 1
    strides[d] = inner * by
    return [*shape, n], [*strides, inner], start


def _as_strided(
    t: torch.Tensor, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None
) -> _Layout:
    start = t.storage_offset() if storage_offset is None else storage_offset
    return _values(size), _values(stride), size_of(start)


def _view(t: torch.Tensor, size: Sequence[Any]) -> _Layout:
    shape, strides, start = _layout(t)
    wanted = _whole(_values(size), math.prod(shape))
    found = _view_strides(shape, strides, wanted)
    if found is None:
        raise NotImplementedError(f"a view of {shape} with strides {strides} as {wanted}")
    return wanted, found, start


def _whole(shape: list[Any], count: Any) -> list[Any]:
    """A shape of so many elements, a -1 in it replaced."""
    for d, n in enumerate(shape):
        if type(n) is int and n == -1:
            rest = math.prod([*shape[:d], *shape[d + 1 :]])
            return [*shape[:d], count // rest, *shape[d + 1 :]]
    return shape


def _view_strides(shape: list[Any], strides: list[Any], wanted: list[Any]) -> list[Any] | None:
    """The strides of a view of another shape: axes that lie in memory as one are split anew."""
    if any(type(n) is int and n == 0 for n in shape):
        return _contiguous([n if type(n) is Size else max(n, 1) for n in wanted])
    runs: list[tuple[Any, Any]] = []  # elements of axes that are one, and their innermost stride
    for n, s in zip(shape, strides, strict=True):
        if n == 1:
            continue
        if runs and runs[-1][1] == s * n:
            runs[-1] = runs[-1][0] * n, s
        else:
            runs.append((n, s))
    found: list[Any] = []
    left, step = runs.pop() if runs else (1, 1)
    for n in reversed(wanted):
        if n != 1 and left == 1:
            if not runs:
                return None
            left, step = runs.pop()
        found.append(step)
        if n == 1:
            continue
        if left % n != 0:
            return None
        left, step = left // n, step * n
    return [*reversed(found)] if left == 1 and not runs else None


VIEWS: dict[Any, Callable[..., _Layout]] = {
    _aten.alias.default: _layout,
    _aten.detach.default: _layout,
    _aten.permute.default: _permute,
    _aten.transpose.int: _transpose,
    _aten.t.default: _t,
    _aten.expand.default: _expand,
    _aten.unsqueeze.default: _unsqueeze,
    _aten.squeeze.default: _squeeze,
    _aten.squeeze.dim: _squeeze,
    _aten.squeeze.dims: _squeeze,
    _aten.select.int: _select,
    _aten.slice.Tensor: _slice,
    _aten.diagonal.default: _diagonal,
    _aten.unfold.default: _unfold,
    _aten.as_strided.default: _as_strided,
    _aten.view.default: _view,
    _aten._unsafe_view.default: _view,
    _aten._reshape_alias.default: lambda t, size, stride: _as_strided(t, size, stride),
}

# -- tensors that lie without gaps, made from nothing --------------------------------------------


def _empty(size: Sequence[Any], *fill: Any, dtype: Any = None, **where: Any) -> torch.Tensor:
    shape = _values(size)
    kind = dtype
    if kind is None:
        kind = torch.get_default_dtype()
        if fill:
            kind = torch.full((), at_hand(fill[0]), device=_META).dtype
    return empty_strided(shape, _contiguous(shape), kind)


def _new(
    t: torch.Tensor, size: Sequence[Any], *fill: Any, dtype: Any = None, **where: Any
) -> torch.Tensor:
    return _empty(size, dtype=dtype or t.dtype)


def _new_strided(size: Any, stride: Any, *, dtype: Any = None, **where: Any) -> torch.Tensor:
    return empty_strided(_values(size), _values(stride), dtype or torch.get_default_dtype())


def _arange(start: Any, end: Any, step: Any = 1, dtype: Any = None, **where: Any) -> torch.Tensor:
    first, last, by = (
        a.node.value if isinstance(a, torch.SymInt) else a for a in (start, end, step)
    )
    if not all(type(n) in (int, Size) for n in (first, last, by)):
        raise NotImplementedError("a range of reals whose length may change")
    n = -((first - last) // by)
    return empty_strided([n], [1], dtype or torch.int64)


def _arange_from_0(end: Any, **options: Any) -> torch.Tensor:
    return _arange(0, end, **options)


def _of_dtype(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A view of the same bytes."""
    shape, strides, start = _layout(t)
    more, less = t.dtype.itemsize // dtype.itemsize, dtype.itemsize // t.dtype.itemsize
    if more > 1:
        shape[-1] = shape[-1] * more
        strides = [*[s * more for s in strides[:-1]], 1]
        start = start * more
    elif less > 1:
        if shape[-1] % less != 0 or start % less != 0 or any(s % less != 0 for s in strides[:-1]):
            raise NotImplementedError(f"{shape} as {dtype}")
        shape[-1] = shape[-1] // less
        strides = [*[s // less for s in strides[:-1]], 1]
        start = start // less
    made = torch.empty(0, dtype=dtype, device=_META)
    return made.set_(t.untyped_storage(), symint(start), symints(shape), symints(strides))


DIRECT: dict[Any, Callable] = {
    _aten.view.dtype: _of_dtype,
    _aten.empty.memory_format: _empty,
    _aten.zeros.default: _empty,
    _aten.ones.default: _empty,
    _aten.full.default: _empty,
    _aten.new_empty.default: _new,
    _aten.new_zeros.default: _new,
    _aten.new_ones.default: _new,
    _aten.new_full.default: _new,
    _aten.empty_strided.default: _new_strided,
    _aten.arange.default: _arange_from_0,
    _aten.arange.start: _arange,
    _aten.arange.start_step: _arange,
    _aten.view_as_real.default: _aten.view_as_real.default,
    _aten.view_as_complex.default: _aten.view_as_complex.default,
    _aten._conj.default: _aten._conj.default,
    _aten._neg_view.default: _aten._neg_view.default,
}

# -- shapes of results -----------------------------------------------------------------------------

_Shape = list[Any]


def broadcast(*args: Any, **kwargs: Any) -> _Shape:
    """Of a function by elements."""
    return _together([_extents(t) for t in tensors_of(args, kwargs)])


def _together(shapes: Sequence[_Shape]) -> _Shape:
    """Shapes broadcast against each other."""
    rank = max(map(len, shapes), default=0)
    found: _Shape = [1] * rank
    for shape in shapes:
        for d, n in enumerate(shape, rank - len(shape)):
            if (type(found[d]) is int and found[d] == 1) or (
                not (type(n) is int and n == 1) and found[d] != n and found[d] == 1
            ):
                found[d] = n
    return found


def _is_one(n: Any) -> bool:
    """Whether an extent is 1 whatever the sizes are."""
    return type(n) is int and n == 1


def _same(t: torch.Tensor, *_: Any, **__: Any) -> _Shape:
    return _extents(t)


def _same_twice(t: torch.Tensor, *_: Any, **__: Any) -> list[_Shape]:
    return [_extents(t), _extents(t)]


def _reduced(t: torch.Tensor, dim: Any = None, keepdim: bool = False, **_: Any) -> _Shape:
    shape = _extents(t)
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        gone = {*range(len(shape))}
    else:
        gone = {_axis(t, d) for d in ((dim,) if isinstance(dim, int) else dim)}
    if keepdim:
        return [1 if d in gone else n for d, n in enumerate(shape)]
    return [n for d, n in enumerate(shape) if d not in gone]


def _reduced_twice(t: torch.Tensor, *args: Any, **kwargs: Any) -> list[_Shape]:
    return [_reduced(t, *args, **kwargs)] * 2


def _all_reduced(t: torch.Tensor, **_: Any) -> _Shape:
    return []


def _varied(
    t: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> _Shape:
    return _reduced(t, dim, keepdim)


def _product(a: torch.Tensor, b: torch.Tensor) -> _Shape:
    """Of matrices, or stacks of them, or a matrix and a vector."""
    rows = _extents(a)[:-1]
    if _extents(a)[-1] != _extents(b)[-2 if b.dim() > 1 else 0]:
        raise NotImplementedError("a product of matrices that do not fit for all sizes")
    return [*rows, _extents(b)[-1]] if b.dim() > 1 else rows


def _square(t: torch.Tensor) -> _Shape:
    """Of a square matrix, or a stack of them."""
    shape = _extents(t)
    if shape[-1] != shape[-2]:
        raise NotImplementedError("a matrix that is not square for all sizes")
    return shape


def _solved(a: torch.Tensor, b: torch.Tensor, **_: Any) -> list[_Shape]:
    """The solution, the factors of the matrix, their pivots, and what went wrong."""
    shape = _square(a)
    if shape[-1] != _extents(b)[-1 if b.dim() == a.dim() - 1 else -2]:
        raise NotImplementedError("a system of equations that do not fit for all sizes")
    return [_extents(b), shape, shape[:-1], shape[:-2]]


def _with_note(t: torch.Tensor, **_: Any) -> list[_Shape]:
    """A matrix, and what went wrong."""
    return [_square(t), _square(t)[:-2]]


def _joined(parts: Sequence[torch.Tensor], dim: int = 0) -> _Shape:
    full = [t for t in parts if t.dim() != 1 or _extents(t) != [0]]
    shape = _extents(full[0])
    d = _axis(full[0], dim)
    for t in full[1:]:
        other = _extents(t)
        shape[d] = shape[d] + other[d]
        for axis, n in enumerate(other):
            if axis != d and n != shape[axis]:
                raise NotImplementedError("arrays joined that do not fit for all sizes")
    return shape


def _stacked(parts: Sequence[torch.Tensor], dim: int = 0) -> _Shape:
    shape = _together([_extents(t) for t in parts])
    d = dim % (len(shape) + 1)
    return [*shape[:d], len(parts), *shape[d:]]


def _repeated(t: torch.Tensor, repeats: Sequence[Any]) -> _Shape:
    shape = [1] * (len(repeats) - t.dim()) + _extents(t)
    return [n * r for n, r in zip(shape, _values(repeats), strict=True)]


def _indexed(t: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> _Shape:
    """Of integer arrays as indices: their shape stands where they stand, or before all others
    where they are not side by side."""
    shape = _extents(t)
    at = [d for d, index in enumerate(indices) if index is not None]
    chosen = _together([_extents(index) for index in indices if index is not None])
    rest = [n for d, n in enumerate(shape) if d not in at]
    beside = at[-1] - at[0] + 1 == len(at)
    before = at[0] if beside else 0
    return [*rest[:before], *chosen, *rest[before:]]


def _of_index(t: torch.Tensor, dim: int, index: torch.Tensor, *_: Any, **__: Any) -> _Shape:
    """As the index is."""
    return _extents(index)


def _index_selected(t: torch.Tensor, dim: int, index: torch.Tensor) -> _Shape:
    shape = _extents(t)
    if shape:
        shape[_axis(t, dim)] = _extents(index)[0] if index.dim() else 1
    return shape


def _searched(sorted_sequence: torch.Tensor, values: Any, **_: Any) -> _Shape:
    return _extents(values) if isinstance(values, torch.Tensor) else []


def _padded(t: torch.Tensor, pad: Sequence[Any], value: Any = 0) -> _Shape:
    """pad: before and after the elements of an axis, the last axis first."""
    shape, sides = _extents(t), _values(pad)
    for k in range(len(sides) // 2):
        shape[-1 - k] = shape[-1 - k] + sides[2 * k] + sides[2 * k + 1]
    return shape


def _convolved(
    t: torch.Tensor, weight: torch.Tensor, bias: Any, stride: Sequence[Any], padding: Sequence[Any],
    dilation: Sequence[Any], transposed: bool, *_: Any,
) -> _Shape:  # fmt: skip
    if transposed:
        raise NotImplementedError("a transposed convolution of sizes that may change")
    shape, kernel = _extents(t), _extents(weight)
    found = [shape[0], kernel[0]]
    for k, (n, m) in enumerate(zip(shape[2:], kernel[2:], strict=True)):
        by, pad, apart = (size_of(v[k % len(v)]) for v in (stride, padding, dilation))
        found.append((n + pad * 2 - apart * (m - 1) - 1) // by + 1)
    return found


def _half_transformed(t: torch.Tensor, dim: Sequence[int], _: int, onesided: bool) -> _Shape:
    shape = _extents(t)
    if onesided:
        shape[_axis(t, dim[-1])] = shape[_axis(t, dim[-1])] // 2 + 1
    return shape


def _real_transformed(t: torch.Tensor, dim: Sequence[int], _: int, last: Any) -> _Shape:
    shape = _extents(t)
    shape[_axis(t, dim[-1])] = size_of(last)
    return shape


# A copy of an array with a part replaced, laid out as the array is
SCATTERS = (
    _aten.slice_scatter.default,
    _aten.select_scatter.default,
    _aten.diagonal_scatter.default,
)
SHAPES: dict[Any, Callable] = {
    **dict.fromkeys(
        (
            _aten._to_copy.default, _aten.clone.default, _aten.lift_fresh_copy.default,
            _aten._conj_physical.default,
            _aten.empty_like.default, _aten.zeros_like.default, _aten.ones_like.default,
            _aten.full_like.default, _aten.flip.default, _aten.roll.default, _aten.copy.default,
            _aten.index_put.default, _aten.index_add.default, _aten.index_copy.default,
            _aten.index_fill.int_Scalar,
            _aten.scatter.src, _aten.scatter.value, _aten.scatter_add.default,
            _aten.scatter_reduce.two, _aten.cumsum.default, _aten.cumprod.default,
            _aten.tril.default, _aten.triu.default, _aten.bernoulli.p, _aten.logcumsumexp.default,
            _aten.masked_fill.Scalar, _aten.masked_fill.Tensor, _aten._softmax.default,
            *SCATTERS,
        ),
        _same,
    ),
    **dict.fromkeys(
        (
            _aten.sort.stable, _aten.sort.default, _aten.cummax.default, _aten.cummin.default,
        ),
        _same_twice,
    ),
    **dict.fromkeys(
        (
            _aten.sum.dim_IntList, _aten.mean.dim, _aten.prod.dim_int, _aten.amax.default,
            _aten.amin.default, _aten.any.dim, _aten.any.dims, _aten.all.dim, _aten.all.dims,
            _aten.argmax.default, _aten.argmin.default, _aten.logsumexp.default,
        ),
        _reduced,
    ),
    **dict.fromkeys((_aten.var.correction, _aten.std.correction), _varied),
    **dict.fromkeys((_aten.max.dim, _aten.min.dim), _reduced_twice),
    **dict.fromkeys(
        (
            _aten.sum.default, _aten.mean.default, _aten.prod.default, _aten.any.default,
            _aten.all.default, _aten.max.default, _aten.min.default,
        ),
        _all_reduced,
    ),
    **dict.fromkeys((_aten.mm.default, _aten.bmm.default, _aten.mv.default), _product),
    **dict.fromkeys(
        (_aten.linalg_inv_ex.default, _aten.linalg_cholesky_ex.default), _with_note
    ),
    _aten._linalg_solve_ex.default: _solved,
    _aten._linalg_det.default: lambda t: [_square(t)[:-2], _extents(t), _extents(t)[:-1]],
    _aten._linalg_slogdet.default: lambda t: [
        _square(t)[:-2], _extents(t)[:-2], _extents(t), _extents(t)[:-1],
    ],
    _aten._linalg_eigh.default: lambda t, *_: [_square(t)[:-1], _extents(t)],
    _aten.linalg_lu_solve.default: lambda lu, pivots, b, **_: _extents(b),
    _aten.linalg_solve_triangular.default: lambda a, b, **_: _extents(b),
    _aten.dot.default: lambda a, b: [],
    _aten.vdot.default: lambda a, b: [],
    _aten.where.self: broadcast,
    _aten.complex.default: broadcast,
    _aten.cat.default: _joined,
    _aten.stack.default: _stacked,
    _aten.repeat.default: _repeated,
    _aten.index.Tensor: _indexed,
    _aten.gather.default: _of_index,
    _aten.index_select.default: _index_selected,
    _aten.searchsorted.Tensor: _searched,
    _aten.searchsorted.Scalar: _searched,
    _aten.bucketize.Tensor: lambda t, boundaries, **_: _extents(t),
    _aten.constant_pad_nd.default: _padded,
    _aten.unfold_backward.default: lambda _, size, *__: list(map(size_of, size)),
    _aten.scalar_tensor.default: lambda *_, **__: [],
    _aten.convolution.default: _convolved,
    _aten._fft_c2c.default: _same,
    _aten._fft_r2c.default: _half_transformed,
    _aten._fft_c2r.default: _real_transformed,
}  # fmt: skip
