"""Dead store elimination: of several stores to one element, the last alone goes to memory.

    for i < n:                              for i < n:
      y[i] = 0                                r = 0
      y[i] = y[i] + a[i]          becomes     r = r + a[i]
      y[i] = y[i] + b[i]                      y[i] = r + b[i]

The C compiler has to keep the first stores, as it does not know that a and y lie apart.
"""

from __future__ import annotations

from ..ir import expr as E
from ..ir.program import Buffer, Loop, Program, Statement, accesses
from ..target import Target

Steps = list[Loop | Statement]


def dead_store_elimination(program: Program, machine: Target) -> Program:
    """The program with registers in place of elements that are stored again."""
    for step in program.steps:
        if isinstance(step, Loop):
            _loop(program, step)
    return program


def _loop(program: Program, loop: Loop) -> None:
    for step in loop.body:
        if isinstance(step, Loop):
            _loop(program, step)
    held: dict[Buffer, Buffer] = {}  # the registers whose element is stored later on
    for k, s in enumerate(loop.body):
        if not isinstance(s, Statement):
            continue
        _read(s, held)
        if not _plain(s):
            continue
        if not _stored_again(s, loop.body[k + 1 :]):
            held.pop(s.target, None)
            continue
        if s.target not in held:
            held[s.target] = program.buffer(f"{s.target.name}_", s.target.dtype, (), "register")
        s.target, s.index = held[s.target], ()


def _plain(s: Statement) -> bool:
    """Whether a statement is a store to memory, at a place that follows from the axes."""
    return s.op is None and s.target.kind != "register" and not E.loads(*s.index)


def _stored_again(s: Statement, rest: Steps) -> bool:
    """Whether another statement stores to the same element, and nothing until then, that one
    included, reads or writes another."""
    for step in rest:
        if isinstance(step, Loop):
            if any(s.target in part for part in accesses(step)):
                return False
            continue
        if any(x.value is s.target and x.args != s.index for x in step.reads()):
            return False
        if step.target is s.target:
            return _plain(step) and step.index == s.index
    return False


def _read(s: Statement, held: dict[Buffer, Buffer]) -> None:
    """Take what a statement reads from registers where it is there."""
    if held:
        s.map(E.loads_replaced(lambda x: E.load(held[x.value], ()) if x.value in held else None))
