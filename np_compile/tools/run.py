"""Only what is compiled already: for programs that must not stop to compile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from np_compile import config
from np_compile.errors import NotCompilable


def run(fn: Callable) -> Callable:
    """A function that gives what the compiled function `fn` gives, and never compiles.

    Calls for which `fn` has programs run them; all others run in NumPy (tensors operator by
    operator), however often they come. Warm `fn` up with such calls as are to be served.

    Errors: NotCompilable for a function that is not compiled.

    >>> import numpy as np, np_compile
    >>> f = np_compile.compile(lambda x: np.sin(x) + 1, backend="eager")
    >>> _ = f(np.zeros(3))
    >>> serve = np_compile.run(f)
    >>> serve(np.zeros(3)), serve(np.zeros(2)), np_compile.compile_times(f).programs
    (array([1., 1., 1.]), array([1., 1.]), 1)
    """
    from np_compile.api import Compiled

    if not isinstance(fn, Compiled):
        raise NotCompilable(
            f"run: {fn!r} is not compiled, so there is nothing that could run\n"
            "  Remedy: run(compile(f))."
        )

    @functools.wraps(fn)
    def known(*args: Any, **kwargs: Any) -> Any:
        with config.nothing_new():
            return fn(*args, **kwargs)

    return known
