"""Gradients flow through the functions: torch's numerical check, in float64."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile
from conformance import coverage

from .gradients import LATER, SYMMETRIC, TABLE
from .support import quiet, shim, torch


def square(seed=0, n=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n)) + n * np.eye(n)


A, B, V = square(), square(1), np.array([1.0, -2.0, 0.5])
# Options and forms beside those of `gradients.TABLE`.
CASES = {
    "matmul": (lambda x, y: shim.matmul(x, y), A, B),
    "dot": (lambda x, y: shim.dot(x, y), A, V),
    "vecdot": (lambda x, y: shim.vecdot(x, y), A, V),
    "einsum": (lambda x, y: shim.einsum("ij,kj->ik", x, y), A, B),
    "einsum_diagonal": (lambda x: shim.einsum("ii->i", x), A),
    "tensordot": (lambda x, y: shim.tensordot(x, y, 1), A, B),
    "kron": (lambda x, y: shim.kron(x, y), A, V),
    "cross": (lambda x, y: shim.cross(x, y), A, V),
    "trace": (lambda x: shim.trace(x), A),
    "det": (lambda x: shim.linalg.det(x), A),
    "slogdet": (lambda x: shim.linalg.slogdet(x).logabsdet, A),
    "inv": (lambda x: shim.linalg.inv(x), A),
    "solve": (lambda x, y: shim.linalg.solve(x, y), A, V),
    "cholesky": (lambda x: shim.linalg.cholesky(shim.matmul(x, shim.matrix_transpose(x))), A),
    "svdvals": (lambda x: shim.linalg.svdvals(x), A),
    "pinv": (lambda x: shim.linalg.pinv(x), A),
    "norm": (lambda x: shim.linalg.norm(x), A),
    "norm_3": (lambda x: shim.linalg.norm(x, 3, axis=0), A),
    "norm_nuc": (lambda x: shim.linalg.norm(x, "nuc"), A),
    "multi_dot": (lambda x, y: shim.linalg.multi_dot([x, y, x]), A, B),
    "concatenate": (lambda x, y: shim.concatenate([x, y], 1), A, B),
    "block": (lambda x, y: shim.block([[x, y], [y, x]]), A, B),
    "pad": (lambda x: shim.pad(x, ((1, 2), (0, 3)), "reflect"), A),
    "pad_ramp": (lambda x: shim.pad(x, 2, "linear_ramp"), A),
    "pad_mean": (lambda x: shim.pad(x, 1, "mean"), A),
    "repeat": (lambda x: shim.repeat(x, [1, 2, 0], 0), A),
    "tile": (lambda x: shim.tile(x, (2, 1)), A),
    "roll": (lambda x: shim.roll(x, 1, 0), A),
    "insert": (lambda x, y: shim.insert(x, [0, 2], y[:, :2], 1), A, B),
    "tril": (lambda x: shim.tril(x, 1), A),
    "diag": (lambda x: shim.diag(shim.diag(x, 1)), A),
    "flip": (lambda x: shim.flip(shim.reshape(shim.flip(x, 0), -1)), A),
    "rot90": (lambda x: shim.rot90(x), A),
    "vander": (lambda x: shim.vander(x), V),
    "linspace": (lambda x, y: shim.linspace(x, y, 4), A, V),
    "polyval": (lambda x, y: shim.polyval(x, y), V, A),
    "rfft": (lambda x: shim.fft.irfft(shim.fft.rfft(x), 3), A),
    "resize": (lambda x: shim.resize(x, (4, 5)), A),
    "stack": (lambda x, y: shim.stack([x, y], -1), A, B),
}


def _with_tensors(value, tensors):
    """The argument with tensors in place of its arrays of floats."""
    if isinstance(value, list):
        return [_with_tensors(v, tensors) for v in value]
    if not isinstance(value, np.ndarray):
        return value
    return shim.from_tensor(next(tensors)) if value.dtype.kind == "f" else shim.from_numpy(value)


def _arrays(value):
    if isinstance(value, (list, tuple)):
        return [a for v in value for a in _arrays(v)]
    return [value] if isinstance(value, np.ndarray) and value.dtype.kind == "f" else []


def _carrying(result):
    """The tensors of a result that carry gradients."""
    if isinstance(result, (list, tuple)):
        return [t for r in result for t in _carrying(r)]
    return [result.tensor] if type(result) is shim.ndarray and result.tensor.requires_grad else []


@pytest.mark.parametrize("name", TABLE)
def test_differentiable(name):
    if name in LATER and torch.__version__ < (2, 12):
        pytest.skip(f"torch {torch.__version__} has no derivative")
    function, arguments = shim.TABLE[name].function, TABLE[name]
    inputs = [torch.tensor(a, requires_grad=True) for a in _arrays(arguments)]

    def on_tensors(*tensors):
        if name in SYMMETRIC:
            tensors = tuple((t + t.T) / 2 for t in tensors)
        given = iter(tensors)
        return tuple(_carrying(function(*[_with_tensors(a, given) for a in arguments])))

    with quiet():
        assert on_tensors(*inputs)
        assert torch.autograd.gradcheck(on_tensors, inputs)


def test_all_that_carry_gradients_are_in_the_table():
    rows = {n: row for n, row in shim.TABLE.items() if not n.startswith("ndarray.")}
    rows = {n: row for n, row in rows.items() if "#" not in n}  # those are the user's
    carry = {n for n, row in rows.items() if "." not in n or n.split(".")[0] in ("linalg", "fft")}
    carry = {n for n in carry if coverage.carries(rows[n])}
    assert carry - set(TABLE) == set()


@pytest.mark.parametrize("name", CASES)
def test_gradcheck(name):
    f, *values = CASES[name]
    inputs = [torch.tensor(v, requires_grad=True) for v in values]

    def on_tensors(*tensors):
        return f(*map(shim.from_tensor, tensors)).tensor

    assert torch.autograd.gradcheck(on_tensors, inputs)


def test_gradient_of_float32_keeps_its_dtype():
    t = torch.tensor(A, dtype=torch.float32, requires_grad=True)
    shim.linalg.det(shim.from_tensor(t)).tensor.backward()
    assert t.grad.dtype is torch.float32
    np.testing.assert_allclose(t.grad, np.linalg.det(A) * np.linalg.inv(A).T, rtol=1e-4)


def values(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


# Where a function has a corner its gradient is the one of torch's own function.
CORNERS = {
    "logaddexp": (shim.logaddexp, torch.logaddexp, values(0, 1, 2, 5), values(0, 1, 3, -torch.inf)),
    "logaddexp2": (shim.logaddexp2, torch.logaddexp2, values(0, 1, 2), values(0, 1, 3)),
    "norm": (shim.linalg.norm, torch.linalg.norm, values(0, 0, 0)),
    "norm of rows": (
        lambda x: shim.linalg.norm(x, axis=1),
        lambda x: torch.linalg.norm(x, dim=1),
        values(0, 0, 1, 2).reshape(2, 2),
    ),
    "norm 3": (lambda x: shim.linalg.norm(x, 3), lambda x: torch.linalg.norm(x, 3), values(0, 0)),
    "norm 0.5": (
        lambda x: shim.linalg.norm(x, 0.5),
        lambda x: torch.linalg.norm(x, 0.5),
        values(0, 1, 2),
    ),
    "norm fro": (
        lambda x: shim.linalg.norm(x, "fro", axis=(0, 1)),
        lambda x: torch.linalg.norm(x, "fro"),
        values(0, 0, 0, 0).reshape(2, 2),
    ),
    "norm of complex numbers": (
        shim.linalg.norm,
        torch.linalg.norm,
        torch.zeros(2, dtype=torch.complex128),
    ),
    "std": (shim.std, lambda x: torch.std(x, correction=0), values(1, 1, 1)),
    "nanstd": (shim.nanstd, lambda x: torch.std(x, correction=0), values(1, 1, 1)),
    "var": (shim.var, lambda x: torch.var(x, correction=0), values(1, 1, 1)),
    "clip": (lambda x: shim.clip(x, 0, 1), lambda x: x.clamp(0, 1), values(0, 1, 0.5, -1, 2)),
    "maximum": (shim.maximum, torch.maximum, values(1, 2, 3), values(1, 3, 2)),
    "hypot": (shim.hypot, torch.hypot, values(0, 1, 0), values(0, 0, 1)),
    "absolute": (shim.absolute, torch.abs, values(0, -0.0, 1, -1)),
    "sinc": (shim.sinc, torch.sinc, values(0, 0.5, 1)),
    "cumprod": (shim.cumprod, lambda x: x.cumprod(0), values(1, 0, 2, 0, 3)),
    "prod": (shim.prod, torch.prod, values(1, 0, 2, 3)),
    "prod with two zeros": (shim.prod, torch.prod, values(1, 0, 0, 3)),
    "max": (shim.max, torch.amax, values(1, 3, 3)),
    "power": (shim.power, torch.pow, values(0, 0, 1, 2), values(1, 2, 0, -1)),
    "arctan2": (shim.arctan2, torch.atan2, values(0, 1, 0), values(0, 0, -1)),
    "minimum": (shim.minimum, torch.minimum, values(1, 2, 3), values(1, 3, 2)),
    "fmax": (shim.fmax, torch.fmax, values(1, 2, torch.nan), values(1, 3, 2)),
    "fmin": (shim.fmin, torch.fmin, values(1, 2, torch.nan), values(1, 3, 2)),
    "min": (shim.min, torch.amin, values(1, 1, 3)),
    "max of rows": (
        lambda x: shim.max(x, axis=1),
        lambda x: torch.amax(x, 1),
        values(1, 3, 3, 2, 2, 2).reshape(2, 3),
    ),
    "nanmax": (shim.nanmax, torch.amax, values(1, 3, 3)),
    "sort": (shim.sort, lambda x: torch.sort(x, stable=True).values, values(2, 1, 2, 1)),
    "sqrt": (shim.sqrt, torch.sqrt, values(0, 1)),
    "sign": (shim.sign, torch.sign, values(0, -2)),
    "arccos": (shim.arccos, torch.acos, values(1, -1, 0)),
    "reciprocal": (shim.reciprocal, torch.reciprocal, values(0, 2)),
    "log": (shim.log, torch.log, values(0, 2)),
    "divide": (shim.divide, torch.div, values(0, 1, 0), values(1, 0, 0)),
    "copysign": (shim.copysign, torch.copysign, values(0, 1, -1), values(1, -0.0, 2)),
    "remainder": (shim.remainder, torch.remainder, values(3, 5, -3), values(3, -2, 2)),
    "absolute of complex numbers": (
        shim.absolute,
        torch.abs,
        torch.tensor([0, 1j, 1 + 1j], dtype=torch.complex128),
    ),
    "where": (
        lambda x: shim.where(x > 0, x, 0.0),
        lambda x: torch.where(x > 0, x, 0.0),
        values(0, 1, -1),
    ),
}


@pytest.mark.parametrize("name", CORNERS)
def test_gradients_at_corners(name):
    ours, theirs, *given = CORNERS[name]

    def gradients(f):
        tensors = [t.clone().requires_grad_() for t in given]
        result = f(*tensors)
        return torch.autograd.grad(result.sum(), tensors)

    got = gradients(lambda *tensors: ours(*map(shim.from_tensor, tensors)).tensor)
    for g, e in zip(got, gradients(theirs), strict=True):
        torch.testing.assert_close(g, e, equal_nan=True)


def test_the_fraction_of_modf_has_a_gradient_at_integers():
    x = torch.tensor([1.0, 2.5, -3.0, -0.25, 0.0], requires_grad=True)
    for backend in ("eager", "native"):
        f = np_compile.compile(np_compile.wrap_numpy(lambda x: np.modf(x)[0]), backend=backend)
        (grad,) = torch.autograd.grad(f(x).sum(), x)
        assert grad.tolist() == [1.0] * 5
