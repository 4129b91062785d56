"""A line on the terminal while something compiles for longer than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def progress(name: str, node: Any, after: float = 1.0) -> Iterator[None]:
    """Within the block: after a second, say what is being compiled; wipe the line at the end.

    Only where standard error is a terminal.
    """
    stream = sys.stderr
    if not stream.isatty():
        yield
        return
    shown = threading.Event()

    def show() -> None:
        shown.set()
        stream.write(f"\rnp_compile: compiling {name}, {node.count} NumPy calls ...")
        stream.flush()

    timer = threading.Timer(after, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if shown.is_set():
            stream.write("\r\x1b[K")
            stream.flush()
