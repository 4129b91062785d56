"""Choosing elements by masks and indices, and putting elements at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ._apply import (
    axis_index,
    broadcast,
    check_writeable,
    gather,
    need_data,
    operand_tensor,
    readable,
    select_rows,
    strict_axis,
    together,
)
from ._assigned import assigned
from ._dtypes import TO_NUMPY, NotSupported, Weak, result_type
from ._index_plan import differentiated
from ._ndarray import (
    as_array,
    as_tensor,
    may_share,
    ndarray,
    scalar_tensor,
    store,
    write,
)
from ._normalize import (
    Array,
    Arrays,
    Operand,
    Operands,
    Out,
    Places,
    Raw,
    Static,
    View,
    function,
)
from ._reduce import shape_text
from ._shapes import common_shape, laid_by_all, let_numpy_raise
from ._sorting import nonzero_mask, positions, refuse_scalar
from ._table import Kind
from ._unsigned import bits, cast, choose_by, unbits


def promoted(
    *operands: Any, device: Any = None, convert: Callable = scalar_tensor
) -> list[torch.Tensor]:
    """Operands as tensors of their common dtype, Python numbers promoting weakly.

    convert: (number, dtype) -> tensor; the default has an OverflowError for what does not fit.
    """
    dtype = result_type(*(_kind(o) for o in operands))
    operands = together(*operands)
    return [
        cast(o, dtype) if isinstance(o, torch.Tensor) else convert(o, dtype).to(device)
        for o in operands
    ]


def wrapped(value: Any, dtype: torch.dtype) -> torch.Tensor:
    """Python ints that do not fit wrap round, as arrays do."""
    given = operand_tensor(value)
    if type(value) is int and dtype.is_floating_point:
        return scalar_tensor(value, dtype)
    return cast(given, dtype)


def _as_where_does(value: Any, dtype: torch.dtype) -> torch.Tensor:
    """Python ints that do not fit wrap round or not, as the version of NumPy at hand has it."""
    if isinstance(value, Weak):
        return wrapped(value, dtype)
    if type(value) is float and dtype is torch.float64:
        return scalar_tensor(value, dtype)
    with np.errstate(all="ignore"):
        found = np.where(False, np.zeros((), TO_NUMPY[dtype]), value)
    return wrapped(found.item(), dtype)


def _kind(o: Any) -> Any:
    if isinstance(o, torch.Tensor):
        return o.dtype
    if isinstance(o, Weak):
        return o.kind
    return torch.bool if isinstance(o, bool) else type(o)


@function(scalar=False)
def where(condition: Array, x: Operand | None = None, y: Operand | None = None, /):
    """Elements of `x` where the condition holds, else of `y`: an array of their common dtype.

    With the condition alone: the indices where it holds, as `nonzero`. ValueError for `x` alone.
    """
    if (x is None) != (y is None):
        raise ValueError("either both or neither of x and y should be given")
    mask = nonzero_mask(condition)
    if x is None:
        refuse_scalar(condition)
        return positions(mask)
    a, b = promoted(x, y, device=mask.device, convert=_as_where_does)
    return laid_by_all(choose_by(*broadcast(mask, a, b, ufunc=True)), mask, a, b)


@function(kind=Kind.DATA)
def extract(condition: Array, arr: Array):
    """The elements of the flat `arr` where the flat condition holds: 1-D."""
    where = positions(nonzero_mask(condition).reshape(-1))[0]
    return _take(arr.reshape(-1), where, 0, "raise")


def _compress(condition: torch.Tensor, a: torch.Tensor, axis: Any) -> torch.Tensor:
    if condition.dim() != 1:
        raise ValueError("condition must be a 1-d array")
    return _take(a, positions(nonzero_mask(condition))[0], axis, "raise")


@function(kind=Kind.DATA)
def compress(condition: Array, a: Array, axis: Static = None, out: Raw = None):
    """Slices of `a` along `axis` (None: of the flat array) where the 1-D condition holds."""
    return _given_back(_compress(condition, a, axis), out)


@function("ndarray.compress", kind=Kind.DATA)
def _compress_method(self: Array, /, condition: Array, axis: Static = None, out: Raw = None):
    """Slices along `axis` (None: of the flat array) where the 1-D condition holds."""
    return _given_back(_compress(condition, self, axis), out)


@function(scalar=False)
def select(condlist: Arrays, choicelist: Operands, default: Operand = 0):
    """The elements of the choice whose condition holds first, else `default`."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ValueError("select with an empty condition list is not possible")
    for i, cond in enumerate(condlist):
        if cond.dtype is not torch.bool:
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    choices = promoted(*choicelist, default, device=condlist[0].device, convert=wrapped)
    for given, choice in zip(choicelist, choices, strict=False):
        if not isinstance(given, torch.Tensor):  # NumPy makes an array of it, which it casts
            number = np.zeros(1, TO_NUMPY[operand_tensor(given).dtype])
            let_numpy_raise(np.copyto, np.zeros(1, TO_NUMPY[choice.dtype]), number)
    parts = broadcast(*condlist, *choices)
    result = parts[-1].clone()
    n = len(condlist)
    for cond, choice in reversed(list(zip(parts[:n], parts[n:-1], strict=True))):
        result = choose_by(cond, choice, result)
    return result.contiguous()  # in NumPy it is an array by rows that is written to


# by index

_MODES = {"r": "raise", "w": "wrap", "c": "clip"}


def check_mode(mode: Any) -> str:
    """The mode's full name; ValueError for one that NumPy lacks."""
    if isinstance(mode, str) and mode[:1].lower() in _MODES:
        return _MODES[mode[0].lower()]
    raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")


def in_bounds(index: torch.Tensor, n: int, mode: str, axis: int) -> torch.Tensor:
    """Indices brought into range by `mode`: int64. IndexError where data may be looked at."""
    if index.dtype.is_floating_point or index.dtype.is_complex:
        raise TypeError(
            f"Cannot cast array data from {TO_NUMPY[index.dtype]!r} to dtype('int64') according "
            "to the rule 'same_kind'"
        )
    index = index.to(torch.int64)
    if n == 0:
        if index.numel():
            raise IndexError("cannot do a non-empty take from an empty axes.")
        return index
    if mode == "clip":
        return index.clamp(0, n - 1)
    if mode == "wrap":
        return torch.remainder(index, n)
    if readable(index):
        bad = (index < -n) | (index >= n)
        if bool(bad.any()):
            first = int(index[bad][0])
            raise IndexError(f"index {first} is out of bounds for axis {axis} with size {n}")
    return torch.where(index < 0, index + n, index)


def _take(a: torch.Tensor, indices: torch.Tensor, axis: Any, mode: Any) -> torch.Tensor:
    mode = check_mode(mode)
    if axis is None:
        a, axis = a.reshape(-1), 0
    else:
        a = a.reshape(1) if a.dim() == 0 else a
        axis = strict_axis(axis, a.dim())
    return select_rows(a, axis, in_bounds(indices, a.shape[axis], mode, axis).to(a.device))


@function(method=True)
def take(a: Array, indices: Places, axis: Static = None, out: Raw = None, mode: Static = "raise"):
    """Elements at `indices` along `axis` (None: of the flat array).

    mode: "raise", "wrap" or "clip" for indices outside. IndexError.
    """
    return _given_back(_take(a, indices, axis, mode), out)


@function(method=True)
def choose(a: Array, choices: Operands, out: Out = None, mode: Static = "raise"):
    """For each element of `a` the element of the choice of that number, all broadcast."""
    mode = check_mode(mode)
    if not 0 < len(choices) < 64:
        let_numpy_raise(np.choose, 0, [0] * len(choices))
    options = promoted(*choices, device=a.device, convert=wrapped)
    n = len(options)
    index = _as_places(a)
    if mode == "clip":
        index = index.clamp(0, n - 1)
    elif mode == "wrap":
        index = torch.remainder(index, n)
    elif readable(index) and bool(((index < 0) | (index >= n)).any()):
        raise ValueError("invalid entry in choice array")
    *options, index = broadcast(*options, index)
    stacked = torch.stack([bits(o) for o in options])
    return unbits(stacked.gather(0, index.unsqueeze(0)).squeeze(0), options[0].dtype)


def _given_back(result: torch.Tensor, out: Any) -> Any:
    """The result, stored into `out`. NumPy computes in a copy of `out` in the result's dtype:
    TypeError where that cast is not safe."""
    if out is None:
        return result
    if type(out) is ndarray and not np.can_cast(out.dtype, TO_NUMPY[result.dtype], "safe"):
        one = np.zeros(1, TO_NUMPY[result.dtype])
        let_numpy_raise(np.take, one, [0], out=np.zeros(1, out.dtype))
    return store(out, result)


def _asked(value: Any, attribute: str) -> torch.Tensor:
    """A tensor of what NumPy does not make an array of, but asks for an attribute of one."""
    getattr(value, attribute)
    return as_tensor(value)


def _check_along(ndim: int, indices: torch.Tensor) -> None:
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype is torch.bool:
        raise IndexError("`indices` must be an integer array")
    if indices.dim() != ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")


def _aligned(shape: Any, indices: torch.Tensor, axis: int) -> tuple[torch.Tensor, tuple]:
    """Indices in range and broadcast against the other axes; the shape to work in."""
    index = in_bounds(indices, shape[axis], "raise", axis)
    others = [1 if d == axis else n for d, n in enumerate(shape)]
    try:
        full = common_shape(others, index.shape)
    except ValueError:
        raise IndexError(
            "shape mismatch: indexing arrays could not be broadcast together with shapes "
            + " ".join(
                shape_text(index.shape if d == axis else (n,) + (1,) * (len(shape) - d - 1))
                for d, n in enumerate(shape)
            )
        ) from None
    base = tuple(shape[d] if d == axis else n for d, n in enumerate(full))
    return index.expand(full), base


@function()
def take_along_axis(arr: Raw, indices: Raw, axis: Static = -1):
    """Elements at `indices` along `axis`, slice by slice; the other axes broadcast."""
    arr = _asked(arr, "flat" if axis is None else "ndim")
    indices = _asked(indices, "ndim" if axis is None else "dtype")
    if axis is None:
        if indices.dim() != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        arr, axis = arr.reshape(-1), 0
    else:
        axis = axis_index(axis, arr.dim())
    arr, indices = together(arr, indices)
    _check_along(arr.dim(), indices)
    index, base = _aligned(arr.shape, indices, axis)
    return gather(arr.expand(base), axis, index)


@function()
def put_along_axis(arr: View, indices: Raw, values: Raw, axis: Static) -> None:
    """Set the elements at `indices` along `axis`, slice by slice, in place."""
    check_writeable(arr)
    indices = _asked(indices, "ndim" if axis is None else "dtype")
    t, shape = arr.tensor, arr.shape
    if axis is None:
        if indices.dim() != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        if arr._flip or not t.is_contiguous():  # of late NumPy refuses, as it would write to a copy
            let_numpy_raise(np.put_along_axis, np.zeros(2)[::-1], np.zeros(1, int), 0, None)
        t, axis = t.reshape(-1), 0
    else:
        axis = axis_index(axis, t.dim())
    _check_along(t.dim(), indices)
    index, base = _aligned(t.shape, indices, axis)
    if base != tuple(t.shape):
        raise IndexError("shape mismatch: indexing arrays could not be broadcast together")
    given = assigned(values, t.dtype, t.device)
    try:
        given = given.expand(index.shape)
    except RuntimeError:
        raise ValueError(
            f"shape mismatch: value array of shape {shape_text(given.shape)} could not be "
            f"broadcast to indexing result of shape {shape_text(index.shape)}"
        ) from None
    write(arr, _scatter(t, axis, index, given).reshape(shape))


def _scatter(t: torch.Tensor, dim: int, index: torch.Tensor, values: torch.Tensor):
    """A copy with values set along `dim`; of repeated places the last wins."""
    n = index.shape[dim]
    if n < 2 or index.numel() == 0:
        return unbits(torch.scatter(bits(t), dim, index, bits(values)), t.dtype)
    turn = [1] * index.dim()
    turn[dim] = n
    order = torch.arange(n, device=t.device).reshape(turn).expand(index.shape)
    last = torch.full(t.shape, -1, dtype=torch.int64, device=t.device)
    last = last.scatter_reduce(dim, index, order, "amax")
    at = last.gather(dim, index)
    given = bits(values).expand(index.shape)
    fresh = torch.gather(given.detach(), dim, at)
    if differentiated(t, values):  # of values for one place the last one has the gradient
        fresh = torch.where(at == order, given, fresh)
    return unbits(torch.scatter(bits(t), dim, index, fresh), t.dtype)


@function()
def put(a: Raw, ind: Places, v: Raw, mode: Static = "raise") -> None:
    """Set elements of the flat array in place; `v` is repeated as needed. IndexError."""
    if not isinstance(a, ndarray):
        let_numpy_raise(np.put, a, 0, 0)
    _put(a, ind, v, mode)


@function("ndarray.put")
def _put_method(self: View, indices: Places, values: Raw, /, mode: Static = "raise") -> None:
    """Set elements of the flat array in place; `values` are repeated as needed. IndexError."""
    _put(self, indices, values, mode)


def _as_places(t: torch.Tensor) -> torch.Tensor:
    """Indices of `put` and `choose`: int64. TypeError for dtypes that do not fit it."""
    if not np.can_cast(TO_NUMPY[t.dtype], np.int64):
        raise TypeError(
            f"Cannot cast array data from {TO_NUMPY[t.dtype]!r} to dtype('int64') according to "
            "the rule 'safe'"
        )
    return t.to(torch.int64)


def _put(a: Any, ind: torch.Tensor, given: Any, mode: Any) -> None:
    mode, ind = check_mode(mode), _as_places(ind)
    check_writeable(a, "put: output array is read-only")
    v = assigned(given, a._t.dtype, a._t.device)
    if ind.numel() == 0:
        return
    if a.size == 0:
        raise IndexError("cannot replace elements of an empty array")
    if v.numel() == 0:
        return
    ind = ind.reshape(-1)
    try:
        index = in_bounds(ind, a.size, mode, 0)
    except IndexError:  # what comes before the first one outside is set all the same
        outside = (ind < -a.size) | (ind >= a.size)
        _set_flat(a, torch.remainder(ind[: int(torch.nonzero(outside)[0])], a.size), v)
        raise
    _set_flat(a, index, v)


def _set_flat(a: ndarray, index: torch.Tensor, v: torch.Tensor) -> None:
    values = _cycled(v, torch.arange(len(index), device=a._t.device))
    write(a, _scatter(a.tensor.reshape(-1), 0, index, values).reshape(a.shape))


def _cycled(values: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
    """values.flat[turn % size], of the shape of `turn`."""
    flat = values.reshape(-1)
    if flat.shape[0] == 1:
        return flat.expand(turn.shape)
    return select_rows(flat, 0, torch.remainder(turn, flat.shape[0]))


def _mask_for(name: str, a: Any, mask: torch.Tensor) -> torch.Tensor:
    if mask.numel() != a.size:
        raise ValueError(f"{name}: mask and data must be the same size")
    return nonzero_mask(mask).reshape(a.shape)


def _safely(values: Any, a: Any) -> torch.Tensor:
    """Values for an array, of whose dtype arrays may not have more. TypeError."""
    if isinstance(values, (np.ndarray, ndarray)) and not getattr(values, "_scalar", False):
        stand_in = np.empty((1,) * values.ndim, values.dtype)
        let_numpy_raise(np.putmask, np.empty((1,), a.dtype), np.zeros(1), stand_in)
    return assigned(values, a._t.dtype, a._t.device)


@function()
def putmask(a: View, /, mask: Array, values: Raw) -> None:
    """Set a.flat[i] = values.flat[i % size] where the mask holds, in place."""
    check_writeable(a, "putmask: output array is read-only")
    mask = _mask_for("putmask", a, mask)
    given = _safely(values, a)
    if given.numel() == 0:
        return
    turn = torch.arange(a.size, device=a._t.device).reshape(a.shape)
    write(a, choose_by(mask, _cycled(given, turn), a.tensor))


@function()
def place(arr: View, mask: Array, vals: Raw) -> None:
    """Set the elements where the mask holds to `vals`, one after the other, in place."""
    check_writeable(arr)
    mask = _mask_for("place", arr, mask)
    given = _safely(vals, arr)
    if given.numel() == 0:
        need_data(mask)
        if bool(mask.any()):
            raise ValueError("Cannot insert from an empty array!")
        return
    turn = (torch.cumsum(mask.reshape(-1), 0) - 1).clamp(min=0).reshape(arr.shape)
    write(arr, choose_by(mask, _cycled(given, turn), arr.tensor))


def copied_into(dst: torch.Tensor, src: Any, casting: Any = "same_kind") -> torch.Tensor:
    """What np.copyto stores into a tensor: cast, and expanded to its shape. TypeError, ValueError,
    and OverflowError for a Python number that does not fit, in its words."""
    target = dst.dtype
    exact = casting in ("no", "equiv", "safe")
    if type(src) is int or (exact and type(src) in (bool, float, complex)):
        let_numpy_raise(np.copyto, np.zeros(1, TO_NUMPY[target]), src, casting)
    elif exact and isinstance(src, Weak):
        let_numpy_raise(np.copyto, np.zeros(1, TO_NUMPY[target]), src.kind(0), casting)
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        let_numpy_raise(np.can_cast, "d", "d", casting)
        raise ValueError(
            f"casting must be one of 'no', 'equiv', 'safe', 'same_kind', 'unsafe' (got {casting!r})"
        )
    if isinstance(src, torch.Tensor):
        value, given = src, TO_NUMPY[src.dtype]
        what = "array data" if src.dim() else "scalar"
    else:
        given = TO_NUMPY[operand_tensor(src).dtype]
        what = "scalar"
        if result_type(_kind(src), target) is target:
            given = TO_NUMPY[target]
        value = scalar_tensor(src, target) if given is TO_NUMPY[target] else operand_tensor(src)
    if not np.can_cast(given, TO_NUMPY[target], casting):
        raise TypeError(
            f"Cannot cast {what} from {given!r} to {TO_NUMPY[target]!r} according to the rule "
            f"{casting!r}"
        )
    value = cast(value.to(dst.device), target)
    while value.dim() > dst.dim() and value.shape[0] == 1:
        value = value[0]
    try:
        return value.expand(dst.shape)
    except RuntimeError:
        raise ValueError(
            f"could not broadcast input array from shape {shape_text(value.shape)} into shape "
            f"{shape_text(dst.shape)}"
        ) from None


def _in_step(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one shape have their elements in the same places of one memory."""
    return a.stride() == b.stride() and a.storage_offset() == b.storage_offset()


@function()
def copyto(dst: Raw, src: Operand, casting: Static = "same_kind", where: Raw = True) -> None:
    """Copy `src`, broadcast and cast, into `dst` where the mask holds."""
    if not isinstance(dst, ndarray):
        let_numpy_raise(np.copyto, dst, 0)
    dst = as_array(dst)
    full = copied_into(dst._t, src, casting)
    check_writeable(dst)
    if where is True:
        overlaps = isinstance(src, torch.Tensor) and src.dim() > 0  # it may
        write(dst, full.clone() if overlaps else full)
        return
    chosen = as_array(where)
    if chosen._t.dtype is not torch.bool:
        raise TypeError(
            f"Cannot cast array data from {TO_NUMPY[chosen._t.dtype]!r} to dtype('bool') according "
            "to the rule 'safe'"
        )
    shared = may_share(chosen._t, dst._t)
    mask = chosen.tensor.to(dst._t.device)
    try:
        mask = mask.expand(dst.shape)
    except RuntimeError:
        raise ValueError(
            f"could not broadcast where mask from shape {shape_text(mask.shape)} into shape "
            f"{shape_text(dst.shape)}"
        ) from None
    if shared and (dst._flip or chosen._flip or not _in_step(mask, dst._t)):
        raise NotSupported("a mask that shares memory with what is written")  # as NumPy goes
    write(dst, choose_by(mask, full, dst.tensor))
