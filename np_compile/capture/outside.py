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
from np_compile.tape.tree import of_type, with_items

from . import masked, state
from .array import NEVER_WARN, OPERANDS, Array, _new
from .frames import as_user
from .loans import Loan
from .numpy_names import numpy_function, row_of_function
from .values import Values
from .window import WINDOW, byte_bounds, geometry, overlaps_itself

_BASIC = frozenset((int, slice, type(None), type(...)))


class Outside(Values):
    """The part of a capture that runs what the tape cannot hold, and takes its results back."""

    device: torch.device | None
    grads: bool
    plain: bool
    limit: float
    closed: bool
    lent: list[Array]
    exchange: Any
    substitution: Any

    if TYPE_CHECKING:

        def call(self, name: str, args: tuple, kwargs: dict) -> Any: ...
        def end_plain(self) -> None: ...

        def _stay_plain(self, why: str) -> None: ...

    def _run_at_once(self, why: Break, name: str, args: tuple, kwargs: dict) -> Any:
        if why.kind == "library" or (why.kind == "data" and (self.grads or self.device)):
            return self.through_shim(name, args, kwargs, why)
        return self.through_numpy(name, args, kwargs, why)

    def through_shim(self, name: str, args: tuple, kwargs: dict, why: Break) -> Any:
        """Run a call eagerly on the tensors: device and gradient survive."""
        self.cut(why)
        stand_ins = of_type((args, kwargs), Array)
        args, kwargs = self._shims((args, kwargs), why)
        given = dict(zip(map(id, of_type((args, kwargs), shim.ndarray)), stand_ins, strict=True))
        try:
            with self.device or nullcontext(), torch._C._DisableAutocast():
                result = shim.TABLE[name].function(*args, **kwargs)
        except shim.NotSupported:
            return self.through_numpy(name, args, kwargs, why)
        return given[id(result)] if id(result) in given else self.fresh(result)

    def through_numpy(self, name: str, args: tuple, kwargs: dict, why: Break | None) -> Any:
        """Run a call in NumPy on the same memory."""
        return self.foreign(numpy_function(name), args, kwargs, why, lends=False)

    def plainly(self, name: str, args: tuple, kwargs: dict) -> Any:
        """As `through_numpy` in plain mode, quicker for a ufunc of arrays and numbers."""
        function = numpy_function(name)
        if type(function) is np.ufunc and not kwargs and not self.closed:
            real = []
            for v in args:
                kind = type(v)
                if kind is Array:
                    r = v._np
                    real.append(self.real(v, None) if r is None else r)
                elif kind in OPERANDS:
                    real.append(v)
                else:
                    break
            else:
                quiet = name in NEVER_WARN
                result = function(*real) if quiet else as_user(4, 3)(function, *real)
                extra = len(args) - function.nin
                if extra == 0:  # new memory, of which nobody else knows
                    return self.new_plain(result)
                if extra == 1 and function.nout == 1:
                    return args[-1]
                return result
        return self.through_numpy(name, args, kwargs, None)

    def new_plain(self, result: Any) -> Any:
        """What a call in plain mode gives; a large array ends the mode."""
        if type(result) is np.ndarray and result.size > self.limit:
            self.end_plain()
            return self.fresh(result)
        return result

    def plain_item(self, a: Array, key: Any) -> Any:
        """`a[key]` in plain mode: a view is a stand-in, which knows what it is a view of."""
        if not self.is_plain():
            return self.getitem(a, key)  # type: ignore[attr-defined]
        for k in key if type(key) is tuple else (key,):
            if type(k) not in _BASIC:
                return self.through_numpy("ndarray.__getitem__", (a, key), {}, None)
        real = self.real(a, None) if a._np is None else a._np
        view = real[key]
        return self.plain_view(a, key, view) if type(view) is np.ndarray else view

    def plain_view(self, a: Array, key: Any, view: np.ndarray) -> Any:
        """The stand-in of `a[key]` in plain mode, for this NumPy view."""
        if self.closed:
            return view
        r = _new(Array)
        r._c = self
        r._np = view if self.device is None else None  # the root may go to the device again
        r._base = a
        r._root = a if a._root is None else a._root
        r._via = ("ndarray.__getitem__", (a, key), {}, None)
        return r

    def put_plain(self, a: Array, key: Any, value: Any) -> None:
        """`a[key] = value` in plain mode."""
        for k in key if type(key) is tuple else (key,):
            if type(k) not in _BASIC or self.closed:
                self.through_numpy("ndarray.__setitem__", (a, key, value), {}, None)
                return
        real = self.real(a, None) if a._np is None else a._np
        if type(value) is Array:
            value = self.real(value, None) if value._np is None else value._np
        real[key] = value

    def foreign(
        self, function: Callable, args: Any, kwargs: Any, why: Break | None, lends: bool = True
    ) -> Any:
        """Call a function that is not recorded, on NumPy arrays; its arrays become stand-ins.

        lends: whether it might keep its arguments.
        """
        stand_ins = of_type((args, kwargs), Array)
        if any(a._sel is not None for a in stand_ins):
            masked.settle(self, [a for a in stand_ins if a._sel is not None])
        if why is None and any(self._root(a)._s is self.seg for a in stand_ins):
            why = Break("value", f"{getattr(function, '__name__', 'a function')} reads an array")
        if why is not None:
            self.cut(why)
        real_args, real_kwargs = self._reals((tuple(args), dict(kwargs)), why)
        loan = Loan(stand_ins) if lends else None
        users = why is not None and why.kind in ("asked", "foreign") and not self.closed
        if users:  # it may read names that were written, and write them
            self.substitution.show(self.exchange.give)
            self.exchange.given.clear()  # what was given may get stand-ins again
        before = state.switch(None, None)
        try:
            if real_kwargs:
                function = partial(function, **real_kwargs)
            result = as_user(1)(function, *real_args)
        finally:
            state.switch(*before)
            if users:
                self.substitution.look()
        if self.closed:
            return result
        if loan is not None and loan.is_kept(result):
            self.lend(loan.without((real_args, real_kwargs)))
        if self.plain and any(type(v) is np.ndarray and v.size > self.limit for v in real_args):
            self.end_plain()
        by_id = {id(a._np if a._host is None else a._host): a for a in stand_ins}
        if stand_ins and self.moved and not self.plain:
            own = getattr(function, "__module__", None) or ""
            self._reload([self._root(a) for a in stand_ins] if own == "numpy" else self.moved)
        if isinstance(result, np.ndarray):
            if id(result) in by_id:
                return by_id[id(result)]
            if any(result is v for v in (*real_args, *real_kwargs.values())):
                return result
            for a in stand_ins:
                whole = a._np if a._host is None else a._host
                if isinstance(whole, np.ndarray) and np.may_share_memory(whole, result):
                    return self._window(result, a)
        return self.fresh(result)

    def aside(self, wrapped: Callable, args: Any, kwargs: Any, why: Break) -> Any:
        """Call a function of tensors as a call of its own, which is not part of this capture."""
        if not self.tensors:
            return self.foreign(wrapped, args, kwargs, why)
        self.cut(why)
        args, kwargs = self._tensors((args, kwargs), why)
        before = state.switch(None, None)
        try:
            return wrapped(*args, **kwargs)
        finally:
            state.switch(*before)

    def _reload(self, roots: list[Array]) -> None:
        """After foreign code ran on host copies: carry its changes to the device. roots: of the
        arrays that it may have changed."""
        for a in roots:
            if a._host is not None and a._t is not None and not a._dirty and not a._readonly:
                t = shim.share_numpy(a._host)._t
                if not torch.equal(t, a._t.detach().to("cpu")):
                    with torch.no_grad():
                        a._t.copy_(t)

    def real_ufunc(self, ufunc: Any, method: str, inputs: tuple, kwargs: dict) -> Any:
        """A real NumPy ufunc met by a stand-in, in code that the capture did not reach."""
        name = row_of_function(ufunc)
        out = kwargs.get("out")
        if name is None:
            label = getattr(ufunc, "__name__", str(ufunc))
            call = ufunc if method == "__call__" else getattr(ufunc, method)
            return self.foreign(call, inputs, kwargs, Break("foreign", f"calls {label}"))
        if method != "__call__":
            name = f"{name}.{method}"
        if out and len(out) == 1:
            kwargs = {**kwargs, "out": out[0]}
        return self.call(name, inputs, kwargs)

    def real_function(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        """A real NumPy function met by a stand-in, in code that the capture did not reach."""
        name = row_of_function(function)
        if name is None:
            label = f"{function.__module__}.{function.__name__}"
            why = Break("numpy", f"{label} is not in the shim")
            return self.foreign(getattr(function, "_implementation", function), args, kwargs, why)
        return self.call(name, tuple(args), dict(kwargs))

    def _window(self, result: np.ndarray, a: Array) -> Array:
        """The stand-in of an array that a foreign function made as a view of `a`."""
        root = a if a._root is None else a._root
        whole = root._np if root._host is None else root._host
        why = ""
        if whole.dtype != result.dtype or not tensor_like(result):
            why = "an array is looked at as another dtype"
        elif result.flags.writeable and overlaps_itself(result.shape, result.strides):
            why = "elements of an array share memory"
        if why:
            self._stay_plain(why)
            return result  # type: ignore[return-value]
        r = Array(self)
        r._np = result if root._host is None else None
        r._base = r._root = root
        r._via = (WINDOW, (root, *geometry(result, byte_bounds(whole)[0])), {}, None)
        return r

    def fresh(self, result: Any) -> Any:
        """Stand-ins for what a call outside the tape gave: NumPy arrays, shim arrays, nested."""
        kind = type(result)
        if kind is shim.ndarray:
            r = self._from_tensor(result._t, result._scalar)
            r._flip = result._flip
            return r
        if kind is np.ndarray:
            if self.plain or not tensor_like(result):
                return result
            if self.lent and (found := self._shared(result)) is not None:
                return found
            r = Array(self)
            r._np = result
            r._readonly = not result.flags.writeable
            return r
        if kind is not list and kind is not dict and not isinstance(result, tuple):
            return result
        inside = result.values() if kind is dict else result
        items = [self.fresh(v) for v in inside]
        if all(a is b for a, b in zip(items, inside, strict=True)):
            return result
        if kind is dict:
            return dict(zip(result, items, strict=True))
        return items if kind is list else with_items(result, items)

    def taken_from(self, a: np.ndarray) -> Any:
        """The stand-in of a NumPy array on the memory of a tensor, which torch code may change."""
        r = self._shared(a)
        if r is None:
            r = self.fresh(a)
        if type(r) is Array:
            self.lent.append(r)
        return r

    def _shared(self, result: np.ndarray) -> Any:
        """An array whose memory a stand-in of this call has: as a view of that; else None."""
        for a in (*(r for _, r in self.known.values()), *self.lent):
            root = self._root(a)
            whole = root._np
            if whole is None and root._t is not None and root._t.device.type == "cpu":
                whole = shim.to_numpy(shim.ndarray(root._t))
            if not isinstance(whole, np.ndarray) or not np.may_share_memory(whole, result):
                continue
            (low, high), (first, last) = byte_bounds(whole), byte_bounds(result)
            if self._root(a)._np is None:
                self.real(root, None)
            if low <= first and last <= high and not root._flip:
                return self._window(result, root)
            self._stay_plain("arrays share memory in part")
            return result
        return None

    def _from_tensor(self, t: torch.Tensor, scalar: bool = False) -> Array:
        r = Array(self)
        r._t = t
        r._scalar = scalar
        if t.is_conj() or t.is_neg():  # its memory holds other values: those of a copy do
            r._t = t.resolve_conj().resolve_neg()
            r._readonly = True  # as what is written to a copy is lost
        return r


def tensor_like(a: Any) -> bool:
    """Whether torch can share the memory of a NumPy array."""
    if type(a) is not np.ndarray or a.dtype not in shim.NUMPY_DTYPES:
        return False
    flags = a.flags
    if flags.c_contiguous and flags.aligned:
        return True
    width = a.itemsize
    return flags.aligned and all(s % width == 0 for s in a.strides)
