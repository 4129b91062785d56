"""Reading a function: what is known of one, its regions, and how Python and they take turns."""

from __future__ import annotations

import functools
import math
import sys
import time
import types
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Protocol

from np_compile import config, debug_output, errstate, log
from np_compile.kernels.build.toolchain import (
    CompileFailed,
    NoCompiler,
)

from . import (
    dispatch,
    offload,
    resume,
    source,
)
from .arguments import binder, bytes_of, magnitudes
from .dispatch import Taker
from .entry import Exit
from .pieces import piece
from .read import OutOfTime
from .region import LATER, MISS, OTHER, Region
from .translation import NO_LOOPS, WRITTEN_OUT, Found, Read, Refused, Work, is_first, read
from .values import Unreadable
from .walk import shared_names, stores

_REGIONS = 24  # of one function
_LARGE = 20_000  # elements from which arrays are better off in whole-array kernels:
_LOSS = 50  # so many of them lose what an operation on a single element gains here
_WORKS = "the C compiler is at work on it"
_NO_TIME = "what is new has taken longer than Python: it runs there for now"
_NEXT = "it is recorded from the next call on"
# Instead of a result: the call runs as it stands, always or until the compiler has ended.
_PLAIN: Any = object()
_LATER: Any = object()
_ALIKE = "its loops do the same to whole arrays"
_MANY = 400  # iterations over arrays; a recorded one takes some 50 us, or as much as NumPy
_SHORT = 2e-6  # seconds in Python, from which loops over numbers alone are worth a region
_LONG = 0.02  # and from which a call is recorded at once that was read in vain
_ELEMENT = 1e-9  # seconds that NumPy takes for one of an array
_SINGLE = 64  # operations on single elements in loops from which loops are better off whole
_BYTES = 10_000  # that are moved in the time of one recorded operation on an element
_REFUSED = 200  # refusals of one function that are remembered, before it is read no more
_VAIN = 6  # types for which a function is read in vain before it is read no more
_LEAVES = 4  # calls in which a region leaves in a loop, before Python takes over if most do
_FILTERS = frozenset(("catch_warnings", "filterwarnings", "simplefilter", "resetwarnings"))
_IDLE = 4  # calls that Python carries out to the end, before a function runs as it stands
_OVERLAP = Refused("arrays that share memory", 0, 0)


def _unnoted(args: tuple, kwargs: dict, seconds: float, runs: int) -> None:
    """Nobody asks how long calls take that Python had to end."""


def of_helper(
    f: types.FunctionType, account: Budget | None = None
) -> Callable[[tuple, dict], tuple | None] | None:
    """What calls a function that goes by elements: where code that is recorded calls it, it is
    better off by itself. The result is in a tuple; None where it is better recorded too. None for
    any other function. account: of the function that is recorded."""
    try:
        if not source.by_element(source.tree(f)):
            return None
    except Unreadable:
        return None
    reading = Reading(f, account=account)

    def call(args: tuple, kwargs: dict) -> tuple | None:
        result = reading.call(args, kwargs)
        return None if result is MISS else (result,)

    return call


class Budget(Protocol):
    """The time that a function may spend on what is new. owed: seconds that are spent. cold: none
    is left, for now. plainly, waits: the result of a call that runs as it stands, the latter as a
    compiler is at work. may_wait: whether what is new may. until: up to when this call may read,
    in its thread's time. stopped: that has come, before it was read. lends_again: time for one more
    attempt. idle: whether such a call may be made without Python for a while."""

    owed: float
    cold: bool
    idle: bool

    def begins(self) -> None: ...

    def ended(self) -> None: ...

    def plainly(self, function: Callable, args: tuple, kwargs: dict) -> Any: ...

    def waits(self, function: Callable, args: tuple, kwargs: dict) -> Any: ...

    def may_wait(self) -> bool: ...

    def until(self) -> float: ...

    def stopped(self) -> None: ...

    def lends_again(self) -> None: ...


class Reading:
    """What is known of one function. `call` carries a call out, or gives MISS. budget: None where
    time does not matter. keeps: whether recorded calls with such arguments may be kept, as they all
    may where it is None. away: whether arrays are copies of tensors on a device, where calls are
    recorded that are not read. general: whether it serves calls with new sizes, whatever is better
    for others. is_compiled: whether some of it is. single: operations of loops on single elements,
    in a call. for_sizes: how such calls are read, where loops do the same to whole arrays, and
    others are recorded. as_not_kept: whether it would be recorded, if such calls were kept. taker:
    of the forms of calls that C makes by itself, if there is one. account: what its readings are
    on, where it has no budget of its own. on_leaving: told of calls that Python had to end: their
    arguments, seconds, and how often it has run by then. is_new_to_c: whether it makes
    calls like the last one of `call` only from then on."""

    def __init__(
        self, f: types.FunctionType, budget: Budget | None = None, away: bool = False,
        general: bool = False, keeps: Callable[[tuple], bool] | None = None,
        taker: Taker | None = None, account: Budget | None = None,
    ):  # fmt: skip
        self.function = f
        self._budget, self._away = budget, away
        self._account = budget or account
        self._general, self._keeps = general, keeps
        self._whole = False  # whether it is read whatever it does to whole arrays
        self.as_not_kept = False
        self.for_sizes: Reading | None = None
        self._taker = taker
        self.is_new_to_c = False
        self._code: Any = None
        self._regions: dict[int, list[Region]] = {}
        self.is_compiled = False
        self._runs = 0
        self.single = 0.0
        self._refused: dict[Any, Refused] = {}
        self.given_up: str = ""
        self._stands = False  # whether it runs as it stands now that it was given up
        self.on_leaving: Callable[[tuple, dict, float, int], Any] = _unnoted
        self._times_left = 0
        self._left_for_later = False  # whether the first call was not recorded, as it was read
        self._awaited: Region | None = None  # the first one, where all are the compiler's still

    def _look(self, args: tuple) -> Any:
        """The tree of the function, if it has loops that may be read. args: of the first call."""
        code = self.function.__code__
        if code is not self._code:
            self._code = code
            self._regions, self._refused, self.is_compiled = {}, {}, False
            self.for_sizes = None
            self._vain: dict[int, int] = defaultdict(int)
            self._begun: dict[tuple, Found] = {}  # by readings that were out of time
            self.given_up, self._stands, self._idle, self._in_c = "", False, 0, 0
            self._awaited = None
            self.node: Any = None
            self._continuations: dict[Any, Any] = {}
            self._begins: dict[int, int | None] = {}
            self._bind: Any = binder(self.function)
            try:
                types_ = tuple(map(type, args))
                if not self._whole and not source.has_loops(self.function, types_):
                    self.given_up = NO_LOOPS
                else:
                    self.node = source.tree(self.function)
                    if source.outer_names(self.node):
                        self.given_up = "nonlocal in it"
                    if not source.only_ignores(self.node, _FILTERS & {*code.co_names}):
                        self.given_up = "it says what becomes of warnings"
            except Unreadable as e:
                self.given_up = str(e)
        return None if self.given_up else self.node

    def _may_be_kept(self, values: dict[str, Any]) -> bool:
        """Whether a recorded call may be kept; else each one records its loops anew, which costs
        what NumPy does. values: of the function's names."""
        code = self.function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        return self._keeps is None or self._keeps(tuple([values[k] for k in names if k in values]))

    def is_not_kept(self) -> None:
        """Recorded calls are not kept, as was found: from now on they are read, also where they do
        the same to whole arrays, or to large ones."""
        if self._whole:
            return
        self._whole = True
        self.as_not_kept = not self.is_compiled
        if self._budget is not None:
            self._budget.lends_again()
        by_size = {refused.why for refused in self._refused.values() if refused.by_size}
        self._refused = {key: r for key, r in self._refused.items() if not r.by_size}
        if self.given_up in (NO_LOOPS, WRITTEN_OUT):
            self._code = None  # it is looked at anew
        elif self.given_up in by_size:
            self.given_up, self._stands, self._idle = "", False, 0

    @property
    def stands(self) -> types.CodeType | None:
        """The code with which all calls run as the function stands; None where they do not."""
        return self._code if self.given_up and self._stands else None

    @property
    def serves(self) -> bool:
        """Whether some calls are compiled whole."""
        general = self.for_sizes
        return self.is_compiled or (general is not None and general.is_compiled)

    @property
    def waits(self) -> bool:
        """Whether all that there is of it is the compiler's still. To ask costs little, beside the
        calls that lead there otherwise."""
        awaited = self._awaited
        return awaited is not None and not awaited.ready

    @property
    def is_declined(self) -> bool:
        """Whether what it does to whole arrays has some of it recorded."""
        return any(refused.by_size for refused in self._refused.values())

    @property
    def is_tried(self) -> bool:
        """Whether there are loops, and it was looked whether they can be read."""
        return self._code is not None and self.given_up != NO_LOOPS

    def call(self, args: tuple, kwargs: dict, changed: list[Any] | None = None) -> Any:
        """The result of a call, or MISS if it is to run otherwise. changed: gets the arrays that
        it may have changed, or None for all that it can reach."""
        left, start = self._times_left, time.perf_counter()
        try:
            return self._called(args, kwargs, changed)
        finally:
            if self._times_left > left:
                self.on_leaving(args, kwargs, time.perf_counter() - start, self.runs)

    def _called(self, args: tuple, kwargs: dict, changed: list[Any] | None) -> Any:
        changed = [] if changed is None else changed
        if errstate.raises():
            return MISS
        node = self._look(args)
        if node is None:
            offload.settle()
            return self.function(*args, **kwargs) if self._stands else MISS
        values = self._bound(args, kwargs)
        if values is None:
            return MISS
        ran: Any = None
        known = self._regions.get(0)
        if known and known[0].is_loaded:  # the region that ran last, most often
            ran = known[0].run(values)
            if type(ran) is tuple:
                known[0].ran()
                self._runs += 1
                changed += known[0].changed(values)
                if ran[2] is None:
                    self._idle = 0
                    self._offer(args, kwargs)
                    return ran[1]
                ran = known[0], *ran
            else:
                ran = None
        result = self._go_on(node, values, changed, ran)
        self._offer(args, kwargs)
        if result is not _PLAIN and result is not _LATER:
            return result
        changed.append(None)
        offload.settle()
        if self._budget is None:
            return self.function(*args, **kwargs)
        way = self._budget.plainly if result is _PLAIN else self._budget.waits
        return way(self.function, args, kwargs)

    def _offer(self, args: tuple, kwargs: dict) -> None:
        """Have C make calls like this one from now on, of the region that ran, if it can."""
        known, names, taker = self._regions.get(0), tuple(kwargs), self._taker
        self.is_new_to_c = False
        if not known or taker is None or not known[0].is_loaded:
            return
        node, region = self.node, known[0]
        if region.has_form(len(args) + len(names), names):
            return

        def ended(state: Any, number: int, args: tuple, kwargs: dict) -> Any:
            return self._ended(node, region, state, number, args, kwargs)

        self.is_new_to_c = True
        if taker.can_take() and dispatch.available():
            taker.takes(region.form(self.function, len(args) + len(names), names, ended))

    def _ended(
        self, node: Any, region: Region, state: Any, number: int, args: tuple, kwargs: dict
    ) -> Any:
        """As `call`, of a call of a region that C has made up to its end."""
        start = time.perf_counter()
        exit_, value, left = region.ended(state, number)
        region.ran()
        self._runs += 1
        if left is None:
            return value
        values = self._bound(args, kwargs)
        assert values is not None
        if self._budget is None:
            return self._go_on(node, values, [], (region, exit_, value, left))
        self._budget.begins()
        try:
            return self._go_on(node, values, [], (region, exit_, value, left))
        finally:
            self.on_leaving(args, kwargs, time.perf_counter() - start, self.runs)
            self._budget.ended()

    def _bound(self, args: tuple, kwargs: dict) -> dict[str, Any] | None:
        """The parameters' values; None where the call is not one of this function."""
        bind, f = self._bind, self.function
        if bind is None:
            return None
        if bind.__defaults__ is not f.__defaults__ or bind.__kwdefaults__ is not f.__kwdefaults__:
            bind.__defaults__, bind.__kwdefaults__ = f.__defaults__, f.__kwdefaults__
        try:
            return bind(*args, **kwargs)
        except TypeError:
            return None

    @property
    def runs(self) -> int:
        """How often its regions have run, but for the first time of each."""
        return self._runs + sum([r.runs_in_c for known in self._regions.values() for r in known])

    @property
    def is_compiling(self) -> bool:
        """Whether the C compiler is at work for it."""
        return any(not r.ready for known in self._regions.values() for r in known)

    @property
    def listed(self) -> int:
        """How many items of lists its regions have made for Python."""
        return sum([region.listed for known in self._regions.values() for region in known])

    @property
    def called(self) -> int:
        """How many calls its regions have made in Python."""
        return sum([region.called for known in self._regions.values() for region in known])

    def texts(self) -> list[str]:
        """The C of the regions."""
        made = [x for known in self._regions.values() for region in known for x in region.texts]
        return made + (self.for_sizes.texts() if self.for_sizes is not None else [])

    def report(self) -> list[str]:
        """What became of the function's loops, for people: what is compiled whole, where compiled
        code left, what could not be read, and why."""
        code = self.function.__code__
        if self.given_up:
            return [f"not read: {self.given_up}"]
        made = []
        for first, known in self._regions.items():
            line = self.node.body[first].lineno
            for region in known:
                text = f"compiled whole from {code.co_filename}:{line} on"
                if region.threaded:
                    lines = ", ".join(map(str, region.threaded))
                    text += f"; threads share the loops of lines {lines}"
                made.append(text + (f"; left in loops {region.left} times" if region.left else ""))
                made += [f"  {x}" for x in region.on_device()]
                for exit_ in region.exits.values():
                    if exit_.count:
                        why = " or ".join(exit_.reasons)
                        made.append(f"  left {exit_.count} times at line {exit_.line}: {why}")
        for why, line in dict.fromkeys((x.why, x.line) for x in self._refused.values()):
            made.append(f"not read: {why}" + (f" ({code.co_filename}:{line})" if line else ""))
        if self.for_sizes is not None and self.for_sizes.is_compiled:
            made += [f"for sizes that are new: {line}" for line in self.for_sizes.report()]
        return made

    def _go_on(self, node: Any, values: dict[str, Any], changed: list[Any], ran: Any) -> Any:
        """The body, with these values of names. ran: a region that did its beginning, or none."""
        first, begun, compiled = 0, False, ran is not None
        beginning: Refused | None = None  # of a call of which nothing was compiled
        while True:
            ran = ran or self._ran(node, first, values)
            if isinstance(ran, Refused):
                step = self._after(node, first, ran)
                if not begun:
                    if ran.vain or (step is None and not ran.plain):
                        return MISS
                    beginning = ran
                if step is None:
                    if ran.why not in (_WORKS, _NO_TIME, _NEXT):
                        self._was_idle(node, ran.why, beginning)
                    if not begun:
                        return _LATER if ran.why == _WORKS else _PLAIN
                    if self._budget is not None and not compiled:
                        self._budget.idle = True
                    return self._python(node, first, values, None)
                changed.append(None)
                result = self._python(node, first, values, step)
            else:
                region, exit_, value, left = ran
                self._idle, beginning, compiled = 0, None, True
                changed += region.changed(values)
                if left is None:
                    return value
                changed.append(None)
                exit_.count += 1
                self._times_left += 1
                if not is_first(exit_):
                    self._left(node, first, region, exit_, values)
                step = self._next(node, exit_.top + 1)
                _keep_nans(node, first, exit_, values, left[0][3])
                result = self._resumed(exit_, left, step)
            begun, ran = True, None
            if step is None or result[0] == resume.RETURNED:
                return result[1]
            values, first = result[1], step

    def _was_idle(self, node: Any, why: str, beginning: Refused | None) -> None:
        """Note a call that Python has carried out to the end. beginning: why it had to do so from
        the first statement on."""
        if config.loops != "auto":
            return
        stands = self._stands_better(node)
        in_c = sum([region.runs_in_c for region in self._regions.get(0, ())])
        if in_c != self._in_c:  # others were compiled in between
            self._idle, self._in_c = 0, in_c
        if beginning is not None and beginning is not _OVERLAP and not stands:
            beginning.vain = True
        self._idle += 1
        if self._idle > _IDLE:
            self.given_up, self._stands = why, stands

    def _stands_better(self, node: Any) -> bool:
        """Whether recording it, where it is not compiled, would cost more than it gains."""
        return not self._away and source.by_element(node)

    def _left(
        self, node: Any, first: int, region: Region, exit_: Exit, values: dict[str, Any]
    ) -> None:
        """Note that a region has left in a loop; if it mostly does, values such as these are
        Python's from now on."""
        region.left += 1
        if region.left >= max(_LEAVES, region.runs / 2) and config.loops == "auto":
            why = f"it was left in loops: {' or '.join(exit_.reasons)}"
            refused = Refused(why, exit_.line, len(node.body), self._stands_better(node))
            self._regions[first].remove(region)
            region.end()
            self.is_compiled = any(self._regions.values())
            self._refused[self._key(first, values)] = refused
            self._vain[first] += 1

    def _key(self, first: int, values: dict[str, Any]) -> tuple:
        """What is the same for values that are read alike."""
        small = len(self._regions[first]) < 3 and not self._general
        pieces = tuple([(k, piece(v, small)) for k, v in values.items()])
        return first, small, config.loops, pieces

    def _after(self, node: Any, first: int, refused: Refused) -> int | None:
        """The statement from which on reading begins again, behind a refusal."""
        at = refused.next
        if at <= first:
            # A loop was refused: the statement that has it runs in Python.
            at = next(
                (k + 1 for k in range(first, len(node.body))
                 if node.body[k].end_lineno >= refused.line), len(node.body),
            )  # fmt: skip
        return self._next(node, at)

    def _next(self, node: Any, at: int) -> int | None:
        """A statement that may have a loop, from one on; None if there is none, or if the function
        makes others: these see the names of the Python that goes on, to its end."""
        if source.makes_functions(node):
            return None
        if at not in self._begins:
            rest = range(at, len(node.body))
            first = (k for k in rest if source.may_loop(node.body[k], self.function))
            found = next(first, None)
            # What it makes for the loop is the region's own, if it is made there.
            self._begins[at] = found and next(
                k for k in range(at, found + 1)
                if k == found or source.makes_containers(node.body[k], self.function)
            )  # fmt: skip
        return self._begins[at]

    def _ran(self, node: Any, first: int, values: dict[str, Any]) -> Any:
        """What a region made of these values: itself, its exit, the result, where it left; or why
        there is none."""
        if errstate.raises():
            return Refused(errstate.REASON, 0, len(node.body))
        try:
            return self._tried(node, first, values)
        except (CompileFailed, NoCompiler) as e:
            self.given_up = f"the C compiler: {str(e).partition(chr(10))[0]}"
            if isinstance(e, CompileFailed):
                name = self.function.__qualname__
                e.warn(f"{name}: its loops are not compiled, since the C compiler failed")
            return Refused(self.given_up, 0, len(node.body))

    def _tried(self, node: Any, first: int, values: dict[str, Any]) -> Any:
        known = self._regions.setdefault(first, [])
        for k, region in enumerate(known):
            ran: Any = region.run(values)
            if ran is OTHER:
                continue
            if ran is LATER:
                return self._awaits(region, node)
            if ran is None:
                return _OVERLAP
            if k:
                known.insert(0, known.pop(k))
            region.ran()
            self._runs += 1
            return region, *ran
        key = self._key(first, values)
        sized = key, magnitudes(values)
        refused = self._refused.get(key) or self._refused.get(sized)
        if refused is not None:
            return refused
        if len(known) >= _REGIONS:
            return Refused("it was compiled for many types", node.lineno, 0)
        if (self._vain[first] >= _VAIN and not known) or len(self._refused) >= _REFUSED:
            return Refused("it was read for many types in vain", node.lineno, 0)
        if config.only_known():
            return Refused(_NO_TIME, 0, len(node.body), self._stands_better(node))
        if self._budget is not None and self._budget.cold:
            return Refused(_NO_TIME, 0, len(node.body))
        start, made = time.perf_counter(), None
        try:
            made = self._new(node, first, values, key, sized)
            if self._leaves_for_later(first, made):
                self._left_for_later = True
                return Refused(_NEXT, 0, len(node.body), True)
            return made
        finally:
            if self._account is not None and not self._left_for_later:
                self._account.owed += time.perf_counter() - start

    def _awaits(self, region: Region, node: Any) -> Refused:
        """Why the compiler's region does not run; calls wait for it, if there is no other one."""
        if not any(r.ready for known in self._regions.values() for r in known):
            self._awaited = region
        return Refused(_WORKS, 0, len(node.body), True)

    def _leaves_for_later(self, first: int, made: Any) -> bool:
        """Whether a first call that was read, and is to be recorded, runs as it stands: that it is
        short is known now, and to record it takes as long again as to read it."""
        work = made.work if isinstance(made, Refused) else None
        return (
            work is not None
            and first == 0
            and not self._left_for_later
            and not self.is_compiled
            and self._budget is not None
            and self._budget.may_wait()
            and config.loops == "auto"
            and work.certain
            and work.seconds + sum(n * max(times, 1) for n, times in work.arrays) * _ELEMENT < _LONG
        )

    def _new(self, node: Any, first: int, values: dict[str, Any], key: tuple, sized: tuple) -> Any:
        """As `_tried`, for values that are read for the first time."""
        known = self._regions[first]
        made = self._made(node, first, values, key[1])
        if config.shows("loops"):
            why = made.why if isinstance(made, Refused) else ""
            line = made.line if isinstance(made, Refused) else node.body[first].lineno
            log.read(self.function.__code__, line or node.lineno, why, sys.stderr)
        if isinstance(made, Read):
            self.single = max(self.single, made.work.single)
            parts = made.text, made.entry, made.sites
            region = Region(*parts, config.waits(), made.loops, made.written)
            if debug_output.is_wanted():
                code = self.function.__code__
                about = f"{code.co_filename}:{code.co_firstlineno}, read from its source"
                debug_output.save(code.co_qualname, {"about.txt": about, "output.c": made.text})
            if region.seconds_left <= made.work.seconds:
                region.wait()
            ran = region.run(values)
            if ran is LATER:
                known.insert(0, region)
                self.is_compiled = True
                return self._awaits(region, node)
            if ran is not OTHER and ran is not None:
                known.insert(0, region)
                self.is_compiled = True
                return region, *ran
            made = _OVERLAP if ran is None else Refused("its inputs are not told apart", 0, 0)
        if made.why == _NO_TIME:
            return made
        self._refused[sized if made.by_size else key] = made
        self._vain[first] += not made.by_size
        return made

    def _made(self, node: Any, first: int, values: dict[str, Any], small: bool) -> Any:
        @functools.cache
        def whole() -> bool:
            return config.loops == "auto" and (self._whole or not self._may_be_kept(values))

        until = math.inf if self._account is None else self._account.until()
        kind = first, tuple([(k, piece(v, False)) for k, v in values.items()])
        found = self._begun.pop(kind, None) or Found()
        try:
            made = read(
                self.function, node, first, values, small,
                functools.partial(self._declines, values, whole), lambda: not whole(), found, until,
            )  # fmt: skip
        except OutOfTime:
            assert self._account is not None
            self._account.stopped()
            self._begun[kind] = found
            return Refused(_NO_TIME, 0, len(node.body), True)
        except RecursionError:
            made = Refused("it is too deep", node.lineno, 0)
        except Exception as e:
            if config.debug:
                raise
            made = Refused(f"{type(e).__name__}: {e}", node.lineno, 0)
        if isinstance(made, Refused):
            made.plain = not made.by_size and self._stands_better(node)
            new = first == 0 and self.for_sizes is None and not self._away
            if made.why == _ALIKE and new:
                self.for_sizes = Reading(self.function, self._budget, general=True)
        elif (_is_large(made.work) or _is_idle(made.work)) and (whole() or _is_lengthy(made.work)):
            self.as_not_kept = True
        return made

    def _declines(self, values: dict[str, Any], whole: Callable[[], bool], work: Work) -> str:
        """Why a region that does such work for these values is better off in whole-array kernels;
        nothing if it is not. whole: whether it is compiled all the same."""
        if config.loops != "auto":
            return ""
        if _is_large(work) and not whole():
            return "its arrays are large"
        if self._away and bytes_of(values) > work.single * _BYTES:
            return "its tensors are large for what its loops do to single elements of them"
        if not _is_idle(work) or self._general or whole():
            return ""
        return "" if _is_lengthy(work) and offload.current() is None else _ALIKE

    def _python(self, node: Any, first: int, values: dict[str, Any], until: int | None) -> Any:
        """Statements of the body in Python, from one to another one."""
        offload.settle()
        path = [("block", node.body, first, "body")]
        key = (first, until, tuple(values))
        f = self._continuations.get(key)
        if f is None:
            f = resume.function(self.function, node, path, tuple(values), until=until)
            self._continuations[key] = f
        result = f(*values.values(), *resume.HELPERS.values())
        return result if until is not None else result[1]

    def _resumed(self, exit_: Exit, left: list, until: int | None) -> Any:
        """What Python makes of the rest, from where compiled code has left."""
        goes_on: Any = None
        for depth, (f, node, path, names, makes) in enumerate(reversed(left)):
            given = depth > 0
            last = depth == len(left) - 1
            whole_path = resume.at_top(path, exit_.top) if last else path
            end = until if last else None
            key = (id(path), given, tuple(names), end, tuple(map(id, makes)))
            made = self._continuations.get(key)
            if made is None:
                made = (
                    path,
                    resume.function(f, node, whole_path, tuple(names), given, end, makes),
                )
                self._continuations[key] = made  # with the path, so that its id stays its own
            extra = [goes_on] if given else []
            goes_on = functools.partial(made[1], *names.values(), *extra, *resume.HELPERS.values())
        return goes_on()


def _keep_nans(
    node: Any, first: int, exit_: Exit, values: dict[str, Any], names: dict[str, Any]
) -> None:
    """Of names that nothing has bound, NaN is the object that it was: by that a list has it."""
    nans = {k: v for k, v in values.items() if type(v) is float and v != v and k in names}
    if nans:
        ran = node.body[first : exit_.top + 1]
        bound = shared_names(node).union(*(stores(s) for s in ran))
        names.update({k: v for k, v in nans.items() if k not in bound})


def _is_large(work: Work) -> bool:
    """Whether what a region does to large arrays loses more than single elements gain."""
    return sum(n * times for n, times in work.arrays if n >= _LARGE) > work.single * _LOSS


def _is_lengthy(work: Work) -> bool:
    """Whether its loops over arrays have so many iterations that to record them takes long."""
    return any(times > _MANY for _, times in work.arrays)


def _is_idle(work: Work) -> bool:
    """Whether it does next to nothing to single elements."""
    return work.single < _SINGLE and bool(work.arrays or work.seconds < _SHORT)
