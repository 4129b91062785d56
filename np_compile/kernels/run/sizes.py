"""A program for many sizes as that of some, with numbers for symbols: what a run needs of it, and
what may run in bands with others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from np_compile.size import Size, evaluated, function_of

from ..analysis.footprint import Footprint, sections
from ..analysis.launches import Launches
from ..analysis.memory import Layout
from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.program import Buffer, Call, Interface, Loop, Program, Statement, Tensor
from .execute import Source

Sections = list[list[Footprint] | None]


def at_sizes(source: Source, values: Mapping[str, int]) -> Source:
    """The program for these values of the symbols; its text is that of the program for many."""
    now = AtSizes(values)
    program, layout, t = now.program(source.program), now.layout(source.layout), source.interface
    launches = source.launches

    @functools.cache
    def nests() -> Sections:
        with E.fresh():
            found = sections(program, layout, source.machine)
        listed = source.sections()
        return [x if there is not None else None for x, there in zip(found, listed, strict=True)]

    return replace(
        source,
        program=program,
        interface=Interface(now.of(t.inputs), t.constants, now.of(t.outputs)),
        layout=layout,
        sections=nests,
        launches=None if launches is None else launches_at(launches, values, now.buffer),
        seconds={},
    )


class AtSizes:
    """What stands in a program for many sizes, with numbers for its symbols."""

    def __init__(self, values: Mapping[str, int]):
        self._values = values
        self._known: dict[Buffer, Buffer] = {}
        self._new = E.rewriter(self._changed)

    def program(self, program: Program) -> Program:
        """Its buffers and steps."""
        with E.fresh():
            steps = [self._step(s) for s in program.steps]
            conditions = [self._new(x) for x in program.conditions]
        integers = None if program.integers is None else self.buffer(program.integers)
        buffers = [self.buffer(b) for b in program.buffers]
        return Program(buffers, steps, program.notes, integers, conditions)

    def layout(self, layout: Layout) -> Layout:
        """Where the buffers lie."""
        return replace(
            layout,
            slots={self.buffer(b): k for b, k in layout.slots.items()},
            offsets={self.buffer(b): self.of(n) for b, n in layout.offsets.items()},
            size=self.of(layout.size),
        )

    def buffer(self, b: Buffer) -> Buffer:
        """The buffer that stands for one."""
        found = self._known.get(b)
        if found is None:
            shape, strides = self.of(b.shape), self.of(b.strides)
            found = self._known[b] = Buffer(b.name, b.dtype, shape, strides, b.kind, b.position)
        return found

    def of(self, x: Any) -> Any:
        """An argument of a call, with all that is in it."""
        if isinstance(x, Tensor):
            offset, shape, strides = self.of(x.offset), self.of(x.shape), self.of(x.strides)
            return Tensor(self.buffer(x.buffer), offset, shape, strides, x.dtype)
        if isinstance(x, Buffer):
            return self.buffer(x)
        if isinstance(x, (tuple, list)):
            return type(x)([self.of(v) for v in x])
        if isinstance(x, dict):
            return {k: self.of(v) for k, v in x.items()}
        return evaluated(x, self._values)

    def _step(self, s: Any) -> Any:
        new = self._new
        if isinstance(s, Call):
            return replace(
                s, args=self.of(s.args), kwargs=self.of(s.kwargs), reads=self.of(s.reads),
                writes=self.of(s.writes), strides=self.of(s.strides),
            )  # fmt: skip
        if isinstance(s, Loop):
            return replace(
                s, axis=new(s.axis), body=[self._step(b) for b in s.body], grain=self.of(s.grain),
                aligned=self.of(s.aligned),
            )  # fmt: skip
        if not isinstance(s, Statement):
            return s
        made = replace(
            s, axes=tuple(map(new, s.axes)), target=self.buffer(s.target),
            over=tuple(map(new, s.over)), vector=None if s.vector is None else new(s.vector),
            lead=None if s.lead is None else new(s.lead),
        )  # fmt: skip
        made.map(new)
        return made

    def _changed(self, x: E.Expr, again: E.Rewrite) -> E.Expr:
        if x.op == "axis":
            return E.axis(self.of(x.extent), x.value[0])
        args = tuple(map(again, x.args))
        if x.op == "load":
            return E.load(self.buffer(x.value), args)
        known = E.make(x.op, x.args, x.dtype, self.of(x.value))
        return known if x.op == "const" else E.rebuild(known, args)


def launches_at(
    launches: Launches, values: Mapping[str, int], buffer: Callable[[Buffer], Buffer] = lambda b: b
) -> Launches:
    """The launches of a program for these values of the symbols. buffer: what stands for one."""
    words = replace(
        launches.words, vectors={buffer(b): at for b, at in launches.words.vectors.items()}
    )
    sections = [
        [replace(x, blocks=evaluated(x.blocks, values)) for x in section]
        for section in launches.sections
    ]
    return Launches(words, sections, launches.counters)


def maker_of(source: Source) -> Callable[[Mapping[str, int]], Source]:
    """What gives as much of the program for values of the symbols as a run asks for, which is not
    its loops: as one Python function."""
    program, layout, t = source.program, source.layout, source.interface
    write = _Writer()
    parts = (program.buffers, program.steps, layout.slots, layout.offsets, layout.size)
    made = write.function((*parts, t.inputs, t.outputs))

    def make(values: Mapping[str, int]) -> Source:
        buffers, steps, slots, offsets, size, inputs, outputs = made(values)
        return replace(
            source, program=Program(buffers, steps, program.notes),
            interface=Interface(inputs, t.constants, outputs),
            layout=replace(layout, slots=slots, offsets=offsets, size=size), seconds={},
        )  # fmt: skip

    return make


class _Writer:
    """Python that makes something again with numbers for the symbols in it. What has none in it,
    and loops, are themselves."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {"Tensor": Tensor, "Buffer": Buffer, "Call": Call}
        self._symbols: set[str] = set()
        self._buffers: dict[Buffer, str] = {}
        self._lines: list[str] = []

    def function(self, x: Any) -> Callable[[Mapping[str, int]], Any]:
        """What makes it of the values of the symbols."""
        text = self._text(x)
        known = [f"{name} = values[{name!r}]" for name in sorted(self._symbols)]
        lines = [*known, *self._lines, f"return {text}"]
        exec("def made(values):\n" + "".join(f"    {line}\n" for line in lines), self._names)
        made: Callable[[Mapping[str, int]], Any] = self._names["made"]
        return made

    def _text(self, x: Any) -> str:
        kind = type(x)
        if kind is Size:
            self._symbols.update(x.names)
            return str(x.text("//"))
        if not _has_sizes(x):
            name = f"c{len(self._names)}"
            self._names[name] = x
            return name
        if kind is Buffer:
            if x not in self._buffers:
                name = f"b{len(self._buffers)}"
                made = self._call("Buffer", x.name, x.dtype, x.shape, x.strides, x.kind, x.position)
                self._lines.append(f"{name} = {made}")
                self._buffers[x] = name
            return self._buffers[x]
        if kind is Tensor:
            return self._call("Tensor", x.buffer, x.offset, x.shape, x.strides, x.dtype)
        if isinstance(x, Call):
            self._names[kind.__name__] = kind
            given = [getattr(x, f.name) for f in fields(x)]
            return self._call(kind.__name__, *given)
        if kind is dict:
            items = [f"{self._text(k)}: {self._text(v)}" for k, v in x.items()]
            return f"{{{', '.join(items)}}}"
        items = [self._text(v) for v in x]
        return f"[{', '.join(items)}]" if kind is list else f"({', '.join(items)},)"

    def _call(self, kind: str, *args: Any) -> str:
        return f"{kind}({', '.join(map(self._text, args))})"


def _has_sizes(x: Any) -> bool:
    if isinstance(x, Tensor):
        return _has_sizes((x.buffer, x.offset, x.shape, x.strides))
    if isinstance(x, Buffer):
        return _has_sizes((x.shape, x.strides))
    if isinstance(x, Call):
        return _has_sizes((x.args, x.kwargs, x.reads, x.writes, x.strides))
    if type(x) is dict:
        return any(_has_sizes(k) or _has_sizes(v) for k, v in x.items())
    return any(map(_has_sizes, x)) if type(x) in (list, tuple) else type(x) is Size


def results_of(
    source: Source, places: Sequence[int] | None
) -> Callable[[Mapping[str, int]], Sequence[Any]] | None:
    """What gives, of values of the symbols, shape, strides and bytes of each array that a program
    makes, and at last the bytes of its block. places: see `Executable`; None gives None."""
    if places is None:
        return None
    layout = source.layout
    numbers: list[Any] = [layout.size + layout.partials]
    ranks = []
    for k in places:
        x = source.interface.outputs[k]
        ranks.append(len(x.shape))
        numbers += [*x.shape, *x.strides, x.buffer.size * DTYPES[x.buffer.dtype].size]
    evaluate = function_of(numbers)

    def results(values: Mapping[str, int]) -> list[Any]:
        scratch, *found = evaluate(values)
        made: list[Any] = []
        at = 0
        for rank in ranks:
            shape, strides = found[at : at + rank], found[at + rank : at + 2 * rank]
            made.append((tuple(shape), tuple(strides), found[at + 2 * rank]))
            at += 2 * rank + 1
        return [*made, scratch]

    return results
