"""The loop IR as C.

One function a nest, `body(memory, begin, end)` where it runs in parallel; one function a section of
the program between two calls of torch. The functions get an array of pointers, in the order of
`Layout.slots`, the block of the temporaries, and a flag for indices out of bounds.

Expressions are named where they are used twice and computed at the outermost loop where they are
known. A reduction along a vectorized axis keeps an array of partial results, one a lane, that the C
compiler holds in vector registers; a strip holds such an array for each value that one of its loops
hands to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from . import expr as E
from .dtypes import DTYPES
from .expr import Expr
from .ir import COMBINE, PAIRED, Buffer, Call, Fence, Loop, Program, Statement, statements
from .scalars import c_cast, c_constant, c_expression, c_load, c_store
from .schedule import lanes

_SIMD = "#pragma omp simd"
# Steps of a lane after which its sum is put aside: keeps the error of a long sum small.
_CHAIN = 64


@dataclass
class Layout:
    """Where buffers lie: slot of each in the array of pointers; offset in the block."""

    slots: dict[Buffer, int]
    offsets: dict[Buffer, int]
    block: int
    flag: int
    size: int
    partials: int = 0


@dataclass
class Scope:
    """A level of loops: its axes, its text, and the expressions that have a name there."""

    axes: frozenset[Expr]
    lines: list[str]
    depth: int
    names: dict[Expr, str] = field(default_factory=dict)
    written: frozenset[Buffer] = frozenset()
    lane: str = ""


class Nest:
    """The C of one nest of loops, or of statements outside of loops."""

    def __init__(self, name: str, layout: Layout):
        self.name = name
        self.layout = layout
        self.buffers: dict[Buffer, str] = {}
        self.functions: list[str] = []
        self.partial: list[tuple[Statement, str, int]] = []
        self._names: dict[Expr, str] = {}
        self._counter = 0
        self._scopes: list[Scope] = []
        self._arrays: dict[Buffer, bool] = {}
        self._checks = False
        self._accumulators: dict[Statement, _Accumulator] = {}
        self._declared: set[Buffer] = set()
        self._axes: dict[Expr, str] = {}

    # Names and lines

    def axis(self, x: Expr) -> str:
        """The C variable of a loop: the same in every process, so that the disk cache finds it."""
        if x not in self._axes:
            self._axes[x] = f"{x.value[0][0]}{len(self._axes)}"
        return self._axes[x]

    def fresh(self, hint: str = "v") -> str:
        self._counter += 1
        return f"{hint}_{self._counter}"

    def line(self, text: str, scope: Scope | None = None) -> None:
        scope = self._scopes[-1] if scope is None else scope
        scope.lines.append("    " * scope.depth + text)

    def open(
        self, head: str, axes: frozenset[Expr], written: frozenset[Buffer], lane: str = ""
    ) -> None:
        top = self._scopes[-1]
        self._scopes.append(
            Scope(top.axes | axes, [], top.depth + 1, written=written, lane=lane or top.lane)
        )
        self._heads.append(head)

    def close(self) -> None:
        scope = self._scopes.pop()
        head = self._heads.pop()
        if head.startswith(_SIMD) and any("bad |=" in text for text in scope.lines):
            head = head.replace(_SIMD, _SIMD + " reduction(|:bad)", 1)
        self.line(head + " {")
        self._scopes[-1].lines += scope.lines
        self.line("}")

    _heads: list[str]

    def simd(self, head: str) -> str:
        """The head of a loop that runs as vectors."""
        return f"{_SIMD}\n{'    ' * self._scopes[-1].depth}{head}"

    # Expressions

    def place(self, b: Buffer, index: Expr) -> str:
        """The C lvalue of an element."""
        if b.kind == "register":
            name = self._name(b)
            return f"{name}[{self._scopes[-1].lane}]" if self._arrays.get(b) else name
        if b.kind == "local" and self._arrays.get(b):
            width = self._arrays_width
            return f"{self._name(b)}[({self.value(index)}) * {width} + {self._scopes[-1].lane}]"
        return f"{self._name(b)}[{self.value(index)}]"

    _arrays_width = 0

    def _name(self, b: Buffer) -> str:
        self.buffers.setdefault(b, b.name)
        return b.name

    def value(self, x: Expr) -> str:
        """A C expression for x, at the place that is being written."""
        if x.op == "const":
            return c_constant(x.value, x.dtype)
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
        if outer or self._uses.get(x, 2) > 1 or len(text) > 400:
            name = self.fresh()
            register = DTYPES[x.dtype].register
            self.line(f"const {register} {name} = {text};", scope)
            scope.names[x] = name
            return name
        return text

    _uses: dict[Expr, int]

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
        laned = any(self._arrays.get(b) for b in loaded)
        best = self._scopes[-1]
        for s in reversed(self._scopes[:-1]):
            inner = best
            if not axes <= s.axes or loaded & inner.written:
                break
            if laned and not s.lane:
                break
            best = s
        return best

    def _text(self, x: Expr) -> str:
        if x.op == "affine":
            return self._affine(x)
        if x.op == "load":
            place = self.place(x.value, x.args[0])
            return place if x.value.kind == "register" else c_load(x.dtype, place)
        if x.op == "idiv":
            return self._quotient(x, "/")
        if x.op == "imod":
            return self._quotient(x, "%")
        if x.op == "wrap":
            return self._wrap(x)
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
            parts.append(text if c == 1 else f"{c}L * {text}")
        if k:
            parts.append(f"{k}L")
        return "(" + " + ".join(parts) + ")"

    def _quotient(self, x: Expr, sign: str) -> str:
        inner, d = x.args[0], x.value
        lo, hi = E.bounds(inner)
        text = self.value(inner)
        if lo >= 0 and hi < 2 * d:
            past, below = (f"{text} - {d}L", text) if sign == "%" else ("1L", "0L")
            return f"({text} >= {d}L ? {past} : {below})"
        if lo >= 0 and hi < 1 << 31:
            return f"(i64)((u32){text} {sign} {d}U)"
        if lo >= 0:
            return f"({text} {sign} {d}L)"
        return f"{'floordiv' if sign == '/' else 'remainder'}_i64({text}, {d}L)"

    def _wrap(self, x: Expr) -> str:
        extent = x.value[0]
        self._checks = True
        name = self.fresh("at")
        inner = self.value(x.args[0])
        lo, _ = E.bounds(x.args[0])
        self.line(f"i64 {name} = {inner};")
        if lo < 0:
            self.line(f"{name} += {name} < 0 ? {extent}L : 0L;")
        self.line(f"bad |= (u64){name} >= {extent}UL;")
        self.line(f"{name} = (u64){name} < {extent}UL ? {name} : 0L;")
        return name

    def _bits(self, x: Expr, text: str) -> str:
        source, target = DTYPES[x.args[0].dtype], DTYPES[x.dtype]
        if source.kind in "iub" and target.kind in "iub":
            return f"({target.register}){text}"
        return f"((union {{ {source.register} a; {target.register} b; }}){{{text}}}).b"

    # Statements

    def store(self, s: Statement, index: Expr, text: str, value: Expr | None = None) -> None:
        b = s.target
        place = self.place(b, index)
        if b.kind == "register":
            self.line(f"{place} = {text};")
        else:
            self.line(f"{place} = {c_store(b.dtype, text)};")
        self.forget(b)
        if value is not None and value.op not in ("const",):
            self._scopes[-1].names[E.make("load", (index,), b.dtype, b)] = text

    def forget(self, b: Buffer) -> None:
        """Values read from a buffer before a write to it are not those after it."""
        for scope in self._scopes:
            stale = [x for x in scope.names if any(y.value is b for y in E.loads(x))]
            for x in stale:
                del scope.names[x]

    def statement(self, s: Statement) -> None:
        if s.calls and s.line and self._said != (s.line, s.calls):
            self._said = (s.line, s.calls)
            self.line(f"/* {s.line.replace('*/', '* /')} */")
        self._uses = _use_counts(s)
        accumulator = self._accumulators.get(s)
        if accumulator is not None:
            accumulator.step(self, s)
            return
        if s.op is not None:  # a scatter: combine with what is there
            place = self.place(s.target, s.index[0])
            was = c_load(s.target.dtype, place)
            text = combine(s.op, s.target.dtype, was, self.value(s.value))
            self.line(f"{place} = {c_store(s.target.dtype, text)};")
            self.forget(s.target)
            return
        text = self.value(s.value)
        if s.value.op not in ("const", "axis") and not text.isidentifier():
            name = self.fresh()
            self.line(f"const {DTYPES[s.value.dtype].register} {name} = {text};")
            text = name
        self.store(s, s.index[0], text, s.value)

    _said: tuple = ()


def combine(op: str, dtype: str, a: str, b: str) -> str:
    """The C expression of one step of a reduction."""
    return c_expression(COMBINE[op], dtype, [a, b])


def identity(op: str, dtype: str) -> str:
    row = DTYPES[dtype]
    if op in ("sum", "any"):
        return c_constant(0, dtype)
    if op in ("prod", "all"):
        return c_constant(1, dtype)
    low = op in ("max", "argmax")
    if row.kind == "f":
        return c_constant(float("-inf") if low else float("inf"), dtype)
    if row.kind == "b":
        return c_constant(not low, dtype)
    bits = row.bits
    if row.kind == "u":
        return c_constant(0 if low else (1 << bits) - 1, dtype)
    return c_constant(-(1 << (bits - 1)) if low else (1 << (bits - 1)) - 1, dtype)


def _use_counts(s: Statement) -> dict[Expr, int]:
    counts: dict[Expr, int] = {}
    for x in E.walk(s.value, *s.index, *([s.rank] if s.rank is not None else [])):
        for a in x.args:
            counts[a] = counts.get(a, 0) + 1
    for x in (s.value, *s.index):
        counts[x] = counts.get(x, 0) + 1
    return counts


@dataclass
class _Accumulator:
    """The variables of a reduction while it runs."""

    op: str
    dtype: str
    name: str
    lane: int
    scan: bool

    def step(self, nest: Nest, s: Statement) -> None:
        text = nest.value(s.value)
        lane = nest._scopes[-1].lane
        at = f"[{lane}]" if self.lane and lane else ""
        if self.op in PAIRED:
            v = nest.fresh()
            nest.line(f"const {DTYPES[self.dtype].register} {v} = {text};")
            assert s.rank is not None
            rank = nest.value(s.rank)
            better = _better(self.op, self.dtype, v, f"{self.name}{at}")
            c = nest.fresh("c")
            nest.line(f"const i64 {c} = {better};")
            nest.line(f"{self.name}{at} = {c} ? {v} : {self.name}{at};")
            nest.line(f"{self.name}_at{at} = {c} ? {rank} : {self.name}_at{at};")
            return
        nest.line(f"{self.name}{at} = {combine(self.op, self.dtype, self.name + at, text)};")
        if self.scan:
            nest.store(s, s.index[0], f"{self.name}{at}")


def _better(op: str, dtype: str, v: str, best: str) -> str:
    sign = ">" if op == "argmax" else "<"
    if DTYPES[dtype].kind == "f":
        return f"({v} {sign} {best}) | (({v} != {v}) & ({best} == {best}))"
    return f"({v} {sign} {best})"


# Loops


def written_in(loop: Loop | Statement) -> frozenset[Buffer]:
    return frozenset(s.target for s in statements(loop))


class Writer(Nest):
    """Writes the loops of a nest."""

    def __init__(self, name: str, layout: Layout):
        super().__init__(name, layout)
        self._heads = []
        self._uses = {}
        self.root: Loop | None = None
        self.width = 1

    def function(self, loop: Loop) -> str:
        """The function that runs iterations begin..end of a nest."""
        self.root = loop
        parallel = "parallel" in loop.marks
        outside = Scope(frozenset(), [], 1)
        self._scopes = [outside]
        if "strip" in loop.marks:
            self.strip(loop, "begin", "end", parallel)
        else:
            self.loop(loop, "begin", "end", parallel)
        head = f"static void {self.name}(void **memory, i64 begin, i64 end)"
        lines = [head + " {"]
        written = written_in(loop)
        lines += [
            "    " + self.pointer(b, b in written)
            for b in self.buffers
            if b.kind not in ("register", "local")
        ]
        if self._checks:
            lines.append("    i64 bad = 0;")
        lines += outside.lines
        if self._checks:
            lines.append(f"    if (bad) *(i64 *)memory[{self.layout.flag}] = 1;")
        lines.append("}")
        return "\n".join([*self.functions, *lines])

    def pointer(self, b: Buffer, written: bool) -> str:
        storage = DTYPES[b.dtype].storage
        const = "" if written else "const "
        if b in self.layout.slots:
            where = f"memory[{self.layout.slots[b]}]"
        else:
            where = f"((char *)memory[{self.layout.block}] + {self.layout.offsets[b]}L)"
        return f"{const}{storage} *restrict {b.name} = ({const}{storage} *){where};"

    # A loop whose iterations are written one after the other, or as vectors

    def loop(self, loop: Loop, lo: str, hi: str, chunk: bool = False) -> None:
        started = self.start(loop, chunk)
        v = self.axis(loop.axis)
        if "simd" in loop.marks:
            self.vector(loop, lo, hi)
        else:
            self.open(
                f"for (i64 {v} = {lo}; {v} < {hi}; {v}++)",
                frozenset((loop.axis,)),
                written_in(loop),
            )
            self.inside(loop)
            self.close()
        self.finish(loop, started, chunk)

    def body(self, steps: list) -> None:
        for step in steps:
            if isinstance(step, Statement):
                self.statement(step)
            elif "strip" in step.marks:
                self.strip(step, "0", str(step.axis.extent))
            else:
                self.loop(step, "0", f"{step.axis.extent}L")

    def inside(self, loop: Loop) -> None:
        """A loop's body, with the registers and local arrays that belong to it."""
        mine = [b for b in _owned(loop) if b not in self._declared]
        for b in mine:
            self.variables(b, 0)
        self._declared.update(mine)
        self.body(loop.body)
        self._declared.difference_update(mine)

    def variables(self, b: Buffer, width: int) -> None:
        row = DTYPES[b.dtype]
        kind = row.register if b.kind == "register" else row.storage
        n = (b.size if b.kind == "local" else 1) * max(width, 1)
        array = f"[{max(n, 1)}]" if width or b.kind == "local" else ""
        self.line(f"{kind} {b.name}{array};")

    def start(self, loop: Loop, chunk: bool) -> list[Statement]:
        """Accumulators of the reductions whose outermost axis this loop is."""
        mine = [s for s in statements(loop) if s.over and _outermost(s) is loop.axis]
        for s in mine:
            leaf = _leaf(loop, s)
            assert leaf is not None
            self.accumulate(s, self.lanes_of(leaf))
        return mine

    def accumulate(self, s: Statement, width: int) -> None:
        """The variables of a reduction; width: of its lanes, 1 for none."""
        dtype = s.target.dtype if s.op not in PAIRED else s.value.dtype
        a = _Accumulator(str(s.op), dtype, self.fresh("acc"), width if width > 1 else 0, s.scan)
        self._accumulators[s] = a
        start = identity(a.op, a.dtype)
        names = [(DTYPES[a.dtype].register, a.name, start)]
        if a.op in PAIRED:
            names.append(("i64", f"{a.name}_at", "0"))
        for kind, name, value in names:
            if a.lane:
                self.line(f"{kind} {name}[{width}];")
                self.line(f"for (int l = 0; l < {width}; l++) {name}[l] = {value};")
            else:
                self.line(f"{kind} {name} = {value};")

    def lanes_of(self, leaf: Loop) -> int:
        """Partial results of a reduction along a vectorized loop; 1: no vectors."""
        if "simd" not in leaf.marks:
            return 1
        return _lane_count(leaf.axis.extent, lanes(leaf))

    def finish(self, loop: Loop, mine: list[Statement], chunk: bool) -> None:
        for s in mine:
            a = self._accumulators.pop(s)
            if a.scan:
                continue
            if a.lane:
                self.fold(a)
            result = f"{a.name}_at" if a.op in PAIRED else a.name
            if a.lane:
                result += "[0]"
            if chunk:
                self.keep_partial(s, a, "[0]" if a.lane else "")
            else:
                self.store(s, s.index[0], result)

    def fold(self, a: _Accumulator) -> None:
        """Combine the lanes, as a tree."""
        w = a.lane // 2
        while w:
            x, y = f"{a.name}[l]", f"{a.name}[l + {w}]"
            if a.op in PAIRED:
                at = f"{a.name}_at"
                earlier = f"({_tied(a.dtype, y, x)} & ({at}[l + {w}] < {at}[l]))"
                first = f"({_better(a.op, a.dtype, y, x)}) | {earlier}"
                step = f"if ({first}) {x} = {y}, {at}[l] = {at}[l + {w}];"
            else:
                step = f"{x} = {combine(a.op, a.dtype, x, y)};"
            self.line(
                f"for (int l = 0; l < {w}; l++) {step}" if w > 1 else step.replace("[l", "[0")
            )
            w //= 2

    def keep_partial(self, s: Statement, a: _Accumulator, at: str) -> None:
        """Store what a chunk has found, for `Section` to combine."""
        assert self.root is not None
        chunks = -(-self.root.axis.extent // self.root.grain)
        storage = DTYPES[a.dtype].register
        names = [(storage, a.name)] + ([("i64", f"{a.name}_at")] if a.op in PAIRED else [])
        offsets = []
        for kind, name in names:
            offset = self.layout.partials
            self.layout.partials += -(-8 * chunks // 64) * 64
            offsets.append(offset)
            where = f"(({kind} *)((char *)memory[{self.layout.block}] + PARTIALS + {offset}L))"
            self.line(f"{where}[begin / {self.root.grain}L] = {name}{at};")
        self.partial.append((s, a.dtype, offsets[0]))
        if len(offsets) > 1:
            assert offsets[1] == offsets[0] + -(-8 * chunks // 64) * 64

    def vector(self, loop: Loop, lo: str, hi: str) -> None:
        """A loop without loops inside, as vectors."""
        v = self.axis(loop.axis)
        axes = frozenset((loop.axis,))
        written = written_in(loop)
        reducing = [s for s in loop.body if isinstance(s, Statement) and s in self._accumulators]
        width = self.lanes_of(loop) if reducing else 1
        if width == 1:
            head = f"for (i64 {v} = {lo}; {v} < {hi}; {v}++)"
            self.open(head if reducing else self.simd(head), axes, written)
            self.inside(loop)
            self.close()
            return
        sums = [
            self._accumulators[s] for s in reducing
            if self._accumulators[s].op == "sum" and DTYPES[self._accumulators[s].dtype].kind == "f"
        ]  # fmt: skip
        block = _CHAIN * width
        deep = bool(sums) and loop.axis.extent > 2 * block
        whole = self.fresh("j")
        if deep:
            stop = self.fresh("stop")
            for a in sums:
                self.line(f"{DTYPES[a.dtype].register} {a.name}_all[{width}];")
                self.line(f"for (int l = 0; l < {width}; l++) {a.name}_all[l] = {a.name}[l];")
            self.line(f"i64 {whole} = {lo};")
            self.open(f"while ({whole} + {width} <= {hi})", frozenset(), written)
            for a in sums:
                self.line(f"for (int l = 0; l < {width}; l++) {a.name}[l] = 0;")
            self.line(f"const i64 {stop} = {hi} - {whole} < {block} ? {hi} : {whole} + {block};")
            self._lanes(loop, whole, stop, width)
            for a in sums:
                self.line(f"for (int l = 0; l < {width}; l++) {a.name}_all[l] += {a.name}[l];")
            self.close()
            for a in sums:
                self.line(f"for (int l = 0; l < {width}; l++) {a.name}[l] = {a.name}_all[l];")
        else:
            self.line(f"i64 {whole} = {lo};")
            self._lanes(loop, whole, hi, width)
        if not (lo == "0" and loop.axis.extent % width == 0):
            lane, rest = self.fresh("l"), self.fresh("rest")
            self.line(f"const int {rest} = {hi} - {whole};")
            head = self.simd(f"for (int {lane} = 0; {lane} < {rest}; {lane}++)")
            self.open(head, axes, written, lane)
            self.line(f"const i64 {v} = {whole} + {lane};")
            self.inside(loop)
            self.close()

    def _lanes(self, loop: Loop, whole: str, hi: str, width: int) -> None:
        v, lane = self.axis(loop.axis), self.fresh("l")
        written = written_in(loop)
        self.open(f"for (; {whole} + {width} <= {hi}; {whole} += {width})", frozenset(), written)
        self.open(
            self.simd(f"for (int {lane} = 0; {lane} < {width}; {lane}++)"),
            frozenset((loop.axis,)), written, lane,
        )  # fmt: skip
        self.line(f"const i64 {v} = {whole} + {lane};")
        self.inside(loop)
        self.close()
        self.close()

    # Strips

    def strip(self, loop: Loop, lo: str, hi: str, chunk: bool = False) -> None:
        """A loop as strips: each statement inside runs for a whole strip."""
        width = lanes(loop)
        while width > loop.axis.extent:
            width //= 2
        mine = [s for s in statements(loop) if s.over and _outermost(s) is loop.axis]
        for s in mine:
            self.accumulate(s, width)
        v = self.axis(loop.axis)
        base = self.fresh(v)
        extent = loop.axis.extent
        # Of its own scope, so that what is computed outside of the strips is written before them.
        top = self._scopes[-1]
        self._scopes.append(Scope(top.axes, [], top.depth, written=written_in(loop)))
        self.line(f"for (i64 {base} = {lo}; {base} < {hi}; {base} += {width}) {{")
        if extent % width:
            self.line(f"    if ({extent}L - {base} >= {width}) {{")
            self._strip(loop, base, str(width), width, 2)
            self.line("    } else {")
            self.line(f"        const i64 width = {extent}L - {base};")
            self._strip(loop, base, "width", width, 2)
            self.line("    }")
        else:
            self._strip(loop, base, str(width), width, 1)
        self.line("}")
        top.lines += self._scopes.pop().lines
        self.finish(loop, mine, chunk)

    def _strip(self, loop: Loop, base: str, count: str, width: int, deeper: int) -> None:
        top = self._scopes[-1]
        written = written_in(loop)
        scope = Scope(top.axes, [], top.depth + deeper, written=written)
        self._scopes.append(scope)
        held = dict(self._arrays)
        self._arrays_width = width
        made = {s.target for s in statements(loop) if s.target.kind in ("register", "local")}
        for b in sorted(made - self._declared, key=lambda b: b.name):
            self._arrays[b] = True
            self.variables(b, width)
        self._strip_body(loop.body, _Strip(loop.axis, base, count, width, written))
        self._arrays = held
        self._scopes.pop()
        top.lines += scope.lines

    def _strip_body(self, steps: list, strip: _Strip) -> None:
        group: list[Statement] = []
        for step in [*steps, None]:
            if isinstance(step, Statement):
                group.append(step)
                continue
            if group:
                self._lane_loop(strip, partial(self._each, group))
                group = []
            if step is None:
                return
            mine = [s for s in statements(step) if s.over and _outermost(s) is step.axis]
            for s in mine:
                self.accumulate(s, strip.width)
            v = self.axis(step.axis)
            self.open(
                f"for (i64 {v} = 0; {v} < {step.axis.extent}L; {v}++)",
                frozenset((step.axis,)), written_in(step),
            )  # fmt: skip
            self._strip_body(step.body, strip)
            self.close()
            results = [s for s in mine if not s.scan]

            def put(results: list[Statement] = results) -> None:
                for s in results:
                    a = self._accumulators[s]
                    name = f"{a.name}_at" if a.op in PAIRED else a.name
                    self._uses = _use_counts(s)
                    self.store(s, s.index[0], f"{name}[{self._scopes[-1].lane}]")

            if results:
                self._lane_loop(strip, put)
            for s in mine:
                del self._accumulators[s]

    def _each(self, group: list[Statement]) -> None:
        for s in group:
            self.statement(s)

    def _lane_loop(self, strip: _Strip, fill: Callable[[], object]) -> None:
        lane = self.fresh("l")
        self.open(
            self.simd(f"for (int {lane} = 0; {lane} < {strip.count}; {lane}++)"),
            frozenset((strip.axis,)), strip.written, lane,
        )  # fmt: skip
        self.line(f"const i64 {self.axis(strip.axis)} = {strip.base} + {lane};")
        fill()
        self.close()


@dataclass
class _Strip:
    axis: Expr
    base: str
    count: str
    width: int
    written: frozenset[Buffer]


def _lane_count(extent: int, most: int) -> int:
    """How many partial results a reduction of that length keeps: a power of two, or 1.

    Many hide the time of an addition where the loop is long. Where it is short, what is left over
    the end and the combination of the lanes count.
    """
    if extent >= 8 * most:
        return most
    vector = most // 4
    counts = [w for w in (most, most // 2, vector, vector // 2, 4) if 4 <= w <= extent]

    def steps(w: int) -> float:
        rest = extent % w
        return (
            extent // w * 4 * max(1, w / most)
            + (rest // vector + rest % vector) * 2
            + (w.bit_length() * 4)
        )

    return min(counts, key=steps, default=1)


def _tied(dtype: str, a: str, b: str) -> str:
    if DTYPES[dtype].kind == "f":
        return f"(({a} == {b}) | (({a} != {a}) & ({b} != {b})))"
    return f"({a} == {b})"


def _outermost(s: Statement) -> Expr:
    """The first of a statement's reduced axes in the order of its loops."""
    return next(a for a in s.axes if a in s.over)


def _leaf(loop: Loop, s: Statement) -> Loop | None:
    """The innermost loop around a statement."""
    if any(b is s for b in loop.body):
        return loop
    for b in loop.body:
        if isinstance(b, Loop) and (found := _leaf(b, s)) is not None:
            return found
    return None


def _owned(loop: Loop) -> list[Buffer]:
    """Registers and local arrays whose statements are all in this loop's body, and not all in one
    loop further in."""
    found: dict[Buffer, set[int]] = {}
    for k, step in enumerate(loop.body):
        for s in statements(step):
            for b in (s.target, *(x.value for x in s.reads())):
                if b.kind in ("register", "local"):
                    found.setdefault(b, set()).add(k)
    mine = []
    for b, where in found.items():
        k = next(iter(where))
        step = loop.body[k]
        inside = len(where) == 1 and isinstance(step, Loop) and not _crosses(b, step)
        if not inside:
            mine.append(b)
    return mine


def _crosses(b: Buffer, loop: Loop) -> bool:
    """Whether a value of b is made by a reduction along this loop."""
    return any(s.target is b and loop.axis in s.over and not s.scan for s in statements(loop))


# The program


def source(program: Program, layout: Layout) -> tuple[str, int]:
    """The C text of a program without prelude, and the number of its sections."""
    functions: list[str] = []
    sections: list[list[str]] = [[]]
    number = 0
    for step in program.steps:
        if isinstance(step, (Call, Fence)):
            sections.append([])
            continue
        name = f"kernel_{number}"
        number += 1
        writer = Writer(name, layout)
        loop = step if isinstance(step, Loop) else Loop(E.axis(1, "once"), [step])
        functions.append(writer.function(loop))
        sections[-1] += _launch(writer, loop, name)
    text = "\n\n".join(functions)
    for k, lines in enumerate(sections):
        text += (
            f"\n\nint section_{k}(void **memory, int threads, run_t run) {{\n"
            + "".join(f"    {line}\n" for line in lines)
            + f"    return *(i64 *)memory[{layout.flag}] != 0;\n}}\n"
        )
    head = (
        "typedef void (*body_t)(void *, i64, i64);\n"
        "typedef void (*run_t)(body_t, void *, i64, i64, int);\n"
        f"#define PARTIALS {layout.size}L\n\n"
    )
    return head + text, len(sections)


def _launch(writer: Writer, loop: Loop, name: str) -> list[str]:
    extent = loop.axis.extent
    if "parallel" not in loop.marks:
        return [f"{name}(memory, 0, {extent}L);"]
    lines = [f"run((body_t){name}, memory, {extent}L, {loop.grain}L, threads);"]
    chunks = -(-extent // loop.grain)
    for s, dtype, offset in writer.partial:
        lines += _combined(writer, s, dtype, offset, chunks)
    return lines


def _combined(writer: Writer, s: Statement, dtype: str, offset: int, chunks: int) -> list[str]:
    """The chunks' results of a reduction as one."""
    layout = writer.layout
    kind = DTYPES[dtype].register
    block = f"((char *)memory[{layout.block}] + PARTIALS + "
    lines = ["{", f"    const {kind} *part = (const {kind} *){block}{offset}L);"]
    target = writer.pointer(s.target, True)
    lines.append("    " + target)
    at = s.index[0].value
    lines.append(f"    {kind} all = part[0];")
    if s.op in PAIRED:
        second = offset + -(-8 * chunks // 64) * 64
        lines.append(f"    const i64 *place = (const i64 *){block}{second}L);")
        lines.append("    i64 best = place[0];")
        better = _better(str(s.op), dtype, "part[c]", "all")
        lines.append(
            f"    for (i64 c = 1; c < {chunks}; c++) if ({better}) all = part[c], best = place[c];"
        )
        lines.append(f"    {s.target.name}[{at}] = best;")
    else:
        step = combine(str(s.op), dtype, "all", "part[c]")
        lines.append(f"    for (i64 c = 1; c < {chunks}; c++) all = {step};")
        lines.append(f"    {s.target.name}[{at}] = {c_store(s.target.dtype, 'all')};")
    lines.append("}")
    return lines
