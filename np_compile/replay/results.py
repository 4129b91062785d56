"""What a kept call gives, as data: of arguments and of what its programs have made.

One recursion describes a result; one gives it, on arrays as on tensors. In C `calls.c` gives what
it knows, and asks for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import torch

from np_compile import shim
from np_compile.capture.arrays.array import Array
from np_compile.capture.arrays.window import WINDOW
from np_compile.capture.names.numpy_names import numpy_function
from np_compile.tape.node import picked

from .guards import Refused, simple


class Give(IntEnum):
    """What a part of a result is: an argument, a new array, its only element as a scalar, a tuple
    or list of parts, a constant, what a function of the arguments and the new arrays gives. C knows
    these; what follows it asks for by such a function: a dict (keys, parts), a view (of a part, by
    calls), what a part has where another one, a mask, is true."""

    ARGUMENT, MADE, SCALAR, TUPLE, LIST, CONSTANT, CALL, DICT, VIEW, CHOSEN = range(10)


Result = tuple[Give, Any]
Giver = Callable[[Sequence[Any], Any], Any]


class Outputs:
    """Describes what a function gives.

    place: the number of a tensor that a program has made. stand_ins: positions of arguments, by
    their stand-ins. known: ids of lists and dicts that are not new. wanted: numbers of tensors that
    are needed. by_size: whether a view was made by numbers that follow from sizes. A new list
    stands in one place only; so do views and scalars of arrays, which are objects of their own too.
    """

    def __init__(
        self, place: Callable[[torch.Tensor], int | None], stand_ins: dict[int, int],
        known: set[int], tensors: bool,
    ):  # fmt: skip
        self._place = place
        self._stand_ins = stand_ins
        self._parts = known
        self._tensors = tensors
        self.wanted: list[int] = []
        self.by_size = False

    def of(self, result: Any) -> Result:
        """What is to be given for a result like this one.

        Errors: Refused, where that is not known.
        """
        kind = type(result)
        if simple(result):
            return Give.CONSTANT, result
        if kind is Array:
            made = self._array(result)
            if not self._tensors and made[0] not in (Give.ARGUMENT, Give.MADE):
                self._once(result)
            return made
        if kind is not tuple and kind is not list and kind is not dict:
            raise Refused(f"it gives a {kind.__name__}")
        if id(result) in self._parts:
            raise Refused(f"it gives a {kind.__name__} that is not new")
        if kind is not tuple:
            self._once(result)
        if kind is dict:
            return Give.DICT, (tuple(result), [self.of(v) for v in result.values()])
        return Give.TUPLE if kind is tuple else Give.LIST, [self.of(v) for v in result]

    def _once(self, part: Any) -> None:
        if id(part) in self._parts:
            raise Refused("it gives an object in two places")
        self._parts.add(id(part))

    def _array(self, a: Array) -> Result:
        if id(a) in self._stand_ins:
            return Give.ARGUMENT, self._stand_ins[id(a)]
        if a._sel is not None:
            chosen = self._array(a._sel.full(None)), self._array(a._sel.mask.array(None))
            return Give.CHOSEN, chosen
        if a._base is not None:
            return self._view(a)
        number = None if a._t is None else self._place(a._t)
        if a._sel is not None or a._flip or a._readonly or number is None:
            raise Refused("it gives an array that no program has made")
        if number not in self.wanted:
            self.wanted.append(number)
        return Give.SCALAR if a._is_scalar() else Give.MADE, number

    def _view(self, a: Array) -> Result:
        calls: list[tuple] = []
        while a._base is not None and a._sel is None and id(a) not in self._stand_ins:
            name, args, kwargs, pick = a._via
            if name is WINDOW or any(map(_has_array, (*args[1:], *kwargs.values()))):
                raise Refused("it gives a view that depends on other arrays")
            calls.insert(0, (name, args[1:], kwargs, pick))
            self.by_size = self.by_size or a._by_size
            a = a._base
        return Give.VIEW, (self._array(a), calls)


def _has_array(x: Any) -> bool:
    """Whether x is an array, or a tuple or list with one in it."""
    kind = type(x)
    return kind in (Array, np.ndarray) or (kind in (tuple, list) and any(map(_has_array, x)))


def giver(result: Result, place: Callable[[int], int], tensors: bool) -> Giver:
    """What gives a described result, of a call's arguments and of what its programs have made.
    place: where a number stands in the latter."""
    kind, what = result
    if kind is Give.ARGUMENT:
        return lambda args, made: args[what]
    if kind is Give.CONSTANT:
        return lambda args, made: what
    if kind is Give.MADE or kind is Give.SCALAR:
        number = place(what)
        if kind is Give.MADE or tensors:
            return lambda args, made: made[number]
        return lambda args, made: made[number][()]
    if kind is Give.VIEW:
        return (_tensor_view if tensors else _view)(giver(what[0], place, tensors), *what)
    keys, parts = what if kind is Give.DICT else ((), what)
    each = [giver(part, place, tensors) for part in parts]
    if kind is Give.TUPLE:
        return lambda args, made: tuple([part(args, made) for part in each])
    if kind is Give.LIST:
        return lambda args, made: [part(args, made) for part in each]
    if kind is Give.DICT:
        return lambda args, made: {k: part(args, made) for k, part in zip(keys, each, strict=True)}
    full, mask = each
    return lambda args, made: full(args, made)[mask(args, made)]


def _view(base: Giver, _: Result, calls: list[tuple]) -> Giver:
    """NumPy makes a view."""
    steps = [(numpy_function(name), *rest) for name, *rest in calls]

    def view(args: Sequence[Any], made: Any) -> Any:
        x = base(args, made)
        for function, rest, kwargs, pick in steps:
            x = picked(function(x, *rest, **kwargs), pick)
        return x

    return view


def _tensor_view(base: Giver, of: Result, calls: list[tuple]) -> Giver:
    """The shim makes a view."""
    steps = [(shim.TABLE[name].function, *rest) for name, *rest in calls]
    scalar = of[0] is Give.SCALAR

    def view(args: Sequence[Any], made: Any) -> torch.Tensor:
        x = shim.ndarray(base(args, made), (), scalar)
        for function, rest, kwargs, pick in steps:
            x = picked(function(x, *rest, **kwargs), pick)
        return x.tensor

    return view
