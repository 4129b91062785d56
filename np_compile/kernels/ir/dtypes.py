"""Dtypes of the loop IR: how each lies in memory, in registers, and in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class DType:
    """One dtype of the IR.

    `storage` is the C type of an element in memory, `register` that of a value in an expression.
    The two differ for "f16" and "bf16", whose registers are `f32` with a value that the narrow type
    has. `numpy` holds such values in the evaluator; NumPy has no bf16, so float32 holds it.
    """

    name: str
    storage: str
    register: str
    size: int
    kind: str
    numpy: np.dtype[Any]
    torch: str

    @property
    def narrow(self) -> bool:
        """Whether values live in a wider register and are rounded after each operation."""
        return self.name in ("f16", "bf16")

    @property
    def working(self) -> str:
        """The dtype in which an expression is computed."""
        return "f32" if self.narrow else self.name

    @property
    def bits(self) -> int:
        """The width of an element in memory."""
        return 8 * self.size


_ROWS = (
    # name, storage, register, kind, NumPy, torch
    ("bool", "u8", "u8", 1, "b", "bool", "bool"),
    ("i8", "i8", "i8", 1, "i", "int8", "int8"),
    ("i16", "i16", "i16", 2, "i", "int16", "int16"),
    ("i32", "i32", "i32", 4, "i", "int32", "int32"),
    ("i64", "i64", "i64", 8, "i", "int64", "int64"),
    ("u8", "u8", "u8", 1, "u", "uint8", "uint8"),
    ("u16", "u16", "u16", 2, "u", "uint16", "uint16"),
    ("u32", "u32", "u32", 4, "u", "uint32", "uint32"),
    ("u64", "u64", "u64", 8, "u", "uint64", "uint64"),
    ("f16", "f16", "f32", 2, "f", "float16", "float16"),
    ("bf16", "bf16", "f32", 2, "f", "float32", "bfloat16"),
    ("f32", "f32", "f32", 4, "f", "float32", "float32"),
    ("f64", "f64", "f64", 8, "f", "float64", "float64"),
)

DTYPES: dict[str, DType] = {
    name: DType(name, storage, register, size, kind, np.dtype(array), torch)
    for name, storage, register, size, kind, array, torch in _ROWS
}

TYPEDEFS = """\
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef u16 f16;
typedef u16 bf16;
typedef float f32;
typedef double f64;
/* In which sums of signed numbers wrap around: unsigned ones, but for gcc. See -fwrapv. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
typedef i32 w32;
typedef i64 w64;
#else
typedef u32 w32;
typedef u64 w64;
#endif
"""


def round_to_bf16(values: Any) -> Any:
    """float32 `values` rounded to the nearest bf16, ties to even, still as float32."""
    wide = np.asarray(values, np.float32)
    bits = wide.view(np.uint32)
    carry = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    rounded = ((bits + carry) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isnan(wide), np.float32(np.nan), rounded)
