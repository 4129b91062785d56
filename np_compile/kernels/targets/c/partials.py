"""C of what the chunks of a parallel loop leave in memory of its reductions, and of their sum."""

from __future__ import annotations

from dataclasses import dataclass

from np_compile.size import Size

from ...analysis.memory import Layout
from ...ir.program import PAIRED, Loop
from ...ir.scalars import c_store
from ..literals import long
from ..reductions import Accumulator, better, combined
from ..values import Code
from .memory import partial, pointer


@dataclass(frozen=True)
class Partials:
    """What the chunks of a parallel loop leave in memory of one reduction."""

    accumulator: Accumulator
    chunks: str
    offsets: tuple[int, ...]

    def combined(self, layout: Layout) -> list[str]:
        """The C that combines the results of all chunks."""
        a, s = self.accumulator, self.accumulator.statement
        target = f"{s.target.name}[{s.index[0].value}]"
        each = f"for (i64 c = 1; c < {self.chunks}; c++)"
        kind = a.variables[0][0]
        lines = [
            self._part(layout, 0, kind, "part"),
            pointer(layout, s.target, True),
            f"{kind} all = part[0];",
        ]
        if a.op in PAIRED:
            found = better(a.op, a.dtype, "part[c]", "all")
            lines += [
                self._part(layout, 1, "i64", "place"),
                "i64 best = place[0];",
                f"{each} if ({found}) all = part[c], best = place[c];",
                f"{target} = best;",
            ]
        else:
            lines += [
                f"{each} all = {combined(a.op, a.dtype, 'all', 'part[c]')};",
                f"{target} = {c_store(s.target.dtype, 'all')};",
            ]
        return ["{", *(f"    {line}" for line in lines), "}"]

    def _part(self, layout: Layout, k: int, kind: str, name: str) -> str:
        where = partial(layout, self.offsets[k], f"const {kind} *")
        return f"const {kind} *{name} = {where};"


def leave(code: Code, layout: Layout, a: Accumulator, loop: Loop) -> Partials:
    """Write what a chunk of a loop has found to reserved memory."""
    extent, grain = loop.axis.extent, loop.grain
    general = isinstance(grain, Size)
    chunks = f"({extent} + {grain} - 1) / {grain}" if general else str(-(-extent // grain))
    offsets = []
    for kind, name, _ in a.variables:
        offset = layout.reserve(layout.chunks if general else int(chunks))
        found = f"{name}[0]" if a.lanes else name
        place = partial(layout, offset, f"{kind} *")
        code.line(f"({place})[begin / {long(grain)}] = {found};")
        offsets.append(offset)
    return Partials(a, chunks, tuple(offsets))
