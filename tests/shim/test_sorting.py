"""Sorting, searching, choosing and putting against NumPy."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .support import ALL, COMPLEX, assert_matches, from_shim, quiet, sample, shim, to_shim, torch


def distinct(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Values that differ, so that every sort gives the same indices."""
    n = int(np.prod(shape))
    order = np.random.default_rng(seed).permutation(n)
    if dtype == "?":
        return (order % 2 == 0).reshape(shape)
    if dtype in "FD":
        return (order // 3 + 1j * (order % 3)).astype(dtype).reshape(shape)
    return order.astype(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", ALL)
def test_sort(dtype: str) -> None:
    for a in (sample(dtype, (4, 9)), sample(dtype, (9, 4))[::-1].T, sample(dtype, (0, 3))):
        for axis in (-1, 0, None):
            assert_matches("sort", a, axis=axis)
            assert_matches("argsort", a, axis=axis, kind="stable")
    a = distinct(dtype, (4, 6)) if dtype != "?" else np.array([[True, False]])
    assert_matches("argsort", a)
    assert_matches("lexsort", (sample(dtype, (9,)), sample(dtype, (9,), 1)))


def test_complex_order() -> None:
    nan = np.nan
    a = np.array([1 + 2j, complex(nan, 1), 1 - 1j, complex(0, nan), complex(nan, nan), -3, 1 + 2j])
    a = np.concatenate([a, [complex(5, nan), complex(nan, -1)]])
    got = shim.to_numpy(shim.sort(a))
    np.testing.assert_array_equal(got, np.sort(a))
    assert_matches("argsort", a, kind="stable")
    assert_matches("argmax", a[[0, 2, 5, 6]])
    assert_matches("argmin", a)
    assert_matches("searchsorted", np.sort(a), a)


SORT_ERRORS = [
    ("sort", (np.array(3),), {}),
    ("sort", (np.array(3),), {"axis": None}),
    ("argsort", (np.array(3),), {}),
    ("sort", (np.arange(3),), {"kind": "foo"}),
    ("sort", (np.arange(3),), {"order": "f"}),
    ("sort", (np.arange(3),), {"axis": 1}),
    ("partition", (np.arange(3), 5), {}),
    ("partition", (np.arange(3), 1.5), {}),
    ("partition", (np.arange(3), 0), {"kind": "foo"}),
    ("argpartition", (np.array(3), 0), {}),
    ("lexsort", ([],), {}),
    ("lexsort", (np.array([[3, 1, 2], [1, 1, 0]]),), {}),
    ("lexsort", (np.array([[3, 1, 2], [1, 1, 0]]), 0), {}),
    ("lexsort", ([[1, 2], [1]],), {}),
    ("lexsort", ([3, 1],), {}),
]


@pytest.mark.parametrize(("name", "args", "options"), SORT_ERRORS)
def test_sort_errors(name: str, args: tuple, options: dict) -> None:
    assert_matches(name, *args, **options, meta=False)


@pytest.mark.parametrize("dtype", "bHLefdF")
def test_partition(dtype: str) -> None:
    a = distinct(dtype, (4, 6))
    for kth in (2, [0, 3], -1):
        for axis in (-1, 0, None):
            got = shim.to_numpy(shim.partition(to_shim(a), kth, axis=axis))
            expected = np.partition(a, kth, axis=axis)
            index = shim.to_numpy(shim.argpartition(to_shim(a), kth, axis=axis))
            where = np.asarray(kth)
            axis_ = 0 if axis is None else axis
            np.testing.assert_array_equal(got.take(where, axis_), expected.take(where, axis_))
            flat = a.ravel() if axis is None else a
            np.testing.assert_array_equal(np.take_along_axis(flat, index, axis_), got)


def test_sort_in_place() -> None:
    a = np.array([[3, 1, 2], [9, 7, 8]])
    for view in (np.s_[:], np.s_[::-1, ::-1], np.s_[0]):
        mine, theirs = to_shim(a), a.copy()
        assert mine[view].sort() is None
        theirs[view].sort()
        np.testing.assert_array_equal(from_shim(mine), theirs)
    mine, theirs = to_shim(a), a.copy()
    mine.sort(axis=0, kind="stable")
    theirs.sort(axis=0)
    np.testing.assert_array_equal(from_shim(mine), theirs)
    mine.partition(1)
    theirs.partition(1)
    np.testing.assert_array_equal(from_shim(mine)[:, 1], theirs[:, 1])
    frozen = a.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="sort array is read-only"):
        shim.share_numpy(frozen).sort()


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(dtype: str, side: str) -> None:
    a = np.sort(sample(dtype, (11,)))
    v = sample(dtype, (3, 4), 1)
    assert_matches("searchsorted", a, v, side=side)
    assert_matches("searchsorted", a, v[::-1, 0], side=side)
    assert_matches("searchsorted", a[:0], v, side=side)
    assert_matches("searchsorted", a, v[0, 0], side=side)


SEARCHES = [
    ((np.array([3, 1, 2]), [0, 1, 5]), {"sorter": np.array([1, 2, 0])}),
    ((np.array([3, 1, 2]), [0, 1, 2.5, 5]), {"sorter": np.array([-2, 2, -3])}),
    ((np.array([1, 2, 3]), 2.5), {}),
    ((np.array([1, 2, 3], "f"), 0.1), {}),
    (([1, 2], 3), {"side": "x"}),
    (([[1, 2]], 3), {}),
    (([1, 2], [3]), {"sorter": [0]}),
    (([1, 2], [3]), {"sorter": [0.0, 1.0]}),
]


@pytest.mark.parametrize(("args", "options"), SEARCHES)
def test_search_options(args: tuple, options: dict) -> None:
    assert_matches("searchsorted", *args, **options)


@pytest.mark.parametrize("dtype", ALL)
def test_nonzero(dtype: str) -> None:
    for a in (sample(dtype, (5,)), sample(dtype, (3, 4))[::-1], sample(dtype, (0, 2))):
        for name in ("nonzero", "flatnonzero", "argwhere"):
            assert_matches(name, a, meta=False)
        assert_matches("where", a, meta=False)
    for name in ("nonzero", "flatnonzero", "argwhere"):
        assert_matches(name, sample(dtype, ()), meta=False)
        with pytest.raises(shim.DataDependent):
            getattr(shim, name)(shim.ndarray(torch.zeros(3, device="meta")))
    with pytest.raises(shim.DataDependent):
        shim.where(shim.ndarray(torch.zeros(3, device="meta")))


@pytest.mark.parametrize("dtype", ALL)
def test_descending(dtype: str) -> None:
    """From NumPy 2.5 on; before, the TypeError of a keyword that is not there."""
    a = sample(dtype, (4, 9))
    if dtype in COMPLEX:
        a[0, :3], a.imag[0, 1:5] = np.nan, np.nan
    for axis in (0, -1, None):
        assert_matches("sort", a, axis, descending=True)
        assert_matches("argsort", a, axis, descending=True, stable=True)
        assert_matches("argsort", a, axis, descending=False, stable=True)
    for descending in (True, False, None):
        assert_matches("sort", a, kind="stable", descending=descending)
    if "descending" in inspect.signature(np.sort).parameters:
        assert_matches(lambda m, x: x.argsort(stable=True, descending=True), a)
        assert_matches(lambda m, x: (x.sort(descending=True), x)[1], a.copy())


MASK = np.array([[True, False, True], [False, False, True]])
WHERES = [
    (MASK, np.arange(6).reshape(2, 3), 0),
    (MASK, 1, 2),
    (MASK, 1, 2.5),
    (MASK, np.array([1, 2, 3], "b"), 300),
    (MASK, np.array([1, 2, 3], "B"), -1),
    (MASK, 2**63, 1),
    (MASK, np.array([1, 2, 3], "Q"), 2**63),
    (MASK, np.array([1, 2, 3], "f"), 2**200),
    (MASK, np.array([1, 2, 3], "b"), 2.5),
    (MASK, np.array([1, 2, 3], "f"), 2.5),
    (MASK, np.array([[1], [2]], "Q"), np.array([1, 2, 3], "Q")),
    (MASK, np.float32(1), np.array(2.0)),
    (np.array(True), 1, 2),
    (np.array([0, 2, 0.5]), np.array([1, 2, 3], "H"), np.array(4, "b")),
    (MASK, True, np.array([1j, 2, 3])),
    (MASK, np.arange(2), np.arange(3)),
    (MASK, 1),
    (True, np.arange(3), np.arange(3.0)),
]


@pytest.mark.parametrize("args", WHERES)
def test_where(args: tuple) -> None:
    assert_matches("where", *args)


CONDS = [np.array([True, False, False]), np.array([True, True, False])]
SELECTS = [
    (CONDS, [np.array([1, 2, 3]), np.array([4, 5, 6])], 7.5),
    (CONDS, [np.array([1, 2, 3], "f"), 9], 0),
    (CONDS, [np.array([1, 2, 3], "b"), 300], -1),
    (CONDS, [1, 2], 3),
    (CONDS, [np.array([1, 2, 3], "B"), 9], 0),
    (CONDS, [9, np.array([1, 2, 3], "Q")], 0),
    (CONDS, [2**63, np.array([1, 2, 3], "Q")], 0),
    (CONDS, [True, np.array([1, 2, 3], "Q")], 300),
    (CONDS, [np.array([1, 2, 3], "B"), np.uint8(9)], -1),
    (CONDS, [1, 2.5], 3),
    (CONDS, [np.arange(6, dtype="H").reshape(2, 3), np.array([1], "B")]),
    ([np.array(True)], [np.array(3)]),
    ([], []),
    ([True], [1, 2]),
    ([np.array([1, 0])], [np.array([1, 2])]),
]


@pytest.mark.parametrize("args", SELECTS)
def test_select(args: tuple) -> None:
    assert_matches("select", *args)


A = np.arange(12).reshape(3, 4)
INDEXED = [
    ("take", (A, 0), {}),
    ("take", (A, [[0, 5], [-1, 11]]), {}),
    ("take", (A[::-1], [2, -1]), {"axis": 0}),
    ("take", (A, np.array([1, 0], "B")), {"axis": 1}),
    ("take", (A, np.array(1)), {"axis": 1}),
    ("take", (A, [True, False]), {"axis": 1}),
    ("take", (np.array(3), 0), {}),
    ("take", (A, [5, -5]), {"mode": "clip"}),
    ("take", (A, [50, -50]), {"mode": "wrap"}),
    ("take", (A, 50), {}),
    ("take", (A, -5), {"axis": 1}),
    ("take", (A, np.array([1.5])), {}),
    ("take", (A, 0), {"mode": "foo"}),
    ("take", (A, 0), {"axis": 2}),
    ("take", (np.zeros(0), 0), {}),
    ("take", (np.zeros((0, 3)), [1, 2]), {"axis": 1}),
    ("take", (np.arange(5, dtype="H"), [3, 4]), {}),
    ("choose", (np.array([0, 1, 2]), [[1, 2, 3], [4, 5, 6], [7, 8, 9]]), {}),
    ("choose", (np.array([0, 1]), [1, 2.5]), {}),
    ("choose", (np.array([0, 1]), [np.array([1, 2], "b"), np.array([1, 2], "f")]), {}),
    ("choose", (np.array(1), [1, 2]), {}),
    ("choose", (np.array([[0], [1]]), [np.array([1, 2, 3]), np.array(5)]), {}),
    ("choose", (np.array([0, 3]), [[1, 2], [3, 4]]), {}),
    ("choose", (np.array([0, 3, -1]), [[1, 2, 3], [3, 4, 5]]), {"mode": "wrap"}),
    ("choose", (np.array([0, 3, -1]), [[1, 2, 3], [3, 4, 5]]), {"mode": "clip"}),
    ("take_along_axis", (A, np.array([[0], [1], [-1]])), {"axis": 1}),
    ("take_along_axis", (A, np.argsort(A, 0)), {"axis": 0}),
    ("take_along_axis", (A, np.array([[0]])), {"axis": 1}),
    ("take_along_axis", (A, np.array([0, 7])), {"axis": None}),
    ("take_along_axis", (A, np.array([0])), {"axis": 0}),
    ("take_along_axis", (A, np.array([[0.0]])), {"axis": 0}),
    ("take_along_axis", (A[:1], np.array([[0], [0]])), {"axis": 1}),
    ("take_along_axis", (A, np.array([[9]])), {"axis": 0}),
]


@pytest.mark.parametrize(("name", "args", "options"), INDEXED)
def test_indexed(name: str, args: tuple, options: dict) -> None:
    if name == "take_along_axis" and args[1].size and np.any(args[1] == 9):
        with pytest.raises(IndexError):
            shim.take_along_axis(*args, **options)
        return
    assert_matches(name, *args, **options)


CHOSEN = [
    ("extract", (A % 3 == 0, A), {}),
    ("extract", ([1, 0], [5, 6]), {}),
    ("compress", ([True, False, True], A), {"axis": 0}),
    ("compress", ([0, 1], A), {"axis": 1}),
    ("compress", ([0, 1, 1], A), {}),
    ("compress", ([False, False, True], np.arange(2)), {}),
    ("compress", ([[True]], A), {}),
]


@pytest.mark.parametrize(("name", "args", "options"), CHOSEN)
def test_chosen(name: str, args: tuple, options: dict) -> None:
    assert_matches(name, *args, **options, meta=False)


def in_place(name: str, target: np.ndarray, *args: Any, **options: Any) -> None:
    """Run on a copy of `target`, on a reversed view of it, and compare the memory."""
    for view in (np.s_[...], np.s_[::-1]):
        mine, theirs = to_shim(target), target.copy()
        error = None
        with quiet():
            try:
                getattr(np, name)(theirs[view], *args, **options)
            except Exception as e:
                error = e
            if error is not None:
                with pytest.raises(type(error)) as got:
                    getattr(shim, name)(mine[view], *args, **options)
                assert str(got.value) == str(error)
                continue
            assert getattr(shim, name)(mine[view], *args, **options) is None
        np.testing.assert_array_equal(from_shim(mine), theirs)


PUTS = [
    ("put", A, ([0, 5, -1], [10, 20, 30]), {}),
    ("put", A, ([0, 5, -1], [10]), {}),
    ("put", A, ([0, 0, 0, 1], [1, 2]), {}),
    ("put", A, ([50, -50], [1, 2]), {"mode": "wrap"}),
    ("put", A, ([50, -50], [1, 2]), {"mode": "clip"}),
    ("put", A, ([50], [1]), {}),
    ("put", A, ([1], []), {}),
    ("put", A.astype("H"), ([1, 2], [3, 4]), {}),
    ("putmask", A, (A > 5, 0), {}),
    ("putmask", A, (A > 5, [1, 2, 3]), {}),
    ("putmask", A.astype("f"), (A > 5, [1.5, 2]), {}),
    ("putmask", A, ([True], 1), {}),
    ("place", A, (A > 5, [1, 2, 3]), {}),
    ("place", A, (A > 5, 9), {}),
    ("place", A, (A > 5, []), {}),
    ("place", A, ([True], [1]), {}),
    ("put_along_axis", A, (np.array([[0], [1], [-1]]), 99), {"axis": 1}),
    ("put_along_axis", A, (np.array([[0, 0, 1, 1]]), [[1, 2, 3, 4]]), {"axis": 1}),
    ("put_along_axis", A, (np.array([[0, 1, 2, 0]]), [[1, 2, 3, 4]]), {"axis": 0}),
    ("put_along_axis", A, (np.array([1, 5]), [7, 8]), {"axis": None}),
    ("put_along_axis", A, (np.array([1]), 0), {"axis": 0}),
    ("copyto", A, (np.array([1, 2, 3, 4]),), {}),
    ("copyto", A, (5,), {"where": A > 3}),
    ("copyto", A, (1.5,), {}),
    ("copyto", A, ([1.5, 2, 3, 4],), {}),
    ("copyto", A, ([1.5, 2, 3, 4],), {"casting": "unsafe"}),
    ("copyto", A, ([1, 2],), {}),
    ("copyto", A, (1,), {"casting": "foo"}),
    ("copyto", A.astype("B"), (300,), {}),
    ("copyto", A.astype("f"), (1.5,), {"where": [True, False, True, False]}),
    ("copyto", A.astype("f"), (np.array([[[1.0], [2], [3]]]),), {}),
]


@pytest.mark.parametrize(("name", "target", "args", "options"), PUTS)
def test_in_place(name: str, target: np.ndarray, args: tuple, options: dict) -> None:
    in_place(name, target, *args, **options)


def test_copyto_overlap() -> None:
    a = np.arange(6)
    mine = to_shim(a)
    shim.copyto(mine[1:], mine[:-1])
    np.copyto(a[1:], a[:-1])
    np.testing.assert_array_equal(from_shim(mine), a)


def test_methods() -> None:
    a = np.array([[3, 1, 2], [0, 5, 4]])
    x = to_shim(a)
    pairs = [
        (x.argsort(axis=0), a.argsort(axis=0)),
        (x.take([0, 2], axis=1), a.take([0, 2], axis=1)),
        (x.compress([True, False], axis=0), a.compress([True, False], axis=0)),
        (x.nonzero()[1], a.nonzero()[1]),
        (x[0].searchsorted(2), a[0].searchsorted(2)),
        (x.argpartition(1, axis=1), a.argpartition(1, axis=1)),
        (
            to_shim(np.array([0, 1])).choose([[1, 2], [3, 4]]),
            np.array([0, 1]).choose([[1, 2], [3, 4]]),
        ),
    ]
    for mine, theirs in pairs:
        np.testing.assert_array_equal(from_shim(mine), theirs)
    x.put([0, 1], [7, 8])
    a.put([0, 1], [7, 8])
    np.testing.assert_array_equal(from_shim(x), a)


def test_gradients() -> None:
    x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    index = np.array([[0], [2], [1]])
    functions = [
        lambda a: shim.sort(a, axis=0),
        lambda a: shim.take(a, [0, 2, 2], axis=1),
        lambda a: shim.take_along_axis(a, index, axis=1),
        lambda a: shim.where(np.array([True, False, True, True]), a, 2.0),
        lambda a: shim.select([np.array([True, False, True, True])], [a], 1.5),
    ]
    for f in functions:
        assert torch.autograd.gradcheck(lambda t, f=f: f(shim.from_tensor(t))._t, x)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from("bHIlLefdFD"), st.integers(0, 99), st.integers(0, 12), st.integers(1, 3))
def test_property(dtype: str, seed: int, n: int, m: int) -> None:
    a = sample(dtype, (n, m), seed)
    for axis in (0, 1, None):
        assert_matches("sort", a[::-1], axis=axis)
        assert_matches("argsort", a[::-1], axis=axis, kind="stable")
    base = np.sort(a.ravel())
    assert_matches("searchsorted", base, sample(dtype, (5,), seed + 1))


STABLE = [{"kind": "stable"}, {"kind": "mergesort"}, {"stable": True}]


@pytest.mark.parametrize("options", STABLE, ids=str)
@pytest.mark.parametrize("dtype", ALL)
def test_ties_stay_in_order(dtype: str, options: dict) -> None:
    """Of many equal elements, more than an insertion sort takes."""
    a = np.random.default_rng(0).integers(0, 3, (3, 150)).astype(dtype)
    assert_matches("argsort", a, **options)
    assert_matches("argsort", a.T[::-1], axis=0, **options)
    assert_matches("argsort", a, axis=None, **options)
    assert_matches(lambda m, x: x.argsort(**options), a)
    assert_matches(lambda m, x: x[:, ::-1].argsort(1, **options), a)
    assert_matches("sort", a, **options)
