"""Functions that are compiled, or wrapped, by captured code: they see its variables change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from np_compile import compile, config, wrap_numpy


def made_in_each_iteration(x, make):
    y, out = x, []
    for _ in range(3):

        @make
        def longer(v):
            return v + y  # noqa: B023 - it is called before y changes

        y = longer(x)
        out.append(y)
    return out


def nonlocal_number(x, make):
    n = 0

    @make
    def counted(v):
        nonlocal n
        n += 1
        return v * n

    out = []
    for _ in range(3):
        out.append(counted(x))
        n += 1
    return out, n


def method_and_property(x, make):
    class Scaled:
        factor = 2

        @make
        def of(self, v):
            return v * x * self.factor

        @property
        @make
        def shifted(self):
            return x + self.factor

    s = Scaled()
    out = [s.of(x), s.shifted]
    x = x + 1
    return [*out, s.of(x), s.shifted]


def recursive(x, make):
    known = {}

    @make
    def up_to(n):
        if n not in known:
            known[n] = x * n + (up_to(n - 1) if n else 0)
        return known[n]

    first = up_to(3)
    x = x + 1
    return first, up_to(5), known


def lambdas(x, make):
    made = [make(lambda v, k=k: v * x + k) for k in range(3)]
    first = [f(x) for f in made]
    x = x - 5
    return first, [f(x) for f in made], list(map(made[1], [x, x]))


_factor = 3


def with_a_global(x, make):
    global _factor

    @make
    def scaled(v):
        return v * _factor

    first = scaled(x)
    _factor += 1
    second = scaled(x)
    _factor = 3
    return first, second


def given_back(x, make):
    y = x * 2

    @make
    def grown(v):
        nonlocal y
        y = y + 1
        return v + y

    grown(x)
    return grown, y


MADE = [
    made_in_each_iteration, nonlocal_number, method_and_property, recursive, lambdas, with_a_global,
]  # fmt: skip


@pytest.mark.parametrize("f", MADE, ids=lambda f: f.__name__)
def test_compiled(f):
    fast = compile(lambda x: f(x, lambda h: compile(h, backend="eager")), backend="eager")
    with config.patch(plain="never"):
        for _ in range(3):
            np.testing.assert_equal(fast(np.arange(3.0)), f(np.arange(3.0), lambda h: h))


def as_arrays(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(map(as_arrays, x))
    if isinstance(x, dict):
        return {k: as_arrays(v) for k, v in x.items()}
    return x.numpy() if isinstance(x, torch.Tensor) else x


@pytest.mark.parametrize("outer", ["wrapped", "compiled"])
@pytest.mark.parametrize("make", [compile, wrap_numpy, lambda f: compile(wrap_numpy(f))])
@pytest.mark.parametrize("f", MADE, ids=lambda f: f.__name__)
def test_of_tensors(f, make, outer):
    g = wrap_numpy(lambda x: f(x, make))
    with config.patch(plain="never", backend="eager"):
        fast = compile(g) if outer == "compiled" else g
        want = f(np.arange(3.0), lambda h: h)
        for _ in range(2):
            np.testing.assert_equal(as_arrays(fast(torch.arange(3.0).double())), want)


def test_they_outlive_the_call():
    fast = compile(lambda x: given_back(x, compile), backend="eager")
    for _ in range(2):
        want, y = given_back(np.arange(3.0), lambda h: h)
        got, its = fast(np.arange(3.0))
        np.testing.assert_array_equal(its, y)
        for _ in range(3):
            np.testing.assert_array_equal(got(np.ones(3)), want(np.ones(3)))
