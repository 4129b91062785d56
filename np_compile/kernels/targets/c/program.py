"""C of a program: its functions, sections, and the table of its nests.

One function for each nest, `kernel_0(memory, begin, end)` and so on; one for each section of the
program between two calls of torch, `section_0(memory, threads, run)`, which runs its nests in
order, those that are parallel through `run`. `memory` is an array of pointers, in the order of
`Layout.slots`, then the block of the temporaries and the flag for indices out of bounds.

The functions of sections that are nothing but independent nests are also listed one by one, in
`nests`: they may run in parts, see `bands`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...analysis.footprint import Footprint, footprint
from ...analysis.memory import Layout
from ...ir import expr as E
from ...ir.program import Call, Fence, Loop, Product, Program, accesses
from ...target import Target
from . import products
from .loops import Nest

# A function that is listed in `nests` would not be compiled for the iterations that its section
# runs. Longer ones take too long to be compiled twice.
_INLINE = "__attribute__((always_inline)) inline "
_SHORT = 4000


@dataclass
class _Section:
    """The lines of a section, and its nests: their names and footprints, None if there is more to
    it."""

    lines: list[str] = field(default_factory=list)
    nests: dict[str, Footprint] | None = field(default_factory=dict)

    def add(self, name: str, found: Footprint | None) -> None:
        """Note a nest."""
        if found is None:
            self.nests = None
        elif self.nests is not None:
            self.nests[name] = found


def source(
    program: Program, layout: Layout, machine: Target
) -> tuple[str, list[list[Footprint] | None]]:
    """The C text of a program without prelude, and the nests of each of its sections that may run
    in parts, None for other sections."""
    functions: dict[str, str] = {}
    sections = [_Section()]
    read = {b for step in program.steps for b in accesses(step)[0]}
    for step in program.steps:
        if isinstance(step, Product):
            sections[-1].lines += products.call(step, layout)
            sections[-1].nests = None
            continue
        if isinstance(step, (Call, Fence)):
            sections.append(_Section())
            continue
        name = f"kernel_{len(functions)}"
        loop = step if isinstance(step, Loop) else Loop(E.axis(1, "once"), [step])
        nest = Nest(layout, machine)
        functions[name] = nest.function(name, loop)
        section = sections[-1]
        section.lines += _run(name, loop)
        for p in nest.partials:
            section.lines += p.combined(layout)
        section.add(name, footprint(loop, layout, read, machine))
    head = (
        "typedef void (*body_t)(void *, i64, i64);\n"
        "typedef void (*run_t)(body_t, void *, i64, i64, int);\n"
        + (products.DECLARATIONS if layout.libraries else "")
        + f"#define PARTIALS {layout.size}L\n\n"
    )
    names = [name for section in sections for name in section.nests or ()]
    text = head + "\n\n".join(
        _INLINE + f if name in names and len(f) < _SHORT else f for name, f in functions.items()
    )
    for k, section in enumerate(sections):
        text += _section(k, section.lines, layout)
    if names:
        text += f"\nvoid (*const nests[])(void **, i64, i64) = {{{', '.join(names)}}};\n"
    return text, [None if s.nests is None else list(s.nests.values()) for s in sections]


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
