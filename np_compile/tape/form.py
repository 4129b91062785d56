"""The form of a segment: what it is but for its sizes, and these.

Two segments have one form if they make the same calls on arrays of the same dtypes, ranks and kinds
of layout, whatever the extents are. Sizes are all that may differ then: extents and strides of
inputs, and integers among the arguments of calls (`zeros(n)`, `reshape(n // 2, 2)`, slices).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .call import Call, Span
from .node import Node
from .tree import mapped

_SIZE = "<size>"


@dataclass(frozen=True)
class Form:
    """key: equal for segments of one form. sizes: of this one, in an order that follows from the
    form. inputs: how many of these belong to inputs; the rest are integers of calls."""

    key: tuple
    sizes: tuple[int, ...]
    inputs: int


def form_of(node: Node) -> Form:
    """The form of the segment that ends at a node."""
    extents: list[int] = []
    integers: list[int] = []
    key: list[Any] = []
    for step in node.path():
        if step.call is None:
            dtype, shape, strides, *rest = step.signature
            layout = _layout(shape, strides)
            extents += shape if layout is not None else (*shape, *strides)
            key.append((dtype, len(shape), layout, *rest))
        else:
            key.append((step.call.name, _hashed((step.call.args, step.call.kwargs), integers)))
    return Form(tuple(key), (*extents, *integers), len(extents))


def size_names(node: Node, form: Form) -> list[str]:
    """What each size of a form is."""
    names: list[str] = []
    count = 0
    for step in node.path():
        if step.call is None:
            _, shape, strides, *_ = step.signature
            names += [f"extent {d} of input {count}" for d in range(len(shape))]
            if _layout(shape, strides) is None:
                names += [f"stride {d} of input {count}" for d in range(len(shape))]
            count += 1
    return names + [f"integer {k} of its calls" for k in range(len(form.sizes) - form.inputs)]


def shapes_in(node: Node, sizes: Sequence[Any]) -> list[tuple[tuple, tuple]]:
    """Shape and strides of each input of a segment, of these sizes in the order of its form."""
    rest = list(sizes)
    found = []
    for step in node.path():
        if step.call is not None:
            continue
        _, shape, strides, *_ = step.signature
        layout = _layout(shape, strides)
        own = tuple([rest.pop(0) for _ in shape])
        if layout is None:
            found.append((own, tuple([rest.pop(0) for _ in shape])))
        else:
            steps: list[Any] = [1] * len(own)
            total: Any = 1
            for d in reversed(layout):
                steps[d] = total
                total = total * own[d]
            found.append((own, tuple(steps)))
    return found


def calls_with(node: Node, integers: Sequence[Any]) -> Callable[[Call], Call]:
    """What gives each call of a segment, one after the other, with these integers as its sizes."""
    rest = iter(integers)

    def of(leaf: Any) -> Any:
        if type(leaf) is int:
            return next(rest)
        return Span(leaf.start, next(rest), leaf.step) if type(leaf) is Span else leaf

    def call(c: Call) -> Call:
        args = tuple([mapped(a, of) for a in c.args])
        kwargs = {k: mapped(v, of) for k, v in c.kwargs.items()}
        return Call(c.name, args, kwargs, c.floats, c.ints)

    return call


def _layout(shape: tuple, strides: tuple) -> tuple[int, ...] | None:
    """The order of the axes in memory, where they lie there without gaps; else None."""
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d))
    total = 1
    for d in reversed(order):
        if shape[d] != 1 and strides[d] != total:
            return None
        total *= shape[d]
    return tuple(order)


def _hashed(x: Any, sizes: list[int]) -> Any:
    """A tree as a key, its integers put into a list."""
    kind = type(x)
    if kind is int:
        sizes.append(x)
        return _SIZE
    if kind is Span:
        sizes.append(x.length)
        return Span(x.start, 0, x.step)
    if kind is list or kind is tuple or kind is slice:
        parts = (x.start, x.stop, x.step) if kind is slice else x
        return (kind, *[_hashed(v, sizes) for v in parts])
    if kind is dict:
        return (kind, *x, *[_hashed(v, sizes) for v in x.values()])
    return kind, x
