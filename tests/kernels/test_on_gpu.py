"""Programs of the CUDA target: what the schedule means, what NVRTC says to the text, and what they
give on a device."""

from __future__ import annotations

import copy
import re
import warnings
from functools import partial

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config
from np_compile.backends import sizes as for_sizes
from np_compile.backends.sizes import ByOperators
from np_compile.kernels.compile import ForSizes, generate, listening, targeting
from np_compile.kernels.frontend import products
from np_compile.kernels.ir.program import Call
from np_compile.kernels.run.execute import Executable
from np_compile.kernels.run.sizes import launches_at
from np_compile.kernels.target import Gpu

from ..support import data
from .graphs import SMALL_GPU, captured, preserved

on_device = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

ROWS = np.random.default_rng(3)


def ints(*shape, high=7, low=0, dtype=np.int64):
    return ROWS.integers(low, high, shape).astype(dtype)


def f32(*shape):
    return data(*shape).astype(np.float32)


PROGRAMS = []


def program(*args):
    """Register a program with its arguments."""

    def register(f):
        PROGRAMS.append((f, args))
        return f

    return register


@program(f32(1003), f32(1003))
def chain(a, b):
    return np.sqrt(np.abs(a * 2.5 + b)) - b / 3


@program(data(7, 9), data(9), data(7, 1))
def broadcast(a, b, c):
    return a * b + c, np.where(a > b, a, c), (a > 0) & (b < c)


@program(data(6, 8))
def views(a):
    return a.T.copy(), a[::-1, 1::2] * 2, a[2:, :-1] - a[:-2, 1:], np.roll(a, 2, axis=1)


@program(data(13))
def casts(a):
    h = a.astype(np.float16)
    small = (a * 50).astype(np.int8)
    return h * 2 + h, small + small, (np.abs(a) * 100).astype(np.uint16), a.astype(bool), a > 0


@program(ints(40, low=-9, high=9), ints(40, low=1, high=5))
def integers(a, b):
    return a // b, a % b, a << b, a ^ b, -a, abs(a), a**2, np.minimum(a, b), np.gcd(a, b)


@program(ints(40, low=0, high=9, dtype=np.uint32), ints(40, low=1, high=5, dtype=np.uint64))
def unsigned(a, b):
    return a // 2, a - np.uint32(20), b * b, b >> np.uint64(1), np.maximum(a, 3)


@program(data(30), data(30))
def complex_numbers(a, b):
    z = a + 1j * b
    return z * z, np.abs(z), np.conj(z) / (z + 2), np.exp(z).real


@program(data(50), np.abs(data(50)) + 0.1)
def elementary(a, b):
    return np.exp(a), np.log(b), np.sin(a), np.tanh(a), np.arctan2(a, b), np.hypot(a, b), b**a


@program(data(37, 53))
def reductions(a):
    return (
        a.sum(), a.sum(0), a.sum(1), a.mean(1), a.max(), a.min(0), a.prod(1), a.any(0), a.all(),
        a.argmax(), a.argmin(1), a.argmax(0), a.var(), a.std(1),
    )  # fmt: skip


@program(data(5, 6, 7))
def inner_axes(a):
    return a.sum(1), a.max((0, 2)), a.sum(2).max(0), a.argmin(1)


@program(f32(3, 3000))
def few_rows(a):
    return a.sum(1), a.max(1), (a * a).sum(0).sum()


@program(f32(3000, 3))
def few_columns(a):
    return a.sum(0), a.max(1), a.argmax(0)


@program(f32(40, 300))
def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@program(f32(40, 300))
def softmax_of_columns(x):
    e = np.exp(x - x.max(0))
    return e / e.sum(0)


@program(f32(30, 200), f32(200), f32(200))
def layer_norm(x, weight, bias):
    m = x.mean(1, keepdims=True)
    v = ((x - m) ** 2).mean(1, keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5) * weight + bias


@program(data(7, 500), ints(9, 40))
def scans(a, k):
    return (
        np.cumsum(a, axis=1), np.cumsum(a, axis=0), np.cumsum(k), np.maximum.accumulate(a, axis=1),
        np.cumprod(a[:, :9], axis=1),
    )  # fmt: skip


@program(data(50_000))
def long_scan(a):
    return np.cumsum(a), np.cumsum(a) * 2


@program(data(20, 6), ints(33, high=20), ints(33, high=6, low=-6))
def gathers(a, i, j):
    return a[i], a[i, j], np.take(a, j, axis=1), a[:, i % 6]


@program(data(20), ints(100, high=20), data(100))
def scatter(x, i, v):
    x[i] = v
    return x * 2


@program(np.zeros(20, np.int32), np.zeros(20), ints(300, high=20), data(300))
def scatter_add(n, x, i, v):
    np.add.at(n, i, 1)
    np.add.at(x, i, v)
    return n.sum()


@program(np.zeros(6, np.int64), np.zeros(6, np.uint32), ints(301, high=6), ints(301, high=5))
def counts(n, m, i, k):
    np.add.at(n, i, 1)
    np.add.at(m, i, k.astype(np.uint32))
    np.subtract.at(n, k, 2)
    return n * 2


@program(ints(300, high=20), data(300), data(500))
def histograms(i, v, x):
    counts, edges = np.histogram(x, 11)
    return np.bincount(i, minlength=20), np.bincount(i, v, minlength=20), counts, edges


@program(data(12, 14))
def heat(u):
    for _ in range(3):
        u[1:-1, 1:-1] += 0.1 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
    return u.sum()


@program(data(40))
def in_place(x):
    x += 1
    x[3:9] *= 2
    x[::-1][0] = 7
    x[1:] = x[:-1]
    return x.sum()


@program(data(6, 5), data(5, 7), data(5), data(3, 4, 5), data(3, 5, 2))
def small_products(a, b, c, d, e):
    return a @ b, a @ c, c @ c, d @ e


@program(data(70, 40), data(40, 60))
def large_products(a, b):
    return np.maximum(a @ b, 0) + 1


@program(f32(37, 20), ints(37, 20), f32(9, 40), f32(9))
def reductions_of_rows(a, b, c, d):
    most = a.max(1, keepdims=True)
    return (
        (np.log(np.exp(a - most).sum(1)) + most[:, 0]).mean(), a.argmax(1).max() * 2, c.std() / 3,
        np.abs(b).sum(1).min() + c[0, 0], c.max(1).argmin(), d.mean(), (a.min(1) > 0).any(),
    )  # fmt: skip


@program(data(70), data(70))
def what_follows_sums(a, b):
    a *= 2
    total = a.sum()
    b[0] = total / 2
    return a[3] + total, total * total, b.max() - b[0]


@program(data(60))
def sorts(a):
    return np.sort(a)[::-1] * 2, np.argsort(a, kind="stable"), np.median(a)


@program(data(30), data(9))
def searches(a, b):
    return np.searchsorted(np.sort(a), b), np.interp(b, np.sort(a), a)


@program(data(9, 3), data(4, 3))
def nearest(x, centres):
    d = ((x[:, None] - centres) ** 2).sum(-1)
    return d.argmin(1), d.min(1)


@program(data(211, 3), data(5, 3))
def means(x, centres):
    labels = ((x[:, None, :] - centres) ** 2).sum(axis=2).argmin(axis=1)
    members = (labels[:, None] == np.arange(len(centres))).astype(x.dtype)
    moved = members.T @ x / np.maximum(members.sum(axis=0)[:, None], 1)
    return moved, labels, np.abs(moved - centres).max()


@program(data(0, 4), data(70, 4), f32(70, 0), f32(0, 5), f32(0, 70))
def empty(a, b, c, d, e):
    return a.sum(0), a.sum(1), a * 2, a.T, b @ a.T, c @ d, b[:, :3] @ a[:, :3].T, c @ e


@program(data(16))
def transforms(a):
    return np.abs(np.fft.fft(a)), np.fft.rfft(a).real


def narrow_products(a, b, c, d):
    z = np.maximum(a, 0) @ c
    z = z - z.max(axis=1, keepdims=True)
    return a @ b, a[::-1] @ b[:, ::-1], (np.log(np.exp(z).sum(1)) - z[:, 0]).mean(), (d @ a).sum(0)


def narrow_products_of_columns(a, b, c):
    return a.T @ b, b.T @ a, b.T @ (c + 1), a.T.copy() @ c


def short_sums(a, b, c, d, e):
    return np.where(c > 0, a @ b.T, 0) * 2, a[::2] @ b.T, d @ e + 1, (-a) @ b.T


def narrow(rows, sums):
    """Programs, and arguments of such extents."""
    return [
        (narrow_products, (f32(rows, sums), f32(sums, 4), f32(sums, 7), f32(4, rows))),
        (narrow_products_of_columns, (f32(sums, 3), f32(sums, rows), f32(sums, 4))),
        (short_sums, (f32(rows, 13), f32(9, 13), f32(rows, 9), data(rows, 5), data(5, 20))),
    ]


def many_rows(monkeypatch, count):
    """From so many rows on, and elements of a sum, products are made as those of many are."""
    for name in ("_ROWS", "_LONG"):
        monkeypatch.setattr(products, name, count)


OF_FEW = pytest.mark.parametrize(
    ("f", "args"), narrow(9, 7), ids=["columns", "transposed", "short sums"]
)


def same(got, want, what):
    """The values of tensors are those of NumPy, floats nearly."""
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for k, (x, y) in enumerate(zip(got, want, strict=True)):
            same(x, y, f"{what}[{k}]")
        return
    x = got.cpu().numpy() if isinstance(got, torch.Tensor) else np.asarray(got)
    y = np.asarray(want)
    assert (x.dtype, x.shape) == (y.dtype, y.shape), what
    if y.dtype.kind in "fc":
        rtol = {2: 4e-3, 4: 2e-5}.get(y.dtype.itemsize, 1e-10)
        rtol = 2e-5 if y.dtype == np.complex64 else rtol
        finite = np.abs(y[np.isfinite(y)]).astype(float)
        atol = rtol * finite.max(initial=0)
        np.testing.assert_allclose(x, y, rtol, atol, err_msg=what)
    else:
        np.testing.assert_array_equal(x, y, what)


NAMED = pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))


@pytest.mark.parametrize(
    "machine",
    [SMALL_GPU, pytest.param(Gpu(), marks=pytest.mark.thorough)],
    ids=["small", "large"],
)
@NAMED
def test_each_pass_for_a_gpu_keeps_what_a_program_does(f, args, machine):
    if f is long_scan:
        args = tuple(a[:200] for a in args)
    elif machine is SMALL_GPU and len(args) == 1 and args[0].ndim == 2:
        args = (args[0][:13, :300],)  # more elements than these show nothing there
    for module, inputs in captured(f, *copy.deepcopy(args)):
        with targeting(machine):
            preserved(module, inputs)


@OF_FEW
def test_each_pass_for_a_gpu_keeps_narrow_products(f, args, monkeypatch):
    many_rows(monkeypatch, 6)
    ((module, inputs),) = captured(f, *copy.deepcopy(args))
    with targeting(SMALL_GPU):
        preserved(module, inputs)


def taken(text):
    """NVRTC compiles a text."""
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")
    handle = nvrtc.createProgram(text, "program.cu", (), ())
    try:
        nvrtc.compileProgram(handle, ["-arch=sm_90", "-std=c++17", "-DBYTES=16"])
    except nvrtc.NVRTCError:
        pytest.fail(f"{nvrtc.getProgramLog(handle)}\n{text}")
    finally:
        nvrtc.destroyProgram(handle)


@NAMED
def test_nvrtc_takes_the_text(f, args):
    for module, _ in captured(f, *copy.deepcopy(args)):
        for machine in (SMALL_GPU, Gpu()):
            with targeting(machine):
                taken(generate(module.graph, partial(getattr, module)).text)


def larger(x, times=2):
    """An array, several times along each axis but those of one element."""
    return np.tile(x, [times if n > 1 else 1 for n in x.shape])


# Programs that are there for many sizes, with how many it takes for a size and two larger ones.
GENERAL = {
    "chain": 1, "broadcast": 1, "views": 1, "casts": 1, "elementary": 1, "inner_axes": 2,
    "gathers": 1, "scatter_add": 1, "counts": 1, "heat": 1, "small_products": 1, "nearest": 1,
    "long_scan": 1, "reductions": 2, "few_rows": 1, "few_columns": 1, "softmax_of_columns": 1,
    "softmax": 1, "layer_norm": 1,
    "histograms": 2,  # the first call breaks where a size depends on the data
}  # fmt: skip
FOR_SIZES = pytest.mark.parametrize(
    ("f", "args"),
    [p for p in PROGRAMS if p[0].__name__ in GENERAL],
    ids=lambda x: getattr(x, "__name__", ""),
)


def general(f, args, monkeypatch):
    """The programs for many sizes of a function's segments, for a GPU, or why there is none."""
    found = []

    def noted(graph, device):
        with targeting(Gpu()):
            places = tuple(graph.symbols.values())
            found.append(ForSizes(graph.graph, graph.facts, places, graph.integers))
        return ByOperators(graph, device)

    monkeypatch.setitem(for_sizes._BACKENDS, "eager", noted)
    fast = np_compile.compile(f, backend="eager")
    with config.patch(loops="recorded", plain="never"):
        fast(*copy.deepcopy(args))
        fast(*[larger(a) for a in args])
    return found


@FOR_SIZES
def test_nvrtc_takes_the_text_for_many_sizes(f, args, monkeypatch):
    found = general(f, args, monkeypatch)
    assert found
    for made in found:
        taken(made._source.text)


def test_launches_follow_from_sizes(monkeypatch):
    (made,) = general(chain, (f32(1003), f32(1003)), monkeypatch)
    symbols = made._source.layout.symbols
    for n in (5, 2048, 1_000_003):
        launches = launches_at(made._source.launches, dict.fromkeys(symbols, n))
        ((launch,),) = launches.sections
        assert launch.blocks == -(-n // launch.threads)


def test_rows_in_registers_are_of_one_length(monkeypatch):
    def shifted(x):
        return x - x.max(1, keepdims=True)

    for f in (shifted, softmax):
        (made,) = general(f, (f32(200, 1000),), monkeypatch)
        kinds = {b.kind for b in made._source.program.buffers}
        assert not kinds & {"private", "local"}
        assert "private" in str(_generated(f, f32(200, 1000)).program)


class TestOnADevice:
    pytestmark = on_device

    @NAMED
    def test_programs(self, f, args):
        made: list[Executable] = []
        fast = np_compile.compile(np_compile.wrap_numpy(f), backend="native")
        with listening(made.append), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(3):
                mine = copy.deepcopy(args)
                given = [torch.from_numpy(a.copy()).cuda() for a in args]
                want = f(*mine)
                got = fast(*given)
                same(got, want, f.__name__)
                same(tuple(given), tuple(mine), f"arguments of {f.__name__}")
        assert made
        assert {x.device.type for x in made} <= {"cuda"}

    @pytest.mark.parametrize(("f", "args"), narrow(1003, 205))
    def test_narrow_products(self, f, args):
        self.test_programs(f, args)

    def test_many_floats_in_few_elements(self):
        def added(x, i, j, v):
            np.add.at(x, (i, j), v)
            return x * 2

        fast = np_compile.compile(np_compile.wrap_numpy(added), backend="native")
        i, j, v = ints(60_000, high=5), ints(60_000, high=8), data(60_000)
        found = []
        for _ in range(3):
            x = torch.zeros(5, 8, dtype=torch.float64, device="cuda")
            got = fast(x, *[torch.from_numpy(a).cuda() for a in (i, j, v)])
            want = np.zeros((5, 8))
            np.testing.assert_allclose(got.cpu(), added(want, i, j, v), rtol=1e-11, atol=1e-9)
            np.testing.assert_allclose(x.cpu(), want, rtol=1e-11, atol=1e-9)
            found.append(x)
        assert all(torch.equal(x, found[0]) for x in found)  # bit for bit

    @FOR_SIZES
    def test_many_sizes(self, f, args):
        """The second size has a program that serves the third."""
        made: list[Executable] = []
        fast = np_compile.compile(np_compile.wrap_numpy(f), backend="native")
        with listening(made.append), warnings.catch_warnings(), config.patch(compile_in="call"):
            warnings.simplefilter("ignore")
            for times in (1, 2, 3, 2, 1):
                mine = [larger(a, times) for a in args]
                given = [torch.from_numpy(a.copy()).cuda() for a in mine]
                want = f(*mine)
                same(fast(*given), want, f"{times} times")
                same(tuple(given), tuple(mine), f"arguments, {times} times")
        kernels = {id(x._modules): x for x in made}
        assert len(kernels) == 1 + GENERAL[f.__name__]

    @pytest.mark.parametrize("offset", [1, 2, 3])
    def test_arrays_that_begin_anywhere(self, offset):
        fast = np_compile.compile(np_compile.wrap_numpy(lambda a: a * 2 + 1))
        base = torch.arange(2_000_003, dtype=torch.float32, device="cuda")
        for _ in range(2):
            assert torch.equal(fast(base[offset:]), base[offset:] * 2 + 1)

    def test_an_index_out_of_bounds_writes_nothing(self):
        def store(x, i):
            x[i] = 1
            return x + 1

        fast = np_compile.compile(np_compile.wrap_numpy(store))
        x = torch.zeros(10, device="cuda")
        good = torch.tensor([1, 2], device="cuda")
        assert fast(x.clone(), good).sum().item() == 12
        for _ in range(2):
            bad = torch.tensor([1, 10], device="cuda")
            with pytest.raises(IndexError):
                fast(x, bad)
            assert x.sum().item() == 0
        assert fast(x.clone(), good).sum().item() == 12

    def test_parameters_change(self):
        fast = np_compile.compile(np_compile.wrap_numpy(lambda x, a: x * a + 1))
        x = torch.arange(5.0, device="cuda")
        for a in (0.5, 1.5, -2.0):
            assert torch.equal(fast(x, a), x * a + 1)

    def test_streams(self):
        fast = np_compile.compile(np_compile.wrap_numpy(lambda x: (x * x).sum()))
        x = torch.arange(1 << 20, dtype=torch.float64, device="cuda")
        want = (x * x).sum()
        streams = [torch.cuda.Stream() for _ in range(4)]
        torch.cuda.synchronize()
        results = []
        for _ in range(5):
            for stream in streams:
                with torch.cuda.stream(stream):
                    results.append(fast(x))
        torch.cuda.synchronize()
        for r in results:
            torch.testing.assert_close(r, want)

    def test_sums_are_the_same_in_each_run(self):
        fast = np_compile.compile(
            np_compile.wrap_numpy(lambda x, i, v: (x.sum(), np.cumsum(x), np.bincount(i, v)))
        )
        x = torch.randn(300_000, device="cuda")
        i = torch.randint(0, 9, (300_000,), device="cuda")
        first = [r.clone() for r in fast(x, i, x)]
        for _ in range(5):
            assert all(torch.equal(a, b) for a, b in zip(fast(x, i, x), first, strict=True))

    @pytest.mark.parametrize("graphs", [True, False])
    def test_a_loop_of_kept_steps(self, graphs):
        """With the same arrays again, as a graph; with others, and after other streams, too."""

        def relaxed(u):
            for _ in range(40):
                u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
            return u * 2, u.sum()

        fast = np_compile.compile(np_compile.wrap_numpy(relaxed))
        start = data(300)
        with config.patch(cuda_graphs=graphs, compile_in="call"):
            arrays = [torch.from_numpy(start.copy()).cuda() for _ in range(3)]
            wanted = [start.copy() for _ in arrays]
            for k in (0, 0, 0, 0, 0, 1, 0, 2, 2, 2, 1, 0):
                with torch.cuda.stream(torch.cuda.Stream() if k == 1 else None):
                    got = fast(arrays[k])
                torch.cuda.synchronize()
                same(got, relaxed(wanted[k]), f"{k}")
                same(arrays[k], wanted[k], f"argument {k}")

    def test_steps_in_place_are_one_pass_each(self):
        """Some steps are one program, with a kernel for each and one for the copy."""

        def relaxed(u):
            for _ in range(40):
                u[1:-1, 1:-1] += 0.25 * (u[2:, 1:-1] - 2 * u[1:-1, 1:-1] + u[:-2, 1:-1])
            return u.max()

        fast = np_compile.compile(np_compile.wrap_numpy(relaxed))
        mine = data(300, 310)
        its = torch.from_numpy(mine.copy()).cuda()
        made: list[Executable] = []
        with config.patch(compile_in="call"), listening(made.append):
            for _ in range(4):
                same(fast(its), relaxed(mine), "the result")
                same(its, mine, "the argument")
        steps = [len(m.source.program.steps) for m in made]
        assert steps == [2, 1, 7]  # of one step, of the result, of six steps

    @pytest.mark.parametrize("graphs", [True, False])
    def test_products_and_kernels_as_one_graph(self, graphs):
        """With the same arrays again, with others, with other parameters, on another stream."""

        def layer(x, w, shift):
            z = np.maximum(x @ w + shift, 0)
            return z @ w.T, z.sum(1)

        fast = np_compile.compile(np_compile.wrap_numpy(layer))
        w = f32(96, 80)
        arrays = [f32(130, 96) for _ in range(3)]
        on_card = [torch.from_numpy(a).cuda() for a in (w, *arrays)]
        with config.patch(cuda_graphs=graphs):
            for k, shift in ((0, 0.5), (0, 0.5), (0, 0.5), (0, 0.5), (1, 0.5), (0, 0.25), (2, 1.5),
                             (2, 1.5), (2, 1.5), (0, 0.5), (2, 1.5)):  # fmt: skip
                with torch.cuda.stream(torch.cuda.Stream() if k == 1 else None):
                    got = fast(on_card[1 + k], on_card[0], shift)
                torch.cuda.synchronize()
                for x, y in zip(got, layer(arrays[k], w, np.float32(shift)), strict=True):
                    np.testing.assert_allclose(x.cpu().numpy(), y, rtol=1e-3, atol=1e-2)

    def test_a_graph_is_of_one_precision(self):
        fast = np_compile.compile(np_compile.wrap_numpy(lambda x, w: np.maximum(x @ w, 0)))
        x, w = (torch.rand(256, 256, device="cuda") for _ in range(2))
        exact = x.double() @ w.double()

        def error():
            for _ in range(4):
                result = fast(x, w)
            return ((result.double() - exact).abs().max() / exact.max()).item()

        before = torch.get_float32_matmul_precision()
        try:
            torch.set_float32_matmul_precision("highest")
            assert error() < 2e-6
            torch.set_float32_matmul_precision("high")
            assert error() > 1e-5
        finally:
            torch.set_float32_matmul_precision(before)
        assert error() < 2e-6 or before != "highest"

    def test_steps_of_training(self):
        """Losses and weights are those of torch, as addresses and graphs come again."""

        def loss(x, w, v, y):
            z = np.tanh(x @ w) @ v
            return np.mean((z - y) ** 2)

        def of_torch(x, w, v, y):
            return ((torch.tanh(x @ w) @ v - y) ** 2).mean()

        def weights():
            shapes = (70, 90), (90, 9)
            made = [torch.linspace(-1, 1, n * k, dtype=torch.float64).view(n, k) for n, k in shapes]
            return [t.cuda().requires_grad_() for t in made]

        fast = np_compile.compile(np_compile.wrap_numpy(loss))
        x = torch.rand(200, 70, device="cuda", dtype=torch.float64)
        y = torch.rand(200, 9, device="cuda", dtype=torch.float64)
        ours, theirs = weights(), weights()
        for _ in range(12):
            found = []
            for held, f in ((ours, fast), (theirs, of_torch)):
                value = f(x, *held, y)
                gradients = torch.autograd.grad(value, held)
                with torch.no_grad():
                    for p, g in zip(held, gradients, strict=True):
                        p -= 0.1 * g
                found.append(value.item())
            np.testing.assert_allclose(*found, rtol=1e-9)
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)

    def test_gradients(self):
        def loss(x, w):
            return (np.tanh(x @ w) ** 2).mean() + np.exp(-x).sum()

        x = torch.randn(40, 30, dtype=torch.float64, device="cuda", requires_grad=True)
        w = torch.randn(30, 5, dtype=torch.float64, device="cuda", requires_grad=True)
        fast = np_compile.compile(np_compile.wrap_numpy(loss))
        for _ in range(2):
            got = torch.autograd.grad(fast(x, w), (x, w))
            want = torch.autograd.grad(
                (torch.tanh(x @ w) ** 2).mean() + torch.exp(-x).sum(), (x, w)
            )
            for a, b in zip(got, want, strict=True):
                torch.testing.assert_close(a, b)


def test_without_cupy_a_line_says_so(monkeypatch):
    from np_compile.backends import native
    from np_compile.kernels.build import nvrtc

    monkeypatch.setattr(nvrtc, "_NVRTC", "no_such_package.nvrtc")
    nvrtc.identity.cache_clear()
    monkeypatch.setattr(native, "inductor", lambda graph, inputs: graph.forward)
    native._warn_once.cache_clear()
    (module, _), *_ = captured(lambda x: x + 1, data(3))
    monkeypatch.setattr(native, "device_of", lambda *_: torch.device("cuda", 7))
    with pytest.warns(RuntimeWarning, match="inductor: CuPy is not installed"):
        assert native.native(module, []) == module.forward


@pytest.mark.parametrize(("n", "parts", "rest"), [(1_000_000, 500, 0), (1_000_003, 528, 499)])
def test_few_counters_are_shared_by_blocks(n, parts, rest):
    """Each block has its own; what is left over of equal parts is a nest of its own."""

    def count(x, i):
        np.add.at(x, i, 1)

    (module, _), *_ = captured(count, np.zeros(50, np.int64), ints(n, high=50))
    with targeting(Gpu()):
        source = generate(module.graph, partial(getattr, module))
    text = str(source.program)
    assert "i32[50] strides[1] local" in text
    assert text.count("] atomic sum= ") == (3 if rest else 2)
    assert (f" < {rest} grid" in text) is bool(rest)
    launches = [x for section in source.launches.sections for x in section]
    assert [x.shared for x in launches if x.blocks == parts and x.shared] == [208]


@pytest.mark.parametrize(("n", "counters"), [(1_000_000, 20_000), (60_000, 50), (0, 50)])
def test_counters_that_are_too_many_are_not_shared(n, counters):
    def count(x, i):
        np.add.at(x, i, 1)

    (module, _), *_ = captured(count, np.zeros(counters, np.int64), ints(n, high=50))
    with targeting(Gpu()):
        assert "local" not in str(generate(module.graph, partial(getattr, module)).program)


def test_sums_of_few_results_are_loops_of_many_threads():
    """What is computed for them is not stored, and each row of few columns has a thread."""
    ((module, _),) = captured(means, data(100_000, 3), data(16, 3))
    with targeting(Gpu()):
        source = generate(module.graph, partial(getattr, module))
    program = source.program
    assert not any(isinstance(s, Call) for s in program.steps)
    text = str(program)
    assert re.search(r"for i\d+ < 100000 grid 1:\n +for j\d+ < 16:\n +t\d+\[i\d+\] argmin=", text)
    assert max(b.size for b in program.buffers if b.kind == "temporary") < 100_000 * 4
    # The last sums, of the parts, are shared by the threads of a block.
    assert re.search(r"for w\d+ < \d+ thread \d+:\n +t\d+\[0\] sum= part", text)


def _generated(f, *args):
    ((module, _),) = captured(f, *args)
    with targeting(Gpu()):
        return generate(module.graph, partial(getattr, module))


@pytest.mark.parametrize("rows", [2, 3000])
def test_what_is_made_of_a_sum_is_no_kernel_of_its_own(rows):
    source = _generated(lambda a: (a.mean() + 1, (a * a).sum() / 3), data(rows, 1000))
    (step,) = source.program.steps
    assert step.kind == "epilogue"
    assert len(step.body) == 3
    assert len(source.launches.sections[0]) == 1


def test_what_other_threads_have_written_is_no_epilogue():
    def f(a):
        a *= 2
        return a[3] + a.sum()

    program = _generated(f, data(100_000)).program
    assert [step.kind for step in program.steps] == ["grid", "block"]


def test_short_rows_of_a_sum_fill_blocks():
    source = _generated(lambda a: np.log(np.exp(a).sum(1)).sum(), f32(100_000, 64))
    assert re.search(r"for i\d+ < 100000 block 16 blocks 528:", str(source.program))
    assert re.search(r"for j\d+ < 64 thread 16", str(source.program))


def _calls(f, *args):
    return sum(isinstance(s, Call) for s in _generated(f, *args).program.steps)


def test_which_narrow_products_are_loops():
    a = f32(4096, 512)
    assert not _calls(lambda x, y: x @ y, a, f32(512, 4))
    assert _calls(lambda x, y: x @ y, a, f32(512, 5))
    assert not _calls(lambda x, y: np.maximum(x, 0) @ y, a, f32(512, 10))
    assert _calls(lambda x, y: np.maximum(x, 0) @ y, a, f32(512, 11))
    assert not _calls(lambda x, y: x @ y, f32(4, 512), a.T)
    assert not _calls(lambda x, y: x @ y, f32(4096, 16), f32(16, 512))
    assert _calls(lambda x, y: x @ y, f32(4096, 17), f32(17, 512))
    assert _calls(lambda x, y: x @ y, data(4096, 9), data(9, 512))


def test_columns_are_copied_once_for_threads_that_walk_along_them():
    """And before all else, so that what makes the large matrix is one pass with the product."""
    source = _generated(lambda x, y: np.maximum(x, 0) @ y, f32(4096, 512), f32(512, 10))
    copy, product = source.program.steps
    assert len(copy.body[0].body) == 1
    assert "maximum" in str(product)
    source = _generated(lambda x, y, z: (x @ y.T) * z, f32(4096, 10), f32(512, 10), f32(4096, 512))
    assert len(source.program.steps) == 2


def test_much_work_is_not_done_by_the_threads_of_a_row():
    """The second statement is many more iterations than the first, and in threads of its own."""

    def f(x, y):
        return (np.exp(x) / np.exp(x).sum(1, keepdims=True))[:, :1] * y

    kinds = [s.kind for s in _generated(f, f32(4096, 10), f32(4096, 512)).program.steps]
    assert kinds == ["grid", "grid"]


def test_the_schedule_stands_in_the_program():
    (module, _), *_ = captured(softmax, f32(400, 3000))
    with targeting(Gpu()), config.patch(debug=1):
        source = generate(module.graph, partial(getattr, module))
    text = str(source.program)
    assert "< 400 block 1:" in text
    assert text.count("< 3000 thread 256 lanes 4 written out:") == 3
    (section,) = source.launches.sections
    assert [(x.blocks, x.threads) for x in section] == [(400, 256)]
