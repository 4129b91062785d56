"""Verifier of the loop IR."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .expr import Expr, axes_of, bounds, show
from .program import (
    COMBINE,
    LOOPS,
    ON_GPU,
    PAIRED,
    Buffer,
    Call,
    Loop,
    Malformed,
    Program,
    Statement,
    Step,
    statements,
)

# What a program consists of, in the order of the passes: statements with axes of their own; loops;
# loops over places in memory, one index for each access; loops that say how they run.
STAGES = ("statements", "loops", "linear", "scheduled")


def check(program: Program, stage: str | None = None) -> None:
    """Malformed, if a rule of the IR is broken: the place and the rule. stage: of `STAGES`, which
    has rules of its own; None for any."""
    _Checker(program, stage).run()


class _Checker:
    """The rules, and what has been written so far."""

    def __init__(self, program: Program, stage: str | None):
        self.program = program
        self.stage = stage
        self.linear = stage in ("linear", "scheduled")
        self.known = set(program.buffers)
        self._kinds: list[str] = []  # of the loops around
        self.written = {
            b
            for b in program.buffers
            if b.kind in ("input", "constant") or any(type(n) is int and n == 0 for n in b.shape)
        }

    def run(self) -> None:
        names = [b.name for b in self.program.buffers]
        for b in self.program.buffers:
            if names.count(b.name) > 1:
                self.fail(b.name, "two buffers have that name")
            if len(b.shape) != len(b.strides):
                self.fail(b.name, f"it has {len(b.shape)} axes and {len(b.strides)} strides")
        for step in self.program.steps:
            self.step(step, ())

    def fail(self, s: Any, rule: str) -> None:
        line = getattr(s, "line", "")
        raise Malformed(f"{s}\n  {rule}" + (f"\n  made by {line}" if line else ""))

    def step(self, step: Step, around: tuple[Expr, ...]) -> None:
        if isinstance(step, Statement):
            self.statement(step, around)
        elif isinstance(step, Loop):
            self.loop(step, around)
        elif isinstance(step, Call):
            for b in step.reads:
                if b not in self.written:
                    self.fail(step, f"{b.name} is read and was never written")
            self.written.update(step.writes)

    def loop(self, loop: Loop, around: tuple[Expr, ...]) -> None:
        head = f"for {show(loop.axis)} < {loop.axis.extent}{loop.schedule}"
        if self.stage == "statements":
            self.fail(head, "there are no loops before fusion")
        if loop.schedule and self.stage not in (None, "scheduled"):
            self.fail(head, "a loop says how it runs before it is scheduled")
        if loop.axis in around:
            self.fail(head, f"the axis {show(loop.axis)} is looped over twice")
        if self.stage == "scheduled":
            rules = _broken_on_gpu if self._on_gpu(loop) else _broken
            for rule in rules(loop, tuple(self._kinds)):
                self.fail(head, rule)
        kinds = self._kinds
        if loop.kind != "epilogue":  # the nest in one is as it is without
            self._kinds = [*kinds, loop.kind]
        for inner in loop.body:
            self.step(inner, (*around, loop.axis))
        self._kinds = kinds

    def _on_gpu(self, loop: Loop) -> bool:
        """Whether a loop is one of a GPU's nest."""
        return loop.kind in ON_GPU or any(kind in ON_GPU for kind in self._kinds)

    def statement(self, s: Statement, around: tuple[Expr, ...]) -> None:
        if around and s.axes != tuple(a for a in around if a in s.axes):
            self.fail(s, "the axes of the statement are not those of loops around it, in order")
        if not around and s.axes and self.stage not in (None, "statements"):
            self.fail(s, "a statement has axes and no loops")
        self.element(s, s.target, s.index)
        for x in s.reads():
            self.element(s, x.value, x.args)
            if x.value not in self.written:
                self.fail(s, f"{x.value.name} is read and was never written")
        if s.op is None or s.op in COMBINE:
            if s.value.dtype != s.target.dtype:
                self.fail(s, f"stores {s.value.dtype} in {s.target.dtype}")
        elif s.op not in PAIRED:
            self.fail(s, f"no reduction is called {s.op}")
        elif s.target.dtype != "i64":
            self.fail(s, f"stores a rank in {s.target.dtype}")
        if (s.rank is not None) != (s.op in PAIRED):
            self.fail(s, "argmin and argmax have a rank, and nothing else has")
        self.ranges(s)
        self.written.add(s.target)

    def ranges(self, s: Statement) -> None:
        """The axes of a statement's parts."""
        free = frozenset().union(*map(axes_of, s.parts)) - set(s.axes)
        if free:
            self.fail(s, f"the axis {show(next(iter(free)))} is not looped over")
        if set(s.over) - set(s.axes):
            self.fail(s, "it reduces over an axis that is not its own")
        if s.op is None and s.over:
            self.fail(s, "a store has no axes to reduce over")
        if s.atomic and (s.op is None or s.over):
            self.fail(s, "only what combines a value with an element is atomic")
        if not s.over and (s.scan or s.op in PAIRED):
            self.fail(s, "it reduces over no axis")
        if s.over and not s.scan:
            for i in s.index:
                if axes_of(i) & set(s.over):
                    self.fail(s, "the index of a reduction depends on an axis that it runs over")

    def element(self, s: Statement, b: Buffer, index: tuple[Expr, ...]) -> None:
        if b not in self.known:
            self.fail(s, f"{b.name} is no buffer of the program")
        if len(index) != len(b.shape):
            self.fail(s, f"{b.name} has {len(b.shape)} axes, the index {len(index)}")
        if self.linear and len(index) != 1:
            self.fail(s, f"an access of {b.name} is no single place in memory")
        runs = all(a.extent for a in s.axes)
        for i, extent in zip(index, b.shape, strict=True):
            if i.dtype != "i64":
                self.fail(s, f"an index of dtype {i.dtype}")
            lo, hi = bounds(i)
            if runs and lo > -(1 << 61) and hi < (1 << 61) and (lo < 0 or hi >= extent):
                self.fail(s, f"{show(i)} runs over {lo}..{hi}, beyond extent {extent} of {b.name}")


def _broken_on_gpu(loop: Loop, around: tuple[str, ...]) -> Iterator[str]:
    """The rules that the schedule of a loop in a nest of a GPU breaks. around: the kinds of the
    loops around it."""
    kind, inside = loop.kind, list(statements(loop))
    if kind not in ("serial", *ON_GPU):
        yield f"a loop of kind {kind} is none of a GPU"
    if loop.width < 1 or (kind == "serial" and loop.width > 1):
        yield f"{loop.width} iterations cannot stay together"
    if kind in ("grid", "block") and any(k != kind for k in around):
        yield "what blocks share are the outermost loops"
    if kind == "epilogue" and not (
        isinstance(loop.body[0], Loop)
        and loop.body[0].blocks
        and all(isinstance(b, Statement) for b in loop.body[1:])
    ):
        yield "an epilogue is what follows a reduction of blocks"
    if kind == "thread" and (around[:1] != ("block",) or "thread" in around):
        yield "the threads of a block share a loop inside its own, and no loop inside that"
    if kind in ("thread", "block") and loop.width & (loop.width - 1):
        yield f"{loop.width} threads or rows are no power of two"
    reduced = any(loop.axis in s.over for s in inside)
    if bool(loop.blocks) != (kind in ("grid", "block") and reduced):
        yield "a number of blocks is that of a reduction over what they share"
    if kind not in ("serial", "thread") and any(s.scan and loop.axis in s.over for s in inside):
        yield "blocks cannot share a running reduction"
    if (loop.grain, loop.chain, loop.aligned) != (0, 0, None):
        yield "chunks, chains and alignment are of vectors"
    leaf = not any(isinstance(b, Loop) for b in loop.body)
    if loop.lanes > 1 and not (kind == "thread" and leaf):
        yield "lanes are neighbours of a loop without loops inside that threads share"
    private = {b for s in inside for b, _ in s.touched if b.kind == "private"}
    if kind == "thread" and bool(private) != loop.private:
        yield "a loop over private arrays is written out, and no other"
    if loop.private and any(
        i != (loop.axis,) for s in inside for b, i in s.touched if b in private
    ):
        yield "a thread has no element of another's"


def _broken(loop: Loop, around: tuple[str, ...]) -> Iterator[str]:
    """The rules that the schedule of a loop breaks."""
    extent, width, kind = loop.axis.extent, loop.width, loop.kind
    outermost = not around
    inside = list(statements(loop))
    leaf = not any(isinstance(b, Loop) for b in loop.body)
    vectors = leaf and kind == "vector"
    if kind not in LOOPS:
        yield f"no kind of loop is called {kind}"
    if not 1 <= width <= max(extent, 1) or (kind == "serial" and width > 1):
        yield f"{width} iterations cannot stay together"
    if kind != "serial" and leaf != (kind in ("vector", "unroll")):
        yield f"a loop of that kind has {'' if leaf else 'no '}loops inside"
    if loop.grain and (not outermost or loop.grain >= extent or loop.grain % width):
        yield "chunks are some iterations of an outermost loop, and a multiple of its width"
    if not vectors and (loop.lanes, loop.chain, loop.aligned) != (1, 0, None):
        yield "lanes, chains and alignment are of vectors"
    if vectors and (loop.lanes > 1) != any(s.over for s in inside):
        yield "lanes are there for reductions along vectors, and for all of them"
    reduced = any(loop.axis in s.over for s in inside)
    if loop.overlapping and (
        kind not in ("strip", "vector") or width % loop.overlapping or reduced
    ):
        yield "iterations that run twice are of some vectors, and are not added up"
    if loop.chain and not any(s.op == "sum" and s.over for s in inside):
        yield "there is no sum whose lanes are put aside"
    aligned = loop.aligned
    if aligned and not (outermost and aligned in {s.target for s in inside} and loop.lanes == 1):
        yield "vectors begin at the cache lines of what an outermost loop writes"
    halved = width if kind == "strip" and reduced else loop.lanes
    if halved & (halved - 1):
        yield f"{halved} partial results cannot be combined by halves"
