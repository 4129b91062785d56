"""Shapes found without data are those of torch's kernels, strides included."""

from __future__ import annotations

import random

import pytest
import torch

from np_compile.lowering.meta import Shapes

_aten = torch.ops.aten
TRANSFORMS = [
    (_aten._fft_c2c.default, torch.complex128, lambda n: True),
    (_aten._fft_r2c.default, torch.float64, lambda n: True),
    (_aten._fft_r2c.default, torch.float32, lambda n: False),
    (_aten._fft_c2r.default, torch.complex64, lambda n: max(1, 2 * n - 2)),
]


@pytest.mark.parametrize(("operator", "dtype", "last"), TRANSFORMS)
def test_transforms_lay_their_results_out_as_torch_does(operator, dtype, last):
    draw = random.Random(0)
    for _ in range(300):
        rank = draw.randint(1, 4)
        order = draw.sample(range(rank), rank)
        laid_out = torch.zeros([draw.randint(1, 5) for _ in order], dtype=dtype)
        t = laid_out.permute(order)[:: draw.choice((1, 2))]
        axes = draw.sample(range(rank), draw.randint(1, min(rank, 3)))
        args = axes, 0, last(t.shape[axes[-1]])
        want = operator(t, *args)
        with Shapes():
            got = operator(
                torch.empty_strided(t.shape, t.stride(), dtype=dtype, device="meta"), *args
            )
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        steps = [
            (g, w) for g, w, n in zip(got.stride(), want.stride(), got.shape, strict=True) if n > 1
        ]
        assert all(g == w for g, w in steps), (t.shape, t.stride(), args)
