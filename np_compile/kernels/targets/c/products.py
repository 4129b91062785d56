"""Products of matrices, and of matrices and vectors, as calls of `gemm.c`."""

from __future__ import annotations

from ...analysis.memory import Layout
from ...ir.dtypes import DTYPES
from ...ir.program import Product
from ..literals import long
from .memory import address

DECLARATIONS = (
    "typedef void (*gemm_t)(run_t, int, const i64 *, void *, const void *, const void *);\n"
)


def call(step: Product, layout: Layout) -> list[str]:
    """The C of a step."""
    c, a, b = step.args
    *batch, m, k = a.shape
    column = () if len(b.shape) > 1 else (1,)  # a vector is a matrix of one column
    sizes = [*(batch or [1]), m, *(column or b.shape[-1:]), k]
    for x, more in ((c, column), (a, ()), (b, column)):
        sizes += [*([] if batch else [0]), *x.strides, *more]
    kind = c.buffer.dtype
    size = DTYPES[kind].size
    at = ", ".join(
        f"(char *){address(layout, x.buffer)} + {long(x.offset * size)}" for x in (c, a, b)
    )
    return [
        "{",
        f"    const i64 shape[] = {{{', '.join(map(str, sizes))}}};",
        f"    ((gemm_t)memory[{layout.libraries[kind]}])(run, threads, shape, {at});",
        "}",
    ]
