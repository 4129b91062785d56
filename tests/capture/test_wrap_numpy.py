"""Torch tensors in and out of NumPy functions: no copies, gradients, breaks, mixed programs."""

from __future__ import annotations

import collections
import dataclasses
import functools
import gc
import statistics
import types

import numpy as np
import pytest
import scipy.ndimage
import torch
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from torch.autograd import gradcheck

import np_compile
from np_compile import errors, shim

from ..support import Counting, data, thorough

F64 = torch.float64


def tensor(*shape, seed=0, grad=False, dtype=F64):
    t = torch.from_numpy(data(*shape, seed=seed)).to(dtype)
    return t.requires_grad_(grad)


def eager(f):
    return np_compile.wrap_numpy(f)


def compiled_eager(f):
    return np_compile.compile(np_compile.wrap_numpy(f), backend="eager")


def compiled_aot(f):
    return np_compile.compile(np_compile.wrap_numpy(f), backend="aot_eager")


both = pytest.mark.parametrize("wrap", [eager, compiled_eager], ids=["eager", "compiled"])
every = pytest.mark.parametrize(
    "wrap", [eager, compiled_eager, compiled_aot], ids=["eager", "compiled", "aot"]
)


# -- in and out --------------------------------------------------------------------------------


@every
@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.int64, torch.uint8, torch.bool, torch.complex64]
)
def test_tensors_in_tensors_out(wrap, dtype):
    def f(x):
        return x + x, (x * 2).sum(), np.where(x != 0, x, 1), x.reshape(2, -1).T

    x = torch.from_numpy(data(6)).to(dtype) if not dtype.is_complex else tensor(6).to(dtype)
    with np.errstate(all="ignore"):
        want = f(x.numpy())
    fast = wrap(f)
    for _ in range(2):
        got = fast(x)
        for g, w in zip(got, want, strict=True):
            assert type(g) is torch.Tensor
            np.testing.assert_allclose(g.numpy(), w, rtol=1e-6)
            assert g.numpy().dtype == w.dtype
            assert tuple(g.shape) == np.shape(w)


@both
def test_nothing_is_copied(wrap):
    x = tensor(4, 3)
    identity = wrap(lambda x: x)(x)
    assert identity.data_ptr() == x.data_ptr()
    assert identity.shape == x.shape
    part = wrap(lambda x: x[1:, 1])(x)
    assert part.data_ptr() == x[1:, 1].data_ptr()
    assert part.stride() == x[1:, 1].stride()
    assert wrap(lambda x: x.T)(x).data_ptr() == x.data_ptr()
    assert wrap(lambda x: x.reshape(-1))(x).data_ptr() == x.data_ptr()


@both
def test_in_place_on_a_tensor(wrap):
    def f(x):
        x += 1
        x[0] = 5
        x[::-1][0] *= 2
        return x

    fast = wrap(f)
    for _ in range(2):
        x = tensor(4)
        want = f(x.numpy().copy())
        got = fast(x)
        assert got.data_ptr() == x.data_ptr()
        np.testing.assert_array_equal(x.numpy(), want)


def added_at(x, v):
    np.add.at(x, [0, 0, 2], v)


def subtracted_at(x, v):
    np.subtract.at(x, [1, 1], v.max())


def multiplied_at(x, v):
    np.multiply.at(x, slice(1, 3), (2,))
    np.add.at(x, np.arange(len(v)), np.concatenate([v]))


@both
@pytest.mark.parametrize("f", [added_at, subtracted_at, multiplied_at])
@pytest.mark.parametrize("dtype", [F64, torch.int16, torch.float16])
def test_what_returns_nothing_runs_once(f, dtype, wrap):
    """Calls that give None have been run by the shim as much as others, and not by NumPy again."""
    v = tensor(3).abs()
    fast = wrap(f)
    for _ in range(2):
        x, want = torch.ones(3, dtype=dtype), np.ones(3, tensor(0).to(dtype).numpy().dtype)
        f(want, v.numpy())
        assert fast(x, v) is None
        np.testing.assert_array_equal(x.numpy(), want)


def test_what_fails_after_it_has_written_does_not_run_again(monkeypatch):
    row = shim.TABLE["add.at"]

    def fails(*args):
        row.function(*args)
        raise RuntimeError("too late")

    monkeypatch.setitem(shim.TABLE, "add.at", dataclasses.replace(row, function=fails))
    x = torch.ones(3, dtype=torch.float16)
    with pytest.raises(RuntimeError, match="too late"):
        compiled_eager(added_at)(x, tensor(3).fill_(2))
    assert x.tolist() == [5, 1, 3]


@both
def test_non_contiguous_tensors(wrap):
    for x in (
        tensor(4, 6).T,
        tensor(8, 6)[::2, 1::2],
        tensor(3, 1).expand(3, 4),
        tensor(2, 3, 4).permute(2, 0, 1),
    ):
        want = np.sin(x.numpy()) + x.numpy().sum(axis=0)
        np.testing.assert_allclose(wrap(lambda x: np.sin(x) + x.sum(axis=0))(x).numpy(), want)


@both
def test_overlapping_tensors(wrap):
    def f(x, y):
        x += 1
        return y * 2

    whole = tensor(6)
    want = f(*(lambda a: (a[:4], a[2:]))(whole.numpy().copy()))
    got = wrap(f)(whole[:4], whole[2:])
    np.testing.assert_array_equal(got.numpy(), want)


Pair = collections.namedtuple("Pair", ["a", "b"])


@both
def test_nested_structures_of_tensors(wrap):
    def f(d, p, items):
        return {
            "sum": d["x"] + p.a,
            "list": [items[0] * 2, (items[1],)],
            "p": Pair(p.b, 3),
            "none": None,
        }

    x, y = tensor(3), tensor(3, seed=1)
    got = wrap(f)({"x": x}, Pair(y, x), [x, y])
    assert type(got["p"]) is Pair
    assert got["p"].b == 3
    assert got["none"] is None
    assert torch.equal(got["sum"], x + y)
    assert torch.equal(got["list"][0], x * 2)
    assert torch.equal(got["list"][1][0], y)


def test_tensors_in_a_dataclass():
    @dataclasses.dataclass
    class State:
        w: object
        steps: int = 0

    def f(s):
        s.w = s.w * 2
        s.steps += 1
        return s.w.sum()

    s = State(tensor(3))
    before = s.w
    r = compiled_eager(f)(s)
    assert torch.allclose(r, before.sum() * 2)
    assert type(s.w) is torch.Tensor
    assert torch.equal(s.w, before * 2)
    assert s.steps == 1


@both
def test_keyword_arguments_numbers_and_numpy_arrays_beside_tensors(wrap):
    def f(x, w, *, s, n=2):
        return x * s + w * n

    x, w = tensor(3), data(3, seed=1)
    got = wrap(f)(x, w=w, s=0.5)
    assert type(got) is torch.Tensor
    np.testing.assert_allclose(got.numpy(), x.numpy() * 0.5 + w * 2)


@both
def test_dlpack_producers(wrap):
    class Producer:
        def __init__(self, t):
            self.t = t

        def __dlpack__(self, **kwargs):
            return self.t.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.t.__dlpack_device__()

    x = tensor(3)
    got = wrap(lambda p: p * 2 + 1)(Producer(x))
    assert torch.equal(got, x * 2 + 1)


@both
def test_arrays_of_subclasses_beside_tensors_stay_numpy_s_own(wrap):
    gaps = np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0])
    x = tensor(3)
    assert torch.equal(wrap(lambda a, t: a.mean() + t)(gaps, x), 2 + x)
    got = wrap(lambda a, t: a * t)(gaps, x)
    assert type(got) is np.ma.MaskedArray
    np.testing.assert_array_equal(got.filled(0), (gaps * x.numpy()).filled(0))
    rows = np.rec.fromarrays([np.arange(3.0)], names="a")
    assert torch.equal(wrap(lambda a, t: a.a + t)(rows, x), torch.arange(3.0) + x)
    assert torch.equal(
        wrap(lambda a, t: a + t)(np.arange(3.0).view(np.memmap), x), torch.arange(3.0) + x
    )


@both
def test_a_parameter_is_a_tensor(wrap):
    p = torch.nn.Parameter(tensor(3))
    y = wrap(lambda w: (w**2).sum())(p)
    y.backward()
    assert torch.allclose(p.grad, 2 * p.detach())


@both
def test_bfloat16_names_itself(wrap):
    with pytest.raises((TypeError, errors.NpCompileError), match="bfloat16"):
        wrap(lambda x: x + 1)(torch.ones(2, dtype=torch.bfloat16))


@both
def test_promotion_is_numpys(wrap):
    x = torch.arange(3)
    assert wrap(lambda x: x / 2)(x).dtype == torch.float64
    assert wrap(lambda x: np.sqrt(x))(x).dtype == torch.float64
    assert wrap(lambda x: x * 2.0)(torch.ones(2)).dtype == torch.float32
    assert wrap(lambda x: x + np.float64(1))(torch.ones(2)).dtype == torch.float64
    assert wrap(lambda x: x.sum())(torch.ones(2, dtype=torch.int32)).dtype == torch.int64


@both
def test_errors_are_numpys(wrap):
    with pytest.raises(ValueError, match="operands could not be broadcast"):
        wrap(lambda x: x + np.zeros(7))(tensor(3))
    with pytest.raises(IndexError, match="out of bounds"):
        wrap(lambda x: x[9])(tensor(3))


def test_wrapping_a_compiled_function_and_compiling_a_wrapped_one():
    f = np_compile.compile(lambda x: np.sin(x), backend="eager")
    x = tensor(3)
    assert torch.equal(np_compile.wrap_numpy(f)(x), torch.sin(x))
    g = np_compile.compile(
        np_compile.wrap_numpy(lambda x: np.sin(x)), backend="eager", fullgraph=True
    )
    assert torch.equal(g(x), torch.sin(x))


def test_the_repeat_compiles_nothing():
    counter = Counting()
    f = np_compile.compile(
        np_compile.wrap_numpy(lambda x, s: np.tanh(x * s).sum()), backend=counter, fullgraph=True
    )
    for s in (0.5, 1.5, 2.5):
        f(tensor(4), s)
    assert counter.count == 1
    f(tensor(4, grad=True), 0.5)
    before = counter.count
    f(tensor(4, grad=True), 2.5).backward()
    assert counter.count == before
    with torch.no_grad():
        f(tensor(4), 0.5)


@every
def test_what_is_called_beside_functions_is_wrapped(wrap):
    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.by = torch.nn.Parameter(torch.tensor([2.0, 3.0], dtype=F64))
            self.call = wrap(self.times)

        def times(self, x):
            return np.sin(x) * self.by

        def forward(self, x):
            return self.call(x)

    class Plus:
        def __call__(self, x):
            return np.sin(x) * 2

    x, scale = tensor(2), Scale()
    sine = torch.sin(x)
    torch.testing.assert_close(scale(x), sine * scale.by)
    scale(x).sum().backward()
    torch.testing.assert_close(scale.by.grad, sine)
    torch.testing.assert_close(wrap(Plus())(x), sine * 2)
    torch.testing.assert_close(wrap(functools.partial(np_multiply, y=2.0))(x), x * 2)


def np_multiply(x, y):
    return np.multiply(x, y)


def test_a_method_and_a_decorator():
    class Net:
        def __init__(self):
            self.scale = 2.0

        @np_compile.wrap_numpy
        def eager(self, x):
            return x * self.scale

        @np_compile.compile(backend="eager")
        @np_compile.wrap_numpy
        def fast(self, x):
            return x * self.scale

    n, x = Net(), tensor(3)
    assert torch.equal(n.eager(x), x * 2)
    assert torch.equal(n.fast(x), x * 2)


# -- gradients ---------------------------------------------------------------------------------

DIFFERENTIABLE = {
    "arithmetic": lambda x: x * x + 3 / (x * x + 1) - x,
    "power": lambda x: (x * x + 1) ** 1.5 + x**2 + x**3,
    "exp log sqrt": lambda x: np.exp(x * 0.1) + np.log(x * x + 1) + np.sqrt(x * x + 2),
    "trigonometric": lambda x: (
        np.sin(x) * np.cos(x) + np.tan(x * 0.1) + np.arctan(x) + np.arctan2(x, 2.0)
    ),
    "hyperbolic": lambda x: np.tanh(x) + np.sinh(x * 0.5) * np.cosh(x * 0.5) + np.arcsinh(x),
    "sum mean": lambda x: x.sum(axis=0) + x.mean(axis=1, keepdims=True).sum() + np.sum(x * x),
    "var std": lambda x: x.var(axis=0) + x.std(axis=1).sum() + x.var(ddof=1),
    "prod": lambda x: x.prod(axis=1),
    "max min": lambda x: x.max(axis=0) + np.min(x) + np.amax(x, axis=(0, 1)),
    "maximum where": lambda x: (
        np.maximum(x, 0.1) + np.where(x > 0.3, x * 2, x * x) + np.clip(x, -0.7, 0.9)
    ),
    "abs": lambda x: np.abs(x) + np.sign(x) * x,
    "matmul": lambda x: x @ x.T + np.dot(x, x[0]).sum(),
    "einsum tensordot": lambda x: np.einsum("ij,kj->ik", x, x) + np.tensordot(x, x, axes=2),
    "outer inner": lambda x: np.outer(x[0], x[1]).sum(1) + np.inner(x[0], x[1]),
    "indexing": lambda x: (
        x[1:, ::2].sum() + x[[0, 2, 0]].sum(0) + x[..., -1].sum() + x[::-1, 1].sum()
    ),
    "views": lambda x: x.T.reshape(-1)[::-1] * x.ravel() + np.flip(x, 0).reshape(-1),
    "concatenate stack": lambda x: np.concatenate([x, x * 2])[1:4] + np.stack([x[0], x[1], x[0]]),
    "pad roll tile": lambda x: (
        np.roll(x, 1, 0) + np.pad(x, 1)[1:-1, 1:-1] + np.tile(x, 2)[:, : x.shape[1]]
    ),
    "cumsum diff": lambda x: (
        np.cumsum(x, axis=0)[1:] + np.diff(x, axis=0) + np.cumprod(x, axis=1)[1:]
    ),
    "sort": lambda x: np.sort(x, axis=1) * np.arange(1.0, 5.0),
    "in place on a copy": lambda x: (lambda y: (y.__setitem__(0, y[1] * 2), y.__imul__(x), y)[2])(
        x.copy()
    ),
    "norm": lambda x: np.linalg.norm(x) + np.sqrt((x**2).sum(1)),
    "solve inv det": lambda x: np.linalg.solve(x @ x.T + 3 * np.eye(3), x) + np.linalg.det(x @ x.T),
    "softmax": lambda x: (lambda e: e / e.sum(1, keepdims=True))(
        np.exp(x - x.max(1, keepdims=True))
    ),
    "broadcasting": lambda x: (x[:, None] - x[None]) ** 2,
    "astype": lambda x: x.astype(np.float64) * 2 + np.float64(2) * x,
    "scalars": lambda x: x[0, 0] * x[1, 1] + x.sum() * x.max(),
    "fft": lambda x: np.abs(np.fft.rfft(x, axis=1)) ** 2,
    "trace diag": lambda x: np.trace(x) + np.diag(x).sum() * x[0],
    "loop": lambda x: sum(np.sin(x * k) for k in range(4)),
    "repeated places": lambda x: (
        lambda y, z: (
            y.__setitem__([0, 2, 2, -12], x[1]),
            np.put(y, [3, 3, 4], x[0]),
            np.put_along_axis(z, np.array([[0, 0, 1], [2, 2, 2], [3, 0, 3]]), x[:, 1:] * 3, 1),
            z.__setitem__((slice(None), [1, 1]), x[:, :2] ** 2),
            np.concatenate([y, z.ravel()]),
        )[-1]
    )(x.ravel().copy(), x * 2),
    "windows": lambda x: sliding_window_view(x, (2, 3)) * np.arange(6.0).reshape(2, 3),
    "complex parts": lambda x: (
        (z := np.zeros((3, 4), complex)),
        z.__setitem__(slice(1, None), x[1:] * 1j),
        z.__setitem__(0, x[2] * (1 + 2j)),
        (w := np.abs(z[1:]) ** 2),
        z.real.__setitem__(1, x[0]),
        z.__setitem__(2, z[1] * z[2]),
        np.concatenate([w, np.abs(z) ** 2]),
    )[-1],
    "strides": lambda x: as_strided((x * x)[1], (3, 2, 2), (8, 8, 16)) * np.arange(2.0),
    "strides by their module": lambda x: np.lib.stride_tricks.as_strided(x, (10, 3), (8, 8)) ** 2,
    "written by strides": lambda x: (
        (y := np.sin(x)),
        (v := as_strided(y, (2, 3), (40, 8))).__imul__(v * 3),
        (z := y.T.copy()),
        as_strided(z[0], (2, 2), (8, 32)).__setitem__(0, x[1, :2]),
        y * z.T,
    )[-1],
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_against_finite_differences(name):
    f = compiled_eager(DIFFERENTIABLE[name])
    assert gradcheck(f, (tensor(3, 4, seed=3, grad=True),), atol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        *("arithmetic", "matmul", "indexing", "repeated places", "windows", "in place on a copy"),
        "complex parts",
        "written by strides",
        *thorough(
            "trigonometric", "sum mean", "softmax", "loop", "strides", "maximum where", "views"
        ),
    ],
)
def test_gradients_of_wrapped_and_aot_functions(name):
    x = tensor(3, 4, seed=3, grad=True)
    assert gradcheck(eager(DIFFERENTIABLE[name]), (x,), atol=1e-5)
    assert gradcheck(compiled_aot(DIFFERENTIABLE[name]), (x,), atol=1e-5)
    native = np_compile.compile(np_compile.wrap_numpy(DIFFERENTIABLE[name]))
    assert gradcheck(native, (x,), atol=1e-5)


def test_gradients_of_several_arguments_and_results():
    def f(x, y, s):
        return np.sin(x) * y, (x * s).sum() + y.max()

    x, y = tensor(3, grad=True), tensor(3, seed=1, grad=True)
    assert gradcheck(lambda x, y: compiled_eager(f)(x, y, 0.5), (x, y))
    fast = compiled_eager(f)
    a, b = fast(x, y.detach(), 2.0)
    assert a.requires_grad
    assert b.requires_grad


def breaks_on_branch(x):
    y = np.sin(x) * 2
    if y.sum() > -1e9:
        y = y * x
    return y.sum()


def breaks_on_print(x):
    y = np.sin(x)
    print("sum", bool(y.sum() > 0))
    return (y * y).sum()


def breaks_in_loop(x):
    for _ in range(4):
        x = np.tanh(x) * 1.5
        if x.max() > 1e9:
            break
    return x.sum()


def breaks_on_mask(x):
    y = x * 2
    return (y[y > 0] ** 2).sum()


def breaks_asked(x):
    y = x * x
    np_compile.graph_break()
    v = y[1:]
    np_compile.graph_break()
    return (v * x[:-1]).sum()


def breaks_on_linalg(x):
    a = np.outer(x, x) + 2 * np.eye(len(x))
    return np.linalg.inv(a).sum() + np.linalg.slogdet(a)[1]


BREAKS = [
    breaks_on_branch,
    breaks_on_print,
    breaks_in_loop,
    breaks_on_mask,
    breaks_asked,
    breaks_on_linalg,
]


@pytest.mark.parametrize("f", BREAKS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrap", [compiled_eager, compiled_aot])
def test_gradients_through_breaks(f, wrap):
    assert gradcheck(wrap(f), (tensor(5, seed=2, grad=True),), atol=1e-5)


@every
def test_a_function_that_is_called_back_runs_once_for_each_row(wrap):
    seen = []

    def f(x, w):
        def smooth(row):
            seen.append(isinstance(row, np.ndarray))
            return np.convolve(row, w, mode="same")

        return np.apply_along_axis(smooth, 1, x)

    want = f(data(3, 5), data(3))
    fast = wrap(f)
    for grad in (False, True):
        seen.clear()
        got = fast(tensor(3, 5, grad=grad), tensor(3))
        assert seen == [True] * 3
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-12)
    assert gradcheck(fast, (tensor(3, 5, grad=True), tensor(3, grad=True)), atol=1e-5)


@every
def test_numbers_that_only_numpy_gives_come_back_as_tensors(wrap):
    def f(x):
        return np.ma.masked_where(x > 0.5, x).sum()

    got = wrap(f)(tensor(9))
    assert isinstance(got, torch.Tensor)
    assert got.item() == f(data(9))


def test_a_call_only_numpy_can_run_does_not_lose_a_gradient_silently():
    import scipy.special

    def f(x):
        return scipy.special.erf(x * 2).sum()

    fast = compiled_eager(f)
    with pytest.raises(errors.GradientLost) as e:
        fast(tensor(3, grad=True))
    assert "erf" in str(e.value)
    assert __file__ in str(e.value)
    with torch.no_grad():
        got = fast(tensor(3, grad=True))
    np.testing.assert_allclose(got.item(), f(data(3)))
    np.testing.assert_allclose(fast(tensor(3)).item(), f(data(3)))


def test_no_grad_is_respected():
    fast = compiled_eager(lambda x: np.sin(x) * 2)
    x = tensor(3, grad=True)
    assert fast(x).requires_grad
    with torch.no_grad():
        assert not fast(x).requires_grad
    assert fast(x).requires_grad
    with torch.inference_mode():
        assert not fast(tensor(3)).requires_grad


def test_tensors_without_gradient_give_tensors_without_gradient():
    assert not compiled_eager(lambda x: x * 2)(tensor(3)).requires_grad
    x = tensor(3, grad=True)
    assert not compiled_eager(lambda x: x > 0)(x).requires_grad
    assert not compiled_eager(lambda x: np.argmax(x))(x).requires_grad


def test_double_backward():
    f = compiled_eager(lambda x: (np.sin(x) * x**2).sum())
    x = tensor(3, grad=True)
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    t = x.detach()
    want = (2 - t**2) * torch.sin(t) + 4 * t * torch.cos(t)
    assert torch.allclose(h, want)
    fast = compiled_aot(lambda x: (np.sin(x) * x**2).sum())
    try:
        (g,) = torch.autograd.grad(fast(x), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
    except RuntimeError as e:
        assert "double" in str(e) or "twice" in str(e)  # noqa: PT017
    else:
        assert torch.allclose(h, want)


def test_gradients_of_an_in_place_argument():
    def f(x, w):
        x *= w
        return x.sum()

    w = tensor(3, seed=1, grad=True)
    x = tensor(3)
    before = x.clone()
    compiled_eager(f)(x, w).backward()
    assert torch.allclose(w.grad, before)
    leaf = tensor(3, grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        compiled_eager(f)(leaf, w)


def _scaled(a, b):
    a *= 2.0
    return b * a


def _turned(a, b):
    c = np.exp(b)
    a[1] = np.sin(b[0])
    b += a * c
    return a * b


@pytest.mark.parametrize("f", [_scaled, _turned])
@pytest.mark.parametrize("parts", [((1, 5), (0, 4)), ((0, 4), (0, 4))])
@every
def test_arguments_that_share_memory_are_written_to_with_gradients(f, parts, wrap):
    values, c = data(5, seed=2), np.cos(np.arange(5.0))

    def loss(g, memory, weights):
        result = g(*[memory[low:high] for low, high in parts])
        return (result * weights[:4]).sum() + (memory * weights).sum()

    want = [loss(f, values + 1e-6 * h, c) - loss(f, values - 1e-6 * h, c) for h in np.eye(5)]
    g = wrap(f)
    for _ in range(3):
        x = torch.tensor(values, requires_grad=True)
        found = loss(g, x * 1, torch.tensor(c))
        assert found.item() == pytest.approx(loss(f, values.copy(), c))
        found.backward()
        assert x.grad.tolist() == pytest.approx(np.divide(want, 2e-6).tolist(), abs=1e-6)


@pytest.mark.parametrize("f", [_scaled, _turned])
def test_what_is_not_compiled_yet_writes_to_a_tensor_with_gradients(f):
    a, b = tensor(4, seed=1, grad=True), tensor(4, seed=2, grad=True)
    results = []
    for g in (np_compile.wrap_numpy(f), np_compile.run(compiled_eager(f))):
        x, y = a * 1, b * 1
        z = g(x, y)
        loss = (x * x + y).sum() + (z * z).sum()
        results.append([x, y, z, *torch.autograd.grad(loss, [a, b])])
    torch.testing.assert_close(*results, rtol=0, atol=0)


def _read_before(y, x):
    s = (y * y * x).sum()
    if float(s) > 0:
        y *= 2
    return s + (y * x).sum()


def _again(y, x):
    t = np.exp(y * x)
    y += t
    if float(t.sum()) > 0:
        y *= t
    u = y * y
    if float(u.sum()) > 0:
        y[0] = u[1] * t[0]
    return (y * u * t).sum()


def _at_each_turn(y, x):
    s = 0.0
    for k in range(30):
        s = s + (y * x).sum()
        y[k % 4] = k * x[0]
    return s


@pytest.mark.parametrize("f", [_read_before, _again, _at_each_turn])
@pytest.mark.parametrize("of_both", [True, False])
@pytest.mark.parametrize(
    "wrap",
    [eager, compiled_eager, compiled_aot, lambda f: np_compile.run(compiled_eager(f))],
    ids=["eager", "compiled", "aot", "pending"],
)
def test_segments_write_to_what_autograd_has_saved_in_earlier_ones(f, of_both, wrap):
    values, c = np.array([0.4, 0.1, 0.3, 0.6]), np.array([0.7, 0.2, 0.5, 0.3])
    fast = wrap(f)
    for _ in range(4):
        y, x = torch.tensor(values, requires_grad=of_both), torch.tensor(c, requires_grad=True)
        written = y * 1
        fast(written, x).backward()
        after = values.copy()
        for t, k in ((y, 0), (x, 1)) if of_both else ((x, 1),):
            for i in range(4):
                h = np.zeros((2, 4))
                h[k, i] = 1e-6
                low, high = (f(values + s * h[0], c + s * h[1]) for s in (-1, 1))
                assert t.grad[i].item() == pytest.approx((high - low) / 2e-6, rel=1e-5, abs=1e-6)
        f(after, c)
        assert written.tolist() == pytest.approx(after.tolist())


@pytest.mark.parametrize(
    "backend", ["native", "aot_eager", pytest.param("inductor", marks=pytest.mark.thorough)]
)
def test_a_program_writes_to_data_that_its_gradient_needs(backend):
    def f(x, w):
        s = (x * w).sum()
        x[0] = 5.0
        return s + (x * w).sum()

    fast = np_compile.compile(np_compile.wrap_numpy(f), backend=backend)
    for _ in range(3):
        x, w = torch.tensor([0.5, 2.0]), torch.tensor([3.0, 4.0], requires_grad=True)
        fast(x, w).backward()
        assert (x.tolist(), w.grad.tolist()) == ([5.0, 2.0], [5.5, 4.0])


def test_training_with_a_torch_optimizer():
    def loss(w, b, x, y):
        return ((np.tanh(x @ w + b) - y) ** 2).mean()

    x, y = tensor(20, 3), torch.sign(tensor(20, 1))
    w, b = tensor(3, 1, seed=4, grad=True), torch.zeros(1, dtype=F64, requires_grad=True)
    fast = compiled_eager(loss)
    optimizer = torch.optim.SGD([w, b], lr=0.5)
    values = []
    for _ in range(15):
        optimizer.zero_grad()
        value = fast(w, b, x, y)
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < values[0]


def test_randomness_under_wrap_numpy_is_numpys():
    def f(x):
        return x + np.random.rand(3)

    np.random.seed(3)
    want = f(data(3))
    for wrap in (eager, compiled_eager):
        np.random.seed(3)
        np.testing.assert_allclose(wrap(f)(tensor(3)).numpy(), want)


# -- mixed programs ----------------------------------------------------------------------------


def test_numpy_and_from_numpy_inside_wrapped_code_keep_gradients():
    def f(x):
        t = torch.from_numpy(np.sin(x) * 2)
        t = torch.relu(t)
        return np.sum(t.numpy() * x)

    x = tensor(4, grad=True)
    compiled_eager(f)(x).backward()
    y = x.detach().clone().requires_grad_()
    (torch.relu(torch.sin(y) * 2) * y).sum().backward()
    assert torch.allclose(x.grad, y.grad)


def test_from_numpy_inside_plain_compiled_code_is_a_view():
    def f(x):
        t = torch.from_numpy(x)
        t += 1
        t.numpy()[0] = 9
        return x * 2, t

    fast = np_compile.compile(f, backend="eager")
    for _ in range(2):
        x = data(3)
        want = x.copy()
        wr, wt = f(want)
        r, t = fast(x)
        np.testing.assert_array_equal(x, want)
        np.testing.assert_array_equal(r, wr)
        assert type(r) is np.ndarray
        assert torch.equal(t, wt)
        assert t.data_ptr() == x.ctypes.data


def test_torch_functions_between_numpy_calls():
    def f(x):
        y = np.cos(x)
        t = torch.nn.functional.softplus(torch.as_tensor(y))
        return np.exp(t.numpy()) + torch.tensor(y).numpy() + np.asarray(t)

    fast = np_compile.compile(f, backend="eager")
    for _ in range(2):
        np.testing.assert_allclose(fast(data(4)), f(data(4)))


def test_a_module_used_inside_wrapped_code():
    layer = torch.nn.Linear(3, 2).double()

    def f(x):
        h = layer(torch.from_numpy(x * 2))
        return (h.numpy() ** 2).sum()

    x = tensor(4, 3, grad=True)
    compiled_eager(f)(x).backward()
    y = x.detach().clone().requires_grad_()
    (layer(y * 2) ** 2).sum().backward()
    assert torch.allclose(x.grad, y.grad)
    assert layer.weight.grad is not None


class _Normed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3, dtype=F64))
        self.register_buffer("mean", torch.zeros(3, dtype=F64))
        self.register_buffer("squares", torch.zeros(3, dtype=F64))
        self.last = None


@every
def test_a_module_has_tensors_where_its_buffers_were_set(wrap):
    def forward(self, x):
        m = np.mean(x, axis=0)
        self.mean = 0.9 * self.mean + 0.1 * m
        self.squares[1:] = 0.9 * self.squares[1:] + 0.1 * (m * m)[1:]
        self.last = {"m": [m]}
        return ((x - m + self.mean) ** 2 * self.w).sum()

    module = type("Module", (_Normed,), {"forward": wrap(forward)})()
    mean, squares = np.zeros(3), np.zeros(3)
    for k in range(3):
        x = tensor(4, 3, seed=k)
        module(x).backward()
        m = x.numpy().mean(axis=0)
        mean = 0.9 * mean + 0.1 * m
        squares[1:] = 0.9 * squares[1:] + 0.1 * (m * m)[1:]
        assert list(module.state_dict()) == ["w", "mean", "squares"]
        np.testing.assert_allclose(module.mean.numpy(), mean)
        np.testing.assert_allclose(module.squares.numpy(), squares)
        assert type(module.last["m"][0]) is torch.Tensor
        want = ((x.numpy() - m + mean) ** 2).sum(axis=0)
        np.testing.assert_allclose(module.w.grad.numpy(), want)
        module.zero_grad()


@every
def test_functions_of_torchs_say_that_arrays_are_numpys(wrap):
    for f in (lambda x: torch.sin(np.exp(x)), lambda x: torch.nn.functional.relu(x * 2)):
        with pytest.raises(TypeError, match=r"of an array: arrays .*NumPy's\n .*from_numpy"):
            wrap(f)(tensor(3, grad=True))


def test_code_outside_numpy_that_would_lose_the_gradient_raises():
    f = compiled_eager(lambda x: np.vectorize(lambda v: v * 2)(x) + 1)
    with pytest.raises(np_compile.errors.GradientLost, match="gradient of its argument"):
        f(tensor(3, grad=True))
    with torch.no_grad():
        got = f(tensor(3, grad=True))
    assert torch.equal(got, tensor(3) * 2 + 1)


@pytest.mark.parametrize("dtype", [F64, torch.int64])
def test_a_library_cannot_make_numbers_of_the_type_of_an_element(dtype):
    with pytest.raises(TypeError):
        compiled_eager(lambda x: statistics.mean(x))(torch.arange(4, dtype=dtype))


def _by_rows(p):
    for row in p:
        row /= row.sum()


def _in_held_views(p):
    v = p[1:]
    v *= 2
    p *= 3
    v += 1


IN_PLACE = {
    "a diagonal": lambda p: np.fill_diagonal(p, 0.0),
    "fill": lambda p: p.fill(1.0),
    "a view": lambda p: p[1:].__imul__(2.0),
    "a transposed view": lambda p: p.T.__imul__(2.0),
    "a flat view": lambda p: p.reshape(-1).__imul__(2.0),
    "flat": lambda p: p.flat.__setitem__(slice(0, 3), 0.0),
    "rows": _by_rows,
    "views that are held": _in_held_views,
}


@pytest.mark.parametrize("write", IN_PLACE.values(), ids=IN_PLACE)
def test_what_autograd_has_saved_is_written_to(write):
    def f(x):
        p = np.exp(x)
        q = p * p
        write(p)
        return (p * q).sum()

    x, d = tensor(4, 4, grad=True), tensor(4, 4, seed=1)
    (g,) = torch.autograd.grad(eager(f)(x), x)
    assert torch.allclose((g * d).sum(), _slope(f, x, d), rtol=1e-5)


def _slope(f, x, d):
    with torch.no_grad():
        up, down = (f((x + e * d).numpy()).sum() for e in (1e-6, -1e-6))
    return torch.tensor((up - down) / 2e-6)


class _ArrayLike:
    def __init__(self, a):
        self.a = a

    def __array__(self, dtype=None, copy=None):
        return self.a * 2


def _filled(z, value):
    z.flat = value
    return z


def _stored_by_flat(x):
    z = np.ones((2, 4))
    z.flat[1] = x[0]
    z.T.flat[2:6] *= x[1]
    z.flat[[0, 7]] = x[2:]
    return z


FLAT = {
    "stored": _stored_by_flat,
    "repeated": lambda x: _filled(np.zeros((2, 6)), x * 2),
    "iterated": lambda x: sum(k * v for k, v in enumerate(np.outer(x, x).T.flat)),
    "read": lambda x: np.outer(x, x).T.flat[2:5] * len(x.flat),
    "an array": lambda x: np.array(x.flat) * np.sin(x.flat),
    "an array-like": lambda x: np.asarray(_ArrayLike(x)) * 3,
}


@pytest.mark.parametrize("f", FLAT.values(), ids=FLAT)
@pytest.mark.parametrize("wrap", [eager, compiled_eager], ids=["wrap_numpy", "compile"])
def test_gradients_pass_through_the_flat_iterator_and_array_likes(f, wrap):
    x, d = tensor(4, grad=True), tensor(4, seed=1)
    if wrap is compiled_eager and f is FLAT["an array-like"]:
        with pytest.raises(errors.GradientLost):
            wrap(f)(x)
        return
    y = wrap(f)(x)
    assert np.allclose(y.detach(), f(x.detach().numpy()))
    (g,) = torch.autograd.grad(y.sum(), x)
    assert torch.allclose((g * d).sum(), _slope(f, x, d), rtol=1e-5)


def test_a_callers_tensor_is_written_to_in_place_each_time():
    def f(x, y):
        x *= y
        x[1:] *= y[1:]
        return x.sum()

    x, y = tensor(3), tensor(3, seed=1, grad=True)
    for _ in range(3):  # short ways are known from the second call on
        z = x.clone()
        (g,) = torch.autograd.grad(eager(f)(z, y), y)
        assert torch.allclose(g, x * (2 * y) ** torch.tensor([0, 1, 1]))


def _solved_by_elements(x, y):
    b = np.zeros(3)
    for j in range(3):
        r = y - x @ b
        if r.sum() > 1e9:  # ends a segment
            break
        b[j] = np.tanh(x[:, j] @ r)
    return b


def _scaled_by_what_changes(x, y):
    t = np.ones(3)
    for _ in range(3):
        x = x * t
        if x.sum() > 1e9:
            break
        t += y[:3]
    return x


@pytest.mark.parametrize("f", [_solved_by_elements, _scaled_by_what_changes])
@every
def test_arrays_of_the_functions_own_that_autograd_has_saved_are_written_to(f, wrap):
    x, y, d = tensor(4, 3, grad=True), tensor(4, seed=1), tensor(4, 3, seed=2)
    (g,) = torch.autograd.grad(wrap(f)(x, y).sum(), x)
    assert torch.allclose((g * d).sum(), _slope(lambda x: f(x, y.numpy()), x, d), rtol=1e-5)


@both
def test_a_tensor_of_an_array_shares_its_memory_with_gradients(wrap):
    def f(x):
        p = np.exp(x)
        t = torch.from_numpy(p)
        p[0] = 5.0
        return float(t[0].detach())

    assert wrap(f)(tensor(3, grad=True)) == 5.0


def test_autocast_changes_nothing_while_a_compile_is_awaited():
    with np_compile.config.patch(compile_in="background"), torch.autocast("cpu"):
        fast = np_compile.compile(np_compile.wrap_numpy(lambda x: x @ x))
        assert fast(torch.ones(4, 4)).dtype is torch.float32


@pytest.mark.parametrize(
    ("dtype", "way"), [("complex32", "cfloat"), ("bfloat16", "float"), ("qint8", "dequantize")]
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_remedy_for_a_dtype_keeps_what_it_holds(dtype, way):
    if dtype == "qint8":
        x = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    else:
        x = torch.ones(2, dtype=getattr(torch, dtype))
    with pytest.raises(errors.TensorArgument, match=rf"`x\.{way}\(\)`"):
        np_compile.wrap_numpy(lambda a: a)(x)


@both
def test_what_torch_lacks_runs_in_numpy_without_gradients(wrap):
    window = np.ones(5)

    def f(x):
        np.add(1.0, 2.0, out=window)
        return x * np.polyint(np.ones(4)) * window, np.polyfit(x, x + 1, 1)

    x = tensor(5)
    got = wrap(f)(x)
    want = f(x.numpy())
    for g, w in zip(got, want, strict=True):
        assert type(g) is torch.Tensor
        np.testing.assert_allclose(g.numpy(), w, atol=1e-12)


@pytest.mark.parametrize("wrap", [eager, compiled_eager, lambda f: np_compile.compile(eager(f))])
@pytest.mark.parametrize("given", ["itself", "in a list", "in an object"])
def test_new_arrays_lie_where_the_tensors_do_whatever_the_default_device(wrap, given):
    def f(x, holder):
        u = holder[0] if isinstance(holder, list) else getattr(holder, "u", x)
        r = np.zeros(3)
        for i in range(3):
            r[i] = u[i] * 2
        return r, np.zeros_like(u) + np.linspace(0, 1, 3), np.array([1.0, 2, 3]) + u

    class Holder:
        pass

    u, holder = tensor(3), Holder()
    holder.u = u
    args = {"itself": (u, None), "in a list": (1, [u]), "in an object": (2, holder)}[given]
    fast = wrap(f)
    with torch.device("cuda:0"):  # a default device that need not be there
        for _ in range(3):
            got = fast(*args)
            assert {t.device.type for t in got} == {"cpu"}
    for t, w in zip(got, f(u.numpy(), None), strict=True):
        np.testing.assert_allclose(t.numpy(), w)


class _Table(dict):
    """A dict of a class of its own."""


_LOG: list = []
_LATEST, _OTHERS, _KEPT = {}, _Table(), types.SimpleNamespace()


@pytest.mark.parametrize("make", [np_compile.wrap_numpy, np_compile.compile])
def test_what_is_stored_where_names_lead_is_tensors(make):
    cell: list = []

    def f(x, mine, table, log=[]):  # noqa: B006
        _LOG.append(x * 2)
        _LATEST["pair"] = x + 1, [x - 1]
        _OTHERS["x"] = x * 3
        _KEPT.x = x * 4
        for own in (cell, log, mine):
            own.append(x * 5)
        table["x"] = x * 6
        return x

    fast = make(np_compile.wrap_numpy(f)) if make is np_compile.compile else make(f)
    for _ in range(2):
        mine: list = []
        table = _Table()
        fast(torch.ones(2), mine, table)
        found = [
            _LOG[-1], *_LATEST["pair"][1], _LATEST["pair"][0], _OTHERS["x"], _KEPT.x, cell[-1],
            f.__defaults__[0][-1], mine[0], table["x"],
        ]  # fmt: skip
        assert [type(t) for t in found] == [torch.Tensor] * 9
        assert [t[0].item() for t in found] == [2, 0, 2, 3, 4, 5, 5, 5, 6]


def _relu(x, floor=0.0):
    return np.maximum(x, floor)


_STEPS = {"relu": _relu, "sine": np.sin, "more": [_relu, np.cos, data, abs]}


@every
def test_functions_in_containers_stay_there(wrap):
    before = {**_STEPS, "more": list(_STEPS["more"])}

    def f(x):
        return _STEPS["relu"](_STEPS["sine"](x)) + _STEPS["more"][0](x)

    fast = wrap(f)
    for _ in range(2):
        np.testing.assert_allclose(fast(tensor(4)).numpy(), f(data(4)))
        assert before == _STEPS


_SEEN: list = []


@pytest.mark.parametrize("stored", [None, lambda x: x, lambda x: x * 2])
def test_what_names_lead_to_is_looked_through_where_arrays_were_stored(stored, monkeypatch):
    looked = []

    def f(x):
        if stored is not None:
            _SEEN.append(stored(x))
        return x + 1

    look = np_compile.eager._give_stored
    monkeypatch.setattr(
        np_compile.eager, "_give_stored", lambda x, seen: [looked.append(x), look(x, seen)][1]
    )
    fast = np_compile.wrap_numpy(f)
    for _ in range(3):
        looked.clear()
        fast(tensor(3))
        assert bool(looked) == (stored is not None)
    assert all(type(x) is torch.Tensor for x in _SEEN)
    _SEEN.clear()


def _stored(x, y):
    x[:] = x * y


def _out(x, y):
    np.multiply(x, np.sin(y), out=x)


def _slices(x, y):
    x[1:] = x[1:] * y[1:] + x[:-1] * y[:-1]


def _masked(x, y):
    x[x > 0] *= 2 * y[x > 0]


def _with_threes(x, y):
    z = x * y
    x.fill(3.0)
    x[:] = x * z


def _exchanged(x, y):
    x[:3], x[3:] = x[3:] * y[:3], x[:3] * y[3:]
    x[::-1][1] = x[0] * x[2]


def _sorted(x, y):
    z = x * y
    x.sort()
    x *= z


_CHANGES = [_stored, _out, _slices, _masked, _with_threes, _exchanged, _sorted]


@pytest.mark.parametrize(
    ("change", "compiled"),
    [(c, False) for c in _CHANGES]
    + [pytest.param(c, True, marks=pytest.mark.thorough) for c in _CHANGES],
)
def test_what_is_written_over_keeps_its_gradients(change, compiled):
    def f(x, y):
        change(x, y)
        return (x * x * y).sum()

    g = np_compile.wrap_numpy(f)
    if compiled:
        g = np_compile.compile(g)
    x, y = np.array([0.9, -0.5, 0.7, -1.1, 0.2, 1.3]), np.cos(np.arange(6.0))
    for _ in range(2 if compiled else 1):
        leaves = [torch.tensor(v, requires_grad=True) for v in (x, y)]
        gradients = torch.autograd.grad(g(leaves[0] * 1, leaves[1]), leaves)
        buffer = torch.tensor(x)  # without a gradient, of which autograd saves the values
        of_y = torch.autograd.grad(g(buffer, leaves[1]), leaves[1])
        assert torch.equal(of_y[0], gradients[1])
        for k, found in enumerate(gradients):
            for i in range(6):
                h = np.zeros((2, 6))
                h[k, i] = 1e-6
                low, high = (f(x + s * h[0], y + s * h[1]) for s in (-1, 1))
                assert found[i].item() == pytest.approx((high - low) / 2e-6, abs=1e-6)


def test_a_compiled_call_may_write_over_what_its_gradient_needs():
    @np_compile.compile
    @np_compile.wrap_numpy
    def f(x, y):
        z = x * y
        x.fill(3.0)
        return (z * y * x).sum()

    for _ in range(2):
        x, y = tensor(6), tensor(6, seed=1, grad=True)
        expected = 6 * x * y
        f(x, y).backward()
        torch.testing.assert_close(y.grad, expected.detach())


def test_a_row_that_is_written_in_each_step_costs_the_row():
    def f(w, x):
        out = np.zeros(x.shape)
        for t in range(1, len(x)):
            out[t] = np.tanh(out[t - 1] @ w + x[t])
        return (out * out).sum()

    class Elements(torch.utils._python_dispatch.TorchDispatchMode):
        cloned = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function is torch.ops.aten.clone.default:
                self.cloned += args[0].numel()
            return function(*args, **(kwargs or {}))

    w, x = torch.randn(4, 4, requires_grad=True), torch.randn(60, 4)
    with Elements() as elements:
        made = np_compile.wrap_numpy(f)(w, x)
    made.backward()
    assert w.grad.any()
    assert elements.cloned <= 2 * x.numel()


def test_torch_is_told_of_changes_to_what_is_saved():
    x, y = torch.ones(3), torch.ones(3, requires_grad=True)
    made = np_compile.wrap_numpy(lambda x, y: (np.exp(y) * x).sum())(x, y)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.backward()


def test_what_is_saved_goes_with_the_results():
    from np_compile.shim._saved import Saved

    def saved():
        return sum(type(v) is Saved for v in gc.get_objects())

    gc.collect()
    before = saved()
    y = torch.ones(3, requires_grad=True)
    gc.disable()
    try:
        made = np_compile.wrap_numpy(lambda y: np.exp(np.sin(y)).sum())(y)
        assert saved() > before
        del made
        assert saved() == before
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "f",
    [
        lambda t: np.ma.masked_where(t > 1, t * 2).sum(),
        lambda t: scipy.ndimage.gaussian_filter(t, 1.0),
        lambda t: torch.from_dlpack(t) * 2,
        lambda t: np.array(memoryview(t)),
    ],
    ids=["masked", "scipy", "dlpack", "buffer"],
)
def test_code_outside_that_would_lose_a_gradient(f, request):
    if "buffer" in request.node.callspec.id and not hasattr(memoryview, "__buffer__"):
        pytest.skip("Python 3.12 asks a class for it")
    t = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64, requires_grad=True)
    with pytest.raises(shim.NotSupported, match="gradient"):
        np_compile.wrap_numpy(f)(t)
    with torch.no_grad():
        got = np_compile.wrap_numpy(f)(t)
    np.testing.assert_allclose(got, f(t.detach().numpy()))


@pytest.mark.parametrize("compiles", [True, False])
def test_scalars_of_numpy_in_objects_of_the_caller_stay(compiles):
    def f(o, d, t):
        o.items.append(o.rate)
        d["more"] = d["rate"]
        o.top = t.max()
        return o.rate * t, [o.rate]

    fast = np_compile.wrap_numpy(f)
    fast = np_compile.compile(fast, backend="eager") if compiles else fast
    rate, other = np.float32(1.5), np.float64(2.5)
    for held in (torch.ones(2), None):
        o = types.SimpleNamespace(rate=rate, items=[other], pair=(rate, [other]), held=held)
        d = {"rate": rate, "items": [(other,)]}
        _, (given,) = fast(o, d, torch.ones(3))
        assert o.rate is rate is d["rate"] is d["more"] is o.items[1] is o.pair[0]
        assert o.items[0] is other is o.pair[1][0] is d["items"][0][0]
        assert isinstance(o.top, torch.Tensor)
        assert isinstance(given, torch.Tensor)


def test_a_view_of_views_of_views_takes_no_longer_than_its_depth():
    def f(x):
        x = x * 2
        for _ in range(60):
            x = x[::-1]
            x[:1] += 1
        return x, x.T

    wrapped = np_compile.compile(np_compile.wrap_numpy(f), backend="eager")
    x = torch.arange(3.0, dtype=torch.float64)
    for requires in (False, True):
        given = x.clone().requires_grad_(requires)
        for got, want in zip(wrapped(given), f(x.numpy()), strict=True):
            np.testing.assert_array_equal(got.detach().numpy(), want)
