"""Which calls of a compiled function are kept: the next one like them runs without Python.

A call can be kept if the function is pure (`proof`), no value of an array reached Python while
it ran but a few elements of arguments, and all that its programs read came from its arguments. Then
its programs and their parameters follow from the kinds of the arrays, those elements, and the
values of the other arguments: guards compare all these (`guards`), and a plan has the programs.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from ctypes import Array, c_int64
from typing import Any

import numpy as np
import torch
from torch._C._autograd import _top_saved_tensors_default_hooks as _saved_tensors_hooks

from np_compile import config
from np_compile.capture.policy.choice import SELDOM, Choice, signature
from np_compile.kernels.build import Job

from .arguments import leaves_of, parameter_names
from .arrays import USABLE, Arrays, ArraysOnDevice
from .calls import MISS, Entry, Table, Way, available, pending
from .guards import Elements, Guard, Reach, Refused
from .kinds import Plain, alike, wider
from .plan import Kept, Plan, steps_of
from .proof import reach
from .results import Outputs, Result
from .sizes import KeptForSizes
from .tensors import Tensors
from .watch import Watch

# Calls of a function that are kept, and calls kept in vain after which no more are.
KEPT = 8
KEPT_WAYS = 16  # the same, of one that goes by what it computes
READ = 16  # forms of calls of what was made of its source, that C knows
_MET = 256  # kinds of arguments that are remembered
_AGAIN = 4  # calls of one kind after which it is clear that they cannot be kept for them alone
_FOR_SIZES = 4  # calls that are kept for many sizes
_OTHERS = 16  # calls that looked like those, and were not: they are watched, as others may be
_VAIN = 64
_ASTRAY = 8  # calls on other ways than kept ones, after which one of so many tries these
_GAIN = 4  # calls on new ways that one on a kept way makes up for
_WAYS = 3  # kept calls that are tried where the way of a call hangs on what it computes
_ALIKE = 3  # calls that run as they stand, from which on others between them are taken to do so
# Watched calls that were not kept, after which loops may go on in NumPy while a call is watched.
PATIENT = 2


class Keeper:
    """The kept calls of one compiled function, on arrays, on tensors, or on arrays that live on a
    device while it runs. Threads share it: tuples replace each other.

    kept: the kept calls. for_sizes: those that hold for many sizes. plain: calls that run
    as they stand. reach: what the function reads, which kept calls hold for. vain: calls
    watched since a kept one was last run. hopeless: whether none can be kept. why: it is so, or the
    last call that was watched was not kept. guesses: as of a `Watch`. elements_change: whether
    elements that Python has read in a kept call are others in a later one, or a call is not kept as
    it reads some. call_in_python: as the function is called; gives what it gives, or MISS. None
    where C finds all calls that are known. pause: see `Budget`; unweighed: see `Table`.
    """

    def __init__(
        self, function: Any, tensors: bool, device: torch.device | None = None,
        pause: Array[c_int64] | None = None, unweighed: c_int64 | None = None,
    ):  # fmt: skip
        self.function = function
        self._pause, self._unweighed = pause, unweighed
        self.kept: tuple[Kept, ...] = ()
        self.for_sizes: tuple[KeptForSizes, ...] = ()
        self.plain: dict[Choice, Plain] = {}
        self._read: tuple[Entry, ...] = ()  # calls of what was made of the function's source
        self.reach: Reach | None = None
        self._first = True  # whether there was no call yet
        self._shapes: tuple | None = None  # of the arrays in it
        self._met: dict[tuple, int] = {}  # kinds of arguments, and how often they were met
        self._gone: dict[tuple, None] = {}  # ways of calls that go by what they compute
        self._astray = 0  # calls since one was on a kept way
        self._others = 0  # calls of sizes that no program of those kept for many serves
        self.vain = 0
        self.hopeless = False
        self.why: str | None = None
        self._lasts = False  # whether what that says is so for later calls too
        self.guesses = True
        self.elements_change = False
        self.call_in_python: Callable | None = None
        self._binding: Arrays | Tensors = Tensors(function) if tensors else Arrays(function)
        if device is not None and not tensors:
            self._binding = ArraysOnDevice(function, device)
        self._table: Table | None = None
        self._asked = -1  # how many jobs had ended when it was looked whether C can be asked
        # Held while what is known changes: entries in C go with what the function reads.
        self._lock = threading.RLock()

    # -- calls that are known ---------------------------------------------------------------

    def run(self, args: tuple, kwargs: dict) -> Any:
        """The result of a call like one that was kept, or MISS."""
        if not self.kept:
            return MISS
        names: tuple[str, ...] = ()
        given = args
        if kwargs:
            given, names = (*args, *kwargs.values()), tuple(kwargs)
        table = self._table
        found = self._binding.find(self.kept, table, given, names)
        if found is None:
            return MISS
        kept, leaves = found
        if kept.reach is not self.reach:  # another thread has found a change meanwhile
            return MISS
        # Where C sees a change, it may be an entrance that a function has for now.
        if (table is None or not table.unchanged()) and (
            self.reach is None or not self.reach.unchanged()
        ):
            self._forget()
            return MISS
        if kept.plan.decided:
            return self._along(kept, leaves, given, names)
        self.vain = 0
        choice = kept.choice
        if choice is None or not config.measures():
            return kept.run(leaves)
        if choice.way != "compiled":
            return self._choose(kept, choice, args, kwargs)
        start = time.perf_counter()
        result = kept.run(leaves)
        seconds = time.perf_counter() - start
        choice.ran_kept(seconds)
        kept.settle(choice.way == "compiled", SELDOM)
        if config.only_known():
            return result
        if kept.heat is not None and (other := kept.heat.ran(kept, seconds, SELDOM)) is not None:
            self._replace(kept, other)
        return result

    def _along(self, kept: Any, leaves: Any, given: tuple, names: tuple[str, ...]) -> Any:
        """The result of a call that goes by what it computes, on the way of a kept one, or of
        another one that begins as this one was seen to; MISS where no such way is known."""
        if _saved_tensors_hooks(True) is not None:  # which would see what is saved in vain
            return MISS
        self._astray += 1
        if self._astray > _ASTRAY and self._astray % _ASTRAY:
            return MISS
        for _ in range(_WAYS):
            result, seen = kept.follow(leaves)
            if result is not MISS:
                self.vain = max(self.vain - _GAIN, 0)
                self._astray = 0
                if kept not in self.kept[:1]:
                    with self._lock:
                        if kept in self.kept:
                            self.kept = (kept, *[k for k in self.kept if k is not kept])
                return result
            ways = [k for k in self.kept if seen and k.plan.decided[: len(seen)] == seen]
            ways = [k for k in ways if k.reach is self.reach]
            # The longest one tells most of how others go on.
            ways.sort(key=lambda k: len(k.plan.decided), reverse=True)
            found = self._binding.find(ways, self._table, given, names)
            if found is None:
                return MISS
            kept, leaves = found
        return MISS

    def _replace(self, kept: Kept, other: Kept) -> None:
        """From now on a call is kept in another way."""
        other.choice, other.reach = kept.choice, kept.reach
        other.settle(sampled=SELDOM)
        with self._lock:
            if kept in self.kept:
                self.kept = tuple([other if k is kept else k for k in self.kept])
                self._publish()

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """As `run`, called as the function is."""
        return self.run(args, kwargs)

    def _choose(self, kept: Kept, choice: Choice, args: tuple, kwargs: dict) -> Any:
        """As `run`, while it is not known whether the function is faster as it stands."""
        if choice.way == "plain":  # found by its signature from now on
            self.kept = tuple(k for k in self.kept if k is not kept)
            self._publish()
        if choice.wants_plain():
            return choice.call(self.function, args, kwargs)
        assert self._table is not None
        kept.settle()
        start = time.perf_counter()
        result = self._table.call(*args, **kwargs)
        seconds = time.perf_counter() - start
        nodes = [program.node for program, *_ in kept.plan.steps]
        calls, touched = sum(n.count for n in nodes), sum(n.bytes for n in nodes)
        choice.ran_compiled(seconds, 0, calls, touched)
        if choice.way != "compiled":
            kept.settle(False)
        return result

    def run_plainly(self, choice: Choice, args: tuple, kwargs: dict, roughly: bool = False) -> Any:
        """The result of a call for which NumPy was found to be faster. Calls like it are known from
        now on, if not too many are, and few of them come here. roughly: whether that was found for
        about its sizes."""
        known, given, names = self.plain.get(choice), (*args, *kwargs.values()), tuple(kwargs)
        found = self._plain(given, names)
        calls = found.entry.skips + 1 if found is not None and found is known else 1
        try:
            return choice.call(self.function, args, kwargs, calls)
        finally:  # also of one that raises
            self._ran_plainly(choice, known, found, given, names, roughly)

    def _ran_plainly(
        self, choice: Choice, known: Plain | None, found: Plain | None, given: tuple,
        names: tuple[str, ...], roughly: bool,
    ) -> None:  # fmt: skip
        """Note such a call, which is one of `found`; known: what is known by its choice."""
        if choice.way != "plain":
            if known is not None:
                self._drop(known)
        elif found is not None:
            self.plain[choice] = found
            found.entry.skips = choice.sampled - 1  # the first calls were longer, as a rule
        elif known is None and not pending() and available():
            kinds = alike(given, parameter_names(self.function, len(given), names), roughly)
            if kinds is not None:
                self._learn(choice, *kinds, names)
        if choice.way == "plain" and choice not in self.plain:
            choice.budget.idle = True

    def _plain(self, given: tuple, names: tuple[str, ...]) -> Plain | None:
        """What C knows of such a call, if it is that it runs as it stands."""
        if not self.plain or self._table is None:
            return None
        entry = self._table.find(given, names)
        return next((p for p in self.plain.values() if p.entry is entry), None)

    def _learn(
        self, choice: Choice, guards: list[Guard], form: tuple | None, names: tuple[str, ...]
    ) -> None:
        """From now on C makes such calls, if not too many are known; with some that are about the
        same, those between them too."""
        with self._lock:
            known = dict.fromkeys(self.plain.values())
            like = [p for p in known if (p.names, p.form) == (names, form)]
            near = [p for p in like if wider(p.guards, guards) is not None]
            if len(near) >= _ALIKE or any(p.is_wide for p in near):
                for p in near:
                    guards = wider(p.guards, guards) or guards
            elif len(known) >= KEPT:
                return
            else:
                near = []
            made = Plain.of(guards, form, names, self.function, choice.sampled, bool(near))
            self.plain = {c: made if p in near else p for c, p in self.plain.items()}
            self.plain[choice] = made
            self._publish()

    def _drop(self, plain: Plain) -> None:
        with self._lock:
            self.plain = {c: p for c, p in self.plain.items() if p is not plain}
            self._publish()

    def can_take(self) -> bool:
        """Whether C can be given calls."""
        return not pending() and available()

    def takes(self, form: Any) -> None:
        """From now on C makes calls of what was made of the function's source: see `Form`."""
        made = Entry(Way.READ, form.count, form.names, ())
        made.made_by(form.called, form.memory, form.sees_all)
        if self._unweighed is not None:
            form.counts(self._unweighed)
        with self._lock:
            self._read = (made, *self._read[: READ - 1])
            self._publish()

    def read(self, args: tuple, kwargs: dict) -> Any:
        """The result of such a call, or MISS where C makes none like it."""
        return self._table.read(*args, **kwargs) if self._read and self._table else MISS

    def is_compiled(self, args: tuple, kwargs: dict) -> None:
        """Note that such a call is faster compiled, whatever others are that are about the same."""
        plain = self._plain((*args, *kwargs.values()), tuple(kwargs))
        if plain is not None:
            self._drop(plain)

    def run_for_sizes(self, args: tuple, kwargs: dict) -> Any:
        """The result of a call that is like a kept one but for the extents of arrays, or MISS.
        Where arguments come again, the call is rather kept for them."""
        if not self.for_sizes:
            return MISS
        names = tuple(kwargs)
        given, form = leaves_of((*args, *kwargs.values()))
        like = [k for k in self.for_sizes if k.form == form and k.holds(given, names)]
        found = [k for k in like if k.reach is self.reach]
        if not found or self.reach is None or not self._unchanged(self.reach):
            return MISS
        kind = signature(args, kwargs)
        if 0 < self._met.get(kind, 0) < _AGAIN and len(self.kept) < KEPT:
            return MISS
        for kept in found:
            result = kept.run(given)
            if result is not MISS:
                self._meets(kind)
                return result
        self._others += 1
        return MISS

    def _unchanged(self, found: Reach) -> bool:
        """Whether what the function reads is what it was."""
        table = self._table  # where C sees a change, it may be an entrance that a function has
        return (table is not None and table.unchanged()) or found.unchanged()

    def came(self, args: tuple, kwargs: dict) -> int | None:
        """How often such arguments came; None where no others did."""
        times = self.meet(args, kwargs, False)
        return times if len(self._met) > (times > 0) else None

    def meet(self, args: tuple, kwargs: dict, note: bool = True) -> int:
        """How often such arguments were met before. note: that they are now."""
        kind = signature(args, kwargs)
        return self._meets(kind) if note else self._met.get(kind, 0)

    def _meets(self, kind: tuple) -> int:
        times = self._met.get(kind, 0)
        if times == 0 and len(self._met) >= _MET:
            self._met.pop(next(iter(self._met)), None)
        self._met[kind] = times + 1
        return times

    # -- keeping ----------------------------------------------------------------------------

    def watch(self, args: tuple, kwargs: dict) -> Watch | None:
        """A watch for a call that was not kept; None where keeping it has no chance, for the first
        one, and for one with new arguments where there were too many already."""
        if self.hopeless or config.only_known() or (pending() and not config.waits()):
            return None
        first, self._first = self._first, False
        # With other sizes come other elements, and a program for these is made anyway.
        changed = self._has_others(args, kwargs) or self._has_sizes(args, kwargs)
        self.elements_change = self.elements_change or changed
        try:
            arguments = self._binding.arguments(args, kwargs)
            others = 0 < self._others <= _OTHERS
            if self.meet(args, kwargs) == 0 and (first or len(self._met) > KEPT) and not others:
                return None
            found = self._reads()
        except Refused as e:
            self.why, self._lasts = str(e), True
            return None
        traces = self._binding.for_sizes and len(self._met) > 1
        return Watch(arguments, found, self.vain < PATIENT, self.guesses, traces)

    def _has_sizes(self, args: tuple, kwargs: dict) -> bool:
        """Whether arrays have other sizes than in the first call that was asked about."""
        shapes = tuple([a.shape for a in (*args, *kwargs.values()) if type(a) is np.ndarray])
        if self._shapes is None:
            self._shapes = shapes
        return shapes != self._shapes

    def _has_others(self, args: tuple, kwargs: dict) -> bool:
        """Whether other elements stand where Python has read some in a kept call."""
        given, _ = leaves_of((*args, *kwargs.values()))
        guards = [g for k in self.kept for g in k.guards]
        guards += [g for k in self.for_sizes for g in k.guards]
        return any(type(g) is Elements and g.differ(given) for g in guards)

    def keep(
        self, watch: Watch, args: tuple, kwargs: dict, exchange: Any, result: Any,
        choice: Choice | None,
    ) -> bool:  # fmt: skip
        """Keep a call that has ended, if it can be. exchange: what was handed to the function.
        choice: of calls with such arguments."""
        kept = None
        self.elements_change = self.elements_change or watch.parts
        try:
            kept = self._of(watch, (*args, *kwargs.values()), tuple(kwargs), exchange, result)
        except Refused as e:
            self.why, self._lasts = str(e), not watch.for_now
            if watch.why is None and watch.read:  # it may be given, or kept in a list
                self.elements_change = True
        self.vain += 1
        if kept is not None:
            self.why, self._lasts = None, False
            kept.choice = choice
            kept.reach = watch.reach
            if choice is None or choice.way == "compiled":
                kept.settle(sampled=0 if choice is None else SELDOM)
            with self._lock:
                if watch.reach is not self.reach:
                    return False
                self.kept = (kept, *self.kept[: (KEPT_WAYS if watch.decided else KEPT) - 1])
                self._publish()
        if self.vain >= _VAIN:
            self.hopeless = True
            self._forget()
        return kept is not None

    def _of(
        self, watch: Watch, given: tuple, names: tuple[str, ...], exchange: Any, result: Any
    ) -> Kept:
        if watch.why is not None:
            raise Refused(watch.why)
        if watch.reach is not self.reach or not watch.reach.unchanged():
            raise Refused("what the function reads has changed in the meantime")
        binding = self._binding
        if watch.decided and not self._came_before(tuple(watch.decided)):
            watch.for_now = True
            raise Refused("it goes by a value, in a way that is new")
        stand_ins: dict[int, int] = {}
        positions: dict[int, int] = {}  # of arguments that a program may have read
        for k, stand_in, t in binding.leaves(watch, given, exchange):
            stand_ins.setdefault(id(stand_in), k)
            if t is not None:
                positions.setdefault(id(t), k)
        steps, constants, place = steps_of(watch, positions)
        outputs = Outputs(place, stand_ins, binding.known(watch, exchange), binding.tensors)
        gives = outputs.of(result)
        decided = [(len(constants) + n, answer) for n, answer in watch.decided]
        plan = Plan(steps, constants, outputs.wanted, available(), decided)
        if decided and plan.writes:
            raise Refused("it goes by a value, and writes to an array")
        if binding.for_sizes:
            with contextlib.suppress(Refused):
                self._keep_for_sizes(watch, names, plan, gives, outputs.by_size)
        return binding.kept(watch, given, names, plan, gives)

    def _came_before(self, way: tuple) -> bool:
        """Whether a call has gone this way before; it is noted. To keep one takes as long as some
        calls, and one that goes by what it computes may not come again."""
        known = way in self._gone
        self._gone.pop(way, None)
        self._gone[way] = None
        if len(self._gone) > _MET:
            self._gone.pop(next(iter(self._gone)), None)
        return known

    def _keep_for_sizes(
        self, watch: Watch, names: tuple[str, ...], plan: Plan, gives: Result, by_size: bool
    ) -> None:
        """Keep a call for many sizes. by_size: whether it gives a view by sizes that Python saw."""
        if by_size:
            raise Refused("it gives a view by sizes that Python sees")
        made = KeptForSizes(watch, self.function, names, plan, gives, USABLE)
        given = watch.arguments.leaves
        like = [k for k in self.for_sizes if k.form == made.form and k.generals == made.generals]
        like = [k for k in like if k.holds(given, names)]
        if not any(k.reach is watch.reach and k.serves(given) for k in like):
            with self._lock:
                known = [k for k in self.for_sizes if k not in like]
                self.for_sizes = (made, *known[: _FOR_SIZES - 1])

    @property
    def in_vain(self) -> bool:
        """Whether no call is kept, and none will be, as far as is known; but for those with
        gradients that go by what they compute."""
        ways = all(k.plan.decided for k in self.kept)
        return self.hopeless or (self._lasts and ways and not self.for_sizes)

    def may_keep(self, args: tuple) -> bool:
        """Whether calls with such arguments may be kept, by these and by the function's code."""
        if not self.hopeless:
            try:
                self._binding.arguments(args, {})
                if self.reach is None:
                    reach(self.function)
            except Refused:
                return False
        return not self.hopeless

    def guessed_wrong(self) -> None:
        """A guess did not hold: make no more of them."""
        self.guesses = False
        self._forget()

    def refusal(self, args: tuple, kwargs: dict) -> str | None:
        """Why such calls are not kept, as far as is known; None where they are, or may be."""
        if not self.hopeless:
            try:
                self._binding.arguments(args, kwargs)
                self._reads()
            except Refused as e:
                return str(e)
        return self.why

    def _reads(self) -> Reach:
        """What the function reads, as it is now. Errors: Refused, where no call can be kept."""
        if self.reach is not None and not self.reach.unchanged():
            self._forget()
        found = self.reach
        if found is None:
            try:
                found = reach(self.function)
                found.guards += self._binding.modes
                if not available() and not self._binding.tensors:
                    raise Refused("there is no C compiler, or objects lie in memory as in no NumPy")
            except Refused as e:
                self.hopeless = True
                self.why = str(e)
                raise
            with self._lock:
                if self.reach is not None:  # another thread was quicker
                    return self.reach
                if available():
                    self._known().watch(found.guards)
                self.reach = found
        return found

    def _known(self) -> Table:
        if self._table is None:
            self._table = Table(self.function, self._pause, self._unweighed)
        return self._table

    @property
    def is_new(self) -> bool:
        """Whether nothing is known of calls, and C cannot be asked."""
        if self._table is not None or self.kept or self.for_sizes:
            return False
        ended = Job.ended.value
        if ended == self._asked:  # nor has what C needs
            return True
        self._asked = ended
        return not self.can_take()

    def table(self, needed: bool) -> Table | None:
        """What C knows of calls; where it is needed, it is made as soon as it can be."""
        if self._table is None and needed and not pending() and available():
            with self._lock:
                return self._known()
        return self._table

    def _publish(self) -> None:
        """Let calls go by what is known."""
        with self._lock:
            entries = [k.entry for k in self.kept]
            known = [e for e in entries if e is not None]
            self.call_in_python = self._call if len(known) < len(entries) else None
            if known or self.plain or self._read or self._table is not None:
                plain = [p.entry for p in dict.fromkeys(self.plain.values())]
                self._known().publish([*known, *plain, *self._read])

    def _forget(self) -> None:
        """Keep no call, and look anew at what the function reads."""
        with self._lock:
            self.kept = ()
            self.for_sizes = ()
            self.reach = None
            self._publish()
