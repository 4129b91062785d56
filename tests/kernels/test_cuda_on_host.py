"""CUDA programs without a device: what their threads do, in several orders of turns."""

from __future__ import annotations

import copy
import ctypes
import gc
import shutil
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config
from np_compile.capture import segments
from np_compile.kernels.compile import generate, listening, targeting
from np_compile.kernels.ir.program import Scatter
from np_compile.kernels.run import scatter
from np_compile.kernels.run.execute import Executable
from np_compile.kernels.run.on_gpu import OnGpu
from np_compile.kernels.target import Gpu
from np_compile.kernels.targets.cuda import prelude

from ..capture.test_sizes import classifier, gradients, of_products, of_windows, running
from ..replay.test_joint import rnn
from ..support import data
from .cuda_on_host import TURNS, HostModules, available, compiling_for, executable, on_host
from .graphs import SMALL_GPU, captured, equal
from .test_on_gpu import FOR_SIZES, NAMED, OF_FEW, larger, many_rows, same

pytestmark = pytest.mark.skipif(
    not available() or shutil.which("g++") is None, reason="no compiler for C++"
)


@pytest.mark.parametrize("machine", [SMALL_GPU, Gpu()], ids=["small", "large"])
@NAMED
def test_programs(f, args, machine):
    for module, inputs in captured(f, *copy.deepcopy(args)):
        with targeting(machine):
            source = generate(module.graph, partial(getattr, module))
        wanted_inputs = copy.deepcopy(inputs)
        wanted = list(module.forward(*wanted_inputs))
        for turns in TURNS:
            mine = copy.deepcopy(inputs)
            with on_host(turns):
                got = executable(source, module)(*mine)
            equal(list(got), wanted, str(source.program))
            equal(mine, wanted_inputs, str(source.program))


@pytest.mark.parametrize("machine", [SMALL_GPU, Gpu()], ids=["small", "large"])
@OF_FEW
def test_narrow_products(f, args, machine, monkeypatch):
    many_rows(monkeypatch, 6)
    test_programs(f, args, machine)


@FOR_SIZES
def test_many_sizes(f, args):
    """The second size has a program that serves the third."""
    made: list[Executable] = []
    fast = np_compile.compile(np_compile.wrap_numpy(f), backend="native")
    with (
        compiling_for(Gpu(), 1), listening(made.append), config.patch(loops="recorded"),
        warnings.catch_warnings(),
    ):  # fmt: skip
        warnings.simplefilter("ignore")
        for times in (1, 2, 3, 2, 1):
            mine = [larger(a, times) for a in args]
            given = [torch.from_numpy(a.copy()) for a in mine]
            want = f(*mine)
            same(fast(*given), want, f"{times} times")
            same(tuple(given), tuple(mine), f"arguments, {times} times")
    assert made
    assert {type(x) for x in made} == {OnGpu}


@pytest.mark.parametrize("f", [classifier, running, of_windows, of_products])
def test_gradients_of_many_sizes(f):
    """The second size has two programs that serve the others."""
    made: list[Executable] = []
    wrapped = np_compile.wrap_numpy(f)
    fast = np_compile.compile(wrapped)
    settings = config.patch(plain="never", compile_in="call")
    with compiling_for(Gpu(), 1), listening(made.append), settings:
        for n in (9, 14, 12, 10, 15, 11, 70):
            for got, want in zip(gradients(fast, n), gradients(wrapped, n), strict=True):
                for a, b in zip(got, want, strict=True):
                    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)
    assert {type(x) for x in made} == {OnGpu}
    kernels = {x._modules for x in made if x.source.layout.symbols}
    assert len(kernels) == 4  # forwards and backwards, of short axes and of longer ones


def test_gradients_of_steps_at_indices_that_are_data():
    """Backwards, the integers are an input among others."""

    wrapped = np_compile.wrap_numpy(rnn)
    fast = np_compile.compile(wrapped)
    settings = config.patch(plain="never", compile_in="call", loops="recorded")
    with compiling_for(Gpu(), 1), settings:
        for n in (4, 4, 7):
            shapes = (12, n, 3), (n, 5), (3, 5), (5, 5), (5,)
            x = [torch.from_numpy(data(*s, seed=k)).requires_grad_() for k, s in enumerate(shapes)]
            made, want = fast(*x), wrapped(*x)
            torch.testing.assert_close(made, want, rtol=1e-12, atol=1e-12)
            pairs = zip(*[torch.autograd.grad((y**2).sum(), x) for y in (made, want)], strict=True)
            for got, right in pairs:
                torch.testing.assert_close(got, right, rtol=1e-10, atol=1e-12)


def test_an_index_out_of_bounds_writes_nothing():
    def store(x, i):
        x[i] = 1
        return x + 1

    ((module, _),) = captured(store, np.zeros(10), np.array([1, 2]))
    with targeting(Gpu()):
        source = generate(module.graph, partial(getattr, module))
    x = torch.zeros(10, dtype=torch.float64)
    with on_host(0):
        run = executable(source, module)
        with pytest.raises(IndexError):
            run(x, torch.tensor([1, 10]))
        assert x.sum() == 0
        run(x, torch.tensor([1, 9]))
    assert x.nonzero().flatten().tolist() == [1, 9]


def test_indices_that_the_caller_has_as_numbers():
    """He looks at them, in programs for one size and for many, and no kernel does."""

    def filtered(y, x, k):
        for t in range(3):
            y[k + t] = 0.5 * y[k + t - 1] + x[t]
        return y[k] * 2

    made: list[Executable] = []
    with (
        compiling_for(Gpu(), 1), listening(made.append),
        config.patch(loops="recorded", plain="never", compile_in="call"),
    ):  # fmt: skip
        fast = np_compile.compile(filtered, backend="native")
        for rows in (8, 9, 11, 8):
            for k in (1, 2, 3, rows - 3, rows - 2, -4, rows, 1):
                y = np.arange(100.0 * rows).reshape(rows, 100)
                mine, x = y.copy(), np.ones((3, 100))
                got, want = (outcome(f, a, x, k) for f, a in ((fast, mine), (filtered, y)))
                np.testing.assert_equal([*got, mine], [*want, y], f"{rows} rows, {k}")
    programs = [x for x in gc.get_objects() if isinstance(x, OnGpu) and x.source.program.conditions]
    assert any(p.source.layout.symbols for p in programs)
    for p in programs:
        assert p.alone
        count = p.source.program.integers.size
        assert p.in_bounds([1] * count)
        assert not p.in_bounds([1] * (count - 1) + [20])


def test_an_index_out_of_bounds_is_told_in_words_of_numpy(monkeypatch):
    def store(x, i):
        y = x * 2
        y[:, i] += 1
        x[i] *= y[1, 0]
        return y

    monkeypatch.setattr(segments, "_is_torchs", lambda t: True)  # as on a device
    with compiling_for(Gpu(), 1), config.patch(loops="recorded", plain="never", compile_in="call"):
        fast = np_compile.compile(np_compile.wrap_numpy(store), backend="native")
        for k in (1, 2, 9, 1, 4, 9):
            x, i = torch.ones(5, 5, dtype=torch.float64), torch.tensor([0, k])
            if k < 5:
                fast(x, i)
                continue
            with pytest.raises(IndexError, match="index 9 is out of bounds for axis 1 with size 5"):
                fast(x, i)
            assert x.eq(1).all()


def test_many_elementary_functions_are_called(monkeypatch):
    def few(x):
        return np.exp(x) + np.sin(x)

    def many(x):
        return np.exp(np.sin(x)) * np.sin(np.exp(-x)) + x % 0.3

    monkeypatch.setattr(prelude, "_MANY", 5)
    x = np.linspace(0, 1, 50)
    for f, how in ((few, "INLINE"), (many, "CALLED")):
        ((module, inputs),) = captured(f, x)
        with targeting(Gpu()):
            source = generate(module.graph, partial(getattr, module))
        assert f"{how} f64 exp_f64(f64 a)" in source.text
        with on_host(0):
            (got,) = executable(source, module)(*inputs)
        np.testing.assert_allclose(got, f(x), rtol=1e-12)


def added(x, places, values, machine):
    """What the kernels of `scatter.cu` make of x, the same in any order of turns."""
    found = []
    for turns in TURNS:
        mine = torch.from_numpy(x.copy())
        with on_host(turns):
            scatter._kernels.cache_clear()
            scatter.add(mine, torch.from_numpy(places), torch.from_numpy(values), machine)
        found.append(mine.numpy())
    scatter._kernels.cache_clear()
    exact = x.astype(float)
    np.add.at(exact, places, values.astype(float))
    np.testing.assert_allclose(found[0], exact, rtol=1e-5 if x.dtype == np.float32 else 1e-12)
    assert all(a.tobytes() == found[0].tobytes() for a in found)
    return found[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("count", "size"), [(9000, 40), (8193, 1), (40_000, 3000)])
def test_many_values_in_few_elements(dtype, count, size):
    rng = np.random.default_rng(0)
    places = rng.integers(0, size, count)
    places[:300] = 0  # threads of a warp meet
    values = rng.random(count).astype(dtype)
    x = np.arange(size).astype(dtype)
    if size > 1:
        places[places == 1] = 0
        x[1] = -0.0
    machine = replace(Gpu(), processors=16, shared_bytes=64 << 10)
    assert scatter.parts_of(count, size, x.itemsize, machine) > 1
    found = added(x, places, values, machine)
    assert size == 1 or np.signbit(found[1])


def _runs(*lengths):
    return np.repeat(np.arange(len(lengths)), lengths)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(
    "places",
    [
        _runs(1), _runs(2047, 1, 2048, 3), _runs(5000, 0, 1, 4000, 7), _runs(2048, 2048),
        _runs(3, 6200), _runs(*[1] * 3000), _runs(*[0, 3, 9, 1, 30] * 200),
    ],
    ids=lambda p: f"{len(p)} in {p[-1] + 1}",
)  # fmt: skip
def test_values_of_an_element_that_follow_one_another(places, shuffled, dtype):
    rng = np.random.default_rng(0)
    if shuffled:
        rng.shuffle(places)
    values = rng.random(len(places)).astype(dtype)
    x = np.arange(places.max() + 2).astype(dtype)
    x[-1] = -0.0  # met by no value
    machine = replace(Gpu(), shared_bytes=0)
    found = added(x, places, values, machine)
    assert np.signbit(found[-1])


@pytest.mark.parametrize("parts", [False, True])
def test_a_flag_that_is_set_stops_sums(parts):
    places, values = np.arange(9000) * 7 % 40, np.ones(9000)
    machine = replace(Gpu(), processors=16, shared_bytes=(64 << 10) * parts)
    assert bool(scatter.parts_of(9000, 40, 8, machine)) is parts
    x, flag = torch.arange(40.0, dtype=torch.float64), torch.tensor([1])
    for stopped in (True, False):
        flag[0] = stopped
        scatter._kernels.cache_clear()
        with on_host(0):
            given = map(torch.from_numpy, (places, values))
            scatter.add(x, *given, machine, flag.data_ptr())
        assert bool((x == torch.arange(40.0)).all()) is stopped
    scatter._kernels.cache_clear()


def test_values_that_lie_ready_are_not_copied():
    def deposit(x, places, values, others):
        np.add.at(x, places, values)
        np.add.at(x, places, others[::2])
        return x.sum()

    rng = np.random.default_rng(0)
    given = np.zeros(300), rng.integers(0, 300, 1000), rng.random(1000), rng.random(2000)
    ((module, inputs),) = captured(deposit, *copy.deepcopy(given))
    with targeting(Gpu()):
        source = generate(module.graph, partial(getattr, module))
    first, second = (s for s in source.program.steps if isinstance(s, Scatter))
    assert [t.buffer.kind for t in first.args] == ["input", "temporary", "input"]
    assert second.args[2].buffer.kind == "temporary"
    with on_host(1):
        executable(source, module)(*inputs)
    want = np.zeros(300)
    np.add.at(want, given[1], given[2] + given[3][::2])
    np.testing.assert_allclose(inputs[0], want)


def test_values_that_lie_ready_and_change():
    def deposit(x, places, values):
        values += 1
        np.add.at(x, places, values)
        values *= 2
        np.add.at(x, places, values)
        values[:9] = 0
        return x * values[0]

    rng = np.random.default_rng(0)
    given = np.zeros(300), rng.integers(0, 300, 1000), rng.random(1000)
    want = copy.deepcopy(given)
    deposit(*want)
    fast = np_compile.compile(np_compile.wrap_numpy(deposit), backend="native")
    with compiling_for(Gpu(), 1), config.patch(loops="recorded", compile_in="call"):
        mine = [torch.from_numpy(a.copy()) for a in given]
        fast(*mine)
    for a, b in zip(mine, want, strict=True):
        np.testing.assert_allclose(a, b)


ROWS_LEFT = pytest.mark.parametrize("rows", [1, 5, 17, 1003, 2051])


@ROWS_LEFT
@pytest.mark.parametrize("machine", [SMALL_GPU, Gpu()], ids=["small", "large"])
def test_rows_that_fill_no_block(rows, machine):
    """Blocks take several short rows; those behind the last one are nobody's."""

    def sums(x, a):
        x[:-9] = a.sum(axis=1)
        return x[:-9] * 2

    a = np.random.default_rng(0).random((rows, 20))
    ((module, inputs),) = captured(sums, np.full(rows + 9, 7.0), a)
    with targeting(machine):
        source = generate(module.graph, partial(getattr, module))
    for turns in TURNS:
        mine = copy.deepcopy(inputs)
        with on_host(turns):
            (got,) = executable(source, module)(*mine)
        (x,) = (t for t in mine if t.dim() == 1)
        np.testing.assert_allclose(x[:-9], a.sum(axis=1))
        np.testing.assert_allclose(got, 2 * a.sum(axis=1))
        assert (x[-9:] == 7).all()


@ROWS_LEFT
def test_rows_that_parts_leave_over(rows):
    """A reduction of many rows is made in parts, with a shorter last one."""

    def columns(a):
        return a.sum(axis=0), a.max(axis=0)

    a = np.random.default_rng(0).random((rows, 3))
    a[-1] = 5.0
    for machine in (SMALL_GPU, Gpu()):
        ((module, inputs),) = captured(columns, a)
        with targeting(machine):
            source = generate(module.graph, partial(getattr, module))
        if machine is not SMALL_GPU and rows > 1000:
            (parts, *_) = (b for b in source.program.buffers if b.name.startswith("part"))
            assert rows % parts.shape[0]
        for turns in TURNS:
            with on_host(turns):
                got = executable(source, module)(*copy.deepcopy(inputs))
            for x, y in zip(got, columns(a), strict=True):
                np.testing.assert_allclose(x, y)


def test_few_values_or_many_elements_are_no_parts():
    machine = Gpu()
    assert not scatter.parts_of(1000, 10, 8, machine)
    assert not scatter.parts_of(10**6, 10**5, 8, machine)
    assert not scatter.parts_of(10**6, 0, 8, machine)
    assert scatter.parts_of(10**6, 10**4, 8, machine) == 200
    assert scatter.parts_of(10**6, 10, 4, machine) == 16 * machine.processors


def outcome(f, *args):
    """What a call gives, or class and text of its error."""
    try:
        return [f(*args)]
    except IndexError as e:
        return [str(e)]


# What the host's threads show


KERNELS = """
struct Memory {{ int *words; }};
extern "C" __global__ void __launch_bounds__(64) kernel_0(const __grid_constant__ Memory memory) {{
    __shared__ int held[64];
    held[threadIdx.x] = threadIdx.x;
    {wait}
    memory.words[threadIdx.x] = held[63 - threadIdx.x];
}}
"""


def ran(text, turns):
    made = (ctypes.c_int * 64)(*[-1] * 64)
    words = ctypes.c_void_p(ctypes.addressof(made))
    run, number = HostModules(text).functions({"kernel_0": 0}, False)["kernel_0"]
    code = run(number, ctypes.addressof(words), 1, 64, turns)
    return code, list(made)


def test_threads_that_wait_for_each_other():
    for turns in TURNS:
        assert ran(KERNELS.format(wait="__syncthreads();"), turns) == (0, [*range(63, -1, -1)])


def test_a_race_shows_in_another_order():
    first, second = (ran(KERNELS.format(wait=""), turns)[1] for turns in TURNS[:2])
    assert first != second


@pytest.mark.parametrize(
    "wait",
    ["if (threadIdx.x < 40) __syncwarp();", "if (threadIdx.x < 32) __syncwarp(7);"],
    ids=["half of a warp", "lanes that are not meant"],
)
def test_threads_that_wait_for_ever(wait):
    assert ran(KERNELS.format(wait=wait), 0)[0] == 1
