"""Functions of tensors that run on the host, as functions of NumPy's arrays do.

Tensors in host memory are NumPy's arrays for a function with loops, and for one of which recorded
calls are not kept: the compiled function of arrays is called. For tensors on a device, of functions
that go by elements, there is memory on the host, which is filled when C or Python needs it, and
what was changed goes back. Results are tensors where the others are.

One thread of a device takes far longer for an element than one of the host: a loop goes to the
device where its iterations are independent, and many (`reader/offload.py`). Where gradients are
recorded, where the reader refuses what is on a device, and where a function may come to tensors
otherwise than by its arguments, recording does it.
"""

from __future__ import annotations

import enum
import threading
import time
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from . import config, shim
from .capture.arrays.tensors import ordinary, traced
from .capture.arrays.transfers import give_back, lend, place_on_host, to_device
from .capture.arrays.window import bounds_of, byte_bounds
from .capture.exchange.arguments import attributes, is_record, set_attributes
from .capture.names.substitute import contents
from .loan import SIMPLE, Loan
from .reached import METACLASSES, Reached, Stays, is_plain
from .reader import offload, reading, source
from .reader.reading import MISS, Reading
from .reader.values import Unreadable
from .replay.arguments import Opened
from .shim._devices import default_device
from .shim._ndarray import overlaps_itself

_Direct = torch._C.DisableTorchFunction  # a `torch.device` around the call says nothing of copies
_Version = torch.autograd.graph.increment_version
_NO_LOOPS = "there is no loop in it"
_FEW = 1 << 20  # bytes of tensors on a device up to which the host does what is not kept
_SPARSE = 16  # times the memory that its elements need, from which a tensor is not copied
_COMPARED = 1 << 24  # bytes of arrays up to which it is looked whether a call has changed them
_BETTER = 256  # kinds of calls that are better recorded, and remembered
_TIMED = 3  # calls of a kind that are timed on the host, and on the device
_FAR = 3  # times as long as the other way: two calls tell, of which one may compile
_AGAIN = 16  # calls, and twice as many each time, after which both are timed again


class _Ways:
    """How long calls of a kind take on the host, on copies of a few tensors, and recorded on the
    device: few elements come in, but there may be many in between. there: which way is next."""

    def __init__(self) -> None:
        self.there = False
        self._calls = 0  # since both were timed
        self._until = _AGAIN
        self._best = [float("inf")] * 2
        self._left = [_TIMED] * 2

    @property
    def timed(self) -> bool:
        """Whether the next call is."""
        return any(self._left)

    def ran(self, seconds: float) -> None:
        """A call that is timed took so long."""
        way = self.there
        self._best[way] = min(self._best[way], seconds)
        self._left[way] -= 1
        for k in (0, 1):
            if self._left[k] == 1 and float("inf") > self._best[k] > _FAR * self._best[not k]:
                self._left[k] = 0
        quicker = self._best[1] < self._best[0]
        self.there = not way if self._left[not way] else way if self._left[way] else quicker

    def passed(self) -> None:
        """A call went the quicker way."""
        self._calls += 1
        if self._calls >= self._until:
            self._calls, self._until = 0, 2 * self._until
            self._best, self._left = [float("inf")] * 2, [1, 1]


class TensorLoops:
    """As `Reading`, of a function that takes tensors. on_arrays: makes the compiled function of
    arrays. in_vain: whether recorded calls on tensors are not kept."""

    def __init__(
        self, function: types.FunctionType, on_arrays: Callable[[], Any],
        in_vain: Callable[[], bool],
    ):  # fmt: skip
        self._function = function
        self._arrays = on_arrays()
        self._in_vain = in_vain
        self._away = Reading(function, away=True)
        self._code: Any = None
        self._reached = Reached(function)
        self._never = _NO_LOOPS  # why it is recorded, whatever it is called on
        self._why = ""  # why the last call was
        self._better: set[tuple] = set()
        self._ways: dict[tuple, _Ways] = {}
        self._recorded = threading.local()  # `since`: how a call that is timed began

    def call(self, args: tuple, kwargs: dict, instead: Callable | None = None) -> Any:
        """The result of a call, or MISS if it is to be recorded. instead: gives what is called in
        the stead of the function of arrays."""
        if self._function.__code__ is not self._code:
            self._look()
        self._recorded.__dict__.pop("since", None)
        in_vain = self._in_vain()
        if self._never and not in_vain:
            return MISS
        try:
            opened = Opened((*args, *kwargs.values()))
            device, held, only_tensors = self._where(opened)
        except Stays as e:
            self._why = str(e)
            return MISS
        self._why = ""
        if not is_away(device):
            return self._on_host(args, kwargs, opened, device, in_vain, instead)
        key = *kwargs, opened.form, *map(_kind, opened.leaves)
        result = MISS
        if not self._never and only_tensors and key not in self._better:
            with _Direct():
                result = self._lent(args, kwargs, device)
            if result is MISS:
                self._is_better(key)
        if result is MISS and in_vain and held <= _FEW:
            if not config.measures():
                return self._on_host(args, kwargs, opened, device, True, instead)
            return self._quicker(key, args, kwargs, opened, device, instead)
        return result

    def _quicker(
        self, key: tuple, args: tuple, kwargs: dict, opened: Opened, device: torch.device,
        instead: Callable | None,
    ) -> Any:  # fmt: skip
        """A call that is not kept: on the host, or MISS where the device is quicker."""
        ways = self._ways.get(key)
        if ways is None:
            if len(self._ways) >= _BETTER:
                self._ways.clear()
            ways = self._ways[key] = _Ways()
        timed = ways.timed
        if not timed:
            ways.passed()
        if ways.there:
            if timed:
                self._recorded.since = ways, device, _now(device)
            return MISS
        start = _now(device) if timed else 0.0
        result = self._on_host(args, kwargs, opened, device, True, instead)
        if timed:
            ways.ran(_now(device) - start)
        return result

    def recorded(self) -> None:
        """A call ended that this left to recording."""
        since = self._recorded.__dict__.pop("since", None)
        if since is not None:
            ways, device, start = since
            ways.ran(_now(device) - start)

    def _is_better(self, key: tuple) -> None:
        """Calls of such arguments are better recorded."""
        if len(self._better) >= _BETTER:
            self._better.clear()
        self._better.add(key)

    def _on_host(
        self, args: tuple, kwargs: dict, opened: Opened, device: torch.device, in_vain: bool,
        instead: Callable | None,
    ) -> Any:  # fmt: skip
        """A call on tensors in host memory, or on copies of a few: one on arrays. What is kept of
        these can be kept of tensors, which takes less time."""
        inner = self._arrays
        key: tuple = ()
        if not in_vain and not inner._reading.is_compiled:
            key = *kwargs, opened.form, *map(_kind, opened.leaves)
            if key in self._better:
                return MISS
        loan = _Loan(device, None, self._reached.functions)
        with _Direct():
            given = tuple([loan.take(x) for x in args])
            named = {k: loan.take(x) for k, x in kwargs.items()}
            loan.remember()
        try:
            result = (inner if instead is None else instead(inner))(*given, **named)
        except BaseException as e:
            loan.settle_changed()
            e.args = tuple([loan.give(x) for x in e.args])
            loan.end()
            self._reached.give(loan)
            raise
        loan.settle_changed()
        with _Direct():
            result = loan.give(result)
            loan.end()
            self._reached.give(loan)
        if key and (inner._keeper.kept or inner._reading.is_declined):
            self._is_better(key)
        return result

    def _look(self) -> None:
        """Find out whether there are loops that may be read."""
        self._code = self._function.__code__
        self._better.clear()
        self._never = ""
        try:
            if not source.has_loops(self._function):
                self._never = _NO_LOOPS
            else:
                source.tree(self._function)
        except Unreadable as e:
            self._never = str(e)

    def _where(self, opened: Opened) -> tuple[torch.device, int, bool]:
        """Where the tensors of a call are, their bytes, and whether there are no objects, arrays or
        functions beside them. Errors: Stays."""
        if traced():
            raise Stays("torch looks at each operator")
        if not opened.simple:
            raise Stays("a list or dict is there twice, or a key of a dict is an object")
        grad = torch.is_grad_enabled()
        tensors: dict[int, torch.Tensor] = {}
        only_tensors = True
        for x in self._found(opened.leaves, {}):
            if isinstance(x, torch.Tensor):
                if not ordinary(x) or x.dtype not in shim.TO_NUMPY or x.is_inference():
                    raise Stays("an argument is a tensor that is no plain memory of NumPy's")
                if x.requires_grad and grad:
                    raise Stays("a tensor asks for a gradient")
                tensors[id(x)] = x
            elif type(x) is np.ndarray or isinstance(x, types.FunctionType) or is_record(x):
                only_tensors = False
            elif not (is_plain(x) or type(x) in METACLASSES):
                raise Stays(f"an argument is a {type(x).__name__}")
        places = {x.device for x in tensors.values()} or {default_device()}
        if len(places) != 1:
            raise Stays("tensors on several devices")
        if _meet([*tensors.values()]):
            raise Stays("elements of its tensors share memory")
        device = places.pop()
        if is_away(device) and any(type(x) is np.ndarray for x in opened.leaves):
            raise Stays("arguments are arrays, and tensors of a device")
        if is_away(device) and any(map(_is_sparse, tensors.values())):
            raise Stays("elements of its tensors are far apart")
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            raise Stays("its stream is captured as a graph")
        self._reached.check()
        held = sum([t.numel() * t.element_size() for t in tensors.values()])
        return device, held, only_tensors

    def _found(self, values: Iterable[Any], known: dict[int, Any]) -> Iterator[Any]:
        """What is in arguments, and objects of the user's classes with what is in their attributes.
        Errors: Stays."""
        for x in values:
            if id(x) in known:
                continue
            known[id(x)] = x
            if isinstance(x, enum.Enum):
                self._reached.of(type(x))
            elif is_record(x):
                self._reached.of(type(x))
                yield x
                yield from self._found(attributes(x).values(), known)
            elif isinstance(x, (list, tuple, dict)):
                yield from self._found(x.values() if isinstance(x, dict) else x, known)
            else:
                if isinstance(x, types.FunctionType) or (
                    type(x) in METACLASSES and not is_plain(x)
                ):
                    self._reached.of(x)
                yield x

    def _lent(self, args: tuple, kwargs: dict, device: torch.device) -> Any:
        there = offload.on(device, lend) if offload.serves(device) else nullcontext()
        with there as memory:
            return self._lent_to(args, kwargs, device, memory)

    def _lent_to(
        self, args: tuple, kwargs: dict, device: torch.device, memory: offload.Offload | None
    ) -> Any:
        loan = _Loan(device, memory)
        given = tuple([loan.take(x) for x in args])
        named = {k: loan.take(x) for k, x in kwargs.items()}
        changed: list[Any] = []
        try:
            result = self._away.call(given, named, changed)
        except BaseException as e:
            if memory is not None:
                memory.settle()
            loan.settle([None])
            e.args = tuple([loan.give(x) for x in e.args])
            loan.end()
            raise
        if result is MISS:
            return MISS
        loan.settle(changed)
        result = loan.give(result)
        loan.end()
        return result

    @property
    def is_compiled(self) -> bool:
        """Whether some of it is."""
        return self._arrays._reading.is_compiled or self._away.is_compiled

    @property
    def is_tried(self) -> bool:
        """Whether it was looked whether it can be read."""
        return self._never != _NO_LOOPS or self._in_vain()

    def texts(self) -> list[str]:
        """The C of the regions."""
        return [*self._arrays._reading.texts(), *self._away.texts()]

    def report(self) -> list[str]:
        """What became of the function's loops, for people."""
        why = self._why or ("" if self._in_vain() else self._never)
        made = [f"recorded: {why}"] if why else []
        if self._in_vain() and not why:
            made.append("recorded calls are not kept: it runs on arrays in place of its tensors")
        for read in (self._arrays._reading, self._away):
            if read.is_tried:
                made += read.report()
        if self._away.is_compiled and not any("runs on the device" in x for x in made):
            made.append(
                "the loops run on the host, on copies of the tensors: one thread of a device takes "
                "far longer for an element"
            )
        return made


def _now(device: torch.device) -> float:
    """The time when the device has done all."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def is_away(device: torch.device) -> bool:
    """Whether the host does not reach a device's memory."""
    return device.type != "cpu"


def _kind(x: Any) -> Any:
    """What tells the arguments of calls that are better recorded from others: magnitudes count."""
    if isinstance(x, torch.Tensor):
        return x.dtype, x.dim(), x.numel().bit_length(), x.device
    return type(x), x.bit_length() if type(x) is int else None


def of_helper(f: types.FunctionType, account: Any) -> Callable[[tuple, dict], tuple | None] | None:
    """As `reading.of_helper`, of a function that code on tensors calls: it may come to none."""
    read = reading.of_helper(f, account)
    if read is None:
        return None
    reached = Reached(f)

    def call(args: tuple, kwargs: dict) -> tuple | None:
        try:
            reached.check()
        except Stays:
            return None
        return read(args, kwargs)

    return call


def _meet(tensors: list[torch.Tensor]) -> bool:
    """Whether elements of tensors share memory, of one of them too."""
    if any(overlaps_itself(t.shape, t.stride()) for t in tensors if not t.is_contiguous()):
        return True
    if len(tensors) < 2:
        return False
    spans = sorted(bounds_of(t) for t in tensors if t.numel())
    return any(a[1] > b[0] for a, b in pairwise(spans))


def _is_sparse(t: torch.Tensor) -> bool:
    """Whether a tensor lies in far more memory than its elements need."""
    low, high = bounds_of(t)
    return high - low > _SPARSE * max(t.numel() * t.element_size(), 1 << 12)


class _Loan(Loan):
    """Tensors of a device, for which NumPy's arrays stand."""

    def __init__(
        self, device: torch.device, memory: offload.Offload | None,
        before: Collection[Any] = (),
    ):  # fmt: skip
        """before: functions that are older than the call."""
        super().__init__()
        self._older = before
        self._ends = False
        self._device = device
        self._memory = memory
        self._away = is_away(device)
        self._lent: list[tuple[torch.Tensor, torch.Tensor, np.ndarray]] = []
        self._before: list[bytes | None] = []
        self._roots: dict[int, tuple[np.ndarray, torch.Tensor]] = {}

    def take(self, x: Any) -> Any:
        if not is_record(x) or id(x) in self._made or isinstance(x, enum.Enum):
            return super().take(x)
        made = self.pair(x, object.__new__(type(x)))
        set_attributes(made, {k: self.take(v) for k, v in attributes(x).items()})
        return made

    def end(self) -> None:
        self._ends = True
        super().end()
        for x, made in list(self._made.values()):
            if x is not made and is_record(x):
                was = attributes(x)
                now = {k: self.give(v) for k, v in attributes(made).items()}
                if list(now) != list(was) or any(now[k] is not was[k] for k in now):
                    set_attributes(x, now)

    def stand_in(self, x: Any) -> Any:
        if type(x) is np.ndarray:
            return x
        if not isinstance(x, torch.Tensor):
            return None
        t = place_on_host(x) if self._away else x.detach()
        if self._away and self._memory is None:
            lend(t, x)
        made = t.numpy()
        if self._memory is not None:
            self._memory.lend(made, t, x.detach())
        self._lent.append((x, t, made))
        return made

    def holds(self, x: Any) -> bool:
        return True  # a call may put arrays into it

    def settle(self, changed: list[Any]) -> None:
        """Have tensors be what arrays have become. changed: arrays that may have, or None for
        all."""
        if not changed:
            return
        spans = [byte_bounds(a) for a in changed if a is not None]
        for t, lent, made in self._lent:
            low, high = byte_bounds(made)
            if len(spans) < len(changed) or any(a < high and low < b for a, b in spans):
                if self._memory is None or not self._memory.is_on_device(made):
                    if self._memory is not None:
                        self._memory.bring(made)
                    self._has_changed(t, lent)
                else:
                    _Version([t])

    def _has_changed(self, t: torch.Tensor, lent: torch.Tensor) -> None:
        if self._away:
            give_back(t, lent)
        else:
            _Version([t])

    def remember(self) -> None:
        """Know what is in the arrays, of a call that does not tell what it changes."""
        size = sum([made.nbytes for _, _, made in self._lent])
        self._before = [made.tobytes() if size <= _COMPARED else None for *_, made in self._lent]

    def settle_changed(self) -> None:
        """As `settle`, after such a call."""
        for (t, lent, made), before in zip(self._lent, self._before, strict=True):
            if before is None or made.tobytes() != before:
                self._has_changed(t, lent)

    def give(self, x: Any) -> Any:
        if type(x) in SIMPLE:
            return x
        known = self._given.get(id(x))
        if type(known) is np.ndarray and not self._ends:
            return self._whole(known)  # the caller's own stays an array only where it was
        x = super().give(x)
        if isinstance(x, types.FunctionType) and x not in self._older:
            for cell in x.__closure__ or ():
                held = contents(cell)
                if (given := self.give(held)) is not held:
                    cell.cell_contents = given
        elif is_record(x) and id(x) not in self._passed and id(x) not in self._made:
            self._passed[id(x)] = x
            values = attributes(x)
            given = {k: self.give(v) for k, v in values.items()}
            if any(given[k] is not values[k] for k in values):
                set_attributes(x, given)
        return x

    def array(self, x: Any) -> Any:
        if isinstance(x, np.generic):
            return self._new(x)
        if type(x) is not np.ndarray:
            return None
        if x.base is None:
            return self._whole(x)
        if not x.size or not _is_forward(x):
            return self._new(x)
        first, last = byte_bounds(x)
        for t, _, made in self._lent:
            low, high = byte_bounds(made)
            if low <= first and last <= high:
                return _part(t, x, first - low)
        root = _root(x)
        if root.dtype.hasobject or not _is_forward(root):
            return self._new(x)
        return _part(self._whole(root), x, first - byte_bounds(root)[0])

    def _whole(self, root: np.ndarray) -> torch.Tensor:
        """The tensor of an array that has memory of its own: one for all results that are in it."""
        known = self._roots.get(id(root))
        if known is None:
            known = self._roots[id(root)] = root, self._new(root)
        return known[1]

    def _new(self, x: Any) -> torch.Tensor:
        """A tensor of an array's or a scalar's own."""
        if isinstance(x, np.generic) and x.dtype in shim.NUMPY_DTYPES:
            t = torch.from_numpy(np.array(x))
            return t.to(self._device) if self._away else t
        plain = type(x) is np.ndarray and x.base is None and x.dtype in shim.NUMPY_DTYPES
        if self._memory is not None and type(x) is np.ndarray:
            held = self._memory.take(x) if plain and x.flags.c_contiguous else None
            if held is not None:
                return held.view(shim.torch_dtype(x.dtype)).view(x.shape)
            self._memory.settle()
        t = shim.share_numpy(x)._t if plain else shim.as_array(x).tensor
        return t if t.device == self._device else to_device(t, self._device)


def _root(x: np.ndarray) -> np.ndarray:
    """The array whose memory it is."""
    root, base = x, x.base
    while base is not None:
        if type(base) is np.ndarray:
            root = base
        base = getattr(base, "base", None)
    return root


def _is_forward(x: np.ndarray) -> bool:
    return all(s >= 0 and s % x.itemsize == 0 for s in x.strides)


def _part(whole: torch.Tensor, x: np.ndarray, offset: int) -> torch.Tensor:
    """The part of a tensor that an array is of the one that stands for it, so many bytes on."""
    size = x.itemsize
    steps = [s // size for s in x.strides]
    dtype = shim.torch_dtype(x.dtype)
    if dtype is whole.dtype:
        return whole.detach().as_strided(x.shape, steps, whole.storage_offset() + offset // size)
    start = whole.storage_offset() * whole.element_size() + offset
    made = torch.empty(0, dtype=dtype, device=whole.device)
    return made.set_(whole.untyped_storage(), start // size, x.shape, steps)
