"""Running sums, differences, gradients and the trapezoidal rule against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .support import ALL, assert_matches, from_shim, shim, to_shim, torch


def data(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, shape)
    if dtype in "efdFD":
        a = a / 4
    if dtype in "FD":
        a = a + 1j * rng.integers(0, 4, shape)
    return np.asarray(a > 1 if dtype == "?" else a).astype(dtype)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_running(name: str, dtype: str) -> None:
    a = data(dtype, (3, 5, 2))
    if name.startswith("nan") and dtype in "efdFD":
        a[0, 1] = np.nan
    for x in (a, a[::-1, ::2], a.T):
        for axis in (None, 0, -1):
            assert_matches(name, x, axis=axis)
    assert_matches(name, data(dtype, ()))
    assert_matches(name, data(dtype, ()), axis=0)
    assert_matches(name, data(dtype, (0, 3)), axis=1)
    if dtype not in "FD":
        assert_matches(name, a, axis=1, dtype="f")


def test_running_products_of_complex_numbers_begin_with_the_first() -> None:
    """One times an infinity is nan in its other part."""
    x = np.array([[np.inf, -np.inf, np.nan, 2.0]])
    for name in ("cumprod", "cumulative_prod"):
        assert_matches(name, x, axis=0, dtype=complex)
        assert_matches(name, x[:0], axis=0, dtype=complex)


CASES: list[tuple[str, tuple, dict[str, Any]]] = [
    ("cumsum", (np.ones((2, 2)),), {"axis": 5}),
    ("cumsum", (np.array([100, 100], "b"),), {"dtype": "b"}),
    ("cumulative_sum", (np.arange(4, dtype="H"),), {}),
    ("cumulative_sum", (np.array(3),), {}),
    ("cumulative_sum", (np.ones((2, 3)),), {}),
    ("cumulative_sum", (np.ones((2, 3)),), {"axis": 1, "include_initial": True}),
    ("cumulative_sum", (np.arange(4, dtype="b"),), {"dtype": "b", "include_initial": True}),
    ("cumulative_prod", (np.arange(4, dtype="I"),), {"include_initial": True}),
    ("cumulative_prod", (np.ones((2, 3), "f"),), {"axis": -1}),
    ("diff", ([True, False, False],), {}),
    ("diff", (np.array([3, 1], "B")[::-1],), {}),
    ("diff", (np.arange(6.0).reshape(2, 3) ** 2,), {"n": 2}),
    ("diff", (np.arange(6.0).reshape(2, 3) ** 2,), {"axis": 0}),
    ("diff", ([1, 2],), {"n": 5}),
    ("diff", ([1, 2],), {"n": -1}),
    ("diff", (3,), {}),
    ("diff", ([1, 2],), {"prepend": 5, "append": [1, 2]}),
    ("diff", (np.ones((2, 3), "f"),), {"prepend": 0, "axis": 0}),
    ("diff", (np.ones((2, 3), "f"),), {"append": np.zeros((2, 1)), "axis": 1}),
    ("diff", (np.ones((2, 3)),), {"append": np.zeros((3, 1)), "axis": 1}),
    ("diff", (np.ones((2, 3)),), {"append": np.zeros(1), "axis": 1}),
    ("diff", (np.array([]),), {}),
    ("diff", (np.ones(3),), {"axis": 1}),
    ("ediff1d", (3,), {}),
    ("ediff1d", ([[1, 2], [4, 9]],), {"to_end": 5, "to_begin": [1, 2]}),
    ("ediff1d", (np.array([1, 2], "b"),), {"to_end": 5.5}),
    ("ediff1d", (np.array([1, 2], "i"), np.array([2**40])), {}),
    ("ediff1d", (np.array([1, 5], "H"),), {}),
    ("trapezoid", ([1, 2, 3],), {}),
    ("trapezoid", ([1, 2, 3], [1, 2]), {}),
    ("trapezoid", (np.array([1, 2, 4], "f"),), {"dx": 0.5}),
    ("trapezoid", (np.arange(6.0).reshape(2, 3), [1, 2, 5]), {}),
    ("trapezoid", (np.arange(6.0).reshape(2, 3), np.arange(6).reshape(2, 3) ** 2), {}),
    ("trapezoid", (np.arange(6.0).reshape(2, 3),), {"axis": 0}),
    ("trapezoid", (np.arange(3) * 1j,), {"dx": 2}),
]


@pytest.mark.parametrize(("name", "args", "options"), CASES)
def test_case(name: str, args: tuple, options: dict) -> None:
    assert_matches(name, *args, **options)


def test_diff_of_order_zero() -> None:
    x = to_shim(np.arange(3))
    assert shim.diff(x, n=0) is x


X = np.array([0.0, 1, 1.5, 4, 6])
GRADIENTS = [
    ((), {}),
    ((2.0,), {}),
    ((2,), {"edge_order": 2}),
    ((X,), {"axis": 0}),
    ((X,), {"axis": 0, "edge_order": 2}),
    ((X[::-1],), {"axis": -1}),
    ((X.astype("f"), 3.0), {"edge_order": 2}),
    ((0.5, X), {}),
    ((np.float32(0.5), X.astype(int) * 3), {"axis": (1, 0)}),
    ((), {"axis": (0,)}),
    ((1, 2, 3), {}),
    ((X[:3],), {"axis": 0}),
    ((np.ones((2, 2)),), {"axis": 0}),
    ((), {"edge_order": 3}),
    ((), {"axis": 4}),
]


@pytest.mark.parametrize("dtype", "?bHIefdFD")
@pytest.mark.parametrize(("steps", "options"), GRADIENTS)
def test_gradient(steps: tuple, options: dict, dtype: str) -> None:
    a = data(dtype, (5, 5))
    if dtype == "?" and any(isinstance(s, np.ndarray) and s.ndim for s in steps):
        return
    rtol = 1e-2 if dtype == "e" else None
    assert_matches("gradient", a, *steps, rtol=rtol, **options)


def test_gradient_too_small() -> None:
    assert_matches("gradient", [1])
    assert_matches("gradient", [1, 2], edge_order=2)
    assert_matches("gradient", np.ones((3, 1)))


def test_autograd() -> None:
    x = torch.rand(4, 5, dtype=torch.float64, requires_grad=True)
    functions = [
        lambda a: shim.cumsum(a, axis=1),
        lambda a: shim.cumprod(a, axis=0),
        lambda a: shim.diff(a, axis=1, prepend=0.0),
        lambda a: shim.gradient(a, np.array([0.0, 1, 3, 4]), axis=0),
        lambda a: shim.trapezoid(a, dx=0.5),
    ]
    for f in functions:
        assert torch.autograd.gradcheck(lambda t, f=f: f(shim.from_tensor(t))._t, x)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(("cumsum", "diff", "gradient", "nancumsum", "trapezoid")),
    st.sampled_from("bHLifdF"),
    st.lists(st.integers(2, 4), min_size=1, max_size=3),
    st.integers(0, 99),
    st.data(),
)
def test_property(name: str, dtype: str, shape: list[int], seed: int, draw: Any) -> None:
    a = data(dtype, tuple(shape), seed)
    axis = draw.draw(st.integers(-a.ndim, a.ndim - 1))
    if draw.draw(st.booleans()):
        a = a[::-1]
    assert_matches(name, a, axis=axis)


@pytest.mark.parametrize(
    "values", [[-0.0, -0.0], [-0.0, 1.0, -1.0], [0.0, -0.0], [[-0.0, 0.0], [-0.0, -0.0]]]
)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_signs_of_zeros(values, dtype):
    a = np.array(values, dtype)
    if dtype == "c16":
        a = a * complex(1, 0) + np.zeros(1)  # signs of both parts
        a.imag = -0.0
    for axis in range(a.ndim):
        expected, got = np.cumsum(a, axis), from_shim(shim.cumsum(to_shim(a), axis))
        for part in ("real", "imag"):
            np.testing.assert_array_equal(
                np.signbit(getattr(got, part)), np.signbit(getattr(expected, part))
            )
    for initial in (-0.0, 0.0):
        expected, got = np.sum(a, initial=initial), shim.sum(to_shim(a), initial=initial)
        assert (np.signbit(got.real), np.signbit(got.imag)) == (
            np.signbit(expected.real),
            np.signbit(expected.imag),
        )
