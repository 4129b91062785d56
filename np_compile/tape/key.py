"""Keys: what is the same of a call each time it is made, for a look-up in a dictionary.

A key is a tuple: the row's name, then one piece for each argument. The data of a call go to the
parameters of its segment meanwhile. `call.decode` reads keys; nobody else does. Pieces:

    5               the segment's value number 5
    FLOAT, INT      the next Python float or int of the segment's parameters
    COMPLEX         the next two floats
    ("n", "d")      the next parameter, a NumPy scalar of that type code
    ("t", ...)      a tuple; ("l", ...) a list; ("d", keys, ...) a dict; ("s", ...) a slice
    ("c", type, v)  a constant
    ("x", ...)      an index: INT, (INT, length, step) of a slice whose start is a parameter, ...
    KW, names, ...  keyword arguments follow
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from np_compile.size import Size


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
_INT64 = (-(2**63), 2**63 - 1)


class Unrecordable(Exception):
    """An argument that no key can describe; the call runs in NumPy."""


NUMBERS = (int, float, complex)
_PYTHONS = frozenset((*NUMBERS, bool))
# By these NumPy, or Python for it, reads an object, or asks it for an answer.
_READ_BY = (
    "__index__", "__int__", "__float__", "__complex__", "__len__", "__getitem__", "__array__",
    "__array_interface__", "__array_struct__", "__array_ufunc__", "__array_function__",
    "__array_priority__", "__array_wrap__",
)  # fmt: skip
_OWN = ("builtins", "numpy", "torch")


def _is_read(kind: type) -> bool:
    """Whether a class has methods of its own by which its instances are read."""
    others = [k for k in kind.__mro__ if k.__module__.partition(".")[0] not in _OWN]
    return any(name in vars(k) for k in others for name in _READ_BY)


def is_number(value: Any) -> bool:
    """Whether it is a number of a class derived from one of Python's, which reads as theirs do."""
    kind = type(value)
    if kind in _PYTHONS or not issubclass(kind, NUMBERS) or issubclass(kind, np.generic):
        return False
    return not _is_read(kind)


def exact(value: Any) -> Any:
    """A number of such a class as Python's own, which it is where it becomes an element; numbers in
    lists too."""
    kind = type(value)
    if kind is list or kind is tuple:
        return kind(map(exact, value))
    if not is_number(value):
        return value
    return next(t for t in NUMBERS if isinstance(value, t)).__pos__(value)


def _constant(value: Any) -> tuple:
    kind = type(value)
    if kind.__module__ not in _OWN and _is_read(kind):  # once, by NumPy
        raise Unrecordable(f"a {kind.__name__} as argument")
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
        if value._in_segment is not capture.seg:
            capture.enter(value)
        return value._as_number
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
                if type(v) is not int and type(v) is not Size:
                    break
            else:
                return ("c", kind, tuple(value))
        return ("t" if kind is tuple else "l", *[encode(capture, v, data) for v in value])
    if kind is complex and data:
        capture.seg.floats += (value.real, value.imag)
        return COMPLEX
    if kind is Size:  # an integer, of a call that is looked at for many sizes
        if data and capture.ints_are_data:
            capture.seg.ints.append(value)
            return INT
        return ("c", int, value)
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
        if char in "mMV":  # equal in several units, without a hash in none; records
            raise Unrecordable(f"a {kind.__name__} as argument")
        return ("c", kind, value.item())
    if isinstance(value, np.ndarray):
        raise Unrecordable(f"an array of {type(value).__name__} {value.dtype}")
    if kind is slice:
        return ("s", *[encode(capture, v, False) for v in (value.start, value.stop, value.step)])
    if kind is dict:
        return ("d", tuple(value), *[encode(capture, v, data) for v in value.values()])
    if data and is_number(value):  # which, unlike Python's own, has a say in promotion
        number = np.array(exact(value))[()]
        if isinstance(number, np.generic):
            return encode(capture, number, True)
    if hasattr(kind, "__next__"):  # whoever looks into it uses it up
        raise Unrecordable(f"a {kind.__name__} as argument")
    if isinstance(value, range):
        return (
            encode(capture, np.arange(value.start, value.stop, value.step), data)
            if data
            else (("c", range, range(value.start, value.stop, value.step)))
        )
    return _constant(value)


_slices: dict[tuple, tuple] = {}  # (start, stop, step, extent) -> (piece, start)


def _slice_piece(key: tuple) -> tuple | None:
    """The piece of a slice of an axis of this extent, and its start made positive."""
    start, stop, step, extent = key
    if start is None and stop is None and step is None:
        made: tuple = (":", None)
    elif Size in map(type, key):
        return _sized_slice(*key)
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


def _sized_slice(start: Any, stop: Any, step: Any, extent: Any) -> tuple | None:
    """As `_slice_piece`, where some are sizes: as Python counts."""
    step = 1 if step is None else index(step)
    if step == 0:
        return None
    low, high = (0, extent) if step > 0 else (-1, extent - 1)

    def bound(x: Any, default: Any) -> Any:
        if x is None:
            return default
        if type(x) is not Size:
            x = index(x)
        if x < 0:
            x = x + extent
            return low if x < low else x
        return high if x > high else x

    first, end = bound(start, low if step > 0 else high), bound(stop, high if step > 0 else low)
    span = end - first if step > 0 else first - end
    if span <= 0:
        return (INT, 0, step), 0
    return (INT, (span + abs(step) - 1) // abs(step), step), first


_BOUNDS = frozenset((int, type(None)))


def _is_number(x: Any) -> bool:
    return type(x) in _BOUNDS or type(x) is Size or _is_integral(type(x))


def _is_integral(kind: type) -> bool:
    """Whether it is a class of NumPy's integers, of which timedelta64 is a subclass."""
    return issubclass(kind, np.integer) and not issubclass(kind, np.timedelta64)


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
        elif kind is int or kind is Size:
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
    stand_in = capture.array_type  # one says that it is a NumPy scalar, and has no value yet
    items = [int(k) if _is_integral(type(k)) else k for k in _items(key)]
    taken = [_axes_taken(k, stand_in) for k in items]
    if None in taken or sum(k is Ellipsis for k in items) > 1:
        return None
    rest = len(shape) - sum(taken)  # type: ignore[arg-type]  # axes that `...` stands for
    if rest < 0:
        return None
    pieces: list[Any] = ["x"]
    axis = 0
    for item, count in zip(items, taken, strict=True):
        if item is Ellipsis:
            pieces.append(".")
            axis += rest
        elif type(item) in _BASIC:
            basic = slices_piece(capture.seg.ints, shape[axis : axis + 1], item)
            if basic is None:
                return None
            pieces.append(basic[1])
        else:
            if isinstance(item, list) and not _are_within(item, shape[axis]):
                return None  # it raises here, where a `try` block may wait for that
            pieces.append(encode(capture, item, True))
        axis += count  # type: ignore[operator]
    return tuple(pieces)


_BASIC = frozenset((int, slice, type(None)))


def _are_within(places: list[int], extent: int) -> bool:
    """Whether an axis of this extent has all these places."""
    return not places or (-extent <= min(places) and max(places) < extent)


def _items(key: Any) -> tuple:
    return key if type(key) is tuple else (key,)


def _axes_taken(item: Any, array_type: type) -> int | None:
    """How many axes an item of an index is for; None where NumPy has to judge it."""
    kind = type(item)
    if kind is int or kind is slice:
        return 1
    if item is None or item is Ellipsis:
        return 0
    if kind is array_type:
        return item.ndim if item.dtype == np.bool_ else 1
    if isinstance(item, list):
        return 1 if all(type(v) is int for v in item) else None
    if isinstance(item, (np.ndarray, np.generic)):
        a = np.asarray(item)
        return 1 if a.dtype.kind in "iu" and a.ndim else None
    return None
