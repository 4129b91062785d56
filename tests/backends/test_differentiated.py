"""A program and its gradient are recorded as one graph, with what torch's autograd does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import np_compile
from np_compile.backends import native
from np_compile.backends.differentiated import Written, differentiated

from ..support import data


def clipped(x, y):
    return np.clip(x, -0.5, 0.5).sum() + np.maximum(x, y).sum() + np.abs(x * y).max()


def scattered(x, y):
    out = np.zeros_like(x)
    out[1:] = x[:-1] * y[1:]
    out[:, 0] -= x[:, 1]
    np.add.at(out, ([0, 0, 2], [1, 1, 0]), y[0])
    return out


def masked(x, y):
    return np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), y) - np.logaddexp(x, y)


def complex_(x, y):
    z = np.exp(1j * x) * (y + 1j * x)
    return np.abs(z).sum() + np.fft.fft(z, axis=0).imag


def factored(x, y):
    a = x @ x.T + np.eye(3)
    return np.linalg.cholesky(a).sum() + np.linalg.slogdet(a)[1] + np.linalg.solve(a, y)


def ordered(x, y):
    return np.sort(x, axis=0)[0], np.cumsum(y, axis=1), np.median(x), x.argmax(), np.var(y)


def of_integers(x, y):
    return np.sin(x) * np.arange(3), (x > 0).sum(), np.floor(y)


def spectra(x, y):
    """Gradients of which write to slices."""
    z, w = np.fft.rfft(x, axis=0) * np.fft.rfft(y, 4, axis=0)[:2], np.fft.rfft2(x + y)
    return z, np.fft.irfft(z, 3, axis=0), np.fft.irfft2(w, (3, 4)), np.fft.irfft(w * y[0, 0], 2)


PROGRAMS = [clipped, scattered, masked, complex_, factored, ordered, of_integers, spectra]


@pytest.fixture
def without_torch(monkeypatch):
    """AOTAutograd is not asked."""

    def refuse(self, graph, inputs):
        raise AssertionError("AOTAutograd makes the program")

    monkeypatch.setattr(native._Differentiable, "_by_torch", refuse)


def slopes(f, *arrays):
    tensors = [torch.from_numpy(a.copy()).requires_grad_() for a in arrays]
    made = f(*tensors)
    floats = [t for t in (made if isinstance(made, tuple) else (made,)) if t.requires_grad]
    total = sum((t.abs() if t.is_complex() else t).cos().sum() for t in floats)
    return len(floats), torch.autograd.grad(total, tensors, allow_unused=True)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_are_torchs(f, without_torch):
    arrays = data(3, 3), data(3, 3, seed=1)
    compiled = np_compile.compile(np_compile.wrap_numpy(f), fullgraph=True)
    count, expected = slopes(np_compile.wrap_numpy(f), *arrays)
    for _ in range(2):
        again, found = slopes(compiled, *arrays)
        assert again == count
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b)


def test_what_gives_no_gradient_is_one_program(without_torch):
    f = np_compile.compile(np_compile.wrap_numpy(lambda x: (x > 0) * 2), fullgraph=True)
    x = torch.tensor([1.0, -1.0], requires_grad=True)
    assert f(x).tolist() == [2, 0]
    assert not f(x).requires_grad


def test_a_program_that_writes_to_its_argument_is_torchs():
    def f(x, y):
        y *= x
        return y.sum()

    compiled = np_compile.compile(np_compile.wrap_numpy(f), fullgraph=True)
    x, y = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([5.0, 7.0])
    compiled(x, y).backward()
    assert x.grad.tolist() == [5.0, 7.0]
    assert y.tolist() == [10.0, 21.0]


def traced(function, *tensors):
    graph = torch.fx.experimental.proxy_tensor.make_fx(function)(*[t.detach() for t in tensors])
    for node in graph.graph.nodes:
        node.meta["line"] = f"line of {node.name}"
    return differentiated(graph, tensors, torch.device("cpu"), ("line",))


def test_gradients_have_the_lines_of_what_they_are_of():
    x = torch.ones(3, requires_grad=True)
    joint, floats = traced(lambda x: [torch.tanh(x).exp(), x > 0], x)
    assert floats == [0]
    of = {n.meta["line"] for n in joint.graph.nodes if n.op == "call_function"}
    assert of == {"line of tanh", "line of exp", "line of gt"}
    last = joint.graph.find_nodes(op="output")[0].args[0][-1]
    assert last.meta["line"] == "line of tanh"


def test_memory_that_others_share_is_not_written_to_anew():
    def f(x):
        y = x * 2
        row = y[0]
        y.add_(1)
        return [row * x]

    with pytest.raises(Written):
        traced(f, torch.ones(2, requires_grad=True))


def test_hooks_of_the_caller_see_what_a_call_saves_alone():
    def f(x):
        return np.exp(np.sin(x))

    x = torch.ones(3, requires_grad=True)
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        np_compile.compile(np_compile.wrap_numpy(f))(x)
    assert seen
    assert not any(t.is_meta for t in seen)


def counted(x, i):
    n = np.bincount(i, minlength=3)
    return (x[: len(n)] * n).sum() * np.bincount(i, weights=x, minlength=3)[0]


def test_counts_beside_gradients_are_part_of_the_program():
    f = np_compile.compile(np_compile.wrap_numpy(counted))
    x = torch.tensor([2.0, 3.0, 5.0, 7.0], dtype=torch.float64, requires_grad=True)
    few, beyond, below = (torch.tensor([0, 1, 1, k]) for k in (2, 3, -1))
    for i in (few, few, few, beyond, few):
        if i is beyond:
            assert f._keeper.kept
        made = f(x, i)
        assert made.item() == counted(x.detach().numpy(), i.numpy())
        (slope,) = torch.autograd.grad(made, x)
        (expected,) = torch.autograd.grad(np_compile.wrap_numpy(counted)(x, i), x)
        assert slope.tolist() == expected.tolist()
    f = np_compile.compile(np_compile.wrap_numpy(counted))
    f(x, few)
    with pytest.raises(ValueError, match="'list' argument must have no negative elements"):
        f(x, below)


def test_products_of_vectors_and_matrices_are_written_down(without_torch):
    def f(x, y):
        return x[0] @ y + x @ y[0] + (x[0] @ y[1]) * y[2]

    arrays = data(3, 3), data(3, 3, seed=1)
    compiled = np_compile.compile(np_compile.wrap_numpy(f), fullgraph=True)
    expected = slopes(np_compile.wrap_numpy(f), *arrays)[1]
    for _ in range(2):
        for a, b in zip(slopes(compiled, *arrays)[1], expected, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_rules_are_torchs_of_all_floats(dtype):
    x = torch.tensor([-0.7, 0.0, 2.0], dtype=dtype, requires_grad=True)

    def f(x):
        return [(torch.tanh(x) * torch.sigmoid(x)).sum() + x.abs().sum() + torch.dot(x, x)]

    joint, _ = traced(f, x)
    found = joint(x.detach(), torch.ones((), dtype=dtype))
    (gradient,) = torch.autograd.grad(f(x)[0], x)
    torch.testing.assert_close(found[0], f(x)[0].detach())
    torch.testing.assert_close(found[1], gradient)
