"""CUDA of a program: a kernel for each nest, and the launches of each section.

A section is what lies between two calls of torch. All kernels of a program take the same words,
see `memory`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.launches import Launch, Launches, words
from ...analysis.memory import Layout
from ...ir.program import Buffer, Call, Fence, Program, nest
from ...target import Gpu
from ..literals import long
from .loops import Kernel
from .prelude import prelude


def source(
    program: Program, layout: Layout, inputs: Sequence[Buffer | None], machine: Gpu
) -> tuple[str, Launches]:
    """The CUDA of a program with these inputs, and its launches. Errors: TooMuchShared."""
    w = words(layout, inputs)
    kernels: list[str] = []
    sections: list[list[Launch]] = [[]]
    counters = 0
    for step in program.steps:
        if isinstance(step, (Call, Fence)):
            sections.append([])
            continue
        kernel = Kernel(w, machine, counters)
        text, launch = kernel.function(f"kernel_{len(kernels)}", nest(step))
        kernels.append(text)
        sections[-1].append(launch)
        counters = kernel.counters
    head = f"struct Memory {{ u64 words[{w.count}]; }};\n#define PARTIALS {long(layout.size)}\n\n"
    body = head + "\n\n".join(kernels) + "\n"
    return prelude(body) + body, Launches(w, sections, counters)
