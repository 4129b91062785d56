"""C loops over scalar operations, arrays of edges to run them on, and comparisons."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

import numpy as np
import torch

from np_compile.kernels.ir import scalars
from np_compile.kernels.ir.dtypes import DTYPES
from np_compile.kernels.targets.c import libm
from np_compile.kernels.targets.c.prelude import prelude

CC = shutil.which("gcc")

FLAGS = [
    *("-O3", "-march=native", "-mprefer-vector-width=512", "-fopenmp-simd", "-fPIC", "-shared"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-w"),
]
ELEMENTARY = set(libm.ULP)
CASES = [
    (name, dtype)
    for name, op in scalars.OPS.items()
    for dtype, row in DTYPES.items()
    if row.kind in op.kinds
]
# Other dtypes have the C of these, in other widths.
FIRST = ("bool", "i8", "i32", "i64", "u8", "u64", "f16", "f32", "f64")
CASTS = [(src, dst) for src in DTYPES for dst in DTYPES if src != dst]


# Programs


def loop(name: str, operands: list[str], result: str, expression: str) -> str:
    """A C function that stores `expression` of a[i], b[i], c[i] for all i."""
    names = "abc"[: len(operands)]
    types = [DTYPES[dtype] for dtype in operands]
    given = "".join(
        f", const {row.storage} *restrict {n}_" for n, row in zip(names, types, strict=True)
    )
    loads = "".join(
        f"{row.register} {n} = {scalars.c_load(row.name, f'{n}_[i]')}; "
        for n, row in zip(names, types, strict=True)
    )
    out = DTYPES[result]
    return (
        f"void {name}(i64 n, {out.storage} *restrict out{given}) {{\n"
        f"    for (i64 i = 0; i < n; i++) {{ {loads}{out.register} y = {expression}; "
        f"out[i] = {scalars.c_store(result, 'y')}; }}\n}}\n"
    )


def operand_dtypes(name: str, dtype: str) -> list[str]:
    return ["bool", dtype, dtype] if name == "where" else [dtype] * scalars.OPS[name].arity


def operation_loop(name: str, dtype: str) -> str:
    operands = operand_dtypes(name, dtype)
    text = scalars.c_expression(name, dtype, list("abc"[: len(operands)]))
    return loop(f"{name}_on_{dtype}", operands, scalars.result_dtype(name, dtype), text)


def cast_loop(src: str, dst: str) -> str:
    return loop(f"cast_{src}_{dst}", [src], dst, scalars.c_cast(src, dst, "a"))


def source_of(loops: list[str], vector_math: str | None) -> str:
    body = "".join(loops)
    return prelude(body, vector_math) + body


def build(folder: Path, name: str, source: str, flags: list[str], libraries=()) -> Path:
    file, library = folder / f"{name}.c", folder / f"{name}.so"
    file.write_text(source)
    subprocess.run([CC, *flags, str(file), "-o", str(library), *libraries], check=True)
    return library


# Arrays: bf16 travels as its bits in uint16, in C's memory and here at the border only


def storage(values: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bf16":
        return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return np.ascontiguousarray(values)


def from_storage(values: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bf16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values


def run(library, function: str, operands: list[np.ndarray], dtypes: list[str], result: str):
    kept = [storage(v, d) for v, d in zip(operands, dtypes, strict=True)]
    memory = np.uint16 if result == "bf16" else DTYPES[result].numpy
    out = np.empty(kept[0].size, memory)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (out, *kept)]
    getattr(library, function)(ctypes.c_long(out.size), *pointers)
    return from_storage(out, result)


def tensor(values: np.ndarray, dtype: str) -> torch.Tensor:
    found = torch.from_numpy(storage(values, dtype))
    return found.view(torch.bfloat16) if dtype == "bf16" else found


def array(found: torch.Tensor) -> np.ndarray:
    return found.float().numpy() if found.dtype == torch.bfloat16 else found.numpy()


FLOATS = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 0.1, 0.3, 7.0, 100.0, 65504.0, 65519.0, 65520.0, 1e5]
FLOATS += [127.0, 128.0, 255.0, 256.0, 300.0, 32768.0, 2.0**31, 2.0**31 - 128, 2.0**32 + 5376]
FLOATS += [2.0**62, 2.0**63, 2.0**63 + 2.0**50, 2.0**64, 2.0**-24, 2.0**-25, 3 * 2.0**-26]
FLOATS += [2.0**-14, 2.0**-15, 1e-7, 6e-8, 1e-40, 1e-45, 2.0**-1074, 2.0**-1022, 2.0**-126]
FLOATS += [3e38, 1e300, 1.7976931348623157e308, 20.0, 40.0, 88.0, 104.0, 700.0, 746.0, np.inf]


@functools.cache
def values_of(dtype: str) -> np.ndarray:
    """The edges of a dtype and random numbers, in its NumPy dtype."""
    rng = np.random.default_rng(3)
    row = DTYPES[dtype]
    if row.kind == "b":
        return np.array([False, True])
    if row.kind in "iu":
        info = np.iinfo(row.numpy)
        edges = {info.min, info.min + 1, info.max, info.max - 1, *range(-4, 12), 31, 32, 63, 64}
        edges |= {100, info.bits, info.bits - 1, -info.bits, 255, 256}
        fits = sorted(x for x in edges if info.min <= x <= info.max)
        spread = rng.integers(info.min, info.max, 20, row.numpy, endpoint=True)
        return np.concatenate([np.array(fits, row.numpy), spread])
    wide = np.array([*FLOATS, *(-x for x in FLOATS), np.nan, *rng.normal(0, 3, 20)])
    return scalars.evaluate_cast("f64", dtype, wide)


def crossed(name: str, dtype: str) -> list[np.ndarray]:
    """Operands for operation `name`: all pairs of values."""
    values = [values_of(d) for d in operand_dtypes(name, dtype)]
    if len(values) == 3:
        values = [values[0], values[1][::3], values[2][::4]]
    return [np.ascontiguousarray(x).ravel() for x in np.meshgrid(*values)]


# Comparisons


def keys(x: np.ndarray) -> np.ndarray:
    """Floats as integers whose differences count the numbers between them."""
    bits = x.view(f"i{x.itemsize}").astype(np.int64)
    lowest = np.iinfo(f"i{x.itemsize}").min
    return np.where(bits < 0, lowest - bits, bits)


def places(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How many numbers lie between a and b, plus one."""
    first, second = keys(a), keys(b)
    return np.maximum(first, second).view(np.uint64) - np.minimum(first, second).view(np.uint64)


def assert_same(found, expected, operands, ulp: int = 0, zeros: bool = True) -> None:
    """Equal in every bit but those of NaNs; within `ulp` places; `zeros`: with the sign of zero."""
    assert found.dtype == expected.dtype
    good = found == expected
    if found.dtype.kind == "f":
        if zeros:
            good &= np.signbit(found) == np.signbit(expected)
        good |= np.isnan(found) & np.isnan(expected)
        if ulp:
            finite = ~np.isnan(found) & ~np.isnan(expected)
            good |= finite & (places(found, expected) <= ulp)
            good &= np.isinf(found) == np.isinf(expected)
    wrong = np.flatnonzero(~good)
    cases = [
        f"{[o[i] for o in operands]}: {found[i]!r}, expected {expected[i]!r}" for i in wrong[:8]
    ]
    assert not wrong.size, f"{wrong.size} of {found.size}\n" + "\n".join(cases)


# All at once


def sanitized_cases(dtypes: Collection[str]) -> list[tuple[str, str]]:
    """The operations on these that are not elementary."""
    cases = [(n, d) for n, d in CASES if d in dtypes]
    return [(n, d) for n, d in cases if n not in ELEMENTARY or DTYPES[d].kind != "f"]


def run_all(path: str, dtypes: Collection[str]) -> None:
    """Every operation on these that is not elementary, and every cast, on all edges."""
    library = ctypes.CDLL(path)
    for name, dtype in sanitized_cases(dtypes):
        result = scalars.result_dtype(name, dtype)
        dtypes = operand_dtypes(name, dtype)
        run(library, f"{name}_on_{dtype}", crossed(name, dtype), dtypes, result)
    for src, dst in CASTS:
        if src not in dtypes or dst not in dtypes:
            continue
        run(library, f"cast_{src}_{dst}", [values_of(src)], [src], dst)
