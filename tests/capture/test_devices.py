"""The border between host memory and a device, with a second copy in host memory for the device."""

from __future__ import annotations

import functools
import hashlib
import statistics

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch import ones as _ones
from torch.utils._device import DeviceContext

import np_compile
from np_compile import api, config
from np_compile.backends.by_torch import device_of
from np_compile.capture.policy import places

from ..support import check, compiled, data
from .device_programs import PROGRAMS
from .test_memory import PROGRAMS as MEMORY_PROGRAMS
from .test_memory import X
from .test_programs import PROGRAMS as HOST_PROGRAMS

BORDER = []


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """Calls have their arrays on "another" device, whose memory is apart from NumPy's."""

    def place(args, kwargs, tensors):
        return torch.device("cpu") if api._context_depth() else None

    monkeypatch.setattr(api, "_device", place)
    with torch.device("cpu"):
        yield


def program(*args):
    """Register a program that what crosses the border matters to."""

    def register(f):
        BORDER.append(pytest.param(f, args, id=f.__name__))
        return f

    return register


@program(data(4, 4), data(4, 4))
def adds_at_crossed_indices(x, y):
    x[np.ix_([0, 1], [1, 2])] -= y[:2, :2]
    return x


@program(data(5, 5), data(5, 5))
def writes_by_functions(x, y):
    np.put(x, [0, -1, 2], [7, 8])
    np.place(x, x > 0.9, [1, 2])
    np.putmask(x, x < 0, y)
    np.copyto(x, y, where=y > 1)
    np.fill_diagonal(x, -3)
    x.partition(2, axis=1)
    x.sort(axis=0)
    return x + y


@program(data(6))
def one_view_by_two_names(x):
    a = x[::2]
    b = a
    c = np.sqrt(np.abs(x))[1:]
    d = c
    return a, b, a is b, [c, d]


@program(data(6), data(6))
def shapes_that_are_set(x, y):
    y.shape = (6,)
    part = x[1:]
    x.shape = (2, 3)
    x[0, 1] = 7
    part *= 2
    return x, y, part, y * 2


@program(data(6))
def what_has_a_base(x):
    y = x[1:]
    y *= 2
    z = x + 1
    return x.base is None, y.base is x, float(y.sum()), z.base is None


@program(data(6))
def flags(x):
    x.setflags(write=False)
    try:
        x[0] = 1
    except ValueError as e:
        text = str(e)
    y = x.copy()
    x.flags.writeable = True
    x[0] = 42
    return text, y, x, x.flags.writeable, y.flags.owndata


@program(data(6))
def kept_outside(x):
    y = x * 2
    memory = memoryview(y)
    memory[1] = 5.0
    z = y + 1
    memory[2] = 6.0
    return z, y * 2, hashlib.md5(y).hexdigest()


@program(data(8, 9))
def other_libraries(x):
    y = ndimage.uniform_filter(x * 2, 3)
    ndimage.gaussian_filter(x, 1.0, output=x)
    return y + x, statistics.fmean(x[0].tolist())


def _double(a):
    a *= 2
    return a


@program(data(6))
def by_code_that_nothing_tells(x):
    y = x + 1
    z = functools.reduce(lambda a, f: f(a), [_double, _double], y)
    return y, z is y, list(map(float, y)), list(np.nditer(y))[2]


@program(data(5))
def by_elements(x):
    out = [(i, float(v)) for i, v in np.ndenumerate(x * 2)]
    x[1] = x[0].as_integer_ratio()[1]
    return out, x, sorted(x.tolist()), dict(enumerate(x))


class Particles:
    def __init__(self, x):
        self.x = x
        self.v = np.zeros_like(x)

    def step(self, dt):
        self.v -= dt * self.x
        self.x += dt * self.v
        self.trace = [self.x.copy(), float(self.v.sum())]
        return self


@program(data(5), 3)
def objects(x, n):
    p = Particles(x)
    for _ in range(n):
        p.step(0.1)
        np.random.RandomState(0).shuffle(p.v)
    return p.x, p.v, p.trace, x is p.x


@program(data(20), 1e-3)
def until_it_settles(x, tolerance):
    steps = 0
    while True:
        new = np.cos(x)
        change = np.abs(new - x).max()
        x[:] = new
        steps += 1
        if change < tolerance:
            return steps, change


@program(data(12))
def rows_by_a_function(x):
    m = x.reshape(3, 4)
    mask = x[:4] > x[:4].mean()
    return np.apply_along_axis(lambda r: r[mask].sum() + m.sum(), 1, m)


@program(data(6), np.array([3, 1, 2]))
def fails_after_writes(x, i):
    x += 1
    x[i] *= 2
    try:
        x[i + 40] = 0
    except IndexError as e:
        return str(e), x
    return None


# NumPy 2.5 warns of shapes that are set.
SHAPES = pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")
EVERY = [
    *(pytest.param(f, args, id=f.__name__) for f, args in PROGRAMS),
    *(pytest.param(*p.values[:2], id=p.id) for p in HOST_PROGRAMS),
    *BORDER,
    *(pytest.param(f, (X,), id=f"memory_{name}") for name, f in MEMORY_PROGRAMS.items()),
]


@SHAPES
@pytest.mark.parametrize(("f", "args"), BORDER)
def test_program_while_a_compiler_works(f, args):
    with config.patch(compile_in="background"):
        check(f, *args, backend="native", rtol=1e-7, alias=False, plain="auto")


@pytest.mark.parametrize(
    "f",
    [
        lambda x: hashlib.md5(memoryview(x)).digest() + bytes(x * 2),
        lambda x: np.sin(x) * float(x.sum()),
    ],
)
def test_what_a_device_is_of_no_use_to_does_not_go_there_any_more(f):
    fast = np_compile.compile(f)
    with config.patch(plain="never"):
        for n in (3, 3, 4, 5):
            x = np.ones(n)
            np.testing.assert_array_equal(fast(x), f(x))
        places = fast._options.places
        assert places.vain == 2
        assert places.on_host((x,), {})
        fast(np.ones(3000))
        assert places.vain == 3


def _is_under_a_device():
    modes = torch.overrides._get_current_function_mode_stack()
    return any(isinstance(m, DeviceContext) for m in modes)


def _tensor_beside(x):
    return float(x.sum()), torch.ones(2).sum().item(), _is_under_a_device()


@pytest.mark.parametrize(
    "f",
    [
        _tensor_beside,
        lambda x: (_tensor_beside(x), len(x)),
        lambda x: (float(x.sum()), _ones(2).sum().item(), _is_under_a_device()),
    ],
)
def test_tensors_that_the_function_makes_are_on_the_device_in_each_call(f):
    fast = np_compile.compile(f)
    with config.patch(plain="never"):
        for n in (3, 3, 4, 5):
            assert fast(np.ones(n)) == f(np.ones(n))
    with config.patch(compile_in="call"):
        for _ in range(12):
            assert fast(np.ones(3)) == f(np.ones(3))


@pytest.mark.parametrize("slow", ["device", "host"])
def test_calls_that_numpy_makes_sooner_stay_on_the_host(slow, monkeypatch, clock):
    """As measured, where NumPy may be as quick by what is recorded."""
    there = 0

    def on_device(args, kwargs):
        nonlocal there
        if api._context_depth():
            there += 1
            clock.passes(0.02 if slow == "device" else 0.0)
        return alone(args, kwargs)

    def f(x):
        if slow == "host":
            wait(0.02)
        return np.sqrt(x) + 1

    def wait(seconds):
        if not api._context_depth():
            clock.passes(seconds)

    likely = 0.03 if slow == "device" else 0.0  # NumPy may take a little longer than the device
    monkeypatch.setattr(places, "likely_seconds", lambda calls, touched: likely)
    fast = np_compile.compile(f)
    alone = fast._alone
    monkeypatch.setattr(fast, "_alone", on_device)
    x = np.ones(100_000)
    with config.patch(compile_in="call"):
        for _ in range(9):
            np.testing.assert_allclose(fast(x), np.sqrt(x) + 1)
    assert fast._options.places.on_host((x,), {}) is (slow == "device")
    assert there == (4 if slow == "device" else 8)


def test_the_last_calls_on_a_device_count():
    """They were as quick as NumPy while they ran as they stand, then recorded they are slower."""
    kind = places.Kind(likely=0.0)
    for _ in range(4):
        assert not kind.wants_numpy
        kind.ran(0.001)
    assert kind.wants_numpy
    kind.ran_in_numpy(0.002)
    assert not kind.wants_numpy
    for _ in range(4):
        assert not kind.on_host
        kind.ran(0.01)
    assert kind.wants_numpy
    kind.ran_in_numpy(0.003)
    assert kind.on_host


def test_what_has_no_loop_for_a_device_stays_on_the_host():
    def smoothed(x):
        s = 0.0
        for v in x:
            s = 0.5 * s + v
        return s

    fast, x = np_compile.compile(smoothed), np.ones(50)
    with config.patch(compile_in="call"):
        for on_host in (False, False, True):
            assert fast._options.places.on_host((x,), {}) is on_host
            assert fast(x) == smoothed(x)


def test_numpy_that_is_not_slower_keeps_calls_on_the_host():
    kind = places.Kind(likely=0.0)
    for _ in range(4):
        kind.awaits = True  # its kernels are not there yet
        kind.ran(1.0)
        assert not kind.wants_numpy
    for _ in range(4):
        kind.ran(0.01)
    for seconds in (0.011, 0.012):
        assert kind.wants_numpy
        kind.ran_in_numpy(seconds)
    assert kind.on_host


@SHAPES
# Half of what other tests run on the host runs here each time.
@pytest.mark.parametrize(
    ("f", "args"),
    [
        p
        if k < len(PROGRAMS) or k % 2
        else pytest.param(*p.values, id=p.id, marks=pytest.mark.thorough)
        for k, p in enumerate(EVERY)
    ],
)
def test_program(f, args):
    check(f, *args, rtol=1e-9, alias=False, new=False, plain="auto")


@pytest.mark.parametrize(("f", "args"), EVERY[: len(PROGRAMS) : 2])
def test_program_that_stays_on_the_device(f, args):
    check(f, *args, rtol=1e-9, alias=False, new=False)


def changed_by_foreign_code(x):
    y = np.cos(x)
    y += 1
    np.random.default_rng(1).shuffle(y)
    np.random.default_rng(2).random(out=y[1:3])
    z = y * 2
    z[0] = 7
    np.random.default_rng(0).shuffle(z)
    return y, z + 0


def test_foreign_code_changes_arrays_that_a_program_made_and_changed():
    check(changed_by_foreign_code, data(7), alias=False, plain="auto")


def plainly(f, *args):
    """The breaks into plain mode, and the number of programs, of a first call."""
    fast, counter = compiled(f)
    report = np_compile.explain(fast)(*args)
    return [b.reason for b in report.breaks if b.kind == "plain"], counter.count


def elements(x, n):
    for i in range(n):
        x[i % 5] += x[(i + 1) % 5] * 0.5
    return x * 2


def test_a_loop_of_little_work_goes_on_in_host_memory_and_comes_back():
    reasons, programs = plainly(elements, data(8), 300)
    assert any("too little for a device" in r for r in reasons)
    assert programs <= 2
    check(elements, data(8), 300, alias=False, plain="auto")


def test_a_later_call_begins_such_a_loop_in_host_memory():
    def f(x, n):
        for _ in range(3):
            for i in range(n):
                x[i % 5] += x[(i + 1) % 5] * 0.5
        return x * 2

    fast, _ = compiled(f)
    first, second = (np_compile.explain(fast)(data(8), 40) for _ in range(2))
    left, plain = (b.reason for b in first.breaks if b.kind == "plain")
    assert "too little for a device" in left
    assert "too little to be recorded" in plain
    (only,) = (b for b in second.breaks if b.kind == "plain")
    assert "an earlier call" in only.reason
    assert only.times == 1
    np.testing.assert_allclose(second.result, f(data(8), 40))


def test_a_loop_over_large_arrays_stays_on_the_device():
    def f(x, n):
        for _ in range(n):
            x = np.sin(x) * 0.5 + x
        return x

    reasons, programs = plainly(f, data(400_000), 12)
    assert reasons == []
    assert programs >= 1


def test_a_loop_whose_arrays_change_their_shape_is_not_compiled_for_each():
    def f(x):
        total = 0.0
        for k in range(48):
            total = total + np.sqrt(np.abs(x[k:]) + 1).sum()
        return total

    reasons, programs = plainly(f, data(300_000))
    assert any("compiled for itself" in r for r in reasons)
    assert programs <= 6


def test_values_asked_for_one_by_one():
    def f(x):
        n = 0
        while x.max() > 1e-6:
            x = x * 0.5
            n += 1
        return x, n

    reasons, _ = plainly(f, np.abs(data(6)) + 1)
    assert any("one small value after the other" in r for r in reasons)
    check(f, np.abs(data(6)) + 1, alias=False, plain="auto", new=False)


def test_tensors_with_a_gradient_stay():
    def f(x, n):
        y = x * 1
        for _ in range(n):
            y = np.sin(y) * 1.5
        return y.sum()

    x = torch.from_numpy(data(5)).requires_grad_()
    fast = np_compile.compile(np_compile.wrap_numpy(f), backend="eager")
    assert torch.autograd.gradcheck(lambda x: fast(x, 40), (x,))
    with torch.no_grad():
        assert any(b.kind == "plain" for b in np_compile.explain(fast)(x, 40).breaks)


def test_tensors_that_plain_mode_has_written_to():
    t = torch.from_numpy(data(8))
    want = t.numpy().copy()
    result = elements(want, 300)
    fast = np_compile.compile(np_compile.wrap_numpy(elements), backend="eager")
    got = fast(t, 300)
    assert type(got) is torch.Tensor
    np.testing.assert_allclose(got.numpy(), result)
    np.testing.assert_allclose(t.numpy(), want)


def test_an_error_in_a_loop_leaves_what_was_written():
    def f(x):
        for i in range(20):
            x[i % 4] += 1
            if i == 15:
                raise KeyError("stop")

    check(f, np.zeros(6), alias=False, plain="auto")


def test_a_call_lets_go_of_its_arrays(monkeypatch):
    looks = []
    monkeypatch.setattr("gc.get_referrers", lambda *objects: looks.append(objects) or [])
    fast = np_compile.compile(elements, backend="eager")
    shared = np_compile.compile(lambda x: torch.from_numpy(x).sum(), backend="eager")
    for _ in range(2):
        fast(data(8), 40)
        shared(data(8))
    assert looks == []


def test_a_program_that_makes_all_its_arrays_is_on_its_device():
    graphs = []

    def backend(graph, example_inputs):
        graphs.append(device_of(graph, example_inputs).type != "cpu")
        return graph.forward

    fast = np_compile.compile(lambda n: np.zeros(3) + n, backend=backend)
    fast(2.5)
    assert graphs == [False]

    graph = torch.fx.Graph()
    made = graph.call_function(torch.ops.aten.zeros.default, ([3],))
    with torch._subclasses.FakeTensorMode():
        made.meta["val"] = torch.empty(3, device="cuda")
    graph.output([made])
    assert device_of(torch.fx.GraphModule({}, graph), []).type == "cuda"


def test_parameters_lie_where_the_arrays_are():
    places = []

    def backend(graph, example_inputs):
        places.extend(t.device for t in example_inputs)
        return graph.forward

    fast = np_compile.compile(lambda x, a, n: x * a + n, backend=backend, dynamic=True)
    fast(data(3), 1.5, 2)
    assert len(places) == 3
    assert set(places) == {torch.empty(0, device=torch.device("cpu")).device}
