"""`accuracy` finds programs that a back end gets wrong; `minify` makes scripts of few operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import np_compile
from np_compile import errors

from .. import fresh
from ..support import data

aten = torch.ops.aten
ROOT = Path(__file__).parent.parent.parent


def replaced(graph, old, new):
    for node in graph.graph.nodes:
        if node.target is old:
            node.target = new
    graph.recompile()
    return graph


def copied(graph):
    made = torch.fx.Graph()
    made.output(made.graph_copy(graph.graph, {}))
    return torch.fx.GraphModule(graph, made)


def wrong_sine(graph, example_inputs):
    """A back end that takes cosines for sines."""
    return replaced(copied(graph), aten.sin.default, aten.cos.default).forward


def no_exponential(graph, example_inputs):
    """A back end that cannot compile exponentials."""
    if any(n.target is aten.exp.default for n in graph.graph.nodes):
        raise NotImplementedError("exp\nand more")
    return graph.forward


def large_only(graph, example_inputs):
    """A back end whose programs fail on negative numbers."""

    def run(*tensors):
        if any((t < 0).any() for t in tensors):
            raise ValueError("negative")
        return graph.forward(*tensors)

    return run


class _WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g * 2


def wrong_gradient(graph, example_inputs):
    return lambda *tensors: [_WrongGradient.apply(t) for t in graph.forward(*tensors)]


def f(x, y):
    a = np.tanh(x) * y + 1
    b = np.sin(a) + np.exp(a - 2)
    c = np.sqrt(b * b + 1).sum(axis=0)
    return c / 3, a.mean()


ARGS = (data(5, 4) + 2, data(4) + 2)


@pytest.mark.parametrize("backend", ["native", "eager", "aot_eager"])
def test_right_back_ends(backend):
    fast = np_compile.compile(f, backend=backend)
    report = np_compile.accuracy(fast)(*ARGS)
    assert (report.checked, report.faults, report.backend) == (1, [], backend)
    np.testing.assert_allclose(report.result[0], f(*ARGS)[0])
    assert np_compile.minify(fast)(*ARGS) is None


def test_gradients_of_a_right_back_end():
    for backend in ("native", "aot_eager"):
        fast = np_compile.compile(np_compile.wrap_numpy(f), backend=backend)
        x, y = (torch.from_numpy(a).requires_grad_() for a in ARGS)
        report = np_compile.accuracy(fast)(x, y)
        assert (report.checked, report.faults) == (1, [])
        sum(r.sum() for r in report.result).backward()
        assert x.grad is not None


def test_several_programs_and_arguments_that_change():
    def steps(x):
        x += 1
        if x[0] > 0:
            x[1:] *= np.sin(x[:-1])
        return x.sum()

    x, want = data(6) + 3, data(6) + 3
    total = steps(want)
    report = np_compile.accuracy(steps)(x)
    assert report.checked == 2
    assert not report.faults
    np.testing.assert_allclose(report.result, total)
    np.testing.assert_allclose(x, want)


@pytest.mark.parametrize(
    ("backend", "words", "operator"),
    [
        (wrong_sine, "result 0: 4 of 4 elements differ, first at [0]", "aten.sin"),
        (no_exponential, "it fails in compiling: NotImplementedError: exp", "aten.exp"),
    ],
)
def test_a_wrong_back_end(backend, words, operator, tmp_path):
    fast = np_compile.compile(f)
    report = np_compile.accuracy(fast, backend)(*ARGS)
    (fault,) = report.faults
    assert words in fault.what
    assert any("b = np.sin(a)" in line for line in fault.lines)
    assert "0 of 1 programs right" in str(report)
    np.testing.assert_allclose(report.result[0], f(*ARGS)[0])
    made = np_compile.minify(fast, backend, tmp_path)(*ARGS)
    assert made.operators == 1
    assert operator in made.text
    assert "aten.tanh" not in made.text
    run = fresh.run(made.script.read_text(), cwd=str(ROOT), env={"PATH": ""})
    assert run.returncode == 1, run.stderr
    assert "no difference" not in run.stdout


def test_a_wrong_gradient(tmp_path):
    fast = np_compile.compile(np_compile.wrap_numpy(f), backend=wrong_gradient)
    x, y = (torch.from_numpy(a).requires_grad_() for a in ARGS)
    (fault,) = np_compile.accuracy(fast)(x, y).faults
    assert fault.what.startswith("gradient 0: 20 of 20 elements differ")
    assert np_compile.minify(fast, folder=tmp_path)(x, y).operators == 1
    with torch.no_grad():
        assert not np_compile.accuracy(fast)(x, y).faults


def test_a_program_that_fails_as_it_runs_and_writes(tmp_path):
    def g(x, y):
        y[1:] = np.sin(x[1:]) * 2
        y += 1
        return (x - 9) * y

    fast = np_compile.compile(g, backend=large_only)
    x, y = data(100), data(100) + 3
    made = np_compile.minify(fast, folder=tmp_path)(x, y)
    assert "fails in running: ValueError: negative" in made.what
    assert made.operators <= 2
    (stored,) = tmp_path.glob("*.pt")  # it is too long for the text
    assert torch.load(stored).numel() == 100


def test_what_an_unknown_back_end_says():
    with pytest.raises(errors.UnknownBackend):
        np_compile.accuracy(f, "nativ")
