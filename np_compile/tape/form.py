"""The form of a segment: what it is but for its sizes, and these.

Two segments have one form if they make the same calls on arrays of the same dtypes, ranks and kinds
of layout, whatever the extents are. Sizes are all that may differ then: extents and strides of
inputs, and integers among the arguments of calls (`zeros(n)`, `reshape(n // 2, 2)`, slices).

Forms are a tree of their own: to each `Node` belongs a `Step`, one for all nodes that differ in
sizes alone. Where a segment has been traced for many sizes, its steps have rules, which say what
a call gives for other sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from np_compile.size import Size

from .call import Call, Span
from .key import INPUT, INT, KW
from .tree import mapped

if TYPE_CHECKING:
    from .node import Node

_SIZE = "<size>"
_INTEGERS = frozenset((int, Size))
_RULES = 8  # of a step; with more the oldest is forgotten

# Shape and strides of each array that a call gives.
Layouts = Sequence[tuple[tuple[int, ...], tuple[int, ...]]]


class Rule:
    """What a step gives, found when its segment was traced for many sizes.

    before: the rule of the step before. like: the node that was traced. layouts: of the extents
    and the integers from the root to the step, what it gives; None where another program serves
    them. reads: numbers of values whose elements it looks at, none where it touches no elements;
    writes: of those that it writes to. guesses: how many lengths it guesses. whole: whether it says
    all that the step gives.
    """

    __slots__ = ("before", "guesses", "layouts", "like", "reads", "touches", "whole", "writes")

    def __init__(
        self, before: Rule | None, like: Node,
        layouts: Callable[[Sequence[int], Sequence[int]], Layouts | None],
    ):  # fmt: skip
        self.before = before
        self.like = like
        self.layouts = layouts
        call, parent = like.call, like.parent
        assert parent is not None
        self.whole = like.gives_arrays
        self.touches = like.bytes != parent.bytes
        self.guesses = like.guesses - parent.guesses
        self.reads: list[int] = []
        self.writes: list[int] = []
        if call is not None:
            self.reads = call.reads
            roots = {v.index: v.root for v in parent.all_values()} if like.mutates else {}
            self.writes = [i for i in call.references() if roots.get(i) in like.mutates]


class Step:
    """A call, or an input, in the tree of forms. next: by what comes after it, see `sizes_apart`.
    rules: of the traces that have gone by."""

    __slots__ = ("next", "rules")

    def __init__(self) -> None:
        self.next: dict[tuple, Step] = {}
        self.rules: tuple[Rule, ...] = ()

    def follow(self, what: tuple) -> Step:
        """The step after this one."""
        found = self.next.get(what)
        return self.next.setdefault(what, Step()) if found is None else found

    def learn(self, rule: Rule) -> None:
        """Have one more rule."""
        self.rules = (rule, *self.rules[: _RULES - 1])


@dataclass(frozen=True)
class Form:
    """step: of the last call; one for all segments of the form. sizes: of this one, in an order
    that follows from the form. inputs: how many of these belong to inputs; the rest are integers of
    calls."""

    step: Step
    sizes: tuple[int, ...]
    inputs: int


def form_of(node: Node) -> Form:
    """The form of the segment that ends at a node."""
    return Form(node.step, (*node.extents, *node.integers), len(node.extents))


def sizes_apart(key: tuple) -> tuple[tuple, list[int], list[int]]:
    """What a key is but for its sizes; extents, of an input; integers, of a call."""
    if key[0] is INPUT:
        dtype, shape, strides, *rest = key[1]
        layout = layout_of(shape, strides)
        extents = [*shape] if layout is not None else [*shape, *strides]
        return (INPUT, dtype, len(shape), layout, *rest), extents, []
    integers: list[int] = []
    names = key.index(KW) + 1 if KW in key else -1
    what = [p if k == names else piece_apart(p, integers) for k, p in enumerate(key)]
    return tuple(what), [], integers


def piece_apart(piece: Any, sizes: list[int]) -> Any:
    """A piece of a key, its sizes put into a list."""
    if type(piece) is not tuple or not piece:
        return piece
    tag = piece[0]
    if tag is INT:
        sizes.append(piece[1])
        return INT, _SIZE, piece[2]
    if tag == "d":
        return (tag, piece[1], *[piece_apart(p, sizes) for p in piece[2:]])
    if tag != "c":
        return tuple([piece_apart(p, sizes) for p in piece])
    _, kind, value = piece
    if kind is int:
        sizes.append(value)
        return "c", kind, _SIZE
    if (kind is tuple or kind is list) and _INTEGERS.issuperset(map(type, value)):
        sizes += value
        return "c", kind, (_SIZE, len(value))
    return piece


def size_names(node: Node, form: Form, ints: int) -> list[str]:
    """What each size of a form is, and each of so many integers of its segment."""
    names: list[str] = []
    count = 0
    for step in node.path():
        if step.call is None:
            _, shape, strides, *_ = step.signature
            names += [f"extent {d} of input {count}" for d in range(len(shape))]
            if layout_of(shape, strides) is None:
                names += [f"stride {d} of input {count}" for d in range(len(shape))]
            count += 1
    names += [f"integer {k} of its calls" for k in range(len(form.sizes) - form.inputs)]
    return names + [f"integer {k} of its indices" for k in range(ints)]


def shapes_in(node: Node, sizes: Sequence[Any]) -> list[tuple[tuple, tuple]]:
    """Shape and strides of each input of a segment, of these sizes in the order of its form."""
    rest = list(sizes)
    found = []
    for step in node.path():
        if step.call is not None:
            continue
        _, shape, strides, *_ = step.signature
        layout = layout_of(shape, strides)
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


def extents_in(node: Node) -> dict[int, tuple[int, int]]:
    """The extents among the sizes of a segment's form, by their positions: the number of the input
    that each is of, and the axis."""
    found: dict[int, tuple[int, int]] = {}
    count = 0
    inputs = [step.signature for step in node.path() if step.call is None]
    for k, (_, shape, strides, *_) in enumerate(inputs):
        found.update((count + d, (k, d)) for d in range(len(shape)))
        count += len(shape) * (1 if layout_of(shape, strides) is not None else 2)
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


def layout_of(shape: tuple, strides: tuple) -> tuple[int, ...] | None:
    """The order of the axes in memory, where they lie there without gaps; else None."""
    if len(shape) == 1:
        return (0,) if shape[0] == 1 or strides[0] == 1 else None
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d))
    total = 1
    for d in reversed(order):
        if shape[d] != 1 and strides[d] != total:
            return None
        total *= shape[d]
    return tuple(order)
