"""Kept calls on tensors that C finds; those on a GPU with memory of the host and a driver that adds
up what it is told to."""

from __future__ import annotations

import ctypes

import pytest
import torch

from np_compile.kernels.build import driver
from np_compile.kernels.run.gpu_sequence import GpuLink, GpuWork
from np_compile.replay import calls
from np_compile.replay.calls import MISS, Entry, Table, Way
from np_compile.replay.guards import Alike, Call, Value
from np_compile.replay.results import Give

STREAM = 7


class Device:
    """Stands for a device: a launch stores the sum of two vectors of f32 in a third one."""

    def __init__(self, monkeypatch):
        self.now, self.stream, self.error, self.full = 0, STREAM, 0, False
        self.launched: list[int] = []
        self.device = torch.device("cuda", 0)
        self.read, self.results = [0, 2], [((4,), (1,), torch.float32)]
        self.works: list[tuple] = []
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(driver.Launch), *[ctypes.c_int64] * 2)
        self._launch = kind(self.launch)
        self._put(monkeypatch, "current_device", lambda: self.now)
        self._put(monkeypatch, "raw_stream", lambda index: self.stream)
        self._put(monkeypatch, "new_tensor", self.new)
        address = ctypes.cast(self._launch, ctypes.c_void_p).value
        monkeypatch.setattr(driver, "launch_address", lambda: address)

    def _put(self, monkeypatch, name, function):
        monkeypatch.setitem(calls._OF_TORCH, name, function)

    def new(self, shape, strides, dtype):
        if self.full:
            raise torch.OutOfMemoryError("no memory")
        return torch.empty_strided(shape, strides, dtype=dtype)

    def launch(self, launches, count, stream):
        self.launched.append(stream)
        if self.error:
            return self.error
        assert count == 1
        words = (ctypes.c_uint64 * 3).from_address(launches[0].argument)
        x, y, out = ((ctypes.c_float * 4).from_address(w) for w in words)
        out[:] = [a + b for a, b in zip(x, y, strict=True)]
        return 0

    def work(self):
        words = (ctypes.c_uint64 * 3)()
        launches = driver.launches_of([(0, ctypes.addressof(words), 1, 1, 0)])
        at = ctypes.addressof(words)
        links = (GpuLink * 3)(*[GpuLink(at + 8 * k, k) for k in range(3)])
        made = GpuWork(None, self.stream, launches, 1, links, 3)
        self.works.append((made, words, launches, links))
        return ctypes.addressof(made)


@pytest.fixture
def device(monkeypatch):
    known = calls._library()  # what C calls is of the library, which is one
    with monkeypatch.context() as patch:
        found = Device(patch)
        found.library = calls._Library()
        yield found
    calls._Library()
    del known


def aligned(*values):
    """A vector of f32 that begins at a multiple of 16 bytes."""
    memory = torch.zeros(len(values) + 4)
    made = memory[-memory.data_ptr() % 16 // 4 :][: len(values)]
    return made.copy_(torch.tensor(values))


def entry(leaves, grad=False):
    """An entry for calls like this one, by whatever runs its programs."""
    at = [k for k, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    names = [str(k) for k in range(len(leaves))]
    values = [Value(k, names[k], x) for k, x in enumerate(leaves) if k not in at]
    guards = [Call(names, (), None, grad), *values, Alike.of(at, names, leaves)]
    made = Entry(Way.COMPILED, len(leaves), (), guards)
    made.calls(lambda args: ("programs", args))
    return made


def called(one, *args):
    table = Table()
    table.publish([one])
    with torch.no_grad():
        return table.call(*args)


A, B = aligned(1, 2, 3, 4), aligned(10, 20, 30, 40)


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ((B, 2.5, A), True),
        ((A, 2.5, A), False),  # no two of them are one
        ((A, 2.0, B), False),
        ((A, 2.5, B[:3]), False),
        ((A, 2.5, B.double()), False),
        ((A, 2.5, B.clone().requires_grad_()), False),
        ((A, 2.5, B.numpy()), False),
        ((A, 2.5, torch.nn.Parameter(B)), False),
        ((A, 2.5), False),
    ],
    ids=range(9),
)
def test_tensors_are_found_by_what_torch_says_of_them(args, found):
    got = called(entry((A, 2.5, B)), *args)
    assert (got is not MISS) == found
    if found:
        assert got[0] == "programs"
        assert all(x is y for x, y in zip(got[1], args, strict=True))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_a_nested_tensor_is_none_of_them():
    assert called(entry((A, 2.5, B)), A, 2.5, torch.nested.as_nested_tensor([A, B])) is MISS


def test_calls_that_record_gradients_are_others():
    one = entry((A, 2.5, B))
    table = Table()
    table.publish([one])
    assert table.call(A, 2.5, B) is MISS
    assert called(one, A, 2.5, B) is not MISS


def launching(device):
    one = entry((A, 2.5, B))
    result = Give.TUPLE, [(Give.SCALAR, 3), (Give.ARGUMENT, 0), (Give.CONSTANT, "c")]
    one.launches(device, result, [3].index)
    return one


def test_a_call_is_launches(device):
    one = launching(device)
    for k in range(3):
        x, y = aligned(*range(k, k + 4)), aligned(*range(4))
        got, same, text = called(one, x, 2.5, y)
        assert torch.equal(got, x + y)
        assert same is x
        assert text == "c"
    assert device.launched == [STREAM] * 3
    assert len(device.works) == 1


def test_each_stream_has_work_of_its_own(device):
    one = launching(device)
    for stream in (7, 8, 9, 7, 9, 8):
        device.stream = stream
        assert torch.equal(called(one, A, 2.5, B)[0], A + B)
    assert device.launched == [7, 8, 9, 7, 9, 8]
    assert len(device.works) == 3


def test_programs_run_where_launches_do_not_do(device):
    one = launching(device)
    odd = aligned(0, 1, 2, 3, 4)[1:]
    assert called(one, odd, 2.5, A)[0] == "programs"
    device.now = 1
    assert called(one, A, 2.5, B)[0] == "programs"
    device.now, device.error = 0, 700
    assert called(one, A, 2.5, B)[0] == "programs"
    device.error = 0
    assert torch.equal(called(one, A, 2.5, B)[0], A + B)
    assert len(device.works) == 1


def test_memory_may_run_out(device):
    one = launching(device)
    device.full = True
    with pytest.raises(torch.OutOfMemoryError, match="no memory"):
        called(one, A, 2.5, B)
    device.full = False
    assert torch.equal(called(one, A, 2.5, B)[0], A + B)
    assert len(device.works) == 1
