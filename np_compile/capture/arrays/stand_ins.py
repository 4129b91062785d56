"""Stand-ins for arrays and tensors from outside: arguments, globals, what a call outside gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from np_compile import shim
from np_compile.shim._ndarray import overlaps_itself
from np_compile.tape.key import (
    Unrecordable,
)
from np_compile.tape.node import Break
from np_compile.tape.tree import with_items

from .array import Array, owner, viewing
from .tensors import check_ordinary, check_place, of_memory
from .window import (
    WINDOW,
    byte_bounds,
    common_base,
    geometry,
    overlapping,
)

if TYPE_CHECKING:
    from ..capture import Capture


def adopt(c: Capture, a: Any) -> Any:
    """The stand-in of an array of the caller's, by reference; NumPy ones by identity.

    Arrays that torch cannot hold (dates, strings, objects, subclasses) are returned unchanged.
    """
    found = c.known.get(id(a))
    if found is not None:
        return found[1]
    if isinstance(a, torch.Tensor):
        check_ordinary(a)
        c.take_over(a)
        r = c.from_tensor(a)
    else:
        if not tensor_like(a):
            return a
        r = Array(c, a)
        r._readonly = not shim.is_writeable(a)
        if not (r._readonly or a.flags.contiguous) and overlaps_itself(a.shape, a.strides):
            c.stay_plain("an argument has elements that share memory")
    c.known[id(a)] = (a, r)
    return r


def separate(c: Capture) -> None:
    """Make arrays that overlap in memory views of one base, so that writes are seen by all."""
    roots = [r for a, r in c.known.values() if r._np is not None and r._base is None]
    for group in overlapping([r._np for r in roots]):
        members = [roots[i] for i in group]
        base = common_base([r._np for r in members])
        if base is None:  # of several dtypes
            c.stay_plain("arguments of different dtypes share memory")
            return
        whole = Array(c, base)
        low = byte_bounds(base)[0]
        for r in members:
            viewing(r, whole, (WINDOW, (whole, *geometry(r._np, low)), {}, None))


def take_over(c: Capture, t: torch.Tensor) -> None:
    """A tensor comes among the arrays: from now on gradients count, and its device."""
    check_place(t, c.tensors_on)
    c.tensors_on = t.device
    c.grads = True
    c.immediate = c.weighs = False
    if t.device.type != "cpu" and c.device is None:
        c.cut(Break("asked", "a tensor on another device"))
        c.device = t.device
        c.begin_tree(t.device)


def snapshot(c: Capture, a: np.ndarray) -> Any:
    """The stand-in of a real array met on the way: by value, as unseen code may change it."""
    found = c.known.get(id(a))
    if found is not None:
        return found[1]
    if not tensor_like(a):
        raise Unrecordable(f"an array of {type(a).__name__} {a.dtype}")
    r = Array(c, a.copy(order="K"))
    r._copied = True
    return r


def adopt_foreign(c: Capture, a: Any) -> Any:
    """The stand-in of a tensor or of another library's array (DLPack) among NumPy calls."""
    if isinstance(a, torch.Tensor) and not c.tensors:
        raise Unrecordable("a torch.Tensor, which compile(wrap_numpy(f)) would record")
    r = c.adopt(a if isinstance(a, torch.Tensor) else of_memory(a))
    c.lent.append(r)
    return r


def fresh(c: Capture, result: Any) -> Any:
    """Stand-ins for what a call outside the tape gave: NumPy arrays, shim arrays, nested."""
    kind = type(result)
    if kind is shim.ndarray:
        r = c.from_tensor(result._t, result._scalar)
        r._flip = result._flip
        return r
    if kind is np.ndarray:
        if c.plain or not tensor_like(result):
            return result
        if c.lent and (found := _shared(c, result)) is not None:
            return found
        r = Array(c, result)
        r._readonly = not shim.is_writeable(result)
        return r
    if kind is not list and kind is not dict and not isinstance(result, tuple):
        return result
    inside = result.values() if kind is dict else result
    made = {key: c.fresh(v) for key, v in {id(v): v for v in inside}.items()}
    items = [made[id(v)] for v in inside]  # one array in several places stays one
    if all(a is b for a, b in zip(items, inside, strict=True)):
        return result
    if kind is dict:
        return dict(zip(result, items, strict=True))
    return items if kind is list else with_items(result, items)


def taken_from(c: Capture, a: np.ndarray) -> Any:
    """The stand-in of a NumPy array on the memory of a tensor, which torch code may change."""
    r = _shared(c, a)
    if r is None:
        r = c.fresh(a)
    if type(r) is Array:
        c.lent.append(r)
    return r


def _shared(c: Capture, result: np.ndarray) -> Any:
    """An array whose memory a stand-in of this call has: as a view of that; else None."""
    for a in (*(r for _, r in c.known.values()), *c.lent):
        root = owner(a)
        whole = root._np
        if whole is None and root._t is not None and root._t.device.type == "cpu":
            whole = shim.to_numpy(shim.ndarray(root._t))
        if not isinstance(whole, np.ndarray) or not np.may_share_memory(whole, result):
            continue
        (low, high), (first, last) = byte_bounds(whole), byte_bounds(result)
        if owner(a)._np is None:
            c.real(root, None)
        if low <= first and last <= high and not root._flip:
            return c.window_of(result, root)
        c.stay_plain("arrays share memory in part")
        return result
    return None


def window_of(c: Capture, result: np.ndarray, a: Array) -> Array:
    """The stand-in of an array that a foreign function made as a view of `a`."""
    root = owner(a)
    whole = root._np if root._host is None else root._host
    why = ""
    if whole.dtype != result.dtype or not tensor_like(result):
        why = "an array is looked at as another dtype"
    elif shim.is_writeable(result) and overlaps_itself(result.shape, result.strides):
        why = "elements of an array share memory"
    if why:
        c.stay_plain(why)
        return result  # type: ignore[return-value]
    r = Array(c, result if root._host is None else None)
    place = geometry(result, byte_bounds(whole)[0])
    return viewing(r, root, (WINDOW, (root, *place), {}, None))


def view_of_tensor(c: Capture, x: shim.ndarray, among: Sequence[Array]) -> Any:
    """The stand-in of what the shim made as a view of one of these arrays; else what it made."""
    memory = _memory(x._t)
    a = next((a for a in among if _memory(owner(a)._t) == memory), None)
    if a is None or not x.size:
        return x
    if x.dtype != a.dtype:  # `real_if_close` has looked at complex numbers
        return c.call("ndarray.real", (a,), {})
    root = owner(a)
    backwards = sum((x.shape[d] - 1) * x._t.stride(d) for d in x._flip)
    start = x._t.data_ptr() + backwards * x.itemsize - root._t.data_ptr()
    return viewing(Array(c), root, (WINDOW, (root, x.shape, x.strides, start, True), {}, None))


def _memory(t: torch.Tensor) -> int:
    return t.untyped_storage().data_ptr()


def from_tensor(c: Capture, t: torch.Tensor, scalar: bool = False) -> Array:
    r = Array(c)
    r._t = t
    r._scalar = scalar
    c.notes_new(r)
    if t.is_conj() or t.is_neg():  # its memory holds other values: those of a copy do
        r._t = t.resolve_conj().resolve_neg()
        r._readonly = True  # as what is written to a copy is lost
    return r


def tensor_like(a: Any) -> bool:
    """Whether torch can share the memory of a NumPy array."""
    if type(a) is not np.ndarray or a.dtype not in shim.NUMPY_DTYPES:
        return False
    width = a.itemsize  # a contiguous array may have any stride along an axis of one element
    return a.flags.aligned and not any(s % width for s in a.strides)
