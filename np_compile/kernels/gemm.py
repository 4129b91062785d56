"""Products of matrices by `gemm.c`: the step of a program, its C, and the compiled library.

Where the processor has vectors of 512 bits it is 1.3 to 2.5 times as fast as NumPy's OpenBLAS,
which does not use them on every one, and about as fast elsewhere. It runs in the threads of the
kernels: those of a second library would spin on the cores that these need.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

import torch

from . import build
from .dtypes import DTYPES
from .ir import Product
from .memory import Layout

REALS = {"f32": "float", "f64": "double"}
DECLARATIONS = (
    "typedef void (*gemm_t)(run_t, int, const i64 *, void *, const void *, const void *);\n"
)


def product(c: Any, a: Any, b: Any, name: str, line: str) -> Product:
    """The step that stores a product, or several, of a `Tensor` and another in a third."""
    return Product(
        name, _product, (c, a, b), {}, [a.buffer, b.buffer], [c.buffer], [],
        "it is computed in blocks that fit into the caches", line,
    )  # fmt: skip


def _product(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    """What the step means."""
    c.copy_(torch.matmul(a, b))


def call(step: Product, layout: Layout) -> list[str]:
    """The C of a step."""
    c, a, b = step.args
    *batch, m, k = a.shape
    sizes = [*(batch or [1]), m, b.shape[-1], k]
    for x in (c, a, b):
        sizes += [*([] if batch else [0]), *x.strides]
    kind = c.buffer.dtype
    at = ", ".join(
        f"(char *){layout.address(x.buffer)} + {x.offset * DTYPES[kind].size}L" for x in (c, a, b)
    )
    return [
        "{",
        f"    static const i64 shape[] = {{{', '.join(map(str, sizes))}}};",
        f"    ((gemm_t)memory[{layout.libraries[kind]}])(run, threads, shape, {at});",
        "}",
    ]


@functools.cache
def source(dtype: str) -> str:
    """The C text of the library for a dtype."""
    text = Path(__file__).with_name("gemm.c").read_text(encoding="utf-8")
    return f"#define REAL {REALS[dtype]}\n{text}"


@functools.cache
def address(dtype: str) -> int:
    """The address of `npc_gemm` for a dtype."""
    library = build.load(source(dtype), name=f"gemm_{dtype}")
    found = ctypes.cast(library.npc_gemm, ctypes.c_void_p).value
    assert found is not None
    return found
