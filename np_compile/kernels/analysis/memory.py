"""Storage assignment: slots of arguments and results, offsets of temporaries in one block.

Arguments, constants and results have a slot each in the array of pointers that the C gets.
Temporaries lie in one block; two of them share a place if one is last read before the other is
first written. Behind them lies what the chunks of parallel loops leave of their reductions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
        *places, size = _placing(lives, align)([b.size for b in lives])
        offsets = dict(zip(lives, places, strict=True))
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
    """The places of temporaries, and the size of the block, as symbols: they follow from sizes."""
    known: list[tuple[Any, Any]] = [(None, None)]  # the last values, and what they give
    numbers = function_of([b.size for b in lives])
    placed = _placing(lives, align)

    def place(values: Mapping[str, int], k: int) -> int:
        if known[0][0] is not values:
            known[0] = values, placed(numbers(values))
        return known[0][1][k]

    offsets = {b: facts.later(partial(place, k=k)) for k, b in enumerate(lives)}
    return offsets, facts.later(partial(place, k=len(lives))) if lives else 0


def _placing(lives: _Lives, align: int) -> Callable[[Sequence[int]], list[int]]:
    """What gives, of the elements of each temporary, its byte offset, and at last the size of the
    block: the largest are placed first, each at the first gap among those that live with it."""
    widths = [DTYPES[b.dtype].size for b in lives]
    by_name = sorted(range(len(lives)), key=[b.name for b in lives].__getitem__)
    spans = [*lives.values()]
    beside = [
        [k for k, (begin, end) in enumerate(spans) if begin <= last and first <= end]
        for first, last in spans
    ]

    def placed(elements: Sequence[int]) -> list[int]:
        sizes = [_aligned(max(n, 1) * w, align) for n, w in zip(elements, widths, strict=True)]
        begins = [-1] * len(sizes)
        block = 0
        for k in sorted(by_name, key=sizes.__getitem__, reverse=True):
            at, size = 0, sizes[k]
            taken = [(begins[j], begins[j] + sizes[j]) for j in beside[k] if begins[j] >= 0]
            for begin, end in sorted(taken):
                if at + size <= begin:
                    break
                at = max(at, end)
            begins[k] = at
            block = max(block, at + size)
        return [*begins, block]

    return placed


def _aligned(n: int, align: int) -> int:
    return -(-n // align) * align
