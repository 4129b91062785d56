"""Selections: `x[m]` with a boolean array m, while nobody asks how many elements it has.

The shape of `x[m]` depends on data, but most code only computes with it and puts it back, or sums
it up. So it is recorded with a whole array in its place: a `Selection` is an array `full` and a
mask, and stands for the elements of `full` under the mask, in order. A pointwise function of
selections by one mask is the function of their whole arrays; `x[m] = selection` is a store under
the mask. What needs the elements themselves (`settle`) gets them by indexing, through a break.

A stand-in is a selection while its attribute `_sel` is set; it has no number in any segment then.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from np_compile import shim
from np_compile.tape.key import Unrecordable
from np_compile.tape.node import Break, Segment

from ..arrays.array import Array, owner
from .formula import Formulas

_GET, _SET = "ndarray.__getitem__", "ndarray.__setitem__"
_DATA = Break("data", f"{_GET}: its result depends on the data")

# Functions of each element alone, beside ufuncs, and how many positional arguments they may get.
_ELEMENTWISE = {
    "where": 3, "clip": 3, "round": 2, "around": 2, "nan_to_num": 1, "copy": 1, "zeros_like": 2,
    "ones_like": 2, "empty_like": 2, "full_like": 3, "ndarray.astype": 2, "ndarray.copy": 1,
    "ndarray.clip": 3, "ndarray.round": 2, "ndarray.conj": 1, "ndarray.conjugate": 1,
}  # fmt: skip
_KEYWORDS = frozenset(("dtype", "casting", "copy", "decimals", "a_min", "a_max", "min", "max"))
# Reductions that are defined for no elements, so that they need not know whether there are any.
_REDUCTIONS = {
    f"{owner}{name}": name
    for name in ("sum", "prod", "any", "all", "mean", "var", "std")
    for owner in ("", "ndarray.")
}
_NUMBERS = (int, float, complex, bool, np.generic)


def _pointwise(name: str) -> int:
    """How many positional arguments a function of each element alone takes; 0 for other functions.

    Of a ufunc one more may be given, where the result goes.
    """
    if name in _ELEMENTWISE:
        return _ELEMENTWISE[name]
    function = getattr(np, name, None)
    if name not in shim.TABLE or not isinstance(function, np.ufunc):
        return 0
    return function.nin if function.nout == 1 and function.signature is None else 0


class Pending(Exception):
    """A selection came where an array with data is asked for."""


class Held:
    """What an array held at one moment of the recording, whatever is written to it later.

    It is a recorded copy, which costs nothing where nobody reads it, and the array itself while
    nothing has been written.
    """

    __slots__ = ("__weakref__", "_array", "_copy", "_index", "_node", "_seg")

    def __init__(self, seg: Segment, array: Array, copy: Array):
        self._seg = seg
        self._node = seg.node
        self._array = weakref.ref(array)  # as a temporary array it is not kept alive at a cut
        self._index = array._as_number
        self._copy = copy

    def array(self, seg: Segment | None) -> Array:
        """The array itself where it still holds the same, else the copy.

        seg: the present segment, None after the last one.
        """
        a = self._array()
        if a is None or seg is None or seg is not self._seg or a._as_number != self._index:
            return self._copy
        return self._copy if _written(seg, a, self._node) else a


def _written(seg: Segment, a: Array, since: Any) -> bool:
    """Whether a call recorded after the node `since` writes to the memory of an array."""
    root = owner(a)
    if root._written_in is not seg:
        return False
    number = a._as_value.root
    node = seg.node
    while node is not since:
        if number in node.mutates:
            return True
        node = node.parent  # type: ignore[assignment]
    return False


class Selection:
    """The elements of an array under a mask. Selections by one mask share its `Held`."""

    __slots__ = ("_full", "dtype", "mask", "rank", "trailing", "within")

    def __init__(self, full: Held | Array, mask: Held, rank: int, trailing: int, dtype: np.dtype):
        self._full = full
        self.mask = mask
        self.rank = rank  # of the whole array
        self.trailing = trailing  # axes behind those of the mask
        self.dtype = dtype
        self.within: Any = None  # weak: the mask that it makes, where it was used to select

    def full(self, seg: Segment | None) -> Array:
        """The whole array."""
        return self._full if type(self._full) is Array else self._full.array(seg)

    def derived(self, full: Array) -> Selection:
        """The elements of another array under the same mask; it must not be written to."""
        return Selection(full, self.mask, self.rank, self.trailing, full.dtype)

    def under(self, mask: Held) -> Selection:
        """The elements of the same array under another mask."""
        return Selection(self._full, mask, self.rank, self.trailing, self.dtype)


def _stand_in(capture: Any, selection: Selection) -> Array:
    a = Array(capture)
    a._sel = selection
    return a


def _record(capture: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """What a recorded call gives; NotImplemented where it cannot be recorded, or its data may
    make it raise."""
    seg = capture.seg
    try:
        args = capture.admit(args)
        kwargs = capture.admit_named(kwargs)
    except Unrecordable:
        return NotImplemented
    marks = len(seg.floats), len(seg.ints)
    try:
        node = capture.step(name, args, kwargs)
    except Unrecordable:
        capture.rewind(marks)
        return NotImplemented
    check = node.check
    fits = check is None or check.holds(seg.floats[marks[0] :], seg.ints[marks[1] :])
    if node.reason is not None or node.raises or not fits:
        capture.rewind(marks)
        return NotImplemented
    seg.node = node
    return capture.results(seg, node, name, args, kwargs)


# -- taking and storing --------------------------------------------------------------------------


def select(capture: Any, a: Array, key: Array) -> Array | None:
    """The stand-in of `a[key]`, nothing being cut; None where the key is no mask over `a`."""
    if key._sel is not None or key.dtype != np.bool_ or capture.differentiates():
        return None
    rank = key.ndim
    if rank == 0 or a._extents()[:rank] != key._extents():
        return None
    mask = _held_mask(capture, key)
    copy = _record(capture, "ndarray.copy", a, order="K")
    full = Held(capture.seg, a, copy)
    return _stand_in(capture, Selection(full, mask, a.ndim, a.ndim - rank, a.dtype))


def _held_mask(capture: Any, key: Array) -> Held:
    """What a mask holds now: what it held before, where that is the same."""
    known = None if key._selects is None else key._selects()
    if known is not None and known.array(capture.seg) is key:
        return known
    mask = Held(capture.seg, key, _record(capture, "ndarray.copy", key))
    key._selects = weakref.ref(mask)
    return mask


def store(capture: Any, a: Array, key: Any, value: Array) -> None:
    """`a[key] = value` of a selection."""
    if (
        type(key) is Array
        and key.dtype == np.bool_
        and _is_mask(capture, key, value._sel.mask)
        and _stored(capture, a, key, value._sel)
    ):
        return
    settle(capture, [value])
    if type(key) is Array and key.dtype == np.bool_ and not _on_tensors(capture):
        capture.through_numpy(_SET, (a, key, value), {}, _DATA)  # it counts the values
    else:
        capture.setitem(a, key, value)


def _is_mask(capture: Any, key: Array, mask: Held) -> bool:
    """Whether a boolean array holds now what a mask held."""
    seg = capture.seg
    m = mask.array(seg)
    if m is key:
        return True
    if key._sel is not None or m._in_segment is not seg:
        return False
    if key._in_segment is not seg:
        capture.enter(key)
    return key._extents() == m._extents() and Formulas(seg).same(key._as_number, m._as_number)


def _stored(capture: Any, a: Array, mask: Array, values: Selection) -> bool:
    """Whether values under a mask could be written over an array's, where the mask holds."""
    full = values.full(capture.seg)
    if a._extents() != full._extents() or (full.dtype.kind == "c" and a.dtype.kind != "c"):
        return False
    where = _widened(capture, mask, values.trailing)
    return _record(capture, "copyto", a, full, casting="unsafe", where=where) is not NotImplemented


def _widened(capture: Any, mask: Array, trailing: int) -> Array:
    """A mask with axes of length one behind its own."""
    return _record(capture, _GET, mask, (..., *[None] * trailing)) if trailing else mask


# -- selections of selections --------------------------------------------------------------------


def item(capture: Any, a: Array, key: Any) -> Any:
    """`a[key]` of a selection: again one, where the key is a condition on the same elements."""
    if _condition(capture, a, key):
        selection = a._sel
        mask = _mask_within(capture, key._sel)
        if mask is not None:
            return _stand_in(capture, selection.under(mask))
    settle(capture, _selections((a, key)))
    return capture.getitem(a, key)


def put(capture: Any, a: Array, key: Any, value: Any) -> None:
    """`a[key] = value` of a selection."""
    if _condition(capture, a, key):
        selection, taken = a._sel, key._sel
        seg = capture.seg
        condition = taken.full(seg)
        copy = _record(capture, "ndarray.copy", selection.full(seg), order="K")
        values = value._sel if type(value) is Array else None
        if isinstance(value, _NUMBERS):
            done = _record(capture, _SET, copy, condition, value) is not NotImplemented
        else:
            done = (
                values is not None
                and taken.within is not None
                and values.mask is taken.within()
                and _stored(capture, copy, condition, values)
            )
        if done:
            a._sel = selection.derived(copy)
            return
    settle(capture, _selections((a, key, value)))
    capture.setitem(a, key, value)


def _condition(capture: Any, a: Array, key: Any) -> bool:
    """Whether a key has one truth value for each element, or row, of a selection."""
    if type(key) is not Array or key._sel is None or capture.differentiates():
        return False
    taken = key._sel
    return taken.mask is a._sel.mask and taken.dtype == np.bool_ and not taken.trailing


def _mask_within(capture: Any, taken: Selection) -> Held | None:
    """The mask of those elements that a condition on a selection takes."""
    known = None if taken.within is None else taken.within()
    if known is not None:
        return known
    seg = capture.seg
    both = _record(capture, "logical_and", taken.mask.array(seg), taken.full(seg))
    if type(both) is not Array:
        return None
    mask = Held(capture.seg, both, both)
    taken.within = weakref.ref(mask)
    return mask


# -- computing -----------------------------------------------------------------------------------


def call(capture: Any, name: str, args: tuple, kwargs: dict) -> Any:
    """A NumPy call among whose arguments are selections."""
    result = None
    if not capture.differentiates():
        if name in _REDUCTIONS:
            result = _reduced(capture, name, args, kwargs)
        elif _pointwise(name):
            result = _computed(capture, name, args, kwargs)
    if result is not None and result is not NotImplemented:
        return result
    settle(capture, _selections((args, kwargs)))
    return capture.call(name, args, kwargs)


def _computed(capture: Any, name: str, args: tuple, kwargs: dict) -> Array | None:
    """The selection that a pointwise function gives; None where it cannot be told without data."""
    most = _pointwise(name)
    target: Any = None
    if len(args) == most + 1 and name not in _ELEMENTWISE:
        target = args[-1]
        args = args[:-1]
        if type(target) is not Array or target._sel is None:
            return None
    selection = _common(capture, [*args, *kwargs.values(), target])
    if selection is None or len(args) > most or not kwargs.keys() <= _KEYWORDS:
        return None
    if name == "where" and len(args) != 3:
        return None
    full = [_whole(capture, v) for v in args]
    result = _record(capture, name, *full, **{k: _whole(capture, v) for k, v in kwargs.items()})
    if type(result) is not Array or result._base is not None:
        return None
    if target is not None:
        return _put(capture, target, result)
    for given, v in zip(args, full, strict=True):
        if result is v:  # `x.astype(x.dtype, copy=False)`
            return given
    return _stand_in(capture, selection.derived(result))


def _put(capture: Any, target: Array, result: Array) -> Array | None:
    """The target of an operation in place, with its new values; None where NumPy would refuse."""
    selection = target._sel
    if result.shape != selection.full(capture.seg).shape:
        return None
    if result.dtype != selection.dtype:
        if not np.can_cast(result.dtype, selection.dtype, "same_kind"):
            return None
        result = _record(capture, "ndarray.astype", result, selection.dtype)
    target._sel = selection.derived(result)
    return target


def _same_mask(capture: Any, one: Held, other: Held) -> bool:
    """Whether two masks are alike."""
    seg = capture.seg
    a = one.array(seg)
    return a is other.array(seg) or (a._in_segment is seg and _is_mask(capture, a, other))


def _common(capture: Any, operands: list[Any]) -> Selection | None:
    """A selection among operands, where all others are by its mask too, or broadcast against the
    axes behind the mask's."""
    selections = [v._sel for v in operands if type(v) is Array and v._sel is not None]
    if not selections:
        return None
    first = selections[0]
    for s in selections[1:]:
        if s.mask is not first.mask:
            if not _same_mask(capture, s.mask, first.mask):
                return None
            s.mask = first.mask
        if s.rank != first.rank:
            return None
    for v in operands:
        kind = type(v)
        if kind is Array or kind is np.ndarray:
            if (kind is np.ndarray or v._sel is None) and v.ndim > first.trailing:
                return None
        elif not (v is None or isinstance(v, (*_NUMBERS, np.dtype, type, str))):
            return None
    return first


def _whole(capture: Any, v: Any) -> Any:
    """The whole array of a selection; other operands as they are."""
    return v._sel.full(capture.seg) if type(v) is Array and v._sel is not None else v


def _reduced(capture: Any, name: str, args: tuple, kwargs: dict) -> Any:
    """A reduction over all that the mask takes: over the whole array, where the mask holds."""
    a = args[0]
    if (
        len(args) > 2
        or not kwargs.keys() <= {"axis", "dtype", "ddof"}
        or _common(capture, [a]) is None
    ):
        return None
    axis = args[1] if len(args) == 2 else kwargs.get("axis")
    selection = a._sel
    if axis is not None:
        if type(axis) is not int or axis not in (0, -1 - selection.trailing):
            return None
        axis = tuple(range(selection.rank - selection.trailing))
    named = {k: v for k, v in kwargs.items() if k != "axis"}
    seg = capture.seg
    mask = _widened(capture, selection.mask.array(seg), selection.trailing)
    return _record(capture, _REDUCTIONS[name], selection.full(seg), axis=axis, where=mask, **named)


# -- where the elements are needed ---------------------------------------------------------------


def _selections(x: Any, around: frozenset[int] = frozenset()) -> Iterator[Array]:
    """The selections in x. around: what it stands in, and may hold in its turn."""
    kind = type(x)
    if kind is Array:
        if x._sel is not None:
            yield x
    elif isinstance(x, (tuple, list, dict)) and id(x) not in around:
        around |= {id(x)}
        for v in x.values() if isinstance(x, dict) else x:
            yield from _selections(v, around)


def settle(capture: Any, selections: Iterable[Array]) -> None:
    """Make ordinary arrays of selections: NumPy or torch indexes, after a cut where that has to
    wait."""
    seg = capture.seg
    selections = list({id(a): a for a in selections}.values())
    pairs = [(s.full(seg), s.mask.array(seg)) for s in [a._sel for a in selections]]
    for a in selections:
        a._sel = None  # the copies that it holds are not needed any more
    if any(owner(v)._in_segment is seg for pair in pairs for v in pair):
        capture.cut(_DATA)
    for a, (full, mask) in zip(selections, pairs, strict=True):
        if _on_tensors(capture):
            made = capture.by_shim(_GET, (full, mask), {}, _DATA)
            a._t, a._flip = made._t, made._flip
        else:
            a._np = capture.real(full, _DATA)[capture.real(mask, _DATA)]


def _on_tensors(capture: Any) -> bool:
    """Whether arrays are tensors that NumPy would have to copy, or that may have gradients."""
    return bool(capture.tensors) or capture.device is not None


def returned(capture: Any, result: Any) -> None:
    """The function ends and gives `result`: nothing is written any more, so that selections in it
    need no copies."""
    seg = capture.seg
    for a in {id(a): a for a in _selections(result)}.values():
        s = a._sel
        mask = s.mask.array(seg)
        a._sel = Selection(s.full(seg), Held(seg, mask, mask), s.rank, s.trailing, s.dtype)
