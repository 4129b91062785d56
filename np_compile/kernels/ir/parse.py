"""Parser of the loop IR's text, for tests and for programs that someone prints."""

from __future__ import annotations

import re

from . import expr as E
from . import scalars
from .dtypes import DTYPES
from .expr import Expr
from .program import (
    COMBINE,
    KINDS,
    LOOPS,
    PAIRED,
    Buffer,
    Fence,
    Loop,
    Malformed,
    Program,
    Statement,
)

_TOKEN = re.compile(
    r"""\s*(?: (?P<number>-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan|True|False):\w+)
             | (?P<int>-?\d+)
             | (?P<name>\w+)
             | (?P<sign><=|>=|==|!=|//|[-+*/%<>=&|^()\[\],:]) )""",
    re.VERBOSE,
)
_SIGNS = {sign: op for op, sign in E.INFIX.items()}
_REDUCTIONS = (*COMBINE, *PAIRED)


def parse(text: str) -> Program:
    """The program of a text, not yet checked.

    Axes have the names given; those of one name and extent are one axis. Malformed, for a text that
    is none of the grammar: the line, and what was expected. Calls of torch cannot be read.
    """
    program = Program([], [])
    buffers: dict[str, Buffer] = {}
    # For each depth of indentation the list of steps, and the axes of the loops around.
    levels: list[tuple[list, dict[str, Expr]]] = [(program.steps, {})]
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        place = f"line {number}: {line.strip()}"
        if " = call " in line:
            raise Malformed(f"{place}\n  calls of torch cannot be read")
        reader = _Reader(place, line, buffers)
        depth, rest = divmod(len(line) - len(line.lstrip(" ")), 2)
        if rest or depth >= len(levels):
            reader.fail("the indentation fits no loop")
        del levels[depth + 1 :]
        steps, axes = levels[depth]
        reader.axes = axes
        if reader.take("for"):
            loop = reader.loop()
            steps.append(loop)
            levels.append((loop.body, {**axes, loop.axis.value[0]: loop.axis}))
        elif reader.take("fence"):
            steps.append(Fence())
        elif reader.ahead(1) == ":":
            b = reader.buffer()
            buffers[b.name] = b
            program.buffers.append(b)
        else:
            steps.append(reader.statement())
        if reader.ahead():
            reader.fail(f"nothing can follow before {reader.ahead()!r}")
    return program


class _Reader:
    """One line, token by token."""

    def __init__(self, place: str, line: str, buffers: dict[str, Buffer]):
        self.place = place
        self.buffers = buffers
        self.axes: dict[str, Expr] = {}
        self.given: dict[str, Expr] = {}
        self.at = 0
        self.tokens: list[tuple[str, str]] = []
        position, line = 0, line.rstrip()
        while position < len(line):
            found = _TOKEN.match(line, position)
            if found is None:
                raise Malformed(f"{place}\n  {line[position:]!r} begins no word")
            position = found.end()
            self.tokens.append((str(found.lastgroup), found.group(str(found.lastgroup))))

    def fail(self, rule: str) -> None:
        raise Malformed(f"{self.place}\n  {rule}")

    def ahead(self, k: int = 0) -> str:
        return self.tokens[self.at + k][1] if self.at + k < len(self.tokens) else ""

    def take(self, word: str) -> bool:
        """Whether `word` comes next; if so, it is passed."""
        found = self.ahead() == word
        self.at += found
        return found

    def need(self, word: str) -> None:
        if not self.take(word):
            self.fail(f"{word!r} is missing before {self.ahead()!r}")

    def next(self, kind: str) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != kind:
            self.fail(f"{self.ahead()!r} is no {kind}")
        self.at += 1
        return self.ahead(-1)

    def one_of(self, words: object, what: str) -> str:
        word = self.next("name")
        if word not in words:  # type: ignore[operator]
            self.fail(f"no {what} is called {word}")
        return word

    # Lines

    def buffer(self) -> Buffer:
        name = self.next("name")
        self.need(":")
        dtype = self.one_of(DTYPES, "dtype")
        shape = self.ints()
        self.need("strides")
        strides = self.ints()
        kind = self.one_of(KINDS, "kind of buffer")
        position = int(self.next("int")) if self.ahead() else -1
        return Buffer(name, dtype, shape, strides, kind, position)

    def ints(self) -> tuple[int, ...]:
        self.need("[")
        found: list[int] = []
        while not self.take("]"):
            if found:
                self.need(",")
            found.append(int(self.next("int")))
        return tuple(found)

    def extent(self) -> Expr:
        name = self.next("name")
        self.need("<")
        return E.make("axis", (), "i64", (name, int(self.next("int"))))

    def loop(self) -> Loop:
        loop = Loop(self.extent())
        if self.take("parallel"):
            loop.grain = int(self.next("int"))
            if loop.grain < 1:
                self.fail("a parallel loop has chunks of at least one iteration")
        if self.ahead() != ":":
            loop.kind = self.one_of(LOOPS[1:], "kind of loop")
            loop.width = int(self.next("int"))
        loop.lanes = int(self.next("int")) if self.take("lanes") else 1
        loop.chain = int(self.next("int")) if self.take("chain") else 0
        loop.overlapping = int(self.next("int")) if self.take("overlapping") else 0
        if self.take("written"):
            self.need("out")
            loop.private = True
        loop.blocks = int(self.next("int")) if self.take("blocks") else 0
        if self.take("aligned"):
            loop.aligned = self.buffers[self.one_of(self.buffers, "buffer")]
        self.need(":")
        return loop

    def statement(self) -> Statement:
        if self.take("all"):
            own = [self.extent()]
            while self.take(","):
                own.append(self.extent())
            self.need(":")
            self.axes = {**self.axes, **{a.value[0]: a for a in own}}
        if self.take("let"):
            self.names()
        target, index = self.element()
        scan, atomic = self.take("running"), self.take("atomic")
        op = None if self.ahead() == "=" else self.one_of(_REDUCTIONS, "reduction")
        self.need("=")
        value = self.expr()
        over: list[Expr] = []
        if self.take("over"):
            over.append(self.axis())
            while self.ahead() in self.axes:
                over.append(self.axis())
        rank = self.expr() if self.take("rank") else None
        axes = tuple(self.axes.values())
        vector = self.axis() if self.take("along") else (axes[-1] if axes else None)
        return Statement(
            axes, target, index, value, op, tuple(over), scan, rank, vector, atomic=atomic
        )

    def names(self) -> None:
        """Names of expressions, as `let` introduces them."""
        while not self.take(":"):
            if self.given:
                self.need(",")
            name = self.next("name")
            self.need("=")
            self.given[name] = self.expr()

    def element(self) -> tuple[Buffer, tuple[Expr, ...]]:
        name = self.one_of(self.buffers, "buffer")
        return self.buffers[name], self.exprs("[", "]")

    def axis(self) -> Expr:
        return self.axes[self.one_of(self.axes, "axis")]

    # Expressions

    def exprs(self, begin: str, end: str) -> tuple[Expr, ...]:
        self.need(begin)
        found: list[Expr] = []
        while not self.take(end):
            if found:
                self.need(",")
            found.append(self.expr())
        return tuple(found)

    def expr(self) -> Expr:
        if not self.at < len(self.tokens):
            self.fail("an expression is missing")
        kind, word = self.tokens[self.at]
        if kind == "int":
            self.at += 1
            return E.times(self.expr(), int(word)) if self.take("*") else E.integer(int(word))
        if kind == "number":
            self.at += 1
            value, _, dtype = word.partition(":")
            if dtype not in DTYPES:
                self.fail(f"no dtype is called {dtype}")
            plain = value == "True" if value in ("True", "False") else _number(value)
            return E.const(scalars.convert_constant(plain, dtype), dtype)
        if self.take("("):
            return self.infix()
        if word in self.given:
            self.at += 1
            return self.given[word]
        if self.ahead(1) == "[":
            return E.load(*self.element())
        return self.call() if self.ahead(1) == "(" else self.axis()

    def infix(self) -> Expr:
        """What follows an opening parenthesis."""
        left = self.expr()
        while not self.take(")"):
            sign = self.next("sign")
            if sign in ("//", "%"):
                divide = E.floordiv if sign == "//" else E.mod
                left = divide(left, int(self.next("int")))
            elif sign == "+" and left.dtype == "i64":
                left = E.plus(left, self.expr())
            elif sign in _SIGNS:
                left = self.operation(_SIGNS[sign], (left, self.expr()))
            else:
                self.fail(f"no operation is written {sign}")
        return left

    def call(self) -> Expr:
        name = self.next("name")
        if name in ("wrap", "known"):
            self.need("(")
            at = self.expr()
            self.need(",")
            extent = int(self.next("int"))
            if name == "known":
                self.need(")")
                return E.known(at, extent)
            self.need(",")
            dim = int(self.next("int"))
            self.need(")")
            return E.wrap(at, extent, dim)
        args = self.exprs("(", ")")
        dtype = name.removeprefix("bits_")
        if dtype in DTYPES and len(args) == 1:
            return E.cast(args[0], dtype) if dtype == name else E.bitcast(args[0], dtype)
        return self.operation(name, args)

    def operation(self, name: str, args: tuple[Expr, ...]) -> Expr:
        row = scalars.OPS.get(name)
        if row is None or row.arity != len(args):
            self.fail(f"no operation {name} takes {len(args)} operands")
        if len({a.dtype for a in args[name == "where" :]}) > 1:
            self.fail(f"the operands of {name} have several dtypes")
        try:
            return E.scalar(name, *args)
        except E.NoOperation as e:
            raise Malformed(f"{self.place}\n  {e}") from None


def _number(text: str) -> int | float:
    return float(text) if re.search(r"[.en]", text) else int(text)
