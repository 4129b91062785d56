"""A call as the programs it ran: the next call like it runs them again, without Python.

A call can be kept so if the function is pure (`purity`), no value of an array reached Python while
it ran but a few elements of arguments, and all that its programs read came from its arguments. Then
its programs and their parameters follow from the kinds of the arrays, those elements, and the
values of the other arguments, and all these are compared.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from np_compile import config
from np_compile.runtime.program import sequence

from .array import Array
from .choice import Choice
from .numpy_names import numpy_function
from .outside import tensor_like
from .purity import Reach, reach
from .tape import INPUT
from .values import flat
from .window import WINDOW

MISS: Any = object()
Place = Callable[[torch.Tensor], "int | None"]

# Calls of a function that are kept, and calls kept in vain after which no more are.
_KEPT = 8
_VAIN = 64
# Watched calls that were not kept, after which loops may go on in NumPy while a call is watched.
_PATIENT = 2
# Runs of programs in a watched call, at most, and elements of arguments that Python reads.
_STEPS = 20_000
_READ = 64


class Watch:
    """What one call has run. Spoiled, once something happened that the programs do not hold.

    steps: (program, where its tensors come from, floats, integers); a tensor is number -1 - k of
    what programs have made, or the id of one in `given`. Made ones are not held: their memory is
    the user's. read: elements of arguments that Python has read: {(id of the argument, index): its
    bytes}, of small arrays all. own: numbers of tensors that programs without inputs have made, the
    same in each call. touched: those of them whose elements Python has read or written: a kept call
    has them as they were.
    patient: whether loops go on compiled while it is watched, though NumPy were faster in them: a
    kept call may not be slower. written: whether a program has written to an array.
    guesses: whether lengths may be guessed (see `guess`).
    """

    __slots__ = (
        "_count", "_numbers", "given", "guesses", "own", "patient", "read", "spoiled", "steps",
        "touched", "written",
    )  # fmt: skip

    def __init__(self, patient: bool, guesses: bool) -> None:
        self.spoiled = False
        self.patient = patient
        self.guesses = guesses
        self.steps: list[tuple] = []
        self.read: dict[tuple, Any] = {}
        self.own: set[int] = set()
        self.touched: set[int] = set()
        self.given: dict[int, torch.Tensor] = {}
        self.written = False
        self._numbers: dict[int, tuple[weakref.ref, int]] = {}
        self._count = 0

    @property
    def waits(self) -> bool:
        """Whether loops go on compiled for its sake."""
        return self.patient and not self.spoiled

    def reads(self, a: np.ndarray, key: Any) -> bool:
        """Note that Python reads the element `a[key]` of an argument. False, and spoiled, if it is
        not known to be what it was when the call began, or if there are too many."""
        key = key if type(key) is tuple else (key,)
        if self.written or len(self.read) >= _READ:
            self.spoiled = True
        elif a.size <= _READ:
            self.read[id(a), ...] = a.tobytes()
        elif all(-n <= i < n for i, n in zip(key, a.shape, strict=True)):
            self.read[id(a), key] = a[key].tobytes()
        return not self.spoiled

    def number(self, t: torch.Tensor | None) -> int | None:
        """The number of a tensor that a program has made; None for others."""
        found = self._numbers.get(id(t))
        return found[1] if found is not None and found[0]() is t else None

    def touches(self, a: Array) -> bool:
        """Note that Python reads or writes elements of an array; whether that may be."""
        number = self.number(a._t)
        if a._base is not None or number not in self.own:
            return False
        self.touched.add(number)  # type: ignore[arg-type]
        return True

    def cut(self, kind: str, inputs: list[Array]) -> None:
        """Note the end of a segment with these inputs."""
        if kind not in ("loop", "end") and not (kind == "value" and not inputs):
            self.spoiled = True

    def ran(
        self, program: Any, tensors: list[torch.Tensor], floats: list[float], ints: list[int],
        outputs: list[torch.Tensor],
    ) -> None:  # fmt: skip
        """Note a run."""
        if self.spoiled or len(self.steps) >= _STEPS:
            self.spoiled = True
            self.steps.clear()
            return
        self.written = self.written or bool(program.mutates)
        sources = []
        for t in tensors:
            number = self.number(t)
            if number is None:
                self.given[id(t)] = t
                sources.append(id(t))
            else:
                sources.append(-1 - number)
        if self.own:
            read = {-1 - s for s in sources}
            self.spoiled = self.spoiled or not read.isdisjoint(self.touched)
            if program.mutates:
                self.own -= read
        for t in outputs:
            if not tensors:
                self.own.add(self._count)
            self._numbers[id(t)] = weakref.ref(t), self._count
            self._count += 1
        self.steps.append((program, sources, tuple(floats), tuple(ints)))


class Replays:
    """The kept calls of one compiled function. Threads share it: tuples replace each other."""

    def __init__(self, function: Any):
        self.function = function
        self.reach: Reach | None = None
        self.kept: tuple[Replay, ...] = ()
        self.calls = 0
        self.vain = 0
        self.hopeless = False
        self.guesses = True

    def run(self, args: tuple) -> Any:
        """The result of a call like one that was kept, or MISS."""
        for replay in self.kept:
            if replay.fits(args):
                reach = self.reach
                if reach is None or not reach.unchanged():
                    self.kept = ()
                    self.reach = None
                    return MISS
                self.vain = 0
                choice = replay.choice
                if choice is None or choice.way == "compiled" or config.plain != "auto":
                    return replay.run(args)
                return self._choose(replay, choice, args)
        return MISS

    def _choose(self, replay: Replay, choice: Choice, args: tuple) -> Any:
        """As `replay.run`, while it is not known whether the function is faster as it stands."""
        if choice.way == "plain":  # found by its signature from now on
            self.kept = tuple(r for r in self.kept if r is not replay)
        if choice.wants_plain():
            return choice.call(self.function, args, {})
        start = time.perf_counter()
        result = replay.run(args)
        nodes = [program.node for program, *_ in replay.steps]
        calls, touched = sum(n.count for n in nodes), sum(n.bytes for n in nodes)
        choice.ran_compiled(time.perf_counter() - start, 0, calls, touched)
        return result

    def watch(self, args: tuple, kwargs: dict) -> Watch | None:
        """A watch for a call that was not kept; None where keeping it has no chance."""
        self.calls += 1
        if self.hopeless or self.calls < 2 or kwargs:
            return None
        if not all(_shareable(a) or _simple(a) for a in args):
            return None
        if self.reach is None:
            self.reach = reach(self.function)
            self.hopeless = self.reach is None
        return None if self.hopeless else Watch(self.vain < _PATIENT, self.guesses)

    def guessed_wrong(self) -> None:
        """A guess did not hold: make no more of them."""
        self.guesses = False
        self.kept = ()

    def keep(
        self, watch: Watch, args: tuple, known: dict[int, tuple[Any, Array]], result: Any,
        choice: Choice | None,
    ) -> bool:  # fmt: skip
        """Keep a call that has ended, if it can be. choice: of calls with such arguments."""
        made = None if watch.spoiled else _replay(watch, args, known, result)
        self.vain += 1
        if made is not None:
            made.choice = choice
            self.kept = (made, *self.kept[: _KEPT - 1])
        if self.vain >= _VAIN:
            self.hopeless = True
            self.kept = ()
        return made is not None


def _shareable(a: Any) -> bool:
    """Whether a is an array whose memory torch can have as it lies."""
    return tensor_like(a) and min(a.strides, default=0) >= 0


def _simple(a: Any) -> bool:
    return type(a) in (int, float, bool, str, complex, type(None)) or (
        type(a) is tuple and all(_simple(v) for v in a)
    )


def _same(a: Any, b: Any) -> bool:
    """Whether two simple values are one to any program: signs of zeros and types included."""
    if type(a) is not type(b):
        return False
    if type(a) is float:
        return a == b and (a != 0.0 or math.copysign(1.0, a) == math.copysign(1.0, b))
    if type(a) is tuple:
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) is complex:
        return _same((a.real, a.imag), (b.real, b.imag))
    return bool(a == b)


class Replay:
    """One kept call.

    arrays: (position, dtype, shape, strides) of the arrays among the arguments. elements:
    (position, index, bytes) of elements that have to be the same. values: (position, value) of the
    other arguments. steps: (program, where its tensors come from, floats, integers); a tensor comes
    from argument k, k >= 0, or is number -1-k of constants and results so far. read: the positions
    of the arrays that a program reads or writes. result: builds what the function gives from
    arguments and those of the results that are `wanted`. sequence: the steps as one call, where
    they can be one.
    """

    __slots__ = (
        "arrays", "choice", "constants", "count", "elements", "pairs", "read", "result", "sequence",
        "steps", "values", "wanted",
    )  # fmt: skip

    def __init__(
        self, args: tuple, watch: Watch, steps: list[tuple], constants: list[torch.Tensor],
        result: Callable[[tuple, list], Any], wanted: list[int],
    ):  # fmt: skip
        self.choice: Choice | None = None
        self.count = len(args)
        self.arrays = tuple(
            (k, a.dtype, a.shape, a.strides) for k, a in enumerate(args) if type(a) is np.ndarray
        )
        self.values = tuple((k, a) for k, a in enumerate(args) if type(a) is not np.ndarray)
        places = {id(args[k]): k for k, *_ in self.arrays}
        self.elements = tuple((places[a], key, v) for (a, key), v in watch.read.items())
        writes = any(program.mutates for program, *_ in steps)
        positions = [k for k, *_ in self.arrays]
        self.pairs = tuple(
            (k, m, args[k] is args[m], writes) for k in positions for m in positions if k < m
        )
        self.steps = steps
        self.constants = constants
        self.read = sorted({s for _, sources, *_ in steps for s in sources if s >= 0})
        self.result = result
        self.wanted = wanted
        self.sequence = sequence(steps, constants, wanted)

    def fits(self, args: tuple) -> bool:
        """Whether a call with these arguments does what the kept one did."""
        if len(args) != self.count:
            return False
        for k, dtype, shape, strides in self.arrays:
            a = args[k]
            if type(a) is not np.ndarray or a.shape != shape or a.strides != strides:
                return False
            if a.dtype is not dtype and a.dtype != dtype:
                return False
            flags = a.flags
            if not flags.writeable or not flags.aligned:
                return False
        for k, value in self.values:
            if not _same(args[k], value):
                return False
        for k, m, one, writes in self.pairs:
            a, b = args[k], args[m]
            if (a is b) is not one or (writes and not one and np.may_share_memory(a, b)):
                return False
        return all(args[k][key].tobytes() == value for k, key, value in self.elements)

    def run(self, args: tuple) -> Any:
        """What the function does and gives, by the kept programs. MISS where one raises before
        anything was written: the call is then made again, and that has NumPy's words."""
        if self.sequence is None:
            return self._from(0, args, dict(enumerate(self.constants)))
        made = self.sequence.run(args)
        if type(made) is not list:  # an index out of bounds stopped it
            tensors = {k: torch.from_numpy(a) for k, a in made.made.items()}
            return self._from(made.step, args, tensors)
        return self.result(args, made)

    def _from(self, start: int, args: tuple, made: dict[int, torch.Tensor]) -> Any:
        """As `run`, program by program, from a step on. made: constants and results before it."""
        tensors = {k: torch.from_numpy(args[k]) for k in self.read}
        written = any(program.mutates for program, *_ in self.steps[:start])
        for program, sources, floats, ints in self.steps[start:]:
            given = [tensors[s] if s >= 0 else made[-1 - s] for s in sources]
            try:
                outputs = program.run_tensors(given, floats, ints)
            except Exception:
                # A native program that fails has written nothing.
                if written or (program.mutates and program.backend_name != "native"):
                    raise
                return MISS
            for t in outputs:
                made[len(made)] = t
            written = written or bool(program.mutates)
        return self.result(args, [made[k].numpy() for k in self.wanted])


def _replay(
    watch: Watch, args: tuple, known: dict[int, tuple[Any, Array]], result: Any
) -> Replay | None:
    positions: dict[int, int] = {}  # of arguments that a program may have read, by their tensors
    stand_ins: dict[int, int] = {}
    for k, a in enumerate(args):
        if type(a) is not np.ndarray:
            continue
        stand_in = known[id(a)][1] if id(a) in known else None
        if stand_in is None or stand_in._base is not None or stand_in._readonly:
            return None
        stand_ins.setdefault(id(stand_in), k)
        t = stand_in._t
        if t is None:  # it was not read
            continue
        strides = tuple(s * a.itemsize for s in t.stride())
        if stand_in._flip or t.data_ptr() != a.ctypes.data or strides != a.strides:
            return None
        positions.setdefault(id(t), k)
    if any(a not in map(id, args) for a, _ in watch.read):
        return None
    # What is neither an argument nor a result is an array that the function made of constants.
    constants = [t for key, t in watch.given.items() if key not in positions]
    count = len(constants)
    sources = positions | {id(t): -1 - k for k, t in enumerate(constants)}
    if any(sources[key] < 0 for key in _written(watch)):
        return None
    steps = [
        (
            program,
            tuple([s - count if s < 0 else sources[s] for s in read]),
            floats,
            program.dynamic_ints(ints),
        )
        for program, read, floats, ints in watch.steps
    ]

    def place(t: torch.Tensor) -> int | None:
        number = watch.number(t)
        return None if number is None or number in watch.touched else count + number

    wanted: list[int] = []
    build = _builder(result, place, stand_ins, wanted)
    return None if build is None else Replay(args, watch, steps, constants, build, wanted)


def _written(watch: Watch) -> set[int]:
    """The ids of tensors in `watch.given` that programs write to."""
    places: dict[Any, list[int]] = {}
    found: set[int] = set()
    for program, read, *_ in watch.steps:
        mine = places.get(program)
        if mine is None:
            inputs = [n.value.index for n in program.node.path() if n.key[0] is INPUT]
            mine = [k for k, index in enumerate(inputs) if index in program.mutates]
            places[program] = mine
        found.update(read[k] for k in mine if read[k] >= 0)
    return found


def _builder(
    result: Any, place: Place, stand_ins: dict[int, int], wanted: list[int]
) -> Callable[[tuple, list], Any] | None:
    """A function of arguments and wanted results that builds what the function gives. place: the
    number of a result by its tensor. wanted: gets the numbers of those that are needed."""
    if type(result) is Array:
        if id(result) in stand_ins:
            position = stand_ins[id(result)]
            return lambda args, made: args[position]
        if result._sel is not None:
            full = _builder(result._sel.full(None), place, stand_ins, wanted)
            mask = _builder(result._sel.mask.array(None), place, stand_ins, wanted)
            if full is None or mask is None:
                return None
            return lambda args, made: full(args, made)[mask(args, made)]
        if result._base is not None:
            return _view_builder(result, place, stand_ins, wanted)
        if result._flip or result._readonly or result._t is None:
            return None
        number = place(result._t)
        if number is None:
            return None
        if number not in wanted:
            wanted.append(number)
        k = wanted.index(number)
        if result._is_scalar():
            return lambda args, made: made[k][()]
        return lambda args, made: made[k]
    if type(result) in (tuple, list):
        parts = [_builder(v, place, stand_ins, wanted) for v in result]
        arrays = [id(v) for v in result if type(v) is Array]
        if any(p is None for p in parts) or len(set(arrays)) != len(arrays):
            return None
        kind = type(result)
        return lambda args, made: kind([p(args, made) for p in parts])  # type: ignore[misc]
    if _simple(result):
        return lambda args, made: result
    return None


def _view_builder(
    view: Array, place: Place, stand_ins: dict[int, int], wanted: list[int]
) -> Callable[[tuple, list], Any] | None:
    """As `_builder`, of a view: NumPy makes it of its base."""
    base = _builder(view._base, place, stand_ins, wanted)
    name, args, kwargs, pick = view._via
    if base is None or name is WINDOW or any(map(_has_array, (*args[1:], *kwargs.values()))):
        return None
    function, rest = numpy_function(name), args[1:]
    if pick is not None:
        return lambda given, made: flat(function(base(given, made), *rest, **kwargs))[pick]
    return lambda given, made: function(base(given, made), *rest, **kwargs)


def _has_array(x: Any) -> bool:
    return type(x) in (Array, np.ndarray) or (type(x) in (tuple, list) and any(map(_has_array, x)))
