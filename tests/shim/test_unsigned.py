"""uint64 on int64 bits, and casts between all dtypes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from np_compile.shim import _unsigned
from np_compile.shim._dtypes import TO_TORCH

from .support import ALL, quiet, sample

EDGES = [0, 1, 2, 3, 7, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]


def _bits(values):
    return torch.from_numpy(np.array(values, np.uint64).view(np.int64))


def _values(t):
    return [int(v) for v in t.numpy().view(np.uint64)]


def _check(a, b):
    x, y = _bits(a), _bits(b)
    assert _unsigned.less(x, y).tolist() == [p < q for p, q in zip(a, b, strict=True)]
    pairs = list(zip(a, b, strict=True))
    assert _values(_unsigned.divide(x, y)) == [p // q if q else 0 for p, q in pairs]
    assert _values(_unsigned.remainder(x, y)) == [p % q if q else 0 for p, q in pairs]
    assert _values(_unsigned.gcd(x, y)) == [
        int(np.gcd(np.uint64(p), np.uint64(q))) for p, q in pairs
    ]
    shifts = [q % 80 for q in b]
    assert _values(_unsigned.shift_right(x, _bits(shifts))) == [
        p >> q for p, q in zip(a, shifts, strict=True)
    ]
    assert _unsigned.popcount(x).tolist() == [p.bit_count() for p in a]


def test_edges():
    _check([p for p in EDGES for _ in EDGES], [q for _ in EDGES for q in EDGES])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 2**64 - 1)] * 2), min_size=1, max_size=8))
def test_any_values(pairs):
    _check([p for p, _ in pairs], [q for _, q in pairs])


@pytest.mark.parametrize("dtype", ["H", "I", "L"])
def test_round_trips(dtype):
    x = sample(dtype, (5, 3))
    t = torch.from_numpy(x)
    d = TO_TORCH[x.dtype]
    assert (_unsigned.from_signed(_unsigned.to_signed(t), d).numpy() == x).all()
    assert (_unsigned.from_order_key(_unsigned.order_key(t), d).numpy() == x).all()
    order = np.argsort(x.ravel(), kind="stable")
    assert (torch.argsort(_unsigned.order_key(t).ravel(), stable=True).numpy() == order).all()
    assert (_unsigned.flip(t, (0, 1)).numpy() == x[::-1, ::-1]).all()
    _unsigned.bits(t)[0, 0] = 5
    assert t[0, 0].item() == 5


@pytest.mark.parametrize("source", ALL)
def test_casts(source):
    x = sample(source, (20,))
    if x.dtype.kind in "fc":
        x = x[np.isfinite(x)]
        x = np.clip(x.real, 0, 100).astype(source)
    for target in ALL:
        with quiet():
            expected = x.astype(target)
        got = _unsigned.cast(torch.from_numpy(x), TO_TORCH[np.dtype(target)]).numpy()
        np.testing.assert_array_equal(got, expected, err_msg=f"{source} -> {target}")
