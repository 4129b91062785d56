"""The benchmark programs, by theme. Importing this package fills the table."""

from . import (
    elementwise,
    indexed,
    integers,
    learning,
    loops_discrete,
    loops_fields,
    loops_linear,
    loops_physics,
    loops_signals,
    reductions,
    rowwise,
    stencils,
    sweeps,
)
from .registry import LOOPS, PROGRAMS, SIZES, Program

__all__ = [
    "LOOPS",
    "PROGRAMS",
    "SIZES",
    "Program",
    "elementwise",
    "indexed",
    "integers",
    "learning",
    "loops_discrete",
    "loops_fields",
    "loops_linear",
    "loops_physics",
    "loops_signals",
    "reductions",
    "rowwise",
    "stencils",
    "sweeps",
]
