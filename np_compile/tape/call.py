"""What a recorded call is: a function's name and its arguments, in which leaves of three kinds
stand for what they were: references to values, parameters, constants (which are themselves)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from np_compile import shim

from .key import COMPLEX, FLOAT, INT, KW
from .tree import leaves, mapped

_COMPLEX = frozenset((complex, np.complex64, np.complex128))
_INEXACT = _COMPLEX | {float, np.float16, np.float32, np.float64}
_INDEXING = ("ndarray.__getitem__", "ndarray.__setitem__")


@dataclass(frozen=True, slots=True)
class Reference:
    """The value of the segment with this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that is data of the segment.

    kind: "float", "complex", "int", "index" (an integer of an index), or the type code of a NumPy
    scalar. place: among the segment's floats, or its ints; a complex number has two places.
    """

    kind: str
    place: int

    @property
    def is_float(self) -> bool:
        """Whether it lies among the floats."""
        return self.kind in ("float", "complex", "e", "f", "d")


@dataclass(frozen=True, slots=True)
class Span:
    """A slice of an axis, of a known length and step, that begins at a parameter."""

    start: Parameter
    length: int
    step: int


@dataclass(frozen=True, slots=True)
class DynamicSlice:
    """A slice whose start is only known when the program runs."""

    start: Any
    length: int
    step: int


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the function of a row. args, kwargs: trees of references, parameters, spans and
    constants. floats, ints: how many parameters the segment has behind it."""

    name: str
    args: tuple
    kwargs: dict[str, Any]
    floats: int
    ints: int

    @property
    def label(self) -> str:
        """The function's name as a user writes it."""
        return label(self.name)

    @property
    def index(self) -> tuple:
        """The index of a call that takes or sets elements; of another call nothing."""
        return self.args[1] if self.name in _INDEXING else ()

    def references(self) -> Iterator[int]:
        """The numbers of the values that it gets."""
        return references((self.args, self.kwargs))

    @property
    def reads(self) -> list[int]:
        """The numbers of the values whose elements it looks at: not what it takes a part of."""
        used = [*self.references()]
        return used[1:] if self.name in _INDEXING else used

    def parameters(self) -> Iterator[Parameter]:
        """The parameters that it gets."""
        return parameters((self.args, self.kwargs))

    def evaluate(
        self, values: Sequence[Any] | Mapping[int, Any], parameter: Callable[[Parameter], Any]
    ) -> tuple[list, dict]:
        """The arguments, of values by their numbers and of what stands for each parameter."""

        def of(leaf: Any) -> Any:
            kind = type(leaf)
            if kind is Reference:
                return values[leaf.number]
            if kind is Parameter:
                return parameter(leaf)
            if kind is Span:
                return make_slice(parameter(leaf.start), leaf.length, leaf.step)
            return leaf

        args = [mapped(a, of) for a in self.args]
        return args, {k: mapped(v, of) for k, v in self.kwargs.items()}


def label(name: str) -> str:
    """The name of a row as a user writes it: `np.sin`, `ndarray.sum`, `f` of a function of his."""
    own, numbered, _ = name.partition("#")
    return own if numbered or name.startswith("ndarray.") else f"np.{name}"


def references(tree: Any) -> Iterator[int]:
    """The numbers of the values in a tree of arguments."""
    for leaf in leaves(tree):
        if type(leaf) is Reference:
            yield leaf.number


def parameters(tree: Any) -> Iterator[Parameter]:
    """The parameters in a tree of arguments."""
    for leaf in leaves(tree):
        if type(leaf) is Parameter:
            yield leaf
        elif type(leaf) is Span:
            yield leaf.start


def make_slice(start: Any, length: int, step: int) -> Any:
    """The slice of so many elements from `start` on; a DynamicSlice where that is data."""
    if type(start) is shim.Weak:
        return DynamicSlice(start, length, step)
    stop = start + length * step
    if stop >= 0:
        return slice(start, stop, step)
    return slice(length - 1 if step == -1 else start, None, step)  # to the beginning


def decode(key: tuple, floats: int, ints: int) -> Call:
    """The call of a key. floats, ints: how many parameters the segment had before it."""
    return _Decoder(floats, ints).call(key)


class _Decoder:
    """Where the next parameter lies."""

    def __init__(self, floats: int, ints: int):
        self._floats = floats
        self._ints = ints

    def call(self, key: tuple) -> Call:
        at = key.index(KW) if KW in key else len(key)
        args = tuple([self._piece(p) for p in key[1:at]])
        names = key[at + 1] if at < len(key) else ()
        kwargs = dict(zip(names, [self._piece(p) for p in key[at + 2 :]], strict=True))
        return Call(key[0], args, kwargs, self._floats, self._ints)

    def _float(self, kind: str, places: int = 1) -> Parameter:
        self._floats += places
        return Parameter(kind, self._floats - places)

    def _int(self, kind: str) -> Parameter:
        self._ints += 1
        return Parameter(kind, self._ints - 1)

    def _piece(self, p: Any) -> Any:
        if type(p) is int:
            return Reference(p)
        if p is FLOAT:
            return self._float("float")
        if p is INT:
            return self._int("int")
        if p is COMPLEX:
            return self._float("complex", 2)
        if type(p) is not tuple:
            return p
        tag = p[0]
        if tag == "c":
            return _constant(p[1], p[2])
        if tag == "t":
            return tuple([self._piece(q) for q in p[1:]])
        if tag == "l":
            return [self._piece(q) for q in p[1:]]
        if tag == "n":
            return self._float(p[1]) if p[1] in "efd" else self._int(p[1])
        if tag == "s":
            return slice(*[self._piece(q) for q in p[1:]])
        if tag == "d":
            return dict(zip(p[1], [self._piece(q) for q in p[2:]], strict=True))
        assert tag == "x", p
        return tuple([self._item(q) for q in p[1:]])

    def _item(self, q: Any) -> Any:
        """An item of an index."""
        if type(q) is tuple and q[0] is INT:
            return Span(self._int("index"), q[1], q[2])
        if q is INT:
            return self._int("index")
        if q == ":":
            return slice(None)
        return Ellipsis if q == "." else self._piece(q)


def _constant(kind: type, value: Any) -> Any:
    """The constant of such a piece of a key."""
    if type(value) is str and kind in _INEXACT:
        return kind(complex(value) if kind in _COMPLEX else value)
    if kind in (int, bool, float):
        return value
    if issubclass(kind, np.generic) and not isinstance(value, np.generic):
        return kind(value)
    return list(value) if kind is list else value
