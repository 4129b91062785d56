"""What objects of any class hold: attributes in `__slots__`, the items of tuples."""

from __future__ import annotations

from collections.abc import Iterable
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


def with_items(x: tuple, items: Iterable[Any]) -> tuple:
    """A tuple of the class of x, which may be one with names and attributes, with other items.

    x itself where its class is made in C, and says how only to itself.
    """
    kind = type(x)
    if kind is tuple:
        return tuple(items)
    try:
        made = tuple.__new__(kind, items)
    except TypeError:
        return x
    if hasattr(x, "__dict__"):
        made.__dict__.update(x.__dict__)
    return made
