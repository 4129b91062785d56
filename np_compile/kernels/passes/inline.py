"""Forward substitution: values that are cheap to recompute are not stored.

A load of a temporary becomes the expression that was stored there, if nothing that the expression
reads has been written in between, and if computing it again costs less than memory would.
"""

from __future__ import annotations

from collections import Counter

from np_compile.size import hint

from ..analysis.access import coefficient, inverse
from ..analysis.boxes import Box, hull, inside, stored
from ..analysis.cost import cost
from ..analysis.dependence import disjoint
from ..ir import expr as E
from ..ir.expr import Expr
from ..ir.program import Buffer, Call, Program, Statement, Step, accesses
from ..target import Gpu, Target

# Longest expression of a statement, in nodes: bounds the compile time and the live registers.
_LONGEST = 240
# What a load costs on a GPU if neighbouring threads do not read neighbouring elements.
_LINES = 8
# Steps that write a buffer, before a load, among which its definition is looked for.
_WRITERS = 32


def inline(program: Program, machine: Target) -> Program:
    """The program with such loads replaced."""
    _Inliner(program, machine.recompute_cycles, isinstance(machine, Gpu)).run()
    return program


class _Inliner:
    """recompute: most cycles an element of a value that is computed again for each of its uses.
    gpu: whether that is so where one use has several of its own elements for each.
    writers: the steps that write a buffer, in order, with the box that each stores. uses: how many
    elements of what a step stores are loaded."""

    def __init__(self, program: Program, recompute: int, gpu: bool):
        self.steps, self.recompute, self.gpu = program.steps, recompute, gpu
        self.writers: dict[Buffer, list[tuple[int, Box | None]]] = {}
        for p, step in enumerate(self.steps):
            for b in accesses(step)[1]:
                self.writers.setdefault(b, []).append((p, store_of(step)))
        called = {b for s in self.steps if isinstance(s, Call) for b in (*s.reads, *s.writes)}
        self.candidates = {b for b in self.writers if b.kind == "temporary" and b not in called}
        self.uses: Counter[int] = Counter()
        for q, step in enumerate(self.steps):
            for x in set(step.reads()) if isinstance(step, Statement) else ():
                if (made := self.definition(x, q)) is not None:
                    self.uses[made] += min(_points(step), _points(self.steps[made]))

    def run(self) -> None:
        for q, step in enumerate(self.steps):
            if not isinstance(step, Statement):
                continue
            budget = [len(E.walk(step.value))]
            origins: dict[int, Statement] = {}

            def change(
                x: Expr, _: E.Rewrite, q: int = q, step: Statement = step, budget: list = budget,
                origins: dict = origins,
            ) -> Expr | None:  # fmt: skip
                return self.replacement(x, q, step, budget, origins)

            step.map(E.rewriter(change))
            more = (c for s in origins.values() for c in s.calls)
            step.calls = tuple(dict.fromkeys((*more, *step.calls)))

    def definition(self, x: Expr, q: int) -> int | None:
        """The step that stores, with nothing else, what step q loads; None where that is not one
        store."""
        if x.value not in self.candidates:
            return None
        before = [w for w in self.writers[x.value] if w[0] < q]
        place = hull(x.args, x.value.shape, {})
        for p, box in before[: -_WRITERS - 1 : -1]:
            if box is not None and inside(place, box):
                return p
            writer = self.steps[p]
            if not isinstance(writer, Statement) or not disjoint(writer.index, x.args):
                return None
        return None

    def replacement(
        self, x: Expr, q: int, user: Statement, budget: list[int], origins: dict[int, Statement]
    ) -> Expr | None:
        """What step q can compute in place of a load; None where it cannot, or should not."""
        if x.op != "load":
            return None
        p = self.definition(x, q)
        if p is None:
            return None
        s = self.steps[p]
        assert isinstance(s, Statement)
        # What is the same for all elements is computed before the loops, however often it is used.
        weight = cost(s.value) if E.axes_of(s.value) or not s.axes else 0
        if self.gpu and _transposes(s):
            weight *= _LINES
        if weight * (self.uses[p] - _points(s)) > self.recompute * _points(s):
            return None
        again = _points(user) - _points(s)
        most = self.recompute // max(weight, 1) if self.gpu else 1
        if weight > 1 and s.axes and again > most * _points(s):
            return None  # computed once for each of its own elements instead
        length = len(E.walk(s.value))
        if budget[0] + length > _LONGEST:
            return None
        value = E.substitute(s.value, inverse(s.index, x.args))
        if not self.safe(p, q, user, value):
            return None
        budget[0] += length
        origins[p] = s
        return value

    def safe(self, p: int, q: int, user: Statement, value: Expr) -> bool:
        """Whether step q can compute what step p did: nothing that it reads has been changed."""
        for load in E.loads(value):
            for w, _ in self.writers.get(load.value, ()):
                writer = self.steps[w]
                if p <= w < q and not (
                    isinstance(writer, Statement) and disjoint(writer.index, load.args)
                ):
                    return False
            if load.value is user.target:
                same = load.args == user.index and user.op is None
                # At places from data an earlier value for the same place has been stored.
                same = same and not any(E.loads(i) for i in user.index)
                if not same and not disjoint(load.args, user.index):
                    return False
        return True


def _transposes(s: Statement) -> bool:
    """Whether a statement copies what it does not read side by side as it stores it."""
    if not s.axes or s.value.op != "load":
        return False
    along = s.axes[-1]
    read, stored = (
        hint(sum(coefficient(i, along) * n for i, n in zip(index, b.strides, strict=True)))
        for b, index in ((s.value.value, s.value.args), (s.target, s.index))
    )
    return stored == 1 and abs(read) > 1


def store_of(step: Step) -> Box | None:
    """The box that a step stores, each element once; None of other steps."""
    if not isinstance(step, Statement) or step.op is not None:
        return None
    return stored(step.index, step.axes)


def _points(s: Step) -> int:
    assert isinstance(s, Statement)
    n = 1
    for a in s.axes:
        n *= max(a.extent, 1)
    return n
