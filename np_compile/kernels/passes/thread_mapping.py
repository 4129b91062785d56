"""Thread mapping: which loops of a nest the threads of a GPU share, and how.

grid        independent iterations, one thread for each, or for each few neighbours; nested ones are
            counted as one
block       independent iterations, each of which the threads of a block share: a row with its
            reductions, softmaxes, running sums
thread      a loop inside such an iteration, whose iterations the threads share
blocks      where the outermost loop reduces, a number of blocks share it, which follows from its
            size alone; what each leaves is combined in their order
epilogue    statements after such a reduction, which the thread that has its result runs
serial      one iteration after the other, in each thread

A nest whose outermost loop has to run in order is one iteration of one block. Values that meet in
one element are combined by atomic operations where their order does not show, as of integers.
"""

from __future__ import annotations

from itertools import takewhile

from np_compile.size import Size, hint, some

from ..analysis.access import coefficient, coefficients, distance
from ..analysis.dependence import reads_elsewhere, same_iteration
from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.expr import Expr
from ..ir.program import Buffer, Loop, Program, Statement, Step, is_in_order, statements
from ..target import Gpu, Target

# Iterations that one thread runs one after the other, from which a note says so.
_SLOW = 1 << 14
# Of stencils: rows and columns of a thread, shortest row for which that is worth it, rows that are
# near.
_ROWS = 8
_COLUMNS = 2
_WIDE = 512
_NEAR = (-2, -1, 1, 2)


def thread_mapping(program: Program, machine: Target) -> Program:
    """The program with loops that say how a GPU runs them."""
    assert isinstance(machine, Gpu)
    steps: list[Step] = []
    for step in program.steps:
        if isinstance(step, Loop):
            steps.append(_Nest(program, machine, step).mapped())
        elif not isinstance(step, Statement):
            steps.append(step)
        elif (last := _ending(steps, step)) is not None:
            last.body.append(step)
        else:
            steps.append(_once([step]))
    program.steps = steps
    return program


def _once(body: list[Loop | Statement], kind: str = "block") -> Loop:
    """A loop of one iteration, of one block."""
    return Loop(E.axis(1, "o"), body, kind)


def _ending(steps: list[Step], s: Statement) -> Loop | None:
    """The last step, if one thread of it can run a statement without loops at its end; a reduction
    of blocks is in an epilogue then."""
    last = steps[-1] if steps else None
    if not isinstance(last, Loop) or _is_once(last):
        return last if isinstance(last, Loop) else None
    nest = last.body[0] if last.kind == "epilogue" else last
    assert isinstance(nest, Loop)
    # It has the results of a reduction, and nothing else that other threads have written.
    parts = {t.target for t in statements(nest) if nest.axis not in t.over}
    if not nest.blocks or s.target in parts or any(x.value in parts for x in s.reads()):
        return None
    if nest is last:
        steps[-1] = last = _once([nest], "epilogue")
    return last


def _is_once(step: Step) -> bool:
    """Whether a step is statements without loops, which one thread runs in order."""
    body = step.body if isinstance(step, Loop) else [step]
    return all(isinstance(s, Statement) and not s.axes for s in body)


class _Nest:
    """One nest while it is mapped."""

    def __init__(self, program: Program, machine: Gpu, loop: Loop):
        self.program, self.machine, self.loop = program, machine, loop

    def mapped(self) -> Loop:
        """The nest, mapped."""
        for s in statements(self.loop):
            s.atomic = s.op is not None and not s.over and not alone(s)
        kept = self._kept()
        if kept:
            return self._independent(kept)
        if free(self.loop):
            return self._reduced()
        whole = _once([self.loop])
        threads = self._threads(self._widest(self.loop), 1)
        if not self._share(whole.body, threads):
            self._note_slow(1)
        return whole

    def _kept(self) -> list[Loop]:
        """The loops around all else whose iterations are independent, and reduced over by none."""
        found: list[Loop] = []
        step: Loop | Statement = self.loop
        while isinstance(step, Loop) and free(step) and not _reduces(step):
            found.append(step)
            if len(step.body) != 1:
                break
            step = step.body[0]
        return found

    def _independent(self, kept: list[Loop]) -> Loop:
        inner = kept[-1]
        rows = hint(_count(kept))
        widest = self._widest(inner)
        along = [s for s in statements(inner) if s.axes[-1:] != (inner.axis,)]
        coalesced = all(s.vector is inner.axis for s in along)
        suits = coalesced and self._many(kept, widest)
        suits = suits or (self._own(kept, widest) and all(_apart(s, inner.axis) for s in along))
        small = self._private(inner) <= self.machine.private_bytes
        if self._few(inner, widest) or (small and suits):
            for loop in kept:
                loop.kind = "grid"
            inner.width = self._lanes(inner, self.machine.threads, rows)
            if len(kept) > 1 and _stencil(inner, kept[-2]) and self._busy(kept):
                inner.width, kept[-2].width = _COLUMNS, _ROWS
            if rows < self.machine.row_threads:
                self._note_slow(rows)
            return self.loop
        threads = self._threads(widest, rows)
        for loop in kept:
            loop.kind = "block"
        if threads <= self.machine.warp:
            inner.width = self._rows(threads, 4 * self.machine.warp, inner.axis.extent)
        self._share(inner.body, threads)
        return self.loop

    def _few(self, loop: Loop, widest: int | Size) -> bool:
        """Whether a thread goes through an iteration alone: no loop in it is worth several."""
        few = widest < self.machine.row_threads
        return bool(few) and self._private(loop) <= self.machine.private_bytes

    def _private(self, loop: Loop) -> int:
        """Bytes of the local arrays of an iteration."""
        return sum(map(_bytes, _locals(loop)))

    def _many(self, loops: list[Loop], each: int | Size) -> bool:
        """Whether threads of their own suit these iterations, of so many steps each."""
        warp = self.machine.warp
        return bool(each <= 2 * warp or _count(loops) >= 2 * warp * self.machine.processors)

    def _own(self, loops: list[Loop], each: int | Size) -> bool:
        """Whether they do where what they read of an iteration does not follow from the step."""
        return bool(each <= 2 * self.machine.warp or 4 * _count(loops) >= self.machine.threads)

    def _busy(self, kept: list[Loop]) -> bool:
        """Whether these loops have an iteration for each thread."""
        return _count(kept) >= self.machine.threads

    def _reduced(self) -> Loop:
        """The outermost loop reduces: a number of blocks share it."""
        loop, machine = self.loop, self.machine
        path = [loop]
        while len(path[-1].body) == 1 and isinstance(path[-1].body[0], Loop):
            path.append(path[-1].body[0])
        most = machine.processors * machine.waves
        widest = self._widest(loop)
        alone = not any(isinstance(b, Loop) for b in path[-1].body)
        if not alone and self._few(loop, widest):  # each thread goes through its iterations alone
            path, alone = [loop], True
        axes = {p.axis for p in path}
        whole = all(axes <= set(s.over) or not axes & set(s.over) for s in statements(loop))
        if alone and whole and all(map(free, path)):
            for p in path:
                p.kind = "grid"
            inner = path[-1]
            total = _count(path)
            inner.width = self._lanes(inner, machine.threads, hint(total))
            each = machine.block_threads * inner.width
            blocks = most if isinstance(total, Size) else max(min(most, -(-total // each)), 1)
            for p in path:
                p.blocks = blocks if _reduces(p) else 0
            return loop
        n = loop.axis.extent
        threads = self._threads(widest, hint(n))
        loop.kind = "block"
        if threads <= machine.warp:
            loop.width = self._rows(threads, machine.block_threads, n)
        else:
            threads = max(threads, machine.block_threads // 2)
        loop.blocks = most if isinstance(n, Size) else max(min(most, -(-n // loop.width)), 1)
        self._share(loop.body, threads)
        return loop

    def _rows(self, each: int, threads: int, rows: int | Size) -> int:
        """Iterations of a block of so many threads, where fewer share each."""
        few = max(min(threads // each, hint(rows)), 1)
        return 1 << (few.bit_length() - 1)

    # Inside a block

    def _share(self, body: list[Loop | Statement], threads: int) -> bool:
        """Have the threads of a block share the loops of a body; whether there are any."""
        shared = False
        for step in body:
            if not isinstance(step, Loop):
                continue
            extent = hint(step.axis.extent)
            longer = hint(self._longest(step.body)) > extent
            deeper = longer and (len(step.body) == 1 or extent < self.machine.warp)
            if _shareable(step) and not deeper:
                step.kind, step.width, shared = "thread", threads, True
                step.lanes = self._lanes(step, threads)
            else:
                shared = self._share(step.body, threads) or shared
        return shared

    def _widest(self, loop: Loop) -> int | Size:
        """Iterations of the longest loop inside that threads can share, and of the loop itself
        where that has to run in order."""
        return self._longest(loop.body if free(loop) else [loop])

    def _longest(self, body: list[Loop | Statement]) -> int | Size:
        """Iterations of the longest loop in a body that threads can share."""
        found: list[int | Size] = [0]
        for step in body:
            if isinstance(step, Loop):
                found += [step.axis.extent if _shareable(step) else 0, self._longest(step.body)]
        return max(found, key=hint)

    def _threads(self, longest: int | Size, rows: int) -> int:
        """Threads that share a row of so many iterations, where there are so many rows."""
        machine = self.machine
        iterations = hint(longest)
        if iterations < 2:
            return 1
        few = rows < 2 * machine.processors
        running = any(s.scan for s in statements(self.loop))
        each = 1 if few else machine.row_elements // (1 + running)
        wanted = max(-(-iterations // each), machine.row_threads)
        most = machine.most_threads if few else machine.most_threads // 2
        return min(1 << (min(wanted, most) - 1).bit_length(), most)

    def _lanes(self, loop: Loop, threads: int, total: int | None = None) -> int:
        """Neighbouring iterations of a thread: as many as its widest access takes, where all memory
        is walked along them, and there is enough for so many threads. total: iterations in all."""
        inside = list(statements(loop))
        if any(isinstance(b, Loop) for b in loop.body) or any(s.atomic for s in inside):
            return 1
        size = 1
        for s in inside:
            for b, index in s.touched:
                if b.kind == "register":
                    continue
                i = index[0]
                if any(loop.axis in E.axes_of(a) for a in coefficients(i) if a is not loop.axis):
                    return 1
                if coefficient(i, loop.axis) not in (0, 1):
                    return 1
                size = max(size, DTYPES[b.dtype].size)
        running = any(s.scan for s in inside)
        lanes = max(min(self.machine.access_bytes // size, 8), 2)
        count = hint(loop.axis.extent) if total is None else total
        while lanes > 1 and count < threads * lanes // 2:
            lanes //= 2
        if running:
            return lanes
        places = (i[0] for s in inside for b, i in s.touched if b.kind != "register")
        return lanes if all(_aligned(i, loop.axis, lanes) for i in places) else 1

    def _note_slow(self, rows: int) -> None:
        """Say so, where a few threads do much one after the other."""
        steps = _work(self.loop) // max(rows, 1)
        if steps >= _SLOW:
            line = next((s.line for s in statements(self.loop) if s.line), "")
            self.program.notes.append(
                f"{rows} thread{'s run' if rows > 1 else ' runs'} about {steps} iterations in order"
                + (f"\n  at {line}" if line else "")
            )


def _aligned(i: Expr, axis: Expr, lanes: int) -> bool:
    """Whether an index is a multiple of so many wherever one along an axis is."""
    constant, atoms = E.terms(i)
    others = [constant, *(c for a, c in atoms.items() if a is not axis)]
    return axis not in atoms or not any(some(n % lanes) for n in others)


def _apart(s: Statement, axis: Expr) -> bool:
    """Whether no access of a statement goes both by an axis and by those within its loop: where
    each thread has an iteration, all of a warp read the same place, or neighbouring ones."""
    within = {*s.axes[s.axes.index(axis) + 1 :]}
    found = [E.axes_of(i) for _, index in s.touched for i in index]
    return not any(axis in axes and within & axes for axes in found)


def _stencil(inner: Loop, outer: Loop) -> bool:
    """Whether iterations of an outer loop that follow one another read much of the same: for each
    of several rows a thread reads what lies above and below."""
    if any(isinstance(b, Loop) for b in inner.body):
        return False
    if hint(outer.axis.extent) < _ROWS or hint(inner.axis.extent) < _WIDE:
        return False
    for s in statements(inner):
        reads = [x for x in s.reads() if x.value.kind not in ("register", "local")]
        for k, x in enumerate(reads):
            step = coefficient(x.args[0], outer.axis)
            for y in reads[:k]:
                apart = distance(x.args[0], y.args[0]) if y.value is x.value else None
                if step and apart and any(apart - r * step in range(-4, 5) for r in _NEAR):
                    return True
    return False


def _work(step: Loop | Statement) -> int:
    """How many times the statements of a step run."""
    if isinstance(step, Statement):
        return 1
    return int(hint(step.axis.extent)) * sum(map(_work, step.body))


def _count(loops: list[Loop]) -> int | Size:
    """Iterations of nested loops."""
    n: int | Size = 1
    for loop in loops:
        n = n * loop.axis.extent
    return n


def _reduces(loop: Loop) -> bool:
    return any(loop.axis in s.over for s in statements(loop))


def _locals(loop: Loop) -> set[Buffer]:
    """The local arrays of a nest."""
    return {b for s in statements(loop) for b, _ in s.touched if b.kind == "local"}


def _bytes(b: Buffer) -> int:
    return hint(b.size) * DTYPES[b.dtype].size


# Which iterations may run at the same time


def free(loop: Loop) -> bool:
    """Whether a loop's iterations may run at the same time, in any order, on a GPU."""
    inside = list(statements(loop))
    for s in inside:
        if s.target.kind in ("register", "local") and loop.axis not in s.axes:
            return False
        if not _free(s, loop, inside):
            return False
    return True


def _free(s: Statement, loop: Loop, inside: list[Statement]) -> bool:
    axis = loop.axis
    if axis in s.over:
        inner = {*s.axes[s.axes.index(axis) + 1 :]}
        several = any(inner & E.axes_of(i) for i in s.index)  # each iteration has a part in those
        return not (s.scan or is_in_order(s) or several)
    if s.target.kind in ("register", "local"):
        return True
    if reads_elsewhere(s):
        return False
    around = {a: a for a in takewhile(lambda a: a is not axis, s.axes)}
    if same_iteration(s.index, s.index, axis, axis, around):
        return True
    if s.over:
        return False
    if any(t is not s and (t.target is s.target or _reads(t, s.target)) for t in inside):
        return False
    if s.op is not None and not s.over:
        return commutes(s) and not _reads(s, s.target)
    return s.op is None and _same_values(s)


def _reads(s: Statement, b: Buffer) -> bool:
    return any(x.value is b for x in s.reads())


def alone(s: Statement) -> bool:
    """Whether each iteration of a statement has an element of its own."""
    around: dict[Expr, Expr] = {}
    for a in s.axes:
        if not same_iteration(s.index, s.index, a, a, around):
            return False
        around[a] = a
    return True


def commutes(s: Statement) -> bool:
    """Whether the order does not show in which a statement combines values with an element."""
    return DTYPES[s.target.dtype].kind != "f" or s.op in ("min", "max")


def _same_values(s: Statement) -> bool:
    """Whether a store gives equal values to equal places: all that it computes of its axes is the
    place."""
    computed = {x for i in s.index for x in E.walk(i) if E.from_data(x)}
    rest = E.replaced({x: E.integer(0) for x in computed})(s.value)
    places = {a for a in s.axes if same_iteration(s.index, s.index, a, a, {})}
    return E.axes_of(rest) <= places


def _shareable(loop: Loop) -> bool:
    """Whether the threads of a block can share a loop: its iterations are independent, or it is
    nothing but running reductions and what goes along with each of their steps."""
    if free(loop):
        return True
    inside = list(statements(loop))
    if any(isinstance(b, Loop) for b in loop.body):
        return False
    running = [s for s in inside if s.scan and loop.axis in s.over]
    if any(is_in_order(s) or DTYPES[s.target.dtype].narrow or reads_elsewhere(s) for s in running):
        return False
    if any(s.target is t.target for s in running for t in inside if t is not s):
        return False
    own = all(
        x.args == s.index for s in running for t in inside for x in t.reads() if x.value is s.target
    )
    others = [s for s in inside if s not in running]
    return bool(running) and own and all(_free(s, loop, inside) for s in others)
