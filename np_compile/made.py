"""Functions made of functions: bound, copied and pickled as functions are."""

from __future__ import annotations

import copy
import functools
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

_OF_CLASSES = ("__init_subclass__", "__class_getitem__")


class Made:
    """A function that was made of another one, `__wrapped__`, and stands in its place.

    Where its name leads to it, it is pickled by that name. Else, and by those who pickle a function
    with its code (cloudpickle does, where another process has no such module), it is made anew.
    """

    __name__: str
    __qualname__: str
    __wrapped__: Any

    # What those ask who look into a function: of `__wrapped__`.
    __code__, __defaults__, __kwdefaults__, __globals__, __closure__ = (
        property(operator.attrgetter(f"__wrapped__.{name}"))
        for name in ("__code__", "__defaults__", "__kwdefaults__", "__globals__", "__closure__")
    )

    def __init__(self, function: Any):
        functools.update_wrapper(self, function)
        self.__wrapped__ = function
        self.__dict__.pop("_by_name", None)  # of `function`, where that is one of these

    def _settings(self) -> tuple[Callable, dict[str, Any]]:
        """What makes it of `__wrapped__`, and the keyword arguments for that."""
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __set_name__(self, owner: type, name: str) -> None:
        if name in _OF_CLASSES:  # which Python makes of functions of these names
            setattr(owner, name, classmethod(self))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict) -> Any:
        wrapped = copy.deepcopy(self.__wrapped__, memo)
        if wrapped is self.__wrapped__:
            return self
        make, settings = self._settings()
        return make(wrapped, **settings)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if _named(self.__module__, self.__dict__.get("__qualname__", "")) is not self:
            return _blank, (type(self),), self._recipe()
        return (_taken, (type(self), self._by_name)) if protocol >= 4 else self.__qualname__

    def __setstate__(self, recipe: tuple) -> None:
        make, wrapped, settings, attributes = recipe
        made = make(wrapped, **settings)
        for kind in type(self).__mro__:
            for name in vars(kind).get("__slots__", ()):
                if hasattr(made, name):
                    setattr(self, name, getattr(made, name))
        vars(self).update(vars(made))
        vars(self).update(attributes)

    def _recipe(self) -> tuple:
        make, settings = self._settings()
        attributes = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        return make, self.__wrapped__, settings, attributes

    @functools.cached_property
    def _by_name(self) -> Callable[[], tuple]:
        """A function that gives the recipe. Pickled in the place of this object: found under its
        name in another process, it stands for the object found there; made anew, for a new one."""
        recipe = self._recipe()

        def made_of() -> tuple:
            return recipe

        made_of.__module__ = self.__module__
        made_of.__qualname__ = f"{self.__qualname__}._by_name"
        return made_of

    def __getattr__(self, name: str) -> Any:
        # Of one that was made by `_taken`: its recipe was not complete then, if it mentions itself.
        made_of = self.__dict__.get("_made_of")
        if made_of is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.__setstate__(made_of())
        del self.__dict__["_made_of"]
        return getattr(self, name)


def _named(module: str, name: str) -> Any:
    """What a name leads to in a module; None where to nothing."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _blank(kind: type) -> Any:
    return object.__new__(kind)


def _taken(kind: type, made_of: Callable[[], tuple]) -> Any:
    """The object that a pickled `_by_name` stands for."""
    owner = _named(made_of.__module__, made_of.__qualname__.rpartition(".")[0])
    if isinstance(owner, Made) and owner.__dict__.get("_by_name") is made_of:
        return owner
    new = _blank(kind)
    new.__dict__["_made_of"] = made_of
    return new
