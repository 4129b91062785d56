"""What the tools accept: a compiled function, or one to compile with the defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def compiled_of(fn: Callable) -> Any:
    """The Compiled behind `fn`; a plain function is compiled first."""
    from np_compile.api import Compiled, compile

    return fn if isinstance(fn, Compiled) else compile(fn)
