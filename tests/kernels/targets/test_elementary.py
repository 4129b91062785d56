"""The elementary functions: within their bounds of exact results, in vectors and one by one."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from np_compile.kernels.build.toolchain import libraries, vector_math_available
from np_compile.kernels.ir import scalars
from np_compile.kernels.ir.dtypes import DTYPES
from np_compile.kernels.targets.c import libm

from ..scalar_loops import (
    CASES,
    CC,
    ELEMENTARY,
    FLAGS,
    build,
    operation_loop,
    run,
    source_of,
    values_of,
)

pytestmark = pytest.mark.skipif(CC is None, reason="needs gcc")


def library_of(folder: Path, vector_math: str | None) -> ctypes.CDLL:
    """The elementary functions of f32 and f64."""
    loops = [operation_loop(n, d) for n, d in CASES if n in ELEMENTARY and d in ("f32", "f64")]
    source = source_of(loops, vector_math)
    return ctypes.CDLL(str(build(folder, "functions", source, FLAGS, libraries(vector_math))))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return library_of(tmp_path_factory.mktemp("plain"), None)


@pytest.fixture(scope="module")
def vector(tmp_path_factory):
    found = vector_math_available()
    if found is None:
        pytest.skip("needs libmvec")
    return library_of(tmp_path_factory.mktemp("vector"), found)


def references(folder: Path, names: list[str]) -> ctypes.CDLL:
    """Loops over C's functions of the next wider float: double for f32, long double for f64."""
    text = "typedef float f32; typedef double f64; typedef long i64;\n"
    for name in names:
        operands = "ab"[: scalars.OPS[name].arity]
        given = ", ".join(f"const T *{x}_" for x in operands)
        for real, wide, suffix in (("f32", "double", ""), ("f64", "long double", "l")):
            called = ", ".join(f"({wide}){x}_[i]" for x in operands)
            text += f"extern {wide} {name}{suffix}({', '.join([wide] * len(operands))});\n"
            text += (
                f"void {name}_{real}(i64 n, {wide} *out, {given.replace('T', real)}) "
                f"{{ for (i64 i = 0; i < n; i++) out[i] = {name}{suffix}({called}); }}\n"
            )
    return ctypes.CDLL(
        str(build(folder, "references", text, ["-O2", "-fPIC", "-shared", "-w"], ["-lm"]))
    )


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return references(tmp_path_factory.mktemp("references"), sorted(ELEMENTARY))


def spread(name: str, dtype: str) -> list[np.ndarray]:
    """Many operands for an elementary function, of all sizes; pairs at random."""
    rng = np.random.default_rng(11)
    kind = DTYPES[dtype].numpy
    info = np.finfo(kind)

    def draw() -> np.ndarray:
        exponents = rng.uniform(np.log2(info.tiny), np.log2(info.max), 5000)
        parts = [
            values_of(dtype),
            rng.normal(0, 1, 5000),
            rng.uniform(-10, 10, 5000),
            rng.uniform(-750, 750, 5000),
            rng.uniform(0.5, 2, 5000),
            np.exp2(exponents) * rng.choice([-1, 1], 5000),
        ]
        return rng.permutation(np.concatenate(parts).astype(kind))

    if scalars.OPS[name].arity == 1:
        return [draw()]
    edges = [
        np.ascontiguousarray(x).ravel() for x in np.meshgrid(values_of(dtype), values_of(dtype))
    ]
    a, b = draw(), draw()
    if name == "pow":
        # C's powl takes this power for an odd one.
        edges[1][edges[1] == -(2.0**63)] = -(2.0**62)
        a = np.where(rng.random(a.size) < 0.8, np.abs(a), a)
    return [np.concatenate([edges[0], a]), np.concatenate([edges[1], b])]


def errors(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distances in units of the last place; infinite where one is NaN or infinite, or a sign."""
    kind = found.dtype
    with np.errstate(all="ignore"):
        rounded = exact.astype(kind)
        unit = np.spacing(np.minimum(np.abs(rounded), np.finfo(kind).max)).astype(exact.dtype)
        far = np.abs(found.astype(exact.dtype) - exact) / np.abs(unit)
    same = (found == rounded) & (np.signbit(found) == np.signbit(rounded))
    same |= np.isnan(found) & np.isnan(rounded)
    odd = np.isnan(far) | (np.isinf(found) != np.isinf(rounded))
    odd |= np.signbit(found) != np.signbit(rounded)
    return np.where(same, 0, np.where(odd, np.inf, far)).astype(float)


def assert_within_bound(library, reference, name: str, dtype: str) -> None:
    operands = spread(name, dtype)
    dtypes = [dtype] * len(operands)
    found = run(library, f"{name}_on_{dtype}", operands, dtypes, dtype)
    exact = np.empty(found.size, np.float64 if dtype == "f32" else np.longdouble)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (exact, *operands)]
    getattr(reference, f"{name}_{dtype}")(ctypes.c_long(found.size), *pointers)
    far = errors(found, exact)
    worst = int(np.argmax(far))
    bound = libm.ULP[name][dtype == "f32"]
    assert far[worst] <= bound, f"{[x[worst] for x in operands]}: {found[worst]}, {exact[worst]}"


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", sorted(ELEMENTARY))
def test_elementary_functions_are_within_their_bounds(plain, reference, name, dtype):
    assert_within_bound(plain, reference, name, dtype)


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", sorted(ELEMENTARY))
def test_vector_functions_are_within_their_bounds(vector, reference, name, dtype):
    assert_within_bound(vector, reference, name, dtype)


def test_the_bounds_are_those_of_the_functions_that_are_known_as_inexact() -> None:
    assert set(libm.ULP) == scalars.INEXACT
