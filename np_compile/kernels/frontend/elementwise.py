"""Translation rules of elementwise operators, constants and copies.

A rule takes the translation and a node, and gives an `Array`, a tuple of them, or None where it
does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from ..ir import expr as E
from ..ir.expr import Expr, new_axes, number
from . import views
from .arrays import Array, of_torch
from .aten import ROWS, frexp
from .complex import COMPLEX
from .nodes import (
    args_of,
    argument_of,
    arguments_of,
    overload_of,
    packet,
    schema_of,
    source_of,
    value_of,
)


def _common(node: fx.Node, args: Sequence[Any]) -> torch.dtype:
    """The dtype in which torch compares operands."""
    return torch.result_type(*map(value_of, args))


def _pointwise(t: Any, node: fx.Node) -> Array | None:
    name, _ = packet(node)
    value = node.meta["val"]
    row = ROWS.get(name)
    kinds = {a.name: str(a.type) for a in schema_of(node).arguments}
    operands = []
    options = {}
    for key, x in arguments_of(node).items():
        is_data = "Tensor" in kinds[key] or "number" in kinds[key] or "Scalar" in kinds[key]
        if is_data and key != "alpha":
            operands.append((key, x))
        elif x is not None:
            options[key] = x
    rule = row.rule if row is not None else "result"
    compute = value.dtype
    tensors = [x for _, x in operands if x is not None]
    if rule == "common":
        compute = _common(node, tensors)
    complex_case = value.dtype.is_complex or any(
        t.array(x).complex for x in tensors if isinstance(x, fx.Node)
    )
    if complex_case and name not in _LOGICAL:
        return _complex(t, name, tensors, options, value, compute, rule)
    if row is None:
        return None
    arrays_: list[Array | None] = []
    for key, x in operands:
        if x is None:
            arrays_.append(None)
        elif rule == "each" or (name in ("where", "masked_fill") and key in ("condition", "mask")):
            arrays_.append(t.operand(x, None))
        else:
            arrays_.append(t.operand(x, compute))
    for k, a in enumerate(arrays_):
        if a is not None and (name in _LOGICAL or (name == "where" and k == 0)):
            arrays_[k] = truth(a)
    axes = new_axes(value.shape)
    parts = [None if a is None else a.broadcast(value.shape).at(axes)[0] for a in arrays_]
    made = row.build(*parts, **options)
    return Array(axes, (E.cast(made, of_torch(value.dtype)[0]),))


# Operators on truth values: any operand is compared with zero first.
_LOGICAL = ("logical_and", "logical_or", "logical_xor", "logical_not")


def truth(a: Array) -> Array:
    """Whether each element differs from 0."""

    def nonzero(x: Expr) -> Expr:
        return x if x.dtype == "bool" else E.scalar("ne", x, number(0, x.dtype))

    if a.complex:
        either = E.scalar("or", nonzero(a.parts[0]), nonzero(a.parts[1]))
        return Array(a.axes, (either,))
    return a.map(nonzero)


def _complex(
    t: Any, name: str, operands: list[Any], options: dict, value: torch.Tensor,
    compute: torch.dtype, rule: str,
) -> Array | None:  # fmt: skip
    build = COMPLEX.get(name)
    if build is None:
        return None
    if rule == "result" and not value.is_complex():
        compute = operands[0].meta["val"].dtype
    axes = new_axes(value.shape)
    pairs = []
    for k, x in enumerate(operands):
        plain = rule == "each" or (name, k) in (("where", 0), ("masked_fill", 1))
        a = t.operand(x, None if plain else compute)
        pairs.append(a.broadcast(value.shape).at(axes))
    parts = build(*pairs, **options)
    dtype = of_torch(value.dtype)[0]
    return Array(axes, tuple(E.cast(p, dtype) for p in parts))


def _full(t: Any, node: fx.Node) -> Array | None:
    value = node.meta["val"]
    name, in_place = packet(node)
    if in_place:
        fill = 0 if name == "zero" else args_of(node)[1]
        if isinstance(fill, fx.Node):
            return t.cast(t.array(fill), value.dtype).broadcast(value.shape)
    elif name in ("full", "new_full", "full_like"):
        fill = argument_of(node, "fill_value")
    elif name == "scalar_tensor":
        fill = args_of(node)[0]
    elif "empty" in name and node in t._mutated:
        return t.empty(value)  # whatever lies there, as in NumPy
    else:
        fill = 1 if "ones" in name else 0
    if isinstance(fill, fx.Node):
        return None
    return t.scalar_array(fill, tuple(value.shape), value.dtype)


def _arange(t: Any, node: fx.Node) -> Array | None:
    value = node.meta["val"]
    overload = overload_of(node)
    start, step = 0, 1
    if overload == "start":
        start = args_of(node)[0]
    elif overload == "start_step":
        start, step = args_of(node)[0], argument_of(node, "step", 1)
    axes = new_axes(value.shape)
    if isinstance(start, int) and isinstance(step, int):
        count = E.plus(E.times(axes[0], step), start)
    elif isinstance(start, fx.Node) or isinstance(step, fx.Node):
        return None
    else:
        steps = E.scalar("mul", E.cast(axes[0], "f64"), number(step, "f64"))
        count = E.scalar("add", number(start, "f64"), steps)
    return Array(axes, (E.cast(count, of_torch(value.dtype)[0]),))


def _copied(t: Any, node: fx.Node) -> Array | None:
    """clone, _to_copy and the like: the same elements as new memory."""
    value = node.meta["val"]
    source = t.array(args_of(node)[0])
    if value.device.type not in (t.device.type, "meta"):
        return None
    return t.cast(source, value.dtype)


def _copy(t: Any, node: fx.Node) -> Array | None:
    _, in_place = packet(node)
    source = t.array(args_of(node)[1])
    if in_place:
        target = t.array(args_of(node)[0])
        return t.cast(source, source_of(node).meta["val"].dtype).broadcast(target.shape)
    return t.cast(source, node.meta["val"].dtype).broadcast(node.meta["val"].shape)


def _make_complex(t: Any, node: fx.Node) -> Array | None:
    value = node.meta["val"]
    axes = new_axes(value.shape)
    dtype, _ = of_torch(value.dtype)
    parts = tuple(
        E.cast(t.array(x).broadcast(value.shape).at(axes)[0], dtype) for x in args_of(node)[:2]
    )
    return Array(axes, parts)


def _frexp(t: Any, node: fx.Node) -> tuple[Array, Array]:
    source = t.array(args_of(node)[0])
    mantissa, exponent = frexp(source.parts[0])
    return Array(source.axes, (mantissa,)), Array(source.axes, (exponent,))


_COPIES = ("clone", "_to_copy", "lift_fresh_copy", "contiguous", "resolve_conj", "resolve_neg")
_FILLS = (
    "full", "zeros", "ones", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones",
    "new_full", "scalar_tensor", "fill", "zero", "empty", "empty_like", "new_empty",
    "empty_strided", "new_empty_strided",
)  # fmt: skip

RULES: dict[str, Callable[[Any, fx.Node], Any]] = {
    **dict.fromkeys(ROWS, _pointwise),
    **dict.fromkeys(COMPLEX, _pointwise),
    **dict.fromkeys(_COPIES, _copied),
    **dict.fromkeys(_FILLS, _full),
    "copy": _copy,
    **views.COPIES,
    "arange": _arange,
    "complex": _make_complex,
    "frexp": _frexp,
}
