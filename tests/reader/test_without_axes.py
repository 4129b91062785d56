"""Arrays without axes in compiled loops: where NumPy gives an array, a scalar, or an error; and
numbers of which it makes arrays."""

from __future__ import annotations

import numpy as np
import pytest

from .support import check_whatever_leaves


def chosen(x, z):
    for i in range(2):
        x[i] += 1
    return np.where(-1, z & x[0], x[-1]), np.where(z > 0, z, z), np.where(True, 1, 2)


def kept_axes(x, z):
    for i in range(2):
        x[i] += 1
    return z.sum(keepdims=True), z.mean(keepdims=True), np.max(z, keepdims=True), x.sum(keepdims=1)


def rounded(x, z):
    for i in range(2):
        x[i] += 1
    return round(z)


def powers(x, z):
    for i in range(2):
        x[i] += 1
    return (x > 1) ** 2, (z > 1) ** 2, x**2, z**2


def outer(x, z):
    n = 0
    for i in range(2):
        n += i
    return np.add.outer(z, 1), np.add.outer(3, x), np.subtract.outer(x, n), np.multiply.outer(x, z)


def told(x, z):
    found = [type(z % 2).__name__, type(z * z).__name__, type(np.sin(z)).__name__]
    for i in range(2):
        x[i] += 1
        found.append(type(x[i] + z).__name__)
    return found, isinstance(z + 1, np.ndarray), isinstance(-z, np.generic)


FUNCTIONS = [chosen, kept_axes, rounded, powers, outer, told]


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_values(f, dtype):
    x = np.array([1, 0, 2], dtype)
    check_whatever_leaves(f, [(x, np.array(3, dtype)), (x, np.array(0, dtype)[()])])


def by_text(x, key):
    n = 0
    for i in range(len(x)):
        n += i
    try:
        return x[key]
    except IndexError as e:
        return str(e), n


def test_an_index_that_is_text():
    check_whatever_leaves(by_text, [(np.ones(2), "2"), (np.ones(2), 1), (np.ones(2), "a")])
