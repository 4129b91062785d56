"""A dozen programs through the default back end, which generates and compiles C++."""

from __future__ import annotations

import numpy as np
import pytest

from np_compile.backends.by_torch import has_compiler

from ..support import check, data, thorough

pytestmark = pytest.mark.skipif(not has_compiler(), reason="no C++ compiler for inductor")


def elementwise(x, s):
    return np.sqrt(np.sin(x) ** 2 + np.cos(x) ** 2) * np.exp(x * s) + 1


def normalized(x):
    y = x - x.mean(axis=0)
    return y / (y.std(axis=0) + 1e-3), y.max(), y.argmin(axis=1)


def stencil_in_place(u, steps):
    for _ in range(steps):
        u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u.sum()


def convergence(x):
    n = 0
    while np.abs(x).max() > 0.01:
        x = x * 0.3
        n += 1
    return x, n


def reversed_views(x):
    v = x[::-1]
    v[0] = 5
    x[1:][::2] *= 2
    return v, x.T


def integers_wrap(x):
    return x + x, x * 3, x.sum(), x // 2, x % 3, x > 2


def distances(a, b):
    d = ((a[:, None] - b[None]) ** 2).sum(-1)
    return d.argmin(1), np.sqrt(d.min(1))


def softmax(x, w):
    z = x @ w
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def masks_and_where(x):
    y = np.where(x > 0, x, -x * 0.5)
    return y[y > 0.5].sum(), np.clip(y, 0.1, 0.9)


def walking_rows(x):
    for i in range(1, len(x)):
        x[i] = x[i] * 0.5 + x[i - 1]
    return x


def prints_in_between(x):
    y = np.tanh(x) * 2
    print(np.round(y[0], 3))
    return y + 1


def special_values(x):
    return np.isnan(x), np.maximum(x, 0), np.sign(x), np.nan_to_num(x), x == x


# One of each kind: elements and reductions, views that are written to.
PROGRAMS = {
    normalized: (data(12, 5),),
    stencil_in_place: (data(40), 12),
}
MORE = {
    elementwise: (data(50), 0.25),
    masks_and_where: (data(20),),
    convergence: (data(6),),
    reversed_views: (data(6, 3),),
    integers_wrap: (np.array([100, 3, -7, 127], np.int8),),
    distances: (data(9, 2), data(4, 2, seed=1)),
    softmax: (data(6, 4), data(4, 3)),
    walking_rows: (data(12, 3),),
    prints_in_between: (data(5),),
    special_values: (np.array([np.nan, np.inf, -np.inf, -0.0, 2.0]),),
}


@pytest.mark.parametrize("f", [*PROGRAMS, *thorough(*MORE)])
def test_program_through_inductor(f):
    args = PROGRAMS.get(f) or MORE[f]
    check(f, *args, backend="inductor", rtol=1e-9)
