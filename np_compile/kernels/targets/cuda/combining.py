"""CUDA of what reductions end with: threads' and blocks' results, combined in their order."""

from __future__ import annotations

from ...analysis.launches import Words
from ...ir.dtypes import DTYPES
from ...ir.program import PAIRED, Loop, Statement, statements
from ..reductions import Accumulator, better, combined
from .lanes import Lanes
from .memory import partials


class Combining(Lanes):
    """The ends of reductions. counters: of the program so far."""

    def __init__(self, w: Words, counters: int):
        super().__init__(w)
        self.counters = counters
        self._threads = 1  # that share an iteration of a block
        self._rows = 1  # iterations of a block at once
        self._epilogue: list[Statement] = []

    def _end(self, loop: Loop, started: list[Statement]) -> None:
        """The results of reductions of which the loop was the outermost, in one block."""
        code = self._code
        for s in started:
            a = self._accumulators.pop(s)
            if s.scan:
                continue
            a = self._plain(a)
            if is_shared(loop, s):
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
            self._code.line(f"{a.name} = fold<{threads}>({a.name}, {combination(a)});")
            return
        ranked = f"Ranked<{DTYPES[a.dtype].register}>"
        best = self._code.fresh("best")
        held = f"{ranked}{{{a.name}, {a.result}}}"
        self._code.line(f"const {ranked} {best} = fold<{threads}>({held}, {combination(a)});")
        self._code.line(f"{a.name} = {best}.value;")
        self._code.line(f"{a.result} = {best}.at;")

    def _finish(self, loop: Loop, started: list[Statement], threads: int) -> None:
        """The results of reductions that blocks share: the last one combines what each has."""
        code, blocks = self._code, loop.blocks
        lasting = []
        for s in started:
            plain = self._plain(self._accumulators.pop(s))
            shared = loop.kind == "grid" or is_shared(loop, s)
            if not shared and self._rows > 1:  # what all threads of a row have counts once
                for _, name, first in plain.variables:
                    code.line(f"if (lane) {name} = {first};")
            if shared or self._rows > 1:
                self._folded(plain, threads)
            lasting.append((s, plain))
        if blocks == 1:
            for s, plain in lasting:
                code.use(s)
                with code.block("if (threadIdx.x == 0)", (), frozenset((s.target,))):
                    code.store(s.target, s.index[0], plain.result)
            if self._epilogue:
                code.line(f"together<{threads}>();")  # some may still read what it writes
            self._end_of_all()
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
            self._end_of_all()

    def _end_of_all(self) -> None:
        """The statements that follow once all blocks are done, by the thread with the results."""
        if not self._epilogue:
            return
        touched = frozenset(b for s in self._epilogue for b, _ in s.touched)
        with self._code.block("if (threadIdx.x == 0)", (), touched):
            for s in self._epilogue:
                self._statement(s)

    def _taken(self, a: Accumulator, values: list[str]) -> None:
        """Combine an accumulator with what another block has found."""
        code = self._code
        if a.op not in PAIRED:
            code.line(f"{a.name} = {combined(a.op, a.dtype, a.name, values[0])};")
            return
        ranked = f"Ranked<{DTYPES[a.dtype].register}>"
        best = code.fresh("best")
        pair = f"{ranked}{{{a.name}, {a.result}}}, {ranked}{{{', '.join(values)}}}"
        code.line(f"const {ranked} {best} = {combination(a)}({pair});")
        code.line(f"{a.name} = {best}.value;")
        code.line(f"{a.result} = {best}.at;")


def combination(a: Accumulator) -> str:
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


def is_shared(loop: Loop, s: Statement) -> bool:
    """Whether threads share a loop, or one inside it, that a statement of it reduces over."""
    if loop.kind == "thread" and loop.axis in s.over:
        return True
    inner = (b for b in loop.body if isinstance(b, Loop) and s in statements(b))
    return any(is_shared(b, s) for b in inner)
