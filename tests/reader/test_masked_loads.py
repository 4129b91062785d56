"""GCC makes choices of branches only where no load under a mask may lie in a group."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile
from np_compile.reader import masked_loads

from .support import check, exact, whole

FORBIDDEN = "no-tree-loop-if-convert"


def loop(head, *body):
    return [f"for ({head}) {{", *body, "}"]


AXIS = "i64 i_1 = 0; i_1 < n_2; i_1++"
CASES = [
    (False, loop(AXIS, "p_1[i_1] = minimum_f64(p_2[i_1], (v_7 + p_8[i_1]));")),
    (False, loop(AXIS, "p_1[i_1] = minimum_f64(p_2[i_1 * 2L], v_1);")),
    (False, loop(AXIS, "p_1[i_1] = (p_2[i_1] != 0 ? p_3[i_1] : p_4[i_1 * n_5]);")),
    (False, loop(AXIS, "p_1[i_1 * 2L] = p_2[i_1 * 2L + 1];")),
    (True, loop(AXIS, "p_1[i_1] = (p_2[i_1 * 2L] != 0 ? p_3[i_1 * 2L + 1] : 0);")),
    (True, loop(AXIS, "p_1[i_1] = (p_2[i_1] != 0 ? p_3[2L * i_1] : 0);")),
    (True, loop(AXIS, "p_1[i_1] = (p_2[i_1] != 0 ? p_3[i_1].r : 0);")),
    (False, loop(AXIS, "p_1[i_1] = (p_2[i_1] != 0 ? p_3[i_9 * 4L + i_1] : 0);")),
    (True, loop(AXIS, "p_1[i_1] = (p_2[i_1] != 0 ? p_3[(i_9 + i_1) * 4L] : 0);")),
    (True, loop(AXIS, "const i64 k_7 = (i_1 + 1L);",
                "p_1[i_1] = (p_2[i_1] != 0 ? p_3[k_7 * 4L] : 0);")),
    (True, loop(AXIS, "p_1[i_1] = floordiv_f64(p_2[i_1 * 2L], v_1);")),
    (True, loop(AXIS, *loop("i64 i_2 = 0; i_2 < n_3; i_2++", "if (p_1[i_2 * 3L]) {", "v++;", "}"))),
    (True, loop("i64 k_1 = 0; k_1 < n_2; k_1++", "if (p_2[k_1]) {", "p_1[k_1] = p_3[k_1];", "}")),
    (False, loop("i64 k_1 = 0; k_1 < 9; k_1++", "if (v_2) {", *loop(AXIS, "p_1[i_1] = 0;"), "}")),
    (False, loop("i64 k_1 = 0; k_1 < n_2; k_1++", "v_3 = v_3 + p_1[k_1 * 2L];")),
    (
        True,
        loop(AXIS, "if (p_2[i_1]) {", "#pragma GCC unroll 8",
             *loop("i64 i_2 = 0; i_2 < 2L; i_2++", "p_1[i_1 * 2L + i_2] = 0;"), "}"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("may_be", "lines"), CASES)
def test_which_loops_may_have_them(may_be, lines) -> None:
    assert masked_loads.may_be(lines) is may_be


def nearest(x, n):
    for i in range(n):
        for k in range(n):
            if x[i, k] != np.inf:
                x[i] = np.minimum(x[i], x[i, k] + x[k])
    return x


def picked(x, n):
    for k in range(1, n):
        if x[k, 0] > 0:
            for i in range(len(x)):
                if x[i, 1] > x[k, 0]:
                    x[i, 0] = x[k, 1]
    return x


@pytest.mark.parametrize(("f", "columns", "forbidden"), [(nearest, 12, False), (picked, 2, True)])
def test_what_is_forbidden(f, columns, forbidden) -> None:
    x = np.random.default_rng(0).normal(size=(12, columns))
    x[3, 1] = np.nan
    check(exact(f, (x, columns)))
    with whole():
        text = np_compile.inspect(f)(x.copy(), columns)[0].output
    if "#pragma GCC target" in text:
        assert (FORBIDDEN in text) is forbidden
