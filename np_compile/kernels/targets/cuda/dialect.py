"""The words of CUDA C++."""

from __future__ import annotations

from ..dialect import Dialect

CUDA = Dialect(simd="", unroll="#pragma unroll {0}", bits="bits<{target}>({x})")
