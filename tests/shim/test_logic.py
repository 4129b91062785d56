"""Tests of values, clip, round, parts of complex numbers and their like against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .support import (
    ALL,
    assert_matches,
    from_shim,
    quiet,
    sample,
    shares_memory,
    shim,
    to_shim,
    torch,
)

nan, inf = np.nan, np.inf
with quiet():
    SINC_LACKS_ZERO = bool(np.isnan(np.sinc(np.float16(0))))


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ["isclose", "allclose", "array_equal", "array_equiv"])
def test_comparison(name: str, dtype: str) -> None:
    a, b = sample(dtype, (3, 5)), sample(dtype, (5,), 1)
    for x, y in ((a, a), (a, b), (a, a.copy()[::-1]), (a[0, 0], a[0, 0]), (a[:0], a[:0])):
        assert_matches(name, x, y, meta=name == "isclose")
        if name != "array_equiv":
            assert_matches(name, x, y, equal_nan=True, meta=name == "isclose")


CLOSE: list[tuple[str, tuple, dict[str, Any]]] = [
    ("isclose", (1, 1), {}),
    ("isclose", (1.0, 1 + 1e-6), {}),
    ("isclose", (np.array(1), 1), {}),
    ("isclose", (np.array([1, 2], "f"), 1), {"rtol": 0.5, "atol": 0}),
    ("isclose", (np.array([1, 2], "B"), np.array([2, 1], "B")), {"atol": 1}),
    ("isclose", (np.array([1, 0], "f"), 2), {"rtol": 0.5 - 2.0**-40, "atol": 0}),
    ("isclose", (np.array([1, 0], "f"), 2.0), {"rtol": 0.5 - 2.0**-40, "atol": 0}),
    ("isclose", ([1, 2], [1, 2, 3]), {}),
    ("isclose", ([1, inf, -inf, nan], [1, inf, inf, nan]), {"equal_nan": True}),
    ("isclose", ([1.0, 2.0], [1.1, 2.1]), {"rtol": np.array([0.2, 0])}),
    ("allclose", ([1e10, 1e-7], [1.00001e10, 1e-8]), {}),
    ("allclose", ([1.0], [1.1]), {"atol": 0.2}),
    ("array_equal", ([1], [1, 2]), {}),
    ("array_equal", ([nan], [nan]), {"equal_nan": True}),
    ("array_equiv", ([1, 1], 1), {}),
    ("array_equiv", ([1, 2], [1, 2, 3]), {}),
]


@pytest.mark.parametrize(("name", "args", "options"), CLOSE)
def test_close(name: str, args: tuple, options: dict) -> None:
    def run(module: Any, *args: Any) -> Any:
        return getattr(module, name)(*args, **options)  # `rtol` is one of them

    assert_matches(run, *args, meta=name == "isclose")


@pytest.mark.parametrize("dtype", ALL)
def test_unary(dtype: str) -> None:
    for a in (sample(dtype, (3, 4)), sample(dtype, (3, 4))[::-1, ::2], sample(dtype, ())):
        for name in ("isposinf", "isneginf", "fix", "nan_to_num", "angle"):
            assert_matches(name, a)
        for name in ("isreal", "iscomplex", "real", "imag"):
            assert_matches(name, a)
        for name in ("isrealobj", "iscomplexobj"):
            assert getattr(shim, name)(to_shim(a)) is getattr(np, name)(a)
        assert_matches("real_if_close", a, meta=False)
        assert_matches("angle", a, deg=True)
        for decimals in (0, 1, 2):
            assert_matches("round", a, decimals)
        assert_matches("around", a)
        small = np.where(np.isfinite(a), a, 0).astype(dtype)
        # some versions of NumPy answer NaN for a zero of float16, the shim never does
        if dtype != "e" or not SINC_LACKS_ZERO:
            assert_matches("sinc", small, rtol=1e-2 if dtype == "e" else 1e-5)
        assert_matches("i0", np.clip(small.real, -5, 5), rtol=1e-2 if dtype == "e" else 1e-5)


@pytest.mark.parametrize("dtype", "hilIQfdD")
def test_round_tens(dtype: str) -> None:
    a = np.array([15, 25, 149, 150, 7, 0]).astype(dtype)
    assert_matches("round", a, -1)
    assert_matches("round", a, -2)


@pytest.mark.parametrize("dtype", ["?", "b", "i", "e", "f", "d", "D"])
@pytest.mark.parametrize("decimals", [1, -1, 0])
def test_round_into_an_array_of_another_dtype(dtype: str, decimals: int) -> None:
    """It is scaled in the dtype of `out`."""
    a = np.array([0.12, 37.26, 99.94, 1, 0]).astype(dtype)
    for stored in "D" if dtype == "D" else "ilefdD":
        assert_matches(
            lambda m, stored=stored: m.round(
                a if m is np else to_shim(a), decimals, out=m.zeros(5, dtype=stored)
            )
        )
    assert_matches(
        lambda m: m.round(a if m is np else to_shim(a), decimals, out=m.zeros((2, 5), dtype="f"))
    )


VALUES: list[tuple[str, tuple, dict[str, Any]]] = [
    ("isreal", ([1, 2j],), {}),
    ("isposinf", ([1j],), {}),
    ("nan_to_num", ([1, inf, -inf, nan],), {"posinf": 5, "neginf": -5.5, "nan": 2}),
    ("nan_to_num", (np.array([nan, 1]),), {"nan": np.array([5, 6])}),
    ("nan_to_num", (np.array([nan, 1]),), {"nan": np.array([[5, 6]])}),
    ("nan_to_num", (np.array(nan),), {"nan": np.array([5.0])}),
    ("nan_to_num", (np.array(nan),), {"copy": False}),
    ("nan_to_num", (np.array([complex(nan, inf), 1]),), {}),
    ("real_if_close", ([1 + 1e-20j],), {}),
    ("real_if_close", ([1 + 1e-4j],), {}),
    ("real_if_close", (np.array([1 + 1e-4j], "F"),), {"tol": 2000}),
    ("real_if_close", ([1 + 1e-4j],), {"tol": 1e-3}),
    ("fix", ([1.5, -1.5],), {}),
    ("fix", ([1j],), {}),
    ("sinc", (0,), {}),
    ("i0", ([1j],), {}),
    ("unwrap", ([0, 3 * np.pi, 1, -5],), {}),
    ("unwrap", (np.array([0, 300, 20, 350], "i"),), {"period": 360}),
    ("unwrap", (np.array([0, 300, 20, 350], "i"),), {"period": 359}),
    ("unwrap", (np.array([0, 4, 8, 1, 5], "f"),), {}),
    ("unwrap", (np.array([[0, 4.0], [8, 1], [5, 5]]),), {"axis": 0, "discont": 4}),
    ("unwrap", (np.array([0, 4.0, 8]),), {"period": 4}),
    ("unwrap", (np.zeros(0),), {}),
    ("unwrap", ([1, 2],), {"axis": 2}),
]


@pytest.mark.parametrize(("name", "args", "options"), VALUES)
def test_value(name: str, args: tuple, options: dict) -> None:
    assert_matches(name, *args, **options, meta=name != "real_if_close")


@pytest.mark.parametrize("dtype", ALL)
def test_clip(dtype: str) -> None:
    for a in (sample(dtype, (3, 4)), sample(dtype, (3, 4))[::-1], sample(dtype, ())):
        for low, high in ((0, 1), (1, 2), (True, None), (None, 2), (1, 0), (a, 1), (0, a)):
            assert_matches("clip", a, low, high)


CLIPS: list[tuple[tuple, dict[str, Any]]] = [
    ((np.array([5, -7], "b"), -1000, 1000), {}),
    ((np.array([5], "B"), -2, 5), {}),
    ((np.array([5], "b"), 1000, 2000), {}),
    ((np.array([5], "b"), -1000, -200), {}),
    ((np.array([5], "b"), 0, 2.5), {}),
    ((np.array([5], "f"), 0, 2.5), {}),
    ((np.array([5], "f"), np.float64(0), 2.5), {}),
    (([1, 2],), {}),
    (([1, 2], None, None), {}),
    (([1, 2], 1), {}),
    (([1, 2], 1, 2), {"min": 1}),
    (([1, 2],), {"min": 2}),
    (([1, 2],), {"max": 1}),
    (([1, 2],), {"min": None, "max": 1}),
    (([1, 2], [1], [1, 2, 3]), {}),
    (([True], None, None), {}),
    (([nan, 1, 2], 0, 1), {}),
    (([0.0, 1, 2], nan, 1), {}),
    ((5, 1, 3), {}),
    ((np.arange(6).reshape(2, 3), [1, 2, 3], [[4], [2]]), {}),
]


@pytest.mark.parametrize(("args", "options"), CLIPS)
def test_clip_case(args: tuple, options: dict) -> None:
    assert_matches("clip", *args, **options)


def test_clip_out() -> None:
    x = to_shim(np.arange(6.0))
    assert shim.clip(x, 1, 4, out=x) is x
    np.testing.assert_array_equal(from_shim(x), np.clip(np.arange(6.0), 1, 4))
    np.testing.assert_array_equal(from_shim(x.clip(2)), np.arange(6.0).clip(1, 4).clip(2))
    np.testing.assert_array_equal(from_shim(x.clip(max=3)), np.arange(6.0).clip(1, 4).clip(max=3))
    with pytest.raises(shim.NotSupported):
        shim.clip(x, 0, 1, where=False)


def test_parts_are_views() -> None:
    a = np.array([1 + 2j, 3 + 4j])
    x = to_shim(a)[::-1]
    real, imag = shim.real(x), shim.imag(x)
    assert shares_memory(real, x)
    real[0] = 9
    imag[1] = 7
    np.testing.assert_array_equal(from_shim(x), [9 + 4j, 1 + 7j])
    y = to_shim(np.arange(3.0))
    assert shares_memory(shim.real(y), y)
    assert not from_shim(shim.imag(y)).flags.writeable


def test_nan_to_num_in_place() -> None:
    x = to_shim(np.array([1, nan, inf]))
    assert shim.nan_to_num(x[::-1], copy=False) is not None
    np.testing.assert_array_equal(from_shim(x), np.nan_to_num(np.array([1, nan, inf])))


def test_no_data() -> None:
    x = shim.ndarray(torch.zeros(3, device="meta"))
    for name in ("allclose", "array_equal", "array_equiv"):
        with pytest.raises(shim.DataDependent):
            getattr(shim, name)(x, x)


def test_autograd() -> None:
    x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    functions = [
        lambda a: shim.clip(a, 0.2, 0.7),
        lambda a: shim.nan_to_num(a),
        lambda a: shim.sinc(a),
        lambda a: shim.unwrap(a * 5),
        lambda a: shim.real(a * 1j + a),
    ]
    for f in functions:
        assert torch.autograd.gradcheck(lambda t, f=f: f(shim.from_tensor(t))._t, x)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(ALL),
    st.integers(0, 99),
    st.sampled_from((None, -3, 0, 2, 1.5)),
    st.sampled_from((None, 1, 3, 2.5)),
)
def test_property(dtype: str, seed: int, low: Any, high: Any) -> None:
    a = sample(dtype, (2, 5), seed)
    assert_matches("clip", a, low, high)
    assert_matches("isclose", a, a[::-1], equal_nan=True)
    assert_matches("round", a, 1)


@pytest.mark.parametrize("tolerance", [0.5 - 1e-16, np.float64(0.5 - 1e-16)])
def test_isclose_of_a_number_promotes_weakly(tolerance):
    near = np.array(1 - 1e-16, "f4")
    assert_matches("isclose", near, 2, atol=0, rtol=tolerance)
    assert_matches("isclose", near, 2.0, atol=tolerance)
    assert_matches("isclose", near, 2 + 1j, atol=np.float32(1), rtol=tolerance)
