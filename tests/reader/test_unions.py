"""Numbers that are Python's in the first iteration and an array's elements in those after it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import np_compile

from ..support import compare, observe, thorough
from .support import check_whatever_leaves, same_signs, whole

SOURCE = """
import numpy as np

def f(x, a, c, last):
    b = 0
    for k in range(3):
        y = EXPRESSION
        z = a + 0
        if k == last:
            return y, z
        a = x[k]
    return y, z
"""
EXPRESSIONS = [
    "a + c", "a / c", "a // c", "a % c", "a ** 2", "a > c", "-a", "~a", "a & c", "a << 1",
    "np.abs(a)", "np.maximum(a, c)", "x[1] * a", "(a > c) * a", "np.where(x > 2, a, x)", "x + a",
    "min(a, c)", "float(a)",
    *thorough("c - a", "a * c", "c == a", "abs(a)", "a + x[0]", "a if a > c else c"),
]  # fmt: skip
NUMBERS: list[tuple[Any, Any]] = [
    (-4, 3), (500, -300), (3, 70000), (0.1, 3), (3, 0.1), (0.1, 0.1), (True, 3), (-4, True),
]  # fmt: skip


MOST = ("u2", "f4")
ALL = pytest.param(("i1", "i8", "f8", "?", *MOST), NUMBERS, marks=pytest.mark.thorough, id="all")


@pytest.mark.parametrize(("dtypes", "numbers"), [(MOST, NUMBERS[:2] + NUMBERS[4:6]), ALL])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_kinds_that_change(expression: str, dtypes: tuple, numbers: list, tmp_path: Path) -> None:
    path = tmp_path / "changing_kinds.py"
    path.write_text(SOURCE.replace("EXPRESSION", expression))
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), names)
    f = names["f"]
    with whole(), np.errstate(all="ignore"):
        for dtype in dtypes:
            fast = np_compile.compile(f)
            x = ((np.arange(4) + 1) * (0.1 if dtype[0] == "f" else 1)).astype(dtype)
            for (a, c), last in itertools.product(numbers, (0, 1)):
                got, want = (observe(g, (x.copy(), a, c, last), {}) for g in (fast, f))
                compare(got, want, 0)
                same_signs(got.result, want.result)


def of_either(q, b):
    for _ in range(len(q) - 3):
        b -= 0.5
    return np.maximum(q, b), q + b


def test_numbers_of_pythons_that_are_integers_or_floats_beside_arrays():
    """Beside integers the dtype depends on which it is."""
    calls = [(np.array(v, d), b) for d in ("i2", "f4", "f8") for v in ([3, 0, 2], [1, 2, 3, 4])
             for b in (1, 0, 1.5)]  # fmt: skip
    check_whatever_leaves(of_either, calls)
