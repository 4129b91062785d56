"""Arrays of NumPy's that live on a device while a function runs, until it does what host memory is
needed for.

Values that Python asks for are copied. Where code may write to arrays that nothing records, or keep
their memory, and where calls run in NumPy, the call leaves the device, and goes on in host memory,
to its end.
"""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING

import numpy as np
import torch

from np_compile import config, shim
from np_compile.devices import beneath
from np_compile.tape.node import Break

from .array import Array
from .transfers import copy, to_host

if TYPE_CHECKING:
    from ..capture import Capture

_HOST = torch.device("cpu")


def notes_new(c: Capture, a: Array) -> None:
    """Note a root that a program or the shim made on the device."""
    if c.device is not None and not c.grads:
        c.born[id(a)] = a


def leave_device(c: Capture, why: str) -> None:
    """Go on in host memory, to the end of the call. Tensors of the caller's stay where they are."""
    if c.device is None or c.grads or c.closed:
        return
    if c.seg.node.parent is not None:
        c.leaving = True
        try:
            c.cut(Break("loop", why))
        finally:
            c.leaving = False
        if c.device is None:  # what was recorded could not run there
            return
    if c.watch is not None:
        c.watch.spoil(why, for_now=True)
    for a in (*c.moved, *c.born.values()):
        _come_home(a)
    c.moved.clear()
    c.born.clear()
    c.device = None
    c.immediate = not c.fullgraph
    c.weighs = c.immediate and config.measures()
    c.begin_tree(None)
    if get_ident() == c.thread:
        c.left_device = True
        with beneath(c.modes):
            _HOST.__enter__()  # what torch makes from now on is made there


def _come_home(a: Array) -> None:
    """Have a root in host memory alone."""
    if a._t is None or a._np is not None:
        return
    if a._host is None:
        x = shim.ndarray(to_host(a._t), a._flip, a._is_scalar())
        real = shim.to_numpy(x)
        if a._readonly and isinstance(real, np.ndarray):
            real.flags.writeable = False
    else:
        real = a._host
        if a._dirty:
            to_array(real, a)
    a._host, a._np = None, real
    a._dirty = a._ahead = False
    x = shim.share_numpy(np.asarray(real))
    a._t, a._flip = x._t, x._flip
    a._sig = a._fast = None


def to_array(array: np.ndarray, a: Array) -> None:
    """Copy a root's elements from the device to the array that it stands for."""
    host = shim.share_numpy(array)
    if host._flip == a._flip and host._t.stride() == a._t.stride():
        copy(host._t, a._t)
    else:
        array[...] = shim.to_numpy(shim.ndarray(a._t, a._flip))


def end_leaving(c: Capture) -> None:
    """What torch makes is made on the device again."""
    if c.left_device:
        c.left_device = False
        with beneath(c.modes + 1):
            _HOST.__exit__(None, None, None)
