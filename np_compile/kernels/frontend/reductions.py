"""Translation rules of reductions and scans, and the dtypes that they accumulate in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torch import fx

from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr, number
from ..ir.program import elements
from . import arrays
from .arrays import Array, of_torch
from .nodes import args_of, arguments_of, from_front, overload_of


def _dims(dims: Any, rank: int) -> tuple[int, ...]:
    """Axes as torch's argument names them: None or nothing means all."""
    if dims is None or (isinstance(dims, (tuple, list)) and not dims):
        return tuple(range(rank))
    if isinstance(dims, int):
        dims = (dims,)
    return tuple(sorted(from_front(d, rank) for d in dims)) if rank else ()


def accumulator(op: str, dtype: str) -> str:
    """The dtype in which a reduction runs: narrow floats are summed in float32, as NumPy does."""
    return "f32" if DTYPES[dtype].narrow and op in ("sum", "prod") else dtype


def reduce(
    t: Any, op: str, source: Array, dims: Sequence[int], keepdim: bool, parts: Sequence[Expr],
    result: str,
) -> Array:  # fmt: skip
    """Arrays of reductions, one for each part, cast to the dtype `result`."""
    kept = [k for k in range(len(source.axes)) if k not in dims]
    over = tuple(source.axes[k] for k in dims)
    axes = tuple(source.axes[k] for k in kept)
    made = []
    for part in parts:
        b = t.fresh(_element(op, part.dtype), [a.extent for a in axes])
        empty = any(a.extent == 0 for a in over)
        if empty or not over:
            value = _identity(op, b.dtype) if empty else _single(op, part)
            t.add(axes, b, axes, value)
        else:
            rank = arrays.ravel(over, [a.extent for a in over]) if op.startswith("arg") else None
            t.add((*axes, *over), b, axes, part, op=op, over=over, rank=rank)
        made.append(E.cast(E.load(b, axes), result))
    shape = [1 if k in dims else n for k, n in enumerate(source.shape)]
    whole = Array(axes, tuple(made))
    if not keepdim:
        return whole
    return whole.view(shape, lambda *a: [a[k] for k in kept])


def _element(op: str, dtype: str) -> str:
    if op in ("argmin", "argmax"):
        return "i64"
    if op in ("any", "all"):
        return "bool"
    return accumulator(op, dtype)


def _identity(op: str, dtype: str) -> Expr:
    return number({"sum": 0, "prod": 1, "any": False, "all": True}.get(op, 0), dtype)


def _single(op: str, x: Expr) -> Expr:
    return E.integer(0) if op in ("argmin", "argmax") else x


def _fold(op: str, t: Any, node: fx.Node) -> Array | None:
    given = arguments_of(node)
    source = t.array(given["self"])
    value = node.meta["val"]
    dtype, is_complex = of_torch(value.dtype)
    if is_complex and op != "sum":
        return None
    if op in ("sum", "prod"):
        source = t.cast(source, value.dtype)
        wide = accumulator(op, dtype)
        source = source.map(lambda p: E.cast(p, wide))
    elif op in ("any", "all"):
        source = t.truth(source)
    elif source.complex:
        return None
    dims = _dims(given.get("dim"), len(source.axes))
    return reduce(t, op, source, dims, given.get("keepdim", False), source.parts, dtype)


def _mean(t: Any, node: fx.Node) -> Array | None:
    given = arguments_of(node)
    value = node.meta["val"]
    dtype, is_complex = of_torch(value.dtype)
    if is_complex:
        return None
    source = t.cast(t.array(given["self"]), value.dtype)
    wide = accumulator("sum", dtype)
    source = source.map(lambda p: E.cast(p, wide))
    dims = _dims(given.get("dim"), len(source.axes))
    count = elements(source.shape[k] for k in dims)
    total = reduce(t, "sum", source, dims, given.get("keepdim", False), source.parts, wide)
    return total.map(lambda p: E.cast(E.scalar("div", p, number(count, wide)), dtype))


def _extremum(op: str, t: Any, node: fx.Node) -> Any:
    """max.default, max.dim and their like."""
    overload = overload_of(node)
    given = arguments_of(node)
    source = t.array(given["self"])
    if source.complex or overload not in ("default", "dim"):
        return None
    dims = _dims(given.get("dim"), len(source.axes))
    keep = given.get("keepdim", False)
    best = reduce(t, op, source, dims, keep, source.parts, source.dtype)
    if overload == "default":
        return best
    return best, reduce(t, f"arg{op}", source, dims, keep, source.parts, "i64")


def _argument(op: str, t: Any, node: fx.Node) -> Array | None:
    given = arguments_of(node)
    source = t.array(given["self"])
    if source.complex:
        return None
    dims = _dims(given.get("dim"), len(source.axes))
    return reduce(t, op, source, dims, given.get("keepdim", False), source.parts, "i64")


def _running(op: str, t: Any, node: fx.Node) -> Array | None:
    """cumsum, cumprod."""
    value = node.meta["val"]
    _, is_complex = of_torch(value.dtype)
    if is_complex and op != "sum":
        return None
    return scan(t, op, t.cast(t.array(args_of(node)[0]), value.dtype), args_of(node)[1])


def _running_extremum(op: str, t: Any, node: fx.Node) -> tuple[Array, Array] | None:
    """cummax, cummin, where nothing asks for the positions."""
    source = t.array(args_of(node)[0])
    if source.complex or any(args_of(user)[1] != 0 for user in node.users):
        return None
    return scan(t, op, source, args_of(node)[1]), arrays.constant(source.shape, E.integer(0))


def scan(t: Any, op: str, source: Array, dim: Any) -> Array:
    """The results so far along an axis."""
    rank = len(source.axes)
    if rank == 0:
        return source
    over = (source.axes[from_front(dim, rank)],)
    made = []
    for part in source.parts:
        b = t.fresh(part.dtype, source.shape)
        t.add(source.axes, b, source.axes, part, op=op, over=over, scan=True)
        made.append(E.load(b, source.axes))
    return Array(source.axes, tuple(made))


RULES: dict[str, Callable[[Any, fx.Node], Any]] = {
    "sum": partial(_fold, "sum"),
    "prod": partial(_fold, "prod"),
    "amin": partial(_fold, "min"),
    "amax": partial(_fold, "max"),
    "any": partial(_fold, "any"),
    "all": partial(_fold, "all"),
    "mean": _mean,
    "min": partial(_extremum, "min"),
    "max": partial(_extremum, "max"),
    "argmin": partial(_argument, "argmin"),
    "argmax": partial(_argument, "argmax"),
    "cumsum": partial(_running, "sum"),
    "cumprod": partial(_running, "prod"),
    "cummax": partial(_running_extremum, "max"),
    "cummin": partial(_running_extremum, "min"),
}
