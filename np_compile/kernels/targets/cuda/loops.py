"""CUDA of loop nests: one kernel for each.

In a grid each thread has iterations of its own. In a block its threads share each iteration of the
loops that they are to share; what lies between these loops all of them compute for themselves, and
one of them stores. Where threads touch what others have written, they wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from ...analysis.dependence import same_iteration
from ...analysis.launches import Launch, Words
from ...ir.dtypes import DTYPES
from ...ir.program import PAIRED, Buffer, Loop, Statement, accesses, identity, statements
from ...ir.scalars import c_constant, c_load, c_store
from ...ir.size import Size, some
from ...target import Gpu
from ..literals import long
from ..nest import Nest, leaf_of, owned, written
from ..reductions import Accumulator, accumulate, begun, better, combined
from .dialect import CUDA
from .memory import partials, pointer, symbols

_IN_MEMORY = ("input", "output", "constant", "temporary")


@dataclass(frozen=True)
class _Group:
    """`width` neighbouring iterations of a loop, from `base` on."""

    loop: Loop
    base: str
    width: int


class TooMuchShared(Exception):
    """A nest whose threads would share more memory than there is."""


class Kernel(Nest):
    """The CUDA of one nest of loops. counters: of the program so far."""

    def __init__(self, w: Words, machine: Gpu, counters: int):
        super().__init__(w.layout, CUDA)
        self.counters = counters
        self._words, self._machine = w, machine
        self._threads = 1  # that share an iteration of a block
        self._rows = 1  # iterations of a block at once
        self._shared = 0
        self._private: dict[Buffer, int] = {}  # lanes of the loops over private arrays
        self._round = "0"  # of a loop that threads share, the turn of each thread
        self._loops: list[Loop] = []  # around what is being written

    def function(self, name: str, loop: Loop) -> tuple[str, Launch]:
        """The kernel of a nest, and how it is launched."""
        code = self._code
        if loop.kind == "grid":
            blocks, threads = self._grid(loop), self._machine.block_threads
        else:
            blocks, threads = self._blocks(loop)
        stored = written(loop)
        pointers = [b for b in code.buffers if b.kind in _IN_MEMORY]
        lines = [f"    {line}" for line in symbols(self._words)]
        lines += ["    " + pointer(self._words, b, b in stored) for b in pointers]
        if self._shared > self._machine.shared_bytes:
            raise TooMuchShared(f"{name} shares {self._shared} bytes")
        if self._shared:
            lines.append("    extern __shared__ __align__(16) char shared[];")
        if code.checks:
            lines.append("    i64 bad = 0;")
        lines += code.lines
        if code.checks:
            lines.append(f"    if (bad) *(volatile i64 *)memory.words[{self._layout.flag}] = 1;")
        bounds = f"__launch_bounds__({threads})"
        argument = "const __grid_constant__ Memory memory"
        head = f'extern "C" __global__ void {bounds} {name}({argument}) {{'
        launch = Launch(name, blocks, threads, self._shared, code.checks)
        return "\n".join([head, *lines, "}"]), launch

    # Independent iterations: one thread for each, or for a few neighbours

    def _grid(self, loop: Loop) -> int | Size:
        path = _path(loop)
        threads = self._machine.block_threads
        counts = [(p.axis.extent + p.width - 1) // p.width for p in path]
        started = [s for p in path for s in begun(p)]
        for s in started:
            self._accumulators[s] = accumulate(self._code, s, path[-1].width)
        unit = self._code.fresh("unit")
        total = _product(counts)
        first = f"(i64)blockIdx.x * {threads} + threadIdx.x"
        if loop.blocks:
            step = f"{unit} += (i64)gridDim.x * {threads}"
            head = f"for (i64 {unit} = {first}; {unit} < {long(total)}; {step})"
        else:
            self._code.line(f"const i64 {unit} = {first};")
            head = f"if ({unit} < {long(total)})"
        outer = [p.axis for p in path if p.width == 1]
        with self._code.block(head, outer, written(loop)):
            places = self._divided(unit, counts)
            bases = {}
            for p, place in zip(path, places, strict=True):
                name = self._code.axis(p.axis) if p.width == 1 else self._code.fresh("base")
                times = "" if p.width == 1 else f" * {long(p.width)}"
                self._code.line(f"const i64 {name} = {place}{times};")
                bases[p] = name
            groups = [_Group(p, bases[p], p.width) for p in path if p.width > 1]
            if groups:
                self._neighbours(path[-1], groups)
            else:
                self._inside(path[-1])
        if started:
            self._finish(loop, started, threads)
        return loop.blocks or (total + threads - 1) // threads

    def _divided(self, unit: str, counts: list) -> list[str]:
        """The places along axes of so many iterations that a number counts, the last fastest."""
        if len(counts) == 1:
            return [unit]
        small = _product(counts) < 1 << 32
        kind, ending = ("u32", "U") if small else ("i64", "L")
        rest = self._code.fresh("rest")
        self._code.line(f"{kind} {rest} = ({kind}){unit};")
        places = []
        for k, count in reversed(list(enumerate(counts))):
            place = rest
            if k:
                place = self._code.fresh("at")
                n = long(count, ending)
                self._code.line(f"const {kind} {place} = {rest} % {n};")
                self._code.line(f"{rest} /= {n};")
            places.append(f"(i64){place}")
        return places[::-1]

    def _neighbours(self, loop: Loop, groups: list[_Group]) -> None:
        """The statements of a loop for a few neighbouring iterations, of it and maybe of loops
        around."""
        beyond = [g for g in groups if some(g.loop.axis.extent % g.width)]
        if not beyond:
            self._lanes(loop, groups, [])
            return
        tests = [f"{g.base} + {g.width} <= {long(g.loop.axis.extent)}" for g in beyond]
        with self._code.block(f"if ({' && '.join(tests)})", (), written(loop)):
            self._lanes(loop, groups, [])
        with self._code.block("else", (), written(loop)):
            self._lanes(loop, groups, beyond)

    def _lanes(self, loop: Loop, groups: list[_Group], beyond: list[_Group]) -> None:
        """Each statement of a loop for neighbouring iterations. What it reads is read for all of
        them before it stores for the first: so these are wide accesses. beyond: the groups that may
        end behind the last iteration."""
        code = self._code
        count = 1
        for g in groups:
            count *= g.width
        held = dict(code.arrays)
        for b in owned(loop):
            if b not in self._declared:
                code.arrays[b] = count
                self._variable(b, count)
        for s in loop.body:
            assert isinstance(s, Statement)
            if s.op is not None or s.target.kind not in _IN_MEMORY:
                with self._lane(loop, groups, beyond):
                    self._statement(s)
                continue
            kept = code.fresh("all")
            code.line(f"{DTYPES[s.target.dtype].register} {kept}[{count}];")
            with self._lane(loop, groups, beyond) as at:
                code.use(s)
                code.line(f"{kept}[{at}] = {code.value(s.value)};")
            with self._lane(loop, groups, beyond) as at:
                code.use(s)
                code.store(s.target, s.index[0], f"{kept}[{at}]")
        code.arrays = held

    @contextmanager
    def _lane(self, loop: Loop, groups: list[_Group], beyond: list[_Group]) -> Iterator[str]:
        """What is written meanwhile runs for each of the neighbouring iterations that there are;
        the number of one among all."""
        code = self._code
        stored = written(loop)
        with ExitStack() as blocks:
            at = ""
            lane = ""
            for g in groups:
                lane = code.fresh("l")
                head = f"for (int {lane} = 0; {lane} < {g.width}; {lane}++)"
                at = f"({at}) * {g.width} + {lane}" if at else lane
                # What depends on an axis is computed where the test holds, and only there.
                own = [] if g in beyond else [g.loop.axis]
                head = code.unrolled(head, g.width)
                blocks.enter_context(code.block(head, own, stored, lane, at))
                code.line(f"const i64 {code.axis(g.loop.axis)} = {g.base} + {lane};")
            if beyond:
                ends = [f"{code.axis(g.loop.axis)} < {long(g.loop.axis.extent)}" for g in beyond]
                head, own = f"if ({' && '.join(ends)})", [g.loop.axis for g in beyond]
                blocks.enter_context(code.block(head, own, stored, lane, at))
            before = code.slot
            code.slot = f"{self._round} * {groups[-1].width} + {lane}"
            yield at
            code.slot = before

    # Iterations that the threads of a block share

    def _blocks(self, loop: Loop) -> tuple[int | Size, int]:
        path = _path(loop)
        inner = path[-1]
        self._threads, self._rows = _shared_by(loop), inner.width
        threads = self._threads * self._rows
        counts = [p.axis.extent for p in path]
        counts[-1] = (counts[-1] + self._rows - 1) // self._rows
        total = _product(counts)
        started = [s for p in path for s in self._accumulate(p)]
        code = self._code
        if self._rows > 1:
            code.line(f"const int lane = threadIdx.x % {self._threads};")
            code.line(f"const int row = threadIdx.x / {self._threads};")
        else:
            code.line("const int lane = threadIdx.x;")
        if loop.blocks:
            unit = code.axis(loop.axis)
            head = f"for (i64 {unit} = blockIdx.x; {unit} < {long(total)}; {unit} += gridDim.x)"
            with code.block(head, (loop.axis,), written(loop)):
                self._loops.append(loop)
                self._steps(loop)
                self._loops.pop()
                code.line(f"together<{threads}>();")
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
        place = f"{kind} *{b.name} = ({kind} *)(shared + {self._shared})"
        self._code.line(place + (f" + row * {b.size};" if self._rows > 1 else ";"))
        self._shared += -(-max(b.size, 1) * size * self._rows // 16) * 16

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
                    self._neighbours(loop, [_Group(loop, base, width)])
                self._round = "0"
        elif width > 1:
            base = code.fresh("base")
            first, step = f"i64 {base} = lane * {long(width)}", long(self._threads * width)
            head = f"for ({first}; {base} < {long(extent)}; {base} += {step})"
            with code.block(head, (), stored):
                self._neighbours(loop, [_Group(loop, base, width)])
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
            group = _Group(loop, base, width)
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

    def _run(self, s: Statement, loop: Loop, group: _Group) -> None:
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
        call = f"running<{self._threads}>({here}[{width - 1}], {a.name}, {_combination(a)})"
        code.line(f"const {kind} {before} = {call};")
        with self._lane(loop, [group], [group]) as at:
            code.use(s)
            code.store(s.target, s.index[0], combined(a.op, a.dtype, before, f"{here}[{at}]"))

    # What reductions end with

    def _end(self, loop: Loop, started: list[Statement]) -> None:
        """The results of reductions of which the loop was the outermost, in one block."""
        code = self._code
        for s in started:
            a = self._accumulators.pop(s)
            if s.scan:
                continue
            a = self._plain(a)
            if _is_shared(loop, s):
                self._folded(a, self._threads)
            code.use(s)
            if s.target.kind == "register" or self._threads == 1:
                code.store(s.target, s.index[0], a.result)
                continue
            with code.block("if (lane == 0)", (), frozenset((s.target,))):
                code.store(s.target, s.index[0], a.result)

    def _plain(self, a: Accumulator) -> Accumulator:
        """An accumulator whose lanes, if there are any, are one."""
        if not a.lanes:
            return a
        result = a.fold(self._code)
        plain = Accumulator(a.statement, a.op, a.dtype, self._code.fresh("acc"), 0)
        values = (f"{a.name}[0]", result)
        for (kind, name, _), value in zip(plain.variables, values, strict=False):
            self._code.line(f"{kind} {name} = {value};")
        return plain

    def _folded(self, a: Accumulator, threads: int) -> None:
        """Combine what so many threads have."""
        if threads == 1:
            return
        if a.op not in PAIRED:
            self._code.line(f"{a.name} = fold<{threads}>({a.name}, {_combination(a)});")
            return
        ranked = f"Ranked<{DTYPES[a.dtype].register}>"
        best = self._code.fresh("best")
        held = f"{ranked}{{{a.name}, {a.result}}}"
        self._code.line(f"const {ranked} {best} = fold<{threads}>({held}, {_combination(a)});")
        self._code.line(f"{a.name} = {best}.value;")
        self._code.line(f"{a.result} = {best}.at;")

    def _finish(self, loop: Loop, started: list[Statement], threads: int) -> None:
        """The results of reductions that blocks share: the last one combines what each has."""
        code, blocks = self._code, loop.blocks
        lasting = []
        for s in started:
            plain = self._plain(self._accumulators.pop(s))
            if loop.kind == "grid" or _is_shared(loop, s):
                self._folded(plain, threads)
            lasting.append((s, plain))
        if blocks == 1:
            for s, plain in lasting:
                code.use(s)
                with code.block("if (threadIdx.x == 0)", (), frozenset((s.target,))):
                    code.store(s.target, s.index[0], plain.result)
            return
        places = {}
        for _, plain in lasting:
            for kind, name, _ in plain.variables:
                where = partials(self._words, self._layout.reserve(blocks), kind)
                places[name] = code.fresh("part")
                code.line(f"{kind} *{places[name]} = {where};")
                code.line(f"if (threadIdx.x == 0) {places[name]}[blockIdx.x] = {name};")
        counter = f"(unsigned *)memory.words[{self._words.counters}] + {self.counters}"
        self.counters += 1
        with code.block(f"if (last_block({counter}))", (), frozenset()):
            for s, plain in lasting:
                each = code.fresh("b")
                for _, name, first in plain.variables:
                    code.line(f"{name} = {first};")
                head = f"for (int {each} = threadIdx.x; {each} < gridDim.x; {each} += {threads})"
                with code.block(head, (), frozenset()):
                    self._taken(plain, [f"{places[n]}[{each}]" for _, n, _ in plain.variables])
                self._folded(plain, threads)
                code.use(s)
                with code.block("if (threadIdx.x == 0)", (), frozenset((s.target,))):
                    code.store(s.target, s.index[0], plain.result)

    def _taken(self, a: Accumulator, values: list[str]) -> None:
        """Combine an accumulator with what another block has found."""
        code = self._code
        if a.op not in PAIRED:
            code.line(f"{a.name} = {combined(a.op, a.dtype, a.name, values[0])};")
            return
        ranked = f"Ranked<{DTYPES[a.dtype].register}>"
        best = code.fresh("best")
        pair = f"{ranked}{{{a.name}, {a.result}}}, {ranked}{{{', '.join(values)}}}"
        code.line(f"const {ranked} {best} = {_combination(a)}({pair});")
        code.line(f"{a.name} = {best}.value;")
        code.line(f"{a.result} = {best}.at;")

    # In one thread

    def _inside(self, loop: Loop) -> None:
        """A loop's body, with the registers and local arrays that belong to it."""
        mine = [b for b in owned(loop) if b not in self._declared]
        for b in mine:
            self._variable(b)
        self._declared.update(mine)
        for step in loop.body:
            if isinstance(step, Statement):
                self._statement(step)
            else:
                self._serial(step)
        self._declared.difference_update(mine)

    def _serial(self, loop: Loop) -> None:
        """A loop that one thread runs in order."""
        code = self._code
        started = begun(loop)
        for s in started:
            self._accumulators[s] = accumulate(code, s, 1)
        v = code.axis(loop.axis)
        head = f"for (i64 {v} = 0; {v} < {long(loop.axis.extent)}; {v}++)"
        with code.block(head, (loop.axis,), written(loop)):
            self._inside(loop)
        for s in started:
            a = self._accumulators.pop(s)
            if not s.scan:
                code.use(s)
                code.store(s.target, s.index[0], a.result)

    def _scatter(self, s: Statement) -> None:
        if not s.atomic:
            super()._scatter(s)
            return
        code = self._code
        assert s.op is not None
        kind = DTYPES[s.target.dtype].storage
        value = code.named(code.value(s.value), s.target.dtype)
        place = code.place(s.target, s.index[0])
        made = combined(s.op, s.target.dtype, c_load(s.target.dtype, "was"), value)
        change = f"[=]({kind} was) {{ return ({kind}){c_store(s.target.dtype, made)}; }}"
        code.effect(s.target, _atomic(s, place, value) or f"combine(&{place}, {change});")


def _atomic(s: Statement, place: str, value: str) -> str | None:
    """The atomic operation that the hardware has for a statement, if there is one."""
    dtype = s.target.dtype
    if dtype not in ("i32", "u32", "i64", "u64"):
        return None
    name = {"sum": "Add", "min": "Min", "max": "Max"}.get(str(s.op))
    if name is None:
        return None
    signed = "long long" if dtype == "i64" and name != "Add" else "unsigned long long"
    kind = signed if DTYPES[dtype].size == 8 else "int" if dtype == "i32" else "unsigned"
    return f"atomic{name}(({kind} *)&{place}, ({kind}){value});"


def _combination(a: Accumulator) -> str:
    """The function that combines two values of a reduction, the first of which comes first."""
    if a.op not in PAIRED:
        kind = DTYPES[a.dtype].register
        return f"[]({kind} a, {kind} b) {{ return ({kind}){combined(a.op, a.dtype, 'a', 'b')}; }}"
    kind = f"Ranked<{DTYPES[a.dtype].register}>"
    first = better(a.op, a.dtype, "b.value", "a.value")
    same = "(a.value == b.value)"
    if DTYPES[a.dtype].kind == "f":
        same = f"({same} | ((a.value != a.value) & (b.value != b.value)))"
    chosen = f"({first}) | ({same} & (b.at < a.at)) ? b : a"
    return f"[]({kind} a, {kind} b) {{ return {chosen}; }}"


def _path(loop: Loop) -> list[Loop]:
    """A loop, and those of its kind that are nested in it, each the only one."""
    path = [loop]
    while len(path[-1].body) == 1:
        inner = path[-1].body[0]
        if not isinstance(inner, Loop) or inner.kind != loop.kind:
            break
        path.append(inner)
    return path


def _shared_by(loop: Loop) -> int:
    """How many threads share an iteration of a nest."""
    if loop.kind == "thread":
        return loop.width
    return max((_shared_by(b) for b in loop.body if isinstance(b, Loop)), default=1)


def _is_shared(loop: Loop, s: Statement) -> bool:
    """Whether threads share a loop, or one inside it, that a statement of it reduces over."""
    if loop.kind == "thread" and loop.axis in s.over:
        return True
    inner = (b for b in loop.body if isinstance(b, Loop) and s in statements(b))
    return any(_is_shared(b, s) for b in inner)


def _in_memory(step: Loop | Statement) -> tuple[set[Buffer], set[Buffer]]:
    """What a step reads and writes that threads may share."""
    reads, writes = accesses(step)
    return tuple({b for b in part if b.kind != "register"} for part in (reads, writes))  # type: ignore[return-value]


def _product(counts: list) -> int | Size:
    n: int | Size = 1
    for count in counts:
        n = n * count
    return n
