"""What torch does otherwise on a GPU, or not at all."""

from __future__ import annotations

import np_compile.shim as shim
import numpy as np
import pytest
import torch

pytestmark = pytest.mark.cuda

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4"]
SPECIAL = [np.nan, np.inf, -np.inf, 1e30, -1e30, 7e4, -7e4, 3e9, -3e9, 2.5, -2.5, 0.0]


def there(x: np.ndarray) -> shim.ndarray:
    return shim.from_tensor(torch.from_numpy(x).to("cuda"))


@pytest.mark.parametrize("source", ["f2", "f4", "f8"])
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_floats_that_integers_cannot_hold(source, dtype):
    with np.errstate(all="ignore"):
        x = np.array(SPECIAL, "f8").astype(source)
        want = np.array([v.astype(dtype) for v in x])  # of arrays, uint32 differ by their length
    np.testing.assert_array_equal(shim.to_numpy(there(x).astype(dtype)), want)


MOVED = {
    "roll": lambda np, x: np.roll(x, 2),
    "roll_along": lambda np, x: np.roll(x, 1, 1),
    "repeat": lambda np, x: np.repeat(x, 2, 0),
    "tile": lambda np, x: np.tile(x, (2, 1)),
    "flip": lambda np, x: np.flip(x),
    "take": lambda np, x: np.take(x, np.array([1, 0]), 1),
    "rot90": lambda np, x: np.rot90(x),
    "where": lambda np, x: np.where(x > 2, x, 3 * x),
    "concatenate": lambda np, x: np.concatenate([x, x[:1]]),
    "resize": lambda np, x: np.resize(x, (5, 2)),
    "tril": lambda np, x: np.tril(x),
    "diag": lambda np, x: np.diag(x),
    "pad": lambda np, x: np.pad(x, 1, mode="wrap"),
    "sort": lambda np, x: np.sort(x, 0),
    "unique": lambda np, x: np.unique(x),
    "mask": lambda np, x: x[x > 2],
    "store": lambda np, x: [y := x.copy(), y.__setitem__(np.array([0, 1]), 7), y][0],
    "sums": lambda np, x: (x.sum(), x.cumsum(), x.max(), x.mean(), x.argmin(), x.prod(0)),
    "arithmetic": lambda np, x: (x + x, x * 3, x // 2, x % 2, x**2, x << 1, ~x, x & 3, -x),
    "compare": lambda np, x: (x == 2, x > 3, np.maximum(x, 3), np.clip(x, 1, 4), np.sign(x)),
}


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "f2", "c8", "?"])
@pytest.mark.parametrize("name", MOVED)
def test_every_dtype(name, dtype):
    x = np.arange(12).reshape(3, 4).astype(dtype)
    call = MOVED[name]
    try:
        with np.errstate(all="ignore"):
            want = call(np, x)
    except TypeError:
        pytest.skip("NumPy refuses it")
    got = call(shim, there(x))
    for g, w in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, want)), strict=True):
        g = shim.to_numpy(g) if isinstance(g, shim.ndarray) else np.asarray(g)
        assert g.dtype == np.asarray(w).dtype
        np.testing.assert_allclose(g, w, rtol=1e-3)


def test_numpy_reads_a_copy_that_it_keeps():
    places = np.arange(1000)[::-1].copy()
    names = np.array([f"n{k}" for k in range(1000)])
    for _ in range(10):
        got = names[there(places)]
        assert got.tolist() == names[places].tolist()
    assert not hasattr(there(places), "__array_interface__")
