"""What an instance holds, in its dictionary and in `__slots__`, read past code of its class: a
`__getattr__` may count, print, or raise what it likes."""

from __future__ import annotations

from collections import deque
from types import MemberDescriptorType
from typing import Any

_get = object.__getattribute__


def has_dict(kind: type) -> bool:
    """Whether instances of a class have a dictionary."""
    return kind.__dictoffset__ != 0


def own_dict(x: Any) -> dict[str, Any]:
    """The dictionary of an object; an empty one where it has none."""
    found: dict[str, Any] = _get(x, "__dict__") if type(x).__dictoffset__ else {}
    return found


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
    if not hasattr(kind, "__getattr__") or name in own_dict(x):
        return False
    in_slot = type(getattr(kind, name, None)) is MemberDescriptorType
    return name not in slot_values(x) if in_slot else not hasattr(kind, name)
