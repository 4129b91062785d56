"""numpy.random through the shim: NumPy's own numbers, as shim arrays."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from .support import assert_same, from_shim, shim, to_shim, torch

DRAWS = [
    ("rand", (3, 2)), ("randn", (4,)), ("random", ((2, 3),)), ("randint", (0, 9, (4,))),
    ("normal", (0.0, 2.0, 5)),
    ("uniform", (0.0, 1.0, (2, 2))), ("choice", (5, 3)), ("permutation", (6,)),
    ("exponential", (1.0, 3)),
    ("rand", ()), ("randint", (9,)), ("standard_normal", (3,)), ("beta", (1.0, 2.0, 3)),
    ("binomial", (5, 0.5, 3)),
    ("random_sample", (3,)), ("multivariate_normal", ([0.0, 0], [[1.0, 0], [0, 1]], 3)),
    ("bytes", (4,)),
]  # fmt: skip


@pytest.mark.parametrize("draw", DRAWS, ids=str)
def test_same_stream(draw):
    name, args = draw
    np.random.seed(7)
    expected = [getattr(np.random, name)(*args) for _ in range(2)]
    shim.random.seed(7)
    got = [getattr(shim.random, name)(*args) for _ in range(2)]
    assert_same(got, expected)
    if isinstance(expected[0], np.ndarray):
        assert isinstance(got[0], shim.ndarray)


def test_generator():
    ours, theirs = shim.random.default_rng(3), np.random.default_rng(3)
    for name, args in (
        ("random", (4,)),
        ("integers", (0, 9, (2, 3))),
        ("normal", ()),
        ("choice", ([1, 2, 3], 2)),
    ):
        assert_same(getattr(ours, name)(*args), getattr(theirs, name)(*args))
    assert shim.random.default_rng(ours) is ours
    assert_same([g.random(2) for g in ours.spawn(2)], [g.random(2) for g in theirs.spawn(2)])
    assert repr(ours).startswith("Generator(PCG64)")
    copy = pickle.loads(pickle.dumps(ours))
    assert_same(copy.random(3), theirs.random(3))
    state = shim.random.RandomState(5)
    assert_same(state.rand(3), np.random.RandomState(5).rand(3))


def test_in_place():
    for turn in (lambda x: x, lambda x: x[::-1], lambda x: x[::2]):
        x, a = to_shim(np.arange(10)), np.arange(10)
        shim.random.default_rng(0).shuffle(turn(x))
        np.random.default_rng(0).shuffle(turn(a))
        assert_same(x, a)
    out = to_shim(np.zeros(4))
    assert shim.random.default_rng(0).random(out=out) is out
    assert_same(out, np.random.default_rng(0).random(4))


def test_arguments_and_errors():
    low = to_shim(np.array([0.0, 10.0]))
    assert_same(
        shim.random.default_rng(1).uniform(low, 20.0),
        np.random.default_rng(1).uniform([0.0, 10.0], 20.0),
    )
    with pytest.raises(ValueError, match="scale < 0"):
        shim.random.normal(0, -1, 3)
    with pytest.raises(AttributeError, match="no attribute"):
        _ = shim.random.nothing


def test_default_device():
    with torch.device("meta"):
        assert shim.random.rand(3).device == "meta"
    assert from_shim(shim.random.rand(3)).shape == (3,)
