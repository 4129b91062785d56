"""Changes of an array that are no change of its elements: flags, shape, dtype, size."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from np_compile import shim
from np_compile.tape.node import Break, picked

from ..names.numpy_names import numpy_function
from .array import Array, viewing

if TYPE_CHECKING:
    from ..capture import Capture


def set_flags(c: Capture, a: Array, write: Any, align: Any, uic: Any) -> None:
    """`a.setflags(...)`: NumPy does it, and says of all that follows whether it may write."""
    why = Break("numpy", "sets flags of an array")
    c.leave_device(why.text)
    c.cut(why)
    if c.tensors or c.device is not None:  # which know no such flags
        shim.TABLE["ndarray.setflags"].function(c.shim_array(a, why), write, align, uic)
        if write is not None:
            a._readonly = not write
            a._sig = None
        return
    for state in _referring(c, a):  # views that are there keep their flags
        if state.get("_base") is a and state.get("_np") is None:
            name, args, kwargs, pick = state["_via"]
            view = numpy_function(name)(*c.reals(args, why), **c.reals(kwargs, why))
            state["_np"] = picked(view, pick)
    if a._reformed:
        set_flags(c, a._base, write, align, uic)  # the array that it was, and is a view of
        a._np = a._sig = a._fast = None
        a._readonly = a._base._readonly
        return
    real = c.real(a, why)
    owner = a
    while owner._base is not None:
        owner = owner._base
    if write and not owner._readonly | a._readonly and id(owner._np) not in c.known:
        write = None  # it may be written to, though NumPy knows no owner of torch's memory
    elif write and a._readonly and a._base is None and id(real) not in c.known and _has_own(real):
        # Nobody but this function has the array.
        x = shim.share_numpy(real)
        a._np = real = shim.to_numpy(shim.ndarray(x._t, x._flip))
        write = None
    real.setflags(write, align, uic)
    a._readonly = not shim.is_writeable(real)
    a._sig = a._fast = None
    c.stay_plain("flags were set")


def _has_own(a: Any) -> bool:
    """Whether an array's memory is NumPy's or torch's, not that of bytes or of a file."""
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a.base is None or isinstance(a.base, torch.Tensor)


def _referring(c: Capture, a: Array) -> Iterator[dict[str, Any]]:
    """The attributes of the stand-ins that refer to one: those of its views are among them."""
    for holder in gc.get_referrers(a):
        state = holder.__dict__ if type(holder) is Array else holder
        if type(state) is dict and state.get("_in_capture") is c:
            yield state


def change_in_place(c: Capture, a: Array, name: str, value: Any) -> None:
    """`a.shape = value`, `a.dtype = value`: the stand-in becomes a view of what it was."""
    if c.watch is not None:
        c.watch.spoil("a shape or dtype is set in place")
    old = Array(c)
    old.__dict__.update(a.__dict__)
    if a._in_segment is c.seg:
        c.seg.values[a._as_number] = old
        c.seg.inputs = [old if v is a else v for v in c.seg.inputs]
    view = c.call(name, (old, value), {})
    if type(view) is not Array:
        view = c.fresh(view)
    if type(view) is np.ndarray and (
        not view.size  # what has no memory shares none
        or (c.plain and np.may_share_memory(view, c.real(old, None)))  # of another dtype
    ):
        view = Array(c, view)
    if type(view) is np.ndarray or (view._base is None and not c.plain):  # other memory
        raise AttributeError(
            "Incompatible shape for in-place modification. Use `.reshape()` to make a copy "
            "with the desired shape."
        )
    if c.plain:  # which knows a view by its place
        viewing(view, old, (name, (old, value), {}, None))
    for state in _referring(c, a):  # views of it are views of what it was
        if state.get("_root") is a:
            state["_root"] = old
        if state.get("_base") is a:  # be it a view itself
            name, args, kwargs, pick = state["_via"]
            args = tuple(old if v is a else v for v in args)
            state.update(_base=old, _via=(name, args, kwargs, pick))
    state = dict(view.__dict__)
    a.__dict__.clear()
    a.__dict__.update(state)
    a._reformed = True
    if a._in_segment is c.seg:
        c.seg.values[a._as_number] = a


def resize(c: Capture, a: Array, shape: tuple, refcheck: bool) -> None:
    """`a.resize(shape)`: an array that the function made lies elsewhere then; a view may get
    another shape."""
    real = c.memory(a, "ndarray.resize runs in NumPy")
    if a._base is not None:
        view = real.view()
        view.resize(*shape, refcheck=refcheck)
        return change_in_place(c, a, "reshape", view.shape)
    if not any(a is known for _, known in c.known.values()):
        real, refcheck = real.copy(order="K"), False
    real.resize(*shape, refcheck=refcheck)
    a.__dict__.clear()
    a._in_capture = c
    a._np = real


def change_callers(c: Capture) -> None:
    """Give the caller's arrays the shapes and dtypes that were set."""
    for array, a in c.known.values():
        if type(array) is not np.ndarray or not a._reformed:
            continue
        old = a._root
        if old is not None:  # what other views are views of keeps its form
            if old._host is None:
                old._np = array.view()
            else:
                old._host = array.view()
        with shim.quiet():  # it was the user who set it
            if a.dtype != array.dtype:
                array.dtype = a.dtype  # type: ignore[misc]  # NumPy has a setter
            if a._extents() != array.shape:
                array.shape = a._extents()
        if old is not None and old._host is not None:
            a._host = array
        elif c.device is None:
            a.__dict__.clear()
            a._in_capture = c
            a._np = array
