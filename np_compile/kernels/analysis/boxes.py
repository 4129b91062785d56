"""Boxes (hyperrectangles): regions of an array between a first and a last index along each axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.expr import Expr
from ..ir.program import elements
from .access import Index, interval, line

# For each axis of the array the first place, and the one after the last.
Box = tuple[tuple[int, int], ...]


def whole(shape: Sequence[int]) -> Box:
    """All of an array."""
    return tuple((0, n) for n in shape)


def size(box: Box) -> int:
    return elements(max(hi - lo, 0) for lo, hi in box)


def stored(index: Index, axes: Sequence[Expr]) -> Box | None:
    """The elements at an index, if they are a box and each is met once, for all values of axes."""
    seen: set[Expr] = set()
    box = []
    for i in index:
        if i.op == "const":
            box.append((i.value, i.value + 1))
            continue
        f = line(i)
        if f is None or f.atom.op != "axis" or f.atom in seen or f.step not in (1, -1):
            return None
        if f.atom.extent == 0:
            return None
        seen.add(f.atom)
        lo = f.start if f.step == 1 else f.start - f.atom.extent + 1
        box.append((lo, lo + f.atom.extent))
    return tuple(box) if seen == set(axes) else None


def hull(index: Index, shape: Sequence[int], ranges: Mapping[Expr, tuple[int, int]]) -> Box:
    """A box that holds all elements at an index. ranges: of axes, where they are not whole."""
    found = []
    for i, n in zip(index, shape, strict=True):
        lo, hi = interval(i, ranges)
        found.append((max(lo, 0), min(hi + 1, n)))
    return tuple(found)


def inside(a: Box, b: Box) -> bool:
    """Whether all of a is in b."""
    return all(m <= lo and hi <= n for (lo, hi), (m, n) in zip(a, b, strict=True))


def meet(a: Box, b: Box) -> bool:
    """Whether an element is in both."""
    return all(max(lo, m) < min(hi, n) for (lo, hi), (m, n) in zip(a, b, strict=True))


def without(a: Box, b: Box) -> list[Box]:
    """What is in a and not in b, in disjoint boxes: at most two for each axis, the first axis
    first."""
    if not meet(a, b):
        return [a]
    left = []
    for d, ((lo, hi), (m, n)) in enumerate(zip(a, b, strict=True)):
        if lo < m:
            left.append((*a[:d], (lo, m), *a[d + 1 :]))
        if n < hi:
            left.append((*a[:d], (n, hi), *a[d + 1 :]))
        a = (*a[:d], (max(lo, m), min(hi, n)), *a[d + 1 :])
    return left


def joined(boxes: Sequence[Box]) -> list[Box]:
    """The same elements in fewer boxes: those that lie side by side become one."""
    done: list[Box] = []
    for box in boxes:
        k = 0
        while k < len(done):
            both = _union(done[k], box)
            if both is None:
                k += 1
            else:
                box, k = both, 0
                done = [b for b in done if not inside(b, both)]
        done.append(box)
    return done


def _union(a: Box, b: Box) -> Box | None:
    """Both boxes as one, if they are one."""
    if inside(a, b):
        return b
    if inside(b, a):
        return a
    apart = [d for d, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
    if len(apart) != 1:
        return None
    d = apart[0]
    (lo, hi), (m, n) = a[d], b[d]
    return (*a[:d], (min(lo, m), max(hi, n)), *a[d + 1 :]) if lo <= n and m <= hi else None
