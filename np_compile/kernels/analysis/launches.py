"""Launches on a GPU: what a kernel is given, and by how many threads it runs.

A kernel has one argument, an array of words of 8 bytes: the pointers in the order of
`Layout.slots`, that to the block, that to the flag, that to the counters of reductions, the vectors
of parameters, and the values of the symbols of sizes. What is in it costs no copy to the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from np_compile.size import Size

from ..ir.program import Buffer
from .memory import Layout

_LONGEST = 64  # numbers of a vector of parameters


@dataclass
class Words:
    """Where things are among the words. vectors: of inputs that may be parameters, the first word,
    by buffer; where the pointer of such a one is zero, its numbers are there. sizes: of the first
    symbol."""

    layout: Layout
    vectors: dict[Buffer, int] = field(default_factory=dict)
    sizes: int = 0
    count: int = 0

    @property
    def counters(self) -> int:
        """The word that leads to the counters."""
        return self.layout.flag + 1


def words(layout: Layout, inputs: Sequence[Buffer | None]) -> Words:
    """The words of a program with these inputs: its vectors of parameters are the last ones."""
    made = Words(layout)
    at = made.counters + 1
    for b in inputs[-2:]:
        if b is None or b.dtype not in ("f64", "i64") or b not in layout.slots:
            continue
        if isinstance(b.size, int) and 0 < b.size <= _LONGEST and b.strides == (1,):
            made.vectors[b] = at
            at += b.size
    made.sizes = at
    made.count = at + len(layout.symbols)
    return made


@dataclass(frozen=True)
class Launch:
    """How a kernel runs: in so many blocks of threads, each of which shares so many bytes. checks:
    whether it looks for indices out of bounds."""

    name: str
    blocks: int | Size
    threads: int
    shared: int
    checks: bool


@dataclass
class Launches:
    """The launches of a program, by its sections, and how many counters its kernels have."""

    words: Words
    sections: list[list[Launch]]
    counters: int
