"""Floating-point errors of calls on tensors: whether there may be one that somebody asks for by
`np.errstate`, and the call made again in NumPy, which gives it.
"""

from __future__ import annotations

import cmath
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ._dtypes import TO_NUMPY
from ._host import Handing, Stays, is_concrete, mode
from ._ndarray import ndarray, within
from ._signals import ONE_THREAD, level_beyond


def doubtful(r: Any, divides: bool, noted: Callable[[], bool] | None = None) -> bool:
    """Whether some element of a row's result may come of a floating-point error that somebody
    asks for. divides: integers may err, too. noted: as in `_signals`, where the row is one of
    those that this is for."""
    if type(r) is ndarray:
        return may_err(r._t, divides, noted)
    return type(r) is tuple and any(doubtful(part, divides) for part in r)


def again(own: Callable, args: tuple, kwargs: dict) -> None:
    """Have NumPy make a call again, for the errors that it gives as `np.errstate` asks."""
    if mode.strict or within.wrapped:
        return
    handing = Handing()
    try:
        given = [handing.give(v) for v in args]
        named = {k: handing.give(v) for k, v in kwargs.items()}
    except Stays:
        return
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            own(*given, **named)
        except FloatingPointError as error:
            raise error from None
    for warning in seen:
        if issubclass(warning.category, RuntimeWarning):
            warnings.warn(warning.message, stacklevel=level_beyond())


_DIVISIONS = frozenset(
    (np.floor_divide, np.remainder, np.fmod, np.divmod, "__floordiv__", "__mod__", "__divmod__")
)


def is_division(own: Callable) -> bool:
    """Whether a function of NumPy's, or a method of it, may err on integers."""
    names = own, getattr(own, "__self__", None), getattr(own, "__name__", "")
    return any(n in _DIVISIONS for n in names)


# The variable that holds what np.errstate set, and what it was, and said, when last looked at.
_errstate = getattr(np._core.umath, "_extobj_contextvar", None)
_seen: tuple[Any, bool, bool] = (None, True, True)


def asked() -> tuple[bool, bool]:
    """Whether somebody wants to hear of underflow, and of the other floating-point errors."""
    global _seen
    state = None if _errstate is None else _errstate.get()
    known = _seen
    if state is None or known[0] is not state:
        heard = {error: how != "ignore" for error, how in np.geterr().items()}
        under = heard.pop("under")
        _seen = known = state, under, any(heard.values())
    return known[1], known[2]


def doubtful_cast(args: tuple, r: Any) -> bool:
    """Whether `args[0].astype(...)` may have come to a value that the other dtype has not."""
    if type(r) is not ndarray or type(args[0]) is not ndarray or not any(asked()):
        return False
    given, t = args[0].tensor, r._t
    inexact = t.is_floating_point() or t.is_complex()
    if inexact or t.dtype is torch.bool or not (given.is_floating_point() or given.is_complex()):
        return inexact and given.dtype is not t.dtype and may_err(t, False, None)
    if not is_concrete(given) or not is_concrete(t):
        return False
    return not torch.equal(t.to(torch.float64), torch.trunc(given.real).to(torch.float64))


# Rows that store an argument into their first: its place and name.
STORES = {"ndarray.__setitem__": (2, "value"), "ndarray.fill": (1, "value"), "copyto": (1, "src")}


def cast_with_loss(args: tuple, value: Any) -> tuple[np.ndarray, np.dtype] | None:
    """A value that is stored into `args[0]`, as an array of NumPy's, and the dtype there, where
    the cast drops imaginary parts, or is a floating-point error that somebody asks for."""
    target = args[0] if args else None
    if type(target) is not ndarray or hasattr(target, "_own") or not is_concrete(target._t):
        return None
    dtype = TO_NUMPY[target._t.dtype]
    if type(value) is ndarray and value.dtype == dtype:
        return None
    if dtype.kind == "b" or (type(value) in (bool, int, float) and dtype.char in "dD"):
        return None
    try:
        given = np.asarray(Handing().give(value))
    except (Stays, TypeError, ValueError):  # the row has the word
        return None
    if given.dtype.kind == "c" and dtype.kind != "c":
        return given, dtype
    if any(asked()) and not np.can_cast(given.dtype, dtype, "safe"):
        try:
            with np.errstate(all="raise", under="ignore"):
                given.astype(dtype)
        except FloatingPointError:
            return given, dtype
        except (ArithmeticError, TypeError, ValueError):
            return None
    return None


def may_err(t: torch.Tensor, divides: bool, noted: Callable[[], bool] | None) -> bool:
    dtype = t.dtype
    if dtype.is_floating_point or dtype.is_complex:
        under, others = asked()
        if not (under or others):
            return False
        if noted is not None and not under and dtype is not torch.float16:
            size = t.numel()  # where it is a symbol, nothing is to be asked of it
            if type(size) is int and size <= ONE_THREAD and not noted():
                return False
        if not is_concrete(t):
            return False
        if under:
            return True
        if not t.dim():
            return not cmath.isfinite(t.item())
        values = (t.resolve_conj().resolve_neg() if t.is_complex() or t.is_neg() else t).numpy()
        return not np.isfinite(values).all()
    # by 0: 0; the lowest integer by -1: itself, or 0
    return divides and is_concrete(t) and bool(((t == 0) | (t == torch.iinfo(t.dtype).min)).any())
