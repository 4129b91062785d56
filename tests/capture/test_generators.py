"""Random generators made, copied and used in compiled functions: NumPy's numbers, in place too."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from numpy.random import PCG64, Generator, RandomState

import np_compile
from np_compile import config

from ..support import check

MAKERS = {
    "default_rng": lambda: np.random.default_rng(3),
    "Generator": lambda: np.random.Generator(np.random.PCG64(3)),
    "RandomState": lambda: np.random.RandomState(3),
    "imported": lambda: Generator(PCG64(3)),
    "imported_state": lambda: RandomState(3),
    "bits": lambda: np.random.RandomState(np.random.MT19937(3)),
    "array": lambda: np.random.default_rng(np.arange(3)),
    "bits_array": lambda: np.random.Generator(np.random.Philox(np.arange(3))),
    "sequence": lambda: np.random.default_rng(np.random.SeedSequence(np.arange(4)).spawn(2)[1]),
    "deepcopy": lambda: copy.deepcopy(np.random.RandomState(3)),
    "given": lambda: np.random.default_rng(np.random.default_rng(3)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_arrays_are_shuffled_in_place(name):
    make = MAKERS[name]

    def f(x):
        rng = make()
        y = x * 2
        rng.shuffle(y)
        rng.shuffle(y[:2])
        return y, rng.permutation(y), rng.normal(y.mean(), 1.0, 3) * 2, rng.choice(y[0], 2)

    check(f, np.arange(12.0).reshape(6, 2))


def test_draws_into_arrays():
    def f(x):
        rng = Generator(PCG64(5))
        y, z = np.zeros(4), np.arange(12.0).reshape(3, 4)
        rng.random(out=y)
        rng.shuffle(z, axis=1)
        rng.permuted(z, axis=0, out=z)
        return y + x, z, rng.standard_gamma(np.ones(4), out=y)

    check(f, np.arange(4.0))


def test_classes_are_asked_for_instances():
    def f(seed):
        rng = np.random.default_rng(seed)
        kinds = [isinstance(rng, k) for k in (Generator, np.random.Generator, RandomState)]
        kinds += [isinstance(PCG64(1), np.random.BitGenerator), issubclass(Generator, Generator)]
        same = np.random.Generator == Generator, {np.random.PCG64: 1}[PCG64]
        same += np.random.default_rng(rng) is rng, pickle.loads(pickle.dumps(rng)).random(2)
        return kinds, same, np.random.PCG64.__name__, type(rng).__name__, rng.random(2)

    check(f, 3)
    check(f, np.random.default_rng(3))


class Sampler:
    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)

    def batch(self, x):
        places = np.arange(len(x))
        self.rng.shuffle(places)
        return x[places[:3]] * 2


def test_objects_with_generators_of_their_own():
    def f(x, seed):
        s = Sampler(seed)
        return s.batch(x), s.batch(x), s.rng.randint(9, size=2)

    check(f, np.arange(8.0), 4)


def test_a_generator_that_is_given_back_is_numpys():
    def f(seed):
        return Generator(PCG64(seed))

    check(lambda seed: f(seed).random(2), 3)
    assert type(np_compile.compile(f, backend="eager")(3)) is Generator


_RNG, _STATE = np.random.default_rng(3), RandomState(2)
_DRAWS = (_RNG.exponential, _STATE.standard_gamma, np.random.poisson)
_BY_NAME = {"normal": _RNG.normal, "several": [_STATE.uniform, _RNG.random]}


class _Model:
    def __init__(self, draw):
        self.draw, self.rng = draw, _RNG

    def step(self, x):
        return x + self.draw(x)


_MODEL = _Model(_RNG.exponential)
METHODS = {
    "tuple": lambda x: [draw(x) for draw in _DRAWS],
    "dict": lambda x: (_BY_NAME["normal"](x), _BY_NAME["several"][0](x), _BY_NAME["several"][1](3)),
    "attribute": lambda x: (_MODEL.step(x), _MODEL.draw(x * 2)),
    "made inside": lambda x: _Model(_RNG.normal).step(x),
    "mapped": lambda x: (list(map(_DRAWS[0], x)), np.apply_along_axis(_DRAWS[1], 0, x)),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("plain", ["auto", "never"])
def test_methods_of_generators_in_containers_and_attributes(name, plain, monkeypatch):
    monkeypatch.setattr(config, "plain", plain)

    def f(x):
        return METHODS[name](x)

    found = []
    for g in (f, np_compile.compile(f)):
        _RNG.bit_generator.state, before = PCG64(5).state, np.random.get_state()
        _STATE.seed(2)
        np.random.seed(4)
        found.append([repr(g(np.array([0.5, 0.25]))) for _ in range(3)] + [_RNG.random()])
        np.random.set_state(before)
    assert found[0] == found[1]


def test_methods_of_generators_are_equal_and_bound_to_the_generator():
    def f(x):
        draw, other = _MODEL.draw, _RNG.normal
        bound = draw.__self__ is _RNG, _MODEL.rng is _RNG
        return bound, draw == _RNG.exponential, draw == other, draw in _DRAWS, draw, x * 2

    for _ in range(3):
        assert repr(np_compile.compile(f)(np.ones(2))) == repr(f(np.ones(2)))


def test_a_generator_that_code_outside_gives_writes_and_shuffles():
    @np_compile.disable
    def made():
        return np.random.default_rng(5), [np.random.RandomState(5)]

    def f():
        rng, (state,) = made()
        x, out = np.arange(10.0), np.empty(3)
        rng.shuffle(x)
        rng.random(out=out)
        state.shuffle(x[:4])
        return x, out, rng.normal(x * 0.1), state.normal(x)

    check(f)


def test_a_range_is_a_seed():
    def f():
        rng = np.random.default_rng(range(10))
        bits = np.random.MT19937(range(3))
        return rng.random(2), bits.random_raw(), np.random.SeedSequence(range(3)).entropy

    check(f)
