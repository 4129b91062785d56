"""`run(f)`: what is compiled runs compiled, nothing is compiled, results are as they were."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config, errors

from ..support import data


def steps(x, n=1):
    for _ in range(n):
        x = np.sin(x) * 2 + np.cos(x)
    return x.sum(axis=0)


def programs(f):
    return np_compile.compile_times(f).programs


OPTIONS = [{}, {"fullgraph": True}, {"backend": "eager"}, {"dynamic": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("plain", ["auto", "never"])
def test_on_arrays(options, plain):
    fast = np_compile.compile(steps, **options)
    serve = np_compile.run(fast)
    with config.patch(compile_in="call", plain=plain):
        for _ in range(3):
            np.testing.assert_allclose(serve(data(100, 4)), steps(data(100, 4)))
        assert programs(fast) == 0
        for _ in range(4):
            fast(data(100, 4))
        known = programs(fast)
        for rows in (100, 5, 7, 9, 5):
            for n in (1, 3, 20):
                got = serve(data(rows, 4), n)
                np.testing.assert_allclose(got, steps(data(rows, 4), n), rtol=1e-9)
        assert programs(fast) == known
    assert known > 0 or (plain == "auto" and not options)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_on_tensors(options):
    fast = np_compile.compile(np_compile.wrap_numpy(steps), **options)
    serve = np_compile.run(fast)

    def gradient(f, rows):
        x = torch.from_numpy(data(rows, 4)).requires_grad_()
        f(x).sum().backward()
        return x.grad

    want = gradient(np_compile.wrap_numpy(steps), 6)
    torch.testing.assert_close(gradient(serve, 6), want)
    assert programs(fast) == 0
    for _ in range(3):
        torch.testing.assert_close(gradient(fast, 6), want)
    known = programs(fast)
    for rows in (6, 5, 7, 8):
        gradient(serve, rows)
        serve(torch.from_numpy(data(rows, 4)))
    torch.testing.assert_close(gradient(serve, 6), want)
    assert programs(fast) == known > 0


def test_loops_that_are_read():
    def count(x):
        total = 0.0
        for i in range(x.shape[0]):
            if x[i] > 0:
                total += x[i] * i
        return total

    fast = np_compile.compile(count)
    serve = np_compile.run(fast)
    x = data(200)
    with config.patch(compile_in="call", plain="never"):
        assert serve(x) == count(x)
        assert not fast._reading.serves
        assert fast(x) == count(x)
        assert fast._reading.serves
        runs = fast._reading.runs
        assert serve(x) == count(x)
        assert fast._reading.runs > runs
        small = x.astype(np.float32)
        assert serve(small) == count(small)
        assert len(fast._reading.texts()) == 1


def test_no_call_is_kept_that_was_not():
    fast = np_compile.compile(np_compile.wrap_numpy(lambda x: np.sin(x) + 1))
    for _ in range(4):
        np_compile.run(fast)(torch.ones(3))
    assert not fast._keeper.kept


def test_in_a_compiled_function_and_in_turn():
    inner = np_compile.compile(lambda x: np.sin(x) + 1, backend="eager")
    serve = np_compile.run(inner)
    outer = np_compile.compile(lambda x: serve(x) * 2, backend="eager")
    for _ in range(3):
        np.testing.assert_allclose(outer(data(3)), (np.sin(data(3)) + 1) * 2)
    with pytest.raises(ZeroDivisionError):
        np_compile.run(np_compile.compile(lambda x: 1 // 0))(data(3))
    assert not config.only_known()


def test_a_function_that_is_not_compiled():
    with pytest.raises(errors.NotCompilable, match=r"run\(compile\(f\)\)"):
        np_compile.run(steps)
