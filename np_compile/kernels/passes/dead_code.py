"""Dead code elimination: stores to temporaries that nobody reads are left out."""

from __future__ import annotations

from ..ir.program import Buffer, Call, Program, Statement, Step, accesses
from ..target import Target


def only_checks(step: Step) -> bool:
    """Whether a step is there for the check of an index."""
    return isinstance(step, Statement) and step.value.op == "wrap" and not step.target.shape


def eliminate_dead_code(program: Program, machine: Target) -> Program:
    """The program without stores to temporaries that nobody reads."""
    kept: list = []
    wanted: set[Buffer] = set()
    for step in reversed(program.steps):
        reads, written = accesses(step)
        if (
            isinstance(step, Call)
            or only_checks(step)
            or any(b.kind in ("input", "output") or b in wanted for b in written)
        ):
            kept.append(step)
            wanted |= reads
    program.steps = kept[::-1]
    used = {b for s in program.steps for part in accesses(s) for b in part}
    program.buffers = [b for b in program.buffers if b in used or b.kind in ("input", "output")]
    return program
