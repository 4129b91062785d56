"""Gathers, scatters, choices, counting and searching as loops."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ..support import data, first, thorough
from .native_checks import check_table

I = np.array([0, 2, -1, 2])  # noqa: E741
J = np.array([[1], [3]])
MASK, ROWS = data(6, 7, dtype="?"), data(6, dtype="?")

READS = {
    "take": lambda x: np.take(x, I),
    "take rows": lambda x: np.take(x, I, axis=0),
    "take columns": lambda x: np.take(x, J, axis=1),
    "take clipped": lambda x: np.take(x, [0, 99, -99], axis=1, mode="clip"),
    "take wrapped": lambda x: np.take(x, [0, 99, -99], axis=1, mode="wrap"),
    "rows": lambda x: x[I],
    "pairs": lambda x: x[I, J],
    "columns of a slice": lambda x: x[1:, I],
    "rows of a slice": lambda x: x[I, 1:3],
    "last axis": lambda x: x[..., I],
    "around a new axis": lambda x: x[I, None, J],
    "open mesh": lambda x: x[np.ix_([0, 2], [1, 3])],
    "triangle": lambda x: x[np.triu_indices(6)],
    "along an axis": lambda x: np.take_along_axis(x, I[None] * np.ones((6, 1), int), axis=1),
    "where": lambda x: np.where(x > 0, x, 0),
    "where, one row": lambda x: np.where(x[0] > 0, 1, x),
    "select": lambda x: np.select([x > 1, x > 0], [x, x * 2], 3),
    "choose": lambda x: np.choose(I % 3, [x[0, :4], x[1, :4], x[2, :4]]),
    "clip": lambda x: np.clip(x, 1, 3),
    "clip by an array": lambda x: np.clip(x, x[0], None),
    "piecewise": lambda x: np.piecewise(x, [x < 1, x >= 1], [1, 2]),
    "sum of chosen": lambda x: np.sum(x, where=x > 0),
    "deleted": lambda x: np.delete(x, [1, 2], axis=0),
    "inserted": lambda x: np.insert(x, [1, 2], 0, axis=0),
    "compressed": lambda x: np.compress([True, False, True], x, axis=0),
}


@pytest.mark.parametrize("dtype", first("dflBhD", *"dBD"))
def test_reads_at_computed_places(dtype):
    x = data(6, 7, dtype=dtype)
    ordered = ("select", "clip", "clip by an array", "piecewise", "sum of chosen", "where")
    table = {
        n: (f, (x,))
        for n, f in READS.items()
        if dtype != "D" or n not in (*ordered, "where, one row")
    }
    check_table(table)


def rows_to_one(y):
    y[I] = 1


def elements_in_turn(y):
    y[I, [0, 1, 2, 3]] = np.arange(4)


def the_last_of_equal_places_wins(y):
    y[np.array([0, 0, 0])] = np.arange(21).reshape(3, 7)


def added_once_each(y):
    y[I] += 1


def added_at(y):
    np.add.at(y, (I, I), 2)


def rows_added_at(y):
    np.add.at(y, I, y[0] * 2)


def subtracted_at(y):
    np.subtract.at(y, I, 2)


def multiplied_at(y):
    np.multiply.at(y, (I,), 2)


def greatest_at(y):
    np.maximum.at(y, I, 1)


def least_at(y):
    np.minimum.at(y, (I, I), 2)


def masked(y):
    y[MASK] = 0


def rows_masked(y):
    y[ROWS] = y[0]


def masked_doubled(y):
    y[MASK] *= 2


def put(y):
    np.put(y, I, [9, 8])


def put_along(y):
    np.put_along_axis(y, np.argmax(y, axis=1)[:, None], 0, axis=1)


def copied_where(y):
    np.copyto(y, 0, where=MASK)


def put_by_mask(y):
    np.putmask(y, MASK, [1, 2, 3])


def placed(y):
    np.place(y, MASK, [1, 2, 3])


def part_of_rows(y):
    y[I, 1:3] = 5


def columns_swapped(y):
    y[:, I] = y[:, I][:, ::-1]


def through_a_view(y):
    y[::2].T[I] = 3


WRITES = (
    rows_to_one, elements_in_turn, the_last_of_equal_places_wins, added_once_each, added_at,
    rows_added_at, subtracted_at, multiplied_at, greatest_at, least_at, masked, rows_masked,
    masked_doubled, put, put_along, copied_where, put_by_mask, placed, part_of_rows,
    columns_swapped, through_a_view,
)  # fmt: skip


@pytest.mark.parametrize("dtype", first("dflhD", *"dhD"))
def test_writes_at_computed_places(dtype):
    def on_copy(write):
        def run(x):
            y = x * 1
            write(y)
            return y

        return run

    unordered = (greatest_at, least_at, put_along, multiplied_at)
    chosen = [w for w in WRITES if dtype != "D" or w not in unordered]
    check_table({w.__name__: (on_copy(w), (data(6, 7, dtype=dtype),)) for w in chosen})


def test_writes_at_computed_places_of_an_argument():
    def on_argument(write):
        def run(x):
            write(x)
            return x.sum()

        return run

    check_table({w.__name__: (on_argument(w), (data(6, 7),)) for w in WRITES})


def test_indices_that_are_arguments():
    def read(x, i, j):
        return x[i], x[i, j], np.take(x, j, axis=1), x[i].sum(0)

    def write(x, i, j):
        y = x * 1
        y[i] += 1
        y[i, j] = 5
        np.add.at(y, i, 1)
        return y

    for kind in "libB":
        i, j = np.array([0, 2, 1]).astype(kind), np.array([1, 1, 3]).astype(kind)
        check_table({"read": (read, (data(4, 5), i, j)), "write": (write, (data(4, 5), i, j))})


def test_counting_and_searching():
    x, k = data(6, 7), np.array([1, 3, 1, 0, 7, 3])
    edges = np.array([-2.0, -1, 0, 2])
    check_table(
        {
            "bincount": (lambda k: np.bincount(k, minlength=9), (k,)),
            "weighted": (lambda k, w: np.bincount(k, w, 9), (k, x[:, 0].copy())),
            "histogram": (lambda x: np.histogram(x, bins=5, range=(-2, 2)), (x,)),
            "histogram of bins": (lambda x: np.histogram(x, bins=edges), (x,)),
            "two dimensions": (
                lambda x: np.histogram2d(x[0], x[1], bins=3, range=[[-2, 2], [-2, 2]]),
                (x,),
            ),
            "searchsorted": (lambda x: np.searchsorted(edges, x), (x,)),
            "searchsorted right": (lambda x: np.searchsorted(edges, x, side="right"), (x,)),
            "digitize": (lambda x: np.digitize(x, edges), (x,)),
            "interp": (lambda x: np.interp(x, edges, edges**2), (x,)),
            "unravel": (lambda k: np.unravel_index(k, (3, 4)), (k,)),
        },
        new=False,
    )


@pytest.mark.parametrize("kind", first("dfliB", *"dlB"))
@pytest.mark.parametrize("size", [1, 7, 8, *thorough(2, 9), 1000])
def test_search_among_equal_values_and_nans(kind, size):
    base = np.sort(data(size, dtype=kind))
    wanted = np.concatenate([base, base + base.dtype.type(1), data(20, dtype=kind, seed=1)])
    if kind in "df":
        wanted = np.concatenate([wanted, [np.nan, np.inf, -np.inf]]).astype(kind)
    check_table(
        {
            side: (lambda b, v, s=side: np.searchsorted(b, v, side=s), (base, wanted))
            for side in ("left", "right")
        },
        new=False,
    )


@pytest.mark.parametrize("lies", [np.s_[:], np.s_[::2, ::3], np.s_[::2, :2], np.s_[::-2, ::-1]])
def test_the_diagonal_of_axes_read_backwards_is_filled(lies):
    import np_compile

    def fill(x):
        np.fill_diagonal(x[::-1], [1, 2])
        np.fill_diagonal(x[:, ::-1].T, 0.5)

    fast = np_compile.compile(fill, backend="native", fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            ours, own = data(4, 6), data(4, 6)
            fast(ours[lies])
            fill(own[lies])
            np.testing.assert_array_equal(ours, own)


def test_an_index_out_of_bounds_is_an_error():
    import np_compile

    fast = np_compile.compile(lambda x, i: x[i] * 2, backend="native")
    x = data(5)
    np.testing.assert_array_equal(fast(x, np.array([4, -5])), x[[4, 0]] * 2)
    for wrong in (5, -6, 1 << 40):
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0"):
            fast(x, np.array([0, wrong]))
