"""The passes of the compiler, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..ir.program import Program
from ..target import Gpu, Target
from .array_contraction import array_contraction
from .buffer_reuse import buffer_reuse
from .check_hoisting import check_hoisting
from .collapse import collapse
from .copy_elision import copy_elision
from .cse import cse
from .dead_code import eliminate_dead_code
from .dead_store_elimination import dead_store_elimination
from .double_buffering import double_buffering
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
from .row_caching import row_caching
from .scan_blocking import scan_blocking
from .scatter_calls import scatter_calls
from .scatter_privatization import scatter_privatization
from .scatter_sharing import scatter_sharing
from .schedule import schedule
from .store_trimming import store_trimming
from .thread_mapping import thread_mapping
from .tile import tile
from .unroll import unroll

Pass = Callable[[Program, Target], Program]


def followed(first: Pass, *others: Pass) -> Pass:
    """A pass, and where it changes the steps, others."""

    def both(program: Program, machine: Target) -> Program:
        before = list(program.steps)
        program = first(program, machine)
        if program.steps != before:
            for step in others:
                program = step(program, machine)
        return program

    both.__name__ = first.__name__
    return both


# In this order.
PASSES: tuple[Pass, ...] = (
    cse,
    inline,
    eliminate_dead_code,
    unroll,
    inline,
    eliminate_dead_code,
    last_writer,
    eliminate_dead_code,
    copy_elision,
    store_trimming,
    followed(region_splitting, inline, eliminate_dead_code, store_trimming),
    eliminate_dead_code,
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

# The same for a GPU. What is left out serves caches of one core, vectors, or an order of statements
# that threads do not keep.
GPU_PASSES: tuple[Pass, ...] = (
    cse,
    inline,
    eliminate_dead_code,
    unroll,
    inline,
    eliminate_dead_code,
    copy_elision,
    store_trimming,
    eliminate_dead_code,
    double_buffering,
    scatter_calls,
    check_hoisting,
    loop_order,
    reduction_splitting,
    scan_blocking,
    fuse,
    array_contraction,
    buffer_reuse,
    dead_store_elimination,
    linearize,
    collapse,
    scatter_sharing,
    thread_mapping,
    row_caching,
)

# The stage (`ir.check`) that a pass leaves a program in; the others keep it.
_BEGINS: dict[Pass, str] = {
    fuse: "loops",
    linearize: "linear",
    schedule: "scheduled",
    thread_mapping: "scheduled",
}


def stages(machine: Target) -> Iterator[tuple[Pass, str]]:
    """The passes for a machine, each with the stage that a program is in after it."""
    stage = "statements"
    for step in GPU_PASSES if isinstance(machine, Gpu) else PASSES:
        stage = _BEGINS.get(step, stage)
        yield step, stage
