"""Translation rules of views: maps of indices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from torch import fx

from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import new_axes, number
from ..ir.program import Buffer, elements
from . import arrays
from .arrays import Array, of_torch
from .nodes import args_of, argument_of, arguments_of, from_front, overload_of


def _source(t: Any, node: fx.Node) -> Array:
    return t.array(args_of(node)[0])


def _shape(node: fx.Node) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)


def _same(t: Any, node: fx.Node) -> Array:
    return _source(t, node)


def _reshape(t: Any, node: fx.Node) -> Any:
    if overload_of(node) == "dtype":
        return _bits(t, node)
    return _source(t, node).reshape(_shape(node))


def _bits(t: Any, node: fx.Node) -> Any:
    """The same memory under another dtype."""
    source, value = _source(t, node), node.meta["val"]
    dtype, is_complex = of_torch(value.dtype)
    if source.complex:
        source = _real_pairs(source)
        source = source.reshape((*source.shape[:-2], 2 * source.shape[-2]))
    if is_complex:
        halves = tuple(source.shape[:-1])
        pairs = _bits_of(source, (*halves, 2 * value.shape[-1]), dtype)
        return pairs and _complex_of(pairs.reshape((*value.shape, 2)))
    return _bits_of(source, _shape(node), dtype)


def _bits_of(source: Array, shape: tuple[int, ...], dtype: str) -> Array | None:
    """Real elements under another dtype; None where no expression says it."""
    if source.dtype == dtype:
        return source
    if DTYPES[dtype].narrow or DTYPES[source.dtype].narrow:
        return None
    if "bool" in (dtype, source.dtype):
        return None
    ratio = DTYPES[source.dtype].size / DTYPES[dtype].size
    if ratio == 1:
        return source.map(lambda p: E.bitcast(p, dtype))
    if ratio > 1:
        return _pieces(source, shape, int(ratio), dtype)
    return _joined(source, shape, int(1 / ratio), dtype)


def _unsigned(dtype: str) -> str:
    return f"u{DTYPES[dtype].bits}"


def _pieces(source: Array, shape: tuple[int, ...], count: int, dtype: str) -> Array:
    """Each element as `count` of a narrower dtype, along the last axis."""
    wide, narrow = _unsigned(source.dtype), _unsigned(dtype)
    axes = new_axes(shape)
    whole = E.bitcast(source.at((*axes[:-1], E.floordiv(axes[-1], count)))[0], wide)
    shift = E.times(E.mod(axes[-1], count), DTYPES[dtype].bits)
    piece = E.cast(E.scalar("rshift", whole, E.cast(shift, wide)), narrow)
    return Array(axes, (E.bitcast(piece, dtype),))


def _joined(source: Array, shape: tuple[int, ...], count: int, dtype: str) -> Array:
    """Each `count` elements along the last axis as one of a wider dtype."""
    wide, narrow = _unsigned(dtype), _unsigned(source.dtype)
    axes = new_axes(shape)
    total: E.Expr | None = None
    for k in range(count):
        place = (*axes[:-1], E.plus(E.times(axes[-1], count), k))
        part = E.cast(E.bitcast(source.at(place)[0], narrow), wide)
        if k:
            part = E.scalar("lshift", part, number(k * DTYPES[narrow].bits, wide))
        total = part if total is None else E.scalar("or", total, part)
    assert total is not None
    return Array(axes, (E.bitcast(total, dtype),))


def _expand(t: Any, node: fx.Node) -> Array:
    return _source(t, node).broadcast(_shape(node))


def _permute(t: Any, node: fx.Node) -> Array:
    source = _source(t, node)
    rank = len(source.axes)
    return source.permute([from_front(d, rank) for d in args_of(node)[1]])


def _transpose(t: Any, node: fx.Node) -> Array:
    source = _source(t, node)
    rank = len(source.axes)
    order = list(range(rank))
    if rank >= 2:
        given = arguments_of(node)
        a, b = (from_front(given.get(n, d), rank) for n, d in (("dim0", 0), ("dim1", 1)))
        order[a], order[b] = b, a
    return source.permute(order)


def _slice(t: Any, node: fx.Node) -> Array:
    return slice_of(_source(t, node), node, _shape(node))


def slice_of(source: Array, node: fx.Node, shape: Sequence[Any]) -> Array:
    """The slice, of this shape, that a node names among its arguments."""
    given = arguments_of(node)
    dim = from_front(given.get("dim", 0), len(source.axes))
    start, step = given.get("start"), given.get("step", 1)
    length = shape[dim]
    begin = 0 if start is None or length == 0 else from_front(start, source.shape[dim])
    return source.slice(dim, max(begin, 0), length, step)


def _select(t: Any, node: fx.Node) -> Array:
    source = _source(t, node)
    dim = from_front(args_of(node)[1], len(source.axes))
    return source.select(dim, from_front(args_of(node)[2], source.shape[dim]))


def _unsqueeze(t: Any, node: fx.Node) -> Array:
    source = _source(t, node)
    return source.unsqueeze(from_front(args_of(node)[1], len(source.axes) + 1))


def _squeeze(t: Any, node: fx.Node) -> Array:
    source = _source(t, node)
    rank = len(source.axes)
    if len(args_of(node)) == 1:
        chosen = set(range(rank))
    else:
        dims = args_of(node)[1]
        dims = dims if isinstance(dims, (list, tuple)) else (dims,)
        chosen = {from_front(d, rank) for d in dims}
    for dim in sorted(chosen, reverse=True):
        if rank and source.shape[dim] == 1:
            source = source.select(dim, 0)
    return source


def _diagonal(t: Any, node: fx.Node) -> Array:
    return diagonal_of(_source(t, node), node)


def diagonal_of(source: Array, node: fx.Node, axes: tuple[int, int] = (0, 1)) -> Array:
    """The diagonal that a node's arguments name, of `axes` if they name none."""
    given = arguments_of(node)
    dims = given.get("dim1", axes[0]), given.get("dim2", axes[1])
    rows, columns = (from_front(d, len(source.axes)) for d in dims)
    return diagonal(source, given.get("offset", 0), rows, columns)


def diagonal(source: Array, offset: int, first: int, second: int) -> Array:
    """The elements whose index along axis `second` exceeds that along `first` by `offset`."""
    rows, columns = source.shape[first], source.shape[second]
    length = min(rows + min(offset, 0), columns - max(offset, 0))
    kept = [n for k, n in enumerate(source.shape) if k not in (first, second)]

    def index(*a: E.Expr) -> list[E.Expr]:
        rest = list(a[:-1])
        both = {first: E.plus(a[-1], max(-offset, 0)), second: E.plus(a[-1], max(offset, 0))}
        for dim in sorted(both):
            rest.insert(dim, both[dim])
        return rest

    return source.view((*kept, max(length, 0)), index)


def _as_strided(t: Any, node: fx.Node) -> Array | None:
    """Where every place in memory is an index of the buffer that the source lies in."""
    source = _source(t, node)
    place = arrays.place_of(source.parts[0])
    if place is None:
        return None
    buffer, pair = place[0], 2 if source.complex else 1
    shape, strides = _shape(node), args_of(node)[2]
    offset = argument_of(node, "storage_offset")
    if offset is None:
        lies = arrays.strided(source)
        if lies is None:
            return None
        start = lies[1]
    else:
        start = (offset - t.root(node).meta["val"].storage_offset()) * pair
    axes = new_axes(shape)
    flat: E.Expr = E.integer(start)
    for a, s in zip(axes, strides, strict=True):
        flat = E.plus(flat, E.times(a, s * pair))
    parts = []
    for k, part in enumerate(source.parts):
        steps = [(a, n, s * pair) for a, n, s in zip(axes, shape, strides, strict=True)]
        index = _steps_along(start + k, steps, buffer) or _index_of(E.plus(flat, k), buffer)
        if index is None:
            return None
        parts.append(E.bitcast(E.load(buffer, index), part.dtype))
    return Array(axes, tuple(parts))


def _steps_along(
    start: Any, steps: list[tuple[E.Expr, Any, Any]], buffer: Buffer
) -> list[E.Expr] | None:
    """The index of the elements that steps lead to, from a place in memory on, if each step is as
    many along each axis of the buffer: so along diagonals. steps: (axis, extent, stride)."""
    dims = [d for d, n in enumerate(buffer.shape) if n != 1 and buffer.strides[d] != 0]
    dims.sort(key=lambda d: -buffer.strides[d])
    units = [buffer.strides[d] for d in dims]
    extents = [n for _, n, _ in steps]
    sizes = [start, *units, *extents, *(s for _, _, s in steps)]
    if not all(type(x) is int for x in sizes) or min(units, default=0) < 0 or 0 in extents:
        return None
    distances = [start, *(s for _, _, s in steps)]
    for first, *found in itertools.product(*(_along(x, units) for x in distances)):
        ends = [[c * (n - 1) for c in along] for (_, n, _), along in zip(steps, found, strict=True)]
        for k, d in enumerate(dims):
            low = first[k] + sum(min(e[k], 0) for e in ends)
            high = first[k] + sum(max(e[k], 0) for e in ends)
            if low < 0 or high >= buffer.shape[d]:
                break
        else:
            index: list[E.Expr] = [E.integer(0)] * len(buffer.shape)
            for k, d in enumerate(dims):
                index[d] = E.integer(first[k])
                for (a, _, _), along in zip(steps, found, strict=True):
                    index[d] = E.plus(index[d], E.times(a, along[k]))
            return index
    return None


def _along(distance: int, units: list[int]) -> list[list[int]]:
    """The ways to go a distance by steps of these lengths, the longest first: of each as many as go
    in, or one more, from which the others lead back."""
    if not units:
        return [] if distance else [[]]
    n, left = divmod(distance, units[0])
    most = [n, n + 1] if left else [n]
    return [[k, *rest] for k in most for rest in _along(distance - k * units[0], units[1:])]


def _index_of(position: E.Expr, buffer: Buffer) -> list[E.Expr] | None:
    """The index of the element at a place in memory, counted from the buffer's first."""
    index: list[E.Expr] = [E.integer(0)] * len(buffer.shape)
    order = sorted(range(len(index)), key=lambda d: -buffer.strides[d])
    for d in order:
        stride, extent = buffer.strides[d], buffer.shape[d]
        if extent == 1 or stride == 0:
            continue
        if stride < 0:
            return None
        index[d] = E.floordiv(position, stride)
        position = E.mod(position, stride)
        low, high = E.bounds(index[d])
        if low < 0 or high >= extent:
            return None
    return index if E.bounds(position) == (0, 0) else None


def _as_real(t: Any, node: fx.Node) -> Array:
    return _real_pairs(_source(t, node))


def _real_pairs(source: Array) -> Array:
    """Complex elements as real ones, with a last axis for the two parts."""
    last = E.axis(2, "p")
    re, im = (arrays.element_of(p) for p in source.parts)
    if re is not None and im is not None and re[0] is im[0] and re[1][:-1] == im[1][:-1]:
        buffer, index = re
        if (index[-1].value, im[1][-1].value) == (0, 1):
            return Array((*source.axes, last), (E.load(buffer, (*index[:-1], last)),))
    real = E.scalar("eq", last, E.integer(0))
    return Array((*source.axes, last), (E.scalar("where", real, *source.parts),))


def _as_complex(t: Any, node: fx.Node) -> Array:
    return _complex_of(_source(t, node))


def _complex_of(source: Array) -> Array:
    """Real elements, pairs along the last axis, as complex ones."""
    axes = source.axes[:-1]
    return Array(axes, tuple(source.at((*axes, E.integer(k)))[0] for k in (0, 1)))


def _real(t: Any, node: fx.Node) -> Array:
    source = _source(t, node)
    return Array(source.axes, source.parts[:1])


def _imag(t: Any, node: fx.Node) -> Array:
    source = _source(t, node)
    return Array(source.axes, source.parts[1:])


def _unbind(t: Any, node: fx.Node) -> tuple[Array, ...]:
    source = _source(t, node)
    dim = from_front(argument_of(node, "dim", 0), len(source.axes))
    return tuple(source.select(dim, k) for k in range(source.shape[dim]))


def _split(t: Any, node: fx.Node) -> tuple[Array, ...]:
    source = _source(t, node)
    dim = from_front(argument_of(node, "dim", 0), len(source.axes))
    parts, start = [], 0
    for piece in node.meta["val"]:
        length = piece.shape[dim]
        parts.append(source.slice(dim, start, length, 1))
        start += length
    return tuple(parts)


def _unfold(t: Any, node: fx.Node) -> Array:
    source = _source(t, node)
    dim, _size, step = args_of(node)[1:4]
    dim = from_front(dim, len(source.axes))

    def index(*a: E.Expr) -> list[E.Expr]:
        parts = list(a[:-1])
        parts[dim] = E.plus(E.times(a[dim], step), a[-1])
        return parts

    return source.view(_shape(node), index)


def _flip(t: Any, node: fx.Node) -> Array:
    source = _source(t, node)
    rank = len(source.axes)
    dims = {from_front(d, rank) for d in args_of(node)[1]}

    def index(*a: E.Expr) -> list[E.Expr]:
        return [
            E.plus(E.times(x, -1), n - 1) if k in dims else x
            for k, (x, n) in enumerate(zip(a, source.shape, strict=True))
        ]

    return source.view(source.shape, index)


def _roll(t: Any, node: fx.Node) -> Array:
    """roll(x, shifts, dims): the index wraps around once."""
    source = _source(t, node)
    shifts = args_of(node)[1]
    dims = argument_of(node, "dims")
    shifts = shifts if isinstance(shifts, (list, tuple)) else [shifts]
    if not dims:
        flat = source.reshape((elements(source.shape),))
        return _rolled(flat, {0: shifts[0]}).reshape(source.shape)
    total: dict[int, int] = {}
    for s, d in zip(shifts, dims, strict=True):
        d = from_front(d, len(source.axes))
        total[d] = total.get(d, 0) + s
    return _rolled(source, total)


def _rolled(source: Array, shifts: dict[int, int]) -> Array:
    def index(*a: E.Expr) -> list[E.Expr]:
        parts = list(a)
        for d, s in shifts.items():
            n = source.shape[d]
            s = s % n if n else 0
            if s:
                parts[d] = E.mod(E.plus(a[d], n - s), n)
        return parts

    return source.view(source.shape, index)


def _repeat(t: Any, node: fx.Node) -> Array:
    source = _source(t, node)
    shape = _shape(node)
    lead = len(shape) - len(source.axes)

    def index(*a: E.Expr) -> list[E.Expr]:
        return [E.mod(x, n) if n else x for x, n in zip(a[lead:], source.shape, strict=True)]

    return source.view(shape, index)


def _diagonal_matrix(t: Any, node: fx.Node) -> Array:
    """diag_embed: zeros, and the last axis on the diagonal of two new ones."""
    value = node.meta["val"]
    whole = t.empty(value)
    t.write(whole, t.scalar_array(0, (), value.dtype))
    t.write(diagonal_of(whole, node, (-2, -1)), _source(t, node))
    return whole


def _conjugate(t: Any, node: fx.Node) -> Array:
    source = _source(t, node)
    if not source.complex:
        return source
    return Array(source.axes, (source.parts[0], E.scalar("neg", source.parts[1])))


# Views of memory. A rule gives None where it does not apply.
RULES: dict[str, Callable[[Any, fx.Node], Any]] = {
    "alias": _same,
    "detach": _same,
    "lift": _same,
    "lift_fresh": _same,
    "expand": _expand,
    "permute": _permute,
    "transpose": _transpose,
    "t": _transpose,
    "slice": _slice,
    "select": _select,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "view": _reshape,
    "_unsafe_view": _reshape,
    "_reshape_alias": _reshape,
    "diagonal": _diagonal,
    "as_strided": _as_strided,
    "view_as_real": _as_real,
    "view_as_complex": _as_complex,
    "real": _real,
    "imag": _imag,
    "unbind": _unbind,
    "split": _split,
    "split_with_sizes": _split,
    "unfold": _unfold,
}

# Rearrangements that make new memory in torch, and are maps of indices all the same.
COPIES: dict[str, Callable[[Any, fx.Node], Any]] = {
    "flip": _flip,
    "roll": _roll,
    "repeat": _repeat,
    "_conj": _conjugate,
    "diag_embed": _diagonal_matrix,
}


def unknown_alias(operator: Any) -> bool:
    """Whether an operator gives a view of its argument."""
    returns = operator._schema.returns
    return any(r.alias_info is not None and not r.alias_info.is_write for r in returns)
