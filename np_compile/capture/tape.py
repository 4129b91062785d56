"""The tape: what a function has asked of NumPy since the last break, as a path in a tree.

A `Segment` is one recording in progress. Each NumPy call takes one step down a tree of `Node`s that
earlier recordings have built; the step's key says all about the call except the data (arrays,
floats, changing integers). A call made before in the same place therefore costs one dictionary
look-up, and the node reached at the end of a segment holds the programs compiled for it.

A key is a tuple: the row's name, then one piece per argument. Pieces (see `encode`):

    5               the segment's value number 5
    FLOAT, INT      the next Python float or int of the segment's parameters
    ("n", "d")      the next parameter, a NumPy scalar of that type code
    ("t", ...)      a tuple; ("l", ...) a list; ("c", type, value) a constant
    ("x", ...)      an index: INT, (length, step) of a slice with its start as parameter, ...
    KW, names, ...  keyword arguments follow
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np

from np_compile import shim


class Mark:
    """A piece of a key that no argument is equal to, whatever a user's strings say."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


FLOAT = Mark("<float>")
INT = Mark("<int>")
COMPLEX = Mark("<complex>")
KW = Mark("<keywords>")
INPUT = Mark("<input>")
_COMPLEX = frozenset((complex, np.complex64, np.complex128))
_INEXACT = _COMPLEX | {float, np.float16, np.float32, np.float64}
_INT64 = (-(2**63), 2**63 - 1)


class Unrecordable(Exception):
    """An argument that no key can describe; the call runs in NumPy."""


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
        "bytes", "check", "count", "excess", "guesses", "key", "mutates", "next", "parent",
        "place", "programs", "raises", "reason", "result", "special", "timing", "user_line",
        "value", "values",
    )  # fmt: skip

    def __init__(self, parent: Node | None, key: tuple):
        self.parent = parent
        self.key = key
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

    def calls(self) -> list[Node]:
        """As `path`, without the inputs."""
        return [n for n in self.path() if n.key[0] is not INPUT]

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


def _constant(value: Any) -> tuple:
    try:
        hash(value)
    except (TypeError, ValueError):  # the latter of a memoryview that may be written to
        raise Unrecordable(f"a {type(value).__name__} as argument") from None
    if value != value or type(value) is complex or (value == 0 and type(value) is float):
        # NaN never equals itself and would never be found again; 0.0 equals -0.0
        return ("c", type(value), repr(value))
    return ("c", type(value), value)


def encode(capture: Any, value: Any, data: bool) -> Any:
    """The piece of a key for one argument; data goes to the segment's parameters.

    data: whether the parameter takes array-likes. Unrecordable for what no key can describe.
    """
    kind = type(value)
    if kind is capture.array_type:
        if value._s is not capture.seg:
            capture.enter(value)
        return value._i
    if value is None or kind is str:
        return value
    if kind is int:
        if data and capture.ints_are_data and _INT64[0] <= value <= _INT64[1]:
            capture.seg.ints.append(value)
            return INT
        return ("c", int, value)
    if kind is float:
        if data:
            capture.seg.floats.append(value)
            return FLOAT
        return _constant(value)
    if kind is bool:
        return ("c", bool, value)
    if kind is tuple or kind is list:
        if not data:
            for v in value:
                if type(v) is not int:
                    break
            else:
                return ("c", kind, tuple(value))
        return ("t" if kind is tuple else "l", *[encode(capture, v, data) for v in value])
    if kind is complex and data:
        capture.seg.floats += (value.real, value.imag)
        return COMPLEX
    if isinstance(value, np.generic):
        char = value.dtype.char
        if data and char in "efd":
            capture.seg.floats.append(float(value))
            return ("n", char)
        if data and char in "bhilqBHI":
            capture.seg.ints.append(int(value))
            return ("n", char)
        if char in "efdFD":
            return ("c", kind, repr(value.item()))
        return ("c", kind, value.item() if char not in "Mm" else value)
    if isinstance(value, np.ndarray):
        raise Unrecordable(f"an array of {type(value).__name__} {value.dtype}")
    if kind is slice:
        return ("s", *[encode(capture, v, False) for v in (value.start, value.stop, value.step)])
    if kind is dict:
        return ("d", tuple(value), *[encode(capture, v, data) for v in value.values()])
    if hasattr(kind, "__next__"):  # whoever looks into it uses it up
        raise Unrecordable(f"a {kind.__name__} as argument")
    if isinstance(value, range):
        return (
            encode(capture, np.arange(value.start, value.stop, value.step), data)
            if data
            else (("c", range, range(value.start, value.stop, value.step)))
        )
    return _constant(value)


class Decoder:
    """From a key back to the arguments of a call.

    values: segment values by number. floats, ints: iterators over the segment's parameters.
    scalar: (parameter, type code) -> what stands for a NumPy scalar. pair: (real, imaginary) ->
    what stands for a complex number. number: what stands for an integer operand; indices are put
    in place as they are.
    """

    def __init__(
        self, values: Any, floats: Iterator, ints: Iterator, scalar: Any, pair: Any,
        number: Any = None,
    ):  # fmt: skip
        self.values = values
        self.floats = floats
        self.ints = ints
        self.scalar = scalar
        self.pair = pair
        self.number = number

    def call(self, key: tuple) -> tuple[list, dict]:
        """Arguments and keyword arguments of a key."""
        if KW in key:
            at = key.index(KW)
            args = [self.piece(p) for p in key[1:at]]
            names = key[at + 1]
            return args, dict(zip(names, [self.piece(p) for p in key[at + 2 :]], strict=True))
        return [self.piece(p) for p in key[1:]], {}

    def piece(self, p: Any) -> Any:
        kind = type(p)
        if kind is int:
            return self.values[p]
        if p is FLOAT:
            return next(self.floats)
        if p is INT:
            i = next(self.ints)
            return i if self.number is None else self.number(i)
        if p is COMPLEX:
            return self.pair(next(self.floats), next(self.floats))
        if kind is not tuple:
            return p
        tag = p[0]
        if tag == "c":
            if type(p[2]) is str and p[1] in _INEXACT:
                return p[1](complex(p[2]) if p[1] in _COMPLEX else p[2])
            if p[1] in (int, bool, float):
                return p[2]
            if issubclass(p[1], np.generic) and not isinstance(p[2], np.generic):
                return p[1](p[2])
            return list(p[2]) if p[1] is list else p[2]
        if tag == "t":
            return tuple(self.piece(q) for q in p[1:])
        if tag == "l":
            return [self.piece(q) for q in p[1:]]
        if tag == "n":
            return self.scalar(next(self.floats if p[1] in "efd" else self.ints), p[1])
        if tag == "s":
            return slice(*(self.piece(q) for q in p[1:]))
        if tag == "d":
            return dict(zip(p[1], [self.piece(q) for q in p[2:]], strict=True))
        assert tag == "x", p
        return tuple(self._item(q) for q in p[1:])

    def _item(self, q: Any) -> Any:
        if type(q) is tuple and q[0] is INT:  # a slice: its start is a parameter
            return make_slice(next(self.ints), q[1], q[2])
        if q is INT:
            return next(self.ints)
        if q == ":":
            return slice(None)
        if q == ".":
            return Ellipsis
        return self.piece(q)


class DynamicSlice:
    """A slice whose start is only known when the program runs."""

    __slots__ = ("length", "start", "step")

    def __init__(self, start: Any, length: int, step: int):
        self.start = start
        self.length = length
        self.step = step


def make_slice(start: Any, length: int, step: int) -> Any:
    if type(start) is not int:
        return DynamicSlice(start, length, step)
    stop = start + length * step
    return slice(start, stop if stop >= 0 else None, step)


_slices: dict[tuple, tuple] = {}  # (start, stop, step, extent) -> (piece, start)


def _slice_piece(key: tuple) -> tuple | None:
    """The piece of a slice of an axis of this extent, and its start made positive."""
    start, stop, step, extent = key
    if start is None and stop is None and step is None:
        made: tuple = (":", None)
    else:
        try:
            first, end, step = slice(start, stop, step).indices(extent)
        except (TypeError, ValueError):
            return None
        length = len(range(first, end, step))
        made = ((INT, length, step), first if length else 0)
    if len(_slices) > 100_000:
        _slices.clear()
    _slices[key] = made
    return made


_BOUNDS = frozenset((int, type(None)))


def _is_number(x: Any) -> bool:
    return type(x) in _BOUNDS or issubclass(type(x), np.generic)


def slices_piece(ints: list[int], shape: tuple[int, ...], key: Any) -> tuple | None:
    """As `encode_index`, for an index of slices, integers, None and `...` only; else None.

    Whoever gets None takes back what was put into `ints`.
    """
    if type(key) is not tuple:
        key = (key,)
    pieces: list[Any] = ["x"]
    axis = 0
    rank = len(shape)
    for item in key:
        kind = type(item)
        if kind is slice:
            if axis >= rank:
                return None
            found = (item.start, item.stop, item.step, shape[axis])
            if not (_BOUNDS.issuperset(map(type, found)) or all(map(_is_number, found))):
                return None  # a stand-in would be asked for its value here, in the midst of a key
            try:
                made = _slices.get(found) or _slice_piece(found)
            except TypeError:  # a bound that is no number
                return None
            if made is None:
                return None
            piece, start = made
            pieces.append(piece)
            if start is not None:
                ints.append(start)
            axis += 1
        elif kind is int:
            if axis >= rank:
                return None
            extent = shape[axis]
            if item < 0:
                item += extent
            if not 0 <= item < extent:
                return None
            ints.append(item)
            pieces.append(INT)
            axis += 1
        elif item is None:
            pieces.append(None)
        elif item is Ellipsis and "." not in pieces:
            used = sum(1 for k in key if k is not None) - 1
            if used > rank:
                return None
            pieces.append(".")
            axis += rank - used
        else:
            return None
    return tuple(pieces)


def encode_index(capture: Any, shape: tuple[int, ...], key: Any) -> tuple | None:
    """The piece for an index into an array of `shape`; None where NumPy has to judge it.

    Starts of slices and integers become parameters, made positive; lengths stay in the key.
    """
    items = key if type(key) is tuple else (key,)
    if sum(1 for k in items if k is Ellipsis) > 1:
        return None
    array_type = capture.array_type
    seg = capture.seg
    pieces: list[Any] = ["x"]
    axis = 0
    rest = len(shape)
    for item in items:
        kind = type(item)
        if kind is int or kind is slice:
            rest -= 1
        elif kind is array_type:
            rest -= item.ndim if item.dtype == np.bool_ else 1
        elif isinstance(item, list):
            if any(type(v) is not int for v in item):
                return None
            rest -= 1
        elif isinstance(item, (np.ndarray, np.generic)):
            a = np.asarray(item)
            if a.dtype.kind not in "iu" or (a.ndim == 0 and not isinstance(item, np.integer)):
                return None
            rest -= 1
        elif item is not None and item is not Ellipsis:
            return None
    if rest < 0:
        return None
    for item in items:
        kind = type(item)
        if isinstance(item, np.integer):
            item, kind = int(item), int
        if kind is int:
            n = shape[axis]
            if item < 0:
                item += n
            if not 0 <= item < n:
                return None
            seg.ints.append(item)
            pieces.append(INT)
            axis += 1
        elif kind is slice:
            if item.start is None and item.stop is None and item.step is None:
                pieces.append(":")
            else:
                try:
                    start, stop, step = item.indices(shape[axis])
                except (TypeError, ValueError):  # the latter of a memoryview that may be written to
                    return None
                length = len(range(start, stop, step))
                seg.ints.append(start if length else 0)
                pieces.append((INT, length, step))
            axis += 1
        elif item is None:
            pieces.append(None)
        elif item is Ellipsis:
            pieces.append(".")
            axis += rest
            rest = 0
        else:
            pieces.append(encode(capture, item, True))
            axis += item.ndim if kind is array_type and item.dtype == np.bool_ else 1
    return tuple(pieces)
