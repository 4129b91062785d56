"""From stand-ins to data: NumPy arrays, tensors, shim arrays; cutting the tape where they wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from np_compile import shim
from np_compile.errors import GradientLost
from np_compile.tape.node import Break, picked
from np_compile.tape.tree import mapped

from ..frames import user_line
from ..masks import masked
from ..names.numpy_names import numpy_function
from .array import Array, bases, owner
from .elements import are_recorded, is_element, value_of
from .loans import Loan
from .on_device import to_array
from .transfers import to_host

if TYPE_CHECKING:
    from ..capture import Capture


def settled(c: Capture, a: Array, key: Any = None) -> np.ndarray | None:
    """The NumPy array of a stand-in whose data are there and not about to change, or None.

    key: of the element that is to be read; None if one is to be written.
    """
    if not c.immediate or (key is None and c.seg.node.guesses):
        return None  # what is written is not to be written again, should a guess be wrong
    root = owner(a)
    if root._written_in is c.seg or (root._t is None and root._np is None) or a._is_scalar():
        return None
    if key is not None and is_element(key, a.ndim) and are_recorded(c, a, 1):
        return None
    watch = c.watch
    if watch is not None and not watch.spoiled:
        if key is not None and not is_element(key, a.ndim):
            return None  # a view is wanted
        if not watch.touches(a):
            if key is not None and id(a._np) in c.known and watch.reads(a._np, key):
                return a._np  # but not as `_fast`, so that the next element is noted too
            watch.parts = key is not None and id(root._np) in c.known and not watch.is_full
            watch.spoil("Python reads or writes an element of an array")
    r = _real(c, a, None)
    if root is a:
        a._fast = r
    return r


def noted(c: Capture, a: Array) -> np.ndarray | None:
    """The NumPy array of a small argument whose data are there, where the call may be kept: that
    Python reads all of it is noted. Else None."""
    watch = c.watch
    if watch is None or watch.spoiled or id(a._np) not in c.known or a._base is not None:
        return None
    return a._np if a._written_in is not c.seg and watch.reads_all(a._np) else None


def real(c: Capture, a: Array, why: Any) -> Any:
    """The NumPy array or scalar of a stand-in; cuts the tape if its data are not there."""
    if c.elements_read and (known := value_of(c, a)) is not None:
        return known
    if c.watch is not None:
        c.watch.spoil(why or "an array is handed to NumPy, or to Python")
    return _real(c, a, why)


def decided(c: Capture, a: Array, of: Callable[[Any], int], why: str) -> Any:
    """What Python goes by: the truth of a value, or an integer. A call with gradients may be kept
    with it, as one that is like those in which it is the same."""
    watch = c.watch
    known = watch is not None and not watch.spoiled and c.device is None and c.differentiates()
    known = known and a._base is None and a._sel is None
    if not known or (of is not bool and a.dtype.kind not in "iu"):
        return of(c.real(a, why))
    watch.deciding = True
    try:
        _wait_for(c, a, why)
    finally:
        watch.deciding = False
    number = watch.number(a._t)
    if number is None or number in watch.touched:
        return of(c.real(a, why))
    answer = of(_real(c, a, why))
    watch.decides(number, answer)
    return answer


def _wait_for(c: Capture, a: Array, why: Any) -> None:
    """Cut the tape, if the data of a stand-in are not there."""
    if a._sel is not None:
        c.settle(a)
    root = owner(a)
    if root._written_in is c.seg or (root._t is None and root._np is None and root._host is None):
        c.cut(why if type(why) is Break else Break("value", str(why)))


def _real(c: Capture, a: Array, why: Any) -> Any:
    _wait_for(c, a, why)
    if a._np is not None:
        return a._np
    if a._base is not None:
        name, args, kwargs, pick = a._via
        for base in bases(a, lambda b: b._np is not None):  # what waits to be run comes first
            c.real(base, why)
        if a._host is not None:
            return a._host
        r = numpy_function(name)(*c.reals(args, why), **c.reals(kwargs, why))
        r = picked(r, pick)
    elif a._host is not None:
        if a._dirty:
            to_array(a._host, a)
            a._dirty = False
        _touched(c, a)
        return a._host
    else:
        t = a._t
        lost = type(why) is Break and why.kind in ("numpy", "foreign")
        if lost and t.requires_grad and torch.is_grad_enabled():
            raise gradient_lost(why.text)
        if c.device is not None:  # apart from it, whatever the device
            t = to_host(t)
        r = shim.to_numpy(shim.ndarray(t, a._flip, a._is_scalar()))
        if a._readonly and type(r) is np.ndarray:
            r.flags.writeable = False
    if c.device is None:
        a._np = r
    elif a._base is not None and isinstance(r, np.ndarray):
        a._host = r
    elif isinstance(r, np.ndarray):
        a._host = r
        a._dirty = False
        if not c.closed:
            c.moved.append(a)
        _touched(c, a)
    return r


def _touched(c: Capture, a: Array) -> None:
    """Code has the host memory of a root that lives on a device."""
    if c.plain and not c.closed:
        _is_ahead(c, a)


def _is_ahead(c: Capture, a: Array) -> None:
    """What is in the host memory of a root goes to the device, before it is read there."""
    if not a._ahead:
        a._ahead = True
        c.ahead.append(a)


def settle(c: Capture, a: Array) -> None:
    """Make an ordinary array of a selection; its elements are needed."""
    masked.settle(c, [a])


def memory(c: Capture, a: Array, why: str, writes: bool = True) -> Any:
    """As `real`, for code that may write to it: nothing recorded still waits to read it. writes:
    whether it is likely to; a tensor on a device gets what is in its host memory then.

    Errors: GradientLost, since what that code computes has no gradient.
    """
    c.leave_device(why)
    root = owner(a)
    if root._in_segment is c.seg:
        c.cut(Break("value", why))
    if root._t is not None and root._t.requires_grad and torch.is_grad_enabled():
        raise gradient_lost(why)
    found = c.real(a, why)
    if type(found) is not np.ndarray:  # a NumPy scalar
        return found
    del found  # a loan counts references
    c.lend(Loan([a]))
    if c.device is not None and writes and not c.closed:
        _is_ahead(c, root)
    return a._np if a._host is None else a._host


def tensor(c: Capture, a: Array, why: Any) -> torch.Tensor:
    """The torch tensor of a stand-in, on its device, with its gradient history; shared."""
    return c.shim_array(a, why).tensor


def shim_array(c: Capture, a: Array, why: Any) -> shim.ndarray:
    """The shim array on the memory of a stand-in."""
    if c.watch is not None:
        c.watch.spoil(why or "an array is handed to the shim, or to torch")
    _wait_for(c, a, why)
    if a._base is not None:
        name, args, kwargs, pick = a._via
        r = shim.TABLE[name].function(*c.shims(args, why), **c.shims(kwargs, why))
        return picked(r, pick)
    if a._t is None:
        c.load(a)
    c.send(a)
    x = shim.ndarray(a._t, a._flip, a._is_scalar())
    if a._readonly:
        x._readonly = True
    return x


def meta(c: Capture, a: Array) -> shim.ndarray:
    """The shim array without data that has the layout of a stand-in."""
    if a._sel is not None:
        c.settle(a)
    if a._as_value is None:
        c.enter(a)
    return a._as_value.meta


def has_data(c: Capture, a: Array) -> bool:
    """Whether the data of a stand-in are there, or will be at the next cut."""
    if a._sel is not None:
        return c.has_data(a._sel.full(c.seg)) and c.has_data(a._sel.mask.array(c.seg))
    root = owner(a)
    return not (root._t is None and root._np is None and root._host is None) or (
        root._in_segment is c.seg
    )


def to_caller(c: Capture, a: Array) -> Any:
    """What the caller gets for a stand-in: a NumPy array or scalar, or a tensor."""
    return c.tensor(a, None) if c.tensors else c.real(a, None)


def reals(c: Capture, x: Any, why: Any = None) -> Any:
    """Arguments with their stand-ins replaced by NumPy arrays, nested structures included."""
    return _with(x, lambda a: c.real(a, why))


def tensors_of(c: Capture, x: Any, why: Any) -> Any:
    """As `reals`, by tensors."""
    return _with(x, lambda a: c.tensor(a, why))


def shims(c: Capture, x: Any, why: Any) -> Any:
    """As `reals`, by shim arrays."""
    return _with(x, lambda a: c.shim_array(a, why))


def differentiates(c: Capture) -> bool:
    """Whether arrays may have a gradient history."""
    return (
        c.grads
        and torch.is_grad_enabled()
        and (
            any(r._t is not None and r._t.requires_grad for _, r in c.known.values())
            or any(r._t.requires_grad for r in c.lent if r._t is not None)
            or any(r._t.requires_grad for r in c.seg.inputs if r._t is not None)
        )
    )


def _with(x: Any, of: Callable[[Array], Any]) -> Any:
    """A structure with `of(a)` for each stand-in a."""
    return mapped(x, lambda v: of(v) if type(v) is Array else v)


def gradient_lost(why: str) -> GradientLost:
    return GradientLost(
        f"{why}: it would run in NumPy, and the gradient of its argument would be lost\n"
        f"  at {user_line()}\n  Remedy: call it under torch.no_grad(), or replace it by NumPy "
        "calls that the shim has."
    )
