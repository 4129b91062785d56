"""Graphs whose extents are `Size`s: what is known of their tensors, and such graphs of numbers."""

from __future__ import annotations

import torch

from np_compile.kernels.frontend.sizes import SizedTensor, numbered, sized
from np_compile.lowering.sized import SizedRecorder
from np_compile.size import Facts


def test_the_dtype_of_a_result_goes_by_axes():
    for shapes in (((), (3,)), ((3,), ()), ((), ()), ((2, 3), (3,))):
        dtypes = torch.float64, torch.float32
        pair = [torch.empty(s, dtype=d) for s, d in zip(shapes, dtypes, strict=True)]
        known = [SizedTensor.of(t, lambda n: n) for t in pair]
        assert torch.result_type(*known) is torch.result_type(*pair)


def test_the_layout_without_gaps():
    for t in (torch.empty(2, 3, 4), torch.empty(()), torch.empty(1, 3), torch.empty(4, 5).T):
        made = SizedTensor.of(t, lambda n: n)
        assert made.is_contiguous() == t.is_contiguous()
        assert made.contiguous().stride() == t.contiguous().stride()


def test_a_graph_of_sizes_as_one_of_numbers():
    facts = Facts()
    n = facts.symbol("n0", 6)
    recorder = SizedRecorder(facts)
    x = recorder.sized_input((n, 3), (3, 1), torch.float64)
    with recorder:
        y = (x.sum() / x.shape[0] + torch.zeros_like(x)).reshape(-1)
    graph = sized(recorder.finish([y]), facts)
    for k in (2, 5):
        module = torch.fx.GraphModule(torch.nn.Module(), numbered(graph, {"n0": k}))
        given = torch.arange(3.0 * k, dtype=torch.float64).reshape(k, 3)
        (found,) = module(given)
        torch.testing.assert_close(found, (given.sum() / k).expand(3 * k))
