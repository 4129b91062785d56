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
from ..ir.program import Buffer, Call, Interface, Loop, Program, Statement, Tensor
from .execute import Source, between, passed_to, size_of

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


def calls_of(
    source: Source, buffers: Mapping[Buffer, Buffer]
) -> Callable[[Mapping[str, int]], Sequence[Any]]:
    """What gives, of values of the symbols, what a program calls between its kernels: calls and
    fences, the arrays that these are passed, the results, and where in the block the passed ones
    lie, with their bytes. buffers: what stands for each."""
    write = _Writer(buffers)
    steps = between(source.program)
    passed = passed_to(steps)
    offsets = {b: (n, size_of(b)) for b, n in source.layout.offsets.items()}
    held = {x.buffer: offsets[x.buffer] for x in passed if x.buffer in offsets}
    return write.function((steps, passed, source.interface.outputs, held))


class _Writer:
    """Python that makes something again with numbers for the symbols in it. What has none in it is
    itself, and each buffer what stands for it."""

    def __init__(self, buffers: Mapping[Buffer, Buffer]) -> None:
        self._names: dict[str, Any] = {"Tensor": Tensor}
        self._symbols: set[str] = set()
        self._buffers = buffers
        self._known: dict[Tensor, str] = {}
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
        if kind is Tensor:
            if x not in self._known:
                made = self._call("Tensor", x.buffer, x.offset, x.shape, x.strides, x.dtype)
                name = self._known[x] = f"t{len(self._known)}"
                self._lines.append(f"{name} = {made}")
            return self._known[x]
        if isinstance(x, Call):
            self._names[kind.__name__] = kind
            return self._call(kind.__name__, *[getattr(x, f.name) for f in fields(x)])
        if kind is dict:
            items = [f"{self._text(k)}: {self._text(v)}" for k, v in x.items()]
            return f"{{{', '.join(items)}}}"
        if isinstance(x, list):  # torch.fx has a class of its own
            return f"[{', '.join(map(self._text, x))}]"
        if kind is tuple:
            return f"({''.join(self._text(v) + ', ' for v in x)})"
        name = f"c{len(self._names)}"
        self._names[name] = self._buffers[x] if kind is Buffer else x
        return name

    def _call(self, kind: str, *args: Any) -> str:
        return f"{kind}({', '.join(map(self._text, args))})"


def results_of(
    source: Source, whole: Mapping[Buffer, bool]
) -> Callable[[Mapping[str, int]], Sequence[Any]]:
    """What gives, of values of the symbols, shape, strides and bytes of each array that a program
    makes, and at last the bytes of its block. whole: those arrays, and whether each is a result as
    it is; else it is elements one after the other."""
    layout = source.layout
    numbers: list[Any] = [layout.size + layout.partials]
    ranks = []
    outputs = {x.buffer: x for x in source.interface.outputs if isinstance(x, Tensor)}
    for b, is_whole in whole.items():
        shape, strides = (outputs[b].shape, outputs[b].strides) if is_whole else ((b.size,), (1,))
        ranks.append(len(shape))
        numbers += [*shape, *strides, size_of(b)]
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
