"""The arguments of a call of a function: bound to its parameters, and how large they are."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np


def bytes_of(values: Any) -> int:
    """The bytes of arrays, also in dicts, tuples and lists."""
    if isinstance(values, np.ndarray):
        return values.nbytes
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, (tuple, list)):
        return 0
    return sum(map(bytes_of, values))


def magnitudes(values: dict[str, Any]) -> tuple:
    """Of integers and arrays' sizes, how large they are, roughly."""
    return tuple([
        max(n.bit_length() - 3, 0)
        for v in values.values()
        if type(n := v.size if isinstance(v, np.ndarray) else v) is int
    ])  # fmt: skip


def binder(f: types.FunctionType) -> Callable[..., dict[str, Any]] | None:
    """A function with the parameters of `f`, which gives their values; None if it takes any."""
    code = f.__code__
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    n, only = code.co_argcount, code.co_kwonlyargcount
    names = list(code.co_varnames[: n + only])
    shown = names[:n]
    if code.co_posonlyargcount:
        shown.insert(code.co_posonlyargcount, "/")
    shown += ["*", *names[n:]] if only else []
    made = ", ".join(f"{x!r}: {x}" for x in names)
    scope: dict[str, Any] = {}
    exec(f"def bind({', '.join(shown)}): return {{{made}}}", scope)
    bind: Callable[..., dict[str, Any]] = scope["bind"]
    return bind
