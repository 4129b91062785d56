"""C of a program: its functions, sections, and the table of its nests.

One function for each nest, `kernel_0(memory, begin, end)` and so on; one for each section of the
program between two calls of torch, `section_0(memory, threads, run)`, which runs its nests in
order, those that are parallel through `run`. `memory` is an array of pointers, in the order of
`Layout.slots`, then the block of the temporaries and the flag for indices out of bounds.

The functions of sections that are nothing but independent nests are also listed one by one, in
`nests`: they may run in parts, see `bands`.
"""

from __future__ import annotations

from ...analysis.memory import Layout
from ...ir.program import Call, Fence, Loop, Product, Program, nest
from ..literals import long
from . import products
from .loops import Nest
from .memory import symbols

# A function that is listed in `nests` would not be compiled for the iterations that its section
# runs. Longer ones take too long to be compiled twice, and sizes that are not known say nothing.
_INLINE = "__attribute__((always_inline)) inline "
_SHORT = 4000


def source(program: Program, layout: Layout, in_parts: list[bool]) -> str:
    """The C text of a program without prelude. in_parts: of each section, whether its nests may run
    so."""
    functions: dict[str, str] = {}
    sections: list[list[str]] = [[]]
    names = []
    for step in program.steps:
        if isinstance(step, Product):
            sections[-1] += products.call(step, layout)
            continue
        if isinstance(step, (Call, Fence)):
            sections.append([])
            continue
        name, loop, made = f"kernel_{len(functions)}", nest(step), Nest(layout)
        functions[name] = made.function(name, loop)
        sections[-1] += _run(name, loop)
        for p in made.partials:
            sections[-1] += p.combined(layout)
        if in_parts[len(sections) - 1]:
            names.append(name)
    head = (
        "typedef void (*body_t)(void *, i64, i64);\n"
        "typedef void (*run_t)(body_t, void *, i64, i64, int);\n"
        + (products.DECLARATIONS if layout.libraries else "")
        + f"#define PARTIALS {long(layout.size)}\n\n"
    )
    inlined = {n for n in names if len(functions[n]) < _SHORT and not layout.symbols}
    text = head + "\n\n".join(
        _INLINE + f if name in inlined else f for name, f in functions.items()
    )
    for k, lines in enumerate(sections):
        text += _section(k, lines, layout)
    if names:
        text += f"\nvoid (*const nests[])(void **, i64, i64) = {{{', '.join(names)}}};\n"
    return text


def _run(name: str, loop: Loop) -> list[str]:
    """The call of a nest's function for all its iterations."""
    if not loop.grain:
        return [f"{name}(memory, 0, {long(loop.axis.extent)});"]
    return [f"run((body_t){name}, memory, {long(loop.axis.extent)}, {long(loop.grain)}, threads);"]


def _section(k: int, lines: list[str], layout: Layout) -> str:
    return (
        f"\n\nint section_{k}(void **memory, int threads, run_t run) {{\n"
        + "".join(f"    {line}\n" for line in symbols(layout))
        + "".join(f"    {line}\n" for line in lines)
        + f"    return *(i64 *)memory[{layout.flag}] != 0;\n}}\n"
    )
