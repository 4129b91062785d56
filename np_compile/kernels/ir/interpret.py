"""Interpreter of the loop IR in NumPy: the oracle of passes and of generated C.

A program can be run at any stage, from the translation's statements with axes of their own to the
scheduled loops. Memory of a buffer is a flat array: the element at an index lies at the sum of
index times stride. What nobody has written holds values that show (NaN, odd integers), and scratch
memory of a loop's body gets them anew in each iteration.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch

from . import scalars
from .dtypes import DTYPES
from .expr import Expr
from .program import (
    COMBINE,
    PAIRED,
    Buffer,
    Call,
    Interface,
    Loop,
    Malformed,
    Program,
    Statement,
    Step,
    Store,
    Tensor,
)

Memory = dict[Buffer, np.ndarray]

_UNSEEN = np.int64(np.iinfo(np.int64).max)


def run(program: Program, memory: Memory, backwards: bool = False) -> None:
    """Run a program on flat arrays of its buffers; buffers that `memory` lacks are added to it.

    backwards: loops that are marked run from their last iteration to the first, as nobody may tell.
    Errors: IndexError, for an index from data that is out of bounds; Malformed, for any other.
    """
    for b in program.buffers:
        if b not in memory:
            memory[b] = _unwritten(b)
    machine = _Machine(program, memory, backwards)
    with np.errstate(all="ignore"):
        for step in program.steps:
            machine.step(step, {})


def execute(
    program: Program, interface: Interface, tensors: Sequence[Any], backwards: bool = False
) -> list[Any]:
    """The outputs of a graph's program, at any stage, for these inputs of the graph.

    Inputs that the graph writes to are changed.
    """
    memory: Memory = {}
    given = [(b, t) for b, t in zip(interface.inputs, tensors, strict=True) if b is not None]
    for b, t in given:
        memory[b] = _flat(t)
    for b in program.buffers:
        if b.kind == "constant":
            memory[b] = _flat(interface.constants[b.position])
    run(program, memory, backwards)
    for b, t in given:
        if b.dtype == "bf16":
            _span_of(t).copy_(torch.from_numpy(memory[b]))
    return [_tensor(x, memory) if isinstance(x, Tensor) else x for x in interface.outputs]


# Steps


class _Machine:
    """Memory, and the state of the reductions that are on their way."""

    def __init__(self, program: Program, memory: Memory, backwards: bool):
        self.memory = memory
        self.backwards = backwards
        self.folds: dict[tuple, _Fold] = {}
        self.starts: dict[Loop, list[Statement]] = {}
        self.kept: dict[Statement, list[Expr]] = {}
        self.scratch: dict[Loop, list[Buffer]] = {}
        homes: dict[Buffer, list[tuple[Loop, ...]]] = {}
        for s, path in _paths(program.steps, ()):
            outer = path
            if s.over and path:
                first = next(k for k, loop in enumerate(path) if loop.axis in s.over)
                self.starts.setdefault(path[first], []).append(s)
                self.kept[s] = [x.axis for x in path[first + 1 :] if x.axis not in s.over]
                outer = path if s.scan else path[:first]
            homes.setdefault(s.target, []).append(outer)
            for x in s.reads():
                homes.setdefault(x.value, []).append(path)
        for b, paths in homes.items():
            if b.kind in ("local", "register", "private") and (shared := reduce(_common, paths)):
                self.scratch.setdefault(shared[-1], []).append(b)

    def step(self, step: Step, known: dict[Expr, Any]) -> None:
        """known: the values of the axes of the loops around."""
        if isinstance(step, Loop):
            self.loop(step, known)
        elif isinstance(step, Call):
            _call(step, self.memory)
        elif isinstance(step, Statement):  # a fence has nothing to do: an error comes at once
            if known:
                self.once(step, dict(known))
            else:
                self.whole(step)

    def loop(self, loop: Loop, known: dict[Expr, Any]) -> None:
        starts = self.starts.get(loop, [])
        for s in starts:
            for key in _points(self.kept[s]):
                self.folds[s, key] = _Fold(s)
        rounds: Sequence[int] = range(loop.axis.extent)
        runs = any(s.scan for s in starts)  # which threads share by other means than any order
        for k in rounds[::-1] if self.backwards and loop.schedule and not runs else rounds:
            for b in self.scratch.get(loop, ()):
                self.memory[b][...] = _unwritten(b)
            for inner in loop.body:
                self.step(inner, {**known, loop.axis: k})
        for s in starts:
            for key in _points(self.kept[s]):
                fold = self.folds.pop((s, key))
                if not s.scan:
                    at = {**known, **dict(zip(self.kept[s], key, strict=True))}
                    self.memory[s.target][self.place(s.target, s.index, at)] = fold.result()

    def once(self, s: Statement, known: dict[Expr, Any]) -> None:
        """A statement in loops, for one value of each axis."""
        memory = self.memory[s.target]
        if not s.over:
            value = self.value(s.value, known)
            place = self.place(s.target, s.index, known)
            memory[place] = value if s.op is None else _combined(s, memory[place], value)
            return
        fold = self.folds[s, tuple(int(known[a]) for a in self.kept[s])]
        fold.step(self.value(s.value, known), None if s.rank is None else self.value(s.rank, known))
        if s.scan:
            memory[self.place(s.target, s.index, known)] = fold.result()

    def whole(self, s: Statement) -> None:
        """A statement outside of loops: for all values of its axes, reads before writes."""
        shape = tuple(a.extent for a in s.axes)
        known: dict[Expr, Any] = dict(zip(s.axes, np.ix_(*map(np.arange, shape)), strict=True))
        value = np.broadcast_to(self.value(s.value, known), shape)
        rank = np.broadcast_to(self.value(s.rank, known) if s.rank is not None else 0, shape)
        place = self.place(s.target, s.index, known)
        memory = self.memory[s.target]
        if s.op is None:
            memory[np.broadcast_to(place, shape).ravel()] = value.ravel()
        elif not s.over:
            for p, v in zip(np.broadcast_to(place, shape).ravel(), value.ravel(), strict=True):
                memory[p] = _combined(s, memory[p], v)
        else:
            order = [k for k, a in enumerate(s.axes) if a in s.over]
            order += [k for k, a in enumerate(s.axes) if a not in s.over]
            kept = tuple(a.extent for a in s.axes if a not in s.over)
            once = tuple(1 if a in s.over and not s.scan else a.extent for a in s.axes)
            places = np.broadcast_to(place, once).transpose(order).reshape((-1, *kept))
            rows = (x.transpose(order).reshape((-1, *kept)) for x in (value, rank))
            fold = _Fold(s, kept)
            for k, (v, r) in enumerate(zip(*rows, strict=True)):
                fold.step(v, r)
                if s.scan:
                    memory[places[k]] = fold.result()
            if not s.scan:
                memory[places[0]] = fold.result()

    # Expressions

    def place(self, b: Buffer, index: Sequence[Expr], known: dict[Expr, Any]) -> Any:
        """Where the element at an index lies in the buffer's memory."""
        total: Any = 0
        for i, extent, stride in zip(index, b.shape, b.strides, strict=True):
            at = self.value(i, known)
            if _any((at < 0) | (at >= extent)):
                raise Malformed(f"{b.name}: {i} is outside of its axis of {extent}")
            total = total + at * stride
        return total

    def value(self, x: Expr, known: dict[Expr, Any]) -> Any:
        """The value of an expression; `known` gets those of all below it."""
        found = known.get(x)
        if found is None:
            found = known[x] = self._value(x, known)
        return found

    def _value(self, x: Expr, known: dict[Expr, Any]) -> Any:
        if x.op == "const":
            return DTYPES[x.dtype].numpy.type(scalars.convert_constant(x.value, x.dtype))
        if x.op == "load":
            return self.memory[x.value][self.place(x.value, x.args, known)]
        args = [self.value(a, known) for a in x.args]
        if x.op == "affine":
            return sum(map(operator.mul, args, x.value[1:]), start=x.value[0])
        if x.op == "idiv":
            return args[0] // x.value
        if x.op == "imod":
            return args[0] % x.value
        if x.op == "wrap":
            return _wrapped(args[0], *x.value)
        if x.op == "known":
            if _any((args[0] < 0) | (args[0] >= x.value)):
                raise Malformed(f"{x} is not below {x.value}")
            return args[0]
        if x.op == "cast":
            return scalars.evaluate_cast(x.args[0].dtype, x.dtype, args[0])
        if x.op == "bitcast":
            flat = np.ascontiguousarray(args[0]).view(DTYPES[x.dtype].numpy)
            return flat.reshape(np.shape(args[0]))
        if x.op == "axis":
            raise Malformed(f"the axis {x} is not looped over")
        return scalars.evaluate(x.op, x.args[-1].dtype, *args)


def _any(bad: Any) -> bool:
    """As `np.any`, of which one value takes a microsecond."""
    return bool(bad.any() if isinstance(bad, np.ndarray) else bad)


def _wrapped(at: Any, extent: int, dim: int) -> Any:
    bad = (at < -extent) | (at >= extent)
    if _any(bad):
        first = np.atleast_1d(at)[np.atleast_1d(bad)][0]
        raise IndexError(f"index {first} is out of bounds for axis {dim} with size {extent}")
    return np.where(at < 0, at + extent, at)[()]


def _paths(
    steps: Sequence[Step], around: tuple[Loop, ...]
) -> Iterator[tuple[Statement, tuple[Loop, ...]]]:
    """Each statement, with the loops around it."""
    for step in steps:
        if isinstance(step, Loop):
            yield from _paths(step.body, (*around, step))
        elif isinstance(step, Statement):
            yield step, around


def _common(a: tuple[Loop, ...], b: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """The loops that two paths begin with."""
    same = itertools.takewhile(lambda pair: pair[0] is pair[1], zip(a, b, strict=False))
    return tuple(x for x, _ in same)


def _points(axes: Sequence[Expr]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(a.extent) for a in axes))


# Reductions


def identity(op: str, dtype: str, running: bool = False) -> Any:
    """The value that a reduction starts from; a running sum may begin with -0.0, and stay so."""
    row = DTYPES[dtype]
    if running and op == "sum" and row.kind == "f":
        return row.numpy.type(-0.0)
    if op not in ("min", "max", *PAIRED):
        return row.numpy.type(op in ("prod", "all"))
    low = op in ("max", "argmax")
    if row.kind == "f":
        return row.numpy.type(-np.inf if low else np.inf)
    if row.kind == "b":
        return np.bool_(not low)
    limits = np.iinfo(row.numpy)
    return row.numpy.type(limits.min if low else limits.max)


def _combined(s: Statement, a: Any, b: Any) -> Any:
    return scalars.evaluate(COMBINE[str(s.op)], s.target.dtype, a, b)


class _Fold:
    """A reduction on its way, of one element or of an array of them."""

    def __init__(self, s: Statement, shape: tuple[int, ...] = ()):
        self.statement = s
        self.dtype = s.value.dtype if s.op in PAIRED else s.target.dtype
        self.value: Any = np.full(shape, identity(str(s.op), self.dtype, s.scan))
        self.at: Any = np.full(shape, _UNSEEN)

    def step(self, value: Any, rank: Any) -> None:
        op = self.statement.op
        if op not in PAIRED:
            self.value = _combined(self.statement, self.value, value)
            return
        best = self.value
        better = value > best if op == "argmax" else value < best
        better |= (value != value) & (best == best)
        tied = (value == best) | ((value != value) & (best != best))
        chosen = better | (tied & (rank < self.at))
        self.value = np.where(chosen, value, best)
        self.at = np.where(chosen, rank, self.at)

    def result(self) -> Any:
        if self.statement.op in PAIRED:
            return np.where(self.at == _UNSEEN, 0, self.at)
        return self.value


# Memory and torch


def _unwritten(b: Buffer) -> np.ndarray:
    span = 1 + sum((n - 1) * s for n, s in zip(b.shape, b.strides, strict=True))
    row = DTYPES[b.dtype]
    odd = np.nan if row.kind == "f" else row.kind == "b" or 0x5B
    return np.full(0 if 0 in b.shape else span, odd, row.numpy)


def _span_of(t: torch.Tensor) -> torch.Tensor:
    """A tensor's memory from its first element to its last, flat; pairs of numbers if complex."""
    real = torch.view_as_real(t.detach()) if t.is_complex() else t.detach()
    span = 1 + sum((n - 1) * s for n, s in zip(real.shape, real.stride(), strict=True))
    return real.as_strided((span if real.numel() else 0,), (1,), real.storage_offset())


def _flat(t: torch.Tensor) -> np.ndarray:
    """The array of a tensor's memory: shared, but for bfloat16, which NumPy has not."""
    flat = _span_of(t)
    array: np.ndarray = (flat.float() if flat.dtype == torch.bfloat16 else flat).numpy()
    return array


def _tensor(x: Tensor, memory: Memory) -> torch.Tensor:
    """The tensor over a buffer's memory that an argument or a result stands for."""
    base = torch.from_numpy(memory[x.buffer])
    if x.buffer.dtype == "bf16":
        base = base.to(torch.bfloat16)
    if x.dtype.is_complex:
        base = torch.view_as_complex(base.reshape(-1, 2))
    return base.view(x.dtype).as_strided(x.shape, x.strides, x.offset)


def _call(call: Call, memory: Memory) -> None:
    made: list[tuple[Tensor, torch.Tensor]] = []

    def fill(x: Any) -> Any:
        if isinstance(x, Tensor):
            t = _tensor(x, memory)
            made.append((x, t))
            return t.numpy() if isinstance(call, Store) else t
        return type(x)(map(fill, x)) if isinstance(x, (tuple, list)) else x

    result = call.target(*fill(call.args), **{k: fill(v) for k, v in call.kwargs.items()})
    if not call.strides:
        for x, t in made:
            if x.buffer.dtype == "bf16" and x.buffer in call.writes:
                narrow = torch.from_numpy(memory[x.buffer])
                narrow.as_strided(x.shape, x.strides, x.offset).copy_(t)
        return
    results = result if isinstance(result, (tuple, list)) else [result]
    tensors = [r for r in results if isinstance(r, torch.Tensor)]
    for b, r, strides in zip(call.writes, tensors, call.strides, strict=True):
        memory[b] = _flat(torch.empty_strided(r.shape, strides, dtype=r.dtype).copy_(r))
