"""C of reductions: accumulators, lanes, and how partial results become one.

A reduction along a vectorized axis keeps an array of partial results, one a lane, that the C
compiler holds in vector registers; they are combined as a tree. A product of floats is made one
value after the other, as NumPy makes it: of lanes some may overflow and others vanish. Only its
values are computed as vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir.dtypes import DTYPES
from ..ir.expr import Expr
from ..ir.program import COMBINE, PAIRED, Loop, Statement, identity, is_in_order, statements
from ..ir.scalars import c_constant, c_expression, c_load
from .values import Code

_LAST = (1 << 63) - 1  # a place behind all others


@dataclass(frozen=True)
class Accumulator:
    """The variables of a reduction while it runs: one value, or an array of one for each lane.

    `argmax` and `argmin` keep the best value, and its place in variables of their own. shared: the
    variable is that of such a one, which does the work. in_order: the lanes are the next values,
    which are taken in one after the other, and the result so far has a variable of its own.
    in_few: a sum takes in the few values of an inner loop, in each iteration of an outer one.
    """

    statement: Statement
    op: str
    dtype: str
    name: str
    lanes: int
    shared: bool = False
    in_order: bool = False
    in_few: bool = False

    @property
    def variables(self) -> list[tuple[str, str, str]]:
        """The C type, the name and the first value of each."""
        first = c_constant(identity(self.op, self.dtype, self.statement.scan), self.dtype)
        found = [(DTYPES[self.dtype].register, self.name, first)]
        return [*found, ("i64", f"{self.name}_at", "0")] if self.op in PAIRED else found

    @property
    def result(self) -> str:
        """The variable that ends as the result."""
        return self.variables[-1][1]

    @property
    def is_float_sum(self) -> bool:
        return self.op == "sum" and DTYPES[self.dtype].kind == "f"

    def step(self, code: Code) -> None:
        """Take in the value of the statement."""
        if self.shared:
            return
        s = self.statement
        text = code.value(s.value)
        at = f"[{code.lane}]" if self.lanes and code.lane else ""
        if self.op in PAIRED:
            assert s.rank is not None
            v = code.named(text, self.dtype)
            rank = code.value(s.rank)
            found = better(self.op, self.dtype, v, f"{self.name}{at}")
            c = code.fresh("c")
            code.line(f"const i64 {c} = {found};")
            code.line(f"{self.name}{at} = {c} ? {v} : {self.name}{at};")
            code.line(f"{self.name}_at{at} = {c} ? {rank} : {self.name}_at{at};")
            return
        if self.in_order:
            code.line(f"{self.name}{at} = {text};")
            return
        step = combined(self.op, self.dtype, self.name + at, text)
        if self.in_few and self.is_float_sum and not self.lanes:
            step = f"so_far_{DTYPES[self.dtype].register}({step})"
        code.line(f"{self.name}{at} = {step};")
        if s.scan:
            code.store(s.target, s.index[0], f"{self.name}{at}")

    def take(self, code: Code, count: str) -> None:
        """Take in the first `count` lanes, one after the other."""
        so_far = f"{self.name}_all"
        step = combined(self.op, self.dtype, so_far, f"{self.name}[l]")
        code.line(f"for (int l = 0; l < {count}; l++) {so_far} = {step};")

    def fold(self, code: Code) -> str:
        """The variable with the result, after its lanes, if there are any, are combined."""
        if not self.lanes:
            return self.result
        if self.in_order:
            return f"{self.name}_all"
        if self.op not in PAIRED:
            if not self.shared:
                self._tree(code, self.name, self.op, self.dtype)
            return f"{self.result}[0]"
        best, at = code.fresh("best"), f"{self.name}_at"
        each = f"for (int l = 0; l < {self.lanes}; l++)"
        code.line(f"{DTYPES[self.dtype].register} {best}[{self.lanes}];")
        code.line(f"{each} {best}[l] = {self.name}[l];")
        self._tree(code, best, self.op.removeprefix("arg"), self.dtype)
        found = _same(self.dtype, f"{self.name}[l]", f"{best}[0]")
        code.line(f"{each} {at}[l] = {found} ? {at}[l] : {c_constant(_LAST, 'i64')};")
        self._tree(code, at, "min", "i64")
        code.line(f"{self.name}[0] = {best}[0];")
        return f"{self.result}[0]"

    def _tree(self, code: Code, name: str, op: str, dtype: str) -> None:
        """Combine the lanes of an array, by halves, in its first element."""
        w = self.lanes // 2
        while w:
            lane = "l" if w > 1 else "0"
            x, y = f"{name}[{lane}]", f"{name}[{lane} + {w}]"
            step = f"{x} = {combined(op, dtype, x, y)};"
            code.line(f"for (int l = 0; l < {w}; l++) {step}" if w > 1 else step)
            w //= 2


def accumulate(
    code: Code, s: Statement, lanes: int, along: bool = False, in_few: bool = False
) -> Accumulator:
    """Declare the variables of a reduction, with their first values; lanes: 1 for none. along:
    whether the lanes lie along an axis that it runs over."""
    assert s.op is not None
    dtype = s.value.dtype if s.op in PAIRED else s.target.dtype
    in_order = along and lanes > 1 and is_in_order(s)
    lanes = lanes if lanes > 1 else 0
    a = Accumulator(s, s.op, dtype, code.fresh("acc"), lanes, in_order=in_order, in_few=in_few)
    for kind, name, value in a.variables:
        if a.in_order:
            code.line(f"{kind} {name}[{lanes}], {name}_all = {value};")
        elif a.lanes:
            code.line(f"{kind} {name}[{lanes}];")
            code.line(f"for (int l = 0; l < {lanes}; l++) {name}[l] = {value};")
        else:
            code.line(f"{kind} {name} = {value};")
    return a


def share(a: Accumulator, s: Statement) -> Accumulator | None:
    """The accumulator of the extreme whose place a finds; None if s is no such reduction."""
    of_place = f"arg{s.op}" == a.op and not s.scan and s.target.dtype == a.dtype
    same = s.value is a.statement.value and s.over == a.statement.over
    return replace(a, statement=s, op=str(s.op), shared=True) if of_place and same else None


def scatter(code: Code, s: Statement) -> None:
    """Combine the value of a statement with what its target holds."""
    assert s.op is not None
    place = code.place(s.target, s.index[0])
    was = c_load(s.target.dtype, place)
    code.write(s.target, place, combined(s.op, s.target.dtype, was, code.value(s.value)))


def begun(loop: Loop) -> list[Statement]:
    """The reductions whose outermost reduced axis is that of the loop."""
    return [s for s in statements(loop) if s.over and _outermost(s) is loop.axis]


def _outermost(s: Statement) -> Expr:
    """The first of a statement's reduced axes in the order of its loops."""
    return next(a for a in s.axes if a in s.over)


def combined(op: str, dtype: str, a: str, b: str) -> str:
    """The C expression of one step of a reduction."""
    if op in ("min", "max") and DTYPES[dtype].kind == "f":
        return f"running_{op}_{DTYPES[dtype].working}({a}, {b})"
    return c_expression(COMBINE[op], dtype, [a, b])


def better(op: str, dtype: str, v: str, best: str) -> str:
    sign = ">" if op == "argmax" else "<"
    if DTYPES[dtype].kind == "f":
        return f"({v} {sign} {best}) | (({v} != {v}) & ({best} == {best}))"
    return f"({v} {sign} {best})"


def _same(dtype: str, value: str, best: str) -> str:
    """The C condition that a value is the best one; if that is NaN, the NaNs are."""
    if DTYPES[dtype].kind == "f":
        return f"(({value} == {best}) | ({value} != {value}))"
    return f"({value} == {best})"
