"""The passes of the compiler, in their order."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.program import Program
from .collapse import collapse, flatten
from .contract import contract
from .fuse import fuse
from .guard import guard
from .in_place import in_place
from .inline import inline
from .order import order
from .overwrite import overwrite
from .partition import partition
from .pieces import pieces
from .reuse import reuse
from .scans import scans
from .scatter import scatter
from .schedule import schedule
from .share import share
from .skew import skew
from .split import split
from .stage import stage
from .tile import tile
from .unroll import unroll
from .winners import winners

# Program -> Program, in this order.
PASSES: tuple[Callable[[Program], Program], ...] = (
    share,
    inline,
    unroll,
    inline,
    winners,
    in_place,
    pieces,
    scatter,
    guard,
    order,
    partition,
    scans,
    fuse,
    contract,
    reuse,
    skew,
    overwrite,
    flatten,
    collapse,
    tile,
    split,
    stage,
    schedule,
)
