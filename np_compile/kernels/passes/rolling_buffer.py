"""Rolling buffers: an in-place stencil keeps a few rows of scratch memory, not an array.

`u[1:-1] += f(u[:-2], u[2:])` computes all of the right side before it changes u: two loops, with a
temporary of the size of u between them,

    for i < n:  t[i] = f(u[i], u[i+1], u[i+2])
    for i < n:  u[i+1] = t[i]

As no row is read after it has been passed, the second can follow the first at a distance of `lag`
rows, and t is a ring of lag+1 rows. To run in parallel, the rows are cut into chunks; what a chunk
reads of rows that its neighbours change is saved before (`halo`), and the first and last rows of a
chunk read it there.
"""

from __future__ import annotations

from dataclasses import dataclass

from np_compile.size import Size, span

from ..analysis.access import distance, offset
from ..analysis.dependence import disjoint
from ..ir import expr as E
from ..ir.copying import copy
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr
from ..ir.program import (
    Buffer,
    Loop,
    Program,
    Statement,
    accesses,
    contiguous_strides,
    elements,
    looped,
    statements,
)
from ..target import Target


def rolling_buffer(program: Program, machine: Target) -> Program:
    """The program with such pairs of loops in one."""
    k = 0
    while k + 1 < len(program.steps):
        found = _match(program, k, machine)
        if found is not None:
            apart = f"{found.array.name} is not fused"
            program.notes = [note for note in program.notes if not note.startswith(apart)]
            made = found.loops(program, machine)
            program.steps[k : k + 2] = made
            k += len(made)
        else:
            k += 1
    return program


@dataclass
class _Pair:
    """A loop that reads neighbours and one that updates, and how far apart their rows are.

    rows: the axis of the array along which they go. low, high: the smallest and largest row that is
    read for row 0; at: the row that is written.
    """

    reader: Loop
    writer: Loop
    array: Buffer
    temporaries: list[Buffer]
    rows: int
    low: int
    high: int
    at: int

    def loops(self, program: Program, machine: Target) -> list[Loop | Statement]:
        n = self.reader.axis.extent
        lag = max(self.at - self.low, 0)
        before, after = lag, max(self.high - self.at, 0)
        for t in self.temporaries:
            t.shape = (lag + 1, *t.shape[1:])
            t.strides = contiguous_strides(t.shape)
            t.kind = "local"
        count = self._chunks(n, before + after, machine)
        size = n // count
        steps: list[Loop | Statement] = []
        # Of a size that may be anything, what is left over belongs to the last chunk.
        alike = count if isinstance(n, int) else count - 1
        parts = (0, alike, size), (alike * size, 1, n - alike * size)
        made: list[Loop | Statement] = []
        for begin, number, length in parts:
            if number == 0 or length == 0:
                continue
            chunk = E.axis(number, "w")
            base = E.plus(E.times(chunk, size), begin) if number > 1 else E.integer(begin)
            halo = self._halo(program, number, before, after)
            loop = Loop(chunk, self._chunk(program, chunk, base, length, lag, before, after, halo))
            made.append(loop)
            for row, place in self._saved(length, before, after):
                steps += self._save(chunk, E.plus(base, row), halo, place)
        return [*steps, *made]

    def _chunks(self, n: int, halo: int, machine: Target) -> int:
        rows = machine.rolling_rows * max(halo, 1)
        large = n >= machine.rolling_chunks * rows
        if isinstance(n, Size):
            return machine.rolling_chunks if large else 1
        most = machine.rolling_chunks if large else max(1, n // rows)
        if most <= 2:
            return most
        return min(range(most, most // 2, -1), key=lambda c: n % c)

    def _saved(self, length: int, before: int, after: int) -> list[tuple[int, int]]:
        """Rows that neighbours change, from a chunk's first row, and their places in the halo."""
        rows = [self.low + r for r in range(before)]
        rows += [length + self.at + r for r in range(after)]
        return [(row, place) for place, row in enumerate(rows)]

    def _halo(self, program: Program, count: int, before: int, after: int) -> Buffer:
        shape = list(self.array.shape)
        del shape[self.rows]
        return program.buffer("halo", self.array.dtype, (count, before + after, *shape))

    def _save(self, chunk: Expr, row: Expr, halo: Buffer, place: int) -> list[Loop | Statement]:
        copy_of = E.axis(chunk.extent, "w")
        inner = [E.axis(n, "j") for n in halo.shape[2:]]
        source = list(inner)
        source.insert(self.rows, E.substitute(row, {chunk: copy_of}))
        s = Statement(
            (copy_of, *inner), halo, (copy_of, E.integer(place), *inner),
            E.load(self.array, source), vector=inner[-1] if inner else copy_of,
        )  # fmt: skip
        return looped(s.axes, [s])

    def _chunk(
        self, program: Program, chunk: Expr, base: Expr, length: int, lag: int, before: int,
        after: int, halo: Buffer,
    ) -> list[Loop | Statement]:  # fmt: skip
        """The body of a chunk: reader(0..lag), then reader(i) and writer(i-lag) by turns."""
        body: list[Loop | Statement] = []

        def add(body: list[Loop | Statement], loop: Loop, local: Expr) -> None:
            body.extend(self._at(program, loop, base, local, lag, length, before, halo, chunk))

        first = max(before, lag)
        last = length - after
        for r in span(0, min(first, length)):
            add(body, self.reader, E.integer(r))
            if r >= lag:
                add(body, self.writer, E.integer(r - lag))
        if last > first:
            main = E.axis(last - first, "i")
            loop = Loop(main, [])
            add(loop.body, self.reader, E.plus(main, first))
            add(loop.body, self.writer, E.plus(main, first - lag))
            body.append(loop)
        for r in span(max(last, first), length):
            add(body, self.reader, E.integer(r))
            add(body, self.writer, E.integer(r - lag))
        for r in span(max(length - lag, 0), length):
            add(body, self.writer, E.integer(r))
        return body

    def _at(
        self, program: Program, loop: Loop, base: Expr, local: Expr, lag: int, length: int,
        before: int, halo: Buffer, chunk: Expr,
    ) -> list[Loop | Statement]:  # fmt: skip
        """A loop's body for one row of a chunk."""
        ring = E.mod(local, lag + 1)
        place_of_row = E.plus(base, local)

        def change(x: Expr) -> Expr | None:
            if x.value in self.temporaries:
                return E.make("load", (ring, *x.args[1:]), x.dtype, x.value)
            if x.value is not self.array or loop is self.writer:
                return None
            row = distance(x.args[self.rows], base)
            if row is None:  # one in the middle: all that it reads is the chunk's own
                return None
            rest = tuple(i for d, i in enumerate(x.args) if d != self.rows)
            number = chunk if chunk.extent > 1 else E.integer(0)
            if row < self.at:
                return E.load(halo, (number, E.integer(row - self.low), *rest))
            if row >= length + self.at:
                place = before + row - length - self.at
                return E.load(halo, (number, E.integer(place), *rest))
            return None

        made = copy(program, loop.body, {loop.axis: place_of_row}, change)
        for step in made:
            for s in statements(step):
                if s.target in self.temporaries:
                    s.index = (ring, *s.index[1:])
        return made


def _match(program: Program, k: int, machine: Target) -> _Pair | None:
    reader, writer = program.steps[k : k + 2]
    if not isinstance(reader, Loop) or not isinstance(writer, Loop):
        return None
    first, second = list(statements(reader)), list(statements(writer))
    arrays = {s.target for s in second if s.target.kind not in ("register", "local")}
    if len(arrays) != 1 or any(s.scan or s.op == "" for s in (*first, *second)):
        return None
    array = arrays.pop()
    targets = {s.target for s in first if s.target.kind not in ("register", "local")}
    if array in targets or any(reader.axis in s.over for s in first):
        return None
    if any(writer.axis in s.over or (s.op and not s.over) for s in second):
        return None
    others = [
        b for p, step in enumerate(program.steps) if p not in (k, k + 1)
        for part in accesses(step) for b in part
    ]  # fmt: skip
    if any(t.kind != "temporary" or t in others for t in targets) or not targets:
        return None
    for s in first:
        if s.target in targets and (not s.index or s.index[0] is not reader.axis):
            return None
        if s.target in targets and any(reader.axis in E.axes_of(i) for i in s.index[1:]):
            return None
    for s in second:
        for x in s.reads():
            if x.value in targets and (
                x.args[0] is not writer.axis or any(writer.axis in E.axes_of(i) for i in x.args[1:])
            ):
                return None
    made = sorted(targets, key=lambda b: b.name)
    found = _distances(reader, writer, first, second, array, made, machine)
    if found is None:
        return None
    # Last, as it is a guard of sizes
    long = reader.axis.extent == writer.axis.extent
    return found if long and reader.axis.extent >= 2 * machine.rolling_rows else None


def _distances(
    reader: Loop, writer: Loop, first: list[Statement], second: list[Statement], array: Buffer,
    temporaries: list[Buffer], machine: Target,
) -> _Pair | None:  # fmt: skip
    """The pair, if both walk one axis of the array row by row, and rows are not too far apart."""
    writes = [s.index for s in second if s.target is array]
    places = {
        (d, offset(i, writer.axis))
        for index in writes for d, i in enumerate(index) if writer.axis in E.axes_of(i)
    }  # fmt: skip
    if len(places) != 1:
        return None
    rows, at = places.pop()
    if at is None or any(
        writer.axis in E.axes_of(i) for index in writes for d, i in enumerate(index) if d != rows
    ):
        return None
    offsets = []
    for s in first:
        for x in s.reads():
            if x.value is not array:
                continue
            row = offset(x.args[rows], reader.axis)
            if row is None or any(
                reader.axis in E.axes_of(i) for d, i in enumerate(x.args) if d != rows
            ):
                return None
            offsets.append(row)
    for s in second:
        for x in s.reads():
            elsewhere = x.value is array and all(x.args != w for w in writes)
            if elsewhere and not all(disjoint(x.args, w) for w in writes):
                return None
    if not offsets:
        return None
    low, high = min(offsets), max(offsets)
    lag, after = max(at - low, 0), max(high - at, 0)
    if lag + after > machine.rolling_reach:
        return None
    bytes_ = sum(elements(t.shape[1:]) * DTYPES[t.dtype].size for t in temporaries)
    if (lag + 1) * bytes_ > machine.working_bytes:
        return None
    return _Pair(reader, writer, array, temporaries, rows, low, high, at)
