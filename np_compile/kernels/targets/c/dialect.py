"""The words of GNU C."""

from __future__ import annotations

from ..dialect import Dialect

GNU = Dialect(
    simd="#pragma omp simd",
    unroll="#pragma GCC unroll {0}",
    bits="((union {{ {source} a; {target} b; }}){{{x}}}).b",
)
