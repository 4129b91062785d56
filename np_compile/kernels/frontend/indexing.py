"""Translation rules of gathers, scatters and joins: loads and stores at computed indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from ..ir import expr as E
from ..ir.expr import Expr, new_axes, number
from ..ir.program import elements
from . import arrays, views
from .arrays import Array, of_torch
from .nodes import (
    args_of,
    argument_of,
    arguments_of,
    from_front,
    overload_of,
    schema_of,
    source_of,
    value_of,
)
from .reductions import scan


def _wrapped(index: Expr, extent: int, dim: int) -> Expr:
    """An element of an index array as an index: negative ones count from the end."""
    return E.wrap(E.as_index(index), extent, dim)


def _checked(index: Expr, extent: int, dim: int) -> Expr:
    """The same for an operator that takes no negative indices: they are out of bounds."""
    x = E.as_index(index)
    if E.bounds(x)[0] < 0:
        x = E.choose(E.scalar("lt", x, E.integer(0)), E.integer(extent), x)
    return E.wrap(x, extent, dim)


def _look(t: Any, axes: Sequence[Expr], place: Sequence[Expr], made: Sequence[Expr]) -> None:
    """Check those of the indices `place` that are not part of what was made with them: the one
    element of an axis, and equal elements, do not depend on the index."""
    if any(a.extent == 0 for a in axes):
        return
    used = set(E.walk(*made))
    for x in place:
        if x.op == "wrap" and x not in used:
            over = tuple(a for a in axes if a in E.axes_of(x))
            more = {"op": "max", "over": over} if over else {}
            t.add(over, t.fresh("i64", ()), (), x, **more)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape to which arrays of these broadcast, which is known to be one."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    return tuple(next((n for n in extents if n != 1), 1) for extents in zip(*padded, strict=True))


def _indexed(source: Array, indices: Sequence[Array | None]) -> tuple | None:
    """Axes of `source[indices]`, and the index into source, by NumPy's rules for integer arrays."""
    found = {k: i for k, i in enumerate(indices) if i is not None}
    given = list(found)
    if not given or any(i.dtype == "bool" for i in found.values()):
        return None
    common = _broadcast([i.shape for i in found.values()])
    together = new_axes(common)
    adjacent = given == list(range(given[0], given[-1] + 1))
    kept = [k for k in range(len(source.axes)) if k not in found]
    own = {k: E.axis(source.shape[k], "s") for k in kept}
    place: list[Expr] = []
    for k, extent in enumerate(source.shape):
        if k in own:
            place.append(own[k])
        else:
            element = found[k].broadcast(common).at(together)[0]
            place.append(_wrapped(element, extent, k))
    before = [own[k] for k in kept if k < given[0]] if adjacent else []
    after = [own[k] for k in kept if not adjacent or k > given[0]]
    return (*before, *together, *after), place


def _index_list(t: Any, args: Any) -> list[Array | None]:
    return [None if a is None else t.array(a) for a in args]


def _index(t: Any, node: fx.Node) -> Array | None:
    source = t.array(args_of(node)[0])
    found = _indexed(source, _index_list(t, args_of(node)[1]))
    if found is None or tuple(a.extent for a in found[0]) != tuple(node.meta["val"].shape):
        return None
    axes, place = found
    parts = source.at(place)
    _look(t, axes, place, parts)
    return Array(axes, parts)


def _select(t: Any, node: fx.Node) -> Array | None:
    source, dim, index = t.array(args_of(node)[0]), args_of(node)[1], t.array(args_of(node)[2])
    rank = len(source.axes)
    if rank == 0 or len(index.axes) != 1:
        return None
    dim = from_front(dim, rank)
    shape = list(source.shape)
    shape[dim] = index.shape[0]

    def place(*a: Expr) -> list[Expr]:
        parts = list(a)
        parts[dim] = _checked(index.at((a[dim],))[0], source.shape[dim], dim)
        return parts

    return _viewed(t, source, shape, place)


def _gather(t: Any, node: fx.Node) -> Array | None:
    source, dim, index = t.array(args_of(node)[0]), args_of(node)[1], t.array(args_of(node)[2])
    rank = len(source.axes)
    if rank == 0:
        return None
    dim = from_front(dim, rank)

    def place(*a: Expr) -> list[Expr]:
        parts = list(a)
        parts[dim] = _checked(index.at(a)[0], source.shape[dim], dim)
        return parts

    return _viewed(t, source, index.shape, place)


def _viewed(t: Any, source: Array, shape: Sequence[int], place: Callable[..., list[Expr]]) -> Array:
    """A view at computed indices."""
    made = source.view(shape, place)
    _look(t, made.axes, place(*made.axes), made.parts)
    return made


def _scatter_to(
    t: Any, target: Array, axes: Any, place: Sequence[Expr], parts: Any, op: str | None
) -> Array | None:
    """target[place] = parts, or += with op="sum", over all values of `axes`. Gives target."""
    memory = target.at(place)
    for destination, part in zip(memory, parts, strict=True):
        value = E.cast(part, target.dtype)
        if destination.op == "bitcast" and op is None:
            destination = destination.args[0]
            value = E.bitcast(value, destination.dtype)
        if destination.op != "load":
            return None
        t.add(axes, destination.value, destination.args, value, op=op)
    _look(t, axes, place, [i for d in memory for i in E.walk(d)])
    return target


def _own(t: Any, node: fx.Node, in_place: bool) -> Array:
    """What is written to: the argument itself, or a copy of it."""
    target = t.array(args_of(node)[0])
    return target if in_place else t.copy(target, source_of(node).meta["val"])


def _index_put(t: Any, node: fx.Node) -> Array | None:
    in_place = schema_of(node).name.endswith("_")
    accumulate = bool(argument_of(node, "accumulate", False))
    target = t.array(args_of(node)[0])
    indices = _index_list(t, args_of(node)[1])
    values = t.cast(t.array(args_of(node)[2]), source_of(node).meta["val"].dtype)
    masks = [k for k, i in enumerate(indices) if i is not None and i.dtype == "bool"]
    if masks:
        return _masked_put(t, node, target, indices, values, in_place, accumulate)
    if _indexed(target, indices) is None:
        return None
    values = t.apart(values, target)
    indices = [None if i is None else t.apart(i, target) for i in indices]
    target = _own(t, node, in_place)
    found = _indexed(target, indices)
    assert found is not None
    axes, place = found
    parts = values.broadcast([a.extent for a in axes]).at(axes)
    if accumulate and target.dtype == "bool":
        return None
    return _scatter_to(t, target, axes, place, parts, "sum" if accumulate else None)


def _masked_put(
    t: Any, node: fx.Node, target: Array, indices: list, values: Array, in_place: bool, add: bool
) -> Array | None:
    """x[mask] = one value: a choice for each element."""
    if add or len(indices) != 1 or elements(values.shape) != 1:
        return None
    mask = indices[0]
    single = values.reshape(()).parts
    axes = target.axes
    chosen = mask.at(axes[: len(mask.axes)])[0]
    return Array(
        axes,
        tuple(E.scalar("where", chosen, s, p) for s, p in zip(single, target.parts, strict=True)),
    )


_SCATTERS = {"sum": "sum", "prod": "prod", "amax": "max", "amin": "min"}


def _scatter(t: Any, node: fx.Node) -> Array | None:
    """scatter.src, scatter.value, scatter_add, scatter_reduce."""
    name = schema_of(node).name
    in_place = name.endswith("_")
    overload = overload_of(node)
    if overload not in ("src", "value", "default", "two"):
        return None
    target = t.array(args_of(node)[0])
    dim, index = args_of(node)[1], t.array(args_of(node)[2])
    rank = len(target.axes)
    if rank == 0:
        return None
    op = "sum" if "scatter_add" in name else None
    if overload == "two":
        kind = args_of(node)[4]
        op = _SCATTERS.get(kind)
        if op is None or node.kwargs.get("include_self", True) is not True:
            return None
    dim = from_front(dim, rank)
    value = args_of(node)[3]
    if op is not None and (target.dtype == "bool" or (target.complex and op != "sum")):
        return None
    if isinstance(value, fx.Node):
        source = t.apart(t.cast(t.array(value), node.meta["val"].dtype), target)
    else:
        source = t.scalar_array(value, index.shape, node.meta["val"].dtype)
    index = t.apart(index, target)
    target = _own(t, node, in_place)
    axes = index.axes
    place: list[Expr] = list(axes)
    place[dim] = _checked(index.parts[0], target.shape[dim], dim)
    return _scatter_to(t, target, axes, place, source.at(axes), op)


def _index_add(t: Any, node: fx.Node) -> Array | None:
    in_place = schema_of(node).name.endswith("_")
    target, dim = t.array(args_of(node)[0]), args_of(node)[1]
    rank = len(target.axes)
    if rank == 0 or node.kwargs.get("alpha", 1) != 1 or target.dtype == "bool":
        return None
    dim = from_front(dim, rank)
    source = t.apart(t.array(args_of(node)[3]), target)
    index = t.apart(t.array(args_of(node)[2]), target)
    target = _own(t, node, in_place)
    axes = source.axes
    place: list[Expr] = list(axes)
    place[dim] = _checked(index.at((axes[dim],))[0], target.shape[dim], dim)
    return _scatter_to(t, target, axes, place, source.parts, "sum")


def _cat(t: Any, node: fx.Node) -> Array | None:
    """Each piece is stored where it belongs."""
    name = schema_of(node).name
    value = node.meta["val"]
    pieces = [t.cast(t.array(x), value.dtype) for x in args_of(node)[0]]
    rank = len(value.shape)
    dim = from_front(argument_of(node, "dim", 0), rank)
    if name.endswith("stack"):
        pieces = [p.unsqueeze(dim) for p in pieces]
    else:
        pieces = [p for p in pieces if len(p.axes) == rank]
    whole = t.empty(value)
    start = 0
    for p in pieces:
        length = p.shape[dim]
        t.write(whole.slice(dim, start, length, 1), p)
        start += length
    return whole


def _pad(t: Any, node: fx.Node) -> Array | None:
    """constant_pad_nd: pads of the last axes first; negative ones cut."""
    value = node.meta["val"]
    source = t.array(args_of(node)[0])
    pads: Any = args_of(node)[1]
    fill = argument_of(node, "value", 0)
    rank = len(source.axes)
    whole = t.empty(value)
    t.write(whole, t.scalar_array(fill, (), value.dtype))
    inner = whole
    for k in range(len(pads) // 2):
        dim = rank - 1 - k
        before, after = pads[2 * k], pads[2 * k + 1]
        start, cut = max(before, 0), max(-before, 0)
        length = source.shape[dim] - cut - max(-after, 0)
        inner = inner.slice(dim, start, length, 1)
        source = source.slice(dim, cut, length, 1)
    t.write(inner, source)
    return whole


def _triangle(lower: bool) -> Callable[[Any, fx.Node], Array | None]:
    def rule(t: Any, node: fx.Node) -> Array | None:
        source = t.array(args_of(node)[0])
        k = argument_of(node, "diagonal", 0)
        row, column = source.axes[-2:]
        test = E.scalar("le" if lower else "ge", column, E.plus(row, k))
        zero = number(0, source.dtype)
        return Array(source.axes, tuple(E.scalar("where", test, p, zero) for p in source.parts))

    return rule


def _select_scatter(t: Any, node: fx.Node) -> Array | None:
    """A copy of an array with a part replaced: select_scatter, slice_scatter, diagonal_scatter."""
    name = schema_of(node).name
    value = node.meta["val"]
    whole = t.copy(t.array(args_of(node)[0]), value)
    source = t.cast(t.array(args_of(node)[1]), value.dtype)
    if "diagonal" in name:
        t.write(views.diagonal_of(whole, node), source)
        return whole
    if "select" in name:
        given = arguments_of(node)
        dim = from_front(given.get("dim", 0), len(whole.axes))
        part = whole.select(dim, from_front(given["index"], whole.shape[dim]))
    else:
        part = views.slice_of(whole, node, source.shape)
    t.write(part, source)
    return whole


def _eye(t: Any, node: fx.Node) -> Array | None:
    value = node.meta["val"]
    dtype, is_complex = of_torch(value.dtype)
    if is_complex:
        return None
    axes = new_axes(value.shape)
    return Array(axes, (E.cast(E.scalar("eq", *axes), dtype),))


def _search(t: Any, node: fx.Node) -> Array | None:
    """searchsorted in one sorted axis: halving steps, as many for each value."""
    base = t.array(args_of(node)[0])
    wanted = args_of(node)[1]
    if len(base.axes) != 1 or node.kwargs.get("sorter") is not None:
        return None
    right = node.kwargs.get("right", False) or node.kwargs.get("side") == "right"
    common = torch.result_type(source_of(node).meta["val"], value_of(wanted))
    if common.is_complex:
        return None
    base = t.cast(base, common)
    if not arrays.element_of(base.parts[0]):
        base = t.materialize(base)
    sought = t.operand(wanted, common)
    axes, value = sought.axes, sought.parts[0]
    extent = base.shape[0]
    found: Expr = E.integer(0)
    step = 1 << max(extent.bit_length() - 1, 0)
    while step and extent:
        there = E.plus(found, step)
        # Clamped, so that every load lies within; the test below leaves those beyond out.
        last = E.choose(E.scalar("lt", there, E.integer(extent)), there, E.integer(extent))
        element = base.at((E.plus(last, -1),))[0]
        passed = E.scalar("le" if right else "lt", element, value)
        if value.dtype[0] in "fb" and value.dtype != "bool":
            passed = E.scalar("or", passed, E.scalar("isnan", value))
        further = E.scalar("and", passed, E.scalar("le", there, E.integer(extent)))
        held = t.fresh("i64", sought.shape)
        t.add(axes, held, axes, E.choose(further, there, found))
        found = E.load(held, axes)
        step >>= 1
    return Array(axes, (E.cast(found, of_torch(node.meta["val"].dtype)[0]),))


def _masked_scatter(t: Any, node: fx.Node) -> Array | None:
    """Where the mask holds, the next element of the source: a running count says which."""
    shape = tuple(node.meta["val"].shape)
    target = t.array(args_of(node)[0]).broadcast(shape)
    mask = t.array(args_of(node)[1]).broadcast(shape)
    source = t.cast(t.array(args_of(node)[2]), node.meta["val"].dtype)
    count = elements(source.shape)
    if not count or not shape:
        return None
    taken = mask.reshape((elements(shape),)).map(lambda p: E.cast(p, "i64"))
    place = scan(t, "sum", taken, 0).reshape(shape).at(target.axes)[0]
    nth = E.wrap(E.plus(place, -1), count, 0)
    chosen = mask.at(target.axes)[0]
    parts = source.reshape((count,)).at((nth,))
    return Array(
        target.axes,
        tuple(E.scalar("where", chosen, p, q) for p, q in zip(parts, target.parts, strict=True)),
    )


RULES: dict[str, Callable[[Any, fx.Node], Any]] = {
    "index": _index,
    "_unsafe_index": _index,
    "index_select": _select,
    "gather": _gather,
    "index_put": _index_put,
    "_unsafe_index_put": _index_put,
    "scatter": _scatter,
    "scatter_add": _scatter,
    "scatter_reduce": _scatter,
    "index_add": _index_add,
    "cat": _cat,
    "stack": _cat,
    "constant_pad_nd": _pad,
    "tril": _triangle(True),
    "triu": _triangle(False),
    "select_scatter": _select_scatter,
    "slice_scatter": _select_scatter,
    "diagonal_scatter": _select_scatter,
    "eye": _eye,
    "searchsorted": _search,
    "masked_scatter": _masked_scatter,
}
