"""A tensor graph as an executable: the passes in their order, the C, and its run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import fx

from np_compile import config

from . import build, emit, libm, memory
from .collapse import collapse, flatten
from .contract import contract
from .execute import Executable, Source
from .fuse import fuse
from .guard import guard
from .in_place import in_place
from .inline import inline
from .ir import Program, check
from .order import order
from .overwrite import overwrite
from .partition import partition
from .pieces import pieces
from .prelude import prelude
from .reuse import reuse
from .scans import scans
from .scatter import scatter
from .schedule import schedule
from .share import share
from .skew import skew
from .split import split
from .stage import stage
from .tile import tile
from .translate import Translation
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


def generate(graph: fx.Graph, attributes: Callable[[str], torch.Tensor]) -> Source:
    """The C of a tensor graph. Unsupported, if the graph has no translation."""
    translation = Translation(graph, attributes)
    program = translation.program
    for step in PASSES:
        program = step(program)
        if config.debug:
            check(program)
    layout = memory.plan(program)
    body, sections = emit.source(program, layout)
    vector_math = libm.vector_math_available(build.compiler().kind)
    return Source(program, translation, layout, prelude(body, vector_math) + body, sections)


Listener = Callable[["Executable"], None]
_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within the block, `listener` is told of every program that is compiled."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def compile_graph(module: fx.GraphModule) -> Executable:
    """The executable of a tensor graph on the CPU."""
    source = generate(module.graph, lambda name: getattr(module, name))
    made = Executable(source, lambda *tensors: module.forward(*tensors))
    for listener in _listeners:
        listener(made)
    return made
