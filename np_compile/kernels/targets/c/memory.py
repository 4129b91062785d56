"""C of addresses: where buffers lie."""

from __future__ import annotations

from ...analysis.memory import Layout
from ...ir.dtypes import DTYPES
from ...ir.program import Buffer
from ..literals import long


def address(layout: Layout, b: Buffer) -> str:
    """The C expression of where a buffer begins."""
    slot, offset = layout.place(b)
    return f"memory[{slot}]" if b in layout.slots else f"((char *)memory[{slot}] + {long(offset)})"


def symbols(layout: Layout) -> list[str]:
    """The C declarations of the symbols of sizes."""
    read = f"((const i64 *)memory[{layout.sizes}])"
    return [f"const i64 {name} = {read}[{k}];" for k, name in enumerate(layout.symbols)]


def pointer(layout: Layout, b: Buffer, written: bool) -> str:
    """The C declaration of a pointer to a buffer, under the buffer's name."""
    kind = DTYPES[b.dtype].storage if written else f"const {DTYPES[b.dtype].storage}"
    return f"{kind} *restrict {b.name} = ({kind} *){address(layout, b)};"


def partial(layout: Layout, offset: int, kind: str) -> str:
    """Memory that chunks leave their results in, as a C pointer of that type."""
    return f"({kind})((char *)memory[{layout.block}] + PARTIALS + {long(offset)})"
