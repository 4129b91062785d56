"""Calls that are not recorded: run at once, through the shim, in NumPy, or in another library."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from np_compile import shim
from np_compile.tape.node import Break
from np_compile.tape.tree import of_type

from . import state
from .arrays.array import Array, owner, read
from .arrays.loans import Loan
from .arrays.traced import known
from .frames import as_user
from .masks import masked
from .names.numpy_names import numpy_function, row_of_function

if TYPE_CHECKING:
    from .capture import Capture


def run_at_once(c: Capture, why: Break, name: str, args: tuple, kwargs: dict) -> Any:
    if why.kind == "library" or (why.kind == "data" and (c.grads or c.device)):
        return c.through_shim(name, args, kwargs, why)
    return c.through_numpy(name, args, kwargs, why)


def through_shim(c: Capture, name: str, args: tuple, kwargs: dict, why: Break) -> Any:
    """Run a call eagerly on the tensors: device and gradient survive."""
    c.cut(why)
    return c.by_shim(name, args, kwargs, why)


def by_shim(c: Capture, name: str, args: tuple, kwargs: dict, why: Break) -> Any:
    """The same, of tensors for which nothing has to wait."""
    stand_ins = of_type((args, kwargs), Array)
    args, kwargs = c.shims((args, kwargs), why)
    tensors = of_type((args, kwargs), shim.ndarray)
    given = dict(zip(map(id, tensors), stand_ins, strict=True))
    before = [x._t._version for x in tensors]
    try:
        with c.device or nullcontext(), torch._C._DisableAutocast():
            result = shim.TABLE[name].function(*args, **kwargs)
    except shim.NotSupported:
        return c.through_numpy(name, args, kwargs, why)
    if c.device is not None:
        for a, x, version in zip(stand_ins, tensors, before, strict=True):
            if x._t._version != version:
                owner(a)._dirty = True
    return given[id(result)] if id(result) in given else c.fresh(result)


def through_numpy(c: Capture, name: str, args: tuple, kwargs: dict, why: Break | None) -> Any:
    """Run a call in NumPy on the same memory."""
    args, kwargs = read((args, kwargs))
    return c.foreign(numpy_function(name), args, kwargs, why, lends=False)


def foreign(
    c: Capture, function: Callable, args: Any, kwargs: Any, why: Break | None, lends: bool = True
) -> Any:
    """Call a function that is not recorded, on NumPy arrays; its arrays become stand-ins.

    lends: whether it might keep its arguments.
    """
    if c.traces:
        args, kwargs = known((tuple(args), dict(kwargs)))
    stand_ins = of_type((args, kwargs), Array)
    if any(a._sel is not None for a in stand_ins):
        masked.settle(c, [a for a in stand_ins if a._sel is not None])
    if why is None and any(owner(a)._s is c.seg for a in stand_ins):
        why = Break("value", f"{getattr(function, '__name__', 'a function')} reads an array")
    if why is not None:
        c.cut(why)
    real_args, real_kwargs = c.reals((tuple(args), dict(kwargs)), why)
    loan = Loan(stand_ins) if lends else None
    users = why is not None and why.kind in ("asked", "foreign") and not c.closed
    if users:  # it may read names that were written, and write them
        c.substitution.show(c.exchange.give)
        c.exchange.given.clear()  # what was given may get stand-ins again
    before = state.switch(None, None)
    try:
        if real_kwargs:
            function = partial(function, **real_kwargs)
        result = as_user(1)(function, *real_args)
    finally:
        state.switch(*before)
        if users:
            c.substitution.look()
    if c.closed:
        return result
    if loan is not None and loan.is_kept(result):
        c.lend(loan.without((real_args, real_kwargs)))
    if c.plain and any(type(v) is np.ndarray and v.size > c.limit for v in real_args):
        c.end_plain()
    by_id = {id(a._np if a._host is None else a._host): a for a in stand_ins}
    if stand_ins and c.moved and not c.plain:
        own = getattr(function, "__module__", None) or ""
        _reload(c, [owner(a) for a in stand_ins] if own == "numpy" else c.moved)
    return _taken(c, result, by_id, (*real_args, *real_kwargs.values()))


def _taken(c: Capture, x: Any, by_id: dict[int, Array], given: tuple) -> Any:
    """The stand-in of what a function gave: of an argument, of a view of one, of a new array.
    by_id: the stand-ins of its arguments, by the ids of their arrays. given: the arguments."""
    if type(x) is tuple or type(x) is list:
        items = [_taken(c, y, by_id, given) for y in x]
        changed = any(y is not z for y, z in zip(items, x, strict=True))
        return type(x)(items) if changed else x
    if not isinstance(x, np.ndarray):
        return c.fresh(x)
    if id(x) in by_id:
        return by_id[id(x)]
    if any(x is v for v in given):
        return x
    for a in by_id.values():
        whole = a._np if a._host is None else a._host
        if isinstance(whole, np.ndarray) and np.may_share_memory(whole, x):
            return c.window_of(x, a)
    return c.fresh(x)


def aside(c: Capture, wrapped: Callable, args: Any, kwargs: Any, why: Break) -> Any:
    """Call a function of tensors as a call of its own, which is not part of this capture."""
    if not c.tensors:
        return c.foreign(wrapped, args, kwargs, why)
    c.cut(why)
    args, kwargs = c.tensors_of((args, kwargs), why)
    before = state.switch(None, None)
    try:
        return wrapped(*args, **kwargs)
    finally:
        state.switch(*before)


def _reload(c: Capture, roots: list[Array]) -> None:
    """After foreign code ran on host copies: carry its changes to the device. roots: of the
    arrays that it may have changed."""
    for a in roots:
        if a._host is not None and a._t is not None and not a._dirty and not a._readonly:
            t = shim.share_numpy(a._host)._t
            if not torch.equal(t, a._t.detach().to("cpu")):
                with torch.no_grad():
                    a._t.copy_(t)


def real_ufunc(c: Capture, ufunc: Any, method: str, inputs: tuple, kwargs: dict) -> Any:
    """A real NumPy ufunc met by a stand-in, in code that the capture did not reach."""
    name = row_of_function(ufunc)
    out = kwargs.get("out")
    if name is None:
        label = getattr(ufunc, "__name__", str(ufunc))
        call = ufunc if method == "__call__" else getattr(ufunc, method)
        return c.foreign(call, inputs, kwargs, Break("foreign", f"calls {label}"))
    if method != "__call__":
        name = f"{name}.{method}"
    if out and len(out) == 1:
        kwargs = {**kwargs, "out": out[0]}
    return c.call(name, inputs, kwargs)


def real_function(c: Capture, function: Callable, args: tuple, kwargs: dict) -> Any:
    """A real NumPy function met by a stand-in, in code that the capture did not reach."""
    name = row_of_function(function)
    if name is None:
        label = f"{function.__module__}.{function.__name__}"
        why = Break("numpy", f"{label} is not in the shim")
        return c.foreign(getattr(function, "_implementation", function), args, kwargs, why)
    return c.call(name, tuple(args), dict(kwargs))
