"""One call of a compiled function: arguments in, the function on substituted names, results out."""

from __future__ import annotations

import functools
import sys
import time
import types
from typing import Any

import torch

from np_compile import config, shim
from np_compile.runtime.buffers import export
from np_compile.shim._saved import following
from np_compile.tape.node import Break

from . import state
from .arrays.array import Array
from .arrays.tensors import Unusual
from .arrays.traced import gives_traced, has_traced, released, values
from .capture import Capture
from .exchange.arguments import Exchange
from .exchange.escape import replace_escaped
from .frames import as_user
from .masks.masked import returned
from .names.recording import BY_IDENTITY, TensorDoors
from .names.substitute import compares_numpy
from .policy import decide
from .policy.budget import Budget
from .policy.choice import Choice, new_choice, signature
from .policy.guess import Wrong
from .segments import Late
from .state import Options

_END = Break("end", "the function ends")
_DOORS = ("numpy", "asarray", "from_numpy", "as_tensor")  # between arrays and tensors


class NotCaptured(Exception):
    """The function, which has not begun, is to run as it stands: an argument is a tensor that
    kernels cannot take, a stand-in of another call, or an object by which a cache finds what it
    keeps; or it may wait for other threads."""


_GOES_ON = "an argument comes to an array by itself: what is recorded may be done later"
_WITHIN = "code outside calls it within a compiled call, and it comes to arrays of that call"
_CACHED = "a method keeps what it gives for an object with arrays, by functools.lru_cache"
_WAITS = "it comes to a lock: what is recorded would be done when the lock is given back"


def run(
    function: types.FunctionType, substitution: Any, options: Options, args: tuple, kwargs: dict,
    device: torch.device | None, listener: Any = None, keeper: Any = None,
) -> Any:  # fmt: skip
    """Call `function`; the result, and every effect, are the plain function's.

    It is captured, unless calls with such arguments were found to be faster as they are.
    keeper: where a call is kept, if it can be (see `replay.keeper`).
    """
    key = None if device is not None or options.tensors else signature(args, kwargs)
    call = function, substitution, options, args, kwargs, device, listener, key
    if options.tensors:
        with following(now=False):  # a segment may write to what an earlier one has saved
            return _charged(options.budget, True, keeper, *call, None)[0]
    if key is None or not options.adapts or not config.measures():
        return _charged(options.budget, True, keeper, *call, None)[0]
    choice = decide.of_call(options, key, args, kwargs)
    if choice is None:
        if listener is None:
            return options.budget.plainly(function, args, kwargs)
        choice = new_choice(options.choices, key, options.budget)
    if listener is None and choice.waits():
        return options.budget.waits(function, args, kwargs)
    if listener is None and choice.wants_plain():
        return choice.call(function, args, kwargs)
    budget, unknown = options.budget, choice.way is None
    if unknown and (budget.cold or budget.reads) and listener is None:
        return budget.plainly(function, args, kwargs)
    known = not unknown or listener is not None
    result, work, typical, seconds = _charged(budget, known, keeper, *call, choice)
    if listener is None:
        if typical:
            choice.ran_compiled(seconds, *work)
    elif choice.way == "plain":
        code = function.__code__
        listener("break", Break("plain", str(choice)), f"{code.co_filename}:{code.co_firstlineno}")
    return result


def _charged(
    budget: Budget, known: bool, *call: Any
) -> tuple[Any, tuple[int, int, int], bool, float]:
    """As `_captured`, and the seconds that it took, which the function's account is told."""
    start, owed = time.perf_counter(), budget.owed
    result, work, typical = None, (0, 0, 0), False
    try:
        result, work, typical = _captured(*call)
    finally:
        seconds = time.perf_counter() - start
        seconds_alone, again = seconds - max(budget.owed - owed, 0.0), typical and not work[0]
        budget.captured(seconds_alone, *work[1:], known, again)
    return result, work, typical, seconds


def _captured(keeper: Any, *call: Any) -> tuple[Any, tuple[int, int, int], bool]:
    """As `_once`; where a guess was wrong, again without guesses."""
    try:
        return _once(keeper, *call)
    except Wrong:
        keeper.guessed_wrong()
    return _once(None, *call)


def _place(function: types.FunctionType) -> str:
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


def _once(
    keeper: Any, function: types.FunctionType, substitution: Any, options: Options, args: tuple,
    kwargs: dict, device: torch.device | None, listener: Any, key: tuple | None,
    choice: Choice | None,
) -> tuple[Any, tuple[int, int, int], bool]:  # fmt: skip
    """The result; programs that were compiled, NumPy calls in segments, bytes they touch; whether
    calls like it will take the time that it took: not if it is kept, or kernels are not there
    yet."""
    export(Array, Array._read_by_c)
    watch = None if keeper is None else keeper.watch(args, kwargs)
    if keeper is not None and keeper.elements_change and options.dynamic is None:
        options.elements_are_data = True
    capture = Capture(options, device, listener)
    capture.signature = key if device is None else signature(args, kwargs)
    capture.watch = watch
    capture.in_vain = keeper is not None and keeper.in_vain
    capture.traces = watch is not None and watch.traces and options.dynamic is not False
    capture.substitution = substitution
    exchange = capture.exchange = Exchange(capture)
    before = state.switch(capture, substitution)
    kept = False
    raised = True
    result: Any = None
    f: Any = None
    given_args: Any = None
    given_kwargs: Any = None
    try:
        f = substitution.function(function)
        substitution.enter()
        try:
            try:
                given_args = [exchange.take(a) for a in args]
                given_kwargs = {k: exchange.take(v) for k, v in kwargs.items()}
            except BaseException as e:
                exchange.copies.clear()  # half taken in, there is nothing to carry back
                if type(e) is Unusual:
                    why = "an argument is a tensor that kernels cannot take: operator by operator"
                    raise NotCaptured(why) from None
                raise
            if exchange.is_within:
                raise NotCaptured(_WITHIN)
            if exchange.is_cached:
                raise NotCaptured(_CACHED)
            if not options.tensors:
                if exchange.is_read_outside():
                    raise NotCaptured(_GOES_ON)
                if substitution.entrances.locks:
                    raise NotCaptured(_WAITS)
                if compares_numpy(function):
                    raise NotCaptured(f"it {BY_IDENTITY}")
            if len(capture.known) > 1:
                capture.separate()
            if substitution.mentions("torch") or (
                any(map(substitution.mentions, _DOORS))
                if options.tensors
                else any(isinstance(a, torch.Tensor) for a in (*args, *kwargs.values()))
            ):
                with TensorDoors():
                    result = f(*given_args, **given_kwargs)
            elif substitution.mentions("warn"):  # of the line that made the call, it may be
                result = as_user(1)(functools.partial(f, **given_kwargs), *given_args)
            else:
                result = f(*given_args, **given_kwargs)
            if capture.traces and gives_traced(result):
                capture.watch.sees("sizes that the function gives")
                result = released(result)
            returned(capture, result)
            capture.cut(_END)
            options.calls = capture.count
            capture.change_callers()
            if watch is not None:
                capture.watch, capture.traces = None, False
                if capture.awaited is None:
                    kept = keeper.keep(watch, args, kwargs, exchange, result, choice)
            try:
                result = exchange.give(result)
            except shim.NotSupported as e:
                e.add_note(f"  of what {options.name} gives, at {_place(function)}")
                raise
        except Late as e:
            _deliver(capture, e.error)
            raise e.error from None
        except BaseException as e:
            _deliver(capture, e)
            raise
        finally:
            capture.finish()
            exchange.restore()
            substitution.leave(exchange.give_name)
        raised = False
        if device is not None and not options.tensors and listener is None:
            vain: bool | None = None
            if capture.awaited is None:
                vain = capture.device is None or decide.is_small(capture.count, capture.bytes)
            options.places.note(args, kwargs, vain, capture.count, capture.bytes)
            options.places.makes_tensors |= substitution.uses_torch()
        if choice is not None:
            choice.awaited = capture.awaited
        options.budget.awaits(capture.awaited)
        typical = not kept and capture.awaited is None
        if choice is not None and listener is None:
            nothing = capture.ran is None and (keeper is None or not keeper.may_keep(args))
            choice.vain = typical and nothing
        return result, (capture.built, capture.count, capture.bytes), typical
    finally:
        state.switch(*before)
        del f, given_args, given_kwargs
        exchange.clear()

        def reachable() -> list:
            return [function, result, args, kwargs, sys.exception(), *substitution.reachable()]

        held = [capture]
        del capture
        replace_escaped(held, reachable, raised)


def _deliver(capture: Capture, error: BaseException) -> None:
    """An exception leaves the function: what was recorded before it still happens."""
    capture.fullgraph = False
    capture.cut(_END)
    if any(type(a) is Array for a in error.args):
        error.args = tuple(capture.to_caller(a) if type(a) is Array else a for a in error.args)
    if capture.traces and has_traced(error.args):
        error.args = values(error.args)
