"""CUDA of iterations that the threads of a block share.

What lies between the loops that threads share all of them compute for themselves, and one of them
stores. Where threads touch what others have written, they wait for each other.
"""

from __future__ import annotations

from np_compile.size import Size, some

from ...analysis.dependence import same_iteration
from ...analysis.launches import Words
from ...ir.dtypes import DTYPES
from ...ir.program import Buffer, Loop, Statement, accesses, identity, statements
from ...ir.scalars import c_constant
from ..literals import long
from ..nest import leaf_of, owned, written
from ..reductions import accumulate, begun, combined
from .combining import Combining, combination
from .lanes import Group, path_of, product


class Blocks(Combining):
    """Iterations of blocks, and what their threads do."""

    def __init__(self, w: Words, counters: int):
        super().__init__(w, counters)
        self.shared = 0  # bytes that a block's threads share
        self._private: dict[Buffer, int] = {}  # lanes of the loops over private arrays
        self._loops: list[Loop] = []  # around what is being written

    def _blocks(self, loop: Loop) -> tuple[int | Size, int]:
        path = path_of(loop)
        inner = path[-1]
        self._threads, self._rows = _shared_by(loop), inner.width
        threads = self._threads * self._rows
        counts = [p.axis.extent for p in path]
        counts[-1] = (counts[-1] + self._rows - 1) // self._rows
        total = product(counts)
        started = [s for p in path for s in self._accumulate(p)]
        code = self._code
        if self._rows > 1:
            code.line(f"const int lane = threadIdx.x % {self._threads};")
            code.line(f"const int row = threadIdx.x / {self._threads};")
        else:
            code.line("const int lane = threadIdx.x;")
        if loop.blocks:
            unit, times, more = code.axis(loop.axis), "", ""
            if self._rows > 1:
                times, more = f" * {self._rows}", " + row"
            head = f"for (i64 {unit} = (i64)blockIdx.x{times}{more}; "
            head += f"{unit} < {long(loop.axis.extent)}; {unit} += (i64)gridDim.x{times})"
            with code.block(head, (loop.axis,), written(loop)):
                self._loops.append(loop)
                self._steps(loop)
                self._loops.pop()
                code.line(f"together<{self._threads}>();")
            self._finish(loop, started, threads)
            return loop.blocks, threads
        places = self._divided("(i64)blockIdx.x", counts)
        for p, place in zip(path, places, strict=True):
            more = f" * {self._rows} + row" if p is inner and self._rows > 1 else ""
            code.line(f"const i64 {code.axis(p.axis)} = {place}{more};")
        whole = not some(inner.axis.extent % self._rows)
        head = "" if whole else f"if ({code.axis(inner.axis)} < {long(inner.axis.extent)})"
        self._loops += path
        with code.block(head, [p.axis for p in path], written(loop)):
            self._steps(inner)
        del self._loops[-len(path) :]
        return total, threads

    def _steps(self, loop: Loop) -> None:
        """A loop's body, step by step; its threads wait where one touches what others wrote."""
        mine = [b for b in owned(loop) if b not in self._declared]
        for step in loop.body:
            if isinstance(step, Loop) and step.private:
                self._private.update(
                    (b, step.lanes) for s in statements(step) for b, _ in s.touched
                )
        for b in mine:
            self._scratch(b)
        self._declared.update(mine)
        before: list[Loop | Statement] = []
        for step in loop.body:
            if any(self._meet(other, step) for other in before):
                self._code.line(f"together<{self._threads}>();")
                before = []
            before.append(step)
            if isinstance(step, Statement):
                self._alone(step)
            elif step.kind == "thread":
                self._thread(step)
            else:
                self._in_order(step)
        self._declared.difference_update(mine)

    def _scratch(self, b: Buffer) -> None:
        """A register of each thread, or a local array that the threads of an iteration share."""
        if b.kind == "register":
            self._variable(b)
            return
        if b.kind == "private":
            each = self._threads * self._private[b]
            turns = -(-b.size // each)
            self._code.line(f"{DTYPES[b.dtype].register} {b.name}[{turns * self._private[b]}];")
            return
        kind, size = DTYPES[b.dtype].storage, DTYPES[b.dtype].size
        assert isinstance(b.size, int)
        place = f"{kind} *{b.name} = ({kind} *)(shared + {self.shared})"
        self._code.line(place + (f" + row * {b.size};" if self._rows > 1 else ";"))
        self.shared += -(-max(b.size, 1) * size * self._rows // 16) * 16

    def _meet(self, a: Loop | Statement, b: Loop | Statement) -> bool:
        """Whether a step touches what threads have touched in an earlier one, and one writes it,
        but for what belongs to the same thread in both."""
        if self._threads == 1:
            return False
        (r, w), (reads, writes) = (_in_memory(step) for step in (a, b))
        both = (w & (reads | writes)) | (r & writes)
        if not both:
            return False
        if not (isinstance(a, Loop) and isinstance(b, Loop) and a.kind == b.kind == "thread"):
            return True
        known = {p.axis: p.axis for p in self._loops}
        mine, its = ([t for s in statements(x) for t in s.touched] for x in (a, b))
        if any(s.over for x in (a, b) for s in statements(x) if s.target in both):
            return True
        return any(
            not same_iteration(i, j, a.axis, b.axis, known)
            for x, i in mine
            for y, j in its
            if x is y and x in both
        )

    def _alone(self, s: Statement) -> None:
        """A statement that threads share: all compute it, and one stores."""
        if s.target.kind == "register" or s in self._accumulators or self._threads == 1:
            self._statement(s)
            return
        with self._code.block("if (lane == 0)", (), frozenset((s.target,))):
            self._statement(s)

    def _accumulate(self, loop: Loop) -> list[Statement]:
        """The reductions that begin with a loop, with variables of theirs."""
        started = begun(loop)
        for s in started:
            leaf = leaf_of(loop, s)
            assert leaf is not None
            self._accumulators[s] = accumulate(self._code, s, 1 if s.scan else leaf.lanes)
        return started

    def _in_order(self, loop: Loop) -> None:
        """A loop that all threads of a block go through together."""
        started = self._accumulate(loop)
        code = self._code
        v = code.axis(loop.axis)
        head = f"for (i64 {v} = 0; {v} < {long(loop.axis.extent)}; {v}++)"
        with code.block(head, (loop.axis,), written(loop)):
            self._loops.append(loop)
            self._steps(loop)
            self._loops.pop()
            if _in_memory(loop)[1] and self._threads > 1:
                code.line(f"together<{self._threads}>();")
        self._end(loop, started)

    def _thread(self, loop: Loop) -> None:
        """A loop whose iterations the threads of a block share."""
        code = self._code
        started = self._accumulate(loop)
        v, extent, width = code.axis(loop.axis), loop.axis.extent, loop.lanes
        stored = written(loop)
        if any(s.scan for s in started):
            self._run_along(loop)
        elif loop.private:
            each = self._threads * width
            turns = -(-extent // each)
            turn, base = code.fresh("turn"), code.fresh("base")
            head = f"for (int {turn} = 0; {turn} < {turns}; {turn}++)"
            with code.block(code.unrolled(head, turns), (), stored):
                code.line(f"const i64 {base} = ({turn} * {self._threads}L + lane) * {long(width)};")
                self._round = turn
                head = f"if ({base} < {long(extent)})" if extent % each else ""
                with code.block(head, (), stored):
                    self._neighbours(loop, [Group(loop, base, width)])
                self._round = "0"
        elif width > 1:
            base = code.fresh("base")
            first, step = f"i64 {base} = lane * {long(width)}", long(self._threads * width)
            head = f"for ({first}; {base} < {long(extent)}; {base} += {step})"
            with code.block(head, (), stored):
                self._neighbours(loop, [Group(loop, base, width)])
        else:
            head = f"for (i64 {v} = lane; {v} < {long(extent)}; {v} += {self._threads})"
            with code.block(head, (loop.axis,), stored):
                self._inside(loop)
        self._end(loop, started)

    def _run_along(self, loop: Loop) -> None:
        """A loop of running reductions: each thread takes some steps, and then what the threads
        before it have is added to them."""
        code = self._code
        extent, width = long(loop.axis.extent), loop.lanes
        tile, base = code.fresh("tile"), code.fresh("base")
        head = f"for (i64 {tile} = 0; {tile} < {extent}; {tile} += {self._threads * width})"
        stored = written(loop)
        with code.block(head, (), stored):
            code.line(f"const i64 {base} = {tile} + lane * {long(width)};")
            group = Group(loop, base, width)
            mine = [b for b in owned(loop) if b not in self._declared]
            held = dict(code.arrays)
            for b in mine:
                code.arrays[b] = width
                self._variable(b, width)
            for s in loop.body:
                assert isinstance(s, Statement)
                if not (s.scan and loop.axis in s.over):
                    with self._lane(loop, [group], [group]):
                        self._statement(s)
                    continue
                self._run(s, loop, group)
            code.arrays = held

    def _run(self, s: Statement, loop: Loop, group: Group) -> None:
        """A step of a running reduction, for the iterations of all threads."""
        code, width = self._code, group.width
        a = self._accumulators[s]
        kind = DTYPES[a.dtype].register
        here, before = code.fresh("here"), code.fresh("before")
        code.line(f"{kind} {here}[{width}];")
        nothing = c_constant(identity(a.op, a.dtype, True), a.dtype)
        each = code.unrolled(f"for (int l = 0; l < {width}; l++)", width)
        code.line(f"{each} {here}[l] = {nothing};")
        with self._lane(loop, [group], [group]) as at:
            code.use(s)
            code.line(f"{here}[{at}] = {code.value(s.value)};")
        if width > 1:
            each = code.unrolled(f"for (int l = 1; l < {width}; l++)", width)
            step = combined(a.op, a.dtype, f"{here}[l - 1]", f"{here}[l]")
            code.line(f"{each} {here}[l] = {step};")
        call = f"running<{self._threads}>({here}[{width - 1}], {a.name}, {combination(a)})"
        code.line(f"const {kind} {before} = {call};")
        with self._lane(loop, [group], [group]) as at:
            code.use(s)
            code.store(s.target, s.index[0], combined(a.op, a.dtype, before, f"{here}[{at}]"))


def _shared_by(loop: Loop) -> int:
    """How many threads share an iteration of a nest."""
    if loop.kind == "thread":
        return loop.width
    return max((_shared_by(b) for b in loop.body if isinstance(b, Loop)), default=1)


def _in_memory(step: Loop | Statement) -> tuple[set[Buffer], set[Buffer]]:
    """What a step reads and writes that threads may share."""
    reads, writes = accesses(step)
    return tuple({b for b in part if b.kind != "register"} for part in (reads, writes))  # type: ignore[return-value]
