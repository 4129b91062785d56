"""Updates in place from neighbours, of a GPU: to a copy and back, as often as they come."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

from np_compile.kernels.compile import generate, targeting
from np_compile.kernels.ir.parse import parse
from np_compile.kernels.ir.program import statements, text
from np_compile.kernels.passes.double_buffering import double_buffering
from np_compile.kernels.target import Gpu

from ...support import data
from ..graphs import SMALL_GPU, captured, preserved

HEAD = """x0: f64[8] strides[1] input 0
t1: f64[6] strides[1] temporary
t2: f64[6] strides[1] temporary
t3: f64[6] strides[1] temporary
"""
MADE = "all i < 6: {t}[i] = ({x}[i] + {x}[(2 + i)])\n"
STORED = "all j < 6: {x}[(1 + j)] = {t}[j]\n"


def steps(*parts):
    return "".join(parts)


def after(body):
    made = text(double_buffering(parse(HEAD + body), Gpu())).split("temporary\n")[-1]
    return re.sub(r"\bc\d+", "c", made)  # the axis of the copy


def test_two_updates_go_to_the_copy_and_back():
    body = steps(
        MADE.format(t="t1", x="x0"), STORED.format(t="t1", x="x0"),
        MADE.format(t="t2", x="x0"), STORED.format(t="t2", x="x0"),
    )  # fmt: skip
    assert [line.split(": ", 1)[1] for line in after(body).splitlines()] == [
        "other4[c] = x0[c]",
        "t1[i] = (x0[i] + x0[(2 + i)])",
        "other4[(1 + j)] = t1[j]",
        "t2[i] = (other4[i] + other4[(2 + i)])",
        "x0[(1 + j)] = t2[j]",
    ]


def test_of_three_the_first_reads_the_copy():
    body = steps(
        *(MADE.format(t=t, x="x0") + STORED.format(t=t, x="x0") for t in ("t1", "t2", "t3"))
    )
    made = after(body)
    assert [("other4[i]" in line, "x0[i]" in line) for line in made.splitlines()[1::2]] == [
        (True, False), (False, True), (True, False),
    ]  # fmt: skip
    assert made.rstrip().endswith("x0[(1 + j)] = t3[j]")


@pytest.mark.parametrize(
    "between",
    [
        "x0[0] = 1.0:f64\n",  # the copy would not have it
        "all k < 5: x0[(1 + k)] = t1[k]\n",
        "fence\n",
    ],
)
def test_what_stays_as_it_is(between):
    body = steps(
        MADE.format(t="t1", x="x0"), STORED.format(t="t1", x="x0"), between,
        MADE.format(t="t2", x="x0"), STORED.format(t="t2", x="x0"),
    )  # fmt: skip
    assert "other" not in after(body)


def test_one_update_stays_as_it_is():
    body = steps(MADE.format(t="t1", x="x0"), STORED.format(t="t1", x="x0"))
    assert "other" not in after(body)


def test_what_is_read_beside_stays_as_it_is():
    body = steps(
        MADE.format(t="t1", x="x0"), STORED.format(t="t1", x="x0"),
        MADE.format(t="t2", x="x0"), STORED.format(t="t2", x="x0"),
        "all k < 6: t3[k] = t1[k] + t2[k]\n".replace("t1[k] + t2[k]", "(t1[k] + t2[k])"),
    )  # fmt: skip
    assert "other" not in after(body)


def heat(u, n):
    for _ in range(n):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] - 2 * u[1:-1, 1:-1]) + u[1:-1, 2:]
    return u.sum()


def two_fields(u, n):
    v = u[::-1].copy()
    for _ in range(n):
        du = v[2:] - v[:-2]
        dv = u[2:] + u[:-2] * u[1:-1]
        u[1:-1] += 0.1 * du
        v[1:-1] -= 0.1 * dv
    return v


def with_ends(u, n):
    for _ in range(n):
        u[1:-1] = 0.5 * (u[2:] + u[:-2])
        u[0] = u[1]
    return u * 2


def watched(u, n):
    seen = []
    for _ in range(n):
        u[2:] = u[:-2] * 0.5 + u[1:-1]
        seen.append(u.max())
    return seen


def of_two_boxes(u, n):
    for k in range(n):
        if k % 2:
            u[1:-1] = u[2:] - u[:-2]
        else:
            u[1:-2] = u[2:-1] - u[:-3]
    return u


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("f", [heat, two_fields, with_ends, watched, of_two_boxes])
def test_programs(f, n):
    for machine in (SMALL_GPU, Gpu()):
        for module, inputs in captured(f, data(7, 6) if f is heat else data(9), n):
            with targeting(machine):
                preserved(module, inputs)


@pytest.mark.parametrize("n", [2, 3])
def test_an_update_is_one_pass_over_memory(n):
    def plate(u):
        for _ in range(n):
            u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] - 2 * u[1:-1, 1:-1])

    ((module, _),) = captured(plate, np.zeros((600, 600), np.float32))
    with targeting(Gpu()):
        program = generate(module.graph, partial(getattr, module)).program
    assert len(program.steps) == n + 1  # and the copy
    stored = {s.target for step in program.steps for s in statements(step)}
    assert not [b.name for b in stored if b.kind == "temporary" and b.name.startswith("t")]
