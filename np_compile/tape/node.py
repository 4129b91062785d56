"""The tape: what a function has asked of NumPy since the last break, as a path in a tree.

A `Segment` is one recording in progress. Each NumPy call takes one step down a tree of `Node`s that
earlier recordings have built; the step's key says all about the call except the data (arrays,
floats, changing integers). A call made before in the same place therefore costs one dictionary
look-up, and the node reached at the end of a segment holds the programs compiled for it.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from np_compile import shim

from .call import Call, decode
from .key import INPUT


class Value:
    """What is known of one array of a segment: all but its data.

    meta: a shim array on torch's meta device; its storage tells what it is a view of.
    root: number of the value that owns the memory; its own number where that is itself.
    source: number of the argument that it is a view of, None where it is none.
    pick: where it is in the result of its call, see `picked`.
    readonly: whether NumPy refuses to write to it.
    """

    __slots__ = (
        "dtype", "index", "meta", "ndim", "pick", "readonly", "root", "scalar", "shape", "source",
    )  # fmt: skip

    def __init__(
        self, index: int, meta: shim.ndarray, root: int, source: int | None, pick: tuple = ()
    ):
        self.source = source
        self.pick = pick
        self.index = index
        self.meta = meta
        self.root = root
        self.shape = meta.shape
        self.ndim = len(self.shape)
        self.dtype = meta.dtype
        self.scalar = meta._scalar
        self.readonly = getattr(meta, "_readonly", False)


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
    segment has behind it. signature: of an input: dtype, shape, strides, axes read backwards,
    device, whether a gradient is asked for, whether it is a scalar, and whether it is read-only.
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
    excess: seconds that a compiled run up to here takes more than NumPy, None until there were
        enough of them; `timing` is of those so far (see `weigh`).
    """

    __slots__ = (
        "bytes", "call", "check", "count", "excess", "floats", "guesses", "ints", "mutates", "next",
        "parent", "place", "programs", "raises", "reason", "result", "signature", "special",
        "timing", "user_line", "value", "values",
    )  # fmt: skip

    def __init__(self, parent: Node | None, key: tuple):
        self.parent = parent
        self.floats: int = parent.floats if parent is not None else 0
        self.ints: int = parent.ints if parent is not None else 0
        self.call: Call | None = None
        self.signature: Any = None
        if key and key[0] is INPUT:
            self.signature = key[1]
        elif key:
            self.call = call = decode(key, self.floats, self.ints)
            self.floats, self.ints = call.floats, call.ints
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
        self.excess: float | None = None
        self.timing: Any = None
        self.count: int = parent.count if parent is not None else 0
        self.bytes: int = parent.bytes if parent is not None else 0
        self.guesses: int = parent.guesses if parent is not None else 0

    def path(self) -> list[Node]:
        """The nodes from the first call of the segment to this one."""
        nodes = []
        node: Node | None = self
        while node is not None and node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

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
    call that runs as a whole, between kernels), "numpy" (the shim lacks it), "foreign" (a function
    that is not NumPy), "plain" (faster in NumPy), "loop" (an iteration mark), "end", "asked"
    (graph_break()).
    """

    __slots__ = ("kind", "text")

    def __init__(self, kind: str, text: str):
        self.kind = kind
        self.text = text

    def __str__(self) -> str:
        return self.text


class Segment:
    """A recording in progress: where it stands in the tree, and its data so far."""

    __slots__ = ("floats", "inputs", "ints", "node", "values")

    def __init__(self, root: Node):
        self.node = root
        self.values: list[Any] = []  # stand-in arrays, by number
        self.inputs: list[Any] = []  # those of them that came from before
        self.floats: list[float] = []
        self.ints: list[int] = []
