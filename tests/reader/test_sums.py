"""Sums of floats that a loop adds to several times in an iteration, of elements side by side in
another order than they lie: what gcc 12 makes of them as vectors is wrong."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile

from ..support import examples
from .support import Case, check, each, exact, whole

X = np.arange(24.0) + 1
M = X.reshape(12, 2)


def twice(x):
    s = 0.0
    for j in range(len(x) // 2):
        s += x[2 * j + 1]
        s += x[2 * j]
    return s


def in_one(x):
    s = 0.0
    for j in range(len(x) // 2):
        s = s + x[2 * j + 1] + x[2 * j]
    return s


def of_rows(m):
    s = 0.0
    for j in range(len(m)):
        s += m[j, 1] * m[j, 1] + 0.25
        s += m[j, 0] * m[j, 0] + 0.25
    return s


def in_an_element(x, out):
    for j in range(len(x) // 2):
        out[0] += x[2 * j + 1]
        out[0] += x[2 * j]
    return out


def plus(a, b):
    return a + b


def by_a_function(x):
    s = 0.0
    for j in range(len(x) // 2):
        s = plus(plus(s, x[2 * j + 1]), x[2 * j])
    return s


def of_parts(z):
    s = 0.0
    for j in range(len(z)):
        s += z[j].imag
        s += z[j].real
    return s


def four(x):
    s = np.float32(0)
    for j in range(len(x) // 4):
        s += x[4 * j + 3]
        s += x[4 * j + 2]
        s += x[4 * j + 1]
        s += x[4 * j]
    return s


def by_a_loop(m):
    s = 0.0
    for j in range(len(m)):
        for i in range(m.shape[1] - 1, -1, -1):
            s += m[j, i] * 2
        s += m[j, 0]
    return s


class Total:
    def __init__(self):
        self.s = 0.0

    def add(self, x):
        self.s += x


def of_an_object(x):
    o = Total()
    for j in range(len(x) // 2):
        o.s += x[2 * j + 1]
        o.s += x[2 * j]
    return o.s


def of_an_object_in_one(x):
    o = Total()
    for j in range(len(x) // 2):
        o.s = o.s + x[2 * j + 1] + x[2 * j]
    return o.s


def by_a_method(x):
    o = Total()
    for j in range(len(x) // 2):
        o.add(x[2 * j + 1])
        o.add(x[2 * j])
    return o.s


def more(out, x):
    out[0] += x


def in_an_element_by_a_function(x, out):
    for j in range(len(x) // 2):
        more(out, x[2 * j + 1])
        more(out, x[2 * j])
    return out


CASES: list[Case] = [
    exact(in_an_element_by_a_function, (X, np.zeros(2)), (X.astype(np.int32), np.zeros(2))),
    # C knows that a double is no number of another type, so the attribute stays in a register.
    *(exact(f, (X.astype(np.int32),)) for f in (of_an_object, of_an_object_in_one, by_a_method)),
    exact(twice, (X,), (X[:1],)),
    exact(in_one, (X,)),
    exact(of_rows, (M,), (M.astype(np.float32),)),
    exact(in_an_element, (X, np.zeros(2))),
    exact(by_a_function, (X,)),
    exact(of_parts, (X[::2] + 1j * X[1::2],)),
    exact(four, (X.astype(np.float32),)),
    exact(by_a_loop, (M,), (X.reshape(6, 4),)),
]


@each(CASES)
def test_sums(c: Case) -> None:
    check(c)


@settings(max_examples=examples(10), deadline=None)
@given(
    width=st.integers(2, 4), order=st.permutations(range(4)), few=st.integers(2, 4),
    squares=st.booleans(), dtype=st.sampled_from(["f8", "f4"]),
)  # fmt: skip
def test_sums_in_any_order(width, order, few, squares, dtype) -> None:
    a, b, c = (k % width for k in order[:3])
    x = (np.arange(1, 24 * width + 1) % 13).astype(dtype)

    def added(x):
        s = 0.0
        for j in range(len(x) // width):
            s += x[width * j + a] ** 2 if squares else x[width * j + a]
            s += x[width * j + b]
            if few > 2:
                s += x[width * j + c]
        return s

    with whole():
        assert np_compile.compile(added)(x) == added(x)
