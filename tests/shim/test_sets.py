"""unique, set operations and membership against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .support import ALL, assert_matches, sample, shim, torch


@pytest.mark.parametrize("dtype", ALL)
def test_unique(dtype: str) -> None:
    for a in (
        sample(dtype, (12,)),
        sample(dtype, (4, 5))[::-1],
        sample(dtype, ()),
        sample(dtype, (0,)),
    ):
        for index, inverse, counts in itertools.product((False, True), repeat=3):
            assert_matches("unique", a, index, inverse, counts, meta=False)
        assert_matches("unique", a, return_counts=True, equal_nan=False, meta=False)
        for name in ("unique_all", "unique_counts", "unique_inverse"):
            assert_matches(name, a, meta=False)
            assert type(getattr(shim, name)(a)) is type(getattr(np, name)(a))
        got = shim.to_numpy(shim.unique_values(a))
        np.testing.assert_array_equal(got, np.sort(np.unique_values(a)))


@pytest.mark.parametrize("dtype", "?bHQfdD")
def test_unique_rows(dtype: str) -> None:
    a = (np.arange(24).reshape(6, 2, 2) // 8 % 2).astype(dtype)
    for axis in (0, 1, -1):
        assert_matches("unique", a, True, True, True, axis=axis, meta=False)
    assert_matches("unique", a, axis=3, meta=False)
    assert_matches("unique", a[:0], axis=0, meta=False)


@pytest.mark.parametrize("dtype", ALL)
def test_set_operations(dtype: str) -> None:
    a, b = sample(dtype, (9,)), sample(dtype, (3, 2), 1)
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        assert_matches(name, a, b, meta=False)
        assert_matches(name, a[:0], b, meta=False)
        assert_matches(name, a, b[:0], meta=False)
    assert_matches("intersect1d", a, b, return_indices=True, meta=False)
    assert_matches("isin", a, b)
    assert_matches("isin", b[::-1], a[:2], invert=True)
    assert_matches("isin", b, a[:0])


OTHERS = [
    ("union1d", ([[1, 2]], [2, 3.5]), {}),
    ("intersect1d", ([3, 1, 2], [2, 3, 9]), {"assume_unique": True, "return_indices": True}),
    ("setdiff1d", ([5, 3, 1], [3]), {"assume_unique": True}),
    ("setxor1d", ([3, 1, 2], [2, 3, 9]), {"assume_unique": True}),
    ("setdiff1d", (np.array([1, 2], "b"), [2.5, 1.0]), {}),
    ("isin", (1, [1]), {}),
    ("isin", ([1, 2], [2, 3]), {"kind": "table"}),
    ("isin", ([1.0, 2], [2, 3]), {"kind": "table"}),
    ("isin", ([1, 2], [2, 3]), {"kind": "foo"}),
    ("isin", ([np.nan, 1], [np.nan, 1]), {}),
    ("isin", (np.array([1, 2], "b"), np.array([2.0, 1.5])), {"invert": True}),
]


@pytest.mark.parametrize(("name", "args", "options"), OTHERS)
def test_case(name: str, args: tuple, options: dict) -> None:
    assert_matches(name, *args, **options, meta=name == "isin")


def test_no_data() -> None:
    x = shim.ndarray(torch.zeros(3, device="meta"))
    for name in ("unique", "unique_all", "unique_values"):
        with pytest.raises(shim.DataDependent):
            getattr(shim, name)(x)
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        with pytest.raises(shim.DataDependent):
            getattr(shim, name)(x, x)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from("bHLifdD"), st.integers(0, 99), st.integers(0, 9), st.integers(0, 9))
def test_property(dtype: str, seed: int, n: int, m: int) -> None:
    a, b = sample(dtype, (n,), seed), sample(dtype, (m,), seed + 1)
    assert_matches("unique", a, True, True, True, meta=False)
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        assert_matches(name, a[::-1], b, meta=False)
    assert_matches("isin", a, b)


@pytest.mark.parametrize("axis", [0, -1, 1])
@pytest.mark.parametrize("equal_nan", [True, False])
def test_unique_of_nans_along_the_axis_of_a_vector(axis, equal_nan):
    a = np.array([np.nan, 0.0, np.nan, 0.0])
    assert_matches("unique", a, True, True, True, axis=axis, equal_nan=equal_nan, meta=False)
