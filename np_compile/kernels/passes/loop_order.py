"""Loop interchange: the order of each statement's loops, from the strides of what it touches.

The axis along which memory is walked in the smallest steps comes last. Axes of a reduction come
after those that are kept, so that its result stays in a register; the last of the kept ones may
still be the axis of the vector, see `schedule`. So may the last but one of a reduction's, where it
runs over all pairs of elements of two rows: a strip of the one stays in registers while the other
goes by, however long they are.
"""

from __future__ import annotations

from np_compile.size import hint

from ..analysis.access import stride
from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr
from ..ir.program import Program, Statement
from ..target import Gpu, Target


def _distance(s: Statement, axis: Expr, line: int) -> tuple[float, float]:
    """How far apart, in bytes, neighbours along an axis lie: capped by a cache line of
    so many bytes, and in all."""
    near = far = 0.0
    for k, (buffer, index) in enumerate(s.touched):
        weight = 1 if k else 2  # of what it writes
        step = stride(buffer, index, axis)
        size = DTYPES[buffer.dtype].size
        bytes_ = line if step is None else abs(hint(step)) * size
        near += weight * min(bytes_, line)
        far += weight * bytes_
    return near, far


def loop_order(program: Program, machine: Target) -> Program:
    """The program with the axes of each statement, and of each reduction, in loop order."""
    for s in program.steps:
        if not isinstance(s, Statement) or not s.axes:
            continue
        if len(s.axes) < 2 or not _free(s):
            s.vector = s.axes[-1]
            continue
        place = {a: k for k, a in enumerate(s.axes)}
        distance = {a: _distance(s, a, machine.line_bytes) for a in s.axes}
        # Outer loops by decreasing distance; the innermost by what a cache line holds.
        ranked = sorted(s.axes, key=lambda a: (-distance[a][1], place[a]))
        last = min(reversed(ranked), key=lambda a: distance[a][0])
        ranked.remove(last)
        ranked.append(last)
        if s.scan:
            ranked = [a for a in ranked if a not in s.over] + list(s.over)
        elif s.over:
            ranked = [a for a in ranked if a not in s.over] + [a for a in ranked if a in s.over]
        if _is_of_pairs(s, ranked[-2:], last) and not isinstance(machine, Gpu):
            ranked[-2:] = ranked[:-3:-1]
        s.axes = tuple(ranked)
        s.vector = last
    return program


def _is_of_pairs(s: Statement, inner: list[Expr], last: Expr) -> bool:
    """Whether a statement reduces, for each of several results, over two axes, inner ones, of which
    no element that it reads depends on both. last: that along which memory is walked."""
    return (
        len(s.axes) > 2
        and not s.scan
        and inner[-1] is last
        and all(a in s.over for a in inner)
        and not all(a in s.over for a in s.axes)
        and all(len(E.axes_of(x) & {*inner}) < 2 for x in s.reads())
    )


def _free(s: Statement) -> bool:
    """Whether the order of the iterations does not matter: no stores at indices from data."""
    return not any(E.from_data(x) for i in s.index for x in E.walk(i))
