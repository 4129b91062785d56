"""Objects of NumPy's that take and give shim arrays (generators, iterators, polynomials, ...), and
the functions that make them or draw random numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ._door import Unbound, named_as
from ._host import STANDING, WRAPPED, Handing
from ._quiet import draws


class Handed:
    """An object of NumPy's that takes and gives shim arrays; its class is a `handed_class`.

    _own: NumPy's. _given: the arrays that it was made of, as in `Handing`: it may give them back.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        cls = type(self)
        handing = Handing()
        named = {k: handing.give(v) for k, v in kwargs.items()}
        self.__dict__["_own"] = own = cls._numpy(*map(handing.give, args), **named)
        self.__dict__["_given"] = handing.arrays()
        STANDING[id(own)] = self

    @classmethod
    def of(cls, own: Any) -> Any:
        """What stands for an object of NumPy's: one object, as long as somebody has it."""
        x = STANDING.get(id(own))
        if x is None:
            x = object.__new__(cls)
            x.__dict__["_own"] = own
            x.__dict__["_given"] = {}
            STANDING[id(own)] = x
        return x

    def __np_own__(self) -> Any:
        return self.__dict__["_own"]

    def __getattr__(self, name: str) -> Any:
        if name == "_own":
            raise AttributeError(name)
        handing = Handing()
        return _member(handing.give(self), name, handing)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._own, name, Handing().give(value))

    def __reduce__(self) -> tuple:
        return _wrap, (type(self)._numpy, self._own)

    def __dir__(self) -> list[str]:
        return dir(self._own)


def _member(own: Any, name: str, handing: Handing) -> Any:
    value = getattr(own, name)
    if callable(value) and not isinstance(value, type):
        return drawing(value) if hasattr(value, "__name__") else functools.partial(returned, value)
    return handing.take(value)


def _wrap(own_class: type, own: Any) -> Any:
    return WRAPPED[own_class](own)


_SPECIAL = (
    *("call", "getitem", "setitem", "delitem", "len", "iter", "next", "contains", "enter", "exit"),
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv"),
    *("mod", "rmod", "divmod", "rdivmod", "pow", "rpow", "neg", "pos", "eq", "ne", "lt", "le"),
    *("gt", "ge", "str", "repr", "format", "copy", "deepcopy", "bool", "hash"),
    *("getstate", "setstate"),
)


class _HandedType(type):
    """The type of such classes: their instances include NumPy's; other attributes are NumPy's."""

    def __instancecheck__(cls, value: Any) -> bool:
        return type.__instancecheck__(cls, value) or isinstance(value, cls._numpy)

    def __getattr__(cls, name: str) -> Any:
        if name == "_numpy":
            raise AttributeError(name)
        return _member(cls._numpy, name, Handing())


def _special(name: str) -> Callable:
    def method(self: Handed, *args: Any, **kwargs: Any) -> Any:
        return returned(getattr(type(self._own), name), self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    return method


def drawing(own: Callable) -> Callable:
    """A function of NumPy's that draws random numbers, or makes what does: it runs in NumPy."""

    def draw(*args: Any, **kwargs: Any) -> Any:
        draws(f"random.{own.__name__}")
        return returned(own, *args, **kwargs)

    made = Unbound(draw, f"random.{own.__name__}")
    named_as(made, own, own.__name__)
    made.__numpy__ = own
    return made


def returned(own: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """What a function of NumPy's gives, of shim arrays and as shim arrays."""
    handing = Handing()
    named = {k: handing.give(v) for k, v in kwargs.items()}
    result = own(*map(handing.give, args), **named)
    handing.settle()
    return handing.take(result)


def handed_class(own: type) -> type:
    """A class of NumPy's whose instances take and give shim arrays."""
    names = [f"__{n}__" for n in _SPECIAL]
    namespace: dict[str, Any] = {n: _special(n) for n in names if getattr(own, n, None) is not None}
    if hasattr(own, "__array__"):
        namespace["__array__"] = lambda self, *args, **kwargs: self._own.__array__(*args, **kwargs)
    namespace.update(_numpy=own, __doc__=own.__doc__, __module__=own.__module__)
    made = _HandedType(own.__name__, (Handed,), namespace)
    WRAPPED[own] = made.of
    return made
