"""Every ufunc on special numbers: zeros of both signs, infinities, nan, huge and tiny ones; of
complex numbers all pairs of them. Parts are compared apart, and the signs of zeros too."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from np_compile.shim._ufunc_table import ROWS

from .support import Formulas, from_shim, quiet, shim

NAMES = [row.name for row in ROWS if row.name != "isnat" and row.numpy.nin <= 2]
HUGE = {"d": 1e300, "f": 1e30, "e": 6e4}
RTOL = {"d": 1e-12, "f": 1e-5, "e": 2e-3}

# Where NumPy's own answer is its processor's, or torch's function has another limit.
ELSEWHERE = {
    "multiply": "NumPy may round a product and a sum at once, so that one of them cannot overflow",
    "square": "as multiply",
    "divide": "a zero that an underflow leaves has the sign of what was rounded away",
    "power": "as multiply; whole exponents in an array go by products in NumPy",
    "float_power": "as power",
    "fmod": "torch gives nan where the quotient is beyond the largest number",
    "remainder": "as fmod",
    "floor_divide": "as fmod",
    "divmod": "as fmod",
    "fmax": "of two zeros NumPy takes the one that its processor does",
    "fmin": "as fmax",
    "arccos": "torch loses the square root of a tiny number beside one",
}


def numbers(char: str, large: bool) -> np.ndarray:
    """Special numbers of a dtype. large: whether huge and tiny ones are among them."""
    real = char.lower()
    found = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 3.0]
    if large:
        found += [HUGE[real], -HUGE[real], 1 / HUGE[real], 1e-3]
    parts = np.array(found, real)
    if char == real:
        return parts
    z = np.empty((len(parts), len(parts)), char)
    z.real, z.imag = parts[:, None], parts
    return z.ravel()


def differing(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where two arrays differ in more than a rounding."""
    if want.dtype.kind == "c":
        size = np.abs(want)
        return _parts_differ(got.real, want.real, size) | _parts_differ(got.imag, want.imag, size)
    if want.dtype.kind == "f":
        return _parts_differ(got, want, np.abs(want))
    return got != want


def _parts_differ(got: np.ndarray, want: np.ndarray, size: np.ndarray) -> np.ndarray:
    char = want.dtype.char
    size = np.where(np.isfinite(size), size, np.abs(want))
    with quiet():
        bound = RTOL[char] * size + 4 * np.finfo(char).smallest_subnormal
        far = np.isfinite(want) & ~(np.abs(got - want) <= bound)
    zeros = (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))
    infinite = np.isinf(want) & (got != want)
    return far | zeros | infinite | (np.isnan(want) != np.isnan(got))


def operands(name: str, char: str) -> list[np.ndarray]:
    values = numbers(char, name not in ELSEWHERE)
    if name in ("fmax", "fmin"):
        values = values[values != 0]
    if getattr(np, name).nin == 1:
        return [values]
    if char in "FD":
        values = values[::3] if len(values) > 120 else values[::2]
    return [np.repeat(values, len(values)), np.tile(values, len(values))]


@pytest.mark.parametrize("char", "DFdfe")
@pytest.mark.parametrize("name", NAMES)
def test_special_operands(name, char):
    given = operands(name, char)
    if "power" in name and char in "DF":  # not of exponents that are special themselves
        given = [a[np.isfinite(given[1]) & np.isfinite(given[0])] for a in given]
    with quiet():
        try:
            want = getattr(np, name)(*given)
        except TypeError:
            pytest.skip("no such loop")
        with Formulas():
            got = from_shim(getattr(shim, name)(*[shim.from_numpy(a.copy()) for a in given]))
        pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
        for ours, theirs in pairs:
            assert ours.dtype == theirs.dtype
            at = np.flatnonzero(differing(ours, theirs))
            first = [(*(a[i] for a in given), ours[i], theirs[i]) for i in at[:5]]
            assert not len(at), f"{len(at)} differ: {first}"


@pytest.mark.parametrize("exponent", [-3, -1, 0, 1, 2, 3, 7, 2.0])
def test_whole_powers_of_complex_numbers_are_products(exponent):
    z = numbers("D", False)
    with quiet(), Formulas():
        want = z**exponent
        got = from_shim(shim.from_numpy(z.copy()) ** exponent)
    assert not differing(got, want).any()


def test_float64_becomes_float16_in_one_rounding():
    rng = np.random.default_rng(0)
    middles = (1 + 2.0**-11 + rng.choice([1e-9, -1e-9, 0], 300)) * 2.0 ** rng.integers(-14, 15, 300)
    special = [np.nan, np.inf, -0.0, 65519.99, 65520, 5.96e-8, 2.98e-8, 2.0**-25, 1e-300, -1e300]
    x = np.concatenate([middles, -middles, special, rng.standard_normal(300) * 1e-5])
    with quiet():
        want = x.astype("e")
        ours = shim.from_numpy(x)
        stored = shim.zeros(x.shape, "e")
        stored[...] = ours
        ways = [
            ours.astype("e"), stored, shim.array(ours, dtype="e"),
            shim.multiply(ours, 1.0, out=shim.zeros(x.shape, "e")),
            shim.array([shim.full((), v, "e") for v in x.tolist()]),
        ]  # fmt: skip
        for got in ways:
            np.testing.assert_array_equal(from_shim(got).view("u2"), want.view("u2"))


def test_products_are_taken_in_order():
    huge = 1e200
    for line in ([huge, 0] * 8, [huge, 1 / huge] * 9, [huge] * 3 + [1 / huge] * 3):
        x = np.array(line)
        for axis, shape in ((None, -1), (0, (-1, 1)), (1, (1, -1)), ((0, 1), (2, -1))):
            a = x.reshape(shape)
            with quiet():
                want, got = np.prod(a, axis=axis), from_shim(shim.prod(shim.from_numpy(a), axis))
            assert not np.any(differing(np.asarray(got), np.asarray(want)))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(
    "bins", [b for n in (1, 2, 3) for b in itertools.product([1.0, 2.0, 3.0], repeat=n)]
)
def test_digitize_with_bins_that_rise_or_fall(bins, right):
    x, edges = np.array([0, 1, 1.5, 2, 3, 4, np.nan, np.inf, -np.inf]), np.array(bins)
    try:
        want = np.digitize(x, edges, right)
    except ValueError as e:
        with pytest.raises(ValueError, match=str(e)):
            shim.digitize(shim.from_numpy(x), shim.from_numpy(edges), right)
    else:
        got = shim.digitize(shim.from_numpy(x), shim.from_numpy(edges), right)
        np.testing.assert_array_equal(from_shim(got), want)


@pytest.mark.parametrize("value", [-0.0, 0.0, complex(-0.0, 0.0), 0, False])
def test_full_keeps_the_sign_of_a_zero(value):
    for dtype in (None, "d", "D"):
        with quiet():
            want, got = np.full(2, value, dtype), from_shim(shim.full(2, value, dtype))
        np.testing.assert_array_equal(np.signbit(got.real), np.signbit(want.real))
