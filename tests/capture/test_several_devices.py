"""Arguments on any device of several run there; those on two are an error that names them."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config
from np_compile.capture.arrays.tensors import check_place
from np_compile.kernels.compile import listening

cuda = pytest.mark.cuda
two = [pytest.mark.cuda, pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one device")]


def chain(x, y):
    return np.sqrt(np.abs(x * 2.5 + y)) - y / 3, (x * y).sum()


def relaxed(u):
    for _ in range(30):
        u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u * 2, u.max()


def compiled(f):
    return np_compile.compile(np_compile.wrap_numpy(f), backend="native")


def test_the_error_names_both():
    t = torch.empty(3, device="meta")
    check_place(t, None)
    check_place(t, t.device)
    with pytest.raises(np_compile.errors.TensorArgument, match=r"cpu and meta[\s\S]*to\('cpu'\)"):
        check_place(t, torch.device("cpu"))


@cuda
@pytest.mark.parametrize("wrap", [compiled, np_compile.wrap_numpy])
def test_host_and_device_are_two(wrap):
    fast = wrap(chain)
    x = torch.rand(5)
    for _ in range(3):
        with pytest.raises(np_compile.errors.TensorArgument, match="cpu and cuda:0"):
            fast(x, x.cuda())
        with pytest.raises(np_compile.errors.TensorArgument, match="cuda:0 and cpu"):
            fast(x.cuda(), x)
        assert fast(x.cuda(), x.cuda())[0].device == torch.device("cuda:0")


@cuda
@pytest.mark.parametrize("kept", [False, True])
def test_out_of_memory_is_torchs_error_and_changes_nothing(kept):
    fast = compiled(lambda x, n: x[:, None] + np.zeros((1, n), np.float32))
    x = torch.arange(1 << 20, dtype=torch.float32, device="cuda")
    many = 1 << 20  # four terabytes
    for _ in range(4 * kept):
        fast(x, 3)
    for _ in range(2):
        with pytest.raises(torch.OutOfMemoryError):
            fast(x, many)
        torch.testing.assert_close(fast(x, 3), x[:, None].expand(-1, 3))
    assert torch.equal(x, torch.arange(1 << 20, dtype=torch.float32, device="cuda"))


class TestOnTwo:
    pytestmark = two

    @pytest.mark.parametrize("f", [chain, relaxed])
    def test_calls_run_where_the_arguments_lie(self, f):
        """Whichever is current; each has kernels of its own, kept calls and graphs."""
        fast = compiled(f)
        made = []
        with listening(made.append), config.patch(compile_in="call"):
            for k in (1, 0, 1, 1, 1, 0, 0, 0, 1, 0):
                its = [torch.rand(300, dtype=torch.float64) for _ in f.__code__.co_varnames[:2]]
                its = its[: f.__code__.co_argcount]
                given = [t.to(f"cuda:{k}") for t in its]
                want = f(*[t.numpy() for t in its])
                for _ in range(2 if f is chain else 1):
                    got = fast(*given)
                for a, b in zip(got, want, strict=True):
                    assert a.device == given[0].device
                    np.testing.assert_allclose(a.cpu().numpy(), b, rtol=1e-12)
                for a, b in zip(given, its, strict=True):
                    torch.testing.assert_close(a.cpu(), b, rtol=1e-12, atol=0)
        assert torch.cuda.current_device() == 0
        assert {str(x.device) for x in made} == {"cuda:0", "cuda:1"}

    def test_the_same_tensors_again(self):
        """As graphs, on each."""
        fast = compiled(relaxed)
        start = torch.rand(200, dtype=torch.float64)
        with config.patch(compile_in="call"):
            for k in (0, 1):
                u = start.to(f"cuda:{k}")
                want = start.numpy().copy()
                for _ in range(7):
                    fast(u)
                    relaxed(want)
                np.testing.assert_allclose(u.cpu().numpy(), want, rtol=1e-11)

    def test_a_device_context(self):
        fast = np_compile.compile(chain)
        x = np.random.default_rng(0).random(100_000)  # fewer would stay on the host
        made = []
        with listening(made.append):
            for name in ("cuda:1", "cuda:0", "cuda:1"):
                with torch.device(name):
                    np.testing.assert_allclose(fast(x, x)[0], chain(x, x)[0], rtol=1e-12)
            with torch.cuda.device(1), torch.device("cuda"):
                np.testing.assert_allclose(fast(x, x)[0], chain(x, x)[0], rtol=1e-12)
        assert {str(m.device) for m in made} == {"cuda:0", "cuda:1"}

    def test_gradients(self):
        fast = compiled(lambda x, w: (np.tanh(x @ w) ** 2).mean())
        for k in (1, 0, 1):
            x, w = (torch.rand(6, 6, device=f"cuda:{k}", requires_grad=True) for _ in range(2))
            got = torch.autograd.grad(fast(x, w), (x, w))
            want = torch.autograd.grad((torch.tanh(x @ w) ** 2).mean(), (x, w))
            for a, b in zip(got, want, strict=True):
                torch.testing.assert_close(a, b)

    @pytest.mark.parametrize("wrap", [compiled, np_compile.wrap_numpy])
    def test_arguments_on_two_are_an_error(self, wrap):
        x, y = (torch.rand(5, device=f"cuda:{k}") for k in (0, 1))
        with pytest.raises(np_compile.errors.TensorArgument, match="cuda:0 and cuda:1"):
            wrap(chain)(x, y)
        with pytest.raises(np_compile.errors.TensorArgument, match="cuda:1 and cuda:0"):
            wrap(lambda parts: parts[0] + parts[1])([y, x])

    def test_threads(self):
        """Two threads at once, each on a device and a stream of its own."""
        fast = compiled(relaxed)
        start = torch.rand(500, dtype=torch.float64)
        want = start.numpy().copy()
        for _ in range(12):
            relaxed(want)
        found = {}

        def work(k):
            with torch.cuda.stream(torch.cuda.Stream(device=f"cuda:{k}")):
                u = start.to(f"cuda:{k}")
                for _ in range(12):
                    fast(u)
                found[k] = u.cpu()

        threads = [threading.Thread(target=work, args=(k % 2,)) for k in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for k in (0, 1):
            np.testing.assert_allclose(found[k].numpy(), want, rtol=1e-11)

    def test_cupys_arrays(self):
        cupy = pytest.importorskip("cupy")
        fast = np_compile.compile(chain)
        for k in (1, 0, 1):
            with cupy.cuda.Device(k):
                x = cupy.arange(9.0)
                assert (fast(x, x)[1] == (x * x).sum()).all()
                assert fast(x, x)[0].device.id == k
