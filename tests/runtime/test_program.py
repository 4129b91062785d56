"""Programs: built from a path in the tree, run with the data of a call."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config
from np_compile.errors import BackendError

from ..support import data


def program_of(f, *args, backend="eager"):
    """The only program of a function, after a call."""
    with config.patch(plain="never", compile_in="call"):
        fast = np_compile.compile(f, backend=backend)
        fast(*args)
    (program,) = fast._options.compiles.programs
    return program


def scaled(x, k, n):
    return np.sin(x) * k + n


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_runs_on_tensors_floats_and_integers(backend):
    program = program_of(scaled, data(6), 2.5, 3, backend=backend)
    x = torch.from_numpy(data(6, seed=4))
    ints = program.dynamic_ints([3])
    want = np.sin(x.numpy()) * 1.5 + 3
    for run in (
        lambda: program.run_tensors([x], [1.5], ints),
        lambda: program.bound([1.5], ints)([x]),
    ):
        (got,) = run()
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)


def test_knows_what_it_writes_to():
    def f(x, y):
        z = x + 1  # so that x is the first that it reads
        y[1:] += z[0]
        return z

    assert program_of(f, data(3), data(3)).written == [1]
    assert program_of(scaled, data(3), 2.0, 1).written == []


def test_signatures_are_those_under_which_results_enter_the_next_segment():
    program = program_of(lambda x: np.cumsum(x, axis=1)[:, ::-1] * 2, data(3, 4))
    (result,) = program.run_tensors([torch.from_numpy(data(3, 4))], [], [])
    ((dtype, shape, strides, *_),) = program.signatures([result])
    assert (dtype, shape, strides) == (result.dtype, result.shape, result.stride())


class Pending:
    """What a back end made whose C compiler is at work, and fails."""

    ready = False
    seconds_left = 3.0

    def __call__(self, *tensors):
        raise AssertionError("it is not ready")

    def wait(self):
        raise BackendError("no space is left")


def test_a_program_whose_compiler_fails_runs_by_operators_from_then_on():
    program = program_of(scaled, data(5), 2.0, 1)
    made = type(program)(
        program.node, program.live, program.graph, Pending(), "native", frozenset(), {}, None, "f"
    )
    assert not made.ready
    assert made.seconds_left == 3.0
    with pytest.warns(RuntimeWarning, match="f: the back end 'native' failed.*no space is left"):
        made.wait()
    assert made.ready
    assert made.seconds_left == 0.0
    x = torch.from_numpy(data(5))
    (got,) = made.run_tensors([x], [2.0], [])
    np.testing.assert_allclose(got.numpy(), scaled(data(5), 2.0, 1), rtol=1e-14)


def test_phases_add_up_to_what_a_compile_took():
    program = program_of(scaled, data(7), 2.0, 1, backend="native")
    assert {"lower", "translate", "passes", "emit", "compiler"} <= set(program.phases)
    assert all(seconds >= 0 for seconds in program.phases.values())
