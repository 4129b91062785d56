"""CUDA of addresses: where buffers lie, by the words that a kernel is given."""

from __future__ import annotations

from ...analysis.launches import Words
from ...ir.dtypes import DTYPES
from ...ir.program import Buffer
from ..literals import long


def symbols(w: Words) -> list[str]:
    """The declarations of the symbols of sizes."""
    names = enumerate(w.layout.symbols)
    return [f"const i64 {name} = (i64)memory.words[{w.sizes + k}];" for k, name in names]


def pointer(w: Words, b: Buffer, written: bool) -> str:
    """The declaration of a pointer to a buffer, under the buffer's name."""
    kind = DTYPES[b.dtype].storage if written else f"const {DTYPES[b.dtype].storage}"
    slot, offset = w.layout.place(b)
    place = f"(char *)memory.words[{slot}]"
    if b in w.vectors:
        place = f"(memory.words[{slot}] ? {place} : (char *)(memory.words + {w.vectors[b]}))"
        return f"{kind} *__restrict__ {b.name} = ({kind} *){place};"
    if b not in w.layout.slots:
        place = f"{place} + {long(offset)}"
    return f"{kind} *__restrict__ {b.name} = ({kind} *)ALIGNED({place});"


def partials(w: Words, offset: int, kind: str) -> str:
    """Memory that blocks leave their results of that type in."""
    return f"({kind} *)((char *)memory.words[{w.layout.block}] + PARTIALS + {long(offset)})"
