"""Storage assignment: slots of arguments and results, offsets of temporaries in one block.

Arguments, constants and results have a slot each in the array of pointers that the C gets.
Temporaries lie in one block; two of them share a place if one is last read before the other is
first written. Behind them lies what the chunks of parallel loops leave of their reductions.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    partials: int = 0

    @property
    def pointers(self) -> int:
        """How many slots there are."""
        return self.flag + 1 + len(self.libraries)

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


def plan(program: Program, machine: Target) -> Layout:
    """A place for each buffer but registers and local arrays."""
    align = machine.line_bytes
    offsets, size = _temporaries(program, align)
    fixed = [b for b in program.buffers if b not in offsets and b.kind not in ("register", "local")]
    slots = {b: k for k, b in enumerate(fixed)}
    products = {s.writes[0].dtype for s in program.steps if isinstance(s, Product)}
    block, flag = len(fixed), len(fixed) + 1
    libraries = {dtype: flag + 1 + k for k, dtype in enumerate(sorted(products))}
    return Layout(slots, offsets, block, flag, size, libraries, align)


def _temporaries(program: Program, align: int) -> tuple[dict[Buffer, int], int]:
    """Byte offset of each temporary, and the size of the block."""
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    made = {b for s in program.steps if isinstance(s, Call) and s.strides for b in s.writes}
    for k, step in enumerate(program.steps):
        for part in accesses(step):
            for b in part:
                if b.kind == "temporary" and b not in made:
                    first.setdefault(b, k)
                    last[b] = k
    places: dict[Buffer, tuple[int, int]] = {}
    bytes_ = {b: _aligned(max(b.size, 1) * DTYPES[b.dtype].size, align) for b in first}
    for b in sorted(first, key=lambda b: (-bytes_[b], b.name)):
        taken = sorted(places[c] for c in places if first[c] <= last[b] and first[b] <= last[c])
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
