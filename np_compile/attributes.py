"""What an instance holds, in its dictionary and in `__slots__`, read past code of its class: a
`__getattr__` may count, print, or raise what it likes.

Before 3.13 Python has no dictionary for an object until somebody asks for it, and from then on
takes some times as long for each of its attributes, also in code that nobody compiles. So what only
reads an object does not ask.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import sys
from collections import deque
from collections.abc import Iterable
from types import CodeType, FunctionType, MemberDescriptorType
from typing import Any
from weakref import WeakKeyDictionary

from .made import Made

_get = object.__getattribute__
_set = object.__setattr__
_LASTS = sys.version_info < (3, 13)  # whether a dictionary that was asked for costs time for ever
_NONE: Any = object()
# Of classes: the names that the last object had.
_names: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()


def has_dict(kind: type) -> bool:
    """Whether instances of a class have a dictionary."""
    return kind.__dictoffset__ != 0


def own_dict(x: Any) -> dict[str, Any]:
    """The dictionary of an object; an empty one where it has none."""
    found: dict[str, Any] = _get(x, "__dict__") if type(x).__dictoffset__ else {}
    return found


def held(x: Any) -> dict[str, Any]:
    """What is in the dictionary of an object, in a new one; its own is not asked for, if the code
    of its class has the names of all that the object refers to. They are in the order in which the
    first object of the class got them, as far as values tell."""
    kind = type(x)
    if not _LASTS or not kind.__dictoffset__:
        return dict(own_dict(x))
    refers = [*map(id, gc.get_referents(x))]
    others = [*map(id, slot_values(x).values()), id(kind)]
    for names in (_names.get, _mentioned):
        found = _found(x, names(kind) or ())
        if len(found) + len(others) != len(refers):
            continue
        if sorted([*map(id, found.values()), *others]) == sorted(refers):
            places = {}
            for name, value in found.items():  # of some that are one object in their order
                places[name] = k = refers.index(id(value))
                refers[k] = 0
            _names[kind] = tuple(sorted(found, key=places.__getitem__))
            return {name: found[name] for name in _names[kind]}
    return dict(own_dict(x))


def _found(x: Any, names: Iterable[str]) -> dict[str, Any]:
    """What an object has by these names, if its class has no code for them."""
    found, order, own = {}, [vars(base) for base in type(x).__mro__], _fields(type(x))
    for name in names:
        of_class = _NONE
        for scope in order:
            if name in scope:
                of_class = scope[name]
                break
        if of_class is _NONE or not hasattr(type(of_class), "__get__"):
            try:
                value = _get(x, name)
            except AttributeError:
                continue
            if value is not of_class or name in own:
                found[name] = value
    return found


def _fields(kind: type) -> Iterable[str]:
    """The names that each object has by itself, though the class may have the same by them: those
    of a dataclass, whose defaults it has too."""
    params = vars(kind).get("__dataclass_params__")
    if params is None or not params.init:
        return ()
    return [field.name for field in dataclasses.fields(kind) if field.init]


def _mentioned(kind: type) -> Iterable[str]:
    """The names in the code of a class and its bases, those of their `__init__` first."""
    scopes = [vars(base) for base in reversed(kind.__mro__)]
    functions = [scope["__init__"] for scope in scopes if "__init__" in scope]
    found: dict[str, None] = {}
    for f in functions + [f for scope in scopes for f in scope.values()]:
        if isinstance(f, (property, functools.cached_property)):
            f = f.fget if isinstance(f, property) else f.func
        while isinstance(f, (staticmethod, classmethod, Made)):
            f = f.__wrapped__
        waiting = [f.__code__] if isinstance(f, FunctionType) else []
        while waiting:
            code = waiting.pop()
            found.update(dict.fromkeys(code.co_names))
            waiting += [c for c in code.co_consts if isinstance(c, CodeType)]
    for scope in scopes:
        if type(annotations := scope.get("__annotations__")) is dict:
            found.update(dict.fromkeys(annotations))
    return found


def set_held(x: Any, values: dict[str, Any]) -> None:
    """Make these what is in the dictionary of an object, which it has."""
    before, kind = held(x), type(x)
    goes_on = list(values)[: len(before)] == list(before)
    if goes_on and not any(hasattr(type(getattr(kind, name, None)), "__set__") for name in values):
        for name, value in values.items():
            if before.get(name, _NONE) is not value:
                _set(x, name, value)
        return
    own = own_dict(x)
    if not goes_on:  # some are gone, or in another order
        own.clear()
    own.update(values)


def slots(kind: type) -> list[tuple[str, Any]]:
    """The `__slots__` of a class and its bases: names and descriptors."""
    return [
        (name, member)
        for base in kind.__mro__
        if "__slots__" in vars(base)
        for name, member in vars(base).items()
        if type(member) is MemberDescriptorType
    ]


def slot_values(x: Any) -> dict[str, Any]:
    """The attributes of an object that lie in slots and are set."""
    found = {}
    for name, slot in slots(type(x)):
        try:
            found[name] = slot.__get__(x)
        except AttributeError:
            continue
    return found


def base_of_container(x: Any) -> Any:
    """What of list, dict, deque and set an object is, whose methods go past code of its own class;
    None, if it is none of them."""
    if not isinstance(x, (list, dict, deque, set)):
        return None
    return next(c for c in (list, dict, deque, set) if isinstance(x, c))


def is_answered(x: Any, name: str) -> bool:
    """Whether the `__getattr__` of its class says what an attribute is."""
    kind = type(x)
    if not hasattr(kind, "__getattr__") or name in held(x):
        return False
    in_slot = type(getattr(kind, name, None)) is MemberDescriptorType
    return name not in slot_values(x) if in_slot else not hasattr(kind, name)
