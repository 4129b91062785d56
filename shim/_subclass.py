"""What derives from the shim's array: arrays of NumPy's, which are told the shim's functions."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ._host import UFUNCS, Handing
from ._ndarray import ndarray, share_or_host

_ASKED = ("__array_ufunc__", "__array_function__")


def _in_numpy(method: Callable, *args: Any, **kwargs: Any) -> Any:
    handing = Handing()
    named = {k: handing.give(v) for k, v in kwargs.items()}
    result = method(*map(handing.give, args), **named)
    handing.settle()
    return handing.take(result)


@functools.cache
def _of_the_shim(function: Any) -> Any:
    """What the shim has under the name of a function of NumPy's; the function, where nothing."""
    if function in UFUNCS:
        return UFUNCS[function]
    path = (getattr(function, "__module__", None) or "").removeprefix("numpy")
    try:
        module = importlib.import_module(__name__.rpartition(".")[0] + path)
    except ImportError:
        return function
    found = getattr(module, function.__name__, None)
    return found if getattr(found, "__numpy__", None) is function else function


def _told(method: Callable) -> Callable:
    """A method that compares what NumPy asks for with the shim's names: `ufunc is np.add`."""

    @functools.wraps(method)
    def told(self: Any, asked: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, _of_the_shim(asked), *args, **kwargs)

    return told


class Subclass(np.ndarray):
    """What derives from the shim's ndarray derives from NumPy's, and is an array of NumPy's."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if cls.__module__ == __name__:
            return
        for name in _ASKED:
            if callable(method := vars(cls).get(name)):
                setattr(cls, name, _told(method))

    def view(self, *given: Any, **named: Any) -> Any:
        given = tuple(np.ndarray if v is ndarray else v for v in given)
        named = {k: np.ndarray if v is ndarray else v for k, v in named.items()}
        result = super().view(*given, **named)
        return share_or_host(result) if type(result) is np.ndarray else result


# Under a class that answers itself lies what `super()` finds: NumPy's method, for shim arrays.


class _Answers(Subclass):
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return _in_numpy(super().__array_ufunc__, ufunc, method, *inputs, **options)


class _AnswersFunctions(Subclass):
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _in_numpy(super().__array_function__, function, types, args, kwargs)


class _AnswersBoth(_Answers, _AnswersFunctions):
    pass


def base(namespace: dict[str, Any]) -> type:
    """What a class with these names derives from in the place of the shim's ndarray."""
    ufuncs, functions = (callable(namespace.get(name)) for name in _ASKED)
    if ufuncs and functions:
        return _AnswersBoth
    return _Answers if ufuncs else _AnswersFunctions if functions else Subclass


type(ndarray).base_of = base
