"""Buffer reuse: a temporary shares the memory of the result of its last reader.

    t[i, j] running sum= x[i, j] over i          y[i, j] running sum= x[i, j] over i
    y[i, j] = f(t[i, j])                becomes  y[i, j] = f(y[i, j])

Memory that nobody has touched is slow to write to, and each array takes the caches from others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..ir import expr as E
from ..ir.expr import Expr
from ..ir.program import Buffer, Call, Loop, Program, Statement, accesses, statements
from ..target import Target

Body = list[Loop | Statement]


def buffer_reuse(program: Program, machine: Target) -> Program:
    """The program with fewer temporaries."""
    touched: dict[Buffer, set[int]] = {}
    called: set[Buffer] = set()
    for k, step in enumerate(program.steps):
        for b in set.union(*accesses(step)):
            touched.setdefault(b, set()).add(k)
            if isinstance(step, Call):
                called.add(b)
    for k, step in enumerate(program.steps):
        if isinstance(step, Loop):
            ended = {b for b, where in touched.items() if max(where) == k and _free(b)} - called
            begun = {b for b, where in touched.items() if min(where) == k} - called
            for b, target in _found(step, ended, begun):
                _replace(program, touched[b], b, target)
                touched[target] |= touched.pop(b)
    return program


def _free(b: Buffer) -> bool:
    return b.kind == "temporary"


def _found(nest: Loop, ended: set[Buffer], begun: set[Buffer]) -> Iterator[tuple[Buffer, Buffer]]:
    """Temporaries that a nest is the last to touch, each with the buffer that takes its place."""
    writes = Counter(s.target for s in statements(nest))
    read = {x.value for s in statements(nest) for x in s.reads()}
    for body, s in list(_stores(nest, ())):
        target = s.target
        known = target in begun and target not in read and writes[target] == 1
        if not known or not (target.kind == "output" or _free(target)):
            continue
        for b in dict.fromkeys(x.value for x in E.loads(s.value)):
            if b in ended and not writes[b] and _alike(b, target) and _until(b, s, body, nest):
                ended.remove(b)
                yield b, target
                break


def _stores(loop: Loop, around: tuple[Expr, ...]) -> Iterator[tuple[Body, Statement]]:
    """The statements that store an element in each iteration, with the bodies they stand in."""
    around = (*around, loop.axis)
    for s in loop.body:
        if isinstance(s, Loop):
            yield from _stores(s, around)
        elif (
            (s.op is None or s.scan) and len(s.index) == len(around) and set(s.index) == set(around)
        ):
            yield loop.body, s


def _alike(b: Buffer, target: Buffer) -> bool:
    """Whether the elements of two buffers lie in the same way."""
    return (b.dtype, b.shape, b.strides) == (target.dtype, target.shape, target.strides)


def _until(b: Buffer, s: Statement, body: Body, nest: Loop) -> bool:
    """Whether the nest reads an element of b only in the iteration where s stores its own, and not
    after that."""
    upto = set(body[: body.index(s) + 1])
    return all(
        t in upto and x.args == s.index for t in statements(nest) for x in t.reads() if x.value is b
    )


def _replace(program: Program, where: set[int], b: Buffer, target: Buffer) -> None:
    """Take another buffer in the place of b, in the steps that touch it."""
    replaced = E.loads_replaced(lambda x: E.load(target, x.args) if x.value is b else None)
    for s in (s for k in where for s in statements(program.steps[k])):
        s.map(replaced)
        s.target = target if s.target is b else s.target
    program.buffers.remove(b)
