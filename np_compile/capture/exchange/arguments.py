"""Arguments in, results out: arrays inside nested structures become stand-ins, and back.

Lists, dicts, deques, dataclasses and instances of user classes that hold arrays are handed to the
function as shallow copies with stand-ins in place of the arrays; what it changes in them is carried
back into the caller's own objects at the end. Objects without arrays are handed over as they are.
"""

from __future__ import annotations

import functools
import operator
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection
from typing import Any

import numpy as np
import torch

from np_compile import shim
from np_compile.attributes import base_of_container, has_dict, held, set_held, slot_values, slots
from np_compile.tape.tree import with_items

from ..arrays.array import Array
from ..arrays.tensors import of_memory
from ..names.entrances import is_of_threads
from ..names.namespace import RANDOM_SOURCES, Drawing, RandomSource
from ..names.origins import origin_of
from ..names.substitute import NOT_MADE, contents
from .objects import goes_through_arrays

_PLAIN = (
    type(None), bool, int, float, complex, str, bytes, type, types.ModuleType,
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.generic, np.dtype, range,
)  # fmt: skip

_FUNCTIONS = (types.FunctionType, functools.partial)

_OF_NUMPY = (np.ufunc, type(np.mean))  # its functions

_CONTAINERS = (
    list, tuple, dict, deque, set, frozenset, bytearray, np.ndarray, BaseException,
)  # fmt: skip


_SEQUENCES = (list, deque)
_MAPPINGS = (dict, OrderedDict, defaultdict)


def is_record(x: Any) -> bool:
    """Whether x is an instance of a user's class, with attributes to look at."""
    kind = type(x)
    if kind is types.SimpleNamespace:
        return True
    return (
        not isinstance(x, (*_PLAIN, *_CONTAINERS, torch.nn.Module, torch.Tensor))
        and origin_of(kind) == "user"
        and (has_dict(kind) or bool(slots(kind)))
    )


def attributes(x: Any) -> dict[str, Any]:
    """The attributes of a record, those in `__slots__` too."""
    return {**held(x), **slot_values(x)}


def set_attributes(x: Any, values: dict[str, Any]) -> None:
    """Make these the attributes of a record, past its class's own `__setattr__`."""
    in_slots = dict(slots(type(x)))
    present = slot_values(x)
    for name, slot in in_slots.items():
        if name in values:
            slot.__set__(x, values[name])
        elif name in present:
            slot.__delete__(x)
    if has_dict(type(x)):
        set_held(x, {k: v for k, v in values.items() if k not in in_slots})


def _set_items(target: dict, values: dict) -> None:
    if list(values)[: len(target)] != list(target):  # some are gone, or in another order
        target.clear()
    target.update(values)


def _inside(x: Any) -> Collection[Any]:
    """What a container or record holds."""
    if isinstance(x, dict):
        return x.values()
    return x if isinstance(x, (list, tuple, deque)) else attributes(x).values()


def _empty(x: Any) -> Any:
    """A new container or record of the kind of x."""
    kind = type(x)
    if kind is deque:
        return deque(maxlen=x.maxlen)
    if kind is defaultdict:
        return defaultdict(x.default_factory)
    if kind in (list, dict, OrderedDict, types.SimpleNamespace):
        return kind()
    return object.__new__(kind)


def holds_arrays(x: Any) -> bool:
    """Whether x is a container, or an instance of a user's class or a method of it, that holds
    arrays or random generators; of a large one the beginning counts, since it is asked of globals
    at each call."""
    kind = type(x)
    if kind is types.MethodType:
        return holds_arrays(x.__self__)
    return (kind in _SEQUENCES or kind in _MAPPINGS or kind is tuple or is_record(x)) and (
        _holds(x, set(), 1000)
    )


class Exchange:
    """The arguments of one call: `take` them in, `give` results back, `restore` what changed."""

    def __init__(self, capture: Any):
        self.capture = capture
        self.copies: dict[int, tuple[Any, Any]] = {}  # id of the caller's object -> (it, copy)
        self.originals: dict[int, Any] = {}  # id of a copy -> the caller's object
        self.others: list[Any] = []  # objects of the caller's without arrays, not copied
        self.given: dict[int, tuple[Any, Any]] = {}
        self.is_within = False  # whether a stand-in of another call, which is paused, was met
        self.is_cached = False  # whether a method keeps what it gives by the object that has it
        self._iterates = False  # whether something taken in goes through arrays by itself
        self._apart: list[np.ndarray] = []  # arrays without a stand-in: of subclasses, of objects
        # Among tensors: id of what stands for an array or scalar of NumPy's -> that; and containers
        # of the caller's without arrays, in which scalars stay NumPy's.
        self._numpys: dict[int, Any] = {}
        self._own: dict[int, Any] = {}

    def source(self, x: Any) -> Any:
        """What stands for a random generator."""
        return RandomSource(x)

    # -- in ---------------------------------------------------------------------------------

    def take(self, x: Any) -> Any:
        """x with stand-ins for arrays; x itself where it holds none."""
        kind = type(x)
        if kind is np.ndarray:
            stand_in = self.capture.adopt(x)
            if self.capture.tensors:
                self._numpys[id(stand_in)] = x
            if stand_in is x:
                self._apart.append(x)
            return stand_in
        if kind is types.MethodType:
            return self._take_method(x)
        if callable(x) and isinstance(x, (*_PLAIN, *_OF_NUMPY)):
            return self.capture.substitution.itself(x)
        if isinstance(x, _PLAIN):
            if self.capture.tensors and isinstance(x, np.generic):
                self._numpys[id(x)] = x
            return x
        if isinstance(x, RANDOM_SOURCES):
            return self.source(x)
        if isinstance(x, torch.Tensor):
            return self.capture.adopt(x) if self.capture.tensors else x
        if kind is self.capture.array_type:
            if kind is Array and x._in_capture is not self.capture:
                self.is_within = True
            return x
        found = self.copies.get(id(x))
        if found is not None:
            return found[1]
        if isinstance(x, tuple):
            items = [self.take(v) for v in x]
            if all(a is b for a, b in zip(items, x, strict=True)):
                if self.capture.tensors:
                    self._own[id(x)] = x
                return x
            copy: Any = with_items(x, items)
            self._pair(x, copy)
            return copy
        if isinstance(x, np.ndarray) and kind is not np.memmap:
            self._apart.append(x)
            return x  # its class has a say in what NumPy gives
        if self.capture.tensors and hasattr(kind, "__dlpack__"):
            return self.capture.adopt(of_memory(x))
        if kind in _SEQUENCES or kind in _MAPPINGS or is_record(x):
            self.capture.substitution.meet(x)
            if not _holds(x, set()):
                self.others.append(x)
                if self.capture.tensors:
                    self._note(x)
                return x
            if not self.capture.substitution.entrances.caching.isdisjoint(kind.__mro__):
                self.is_cached = True
            copy = _empty(x)
            self._pair(x, copy)
            if kind in _SEQUENCES:
                copy.extend(self.take(v) for v in x)
            elif kind in _MAPPINGS:
                copy.update((k, self.take(v)) for k, v in x.items())
            else:
                set_attributes(copy, {k: self.take(v) for k, v in attributes(x).items()})
            return copy
        if is_of_threads(x):
            self.capture.substitution.entrances.locks = True
        elif goes_through_arrays(x):
            self._iterates = True
        return x

    def _note(self, x: Any) -> None:
        """Scalars of NumPy's in an object without arrays."""
        if isinstance(x, np.generic):
            self._numpys[id(x)] = x
        elif id(x) not in self._own and (isinstance(x, (list, tuple, dict, deque)) or is_record(x)):
            self._own[id(x)] = x
            for v in _inside(x):
                self._note(v)

    def is_read_outside(self) -> bool:
        """Whether something that was taken in comes by itself to memory that has stand-ins."""
        if not self._apart:
            return self._iterates
        arrays = [a for a, _ in self.capture.known.values() if isinstance(a, np.ndarray)]
        return self._iterates or any(np.may_share_memory(a, b) for a in self._apart for b in arrays)

    def _take_method(self, x: types.MethodType) -> Any:
        """A method bound to what stands for its object."""
        found = self.copies.get(id(x))
        if found is not None:
            return found[1]
        owner = self.take(x.__self__)
        if owner is x.__self__:
            return x
        if type(owner) is RandomSource:  # its methods are C's, which look for a generator
            copy: Any = Drawing(x)
        else:
            self.capture.substitution.meet(x.__func__)
            copy = types.MethodType(x.__func__, owner)
        self._pair(x, copy)
        return copy

    def _pair(self, original: Any, copy: Any) -> None:
        self.copies[id(original)] = (original, copy)
        self.originals[id(copy)] = original

    # -- out --------------------------------------------------------------------------------

    def give(self, x: Any) -> Any:
        """x with real arrays (or tensors) for stand-ins; user containers change in place."""
        kind = type(x)
        if kind is self.capture.array_type:
            return self.capture.to_caller(x) if self._is_made(x) else x
        real = self.capture.substitution.real(x)
        if real is not x:
            return real
        if kind is types.MethodType:
            if id(x) in self.originals:
                return self.originals[id(x)]
            owner = self.originals.get(id(x.__self__), x.__self__)
            return x if owner is x.__self__ else types.MethodType(x.__func__, owner)
        if kind is types.FunctionType:
            return self._give_function(x)
        if kind is functools.partial:
            return self._give_partial(x)
        if isinstance(x, type):
            self._give_class(x)
        if isinstance(x, _PLAIN) or kind is np.ndarray or isinstance(x, torch.Tensor):
            if self.capture.tensors and isinstance(x, (np.ndarray, np.generic)):
                return _as_tensor(x, self.capture.device)
            return x
        original = self.originals.get(id(x))
        if original is not None:
            return original
        if isinstance(x, tuple):
            items = [self.give(v) for v in x]
            if all(a is b for a, b in zip(items, x, strict=True)):
                return x
            return with_items(x, items)
        if id(x) in self.given:
            return x
        if isinstance(x, (list, dict, set, deque)) or is_record(x):
            self.given[id(x)] = (x, None)
            self._give_class(kind)
            self._replace(x)
        return x

    def _give_function(self, x: types.FunctionType) -> types.FunctionType:
        """A function that outlives the call in which it was made: on its module's own names."""
        found = self.given.get(id(x))
        if found is not None:
            return found[1]
        substitution = self.capture.substitution
        names = substitution.module_of(x)
        cells = x.__closure__
        if names is None:
            for cell in cells or ():
                if id(contents(cell)) in self.originals:
                    cell.cell_contents = self.originals[id(contents(cell))]
            return x
        closure = cells and tuple(substitution.cell_of(c) for c in cells)
        made = types.FunctionType(x.__code__, names, x.__name__, None, closure)
        self.given[id(x)] = (x, made)
        made.__dict__ = x.__dict__
        made.__qualname__, made.__module__, made.__doc__ = x.__qualname__, x.__module__, x.__doc__
        made.__annotations__ = x.__annotations__
        made.__defaults__, made.__kwdefaults__ = self.give(x.__defaults__), x.__kwdefaults__
        for holder in (made.__kwdefaults__ or {}, made.__dict__):
            for name, v in list(holder.items()):
                if isinstance(v, _FUNCTIONS) or id(v) in self.originals:
                    holder[name] = self.give(v)
        for own, cell in zip(cells or (), closure or (), strict=True):
            v = contents(cell)
            new = self._give_held(v) if own is cell or isinstance(v, _FUNCTIONS) else v
            if new is not v:
                cell.cell_contents = new
        return made

    def _give_held(self, x: Any) -> Any:
        """As `give`, of what a cell made in the call holds: `escape` sees to arrays."""
        arrays = self.capture.array_type, np.ndarray, np.generic, torch.Tensor
        return x if isinstance(x, arrays) else self.give(x)

    def _give_class(self, kind: type) -> None:
        """Methods of a class that was made in the call, on its module's own names."""
        if "<locals>" not in kind.__qualname__ or id(kind) in self.given:
            return
        self.given[id(kind)] = (kind, None)
        for base in kind.__bases__:
            self._give_class(base)
        for name, v in list(vars(kind).items()):
            if isinstance(v, (staticmethod, classmethod)):
                made = self.give(v.__func__)
                new: Any = v if made is v.__func__ else type(v)(made)
            elif type(v) is property:
                parts = v.fget, v.fset, v.fdel
                given: list[Any] = [self.give(f) for f in parts]
                new = v if all(map(operator.is_, given, parts)) else property(*given)
            else:
                new = self.give(v) if type(v) is types.FunctionType else v
            if new is not v:
                type.__setattr__(kind, name, new)

    def _give_partial(self, x: functools.partial) -> functools.partial:
        """A partial with functions that outlive the call."""
        if id(x) not in self.given:
            self.given[id(x)] = (x, None)
            state = self.give(x.func), self.give(x.args), x.keywords, x.__dict__
            self._replace(x.keywords)
            x.__setstate__(state)  # type: ignore[attr-defined]
        return x

    def _replace(self, x: Any) -> None:
        give = self._back if id(x) in self._own else self.give
        kind = base_of_container(x)
        if kind is list or kind is deque:
            made = [v for v in kind.__iter__(x) if self._is_made(v)]
            if len(made) != kind.__len__(x):
                kind.clear(x)
                kind.extend(x, made)
            for i, v in enumerate(made):
                new = give(v)
                if new is not v:
                    kind.__setitem__(x, i, new)
        elif kind is dict:
            keys = [self.give(k) for k in dict.__iter__(x)]
            if any(a is not b for a, b in zip(keys, dict.__iter__(x), strict=True)):
                entries = dict(zip(keys, dict.values(x), strict=True))
                dict.clear(x)
                dict.update(x, entries)
            for k, v in list(dict.items(x)):
                new = give(v)
                if not self._is_made(v):
                    dict.__delitem__(x, k)
                elif new is not v:
                    dict.__setitem__(x, k, new)
        elif kind is set:
            items = [self.give(v) for v in set.__iter__(x)]
            if any(a is not b for a, b in zip(items, set.__iter__(x), strict=True)):
                set.clear(x)  # else its order stays
                set.update(x, items)
        else:
            values = attributes(x)
            real = {k: give(v) for k, v in values.items()}
            if any(real[k] is not values[k] for k in values):
                set_attributes(x, real)

    def clear(self) -> None:
        """Let go of everything."""
        self.copies.clear()
        self.originals.clear()
        self.others.clear()
        self.given.clear()
        self._numpys.clear()
        self._own.clear()
        self.capture.exchange = None
        self.capture = None

    def _back(self, x: Any) -> Any:
        """As `give`; a NumPy array, or scalar, in a list of the caller's stays one."""
        found = self._numpys.get(id(x))
        if found is not None:
            return found
        if isinstance(x, tuple) and id(x) in self._own:
            items = [self._back(v) for v in x]
            return x if all(map(operator.is_, items, x)) else with_items(x, items)
        return self.give(x)

    def _is_made(self, x: Any) -> bool:
        """Whether x is what the plain function would have come to. A stand-in without data is not:
        the segment that was to make it has failed before."""
        return type(x) is not self.capture.array_type or self.capture.has_data(x)

    def give_name(self, x: Any) -> Any:
        """As `give`, of a global or a cell; NOT_MADE where it was not come to."""
        return self.give(x) if self._is_made(x) else NOT_MADE

    def restore(self) -> None:
        """Carry what the function changed in the copies back into the caller's objects."""
        for original, copy in list(self.copies.values()):
            if isinstance(original, (tuple, types.MethodType)):
                continue
            if type(original) in _SEQUENCES:
                if not all(map(self._is_made, copy)):
                    continue
                now = [self._back(v) for v in copy]
                if len(now) != len(original) or any(
                    a is not b for a, b in zip(now, original, strict=True)
                ):
                    original.clear()
                    original.extend(now)
                continue
            is_mapping = type(original) in _MAPPINGS
            target = original if is_mapping else attributes(original)
            source = copy if is_mapping else attributes(copy)
            values = {
                k: self._back(v) if self._is_made(v) else target[k]
                for k, v in source.items()
                if k in target or self._is_made(v)
            }
            if list(values) != list(target) or any(values[k] is not target[k] for k in values):
                if is_mapping:
                    _set_items(original, values)
                else:
                    set_attributes(original, values)
        for x in self.others:
            self.give(x)


def _as_tensor(x: Any, device: torch.device | None) -> torch.Tensor:
    t = shim.as_array(x).tensor
    return t if device is None else t.to(device)


def _holds(x: Any, seen: set[int], most: float = float("inf")) -> bool:
    """Whether arrays (or, for wrapped functions, tensors), or locks, or what goes through arrays
    by itself, are found inside x.

    most: how many containers and records to look into, and how many things in each.
    """
    if isinstance(x, (np.ndarray, torch.Tensor, *RANDOM_SOURCES)):
        return True
    if type(x) is types.MethodType:
        return _holds(x.__self__, seen, most)
    if isinstance(x, _PLAIN) or id(x) in seen or len(seen) >= most:
        return False
    seen.add(id(x))
    if isinstance(x, (list, tuple, dict, deque)) or is_record(x):
        inside = _inside(x)
        return any(_holds(v, seen, most) for v in inside if len(inside) <= most)
    return is_of_threads(x) or goes_through_arrays(x)
