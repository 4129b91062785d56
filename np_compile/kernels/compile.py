"""The compiler's driver: translation, passes, C, and an executable."""

from __future__ import annotations

import time
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
    machine = target()
    clock = time.perf_counter
    start = clock()
    translation = Translation(graph, attributes)
    program = translation.program
    translated = clock()
    for step, stage in stages():
        program = step(program, machine)
        if config.debug:
            check(program, stage)
    passed = clock()
    layout = memory.plan(program, machine)
    nests = sections(program, layout, machine)
    body = emit.source(program, layout, nests)
    vector_math = vector_math_available(compiler().kind)
    text = prelude(body, vector_math) + body
    seconds = {
        "translate": translated - start, "passes": passed - translated, "emit": clock() - passed,
    }  # fmt: skip
    return Source(program, translation.interface, layout, text, nests, machine, seconds)


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
    made = Executable(source, lambda *tensors: module.forward(*tensors), config.waits())
    for listener in _listeners:
        listener(made)
    return made
