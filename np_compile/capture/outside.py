"""Calls that are not recorded: run at once, through the shim, in NumPy, or in another library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.lib.array_utils import byte_bounds

from np_compile import shim
from np_compile.errors import GradientLost
from np_compile.shim._saved import hooks
from np_compile.tape.node import Break
from np_compile.tape.tree import leaves, mapped, of_type

from . import state
from .arrays.array import Array, let_read, owner
from .arrays.loans import Loan
from .arrays.traced import known
from .frames import as_user
from .given import Given, change_items, is_of_objects
from .masks import masked
from .names.namespace import RANDOM_SOURCES, RandomSource
from .names.numpy_names import Method, numpy_function, row_of_function

if TYPE_CHECKING:
    from .capture import Capture


def run_at_once(c: Capture, why: Break, name: str, args: tuple, kwargs: dict) -> Any:
    if c.device is not None and any(map(callable, args)):  # which is called back with arrays
        c.leave_device(why.text)
    # On arrays of the host NumPy's own library: what is singular to one may not be to another.
    shims = c.grads or c.device or (why.kind == "library" and c.tensors)
    if shims and why.kind in ("library", "data"):
        return c.through_shim(name, args, kwargs, why)
    return c.through_numpy(name, args, kwargs, why)


def through_shim(c: Capture, name: str, args: tuple, kwargs: dict, why: Break) -> Any:
    """Run a call eagerly on the tensors: device and gradient survive."""
    c.cut(why)
    return c.by_shim(name, args, kwargs, why)


def by_shim(c: Capture, name: str, args: tuple, kwargs: dict, why: Break) -> Any:
    """The same, of tensors for which nothing has to wait."""
    given: dict[int, tuple[Array, shim.ndarray, int]] = {}
    for a in of_type((args, kwargs), Array):
        if id(a) not in given:
            x = c.shim_array(a, why)
            given[id(a)] = given[id(x)] = a, x, x._t._version

    def handed(v: Any) -> Any:
        if type(v) is Array:
            return given[id(v)][1]
        return v if isinstance(v, type) or not callable(v) else _called_back(c, v, why)

    own, named = mapped((args, kwargs), handed)
    calls_back = any(callable(v) and not isinstance(v, type) for v in leaves((args, kwargs)))
    ran = False
    try:
        with c.device or nullcontext(), torch._C._DisableAutocast(), hooks(True):
            result = as_user(1)(partial(shim.TABLE[name].function, **named), *own)
        ran = True
    except shim.NotSupported:
        pass
    except Exception:
        written = any(x._t._version != version for _, x, version in given.values())
        if calls_back or written:  # the error may be the user's, and nothing is done twice
            raise
    if not ran:  # NumPy runs the call, or says what is wrong with it
        return c.through_numpy(name, args, kwargs, why)
    if c.device is not None:
        for a, x, version in given.values():
            if x._t._version != version:
                owner(a)._dirty = True
    if id(result) in given:
        return given[id(result)][0]
    arrays = {id(v): v for v in leaves(result) if type(v) is shim.ndarray}
    views = {key: c.view_of_tensor(v, [a for a, *_ in given.values()]) for key, v in arrays.items()}
    return c.fresh(mapped(result, lambda v: views.get(id(v), v)))


def _called_back(c: Capture, function: Callable, why: Break) -> Callable:
    """The user's function for the shim to call: it meets stand-ins, and gives the shim's arrays."""

    @wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*map(c.fresh, args), **kwargs)
        return mapped(result, lambda v: c.shim_array(v, why) if type(v) is Array else v)

    return call


def through_numpy(c: Capture, name: str, args: tuple, kwargs: dict, why: Break | None) -> Any:
    """Run a call in NumPy on the same memory."""
    let_read(c, (args, kwargs))
    try:
        return c.foreign(numpy_function(name), args, kwargs, why, lends=False)
    except GradientLost:
        own, named = mapped((args, kwargs), lambda v: _copied(c, v, why))
        numpy_function(name)(*own, **named)  # of a wrong call NumPy says what is wrong
        raise


def _copied(c: Capture, x: Any, why: Break | None) -> Any:
    """A NumPy array of its own for a stand-in, without a gradient."""
    if type(x) is not Array:
        return x
    found = c.shim_array(x, why)
    return shim.to_numpy(shim.ndarray(found._t.detach().to("cpu", copy=True), found._flip))


def foreign(
    c: Capture, function: Callable, args: Any, kwargs: Any, why: Break | None, lends: bool = True
) -> Any:
    """Call a function that is not recorded, on NumPy arrays; its arrays become stand-ins.

    lends: whether it might keep its arguments.
    """
    if c.traces:
        args, kwargs = known((tuple(args), dict(kwargs)))
    stand_ins = of_type((args, kwargs), Array)
    if stand_ins:
        c.leave_device(why.text if why is not None else "arrays are handed to code outside")
    if any(a._sel is not None for a in stand_ins):
        masked.settle(c, [a for a in stand_ins if a._sel is not None])
    if why is None and any(owner(a)._in_segment is c.seg for a in stand_ins):
        why = Break("value", f"{getattr(function, '__name__', 'a function')} reads an array")
    if why is not None:
        c.cut(why)
    given = Given(args, kwargs, lambda a: c.real(a, why))
    real_args, real_kwargs = given.args, given.kwargs
    loan = Loan(stand_ins).without(given.held()) if lends else None
    users = why is not None and why.kind in ("asked", "foreign") and not c.closed
    if users:  # it may read names that were written, and write them
        c.substitution.show(c.exchange.give)
        c.exchange.given.clear()  # what was given may get stand-ins again
    before = state.switch(None, None)
    try:
        run, operands = function, real_args
        if type(function) is Method:
            run, operands = getattr(real_args[0], function.name), real_args[1:]
        if real_kwargs:
            run = partial(run, **real_kwargs)
        result = as_user(1)(run, *operands)
    finally:
        state.switch(*before)
        # NumPy keeps no array of objects, so those that it makes may hold any stand-in.
        held = given.in_arrays() + ([] if lends else stand_ins)
        taken = _Taken(c, stand_ins, (*real_args, *real_kwargs.values()), held)
        if users:
            c.substitution.look()
        if not c.closed:
            given.take_back(taken.of)
    if c.closed:
        return result
    if loan is not None and loan.is_kept(result):
        c.lend(loan.without((real_args, real_kwargs)))
    if c.plain and any(type(v) is np.ndarray and v.size > c.limit for v in real_args):
        c.end_plain()
    if stand_ins and c.moved and not c.plain:
        own = getattr(function, "__module__", None) or ""
        _reload([owner(a) for a in stand_ins] if own == "numpy" else c.moved)
    return taken.of(result)


class _Taken:
    """The stand-ins of what a function gave: of its arguments, of views of them, of new arrays."""

    def __init__(self, c: Capture, stand_ins: list[Array], given: Iterable[Any], held: list[Array]):
        """held: what arrays of objects that it gives may hold."""
        self._in_capture = c
        self._given = set(map(id, given))  # no references, which `Loan` counts
        self._held = {id(_whole(a)): a for a in held}
        self._args = {id(_whole(a)): a for a in stand_ins} | self._held
        self._new: dict[int, Array] = {}

    def of(self, x: Any) -> Any:
        """Of a result, or a part of one."""
        if id(x) in self._given and not isinstance(x, (np.ndarray, *RANDOM_SOURCES)):
            return x
        arrays = [v for v in leaves(x) if type(v) is np.ndarray]
        if len(arrays) > 1:  # first what others may be views of
            for v in sorted(arrays, key=lambda v: (v.nbytes, v.flags.owndata), reverse=True):
                self._one(v)
        if self._held:
            for v in filter(is_of_objects, arrays):
                change_items(v, lambda item: self._held.get(id(item), item))
        return mapped(x, self._one)

    def _one(self, x: Any) -> Any:
        if type(x) is Array:
            return x
        if not isinstance(x, np.ndarray):
            return RandomSource(x) if isinstance(x, RANDOM_SOURCES) else self._in_capture.fresh(x)
        for found in (self._args, self._new):
            if id(x) in found:
                return found[id(x)]
        if id(x) in self._given:
            return x
        shown = (
            self._in_capture.shown.get(x.__array_interface__["data"][0])
            if self._in_capture.shown
            else None
        )
        if shown is not None and _is_all_of(x, _whole(shown)):
            return shown
        made = self._window(x, self._args)
        if made is None and not x.flags.owndata:
            made = self._window(x, self._new)
        if made is None:
            made = self._in_capture.fresh(x)
        if type(made) is Array:
            self._new[id(x)] = made
        return made

    def _window(self, x: np.ndarray, among: dict[int, Array]) -> Any:
        """As a view of a known array; None where it is none."""
        for a in among.values():
            whole = _whole(a)
            if not isinstance(whole, np.ndarray) or not np.may_share_memory(whole, x):
                continue
            (low, high), (first, last) = byte_bounds(_whole(owner(a))), byte_bounds(x)
            if low <= first and last <= high:
                return self._in_capture.window_of(x, a)
            self._in_capture.stay_plain("arrays share memory in part")
            return x
        return None


def _is_all_of(x: np.ndarray, a: Any) -> bool:
    """Whether it is an array, or what NumPy makes of its buffer."""
    if x is a:
        return True
    if type(a) is not np.ndarray or type(x.base) is not memoryview:
        return False
    alike = x.dtype == a.dtype and x.flags.writeable == a.flags.writeable
    return alike and (x.shape, _steps(x)) == (a.shape, _steps(a))


def _steps(a: np.ndarray) -> list[int]:
    """The strides of an array; none along an axis of one element, which a buffer does not tell."""
    return [s for s, n in zip(a.strides, a.shape, strict=True) if n > 1]


def _whole(a: Array) -> Any:
    return a._np if a._host is None else a._host


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


def _reload(roots: list[Array]) -> None:
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
    """A real NumPy function met by a stand-in, in code that the capture did not reach, or in a
    sequence of another class than list that NumPy was called with."""
    name = row_of_function(function)
    label = f"{function.__module__}.{function.__name__}"
    if not _has_stand_ins((args, kwargs)):
        args, kwargs = mapped((tuple(args), dict(kwargs)), _listed)
    if name is None:
        why = f"{label} is not in the shim"
    elif not _has_stand_ins((args, kwargs)):  # NumPy alone knows where they are
        why = f"{label} has arrays in an object"
    else:
        return c.call(name, tuple(args), dict(kwargs))
    call = getattr(function, "_implementation", function)
    return c.foreign(call, args, kwargs, Break("numpy", why))


def _has_stand_ins(x: Any) -> bool:
    """Whether tuples, lists and dicts, of no class derived from these, hold stand-ins."""
    found = False

    def look(v: Any) -> Any:
        nonlocal found
        found = found or type(v) is Array
        return v

    mapped(x, look)
    return found


def _listed(x: Any) -> Any:
    """A sequence with stand-ins as a list, as the recorder looks into no other class."""
    kind = type(x)
    if kind is Array or not (hasattr(kind, "__len__") and hasattr(kind, "__getitem__")):
        return x
    if isinstance(x, (str, bytes, np.ndarray, Mapping)):
        return x
    try:
        items = [x[k] for k in range(len(x))]
    except Exception:  # it is none
        return x
    return items if any(type(v) is Array for v in items) else x
