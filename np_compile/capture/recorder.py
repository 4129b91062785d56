"""A capture: one call of a compiled function, recorded, cut at breaks, and run.

`call` is where every NumPy call of the user's code arrives. Either it becomes a step on the tape,
or the tape is cut (`cut`: the segment so far is compiled, once, and run) and the call runs at once:
eagerly through the shim on the same tensors, or in NumPy itself where the shim lacks it.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch._C._functorch import peek_interpreter_stack as _transform
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from np_compile import config, shim
from np_compile.errors import GraphBreak
from np_compile.runtime.program import Program, build, by_operators
from np_compile.tools import log

from . import devices, guess, loops, masked, positions, state
from .array import Array, _new
from .frames import inside_try, user_line
from .infer import infer, input_node, show
from .loans import Loan
from .objects import with_items
from .outside import Outside, tensor_like
from .rerun import rerun
from .state import Options
from .tape import (
    FLOAT,
    INPUT,
    INT,
    KW,
    Break,
    Node,
    Same,
    Segment,
    Slot,
    Unrecordable,
    encode,
    encode_index,
    slices_piece,
)
from .tensors import check_ordinary
from .variants import Variants, live_roots
from .weigh import largest, weigh
from .window import (
    WINDOW,
    byte_bounds,
    common_base,
    geometry,
    needs_operators,
    overlapping,
    overlaps_itself,
)

_SIMPLE = frozenset((int, float, complex, bool, str, slice, type(None), type(...), type))
_lock = state.lock
_clock = time.perf_counter
# Exponents for which a program is made, as it may have products and roots for them.
_EXPONENTS = frozenset((0.0, 0.5, 1.0, 2.0, -1.0, -2.0, 3.0, -3.0, 4.0, 1.5, -0.5, -1.5))
_LARGE = 50_000  # elements of an array that code in NumPy is compiled again for
_OWES = "it is new, and compiling has taken longer than NumPy: it runs there"
_INFERRED = 0.01  # seconds that recording a new call takes at most
_REPEATS = 3  # slow segments in a row before Python asked for a value
_static_ints: set[str] = set()  # rows seen to need their integers, `reshape` say


class Capture(Outside):
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
        self.ahead: list[Array] = []  # those of them that plain mode has touched in host memory
        self.left = 0  # how often the call left the device for plain mode, see `devices`
        self.asked = 0
        self.lent: list[Array] = []  # whose memory torch has too, see `recording.TensorDoors`
        # What `loops` and `choice` go by. Plain: calls run in NumPy; nothing waits to run then.
        self.plain = False
        self.limit = float("inf")  # elements of an array that ends it
        self.loans: list[Loan] = []  # memory that may be kept outside: plain until it is not
        self.weighs = self.immediate and config.plain == "auto"
        self.signature: tuple | None = None  # of the arguments
        self.built = 0  # programs compiled
        self.count = 0  # NumPy calls run in segments, and the bytes of arrays that they touch
        self.bytes = 0
        self.excess = 0.0  # seconds that segments took more than NumPy, by measurement
        self.unweighed = 0  # runs of segments of which it is not known yet
        self.repeats: dict[Node, list] = {}
        self._began = self._since = _clock()  # the latter: the end of the segment before
        self.budget = options.budget
        self.turn = self.budget.next_turn()
        self.overhead = 0.0  # seconds of recording and compiling what is new
        # What iterations of the loops that are marked are under way, and the calls before which
        # the others are cut, see `loops`.
        self.iterations: list[int] = []
        self.unrolled = 1  # how often the present one comes in this segment, by these
        self.loop_places: set[int] = set()
        self.begins = False  # whether the present call begins such a segment
        self.thread = threading.get_ident()
        self.lasting = False  # whether plain mode lasts to the end of the call
        self.before_loans = False  # whether it was plain mode before something was lent
        self.ints_are_data = True  # whether integer operands become parameters (see Break "static")
        self.closed = False
        self._leaving = False  # for plain mode, and from a device
        self.substitution: Any = None
        self.exchange: Any = None
        self.watch: Any = None  # replay.watch.Watch, where the call may be kept

    # -- arrays from outside ----------------------------------------------------------------

    def adopt(self, a: Any) -> Any:
        """The stand-in of an array of the caller's, by reference; NumPy ones by identity.

        Arrays that torch cannot hold (dates, strings, objects, subclasses) are returned unchanged.
        """
        found = self.known.get(id(a))
        if found is not None:
            return found[1]
        if isinstance(a, torch.Tensor):
            check_ordinary(a)
            self.take_over(a)
            r = self._from_tensor(a)
        else:
            if not tensor_like(a):
                return a
            r = Array(self)
            r._np = a
            flags = a.flags
            r._readonly = not flags.writeable
            if not flags.contiguous and flags.writeable and overlaps_itself(a.shape, a.strides):
                self._stay_plain("an argument has elements that share memory")
        self.known[id(a)] = (a, r)
        return r

    def separate(self) -> None:
        """Make arrays that overlap in memory views of one base, so that writes are seen by all."""
        roots = [r for a, r in self.known.values() if r._np is not None and r._base is None]
        for group in overlapping([r._np for r in roots]):
            members = [roots[i] for i in group]
            base = common_base([r._np for r in members])
            if base is None:  # of several dtypes
                self._stay_plain("arguments of different dtypes share memory")
                return
            owner = Array(self)
            owner._np = base
            low = byte_bounds(base)[0]
            for r in members:
                r._base = r._root = owner
                r._via = (WINDOW, (owner, *geometry(r._np, low)), {}, None)

    def _stay_plain(self, why: str) -> None:
        """The rest of the call runs in NumPy."""
        if self.lasting:
            return
        if self.seg.node.parent is not None:
            self.cut(Break("numpy", why))
        self.plain = self.lasting = True
        self.limit = float("inf")
        if self.watch is not None:
            self.watch.spoil(why)
        self._tell(Break("numpy", why))

    def take_over(self, t: torch.Tensor) -> None:
        """A tensor comes among the arrays: from now on gradients count, and its device."""
        self.grads = True
        self.immediate = self.weighs = False
        if t.device.type != "cpu" and self.device is None:
            self.cut(Break("asked", "a tensor on another device"))
            self.device = t.device
            self._root_of(t.device)

    def _root_of(self, device: torch.device | None) -> None:
        self.root = self._tree(device)
        self.seg = Segment(self.root)

    def _tree(self, key: Any) -> Node:
        """The root of a tree of recordings."""
        roots = self.options.roots
        root = roots.get(key)
        return roots.setdefault(key, Node(None, ())) if root is None else root

    def snapshot(self, a: np.ndarray) -> Any:
        """The stand-in of a real array met on the way: by value, as unseen code may change it."""
        found = self.known.get(id(a))
        if found is not None:
            return found[1]
        if not tensor_like(a):
            raise Unrecordable(f"an array of {type(a).__name__} {a.dtype}")
        r = Array(self)
        r._np = a.copy(order="K")
        r._copied = True
        return r

    def adopt_foreign(self, a: Any) -> Any:
        """The stand-in of a tensor or of another library's array (DLPack) among NumPy calls."""
        if isinstance(a, torch.Tensor) and not self.tensors:
            raise Unrecordable("a torch.Tensor, which compile(wrap_numpy(f)) would record")
        r = self.adopt(a if isinstance(a, torch.Tensor) else torch.from_dlpack(a))
        self.lent.append(r)
        return r

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
            made = [a if pick is None or v.pick == pick else Array(self) for v in values]
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
                    node = input_node(seg.node, key, sig)
        seg.node = node
        self._bind(a, seg, node.value)
        seg.values.append(a)
        seg.inputs.append(a)

    @staticmethod
    def _bind(a: Array, seg: Segment, value: Any) -> None:
        a._s = seg
        a._i = value.index
        a._v = value

    def _load(self, a: Array) -> None:
        """Give a root its tensor: NumPy's memory, or a copy of it on the device."""
        if a._sel is not None:
            raise masked.Pending
        if a._np is None:
            raise AssertionError("an array without data: it was taken for dead at a break")
        x = shim.share_numpy(a._np)
        if self.device is not None:
            a._host, a._np = a._np, None
            a._t, a._flip = x._t.to(self.device, copy=True), x._flip
            a._fast = None
            self.moved.append(a)
        else:
            a._t, a._flip = x._t, x._flip

    def call(self, name: str, args: tuple, kwargs: dict) -> Any:
        """One NumPy call: recorded, or run at once where it cannot be."""
        if threading.get_ident() != self.thread:
            self.enter_thread()
        if self.plain and self.is_plain():
            return self.plainly(name, args, kwargs)
        pending = False
        try:
            admitted = self._admit(args)
            named = self._admit_named(kwargs) if kwargs else kwargs
        except Unrecordable as e:
            return self.through_numpy(name, args, kwargs, Break("numpy", f"{show(name)}: {e}"))
        except masked.Pending:
            pending = True
        if pending:  # here, where no frame of the error holds an array
            return masked.call(self, name, args, kwargs)
        seg = self.seg
        marks = len(seg.floats), len(seg.ints)
        try:
            key = self._key(name, admitted, named, name not in _static_ints)
            node = seg.node.next.get(key)
            if node is None or node.special:
                self._rewind(marks)
                if node is None and self.weighs and not self._records(admitted):
                    self.go_plain(_OWES, max(_LARGE, 2 * _elements(admitted)))
                    return self.plainly(name, args, kwargs)
                node = self._step(name, admitted, named)
                if node.place is None:
                    loops.see(self, node)
        except Unrecordable as e:
            self._rewind(marks)
            return self.through_numpy(name, args, kwargs, Break("numpy", f"{show(name)}: {e}"))
        if node.special and (why := self._refusal(seg, node, marks)) is not None:
            self._rewind(marks)
            if why.kind == "loop":
                return self._next_iteration(node, name, args, kwargs)
            return self._run_at_once(why, name, args, kwargs)
        if node.mutates and any(seg.values[i]._copied for i in node.mutates):
            self._rewind(marks)
            why = Break("numpy", f"{show(name)} writes to an array of code that is not captured")
            return self.through_numpy(name, args, kwargs, why)
        seg.node = node
        r = self._results(seg, node, name, admitted, named)
        if node.raises and inside_try():
            self.cut(Break("library", f"{show(name)} may raise inside a try block"))
        return r

    def _refusal(self, seg: Segment, node: Node, marks: tuple[int, int]) -> Break | None:
        """Why a call is not recorded, which depends on the node or on the call's parameters."""
        if node.reason is not None and not (self.begins and node.reason.kind == "loop"):
            return node.reason
        name = node.key[0]
        if node.guesses > seg.node.guesses and not guess.allowed(self):
            return guess.reason(name)
        check = node.check
        if check is not None and not check.holds(seg.floats[marks[0] :], seg.ints[marks[1] :]):
            return Break("numpy", f"{show(name)}: a number out of bounds")
        if node.raises and self.device is not None and not self.tensors:
            # Out of bounds in a device kernel would end the process; the shim looks first.
            return Break("library", show(name))
        return None

    def _next_iteration(self, node: Node, name: str, args: tuple, kwargs: dict) -> Any:
        """A call before which the segment is cut: the next one ends where a call stands there
        again. Such segments have a tree of their own."""
        self.cut(node.reason)  # type: ignore[arg-type]
        if not self.plain:
            place = node.place[0]  # type: ignore[index]
            self.loop_places.add(place)
            self.seg = Segment(self._tree((self.device, place)))
        self.begins = True
        try:
            return self.call(name, args, kwargs)
        finally:
            self.begins = False

    def getitem(self, a: Array, key: Any) -> Any:
        """`a[key]`: as `call`, quicker for slices."""
        seg = self.seg
        if a._s is not seg:
            if a._sel is not None:
                return masked.item(self, a, key)
            if self.is_plain():
                return self.plain_item(a, key)
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
        if type(key) is Array:
            selected = masked.select(self, a, key)
            if selected is not None:
                return selected
        return self.call("ndarray.__getitem__", (a, key), {})

    def setitem(self, a: Array, key: Any, value: Any) -> None:
        """`a[key] = value`: as `call`, quicker for slices."""
        kind = type(value)
        if kind is Array and value._base is a:
            name, args, _kwargs, _pick = value._via
            if name == "ndarray.__getitem__" and args[1] is key:
                return  # the end of `a[key] += ...`: the view has been written to already
        if self.is_plain():
            self.put_plain(a, key, value)
            return
        if a._sel is not None:
            masked.put(self, a, key, value)
            return
        if kind is Array or kind is float:
            seg = self.seg
            if a._s is not seg:
                self.enter(a)
            if kind is Array and value._s is not seg:
                if value._sel is not None:
                    masked.store(self, a, key, value)
                    return
                self.enter(value)
            marks = len(seg.floats), len(seg.ints)
            piece = slices_piece(seg.ints, a._v.shape, key)
            if piece is not None:
                what = value._i if kind is Array else FLOAT
                node = seg.node.next.get(("ndarray.__setitem__", a._i, piece, what))
                if node is not None and not node.special:
                    if kind is float:
                        seg.floats.append(value)
                    seg.node = node
                    self._mark_written(seg, node)
                    return
            self._rewind(marks)
        self.call("ndarray.__setitem__", (a, key, value), {})

    def _mark_written(self, seg: Segment, node: Node) -> None:
        """Note that arrays are not yet what memory holds: a recorded call will write to them."""
        for i in node.mutates:
            root = seg.values[i]
            root._w = seg
            root._fast = None
            if self.device is not None:
                root._dirty = True

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
                for w in v:
                    if type(w) not in _SIMPLE:
                        new = self._admit(v)
                        break
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
        for v in kwargs.values():
            if type(v) not in _SIMPLE:
                break
        else:
            return kwargs
        return dict(zip(kwargs, self._admit(tuple(kwargs.values())), strict=True))

    def _key(self, name: str, args: tuple, kwargs: dict, ints_are_data: bool) -> tuple:
        """The key of a call; its data go to the segment's parameters.

        ints_are_data: whether integer operands are parameters too, or part of the key.
        """
        seg = self.seg
        self.ints_are_data = ints_are_data
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
            elif exponent in _EXPONENTS:
                seg.floats.pop()
                pieces[2] = ("c", float, exponent)
        if kwargs:
            named = positions.data_names(name)
            pieces += (KW, tuple(kwargs))
            pieces += [encode(self, v, k in named) for k, v in kwargs.items()]
        return tuple(pieces)

    def _step(
        self, name: str, args: tuple, kwargs: dict, ints_are_data: bool | None = None
    ) -> Node:
        """The node of a call after the present one; made, with its results' shapes, if new."""
        marks = len(self.seg.floats), len(self.seg.ints)
        if ints_are_data is None:
            ints_are_data = name not in _static_ints
        key = self._key(name, args, kwargs, ints_are_data)
        seg = self.seg
        node = seg.node.next.get(key)
        if node is None:
            with _lock:
                node = seg.node.next.get(key)
                if node is None:
                    node = self._infer(seg, key, seg.ints[marks[1] :], ints_are_data)
                    node.parent.next[key] = node  # type: ignore[union-attr]
        if node.reason is not None and node.reason.kind == "static":
            self._rewind(marks)
            node = self._step(name, args, kwargs, False)
            if node.reason is None:
                _static_ints.add(name)
        return node

    def _infer(self, seg: Segment, key: tuple, ints: list[int], ints_are_data: bool) -> Node:
        start = _clock()
        node = infer(seg, key, ints, ints_are_data)
        seconds = min(_clock() - start, _INFERRED)  # the first of a kind may import modules
        self.budget.owed += seconds
        self.overhead += seconds
        return node

    def _records(self, args: tuple) -> bool:
        """Whether a new call of these arguments is to be recorded."""
        budget = self.budget
        if budget.owed < budget.lent:
            return True
        touched = sum([a.nbytes for a in args if type(a) is Array])
        return budget.records(touched, _clock() - self._began - self.overhead)

    def _results(self, seg: Segment, node: Node, name: str, args: tuple, kwargs: dict) -> Any:
        """The stand-ins that a recorded call gives to the user's code."""
        if node.mutates:
            self._mark_written(seg, node)
        value = node.value
        if value is not None:
            r = _new(Array)
            r._c = self
            r._s = seg
            r._i = value.index
            r._v = value
            if value.readonly:
                r._readonly = True
            if value.source is not None:
                r._base = base = seg.values[value.source]
                r._root = base if base._root is None else base._root
                r._via = (name, args, kwargs, None)
            seg.values.append(r)
            return r
        if not node.values and type(node.result) is Same:
            return seg.values[node.result.index]
        first = len(seg.values)
        for value in node.values:
            r = Array(self)
            self._bind(r, seg, value)
            if value.source is not None:
                r._base = base = seg.values[value.source]
                r._root = base if base._root is None else base._root
                r._via = (name, args, kwargs, value.pick)
            seg.values.append(r)

        def give(x: Any) -> Any:
            if type(x) is Slot:
                return seg.values[first + node.values.index(x.value)]
            if type(x) is Same:
                return seg.values[x.index]
            if isinstance(x, tuple):
                return with_items(x, map(give, x))
            return [*map(give, x)] if isinstance(x, list) else x

        return give(node.result)

    # -- cutting and running ----------------------------------------------------------------

    def cut(self, reason: Break) -> None:
        """End the segment: compile it, if this is the first time, run it, and start a new one."""
        if _transform() is not None:  # of what torch is doing, not of what was recorded
            with temporarily_clear_interpreter_stack():
                return self.cut(reason)
        seg = self.seg
        node = seg.node
        watch = self.watch
        if watch is not None:
            watch.cut(reason, seg.inputs)
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
        live = live_roots(seg.values) if node.count else ()
        if not live and not any(a._w is seg for a in seg.inputs):
            seg.values.clear()  # nothing of it can be seen any more
            seg.inputs.clear()
            return
        start = _clock()
        built = self.built
        variants = node.programs.get(live)
        if variants is None:
            variants = node.programs.setdefault(live, Variants())
        grad = self.grads and torch.is_grad_enabled()
        key = (grad, *variants.key(seg.ints))
        program = variants.programs.get(key)
        if program is None:
            if self._leaving:  # the segment is not worth a compile
                program = by_operators(node, live, seg.inputs, seg.floats, seg.ints, self.device)
            else:
                if self.weighs and not node.guesses and not self._compiles(node, variants, reason):
                    self._run_in_numpy(seg, live)
                    if reason is loops.BEGINNING:
                        self._tell(loops.IN_NUMPY)
                    elif not self.plain:
                        self.go_plain(_OWES, largest(node))
                    return
                program = self._compile(seg, live, variants, grad)
        elif program.turn and program.turn != self.turn:
            self.budget.ran_again(program)
        if node.guesses:
            guess.check(program)
        run = program.run
        if self.tensors and needs_operators(program.written, seg.inputs):
            run = program.run_by_operators
        try:
            outputs = run(seg.inputs, seg.floats, seg.ints)
        except Exception as e:
            outputs = self._failed(seg, live, program, e)
        if watch is not None:
            watch.ran(program, [a._t for a in seg.inputs], seg.floats, seg.ints, outputs)
        if self.grads:
            for k in program.written:
                seg.inputs[k]._sig = None  # it may have a gradient history now
        sigs = program.signatures(outputs)
        for i, t, sig in zip(live, outputs, sigs, strict=True):
            root = seg.values[i]
            root._t = t
            root._sig = sig
        self.count += node.count
        self.bytes += node.bytes
        if self.weighs:
            excess = node.excess
            if excess is not None:
                self.excess += excess
            else:
                self.unweighed += 1
                if self.built == built:
                    weigh(node, seg, start - self._since, _clock() - start)
            self._since = _clock()
        seg.values.clear()  # stand-ins hold their segment: leave no cycle
        seg.inputs.clear()
        if self.listener is not None:
            self.listener("segment", node, program)
        if self.immediate and (
            reason.kind == "value" or (reason is loops.COMES_AGAIN and not self._waits)
        ):
            self._repeated(node)
        elif reason.kind == "value" and self.device is not None:
            devices.asked(self, node)

    def _failed(self, seg: Segment, live: tuple, program: Program, error: Exception) -> list:
        """A program raised on its data: NumPy says what was wrong, on copies."""
        if seg.node.guesses:
            raise guess.Wrong
        if self.grads:
            raise error
        real = [self.real(a, None) if a._t is not None else None for a in seg.values]
        for i in program.mutates:
            written = real[i]
            if written is not None:
                real[i] = written.copy(order="K")
        rerun(seg, real)
        if program.mutates:
            raise error
        warnings.warn(
            f"the {program.backend_name} back end failed on data that NumPy accepts, NumPy's "
            f"results are used: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return [shim.share_numpy(np.asarray(real[i]))._t for i in live]

    def _compiles(self, node: Node, variants: Variants, reason: Break) -> bool:
        """Whether a segment without a program is to be compiled, and not to run in NumPy."""
        body = reason is not loops.BEGINNING or self._waits
        if not body and not variants.met:
            variants.met = True
            return False
        worked = _clock() - self._began - self.overhead
        return self.budget.compiles(node.count, node.bytes, worked, body)

    @property
    def _waits(self) -> bool:
        """Whether loops go on compiled, for a call that may be kept."""
        return self.watch is not None and self.watch.waits

    def _run_in_numpy(self, seg: Segment, live: tuple[int, ...]) -> None:
        """Make the calls of a segment as they stand."""
        if self.watch is not None:
            self.watch.spoil("a segment runs in NumPy: its compile is not worth it")
        values: list[Any] = [None] * len(seg.values)
        for a in seg.inputs:
            values[a._i] = self.real(a, None)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                rerun(seg, values, live=live)
        finally:
            for i in live:
                seg.values[i]._np = r = values[i]
                if isinstance(r, np.generic):
                    seg.values[i]._t = shim.share_numpy(np.asarray(r))._t
        self.count += seg.node.count
        self.bytes += seg.node.bytes
        self._since = _clock()
        seg.values.clear()
        seg.inputs.clear()

    def _compile(self, seg: Segment, live: tuple, variants: Variants, grad: bool) -> Program:
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
                self.built += 1
                seconds = sum(program.seconds.values())
                self.budget.compiled(program, self.turn, seg.node.count, seconds)
                self.overhead += seconds
            return program

    def finish(self) -> None:
        """The call is over: stand-ins that are still held answer with their values."""
        self.loans.clear()
        self.lasting = False
        self.end_plain()
        self.budget.worked += _clock() - self._began - self.overhead
        self.closed = True
        self.plain = True
        self.immediate = self.weighs = False
        self.fullgraph = False
        self.change_callers()
        self.known.clear()
        for a in self.moved:
            if a._dirty:
                self.real(a, None)
        self.moved.clear()  # what is held here would be taken for stand-ins that have escaped
        self.lent.clear()

    def enter_thread(self) -> None:
        """Another thread than the call's own works on its arrays: go on in NumPy, to the end."""
        with _lock:
            self._stay_plain("several threads work on the arrays of one call")

    def _tell(self, reason: Break) -> None:
        """Say to whom it may concern that the tape is cut, and where."""
        if self.listener is not None:
            self.listener("break", reason, user_line())
        if config.debug:
            log.broke(reason, self.options.name, user_line(), sys.stderr)

    def _repeated(self, node: Node) -> None:
        """A segment ended because Python needs a value. A loop that does so again and again goes
        on in NumPy where that is faster."""
        seen = self.repeats.get(node)
        if seen is None:
            self.repeats[node] = [self.excess, self.unweighed, 0]
            return
        if self.weighs and self.unweighed == seen[1] and self.excess > seen[0]:
            seen[2] += 1
        seen[:2] = self.excess, self.unweighed
        if config.plain == "always":
            seen[2] += 1
        if seen[2] >= _REPEATS:
            self.go_plain("faster in NumPy: it goes on there", largest(node))

    def go_plain(self, why: str, limit: float) -> None:
        """Go on in NumPy, until the end of the loop or an array of more elements than the limit."""
        if self.seg.node.parent is not None:
            self._leaving = self.device is not None
            try:
                self.cut(Break("loop", why))
            finally:
                self._leaving = False
        if self.watch is not None:
            self.watch.spoil(why)
        self.plain = True
        if self.device is not None:
            self.left += 1
            self.immediate = True
        self.limit = float("inf") if config.plain == "always" else limit
        self._tell(Break("plain", why))

    def end_plain(self) -> None:
        """Plain mode ends, unless there is a reason for it to go on: what it has touched in host
        memory goes back to the device."""
        self.before_loans = False
        self.plain = self.lasting or bool(self.loans)
        if self.device is not None and not self.plain:
            self.immediate = False
            for a in self.ahead:
                self.send(a)
            self.ahead.clear()

    def send(self, a: Array) -> None:
        """Carry what plain mode may have written to a root to the device."""
        if a._ahead:
            a._ahead = False
            a._fast = None
            if not a._readonly:
                with torch.no_grad():
                    a._t.copy_(shim.share_numpy(a._host)._t)

    def differentiates(self) -> bool:
        """Whether arrays may have a gradient history."""
        return (
            self.grads
            and torch.is_grad_enabled()
            and (
                any(r._t is not None and r._t.requires_grad for _, r in self.known.values())
                or any(r._t.requires_grad for r in self.lent if r._t is not None)
            )
        )

    def set_flags(self, a: Array, write: Any, align: Any, uic: Any) -> None:
        """`a.setflags(...)`: NumPy does it, and says of all that follows whether it may write."""
        why = Break("numpy", "sets flags of an array")
        self.cut(why)
        if self.tensors or self.device is not None:  # which know no such flags
            shim.TABLE["ndarray.setflags"].function(self.shim_array(a, why), write, align, uic)
            if write is not None:
                a._readonly = not write
                a._sig = None
            return
        real = self.real(a, why)
        if write and a._readonly and a._base is None and id(real) not in self.known:
            # NumPy knows no owner of torch's memory. Nobody but this function has the array.
            x = shim.share_numpy(real)
            a._np = real = shim.to_numpy(shim.ndarray(x._t, x._flip))
            write = None
        real.setflags(write, align, uic)
        a._readonly = not real.flags.writeable
        a._sig = a._fast = None
        self._stay_plain("flags were set")

    # -- loops and shapes -------------------------------------------------------------------

    def rows(self, a: Array, site: Any) -> Iterator:
        """Iterate over the first axis, in a loop that `site` identifies."""
        from .loops import marked

        for i in marked(range(len(a)), site):
            yield a[i]

    def change_in_place(self, a: Array, name: str, value: Any) -> None:
        """`a.shape = value`, `a.dtype = value`: the stand-in becomes a view of what it was."""
        if self.watch is not None:
            self.watch.spoil("a shape or dtype is set in place")
        old = Array(self)
        old.__dict__.update(a.__dict__)
        if a._s is self.seg:
            self.seg.values[a._i] = old
            self.seg.inputs = [old if v is a else v for v in self.seg.inputs]
        view = self.call(name, (old, value), {})
        if type(view) is not Array:
            view = self.fresh(view)
        if view._base is None and not self.plain:
            raise AttributeError(
                "Incompatible shape for in-place modification. Use `.reshape()` to make a copy "
                "with the desired shape."
            )
        for holder in gc.get_referrers(a):  # views of it are views of what it was
            state = holder.__dict__ if type(holder) is Array else holder
            if type(state) is dict and state.get("_c") is self and state.get("_root") is a:
                state["_root"] = old
                if state["_base"] is a:
                    name, args, kwargs, pick = state["_via"]
                    args = tuple(old if v is a else v for v in args)
                    state.update(_base=old, _via=(name, args, kwargs, pick))
        state = dict(view.__dict__)
        a.__dict__.clear()
        a.__dict__.update(state)
        if a._s is self.seg:
            self.seg.values[a._i] = a

    def resize(self, a: Array, shape: tuple, refcheck: bool) -> None:
        """`a.resize(shape)`: an array that the function made lies elsewhere then."""
        real = self.memory(a, "ndarray.resize runs in NumPy")
        if not any(a is known for _, known in self.known.values()):
            real, refcheck = real.copy(), False
        real.resize(*shape, refcheck=refcheck)
        a.__dict__.clear()
        a._c = self
        a._np = real

    def change_callers(self) -> None:
        """Give the caller's arrays the shapes and dtypes that were set."""
        for array, a in self.known.values():
            if type(array) is not np.ndarray or (a.dtype, a.shape) == (array.dtype, array.shape):
                continue
            if a._root is not None:
                a._root._np = array.view()  # what other views are views of keeps its form
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # it was the user who set it
                if a.dtype != array.dtype:
                    array.dtype = a.dtype  # type: ignore[misc]  # NumPy has a setter
                if a.shape != array.shape:
                    array.shape = a.shape
            if self.device is None:
                a.__dict__.clear()
                a._c = self
                a._np = array


def _elements(args: tuple) -> int:
    """Of the largest array among arguments."""
    return max([a.size for a in args if type(a) is Array], default=0)
