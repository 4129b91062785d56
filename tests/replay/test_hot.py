"""Kept calls in which much time is spent are made of programs for one size."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config
from np_compile.capture.policy.choice import SELDOM
from np_compile.replay import hot

from ..support import data, wait_for


def stencil(x, steps):
    for _ in range(steps):
        x[1:-1] += 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])
    return x.sum()


@pytest.fixture
def kept(monkeypatch):
    """A function whose calls are kept by a program for many sizes, and that kept call."""
    monkeypatch.setattr(hot, "_SECONDS", 0.0)
    fast = np_compile.compile(stencil)
    with config.patch(compile_in="call", loops="recorded"):
        for n in (5000, 5001, 5001, 5001):
            fast(data(n), 4)
    (found,) = [k for k in fast._keeper.kept if k.heat is not None]
    return fast, found


def again(before):
    """A call that is kept by programs for one size."""
    with config.patch(compile_in="call"):
        made = before.heat._again.kept(before.heat._again.programs())
    made.heat = hot.Heat(before.heat._again, before)
    return made


def call(fast, x):
    mine, theirs = x.copy(), x.copy()
    np.testing.assert_allclose(fast(mine, 4), stencil(theirs, 4), rtol=1e-12)
    np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def programs(fast):
    return [program for k in fast._keeper.kept for program, *_ in k.plan.steps]


def run_until(fast, done, x):
    def so_far():
        for _ in range(SELDOM):
            fast(x.copy(), 4)
        call(fast, x)
        return done()

    wait_for(so_far)


def test_a_hot_call_gets_programs_for_its_size(kept):
    fast, before = kept
    before.choice.way, before.choice.plain = "compiled", float("inf")
    before.settle(sampled=SELDOM)
    x = data(5001)
    with config.patch(compile_in="background"):
        run_until(fast, lambda: before not in fast._keeper.kept, x)
        assert any(program.general is None for program in programs(fast))

        def decided():  # the faster way stays, whichever it is
            return all(k.heat is None or k.heat._other is None for k in fast._keeper.kept)

        run_until(fast, decided, x)


def test_what_was_not_faster_goes_again(kept):
    _fast, before = kept
    made = again(before)
    before.heat._best = 0.0
    found = [made.heat.ran(made, 1.0, 1) for _ in range(hot._TRIALS)]
    assert found == [None] * (hot._TRIALS - 1) + [before]
    assert before.heat is None


def test_what_is_faster_stays(kept):
    _, before = kept
    made = again(before)
    before.heat._best = 2.0
    assert [made.heat.ran(made, 1.0, 1) for _ in range(hot._TRIALS + 1)] == [None] * (
        hot._TRIALS + 1
    )


def test_little_time_makes_nothing(kept, monkeypatch):
    _, before = kept
    monkeypatch.setattr(hot, "_SECONDS", 10.0)
    with config.patch(compile_in="background"):
        assert [before.heat.ran(before, 1e-4, SELDOM) for _ in range(20)] == [None] * 20
        assert before.heat._job is None


def test_a_compiler_that_fails_changes_nothing(kept):
    _, before = kept

    class Fails:
        def programs(self):
            raise RuntimeError("no compiler")

    before.heat._again = Fails()
    with config.patch(compile_in="background"):
        for _ in range(hot._TRIALS):
            assert before.heat.ran(before, 1.0, 1) is None

        def ended():
            assert before.heat.ran(before, 1.0, 1) is None
            return before.heat._job is None

        wait_for(ended)
    assert np.isinf(before.heat._seconds)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_device(monkeypatch):
    """Programs for one size are those of the device."""
    monkeypatch.setattr(hot, "_SECONDS", 0.0)
    fast = np_compile.compile(stencil)
    with torch.device("cuda"), config.patch(loops="recorded"):
        for n in (5000, 5001, *[5002] * 12):
            call(fast, data(n))
        for k in fast._keeper.kept:
            if k.heat is not None and k.heat._job is not None:
                wait_for(lambda job=k.heat._job: job.ready)
        for _ in range(8):
            call(fast, data(5002))
