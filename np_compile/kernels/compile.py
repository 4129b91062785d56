"""The compiler's driver: translation, passes, C, and an executable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any

import torch
from torch import fx

from np_compile import config
from np_compile.size import Facts

from .analysis import memory
from .analysis.footprint import Footprint, sections
from .build.toolchain import compiler, vector_math_available
from .frontend.nodes import Unsupported
from .frontend.sizes import numbered, sized
from .frontend.translate import Translation
from .ir import expr as E
from .ir.check import check
from .ir.program import Program
from .passes.pipeline import stages
from .run.execute import Executable, RunForSizes, Source, fills, libraries_of
from .run.machine import gpu
from .run.sizes import AtSizes, at_sizes, calls_of, results_of
from .target import HOST, Gpu, Target
from .targets.c import program as emit
from .targets.c.prelude import prelude
from .targets.cuda import program as cuda
from .targets.cuda.loops import TooMuchShared

_HOST = torch.device("cpu")
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


def generate(
    graph: fx.Graph, attributes: Callable[[str], torch.Tensor], facts: Facts | None = None,
    device: torch.device = _HOST,
) -> Source:  # fmt: skip
    """The text of a tensor graph, for the target. Unsupported, if the graph has no translation.
    facts: of its symbols, where it is for many sizes. device: where its arrays lie."""
    with E.fresh():
        return _generated(graph, attributes, target(), facts, device)


def _generated(
    graph: fx.Graph, attributes: Callable[[str], torch.Tensor], machine: Target,
    facts: Facts | None, device: torch.device,
) -> Source:  # fmt: skip
    clock = time.perf_counter
    start = clock()
    gpu = isinstance(machine, Gpu)
    translation = Translation(graph, attributes, device, gpu)
    program = translation.program
    translated = clock()
    for step, stage in stages(machine):
        program = step(program, machine)
        if config.debug and facts is None:
            check(program, stage)
    passed = clock()
    layout = memory.plan(program, machine, facts)
    if facts is not None:
        layout.symbols = tuple(facts.values)
    nests: list[list[Footprint] | None] = []
    launches = None
    if isinstance(machine, Gpu):
        try:
            text, launches = cuda.source(program, layout, translation.interface.inputs, machine)
        except TooMuchShared as e:
            raise Unsupported(str(e)) from e
    else:
        nests, text = _c(program, layout, machine, facts)
    seconds = {
        "translate": translated - start, "passes": passed - translated, "emit": clock() - passed,
    }  # fmt: skip
    interface = translation.interface
    return Source(program, interface, layout, text, lambda: nests, machine, launches, seconds)


def _c(
    program: Program, layout: memory.Layout, machine: Target, facts: Facts | None
) -> tuple[list[list[Footprint] | None], str]:
    """The C of a program, with the nests of each section that may run in parts: those of one for
    many sizes as they are at hand."""
    if facts is None:
        nests = sections(program, layout, machine)
    else:
        now = AtSizes(facts.values)
        nests = sections(now.program(program), now.layout(layout), machine)
    body = emit.source(program, layout, [found is not None for found in nests])
    vector_math = vector_math_available(compiler().kind)
    return nests, prelude(body, vector_math) + body


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


def compile_graph(module: fx.GraphModule, device: torch.device = _HOST) -> Executable:
    """The executable of a tensor graph whose arrays lie on a device. Unsupported, NoCuda: it has
    none there."""
    if device.type != "cpu":
        return _on_gpu(module, device)
    source = generate(module.graph, lambda name: getattr(module, name))
    libraries = libraries_of(source, config.waits())
    return _told(Executable(source, lambda *tensors: module.forward(*tensors), libraries))


def _on_gpu(module: fx.GraphModule, device: torch.device) -> Executable:
    """The executable of a tensor graph on a GPU."""
    from .run.graphed import Graphed, can_be_one_graph
    from .run.on_gpu import OnGpu, modules_of

    with targeting(gpu(device)):
        source = generate(module.graph, lambda name: getattr(module, name), None, device)
    parts = source, lambda *tensors: module.forward(*tensors), device, modules_of(source, device)
    if can_be_one_graph(source):
        return _told(Graphed(*parts, graphs=lambda: config.cuda_graphs))
    return _told(OnGpu(*parts))


def _told(made: Executable) -> Executable:
    for listener in _listeners:
        listener(made)
    return made


class ForSizes:
    """A tensor graph compiled for many sizes: `bind` gives the executable of some.

    facts: what is known of the graph's symbols. places: of each among the sizes. integers: places
    of the sizes that it takes as inputs; None where it is `sized` already, and takes none. device:
    where its arrays lie. Unsupported, NoCuda: it has none there.
    """

    def __init__(
        self, module: fx.GraphModule, facts: Facts, places: Sequence[int],
        integers: Sequence[int] | None, device: torch.device = _HOST,
    ):  # fmt: skip
        self._module = module
        self._device = device
        self._integers = integers
        graph = module.graph if integers is None else sized(module.graph, facts)
        self._places = tuple(places)
        self._symbols = tuple(facts.values)
        self._facts = facts
        with targeting(target() if device.type == "cpu" else gpu(device)):
            self._source = generate(graph, lambda name: getattr(module, name), facts, device)
        self._built = self._build()
        self._first: Executable | None = None  # that was bound
        self._last: tuple[Any, Executable] | None = None  # sizes, and what was bound to them
        self._results: Callable[[Mapping[str, int]], Sequence[Any]] | None = None
        self._calls: Callable[[Mapping[str, int]], Sequence[Any]] | None = None

    @property
    def guards(self) -> tuple[str, ...]:
        """What the passes ask of sizes."""
        return tuple(map(str, self._facts.guards))

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of the compile by phase."""
        return {**self._source.seconds, "compiler": self._built.took}

    @property
    def ready(self) -> bool:
        """Whether its kernels are compiled."""
        return bool(getattr(self._built, "ready", True))  # CUDA's compiler is waited for

    @property
    def runs_alone(self) -> bool:
        """Whether it does no more than to run kernels that make arrays, see `with_sizes`."""
        alone = self._results is not None and self._calls is None
        return alone and self._source.launches is None

    def symbols(self, sizes: Sequence[Any]) -> dict[str, Any]:
        """What its symbols are for sizes."""
        return {name: sizes[k] for name, k in zip(self._symbols, self._places, strict=False)}

    def results(self, symbols: Mapping[str, Any]) -> list[tuple]:
        """Shape, strides and bytes of what it gives, of one that runs alone. symbols: of sizes,
        which may be those of another compile."""
        assert self._results is not None
        assert self._first is not None
        later = dict.fromkeys(self._facts.recipes, 0)  # what follows from sizes is no extent
        made = self._results({**symbols, **later})
        widths = [o.dtype.itemsize for o in self._first.fresh]
        for (shape, strides, size), width in zip(made, widths, strict=False):
            if not fills(shape, strides, width, size):
                raise LookupError("results lie in memory in another way")
        return [made[k] for k in self._first.order]

    def with_sizes(self, symbols: Mapping[str, int], integers: Sequence[int]) -> RunForSizes:
        """As `bind`, for the runs of one call, of one that runs alone. symbols: see `symbols`.
        integers: those of the sizes that the graph takes."""
        assert self._results is not None
        assert self._first is not None
        values = self._facts.all_values(symbols)
        *results, scratch = self._results(values)
        eager = self._eager(values, integers)
        return self._first.with_sizes(eager, self._numbers(values), results, scratch)

    def _numbers(self, values: Mapping[str, int]) -> list[int]:
        """The sizes that kernels take: facts may hold those of another compile, too."""
        return [values[name] for name in self._source.layout.symbols]

    def _eager(self, values: Mapping[str, int], integers: Sequence[int]) -> Callable[..., Any]:
        """The graph, operator by operator."""
        module = self._module
        if self._integers is not None:
            return lambda *tensors: module.forward(*tensors, *integers)
        return lambda *tensors: fx.GraphModule(module, numbered(module.graph, values))(*tensors)

    def _build(self) -> Any:
        """What all executables share: libraries, or the kernels of a GPU."""
        if self._source.launches is None:
            return libraries_of(self._source, config.waits())
        from .run.on_gpu import modules_of

        return modules_of(self._source, self._device)

    @cached_property
    def _holds(self) -> Callable[[Sequence[int]], bool]:
        self._facts.closed = True  # what is asked of sizes is known
        return self._facts.predicate()

    def serves(self, sizes: Sequence[int]) -> bool:
        """Whether the guards are true of sizes."""
        return self._holds([sizes[k] for k in self._places])

    def values(self, sizes: Sequence[int]) -> dict[str, int]:
        """What all its symbols are for sizes."""
        return self._facts.all_values(self.symbols(sizes))

    def bind(self, sizes: Sequence[int]) -> Executable:
        """The executable for these sizes. All share one library. Steps of a loop come one after
        the other, and have the same one."""
        given = tuple([sizes[k] for k in self._places])
        more = tuple([sizes[k] for k in self._integers or ()])
        last = self._last
        if last is not None and last[0] == (given, more):
            return last[1]
        made = _told(self._bound(given, more))
        self._last = (given, more), made
        return made

    def _bound(self, given: tuple[int, ...], more: tuple[int, ...]) -> Executable:
        values = self._facts.all_values(dict(zip(self._symbols, given, strict=False)))
        eager = self._eager(values, more)
        made = None
        numbers = self._numbers(values)
        if self._first is not None:
            assert self._results is not None
            *results, scratch = self._results(values)
            calls = self._calls and self._calls(values)
            made = self._first.at_sizes(
                lambda: at_sizes(self._source, values), eager, numbers, results, scratch, calls
            )
        if made is None:
            source = at_sizes(self._source, values)
            made = self._executable(source, eager, numbers)
            if self._first is None:
                self._goes_by(made, source)
        return made

    def _goes_by(self, made: Executable, source: Source) -> None:
        """The first executable, of which others are made. source: what it was made of."""
        stands = dict(zip(self._source.program.buffers, source.program.buffers, strict=True))
        general = {now: b for b, now in stands.items()}
        fresh = {general[o.buffer]: o.buffer in made.whole for o in made.fresh}
        self._results = results_of(self._source, fresh)
        if made.places is None:
            self._calls = calls_of(self._source, stands)
        self._first = made

    def _executable(
        self, source: Source, eager: Callable[..., Any], sizes: Sequence[int]
    ) -> Executable:
        if source.launches is None:
            return Executable(source, eager, self._built, sizes)
        from .run.on_gpu import OnGpu

        general = self._source.launches
        return OnGpu(source, eager, self._device, self._built, sizes, general)
