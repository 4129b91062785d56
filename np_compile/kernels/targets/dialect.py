"""Dialects of C: what the texts of the targets differ in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """The words of one C-like language.

    simd: the line before a loop that runs as vectors. unroll: the line before one that is written
    out {0} times. bits: the bits of a value {x} of the C type {source} as one of {target}. aligned:
    what stands behind the name of a local array.
    """

    simd: str
    unroll: str
    bits: str
    aligned: str = ""
