"""A call as the programs it ran: the next call like it runs them again, without Python.

A call can be kept so if the function is pure (`purity`), no value of an array reached Python while
it ran but a few elements of arguments, and all that its programs read came from its arguments. Then
its programs and their parameters follow from the kinds of the arrays, those elements, and the
values of the other arguments, and all these are compared.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from np_compile import config
from np_compile.capture.array import Array
from np_compile.capture.choice import SAMPLED, SELDOM, Choice
from np_compile.capture.numpy_names import numpy_function
from np_compile.capture.outside import tensor_like
from np_compile.capture.substitute import MISSING
from np_compile.capture.tape import picked
from np_compile.capture.window import WINDOW
from np_compile.runtime.program import sequence

from .calls import (
    MISS,
    Entry,
    Give,
    Result,
    Table,
    Way,
    alike_checks,
    available,
    exact_checks,
    give,
    reach_checks,
)
from .proof import Reach, reach

Place = Callable[[torch.Tensor], "int | None"]

# Calls of a function that are kept, and calls kept in vain after which no more are.
KEPT = 8
_VAIN = 64
# Watched calls that were not kept, after which loops may go on in NumPy while a call is watched.
PATIENT = 2
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
    guesses: whether lengths may be guessed (see `guess`). reach: what the function reads.
    """

    __slots__ = (
        "_count", "_numbers", "given", "guesses", "own", "patient", "reach", "read", "spoiled",
        "steps", "touched", "written",
    )  # fmt: skip

    def __init__(self, reach: Reach, patient: bool, guesses: bool) -> None:
        self.spoiled = False
        self.reach = reach
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


class Keeper:
    """What is known of the calls of one compiled function, on arrays or on tensors. Threads share
    it: tuples replace each other.

    kept: the kept calls. reach: what the function reads, which they hold for. calls, vain: those
    that were recorded, and those watched since a kept one was last run. hopeless: whether none can
    be kept. call: as the function is called; gives what it gives, or MISS. None while no call is
    known.
    """

    def __init__(self, function: Any):
        self.function = function
        self.reach: Reach | None = None
        self.kept: tuple = ()
        self.calls = 0
        self.vain = 0
        self.hopeless = False
        self.call: Callable | None = None

    def _reads(self) -> Reach | None:
        """What the function reads, as it is now; None where no call can be kept."""
        if self.reach is not None and not self.reach.unchanged():
            self._forget()
        if self.reach is None:
            self.reach = reach(self.function)
            self.hopeless = self.reach is None
        return self.reach

    def _holds(self, watch: Watch) -> bool:
        """Whether a call that has ended did what the next one would."""
        return not watch.spoiled and watch.reach is self.reach and watch.reach.unchanged()

    def _kept(self, made: Any) -> bool:
        """Note that a watched call has ended. made: what is kept of it, if it is."""
        self.vain += 1
        if made is not None:
            self.kept = (made, *self.kept[: KEPT - 1])
        if self.vain >= _VAIN:
            self.hopeless = True
            self._forget()
        return made is not None

    def _forget(self) -> None:
        """Keep no call, and look anew at what the function reads."""
        self.kept = ()
        self.reach = None


class Replays(Keeper):
    """As a `Keeper`, of calls on arrays: see `runtime.calls.Table`.

    plain: entries of calls that run as they stand. guesses: as of a `Watch`.
    """

    def __init__(self, function: Any):
        super().__init__(function)
        self.kept: tuple[Replay, ...] = ()
        self.guesses = True
        self._table: Table | None = None
        self.plain: dict[Choice, Entry] = {}

    def run(self, args: tuple, kwargs: dict) -> Any:
        """The result of a call like one that was kept, or MISS."""
        table = self._table
        if table is None or not self.kept:
            return MISS
        given = (*args, *kwargs.values())
        entry = table.find(given, tuple(kwargs))
        replay = next((r for r in self.kept if r.entry is entry), None)
        if replay is None:
            return MISS
        # Where C sees a change, it may be an entrance that a function has for now.
        if not table.unchanged() and (self.reach is None or not self.reach.unchanged()):
            self._forget()
            return MISS
        self.vain = 0
        choice = replay.choice
        if choice is None:
            replay.entry.settle()
            return replay.run(given)
        if config.plain != "auto":
            return replay.run(given)
        if choice.way != "compiled":
            return self._choose(replay, choice, args, kwargs)
        start = time.perf_counter()
        result = replay.run(given)
        choice.ran_kept(time.perf_counter() - start)
        replay.entry.settle(choice.way == "compiled", SELDOM)
        return result

    def _choose(self, replay: Replay, choice: Choice, args: tuple, kwargs: dict) -> Any:
        """As `run`, while it is not known whether the function is faster as it stands."""
        if choice.way == "plain":  # found by its signature from now on
            self.kept = tuple(r for r in self.kept if r is not replay)
            self._publish()
        if choice.wants_plain():
            return choice.call(self.function, args, kwargs)
        assert self.call is not None
        replay.entry.settle()
        start = time.perf_counter()
        result = self.call(*args, **kwargs)
        seconds = time.perf_counter() - start
        nodes = [program.node for program, *_ in replay.programs.steps]
        calls, touched = sum(n.count for n in nodes), sum(n.bytes for n in nodes)
        choice.ran_compiled(seconds, 0, calls, touched)
        if choice.way != "compiled":
            replay.entry.settle(False)
        return result

    def run_plainly(self, choice: Choice, args: tuple, kwargs: dict) -> Any:
        """The result of a call for which NumPy was found to be faster. Calls like it are known from
        now on, and few of them come here."""
        known, given = self.plain.get(choice), (*args, *kwargs.values())
        sampled = (
            known is not None
            and self._table is not None
            and self._table.find(given, tuple(kwargs)) is known
        )
        result = choice.call(self.function, args, kwargs, SAMPLED if sampled else 1)
        if choice.way != "plain":
            if self.plain.pop(choice, None) is not None:
                self._publish()
        elif known is None and available():
            checks = alike_checks(given)
            if checks is not None:
                entry = Entry(Way.PLAIN, len(given), tuple(kwargs), checks)
                entry.calls(self.function, SAMPLED)
                while len(self.plain) >= KEPT:
                    self.plain.pop(next(iter(self.plain)))
                self.plain[choice] = entry
                self._publish()
        return result

    def _publish(self) -> Table:
        """Let calls go by the entries that there are."""
        if self._table is None:
            self._table = Table()
            self.call = self._table.call
        self._table.publish([*(r.entry for r in self.kept), *self.plain.values()])
        return self._table

    def _forget(self) -> None:
        super()._forget()
        self._publish()

    def _reads(self) -> Reach | None:
        known, found = self.reach, super()._reads() if available() else None
        if found is None:
            self.hopeless = True
        elif found is not known:
            checks = reach_checks(found.names, found.cells, found.functions, MISSING)
            self._publish().watch(checks)
        return found

    def watch(self, args: tuple, kwargs: dict) -> Watch | None:
        """A watch for a call that was not kept; None where keeping it has no chance."""
        self.calls += 1
        if self.hopeless or self.calls < 2:
            return None
        if not all(_shareable(a) or simple(a) for a in (*args, *kwargs.values())):
            return None
        found = self._reads()
        return None if found is None else Watch(found, self.vain < PATIENT, self.guesses)

    def guessed_wrong(self) -> None:
        """A guess did not hold: make no more of them."""
        self.guesses = False
        self._forget()

    def keep(
        self, watch: Watch, args: tuple, kwargs: dict, exchange: Any, result: Any,
        choice: Choice | None,
    ) -> bool:  # fmt: skip
        """Keep a call that has ended, if it can be. exchange: what was handed to the function.
        choice: of calls with such arguments."""
        given, known = (*args, *kwargs.values()), exchange.capture.known
        made = None
        if self._holds(watch):
            made = _replay(watch, given, tuple(kwargs), known, result)
        if made is not None:
            made.choice = choice
            if choice is None or choice.way == "compiled":
                made.entry.settle(sampled=0 if choice is None else SELDOM)
        kept = self._kept(made)
        if kept:
            self._publish()
        return kept


def _shareable(a: Any) -> bool:
    """Whether a is an array whose memory torch can have as it lies."""
    return tensor_like(a) and min(a.strides, default=0) >= 0


def simple(a: Any) -> bool:
    """Whether a is a value that cannot change."""
    return type(a) in (int, float, bool, str, complex, type(None)) or (
        type(a) is tuple and all(simple(v) for v in a)
    )


class Replay:
    """One kept call: the entry that it is known by, and its programs. choice: whether calls like it
    are faster as they stand; None where that is not asked."""

    __slots__ = ("choice", "entry", "programs")

    def __init__(self, entry: Entry, programs: Programs):
        self.choice: Choice | None = None
        self.entry = entry
        self.programs = programs

    def run(self, args: tuple) -> Any:
        """What the function does and gives, by the kept programs. MISS where one raises before
        anything was written: the call is then made again, and that has NumPy's words."""
        return self.entry.run(args)


class Programs:
    """The programs of a kept call.

    steps: (program, where its tensors come from, floats, integers); a tensor comes from argument k,
    k >= 0, or is number -1-k of constants and results so far. result: what the function gives, of
    arguments and those of the results that are `wanted`. sequence: the steps as one call, where
    they can be one.
    """

    __slots__ = ("constants", "read", "result", "sequence", "steps", "wanted")

    def __init__(
        self, steps: list[tuple], constants: list[torch.Tensor], result: Result, wanted: list[int]
    ):
        self.steps = steps
        self.constants = constants
        self.result = result
        self.wanted = wanted
        self.read = sorted({s for _, sources, *_ in steps for s in sources if s >= 0})
        self.sequence = sequence(steps, constants, wanted)

    def run(self, args: tuple) -> Any:
        """What the function gives, one program after the other. MISS: see `Replay.run`."""
        return self._from(0, args, dict(enumerate(self.constants)))

    def goes_on(self, args: tuple, made: list[np.ndarray], row: int, work: int) -> Any:
        """As `run`, of a sequence that an index out of bounds has stopped."""
        step, arrays = self.sequence.before(row, made, work)
        return self._from(step, args, {k: torch.from_numpy(a) for k, a in arrays.items()})

    def _from(self, start: int, args: tuple, made: dict[int, torch.Tensor]) -> Any:
        """As `run`, from a step on. made: constants and results before it."""
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
        return give(self.result, args, [made[k].numpy() for k in self.wanted])


def _replay(
    watch: Watch, args: tuple, names: tuple[str, ...], known: dict[int, tuple[Any, Array]],
    result: Any,
) -> Replay | None:  # fmt: skip
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
    found = steps_of(watch, positions)
    if found is None:
        return None
    steps, constants, place = found
    results = _Results(place, stand_ins)
    gives = results.of(result)
    if gives is None:
        return None
    programs = Programs(steps, constants, gives, results.wanted)
    places = {id(a): k for k, a in enumerate(args)}
    read = {(places[a], index): content for (a, index), content in watch.read.items()}
    writes = any(program.mutates for program, *_ in steps)
    entry = Entry(Way.UNSETTLED, len(args), names, exact_checks(args, read, writes))
    if programs.sequence is None:
        entry.calls(programs.run)
    else:
        entry.runs(programs.sequence, gives, programs.goes_on)
    return Replay(entry, programs)


def steps_of(
    watch: Watch, positions: dict[int, int]
) -> tuple[list[tuple], list[torch.Tensor], Place] | None:
    """What a call has run as in `Programs`: the steps, the constants, and the number of a result by
    its tensor. positions: of arguments, by their tensors. None where a constant is written to."""
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

    return steps, constants, place


def _written(watch: Watch) -> set[int]:
    """The ids of tensors in `watch.given` that programs write to."""
    return {read[k] for program, read, *_ in watch.steps for k in program.written if read[k] >= 0}


class _Results:
    """How what a function gives is made of arguments and of what programs have made.

    place: the number of a tensor that a program has made. stand_ins: positions of arguments, by
    their stand-ins. wanted: numbers of tensors that are needed. parts: ids of what a kept call
    makes anew wherever it stands: lists and tuples, views, scalars. It may stand in one place only.
    """

    def __init__(self, place: Place, stand_ins: dict[int, int]):
        self._place = place
        self._stand_ins = stand_ins
        self._parts: set[int] = set()
        self.wanted: list[int] = []

    def of(self, result: Any) -> Result | None:
        """What is to be given for a result like this one; None where that is not known."""
        kind = type(result)
        if simple(result):
            return Give.CONSTANT, result
        if kind is Array:
            made = self._array(result)
            if made is None or made[0] is Give.ARGUMENT or made[0] is Give.MADE:
                return made
            return None if self._again(result) else made
        if (kind is not tuple and kind is not list) or self._again(result):
            return None
        parts = [self.of(v) for v in result]
        if any(p is None for p in parts):
            return None
        return Give.TUPLE if kind is tuple else Give.LIST, parts

    def _again(self, part: Any) -> bool:
        known = id(part) in self._parts
        self._parts.add(id(part))
        return known

    def _array(self, a: Array) -> Result | None:
        if id(a) in self._stand_ins:
            return Give.ARGUMENT, self._stand_ins[id(a)]
        if a._sel is not None:
            full = self._array(a._sel.full(None))
            mask = self._array(a._sel.mask.array(None))
            if full is None or mask is None:
                return None
            return Give.CALL, lambda args, made: give(full, args, made)[give(mask, args, made)]
        if a._base is not None:
            return self._view(a)
        if a._flip or a._readonly or a._t is None:
            return None
        number = self._place(a._t)
        if number is None:
            return None
        if number not in self.wanted:
            self.wanted.append(number)
        return Give.SCALAR if a._is_scalar() else Give.MADE, self.wanted.index(number)

    def _view(self, view: Array) -> Result | None:
        """NumPy makes a view of its base."""
        base = self._array(view._base)
        name, args, kwargs, pick = view._via
        if base is None or name is WINDOW or any(map(has_array, (*args[1:], *kwargs.values()))):
            return None
        function, rest = numpy_function(name), args[1:]

        def made_of(given: Any, made: Any) -> Any:
            return picked(function(give(base, given, made), *rest, **kwargs), pick)

        return Give.CALL, made_of


def has_array(x: Any) -> bool:
    """Whether x is an array, or a tuple or list with one in it."""
    return type(x) in (Array, np.ndarray) or (type(x) in (tuple, list) and any(map(has_array, x)))
