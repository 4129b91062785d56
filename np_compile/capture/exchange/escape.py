"""Stand-ins that outlive their call: stored by the function in an object, a list, a cell.

Every stand-in refers to its capture, so references to the capture that are left at the end tell
that there are some. They are looked for in what the call could reach (arguments and result,
globals, closures, defaults and attributes of its functions, an exception on its way out), nearest
things first, and no further than until each of their references is known. Who holds one gets the
real array.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import types
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np

from np_compile.attributes import own_dict, slot_values, slots
from np_compile.tape.tree import with_items

from ..arrays.array import Array
from ..names.origins import origin_of
from ..names.substitute import contents

# What Python counts of an object that only a list refers to, and of one whose list is gone through:
# from Python 3.14 on variables lend to calls what they refer to.
_probe = [object()]
_OWN = sys.getrefcount(_probe[0])
_LISTED = next(sys.getrefcount(x) for x in [object()])
_IMMUTABLE = (tuple, frozenset, types.MethodType)


def replace_escaped(held: list[Any], roots: Callable[[], Iterable], raised: bool) -> None:
    """Put real arrays in the place of stand-ins that something still refers to.

    held: the capture, to which its caller has no reference of its own. roots: gives what the call
    could reach. raised: whether it ends with an exception.
    """
    if sys.getrefcount(held[0]) <= _OWN:
        return
    search = _Search(held[0])
    layer = search.layer([list(roots())])  # a list of ours in place of the caller's variables
    while layer:
        layer = search.layer(layer)
        search.exchange()
        if search.found_all(sys.getrefcount(held[0]) - _OWN - 1):  # the search's own
            return
    if not raised:  # somebody has one whom nothing tells: a library's cache, say
        search.everywhere()


class _Search:
    """A walk, layer by layer, over who refers to whom."""

    def __init__(self, capture: Any):
        self.capture = capture
        self.seen: set[int] = set()
        self.holders: list[Any] = []  # found to hold something that is to be replaced
        self.parents: dict[int, list[Any]] = {}  # of what is made again to be changed
        self.real: dict[int, Any] = {}  # id of a stand-in, or of what is made again -> the new
        self.arrays: list[Array] = []
        self.remade: list[Any] = []  # what was made again
        self.held: Counter[int] = Counter()  # references by what cannot be changed, known ones
        self.user_types: dict[type, bool] = {}

    def layer(self, holders: list[Any]) -> list[Any]:
        """What these refer to and has not been met yet."""
        following = []
        for holder in holders:
            noted = False
            for child in _children(holder):
                if type(child) is Array:
                    if (
                        child._in_capture is self.capture
                        and not noted
                        and self.capture.has_data(child)
                    ):
                        self.holders.append(holder)
                        noted = True
                    continue
                key = id(child)
                if key in self.real and not noted:
                    self.holders.append(holder)
                    noted = True
                if isinstance(child, _IMMUTABLE):
                    self.parents.setdefault(key, []).append(holder)
                if key not in self.seen and self._is_walked(child):
                    self.seen.add(key)
                    following.append(child)
        return following

    def _is_walked(self, x: Any) -> bool:
        if isinstance(x, np.ndarray):
            return bool(x.dtype.hasobject)
        if isinstance(x, (ContextVar, types.FrameType)):
            return True
        if not gc.is_tracked(x) or isinstance(x, (types.ModuleType, types.CodeType)):
            return False
        kind = type(x)
        if kind is dict:  # but not the names of a module: those that matter are among the roots
            return "__builtins__" not in x
        if isinstance(x, type):
            return self._is_of_user(x)
        return not kind.__module__.startswith(("np_compile.", "torch."))

    def _is_of_user(self, kind: type) -> bool:
        found = self.user_types.get(kind)
        if found is None:
            found = self.user_types[kind] = origin_of(kind) == "user"
        return found

    def exchange(self) -> None:
        """Put real arrays where the holders found so far have stand-ins."""
        waiting, self.holders = self.holders, []
        while waiting:
            holder = waiting.pop()
            for child in _children(holder):
                if type(child) is Array and child._in_capture is self.capture:
                    self._settle(child)
            if isinstance(holder, _IMMUTABLE):
                waiting.extend(self._make_again(holder))
            else:
                _replace(holder, self.real)
                self.held.update(id(c) for c in _children(holder) if id(c) in self.real)

    def _make_again(self, holder: Any) -> list[Any]:
        """Note what is to stand for an immutable object; who refers to it."""
        if id(holder) not in self.real:
            self.real[id(holder)] = _made_again(holder, self.real)
            self.remade.append(holder)
            self.held.update(id(c) for c in _children(holder) if id(c) in self.real)
        return self.parents.get(id(holder), [])

    def _settle(self, a: Array) -> None:
        """Compute what a stand-in stands for; it holds nothing else from then on."""
        if id(a) in self.real or not self.capture.has_data(a):
            return
        capture = self.capture
        value = self.real[id(a)] = capture.to_caller(a)
        self.arrays.append(a)
        known = a.__dict__
        kept: dict[str, Any] = {
            k: known[k] for k in ("_in_capture", "_as_value", "_scalar") if k in known
        }
        known.clear()
        known.update(kept)
        setattr(a, "_t" if capture.tensors else "_np", value)

    def found_all(self, references: int) -> bool:
        """Whether it is known for each stand-in who holds it.

        references: how many there are to the capture, beside those of the search.
        """
        return references <= len(self.arrays) and all(
            sys.getrefcount(x) <= _LISTED + self.held[id(x)]
            for known in (self.arrays, self.remade)
            for x in known
        )

    def everywhere(self) -> None:
        """Look among all objects of the process."""
        for a in _stand_ins(self.capture):
            self._settle(a)
        looked_for: list[Any] = list(self.arrays)
        while looked_for:
            holders = gc.get_referrers(*looked_for)
            own = {id(x) for x in (looked_for, self.arrays, self.remade, holders)}
            looked_for = []
            for holder in holders:
                if isinstance(holder, types.FrameType) or type(holder) is Array:
                    continue
                if sys.getrefcount(holder) <= _LISTED:  # nobody's: arguments of `get_referrers`
                    continue
                if isinstance(holder, _IMMUTABLE):
                    if id(holder) not in self.real:
                        self._make_again(holder)
                        looked_for.append(holder)
                elif id(holder) not in own:
                    _replace(holder, self.real)


def _children(x: Any) -> Iterable[Any]:
    """What an object refers to, as far as a function may have stored something there."""
    if isinstance(x, types.FunctionType):
        return [x.__closure__, x.__defaults__, x.__kwdefaults__, x.__dict__]
    if isinstance(x, types.CellType):
        return [contents(x)]
    if isinstance(x, type):
        return list(vars(x).values())
    if isinstance(x, np.ndarray):
        return list(x.flat)
    if isinstance(x, threading.local):
        return [x.__dict__]
    if isinstance(x, ContextVar):
        return [x.get(None)]
    if isinstance(x, types.GeneratorType):
        return [x.gi_frame]
    if isinstance(x, types.FrameType):
        return list(x.f_locals.values()) if _is_over(x) else []
    return gc.get_referents(x)


def _is_over(frame: types.FrameType) -> bool:
    """Whether a frame is not running, so that its variables may be changed."""
    here: types.FrameType | None = sys._getframe(1)
    while here is not None:
        if here is frame:
            return False
        here = here.f_back
    return True


def _made_again(x: Any, real: dict[int, Any]) -> Any:
    """An immutable object with the real things in place of stand-ins."""
    if isinstance(x, types.MethodType):
        owner = real.get(id(x.__self__), x.__self__)
        if type(x.__self__) is Array:
            return getattr(owner, x.__name__)
        return types.MethodType(x.__func__, owner)
    items = [real.get(id(v), v) for v in x]
    return with_items(x, items) if isinstance(x, tuple) else type(x)(items)


def _replace(holder: Any, real: dict[int, Any]) -> None:
    """Put `real[id(v)]` where `holder` has v."""
    if isinstance(holder, (list, deque)):
        put: Any = list.__setitem__ if isinstance(holder, list) else deque.__setitem__
        for i, v in enumerate(holder):
            if id(v) in real:
                put(holder, i, real[id(v)])
    elif isinstance(holder, dict):
        if any(id(k) in real for k in holder):
            items = [(real.get(id(k), k), v) for k, v in holder.items()]
            dict.clear(holder)
            dict.update(holder, items)
        for k, v in list(holder.items()):
            if id(v) in real:
                dict.__setitem__(holder, k, real[id(v)])
    elif isinstance(holder, set):
        for v in [v for v in holder if id(v) in real]:
            holder.discard(v)
            holder.add(real[id(v)])
    elif isinstance(holder, SimpleQueue):
        for v in [holder.get() for _ in range(holder.qsize())]:
            holder.put(real.get(id(v), v))
    elif isinstance(holder, types.CellType):
        found = real.get(id(contents(holder)))
        if found is not None:
            holder.cell_contents = found
    elif isinstance(holder, type):
        for k, v in list(vars(holder).items()):
            if id(v) in real:
                type.__setattr__(holder, k, real[id(v)])
    elif isinstance(holder, types.FunctionType):
        if id(holder.__defaults__) in real:
            holder.__defaults__ = real[id(holder.__defaults__)]
    elif isinstance(holder, np.ndarray):
        for i, v in enumerate(holder.flat):
            if id(v) in real:
                holder[np.unravel_index(i, holder.shape)] = real[id(v)]
    elif isinstance(holder, partial):
        state: Any = holder.__reduce__()[2]
        function, args, kwargs, attributes = state
        args = tuple(real.get(id(v), v) for v in real.get(id(args), args))
        holder.__setstate__((real.get(id(function), function), args, kwargs, attributes))  # type: ignore[attr-defined]
    elif isinstance(holder, ContextVar):
        found = real.get(id(holder.get(None)))
        if found is not None:
            holder.set(found)
    elif isinstance(holder, types.FrameType):
        _replace_variables(holder, real)
    elif isinstance(holder, BaseException) and id(holder.args) in real:
        holder.args = real[id(holder.args)]
    else:
        _replace_attributes(holder, real)


def _replace_attributes(holder: Any, real: dict[int, Any]) -> None:
    """As `_replace`, of an instance: past its class's own `__setattr__`."""
    attributes = own_dict(holder)
    if type(attributes) is dict:
        for k, v in list(attributes.items()):
            if id(v) in real:
                attributes[k] = real[id(v)]
    values = slot_values(holder)
    for name, slot in slots(type(holder)):
        if id(values.get(name)) in real:
            slot.__set__(holder, real[id(values[name])])


def _replace_variables(frame: types.FrameType, real: dict[int, Any]) -> None:
    """As `_replace`, of the variables of a frame that is suspended or over."""
    variables = frame.f_locals
    for k, v in list(variables.items()):
        if id(v) in real:
            variables[k] = real[id(v)]
    if sys.version_info < (3, 13):  # where they are a copy
        to_fast = ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.c_int)
        to_fast(("PyFrame_LocalsToFast", ctypes.pythonapi))(frame, 0)


def _stand_ins(capture: Any) -> list[Array]:
    """The stand-ins that refer to a capture, in their attributes or in a dictionary of them."""
    found: list[Array] = []
    dictionaries = []
    for holder in gc.get_referrers(capture):
        if type(holder) is Array:
            found.append(holder)
        elif type(holder) is dict and holder.get("_in_capture") is capture:
            dictionaries.append(holder)
    if dictionaries:
        found += [a for a in gc.get_referrers(*dictionaries) if type(a) is Array]
    return found
