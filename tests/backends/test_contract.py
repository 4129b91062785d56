"""What every back end promises: of a graph and inputs a callable, tensors in, a list out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config, errors
from np_compile.backends import BACKENDS, for_sizes, lookup

from ..kernels.graphs import captured
from ..support import data


def chain(x):
    import numpy as np

    y = np.sin(x) * 2
    return y, y.sum(axis=0)


def in_place(x):
    x[1:] *= 2
    x += x.mean()
    return x[0] + 1


NAMES = ("eager", "aot_eager", "native")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("f", [chain, in_place], ids=lambda f: f.__name__)
def test_a_program_does_what_its_graph_does(name, f):
    ((module, inputs),) = captured(f, data(5, 3))
    mine, theirs = [[t.clone() for t in inputs] for _ in range(2)]
    got = lookup(name)(module, inputs)(*mine)
    want = module.forward(*theirs)
    assert len(got) == len(want)
    for a, b in zip([*got, *mine], [*want, *theirs], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["eager", "native"])
def test_roots_are_rounded_correctly(name):
    """Those of torch on the CPU are not."""
    x = np.random.default_rng(0).random(1000).astype("f4")
    ((module, inputs),) = captured(lambda x: np.sqrt(x) + 0, x)
    for run in (lookup(name)(module, inputs), module.forward):  # the latter where that fails
        np.testing.assert_array_equal(run(*inputs)[0].numpy(), np.sqrt(x))


@pytest.mark.parametrize("name", ["eager", "native"])
def test_quotients_and_sums_of_halves_are_rounded_as_numpy_does(name):
    rng = np.random.default_rng(0)
    z, h = rng.random((2, 500)) + 1j * rng.random((2, 500)), rng.random(500).astype("f2")
    program = lambda z, h: (z[0] / z[1], np.cumsum(h), np.cumprod(h, dtype="f2"))  # noqa: E731
    ((module, inputs),) = captured(program, z, h)
    for got, want in zip(lookup(name)(module, inputs)(*inputs), program(z, h), strict=True):
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("name", ["eager", "native"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_running_sums_begin_with_the_first_element(name, dtype):
    x = np.array([[-0.0, -0.0, 1.0, -0.0], [0.0, -0.0, -1.0, 1.0]], dtype)
    program = lambda x: (np.cumsum(x, 1), np.add.accumulate(x))  # noqa: E731
    ((module, inputs),) = captured(program, x)
    for got, want in zip(lookup(name)(module, inputs)(*inputs), program(x), strict=True):
        np.testing.assert_array_equal(got.numpy(), want)
        np.testing.assert_array_equal(np.signbit(got.numpy().real), np.signbit(want.real))


@pytest.mark.parametrize("name", ["eager", "native"])
def test_roots_of_programs_for_many_sizes_are_rounded_correctly(name):
    fast = np_compile.compile(lambda x: np.sqrt(x[1:]) + x[:-1], backend=name, dynamic=True)
    with config.patch(compile_in="call", plain="never"):
        for n in (500, 600, 700):
            x = np.random.default_rng(n).random(n).astype("f4")
            np.testing.assert_array_equal(fast(x), np.sqrt(x[1:]) + x[:-1])


@pytest.mark.parametrize("name", NAMES)
def test_a_program_has_the_gradient_of_its_graph(name):
    ((module, inputs),) = captured(chain, data(4, 2))
    found = []
    for program in (lookup(name), None):
        given = [t.clone().requires_grad_() for t in inputs]
        run = module.forward if program is None else program(module, given)
        first, second = run(*given)
        (first.sum() + (second**2).sum()).backward()
        found.append(given[0].grad)
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-12)


def test_names_callables_and_mistakes():
    for name, made in BACKENDS.items():
        assert lookup(name) is made
    assert lookup(chain) is chain
    with pytest.raises(errors.UnknownBackend, match="'eager'"):
        lookup("fast")
    with pytest.raises(errors.UnknownBackend, match="not int"):
        lookup(3)


def test_which_back_ends_have_programs_for_many_sizes():
    assert {name for name in BACKENDS if for_sizes(name)} == {"eager", "native"}
    assert for_sizes(chain) is None
