"""Array contraction: a temporary that lives within an iteration becomes a register or small.

An axis of the temporary at which all accesses stand at the same index, that of loops around all of
them, is dropped. Without axes it is a register; with few elements, scratch memory that stays in the
cache.
"""

from __future__ import annotations

from itertools import takewhile

from np_compile.size import Size

from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr
from ..ir.program import (
    Buffer,
    Call,
    Loop,
    Program,
    Statement,
    accesses,
    contiguous_strides,
    elements,
)
from ..target import Gpu, Target


def array_contraction(program: Program, machine: Target) -> Program:
    """The program with such temporaries as registers or local arrays."""
    home: dict[Buffer, set[int]] = {}
    for k, step in enumerate(program.steps):
        for part in accesses(step):
            for b in part:
                home.setdefault(b, set()).add(k)
    for b, where in home.items():
        if b.kind != "temporary" or len(where) != 1:
            continue
        step = program.steps[next(iter(where))]
        if isinstance(step, Loop):
            _shrink(b, step, machine)
    return program


def _shrink(b: Buffer, nest: Loop, machine: Target) -> None:
    """Drop what axes of b can be dropped, if no more than so many bytes are left."""
    uses = list(_uses(b, nest, ()))
    # Loops that are apart may have equal axes: of those around all, the outermost are the same.
    chains = zip(*(loops for loops, _, _ in uses), strict=False)
    shared = takewhile(lambda level: all(x is level[0] for x in level), chains)
    around = {level[0].axis for level in shared}
    reduced = {a for _, s, _ in uses if s.target is b and not s.scan for a in s.over}
    if not around - reduced:
        return  # it is handed on outside of all loops
    dropped = []
    for d in range(len(b.shape)):
        indices = {index[d] for _, _, index in uses}
        if len(indices) == 1 and E.axes_of(next(iter(indices))) <= around - reduced:
            dropped.append(d)
    kept = [d for d in range(len(b.shape)) if d not in dropped]
    if not dropped and b.shape:
        return
    shape = tuple(b.shape[d] for d in kept)
    if isinstance(machine, Gpu) and any(isinstance(n, Size) for n in shape):
        return  # what threads have for themselves, or share, is of one size
    if elements(shape) * DTYPES[b.dtype].size > machine.local_bytes:
        return

    def kept_only(x: Expr) -> Expr | None:
        return E.load(b, [x.args[d] for d in kept]) if x.value is b else None

    shrunk = E.loads_replaced(kept_only)
    for s in {s for _, s, _ in uses}:
        s.index = s.index if s.target is not b else tuple(s.index[d] for d in kept)
        s.map(shrunk)
    b.shape, b.strides = shape, contiguous_strides(shape)
    b.kind = "local" if shape else "register"


def _uses(b: Buffer, step: Loop | Statement | Call, around: tuple[Loop, ...]):  # type: ignore[no-untyped-def]
    """Loops around, statement and index of each access."""
    if isinstance(step, Loop):
        for inner in step.body:
            yield from _uses(b, inner, (*around, step))
    elif isinstance(step, Statement):
        if step.target is b:
            yield around, step, step.index
        for x in step.reads():
            if x.value is b:
                yield around, step, x.args
