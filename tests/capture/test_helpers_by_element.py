"""Helper functions that go by elements, called from code that is recorded: each runs by itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config

from ..support import Copier, compare, observe


def merge(a, b):
    out = np.empty(len(a) + len(b), dtype=a.dtype)
    i = j = 0
    for k in range(len(out)):
        if j >= len(b) or (i < len(a) and a[i] <= b[j]):
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
    return out


def merge_sort(a):
    if len(a) < 2:
        return a
    return merge(merge_sort(a[: len(a) // 2]), merge_sort(a[len(a) // 2 :]))


def running(x, limit):
    total = 0.0
    for k in range(len(x)):
        total += x[k]
        if total > limit:
            total = 0.0
        x[k] = total
    return x, x[1:], total


# A function that deletes a name is not read, so it is recorded.


def changes_what_it_is_given(x):
    twice = lambda v: v * 2  # noqa: E731
    unused = None
    del unused
    y = twice(x) + 1
    z, tail, total = running(y, 5.0)
    tail += 100
    return y, z, tail, total, z is y, y.sum()


def fails_in_a_helper(x):
    more = lambda v: v + 1  # noqa: E731
    unused = None
    del unused
    y = more(x)
    try:
        running(y, None)
    except TypeError:
        y[0] = -7
    return y * 2


def draws(rng, n):
    found = []
    for k in range(n):
        if rng.random() < 0.5:
            found.append(k)  # noqa: PERF401
    return found


def uses_a_generator(x, rng):
    twice = lambda v: v * 2  # noqa: E731
    unused = None
    del unused
    return twice(x[draws(rng, len(x))]), rng.random()


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (merge_sort, (np.array([3.0, -1, 4, 1, -5, 9, 2]),)),
        (merge_sort, (np.array([2, 1]),)),
        (changes_what_it_is_given, (np.arange(6.0),)),
        (fails_in_a_helper, (np.arange(4.0),)),
        (uses_a_generator, (np.arange(9.0), np.random.default_rng(5))),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_results_are_those_of_the_plain_function(f, args):
    fast = np_compile.compile(f)
    for _ in range(4):
        want = observe(f, Copier()(args), {})
        compare(observe(fast, Copier()(args), {}), want, 0)


def bands(x):
    twice = lambda v: v * 2  # noqa: E731
    unused = None
    del unused
    y = twice(x)
    whole, tail, total = running(y, 5.0)
    return y, whole, tail + 1, total, np.sqrt(np.abs(y)).sum()


def test_helpers_of_tensors():
    fast = np_compile.compile(np_compile.wrap_numpy(bands))
    for n in (9, 9, 9, 30):
        x = np.linspace(-1, 2, n)
        for a, b in zip(fast(torch.from_numpy(x.copy())), bands(x), strict=True):
            assert type(a) is (float if type(b) is float else torch.Tensor)
            np.testing.assert_allclose(a, b)
    assert "running, which goes by elements" in str(np_compile.explain(fast)(torch.ones(4)))


def test_helpers_that_are_differentiated_are_recorded():
    fast = np_compile.compile(np_compile.wrap_numpy(bands))
    x = torch.linspace(0, 0.5, 9, dtype=torch.float64)
    fast(x)
    x.requires_grad_()
    (got,) = torch.autograd.grad(fast(x)[3], x)
    assert got.tolist() == [2.0] * 9


SCALE = torch.tensor(3.0, dtype=torch.float64)


def scaled(x):
    for k in range(len(x)):
        x[k] = x[k] * SCALE
    return x


def test_helpers_that_come_to_tensors_are_recorded():
    def f(x):
        twice = lambda v: v * 2  # noqa: E731
        unused = None
        del unused
        return scaled(twice(x))

    fast = np_compile.compile(np_compile.wrap_numpy(f))
    for _ in range(5):
        assert fast(torch.ones(3, dtype=torch.float64)).tolist() == [6.0] * 3


def test_the_helper_is_not_recorded():
    def reasons(loops):
        with config.patch(loops=loops):
            fast = np_compile.compile(changes_what_it_is_given)
            return str(np_compile.explain(fast)(np.arange(6.0)))

    assert "running, which goes by elements" in reasons("auto")
    assert "goes by elements" not in reasons("recorded")


def rebound(x):
    whole = lambda v: v * 1.0  # noqa: E731
    unused = None
    del unused
    return running(whole(x), 3.0)[2]


def test_a_helper_whose_code_is_replaced(monkeypatch):
    fast = np_compile.compile(rebound)
    x = np.arange(5.0)
    assert fast(x) == rebound(x)

    def other(x, limit):
        total = limit
        for k in range(len(x)):
            total -= x[k]
        return x, x, total

    monkeypatch.setattr(running, "__code__", other.__code__)
    assert fast(x) == rebound(x) == -7.0
