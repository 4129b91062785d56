"""C of loop nests: one function for each.

A loop runs element by element, as vectors, or in strips: each statement of a strip runs for a few
vectors of elements, and what one of its loops hands to the next has a variable for each of them.
The elements of a jammed loop are strips too, of a few elements that take turns. In strips of rows
the statements run so, but the loops inside for one element after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from np_compile.size import some

from ...analysis.access import offset
from ...analysis.memory import Layout
from ...ir.dtypes import DTYPES
from ...ir.program import PAIRED, Buffer, Loop, Statement, statements
from ..literals import long
from ..nest import Nest as AnyNest
from ..nest import grouped, leaf_of, owned, written
from ..reductions import accumulate, begun, share
from .dialect import GNU
from .memory import pointer, symbols
from .partials import Partials, leave

# The kinds of loops that run in strips.
_STRIPS = ("strip", "jam", "rows")
_UNROLLED = 16  # iterations up to which a C compiler may write a loop out


class Nest(AnyNest):
    """The C of one nest of loops. `partials`: what chunks leave, for the caller to combine."""

    def __init__(self, layout: Layout):
        super().__init__(layout, GNU)
        self.partials: list[Partials] = []

    def function(self, name: str, loop: Loop) -> str:
        """The function that runs iterations begin..end of a nest."""
        code = self._code
        write = self._strips if loop.kind in _STRIPS else self._loop
        write(loop, "begin", "end")
        stored = written(loop)
        pointers = [b for b in code.buffers if b.kind not in ("register", "local")]
        lines = [f"    {line}" for line in symbols(self._layout)]
        lines += ["    " + pointer(self._layout, b, b in stored) for b in pointers]
        if code.checks:
            lines.append("    i64 bad = 0;")
        lines += code.lines
        if code.checks:
            lines.append(f"    if (bad) *(i64 *)memory[{self._layout.flag}] = 1;")
        head = f"static void {name}(void **memory, i64 begin, i64 end) {{"
        return "\n".join([head, *lines, "}"])

    # Loops and statements

    def _loop(self, loop: Loop, lo: str, hi: str) -> None:
        """A loop from lo to hi."""
        started = sorted(begun(loop), key=lambda s: s.op not in PAIRED)  # others may share theirs
        for k, s in enumerate(started):
            leaf = leaf_of(loop, s)
            assert leaf is not None
            before = (self._accumulators[t] for t in started[:k] if leaf_of(loop, t) is leaf)
            shared = next((a for t in before if (a := share(t, s)) is not None), None)
            extent = leaf.axis.extent
            in_few = leaf is not loop and isinstance(extent, int) and extent <= _UNROLLED
            made = shared or accumulate(self._code, s, leaf.lanes, True, in_few)
            self._accumulators[s] = made
        if loop.kind == "vector":
            self._vector(loop, lo, hi)
        else:
            v = self._code.axis(loop.axis)
            head = f"for (i64 {v} = {lo}; {v} < {hi}; {v}++)"
            if loop.kind == "unroll":
                head = self._code.unrolled(head, loop.axis.extent)
            with self._code.block(head, (loop.axis,), written(loop)):
                self._inside(loop)
        self._finish(loop, started)

    def _step(self, step: Loop | Statement) -> None:
        if isinstance(step, Statement):
            self._statement(step)
        elif step.kind in _STRIPS:
            self._strips(step, "0", str(step.axis.extent))
        else:
            self._loop(step, "0", f"{long(step.axis.extent)}")

    def _finish(self, loop: Loop, mine: list[Statement]) -> None:
        """The results of reductions, after their loop."""
        for s in mine:
            a = self._accumulators.pop(s)
            if s.scan:
                continue
            result = a.fold(self._code)
            if loop.grain:
                self.partials.append(leave(self._code, self._layout, a, loop))
            else:
                self._code.store(s.target, s.index[0], result)

    # A loop without loops inside, as vectors

    def _vector(self, loop: Loop, lo: str, hi: str) -> None:
        code = self._code
        width = loop.lanes
        if loop.overlapping:
            self._last_overlaps(loop, lo, hi)
            return
        if width == 1:
            with self._aligned(loop, lo, hi) as (first, end):
                v = code.axis(loop.axis)
                head = code.simd(f"for (i64 {v} = {first}; {v} < {end}; {v}++)")
                with code.block(head, (loop.axis,), written(loop)):
                    self._inside(loop)
            return
        at = code.fresh("j")
        if loop.chain:
            self._chains(loop, at, lo, hi, width)
        else:
            code.line(f"i64 {at} = {lo};")
            self._whole(loop, at, hi, width)
        if lo != "0" or some(loop.axis.extent % width):
            self._rest(loop, at, hi)

    def _last_overlaps(self, loop: Loop, lo: str, hi: str) -> None:
        """Vectors of constant length, the last of which may overlap the one before it: what is
        left over would be element by element."""
        at, lane, width = self._code.fresh("j"), self._code.fresh("l"), loop.overlapping
        head = f"for (i64 {at} = {lo}; {at} < {hi}; {at} += {width})"
        with self._code.block(head, (), written(loop)):
            with self._code.block(f"if ({hi} - {at} < {width})", (), written(loop)):
                with self._code.block(f"if ({hi} - {lo} < {width})", (), written(loop)):
                    self._rest(loop, at, hi)
                    self._code.line("break;")
                self._code.line(f"{at} = {hi} - {width};")
            self._vector_body(loop, at, lane, str(width))

    @contextmanager
    def _aligned(self, loop: Loop, lo: str, hi: str) -> Iterator[tuple[str, str]]:
        """The bounds of the vectors of a loop. Where they are aligned, it is run twice, first for
        the few elements up to a cache line."""
        b = loop.aligned
        if b is None:
            yield lo, hi
            return
        code = self._code
        size = DTYPES[b.dtype].size
        at, stop = code.fresh("from"), code.fresh("to")
        code.buffers[b] = None
        places = (offset(s.index[0], loop.axis) for s in statements(loop) if s.target is b)
        place = f"({b.name} + {lo} + {long(next(k for k in places if k is not None))})"
        line = self._layout.align // size
        code.line(f"i64 {stop} = {lo} + (i64)(-(u64){place} / {size}UL % {line}UL);")
        code.line(f"{stop} = {stop} < {hi} ? {stop} : {hi};")
        head = f"for (i64 {at} = {lo}; {at} < {hi}; {at} = {stop}, {stop} = {hi})"
        with code.block(head, (), written(loop)):
            yield at, stop

    def _chains(self, loop: Loop, at: str, lo: str, hi: str, width: int) -> None:
        """The whole vectors of a loop; the lanes of sums are put aside after some steps."""
        code = self._code
        reducing = (self._accumulators.get(s) for s in statements(loop))
        sums = [a for a in reducing if a is not None and a.is_float_sum]
        names = [a.name for a in sums]
        each = f"for (int l = 0; l < {width}; l++)"
        block = loop.chain * width
        stop = code.fresh("stop")
        for a in sums:
            code.line(f"{DTYPES[a.dtype].register} {a.name}_all[{width}];")
            code.line(f"{each} {a.name}_all[l] = {a.name}[l];")
        code.line(f"i64 {at} = {lo};")
        with code.block(f"while ({at} + {width} <= {hi})", (), written(loop)):
            for name in names:
                code.line(f"{each} {name}[l] = 0;")
            code.line(f"const i64 {stop} = {hi} - {at} < {block} ? {hi} : {at} + {block};")
            self._whole(loop, at, stop, width)
            for name in names:
                code.line(f"{each} {name}_all[l] += {name}[l];")
        for name in names:
            code.line(f"{each} {name}[l] = {name}_all[l];")

    def _whole(self, loop: Loop, at: str, hi: str, width: int) -> None:
        """The whole vectors from `at` to hi."""
        lane = self._code.fresh("l")
        head = f"for (; {at} + {width} <= {hi}; {at} += {width})"
        with self._code.block(head, (), written(loop)):
            self._vector_body(loop, at, lane, str(width))

    def _rest(self, loop: Loop, at: str, hi: str) -> None:
        """The elements from `at` to hi, fewer than a whole vector."""
        lane, rest = self._code.fresh("l"), self._code.fresh("rest")
        self._code.line(f"const int {rest} = {hi} - {at};")
        self._vector_body(loop, at, lane, rest)

    def _vector_body(self, loop: Loop, at: str, lane: str, count: str) -> None:
        code = self._code
        head = code.simd(f"for (int {lane} = 0; {lane} < {count}; {lane}++)")
        with code.block(head, (loop.axis,), written(loop), lane):
            code.line(f"const i64 {code.axis(loop.axis)} = {at} + {lane};")
            self._inside(loop)
        for s in loop.body:
            if isinstance(s, Statement) and (a := self._accumulators.get(s)) and a.in_order:
                a.take(code, count)

    # Strips

    def _strips(self, loop: Loop, lo: str, hi: str) -> None:
        """A loop from lo to hi in strips: each statement inside runs for a whole strip."""
        code = self._code
        extent = loop.axis.extent
        width = loop.width
        rest = extent % width if isinstance(width, int) else 0
        started = begun(loop)
        for s in started:
            self._accumulators[s] = accumulate(code, s, width)
        base = code.fresh(code.axis(loop.axis))
        whole = _Strip.of(loop, base, width, width)
        # Of its own scope, so that what is computed outside of the strips is written before them.
        with code.section(written(loop)):
            if loop.overlapping:
                self._overlapping(loop, base, lo, hi)
                return
            code.line(f"for (i64 {base} = {lo}; {base} < {hi}; {base} += {width}) {{")
            if some(rest):
                code.line(f"    if ({long(extent)} - {base} >= {width}) {{")
                self._strip(whole, 2)
                code.line("    } else {")
                self._strip(_Strip.of(loop, base, rest, width), 2)
                code.line("    }")
            else:
                self._strip(whole, 1)
            code.line("}")
        self._finish(loop, started)

    def _overlapping(self, loop: Loop, base: str, lo: str, hi: str) -> None:
        """Strips of constant lengths: the last one is two halves that may overlap, and lie before
        where it would begin if fewer than a vector are left. The C compiler has the variables of a
        strip in registers only where it knows its length."""
        code, least = self._code, loop.overlapping
        stop = code.fresh("stop")
        code.line(f"const i64 {stop} = {hi};")
        code.line(f"i64 {base} = {lo};")
        code.line(f"for (; {stop} - {base} >= {loop.width}; {base} += {loop.width}) {{")
        self._strip(_Strip.of(loop, base, loop.width, loop.width), 1)
        code.line("}")
        few = f"{stop} - {base} < {least} && {base} < {stop} && {stop} - ({lo}) >= {2 * least}"
        code.line(f"if ({few}) {base} = {stop} - {2 * least};")
        half = loop.width // 2
        while half >= least:
            code.line(f"if ({stop} - {base} >= {half}) {{")
            parts = _Part(base, 0, half), _Part(f"({stop} - {2 * half})", half, 2 * half)
            self._strip(_Strip(loop, parts, 2 * half), 1)
            code.line("} else")
            half //= 2
        rest = code.fresh("rest")
        code.line(f"if ({base} < {stop}) {{")
        code.line(f"    const int {rest} = {stop} - {base};")
        self._strip(_Strip.of(loop, base, rest, least), 1)
        code.line("}")

    def _strip(self, strip: _Strip, deeper: int) -> None:
        """One strip: its variables are arrays of one element for each lane."""
        code = self._code
        made = {s.target for s in statements(strip.loop)}
        if strip.loop.kind == "rows":  # what a loop inside has for itself is not handed on
            made &= set(owned(strip.loop))
        mine = {b for b in made - self._declared if b.kind in ("register", "local")}
        with code.section(strip.written, deeper):
            held = dict(code.arrays)
            for b in sorted(mine, key=lambda b: b.name):
                code.arrays[b] = strip.width
                self._variable(b, strip.width)
            self._declared |= mine
            self._strip_body(strip.loop.body, strip)
            self._declared -= mine
            code.arrays = held

    def _strip_body(self, steps: list[Loop | Statement], strip: _Strip) -> None:
        """The steps of a loop; statements that follow one another are one loop over the lanes."""
        for group in grouped(steps):
            if isinstance(group, Loop):
                inner = self._row_loop if strip.loop.kind == "rows" else self._strip_loop
                inner(group, strip)
                continue
            for _ in self._lanes(strip):
                for s in group:
                    self._statement(s)

    def _strip_loop(self, loop: Loop, strip: _Strip) -> None:
        """A loop within a strip; the results of its reductions follow it, lane by lane."""
        code = self._code
        started = begun(loop)
        for s in started:
            self._accumulators[s] = accumulate(code, s, strip.width)
        v = code.axis(loop.axis)
        head = f"for (i64 {v} = 0; {v} < {long(loop.axis.extent)}; {v}++)"
        with code.block(head, (loop.axis,), written(loop)):
            self._strip_body(loop.body, strip)
        ended = [self._accumulators.pop(s) for s in started]
        results = [a for a in ended if not a.statement.scan]
        if not results:
            return
        for _ in self._lanes(strip):
            for a in results:
                code.use(a.statement)
                code.store(a.statement.target, a.statement.index[0], f"{a.result}[{code.lane}]")

    def _row_loop(self, loop: Loop, strip: _Strip) -> None:
        """A loop within a strip of rows, which runs for each of them in turn."""
        code = self._code
        row = code.fresh("r")
        (part,) = strip.parts
        head = f"for (int {row} = 0; {row} < {part.end}; {row}++)"
        with code.block(head, (strip.loop.axis,), strip.written, element=row):
            code.line(f"const i64 {code.axis(strip.loop.axis)} = {part.base} + {row};")
            self._loop(loop, "0", f"{long(loop.axis.extent)}")

    def _lanes(self, strip: _Strip) -> Iterator[None]:
        """What is written in each iteration runs for each lane of a part of a strip."""
        code = self._code
        for part in strip.parts:
            lane = code.fresh("l")
            head = f"for (int {lane} = {part.begin}; {lane} < {part.end}; {lane}++)"
            jammed = strip.loop.kind == "jam"
            known = isinstance(part.end, int)
            head = code.unrolled(head, part.end) if jammed and known else code.simd(head)
            with code.block(head, (strip.loop.axis,), strip.written, lane, lane):
                code.line(f"const i64 {code.axis(strip.loop.axis)} = {part.base} + {lane};")
                yield


class _Part(NamedTuple):
    """Lanes of a strip. base: what a lane is added to for its element, in C; begin, end: of the
    lanes."""

    base: str
    begin: int
    end: Any


@dataclass(frozen=True)
class _Strip:
    """A strip of a loop: its lanes, part by part, and how many its variables are for."""

    loop: Loop
    parts: tuple[_Part, ...]
    width: int

    @staticmethod
    def of(loop: Loop, base: str, count: Any, width: int) -> _Strip:
        """That of `count` elements, a number or C, from `base` on."""
        return _Strip(loop, (_Part(base, 0, count),), width)

    @property
    def written(self) -> frozenset[Buffer]:
        return written(self.loop)
