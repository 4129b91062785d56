"""A program of the loop IR as C.

One function for each nest, `kernel_0(memory, begin, end)` and so on; one for each section of the
program between two calls of torch, `section_0(memory, threads, run)`, which runs its nests in
order, those that are parallel through `run`. `memory` is an array of pointers, in the order of
`Layout.slots`, then the block of the temporaries and the flag for indices out of bounds.
"""

from __future__ import annotations

from . import expr as E
from . import gemm
from .emit_loops import Nest
from .ir import Call, Fence, Loop, Product, Program
from .memory import Layout


def source(program: Program, layout: Layout) -> tuple[str, int]:
    """The C text of a program without prelude, and the number of its sections."""
    functions: list[str] = []
    sections: list[list[str]] = [[]]
    for step in program.steps:
        if isinstance(step, Product):
            sections[-1] += gemm.call(step, layout)
            continue
        if isinstance(step, (Call, Fence)):
            sections.append([])
            continue
        name = f"kernel_{len(functions)}"
        loop = step if isinstance(step, Loop) else Loop(E.axis(1, "once"), [step])
        nest = Nest(layout)
        functions.append(nest.function(name, loop))
        sections[-1] += _run(name, loop)
        for p in nest.partials:
            sections[-1] += p.combined(layout)
    head = (
        "typedef void (*body_t)(void *, i64, i64);\n"
        "typedef void (*run_t)(body_t, void *, i64, i64, int);\n"
        + (gemm.DECLARATIONS if layout.libraries else "")
        + f"#define PARTIALS {layout.size}L\n\n"
    )
    text = head + "\n\n".join(functions)
    for k, lines in enumerate(sections):
        text += _section(k, lines, layout)
    return text, len(sections)


def _run(name: str, loop: Loop) -> list[str]:
    """The call of a nest's function for all its iterations."""
    if "parallel" not in loop.marks:
        return [f"{name}(memory, 0, {loop.axis.extent}L);"]
    return [f"run((body_t){name}, memory, {loop.axis.extent}L, {loop.grain}L, threads);"]


def _section(k: int, lines: list[str], layout: Layout) -> str:
    return (
        f"\n\nint section_{k}(void **memory, int threads, run_t run) {{\n"
        + "".join(f"    {line}\n" for line in lines)
        + f"    return *(i64 *)memory[{layout.flag}] != 0;\n}}\n"
    )
