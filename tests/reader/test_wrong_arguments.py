"""Arguments that NumPy's functions refuse, or take for something else than a plain call does."""

from __future__ import annotations

import numpy as np
import pytest

from .support import check_whatever_leaves

CALLS = {
    "norm": lambda x, v: np.linalg.norm(x, v),
    "norm of a vector": lambda x, v: np.linalg.norm(x[0], v),
    "sum": lambda x, v: x.sum(axis=v),
    "flip": lambda x, v: np.flip(x, v),
    "argmax": lambda x, v: np.argmax(x[0], v),
    "count": lambda x, v: np.count_nonzero(x, v),
    "cumsum": lambda x, v: np.cumsum(x[0], v),
    "eye": lambda x, v: np.eye(v),
    "linspace": lambda x, v: np.linspace(0, 1, v),
    "reshape": lambda x, v: x.reshape(v, -1),
    "split": lambda x, v: np.split(x[0], v),
    "clip": lambda x, v: np.clip(x, v, 2.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments_of_other_types(name):
    """`nuc` and `fro` are two norms; a text is no axis, a tuple no number."""
    call = CALLS[name]

    def f(x, v):
        s = 0.0
        for i in range(len(x)):
            s += x[i, i]
            x[0, i] = s
        return call(x, v), s

    x = np.arange(1.0, 10.0).reshape(3, 3)
    for v in ("nuc", "fro", True, (1,), [1], (0, 0), float, None, 1, 2.5):
        check_whatever_leaves(f, [(x, v)])


@pytest.mark.parametrize("call", [
    lambda x: x.argmax(axis=(0, 1)), lambda x: np.argmin(x, (1,)), lambda x: x[0].argmax((0,)),
])  # fmt: skip
def test_a_tuple_is_no_place_to_look_along(call):
    def f(x):
        found = []
        for i in range(2):
            found.append(call(x))
            x[0, i] += 1
        return found

    check_whatever_leaves(f, [(np.arange(6.0).reshape(2, 3),)])
