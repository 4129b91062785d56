"""Storage assignment: slots of arguments and results, offsets of temporaries in one block.

Arguments, constants and results have a slot each in the array of pointers that the C gets.
Temporaries lie in one block; two of them share a place if one is last read before the other is
first written. Behind them lies what the chunks of parallel loops leave of their reductions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from np_compile.size import Facts, function_of

from ..ir.dtypes import DTYPES
from ..ir.program import Buffer, Call, Product, Program, accesses
from ..target import Target


@dataclass
class Layout:
    """Where buffers lie: the slot of each in the array of pointers, or its offset in the block.

    `block` and `flag` are the slots of the block and of the flag for indices out of bounds,
    `libraries` those of the products of matrices, by dtype. `size` and `partials` are the bytes
    that the temporaries and the results of chunks take; each begins at a multiple of `align`.
    """

    slots: dict[Buffer, int]
    offsets: dict[Buffer, int]
    block: int
    flag: int
    size: int
    libraries: dict[str, int]
    align: int
    chunks: int  # most that leave results
    symbols: tuple[str, ...] = ()  # of sizes, in the order of their values
    partials: int = 0

    @property
    def sizes(self) -> int:
        """The slot of the values of the symbols."""
        return self.flag + 1 + len(self.libraries)

    @property
    def pointers(self) -> int:
        """How many slots there are."""
        return self.sizes + 1

    def place(self, b: Buffer) -> tuple[int, int]:
        """The slot of the pointer that leads to a buffer, and how many bytes behind it begins."""
        if b in self.slots:
            return self.slots[b], 0
        return self.block, self.offsets[b]

    def reserve(self, elements: int) -> int:
        """The offset of memory for that many results of chunks, of 8 bytes each."""
        offset = self.partials
        self.partials += _aligned(8 * elements, self.align)
        return offset


def plan(program: Program, machine: Target, facts: Facts | None = None) -> Layout:
    """A place for each buffer but registers and local arrays. facts: of the sizes of a program for
    many; there the temporaries have their places when the sizes are known."""
    align = machine.line_bytes
    lives = _lives(program)
    if facts is None:
        offsets, size = _placed(lives, {b: b.size for b in lives}, align)
    else:
        offsets, size = _placed_later(lives, align, facts)
    fixed = [b for b in program.buffers if b not in offsets and b.kind not in _NOWHERE]
    slots = {b: k for k, b in enumerate(fixed)}
    products = {s.writes[0].dtype for s in program.steps if isinstance(s, Product)}
    block, flag = len(fixed), len(fixed) + 1
    libraries = {dtype: flag + 1 + k for k, dtype in enumerate(sorted(products))}
    return Layout(slots, offsets, block, flag, size, libraries, align, machine.chunks)


_NOWHERE = ("register", "local", "private")  # kinds of buffers that have no place in memory
_Lives = dict[Buffer, tuple[int, int]]


def _lives(program: Program) -> _Lives:
    """The first and the last step that each temporary is in."""
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    made = {b for s in program.steps if isinstance(s, Call) and s.strides for b in s.writes}
    for k, step in enumerate(program.steps):
        for part in accesses(step):
            for b in part:
                if b.kind == "temporary" and b not in made:
                    first.setdefault(b, k)
                    last[b] = k
    return {b: (first[b], last[b]) for b in first}


def _placed_later(lives: _Lives, align: int, facts: Facts) -> tuple[dict[Buffer, Any], Any]:
    """As `_placed`, as symbols: where the temporaries lie follows from the sizes."""
    known: list[tuple[Any, Any]] = [(None, None)]  # the last values, and what they give
    numbers = function_of([c.size for c in lives])

    def place(values: Mapping[str, int], b: Buffer | None) -> int:
        if known[0][0] is not values:
            elements = dict(zip(lives, numbers(values), strict=True))
            known[0] = values, _placed(lives, elements, align)
        offsets, size = known[0][1]
        return int(size if b is None else offsets[b])

    offsets = {b: facts.later(partial(place, b=b)) for b in lives}
    return offsets, facts.later(partial(place, b=None)) if lives else 0


def _placed(
    lives: _Lives, sizes: Mapping[Buffer, int], align: int
) -> tuple[dict[Buffer, int], int]:
    """Byte offset of each temporary, of so many elements, and the size of the block."""
    places: dict[Buffer, tuple[int, int]] = {}
    bytes_ = {b: _aligned(max(sizes[b], 1) * DTYPES[b.dtype].size, align) for b in lives}
    for b in sorted(lives, key=lambda b: (-bytes_[b], b.name)):
        (first, last) = lives[b]
        taken = sorted(places[c] for c in places if lives[c][0] <= last and first <= lives[c][1])
        at = 0
        for begin, end in taken:
            if at + bytes_[b] <= begin:
                break
            at = max(at, end)
        places[b] = (at, at + bytes_[b])
    size = max((end for _, end in places.values()), default=0)
    return {b: begin for b, (begin, _) in places.items()}, size


def _aligned(n: int, align: int) -> int:
    return -(-n // align) * align
