"""What torch does otherwise on a GPU, or not at all."""

from __future__ import annotations

import np_compile.shim as shim
import numpy as np
import pytest
import torch

import np_compile

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


NANS = np.array([np.nan, 3.0, np.copysign(np.nan, -1), -np.inf, 0.0, np.inf, -2.0, np.nan])
SORTS = {
    "sort": lambda np, x: np.sort(x),
    "argsort": lambda np, x: np.argsort(x, kind="stable"),
    "method": lambda np, x: [y := x.copy(), y.sort(), y][0],
    "partition": lambda np, x: np.sort(np.partition(x, 3)[:4]),
    "median": lambda np, x: (np.median(x), np.nanmedian(x), np.nanpercentile(x, [10, 60])),
    "unique": lambda np, x: np.unique(x, return_inverse=True, return_counts=True),
    "lexsort": lambda np, x: np.lexsort((x, np.sign(x))),
    "searchsorted": lambda np, x: np.searchsorted(np.sort(x), x),
    "complex": lambda np, x: np.sort(x[::-1] + 1j * x),
}


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", SORTS)
@pytest.mark.parametrize("backend", [None, "native", "eager"])
@pytest.mark.parametrize("count", [1, 40])
def test_nans_with_a_sign_come_last(name, dtype, backend, count):
    if (name, dtype) == ("complex", "f2"):
        pytest.skip("there are no such complex numbers")
    x = np.tile(NANS, count).astype(dtype)
    call = SORTS[name]
    with np.errstate(all="ignore"):
        want = call(np, x)
    if backend is None:
        got = call(shim, there(x))
    else:
        with torch.device("cuda"), np_compile.config.patch(plain="never"):
            got = np_compile.compile(lambda x: call(np, x), backend=backend)(x)
    got, want = ([*v] if isinstance(v, tuple) else [v] for v in (got, want))
    for a, b in zip(got, want, strict=True):
        a = a if isinstance(a, (np.ndarray, np.generic)) else shim.to_numpy(a)
        if np.iscomplexobj(b):
            a, b = a.view(b.real.dtype), b.view(b.real.dtype)
        np.testing.assert_allclose(a, b, 1e-3 if dtype == "f2" else 1e-6)


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_products_of_integers(dynamic):
    def products(a, b):
        return a @ b, np.inner(a, a), a.astype("u1") @ b.astype("u1"), a[0] @ b

    fast = np_compile.compile(products, dynamic=dynamic)
    rng = np.random.default_rng(3)
    for n in (3, 20, 150):
        a, b = (rng.integers(-(2**40), 2**40, s) for s in ((n, n + 1), (n + 1, n)))
        with torch.device("cuda"), np_compile.config.patch(plain="never"):
            got = fast(a, b)  # a fall back on NumPy warns
        for x, y in zip(got, products(a, b), strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("backend", ["native", "eager"])
def test_convolutions_of_single_precision(backend):
    rng = np.random.default_rng(3)
    x, k = (rng.standard_normal(n).astype("f4") for n in (3000, 100))
    fast = np_compile.compile(lambda x, k: (np.convolve(x, k), np.correlate(x, k)), backend=backend)
    with torch.device("cuda"), np_compile.config.patch(plain="never"):
        got = fast(x, k)
    x, k = x.astype(float), k.astype(float)
    for a, b in zip(got, (np.convolve(x, k), np.correlate(x, k)), strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, 0, 2e-6 * np.abs(b).max())
