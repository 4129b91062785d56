"""The compiler's driver: translation, passes, C, and an executable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import fx

from np_compile import config

from .analysis import memory
from .analysis.footprint import sections
from .build.toolchain import compiler, vector_math_available
from .frontend.translate import Translation
from .ir import expr as E
from .ir.check import check
from .passes.pipeline import stages
from .run.execute import Executable, Source
from .target import HOST, Target
from .targets.c import program as emit
from .targets.c.prelude import prelude

_target: ContextVar[Target] = ContextVar("target", default=HOST)


def target() -> Target:
    """The machine that programs are compiled for."""
    return _target.get()


@contextmanager
def targeting(machine: Target) -> Iterator[None]:
    """Within the block, programs are compiled for another machine."""
    before = _target.set(machine)
    try:
        yield
    finally:
        _target.reset(before)


def generate(graph: fx.Graph, attributes: Callable[[str], torch.Tensor]) -> Source:
    """The C of a tensor graph. Unsupported, if the graph has no translation."""
    with E.fresh():
        return _generated(graph, attributes, target())


def _generated(
    graph: fx.Graph, attributes: Callable[[str], torch.Tensor], machine: Target
) -> Source:
    translation = Translation(graph, attributes)
    program = translation.program
    for step, stage in stages():
        program = step(program, machine)
        if config.debug:
            check(program, stage)
    layout = memory.plan(program, machine)
    nests = sections(program, layout, machine)
    body = emit.source(program, layout, nests)
    vector_math = vector_math_available(compiler().kind)
    return Source(
        program, translation.interface, layout, prelude(body, vector_math) + body, nests, machine
    )


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
