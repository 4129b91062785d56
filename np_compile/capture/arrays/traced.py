"""Sizes that Python gets to see, in a call that may be kept for many sizes.

`x.shape` then gives numbers of this kind. They compute like the integers that they stand for, and
know how they follow from the sizes of arrays. Python has no way to their value but their methods:
where a decision hangs on it (`n > 8`, `range(n)`, an element of a list), that is noted, and has to
come out as it did wherever the kept call is made.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from np_compile.tape.tree import leaves, mapped


class Shapes(Protocol):
    """The shapes of a call, by what stood for their arrays when it was watched."""

    def of_argument(self, array: int) -> tuple[int, ...]:
        """Of the argument of that id."""

    def of_value(self, segment: Any, number: int) -> tuple[int, ...]:
        """Of a value of a segment."""


How = Callable[[Shapes], Any]
LONG = 400  # characters of a formula; beyond it the number is settled: they may double at each step


@dataclass(frozen=True)
class Asked:
    """What Python has asked of a size, and the answer."""

    how: How
    text: str
    answer: Any

    def holds(self, shapes: Shapes) -> bool:
        """Whether the answer is the same for other shapes."""
        return bool(self.how(shapes) == self.answer)

    def __str__(self) -> str:
        return f"{self.text} is {self.answer}"


class Traced:
    """A number that follows from sizes. value: what it is in this call. asked: where decisions on
    it are noted."""

    __slots__ = ("asked", "how", "text", "value")

    def __init__(self, value: Any, how: How, text: str, asked: list[Asked]):
        self.value = value
        self.how = how
        self.text = text
        self.asked = asked

    @property  # type: ignore[misc]  # `object` has a setter
    def __class__(self) -> type:  # isinstance(n, int) holds
        return type(self.value)

    def known(self) -> Any:
        """Its value, which has to be the same from now on."""
        self.asked.append(Asked(self.how, self.text, self.value))
        return self.value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*known(inputs), **known(kwargs))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.known(), dtype)

    def __reduce__(self) -> Any:
        return type(self.value), (self.known(),)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.known(), name)


def _binary(name: str, function: Callable, symbol: str, reverse: bool) -> Callable:
    def method(self: Traced, other: Any) -> Any:
        kind = type(other)
        if kind is Traced:
            how, text, value = other.how, other.text, other.value
        elif kind in (int, float, bool, complex) or issubclass(kind, np.generic):
            how, text, value = (lambda shapes: other), repr(other), other
        else:
            return NotImplemented
        own = self.how, self.text, self.value
        (first, one, a), (second, two, b) = (
            ((how, text, value), own) if reverse else (own, (how, text, value))
        )
        result = function(a, b)
        made = Traced(
            result, lambda shapes: function(first(shapes), second(shapes)),
            f"({one} {symbol} {two})", self.asked,
        )  # fmt: skip
        settled = isinstance(result, (bool, np.bool_)) or len(made.text) > LONG
        return made.known() if settled else made

    method.__name__ = name
    return method


def _unary(name: str, function: Callable) -> Callable:
    def method(self: Traced) -> Any:
        how = self.how
        made = Traced(
            function(self.value), lambda shapes: function(how(shapes)),
            f"{function.__name__}({self.text})", self.asked,
        )  # fmt: skip
        return made.known() if len(made.text) > LONG else made

    method.__name__ = name
    return method


def _known(name: str, function: Callable) -> Callable:
    def method(self: Traced, *args: Any) -> Any:
        return function(self.known(), *args)

    method.__name__ = name
    return method


_BINARY = {
    "add": (operator.add, "+"), "sub": (operator.sub, "-"), "mul": (operator.mul, "*"),
    "truediv": (operator.truediv, "/"), "floordiv": (operator.floordiv, "//"),
    "mod": (operator.mod, "%"), "pow": (operator.pow, "**"),
}  # fmt: skip
_COMPARED = {
    "eq": (operator.eq, "=="), "ne": (operator.ne, "!="), "lt": (operator.lt, "<"),
    "le": (operator.le, "<="), "gt": (operator.gt, ">"), "ge": (operator.ge, ">="),
}  # fmt: skip
_UNARY: dict[str, Callable] = {"neg": operator.neg, "pos": operator.pos, "abs": abs}
_KNOWN: dict[str, Callable] = {
    "index": operator.index, "int": int, "float": float, "complex": complex, "bool": bool,
    "hash": hash, "repr": repr, "str": str, "format": format, "round": round, "trunc": math.trunc,
    "floor": math.floor, "ceil": math.ceil, "divmod": divmod, "invert": operator.invert,
    "lshift": operator.lshift, "rshift": operator.rshift, "and": operator.and_,
    "or": operator.or_, "xor": operator.xor,
}  # fmt: skip
_REFLECTED = ("divmod", "lshift", "rshift", "and", "or", "xor")


def _swapped(function: Callable) -> Callable:
    return lambda x, other: function(other, x)


def _attach() -> None:
    """The methods."""
    made = {f"__{name}__": _unary(name, of) for name, of in _UNARY.items()}
    made |= {f"__{name}__": _known(name, of) for name, of in _KNOWN.items()}
    made |= {f"__r{name}__": _known(name, _swapped(_KNOWN[name])) for name in _REFLECTED}
    for name, (of, symbol) in (*_BINARY.items(), *_COMPARED.items()):
        made[f"__{name}__"] = _binary(name, of, symbol, False)
        if name in _BINARY:
            made[f"__r{name}__"] = _binary(name, of, symbol, True)
    for name, method in made.items():
        setattr(Traced, name, method)


_attach()


def shape_of(
    shape: Sequence[int], how: Callable[[Shapes], tuple[int, ...]], text: str, asked: list[Asked]
) -> tuple[Any, ...]:
    """The extents of an array as traced numbers."""

    def extent(d: int) -> How:
        return lambda shapes: how(shapes)[d]

    return tuple([Traced(n, extent(d), f"{text}[{d}]", asked) for d, n in enumerate(shape)])


def has_traced(x: Any) -> bool:
    """Whether there is one among nested arguments."""
    return any(type(v) is Traced for v in leaves(x))


def gives_traced(x: Any) -> bool:
    """Whether there is one in what a function gives, among keys of dicts too."""
    if type(x) is dict:
        return has_traced([*x]) or any(map(gives_traced, x.values()))
    return any(map(gives_traced, x)) if type(x) in (list, tuple) else has_traced(x)


def values(x: Any) -> Any:
    """Arguments with plain numbers for traced ones."""
    return mapped(x, lambda v: v.value if type(v) is Traced else v)


def released(x: Any) -> Any:
    """As `values`, for what a function gives: keys of dicts too."""
    if type(x) is dict:
        return {values(k): released(v) for k, v in x.items()}
    if type(x) is list or type(x) is tuple:
        return type(x)([released(v) for v in x])
    return values(x)


def known(x: Any) -> Any:
    """As `values`, for one that does not say what it makes of them."""
    return mapped(x, lambda v: v.known() if type(v) is Traced else v)


def at(x: Any, shapes: Shapes, known: Mapping[int, Any] = MappingProxyType({})) -> Any:
    """As `values`, for other shapes. known: of numbers by their ids."""

    def number(v: Any) -> Any:
        if type(v) is not Traced:
            return v
        return known[id(v)] if id(v) in known else v.how(shapes)

    return mapped(x, number)
