"""What is said of compiles: what made each new, where the time went, and when they are enough."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile
from np_compile import config

from ..support import compiled, data


def f(x, n):
    y = np.sin(x) * n
    return y.reshape(-1, 2).sum(axis=1)


def changes(fast):
    return [[c.what for c in r.changes] for r in np_compile.recompiles(fast)]


def test_recompiles_say_what_changed():
    fast, _ = compiled(f)
    assert np_compile.recompiles(fast) == []
    fast(data(4), 2.5)
    fast(data(6), 2.5)
    fast(data(6).astype("f4"), 2.5)
    fast(np.asarray(data(12))[::2], 2.5)
    fast(data(4), 2.5)
    first, shape, dtype, layout = np_compile.recompiles(fast)
    assert first.changes == []
    assert first.calls == ["sin", "multiply", "ndarray.reshape", "ndarray.sum"]
    assert "np.sin(x) * n" in first.line
    assert first.seconds > 0
    assert [str(c) for c in shape.changes] == ["shape of input 0: (4,) -> (6,)"]
    assert [str(c) for c in dtype.changes] == ["dtype of input 0: float64 -> float32"]
    assert [str(c) for c in layout.changes] == ["layout of input 0: C order -> strides (16,)"]
    assert "shape of input 0" in str(shape)


def test_recompiles_name_integers_and_arguments():
    def rolled(x, n, axis):
        return (x * n).sum(axis=axis)

    fast, _ = compiled(rolled, dynamic=False)
    fast(data(4, 3), 2, 0)
    fast(data(4, 3), 3, 0)
    fast(data(4, 3), 3, 1)
    _, integer, axis = changes(fast)
    assert len(integer) == len(axis) == 1
    assert integer[0].startswith("integer 0 of np.multiply")
    assert axis[0].startswith("arguments of ndarray.sum")


def test_results_that_are_needed_and_gradients_are_named():
    import torch

    fast = np_compile.compile(np_compile.wrap_numpy(lambda x: np.tanh(x) * 2), backend="eager")
    fast(torch.ones(3))
    fast(torch.ones(3, requires_grad=True))
    assert changes(fast) == [[], ["requires_grad of input 0"]]


def test_other_calls_are_no_recompiles():
    def branches(x):
        return np.cos(x) if x.ndim > 1 else np.sin(x)

    fast, _ = compiled(branches)
    fast(data(3))
    fast(data(3, 3))
    assert changes(fast) == [[], []]


def test_compile_times_by_phase():
    fast = np_compile.compile(f)
    assert np_compile.compile_times(fast).phases == {}
    fast(data(4), 2.5)
    times = np_compile.compile_times(fast)
    assert times.programs == 1
    assert set(times.phases) >= {"record", "lower", "translate", "passes", "emit", "compiler"}
    assert all(seconds > 0 for seconds in times.phases.values())
    assert "passes" in str(times)


@pytest.mark.parametrize("options", [{}, {"fullgraph": True}])
def test_the_limit_ends_compiles_with_one_warning(options):
    fast, counter = compiled(f, **options)
    with config.patch(recompile_limit=3, plain="never"):
        for n in (2, 4, 6):
            fast(data(n), 2.5)
        with pytest.warns(RuntimeWarning, match=r"shape of input 0\. Remedy: pad") as warned:
            fast(data(8), 2.5)
        assert len(warned) == 1
        for n in (8, 10, 12):
            np.testing.assert_allclose(fast(data(n), 2.5), f(data(n), 2.5))
        assert counter.count == 3
        fast(data(4), 2.5)
        assert counter.count == 3


def test_the_limit_holds_for_tensors_too():
    import torch

    def loss(x):
        return (np.tanh(x) ** 2).sum()

    fast = np_compile.compile(np_compile.wrap_numpy(loss), backend="eager")
    with config.patch(recompile_limit=1):
        fast(torch.ones(3))
        x = torch.ones(4, dtype=torch.float64, requires_grad=True)
        with pytest.warns(RuntimeWarning, match="recompile_limit"):
            fast(x).backward()
    want = 2 * np.tanh(1.0) / np.cosh(1.0) ** 2
    np.testing.assert_allclose(x.grad.numpy(), np.full(4, want))


def test_explain_names_the_limit():
    fast, _ = compiled(f)
    with config.patch(recompile_limit=1):
        fast(data(2), 2.5)
        with pytest.warns(RuntimeWarning):
            report = np_compile.explain(fast)(data(4), 2.5)
    assert any("recompile_limit" in b.reason for b in report.breaks)
