"""Engines of the ufunc methods accumulate, reduceat and at."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import torch

from ._dtypes import TO_NUMPY, NotSupported, promotion_kind
from ._index import take_index
from ._index_plan import has_data, readable
from ._ndarray import as_array, as_operand, ndarray, write
from ._reduce import check_steps, negative_zero, reduce_dtype, reduce_engine
from ._ufunc_table import loop
from ._unsigned import bits, cast, from_order_key, from_signed, order_key, to_signed, unbits

# Ufuncs whose `at` torch can scatter without looking at the indices.
SCATTERED = frozenset(("add", "subtract", "multiply", "maximum", "minimum"))


def _axis_of(axis: int, ndim: int) -> int:
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def accumulate_engine(
    name: str, tensor: torch.Tensor, axis: int = 0, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """Running results along `axis`: a fresh tensor of the same shape, dtype as of `reduce`.

    Errors: TypeError for a 0-D array, AxisError.
    """
    if tensor.dim() == 0:
        raise TypeError("cannot accumulate on a scalar")
    axis = _axis_of(axis, tensor.dim())
    work = reduce_dtype(name, tensor.dtype, dtype)
    t = cast(tensor, work)
    rounded = work is torch.float16 and has_data(t)  # at each step, where torch keeps float32
    if name in ("add", "multiply") and work is not torch.bool and not rounded:
        run = torch.cumsum if name == "add" else torch.cumprod
        signed = to_signed(t)
        result = from_signed(run(signed, axis, dtype=signed.dtype), work)
        if name == "multiply" and work.is_complex:  # one times an infinity has a part that is nan
            first = min(t.shape[axis], 1)
            rest = result.narrow(axis, first, t.shape[axis] - first)
            return torch.cat((t.narrow(axis, 0, first), rest), axis)
        return from_the_first(t, result, axis) if name == "add" else result
    if name in ("maximum", "minimum") and not work.is_complex and t.numel():
        run = torch.cummax if name == "maximum" else torch.cummin
        if work is torch.bool:
            return run(t.to(torch.uint8), axis)[0].to(torch.bool)
        return from_order_key(run(order_key(t), axis)[0], work)
    if t.shape[axis] == 0:
        return t.clone()
    check_steps(name, t, t.shape[axis])
    step = loop(name, (work, work), (work,))
    parts = list(t.unbind(axis))
    done = [parts[0].clone()]
    for part in parts[1:]:
        done.append(step(done[-1], part))
    return torch.stack(done, axis)


def from_the_first(t: torch.Tensor, sums: torch.Tensor, axis: int) -> torch.Tensor:
    """Running sums of floats that begin with the first element, where torch begins with 0: a
    negative zero stays one while nothing else comes."""
    if not (t.is_floating_point() or t.is_complex()) or not readable(t) or not t.numel():
        return sums
    if t.dtype.is_complex:
        real, imag = ((t.real, sums.real), (t.imag, sums.imag))
        return torch.complex(from_the_first(*real, axis), from_the_first(*imag, axis))
    if not bool(negative_zero(t.select(axis, 0)).any()):
        return sums
    alone = torch.cumprod(negative_zero(t), axis) != 0
    return torch.where(alone, t, sums)


def reduceat_engine(
    name: str,
    tensor: torch.Tensor,
    indices: torch.Tensor,
    axis: int = 0,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Reductions of the slices from each index to the next; a single element where they descend.

    Looks at the indices. Errors: IndexError for an index outside, AxisError.
    """
    if tensor.dim() == 0:
        raise TypeError("cannot reduceat on a scalar")
    if indices.dtype.is_floating_point or indices.dtype.is_complex:
        raise TypeError(
            f"Cannot cast array data from {TO_NUMPY[indices.dtype]!r} to dtype('int64') according "
            "to the rule 'safe'"
        )
    axis = _axis_of(axis, tensor.dim())
    length = tensor.shape[axis]
    starts = indices.to(torch.int64).tolist()
    for start in starts:
        if not 0 <= start < length:
            raise IndexError(f"index {start} out-of-bounds in {name}.reduceat [0, {length})")
    work = reduce_dtype(name, tensor.dtype, dtype)
    parts = []
    for start, stop in zip(starts, [*starts[1:], length][: len(starts)], strict=True):
        piece = tensor.narrow(axis, start, max(stop - start, 1))
        parts.append(reduce_engine(name, piece, axis, work, False))
    if not parts:
        shape = list(tensor.shape)
        shape[axis] = 0
        return torch.empty(shape, dtype=work, device=tensor.device)
    return unbits(torch.stack([bits(p) for p in parts], axis), work)


def at_engine(ufunc: Any, a: ndarray, indices: Any, b: Any) -> None:
    """ufunc.at: positions are found by indexing the numbers of the elements, then updated."""
    device = a._t.device
    places = torch.arange(a.size, device=device).reshape(a.shape)
    if isinstance(indices, tuple):
        indices = tuple(
            i if not isinstance(i, (list, np.ndarray)) else as_array(i) for i in indices
        )
    where = take_index(ndarray(places), indices).tensor
    flat = a.tensor.reshape(-1).clone()
    if b is None:
        ins, outs = ufunc._resolve((flat.dtype,), (None,), "unsafe", None)
        flat = _in_rounds(ufunc, flat, where.reshape(-1), None, ins, outs)
    else:
        operand = torch.tensor(b) if isinstance(b, bool) else as_operand(b)
        if type(operand) is int and not -(2**63) <= operand < 2**63:
            raise NotSupported(f"ufunc.at with the integer {operand}, an array of another dtype")
        value = operand if isinstance(operand, torch.Tensor) else as_array(b).tensor
        try:
            value = value.to(device).expand(where.shape).reshape(-1)
        except RuntimeError:
            raise ValueError("array is not broadcastable to correct shape") from None
        flat = _update(ufunc, flat, where.reshape(-1), value, operand)
    result = flat.reshape(a.shape)
    write(a, result)


def _update(ufunc, flat, where, value, operand):
    ins, outs = ufunc._resolve((flat.dtype, promotion_kind(operand)), (flat.dtype,), "unsafe", None)
    name, work = ufunc._name, outs[0]
    # Of another dtype than the array's each step is cast.
    plain = flat.dtype is work and ins == (work, work) and work is not torch.bool
    if name in SCATTERED and plain:
        if name == "subtract":
            name, value = "add", loop("negative", (work,), (work,))(cast(value, work))
        value = cast(value, work)
        if name == "add":
            result = to_signed(flat).index_put((where,), to_signed(value), accumulate=True)
            return from_signed(result, work)
        if not work.is_complex:
            how = {"multiply": "prod", "maximum": "amax", "minimum": "amin"}[name]
            if name == "multiply":
                result = to_signed(flat).scatter_reduce(0, where, to_signed(value), how)
                return from_signed(result, work)
            result = order_key(flat).scatter_reduce(0, where, order_key(value), how)
            return from_order_key(result, work)
    return _in_rounds(ufunc, flat, where, value, ins, outs)


def _in_rounds(ufunc, flat, where, value, ins, outs):
    """Each round updates every place once; as many rounds as the most frequent place needs."""
    run = loop(ufunc._name, ins, outs)
    places, order = torch.sort(where, stable=True)
    first = torch.searchsorted(places, places)
    turn = torch.arange(len(places), device=places.device) - first
    for round_ in range(int(turn.max()) + 1 if len(places) else 0):
        now = order[turn == round_]
        spots = where[now]
        operands = [unbits(bits(flat)[spots], flat.dtype)]
        if value is not None:
            operands.append(unbits(bits(value)[now], value.dtype))
        fresh = run(*[cast(t, d) for t, d in zip(operands, ins, strict=True)])
        bits(flat)[spots] = bits(cast(fresh, flat.dtype))
    return flat
