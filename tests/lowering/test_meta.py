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
        assert _steps(got) == _steps(want), (t.shape, t.stride(), args)


def _steps(t):
    """The strides that matter."""
    return [step for step, n in zip(t.stride(), t.shape, strict=True) if n > 1]


def _like(t, shape):
    return torch.zeros(shape, dtype=t.dtype, device=t.device)


OTHERS = {
    "clone": lambda t: _aten.clone.default(t),
    "clone to C order": lambda t: _aten.clone.default(t, memory_format=torch.contiguous_format),
    "frexp": lambda t: _aten.frexp.Tensor(t),
    "masked_scatter": lambda t: _aten.masked_scatter.default(
        t, _like(t, t.shape[1:]).to(torch.bool), _like(t, t.shape)
    ),
    "masked_scatter of an array that is broadcast": lambda t: _aten.masked_scatter.default(
        t[:1], _like(t, t.shape).to(torch.bool), _like(t, t.shape)
    ),
    "sort": lambda t: _aten.sort.default(t, -1),
    "sort along the first axis": lambda t: _aten.sort.default(t, 0, True),
    "a number added": lambda t: _aten.add.Scalar(t, 2.0, 3),
    "a number subtracted": lambda t: _aten.sub.Scalar(t, 2),
    "division by a number": lambda t: _aten.div.Scalar(t, 2),
    "division of integers": lambda t: _aten.div.Scalar(t.to(torch.int32), 2),
    "mean": lambda t: _aten.mean.default(t),
    "mean of another dtype": lambda t: _aten.mean.default(t, dtype=torch.float64),
    "relu": lambda t: _aten.relu.default(t),
    "searchsorted": lambda t: _aten.searchsorted.Tensor(_like(t, (5,)), t, right=True),
    "searchsorted in 32 bits": lambda t: _aten.searchsorted.Tensor(
        _like(t, (5,)), t, out_int32=True
    ),
    "convolution": lambda t: _aten.convolution.default(
        _like(t, (2, 1, 9)), _like(t, (3, 1, 2)), None, [2], [1], [3], False, [0], 1
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_operators_lay_their_results_out_as_torch_does(name):
    draw = random.Random(1)
    for _ in range(100):
        order = draw.sample(range(3), 3)
        t = torch.zeros([draw.randint(1, 4) for _ in order]).permute(order)
        t = draw.choice((t, t[::2], t[:, :1].expand(-1, 3, -1), t[0].unsqueeze(1)))
        given = torch.empty_strided(t.shape, t.stride(), device="meta")
        want = OTHERS[name](t)
        with Shapes():
            got = OTHERS[name](given)
        pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
        for a, b in pairs:
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            assert _steps(a) == _steps(b), t.stride()
