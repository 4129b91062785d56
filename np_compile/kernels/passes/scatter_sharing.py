"""Scatter sharing: many integers that meet in few elements are counted by the threads of a block.

    for i < n:  x[wrap(index[i])] += 1

has all threads of a GPU wait for the same few elements. Cut into parts, each of a block with an
array of its own in memory that its threads share, they meet there, and each block adds its array to
x in the end:

    for p < parts:
      for k < m:  part[k] = 0
      for i < n / parts:  part[wrap(index[p n / parts + i])] += 1
      for k < m:  x[k] += part[k]

The hardware adds integers of 32 bits in shared memory at once; of 64 bits only what fits those is
shared.
"""

from __future__ import annotations

from dataclasses import replace

from np_compile.size import Size, hint, some

from ..analysis.dependence import reads_elsewhere
from ..ir import expr as E
from ..ir.copying import copy
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr, number
from ..ir.program import Buffer, Loop, Program, Statement, statements
from ..target import Gpu, Target

_DENSITY = 4  # fewest values of a part for each element of its array
_STEP = 1 << 10  # greatest constant that a part adds in 32 bits
_VALUES = 1 << 20  # most values of a part that adds one


def scatter_sharing(program: Program, machine: Target) -> Program:
    """The program with such loops in parts."""
    assert isinstance(machine, Gpu)
    steps: list = []
    for step in program.steps:
        if isinstance(step, Loop) and (parts := _parts(step, machine)):
            steps += _shared(program, step, parts)
        else:
            steps.append(step)
    program.steps = steps
    return program


def _parts(loop: Loop, machine: Gpu) -> int:
    """In how many parts a loop is cut; 0 where it stays as it is."""
    body = [s for s in loop.body if isinstance(s, Statement)]
    scatters = [s for s in body if s.op is not None]
    if len(body) < len(loop.body) or not scatters or not all(map(_is_counting, scatters)):
        return 0
    targets = {s.target for s in scatters}
    if len(targets) < len(scatters) or any(_meets(s, targets, loop.axis) for s in body):
        return 0
    size = sum(b.size for b in targets)
    n = hint(loop.axis.extent)
    most = min(machine.processors * machine.waves, n // max(_DENSITY * size, machine.shared_values))
    few = 4 * size > machine.local_bytes // 2 or most < machine.processors // 2
    if few or n // max(most, 1) > _VALUES:
        return 0
    # Without a rest, if there is such a number: the rest takes a launch of its own.
    even = (p for p in range(most, most // 2, -1) if not some(loop.axis.extent % p))
    return most if isinstance(loop.axis.extent, Size) else next(even, most)


def _is_counting(s: Statement) -> bool:
    """Whether a statement adds integers that fit 32 bits to elements that data tell."""
    if s.op != "sum" or s.over or isinstance(s.target.size, Size):
        return False
    if not any(E.from_data(x) for x in E.walk(*s.index)) or len(s.target.shape) != 1:
        return False
    if s.target.kind not in ("input", "output", "temporary") or s.target.strides != (1,):
        return False
    dtype = s.target.dtype
    if dtype in ("i32", "u32"):
        return True
    constant = s.value.value if s.value.op == "const" else None
    return dtype in ("i64", "u64") and type(constant) is int and abs(constant) <= _STEP


def _meets(s: Statement, targets: set[Buffer], axis: Expr) -> bool:
    """Whether a statement does anything to the targets but to add to them, or is no one's alone."""
    if reads_elsewhere(s) or any(x.value in targets for x in s.reads()):
        return True
    if s.op is not None:
        return False
    return s.target in targets or (s.target.kind != "register" and axis not in s.index)


def _shared(program: Program, loop: Loop, parts: int) -> list[Loop]:
    """The loop in so many parts, and what is left over."""
    axis = loop.axis
    length, rest = divmod(axis.extent, parts)
    which, step, left = E.axis(parts, "p"), E.axis(length, "i"), E.axis(rest, "i")
    made = [Loop(which)]
    if some(rest):
        made.append(Loop(left, copy(program, loop.body, {axis: E.plus(left, parts * length)})))
    at = E.axes_replaced({axis: E.plus(E.times(which, length), step)})
    before: list[Loop | Statement] = []
    after: list[Loop | Statement] = []
    for s in statements(loop):
        s.map(at)
        s.axes, s.vector = (which, step), step
        if s.op is None:
            continue
        target = s.target
        held = target.dtype if DTYPES[target.dtype].size == 4 else "i32"
        part = program.buffer("part", held, target.shape, "local")
        first, last = E.axis(target.size, "k"), E.axis(target.size, "k")
        zero = Statement((which, first), part, (first,), number(0, held), vector=first)
        before.append(Loop(first, [zero]))
        total = replace(
            s, axes=(which, last), index=(last,), value=E.cast(E.load(part, (last,)), target.dtype),
            vector=last,
        )  # fmt: skip
        after.append(Loop(last, [total]))
        s.target = part
        s.value = s.value if held == target.dtype else number(s.value.value, held)
    loop.axis = step
    made[0].body = [*before, loop, *after]
    return made
