"""Classes of the user's in the proof: those of which it is known what making and using an object
does, and which of their attributes count.

Attributes are looked up by the names in the code that is reached, and by Python itself, by names
with two underscores. So of a class whose methods read a file, say, calls are kept that call others.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .guards import Class, Name, Reach

HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: of types whose attributes can be set
LIBRARIES = ("numpy", "np_compile", "torch")  # whose Python is not looked into
# What Python puts into a class, and looks at for libraries that ask, or for itself.
_NOTES = frozenset(
    [
        "__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__",
        "__slots__", "__match_args__", "__dataclass_fields__", "__dataclass_params__",
        "__static_attributes__", "__firstlineno__", "__orig_bases__", "__parameters__",
        "__annotate__", "__annotate_func__", "__annotations_cache__", "__reduce__", "__reduce_ex__",
        "__getstate__", "__setstate__", "__copy__", "__deepcopy__", "__replace__", "__sizeof__",
        "__dir__",
    ]
)  # fmt: skip
_TEXT = frozenset(["__repr__", "__str__", "__format__"])


def is_simple(value: type) -> bool:
    """Whether all that a class does stands in its attributes and in those of its bases, and it is
    the user's."""
    return type(value) is type and all(
        c is object
        or (
            type(c) is type
            and c.__flags__ & HEAP
            and c.__module__.partition(".")[0] not in LIBRARIES
        )
        for c in value.__mro__
    )


# What all dataclasses have, around a function that gives the text of their fields.
_TEXT_OF_DATACLASS = dataclass(type("_", (), {})).__repr__.__code__


def members(found: Reach, add: Callable[[str, Any, Reach], None]) -> None:
    """Reach what the classes do that were reached, with guards for their attributes. add: reaches
    an attribute, by which there may be more of both."""
    known: set[type] = set()
    done: set[tuple[type, str]] = set()
    while True:
        count = len(done)
        for made in [c for given in found.classes for c in given.__mro__ if c is not object]:
            if made not in known:
                known.add(made)
                guard = Class.of(made)
                found.guards.append(guard)
                for key, value in guard.scope.items():
                    if key not in _NOTES:
                        what = f"{made.__qualname__}.{key}"
                        found.guards.append(Name(what, guard.scope, key, value))
            for key, value in list(vars(made).items()):
                if (made, key) in done or key in _NOTES or not _counts(key, found):
                    continue
                done.add((made, key))
                for part in _parts(value):
                    add(f"{made.__qualname__}.{key}", part, found)
        if len(done) == count:
            return


def _counts(key: str, found: Reach) -> bool:
    """Whether code that was reached may look an attribute up, or Python for it."""
    if key in _TEXT and not found.texts:
        return False
    return key in found.attributes or (key.startswith("__") and key.endswith("__"))


def _parts(value: Any) -> Iterator[Any]:
    """What an attribute leads to."""
    kind = type(value)
    if kind is property:
        yield from (f for f in (value.fget, value.fset, value.fdel) if f is not None)
    elif kind in (staticmethod, classmethod):
        yield value.__func__
    elif kind is cached_property:
        yield value.func
    elif kind is not types.MemberDescriptorType and not (  # of slots
        kind is types.FunctionType and value.__code__ is _TEXT_OF_DATACLASS
    ):
        yield value
