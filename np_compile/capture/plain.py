"""Plain mode: calls run in NumPy as they come, and nothing waits to run.

A call goes on so where recording, a compile or a device would take longer, for the rest of a loop
say, or where what is recorded could come too late: while code outside keeps memory, after flags
were set, with several threads at work.
"""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from np_compile import config, errstate, shim
from np_compile.tape.node import Break

from . import state
from .arrays.array import Array, viewing
from .arrays.loans import Loan
from .arrays.operators import NEVER_WARN, OPERANDS
from .arrays.transfers import copy
from .frames import as_user
from .names.numpy_names import numpy_function

if TYPE_CHECKING:
    from .capture import Capture
    from .policy.decide import Decision

_BASIC = frozenset((int, slice, type(None), type(...)))
_lock = state.lock


def stay_plain(c: Capture, why: str) -> None:
    """The rest of the call runs in NumPy."""
    if c.lasting:
        return
    c.leave_device(why)
    if c.seg.node.parent is not None:
        c.cut(Break("numpy", why))
    c.plain = c.lasting = True
    c.limit = float("inf")
    if c.watch is not None:
        c.watch.spoil(why, for_now=True)
    c.tell(Break("numpy", why))


def go_plain(c: Capture, decision: Decision) -> None:
    """Go on in NumPy, until the end of the loop or an array of more elements than the limit."""
    why = decision.reason
    c.leave_device(why)
    if c.seg.node.parent is not None:
        c.leaving = c.device is not None or (c.in_vain and not c.tensors)
        try:
            c.cut(Break("loop", why))
        finally:
            c.leaving = False
    if c.watch is not None:
        c.watch.spoil(why, for_now=True)
    c.plain = True
    if c.device is not None:
        c.left += 1
        c.immediate = True
    c.limit = float("inf") if config.plain == "always" else decision.limit
    c.tell(Break("plain", why))


def end_plain(c: Capture) -> None:
    """Plain mode ends, unless there is a reason for it to go on: what it has touched in host
    memory goes back to the device."""
    c.before_loans = False
    c.until = None
    c.plain = c.lasting or c.heard or bool(c.loans)
    if c.device is not None and not c.plain:
        c.immediate = False
        for a in c.ahead:
            c.send(a)
        c.ahead.clear()


def is_plain(c: Capture) -> bool:
    """Whether calls run in NumPy at present. It ends when all that was lent is given back, and when
    kernels that it waits for are there: in a marked loop with the iteration."""
    if get_ident() != c.thread and not c.lasting:
        c.enter_thread()
    if c.loans:
        c.loans = [loan for loan in c.loans if loan.is_kept()]
        c.plain = bool(c.loans) or c.lasting or c.heard or c.before_loans
    if c.heard and not c.is_told():
        c.heard = False
        c.end_plain()
    if c.until is not None and not c.iterations and c.until.ready:
        c.end_plain()
        c.resumes = True
    return c.plain


def is_told(c: Capture) -> bool:
    """Whether the function asks to be told of floating-point errors: by np.errstate, or by a filter
    of warnings that it has set. Of tensors there are no such errors. Filters are the process's:
    where calls run in other threads too, nobody knows who has set them."""
    if state.captures.value > 1:
        c.filters = None
    if c.tensors:
        return False
    return errstate.raises() or (c.filters is not None and errstate.shows(c.filters))


def hear(c: Capture) -> None:
    """Go on in NumPy while somebody asks to be told of floating-point errors."""
    why = Break("numpy", errstate.REASON)
    c.leave_device(why.text)
    if c.seg.node.parent is not None or c.fullgraph:
        c.cut(why)
    if c.watch is not None:
        c.watch.spoil(why.text, for_now=True)
    c.plain = c.heard = True
    c.limit = float("inf")
    c.tell(why)


def lend(c: Capture, loan: Loan) -> None:
    """Record nothing while code outside keeps the memory of arrays."""
    if c.tensors or c.device is not None or c.closed or c.lasting:
        return
    if not c.loans:
        c.before_loans = c.plain
    if not c.plain:
        c.cut(Break("value", "code outside the function keeps the memory of an array"))
    c.loans.append(loan)
    c.plain = True
    c.limit = float("inf")


def enter_thread(c: Capture) -> None:
    """Another thread than the call's own works on its arrays: go on in NumPy, to the end."""
    with _lock:
        c.stay_plain("several threads work on the arrays of one call")


def send(c: Capture, a: Array) -> None:
    """Carry what plain mode may have written to a root to the device."""
    if a._ahead:
        a._ahead = False
        a._fast = None
        if not a._readonly:
            with torch.no_grad():
                copy(a._t, shim.share_numpy(a._host)._t)


def plainly(c: Capture, name: str, args: tuple, kwargs: dict) -> Any:
    """As `through_numpy` in plain mode, quicker for a ufunc of arrays and numbers."""
    function = numpy_function(name)
    if type(function) is np.ufunc and not kwargs and not c.closed:
        real = []
        for v in args:
            kind = type(v)
            if kind is Array:
                r = v._np
                real.append(c.real(v, None) if r is None else r)
            elif kind in OPERANDS:
                real.append(v)
            else:
                break
        else:
            quiet = name in NEVER_WARN
            result = function(*real) if quiet else as_user(4, 3)(function, *real)
            extra = len(args) - function.nin
            if extra == 0:  # new memory, of which nobody else knows
                return c.new_plain(result)
            if extra == 1 and function.nout == 1:
                return args[-1]
            return result
    return c.through_numpy(name, args, kwargs, None)


def new_plain(c: Capture, result: Any) -> Any:
    """What a call in plain mode gives; a large array ends the mode."""
    if type(result) is np.ndarray and result.size > c.limit:
        c.end_plain()
        return c.fresh(result)
    return result


def plain_item(c: Capture, a: Array, key: Any) -> Any:
    """`a[key]` in plain mode: a view is a stand-in, which knows what it is a view of."""
    if not c.is_plain():
        return c.getitem(a, key)  # type: ignore[attr-defined]
    for k in key if type(key) is tuple else (key,):
        if type(k) not in _BASIC:
            return c.through_numpy("ndarray.__getitem__", (a, key), {}, None)
    real = c.real(a, None) if a._np is None else a._np
    view = real[key]
    return c.plain_view(a, key, view) if type(view) is np.ndarray else view


def plain_view(c: Capture, a: Array, key: Any, view: np.ndarray) -> Any:
    """The stand-in of `a[key]` in plain mode, for this NumPy view."""
    if c.closed:
        return view
    known = view if c.device is None else None  # the root may go to the device again
    return viewing(Array(c, known), a, ("ndarray.__getitem__", (a, key), {}, None))


def put_plain(c: Capture, a: Array, key: Any, value: Any) -> None:
    """`a[key] = value` in plain mode."""
    for k in key if type(key) is tuple else (key,):
        if type(k) not in _BASIC or c.closed:
            c.through_numpy("ndarray.__setitem__", (a, key, value), {}, None)
            return
    real = c.real(a, None) if a._np is None else a._np
    if type(value) is Array:
        value = c.real(value, None) if value._np is None else value._np
    real[key] = value
