"""C of numbers that may be sizes."""

from __future__ import annotations

from np_compile.size import Size


def long(n: int | Size, ending: str = "L") -> str:
    """An integer of 64 bits: a number with its ending, or an expression."""
    return str(n) if isinstance(n, Size) else f"{n}{ending}"
