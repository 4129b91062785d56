"""`wrap_numpy` without compilation: the function runs on shim arrays, call by call."""

from __future__ import annotations

import functools
import operator
import threading
import types
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from sys import getrefcount
from typing import Any

import numpy as np
import torch
from torch._C import _len_torch_function_stack as _context_depth

from . import shim
from .attributes import own_dict
from .capture import state
from .capture.arrays.tensors import check_place, check_tensor
from .capture.exchange.arguments import Exchange, is_record
from .capture.names.numpy_names import row_of_function
from .capture.names.substitute import Substitution, contents, evaluators, importer
from .shim._ndarray import within
from .shim._saved import following
from .tape.tree import mapped, with_items

_SUBMODULES = {np.linalg: shim.linalg, np.fft: shim.fft, np.random: shim.random}


class ShimNames:
    """See `capture.substitute.Names`: NumPy's names lead to the shim's."""

    def __init__(self) -> None:
        self.builtins = {
            "__import__": importer(lambda: self.substitution),
            **evaluators(lambda: self.substitution),
        }
        self.substitution: Substitution | None = None  # that uses them

    def renew(self) -> None:
        pass

    def numpy(self, value: Any) -> Any:
        if value is np:
            return shim
        if value in _SUBMODULES if isinstance(value, type(np)) else False:
            return _SUBMODULES[value]
        if isinstance(value, (type, type(np))):
            return value
        name = row_of_function(value)
        return value if name is None else shim.TABLE[name].function

    def foreign(self, value: Any) -> Any:
        return value

    def maker(self, value: type) -> Any:
        return value

    def torch(self, value: Any) -> Any:
        return _TORCH if value is torch else _DOORS.get(value, value)

    def instance(self, value: Any) -> Any:
        return value

    def real(self, value: Any) -> Any:
        return value

    def helper(self, f: types.FunctionType, copy: types.FunctionType) -> Callable:
        return copy

    def of_one_call(self, value: Any) -> bool:
        return False

    def array(self, value: Any) -> Any:
        return value


def _to_torch(real: Callable) -> Callable:
    """A door from NumPy to torch, which takes shim arrays too."""

    @functools.wraps(real)
    def convert(data: Any, *args: Any, **kwargs: Any) -> Any:
        if type(data) is not shim.ndarray:
            return real(data, *args, **kwargs)
        t = data.tensor
        if real is not torch.tensor:
            (data if data.base is None else data.base)._shared = True  # who knows what has it now
            return t if real is torch.from_numpy else real(t, *args, **kwargs)
        grad = kwargs.pop("requires_grad", False)
        kwargs.setdefault("dtype", args[0] if args else None)
        return t.detach().clone().to(**kwargs).requires_grad_(grad)

    return convert


_DOORS = {f: _to_torch(f) for f in (torch.from_numpy, torch.as_tensor, torch.asarray, torch.tensor)}


class _Torch:
    """The module `torch`, with doors that know shim arrays."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(torch, name)
        return _DOORS.get(value, value) if name in _NAMES else value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(torch, name, value)


_NAMES = frozenset(f.__name__ for f in _DOORS)
_TORCH = _Torch()
_HOLD_NOTHING = frozenset(
    (torch.Tensor, torch.nn.Parameter, np.ndarray, int, float, complex, bool, str, type(None),
     types.ModuleType, np.ufunc)
)  # fmt: skip
_OLD = 1000  # items of a container, the last ones, in which nothing new was found


class _Arrays:
    """What an `Exchange` asks of: shim arrays stand for tensors.

    device: where the tensors are; None if there are none. known: the arrays, with their tensors, by
    identity of these.
    """

    array_type = shim.ndarray
    tensors = True

    def __init__(self, substitution: Substitution):
        self.substitution = substitution
        self.device: torch.device | None = None
        self.known: dict[int, tuple[torch.Tensor, shim.ndarray]] = {}

    def adopt(self, x: Any) -> Any:
        """The shim array of a tensor, one for each; NumPy arrays stay what they are."""
        if not isinstance(x, torch.Tensor):
            return x
        known = self.known.get(id(x))
        if known is None:
            check_tensor(x)
            check_place(x, self.device)
            self.device = x.device
            within.grads |= x.requires_grad
            known = self.known[id(x)] = (x, shim.from_tensor(x))
        return known[1]

    def references(self) -> list[int]:
        """How often each array is referred to."""
        return [getrefcount(a) for _, a in self.known.values()]

    def has_data(self, a: shim.ndarray) -> bool:
        """Whether a shim array has its elements: nothing waits to be run."""
        return True

    def to_caller(self, a: shim.ndarray) -> torch.Tensor:
        """The tensor of a shim array: the caller's own where it is one."""
        return a.tensor


class _Exchange(Exchange):
    """Tensors in, tensors out."""

    def source(self, x: Any) -> Any:
        return x


def run_eagerly(wrapped: Any, function: types.FunctionType, args: tuple, kwargs: dict) -> Any:
    """Call a wrapped function, `function` in plain Python, on shim arrays; tensors come back. Where
    another wrapped function calls it on its own arrays, arrays come back."""
    free: list[Substitution] = wrapped._local.__dict__.setdefault("free", [])
    # Each call that runs has its own.
    substitution = free.pop() if free else _substitution(ShimNames)
    f = substitution.function(function)
    arrays = _Arrays(substitution)
    exchange = _Exchange(arrays)
    grads = within.grads
    alive = getrefcount(shim.ndarray)  # each array refers to its class
    try:
        given = [exchange.take(a) for a in args]
        named = {k: exchange.take(v) for k, v in kwargs.items()}
        if arrays.device is None and any(
            type(a) is shim.ndarray for a in (*given, *named.values())
        ):
            give = _as_it_is
        else:
            give = exchange.give
    except BaseException:
        within.grads = grads
        exchange.copies.clear()
        raise
    counts = arrays.references()
    substitution.enter()
    before = state.switch(None, substitution)
    outer, within.wrapped = within.wrapped, True
    try:
        with (
            following(within.grads),
            _context(arrays.device),
            torch._C._DisableAutocast(),  # dtypes are NumPy's
        ):
            return give(f(*given, **named))
    finally:
        within.wrapped, within.grads = outer, grads
        state.switch(*before)
        exchange.restore()
        if give is not _as_it_is and (
            arrays.references() != counts or getrefcount(shim.ndarray) - alive > len(arrays.known)
        ):  # arrays are referred to from elsewhere
            seen: set[int] = set()
            for x in (*args, *kwargs.values(), *substitution.reachable()):
                _give_stored(x, seen)
        substitution.leave(give)
        free.append(substitution)


def _give_stored(x: Any, seen: set[int]) -> Any:
    """x, which a name or an argument leads to, with tensors for the shim arrays that were stored in
    it."""
    kind = type(x)
    if kind is shim.ndarray:
        return x.tensor
    if kind in _HOLD_NOTHING:
        return x
    if kind is types.CellType:
        _give_stored(contents(x), seen)
        return x
    if kind is types.FunctionType:
        if x.__defaults__ or x.__kwdefaults__:
            _give_stored((x.__defaults__, x.__kwdefaults__), seen)
        return x
    if id(x) in seen:
        return x
    seen.add(id(x))
    if isinstance(x, tuple):
        items = [_give_stored(v, seen) for v in x]
        return x if all(map(operator.is_, items, x)) else with_items(x, items)
    place: Any = x if isinstance(x, (list, dict, deque)) else None
    if place is None and (is_record(x) or isinstance(x, torch.nn.Module)):
        place = own_dict(x)
    if place is None:
        return x
    old = 0
    for k in reversed(place) if isinstance(place, dict) else reversed(range(len(place))):
        new = _give_stored(place[k], seen)
        if new is not place[k]:
            place[k], old = new, 0
        elif (old := old + 1) > _OLD:
            break
    return x


def _context(place: torch.device | None) -> Any:
    """New arrays are made where those of the caller are."""
    if place is None or (place.type == "cpu" and _context_depth() == 0):
        return nullcontext()
    return place


def _as_it_is(x: Any) -> Any:
    return x


class OnArrays:
    """A function as one of shim arrays. names: what it finds under NumPy's and others'."""

    def __init__(self, function: types.FunctionType, names: type[ShimNames]):
        self._function, self._names = function, names
        self._local = threading.local()

    def __call__(self, args: tuple, kwargs: dict) -> Any:
        free: list[Substitution] = self._local.__dict__.setdefault("free", [])
        substitution = free.pop() if free else _substitution(self._names)
        before = state.switch(None, substitution)
        try:
            f = substitution.function(self._function)
            substitution.enter()
            result = f(*args, **kwargs)
        finally:
            state.switch(*before)
            substitution.leave(_as_it_is)
            free.append(substitution)
        return mapped(result, lambda v: shim.from_tensor(v) if isinstance(v, torch.Tensor) else v)


def _substitution(kind: type[ShimNames]) -> Substitution:
    names = kind()
    names.substitution = Substitution(names)
    return names.substitution
