"""Row caching: what the threads of a block go over several times stays in their registers.

    for i < n block 1:                          for i < n block 1:
      for j < m thread 256:                       for j < m thread 256:
        r max= x[m i + j] over j                    k[j] = x[m i + j]
      for j < m thread 256:              ->         r max= k[j] over j
        y[m i + j] = x[m i + j] - r               for j < m thread 256:
                                                    y[m i + j] = k[j] - r

A local array that each thread touches at its own elements alone is "private": it has no memory, and
the loops over it are written out.
"""

from __future__ import annotations

from np_compile.size import Size

from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr
from ..ir.program import Buffer, Loop, Program, Statement, statements
from ..target import Gpu, Target


def row_caching(program: Program, machine: Target) -> Program:
    """The program with such arrays, of rows whose length is a number."""
    assert isinstance(machine, Gpu)
    for step in program.steps:
        if isinstance(step, Loop) and step.kind == "block":
            inner = step
            while len(inner.body) == 1 and isinstance(inner.body[0], Loop):
                if inner.body[0].kind != "block":
                    break
                inner = inner.body[0]
            _cache(program, inner, machine)
    return program


def _cache(program: Program, around: Loop, machine: Gpu) -> None:
    """Keep what the loops of a body share in registers."""
    shared = [b for b in around.body if isinstance(b, Loop) and _fits(b, machine)]
    for loop in shared:
        alike = [b for b in shared if _alike(b, loop)]
        if alike[0] is loop and len(alike) > 1:
            _load_once(program, alike, around, machine)
    inside = list(statements(around))
    for b in {b for s in inside for b, _ in s.touched if b.kind == "local"}:
        touching = [
            x for x in around.body if any(y is b for s in statements(x) for y, _ in s.touched)
        ]
        loops = [x for x in touching if isinstance(x, Loop) and x in shared]
        own = len(loops) == len(touching) and all(_alike(x, loops[0]) for x in loops)
        if own and all(_at_its_own(x, b) for x in loops):
            b.kind = "private"
            for x in loops:
                x.private = True


def _fits(loop: Loop, machine: Gpu) -> bool:
    """Whether threads share a loop that may be written out, and nothing but statements is in it."""
    n = loop.axis.extent
    return (
        loop.kind == "thread"
        and not isinstance(n, Size)
        and n <= machine.private_elements * loop.width
        and all(isinstance(s, Statement) and not s.scan for s in loop.body)
    )


def _alike(a: Loop, b: Loop) -> bool:
    """Whether each thread has the same iterations of two loops."""
    return (a.axis.extent, a.width, a.lanes) == (b.axis.extent, b.width, b.lanes)


def _at_its_own(loop: Loop, b: Buffer) -> bool:
    """Whether a thread touches an array only at its own iteration."""
    return all(i == (loop.axis,) for s in statements(loop) for x, i in s.touched if x is b)


def _load_once(program: Program, loops: list[Loop], around: Loop, machine: Gpu) -> None:
    """Keep what several loops read from memory at the same place, from the first of them on."""
    written = {s.target for s in statements(around)}
    first = loops[0]
    found: dict[tuple[Buffer, Expr], dict[Loop, Expr]] = {}
    for loop in loops:
        for x in E.loads(*(p for s in statements(loop) for p in s.parts)):
            plain = x.value.kind in ("input", "constant", "temporary") and x.value not in written
            if plain and loop.axis in E.axes_of(x) and not E.loads(*x.args):
                place = E.substitute(x.args[0], {loop.axis: first.axis})
                found.setdefault((x.value, place), {})[loop] = x
    budget = machine.private_elements * 4
    for (b, place), where in found.items():
        if len(where) < 2 or next(iter(where)) is not first:
            continue
        budget -= machine.private_elements * DTYPES[b.dtype].size // 4
        if budget < 0:
            return
        kept = program.buffer("kept", b.dtype, (first.axis.extent,), "local")
        load = E.load(b, (place,))
        axes = next(s.axes for s in statements(first) if first.axis in s.axes)
        outer = tuple(a for a in axes[: axes.index(first.axis) + 1])
        for loop, x in where.items():
            replaced = E.replaced({x: E.load(kept, (loop.axis,))})
            for s in statements(loop):
                s.map(replaced)
        line = first.body[0]
        assert isinstance(line, Statement)
        store = Statement(
            outer, kept, (first.axis,), load, vector=first.axis, line=line.line, calls=line.calls
        )
        first.body.insert(0, store)
