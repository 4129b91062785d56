"""The capture tests' programs, run by the native back end."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import np_compile

from ..capture.test_programs import PROGRAMS
from ..support import check


@pytest.mark.parametrize(
    ("f", "args", "options"),
    [
        p if k % 3 else pytest.param(*p.values, id=p.id, marks=pytest.mark.thorough)
        for k, p in enumerate(PROGRAMS)
    ],
)
def test_program(f, args, options):
    check(f, *args, **{"rtol": 1e-9, **options, "backend": "native"})


SCALED = [
    lambda x: np.dot(x, -1.0), lambda x: np.dot(-1, x), lambda x: x.dot(np.float32(-1)),
    lambda x: np.inner(x, -1.0), lambda x: np.dot(x[:1], -1.0), lambda x: np.dot(x[0], -1),
    lambda x: x[:, None] @ np.full((1, 1), -1.0), lambda x: np.vdot(x[:1], np.full(1, -1.0)),
    lambda x: np.tensordot(x, np.full(1, -1.0), 0), lambda x: np.einsum("i,->i", x, -1.0),
    lambda x: np.outer(x, -1.0), lambda x: (x * -1)[:1].sum(), lambda x: (-x[:, None]).sum(1),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "c16"])
@pytest.mark.parametrize("backend", ["eager", "native"])
def test_signs_of_zeros_of_products(backend, dtype, recorded):
    """BLAS adds to zeros, so that 0 * -1 is a positive zero in a product of several elements."""
    x = np.array([0.0, -0.0, 1.0, 2.0], dtype)
    with np_compile.config.patch(plain="never"):
        # Of cuBLAS, to which the back end eager leaves it, a zero may be negative.
        by_cublas = backend == "eager" and torch.get_default_device().type == "cuda"
        for f in SCALED:
            got, want = np.asarray(np_compile.compile(f, backend=backend)(x)), np.asarray(f(x))
            assert got.dtype == want.dtype
            if by_cublas:
                got, want = got + 0.0, want + 0.0
            assert repr(got.tolist()) == repr(want.tolist())
