"""Copies between the host and a device: large arrays in pieces, and calls on NumPy's arrays that
are kept with what they send."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config
from np_compile.capture.arrays import transfers

from ..support import data

on_device = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


class Pinned:
    """Stands for pinned memory, filled with what nobody may read; says what waits for what."""

    def __init__(self, size):
        self.pieces = [torch.full((size,), 255, dtype=torch.uint8) for _ in range(2)]
        self.free = [Event(self, k) for k in range(2)]
        self.said = []


class Event:
    def __init__(self, pinned, number):
        self.pinned, self.number = pinned, number

    def record(self):
        self.pinned.said.append(f"record {self.number}")

    def synchronize(self):
        self.pinned.said.append(f"wait {self.number}")


@pytest.mark.parametrize("way", [transfers._send, transfers._fetch])
@pytest.mark.parametrize("pieces", [1, 2, 3, 4, 7])
def test_pieces_take_turns(way, pieces):
    given = torch.arange(10 * pieces - 3, dtype=torch.uint8)
    to = torch.zeros_like(given)
    pinned = Pinned(10)
    way(iter(to.split(10)), iter(given.split(10)), pinned)
    assert torch.equal(to, given)
    waits = 2 * pieces if way is transfers._fetch else pieces
    assert pinned.said.count("wait 0") + pinned.said.count("wait 1") == waits
    for k in range(2):  # a piece is waited for between any two uses
        own = [x for x in pinned.said if x.endswith(str(k))]
        assert not any(a == b == f"record {k}" for a, b in itertools.pairwise(own))


@pytest.mark.parametrize(
    "t",
    [torch.rand(40, 50), torch.rand(40, 50).T, torch.rand(7, dtype=torch.complex64)],
    ids=["C", "Fortran", "complex"],
)
def test_the_bytes_of_an_array_in_their_order(t, monkeypatch):
    monkeypatch.setattr(transfers, "PIECE", 100)
    found = torch.cat([*transfers._pieces(t)]).numpy().tobytes()
    assert found == t.numpy().tobytes("A")


def arrays():
    """Large arrays, and what is none of them."""
    x = np.random.default_rng(3).random((1500, 1001))
    return [
        x, x.astype(np.float32).T, x[:, ::2], x[::-1], x.astype(np.complex64), x > 0.5,
        np.broadcast_to(x[:1], x.shape), x[:3], np.asfortranarray(x), (x * 9e9).astype(np.int64),
        np.float64(2.5), x[:0],
    ]  # fmt: skip


class TestOnADevice:
    pytestmark = on_device

    @pytest.mark.parametrize("sent", [0, transfers.SENT])
    @pytest.mark.parametrize("k", range(12))
    def test_there_and_back(self, k, sent, monkeypatch):
        monkeypatch.setattr(transfers, "SENT", sent)
        a = arrays()[k]
        fast = np_compile.compile(lambda x: (x + x, x.copy(), np.sort(x, axis=None)[:2]))
        want = fast.__wrapped__(a)
        for _ in range(4):
            with torch.device("cuda"):
                got = fast(a)
            for x, y in zip(got, want, strict=True):
                assert type(x) is type(y)
                assert (x.dtype, x.shape) == (y.dtype, y.shape)
                np.testing.assert_array_equal(x, y)

    def test_what_is_written_comes_back(self):
        def change(u, v):
            u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
            v *= 2
            return u.max()

        fast = np_compile.compile(change)
        u, v = data(1_300_000), data(1200, 1000).T
        mine, its = u.copy(), v.copy(order="K")
        for _ in range(6):
            want = change(mine, its)
            with torch.device("cuda"):
                got = fast(u, v)
            np.testing.assert_allclose(got, want)
            np.testing.assert_allclose(u, mine)
            np.testing.assert_allclose(v, its)

    def test_calls_are_kept(self):
        def step(x, w, k):
            return np.tanh(x @ w) * k, x.T, (x * 2).sum(), w

        fast = np_compile.compile(step)
        x, w = data(60, 50), data(50, 40)
        with config.patch(compile_in="call"), torch.device("cuda"):
            for k in (1.5, 1.5, 1.5, 1.5, 2.5, 1.5):
                want = step(x, w, k)
                got = fast(x, w, k)
                for a, b in zip(got, want, strict=True):
                    assert type(a) is type(b)
                    np.testing.assert_allclose(a, b)
                assert np.shares_memory(got[1], x)
                assert got[3] is w
                x += 0.5
            assert np_compile.explain(fast)(x, w, 1.5).kept
            assert fast(x[:30], w, 1.5)[0].shape == (30, 40)
        np.testing.assert_allclose(fast(x, w, 1.5)[0], step(x, w, 1.5)[0])

    def test_an_index_out_of_bounds_is_numpys_error(self):
        fast = np_compile.compile(lambda x, i: x[i] * 2)
        x = data(9)
        with torch.device("cuda"):
            for _ in range(4):
                np.testing.assert_allclose(fast(x, np.array([1, 3])), x[[1, 3]] * 2)
            with pytest.raises(IndexError, match="index 11 is out of bounds for axis 0 with"):
                fast(x, np.array([1, 11]))

    def test_loops_by_element_run_on_the_host(self):
        def smoothed(x, take):
            y = np.empty_like(x)
            y[0] = x[0]
            for i in range(1, x.size):
                y[i] = y[i - 1] + take * (x[i] - y[i - 1])
            return y

        fast = np_compile.compile(smoothed)
        x = data(20_000)
        with config.patch(compile_in="call"), torch.device("cuda"):
            for _ in range(3):
                np.testing.assert_allclose(fast(x, 0.25), smoothed(x, 0.25))
            text = str(np_compile.explain(fast)(x, 0.25))
        assert "the loops run on the host, whatever the device" in text


def test_a_device_context_leaves_loops_to_the_reader():
    def added(x):
        t = 0.0
        for v in x:
            t += v if v > 0 else 1.0
        return t

    fast = np_compile.compile(added)
    x = data(300)
    with config.patch(compile_in="call"), torch.device("cpu"):
        for _ in range(3):
            assert fast(x) == added(x)
        assert "compiled whole" in str(np_compile.explain(fast)(x))
