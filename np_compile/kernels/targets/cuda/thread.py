"""CUDA of what one thread does, one iteration after the other."""

from __future__ import annotations

from ...ir.dtypes import DTYPES
from ...ir.program import Loop, Statement
from ...ir.scalars import c_load, c_store
from ..literals import long
from ..nest import Nest, written
from ..reductions import accumulate, begun, combined


class Thread(Nest):
    """The loops and statements of one thread."""

    def _step(self, step: Loop | Statement) -> None:
        if isinstance(step, Statement):
            self._statement(step)
        else:
            self._serial(step)

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
