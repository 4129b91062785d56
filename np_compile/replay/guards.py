"""What a kept call compares, as data: each guard prints what has to be so, and says it to C.

A guard on arguments knows them by their position among the call's values, and by a name for people.
`write` gives its words for C (see `calls.c`), `holds` answers in Python.
"""

from __future__ import annotations

import ctypes
import gc
import math
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np
import torch
from torch._C._dynamo.guards import TensorGuards

from np_compile.capture.names.entrances import own_code
from np_compile.capture.names.substitute import MISSING, contents

_TEXT = 60  # characters of a value that are shown
_WORD = 64  # bits of a word


class Refused(Exception):
    """Why a call is not kept."""


class Check(IntEnum):
    """What a guard looks at, for C."""

    ARRAY, VALUE, TYPE, PAIR, BYTES, NAME, CELL, FUNCTION, GRAD, ALIKE = range(10)
    RANGE, SMALL, LENGTH, CLASS = range(10, 14)


class Words:
    """Words for C, and the objects whose addresses are among them."""

    def __init__(self, guards: Iterable[Guard] = ()) -> None:
        self._words: list[int] = []
        self.held: list[Any] = []
        for guard in guards:
            guard.write(self)

    def add(self, *words: int) -> None:
        self._words += words

    def of(self, x: Any, absent: Any = MISSING) -> int:
        """The address of an object; 0 for what stands for none."""
        if x is absent:
            return 0
        self.held.append(x)
        return id(x)

    def __len__(self) -> int:
        return len(self._words)

    def array(self) -> Any:
        """The words as C reads them."""
        return (ctypes.c_int64 * (len(self) + 1))(*self._words)


class Guard:
    """Something that has to be so; its text says what."""

    def write(self, words: Words) -> None:
        """Add its words for C, if C has a part in it."""


def simple(a: Any) -> bool:
    """Whether a is a value that cannot change."""
    return type(a) in (int, float, bool, str, complex, type(None)) or (
        type(a) is tuple and all(simple(v) for v in a)
    )


def same(a: Any, b: Any) -> bool:
    """Whether two simple values are one to any program: signs of zeros and types included."""
    if type(a) is not type(b):
        return False
    if type(a) is float:
        return a == b and (a != 0.0 or math.copysign(1.0, a) == math.copysign(1.0, b))
    if type(a) is complex:
        return same(a.real, b.real) and same(a.imag, b.imag)
    return bool(a == b)


def text_of(value: Any) -> str:
    """A value, for people."""
    if isinstance(value, types.ModuleType):
        return f"the module {value.__name__}"
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, np.ufunc)):
        name = f"{getattr(value, '__module__', None) or 'numpy'}.{value.__name__}"
        return name.removeprefix("builtins.")
    text = repr(value)
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}..."


def _shape(dtype: Any, shape: Sequence[int]) -> str:
    return f"{str(dtype).removeprefix('torch.')}[{', '.join(map(str, shape))}]"


# -- arguments ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout(Guard):
    """An array looks like this. needs: flags that it has to have."""

    position: int
    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    needs: int

    @staticmethod
    def of(position: int, name: str, a: np.ndarray, needs: int) -> Layout:
        """An array looks like `a`."""
        return Layout(position, name, a.dtype, a.shape, a.strides, needs)

    def __str__(self) -> str:
        like = np.lib.stride_tricks.as_strided(np.empty((), self.dtype), self.shape, self.strides)
        order = f"strides {self.strides}"
        if like.flags.c_contiguous:
            order = "C order"
        elif like.flags.f_contiguous:
            order = "Fortran order"
        return f"argument {self.name}: {_shape(self.dtype, self.shape)}, {order}"

    def write(self, words: Words) -> None:
        head = self.position, words.of(self.dtype), self.needs, len(self.shape)
        words.add(Check.ARRAY, *head, *self.shape, *self.strides)


@dataclass(frozen=True)
class Value(Guard):
    """An argument is this simple value."""

    position: int
    name: str
    value: Any

    def __str__(self) -> str:
        return f"argument {self.name} is {text_of(self.value)}"

    def write(self, words: Words) -> None:
        n = self.value
        if type(n) is int and n.bit_length() < _WORD:  # which C compares without asking Python
            words.add(Check.RANGE, self.position, n, n)
        else:
            words.add(Check.VALUE, self.position, words.of(n))

    def holds(self, leaves: Sequence[Any]) -> bool:
        return same(leaves[self.position], self.value)


@dataclass(frozen=True)
class Kind(Guard):
    """An argument is of this type."""

    position: int
    name: str
    kind: type

    def __str__(self) -> str:
        return f"argument {self.name} is of type {text_of(self.kind)}"

    def write(self, words: Words) -> None:
        words.add(Check.TYPE, self.position, words.of(self.kind))


@dataclass(frozen=True)
class Between(Guard):
    """An argument is an integer of Python's from `low` to `high`."""

    position: int
    name: str
    low: int
    high: int

    def __str__(self) -> str:
        return f"argument {self.name} is an integer from {self.low} to {self.high}"

    def write(self, words: Words) -> None:
        words.add(Check.RANGE, self.position, self.low, self.high)


@dataclass(frozen=True)
class Small(Guard):
    """An argument is an array of so many axes, and at most so many elements."""

    position: int
    name: str
    dtype: np.dtype
    axes: int
    elements: int

    def __str__(self) -> str:
        what = f"{self.dtype} with {self.axes} axes and at most {self.elements} elements"
        return f"argument {self.name}: {what}"

    def write(self, words: Words) -> None:
        at = self.position, words.of(self.dtype)
        words.add(Check.SMALL, *at, self.axes, self.elements)


@dataclass(frozen=True)
class Length(Guard):
    """An argument is a list, a tuple, a dict or a text of so many items. first: the type of the
    first one, of a dict that of the first value; None where that is not asked."""

    position: int
    name: str
    kind: type
    least: int
    most: int
    first: type | None

    def __str__(self) -> str:
        of = "" if self.first is None else f" like {text_of(self.first)}"
        size = f"{self.least} to {self.most} items"
        return f"argument {self.name}: {self.kind.__name__} of {size}{of}"

    def write(self, words: Words) -> None:
        kinds = words.of(self.kind), words.of(self.first, None)
        words.add(Check.LENGTH, self.position, kinds[0], self.least, self.most, kinds[1])


@dataclass(frozen=True)
class Pair(Guard):
    """Two arguments are one, or two; apart: whether their memory must not overlap. sizes: bytes
    from the first to the last element."""

    positions: tuple[int, int]
    names: tuple[str, str]
    same: bool
    apart: bool
    sizes: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        how = "one" if self.same else "two"
        where = ", apart in memory" if self.apart and not self.same else ""
        return f"arguments {self.names[0]} and {self.names[1]} are {how}{where}"

    def write(self, words: Words) -> None:
        words.add(Check.PAIR, *self.positions, self.same, self.apart, *self.sizes)

    def holds(self, leaves: Sequence[Any]) -> bool:
        """Of tensors, whose being two others see."""
        k, m = self.positions
        if self.same:
            return leaves[k] is leaves[m]
        one, other = leaves[k].data_ptr(), leaves[m].data_ptr()
        mine, its = self.sizes
        return not (one < other + its and other < one + mine)


@dataclass(frozen=True)
class Elements(Guard):
    """Elements of an array that Python has read are what they were. index: of one, or `...`."""

    of: Layout  # the array
    index: Any
    content: bytes

    def __str__(self) -> str:
        values = np.frombuffer(self.content, self.of.dtype)
        if self.index is ...:
            return f"{self.of.name} was {text_of(values.tolist())} when it was read"
        where = ", ".join(map(str, self.index))
        return f"{self.of.name}[{where}] was {values[0].item()!r} when it was read"

    def holds(self, leaves: Sequence[Any]) -> bool:
        a = leaves[self.of.position]
        return a.shape == self.of.shape and a[self.index].tobytes() == self.content

    def differ(self, leaves: Sequence[Any]) -> bool:
        """Whether an array like it has other values there."""
        a = leaves[self.of.position] if self.of.position < len(leaves) else None
        if type(a) is not np.ndarray or a.dtype != self.of.dtype or a.ndim != len(self.of.shape):
            return False
        try:
            return bool(a[self.index].tobytes() != self.content)
        except IndexError:
            return False

    def write(self, words: Words) -> None:
        width = self.of.dtype.itemsize
        runs: list[list[int]] = []  # offset in the array, and bytes
        for place in [self.index] if self.index is not ... else np.ndindex(self.of.shape):
            at = zip(place, self.of.shape, self.of.strides, strict=True)
            offset = sum(i % extent * stride for i, extent, stride in at)
            if runs and sum(runs[-1]) == offset:
                runs[-1][1] += width
            else:
                runs.append([offset, width])
        start = 0
        for offset, size in runs:
            there = self.content[start : start + size]
            start += size
            address = words.of(there) + bytes.__basicsize__ - 1
            words.add(Check.BYTES, self.of.position, offset, size, address)


@dataclass(frozen=True)
class Call(Guard):
    """So many values are handed over, the last ones by these names, in lists and dicts of this
    form (see `Opened`); on tensors: whether gradients are recorded."""

    shown: Sequence[str]  # the values, for people
    names: tuple[str, ...]
    form: tuple | None = None
    grad: bool | None = None

    def __str__(self) -> str:
        text = f"called with {', '.join(self.shown) or 'nothing'}"
        if self.names:
            text += f"; by name: {', '.join(self.names)}"
        if self.form is not None:
            text += f"; structure: {', '.join(map(_form, self.form))}"
        if self.grad is not None:
            text += f"; gradients are {'' if self.grad else 'not '}recorded"
        return text

    def write(self, words: Words) -> None:
        if self.grad is not None:
            words.add(Check.GRAD, self.grad)


def _form(form: tuple | None) -> str:
    if form is None:
        return "."
    kind, *inner = form
    if kind is dict:
        keys = inner.pop(0)
        parts = [f"{k!r}: {_form(f)}" for k, f in zip(keys, inner, strict=True)]
        return f"{{{', '.join(parts)}}}"
    text = ", ".join(map(_form, inner))
    return f"[{text}]" if kind is list else f"({text})"


@dataclass(frozen=True)
class Alike(Guard):
    """Tensors look like those of the kept call to recording, and to torch's modes: type, dtype,
    layout, device, shape, strides, whether they require a gradient. No two of them are one."""

    positions: Sequence[int]
    count: int  # of all leaves
    texts: Sequence[str]
    types: Sequence[type]
    alike: Callable[..., bool]

    @staticmethod
    def of(positions: Sequence[int], names: Sequence[str], leaves: Sequence[Any]) -> Alike:
        """Tensors at these positions look as they do now."""
        tensors = [leaves[k] for k in positions]
        guards = TensorGuards(
            *tensors,
            dynamic_dims_sizes=[list(t.shape) for t in tensors],  # type: ignore[misc]
            dynamic_dims_strides=[list(t.stride()) for t in tensors],  # type: ignore[misc]
        )
        texts = [f"argument {names[k]}: {_tensor(leaves[k])}" for k in positions]
        return Alike(positions, len(leaves), texts, [*map(type, tensors)], guards.check)

    def write(self, words: Words) -> None:
        types = map(words.of, self.types)
        words.add(Check.ALIKE, words.of(self.alike), len(self.positions), *self.positions, *types)

    def __str__(self) -> str:
        return "; ".join(self.texts)

    def holds(self, leaves: Sequence[Any]) -> bool:
        if len(self.positions) < self.count:
            leaves = [leaves[k] for k in self.positions]
        for t in leaves:
            if not isinstance(t, torch.Tensor) or t.is_nested:
                return False  # torch's guards end the process at a nested one
        return self.alike(*leaves)


def _tensor(t: torch.Tensor) -> str:
    kind = "" if type(t) is torch.Tensor else f" {type(t).__name__}"
    order = "C order" if t.is_contiguous() else f"strides {t.stride()}"
    grad = ", requires a gradient" if t.requires_grad else ""
    return f"tensor{kind} {_shape(t.dtype, t.shape)}, {order}, on {t.device}{grad}"


# -- what a function reads beside its arguments ---------------------------------------------------


@dataclass(frozen=True)
class Name(Guard):
    """A name in a dict leads to this object. what: the name, for people."""

    what: str
    scope: dict
    key: str
    value: Any

    def __str__(self) -> str:
        there = "not there" if self.value is MISSING else text_of(self.value)
        return f"{self.what} is {'what it was' if there == self.what else there}"

    def write(self, words: Words) -> None:
        words.add(Check.NAME, words.of(self.scope), words.of(self.key), words.of(self.value))

    def holds(self) -> bool:
        return self.scope.get(self.key, MISSING) is self.value


@dataclass(frozen=True)
class Cell(Guard):
    """A variable of a function around it holds this object."""

    key: str
    cell: types.CellType
    value: Any

    def __str__(self) -> str:
        there = "not there" if self.value is MISSING else text_of(self.value)
        return f"variable {self.key} is {there}"

    def write(self, words: Words) -> None:
        words.add(Check.CELL, words.of(self.cell), words.of(self.value))

    def holds(self) -> bool:
        return contents(self.cell) is self.value


@dataclass(frozen=True)
class Function(Guard):
    """A function has this code, these defaults, and no attributes."""

    function: types.FunctionType
    code: types.CodeType
    defaults: Any
    named: Any

    def __str__(self) -> str:
        return f"function {self.function.__qualname__} has the code and defaults it had"

    def write(self, words: Words) -> None:
        f, code = words.of(self.function), words.of(self.code)
        defaults = words.of(self.defaults, None), words.of(self.named, None)
        words.add(Check.FUNCTION, f, types.FunctionType.__dictoffset__, code, *defaults)

    def holds(self) -> bool:
        f = self.function
        return (
            (f.__code__ is self.code or own_code(f) is self.code)
            and f.__defaults__ is self.defaults
            and f.__kwdefaults__ is self.named
            and not f.__dict__
        )


@dataclass(frozen=True)
class Class(Guard):
    """A class has so many attributes, and these bases. scope: the dict of its attributes."""

    made: type
    scope: dict
    count: int
    bases: tuple[type, ...]  # itself among them, as they are looked up

    @staticmethod
    def of(made: type) -> Class:
        """A class is as it is now."""
        (scope,) = gc.get_referents(made.__dict__)  # which is a read-only view of it
        return Class(made, scope, len(scope), made.__mro__)

    def __str__(self) -> str:
        return f"class {self.made.__qualname__} has the attributes and bases it had"

    def write(self, words: Words) -> None:
        at = words.of(self.made) + _bases_offset()
        words.add(Check.CLASS, words.of(self.scope), self.count, at, words.of(self.bases))

    def holds(self) -> bool:
        return len(self.scope) == self.count and self.made.__mro__ is self.bases


_TYPE_SIZE = 400  # bytes of what says it, at least


@cache
def _bases_offset() -> int:
    """Where a class says in which order its bases are looked up."""
    made = type("_", (), {})
    places = range(object.__basicsize__, _TYPE_SIZE, 8)
    mro = id(made.__mro__)
    return next(k for k in places if ctypes.c_int64.from_address(id(made) + k).value == mro)


class Reach:
    """What a function reads beside its arguments. guards: it is what it was. attributes: names of
    those that its code looks up. classes: of which it may make objects. texts: whether it may ask
    for the text of one."""

    def __init__(self) -> None:
        self.guards: list[Name | Cell | Function | Class] = []
        self.attributes: set[str] = set()
        self.classes: list[type] = []
        self.texts = False

    def unchanged(self) -> bool:
        """Whether all of it is what it was."""
        return all(guard.holds() for guard in self.guards)
