"""The words of GNU C."""

from __future__ import annotations

from ..dialect import Dialect

GNU = Dialect(
    simd="#pragma omp simd",
    unroll="#pragma GCC unroll {0}",
    bits="((union {{ {source} a; {target} b; }}){{{x}}}).b",
    # gcc 12 has taken a local array of 24 bytes for aligned to 16 that was not, and crashed.
    aligned=" __attribute__((aligned(64)))",
)
