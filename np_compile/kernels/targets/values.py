"""C of expressions, with common subexpressions and loop-invariant code in variables.

An expression that is used twice gets a name, and one that is known outside of a loop is computed
there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from np_compile.size import Size

from ..analysis.access import coefficient
from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr
from ..ir.program import Buffer, Statement
from ..ir.scalars import c_cast, c_constant, c_expression, c_load, c_store
from .dialect import Dialect
from .literals import long

_NOTHING: frozenset = frozenset()
_REGISTERS = ("register", "private")
# Longer expressions get a name even if they are used once.
_LONG = 400


@dataclass(eq=False)
class Scope:
    """A level of the text: its lines, and the expressions that have a name there.

    Its code runs for values of `axes`, and may write to the buffers in `written`. It is for one
    lane of a vector, and for one element of a strip, if these C variables are not empty. `simd`:
    whether it lies in a loop that runs as vectors, and so has no branches. `checks`: whether an
    index is checked within.
    """

    axes: frozenset[Expr]
    lines: list[str]
    depth: int
    written: frozenset[Buffer]
    lane: str
    element: str
    simd: bool
    checks: bool = False
    names: dict[Expr, str] = field(default_factory=dict)


class Code:
    """The body of a C function while it is written: lines, names, and values.

    `buffers`: those that the text mentions, in this order. `arrays`: the registers and local arrays
    that have an element for each one of a strip, with the strip's length.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.buffers: dict[Buffer, None] = {}
        self.arrays: dict[Buffer, int] = {}
        self.slot = ""
        self._counter = 0
        self._axes: dict[Expr, str] = {}
        self._uses: dict[Expr, int] = {}
        self._scopes = [Scope(_NOTHING, [], 1, _NOTHING, "", "", False)]

    # Names and lines

    @property
    def lane(self) -> str:
        """The C variable of the lane that is being written, or an empty text."""
        return self._scopes[-1].lane

    @property
    def checks(self) -> bool:
        """Whether the variable `bad` is in use, which is not zero after an index out of bounds."""
        return self._scopes[0].checks

    @property
    def lines(self) -> list[str]:
        """The lines of the innermost scope."""
        return self._scopes[-1].lines

    def axis(self, x: Expr) -> str:
        """The C variable of a loop: the same in every process, so that the disk cache finds it."""
        if x not in self._axes:
            name = f"{x.value[0][0]}{len(self._axes)}"
            self._axes[x] = f"{name}_" if name in DTYPES else name  # a type is called i16
        return self._axes[x]

    def fresh(self, hint: str = "v") -> str:
        """A name that is not in use."""
        self._counter += 1
        return f"{hint}_{self._counter}"

    def line(self, text: str, scope: Scope | None = None) -> None:
        """Add a line, to the innermost scope if none is given."""
        scope = self._scopes[-1] if scope is None else scope
        scope.lines.append("    " * scope.depth + text)

    @contextmanager
    def block(
        self,
        head: str,
        axes: Iterable[Expr] = (),
        written: frozenset[Buffer] = _NOTHING,
        lane: str = "",
        element: str = "",
    ) -> Iterator[None]:
        """What is written meanwhile is the body of a loop with that head."""
        simd = self.dialect.simd
        vectors = bool(simd) and head.startswith(simd)
        with self._scope(1, axes, written, lane, element, vectors) as scope:
            yield
        if vectors and scope.checks:
            head = head.replace(simd, simd + " reduction(|:bad)", 1)
        self.line(head + " {")
        self.lines.extend(scope.lines)
        self.line("}")

    @contextmanager
    def section(self, written: frozenset[Buffer], deeper: int = 0) -> Iterator[None]:
        """What is written meanwhile has names of its own, and `deeper` levels of indentation."""
        with self._scope(deeper, (), written) as scope:
            yield
        self.lines.extend(scope.lines)

    @contextmanager
    def _scope(
        self, deeper: int, axes: Iterable[Expr], written: frozenset[Buffer], lane: str = "",
        element: str = "", simd: bool = False,
    ) -> Iterator[Scope]:  # fmt: skip
        top = self._scopes[-1]
        lane, element, simd = lane or top.lane, element or top.element, simd or top.simd
        scope = Scope(top.axes.union(axes), [], top.depth + deeper, written, lane, element, simd)
        self._scopes.append(scope)
        yield scope
        self._scopes.pop()
        self._scopes[-1].checks |= scope.checks

    def simd(self, head: str) -> str:
        """The head of a loop that runs as vectors."""
        return f"{self.dialect.simd}\n{'    ' * self._scopes[-1].depth}{head}"

    def unrolled(self, head: str, times: int) -> str:
        """The head of a loop of a few iterations that is written out."""
        pragma = self.dialect.unroll.format(times)
        return f"{pragma}\n{'    ' * self._scopes[-1].depth}{head}"

    # Values

    def use(self, s: Statement) -> None:
        """The values that follow are those of a statement: what it uses twice gets a name."""
        self._uses = _use_counts(s)

    def value(self, x: Expr) -> str:
        """A C expression for x, at the place that is being written."""
        if x.op == "const":
            return str(x.value) if type(x.value) is Size else c_constant(x.value, x.dtype)
        if x.op == "axis":
            return self.axis(x)
        scope = self._scope_of(x)
        for s in reversed(self._scopes):
            found = s.names.get(x)
            if found is not None:
                return found
            if s is scope:
                break
        outer = scope is not self._scopes[-1]
        text = self._at(x, scope) if outer else self._text(x)
        if outer or self._uses.get(x, 2) > 1 or len(text) > _LONG or self._has_gaps(x):
            scope.names[x] = self.named(text, x.dtype, scope)
            return scope.names[x]
        return text

    def _has_gaps(self, x: Expr) -> bool:
        """Whether a loop's vectors load every other element for x, or so. Under a condition the C
        compiler makes no vectors of that, so it is loaded before, where it can be."""
        inner = self._scopes[-1]
        if x.op != "load" or not inner.simd or x.value.kind in ("register", "local"):
            return False
        axes = inner.axes - self._scopes[-2].axes
        lo, hi = E.bounds(x.args[0])
        return (
            lo >= 0
            and hi < x.value.size
            and any(coefficient(x.args[0], a) not in (0, 1) for a in axes)
        )

    def named(self, text: str, dtype: str, scope: Scope | None = None) -> str:
        """A new variable that holds the value of a C expression."""
        name = self.fresh()
        self.line(f"const {DTYPES[dtype].register} {name} = {text};", scope)
        return name

    def place(self, b: Buffer, index: Expr) -> str:
        """The C lvalue of an element."""
        self.buffers[b] = None
        width, element = self.arrays.get(b), self._scopes[-1].element
        if b.kind == "private":
            return f"{b.name}[{self.slot}]"
        if b.kind == "register":
            return f"{b.name}[{element}]" if width else b.name
        if width:
            return f"{b.name}[({self.value(index)}) * {width} + {element}]"
        return f"{b.name}[{self.value(index)}]"

    def store(self, b: Buffer, index: Expr, text: str) -> None:
        """Write the value of a C expression to an element."""
        self.write(b, self.place(b, index), text)

    def write(self, b: Buffer, place: str, text: str) -> None:
        """Write the value of a C expression to an lvalue in b."""
        self.effect(b, f"{place} = {text if b.kind in _REGISTERS else c_store(b.dtype, text)};")

    def effect(self, b: Buffer, text: str) -> None:
        """A line that writes to b."""
        self.line(text)
        self._forget(b)

    def remember(self, b: Buffer, index: Expr, name: str) -> None:
        """An element of b, until the next write, is what a C variable holds."""
        self._scopes[-1].names[E.make("load", (index,), b.dtype, b)] = name

    def _forget(self, b: Buffer) -> None:
        """Values read from a buffer before a write to it are not those after it."""
        for scope in self._scopes:
            stale = [x for x in scope.names if any(y.value is b for y in E.loads(x))]
            for x in stale:
                del scope.names[x]

    def _at(self, x: Expr, scope: Scope) -> str:
        """The text of x, with whatever it needs, in an outer scope."""
        held = self._scopes
        self._scopes = held[: held.index(scope) + 1]
        try:
            return self._text(x)
        finally:
            self._scopes = held

    def _scope_of(self, x: Expr) -> Scope:
        """The outermost scope where x is known and stays what it is."""
        axes = E.axes_of(x)
        loaded = {y.value for y in E.loads(x)}
        laned = any(b in self.arrays for b in loaded)
        best = self._scopes[-1]
        for s in reversed(self._scopes[:-1]):
            if not axes <= s.axes or loaded & best.written or (laned and not s.element):
                break
            best = s
        return best

    # Operations

    def _text(self, x: Expr) -> str:
        if x.op == "affine":
            return self._affine(x)
        if x.op == "load":
            place = self.place(x.value, x.args[0])
            return place if x.value.kind in _REGISTERS else c_load(x.dtype, place)
        if x.op == "idiv":
            return self._quotient(x, "/")
        if x.op == "imod":
            return self._quotient(x, "%")
        if x.op == "wrap":
            return self._wrap(x)
        if x.op == "known":
            return self.value(x.args[0])
        args = [self.value(a) for a in x.args]
        if x.op == "cast":
            return c_cast(x.args[0].dtype, x.dtype, args[0])
        if x.op == "bitcast":
            return self._bits(x, args[0])
        return c_expression(x.op, x.args[-1].dtype, args)

    def _affine(self, x: Expr) -> str:
        k = x.value[0]
        parts = []
        for a, c in sorted(zip(x.args, x.value[1:], strict=True), key=lambda p: -abs(p[1])):
            text = self.value(a)
            parts.append(text if c == 1 else f"{long(c)} * {text}")
        if k:
            parts.append(f"{long(k)}")
        return "(" + " + ".join(parts) + ")"

    def _quotient(self, x: Expr, sign: str) -> str:
        inner, d = x.args[0], x.value
        lo, hi = E.bounds(inner)
        text = self.value(inner)
        if lo >= 0 and type(hi) is int and hi < 2 * d:
            past, below = (f"{text} - {long(d)}", text) if sign == "%" else ("1L", "0L")
            return f"({text} >= {long(d)} ? {past} : {below})"
        if lo >= 0 and type(d) is int and type(hi) is int and hi < 1 << 31:
            return f"(i64)((u32){text} {sign} {d}U)"
        if lo >= 0:
            return f"({text} {sign} {long(d)})"
        return f"{'floordiv' if sign == '/' else 'remainder'}_i64({text}, {long(d)})"

    def _wrap(self, x: Expr) -> str:
        extent = x.value[0]
        count = long(extent, "UL")
        self._scopes[-1].checks = True
        name = self.fresh("at")
        inner, lifted = x.args[0], E.bounds(x.args[0])[0] < 0
        checked = E.unless_negative(inner)
        if checked is not None and checked[1] is E.integer(extent):
            inner, lifted = checked[0], False  # what is negative is out of bounds
        self.line(f"i64 {name} = {self.value(inner)};")
        if self._scopes[-1].simd:
            # Both are minima of unsigned integers. What is not empty has a last element.
            if lifted:
                again = f"(u64){name} + {count}"
                self.line(f"{name} = (i64)((u64){name} < {again} ? (u64){name} : {again});")
            inside, last = self.fresh("at"), max(extent - 1, 0)
            held = f"(u64){name} < {count} ? {name} : {long(last)}"
            self.line(f"const i64 {inside} = {held};")
            self.line(f"bad |= {name} ^ {inside};" if extent else "bad |= 1;")
            return inside
        # One by one, the processor guesses right, and does not wait for the comparison.
        lift = f"{name} = (i64)((u64){name} + {count}); " if lifted else ""
        again = f"if ((u64){name} >= {count}) " if lifted else ""
        self.line(f"if (__builtin_expect((u64){name} >= {count}, 0)) {{")
        self.line(f"    {lift}{again}bad |= 1, {name} = 0L;")
        self.line("}")
        return name

    def _bits(self, x: Expr, text: str) -> str:
        source, target = DTYPES[x.args[0].dtype], DTYPES[x.dtype]
        if source.kind in "iub" and target.kind in "iub":
            return f"({target.register}){text}"
        return self.dialect.bits.format(source=source.register, target=target.register, x=text)


def _use_counts(s: Statement) -> dict[Expr, int]:
    counts: dict[Expr, int] = {}
    for x in E.walk(s.value, *s.index, *([s.rank] if s.rank is not None else [])):
        for a in x.args:
            counts[a] = counts.get(a, 0) + 1
    for x in (s.value, *s.index):
        counts[x] = counts.get(x, 0) + 1
    return counts
