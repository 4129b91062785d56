"""CUDA of a few neighbouring iterations that a thread runs together, for wide accesses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from np_compile.size import Size, some

from ...analysis.launches import Words
from ...ir.dtypes import DTYPES
from ...ir.program import Loop, Statement
from ..literals import long
from ..nest import owned, written
from .dialect import CUDA
from .thread import Thread

IN_MEMORY = ("input", "output", "constant", "temporary")


@dataclass(frozen=True)
class Group:
    """`width` neighbouring iterations of a loop, from `base` on."""

    loop: Loop
    base: str
    width: int


class Lanes(Thread):
    """Neighbouring iterations of a thread."""

    def __init__(self, w: Words):
        super().__init__(w.layout, CUDA)
        self._words = w
        self._round = "0"  # of a loop that threads share, the turn of each thread

    def _divided(self, unit: str, counts: list) -> list[str]:
        """The places along axes of so many iterations that a number counts, the last fastest."""
        if len(counts) == 1:
            return [unit]
        small = product(counts) < 1 << 32
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

    def _neighbours(self, loop: Loop, groups: list[Group]) -> None:
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

    def _lanes(self, loop: Loop, groups: list[Group], beyond: list[Group]) -> None:
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
            if s.op is not None or s.target.kind not in IN_MEMORY:
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
    def _lane(self, loop: Loop, groups: list[Group], beyond: list[Group]) -> Iterator[str]:
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


def path_of(loop: Loop) -> list[Loop]:
    """A loop, and those of its kind that are nested in it, each the only one."""
    path = [loop]
    while len(path[-1].body) == 1:
        inner = path[-1].body[0]
        if not isinstance(inner, Loop) or inner.kind != loop.kind:
            break
        path.append(inner)
    return path


def product(counts: list) -> int | Size:
    n: int | Size = 1
    for count in counts:
        n = n * count
    return n
