"""Nested arguments: tuples, lists, dicts and slices as trees, whatever their leaves are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from np_compile.attributes import own_dict


def leaves(x: Any) -> Iterator[Any]:
    """What tuples, lists, dicts and slices in one another hold, in order."""
    if isinstance(x, (tuple, list)):
        for v in x:
            yield from leaves(v)
    elif isinstance(x, dict):
        for v in x.values():
            yield from leaves(v)
    elif type(x) is slice:
        yield from (x.start, x.stop, x.step)
    else:
        yield x


def of_type(x: Any, kind: type) -> list[Any]:
    """The leaves of exactly this type."""
    return [v for v in leaves(x) if type(v) is kind]


def mapped(x: Any, change: Callable[[Any], Any]) -> Any:
    """A tree with `change(leaf)` for each leaf; parts of it in which none changes are themselves.

    Instances of classes derived from list and dict are leaves.
    """
    kind = type(x)
    if kind is list or isinstance(x, tuple):
        items = [mapped(v, change) for v in x]
        if all(a is b for a, b in zip(items, x, strict=True)):
            return x
        return items if kind is list else with_items(x, items)
    if kind is dict:
        values = [mapped(v, change) for v in x.values()]
        if all(a is b for a, b in zip(values, x.values(), strict=True)):
            return x
        return dict(zip(x, values, strict=True))
    if kind is slice:
        return slice(*(change(v) for v in (x.start, x.stop, x.step)))
    return change(x)


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
    own_dict(made).update(own_dict(x))
    return made
