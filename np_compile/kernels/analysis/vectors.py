"""Vector lengths: elements of a strip, and partial results (lanes) of a reduction."""

from __future__ import annotations

from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.program import Loop, statements
from ..target import Target
from .cost import cost


def lanes(loop: Loop, machine: Target) -> int:
    """Elements of a strip, or partial results of a reduction, of the widest values in a loop."""
    size = max(
        [DTYPES[x.dtype].size for s in statements(loop) for x in E.walk(s.value) if not _index(x)]
        + [DTYPES[s.target.dtype].size for s in statements(loop)]  # a position is an i64
    )
    return machine.lanes(size)


def strip_width(loop: Loop, shared: bool, machine: Target) -> int:
    """Iterations of the loop's axis that run together; shared: threads are to divide the loop.

    Strips are as even as whole vectors allow. Where little is computed they are wide, for rows of
    memory are then read in longer pieces.
    """
    extent, most = loop.axis.extent, lanes(loop, machine)
    if "jam" in loop.marks:
        return min(machine.latency, extent)
    if "strip" not in loop.marks:
        return min(most, extent) if loop.marks else 1
    if any(loop.axis in s.over for s in statements(loop)):  # the lanes are combined by halves
        return min(most, 1 << (extent.bit_length() - 1))
    vector = most // machine.latency
    inside = list(statements(loop))
    arrays = {s.target for s in inside if s.target.kind == "local"}
    wide = most
    if not arrays and sum(cost(s.value) for s in inside) <= machine.wide_cycles:
        wide *= 4
    # Each iteration of a strip has its own local arrays.
    bytes_ = sum(b.size * DTYPES[b.dtype].size for b in arrays)
    while wide > vector and wide * bytes_ > machine.working_bytes:
        wide //= 2
    strips = -(-extent // wide)
    if shared:
        strips = max(strips, min(4, extent // (2 * most) * 2))
    if strips == 1:
        return extent
    even = -(-extent // strips)
    return -(-even // vector) * vector


def _index(x: E.Expr) -> bool:
    return x.op in ("axis", "affine", "idiv", "imod") or x.op == "const"
