"""CUDA: device contexts, wrapped functions, breaks and gradients on the device."""

from __future__ import annotations

import copy
import signal

import numpy as np
import pytest
import torch
from np_compile.shim import NotSupported

import np_compile

from ..support import check, compiled, data
from .device_programs import PROGRAMS
from .test_programs import PROGRAMS as HOST_PROGRAMS

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

BACKENDS = ["eager", "aot_eager"]


def seen_devices(f):
    """The device types of the inputs of the programs that f compiles,
    with the compiled function."""
    devices = []

    def backend(graph, example_inputs):
        devices.extend(t.device.type for t in example_inputs)
        return graph.forward

    return np_compile.compile(f, backend=backend), devices


@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
def test_a_device_context_moves_arrays_there_and_back(backend):
    def f(x, y):
        return np.sin(x) @ y, x.sum(), (x > 0).any(), x.T

    with torch.device("cuda"):
        check(f, data(4, 3), data(3, 2), backend=backend, alias=False, rtol=1e-6)


@pytest.mark.parametrize("size", [10_000, 400_000])
def test_sums_at_an_index_out_of_bounds_add_nothing(size):
    def deposit(x, places, values):
        np.add.at(x, places, values)

    fast = np_compile.compile(np_compile.wrap_numpy(deposit), backend="native")
    rng = np.random.default_rng(0)
    for bad in (None, 700_000, None, 3, None):
        places, values = rng.integers(-size, size, 10**6), rng.random(10**6)
        if bad is not None:
            places[bad] = size
        x, want = torch.zeros(size, dtype=torch.float64, device="cuda"), np.zeros(size)
        given = (torch.from_numpy(a).cuda() for a in (places, values))
        if bad is None:
            np.add.at(want, places, values)
            fast(x, *given)
        else:
            with pytest.raises(IndexError, match=f"index {size} is out of bounds"):
                fast(x, *given)
        np.testing.assert_allclose(x.cpu(), want)


def without_high_frequencies(x, cut):
    spectrum = np.fft.rfft(x)
    frequency = np.arange(spectrum.size) / x.size
    return np.fft.irfft(spectrum * np.exp(-((frequency / cut) ** 2)), x.size)


def turned(x, cut):
    return np.abs(np.fft.ifft(np.fft.fft(x) * cut)) + np.fft.fft2(x.reshape(-1, 8)).real[0, 0]


@pytest.mark.parametrize("f", [without_high_frequencies, turned])
def test_transforms_are_in_the_graph_of_a_program(f, monkeypatch):
    replays, real = [], torch.cuda.CUDAGraph.replay
    monkeypatch.setattr(
        torch.cuda.CUDAGraph, "replay", lambda graph: (replays.append(graph), real(graph))
    )
    fast = np_compile.compile(np_compile.wrap_numpy(f), backend="native")
    rng = np.random.default_rng(0)
    for k in range(12):
        x = rng.random(4096)
        got = fast(torch.from_numpy(x).cuda(), 0.05)
        np.testing.assert_allclose(got.cpu(), f(x, 0.05), rtol=1e-9, atol=1e-9, err_msg=str(k))
    assert replays


@pytest.mark.parametrize("f", [np.linalg.inv, np.linalg.cholesky])
def test_what_a_library_refuses_on_the_device(f):
    """With gradients its calls are in the program, and what it says of a matrix is looked at."""
    fast = np_compile.compile(np_compile.wrap_numpy(lambda a: f(a * 1.0).sum()), backend="native")
    for k in range(8):
        a = np.zeros((3, 3)) if k in (2, 6) else np.eye(3) + k
        given = torch.from_numpy(a).cuda().requires_grad_()
        if k in (2, 6):
            with pytest.raises(np.linalg.LinAlgError):
                fast(given)
        else:
            fast(given).backward()
            np.testing.assert_allclose(fast(given).detach().cpu(), f(a).sum(), atol=1e-12)


def test_the_programs_run_on_the_device():
    fast, devices = seen_devices(lambda x: np.sin(x) * 2)
    with torch.device("cuda"):
        got = fast(data(5))
    assert "cuda" in devices
    np.testing.assert_allclose(got, np.sin(data(5)) * 2)
    assert type(got) is np.ndarray
    fast(data(5))
    assert "cpu" in devices


def writes(x):
    x += 1
    x[1:3] *= 2
    x[::-1][0] = 7
    return x.sum()


def test_in_place_changes_are_copied_back():
    with torch.device("cuda"):
        check(writes, data(6), rtol=1e-9)
        check(writes, data(12)[::2], rtol=1e-9)
        check(writes, data(6)[::-1], rtol=1e-9)
        check(lambda x: writes(x[0]), data(3, 6), rtol=1e-9)


def writes_at_computed_places(x):
    x[np.array([0, 2])] = 1
    np.add.at(x, np.array([1, 1]), 2.0)
    return x.sum()


def test_changes_at_computed_places_are_copied_back():
    with torch.device("cuda"):
        check(writes_at_computed_places, data(6), rtol=1e-9)
        check(writes_at_computed_places, data(12)[::2], rtol=1e-9)


def writes_to_a_copy(x):
    y = x.reshape(-1)
    y[3] = 7
    return x.sum(), y


def test_a_tensor_there_is_no_array():
    t = torch.ones(3, device="cuda")

    def of_one(x):
        return np.asarray(t) + x

    def of_new(x):
        return torch.ones(3, device="cuda").numpy() + x

    for f in (of_one, of_new):
        fast, _ = compiled(f)
        for place in ("cuda", "cpu") * 3:
            with torch.device(place), pytest.raises(TypeError, match="to numpy"):
                fast(np.ones(3))
    fast, _ = compiled(lambda x: np.asarray(t.cpu()) + x)
    with torch.device("cuda"):
        assert fast(np.ones(3)).tolist() == [2, 2, 2]


def test_what_is_a_copy_stays_one():
    with torch.device("cuda"):
        check(writes_to_a_copy, data(4, 6)[::2, ::3], rtol=1e-9)
        check(writes_to_a_copy, data(4, 6), rtol=1e-9)


def test_a_read_only_argument_is_not_changed():
    x = data(4)
    x.flags.writeable = False
    with torch.device("cuda"):
        check(writes, x)


def test_an_exception_copies_earlier_changes_back():
    def f(x):
        x += 1
        raise KeyError("stop")

    fast, _ = compiled(f)
    x = np.zeros(3)
    with torch.device("cuda"), pytest.raises(KeyError):
        fast(x)
    assert x.tolist() == [1, 1, 1]


def breaks(x):
    y = np.sin(x) * 2
    if y.sum() > -1e9:
        y = y + 1
    print(np.round(y[0], 3))
    s = float(y.max())
    z = y[y > 0]
    return y * s, np.sort(z), np.unique(np.round(x))


@pytest.mark.parametrize("backend", BACKENDS)
def test_breaks_under_cuda(backend):
    with torch.device("cuda"):
        check(breaks, data(6), backend=backend, rtol=1e-9)


def test_breaks_keep_the_device():
    fast, devices = seen_devices(breaks)
    with torch.device("cuda"):
        fast(data(6))
    arrays = [d for d in devices if d != "cpu"]
    assert len(arrays) >= 2


def test_loops_and_steps_on_the_device():
    def f(u, n):
        for _ in range(n):
            u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
        return u.max()

    with torch.device("cuda"):
        c = check(f, data(20), 30, rtol=1e-9)
    assert c.compiles <= 3


def test_creation_functions_on_the_device():
    def f(x):
        return (
            np.zeros(3) + x,
            np.arange(3) * x,
            np.eye(3) @ x,
            np.linspace(0, 1, 3) + x,
            np.full(3, 2.0),
        )

    with torch.device("cuda"):
        check(f, data(3), rtol=1e-9)


def test_scalars_and_shapes_on_the_device():
    def f(x):
        return x[0], x.mean(), x.argmax(), x.shape, x.dtype, x.sum() + 1, isinstance(x.sum(), float)

    with torch.device("cuda"):
        check(f, data(4), rtol=1e-9)


@pytest.mark.parametrize("wrap", [
    np_compile.wrap_numpy,
    lambda f: np_compile.compile(np_compile.wrap_numpy(f), backend="eager"),
    lambda f: np_compile.compile(np_compile.wrap_numpy(f), backend="inductor"),
])  # fmt: skip
def test_wrapped_functions_keep_tensors_on_the_device(wrap):
    def f(x, y):
        return np.tanh(x) @ y + np.arange(2.0), x.sum(), x[1:]

    x, y = torch.from_numpy(data(4, 3)).cuda(), torch.from_numpy(data(3, 2)).cuda()
    want = f(x.cpu().numpy(), y.cpu().numpy())
    fast = wrap(f)
    for _ in range(2):
        got = fast(x, y)
        for g, w in zip(got, want, strict=True):
            assert g.device == x.device
            np.testing.assert_allclose(g.cpu().numpy(), w, rtol=1e-9)
        assert got[2].data_ptr() == x[1:].data_ptr()


def test_identity_copies_nothing():
    x = torch.ones(3, device="cuda")
    for f in (
        np_compile.wrap_numpy(lambda x: x),
        np_compile.compile(np_compile.wrap_numpy(lambda x: x), backend="eager"),
    ):
        assert f(x).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
def test_gradients_on_the_device(backend):
    def f(x, w):
        y = np.tanh(x @ w)
        if y.sum() > -1e9:
            y = y * 2
        return (y**2).mean()

    x = torch.from_numpy(data(4, 3)).cuda().requires_grad_()
    w = torch.from_numpy(data(3, 2)).cuda().requires_grad_()
    np_compile.compile(np_compile.wrap_numpy(f), backend=backend)(x, w).backward()
    a, b = x.detach().cpu().requires_grad_(), w.detach().cpu().requires_grad_()
    ((torch.tanh(a @ b) * 2) ** 2).mean().backward()
    assert x.grad.device.type == "cuda"
    assert torch.allclose(x.grad.cpu(), a.grad)
    assert torch.allclose(w.grad.cpu(), b.grad)


def by_flat(a, x):
    a.flat[:: len(a) + 1] += 2.0
    a.T.flat[1] = -1.0
    b = a.T.copy()
    b.flat = x
    b.T.flat[:2] = 7.0
    a.real.partition(1)
    return a @ a, b, b.flat[3]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_other_code_writes_to_a_tensor_arrives(backend):
    a, x = data(4, 4), data(4)
    fast = np_compile.compile(np_compile.wrap_numpy(by_flat), backend=backend)
    for _ in range(4):
        mine, twin = torch.from_numpy(a.copy()).cuda(), a.copy()
        got, want = fast(mine, torch.from_numpy(x).cuda()), by_flat(twin, x)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(torch.as_tensor(g).cpu().numpy(), w)
        np.testing.assert_array_equal(mine.cpu().numpy(), twin)


@pytest.mark.parametrize("backend", BACKENDS)
def test_types_of_numpy_take_scalars_of_a_device(backend):
    def f(x):
        return np.float32(x.std()), np.int64(x.sum()), np.float32(x[:1].max() * 2)

    x = data(9)
    fast = np_compile.compile(np_compile.wrap_numpy(f), backend=backend)
    for _ in range(4):
        for g, w in zip(fast(torch.from_numpy(x).cuda()), f(x), strict=True):
            np.testing.assert_allclose(torch.as_tensor(g).cpu().numpy(), w, rtol=1e-6)


def test_in_place_on_a_device_tensor():
    x = torch.ones(4, device="cuda")
    got = np_compile.compile(np_compile.wrap_numpy(lambda x: x.__iadd__(1)), backend="eager")(x)
    assert got.data_ptr() == x.data_ptr()
    assert x.tolist() == [2] * 4


def test_cupy_arrays_go_in_without_copies():
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(4.0)
    got = np_compile.compile(np_compile.wrap_numpy(lambda x: x[1:]), backend="eager")(x)
    assert got.device.type == "cuda"
    assert got.data_ptr() == x.data.ptr + 8


# -- programs ----------------------------------------------------------------------------------

_SECONDS = 60  # for one program and back end; the card's first use and a compile included


@pytest.fixture(autouse=True)
def _in_time():
    def too_long(_signal, _frame):
        raise TimeoutError(f"over {_SECONDS} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(_SECONDS)
    yield
    signal.alarm(0)


HOST = [pytest.param(*p.values[:2], id=p.id) for p in HOST_PROGRAMS]
EVERY = [*(pytest.param(f, args, id=f.__name__) for f, args in PROGRAMS), *HOST]
COMPILED = ("scaled_product", "difference_equation", "mandelbrot_in_place", "contour_integral",
            "alternating_directions", "softmax_regression", "heat_in_place")  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("f", "args"), EVERY)
def test_program_under_a_device_context(f, args, backend):
    with torch.device("cuda"):
        check(f, *args, backend=backend, rtol=1e-7, alias=False, new=False, plain="auto")


@pytest.mark.parametrize(("f", "args"), EVERY)
def test_program_on_tensors(f, args):
    def on_card(x):
        if isinstance(x, np.ndarray) and x.dtype.kind in "biufc":
            return torch.from_numpy(x.copy()).cuda()
        if isinstance(x, (list, tuple)):
            return type(x)(map(on_card, x))
        return {k: on_card(v) for k, v in x.items()} if isinstance(x, dict) else x

    def flat(x):
        if isinstance(x, (list, tuple)):
            return [y for v in x for y in flat(v)]
        if isinstance(x, dict):
            return flat(list(x.values()))
        return [np.asarray(x.cpu()) if isinstance(x, torch.Tensor) else x]

    fast = np_compile.compile(np_compile.wrap_numpy(f), backend="eager")
    for _ in range(2):
        mine, its = copy.deepcopy(args), on_card(args)
        try:
            want = f(*mine)
            numbers = all(np.asarray(v).dtype.kind in "biufc" for v in flat(want))
        except Exception as e:
            with pytest.raises(type(e)):
                fast(*its)
            continue
        if not numbers:
            with pytest.raises((TypeError, NotSupported)):  # a tensor holds no words
                fast(*its)
            return
        got = fast(*its)
        for g, w in zip(flat(got) + flat(its), flat(want) + flat(mine), strict=True):
            if np.asarray(w).dtype.kind in "fc":
                np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-9)
            else:
                np.testing.assert_array_equal(g, w)


@pytest.mark.filterwarnings("ignore:Torchinductor does not support code generation for complex")
@pytest.mark.parametrize(("f", "args"), [p for p in EVERY if p.id in COMPILED])
def test_program_compiled_for_the_device(f, args):
    with torch.device("cuda"):
        check(f, *args, backend="native", rtol=1e-7, alias=False, new=False, plain="auto")


def _lists(x, i, j):
    grid = np.zeros((20, 20))
    np.add.at(grid, (i, j), x)
    a, b = map(np.array, zip(*zip(i, j, strict=True), strict=True))
    return grid, x[a] - x[b], x[i] * x[j]


@pytest.mark.parametrize("backend", [*BACKENDS, "native"])
def test_lists_of_one_length_are_apart_on_the_device(backend):
    x = np.random.default_rng(0).random(76)
    i, j = [k % 20 for k in range(76)], [k * 7 % 20 for k in range(76)]
    fast = np_compile.compile(np_compile.wrap_numpy(_lists), backend=backend)
    for _ in range(3):
        for got, want in zip(fast(torch.from_numpy(x).cuda(), i, j), _lists(x, i, j), strict=True):
            np.testing.assert_allclose(got.cpu().numpy(), want, rtol=1e-12)


def _along(x, weights):
    return np.apply_along_axis(lambda row: np.convolve(row, weights, mode="same"), 1, x)


@pytest.mark.parametrize("compile_it", [False, True])
def test_functions_that_are_called_back_meet_arrays_on_the_device(compile_it):
    x, weights = data(6, 9), data(3)
    fast = np_compile.wrap_numpy(_along)
    if compile_it:
        fast = np_compile.compile(fast)
    for _ in range(3):
        got = fast(torch.from_numpy(x).cuda(), torch.from_numpy(weights).cuda())
        np.testing.assert_allclose(got.cpu().numpy(), _along(x, weights), rtol=1e-12)


def test_a_tensor_beside_arrays_and_a_break():
    """What a call has torch make after it left the device, while modes of torch's are active."""

    def f(y, g, n, t):
        try:
            g[n]
        except IndexError:
            y[:2] = [np.inf, 1]
        return y * 2, t

    fast = np_compile.compile(f)
    with torch.device("cuda"), np_compile.config.patch(plain="never"):
        t = torch.tensor(2.0)
        for _ in range(3):
            y = np.arange(9, dtype="f4")
            doubled, same = fast(y, np.ones((1, 1, 1)), 2, t)
            assert same is t
            np.testing.assert_array_equal(y, [np.inf, 1, *range(2, 9)])
            np.testing.assert_array_equal(doubled, y * 2)
        assert torch.ones(1).device.type == "cuda"
    assert torch.ones(1).device.type == "cpu"


def test_what_depends_on_data_is_a_view_of_an_argument():
    def f(x):
        y = np.trim_zeros(x)
        x[2] = 9
        return y, y + 1

    with torch.device("cuda"):
        fast = np_compile.compile(f)
        for _ in range(3):
            x, want = np.array([0, 2, 2, -2, 0]), np.array([0, 2, 2, -2, 0])
            made = fast(x)
            for got, expected in zip(made, f(want), strict=True):
                np.testing.assert_array_equal(got, expected)
            assert np.shares_memory(made[0], x)
