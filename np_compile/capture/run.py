"""One call of a compiled function: arguments in, the function on substituted names, results out."""

from __future__ import annotations

import types
from typing import Any

import torch

from . import state
from .arguments import Exchange
from .array import Array
from .escape import replace_escaped
from .recorder import Capture
from .recording import TensorDoors
from .state import Options
from .tape import Break

_END = Break("end", "the function ends")


def run(
    function: types.FunctionType, substitution: Any, options: Options, args: tuple, kwargs: dict,
    device: torch.device | None, listener: Any = None,
) -> Any:  # fmt: skip
    """Call `function` captured; the result, and every effect, are the plain function's."""
    capture = Capture(options, device, listener)
    capture.substitution = substitution
    exchange = capture.exchange = Exchange(capture)
    before = getattr(state.local, "capture", None)
    state.local.capture = capture
    f: Any = None
    given_args: Any = None
    given_kwargs: Any = None
    try:
        f = substitution.function(function)
        substitution.enter()
        try:
            given_args = [exchange.take(a) for a in args]
            given_kwargs = {k: exchange.take(v) for k, v in kwargs.items()}
            if len(capture.known) > 1:
                capture.separate()
            if substitution.mentions("numpy") and (
                options.tensors
                or any(isinstance(a, torch.Tensor) for a in (*args, *kwargs.values()))
            ):
                with TensorDoors():
                    result = f(*given_args, **given_kwargs)
            else:
                result = f(*given_args, **given_kwargs)
            capture.cut(_END)
            result = exchange.give(result)
        except BaseException as e:
            _deliver(capture, e)
            raise
        finally:
            capture.finish()
            exchange.restore()
            substitution.leave(exchange.give)
        return result
    finally:
        state.local.capture = before
        del f, given_args, given_kwargs
        exchange.clear()
        replace_escaped(capture)


def _deliver(capture: Capture, error: BaseException) -> None:
    """An exception leaves the function: what was recorded before it still happens."""
    capture.fullgraph = False
    capture.cut(_END)
    if any(type(a) is Array for a in error.args):
        error.args = tuple(capture.outside(a) if type(a) is Array else a for a in error.args)
