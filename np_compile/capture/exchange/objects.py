"""What objects of any class hold in `__slots__`."""

from __future__ import annotations

from types import MemberDescriptorType
from typing import Any


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
