"""numpy.linalg on tensors against NumPy: values, dtypes, result classes, errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from .support import assert_matches, assert_same, from_shim, quiet, shim, to_shim

TIGHT = {"d": 1e-9, "f": 2e-5, "D": 1e-9, "F": 2e-5, "l": 1e-9, "B": 1e-9, "?": 1e-9, "L": 1e-9}


def matrix(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    a = (
        rng.normal(size=shape) + 1j * rng.normal(size=shape)
        if dtype in "FD"
        else rng.normal(size=shape)
    )
    if dtype in "lBL?":
        a = rng.integers(0, 2 if dtype == "?" else 9, shape)
    if len(shape) >= 2 and shape[-1] == shape[-2]:
        a = a + 4 * np.eye(shape[-1])
    return a.astype(dtype)


def positive(dtype, shape, seed=0):
    a = matrix(dtype, shape, seed)
    return (a @ a.swapaxes(-1, -2).conj() + np.eye(shape[-1])).astype(dtype)


DTYPES = "fdFDlB?L"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(3, 3), (2, 3, 3), (0, 0), (2, 0, 0), (1, 1), (0, 2, 2)], ids=str
)
def test_square(dtype, shape):
    a = matrix(dtype, shape)
    for name in ("det", "slogdet"):
        assert_matches(f"linalg.{name}", a, rtol=TIGHT[dtype])
    if dtype == "?":
        return
    assert_matches("linalg.inv", a, rtol=TIGHT[dtype], meta=False)
    for n in (0, 1, 2, 3, 7, -1, -2):
        if n < 2 or shape[-1]:
            assert_matches("linalg.matrix_power", a, n, rtol=TIGHT[dtype], meta=False)
    b = matrix(dtype, (*shape[:-1], 2), 1)
    assert_matches("linalg.solve", a, b, rtol=TIGHT[dtype], meta=False)
    assert_matches("linalg.solve", a, matrix("d", shape[-1:], 1), rtol=TIGHT[dtype], meta=False)
    p = positive(dtype, shape)
    for upper in (False, True):
        assert_matches("linalg.cholesky", p, upper=upper, rtol=TIGHT[dtype], meta=False)
    for uplo in "LU":
        assert_matches("linalg.eigvalsh", p, uplo, rtol=TIGHT[dtype], meta=False)


def test_the_sign_of_a_determinant_that_is_nan_is_not_zero():
    a = np.full((3, 3), np.nan)
    one, none = np.eye(3), np.ones((3, 3))
    for x in (a, np.stack([one, a, none]), np.diag([1, np.nan, 2]), np.full((1, 1), np.nan, "f")):
        assert_matches("linalg.slogdet", x)
    x = np.full((1, 1), np.inf)
    assert_matches("linalg.slogdet", np.stack([x, -x, 0 * np.ones((1, 1))]))


@pytest.mark.parametrize("dtype", "fdFDl")
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 4, 3), (3, 3), (0, 3), (2, 0, 3)], ids=str)
def test_factors(dtype, shape):
    a = matrix(dtype, shape)
    rtol = TIGHT[dtype]
    for mode in ("reduced", "complete", "r", "raw"):
        got, expected = shim.linalg.qr(to_shim(a), mode), np.linalg.qr(a, mode)
        assert type(got).__name__ == type(expected).__name__ or mode == "r"
        assert_same(got, expected, rtol * 10)
    for full in (True, False):
        got = shim.linalg.svd(to_shim(a), full)
        expected = np.linalg.svd(a, full)
        assert type(got) is type(expected)
        assert_same(got.S, expected.S, rtol * 10)
        for g, e in zip(got, expected, strict=True):
            assert (g.shape, g.dtype) == (e.shape, e.dtype)
        k = min(shape[-2:])
        u, s, vh = (shim.to_numpy(g) for g in got)
        np.testing.assert_allclose(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a, atol=1e-4)
    assert_matches("linalg.svdvals", a, rtol=rtol * 10, meta=False)
    assert_matches("linalg.svd", a, compute_uv=False, rtol=rtol * 10, meta=False)
    if 0 not in shape:
        assert_matches("linalg.matrix_rank", a, meta=False)
        assert_matches("linalg.pinv", a, rtol=rtol * 10, meta=False)
        assert_matches("linalg.pinv", a, 1e-3, rtol=rtol * 10, meta=False)
        assert_matches("linalg.pinv", a, rtol=1e-5, meta=False) if dtype == "d" else None
        assert_matches("linalg.cond", a, rtol=rtol * 10, meta=False)


def test_eigen():
    for dtype in "fdFD":
        for shape in ((3, 3), (2, 4, 4), (0, 0)):
            for f in ("eig", "eigh"):
                a = matrix(dtype, shape) if f == "eig" else positive(dtype, shape)
                got, expected = getattr(shim.linalg, f)(to_shim(a)), getattr(np.linalg, f)(a)
                assert type(got) is type(expected)
                for g, e in zip(got, expected, strict=True):
                    assert (g.shape, g.dtype) == (e.shape, e.dtype)
                w, v = map(shim.to_numpy, got)
                np.testing.assert_allclose(a @ v, v * w[..., None, :], atol=1e-4)
            order = np.sort_complex(
                shim.to_numpy(shim.linalg.eigvals(to_shim(matrix(dtype, shape))))
            )
            expected = np.sort_complex(np.linalg.eigvals(matrix(dtype, shape)))
            np.testing.assert_allclose(order, expected, rtol=1e-4)
    assert shim.linalg.eigvals(to_shim(np.array([[0.0, 1], [-1, 0]]))).dtype == complex
    eye = np.eye(2, dtype="f")  # complex from NumPy 2.5 on
    assert shim.linalg.eigvals(to_shim(eye)).dtype == np.linalg.eigvals(eye).dtype
    h = positive("D", (3, 3))
    s = shim.linalg.svd(to_shim(h), hermitian=True)
    np.testing.assert_allclose(
        shim.to_numpy(s.U) * shim.to_numpy(s.S) @ shim.to_numpy(s.Vh), h, atol=1e-9
    )
    assert_matches("linalg.matrix_rank", h, hermitian=True, meta=False)
    assert_matches("linalg.pinv", h, hermitian=True, rtol=1e-9, meta=False)


def test_least_squares():
    for dtype, (m, n), rhs in itertools.product("fdD", ((5, 3), (3, 5), (3, 3)), ((), (2,))):
        a, b = matrix(dtype, (m, n)), matrix(dtype, (m, *rhs), 1)
        assert_matches("linalg.lstsq", a, b, rtol=TIGHT[dtype] * 10, meta=False)
    a = np.array([[1.0, 2], [2, 4], [3, 6]])
    assert_matches("linalg.lstsq", a, np.ones(3), rtol=1e-9, meta=False)
    assert_matches("linalg.lstsq", a, np.ones(2), meta=False)
    assert_matches("linalg.lstsq", a[None], np.ones(3), meta=False)


ORDS = [None, "fro", "nuc", np.inf, -np.inf, 0, 1, -1, 2, -2, 3, 0.5, "f", "x"]


@pytest.mark.parametrize("ord", ORDS, ids=str)
def test_norms(ord):
    for dtype in "fdFDlBe":
        for a in (matrix(dtype, (4,)), matrix(dtype, (3, 4)), matrix(dtype, (2, 3, 4))):
            rtol = 5e-3 if dtype == "e" else TIGHT[dtype]
            if dtype == "e" and ord in ("nuc", 2, -2, 3, 0.5):
                continue
            assert_matches("linalg.norm", a, ord, rtol=rtol)
            for axis in (0, -1, (0, 1), (-1, 0), (0, 0), (0, 1, 2), 5, "a", (0, 7)):
                for keepdims in (False, True):
                    assert_matches("linalg.norm", a, ord, axis, keepdims, rtol=rtol)
            assert_matches("linalg.vector_norm", a, ord=ord, rtol=rtol)
            assert_matches("linalg.vector_norm", a, ord=ord, axis=(0,), keepdims=True, rtol=rtol)
            assert_matches("linalg.vector_norm", a, ord=ord, axis=-1, rtol=rtol)
            if a.ndim > 1:
                assert_matches("linalg.vector_norm", a, ord=ord, axis=(1, 0), rtol=rtol)
                assert_matches("linalg.matrix_norm", a, ord=ord, keepdims=True, rtol=rtol)
    assert_matches("linalg.norm", np.zeros((0, 3)), ord)
    assert_matches("linalg.norm", 3.0, ord)
    if ord not in (3, 0.5, "f", "x", 0):
        for a in (
            matrix("d", (3, 3)),
            matrix("f", (2, 3, 3)),
            np.eye(2)[:, :1] * np.ones(2),
            np.full((2, 2), np.nan),
        ):
            assert_matches("linalg.cond", a, ord, rtol=1e-5, meta=False)


SQUARE = ["det", "slogdet", "inv", "cholesky", "eig", "eigh", "eigvals", "eigvalsh"]


def test_errors():
    for name in SQUARE:
        for a in (np.ones((2, 3)), np.ones(3), np.ones((2, 2), "e"), np.array(3.0)):
            assert_matches(f"linalg.{name}", a)
    for name in ("qr", "svd", "svdvals", "cond", "pinv"):
        assert_matches(f"linalg.{name}", np.ones(3))
    for name in ("inv", "tensorinv"):
        assert_matches(f"linalg.{name}", np.zeros((2, 2)), *((1,) if name == "tensorinv" else ()))
    assert_matches("linalg.cholesky", -np.eye(2))
    for name in ("eig", "eigvals"):
        assert_matches(f"linalg.{name}", np.array([[np.inf, 1], [1, 1]]))
    for args in ((np.zeros((2, 2)), np.ones(2)), (np.eye(2), np.ones(3)),
                 (np.eye(2), np.ones((3, 2))),
                 (np.ones((2, 3)), np.ones(2)), (np.eye(2), 3.0),
                 (np.ones((2, 2, 2)), np.ones((3, 2, 2)))):  # fmt: skip
        assert_matches("linalg.solve", *args)
    assert_matches("linalg.matrix_power", np.eye(2), 1.5)
    assert_matches("linalg.matrix_power", np.ones((2, 3)), 2)
    assert_matches("linalg.matrix_power", np.zeros((2, 2)), -1)
    assert_matches("linalg.qr", np.eye(2), "no")
    assert_matches("linalg.eigh", np.eye(2), "x")
    assert_matches("linalg.matrix_rank", np.eye(2), 1.0, rtol=None, meta=False)
    assert_matches(lambda m: m.linalg.matrix_rank(m.eye(2), 1.0, rtol=1.0))
    assert_matches(lambda m: m.linalg.pinv(m.eye(2), 1.0, rtol=1.0))
    assert_matches("linalg.matrix_rank", [0, 0], meta=False)
    assert_matches("linalg.matrix_rank", [1, 0], meta=False)
    assert_matches("linalg.cond", np.zeros((0, 2)))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        shim.linalg.inv(shim.zeros((2, 2)))


def test_tensors():
    a = matrix("d", (4, 6, 8, 3))
    assert_matches("linalg.tensorinv", a, rtol=1e-7, meta=False)
    assert_matches("linalg.tensorinv", matrix("d", (24, 8, 3)), 1, rtol=1e-7, meta=False)
    assert_matches("linalg.tensorinv", a, 0, meta=False)
    assert_matches(
        "linalg.tensorsolve", matrix("d", (2, 3, 6)), matrix("d", (2, 3)), rtol=1e-7, meta=False
    )
    assert_matches(
        "linalg.tensorsolve",
        matrix("d", (2, 6, 3)),
        matrix("d", (2, 3)),
        (1,),
        rtol=1e-7,
        meta=False,
    )
    assert_matches("linalg.tensorsolve", matrix("d", (2, 3, 5)), matrix("d", (2, 3)), meta=False)


def test_chains():
    sizes = [3, 5, 2, 7, 4]
    chain = [matrix("d", s, i) for i, s in enumerate(itertools.pairwise(sizes))]
    for n in (2, 3, 4):
        assert_matches("linalg.multi_dot", chain[:n])
        assert_matches("linalg.multi_dot", [np.ones(3), *chain[:n]])
        assert_matches("linalg.multi_dot", [*chain[:n], np.ones(sizes[n])])
        assert_matches("linalg.multi_dot", [np.ones(3), *chain[:n], np.ones(sizes[n])])
    assert_matches("linalg.multi_dot", chain[:1])
    assert_matches("linalg.multi_dot", [chain[0], np.ones((2, 2, 2)), chain[1]])
    assert_matches("linalg.multi_dot", [chain[0], chain[0], chain[0]])
    out = to_shim(np.zeros((3, 4)))
    assert shim.linalg.multi_dot([to_shim(c) for c in chain], out=out) is out
    assert_same(out, np.linalg.multi_dot(chain))


@given(st.integers(1, 5), st.integers(1, 5), st.sampled_from("fdFD"), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_any_matrix(m, n, dtype, seed):
    a = matrix(dtype, (m, n), seed)
    with quiet():
        assert_matches("linalg.svdvals", a, rtol=1e-4, meta=False)
        assert_matches("linalg.norm", a, rtol=1e-4)
        assert_matches("linalg.lstsq", a, matrix(dtype, (m,), seed), rtol=2e-3, meta=False)


@pytest.mark.parametrize("uplo", ["L", "U", "l", "u"])
@pytest.mark.parametrize("dtype", "fdFD")
def test_one_triangle_tells_a_symmetric_matrix(dtype, uplo):
    """The other one, of a matrix that is not symmetric, is not looked at."""
    a = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(dtype)
    if dtype in "FD":
        a.imag = np.random.default_rng(1).normal(size=a.shape)
    tight = 1e-4 if dtype in "fF" else 1e-10
    assert_matches("linalg.eigvalsh", a, uplo, rtol=tight, meta=False)
    assert_matches(lambda m, x: m.linalg.eigh(x, UPLO=uplo)[0], a, rtol=tight, meta=False)

    def rebuilt(m, x):
        values, vectors = m.linalg.eigh(x, uplo)
        return m.matmul(vectors * values[..., None, :], m.conj(m.matrix_transpose(vectors)))

    assert_matches(rebuilt, a, rtol=tight * 10, meta=False)


@pytest.mark.parametrize(
    "a", [np.diag([1.0, 0, -2]), np.zeros((3, 3)), -np.eye(3), np.ones((3, 3))]
)
def test_singular_values_of_hermitian_matrices(a):
    """Zero ones, negative ones and equal ones among the eigenvalues."""
    for m in (a, a * (1 + 0j), np.stack([a, a + np.eye(3)])):
        got = shim.linalg.svd(to_shim(m), hermitian=True)
        u, s, vh = (from_shim(v) for v in got)
        np.testing.assert_allclose(u @ (s[..., None] * vh), m, atol=1e-12)
        eye = np.broadcast_to(np.eye(3), m.shape)
        for side in (u, vh):
            np.testing.assert_allclose(side @ side.swapaxes(-1, -2).conj(), eye, atol=1e-12)
        assert_matches("linalg.svd", m, compute_uv=False, hermitian=True, rtol=1e-9, meta=False)


def test_the_first_power_of_a_matrix_is_itself():
    a = to_shim(np.arange(9.0).reshape(3, 3))
    assert shim.linalg.matrix_power(a, 1) is a
    assert shim.linalg.matrix_power(a, 2) is not a


@pytest.mark.parametrize("rcond", [-1, None, 0, 1e-3, 1e-20, 1.0, 2])
def test_the_rank_of_least_squares(rcond):
    for small in (0, 1e-17, 1.5e-16, 1e-15, 1e-4):
        a = np.diag([1.0, small, 0.5])
        want = np.linalg.lstsq(a, np.ones(3), rcond=rcond)
        got = shim.linalg.lstsq(to_shim(a), to_shim(np.ones(3)), rcond=rcond)
        assert int(from_shim(got[2])) == want[2], small


@pytest.mark.parametrize("dtype", "fD")
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)], ids=str)
def test_layout(dtype, shape):
    """By rows, as NumPy's: `ravel` is a view."""
    a = positive(dtype, shape)
    for name in ("inv", "cholesky", "qr", "svd", "eigh", "eig", "solve"):
        args = (a, a) if name == "solve" else (a,)
        for traced in (
            to_shim(args),
            tuple(shim.ndarray(torch.tensor(x, device="meta")) for x in args),
        ):
            if name in ("eig",) and traced[0].tensor.is_meta:
                continue  # whether it is real hangs on the data
            ours, theirs = getattr(shim.linalg, name)(*traced), getattr(np.linalg, name)(*args)
            ours, theirs = (x if isinstance(x, tuple) else (x,) for x in (ours, theirs))
            for x, y in zip(ours, theirs, strict=True):
                assert x.flags.c_contiguous == y.flags.c_contiguous, name
