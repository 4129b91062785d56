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


ELEMENTARY = [
    (True, loop(AXIS, "p_1[i_1] = (p_2[i_1] + log_f64(p_3[i_1 * 6L]));")),
    (True, ["if (v_2) {", "#pragma GCC unroll 8", *loop(AXIS, "p_1[i_1] = exp_f32(v_1);"), "}"]),
    (True, loop("i64 k_1 = 0; k_1 < n_2; k_1++", "p_1[k_1] = tanh_f64(p_2[k_1]);")),
    (False, loop(AXIS, "p_1[i_1] = log1p_f64(p_2[i_1]);")),
    (False, loop("i64 k_1 = 0; k_1 < n_2; k_1++", "if (v_1) {", "v_2 = exp_f64(v_3);", "}")),
    (False, loop("i64 k_1 = 0; k_1 < n_2; k_1++", "v_2 = exp_f64(v_3);", *loop(AXIS, "v_4++;"))),
]


@pytest.mark.parametrize(("has", "lines"), ELEMENTARY)
def test_which_loops_make_bits_of_choices(has, lines) -> None:
    assert masked_loads.has_elementary(lines) is has


def branching(x, places):
    """Elementary functions of all rows, in code in which choices of branches are forbidden."""
    logs, raised = np.empty_like(x), np.empty_like(x)
    for t in range(len(x)):
        logs[t] = np.log(x[t])
        raised[t] = np.exp(x[t]) + np.tanh(x[t])
    for t in range(len(places)):
        if x[0, places[t]] > 0:
            places[t] = places[t] * 2
    return logs, raised


def straight(x):
    logs, raised = np.empty_like(x), np.empty_like(x)
    for t in range(len(x)):
        logs[t] = np.log(x[t])
        raised[t] = np.exp(x[t]) + np.tanh(x[t])
    return logs, raised


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_choices_of_elementary_functions_by_bits(dtype) -> None:
    """The same bits as by choices, and NumPy's values where there is but one."""
    kind = np.finfo(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0, kind.max, kind.tiny,
               kind.smallest_subnormal, -kind.smallest_subnormal, kind.tiny / 8]  # fmt: skip
    x = np.random.default_rng(0).normal(size=(5, len(special))).astype(dtype) * 90
    x[1] = special
    x[2] = np.abs(x[2])
    places = np.zeros(5, np.int64)
    with whole(), np.errstate(all="ignore"):
        text = np_compile.inspect(branching)(x, places)[0].output
        by_bits = np_compile.compile(branching)(x, places)
        by_choices = np_compile.compile(straight)(x)
        expected = straight(x)
    if "#pragma GCC target" in text:
        assert FORBIDDEN in text
        assert "#define NO_CHOICES" in text
    for got, other, value in zip(by_bits, by_choices, expected, strict=True):
        np.testing.assert_array_equal(got, other)
        numbers = ~np.isnan(value)
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(other[numbers]))
        np.testing.assert_allclose(got, value, rtol=8 * kind.eps)
