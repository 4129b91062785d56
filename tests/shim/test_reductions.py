"""Reductions against NumPy: every function, dtype, layout, option and error."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .support import ALL, COMPLEX, FLOATS, INTEGERS, assert_matches, shim, to_shim, torch


def data(dtype: str, shape: tuple[int, ...], nan: bool = False, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    d = np.dtype(dtype)
    a = rng.integers(0 if d.kind in "ub" else -9, 10, shape) / (1 if d.kind in "iub" else 4)
    if d.kind == "c":
        a = a + 1j * rng.integers(-3, 4, shape)
    if d.kind == "b":
        a = a > 6
    a = np.asarray(a).astype(d)
    if nan and d.kind in "fc":
        a = np.where(rng.random(shape) < 0.3, np.nan, a).astype(d)
    return a


def layouts(dtype: str, nan: bool = False) -> list[np.ndarray]:
    a = data(dtype, (4, 5, 3), nan)
    return [a, a[::-1, ::2], a.T, a[:, :1], data(dtype, (), nan), data(dtype, (1,), nan)]


SIMPLE = ("sum", "prod", "max", "amax", "min", "any", "all", "mean", "var", "std", "count_nonzero")
ARGS = ("argmax", "argmin")
NANS = (
    *("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"),
    *("median", "nanmedian"),
)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", SIMPLE)
def test_reduction(name: str, dtype: str) -> None:
    first, *others = layouts(dtype)
    for a in (first, *others):
        axes = [None, -1] + ([0, (0, 2), (-1, 1), ()] if a is first else [])
        for axis in axes:
            assert_matches(name, a, axis=axis)
        assert_matches(name, a, keepdims=True)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ARGS)
def test_position(name: str, dtype: str) -> None:
    for a in layouts(dtype, True):
        for axis in (None, 0, -1):
            assert_matches(name, a, axis=axis, keepdims=axis == 0)


@pytest.mark.parametrize("dtype", "?bBHLefdFD")
@pytest.mark.parametrize("name", NANS)
def test_nan_reduction(name: str, dtype: str) -> None:
    for a in layouts(dtype, True):
        for axis in (None, 0, -1) + (((0, 2),) if a.ndim == 3 else ()):
            assert_matches(name, a, axis=axis)
    assert_matches(name, data(dtype, (4, 3)), axis=0, keepdims=True)


@pytest.mark.parametrize("dtype", "bHfD")
@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_nan_position(name: str, dtype: str) -> None:
    if dtype == "D":
        return
    for nan in (False, True):
        a = data(dtype, (6, 5), nan)
        assert_matches(name, a)
        assert_matches(name, a, axis=0)
        assert_matches(name, a, axis=1, keepdims=True)
    assert_matches(name, np.array([[np.nan, np.nan], [1, 2]]), axis=1, meta=False)
    assert_matches(name, np.array([]), meta=False)


OPTIONS = [
    ("sum", {"dtype": "f4"}),
    ("sum", {"dtype": np.int8, "axis": 1}),
    ("sum", {"initial": 5}),
    ("sum", {"where": np.array([True, False, True]), "axis": 0}),
    ("sum", {"where": np.array([[True, False, True]]), "initial": 2.5}),
    ("prod", {"where": np.array([True, False, True]), "axis": 1, "initial": 3}),
    ("max", {"initial": 100}),
    ("max", {"initial": -100, "where": np.array([True, False, False])}),
    ("max", {"where": np.array([True, False, False])}),
    ("min", {"initial": -100, "axis": 1, "keepdims": True}),
    ("any", {"where": np.array([True, False, False]), "axis": 0}),
    ("all", {"where": np.array([True, False, False]), "axis": 0, "keepdims": True}),
    ("mean", {"dtype": "f4", "axis": 1}),
    ("mean", {"dtype": "i4", "axis": 1}),
    ("mean", {"where": np.array([True, False, True])}),
    ("mean", {"where": np.array([True, False, True]), "axis": 0}),
    ("var", {"ddof": 1, "axis": 0}),
    ("var", {"correction": 1, "axis": 0}),
    ("var", {"correction": 1, "ddof": 1}),
    ("var", {"dtype": "f4"}),
    ("var", {"where": np.array([True, False, True]), "axis": 1}),
    ("var", {"mean": np.array([[1.0], [2.0]]), "axis": 1, "keepdims": True}),
    ("std", {"ddof": 5, "axis": 0}),
    ("std", {"dtype": "i4", "axis": 0}),
    ("nansum", {"where": np.array([True, False, True])}),
    ("nanmax", {"where": np.array([True, False, True]), "initial": -50}),
    ("nanmax", {"initial": 50, "axis": 1}),
    ("nanmean", {"where": np.array([True, False, True]), "axis": 1}),
    ("nanmean", {"dtype": int}),
    ("nanvar", {"ddof": 1, "axis": 1}),
    ("nanvar", {"where": np.array([True, False, True]), "axis": 1}),
    ("nanstd", {"correction": 1, "axis": 1, "keepdims": True}),
    ("sum", {"axis": 5}),
    ("sum", {"axis": (0, 0)}),
    ("mean", {"axis": 2}),
    ("argmax", {"axis": 2}),
    ("median", {"axis": 2}),
    ("sum", {"where": None}),
    ("median", {"axis": (0, 1), "keepdims": True}),
    ("median", {"axis": (0, 0)}),
]


@pytest.mark.parametrize("dtype", "ifdD")
@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_options(name: str, options: dict, dtype: str) -> None:
    if dtype == "D" and (options.get("dtype") or name in ("max", "min", "nanmax")):
        return
    a = data(dtype, (2, 3), nan=name.startswith("nan"))
    assert_matches(name, a, **options)


@pytest.mark.parametrize("name", [*SIMPLE, *ARGS, *NANS, "ptp", "average"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_empty(name: str, shape: tuple, axis: int | None) -> None:
    if name == "average" and axis is None:
        return  # divides by zero in Python
    assert_matches(name, np.zeros(shape), axis=axis)
    assert_matches(name, np.zeros(shape, "H"), axis=axis)


def test_warnings() -> None:
    with np.errstate(invalid="ignore"), pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        shim.mean(np.array([]))
    with pytest.warns(RuntimeWarning, match="Mean of|encountered in scalar divide") as seen:
        shim.mean(np.array([]))
    assert len(seen) == 2
    with pytest.warns(RuntimeWarning, match="All-NaN slice encountered") as seen:
        shim.nanmedian(np.full((2, 3), np.nan), axis=0)
    assert len(seen) == 3
    with pytest.warns(RuntimeWarning, match="Degrees of freedom <= 0 for slice"):
        shim.var(np.array([1.0]), ddof=1)
    with pytest.warns(RuntimeWarning, match="All-NaN slice encountered"):
        shim.nanmax(np.array([np.nan]))


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS + COMPLEX + "?")
def test_ptp(dtype: str) -> None:
    for a in layouts(dtype):
        assert_matches("ptp", a)
        assert_matches("ptp", a, axis=0)
        assert_matches("ptp", a, axis=-1, keepdims=True)


AVERAGES = [
    {},
    {"axis": 0},
    {"axis": 1, "weights": np.array([1, 2, 3])},
    {"axis": 1, "weights": np.array([1.0, 2, 3], "f"), "returned": True},
    {"axis": (0, 1), "weights": np.arange(6.0).reshape(2, 3)},
    {"axis": (1, 0), "weights": np.arange(6.0).reshape(3, 2), "returned": True},
    {"weights": np.arange(6).reshape(2, 3), "keepdims": True},
    {"returned": True},
    {"axis": 0, "returned": True, "keepdims": True},
    {"weights": np.array([1, 2])},
    {"axis": 1, "weights": np.array([1, 2])},
    {"axis": 1, "weights": np.zeros(3)},
    {"axis": 4},
]


@pytest.mark.parametrize("options", AVERAGES)
@pytest.mark.parametrize("dtype", "?bifdD")
def test_average(options: dict, dtype: str) -> None:
    zero = not np.any(options.get("weights", 1))
    assert_matches("average", data(dtype, (2, 3)), meta=not zero, **options)


METHODS = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation"),
    *("interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased"),
    *("normal_unbiased", "lower", "higher", "midpoint", "nearest"),
)
SHARES = [
    0.3,
    0.5,
    1.0,
    0,
    1,
    [0.1, 0.9],
    np.float32(0.25),
    np.array([[0.0, 0.5], [0.75, 1.0]]),
    [0, 1],
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", "bHfd")
def test_quantile(method: str, dtype: str) -> None:
    a = data(dtype, (5, 4))
    for q in SHARES:
        assert_matches("quantile", a, q, axis=0, method=method)
        assert_matches("nanquantile", data(dtype, (5, 4), True), q, axis=1, method=method)
    assert_matches("percentile", a, 30, axis=1, keepdims=True, method=method)
    assert_matches("nanpercentile", a, [30.0, 50], axis=(0, 1), keepdims=True, method=method)
    assert_matches("quantile", data(dtype, (5, 4), True), 0.4, axis=0, method=method)


def test_quantile_errors() -> None:
    a = np.arange(4.0)
    assert_matches("percentile", a, 150, meta=False)
    assert_matches("quantile", a, [0.5, -1], meta=False)
    assert_matches("quantile", a, 0.5, method="none", meta=False)
    assert_matches("quantile", a + 0j, 0.5, meta=False)
    assert_matches("quantile", a > 1, 0.5, meta=False)
    assert_matches("quantile", a, 0.5, axis=3, meta=False)
    assert_matches("quantile", a, np.full((1, 1, 1), 0.5), meta=False)
    assert_matches("quantile", np.array([]), 0.5, meta=False)
    with pytest.raises(shim.NotSupported):
        shim.quantile(a, 0.5, weights=a)


def test_out() -> None:
    a = np.arange(6.0).reshape(2, 3)
    out = shim.from_numpy(np.zeros(3))
    assert shim.sum(a, axis=0, out=out) is out
    np.testing.assert_array_equal(shim.to_numpy(out), a.sum(0))
    assert shim.var(a, 0, None, out, 1) is out
    np.testing.assert_allclose(shim.to_numpy(out), a.var(0, ddof=1))


def test_gradients() -> None:
    x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)

    def total(f):
        return lambda t: f(shim.from_tensor(t))._t

    functions = [
        shim.mean,
        shim.std,
        lambda a: shim.median(a, axis=0),
        lambda a: shim.quantile(a, 0.3, axis=1),
        lambda a: shim.nanmax(a, axis=0),
        lambda a: shim.average(a, axis=0, weights=np.array([1.0, 2, 3])),
    ]
    for f in functions:
        assert torch.autograd.gradcheck(total(f), x)


def test_pairwise_accuracy() -> None:
    a = np.full(1_000_000, 0.1, "f")
    assert abs(float(shim.to_numpy(shim.sum(a))) - float(a.sum(dtype="d"))) < 0.1


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(("sum", "max", "mean", "std", "argmax", "median", "nanmean", "count_nonzero")),
    st.sampled_from("?bHLefdF"),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.data(),
)
def test_property(name: str, dtype: str, shape: list[int], draw: st.DataObject) -> None:
    a = data(dtype, tuple(shape), nan=True, seed=draw.draw(st.integers(0, 99)))
    axis = draw.draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    for d in range(a.ndim):
        if draw.draw(st.booleans()):
            a = np.flip(a, d)
    assert_matches(name, a, axis=axis, keepdims=draw.draw(st.booleans()))


def test_methods() -> None:
    a = data("d", (3, 4))
    x = to_shim(a)
    with warnings.catch_warnings():
        for name in ("sum", "prod", "max", "min", "any", "all", "mean", "std", "var", "argmax"):
            got = shim.to_numpy(getattr(x, name)(axis=1))
            np.testing.assert_allclose(got, getattr(a, name)(axis=1), rtol=1e-12)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_are_not_stored_into_floats(name):
    a = np.array([1.0, 3.0, 2.0])
    assert_matches(lambda m: getattr(m, name)(a if m is np else to_shim(a), out=m.zeros(())))
    out = shim.zeros((), dtype=np.int32)
    assert getattr(shim, name)(to_shim(a), out=out) is out
    assert int(out) == getattr(np, name)(a)


SUMS = ("sum", "prod", "mean", "cumsum", "cumprod", "nansum", "nanmean", "var", "std", "nanvar")


@pytest.mark.parametrize("name", [*SUMS, "nanstd", "cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("dtype", ["?", "b", "u1", "i", "l", "e", "f", "d", "D"])
def test_sums_into_an_array_of_another_dtype(name, dtype):
    """They are made in the dtype of `out`, where that is the wider one."""
    values = np.array([[100, 3, 0], [1, 90, 2.25]]).astype(dtype)

    def made(m, stored):
        x = to_shim(values) if m is shim else values
        out = m.zeros((2, 3) if name.startswith("cum") else 2, dtype=stored)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(m, name)(x, axis=1, out=out)
        return np.asarray(out)

    divides = name.endswith(("mean", "var", "std"))
    wide = np.result_type(dtype, "d") if divides else np.dtype(dtype)
    for stored in ("b", "i", "l", "f", "d", "D"):
        if np.can_cast(wide, stored, "same_kind"):  # NumPy is asked for others
            rtol = 1e-12 if stored in "dD" else 1e-6
            np.testing.assert_allclose(made(shim, stored), made(np, stored), rtol=rtol)


@pytest.mark.parametrize("name", ["nanvar", "nanstd", "var", "std"])
def test_differences_from_the_mean_are_of_the_dtype_that_numpy_has(name):
    a = np.linspace(0, 1.7, 24, dtype="f4").reshape(4, 6)
    assert_matches(name, a, axis=1, dtype="d", rtol=1e-14)
    assert_matches(name, a, axis=1, dtype="d", mean=np.full((4, 1), 0.3), rtol=1e-14)


@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "nanprod", "mean"])
@pytest.mark.parametrize("dtype", [None, complex])
def test_no_axes_begins_with_the_identity(name, dtype):
    for x in (np.array([-0.0, np.inf, 2]), np.array([complex(np.inf, 0), complex(0, -np.inf)])):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x, axis=(), dtype=dtype)
            got = np.asarray(getattr(shim, name)(to_shim(x), axis=(), dtype=dtype))
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
        assert (np.signbit(got.real) == np.signbit(expected.real)).all()


@pytest.mark.parametrize("name", ["median", "nanmedian", "quantile", "nanquantile"])
@pytest.mark.parametrize("a", [np.array(3), np.zeros((0, 2, 3)), np.zeros((2, 0), int)])
def test_order_statistics_without_elements_or_axes(name, a):
    for q in (0.5, [0.2, 0.5]) if "quantile" in name else (None,):
        for axis in (None, (), 0, (0, 1), (1, 2)):
            for keepdims in (False, True):
                given = () if q is None else (q,)
                assert_matches(name, a, *given, axis=axis, keepdims=keepdims, meta=False)


@pytest.mark.parametrize("dtype", ["c16", "f8", "i8", "u1", "?"])
def test_results_share_no_memory(dtype: str) -> None:
    """Also along axes of one element, where a result has the elements of its argument."""
    ufuncs = [np.minimum, np.fmax, np.add, np.gcd, np.bitwise_or, np.logaddexp, np.subtract]
    for f in ufuncs:
        for options in ({"axis": 1}, {"axis": 1, "keepdims": True}, {"axis": ()}):
            x = np.array([[3], [0], [1]]).astype(dtype)
            try:
                want = f.reduce(x, **options)
            except (TypeError, ValueError):
                continue
            given = to_shim(x)
            got = getattr(shim, f.__name__).reduce(given, **options)
            given[...] = 1
            assert got.dtype == want.dtype
            np.testing.assert_allclose(np.asarray(got), want)


@pytest.mark.parametrize("name", ["min", "max", "sum", "prod"])
@pytest.mark.parametrize("dtype", ["i8", "?", "u1"])
@pytest.mark.parametrize("axis", [(), 0, None])
def test_a_start_has_the_dtype_of_out(name, dtype, axis):
    x = (np.arange(6).reshape(2, 3) + 1).astype(dtype)
    shape = np.min(x, axis=axis).shape
    want = getattr(np, name)(x, axis=axis, initial=0.5, out=np.zeros(shape))
    got = getattr(shim, name)(shim.asarray(x), axis=axis, initial=0.5, out=shim.zeros(shape))
    np.testing.assert_array_equal(np.asarray(got), want)
