"""Arrays of the translation: a domain of axes and an expression over them.

An array in memory is a load at an index; a view of it is the same load at another index; a constant
or a range is an expression without loads. So every view operator is a substitution of axes, and
nothing moves. A complex array has two expressions, for the real and the imaginary part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from ..analysis.access import Index, coefficients, linear, start
from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr, new_axes
from ..ir.program import Buffer

_OF_TORCH: dict[torch.dtype, tuple[str, bool]] = {
    **{getattr(torch, row.torch): (name, False) for name, row in DTYPES.items()},
    torch.complex64: ("f32", True),
    torch.complex128: ("f64", True),
}


def of_torch(dtype: torch.dtype) -> tuple[str, bool]:
    """The IR's dtype for a torch dtype, and whether it is a pair of them. KeyError for others."""
    return _OF_TORCH[dtype]


@dataclass(frozen=True)
class Array:
    """axes: one for each dimension. parts: expression over them; two where `complex`."""

    axes: tuple[Expr, ...]
    parts: tuple[Expr, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(a.extent for a in self.axes)

    @property
    def dtype(self) -> str:
        return self.parts[0].dtype

    @property
    def complex(self) -> bool:
        return len(self.parts) == 2

    def at(self, index: Index) -> tuple[Expr, ...]:
        """The parts of the element at an index."""
        mapping = dict(zip(self.axes, index, strict=True))
        return tuple(map(E.axes_replaced(mapping), self.parts))

    def view(self, shape: Sequence[int], index: Callable[..., Index]) -> Array:
        """The array of that shape whose element at axes a is this one's element at index(*a)."""
        axes = new_axes(shape)
        return Array(axes, self.at(index(*axes)))

    def broadcast(self, shape: Sequence[int]) -> Array:
        lead = len(shape) - len(self.axes)
        extents = self.shape

        def index(*a: Expr) -> Index:
            return [E.integer(0) if n == 1 else x for x, n in zip(a[lead:], extents, strict=True)]

        return self.view(shape, index)

    def reshape(self, shape: Sequence[int]) -> Array:
        """Elements in the same order (C) under another shape."""
        old = self.shape
        return self.view(shape, lambda *a: unravel(ravel(a, shape), old))

    def permute(self, order: Sequence[int]) -> Array:
        shape = [self.shape[k] for k in order]

        def index(*a: Expr) -> Index:
            result: list[Expr] = [E.integer(0)] * len(order)
            for x, k in zip(a, order, strict=True):
                result[k] = x
            return result

        return self.view(shape, index)

    def slice(self, dim: int, start: int, length: int, step: int) -> Array:
        shape = list(self.shape)
        shape[dim] = length

        def index(*a: Expr) -> Index:
            parts = list(a)
            parts[dim] = E.plus(E.times(a[dim], step), start)
            return parts

        return self.view(shape, index)

    def select(self, dim: int, at: int | Expr) -> Array:
        shape = [n for k, n in enumerate(self.shape) if k != dim]
        where = at if isinstance(at, Expr) else E.integer(at)
        return self.view(shape, lambda *a: [*a[:dim], where, *a[dim:]])

    def unsqueeze(self, dim: int) -> Array:
        shape = list(self.shape)
        shape.insert(dim, 1)
        return self.view(shape, lambda *a: [*a[:dim], *a[dim + 1 :]])

    def map(self, change: Callable[[Expr], Expr]) -> Array:
        """The array of changed elements."""
        return Array(self.axes, tuple(change(p) for p in self.parts))


def ravel(index: Index, shape: Sequence[int]) -> Expr:
    """The position in C order."""
    total: Expr = E.integer(0)
    for i, n in zip(index, shape, strict=True):
        total = E.plus(E.times(total, n), i)
    return total


def unravel(position: Expr, shape: Sequence[int]) -> list[Expr]:
    """The index of a position in C order."""
    index: list[Expr] = []
    for n in reversed(shape):
        index.append(E.integer(0) if n == 1 else E.mod(position, n) if n else position)
        position = E.floordiv(position, n) if n > 1 else position
    return index[::-1]


def of_buffer(buffer: Buffer, complex: bool = False) -> Array:
    """The whole of a buffer; of a complex one, whose last axis is (real, imaginary)."""
    if not complex:
        axes = new_axes(buffer.shape)
        return Array(axes, (E.load(buffer, axes),))
    axes = new_axes(buffer.shape[:-1])
    return Array(axes, tuple(E.load(buffer, (*axes, E.integer(k))) for k in (0, 1)))


def constant(shape: Sequence[int], *values: Expr) -> Array:
    return Array(new_axes(shape), values)


def element_of(x: Expr) -> tuple[Buffer, tuple[Expr, ...]] | None:
    """The buffer and index of a part that is memory; None of a computed one."""
    if x.op != "load" or any(e.op == "load" for i in x.args for e in E.walk(i)):
        return None
    return x.value, x.args


def place_of(x: Expr) -> tuple[Buffer, tuple[Expr, ...]] | None:
    """Where a part lies in memory, be it under another dtype."""
    return element_of(x.args[0] if x.op == "bitcast" else x)


def strided(array: Array) -> tuple[Buffer, int, tuple[int, ...]] | None:
    """An array that lies in memory at constant strides: buffer, offset and strides in elements
    (of the buffer; a complex array's are twice its own); None of others."""
    element = element_of(array.parts[0])
    if element is None:
        return None
    buffer, index = element
    place = linear(index, buffer.strides)
    atoms = coefficients(place)
    if set(atoms) - set(array.axes):
        return None
    if array.complex:
        other = element_of(array.parts[1])
        if other is None or other[0] is not buffer:
            return None
        pairs = list(zip(index, other[1], strict=True))
        sides = (pairs[-1][0].value, pairs[-1][1].value)
        if sides != (0, 1) or any(a is not b for a, b in pairs[:-1]):
            return None
    return buffer, start(place), tuple(atoms.get(a, 0) for a in array.axes)
