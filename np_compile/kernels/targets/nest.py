"""What the loop nests of all targets have in common: variables, statements, and what is whose."""

from __future__ import annotations

from collections.abc import Iterator

from ..analysis.memory import Layout
from ..ir.dtypes import DTYPES
from ..ir.program import Buffer, Loop, Statement, statements
from .dialect import Dialect
from .reductions import Accumulator, scatter
from .values import Code


class Nest:
    """One nest of loops while it is written."""

    def __init__(self, layout: Layout, dialect: Dialect):
        self._layout = layout
        self._code = Code(dialect)
        self._accumulators: dict[Statement, Accumulator] = {}
        self._declared: set[Buffer] = set()
        self._said: tuple[str, tuple[str, ...]] = ("", ())

    def _variable(self, b: Buffer, width: int = 0) -> None:
        """The declaration of a register or local array, or of an array of `width` of them."""
        row = DTYPES[b.dtype]
        kind = row.register if b.kind == "register" else row.storage
        n = (b.size if b.kind == "local" else 1) * max(width, 1)
        array = f"[{max(n, 1)}]" if width or b.kind == "local" else ""
        aligned = self._code.dialect.aligned if array else ""
        self._code.line(f"{kind} {b.name}{array}{aligned};")

    def _inside(self, loop: Loop) -> None:
        """A loop's body, with the registers and local arrays that belong to it."""
        mine = [b for b in owned(loop) if b not in self._declared]
        for b in mine:
            self._variable(b)
        self._declared.update(mine)
        for step in loop.body:
            self._step(step)
        self._declared.difference_update(mine)

    def _step(self, step: Loop | Statement) -> None:
        """A loop or statement of a body."""
        raise NotImplementedError

    def _statement(self, s: Statement) -> None:
        code = self._code
        if s.calls and s.line and self._said != (s.line, s.calls):
            self._said = (s.line, s.calls)
            code.line(f"/* {s.line.replace('*/', '* /')} */")
        code.use(s)
        if s in self._accumulators:
            self._accumulators[s].step(code)
            return
        if s.op is not None:
            self._scatter(s)
            return
        text = code.value(s.value)
        if s.value.op not in ("const", "axis") and not text.isidentifier():
            text = code.named(text, s.value.dtype)
        code.store(s.target, s.index[0], text)
        if s.value.op != "const":
            code.remember(s.target, s.index[0], text)

    def _scatter(self, s: Statement) -> None:
        """Combine the value of a statement with what its target holds."""
        scatter(self._code, s)


def grouped(steps: list[Loop | Statement]) -> Iterator[Loop | list[Statement]]:
    """The loops, and lists of the statements that follow one another, in order."""
    group: list[Statement] = []
    for step in steps:
        if isinstance(step, Statement):
            group.append(step)
            continue
        if group:
            yield group
        group = []
        yield step
    if group:
        yield group


def written(loop: Loop) -> frozenset[Buffer]:
    return frozenset(s.target for s in statements(loop))


def leaf_of(loop: Loop, s: Statement) -> Loop | None:
    """The innermost loop around a statement."""
    if any(b is s for b in loop.body):
        return loop
    for b in loop.body:
        if isinstance(b, Loop) and (found := leaf_of(b, s)) is not None:
            return found
    return None


def owned(loop: Loop) -> list[Buffer]:
    """Registers and local arrays whose statements are all in this loop's body, and not all in one
    loop further in."""
    found: dict[Buffer, set[int]] = {}
    for k, step in enumerate(loop.body):
        for s in statements(step):
            for b, _ in s.touched:
                if b.kind in ("register", "local", "private"):
                    found.setdefault(b, set()).add(k)
    mine = []
    for b, where in found.items():
        k = next(iter(where))
        step = loop.body[k]
        inside = len(where) == 1 and isinstance(step, Loop) and not crosses(b, step)
        if not inside:
            mine.append(b)
    return mine


def crosses(b: Buffer, loop: Loop) -> bool:
    """Whether a value of b is made by a reduction along this loop."""
    return any(s.target is b and loop.axis in s.over and not s.scan for s in statements(loop))
