"""Arrays that are stored in pieces: the boxes, the text of the pass, and programs against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from np_compile.kernels.analysis import boxes
from np_compile.kernels.analysis.boxes import Box
from np_compile.kernels.ir import expr as E
from np_compile.kernels.passes.pipeline import PASSES

from ...support import examples
from ..graphs import after, compiled, copied, eager_passes, preserved, traced
from ..test_random_programs import slices

# Of the passes those from `store_trimming` to the end of what follows `region_splitting`.
_NAMES = [p.__name__ for p in PASSES]
SPLIT = PASSES[_NAMES.index("store_trimming") : _NAMES.index("region_splitting") + 2]

# Boxes

PLACES = st.tuples(st.integers(0, 4), st.integers(1, 3)).map(lambda p: (p[0], p[0] + p[1]))
BOXES = st.tuples(PLACES, PLACES)


def count(*found: Box) -> np.ndarray:
    """How many of the boxes each place of an array is in."""
    held = np.zeros((8, 8), int)
    for box in found:
        held[tuple(slice(lo, hi) for lo, hi in box)] += 1
    return held


@given(BOXES, BOXES)
def test_boxes_without_others(a: Box, b: Box) -> None:
    left = boxes.without(a, b)
    np.testing.assert_array_equal(count(*left), count(a) * (1 - count(b)))
    assert boxes.meet(a, b) == bool((count(a) * count(b)).any())
    assert boxes.inside(a, b) == bool((count(a) <= count(b)).all())
    assert boxes.size(a) == count(a).sum()
    assert len(left) <= 4


@given(st.lists(BOXES, max_size=5))
def test_boxes_side_by_side_are_joined(found: list[Box]) -> None:
    joined = boxes.joined(found)
    np.testing.assert_array_equal(count(*joined) > 0, count(*found) > 0)
    assert all(not boxes.inside(a, b) for a, b in combinations(joined, 2))


def test_rows_that_are_joined_are_one_box() -> None:
    rows: list[Box] = [((k, k + 1), (0, 6)) for k in (3, 0, 2, 1)]
    assert boxes.joined(rows) == [((0, 4), (0, 6))]


def test_the_box_of_a_store() -> None:
    i, j = E.axis(3), E.axis(2)
    assert boxes.stored((E.plus(i, 1), E.integer(4)), (i,)) == ((1, 4), (4, 5))
    assert boxes.stored((E.plus(E.times(i, -1), 2), j), (i, j)) == ((0, 3), (0, 2))
    assert boxes.stored((), ()) == ()
    assert boxes.stored((E.times(i, 2),), (i,)) is None
    assert boxes.stored((i, i), (i,)) is None
    assert boxes.stored((E.plus(i, j),), (i, j)) is None
    assert boxes.stored((i,), (i, j)) is None


# The pass

HEAD = """\
x: f64[4,6] strides[6,1] input 0
v: f64[6] strides[1] input 1
p: i64[6] strides[1] input 2
t: f64[4,6] strides[6,1] temporary
u: f64[6] strides[1] temporary
r: f64[4,6] strides[6,1] output
w: f64[6] strides[1] output
q: f64[] strides[] output
"""

CUT = {
    "the inner part of a copy": (
        """\
all i < 4, j < 6: r[i, j] = x[i, j]
all i < 2, j < 4: r[(1 + i), (1 + j)] = (x[i, j] * 2.0:f64)""",
        """\
all i < 6: r[0, i] = x[0, i]
all i < 6: r[3, i] = x[3, i]
all j < 2: r[(1 + j), 0] = x[(1 + j), 0]
all k < 2: r[(1 + k), 5] = x[(1 + k), 5]
all l < 2, i < 4: r[(1 + l), (1 + i)] = (x[l, i] * 2.0:f64)""",
    ),
    "a frame of zeros": (
        """\
all i < 6: u[i] = 0.0:f64
all i < 4: u[(1 + i)] = (v[i] + v[(2 + i)])
all i < 6: w[i] = (u[i] - v[i])""",
        """\
w[0] = (0.0:f64 - v[0])
all i < 4: w[(1 + i)] = ((v[i] + v[(2 + i)]) - v[(1 + i)])
w[5] = (0.0:f64 - v[5])""",
    ),
    "a sum of unequal parts": (
        """\
u[0] = 1.0:f64
all i < 5: u[(1 + i)] = sqrt(v[i])
all i < 6: q[] sum= u[i] over i""",
        """\
all i < 5: piece9[] sum= sqrt(v[i]) over i
q[] = (1.0:f64 + piece9[])""",
    ),
    "an extreme of equal parts": (
        """\
all i < 3: u[i] = v[i]
all i < 3: u[(3 + i)] = (v[i] * v[(3 + i)])
all i < 6: q[] max= u[i] over i""",
        "all i < 3: q[] max= maximum(v[i], (v[i] * v[(3 + i)])) over i",
    ),
    "a copy that is shifted": (
        """\
all i < 6: u[i] = v[i]
all i < 5: u[i] = (v[(1 + i)] * 2.0:f64)
all i < 6: w[i] = u[i]""",
        """\
all i < 5: w[i] = (v[(1 + i)] * 2.0:f64)
w[5] = v[5]""",
    ),
    "two values of one array": (
        """\
all i < 6: u[i] = (v[i] * 2.0:f64)
all i < 6: w[i] = u[i]
all i < 5: u[i] = v[(1 + i)]
all i < 6: q[] max= u[i] over i""",
        """\
all i < 6: w[i] = (v[i] * 2.0:f64)
all j < 5: piece8[] max= v[(1 + j)] over j
q[] = maximum(piece8[], (v[5] * 2.0:f64))""",
    ),
    "the ends of a vector": (
        """\
all i < 6: w[i] = v[i]
w[5] = 0.0:f64
w[0] = 0.0:f64""",
        """\
all i < 4: w[(1 + i)] = v[(1 + i)]
w[5] = 0.0:f64
w[0] = 0.0:f64""",
    ),
    "backwards": (
        """\
all i < 6: u[i] = v[(5 + -1*i)]
u[0] = 1.0:f64
all i < 6: w[(5 + -1*i)] = u[i]""",
        """\
w[5] = 1.0:f64
all i < 5: w[(4 + -1*i)] = v[(4 + -1*i)]""",
    ),
    "what nobody reads": (
        """\
all i < 6: u[i] = sqrt(v[i])
all i < 6: w[i] = v[i]
w[2] = u[4]""",
        """\
u[4] = sqrt(v[4])
all i < 2: w[i] = v[i]
all j < 3: w[(3 + j)] = v[(3 + j)]
w[2] = u[4]""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CUT)
def test_pieces_cuts(name: str) -> None:
    text, expected = CUT[name]
    with eager_passes():
        assert after(HEAD + text, *SPLIT) == expected


KEPT = {
    "a running sum": """\
u[0] = 1.0:f64
all i < 5: u[(1 + i)] = v[i]
all i < 6: w[i] running sum= u[i] over i""",
    "a position": """\
u[0] = 1.0:f64
all i < 5: u[(1 + i)] = v[i]
all i < 6: p[0] argmax= u[i] over i rank i""",
    "a store that is read before the next": """\
all i < 6: w[i] = v[i]
all i < 6: q[] sum= w[i] over i
all i < 5: w[i] = 0.0:f64""",
    "an argument": """\
all i < 6: v[i] = 0.0:f64
all i < 5: v[i] = 1.0:f64""",
    "every other element": """\
all i < 6: w[i] = 0.0:f64
all i < 3: w[2*i] = v[i]""",
    "an index to be checked": """\
all i < 6: w[i] = v[wrap(p[i], 6, 0)]
all i < 5: w[i] = 1.0:f64""",
    "a store at computed indices": """\
u[0] = 1.0:f64
all i < 5: u[(1 + i)] = v[i]
all i < 6: w[wrap(p[i], 6, 0)] = u[i]""",
    "sums into an array": """\
all i < 6: w[i] = v[i]
all i < 5: w[(1 + i)] sum= v[i]
all i < 5: w[(1 + i)] = (w[(1 + i)] * 2.0:f64)""",
    "a value that is expensive, at other places": """\
u[0] = 0.0:f64
all i < 5: u[(1 + i)] = exp(v[i])
all i < 5: w[i] = (u[i] * u[(1 + i)])""",
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_pieces_keeps(name: str) -> None:
    with eager_passes():
        assert after(HEAD + KEPT[name], *SPLIT) == KEPT[name]


def test_small_arrays_are_left_as_they_are() -> None:
    text = """\
all i < 6: u[i] = 0.0:f64
all i < 4: u[(1 + i)] = v[i]
all i < 6: w[i] = u[i]"""
    assert after(HEAD + text, *SPLIT) == text


# Programs

PARTS = (
    lambda x, y: x * 2.0 + y, lambda x, y: np.maximum(x, y), lambda x, y: x, lambda x, y: y - 1.0,
    lambda x, y: np.sqrt(np.abs(x)) + np.floor(np.sqrt(np.abs(y))) * 3,
)  # fmt: skip
MADE: dict[str, Callable] = {
    "empty": lambda x, y: np.zeros_like(x), "copy": lambda x, y: x.copy(),
    "sum": lambda x, y: x + y, "joined": lambda x, y: np.concatenate([x[1:], y[:1]]),
    "joined by columns": lambda x, y: np.concatenate([y[..., -1:], x[..., :-1]], axis=-1),
    "padded": lambda x, y: np.pad(y[1:-1], [(1, 1), *[(0, 0)] * (y.ndim - 1)]),
    "stacked": lambda x, y: np.stack([*x[:2], *y[2:]]), "rolled": lambda x, y: np.roll(x, 1, 0),
    "gradient": lambda x, y: np.gradient(x, axis=-1) * 2,
}  # fmt: skip


def _star(x: Any) -> Any:
    """The sum of the neighbours along each axis, of zeros around the array."""
    padded = np.pad(x, 1)
    total = -2.0 * x
    for d in range(x.ndim):
        for side in (slice(None, -2), slice(2, None)):
            total = total + padded[tuple(side if k == d else slice(1, -1) for k in range(x.ndim))]
    return total


USED: dict[str, Callable] = {
    "all": lambda t, x: t * 2.0 + x, "differences": lambda t, x: t[1:] - t[:-1],
    "extreme": lambda t, x: np.abs(t - x).max(), "sum": lambda t, x: (t + x).sum(),
    "rows": lambda t, x: t.sum(axis=-1), "columns": lambda t, x: (t * x).sum(axis=0),
    "any": lambda t, x: (t > 2).any(axis=0), "position": lambda t, x: t.argmax(axis=0),
    "running": lambda t, x: np.cumsum(t, axis=0), "transposed": lambda t, x: t.T + 1.0,
    "backwards": lambda t, x: t[::-1] - x, "itself": lambda t, x: t,
    "every other": lambda t, x: t[::2],
    "laplacian": lambda t, x: t[2:] - 2 * t[1:-1] + t[:-2], "triangle": lambda t, x: np.tril(t),
    "star": lambda t, x: _star(t), "sum of stars": lambda t, x: _star(t).sum(axis=-1),
}  # fmt: skip


@st.composite
def patchworks(draw: st.DrawFn, large: bool) -> tuple[list[np.ndarray], Callable]:
    """Two arrays, and a function that makes arrays of pieces of them and works on those."""
    shapes = ((70, 30), (2000,), (9, 20, 30)) if large else ((7,), (5, 6), (4, 3, 5))
    shape = draw(st.sampled_from(shapes))
    rng = np.random.default_rng(draw(st.integers(0, 3)))
    arrays = [rng.integers(-4, 5, shape).astype("f8") for _ in range(2)]
    step = st.one_of(
        st.tuples(st.just("store"), slices(shape), st.integers(0, len(PARTS) - 1), st.booleans()),
        st.tuples(st.just("add"), slices(shape), st.integers(0, len(PARTS) - 1), st.booleans()),
        st.tuples(st.just("use"), st.sampled_from(sorted(USED)), st.booleans()),
        st.tuples(st.just("make"), st.sampled_from(sorted(MADE))),
        st.tuples(st.just("write"), slices(shape)),
    )
    first = draw(st.sampled_from(sorted(MADE)))
    steps = draw(st.lists(step, min_size=2, max_size=6))
    last = draw(st.lists(st.sampled_from(sorted(USED)), min_size=1, max_size=3))

    def program(x: Any, y: Any) -> list[Any]:
        t, results = MADE[first](x, y), []
        for kind, *rest in steps:
            if kind in ("store", "add"):
                where, part, of_itself = rest
                value = np.clip(PARTS[part]((t if of_itself else x)[where], y[where]), -40, 40)
                t[where] = value if kind == "store" else t[where] + value
            elif kind == "use":
                results.append(USED[rest[0]](t, y if rest[1] else x))
            elif kind == "make":
                t = MADE[rest[0]](t, y)
            else:
                x[rest[0]] = t[rest[0]]
        return [*results, *(USED[name](t, x) for name in last)]

    return arrays, program


def agrees(case: tuple[list[np.ndarray], Callable], check: Callable) -> None:
    """The traced program does what NumPy does, and its graphs stand the check."""
    arrays, f = case
    mine, theirs = copied(arrays), copied(arrays)
    wanted = f(*mine)
    got, graphs = traced(f, *theirs)
    for x, y in zip([*got, *theirs], [*wanted, *mine], strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-12, atol=1e-14)
    for module, inputs in graphs:
        check(module, inputs)


@settings(max_examples=examples(40))
@given(patchworks(large=False))
def test_random_patchworks(case: tuple) -> None:
    with eager_passes():
        agrees(case, preserved)


@settings(max_examples=examples(12))
@given(patchworks(large=True))
def test_random_patchworks_in_c(case: tuple) -> None:
    agrees(case, compiled)
