"""The loop IR: a program is a list of buffers and a list of steps.

    program   = buffer* step*
    buffer    = NAME ":" DTYPE "[" INTs "]" "strides" "[" INTs "]" KIND INT?
    step      = loop | ["all" extents ":"] [names] statement | call | "fence"
    loop      = "for" extent schedule ":" step+               (indented by two more)
    names     = "let" NAME "=" expr ("," NAME "=" expr)* ":"  for expressions that are repeated
    extent    = AXIS "<" INT
    schedule  = ["parallel" INT] [how]                        INT: iterations of a chunk
    how       = "vector" INT ["lanes" INT] ["chain" INT] ["aligned" NAME]
              | "strip" INT ["overlapping" INT] | "rows" INT | "jam" INT | "unroll" INT
              | ("grid" | "block" | "thread" | "epilogue") INT ["lanes" INT] ["written" "out"]
                ... ["blocks" INT]                            on a GPU
                                                              the first INT: iterations together
    statement = element "=" expr                              store
              | element ["running" | "atomic"] REDUCTION "=" expr ["over" AXIS+] ["rank" expr]
                ... ["along" AXIS]                            of each: the axis of its vectors
    element   = NAME "[" exprs "]"
    call      = NAMES "=" "call" OPERATOR "(" NAMES ")"       a torch operator
    expr      = INT | NUMBER ":" DTYPE | AXIS | element | OP "(" exprs ")"
              | DTYPE "(" expr ")" | "bits_" DTYPE "(" expr ")"            casts
              | "(" expr INFIX expr ")"                       INFIX: + - * / < <= > >= == != & | ^
              | "wrap" "(" expr "," INT "," INT ")"           extent, number of the axis
              | "known" "(" expr "," INT ")"                  extent
              | "(" expr "//" INT ")" | "(" expr "%" INT ")" | INT "*" expr
              | "(" expr ("+" expr)+ ")"                      sums of indices
    DTYPE     = bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64
    KIND      = input | output | constant | temporary | local | register | private
    REDUCTION = sum prod min max any all argmin argmax

An INT is an index or data of dtype i64. Of i64, `+` and `INT *` are sums of indices; data are added
by add(a, b) and multiplied by mul(a, b), which wrap around. "along" is printed where it is not the
last axis. What `text` prints, `parse` reads, but for calls; the user's lines, the notes and what
only `fuse` asks for (`lead`) are not printed.

Meaning. Steps run in order; a loop runs its body for each value of its axis. A statement outside of
loops, as the translation makes it, brings its own axes: it runs for all their values, and reads
all that it reads before it writes. Once placed in loops (`fuse`), its axes are those of the loops.
A reduction sets its element to the identity before the outermost of its `over` loops is entered and
holds the result when that loop has ended. A running reduction (`scan`) stores the value so far in
each step. argmin and argmax give the least rank of the extreme values; NaN is more extreme than any
number. A reduction without `over` combines the element with the value.

Memory is that of NumPy: an element of a buffer lies at the sum of index times stride, and two names
never mean the same memory: views are indices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from np_compile.size import Size, some

from .dtypes import DTYPES
from .expr import Expr, Rewrite, axis, loads, repeated, show

# Reduction -> the operation that combines two values; of argmin and argmax, ranks.
COMBINE = {
    "sum": "add", "prod": "mul", "min": "minimum", "max": "maximum", "any": "or", "all": "and",
}  # fmt: skip
PAIRED = ("argmin", "argmax")
# How the iterations of a loop follow each other; of the first alone the grammar is silent. The last
# three are those of a GPU.
LOOPS = (
    *("serial", "vector", "strip", "rows", "jam", "unroll"),
    *("grid", "block", "thread", "epilogue"),
)
ON_GPU = LOOPS[-4:]
# dtypes of the matrices that a `Product` multiplies
MULTIPLIED = ("f32", "f64")
KINDS = ("input", "output", "constant", "temporary", "local", "register", "private")


class Malformed(Exception):
    """A program that breaks a rule of the IR: the statement, and the rule."""


@dataclass(eq=False)
class Buffer:
    """An array in memory, or what was one.

    strides: in elements. kind: "input", "output", "constant", "temporary" (in memory of the
    program), "local" (scratch memory of one run of a loop's body), "register", "private" (a local
    array whose elements are in the registers of the threads that share a loop over it).
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
    in the smallest steps. lead: the axis that stays the outermost loop, for threads to share.
    atomic: iterations that run at the same time may combine values with one element. line, calls:
    the user's, for people.
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
    lead: Expr | None = None
    atomic: bool = False
    line: str = ""
    calls: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Expr, ...]:
        """All that it computes: the value, the index, and the rank, if there is one."""
        rank = () if self.rank is None else (self.rank,)
        return (self.value, *self.index, *rank)

    def reads(self) -> tuple[Expr, ...]:
        """Every load of its parts."""
        return loads(*self.parts)

    @property
    def touched(self) -> list[tuple[Buffer, tuple[Expr, ...]]]:
        """What it writes, and what it reads: buffers and indices."""
        return [(self.target, self.index), *((x.value, x.args) for x in self.reads())]

    def map(self, change: Rewrite) -> None:
        """Change each of its parts."""
        self.value = change(self.value)
        self.index = tuple(map(change, self.index))
        self.rank = None if self.rank is None else change(self.rank)

    def __str__(self) -> str:
        names: dict[Expr, str] = {}
        given = ""
        for x in repeated(self.value, *self.index):
            text = show(x, names)
            names[x] = f"let{len(names)}"
            given += f"{', ' if given else 'let '}{names[x]} = {text}"
        element = f"{self.target.name}[{', '.join(show(i, names) for i in self.index)}]"
        how = "running " if self.scan else "atomic " if self.atomic else ""
        op = f"{how}{self.op}" if self.op else ""
        tail = f" over {' '.join(show(a) for a in self.over)}" if self.over else ""
        tail += f" rank {show(self.rank, names)}" if self.rank is not None else ""
        if self.vector is not None and self.vector not in self.axes[-1:]:
            tail += f" along {show(self.vector)}"
        given += ": " if given else ""
        return f"{given}{element} {op}= {show(self.value, names)}{tail}"


@dataclass(eq=False)
class Loop:
    """`for axis < extent`, with a body in order, and how it runs (`passes.schedule` decides).

    kind: "serial", one iteration after the other; "vector", as vectors; "strip", each statement
    inside for `width` iterations at once; "rows", likewise, but the loops inside for one iteration
    after the other; "jam", a strip whose iterations take turns; "unroll", written out. On a GPU:
    "grid", in the threads of all blocks, `width` iterations in each; "block", `width` iterations in
    each block; "thread", in `width` threads that share an iteration of the "block" loop around;
    "epilogue", a nest that blocks reduce, and statements for one thread once all of them are done.
    blocks: where a loop of these reduces, how many blocks share it and leave a partial result each.
    lanes: neighbouring iterations that each of these threads runs together. private: whether it is
    written out, as private arrays need.
    width: iterations that stay together. grain: iterations of a chunk, which runs beside others; 0
    of a loop that is not parallel. Of vectors: lanes, the partial results of each reduction, 1 for
    none; chain, the steps after which those of a sum are put aside, 0 for never; aligned, the
    buffer at whose cache lines they begin. overlapping: of a strip some of whose iterations run
    twice, rather than in one that is not whole: the fewest that do not; 0 of others.
    """

    axis: Expr
    body: list[Loop | Statement] = field(default_factory=list)
    kind: str = "serial"
    width: int = 1
    grain: int | Size = 0
    lanes: int = 1
    chain: int = 0
    blocks: int = 0
    private: bool = False
    aligned: Buffer | None = None
    overlapping: int = 0

    @property
    def schedule(self) -> str:
        """How it runs, in the grammar above."""
        text = f" parallel {self.grain}" if some(self.grain) else ""
        text += f" {self.kind} {self.width}" if self.kind != "serial" else ""
        text += f" lanes {self.lanes}" if self.lanes > 1 else ""
        text += f" chain {self.chain}" if self.chain else ""
        text += f" overlapping {self.overlapping}" if self.overlapping else ""
        text += " written out" if self.private else ""
        text += f" blocks {self.blocks}" if self.blocks else ""
        return text + (f" aligned {self.aligned.name}" if self.aligned else "")


@dataclass(eq=False)
class Call:
    """A torch operator between kernels. reads, writes: the buffers it needs, and those it makes or
    changes. args, kwargs: its arguments, with `Tensor` in the place of tensors. strides: of each
    tensor that it makes. why: the reason that no loop does it. by: who does.
    """

    by = "torch"
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


@dataclass
class Interface:
    """How a program is called.

    inputs: the buffers, None for what holds no data. constants: tensors that the program holds.
    outputs: for each result a `Tensor`, or what is no tensor.
    """

    inputs: list[Buffer | None] = field(default_factory=list)
    constants: list[torch.Tensor] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)


class Store(Call):
    """A call of a function of NumPy's arrays, which stores what it makes of the second in the
    first."""


class Product(Call):
    """A call of the kernels' own product of matrices (`gemm.c`), without leaving the C.

    args: the result, which is in memory of the program, and both factors.
    """


class Scatter(Call):
    """A call of the GPU's own sum of many values in few elements (`scatter.cu`).

    args: the memory of the elements, the place of each value in it, and the values.
    """

    by = "a kernel of its own"


@dataclass(eq=False)
class Fence:
    """A point that is passed only if no index so far was out of bounds."""

    def __str__(self) -> str:
        return "fence"


Step = Loop | Statement | Call | Fence


@dataclass(eq=False)
class Program:
    """Buffers, steps, and the reasons of decisions that a user may ask for.

    integers: the input that is a vector of integers which the caller has as numbers, if there is
    one. conditions: indices that follow from these, which the caller finds to be within bounds
    before anything runs: no step looks at them.
    """

    buffers: list[Buffer]
    steps: list[Step]
    notes: list[str] = field(default_factory=list)
    integers: Buffer | None = None
    conditions: list[Expr] = field(default_factory=list)

    def buffer(
        self, hint: str, dtype: str, shape: Sequence[int] = (), kind: str = "temporary",
        strides: Sequence[int] | None = None, position: int = -1,
    ) -> Buffer:  # fmt: skip
        """A new buffer, in C order if no strides are given; its name begins with the hint."""
        shape = tuple(shape)
        where = contiguous_strides(shape) if strides is None else tuple(strides)
        made = Buffer(f"{hint}{len(self.buffers)}", dtype, shape, where, kind, position)
        self.buffers.append(made)
        return made

    def __str__(self) -> str:
        return text(self)


def is_in_order(s: Statement) -> bool:
    """Whether a reduction takes in one value after the other: of a product of floats in parts, one
    may overflow and another vanish where NumPy's does neither."""
    return s.op == "prod" and bool(s.over) and DTYPES[s.target.dtype].kind == "f"


def identity(op: str, dtype: str, running: bool) -> float:
    """The value that a reduction starts from; a running sum may begin with -0.0, and stay so."""
    row = DTYPES[dtype]
    if op in ("sum", "any"):
        return -0.0 if running and row.kind == "f" else 0
    if op in ("prod", "all"):
        return 1
    low = op in ("max", "argmax")
    if row.kind == "f":
        return float("-inf") if low else float("inf")
    if row.kind == "b":
        return not low
    signed = row.kind == "i"
    if low:
        return -(1 << (row.bits - 1)) if signed else 0
    return (1 << (row.bits - signed)) - 1


def looped(axes: Sequence[Expr], body: list[Loop | Statement]) -> list[Loop | Statement]:
    """Statements in loops over the axes, from the outermost on."""
    for axis_ in reversed(axes):
        body = [Loop(axis_, body)]
    return body


def nest(step: Loop | Statement) -> Loop:
    """The loop that a step is; of a statement without axes, one of a single iteration."""
    return step if isinstance(step, Loop) else Loop(axis(1, "once"), [step])


def statements(step: Step) -> Iterator[Statement]:
    """The statements of a step, in order."""
    if isinstance(step, Statement):
        yield step
    elif isinstance(step, Loop):
        for inner in step.body:
            yield from statements(inner)


def with_leaves(steps: list, change: Callable[[Loop], Sequence[Loop | Statement]]) -> list:
    """The steps, with what `change` makes of each loop that has no loops inside."""
    made: list = []
    for step in steps:
        if not isinstance(step, Loop):
            made.append(step)
        elif any(isinstance(s, Loop) for s in step.body):
            step.body = with_leaves(step.body, change)
            made.append(step)
        else:
            made += change(step)
    return made


def accesses(step: Step) -> tuple[set[Buffer], set[Buffer]]:
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


def _lines(step: Step, depth: int) -> list[str]:
    pad = "  " * depth
    if isinstance(step, Loop):
        lines = [f"{pad}for {show(step.axis)} < {step.axis.extent}{step.schedule}:"]
        for inner in step.body:
            lines += _lines(inner, depth + 1)
        return lines
    if isinstance(step, Statement) and depth == 0 and step.axes:
        axes = ", ".join(f"{show(a)} < {a.extent}" for a in step.axes)
        return [f"all {axes}: {step}"]
    return [pad + str(step)]


class Tensor:
    """An array in memory as an argument of a torch operator: a strided view of a buffer."""

    __slots__ = ("buffer", "dtype", "offset", "shape", "strides")

    def __init__(
        self, buffer: Buffer, offset: int, shape: tuple, strides: tuple, dtype: torch.dtype
    ):
        self.buffer, self.offset = buffer, offset
        self.shape, self.strides, self.dtype = shape, strides, dtype


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of C order, in elements."""
    strides: list[int] = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def elements(x: Any) -> int:
    n = 1
    for extent in x:
        n *= extent
    return n
