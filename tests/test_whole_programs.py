"""Whole programs on each device, both ways in, against NumPy: results, dtypes, changes."""

from __future__ import annotations

import copy
import shutil
import warnings

import numpy as np
import pytest
import torch

import np_compile
from np_compile import config
from np_compile.kernels.target import Gpu

from . import whole_algorithms, whole_domains, whole_files, whole_objects  # noqa: F401 - register
from .kernels import cuda_on_host
from .support import thorough
from .whole_programs import PROGRAMS

# Each program runs on arrays or on tensors each time, and both with `pytest -m thorough`.
ON_ARRAYS, ON_TENSORS = (
    pytest.mark.parametrize(
        "program",
        [p if k % 2 == odd else thorough(p)[0] for k, p in enumerate(PROGRAMS)],
        ids=lambda p: p.name,
    )
    for odd in (0, 1)
)
NAMED = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
DEVICES = pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda",
            marks=[
                pytest.mark.cuda,
                pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
            ],
        ),
    ],
)


def as_tensors(x, device):
    """A nested argument with tensors of their own memory for arrays."""
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x.copy()).to(device)
    if isinstance(x, (list, tuple)):
        return type(x)(as_tensors(v, device) for v in x)
    return {k: as_tensors(v, device) for k, v in x.items()} if isinstance(x, dict) else x


def same(got, want, what):
    """Values and dtypes are NumPy's, floats nearly; of arrays and of tensors, nested."""
    if isinstance(want, (list, tuple)):
        assert type(got) is type(want), what
        assert len(got) == len(want), what
        for k, (a, b) in enumerate(zip(got, want, strict=True)):
            same(a, b, f"{what}[{k}]")
        return
    if isinstance(want, dict):
        assert list(got) == list(want), what
        for k in want:
            same(got[k], want[k], f"{what}[{k!r}]")
        return
    if isinstance(want, (np.ndarray, np.generic)):
        tensor = isinstance(got, torch.Tensor)
        assert tensor or type(got) is type(want), (what, type(got))
        x = got.detach().cpu().numpy() if tensor else np.asarray(got)
        assert (x.dtype, x.shape) == (want.dtype, want.shape), what
        close(x, np.asarray(want), what)
        return
    assert type(got) is type(want), what
    close(np.asarray(got), np.asarray(want), what)


def close(x, y, what):
    if y.dtype.kind not in "fc":
        np.testing.assert_array_equal(x, y, what)
        return
    rtol = {"e": 4e-3, "f": 2e-5, "F": 2e-5}.get(y.dtype.char, 1e-9)
    finite = np.abs(y[np.isfinite(y)]).astype(float)
    np.testing.assert_allclose(x, y, rtol, rtol * finite.max(initial=0), err_msg=what)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of nan in rows of gaps
        yield


@DEVICES
@ON_ARRAYS
def test_arrays(program, device):
    """Three calls: the first, a repeat, and one that may be kept."""
    fast = np_compile.compile(program.function)
    for k in range(3):
        mine, its = copy.deepcopy(program.arguments), copy.deepcopy(program.arguments)
        want = program.function(*mine)
        with torch.device(device):
            got = fast(*its)
        same(got, want, f"call {k}")
        same(its, mine, f"arguments of call {k}")


@DEVICES
@ON_TENSORS
def test_tensors(program, device):
    fast = np_compile.compile(np_compile.wrap_numpy(program.function))
    for k in range(3):
        mine = copy.deepcopy(program.arguments)
        its = as_tensors(program.arguments, device)
        want = program.function(*mine)
        with torch.device(device):  # where what is made of no argument lies
            got = fast(*its)
        same(got, want, f"call {k}")
        same(its, mine, f"arguments of call {k}")


@pytest.mark.thorough
@pytest.mark.skipif(
    not cuda_on_host.available() or shutil.which("g++") is None, reason="no compiler for C++"
)
@NAMED
def test_cuda_on_the_host(program):
    """By the kernels of a device, which the CPU runs."""
    fast = np_compile.compile(np_compile.wrap_numpy(program.function))
    with cuda_on_host.compiling_for(Gpu()), config.patch(loops="recorded"):
        for k in range(3):
            mine = copy.deepcopy(program.arguments)
            its = as_tensors(program.arguments, "cpu")
            want = program.function(*mine)
            got = fast(*its)
            same(got, want, f"call {k}")
            same(its, mine, f"arguments of call {k}")


@DEVICES
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.wrt], ids=lambda p: p.name)
def test_gradients(program, device):
    """Those along a direction are what differences of NumPy's losses say."""
    fast = np_compile.compile(np_compile.wrap_numpy(program.function))
    rng = np.random.default_rng(5)
    for _ in range(2):
        its = as_tensors(program.arguments, device)
        inputs = [its[k].requires_grad_() for k in program.wrt]
        gradients = torch.autograd.grad(fast(*its), inputs)
        way = [rng.standard_normal(t.shape) for t in inputs]
        got = sum((g.cpu().numpy() * w).sum() for g, w in zip(gradients, way, strict=True))
        ends = []
        for sign in (1, -1):
            moved = list(copy.deepcopy(program.arguments))
            for k, w in zip(program.wrt, way, strict=True):
                moved[k] = moved[k] + sign * 1e-6 * w
            ends.append(program.function(*moved))
        np.testing.assert_allclose(got, (ends[0] - ends[1]) / 2e-6, rtol=1e-5)
