"""The border between host memory and a device, with a second copy in host memory for the device."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import np_compile
from np_compile import api
from np_compile.backends.by_torch import device_of

from ..support import check, compiled, data
from .device_programs import PROGRAMS
from .test_programs import PROGRAMS as HOST_PROGRAMS


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """Calls have their arrays on "another" device, whose memory is apart from NumPy's."""
    monkeypatch.setattr(api, "_device", lambda *_: torch.device("cpu"))


EVERY = [
    *(pytest.param(f, args, id=f.__name__) for f, args in PROGRAMS),
    *(pytest.param(*p.values[:2], id=p.id) for p in HOST_PROGRAMS),
]


@pytest.mark.parametrize(("f", "args"), EVERY)
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
    check(changed_by_foreign_code, data(7), alias=False)


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
    assert sum(b.times for b in first.breaks if b.kind == "plain") == 2  # both loops
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
        for k in range(12):
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
    assert torch.autograd.gradcheck(lambda x: fast(x, 12), (x,))
    with torch.no_grad():
        assert any(b.kind == "plain" for b in np_compile.explain(fast)(x, 12).breaks)


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
