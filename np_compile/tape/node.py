"""The tape: what a function has asked of NumPy since the last break, as a path in a tree.

A `Segment` is one recording in progress. Each NumPy call takes one step down a tree of `Node`s that
earlier recordings have built; the step's key says all about the call except the data (arrays,
floats, changing integers). A call made before in the same place therefore costs one dictionary
look-up, and the node reached at the end of a segment holds the programs compiled for it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from math import isfinite, prod
from typing import Any

from np_compile import shim

from .call import Call, decode
from .form import Layouts, Rule, Step, sizes_apart
from .key import INPUT
from .tree import leaves

_new = object.__new__
_MET = 4096  # keys of new sizes that are remembered after a node


class Value:
    """What is known of one array of a segment: all but its data.

    meta: a shim array on torch's meta device; its storage tells what it is a view of. Where it was
    not needed to know the rest, it is made when it is asked for.
    root: number of the value that owns the memory; its own number where that is itself.
    source: number of the argument that it is a view of, None where it is none.
    pick: where it is in the result of its call, see `picked`.
    readonly: whether NumPy refuses to write to it.
    """

    __slots__ = (
        "_make", "_meta", "_strides", "dtype", "index", "ndim", "pick", "readonly", "root",
        "scalar", "shape", "source",
    )  # fmt: skip

    def __init__(
        self, index: int, meta: shim.ndarray, root: int, source: int | None, pick: tuple = ()
    ):
        self.source = source
        self.pick = pick
        self.index = index
        self.root = root
        self._meta: shim.ndarray | None = meta
        self._make: Callable[[tuple], shim.ndarray] | None = None
        self._strides: tuple[int, ...] | None = None
        self.shape = meta.shape
        self.ndim = len(self.shape)
        self.dtype = meta.dtype
        self.scalar = meta._scalar
        self.readonly = getattr(meta, "_readonly", False)

    def of_layout(
        self, shape: tuple[int, ...], strides: tuple[int, ...],
        make: Callable[[tuple], shim.ndarray],
    ) -> Value:  # fmt: skip
        """The value in its place in a segment of other sizes. make: gives `meta`, of `pick`."""
        other = _new(Value)
        other.source, other.pick, other.index = self.source, self.pick, self.index
        other.root = self.root
        other._meta, other._make = None, make
        other.shape, other.ndim, other.dtype = shape, self.ndim, self.dtype
        other.scalar, other.readonly = self.scalar, self.readonly
        other._strides = strides
        return other

    def of_shape(self, shape: tuple[int, ...]) -> Value:
        """The value in its place, if it had another shape."""
        other = copy(self)
        other.shape = shape
        return other

    @property
    def meta(self) -> shim.ndarray:
        made = self._meta
        if made is None:
            assert self._make is not None
            made = self._meta = self._make(self.pick)
            self._make = None
        return made

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps in memory, in elements; without the axes that are read backwards."""
        if self._strides is None:
            self._strides = self.meta._t.stride()
        return self._strides

    @property
    def size(self) -> int:
        """How many elements there are."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * int(self.dtype.itemsize)


class Check:
    """What the parameters of a call have to be for the call to be the recorded one.

    ints: the range that all integers must fit (NEP 50). floats: (k, low, high): float number k is
    stored as an integer, which has to lie between.
    """

    __slots__ = ("floats", "ints")

    def __init__(self, ints: tuple[int, int] | None, floats: tuple[tuple[int, int, int], ...]):
        self.ints = ints
        self.floats = floats

    def holds(self, floats: list[float], ints: list[int]) -> bool:
        """Whether these are parameters of such a call."""
        if self.ints is not None:
            low, high = self.ints
            if not all(low <= i <= high for i in ints):
                return False
        return all(
            isfinite(floats[k]) and low <= int(floats[k]) <= high for k, low, high in self.floats
        )


class Node:
    """One call in its place: after the calls on the path from the root of the tree.

    call: what is called, None of an input of the segment; floats, ints: how many parameters the
    segment has behind it. step: what it is but for its sizes; extents, integers: those of inputs
    and of calls from the root to here. is_kept: whether it is in the tree, see `add`. signature: of
    an input: dtype, shape, strides, axes read backwards, device, whether a gradient is asked for,
    whether it is a scalar, and whether it is read-only.
    value: the new value, where the call gives exactly one array. result: otherwise a structure with
        `Slot`s for new values and `Same` for arguments given back. mutates: numbers of the root
        values written to. reason: why the call is not recorded but breaks, else None.
    check: what the parameters must be, None for anything. special: whether a recording has to look
        at `reason` or `check` at all.
    place: where the call stands in the user's code, see `frames.place`; None of what is no call
        of it.
    raises: whether running it may raise on the data (an index out of bounds).
    guesses: how many lengths are guessed from the root to here (see `guess`).
    count, bytes: calls from the root to here, and bytes of arrays that they touch.
    """

    __slots__ = (
        "_call", "_key", "_met", "_sizes", "bytes", "check", "count", "floats", "guesses",
        "held", "ints", "is_kept", "mutates", "next", "parent", "place", "programs", "raises",
        "reason", "result", "signature", "special", "step", "user_line", "value",
        "values",
    )  # fmt: skip

    def __init__(self, parent: Node | None, key: tuple, step: Step | None = None):
        """step: of a root, that of the tree of forms."""
        self.parent = parent
        self.floats: int = parent.floats if parent is not None else 0
        self.ints: int = parent.ints if parent is not None else 0
        self._call: Call | None = None
        self._key = key
        # Keys of what came after it in one call, and was not kept, with the number of the call.
        self._met: dict[tuple, int] | None = None
        self.is_kept = parent is None
        self.signature: Any = None
        self._sizes: tuple[list[int], int, list[int], int] = ([], 0, [], 0)
        self.held: dict[Rule, bool] = {}  # whether rules hold, as far as was asked
        if parent is None:
            self.step = Step() if step is None else step
        else:
            what, extents, integers = sizes_apart(key)
            self.step = parent.step.follow(what)
            self._sizes = parent._with_sizes(extents, integers)
            if key[0] is INPUT:
                self.signature = key[1]
        self.next: dict[tuple, Node] = {}
        self.value: Value | None = None
        self.values: list[Value] = []
        self.result: Any = None
        self.mutates: tuple[int, ...] = ()
        self.reason: Break | None = None
        self.check: Check | None = None
        self.special = False
        self.raises = False
        self.user_line: str = ""
        self.place: tuple[int, int] | None = None
        self.programs: dict[Any, Any] = {}
        self.count: int = parent.count if parent is not None else 0
        self.bytes: int = parent.bytes if parent is not None else 0
        self.guesses: int = parent.guesses if parent is not None else 0

    @property
    def call(self) -> Call | None:
        if self._call is None and self.signature is None and self.parent is not None:
            self._call = decode(self._key, self.parent.floats, self.parent.ints)
        return self._call

    @property
    def piece(self) -> Any:
        """What the key of a call says of its second argument, but for sizes."""
        return sizes_apart(self._key)[0][2]

    @property
    def extents(self) -> list[int]:
        extents, count, _, _ = self._sizes
        return extents[:count]

    @property
    def integers(self) -> list[int]:
        _, _, integers, count = self._sizes
        return integers[:count]

    @property
    def gives_arrays(self) -> bool:
        """Whether it is a call that is recorded, and what it gives are arrays or nothing."""
        kinds = {type(x) for x in leaves(self.result)}
        return self.call is not None and self.reason is None and kinds <= {Slot, Same, type(None)}

    def _with_sizes(
        self, extents: list[int], integers: list[int]
    ) -> tuple[list[int], int, list[int], int]:
        """The sizes of a node after this one. Nodes on one path share their lists."""
        before, count, given, number = self._sizes
        if extents:
            before = before if len(before) == count else before[:count]
            before += extents
        if integers:
            given = given if len(given) == number else given[:number]
            given += integers
        return before, count + len(extents), given, number + len(integers)

    def holds(self, rule: Rule | None) -> bool:
        """Whether a rule of this node's step, and those before it, serve the sizes of its path."""
        asked: list[tuple[Node, Rule]] = []
        node: Node | None = self
        while rule is not None and node is not None and rule not in node.held:
            asked.append((node, rule))
            node, rule = node.parent, rule.before
        verdict = rule is None or node is None or node.held[rule]
        for node, rule in reversed(asked):
            verdict = verdict and rule.layouts(node._sizes[0], node._sizes[2]) is not None
            node.held[rule] = verdict
        return verdict

    def by_rule(self) -> tuple[Rule, Layouts] | None:
        """A rule by which it is known what this node gives, and what that is; None without one."""
        for rule in self.step.rules:
            if rule.whole and self.parent is not None and self.parent.holds(rule.before):
                found = rule.layouts(self._sizes[0], self._sizes[2])
                self.held[rule] = found is not None
                if found is not None:
                    return rule, found
        return None

    def add(self, child: Node, turn: int) -> None:
        """Have a new node after this one, whose step has rules, in the call of that number. What
        comes in one call only leaves nothing behind: one with its key in another call is kept, with
        all that comes after it then."""
        if not self.is_kept:
            return
        key = child._key
        if self._met is None:
            if self.next or self.parent is None or not self.step.rules:
                self._met = {}
            else:  # this one has come twice, and nothing after it was seen yet
                child.is_kept = True
                self.next[key] = child
                return
        if self._met.get(key, turn) != turn:
            child.is_kept = True
            del self._met[key]
            self.next[key] = child
        else:
            if len(self._met) >= _MET:
                self._met.clear()
            self._met[key] = turn

    def keep(self) -> None:
        """Be in the tree from now on, with all nodes from the root to this one."""
        node = self
        while node.parent is not None and not node.is_kept:
            node.is_kept = True
            node.parent.next.setdefault(node._key, node)
            node = node.parent

    def path(self) -> list[Node]:
        """The nodes from the first call of the segment to this one."""
        nodes = []
        node: Node | None = self
        while node is not None and node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    @property
    def inputs(self) -> int:
        """The number of arrays that the segment takes."""
        return len(self.path()) - self.count

    def calls(self) -> list[tuple[Node, Call]]:
        """As `path`, without the inputs: nodes, and what they call."""
        return [(n, n.call) for n in self.path() if n.call is not None]

    def all_values(self) -> list[Value]:
        """Every value of the segment, by number."""
        return [v for n in self.path() for v in n.values]


def picked(result: Any, pick: tuple | None) -> Any:
    """The array in the result of a call that stands at such a place: `pick` are the positions in
    the tuples around it, None where the result is the array."""
    for i in pick or ():
        result = result[i]
    return result


class Slot:
    """In a node's result: a new value."""

    __slots__ = ("value",)

    def __init__(self, value: Value):
        self.value = value


class Same:
    """In a node's result: an argument handed back, by its number."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        self.index = index


class Break:
    """Why a call is not recorded: data, not an exception, so that `explain` can print it.

    kind: "static" (no break: the call's integers are part of its identity, as in `arange(n)`),
    "value" (Python needs data), "data" (a result's shape depends on data), "library" (a
    call that runs as a whole, between kernels), "try" (a call that may raise where that is
    handled), "numpy" (the shim lacks it), "foreign" (a function that is not NumPy), "plain" (faster
    in NumPy), "loop" (an iteration mark), "end", "asked" (graph_break()).
    """

    __slots__ = ("kind", "text")

    def __init__(self, kind: str, text: str):
        self.kind = kind
        self.text = text

    def __str__(self) -> str:
        return self.text


class Segment:
    """A recording in progress: where it stands in the tree, and its data so far. sized: of a call
    that may be kept for many sizes, the steps whose keys may follow from these, by their nodes."""

    __slots__ = ("floats", "inputs", "ints", "node", "sized", "values")

    def __init__(self, root: Node):
        self.node = root
        self.values: list[Any] = []  # stand-in arrays, by number
        self.inputs: list[Any] = []  # those of them that came from before
        self.floats: list[float] = []
        self.ints: list[int] = []
        self.sized: dict[Node, Any] = {}
