"""Cloning of loops, with axes and scratch memory of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from . import expr as E
from .expr import Expr
from .program import Buffer, Loop, Program, Statement, statements

Change = Callable[[Expr], Expr | None]


def copy(
    program: Program, steps: list[Loop | Statement], places: Mapping[Expr, Expr],
    change: Change = lambda x: None,
) -> list[Loop | Statement]:  # fmt: skip
    """The steps again, with axes of outer loops replaced by index expressions.

    Loops get new axes. Registers and local arrays that only these steps use get doubles. change:
    a replacement for a load whose indices are replaced already, or None.
    """
    inside = {id(s) for step in steps for s in statements(step)}
    used = {
        b for step in steps for s in statements(step)
        for b, _ in s.touched if b.kind in ("register", "local")
    }  # fmt: skip
    for step in program.steps:
        for s in statements(step):
            if id(s) not in inside:
                used -= {b for b, _ in s.touched}
    own: dict[Buffer, Buffer] = {}
    for b in sorted(used, key=lambda b: b.name):
        own[b] = replace(b, name=f"{b.name}_{len(program.buffers)}")
        program.buffers.append(own[b])
    return [_copy(step, dict(places), own, change) for step in steps]


def moved(s: Statement, places: Mapping[Expr, Expr]) -> Statement:
    """The statement again, with axes replaced by index expressions."""
    made = _copy(s, dict(places), {}, lambda x: None)
    assert isinstance(made, Statement)
    return made


def _copy(
    step: Loop | Statement, places: dict[Expr, Expr], own: Mapping[Buffer, Buffer], change: Change
) -> Loop | Statement:
    if isinstance(step, Loop):
        axis = E.axis(step.axis.extent, step.axis.value[0][0])
        inner = {**places, step.axis: axis}
        body = [_copy(s, inner, own, change) for s in step.body]
        return replace(step, axis=axis, body=body)

    def renew(x: Expr, again: E.Rewrite) -> Expr | None:
        if x.op == "axis":
            return places.get(x)
        if x.op != "load":
            return None
        new = E.make("load", tuple(map(again, x.args)), x.dtype, own.get(x.value, x.value))
        return change(new) or new

    def axes(old: tuple[Expr, ...]) -> tuple[Expr, ...]:
        new = [places.get(a, a) for a in old]
        return tuple(b for a in new for b in sorted(E.axes_of(a), key=lambda b: b.number))

    vector = None if step.vector is None else places.get(step.vector, step.vector)
    made = replace(
        step,
        axes=tuple(dict.fromkeys(axes(step.axes))),
        over=axes(step.over),
        target=own.get(step.target, step.target),
        vector=vector if vector is not None and vector.op == "axis" else None,
    )
    made.map(E.rewriter(renew))
    return made
