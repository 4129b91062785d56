"""Sequences on a GPU, with the host for the device: words, memory between the steps, graphs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import torch

from np_compile.kernels.compile import generate, targeting
from np_compile.kernels.run import gpu_sequence
from np_compile.kernels.run.gpu_sequence import GpuSequence, Step

from .. import cuda_on_host
from ..graphs import SMALL_GPU, captured

pytestmark = pytest.mark.skipif(not cuda_on_host.available(), reason="needs gcc")


def run(launches: list[tuple], stream: int = 0) -> None:
    for (kernel, number), argument, blocks, threads, _ in launches:
        assert kernel(number, argument, blocks, threads, 0) == 0


class Graph:
    """Launches that are told when they start."""

    started: ClassVar[list[Graph]] = []

    def __init__(self, launches: list[tuple]):
        self._launches = launches

    def start(self, stream: int) -> None:
        self.started.append(self)
        run(self._launches)


@pytest.fixture
def host(monkeypatch):
    monkeypatch.setattr(Graph, "started", [])
    torch_there = SimpleNamespace(
        **{k: getattr(torch, k) for k in ("empty", "zeros", "uint8", "int32")},
        cuda=SimpleNamespace(is_current_stream_capturing=lambda: False),
    )
    for name, value in {
        "launch": run, "launches_of": list, "current_device": lambda: 0, "Graph": Graph,
        "raw_stream": lambda _: 0, "torch": torch_there,
    }.items():  # fmt: skip
        monkeypatch.setattr(gpu_sequence, name, value)


def steps():
    """Three programs, of which each takes what the one before has made."""
    with targeting(SMALL_GPU):
        parts = (lambda x: x * 2 + 1, lambda x: np.sqrt(x)[::-1] - 3, lambda x: x * x)
        for k, f in enumerate(parts):
            ((module, _),) = captured(f, np.ones(1000))
            source = generate(module.graph, lambda name, m=module: getattr(m, name))
            yield Step(cuda_on_host.executable(source, module), (0 if k == 0 else -k,), (), ())


@pytest.mark.parametrize("kept", [0, 1 << 20])
def test_memory_between_the_steps(host, monkeypatch, kept):
    """Whether it is kept, or the allocator's in between: runs on the addresses of an earlier one
    are a graph, and others have words of their own."""
    monkeypatch.setattr(gpu_sequence, "KEPT_BYTES", kept)
    lie = block = torch.empty(1 << 16, dtype=torch.uint8)
    blocks, held = [], []
    monkeypatch.setattr(GpuSequence, "_block", lambda self: blocks.append(block) or block)
    monkeypatch.setattr(gpu_sequence, "empty_strided_cuda", lambda *_: lie)
    with cuda_on_host.on_host(0):
        sequence = GpuSequence([*steps()], [], [2], lambda: True)
        assert sequence.block_bytes
        given = [torch.rand(1000, dtype=torch.float64) for _ in range(2)]
        for k in range(12):
            x = given[k // 6]
            if k % 3 == 0:  # from now on results and the block lie elsewhere
                lie = torch.empty(1000, dtype=torch.float64)
                block = torch.empty(1 << 16, dtype=torch.uint8)
            count, made = sequence.run([x])
            assert count == 3
            torch.testing.assert_close(made[2], (torch.sqrt(x * 2 + 1).flip(0) - 3) ** 2)
            held += [lie, block]
    assert len(blocks) == (1 if kept else 12)
    assert len(Graph.started) == 8  # of each place but the first time
