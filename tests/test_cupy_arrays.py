"""CuPy arrays as arguments: with arrays in host memory in CuPy's place, and on a device."""

from __future__ import annotations

import sys
import types
from collections import namedtuple

import numpy as np
import pytest
import torch

import np_compile

Pair = namedtuple("Pair", "left right")


class HostArray:
    """What CuPy's arrays have that matters here, in host memory."""

    def __init__(self, data):
        self.data = np.asarray(data)

    @property
    def strides(self):
        return self.data.strides

    def __dlpack__(self, **kwargs):
        return self.data.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        given = [x.data if isinstance(x, HostArray) else x for x in inputs]
        return HostArray(getattr(ufunc, method)(*given, **kwargs))


@pytest.fixture
def cupy(monkeypatch):
    """CuPy on a device; without one a module of host arrays of that name."""
    if torch.cuda.is_available():
        return pytest.importorskip("cupy")
    module = types.SimpleNamespace(
        ndarray=HostArray,
        asarray=HostArray,
        asnumpy=lambda x: x.data,
        from_dlpack=lambda t: HostArray(np.from_dlpack(t)),
    )
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def address(x):
    return x.data.ptr if hasattr(x.data, "ptr") else x.data.ctypes.data


def test_arrays_go_in_and_come_out(cupy):
    fast = np_compile.compile(lambda x, y, *, s: (np.sqrt(x * x + y) * s, x.sum(), 3))
    x, y = np.arange(12.0).reshape(3, 4), np.ones(4, np.float32)
    for _ in range(4):
        product, total, three = fast(cupy.asarray(x), cupy.asarray(y), s=2.0)
        assert type(product) is type(total) is cupy.ndarray
        np.testing.assert_allclose(cupy.asnumpy(product), np.sqrt(x * x + y) * 2)
        assert cupy.asnumpy(total) == 66
        assert three == 3


def test_nothing_is_copied(cupy):
    x = cupy.asarray(np.arange(6.0))

    def shifted(x):
        x[1:] += 10
        return x, x[2:], [x]

    whole, rest, listed = np_compile.compile(shifted)(x)
    assert whole is x
    assert listed[0] is x
    assert address(rest) == address(x) + 16
    assert cupy.asnumpy(x).tolist() == [0, 11, 12, 13, 14, 15]


def test_in_lists_tuples_and_dicts(cupy):
    def step(state, pair, parts):
        state["x"] *= 2
        state["new"] = state["x"] + 1
        parts.append(pair.left + pair.right)
        parts[0] = parts[0] - 1
        return Pair(parts[0], {"n": len(parts), "x": state["x"]}), parts

    x = cupy.asarray(np.ones(3))
    state, parts = {"x": x, "n": 1}, [cupy.asarray(np.zeros(2))]
    pair = Pair(cupy.asarray(np.ones(2)), 4)
    first, last = np_compile.compile(step)(state, pair, parts)
    assert last is parts
    assert type(first) is Pair
    assert first.left is parts[0]
    assert state["x"] is x is first.right["x"]
    assert [cupy.asnumpy(p).tolist() for p in parts] == [[-1, -1], [5, 5]]
    assert cupy.asnumpy(state["new"]).tolist() == [3, 3, 3]


def test_an_error_leaves_what_was_written(cupy):
    def fails(x, log):
        x[0] = 7
        log.append(x[:1])
        raise KeyError("so")

    x, log = cupy.asarray(np.zeros(3)), [cupy.asarray(np.zeros(1))]
    with pytest.raises(KeyError):
        np_compile.compile(fails)(x, log)
    assert cupy.asnumpy(x).tolist() == [7, 0, 0]
    assert len(log) == 2
    assert type(log[1]) is cupy.ndarray


def test_what_a_tensor_cannot_be_is_left_to_cupy(cupy):
    x = cupy.asarray(np.arange(3.0))
    backwards = x[::-1] if torch.cuda.is_available() else HostArray(x.data[::-1])
    got = np_compile.compile(lambda x: np.exp(x))(backwards)
    assert type(got) is cupy.ndarray
    np.testing.assert_allclose(cupy.asnumpy(got), np.exp([2.0, 1.0, 0.0]))
    with pytest.raises(np_compile.errors.TensorArgument, match=r"backwards[\s\S]*x\.copy\(\)"):
        np_compile.wrap_numpy(lambda x: np.exp(x))(backwards)


def test_the_tools_take_them(cupy):
    fast = np_compile.compile(lambda x: np.sin(x) + 1)
    x = cupy.asarray(np.zeros(3))
    assert np_compile.explain(fast)(x).segments[0].calls == ["sin", "add"]
    assert "sin" in np_compile.inspect(fast)(x)[0].calls


def test_calls_are_kept(cupy):
    fast = np_compile.compile(lambda x: np.sin(x) + 1)
    for _ in range(4):
        fast(cupy.asarray(np.zeros(3)))
    assert fast.of_tensors()._keeper.kept


@pytest.mark.cuda
def test_cupys_stream():
    """What waits on CuPy's stream is done before, and what the call does, after it."""
    cupy = pytest.importorskip("cupy")
    fast = np_compile.compile(lambda x: x * 2 + 1)
    for _ in range(3):
        with cupy.cuda.Stream(non_blocking=True):
            x = cupy.zeros(1 << 24)
            for _ in range(20):
                x += 1
            y = fast(x)
            y -= 1
            assert (y == 40).all()


class State:
    """An object as programs have it."""

    def __init__(self, u, parts):
        self.u, self.parts, self.steps = u, parts, 0

    def step(self, dt):
        self.u[1:] += dt * (self.u[:-1] - self.u[1:])
        self.parts.append(self.u.sum())
        self.last = self.u * 2
        self.steps += 1
        return self

    step = np_compile.compile(step)


def test_in_objects(cupy):
    x = np.array([1.0, 4.0, 9.0])
    u = cupy.asarray(x.copy())
    state = State(u, [])
    for k in range(3):
        assert state.step(0.5) is state
        x[1:] += 0.5 * (x[:-1] - x[1:])
        assert state.u is u
        assert state.steps == k + 1
        assert [type(v) for v in (state.last, *state.parts)] == [cupy.ndarray] * (k + 2)
        np.testing.assert_allclose(cupy.asnumpy(state.u), x)
        np.testing.assert_allclose(cupy.asnumpy(state.last), x * 2)


def test_objects_that_are_new(cupy):
    def made(x, others, empty, old):
        a = State(x + 1, [x])
        a.same = a
        others["it"] = State(x, [])
        empty.append(x[:1])
        old.u = x
        return a

    x, others, empty, old = cupy.asarray(np.zeros(2)), {}, [], State(None, None)
    a = np_compile.compile(made)(x, others, empty, old)
    assert a.same is a
    assert a.parts[0] is others["it"].u is old.u is x
    assert type(empty[0]) is cupy.ndarray
    assert type(a.u) is cupy.ndarray


@pytest.mark.parametrize("loops", ["auto", "recorded"])
def test_where_calls_run_as_they_stand(cupy, loops):
    """What is decided about calls with NumPy's arrays is nothing about those with CuPy's."""

    def f(x, s):
        for k in range(2):
            s[k] = x[k] + 1
        return np.array([x.sum(), x[0]]), s

    fast = np_compile.compile(f)
    x = np.arange(3.0)
    with np_compile.config.patch(compile_in="background", loops=loops):
        for k in range(20):
            fast(x, np.zeros(2 + k % 7))
        budget = fast._options.budget
        budget._begun, budget.cold, budget._awaited = 1, True, None
        for _ in range(3):
            first, s = fast(cupy.asarray(x), cupy.asarray(np.zeros(2)))
            assert type(first) is type(s) is cupy.ndarray
            assert cupy.asnumpy(first).tolist() == [3, 0]
            assert cupy.asnumpy(s).tolist() == [1, 2]
