"""A capture: one call of a compiled function, recorded, cut at breaks, and run.

`call` is where every NumPy call of the user's code arrives. Either it becomes a step on the tape,
or the tape is cut (`cut`: the segment so far is compiled, once, and run) and the call runs at once:
eagerly through the shim on the same tensors, or in NumPy itself where the shim lacks it.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import numpy as np
import torch

from np_compile import config, shim
from np_compile.errors import GradientLost, GraphBreak, TensorArgument
from np_compile.runtime.program import Program, build
from np_compile.tools import log

from . import positions
from .array import Array, _new
from .frames import inside_try, user_line
from .numpy_names import numpy_function, row_of_function
from .tape import (
    FLOAT,
    INPUT,
    INT,
    KW,
    Break,
    Decoder,
    Node,
    Same,
    Segment,
    Slot,
    Unrecordable,
    Value,
    encode,
    encode_index,
    slices_piece,
)
from .window import WINDOW, byte_bounds, common_base, geometry, overlapping

_SIMPLE = frozenset((int, float, complex, bool, str, slice, type(None), type(...), type))
_INTEGER_POWERS = ("power", "pow")
_lock = threading.RLock()  # held while the tree grows or a program is compiled
_local = threading.local()
_TABLE = shim.TABLE
_DATA = (shim.Kind.DATA, shim.Kind.LIBRARY)
_refcount = sys.getrefcount


def current() -> Capture | None:
    """The capture that runs in this thread, if any."""
    return getattr(_local, "capture", None)


class Options:
    """What a compiled function was asked for, and what belongs to all its calls."""

    __slots__ = ("backend", "dynamic", "fullgraph", "name", "roots", "tensors")

    def __init__(self, backend: Any, fullgraph: bool, dynamic: bool | None, tensors: bool):
        self.backend = backend
        self.fullgraph = fullgraph
        self.dynamic = dynamic
        self.tensors = tensors
        self.name = ""
        self.roots: dict[Any, Node] = {}


class Capture:
    """The recording of one call.

    options: of the compiled function. device: where arrays live, None for host memory.
    listener: called with each event ("segment", node, program), ("break", reason, user line).
    """

    array_type = Array

    def __init__(self, options: Options, device: torch.device | None, listener: Any = None):
        self.options = options
        self.device = device
        self.listener = listener
        self.tensors = options.tensors
        self.fullgraph = options.fullgraph
        # Whether single elements of settled host arrays are read and written at once.
        self.immediate = device is None and not options.tensors and not options.fullgraph
        self.grads = options.tensors  # whether arrays may have gradients
        self._root_of(device)
        self.known: dict[int, tuple[Any, Array]] = {}  # id of a caller's array -> its stand-in
        self.moved: list[Array] = []  # roots whose master copy is on the device
        self.runs: dict[Any, int] = {}
        self.plain = False
        self.ints_are_data = True  # whether integer operands become parameters (see Break "static")
        self.closed = False
        self.substitution: Any = None
        self.exchange: Any = None

    # -- arrays from outside ----------------------------------------------------------------

    def adopt(self, a: Any) -> Any:
        """The stand-in of an array of the caller's, by reference; NumPy ones by identity.

        Arrays that torch cannot hold (dates, strings, objects, subclasses) are returned unchanged.
        """
        found = self.known.get(id(a))
        if found is not None:
            return found[1]
        if isinstance(a, torch.Tensor):
            check_tensor(a)
            self.take_over(a)
            r = self._from_tensor(a)
        else:
            if not _tensor_like(a):
                return a
            r = Array(self)
            r._np = a
            r._readonly = not a.flags.writeable
        self.known[id(a)] = (a, r)
        return r

    def separate(self) -> None:
        """Make arrays that overlap in memory views of one base, so that writes are seen by all."""
        roots = [r for a, r in self.known.values() if r._np is not None and r._base is None]
        for group in overlapping([r._np for r in roots]):
            members = [roots[i] for i in group]
            base = common_base([r._np for r in members])
            if base is None:  # of several dtypes: this call runs in NumPy
                self.plain = True
                self._tell(Break("numpy", "arguments of different dtypes share memory"))
                return
            owner = Array(self)
            owner._np = base
            low = byte_bounds(base)[0]
            for r in members:
                r._base = r._root = owner
                r._via = (WINDOW, (owner, *geometry(r._np, low)), {}, None)

    def _window(self, result: np.ndarray, a: Array) -> Array:
        """The stand-in of an array that a foreign function made as a view of `a`."""
        root = a if a._root is None else a._root
        whole = root._np if root._host is None else root._host
        if whole.dtype != result.dtype or not _tensor_like(result):
            self.plain = True
            return result  # type: ignore[return-value]
        r = Array(self)
        r._np = result if root._host is None else None
        r._base = r._root = root
        r._via = (WINDOW, (root, *geometry(result, byte_bounds(whole)[0])), {}, None)
        return r

    def _from_tensor(self, t: torch.Tensor, scalar: bool = False) -> Array:
        r = Array(self)
        r._t = t
        r._scalar = scalar
        return r

    def take_over(self, t: torch.Tensor) -> None:
        """A tensor comes among the arrays: from now on gradients count, and its device."""
        self.grads = True
        self.immediate = False
        if t.device.type != "cpu" and self.device is None:
            self.cut(Break("asked", "a tensor on another device"))
            self.device = t.device
            self._root_of(t.device)

    def _root_of(self, device: torch.device | None) -> None:
        roots = self.options.roots
        root = roots.get(device)
        self.root = roots.setdefault(device, Node(None, ())) if root is None else root
        self.seg = Segment(self.root)

    def snapshot(self, a: np.ndarray) -> Any:
        """The stand-in of a real array met on the way: by value, as unseen code may change it."""
        found = self.known.get(id(a))
        if found is not None:
            return found[1]
        if not _tensor_like(a):
            raise Unrecordable(f"an array of {type(a).__name__} {a.dtype}")
        r = Array(self)
        r._np = a.copy(order="K")
        return r

    def adopt_foreign(self, a: Any) -> Any:
        """The stand-in of a tensor or of another library's array (DLPack) among NumPy calls."""
        if isinstance(a, torch.Tensor) and not self.tensors:
            raise TensorArgument(
                "NumPy code got a torch.Tensor. To compile NumPy code on tensors, write "
                "compile(wrap_numpy(f)); to pass data once, convert with `t.numpy()`."
            )
        return self.adopt(a if isinstance(a, torch.Tensor) else torch.from_dlpack(a))

    def fresh(self, result: Any) -> Any:
        """Stand-ins for what a call outside the tape gave: NumPy arrays, shim arrays, nested."""
        kind = type(result)
        if kind is shim.ndarray:
            r = self._from_tensor(result._t, result._scalar)
            r._flip = result._flip
            return r
        if kind is np.ndarray:
            if self.plain or not _tensor_like(result):
                return result
            r = Array(self)
            r._np = result
            r._readonly = not result.flags.writeable
            return r
        if kind is tuple or kind is list:
            return kind(self.fresh(v) for v in result)
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return kind(*(self.fresh(v) for v in result))
        if kind is dict:
            return {k: self.fresh(v) for k, v in result.items()}
        return result

    # -- the tape ---------------------------------------------------------------------------

    def enter(self, a: Array) -> None:
        """Give a stand-in a number in the current segment."""
        seg = self.seg
        if self.plain:
            return
        if a._c is not self:
            raise RuntimeError("an array of one compiled call was used in another one")
        if a._base is not None:
            name, args, kwargs, pick = a._via
            self._admit(args)
            node = self._step(name, args, kwargs)
            values = node.values
            made = [a if pick is None or i == pick else Array(self) for i in range(len(values))]
            for stand_in, value in zip(made, values, strict=True):
                self._bind(stand_in, seg, value)
            seg.node = node
            seg.values.extend(made)
            return
        if a._t is None:
            self._load(a)
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
                    node = self._input_node(seg.node, key, sig)
        seg.node = node
        self._bind(a, seg, node.value)
        seg.values.append(a)
        seg.inputs.append(a)

    @staticmethod
    def _bind(a: Array, seg: Segment, value: Any) -> None:
        a._s = seg
        a._i = value.index
        a._v = value

    @staticmethod
    def _input_node(parent: Node, key: tuple, sig: tuple) -> Node:
        dtype, shape, stride, flip, _device, _grad, scalar, readonly = sig
        node = Node(parent, key)
        with torch.inference_mode(False):
            t = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
        meta = shim.ndarray(t, flip, scalar)
        if readonly:
            meta._readonly = True
        index = len(parent.all_values())
        node.value = Value(index, meta, index, None)
        node.values = [node.value]
        parent.next[key] = node
        return node

    def _load(self, a: Array) -> None:
        """Give a root its tensor: NumPy's memory, or a copy of it on the device."""
        if a._np is None:
            raise AssertionError("an array without data: it was taken for dead at a break")
        x = shim.share_numpy(a._np)
        if self.device is not None:
            a._host, a._np = a._np, None
            a._t, a._flip = x._t.to(self.device), x._flip
            self.moved.append(a)
        else:
            a._t, a._flip = x._t, x._flip

    def call(self, name: str, args: tuple, kwargs: dict) -> Any:
        """One NumPy call: recorded, or run at once where it cannot be."""
        if self.plain:
            return self.through_numpy(name, args, kwargs, None)
        try:
            args = self._admit(args)
            if kwargs:
                kwargs = self._admit_named(kwargs)
        except Unrecordable as e:
            return self.through_numpy(name, args, kwargs, Break("numpy", f"{_show(name)}: {e}"))
        seg = self.seg
        marks = len(seg.floats), len(seg.ints)
        try:
            key = self._key(name, args, kwargs)
            node = seg.node.next.get(key)
            if node is None or node.special:
                self._rewind(marks)
                node = self._step(name, args, kwargs)
        except Unrecordable as e:
            self._rewind(marks)
            return self.through_numpy(name, args, kwargs, Break("numpy", f"{_show(name)}: {e}"))
        if node.special and node.reason is not None:
            self._rewind(marks)
            return self._run_at_once(node.reason, name, args, kwargs)
        if node.check is not None:
            lo, hi = node.check
            if not all(lo <= i <= hi for i in seg.ints[marks[1] :]):
                self._rewind(marks)
                return self.through_numpy(
                    name, args, kwargs, Break("numpy", f"{_show(name)}: an integer out of bounds")
                )
        seg.node = node
        value = node.value
        if value is None or node.mutates or node.raises:
            r = self._results(seg, node, name, args, kwargs)
            if node.raises and inside_try():
                self.cut(Break("library", f"{_show(name)} may raise inside a try block"))
            return r
        r = _new(Array)
        r._c = self
        r._s = seg
        r._i = value.index
        r._v = value
        if value.source is not None:
            r._base = base = seg.values[value.source]
            r._root = base if base._root is None else base._root
            r._via = (name, args, kwargs, None)
        seg.values.append(r)
        return r

    def getitem(self, a: Array, key: Any) -> Any:
        """`a[key]`: as `call`, quicker for slices."""
        if not self.plain:
            seg = self.seg
            if a._s is not seg:
                self.enter(a)
            marks = len(seg.floats), len(seg.ints)
            piece = slices_piece(seg.ints, a._v.shape, key)
            if piece is not None:
                node = seg.node.next.get(("ndarray.__getitem__", a._i, piece))
                if node is not None and not node.special:
                    seg.node = node
                    value: Any = node.value  # a slice gives exactly one
                    r = _new(Array)
                    r._c = self
                    r._s = seg
                    r._i = value.index
                    r._v = value
                    if value.source is not None:
                        r._base = a
                        r._root = a if a._root is None else a._root
                        r._via = ("ndarray.__getitem__", (a, key), {}, None)
                    seg.values.append(r)
                    return r
            self._rewind(marks)
        return self.call("ndarray.__getitem__", (a, key), {})

    def setitem(self, a: Array, key: Any, value: Any) -> None:
        if type(value) is Array and value._base is a:
            name, args, _kwargs, _pick = value._via
            if name == "ndarray.__getitem__" and args[1] is key:
                return  # the end of `a[key] += ...`: the view has been written to already
        self.call("ndarray.__setitem__", (a, key, value), {})

    def _rewind(self, marks: tuple[int, int]) -> None:
        seg = self.seg
        del seg.floats[marks[0] :]
        del seg.ints[marks[1] :]

    def _admit(self, args: Any) -> Any:
        """The arguments of a call with stand-ins for all arrays, each entered into the segment.

        Before the call's own parameters are noted: a view enters by another call, with its own.
        """
        changed = None
        for i, v in enumerate(args):
            kind = type(v)
            new = v
            if kind is Array:
                if v._s is not self.seg:
                    self.enter(v)
            elif kind in _SIMPLE:
                continue
            elif kind is tuple or kind is list:
                new = self._admit(v)
            elif kind is np.ndarray:
                new = self.snapshot(v)
                self.enter(new)
            elif hasattr(v, "__dlpack__") and not isinstance(v, (np.ndarray, np.generic, type)):
                new = self.adopt_foreign(v)
                self.enter(new)
            if new is not v:
                if changed is None:
                    changed = list(args)
                changed[i] = new
        if changed is None:
            return args
        return changed if type(args) is list else tuple(changed)

    def _admit_named(self, kwargs: dict) -> dict:
        if all(type(v) in _SIMPLE for v in kwargs.values()):
            return kwargs
        return dict(zip(kwargs, self._admit(tuple(kwargs.values())), strict=True))

    def _key(self, name: str, args: tuple, kwargs: dict) -> tuple:
        seg = self.seg
        if name == "ndarray.__getitem__" or name == "ndarray.__setitem__":
            a, index = args[0], args[1]
            mark = len(seg.ints)
            piece = slices_piece(seg.ints, a._v.shape, index)
            if piece is None:
                del seg.ints[mark:]
                piece = encode_index(self, a.shape, index)
                if piece is None:
                    raise Unrecordable("an index for NumPy to judge")
            if len(args) == 2:
                return (name, a._i, piece)
            return (name, a._i, piece, encode(self, args[2], True))
        data = positions.data_flags(name)
        last = len(data) - 1
        pieces: list[Any] = [name]
        for i, v in enumerate(args):
            if type(v) is Array:
                pieces.append(v._i)
            else:
                pieces.append(encode(self, v, data[i] if i < last else data[last]))
        if name == "power" and type(args[1]) in (int, float) and pieces[2] in (INT, FLOAT):
            exponent = args[1]
            if pieces[2] is INT:
                seg.ints.pop()
                pieces[2] = ("c", int, exponent)
            elif exponent in (0.0, 0.5, 1.0, 2.0, -1.0):
                seg.floats.pop()
                pieces[2] = ("c", float, exponent)
        if kwargs:
            named = positions.data_names(name)
            pieces += (KW, tuple(kwargs))
            pieces += [encode(self, v, k in named) for k, v in kwargs.items()]
        return tuple(pieces)

    def _step(self, name: str, args: tuple, kwargs: dict) -> Node:
        """The node of a call after the present one; made, with its results' shapes, if new."""
        marks = len(self.seg.floats), len(self.seg.ints)
        key = self._key(name, args, kwargs)
        seg = self.seg
        node = seg.node.next.get(key)
        if node is None:
            with _lock:
                node = seg.node.next.get(key)
                if node is None:
                    node = self._infer(seg, key, seg.ints[marks[1] :])
                    node.parent.next[key] = node  # type: ignore[union-attr]
        if node.special and node.reason is not None and node.reason.kind == "static":
            self._rewind(marks)
            self.ints_are_data = False
            try:
                return self._step(name, args, kwargs)
            finally:
                self.ints_are_data = True
        return node

    def _infer(self, seg: Segment, key: tuple, ints: list[int]) -> Node:
        """A new node: the call is run by the shim on meta tensors, which have no data."""
        name = key[0]
        parent = seg.node
        node = Node(parent, key)
        node.user_line = user_line()
        node.count += 1
        row = _TABLE.get(name)
        if row is None:
            return _special(node, Break("numpy", f"{_show(name)} is not in the shim"))
        if row.kind in _DATA:
            kind = "library" if row.kind is shim.Kind.LIBRARY else "data"
            why = "" if kind == "library" else ": its result depends on the data"
            return _special(node, Break(kind, _show(name) + why))
        values = parent.all_values()
        metas = [v.meta for v in values]
        roots = {v.root for v in values}
        before = {r: metas[r]._t._version for r in roots}
        decoder = Decoder(
            metas, repeat(_weak_float()), iter(ints), _scalar_meta, _complex_meta, _weak_int
        )
        static = Break("static", "") if self.ints_are_data and _has_int(key) else None
        try:
            args, kwargs = decoder.call(key)
            with (
                torch.inference_mode(False),
                torch.device("meta"),
                torch.no_grad(),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                result = row.function(*args, **kwargs)
        except (RecursionError, MemoryError):
            raise
        except Exception as e:
            if static is not None:
                return _special(node, static)
            return _special(node, self._why_not(name, e))
        node.mutates = tuple(r for r in sorted(roots) if metas[r]._t._version != before[r])
        if any(values[r].scalar for r in node.mutates):
            return _special(node, Break("numpy", "writes to a NumPy scalar"))
        used = list(_value_numbers(key))
        by_identity = {id(metas[i]): i for i in used}
        by_storage = {
            metas[i]._t.untyped_storage()._cdata: (values[i].root, i) for i in reversed(used)
        }

        def place(r: Any, pick: tuple) -> Any:
            if isinstance(r, shim.ndarray):
                if id(r) in by_identity:
                    return Same(by_identity[id(r)])
                if r._t.device.type != "meta":
                    r = shim.ndarray(r._t.to("meta"), r._flip, r._scalar)
                owner = by_storage.get(r._t.untyped_storage()._cdata)
                index = len(values) + len(node.values)
                value = Value(
                    index, r, index if owner is None else owner[0],
                    None if owner is None else owner[1],
                )  # fmt: skip
                node.values.append(value)
                return Slot(value, pick)
            if isinstance(r, tuple) and hasattr(r, "_fields"):
                return type(r)(*(place(v, (*pick, i)) for i, v in enumerate(r)))
            if isinstance(r, (tuple, list)):
                return type(r)(place(v, (*pick, i)) for i, v in enumerate(r))
            return r

        node.result = place(result, ())
        if isinstance(node.result, Slot):
            node.value = node.result.value
        if name in _INTEGER_POWERS and node.value is not None and node.value.dtype.kind == "i":
            exponent = key[2]
            if type(exponent) is int and values[exponent].dtype.kind == "i":
                why = f"{_show(name)}: raises for a negative exponent"
                return _special(node, Break("data", why))
        node.raises = node.special = _may_raise(key, values)
        node.elements += sum(values[i].meta.size for i in used if values[i].root == i)
        node.elements += sum(v.meta.size for v in node.values if v.source is None)
        if _has_int(key):
            kinds = [values[i].dtype for i in used] + [v.dtype for v in node.values]
            limits = [np.iinfo(d) for d in kinds if d.kind in "iu" and d not in (np.int64,)]
            if limits:
                node.check = max(int(k.min) for k in limits), min(int(k.max) for k in limits)
                node.special = True
        return node

    @staticmethod
    def _why_not(name: str, e: Exception) -> Break:
        """Why the shim could not infer a call's results without data."""
        what = _show(name)
        if isinstance(e, shim.DataDependent):
            return Break("data", f"{what}: its result depends on the data")
        text = str(e).splitlines()[0] if str(e) else type(e).__name__
        if isinstance(e, RuntimeError) and not isinstance(e, shim.NotSupported):
            return Break("data", f"{what}: {text}")
        # The shim lacks it, or the call is wrong; then NumPy repeats it and raises its own error.
        return Break("numpy", f"{what}: {text}")

    def _results(self, seg: Segment, node: Node, name: str, args: tuple, kwargs: dict) -> Any:
        """The stand-ins that a recorded call gives to the user's code."""
        for k in node.mutates:
            root = seg.values[k]
            root._w = seg
            root._fast = None
            if self.device is not None:
                root._dirty = True
        value = node.value
        if value is not None:
            r = _new(Array)
            r._c = self
            r._s = seg
            r._i = value.index
            r._v = value
            if value.source is not None:
                r._base = base = seg.values[value.source]
                r._root = base if base._root is None else base._root
                r._via = (name, args, kwargs, None)
            seg.values.append(r)
            return r
        if not node.values and type(node.result) is Same:
            return seg.values[node.result.index]
        first = len(seg.values)
        for i, value in enumerate(node.values):
            r = Array(self)
            self._bind(r, seg, value)
            if value.source is not None:
                r._base = base = seg.values[value.source]
                r._root = base if base._root is None else base._root
                r._via = (name, args, kwargs, i)
            seg.values.append(r)

        def give(x: Any) -> Any:
            if type(x) is Slot:
                return seg.values[first + node.values.index(x.value)]
            if type(x) is Same:
                return seg.values[x.index]
            if isinstance(x, tuple) and hasattr(x, "_fields"):
                return type(x)(*map(give, x))
            if isinstance(x, (tuple, list)):
                return type(x)(map(give, x))
            return x

        return give(node.result)

    # -- cutting and running ----------------------------------------------------------------

    def cut(self, reason: Break) -> None:
        """End the segment: compile it, if this is the first time, run it, and start a new one."""
        seg = self.seg
        node = seg.node
        if reason.kind not in ("end", "loop", "library"):
            self._tell(reason)
        if self.fullgraph and reason.kind in ("value", "data", "numpy", "foreign", "asked"):
            where = user_line()
            raise GraphBreak(
                f"fullgraph=True, but {reason.text}\n  at {where}\n"
                "  Remedy: compute it with NumPy calls that need no value in Python, or drop "
                "fullgraph=True: the function then runs in several compiled segments."
            )
        self.seg = Segment(self.root)
        live = _live_roots(seg.values) if node.count else ()
        if not live and not any(a._w is seg for a in seg.inputs):
            seg.values.clear()  # nothing of it can be seen any more
            seg.inputs.clear()
            return
        variants = node.programs.get(live)
        if variants is None:
            variants = node.programs.setdefault(live, _Variants())
        grad = self.grads and torch.is_grad_enabled()
        key = (grad, *variants.key(seg.ints))
        program = variants.programs.get(key)
        if program is None:
            program = self._compile(seg, live, variants, grad)
        try:
            outputs = program.run(seg.inputs, seg.floats, seg.ints)
        except Exception as e:
            outputs = self._failed(seg, live, program, e)
        sigs = program.signatures(outputs)
        for i, t, sig in zip(live, outputs, sigs, strict=True):
            root = seg.values[i]
            root._t = t
            root._sig = sig
        seg.values.clear()  # stand-ins hold their segment: leave no cycle
        seg.inputs.clear()
        if self.listener is not None:
            self.listener("segment", node, program)
        if reason.kind == "value":
            self.weigh(node, node)

    def _failed(self, seg: Segment, live: tuple, program: Program, error: Exception) -> list:
        """A program raised on its data. Nothing is written yet: NumPy says what was wrong."""
        if program.mutates or self.grads:
            raise error
        real = [self.real(a, None) if a._t is not None else None for a in seg.values]
        decoder = Decoder(
            real, iter(seg.floats), iter(seg.ints), lambda v, char: np.dtype(char).type(v), complex
        )
        for node in seg.node.path():
            if node.key[0] is INPUT:
                continue
            args, kwargs = decoder.call(node.key)
            result = numpy_function(node.key[0])(*args, **kwargs)
            for value, r in zip(node.values, _flat(result), strict=True):
                real[value.index] = r
        warnings.warn(
            f"the {program.backend_name} back end failed on data that NumPy accepts, NumPy's "
            f"results are used: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return [shim.share_numpy(np.asarray(real[i]))._t for i in live]

    def _compile(self, seg: Segment, live: tuple, variants: _Variants, grad: bool) -> Program:
        with _lock:
            dynamic = variants.widen(seg.node, seg.ints, self.options.dynamic)
            key = (grad, *variants.key(seg.ints))
            program = variants.programs.get(key)
            if program is None:
                program = build(
                    seg.node, live, seg.inputs, seg.floats, seg.ints, dynamic,
                    self.options, self.device, grad,
                )  # fmt: skip
                variants.programs[key] = program
            return program

    def finish(self) -> None:
        """The call is over: stand-ins that are still held answer with their values."""
        self.closed = True
        self.plain = True
        self.immediate = False
        self.fullgraph = False
        self.known.clear()
        for a in self.moved:
            if a._dirty:
                self.real(a, None)

    def has_data(self, a: Array) -> bool:
        """Whether the data of a stand-in are there, or will be at the next cut."""
        root = a if a._root is None else a._root
        return not (root._t is None and root._np is None and root._host is None) or (
            root._s is self.seg
        )

    def outside(self, a: Array) -> Any:
        """What the caller gets for a stand-in: a NumPy array or scalar, or a tensor."""
        return self.tensor(a, None) if self.tensors else self.real(a, None)

    def _tell(self, reason: Break) -> None:
        """Say to whom it may concern that the tape is cut, and where."""
        if self.listener is not None:
            self.listener("break", reason, user_line())
        if config.debug:
            log.broke(reason, self.options.name, user_line(), sys.stderr)

    def weigh(self, node: Node, site: Any) -> None:
        """Go on in plain NumPy where a loop's segments are too small to be worth their hand-over.

        It is left again at the end of the loop, or at the first large array.
        """
        work = node.count + node.elements / 2000
        if work >= config.plain_work or not self.immediate:
            return
        runs = self.runs[node, site] = self.runs.get((node, site), 0) + 1
        if runs < config.plain_runs:
            return
        self.plain = True
        self._tell(Break("plain", "segments smaller than their hand-over: it goes on in NumPy"))

    # -- values for Python ------------------------------------------------------------------

    def settled(self, a: Array) -> np.ndarray | None:
        """The NumPy array of a stand-in whose data are there and not about to change, or None."""
        if not self.immediate:
            return None
        root = a if a._root is None else a._root
        if root._w is self.seg or (root._t is None and root._np is None) or a._is_scalar():
            return None
        r = self.real(a, None)
        if root is a:
            a._fast = r
        return r

    def real(self, a: Array, why: Any) -> Any:
        """The NumPy array or scalar of a stand-in; cuts the tape if its data are not there."""
        root = a if a._root is None else a._root
        if root._w is self.seg or (root._t is None and root._np is None and root._host is None):
            self.cut(why if type(why) is Break else Break("value", str(why)))
        if a._np is not None:
            return a._np
        if a._base is not None:
            name, args, kwargs, pick = a._via
            base = self.real(a._base, why)
            r = numpy_function(name)(base, *self._reals(args[1:]), **self._reals(kwargs))
            if pick is not None:
                r = _flat(r)[pick]
        elif a._host is not None:
            if a._dirty:
                a._host[...] = shim.to_numpy(shim.ndarray(a._t, a._flip))
                a._dirty = False
            return a._host
        else:
            t = a._t
            if t.requires_grad and type(why) is Break and why.kind in ("numpy", "foreign"):
                raise GradientLost(
                    f"{why.text} runs in NumPy, where the gradient of its argument would be "
                    f"lost\n  at {user_line()}\n  Remedy: call it under torch.no_grad(), or "
                    "replace it by NumPy calls that the shim has."
                )
            r = shim.to_numpy(shim.ndarray(t, a._flip, a._is_scalar()))
            if a._readonly:
                r.flags.writeable = False
        if root._t is None or root._t.device.type == "cpu":
            a._np = r
        elif a._base is None and isinstance(r, np.ndarray):
            a._host = r
            self.moved.append(a)
        return r

    @staticmethod
    def _root(a: Array) -> Array:
        return a if a._root is None else a._root

    def memory(self, a: Array, why: str) -> Any:
        """As `real`, for code that may write to it: nothing recorded still waits to read it."""
        if self._root(a)._s is self.seg:
            self.cut(Break("value", why))
        return self.real(a, why)

    def tensor(self, a: Array, why: Any) -> torch.Tensor:
        """The torch tensor of a stand-in, on its device, with its gradient history; shared."""
        return self.shim_array(a, why).tensor

    def shim_array(self, a: Array, why: Any) -> shim.ndarray:
        """The shim array on the memory of a stand-in."""
        root = a if a._root is None else a._root
        if root._w is self.seg or (root._t is None and root._np is None and root._host is None):
            self.cut(why if type(why) is Break else Break("value", str(why)))
        if a._base is not None:
            name, args, kwargs, pick = a._via
            args = (self.shim_array(a._base, why), *args[1:])
            r = _TABLE[name].function(*args, **kwargs)
            return r if pick is None else _flat(r)[pick]
        if a._t is None:
            self._load(a)
        x = shim.ndarray(a._t, a._flip, a._is_scalar())
        if a._readonly:
            x._readonly = True
        return x

    def meta(self, a: Array) -> shim.ndarray:
        """The shim array without data that has the layout of a stand-in."""
        if a._v is None:
            self.enter(a)
        return a._v.meta

    def _reals(self, x: Any, why: Any = None) -> Any:
        """Arguments with their stand-ins replaced by NumPy arrays, nested structures included."""
        kind = type(x)
        if kind is Array:
            return self.real(x, why)
        if kind is tuple or kind is list:
            return kind([self._reals(v, why) for v in x])
        if kind is dict:
            return {k: self._reals(v, why) for k, v in x.items()}
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return kind(*(self._reals(v, why) for v in x))
        return x

    def _shims(self, x: Any, why: Any) -> Any:
        kind = type(x)
        if kind is Array:
            return self.shim_array(x, why)
        if kind is tuple or kind is list:
            return kind([self._shims(v, why) for v in x])
        if kind is dict:
            return {k: self._shims(v, why) for k, v in x.items()}
        return x

    # -- calls that are not recorded --------------------------------------------------------

    def _run_at_once(self, why: Break, name: str, args: tuple, kwargs: dict) -> Any:
        if why.kind == "library" or (why.kind == "data" and (self.grads or self.device)):
            return self.through_shim(name, args, kwargs, why)
        return self.through_numpy(name, args, kwargs, why)

    def through_shim(self, name: str, args: tuple, kwargs: dict, why: Break) -> Any:
        """Run a call eagerly on the tensors: device and gradient survive."""
        self.cut(why)
        args, kwargs = self._shims((args, kwargs), why)
        try:
            if self.device is not None:
                with self.device:
                    result = _TABLE[name].function(*args, **kwargs)
            else:
                result = _TABLE[name].function(*args, **kwargs)
        except shim.NotSupported:
            return self.through_numpy(name, args, kwargs, why)
        return self.fresh(result)

    def through_numpy(self, name: str, args: tuple, kwargs: dict, why: Break | None) -> Any:
        """Run a call in NumPy on the same memory."""
        return self.foreign(numpy_function(name), args, kwargs, why)

    def foreign(self, function: Callable, args: Any, kwargs: Any, why: Break | None) -> Any:
        """Call a function that is not recorded, on NumPy arrays; its arrays become stand-ins."""
        stand_ins = list(_arrays((args, kwargs)))
        if why is None and any(self._root(a)._s is self.seg for a in stand_ins):
            why = Break("value", f"{getattr(function, '__name__', 'a function')} reads an array")
        if why is not None:
            self.cut(why)
        real_args, real_kwargs = self._reals((tuple(args), dict(kwargs)), why)
        _local.capture = None
        try:
            result = function(*real_args, **real_kwargs)
        finally:
            _local.capture = self
        if self.closed:
            return result
        if self.plain and any(
            type(v) is np.ndarray and v.size > 2000 * config.plain_work for v in real_args
        ):
            self.plain = False
        by_id = {id(a._np if a._host is None else a._host): a for a in stand_ins}
        if stand_ins and self.moved:
            self._reload()
        if isinstance(result, np.ndarray):
            if id(result) in by_id:
                return by_id[id(result)]
            for a in stand_ins:
                whole = a._np if a._host is None else a._host
                if isinstance(whole, np.ndarray) and np.may_share_memory(whole, result):
                    return self._window(result, a)
        return self.fresh(result)

    def _reload(self) -> None:
        """After foreign code ran on host copies: carry its changes to the device."""
        for a in self.moved:
            if a._host is not None and a._t is not None and not a._dirty and not a._readonly:
                t = shim.share_numpy(a._host)._t
                if not torch.equal(t, a._t.detach().to("cpu")):
                    with torch.no_grad():
                        a._t.copy_(t)

    def real_ufunc(self, ufunc: Any, method: str, inputs: tuple, kwargs: dict) -> Any:
        """A real NumPy ufunc met by a stand-in, in code that the capture did not reach."""
        name = row_of_function(ufunc)
        out = kwargs.get("out")
        if name is None or (
            out and any(isinstance(o, np.ndarray) and type(o) is not Array for o in out)
        ):
            label = getattr(ufunc, "__name__", str(ufunc))
            call = ufunc if method == "__call__" else getattr(ufunc, method)
            return self.foreign(call, inputs, kwargs, Break("foreign", f"calls {label}"))
        if method != "__call__":
            name = f"{name}.{method}"
        if out and len(out) == 1:
            kwargs = {**kwargs, "out": out[0]}
        return self.call(name, inputs, kwargs)

    def real_function(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        """A real NumPy function met by a stand-in, in code that the capture did not reach."""
        name = row_of_function(function)
        if name is None:
            label = f"{function.__module__}.{function.__name__}"
            why = Break("numpy", f"{label} is not in the shim")
            return self.foreign(getattr(function, "_implementation", function), args, kwargs, why)
        return self.call(name, tuple(args), dict(kwargs))

    def rows(self, a: Array, site: Any) -> Iterator:
        """Iterate over the first axis, in a loop that `site` identifies."""
        from .loops import marked

        for i in marked(range(len(a)), site):
            yield a[i]

    def reshape_in_place(self, a: Array, shape: Any) -> None:
        """`a.shape = shape`: the stand-in becomes a view of what it was."""
        old = Array(self)
        old.__dict__.update(a.__dict__)
        if a._s is self.seg:
            self.seg.values[a._i] = old
        view = self.call("reshape", (old, shape), {})
        if view._base is None:
            raise AttributeError(
                "Incompatible shape for in-place modification. Use `.reshape()` to make a copy "
                "with the desired shape."
            )
        state = dict(view.__dict__)
        a.__dict__.clear()
        a.__dict__.update(state)
        if a._s is self.seg:
            self.seg.values[a._i] = a


def check_tensor(t: torch.Tensor) -> None:
    """TensorArgument for a tensor that no NumPy array can stand for."""
    if t.dtype not in shim.TO_NUMPY:
        raise TensorArgument(
            f"a tensor of {t.dtype}: NumPy has no such dtype\n"
            "  Remedy: convert it first, `x.float()`, and the result back."
        )


class _Variants:
    """The programs of one segment with one set of live results: by integers, while they are few.

    An integer parameter is a constant of the program until a second value is seen for it; from
    then on it is data, and one program serves all its values.
    """

    __slots__ = ("dynamic", "last", "programs")

    def __init__(self) -> None:
        self.dynamic: frozenset[int] = frozenset()
        self.last: list[int] | None = None
        self.programs: dict[tuple, Program] = {}

    def key(self, ints: list[int]) -> tuple:
        if not self.dynamic:
            return tuple(ints)
        dynamic = self.dynamic
        return tuple([None if k in dynamic else v for k, v in enumerate(ints)])

    def widen(self, node: Node, ints: list[int], dynamic: bool | None) -> frozenset[int]:
        if dynamic is True:
            self.dynamic = frozenset(range(len(ints))) - _fixed_ints(node)
        elif self.last is not None and dynamic is None:
            changed = {k for k, (x, y) in enumerate(zip(self.last, ints, strict=True)) if x != y}
            self.dynamic |= changed - _fixed_ints(node)
        self.last = list(ints)
        return self.dynamic


def _fixed_ints(node: Node) -> frozenset[int]:
    """Numbers of the integer parameters that stay constants: slices beside index arrays."""
    fixed: set[int] = set()
    at = 0

    def count(p: Any) -> int:
        if p is INT:
            return 1
        if type(p) is tuple and p and p[0] == "n":
            return int(p[1] not in "efd")
        return sum(map(count, p)) if type(p) is tuple and p and p[0] != "c" else 0

    for step in node.calls():
        key = step.key
        for p in key[1:]:
            n = count(p)
            if type(p) is tuple and p and p[0] == "x" and any(type(q) is int for q in p):
                fixed.update(range(at, at + n))
            at += n
    return frozenset(fixed)


def _live_roots(values: list[Any]) -> tuple[int, ...]:
    """Numbers of the arrays made in a segment whose memory Python can still reach.

    Views are met before what they are views of; a view that nobody holds lets go of its base.
    """
    live = []
    for i in range(len(values) - 1, -1, -1):
        if _refcount(values[i]) > _DEAD:
            a = values[i]
            if a._base is None and a._t is None and a._np is None:
                live.append(i)
        elif (a := values[i])._base is not None:
            a._base = a._root = a._via = None
    return tuple(live[::-1])


def _tensor_like(a: Any) -> bool:
    """Whether torch can share the memory of a NumPy array."""
    if type(a) is not np.ndarray or a.dtype not in shim.NUMPY_DTYPES:
        return False
    flags = a.flags
    if flags.c_contiguous and flags.aligned:
        return True
    width = a.itemsize
    return flags.aligned and all(s % width == 0 for s in a.strides)


_probe = [object()]
_DEAD = _refcount(_probe[0])  # what a stand-in counts that only its segment holds


def _arrays(x: Any) -> Iterator[Array]:
    if type(x) is Array:
        yield x
    elif isinstance(x, (tuple, list)):
        for v in x:
            yield from _arrays(v)
    elif isinstance(x, dict):
        for v in x.values():
            yield from _arrays(v)


def _flat(r: Any) -> list:
    if isinstance(r, (tuple, list)):
        return [x for v in r for x in _flat(v)]
    return [r]


def _value_numbers(key: tuple) -> Iterator[int]:
    """Numbers of the values that a key mentions."""
    tag = key[0]
    if tag in ("c", "n") and len(key) > 1:
        return
    for p in key[1:]:
        if type(p) is int:
            yield p
        elif type(p) is tuple and p and p[0] is not INT:
            yield from _value_numbers(p)


def _special(node: Node, reason: Break) -> Node:
    node.reason = reason
    node.special = True
    return node


def _show(name: str) -> str:
    return name if name.startswith("ndarray.") else f"np.{name}"


_GATHERS = ("take", "take_along_axis", "put", "put_along_axis", "choose")


def _may_raise(key: tuple, values: list[Value]) -> bool:
    """Whether a call indexes by integer arrays, which may be out of bounds."""
    if key[0] in ("ndarray.__getitem__", "ndarray.__setitem__"):
        return any(type(p) is int and values[p].dtype.kind in "iu" for p in key[2][1:])
    return key[0].rpartition(".")[2] in _GATHERS


def _has_int(key: tuple) -> bool:
    """Whether a call has an integer operand among its parameters (indices do not count)."""
    return any(
        p is INT or (type(p) is tuple and p and p[0] not in ("x", "c", "n") and _has_int(p))
        for p in key[1:]
    )


def _weak_int(_: int) -> shim.Weak:
    return shim.Weak(torch.empty((), dtype=torch.int64, device="meta"), int)


def _weak_float() -> shim.Weak:
    return shim.Weak(torch.empty((), dtype=torch.float64, device="meta"), float)


def _scalar_meta(_: Any, char: str) -> shim.ndarray:
    dtype = shim.torch_dtype(np.dtype(char))
    return shim.ndarray(torch.empty((), dtype=dtype, device="meta"), (), True)


def _complex_meta(_r: Any, _i: Any) -> shim.Weak:
    return shim.Weak(torch.empty((), dtype=torch.complex128, device="meta"), complex)
