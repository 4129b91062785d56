"""A program for many sizes as that of some: what a run needs of it, with numbers for symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..analysis.launches import Launches
from ..ir.dtypes import DTYPES
from ..ir.program import Buffer, Call, Interface, Program, Tensor
from ..ir.size import evaluated, function_of
from .execute import Source


def at_sizes(source: Source, values: Mapping[str, int]) -> Source:
    """The program for these values of the symbols. Its loops are those of the program for many."""
    known: dict[Buffer, Buffer] = {}

    def buffer(b: Buffer) -> Buffer:
        found = known.get(b)
        if found is None:
            shape, strides = evaluated(b.shape, values), evaluated(b.strides, values)
            found = known[b] = Buffer(b.name, b.dtype, shape, strides, b.kind, b.position)
        return found

    def of(x: Any) -> Any:
        if isinstance(x, Tensor):
            offset, shape = evaluated(x.offset, values), evaluated(x.shape, values)
            return Tensor(buffer(x.buffer), offset, shape, evaluated(x.strides, values), x.dtype)
        if isinstance(x, Buffer):
            return buffer(x)
        if isinstance(x, (tuple, list)):
            return type(x)([of(v) for v in x])
        if isinstance(x, dict):
            return {k: of(v) for k, v in x.items()}
        return evaluated(x, values)

    steps = [
        replace(
            s, args=of(s.args), kwargs=of(s.kwargs), reads=of(s.reads), writes=of(s.writes),
            strides=of(s.strides),
        )
        if isinstance(s, Call)
        else s
        for s in source.program.steps
    ]  # fmt: skip
    program = Program([buffer(b) for b in source.program.buffers], steps, source.program.notes)
    t = source.interface
    layout = source.layout
    return replace(
        source,
        program=program,
        interface=Interface(of(t.inputs), t.constants, of(t.outputs)),
        layout=replace(
            layout,
            slots={buffer(b): k for b, k in layout.slots.items()},
            offsets={buffer(b): evaluated(n, values) for b, n in layout.offsets.items()},
            size=evaluated(layout.size, values),
        ),
        launches=None if source.launches is None else launches_at(source.launches, values, buffer),
        seconds={},
    )


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
