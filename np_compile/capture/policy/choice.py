"""Compiled or plain: which is the faster way to call a function, found out by calling it.

A function whose arguments are small, or whose loops have nothing to fuse, may be faster as it
stands. Calls with arguments of one signature (types, shapes, integers) are timed both ways; the
quicker way is taken from then on, and looked at again when its times change.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from ctypes import c_int64
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .budget import Budget, seconds_spent
from .estimates import least_seconds, most_seconds

if TYPE_CHECKING:
    from np_compile.runtime.general import Job
    from np_compile.runtime.program import Program

_SIGNATURES = 256  # of one function; with more the oldest is forgotten
_WORDS = 32  # characters: a longer text is data, such as no other call has, and no option's name
_ITEMS = 16  # of a list of more nothing but its length is looked at
_CLEAR = 1.3  # one call each way decides if the times differ by more
_CALLS = 3  # calls each way decide in any case, if they are long
_MORE = 12  # and so many short ones
_SHORT = 1e-3  # seconds
_ELEMENT = 2e-8  # seconds, less than Python takes for an operation on a single element
_GUESSED = 10  # times as many operations may be thought of as there are: loops end when they do
_ITEM = 4e-6  # seconds, more than it takes to make an item of a list for Python
_CALLED = 2e-4  # seconds, more than a call that compiled code makes in Python takes beyond its own
_LONG = 0.5  # seconds from which NumPy is not tried where it might take longer still
_OTHERS = 0.1  # of a plain call, from which on it tells nothing that others spent on what is new
_PAUSED = 1e-2  # seconds that another process, or the collector of garbage, may take of a call
_HOPELESS = 4.0  # a way that takes so many times longer is not tried again
_PATIENCE = 4  # calls that compile before a call in NumPy is tried all the same
SAMPLED = 32  # one of so many plain calls is timed,
_SAMPLED_SHORT = 8192  # of short ones of so many, at most,
_UNTIMED = 1e-2  # seconds that pass between two that are
_BETWEEN = 1e-3  # and while kinds of calls are met that are new: to time one takes some hundredths
SELDOM = 128  # and of so many compiled ones, of which nothing but its arguments is looked at else
# Calls after which both ways are looked at again: once, the next time, and at most, each time after
# twice as many.
_LOOK, _LOOK_LATER, _LOOK_MOST = 32, 1024, 1 << 20
_LOOK_SECONDS = 0.1  # and that they take as they stand before that, but for the first time
_SLOWER = 1.5  # a call is slow that takes so many times longer than one in the other way
_SLOW = 3  # slow calls in a row after which both ways are timed again


def signature(args: tuple, kwargs: dict) -> tuple:
    """Types, shapes and integers of arguments, large ones roughly."""
    made = tuple([_piece(a) for a in args])
    if kwargs:
        made += tuple([(k, _piece(v)) for k, v in kwargs.items()])
    return made


def kind_of(args: tuple, kwargs: dict) -> tuple[tuple, tuple]:
    """Types of arguments, and about what size they have: of a function whose compiled calls are the
    same for all sizes."""
    every = (*args, *kwargs.values())
    return (*map(_type, every), *kwargs), tuple(map(_size, every))


def _type(x: Any) -> Any:
    kind = type(x)
    if kind is np.ndarray:
        return x.ndim, x.dtype.char
    if kind is tuple or kind is list or kind is dict:
        return kind, type_of_first(x)
    return kind


def type_of_first(x: tuple | list | dict) -> type | None:
    """The type of the first item, of a dict that of the first value; None where there is none."""
    return type(next(iter(x.values() if type(x) is dict else x))) if x else None


def _size(x: Any) -> Any:
    kind = type(x)
    if kind is np.ndarray:
        return x.size.bit_length()
    if kind is int:
        return x < 0, x.bit_length()
    if kind is tuple or kind is list or kind is dict:
        return len(x).bit_length()
    return _piece(x, 1)


def _piece(x: Any, depth: int = 3) -> Any:
    """depth: how many structures inside one another are looked into."""
    kind = type(x)
    if kind is np.ndarray:
        return x.shape, x.strides, x.dtype.char
    if kind is int:
        return _rough(x)
    if kind is str and len(x) > _WORDS:
        return kind, len(x).bit_length()
    if kind is bool or kind is str or x is None:
        return x
    if kind is tuple or kind is list or kind is dict:
        if len(x) > _ITEMS or depth == 0:
            return kind, _rough(len(x))
        return (kind, *[_piece(v, depth - 1) for v in (x.values() if kind is dict else x)])
    return (kind, x.shape) if kind is torch.Tensor and not x.is_nested else kind


def span(x: Any) -> tuple[int, int] | None:
    """The least and the most items of arguments that have the same signature, of one of which
    nothing else is looked at; None of others."""
    kind = type(x)
    if kind is str and len(x) > _WORDS:
        rest = len(x).bit_length() - 1
    elif kind in (list, tuple, dict) and len(x) > _ITEMS:
        rest = len(x).bit_length() - 4
    else:
        return None
    low = len(x) >> rest << rest
    return low, low + (1 << rest) - 1


def _rough(n: int) -> Any:
    """A number of iterations, or the like, to about a tenth."""
    digits = n.bit_length() - 4
    return n if digits <= 0 else (n >> digits, digits)


class Choice:
    """The times of calls with arguments of one signature, and what follows from them.

    way: "plain", "compiled", or None while calls are timed. budget: of the function. awaited: a
    program of such calls that is being compiled, or what makes it. vain: whether nothing of the
    last captured one ran as kernels, nor will of those after it.
    """

    __slots__ = (
        "_compiling", "_credit", "_first", "_noted", "_slow", "_span", "_until", "awaited",
        "budget", "compiled", "plain", "runs", "tries", "vain", "way",
    )  # fmt: skip

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.way: str | None = None
        self.awaited: Program | Job | None = None
        self.vain = False
        self.compiled = self.plain = float("inf")  # the quickest call, in seconds
        self.runs = self.tries = 0  # timed calls, compiled and plain
        self._compiling = 0
        # Whether it was decided once: other functions that it calls may have been compiled then.
        self._first = True
        self._slow = 0
        self._credit, self._noted = 0.0, 0  # seconds gained, compiled calls when that was noted
        self._until = self._span = _LOOK  # calls before both ways are looked at again

    def waits(self) -> bool:
        """Whether such calls wait for kernels, and run as they stand for the time being."""
        if self.awaited is not None and self.awaited.ready:
            self.awaited = None
        return self.awaited is not None

    def wants_plain(self) -> bool:
        """Whether the next call is to run as it stands."""
        if self.way is None:
            return self.tries < self.runs - 1  # the first compiled calls warm up
        return self.way == "plain"

    def call(self, function: Callable, args: tuple, kwargs: dict, calls: int = 1) -> Any:
        """Run the function as it stands, and take its time, now and then. calls: those that this
        one stands for; the others were run elsewhere."""
        if calls < SAMPLED:
            self.budget.dispatched()
        if self.way is not None:
            self._until -= calls
            if calls < SAMPLED and self._until % SAMPLED:
                return function(*args, **kwargs)
            unknown = math.isinf(self.compiled)
            if self._is_due() and (unknown or self.compiled < _HOPELESS * self.plain):
                self._again(2 * self._span)
                return function(*args, **kwargs)
        spent, processor, start = seconds_spent(), time.thread_time(), time.perf_counter()
        every = 1 if self.way is None else max(calls, SAMPLED)
        try:
            result = self.budget.timed(function, args, kwargs, every)
        except BaseException:
            self._raised_plain()
            raise
        seconds = self.budget.took  # of nothing but the function: short ones take less than this
        if seconds_spent() - spent < _OTHERS * (time.perf_counter() - start):
            own = time.thread_time() - processor
            self._ran_plain(seconds, own > seconds / 2)
        else:
            self.budget.idle = self.way is None
        return result

    def _is_due(self) -> bool:
        """Whether calls that run as they stand are to be timed both ways again: they have to take
        many times as long as that does, which of short calls has more to do with Python."""
        if self._until > 0 or math.isinf(self.plain):
            return False
        seconds = (self._span - self._until) * self.plain
        return seconds >= (_UNTIMED if self._first else _LOOK_SECONDS)

    @property
    def sampled(self) -> int:
        """One of so many calls like it that run elsewhere, as they stand, comes here."""
        return min(max(SAMPLED, int(_UNTIMED / max(self.plain, 1e-9))), _SAMPLED_SHORT)

    @property
    def seldom(self) -> int:
        """Of so many compiled calls of a function that is compiled whole one is timed."""
        return min(max(SELDOM, int(_UNTIMED / max(self.compiled, 1e-9))), _SAMPLED_SHORT)

    @property
    def is_slow(self) -> bool:
        """Whether the last calls that were timed took longer than others do in the other way."""
        return self._slow > 0

    @property
    def soon(self) -> int:
        """The same where the last ones were slow, and while calls of other kinds come, of which it
        is not known yet which way is the faster one: they are met only by calls that are timed."""
        return min(int(_BETWEEN / max(self.compiled, 1e-9)), self.seldom)

    def _ran_plain(self, seconds: float, alone: bool) -> None:
        """alone: whether no other process had the processor for most of the time."""
        self.plain = min(self.plain, seconds)
        if self.way is not None:
            self._compare(seconds, self.compiled)
            return
        self.tries += 1
        self._decide(alone)
        self.budget.idle = self.way is None

    def _raised_plain(self) -> None:
        """Note a call as it stands that raised: it says nothing of how long others take. Where no
        compiled one has ended either, there is nothing to be gained."""
        self.tries += self.way is None
        if self.way is None and (math.isinf(self.compiled) or self.tries >= _MORE):
            self.way = "plain"
        if self.way == "plain" and math.isinf(self.plain):
            self.plain = self.budget.took
        self.budget.idle = self.way is None

    def leaves(self, seconds: float, runs: int) -> None:
        """Note a compiled call that Python has ended, as where it raised, which takes many times as
        long: where all together take longer than they do as they stand, they run so. runs: how
        many there were by now."""
        since, self._noted = max(runs - self._noted, 0), runs
        if self.way is None:
            self.runs += 1
        if self.way != "compiled" or math.isinf(self.plain):
            return
        gain = self.plain - self.compiled
        self._credit = min(self._credit + since * gain, max(_SHORT, _PATIENCE * gain))
        self._credit -= seconds - self.plain
        if self._credit < 0:
            self.way, self._credit, self._first = "plain", 0.0, False
            self._until = self._span = min(max(2 * self._span, _LOOK_LATER), _LOOK_MOST)

    def ran_kept(self, seconds: float) -> None:
        """Note a compiled call that ran without Python, as those before it did."""
        self._gains(seconds, SELDOM)
        self._compare(seconds, self.plain)

    def _gains(self, seconds: float, calls: int) -> None:
        """Note so many compiled calls in the way that was chosen."""
        if math.isfinite(self.plain):
            self.budget.pays(max(self.plain - seconds, 0.0) * calls)

    def _compare(self, seconds: float, other: float) -> None:
        """Note a call in the way that was chosen, by what the other way takes."""
        self._slow = self._slow + 1 if seconds > _SLOWER * other else 0
        if self._slow >= _SLOW:
            self._again(_LOOK_LATER)

    def ran_compiled(self, seconds: float, built: int, calls: int, touched: int) -> None:
        """Note a compiled call. built: programs that were compiled meanwhile; such a call is not
        typical. calls, touched: the NumPy calls it recorded, the bytes of arrays they touch."""
        if self.way is not None:
            self._gains(seconds, 1)
            self._until -= 1
            if self._until == 0 and (self._first or self.plain < _HOPELESS * self.compiled):
                self._again(2 * self._span)
            return
        if built:
            self._compiling += 1
            if self._compiling < _PATIENCE:
                return
        self.compiled = min(self.compiled, seconds)
        self.runs += 1
        if self.vain:  # NumPy and the recorder have worked
            self.way = "plain"
            return
        long = self.runs > 1 and self.compiled > _LONG
        slow = long and most_seconds(calls, touched) > self.compiled
        if slow or self.compiled < least_seconds(calls, touched):
            self._is_compiled()

    def ran_whole(
        self, seconds: float, listed: int, called: int, single: float, others: Iterable[Choice]
    ) -> None:
        """Note a compiled call of a function that is compiled whole. single: about so many
        operations on single elements, of which Python takes many times as long. listed, called: so
        many items of lists that it made for Python, and calls that it made there. others: of calls
        with arguments of the same types."""
        if self.way is not None:
            self._gains(seconds, self.seldom)
            self._compare(seconds, self.plain)
        by_element = seconds < _ELEMENT * single
        self.ran_for_sizes(seconds, others if by_element else ())
        if self.way is not None or self.runs < 2 or not by_element:
            return
        least = _ELEMENT * single
        sure = least > _GUESSED * _PAUSED or self.compiled < least / _GUESSED
        if sure and self.compiled > self._aside(listed, called):
            self._is_compiled()

    def _aside(self, listed: int, called: int) -> float:
        return _SHORT + _ITEM * listed + _CALLED * called

    def ran_for_sizes(self, seconds: float, others: Iterable[Choice]) -> None:
        """Note a compiled call of what serves many sizes. Where short calls are faster so, longer
        ones are."""
        self.ran_compiled(seconds, 0, 0, 0)
        if self.way is None and any(
            c.way == "compiled" and c.compiled <= self.compiled for c in others
        ):
            self._is_compiled()

    def ran_neither(self) -> None:
        """Note a call that nothing compiled serves, and that there is no time to record. After some
        of them it is no longer looked for."""
        self._slow += 1
        if self.way is None and self._slow >= (_MORE if self._first else _CALLS):
            self.way, self._slow = "plain", 0

    def passes(self) -> None:
        """Note a call for which NumPy was found to be faster."""
        self._until -= 1
        if self._until <= 0:
            self._again(2 * self._span)

    def _decide(self, alone: bool) -> None:
        ratio = self.plain / self.compiled
        if ratio < 1 / _CLEAR:
            self.way = "plain"
        elif ratio > self._clear(alone):
            self._is_compiled()
        elif self.tries >= (_CALLS if self.plain > _SHORT else _MORE):
            if ratio < 1:
                self.way = "plain"
            else:
                self._is_compiled()

    def _clear(self, alone: bool) -> float:
        """How many times longer the plain calls have to take for the compiled ones to be faster:
        of a single one that is short the time may be another process's. alone: whether that of the
        last one is not."""
        if self.plain > _LONG or (alone and self.tries > 1):
            return _CLEAR
        return _HOPELESS if alone and self.plain > _PAUSED else math.inf

    def _is_compiled(self) -> None:
        self.way = "compiled"
        self._gains(self.compiled, self.runs)

    def _again(self, span: int) -> None:
        """Time both ways again, and then not before so many calls more."""
        self.way = None
        self.compiled = self.plain = float("inf")
        self.runs = self.tries = self._slow = 0
        self._first = False
        self._until = self._span = min(max(span, _LOOK_LATER), _LOOK_MOST)

    def __str__(self) -> str:
        if math.isinf(self.plain):
            return "nothing of calls with such arguments runs as kernels: they run in plain NumPy"
        return (
            f"calls with such arguments run in plain NumPy: {self.plain * 1e6:.0f} us, "
            f"{self.compiled * 1e6:.0f} us compiled"
        )


def of_types(choices: dict[tuple, Choice], kind: tuple[tuple, tuple]) -> Iterator[Choice]:
    """The choices of calls with arguments of the types of a kind."""
    return (c for (types, *_), c in choices.items() if types == kind[0])


def leaves(
    choices: dict[tuple, Choice], unweighed: c_int64, args: tuple, kwargs: dict, seconds: float,
    runs: int,
) -> None:  # fmt: skip
    """Note a compiled call that Python has ended: see `Choice.leaves`. unweighed: how many calls
    more are taken to be compiled."""
    choice = choices.get(kind_of(args, kwargs))
    if choice is not None:
        choice.leaves(seconds, runs)
    if choice is None or choice.way != "compiled":
        unweighed.value = 0


def new_choice(choices: dict[tuple, Choice], key: tuple, budget: Budget) -> Choice:
    """A choice for a new signature, in the table of a compiled function."""
    if len(choices) >= _SIGNATURES:
        choices.pop(next(iter(choices)), None)
    return choices.setdefault(key, Choice(budget))
