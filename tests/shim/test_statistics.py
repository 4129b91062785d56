"""Histograms, counts, covariance, convolution and interpolation against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .support import assert_matches, from_shim, quiet, sample, shim, to_shim, torch

R = np.random.default_rng(0)
A = R.normal(size=40)
EDGES = np.array([-1.0, -0.2, 0.1, 0.7, 2.0])

HISTOGRAMS: list[tuple[tuple, dict[str, Any]]] = [
    ((A,), {}),
    ((A.reshape(5, 8)[::-1],), {"bins": 7}),
    ((A.astype("f"),), {"bins": 5}),
    ((np.round(A * 3).astype("e"),), {"bins": 4}),
    ((np.round(A * 3).astype("i"),), {"bins": 5}),
    ((np.abs(np.round(A * 3)).astype("H"),), {"bins": 5}),
    ((A > 0,), {"bins": 2}),
    ((A,), {"range": (-1, 1)}),
    ((A,), {"range": (-1.5, 1.5), "bins": 3, "density": True}),
    ((A,), {"range": (0.5, 0.5)}),
    ((A,), {"bins": EDGES}),
    ((A,), {"bins": [-1, 0, 1]}),
    ((A,), {"bins": EDGES, "density": True}),
    ((A,), {"bins": EDGES, "weights": np.arange(40)}),
    ((A,), {"bins": 5, "weights": np.arange(40.0)}),
    ((A,), {"bins": 5, "weights": np.arange(40.0, dtype="f"), "density": True}),
    ((A,), {"bins": 5, "weights": np.arange(40) * 1j}),
    (([],), {}),
    ((np.ones(4),), {"bins": 3}),
    (([1, 2, 2, 3, 5],), {"bins": [1, 2, 2, 5]}),
    (([1, np.nan, 2],), {"bins": [0, 1, 3]}),
    (([1, np.nan, 2],), {"range": (0, 3)}),
    ((A,), {"bins": 0}),
    ((A,), {"bins": [1, 2, 1]}),
    ((A,), {"bins": [[1]]}),
    ((A,), {"range": (2, 1)}),
    ((A,), {"range": (np.nan, 1)}),
    (([1, np.nan],), {}),
    ((A,), {"bins": 2.5}),
    ((A,), {"weights": [1, 2, 3]}),
]


@pytest.mark.parametrize(("args", "options"), HISTOGRAMS)
def test_histogram(args: tuple, options: dict) -> None:
    assert_matches("histogram", *args, **options)
    if "density" not in options:
        assert_matches("histogram_bin_edges", *args, **options)


def test_histogram2d() -> None:
    assert_matches("histogram2d", A, A[::-1], bins=4)
    assert_matches("histogram2d", A, A**2, bins=4, range=[[-1, 1], [0, 2]], density=True)
    assert_matches("histogram2d", A, A**2, bins=EDGES, weights=np.arange(40.0))
    with pytest.raises(shim.NotSupported):
        shim.histogram(A, bins="auto")


COUNTS = [
    (([1, 5, 1],), {}),
    (([1, 2],), {"minlength": 5}),
    (([1, 2], [1, 2]), {}),
    (([1, 2], np.array([0.5, 2], "f")), {"minlength": 2}),
    ((np.array([3, 1], "H"),), {}),
    ((np.array([3, 1], "Q"),), {}),
    (([True, False],), {}),
    ((np.array([], int),), {}),
    ((np.array([], int), np.array([])), {"minlength": 2}),
    (([-1],), {}),
    (([1, 2],), {"minlength": -1}),
    (([1, 2],), {"minlength": True}),
    (([1, 2], [1, 2, 3]), {}),
]


@pytest.mark.parametrize(("args", "options"), COUNTS)
def test_bincount(args: tuple, options: dict) -> None:
    assert_matches("bincount", *args, **options, meta=False)


DIGITS = [
    (3, [1, 2]),
    (A, EDGES),
    (A.reshape(8, 5), EDGES[::-1]),
    (np.array([np.nan, 1]), [0, 1, 2]),
    (np.array([1, 2, 3], "B"), np.array([2], "H")),
    ([1, 2], [2, 2]),
    ([1], []),
    ([1j], [1, 2]),
    ([1], [1, 3, 2]),
    ([1], [[1]]),
]


@pytest.mark.parametrize("args", DIGITS)
@pytest.mark.parametrize("right", [False, True])
def test_digitize(args: tuple, right: bool) -> None:
    assert_matches("digitize", *args, right=right)


M = R.normal(size=(3, 6))
COVARIANCES: list[tuple[tuple, dict[str, Any]]] = [
    ((M,), {}),
    ((M[0],), {}),
    ((M, M[:1] ** 2), {}),
    ((M[0], M[1]), {}),
    ((M,), {"rowvar": False}),
    ((M.astype("f"),), {"bias": True}),
    ((M,), {"dtype": "f"}),
    ((M + 1j * M**2,), {}),
    ((M,), {"ddof": 2}),
    ((M,), {"fweights": np.array([1, 2, 1, 3, 1, 1])}),
    ((M,), {"aweights": np.array([1, 2, 1, 3, 1, 0.5])}),
    ((M,), {"fweights": np.array([1, 2, 1, 3, 1, 1]), "aweights": np.arange(1.0, 7), "ddof": 0}),
    (([1],), {}),
    (([[1, 2], [3, 4]],), {"ddof": 5}),
    (([[[1]]],), {}),
    (([1, 2],), {"ddof": 1.5}),
    (([1, 2],), {"fweights": [1.5, 2]}),
    (([1, 2],), {"fweights": [1, -2]}),
    (([1, 2],), {"aweights": [1, -2]}),
    (([1, 2], [1, 2, 3]), {}),
]


@pytest.mark.parametrize(("args", "options"), COVARIANCES)
def test_cov(args: tuple, options: dict) -> None:
    rtol = 1e-5 if options.get("dtype") else 1e-10
    assert_matches("cov", *args, rtol=rtol, **options)


@pytest.mark.parametrize(("args", "options"), COVARIANCES[:7] + COVARIANCES[7:8])
def test_corrcoef(args: tuple, options: dict) -> None:
    options = {k: v for k, v in options.items() if k in ("rowvar", "dtype")}
    assert_matches("corrcoef", *args, rtol=1e-5 if "dtype" in options else 1e-10, **options)


@pytest.mark.parametrize("dtype", "?bBhHiIlLefdFD")
@pytest.mark.parametrize("name", ["correlate", "convolve"])
def test_convolution(name: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    a, v = (rng.integers(0, 5, n).astype(dtype) for n in (7, 4))
    if dtype in "FD":
        a, v = a * (1 + 2j), v * (1 - 1j) + 1j
    a, v = a.astype(dtype), v.astype(dtype)
    for mode in ("full", "same", "valid"):
        for x, y in ((a, v), (v, a), (a[::-1], v), (a[:4], v), (a[:1], v)):
            assert_matches(name, x, y, mode, rtol=1e-3 if dtype == "e" else 1e-5)


CONVOLUTIONS = [
    ("correlate", ([1, 2, 3], [0, 1.5])),
    ("correlate", ([1, 2, 3], [0, 1], 0)),
    ("correlate", ([], [1])),
    ("correlate", ([1], [])),
    ("correlate", ([1], [2], "none")),
    ("correlate", ([1, 2], 2.5)),
    ("correlate", (1, [1, 2])),
    ("convolve", (1, 2)),
    ("convolve", ([1], [])),
    ("convolve", ([[1]], [1])),
    ("convolve", (np.array([1, 2], "f"), np.array([1, 2], "i"))),
]


@pytest.mark.parametrize(("name", "args"), CONVOLUTIONS)
def test_convolution_case(name: str, args: tuple) -> None:
    assert_matches(name, *args)


XP, FP = np.array([0.0, 1, 2.5, 4]), np.array([1.0, 3, -1, 2])
POINTS: list[tuple[tuple, dict[str, Any]]] = [
    ((A, XP, FP), {}),
    ((2.5, XP, FP), {}),
    ((np.array(2.0), XP, FP), {}),
    ((A.reshape(8, 5)[::-1], XP, FP), {"left": -9, "right": 9.5}),
    ((A, XP, FP * 1j + 1), {"left": 1j}),
    ((A * 5, XP[::-1], FP), {"period": 3}),
    ((A * 5, XP, FP * 2j), {"period": -2.5}),
    (([0, 1, 2, 3], [1, 2, 3], [4, 5, 6]), {}),
    ((np.array([0.5, np.nan, np.inf, -np.inf]), XP, FP), {}),
    ((np.array([0.5, 1.0]), XP, np.array([1.0, np.inf, 3, 4])), {}),
    (([1.0, 2.0], [1.0], [5.0]), {}),
    (([0.5, 1.0, 1.5], [0.0, 1.0, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0]), {}),
    ((2.5, [], []), {}),
    ((2.5, [1], [2, 3]), {}),
    ((2.5, [[1]], [[2]]), {}),
    (([2.5], XP, FP), {"period": 0}),
]


@pytest.mark.parametrize(("args", "options"), POINTS)
def test_interp(args: tuple, options: dict) -> None:
    assert_matches("interp", *args, **options)


def test_autograd() -> None:
    x = torch.rand(4, 5, dtype=torch.float64, requires_grad=True)
    functions = [
        lambda a: shim.cov(a),
        lambda a: shim.corrcoef(a),
        lambda a: shim.convolve(a[0], a[1]),
        lambda a: shim.interp(a, XP, FP),
        lambda a: shim.interp(np.array([0.3, 3.0]), XP, a[:, 0]),
    ]
    for f in functions:
        assert torch.autograd.gradcheck(lambda t, f=f: f(shim.from_tensor(t))._t, x)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from("bHLifd"), st.integers(0, 99), st.integers(1, 12), st.integers(1, 6))
def test_property(dtype: str, seed: int, n: int, bins: int) -> None:
    a = np.random.default_rng(seed).integers(0, 9, n).astype(dtype)
    assert_matches("histogram", a[::-1], bins)
    assert_matches("digitize", sample(dtype, (n,), seed), np.sort(a))
    assert_matches("convolve", a, a[: bins % n + 1], "same")


@pytest.mark.parametrize(
    "fp",
    [
        [1 + 1j, np.inf, 2 - 1j],
        [1, complex(1, np.inf), 2 - 1j],
        [complex(np.nan, 1), complex(1, np.inf), 2 - 1j],
        [1j, 1j, complex(-np.inf, 2)],
    ],
)
def test_interp_keeps_infinite_parts_apart(fp):
    x = np.array([-1, 0, 0.5, 1, 1.5, 2, 3, np.nan, np.inf, -np.inf])
    xp, fp = np.array([0.0, 1, 2]), np.array(fp)
    for options in ({}, {"left": np.inf, "right": 1j}, {"period": 2.5}):
        with quiet():
            want = np.interp(x, xp, fp, **options)
            got = from_shim(shim.interp(to_shim(x), to_shim(xp), to_shim(fp), **options))
        for part in ("real", "imag"):
            np.testing.assert_allclose(getattr(got, part), getattr(want, part), rtol=1e-12)


def test_a_quantile_in_the_middle_is_counted_from_above():
    pairs = np.random.default_rng(0).normal(size=(2, 200)) * [[1], [1e-3]]
    for q in (0.5, 0.25):
        for method in ("linear", "hazen"):
            assert_matches("quantile", pairs, q, axis=0, method=method, rtol=0)


@pytest.mark.parametrize("xp", [[np.nan, 1], [0, np.nan], [0, np.nan, 2], [0, 1, 2, 3], [1, 1, 2]])
def test_interp_among_few_points_that_may_be_nan(xp):
    fp = np.arange(len(xp)) * 10.0
    x = np.array([-1, 0, 0.5, 1, 1.5, 2, 2.5, 9, np.nan])
    assert_matches("interp", x, np.array(xp), fp, rtol=1e-15)
    assert_matches("interp", x, np.array(xp), fp * (1 - 2j), rtol=1e-15)


def test_digitize_refuses_complex_bins():
    assert_matches("digitize", np.arange(3.0), np.array([1, 2, 3 + 1j]))
