"""Gradients through programs of the native back end: those of torch's own operators."""

from __future__ import annotations

from collections.abc import Callable

import np_compile.shim as shim
import numpy as np
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import np_compile
from np_compile.backends.native import native
from np_compile.kernels.compile import listening
from np_compile.kernels.ir.program import Call

from ..support import first

M = np.random.default_rng(0).normal(size=(3, 3))
V = np.array([1.0, 2.0, 0.5])

CASES: dict[str, tuple] = {
    "trigonometry": (lambda x: shim.sin(x) * shim.cos(x) + shim.tan(x), V),
    "logarithms": (lambda x: shim.log(x) + shim.log1p(x) + shim.exp(x) + shim.expm1(x), V),
    "roots": (lambda x: shim.sqrt(x) + x**3 + x**-0.5 + shim.hypot(x, 2 * x), V),
    "inverse": (lambda x: shim.arctan(x) + shim.arcsinh(x) + shim.arctan2(x, x * x), V),
    "hyperbolic": (lambda x: shim.tanh(x) + shim.sinh(x) / shim.cosh(x), V),
    "extremes": (lambda x: shim.max(x, axis=0) + shim.min(x, axis=1) + shim.max(x), M),
    "choices": (lambda x: shim.where(x > 0, x, x * 2) + shim.clip(x, 0, 1) + shim.abs(x), M),
    "moments": (lambda x: shim.std(x, axis=0) + shim.var(x, axis=1) + shim.mean(x), M),
    "running": (lambda x: shim.cumsum(x, 0)[1] + shim.cumprod(x, 1)[0] + shim.prod(x, 0), M),
    "gathers": (lambda x: x[[0, 1, 1]].sum(0) + shim.take(x, [0, 0], axis=1).sum(), M),
    "slices": (lambda x: x[:, ::2].sum() + shim.diff(x, axis=0)[0] + shim.flip(x)[0], M),
    "joins": (lambda x, y: shim.concatenate([x, y], 1)[:, 1:4] * shim.stack([x, y])[0], M, M.T),
    "pads": (lambda x: shim.pad(x, 1) ** 2, M),
    "products": (lambda x, y: shim.matmul(x, y) + shim.dot(x, y[0]), M, M.T),
    "batches": (lambda x: shim.matmul(x[None] * shim.ones((2, 3, 3)), x).sum(0), M),
    "diagonals": (lambda x: shim.trace(x) * shim.diag(shim.diag(x, 1)), M),
    "triangles": (lambda x: shim.tril(x) + shim.triu(x, 1), M),
    "norms": (lambda x: shim.linalg.norm(x, axis=1) + shim.linalg.norm(x), M),
    "complex": (lambda x: shim.abs(shim.exp(1j * x) * x) + shim.real(shim.sqrt(x + 1j)), V),
}


def gradients(f: Callable, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """The result and the gradients of a weighted sum of it."""
    result = f(*tensors)[0]
    weight = torch.linspace(-1, 2, result.numel(), dtype=result.dtype).reshape(result.shape)
    return [result.detach(), *torch.autograd.grad(result, tensors, weight)]


# One of each kind: elements, reductions, places, views, products, complex numbers.
SHOWN = ("trigonometry", "extremes", "choices", "moments", "running", "gathers", "slices", "joins",
         "products", "norms", "complex")  # fmt: skip


@pytest.mark.parametrize("name", first(CASES, *SHOWN))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_gradients_are_torchs(name):
    f, *values = CASES[name]

    def on_tensors(*tensors):
        return [f(*map(shim.from_tensor, tensors)).tensor]

    tensors = [torch.tensor(v, requires_grad=True) for v in values]
    with torch.no_grad():
        graph = make_fx(on_tensors, tracing_mode="fake")(*(t.detach() for t in tensors))
    calls: list[str] = []

    def listen(made):
        calls.extend(s.name for s in made.source.program.steps if isinstance(s, Call))

    with listening(listen):
        got = gradients(native(graph, tensors), tensors)
    assert not calls
    for a, b in zip(got, gradients(on_tensors, tensors), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_gradients_through_calls_of_a_library():
    def on_tensors(x):
        return [shim.linalg.inv(shim.from_tensor(x)).tensor]

    x = torch.tensor(M + 3 * np.eye(3), requires_grad=True)
    with torch.no_grad():
        graph = make_fx(on_tensors, tracing_mode="fake")(x.detach())
    for a, b in zip(gradients(native(graph, [x]), [x]), gradients(on_tensors, [x]), strict=True):
        torch.testing.assert_close(a, b)


def differentiable(f, tensors):
    """The program of the native back end for a function of shim arrays that gives a list."""

    def on_tensors(*given):
        return [r.tensor for r in f(*map(shim.from_tensor, given))]

    with torch.no_grad():
        graph = make_fx(on_tensors, tracing_mode="fake")(*(t.detach() for t in tensors))
    return native(graph, tensors), on_tensors


def several(run, tensors, weights):
    """All results, and the gradients of a weighted sum of those that are not integers."""
    results = run(*tensors)
    floats = [r for r in results if r.requires_grad]
    total = [w.expand(r.shape).to(r.dtype) for w, r in zip(weights, floats, strict=False)]
    found = torch.autograd.grad(floats, tensors, total, allow_unused=True)
    return [r.detach() for r in results], found


SHARED = {
    "new arrays": (lambda x, y: [shim.tanh(x @ y), shim.sum(x * 3), shim.exp(y)], True),
    "integers": (lambda x, y: [shim.sin(x) * y, shim.argmax(x, axis=0), x > 0], True),
    "complex": (lambda x, y: [shim.exp(1j * x) * y, x * y], True),
    "an input": (lambda x, y: [x, x * y], False),
    "a view": (lambda x, y: [x[:2], x.T, x * y], False),
    "the same memory": (lambda x, y: (lambda z: [z, z[1:]])(x * y), False),
    "no gradient": (lambda x, y: [x * y, shim.ones(3)], True),
}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_several_results_and_calls(name):
    f, _ = SHARED[name]
    rng = np.random.default_rng(1)
    first = [torch.tensor(rng.normal(size=(3, 3)), requires_grad=True) for _ in range(2)]
    run, plain = differentiable(f, first)
    for k in range(3):
        tensors = [(t.detach() + k).requires_grad_() for t in first]
        for weights in (torch.ones(3), torch.linspace(1, 2, 3)):
            got, want = several(run, tensors, weights), several(plain, tensors, weights)
            for a, b in zip((*got[0], *got[1]), (*want[0], *want[1]), strict=True):
                torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_which_programs_go_without_the_wrappers_of_aotautograd(name):
    f, without = SHARED[name]
    tensors = [torch.tensor(M + 1, requires_grad=True), torch.tensor(M + 2, requires_grad=True)]
    run, _ = differentiable(f, tensors)
    assert (run.halves is not None) == without


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inputs_are_saved_rather_than_views_of_them():
    def f(x, y, w):
        return [shim.tanh(x.T[:2] @ y) * w[None, 1] @ y.T[:, ::2] + x[0, :2, None]]

    tensors = [torch.tensor(M + k, requires_grad=True) for k in range(3)]
    run, plain = differentiable(f, tensors)
    got, want = several(run, tensors, torch.ones(1)), several(plain, tensors, torch.ones(1))
    for a, b in zip((*got[0], *got[1]), (*want[0], *want[1]), strict=True):
        torch.testing.assert_close(a, b)
    inputs = [t.detach() for t in tensors]
    memory = {t.untyped_storage().data_ptr() for t in inputs}
    made = run.halves.forward(inputs)
    assert memory.isdisjoint(t.untyped_storage().data_ptr() for t in made)
    assert sorted(run.halves.saved_inputs) == [0, 1, 2]


def test_a_gradient_in_any_layout():
    x = torch.tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
    run, _ = differentiable(lambda x: [shim.sin(x) * x], [x])
    want = torch.cos(x.detach()) * x.detach() + torch.sin(x.detach())
    wide = torch.rand(4, 6, dtype=torch.float64)
    for weight in (torch.ones(()).double().expand(3, 4), wide[:, ::2].T, wide[:3, :4] * 2):
        (found,) = torch.autograd.grad(run(x), x, weight)
        torch.testing.assert_close(found, want * weight)


def test_a_result_that_was_changed_has_no_gradient():
    x = torch.tensor(V, requires_grad=True)
    run, _ = differentiable(lambda x: [shim.tanh(x)], [x])
    (y,) = run(x)
    with torch.no_grad():
        y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_gradient_of_a_gradient_is_refused():
    x = torch.tensor(V, requires_grad=True)
    run, _ = differentiable(lambda x: [x**3], [x])
    (g,) = torch.autograd.grad(run(x)[0].sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        g.sum().backward()


TWICE = {
    "saves its argument": lambda x: x * x,
    "saves what it makes": lambda x: np.exp(x),
    "saves nothing": lambda x: x * 2,
    "gives a view": lambda x: (x * x)[1:],
    "gives an array and a view of it": lambda x: (lambda y: (y, y[0]))(np.exp(x)),
    "gives its argument": lambda x: (x, np.exp(x)),
    "gives integers": lambda x: (np.exp(x), np.argmax(x)),
    "changes a copy": lambda x: (lambda y: (y.__imul__(x), y)[1])(x.copy()),
    "changes an argument": lambda x, y: y.__imul__(np.exp(x)).sum(),
}


@pytest.mark.parametrize("backend", ["native", "aot_eager"])
@pytest.mark.parametrize("name", TWICE)
def test_gradients_of_gradients_are_refused_in_words(name, backend):
    fast = np_compile.compile(np_compile.wrap_numpy(TWICE[name]), backend=backend)
    for leaf in (True, False, True):
        x = torch.rand(3, 3, dtype=torch.float64, requires_grad=True)
        others = [torch.ones_like(x.detach())] if name == "changes an argument" else []
        results = fast(x if leaf else x * 1, *others)
        results = results if isinstance(results, tuple) else (results,)
        total = sum(r.sum() for r in results if r.requires_grad)
        (g,) = torch.autograd.grad(total, x, create_graph=True)
        for unused in (False, True):
            with pytest.raises(RuntimeError, match=r"double backward.*backend='eager'"):
                torch.autograd.grad((g * g).sum(), x, allow_unused=unused, retain_graph=True)


@pytest.mark.parametrize("backend", ["native", "aot_eager"])
@pytest.mark.parametrize("name", list(TWICE)[:-1])
def test_a_graph_may_be_gone_through_twice(name, backend):
    x = torch.rand(3, 3, dtype=torch.float64, requires_grad=True)
    results = np_compile.compile(np_compile.wrap_numpy(TWICE[name]), backend=backend)(x)
    results = results if isinstance(results, tuple) else (results,)
    total = sum(r.sum() for r in results if r.requires_grad)
    total.backward(retain_graph=True)
    once = x.grad.clone()
    total.backward()
    torch.testing.assert_close(x.grad, 2 * once)
