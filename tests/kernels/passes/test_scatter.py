"""Many values that are added to few places, and indices that are computed before they are used."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile
from np_compile import config
from np_compile.kernels.compile import listening

from ...support import examples

MANY = 40_000  # values from which on a scatter is made in parts


@pytest.fixture(autouse=True)
def _always_compiled():
    with config.patch(plain="never"):
        yield


def loops(f: Callable, *args: Any) -> str:
    """The loops of the one program of a call, which gives what NumPy gives."""
    made: list[Any] = []
    own = [a.copy() for a in args]
    with listening(made.append):
        got = np_compile.compile(f, backend="native")(*own)
    want = f(*args)
    for a, b in zip(own, args, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    if want is not None:
        np.testing.assert_allclose(got, want, rtol=1e-12)
        assert got.dtype == want.dtype
    (program,) = made
    return str(program.source.program)


def added(x, i, v):
    np.add.at(x, i, v)


def integers(n: int, low: int, high: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, n)


# In parts


@pytest.mark.parametrize("dtype", "fdilqBIL")
@pytest.mark.parametrize("n", [MANY, MANY + 5])
def test_sums_of_whole_numbers_are_exact_in_parts(dtype: str, n: int) -> None:
    x = integers(100, 0, 100).astype(dtype)
    i, v = integers(n, -100, 100, 1), integers(n, 0, 3, 2).astype(dtype)
    want = x.copy()
    np.add.at(want, i, v)
    text = loops(added, x.copy(), i, v)
    assert ("part" in text) is (x.itemsize >= 4)
    np_compile.compile(added)(x, i, v)
    np.testing.assert_array_equal(x, want)


@settings(deadline=None, max_examples=examples(25))
@given(
    places=st.integers(2, 200), low=st.integers(-1, 0), seed=st.integers(0, 99),
    shape=st.sampled_from([(MANY,), (200, 211), (3, MANY // 2), (MANY // 3 + 1, 3)]),
)  # fmt: skip
def test_sums_at_any_places(places: int, low: int, seed: int, shape: tuple) -> None:
    rng = np.random.default_rng(seed)
    i = rng.integers(low * places, places if seed % 4 else low * places + 1, shape)
    v = rng.integers(-9, 9, shape).astype(float)
    x = rng.integers(-9, 9, places).astype(float)
    want = x.copy()
    np.add.at(want, i, v)
    assert "part" in loops(added, x.copy(), i, v)
    np_compile.compile(added)(x, i, v)
    np.testing.assert_array_equal(x, want)


def test_rows_and_pairs_in_parts() -> None:
    rng = np.random.default_rng(0)
    i, j = rng.integers(-6, 6, 20_000), rng.integers(-4, 4, 20_000)
    text = loops(added, np.zeros((6, 4)), i, rng.random((20_000, 4)))
    assert "part" in text
    i, j = np.tile(i, 2), np.tile(j, 2)
    text = loops(
        lambda x, i, j, v: np.add.at(x, (i, j), v), np.zeros((6, 4)), i, j, rng.random(MANY)
    )
    assert "part" in text


def test_parts_are_for_many_values_in_few_places() -> None:
    for n, places in ((MANY // 2, 10), (MANY, MANY // 4)):
        assert "part" not in loops(added, np.zeros(places), integers(n, 0, places), np.ones(n))


def test_zeros_keep_their_signs_where_nothing_is_added() -> None:
    x = np.array([-0.0, 0.0, -0.0, 1.0])
    i, v = np.full(MANY, 3), np.zeros(MANY)
    assert "part" in loops(added, x.copy(), i, v)
    np_compile.compile(added)(x, i, v)
    np.testing.assert_array_equal(np.signbit(x), [True, False, True, False])


def test_sums_do_not_depend_on_the_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    n = 400_000
    i, v = rng.integers(-1000, 1000, n), rng.standard_normal(n) * 10.0 ** rng.integers(-9, 9, n)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3, 5):
            torch.set_num_threads(threads)
            fast = np_compile.compile(added)
            for _ in range(4):
                x = np.zeros(1000)
                fast(x, i, v)
                found.append(x.tobytes())
    finally:
        torch.set_num_threads(before)
    assert len(set(found)) == 1
    want = np.zeros(1000)
    np.add.at(want, i, v)
    np.testing.assert_allclose(np.frombuffer(found[0]), want, rtol=1e-9)


@pytest.mark.parametrize("place", [0, 1, MANY // 2, MANY + 3, MANY + 4])
@pytest.mark.parametrize("wrong", [50, -51, 2**40])
def test_one_wrong_index_leaves_the_array_as_it_was(place: int, wrong: int) -> None:
    x, i = np.arange(50.0), integers(MANY + 5, -50, 50)
    fast = np_compile.compile(added)
    for _ in range(3):
        fast(x.copy(), i, np.ones(i.size))
    i[place] = wrong
    own = x.copy()
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0 with size 50"):
        fast(own, i, np.ones(i.size))
    np.testing.assert_array_equal(own, x)


def test_rows_are_stored_as_vectors() -> None:
    def stored(x, i, v):
        x[i] = v

    text = loops(
        stored, np.zeros((50, 33)), integers(70, -50, 50), np.arange(70.0 * 33).reshape(70, 33)
    )
    assert re.search(r"vector \d+:\n +x0\[", text)


# Indices computed in blocks


def table(t, x):
    low = (x * 99).astype(np.int64)
    return t[low] + t[low + 1] * x


@settings(deadline=None, max_examples=examples(20))
@given(n=st.integers(250, 1100), seed=st.integers(0, 99))
def test_indices_in_blocks(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.random(n) - seed % 2  # negative indices, for odd seeds
    text = loops(table, rng.random(101), x)
    assert ("known(at" in text) is (n >= 256)


@pytest.mark.parametrize("n", [256, 1000, 1021])
@pytest.mark.parametrize("wrong", [1.0, -1.1, np.nan, 1e300])
def test_a_wrong_index_in_a_block_is_an_error(n: int, wrong: float) -> None:
    t, x = np.arange(100.0), np.random.default_rng(0).random(n) * 0.98
    fast = np_compile.compile(table)
    for place in (0, n // 2, n - 1):
        fast(t, x)
        y = x.copy()
        y[place] = wrong
        with np.errstate(all="ignore"), pytest.raises(IndexError) as want:
            table(t, y)
        with np.errstate(all="ignore"), pytest.raises(IndexError) as got:
            fast(t, y)
        assert str(got.value) == str(want.value)


def test_what_an_index_needs_comes_before_it() -> None:
    def f(t, x):
        y = np.cumsum(x) * 0.01
        k = (np.sqrt(np.abs(y)) * 7).astype(np.int32) % 9
        return t[k] + t[8 - k] * k, k

    def nested(t, i):
        return t[i[i % 5] % 7] + t[i[i % 3 + 1] % 4]

    rng = np.random.default_rng(1)
    f_got, f_want = (h(rng.random(9), np.linspace(-1, 1, 1000)) for h in (np_compile.compile(f), f))
    assert [a.dtype for a in f_got] == [a.dtype for a in f_want]
    assert "known(at" in loops(nested, rng.random(9), rng.integers(0, 999, 1000))


def binned(x):
    k = np.clip(np.floor(x * 50).astype(np.int64), 0, 63)
    counts = np.zeros(64)
    np.add.at(counts, k, x)
    return counts


def test_places_of_a_scatter_in_blocks() -> None:
    text = loops(binned, np.random.default_rng(0).random(1030))
    assert "known(at" in text


# Indices that are known to be right


def test_an_index_is_looked_at_once() -> None:
    def two(x, y, i):
        x[i] = 1.0
        y[i] += 2.0

    text = loops(two, np.zeros(50), np.zeros(50), integers(40, -50, 50))
    assert text.count("check") == 2  # the buffer, and one statement
    assert "wrap" in text.split("fence")[0]
    assert "wrap" not in text.split("fence")[1]


def test_an_index_that_changes_is_looked_at_again() -> None:
    def changed(x, i):
        x[i] = 1.0
        i += 1
        x[i] = 2.0

    x, i = np.zeros(50), integers(40, -50, 48)
    assert loops(changed, x, i).count("fence") == 2
    fast = np_compile.compile(changed)
    with pytest.raises(IndexError, match="index 50 is out of bounds"):
        fast(np.zeros(50), np.array([3, 49]))


def updated(y, x, to, of):
    y[to] = 0.5 * y[of] + x[of]


def shifted(y, x, to, of):
    y[to][1:] = 0.5 * y[of][:-1] + x[of][1:]


@pytest.mark.parametrize(("step", "temporary"), [(updated, False), (shifted, True)])
def test_a_row_made_of_rows_at_places_from_outside(step: Callable, temporary: bool) -> None:
    """It is one pass over memory, where each element is made of those in its column."""
    found: list[Any] = []
    fast = np_compile.compile(step, dynamic=True)
    x = np.random.default_rng(0).standard_normal((6, 40))
    with listening(found.append):
        for to, of in [(1, 0), (2, 1), (3, 3), (-1, 2), (0, -6)]:
            y, want = x.copy(), x.copy()
            fast(y, x, to, of)
            step(want, x, to, of)
            np.testing.assert_array_equal(y, want)
    text = str(found[0].source.program)
    assert text.count("fence") == 1
    assert ("temporary" in re.sub("check.*", "", text)) is temporary
    assert "vector" in text
    for to, of in [(6, 0), (0, -7)]:
        y = x.copy()
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 6"):
            fast(y, x, to, of)
        np.testing.assert_array_equal(y, x)


# Indices on which the elements do not depend


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i: np.ones(3)[i] * x[0],
        lambda x, i: x.reshape(1, -1)[i],
        lambda x, i: x.reshape(1, -1).__setitem__((i, 0), 3),
        lambda x, i: np.broadcast_to(x[:1], (3,))[i],
        lambda x, i: np.take(x.reshape(-1, 1), i, axis=1),
        lambda x, i: np.take_along_axis(x.reshape(-1, 1), i.reshape(-1, 1), axis=1),
        lambda x, i: np.add.at(x.reshape(1, -1), i, 1.0),
        lambda x, i: np.add.at(x[:1], i, 1.0),
    ],
)  # fmt: skip
def test_an_index_is_checked_though_it_says_nothing(f: Callable) -> None:
    fast = np_compile.compile(f)
    for i in ([0, 0, -1], [0, 5, 0]):
        found = []
        for g in (f, fast):
            x = np.arange(3.0)
            try:
                result = g(x, np.array(i))
            except IndexError as e:
                result = str(e)
            found.append((np.asarray(result).tolist(), x.tolist()))
        assert found[0] == found[1]


def weighted(row, column, value, x):
    return np.bincount(row, weights=value * x[column], minlength=x.size)


@pytest.mark.parametrize("n", [1, 300, MANY + 7])
@pytest.mark.parametrize("low", [0, -40])
def test_sums_of_gathered_values(n: int, low: int) -> None:
    row, column = integers(n, 0, 40), integers(n, low, 40, seed=1)
    value = integers(n, -9, 9, seed=2).astype(float)
    x = integers(40, -9, 9, seed=3).astype(float)
    fast = np_compile.compile(weighted)
    for _ in range(4):
        np.testing.assert_array_equal(
            fast(row, column, value, x), weighted(row, column, value, x), strict=True
        )


@pytest.mark.parametrize("n", [300, MANY + 7])
@pytest.mark.parametrize("wrong", [40, -41, 2**63 - 1, -(2**63)])
def test_a_wrong_index_of_a_gathered_value_is_an_error(n: int, wrong: int) -> None:
    row, column = integers(n, 0, 40), integers(n, -40, 40, seed=1)
    value, x = np.ones(n), np.ones(40)
    fast = np_compile.compile(weighted)
    for _ in range(3):
        fast(row, column, value, x)
    column[n // 2] = wrong
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0 with size 40"):
        fast(row, column, value, x)
