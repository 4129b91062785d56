"""NumPy scalars and Python numbers: their types, their promotion, and what compiles anew."""

from __future__ import annotations

import math

import numpy as np
import pytest

import np_compile

from ..support import check, compiled, data

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_and_elements_give_numpys_scalar_types(dtype):
    def f(x):
        return [
            x.sum(), x.prod(), x.max(), x.min(), x.mean(), x.std(), x.var(), x.any(), x.all(),
            x.argmax(), x.argmin(), x[0], x[-1], x[1:2][0], np.sum(x), np.mean(x), np.median(x),
            np.dot(x, x), np.vdot(x, x), np.linalg.norm(x), np.count_nonzero(x), x.item(0),
            x.sum() + 1,
            x[0] + x[1], x[0] * 2, x[0] * 2.0, x[0] / 2, -x[0] if x.dtype != bool else 0, abs(x[0]),
            x.sum().dtype, x[0].shape, x[0].ndim, np.sqrt(x[0]), x.ptp() if hasattr(x,
            "ptp") else 0,
            x.real[0], x.imag[0], x.astype(np.int8)[0], x.trace() if x.ndim > 1 else None,
        ]  # fmt: skip

    check(f, data(5, dtype=dtype))


def test_scalar_or_zero_dimensional_array_as_in_numpy():
    def f(x):
        z = np.array(2.5)
        return [
            z, z[()], z + 1, z + z, -z, np.sin(z), z * x, z.copy(), z.reshape(()), z.astype("f4"),
            np.asarray(x.sum()), np.array(x[0]), x.sum(keepdims=True), x[0, None], x[0, ...],
            x[..., 0],
            np.add(z, 1), np.where(True, z, z), np.float64(1) + z, np.squeeze(x[:1]),
            x[:1].squeeze(),
            np.clip(z, 0, 1), np.full((), 3.0), np.zeros(()), np.einsum("i,i", x, x), np.inner(x,
            x),
            np.tensordot(x, x, 1), x @ x, np.trace(np.outer(x, x)), np.real(z), np.abs(z), z.sum(),
            np.maximum(z, 1), z.max(), z.T, np.transpose(z), z.round(), np.round(z), z.item(),
            z.tolist(),
            np.add.reduce(x), np.max(z), np.interp(0.5, np.arange(3.0), x), np.polyval(x, 2.0),
            np.ones_like(z),
        ]  # fmt: skip

    check(f, np.arange(3.0))


def test_scalar_arithmetic_in_a_loop_stays_a_scalar():
    def f(x):
        s = 0
        t = np.float32(0)
        n = np.int8(0)
        for i in range(len(x)):
            s += x[i] * 2
            t += x[i].astype(np.float32) if hasattr(x[i], "astype") else 0
            n += np.int8(i)
        s -= 1
        s **= 2
        return s, t, n, s + t, n * 2.0

    check(f, data(12))


def test_scalar_in_place_does_not_change_what_it_came_from():
    def f(x):
        s = x[0]
        s += 10
        t = x.sum()
        u = t
        t *= 2
        return s, t, u, x

    check(f, data(3))


def test_a_zero_dimensional_array_is_changed_in_place():
    def f(x):
        z = np.array(1.0)
        w = z
        z += x.sum()
        z[...] *= 2
        return z, w, z is w

    check(f, data(3))


NUMBERS = [
    2,
    2.5,
    True,
    1j,
    np.int8(3),
    np.float32(1.5),
    np.float64(2.5),
    np.uint8(200),
    np.bool_(True),
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: f"{type(n).__name__}")
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c8"])
def test_promotion_with_scalars(dtype, number):
    def f(x, s):
        return x + s, s * x, x * s + s, np.maximum(x, s) if x.dtype.kind != "c" else x, x[0] + s

    check(f, data(4, dtype=dtype), number)


def test_python_floats_never_compile_anew():
    fast, counter = compiled(lambda x, a, b: np.sin(x * a) + b / (x + a))
    for k in range(10):
        a, b = 0.5 * k + 0.25, 1.0 / (k + 1)
        x = data(4) + 9
        np.testing.assert_allclose(fast(x, a, b), np.sin(x * a) + b / (x + a))
    assert counter.count == 1


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, 2.0, np.inf, -np.inf, np.nan, 1e-320, 1e300])
def test_special_floats(value):
    check(lambda x, s: (x * s, x + s, np.copysign(x, s), np.minimum(x, s)), data(4), value)


def test_numpy_scalars_as_parameters_do_not_compile_anew():
    fast, counter = compiled(lambda x, s: x * s + 1)
    for k in range(6):
        np.testing.assert_array_equal(fast(np.ones(3, "f4"), np.float32(k)), [k + 1.0] * 3)
    assert counter.count <= 2


def test_changing_ints_compile_a_bounded_number_of_times():
    def f(x, n):
        return x * n + (n - 1)

    fast, counter = compiled(f)
    for n in range(12):
        np.testing.assert_array_equal(fast(np.arange(4), n), f(np.arange(4), n))
        np.testing.assert_array_equal(fast(np.arange(4.0), n), f(np.arange(4.0), n))
    assert counter.count <= 4


def test_dynamic_true_makes_ints_data_at_once():
    fast, counter = compiled(lambda x, n: x * n + x[n], dynamic=True)
    for n in range(5):
        np.testing.assert_array_equal(fast(np.arange(6.0), n), np.arange(6.0) * n + n)
    assert counter.count == 1


def test_exponents_change_the_kernel_but_not_the_value():
    def f(x, p):
        return x**p, p**x, x ** float(p), np.power(x, p)

    for p in (0, 1, 2, 3, 0.5, 2.0, 5):
        check(f, abs(data(4)) + 0.5, p)


def test_integers_to_a_negative_power_raise():
    check(lambda x, p: x**p, np.arange(3), -1)
    check(lambda x, p: x**p, np.arange(1.0, 3), -1)


def test_numbers_out_of_range_of_the_dtype():
    for dtype in ("u1", "i1", "u2", "i4", "u8"):
        for number in (300, -1, 2**31, 2**40, 2**63, 2**64, -(2**63)):
            check(lambda x, n: x + n, np.arange(3).astype(dtype), number)
    check(lambda x: x > 300, np.arange(3, dtype=np.uint8))
    check(lambda x: (x == -1, x < 2**70), np.arange(3, dtype=np.uint8))


def test_out_of_range_after_a_value_in_range():
    fast, _ = compiled(lambda x, n: x + n)
    x = np.arange(3, dtype=np.uint8)
    assert fast(x, 5).tolist() == [5, 6, 7]
    assert fast(x, 6).tolist() == [6, 7, 8]
    with pytest.raises(OverflowError, match="300 out of bounds for uint8"):
        fast(x, 300)
    assert fast(x, 250).tolist() == [250, 251, 252]


def test_assigning_numbers_out_of_range():
    def f(x, n):
        x[0] = 1
        x[1] = n

    for n in (5, 300, -1):
        check(f, np.zeros(3, np.uint8), n)


def test_integer_overflow_wraps():
    def f(x):
        return x + x, x * x, x.sum(), x.sum(dtype=x.dtype), x.cumsum(dtype=x.dtype), x << 1, -x

    for dtype in ("i1", "u1", "i2", "i4", "u4", "i8"):
        top = np.iinfo(dtype).max
        check(f, np.array([top, top - 1, 3], dtype))


def test_python_conversions():
    def f(x, n):
        return (
            float(x[0]), int(x[1] * 10), bool(x[0] > 0), complex(x[2]), list(range(n[1])), [10,
            20, 30][n[1]],
            "ab" * n[1], round(x[0]), round(x[0], 1), x[0].item(), hash(n[0]) == hash(int(n[0])),
            int(n.sum()), float(n.mean()), x[n[1]], x[: n[1]], np.zeros(n[1]), x.reshape(n[1], -1),
            {n[0]: "a"}[1], str(n[0]), f"{n[0]:03d}", x[0].is_integer(), divmod(n[2], n[1]),
            n[2] % n[1],
        )  # fmt: skip

    check(f, np.array([1.25, -2.5, 3.75, 0.5]), np.array([1, 2, 5]), new=False)


def test_round_of_a_numpy_scalar_is_numpys():
    def f(x):
        return (
            round(np.floor(x[0])),
            round(x[1], 1),
            round(x.sum()),
            np.round(x[0]),
            type(round(x[0])),
        )

    check(f, np.array([3.1, 2.26]))


def test_comparisons_of_scalars_give_numpy_bools():
    def f(x):
        a = x[0] > 0
        return a, not a, a and True, type(a), a is np.True_, x[0] == x[0], x.sum() < 1

    check(f, data(3))


def test_isinstance_of_scalars():
    def f(x, n):
        s, k = x.sum(), n.sum()
        return [
            isinstance(s, t) for t in (float, int, np.float64, np.number, np.generic, np.ndarray)
        ] + [isinstance(k, t) for t in (float, int, np.int64, np.integer, np.generic)]

    e = np_compile.explain(np_compile.compile(f, backend="eager"))(data(3), np.arange(3))
    assert e.breaks == []
    check(f, data(3), np.arange(3))


def test_python_ints_that_come_from_shapes():
    def f(x):
        n, m = x.shape
        return x / n + m, np.zeros((m, n)), np.arange(n * m).reshape(m, n), x.size * 2, len(x) / 2

    check(f, data(3, 4))


def test_complex_numbers():
    def f(x, z):
        return (
            x * z,
            (x + 1j).real,
            np.abs(x * z),
            np.exp(1j * x),
            z.conjugate(),
            (x * z).conj().imag,
        )

    check(f, data(3), 2 + 3j)
    check(f, data(3, dtype=np.complex64), 1j)


@pytest.mark.parametrize(
    "function",
    [
        lambda c, m: c + m,
        lambda c, m: c - m,
        lambda c, m: (m * c, c * m),
        lambda c, m: (m / c, c / m),
        lambda c, m: c**m,
    ],
)
def test_complex_numbers_left_of_float64_scalars_are_pythons(function):
    """Python computes with such a scalar as with a float: 0 is no divisor then."""

    def f(x, c):
        return function(c, (x * 2).sum())

    for dtype in ("f8", "f4", "c16"):
        check(f, np.array([1, 0.5]).astype(dtype), 2 + 1j)
        check(f, np.array([1, -1]).astype(dtype), 0j)
    with np_compile.config.patch(plain="always"):
        check(f, np.array([1, -1.0]), 1j)


def test_python_ints_beyond_the_dtype_of_a_numpy_scalar():
    """A bool array leaves the dtype to the scalar."""

    def f(x, n, out):
        try:
            np.clip(x, 150, n, out=out)
        except OverflowError as e:
            return str(e)
        return out

    for dtype in ("i1", "u1", "i2"):
        check(f, np.array([True, False]), np.dtype(dtype).type(3), np.zeros(2, "i2"))


def test_divisions_by_zero():
    def f(x, z):
        return x / z, x // z, x % z, np.remainder(x, z), np.fmod(x, z), np.sign(x / z)

    check(f, np.array([1, -2, 0]), np.array([0, 0, 0]), new=False)
    check(f, np.array([1.0, -2, 0, np.nan]), np.array([0.0, -0.0, 0, 0]), new=False)


def test_none_of_the_scalars_stays_a_stand_in():
    fast, _ = compiled(lambda x: [x.sum(), {"a": x[0]}, (x.max(),), x.mean() * 2])
    a, b, c, d = fast(data(3))
    for s in (a, b["a"], c[0], d):
        assert type(s) is np.float64
        assert s.__class__ is np.float64


def test_a_nan_among_the_arguments_compiles_once():
    fast, counter = compiled(lambda x: np.pad(x, 1, constant_values=float("nan")))
    for _ in range(4):
        assert np.isnan(fast(np.zeros(2))).sum() == 2
    assert counter.count == 1


@pytest.mark.parametrize("n", [-(2**70), 2**70, -(2**63), -(2**63) - 1, 2**63, 2**64])
def test_integers_that_no_dtype_holds(n):
    check(lambda x: x * n, data(3))
    check(lambda x: x + n, data(3, dtype=int))
    check(lambda x: (x > n, x != n), data(3, dtype=int))


WRITES_TO_SCALARS = [
    lambda x, s: np.add(x[0], 1, out=s), lambda x, s: np.copyto(s, 2.0), lambda x, s: s.fill(3),
    lambda x, s: np.put(s, 0, 1.0), lambda x, s: np.add.at(s, (), 1), lambda x, s: s.sort(),
    lambda x, s: x.sum(out=s), lambda x, s: np.place(s, s > -99, 1.0), lambda x, s: s.sort(axis=0),
]  # fmt: skip


@pytest.mark.parametrize("write", WRITES_TO_SCALARS)
def test_scalars_are_not_written_to(write):
    def f(x):
        s = x.sum()
        kept = s
        try:
            write(x, s)
        except Exception as e:
            return kept, s * 2, type(e)
        return kept, s * 2

    def element(x):
        s = x.sum()
        s[...] = 2

    check(f, data(3))
    check(element, data(3))


@pytest.mark.parametrize("dtypes", [("i8", "i8"), ("i4", "i1"), ("u1", "i8"), ("?", "i2")])
@pytest.mark.parametrize(
    "statement",
    ["return x ** y", "x **= y", "np.power(x, y, out=x)", "return 2 ** y",
     "return np.power.outer(x, y)", "return np.power.accumulate(y)", "return x ** y[1]",
     "x **= y.min()", "return x.max() ** y.min()"],
)  # fmt: skip
def test_a_negative_exponent_raises_wherever_it_is(statement, dtypes):
    scope = {"np": np}
    exec(f"def f(x, y):\n    {statement}\n    return x", scope)
    x = np.array([2, 2, 3]).astype(dtypes[0])
    check(scope["f"], x, np.array([1, 2, 2]).astype(dtypes[1]))
    negative = np.array([1, -1, 2]).astype(dtypes[1])
    with pytest.raises((ValueError, TypeError)) as want:
        scope["f"](x.copy(), negative)
    with pytest.raises((ValueError, TypeError)) as got:
        compiled(scope["f"])[0](x.copy(), negative)
    assert (got.type, str(got.value)) == (want.type, str(want.value))


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "c16"])
@pytest.mark.parametrize("exponent", [2, 2.0, -1, -1.0, 1.0, 0.5, 0, 3, -2, 1.5, np.float64(0.5)])
def test_powers_of_special_numbers(exponent, dtype):
    x = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2.5]).astype(dtype)
    if dtype == "c16":
        x = x[2:3] if exponent in (1.5, -2) else x - np.array([0, 1j, 0, 1j, 0, 1j, 0, 1j])

    def f(x, n):
        powers = [x**n, np.power(x, n)]
        x **= n
        signs = [np.signbit(p.real) & ~np.isnan(p.real) for p in (*powers, x)]
        return powers, x, signs, [np.signbit(p.imag) & ~np.isnan(p.imag) for p in (*powers, x)]

    check(f, x, exponent)


def test_divmod_has_two_results_each_time():
    def f(x, y):
        a, b = np.divmod(x, y)
        c, d = np.divmod(x, y)
        e, g = divmod(x, 2.5)
        h, i = np.divmod(7, y)
        return a + c, b - d, e, g, h, i, np.modf(x), np.frexp(x)

    check(f, data(5), np.arange(1.0, 6))
    check(lambda x: [np.divmod(x, k) for k in range(1, 4)], data(5, dtype="i8"))


def test_in_place_matrix_products_refuse_vectors():
    def f(a, b):
        a @= b
        return a

    for b in (np.ones(3), np.ones((3, 3)), np.ones((3, 2)), np.ones((2, 3, 3)), np.float64(2)):
        check(f, np.eye(3), b)
        check(f, np.ones(3), b)
    check(f, np.ones((2, 3, 3)), np.eye(3))
    check(f, np.eye(3, dtype=int), np.eye(3))


@pytest.mark.parametrize("function", [
    lambda x, z: np.nan_to_num(x, nan=z), lambda x, z: np.pad(x, 1, constant_values=z),
    lambda x, z: np.full(2, z), lambda x, z: np.diff(x, prepend=z),
    lambda x, z: np.where(x > 0, x, z), lambda x, z: np.full_like(x, z),
    lambda x, z: np.nansum(x, initial=z), lambda x, z: np.linspace(z, -1.0, 3),
    lambda x, z: np.interp([-9.0], [0.0, 1.0], [1.0, 2.0], left=z),
])  # fmt: skip
def test_zeros_of_either_sign_are_different_arguments(function):
    fast, _ = compiled(function)
    x = np.array([np.nan, 1.0])
    for z in (0.0, -0.0, 0.0):
        got, want = fast(x, z), function(x, z)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning")
@pytest.mark.parametrize(
    ("kind", "given"),
    [(np.timedelta64, (5,)), (np.timedelta64, (1, "h")), (np.timedelta64, (60, "m")),
     (np.timedelta64, ("NaT",)), (np.datetime64, ("2001-01",)), (np.datetime64, ("NaT",))],
)  # fmt: skip
def test_dates_and_spans_as_arguments(kind, given):
    given = kind(*given)

    def f(x, d):
        spans = np.full(3, d)
        return spans, np.arange(3).astype("m8[s]") + (d - d), x * 2, (x + 1).sum()

    check(f, np.arange(3.0), given)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "?"])
@pytest.mark.parametrize("whole", [math.floor, math.ceil, math.trunc, round, int])
def test_whole_numbers_of_python(whole, dtype):
    check(lambda x: (whole(x.sum() + 1), whole((x * 1.5)[1])), np.arange(3).astype(dtype))
    check(lambda x: whole(x[1:2] * 1), np.arange(3).astype(dtype))


@pytest.mark.parametrize("digits", [(), (1,), (None,)])
def test_arrays_are_not_rounded_by_python(digits):
    def f(x):
        return round((x + 1)[0], *digits), round(x * 2, *digits)

    assert isinstance(check(f, data(3)).first.error, TypeError)
    check(lambda x: (round(x[1] * 3, *digits), round(x.sum(), *digits)), data(3))


@pytest.mark.parametrize("dtype", ["i8", "f8", "c16"])
def test_parts_of_scalars_are_not_set(dtype):
    def f(x):
        told = []
        for s in (x.sum(), x[0], x.max() * 2):
            for part in ("real", "imag"):
                try:
                    setattr(s, part, 1.5)
                except AttributeError as e:
                    told.append(str(e))
        return told

    check(f, data(5, dtype=dtype))


@pytest.mark.parametrize("dtype", ["i4", "f8", "c16"])
@pytest.mark.parametrize("plain", ["auto", "never"])
def test_parts_of_scalars(dtype, plain):
    def f(x):
        return (
            np.imag(x[1]),
            np.real(x[1]),
            np.imag(x.sum()),
            x.sum().imag,
            x[1].imag,
            np.imag(x)[0],
        )

    check(f, data(5, dtype=dtype), plain=plain)


@pytest.mark.parametrize("b", [2, 2.0, np.float32(2)])
def test_tolerances_are_pythons_numbers(b):
    """Weak in promotion, with what they are multiplied with: 1 - 2**-39 is 1 as float32."""

    def f(x, b, rtol):
        return np.isclose(x * 1, b, rtol=rtol, atol=0)

    check(f, np.array([1.0, 0.0], "f4"), b, 0.5 - 2.0**-40)


@pytest.mark.parametrize("masks", [(1, 0, 2, 0, True, False), (0.5, 0.0, -0.0, 2.0, 1j, 0j)])
def test_a_number_as_the_mask_of_a_reduction_is_its_truth(masks):
    def f(x, mask):
        return np.sum(x, where=mask), np.max(x, where=mask, initial=-1), x.any(where=mask)

    for dynamic in (None, True):
        fast = compiled(f, dynamic=dynamic)[0]
        for mask in masks:
            assert repr(fast(data(4), mask)) == repr(f(data(4), mask)), mask


def test_scalars_have_no_product_of_matrices():
    """NumPy's functions and arrays say another thing of them than Python says."""

    class Own:
        def __rmatmul__(self, other):
            return other * 2

    def f(x):
        s, found = x.sum(), [x.sum() @ Own()]
        for other in (s, x[0], 2, [1.0], x, np.array(2.0)):
            for pair in ((s, other), (other, s)):
                try:
                    found.append(pair[0] @ pair[1])
                except (TypeError, ValueError) as e:
                    found.append((type(e).__name__, str(e)))
        return found

    check(f, data(4))
