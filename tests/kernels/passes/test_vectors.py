"""Loops as vectors: stores to memory, elements at computed places, alignment, conversions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import np_compile
from np_compile.kernels import compile as pipeline
from np_compile.kernels.passes.dead_store_elimination import dead_store_elimination

from ...support import check, first, thorough
from ..graphs import after
from ..native_checks import check_table

NATIVE = {"backend": "native"}


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def loops(f: Any, *args: Any) -> str:
    """The loops of the program of a call."""
    with pipeline.listening((found := []).append):
        np_compile.compile(f, **NATIVE)(*args)
    (made,) = found
    return str(made.source.program)


# Several stores to one element

HEAD = """\
x: f64[9] strides[1] input 0
y: f64[9] strides[1] input 1
r: f64[9] strides[1] output
"""


def test_only_the_last_of_several_stores_to_an_element_goes_to_memory() -> None:
    text = """\
for i < 8:
  r[i] = 0.0:f64
  r[i] = (r[i] + x[i])
  y[i] = (2.0:f64 * r[i])
  r[i] = (r[i] + x[(1 + i)])"""
    wanted = """\
for i < 8:
  r_3[] = 0.0:f64
  r_3[] = (r_3[] + x[i])
  y[i] = (2.0:f64 * r_3[])
  r[i] = (r_3[] + x[(1 + i)])"""
    assert after(HEAD + text, dead_store_elimination) == wanted


@pytest.mark.parametrize(
    "body",
    [
        "r[i] = x[i]\n  r[(1 + i)] = x[i]",  # another element
        "r[i] = x[i]\n  y[i] = r[(1 + i)]\n  r[i] = y[i]",  # which is read between the stores
        "r[i] = x[i]\n  r[i] = r[(1 + i)]",  # or by the second one
        "r[i] = x[i]\n  for j < 9:\n    y[j] = r[i]\n  r[i] = y[i]",  # or further in
        "r[i] = x[i]\n  r[i] sum= y[i]",  # it is added to
        "r[i] = x[i]\n  y[i] = x[i]",  # none
    ],
)
def test_other_stores_stay(body: str) -> None:
    text = f"for i < 8:\n  {body}"
    assert after(HEAD + text, dead_store_elimination) == text


def filtered(x: Any) -> Any:
    n = len(x) - 2
    out = np.zeros(n, x.dtype)
    for k in range(3):
        out += x[k : k + n] * x.dtype.type(k)
    out[out > 3] = 3
    return out


def damped(x: Any) -> None:
    x[x > 1] = 1
    x[x < 0] //= 2


@pytest.mark.parametrize("dtype", first("bBhilLefdFD", *"BilefF"))
@pytest.mark.parametrize("n", [3, *thorough(40), 3000])
def test_sums_of_slices(dtype: str, n: int) -> None:
    x = np.concatenate([[-0.0, 0.0], rng().integers(-9, 9, n)]).astype(dtype)
    if dtype not in "FD":
        check_table({"filtered": (filtered, (x,))})
    check(lambda a: (filtered(a.real), a[1:] + a[:-1]), x, **NATIVE)


def test_a_sum_of_slices_keeps_the_order_of_its_additions() -> None:
    x = np.array([1e16, 1.0, -1e16, 3.0, np.inf, -0.0, np.nan] * 30)
    check(filtered, x, rtol=0, **NATIVE)


# Elements at computed places


def interpolated(table: Any, x: Any) -> Any:
    place = x * (table.size - 1)
    low = place.astype(np.int64)
    part = place - low
    return table[low] * (1 - part) + table[low + 1] * part


def looked_up(table: Any, at: Any, scale: Any) -> Any:
    return table[at] * scale - table[at - 1]


def doubly(table: Any, at: Any, then: Any) -> Any:
    return table[then[at] - 1] + at


@given(
    n=st.one_of(st.integers(1, 40), st.integers(250, 1300)),
    size=st.integers(2, 50),
    dtype=st.sampled_from("?bHiqefdFD"),
    places=st.sampled_from("hiql"),
)
def test_elements_at_computed_places(n: int, size: int, dtype: str, places: str) -> None:
    draw = np.random.default_rng(n)
    table = (draw.standard_normal(size) * 50).astype(dtype)
    at = draw.integers(-size + 1, size, n).astype(places)
    check(lambda t, i: (t[i], t[i - 1] == t[i]), table, at, **NATIVE)
    if dtype != "?":
        check(looked_up, table, at, np.arange(n).astype(dtype), **NATIVE)
        check(doubly, table, at, draw.integers(-size + 1, size, size), **NATIVE)
    if dtype in "fd":
        check(interpolated, table, draw.random(n).astype(dtype), **NATIVE)


def test_elements_of_a_small_array_are_put_together_to_vectors() -> None:
    at = rng().integers(0, 1000, 5000)
    text = loops(looked_up, rng().random(1000), at, at)
    assert re.search(r"for \w+ < 8 unroll 8:\n +\w+\[\w+\] = x\d\[known\(", text)
    assert "unroll" not in loops(looked_up, rng().random(100_000), at, at)


@pytest.mark.parametrize("n", [512, 513, 536, 767])
def test_the_rest_of_a_loop_in_blocks(n: int) -> None:
    def f(t: Any) -> Any:
        i = np.arange(n)
        return t[(i * 3) % 50] * 2 + t[i % 7]

    def g(t: Any, i: Any) -> Any:
        return t[(i * 3) % 50] * 2 + t[i % 7]

    check(f, rng().random(50), **NATIVE)
    check(g, rng().random(50), np.arange(n), **NATIVE)


def test_elements_of_a_small_and_a_large_array() -> None:
    small, large = rng().random(100), rng().random(50_000)
    at = rng().integers(-100, 100, 3001)
    check(lambda s, t, i: s[i + 0] * t[i * 499] - s[i], small, large, at, **NATIVE)


@pytest.mark.parametrize("n", [5, 1000, 1234])
@pytest.mark.parametrize("at", [0, 0.5, 1])
@pytest.mark.parametrize(
    "wrong", [1.0, -1.2, 1e9, -1e9, 1e300, -1e300, np.nan, np.inf, -np.inf, 2.0**63 / 999]
)
def test_an_index_out_of_bounds_anywhere_is_an_error(n: int, at: float, wrong: float) -> None:
    table, x = rng().random(1000), rng().random(n)
    x[int(at * (n - 1))] = wrong
    with np.errstate(invalid="ignore"):
        check(interpolated, table, x, **NATIVE)


@given(data=st.data(), n=st.sampled_from([30, 700]), size=st.integers(1, 6))
def test_any_index(data: Any, n: int, size: int) -> None:
    """All that an i64 can be, beside indices within bounds."""
    at = np.random.default_rng(n).integers(-size, size, n)
    wrong = data.draw(st.integers(-(2**63), 2**63 - 1) | st.integers(-size - 2, size + 1))
    at[data.draw(st.integers(0, n - 1))] = wrong
    check(lambda t, i: t[i] * 2, np.arange(size), at, **NATIVE)


# Memory that is changed where it lies


@pytest.mark.parametrize("dtype", first("bhfdF", *"bdF"))
@pytest.mark.parametrize("start", first(range(9), 0, 1, 3, 8))
@pytest.mark.parametrize("n", [2047, 2048, 2055])
def test_updates_in_place_wherever_memory_begins(dtype: str, start: int, n: int) -> None:
    x = (rng().standard_normal(n + 20) * 9).astype(dtype)

    def update(a: Any) -> None:
        a += a
        a[3:] *= 3

    check(update, x[start : start + n], **NATIVE)
    if dtype != "F":
        check(damped, x[start : start + n], **NATIVE)


# Conversions


@pytest.mark.parametrize("source", "efd")
@pytest.mark.parametrize("target", first("bBhHiIqQ", *"bHiqQ"))
def test_floats_as_integers(source: str, target: str) -> None:
    edges = [s * (2.0**p + d) for s in (1, -1) for p in (7, 8, 15, 16, 31) for d in (-1, 0, 0.5)]
    special = np.array([*edges, 0.0, -0.0, -0.9, 0.9, 1e3, -1e3] * 9)
    with np.errstate(over="ignore"):
        x = special.astype(source)
    wide, limits = x.astype(np.float64), np.iinfo(target)
    inside = x[(wide >= limits.min) & (wide <= limits.max * 0.99)]
    check(lambda a: a.astype(target), inside, rtol=0, **NATIVE)
    check(lambda a: a.astype(target).astype(source) - a, inside, rtol=0, **NATIVE)


@pytest.mark.parametrize("dtype", "fd")
def test_what_no_integer_holds(dtype: str) -> None:
    """It is the lowest integer, on x86 as in NumPy, also where it becomes a float again."""
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**63, -(2.0**63), 1.5] * 20, dtype)
    with np.errstate(invalid="ignore"):
        check(lambda a: (a.astype(np.int64), a.astype(np.int64).astype(dtype)), x, **NATIVE)


@pytest.mark.parametrize("dtype", "efd")
def test_extremes_with_nan(dtype: str) -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1], dtype)
    a, b = (v.ravel() for v in np.meshgrid(values, values))

    def extremes(a: Any, b: Any) -> Any:
        low, high = np.minimum(a, b), np.maximum(a, b)
        return low, high, np.isnan(low)

    check(extremes, a, b, **NATIVE)
    check(lambda x: (x.max(axis=1), x.min(axis=1)), np.stack((a, b, a)).T.copy(), **NATIVE)


# Strips of a loop of any length


def variances(x):
    return x.var(axis=0), x.max(axis=0), (x * x).sum(axis=0)


def centred(x):
    x -= x.mean(axis=0)
    return x.sum(axis=0)


def rolled(x):
    return np.roll(x, 1, axis=1) + x


def doubled_rows(x):
    x *= x.sum(axis=1, keepdims=True)
    return x[:, 0]


SEVERAL = [65, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 127, 128, 129, 200, 255, 257, 300, 521]


@pytest.mark.parametrize("dtype", first("df", "d"))
@pytest.mark.parametrize(
    ("f", "kind"),
    [
        (variances, "strip"), (centred, None), (rolled, "vector"), (doubled_rows, None),
    ],
)  # fmt: skip
def test_loops_of_any_length(f: Any, kind: str | None, dtype: str) -> None:
    """The last strip of a loop, or vector of a row, may overlap the one before, but where it
    changes what it reads."""
    found: list[Any] = []
    fast = np_compile.compile(f, dynamic=True, **NATIVE)
    with pipeline.listening(found.append):
        for n in SEVERAL:
            x = (rng().standard_normal((5, n)) * 9).astype(dtype)
            got, want = x.copy(), x.copy()
            results = fast(got), f(want)
            rtol = 1e-4 if dtype == "f" else 1e-12
            for a, b in zip([got, *results[0]], [want, *results[1]], strict=True):
                np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-5)
    assert len(np_compile.recompiles(fast)) == 1
    text = str(found[0].source.program)
    assert set(re.findall(r"(\w+) \d+ overlapping", text)) == ({kind} if kind else set())
