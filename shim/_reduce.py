"""Reductions of ufuncs along axes: the engine under sum, prod, max, min, all, any and `reduce`."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import torch
from torch._C._functorch import is_functorch_wrapped_tensor

from ._assigned import assigned
from ._dtypes import TO_NUMPY, WIDER, NotSupported, Weak, torch_dtype
from ._index_plan import differentiated, has_data, readable
from ._ndarray import scalar_tensor
from ._ufunc_table import BY_NAME, loop
from ._unsigned import cast, choose_by, from_order_key, from_signed, order_key, to_signed

NoValue = np._NoValue
_memo: dict[tuple, torch.dtype] = {}
# Reductions that halve the axis again and again: any bracketing gives the same.
_ASSOCIATIVE = frozenset(
    (
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "gcd",
        "logaddexp",
        "logaddexp2",
        "logical_and",
        "logical_or",
        "logical_xor",
        "add",
        "multiply",
    )
)


def reduce_dtype(
    name: str, dtype: torch.dtype, asked: torch.dtype | None = None, out: torch.dtype | None = None
) -> torch.dtype:
    """The dtype a reduction computes and answers in (sum of int8: int64), by NumPy's rule. out:
    that of what it is stored into, which counts as the first operand's.

    TypeError, NumPy's own, where the ufunc has no such reduction.
    """
    key = (name, dtype, asked, out)
    found = _memo.get(key)
    if found is None:
        more = {} if asked is None else {"signature": (TO_NUMPY[asked], None, None)}
        given = None if out is None else TO_NUMPY[out]
        operands = (given, TO_NUMPY[dtype], None)
        resolved = BY_NAME[name].numpy.resolve_dtypes(
            operands, casting="unsafe", reduction=True, **more
        )
        found = torch_dtype(resolved[-1])
        _memo[key] = found
    return found


def normalize_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front. None: all. AxisError, ValueError ("duplicate value in 'axis'").

    A 0-D array accepts axis 0 and -1, as NumPy's reductions do. A list is no axes: TypeError.
    """
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple) else (axis,)
    if any(isinstance(a, bool) for a in given):
        raise TypeError("an integer is required")
    if ndim == 0 and not isinstance(axis, tuple) and operator.index(axis) in (0, -1):
        return ()
    axes = []
    for a in given:
        a = operator.index(a)
        if not -ndim <= a < ndim:
            raise np.exceptions.AxisError(a, ndim)
        axes.append(a % ndim)
    if len(set(axes)) != len(axes):
        raise ValueError("duplicate value in 'axis'")
    return tuple(axes)


_STEPS = 32
_STEPS_WITH_GRADIENT = 512


def check_steps(name: str, t: torch.Tensor, steps: int) -> None:
    """NotSupported for many steps of a ufunc one after the other, each a call of torch's: NumPy's
    loop takes a fraction of that, and a graph of them takes long to compile. What may have a
    gradient, which NumPy would lose, has more of them."""
    if is_functorch_wrapped_tensor(t) or (t.requires_grad and readable(t)):
        return  # NumPy cannot have it
    inexact = t.dtype.is_floating_point or t.dtype.is_complex
    most = _STEPS_WITH_GRADIENT if inexact and differentiated(t) else _STEPS
    if steps > most:
        raise NotSupported(f"np.{name} in {steps} steps, one after the other")


def identity_of(name: str, dtype: torch.dtype) -> Any:
    """What an empty reduction gives, as a Python number; None when the ufunc has no identity."""
    identity = BY_NAME[name].numpy.identity
    if name == "add" and dtype is torch.bool:
        return False
    return identity


def reduce_engine(
    name: str,
    tensor: torch.Tensor,
    axis: Any = None,
    dtype: torch.dtype | None = None,
    keepdims: bool = False,
    initial: Any = NoValue,
    where: Any = True,
) -> torch.Tensor:
    """Reduce `tensor` by the ufunc `name` along `axis` (int, tuple, None for all): a fresh tensor.

    dtype: the dtype to compute in, None for NumPy's choice. initial: an operand to start from,
    None for "no identity". where: bool tensor, broadcast; elements outside are left out.
    Errors: ValueError for an empty reduction without identity; AxisError; TypeError.
    """
    mask = None if where is NoValue or where is True else _mask(where, tensor)
    axes = normalize_axes(axis, tensor.dim())
    target = reduce_dtype(name, tensor.dtype, dtype)
    work = torch.bool if name.startswith("logical") else target
    if len(axes) > 1 and not _reorderable(name):
        raise ValueError(
            f"reduction operation '{name}' is not reorderable, so at most one axis may be specified"
        )
    if axes and mask is None and initial is NoValue and name in _FAST and 0 not in tensor.shape:
        return cast(_reduce(name, tensor, axes, work, keepdims, None), target)
    identity = start = None
    if initial is NoValue:
        identity = _constant(identity_of(name, work), work, tensor)
    elif initial is not None:
        if type(initial) in (Weak, float, complex):  # has to fit, as what is stored
            start = assigned(initial, work, tensor.device)
        else:
            start = scalar_tensor(initial, work).to(tensor.device)
        if start.dim():
            raise ValueError("setting an array element with a sequence.")
        identity = _constant(identity_of(name, work), work, tensor)
    if mask is not None:
        _check_mask(mask, tensor)
    if mask is not None and identity is None and start is None:
        raise ValueError(
            f"reduction operation '{name}' does not have an identity, so to use a where mask "
            "one has to specify 'initial'"
        )
    if start is None and any(tensor.shape[a] == 0 for a in axes):
        if identity is None:
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        start = identity
    if mask is not None:
        neutral = start if identity is None and name in _IDEMPOTENT else identity
        if neutral is None:
            return cast(_fold_masked(name, tensor, mask, axes, work, keepdims, start), target)
        tensor = choose_by(mask, cast(tensor, work), neutral)
    if start is None and (name not in _FAST or not axes):
        start = identity
    return cast(_reduce(name, tensor, axes, work, keepdims, start), target)


# Starting from a value, and meeting it again for every element left out, changes nothing.
_IDEMPOTENT = frozenset(
    (
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "bitwise_and",
        "bitwise_or",
        "logical_and",
        "logical_or",
        "gcd",
        "lcm",
    )
)


def result_size(t: torch.Tensor, axes: tuple[int, ...]) -> int:
    """How many elements are left when `axes` are reduced."""
    size = 1
    for i, n in enumerate(t.shape):
        size *= 1 if i in axes else n
    return size


def _constant(value: Any, dtype: torch.dtype, like: torch.Tensor) -> torch.Tensor | None:
    if value is None:
        return None
    if dtype is torch.uint64:
        return torch.full((), value, dtype=torch.int64, device=like.device).view(torch.uint64)
    wide = WIDER.get(dtype, dtype)
    return from_signed(torch.full((), value, dtype=wide, device=like.device), dtype)


def _reorderable(name: str) -> bool:
    identity = BY_NAME[name].numpy.identity
    return identity is not None or name in _ASSOCIATIVE


def _mask(where: Any, tensor: torch.Tensor) -> torch.Tensor | None:
    if where is True or where is NoValue:
        return None
    if isinstance(where, Weak):
        return (where.tensor != 0).to(tensor.device)
    if not isinstance(where, torch.Tensor):
        where = torch.full((), bool(where), dtype=torch.bool, device=tensor.device)
    if where.dtype is not torch.bool:
        raise TypeError(
            f"Cannot cast array data from {TO_NUMPY[where.dtype]!r} to dtype('bool') according to "
            "the rule 'safe'"
        )
    return where


def _check_mask(where: torch.Tensor, tensor: torch.Tensor) -> None:
    if where.dim() > tensor.dim():
        raise ValueError("input operand has more dimensions than allowed by the axis remapping")
    try:
        where.expand(tensor.shape)
    except RuntimeError:
        raise ValueError(
            "operands could not be broadcast together with remapped shapes [original->remapped]: "
            f"{shape_text(tensor.shape)} {shape_text(where.shape)} "
        ) from None


def shape_text(shape: Any) -> str:
    """A shape as NumPy writes it in broadcast errors: "(3,4)", "(3,)"."""
    return str(tuple(shape)).replace(" ", "")


def _reduce(name, t, axes, work, keepdims, start):
    if not axes:
        t = cast(t, work).clone()
        return t if start is None else loop(name, (work, work), (work,))(start, t)
    fast = _FAST.get(name)
    if fast is None or (name in ("maximum", "minimum") and any(t.shape[a] == 0 for a in axes)):
        return _fold(name, cast(t, work), axes, work, keepdims, start)
    if name == "multiply" and start is not None and work is not torch.bool:
        return _prod(t, axes, work, keepdims, start)
    result = fast(t, axes, work, keepdims)
    if result is None:
        return _fold(name, cast(t, work), axes, work, keepdims, start)
    if start is not None and name == "add":
        result = _without_zero(t, result, axes, keepdims)
    return result if start is None else _combine(name, work, start, result)


def negative_zero(t: torch.Tensor) -> torch.Tensor:
    """Where a real tensor is -0.0."""
    return torch.signbit(t) & (t == 0)


def _without_zero(t, total, axes, keepdims):
    """A sum of floats to go on from a start: -0.0, not the 0.0 that torch's begins with, where
    nothing else is."""
    if not (total.is_floating_point() or total.is_complex()):
        return total
    if total.is_complex() and t.is_complex():
        return torch.complex(
            _without_zero(t.real, total.real, axes, keepdims),
            _without_zero(t.imag, total.imag, axes, keepdims),
        )
    if not t.is_floating_point():
        return total
    return torch.where(torch.all(negative_zero(t), axes, keepdims), -torch.zeros_like(total), total)


def _combine(name: str, work: torch.dtype, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return loop(name, (work, work), (work,))(a, b)


def _reduced_shape(t: torch.Tensor, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(t.shape))
    return tuple(n for i, n in enumerate(t.shape) if i not in axes)


# Reductions that torch has. Each: (tensor, axes, dtype to compute in, keepdims) -> tensor or None.


def _sum(t, axes, work, keepdims):
    if work is torch.bool:
        return torch.any(cast(t, work), axes, keepdims)
    if work in (torch.uint16, torch.uint32, torch.uint64):
        total = torch.sum(to_signed(cast(t, work)), axes, keepdims, dtype=torch.int64)
        return from_signed(total, work)
    if t.dtype in WIDER or (t.is_complex() and not work.is_complex):
        t = cast(t, work)
    if len(axes) == t.dim() and not keepdims:
        return torch.sum(t, dtype=work)
    return torch.sum(t, axes, keepdims, dtype=work)


def _prod(t, axes, work, keepdims, start=None):
    if work is torch.bool:
        return torch.all(cast(t, work), axes, keepdims)
    t = to_signed(cast(t, work))
    inexact = work.is_floating_point or work.is_complex
    if len(axes) == 1 and start is None and not inexact:
        return from_signed(torch.prod(t, axes[0], keepdims, dtype=t.dtype), work)
    # One after the other as they lie in memory: a product of products may overflow before.
    order = sorted(axes, key=lambda a: (-t.stride(a), a))
    rest = [a for a in range(t.dim()) if a not in axes]
    shape = [t.shape[a] for a in rest]
    flat = t.permute(*rest, *order).reshape(*shape, math.prod(t.shape[a] for a in axes))
    if start is not None:
        flat = torch.cat([to_signed(start).expand(*shape, 1), flat], -1)
    if inexact and flat.shape[-1] and has_data(flat):  # torch multiplies in another order
        wide = flat.to(torch.float32) if work is torch.float16 else flat
        total = torch.cumprod(wide, -1).select(-1, -1).to(work)
    else:  # as do some back ends with a graph; the kernels have NumPy's order
        total = torch.prod(flat, -1, dtype=t.dtype)
    return from_signed(total.reshape(_reduced_shape(t, axes, keepdims)), work)


def _amax(t, axes, work, keepdims):
    if work.is_complex:
        return None
    return from_order_key(torch.amax(order_key(cast(t, work)), axes, keepdims), work)


def _amin(t, axes, work, keepdims):
    if work.is_complex:
        return None
    return from_order_key(torch.amin(order_key(cast(t, work)), axes, keepdims), work)


def _all(t, axes, work, keepdims):
    return torch.all(cast(t, torch.bool), axes, keepdims)


def _any(t, axes, work, keepdims):
    return torch.any(cast(t, torch.bool), axes, keepdims)


def _parity(t, axes, work, keepdims):
    return torch.sum(cast(t, torch.bool), axes, keepdims) % 2 != 0


def _when_bool(of_bool):
    return lambda t, axes, work, keepdims: (
        of_bool(t, axes, work, keepdims) if work is torch.bool else None
    )


_FAST = {
    "add": _sum,
    "multiply": _prod,
    "maximum": _amax,
    "minimum": _amin,
    "logical_and": _all,
    "logical_or": _any,
    "logical_xor": _parity,
    "bitwise_and": _when_bool(_all),
    "bitwise_or": _when_bool(_any),
    "bitwise_xor": _when_bool(_parity),
}


def _fold(name, t, axes, work, keepdims, start):
    """Any other ufunc: halves of the axis onto one another, or left to right."""
    moved = torch.movedim(t, axes, tuple(range(len(axes))))
    length = math.prod(moved.shape[: len(axes)])
    flat = moved.reshape(length, *moved.shape[len(axes) :])
    run = loop(name, (work, work), (work,))
    if flat.shape[0] == 0:
        result = start.expand(flat.shape[1:]).clone()
    elif name in _ASSOCIATIVE:
        while flat.shape[0] > 1:
            even = flat.shape[0] // 2 * 2
            paired = run(flat[0:even:2], flat[1:even:2])
            flat = torch.cat([paired, flat[even:]]) if even < flat.shape[0] else paired
        result = flat[0] if start is None else run(start, flat[0])
        if length == 1 and start is None:
            result = result.clone()  # a view of t
    else:
        check_steps(name, flat, length)
        steps = list(flat.unbind(0))
        result = steps.pop(0) if start is None else start
        for step in steps:
            result = run(result, step)
        result = result.clone() if not steps else result
    if result.dim() < flat.dim() - 1:
        result = result.expand(flat.shape[1:]).clone()
    return result.reshape(_reduced_shape(t, axes, keepdims))


def _fold_masked(name, t, mask, axes, work, keepdims, start):
    """A left fold from `start` that leaves masked-out elements out, for ufuncs without identity."""
    order = tuple(range(len(axes)))
    mask = mask.expand(t.shape)
    moved, kept = torch.movedim(t, axes, order), torch.movedim(mask, axes, order)
    rest = moved.shape[len(axes) :]
    run = loop(name, (work, work), (work,))
    result = start.expand(rest)
    length = math.prod(moved.shape[: len(axes)])
    check_steps(name, moved, length)
    steps, kept = moved.reshape(length, *rest), kept.reshape(length, *rest)
    for step, keep in zip(steps, kept, strict=True):
        result = choose_by(keep, run(result, step), result)
    return result.reshape(_reduced_shape(t, axes, keepdims)).clone()
