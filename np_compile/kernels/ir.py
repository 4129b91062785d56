"""The loop IR: a program is a list of buffers and a list of steps.

    program   = buffer* step*
    buffer    = NAME ":" DTYPE "[" extents "]" "strides" "[" ints "]" KIND
    step      = loop | statement | call
    loop      = "for" AXIS "<" INT mark* ":" step+            (indented)
    statement = element "=" expr                              store
              | element ["running"] REDUCTION "=" expr ["over" AXIS+]
    element   = NAME "[" exprs "]"
    call      = NAMES "=" "call" OPERATOR "(" ... ")"         a torch operator
    expr      = INT | NUMBER ":" DTYPE | AXIS | element | OP "(" exprs ")" | expr INFIX expr
    DTYPE     = bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64
    KIND      = "input" INT | "output" INT | "constant" INT | "temporary" | "local" | "register"
    REDUCTION = sum prod min max any all argmin argmax
    mark      = "parallel" | "simd" | "strip"

Meaning. Steps run in order; a loop runs its body for each value of its axis. A statement outside of
loops, as the translation makes it, brings its own axes: it runs for all their values, and reads
all that it reads before it writes. Once placed in loops (`fuse`), its axes are those of the loops.
A reduction sets its element to the identity before the outermost of its `over` loops is entered and
holds the result when that loop has ended. A running reduction (`scan`) stores the value so far in each step.

Memory is that of NumPy: an element of a buffer lies at the sum of index times stride, and two names
never mean the same memory: views are indices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .expr import Expr, axes_of, bounds, show, walk


class Malformed(Exception):
    """A program that breaks a rule of the IR: the statement, and the rule."""


@dataclass(eq=False)
class Buffer:
    """An array in memory, or what was one.

    strides: in elements. kind: "input", "output", "constant", "temporary" (in memory of the
    program), "local" (scratch memory of one run of a loop's body), "register".
    position: of an input or an output among the program's. dtype: of an element.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    kind: str
    position: int = -1

    @property
    def size(self) -> int:
        n = 1
        for extent in self.shape:
            n *= extent
        return n


@dataclass(eq=False)
class Statement:
    """target[index] = value, for all values of its axes.

    op: None for a store, or a reduction; without `over`, the element is combined with the value
    (a scatter). over: the axes that a reduction runs over. scan: a running reduction. rank: of
    argmin and argmax, the position that they give. vector: the axis along which memory is walked
    in the smallest steps. line, calls: the user's, for people.
    """

    axes: tuple[Expr, ...]
    target: Buffer
    index: tuple[Expr, ...]
    value: Expr
    op: str | None = None
    over: tuple[Expr, ...] = ()
    scan: bool = False
    rank: Expr | None = None
    vector: Expr | None = None
    line: str = ""
    calls: tuple[str, ...] = ()

    def reads(self) -> list[Expr]:
        """Every load of the value and of the index."""
        return [x for x in walk(self.value, *self.index) if x.op == "load"]

    def element(self) -> str:
        return f"{self.target.name}[{', '.join(show(i) for i in self.index)}]"

    def __str__(self) -> str:
        op = f"{'running ' if self.scan else ''}{self.op}" if self.op else ""
        over = f" over {' '.join(show(a) for a in self.over)}" if self.over else ""
        return f"{self.element()} {op}= {show(self.value)}{over}"


@dataclass(eq=False)
class Loop:
    """`for axis < extent`, with a body in order. marks: "parallel" (in chunks of `grain` iterations),
    "simd", "strip"."""

    axis: Expr
    body: list[Loop | Statement] = field(default_factory=list)
    marks: set[str] = field(default_factory=set)
    grain: int = 0


@dataclass(eq=False)
class Call:
    """A torch operator between kernels. reads, writes: the buffers it needs, and those it makes or
    changes. args, kwargs: its arguments, with `Tensor` in the place of tensors. strides: of each
    tensor that it makes. why: the reason that no loop does it.
    """

    name: str
    target: Any
    args: tuple
    kwargs: dict[str, Any]
    reads: list[Buffer]
    writes: list[Buffer]
    strides: list[tuple[int, ...]]
    why: str
    line: str = ""

    def __str__(self) -> str:
        outs = ", ".join(b.name for b in self.writes)
        ins = ", ".join(b.name for b in self.reads)
        return f"{outs} = call {self.name}({ins})"


@dataclass(eq=False)
class Program:
    """Buffers, steps, and the reasons of decisions that a user may ask for."""

    buffers: list[Buffer]
    steps: list[Loop | Statement | Call]
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return text(self)


def statements(step: Loop | Statement | Call) -> Iterator[Statement]:
    """The statements of a step, in order."""
    if isinstance(step, Statement):
        yield step
    elif isinstance(step, Loop):
        for inner in step.body:
            yield from statements(inner)


def accesses(step: Loop | Statement | Call) -> tuple[set[Buffer], set[Buffer]]:
    """The buffers that a step reads, and those that it writes."""
    if isinstance(step, Call):
        return set(step.reads), set(step.writes)
    reads: set[Buffer] = set()
    writes: set[Buffer] = set()
    for s in statements(step):
        reads.update(x.value for x in s.reads())
        writes.add(s.target)
    return reads, writes


def text(program: Program) -> str:
    """The program in the grammar above, one statement a line."""
    lines = []
    for b in program.buffers:
        place = f" {b.position}" if b.position >= 0 else ""
        shape = ",".join(map(str, b.shape))
        strides = ",".join(map(str, b.strides))
        lines.append(f"{b.name}: {b.dtype}[{shape}] strides[{strides}] {b.kind}{place}")
    for step in program.steps:
        lines += _lines(step, 0)
    return "\n".join(lines)


def _lines(step: Loop | Statement | Call, depth: int) -> list[str]:
    pad = "  " * depth
    if isinstance(step, Loop):
        marks = "".join(f" {m}" for m in sorted(step.marks))
        lines = [f"{pad}for {show(step.axis)} < {step.axis.extent}{marks}:"]
        for inner in step.body:
            lines += _lines(inner, depth + 1)
        return lines
    if isinstance(step, Statement) and depth == 0 and step.axes:
        axes = ", ".join(f"{show(a)} < {a.extent}" for a in step.axes)
        return [f"all {axes}: {step}"]
    return [pad + str(step)]


def check(program: Program) -> None:
    """Malformed, if a rule of the IR is broken: the place and the rule."""
    known = set(program.buffers)
    written = {b for b in program.buffers if b.kind in ("input", "constant")}

    def fail(s: Any, rule: str) -> None:
        line = getattr(s, "line", "")
        raise Malformed(f"{s}\n  {rule}" + (f"\n  made by {line}" if line else ""))

    def element(s: Statement, b: Buffer, index: tuple[Expr, ...]) -> None:
        if b not in known:
            fail(s, f"{b.name} is no buffer of the program")
        if len(index) != len(b.shape):
            fail(s, f"{b.name} has {len(b.shape)} axes, the index {len(index)}")
        for i, extent in zip(index, b.shape, strict=True):
            if i.dtype != "i64":
                fail(s, f"an index of dtype {i.dtype}")
            lo, hi = bounds(i)
            if lo > -(1 << 61) and hi < (1 << 61) and (lo < 0 or hi >= extent):
                fail(s, f"{show(i)} runs over {lo}..{hi}, beyond extent {extent} of {b.name}")

    def visit(step: Loop | Statement | Call, around: tuple[Expr, ...]) -> None:
        if isinstance(step, Call):
            for b in step.reads:
                if b not in written:
                    fail(step, f"{b.name} is read and was never written")
            written.update(step.writes)
            return
        if isinstance(step, Loop):
            if step.axis in around:
                fail(step, f"the axis {show(step.axis)} is looped over twice")
            for inner in step.body:
                visit(inner, (*around, step.axis))
            return
        s = step
        scope = {*around, *s.axes}
        if around and set(s.axes) - set(around):
            fail(s, "an axis of the statement is not among the loops around it")
        element(s, s.target, s.index)
        for x in s.reads():
            element(s, x.value, x.args)
            if x.value not in written and x.value is not s.target:
                fail(s, f"{x.value.name} is read and was never written")
        free = (axes_of(s.value) | frozenset().union(*map(axes_of, s.index))) - scope
        if free:
            fail(s, f"the axis {show(next(iter(free)))} is not looped over")
        if s.op is None and s.value.dtype != s.target.dtype:
            fail(s, f"stores {s.value.dtype} in {s.target.dtype}")
        if s.over and not s.scan:
            for i in s.index:
                if axes_of(i) & set(s.over):
                    fail(s, "the index of a reduction depends on an axis that it runs over")
        written.add(s.target)

    for step in program.steps:
        visit(step, ())
