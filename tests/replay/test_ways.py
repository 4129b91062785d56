"""Kept calls with gradients of functions that go by what they compute: branches, integers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

import np_compile
from np_compile import config
from np_compile.replay import keeper

F64 = torch.float64


def fixed_point(w, x):
    z, n = np.zeros(3), 0
    while n < 30:
        new = np.tanh(w @ z + x)
        n += 1
        if np.abs(new - z).max() < 1e-2:
            break
        z = new
    return z.sum(), n


def by_index(w, x):
    y = w @ x
    k = int(np.argmax(y))
    return (y[k] * 2 if y.sum() > 0 else np.exp(y).sum()) * (k + 1)


def by_signs(w, x):
    y = w @ x
    for k in range(2):
        y = y * 2 if y[k] > 0 else np.sin(y)
    return y


def by_truth(w, x):
    return np.sin(w) @ x if (w.sum() > -0.3) * 0.5 else w.sum() * x


THOROUGH = pytest.mark.thorough
PROGRAMS = [by_index, by_truth, *[pytest.param(f, marks=THOROUGH) for f in (fixed_point, by_signs)]]


@pytest.fixture(autouse=True)
def _settings():
    with config.patch(compile_in="call"):
        yield


def compiled(f):
    return np_compile.compile(np_compile.wrap_numpy(f))


def given(seed):
    g = torch.Generator().manual_seed(seed)
    w, x = (torch.randn(*s, generator=g, dtype=F64) for s in ((3, 3), (3,)))
    return (w * 0.3).requires_grad_(), x.requires_grad_()


def outcome(f, args):
    made = f(*args)
    made = made if isinstance(made, tuple) else (made,)
    grads = torch.autograd.grad(made[0].sum(), args, allow_unused=True)
    return [*made, *[torch.zeros(()) if g is None else g for g in grads]]


def same(got, want):
    for g, w in zip(got, want, strict=True):
        assert type(g) is type(w)
        if isinstance(g, int):
            assert g == w
        else:
            torch.testing.assert_close(g, w)


@pytest.mark.parametrize("f", PROGRAMS)
def test_each_way_is_kept(f):
    fast, slow = compiled(f), np_compile.wrap_numpy(f)
    for k in range(20):
        same(outcome(fast, given(k % 4)), outcome(slow, given(k % 4)))
    found = fast._keeper
    assert len(found.kept) > 1
    assert found._astray == 0  # the last call was on a kept way


def test_a_call_that_raises_is_another_way():
    def f(w, x):
        y = (w @ x).sum()
        if not np.isfinite(y):
            raise ValueError("diverged")
        return y * 2

    fast, (w, x) = compiled(f), given(0)
    for _ in range(6):
        fast(w, x)
    assert fast._keeper.kept
    with pytest.raises(ValueError, match="diverged"):
        fast(w * np.inf, x)


def test_what_writes_to_an_argument_runs_once():
    def f(w, x):
        w += 1
        return w * 2 if w.sum() > 12 else w * x

    fast = compiled(f)
    for start in [0.0] * 5 + [2.0] * 5:
        w = torch.full((3, 3), start, dtype=F64)
        assert (fast(w, given(0)[1].detach()) != 0).any()
        assert (w == start + 1).all()


def test_ways_that_do_not_come_again_are_not_kept():
    def f(w, x):
        return w * x if int((w.sum() * 1e6).astype(int)) else x

    fast = compiled(f)
    for k in range(keeper._VAIN + 3):
        fast(*given(k))
    assert not fast._keeper.kept
    assert fast._keeper.hopeless


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant):
    fast, slow = compiled(by_index), np_compile.wrap_numpy(by_index)
    for k in range(16):
        args, again = given(k % 3), given(k % 3)
        total = checkpoint(fast, *args, use_reentrant=reentrant)
        total.backward()
        slow(*again).backward()
        same([t.grad for t in args], [t.grad for t in again])
