"""The passes of the compiler, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..ir.program import Program
from ..target import Target
from .array_contraction import array_contraction
from .buffer_reuse import buffer_reuse
from .check_hoisting import check_hoisting
from .collapse import collapse
from .copy_elision import copy_elision
from .cse import cse
from .dead_store_elimination import dead_store_elimination
from .fuse import fuse
from .index_set_splitting import index_set_splitting
from .index_staging import index_staging
from .inline import inline
from .last_writer import last_writer
from .linearize import linearize
from .loop_order import loop_order
from .reduction_splitting import reduction_splitting
from .region_splitting import region_splitting
from .rolling_buffer import rolling_buffer
from .scan_blocking import scan_blocking
from .scatter_privatization import scatter_privatization
from .schedule import schedule
from .tile import tile
from .unroll import unroll

Pass = Callable[[Program, Target], Program]

# In this order.
PASSES: tuple[Pass, ...] = (
    cse,
    inline,
    unroll,
    inline,
    last_writer,
    copy_elision,
    region_splitting,
    scatter_privatization,
    check_hoisting,
    loop_order,
    reduction_splitting,
    scan_blocking,
    fuse,
    array_contraction,
    buffer_reuse,
    rolling_buffer,
    dead_store_elimination,
    linearize,
    collapse,
    tile,
    index_set_splitting,
    index_staging,
    schedule,
)

# The stage (`ir.check`) that a pass leaves a program in; the others keep it.
_BEGINS: dict[Pass, str] = {
    fuse: "loops",
    linearize: "linear",
    schedule: "scheduled",
}


def stages() -> Iterator[tuple[Pass, str]]:
    """The passes, each with the stage that a program is in after it."""
    stage = "statements"
    for step in PASSES:
        stage = _BEGINS.get(step, stage)
        yield step, stage
