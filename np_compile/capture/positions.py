"""Which arguments of a NumPy function are data: read off the shim's rows, once a row."""

from __future__ import annotations

from functools import cache

from np_compile import shim


@cache
def data_flags(name: str) -> tuple[bool, ...]:
    """For each positional parameter of a row, whether it takes array-likes; the last repeats."""
    row = shim.TABLE.get(name)
    if row is None or row.signature is None:
        return (True,)
    flags = []
    for p in row.signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY or p.kind is p.VAR_KEYWORD:
            break
        flags.append(p.name in row.data)
    return tuple(flags) or (False,)


@cache
def data_names(name: str) -> frozenset[str]:
    """Names of the parameters of a row that take array-likes."""
    row = shim.TABLE.get(name)
    return row.data if row is not None else frozenset()
