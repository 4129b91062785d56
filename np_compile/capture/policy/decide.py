"""Kernels or NumPy: what decides it, at each place where a call in progress can take either way.

| place | decided by |
|---|---|
| the whole call | `of_call`: times of calls with such arguments (`choice`), time left (`budget`) |
| a NumPy call that is new there | `of_step`: time left |
| a segment without a program | `of_segment`: time left, and what it is a piece of |
| a segment whose program is on its way | `of_pending`: how long that takes, and NumPy |
| a value that Python asks for, a loop without marks | `of_value`: its amount of work |
| an iteration of a marked loop | `runs.Run`: its amount of work |

A `Decision` says which way, and why: `explain` prints it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from np_compile import config
from np_compile.tape.node import Node

from ..arrays.array import elements
from .budget import effort
from .choice import Choice, new_choice
from .estimates import likely_seconds, recorded_seconds

if TYPE_CHECKING:
    from np_compile.runtime.program import Program

    from ..capture import Capture
    from ..state import Options
    from ..variants import Variants

_clock = time.perf_counter
# Elements of an array that code in NumPy is compiled again for, or that goes back to the device.
LARGE = 50_000
# Seconds that it takes to translate a NumPy call, and to compile a program: NumPy runs meanwhile
# what takes it less.
_TRANSLATE, _COMPILE = 3e-3, 0.1
_REPEATS = 3  # runs of a segment before a value that Python asked for, from which it is a loop
_INPUTS = 256  # of a segment that is compiled whatever that costs, as a piece of the user's code
_PENDED = 2  # segments that run in NumPy until a program for many sizes is there, then the rest
_ASKED = 4  # times that Python asked for a value of little work on a device
# NumPy takes about 1 us for a call, 0.1 ns for a byte; a device 2.5 us to record a call, and 40 us.
_BYTES, _BYTES_OF_A_CALL = 200_000, 10_000


class Way(Enum):
    """How something runs."""

    KERNELS = "as kernels"
    NUMPY = "in NumPy"
    OPERATORS = "operator by operator"


@dataclass(frozen=True, slots=True)
class Decision:
    """way: how something runs. reason: why, for `explain`. rest: whether what follows runs in NumPy
    too, until a loop ends or an array of more than `limit` elements comes."""

    way: Way
    reason: str
    limit: float = float("inf")
    rest: bool = True


_KERNELS = Decision(Way.KERNELS, "it is compiled")
_LEAVES = Decision(Way.OPERATORS, "what is left to do before the device is left", rest=False)
_GOES_ON = Decision(Way.NUMPY, "the loop that it begins goes on in NumPy", rest=False)
_BEGINNING = Decision(
    Way.NUMPY,
    "the beginning of a loop runs in NumPy: each iteration is a segment",
    rest=False,
)
_FOR_SIZES = Decision(Way.NUMPY, "a program for all sizes is being made", rest=False)
IN_THE_MAKING = Decision(Way.NUMPY, "its program is being made", rest=False)
_FOR_SIZES_ON_TENSORS = Decision(Way.OPERATORS, _FOR_SIZES.reason, rest=False)
_NOT_KNOWN = Decision(Way.NUMPY, "it is not compiled, and `run` compiles nothing", rest=False)
_NOT_KNOWN_ON_TENSORS = Decision(Way.OPERATORS, _NOT_KNOWN.reason, rest=False)
TOO_LITTLE = Decision(
    Way.NUMPY, "an iteration does too little to be recorded: the loop goes on in NumPy", LARGE
)
ALWAYS_PLAIN = Decision(Way.NUMPY, "as the setting `plain` says, the loop goes on in NumPy")
_NEW = "it is new, and compiling has taken longer than NumPy: it runs there"


def of_call(options: Options, key: tuple, args: tuple, kwargs: dict) -> Choice | None:
    """What is known of calls with such arguments; None where one of a new kind is to run as it
    stands, since there is no time left to record it."""
    choice = options.choices.get(key)
    if choice is None and not config.only_known() and options.budget.captures(args, kwargs):
        choice = new_choice(options.choices, key, options.budget)
    return choice


def of_step(c: Capture, arrays: list[Any]) -> Decision:
    """A NumPy call of these arrays that was not made before in its place."""
    budget = c.budget
    if not c.weighs or budget.owed < budget.lent:
        return _KERNELS
    if budget.records(sum([elements(a) * a.itemsize for a in arrays]), _worked(c)):
        return _KERNELS
    return Decision(Way.NUMPY, _NEW, max(LARGE, 2 * max(map(elements, arrays), default=0)))


def of_segment(c: Capture, node: Node, variants: Variants, begins: bool, pending: bool) -> Decision:
    """A segment without a program. begins: whether it was cut as a loop was found in it, and is no
    piece of the user's code. pending: whether a program for its size, among others, is being made
    beside the program."""
    if c.leaving:
        return _LEAVES if c.device is not None else _GOES_ON
    if config.only_known():
        by_operators = c.tensors or c.device is not None or bool(node.guesses)
        return _NOT_KNOWN_ON_TENSORS if by_operators else _NOT_KNOWN
    if pending:
        c.pended += 1
        if c.pended > _PENDED and c.immediate and not node.guesses:
            return Decision(Way.NUMPY, _FOR_SIZES.reason, _largest(node))
        return _FOR_SIZES_ON_TENSORS if c.tensors else _FOR_SIZES
    if c.options.compiles.are_enough(node, c.options.name):
        return Decision(
            Way.OPERATORS if c.tensors or c.device is not None or node.guesses else Way.NUMPY,
            "it was compiled as often as the setting `recompile_limit` says",
            _largest(node),
        )
    if not c.weighs or node.guesses:
        return _KERNELS
    body = not begins or is_patient(c)
    if not body and not variants.met:
        variants.met = True
        return _BEGINNING
    whole = body and node.inputs <= _INPUTS
    if c.budget.compiles(effort(node), node.bytes, _worked(c), whole):
        return _KERNELS
    return Decision(Way.NUMPY, _NEW, _largest(node), rest=not begins)


def is_beside(c: Capture, node: Node) -> bool:
    """Whether a call is not to wait until a segment without a program is translated."""
    return (
        c.weighs
        and likely_seconds(node.count, node.bytes) < _COMPILE + _TRANSLATE * effort(node)
        and c.listener is None
        and not config.waits()
        and c.device is None
        and not (c.tensors or node.guesses)
        and c.options.backend == "native"
    )


def of_pending(c: Capture, program: Program, node: Node, again: bool) -> Decision:
    """A segment that ends at a node, whose program is being compiled. again: whether it was when
    the segment ran before, as in a loop; what follows runs in NumPy too then."""
    wanted = (config.waits() or c.listener is not None) and not config.only_known()
    if wanted or program.seconds_left <= likely_seconds(node.count, node.bytes):
        program.wait()
        return _KERNELS
    return Decision(
        Way.OPERATORS if c.tensors else Way.NUMPY,
        "the C compiler is at work on it",
        rest=again,
    )


def of_value(c: Capture, node: Node) -> Decision:
    """A segment ended at a node, and has run, as Python asks for a value, or as a loop without
    marks comes again. Where that is little work again and again, it goes on in NumPy."""
    if c.device is not None:
        if is_small(node.count, node.bytes):
            c.asked += 1
            if c.asked >= _ASKED and may_leave(c):
                c.asked = 0
                why = "Python asks for one small value after the other"
                return to_the_host(why, "function", LARGE)
        return _KERNELS
    always = config.plain == "always"
    if not always and not does_too_little(c, node.count, node.bytes):
        return _KERNELS
    c.repeats[node] += 1
    if c.repeats[node] <= _REPEATS:
        return _KERNELS
    return ALWAYS_PLAIN if always else TOO_LITTLE


def _largest(node: Node) -> float:
    """Elements of an array that is far larger than those up to a node."""
    sizes = [2 * v.size for v in node.all_values()]
    return max(LARGE, *sizes) if sizes else float("inf")


def is_patient(c: Capture) -> bool:
    """Whether loops go on compiled, whatever they take now, for a call that may be kept."""
    return c.watch is not None and c.watch.waits


def does_too_little(c: Capture, calls: int, touched: int) -> bool:
    """Whether NumPy carries out what comes again in host memory sooner than it is recorded, and the
    call is none that may be kept."""
    return (
        c.weighs
        and c.device is None
        and calls > 0
        and likely_seconds(calls, touched) < recorded_seconds(calls)
        and not is_patient(c)
    )


def is_small(calls: int, touched: int) -> bool:
    """Whether NumPy carries out so many calls, on so many bytes, sooner than a device begins."""
    return touched < _BYTES + _BYTES_OF_A_CALL * calls


def to_the_host(why: str, what: str, limit: float) -> Decision:
    """Leave the device: what goes on in NumPy then."""
    return Decision(Way.NUMPY, f"{why}: the {what} goes on in NumPy, in host memory", limit)


def may_leave(c: Capture) -> bool:
    """Whether a call on a device may go on in NumPy: not where a gradient would be lost."""
    return (
        c.device is not None
        and not c.plain
        and not c.fullgraph
        and config.plain != "never"
        and not c.differentiates()
    )


def _worked(c: Capture) -> float:
    """Seconds that the call took so far, without what recording and compiling took."""
    return _clock() - c.began - c.overhead
