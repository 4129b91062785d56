"""Vector lengths: iterations of a strip, and partial results (lanes) of a reduction."""

from __future__ import annotations

from np_compile.size import Size, reaches

from ..ir import expr as E
from ..ir.dtypes import DTYPES
from ..ir.program import PAIRED, Loop, statements
from ..target import Target
from .cost import cost
from .parallel import repeatable


def most_lanes(loop: Loop, machine: Target) -> int:
    """Elements of as many vectors as hide the time of an addition, of the widest values in a
    loop."""
    size = max(
        [DTYPES[x.dtype].size for s in statements(loop) for x in E.walk(s.value) if not _index(x)]
        + [DTYPES[s.target.dtype].size for s in statements(loop)]  # a position is an i64
    )
    return machine.lanes(size)


def lanes(leaf: Loop, machine: Target) -> int:
    """Partial results of each reduction along a loop without loops inside: a power of two, or 1
    where vectors are not worth it. Several reductions hide each other's times with fewer; a sum of
    floats wants its lanes for its exactness."""
    most = most_lanes(leaf, machine)
    count = _lane_count(leaf.axis.extent, most, most // machine.latency)
    reductions = [s for s in statements(leaf) if leaf.axis in s.over]
    crowded = sum(1 + (s.op in PAIRED) for s in reductions) > 2 and not float_sums(leaf)
    return count // 2 if crowded and count > most // machine.latency else count


def float_sums(leaf: Loop) -> bool:
    """Whether a loop sums up floats along its axis."""
    return any(
        s.op == "sum" and leaf.axis in s.over and DTYPES[s.target.dtype].kind == "f"
        for s in statements(leaf)
    )


def _lane_count(extent: int, most: int, vector: int) -> int:
    """How many partial results a reduction of that length keeps; vector: elements of a vector.

    Many hide the time of an addition where the loop is long. Where it is short, what is left over
    the end and the combination of the lanes count.
    """
    if reaches(extent, 8 * most):
        return most
    counts = [w for w in (most, most // 2, vector, vector // 2, 4) if 4 <= w <= extent]

    def steps(w: int) -> float:
        rest = extent % w
        return (
            extent // w * 4 * max(1, w / most)
            + (rest // vector + rest % vector) * 2
            + (w.bit_length() * 4)
        )

    return min(counts, key=steps, default=1)


def strip_width(loop: Loop, shared: bool, machine: Target) -> int:
    """Iterations of a loop of kind "strip" that run together; shared: threads are to divide it.

    Strips are as even as whole vectors allow. Where little is computed they are wide, for rows of
    memory are then read in longer pieces.
    """
    extent, most = loop.axis.extent, most_lanes(loop, machine)
    if any(loop.axis in s.over for s in statements(loop)):  # the lanes are combined by halves
        return most if reaches(extent, most) else 1 << (extent.bit_length() - 1)
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
    if isinstance(extent, Size):
        return wide if overlapping(loop, machine) else min(wide, most)
    strips = -(-extent // wide)
    if shared:
        strips = max(strips, min(4, extent // (2 * most) * 2))
    if strips == 1:
        return extent
    even = -(-extent // strips)
    return -(-even // vector) * vector


def overlapping(loop: Loop, machine: Target) -> bool:
    """Whether the last strips of a loop of any length may overlap: what is left over, of a length
    that the C compiler does not know, is slow where little is computed. That is written for several
    lengths."""
    general = isinstance(loop.axis.extent, Size)
    little = sum(cost(s.value) for s in statements(loop)) <= machine.wide_cycles
    return general and little and repeatable(loop)


def _index(x: E.Expr) -> bool:
    return x.op in ("axis", "affine", "idiv", "imod") or x.op == "const"
