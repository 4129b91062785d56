"""Which functions are compiled whole, by what they do to single elements and to large arrays."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile

from .support import check_call, refusals

X = np.random.default_rng(5).random((150, 150))


def local_maxima(x):
    for _ in range(4):
        x = x + np.roll(x, 1, 0)
    out = np.zeros_like(x)
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            if x[i, j] >= x[i, j + 1] and x[i, j] >= x[i, j - 1]:
                out[i, j] = x[i, j]
    return out


def corners(x):
    for _ in range(4):
        x = x + np.roll(x, 1, 0)
        x[0, 0] = x[0, 1] if x[0, 1] > 1 else 0.0
    return x


@pytest.mark.parametrize(("f", "whole"), [(local_maxima, True), (corners, False)])
def test_work_on_elements_is_weighed_against_large_arrays(f, whole):
    fast = np_compile.compile(f)
    with np_compile.config.patch(compile_in="call", loops="auto"):
        check_call(fast, f, (X,), 0)
    assert fast._reading.is_compiled == whole
    assert any("large" in why for why in refusals(fast)) != whole
