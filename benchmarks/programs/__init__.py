"""The benchmark programs, by theme. Importing this package fills the table."""

from . import elementwise, indexed, integers, learning, reductions, rowwise, stencils, sweeps
from .registry import PROGRAMS, SIZES, Program

__all__ = [
    "PROGRAMS",
    "SIZES",
    "Program",
    "elementwise",
    "indexed",
    "integers",
    "learning",
    "reductions",
    "rowwise",
    "stencils",
    "sweeps",
]
