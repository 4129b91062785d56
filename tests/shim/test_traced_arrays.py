"""Creation, views, joins and products under tracing: fake tensors in, the eager answer out."""

from __future__ import annotations

import numpy as np
import pytest
from torch.fx.experimental.proxy_tensor import make_fx

from .support import shim, torch

CASES = {
    "flip": lambda x: shim.reshape(shim.flip(x), (9,)),
    "rot90": lambda x: shim.rot90(x),
    "concatenate": lambda x: shim.concatenate([x, x], 1),
    "append": lambda x: shim.append(x, [1.0]),
    "block": lambda x: shim.block([[x, x], [x, 1 + x]]),
    "pad_reflect": lambda x: shim.pad(x, 2, "reflect"),
    "pad_constant": lambda x: shim.pad(x, 2, constant_values=3),
    "pad_ramp": lambda x: shim.pad(x, 2, "linear_ramp"),
    "pad_ramp_to_values": lambda x: shim.pad(x, 2, "linear_ramp", end_values=((1, 2), (3, 4.5))),
    "eye": lambda x: x + shim.eye(3),
    "arange": lambda x: x * shim.arange(3.0),
    "arange_uint16": lambda x: shim.arange(5, dtype="u2"),
    "linspace": lambda x: x + shim.linspace(0, 1, 3),
    "linspace_of_arrays": lambda x: shim.linspace(x[0], x[1], 4),
    "logspace": lambda x: shim.logspace(0, 1, 4),
    "geomspace": lambda x: shim.geomspace(1, 10, 4),
    "array": lambda x: x + shim.array([1, 2, 3]),
    "full": lambda x: x + shim.full((3,), 2.5),
    "full_of_uint64": lambda x: shim.full(2, 2**63),
    "full_like": lambda x: shim.full_like(x, 7),
    "indices": lambda x: x + shim.indices((3, 3))[0],
    "meshgrid": lambda x: shim.meshgrid(x[0], x[1])[0],
    "vander": lambda x: shim.vander(x[0]),
    "diag": lambda x: shim.diag(shim.diag(x[::-1])),
    "fill_diagonal": lambda x: _filled(shim.copy(x)),
    "tril": lambda x: shim.tril(x),
    "tril_indices": lambda x: x[shim.tril_indices(3)],
    "repeat": lambda x: shim.repeat(x, [1, 2, 0], 0),
    "insert": lambda x: shim.insert(x, 1, 5.0, axis=1),
    "delete": lambda x: shim.delete(x, [0, 2], 1),
    "tile": lambda x: shim.tile(x, 2),
    "roll": lambda x: shim.roll(x, 1, 0),
    "ix": lambda x: x[shim.ix_([0, 1], [1, 2])],
    "unravel_index": lambda x: shim.unravel_index(shim.arange(4), (2, 2))[0],
    "ravel_multi_index": lambda x: shim.ravel_multi_index((shim.arange(3),) * 2, (3, 3)),
    "broadcast_arrays": lambda x: shim.broadcast_arrays(x, x[0])[1],
    "matmul": lambda x: x @ x,
    "einsum": lambda x: shim.einsum("ij,jk->ik", x, x),
    "kron": lambda x: shim.kron(x, x),
    "cross": lambda x: shim.cross(x, x[::-1]),
    "polyval": lambda x: shim.polyval([1, 2, 3], x),
    "det": lambda x: shim.linalg.det(x),
    "qr": lambda x: shim.linalg.qr(x).R,
    "norm": lambda x: shim.linalg.norm(x),
    "spectral_norm": lambda x: shim.linalg.norm(x, 2),
    "multi_dot": lambda x: shim.linalg.multi_dot([x, x, x]),
    "fft": lambda x: shim.fft.fft(x),
    "irfft": lambda x: shim.fft.irfft(x),
    "fftfreq": lambda x: shim.fft.fftfreq(4, 0.5),
}


def _filled(y):
    shim.fill_diagonal(y, 5.0)
    return y


@pytest.mark.parametrize("name", CASES)
def test_traced(name):
    t = torch.tensor(np.random.default_rng(0).normal(size=(3, 3)) + 3 * np.eye(3))

    def program(t):
        return shim.as_array(CASES[name](shim.from_tensor(t))).tensor

    eager = program(t)
    traced = make_fx(program, tracing_mode="fake")(t)(t)
    assert (traced.dtype, traced.shape) == (eager.dtype, eager.shape)
    np.testing.assert_allclose(traced.numpy(), eager.numpy(), rtol=1e-12)
    with torch.device("meta"):
        meta = program(t.to("meta"))
    assert (meta.device.type, meta.dtype, meta.shape) == ("meta", eager.dtype, eager.shape)
