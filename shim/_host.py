"""Calls that run in NumPy: shim arrays in, on the same memory; shim arrays out.

What runs in NumPy, and why, is counted in `in_numpy`. Within `strict()` it raises in place of that.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from ._dtypes import TO_TORCH, DataDependent, NotSupported, Weak
from ._ndarray import (
    as_array,
    is_transformed,
    ndarray,
    overlaps_itself,
    share_or_host,
    to_numpy,
    within,
)  # fmt: skip

in_numpy: collections.Counter[tuple[str, str]] = collections.Counter()


class _Mode(threading.local):
    strict = False  # whether handing over is an error


mode = _Mode()


@contextlib.contextmanager
def strict(on: bool = True) -> Iterator[None]:
    """A block in which nothing is handed over to NumPy: the shim's own error is raised."""
    before = mode.strict
    mode.strict = on
    try:
        yield
    finally:
        mode.strict = before


def is_concrete(t: torch.Tensor) -> bool:
    """Whether a tensor's elements are at hand in host memory, and nothing follows what is done."""
    return is_unfollowed(t) and not (t._is_zerotensor() or _is_functional(t))


def is_unfollowed(t: torch.Tensor) -> bool:
    """Whether a tensor is in host memory and nothing follows what is done: then what `item()` says
    is its element, also where the elements themselves are not at hand."""
    return (
        type(t) is torch.Tensor
        and t.is_cpu
        and not t.requires_grad
        and not _dispatch_modes()
        and _transform() is None
        and forward_ad._current_level < 0
    )


_dispatch_modes = torch._C._len_torch_dispatch_stack
_is_functional = torch._is_functional_tensor
_transform = torch._C._functorch.peek_interpreter_stack  # the innermost of vmap, grad, ...


class Stays(NotSupported):
    """An argument that NumPy cannot have: without data, with a gradient, or many at once."""


def _why_it_stays(t: torch.Tensor) -> str:
    if t.requires_grad:
        what = "with a gradient, which would be lost"
    elif is_transformed(t):
        what = "of a transform of torch.func, or with a forward derivative, which would be lost"
    else:
        what = "without data"
    return f"the shim has no such call, and NumPy cannot have an array {what}"


class Handing:
    """The arguments of one call on their way to NumPy, and its results on the way back."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, ndarray]] = {}
        self._owners: list[tuple[Any, ndarray]] = []  # arrays among them, of the first `_counted`
        self._counted = self._last = 0  # the latter: the place of the owner that was found last
        self._away: list[tuple[ndarray, np.ndarray, np.ndarray]] = []
        self._stands = False  # whether an `_ArrayLike` was given

    def give(self, value: Any, depth: int = 0) -> Any:
        """The argument for NumPy; itself where there is no shim array in it."""
        kind = type(value)
        if kind is ndarray:
            return self._array(value)
        if kind is list or kind is tuple or kind is set:
            if depth > 40 or not any(type(v) not in _PLAIN for v in value):
                return value
            items = [self.give(v, depth + 1) for v in value]
            return value if all(a is b for a, b in zip(items, value, strict=True)) else kind(items)
        if kind is dict:
            items = [self.give(v, depth + 1) for v in value.values()]
            same = all(a is b for a, b in zip(items, value.values(), strict=True))
            return value if same else dict(zip(value, items, strict=True))
        if kind in _PLAIN:
            return value
        if kind is Weak:
            return value.kind(value.tensor.item())
        if kind is slice:
            return slice(*(self.give(v) for v in (value.start, value.stop, value.step)))
        if value is ndarray:
            return np.ndarray
        own = getattr(kind, "__np_own__", None)
        if own is not None:
            found = own(value)
            self._known[id(found)] = (found, value)
            self._known.update(getattr(value, "_given", ()))
            return found
        if kind in _CALLABLE:
            real = getattr(value, "__numpy__", None)
            return _callback(value) if real is None else real
        if hasattr(kind, "__array__") and not _is_numpys(kind):
            self._stands = True
            return _array_like(kind)(value)
        return value

    def _array(self, a: ndarray) -> Any:
        try:
            t = a._t
        except NotSupported:
            own = a._own
        else:
            if t.requires_grad or t.device.type == "meta" or is_transformed(t):
                raise Stays(_why_it_stays(t))
            own = to_numpy(a)
            if t.device.type != "cpu" and not a._scalar:
                self._away.append((a, own, own.copy()))
        if isinstance(own, np.ndarray):
            self._known[id(own)] = (own, a)
        return own

    def take(self, value: Any) -> Any:
        """What NumPy gave, for who called: arrays as shim arrays; scalars are NumPy's."""
        kind = type(value)
        if kind is np.ndarray:
            known = self._known.get(id(value))
            if known is not None:
                return known[1]
            if self._stands:
                _with_the_objects(value)
            made = share_or_host(value)
            if value.base is not None:
                made._base = self._owner(value)
            return made
        if kind is tuple or kind is list:
            items = [self.take(v) for v in value]
            same = all(a is b for a, b in zip(items, value, strict=True))
            return value if same else kind(items)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return kind(*map(self.take, value))
        if kind is dict:
            return {k: self.take(v) for k, v in value.items()}
        if isinstance(value, _ArrayLike):
            return value._value
        if kind is np.ufunc:
            return UFUNCS.get(value, value)
        wrap = WRAPPED.get(kind)
        if wrap is not None:
            known = self._known.get(id(value))
            if known is not None:
                return known[1]
            made = wrap(value)
            made._given.update(self.arrays())
            return made
        if isinstance(value, np.generic) and within.wrapped:
            return as_array(value) if value.dtype in TO_TORCH else value
        return value

    def arrays(self) -> dict[int, tuple[Any, ndarray]]:
        """The arrays that were given, by identity of NumPy's own."""
        return {k: pair for k, pair in self._known.items() if type(pair[1]) is ndarray}

    def _owner(self, result: np.ndarray) -> ndarray | None:
        if self._counted != len(self._known):
            self._counted, self._owners = len(self._known), [*self.arrays().values()]
        for k in range(len(self._owners)):  # results come in the order of arguments, mostly
            at = (self._last + k) % len(self._owners)
            own, a = self._owners[at]
            if np.may_share_memory(own, result):
                self._last = at
                return a if a._base is None else a._base
        base = result.base
        return share_or_host(base) if type(base) is np.ndarray else None

    def settle(self) -> None:
        """Carry what NumPy wrote to copies of arrays on devices to the arrays; and objects into
        arrays of objects, where NumPy has put what stands for them."""
        if self._stands:
            for own, _ in self.arrays().values():
                _with_the_objects(own)
        for a, after, before in self._away:
            if after.tobytes() != before.tobytes():
                if overlaps_itself(a._t.shape, a._t.stride()):  # the copy's elements lie apart
                    raise Stays("NumPy writes to elements that lie in one place, on a device")
                a[...] = share_or_host(after)


_CALLABLE = (types.FunctionType, types.MethodType, functools.partial)
_PLAIN = frozenset((int, float, complex, bool, str, bytes, type(None), type(Ellipsis)))
_PLAIN |= {np.dtype(t).type for t in TO_TORCH}
UFUNCS: dict[np.ufunc, Any] = {}  # of NumPy's, the shim's
# Stand-ins by identity of NumPy's object, which they hold.
STANDING: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
# A class of NumPy's -> what makes its stand-in of an instance; see `handed_class`.
WRAPPED: dict[type, Callable[[Any], Any]] = {}


def _is_numpys(kind: type) -> bool:
    own = (np.ndarray, np.generic, np.flatiter, torch.Tensor)
    return kind in WRAPPED or issubclass(kind, own)


class _ArrayLike:
    """An object whose `__array__` gives a shim array, for NumPy."""

    def __init__(self, value: Any):
        self._value = value

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return Handing().give(self._value.__array__(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_value"], name)


def _wrap_up(self: _ArrayLike, array: Any, *context: Any) -> Any:
    return self._value.__array_wrap__(*map(Handing().take, (array, *context)))


def _forward(name: str) -> Callable:
    return lambda self, *args: getattr(self._value, name)(*args)


def _answer(self: _ArrayLike, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any) -> Any:
    """As the object that it stands for, which may be of a library and meets NumPy's own."""
    named = {k: _objects(v) for k, v in kwargs.items()}
    return self._value.__array_ufunc__(ufunc, method, *map(_objects, args), **named)


def _objects(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(_objects, value))
    return value._value if isinstance(value, _ArrayLike) else value


@functools.cache
def _array_like(kind: type) -> type:
    names = ("__len__", "__getitem__", "__float__", "__int__", "__index__", "__complex__")
    namespace: dict[str, Any] = {n: _forward(n) for n in names if hasattr(kind, n)}
    if hasattr(kind, "__array_wrap__"):
        namespace["__array_wrap__"] = _wrap_up
    if hasattr(kind, "__array_ufunc__"):
        namespace["__array_ufunc__"] = _answer if kind.__array_ufunc__ is not None else None
    bases = tuple(_array_like(b) for b in kind.__bases__ if hasattr(b, "__array__"))
    return type(kind.__name__, bases or (_ArrayLike,), namespace)


def _with_the_objects(a: Any) -> None:
    """Put objects into an array of objects in the places of what stands for them."""
    if isinstance(a, np.ndarray) and a.dtype == object and a.flags.writeable:
        for index in np.ndindex(a.shape):
            if isinstance(a[index], _ArrayLike):
                a[index] = a[index]._value


def _callback(function: Callable) -> Callable:
    """A function of the user's for NumPy to call: it meets shim arrays."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        handing = Handing()
        named = {k: handing.take(v) for k, v in kwargs.items()}
        return handing.give(function(*map(handing.take, args), **named))

    return call


def hand_over(label: str, own: Callable, args: tuple, kwargs: dict, why: Exception) -> Any:
    """Run a call in NumPy that the shim has refused. Errors are NumPy's own; `why` is raised in a
    `strict` block, and for tensors that NumPy cannot have."""
    if mode.strict or isinstance(why, DataDependent) or torch._C._len_torch_dispatch_stack():
        raise why
    handing = Handing()
    try:
        given = [handing.give(v) for v in args]
        named = {k: handing.give(v) for k, v in kwargs.items()}
    except Stays:
        raise why from None
    in_numpy[label, f"{type(why).__name__}: {why}"] += 1
    try:
        result = own(*given, **named)
    except Exception as error:
        raise error from None
    handing.settle()
    return handing.take(result)
