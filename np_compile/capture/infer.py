"""New nodes of the tree: what a call gives is found by running the shim on tensors without data."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from np_compile import disallowed, shim
from np_compile.lowering.meta import Shapes
from np_compile.shim._ndarray import overlaps_itself
from np_compile.tape.call import Call, Parameter, Reference, decode, references
from np_compile.tape.form import sizes_apart
from np_compile.tape.node import Break, Check, Node, Same, Segment, Slot, Value, picked
from np_compile.tape.tree import mapped, with_items

from .frames import user_line
from .policy.guess import GUESSED

# Rows, beside indexing, that may raise on data that a program looks at.
# What looks at its data, and raises on some.
_MAY_RAISE = frozenset(
    (
        *("at", "take", "take_along_axis", "put", "put_along_axis", "choose", "digitize"),
        *("average", "cov", "unravel_index", "ravel_multi_index", "geomspace"),
        *("histogram", "histogram_bin_edges", "histogram2d"),
        *("quantile", "percentile", "nanquantile", "nanpercentile"),
    )
)
# Parameters that are axes, extents and counts.
_INTEGERS = frozenset(
    (
        "axes", "axis", "axis1", "axis2", "dimensions", "dims", "k", "kth", "M", "minlength", "n",
        "N", "newshape", "num", "shape", "source", "destination", "s",
    )
)  # fmt: skip
_TABLE = shim.TABLE


def input_node(parent: Node, key: tuple, sig: tuple, index: int, turn: int) -> Node:
    """A new node of an input that looks like this: the value of that number, in the call of that
    turn."""
    dtype, shape, stride, flip, _device, _grad, scalar, readonly = sig
    node = Node(parent, key)
    with torch.inference_mode(False):
        t = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
    meta = shim.ndarray(t, flip, scalar)
    if readonly:
        meta._readonly = True
    node.value = Value(index, meta, index, None)
    node.values = [node.value]
    if node.step.rules:
        parent.add(node, turn)
    else:
        node.keep()
    return node


def by_rule(seg: Segment, key: tuple, turn: int) -> Node | None:
    """A new node of a call that was traced for many sizes, in the call of that turn: its rule says
    what it gives. None where there is no rule for it."""
    parent = seg.node
    step = parent.step.next.get(sizes_apart(key)[0])
    if step is None or not step.rules:
        return None
    node = Node(parent, key)
    found = node.by_rule()
    if found is None:
        return None
    rule, layouts = found
    like = rule.like
    node.floats, node.ints = like.floats, like.ints
    ints = tuple(seg.ints[parent.ints :])

    def make(pick: tuple) -> shim.ndarray:
        with _disable_current_modes():  # it may be asked for while a program is recorded
            return _meta(parent, key, ints, pick)

    node.values = [
        v.of_layout(*layout, make) for v, layout in zip(like.values, layouts, strict=True)
    ]
    values = [a._as_value for a in seg.values]
    if any(overlaps_itself(values[i].shape, values[i].strides) for i in rule.writes):
        return None
    made = iter(node.values)
    node.result = mapped(like.result, lambda x: Slot(next(made)) if type(x) is Slot else x)
    if like.value is not None:
        (node.value,) = node.values
    node.mutates, node.check = like.mutates, like.check
    node.special, node.raises = like.special, like.raises
    node.user_line, node.place = like.user_line, like.place
    node.count = parent.count + 1
    node.guesses = parent.guesses + rule.guesses
    if rule.touches:
        node.bytes += sum([values[i].nbytes for i in rule.reads])
        node.bytes += sum([v.nbytes for v in node.values])
    parent.add(node, turn)
    return node


def _meta(parent: Node, key: tuple, ints: tuple[int, ...], pick: tuple) -> shim.ndarray:
    """One of the arrays that a call gives, on tensors without data: the one after a node. ints: the
    integers that it got."""
    call = decode(key, parent.floats, parent.ints)

    def parameter(p: Parameter) -> Any:
        return ints[p.place - parent.ints] if p.kind == "index" else _without_data(p.kind)

    args, kwargs = call.evaluate([v.meta for v in parent.all_values()], parameter)
    found: shim.ndarray = picked(_on_meta(_TABLE[call.name], args, kwargs), pick)
    return _as_meta(found)


def _on_meta(row: shim.Row, args: list, kwargs: dict) -> Any:
    """What a function gives on tensors without data."""
    with (
        torch.inference_mode(False),
        torch.device("meta"),
        torch.no_grad(),
        Shapes(),
        shim.quiet(),
        shim.refusing_warnings(),
    ):
        return row.function(*args, **kwargs)


def _as_meta(r: shim.ndarray) -> shim.ndarray:
    if r._t.device.type == "meta":
        return r
    return shim.ndarray(r._t.to("meta"), r._flip, r._scalar)


def infer(seg: Segment, key: tuple, ints_are_data: bool, grads: bool) -> Node:
    """A new node: the call is run by the shim on meta tensors, which have no data. grads: whether
    arrays may have gradients; calls of a library are recorded then."""
    parent = seg.node
    node = Node(parent, key)
    call = node.call
    assert call is not None
    node.floats, node.ints = call.floats, call.ints
    assert (node.floats, node.ints) == (len(seg.floats), len(seg.ints))
    name = call.name
    node.user_line = user_line()
    node.count += 1
    if name in disallowed.rows:
        return _special(node, Break("asked", disallowed.why(call.label)))
    row = _TABLE.get(name)
    if row is None:
        return _special(node, Break("numpy", f"{call.label} is not in the shim"))
    if row.kind is shim.Kind.DATA:
        return _special(node, Break("data", f"{call.label}: its result depends on the data"))
    library = row.kind is shim.Kind.LIBRARY
    if library and not grads:
        return _special(node, Break("library", call.label))
    used = list(call.references())
    values: dict[int, Value] = {i: seg.values[i]._as_value for i in used}
    roots = {v.root for v in values.values()}
    values |= {r: seg.values[r]._as_value for r in roots}
    metas = {i: v.meta for i, v in values.items()}
    before = {r: metas[r]._t._version for r in roots}
    numbers: dict[int, Any] = {}  # what stands for floats, by their places
    scalars: list[Any] = []  # and for NumPy's other numbers
    operands = any(p.kind == "int" for p in call.parameters())
    static = Break("static", "") if ints_are_data and operands else None

    def parameter(p: Parameter) -> Any:
        if p.kind == "index":
            return seg.ints[p.place]
        made = _without_data(p.kind)
        if p.is_float:
            numbers[p.place] = made
        elif p.kind not in _WEAK:
            scalars.append(made)
        return made

    try:
        args, kwargs = call.evaluate(metas, parameter)
        if _counts_with_bools(row, args, kwargs):
            return _special(node, Break("numpy", f"{call.label}: a bool in place of an integer"))
        result = _on_meta(row, args, kwargs)
    except (RecursionError, MemoryError):
        raise
    except Exception as e:
        if static is not None:
            return _special(node, static)
        why = Break("library", call.label) if library else _why_not(call.label, e)
        return _special(node, why)
    node.mutates = tuple(r for r in sorted(roots) if metas[r]._t._version != before[r])
    if any(values[r].scalar for r in node.mutates):
        return _special(node, Break("numpy", "writes to a NumPy scalar"))
    written = [metas[i]._t for i in used if values[i].root in node.mutates]
    if any(overlaps_itself(t.shape, t.stride()) for t in written):  # its order decides what stays
        return _special(node, Break("numpy", f"{call.label}: elements that lie in one place"))
    if any(_is_cut(seg, values[i]) for i in used if values[i].root in node.mutates):
        return _special(node, Break("numpy", f"{call.label}: writes to parts of elements"))
    by_identity = {id(metas[i]): i for i in used}
    by_storage = {metas[i]._t.untyped_storage()._cdata: (values[i].root, i) for i in reversed(used)}
    slots: dict[int, Slot] = {}  # by the identity of results: one may be in several places

    def place(r: Any, pick: tuple) -> Any:
        if isinstance(r, shim.ndarray):
            if id(r) in by_identity:
                return Same(by_identity[id(r)])
            if id(r) in slots:
                return slots[id(r)]
            made, r = r, _as_meta(r)
            owner = by_storage.get(r._t.untyped_storage()._cdata)
            index = len(seg.values) + len(node.values)
            value = Value(
                index, r, index if owner is None else owner[0],
                None if owner is None else owner[1], pick,
            )  # fmt: skip
            node.values.append(value)
            return slots.setdefault(id(made), Slot(value))
        if not isinstance(r, (tuple, list)):
            return r
        items = [place(v, (*pick, i)) for i, v in enumerate(r)]
        return with_items(r, items) if isinstance(r, tuple) else items

    node.result = place(result, ())
    if isinstance(node.result, Slot):
        node.value = node.result.value
    node.raises = node.special = (
        _may_raise(call, values) or _confined([*map(metas.get, used), *scalars]) or library
    )
    if name in GUESSED:
        node.guesses += 1
        node.special = True
    if node.mutates or not node.values or any(v.source is None for v in node.values):
        node.bytes += sum(values[i].nbytes for i in call.reads)
        node.bytes += sum(v.nbytes for v in node.values)
    bounds = None
    if operands:
        kinds = [values[i].dtype for i in used] + [v.dtype for v in node.values]
        numbered = {p.kind for p in call.parameters()} - {"index", *_WEAK}
        kinds += map(np.dtype, numbered)  # of NumPy's scalars
        limits = [np.iinfo(d) for d in kinds if d.kind in "iu" and d not in (np.int64,)]
        if limits:
            bounds = max(int(k.min) for k in limits), min(int(k.max) for k in limits)
    found = [(k - parent.floats, getattr(n, "_limits", None)) for k, n in numbers.items()]
    stored = tuple((k, *limits) for k, limits in found if limits is not None)
    if bounds is not None or stored:
        node.check = Check(bounds, stored)
        node.special = True
    return node


def _is_cut(seg: Segment, v: Value) -> bool:
    """Whether elements are parts of those that own the memory, or several of them, or such as have
    a representation of their own in kernels: back ends write to whole elements."""
    while v.source is not None:
        of = seg.values[v.source]._as_value
        if v.dtype != of.dtype and _part(v.dtype) != _part(of.dtype):
            return True
        v = of
    return False


def _part(dtype: np.dtype) -> tuple[int, bool]:
    """The size of what is stored by itself of a number, and whether it is a bool or a half."""
    return dtype.itemsize // (2 if dtype.kind == "c" else 1), dtype.char in "?e"


def _confined(metas: list[Any]) -> bool:
    """Whether a call stores one of these NumPy scalars as an integer, which it may not fit."""
    found = False
    for meta in metas:
        if hasattr(meta, "_limits"):
            del meta._limits
            found = True
    return found


def _counts_with_bools(row: shim.Row, args: list, kwargs: dict) -> bool:
    """Whether a bool stands where an integer is asked for. NumPy takes it, or not, by function."""
    found = [*args, *kwargs.values()]
    if row.signature is None or not any(map(_has_bool, found)):
        return False
    try:
        given = row.signature.bind(*args, **kwargs).arguments
    except TypeError:  # a wrong call
        return False
    integers = {n for n, p in row.signature.parameters.items() if p.annotation == "int"}
    if row.name == "insert":  # of masks it takes arrays
        integers.add("obj")
    return any(_has_bool(v) for n, v in given.items() if n in _INTEGERS or n in integers)


def _has_bool(x: Any) -> bool:
    return isinstance(x, (bool, np.bool_)) or (
        isinstance(x, (tuple, list)) and any(map(_has_bool, x))
    )


def _why_not(what: str, e: Exception) -> Break:
    """Why the shim could not infer a call's results without data."""
    if isinstance(e, shim.DataDependent):
        return Break("data", f"{what}: its result depends on the data")
    if isinstance(e, shim.Warns):
        return Break("data", f"{what}: {e}")
    text = str(e).splitlines()[0] if str(e) else type(e).__name__
    if isinstance(e, RuntimeError) and not isinstance(e, shim.NotSupported):
        return Break("data", f"{what}: {text}")
    # The shim lacks it, or the call is wrong; then NumPy repeats it and raises its own error.
    return Break("numpy", f"{what}: {text}")


def _special(node: Node, reason: Break) -> Node:
    node.reason = reason
    node.special = True
    return node


def _may_raise(call: Call, values: dict[int, Value]) -> bool:
    """Whether a call indexes by integer arrays, which may be out of bounds, or assigns as many
    values as a mask may not have places for."""
    if call.index:
        kinds = {values[k].dtype.kind for k in references(call.index)}
        value = call.args[2] if len(call.args) > 2 else None
        many = type(value) is Reference and values[value.number].size != 1
        return not kinds.isdisjoint("iu") or ("b" in kinds and many)
    name = call.name.rpartition(".")[2]
    if name == "searchsorted":  # a `sorter`
        return "sorter" in call.kwargs or len(call.args) > 3
    if name == "interp":
        return "period" in call.kwargs or len(call.args) > 5
    return name in _MAY_RAISE


def _without_data(kind: str) -> Any:
    """What stands for a parameter of this kind, see `Parameter`."""
    if kind in _WEAK:
        python, dtype = _WEAK[kind]
        return shim.Weak(torch.empty((), dtype=dtype, device="meta"), python)
    dtype = shim.torch_dtype(np.dtype(kind))
    return shim.ndarray(torch.empty((), dtype=dtype, device="meta"), (), True)


_WEAK = {
    "int": (int, torch.int64), "float": (float, torch.float64),
    "complex": (complex, torch.complex128),
}  # fmt: skip
