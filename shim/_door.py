"""The functions of the shim as users have them: rows of the table, with the way out to NumPy for
what they refuse, NumPy's scalars, and floating-point errors as NumPy tells them.
"""

from __future__ import annotations

import cmath
import sys
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from torch._C import _len_torch_dispatch_stack, _len_torch_function_stack

from ._dtypes import TO_NUMPY, NotSupported
from ._float_errors import (
    STORES,
    again,
    asked,
    cast_with_loss,
    doubtful,
    doubtful_cast,
    is_division,
    may_err,
)
from ._host import UFUNCS, hand_over, is_concrete
from ._ndarray import ndarray, to_numpy, within
from ._shapes import let_numpy_warn
from ._signals import ARITHMETIC, noted

_SCALARS = {t: n.type for t, n in TO_NUMPY.items()}
_NUMBERS = frozenset((bool, int, float, complex, *_SCALARS.values()))
_INEXACT = frozenset(n for n in _SCALARS.values() if issubclass(n, np.inexact))


def scalar_or_array(r: ndarray) -> Any:
    """A result for the user: a NumPy scalar where it stands for one and its value is at hand."""
    if not r._scalar or within.wrapped or not is_concrete(r._t):
        return r
    return _SCALARS[r._t.dtype](r._t.item())


def _are_numbers(args: tuple) -> bool:
    """Whether all are Python's or NumPy's numbers, of which NumPy's own function gives what the row
    would, a scalar in host memory."""
    return (
        _NUMBERS.issuperset(map(type, args))
        and not within.wrapped
        and _len_torch_function_stack() == 0
        and _len_torch_dispatch_stack() == 0
    )


def results(r: Any) -> Any:
    """As `scalar_or_array`, for all that a row may give."""
    kind = type(r)
    if kind is ndarray:
        return scalar_or_array(r)
    if kind is tuple or kind is list:
        return kind(map(results, r))
    if isinstance(r, tuple) and hasattr(r, "_fields"):
        return kind(*map(results, r))
    return r


def door(
    label: str,
    row: Callable,
    own: Callable,
    signals: bool = False,
    short: Callable[[Callable], Callable] | None = None,
) -> Callable:
    """A row's function as users have it: what it refuses runs in NumPy, scalars are NumPy's.

    signals: floating-point errors are told as NumPy tells them. short: a short way for the
    frequent calls, made of that for all.
    """

    plain = getattr(row, "plain", None)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            r = None if plain is None or kwargs else plain(*args)
            if r is None:
                r = row(*args, **kwargs)
        except Exception as why:
            return hand_over(label, own, args, kwargs, why)
        if signals:
            if type(r) is ndarray and r._scalar:
                found = scalar_or_array(r)
                if type(found) in _INEXACT:
                    under, others = asked()
                    if under or (others and not cmath.isfinite(found)):
                        again(own, args, kwargs)
                    return found
            if kwargs.get("out") is None and doubts(args, r):
                again(own, args, kwargs)
        return r if type(r) is ndarray and not r._scalar else results(r)

    def call_and_tell_of_cast(*args: Any, **kwargs: Any) -> None:
        place, name = STORES[label]
        given = cast_with_loss(args, args[place] if len(args) > place else kwargs.get(name))
        tell = method_of("astype")
        if given is not None and given[0].dtype.kind == "c":  # NumPy says so before it stores
            again(tell, given, {})
        try:
            row(*args, **kwargs)
        except Exception as why:
            return hand_over(label, own, args, kwargs, why)
        if given is not None and given[0].dtype.kind != "c":
            again(tell, given, {})
        return None

    divides = is_division(own)
    looks = noted if label in ARITHMETIC else None
    casts = label.rpartition(".")[2] == "astype"
    doubts = doubtful_cast if casts else lambda _, r: doubtful(r, divides, looks)
    call = call_and_tell_of_cast if label in STORES else call
    call = call if short is None else short(call)
    made = call if hasattr(type(own), "__get__") else Unbound(call, label)
    named_as(made, row, label)
    made.__wrapped__ = row
    made.__numpy__ = own
    return made


class Unbound:
    """A function that is no method of a class where it is an attribute, as those written in C."""

    def __init__(self, call: Callable, label: str):
        self._call = call
        self._label = label

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<built-in function {self.__name__}>"

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is Unbound and self.__numpy__ == other.__numpy__)

    def __hash__(self) -> int:
        return hash(self.__numpy__)

    def __reduce__(self) -> tuple:
        return named, (self._label,)


def named_as(call: Any, of: Any, label: str) -> None:
    path, _, name = label.rpartition(".")
    call.__name__ = name
    call.__qualname__ = label if path == "ndarray" else name
    call.__doc__ = of.__doc__
    call.__module__ = "np_compile.shim" if path in ("", "ndarray") else f"np_compile.shim.{path}"


def method_of(name: str) -> Callable:
    """NumPy's method: the array's own class is asked, not one derived from it."""

    def call(array: Any, *args: Any, **kwargs: Any) -> Any:
        cls = np.ndarray if isinstance(array, np.ndarray) else type(array)
        return getattr(cls, name)(array, *args, **kwargs)

    call.__name__ = name
    return call


def handed(label: str, own: Callable) -> Callable:
    """A function that the shim has no row for: it runs in NumPy."""
    why = NotSupported(f"numpy.{label} is not in the shim; a compiled function runs it in NumPy")

    def call(*args: Any, **kwargs: Any) -> Any:
        return hand_over(label, own, args, kwargs, why)

    made = call if hasattr(type(own), "__get__") else Unbound(call, label)
    named_as(made, own, label)
    made.__wrapped__ = made.__numpy__ = own
    return made


@runtime_checkable
class Storing(Protocol):
    """A row that tells what it found, of which operands and with which options, before it stores
    that into `out=`, as that may overlap an operand."""

    before_storing: Callable[[tuple, tuple, dict], None] | None


class _UfuncType(type):
    """The type of ufunc: what it has not is that of NumPy's class."""

    def __getattr__(cls, name: str) -> Any:
        return getattr(np.ufunc, name)

    def __instancecheck__(cls, value: Any) -> bool:
        return type(value) is cls or isinstance(value, np.ufunc)


class ufunc(metaclass=_UfuncType):
    """NumPy's ufunc as users of the shim have it: `row` computes on tensors, NumPy what it lacks.

    row: the function of the table, None where there is none. methods: the rows of its methods.
    """

    def __init__(self, label: str, row: Callable | None, own: np.ufunc, methods: dict):
        self._own = own
        UFUNCS[own] = self
        self._label = label
        self.__name__ = self.__qualname__ = own.__name__
        self.__doc__ = own.__doc__
        self._row = handed(label, own) if row is None else row
        self._plain = getattr(row, "plain", None)
        self._divides = is_division(own)
        self._noted = noted if label in ARITHMETIC else None
        if isinstance(row, Storing):
            row.before_storing = self._tell
        for name in ("reduce", "accumulate", "reduceat", "outer", "at"):
            path, method = f"{label}.{name}", getattr(own, name)
            found = methods.get(name)
            signals = name in ("reduce", "accumulate", "reduceat", "outer")
            made = handed(path, method) if found is None else door(path, found, method, signals)
            if name == "at" and found is not None:
                made._call = self._telling_at(made._call)
            setattr(self, name, made)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            r = None if kwargs or self._plain is None else self._plain(*args)
            plain = r is not None
            if not plain:
                if not kwargs and len(args) == self._own.nin and _are_numbers(args):
                    return self._own(*args)
                r = self._row(*args, **kwargs)
        except Exception as why:
            return hand_over(self._label, self._own, args, kwargs, why)
        if plain:
            if may_err(r._t, self._divides, self._noted):
                again(self._own, args, kwargs)
            return scalar_or_array(r) if r._scalar else r
        if len(args) > self._own.nin or "where" in kwargs:
            self._warn_of_call(args, kwargs)
        fresh = len(args) == self._own.nin and kwargs.get("out") is None
        unsafe = kwargs.get("casting") == "unsafe"
        if fresh and (unsafe or doubtful(r, self._divides, self._noted)):
            again(self._own, args, kwargs)
        return r if type(r) is ndarray and not r._scalar else results(r)

    def _warn_of_call(self, args: tuple, kwargs: dict) -> None:
        """Give the warnings that NumPy gives for the arguments' places alone."""
        if len(args) > self._own.nin:
            if self._label in ("maximum", "minimum"):
                let_numpy_warn(self._own, 0.0, 0.0, None)
        elif kwargs["where"] is not True and "out" not in kwargs:
            let_numpy_warn(np.positive, 0.0, where=False)

    def _telling_at(self, at: Callable) -> Callable:
        """`at`, which writes over what its errors come of: that is kept where somebody asks."""

        def call(a: Any, *args: Any, **kwargs: Any) -> None:
            given = None
            if type(a) is ndarray and not hasattr(a, "_own") and any(asked()):
                inexact = a._t.is_floating_point() or a._t.is_complex()
                if (inexact or self._divides) and is_concrete(a._t):
                    given = to_numpy(a).copy()
            at(a, *args, **kwargs)
            if given is not None and doubtful(a, self._divides):
                again(self._own.at, (given, *args), kwargs)

        return call

    def _tell(self, results: tuple, args: tuple, options: dict) -> None:
        if any(may_err(t, self._divides, self._noted) for t in results):
            again(self._own, args, options)

    def __np_own__(self) -> np.ufunc:
        return self._own

    def __getattr__(self, name: str) -> Any:
        if name == "_own":
            raise AttributeError(name)
        return getattr(self._own, name)

    def __repr__(self) -> str:
        return repr(self._own)

    def __eq__(self, other: object) -> bool:
        return self is other or other is self._own

    def __hash__(self) -> int:
        return hash(self._own)

    def __reduce__(self) -> tuple:
        return named, (self._label,)

    def __copy__(self) -> ufunc:
        return self

    def __deepcopy__(self, memo: Any) -> ufunc:
        return self


def named(path: str) -> Any:
    """What the shim has under a dotted name: how a pickled function comes back."""
    found: Any = sys.modules[__package__]
    for part in path.split("."):
        found = getattr(found, part)
    return found
