"""CUDA of loop nests: one kernel for each.

In a grid each thread has iterations of its own (`lanes`, `thread`). In a block its threads share
each iteration of the loops that they are to share (`blocks`).
"""

from __future__ import annotations

from np_compile.size import Size

from ...analysis.launches import Launch, Words
from ...ir.program import Loop
from ...target import Gpu
from ..literals import long
from ..nest import written
from ..reductions import accumulate, begun
from .blocks import Blocks
from .lanes import IN_MEMORY, Group, path_of, product
from .memory import pointer, symbols


class TooMuchShared(Exception):
    """A nest whose threads would share more memory than there is."""


class Kernel(Blocks):
    """The CUDA of one nest of loops. counters: of the program so far."""

    def __init__(self, w: Words, machine: Gpu, counters: int):
        super().__init__(w, counters)
        self._machine = machine

    def function(self, name: str, loop: Loop) -> tuple[str, Launch]:
        """The kernel of a nest, and how it is launched."""
        code, stored = self._code, written(loop)
        if loop.kind == "epilogue":
            loop, *self._epilogue = loop.body  # type: ignore[assignment]
        if loop.kind == "grid":
            blocks, threads = self._grid(loop), self._machine.block_threads
        else:
            blocks, threads = self._blocks(loop)
        pointers = [b for b in code.buffers if b.kind in IN_MEMORY]
        lines = [f"    {line}" for line in symbols(self._words)]
        lines += ["    " + pointer(self._words, b, b in stored) for b in pointers]
        if self.shared > self._machine.shared_bytes:
            raise TooMuchShared(f"{name} shares {self.shared} bytes")
        if self.shared:
            lines.append("    extern __shared__ __align__(16) char shared[];")
        if code.checks:
            lines.append("    i64 bad = 0;")
        lines += code.lines
        if code.checks:
            lines.append(f"    if (bad) *(volatile i64 *)memory.words[{self._layout.flag}] = 1;")
        bounds = f"__launch_bounds__({threads})"
        argument = "const __grid_constant__ Memory memory"
        head = f'extern "C" __global__ void {bounds} {name}({argument}) {{'
        launch = Launch(name, blocks, threads, self.shared, code.checks)
        return "\n".join([head, *lines, "}"]), launch

    # Independent iterations: one thread for each, or for a few neighbours

    def _grid(self, loop: Loop) -> int | Size:
        path = path_of(loop)
        threads = self._machine.block_threads
        counts = [(p.axis.extent + p.width - 1) // p.width for p in path]
        started = [s for p in path for s in begun(p)]
        for s in started:
            self._accumulators[s] = accumulate(self._code, s, path[-1].width)
        unit = self._code.fresh("unit")
        total = product(counts)
        first = f"(i64)blockIdx.x * {threads} + threadIdx.x"
        if loop.blocks:
            step = f"{unit} += (i64)gridDim.x * {threads}"
            head = f"for (i64 {unit} = {first}; {unit} < {long(total)}; {step})"
        else:
            self._code.line(f"const i64 {unit} = {first};")
            head = f"if ({unit} < {long(total)})"
        outer = [p.axis for p in path if p.width == 1]
        with self._code.block(head, outer, written(loop)):
            places = self._divided(unit, counts)
            bases = {}
            for p, place in zip(path, places, strict=True):
                name = self._code.axis(p.axis) if p.width == 1 else self._code.fresh("base")
                times = "" if p.width == 1 else f" * {long(p.width)}"
                self._code.line(f"const i64 {name} = {place}{times};")
                bases[p] = name
            groups = [Group(p, bases[p], p.width) for p in path if p.width > 1]
            if groups:
                self._neighbours(path[-1], groups)
            else:
                self._inside(path[-1])
        if started:
            self._finish(loop, started, threads)
        return loop.blocks or (total + threads - 1) // threads
