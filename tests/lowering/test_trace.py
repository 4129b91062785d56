"""Graphs that torch's own tracer writes."""

from __future__ import annotations

import threading

import torch

from np_compile.lowering.trace import trace


def test_functions_under_torch_compile_run_in_other_threads_meanwhile():
    doubled = torch.compile(lambda t: t * 2, backend="eager")
    results = []

    def replay(tensors, graph):
        assert graph is not None
        thread = threading.Thread(target=lambda: results.append(doubled(torch.ones(2))))
        thread.start()
        thread.join()
        return [tensors[0].sin()]

    made = trace(replay, [torch.ones(3, requires_grad=True)], [], None)
    assert [t.tolist() for t in results] == [[2.0, 2.0]]
    torch.testing.assert_close(made(torch.ones(3))[0], torch.ones(3).sin())
