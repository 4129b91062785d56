"""The thread pool of the kernels, `pool.c`: compiled once, then loaded from the cache.

A kernel is given the address of `npc_run` and calls it as a function; see the head of `pool.c`.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from .. import build


@functools.cache
def source() -> str:
    """The C text of the pool, to be compiled beside a first kernel by `build.load_all`."""
    return Path(__file__).with_name("pool.c").read_text(encoding="utf-8")


@functools.cache
def library() -> ctypes.CDLL:
    """The loaded pool, the same in all threads: one pool serves the process."""
    return build.load(source(), name="pool")


@functools.cache
def run_address() -> int:
    """The address of `npc_run`, as an integer that a kernel takes as a function pointer."""
    address = ctypes.cast(library().npc_run, ctypes.c_void_p).value
    assert address is not None
    return address
