"""The scalar operations: C against the evaluator, torch, NumPy and exact figures."""

from __future__ import annotations

import ctypes
import functools
import operator
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from np_compile.kernels.build.toolchain import libraries, vector_math_available
from np_compile.kernels.ir import scalars
from np_compile.kernels.ir.dtypes import DTYPES
from np_compile.kernels.targets.c import libm

from ... import fresh
from ...support import thorough
from ..scalar_loops import (
    CASES,
    CASTS,
    CC,
    ELEMENTARY,
    FIRST,
    FLAGS,
    array,
    assert_same,
    build,
    cast_loop,
    crossed,
    from_storage,
    loop,
    operand_dtypes,
    operation_loop,
    run,
    sanitized_cases,
    source_of,
    tensor,
    values_of,
)

pytestmark = pytest.mark.skipif(CC is None, reason="needs gcc")

SANITIZE = [
    *("-O1", "-fwrapv", "-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
    *("-fPIC", "-shared", "-w"),
]


class Plain:
    """All operations and casts, with the functions of libm.

    Those of one name, or casts from one dtype, to be tested together, are compiled as the first of
    them is asked for.
    """

    def __init__(self, folder):
        self._folder, self._built = folder, {}

    def __getattr__(self, function):
        name, _, dtype = function.partition("_on_")
        if dtype:
            often = dtype in FIRST
            cases = [c for c in CASES if c[0] == name and (c[1] in FIRST) == often]
            make = operation_loop
        else:
            _, src, dst = function.split("_")
            name, often = f"cast_{src}", {src, dst} <= {*FIRST}
            cases = [c for c in CASTS if c[0] == src and ({*c} <= {*FIRST}) == often]
            make = cast_loop
        key = name if often else f"{name}_more"
        if key not in self._built:
            source = source_of([make(*case) for case in cases], None)
            made = build(self._folder, f"plain_{key}", source, FLAGS, libraries(None))
            self._built[key] = ctypes.CDLL(str(made))
        return getattr(self._built[key], function)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return Plain(tmp_path_factory.mktemp("scalars"))


def few(cases):
    """The first dtypes each time, the others with `pytest -m thorough`."""
    return [
        c if {*c} & {*DTYPES} <= {*FIRST} else pytest.param(*c, marks=pytest.mark.thorough)
        for c in cases
    ]


# Which operator of torch, or function of NumPy for the dtypes that torch lacks

TORCH = {
    "floordiv": functools.partial(torch.div, rounding_mode="floor"),
    "truncdiv": functools.partial(torch.div, rounding_mode="trunc"),
    "sub": torch.sub, "div": torch.true_divide, "and": torch.bitwise_and, "or": torch.bitwise_or,
    "xor": torch.bitwise_xor, "not": torch.bitwise_not, "land": torch.logical_and,
    "lor": torch.logical_or, "lxor": torch.logical_xor, "lnot": torch.logical_not,
    "lshift": torch.bitwise_left_shift, "rshift": torch.bitwise_right_shift,
    "tgamma": None, "cbrt": None, "gcd": None,
}  # fmt: skip
NUMPY = {
    "floordiv": np.floor_divide, "truncdiv": np.floor_divide, "sub": np.subtract,
    "mul": np.multiply, "neg": np.negative, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "not": np.invert, "land": np.logical_and, "lor": np.logical_or,
    "lxor": np.logical_xor, "lnot": np.logical_not, "lshift": np.left_shift,
    "rshift": np.right_shift, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "pow": np.power,
    "round": np.rint, "signbit": operator.methodcaller("__lt__", 0), "fmod": np.fmod,
}  # fmt: skip
# torch rounds f16 and bf16 within these; the IR, as NumPy, at the end.
ROUNDED_ONCE = {"floordiv", "truncdiv", "rsqrt", "sigmoid", *ELEMENTARY}
DIVISIONS = {"floordiv", "truncdiv", "remainder", "fmod"}


def tolerance(name: str, dtype: str) -> int:
    """Allowed distance, in places of the dtype, from another library's function."""
    if name == "sigmoid":
        return 1 if DTYPES[dtype].narrow else 4
    if name not in ELEMENTARY:
        return 0
    if name in ("lgamma", "tgamma") and dtype in ("f32", "f64"):
        return 1 << (12 if dtype == "f64" else 5)
    return 1 << 16 if dtype == "bf16" else 1 if dtype == "f16" else 2 * max(libm.ULP[name])


def by_torch(name: str, dtype: str, operands: list[np.ndarray]) -> np.ndarray | None:
    """The result of torch's operator, or None where torch has none for the dtype."""
    function = TORCH.get(name, getattr(torch, name, None))
    if function is None:
        return None
    tensors = [tensor(x, d) for x, d in zip(operands, operand_dtypes(name, dtype), strict=True)]
    once = name in ROUNDED_ONCE and DTYPES[dtype].narrow
    try:
        found = function(*(x.float() for x in tensors)) if once else function(*tensors)
    except RuntimeError as error:
        if re.search("not implemented|not support", str(error)):
            return None
        raise
    return array(found.to(tensors[0].dtype) if once else found)


def by_numpy(name: str, operands: list[np.ndarray]) -> np.ndarray:
    function = NUMPY.get(name, getattr(np, name, None))
    with np.errstate(all="ignore"):
        return np.asarray(function(*operands))


@pytest.mark.parametrize(("name", "dtype"), few(CASES))
def test_c_gives_what_evaluate_gives(plain, name, dtype):
    operands = crossed(name, dtype)
    result = scalars.result_dtype(name, dtype)
    found = run(plain, f"{name}_on_{dtype}", operands, operand_dtypes(name, dtype), result)
    expected = scalars.evaluate(name, dtype, *operands)
    assert_same(found, expected, operands, tolerance(name, dtype))


# Neither torch nor NumPy has tgamma.
@pytest.mark.parametrize(("name", "dtype"), [case for case in CASES if case[0] != "tgamma"])
def test_evaluate_gives_what_torch_or_numpy_gives(name, dtype):
    operands = crossed(name, dtype)
    if name in DIVISIONS and DTYPES[dtype].kind in "iu":
        # torch raises, or traps, at these; the tests of exact figures have them.
        a, b = operands
        fine = (b != 0) & ((b + 1 != 0) | (a != np.iinfo(a.dtype).min))
        operands = [a[fine], b[fine]]
    elif name in DIVISIONS:
        # torch's vectors give NaN where the quotient of finite numbers is infinite.
        a, b = operands
        with np.errstate(all="ignore"):
            fine = ~np.isinf(a.astype(DTYPES[DTYPES[dtype].working].numpy) / b) | ~np.isfinite(a)
            fine |= b == 0
        operands = [a[fine], b[fine]]
    # Of two equal halves, zeros of either sign, NumPy gives the first.
    numpys = (name, dtype) == ("nextafter", "f16")
    expected = None if numpys else by_torch(name, dtype, operands)
    found = scalars.evaluate(name, dtype, *operands)
    if expected is None:
        expected = by_numpy(name, operands)
    assert_same(
        found,
        expected,
        operands,
        max(tolerance(name, dtype), name in ("sqrt", "rsqrt")),
        zeros=name not in ("minimum", "maximum", "fmin", "fmax"),
    )


@pytest.mark.parametrize(("src", "dst"), few(CASTS))
def test_casts(plain, src, dst):
    values = values_of(src)
    found = run(plain, f"cast_{src}_{dst}", [values], [src], dst)
    assert_same(found, scalars.evaluate_cast(src, dst, values), [values])


# Exact figures


LOWEST = {f"i{n}": -(1 << (n - 1)) for n in (8, 16, 32, 64)}


@pytest.mark.parametrize("dtype", LOWEST)
def test_divisors_of_zero_and_minus_one(plain, dtype):
    low = LOWEST[dtype]
    a = np.array([7, -7, 0, low, low, low, low], DTYPES[dtype].numpy)
    b = np.array([0, 0, 0, 0, -1, 1, 2], DTYPES[dtype].numpy)
    for name, expected in {
        "floordiv": [0, 0, 0, 0, low, low, low // 2],
        "truncdiv": [0, 0, 0, 0, low, low, low // 2],
        "remainder": [0] * 7,
        "fmod": [0] * 7,
    }.items():
        found = run(plain, f"{name}_on_{dtype}", [a, b], [dtype, dtype], dtype)
        assert found.tolist() == expected, name
        assert scalars.evaluate(name, dtype, a, b).tolist() == expected, name


def test_constant_divisors_give_what_others_give(tmp_path):
    names, divisors = ("floordiv", "truncdiv", "remainder", "fmod"), (0, 1, -1, 3, -3, 8, 100)
    cases = [
        (name, dtype, number)
        for name in names
        for dtype in DTYPES
        if DTYPES[dtype].kind in "iu"
        for number in divisors
        if number >= 0 or DTYPES[dtype].kind == "i"
    ]

    def function(name: str, dtype: str, number: int) -> str:
        return f"{name}_{dtype}_by_{number}".replace("-", "minus_")

    loops = [
        loop(
            function(name, dtype, number),
            [dtype],
            dtype,
            scalars.c_expression(name, dtype, ["a", scalars.c_constant(number, dtype)]),
        )
        for name, dtype, number in cases
    ]
    library = ctypes.CDLL(str(build(tmp_path, "constants", source_of(loops, None), FLAGS)))
    for name, dtype, number in cases:
        a = values_of(dtype)
        found = run(library, function(name, dtype, number), [a], [dtype], dtype)
        expected = scalars.evaluate(name, dtype, a, np.full_like(a, number))
        assert_same(found, expected, [a])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_remainders_of_random_bits_are_exact(plain, dtype):
    rng = np.random.default_rng(5)
    kind = DTYPES[dtype].numpy
    bits = [rng.integers(0, 256, kind.itemsize * 20000, np.uint8).view(kind) for _ in range(2)]
    a, b = (np.where(np.isfinite(x), x, kind.type(3)) for x in bits)
    with np.errstate(over="ignore"):
        near = b * rng.integers(1, 1 << 20, b.size).astype(kind)  # quotients beside integers
    near = np.where(np.isfinite(near), near, b)
    for first in (a, near, np.nextafter(near, kind.type(0)), np.nextafter(near, a)):
        found = run(plain, f"fmod_on_{dtype}", [first, b], [dtype, dtype], dtype)
        assert_same(found, np.fmod(first, b), [first, b])


def test_every_f16_survives_memory_and_rounding(plain):
    bits = np.arange(1 << 16, dtype=np.uint16)
    for dtype in ("f16", "bf16"):
        values = bits.view(np.float16) if dtype == "f16" else from_storage(bits, dtype)
        wide = run(plain, f"cast_{dtype}_f32", [values], [dtype], "f32")
        assert_same(wide, values.astype(np.float32), [values])
        back = run(plain, f"cast_f32_{dtype}", [wide], ["f32"], dtype)
        assert_same(back, values, [values])


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_rounding_to_narrow_floats(plain, dtype):
    rng = np.random.default_rng(7)
    wide = rng.integers(0, 1 << 32, 200_000, np.uint32)
    halfway = rng.integers(0, 1 << 16, 50_000, np.uint32)
    halfway = (halfway << 16 | 0x8000) if dtype == "bf16" else (halfway << 16 & 0xFFFFE000) | 0x1000
    x = np.concatenate([wide, halfway]).view(np.float32)
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16) if dtype == "f16" else array(torch.tensor(x).bfloat16())
    assert_same(run(plain, f"cast_f32_{dtype}", [x], ["f32"], dtype), expected, [x])
    assert_same(scalars.evaluate_cast("f32", dtype, x), expected, [x])


def test_results_of_narrow_floats_are_rounded_at_once(tmp_path):
    # 2048 + 1 is 2048 in f16, and then again; a sum of three in f32 is 2050.
    twice = scalars.c_expression("add", "f16", ["a", "b"])
    twice = scalars.c_expression("add", "f16", [twice, "b"])
    source = source_of([loop("sums", ["f16", "f16"], "f16", twice)], None)
    library = ctypes.CDLL(str(build(tmp_path, "sums", source, FLAGS)))
    a, b = np.full(100, 2048, np.float16), np.ones(100, np.float16)
    assert set(run(library, "sums", [a, b], ["f16", "f16"], "f16")) == {2048}


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_constants_are_exact(tmp_path, dtype):
    values = values_of(dtype)
    texts = [scalars.c_constant(v, dtype) for v in values.tolist()]
    row = DTYPES[dtype]
    stores = "".join(f"out[{i}] = {scalars.c_store(dtype, t)};\n" for i, t in enumerate(texts))
    source = source_of([f"void constants({row.storage} *out) {{\n{stores}}}\n"], None)
    library = ctypes.CDLL(str(build(tmp_path, "constants", source, [*FLAGS, "-Werror=overflow"])))
    out = np.empty(values.size, np.uint16 if dtype == "bf16" else row.numpy)
    library.constants(ctypes.c_void_p(out.ctypes.data))
    assert_same(from_storage(out, dtype), values, [values])


def test_constants_of_other_numbers_wrap_or_round():
    assert scalars.c_constant(-1, "u8") == "255"
    assert scalars.c_constant(2**64 - 1, "u64") == "18446744073709551615UL"
    assert scalars.c_constant(2**63, "i64") == "(-9223372036854775807L - 1)"
    assert scalars.c_constant(2049.0, "f16") == "0x1.0000000000000p+11f"
    assert scalars.c_constant(True, "f64") == "0x1.0000000000000p+0"
    assert scalars.fold("mul", "f32", [0.1, 3]) == np.float32(0.1) * np.float32(3)
    assert scalars.fold("lt", "i64", [1, 2]) is True
    assert scalars.convert(-1.5, "f64", "u8") == 255
    assert scalars.convert(65520.0, "f64", "f16") == np.inf


def test_an_operation_refuses_kinds_that_it_does_not_take():
    with pytest.raises(TypeError, match="'sqrt' takes no operands of dtype i64"):
        scalars.result_dtype("sqrt", "i64")


# What the compiler makes of it


def becomes_vectors(name: str, dtype: str) -> bool:
    """Whether the loop of the operation is one to be vectorized, and no copy or constant."""
    text = scalars.c_expression(name, dtype, list("abc")[: scalars.OPS[name].arity])
    kind = DTYPES[dtype].kind
    if name in ("lgamma", "tgamma", "gcd") or (name == "pow" and kind != "f"):
        return False
    return text not in ("a", "0", "1")


def test_loops_become_vectors(tmp_path):
    found = vector_math_available()
    if found is None or "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("needs libmvec and AVX2")
    cases = [case for case in CASES if case[1] in ("f64", "f32", "i32") and becomes_vectors(*case)]
    loops = [operation_loop(*case) for case in cases]
    loops += [cast_loop(*case) for case in (("i32", "f64"), ("f64", "i32"), ("f64", "f32"))]
    file = tmp_path / "vectors.c"
    file.write_text(source_of(loops, found))
    report = subprocess.run(
        [CC, *FLAGS, "-fno-ipa-icf", "-fopt-info-vec", str(file), "-o", str(tmp_path / "v.so")],
        check=True,
        capture_output=True,
        text=True,
    ).stderr
    vectors = {int(n) for n in re.findall(r"vectors\.c:(\d+):\d+: optimized: loop vec", report)}
    missing = [
        line.split("(")[0]
        for n, line in enumerate(file.read_text().splitlines(), 1)
        if line.startswith("void ") and not {n, n + 1} & vectors
    ]
    assert missing == []


@pytest.mark.parametrize("dtypes", [FIRST, *thorough(tuple(DTYPES))], ids=["first", "all"])
def test_no_operation_and_no_cast_has_undefined_behaviour(tmp_path, dtypes):
    probe = tmp_path / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    linked = subprocess.run(
        [CC, "-fsanitize=undefined", str(probe), "-o", str(tmp_path / "probe")], capture_output=True
    )
    if linked.returncode:
        pytest.skip("needs libubsan")
    loops = [operation_loop(*c) for c in sanitized_cases(dtypes)]
    loops += [cast_loop(*c) for c in CASTS if {*c} <= {*dtypes}]
    library = build(tmp_path, "sanitized", source_of(loops, None), SANITIZE, ["-lm"])
    script = (
        f"from tests.kernels.scalar_loops import run_all; run_all({str(library)!r}, {dtypes!r})"
    )
    done = fresh.run(script, cwd=str(Path(__file__).parents[3]))
    assert done.returncode == 0, done.stderr[-3000:]
