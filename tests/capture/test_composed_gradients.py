"""Gradients of composed programs under wrap_numpy, against the same programs written in torch: data
with ties and zeros."""

from __future__ import annotations

import linecache
from functools import partial
from itertools import count

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import np_compile

# Expressions of arrays of as many rows as columns, 3 or more: in NumPy, and in torch.
PAIRS = (
    ("np.sin(X) * Y", "torch.sin(X) * Y"),
    ("np.tanh(X - Y)", "torch.tanh(X - Y)"),
    ("np.abs(X) + Y", "torch.abs(X) + Y"),
    ("np.exp(-np.abs(X))", "torch.exp(-torch.abs(X))"),
    ("X / (1 + Y * Y)", "X / (1 + Y * Y)"),
    ("X @ Y / 4", "X @ Y / 4"),
    ("X.T - Y", "X.T - Y"),
    ("np.maximum(X, Y)", "torch.maximum(X, Y)"),
    ("np.minimum(X, Y)", "torch.minimum(X, Y)"),
    ("np.fmax(X, Y)", "torch.fmax(X, Y)"),
    ("np.maximum(X, 0)", "torch.maximum(X, torch.zeros((), dtype=X.dtype))"),
    ("np.clip(X, -0.5, 1)", "torch.clamp(X, -0.5, 1)"),
    ("np.where(X > Y, X, Y / 2)", "torch.where(X > Y, X, Y / 2)"),
    ("np.hypot(X, Y)", "torch.hypot(X, Y)"),
    ("np.arctan2(X, 3 + Y)", "torch.atan2(X, 3 + Y)"),
    ("np.sqrt(X * X + 1)", "torch.sqrt(X * X + 1)"),
    ("np.logaddexp(X, Y)", "torch.logaddexp(X, Y)"),
    ("X - np.max(X, axis=1, keepdims=True)", "X - torch.amax(X, 1, keepdim=True)"),
    ("X - X.min(axis=0)", "X - torch.amin(X, 0)"),
    ("X - np.mean(Y)", "X - torch.mean(Y)"),
    ("Y + np.std(X, axis=0)", "Y + torch.std(X, 0, correction=0)"),
    ("Y + np.prod(X, axis=1)", "Y + torch.prod(X, 1)"),
    ("Y + np.linalg.norm(X, axis=1)", "Y + torch.linalg.norm(X, dim=1)"),
    ("np.cumsum(X, axis=0)", "torch.cumsum(X, 0)"),
    ("np.cumprod(X, axis=1)", "torch.cumprod(X, 1)"),
    ("np.sort(X, axis=1)", "torch.sort(X, dim=1, stable=True).values"),
    ("np.sinc(X)", "torch.sinc(X)"),
    ("np.fmod(X, 0.75) + Y", "torch.fmod(X, 0.75) + Y"),
    ("np.sign(X) * Y", "torch.sign(X) * Y"),
    ("X[::-1] + Y", "torch.flip(X, (0,)) + Y"),
    ("X[np.arange(len(X)) // 2]", "X[torch.arange(len(X)) // 2]"),
    ("X[:, 1:2] * Y", "X[:, 1:2] * Y"),
    ("np.concatenate([X[1:], Y[:1]])", "torch.cat([X[1:], Y[:1]])"),
    ("np.roll(X, 1, axis=1)", "torch.roll(X, 1, 1)"),
    ("np.outer(X[0], Y[:, 1])", "torch.outer(X[0], Y[:, 1])"),
    ("np.einsum('ij,kj->ik', X, Y)", "torch.einsum('ij,kj->ik', X, Y)"),
    ("np.diag(X[0]) + Y", "torch.diag(X[0]) + Y"),
    ("np.tril(X) + Y", "torch.tril(X) + Y"),
)
# Statements that write to a new array Z, the copy of X.
WRITES = (
    ("Z[0] = 2 * Y[1]",) * 2,
    ("Z[1:] *= Y[:-1]",) * 2,
    ("Z[Y > 0] *= 3", "Z = torch.where(Y > 0, Z * 3, Z)"),
    ("Z[X == 0] = 1", "Z = Z.masked_fill(X == 0, 1)"),
    ("np.add(Z, Y, out=Z)", "Z += Y"),
    ("np.add.at(Z, [0, 0], Y[2])", "Z.index_add_(0, torch.tensor([0, 0]), Y[[2, 2]])"),
    ("Z.T[0] -= Y[:, 1]", "Z[:, 0] -= Y[:, 1]"),
)
SIZES = {"eager": (3, 5, 4, 9), "native": (3, 8, 5, 40)}  # from the second on it is one program
_places = count()


def _function(lines, result):
    """f(a, b) of such lines, with a file that linecache knows."""
    name = f"<composed {next(_places)}>"
    text = "\n    ".join(["def f(a, b):", *lines, f"return {result}"]) + "\n"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    scope = {"np": np, "torch": torch}
    exec(compile(text, name, "exec"), scope)
    return scope["f"]


@st.composite
def programs(draw):
    """The lines of a program, in NumPy and in torch, and the name of the last value."""
    names, ours, theirs = ["a", "b"], [], []
    for k in range(draw(st.integers(1, 5))):
        x, y = (draw(st.sampled_from(names[-3:])) for _ in range(2))
        into = draw(st.integers(0, 3)) == 0
        pair = draw(st.sampled_from(WRITES if into else PAIRS))
        for lines, text, copied in ((ours, pair[0], ".copy()"), (theirs, pair[1], ".clone()")):
            for letter, name in zip("XYZ", (x, y, f"v{k}"), strict=True):
                text = text.replace(letter, name)
            lines += [f"v{k} = {x}{copied}", text] if into else [f"v{k} = {text}"]
        names.append(f"v{k}")
    return ours, theirs, names[-1]


def _gradients(f, arrays):
    given = [torch.tensor(x, requires_grad=True) for x in arrays]
    result = f(*given)
    weights = (torch.arange(result.numel()) % 9 - 3.0).reshape(result.shape)
    if not result.requires_grad:
        return [result]
    return [result, *torch.autograd.grad((result * weights).sum(), given, allow_unused=True)]


_halves = st.lists(st.integers(-3, 3), min_size=18, max_size=18).map(
    lambda xs: list(np.array(xs, float).reshape(2, 3, 3) / 2)
)


def _compare(program, arrays, compiled, sizes=(3,)):
    ours, theirs, result = program
    plain = _function(theirs, result)
    fast = compiled(np_compile.wrap_numpy(_function(ours, result)))
    for n in sizes:
        given = [np.resize(x, (n, n)) for x in arrays]
        want, got = _gradients(plain, given), _gradients(fast, given)
        assert len(got) == len(want), ours
        for g, w in zip(got, want, strict=True):
            g, w = (torch.zeros(n, n).double() if t is None else t for t in (g, w))
            torch.testing.assert_close(g, w, equal_nan=True, msg=lambda m, n=n: f"{n}: {m}\n{ours}")


@given(programs(), _halves)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_without_a_compiler(program, arrays):
    _compare(program, arrays, lambda f: f)


@pytest.mark.parametrize(
    ("backend", "examples"),
    [("eager", 8), pytest.param("native", 60, marks=pytest.mark.thorough)],
)
def test_compiled(backend, examples):
    @given(programs(), _halves)
    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    def agree(program, arrays):
        with np_compile.config.patch(compile_in="call", plain="never"):
            compiled = partial(np_compile.compile, backend=backend)
            _compare(program, arrays, compiled, SIZES[backend])

    agree()
