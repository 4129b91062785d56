"""Recording: every NumPy call of the user's code arrives at `call`.

It becomes a step on the tape, or runs at once where it cannot: `outside`, `plain`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import get_ident
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from np_compile import shim
from np_compile.tape.call import Reference, label
from np_compile.tape.key import (
    FLOAT,
    INPUT,
    INT,
    KW,
    Unrecordable,
    encode,
    encode_index,
    exact,
    slices_piece,
)
from np_compile.tape.node import Break, Node, Same, Segment, Slot, Value
from np_compile.tape.tree import leaves, mapped

from . import joins, positions, state
from .arrays.array import Array, bases, is_array_like, owner, placed, recorded, viewing
from .arrays.flat import Flat
from .arrays.traced import Traced, has_traced, shape_of, values
from .arrays.transfers import to_device
from .frames import inside_try
from .infer import by_rule, infer, input_node
from .masks import masked
from .policy import decide, guess, loops
from .policy.decide import Way

if TYPE_CHECKING:
    from .capture import Capture

_SIMPLE = frozenset((int, float, complex, bool, str, slice, type(None), type(...), type))
_lock = state.lock
_clock = time.perf_counter
# Exponents for which a program is made, as it may have products and roots for them.
_EXPONENTS = frozenset((0.0, 0.5, 1.0, 2.0, -1.0, -2.0, 3.0, -3.0, 4.0, 1.5, -0.5, -1.5))
INDEXING = ("ndarray.__getitem__", "ndarray.__setitem__")
# Others of which an argument becomes an element.
_STORING = frozenset(
    [
        "ndarray.fill", "ndarray.put", "put", "putmask", "place", "fill_diagonal", "insert", "full",
        "array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray",
    ]
)  # fmt: skip
_SELECTED = "sizes, and computes with them where a mask is true"
_LISTED = 3  # elements of a list that are parts of the key
_INFERRED = 0.01  # seconds that recording a new call takes at most


def call(c: Capture, name: str, args: tuple, kwargs: dict) -> Any:
    """One NumPy call: recorded, or run at once where it cannot be."""
    if get_ident() != c.thread:
        c.enter_thread()
    if c.grads and name in joins.NAMES and joins.is_long(c, name, args, kwargs):
        return joins.call(c, name, args, kwargs)
    sized = None
    if c.traces and (has_traced(args) or has_traced(kwargs)):
        sized = args, kwargs
        args, kwargs = values(args), values(kwargs)
    if c.plain and c.is_plain():
        return c.plainly(name, args, kwargs)
    refused = ""
    pending = False
    try:
        admitted = c.admit(args)
        named = c.admit_named(kwargs) if kwargs else kwargs
    except Unrecordable as e:
        refused = f"{label(name)}: {e}"
    except masked.Pending:
        pending = True
    if refused:  # here, where it is no context of NumPy's exceptions
        return c.through_numpy(name, args, kwargs, Break("numpy", refused))
    if pending:  # here, where no frame of the error holds an array
        if sized is not None:
            c.watch.sees(_SELECTED)
        return masked.call(c, name, args, kwargs)
    seg = c.seg
    marks = len(seg.floats), len(seg.ints)
    try:
        key = _key(c, name, admitted, named, name not in c.options.static_ints)
        node = seg.node.next.get(key)
        if node is None:
            if c.is_told():
                c.rewind(marks)
                c.hear()
                return c.plainly(name, args, kwargs)
            if c.weighs:
                decision = decide.of_step(c, [a for a in admitted if type(a) is Array])
                if decision.way is Way.NUMPY:
                    c.rewind(marks)
                    c.go_plain(decision)
                    return c.plainly(name, args, kwargs)
            with _lock:
                node = seg.node.next.get(key) or _by_rule(c, seg, key)
        if node is None or node.special:
            c.rewind(marks)
            node = c.step(name, admitted, named)
            if node.place is None:
                loops.see(c, node)
    except Unrecordable as e:
        node, refused = None, f"{label(name)}: {e}"
    if node is None:
        c.rewind(marks)
        return c.through_numpy(name, args, kwargs, Break("numpy", refused))
    if node.special and (why := _refusal(c, seg, node, marks)) is not None:
        c.rewind(marks)
        if why.kind == "loop":
            return _next_iteration(c, node, name, args, kwargs)
        return c.run_at_once(why, name, args, kwargs)
    if node.mutates and any(seg.values[i]._copied for i in node.mutates):
        c.rewind(marks)
        why = Break("numpy", f"{label(name)} writes to an array of code that is not captured")
        return c.through_numpy(name, args, kwargs, why)
    if node.mutates and c.grads and seg.node.count and _writes_after_library(c, seg, node):
        c.rewind(marks)
        c.cut(_BEFORE_WRITES)
        return c.call(name, *(sized or (args, kwargs)))
    met = (admitted is not args or named is not kwargs) and c.device is None and not c.tensors
    if met and any(v.source is not None and seg.values[v.root]._copied for v in node.values):
        c.rewind(marks)
        return _view_of_unseen(c, name, args, kwargs)
    if node.raises and seg.node.count and (before := _ends_before(c, seg, node)):
        c.rewind(marks)
        c.cut(before)
        return c.call(name, *(sized or (args, kwargs)))
    seg.node = node
    if c.traces and (sized is not None or name in INDEXING):
        _note(c, node, name, *(sized or (admitted, named)))
    r = c.results(seg, node, name, admitted, named)
    if sized is not None and type(r) is Array:
        r._by_size = True
    if node.raises and inside_try():
        c.cut(Break("try", f"{label(name)} may raise inside a try block"))
    return r


def _view_of_unseen(c: Capture, name: str, args: tuple, kwargs: dict) -> Any:
    """A call that gives a view of an array met on the way: a real array with its memory."""
    if c.watch is not None:
        c.watch.spoil("a view of an array of code that is not captured")
    result = c.through_numpy(name, args, kwargs, None)
    met = [v for v in leaves((args, kwargs)) if type(v) is np.ndarray]

    def itself(v: Any) -> Any:
        if type(v) is not Array or v._np is None or v._base is not None or id(v._np) in c.known:
            return v
        return v._np if any(np.may_share_memory(v._np, a) for a in met) else v

    return mapped(result, itself)


# What stands before a `try` block runs before a call in it that may raise: so the block's handlers
# are given the errors of that call alone.
_BEFORE_TRY = Break("end", "a call inside a try block may raise")
# What is written before a library raises stays written.
_AFTER_WRITES = Break("end", "a call may raise, and what was written before it stays")
_BEFORE_WRITES = Break("end", "a call may raise, and nothing is written then")


def _ends_before(c: Capture, seg: Segment, node: Node) -> Break | None:
    """Why a segment is to end before a call that may raise; None where it need not."""
    if inside_try() and any(n.raises for n in seg.node.path()):
        return _BEFORE_TRY
    written = {root for n in seg.node.path() for root in n.mutates}
    return _AFTER_WRITES if _asks_library(node) and c.writes_outside(seg, written) else None


def _writes_after_library(c: Capture, seg: Segment, node: Node) -> bool:
    """Whether a call writes to memory that is there, in a segment that asks a library before."""
    asks = any(n.raises and _asks_library(n) for n in seg.node.path())
    return asks and c.writes_outside(seg, node.mutates)


def _asks_library(node: Node) -> bool:
    """Whether it is a call of a library that may raise on the data."""
    call = node.call
    return call is not None and shim.TABLE[call.name].kind is shim.Kind.LIBRARY


def _refusal(c: Capture, seg: Segment, node: Node, marks: tuple[int, int]) -> Break | None:
    """Why a call is not recorded, which depends on the node or on the call's parameters."""
    if node.reason is not None and not (c.begins and node.reason.kind == "loop"):
        return node.reason
    name = node.call.name  # type: ignore[union-attr]
    if node.guesses > seg.node.guesses and not guess.allowed(c):
        return guess.reason(name)
    check = node.check
    if check is not None and not check.holds(seg.floats[marks[0] :], seg.ints[marks[1] :]):
        return Break("numpy", f"{label(name)}: a number out of bounds")
    if node.raises and _asks_library(node) and not c.differentiates():
        return Break("library", label(name))
    if node.raises and c.device is not None and not c.tensors:
        # Out of bounds in a device kernel would end the process; the shim looks first.
        return Break("library", label(name))
    return None


def _next_iteration(c: Capture, node: Node, name: str, args: tuple, kwargs: dict) -> Any:
    """A call before which the segment is cut: the next one ends where a call stands there
    again. Such segments have a tree of their own."""
    c.cut(node.reason)  # type: ignore[arg-type]
    if not c.plain:
        place = node.place[0]  # type: ignore[index]
        c.loop_places.add(place)
        c.seg = Segment(c.tree_root((c.device, place)))
    c.begins = True
    try:
        return c.call(name, args, kwargs)
    finally:
        c.begins = False


def getitem(c: Capture, a: Array, key: Any) -> Any:
    """`a[key]`: as `call`, quicker for slices."""
    seg = c.seg
    sized = key
    if c.traces and has_traced(key):
        key = values(key)
    if a._in_segment is not seg:
        if a._sel is not None:
            if sized is not key:
                c.watch.sees(_SELECTED)
            return masked.item(c, a, key)
        if c.is_plain():
            return c.plain_item(a, key)
        c.enter(a)
    marks = len(seg.floats), len(seg.ints)
    piece = slices_piece(seg.ints, a._as_value.shape, key)
    if piece is not None:
        node = seg.node.next.get(("ndarray.__getitem__", a._as_number, piece))
        if node is not None and not node.special:
            seg.node = node
            if c.traces:
                _note(c, node, "ndarray.__getitem__", (a, sized), {})
            value: Any = node.value  # a slice gives exactly one
            r = recorded(c, seg, value)
            if value.source is not None:
                viewing(r, a, ("ndarray.__getitem__", (a, key), {}, None))
                r._by_size = sized is not key
            return r
    c.rewind(marks)
    if type(key) is Array:
        selected = masked.select(c, a, key)
        if selected is not None:
            return selected
    if sized is not key:
        return c.call("ndarray.__getitem__", (a, sized), {})
    return c.call("ndarray.__getitem__", (a, _with_numbers(_with_arrays(key), a.ndim)), {})


def _is_read_only(a: Array | None) -> bool:
    """Whether an array, or what it is a view of, is."""
    while a is not None and not a._readonly:
        a = a._base
    return a is not None


def setitem(c: Capture, a: Array, key: Any, value: Any) -> None:
    """`a[key] = value`: as `call`, quicker for slices."""
    sized = key, value
    if c.traces and has_traced(sized):
        key, value = values(sized)
    kind = type(value)
    if kind is Array and value._base is a:
        name, args, _kwargs, _pick = value._via
        if name == "ndarray.__getitem__" and args[1] is key and not _is_read_only(a):
            return  # the end of `a[key] += ...`: the view has been written to already
    if c.is_plain():
        c.put_plain(a, key, value)
        return
    if a._sel is not None:
        if sized[0] is not key or sized[1] is not value:
            c.watch.sees(_SELECTED)
        masked.put(c, a, key, value)
        return
    if (
        type(key) is Array
        and key._sel is None
        and key.dtype == np.bool_
        and owner(key) is owner(a)  # NumPy looks at the mask while it writes
    ):
        why = Break("numpy", "a mask that shares memory with what it selects from")
        c.through_numpy("ndarray.__setitem__", (a, *sized), {}, why)
        return
    if kind is Array or kind is float:
        seg = c.seg
        if a._in_segment is not seg:
            c.enter(a)
        if kind is Array and value._in_segment is not seg:
            if value._sel is not None:
                if sized[0] is not key:
                    c.watch.sees(_SELECTED)
                masked.store(c, a, key, value)
                return
            c.enter(value)
        marks = len(seg.floats), len(seg.ints)
        piece = slices_piece(seg.ints, a._as_value.shape, key)
        if piece is not None:
            what = value._as_number if kind is Array else FLOAT
            node = seg.node.next.get(("ndarray.__setitem__", a._as_number, piece, what))
            if node is not None and not node.special:
                if kind is float:
                    seg.floats.append(value)
                seg.node = node
                if c.traces:
                    _note(c, node, "ndarray.__setitem__", (a, *sized), {})
                _mark_written(c, seg, node)
                return
        c.rewind(marks)
    if sized[0] is not key or sized[1] is not value:
        c.call("ndarray.__setitem__", (a, *sized), {})
        return
    c.call("ndarray.__setitem__", (a, _with_arrays(key), value), {})


def _with_arrays(key: Any) -> Any:
    """An index with arrays for its longer lists of integers: these are data then. As parts of the
    key, others would be compiled anew."""
    if type(key) is tuple:
        return tuple([_with_arrays(k) for k in key]) if list in map(type, key) else key
    if type(key) is list and len(key) > _LISTED and all(type(v) is int for v in key):
        with suppress(OverflowError):  # of which NumPy tells
            return np.array(key, np.intp)
    return key


def _with_numbers(key: Any, ndim: int) -> Any:
    """An index that gives a view, with the values of NumPy's scalars among its items. To read a
    single element, a place that only the run knows will do."""
    items = key if type(key) is tuple else (key,)
    computed = [type(k) is Array and k._is_scalar() and k.dtype.kind in "iu" for k in items]
    if not any(computed):
        return key
    pairs = zip(items, computed, strict=True)
    if len(items) == ndim and all(x or type(k) is int for k, x in pairs):
        return key
    made = tuple([int(k) if x else k for k, x in zip(items, computed, strict=True)])
    return made if type(key) is tuple else made[0]


def enter(c: Capture, a: Array) -> None:
    """Give a stand-in a number in the current segment."""
    seg = c.seg
    if c.plain:
        return
    if a._in_capture is not c:
        raise RuntimeError("an array of one compiled call was used in another one")
    if a._base is not None:
        name, args, kwargs, pick = a._via
        if a._by_size and c.traces:
            c.watch.sees("a view by sizes, which is used in two segments")
        for base in bases(a, lambda b: b._in_segment is seg):
            if base._in_segment is not seg:
                c.enter(base)
        c.admit(args)
        node = c.step(name, args, kwargs)
        values = node.values
        made = [a if pick is None or v.pick == pick else Array(c) for v in values]
        for stand_in, value in zip(made, values, strict=True):
            _bind(stand_in, seg, value)
        seg.node = node
        if c.traces and name in INDEXING:
            _note(c, node, name, args, kwargs)
        seg.values.extend(made)
        return
    if a._t is None:
        c.load(a)
    if a._ahead:
        c.send(a)
    sig = a._sig
    if sig is None:
        t = a._t
        sig = a._sig = (
            t.dtype, t.shape, t.stride(), a._flip, t.device, t.requires_grad,
            a._is_scalar(), a._readonly,
        )  # fmt: skip
    key = (INPUT, sig)
    node = seg.node.next.get(key)
    if node is None:
        with _lock:
            node = seg.node.next.get(key)
            if node is None:
                node = input_node(seg.node, key, sig, len(seg.values), c.turn)
    seg.node = node
    _bind(a, seg, node.value)
    seg.values.append(a)
    seg.inputs.append(a)


def _bind(a: Array, seg: Segment, value: Any) -> None:
    a._in_segment = seg
    a._as_number = value.index
    a._as_value = value


def load(c: Capture, a: Array) -> None:
    """Give a root its tensor: NumPy's memory, or a copy of it on the device."""
    if a._sel is not None:
        raise masked.Pending
    if a._np is None:
        raise AssertionError("an array without data: it was taken for dead at a break")
    x = shim.share_numpy(a._np)
    if c.device is not None:
        a._host, a._np = a._np, None
        a._t, a._flip = to_device(x._t, c.device), x._flip
        a._fast = None
        c.moved.append(a)
    else:
        a._t, a._flip = x._t, x._flip


def _mark_written(c: Capture, seg: Segment, node: Node) -> None:
    """Note that arrays are not yet what memory holds: a recorded call will write to them."""
    for i in node.mutates:
        root = seg.values[i]
        root._written_in = seg
        root._fast = None
        if c.device is not None:
            root._dirty = True


def rewind(c: Capture, marks: tuple[int, int]) -> None:
    seg = c.seg
    del seg.floats[marks[0] :]
    del seg.ints[marks[1] :]


def admit(c: Capture, args: Any) -> Any:
    """The arguments of a call with stand-ins for all arrays, each entered into the segment.

    Before the call's own parameters are noted: a view enters by another call, with its own.
    """
    changed = None
    for i, v in enumerate(args):
        kind = type(v)
        new = v
        if kind is Array:
            if v._in_segment is not c.seg:
                c.enter(v)
        elif kind in _SIMPLE:
            continue
        elif kind is tuple or kind is list:
            for w in v:
                if type(w) not in _SIMPLE:
                    new = c.admit(v)
                    break
        elif kind is np.ndarray:
            new = c.snapshot(v)
            if new._in_segment is not c.seg:
                c.enter(new)
        elif hasattr(type(v), "__dlpack__") and not isinstance(v, (np.ndarray, np.generic, type)):
            new = c.adopt_foreign(v)
            if new._in_segment is not c.seg:
                c.enter(new)
        elif kind is Flat:
            new = v.copy()
            if new._in_segment is not c.seg:
                c.enter(new)
        elif is_array_like(v):  # what its `__array__` calls would be recorded amid this call
            raise Unrecordable("an object that is read through __array__")
        if new is not v:
            if changed is None:
                changed = list(args)
            changed[i] = new
    if changed is None:
        return args
    return changed if type(args) is list else tuple(changed)


def admit_named(c: Capture, kwargs: dict) -> dict:
    for v in kwargs.values():
        if type(v) not in _SIMPLE:
            break
    else:
        return kwargs
    return dict(zip(kwargs, c.admit(tuple(kwargs.values())), strict=True))


def _key(c: Capture, name: str, args: tuple, kwargs: dict, ints_are_data: bool) -> tuple:
    """The key of a call; its data go to the segment's parameters.

    ints_are_data: whether integer operands are parameters too, or part of the key.
    """
    seg = c.seg
    c.ints_are_data = ints_are_data
    if name in INDEXING:
        a, index = args[0], args[1]
        mark = len(seg.ints)
        piece = slices_piece(seg.ints, a._as_value.shape, index)
        if piece is None:
            del seg.ints[mark:]
            piece = encode_index(c, a._as_value.shape, index)
            if piece is None:
                raise Unrecordable("an index for NumPy to judge")
        if len(args) == 2:
            return (name, a._as_number, piece)
        return (name, a._as_number, piece, encode(c, exact(args[2]), True))
    if name in _STORING:
        args = tuple(map(exact, args))
    data = positions.data_flags(name)
    last = len(data) - 1
    pieces: list[Any] = [name]
    for i, v in enumerate(args):
        if type(v) is Array:
            pieces.append(v._as_number)
        else:
            pieces.append(encode(c, v, data[i] if i < last else data[last]))
    if name == "power" and type(args[1]) in (int, float) and pieces[2] in (INT, FLOAT):
        exponent = args[1]
        if pieces[2] is INT:
            seg.ints.pop()
            pieces[2] = ("c", int, exponent)
        elif exponent in _EXPONENTS:
            seg.floats.pop()
            pieces[2] = ("c", float, exponent)
    if kwargs:
        named = positions.data_names(name)
        pieces += (KW, tuple(kwargs))
        pieces += [encode(c, v, k in named) for k, v in kwargs.items()]
    return tuple(pieces)


def step(
    c: Capture, name: str, args: tuple, kwargs: dict, ints_are_data: bool | None = None
) -> Node:
    """The node of a call after the present one; made, with its results' shapes, if new."""
    marks = len(c.seg.floats), len(c.seg.ints)
    if ints_are_data is None:
        ints_are_data = name not in c.options.static_ints
    key = _key(c, name, args, kwargs, ints_are_data)
    seg = c.seg
    node = seg.node.next.get(key)
    if node is None:
        with _lock:
            node = seg.node.next.get(key) or _by_rule(c, seg, key)
            if node is None:
                node = _infer(c, seg, key, ints_are_data)
                node.keep()
    if node.reason is not None and node.reason.kind == "static":
        c.rewind(marks)
        node = c.step(name, args, kwargs, False)
        if node.reason is None:
            c.options.static_ints.add(name)
    return node


class Sized(NamedTuple):
    """A recorded call whose key may follow from the sizes of arrays: with what the user wrote,
    where stand-ins are references. data: as of `_key`."""

    name: str
    args: tuple
    kwargs: dict
    data: bool


def _note(c: Capture, node: Node, name: str, args: tuple, kwargs: dict) -> None:
    """Note such a call, where the present one may be kept for many sizes."""
    seg = c.seg

    def of(x: Any) -> Any:
        if type(x) is Array and x._in_segment is seg:
            return Reference(x._as_number)
        return None if isinstance(x, (np.ndarray, Array)) else x

    data = name not in c.options.static_ints
    args, kwargs = mapped((args, kwargs), of)
    seg.sized[node] = Sized(name, args, kwargs, data)


def key_of(call: Sized, given: Sequence[Value]) -> tuple[tuple, list[float], list[int]]:
    """The key of a call, with its floats and integers. given: the values of its segment. Errors:
    Unrecordable."""
    c: Any = SimpleNamespace(array_type=Array, seg=Segment(_ROOT), ints_are_data=call.data)

    def of(x: Any) -> Any:
        return placed(c.seg, given[x.number]) if type(x) is Reference else x

    args, kwargs = mapped((call.args, call.kwargs), of)
    key = _key(c, call.name, args, kwargs, call.data)
    return key, c.seg.floats, c.seg.ints


_ROOT = Node(None, ())


def shape_seen(c: Capture, a: Array, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A shape as Python sees it, in a call that may be kept for many sizes: its numbers know what
    they are."""
    asked = c.watch.asked
    if id(a._np) in c.known and a._base is None:
        place = id(a._np)
        return shape_of(shape, lambda shapes: shapes.of_argument(place), "the shape", asked)
    seg, number = a._in_segment, a._as_number
    if seg is None:
        c.watch.sees("the shape of an array")
        return shape
    return shape_of(shape, lambda shapes: shapes.of_value(seg, number), "a shape", asked)


def length_seen(c: Capture, a: Array, shape: tuple[int, ...]) -> None:
    """Python knows how long an array is, and so many it has to have in a call like this one."""
    first = c.shape_seen(a, shape)[0]
    if type(first) is Traced:
        first.known()


def _by_rule(c: Capture, seg: Segment, key: tuple) -> Node | None:
    """The new node of a call of which it is known what it gives for other sizes. It takes a little
    of the time for what is new, as a loop may have new sizes each time and be faster in NumPy."""
    start = _clock()
    node = by_rule(seg, key, c.turn)
    seconds = _clock() - start
    c.budget.owed += seconds
    c.overhead += seconds
    return node


def _infer(c: Capture, seg: Segment, key: tuple, ints_are_data: bool) -> Node:
    start = _clock()
    node = infer(seg, key, ints_are_data, c.grads)
    seconds = min(_clock() - start, _INFERRED)  # the first of a kind may import modules
    c.budget.owed += seconds
    c.overhead += seconds
    c.options.recording += seconds
    return node


def results(c: Capture, seg: Segment, node: Node, name: str, args: tuple, kwargs: dict) -> Any:
    """The stand-ins that a recorded call gives to the user's code."""
    if node.mutates:
        _mark_written(c, seg, node)
    value = node.value
    if value is not None:
        r = recorded(c, seg, value) if not c.elements_read else c.told(seg, value)
        if type(r) is not Array:
            return r
        if value.readonly:
            r._readonly = True
        if value.source is not None:
            viewing(r, seg.values[value.source], (name, args, kwargs, None))
        return r
    if not node.values and type(node.result) is Same:
        return seg.values[node.result.index]
    first = len(seg.values)
    for value in node.values:
        r = recorded(c, seg, value)
        if value.source is not None:
            viewing(r, seg.values[value.source], (name, args, kwargs, value.pick))

    def give(x: Any) -> Any:
        if type(x) is Slot:
            return seg.values[first + node.values.index(x.value)]
        if type(x) is Same:
            return seg.values[x.index]
        if x is not None and c.traces:
            c.watch.sees(f"{label(name)} tells Python of an array")
        return x

    return mapped(node.result, give)


def rows(c: Capture, a: Array, site: Any) -> Iterator:
    """Iterate over the first axis, in a loop that `site` identifies."""
    for i in loops.marked(range(len(a)), site):
        yield a[i]


def elements(c: Capture, a: Array, why: str) -> Iterator:
    """Iterate over an array of one axis by its elements, each as it is when it is asked for."""
    found = c.noted(a)
    return _elements(c, a, c.real(a, why) if found is None else found, owner(a), why)


def _elements(c: Capture, a: Array, values: np.ndarray, root: Array, why: str) -> Iterator:
    for i in range(len(values)):
        if not c.closed and root._written_in is c.seg:  # it was written to, and that waits to run
            values = c.real(a, why)
        yield values[i]
