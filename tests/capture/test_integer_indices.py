"""NumPy's integers that a program computes as indices: the tape is cut for them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import np_compile

from ..support import check, compare, compiled, observe


def by_argmax(x, classes):
    return np.array([classes[np.argmax(row)] for row in x])


def by_elements(x, rows, columns):
    out = np.zeros(len(rows))
    for k in range(len(rows)):
        i, j = rows[k], columns[k]
        out[k] = x[i, j] + x[i, 1:j].sum() + x[j, ..., None, i][0]
    return out


def counted(n, places):
    for p in places:
        n[p] += 1
        n[p, 0] = n[p].sum()
    return n


def swapped(x):
    k = np.argmin(x)
    x[0], x[k] = x[k], x[0]
    x[[k, 0]] += 1
    return x, k


ROWS = np.array([3, 0, 2, 3])
PROGRAMS = [
    (by_argmax, (np.random.default_rng(0).random((6, 4)), np.array([5, 7, 1, 3]))),
    (by_elements, (np.arange(16.0).reshape(4, 4), ROWS, ROWS[::-1].copy())),
    (counted, (np.zeros((4, 3), int), ROWS)),
    (swapped, (np.array([4.0, 2.0, 1.0, 3.0]),)),
]


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_programs(f, args, backend, recorded):
    check(f, *args, backend=backend)


@pytest.mark.parametrize(("f", "args"), PROGRAMS[1:3], ids=lambda x: getattr(x, "__name__", ""))
def test_on_tensors(f, args):
    """Where elements are recorded, not read at once."""
    fast = np_compile.compile(np_compile.wrap_numpy(f), backend="eager")
    for _ in range(2):
        mine = [a.copy() for a in args]
        its = [torch.from_numpy(a.copy()) for a in args]
        np.testing.assert_allclose(fast(*its).numpy(), f(*mine))
        np.testing.assert_array_equal(its[0].numpy(), mine[0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x[y, 0],
        lambda x, y: x[y.reshape(()), 0],
        lambda x, y: x[y * 1j, 0],
        lambda x, y: x[y[0], 0],
        lambda x, y: x.__setitem__((y, 0), 1),
        lambda x, y: x[y.sum(), 0],
    ],
)
def test_no_index_beside_an_integer_has_numpys_words(f):
    arguments = np.ones((3, 3)), np.array([1.5])
    fast, _ = compiled(f)
    compare(observe(fast, arguments, {}), observe(f, arguments, {}))


NONE = np.zeros(0, int)


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(("place", "shape"), [(0, (0, 3)), (-1, (0, 3)), (5, (2, 0)), (1, (2, 3))])
def test_a_number_beside_indices_without_elements_of_ufunc_at(place, shape, dynamic, backend):
    """It has to lie within its axis, though no element is taken."""

    def f(q, k):
        np.add.at(q, (k, NONE), 2.0)
        np.maximum.at(q, k, 1.0)
        return q

    fast, _ = compiled(f, backend, dynamic=dynamic)
    with np_compile.config.patch(plain="never"):
        for _ in range(2):
            arguments = np.zeros(shape), place
            compare(observe(fast, arguments, {}), observe(f, arguments, {}))


@pytest.mark.parametrize("stop", [np.float64(2), np.float16(2), np.bool_(True)])
def test_a_slice_takes_no_float_that_equals_an_integer(stop: np.generic) -> None:
    def f(x, k):
        return x[:k] + 1

    fast = np_compile.compile(f, backend="eager")
    assert fast(np.arange(3.0), int(stop)).tolist() == f(np.arange(3.0), int(stop)).tolist()
    with pytest.raises(TypeError, match="slice indices must be integers"):
        fast(np.arange(3.0), stop)


@pytest.mark.parametrize("span", [np.timedelta64(2, "D"), np.timedelta64(1, "s")], ids=str)
def test_a_span_of_time_is_no_index(span: np.timedelta64, recorded: None) -> None:
    """Though its class is a subclass of NumPy's integers."""

    def f(x, k):
        keys = (k, (k,), (k, ...), slice(k, None), slice(None, k), slice(None, None, k))
        found = []
        for key in keys:
            for a in (x + 1, x[0, 0].copy()[()] if x.ndim == 2 else x[0].copy()):
                try:
                    found.append(np.asarray(a)[key])
                except (IndexError, TypeError) as e:
                    found.append((type(e).__name__, str(e)))
        try:
            x[k] = 1
        except IndexError as e:
            found.append(str(e))
        return found, x

    for x in (np.ones(3), np.ones((3, 2))):
        check(f, x, span)
