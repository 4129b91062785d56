"""Every ufunc on every dtype, at the edges of its range, as loops; and every cast."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from np_compile.shim._ufunc_table import ROWS

import np_compile
from np_compile.kernels.build.toolchain import NoCompiler, compiler

from ..support import first
from .native_checks import Case, Watched, check_elements, check_table


def _has_compiler() -> bool:
    try:
        compiler()
    except NoCompiler:
        return False
    return True


pytestmark = pytest.mark.skipif(not _has_compiler(), reason="needs a C compiler")

NAMES = [row.name for row in ROWS if hasattr(np, row.name) and row.name != "isnat"]
ALL = "?bhilBHILefdFD"
# Functions whose last bits differ from one library to the next.
LOOSE = {"e": 4e-3, "f": 5e-6, "d": 1e-11, "F": 3e-5, "D": 1e-9}
EXACT = (
    "add", "subtract", "multiply", "negative", "positive", "absolute", "fabs", "sign", "rint",
    "conjugate", "floor", "ceil", "trunc", "floor_divide", "remainder", "fmod", "divmod",
    "copysign", "nextafter", "spacing", "modf", "ldexp", "frexp", "heaviside", "maximum",
    "minimum", "fmax", "fmin", "greater", "greater_equal", "less", "less_equal", "equal",
    "not_equal", "isfinite", "isinf", "isnan", "signbit",
)  # fmt: skip
# Functions for which NumPy says nothing of the sign of a zero, or answers by its vector unit.
SIGNLESS = ("maximum", "minimum", "fmax", "fmin")
# The inverse functions of complex numbers are torch's.
INVERSE = {f"aten.{n}.default" for n in ("asin", "acos", "atan", "asinh", "acosh", "atanh")}


def edges(dtype: str) -> np.ndarray:
    """Zeros, ones, signs, what does not fit, and what is no number."""
    d = np.dtype(dtype)
    if d.kind == "b":
        return np.array([False, True])
    if d.kind in "iu":
        i = np.iinfo(d)
        found = [0, 1, 2, 3, 7, i.max, i.min, i.max // 2, i.bits - 1, i.bits, i.bits + 3]
        return np.array([*found, *([-1, -2, -7] if d.kind == "i" else [])], d)
    if d.kind == "f":
        f = np.finfo(d)
        found = [0.0, -0.0, 1, -1, 0.5, -2.5, 3, np.inf, -np.inf, np.nan, f.max, f.tiny, 1.5, -7]
        return np.array([*found, f.smallest_subnormal, 1e3], d)
    return np.array([0, 1, -1, 1j, -1j, 1 + 1j, 2 - 3j, -0.5 + 0.25j, 0.3, -2.5j], d)


def cases(dtype: str) -> dict[str, Case]:
    """Each ufunc that takes the dtype, on all pairs of edges."""
    x = edges(dtype)
    a, b = (m.ravel().copy() for m in np.meshgrid(x, x, indexing="ij"))
    found: dict[str, Case] = {}
    for name in NAMES:
        f = getattr(np, name)
        args = (x,) if f.nin == 1 else (a, b)
        if name == "ldexp":
            args = (a, np.resize(np.array([0, 1, -1, 5, -30, 200], "i4"), a.shape))
        if name == "power" and np.dtype(dtype).kind == "i":
            args = (a, np.abs(b) % 9)
        try:
            with np.errstate(all="ignore"):
                f(*args)
        except TypeError:
            continue
        found[name] = (f, args)
    return found


@pytest.mark.parametrize("dtype", first(ALL, *"?iBLefD"))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_ufunc_at_the_edges(dtype):
    table = cases(dtype)
    assert len(table) > 20
    if torch.get_default_device().type == "cuda":
        table.pop("hypot", None)  # of what is nearly too large, infinity
    kind = np.dtype(dtype).kind

    def rtol(name: str) -> float:
        if kind == "c":
            return LOOSE[dtype]
        if name in EXACT:
            return 0.0
        with np.errstate(all="ignore"):
            f, args = table[name]
            result = f(*args)
        char = (result[0] if isinstance(result, tuple) else result).dtype.char
        return LOOSE.get(char, 0.0)

    check_elements(table, rtol, INVERSE if kind == "c" else (), SIGNLESS)


# Each part of complex numbers, and of both operands.
PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 20.0, 1000.0, np.inf, -np.inf, np.nan)
FEW = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan)


def grid(parts: tuple[float, ...], dtype: str) -> np.ndarray:
    return np.array([complex(x, y) for x in parts for y in parts], dtype)


def marks(x: np.ndarray) -> np.ndarray:
    """Of each part of each number: NaN, infinities and zeros with their signs; others are 1."""
    parts = np.ascontiguousarray(x).view(x.real.dtype)
    plain = np.isfinite(parts) & (parts != 0)
    found = np.where(plain, 1, np.copysign(np.where(np.isinf(parts), 9, 3), parts))
    return np.where(np.isnan(parts), 0, found)


@pytest.mark.parametrize("dtype", ["F", "D"])
def test_every_ufunc_of_special_complex_numbers(dtype):
    """NaNs, infinities, zeros and their signs are where NumPy has them."""
    z, few = grid(PARTS, dtype), grid(FEW, dtype)
    a, b = np.repeat(few, few.size), np.tile(few, few.size)
    table: dict[str, Case] = {}
    for name in NAMES:
        f = getattr(np, name)
        try:
            with np.errstate(all="ignore"):
                f(*(z[:1],) * f.nin)
        except TypeError:
            continue
        table[name] = (f, (z,) if f.nin == 1 else (a, b))
    assert len(table) > 35
    for name, f in {
        "power -1": lambda z: z**-1, "power 2": lambda z: z**2, "power 0.5": lambda z: z**0.5,
        "by 2": lambda z: z / 2.0, "2 by": lambda z: 2.0 / z, "2 times": lambda z: 2.0 * z,
        "1 and": lambda z: 1.0 + z, "2j times": lambda z: z * 2j, "angle": np.angle,
    }.items():  # fmt: skip
        table[name] = (f, (z,))

    def together(arguments):
        return [f(*x) for (f, _), x in zip(table.values(), arguments, strict=True)]

    arguments = [x for _, x in table.values()]
    with np.errstate(all="ignore"), np_compile.config.patch(plain="never"):
        wanted = together(arguments)
        got = np_compile.compile(together, backend="native")(arguments)
    for name, found, want in zip(table, got, wanted, strict=True):
        assert (found.dtype, found.shape) == (want.dtype, want.shape)
        if want.dtype.kind not in "fc":
            np.testing.assert_array_equal(found, want, name)
            continue
        np.testing.assert_array_equal(marks(found), marks(want), name)
        parts, exact = (np.ascontiguousarray(x).view(want.real.dtype) for x in (found, want))
        plain, rtol = marks(want) == 1, 1e-5 if dtype == "F" else 1e-12
        np.testing.assert_allclose(parts[plain], exact[plain], rtol, 0, err_msg=name)


def plane(dtype: str) -> np.ndarray:
    """Complex numbers of all sizes and signs, many of them by the unit circle."""
    p = np.array([1e-30, 3e-9, 0.999999, 1.000001, 1.4, 20.0])
    x, y = (m.ravel() for m in np.meshgrid(np.concatenate([p, -p]), np.concatenate([p, -p])))
    circle = np.exp(1j * np.linspace(0.1, 2 * np.pi, 17)) * (1 + 1e-6)
    return np.concatenate([x + 1j * y, circle, [1, 1j, -1, -1j]]).astype(dtype)


@pytest.mark.parametrize(("dtype", "tolerance"), [("F", 2e-6), ("D", 4e-15)])
def test_functions_of_complex_numbers_hold_their_digits(dtype, tolerance):
    """The distance from the result in double precision, relative to its size."""
    names = ("exp", "expm1", "log", "sqrt", "sin", "cos", "sinh", "cosh", "tanh", "tan", "angle")
    table: dict[str, Case] = {n: (getattr(np, n), (plane(dtype),)) for n in names}
    z = plane(dtype)
    table["log1p"] = (np.log1p, (z[(np.abs(z) > 0.1) & (np.abs(z + 1) > 0.1)],))
    table["log of huge"] = (np.log, (z * 1e37,))
    table["sqrt of huge"] = (np.sqrt, (z * 1e37,))
    for n in (2, 3, 5, -1, -2, 0.5):
        table[f"power {n}"] = (lambda z, n=n: z**n, (z[np.abs(z) > 1e-6],))

    def together(values):
        return [f(v) for (f, _), v in zip(table.values(), values, strict=True)]

    watched = Watched()
    got = np_compile.compile(together, backend=watched)([x for _, (x,) in table.values()])
    assert not watched.calls
    for (name, (f, (x,))), found in zip(table.items(), got, strict=True):
        want = f(x.astype("D"))
        distance = np.abs(found - want) - tolerance * np.abs(want)
        assert np.max(distance) <= 0, (name, x[np.argmax(distance)], found[np.argmax(distance)])


@pytest.mark.parametrize("source", ALL)
def test_every_cast(source):
    kind = np.dtype(source).kind
    values = [0, 1, 2, 5, 100, 3.7 if kind in "fc" else 3, *([-1, -100] if kind in "ifc" else [])]
    x = np.array(values).astype(source)
    positive = np.abs(x)
    table: dict[str, Case] = {}
    for dtype in ALL:
        unsigned = np.dtype(dtype).kind == "u" and kind in "fc"
        table[dtype] = (lambda v, d=dtype: v.astype(d), (positive if unsigned else x,))
    check_table(table)


def test_doubles_are_rounded_to_halves_once():
    half = np.arange(0x7C00, dtype="u2").view("f2").astype("f8")
    middle = (half[:-1] + half[1:]) / 2
    x = np.concatenate([
        half, middle, np.nextafter(middle, 0), np.nextafter(middle, 1e9), middle * (1 + 2e-9),
        [65519.999999, 65520, 1e300, np.inf, np.nan, 5e-324, 2.0**-25, 2.0**-25 * (1 + 1e-9)],
    ])  # fmt: skip
    x = np.concatenate([x, -x])

    def f(x, z):
        z[...] = x
        return x.astype("f2"), (x * 3).astype("f2"), z

    got = np_compile.compile(f, backend="native")(x, np.zeros(x.shape, "f2"))
    with np.errstate(all="ignore"):
        wanted = f(x, np.zeros(x.shape, "f2"))
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def test_sizes_of_zero_and_one_and_none():
    table: dict[str, Case] = {}
    for shape in ((), (1,), (0,), (1, 1), (3, 0), (1, 4)):
        x = np.ones(shape)
        table[f"add {shape}"] = (lambda x: x + 1, (x,))
        table[f"chain {shape}"] = (lambda x: np.exp(x) * 2 - x / 3, (x,))
        table[f"outer {shape}"] = (lambda x: x[..., None] * np.arange(3.0), (x,))
        table[f"sum {shape}"] = (lambda x: np.sum(x), (x,))
    check_table(table)


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_powers_by_real_numbers(dtype):
    f = np.finfo(dtype)
    found = [0.0, 1.0, 0.3, 2.5, 7e3, np.inf, np.nan, f.max, f.tiny, f.smallest_subnormal]
    many = np.exp(np.random.default_rng(0).uniform(np.log(f.tiny), np.log(f.max), 4000))
    x = np.array([*found, *(-v for v in found), *many], dtype)
    for exponent in (-3, -2, -1.5, -1.0, -0.5, 0.5, 1.5, 2.5, 3, 3.0, 4.0, -4):
        got = np_compile.compile(lambda x, p=exponent: x**p, backend="native")(x)
        with np.errstate(all="ignore"):
            want, exact = x**exponent, x.astype(np.longdouble) ** exponent
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
            number = ~np.isnan(want)  # the sign of a NaN is the machine's
            np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))
            known = np.isfinite(want) & np.isfinite(got)
            ulps = np.abs(got[known] - exact[known]) / np.spacing(np.abs(want[known]))
            assert ulps.max() <= 4
            # Beside the greatest number a result may be inf.
            edge = np.abs(exact[~known & ~np.isnan(want)]) / f.max
            assert np.all((edge > 1 - 8 * f.eps) | ~np.isfinite(edge))


@pytest.mark.parametrize("dtypes", ["fi", "fl", "di", "dl", "db", "fB"])
def test_a_cast_to_an_integer_and_back_gives_positive_zeros(dtypes):
    real, integer = dtypes
    x = np.array([-0.5, -0.0, 0.5, -1.5, 2.5, -0.99, -1.0, 0.0] * 5, real)
    fast = np_compile.compile(lambda x: x.astype(integer).astype(real), backend="native")
    with np_compile.config.patch(plain="never"):
        got, want = fast(x), x.astype(integer).astype(real)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
