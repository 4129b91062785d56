"""Pass: where each temporary lies in the program's one block of memory.

Two temporaries share a place if one is last read before the other is first written.
"""

from __future__ import annotations

from .dtypes import DTYPES
from .ir import Buffer, Call, Program, accesses

_ALIGN = 64


def plan(program: Program) -> tuple[dict[Buffer, int], int]:
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
    for b in sorted(first, key=lambda b: (-_bytes(b), b.name)):
        taken = sorted(places[c] for c in places if first[c] <= last[b] and first[b] <= last[c])
        at = 0
        for begin, end in taken:
            if at + _bytes(b) <= begin:
                break
            at = max(at, end)
        places[b] = (at, at + _bytes(b))
    size = max((end for _, end in places.values()), default=0)
    return {b: begin for b, (begin, _) in places.items()}, size


def _bytes(b: Buffer) -> int:
    n = max(b.size, 1) * DTYPES[b.dtype].size
    return -(-n // _ALIGN) * _ALIGN
