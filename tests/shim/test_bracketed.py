"""`np.r_` and `np.c_` on arrays of the shim, in captured code, and with gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import np_compile
from np_compile import shim

from ..support import check, data

KEYS = [
    lambda r, c, x, a: r[x, 0.0, x[::-1], 1:3],
    lambda r, c, x, a: r[-1:1:5j, x],
    lambda r, c, x, a: r[x],
    lambda r, c, x, a: r[x.sum(), x[0], 2, True],
    lambda r, c, x, a: r[x, 1j],
    lambda r, c, x, a: r[a, a],
    lambda r, c, x, a: r["1", a, a],
    lambda r, c, x, a: r["-1", x, x],
    lambda r, c, x, a: r["0,2", x, x],
    lambda r, c, x, a: r["0,3,0", x, a[0]],
    lambda r, c, x, a: r["1,3,-2", x, x],
    lambda r, c, x, a: r["1,2,0", x, 0 : len(x)],
    lambda r, c, x, a: r[[x[0], x[1]], 0],
    lambda r, c, x, a: c[x],
    lambda r, c, x, a: c[x, x],
    lambda r, c, x, a: c[a[:, :1], x, 0 : len(x)],
    lambda r, c, x, a: c[x.sum(), x.max()],
]
WRONG = [
    lambda r, c, x, a: r["q", x],
    lambda r, c, x, a: r[x, "0"],
    lambda r, c, x, a: r[a, x],
    lambda r, c, x, a: c[x, x[:2]],
    lambda r, c, x, a: c[a, x[0]],
    lambda r, c, x, a: r["0,2,5", x],
    lambda r, c, x, a: r["0,0", x.sum()],
]


@pytest.mark.parametrize("key", [*KEYS, *WRONG])
def test_joined_by_brackets(key):
    check(lambda x, a: key(np.r_, np.c_, x, a), data(3), data(3, 2, seed=1))


@pytest.mark.parametrize("key", KEYS)
def test_joined_by_brackets_in_the_shim(key):
    x, a = data(3), data(3, 2, seed=1)
    expected = key(np.r_, np.c_, x, a)
    made = np.asarray(key(shim.r_, shim.c_, *map(shim.asarray, (x, a))))
    np.testing.assert_array_equal(made, expected)
    assert made.dtype == expected.dtype


@pytest.mark.parametrize("key", WRONG)
def test_what_is_wrong_has_numpys_words(key):
    x, a = data(3), data(3, 2, seed=1)
    with pytest.raises(ValueError) as expected:  # noqa: PT011
        key(np.r_, np.c_, x, a)
    with pytest.raises(ValueError) as found:  # noqa: PT011
        key(shim.r_, shim.c_, *map(shim.asarray, (x, a)))
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: np_compile.compile(f, backend="eager")])
def test_brackets_hand_gradients_on(wrap):
    f = wrap(np_compile.wrap_numpy(lambda x: np.r_[x, 0.0, x[0]] * 2 + np.c_[x, x].sum()))
    x = torch.arange(3.0, requires_grad=True)
    made = f(x)
    assert made.tolist() == [6.0, 8.0, 10.0, 6.0, 6.0]
    (slope,) = torch.autograd.grad(made.sum(), x)
    assert slope.tolist() == [14.0, 12.0, 12.0]


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_matrices_stay_numpys():
    made = np_compile.compile(lambda x: np.r_["c", x], backend="eager")(np.arange(3.0))
    assert type(made) is np.matrix
    assert made.shape == (3, 1)


def test_a_call_with_brackets_is_kept():
    f = np_compile.compile(lambda x: np.r_[x, 0.0] * np.c_[x, x].sum())
    for k in range(3):
        np.testing.assert_array_equal(f(np.full(3, k)), [6 * k * k] * 3 + [0])
    assert f._keeper.kept
