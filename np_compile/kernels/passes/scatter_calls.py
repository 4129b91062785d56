"""Scatters of floats: sums whose order shows are made by a library.

    x[wrap(index[i])] += v[i]

cannot run in threads that add in any order, as the result would differ from run to run. The places
and the values are stored, and `scatter.cu` adds them up in an order of its own, or torch those of
other dtypes. Few values are added by one thread.
"""

from __future__ import annotations

from typing import Any

import torch

from np_compile.size import hint

from ..analysis.access import linear
from ..ir.dtypes import DTYPES
from ..ir.program import Buffer, Program, Scatter, Statement, Step, Tensor, elements
from ..target import Target
from .thread_mapping import alone, commutes

# Most values that one thread adds.
_FEW = 64


def scatter_calls(program: Program, machine: Target) -> Program:
    """The program with such sums as calls."""
    steps: list[Step] = []
    for s in program.steps:
        if isinstance(s, Statement) and _ordered(s):
            steps += _called(program, s)
        else:
            steps.append(s)
    program.steps = steps
    return program


def _ordered(s: Statement) -> bool:
    """Whether a statement adds many floats to elements that several of its iterations share."""
    if s.op != "sum" or s.over or commutes(s) or alone(s):
        return False
    many = hint(elements(a.extent for a in s.axes)) > _FEW
    return many and not any(x.value is s.target for x in s.reads())


def _called(program: Program, s: Statement) -> list[Step]:
    axes, target = s.axes, s.target
    shape = tuple(a.extent for a in axes)
    place = linear(s.index, target.strides)
    made: list[Step] = []
    given = []
    for hint_, value in (("place", place), ("value", s.value)):
        if value.op == "load" and _lies_as(value.value, shape) and value.args == axes:
            given.append(_flat(value.value))
            continue
        b = program.buffer(hint_, value.dtype, shape)
        made.append(Statement(axes, b, axes, value, line=s.line, calls=s.calls))
        given.append(_flat(b))
    whole = _flat(target)
    made.append(
        Scatter(
            "index_put_", _added, (whole, *given), {}, [target, *(t.buffer for t in given)],
            [target], [], "the order shows in which floats are added", s.line,
        )
    )  # fmt: skip
    return made


def _lies_as(b: Buffer, shape: tuple) -> bool:
    """Whether an argument has these elements, one after the other in memory."""
    size: Any = 1
    strides: list[Any] = []
    for n in reversed(shape):
        strides.insert(0, size)
        size *= n
    return b.kind == "input" and b.shape == shape and tuple(b.strides) == tuple(strides)


def _flat(b: Buffer) -> Tensor:
    """All memory of a buffer, as one axis."""
    span = 1 + sum((n - 1) * k for n, k in zip(b.shape, b.strides, strict=True))
    return Tensor(b, 0, (span,), (1,), getattr(torch, DTYPES[b.dtype].torch))


def _added(x: torch.Tensor, places: torch.Tensor, values: torch.Tensor) -> None:
    """What the call means."""
    x.index_put_((places,), values, accumulate=True)
