"""reduce, accumulate, reduceat, outer and at of every binary ufunc, against NumPy's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from .support import ALL, INTEGERS, assert_matches, assert_same, quiet, sample, shim, to_shim

FAST = ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "logical_xor"]
FAST += ["bitwise_and", "bitwise_or", "bitwise_xor", "fmax", "fmin"]
SLOW = ["subtract", "divide", "floor_divide", "remainder", "fmod", "gcd", "lcm", "hypot"]
SLOW += ["logaddexp", "logaddexp2", "copysign", "float_power", "left_shift", "heaviside"]
LOOSE = {"e": 2e-2, "f": 1e-5, "d": 1e-11, "F": 1e-4, "D": 1e-11}


def _loose(name, *args, **kwargs):
    x = next((a.dtype for a in args if isinstance(a, np.ndarray)), np.dtype("d"))
    rtol = max(LOOSE.get(x.char, 0), 1e-11)
    if name.startswith(("bitwise", "max", "min", "fm", "gcd", "lcm", "logical")) or x.kind in "iub":
        rtol = 0 if name not in ("divide", "arctan2", "hypot", "logaddexp", "logaddexp2") else rtol
    if any(n in name for n in ("hypot", "logadd", "arctan2", "divide", "heavi", "float_power")):
        rtol = 2e-2 if x.itemsize < 4 else max(rtol, 1e-5)
    assert_matches(name, *args, rtol=rtol, **kwargs)


@pytest.mark.parametrize("name", FAST + SLOW)
@pytest.mark.parametrize("method", ["reduce", "accumulate"])
def test_along_axes(name, method):
    for dtype in ALL:
        x = sample(dtype, (2, 3, 5), ord(dtype))
        if x.dtype.kind == "c" and name in ("multiply", "divide", "float_power"):
            x = (x / 3 + 1).astype(dtype)
        if name == "float_power":
            x = np.clip(x.real, 0.5, 2).astype(dtype)
        if name in ("multiply", "add", "divide") and x.dtype.kind == "f":
            x = np.where(np.isfinite(x), x, 2).astype(dtype)
        path = f"{name}.{method}"
        _loose(path, x)
        for axis in (0, 1, -1):
            _loose(path, x, axis, meta=axis == 1)
        if method == "reduce":
            _loose(path, x, axis=None)
            _loose(path, x, axis=(0, 2), keepdims=True)
            _loose(path, x[0, 0], keepdims=True)
            _loose(path, x, axis=())
        _loose(path, x[::-1, :, ::-2], 2, meta=False)


@pytest.mark.parametrize("name", [*FAST, "subtract", "hypot", "gcd", "logaddexp"])
def test_empty(name):
    x = np.zeros((0, 3), "l" if "bitwise" in name or name == "gcd" else "d")
    for axis in (0, 1, None, (0, 1)):
        assert_matches(f"{name}.reduce", x, axis)
        assert_matches(f"{name}.reduce", x, axis, initial=3 if name != "hypot" else 3.0)
        assert_matches(f"{name}.reduce", x, axis, keepdims=True)
    assert_matches(f"{name}.reduce", x, 0, initial=None)
    assert_matches(f"{name}.accumulate", x, 0)
    assert_matches(f"{name}.accumulate", x, 1)


@pytest.mark.parametrize("name", [*FAST, "subtract", "gcd"])
@pytest.mark.parametrize("dtype", ["?", "b", "B", "H", "L", "l", "e", "d", "D"])
def test_initial_and_where(name, dtype):
    x = sample(dtype, (4, 5), 3)
    if x.dtype.kind in "fc":
        x = np.where(np.isfinite(x), x, 1).astype(dtype)
    mask = sample("?", (4, 5), 4)
    for options in (
        {"initial": 2},
        {"where": mask},
        {"where": mask, "initial": 2},
        {"where": mask[:, :1], "initial": 1, "axis": 1},
        {"where": mask, "initial": None},
        {"where": False, "initial": 3},
        {"where": mask[0, :3]},
        {"where": mask[None]},
        {"where": np.ones((4, 5), int)},
    ):
        _loose(f"{name}.reduce", x, **options)


@pytest.mark.parametrize("dtype", ["b", "B", "f", "d", "l", "D", "?"])
def test_dtype(dtype):
    for char in "?bBhHfd":
        x = np.array([[1, 0, 3], [100, 2, 7]], char)
        for name in ("add", "multiply", "maximum", "logical_and"):
            assert_matches(f"{name}.reduce", x, 1, dtype=dtype, rtol=1e-6)
            assert_matches(f"{name}.accumulate", x, 1, dtype=dtype, rtol=1e-6)


def test_errors():
    x = np.ones((2, 3))
    for axis in (2, -3, (0, 0), (0, 5), 1.5):
        assert_matches("add.reduce", x, axis)
    assert_matches("subtract.reduce", x, (0, 1))
    assert_matches("add.accumulate", np.float64(3))
    assert_matches("add.accumulate", x, 2)
    assert_matches("sin.reduce", x)
    assert_matches("divmod.reduce", x)
    assert_matches("add.reduceat", x, [0, 5])
    assert_matches("add.reduce", np.float64(3), 0)
    assert_matches("greater.reduce", x)


def test_out():
    x = np.arange(6, dtype="i2").reshape(2, 3)
    for dtype in "ldf":
        theirs, ours = np.zeros(3, dtype), to_shim(np.zeros(3, dtype))
        np.add.reduce(x, 0, out=theirs)
        assert shim.add.reduce(to_shim(x), 0, out=ours) is ours
        assert_same(ours, theirs)
        theirs, ours = np.zeros((2, 3), dtype), to_shim(np.zeros((2, 3), dtype))
        np.add.accumulate(x, 0, out=theirs)
        assert shim.add.accumulate(to_shim(x), 0, out=(ours,)) is ours
        assert_same(ours, theirs)


@pytest.mark.parametrize("name", ["add", "multiply", "subtract", "less", "divmod", "power"])
def test_outer(name):
    x, y = np.array([1, 2, 3], "i2"), np.array([[1.0, 2.0]], "f4")
    assert_matches(f"{name}.outer", x, y, rtol=1e-6)
    assert_matches(f"{name}.outer", y, 2, rtol=1e-6)
    assert_matches(f"{name}.outer", 2, y, rtol=1e-6)
    assert_matches(f"{name}.outer", x, x, meta=name != "power")


@pytest.mark.parametrize("name", ["add", "maximum", "subtract", "multiply", "logical_or"])
def test_reduceat(name):
    x = np.arange(24).reshape(4, 6)
    for indices in ([0, 3, 1, 5], [2], [0, 0, 5], np.array([], int)):
        assert_matches(f"{name}.reduceat", x, indices, 1, meta=False)
    assert_matches(f"{name}.reduceat", x.astype("H"), [0, 2], meta=False)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum", "divide"])
@pytest.mark.parametrize("dtype", ["b", "H", "L", "l", "f", "d", "D"])
def test_at(name, dtype):
    x = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    for index, value in (
        ([0, 0, 1], np.array([[2], [3], [1]], dtype)),
        (([0, 0, 1], [1, 1, 2]), np.array([1, 2, 3], dtype)),
        ((slice(None), [2, 2, 0]), 2),
        (x.real > 2, 3),
        (0, 1),
    ):
        theirs, ours = x[::-1].copy(), shim.from_numpy(x.copy())[::-1]
        error = None
        with quiet():
            try:
                getattr(np, name).at(theirs, index, value)
            except TypeError as e:
                error = e
            if error is not None:
                with pytest.raises(TypeError):
                    getattr(shim, name).at(ours, index, value)
                continue
            index = to_shim(index) if isinstance(index, np.ndarray) else index
            getattr(shim, name).at(ours, index, to_shim(value))
        assert_same(ours, theirs, rtol=1e-5)


def test_at_unary_and_errors():
    x = np.arange(4)
    ours = to_shim(x)
    np.negative.at(x, [0, 1, 1])
    shim.negative.at(ours, [0, 1, 1])
    assert_same(ours, x)
    with pytest.raises(ValueError, match="second operand needed for ufunc"):
        shim.add.at(ours, [0])
    with pytest.raises(TypeError, match="first operand must be array"):
        shim.add.at([1, 2], [0], 1)


def test_gradients():
    t = torch.tensor([[0.5, 1.5, 2.5], [3.0, 0.25, 1.0]], dtype=torch.float64, requires_grad=True)
    for name in ("add", "multiply", "maximum", "subtract", "hypot", "logaddexp"):
        for method in ("reduce", "accumulate"):
            f = getattr(getattr(shim, name), method)
            assert torch.autograd.gradcheck(lambda v, f=f: f(shim.from_tensor(v), 1).tensor, t)

    def scattered(v):
        a = shim.from_tensor(v.clone())
        shim.add.at(a, ([0, 0], [1, 1]), shim.from_tensor(v[1, :2]))
        return a.tensor

    assert torch.autograd.gradcheck(scattered, t)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_any_reduction(data):
    name = data.draw(st.sampled_from(["add", "multiply", "maximum", "bitwise_xor", "logical_and"]))
    shape = data.draw(st.sampled_from([(), (1,), (3,), (2, 3), (2, 0), (2, 2, 2)]))
    x = sample(data.draw(st.sampled_from(INTEGERS)), shape, data.draw(st.integers(0, 9)))
    axes = data.draw(st.none() | st.sampled_from([(), 0, -1, (0, -1), 1, (1, 0)]))
    keepdims = data.draw(st.booleans())
    assert_matches(f"{name}.reduce", x, axes, keepdims=keepdims)


@pytest.mark.parametrize("dtype", ["i8", "i4", "u1", "f4", "f2", "?"])
def test_at_casts_at_each_step(dtype):
    """A place that is named twice is cast twice."""

    def run(np, x, name, i, b):
        x = x.copy()
        getattr(np, name).at(x, i, b)
        return x

    x = np.arange(4).astype(dtype)
    for name in ("add", "subtract", "multiply", "maximum", "divide"):
        for b in (0.5, 1.5, np.array([0.5, 0.75]), np.float64(2.5), 1, True):
            assert_matches(run, x, name, [1, 1], b, meta=False)
    assert_matches(run, x, "add", [1, 1, 1], np.array([2, 3, 4]).astype(dtype), meta=False)


MIXED = ("?", "i1", "i8", "u1", "f4", "f8", "c16")


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "bitwise_or", "logical_and"])
@pytest.mark.filterwarnings("ignore")
def test_a_result_that_is_stored_has_a_say_in_the_dtype(name):
    """Methods compute in what `out` and the array are promoted to, and cast at the end."""
    values = np.array([[100, 3, 0], [1, 90, 2.5]])
    for dtype, stored in itertools.product(MIXED, MIXED):

        def stores(m, method, shape, *indices, dtype=dtype, stored=stored):
            out = m.zeros(shape, dtype=stored)
            x = m.asarray(values.astype(dtype))
            try:
                getattr(getattr(m, name), method)(x, *indices, axis=1, out=out)
            except TypeError:
                return "TypeError"
            return np.asarray(out).tolist()

        for call in (("reduce", 2), ("accumulate", (2, 3)), ("reduceat", (2, 2), [0, 2])):
            assert stores(shim, *call) == stores(np, *call), (dtype, stored, *call)


@pytest.mark.parametrize("name", ["add", "multiply"])
def test_running_results_of_halves_are_rounded_at_each_step(name):
    for x in ([-57600, 7, 0, 3], [2048, 1, 1, 1, -2048], [60000, 60000, -60000], [1.001] * 9):
        with quiet():
            for y in (np.array(x, "e"), np.array([x, x], "e").T):
                expected = getattr(np, name).accumulate(y)
                assert_same(getattr(shim, name).accumulate(to_shim(y)), expected, rtol=0)


@pytest.mark.parametrize("dtype", ALL)
def test_what_a_reduction_over_one_element_gives_is_fresh(dtype):
    for name in FAST + SLOW:
        if not any(t.startswith(dtype * 2) for t in getattr(np, name).types):
            continue
        a = to_shim(np.ones((2, 1), dtype))
        r = getattr(shim, name).reduce(a, axis=1)
        assert not shim.may_share_memory(a, r), name


@pytest.mark.parametrize("name", ["logical_xor.accumulate", "subtract.reduce", "gcd.accumulate"])
def test_many_steps_run_in_numpy(name):
    x = sample("l", (200,), 1)
    ufunc, _, method = name.partition(".")
    before = shim.in_numpy.copy()
    with shim.strict(False):
        found = getattr(getattr(shim, ufunc), method)(to_shim(x))
    assert_same(found, getattr(getattr(np, ufunc), method)(x), rtol=0)
    assert [label for label, _ in shim.in_numpy - before] == [name]


def test_many_steps_keep_gradients():
    t = torch.linspace(0, 1, 50, dtype=torch.float64, requires_grad=True)
    shim.subtract.accumulate(shim.from_tensor(t))[-1]._t.backward()
    assert t.grad.tolist() == [1.0] + [-1.0] * 49
    many = torch.func.vmap(lambda r: shim.gcd.accumulate(shim.from_tensor(r))._t)
    assert many(torch.full((2, 40), 6)).tolist() == [[6] * 40] * 2
